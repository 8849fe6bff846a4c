"""What is minimised: losses of predictions on rows that were not fitted, smaller is better.

error     share of rows predicted wrongly             balanced   mean over classes of that share
logloss   mean of -ln p(y)                            brier      mean of half the squared distance of p from y
auc       1 - area under the ROC curve (shown as area)            f1   1 - F1, of the rarer of two classes, or the mean
cost      mean cost by a matrix                       mae, rmse  mean absolute, root mean squared error
r2        squared errors over those of the rows' own mean (shown as 1 minus that)
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assay.learning.spaces import TASKS
from assay.messages import Message

CLASSES = ("error", "balanced", "logloss", "auc", "brier", "f1")
NUMBERS = ("mae", "rmse", "r2")
_SCORERS = {
    "accuracy": "error", "balanced_accuracy": "balanced", "neg_log_loss": "logloss", "log_loss": "logloss",
    "roc_auc": "auc", "roc_auc_ovr": "auc", "neg_brier_score": "brier", "f1_macro": "f1",
    "neg_mean_absolute_error": "mae", "mean_absolute_error": "mae", "neg_root_mean_squared_error": "rmse",
    "neg_mean_squared_error": "rmse", "mse": "rmse",
}  # fmt: skip
"""Names of scikit-learn's scorers that rank models as one of ours does."""
_LEAST = 1e-15


@dataclass(frozen=True)
class Metric:
    """A loss by its name; `cost` is a matrix (classes, classes) for "cost", `positive` the class that F1 is of: the
    rarer of two; of more classes it is the mean over all.

    Parameters
    ----------
    name : str
        Name of the metric.
    cost : array-like or None
        Cost matrix of "cost".
    positive : int or None
        Number of the class that F1 is of; None: the mean over all.
    """

    name: str
    cost: Any = None
    positive: int | None = None

    @property
    def needs_probabilities(self) -> bool:
        """Whether it is of probabilities."""
        return self.name in ("logloss", "auc", "brier")

    @property
    def turned(self) -> bool:
        """Whether people know it as a score, 1 - loss."""
        return self.name in ("auc", "f1", "r2")

    def shown(self, loss: float) -> float:
        """Return the number that people know it by.

        Parameters
        ----------
        loss : float
            The loss.
        """
        return 1 - loss if self.turned else loss

    @property
    def percent(self) -> bool:
        """Whether it is shown in per cent."""
        return self.name in ("error", "balanced")

    def text(self, value: float) -> str:
        """Return a number that people know it by as text; that there is none is "".

        Parameters
        ----------
        value : float
            The number.

        Examples
        --------
        >>> Metric("error").text(0.125), Metric("auc").text(0.87654)
        ('12.50 %', '0.8765')
        """
        if value != value:
            return ""
        return f"{100 * value:.2f} %" if self.percent else f"{value:.{5 if self.error else 4}g}"

    @property
    def error(self) -> bool:
        """Whether it is the error that bounds and baselines are about in the first place."""
        return self.name in ("error", "mae")

    def on(self, y: np.ndarray, predicted: np.ndarray, shares: np.ndarray | None, classes: np.ndarray) -> float:
        """Return the number that people know it by, of labels (or numbers) and predictions of rows that were not fitted
        to; they may have classes beside `classes`, which nobody predicts and which cost as much as any.

        Parameters
        ----------
        predicted : ndarray
            Predictions.
        shares : ndarray or None
            Probabilities of the classes, (rows, classes); None: there are none.
        """
        if self.name in NUMBERS:
            return self.shown(self.of(y, predicted, None, 0))
        n = len(classes)
        codes = np.where(np.isin(y, classes), np.minimum(np.searchsorted(classes, y), n - 1), n)
        if (codes < n).all():
            return self.shown(self.of(codes, np.searchsorted(classes, predicted), shares, n))
        wider = None if shares is None else np.column_stack([shares, np.zeros(len(shares))])
        cost = None if self.cost is None else np.pad(self.cost, (0, 1), constant_values=np.max(self.cost))
        return self.shown(replace(self, cost=cost).of(codes, np.searchsorted(classes, predicted), wider, n + 1))

    def of(self, y: np.ndarray, predicted: np.ndarray, shares: np.ndarray | None, n_classes: int) -> float:
        """Return the loss: y and predictions are positions of classes, or numbers; `shares` (rows, classes).

        Parameters
        ----------
        predicted : ndarray
            Predictions.
        shares : ndarray or None
            Probabilities of the classes, (rows, classes); None: there are none.
        n_classes : int
            Number of classes.
        """
        if self.name in NUMBERS:
            error = np.abs(y - predicted)
            if self.name == "r2":
                return float((error**2).sum() / max(((y - y.mean()) ** 2).sum(), _LEAST))
            return float(error.mean() if self.name == "mae" else np.sqrt((error**2).mean()))
        if self.name == "error":
            return float(np.mean(y != predicted))
        if self.name == "cost":
            return float(np.asarray(self.cost)[y, predicted].mean())
        if self.name in ("balanced", "f1"):
            return _by_class(self.name, y, predicted, n_classes, self.positive)
        if shares is None:
            raise ValueError(Message("metric.probabilities", metric=self.name))
        if self.name == "brier":
            return float(0.5 * ((shares - np.eye(n_classes)[y]) ** 2).sum(axis=1).mean())
        if self.name == "logloss":
            return float(-np.log(np.maximum(shares[np.arange(len(y)), y], _LEAST)).mean())
        return 1 - _area(y, shares, n_classes)


