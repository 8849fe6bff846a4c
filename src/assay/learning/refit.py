"""A model of tables fitted again: the same learner with the same settings, to other rows.

This is what cross-validation of scikit-learn does with `study.model`. The reading of the columns and the encoding are
made anew of the rows that are given; what was certified is about the model as it was.
"""

from typing import Any

import numpy as np
from sklearn.base import clone

from assay.data import Encoding, RawTable, raw_table
from assay.guarantees.order import fold_of_rows
from assay.learning.folded import FoldedTable, FoldMean, FoldVote
from assay.learning.model import TableModel, checked_input, target_values
from assay.learning.problem import informative_columns


def unfitted(model: TableModel) -> TableModel:
    """Return a model with the same choice that has seen no rows."""
    if isinstance(model, FoldedTable):
        members = [unfitted(member) for member in model.members]
        whole = FoldVote(members, np.empty(0)) if model.task == "classify" else FoldMean(members, np.empty(0))
        return FoldedTable(model.target, whole)
    return TableModel(model.target, model.encoding, clone(model.learner))


def fit_again(model: TableModel, X: Any, y: Any) -> None:
    """Fit a model's learner to rows without the target, and the target of each."""
    rows = raw_table(model.named(X))
    target = raw_table({model.target.name: np.asarray(y)}).typed().column(model.target.name)
    if len(target.data) != rows.n_rows:
        raise ValueError(f"there are {rows.n_rows} rows and {len(target.data)} targets.")
    if target.missing.any():
        raise ValueError(f"the target {model.target.name!r} has missing values.")
    _fit(model, rows, target.type, target_values(target, model.task))


def _fit(model: TableModel, rows: RawTable, target: Any, y: np.ndarray) -> None:
    model.target, model.memory = target, None
    if isinstance(model, FoldedTable):
        _fit_folds(model, rows, y)
        return
    features = informative_columns(rows.typed())
    reads = checked_input(model.learner)
    if any(column.kind == "nominal" for column in model.columns) and not model.encoding.nominal():
        reads = frozenset({"numbers"})  # it was chosen with levels encoded as numbers
    model.encoding = Encoding.fit(features, reads)
    known = model.learner.get_params(deep=True)
    places = {name: model.encoding.nominal() or None for name in known if name.split("__")[-1] == "nominal"}
    model.learner = clone(model.learner).set_params(**places).fit(model.encoding.apply(features), y)


def _fit_folds(model: FoldedTable, rows: RawTable, y: np.ndarray) -> None:
    """Fit each member to the rows outside one of as many folds as there are members."""
    fold = fold_of_rows(len(y), len(model.members), 0)
    members = [unfitted(member) for member in model.members]
    for k, member in enumerate(members):
        _fit(member, rows.take(fold != k), model.target, y[fold != k])
    ends = np.unique(y) if model.task == "classify" else np.array([y.min(), y.max()], dtype=np.float64)
    model.learner = FoldVote(members, ends) if model.task == "classify" else FoldMean(members, ends)
