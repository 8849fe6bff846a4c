"""Other routes to the same machine, for small data: quadratic programmes (Clarabel) and descent on the hinge loss.

    qp-dual      minimise 1/2 beta' K beta - v' beta,  sum beta = 0,  lo <= beta <= hi
    qp-primal    minimise 1/2 |w|^2 + sum C_i xi_i,  y_i (<w, b_i> + b) >= 1 - xi_i,  xi >= 0
    subgradient  minimise 1/2 |w|^2 + sum C_i max(0, 1 - y_i f(x_i)), b optimal for each w

The primal needs coordinates: rows b_i with <b_i, b_j> = K_ij, the coordinates of phi(x_i) in the span of the data,
which is all that w can use. All routes return beta_i = y_i alpha_i, like the fast solver.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from assay.kernels import embedding
from assay.kernels._tiles import Tiles
from assay.svm._decomposition import Problem, Solution

_MOST = 5_000  # rows; beyond, only the fast solver is sensible


def _gram(source: Tiles) -> np.ndarray:
    if source.n > _MOST:
        raise ValueError(
            f"This solver forms the {source.n} x {source.n} Gram matrix; use solver='smo' above {_MOST} rows."
        )
    gram = np.empty((source.n, source.n), source.dtype)
    source.fill(np.arange(source.n), 0, source.n, gram)
    gram = gram.astype(np.float64)
    return 0.5 * (gram + gram.T)


def _solution(K: np.ndarray, problem: Problem, beta: np.ndarray, steps: int, tol: float) -> Solution:
    """Return beta as a solution, converged iff the KKT conditions are met up to tol, whatever the solver thinks."""
    beta = np.clip(beta, problem.lo, problem.hi)
    F = K @ beta
    e = problem.v - F
    room = 1e-7 * np.maximum(np.abs(beta).max(initial=0.0), 1e-12)
    up, down = beta < problem.hi - room, beta > problem.lo + room
    violation = (e[up].max() if up.any() else -np.inf) - (e[down].min() if down.any() else np.inf)
    objective = float(0.5 * beta @ F - problem.v @ beta)
    status = "converged" if violation <= tol else "max_iter"
    return Solution(beta, F, objective, float(max(violation, 0.0)), 1, steps, len(beta), status)


def _clarabel(P: Any, q: np.ndarray, A: Any, b: np.ndarray, equal: int, tol: float) -> Any:
    """Return Clarabel's answer to min 1/2 x'Px + q'x, Ax + s = b, s = 0 in the first `equal` rows and s >=
    0 in the rest."""
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = min(1e-9, 0.1 * tol)
    cones = [clarabel.ZeroConeT(equal), clarabel.NonnegativeConeT(len(b) - equal)]
    upper = sparse.csc_matrix(sparse.triu(P))
    return clarabel.DefaultSolver(upper, q, sparse.csc_matrix(A), b, cones, settings).solve()


def qp_dual(source: Tiles, problem: Problem, tol: float) -> Solution:
    """Solve the dual quadratic programme."""
    K = _gram(source)
    n = len(K)
    eye = sparse.eye(n, format="csr")
    finite_hi, finite_lo = np.isfinite(problem.hi), np.isfinite(problem.lo)
    A = sparse.vstack([sparse.csr_matrix(np.ones((1, n))), eye[finite_hi], -eye[finite_lo]])
    b = np.concatenate([[0.0], problem.hi[finite_hi], -problem.lo[finite_lo]])
    answer = _clarabel(sparse.csc_matrix(K), -problem.v, A, b, 1, tol)
    return _solution(K, problem, _snapped(np.array(answer.x), problem), answer.iterations, tol)


def qp_primal(source: Tiles, problem: Problem, tol: float) -> Solution:
    """Solve the primal quadratic programme in coordinates of the span of the data; without slack for a
    hard margin."""
    K = _gram(source)
    B = embedding(K)
    B = B[:, np.abs(B).max(axis=0) > 1e-9 * np.abs(B).max()]
    n, r = B.shape
    y, cost = problem.v, problem.hi - problem.lo
    hard = bool(np.isinf(cost).any())
    slack = 0 if hard else n
    P = sparse.block_diag([sparse.csc_matrix((1, 1)), sparse.eye(r), sparse.csc_matrix((slack, slack))])
    margin = -y[:, None] * np.column_stack([np.ones(n), B])
    rows = sparse.hstack([sparse.csr_matrix(margin), sparse.csr_matrix((n, 0)) if hard else -sparse.eye(n)])
    below = sparse.hstack([sparse.csr_matrix((slack, 1 + r)), -sparse.eye(slack)]) if slack else rows[:0]
    q = np.concatenate([np.zeros(1 + r), np.zeros(0) if hard else cost])
    answer = _clarabel(P, q, sparse.vstack([rows, below]), np.concatenate([-np.ones(n), np.zeros(slack)]), 0, tol)
    alpha = np.array(answer.z)[:n]
    return _solution(K, problem, _snapped(alpha * y, problem), answer.iterations, tol)


def _solved(answer: Any) -> bool:
    return str(answer.status) in ("Solved", "AlmostSolved")


def _snapped(beta: np.ndarray, problem: Problem) -> np.ndarray:
    """Return beta with entries that an interior point leaves next to a bound put on it."""
    near = 1e-6 * max(float(np.abs(beta).max(initial=0.0)), 1e-12)
    beta = np.where(np.abs(beta) < near, 0.0, beta)
    return np.where(
        np.abs(beta - problem.hi) < near,
        problem.hi,
        np.where(np.abs(beta - problem.lo) < near, problem.lo, beta),
    )


def subgradient(source: Tiles, problem: Problem, tol: float, steps: int = 20_000) -> Solution:
    """Descend on 1/2 |w|^2 + sum C_i hinge_i along subgradients with steps 1 / t, b optimal for each w.

    The subgradient of the hinge at an optimal b has sum_i s_i C_i y_i = 0, so beta, the running mean of
    s_i C_i y_i, stays
    feasible for the dual: the means of the iterates give w = sum beta_i phi(x_i).
    """
    K = _gram(source)
    cost = problem.hi - problem.lo
    if np.isinf(cost).any():
        raise ValueError("Descent on the hinge loss needs a finite C.")
    beta, mean, weight = np.zeros(len(K)), np.zeros(len(K)), 0.0
    F = np.zeros(len(K))
    for t in range(1, steps + 1):
        direction = balanced_subgradient(F, problem.v, cost)
        beta += (direction - beta) * (2.0 / (t + 1))
        F += (K @ direction - F) * (2.0 / (t + 1))
        mean += t * beta
        weight += t
    solution = _solution(K, problem, mean / weight, steps, tol)
    return solution._replace(b=_best_offset(solution.F, problem.v, cost)[0])


def _best_offset(F: np.ndarray, y: np.ndarray, cost: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the b that minimises sum C_i max(0, 1 - y_i (F_i + b)), and which samples lie at its kink.

    As b grows, positive samples leave the hinge and negative ones enter it at b = y_i - F_i; the slope in
    b is the sum of C
    over the negative ones inside minus that over the positive ones inside, and crosses zero at the best b.
    """
    ends = y - F
    order = np.argsort(ends, kind="stable")
    slope = np.cumsum(cost[order]) - cost[y > 0].sum()
    b = float(ends[order[int(np.searchsorted(slope, 0.0))]])
    return b, ends == b


