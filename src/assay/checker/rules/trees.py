"""Trees and ensembles of trees: the checker's own predictor, growth functions, Occam bounds.

Nodes are arrays; the children of a node stand side by side after it. A row with x[column] <= threshold goes to the
first child, else to the second; at a node with a branch table, to the child that the table gives for its code.
Comparisons are exact. Growth functions are those of classes of trees and of weighted votes of trees; the Occam bound
pays for the code length of a tree (SPEC.md).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from assay.checker.bounds.error_rate import CountedRisk
from assay.checker.bounds.tails import ln, ln_binomial, ln_patterns
from assay.checker.numerics import LARGEST, Sums, above, gamma
from assay.checker.predictors import Predictor, margins
from assay.checker.record import Refused, Rejected, count
from assay.checker.rule import Rule, View
from assay.checker.rules import tree_masks

KINDS = ("trees", "votes")
_LARGEST = 10**5  # leaves or members: larger classes say nothing, and take long to count


def price(descriptor: Any) -> int:
    """Return by how much delta is divided: the size of a tree, or of a vote, is not fixed in advance.

    Size j has the share 1 / (j (j + 1)) of delta; the shares of all sizes add up to 1.
    """
    if not isinstance(descriptor, Mapping) or descriptor.get("class") not in KINDS:
        return 1
    if descriptor["class"] == "trees":
        leaves = count(descriptor.get("leaves"), "leaves of the class", 1)
        return leaves * (leaves + 1)
    members = count(descriptor.get("T"), "T of the class", 1)
    return members * (members + 1) * price(descriptor.get("base"))


def ln_tree_growth(descriptor: Mapping[str, Any], points: int, model: Any) -> Decimal:
    """Return ln of a bound of the ways in which the class labels that many points, after checking membership."""
    labels = len(model.classes or ())
    _check_thresholds(model)
    if descriptor["class"] == "trees":
        if model.kind != "classifier":
            raise Rejected("the class is one of single trees")
        k = count(descriptor.get("classes"), "classes of the class", 2)
        if k < labels:
            raise Rejected(f"the class has {k} labels, the model {labels}")
        return _trees(descriptor, points, model, k)
    if model.kind != "weighted-vote" or labels != 2:
        raise Rejected("the class is one of weighted votes for two labels")
    members, base = count(descriptor.get("T"), "T of the class", 1), descriptor.get("base")
    if members < len(model.root) or members > _LARGEST:
        raise Rejected(f"the class has votes of {members} members, the model {len(model.root)}")
    with localcontext(prec=60):
        return members * ln_member_growth(base, points, model) + ln_patterns(points, members)


def ln_member_growth(base: Any, points: int, model: Any) -> Decimal:
    """Return ln of a bound of the ways in which one member of a vote labels that many points."""
    if not isinstance(base, Mapping) or base.get("class") not in ("stumps", "trees"):
        raise Rejected(f"unknown class of members {str(base)[:60]}")
    _check_thresholds(model)
    return _trees(base, points, model, 2) if base["class"] == "trees" else _stumps(base, points, model)


def _check_thresholds(model: Any) -> None:
    """Refuse other splits: a branch table can list the rows one by one, and no growth function here counts that."""
    if np.any(model.table[model.child >= 0] >= 0):
        raise Rejected("the class is one of trees that split at thresholds; the model is another kind")


def _stumps(base: Mapping[str, Any], points: int, model: Any) -> Decimal:
    """Return ln(2 + 2 d (N - 1)), after checking that every tree of the model has at most two leaves."""
    if max(tree_sizes(model)) > 2:
        raise Rejected("the members are stumps; the model has larger trees")
    return ln(2 + 2 * _columns(base, model) * (points - 1))


def _trees(descriptor: Mapping[str, Any], points: int, model: Any, labels: int) -> Decimal:
    """Return ln of Catalan(L - 1) (d (N - 1) + 1)^(L - 1) K^L: shapes, splits, labels."""
    leaves = count(descriptor.get("leaves"), "leaves of the class", 1)
    if not max(tree_sizes(model)) <= leaves <= _LARGEST:
        raise Rejected(f"the class has trees of {leaves} leaves, the model has one of {max(tree_sizes(model))}")
    d, inner = _columns(descriptor, model), leaves - 1
    with localcontext(prec=60):
        shapes = ln_binomial(2 * inner, inner) - ln(leaves) + Decimal("1e-20")
        return shapes + inner * ln(d * (points - 1) + 1) + leaves * ln(labels)


def _columns(descriptor: Mapping[str, Any], model: Any) -> int:
    d = count(descriptor.get("d"), "d of the class", 1)
    if d < model.columns:
        raise Rejected(f"the class uses {d} columns, the model {model.columns}")
    return d


def tree_sizes(model: Any) -> list[int]:
    """Return the number of leaves of each tree, by following the children of its root."""
    level, tree = model.root, np.arange(len(model.root))
    sizes = np.zeros(len(tree), dtype=np.int64)
    while len(level):
        first = model.child[level]
        inner = first >= 0
        sizes += np.bincount(tree[~inner], minlength=len(sizes))
        level, tree = np.concatenate([first[inner], first[inner] + 1]), np.concatenate([tree[inner], tree[inner]])
    return sizes.tolist()


NODES = (
    "n_features_in_",
    "tree_root_",
    "node_column_",
    "node_threshold_",
    "node_table_",
    "node_child_",
    "node_value_",
    "branch_tables_",
    "node_missing_",
    "node_weight_",
    "node_impurity_",
    "column_types_",
)
_CHUNK = 4096  # rows whose scores are computed at a time
_MOST_KEPT = 2**24  # leaves that are remembered from rule to rule


@dataclass(frozen=True)
class Trees(Predictor):
    """Scores of trees: votes (1 for the majority class of the leaf), mean leaf values, sums of leaf values,
    or weighted votes."""

    kind: str
    n_columns: int
    root: np.ndarray
    column: np.ndarray
    threshold: np.ndarray
    table: np.ndarray
    child: np.ndarray
    value: np.ndarray  # (nodes, outputs)
    tables: np.ndarray
    missing: np.ndarray  # child of rows without a value; -1 for all of them by their weights
    extra: np.ndarray  # base scores, or weights of the votes
    classes: tuple[str, ...] | None
    _last: list[Any] = field(default_factory=list, compare=False, repr=False)  # rows seen last, and their leaves

    @property
    def columns(self) -> int:
        return self.n_columns

    @property
    def width(self) -> int:  # type: ignore[override]
        return len(self.root)

    @cached_property
    def reads_gaps(self) -> bool:  # type: ignore[override]
        return bool(np.all(self.missing[self.child >= 0] >= 0))

    @property
    def binary(self) -> bool:
        return self.kind == "sum-classifier" and len(self.extra) == 1

    @property
    def members(self) -> int:
        return len(self.root)

    def member_losses(self, X: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return one minus the share that each member gives to the class of each row, (rows, members)."""
        shares = self.value[self.ends(X), np.maximum(codes, 0)[:, None]]
        return np.where(codes[:, None] < 0, 1.0, np.maximum(1.0 - shares, 0.0))

    def ends(self, X: np.ndarray) -> np.ndarray:
        """Return `leaves` of a whole block. Several rules ask about the same rows one after the other: the last answer
        is remembered."""
        if not self._last or self._last[0] is not X:
            at = np.concatenate([self.leaves(X[i : i + _CHUNK]) for i in range(0, len(X), _CHUNK)])
            if at.size > _MOST_KEPT:
                return at
            self._last[:] = [X, at]
        return self._last[1]

    @cached_property
    def _masks(self) -> list[tree_masks.Group] | None:
        return tree_masks.groups(self)

    def leaves(self, X: np.ndarray) -> np.ndarray:
        """Return the node that each row reaches in each tree, (rows, trees)."""
        n, d = X.shape
        if 16 * n >= len(self.child) and self._masks is not None and (self.reads_gaps or not np.isnan(X).any()):
            return tree_masks.leaves(self._masks, X)
        entries = np.ascontiguousarray(X).ravel()
        at = np.repeat(self.root, n)  # tree by tree, so that the nodes of one tree are read together
        going = np.flatnonzero(self.child[at] >= 0)
        node, start = at[going], going % max(n, 1) * d
        lacking = bool(np.isnan(entries).any())
        while len(going):
            x = entries[start + self.column[node]]
            branch = (x > self.threshold[node]).astype(np.int64)
            if len(self.tables):
                by_table = (self.table[node] >= 0) & ~np.isnan(x)
                branch[by_table] = self._branches(node[by_table], x[by_table])
            if lacking:
                gap = np.isnan(x)
                branch[gap] = self._gap_branches(node[gap])
            node = self.child[node] + branch
            at[going] = node
            inner = np.flatnonzero(self.child[node] >= 0)
            going, node, start = going[inner], node[inner], start[inner]
        return at.reshape(len(self.root), n).T

    def _gap_branches(self, node: np.ndarray) -> np.ndarray:
        branch = self.missing[node]
        if np.any(branch < 0):
            raise Refused("a row lacks a value, and no single child takes such rows")
        return branch

    def _branches(self, node: np.ndarray, x: np.ndarray) -> np.ndarray:
        codes = x.astype(np.int64)
        if np.any((codes != x) | (x < 0) | (x >= self.tables.shape[1])):
            raise Refused("a nominal column holds a value that is no code of the model")
        branch = self.tables[self.table[node], codes]
        if np.any(branch < 0):
            raise Refused("a nominal column holds a level that was not seen in training")
        return branch

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at = self.ends(X)
        total = np.concatenate([self._sum(at[i : i + _CHUNK]) for i in range(0, len(X), _CHUNK)])
        return total, np.full(total.shape[1], self._error())

    def _sum(self, at: np.ndarray) -> np.ndarray:
        """Return the scores of rows that end in these leaves, (rows, trees)."""
        K = len(self.classes or (0,))
        if self.kind == "classifier":
            votes = np.zeros((len(at), K))
            votes[np.arange(len(at)), self.value[at[:, 0]].argmax(axis=1)] = 1.0
            return votes
        if self.kind == "weighted-vote":
            votes = self.value.argmax(axis=1)[at]
            return np.stack([(votes == k) @ self.extra for k in range(K)], axis=1)
        if self.kind == "median":
            return self._medians(self.value[:, 0][at])
        if self.kind.startswith("sum"):
            outputs = len(self.extra)
            leaf = self.value[:, 0][at]
            return np.stack([leaf[:, k::outputs].sum(axis=1) + self.extra[k] for k in range(outputs)], axis=1)
        return sum(self.value[at[:, t]] for t in range(at.shape[1])) / len(self.root)

    def _medians(self, predicted: np.ndarray) -> np.ndarray:
        """Return, for each row, the smallest value at or below which lies half of the weight, (rows, 1)."""
        units = np.rint(self.extra / self.extra.max() * 2.0**30).astype(np.int64)
        result = np.empty((len(predicted), 1))
        for i, values in enumerate(predicted):
            order = np.argsort(values, kind="stable")
            result[i] = values[order[np.searchsorted(2 * np.cumsum(units[order]), units.sum())]]
        return result

    def _error(self) -> float:
        if self.kind in ("classifier", "regressor", "median"):
            return 0.0
        largest = float(np.abs(self.value).max())
        if self.kind == "weighted-vote":
            size = float(np.abs(self.extra).sum())
        elif self.kind.startswith("sum"):
            size = largest * len(self.root) + float(np.abs(self.extra).max())
        else:
            size = largest
        return gamma(2 * len(self.root) + 8) * size

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return np.full((len(X), 1), self._error())

    def own_growth(self, descriptor: Any, points: int) -> Decimal | None:
        return ln_tree_growth(descriptor, points, self) if descriptor.get("class") in KINDS else None

    def price(self, descriptor: Any) -> int:
        return price(descriptor)


