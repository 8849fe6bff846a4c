"""Solvers of linear support vector machines beside Newton's method, which `_linear_problem` has.

`by_coordinates`, for many columns or sparse rows: dual coordinate descent. Sweeps over the rows in random order move
one dual variable at a time to its best value and keep u = sum theta_i (x_i, s), so that the gap is a sum of brackets
(Hsieh et al. 2008). Rows that are held at an end of their range are left out until the others have settled. Once few
variables go in or out of their range during a sweep, those inside are moved by Newton's method before the next. The
brackets met during a sweep estimate the gap for nothing; when their sum is small enough a pass over all rows settles
it.

`newton_step`, over the dual variables that are inside their ranges. Once sweeps have found which dual variables are at
an end of their range, what is left is a system of linear equations, on which they are slow. With F the variables
inside, A_F their rows (x_i, s), g the slopes of the dual along theta_F and kappa the curvature of squared losses,

    (A_F A_F' + kappa) step = g

is solved by conjugate gradients, preconditioned by the diagonal and the constant column. What the step would push out
of its range is stopped at the end; on the way to that point the dual is a parabola, and its top, or the point itself if
that comes first, is taken. So the dual never falls, and a step taken before the right variables are inside costs time
only.

`by_columns`, for sparse coefficients: the squared hinge loss with the penalty |u|_1, by coordinate descent over the
columns.

    minimise over u = (w, b / s)    P(u) = |u|_1 + sum_i c_i max(0, 1 - t_i f_i)^2

Each column moves to the optimum of a quadratic model of the losses plus |u_j| (Fan et al. 2008), and half-way back
while the objective has not fallen. Columns at zero, whose slope is well inside [-1, 1], are left out until the others
have settled. Columns that are nearly multiples of each other make it slow. The dual variables are the slopes of the
losses, shortened until |v_j| <= 1; then

    P(u) - min P  <=  |u|_1 - <u, v> + sum of brackets.

`by_interior`, for losses that grow linearly and few columns: an interior-point method on the rows near a kink. A loss
is a sum of pieces c max(0, z), z = side r - epsilon: one for a label (side = t), two for a number (side = -1, +1). A
piece far from its kink is a linear function there, and the optimum of the others is that of all as long as no piece
left out changes its sign. So: take the pieces nearest to their kinks at the optimum of a sample, solve, look at all
rows once, add the pieces that were wrong, until the duality gap over all rows is small.

The interior-point method is Mehrotra's predictor and corrector on the conditions u = a + sum alpha_k A_k,
alpha_k p_k = mu, (c_k - alpha_k) q_k = mu, with slacks q - p = z (Ferris and Munson 2002): one Hessian of the size of u
in each iteration.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from assay.data.blocks import Block
from assay.scan import Rows, thread_map
from assay.scan.memory import MemoryRows
from assay.svm._linear_problem import SMALL, Losses, Optimum, Watch, residuals, sampled_start, transposed_product

_PART = 4096  # rows in one task of a pass for the gap
_SLOW = 0.15  # fall of the logarithm of the brackets in a sweep, below which Newton's steps are tried
_SETTLED = 0.05  # share of the variables inside, of which at most so many go in or out when Newton's steps begin
_COARSE = 0.3  # accuracy of such a step, at least
_FINE = 10.0  # the accuracy, for each share that goes in or out
_FEWEST = 5  # iterations that are worth a step
_PASS = 0.6  # time of an iteration for each row, where that of a sweep is 1
_FLAT = 1e-13  # curvature of the dual, relative to that of its diagonal, that is none
_LEAST = 1e-3  # share of the diagonal that is left, at least, where the constant column is taken out of it
_ENTRIES = 2**17  # stored entries, at least, of a part of the rows that may have its own thread
_PARTS = 8
Table = tuple[np.ndarray, np.ndarray | None, np.ndarray]
_FIRST = 0.1  # slope beyond [-1, 1], at most, when the gap is first looked at
_TIGHTER = 0.1
_WHOLE = 5_000  # pieces up to which all are taken at once
_SHARE = 0.15  # of the pieces, taken first otherwise
_ROUNDS = 30
_START = 0.2  # slack beyond the kink at the start, in units of the median distance to it
_IDLE = 12  # iterations that may pass without halving the gap
_SHORT = 0.995  # of the way to the boundary
_BEYOND = 1e-4  # of the gap asked for, that the pieces taken are solved to


def by_coordinates(
    rows: MemoryRows, losses: Losses, target: float, max_iter: int, random: Any, watch: Watch
) -> Optimum:
    """Maximise the dual, at most `max_iter` sweeps, until the gap is at most `target`."""
    from assay.linear_model._row_loops import shuffle
    from assay.svm._linear_loops import row_squares, sweep

    table = packed(rows.X)
    squares = row_squares(table[0], table[2]) + losses.column**2
    kind = (losses.epsilon, losses.labels, losses.linear, losses.column)
    theta, u = np.zeros(rows.n_rows), np.zeros(rows.n_features + 1)
    if not np.isfinite(squares).all():
        return Optimum(u, theta, np.inf, np.inf, 0, "overflow")
    order = np.flatnonzero(losses.c > 0)
    active, far, n_iter, status = len(order), np.inf, 0, "max_iter"
    objective, gap, pace = losses.at_zero, losses.at_zero, _Pace()
    try:
        while n_iter < max_iter and status == "max_iter":
            visited = active
            shuffle(order[:active], int(random.randint(1, 2**62)))
            active, worst, met, inside, turned = sweep(
                *table, losses.t, losses.c, squares, *kind, order, active, far, theta, u
            )
            n_iter += 1
            far = worst if worst > 0 else np.inf
            if met <= target or n_iter == max_iter or watch.log.watched:
                objective, gap = measured(rows, table, losses, theta, u)
                status = "converged" if gap <= target else status
                if met <= target:
                    active, far = len(order), np.inf
            if watch.step(objective, gap if met <= target else met, u):
                status = "stopped"
            pace.swept(met, visited)
            most = pace.iterations(turned, inside)
            if status == "max_iter" and n_iter < max_iter and met > target and most:
                accuracy = min(_COARSE, _FINE * turned / inside)
                taken = newton_step(table, losses, squares, theta, u, accuracy, 0.5 * target, most, rows.n_jobs)
                pace.step(taken, inside)
    except KeyboardInterrupt:
        u = transposed_product(rows, losses, theta)
        objective, gap = measured(rows, table, losses, theta, u)
        status = "interrupted"
    return Optimum(u, theta, objective, gap, n_iter, status)


@dataclass
class _Pace:
    """When Newton's steps are taken: once sweeps are slow and few variables go in or out of their range, for as long as
    the steps have not taken more time than the sweeps."""

    met: float = np.inf
    fall: float = np.inf  # of log(met) in the last sweep that had no step before it
    stepped: bool = False
    credit: float = 0.0  # rows swept, less those read by the steps

    def swept(self, met: float, rows: int) -> None:
        """Note the brackets met by a sweep over so many rows."""
        if not self.stepped:
            self.fall = np.log(self.met / max(met, 1e-300))
        self.met, self.stepped = met, False
        self.credit += rows

    def iterations(self, turned: int, inside: int) -> int:
        """Return how many iterations a step may take, when so many theta are inside their range and so many turned."""
        if self.fall > _SLOW or turned > _SETTLED * inside or inside == 0:
            return 0
        most = int(self.credit / (_PASS * inside))
        return most if most >= _FEWEST else 0

    def step(self, iterations: int, inside: int) -> None:
        """Note a step of so many iterations."""
        self.stepped = True
        self.credit -= _PASS * iterations * inside


def packed(X: Any) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Return starts, columns (None if every entry is stored) and values of the rows, without a copy.

    Column numbers are read as unsigned: an index that cannot be negative is one comparison cheaper.
    """
    if hasattr(X, "indptr"):
        return X.indptr, X.indices.view(f"u{X.indices.itemsize}"), X.data
    return np.arange(len(X) + 1) * X.shape[1], None, np.ascontiguousarray(X).reshape(-1)


