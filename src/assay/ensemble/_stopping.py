"""Early stopping: scores after each round, on validation or training rows, and when they have stopped rising."""

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils import resample

from assay.ensemble._hist_store import TRAINING, VALIDATION
from assay.tree._reading import Read

_MOST = 10_000  # training rows that a scorer sees


class Watch:
    """The scores of the rounds: minus the mean loss, or what a scorer says. Larger is better.

    train, validation : the score before the first round and after each one; empty if nothing is watched
    """

    def __init__(self, learner: Any, source: Any, store: Any, seed: int):
        self.learner, self.store = learner, store
        self.validates = store.validates
        self.on = learner.do_early_stopping_
        more = learner.has_nodes
        self.train: list[float] = learner.train_score_.tolist() if more else []
        self.validation: list[float] = learner.validation_score_.tolist() if more else []
        self.scorer = None
        if self.on and learner.scoring != "loss":
            self.scorer = check_scoring(learner, learner.scoring)
            self.chosen = self._chosen(seed)
            self.training, self.validating = source.rows_of(TRAINING), source.rows_of(VALIDATION)

    def first(self, loss: float, run: Any) -> None:
        """Write down the scores before the first round of the first fit."""
        if self.on and not self.train:
            self._write(loss, run)

    def step(self, loss: float, run: Any) -> bool:
        """Write down the scores after a round; tell whether the last ones are no better than the one before them."""
        if not self.on:
            return False
        self._write(loss, run)
        return stalled(self.validation if self.validates else self.train, self.learner)

    def latest(self) -> tuple[tuple[str, list[float]], ...]:
        """Return the scores by name."""
        return ("train", self.train), ("validation", self.validation)

    def _write(self, loss: float, run: Any) -> None:
        if self.scorer is None:
            self.train.append(-loss)
            if self.validates:
                self.validation.append(-run.validation_loss())
            return
        scores = self.store.training.scores[:, self.chosen]
        data, numbers = self.training
        self.train.append(self._score(data, numbers[self.chosen], scores))
        if self.validates:
            data, numbers = self.validating
            self.validation.append(self._score(data, numbers, self.store.validation.scores))

    def _score(self, data: Read, rows: Any, scores: np.ndarray) -> float:
        """Return what the scorer says of some rows whose scores are known."""
        learner: Any = self.learner
        y = learner.classes_[data.y[rows]] if is_classifier(learner) else data.y[rows]
        weight = {} if data.weight is None else {"sample_weight": data.weight[rows]}
        learner._raw = lambda X: np.ascontiguousarray(scores.T)
        try:
            return float(self.scorer(learner, data.X[rows], y, **weight))  # type: ignore[misc]
        finally:
            del learner._raw

    def _chosen(self, seed: int) -> Any:
        """Return training rows for the scorer: all, or 10,000 with the shares of the classes kept."""
        y, n = self.store.training.y, self.store.n_rows
        if n <= _MOST:
            return slice(None)
        shares = y if is_classifier(self.learner) else None
        return resample(np.arange(n), n_samples=_MOST, replace=False, random_state=seed, stratify=shares)


def stalled(scores: list[float], learner: Any) -> bool:
    """Tell whether none of the last `n_iter_no_change` scores exceeds the one before them by more than `tol`."""
    wait = learner.n_iter_no_change
    return len(scores) > wait and max(scores[-wait:]) <= scores[-wait - 1] + learner.tol
