"""A fitted tree as scikit-learn's own `Tree`, so that its tools (`export_text`, `plot_tree`, SHAP) read ours.

It is derived from the nodes, which remain the model: what is written to the arrays of the copy changes no prediction.
Nodes keep their numbers, the children of a node side by side after it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from assay.tree._nodes import Nodes

_LEAF, _UNDEFINED = -1, -2  # scikit-learn's words for "no child" and "no test"


def scikit_tree(
    nodes: Nodes, n_features: int, n_classes: Sequence[int] | np.ndarray, leaf_rows: np.ndarray | None = None
) -> Any:
    """Return one tree as a `sklearn.tree._tree.Tree`.

    n_classes : number of classes of each output, 1 for numbers; `nodes.value` holds their shares one after the other
    leaf_rows : (leaves,) training rows of each leaf; the weights, rounded, if it is None (all rows weigh 1)
    """
    from sklearn.tree._tree import NODE_DTYPE, Tree

    _require_thresholds(nodes)
    n, inner = len(nodes.child), nodes.child >= 0
    records = np.zeros(n, dtype=NODE_DTYPE)
    records["left_child"] = np.where(inner, nodes.child, _LEAF)
    records["right_child"] = np.where(inner, nodes.child + 1, _LEAF)
    records["feature"] = np.where(inner, nodes.column, _UNDEFINED)
    records["threshold"] = np.where(inner, nodes.threshold, _UNDEFINED)
    records["impurity"] = nodes.impurity
    records["n_node_samples"] = row_counts(nodes, leaf_rows)
    records["weighted_n_node_samples"] = nodes.weight
    records["missing_go_to_left"] = inner & (nodes.missing == 0)
    classes = np.asarray(n_classes, dtype=np.intp)
    tree = Tree(n_features, classes, len(classes))
    depth = int(nodes.depths().max())
    state = {"max_depth": depth, "node_count": n, "nodes": records, "values": padded(nodes.value, classes)}
    tree.__setstate__(state)
    return tree


def _require_thresholds(nodes: Nodes) -> None:
    if np.any(nodes.table[nodes.child >= 0] >= 0):
        raise AttributeError("tree_: scikit-learn's trees have no splits of nominal columns; read nodes_ instead.")
    if np.any(nodes.missing[nodes.child >= 0] < 0):
        raise AttributeError(
            "tree_: scikit-learn's trees send rows without a value down one branch, this one down all; read nodes_ "
            'instead, or fit with missing="direction".'
        )


def padded(value: np.ndarray, n_classes: np.ndarray) -> np.ndarray:
    """Return values (nodes, sum of classes) as (nodes, outputs, most classes), with zeros behind fewer classes."""
    out = np.zeros((len(value), len(n_classes), int(n_classes.max())))
    for k, part in enumerate(np.split(value, np.cumsum(n_classes)[:-1], axis=1)):
        out[:, k, : part.shape[1]] = part
    return out


def row_counts(nodes: Nodes, leaf_rows: np.ndarray | None) -> np.ndarray:
    """Return the number of training rows of each node, from that of the leaves."""
    if leaf_rows is None:
        return np.rint(nodes.weight).astype(np.int64)
    counts = np.zeros(len(nodes.child), dtype=np.int64)
    counts[nodes.child < 0] = leaf_rows
    for level in reversed(_levels(nodes)):
        inner = level[nodes.child[level] >= 0]
        counts[inner] = counts[nodes.child[inner]] + counts[nodes.child[inner] + 1]
    return counts


def _levels(nodes: Nodes) -> list[np.ndarray]:
    found, level = [], nodes.root.astype(np.int64)
    while len(level):
        found.append(level)
        level = nodes.children_of(level)
    return found


def ways_down(nodes: Nodes, ends: np.ndarray) -> csr_matrix:
    """Return (rows, nodes) with a 1 for every node on the way of each row, from the nodes where they end (rows,)."""
    parent, at = nodes.parents(), ends.astype(np.int64)
    ahead = np.append(0, np.cumsum(nodes.depths()[at] + 1))
    found, place = np.empty(ahead[-1], dtype=np.int64), ahead[1:] - 1
    while len(at):
        found[place] = at
        above = parent[at]
        going = above >= 0
        at, place = above[going], place[going] - 1
    return csr_matrix((np.ones(len(found), dtype=np.int64), found, ahead), shape=(len(ends), len(parent)))
