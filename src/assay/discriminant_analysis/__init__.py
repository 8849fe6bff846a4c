"""Discriminant analysis: Fisher's directions, and Gaussian classes with one covariance or one each."""

from assay.discriminant_analysis._lda import LinearDiscriminantAnalysis, SingularScatterWarning
from assay.discriminant_analysis._qda import QuadraticDiscriminantAnalysis
from assay.discriminant_analysis._scatter import (
    Scatter,
    TraceRatio,
    fisher_direction,
    fisher_ratio,
    scatter_matrices,
    trace_ratio,
)

__all__ = [
    "LinearDiscriminantAnalysis",
    "QuadraticDiscriminantAnalysis",
    "Scatter",
    "SingularScatterWarning",
    "TraceRatio",
    "fisher_direction",
    "fisher_ratio",
    "scatter_matrices",
    "trace_ratio",
]
