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
from assay.tree.growth._builder import draw_columns, middle_of, share
from assay.tree.growth._exact_loops import sort_keys

SQUARED, GINI, ENTROPY = 0, 1, 2
GAIN, RATIO, THRESHOLD, SHARE, BRANCH, WHICH = 0, 1, 2, 3, 4, 5  # of a split that was found
_ALL_SUBSETS = 10  # levels of which all subsets are tried
N_CODES, NOMINAL, START, PLACE = 0, 1, 2, 3  # of a column
ORDER, CODES, BLOCKED, COUNTS = 0, 1, 2, 3  # whole numbers of a search: by column, by level, by column, by branch
TOTAL, LOST, LEFT, RIGHT, FILLED, BEFORE, SUBSETS = 0, 1, 2, 3, 4, 5, 6  # statistics of a search
LEVELS = SUBSETS + (1 << (_ALL_SUBSETS - 1))
_PLACE = np.uint64(0xFFFFFFFF)

OWN = np.dtype([("row", np.int64), ("weight", np.float64)], align=True)


class Coded(NamedTuple):
    """A table as trees read it; few arrays, because compiling a call costs by their number.

    codes : (columns, rows), -1 where a value is missing
    about : (4, columns + 1) different values, or levels; whether it is nominal; where its values begin; where the
        branches of its levels are written
    values : of the codes of numeric columns, one column after the other
    """

    codes: np.ndarray
    about: np.ndarray
    values: np.ndarray


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


class Workspace(NamedTuple):
    """What the search of a node needs."""

    state: np.ndarray
    keys: np.ndarray
    spare: np.ndarray
    digits: np.ndarray
    whole: np.ndarray  # (4, columns or levels) order of the columns, codes of levels, blocked columns, branches
    parts: np.ndarray  # (parts, statistics) of subsets of the node's rows
    found: np.ndarray  # (columns, 6) the best split of each
    branches: np.ndarray  # of the levels of all nominal columns


@compiled
def new_workspace(table, width, seed):
    """Return room for the search of nodes."""
    d, n = table.codes.shape
    levels = 2
    for f in range(d):
        if table.about[NOMINAL, f]:
            levels = max(levels, table.about[N_CODES, f])
    whole = np.zeros((4, max(d, levels)), dtype=np.int64)
    for f in range(d):
        whole[ORDER, f] = f
    return Workspace(
        np.array([seed], dtype=np.uint64),
        np.empty(n, dtype=np.uint64),
        np.empty(n, dtype=np.uint64),
        np.zeros(1 << 11, dtype=np.int64),
        whole,
        np.empty((LEVELS + levels, width)),
        np.empty((d, 6)),
        np.empty(table.about[PLACE, d], dtype=np.int64),
    )


@compiled
def clear(sums):
    """Set all to 0; a loop, which compiles faster than a slice."""
    for k in range(sums.shape[0]):
        sums[k] = 0.0


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
def _mixed(left, right, lost, filled, taker, kind, whole):
    """Return the impurity after the split when the missing rows go to the left (0) or to the right (1) branch."""
    out = 0.0
    for side in range(2):
        own = left if side == 0 else right
        for k in range(lost.shape[0]):
            filled[k] = own[k] + (lost[k] if side == taker else 0.0)
        out += filled[0] / whole * impurity_of(filled, kind)
    return out


@compiled
def _information(part):
    return -part * log2(part) if part > 0 else 0.0


@compiled
def _consider(left, parts, before, rules, whole, which, best):
    """Judge the split into `left` and the rest of the rows; write it to `best` if it is better beyond rounding."""
    total, lost, right, filled = parts[TOTAL], parts[LOST], parts[RIGHT], parts[FILLED]
    for k in range(total.shape[0]):
        right[k] = max(total[k] - left[k], 0.0) if k != 1 or rules.kind != SQUARED else total[k] - left[k]
    if left[0] < rules.least or total[0] - left[0] < rules.least:
        return False
    a, b, branch = left[0] / total[0], right[0] / total[0], -1
    if rules.directed and lost[0] > 0:
        gain = -np.inf
        for side in range(2):
            result = before - _mixed(left, right, lost, filled, side, rules.kind, whole)
            if result > gain:
                gain, branch = result, side
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
def _sort_rows(codes, own, y, kind, workspace):
    """Sort a node's rows by code; sum those with a value and those without. Return how many have one."""
    total, lost, known = workspace.parts[TOTAL], workspace.parts[LOST], 0
    clear(total)
    clear(lost)
    low, high = np.int64(1 << 40), np.int64(0)
    for i in range(own.shape[0]):
        row, w = own[i].row, own[i].weight
        c = np.int64(codes[row])
        if c < 0:
            add_row(lost, y[row], w, kind)
            continue
        add_row(total, y[row], w, kind)
        low, high = min(low, c), max(high, c)
        workspace.keys[known] = (np.uint64(c) << np.uint64(32)) | np.uint64(i)
        known += 1
    if known:
        sort_keys(workspace.keys[:known], workspace.spare[:known], workspace.digits, low, high)
    return known


