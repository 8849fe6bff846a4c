"""Clustering: k-means, exactly where rows have one column, and the choice of the number of clusters."""

from assay.cluster._kmeans import KMeans
from assay.cluster._n_clusters import Sweep, sweep

__all__ = ["KMeans", "Sweep", "sweep"]
