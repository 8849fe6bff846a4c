"""Fitted trees as plain arrays, the same for single trees, forests and boosting.

The children of a node stand side by side. A row x at a node with a threshold goes to the first child if x[column] <=
threshold, else to the second; at a node with a table, to the child that the table gives for its code.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from assay.data.columns import ColumnType, schema_from_text, schema_text


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

    def parents(self) -> np.ndarray:
        """Return the parent of each node, -1 at a root."""
        parent = np.full(len(self.child), -1, dtype=np.int64)
        inner = np.flatnonzero(self.child >= 0)
        parent[self.children_of(inner)] = np.repeat(inner, self.n_children[inner])
        return parent

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


def nodes_of(
    grown: np.ndarray, sums: np.ndarray, criterion: str, sides: np.ndarray | None = None, classes: int = 0
) -> Nodes:
    """Return a tree from the records and sums of its nodes; under absolute errors these are weights and medians. If a
    number of `classes` is given, a node weighs what they do."""
    weight = sums[:, 1 : 1 + classes].sum(axis=1) if classes else sums[:, 0]
    value = sums[:, 1:] / (1.0 if criterion == "absolute_error" else weight[:, None])
    base = {"gini": weight, **dict.fromkeys(("entropy", "log_loss", "gain"), 0.0)}.get(criterion, grown["squares"])
    impurity = np.maximum(0.0, (base - grown["purity"]) / weight)
    column, threshold, child = (grown[name].copy() for name in ("column", "threshold", "child"))
    return binary_nodes(column, threshold, child, value, weight.copy(), impurity, sides)


def binary_nodes(column, threshold, child, value, weight, impurity, sides=None) -> Nodes:
    """Return one tree of thresholds, whose splits send missing values to the side given, or, where it is -1, to the
    heavier child, the second of equals."""
    inner = child >= 0
    first = np.where(inner, child, 0)
    side = (weight[first] <= weight[np.minimum(first + 1, len(weight) - 1)]).astype(np.int32)
    if sides is not None:
        side = np.where(sides >= 0, sides, side)
    return Nodes(
        root=np.zeros(1, dtype=np.int32),
        column=np.asarray(column, dtype=np.int32),
        threshold=threshold,
        table=np.full(len(child), -1, dtype=np.int32),
        child=np.asarray(child, dtype=np.int32),
        n_children=np.where(inner, 2, 0).astype(np.int32),
        missing=np.where(inner, side, -1).astype(np.int32),
        value=value,
        weight=weight,
        impurity=impurity,
        tables=np.empty((0, 0), dtype=np.int32),
    )


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
    """Mixin: the arrays of a model made of trees, by the names that certificates and model files know.

    They are the model: whatever it predicts follows from them. `nodes_` is a view of them; the number of children of a
    node follows from its table.
    """

    n_features_in_: int
    tree_root_: np.ndarray
    node_column_: np.ndarray
    node_threshold_: np.ndarray
    node_table_: np.ndarray
    node_child_: np.ndarray
    node_missing_: np.ndarray
    node_value_: np.ndarray
    node_weight_: np.ndarray
    node_impurity_: np.ndarray
    branch_tables_: np.ndarray
    columns_: tuple[ColumnType, ...] | None

    def keep_nodes(self, nodes: Nodes) -> None:
        """Make these trees the model."""
        for attribute, value in stored_arrays(nodes).items():
            setattr(self, attribute, value)

    def drop_nodes(self) -> None:
        """Forget the trees of an earlier fit."""
        for attribute in _STORED.values():
            self.__dict__.pop(attribute, None)

    @property
    def has_nodes(self) -> bool:
        """Whether the model is made of trees, and not of other members."""
        return "node_child_" in self.__dict__

    @property
    def nodes_(self) -> Nodes:
        """The nodes of all trees as arrays, made of those of the model."""
        stored = {name: getattr(self, attribute) for name, attribute in _STORED.items()}
        return Nodes(n_children=_branches(self.node_child_, self.node_table_, self.branch_tables_), **stored)

    @property
    def column_types_(self) -> np.ndarray:
        """Name, kind and levels of each column as JSON text; empty if all are numbers."""
        return schema_text(self.columns_)

    def _take_arrays(self, arrays: Mapping[str, Any]) -> None:
        """Keep the arrays, which are sound, and the types of the columns."""
        super()._take_arrays(arrays)  # type: ignore[misc]
        self.columns_ = schema_from_text(arrays["column_types_"].tolist() if "column_types_" in arrays else [])

    @property
    def trees_(self) -> dict[str, np.ndarray]:
        """The arrays of `nodes_` by name."""
        return self.nodes_._asdict()


_STORED = {
    "root": "tree_root_",
    "column": "node_column_",
    "threshold": "node_threshold_",
    "table": "node_table_",
    "child": "node_child_",
    "missing": "node_missing_",
    "value": "node_value_",
    "weight": "node_weight_",
    "impurity": "node_impurity_",
    "tables": "branch_tables_",
}


def stored_arrays(nodes: Nodes) -> dict[str, np.ndarray]:
    """Return the arrays by the names that a model has for them."""
    return {attribute: getattr(nodes, name) for name, attribute in _STORED.items()}


def _branches(child: np.ndarray, table: np.ndarray, tables: np.ndarray) -> np.ndarray:
    """Return the number of children of each node: 2 at a threshold, as many as the table of a nominal split names."""
    result = np.where(child >= 0, 2, 0).astype(np.int32)
    named = np.flatnonzero((child >= 0) & (table >= 0))
    if len(named):
        result[named] = tables.max(axis=1)[table[named]] + 1
    return result


def one_leaf(value: np.ndarray) -> Nodes:
    """Return the tree that predicts `value` (outputs,) for every row."""
    one, none = np.zeros(1, dtype=np.int32), np.full(1, -1, dtype=np.int32)
    tables = np.empty((0, 0), dtype=np.int32)
    return Nodes(one, none, np.zeros(1), none, none, one, none, value[None], np.ones(1), np.zeros(1), tables)


def tree_at(nodes: Nodes, t: int) -> Nodes:
    """Return the t-th of several trees by itself."""
    start = int(nodes.root[t])
    stop = int(nodes.root[t + 1]) if t + 1 < len(nodes.root) else len(nodes.child)
    parts = {name: getattr(nodes, name)[start:stop] for name in Nodes._fields[1:10]}
    parts["child"] = np.where(parts["child"] < 0, -1, parts["child"] - start).astype(np.int32)
    return Nodes(root=np.zeros(1, dtype=np.int32), tables=nodes.tables, **parts)