@dataclass(frozen=True)
class Committees(Trees):
    """One vote of each committee of trees: the class whose values, summed over its trees, are largest, the first of
    equals; between tied committees `predict` asks the mean shares, so that such a row is open."""

    @property
    def members(self) -> int:
        return int(self.extra.max()) + 1

    def votes(self, at: np.ndarray) -> np.ndarray:
        """Return (rows, members, classes): 1 for the class that a committee votes for, from leaves (rows, trees); a
        committee whose sums are within rounding of each other votes for nobody."""
        rows = np.arange(len(at))
        result = np.zeros((len(at), self.members, len(self.classes or ())))
        for g in range(self.members):
            trees = np.flatnonzero(self.extra == g)
            value = self.value[at[:, trees]]
            total = value.sum(axis=1)
            first = total.argmax(axis=1)
            rest = total.copy()
            rest[rows, first] = -np.inf
            lead = total[rows, first] - rest.max(axis=1)
            slack = 2 * gamma(2 * len(trees) + 8) * np.abs(value).sum(axis=1).max(axis=1)
            whole = np.all(value == np.round(value), axis=(1, 2))  # sums of integers are exact
            sure = (lead > slack) | whole
            result[rows[sure], g, first[sure]] = 1
        return result

    def member_losses(self, X: np.ndarray, codes: np.ndarray) -> np.ndarray:
        at = self.ends(X)
        votes = np.concatenate([self.votes(at[i : i + _CHUNK]) for i in range(0, len(X), _CHUNK)])
        right = votes[np.arange(len(X)), :, np.maximum(codes, 0)]
        return np.where(codes[:, None] < 0, 1.0, 1.0 - right)

    def _sum(self, at: np.ndarray) -> np.ndarray:
        return self.votes(at).sum(axis=1)

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        votes, _ = super().scores(X, largest)
        unsure = self.members - votes.sum(axis=1)[:, None]
        return votes, np.repeat(unsure / 2, votes.shape[1], axis=1)  # a lead moves by one vote, not by two

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self.scores(X, np.zeros(0))[1]


