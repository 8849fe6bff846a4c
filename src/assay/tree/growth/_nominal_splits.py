"""Compiled search for the best split of a node on nominal and numeric columns with missing values (`_nominal_missing`
has the formulas).

Columns come as codes in the order of their values, -1 where a value is missing. At a node the rows of a column are
sorted by code: a scan tries every threshold, and the rows of one level stand together. Statistics of rows are (weight,
weights of the classes), or (weight, weighted sum, weighted squares) of numbers.
"""

from math import log2
from typing import NamedTuple

import numpy as np

from assay.jit import compiled
from assay.tree.growth._exact_loops import sort_keys
from assay.tree.growth._frontier import middle_of
from assay.tree.growth._random import draw_columns, share

SQUARED, GINI, ENTROPY = 0, 1, 2
GAIN, RATIO, THRESHOLD, SHARE, BRANCH, WHICH = 0, 1, 2, 3, 4, 5  # of a split that was found
_ALL_SUBSETS = 10  # levels of which all subsets are tried
_PLACE = np.uint64(0xFFFFFFFF)

OWN = np.dtype([("row", np.int64), ("weight", np.float64)], align=True)


class Coded(NamedTuple):
    """A table as trees read it."""

    codes: np.ndarray  # (columns, rows), -1 where a value is missing
    n_codes: np.ndarray  # different values, or levels
    nominal: np.ndarray
    values: np.ndarray  # of the codes of numeric columns, one column after the other
    starts: np.ndarray
    places: np.ndarray  # where the branches of the levels of each nominal column are written


class Rules(NamedTuple):
    """How splits are judged; see `Method`."""

    kind: int
    by_ratio: bool
    multiway: bool
    directed: bool
    random: bool
    most: int
    least: float
    split_least: float
    max_depth: int
    min_decrease: float


class Room(NamedTuple):
    """What the search of a node needs."""

    order: np.ndarray  # of the columns
    state: np.ndarray
    keys: np.ndarray
    spare: np.ndarray
    digits: np.ndarray
    sums: np.ndarray  # (6, statistics)
    levels: np.ndarray  # (levels, statistics) of those that occur
    codes: np.ndarray  # of these
    subsets: np.ndarray  # (subsets, statistics)
    found: np.ndarray  # (columns, 6) the best split of each
    branches: np.ndarray  # of the levels of all nominal columns
    blocked: np.ndarray
    counts: np.ndarray  # of branches
    heavy: np.ndarray


@compiled
def new_room(table, width, seed):
    """Return room for the search of nodes."""
    d, n = table.codes.shape
    levels, several = 1, 2
    for f in range(d):
        if table.nominal[f]:
            levels = max(levels, table.n_codes[f])
    several = max(several, levels)
    return Room(
        np.arange(d),
        np.array([seed], dtype=np.uint64),
        np.empty(n, dtype=np.uint64),
        np.empty(n, dtype=np.uint64),
        np.zeros(1 << 11, dtype=np.int64),
        np.zeros((6, width)),
        np.empty((levels, width)),
        np.empty(levels, dtype=np.int64),
        np.empty((1 << min(levels, _ALL_SUBSETS), width)),
        np.empty((d, 6)),
        np.empty(table.places[d], dtype=np.int32),
        np.zeros(d, dtype=np.bool_),
        np.empty(several, dtype=np.int64),
        np.empty(several),
    )


@compiled
def add_row(sums, y, w, kind):
    """Add a row to statistics."""
    sums[0] += w
    if kind == SQUARED:
        sums[1] += w * y
        sums[2] += w * y * y
    else:
        sums[1 + np.int64(y)] += w


@compiled
def impurity_of(sums, kind):
    """Return the impurity of statistics; see `_nominal_missing.impurity`."""
    weight = max(sums[0], 1e-300)
    if kind == SQUARED:
        mean = sums[1] / weight
        return max(sums[2] / weight - mean * mean, 0.0)
    out = 0.0
    for k in range(1, sums.shape[0]):
        p = sums[k] / weight
        if kind == GINI:
            out += p * p
        elif p > 0:
            out -= p * log2(p)
    return 1.0 - out if kind == GINI else out


@compiled
def _mixed(left, right, lost, filled, first, kind, whole):
    """Return the impurity after the split when the missing rows go to the left (or, unless `first`, right) branch."""
    out = 0.0
    for side in range(2):
        own = left if side == 0 else right
        for k in range(lost.shape[0]):
            filled[k] = own[k] + (lost[k] if (side == 0) == first else 0.0)
        out += filled[0] / whole * impurity_of(filled, kind)
    return out


@compiled
def _information(part):
    return -part * log2(part) if part > 0 else 0.0


