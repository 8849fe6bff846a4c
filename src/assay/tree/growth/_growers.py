"""Which grower serves which request: one table, read from the top, for single trees and for the trees of forests.

A grower prepares the columns once (codes, or sorted values) and returns a function that grows one tree of them; a
forest calls it once for each of its samples.
"""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from assay.params import refuse
from assay.scan import thread_map
from assay.tree._nodes import Nodes, nodes_of
from assay.tree._reading import Read
from assay.tree.growth._exact import WIDE, Columns, encode, grow_exact, grow_general
from assay.tree.growth._nominal import Method, code_table, grow_nominal
from assay.tree.growth._records import Limits, target_of
from assay.tree.growth._sorted import as_entries, counted_instead, grow_sorted, is_whole, sort_columns, sorts

GrowTree = Callable[[np.ndarray | None, Any], Nodes]  # weights (None: all 1) and random state of a tree


# What is asked
# ----------------------------------------------------------------------------------------------------------------------


def feature_count(owner: Any, d: int) -> int:
    """Return how many columns `max_features` asks for: a number, a share, "sqrt", "log2" (floor, at least 1)
    or None (all)."""
    asked = owner.max_features
    if asked is None:
        return d
    if asked == "sqrt":
        return max(1, int(np.sqrt(d)))
    if asked == "log2":
        return max(1, int(np.log2(d)))
    if isinstance(asked, float) and 0 < asked <= 1:
        return max(1, int(asked * d))
    if isinstance(asked, (int, np.integer)) and not isinstance(asked, bool) and asked >= 1:
        return min(int(asked), d)
    raise refuse(
        owner,
        f'max_features must be None, "sqrt", "log2", a share in (0, 1] or a count; got {asked!r}.',
    )


def row_count(owner: Any, name: str, n: int, low: int) -> int:
    """Return a number of rows given as such or, as a float in (0, 1], as a share of n."""
    value = getattr(owner, name)
    if isinstance(value, (float, np.floating)) and 0 < value <= 1:
        return max(low, int(np.ceil(value * n)))
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= low:
        return min(int(value), n + 1)  # a larger number says no more
    raise refuse(
        owner,
        f"the '{name}' parameter must be an int in the range [{low}, inf) or a float in the range (0.0, 1.0]; "
        f"got {value!r}.",
    )


def limits_of(owner: Any, data: Read, random: bool) -> Limits:
    """Return the limits that the parameters of a tree or a forest set; `random`: nodes draw their thresholds."""
    n, d = data.rows.n_rows, data.rows.n_features
    total = float(n if data.weight is None else data.weight.sum())
    most = max(2, n)  # leaves of a tree; a larger number says no more
    return Limits(
        row_count(owner, "min_samples_leaf", n, 1),
        owner.min_weight_fraction_leaf * total,
        row_count(owner, "min_samples_split", n, 2),
        2**31 if owner.max_depth is None else min(int(owner.max_depth), 2**31),
        min(int(owner.max_leaf_nodes or 0), most),
        owner.min_impurity_decrease * total,
        feature_count(owner, d),
        random,
    )


def monotone_signs(owner: Any, d: int) -> np.ndarray | None:
    """Return `monotonic_cst` as (d,) integers, None if it constrains nothing."""
    asked = owner.monotonic_cst
    if asked is None:
        return None
    signs = np.asarray(asked)
    wanted = f"it must hold -1, 0 or 1 for each of the {d} columns."
    if signs.shape != (d,):
        shape = signs.shape[0] if signs.ndim == 1 else signs.shape
        raise refuse(owner, f"monotonic_cst has shape {shape} but the input data X has {d} features; {wanted}")
    if not np.isin(signs, (-1, 0, 1)).all():
        got = np.unique(signs)
        raise refuse(owner, f"monotonic_cst must be None or an array-like of -1, 0 or 1, but got {got}: {wanted}")
    return signs.astype(np.int64) if signs.any() else None


def column_order(random_state: Any, d: int) -> np.ndarray:
    """Return the order of columns in which equally good splits are taken, by scikit-learn's generator and seed: at the
    root, the tree that scikit-learn grows with the same `random_state`.

    >>> column_order(0, 5).tolist()
    [2, 4, 0, 1, 3]
    """
    state = int(check_random_state(random_state).randint(0, 2**31 - 1)) or 1
    left, order = np.arange(d), np.empty(d, dtype=np.int64)
    for end in range(d, 0, -1):
        for shift in (13, -17, 5):
            state ^= state << shift if shift > 0 else state >> -shift
            state &= 2**32 - 1
        at = state % 2**31 % end
        order[d - end] = left[at]
        left[at] = left[end - 1]
    return order


