"""Kernel functions: named kernels, their algebra, Gram matrices, tests of positive semidefiniteness and
spaces of functions.

from assay.kernels import Gaussian, Linear
K = (Gaussian(gamma=0.5) + 2 * Linear())(X)
"""

from assay.kernels._algebra import (
    Function,
    Gaussian,
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
)
from assay.kernels._choice import choose_kernel, median_gamma, named_kernel
from assay.kernels._histogram import HistogramIntersection
from assay.kernels._plain import from_plain
from assay.kernels._psd import Definiteness, IndefiniteKernelWarning, definiteness, embedding, find_counterexample
from assay.kernels._rkhs import Expansion

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
