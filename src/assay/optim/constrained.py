"""Problems with constraints: quadratic programmes, Lagrangians, duals and the conditions of Karush, Kuhn and Tucker.

    minimise over u    1/2 u^T Q u + p^T u    subject to    A u >= c,    and optionally    R u = v

Linear programmes are solved by HiGHS through SciPy, and their solutions checked exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog


class Residuals(NamedTuple):
    """Largest violations: stationarity, primal feasibility, sign of the multipliers, complementarity.

    Parameters
    ----------
    stationarity : float
        Largest entry of the gradient of the Lagrangian.
    primal : float
        Largest violation of a constraint.
    dual : float
        Largest negative multiplier.
    complementarity : float
        Largest product of a multiplier and its slack.
    """

    stationarity: float
    primal: float
    dual: float
    complementarity: float


@dataclass(frozen=True)
class QuadraticProgramme:
    """A convex quadratic programme; Q must be symmetric positive semidefinite.

    Parameters
    ----------
    Q : array-like
        Matrix of the quadratic term.
    p : array-like
        Vector of the linear term.
    A : array-like
        Matrix of the inequalities A u <= c.
    c : array-like
        Right-hand sides of the inequalities.
    R : array-like or None
        Matrix of the equalities R u = v; None: there are none.
    v : array-like or None
        Right-hand sides of the equalities.

    Examples
    --------
    >>> problem = QuadraticProgramme(np.eye(1), [0.0], [[1.0]], [2.0])  # 1/2 u^2 subject to u >= 2
    >>> found = problem.solve()
    >>> found.u.round(6).tolist(), found.multipliers.round(6).tolist()
    ([2.0], [2.0])
    """

    Q: Any
    p: Any
    A: Any
    c: Any
    R: Any = None
    v: Any = None

    def __post_init__(self) -> None:
        for name in ("Q", "p", "A", "c"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        size = len(self.p)
        for name, shape in (("R", (0, size)), ("v", (0,))):
            given = getattr(self, name)
            object.__setattr__(self, name, np.zeros(shape) if given is None else np.asarray(given, dtype=np.float64))
        if self.Q.shape != (size, size) or self.A.shape != (len(self.c), size) or self.R.shape != (len(self.v), size):
            raise ValueError(
                f"QuadraticProgramme: Q {self.Q.shape}, A {self.A.shape}, R {self.R.shape} do not fit p ({size},)."
            )
        least = np.linalg.eigvalsh((self.Q + self.Q.T) / 2)[0]
        if not np.allclose(self.Q, self.Q.T) or least < -1e-10 * max(1.0, float(np.abs(self.Q).max())):
            raise ValueError(
                "QuadraticProgramme: Q must be symmetric positive semidefinite (else the problem is not "
                "convex); its least "
                f"eigenvalue is {least:.3g}."
            )

    def objective(self, u: Any) -> float:
        """Return 1/2 u^T Q u + p^T u.

        Parameters
        ----------
        u : array-like
            The point.
        """
        u = np.asarray(u, dtype=np.float64)
        return float(0.5 * u @ self.Q @ u + self.p @ u)

    def lagrangian(self, u: Any, multipliers: Any, equality: Any = ()) -> float:
        """Return objective(u) + <multipliers, c - A u> + <equality, v - R u>.

        Parameters
        ----------
        u : array-like
            The point.
        multipliers : array-like
            Multipliers of the inequalities.
        equality : array-like, default=()
            Multipliers of the equalities.
        """
        u, mu = np.asarray(u, dtype=np.float64), np.asarray(equality, dtype=np.float64).reshape(len(self.v))
        return self.objective(u) + float(np.asarray(multipliers) @ (self.c - self.A @ u) + mu @ (self.v - self.R @ u))

    def dual(self, multipliers: Any, equality: Any = ()) -> float:
        """Return min over u of the Lagrangian; minus infinity where it has no minimum.

        Parameters
        ----------
        multipliers : array-like
            Multipliers of the inequalities.
        equality : array-like, default=()
            Multipliers of the equalities.
        """
        mu = np.asarray(equality, dtype=np.float64).reshape(len(self.v))
        slope = self.p - self.A.T @ np.asarray(multipliers, dtype=np.float64) - self.R.T @ mu
        u = -np.linalg.pinv(self.Q, hermitian=True) @ slope
        if np.abs(self.Q @ u + slope).max(initial=0.0) > 1e-9 * (1 + np.abs(slope).max(initial=0.0)):
            return -np.inf
        return self.lagrangian(u, multipliers, mu)

    def worst_lagrangian(self, u: Any) -> float:
        """Return the largest Lagrangian over multipliers >= 0: the objective if u is feasible, else
        infinity.

        Parameters
        ----------
        u : array-like
            The point.
        """
        u = np.asarray(u, dtype=np.float64)
        feasible = (self.A @ u >= self.c).all() and np.allclose(self.R @ u, self.v)
        return self.objective(u) if feasible else np.inf

    def residuals(self, u: Any, multipliers: Any, equality: Any = ()) -> Residuals:
        """Return how far (u, multipliers) is from the conditions of Karush, Kuhn and Tucker.

        Parameters
        ----------
        u : array-like
            The point.
        multipliers : array-like
            Multipliers of the inequalities.
        equality : array-like, default=()
            Multipliers of the equalities.
        """
        u, a = np.asarray(u, dtype=np.float64), np.asarray(multipliers, dtype=np.float64)
        mu = np.asarray(equality, dtype=np.float64).reshape(len(self.v))
        room = self.A @ u - self.c
        slope = self.Q @ u + self.p - self.A.T @ a - self.R.T @ mu
        primal = max(float(np.maximum(-room, 0).max(initial=0.0)), float(np.abs(self.R @ u - self.v).max(initial=0.0)))
        return Residuals(
            float(np.abs(slope).max(initial=0.0)),
            primal,
            float(np.maximum(-a, 0).max(initial=0.0)),
            float(np.abs(a * room).max(initial=0.0)),
        )

    def solve(self) -> "Solved":
        """Return the minimiser and its multipliers (Clarabel); raise if the constraints have no common
        point."""
        import clarabel
        from scipy.sparse import csc_matrix

        rows = np.vstack([-self.A, self.R])
        cones = [clarabel.NonnegativeConeT(len(self.c))] if len(self.c) else []
        cones += [clarabel.ZeroConeT(len(self.v))] if len(self.v) else []
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
        upper = csc_matrix(np.triu(self.Q))
        solution = clarabel.DefaultSolver(
            upper, self.p, csc_matrix(rows), np.append(-self.c, self.v), cones, settings
        ).solve()
        if "Solved" not in str(solution.status):
            raise ValueError(f"QuadraticProgramme: no solution ({solution.status}); are the constraints feasible?")
        z = np.array(solution.z)
        u = np.array(solution.x)
        a, mu = np.maximum(z[: len(self.c)], 0.0), -z[len(self.c) :]
        return Solved(u, a, mu, self.objective(u) - self.dual(a, mu))


class Solved(NamedTuple):
    """The minimiser, multipliers of the inequalities and equalities, and the duality gap that they leave.

    Parameters
    ----------
    u : ndarray
        The minimiser.
    multipliers : ndarray
        Multipliers of the inequalities.
    equality : ndarray
        Multipliers of the equalities.
    gap : float
        Duality gap that they leave.
    """

    u: np.ndarray
    multipliers: np.ndarray
    equality: np.ndarray
    gap: float


def lagrange_point(
    slope: Callable[[np.ndarray], np.ndarray],
    curve: Callable[[np.ndarray], np.ndarray],
    constraint: Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray]],
    x: Any,
    *,
    tol: float = 1e-12,
    max_iter: int = 100,
) -> tuple[np.ndarray, float]:
    """Return a stationary point x of f + lambda g, and lambda, by Newton's method on both conditions.

    `slope` and `curve` give gradient and Hessian of f; `constraint` gives value, gradient and Hessian of g,
    and g(x) = 0 is
    wanted. The point is a saddle of f + lambda g, neither its maximum nor its minimum.

    Parameters
    ----------
    slope : callable
        Gradient of the objective f.
    curve : callable
        Hessian of f.
    constraint : callable
        Value, gradient and Hessian of g, where g(x) = 0 is asked for.
    x : array-like
        Where the search begins.
    tol : float, default=1e-12
        Largest violation that ends the search.
    max_iter : int, default=100
        Largest number of steps.

    Returns
    -------
    tuple of ndarray, float
        The point and its multiplier.
    """
    x = np.array(x, dtype=np.float64)
    _, normal, _ = constraint(x)
    multiplier = -float(slope(x) @ normal) / float(normal @ normal)
    for _ in range(max_iter):
        value, normal, bend = constraint(x)
        rest = np.append(slope(x) + multiplier * normal, value)
        if np.abs(rest).max() <= tol:
            break
        matrix = np.block([[curve(x) + multiplier * bend, normal[:, None]], [normal[None, :], np.zeros((1, 1))]])
        step = np.linalg.lstsq(matrix, -rest, rcond=None)[0]
        x, multiplier = x + step[:-1], multiplier + float(step[-1])
    return x, multiplier


def rescaled(w: Any, b: float, X: Any, labels: Any) -> tuple[np.ndarray, float]:
    """Return (w, b) divided by min_i y_i (<w, x_i> + b), for a separator: then that minimum is one.

    If the minimum was above one, the rescaled w is shorter and still feasible; so at the optimum of 1/2
    |w|^2 subject to
    y_i f_i >= 1 the minimum is exactly one.

    Parameters
    ----------
    w : array-like
        Normal of the hyperplane.
    b : float
        Intercept.
    X : array-like
        Rows.
    labels : array-like
        Labels -1 and +1.

    Returns
    -------
    tuple of ndarray, float
        w and b.

    Examples
    --------
    >>> rescaled([2.0], 0.0, [[1.0], [-1.0]], [1, -1])
    (array([1.]), 0.0)
    """
    w = np.asarray(w, dtype=np.float64)
    least = float(np.min(np.asarray(labels) * (np.asarray(X, dtype=np.float64) @ w + b)))
    if not least > 0:
        raise ValueError(f"rescaled: (w, b) must separate the labels; the least y f is {least:g}.")
    return w / least, b / least


class LinearOptimum(NamedTuple):
    """x, c'x, the dual variables lambda >= 0 of A x >= b, b' lambda, and the duality gap c'x - b' lambda >= 0.

    Parameters
    ----------
    x : ndarray
        The minimiser.
    value : float
        c'x.
    dual : ndarray
        Dual variables.
    dual_value : float
        b' lambda.
    gap : float
        c'x - b' lambda.
    """

    x: np.ndarray
    value: float
    dual: np.ndarray
    dual_value: float
    gap: float


def solve(c: Any, A: Any, b: Any) -> LinearOptimum:
    """Return the minimum of c'x over all x with A x >= b, and the maximum of b' lambda, A' lambda = c, lambda >= 0.

    Both are the same (strong duality); `gap` is what the solver, HiGHS, leaves between them. A problem without a
    feasible point, or whose minimum is minus infinity, is refused.

    Parameters
    ----------
    c : array-like
        Costs c of the objective c'x.
    A : array-like
        Matrix of the constraints A x >= b.
    b : array-like
        Right-hand sides of the constraints.

    Returns
    -------
    LinearOptimum
        Minimiser, dual variables and gap.

    Raises
    ------
    ValueError
        No point is feasible, or the objective is unbounded.

    Examples
    --------
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

    Parameters
    ----------
    signed : ndarray
        Rows, those of one class negated.

    Returns
    -------
    ndarray or None
        The normal, or None.
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

    Parameters
    ----------
    X : ndarray
        Rows.
    y : ndarray
        Labels 0 and 1.
    intercept : bool
        Whether hyperplanes have an intercept.

    Returns
    -------
    ndarray or None
        Numbers of the rows, or None.
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
