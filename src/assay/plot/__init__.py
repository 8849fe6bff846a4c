"""Figures of fitted models and of learning theory.

Every function returns a matplotlib Figure and shows nothing on the screen.

The numbers come from the function of the same name in `assay.plot.frames`. Drawing needs matplotlib:
`pip install assay[plot]`.
"""

from assay.plot.clusters import cluster_choice, clusters, explained_variance, silhouettes
from assay.plot.diagrams import cascade_growth, escapes, filters, network, u_matrix
from assay.plot.figures import (
    boundary,
    bounds,
    calibration,
    coefficients,
    confusion,
    default,
    history,
    rademacher,
    residuals,
    shattering,
)
from assay.plot.kernels import alphas, dual_gap, kernel_matrix, support_vectors
from assay.plot.linear import coefficient_path, descents, mistakes, projection, surface
from assay.plot.mixtures import components, density, ellipses
from assay.plot.neighbors import neighbor_distances
from assay.plot.networks import loss_curve, trial
from assay.plot.theory import information_curve, learning_curve, tightness, version_space
from assay.plot.trees import importance, margins, out_of_bag, row_weights, tree

__all__ = [
    "alphas",
    "boundary",
    "bounds",
    "calibration",
    "cascade_growth",
    "cluster_choice",
    "clusters",
    "coefficient_path",
    "coefficients",
    "components",
    "confusion",
    "default",
    "density",
    "descents",
    "dual_gap",
    "ellipses",
    "escapes",
    "explained_variance",
    "filters",
    "history",
    "importance",
    "information_curve",
    "kernel_matrix",
    "learning_curve",
    "loss_curve",
    "margins",
    "mistakes",
    "neighbor_distances",
    "network",
    "out_of_bag",
    "projection",
    "rademacher",
    "residuals",
    "row_weights",
    "shattering",
    "silhouettes",
    "support_vectors",
    "surface",
    "tightness",
    "tree",
    "trial",
    "u_matrix",
    "version_space",
]