@dataclass(frozen=True)
class Exponentials(Trees):
    """The prediction is the exponential of a sum of trees, of which the checker has no scores."""

    scores = Predictor.scores
    row_errors = Predictor.row_errors


def read_trees(kind: str, *stored: Any) -> Trees:
    """Return the predictor after checking that the arrays are trees: finite, acyclic, in range.

    They come in the order of `NODES`, then base scores, weights or committees if the kind has them, then the classes.
    """
    *parts, classes = stored
    extra = parts.pop().astype(np.float64) if len(parts) > len(NODES) else np.zeros(0)
    columns, root, column, threshold, table, child, value, tables, *rest = parts
    if columns.shape != () or columns < 1:
        raise Rejected("n_features_in_ must be a number of columns")
    d, n = int(columns), len(child)
    if (
        not n
        or any(part.shape != (n,) for part in (column, table, child, threshold))
        or value.ndim != 2
        or len(value) != n
    ):
        raise Rejected("the arrays of the trees have different lengths")
    if root.ndim != 1 or not root.size or root.min() < 0 or root.max() >= n or tables.ndim != 2:
        raise Rejected("the roots of the trees are out of range")
    inner = np.flatnonzero(child >= 0)
    by_table = inner[table[inner] >= 0]
    if np.any((table < -1) | (table >= len(tables))):
        raise Rejected("a node names a branch table that does not exist")
    if np.any(tables < -1):
        raise Rejected("a branch table has negative branches")
    last = child[inner] + 1
    if by_table.size:
        last[table[inner] >= 0] = child[by_table] + tables[table[by_table]].max(axis=1)
    beyond = np.any((column < -1) | (column >= d)) or np.any(column[inner] < 0)
    if beyond or np.any(child < -1) or np.any(child[inner] <= inner) or np.any(last >= n):
        raise Rejected(
            "the nodes do not describe trees: a child does not follow its parent, or a column does not exist"
        )
    begun, ended = np.bincount(child[inner], minlength=n), np.bincount(last + 1, minlength=n)
    parents = np.cumsum(begun - ended[:n])
    if np.any(parents > 1):  # a walk down such a graph may take for ever
        raise Rejected("the nodes do not describe trees: two nodes have a child in common")
    tree = np.cumsum(parents == 0)  # roots stand in order, each before the nodes of its tree
    if not np.array_equal(np.flatnonzero(parents == 0), root) or np.any(tree[last] != tree[inner]):
        raise Rejected("the nodes do not describe trees: a node belongs to no tree, or to two")
    _check_outputs(kind, value, extra, root, classes)
    _check_rest(*rest, n=n, d=d, most=np.where(table < 0, 2, 0) if not len(tables) else _branches(table, tables))
    form = {"committee": Committees, "sum-exponential": Exponentials}.get(kind, Trees)
    return form(kind, d, root, column, threshold, table, child, value, tables, rest[0], extra, classes)


