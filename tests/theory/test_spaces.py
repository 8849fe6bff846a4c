"""Hypothesis spaces against brute force: grids of hypotheses, linear programmes, all subsets, all orders."""

import itertools
import json
import math
import time

import numpy as np
import pytest
from scipy.optimize import linprog

from assay.theory import spaces, vc
from assay.theory.spaces import (
    Balls,
    Boxes,
    Finite,
    FunctionSpace,
    HalfSpaces,
    Intervals,
    Linear,
    LinearFunctions,
    MulticlassHalfSpaces,
    PolynomialClassifiers,
    SignedThresholds,
    Stumps,
    Thresholds,
    Trees,
    Unbounded,
    UnionsOfIntervals,
    Votes,
)
from assay.theory.vc import separate

LINE = [Thresholds(), SignedThresholds(), Intervals(), UnionsOfIntervals(2), UnionsOfIntervals(3)]
PLANE = [Boxes(2), HalfSpaces(2), PolynomialClassifiers(2, 2), Balls(2), Stumps(2)]


def as_set(patterns):
    return {tuple(int(v) for v in row) for row in patterns}


def all_labellings(m):
    return [np.array(row) for row in itertools.product([-1, 1], repeat=m)]


def on_the_line(space, x):
    """All patterns of a class on the line, by trying borders between and beyond the points."""
    cuts = np.concatenate(([x.min() - 1], (np.unique(x)[1:] + np.unique(x)[:-1]) / 2, [x.max() + 1]))
    if isinstance(space, Thresholds | SignedThresholds):
        found = {tuple(np.where(x > t, 1, -1)) for t in cuts}
        if isinstance(space, SignedThresholds):
            found |= {tuple(np.where(x > t, -1, 1)) for t in cuts}
        return {tuple(int(v) for v in row) for row in found}
    found = set()
    for borders in itertools.combinations_with_replacement(cuts, 2 * space.k):
        inside = np.zeros(len(x), dtype=bool)
        for a, b in zip(borders[::2], borders[1::2]):
            inside |= (x > a) & (x < b)
        found.add(tuple(int(v) for v in np.where(inside, 1, -1)))
    return found


def by_linear_programme(lifted, labels, forced=()):
    """Whether some w has labels * (lifted @ w) >= 1, with w >= 1 on the forced coordinates."""
    A = -(labels[:, None] * lifted)
    limits = [(1, None) if j in forced else (None, None) for j in range(lifted.shape[1])]
    return linprog(np.zeros(lifted.shape[1]), A_ub=A, b_ub=-np.ones(len(A)), bounds=limits).status == 0


def lift(space, X):
    ones = np.ones((len(X), 1))
    if isinstance(space, HalfSpaces):
        return np.hstack([X, ones]) if space.bias else X
    if isinstance(space, Balls):
        return np.hstack([2 * X, ones, -(X**2).sum(axis=1, keepdims=True)])
    columns = [
        np.prod(X[:, list(c)], axis=1, initial=1.0)
        for degree in range(space.degree + 1)
        for c in itertools.combinations_with_replacement(range(space.d), degree)
    ]
    return np.column_stack(columns)


@pytest.mark.mission("LTH-23", "LTH-24", "LTH-25")
@pytest.mark.parametrize("space", LINE, ids=repr)
def test_dichotomies_on_the_line(space):
    rng = np.random.default_rng(0)
    for m in (1, 2, 3, 5, 6):
        for x in (rng.normal(size=m), rng.integers(0, 3, m).astype(float)):  # the second with equal points
            listed = space.dichotomies(x)
            assert as_set(listed) == on_the_line(space, x)
            assert len(as_set(listed)) == len(listed) <= 2**m
            if len(np.unique(x)) == m:
                assert len(listed) == space.growth(m)


