"""Kernel ridge regression."""

from assay.kernel_ridge._kernel_ridge import KernelRidge

__all__ = ["KernelRidge"]
