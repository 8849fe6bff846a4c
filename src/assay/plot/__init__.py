"""Figures of fitted models and of learning theory.

Every function returns a matplotlib Figure and shows nothing on the screen.

The numbers come from the function of the same name in `assay.plot.frames`. Drawing needs matplotlib:
`pip install assay[plot]`.
"""

from assay.plot.bayes import tables
from assay.plot.bayes_nets import dependency_graph
from assay.plot.clusters import cluster_choice, clusters, explained_variance, loadings, prototypes, silhouettes
from assay.plot.combining import (
    code_matrix,
    costs,
    diversity_matrices,
    final_member,
    kappa_errors,
    members,
    rejection,
    wrapped,
)
from assay.plot.diagrams import cascade_growth, escapes, filters, network, u_matrix
from assay.plot.figures import (
    boundary,
    bounds,
    calibration,
    coefficients,
    confusion,
    default,
    histogram,
    history,
    rademacher,
    residuals,
    shattering,
)
from assay.plot.hidden import state_sequence, topic_words, transitions
from assay.plot.kernels import alphas, dual_gap, kernel_matrix, support_vectors
from assay.plot.linear import coefficient_path, descents, mistakes, projection, surface, votes
from assay.plot.mixtures import components, density, ellipses
from assay.plot.neighbors import label_certainty, neighbor_counts, neighbor_distances
from assay.plot.networks import loss_curve, trial
from assay.plot.theory import (
    information_curve,
    learning_curve,
    structural_risk,
    surrogate_losses,
    tightness,
    version_space,
)
from assay.plot.trees import importance, margins, out_of_bag, row_weights, tree

__all__ = [
    "alphas",
    "boundary",
    "bounds",
    "calibration",
    "cascade_growth",
    "cluster_choice",
    "clusters",
    "code_matrix",
    "coefficient_path",
    "coefficients",
    "components",
    "confusion",
    "costs",
    "default",
    "density",
    "dependency_graph",
    "descents",
    "diversity_matrices",
    "dual_gap",
    "ellipses",
    "escapes",
    "explained_variance",
    "filters",
    "final_member",
    "histogram",
    "history",
    "importance",
    "information_curve",
    "kappa_errors",
    "kernel_matrix",
    "label_certainty",
    "learning_curve",
    "loadings",
    "loss_curve",
    "margins",
    "members",
    "mistakes",
    "neighbor_counts",
    "neighbor_distances",
    "network",
    "out_of_bag",
    "projection",
    "prototypes",
    "rademacher",
    "rejection",
    "residuals",
    "row_weights",
    "shattering",
    "silhouettes",
    "state_sequence",
    "structural_risk",
    "support_vectors",
    "surface",
    "surrogate_losses",
    "tables",
    "tightness",
    "topic_words",
    "transitions",
    "tree",
    "trial",
    "u_matrix",
    "version_space",
    "votes",
    "wrapped",
]
