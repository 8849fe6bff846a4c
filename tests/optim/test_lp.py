"""Linear programmes against vertices by enumeration, duality and a book's example."""

from itertools import combinations

import numpy as np
import pytest

from assay.optim.constrained import solve


def vertices(A, b):
    """Yield the points where as many constraints as there are columns are equalities, and all hold."""
    for rows in combinations(range(len(b)), A.shape[1]):
        part = A[list(rows)]
        if abs(np.linalg.det(part)) > 1e-9:
            x = np.linalg.solve(part, b[list(rows)])
            if np.all(A @ x >= b - 1e-9):
                yield x


@pytest.mark.mission("OPT-18")
@pytest.mark.parametrize("seed", range(10))
def test_the_minimum_is_the_best_vertex_and_the_dual_proves_it(seed):
    random = np.random.default_rng(seed)
    box = np.vstack([np.eye(3), -np.eye(3)])
    inside, cuts = random.uniform(-2, 2, size=3), random.normal(size=(4, 3))
    A = np.vstack([box, cuts])
    b = np.concatenate([np.full(6, -3.0), cuts @ inside - random.uniform(0, 1, size=4)])
    c = random.normal(size=3)
    found = solve(c, A, b)
    assert found.value == pytest.approx(min(c @ x for x in vertices(A, b)), abs=1e-8)
    assert np.all(A @ found.x >= b - 1e-8)
    assert np.all(found.dual >= 0)
    np.testing.assert_allclose(A.T @ found.dual, c, atol=1e-8)
    assert abs(found.gap) <= 1e-8
    np.testing.assert_allclose(found.dual * (A @ found.x - b), 0.0, atol=1e-7)


@pytest.mark.mission("OPT-18")
def test_a_diet():
    """Two foods at prices 2 and 3 that must give 8 and 10 units: both needs are met exactly, at cost 13.2."""
    found = solve([2.0, 3.0], [[1.0, 2.0], [3.0, 1.0], [1.0, 0.0], [0.0, 1.0]], [8.0, 10.0, 0.0, 0.0])
    np.testing.assert_allclose(found.x, [2.4, 2.8], atol=1e-9)
    assert found.value == pytest.approx(13.2)
    np.testing.assert_allclose(found.dual, [1.4, 0.2, 0.0, 0.0], atol=1e-9)


def test_what_has_no_minimum_is_refused():
    with pytest.raises(ValueError, match="no x has A x >= b"):
        solve([1.0], [[1.0], [-1.0]], [1.0, 0.0])
    with pytest.raises(ValueError, match="has no minimum"):
        solve([-1.0], [[1.0]], [0.0])
    with pytest.raises(ValueError, match="A must be"):
        solve([1.0], [[1.0, 2.0]], [0.0])
    with pytest.raises(ValueError, match="finite"):
        solve([np.nan], [[1.0]], [0.0])
