"""Cost-complexity pruning: no subtree of the grown tree is cheaper than the model."""

import math

import numpy as np

from assay.checker.numerics import U, above, gamma
from assay.checker.record import Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules.trees import Trees

_CRITERIA = ("gini", "entropy", "squared_error")


class PrunedTree(Rule):
    """tree.pruned: R(T) + alpha leaves of the model exceeds that of the best subtree of the grown tree by at most the
    value.

    R sums over leaves the share of the rows times their impurity. The rows are sent down the grown tree; the best
    subtree is found from the leaves up, each node costing the smaller of R(t) + alpha and its children together.
    """

    def prepare(self) -> None:
        model = self.model
        if not isinstance(model, Trees) or model.kind not in ("classifier", "regressor"):
            raise Rejected("it is about a single tree")
        self.check_rows()
        self.alpha = self.number("alpha", zero=True)
        self.criterion = self.choice("criterion", list(_CRITERIA[:2] if model.classes else _CRITERIA[2:]))
        child = self.witness("child", None, integer=True)
        self.grown = Trees(
            "regressor",
            model.columns,
            np.zeros(1, dtype=np.int64),
            self.witness("column", len(child), integer=True),
            self.witness("threshold", len(child)),
            np.full(len(child), -1),
            child,
            np.zeros((len(child), 1)),
            model.tables,
            np.full(len(child), -1),
            np.zeros(0),
            None,
        )
        self._check_grown()
        self.leaves = self._model_leaves()
        if self.count("leaves") != np.count_nonzero(child < 0):
            raise Rejected(f"leaves is {self.params['leaves']}, the grown tree has {np.count_nonzero(child < 0)}")
        self.sums = np.zeros((len(child), len(model.classes) if model.classes else 3))
        self.center: float | None = None

    def _check_grown(self) -> None:
        grown, n = self.grown, len(self.grown.child)
        inner = np.flatnonzero(grown.child >= 0)
        columns = grown.column[inner]
        parents = np.bincount(np.concatenate([grown.child[inner], grown.child[inner] + 1]), minlength=n)
        if (
            not n
            or np.any(grown.child[inner] <= inner)
            or np.any(grown.child[inner] + 1 >= n)
            or np.any((columns < 0) | (columns >= grown.columns))
            or np.any(parents[1:] != 1)
            or parents[0] != 0
        ):
            raise Rejected("the grown tree is not a tree: every node but the first has one parent before it")

    def _model_leaves(self) -> list[int]:
        """Return the nodes of the grown tree that are leaves of the model, following both from the root."""
        model, grown, results = self.model, self.grown, []
        waiting = [(int(model.root[0]), 0)]
        while waiting:
            at, there = waiting.pop()
            if model.child[at] < 0:
                results.append(there)
                continue
            same = grown.child[there] >= 0 and model.table[at] < 0
            if not same or (model.column[at], model.threshold[at]) != (grown.column[there], grown.threshold[there]):
                raise Rejected("the model is not a subtree of the grown tree")
            waiting += [(int(model.child[at]) + i, int(grown.child[there]) + i) for i in (0, 1)]
        return results

    def block(self, view: View) -> None:
        if np.any(view.weight != 1):
            raise Rejected("it is about rows that count alike")
        at = self.grown.leaves(view.X)[:, 0]
        if self.model.classes:
            if np.any(view.codes < 0):
                raise Rejected("a row has a label that the model does not know")
            np.add.at(self.sums, (at, view.codes), 1)
            return
        if view.targets.shape[1] != 1:
            raise Rejected("it needs a regression with one target")
        y = view.targets[:, 0]
        self.center = float(y[0]) if self.center is None else self.center
        gap = y - self.center
        np.add.at(self.sums, at, np.column_stack([np.ones_like(gap), gap, gap * gap]))

    def measure(self) -> float:
        risk, error = self._risks()
        best, cost = np.empty(len(risk)), risk + self.alpha
        for at in range(len(risk) - 1, -1, -1):
            first = int(self.grown.child[at])
            best[at] = cost[at] if first < 0 else min(cost[at], best[first] + best[first + 1])
        own = math.fsum(cost[self.leaves].tolist())
        slip = error.sum() + gamma(4 * len(risk) + 16) * (own + float(best[0]) + self.alpha * len(risk))
        return float(max(0.0, own - best[0]) + above(2 * slip))

    def _risks(self) -> tuple[np.ndarray, np.ndarray]:
        """Return R(t) of every node of the grown tree, and bounds of its error."""
        total, child = self.sums.copy(), self.grown.child
        for at in range(len(child) - 1, -1, -1):
            if child[at] >= 0:
                total[at] += total[child[at]] + total[child[at] + 1]
        if not self.model.classes:
            return self._squares(total)
        size = np.maximum(total.sum(axis=1), 1.0)
        if self.criterion == "gini":
            risk = size - (total * total).sum(axis=1) / size
            risk = np.where(total.sum(axis=1) > 0, risk, 0.0)
        else:
            share = total / size[:, None]
            risk = -np.sum(np.where(total > 0, total * np.log2(np.where(share > 0, share, 1.0)), 0.0), axis=1)
        error = 16 * (total.shape[1] + 8) * U * (size + risk)
        return risk / self.rows, error / self.rows

    def _squares(self, total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        count, first, second = total.T  # of rows, of y - center, of its square
        risk = np.maximum(second - first * first / np.maximum(count, 1.0), 0.0)
        error = gamma(4 * self.rows + 64) * second
        return risk / self.rows, error / self.rows