class Request(NamedTuple):
    """What is asked of a tree.

    n_classes : (outputs,) classes of each output; empty for numbers
    levels : number of levels of each nominal column
    monotone : (columns,) 1, -1 or 0 where the value (the share of class 1 of 2) must rise, fall or neither; or None
    bins : None if every threshold is tried, else the number of bins into which columns are cut
    ties : random state that orders the columns, since the first of equal splits is taken; None as they stand
    whole_times : whether rows of classes count a whole number of times, below 2^16
    in_parts : whether the subtrees of a large tree are grown on threads
    why : what needs a dense copy of sparse rows, for a refusal
    """

    data: Read
    n_classes: np.ndarray
    criterion: str
    limits: Limits
    levels: dict[int, int]
    gaps: bool
    monotone: np.ndarray | None
    n_jobs: int | None
    why: str
    split: str = "binary"
    missing: str = "direction"
    bins: int | None = None
    whole_times: bool = False
    ties: Any = None
    in_parts: bool = False

    @property
    def outputs(self) -> int:
        return 1 if self.data.y.ndim == 1 else self.data.y.shape[1]

    @property
    def complete(self) -> bool:
        """Whether every value is known and tried as it is, on columns that no order of values constrains."""
        return not self.gaps and self.monotone is None and self.bins is None

    @property
    def draws_columns(self) -> bool:
        return self.limits.max_features < self.data.rows.n_features or self.limits.random

    def seed(self, random_state: Any) -> int:
        """Return the state from which a tree draws columns and thresholds."""
        return int(tree_seed(random_state)) if self.draws_columns else 0

    def order(self) -> np.ndarray | None:
        """Return the order (columns,) in which columns are tried; None as they stand, or as nodes draw them."""
        return None if self.ties is None or self.draws_columns else column_order(self.ties, self.data.rows.n_features)


def tree_seed(random_state: Any) -> np.uint64:
    """Return the state from which a single tree with this `random_state` draws: a member of a forest is that tree."""
    return np.uint64(check_random_state(random_state).randint(2**31 - 1))


# The growers
# ----------------------------------------------------------------------------------------------------------------------


def _nominal(request: Request) -> GrowTree:
    data = request.data
    asked = request.criterion, request.split, request.missing, request.levels
    method = Method(*asked, int(request.n_classes.sum()), request.limits)
    coded = code_table(data.dense(request.why), request.levels)

    def tree(weight: np.ndarray | None, random_state: Any) -> Nodes:
        every = np.ones(len(data.y)) if weight is None else weight
        return grow_nominal(coded, data.y, every, method, request.seed(random_state))

    return tree


def _absolute(request: Request) -> GrowTree:
    from assay.tree.growth._absolute import grow_absolute

    X, y, limits = request.data.dense(request.why), request.data.y, request.limits
    n_jobs = request.n_jobs if request.in_parts else 1

    def tree(weight: np.ndarray | None, random_state: Any) -> Nodes:
        rng = check_random_state(random_state)
        return grow_absolute(X, y, weight, limits, rng, n_jobs, request.monotone)

    return tree


def _extra(request: Request) -> GrowTree:
    data, criterion = request.data, request.criterion
    X = np.ascontiguousarray(data.dense(request.why), dtype=np.float64)
    limits, classes = request.limits.record(X.shape[1]), int(request.n_classes[0]) if len(request.n_classes) else 0

    def tree(weight: np.ndarray | None, random_state: Any) -> Nodes:
        from assay.tree.growth._extra_loops import grow_extra

        target = target_of(data.y, weight, request.n_classes, criterion)
        rows = np.flatnonzero(target.weight > 0).astype(np.uint64)
        grown, sums = grow_extra(X, target, rows, limits, np.uint64(request.seed(random_state)))
        return nodes_of(grown, sums, criterion, classes=classes)

    return tree


def _sorted(request: Request) -> GrowTree:
    data, n_classes, criterion, limits = request.data, request.n_classes, request.criterion, request.limits
    order = request.order()
    columns = sort_columns(data, request.n_jobs, order)
    codes = counted_instead(columns, len(data.y), request.outputs, int(n_classes.sum()))
    if codes is not None:
        return _on_codes(request, codes, order)
    entries = as_entries(columns, len(n_classes) > 0 and is_whole(data.weight))

    def tree(weight: np.ndarray | None, random_state: Any) -> Nodes:
        seed = request.seed(random_state)
        nodes = grow_sorted(
            entries, data.y, weight, n_classes, criterion, limits, seed, request.in_parts, request.n_jobs
        )
        return _renamed(nodes, order)

    return tree


