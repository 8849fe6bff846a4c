"""Compiled epochs of stochastic gradient descent over packed rows. Losses, rules and schedules go by their numbers."""

from math import exp, log, sqrt

import numpy as np

from assay.jit import compiled, prefetch
from assay.linear_model._row_loops import add, dot
from assay.losses.compiled import LOG_LOSS, loss_and_slope

_AHEAD = 6  # rows fetched before they are needed


@compiled
def rate(schedule: int, eta: float, decay: float, t: int) -> float:
    """Return the learning rate after t updates; the codes are places in `assay.optim.descent.SCHEDULES`."""
    if schedule == 0:
        return eta
    if schedule == 3:
        return 1.0 / (decay * (t + 1) + 1.0 / eta)
    slow = 1.0 + decay * t
    return eta / (slow if schedule == 1 else sqrt(slow))


@compiled(reduction=True)
def dense_epoch(
    X: np.ndarray,
    y: np.ndarray,
    costs: np.ndarray,
    order: np.ndarray,
    code: int,
    epsilon: float,
    alpha: float,
    schedule: int,
    eta: float,
    decay: float,
    t: int,
    intercept: bool,
    w: np.ndarray,
    b: np.ndarray,
) -> float:
    """Visit each row once, w <- (1 - step alpha) w - step cost slope x; return the mean loss met on the way.

    `costs` are the weights of the rows, empty if all are one.

    w is kept as a number times a vector, so that the penalty costs one product a row. Rows are asked for
    before
    they are needed: in random order most of the time would go into waiting for memory.
    """
    n, d, weighted = order.shape[0], w.shape[0], costs.size > 0
    stretch, total, bias, product = 1.0, 0.0, b[0], 1.0
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
        f = stretch * f + bias
        if code == LOG_LOSS and not weighted:  # one logarithm for the product of many factors 1 + exp(-|z|)
            z = y[order[k]] * f
            small = exp(-abs(z))
            slope = -y[order[k]] * (small if z > 0 else 1.0) / (1.0 + small)
            total += max(-z, 0.0)
            product *= 1.0 + small
            if k % 256 == 255:
                total += log(product)
                product = 1.0
        else:
            loss, slope = loss_and_slope(code, epsilon, y[order[k]], f)
            if weighted:
                loss, slope = costs[order[k]] * loss, costs[order[k]] * slope
            total += loss
        step = rate(schedule, eta, decay, t + k)
        stretch *= 1.0 - step * alpha
        if slope != 0.0:
            factor = -step * slope / stretch
            for j in range(d):
                w[j] += factor * x[j]
            if intercept:
                bias -= step * slope
        if stretch < 1e-6:
            for j in range(d):
                w[j] *= stretch
            stretch = 1.0
    for j in range(d):
        w[j] *= stretch
    b[0] = bias
    return (total + log(product)) / n


@compiled
def sparse_epoch(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    y: np.ndarray,
    costs: np.ndarray,
    order: np.ndarray,
    code: int,
    epsilon: float,
    alpha: float,
    schedule: int,
    eta: float,
    decay: float,
    t: int,
    intercept: bool,
    w: np.ndarray,
    b: np.ndarray,
) -> float:
    """Do the same for packed rows; an update touches the entries of its row alone."""
    stretch, total, n, weighted = 1.0, 0.0, order.shape[0], costs.size > 0
    for k in range(n):
        i = order[k]
        f = stretch * dot(starts, columns, values, i, w) + b[0]
        loss, slope = loss_and_slope(code, epsilon, y[i], f)
        if weighted:
            loss, slope = costs[i] * loss, costs[i] * slope
        step = rate(schedule, eta, decay, t + k)
        total += loss
        stretch *= 1.0 - step * alpha
        if slope != 0.0:
            add(starts, columns, values, i, -step * slope / stretch, w)
            if intercept:
                b[0] -= step * slope
        if stretch < 1e-6:
            w *= stretch
            stretch = 1.0
    w *= stretch
    return total / n


@compiled
def batch_epoch(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    y: np.ndarray,
    costs: np.ndarray,
    order: np.ndarray,
    batch: int,
    code: int,
    epsilon: float,
    alpha: float,
    rule: int,
    inertia: float,
    memory: float,
    tiny: float,
    schedule: int,
    eta: float,
    decay: float,
    t: int,
    intercept: bool,
    w: np.ndarray,
    b: np.ndarray,
    state: np.ndarray,
) -> float:
    """Visit the rows in batches, one update each by the rule of that number; state (2, d + 1); return the
    mean loss met."""
    n, d, weighted = order.shape[0], w.shape[0], costs.size > 0
    gradient, total = np.zeros(d + 1), 0.0
    for start in range(0, n, batch):
        size = min(batch, n - start)
        gradient[:] = 0.0
        for k in range(start, start + size):
            i = order[k]
            f = dot(starts, columns, values, i, w) + b[0]
            loss, slope = loss_and_slope(code, epsilon, y[i], f)
            if weighted:
                loss, slope = costs[i] * loss, costs[i] * slope
            total += loss
            if slope != 0.0:
                add(starts, columns, values, i, slope / size, gradient[:d])
                gradient[d] += slope / size
        for j in range(d):
            gradient[j] += alpha * w[j]
        eta_t = rate(schedule, eta, decay, t)
        for j in range(d + 1 if intercept else d):
            move = _move(rule, inertia, memory, tiny, state, j, gradient[j], eta_t, t)
            if j < d:
                w[j] += move
            else:
                b[0] += move
        t += 1
    return total / n


@compiled
def _move(
    rule: int,
    inertia: float,
    memory: float,
    tiny: float,
    state: np.ndarray,
    j: int,
    g: float,
    eta: float,
    t: int,
) -> float:
    """Return what the rule adds to entry j; the formulas are those of `assay.optim.descent.Rule.move`."""
    if rule == 0:
        return -eta * g
    if rule == 1:
        state[0, j] = inertia * state[0, j] - eta * g
        return state[0, j]
    if rule <= 3:
        state[1, j] += g * g
        total = state[1, j] / (t + 1) if rule == 2 else state[1, j]
        return -eta * g / (sqrt(total) + tiny)
    state[1, j] = memory * state[1, j] + (1 - memory) * g * g
    if rule == 4:
        return -eta * g / (sqrt(state[1, j]) + tiny)
    state[0, j] = inertia * state[0, j] + (1 - inertia) * g
    if rule == 6:
        return -eta * state[0, j] / (sqrt(state[1, j]) + tiny)
    mean, square = state[0, j] / (1 - inertia ** (t + 1)), state[1, j] / (1 - memory ** (t + 1))
    return -eta * mean / (sqrt(square) + tiny)
