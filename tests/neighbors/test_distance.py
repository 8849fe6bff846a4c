"""Distances and similarities against SciPy, hand tables and the axioms of a metric."""

import numpy as np
import pytest
from scipy.spatial import distance as scipy_distance

from assay.data import read
from assay.metrics.distance import (
    MinkovDM,
    Minkowski,
    ValueDifference,
    Weighted,
    axioms,
    cosine_similarity,
    histogram_intersection,
)
from assay.neighbors import KNeighborsClassifier

POINTS = np.random.default_rng(0).normal(size=(30, 3))


@pytest.mark.mission("CLU-34")
def test_axioms():
    line = [[0.0], [1.0], [2.0]]
    assert axioms(Minkowski(), POINTS).is_metric
    assert axioms(Minkowski(1), POINTS) == (True, True, True, True, "")
    squared = axioms(lambda a, b: float(((a - b) ** 2).sum()), line)
    assert squared[:4] == (True, True, True, False)
    half = axioms(Minkowski(0.5, allow_any_order=True), [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    assert half[:4] == (True, True, True, False)
    assert half.counterexample == "triangle: d(0, 2) = 4 > d(0, 1) + d(1, 2) = 1 + 1"
    values = ValueDifference(1).fit([[0], [0], [1], [1], [2]], [0, 1, 0, 1, 1])
    vdm = axioms(values, [[0], [1], [2]])
    assert vdm[:4] == (True, False, True, True)
    assert vdm.counterexample == "identity: d(0, 1) = 0, d(1, 0) = 0"
    assert not axioms(lambda a, b: float(a[0] - b[0]), line).non_negative
    assert not axioms(lambda a, b: float(max(a[0] - b[0], 0) + abs(a[0] - b[0])), line).symmetric


@pytest.mark.mission("CLU-03", "CLU-35", "CLU-36")
@pytest.mark.parametrize(
    ("p", "name", "options"),
    [(1, "cityblock", {}), (2, "euclidean", {}), (3.5, "minkowski", {"p": 3.5}), (np.inf, "chebyshev", {})],
)
def test_minkowski(p, name, options):
    expected = scipy_distance.cdist(POINTS, POINTS[:5], name, **options)
    assert np.allclose(Minkowski(p).pairwise(POINTS, POINTS[:5]), expected, rtol=1e-13)
    assert Minkowski(p)(POINTS[0], POINTS[1]) == pytest.approx(expected[1, 0])
    with pytest.raises(ValueError, match="p must be >= 1"):
        Minkowski(0.5)


@pytest.mark.mission("CLU-37")
def test_value_difference_by_hand():
    """Value 0: classes x, x, y; value 1: y, y; value 2: x, y. Shares (2/3, 1/3), (0, 1), (1/2, 1/2)."""
    X, y = [[0], [0], [0], [1], [1], [2], [2]], list("xxyyyxy")
    one, two = ValueDifference(1).fit(X, y), ValueDifference(2).fit(X, y)
    assert one([0], [1]) == pytest.approx(2 / 3 + 2 / 3)
    assert two([0], [1]) == pytest.approx(4 / 9 + 4 / 9)
    assert one([0], [2]) == one([2], [0]) == pytest.approx(1 / 6 + 1 / 6)
    assert one([1], [1]) == 0.0
    assert ValueDifference(1).fit([[0], [1]], [0, 1])([0], [1]) == 2.0  # the largest value of p = 1
    assert ValueDifference(1).fit([[0], [0], [1], [1]], [0, 1, 0, 1])([0], [1]) == 0.0  # equal profiles
    with pytest.raises(ValueError, match="column 0 has the value 7, which no fitted row had"):
        one([0], [7])
    with pytest.raises(ValueError, match="not fitted"):
        ValueDifference()([0], [1])


@pytest.mark.mission("CLU-38")
def test_mixed_columns():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=(60, 2)), rng.integers(0, 4, 60)])
    y = rng.integers(0, 3, 60)
    plain = MinkovDM(3, unordered=[]).fit(X, y)
    assert np.allclose(plain.pairwise(X, X), scipy_distance.cdist(X, X, "minkowski", p=3))
    mixed = MinkovDM(3, unordered=[2]).fit(X, y)
    values = ValueDifference(3).fit(X[:, 2:], y)
    by_hand = (np.abs(X[0, :2] - X[1, :2]) ** 3).sum() + values(X[0, 2:], X[1, 2:])
    assert mixed(X[0], X[1]) == pytest.approx(by_hand ** (1 / 3))
    for p in (1, 2, 3):
        found = axioms(MinkovDM(p, unordered=[2]).fit(X, y), X)
        assert found.triangle
        assert found.symmetric
    with pytest.raises(ValueError, match="columns from 0 to 2"):
        MinkovDM(unordered=[3]).fit(X, y)


