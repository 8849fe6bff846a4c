"""One face for learners that stand for rows by a few points of their space: k-means, mixtures, learning vector
quantisation, self-organising maps.

    cell(x) = argmin_j |x - p_j|,   the first of equals

The cells of the prototypes p_j are a Voronoi partition of the space.
"""

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner, read_rows, require_finite
from assay.data.blocks import Block


class PrototypeMixin:
    """What such a learner answers: `prototypes_`, (k, n_features), and `cells(X)`, the nearest of them for each row.

    A learner without a target inherits `cells` and has `prototypes_`, an array or a property. One that has a faster
    search, another distance or a target says so in a `cells` of its own.
    """

    prototypes_: Any

    def cells(self, X: Any) -> np.ndarray:
        """Return the number of the prototype that is nearest to each row, the first of equals: its Voronoi cell."""
        check_is_fitted(self)
        assert isinstance(self, Learner)
        rows = read_rows(self, X, None, reset=False)
        require_finite(rows, self)
        return np.concatenate(rows.map(_nearest, self.prototypes_))


def _nearest(block: Block, prototypes: np.ndarray) -> np.ndarray:
    return cdist(block.X, prototypes, "sqeuclidean").argmin(axis=1)
