"""Growth functions of trees and of votes of trees, and whether a model belongs to such a class."""

from collections.abc import Mapping
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from assay.checker.bounds.tails import ln, ln_binomial, ln_patterns
from assay.checker.record import Rejected, count

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