@pytest.mark.mission("CLU-39")
def test_ordered_and_unordered_columns():
    mixed = read({"size": [1.0, 2.0, 3.0, 4.0], "colour": ["red", "blue", "red", "green"]})
    inferred = MinkovDM(2).fit(mixed, [0, 1, 0, 1])
    assert inferred.unordered_.tolist() == [1]
    assert inferred.ordered_.tolist() == [0]
    with pytest.warns(UserWarning, match="columns colour are nominal"):
        MinkovDM(2, unordered=[]).fit(mixed, [0, 1, 0, 1])
    numbers = np.random.default_rng(0).normal(size=(100, 1))
    with pytest.warns(UserWarning, match="looks ordered"):
        ValueDifference().fit(numbers, np.arange(100) % 2)


@pytest.mark.mission("CLU-40")
@pytest.mark.parametrize("p", [1, 2, 4])
def test_weighted(p):
    equal = Weighted(np.full(3, 1 / 3), p).pairwise(POINTS, POINTS)
    assert np.allclose(equal, 3 ** (-1 / p) * Minkowski(p).pairwise(POINTS, POINTS))
    w = np.array([0.5, 0.3, 0.2])
    expected = scipy_distance.cdist(POINTS, POINTS, "minkowski", p=p, w=w)
    assert np.allclose(Weighted(w, p).pairwise(POINTS, POINTS), expected)
    assert np.array_equal(
        Minkowski(np.inf, [1, 0, 1]).pairwise(POINTS, POINTS),
        Minkowski(np.inf).pairwise(POINTS[:, [0, 2]], POINTS[:, [0, 2]]),
    )
    for wrong in ([0.5, 0.5, 0.5], [1.5, -0.5, 0.0]):
        with pytest.raises(ValueError, match=r"sum to 1|numbers >= 0"):
            Weighted(wrong, p)


@pytest.mark.mission("CLU-41")
def test_similarities():
    rng = np.random.default_rng(2)
    for _ in range(20):
        a, b = rng.integers(0, 6, (2, 8)) + np.eye(8, dtype=int)[0]
        for similarity in (cosine_similarity, histogram_intersection):
            assert 0 <= similarity(a, b) <= 1
            assert similarity(a, b) == pytest.approx(similarity(b, a))
            assert similarity(a, 3 * a) == pytest.approx(1.0)
        assert cosine_similarity(a, b) == pytest.approx(1 - scipy_distance.cosine(a, b))
        shares = a / a.sum(), b / b.sum()
        assert histogram_intersection(a, b) == pytest.approx(1 - 0.5 * np.abs(shares[0] - shares[1]).sum())
    assert cosine_similarity([1, 0], [0, 1]) == histogram_intersection([1, 0], [0, 1]) == 0.0
    for wrong in ([0, 0], [-1, 2], [1, np.nan], [1, 2, 3]):
        with pytest.raises(ValueError, match="histograms"):
            histogram_intersection(wrong, [1, 1])


def test_a_distance_serves_as_metric():
    X = np.column_stack([POINTS[:, 0], np.arange(30) % 3])
    y = (np.arange(30) % 3 == 1).astype(int)
    mixed = MinkovDM(2, unordered=[1]).fit(X, y)
    index = KNeighborsClassifier(4, metric=mixed).fit(X, y).kneighbors(X, return_distance=False)
    assert np.array_equal(index, np.argsort(mixed.pairwise(X, X), axis=1, kind="stable")[:, :4])
    with pytest.raises(ValueError, match="certificates are about the distances"):
        KNeighborsClassifier(4, metric=mixed).fit(X, y).certify(X, y)
