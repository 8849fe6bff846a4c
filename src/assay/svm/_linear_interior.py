"""Losses that grow linearly, few columns: an interior-point method on the rows near a kink.

A loss is a sum of pieces c max(0, z), z = side r - epsilon: one for a label (side = t), two for a number (side = -1,
+1). A piece far from its kink is a linear function there, and the optimum of the others is that of all as long as no
piece left out changes its sign. So: take the pieces nearest to their kinks at the optimum of a sample, solve, look at
all rows once, add the pieces that were wrong, until the duality gap over all rows is small.

The interior-point method is Mehrotra's predictor and corrector on the conditions u = a + sum alpha_k A_k,
alpha_k p_k = mu, (c_k - alpha_k) q_k = mu, with slacks q - p = z (Ferris and Munson 2002): one Hessian of the size of u
in each iteration.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from assay.data.blocks import Block
from assay.scan import Rows
from assay.svm._linear_problem import SMALL, Losses, Optimum, Watch, residuals, sampled_start, transposed_product

_WHOLE = 5_000  # pieces up to which all are taken at once
_SHARE = 0.15  # of the pieces, taken first otherwise
_ROUNDS = 30
_START = 0.2  # slack beyond the kink at the start, in units of the median distance to it
_IDLE = 12  # iterations that may pass without halving the gap
_SHORT = 0.995  # of the way to the boundary
_BEYOND = 1e-4  # of the gap asked for, that the pieces taken are solved to


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
        found = interior_point(near, u, least, max_iter - steps, watch)
        u, steps, status = found.u, steps + found.n_iter, found.status
        fixed[kept] = found.alpha
        theta = np.clip(_by_row(side * fixed, losses), -losses.c, losses.c)
        r = residuals(rows, losses, u)
        gap = 0.5 * found.apart**2 + float(losses.brackets(r, theta).sum())
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