@pytest.mark.mission("LTH-25", "LTH-31")
@pytest.mark.parametrize(
    "space",
    [HalfSpaces(1), HalfSpaces(2), HalfSpaces(3), HalfSpaces(2, bias=False), Balls(1), Balls(2)],
    ids=repr,
)
def test_dichotomies_against_linear_programmes(space):
    rng = np.random.default_rng(1)
    for m in (2, 4, 6):
        X = rng.normal(size=(m, space.d))
        forced = (space.d + 1,) if isinstance(space, Balls) else ()
        expected = {tuple(y) for y in all_labellings(m) if by_linear_programme(lift(space, X), y, forced)}
        assert as_set(space.dichotomies(X)) == expected
        if space.exact_growth:
            assert len(expected) == space.growth(m)


@pytest.mark.mission("LTH-23", "LTH-24", "LTH-25", "LTH-26", "LTH-28", "LTH-29", "LTH-30", "LTH-31")
def test_no_class_makes_more_patterns_than_there_are():
    assert [Finite(100).growth(m) for m in (1, 3, 6, 7, 9)] == [2, 8, 64, 100, 100]
    assert [HalfSpaces(2, bias=False).growth(m) for m in (1, 2, 3, 6)] == [2, 4, 7, 1 + 6 + 15]
    assert [HalfSpaces(3).growth(m) for m in (3, 4, 5, 6)] == [8, 16, 30, 2 * (1 + 5 + 10 + 10)]


@pytest.mark.mission("LTH-25")
@pytest.mark.parametrize("space", [HalfSpaces(2), PolynomialClassifiers(1, 2), Balls(2)], ids=repr)
def test_dichotomies_of_points_in_special_position(space):
    """Collinear, cocircular and equal points, on an integer grid where floats are exact."""
    cases = [
        [[0, 0], [1, 1], [2, 2], [3, 3]],
        [[0, 0], [0, 1], [1, 0], [1, 1]],
        [[0, 0], [2, 0], [1, 0], [1, 2]],
    ]
    for case in cases:
        X = np.array(case, dtype=float)[:, : space.d]
        forced = (space.d + 1,) if isinstance(space, Balls) else ()
        expected = {tuple(y) for y in all_labellings(4) if by_linear_programme(lift(space, X), y, forced)}
        assert as_set(space.dichotomies(X)) == expected
        for y in all_labellings(4):
            assert space.realizes(X, y) == (tuple(y) in expected)


@pytest.mark.mission("LTH-23")
@pytest.mark.parametrize("d", [1, 2, 3])
def test_boxes_cut_out_a_set_iff_its_bounding_box_holds_no_other_point(d):
    rng = np.random.default_rng(2)
    X = rng.integers(0, 4, (7, d)).astype(float)
    expected = set()
    for y in all_labellings(7):
        inside = y == 1
        if inside.any():
            low, high = X[inside].min(axis=0), X[inside].max(axis=0)
            covered = ((low <= X) & (high >= X)).all(axis=1)
            if not np.array_equal(covered, inside):
                continue
        expected.add(tuple(y))
    assert as_set(Boxes(d).dichotomies(X)) == expected
    assert len(expected) <= Boxes(d).growth(7)


@pytest.mark.mission("LTH-27")
@pytest.mark.parametrize("d", [1, 2])
def test_growth_of_stumps_is_attained_by_some_orders(d):
    for m in (1, 2, 3, 4, 5):
        orders = list(itertools.permutations(range(m)))
        pairs = itertools.product(orders, repeat=d - 1)
        most = max(len(Stumps(d).dichotomies(np.column_stack([np.arange(m), *rest]).astype(float))) for rest in pairs)
        assert most == Stumps(d).growth(m)
    assert Stumps(d).log_growth(50) == pytest.approx(math.log(2 + 2 * d * 49), abs=1e-8)


@pytest.mark.mission("LTH-28")
def test_dimension_of_stumps():
    assert [Stumps(d).vc_dimension for d in (1, 2, 3, 5, 10, 28)] == [2, 3, 4, 5, 6, 7]
    assert any(  # three features shatter some four points
        Stumps(3).shatters(np.column_stack([np.argsort(o) for o in trio]).astype(float))
        for trio in itertools.combinations(itertools.permutations(range(4)), 3)
        if trio[0] == (0, 1, 2, 3)
    )


