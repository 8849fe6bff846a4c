"""The search alone: the nearest of the stored rows, without a target."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from sklearn.callback import with_callbacks

from assay.neighbors._base import Neighbors
from assay.neighbors._radius_search import RadiusSearch
from assay.params import Number


@dataclass(eq=False, repr=False)
class NearestNeighbors(RadiusSearch, Neighbors):
    """The k nearest of the rows it was fitted to, or all within a radius.

    Parameters
    ----------
    radius : float >= 0
        Of `radius_neighbors`.
    n_neighbors, algorithm, leaf_size, metric, p, metric_params, n_jobs
        As in `KNeighborsClassifier`.

    Examples
    --------
    >>> from assay.neighbors import NearestNeighbors
    >>> found = NearestNeighbors(n_neighbors=2).fit([[0.0], [1.0], [3.0]])
    >>> found.kneighbors([[0.8]], return_distance=False), found.kneighbors_graph().toarray()[0]
    (array([[1, 0]]), array([0., 1., 1.]))
    """

    family = "neighbors.rows"

    _: KW_ONLY
    n_neighbors: int = 5
    radius: float = 1.0

    constraints: ClassVar = {"radius": Number(low=0.0)}

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "NearestNeighbors":
        """Keep the rows X; y is not looked at."""
        self._keep(self._read(X, None), X, None)
        return self
