"""Compiled epochs of stochastic gradient descent over packed rows. Losses, rules and schedules go by their numbers."""

from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np

from assay.jit import compiled, prefetch
from assay.linear_model._row_loops import add, dot
from assay.losses.compiled import LOG_LOSS, loss_and_slope

_AHEAD = 6  # rows fetched before they are needed


class Objective(NamedTuple):
    """A loss by its number, the width of its zone without loss, the weight of the penalty, and whether b is free."""

    loss: int
    epsilon: float
    alpha: float
    intercept: bool


class Averaging(NamedTuple):
    """The weight of |w|_1 beside the L2 penalty of `Objective`, and the update after which iterates are averaged; 0:
    they are not."""

    l1: float
    after: int


class Rates(NamedTuple):
    """A schedule of learning rates; its number is its place in `assay.optim.descent.SCHEDULES`."""

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
    if rates.schedule == 0:
        return rates.eta
    if rates.schedule == 3:
        return 1.0 / (rates.decay * (t + 1) + 1.0 / rates.eta)
    if rates.schedule == 4:
        return rates.eta / (t + 1.0) ** rates.decay
    slow = 1.0 + rates.decay * t
    return rates.eta / (slow if rates.schedule == 1 else sqrt(slow))


@compiled(reduction=True)
def dense_epoch(
    X: np.ndarray,
    y: np.ndarray,
    costs: np.ndarray,
    order: np.ndarray,
    objective: Objective,
    rates: Rates,
    t: int,
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
            if weighted:
                loss, slope = costs[order[k]] * loss, costs[order[k]] * slope
            total += loss
        step = rate(rates, t + k)
        stretch *= 1.0 - step * objective.alpha
        if stretch <= 0.0:  # a step that long sets the coefficients to zero
            w[:] = 0.0
            stretch = 1.0
        if slope != 0.0:
            factor = -step * slope / stretch
            for j in range(d):
                w[j] += factor * x[j]
            if objective.intercept:
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
    objective: Objective,
    rates: Rates,
    t: int,
    w: np.ndarray,
    b: np.ndarray,
) -> float:
    """Do the same for packed rows; an update touches the entries of its row alone."""
    stretch, total, n, weighted = 1.0, 0.0, order.shape[0], costs.size > 0
    for k in range(n):
        i = order[k]
        f = stretch * dot(starts, columns, values, i, w) + b[0]
        loss, slope = loss_and_slope(objective.loss, objective.epsilon, y[i], f)
        if weighted:
            loss, slope = costs[i] * loss, costs[i] * slope
        step = rate(rates, t + k)
        total += loss
        stretch *= 1.0 - step * objective.alpha
        if stretch <= 0.0:
            w[:] = 0.0
            stretch = 1.0
        if slope != 0.0:
            add(starts, columns, values, i, -step * slope / stretch, w)
            if objective.intercept:
                b[0] -= step * slope
        if stretch < 1e-6:
            w *= stretch
            stretch = 1.0
    w *= stretch
    return total / n


@compiled
def averaged_epoch(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    y: np.ndarray,
    costs: np.ndarray,
    order: np.ndarray,
    objective: Objective,
    averaging: Averaging,
    rates: Rates,
    t: int,
    w: np.ndarray,
    b: np.ndarray,
    mean: np.ndarray,
    pulled: np.ndarray,
) -> float:
    """Do the same with an L1 penalty, with averaged iterates, or both.

    Each update pulls every coefficient towards zero by what the penalty has asked for so far and `pulled`, its d + 1st
    entry the sum of what was asked, has not yet given: so small steps add up to exact zeros (Tsuruoka, Tsujii and
    Ananiadou 2009). `mean` (d + 1) is the average of (w, b).
    """
    total, n, d, weighted = 0.0, order.shape[0], w.shape[0], costs.size > 0
    for k in range(n):
        i = order[k]
        f = dot(starts, columns, values, i, w) + b[0]
        loss, slope = loss_and_slope(objective.loss, objective.epsilon, y[i], f)
        if weighted:
            loss, slope = costs[i] * loss, costs[i] * slope
        step = rate(rates, t + k)
        total += loss
        for j in range(d):
            w[j] *= max(0.0, 1.0 - step * objective.alpha)
        if slope != 0.0:
            add(starts, columns, values, i, -step * slope, w)
            if objective.intercept:
                b[0] -= step * slope
        if averaging.after > 0 and t + k + 1 >= averaging.after:
            share = 1.0 / (t + k + 2 - averaging.after)
            for j in range(d):
                mean[j] += share * (w[j] - mean[j])
            mean[d] += share * (b[0] - mean[d])
        if averaging.l1 > 0.0:
            pulled[d] += step * averaging.l1
            for j in range(d):
                before = w[j]
                if before > 0.0:
                    w[j] = max(0.0, before - (pulled[d] + pulled[j]))
                elif before < 0.0:
                    w[j] = min(0.0, before + (pulled[d] - pulled[j]))
                pulled[j] += w[j] - before
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
    objective: Objective,
    update: UpdateRule,
    rates: Rates,
    t: int,
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
            loss, slope = loss_and_slope(objective.loss, objective.epsilon, y[i], f)
            if weighted:
                loss, slope = costs[i] * loss, costs[i] * slope
            total += loss
            if slope != 0.0:
                add(starts, columns, values, i, slope / size, gradient[:d])
                gradient[d] += slope / size
        for j in range(d):
            gradient[j] += objective.alpha * w[j]
        eta_t = rate(rates, t)
        for j in range(d + 1 if objective.intercept else d):
            move = _move(update, state, j, gradient[j], eta_t, t)
            if j < d:
                w[j] += move
            else:
                b[0] += move
        t += 1
    return total / n


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
