"""Compiled growth of one binary tree on numeric columns: a whole tree in one call, on one thread.

Columns come as codes: position of a value among the distinct values of its column, so that comparing codes is
comparing values. At a node, the rows' codes of a column are counted (if there are few codes) or sorted (by digits),
and a scan from small to large finds the best border. Nothing is approximated: every border between two different
values is tried.
"""

from math import log

import numpy as np

from assay.jit import compiled
from assay.tree.growth._monotone import allowed, narrow, value_of

GINI, ENTROPY, SQUARED, FRIEDMAN, POISSON = 0, 1, 2, 3, 4
_DIGIT = 11
_SMALL = 40  # rows up to which insertion is the fastest sort


@compiled
def random_bits(state):
    """Return 64 pseudo-random bits and step `state` (1,) (SplitMix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def below(state, n):
    """Return a pseudo-random number from 0 .. n - 1, for n up to 2^32."""
    return np.int64(((random_bits(state) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@compiled
def merit_of(sums, criterion, classes):
    """Return the number whose growth by a split, over the node's weight, is the decrease of impurity.

    Gini: sum c_k^2 / W; entropy (bits): sum c_k log2 c_k - W log2 W; squares: s^2 / W; Poisson: s ln(s / W).
    """
    if criterion == GINI:
        total, squares = 0.0, 0.0
        for k in range(classes):
            total += sums[k]
            squares += sums[k] * sums[k]
        return squares / total
    if criterion == ENTROPY:
        total, merit = 0.0, 0.0
        for k in range(classes):
            if sums[k] > 0:
                total += sums[k]
                merit += sums[k] * log(sums[k])
        return (merit - total * log(total)) / log(2.0)
    if criterion == POISSON:
        return sums[1] * log(sums[1] / sums[0]) if sums[1] > 0 else -np.inf
    return sums[1] * sums[1] / sums[0]


@compiled
def _pair(left, right, criterion, classes):
    """Return the merit of two children together."""
    if criterion == FRIEDMAN:
        gap = left[1] / left[0] - right[1] / right[0]
        return left[0] * right[0] / (left[0] + right[0]) * gap * gap
    return merit_of(left, criterion, classes) + merit_of(right, criterion, classes)


@compiled
def _sort(keys, spare, counts, low, high):
    """Sort keys by their upper 32 bits, which lie between low and high."""
    n = keys.shape[0]
    if n <= _SMALL:
        for i in range(1, n):
            key = keys[i]
            j = i
            while j > 0 and keys[j - 1] > key:
                keys[j] = keys[j - 1]
                j -= 1
            keys[j] = key
        return
    base, span, shift = np.uint64(low), high - low, np.uint64(32)
    source, target, flips = keys, spare, 0
    while True:
        size = min(span + 1, 1 << _DIGIT)
        mask = np.uint64((1 << _DIGIT) - 1)
        counts[:size] = 0
        for i in range(n):
            counts[np.int64((((source[i] >> np.uint64(32)) - base) >> (shift - np.uint64(32))) & mask)] += 1
        total = 0
        for k in range(size):
            here = counts[k]
            counts[k] = total
            total += here
        for i in range(n):
            digit = np.int64((((source[i] >> np.uint64(32)) - base) >> (shift - np.uint64(32))) & mask)
            target[counts[digit]] = source[i]
            counts[digit] += 1
        source, target, flips = target, source, flips + 1
        span >>= _DIGIT
        shift += np.uint64(_DIGIT)
        if span == 0:
            break
    if flips % 2:
        for i in range(n):
            keys[i] = spare[i]


@compiled
def _scan(code, count, sums, m, total, rule, classes, criterion, found, column, left, right, sign, low, high):
    """Try every border between neighbouring codes; `code`, `count` (m,), `sums` (m, width) in ascending order
    of codes. `sign` is not 0 if the values must rise or fall with the column, within low and high (`_monotone`)."""
    width = total.shape[0]
    left[:] = 0.0
    right[:] = total
    rows, taken = 0, 0
    for i in range(m):
        rows += count[i]
    for i in range(m - 1):
        weight_left, weight_right = 0.0, 0.0
        for k in range(width):
            left[k] += sums[i, k]
            right[k] -= sums[i, k]
        taken += count[i]
        if taken < rule[0] or code[i] == code[i + 1]:
            continue
        if rows - taken < rule[0]:
            break
        for k in range(classes if classes > 0 else 1):
            weight_left += left[k]
            weight_right += right[k]
        if weight_left <= 0 or weight_right <= 0 or weight_left < rule[1] or weight_right < rule[1]:
            continue
        merit = _pair(left, right, criterion, classes)
        if merit > found[0]:
            if sign != 0:
                a, b = value_of(left, classes), value_of(right, classes)
                if not allowed(a, b, sign, low, high):
                    continue
                found[5] = a / 2 + b / 2
            found[0], found[1], found[2], found[3] = merit, column, code[i], code[i + 1]


@compiled
def _random_border(
    code, count, sums, m, total, rule, classes, criterion, found, column, left, right, levels, state, sign, low, high
):
    """Try one border, drawn evenly between the smallest and the largest value of the column at this node."""
    first, last = levels[code[0]], levels[code[m - 1]]
    t = first + (last - first) * (np.float64(random_bits(state) >> np.uint64(11)) * 2.0**-53)
    left[:] = 0.0
    right[:] = total
    taken, rows = 0, 0
    for i in range(m):
        rows += count[i]
    i = 0
    while i < m - 1 and levels[code[i]] <= t:
        for k in range(total.shape[0]):
            left[k] += sums[i, k]
            right[k] -= sums[i, k]
        taken += count[i]
        i += 1
    weight_left, weight_right = 0.0, 0.0
    for k in range(classes if classes > 0 else 1):
        weight_left += left[k]
        weight_right += right[k]
    if taken < rule[0] or rows - taken < rule[0] or weight_left <= 0 or weight_right <= 0:
        return
    if weight_left < rule[1] or weight_right < rule[1]:
        return
    merit = _pair(left, right, criterion, classes)
    if merit > found[0]:
        if sign != 0:
            a, b = value_of(left, classes), value_of(right, classes)
            if not allowed(a, b, sign, low, high):
                return
            found[5] = a / 2 + b / 2
        found[0], found[1], found[2], found[3], found[4] = merit, column, code[i - 1], code[i], t


@compiled
def grow(
    codes,
    n_codes,
    levels,
    starts,
    y,
    weight,
    rows,
    classes,
    criterion,
    rule,
    max_features,
    random,
    seed,
    between,
    monotone,
    within,
):
    """Grow a tree; return its arrays.

    codes (columns, n) of any integer type; n_codes (columns,); levels: distinct values of all columns, column
    f's from
    starts[f] on; y (n,) class numbers or targets; rows: row numbers of the sample, reordered in place;
    between: whether a threshold lies half-way between two levels (or where it was drawn) instead of at the
    lower one;
    rule (6,): min_samples_leaf, min_weight_leaf, min_samples_split, max_depth, max_leaves (0: none),
    min_decrease;
    monotone (columns,): signs of the columns with which values rise or fall, or empty; within (2,): bounds of all
    values then.
    """
    d, m = codes.shape[0], rows.shape[0]
    width = classes if classes > 0 else 2
    state = np.empty(1, dtype=np.uint64)
    state[0] = seed
    most = 2 * m + 1 if rule[4] <= 0 else min(2 * m + 1, 2 * int(rule[4]) + 1)
    column, threshold = np.full(most, -1, dtype=np.int32), np.zeros(most)
    child, value = np.full(most, -1, dtype=np.int32), np.zeros((most, width))
    merit, squares = np.zeros(most), np.zeros(most)
    start, stop, depth = (
        np.zeros(most, dtype=np.int64),
        np.zeros(most, dtype=np.int64),
        np.zeros(most, dtype=np.int32),
    )
    split, gain = np.zeros((most, 6)), np.zeros(most)
    bounds, low, high = np.zeros((most if monotone.size else 1, 2)), within[0], within[1]
    bounds[0] = within
    frontier, waiting = np.empty(most, dtype=np.int64), 0
    largest = 0
    for f in range(d):
        largest = max(largest, n_codes[f])
    few = min(largest, 256)
    size = max(m, few)
    keys, spare = np.empty(m, dtype=np.uint64), np.empty(m, dtype=np.uint64)
    code, count, sums = (
        np.empty(size, dtype=np.int64),
        np.empty(size, dtype=np.int64),
        np.empty((size, width)),
    )
    counts = np.zeros(1 << _DIGIT, dtype=np.int64)
    tally, tally_rows = np.zeros((few, width)), np.zeros(few, dtype=np.int64)
    left, right, found, order = np.empty(width), np.empty(width), np.empty(6), np.arange(d)
    start[0], stop[0], n_nodes, leaves = 0, m, 1, 1
    fresh, end = 0, 1
    while True:
        for node in range(fresh, end):  # sums and best split of nodes that were just made
            a, b = start[node], stop[node]
            total = value[node]
            for i in range(a, b):
                r = rows[i]
                w = weight[r] if weight.size else 1.0
                if classes > 0:
                    total[np.int64(y[r])] += w
                else:
                    total[0] += w
                    total[1] += w * y[r]
                    squares[node] += w * y[r] * y[r]
            merit[node] = merit_of(total, SQUARED if criterion == FRIEDMAN else criterion, classes)
            pure = _is_pure(rows, y, a, b)
            if pure or b - a < rule[2] or b - a < 2 * rule[0] or depth[node] >= rule[3]:
                continue
            found[0], found[1], found[4] = -np.inf, -1, np.nan
            if monotone.size:
                low, high = bounds[node, 0], bounds[node, 1]
            tried, drawn = 0, 0
            while drawn < d and (tried < max_features or found[1] < 0):
                j = drawn + (below(state, d - drawn) if max_features < d or random else 0)
                f = order[j]
                order[j], order[drawn] = order[drawn], f
                drawn += 1
                n_found = _gather(
                    codes[f],
                    n_codes[f],
                    y,
                    weight,
                    rows,
                    a,
                    b,
                    classes,
                    keys,
                    spare,
                    counts,
                    tally,
                    tally_rows,
                    code,
                    count,
                    sums,
                )
                if n_found < 2 or code[0] == code[n_found - 1]:
                    continue
                tried += 1
                sign = monotone[f] if monotone.size else 0
                if random:
                    _random_border(
                        code,
                        count,
                        sums,
                        n_found,
                        total,
                        rule,
                        classes,
                        criterion,
                        found,
                        f,
                        left,
                        right,
                        levels[starts[f] :],
                        state,
                        sign,
                        low,
                        high,
                    )
                else:
                    _scan(
                        code,
                        count,
                        sums,
                        n_found,
                        total,
                        rule,
                        classes,
                        criterion,
                        found,
                        f,
                        left,
                        right,
                        sign,
                        low,
                        high,
                    )
            if max_features >= d and not random:
                for f in range(d):
                    order[f] = f
            if found[1] < 0:
                continue
            gain[node] = found[0] - (0.0 if criterion == FRIEDMAN else merit[node])
            if gain[node] < rule[5] * (1 - 1e-12) - 1e-300:
                continue
            split[node] = found
            frontier[waiting] = node
            waiting += 1
        if waiting == 0 or (rule[4] > 0 and leaves >= rule[4]):
            break
        pick = waiting - 1
        if rule[4] > 0:
            for i in range(waiting):
                if gain[frontier[i]] > gain[frontier[pick]]:
                    pick = i
        node = frontier[pick]
        waiting -= 1
        frontier[pick] = frontier[waiting]
        f = np.int64(split[node, 1])  # type: ignore[assignment]
        column[node] = f
        under, over = levels[starts[f] + np.int64(split[node, 2])], levels[starts[f] + np.int64(split[node, 3])]
        middle = split[node, 4] if random else under / 2 + over / 2
        threshold[node] = middle if between and under <= middle < over else under
        border = _part(codes[f], np.int64(split[node, 2]), rows, keys, start[node], stop[node])
        child[node] = n_nodes
        if monotone.size:
            narrow(bounds, node, n_nodes, monotone[f], split[node, 5])
        start[n_nodes], stop[n_nodes], depth[n_nodes] = start[node], border, depth[node] + 1
        start[n_nodes + 1], stop[n_nodes + 1], depth[n_nodes + 1] = border, stop[node], depth[node] + 1
        fresh, end = n_nodes, n_nodes + 2
        n_nodes, leaves = n_nodes + 2, leaves + 1
    n = n_nodes
    return (
        column[:n],
        threshold[:n],
        child[:n],
        value[:n],
        merit[:n],
        squares[:n],
        start[:n],
        stop[:n],
        gain[:n],
        bounds[:n],
    )


@compiled
def _is_pure(rows, y, a, b):
    first = y[rows[a]]
    for i in range(a + 1, b):  # noqa: SIM110 (compiled code has no generators)
        if y[rows[i]] != first:
            return False
    return True


@compiled
def _gather(codes, n_codes, y, weight, rows, a, b, classes, keys, spare, counts, tally, tally_rows, code, count, sums):
    """Write codes in ascending order with their rows and sums, one entry per code or per row; return how
    many."""
    if n_codes <= tally.shape[0] and b - a > n_codes // 8:
        for i in range(a, b):
            r = rows[i]
            c = codes[r]
            w = weight[r] if weight.size else 1.0
            tally_rows[c] += 1
            if classes > 0:
                tally[c, np.int64(y[r])] += w
            else:
                tally[c, 0] += w
                tally[c, 1] += w * y[r]
        n = 0
        for c in range(n_codes):
            if tally_rows[c] > 0:
                code[n], count[n] = c, tally_rows[c]
                for k in range(tally.shape[1]):
                    sums[n, k] = tally[c, k]
                    tally[c, k] = 0.0
                tally_rows[c] = 0
                n += 1
        return n
    n = b - a
    low, high = np.int64(codes[rows[a]]), np.int64(codes[rows[a]])
    for i in range(n):
        r = rows[a + i]
        c = np.int64(codes[r])
        low, high = min(low, c), max(high, c)
        keys[i] = (np.uint64(c) << np.uint64(32)) | np.uint64(r)
    if low == high:
        return 1
    _sort(keys[:n], spare[:n], counts, low, high)
    for i in range(n):
        r = np.int64(keys[i] & np.uint64(0xFFFFFFFF))
        code[i], count[i] = np.int64(keys[i] >> np.uint64(32)), 1
        w = weight[r] if weight.size else 1.0
        if classes > 0:
            for k in range(sums.shape[1]):
                sums[i, k] = 0.0
            sums[i, np.int64(y[r])] = w
        else:
            sums[i, 0], sums[i, 1] = w, w * y[r]
    return n


@compiled
def _part(codes, last, rows, spare, start, stop):
    """Reorder rows[start:stop], codes up to `last` first; return the border."""
    left, right = start, 0
    for i in range(start, stop):
        r = rows[i]
        if codes[r] <= last:
            rows[left] = r
            left += 1
        else:
            spare[right] = np.uint64(r)
            right += 1
    for i in range(right):
        rows[left + i] = np.int64(spare[i])
    return left
