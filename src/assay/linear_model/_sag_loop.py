"""A compiled epoch of stochastic average gradients over sparse rows; see `_sag`."""

from math import exp
from typing import NamedTuple

import numpy as np

from assay.jit import compiled


class Steps(NamedTuple):
    """The length of a step, the weight of 1/2 |w|^2 beside the mean loss, and the share of the rate for b."""

    length: float
    alpha: float
    intercept: float


@compiled
def average_gradient_epoch(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    y: np.ndarray,
    costs: np.ndarray,
    steps: Steps,
    w: np.ndarray,
    total: np.ndarray,
    memory: np.ndarray,
    state: np.ndarray,
    drawn: np.uint32,
) -> np.uint32:
    """Make as many updates as there are rows, each from a row drawn with replacement, at the mean of the last gradient
    of every row seen; return the state of the generator (xorshift32).

    w (d,) and `total` (d,), the sum of the gradients in `memory` times their rows, are brought up to date in place, and
    so is `state`: b, the sum of the gradients by b, and the number of rows seen; `memory` is NaN for rows not yet seen.
    w is s v; a coefficient that the row does not touch is moved when it is needed again, by what `moved` has grown.
    """
    n, s, moved = y.shape[0], 1.0, 0.0
    last = np.zeros(w.shape[0])
    b, by_b, seen = state[0], state[1], state[2]
    for _ in range(n):
        drawn ^= np.uint32(drawn << np.uint32(13))
        drawn ^= np.uint32(drawn >> np.uint32(17))
        drawn ^= np.uint32(drawn << np.uint32(5))
        i = np.int64(drawn & np.uint32(0x7FFFFFFF)) % n
        f = 0.0
        for e in range(starts[i], starts[i + 1]):
            j = columns[e]
            w[j] -= (moved - last[j]) * total[j]
            last[j] = moved
            f += values[e] * w[j]
        z = y[i] * (s * f + b)
        gradient = -y[i] * costs[i] / (1.0 + exp(z)) if z < 700.0 else 0.0
        before = memory[i]
        if np.isnan(before):
            seen += 1.0
            before = 0.0
        memory[i] = gradient
        for e in range(starts[i], starts[i + 1]):
            total[columns[e]] += (gradient - before) * values[e]
        by_b += gradient - before
        b -= steps.intercept * steps.length * by_b / seen
        s *= 1.0 - steps.length * steps.alpha
        moved += steps.length / (s * seen)
        if s < 1e-9:
            _flush(w, total, last, moved, s)
            s, moved = 1.0, 0.0
    _flush(w, total, last, moved, s)
    state[0], state[1], state[2] = b, by_b, seen
    return drawn


@compiled
def _flush(w: np.ndarray, total: np.ndarray, last: np.ndarray, moved: float, s: float) -> None:
    """Move every coefficient by what it lags behind, and make w, kept as s v, itself again."""
    for j in range(w.shape[0]):
        w[j] = s * (w[j] - (moved - last[j]) * total[j])
        last[j] = 0.0
