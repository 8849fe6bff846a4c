"""Compiled loops of the support vector solver.

    minimise over beta    1/2 beta' K beta - v' beta + eps |beta|_1     subject to  sum beta = const,  lo
    <= beta <= hi

with lo <= 0 <= hi. Classification: beta_i = y_i alpha_i, v = y, eps = 0. Regression: beta = alpha^ -
alpha, v = targets.
Let e = v - K beta. Raising beta_i lowers the objective at the rate up_i = e_i - eps (+ eps where beta_i <
0), lowering it
gains at most -down_i; the pair (i, j) with the largest up_i - down_j violates optimality most.
"""

import numpy as np

from assay.jit import compiled

_BLOCK = 128
_TAU = 1e-12


@compiled
def offsets(beta: np.ndarray, lo: np.ndarray, hi: np.ndarray, eps: float, rise: np.ndarray, fall: np.ndarray) -> None:
    """Set rise and fall such that up = e + rise and down = e + fall; infinite where beta cannot move."""
    for i in range(beta.shape[0]):
        rise[i] = (-eps if beta[i] >= 0.0 else eps) if beta[i] < hi[i] else -np.inf
        fall[i] = (-eps if beta[i] > 0.0 else eps) if beta[i] > lo[i] else np.inf


@compiled
def _first_largest(order: np.ndarray) -> int:
    """Return the position of the largest integer; the maximum is taken block by block, so that it
    vectorises."""
    n = order.shape[0]
    best, block = order[0], 0
    for start in range(0, n, _BLOCK):
        top = order[start]
        for k in range(start, min(start + _BLOCK, n)):
            top = max(top, order[k])
        if top > best:
            best, block = top, start
    for k in range(block, min(block + _BLOCK, n)):
        if order[k] == best:
            return k
    return 0


@compiled(reduction=True)
def pair_steps(
    K: np.ndarray,
    e: np.ndarray,
    beta: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    eps: float,
    ends: np.ndarray,
    tol: float,
    max_steps: int,
    keys: np.ndarray,
    order: np.ndarray,
    sign: int,
) -> tuple[int, float]:
    """Sequential minimal optimisation with second-order choice of the pair (Fan, Chen and Lin 2005), in
    place.

    i attains the largest up_i; j gives the largest decrease (up_i - down_j)^2 / (K_ii + K_jj - 2 K_ij) of
    the objective.
    Pairs lie within a group, ends[g] <= i, j < ends[g + 1], so that the sum of each group is kept.
    Stops when max up - min down <= tol in every group or after max_steps; returns the steps made and the
    last violation.

    Maxima of floats do not vectorise, those of integers do: `order` is the memory of `keys` (3, n) read as
    integers, whose
    order is that of the floats once the bits below the sign of negative ones are flipped (`sign` is the
    sign's position).
    """
    n = beta.shape[0]
    rise, fall, diagonal = np.empty_like(e), np.empty_like(e), np.empty_like(e)
    for k in range(n):
        diagonal[k] = K[k, k]
    offsets(beta, lo, hi, eps, rise, fall)
    zero, two = e.dtype.type(0.0), e.dtype.type(2.0)
    tau = e.dtype.type(_TAU)
    below = ~(order.dtype.type(1) << order.dtype.type(sign))
    shift = order.dtype.type(sign)
    i, j, t = 0, 0, zero
    up, down, gain = keys[0], keys[1], keys[2]
    up_order, down_order, gain_order = order[0], order[1], order[2]
    for step in range(max_steps + 1):
        first, second = K[i], K[j]
        for k in range(n):
            e[k] -= t * (first[k] - second[k])
            up[k] = e[k] + rise[k]
            down[k] = -(e[k] + fall[k])
        for k in range(n):
            up_order[k] ^= (up_order[k] >> shift) & below
            down_order[k] ^= (down_order[k] >> shift) & below
        violation, i, start, stop = -np.inf, 0, 0, 0
        for g in range(len(ends) - 1):
            if ends[g] == ends[g + 1]:
                continue
            high = ends[g] + _first_largest(up_order[ends[g] : ends[g + 1]])
            low = ends[g] + _first_largest(down_order[ends[g] : ends[g + 1]])
            width = (e[high] + rise[high]) - (e[low] + fall[low])
            if width > violation:
                violation, i, start, stop = width, high, ends[g], ends[g + 1]
        if violation <= tol or step == max_steps:
            return step, violation
        first, own, top = K[i], diagonal[i], e[i] + rise[i]
        for k in range(start, stop):
            distance = max(top - (e[k] + fall[k]), zero)
            gain[k] = distance * distance / max(own + diagonal[k] - two * first[k], tau)
        j = start + _first_largest(gain_order[start:stop])
        t = _move(beta, lo, hi, i, j, (top - e[j] - fall[j]) / max(own + diagonal[j] - two * first[j], tau), tau)
        for k in (i, j):
            rise[k] = (-eps if beta[k] >= 0.0 else eps) if beta[k] < hi[k] else -np.inf
            fall[k] = (-eps if beta[k] > 0.0 else eps) if beta[k] > lo[k] else np.inf
    return max_steps, np.inf


@compiled
def _move(beta: np.ndarray, lo: np.ndarray, hi: np.ndarray, i: int, j: int, wanted: float, like: float) -> float:
    """Raise beta_i and lower beta_j by `wanted`, but not past a bound or a kink at zero; return the step
    made."""
    room_i = -beta[i] if beta[i] < 0.0 else hi[i] - beta[i]
    room_j = beta[j] if beta[j] > 0.0 else beta[j] - lo[j]
    t = min(float(wanted), room_i, room_j)
    end_i = 0.0 if beta[i] < 0.0 else hi[i]
    end_j = 0.0 if beta[j] > 0.0 else lo[j]
    beta[i] = end_i if t >= room_i else beta[i] + t
    beta[j] = end_j if t >= room_j else beta[j] - t
    return like * 0 + t


@compiled(reduction=True)
def add_rows(F: np.ndarray, cache: np.ndarray, slots: np.ndarray, change: np.ndarray, start: int, stop: int) -> None:
    """Add sum_k change_k cache[slots_k, start:stop] to F[start:stop]; sums of one call in the cache's
    precision."""
    part = np.zeros(stop - start, cache.dtype)
    whole = len(slots) - len(slots) % 4
    for k in range(0, whole, 4):
        a, b = cache[slots[k], start:stop], cache[slots[k + 1], start:stop]
        c, d = cache[slots[k + 2], start:stop], cache[slots[k + 3], start:stop]
        wa, wb, wc, wd = change[k], change[k + 1], change[k + 2], change[k + 3]
        for x in range(stop - start):
            part[x] += wa * a[x] + wb * b[x] + wc * c[x] + wd * d[x]
    for k in range(whole, len(slots)):
        a, wa = cache[slots[k], start:stop], change[k]
        for x in range(stop - start):
            part[x] += wa * a[x]
    for x in range(stop - start):
        F[start + x] += part[x]
