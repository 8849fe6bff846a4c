"""PAC learning run for real: intervals, thresholds and boosted stumps; random points on the sphere."""

import math
from fractions import Fraction
from statistics import median

import numpy as np
import pytest
from scipy.stats import beta

from assay.textbook import concepts
from assay.textbook.concepts import boosting_error_bound, weak_edge
from assay.theory import pac, plan
from assay.theory.spaces import Intervals, Stumps
from assay.theory.vc import separate_lifted


def interval_error(rng, m):
    """Learn [0.3, 0.7] from m uniform points by the smallest consistent interval; its error is exact."""
    x = rng.random(m)
    inside = x[(x >= 0.3) & (x <= 0.7)]
    return 0.4 if len(inside) == 0 else (inside.min() - 0.3) + (0.7 - inside.max())


@pytest.mark.mission("LTH-13", "LTH-16")
def test_intervals_are_identified_at_the_theoretical_size_and_not_far_below():
    epsilon, delta = 0.1, 0.1
    m = plan.ghost_rows(epsilon, delta, Intervals().log_growth)
    assert concepts.identifies(interval_error, m, epsilon, delta).confirmed
    refused = concepts.identifies(interval_error, m // 20, epsilon, delta)
    assert refused.refuted
    assert not refused.confirmed
    simulated = concepts.simulated_sample_size(interval_error, epsilon, delta, most=m)
    assert simulated <= m
    # two gaps of an exponential kind: P[sum > 0.1] = (1 + 0.1 m) e^(-0.1 m) nearly, so m is about 39
    exact = next(k for k in range(1, 200) if (1 - 0.1) ** k + k * 0.1 * (1 - 0.1) ** (k - 1) <= delta)
    assert simulated == pytest.approx(exact, rel=0.25)


@pytest.mark.mission("LTH-13", "LTH-16")
def test_runs_are_counted_and_the_size_is_the_first_that_succeeds():
    found = concepts.identifies(lambda rng, m: rng.random() * m, 1, 0.25, 0.5, runs=60, confidence=0.9)
    failed = int(np.sum(np.random.default_rng(0).random(60) > 0.25))
    assert (found.failures, found.runs) == (failed, 60)
    assert found.upper == pytest.approx(beta(failed + 1, 60 - failed).ppf(0.9))
    assert found.lower == pytest.approx(beta(failed, 61 - failed).ppf(0.1))
    assert (found.confirmed, found.refuted) == (False, True)
    for least in (1, 2, 5, 8):
        sizes = concepts.simulated_sample_size(lambda rng, m, k=least: 0.5 * (m < k), 0.1, 0.1, most=8, runs=5)
        assert sizes == least
    # a share delta of the runs may fail, no more
    tenth = concepts.simulated_sample_size(lambda rng, m: rng.random() < 0.3 / m, 0.1, 0.1, most=50, runs=400)
    shares = [np.mean(np.random.default_rng(0).random(400) < 0.3 / m) for m in range(1, 51)]
    assert shares[tenth - 1] <= 0.1 < shares[tenth - 2]


@pytest.mark.mission("LTH-14")
def test_sample_sizes_grow_polynomially():
    size = 10**4

    def rows(inverse_epsilon):
        return pac.realizable_sample_size(1 / inverse_epsilon, 0.05, size)

    assert concepts.growth_exponent(rows, [20, 100, 1000, 10_000]) == pytest.approx(1.0, abs=0.02)
    by_delta = [pac.realizable_sample_size(0.01, 10.0**-j, size) for j in (1, 2, 3, 4)]
    assert np.diff(by_delta) == pytest.approx([math.log(10) / 0.01] * 3, rel=0.01)


@pytest.mark.mission("LTH-15")
def test_the_time_of_erm_over_a_fixed_finite_class_is_linear():
    """Processor time, the fastest of five runs; rows pass through one block of memory, so that caches play no part."""
    cuts, rng = np.linspace(0, 1, 200)[:, None], np.random.default_rng(0)
    blocks = [rng.random(500) for _ in range(160)]

    def erm(m):
        errors = np.zeros(len(cuts), dtype=np.int64)
        for x in blocks[: m // 500]:
            errors += ((x > cuts) != (x > 0.4)).sum(axis=1)
        return float(cuts[errors.argmin(), 0])

    def all_pairs(m):
        return sum(float((x > z[:, None]).sum()) for x in blocks[: m // 500] for z in blocks[: m // 500])

    sizes = [10_000, 20_000, 40_000, 80_000]
    assert median(concepts.time_exponent(erm, sizes) for _ in range(3)) == pytest.approx(1.0, abs=0.2)
    pairs = [concepts.time_exponent(all_pairs, [2_000, 4_000, 8_000], 3) for _ in range(3)]
    assert median(pairs) == pytest.approx(2.0, abs=0.3)  # a quadratic learner is told apart
    assert erm(80_000) == pytest.approx(0.4, abs=0.006)
    assert concepts.growth_exponent(lambda v: 3 * v**2, [1, 10, 100]) == pytest.approx(2.0)


def boost(X, y, rounds):
    """AdaBoost on exact weighted stumps; returns edges, training errors and the voting function."""
    weights, score, edges, errors, members = np.full(len(y), 1 / len(y)), np.zeros(len(y)), [], [], []
    for _ in range(rounds):
        found = Stumps(X.shape[1]).erm(X, y, weights)
        error, edge = weak_edge(y, found.labels, weights)
        if error == 0 or edge <= 1e-12:
            edges.append(edge)
            break
        alpha = 0.5 * math.log((1 - error) / error)
        members.append((alpha, found.hypothesis))
        score += alpha * found.labels
        weights = weights * np.exp(-alpha * y * found.labels)
        weights /= weights.sum()
        edges.append(edge)
        errors.append(np.mean(y * score <= 0))
    return edges, errors, lambda Z: np.sign(sum(a * h(Z) for a, h in members))


@pytest.mark.mission("LTH-57")
def test_the_edge_is_what_is_left_of_one_half():
    labels, said, weights = [1, 1, -1, -1], [1, -1, -1, -1], [0.1, 0.2, 0.3, 0.4]
    assert weak_edge(labels, said, weights) == pytest.approx((0.2, 0.3))
    assert weak_edge(labels, said) == pytest.approx((0.25, 0.25))
    assert weak_edge(labels, said, np.multiply(weights, 7)) == pytest.approx((0.2, 0.3))  # weights need not sum to 1
    assert weak_edge(labels, np.negative(labels)) == (1.0, -0.5)
    for wrong in ([0.0] * 4, [1.0, 1.0, 1.0, -1.0], [1.0] * 3):
        with pytest.raises(ValueError, match="weights >= 0, not all 0"):
            weak_edge(labels, said, wrong)


@pytest.mark.mission("LTH-57", "LTH-58")
def test_stumps_are_weak_learners_for_intervals_and_not_for_parity():
    rng = np.random.default_rng(1)
    X = rng.random((60, 1))
    y = np.where(np.abs(X[:, 0] - 0.5) < 0.2, 1, -1)
    edges, errors, _ = boost(X, y, 30)
    assert min(edges) > 0
    for t in range(1, len(errors) + 1):
        assert errors[t - 1] <= boosting_error_bound(edges[:t])
        assert boosting_error_bound(edges[:t]) == pytest.approx(math.exp(-2 * sum(e * e for e in edges[:t])))
    assert errors[-1] == 0
    gamma = min(edges)
    assert errors[-1] <= math.exp(-2 * gamma**2 * len(errors))
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    parity = np.array([1, -1, -1, 1])
    found = Stumps(2).erm(corners, parity, np.full(4, 0.25))
    assert weak_edge(parity, found.labels).edge == 0.0


@pytest.mark.mission("LTH-56")
def test_boosted_stumps_learn_intervals_strongly():
    grid = np.linspace(0, 1, 2001)[:, None]
    truth = np.where(np.abs(grid[:, 0] - 0.5) < 0.2, 1, -1)

    def run(rng, m):
        X = rng.random((m, 1))
        y = np.where(np.abs(X[:, 0] - 0.5) < 0.2, 1, -1)
        if np.all(y == y[0]):
            return 0.5
        return float(np.mean(boost(X, y, 25)[2](grid) != truth))

    assert concepts.identifies(run, 120, 0.1, 0.1, runs=120).confirmed
    assert concepts.identifies(run, 4, 0.1, 0.1, runs=120).refuted


@pytest.mark.mission("LTH-60")
@pytest.mark.parametrize("d", [3, 10, 60])
def test_mass_near_the_equator(d):
    for c in (0.5, 1.0, 2.0):
        t = c / math.sqrt(d)
        if t >= 1:
            continue
        assert concepts.mass_beyond(t, d) == pytest.approx(beta.sf(t * t, 0.5, (d - 1) / 2), rel=1e-9)
        points = concepts.random_points(40_000, d, np.random.default_rng(d))
        share = np.mean(np.abs(points[:, 0]) >= t)
        assert share == pytest.approx(concepts.mass_beyond(t, d), abs=4 * math.sqrt(0.25 / 40_000))
    for c in (1.0, 2.0, 3.0):
        t = min(1.0, c / math.sqrt(d - 1))
        assert concepts.mass_beyond(t, d, ball=True) <= 2 / c * math.exp(-c * c / 2)
        inside = concepts.random_points(40_000, d, np.random.default_rng(d), ball=True)
        share = np.mean(np.abs(inside[:, 0]) >= t)
        assert share == pytest.approx(concepts.mass_beyond(t, d, ball=True), abs=4 * math.sqrt(0.25 / 40_000))


@pytest.mark.mission("LTH-59")
def test_separable_share_of_random_points():
    rng = np.random.default_rng(2)
    assert float(concepts.separable_share(6, 3)) == 0.5 == float(concepts.separable_share(20, 10))
    for n, d in ((6, 3), (8, 3), (5, 4)):
        expected = float(concepts.separable_share(n, d))
        assert expected == pytest.approx(sum(math.comb(n - 1, k) for k in range(d)) / 2 ** (n - 1))
        hits = 0
        for _ in range(400):
            X, y = concepts.random_points(n, d, rng), rng.choice([-1, 1], n)
            separable = separate_lifted([[Fraction(v) for v in row] for row in X.tolist()], y).separable
            low, high = concepts.best_margin(X, y, rounds=300)
            assert low <= high + 1e-12
            assert separable or low <= 0  # no margin without a separator
            hits += separable
        assert abs(hits / 400 - expected) < 4 * math.sqrt(0.25 / 400)


@pytest.mark.mission("LTH-59")
def test_the_best_margin_shrinks_as_points_are_added():
    rng = np.random.default_rng(3)
    d = 40
    widths = []
    for n in (5, 15, 40):
        brackets = [
            concepts.best_margin(concepts.random_points(n, d, rng), rng.choice([-1, 1], n), 4000) for _ in range(10)
        ]
        assert all(high - low < 0.02 for low, high in brackets)
        widths.append(np.mean([low for low, _ in brackets]))
    assert widths == sorted(widths, reverse=True)
    # two opposite unit vectors with opposite labels: margin exactly 1
    assert concepts.best_margin(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1, -1])) == pytest.approx((1.0, 1.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: concepts.identifies(interval_error, 0, 0.1, 0.1), "m must be"),
        (lambda: concepts.simulated_sample_size(interval_error, 0.01, 0.1, most=3), "fails too often"),
        (lambda: boosting_error_bound([0.7]), "edges must be"),
        (lambda: weak_edge([1], [1], [0.0]), "weights"),
        (lambda: concepts.mass_beyond(1.5, 3), "t must be"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
