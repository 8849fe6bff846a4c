"""Compiled growth of one tree on nominal and numeric columns with missing values; `_nominal_splits` finds the splits.

Nodes are opened level by level; the rows of a level lie one node after the other, and a row without a value may go to
several.
"""

import numpy as np

from assay.jit import compiled
from assay.tree.growth._builder import with_room
from assay.tree.growth._nominal_splits import (
    BLOCKED,
    BRANCH,
    COUNTS,
    GAIN,
    NOMINAL,
    OWN,
    PLACE,
    THRESHOLD,
    WHICH,
    add_row,
    chosen,
    clear,
    impurity_of,
    new_workspace,
    search,
)

NODE = np.dtype(
    [
        ("column", np.int32),
        ("table", np.int32),  # -1 for a threshold
        ("child", np.int32),
        ("n_children", np.int32),
        ("missing", np.int32),
        ("threshold", np.float64),
        ("weight", np.float64),
        ("start", np.int64),
        ("stop", np.int64),
        ("parent", np.int64),
    ],
    align=True,
)


@compiled
def _open(table, own, y, rules, depth, sums, workspace):
    """Sum a node's rows; return the column of its split, -1 if it stays a leaf."""
    clear(sums)
    for i in range(own.shape[0]):
        add_row(sums, y[own[i].row], own[i].weight, rules.kind)
    if impurity_of(sums, rules.kind) <= 1e-12 or depth >= rules.max_depth or sums[0] < rules.split_least:
        return -1
    search(table, own, y, rules, sums[0], workspace)
    f = chosen(workspace.found, rules.by_ratio)
    if f < 0 or workspace.found[f, GAIN] * sums[0] < rules.min_decrease - 1e-12 or workspace.found[f, GAIN] < -1e-12:
        return -1
    return f


@compiled
def _grown(array, used, needed):
    """Return the array with room for so many items."""
    if needed <= array.shape[0]:
        return array
    larger = np.empty(max(needed, 2 * array.shape[0]), dtype=array.dtype)
    for i in range(used):
        larger[i] = array[i]
    return larger


@compiled
def _branch(code, last, branches):
    if code < 0:
        return -1
    if branches.shape[0]:
        return np.int64(branches[code])
    return np.int64(code > last)


@compiled
def _divide(codes, own, last, branches, missing, counts, there, used):
    """Append the rows of the children to `there`, from place `used`, and write how many each has to `counts`.

    Rows without a value go to the child `missing`, or to all children with their shares of the others' weight."""
    children, lost, known = counts.shape[0], 0, 0.0
    heavy = np.zeros(children)
    for v in range(children):
        counts[v] = 0
    for i in range(own.shape[0]):
        v = _branch(codes[own[i].row], last, branches)
        if v < 0:
            lost += 1
        else:
            counts[v] += 1
            heavy[v] += own[i].weight
            known += own[i].weight
    for v in range(children):
        if v == missing or (missing < 0 and heavy[v] > 0):
            counts[v] += lost
    ends, end = np.empty(children, dtype=np.int64), used
    for v in range(children):
        ends[v] = end
        end += counts[v]
    there = _grown(there, used, end)
    for i in range(own.shape[0]):
        v = _branch(codes[own[i].row], last, branches)
        if v < 0 and missing < 0:
            for u in range(children):
                if heavy[u] > 0:
                    there[ends[u]].row, there[ends[u]].weight = own[i].row, own[i].weight * (heavy[u] / known)
                    ends[u] += 1
            continue
        v = missing if v < 0 else v
        there[ends[v]].row, there[ends[v]].weight = own[i].row, own[i].weight
        ends[v] += 1
    return there


@compiled
def _block(nodes, at, blocked):
    """Block the columns whose levels the ancestors of a node have parted for good."""
    for f in range(blocked.shape[0]):
        blocked[f] = 0
    at = nodes[at].parent
    while at >= 0:
        if nodes[at].table >= 0:
            blocked[nodes[at].column] = 1
        at = nodes[at].parent


@compiled
def _leaf(node, start, stop, parent):
    node.column, node.table, node.child, node.n_children, node.missing = -1, -1, -1, 0, -1
    node.threshold, node.weight, node.start, node.stop, node.parent = 0.0, 0.0, start, stop, parent


@compiled
def grow(table, y, here, rules, width, seed):
    """Grow a tree on rows `here` (`OWN`); return its nodes (`NODE`), their statistics, and the branches of the levels
    of its nominal splits, one split after the other; then how many nodes and branches there are."""
    workspace = new_workspace(table, width, seed)
    nodes, sums = np.empty(64, dtype=NODE), np.empty((64, width))
    tables, written, n_tables = np.empty(64, dtype=np.int32), np.int64(0), np.int64(0)
    there = np.empty(here.shape[0], dtype=OWN)
    fresh, end, depth = np.int64(0), np.int64(1), np.int64(0)
    _leaf(nodes[0], fresh, np.int64(here.shape[0]), np.int64(-1))
    while fresh < end:
        stop, used = end, np.int64(0)
        for at in range(fresh, stop):
            own = here[nodes[at].start : nodes[at].stop]
            if own.shape[0] == 0:
                for k in range(width):
                    sums[at, k] = sums[nodes[at].parent, k]
                continue
            if rules.multiway:
                _block(nodes, at, workspace.whole[BLOCKED])
            f = _open(table, own, y, rules, depth, sums[at], workspace)
            nodes[at].weight = sums[at, 0]
            if f < 0:
                continue
            best, named = workspace.found[f], table.about[NOMINAL, f]
            branches = workspace.branches[table.about[PLACE, f] : table.about[PLACE, f + 1]]
            children = branches.shape[0] if named and rules.multiway else 2
            nodes, sums = _grown(nodes, end, end + children), with_room(sums, end, end + children)
            node = nodes[at]
            node.column, node.child, node.n_children, node.missing = f, end, children, np.int64(best[BRANCH])
            if named:
                tables = _grown(tables, written, written + branches.shape[0])
                for code in range(branches.shape[0]):
                    tables[written + code] = branches[code]
                node.table, written, n_tables = n_tables, written + branches.shape[0], n_tables + 1
            else:
                node.threshold = best[THRESHOLD]
            last, codes = np.int64(best[WHICH]), table.codes[f]
            counts = workspace.whole[COUNTS, :children]
            there = _divide(codes, own, last, branches, np.int64(node.missing), counts, there, used)
            for v in range(children):
                _leaf(nodes[end], used, used + counts[v], at)
                used, end = used + counts[v], end + 1
        here, there = there, here
        fresh, depth = stop, depth + 1
    return nodes, sums, tables, end, written