@pytest.mark.mission("LTH-27", "LTH-32")
@pytest.mark.parametrize("space", [*LINE, *PLANE, Boxes(3), HalfSpaces(4), Balls(3)], ids=repr)
def test_growth_is_monotone_below_powers_of_two_and_below_sauer(space):
    values = [space.growth(m) for m in range(1, 25)]
    assert values == sorted(values)
    for m, value in enumerate(values, 1):
        assert value <= 2**m
        assert value <= vc.sauer(m, space.vc_dimension)
        assert (value == 2**m) == (m <= space.vc_dimension) or not space.exact_growth
        assert space.log_growth(m) >= math.log(value)


def test_log_growth_follows_growth_for_large_samples():
    for space in [
        *LINE,
        *PLANE,
        Trees(5, 4, 3),
        Votes(Stumps(3), 4),
        MulticlassHalfSpaces(3, 4),
        FunctionSpace(6),
    ]:
        for n in (100, 5000):
            assert 0 < space.log_growth(n) - math.log(space._growth(n)) < 1e-6, space
    assert HalfSpaces(3000).log_growth(10**6) < 10**6 * math.log(2)


@pytest.mark.mission("LTH-26", "LTH-28", "LTH-29")
def test_worked_example_intervals():
    space = Intervals()
    assert space.vc_dimension == 2
    assert [space.growth(m) for m in range(1, 7)] == [2, 4, 7, 11, 16, 22] == [vc.sauer(m, 2) for m in range(1, 7)]
    x = np.array([0.5, 1.5])
    assert space.shatters(x)
    seen = {tuple(np.where((x >= a) & (x <= b), 1, -1)) for a, b in [(0, 1), (0, 2), (1, 2), (2, 3)]}
    assert len(seen) == 4
    assert not space.realizes([1.0, 2.0, 3.0], [1, -1, 1])
    assert as_set(all_labellings(3)) - as_set(space.dichotomies([1.0, 2.0, 3.0])) == {(1, -1, 1)}
    assert len(space.largest_shattered(np.arange(8.0))) == 2
    assert space.largest_shattered(x) == (0, 1)
    assert [UnionsOfIntervals(k).vc_dimension for k in (1, 2, 5)] == [2, 4, 10]
    assert space.largest_shattered([3.0, 3.0, 4.0]) == (0, 2)
    assert space.dichotomies([-0.0, 0.0]).tolist() == [[-1, -1], [1, 1]]  # one point


@pytest.mark.mission("LTH-24", "LTH-26", "LTH-28", "LTH-30")
def test_worked_example_half_planes():
    space = HalfSpaces(2)
    assert space.vc_dimension == 3
    assert [space.growth(m) for m in range(2, 7)] == [m * m - m + 2 for m in range(2, 7)]
    assert len(space.dichotomies([[0, 0], [1, 1]])) == 4
    assert len(space.dichotomies([[0, 0], [1, 0], [0, 1]])) == 8
    assert space.shatters([[0, 0], [1, 0], [0, 1]])
    assert not space.shatters([[0, 0], [1, 1], [2, 2]])
    assert len(space.dichotomies([[0, 0], [1, 0], [0, 1], [1, 1]])) == 14
    assert len(space.dichotomies([[0, 0], [4, 0], [0, 4], [1, 1]])) == 14
    assert len(space.largest_shattered([[0, 0], [4, 0], [0, 4], [1, 1], [3, 2]])) == 3
    assert space.largest_shattered([[0, 0], [1, 1], [2, 2], [5, 0]]) == (0, 1, 3)
    assert len(HalfSpaces(1).dichotomies([1.0, 2.0, 3.0])) == 6  # points of the line may be a flat list
    assert MulticlassHalfSpaces(2, 2).growth(3) == HalfSpaces(2).growth(3) == 8


@pytest.mark.mission("LTH-30", "LTH-31")
def test_cover_count_of_twelve_points_in_the_plane():
    X = np.random.default_rng(3).normal(size=(12, 2))
    assert len(HalfSpaces(2).dichotomies(X)) == 2 * (1 + 11 + 55) == vc.cover(12, 3)


