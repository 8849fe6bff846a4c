"""Compiled loops of the support vector solver.

    minimise over beta    1/2 beta' K beta - v' beta + eps |beta|_1     subject to  sum beta = const,  lo
    <= beta <= hi

with lo <= 0 <= hi. Classification: beta_i = y_i alpha_i, v = y, eps = 0. Regression: beta = alpha^ - alpha, v =
targets. Let e = v - K beta. Raising beta_i lowers the objective at the rate up_i = e_i - eps (+ eps where beta_i <
0), lowering it gains at most -down_i; the pair (i, j) with the largest up_i - down_j violates optimality most.
"""

import numpy as np

from assay.jit import compiled, reinterpret

_BLOCK = 128
_TAU = 1e-12


@compiled
def offsets(beta: np.ndarray, lo: np.ndarray, hi: np.ndarray, eps: float, rise: np.ndarray, fall: np.ndarray) -> None:
    """Set rise and fall such that up = e + rise and down = e + fall; infinite where beta cannot move."""
    for i in range(beta.shape[0]):
        rise[i] = (-eps if beta[i] >= 0.0 else eps) if beta[i] < hi[i] else -np.inf
        fall[i] = (-eps if beta[i] > 0.0 else eps) if beta[i] > lo[i] else np.inf


def ordering(dtype: np.dtype) -> np.ndarray:
    """Return what turns floats into integers of the same order: the sign's position, all bits below it, the least one.

    Maxima of integers vectorise, those of floats do not.
    """
    sign = 8 * dtype.itemsize - 1
    return np.array([sign, 2**sign - 1, -(2**sign)], dtype=f"i{dtype.itemsize}")


@compiled(reduction=True)
def _step_block(
    e: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    rise: np.ndarray,
    fall: np.ndarray,
    t: float,
    ordering: np.ndarray,
) -> tuple[float, float]:
    """Subtract t (first - second) from e; return the largest e + rise and the least e + fall."""
    sign, below, high, low = ordering[0], ordering[1], ordering[2], ordering[2]
    integer = ordering.dtype.type
    for k in range(e.shape[0]):
        x = e[k] - t * (first[k] - second[k])
        e[k] = x
        up, down = reinterpret(x + rise[k]), reinterpret(-(x + fall[k]))
        high = max(high, integer(up ^ ((up >> sign) & below)))
        low = max(low, integer(down ^ ((down >> sign) & below)))
    return (
        reinterpret(integer(high ^ ((high >> sign) & below))),
        -reinterpret(integer(low ^ ((low >> sign) & below))),
    )


@compiled(reduction=True)
def _gain_block(
    e: np.ndarray,
    fall: np.ndarray,
    first: np.ndarray,
    diagonal: np.ndarray,
    top: float,
    own: float,
    ordering: np.ndarray,
) -> float:
    """Return the largest (top - down_j)^2 / (own + K_jj - 2 K_ij) of the block, 0 if no j would do."""
    zero, two, tau = e.dtype.type(0.0), e.dtype.type(2.0), e.dtype.type(_TAU)
    best = ordering.dtype.type(0)  # floats that are not negative have the order of their bits
    for k in range(e.shape[0]):
        distance = max(top - (e[k] + fall[k]), zero)
        best = max(best, reinterpret(distance * distance / max(own + diagonal[k] - two * first[k], tau)))
    return reinterpret(best)


@compiled
def _blocks(ends: np.ndarray) -> np.ndarray:
    """Return begin, end and group of blocks of at most _BLOCK variables, none of which spans two groups."""
    results = [(0, 0, 0)]
    for g in range(len(ends) - 1):
        for begin in range(ends[g], ends[g + 1], _BLOCK):
            results.append((begin, min(begin + _BLOCK, ends[g + 1]), g))
    return np.array(results[1:])


@compiled
def _worst(blocks: np.ndarray, highs: np.ndarray, lows: np.ndarray) -> tuple[int, float]:
    """Return the block with the largest up of the group that is furthest from optimal, and how far it is."""
    violation, worst, start = -np.inf, 0, 0
    while start < len(blocks):
        high, low, stop = start, lows[start], start
        while stop < len(blocks) and blocks[stop, 2] == blocks[start, 2]:
            high = stop if highs[stop] > highs[high] else high
            low = min(low, lows[stop])
            stop += 1
        if highs[high] - low > violation:
            violation, worst = highs[high] - low, high
        start = stop
    return worst, violation


