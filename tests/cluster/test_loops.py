"""The compiled loops beneath: distances in lanes, scatter matrices in tiles, against NumPy."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from assay.jit import LANES, compiled, four_rows_nearest, four_rows_to_lanes
from assay.loops.moments import scatter


@compiled
def distances(X, rows, points, group):
    out = np.empty((len(rows), LANES), np.float32)
    for t in range(0, len(rows), 4):
        four_rows_to_lanes(X, rows, t, points, group, out[t : t + 4])
    return out


@compiled
def nearest(X, rows, points, group):
    two, lanes = np.empty((len(rows), 2), np.float32), np.empty(len(rows), np.int32)
    for t in range(0, len(rows), 4):
        four_rows_nearest(X, rows, t, points, group, two[t : t + 4], lanes[t : t + 4])
    return two, lanes


@pytest.mark.parametrize("d", [1, 2, 7, 28, 130])
def test_distances_in_lanes(d):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(50, d)).astype(np.float32)
    centers = rng.normal(size=(3, LANES, d)).astype(np.float32)
    centers[1, 5] = centers[1, 2]  # a tie: the first lane counts
    points = np.ascontiguousarray(centers.transpose(0, 2, 1))
    rows = rng.integers(0, 50, 24).astype(np.int32)
    for group in range(3):
        true = cdist(X[rows].astype(float), centers[group].astype(float), "sqeuclidean")
        found = distances(X, rows, points, group)
        assert np.abs(found / true - 1).max() < (d + 3) * 2.0**-23
        two, lanes = nearest(X, rows, points, group)
        assert np.array_equal(lanes, found.argmin(axis=1))
        assert np.array_equal(two, np.sort(found, axis=1)[:, :2])


def test_a_distance_to_itself_is_zero():
    X = np.random.default_rng(0).normal(size=(16, 9)).astype(np.float32)
    found = distances(X, np.arange(16, dtype=np.int32), np.ascontiguousarray(X.T)[None], 0)
    assert np.array_equal(np.diag(found), np.zeros(16))


@pytest.mark.parametrize(("n", "d"), [(1, 1), (5, 3), (128, 12), (129, 11), (1000, 23), (700, 60)])
@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_scatter_in_tiles(n, d, precision):
    rng = np.random.default_rng([n, d])
    X, center = rng.normal(size=(n, d)) + 3, rng.normal(size=d)
    A = np.column_stack([X - center, np.ones(n)])
    found = scatter(X, center, precision)
    assert np.array_equal(found, found.T)
    assert np.abs(found - A.T @ A).max() <= 4 * np.finfo(precision).eps * n * np.abs(A).max() ** 2