@pytest.mark.mission("LTH-26", "LTH-31")
def test_sixteen_points_in_five_dimensions_within_a_minute():
    X = np.random.default_rng(4).normal(size=(16, 5))
    start = time.process_time()
    patterns = HalfSpaces(5).dichotomies(X)
    assert time.process_time() - start < 60
    assert len(patterns) == 2 * sum(math.comb(15, i) for i in range(6)) == 9888
    rng = np.random.default_rng(5)
    realised = as_set(patterns)
    for y in rng.choice([-1, 1], (30, 16)):  # a sample of the 65,536 labellings, each with its own proof
        assert separate(X, y).separable == (tuple(int(v) for v in y) in realised)
    for y in patterns[:: len(patterns) // 20]:
        assert separate(X, y).separable


@pytest.mark.mission("LTH-28")
@pytest.mark.parametrize(
    ("space", "dimension", "points"),
    [
        (Thresholds(), 1, np.arange(5.0)),
        (SignedThresholds(), 2, np.arange(5.0)),
        (UnionsOfIntervals(2), 4, np.arange(7.0)),
        (Boxes(2), 4, [[0, 1], [1, 0], [2, 1], [1, 2], [1, 1], [3, 3]]),
        (HalfSpaces(3), 4, [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1], [2, 3, 5]]),
        (Balls(2), 3, [[0, 0], [1, 0], [0, 1], [2, 2], [3, 1]]),
        (PolynomialClassifiers(1, 2), 3, np.arange(5.0)),
        (Stumps(2), 3, [[0, 1], [1, 2], [2, 0], [3, 3]]),
    ],
    ids=repr,
)
def test_dimension_by_search(space, dimension, points):
    assert space.vc_dimension == dimension
    subset = space.largest_shattered(points)
    assert len(subset) == dimension
    chosen = np.asarray(points, dtype=float)[list(subset)]
    assert len(space.dichotomies(chosen)) == 2**dimension


@pytest.mark.mission("LTH-28")
def test_dimension_of_finite_sets_is_at_most_the_logarithm():
    for size in (1, 2, 3, 7, 8, 1000):
        assert Finite(size).vc_dimension <= math.log2(size)
    hypotheses = [lambda X, t=t: np.where(X[:, 0] > t, 1, -1) for t in (0.5, 1.5, 2.5, 3.5)]
    space = Finite(hypotheses)
    assert len(space) == 4
    assert len(space.largest_shattered(np.arange(5.0)[:, None])) == 1 <= space.vc_dimension


def test_equal_points_are_never_shattered():
    assert not HalfSpaces(2).shatters([[1.0, 1.0], [1.0, 1.0]])
    assert not Intervals().shatters([1.0, 1.0])
    assert len(HalfSpaces(2).dichotomies([[1.0, 1.0], [1.0, 1.0]])) == 2


def count_tree_patterns(X, leaves):
    """All binary labellings by trees with at most that many leaves, by recursion."""
    n, d = X.shape

    def patterns(rows, budget):
        found = {(1,) * len(rows), (-1,) * len(rows)}
        if budget == 1 or len(rows) < 2:
            return found
        for j in range(d):
            for t in np.unique(X[rows, j])[:-1]:
                left = [i for i, r in enumerate(rows) if X[r, j] <= t]
                right = [i for i, r in enumerate(rows) if X[r, j] > t]
                for k in range(1, budget):
                    for a in patterns([rows[i] for i in left], k):
                        for b in patterns([rows[i] for i in right], budget - k):
                            label = dict(zip(left, a)) | dict(zip(right, b))
                            found.add(tuple(label[i] for i in range(len(rows))))
        return found

    return patterns(list(range(n)), leaves)


@pytest.mark.mission("LTH-27")
@pytest.mark.parametrize(("d", "leaves", "n"), [(1, 2, 6), (2, 2, 5), (1, 3, 6), (2, 3, 5), (2, 4, 5)])
def test_growth_of_trees_is_an_upper_bound(d, leaves, n):
    X = np.random.default_rng(6).normal(size=(n, d))
    assert len(count_tree_patterns(X, leaves)) <= Trees(d, leaves)._growth(n)
    assert Trees(d, 1)._growth(n) == 2