@compiled
def _consider(left, total, lost, before, right, filled, rules, whole, which, best):
    """Judge the split into `left` and the rest of `total`; write it to `best` if it is better by more than rounding."""
    for k in range(total.shape[0]):
        right[k] = max(total[k] - left[k], 0.0) if k != 1 or rules.kind != SQUARED else total[k] - left[k]
    if left[0] < rules.least or total[0] - left[0] < rules.least:
        return False
    a, b, branch = left[0] / total[0], right[0] / total[0], -1
    if rules.directed and lost[0] > 0:
        first = before - _mixed(left, right, lost, filled, True, rules.kind, whole)
        second = before - _mixed(left, right, lost, filled, False, rules.kind, whole)
        gain, branch = max(first, second), 0 if first >= second else 1
    else:
        gain = total[0] / whole * (before - (a * impurity_of(left, rules.kind) + b * impurity_of(right, rules.kind)))
        if rules.directed:
            branch = 0 if a >= b else 1
    if not gain > best[GAIN] + 1e-13 * before:
        return False
    value = _information(a) + _information(1 - a)
    best[GAIN], best[RATIO] = gain, gain / value if value > 1e-12 else -np.inf
    best[SHARE], best[BRANCH], best[WHICH] = a, branch, which
    return True


@compiled
def _sort_rows(codes, own, y, kind, room):
    """Sort a node's rows by code; sum those with a value and those without. Return how many have one."""
    total, lost, known = room.sums[0], room.sums[1], 0
    total[:] = 0.0
    lost[:] = 0.0
    low, high = np.int64(1 << 40), np.int64(0)
    for i in range(own.shape[0]):
        row, w = own[i].row, own[i].weight
        c = np.int64(codes[row])
        if c < 0:
            add_row(lost, y[row], w, kind)
            continue
        add_row(total, y[row], w, kind)
        low, high = min(low, c), max(high, c)
        room.keys[known] = (np.uint64(c) << np.uint64(32)) | np.uint64(i)
        known += 1
    if known:
        sort_keys(room.keys[:known], room.spare[:known], room.digits, low, high)
    return known


@compiled
def _threshold_of(values, known, own, y, rules, whole, before, room, best):
    """Find the best threshold of a column, or judge one drawn evenly between its smallest and its largest value."""
    total, lost, left, right, filled = room.sums[0], room.sums[1], room.sums[2], room.sums[3], room.sums[4]
    keys, shift = room.keys, np.uint64(32)
    first, last = values[np.int64(keys[0] >> shift)], values[np.int64(keys[known - 1] >> shift)]
    drawn = first
    if rules.random:
        drawn = first + (last - first) * share(room.state)
        drawn = drawn if drawn < last else first
    left[:] = 0.0
    for i in range(known - 1):
        mine = own[np.int64(keys[i] & _PLACE)]
        add_row(left, y[mine.row], mine.weight, rules.kind)
        code, following = np.int64(keys[i] >> shift), np.int64(keys[i + 1] >> shift)
        if code == following or (rules.random and values[following] <= drawn):
            continue
        if _consider(left, total, lost, before, right, filled, rules, whole, code, best):
            best[THRESHOLD] = drawn if rules.random else middle_of(values[code], values[following])
        if rules.random:
            return


@compiled
def _sum_levels(known, own, y, kind, room):
    """Write statistics and codes of the levels that occur; return how many."""
    last, count = np.int64(-1), 0
    for i in range(known):
        code = np.int64(room.keys[i] >> np.uint64(32))
        if code != last:
            room.levels[count, :] = 0.0
            room.codes[count] = last = code
            count += 1
        mine = own[np.int64(room.keys[i] & _PLACE)]
        add_row(room.levels[count - 1], y[mine.row], mine.weight, kind)
    return count


@compiled
def _level_order(count, kind, room):
    """Return the levels by their mean, or by the share of the second of two classes; equals keep their order."""
    means, at = np.empty(count), 1 if kind == SQUARED else 2
    for i in range(count):
        means[i] = room.levels[i, at] / room.levels[i, 0]
    return np.argsort(means, kind="mergesort")


@compiled
def _two_parts_of(count, rules, whole, before, room, branches, best):
    """Find the best two parts of the levels that occur, and write the branch of every level."""
    total, lost, left, right, filled = room.sums[0], room.sums[1], room.sums[2], room.sums[3], room.sums[4]
    width = total.shape[0]
    branches[:] = 1
    if rules.kind == SQUARED or width == 3:
        order = _level_order(count, rules.kind, room)
        left[:] = 0.0
        for i in range(count - 1):
            for k in range(width):
                left[k] += room.levels[order[i], k]
            _consider(left, total, lost, before, right, filled, rules, whole, i, best)
        if best[GAIN] > -np.inf:
            for i in range(np.int64(best[WHICH]) + 1):
                branches[room.codes[order[i]]] = 0
    elif count > _ALL_SUBSETS:
        for i in range(count):
            _consider(room.levels[i], total, lost, before, right, filled, rules, whole, i, best)
        if best[GAIN] > -np.inf:
            branches[room.codes[np.int64(best[WHICH])]] = 0
    else:
        subsets = room.subsets
        subsets[0] = room.levels[0]  # the first level is on the left
        for mask in range((1 << (count - 1)) - 1):
            bit = 0
            while mask and not (mask >> bit) & 1:
                bit += 1
            for k in range(width if mask else 0):
                subsets[mask, k] = subsets[mask & (mask - 1), k] + room.levels[bit + 1, k]
            _consider(subsets[mask], total, lost, before, right, filled, rules, whole, mask, best)
        if best[GAIN] > -np.inf:
            for i in range(count):
                if i == 0 or (np.int64(best[WHICH]) >> (i - 1)) & 1:
                    branches[room.codes[i]] = 0


