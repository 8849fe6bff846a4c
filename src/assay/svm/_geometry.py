"""Hyperplanes and margins in plain formulas, and the margin problems that textbooks start from."""

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog


def distances(w: np.ndarray, b: float, X: np.ndarray) -> np.ndarray:
    """Return |<w, x> + b| / |w|, the distance of each row to the hyperplane.

    >>> distances(np.array([3.0, 4.0]), -5.0, np.array([[0.0, 0.0], [3.0, 4.0]])).tolist()
    [1.0, 4.0]
    """
    return np.abs(X @ w + b) / np.linalg.norm(w)


def functional_margins(w: np.ndarray, b: float, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return y (<w, x> + b) of each row, y = -1 or +1; it scales with (w, b)."""
    return y * (X @ w + b)


def geometric_margin(w: np.ndarray, b: float, X: np.ndarray, y: np.ndarray) -> float:
    """Return min y (<w, x> + b) / |w|; the same for (w, b) and any positive multiple of it."""
    return float(functional_margins(w, b, X, y).min() / np.linalg.norm(w))


def canonical(w: np.ndarray, b: float, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Return (w, b) rescaled so that the least functional margin is 1; the data must be separated."""
    least = float(functional_margins(w, b, X, y).min())
    if least <= 0:
        raise ValueError(f"canonical: the hyperplane does not separate the rows (least margin {least:.4g}).")
    return w / least, b / least


class ProblemSize(NamedTuple):
    """Variables and constraints of the primal and the dual hard-margin problem, and the smaller route."""

    primal: tuple[float, int]
    dual: tuple[int, int]
    route: str


def problem_size(n_rows: int, n_features: float) -> ProblemSize:
    """Return d + 1 variables and n constraints (primal), n and n + 1 (dual), and which has fewer variables. With a
    kernel d is the dimension of its feature space, infinity for most. `SVC(solver="qp")` takes this route.

    >>> problem_size(1000, 3).route, problem_size(10, 1000).route
    ('qp-primal', 'qp-dual')
    """
    route = "qp-primal" if n_features + 1 <= n_rows else "qp-dual"
    return ProblemSize((n_features + 1, n_rows), (n_rows, n_rows + 1), route)


class SoftMargin(NamedTuple):
    """A soft margin with 0/1 losses: the value, w, b and the rows that are given up."""

    value: float
    w: np.ndarray
    b: float
    given_up: np.ndarray


def zero_one_soft_margin(X: np.ndarray, y: np.ndarray, C: float, *, count: str = "margin") -> SoftMargin:
    """Minimise 1/2 |w|^2 + C * (number of rows given up) exactly, by going through all sets of rows (n <=
    12).

    count="margin": a row is given up when y f < 1. count="error": the rows that are not misclassified must
    have y f >= 1,
    and a row costs C only if it is misclassified; its side is then free.
    """
    if len(X) > 12:
        raise ValueError(f"zero_one_soft_margin: goes through 2^n sets, so n must be at most 12; got {len(X)}.")
    if count not in ("margin", "error"):
        raise ValueError(f"zero_one_soft_margin: count must be 'margin' or 'error'; got {count!r}.")
    best = SoftMargin(np.inf, np.zeros(X.shape[1]), 0.0, np.ones(len(X), bool))
    for pattern in product((False, True), repeat=len(X)):
        given_up = np.array(pattern)
        if C * given_up.sum() >= best.value:
            continue
        sides = np.where(given_up, -y, y) if count == "error" else y
        kept = np.ones(len(X), bool) if count == "error" else ~given_up
        margin = np.where(given_up & (count == "error"), 0.0, 1.0)
        found = _least_norm(X[kept], sides[kept], margin[kept])
        if found is None:
            continue
        w, b = found
        value = 0.5 * float(w @ w) + C * float(given_up.sum())
        if value < best.value:
            best = SoftMargin(value, w, b, given_up)
    return best


def _least_norm(X: np.ndarray, y: np.ndarray, margin: np.ndarray) -> tuple[np.ndarray, float] | None:
    """Return the smallest w, with b, such that y (<w, x> + b) >= margin; None if there is none."""
    from scipy import sparse

    from assay.svm._reference_solvers import _clarabel, _solved

    if len(X) == 0 or not margin.any():
        return np.zeros(X.shape[1]), 0.0
    A = -y[:, None] * np.column_stack([np.ones(len(X)), X])
    if linprog(np.zeros(A.shape[1]), A_ub=A, b_ub=-margin, bounds=(None, None), method="highs").status != 0:
        return None
    P = sparse.block_diag([sparse.csc_matrix((1, 1)), sparse.eye(X.shape[1])])
    answer = _clarabel(P, np.zeros(A.shape[1]), A, -margin, 0, 1e-10)
    return (np.array(answer.x)[1:], float(answer.x[0])) if _solved(answer) else None


def margin_through_origin(K: np.ndarray, y: np.ndarray, C: float = np.inf) -> np.ndarray:
    """Return the coefficients c of w = sum c_j phi(a_j) that minimise |w|^2 + C sum slack, y_i <w,
    phi(a_i)> >= 1 - slack_i.

    The kernel program of the notes, min c'Kc subject to y_i (K c)_i >= 1, without an offset; C = infinity
    allows no slack.
    K must be positive semidefinite.
    """
    from scipy import sparse

    from assay.kernels import embedding
    from assay.svm._reference_solvers import _clarabel, _solved

    embedding(K)  # refuses an indefinite K, for which the program is not convex
    n = len(y)
    Q = y[:, None] * K * y[None, :]
    bound = [] if np.isinf(C) else [sparse.eye(n)]
    A = sparse.vstack([-sparse.eye(n), *bound])
    right = np.concatenate([np.zeros(n), np.full(n if bound else 0, 0.5 * C)])
    answer = _clarabel(sparse.csc_matrix(Q), -np.ones(n), A, right, 0, 1e-10)
    if not _solved(answer) or float(np.abs(answer.x).max()) > 1e9:
        raise ValueError("margin_through_origin: no hyperplane through the origin separates the rows.")
    return y * np.array(answer.x)


def intertwined_curves(
    delta: float = 0.25, distance: float = 3.0, turns: float = 60.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return points on two congruent waves, `delta` apart along each and `distance` from each other, with
    labels -1 and +1."""
    t = np.arange(0.0, turns, delta)
    wave = np.column_stack([t, 3.0 * np.sin(t / 6.0)])
    X = np.vstack([wave, wave + np.array([0.0, distance])])
    return X, np.repeat([1.0, -1.0], len(t))
