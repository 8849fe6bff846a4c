"""Trees, forests and boosting: nodes x <= threshold and tables of levels, summed over trees.

A node with a table of levels becomes a chain of equality tests, one for each code that does not lead to the last child;
several tests lead to the same child.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import numpy_helper

from assay.claims.model import StoredModel
from assay.export._graph import Graph, Scores


@dataclass
class _Nodes:
    """The attributes of a `TreeEnsembleRegressor`, collected tree by tree."""

    tree: list[int] = field(default_factory=list)
    node: list[int] = field(default_factory=list)
    column: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    mode: list[str] = field(default_factory=list)
    true: list[int] = field(default_factory=list)
    false: list[int] = field(default_factory=list)
    missing_true: list[int] = field(default_factory=list)
    leaf: list[tuple[int, int, int]] = field(default_factory=list)  # tree, node, its number among the leaves

    def add_leaf(self, tree: int, node: int) -> None:
        self.add(tree, node, "LEAF", 0, 0.0, (0, 0), False)

    def add(
        self, tree: int, node: int, mode: str, column: int, value: float, children: tuple[int, int], missing_true: bool
    ) -> None:
        """Add a node with the children for rows that pass its test, and for those that do not."""
        self.tree.append(tree)
        self.node.append(node)
        self.mode.append(mode)
        self.column.append(column)
        self.value.append(value)
        self.true.append(children[0])
        self.false.append(children[1])
        self.missing_true.append(int(missing_true))

    def attributes(self) -> dict[str, Any]:
        trees, nodes, numbers = zip(*self.leaf, strict=True)
        return {
            "nodes_treeids": self.tree, "nodes_nodeids": self.node, "nodes_featureids": self.column,
            "nodes_modes": self.mode, "nodes_truenodeids": self.true, "nodes_falsenodeids": self.false,
            "nodes_missing_value_tracks_true": self.missing_true,
            "nodes_values_as_tensor": numpy_helper.from_array(np.array(self.value)),
            "target_treeids": trees, "target_ids": trees, "target_nodeids": nodes,
            "target_weights_as_tensor": numpy_helper.from_array(np.array(numbers, dtype=np.float64)),
        }  # fmt: skip


_OF_A_TEST = 16  # numbers that a test of a level takes
_MOST_LEAVES = 2**24  # numbers of leaves that single precision distinguishes


class _Trees:
    """The stored nodes of all trees."""

    def __init__(self, model: StoredModel) -> None:
        arrays = model.arrays
        names = ("column", "threshold", "table", "child", "missing")
        self.column, self.threshold, self.table, self.child, self.missing = (arrays[f"node_{name}_"] for name in names)
        self.tables, self.root = arrays["branch_tables_"], arrays["tree_root_"]
        self.leaf_value = np.atleast_2d(arrays["node_value_"].T).T
        self.ends = [*self.root[1:].tolist(), len(self.child)]

    def values(self, graph: Graph, x: str, value: np.ndarray) -> str:
        """Return the values of each row's leaves, (rows, trees, outputs)."""
        result, tables, offsets, size = _Nodes(), [], [], 0
        for tree, (start, end) in enumerate(zip(self.root.tolist(), self.ends)):
            most = free = end - start
            for node in range(start, end):
                free = self._add(result, tree, node, start, free)
                graph.need(_OF_A_TEST * (free - most))
                most = free
            leaves = start + np.flatnonzero(self.child[start:end] < 0)
            if len(leaves) > _MOST_LEAVES:
                raise ValueError("a tree of more than 16 million leaves cannot be exported to ONNX.")
            result.leaf += [(tree, node - start, number) for number, node in enumerate(leaves.tolist())]
            tables.append(value[leaves])
            offsets.append(size)
            size += len(leaves)
        leaf = graph.node(
            "Add", graph.leaves(x, len(offsets), **result.attributes()), graph.constant(offsets, np.int64)
        )
        return graph.node("Gather", np.concatenate(tables), leaf, axis=0)

    def _add(self, nodes: _Nodes, tree: int, node: int, start: int, free: int) -> int:
        """Add a node; return the next number that is free for further tests of a table."""
        child, missing = int(self.child[node]) - start, int(self.missing[node])
        column, threshold = int(self.column[node]), float(self.threshold[node])
        if child + start < 0:
            nodes.add_leaf(tree, node - start)
        elif self.table[node] < 0:
            nodes.add(tree, node - start, "BRANCH_LEQ", column, threshold, (child, child + 1), missing == 0)
        else:
            free = self._chain(nodes, (tree, node - start, column), child, self.tables[self.table[node]], missing, free)
        return free

    @staticmethod
    def _chain(nodes: _Nodes, at: tuple[int, int, int], child: int, table: np.ndarray, missing: int, free: int) -> int:
        tree, node, column = at
        last = int(table.max())
        tests = [(code, int(branch)) for code, branch in enumerate(table.tolist()) if 0 <= branch < last]
        tests = tests or [(-1, last)]  # every level goes to the same child
        first = {branch: i for i, (_, branch) in reversed(list(enumerate(tests)))}
        for i, (code, branch) in enumerate(tests):
            following = child + last if i == len(tests) - 1 else free
            gap = branch == missing and first[branch] == i
            nodes.add(tree, node, "BRANCH_EQ", column, float(code), (child + branch, following), gap)
            if i < len(tests) - 1:
                node, free = free, free + 1
        return free


