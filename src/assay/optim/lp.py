"""Linear programmes (HiGHS through SciPy), and an exact check of their answers."""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog


class LinearOptimum(NamedTuple):
    """x, c'x, the dual variables lambda >= 0 of A x >= b, b' lambda, and the duality gap c'x - b' lambda >= 0."""

    x: np.ndarray
    value: float
    dual: np.ndarray
    dual_value: float
    gap: float


def solve(c: Any, A: Any, b: Any) -> LinearOptimum:
    """Return the minimum of c'x over all x with A x >= b, and the maximum of b' lambda, A' lambda = c, lambda >= 0.

    Both are the same (strong duality); `gap` is what the solver, HiGHS, leaves between them. A problem without a
    feasible point, or whose minimum is minus infinity, is refused.

    >>> found = solve([1.0, 1.0], [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1.0, 2.0, 5.0])
    >>> round(found.value, 9), [round(float(l), 9) for l in found.dual]
    (5.0, [0.0, 0.0, 1.0])
    """
    c, A, b = (np.asarray(part, dtype=np.float64) for part in (c, A, b))
    if c.ndim != 1 or b.ndim != 1 or A.shape != (len(b), len(c)):
        shapes = f"{A.shape}, {c.shape} and {b.shape}"
        raise ValueError(f"solve: A must be (rows, columns), c a number per column, b one per row; got {shapes}.")
    if not all(np.isfinite(part).all() for part in (c, A, b)):
        raise ValueError("solve: c, A and b must be finite numbers.")
    answer = linprog(c, A_ub=-A, b_ub=-b, bounds=(None, None), method="highs")
    if answer.status != 0:
        why = {2: "no x has A x >= b", 3: "c'x has no minimum over A x >= b"}.get(answer.status, answer.message)
        raise ValueError(f"solve: {why}.")
    dual = np.maximum(-answer.ineqlin.marginals, 0.0)
    value, dual_value = float(c @ answer.x), float(b @ dual)
    return LinearOptimum(answer.x, value, dual, dual_value, value - dual_value)


def weak_separator(signed: np.ndarray) -> np.ndarray | None:
    """Return w with <w, a_i> >= 0 for every row a_i of `signed` and > 0 for some, or None if there is none.

    Maximises sum_i <w, a_i> over |w_j| <= 1; rows are scaled to unit length first. The maximum is 0 iff there
    is none.
    """
    norms = np.linalg.norm(signed, axis=1)
    unit = signed[norms > 0] / norms[norms > 0, None]
    if len(unit) == 0:
        return None
    answer = linprog(-unit.sum(axis=0), A_ub=-unit, b_ub=np.zeros(len(unit)), bounds=(-1, 1), method="highs")
    return answer.x if answer.status == 0 and -answer.fun > 1e-7 * len(unit) ** 0.5 else None


def intersecting_hulls(X: np.ndarray, y: np.ndarray, intercept: bool) -> np.ndarray | None:
    """Return at most d + 2 rows that no hyperplane separates by their labels y in {0, 1}, or None if none
    were proved.

    Gordan: there is no (w, b) with y_i (<w, x_i> + b) > 0 for all i iff some lambda >= 0, not 0, has
    sum lambda_i y_i (x_i, 1) = 0. A vertex of that polytope has few non-zero entries; they are verified in
    rationals.
    """
    augmented = np.column_stack([X, np.ones(len(X))]) if intercept else X
    signed = augmented * (2.0 * y - 1.0)[:, None]
    scale = np.abs(signed).max(axis=0)
    scale[scale == 0] = 1.0
    equal = np.vstack([(signed / scale).T, np.ones(len(X))])
    target = np.append(np.zeros(signed.shape[1]), 1.0)
    answer = linprog(np.zeros(len(X)), A_eq=equal, b_eq=target, bounds=(0, None), method="highs-ds")
    if answer.status != 0:
        return None
    rows = np.flatnonzero(answer.x > 1e-12)
    return rows.astype(np.int64) if _one_signed_null_vector(signed[rows]) else None


def _one_signed_null_vector(A: np.ndarray) -> bool:
    """Tell, in exact arithmetic, whether lambda^T A = 0 has exactly one solution up to scale, all of one sign.

    Each row is scaled to integers, which changes no sign of lambda, and eliminated without fractions (Bareiss): every
    division below is without remainder.
    """
    M = np.array([_integers(row) for row in A], dtype=object).T
    pivots: list[int] = []
    last = 1
    for column in range(A.shape[0]):
        at = len(pivots)
        below = [i for i in range(at, len(M)) if M[i, column]]
        if not below:
            continue
        M[[at, below[0]]] = M[[below[0], at]]
        lead, pivot = M[at, column], M[at].copy()
        M = (lead * M - np.multiply.outer(M[:, column], pivot)) // last
        M[at], last = pivot, lead
        pivots.append(column)
    free = [column for column in range(A.shape[0]) if column not in pivots]
    return len(free) == 1 and all(M[i, free[0]] * last < 0 for i in range(len(pivots)))


def _integers(row: np.ndarray) -> list[int]:
    ratios = [float(value).as_integer_ratio() for value in row]
    common = max(denominator for _, denominator in ratios)
    return [numerator * (common // denominator) for numerator, denominator in ratios]