@compiled
def _threshold_of(values, known, own, y, rules, whole, before, workspace, best):
    """Find the best threshold of a column, or judge one drawn evenly between its smallest and its largest value."""
    parts, left = workspace.parts, workspace.parts[LEFT]
    keys, shift = workspace.keys, np.uint64(32)
    first, last = values[np.int64(keys[0] >> shift)], values[np.int64(keys[known - 1] >> shift)]
    drawn = first
    if rules.random:
        drawn = first + (last - first) * share(workspace.state)
        drawn = drawn if drawn < last else first
    clear(left)
    for i in range(known - 1):
        mine = own[np.int64(keys[i] & _PLACE)]
        add_row(left, y[mine.row], mine.weight, rules.kind)
        code, following = np.int64(keys[i] >> shift), np.int64(keys[i + 1] >> shift)
        if code == following or (rules.random and values[following] <= drawn):
            continue
        if _consider(left, parts, before, rules, whole, code, best):
            best[THRESHOLD] = drawn if rules.random else middle_of(values[code], values[following])
        if rules.random:
            return


@compiled
def _sum_levels(known, own, y, kind, workspace):
    """Write statistics and codes of the levels that occur; return how many."""
    last, count, codes = np.int64(-1), 0, workspace.whole[CODES]
    for i in range(known):
        code = np.int64(workspace.keys[i] >> np.uint64(32))
        if code != last:
            clear(workspace.parts[LEVELS + count])
            codes[count] = last = code
            count += 1
        mine = own[np.int64(workspace.keys[i] & _PLACE)]
        add_row(workspace.parts[LEVELS + count - 1], y[mine.row], mine.weight, kind)
    return count


@compiled
def _order_levels(count, kind, levels, order):
    """Write the levels by their mean, or by the share of the second of two classes; equals keep their order."""
    at = 1 if kind == SQUARED else 2
    for i in range(count):
        order[i] = i
    gap = count // 2
    while gap > 0:
        for i in range(gap, count):
            one, j = order[i], i
            mean = levels[one, at] / levels[one, 0]
            while j >= gap:
                other = order[j - gap]
                ahead = levels[other, at] / levels[other, 0]
                if ahead < mean or (ahead == mean and other < one):
                    break
                order[j] = other
                j -= gap
            order[j] = one
        gap //= 2


@compiled
def _two_parts_of(count, rules, whole, before, workspace, branches, best):
    """Find the best two parts of the levels that occur, and write the branch of every level."""
    parts, levels, codes, left = (
        workspace.parts,
        workspace.parts[LEVELS:],
        workspace.whole[CODES],
        workspace.parts[LEFT],
    )
    width, ordered = parts.shape[1], rules.kind == SQUARED or parts.shape[1] == 3
    order, subsets, many = workspace.whole[COUNTS], parts[SUBSETS:LEVELS], count > _ALL_SUBSETS
    trials = count - 1 if ordered else count if many else (1 << (count - 1)) - 1
    clear(left)
    if ordered:
        _order_levels(count, rules.kind, levels, order)
    for i in range(trials):  # the first so many in their order; single levels; all subsets with the first level
        bit = 0
        while i and not ordered and not many and not (i >> bit) & 1:
            bit += 1
        for k in range(width):
            if ordered:
                left[k] += levels[order[i], k]
            elif many:
                left[k] = levels[i, k]
            else:
                left[k] = subsets[i, k] = subsets[i & (i - 1), k] + levels[bit + 1, k] if i else levels[0, k]
        _consider(left, parts, before, rules, whole, i, best)
    for code in range(branches.shape[0]):
        branches[code] = 1
    chosen_one = np.int64(best[WHICH])
    for i in range(count if best[GAIN] > -np.inf else 0):
        if ordered and i <= chosen_one:
            branches[codes[order[i]]] = 0
        elif not ordered and (i == chosen_one if many else i == 0 or (chosen_one >> (i - 1)) & 1):
            branches[codes[i]] = 0


