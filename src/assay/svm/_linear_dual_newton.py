"""Newton's step over the dual variables that are inside their ranges.

Once sweeps have found which dual variables are at an end of their range, what is left is a system of linear equations,
on which they are slow. With F the variables inside, A_F their rows (x_i, s), g the slopes of the dual along theta_F and
kappa the curvature of squared losses,

    (A_F A_F' + kappa) step = g

is solved by conjugate gradients, preconditioned by the diagonal and the constant column. What the step would push out
of its range is stopped at the end; on the way to that point the dual is a parabola, and its top, or the point itself if
that comes first, is taken. So the dual never falls, and a step taken before the right variables are inside costs time
only.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from assay.scan import thread_map
from assay.svm._linear_problem import Losses

_FLAT = 1e-13  # curvature of the dual, relative to that of its diagonal, that is none
_LEAST = 1e-3  # share of the diagonal that is left, at least, where the constant column is taken out of it
_ENTRIES = 2**17  # stored entries, at least, of a part of the rows that may have its own thread
_PARTS = 8

Table = tuple[np.ndarray, np.ndarray | None, np.ndarray]


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
