"""Decomposition: principal components, in the columns and in the space of a kernel, and singular values."""

from assay.borrowed import borrowed
from assay.decomposition._kernel_pca import KernelPCA
from assay.decomposition._pca import PCA
from assay.decomposition._topics import LatentDirichletAllocation
from assay.decomposition._topics_data import TopicNumbers, number_of_topics
from assay.decomposition._truncated_svd import RankedSVD, TruncatedSVD, svd_with_rank

__all__ = [
    "PCA",
    "KernelPCA",
    "LatentDirichletAllocation",
    "RankedSVD",
    "TopicNumbers",
    "TruncatedSVD",
    "number_of_topics",
    "svd_with_rank",
]

__getattr__, __dir__ = borrowed(__name__, __all__)
