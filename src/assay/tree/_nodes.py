"""Fitted trees as plain arrays, the same for single trees, forests and boosting.

The children of a node stand side by side. A row x at a node with a threshold goes to the first child if x[column] <=
threshold, else to the second; at a node with a table, to the child that the table gives for its code.
"""

from typing import Any, NamedTuple

import numpy as np


class Nodes(NamedTuple):
    """Nodes of one or more trees.

    root : (trees,) first node of each tree
    column : (nodes,) column tested, -1 in a leaf
    threshold : (nodes,) largest value that goes to the first child
    table : (nodes,) row of `tables` that sends codes to children, -1 for a threshold
    child : (nodes,) first child, -1 in a leaf
    n_children : (nodes,)
    missing : (nodes,) child that takes rows without a value; -1 if they go to all children by their weights
    value : (nodes, outputs) what the node predicts: class shares, or numbers
    weight : (nodes,) sum of the training weights
    impurity : (nodes,) by the criterion of the fit; 0 where it was not recorded
    tables : (tables, levels) child of each code, -1 for a code that was not seen
    """

    root: np.ndarray
    column: np.ndarray
    threshold: np.ndarray
    table: np.ndarray
    child: np.ndarray
    n_children: np.ndarray
    missing: np.ndarray
    value: np.ndarray
    weight: np.ndarray
    impurity: np.ndarray
    tables: np.ndarray

    @property
    def is_leaf(self) -> np.ndarray:
        return self.child < 0

    def depths(self) -> np.ndarray:
        """Return the depth of each node, 0 at a root; a node stands after its parent."""
        depth, level = np.zeros(len(self.child), dtype=np.int64), self.root.astype(np.int64)
        while len(level := self.children_of(level)):
            depth[level] = depth.max() + 1
        return depth

    def children_of(self, level: np.ndarray) -> np.ndarray:
        """Return all children of some nodes, those of one node side by side."""
        inner = level[self.child[level] >= 0]
        counts = self.n_children[inner].astype(np.int64)
        first = self.child[inner].astype(np.int64) - np.append(0, np.cumsum(counts))[:-1]
        return np.repeat(first, counts) + np.arange(counts.sum())

    def check(self, n_columns: int) -> "Nodes":
        """Refuse arrays that do not describe trees over that many columns: compiled code reads them
        unchecked."""
        n = len(self.child)
        inner = np.flatnonzero(self.child >= 0)
        ends = self.child[inner].astype(np.int64) + self.n_children[inner]
        with_table = inner[self.table[inner] >= 0]
        sound = (
            n > 0
            and all(len(part) == n for part in self[1:10])
            and all(
                part.dtype.kind in "iu" for part in (self.root, self.column, self.table, self.child, self.n_children)
            )
            and self.root.size > 0
            and self.root.min() >= 0
            and self.root.max() < n
            and bool(np.all(self.child[inner] > inner))
            and bool(np.all(self.n_children[inner] >= 1))
            and bool(np.all(self.missing[inner] < self.n_children[inner]))
            and bool(np.all(ends <= n))
            and bool(np.all((self.column[inner] >= 0) & (self.column[inner] < n_columns)))
            and bool(np.all(self.table[inner] < len(self.tables)))
            and bool(np.all(self.n_children[inner[self.table[inner] < 0]] == 2))
            and (
                not len(with_table)
                or bool(np.all(self.tables[self.table[with_table]].max(axis=1) < self.n_children[with_table]))
            )
        )
        if not sound:
            raise ValueError("the arrays of the fitted trees are damaged: they do not describe trees.")
        return self

    def as_dict(self) -> dict[str, np.ndarray]:
        return self._asdict()


def joined(trees: list[Nodes]) -> Nodes:
    """Return several sets of trees as one."""
    starts = np.cumsum([0] + [len(tree.child) for tree in trees])[:-1]
    tables = np.cumsum([0] + [len(tree.tables) for tree in trees])[:-1]
    levels = max(tree.tables.shape[1] for tree in trees)
    parts: dict[str, Any] = {name: [getattr(tree, name) for tree in trees] for name in Nodes._fields}
    parts["root"] = [tree.root + start for tree, start in zip(trees, starts)]
    parts["child"] = [np.where(tree.child < 0, -1, tree.child + start) for tree, start in zip(trees, starts)]
    parts["table"] = [np.where(tree.table < 0, -1, tree.table + start) for tree, start in zip(trees, tables)]
    parts["tables"] = [_widened(tree.tables, levels) for tree in trees]
    return Nodes(**{name: np.concatenate(part) for name, part in parts.items()})


def _widened(tables: np.ndarray, levels: int) -> np.ndarray:
    return np.pad(tables, ((0, 0), (0, levels - tables.shape[1])), constant_values=-1)


class TreeModel:
    """Mixin: `trees_` holds the arrays; these names are what certificates read."""

    trees_: dict[str, np.ndarray]

    @property
    def nodes_(self) -> Nodes:
        return Nodes(**self.trees_)

    @property
    def tree_root_(self) -> np.ndarray:
        return self.trees_["root"]

    @property
    def node_column_(self) -> np.ndarray:
        return self.trees_["column"]

    @property
    def node_threshold_(self) -> np.ndarray:
        return self.trees_["threshold"]

    @property
    def node_table_(self) -> np.ndarray:
        return self.trees_["table"]

    @property
    def node_child_(self) -> np.ndarray:
        return self.trees_["child"]

    @property
    def node_value_(self) -> np.ndarray:
        return self.trees_["value"]

    @property
    def branch_tables_(self) -> np.ndarray:
        return self.trees_["tables"]
