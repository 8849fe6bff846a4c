"""Leaves of small trees, many at a time: each test that a row fails leaves some leaves of its tree impossible.

Leaves are numbered from left to right, so that the rows with x[column] > threshold lose the leaves below the first
child, a run of bits. What a column's value makes impossible depends on how many thresholds lie below it alone: for each
such number a table has one word a tree, and a row's words are the intersection of those of its columns. The lowest bit
that is left is the leaf (Lucchese et al. 2015, "QuickScorer").
"""

from typing import Any, NamedTuple

import numpy as np

_MOST_LEAVES = 64
_TABLE_BYTES = 2**22  # of the trees that are walked together: about what a core's cache holds
_ROWS = 1024


class Group(NamedTuple):
    """Trees that are walked together. `tables` has (thresholds + 2, trees) words for each of `columns`, the last line
    for a row without a value; `leaf` (trees, leaves) are node numbers."""

    columns: list[int]
    edges: list[np.ndarray]
    tables: list[np.ndarray]
    leaf: np.ndarray
    word: np.dtype[Any]


def groups(trees: Any) -> list[Group] | None:
    """Return the tables of trees with two branches a node; None if a tree has more leaves than a word has bits."""
    child, root = trees.child.tolist(), trees.root.tolist()
    if len(trees.tables) or not root:
        return None
    below = [1] * len(child)
    for node in reversed(range(len(child))):
        if child[node] >= 0:
            below[node] = below[child[node]] + below[child[node] + 1]
    most = max(below[node] for node in root)
    if most > _MOST_LEAVES:
        return None
    first = [0] * len(child)
    for node, left in enumerate(child):
        if left >= 0:
            first[left], first[left + 1] = first[node], first[node] + below[left]
    word = np.dtype(np.uint32 if most <= 32 else np.uint64)
    ends = [*root[1:], len(child)]
    results, begin = [], 0
    for k in range(1, len(root) + 1):
        wide = k < len(root) and (ends[k] - root[begin]) * (k + 1 - begin) * word.itemsize > _TABLE_BYTES
        if k == len(root) or wide:
            results.append(_group(trees, np.array(below), np.array(first), root[begin:k], ends[begin:k], word))
            begin = k
    return results


def _group(
    trees: Any, below: np.ndarray, first: np.ndarray, root: list[int], ends: list[int], word: np.dtype[Any]
) -> Group:
    nodes = np.arange(root[0], ends[-1])
    tree = np.searchsorted(root, nodes, side="right") - 1
    is_leaf = trees.child[nodes] < 0
    leaf = np.zeros((len(root), max(1, int(below[root].max()))), dtype=np.int64)
    leaf[tree[is_leaf], first[nodes[is_leaf]]] = nodes[is_leaf]
    inner, owner = nodes[~is_leaf], tree[~is_leaf]
    columns = np.unique(trees.column[inner]).tolist()
    edges, tables = [], []
    for column in columns:
        own = trees.column[inner] == column
        at, of = inner[own], owner[own]
        edge = np.unique(trees.threshold[at])
        table = np.full((len(edge) + 2, len(root)), np.iinfo(word).max, dtype=word)
        for node, t, place in zip(at.tolist(), of.tolist(), np.searchsorted(edge, trees.threshold[at]).tolist()):
            left, right = (_kept(int(first[c]), int(below[c]), word) for c in (trees.child[node] + np.arange(2)))
            table[place + 1 : -1, t] &= left
            if trees.missing[node] >= 0:
                table[-1, t] &= right if trees.missing[node] == 0 else left
        edges.append(edge)
        tables.append(table)
    return Group(columns, edges, tables, leaf, word)


def _kept(first: int, count: int, word: np.dtype[Any]) -> Any:
    """Return the word without the leaves of a node."""
    every = int(np.iinfo(word).max)
    return word.type(every & ~(((1 << count) - 1) << first))


def leaves(result: list[Group], X: np.ndarray) -> np.ndarray:
    """Return the node that each row reaches in each tree, (rows, trees); where a row lacks a value, a child must take
    such rows."""
    at = np.empty((len(X), sum(len(item.leaf) for item in result)), dtype=np.int64)
    begin = 0
    for item in result:
        here = slice(begin, begin + len(item.leaf))
        for start in range(0, len(X), _ROWS):
            at[start : start + _ROWS, here] = _walk(item, X[start : start + _ROWS])
        begin = here.stop
    return at


def _walk(group: Group, X: np.ndarray) -> np.ndarray:
    words = np.full((len(X), len(group.leaf)), np.iinfo(group.word).max, dtype=group.word)
    part = np.empty_like(words)
    for column, edges, table in zip(group.columns, group.edges, group.tables):
        x = X[:, column]
        place = np.searchsorted(edges, x)  # thresholds below x: it is larger than these
        place[np.isnan(x)] = len(edges) + 1
        np.bitwise_and(words, table.take(place, axis=0, out=part, mode="clip"), out=words)
    lowest = words & (~words + group.word.type(1))
    number = np.frexp(lowest.astype(np.float64))[1] - 1
    return group.leaf[np.arange(len(group.leaf)), number]
