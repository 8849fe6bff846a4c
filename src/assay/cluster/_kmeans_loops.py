"""Compiled loops of k-means.

`assign_block` finds the nearest centres of a chunk of rows, with bounds that skip most distances.

Centres stand in groups of sixteen. For each row a chunk keeps an upper bound u of the distance to its own centre and,
for each group, a lower bound l of the distance to the group's other centres. When centres move, u grows by the
movement of the own centre and l falls by the largest movement in the group (triangle inequality). While u is below
every l the row cannot have changed its centre, and nothing is computed (Hamerly 2010; groups: Ding et al. 2015,
"Yinyang").

What must be computed is computed in single precision, of rows shifted to the mean and scaled to [-1, 1]. A computed
square is off by a factor of at most 1 +- `relative`, and rounding the coordinates moves a distance by at most
`absolute`; both are added to u and taken off l. A row whose nearest centre is then not certain is decided in double
precision.

`nearest_block` does so for sparse rows.

|x - c|^2 / 2 = |x|^2 / 2 + |c|^2 / 2 - x'c, and x'c takes as many products as the row has entries. Centres stand by
columns, (d, k): an entry of a row adds a multiple of one line of them, a piece of which stays in cache while all rows
of the chunk pass.

`absorb` is a step of mini-batches.

`line_borders` solves k-means on a line by dynamic programming. With values sorted, clusters are intervals: best(m, j) =
min_i best(m - 1, i) + cost(i, j), where cost(i, j) is the sum of squared distances of values i..j-1 to their mean, from
prefix sums. The best i does not fall when j grows (quadrangle inequality), so that each layer takes n log n steps by
halving.
"""

import numpy as np

from assay.jit import LANES, compiled, four_rows_nearest, four_rows_to_lanes, prefetch

FAR = 1e18
"""Coordinate of the points that fill a group up to sixteen, in scaled units."""
_TILE = 512  # rows that are compared with all groups while their bounds stay in the second cache
_AHEAD = 16  # rows of a list that are fetched before they are needed
_UP, _DOWN = np.float32(1 + 2.0**-22), np.float32(1 - 2.0**-22)
_ZERO, _ENDLESS = np.float32(0.0), np.float32(np.inf)
_PIECE = 1024  # centres that are compared with all rows of a chunk before the next ones


@compiled
def narrow_block(X: np.ndarray, origin: np.ndarray, scale: float, out: np.ndarray) -> None:
    """Write (X - origin) scale as float32."""
    n, d = X.shape
    for i in range(n):
        for j in range(d):
            out[i, j] = (X[i, j] - origin[j]) * scale


@compiled
def squares_block(X: np.ndarray, weight: np.ndarray, origin: np.ndarray) -> tuple[float, float, float]:
    """Return the sums of |x - origin|^2 without and with weights, and the largest."""
    total = weighted = largest = 0.0
    for i in range(len(X)):
        square = _squared_distance(X[i], origin)
        total += square
        weighted += square * (weight[i] if weight.size else 1.0)
        largest = max(largest, square)
    return total, weighted, largest


@compiled
def assign_block(
    X32, X, weight, origin, scale, labels, upper, lower, points, order, group_of, centers, moves, slack, sums, counts
):
    """Give each row of a chunk its nearest centre; return how many changed theirs and how many distances were computed.

    X32 (n, d) float32, X (n, d): the rows scaled and as they are. labels (n,) int32, -1 at first, upper (n,), lower
    (groups, n) float32: kept from pass to pass, written. points (groups, d, 16) float32, order (groups, 16): the
    centres and their numbers, -1 for none. moves: (shift (k,), group_shift (groups,), apart (k,)), float32. sums (k,
    d) about origin and counts (k,) are changed by the rows that moved. slack: (relative, absolute).
    """
    groups, n = lower.shape
    waiting, least = np.empty(n, np.int32), np.empty(n, np.float32)
    m = _suspects(labels, upper, lower, moves, waiting, least)
    near, who = np.full(n, _ENDLESS), np.full(n, -1, np.int32)
    rows, room = np.empty(_TILE + 4, np.int32), (np.empty((4, 2), np.float32), np.empty(4, np.int32))
    home, begin, sorted_rows = np.empty(_TILE, np.int32), np.empty(groups + 2, np.int64), np.empty(_TILE, np.int32)
    relative, absolute = np.float32(slack[0]), np.float32(slack[1])
    computed = 0
    for first in range(0, m, _TILE):
        tile = waiting[first : min(first + _TILE, m)]
        _by_home(tile, labels, group_of, groups, home, begin, sorted_rows)
        for own in (True, False):  # the group of the present centre first: it makes u as small as can be
            for g in range(groups):
                s = 0
                if own:
                    for t in range(begin[g], begin[g + 1]):
                        rows[s] = sorted_rows[t]
                        s += 1
                else:
                    bounds = lower[g]
                    for t in range(len(tile)):
                        i = tile[t]
                        rows[s] = i
                        s += (bounds[i] < upper[i]) & (home[t] != g)
                computed += s * np.sum(order[g] >= 0)
                _measure(X32, rows, s, points, g, order, group_of, lower, upper, near, who, relative, absolute, room)
    for t in range(m):
        least[t] = _ENDLESS
    for g in range(groups):
        bounds = lower[g]
        for t in range(m):
            least[t] = min(least[t], bounds[waiting[t]])
    changed = 0
    for t in range(m):
        i = waiting[t]
        if who[i] < 0 or not upper[i] < least[t]:
            who[i] = _decide(X[i], centers, scale, group_of, upper, lower, i)
            computed += len(centers)
        if who[i] != labels[i]:
            _move(X[i], weight[i] if weight.size else 1.0, origin, labels[i], who[i], sums, counts)
            labels[i] = who[i]
            changed += 1
    return changed, computed


