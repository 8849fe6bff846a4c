"""What the size and the description of a tree say about new data, and thresholds that are short to describe."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from assay.claims.claim import Claim, NotApplicable
from assay.guarantees.evidence import Decided, Gathered
from assay.guarantees.ledger import FIT_NOT_KEPT, Statement, Vacuous, error_rate
from assay.messages import Message
from assay.scan import Rows
from assay.theory import pac, rademacher
from assay.theory.pac import exponent, shortest, tree_bits
from assay.theory.spaces import Space, Stumps, Trees, Unbounded, Votes
from assay.tree._nodes import Nodes
from assay.tree._reading import nominal_levels

_SILENT = 0.999  # a bound above says nothing
_DRAWS, _SEED = 16, 0  # of signs; the format fixes both, so that nobody can look for signs that suit the rows


def tree_space(nodes: Nodes, n_columns: int, n_classes: int) -> Space:
    """Return the class of all trees with as many leaves, if it splits at thresholds only."""
    if np.any(nodes.table >= 0):
        return Unbounded("trees that split nominal columns, whose patterns are not counted here")
    return TreesOfOneSize(n_columns, int(np.count_nonzero(nodes.child < 0)), n_classes)


def occam_statement(tree: Any, rows: Rows) -> Iterator[Statement | NotApplicable]:
    """Yield the bound that the length of the tree's description gives, or why there is none."""
    nodes = tree.nodes_
    if np.any(nodes.table >= 0):
        yield NotApplicable("occam", Message("why.tree-code"))
    elif rows.has_weight:
        yield NotApplicable("occam", Message("why.weights.errors"))
    else:
        bits = tree_bits(nodes.column, nodes.threshold, nodes.child, tree.n_features_in_, len(tree.classes_))
        yield partial(_occam, _errors(tree, rows), rows.n_rows, bits)


def _occam(errors: int, n: int, bits: float, delta: str) -> Claim | NotApplicable:
    bound = pac.occam_bound(errors, n, float(delta), -bits * math.log(2.0)) if errors < n else 1.0
    if bound > _SILENT:
        why = Message("why.tree-bits", bits=bits, rows=n, bound=bound)
        return Vacuous("occam", why, delta)
    return error_rate("occam", bound, {"code": "tree/1", "errors": errors, "rows": n}, "train", delta)


def stump_statement(tree: Any, rows: Rows) -> Iterator[Statement | NotApplicable]:
    """Yield, for a tree whose parameters allow no more than one split, the bound by Rademacher complexity.

    Larger trees have none of this kind: their largest correlation with random signs is hard to find.
    """
    if tree.max_depth != 1 and tree.max_leaf_nodes != 2:
        return
    if len(tree.classes_) != 2:
        yield NotApplicable("rademacher.empirical", Message("why.two-class-signs"))
    elif nominal_levels(tree):
        yield NotApplicable("rademacher.empirical", Message("why.stump-levels"))
    elif rows.has_weight:
        yield NotApplicable("rademacher.empirical", Message("why.weights.errors"))
    else:
        yield partial(_complexity, tree, rows)


def _complexity(tree: Any, rows: Rows, delta: str) -> Claim | NotApplicable:
    errors, n = _errors(tree, rows), rows.n_rows
    suprema = rademacher.of_space(Stumps(tree.n_features_in_), np.concatenate([block.X for block in rows.blocks()]))
    value = rademacher.average(suprema, rademacher.signs(_DRAWS, n, _SEED)).value
    bound = rademacher.monte_carlo_error_bound(errors / n, value, _DRAWS, n, float(delta))
    if bound > _SILENT:
        return Vacuous("rademacher.empirical", Message("why.few-for-signs", rows=n, errors=errors, bound=bound), delta)
    params = {"class": "stumps", "draws": _DRAWS, "seed": _SEED, "errors": errors, "rows": n}
    return error_rate("rademacher.empirical", bound, params, "train", delta)


def shortened(nodes: Nodes, X: np.ndarray) -> Nodes:
    """Return the tree with thresholds that are short to describe and send every row of X where it went before.

    A threshold may lie anywhere between the largest value that goes left and the smallest that goes right.
    """
    threshold = nodes.threshold.copy()
    previous: dict[int, int] = {}
    level = [(0, np.arange(len(X)))]
    while level:
        below = []
        for at, rows in level:
            if nodes.child[at] < 0:
                continue
            j, x = int(nodes.column[at]), X[rows, nodes.column[at]]
            left = x <= threshold[at]
            if left.any() and not left.all():
                threshold[at] = shortest(float(x[left].max()), float(x[~left].min()), previous.get(j, 0))
            if threshold[at]:
                previous[j] = exponent(threshold[at])
            below += [(int(nodes.child[at]), rows[left]), (int(nodes.child[at]) + 1, rows[~left])]
        level = below
    return nodes._replace(threshold=threshold)


