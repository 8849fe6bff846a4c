"""How far apart rows are (`assay.metrics.distance`), and scores of clusterings that scikit-learn does not have, or is
slow at. Scores of predictions are scikit-learn's, used as they are; `class_scores` has precision, recall and F1 with
limits that hold for new data.

`sklearn.metrics` has adjusted_rand_score, davies_bouldin_score (the version with
distances to the centroid), calinski_harabasz_score and mutual information; they take the labels found here as they are.
"""

from assay.borrowed import borrowed
from assay.metrics._clusterings import (
    ClassScore,
    ClusterGeometry,
    Limited,
    PairCounts,
    class_scores,
    cluster_geometry,
    davies_bouldin,
    distance_correlation,
    dunn,
    fowlkes_mallows,
    jaccard,
    mean_similarities,
    pair_counts,
    rand_index,
    rmsstd,
    silhouette_samples,
    silhouette_score,
)

__all__ = [
    "ClassScore",
    "ClusterGeometry",
    "Limited",
    "PairCounts",
    "class_scores",
    "cluster_geometry",
    "davies_bouldin",
    "distance_correlation",
    "dunn",
    "fowlkes_mallows",
    "jaccard",
    "mean_similarities",
    "pair_counts",
    "rand_index",
    "rmsstd",
    "silhouette_samples",
    "silhouette_score",
]

__getattr__, __dir__ = borrowed(__name__, __all__)
