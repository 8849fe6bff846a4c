"""Clustering: k-means, exactly on one column, or by mini-batches; k-medoids; modes and
prototypes of names; how many clusters there are."""

from assay.borrowed import borrowed
from assay.cluster._kmeans import KMeans
from assay.cluster._kmedoids import KMedoids
from assay.cluster._kprototypes import KModes, KPrototypes
from assay.cluster._mini_batch import MiniBatchKMeans
from assay.cluster._n_clusters import Sweep, sweep

__all__ = ["KMeans", "KMedoids", "KModes", "KPrototypes", "MiniBatchKMeans", "Sweep", "sweep"]

__getattr__, __dir__ = borrowed(__name__, __all__)