@compiled
def _by_home(tile, labels, group_of, groups, home, begin, sorted_rows):
    """Write the group of each row's present centre, -1 for none, and the rows in the order of it: those of group g from
    begin[g] on."""
    begin[:] = 0
    for t in range(len(tile)):
        a = labels[tile[t]]
        home[t] = 0 if groups == 1 else group_of[a] if a >= 0 else -1
        begin[home[t] + 2] += 1
    begin[1] = 0  # rows without a centre stay out of the list
    for g in range(groups):
        begin[g + 1] += begin[g]
    for t in range(len(tile)):
        if home[t] >= 0:
            sorted_rows[begin[home[t] + 1]] = tile[t]
            begin[home[t] + 1] += 1


@compiled
def _suspects(labels, upper, lower, moves, waiting, least):
    """Bring the bounds up to date with how centres moved; list the rows that may have a new centre, return how many.

    Writes the least bound of each row to `least`."""
    shift, group_shift, apart = moves
    groups, n = lower.shape
    least[:] = _ENDLESS
    for g in range(groups):
        bounds, fall = lower[g], group_shift[g]
        for i in range(n):
            bound = max((bounds[i] - fall) * _DOWN, _ZERO)
            bounds[i] = bound
            least[i] = min(least[i], bound)
    m = 0
    for i in range(n):
        a = labels[i]
        if a >= 0:
            upper[i] = (upper[i] + shift[a]) * _UP
            if upper[i] < max(least[i], apart[a]):
                continue
        else:
            upper[i] = _ENDLESS
        waiting[m] = i
        m += 1
    return m


@compiled
def _measure(X32, rows, s, points, g, order, group_of, lower, upper, near, who, relative, absolute, room):
    """Compute the distances of rows[:s] to group g; keep the nearest centre, its upper bound and the lower bounds."""
    if s == 0:
        return
    nearest, lanes = room
    for t in range(s, s + 4):
        rows[t] = rows[s - 1]
    row = 4 * X32.shape[1]  # bytes
    for t in range(0, s, 4):
        for ahead in range(t + _AHEAD, min(t + _AHEAD + 4, s)):  # the list skips rows, which no processor foresees
            prefetch(X32, rows[ahead] * row)
            prefetch(X32, rows[ahead] * row + min(64, row - 1))
        four_rows_nearest(X32, rows, t, points, g, nearest, lanes)
        for r in range(min(4, s - t)):
            i = rows[t + r]
            first = nearest[r, 0]
            if first < near[i]:
                if who[i] >= 0:
                    before = group_of[who[i]]
                    lower[before, i] = min(lower[before, i], _below(near[i], relative, absolute))
                near[i], who[i] = first, order[g, lanes[r]]
                upper[i] = _above(first, relative, absolute)
                lower[g, i] = _below(nearest[r, 1], relative, absolute)
            else:
                lower[g, i] = _below(first, relative, absolute)


@compiled
def _above(square, relative, absolute):
    return np.sqrt(square) * (np.float32(1.0) + relative) + absolute


@compiled
def _below(square, relative, absolute):
    return max(np.sqrt(square) * (np.float32(1.0) - relative) - absolute, _ZERO)


@compiled(reduction=True)
def _squared_distance(x, center):
    total = 0.0
    for j in range(len(x)):
        apart = x[j] - center[j]
        total += apart * apart
    return total


