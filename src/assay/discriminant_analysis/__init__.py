"""Discriminant analysis: Fisher's directions, and Gaussian classes with one covariance or one each,
and Fisher's directions in the space of a kernel."""

from assay.borrowed import borrowed
from assay.discriminant_analysis._kernel import KernelDiscriminantAnalysis
from assay.discriminant_analysis._lda import LinearDiscriminantAnalysis, SingularScatterWarning
from assay.discriminant_analysis._qda import QuadraticDiscriminantAnalysis
from assay.discriminant_analysis._scatter import (
    Scatter,
    TraceRatio,
    between_two_classes,
    fisher_direction,
    fisher_ratio,
    scatter_matrices,
    trace_ratio,
)

__all__ = [
    "KernelDiscriminantAnalysis",
    "LinearDiscriminantAnalysis",
    "QuadraticDiscriminantAnalysis",
    "Scatter",
    "SingularScatterWarning",
    "TraceRatio",
    "between_two_classes",
    "fisher_direction",
    "fisher_ratio",
    "scatter_matrices",
    "trace_ratio",
]

__getattr__, __dir__ = borrowed(__name__, __all__)
