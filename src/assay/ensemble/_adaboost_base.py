"""What both AdaBoosts share: rows for members of any kind, stages, importances."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from assay.ensemble._members import Indexed, OfMembers, any_rows
from assay.params import refuse
from assay.tree._nodes import TreeModel
from assay.tree._reading import read_columns


class Boosted(TreeModel, Indexed, OfMembers):
    """Members fitted one after the other, each with a weight."""

    figure = "importance"
    estimator: Any
    random_state: Any
    n_jobs: int | None
    estimator_weights_: np.ndarray
    estimator_errors_: np.ndarray

    @property
    def _n_members(self) -> int:
        return len(self.estimator_weights_)

    def _rows(self, X: Any) -> Any:
        """Return checked rows as the members take them."""
        check_is_fitted(self)
        return read_columns(self, X).X if self.has_nodes else any_rows(self, X, nd=True, finite=not self._reads_gaps())

    def _reads_gaps(self) -> bool:
        return bool(get_tags(self._base()).input_tags.allow_nan)

    def _check_member(self) -> None:
        base, kind = self._base(), "classifier" if is_classifier(self) else "regressor"
        other = is_regressor(base) if is_classifier(self) else is_classifier(base)
        if other or not all(hasattr(base, name) for name in ("fit", "predict")):
            raise refuse(self, f"estimator must be a {kind} with fit and predict; got {base!r}.")

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predictions of the first 1, 2, ... members."""
        raise NotImplementedError

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """Yield the score of the first 1, 2, ... members: the share of right rows, or R^2."""
        score = accuracy_score if is_classifier(self) else r2_score
        for said in self.staged_predict(X):
            yield float(score(y, said, sample_weight=sample_weight))

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean of the members' importances by their weights; of members that have them."""
        check_is_fitted(self)
        weights = np.abs(self.estimator_weights_)
        total = max(float(weights.sum()), np.finfo(float).tiny)
        if is_classifier(self) and self.has_nodes:  # a stump has one column
            split = self.node_child_[self.tree_root_] >= 0
            columns = self.node_column_[self.tree_root_[split]]
            return np.bincount(columns, weights=weights[split], minlength=self.n_features_in_) / total
        try:
            return np.asarray(sum(w * one.feature_importances_ for w, one in zip(weights, self.estimators_))) / total
        except AttributeError as error:
            raise AttributeError(
                f"feature_importances_: {type(self._base()).__name__} does not have a feature_importances_ attribute."
            ) from error

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
