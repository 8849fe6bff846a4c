"""Compiled epochs of stochastic gradient descent, and of stochastic average gradients, over packed rows.

Losses, rules and schedules go by their numbers.
"""

from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np

from assay.jit import compiled, prefetch
from assay.linear_model._row_loops import add, dot
from assay.losses.compiled import LOG_LOSS, loss_and_slope

_AHEAD = 6  # rows fetched before they are needed
PASSIVE = 5  # the first of the numbers of passive-aggressive steps, after those of all schedules


class Objective(NamedTuple):
    """A loss by its number, the width of its zone without loss, the weight of the L2 penalty, and the share of the rate
    at which b moves: 0 if there is none, 1 if its rate is that of w."""

    loss: int
    epsilon: float
    alpha: float
    intercept: float


class Averaging(NamedTuple):
    """The weight of |w|_1 beside the L2 penalty of `Objective`, and the update after which iterates are averaged; 0:
    they are not."""

    l1: float
    after: int


class Rates(NamedTuple):
    """A schedule of learning rates; its number is its place in `assay.optim.descent.SCHEDULES`, or one of the two after
    these: passive-aggressive steps, whose length follows from the loss of the row (`_share_of_step`)."""

    schedule: int
    eta: float
    decay: float


class UpdateRule(NamedTuple):
    """A rule of updates; its number is its place in `assay.optim.descent.RULES`."""

    rule: int
    inertia: float
    memory: float
    eps: float


@compiled
def rate(rates: Rates, t: int) -> float:
    """Return the learning rate after t updates."""
    if rates.schedule == 0 or rates.schedule >= PASSIVE:
        return rates.eta
    if rates.schedule == 3:
        return 1.0 / (rates.decay * t + 1.0 / rates.eta)
    if rates.schedule == 4:
        return rates.eta / (t + 1.0) ** rates.decay
    slow = 1.0 + rates.decay * t
    return rates.eta / (slow if rates.schedule == 1 else sqrt(slow))


@compiled
def _share_of_step(rates: Rates, loss: float, square: float) -> float:
    """Return the share of eta that a row's step takes: all of it, or, passive-aggressive, what makes its loss zero, at
    most all of it (the first kind), or damped (the second). Crammer et al. 2006, for losses whose slope is 1 or -1."""
    if rates.schedule < PASSIVE:
        return 1.0
    if square == 0.0:
        return 0.0
    if rates.schedule == PASSIVE:
        return min(1.0, loss / (square * rates.eta))
    return loss / (square * rates.eta + 0.5)