@compiled
def _decide(x, centers, scale, group_of, upper, lower, i):
    """Return the nearest centre in double precision, the first of several; write the bounds of row i."""
    best, who = np.inf, 0
    lower[:, i] = _ENDLESS
    for j in range(len(centers)):
        distance = np.sqrt(_squared_distance(x, centers[j])) * scale
        loser, farther = j, distance
        if distance < best:
            loser, farther = who, best
            best, who = distance, j
        if farther < np.inf:
            g = group_of[loser]
            lower[g, i] = min(lower[g, i], np.float32(farther * (1 - 1e-6)))
    upper[i] = np.float32(best * (1 + 1e-6))
    return who


@compiled
def _move(x, weight, origin, before, after, sums, counts):
    """Take a row out of the sums of one centre and into those of another."""
    for j in range(len(x)):
        moved = weight * (x[j] - origin[j])
        sums[after, j] += moved
        if before >= 0:
            sums[before, j] -= moved
    counts[after] += weight
    if before >= 0:
        counts[before] -= weight


@compiled(reduction=True)
def inertia_block(X: np.ndarray, weight: np.ndarray, labels: np.ndarray, centers: np.ndarray) -> float:
    """Return the sum over a chunk of weight times the squared distance to the own centre, in double precision."""
    total = 0.0
    for i in range(len(X)):
        total += _squared_distance(X[i], centers[labels[i]]) * (weight[i] if weight.size else 1.0)
    return total


@compiled(reduction=True)
def candidates_block(X32, weight, closest, points, n_candidates, rows, totals):
    """Add to totals[c] the sum over a chunk of weight times min(closest, squared distance to candidate c)."""
    n, out = len(X32), np.empty((4, LANES), np.float32)
    for t in range(0, n, 4):
        four_rows_to_lanes(X32, rows, t, points, 0, out)
        for r in range(min(4, n - t)):
            i = t + r
            share = weight[i] if weight.size else 1.0
            for c in range(n_candidates):
                totals[c] += share * min(closest[i], out[r, c])


@compiled(reduction=True)
def closest_block(X32, weight, closest, point):
    """Lower `closest` to the squared distance to a new centre; return the weighted sum."""
    total = 0.0
    for i in range(len(X32)):
        square = _ZERO
        for j in range(X32.shape[1]):
            apart = X32[i, j] - point[j]
            square += apart * apart
        closest[i] = min(closest[i], square)
        total += closest[i] * (weight[i] if weight.size else 1.0)
    return total


