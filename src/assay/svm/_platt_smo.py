"""Sequential minimal optimisation as textbooks give it (Platt 1998), one pair a step, with a trace.

    minimise W(alpha) = 1/2 sum_ij alpha_i alpha_j y_i y_j K_ij - sum alpha_i,   sum alpha_i y_i = 0,  0 <=
    alpha_i <= C

A step keeps all but two variables; on the line y_1 alpha_1 + y_2 alpha_2 = const the minimum has a closed form,
which is clipped to the ends L and H of the box. The fast solver of this room makes the same steps inside larger
working sets.
"""

from typing import NamedTuple

import numpy as np


class PairStep(NamedTuple):
    """One step: the pair, the ends of its segment, eta, the new alphas, the offset and W after it."""

    i: int
    j: int
    low: float
    high: float
    eta: float
    alpha_i: float
    alpha_j: float
    b: float
    objective: float


class SmoTrace(NamedTuple):
    """Result of `smo`: multipliers, offset, steps, whether the conditions hold to `tol`."""

    alpha: np.ndarray
    b: float
    steps: list[PairStep]
    converged: bool


def box_ends(y1: float, y2: float, a1: float, a2: float, C: float) -> tuple[float, float]:
    """Return L and H: the ends for alpha_2 of the segment in which the line meets the box.

    >>> box_ends(1.0, -1.0, 0.2, 0.5, 1.0), box_ends(1.0, 1.0, 0.7, 0.5, 1.0)
    ((0.3, 1.0), (0.19999999999999996, 1.0))
    """
    if y1 != y2:
        return max(0.0, a2 - a1), min(C, C + a2 - a1)
    return max(0.0, a1 + a2 - C), min(C, a1 + a2)


def dual_objective(K: np.ndarray, y: np.ndarray, alpha: np.ndarray) -> float:
    """Return W(alpha), the dual in minimising form."""
    beta = alpha * y
    return float(0.5 * beta @ K @ beta - alpha.sum())


def pair_step(
    K: np.ndarray, y: np.ndarray, alpha: np.ndarray, errors: np.ndarray, i: int, j: int, C: float
) -> tuple[float, float, float, float, float]:
    """Return new alpha_i and alpha_j with L, H and eta for the pair (i, j); errors are E_k = g(x_k) - y_k.

    The free minimum is alpha_j + y_j (E_i - E_j) / eta, eta = K_ii + K_jj - 2 K_ij. Where eta <= 0 (equal
    points, or an
    indefinite kernel) W is compared at the two ends.
    """
    low, high = box_ends(y[i], y[j], alpha[i], alpha[j], C)
    eta = float(K[i, i] + K[j, j] - 2 * K[i, j])
    if eta > 1e-12:
        new_j = float(np.clip(alpha[j] + y[j] * (errors[i] - errors[j]) / eta, low, high))
    else:
        ends = [end for end in (low, high) if np.isfinite(end)]
        change = [_change(K, y, alpha, errors, i, j, end) for end in ends]
        best = int(np.argmin(change))
        new_j = ends[best] if change[best] < -1e-15 else float(alpha[j])
    new_i = float(alpha[i] + y[i] * y[j] * (alpha[j] - new_j))
    return _on_bound(new_i, C), _on_bound(new_j, C), low, high, eta


def _on_bound(a: float, C: float) -> float:
    """Return a, or the bound from which only rounding separates it."""
    room = 1e-13 * (C if np.isfinite(C) else 1.0)
    return 0.0 if a <= room else C if a >= C - room else a


def _change(K: np.ndarray, y: np.ndarray, alpha: np.ndarray, errors: np.ndarray, i: int, j: int, new_j: float) -> float:
    """Return how much W changes when alpha_j becomes new_j along the line."""
    t = y[j] * (new_j - alpha[j])
    eta = K[i, i] + K[j, j] - 2 * K[i, j]
    return float(0.5 * eta * t * t - t * (errors[i] - errors[j]))


def offset_after(
    K: np.ndarray,
    y: np.ndarray,
    b: float,
    errors: np.ndarray,
    pair: tuple[int, int],
    change: tuple,
    inside: tuple,
) -> float:
    """Return b after a step: from whichever of the two is free, else the mean of both values."""
    (i, j), (di, dj) = pair, change
    b1 = b - errors[i] - y[i] * K[i, i] * di - y[j] * K[i, j] * dj
    b2 = b - errors[j] - y[i] * K[i, j] * di - y[j] * K[j, j] * dj
    if inside[0]:
        return float(b1)
    return float(b2) if inside[1] else float(0.5 * (b1 + b2))


