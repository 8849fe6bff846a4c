"""Bottleneck, no free lunch, codes and decompositions: identities and enumeration."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from sklearn.ensemble import BaggingRegressor, GradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mutual_info_score
from sklearn.tree import DecisionTreeRegressor

from assay.textbook import concepts, description_length, risk
from assay.theory import bottleneck, pac
from examples import elephant


@pytest.mark.mission("CON-36")
def test_mutual_information():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, 500), rng.integers(0, 3, 500)
    joint = np.zeros((4, 3))
    np.add.at(joint, (a, b), 1 / 500)
    assert bottleneck.mutual_information(joint) == pytest.approx(mutual_info_score(a, b))
    p = rng.dirichlet(np.ones(5))
    assert bottleneck.mutual_information(np.diag(p)) == pytest.approx(bottleneck.entropy(p))  # I(X;X) = H(X)
    assert bottleneck.mutual_information(np.outer(p, p)) == pytest.approx(0.0, abs=1e-12)
    assert bottleneck.mutual_information(np.eye(2) / 2) / math.log(2) == pytest.approx(1.0)  # one bit


@pytest.mark.mission("CON-37")
@pytest.mark.parametrize("beta", [0.05, 0.2, 0.5, 0.9])
def test_the_bottleneck_never_falls_and_keeps_the_data_processing_inequality(beta):
    joint = np.random.default_rng(1).dirichlet(np.ones(20)).reshape(5, 4)
    found = bottleneck.information_bottleneck(joint, beta)
    assert found.converged
    assert np.all(np.diff(found.history) >= -1e-12)
    total = bottleneck.mutual_information(joint)
    assert found.relevance <= min(found.compression, total) + 1e-12
    assert found.objective == pytest.approx(found.relevance - beta * found.compression)
    assert np.allclose(found.encoder.sum(axis=1), 1)
    # no small change of the encoder is better: it is a stationary point
    rng = np.random.default_rng(2)
    for _ in range(50):
        other = 0.999 * found.encoder + 0.001 * rng.dirichlet(np.ones(5), 5)
        assert bottleneck._objective(other, joint, beta) <= found.objective + 1e-9


@pytest.mark.mission("CON-37")
def test_the_ends_of_the_information_curve():
    joint = np.random.default_rng(3).dirichlet(np.ones(12)).reshape(4, 3)
    total = bottleneck.mutual_information(joint)
    for beta in (1.0, 1.5):
        found = bottleneck.information_bottleneck(joint, beta, max_iter=20_000)
        assert found.objective == pytest.approx(0.0, abs=1e-6)
        assert found.compression == pytest.approx(0.0, abs=1e-4)
    assert bottleneck.information_bottleneck(joint, 0.002).relevance == pytest.approx(total, rel=1e-2)
    curve = bottleneck.information_curve(joint)
    relevance = [point.relevance for point in curve]
    assert all(point.relevance <= point.compression + 1e-9 for point in curve)
    assert relevance[0] < 1e-3 < relevance[-1] <= total + 1e-12
    assert all(b >= a - 1e-6 for a, b in itertools.pairwise(relevance))


def test_a_two_cluster_bottleneck_matches_a_grid_search():
    joint = np.array([[0.3, 0.05], [0.25, 0.1], [0.05, 0.25]])
    grid = np.linspace(0, 1, 21)
    best = max(
        bottleneck._objective(np.array([[a, 1 - a], [b, 1 - b], [c, 1 - c]]), joint, 0.1)
        for a, b, c in itertools.product(grid, repeat=3)
    )
    found = max(
        (bottleneck.information_bottleneck(joint, 0.1, clusters=2, seed=s) for s in range(5)),
        key=lambda f: f.objective,
    )
    assert found.objective >= best - 1e-9


def majority(train, labels, n):
    return np.full(n, float(2 * sum(labels) >= len(labels)))


def nearest(train, labels, n):
    return np.array([labels[int(np.argmin([abs(x - t) for t in train]))] for x in range(n)], dtype=float)


def farthest_from_it(train, labels, n):
    return 1 - nearest(train, labels, n)


def constant(train, labels, n):
    return np.ones(n)


def random_guess(train, labels, n):
    return np.full(n, 0.3)


@pytest.mark.mission("CON-17", "CON-18")
@pytest.mark.parametrize("learner", [majority, nearest, farthest_from_it, constant, random_guess])
def test_no_free_lunch_by_enumeration(learner):
    weight = np.random.default_rng(4).dirichlet(np.ones(7))
    for train in ([0], [1, 4], [0, 2, 3, 6]):
        outside = 1 - weight[train].sum()
        assert concepts.total_error(learner, train, 7, weight) == pytest.approx(2**6 * outside)


@pytest.mark.mission("CON-17")
def test_off_training_error_by_hand():
    target = (0, 1, 1, 0)
    assert concepts.off_training_error(constant, [1], target) == pytest.approx(2 / 4)
    assert concepts.off_training_error(random_guess, [1], target) == pytest.approx((0.3 + 0.7 + 0.3) / 4)
    assert concepts.off_training_error(constant, [1], target, [0.1, 0.2, 0.3, 0.4]) == pytest.approx(0.5)


@pytest.mark.mission("CON-19")
def test_with_smooth_targets_the_nearest_neighbour_wins():
    def smooth(target):
        return 0.25 ** sum(a != b for a, b in itertools.pairwise(target))

    good = concepts.total_error(nearest, [1, 5], 8, prior=smooth)
    bad = concepts.total_error(farthest_from_it, [1, 5], 8, prior=smooth)
    assert good < bad / 2
    even = [concepts.total_error(f, [1, 5], 8, prior=lambda t: 1.0) for f in (nearest, farthest_from_it)]
    assert even[0] == pytest.approx(even[1])


BOX = description_length.ModelCode(low=(0.0, -1.0, 0.0), high=(1.0, 1.0, 8.0), n_classes=3)


def random_tree(rng, depth=3):
    if depth == 0 or rng.random() < 0.3:
        return description_length.Leaf(int(rng.integers(3)))
    feature, j = int(rng.integers(3)), int(rng.integers(1, 6))
    at = BOX.point(feature, j, 2 * int(rng.integers(2 ** (j - 1))) + 1)
    return description_length.Split(feature, at, random_tree(rng, depth - 1), random_tree(rng, depth - 1))


def random_list(rng):
    rules = []
    for _ in range(rng.integers(0, 4)):
        conditions = tuple(
            (f, BOX.point(f, 3, 5), bool(rng.integers(2))) for f in rng.integers(0, 3, rng.integers(0, 3)).tolist()
        )
        rules.append(description_length.Rule(conditions, int(rng.integers(3))))
    return description_length.RuleList(tuple(rules), int(rng.integers(3)))


def test_codes_of_trees_and_rule_lists_can_be_decoded_and_are_prefix_free():
    rng = np.random.default_rng(5)
    models = [random_tree(rng) for _ in range(200)] + [random_list(rng) for _ in range(200)]
    words = {}
    for model in models:
        bits = BOX.encode(model)
        assert BOX.decode(bits) == model
        assert BOX.log_prior(model) == pytest.approx(-len(bits) * math.log(2))
        words[bits] = model
        for broken in (bits + "0", bits[:-1]):
            with pytest.raises(ValueError, match=r"follow the end|ends too early"):
                BOX.decode(broken)
    listed = sorted(words)
    assert not any(b.startswith(a) for a, b in itertools.pairwise(listed))
    assert sum(Fraction(1, 2 ** len(word)) for word in words) <= 1  # Kraft


def test_every_bit_string_is_a_beginning_of_at_most_one_tree():
    """Kraft's sum over all codewords of up to 14 bits, by decoding every string, is at most 1."""
    tiny = description_length.ModelCode((0.0,), (1.0,), 2)
    total = Fraction(0)
    for length in range(1, 15):
        for number in range(2**length):
            try:
                tiny.decode(format(number, f"0{length}b"))
            except ValueError:
                continue
            total += Fraction(1, 2**length)
    assert Fraction(1, 2) < total <= 1


