"""Compiled loops of histogram boosting: binning, sums per bin, split search, partition of rows.

A row's gradient g and hessian h are quantised to 12 bits each and packed, with a count of one, into 64 bits: gradient
in the upper 25, hessian in the next 25, count in the lower 14. One integer addition per row and column then updates all
three sums; after at most 8192 rows the sums are unpacked into three arrays of integers that are wide enough for all
rows. Integers add exactly, so neither the order of rows nor the number of threads changes a bit, and a sibling is its
parent minus the other child.
"""

from math import isnan

import numpy as np

from assay.jit import compiled, prefetch

BINS = 256
MISSING = 255  # the bin of missing values; values take bins 0 .. 254
LEVELS = 2047  # largest quantised gradient; hessians go up to 2 * LEVELS + 1
_CHUNK = 8192
_PIECE = 2048  # rows divided before those of the smaller side are summed
_STRIP = 64  # rows binned together, so that they stay in the first cache
_GRADIENT_SHIFT = 39
_HESSIAN_SHIFT = 14
_HESSIAN_MASK = (1 << 25) - 1
_COUNT_MASK = (1 << 14) - 1
_AHEAD = np.uint64(16)  # rows between asking for a row's bins and using them
_STEP = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: multiples of it spread evenly


@compiled
def _edges_below(edges, x):
    """Return how many of 255 ascending edges lie below x: eight steps without a branch to mispredict."""
    b = np.uint64(0)
    b += np.uint64(128) * np.uint64(edges[b + np.uint64(127)] < x)
    b += np.uint64(64) * np.uint64(edges[b + np.uint64(63)] < x)
    b += np.uint64(32) * np.uint64(edges[b + np.uint64(31)] < x)
    b += np.uint64(16) * np.uint64(edges[b + np.uint64(15)] < x)
    b += np.uint64(8) * np.uint64(edges[b + np.uint64(7)] < x)
    b += np.uint64(4) * np.uint64(edges[b + np.uint64(3)] < x)
    b += np.uint64(2) * np.uint64(edges[b + np.uint64(1)] < x)
    b += np.uint64(edges[b] < x)
    return b


@compiled
def bin_block(X, edges, n_edges, nominal, bins):
    """Write the bins of a block of rows (rows, columns).

    The bin is the number of edges below the entry (edges (columns, 255) end in infinities); for a nominal
    column its code; `MISSING` for NaN.
    """
    n = X.shape[0]
    for begin in range(0, n, _STRIP):
        end = min(begin + _STRIP, n)
        for f in range(X.shape[1]):
            for i in range(begin, end):
                x = X[i, f]
                if nominal[f]:
                    b = np.uint64(x) if 0.0 <= x < n_edges[f] and x == np.floor(x) else np.uint64(MISSING)
                else:
                    b = np.uint64(MISSING) if isnan(x) else _edges_below(edges[f], x)
                bins[i, f] = b


@compiled
def place_block(bins, start, rows, columns):
    """Copy the bins of rows start, start + 1, ... to `rows` and, unless it has none, to `columns` (columns, rows)."""
    n, d = bins.shape
    for begin in range(0, n, _STRIP):
        end = min(begin + _STRIP, n)
        for i in range(begin, end):
            for f in range(d):
                rows[start + i, f] = bins[i, f]
        for f in range(columns.shape[0]):
            for i in range(begin, end):
                columns[f, start + i] = bins[i, f]


@compiled
def pack_block(g, h, g_scale, h_scale, chosen, start, stop, turn, first, entries):
    """Write row number (upper 32 bits), round(g * g_scale) and round(h * h_scale) (12 bits each) of rows
    start .. stop - 1.

    Numbers are rounded up or down by evenly spread thresholds, so that sums are not biased. A single h stands
    for all rows; `chosen`, if not empty, lists the rows that take part; row 0 is the row `first` of all machines.
    """
    constant = h.shape[0] == 1
    for k in range(start, stop):
        i = chosen[k] if chosen.shape[0] else k
        mixed = (np.uint64(i + first) + np.uint64(turn) * np.uint64(0xD1342543DE82EF95)) * _STEP
        u = np.float64(mixed >> np.uint64(40)) * 2.0**-24
        v = np.float64((mixed >> np.uint64(16)) & np.uint64(0xFFFFFF)) * 2.0**-24
        a = np.int64(np.floor(g[i] * g_scale + u))
        b = np.int64(np.floor((h[0] if constant else h[i]) * h_scale + v))
        entries[k] = (np.int64(i) << 32) | (((a << 12) + b) & 0xFFFFFFFF)


