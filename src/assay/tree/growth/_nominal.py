"""Growth of trees with nominal columns, missing values and the criteria of ID3 and C4.5.

    gain(D, a)  = rho * (imp(D~) - sum_v r_v imp(D~_v)),     D~ the rows whose value of a is known,
    rho         = weight of D~ / weight of D,                r_v share of D~ that takes branch v
    ratio(D, a) = gain / IV,  IV = -sum_v r_v log2 r_v,      among columns with at least the average gain
    (C4.5)

A nominal column has a branch for each level, or two: then the best subset of levels is found, exactly for two
classes and for numbers (levels ordered by their mean, Breiman et al. 1984, 9.4), by trying all subsets of up to ten
levels otherwise, one level against the rest beyond that. A row without the value goes to all branches with weight w
r_v, or to the branch that is best. Nodes of forests look at some columns only, drawn anew for each; extremely
randomised ones judge one threshold, or one subset of levels, drawn from each. The loops are in `_nominal_splits`
and `_nominal_loops`.
"""

from typing import Any, NamedTuple

import numpy as np

from assay.tree._nodes import Nodes
from assay.tree.growth._records import Limits

_KINDS = ("squared_error", "gini", "entropy")  # by their numbers in `_nominal_splits`


class Method(NamedTuple):
    """How splits are judged."""

    criterion: str
    split: str  # "multiway" or "binary"
    missing: str  # "fractional" or "direction"
    levels: dict[int, int]  # levels of each nominal column
    n_classes: int  # 0 for numbers
    limits: Limits

    @property
    def kind(self) -> str:
        """The impurity by which splits are judged."""
        return "squared_error" if not self.n_classes else "gini" if self.criterion == "gini" else "entropy"

    @property
    def width(self) -> int:
        """The number of statistics of a node: its weight, and the weights of its classes, or sum and squares."""
        return 1 + (self.n_classes or 2)

    def rules(self, n_columns: int) -> Any:
        """Return the method as compiled code reads it, for a table of that many columns."""
        from assay.tree.growth._nominal_splits import Rules

        own = self.limits
        least, split_least = own.min_samples_leaf - 1e-9, own.min_samples_split - 1e-9
        flags = self.criterion == "gain_ratio", self.split == "multiway", self.missing == "direction", own.random
        most, deepest = min(own.max_features, n_columns), min(int(own.max_depth), 2**31)
        return Rules(_KINDS.index(self.kind), *flags, most, least, split_least, deepest, float(own.min_decrease))


class Split(NamedTuple):
    """The best split of a column: gain, gain ratio, threshold (None of a nominal column), share of the first branch."""

    gain: float
    ratio: float
    threshold: float | None
    share: float


def impurity(totals: np.ndarray, criterion: str) -> np.ndarray:
    """Return the impurity of class weights (..., classes), or of (weight, sum, sum of squares) for numbers.

    Entropy in bits, -sum p log2 p with 0 log 0 = 0; Gini 1 - sum p^2; variance for numbers.

    Parameters
    ----------
    totals : ndarray
        Class weights, or (weight, sum, sum of squares) of numbers.
    criterion : str
        "squared_error": variance; "gini"; otherwise entropy.

    Returns
    -------
    ndarray
        The impurity.

    Examples
    --------
    >>> float(impurity(np.array([5.0, 5.0]), "entropy")), float(impurity(np.array([5.0, 5.0]), "gini"))
    (1.0, 0.5)
    """
    totals = np.asarray(totals, dtype=np.float64)
    if criterion == "squared_error":
        weight = np.maximum(totals[..., 0], 1e-300)
        return np.maximum(totals[..., 2] / weight - (totals[..., 1] / weight) ** 2, 0.0)
    p = totals / np.maximum(totals.sum(axis=-1, keepdims=True), 1e-300)
    if criterion == "gini":
        return 1.0 - (p * p).sum(axis=-1)
    return -(p * np.log2(np.where(p > 0, p, 1.0))).sum(axis=-1)


