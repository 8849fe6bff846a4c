"""Lloyd's algorithm over any passes: nearest centres, means, until no row moves or the centres hardly do."""

from typing import Any, NamedTuple

import numpy as np


class Found(NamedTuple):
    """Where one run ended."""

    centers: np.ndarray
    labels: np.ndarray
    inertia: float
    n_iter: int
    distances: int
    converged: bool


def descend(passes: Any, centers: np.ndarray, max_iter: int, tol: float, log: Any, tell: bool = False) -> Found:
    """Alternate from `centers` until no row changes its centre or the squared movement of all is at most `tol`; `tell`
    prints a line for each iteration.

    The objective that is logged is that of the new means and the rows they are the means of,
    sum w |x - o|^2 - sum_j |sum of w (x - o) over cluster j|^2 / (weight of j), o the mean of all rows.
    """
    passes.begin(centers)
    if tell:
        print("Initialization complete")
    distances, still, n_iter = 0, False, 0
    for n_iter in range(1, max_iter + 1):
        found = passes.assign(centers)
        distances += found.computed
        moved = _means(passes, centers, found.sums, found.counts)
        movement = float(np.sum((moved - centers) ** 2))
        centers, still = moved, found.changed == 0
        objective = _objective(passes.known.total, found)
        stop = log.step(objective, movement, **passes_state(centers, n_iter))
        if tell:
            print(f"Iteration {n_iter}, inertia {objective:.6g}.")
        if still or movement <= tol or stop:
            if tell:
                near = "strict convergence" if still else f"center shift {movement:.6g} within tolerance {tol:.6g}"
                print(f"Ended at iteration {n_iter}: {near}.")
            break
    if not still:
        passes.assign(centers)
    inertia = passes.inertia(centers)
    return Found(centers, passes.labels, float(inertia), n_iter, distances, still or movement <= tol)


def passes_state(centers: np.ndarray, n_iter: int) -> dict[str, Any]:
    """Return what makes a learner usable in the middle of a run."""
    return {"cluster_centers_": centers, "n_iter_": n_iter}


def _objective(total: float, found: Any) -> float:
    full = found.counts > 0
    return max(total - float(np.sum(np.sum(found.sums[full] ** 2, axis=1) / found.counts[full])), 0.0)


def _means(passes: Any, centers: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the mean of each cluster. A centre without rows takes over the row that is farthest from its own centre,
    as long as one is away from it; otherwise it stays."""
    empty = np.flatnonzero(counts <= 0)
    if len(empty):
        origin, moved = passes.known.origin, counts > 0
        sums, counts = sums.copy(), counts.copy()
        for j, (square, x, weight, own) in zip(empty, passes.farthest(centers, len(empty))):
            if square > 0 and weight > 0 and counts[own] > weight:
                sums[j], counts[j] = weight * (x - origin), weight
                sums[own] -= sums[j]
                counts[own] -= weight
                moved[j] = True
    else:
        moved = np.ones(len(counts), dtype=bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = passes.known.origin + sums / counts[:, None]
    return np.where(moved[:, None], means, centers)
