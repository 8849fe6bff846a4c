"""Cross-validation of linear models: a fold's training rows have the moments of all rows less the hold-out's.

One pass over the rows thus serves every fold, and every penalty. Where a hold-out set has nearly all of a column's
variation the difference would be rounding, and the training rows are summed themselves.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils._metadata_requests import _raise_for_params, _routing_enabled
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from assay import scan
from assay.linear_model._least_squares_solver import second_moments
from assay.params import refuse
from assay.scan import Rows
from assay.scan.memory import MemoryRows

_LEFT = 1e-5  # share of a column's squares that training rows must have for a difference to keep its digits


class Fold(NamedTuple):
    """Row numbers of a fold, and the second moments about a common point (see `second_moments`) of both parts."""

    train: np.ndarray
    test: np.ndarray
    train_moments: np.ndarray
    test_moments: np.ndarray


def splits(
    model: Any, X: Any, y: Any, sample_weight: Any, given: dict[str, Any], *, classes: bool = False
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the row numbers of training and hold-out rows of each fold; `given` is metadata for the splitter."""
    _raise_for_params(given, model, "fit")
    routed = {}
    if _routing_enabled():
        routed = process_routing(model, "fit", sample_weight=sample_weight, **given).splitter.split
    return list(check_cv(model.cv, y, classifier=classes).split(X, y, **routed))


def splitter_routing(model: Any) -> MetadataRouter:
    """Return which metadata `fit` hands to the splitter."""
    passed = MethodMapping().add(caller="fit", callee="split")
    return MetadataRouter(owner=model).add_self_request(model).add(splitter=check_cv(model.cv), method_mapping=passed)


def in_memory(model: Any, rows: Rows) -> MemoryRows:
    """Return the rows if folds of them can be taken."""
    if not isinstance(rows, MemoryRows):
        raise refuse(model, "cross-validation takes rows by their numbers: pass arrays or a frame.")
    return rows


def part(rows: MemoryRows, numbers: np.ndarray, n_jobs: int | None = None) -> MemoryRows:
    """Return some of the rows, summed by as many threads as all of them unless told."""
    weight = None if rows.weight is None else np.asarray(rows.weight)[numbers]
    chosen: Any = scan.rows(rows.X[numbers], np.asarray(rows.y)[numbers], weight, n_jobs=n_jobs or rows.n_jobs)
    return chosen


def check_weights(model: Any, weight: Any, folds: list[tuple[np.ndarray, np.ndarray]], *, held: bool = True) -> None:
    """Refuse folds of which the training rows, or the hold-out rows if these are weighed (`held`), all weigh 0: means
    over them are no numbers."""
    if weight is None:
        return
    positive = np.asarray(weight) > 0
    for k, (train, test) in enumerate(folds):
        for name, numbers in (("training", train), ("hold-out", test if held else train)):
            if not positive[numbers].any():
                raise refuse(
                    model, f"all {name} rows of fold {k} have weight 0; leave out the rows of weight 0, or choose cv."
                )


def folded(
    rows: MemoryRows, folds: list[tuple[np.ndarray, np.ndarray]], whole: np.ndarray, start: np.ndarray
) -> Iterator[Fold]:
    """Yield each fold with its moments about `start`; `whole` has those of all rows."""
    for train, test in folds:
        held = part(rows, test).sum(second_moments, start)
        rest = whole - held
        enough = np.diag(rest) >= _LEFT * np.diag(whole)
        if not enough.all() or not _complement(train, test, rows.n_rows):
            rest = part(rows, train).sum(second_moments, start)
        yield Fold(train, test, rest, held)


def _complement(train: np.ndarray, test: np.ndarray, n: int) -> bool:
    """Tell whether each row is in one part of the fold, once."""
    counts = np.bincount(train, minlength=n) + np.bincount(test, minlength=n)
    return len(counts) == n and bool((counts == 1).all())
