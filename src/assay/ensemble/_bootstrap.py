"""Bootstrap samples, class weights within them, and out-of-bag rows: error curves, pruning of trees, early stopping.

Samples are drawn by a generator that a certificate can name and repeat, SplitMix64 (Steele, Lea and Flood 2014): from
the state mix(seed), draw number i is mix(state + i gamma) modulo 2^64. With replacement, draw i selects the row
floor(high 32 bits * n / 2^32); without, the rows with the smallest draws are selected. The certificate's checker has an
independent implementation, written from SPEC.md.
"""

import warnings
from copy import deepcopy
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight
from sklearn.utils.multiclass import type_of_target

from assay.params import refuse
from assay.tree import _pruning as pruning
from assay.tree._nodes import Nodes
from assay.tree._predict import most_frequent, split_outputs, visits

_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def bag(seed: int, n: int, size: int, replace: bool = True) -> np.ndarray:
    """Return `size` row numbers out of 0 .. n - 1; without replacement they are distinct and ascending."""
    if replace:
        return ((_draws(seed, size) >> np.uint64(32)) * np.uint64(n) >> np.uint64(32)).astype(np.int64)
    return np.sort(np.argsort(_draws(seed, n), kind="stable")[:size])


def _draws(seed: int, count: int) -> np.ndarray:
    start = _mix(np.array([seed], dtype=np.uint64))
    return _mix(start + np.arange(1, count + 1, dtype=np.uint64) * _GAMMA)