def measured(rows: MemoryRows, table: tuple, losses: Losses, theta: np.ndarray, u: np.ndarray) -> tuple[float, float]:
    """Return P(u) and the gap at theta, where u = sum theta_i (x_i, s)."""
    from assay.svm._linear_loops import measure

    kind = (losses.epsilon, losses.labels, losses.linear, losses.column)

    def part(first: int) -> tuple[float, float]:
        last = min(first + _PART, rows.n_rows)
        return measure(*table, losses.t, losses.c, *kind, theta, u, first, last)

    loss, brackets = np.sum(thread_map(part, range(0, rows.n_rows, _PART), n_jobs=rows.n_jobs), axis=0)
    return 0.5 * float(u @ u) + float(loss), float(brackets)


def newton_step(
    table: Table,
    losses: Losses,
    squares: np.ndarray,
    theta: np.ndarray,
    u: np.ndarray,
    accuracy: float,
    enough: float,
    most: int,
    n_jobs: int | None,
) -> int:
    """Move theta, and u = sum theta_i (x_i, s) with it, inside the face that theta is on; return the iterations.

    At most `most` of them: fewer if the residual of the equations has fallen to `accuracy` times g, or the brackets
    that are left to `enough`.
    """
    size = np.abs(theta)
    inside = np.flatnonzero((size > 0) & (size < losses.c) if losses.linear else size > 0)
    c, now, sign = losses.c[inside], theta[inside], np.sign(theta[inside])
    kappa = np.zeros_like(c) if losses.linear else 0.5 / c
    face = _Face(table, losses.column, inside, len(u), n_jobs)
    g = losses.t[inside] - face.scores(u) - losses.epsilon * sign - kappa * now

    def near(rest: np.ndarray) -> bool:
        return float(c @ (np.abs(rest) if losses.linear else rest**2)) <= enough

    solution, steps = _solved(face, kappa, squares[inside] + kappa, g, accuracy, near, most)
    end = np.where(sign > 0, c, -c) if losses.linear else np.copysign(np.inf, sign)
    new = np.clip(now + solution, np.minimum(end, 0.0), np.maximum(end, 0.0))
    step = new - now
    move = face.transposed_product(step)
    rise, curvature = float(g @ step), float(move @ move + step @ (kappa * step))
    if rise > 0 and curvature > 0:
        length = min(1.0, rise / curvature)
        theta[inside] = new if length == 1.0 else now + length * step
        u += length * move
    return steps


