"""Compiled loops of the search for neighbours: screening of scores in single precision, exact ranking, and a tree of
boxes.

Every ranking is by (distance, row number), so that of rows at the same distance the first ones are the neighbours.
Powers of distances are summed over the columns in order, without fused operations: all routes give the same bits.

`lvq_pass` is that of learning vector quantisation.
"""

import numpy as np

from assay.jit import LANES, compiled, four_products_near, trailing_zeros

EUCLIDEAN, MANHATTAN, CHEBYSHEV, MINKOWSKI = 0, 1, 2, 3
UNIT = 2.0**-24  # of single precision
BLOCK = 32  # groups of training rows that stay in the cache while all queries of a block pass


@compiled
def screen(Q, norms, groups, largest, n, heap, found, lower, count):
    """Keep the training rows that may be among the k nearest of each query, by products in single precision.

    Q (a multiple of 4, d + 1) and groups (of LANES rows each, d + 1, LANES), whose products are scores; norms, largest:
    lengths of the queries and of the longest row of each block of groups. heap (rows, k): the k smallest upper bounds
    of scores, the largest first. found, lower (rows, room) and count (rows,): rows that may be nearest, and lower
    bounds of their scores; count is -1 for queries that are left out, or whose rows are too many to be listed.
    """
    m, width = Q.shape
    slack, limits, out = np.empty(m, np.float32), np.empty(m, np.float32), np.empty((4, LANES), np.float32)
    for block in range(len(largest)):
        far = largest[block]
        for i in range(m):
            slack[i] = np.float32((width + 12) * UNIT * (norms[i] * far + 0.5 * far * far) + 1e-37)
            limits[i] = heap[i, 0] + slack[i] if count[i] >= 0 else -np.inf
        for at in range(0, m, 4):
            for group in range(block * BLOCK, min((block + 1) * BLOCK, len(groups))):
                near = four_products_near(Q, at, groups, group, limits, out)
                while near:
                    bit = np.int64(trailing_zeros(near))
                    near &= near - np.uint64(1)
                    r, row = bit // LANES, group * LANES + bit % LANES
                    if row < n:
                        _keep(out[r, bit % LANES], row, at + r, slack, limits, heap, found, lower, count)


@compiled
def _keep(score, row, i, slack, limits, heap, found, lower, count):
    """List one row for query i, if it still may be among the nearest."""
    if score > limits[i]:
        return
    if count[i] == found.shape[1]:
        count[i] = _compact(found[i], lower[i], heap[i, 0])
        if count[i] == found.shape[1]:
            count[i], limits[i] = -1, -np.inf
            return
    found[i, count[i]], lower[i, count[i]] = row, score - slack[i]
    count[i] += 1
    if score + slack[i] < heap[i, 0]:
        _replace_top(heap[i], score + slack[i])
        limits[i] = heap[i, 0] + slack[i]


@compiled
def _compact(found, lower, limit):
    """Keep the rows whose lower bound is at most `limit`, in place; return how many."""
    kept = 0
    for j in range(len(found)):
        if lower[j] <= limit:
            found[kept], lower[kept] = found[j], lower[j]
            kept += 1
    return kept


@compiled
def _replace_top(heap, value):
    """Replace the largest entry, heap[0], by a smaller value."""
    k, at = len(heap), 0
    while True:
        child = 2 * at + 1
        if child >= k:
            break
        if child + 1 < k and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= value:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = value


@compiled
def rank_exactly(Q, X, order, heap, found, lower, count, distance, index):
    """Rank the rows that screening left by their squared distance in double precision.

    Writes the k nearest into distance and index (rows, k). X is in the order of the user's rows, order[j] is the
    number of the row that screening calls j. Rows with count -1 are compared with all of X.
    """
    k = distance.shape[1]
    for i in range(len(Q)):
        distance[i, :] = np.inf
        index[i, :] = len(X)
        if count[i] < 0:
            for row in range(len(X)):
                _insert(_squared(Q[i], X[row]), row, distance[i], index[i], k)
            continue
        for j in range(count[i]):
            if lower[i, j] <= heap[i, 0]:
                row = order[found[i, j]]
                _insert(_squared(Q[i], X[row]), row, distance[i], index[i], k)


@compiled
def smallest(values, distance, index):
    """Write the k smallest entries of each row of values, and their columns, into distance and index (rows, k)."""
    k = distance.shape[1]
    for i in range(len(values)):
        distance[i, :] = np.inf
        index[i, :] = values.shape[1]
        for j in range(values.shape[1]):
            _insert(values[i, j], j, distance[i], index[i], k)


@compiled
def _squared(a, b):
    total = 0.0
    for j in range(len(a)):
        gap = a[j] - b[j]
        total += gap * gap
    return total


@compiled
def _insert(value, row, distance, index, k):
    """Insert into the k smallest (distance, row), sorted, if it is one of them; what is no number is infinitely far."""
    value = value if value < np.inf else np.inf
    last = distance[k - 1]
    if value > last or (value == last and row > index[k - 1]):
        return
    at = k - 1
    while at > 0 and (distance[at - 1] > value or (distance[at - 1] == value and index[at - 1] > row)):
        distance[at], index[at] = distance[at - 1], index[at - 1]
        at -= 1
    distance[at], index[at] = value, row