def violations(y: np.ndarray, alpha: np.ndarray, errors: np.ndarray, C: float) -> np.ndarray:
    """Return by how much each sample breaks its condition: y g >= 1 where alpha = 0, = 1 inside, <= 1
    where alpha = C."""
    r = y * errors  # y g(x) - 1
    return np.maximum(np.where(alpha < C, -r, 0.0), np.where(alpha > 0, r, 0.0))


def smo(
    K: np.ndarray,
    y: np.ndarray,
    C: float = 1.0,
    *,
    second: str = "change",
    tol: float = 1e-3,
    max_steps: int = 100_000,
    seed: int = 0,
) -> SmoTrace:
    """Solve the dual pair by pair; C = infinity is the hard margin.

    The first variable is the one that violates its condition most. `second` chooses its partner: "change"
    (largest
    |E_1 - E_2|, the fastest change), "distance" (the sample farthest from the first in feature space) or
    "random".
    A partner that allows no progress is passed over for the next.

    >>> X = np.array([[3.0, 3.0], [4.0, 3.0], [1.0, 1.0]])
    >>> trace = smo(X @ X.T, np.array([1.0, 1.0, -1.0]), C=np.inf, tol=1e-9)
    >>> np.round(trace.alpha, 6).tolist(), round(trace.b, 6)
    ([0.25, 0.0, 0.25], -2.0)
    """
    if second not in ("change", "distance", "random"):
        raise ValueError(f"smo: second must be 'change', 'distance' or 'random'; got {second!r}.")
    K, y = np.asarray(K, dtype=np.float64), np.asarray(y, dtype=np.float64)
    random = np.random.default_rng(seed)
    alpha, b = np.zeros(len(y)), 0.0
    steps: list[PairStep] = []
    errors = -y.copy()
    while len(steps) < max_steps:
        broken = violations(y, alpha, errors, C)
        if broken.max() <= tol:
            return SmoTrace(alpha, b, steps, True)
        step = _next_step(K, y, alpha, b, errors, C, second, random, broken, tol)
        if step is None:  # alpha cannot be improved; the offset of the last pair may still be off
            b, errors = _averaged_offset(K, y, alpha, C)
            return SmoTrace(alpha, b, steps, bool(violations(y, alpha, errors, C).max() <= tol))
        errors = errors + _error_change(K, y, alpha, step, b)
        b = step.b
        alpha[step.i], alpha[step.j] = step.alpha_i, step.alpha_j
        steps.append(step._replace(objective=dual_objective(K, y, alpha)))
    return SmoTrace(alpha, b, steps, False)


def _averaged_offset(K: np.ndarray, y: np.ndarray, alpha: np.ndarray, C: float) -> tuple[float, np.ndarray]:
    """Return b as the mean of y_s - sum_i alpha_i y_i K_is over the free support vectors, and the errors
    with it."""
    g = K @ (alpha * y)
    room = 1e-8 * (C if np.isfinite(C) else float(alpha.max()))
    free = (alpha > room) & (alpha < C - room)
    b = float((y - g)[free].mean()) if free.any() else 0.0
    return b, g + b - y


def _error_change(K: np.ndarray, y: np.ndarray, alpha: np.ndarray, step: PairStep, b: float) -> np.ndarray:
    di, dj = step.alpha_i - alpha[step.i], step.alpha_j - alpha[step.j]
    return y[step.i] * di * K[step.i] + y[step.j] * dj * K[step.j] + (step.b - b)


def _next_step(K, y, alpha, b, errors, C, second, random, broken, tol) -> PairStep | None:
    """Return the first step that makes progress, trying violators and partners in the order of the rules."""
    for i in np.argsort(-broken, kind="stable"):
        if broken[i] <= tol:
            return None
        order = {
            "change": lambda k: np.argsort(-np.abs(errors - errors[k]), kind="stable"),
            "distance": lambda k: np.argsort(-(np.diag(K) - 2 * K[k]), kind="stable"),
            "random": lambda k: random.permutation(len(y)),
        }[second](i)
        for j in order:
            if j == i:
                continue
            new_i, new_j, low, high, eta = pair_step(K, y, alpha, errors, i, j, C)
            if abs(new_j - alpha[j]) <= 1e-12 * (1.0 + alpha[j]):
                continue
            inside = (0 < new_i < C, 0 < new_j < C)
            new_b = offset_after(K, y, b, errors, (i, j), (new_i - alpha[i], new_j - alpha[j]), inside)
            return PairStep(int(i), int(j), low, high, eta, new_i, new_j, new_b, np.nan)
    return None
