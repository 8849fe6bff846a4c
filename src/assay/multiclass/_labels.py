"""One against the rest where a row may have any number of labels, or only one class was seen: no certificate, since
claims are about one class for each row."""

import warnings
from typing import Any

import numpy as np
from scipy.sparse import csc_matrix
from sklearn.base import BaseEstimator
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.multiclass import type_of_target

from assay.ensemble._combined import Task, fit_members, score


class Constant(BaseEstimator):
    """A member for a label that all rows have, or none; it says so of every row."""

    def fit(self, X: Any, y: np.ndarray) -> "Constant":
        self.value_ = int(y[0]) if len(y) else 0
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.full(X.shape[0], self.value_)

    def decision_function(self, X: Any) -> np.ndarray:
        return np.full(X.shape[0], float(self.value_))

    def predict_proba(self, X: Any) -> np.ndarray:
        share = self.decision_function(X)
        return np.column_stack([1 - share, share])


def by_columns(y: Any) -> bool:
    """Tell whether a target has several columns, or rows of one class alone."""
    kind = type_of_target(y)
    if kind.startswith("multilabel") or "multioutput" in kind:
        return True
    return kind in ("binary", "multiclass") and len(np.unique(np.asarray(y))) < 2


def fit_labels(owner: Any, X: Any, y: Any, base: Any, more: dict[str, Any], n_jobs: int | None) -> list[Any]:
    """Return a member for each label, and set `_binarizer` and `classes_` of the owner."""
    owner._binarizer = LabelBinarizer(sparse_output=True)
    Y = csc_matrix(owner._binarizer.fit_transform(y))  # refuses several targets
    owner.classes_ = owner._binarizer.classes_
    tasks = []
    for t in range(Y.shape[1]):
        label, column = owner.classes_[min(t, len(owner.classes_) - 1)], Y[:, t].toarray().ravel()
        if np.ptp(column):
            tasks.append(Task(f"{label} or not", base, X, column, more))
            continue
        said = f"{label}" if column[0] else f"not {label}"
        warnings.warn(f"Label {said} is present in all training examples.", UserWarning, stacklevel=4)
        tasks.append(Task(str(label), Constant(), X, column))
    return fit_members(owner, tasks, n_jobs)


def label_scores(members: list[Any], X: Any) -> np.ndarray:
    """Return a score for each label, above 0 if the row is taken to have it."""
    return np.column_stack([score(one, X) for one in members])


def labelled(owner: Any, scores: np.ndarray) -> Any:
    """Return the labels of rows: a matrix of 0 and 1, sparse if that of the fit was, or the one class there is."""
    said = scores > 0
    binarizer = owner._binarizer
    if binarizer.y_type_.startswith("multilabel"):
        return csc_matrix(said, dtype=np.int64) if binarizer.sparse_input_ else said.astype(np.int64)
    return np.repeat(owner.classes_[:1], len(said))