def _by_class(name: str, y: np.ndarray, predicted: np.ndarray, n_classes: int, positive: int | None) -> float:
    """Return the mean error of the classes that occur, or 1 - F1."""
    there = np.flatnonzero(np.bincount(y, minlength=n_classes))
    if name == "balanced":
        return float(np.mean([np.mean(predicted[y == k] != k) for k in there]))
    there = there if positive is None else np.array([positive])
    hits = [(np.sum((y == k) & (predicted == k)), np.sum(y == k) + np.sum(predicted == k)) for k in there]
    return 1 - float(np.mean([2 * both / max(1, either) for both, either in hits]))


def _area(y: np.ndarray, shares: np.ndarray, n_classes: int) -> float:
    """Return the area under the ROC curve of the second class, or the mean over classes against the others."""
    from scipy.stats import rankdata

    areas = []
    for k in [1] if n_classes == 2 else range(n_classes):
        own = y == k
        a, b = int(own.sum()), int((~own).sum())
        if a and b:
            areas.append((rankdata(shares[:, k])[own].sum() - a * (a + 1) / 2) / (a * b))
    return float(np.mean(areas)) if areas else 0.5


def chosen_metric(name: str | None, cost: Any, task: str, codes: np.ndarray, n_classes: int) -> Metric:
    """Return the metric that was asked for; refuse one of the other task. `codes` are classes of the training rows."""
    if cost is not None:
        matrix = np.asarray(cost, dtype=np.float64)
        if task != "classify":
            raise ValueError(Message("cost.numbers"))
        if matrix.shape != (n_classes, n_classes) or not (np.isfinite(matrix).all() and (matrix >= 0).all()):
            raise ValueError(Message("cost.shape", classes=n_classes, shape=str(matrix.shape)))
        if name not in (None, "cost"):
            raise ValueError(Message("cost.metric", metric=name))
        return Metric("cost", matrix)
    allowed = CLASSES if task == "classify" else NUMBERS
    name = None if name is None else _SCORERS.get(name, name)
    if name is not None and name not in allowed:
        raise ValueError(Message("metric.unknown", task=TASKS[task], allowed=list(allowed), given=name))
    if name == "f1" and n_classes == 2:
        return Metric(name, positive=int(np.sum(codes == 1) <= np.sum(codes == 0)))
    return Metric(name or allowed[0])