@compiled
def _unpack(sums, histogram, at):
    """Add the packed sums to gradient, hessian and count (3, ...) from position `at` on, and clear them."""
    for k in range(sums.shape[0]):
        s = sums[k]
        sums[k] = 0
        histogram[2, at + k] += s & _COUNT_MASK
        histogram[1, at + k] += (s >> _HESSIAN_SHIFT) & _HESSIAN_MASK
        histogram[0, at + k] += s >> _GRADIENT_SHIFT


@compiled
def _add_rows(bins, first, end, entries, start, stop, sums):
    """Add the packed g, h and count of entries[start:stop] to the sums of their bins."""
    columns, width, at = np.uint64(end - first), np.uint64(bins.shape[1]), np.uint64(first)
    last = np.uint64(stop - 1)
    for i in range(np.uint64(start), np.uint64(stop)):
        entry = entries[i]
        row = np.uint64(entry >> 32)
        prefetch(bins, np.uint64(entries[min(i + _AHEAD, last)] >> 32) * width + at)
        q = np.int64(np.int32(entry))
        value = ((q >> 12) << _GRADIENT_SHIFT) + ((q & 4095) << _HESSIAN_SHIFT) + 1
        for f in range(columns):
            sums[(f << np.uint64(8)) + np.uint64(bins[row, at + f])] += value


@compiled
def histogram_rows(bins, first, end, entries, start, stop, histogram):
    """Set columns first .. end - 1 of `histogram` (3, columns * 256) to the sums over entries[start:stop]."""
    sums = np.zeros((end - first) * BINS, dtype=np.int64)
    histogram[:, first * BINS : end * BINS] = 0
    for begin in range(start, stop, _CHUNK):
        _add_rows(bins, first, end, entries, begin, min(begin + _CHUNK, stop), sums)
        _unpack(sums, histogram, first * BINS)


@compiled
def _part_forward(column, goes_left, entries, scratch, begin, end, at, k):
    """Move entries[begin:end] that go left to entries[at], ... and the others to scratch[k], ...; return at and k."""
    for i in range(np.uint64(begin), np.uint64(end)):
        entry = entries[i]
        go = np.int64(goes_left[column[np.uint64(entry >> 32)]])
        entries[at] = entry
        scratch[k] = entry
        at += go
        k += 1 - go
    return at, k


@compiled
def _part_backward(column, goes_left, entries, scratch, begin, end, at, k):
    """The same from the last row to the first: rows that go right to entries[at], entries[at - 1], ..."""
    for i in range(end - 1, begin - 1, -1):
        entry = entries[i]
        go = np.int64(goes_left[column[np.uint64(entry >> 32)]])
        entries[at] = entry
        scratch[k] = entry
        at -= 1 - go
        k += go
    return at, k


@compiled
def partition(bins, column, goes_left, small_left, entries, scratch, base, start, stop, histogram):
    """Reorder entries[start:stop] so that rows whose bin in `column` (n,) goes left come first, each side in its old
    order; return where the others begin.

    The larger side moves within `entries`; the smaller one waits in `scratch` from `base` on, which needs one place
    more than it has rows. `histogram` (3, columns * 256), unless it has no columns, is set to the sums over the
    smaller side, whose entries are still in the cache.
    """
    columns = histogram.shape[1] // BINS
    sums, unpacked = np.zeros(columns * BINS, dtype=np.int64), base
    histogram[:] = 0
    at, k = stop - 1 if small_left else start, base
    for done in range(0, stop - start, _PIECE):
        before, piece = k, min(_PIECE, stop - start - done)
        if small_left:
            end = stop - done
            at, k = _part_backward(column, goes_left, entries, scratch, end - piece, end, at, k)
        else:
            begin = start + done
            at, k = _part_forward(column, goes_left, entries, scratch, begin, begin + piece, at, k)
        if columns and k > before:
            _add_rows(bins, 0, columns, scratch, before, k, sums)
            if k - unpacked > _CHUNK - _PIECE:
                _unpack(sums, histogram, 0)
                unpacked = k
    _unpack(sums, histogram, 0)
    if not small_left:
        for i in range(k - base):
            entries[at + i] = scratch[base + i]
        return at
    for i in range(k - base):
        entries[start + i] = scratch[k - 1 - i]
    return start + k - base


