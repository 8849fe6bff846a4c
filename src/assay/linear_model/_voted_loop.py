"""The compiled pass of the voted perceptron."""

import numpy as np

from assay.jit import compiled

_UNIT = 2.0**-53
_LEAST = 1e-290  # what underflow can hide


@compiled
def voted_block(
    X: np.ndarray,
    y: np.ndarray,
    order: np.ndarray,
    first: int,
    constant: float,
    W: np.ndarray,
    at: np.ndarray,
    lost: np.ndarray,
    made: int,
) -> tuple[int, int]:
    """Visit rows order[first], order[first + 1], ... of X (n, d) with classes y, and correct W on each mistake.

    W is (1, d + 1) for two classes, of which the second is the positive one, or (K, d + 1). A mistake writes its place
    in the order to `at` and the class that was taken for the right one to `lost`, from place `made` on. Returns where
    it stopped, at a row that rounding leaves open or at the end, and the number of mistakes so far.
    """
    d, outputs = X.shape[1], W.shape[0]
    for k in range(first, order.shape[0]):
        x, code = X[order[k]], y[order[k]]
        taken = _taken(x, code, constant, W)
        if taken == -2:
            return k, made
        if taken >= 0:
            at[made], lost[made] = k, taken
            made += 1
            for o in range(outputs):
                sign = 0.0
                if outputs == 1:
                    sign = 1.0 if code == 1 else -1.0
                elif o == code:
                    sign = 1.0
                elif o == taken:
                    sign = -1.0
                if sign != 0.0:
                    for j in range(d):
                        W[o, j] += sign * x[j]
                    W[o, d] += sign * constant
    return order.shape[0], made


@compiled
def _taken(x: np.ndarray, code: int, constant: float, W: np.ndarray) -> int:
    """Return -1 if x is certainly right, the class that is certainly taken for its own, or -2 if rounding leaves it
    open."""
    d, outputs = x.shape[0], W.shape[0]
    own, best, second, winner, largest, touched = 0.0, -np.inf, -np.inf, -1, 0.0, False
    for o in range(outputs):
        total, size = W[o, d] * constant, abs(W[o, d] * constant)
        touched = touched or total != 0.0
        for j in range(d):
            product = x[j] * W[o, j]
            total += product
            size += abs(product)
            touched = touched or (x[j] != 0.0 and W[o, j] != 0.0)
        largest = max(largest, size)
        if outputs == 1:
            own, best, winner = (total, -total, 0) if code == 1 else (-total, total, 1)
        elif o == code:
            own = total
        elif total > best:
            best, second, winner = total, best, o
        else:
            second = max(second, total)
    if not touched:  # every score is exactly zero
        return 0 if code != 0 else 1
    slack = 4 * (d + 4) * _UNIT * largest + _LEAST
    if own - best > 2 * slack:
        return -1
    if best - own > 2 * slack and best - second > 2 * slack:
        return winner
    return -2
