"""Concentration: exact tails, enumeration and rationals as oracles."""

import itertools
import math
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from assay.theory import concentration as con

getcontext().prec = 60
DELTAS = (0.2, 0.05, 1e-6)


def exact_cdf(k, m, p):
    """P[Bin(m, p) <= k] as a rational."""
    p = Fraction(p)
    return sum(math.comb(m, j) * p**j * (1 - p) ** (m - j) for j in range(k + 1))


@pytest.mark.mission("LTH-06")
def test_one_sided_hoeffding_is_above_every_binomial_tail():
    for m in range(1, 201):
        k = np.arange(1, m + 1)
        for p in (0.01, 0.1, 0.3, 0.5, 0.8, 0.99):
            epsilon = k / m - p
            tail = binom.sf(k - 1, m, p)
            ok = epsilon > 1e-12
            bound = [con.hoeffding_failure(m, float(e)) for e in epsilon[ok]]
            assert np.all(tail[ok] <= bound)


@pytest.mark.mission("LTH-07")
def test_two_sided_hoeffding_is_above_both_tails():
    for m in (1, 7, 50, 200):
        for p in (0.05, 0.5, 0.9):
            for epsilon in np.linspace(0.01, 0.95, 40):
                k = np.arange(m + 1)
                tail = binom.pmf(k[np.abs(k / m - p) >= epsilon], m, p).sum()
                assert min(tail, 1.0) <= con.hoeffding_failure(m, float(epsilon), two_sided=True)


@pytest.mark.mission("LTH-04", "LTH-06", "LTH-07")
@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("width", [1.0, 2.5])
def test_hoeffding_inverses_agree(two_sided, width):
    for m in (1, 10, 333, 10**6):
        for delta in DELTAS:
            options = {"width": width, "two_sided": two_sided}
            epsilon = con.hoeffding_deviation(m, delta, **options)
            assert con.hoeffding_failure(m, epsilon, **options) == pytest.approx(delta, rel=1e-8)
            assert con.hoeffding_sample_size(epsilon, delta, **options) <= m
            needed = con.hoeffding_sample_size(epsilon * 1.0001, delta, **options)
            assert con.hoeffding_failure(needed, epsilon * 1.0001, **options) <= delta * (1 + 1e-9)
            if needed > 1:
                assert con.hoeffding_failure(needed - 1, epsilon * 1.0001, **options) > delta


@pytest.mark.mission("LTH-08")
def test_television_rating():
    assert con.hoeffding_sample_size(0.03, 0.05, two_sided=True) == 2050
    assert 2 * math.exp(-2 * 2050 * 0.03**2) <= 0.05 < 2 * math.exp(-2 * 2049 * 0.03**2)
    half = con.hoeffding_deviation(2050, 0.05, two_sided=True)
    assert half <= 0.03  # a measured share s gives the interval s +- half


@pytest.mark.mission("LTH-09", "LTH-10")
def test_mcdiarmid_reduces_to_hoeffding():
    for m in (1, 20, 400):
        c = np.full(m, 1 / m)
        for two_sided in (False, True):
            for delta in DELTAS:
                expected = con.hoeffding_deviation(m, delta, two_sided=two_sided)
                assert con.mcdiarmid_deviation(delta, c, two_sided=two_sided) == pytest.approx(expected)
            assert con.mcdiarmid_failure(0.07, c, two_sided=two_sided) == pytest.approx(
                con.hoeffding_failure(m, 0.07, two_sided=two_sided)
            )


@pytest.mark.mission("LTH-09", "LTH-11")
def test_mcdiarmid_holds_for_the_median_of_coins():
    m, p = 5, 0.3
    c = con.bounded_differences(lambda z: sorted(z)[2], [0, 1], m)
    law = {z: math.prod(p if v else 1 - p for v in z) for z in itertools.product([0, 1], repeat=m)}
    mean = sum(w * sorted(z)[2] for z, w in law.items())
    for epsilon in (0.2, 0.5, 0.8):
        tail = sum(w for z, w in law.items() if sorted(z)[2] - mean >= epsilon)
        assert tail <= con.mcdiarmid_failure(epsilon, c)


@pytest.mark.mission("LTH-11")
def test_bounded_differences_by_brute_force():
    domain = [0.0, 0.25, 1.0]
    for m in (1, 2, 4):
        assert con.bounded_differences(np.mean, domain, m) == pytest.approx([1 / m] * m)
        assert con.bounded_differences(max, domain, m) == [1.0] * m
    assert con.bounded_differences(lambda z: 3 * z[0] - z[1], domain, 2) == [3.0, 1.0]