@compiled(reduction=True)
def row_squares(starts: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return |x_i|^2 of each packed row."""
    squares = np.empty(starts.shape[0] - 1)
    for i in range(squares.shape[0]):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * values[k]
        squares[i] = total
    return squares


@compiled(reduction=True)
def dense_epoch(
    X: np.ndarray,
    objective: Objective,
    y: np.ndarray,
    costs: np.ndarray,
    squares: np.ndarray,
    order: np.ndarray,
    rates: Rates,
    t: int,
    w: np.ndarray,
    b: np.ndarray,
) -> tuple[float, float, float]:
    """Visit each row once, w <- (1 - step alpha) w - step cost slope x; return the mean loss, that without
    the weights of the rows, and the mean penalty met on the way.

    `costs` are the weights of the rows, empty if all are one; `squares` their |x|^2, empty if the penalty is not
    asked for.

    w is kept as a number times a vector, so that the penalty costs one product a row; |w|^2 is brought up to date from
    <w, x> and |x|^2. Rows are asked for before they are needed: in random order most of the time would go into waiting
    for memory.
    """
    n, d, weighted, measured = order.shape[0], w.shape[0], costs.size > 0, squares.size > 0
    stretch, total, bias, product = 1.0, 0.0, b[0], 1.0
    plain, square, met = 0.0, _square(w), 0.0
    lines = min(d * 8 + 64, 512)
    for k in range(n):
        if k + _AHEAD < n:
            place = order[k + _AHEAD] * d * 8
            for line in range(0, lines, 64):
                prefetch(X, place + line)
        x = X[order[k]]
        f = 0.0
        for j in range(d):
            f += x[j] * w[j]
        inner = stretch * f
        f = inner + bias
        if objective.loss == LOG_LOSS and not weighted:  # one logarithm for the product of many factors 1 + exp(-|z|)
            z = y[order[k]] * f
            small = exp(-abs(z))
            slope = -y[order[k]] * (small if z > 0 else 1.0) / (1.0 + small)
            total += max(-z, 0.0)
            product *= 1.0 + small
            if k % 256 == 255:
                total += log(product)
                product = 1.0
        else:
            loss, slope = loss_and_slope(objective.loss, objective.epsilon, y[order[k]], f)
            plain += loss
            if rates.schedule >= PASSIVE:
                slope *= _share_of_step(rates, loss, squares[order[k]])
            if weighted:
                loss, slope = costs[order[k]] * loss, costs[order[k]] * slope
            total += loss
        met += square
        step = rate(rates, t + k)
        kept = max(0.0, 1.0 - step * objective.alpha)
        stretch *= kept
        if stretch <= 0.0:  # a step that long sets the coefficients to zero
            w[:] = 0.0
            stretch = 1.0
        if measured:
            square = _moved_square(square, inner, squares[order[k]], kept, -step * slope)
        if slope != 0.0:
            factor = -step * slope / stretch
            for j in range(d):
                w[j] += factor * x[j]
            bias -= objective.intercept * step * slope
        if stretch < 1e-6:
            for j in range(d):
                w[j] *= stretch
            stretch = 1.0
    for j in range(d):
        w[j] *= stretch
    b[0] = bias
    total += log(product)
    return total / n, (plain if weighted else total) / n, 0.5 * objective.alpha * met / n


@compiled
def _square(w: np.ndarray) -> float:
    total = 0.0
    for j in range(w.shape[0]):
        total += w[j] * w[j]
    return total


@compiled
def _moved_square(square: float, inner: float, length: float, kept: float, move: float) -> float:
    """Return |kept w + move x|^2, given |w|^2, <w, x> and |x|^2."""
    return max(0.0, kept * kept * square + move * (2.0 * kept * inner + move * length))


@compiled
def sparse_epoch(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    y: np.ndarray,
    costs: np.ndarray,
    squares: np.ndarray,
    order: np.ndarray,
    objective: Objective,
    rates: Rates,
    t: int,
    w: np.ndarray,
    b: np.ndarray,
) -> tuple[float, float, float]:
    """Do the same for packed rows; an update touches the entries of its row alone."""
    n, weighted, measured = order.shape[0], costs.size > 0, squares.size > 0
    stretch, total, plain, bias, square, met = 1.0, 0.0, 0.0, b[0], _square(w), 0.0
    for k in range(n):
        if k + _AHEAD < n:
            _fetch(starts, columns, values, order[k + _AHEAD])
        i = order[k]
        first, last = starts[i], starts[i + 1]
        inner = 0.0
        for e in range(first, last):
            inner += values[e] * w[columns[e]]
        inner *= stretch
        loss, slope = loss_and_slope(objective.loss, objective.epsilon, y[i], inner + bias)
        plain += loss
        if rates.schedule >= PASSIVE:
            slope *= _share_of_step(rates, loss, squares[i])
        if weighted:
            loss, slope = costs[i] * loss, costs[i] * slope
        step = rate(rates, t + k)
        total += loss
        met += square
        kept = max(0.0, 1.0 - step * objective.alpha)
        stretch *= kept
        if stretch <= 0.0:
            w[:] = 0.0
            stretch = 1.0
        if measured:
            square = _moved_square(square, inner, squares[i], kept, -step * slope)
        if slope != 0.0:
            factor = -step * slope / stretch
            for e in range(first, last):
                w[columns[e]] += factor * values[e]
            bias -= objective.intercept * step * slope
        if stretch < 1e-6:
            w *= stretch
            stretch = 1.0
    w *= stretch
    b[0] = bias
    return total / n, plain / n, 0.5 * objective.alpha * met / n


@compiled
def _fetch(starts: np.ndarray, columns: np.ndarray, values: np.ndarray, i: int) -> None:
    """Ask for the first entries of row i."""
    first, size = starts[i], min(starts[i + 1] - starts[i], 64)
    for e in range(0, size, 8):
        prefetch(values, 8 * (first + e))
    for e in range(0, size, 16):
        prefetch(columns, 4 * (first + e))


@compiled
def averaged_epoch(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    y: np.ndarray,
    costs: np.ndarray,
    squares: np.ndarray,
    order: np.ndarray,
    objective: Objective,
    averaging: Averaging,
    rates: Rates,
    t: int,
    w: np.ndarray,
    b: np.ndarray,
    mean: np.ndarray,
    pulled: np.ndarray,
) -> tuple[float, float, float]:
    """Do the same with an L1 penalty, with averaged iterates, or both.

    Each update pulls the coefficients of its row towards zero by what the penalty has asked for so far and `pulled`,
    its d + 1st entry the sum of what was asked, has not yet given: so small steps add up to exact zeros (Tsuruoka,
    Tsujii and Ananiadou 2009). `mean` (d + 1) is the average of (w, b).

    w is s v, so that an update costs as much as its row has entries. The sum of all iterates is then S v - lag, S
    the sum of the s: whatever moves v by u adds S u to `lag`, for the iterates before it did not have it.
    """
    n, d, weighted = order.shape[0], w.shape[0], costs.size > 0
    lag, s, S, counted = np.zeros(d), 1.0, 0.0, max(0, t + 1 - averaging.after)
    total, plain, bias, square, met, lengths = 0.0, 0.0, b[0], _square(w), 0.0, np.abs(w).sum()
    mean[:] *= counted
    for k in range(n):
        i = order[k]
        first, last = starts[i], starts[i + 1]
        inner = 0.0
        for e in range(first, last):
            inner += values[e] * w[columns[e] if columns.size else e - first]
        inner *= s
        loss, slope = loss_and_slope(objective.loss, objective.epsilon, y[i], inner + bias)
        plain += loss
        if rates.schedule >= PASSIVE:
            slope *= _share_of_step(rates, loss, squares[i])
        if weighted:
            loss, slope = costs[i] * loss, costs[i] * slope
        step = rate(rates, t + k)
        total += loss
        met += 0.5 * objective.alpha * square + averaging.l1 * s * lengths
        kept = max(0.0, 1.0 - step * objective.alpha)
        s *= kept
        square = _moved_square(square, inner, squares[i], kept, -step * slope) if squares.size else 0.0
        if s < 1e-6:
            _fold(w, lag, mean, s, S)
            s, S, lengths = 1.0, 0.0, np.abs(w).sum()
        if slope != 0.0:
            factor = -step * slope / s
            for e in range(first, last):
                j = columns[e] if columns.size else e - first
                move = factor * values[e]
                lengths += abs(w[j] + move) - abs(w[j])
                w[j] += move
                lag[j] += S * move
            bias -= objective.intercept * step * slope
        if averaging.after > 0 and t + k + 1 >= averaging.after:
            S += s
            counted += 1
            mean[d] += bias
        if averaging.l1 > 0.0:
            pulled[d] += step * averaging.l1
            for e in range(first, last):
                j = columns[e] if columns.size else e - first
                before = w[j]
                w[j] = _pulled_in(before, pulled[d], pulled[j], s)
                move = w[j] - before
                pulled[j] += s * move
                lengths += abs(w[j]) - abs(before)
                square += s * s * move * (w[j] + before)
                lag[j] += S * move
    _fold(w, lag, mean, s, S)
    if counted:
        mean /= counted
    b[0] = bias
    return total / n, plain / n, met / n


@compiled
def _pulled_in(v: float, asked: float, given: float, s: float) -> float:
    """Return a coefficient s v, over s, after the pull towards zero that was asked for and not yet given."""
    if v > 0.0:
        return max(0.0, v - (asked + given) / s)
    return min(0.0, v + (asked - given) / s) if v < 0.0 else v


@compiled
def _fold(w: np.ndarray, lag: np.ndarray, mean: np.ndarray, s: float, S: float) -> None:
    """Add the sum of the iterates since the last call to `mean`, and make w, kept as s v, itself again."""
    for j in range(w.shape[0]):
        mean[j] += S * w[j] - lag[j]
        lag[j] = 0.0
        w[j] *= s


@compiled
def batch_epoch(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    y: np.ndarray,
    costs: np.ndarray,
    order: np.ndarray,
    batch: int,
    objective: Objective,
    update: UpdateRule,
    rates: Rates,
    t: int,
    w: np.ndarray,
    b: np.ndarray,
    state: np.ndarray,
) -> tuple[float, float, float]:
    """Visit the rows in batches, one update each by the rule of that number; state (2, d + 1); return the
    mean loss, that without weights, and the mean penalty met."""
    n, d, weighted = order.shape[0], w.shape[0], costs.size > 0
    gradient, total, plain, met = np.zeros(d + 1), 0.0, 0.0, 0.0
    for start in range(0, n, batch):
        size = min(batch, n - start)
        gradient[:] = 0.0
        met += size * _square(w)
        for k in range(start, start + size):
            i = order[k]
            f = dot(starts, columns, values, i, w) + b[0]
            loss, slope = loss_and_slope(objective.loss, objective.epsilon, y[i], f)
            plain += loss
            if weighted:
                loss, slope = costs[i] * loss, costs[i] * slope
            total += loss
            if slope != 0.0:
                add(starts, columns, values, i, slope / size, gradient[:d])
                gradient[d] += slope / size
        for j in range(d):
            gradient[j] += objective.alpha * w[j]
        eta_t = rate(rates, t)
        for j in range(d + 1 if objective.intercept > 0.0 else d):
            move = _move(update, state, j, gradient[j], eta_t, t)
            if j < d:
                w[j] += move
            else:
                b[0] += move
        t += 1
    return total / n, plain / n, 0.5 * objective.alpha * met / n


@compiled
def _move(update: UpdateRule, state: np.ndarray, j: int, g: float, eta: float, t: int) -> float:
    """Return what the rule adds to entry j; the formulas are those of `assay.optim.descent.Rule.move`."""
    if update.rule == 0:
        return -eta * g
    if update.rule == 1:
        state[0, j] = update.inertia * state[0, j] - eta * g
        return state[0, j]
    if update.rule <= 3:
        state[1, j] += g * g
        total = state[1, j] / (t + 1) if update.rule == 2 else state[1, j]
        return -eta * g / (sqrt(total) + update.eps)
    state[1, j] = update.memory * state[1, j] + (1 - update.memory) * g * g
    if update.rule == 4:
        return -eta * g / (sqrt(state[1, j]) + update.eps)
    state[0, j] = update.inertia * state[0, j] + (1 - update.inertia) * g
    if update.rule == 6:
        return -eta * state[0, j] / (sqrt(state[1, j]) + update.eps)
    mean, square = state[0, j] / (1 - update.inertia ** (t + 1)), state[1, j] / (1 - update.memory ** (t + 1))
    return -eta * mean / (sqrt(square) + update.eps)


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
