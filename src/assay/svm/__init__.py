"""Support vector machines: classification, regression and novelty detection. `assay.textbook.svm` has the theory."""

from assay.borrowed import borrowed
from assay.svm._linear import LinearSVC, LinearSVR
from assay.svm._reference_solvers import problem_size
from assay.svm._svc import SVC, NuSVC
from assay.svm._svr import SVR, NuSVR, OneClassSVM

__all__ = [
    "SVC",
    "SVR",
    "LinearSVC",
    "LinearSVR",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "problem_size",
]

__getattr__, __dir__ = borrowed(__name__, __all__)
