"""Decompositions: fewer columns that keep most of what the rows vary in."""

from assay.decomposition._kernel_pca import KernelPCA

__all__ = ["KernelPCA"]