def _general(request: Request) -> GrowTree:
    order = request.order()
    coded = encode(request.data.dense(request.why), request.n_jobs, order=order)
    y, monotone = request.data.y, _ordered(request.monotone, order)

    def tree(weight: np.ndarray | None, random_state: Any) -> Nodes:
        asked = request.n_classes, request.criterion, request.limits, request.seed(random_state), monotone
        return _renamed(grow_general(coded, y, weight, _rows_that_count(y, weight), *asked), order)

    return tree


def _exact(request: Request) -> GrowTree:
    order = request.order()
    return _on_codes(request, encode(request.data.dense(request.why), request.n_jobs, request.bins, order), order)


def _on_codes(request: Request, codes: Columns, order: np.ndarray | None) -> GrowTree:
    y, monotone = request.data.y, _ordered(request.monotone, order)
    n_jobs = request.n_jobs if request.in_parts else 1

    def tree(weight: np.ndarray | None, random_state: Any) -> Nodes:
        seed, rows = request.seed(random_state), _rows_that_count(y, weight)
        asked = request.n_classes, request.criterion, request.limits, seed, n_jobs, request.bins is None, monotone
        return _renamed(grow_exact(codes, y, weight, rows, *asked), order)

    return tree


def _rows_that_count(y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    return np.arange(len(y)) if weight is None else np.flatnonzero(weight > 0)


def _ordered(signs: np.ndarray | None, order: np.ndarray | None) -> np.ndarray | None:
    return signs if signs is None or order is None else signs[order]


def _renamed(nodes: Nodes, order: np.ndarray | None) -> Nodes:
    """Return a tree grown on columns in this order with the numbers that they have in the table."""
    if order is None:
        return nodes
    return nodes._replace(column=np.where(nodes.column < 0, -1, order[nodes.column]).astype(np.int32))


# The table
# ----------------------------------------------------------------------------------------------------------------------


class Grower(NamedTuple):
    """A row of the table: the requests that it serves, unless a row above does. `prepare` is None where a forest grows
    all its trees together (`_forest_hist`)."""

    name: str
    serves: Callable[[Request], bool]
    prepare: Callable[[Request], GrowTree] | None


def reads_levels(request: Request) -> bool:
    """Tell whether a tree needs levels, gain ratios, or C4.5's shares of rows without a value."""
    shares = request.gaps and request.missing == "fractional"
    return bool(request.levels) or request.criterion == "gain_ratio" or shares


def _reads_medians(request: Request) -> bool:
    return request.criterion == "absolute_error" and not request.gaps and request.outputs == 1


def _draws_thresholds(request: Request) -> bool:
    known = request.criterion != "absolute_error" and (request.outputs == 1 or request.criterion != "friedman_mse")
    return request.complete and request.limits.random and known  # Friedman's joins several outputs otherwise


def _sorts_once(request: Request) -> bool:
    return request.complete and sorts(request.data, request.limits, request.criterion)


def _is_general(request: Request) -> bool:
    wide = request.bins is None and len(request.data.y) * int(request.n_classes.sum()) > WIDE
    return request.gaps or request.outputs > 1 or wide


def _counts_bins(request: Request) -> bool:
    if request.bins is None or request.bins > 255 or request.limits.random or request.monotone is not None:
        return False
    return request.whole_times if len(request.n_classes) else request.criterion == "squared_error"


GROWERS = (
    Grower("nominal", reads_levels, _nominal),  # subsets of levels, thresholds; one level of nodes after the other
    Grower("absolute", _reads_medians, _absolute),  # every threshold, with exact medians
    Grower("extra", _draws_thresholds, _extra),  # a drawn threshold of each column
    Grower("sorted", _sorts_once, _sorted),  # every threshold of columns sorted once, dense or sparse
    Grower("general", _is_general, _general),  # every threshold, rows without a value on either side; several outputs
    Grower("histogram", _counts_bins, None),  # thresholds between bins of one byte, by counts or sums per bin
    Grower("exact", lambda request: True, _exact),  # every threshold between values, or bins
)


def grower_of(request: Request) -> Grower:
    """Return the first row of the table that serves a request."""
    return next(grower for grower in GROWERS if grower.serves(request))


# Trees of a forest
# ----------------------------------------------------------------------------------------------------------------------


def grown_trees(tree: Callable[[int], Any], seeds: Sequence[int], n_jobs: int | None) -> list[Any]:
    """Return a tree for each seed, on threads; after an interrupt the first of them, without a gap, if there is one."""
    made: list[Any] = [None] * len(seeds)

    def work(t: int) -> None:
        made[t] = tree(seeds[t])

    try:
        thread_map(work, range(len(seeds)), n_jobs=n_jobs)
    except KeyboardInterrupt:
        done = next(t for t, grown in enumerate([*made, None]) if grown is None)
        if not done:
            raise
        return made[:done]
    return made