@compiled
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
    ordering: np.ndarray,
) -> tuple[int, float]:
    """Sequential minimal optimisation with second-order choice of the pair (Fan, Chen and Lin 2005), in place.

    i attains the largest up_i; j gives the largest decrease (up_i - down_j)^2 / (K_ii + K_jj - 2 K_ij). Pairs lie
    within a group, ends[g] <= i, j < ends[g + 1], so that the sum of each group is kept. Stops when max up - min down
    <= tol in every group or after max_steps; returns the steps made and the last violation.
    """
    real = e.dtype.type
    diagonal, rise, fall = np.empty(len(e), K.dtype), np.empty_like(e), np.empty_like(e)
    for k in range(len(e)):
        diagonal[k] = K[k, k]
    offsets(beta, lo, hi, eps, rise, fall)
    blocks = _blocks(ends)
    highs, lows, gains = np.empty(len(blocks), e.dtype), np.empty(len(blocks), e.dtype), np.empty(len(blocks), e.dtype)
    i, j, t = 0, 0, real(0.0)
    for step in range(max_steps + 1):
        for b in range(len(blocks)):
            s = slice(blocks[b, 0], blocks[b, 1])
            highs[b], lows[b] = _step_block(e[s], K[i, s], K[j, s], rise[s], fall[s], t, ordering)
        worst, violation = _worst(blocks, highs, lows)
        if violation <= tol or step == max_steps:
            return step, violation
        top = highs[worst]
        i = _position(e, rise, blocks[worst, 0], blocks[worst, 1], top)
        gains[:] = real(-1.0)
        for b in range(len(blocks)):
            if blocks[b, 2] == blocks[worst, 2]:
                s = slice(blocks[b, 0], blocks[b, 1])
                gains[b] = _gain_block(e[s], fall[s], K[i, s], diagonal[s], top, diagonal[i], ordering)
        best = np.argmax(gains)
        j, wanted = _partner(e, fall, K[i], diagonal, blocks[best, 0], blocks[best, 1], top, diagonal[i])
        t = real(_move(beta, lo, hi, i, j, wanted))
        for k in (i, j):
            rise[k] = (-eps if beta[k] >= 0.0 else eps) if beta[k] < hi[k] else -np.inf
            fall[k] = (-eps if beta[k] > 0.0 else eps) if beta[k] > lo[k] else np.inf
    return max_steps, np.inf


@compiled
def _position(e: np.ndarray, rise: np.ndarray, begin: int, end: int, top: float) -> int:
    """Return the first k with e_k + rise_k = top."""
    for k in range(begin, end):
        if e[k] + rise[k] >= top:
            return k
    return begin


@compiled
def _partner(
    e: np.ndarray,
    fall: np.ndarray,
    first: np.ndarray,
    diagonal: np.ndarray,
    begin: int,
    end: int,
    top: float,
    own: float,
) -> tuple[int, float]:
    """Return the j of the largest gain in the block, and the step that would be best without bounds."""
    best, chosen, wanted = -1.0, begin, 0.0
    for k in range(begin, end):
        distance = max(float(top - (e[k] + fall[k])), 0.0)
        curvature = max(float(own + diagonal[k] - 2 * first[k]), _TAU)
        if distance * distance / curvature > best:
            best, chosen, wanted = distance * distance / curvature, k, distance / curvature
    return chosen, wanted


@compiled
def _move(beta: np.ndarray, lo: np.ndarray, hi: np.ndarray, i: int, j: int, wanted: float) -> float:
    """Raise beta_i and lower beta_j by `wanted`, but not past a bound or a kink at zero; return the step
    made."""
    room_i = -beta[i] if beta[i] < 0.0 else hi[i] - beta[i]
    room_j = beta[j] if beta[j] > 0.0 else beta[j] - lo[j]
    t = min(wanted, room_i, room_j)
    end_i = 0.0 if beta[i] < 0.0 else hi[i]
    end_j = 0.0 if beta[j] > 0.0 else lo[j]
    beta[i] = end_i if t >= room_i else beta[i] + t
    beta[j] = end_j if t >= room_j else beta[j] - t
    return t


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
