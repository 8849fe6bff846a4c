"""Where rows end in fitted trees, and what is predicted there."""

from typing import Any

import numpy as np

from assay.scan import rows_per_block, thread_map
from assay.tree._nodes import Nodes
from assay.tree.growth._nominal import branches


def leaves(nodes: Nodes, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Return the leaf that each row reaches in each tree (rows, trees); every split must decide for every
    row."""
    from assay.tree._walk import walk

    out = np.empty((len(X), len(nodes.root)), dtype=np.int32)
    step = rows_per_block(X.shape[1])
    words, threshold = _words(nodes)

    def work(i: int) -> None:
        walk(X[i : i + step], words, threshold, nodes.root, out[i : i + step])

    thread_map(work, range(0, len(X), step), n_jobs=n_jobs)
    return out


def mean_values(nodes: Nodes, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Return the mean over trees of the leaf values (rows, outputs)."""
    if not np.any(nodes.table >= 0) and not np.isnan(X).any():
        out = _sums(nodes, X, n_jobs)
    elif goes_one_way(nodes):
        ends = mixed_leaves(nodes, X, n_jobs)
        out = np.sum([nodes.value[ends[:, t]] for t in range(ends.shape[1])], axis=0)
    else:
        out = np.sum([weighted_values(nodes, root, X) for root in nodes.root], axis=0)
    return out / len(nodes.root)


def split_outputs(shares: np.ndarray, classes: Any) -> Any:
    """Return shares of classes as they are, or, if `classes` is a list (one entry for each output), as a list too."""
    if not isinstance(classes, list):
        return shares
    return np.split(shares, np.cumsum([len(own) for own in classes])[:-1], axis=1)


def most_frequent(shares: np.ndarray, classes: Any) -> np.ndarray:
    """Return the class of the largest share, the first of equals; (rows, outputs) if `classes` is a list."""
    if not isinstance(classes, list):
        return classes[shares.argmax(axis=1)]
    parts = zip(classes, split_outputs(shares, classes))
    return np.stack([own[part.argmax(axis=1)] for own, part in parts], axis=1)


def goes_one_way(nodes: Nodes) -> bool:
    """Tell whether every split sends rows without the value tested down one branch."""
    return bool(np.all(nodes.missing[nodes.child >= 0] >= 0))


def mixed_leaves(nodes: Nodes, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Return where each row ends in each tree (rows, trees), for trees that go one way; a level that was not seen at a
    node ends there."""
    from assay.tree._mixed_walk import walk_mixed

    out = np.empty((len(X), len(nodes.root)), dtype=np.int32)
    step = rows_per_block(X.shape[1])
    parts = (nodes.column, nodes.threshold, nodes.table, nodes.tables, nodes.child, nodes.missing, nodes.root)

    def work(i: int) -> None:
        walk_mixed(X[i : i + step], *parts, out[i : i + step])

    thread_map(work, range(0, len(X), step), n_jobs=n_jobs)
    return out


def _sums(nodes: Nodes, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
    from assay.tree._walk import add_values

    out = np.zeros((len(X), nodes.value.shape[1]))
    step = min(rows_per_block(X.shape[1]), 4096)
    words, threshold = _words(nodes)

    def work(i: int) -> None:
        add_values(X[i : i + step], words, threshold, nodes.root, nodes.value, out[i : i + step])

    thread_map(work, range(0, len(X), step), n_jobs=n_jobs)
    return out


def _words(nodes: Nodes) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes as integers and thresholds; see `_walk`."""
    leaf = nodes.child < 0
    column = np.where(leaf, 0, nodes.column).astype(np.uint64)
    child = np.where(leaf, np.arange(len(leaf)), nodes.child).astype(np.uint64)
    return (column << np.uint64(32)) | child, np.where(leaf, np.inf, nodes.threshold)


def weighted_values(nodes: Nodes, root: int, X: np.ndarray) -> np.ndarray:
    """Return the leaf values of one tree; a row without the value tested goes down all branches with their
    weights.

    A level that was not seen at a node is predicted by that node (its majority).
    """
    out = np.zeros((len(X), nodes.value.shape[1]))
    for leaf, rows, share in visits(nodes, root, X):
        out[rows] += share[:, None] * nodes.value[leaf]
    return out


def visits(nodes: Nodes, root: int, X: np.ndarray) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Return (node, rows, shares): where rows end, and with which share of their weight; shares of a row sum
    to 1."""
    found = []
    stack = [(int(root), np.arange(len(X)), np.ones(len(X)))]
    while stack:
        at, rows, share = stack.pop()
        if nodes.child[at] < 0 or not len(rows):
            if len(rows):
                found.append((at, rows, share))
            continue
        table = nodes.tables[nodes.table[at]] if nodes.table[at] >= 0 else None
        x = X[rows, nodes.column[at]]
        branch, known = branches(x, nodes.threshold[at], table)
        first, k = int(nodes.child[at]), int(nodes.n_children[at])
        unseen = ~known & ~np.isnan(x)
        if unseen.any():
            found.append((at, rows[unseen], share[unseen]))
        lost = ~known & ~unseen
        weight = nodes.weight[first : first + k]
        for v in range(k):
            mine = known & (branch == v)
            if nodes.missing[at] == v:
                mine = mine | lost
            stack.append((first + v, rows[mine], share[mine]))
            if nodes.missing[at] < 0 and lost.any() and weight[v] > 0:
                stack.append((first + v, rows[lost], share[lost] * weight[v] / weight.sum()))
    return found