def code_table(X: np.ndarray, levels: dict[int, int]) -> Any:
    """Return the codes of a table whose nominal columns hold codes already, NaN for missing values."""
    from assay.tree.growth._nominal_splits import Coded

    n, d = X.shape
    codes, n_codes, values = np.empty((d, n), dtype=np.int32), np.zeros(d, dtype=np.int64), []
    for f in range(d):
        x = X[:, f]
        known = np.flatnonzero(~np.isnan(x))
        codes[f], n_codes[f] = -1, levels.get(f, 0)
        if f in levels:
            codes[f, known] = x[known]
        elif len(known):
            result, codes[f, known] = np.unique(x[known], return_inverse=True)
            n_codes[f] = len(result)
            values.append(result)
    nominal = np.array([f in levels for f in range(d)])
    starts, places = (np.append(0, np.cumsum(np.where(there, n_codes, 0))) for there in (~nominal, nominal))
    about = np.stack([np.append(n_codes, 0), np.append(nominal, False), starts, places]).astype(np.int64)
    return Coded(codes, about, np.concatenate([np.empty(0), *values]))


def grow_nominal(coded: Any, y: np.ndarray, weight: np.ndarray, method: Method, seed: int = 0) -> Nodes:
    """Return a tree on a table that `code_table` has read; the seed is for columns and splits that are drawn."""
    from assay.tree.growth._nominal_loops import grow

    target = np.ascontiguousarray(y, dtype=np.float64)
    rules = method.rules(len(coded.codes))
    *made, end, written = grow(coded, target, _own(weight), rules, method.width, np.uint64(seed))
    grown, sums, branches = made[0][:end], made[1][:end].copy(), made[2][:written]
    inner, named = grown["child"] >= 0, grown["table"] >= 0
    sizes = coded.about[0, grown["column"][named]]
    tables = np.full((len(sizes), sizes.max(initial=0)), -1, dtype=np.int32)
    tables[np.arange(tables.shape[1]) < sizes[:, None]] = branches
    totals = sums[:, 1:] if method.n_classes else sums
    value = totals / totals.sum(axis=1, keepdims=True) if method.n_classes else sums[:, 1:2] / sums[:, :1]
    parts = {name: grown[name].copy() for name in ("column", "threshold", "table", "child", "n_children", "weight")}
    return Nodes(
        root=np.zeros(1, dtype=np.int32), value=value, impurity=impurity(totals, method.kind), tables=tables,
        missing=np.where(inner, grown["missing"], -1).astype(np.int32), **parts,
    )  # fmt: skip


def column_splits(X: np.ndarray, y: np.ndarray, weight: np.ndarray, method: Method) -> list[Split | None]:
    """Return the best split of all rows by each column, None for a column that has none."""
    from assay.tree.growth import _nominal_splits as loops

    coded = code_table(X, method.levels)
    workspace = loops.new_workspace(coded, method.width, np.uint64(0))
    target, rules = np.ascontiguousarray(y, dtype=np.float64), method.rules(X.shape[1])
    loops.search(coded, _own(weight), target, rules, float(weight.sum()), workspace)
    return [
        None if gain == -np.inf else Split(gain, ratio, None if f in method.levels else threshold, share)
        for f, (gain, ratio, threshold, share, *_) in enumerate(workspace.found.tolist())
    ]


def _own(weight: np.ndarray) -> np.ndarray:
    """Return the rows that count, and their weights, as compiled code reads them."""
    from assay.tree.growth._nominal_splits import OWN

    rows = np.flatnonzero(weight > 0)
    own = np.empty(len(rows), dtype=OWN)
    own["row"], own["weight"] = rows, weight[rows]
    return own


def branches(x: np.ndarray, threshold: float, table: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the branch of each value, and whether it is known."""
    known = ~np.isnan(x)
    if table is None:
        return (x > threshold).astype(np.int64), known
    inside = known & (x >= 0) & (x < len(table))
    code = np.where(inside, x, 0).astype(np.int64)
    branch = np.where(inside, table[code], -1)
    return branch, known & (branch >= 0)