def _mix(z: np.ndarray) -> np.ndarray:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class Draw:
    """How the rows of a member are drawn from n: so many, with or without replacement, by weights if there are some.

    With weights, draw i picks the first row whose summed weights, as a share of all, exceed the high 53 bits of the
    draw as a fraction.
    """

    def __init__(self, n: int, size: int, replace: bool = True, weight: np.ndarray | None = None) -> None:
        self.n, self.size, self.replace = n, size, replace
        self.weight: Any = weight
        if weight is not None:
            self._below = np.cumsum(weight) / weight.sum()

    def rows(self, seed: int) -> np.ndarray:
        """Return the row numbers that a seed draws."""
        if self.weight is None:
            return bag(seed, self.n, self.size, self.replace)
        if not self.replace:
            return self._without(seed)
        place = (_draws(seed, self.size) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return np.minimum(np.searchsorted(self._below, place, side="right"), self._last)

    @property
    def _last(self) -> int:
        return int(np.flatnonzero(self.weight)[-1])

    def _without(self, seed: int) -> np.ndarray:
        """Return distinct rows, drawn one after the other by the weights of those that are left: the rows with the
        smallest -ln(u) / weight."""
        fraction = ((_draws(seed, self.n) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        with np.errstate(divide="ignore"):
            times = np.where(self.weight > 0, -np.log(fraction) / np.where(self.weight > 0, self.weight, 1.0), np.inf)
        return np.sort(np.argsort(times, kind="stable")[: self.size])

    def times(self, seed: int) -> np.ndarray:
        """Return how often each row is drawn."""
        return np.bincount(self.rows(seed), minlength=self.n)


def require_one_sample(model: Any, n: int | None = None) -> None:
    """Refuse to speak of the rows that members did not see, if a warm start fitted them to different tables, or is
    about to fit more of them to n rows."""
    numbers = sorted({draw.n for draw in model.draws_} | ({n} if n else set()), reverse=True)
    if len(numbers) > 1:
        raise refuse(
            model, f"some members were fitted to {numbers[0]} rows, others to {numbers[1]}: they share no rows unseen."
        )


def check_kept(owner: Any, kept: int) -> int:
    """Return how many members a warm start keeps, if it may keep so many."""
    if kept > owner.n_estimators:
        raise refuse(
            owner,
            f"n_estimators={owner.n_estimators} must be larger or equal to len(estimators_)={kept} when "
            "warm_start==True.",
        )
    return kept


def sample_size(owner: Any, n: int, weight: np.ndarray | None) -> int:
    """Return how many rows `max_samples` asks for: None is n, a float a share of n or of the sum of the weights."""
    asked = owner.max_samples
    if asked is None:
        return n
    if isinstance(asked, Integral) and not isinstance(asked, bool) and int(asked) >= 1:
        return int(asked)
    if not isinstance(asked, Real) or isinstance(asked, (bool, Integral)) or not 0 < float(asked) < np.inf:
        raise refuse(owner, f"max_samples must be None, an integer >= 1 or a share > 0; got {asked!r}.")
    total = n if weight is None else float(weight.sum())
    size = max(int(float(asked) * total), 1)
    if size < max(10, n ** (1 / 3)):
        of = f"the number of samples is {n}" if weight is None else f"the total sum of sample weights is {total}"
        warnings.warn(
            f"Using the fractional value max_samples={asked} when {of} results in a low number ({size}) of bootstrap "
            "samples. We recommend passing `max_samples` as an integer.",
            stacklevel=4,
        )
    return size


# Class weights ----------------------------------------------------------------------------------------------------


PRESETS = ("balanced", "balanced_subsample")


class ClassWeight:
    """None, "balanced", "balanced_subsample", a dict, or a list of dicts for several outputs."""

    @staticmethod
    def check(owner: Any, name: str) -> Any:
        asked = getattr(owner, name)
        if asked is None or isinstance(asked, (dict, list)) or (isinstance(asked, str) and asked in PRESETS):
            return asked
        raise refuse(
            owner,
            f"the valid presets for class_weight include 'balanced' and 'balanced_subsample'; a dict, a list of dicts "
            f"or None will do too; got {asked!r}.",
        )


def labels_of(classes: Any, codes: np.ndarray) -> np.ndarray:
    """Return the labels of positions, (rows,) or (rows, outputs)."""
    if not isinstance(classes, list):
        return classes[codes]
    return np.column_stack([own[column] for own, column in zip(classes, codes.T)])


def class_factors(asked: Any, classes: Any, codes: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return the factor of each row's weight; of several outputs the product."""
    if isinstance(asked, (dict, list)):
        return compute_sample_weight(asked, labels_of(classes, codes))
    outputs = zip(classes, codes.T) if isinstance(classes, list) else [(classes, codes)]
    factor = np.ones(len(codes))
    for own, column in outputs:
        each = compute_class_weight("balanced", classes=np.arange(len(own)), y=column, sample_weight=weight)
        factor *= each[column]
    return factor


def balanced_in(codes: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the factor of every row that makes the classes count alike among the rows drawn, 0 for classes that were
    not drawn."""
    return compute_sample_weight("balanced", codes, indices=rows)


# Out-of-bag rows --------------------------------------------------------------------------------------------------


class Curve(NamedTuple):
    """Out-of-bag predictions of the whole ensemble, and the error after each member."""

    values: np.ndarray  # (rows, outputs) mean over the members that did not see the row, NaN if all did
    votes: np.ndarray  # (rows, classes) how many of them vote for each class
    seen: np.ndarray  # (rows,) whether there is one
    errors: np.ndarray  # (members,) error rate, or mean squared error, over rows that have a prediction so far


def out_of_bag(said: Any, out: np.ndarray, y: np.ndarray, n_classes: int) -> Curve:
    """Return the sums over members; `said` yields (rows, outputs) for each member, `out` (members, rows) says which
    rows it did not see."""
    n, outputs = len(y), max(n_classes, 1)
    totals, votes, counted = np.zeros((n, outputs)), np.zeros((n, outputs)), np.zeros(n)
    errors = np.full(len(out), np.nan)
    for t, values in enumerate(said):
        mine = np.flatnonzero(out[t])
        totals[mine] += values[mine]
        votes[mine, values[mine].argmax(axis=1)] += 1
        counted[mine] += 1
        some = counted > 0
        if some.any():
            errors[t] = _error(totals[some] / counted[some, None], y[some], n_classes)
    with np.errstate(invalid="ignore", divide="ignore"):
        return Curve(totals / counted[:, None], votes, counted > 0, errors)


def _error(values: np.ndarray, y: np.ndarray, n_classes: int) -> float:
    return float((values.argmax(axis=1) != y).mean() if n_classes else ((values[:, 0] - y) ** 2).mean())


def warn_of_unseen(what: str) -> None:
    """Say that some rows are in every bag."""
    warnings.warn(
        f"Some inputs do not have OOB scores. This probably means too few {what} were used to compute any reliable oob "
        "estimates.",
        UserWarning,
        stacklevel=5,
    )


def forest_out_of_bag(forest: Any, data: Any) -> None:
    """Set the out-of-bag attributes of a forest, of one output or several."""
    y, classify = data.y, is_classifier(forest)
    several = y.ndim == 2
    kind = type_of_target(y)
    if classify and kind not in ("binary", "multiclass", "multilabel-indicator"):
        raise refuse(
            forest,
            f"The type of target cannot be used to compute OOB estimates: {kind}. Fit one forest for each column of y.",
        )
    out = forest.bags() == 0
    if not out.any(axis=0).all():
        warn_of_unseen("trees")
    said = forest._every_value(data.dense("oob_score"))
    if not several:
        classes = len(forest.classes_) if classify else 0
        forest._keep_out_of_bag(out_of_bag(said, out, y, classes), y)
        return
    total = np.zeros((len(y), forest.node_value_.shape[1]))
    for t, values in enumerate(said):
        total[out[t]] += values[out[t]]
    with np.errstate(invalid="ignore"):
        mean = total / out.sum(axis=0)[:, None]
    seen = out.any(axis=0)
    if classify:
        forest.oob_decision_function_ = np.stack(split_outputs(mean, forest.classes_), axis=2)
        labels = most_frequent(mean[seen], forest.classes_)
        forest.oob_score_ = oob_score(forest, accuracy_score, labels_of(forest.classes_, y[seen]), labels)
    else:
        forest.oob_prediction_ = mean
        forest.oob_score_ = oob_score(forest, r2_score, y[seen], mean[seen])


def oob_score(model: Any, usual: Any, y: np.ndarray, predicted: np.ndarray) -> float:
    """Return the score of the rows that are out of a bag, by the function that `oob_score` is, or the usual one."""
    if not len(y):
        return float("nan")
    return float((model.oob_score if callable(model.oob_score) else usual)(y, predicted))


def pruned(nodes: Nodes, X: np.ndarray, y: np.ndarray, n_classes: int) -> Nodes:
    """Return the tree whose subtrees are replaced by leaves wherever that does not raise its error on these rows:
    number of errors, or sum of squares."""
    outputs = n_classes if n_classes else 3
    passed = np.zeros((len(nodes.child), outputs))
    for at, rows, share in visits(nodes, 0, X):
        if n_classes:
            np.add.at(passed[at], y[rows], share)
        else:
            passed[at] += share.sum(), (share * y[rows]).sum(), (share * y[rows] ** 2).sum()
    parent = nodes.parents()
    for at in range(len(parent) - 1, 0, -1):
        passed[parent[at]] += passed[at]
    if n_classes:
        cost = passed.sum(axis=1) - passed[np.arange(len(passed)), nodes.value.argmax(axis=1)]
    else:
        value = nodes.value[:, 0]
        cost = passed[:, 2] - 2 * value * passed[:, 1] + value**2 * passed[:, 0]
    return pruning.bottom_up(nodes, cost, 1e-9 * max(1.0, float(np.abs(cost).max())))


class Stopped(NamedTuple):
    """A network at its best epoch, that epoch, and the out-of-bag error after each epoch."""

    model: Any
    epoch: int
    errors: np.ndarray


def stopped(model: Any, data: tuple, held: tuple, *, classes: np.ndarray | None, epochs: int, patience: int) -> Stopped:
    """Train epoch by epoch with `partial_fit` and return the model as it was at the smallest error on the held rows.

    Ends after `patience` epochs without a smaller error, or without held rows after all epochs.
    """
    X, y = data
    Xh, yh = held
    best, best_epoch, least, errors = deepcopy(model), 0, np.inf, []
    for epoch in range(1, epochs + 1):
        if classes is not None and epoch == 1:
            model.partial_fit(X, y, classes=classes)
        else:
            model.partial_fit(X, y)
        if not len(yh):
            best, best_epoch = model, epoch
            continue
        predicted = model.predict(Xh)
        error = float((predicted != yh).mean() if classes is not None else ((predicted - yh) ** 2).mean())
        errors.append(error)
        if error < least:
            best, best_epoch, least = deepcopy(model), epoch, error
        elif epoch - best_epoch >= patience:
            break
    return Stopped(best, best_epoch, np.array(errors))