# A tree of boxes --------------------------------------------------------------------------------------------
LEAF = 32  # places of a leaf; those that no row takes are infinitely far


@compiled
def split_rows(X, order, column, keys, spare_keys, spare_order, top, first, levels):
    """Order rows so that each half, quarter, ... of them lies on one side of a median of the widest column.

    X (n, d); order (n,) and column, that of every part, are written, the others are scratch. Part i of level l holds
    the rows from (i n) >> l on. Starts with part `first` of level `top`, whose rows it orders down to level `levels`.
    """
    n, d = X.shape
    for level in range(top, levels):
        for part in range(first << (level - top), (first + 1) << (level - top)):
            start, stop = (part * n) >> level, ((part + 1) * n) >> level
            step = max(1, (stop - start) // 64)
            widest, spread = 0, -1.0
            for j in range(d):
                low = high = X[order[start], j]
                for at in range(start, stop, step):
                    low, high = min(low, X[order[at], j]), max(high, X[order[at], j])
                if high - low > spread:
                    widest, spread = j, high - low
            column[(1 << level) - 1 + part] = widest
            for at in range(start, stop):
                keys[at] = X[order[at], widest]
            middle = ((2 * part + 1) * n) >> (level + 1)
            _select(keys, order, spare_keys, spare_order, start, stop, middle)


@compiled
def _select(keys, order, spare_keys, spare_order, start, stop, middle):
    """Move entries with smaller keys before `middle`, the others behind it; keys and order move together."""
    while stop - start > 1:
        pivot = _median_of_few(keys, start, stop)
        low = _partition(keys, order, spare_keys, spare_order, start, stop, pivot, False)
        if middle < low:
            stop = low
            continue
        if low > start:
            start = low
            if middle == low:
                return
            continue
        # Nothing is smaller than the pivot: split off its equals, which may stand in any order.
        low = _partition(keys, order, spare_keys, spare_order, start, stop, pivot, True)
        if middle <= low or low == start:  # keys that are no numbers are never split off
            return
        start = low


@compiled
def _median_of_few(keys, start, stop):
    """Return the median of up to nine keys, evenly spaced."""
    few = np.empty(9)
    size = stop - start
    for i in range(9):
        value, at = keys[start + (i * (size - 1)) // 8], i
        while at > 0 and few[at - 1] > value:
            few[at] = few[at - 1]
            at -= 1
        few[at] = value
    return few[4]


@compiled
def _partition(keys, order, spare_keys, spare_order, start, stop, pivot, with_equals):
    """Move keys below the pivot (or equal to it) to the front; return where the others begin. Free of branches."""
    low, high = start, stop - 1
    for at in range(start, stop):
        key, row = keys[at], order[at]
        front = np.int64(key <= pivot) if with_equals else np.int64(key < pivot)
        place = high + front * (low - high)
        spare_keys[place], spare_order[place] = key, row
        low += front
        high -= 1 - front
    for at in range(start, stop):
        keys[at], order[at] = spare_keys[at], spare_order[at]
    return low


@compiled
def fill_leaves(X, order, levels, first, last, leaves, rows, low, high):
    """Write leaves first .. last - 1 into leaves (parts, d, LEAF) and rows (parts, LEAF), and their boxes.

    Part i of level l has box 2^l - 1 + i. Places without a row are infinitely far.
    """
    n, d = X.shape
    for leaf in range(first, last):
        start, stop = (leaf * n) >> levels, ((leaf + 1) * n) >> levels
        box = (1 << levels) - 1 + leaf
        for at in range(LEAF):
            rows[leaf, at] = order[start + at] if start + at < stop else n
        for j in range(d):
            least, most = np.inf, -np.inf
            for at in range(stop - start):
                value = X[rows[leaf, at], j]
                leaves[leaf, j, at] = value
                least, most = min(least, value), max(most, value)
            for at in range(stop - start, LEAF):
                leaves[leaf, j, at] = np.inf
            low[box, j], high[box, j] = least, most


@compiled
def join_boxes(levels, column, low, high, gap_low, gap_high):
    """Write the boxes of larger parts from those of their halves, and the gap between the halves in their column."""
    for part in range((1 << levels) - 2, -1, -1):
        for j in range(low.shape[1]):
            low[part, j] = min(low[2 * part + 1, j], low[2 * part + 2, j])
            high[part, j] = max(high[2 * part + 1, j], high[2 * part + 2, j])
        gap_low[part], gap_high[part] = high[2 * part + 1, column[part]], low[2 * part + 2, column[part]]


@compiled
def search_boxes(
    Q, leaves, leaf_rows, n, levels, column, gap_low, gap_high, low, high, metric, p, most, distance, index
):
    """Write the k nearest of n rows of each query into distance and index (rows, k), distances to the power p.

    The nearer half of a part is entered by the gap between both; the other waits, and is looked at again by its box.
    Returns how many leaves were looked at; ends after the query with which these are more than `most`.
    """
    k, inner, looked = distance.shape[1], (1 << levels) - 1, 0
    parts, bounds = np.empty(levels + 2, np.int64), np.empty(levels + 2)
    power = np.empty(LEAF)
    for i in range(len(Q)):
        if looked > most:
            break
        q, nearest, rows = Q[i], distance[i], index[i]
        nearest[:] = np.inf
        rows[:] = 9223372036854775807
        depth = 1
        parts[0], bounds[0] = 0, 0.0
        while depth > 0:
            depth -= 1
            part = parts[depth]
            if bounds[depth] > nearest[k - 1] or _box_distance(q, low[part], high[part], metric, p) > nearest[k - 1]:
                continue
            while part < inner:
                value = q[column[part]]
                after, before = gap_high[part] - value, value - gap_low[part]
                near, far, gap = (1, 2, after) if before <= after else (2, 1, before)
                bound = _power(gap, metric, p)
                if not bound > nearest[k - 1]:
                    parts[depth], bounds[depth] = 2 * part + far, bound
                    depth += 1
                part = 2 * part + near
            looked += 1
            _powers(q, leaves[part - inner], metric, p, power)
            if nearest[k - 1] < np.inf and not _any_below(power, nearest[k - 1]):
                continue
            for j in range(LEAF):
                if not power[j] > nearest[k - 1] and leaf_rows[part - inner, j] < n:
                    _insert(power[j], leaf_rows[part - inner, j], nearest, rows, k)
    return looked


@compiled
def _power(gap, metric, p):
    """Return a lower bound of the power of a distance with this gap in one column."""
    if metric == EUCLIDEAN:
        return gap * gap
    return gap**p * (1.0 - 1e-12) if metric == MINKOWSKI else gap


@compiled(reduction=True)
def _any_below(power, limit):
    near = 0.0
    for j in range(LEAF):
        near += 1.0 if power[j] <= limit else 0.0
    return near > 0


@compiled
def _squares(q, leaf, power):
    """Write the squared distances between q and the rows of a leaf (d, LEAF), eight sums at a time in registers."""
    for b in range(0, LEAF, 8):
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        for c in range(len(q)):
            v = q[c]
            g0, g1, g2, g3 = leaf[c, b] - v, leaf[c, b + 1] - v, leaf[c, b + 2] - v, leaf[c, b + 3] - v
            g4, g5, g6, g7 = leaf[c, b + 4] - v, leaf[c, b + 5] - v, leaf[c, b + 6] - v, leaf[c, b + 7] - v
            s0 += g0 * g0
            s1 += g1 * g1
            s2 += g2 * g2
            s3 += g3 * g3
            s4 += g4 * g4
            s5 += g5 * g5
            s6 += g6 * g6
            s7 += g7 * g7
        power[b], power[b + 1], power[b + 2], power[b + 3] = s0, s1, s2, s3
        power[b + 4], power[b + 5], power[b + 6], power[b + 7] = s4, s5, s6, s7


@compiled
def _powers(q, leaf, metric, p, power):
    """Write the powers of the distances between q and the rows of a leaf (d, LEAF)."""
    if metric == EUCLIDEAN:
        _squares(q, leaf, power)
        return
    for j in range(LEAF):
        power[j] = 0.0
    for c in range(len(q)):
        value, column = q[c], leaf[c]
        if metric == MANHATTAN:
            for j in range(LEAF):
                power[j] += abs(column[j] - value)
        elif metric == CHEBYSHEV:
            for j in range(LEAF):
                power[j] = max(power[j], abs(column[j] - value))
        else:
            for j in range(LEAF):
                power[j] += abs(column[j] - value) ** p


@compiled(reduction=True)
def _box_distance(q, low, high, metric, p):
    """Return a lower bound of the power of the distance between q and any row of the box."""
    total = 0.0
    for j in range(len(q)):
        gap = max(low[j] - q[j], q[j] - high[j], 0.0)
        if metric == EUCLIDEAN:
            total += gap * gap
        elif metric == MANHATTAN:
            total += gap
        elif metric == CHEBYSHEV:
            total = max(total, gap)
        else:
            total += gap**p
    return total * (1.0 - 1e-12)


@compiled
def lvq_pass(X, y, order, rate, low, high, prototypes, codes):
    """Visit the rows in `order`: the nearest prototype, the first of equals, moves by `rate` of its gap to the row,
    towards it if their labels agree, else away from it, but not out of the box from low (d,) to high (d,).

    Writes prototypes (q, d); returns how many rows disagreed."""
    q, d = prototypes.shape
    wrong = 0
    for i in order:
        nearest, least = 0, -1.0
        for c in range(q):
            total = 0.0
            for j in range(d):
                gap = X[i, j] - prototypes[c, j]
                total += gap * gap
            if least < 0.0 or total < least:
                nearest, least = c, total
        agree = codes[nearest] == y[i]
        wrong += not agree
        step = rate if agree else -rate
        for j in range(d):
            moved = prototypes[nearest, j] + step * (X[i, j] - prototypes[nearest, j])
            prototypes[nearest, j] = min(max(moved, low[j]), high[j])
    return wrong
