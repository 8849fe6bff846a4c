"""Clustering: k-means, exactly where rows have one column, and the choice of the number of clusters."""

from assay.cluster._choice import Sweep, sweep
from assay.cluster._kmeans import KMeans

__all__ = ["KMeans", "Sweep", "sweep"]