def test_growth_of_votes_is_an_upper_bound():
    """Weighted votes of two stumps on the line, with ties counted as -1."""
    x = np.arange(5.0)
    base = SignedThresholds().dichotomies(x)
    found = set()
    for a, b in itertools.product(base, repeat=2):
        for weights in itertools.product((-2, -1, 0, 1, 2), repeat=2):
            found.add(tuple(weights[0] * a + weights[1] * b > 0))
    assert len(found) <= Votes(SignedThresholds(), 2)._growth(5)


def test_growth_of_multiclass_half_spaces_is_an_upper_bound():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(4, 1))
    found = {
        tuple(np.argmax(X @ w + b, axis=1)) for w, b in zip(rng.normal(size=(4000, 1, 3)), rng.normal(size=(4000, 3)))
    }
    assert 3 < len(found) <= MulticlassHalfSpaces(1, 3).growth(4)


@pytest.mark.mission("LTH-27")
def test_growth_of_counted_spaces_is_an_upper_bound():
    """Patterns found by drawing many members of each space at random never exceed its count."""
    rng = np.random.default_rng(9)
    X, draws = rng.normal(size=(5, 2)), 3000
    w, b = rng.normal(size=(draws, 3, 2)), rng.normal(size=(draws, 3))
    sides = np.einsum("rkd,md->rkm", w, X) + b[:, :, None] > 0
    places, labels = rng.normal(size=(draws, 3, 2)), rng.integers(0, 3, (draws, 3))
    nearest = np.argmin(((X[None, :, None, :] - places[:, None, :, :]) ** 2).sum(axis=3), axis=2)
    cuts = X[rng.integers(0, 5, (draws, 3, 2)), [0, 1]][:, :, 0]
    column, above = rng.integers(0, 2, (draws, 3)), rng.random((draws, 3)) < 0.5
    tests = (X.T[column] > cuts[:, :, None]) ^ above[:, :, None]
    first = np.argmax(np.concatenate([tests[:, :2], np.ones((draws, 1, 5), dtype=bool)], axis=1), axis=1)
    top, low, high = tests[:, 0], tests[:, 1], tests[:, 2]
    hidden = np.where(sides[:, :2], 1.0, 0.0)
    out = np.einsum("rk,rkm->rm", w[:, 2], hidden) + b[:, 2:3] > 0
    found = {
        spaces.Intersections(2, 3): sides.all(axis=1),
        spaces.StumpConjunctions(2, 2): tests[:, :2].all(axis=1),
        spaces.DecisionLists(2, 2, 3): np.take_along_axis(labels, first, axis=1),
        spaces.DepthTrees(2, 2): np.where(top, low, high),
        spaces.Prototypes(2, 3, 3): np.take_along_axis(labels, nearest, axis=1),
        spaces.ThresholdNets((2, 2, 1)): out,
        spaces.SparseHalfSpaces(2, 1): tests[:, 0],
    }
    for space, patterns in found.items():
        count = len({tuple(row) for row in patterns.astype(int)})
        assert 5 < count <= space._growth(5), space
        assert space.growth(30) <= space._growth(30)
        assert space.log_growth(1000) >= math.log(space._growth(1000))
        assert space.growth(space.vc_dimension + 1) < 2 ** (space.vc_dimension + 1) or space.descriptor()["classes"] > 2


def test_counts_of_products_by_hand():
    assert spaces.SparseHalfSpaces(10, 2)._growth(7) == 45 * vc.cover(7, 3)
    assert spaces.Intersections(2, 3)._growth(7) == vc.cover(7, 3) ** 3
    assert spaces.StumpConjunctions(4, 3)._growth(7) == (2 * 4 * 6 + 2) ** 3
    assert spaces.DecisionLists(4, 3, 5)._growth(7) == (2 * 4 * 6 + 2) ** 3 * 5**4
    assert spaces.DepthTrees(4, 2, 3)._growth(7) == (4 * 6 + 1) ** 3 * 3**4
    assert spaces.Prototypes(2, 4, 3)._growth(7) == vc.cover(7, 3) ** 6 * 3**4
    assert spaces.ThresholdNets((3, 2, 1))._growth(7) == vc.cover(7, 4) ** 2 * vc.cover(7, 3)
    assert spaces.ThresholdNets((3, 2, 1)).descriptor() == {"class": "threshold-nets", "layers": [3, 2, 1]}


