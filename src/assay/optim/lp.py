"""Linear programmes (HiGHS through SciPy), and an exact check of their answers."""

import numpy as np
from scipy.optimize import linprog


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