@compiled
def best_split(histogram, first, end, n_bins, nominal, monotone, allowed, total, rule, low, high, goes_left):
    """Return the split with the largest loss reduction among columns first .. end - 1, in the order of
    `_hist_grower.Split`; its gain is 0 if there is none. Writes which bins go left.

    `histogram` (3, columns * 256) integers; `total` gradient, hessian, count of the node in integers; `rule`: the
    numbers of `_hist_grower.Numbers`; low, high: bounds of the values of the node.
    """
    order, kept, rate = np.empty(BINS, dtype=np.int64), np.empty(BINS, dtype=np.int64), np.empty(BINS)
    for k in range(BINS):
        order[k] = k
    best = (0.0, 0, 0, 0, np.int64(0), np.int64(0), np.int64(0))
    for column in range(first, end):
        if not allowed[column]:
            continue
        at, bins = column * BINS, n_bins[column]
        if nominal[column]:
            bins = _order_levels(histogram, at, bins, rule[1], rule[2], kept, rate)
        missing = histogram[2, at + MISSING] > 0
        for missing_left in range(2 if missing else 1):
            scanned = bins if missing and not missing_left else bins - 1
            gain, k, g, h, c = _scan_bins(
                histogram, at, kept if nominal[column] else order, scanned, missing_left, total, rule,
                monotone[column], low, high, best[0],
            )  # fmt: skip
            if k < 0:
                continue
            last = kept[k] if nominal[column] else k
            best = (gain, column, last, missing_left, g, h, c)
            goes_left[:] = 0
            for j in range(k + 1):
                goes_left[kept[j] if nominal[column] else j] = 1
            goes_left[MISSING] = missing_left
    return best


@compiled
def _scan_bins(histogram, at, order, bins, missing_left, total, rule, sign, low, high, least):
    """Return the largest gain above `least`, after which of the bins in that order it lies (-1: there is none), and
    the sums of the left side."""
    g_unit, h_unit, l2, min_samples, min_hessian, min_gain = rule
    G, H, most = total[0] * g_unit, total[1] * h_unit, total[2] - min_samples
    here, free = G * G / (H + l2), sign == 0 and low == -np.inf and high == np.inf
    least = max(least, min_gain)
    result = (least, -1, np.int64(0), np.int64(0), np.int64(0))
    g, h, c = np.int64(0), np.int64(0), np.int64(0)
    if missing_left:
        g, h, c = histogram[0, at + MISSING], histogram[1, at + MISSING], histogram[2, at + MISSING]
    for k in range(bins):
        b = at + order[k]
        if histogram[2, b] == 0:
            continue
        g += histogram[0, b]
        h += histogram[1, b]
        c += histogram[2, b]
        if c < min_samples:
            continue
        if c > most:
            break
        GL, HL = g * g_unit, h * h_unit
        GR, HR = G - GL, H - HL
        if min_hessian > HL or min_hessian > HR:
            continue
        A, B = HL + l2, HR + l2
        if free:
            gain = (GL * GL * B + GR * GR * A) / (A * B) - here
        else:
            gain = _bounded_gain(GL, A, GR, B, G, H + l2, sign, low, high)
        if gain > result[0]:
            result = (gain, k, g, h, c)
    return result


@compiled
def _bounded_gain(GL, A, GR, B, G, C, sign, low, high):
    """Return the loss that a split removes if the values of all three nodes must lie in [low, high]; minus infinity if
    those of the children are not in the order that `sign` asks for."""
    left, right = _bounded(-GL / A, low, high), _bounded(-GR / B, low, high)
    if sign * (right - left) < 0:
        return -np.inf
    return _reduction(GL, A, left) + _reduction(GR, B, right) - _reduction(G, C, _bounded(-G / C, low, high))


@compiled
def _bounded(value, low, high):
    return min(max(value, low), high)


@compiled
def _reduction(g, h, value):
    """Twice the loss removed by a leaf of this value: -2 g v - h v^2; g^2 / h at its best."""
    return -2 * g * value - h * value * value


@compiled
def _order_levels(histogram, at, bins, h_unit, l2, order, rate):
    """Order the levels that occur by gradient over hessian; return how many there are."""
    kept = 0
    for b in range(bins):
        if histogram[2, at + b] > 0:
            value = histogram[0, at + b] / (histogram[1, at + b] * h_unit + l2 + 1e-12)
            k = kept
            while k > 0 and rate[k - 1] > value:
                rate[k], order[k] = rate[k - 1], order[k - 1]
                k -= 1
            rate[k], order[k] = value, b
            kept += 1
    return kept


@compiled
def leaf_sums(entries, start, stop, g, h, g_scale, h_scale):
    """Return the sums of g * g_scale and h * h_scale over the rows of entries[start:stop] as integers, which add up to
    the same in any order; a single h stands for all rows."""
    gradient, hessian = np.int64(0), np.int64(0)
    constant = h.shape[0] == 1
    for i in range(start, stop):
        row = entries[i] >> 32
        gradient += np.int64(g[row] * g_scale)
        hessian += np.int64((h[0] if constant else h[row]) * h_scale)
    return gradient, hessian


@compiled
def add_to_rows(entries, start, stop, value, out):
    """Add the value of a leaf to its rows."""
    for i in range(start, stop):
        out[entries[i] >> 32] += value