def _branches(table: np.ndarray, tables: np.ndarray) -> np.ndarray:
    """Return how many children each node has, if it has any."""
    return np.where(table < 0, 2, tables.max(axis=1)[table] + 1)


def _check_rest(
    missing: np.ndarray, weight: np.ndarray, impurity: np.ndarray, types: np.ndarray, *, n: int, d: int, most: Any
) -> None:
    """Check what the scores of complete rows do not need: where rows without a value go, and the types of columns."""
    if any(part.shape != (n,) for part in (missing, weight, impurity)) or np.any(weight < 0):
        raise Rejected("the arrays of the trees have different lengths, or a node a negative weight")
    if np.any(missing < -1) or np.any(missing >= np.maximum(most, 1)):
        raise Rejected("rows without a value go to a child that does not exist")
    if types.shape not in ((0,), (d,)):
        raise Rejected(f"column_types_ has shape {types.shape}; it must be empty or name {d} types")


def _check_outputs(kind: str, value: np.ndarray, extra: np.ndarray, root: np.ndarray, classes: tuple | None) -> None:
    K = len(classes) if classes else 1
    outputs = value.shape[1]
    if kind.startswith("sum"):
        sound = outputs == 1 and extra.ndim == 1 and len(extra) == (K if K > 2 else 1) and len(root) % len(extra) == 0
    elif kind == "median":
        sound = outputs == 1 and extra.shape == root.shape and bool(np.all(extra > 0)) and len(extra) < 2**20
    elif kind == "weighted-vote":
        sound = outputs == K and extra.shape == root.shape
    elif kind == "committee":
        listed = set(extra.ravel().tolist())
        sound = outputs == K and extra.shape == root.shape and listed == set(range(len(listed)))
        sound = sound and bool(np.all((value >= 0) & (value <= 1)))  # shares: ties between votes weigh less than a vote
    else:
        sound = outputs == K and (len(root) == 1 or kind in ("vote", "mean"))
    if not sound:
        raise Rejected(f"leaf values of shape {value.shape} do not go with trees of the kind {kind} and {K} classes")