@compiled
def extremes_block(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sum, the least and the largest entry of each column of a chunk."""
    n, d = X.shape
    total, low, high = np.zeros(d), np.full(d, np.inf), np.full(d, -np.inf)
    for i in range(n):
        for j in range(d):
            x = X[i, j]
            total[j] += x
            low[j] = min(low[j], x)
            high[j] = max(high[j], x)
    return total, low, high


@compiled
def nearest_block(indptr, indices, data, columns, halves, labels, least):
    """Write the nearest centre of each row, the first of equals, and |c|^2 / 2 - x'c of it.

    indptr (n + 1,), indices, data: the rows; columns (d, k); halves (k,): |c|^2 / 2; labels (n,), least (n,): written.
    """
    n, k = len(indptr) - 1, columns.shape[1]
    scores = np.empty(min(k, _PIECE))
    least[:] = np.inf
    for first in range(0, k, _PIECE):
        last = min(first + _PIECE, k)
        piece = scores[: last - first]
        for i in range(n):
            for j in range(len(piece)):
                piece[j] = halves[first + j]
            _take_products(indptr[i], indptr[i + 1], indices, data, columns, first, last, piece)
            low = _least(piece)
            if low < least[i]:
                least[i] = low
                for j in range(len(piece)):
                    if piece[j] == low:
                        labels[i] = first + j
                        break


@compiled(reduction=True)
def _take_products(begin, end, indices, data, columns, first, last, piece):
    """Take the products of one row with the centres first, ..., last - 1 off `piece`, four entries at a time."""
    whole = begin + (end - begin) // 4 * 4
    for e in range(begin, whole, 4):
        a, b, c, d = data[e], data[e + 1], data[e + 2], data[e + 3]
        p, q = columns[indices[e], first:last], columns[indices[e + 1], first:last]
        r, s = columns[indices[e + 2], first:last], columns[indices[e + 3], first:last]
        for j in range(len(piece)):
            piece[j] -= a * p[j] + b * q[j] + c * r[j] + d * s[j]
    for e in range(whole, end):
        a, p = data[e], columns[indices[e], first:last]
        for j in range(len(piece)):
            piece[j] -= a * p[j]


@compiled
def _least(values):
    """Return the least value; four running minima, so that none waits for the one before."""
    whole = len(values) // 4 * 4
    a = b = c = d = values[0]
    for j in range(0, whole, 4):
        a = values[j] if values[j] < a else a
        b = values[j + 1] if values[j + 1] < b else b
        c = values[j + 2] if values[j + 2] < c else c
        d = values[j + 3] if values[j + 3] < d else d
    for j in range(whole, len(values)):
        a = values[j] if values[j] < a else a
    return min(min(a, b), min(c, d))


@compiled(reduction=True)
def own_block(indptr, indices, data, centers, squares, labels, own):
    """Write the squared distance of each row to its centre: entries of the row one by one, the other columns by |c|^2,
    `squares`."""
    for i in range(len(indptr) - 1):
        c = labels[i]
        total = squares[c]
        for e in range(indptr[i], indptr[i + 1]):
            at = centers[c, indices[e]]
            total += (data[e] - at) * (data[e] - at) - at * at
        own[i] = max(total, 0.0)


@compiled(reduction=True)
def absorb(batch, weight, products, lengths, centers, counts, labels):
    """Give each row of a batch its nearest centre, move the centres to the means of all rows they have had; return the
    sum of weighted squared distances before.

    products (n, k): <x, c>; lengths (k,): |c|^2, of which the least of lengths - 2 products tells the nearest; centers
    (k, d) and counts (k,), the weight each centre has had, are changed; labels (n,) are written.
    """
    n, k = products.shape
    d = batch.shape[1]
    sums, gained = np.zeros((k, d)), np.zeros(k)
    inertia = 0.0
    for i in range(n):
        best, who = np.inf, 0
        for j in range(k):
            value = lengths[j] - 2.0 * products[i, j]
            if value < best:
                best, who = value, j
        labels[i] = who
        square = 0.0
        for f in range(d):
            apart = batch[i, f] - centers[who, f]
            square += apart * apart
        for f in range(d):
            sums[who, f] += weight[i] * batch[i, f]
        inertia += weight[i] * square
        gained[who] += weight[i]
    for j in range(k):
        if gained[j] > 0.0:
            before, after = counts[j], counts[j] + gained[j]
            for f in range(d):
                centers[j, f] = (centers[j, f] * before + sums[j, f]) / after
            counts[j] = after
    return inertia


@compiled
def _cost(S0, S1, S2, i, j):
    mass = S0[j] - S0[i]
    if mass <= 0.0:
        return 0.0
    first = S1[j] - S1[i]
    return max(S2[j] - S2[i] - first * first / mass, 0.0)


@compiled
def bucket_optimum(S0: np.ndarray, S1: np.ndarray, S2: np.ndarray, cuttable: np.ndarray, k: int) -> float:
    """Return the least cost of k intervals of buckets, where a bucket that is `cuttable` may be left out between two.

    S0, S1, S2 (buckets + 1,): prefix sums of weight, weight x and weight x^2.
    """
    B = len(cuttable)
    best, begin = np.empty(B + 1), np.empty(B + 1)
    for j in range(B + 1):
        best[j] = _cost(S0, S1, S2, 0, j)
    for _ in range(k - 1):
        for i in range(B + 1):
            begin[i] = min(best[i], best[i - 1]) if i and cuttable[i - 1] else best[i]
        for j in range(B + 1):
            least = np.inf
            for i in range(j + 1):
                if begin[i] < least:
                    least = min(least, begin[i] + _cost(S0, S1, S2, i, j))
            best[j] = least
    return best[B]


@compiled
def line_borders(S0: np.ndarray, S1: np.ndarray, S2: np.ndarray, k: int) -> np.ndarray:
    """Return borders (k + 1,), from 0 to n, of the k intervals of least cost."""
    n = len(S0) - 1
    before, best = np.empty(n + 1), np.empty(n + 1)
    choice = np.zeros((k, n + 1), np.int32)
    for j in range(n + 1):
        best[j] = _cost(S0, S1, S2, 0, j)
    stack = np.empty((2 * 64 + 2, 4), np.int64)
    for m in range(1, k):
        before[:] = best
        stack[0] = 0, n, 0, n
        top = 1
        while top:
            top -= 1
            left, right, low, high = stack[top]
            j = (left + right) // 2
            least, at = np.inf, low
            for i in range(low, min(high, j) + 1):
                value = before[i] + _cost(S0, S1, S2, i, j)
                if value < least:
                    least, at = value, i
            best[j], choice[m, j] = least, at
            if left < j:
                stack[top] = left, j - 1, low, at
                top += 1
            if j < right:
                stack[top] = j + 1, right, at, high
                top += 1
    borders = np.empty(k + 1, np.int64)
    borders[k] = n
    for m in range(k - 1, 0, -1):
        borders[m] = choice[m, borders[m + 1]]
    borders[0] = 0
    return borders
