"""Rows that a member did not see, put to use: error curves, pruning of trees, stopping of networks."""

import warnings
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import type_of_target

from assay.ensemble._class_weights import labels_of
from assay.params import refuse
from assay.tree import _pruning as pruning
from assay.tree._nodes import Nodes
from assay.tree._predict import most_frequent, split_outputs, visits


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
        told = most_frequent(mean[seen], forest.classes_)
        forest.oob_score_ = oob_score(forest, accuracy_score, labels_of(forest.classes_, y[seen]), told)
    else:
        forest.oob_prediction_ = mean
        forest.oob_score_ = oob_score(forest, r2_score, y[seen], mean[seen])


def oob_score(model: Any, usual: Any, y: np.ndarray, said: np.ndarray) -> float:
    """Return the score of the rows that are out of a bag, by the function that `oob_score` is, or the usual one."""
    if not len(y):
        return float("nan")
    return float((model.oob_score if callable(model.oob_score) else usual)(y, said))


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
        said = model.predict(Xh)
        error = float((said != yh).mean() if classes is not None else ((said - yh) ** 2).mean())
        errors.append(error)
        if error < least:
            best, best_epoch, least = deepcopy(model), epoch, error
        elif epoch - best_epoch >= patience:
            break
    return Stopped(best, best_epoch, np.array(errors))
