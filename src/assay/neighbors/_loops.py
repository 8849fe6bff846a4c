"""Compiled loops of the search: screening of scores in single precision, exact ranking, and a tree of boxes.

Every ranking is by (distance, row number), so that of rows at the same distance the first ones are the neighbours.
Powers of distances are summed over the columns in order, without fused operations: all routes give the same bits.
"""

import numpy as np

from assay.jit import compiled

EUCLIDEAN, MANHATTAN, CHEBYSHEV, MINKOWSKI = 0, 1, 2, 3
_STRIP = 64  # scores that are compared with the threshold at once


@compiled(reduction=True)
def _has_near(strip, limit):
    """Tell whether a strip of scores has one that is at most `limit`; a count that compares many at once."""
    near = np.float32(0)
    for j in range(_STRIP):
        near += np.float32(1) if strip[j] <= limit else np.float32(0)
    return near > 0


@compiled
def keep_near(score, width, first, slack, heap, found, lower, count):
    """Take in the scores (rows, tile) of training rows first, ..., first + width - 1, right up to slack[row].

    heap (rows, k): the k smallest upper bounds of scores so far, the largest first. found, lower (rows, room) and
    count (rows,): training rows that may be among the k nearest, and lower bounds of their scores; count is -1 once
    they are too many to be listed. All four are written. A tile is a number of whole strips.
    """
    for i in range(len(score)):
        limit = heap[i, 0] + slack[i]
        for begin in range(0, width, _STRIP):
            if count[i] < 0:
                break
            if not _has_near(score[i, begin : begin + _STRIP], limit):
                continue
            for j in range(begin, min(begin + _STRIP, width)):
                if score[i, j] > limit:
                    continue
                if count[i] == found.shape[1]:
                    count[i] = _compact(found[i], lower[i], heap[i, 0])
                    if count[i] == found.shape[1]:
                        count[i] = -1
                        break
                found[i, count[i]] = first + j
                lower[i, count[i]] = score[i, j] - slack[i]
                count[i] += 1
                if score[i, j] + slack[i] < heap[i, 0]:
                    _replace_top(heap[i], score[i, j] + slack[i])
                    limit = heap[i, 0] + slack[i]


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
    """Insert into the k smallest (distance, row), sorted, if it is one of them."""
    last = distance[k - 1]
    if value > last or (value == last and row > index[k - 1]):
        return
    at = k - 1
    while at > 0 and (distance[at - 1] > value or (distance[at - 1] == value and index[at - 1] > row)):
        distance[at], index[at] = distance[at - 1], index[at - 1]
        at -= 1
    distance[at], index[at] = value, row


# A tree of boxes --------------------------------------------------------------------------------------------


@compiled
def split_rows(X, order, levels):
    """Order rows so that each half, quarter, ... of them lies on one side of a median of the widest column.

    X (n, d); order (n,) is written. Part i of level l holds the rows from (i n) >> l on.
    """
    n, d = X.shape
    for level in range(levels):
        for part in range(1 << level):
            start, stop = (part * n) >> level, ((part + 1) * n) >> level
            step = max(1, (stop - start) // 100)
            widest, spread = 0, -1.0
            for j in range(d):
                low = high = X[order[start], j]
                for at in range(start, stop, step):
                    low, high = min(low, X[order[at], j]), max(high, X[order[at], j])
                if high - low > spread:
                    widest, spread = j, high - low
            _select(X, widest, order, start, stop, ((2 * part + 1) * n) >> (level + 1))


@compiled
def _select(X, column, order, start, stop, middle):
    """Move rows with smaller values of the column before `middle`, the others behind it."""
    low, high = start, stop - 1
    while low < high:
        a, b, c = X[order[low], column], X[order[(low + high) // 2], column], X[order[high], column]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while X[order[i], column] < pivot:
                i += 1
            while X[order[j], column] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@compiled
def bound_parts(columns, levels, low, high):
    """Write the least and largest value of every column in every part: low, high (parts, d), root first.

    columns (d, n) holds the ordered rows; part i of level l has number 2^l - 1 + i.
    """
    d, n = columns.shape
    leaves = 1 << levels
    for leaf in range(leaves):
        start, stop = (leaf * n) >> levels, ((leaf + 1) * n) >> levels
        for j in range(d):
            low[leaves - 1 + leaf, j] = columns[j, start:stop].min()
            high[leaves - 1 + leaf, j] = columns[j, start:stop].max()
    for part in range(leaves - 2, -1, -1):
        for j in range(d):
            low[part, j] = min(low[2 * part + 1, j], low[2 * part + 2, j])
            high[part, j] = max(high[2 * part + 1, j], high[2 * part + 2, j])


@compiled
def search_boxes(Q, columns, order, levels, low, high, metric, p, distance, index):
    """Write the k nearest rows of each query into distance and index (rows, k), distances to the power p.

    Returns how many rows were looked at.
    """
    n = columns.shape[1]
    k, inner, looked = distance.shape[1], (1 << levels) - 1, 0
    parts, bounds = np.empty(2 * levels + 2, np.int64), np.empty(2 * levels + 2)
    power = np.empty((n >> levels) + 1)
    for i in range(len(Q)):
        q, nearest, rows = Q[i], distance[i], index[i]
        nearest[:] = np.inf
        rows[:] = n
        depth = 1
        parts[0], bounds[0] = 0, 0.0
        while depth > 0:
            depth -= 1
            part = parts[depth]
            if bounds[depth] > nearest[k - 1]:
                continue
            if part < inner:
                left = _box_distance(q, low[2 * part + 1], high[2 * part + 1], metric, p)
                right = _box_distance(q, low[2 * part + 2], high[2 * part + 2], metric, p)
                near, far, a, b = (1, 2, left, right) if left <= right else (2, 1, right, left)
                parts[depth], bounds[depth] = 2 * part + far, b
                parts[depth + 1], bounds[depth + 1] = 2 * part + near, a
                depth += 2
                continue
            start, stop = ((part - inner) * n) >> levels, ((part - inner + 1) * n) >> levels
            looked += stop - start
            _powers(q, columns, start, stop, metric, p, power)
            for j in range(stop - start):
                if power[j] <= nearest[k - 1]:
                    _insert(power[j], order[start + j], nearest, rows, k)
    return looked


@compiled
def _powers(q, columns, start, stop, metric, p, power):
    """Write the powers of the distances between q and rows start..stop."""
    size = stop - start
    for j in range(size):
        power[j] = 0.0
    for c in range(len(q)):
        value, column = q[c], columns[c, start:stop]
        if metric == EUCLIDEAN:
            for j in range(size):
                gap = column[j] - value
                power[j] += gap * gap
        elif metric == MANHATTAN:
            for j in range(size):
                power[j] += abs(column[j] - value)
        elif metric == CHEBYSHEV:
            for j in range(size):
                power[j] = max(power[j], abs(column[j] - value))
        else:
            for j in range(size):
                power[j] += abs(column[j] - value) ** p


@compiled
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
    return total * (1.0 - 1e-12) if metric == MINKOWSKI else total
