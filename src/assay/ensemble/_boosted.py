"""Sums of trees, which gradient boosting makes: what predicts and is certified, whichever way the trees were grown.

F(x) = base_score_ + sum over the trees of the value of the leaf that x reaches        (one F for each output)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner
from assay.data.blocks import Block
from assay.ensemble._losses import Loss
from assay.guarantees.evidence import Evidence, Predictions, Scores
from assay.scan import Rows, rows_per_block, thread_map
from assay.tree._decision_tree import known_rows
from assay.tree._nodes import TreeModel
from assay.tree._predict import SumOfTrees, weighted_values
from assay.tree._reading import Read, read_columns


class Boosted(TreeModel, Learner):
    """Mixin: scores of a sum of trees."""

    figure = "importance"
    base_score_: np.ndarray
    n_jobs: int | None

    def _loss(self) -> Loss:
        """Return the loss that the fit lowers."""
        raise NotImplementedError

    def _bounded(self, block: Block) -> tuple[np.ndarray, float]:
        """Return the scores of a block's rows, and how far rounding can move them."""
        return self._raw(block.X), self._rounding()

    def _rounding(self) -> float:
        """Return how far two orders of summation can differ: 4 u times trees times the largest sum."""
        leaves = np.abs(self.nodes_.value).max() * len(self.nodes_.root) + np.abs(self.base_score_).max()
        return 2.0**-50 * (len(self.nodes_.root) + 1) * float(leaves)

    def _trees(self) -> SumOfTrees:
        check_is_fitted(self)
        return SumOfTrees(self.nodes_.check(self.n_features_in_), self.n_features_in_, len(self.base_score_))

    def _shown(self, data: Read) -> tuple[Any, Any]:
        """Return what callbacks are shown of X and y: nothing of rows that are streamed, else labels as they came."""
        X, y = data.shown
        return (X, y) if y is None or not is_classifier(self) else (X, self.classes_[y])

    def _columns(self, X: Any) -> np.ndarray:
        """Return rows as the trees see them."""
        return read_columns(self, X).X

    def _first(self, X: np.ndarray) -> np.ndarray:
        """Return the scores before the first tree (rows, outputs)."""
        return np.tile(self.base_score_, (len(X), 1))

    def _raw(self, X: Any) -> np.ndarray:
        """Return the scores (rows, outputs)."""
        trees, X = self._trees(), self._columns(X)
        scores, step = self._first(X), rows_per_block(X.shape[1])

        def work(i: int) -> None:
            trees.add(X[i : i + step], scores[i : i + step])

        thread_map(work, range(0, len(X), step), n_jobs=self.n_jobs)
        return scores

    def _staged_raw(self, X: Any) -> Iterator[np.ndarray]:
        trees, X, outputs = self._trees(), self._columns(X), len(self.base_score_)
        scores = self._first(X)
        for first in range(0, len(trees.nodes.root), outputs):
            trees.add(X, scores, first, first + outputs)
            yield scores.copy()

    def _partial_dependence(self, grid: Any, target_features: Any) -> np.ndarray:
        """Return the trees' mean at the grid over the other columns, by the training rows that went down each branch,
        (outputs, points), without the first constant."""
        nodes, columns = self.nodes_, np.asarray(target_features, dtype=np.intp)
        nodes = nodes._replace(missing=np.where(np.isin(nodes.column, columns), nodes.missing, -1))
        points = np.full((len(grid), self.n_features_in_), np.nan)
        points[:, columns] = grid
        total = np.zeros((len(self.base_score_), len(grid)))
        for t, root in enumerate(nodes.root):
            total[t % len(total)] += weighted_values(nodes, root, points)[:, 0]
        return total

    @property
    def n_trees_per_iteration_(self) -> int:
        """Trees of a round: one for each output."""
        check_is_fitted(self)
        return len(self.base_score_)

    def _n_rounds(self) -> int:
        return len(self.tree_root_) // len(self.base_score_) if self.has_nodes else 0

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        return known_rows(self, X, y, sample_weight)


@dataclass(eq=False, repr=False)
class BoostedClassifier(ClassifierMixin, Boosted):
    """Mixin: classes from the scores of a sum of trees."""

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores F: (rows,) for two classes, (rows, classes) for more."""
        return _one_or_all(self._raw(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (rows, classes)."""
        scores = self._raw(X)
        return self._loss().probabilities(scores)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the label with the largest score."""
        return self._labels(self._raw(X))

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield `decision_function` after each round."""
        for scores in self._staged_raw(X):
            yield _one_or_all(scores)

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the probabilities after each round."""
        for scores in self._staged_raw(X):
            yield self._loss().probabilities(scores)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predicted labels after each round."""
        for scores in self._staged_raw(X):
            yield self._labels(scores)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the scores."""
        yield Scores(self._bounded, (), self._loss().name in ("log_loss", "multinomial"))

    def _labels(self, scores: np.ndarray) -> np.ndarray:
        at = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return self.classes_[at]


@dataclass(eq=False, repr=False)
class BoostedRegressor(RegressorMixin, Boosted):
    """Mixin: numbers from the scores of a sum of trees."""

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted number of each row."""
        return self._loss().numbers(self._raw(X))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predictions after each round."""
        for scores in self._staged_raw(X):
            yield self._loss().numbers(scores)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predictions; where these are the exponentials of the scores, nothing."""
        if not self._loss().of_logarithm:
            yield Predictions(self._bounded)


def _one_or_all(scores: np.ndarray) -> np.ndarray:
    return scores[:, 0] if scores.shape[1] == 1 else scores