def balanced_subgradient(F: np.ndarray, y: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Return s_i C_i y_i, s_i a slope of the hinge at the best b, such that they add up to zero."""
    b, kink = _best_offset(F, y, cost)
    inside = (y * (F + b) < 1) & ~kink
    direction = np.where(inside, cost * y, 0.0)
    need = -float(direction.sum())
    same = kink & (np.sign(y) == np.sign(need))
    room = float(cost[same].sum())
    if room > 0:
        direction[same] = cost[same] * y[same] * min(1.0, abs(need) / room)
    return direction


class ProblemSize(NamedTuple):
    """Variables and constraints of the primal and the dual hard-margin problem, and the smaller route."""

    primal: tuple[float, int]
    dual: tuple[int, int]
    route: str


def problem_size(n_rows: int, n_features: float) -> ProblemSize:
    """Return d + 1 variables and n constraints (primal), n and n + 1 (dual), and which has fewer variables. With a
    kernel d is the dimension of its feature space, infinity for most. `SVC(solver="qp")` takes this route.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    n_features : float
        Dimension of the feature space.

    Returns
    -------
    ProblemSize
        Sizes of the problems.

    Examples
    --------
    >>> problem_size(1000, 3).route, problem_size(10, 1000).route
    ('qp-primal', 'qp-dual')
    """
    route = "qp-primal" if n_features + 1 <= n_rows else "qp-dual"
    return ProblemSize((n_features + 1, n_rows), (n_rows, n_rows + 1), route)


ReferenceSolver = Callable[[Tiles, Problem, float], Solution]
REFERENCE_SOLVERS: dict[str, ReferenceSolver] = {"qp-dual": qp_dual, "qp-primal": qp_primal, "subgradient": subgradient}