def _solved(
    face: "_Face",
    kappa: np.ndarray,
    diagonal: np.ndarray,
    g: np.ndarray,
    accuracy: float,
    near: Callable[[np.ndarray], bool],
    most: int,
) -> tuple[np.ndarray, int]:
    """Return the solution of the equations by conjugate gradients, and the iterations."""
    s = face.column
    scale = 1 / np.maximum(diagonal - s**2, _LEAST * diagonal)
    constant = s * scale / np.sqrt(1 + s**2 * scale.sum())

    def scaled(rest: np.ndarray) -> np.ndarray:
        """Return the solution with the diagonal matrix and the constant column alone."""
        return scale * rest - constant * float(constant @ rest)

    step, rest, direction = np.zeros_like(g), g.copy(), scaled(g)
    size = float(rest @ direction)
    least = accuracy**2 * size
    k = 0
    while k < most:
        if not size > least or near(rest):
            break
        k += 1
        product = face.scores(face.transposed_product(direction)) + kappa * direction
        curvature = float(direction @ product)
        if not curvature > _FLAT * float(direction @ (diagonal * direction)):  # rows that depend on each other
            break
        length = size / curvature
        step += length * direction
        rest -= length * product
        ahead = scaled(rest)
        size, before = float(rest @ ahead), size
        direction = ahead + (size / before) * direction
    return step, k


