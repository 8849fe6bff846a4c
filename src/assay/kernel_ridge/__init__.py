"""Kernel ridge regression."""

from assay.borrowed import borrowed
from assay.kernel_ridge._kernel_ridge import KernelRidge

__all__ = ["KernelRidge"]

__getattr__, __dir__ = borrowed(__name__, __all__)