@compiled
def _drawn_parts_of(count, rules, whole, before, room, branches, best):
    """Judge two parts of the levels that occur, drawn evenly; neither is empty."""
    left = room.sums[2]
    one = min(np.int64(share(room.state) * count), count - 1)
    other = min(np.int64(share(room.state) * (count - 1)), count - 2)
    other += other >= one
    left[:] = 0.0
    branches[:] = 1
    for i in range(count):
        if (share(room.state) < 0.5 or i == one) and i != other:
            branches[room.codes[i]] = 0
            for k in range(left.shape[0]):
                left[k] += room.levels[i, k]
    _consider(left, room.sums[0], room.sums[1], before, room.sums[3], room.sums[4], rules, whole, 0, best)


@compiled
def _all_levels_of(count, rules, whole, before, room, branches, best):
    """Judge the split into all levels."""
    total, lost, filled = room.sums[0], room.sums[1], room.sums[4]
    after, value, enough, heaviest = 0.0, 0.0, 0, 0
    for i in range(count):
        own = room.levels[i]
        after += own[0] * impurity_of(own, rules.kind)
        value += _information(own[0] / total[0])
        enough += own[0] >= rules.least
        heaviest = i if own[0] > room.levels[heaviest, 0] else heaviest
    if enough < 2:
        return
    branch, gain = -1, total[0] / whole * (before - after / total[0])
    if rules.directed:
        branch = room.codes[heaviest]
    if rules.directed and lost[0] > 0:
        gain, at = -np.inf, 0
        for j in range(branches.shape[0]):
            here = at < count and room.codes[at] == j
            for k in range(lost.shape[0]):
                filled[k] = lost[k] + (room.levels[at, k] if here else 0.0)
            less = room.levels[at, 0] * impurity_of(room.levels[at], rules.kind) if here else 0.0
            found = before - (after - less + filled[0] * impurity_of(filled, rules.kind)) / whole
            at += here
            if found > gain:
                gain, branch = found, j
    for j in range(branches.shape[0]):
        branches[j] = j
    best[GAIN], best[RATIO] = gain, gain / value if value > 1e-12 else -np.inf
    best[BRANCH], best[THRESHOLD] = branch, 0.0


@compiled
def _search_column(table, f, own, y, rules, whole, room):
    """Write the best split of a column to `found`; a column without one has the gain minus infinity."""
    best = room.found[f]
    best[:] = 0.0
    best[GAIN] = -np.inf
    known = _sort_rows(table.codes[f], own, y, rules.kind, room)
    if known == 0 or room.keys[0] >> np.uint64(32) == room.keys[known - 1] >> np.uint64(32):
        return
    filled = room.sums[5]
    for k in range(filled.shape[0]):
        filled[k] = room.sums[0, k] + (room.sums[1, k] if rules.directed else 0.0)
    before = impurity_of(filled, rules.kind)
    if not table.nominal[f]:
        _threshold_of(table.values[table.starts[f] :], known, own, y, rules, whole, before, room, best)
        return
    branches = room.branches[table.places[f] : table.places[f + 1]]
    count = _sum_levels(known, own, y, rules.kind, room)
    if rules.multiway:
        _all_levels_of(count, rules, whole, before, room, branches, best)
    elif rules.random:
        _drawn_parts_of(count, rules, whole, before, room, branches, best)
    else:
        _two_parts_of(count, rules, whole, before, room, branches, best)


@compiled
def search(table, own, y, rules, whole, room):
    """Write the best split of each column that is looked at to `room.found`: all but the blocked ones, or columns drawn
    evenly until `most` of them have a split."""
    d, taken = table.codes.shape[0], 0
    room.found[:, GAIN] = -np.inf
    for i in range(d):
        if rules.most < d or rules.random:
            draw_columns(room.order, i, i + 1, room.state)
        f = room.order[i]
        if not room.blocked[f]:
            _search_column(table, f, own, y, rules, whole, room)
            taken += room.found[f, GAIN] > -np.inf
        if taken == rules.most:
            return


@compiled
def chosen(found, by_ratio):
    """Return the column of the best split, -1 if there is none; of splits that differ by no more than rounding, the
    first. By the gain ratio: among those with at least the mean gain."""
    mean, count = 0.0, 0
    for f in range(found.shape[0]):
        if found[f, GAIN] > -np.inf:
            mean, count = mean + found[f, GAIN], count + 1
    at, top = RATIO if by_ratio else GAIN, -np.inf
    least = mean / max(count, 1) - 1e-12 if by_ratio else -np.inf
    for f in range(found.shape[0]):
        if found[f, GAIN] > -np.inf and found[f, GAIN] >= least:
            top = max(top, found[f, at])
    for f in range(found.shape[0]):
        fair = found[f, GAIN] > -np.inf and found[f, GAIN] >= least and found[f, at] > -np.inf
        if fair and found[f, at] >= top - 1e-12 * abs(top):
            return f
    return -1