@pytest.mark.mission("LTH-05")
@pytest.mark.parametrize(
    ("function", "convex"),
    [(np.exp, True), (np.square, True), (lambda x: -np.log(x), True), (np.sqrt, False), (np.log, False)],
)
def test_jensen(function, convex):
    rng = np.random.default_rng(5)
    for _ in range(50):
        x, w = rng.uniform(0.1, 3.0, 6), rng.dirichlet(np.ones(6))
        gap = con.jensen_gap(function, x, w)
        assert gap == pytest.approx(w @ function(x) - function(w @ x))
        assert gap > 0 if convex else gap < 0


@pytest.mark.mission("LTH-12")
def test_union_bound_on_random_finite_spaces():
    rng = np.random.default_rng(6)
    for _ in range(100):
        weight = rng.dirichlet(np.ones(12))
        events = rng.random((5, 12)) < rng.uniform(0.05, 0.6)
        bound = con.union_bound(events @ weight)
        assert weight[events.any(axis=0)].sum() <= bound + 1e-15
        alone = events & (events.sum(axis=0) == 1)  # events that exclude each other: nothing is lost
        assert con.union_bound(alone @ weight) == pytest.approx(weight[alone.any(axis=0)].sum(), abs=1e-15)
        assert bound == pytest.approx(min(1.0, (events @ weight).sum()))
    assert con.union_bound([]) == 0.0
    for wrong in ([0.5, -0.1], [1.1], [[0.1]]):
        with pytest.raises(ValueError, match="probabilities must lie"):
            con.union_bound(wrong)


@pytest.mark.mission("LTH-12")
@pytest.mark.parametrize("size", [1, 7, 3**400])
def test_the_share_of_each_event_adds_up_to_delta(size):
    share = con.log_share(0.05, size)
    assert share == pytest.approx(math.log(0.05) - math.log(size), rel=1e-15)
    assert con.log_union_bound(share, size) == pytest.approx(math.log(0.05), rel=1e-12)
    assert con.log_union_bound(-0.01, 2) == 0.0
    few = min(size, 7)
    assert math.exp(con.log_union_bound(math.log(0.1), few)) == pytest.approx(con.union_bound([0.1] * few))


def test_bernstein_is_above_every_binomial_tail_and_inverts():
    for m in (5, 60, 300):
        for p in (0.01, 0.2, 0.5):
            k = np.arange(m + 1)
            for epsilon in (0.02, 0.1, 0.3):
                tail = binom.pmf(k[k / m - p >= epsilon - 1e-12], m, p).sum()
                assert tail <= con.bernstein_failure(m, epsilon, p * (1 - p))
            delta = con.bernstein_failure(m, 0.1, p * (1 - p))
            if 1e-4 < delta < 1:
                assert con.bernstein_deviation(m, delta, p * (1 - p)) == pytest.approx(0.1, rel=1e-6)


@pytest.mark.parametrize(("k", "m"), [(0, 1), (0, 30), (1, 7), (5, 100), (49, 50), (50, 100), (3, 2000)])
@pytest.mark.parametrize("delta", DELTAS)
def test_clopper_pearson_limits_are_exact(k, m, delta):
    upper, lower = con.clopper_pearson_upper(k, m, delta), con.clopper_pearson_lower(k, m, delta)
    assert exact_cdf(k, m, upper) <= Fraction(delta)
    assert exact_cdf(k, m, upper * (1 - 1e-8)) > Fraction(delta)
    if k:
        assert 1 - exact_cdf(k - 1, m, lower) <= Fraction(delta)
        assert 1 - exact_cdf(k - 1, m, lower * (1 + 1e-8)) > Fraction(delta)
    else:
        assert lower == 0.0


def test_clopper_pearson_at_the_ends():
    assert con.clopper_pearson_upper(9, 9, 0.05) == 1.0
    assert con.clopper_pearson_upper(0, 59, 0.05) == pytest.approx(1 - 0.05 ** (1 / 59), rel=1e-9)
    assert con.clopper_pearson_upper(6, 10, 0.99) == 0.6  # never below what was seen
    assert con.clopper_pearson_lower(6, 10, 0.99) == 0.6


@pytest.mark.parametrize(("k", "m", "log_weight"), [(0, 1000, -900.0), (20, 400, -800.0), (3, 50, -700.0)])
def test_a_share_of_delta_below_the_smallest_float(k, m, log_weight):
    upper = con.clopper_pearson_upper(k, m, 0.05, log_weight=log_weight)
    log_delta = (Decimal(1) / 20).ln() + Decimal(log_weight)

    def log_tail(p):
        tail = exact_cdf(k, m, p)
        return (Decimal(tail.numerator) / Decimal(tail.denominator)).ln()

    assert log_tail(upper) <= log_delta < log_tail(upper - 3e-10)
    mirrored = con.clopper_pearson_lower(m - k, m, 0.05, log_weight=log_weight)
    assert mirrored == pytest.approx(1 - upper, abs=2e-10)