def scores(graph: Graph, x: str, model: StoredModel) -> Scores:
    kind, trees = model.family.partition(".")[2], _Trees(model)
    if len(model.arrays["column_types_"]) and np.any(trees.missing[trees.child >= 0] < 0):
        raise ValueError("the tree sends rows with missing values down several branches, which ONNX cannot do.")
    return _KINDS.get(kind, _mean)(graph, x, trees, model)


def _total(graph: Graph, x: str, trees: _Trees, value: np.ndarray) -> str:
    return graph.total(trees.values(graph, x, value), axis=1, keep=False)


def _mean(graph: Graph, x: str, trees: _Trees, model: StoredModel) -> Scores:
    """Return the leaf values of a tree, or their mean over the trees."""
    total = _total(graph, x, trees, trees.leaf_value)
    mean = total if len(trees.root) == 1 else graph.node("Div", total, [float(len(trees.root))])
    return Scores(mean, trees.leaf_value.shape[1])


def _sum(graph: Graph, x: str, trees: _Trees, model: StoredModel) -> Scores:
    """Return base plus sum of leaf values, tree t for output t mod K."""
    base = np.atleast_1d(model.arrays["base_score_"])
    values = graph.reshape(trees.values(graph, x, trees.leaf_value), -1, len(trees.root) // len(base), len(base))
    return Scores(graph.node("Add", graph.total(values, axis=1, keep=False), base), len(base))


def _exponential(graph: Graph, x: str, trees: _Trees, model: StoredModel) -> Scores:
    return Scores(graph.node("Exp", _sum(graph, x, trees, model).value), 1)


def _weighted_vote(graph: Graph, x: str, trees: _Trees, model: StoredModel) -> Scores:
    """Return for each class the sum of the weights of the trees whose leaf has it as its first largest value."""
    width = trees.leaf_value.shape[1]
    votes = (trees.leaf_value.argmax(axis=1)[:, None] == np.arange(width)).astype(np.float64)
    owner = np.searchsorted(trees.root, np.arange(len(votes)), side="right") - 1
    return Scores(_total(graph, x, trees, votes * model.arrays["estimator_weights_"][owner][:, None]), width)


def _committee(graph: Graph, x: str, trees: _Trees, model: StoredModel) -> Scores:
    """Return the shares of the committees that vote for each class; mean shares, with a small weight, break ties."""
    width, committee = trees.leaf_value.shape[1], model.arrays["committee_"]
    own = (np.arange(committee.max() + 1)[:, None] == committee).astype(np.float64)
    means = graph.product(own / own.sum(axis=1, keepdims=True), trees.values(graph, x, trees.leaf_value))
    votes = graph.one_hot(graph.node("ArgMax", means, axis=2, keepdims=0), width)
    weight = 0.5 / len(own)
    mixed = graph.node("Add", graph.node("Mul", votes, [1 - weight]), graph.node("Mul", means, [weight]))
    return Scores(graph.node("Div", graph.total(mixed, keep=False), [float(len(own))]), width)


def _median(graph: Graph, x: str, trees: _Trees, model: StoredModel) -> Scores:
    """Return the smallest leaf value at or below which lies at least half of the weight."""
    count, weights = len(trees.root), model.arrays["estimator_weights_"]
    units = np.rint(weights / weights.max() * 2.0**30)
    values = graph.reshape(trees.values(graph, x, trees.leaf_value), -1, count)
    ascending, order = graph.sorted(values, count)
    reached = graph.node("CumSum", graph.node("Gather", units, order, axis=0), graph.constant(1, np.int64))
    enough = graph.numbers(graph.node("GreaterOrEqual", reached, [units.sum() / 2]))
    first = graph.node("ArgMax", enough, axis=1, keepdims=1)
    return Scores(graph.node("GatherElements", ascending, first, axis=1), 1)


_KINDS = {
    "sum-classifier": _sum,
    "sum-regressor": _sum,
    "sum-exponential": _exponential,
    "weighted-vote": _weighted_vote,
    "committee": _committee,
    "median": _median,
}