@pytest.mark.mission("CON-28")
@pytest.mark.parametrize("space", [*LINE, *PLANE, HalfSpaces(1), Boxes(1), Boxes(3)], ids=repr)
def test_erm_is_the_best_dichotomy(space):
    rng = np.random.default_rng(8)
    d = getattr(space, "d", 1)
    for m in (1, 4, 8):
        X = rng.integers(0, 5, (m, d)) + rng.random((m, d)) * (rng.random() > 0.5)
        y, weight = rng.choice([-1, 1], m), rng.random(m)
        found = space.erm(X, y, weight)
        errors = ((space.dichotomies(X) != y) * weight).sum(axis=1)
        assert found.errors == pytest.approx(errors.min(), abs=1e-12)
        assert np.array_equal(found.hypothesis(X), found.labels)
        assert tuple(found.labels) in as_set(space.dichotomies(X))


def test_descriptors_are_plain_data_and_tell_spaces_apart():
    every = [
        *LINE,
        *PLANE,
        Trees(3, 4, 2),
        Votes(Stumps(3), 7),
        Finite(12),
        MulticlassHalfSpaces(4, 3),
        FunctionSpace(9),
    ]
    texts = [json.dumps(space.descriptor(), sort_keys=True) for space in every]
    assert len(set(texts)) == len(every)
    assert HalfSpaces(28).descriptor() == {"class": "halfspaces", "d": 28, "bias": True}
    assert Votes(Stumps(3), 7).descriptor() == {"class": "votes", "base": {"class": "stumps", "d": 3}, "T": 7}
    assert Unbounded("RBF kernel").descriptor() == {"class": "unbounded", "reason": "RBF kernel"}


def test_families_give_the_space_of_a_learner():
    assert Linear().at(5, 2, True) == HalfSpaces(5)
    assert Linear().at(5, 4, False) == MulticlassHalfSpaces(5, 4, bias=False)
    assert "linear" in str(Linear())
    regression = LinearFunctions().at(5)
    assert regression.vc_dimension == math.inf
    with pytest.raises(ValueError, match="norm or hold-out"):
        regression.log_growth(10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: HalfSpaces(0), "HalfSpaces: d must be an integer >= 1"),
        (lambda: HalfSpaces(2, bias=1), "bias must be True or False"),
        (lambda: MulticlassHalfSpaces(2, 1), "n_classes must be an integer >= 2"),
        (lambda: UnionsOfIntervals(0), "k must be"),
        (lambda: spaces.SparseHalfSpaces(2, 3), "s must be at most d"),
        (lambda: spaces.ThresholdNets((3, 2)), "layers must be"),
        (lambda: Finite(0), "number of hypotheses must be an integer >= 1"),
        (lambda: HalfSpaces(2).growth(0), "m must be an integer >= 1"),
        (lambda: HalfSpaces(2).dichotomies([1.0, 2.0]), "shape \\(m, 2\\)"),
        (lambda: HalfSpaces(2).dichotomies([[1.0, math.nan]]), "row 0"),
        (lambda: Intervals().erm([1.0, 2.0], [0, 1]), "each -1 or \\+1"),
        (lambda: Intervals().erm([1.0, 2.0], [1, 1], [1.0, -1.0]), "sample_weight"),
        (lambda: Finite(5).dichotomies([1.0]), "pass the hypotheses themselves"),
        (lambda: HalfSpaces(5).dichotomies(np.random.default_rng(0).random((200, 5))), "too many"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_every_space_is_exported():
    assert all(hasattr(spaces, name) for name in spaces.__all__)