@pytest.mark.parametrize("m", [10, 50, 200])
@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_hold_out_bounds_fail_no_more_often_than_promised(m, delta):
    """Exact failure probability of Clopper-Pearson, kl and empirical Bernstein, worst over the error rate."""
    k = np.arange(m + 1)
    rows = [np.r_[np.ones(j), np.zeros(m - j)] for j in k]
    bounds = {
        "cp": [con.clopper_pearson_upper(int(j), m, delta) for j in k],
        "kl": [con.kl_upper(j / m, math.log(1 / delta) / m) for j in k],
        "eb": [con.empirical_bernstein_upper(row, delta) for row in rows],
    }
    p = np.linspace(0.001, 0.999, 1500)
    worst = {}
    for name, bound in bounds.items():
        fails = np.asarray(bound)[None, :] < p[:, None]
        worst[name] = float((binom.pmf(k[None, :], m, p[:, None]) * fails).sum(axis=1).max())
        assert worst[name] <= delta, name
    assert worst["cp"] >= 0.9 * delta  # it is tight, so a wrong constant would show


@pytest.mark.parametrize("p", [0.0, 1e-9, 0.01, 0.3, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("c", [0.0, 1e-8, 1e-3, 0.1, 5.0])
def test_kl_limits_in_sixty_digits(p, c):
    def kl(a, b):
        a, b = Decimal(a), Decimal(b)
        first = a * (a / b).ln() if a > 0 else Decimal(0)
        return first + ((1 - a) * ((1 - a) / (1 - b)).ln() if a < 1 else Decimal(0))

    upper, lower = con.kl_upper(p, c), con.kl_lower(p, c)
    assert lower <= p <= upper
    if upper < 1:
        assert kl(p, upper) >= Decimal(c)
        inside = max(p, upper - 1e-8)
        assert p == inside or kl(p, inside) <= Decimal(c)
    if lower > 0:
        assert kl(p, lower) >= Decimal(c)
        inside = min(p, lower + 1e-8)
        assert p == inside or kl(p, inside) <= Decimal(c)


def test_kl_is_the_relative_entropy():
    assert con.kl(0.25, 0.5) == pytest.approx(0.25 * math.log(0.5) + 0.75 * math.log(1.5))
    assert con.kl(0.0, 0.25) == pytest.approx(-math.log(0.75))
    assert con.kl(1.0, 0.25) == pytest.approx(math.log(4))
    assert con.kl(0.5, 0.0) == math.inf
    for p, q in itertools.product(np.linspace(0, 1, 21), repeat=2):
        assert con.kl(float(p), float(q)) >= 2 * (p - q) ** 2 - 1e-15  # Pinsker


@pytest.mark.parametrize("n", [1, 2, 3, 10, 60])
def test_xi_is_the_exponential_moment_of_kl(n):
    exact = sum(
        math.comb(n, k) * Fraction(k, n) ** k * Fraction(n - k, n) ** (n - k) for k in range(n + 1)
    )  # 0 ** 0 == 1
    assert con.maurer_xi(n) == pytest.approx(float(exact), rel=1e-9)
    assert Fraction(con.maurer_xi(n)) >= exact
    for p in (0.1, 0.5, 0.83):
        moment = sum(binom.pmf(k, n, p) * math.exp(n * con.kl(k / n, p)) for k in range(n + 1))
        assert moment == pytest.approx(float(exact), rel=1e-9)


def test_xi_is_at_most_twice_the_root_and_continues_smoothly():
    values = [con.maurer_xi(n) for n in range(1, 300)]
    assert all(value <= 2 * math.sqrt(n) * (1 + 1e-9) for n, value in enumerate(values, 1))
    assert con.maurer_xi(1000) == pytest.approx(40.30, abs=0.01)
    assert con.maurer_xi(10**7) == pytest.approx(2 * math.sqrt(10**7))


def test_xi_bounds_the_moment_of_other_losses_in_the_unit_interval():
    """E exp(n kl(mean, L)) <= Xi(n) for three-valued losses, by enumeration."""
    values, law, n = np.array([0.0, 0.4, 1.0]), np.array([0.5, 0.3, 0.2]), 6
    total = 0.0
    for z in itertools.product(range(3), repeat=n):
        z = list(z)
        total += math.prod(law[z]) * math.exp(n * con.kl(float(values[z].mean()), float(values @ law)))
    assert total <= con.maurer_xi(n)


def test_empirical_bernstein_by_hand():
    losses = [0.0, 0.5, 1.0, 0.5] * 25
    log = math.log(2 / 0.05)
    expected = 0.5 + math.sqrt(2 * 12.5 / 99 * log / 100) + 7 * log / (3 * 99)
    assert con.empirical_bernstein_upper(losses, 0.05) == pytest.approx(expected, rel=1e-9)
    scaled = con.empirical_bernstein_upper(np.multiply(losses, 4.0), 0.05, high=4.0)
    assert scaled == pytest.approx(4 * expected, rel=1e-9)


def wealth(losses, g, delta):
    """The gambler's fortunes, written as the definition says, one row at a time."""
    m, money, fortunes = len(losses), 1.0, []
    total, squares = 0.5, 0.25
    for t, loss in enumerate(losses, start=1):
        variance = squares / t
        stake = min(0.98 / (1 - g), math.sqrt(2 * math.log(1 / delta) / (m * variance)))
        money *= 1 - stake * (loss - g)
        fortunes.append(money)
        total += loss
        squares += (loss - total / (t + 1)) ** 2
    return fortunes


def test_betting_bound_is_where_the_wealth_reaches_its_goal():
    rng = np.random.default_rng(8)
    for m in (30, 200):
        for a, b in ((0.2, 2.0), (2.0, 2.0), (1.0, 9.0)):
            losses, delta = rng.beta(a, b, m), 0.05
            bound = con.betting_upper(losses, delta)
            assert bound >= losses.mean()
            if bound < 1.0:
                assert max(wealth(losses, bound, delta)) >= 1 / delta
                if bound > losses.mean():
                    assert max(wealth(losses, bound - 1e-7, delta)) < 1 / delta


@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_betting_fails_no_more_often_than_promised_on_coins(delta):
    m = 10
    sequences = np.array(list(itertools.product([0.0, 1.0], repeat=m)))
    bounds = np.array([con.betting_upper(z, delta) for z in sequences])
    heads = sequences.sum(axis=1)
    for p in np.linspace(0.02, 0.98, 49):
        assert (p**heads * (1 - p) ** (m - heads))[bounds < p].sum() <= delta


def test_the_wealth_is_a_supermartingale():
    m, p, delta = 10, 0.35, 0.05
    total = 0.0
    for z in itertools.product([0.0, 1.0], repeat=m):
        total += p ** sum(z) * (1 - p) ** (m - sum(z)) * wealth(z, p, delta)[-1]
    assert total == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: con.hoeffding_deviation(0, 0.05), "m must be an integer >= 1"),
        (lambda: con.hoeffding_deviation(10, 0.0), "delta must lie strictly between 0 and 1"),
        (lambda: con.hoeffding_deviation(10, 1.0), "delta must lie strictly"),
        (lambda: con.hoeffding_deviation(10, math.nan), "delta must lie strictly"),
        (lambda: con.hoeffding_sample_size(-0.1, 0.05), "epsilon must be a finite number > 0"),
        (lambda: con.hoeffding_sample_size(1e-9, 0.05), "exceeds 2\\^52 rows"),
        (lambda: con.mcdiarmid_deviation(0.05, [0.1, -0.1]), "differences must be"),
        (lambda: con.clopper_pearson_upper(5, 4, 0.05), "k must not exceed m"),
        (lambda: con.clopper_pearson_upper(-1, 4, 0.05), "k must be an integer >= 0"),
        (lambda: con.clopper_pearson_upper(1.5, 4, 0.05), "k must be an integer"),
        (lambda: con.clopper_pearson_upper(1, 4, 0.05, log_weight=0.1), "log_weight must be"),
        (lambda: con.kl_upper(1.2, 0.1), "p must be a finite number in \\[0, 1\\]"),
        (lambda: con.kl_upper(0.2, math.inf), "c must be a finite number"),
        (lambda: con.betting_upper([0.2, 1.3], 0.05), "row 1 has"),
        (lambda: con.betting_upper([0.2, math.nan], 0.05), "losses must lie in \\[0, 1\\]"),
        (lambda: con.betting_upper([], 0.05), "at least 1 values"),
        (lambda: con.empirical_bernstein_upper([0.5], 0.05), "at least 2 values"),
        (lambda: con.bernstein_deviation(5, 0.1, -1.0), "variance must be"),
    ],
)
@pytest.mark.mission("LTH-04")
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
