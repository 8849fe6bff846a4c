"""Compiled passes of a hidden Markov chain over its sequences.

    alpha_t(j)   proportional to p(x_1..x_t, s_t = j) = b_j(x_t) sum_i alpha_{t-1}(i) A_ij
    beta_t(i)    proportional to p(x_{t+1}..x_T | s_t = i) = sum_j A_ij b_j(x_{t+1}) beta_{t+1}(j)

Emissions come as `table[index[t]]`: b_j(x_t) divided by the largest of the row, so that equal rows are held once. A
vector is scaled when it has become small, not at each step, which takes the division and the logarithm off the way
from one step to the next. Nothing here depends on the number of threads.
"""

from math import exp, inf, log

import numpy as np

from assay.jit import compiled
from assay.mixture._loops import _PANEL, _add_exponentials, _transpose

_SMALL = 1e-30  # sum of a vector below which it is scaled
_STEEP = 1e-20  # fall of the sum at one step below which clamped emissions could matter
FLOOR = 600.0
"""Emissions are at least exp(-FLOOR) of the row's largest; a sequence in which that matters is done in logarithms."""


@compiled(reduction=True)
def forward(
    table: np.ndarray,
    index: np.ndarray,
    start: np.ndarray,
    trans_t: np.ndarray,
    offsets: np.ndarray,
    first: int,
    last: int,
    alpha: np.ndarray,
    logs: np.ndarray,
    clamped: bool,
) -> None:
    """Write alpha (T, k) of sequences first..last-1 and ln sum_j of the scaled end to logs; trans_t is A'.

    A sequence of probability zero has logs -inf; one for logarithms, NaN.
    """
    k = len(start)
    for s in range(first, last):
        begin, end = offsets[s], offsets[s + 1]
        total, before, own = 0.0, 0.0, alpha[begin]
        row = table[index[begin]]
        for j in range(k):
            own[j] = start[j] * row[j]
        for j in range(k):  # by itself: see `loops.logistic.loss_stretch`
            before += own[j]
        steep = before < _STEEP
        for t in range(begin + 1, end):
            r, size = index[t], 0.0
            for j in range(k):
                value = 0.0
                for i in range(k):
                    value += alpha[t - 1, i] * trans_t[j, i]
                value *= table[r, j]
                alpha[t, j] = value
                size += value
            steep |= size < _STEEP * before
            before = size
            if size < _SMALL:
                if size == 0.0:
                    break
                total += log(size)
                scale = 1.0 / size
                for j in range(k):
                    alpha[t, j] *= scale
                before = 1.0
        if before == 0.0:
            logs[s] = np.nan if clamped else -inf
        else:
            logs[s] = np.nan if steep and clamped else total + log(before)


@compiled(reduction=True)
def backward(
    table: np.ndarray,
    index: np.ndarray,
    trans: np.ndarray,
    offsets: np.ndarray,
    first: int,
    last: int,
    beta: np.ndarray,
    scales: np.ndarray,
) -> None:
    """Write beta (T, k) of sequences first..last-1, and by what each was multiplied."""
    k = beta.shape[1]
    v = np.empty(k)
    for s in range(first, last):
        begin, end = offsets[s], offsets[s + 1]
        for j in range(k):
            beta[end - 1, j] = 1.0
        scales[end - 1] = 1.0
        for t in range(end - 2, begin - 1, -1):
            r, size = index[t + 1], 0.0
            for j in range(k):
                v[j] = table[r, j] * beta[t + 1, j]
            for i in range(k):
                value = 0.0
                for j in range(k):
                    value += trans[i, j] * v[j]
                beta[t, i] = value
                size += value
            scales[t] = 1.0
            if size < _SMALL and size > 0.0:
                scales[t] = 1.0 / size
                for i in range(k):
                    beta[t, i] *= scales[t]


@compiled(reduction=True)
def shares(
    table: np.ndarray,
    index: np.ndarray,
    alpha: np.ndarray,
    beta: np.ndarray,
    scales: np.ndarray,
    role: np.ndarray,
    low: int,
    high: int,
    each: bool,
    counts: np.ndarray,
    pairs: np.ndarray,
) -> None:
    """Replace alpha of steps low..high-1 by the probability of each state, and add those of pairs of neighbours.

    role: 0 within a sequence, 1 at its end, 2 to be left out. `pairs` (k, k) lacks the factor A_ij. Unless `each`,
    probabilities are added to counts[index] (distinct rows, k) instead of being written.
    """
    k = alpha.shape[1]
    v, u = np.empty(k), np.empty(k)
    for t in range(low, high):
        if role[t] == 2:
            continue
        own, later = alpha[t], beta[t]
        total = 0.0
        for j in range(k):
            total += own[j] * later[j]
        inverse = 1.0 / total
        if role[t] == 0:
            row, after = table[index[t + 1]], beta[t + 1]
            scale = inverse * scales[t]
            for j in range(k):
                v[j] = row[j] * after[j]
                u[j] = own[j] * scale
            for i in range(k):
                a = u[i]
                for j in range(k):
                    pairs[i, j] += a * v[j]
        if each:
            for j in range(k):
                own[j] *= later[j] * inverse
        else:
            target = counts[index[t]]
            for j in range(k):
                target[j] += own[j] * later[j] * inverse


@compiled
def _log_sum(values: np.ndarray) -> float:
    top = -inf
    for value in values:
        top = max(top, value)
    if top == -inf:
        return -inf
    total = 0.0
    for value in values:
        total += exp(value - top)
    return top + log(total)


