"""k nearest neighbours, regression: the mean target of the k nearest training rows.

    f(x) = sum over the k nearest rows i of w_i y_i / sum of w_i,   w_i = 1, or 1 / distance

Claims: the mean squared error on the rows, with near-ties decided in exact arithmetic; the listed neighbours of some
        rows are the nearest ones (knn.neighbors).
Method: `_search`.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from assay.card import Card, log, options
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.evidence import Evidence, Predictions
from assay.neighbors._base import Neighbors, VoteWeights, neighbor_weights
from assay.neighbors._claims import exact_neighbors, neighbor_facts, why_not
from assay.neighbors._classifier import KNeighborsClassifier, NearestRows
from assay.params import refuse
from assay.scan import Rows

_ROUNDING = 2.0**-44  # of a weighted mean, relative to its largest term; the checker bounds its own


@dataclass(eq=False, repr=False)
class KNeighborsRegressor(RegressorMixin, Neighbors):
    """Regression by the mean of the k nearest training rows.

    Parameters
    ----------
    n_neighbors, weights, algorithm, leaf_size, p, metric, metric_params, n_jobs
        As in `KNeighborsClassifier`.

    Attributes
    ----------
    fit_X_ : (n, n_features), fit_y_ : (n,) or (n, n_targets)
        The training rows and their targets.

    Examples
    --------
    >>> from assay.neighbors import KNeighborsRegressor
    >>> model = KNeighborsRegressor(n_neighbors=2).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 4.0, 9.0])
    >>> model.predict([[1.4]])
    array([2.5])
    """

    card = Card(
        name="k nearest neighbours regression",
        zh="k近邻回归",
        mission=("CLU-03",),
        task="regress",
        model=NearestRows(),
        strategy="none: the mean of the k nearest training rows",
        algorithm="single-precision products ranked again in double, or a tree of boxes",
        guarantee=("knn.neighbors",),
        most_rows=50_000,
        search={"n_neighbors": log(1, 50, whole=True), "weights": options("uniform", "distance"), "p": options(1, 2)},
    )
    family = "neighbors.regressor"

    constraints: ClassVar = {"weights": VoteWeights()}

    _: KW_ONLY
    weights: Any = "uniform"

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "KNeighborsRegressor":
        """Keep the rows X and their targets y, one column or several."""
        rows = self._read(X, y)
        self.fit_y_ = np.array(self._keep(rows, X, y), dtype=np.float64)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean target of the k nearest rows, weighted if `weights` says so."""
        check_is_fitted(self)
        distance, index = self.kneighbors(X)
        return self._means(distance, index)

    def _means(self, distance: np.ndarray, index: np.ndarray) -> np.ndarray:
        weights, targets = neighbor_weights(self, self.weights, distance), self.fit_y_[index]
        if weights is None:
            return targets.mean(axis=1)
        shares = weights / weights.sum(axis=1, keepdims=True)
        return np.einsum("ij,ij...->i...", shares, targets)

    neighbor_numbers_ = KNeighborsClassifier.neighbor_numbers_

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        reason = why_not(self)
        if reason:
            raise refuse(self, reason)
        return super()._known_rows(X, y, sample_weight)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predictions."""
        yield Predictions(_predicted, (self,))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the neighbours of some rows."""
        yield from neighbor_facts(self, rows)


def _predicted(block: Block, learner: KNeighborsRegressor) -> tuple[np.ndarray, np.ndarray]:
    """Return the predictions of a block and how far they can be off: by the spread of the targets where rounding leaves
    the neighbours open."""
    stored = learner.fit_y_.reshape(learner.n_samples_fit_, -1)
    spread, size = np.ptp(stored, axis=0), np.abs(stored).max(axis=0)
    distance, index, sure = exact_neighbors(learner, block.X)
    means = learner._means(distance, index).reshape(len(index), -1)
    gap = np.abs(np.asarray(block.y).reshape(means.shape) - means)
    return means, np.where(sure[:, None], 0.0, spread) + _ROUNDING * (size + gap)