@compiled
def _drawn_parts_of(count, rules, whole, before, workspace, branches, best):
    """Judge two parts of the levels that occur, drawn evenly; neither is empty."""
    left, levels, codes = workspace.parts[LEFT], workspace.parts[LEVELS:], workspace.whole[CODES]
    one = min(np.int64(share(workspace.state) * count), count - 1)
    other = min(np.int64(share(workspace.state) * (count - 1)), count - 2)
    other += other >= one
    clear(left)
    for code in range(branches.shape[0]):
        branches[code] = 1
    for i in range(count):
        if (share(workspace.state) < 0.5 or i == one) and i != other:
            branches[codes[i]] = 0
            for k in range(left.shape[0]):
                left[k] += levels[i, k]
    _consider(left, workspace.parts, before, rules, whole, count, best)


@compiled
def _all_levels_of(count, rules, whole, before, workspace, branches, best):
    """Judge the split into all levels."""
    total, lost, filled = workspace.parts[TOTAL], workspace.parts[LOST], workspace.parts[FILLED]
    levels, codes = workspace.parts[LEVELS:], workspace.whole[CODES]
    after, value, enough, heaviest = 0.0, 0.0, 0, 0
    for i in range(count):
        own = levels[i]
        after += own[0] * impurity_of(own, rules.kind)
        value += _information(own[0] / total[0])
        enough += own[0] >= rules.least
        heaviest = i if own[0] > levels[heaviest, 0] else heaviest
    if enough < 2:
        return
    branch, gain = -1, total[0] / whole * (before - after / total[0])
    if rules.directed:
        branch = codes[heaviest]
    if rules.directed and lost[0] > 0:
        gain, at = -np.inf, 0
        for j in range(branches.shape[0]):
            here = at < count and codes[at] == j
            for k in range(lost.shape[0]):
                filled[k] = lost[k] + (levels[at, k] if here else 0.0)
            less = levels[at, 0] * impurity_of(levels[at], rules.kind) if here else 0.0
            result = before - (after - less + filled[0] * impurity_of(filled, rules.kind)) / whole
            at += here
            if result > gain:
                gain, branch = result, j
    for j in range(branches.shape[0]):
        branches[j] = j
    best[GAIN], best[RATIO] = gain, gain / value if value > 1e-12 else -np.inf
    best[BRANCH], best[THRESHOLD] = branch, 0.0


@compiled
def _search_column(table, f, own, y, rules, whole, workspace):
    """Write the best split of a column to `found`; a column without one has the gain minus infinity."""
    best = workspace.found[f]
    clear(best)
    best[GAIN] = -np.inf
    known = _sort_rows(table.codes[f], own, y, rules.kind, workspace)
    if known == 0 or workspace.keys[0] >> np.uint64(32) == workspace.keys[known - 1] >> np.uint64(32):
        return
    every, parts = workspace.parts[BEFORE], workspace.parts
    for k in range(every.shape[0]):
        every[k] = parts[TOTAL, k] + (parts[LOST, k] if rules.directed else 0.0)
    before = impurity_of(every, rules.kind)
    if not table.about[NOMINAL, f]:
        _threshold_of(table.values[table.about[START, f] :], known, own, y, rules, whole, before, workspace, best)
        return
    branches = workspace.branches[table.about[PLACE, f] : table.about[PLACE, f + 1]]
    count = _sum_levels(known, own, y, rules.kind, workspace)
    if rules.multiway:
        _all_levels_of(count, rules, whole, before, workspace, branches, best)
    elif rules.random:
        _drawn_parts_of(count, rules, whole, before, workspace, branches, best)
    else:
        _two_parts_of(count, rules, whole, before, workspace, branches, best)


@compiled
def search(table, own, y, rules, whole, workspace):
    """Write the best split of each column that is looked at to `workspace.found`: all but the blocked ones, or columns
    drawn evenly until `most` of them have a split."""
    d, taken = table.codes.shape[0], 0
    order = workspace.whole[ORDER, :d]
    for f in range(d):
        workspace.found[f, GAIN] = -np.inf
    for i in range(d):
        if rules.most < d or rules.random:
            draw_columns(order, i, i + 1, workspace.state)
        f = order[i]
        if not workspace.whole[BLOCKED, f]:
            _search_column(table, f, own, y, rules, whole, workspace)
            taken += workspace.found[f, GAIN] > -np.inf
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