class _Face:
    """The rows (x_i, s) of some dual variables, in parts that depend on the data alone.

    Sparse rows are copied, so that a pass reads them in one go.
    """

    def __init__(self, table: Table, column: float, rows: np.ndarray, width: int, n_jobs: int | None):
        from assay.svm import _linear_loops as loops

        self.loops, self.column, self.width, self.n_jobs = loops, column, width, n_jobs
        sparse = table[1] is not None
        self.table = loops.gathered(*table, rows) if sparse else table
        self.rows = np.arange(len(rows)) if sparse else rows
        entries = self.table[2].size if sparse else len(rows) * width
        count = min(max(entries // max(4 * width, _ENTRIES), 1), _PARTS)
        self.parts = [slice(*cut) for cut in pairwise(np.linspace(0, len(rows), count + 1).astype(int))]

    def scores(self, v: np.ndarray) -> np.ndarray:
        """Return <(x_i, s), v> of each row."""

        def part(own: slice) -> np.ndarray:
            return self.loops.scores_of(*self.table, self.column, self.rows[own], v)

        return np.concatenate(thread_map(part, self.parts, n_jobs=self.n_jobs))

    def transposed_product(self, factors: np.ndarray) -> np.ndarray:
        """Return the sum of factors_i (x_i, s)."""

        def part(own: slice) -> np.ndarray:
            return self.loops.transposed_product(*self.table, self.column, self.rows[own], factors[own], self.width)

        return np.sum(thread_map(part, self.parts, n_jobs=self.n_jobs), axis=0)


def by_columns(rows: MemoryRows, losses: Losses, target: float, max_iter: int, random: Any, watch: Watch) -> Optimum:
    """Minimise over the columns in random order, at most `max_iter` sweeps, until the gap is at most `target`."""
    from assay.linear_model._row_loops import shuffle
    from assay.svm._linear_loops import sweep_columns

    table = _by_column(rows.X)
    u, slack = np.zeros(rows.n_features + 1), np.ones(rows.n_rows)
    order = np.arange(rows.n_features + (losses.column > 0))
    active, far, look, n_iter, status = len(order), np.inf, _FIRST, 0, "max_iter"
    theta, objective, gap = np.zeros(rows.n_rows), losses.at_zero, losses.at_zero
    try:
        while n_iter < max_iter and status == "max_iter":
            shuffle(order[:active], int(random.randint(1, 2**62)))
            active, worst = sweep_columns(*table, losses.t, losses.c, losses.column, order, active, far, slack, u)
            n_iter, far = n_iter + 1, worst
            objective = float(np.abs(u).sum()) + losses.total(losses.t * slack, losses.t, losses.c)
            if worst <= look or n_iter == max_iter or watch.log.watched:
                slack = 1 - losses.t * _scores(rows, losses, u)  # afresh, so that rounding does not pile up
                theta, objective, gap = _measured(rows, losses, u, slack)
                status = "converged" if gap <= target else status
            if worst <= look:
                look, active, far = _TIGHTER * worst, len(order), np.inf
            if not np.isfinite(objective):
                status = "overflow"
            elif watch.step(objective, gap, u):
                status = "stopped"
    except KeyboardInterrupt:
        theta, objective, gap = _measured(rows, losses, u, 1 - losses.t * _scores(rows, losses, u))
        status = "interrupted"
    return Optimum(u, theta, objective, gap, n_iter, status)


def _by_column(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return starts, rows (none if every entry is stored) and values of the columns."""
    if hasattr(X, "indptr"):
        columns = X.tocsc()
        return columns.indptr, columns.indices.view(f"u{columns.indices.itemsize}"), columns.data
    n, d = X.shape
    return np.arange(d + 1) * n, np.empty(0, np.uint32), np.ascontiguousarray(X.T).reshape(-1)


def _scores(rows: MemoryRows, losses: Losses, u: np.ndarray) -> np.ndarray:
    return rows.X @ u[:-1] + losses.column * u[-1]


def _measured(rows: MemoryRows, losses: Losses, u: np.ndarray, slack: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return feasible dual variables, P(u) and the gap there."""
    beyond = np.maximum(slack, 0.0)
    theta = 2 * losses.c * losses.t * beyond
    v = np.append(rows.X.T @ theta, losses.column * theta.sum())
    shorten = 1 / max(1.0, float(np.abs(v).max()))
    size, theta = float(np.abs(u).sum()), shorten * theta
    gap = size - shorten * float(u @ v) + float(losses.brackets(losses.t * slack, theta).sum())
    return theta, size + float(losses.c @ beyond**2), gap


def by_interior(rows: Rows, losses: Losses, target: float, max_iter: int, watch: Watch | None) -> Optimum:
    """Minimise losses that grow linearly."""
    u = sampled_start(by_interior, rows, losses, target, max_iter)
    side, owner = _pieces(losses)
    c, m = losses.c[owner], side * losses.t[owner] - losses.epsilon
    z = side * residuals(rows, losses, u)[owner] - losses.epsilon
    taken, on, steps = _nearest(z, c), z > 0, 0
    least = max(_BEYOND * target, SMALL * losses.at_zero)
    for _ in range(_ROUNDS):
        kept, fixed = np.flatnonzero(taken), np.where(on & ~taken, c, 0.0)
        a = transposed_product(rows, losses, _by_row(side * fixed, losses))
        A = side[kept, None] * _gathered(rows, losses, owner[kept])
        near = Pieces(A, m[kept], c[kept], a, float(fixed @ m))
        result = interior_point(near, u, least, max_iter - steps, watch)
        u, steps, status = result.u, steps + result.n_iter, result.status
        fixed[kept] = result.alpha
        theta = np.clip(_by_row(side * fixed, losses), -losses.c, losses.c)
        r = residuals(rows, losses, u)
        gap = 0.5 * result.apart**2 + float(losses.brackets(r, theta).sum())
        wrong = ~taken & (c > 0) & (on != (side * r[owner] > losses.epsilon))
        status = "converged" if gap <= target else status
        if status != "at rest" or (taken | (c == 0)).all():
            break
        if not wrong.any():  # the pieces taken were too few to start from: all of them, from the beginning
            wrong, u = c > 0, np.zeros_like(u)
        taken |= wrong
    return Optimum(u, theta, 0.5 * float(u @ u) + losses.total(r, losses.t, losses.c), gap, steps, status)


def _pieces(losses: Losses) -> tuple[np.ndarray, np.ndarray]:
    """Return side and row of each piece."""
    n = len(losses.t)
    if losses.labels:
        return losses.t, np.arange(n)
    return np.repeat([1.0, -1.0], n), np.tile(np.arange(n), 2)


def _by_row(values: np.ndarray, losses: Losses) -> np.ndarray:
    """Return the sum over the pieces of each row."""
    return values if losses.labels else values.reshape(2, -1).sum(axis=0)


def _nearest(z: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Tell which pieces to begin with."""
    if len(z) <= _WHOLE:
        return c > 0
    size = max(_WHOLE, int(_SHARE * len(z)))
    distance = np.where(c > 0, np.abs(z), np.inf)
    return distance <= np.partition(distance, size)[size]


def _gathered(rows: Rows, losses: Losses, chosen: np.ndarray) -> np.ndarray:
    """Return (x_i, s) of the chosen rows, in the order given."""
    wanted = np.zeros(rows.n_rows, dtype=bool)
    wanted[chosen] = True
    X = np.concatenate(rows.map(_pick, wanted))
    place = np.cumsum(wanted) - 1
    return np.column_stack([X[place[chosen]], np.full(len(chosen), losses.column)])


def _pick(block: Block, wanted: np.ndarray) -> np.ndarray:
    return block.X[wanted[block.start : block.start + len(block.X)]]


class Pieces(NamedTuple):
    """1/2 |u|^2 - <a, u> + sum_k c_k max(0, m_k - <A_k, u>) + constant."""

    A: np.ndarray
    m: np.ndarray
    c: np.ndarray
    a: np.ndarray
    constant: float

    def value(self, u: np.ndarray) -> float:
        losses = self.c @ np.maximum(self.m - self.A @ u, 0.0)
        return 0.5 * float(u @ u) - float(self.a @ u) + float(losses) + self.constant


class Inside(NamedTuple):
    """The best iterate: u, alpha in (0, c), |u - a - A' alpha|; iterations, and why they ended ("at rest": the gap is
    met, or falls no more)."""

    u: np.ndarray
    alpha: np.ndarray
    apart: float
    n_iter: int
    status: str


def interior_point(pieces: Pieces, u: np.ndarray, target: float, max_iter: int, watch: Watch | None) -> Inside:
    """Minimise over u until the duality gap is at most `target`, or rounding stops its fall."""
    A, m, c, a, _ = pieces
    z = m - A @ u
    spread = _START * max(float(np.median(np.abs(z))), 1e-3)
    q, p = np.maximum(z, 0.0) + spread, np.maximum(-z, 0.0) + spread
    alpha = _balanced(A, c, c * q / (q + p), u - a)
    best, least, idle, k, status = Inside(u, alpha, np.inf, 0, ""), np.inf, 0, 0, "max_iter"
    try:
        while True:
            z, rest = m - A @ u, u - a - alpha @ A
            gap = float((c - alpha) @ np.maximum(z, 0.0) + alpha @ np.maximum(-z, 0.0)) + 0.5 * float(rest @ rest)
            idle = 0 if gap < 0.5 * least else idle + 1
            if gap < least:
                best, least = Inside(u, alpha, float(np.linalg.norm(rest)), k, ""), gap
            if k and watch is not None and watch.step(pieces.value(best.u), least, best.u):
                status = "stopped"
                break
            if gap <= target or idle > _IDLE:
                status = "at rest"
                break
            if k == max_iter:
                break
            moves = _moves(A, c, alpha, p, q, rest, q - p - z)
            u, alpha, p, q = (now + move for now, move in zip((u, alpha, p, q), moves, strict=True))
            k += 1
    except KeyboardInterrupt:
        status = "interrupted"
    except LinAlgError:  # the Hessian's numbers spread too far to be factored
        status = "at rest"
    return best._replace(n_iter=k, status=status)


def _balanced(A: np.ndarray, c: np.ndarray, alpha: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return alpha moved towards A' alpha = v, by least squares in the scale of each one's room, within its range."""
    room = alpha * (c - alpha) / c
    H = (A * room[:, None]).T @ A
    H[np.diag_indices(len(H))] += 1e-9 * np.trace(H) + 1e-300
    moved = alpha + room * (A @ np.linalg.solve(H, v - alpha @ A))
    return np.clip(moved, 0.05 * c, 0.95 * c)


def _moves(
    A: np.ndarray,
    c: np.ndarray,
    alpha: np.ndarray,
    p: np.ndarray,
    q: np.ndarray,
    rest: np.ndarray,
    slip: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Return the moves of u, alpha, p and q: a look along Newton's direction, then a step towards the centre."""
    beta = c - alpha
    D = p / alpha + q / beta
    scaled = A / np.sqrt(D)[:, None]
    H = scaled.T @ scaled
    H[np.diag_indices(len(H))] += 1.0
    if not np.isfinite(H).all():
        raise LinAlgError
    factor = cho_factor(H)

    def newton(e: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, ...]:
        """Solve for moves with alpha dp + p da = e, beta dq - q da = g, and both linear equations met."""
        residual = e / alpha - g / beta - slip
        right = (residual / D) @ A - rest
        if not np.isfinite(right).all():  # an alpha has come to its bound exactly
            raise LinAlgError
        du = cho_solve(factor, right)
        da = (residual - A @ du) / D
        return du, da, (e - p * da) / alpha, (g + q * da) / beta

    def length(da: np.ndarray, dp: np.ndarray, dq: np.ndarray) -> float:
        return min(1.0, _SHORT / max(np.max(-da / alpha), np.max(da / beta), np.max(-dp / p), np.max(-dq / q), 1e-300))

    mu = float(alpha @ p + beta @ q)
    _, da, dp, dq = newton(-alpha * p, -beta * q)
    s = length(da, dp, dq)
    ahead = float((alpha + s * da) @ (p + s * dp) + (beta - s * da) @ (q + s * dq))
    centre = (ahead / mu) ** 3 * mu / (2 * len(c))
    moves = newton(centre - alpha * p - da * dp, centre - beta * q + da * dq)
    s = length(*moves[1:])
    return tuple(s * move for move in moves)