class TreeSize(Rule):
    """tree.facts: number of leaves and depth of a single tree."""

    def prepare(self) -> None:
        model = self.model
        if not isinstance(model, Trees) or len(model.root) != 1:
            raise Rejected("it is about a single tree")
        self.leaves, self.depth = _size(model)
        for name, measured in (("leaves", self.leaves), ("depth", self.depth)):
            if self.count(name) != measured:
                raise Rejected(f"{name} is {self.params[name]}, recounted {measured}")

    def measure(self) -> float:
        return float(self.leaves)


def _size(model: Trees) -> tuple[int, int]:
    """Return leaves and depth of the tree, counting only what a row can reach from the root."""
    leaves = depth = 0
    level = [int(model.root[0])]
    while level:
        below: list[int] = []
        for at in level:
            if model.child[at] < 0:
                leaves += 1
            else:
                branches = 2 if model.table[at] < 0 else int(model.tables[model.table[at]].max()) + 1
                below += range(int(model.child[at]), int(model.child[at]) + branches)
        level = below
        depth += bool(level)
    return leaves, depth


class BoostingProduct(Rule):
    """adaboost.product: the training error is at most the mean of exp(-y f), the product of the normalisers."""

    def prepare(self) -> None:
        model: Any = self.model
        if not isinstance(model, Trees) or model.kind != "weighted-vote" or len(model.classes or ()) != 2:
            raise Rejected("it is about a vote of two classes")
        if self.count("rounds") != len(model.root):
            raise Rejected(f"rounds is {self.params['rounds']}, the model has {len(model.root)}")
        self.sums = Sums(1)

    def block(self, view: View) -> None:
        scores, errors = view.scores
        margin, error = margins(view.model, scores, errors, view.codes)
        with np.errstate(over="ignore"):
            loss = above(np.exp(np.minimum(-margin + error, 340.0)), 8)
        self.sums.add(np.where(np.isfinite(loss), loss, LARGEST)[:, None])

    def measure(self) -> float:
        return float(above((self.sums.value[0] + self.sums.error[0]) / self.rows))


class Occam(CountedRisk):
    """occam: the Clopper-Pearson limit of the training errors at delta times the prior of the tree."""

    def prepare(self) -> None:
        super().prepare()
        self.choice("code", ["tree/1"])
        self.prior = tree_prior(self.model)

    def measure(self) -> float:
        return self.limit(self.recount(), self.delta * self.prior)


def tree_prior(model: Any) -> Fraction:
    """Return 2^-bits: nodes level by level, 1/2 for leaf or split, 1/K for a label, 1/d for a column, thresholds."""
    if not isinstance(model, Trees) or model.kind != "classifier":
        raise Rejected("the code is for a single tree")
    last: dict[int, int] = {}
    bits = splits = leaves = 0
    level = [int(model.root[0])]
    while level:
        below: list[int] = []
        for at in level:
            bits += 1
            if model.child[at] < 0:
                leaves += 1
                continue
            if model.table[at] >= 0:
                raise Rejected("the code has no words for splits of nominal columns")
            splits += 1
            j, value = int(model.column[at]), float(model.threshold[at])
            word, last[j] = threshold_word(value, last.get(j, 0))
            bits += word
            below += (int(model.child[at]), int(model.child[at]) + 1)
        level = below
    return Fraction(1, 2**bits * model.columns**splits * len(model.classes or ()) ** leaves)


def threshold_word(value: float, last: int) -> tuple[int, int]:
    """Return the length of the code of a threshold, and the exponent that the next one is relative to."""
    if value == 0:
        return 1, last
    numerator = Fraction(abs(value)).numerator
    exponent = math.frexp(value)[1] - 1
    while numerator % 2 == 0:
        numerator //= 2
    size, shift = numerator.bit_length(), exponent - last
    place = 2 * shift if shift > 0 else 1 - 2 * shift
    return 2 + (2 * place.bit_length() - 1) + (2 * size.bit_length() - 1) + max(0, size - 2), exponent