PRUNED_BY = {
    "gini": "gini",
    **dict.fromkeys(("entropy", "log_loss", "gain"), "entropy"),
    **dict.fromkeys(("squared_error", "friedman_mse"), "squared_error"),
}
"""The impurity whose sum over leaves is the cost of a tree, by the criterion of its growth."""


def grown_part(grown: Nodes, pruned: Nodes) -> dict[str, np.ndarray]:
    """Return the grown tree as a certificate shows it, with the thresholds of the pruned one where it has splits."""
    threshold, waiting = grown.threshold.copy(), [(0, 0)]
    while waiting:
        at, there = waiting.pop()
        if pruned.child[at] >= 0:
            threshold[there] = pruned.threshold[at]
            waiting += [(int(pruned.child[at]) + i, int(grown.child[there]) + i) for i in (0, 1)]
    return {"column": grown.column, "threshold": threshold, "child": grown.child}


def pruning_fact(tree: Any, rows: Rows) -> Iterator[Claim | NotApplicable]:
    """Yield, for a tree pruned by cost-complexity, that no subtree of the grown one costs less."""
    if "grown_" not in tree.__dict__:
        if tree.pruning == "cost_complexity" or tree.ccp_alpha > 0:
            yield NotApplicable("tree.pruned", FIT_NOT_KEPT)
        return
    alpha = float(getattr(tree, "ccp_alpha_", tree.ccp_alpha))
    reason = None
    if rows.has_weight or (is_classifier(tree) and tree.class_weight is not None):
        reason = Message("why.weights.pruning")
    elif tree.criterion not in PRUNED_BY:
        reason = Message("why.impurity", criterion=tree.criterion)
    elif tree.pruning in ("pre", "reduced_error"):
        reason = Message("why.pruned-apart")
    elif not tree.grown_:
        reason = Message("why.tree-nominal")
    if reason is not None:
        yield NotApplicable("tree.pruned", reason)
        return
    leaves = int(np.count_nonzero(tree.grown_["child"] < 0))
    scale = float(tree.nodes_.impurity[0]) + alpha * leaves
    params = {"alpha": alpha, "criterion": PRUNED_BY[tree.criterion], "rows": rows.n_rows, "leaves": leaves}
    witness = {name: np.asarray(part) for name, part in tree.grown_.items()}
    yield Claim("tree.pruned", 1e-9 * scale + 1e-100, "upper", params, witness=witness)


def _errors(tree: Any, rows: Rows) -> int:
    return Gathered(tree.evidence(rows)).the(Decided).count_errors(rows)[1]


@dataclass(frozen=True)
class _Everything(Unbounded):
    """Labels any distinct rows in any way, so that its growth function is 2^n and bounds nothing."""

    def log_growth(self, n: int) -> float:
        return n * math.log(2)


@dataclass(frozen=True)
class OfAnySize:
    """A family whose size is not limited in advance, such as trees with as many leaves as rows ask for."""

    what: str

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Unbounded:
        return _Everything(self.what)

    def __str__(self) -> str:
        return self.what


class _ByLogarithms:
    """The VC dimension from logarithms of the growth function; its integers have millions of digits here."""

    log_growth: Callable[[int], float]

    @property
    def vc_dimension(self) -> int:
        """A number that it does not exceed, within a factor of two of the largest v with growth(v) >= 2^v."""
        high = 1
        while self.log_growth(high) >= high * math.log(2):
            high *= 2
        return high


@dataclass(frozen=True)
class TreesOfOneSize(_ByLogarithms, Trees):
    """Trees with as many leaves as the fitted one; leaves have 1 / (leaves (leaves + 1)) of delta."""

    @property
    def price(self) -> int:
        return self.leaves * (self.leaves + 1)

    def __str__(self) -> str:
        return f"trees of {self.leaves} leaves on {self.d} columns"


@dataclass(frozen=True)
class VotesOfOneSize(_ByLogarithms, Votes):
    """Votes of as many members as the fitted one; T members have 1 / (T (T + 1)) of delta."""

    @property
    def price(self) -> int:
        return self.T * (self.T + 1) * self.base.price

    def __str__(self) -> str:
        return f"weighted votes of {self.T} members from {self.base}"
