"""Clustering: k-means, exactly where rows have one column."""

from assay.cluster._kmeans import KMeans

__all__ = ["KMeans"]
