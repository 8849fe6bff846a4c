"""Linear programmes (HiGHS through SciPy), and an exact check of their answers."""

from fractions import Fraction

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
    """Tell, in rational arithmetic, whether lambda^T A = 0 has exactly one solution up to scale, all of one
    sign."""
    columns = [[Fraction(float(value)) for value in row] for row in A.T]
    m = A.shape[0]
    pivots: list[int] = []
    row = 0
    for column in range(m):
        pivot = next((i for i in range(row, len(columns)) if columns[i][column] != 0), None)
        if pivot is None:
            continue
        columns[row], columns[pivot] = columns[pivot], columns[row]
        lead = columns[row][column]
        columns[row] = [value / lead for value in columns[row]]
        for i in range(len(columns)):
            if i != row and columns[i][column] != 0:
                factor = columns[i][column]
                columns[i] = [a - factor * b for a, b in zip(columns[i], columns[row])]
        pivots.append(column)
        row += 1
    free = [column for column in range(m) if column not in pivots]
    return len(free) == 1 and all(columns[i][free[0]] < 0 for i in range(len(pivots)))
