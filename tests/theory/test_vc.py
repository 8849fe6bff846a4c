"""Growth-function bounds: exact integers, Fractions and the published tables as oracles."""

import inspect
import math
import time
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import betaincinv, logsumexp
from scipy.stats import hypergeom

from assay.theory import concentration, vc
from assay.theory.spaces import HalfSpaces, Intervals, Thresholds, Unbounded

getcontext().prec = 50


def exact_hypergeometric(k, total, marked, drawn):
    ways = sum(math.comb(marked, j) * math.comb(total - marked, drawn - j) for j in range(min(k, drawn) + 1))
    return Fraction(ways, math.comb(total, drawn))


@pytest.mark.parametrize(("total", "drawn"), [(20, 4), (60, 12), (300, 100), (900, 30)])
def test_hypergeometric_tail_against_integers(total, drawn):
    for marked in range(0, total + 1, max(1, total // 15)):
        for k in range(0, drawn + 1, max(1, drawn // 6)):
            exact = exact_hypergeometric(k, total, marked, drawn)
            value = concentration.log_hypergeometric_cdf(k, total, marked, drawn)
            if exact == 0:
                assert value == -math.inf
            else:
                log = (Decimal(exact.numerator) / Decimal(exact.denominator)).ln()
                assert 0 <= Decimal(value) - log < Decimal("1e-9") or value == 0.0 == round(float(log), 12)


@pytest.mark.parametrize("m", [1, 13, 200])
def test_binomial_tail_against_rationals(m):
    for p in (1e-6, 0.03, 0.5, 0.9):
        for k in {0, m // 10, m // 2, m - 1}:
            q = Fraction(p)
            exact = sum(math.comb(m, j) * q**j * (1 - q) ** (m - j) for j in range(k + 1))
            log = (Decimal(exact.numerator) / Decimal(exact.denominator)).ln()
            value = concentration.log_binomial_cdf(k, m, p)
            assert -Decimal("1e-15") <= Decimal(value) - log < Decimal("1e-10")


@pytest.mark.parametrize(("n", "d"), [(10, 3), (3000, 2500), (5000, 2400), (4001, 2001), (10**6, 2001)])
def test_log_of_binomial_sums(n, d):
    exact = Decimal(concentration.binomial_sum(n, d)).ln()
    assert Decimal(0) <= Decimal(vc.log_sauer(n, d)) - exact < Decimal("1e-5")


@pytest.mark.mission("LTH-32")
def test_sauer_sum():
    assert [vc.sauer(m, 2) for m in range(1, 7)] == [2, 4, 7, 11, 16, 22]
    for m in range(1, 12):
        for d in range(m + 3):
            assert vc.sauer(m, d) == sum(math.comb(m, i) for i in range(d + 1))


@pytest.mark.mission("LTH-33")
def test_exponential_form_of_sauer():
    for d in range(1, 15):
        for m in range(d, 80):
            assert vc.log_sauer_simple(m, d) >= math.log(vc.sauer(m, d))
            assert vc.log_sauer_simple(m, d) == pytest.approx(d * math.log(math.e * m / d), rel=1e-9)
    with pytest.raises(ValueError, match="n must be at least d"):
        vc.log_sauer_simple(3, 4)
    with pytest.raises(ValueError, match="for d = 0 the growth is 1"):
        vc.log_sauer_simple(3, 0)


@pytest.mark.mission("LTH-30", "LTH-31")
def test_cover_count():
    assert [vc.cover(m, 3) for m in range(2, 7)] == [4, 8, 14, 22, 32]
    assert all(vc.cover(m, 3) == m * m - m + 2 for m in range(1, 40))
    assert all(vc.cover(m, 9) == 2**m for m in range(1, 10))
    assert vc.log_cover(50, 4) == pytest.approx(math.log(vc.cover(50, 4)), abs=1e-8)


@pytest.mark.mission("LTH-35")
def test_textbook_vc_bound_to_ten_digits():
    d, m, delta = 3, 10**4, Decimal(1) / 20
    inner = 8 * d * (2 * Decimal(1).exp() * m / d).ln() + 8 * (4 / delta).ln()
    expected = float((inner / m).sqrt())
    value = vc.uniform_deviation(m, 0.05, lambda n: vc.log_sauer_simple(n, d))
    assert value == pytest.approx(expected, rel=2e-10)
    solves = math.log(4) + d * math.log(2 * math.e * m / d) - m * expected**2 / 8
    assert solves == pytest.approx(math.log(0.05), abs=1e-9)


@pytest.mark.mission("LTH-34")
def test_vc_inequality_inverts_and_is_trivial_for_few_rows():
    space = Intervals()
    assert vc.uniform_failure(100, 0.1, space.log_growth) == 1.0
    epsilon = vc.uniform_deviation(20_000, 0.05, space.log_growth)
    assert vc.uniform_failure(20_000, epsilon, space.log_growth) == pytest.approx(0.05, rel=1e-6)


@pytest.mark.mission("LTH-34")
def test_frequency_of_large_deviations_over_all_thresholds_stays_below():
    """sup over thresholds is the Kolmogorov distance; at this size the inequality says something."""
    rng = np.random.default_rng(0)
    m, epsilon = 4000, 0.2
    bound = vc.uniform_failure(m, epsilon, Thresholds().log_growth)
    assert bound < 0.01
    for _ in range(200):
        x = np.sort(rng.random(m))
        distance = max(np.abs(x - np.arange(m) / m).max(), np.abs(x - np.arange(1, m + 1) / m).max())
        assert distance < epsilon


@pytest.mark.mission("LTH-36")
def test_vc_bounds_take_no_data():
    """Rows, delta and the growth function are all they are told; the value is the formula in these three."""
    formulas = {
        vc.uniform_deviation: math.sqrt(8 * (7.0 + math.log(4 / 0.05)) / 500),
        vc.massart_deviation: math.sqrt(2 * 7.0 / 500) + math.sqrt(math.log(1 / 0.05) / 1000),
    }
    for function, value in formulas.items():
        m, delta, log_growth = inspect.signature(function).parameters
        assert (m in "mn", delta, log_growth) == (True, "delta", "log_growth")
        assert function(500, 0.05, 7.0) == pytest.approx(value, rel=1e-9)


@pytest.mark.mission("LTH-51")
def test_bound_through_massart_is_a_composition_and_smaller():
    for d in (1, 3, 30):
        for m in (50, 1000, 10**5):
            composed = math.sqrt(2 * d * math.log(math.e * m / d) / m) + math.sqrt(math.log(20) / (2 * m))
            value = vc.massart_deviation(m, 0.05, lambda n, d=d: vc.log_sauer_simple(n, d))
            assert value == pytest.approx(composed, rel=1e-9)
            assert value < vc.uniform_deviation(m, 0.05, lambda n, d=d: vc.log_sauer_simple(n, d))


def reference_ghost(k, n, log_growth, delta, M, q):
    """The definition by scipy's hypergeometric distribution and a scan over K."""
    t = math.log(delta) + math.log(q) - log_growth
    for K in range(k, k + M + 1):
        if hypergeom.logcdf(k, n + M, K, n) <= t:
            return float(betaincinv(K - k, M - K + k + 1, q)), K
    return 1.0, None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [5, 30, 80])
@pytest.mark.parametrize("M", [None, 7, 60])
@pytest.mark.parametrize("q", [0.5, 0.9])
def test_ghost_sample_bound_against_its_definition(n, M, q):
    for log_growth in (0.0, 2.0, 12.0):
        for k in range(0, n + 1, max(1, n // 3)):
            for delta in (0.05, 0.4):
                result = vc.ghost_sample_bound(k, n, log_growth, delta, M, q)
                bound, K = reference_ghost(k, n, log_growth, delta, M or 4 * n, q)
                assert result.bound == pytest.approx(max(bound, k / n), rel=1e-9)
                assert K is None or result.K == K
                assert (M or 4 * n) == result.M


def test_ghost_sample_bound_satisfies_both_exact_conditions():
    delta, q = Fraction(1, 20), Fraction(1, 2)
    for n, k, D in ((40, 3, 2), (100, 0, 3), (150, 40, 4)):
        growth = vc.cover(5 * n, D)
        result = vc.ghost_sample_bound(k, n, lambda N, D=D: vc.log_cover(N, D), 0.05)
        assert exact_hypergeometric(k, 5 * n, result.K, n) * growth <= delta * q
        assert exact_hypergeometric(k, 5 * n, result.K - 1, n) * growth > delta * q
        p, need = Fraction(result.bound), result.K - k
        below = sum(math.comb(4 * n, j) * p**j * (1 - p) ** (4 * n - j) for j in range(need))
        assert 1 - below >= q


@pytest.mark.parametrize(
    ("n", "d", "k", "expected"),
    [
        (200, 2, 0, 0.095),
        (1000, 10, 0, 0.080),
        (1000, 10, 50, 0.191),
        (1000, 10, 200, 0.395),
        (10**4, 10, 500, 0.090),
    ],
)
def test_ghost_sample_bound_table(n, d, k, expected):
    result = vc.ghost_sample_bound(k, n, HalfSpaces(d).log_growth, 0.05)
    assert result.bound == pytest.approx(expected, abs=6e-4)
    assert result.bound < vc.massart_bound(k, n, 0.05, HalfSpaces(d).log_growth)


def test_ghost_sample_bound_grows_with_errors_and_capacity_and_falls_with_delta():
    bounds = [vc.ghost_sample_bound(k, 60, 8.0, 0.05).bound for k in range(61)]
    assert bounds == sorted(bounds)
    assert all(bound >= k / 60 for k, bound in enumerate(bounds))
    assert bounds[-1] == 1.0
    by_growth = [vc.ghost_sample_bound(5, 60, g, 0.05).bound for g in (0.0, 1.0, 5.0, 20.0, 300.0)]
    assert by_growth == sorted(by_growth)
    assert by_growth[-1] == 1.0
    by_delta = [vc.ghost_sample_bound(5, 60, 5.0, d).bound for d in (0.5, 0.1, 0.01)]
    assert by_delta == sorted(by_delta)


def test_ghost_sample_bound_is_fast_and_safe_for_half_a_million_rows():
    space = HalfSpaces(28)
    start = time.process_time()
    result = vc.ghost_sample_bound(100_000, 500_000, space.log_growth, 0.05)
    assert time.process_time() - start < 0.5  # 1 ms on an idle machine
    target = math.log(0.05) + math.log(0.5) - space.log_growth(2_500_000)
    terms = np.arange(97_000, 100_001)

    def reference(marked):
        return logsumexp(hypergeom.logpmf(terms, 2_500_000, marked, 500_000))

    assert reference(result.K) <= target + 1e-5
    assert reference(result.K - 3) > target
    assert 0.2 < result.bound < 0.2 + vc.massart_deviation(500_000, 0.05, space.log_growth)


def test_realizable_textbook_bound():
    n, space = 680, HalfSpaces(2)
    expected = 2 / n * (math.log2(vc.cover(2 * n, 3)) + math.log2(2 / 0.05))
    assert vc.realizable_growth_bound(n, 0.05, space.log_growth) == pytest.approx(expected, rel=1e-8)
    assert vc.realizable_growth_bound(n, 0.05, space.log_growth) <= 0.1
    assert vc.realizable_growth_bound(1000, 0.9, 0.0) == pytest.approx(8 / 1000)  # their condition n >= 8/epsilon


@pytest.mark.mission("LTH-04")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vc.ghost_sample_bound(1, 10, math.inf, 0.05), "infinite capacity"),
        (lambda: vc.ghost_sample_bound(1, 10, math.nan, 0.05), "log_growth must be a finite number"),
        (lambda: vc.ghost_sample_bound(1, 10, -1.0, 0.05), "log_growth must be"),
        (lambda: vc.ghost_sample_bound(11, 10, 1.0, 0.05), "k must not exceed m"),
        (lambda: vc.ghost_sample_bound(1, 10, 1.0, 0.0), "delta must lie"),
        (lambda: vc.ghost_sample_bound(1, 10, 1.0, 0.05, 0), "M must be an integer >= 1"),
        (lambda: vc.ghost_sample_bound(1, 10, 1.0, 0.05, None, 1.0), "q must lie"),
        (
            lambda: vc.massart_bound(1, 10, 0.05, Unbounded("RBF kernel").log_growth),
            "infinite capacity \\(RBF",
        ),
        (lambda: vc.sauer(0, 3), "n must be an integer >= 1"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
