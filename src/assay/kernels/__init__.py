"""Kernel functions: named kernels, their algebra, Gram matrices, tests of positive semidefiniteness and
spaces of functions.

from assay.kernels import Gaussian, Linear
K = (Gaussian(gamma=0.5) + 2 * Linear())(X)
"""

from assay.kernels._algebra import (
    Function,
    Gaussian,
    HistogramIntersection,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    PowerSeries,
    Precomputed,
    Product,
    Rescaled,
    Scaled,
    Sigmoid,
    Sum,
    choose_kernel,
    from_plain,
    median_gamma,
    named_kernel,
)
from assay.kernels._tiles import (
    Definiteness,
    Expansion,
    IndefiniteKernelWarning,
    definiteness,
    embedding,
    find_counterexample,
)

__all__ = [
    "Definiteness",
    "Expansion",
    "Function",
    "Gaussian",
    "HistogramIntersection",
    "IndefiniteKernelWarning",
    "Kernel",
    "Laplacian",
    "Linear",
    "Polynomial",
    "PowerSeries",
    "Precomputed",
    "Product",
    "Rescaled",
    "Scaled",
    "Sigmoid",
    "Sum",
    "choose_kernel",
    "definiteness",
    "embedding",
    "find_counterexample",
    "from_plain",
    "median_gamma",
    "named_kernel",
]
