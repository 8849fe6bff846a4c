"""Compiled passes of the perceptron, of the pocket algorithm and of the voted perceptron."""

import numpy as np

from assay.jit import compiled, prefetch
from assay.linear_model._row_loops import add, dot

_AHEAD = 6  # rows fetched before they are needed
_UNIT = 2.0**-53
_LEAST = 1e-290  # what underflow can hide


@compiled
def perceptron_block(
    X: np.ndarray,
    signs: np.ndarray,
    order: np.ndarray,
    eta: float,
    intercept: bool,
    w: np.ndarray,
    b: np.ndarray,
    at: np.ndarray,
) -> int:
    """Visit the rows of X (n, d) in `order`, update w (d,) and b (1,) on each mistake, write its row to `at`.

    Returns the number of mistakes. Strict arithmetic: the update sequence can be replayed to the last bit.
    """
    n, d = order.shape[0], X.shape[1]
    lines = min(8 * d + 64, 512)
    mistakes = 0
    for k in range(n):
        if k + _AHEAD < n:  # in random order most of the time would go into waiting for memory
            place = order[k + _AHEAD] * d * 8
            for line in range(0, lines, 64):
                prefetch(X, place + line)
        i = order[k]
        sign = signs[i]
        if sign * _score(X[i], w, b[0]) <= 0.0:
            step = eta * sign
            for j in range(d):
                w[j] += step * X[i, j]
            if intercept:
                b[0] += step
            at[mistakes] = i
            mistakes += 1
    return mistakes


@compiled
def sparse_perceptron_block(
    rows: tuple[np.ndarray, np.ndarray, np.ndarray],
    signs: np.ndarray,
    order: np.ndarray,
    eta: float,
    intercept: bool,
    w: np.ndarray,
    b: np.ndarray,
    at: np.ndarray,
) -> int:
    """Do the same for packed rows (starts, columns, values)."""
    starts, columns, values = rows
    mistakes = 0
    for i in order:
        if signs[i] * (dot(starts, columns, values, i, w) + b[0]) <= 0.0:
            add(starts, columns, values, i, eta * signs[i], w)
            if intercept:
                b[0] += eta * signs[i]
            at[mistakes] = i
            mistakes += 1
    return mistakes


@compiled
def replay_block(X: np.ndarray, signs: np.ndarray, at: np.ndarray, eta: float, intercept: bool) -> np.ndarray:
    """Return (w, b) (d + 1,) after updates on the rows `at` of X, in order: the arithmetic of
    `perceptron_block`."""
    d = X.shape[1]
    out = np.zeros(d + 1)
    for i in at:
        step = eta * signs[i]
        for j in range(d):
            out[j] += step * X[i, j]
        if intercept:
            out[d] += step
    return out


@compiled(reduction=True)
def _score(x: np.ndarray, w: np.ndarray, b: float) -> float:
    """Return <w, x> + b; the sum may be re-ordered, since only its sign counts and near ties are mistakes
    either way."""
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] * w[j]
    return total + b


@compiled
def joint_block(
    X: np.ndarray, y: np.ndarray, order: np.ndarray, eta: float, intercept: bool, W: np.ndarray, b: np.ndarray
) -> int:
    """Visit the rows of X (n, d) in `order`; where another class scores at least as much as y, add the row to the
    weights W (K, d) of y and take it from those of the best other class. Returns the number of such rows."""
    K, d = W.shape
    mistakes = 0
    for i in order:
        right, best, other = 0.0, -np.inf, -1
        for k in range(K):
            score = _score(X[i], W[k], b[k])
            if k == y[i]:
                right = score
            elif score > best:
                best, other = score, k
        if best >= right:
            mistakes += 1
            for j in range(d):
                W[y[i], j] += eta * X[i, j]
                W[other, j] -= eta * X[i, j]
            if intercept:
                b[y[i]] += eta
                b[other] -= eta
    return mistakes


@compiled
def count_errors(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    signs: np.ndarray,
    w: np.ndarray,
    b: float,
    enough: int,
) -> int:
    """Return the number of rows with y (<w, x> + b) <= 0, or `enough` as soon as there are so many."""
    errors = 0
    for i in range(signs.shape[0]):
        errors += signs[i] * (dot(starts, columns, values, i, w) + b) <= 0.0
        if errors >= enough:
            break
    return errors


@compiled
def pocket_pass(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    signs: np.ndarray,
    order: np.ndarray,
    intercept: bool,
    w: np.ndarray,
    b: np.ndarray,
    best_w: np.ndarray,
    best: np.ndarray,
    limit: int,
) -> tuple[int, bool]:
    """Visit the rows in `order`; update w (d,), b (1,) on mistakes; after each update keep the better vector.

    best holds (errors, intercept) of best_w. Stops after `limit` updates or at zero errors; returns the
    number of updates,
    and whether the pass came to its end.
    """
    updates = 0
    for i in order:
        if signs[i] * (dot(starts, columns, values, i, w) + b[0]) > 0.0:
            continue
        if updates == limit or best[0] == 0:
            return updates, False
        add(starts, columns, values, i, signs[i], w)
        if intercept:
            b[0] += signs[i]
        updates += 1
        errors = count_errors(starts, columns, values, signs, w, b[0], int(best[0]))
        if errors < best[0]:
            best[0], best[1] = errors, b[0]
            best_w[:] = w
    return updates, True


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
