"""Dual coordinate descent for linear support vector machines, for many columns or sparse rows.

Sweeps over the rows in random order move one dual variable at a time to its best value and keep u = sum theta_i
(x_i, s), so that the gap is a sum of brackets (Hsieh et al. 2008). Rows that are held at an end of their range are
left out until the others have settled. Once few variables go in or out of their range during a sweep, those inside are
moved by Newton's method (`_linear_dual_newton`) before the next. The brackets met during a sweep estimate the gap for
nothing; when their sum is small enough a pass over all rows settles it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.scan import thread_map
from assay.scan.memory import MemoryRows
from assay.svm._linear_dual_newton import newton_step
from assay.svm._linear_problem import Losses, Optimum, Watch, transposed_product

_PART = 4096  # rows in one task of a pass for the gap
_SLOW = 0.15  # fall of the logarithm of the brackets in a sweep, below which Newton's steps are tried
_SETTLED = 0.05  # share of the variables inside, of which at most so many go in or out when Newton's steps begin
_COARSE = 0.3  # accuracy of such a step, at least
_FINE = 10.0  # the accuracy, for each share that goes in or out
_FEWEST = 5  # iterations that are worth a step
_PASS = 0.6  # time of an iteration for each row, where that of a sweep is 1


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