def test_truncated_binary_codes_are_complete():
    for n in range(1, 40):
        words = [description_length.fixed(i, n) for i in range(n)]
        assert [description_length.Reader(word).fixed(n) for word in words] == list(range(n))
        assert sum(Fraction(1, 2 ** len(word)) for word in words) == 1


def test_shortest_threshold_between_two_values():
    assert BOX.shortest(0, 0.3, 0.6) == 0.5
    assert BOX.shortest(0, 0.5, 0.6) == 0.5
    assert BOX.shortest(0, 0.51, 0.74) == 0.625
    assert BOX.shortest(2, 5.9, 6.5) == 6.0
    rng = np.random.default_rng(6)
    for _ in range(300):
        left, right = sorted(rng.random(2))
        t = BOX.shortest(0, left, right)
        assert left <= t < right
        bits = len(BOX._threshold(0, t))
        shorter = [m / 2**j for j in range(1, (bits + 1) // 2) for m in range(1, 2**j, 2)]
        assert not any(left <= u < right for u in shorter)
    with pytest.raises(ValueError, match="no point of the box"):
        BOX.shortest(0, 1.5, 2.0)


def test_rounding_a_tree_changes_no_training_label():
    rng = np.random.default_rng(7)
    X = rng.random((60, 3)) * [1, 2, 8] - [0, 1, 0]
    tree = description_length.Split(
        0,
        0.437,
        description_length.Split(2, 3.21, description_length.Leaf(0), description_length.Leaf(1)),
        description_length.Leaf(2),
    )
    short = BOX.rounded(tree, X)
    assert np.array_equal(description_length.predict(short, X), description_length.predict(tree, X))
    with pytest.raises(ValueError, match="not a dyadic point"):
        BOX.encode(tree)
    bound = pac.occam_bound(0, 600, 0.05, BOX.log_prior(short))
    assert bound < 0.1


@pytest.mark.parametrize(("d", "steps"), [(1, 1), (4, 2), (3, 5)])
def test_linear_code_lists_every_weight_vector_once(d, steps):
    linear = description_length.LinearCode(d, steps)
    words = {}
    for weights in itertools.product(range(-steps, steps + 1), repeat=d):
        bits = linear.encode(weights)
        assert linear.decode(bits) == weights
        words[bits] = weights
    assert len(words) == (2 * steps + 1) ** d
    assert sum(Fraction(1, 2 ** len(word)) for word in words) == 1
    listed = sorted(words)
    assert not any(b.startswith(a) for a, b in itertools.pairwise(listed))
    with pytest.raises(ValueError, match="weights must be"):
        linear.encode((steps + 1,) * d)


@pytest.mark.mission("CON-15")
def test_occam_takes_the_shortest_consistent_rule_if_it_beats_the_table():
    rng = np.random.default_rng(8)
    X = rng.random((64, 3)) * [1, 2, 8] - [0, 1, 0]
    y = (X[:, 0] > 0.5).astype(int)
    candidates = [
        description_length.Split(f, BOX.point(f, j, m), description_length.Leaf(a), description_length.Leaf(b))
        for f in range(3)
        for j in (1, 2, 3)
        for m in range(1, 2**j, 2)
        for a, b in itertools.permutations(range(3), 2)
    ]
    candidates += [
        description_length.Split(
            0,
            0.5,
            description_length.Leaf(0),
            description_length.Split(1, 0.0, description_length.Leaf(1), description_length.Leaf(1)),
        )
    ]
    fitting = [tree for tree in candidates if np.array_equal(description_length.predict(tree, X), y)]
    assert len(fitting) >= 2
    read = {"length": lambda tree: len(BOX.encode(tree)), "predict": description_length.predict, "n_labels": 3}
    found = description_length.shortest_rule(candidates, X, y, **read)
    assert found.rule == description_length.Split(0, 0.5, description_length.Leaf(0), description_length.Leaf(1))
    assert found.errors == 0
    assert found.bits == min(len(BOX.encode(tree)) for tree in fitting)
    assert found.table_bits == description_length.table_bits(64, 3)
    assert found.accepted
    few = description_length.shortest_rule(candidates, X[:5], y[:5], **read)  # five labels are not worth a rule
    assert few.bits > few.table_bits
    assert not few.accepted
    flipped = description_length.shortest_rule(candidates, X, 1 - y, **read)
    assert flipped.rule == description_length.Split(0, 0.5, description_length.Leaf(1), description_length.Leaf(0))
    with pytest.raises(ValueError, match="no rule"):
        description_length.shortest_rule([], X, y, **read)
    assert description_length.table_bits(64, 2) == 64
    assert (
        description_length.table_bits(10, 3),
        description_length.table_bits(5, 4),
        description_length.table_bits(7, 5),
    ) == (16, 10, 17)  # n log2 K, up
    two = description_length.shortest_rule(candidates, X, y, length=read["length"], predict=description_length.predict)
    assert two.table_bits == 64  # two labels occur


@pytest.mark.mission("CON-38")
@pytest.mark.parametrize("p", [0.05, 0.3, 0.5])
def test_prediction_is_compression(p):
    rng = np.random.default_rng(9)
    labels = (rng.random(300) < p).astype(int).tolist()
    predictor = description_length.laplace(2)
    length = description_length.code_length(labels, predictor)
    bits = description_length.arithmetic_encode(labels, predictor)
    assert description_length.arithmetic_decode(bits, len(labels), predictor) == labels
    assert length <= len(bits) <= length + 2
    share = sum(labels) / 300
    entropy = -sum(q * math.log2(q) for q in (share, 1 - share) if q)
    assert entropy * 300 <= length <= entropy * 300 + math.log2(301)
    # Laplace's rule gives 1/((n+1) C(n,k)) to every sequence with k ones
    assert length == pytest.approx(math.log2(301 * math.comb(300, sum(labels))))


def curve(rng, n=40, noise=0.3):
    X = rng.uniform(-1, 1, (n, 1))
    return X, np.sin(3 * X[:, 0]) + noise * rng.normal(size=n)


@pytest.mark.mission("CON-51")
def test_bias_variance_identity():
    X = np.linspace(-0.9, 0.9, 30)[:, None]
    truth = np.sin(3 * X[:, 0])
    for learner in (LinearRegression(), DecisionTreeRegressor(max_depth=4, random_state=0)):
        parts = risk.bias_variance(learner, curve, X, truth, noise=0.09, runs=300)
        assert abs(parts.total - parts.error) <= 4 * parts.standard_error
    simple = risk.bias_variance(LinearRegression(), curve, X, truth, noise=0.09, runs=1000)
    exact = [
        (np.polyval(np.polyfit(x[:, 0], y, 1), X[:, 0]))
        for x, y in (curve(np.random.default_rng(i)) for i in range(3000))
    ]
    assert simple.bias2 == pytest.approx(((np.mean(exact, axis=0) - truth) ** 2).mean(), rel=0.15)
    assert simple.variance == pytest.approx(np.var(exact, axis=0).mean(), rel=0.15)


@pytest.mark.mission("CON-51")
def test_boosting_lowers_bias_and_bagging_lowers_variance():
    X = np.linspace(-0.9, 0.9, 20)[:, None]
    truth = np.sin(3 * X[:, 0])

    def parts(learner):
        return risk.bias_variance(learner, curve, X, truth, noise=0.09, runs=40)

    deep, bagged = (
        parts(DecisionTreeRegressor(random_state=0)),
        parts(BaggingRegressor(n_estimators=15, random_state=0)),
    )
    assert bagged.variance < 0.7 * deep.variance
    stump = parts(DecisionTreeRegressor(max_depth=1, random_state=0))
    boosted = parts(GradientBoostingRegressor(n_estimators=60, max_depth=1, random_state=0))
    assert boosted.bias2 < 0.5 * stump.bias2


def test_error_decomposition_adds_up():
    parts = risk.error_decomposition(0.05, 0.08, 0.12, 0.13)
    assert parts == pytest.approx((0.05, 0.03, 0.04, 0.01))
    assert sum(parts) == pytest.approx(0.13)
    with pytest.raises(ValueError, match="best must not be below"):
        risk.error_decomposition(0.1, 0.05, 0.2, 0.2)


@pytest.mark.mission("CON-54")
def test_the_elephant_closes_and_its_parameters_come_back_from_the_curve():
    assert elephant.PARAMETERS == (50 - 30j, 18 + 8j, 12 - 10j, -14 - 60j)
    t = np.arange(64) * 2 * np.pi / 64
    for c in elephant.coefficients():
        assert elephant.curve(c, [0.0]) == pytest.approx(elephant.curve(c, [2 * np.pi]))
        spectrum = np.fft.rfft(elephant.curve(c, t))[:6] / 32
        assert spectrum.real[1:] == pytest.approx(c.real[1:], abs=1e-9)
        assert -spectrum.imag[1:] == pytest.approx(c.imag[1:], abs=1e-9)
    assert elephant.recovered() == pytest.approx(elephant.PARAMETERS)
    across, up = elephant.outline()
    assert (across[0], up[0]) == pytest.approx((across[-1], up[-1]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bottleneck.mutual_information([[0.5, 0.6]]), "add up to 1"),
        (lambda: bottleneck.information_bottleneck([[0.5, 0.5]], 0.0), "beta must be"),
        (lambda: bottleneck.information_bottleneck([[1.0, 0.0], [0.0, 0.0]], 0.5), "positive probability"),
        (lambda: list(concepts.targets(17)), "too many to list"),
        (lambda: concepts.off_training_error(lambda a, b, n: [2.0] * n, [0], (0, 1)), "probabilities"),
        (lambda: description_length.ModelCode((0.0,), (0.0,), 2), "low < high"),
        (lambda: BOX.decode("2"), "characters 0 and 1"),
        (lambda: description_length.arithmetic_encode([1], lambda past: [Fraction(1), Fraction(0)]), "probability 0"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
