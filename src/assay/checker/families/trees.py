"""Trees, forests, sums of trees and votes of trees.

Nodes of all trees stand in common arrays, children of a node side by side after it: `n_features_in_`, `tree_root_`
(trees,), `node_column_`, `node_threshold_`, `node_table_`, `node_child_` (nodes,), `node_value_` (nodes, outputs),
`branch_tables_` (tables, codes); `base_score_` of a sum, `estimator_weights_` of a weighted vote or median,
`committee_` of committees. A row goes to the first child if x[column] <= threshold, else to the second; by a branch
table, to the child of its code. Not part of any claim: `node_missing_` (child of rows without a value, -1: all),
`node_weight_`, `node_impurity_` (nodes,), `column_types_` (columns,) as JSON text, or empty if all are numbers; of a
single tree fitted with weights, `leaf_rows_` (leaves,), its training rows.

Cost-complexity pruning: no subtree of the grown tree is cheaper than the model.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from assay.checker.family import NUMBERS, TEXT, WHOLE, Family, Variant
from assay.checker.numerics import U, above, gamma
from assay.checker.record import Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules import tree_ensembles, trees
from assay.checker.rules.trees import Trees
from assay.claims.definitions import PRIOR, UNIFORM, Definition
from assay.claims.sentences import Sentence, error_rate, part

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


_VOTE_MARGIN = Sentence(
    {
        "lower": "The vote gives the training rows a margin of at least {value:out6}{soft}, in shares of its weight.",
        "upper": "No weighted vote of stumps gives the training rows a margin above {value:out6}{soft}.",
        "soft": " (soft: a row counts at most {cap:.3g})",
    },
    lambda value, direction, params: {"soft": part(params["cap"] < 1, "soft")},
)


_PRODUCT = Sentence.plain(
    "The training error is at most {value:up6}, the product of the {rounds} normalisers of boosting."
)


_SIZE = Sentence.plain("The tree has {leaves} leaves and at most {depth} tests on a way down.")


_PRUNED = Sentence.plain(
    "No subtree of the grown tree ({leaves} leaves) has a {criterion:term} impurity plus {alpha:.4g} per leaf smaller "
    "by more than {value:up2}."
)


CLAIMS = {
    "D24/1": Definition("adaboost.product", trees.BoostingProduct, _PRODUCT),
    "D25/1": Definition("boosting.margin-duality", tree_ensembles.MarginDuality, _VOTE_MARGIN, (), ("upper", "lower")),
    "D27/1": Definition("tree.facts", trees.TreeSize, _SIZE),
    "D33/1": Definition("tree.pruned", PrunedTree, _PRUNED),
    "P09/1": Definition(
        "occam",
        trees.Occam,
        error_rate("{errors} errors in {rows} training rows, length of the tree's description"),
        PRIOR,
        quantity="error rate",
    ),
    "P11/1": Definition(
        "rademacher.empirical",
        tree_ensembles.StumpComplexity,
        error_rate("{errors} errors in {rows} training rows, how well stumps follow {draws} draws of random signs"),
        (*UNIFORM, "A-RNG"),
        quantity="error rate",
    ),
    "P15/1": Definition(
        "margin.boosting",
        tree_ensembles.BoostingMargin,
        error_rate("margins of {rows} training rows in the vote"),
        PRIOR,
        quantity="error rate",
    ),
    "P19/1": Definition(
        "pac-bayes.vote",
        tree_ensembles.OutOfBagVote,
        error_rate("{members} members on their out-of-bag rows, {form:term} form"),
        ("A-IID(train)", "A-CLASS", "A-BAGS", "A-RNG", "A-PRIOR", "A-DELTA"),
        quantity="error rate",
    ),
}
_TYPES = {"column_types_": TEXT, **dict.fromkeys(("node_threshold_", "node_value_"), NUMBERS)}
_TYPES |= dict.fromkeys(("node_weight_", "node_impurity_"), NUMBERS)
_NODES = {name: _TYPES.get(name, WHOLE) for name in trees.NODES}
_BASE, _WEIGHTS = {**_NODES, "base_score_": NUMBERS}, {**_NODES, "estimator_weights_": NUMBERS}

_PROBABILITIES = {
    "classifier": ("leaves",),
    "vote": ("shares",),
    "sum-classifier": ("logistic",),
    "weighted-vote": ("boosted",),
}


def _variant(kind: str, arrays: Mapping[str, tuple[str, ...]], classes: bool) -> Variant:
    single = {"leaf_rows_": _leaf_rows} if kind in ("classifier", "regressor") else {}
    more = {"member_columns_": _columns, **single}
    links = _PROBABILITIES.get(kind, ())
    return Variant(arrays, partial(trees.read_trees, kind), classes=classes, probabilities=links, more=more)


def _leaf_rows(array: Any, model: Any) -> bool:
    """Tell whether an array counts the training rows of each leaf."""
    return array.dtype.kind == "i" and array.shape == (int((model.child < 0).sum()),) and bool((array >= 0).all())


def _columns(array: Any, model: Any) -> bool:
    """Tell whether an array names the columns that each of the trees was grown on."""
    whole = array.dtype.kind == "i" and array.ndim == 2 and len(array) == len(model.root)
    return whole and bool(((array >= 0) & (array < model.columns)).all())


FAMILY = Family(
    "trees",
    {
        "classifier": _variant("classifier", _NODES, True),
        "regressor": _variant("regressor", _NODES, False),
        "vote": _variant("vote", _NODES, True),
        "mean": _variant("mean", _NODES, False),
        "committee": _variant("committee", {**_NODES, "committee_": WHOLE}, True),
        "sum-classifier": _variant("sum-classifier", _BASE, True),
        "sum-regressor": _variant("sum-regressor", _BASE, False),
        "sum-exponential": _variant("sum-exponential", _BASE, False),
        "weighted-vote": _variant("weighted-vote", _WEIGHTS, True),
        "median": _variant("median", _WEIGHTS, False),
    },
    CLAIMS,
)
