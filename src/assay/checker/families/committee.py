"""Ensembles of models of any family: stored and loaded, with no claim of their own; hold-out rows are not judged here.

Bagging: `member_columns_` (members, width), the columns that each member reads, of `n_features_in_`. Boosting:
`estimator_weights_` (members,).
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from assay.checker.family import NUMBERS, WHOLE, Family, Variant
from assay.checker.predictors import Predictor
from assay.checker.record import Rejected


class Committee(Predictor):
    """Members whose predictions are combined by the learner."""

    def __init__(self, columns: int, classes: tuple[str, ...] | None):
        self._columns, self.classes = columns, classes

    @property
    def columns(self) -> int:
        return self._columns


def read_bagging(members: list[Predictor], listed: np.ndarray, columns: np.ndarray, classes: Any) -> Committee:
    """Return the ensemble after checking that each member reads columns that there are."""
    d = int(columns) if columns.shape == () else 0
    if listed.ndim != 2 or len(listed) != len(members) or d < 1 or np.any((listed < 0) | (listed >= d)):
        raise Rejected("member_columns_ must name the columns of each member")
    if any(member.columns != listed.shape[1] for member in members):
        raise Rejected("a member reads another number of columns than it is given")
    _check_classes(members, None if classes is None else map(str, range(len(classes))))
    return Committee(d, classes)


def read_boosting(members: list[Predictor], weights: np.ndarray, classes: Any) -> Committee:
    """Return the ensemble after checking that each member has a weight."""
    if weights.shape != (len(members),) or any(member.columns != members[0].columns for member in members):
        raise Rejected("estimator_weights_ must have a number for each member, and members the same columns")
    _check_classes(members, classes)
    return Committee(members[0].columns, classes)


def _check_classes(members: list[Predictor], known: Iterable[str] | None) -> None:
    """Reject members that tell other classes apart than these; without, members that do so at all."""
    if known is None:
        strange = any(member.classes is not None for member in members)
    else:
        known = set(known)
        strange = any(member.classes is None or not known.issuperset(member.classes) for member in members)
    if strange:
        raise Rejected("a member knows other classes than the ensemble")


_COLUMNS = {"member_columns_": WHOLE, "n_features_in_": WHOLE}
_WEIGHTS = {"estimator_weights_": NUMBERS}
FAMILY = Family(
    "committee",
    {
        "bagging-classifier": Variant(_COLUMNS, read_bagging, classes=True, members=True),
        "bagging-regressor": Variant(_COLUMNS, read_bagging, members=True),
        "boosting-classifier": Variant(_WEIGHTS, read_boosting, classes=True, members=True),
        "boosting-regressor": Variant(_WEIGHTS, read_boosting, members=True),
    },
)