@compiled
def in_logarithms(
    logs: np.ndarray, log_start: np.ndarray, log_trans: np.ndarray, posterior: np.ndarray, pairs: np.ndarray
) -> float:
    """Return ln p of one sequence with log-emissions (T, k); write the probability of each state at each step, and add
    to `pairs` (k, k) the expected number of steps from i to j. All in logarithms."""
    T, k = logs.shape
    alpha, beta, terms = np.empty((T, k)), np.zeros((T, k)), np.empty(k)
    for j in range(k):
        alpha[0, j] = log_start[j] + logs[0, j]
    for t in range(1, T):
        for j in range(k):
            for i in range(k):
                terms[i] = alpha[t - 1, i] + log_trans[i, j]
            alpha[t, j] = _log_sum(terms) + logs[t, j]
    value = _log_sum(alpha[T - 1])
    if value == -inf:
        return value
    for t in range(T - 2, -1, -1):
        for i in range(k):
            for j in range(k):
                terms[j] = log_trans[i, j] + logs[t + 1, j] + beta[t + 1, j]
            beta[t, i] = _log_sum(terms)
    for t in range(T):
        for j in range(k):
            posterior[t, j] = exp(alpha[t, j] + beta[t, j] - value)
        if t + 1 < T:
            for i in range(k):
                for j in range(k):
                    pairs[i, j] += exp(alpha[t, i] + log_trans[i, j] + logs[t + 1, j] + beta[t + 1, j] - value)
    return value


@compiled
def best_path(logs: np.ndarray, log_start: np.ndarray, log_trans: np.ndarray, states: np.ndarray) -> float:
    """Write the most probable states of one sequence of log-emissions (T, k); return ln p(rows, states).

    Of equally probable paths, the one whose last states have the smallest numbers is taken.
    """
    T, k = logs.shape
    value, new = np.empty(k), np.empty(k)
    back = np.zeros((T, k), np.int32)
    for j in range(k):
        value[j] = log_start[j] + logs[0, j]
    for t in range(1, T):
        row, pointer = logs[t], back[t]
        for j in range(k):
            new[j] = -inf
        for i in range(k):
            a = value[i]
            for j in range(k):
                candidate = a + log_trans[i, j]
                if candidate > new[j]:
                    new[j] = candidate
                    pointer[j] = i
        for j in range(k):
            value[j] = new[j] + row[j]
    best = 0
    for j in range(1, k):
        if value[j] > value[best]:
            best = j
    result = value[best]
    for t in range(T - 1, -1, -1):
        states[t] = best
        best = back[t, best]
    return result


@compiled(reduction=True)
def diagonal_emissions(
    X: np.ndarray,
    means: np.ndarray,
    scales: np.ndarray,
    low: int,
    high: int,
    table: np.ndarray,
    shift: np.ndarray,
) -> float:
    """Write densities of rows low..high-1 under Gaussians with standard deviations 1 / scales (k, d), divided by the
    row's largest, whose logarithm goes to `shift`; return the least difference of logarithms. Missing entries are NaN
    and left out."""
    k, d = means.shape
    rows, joint, logs = np.zeros((d, _PANEL + 8)), np.zeros((k, _PANEL)), np.empty((k, d))
    top, bottom, least = np.empty(_PANEL), np.empty(_PANEL), 0.0
    for c in range(k):
        for j in range(d):
            logs[c, j] = log(scales[c, j]) - 0.9189385332046727418
    for start in range(low, high, _PANEL):
        size = min(_PANEL, high - start)
        _transpose(X, start, size, rows)
        for c in range(k):
            own = joint[c]
            for r in range(size):
                own[r] = 0.0
            for j in range(d):
                m, u, constant, source = means[c, j], scales[c, j], logs[c, j], rows[j]
                for r in range(size):
                    z = (source[r] - m) * u
                    own[r] += constant - 0.5 * z * z if z == z else 0.0
        for r in range(size):
            top[r] = joint[0, r]
            bottom[r] = joint[0, r]
        for c in range(1, k):
            own = joint[c]
            for r in range(size):
                top[r] = own[r] if own[r] > top[r] else top[r]
                bottom[r] = own[r] if own[r] < bottom[r] else bottom[r]
        for r in range(size):
            least = min(least, bottom[r] - top[r])
        for c in range(k):
            own = joint[c]
            for r in range(size):
                own[r] = own[r] if own[r] > top[r] - FLOOR else top[r] - FLOOR
            _add_exponentials(own, top, bottom, size)
            for r in range(size):
                table[start + r, c] = own[r]
        for r in range(size):
            shift[start + r] = top[r]
    return least


@compiled(reduction=True)
def diagonal_moments(
    X: np.ndarray, means: np.ndarray, share: np.ndarray, low: int, high: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sums over rows low..high-1 of share, share (x - m) and share (x - m)^2, each (k, d), of entries that are
    there."""
    k, d = means.shape
    mass, linear, square = np.zeros((k, d)), np.zeros((k, d)), np.zeros((k, d))
    rows, weights = np.zeros((d, _PANEL + 8)), np.zeros((k, _PANEL))
    for start in range(low, high, _PANEL):
        size = min(_PANEL, high - start)
        _transpose(X, start, size, rows)
        for r in range(size):
            for c in range(k):
                weights[c, r] = share[start + r, c]
        for c in range(k):
            g = weights[c]
            for j in range(d):
                m, source = means[c, j], rows[j]
                n, s, q = 0.0, 0.0, 0.0
                for r in range(size):
                    z = source[r] - m
                    there = z == z
                    w = g[r] if there else 0.0
                    z = z if there else 0.0
                    n += w
                    s += w * z
                    q += w * z * z
                mass[c, j] += n
                linear[c, j] += s
                square[c, j] += q
    return mass, linear, square
