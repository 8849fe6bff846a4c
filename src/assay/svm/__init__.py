"""Support vector machines: classification, regression, novelty detection, with a kernel; and the textbook
route to them."""

from assay.borrowed import borrowed
from assay.svm._geometry import (
    canonical,
    distances,
    functional_margins,
    geometric_margin,
    intertwined_curves,
    margin_through_origin,
    problem_size,
    zero_one_soft_margin,
)
from assay.svm._lagrangian import Lagrangian, lagrangian
from assay.svm._linear import LinearSVC, LinearSVR
from assay.svm._platt_smo import smo
from assay.svm._reference_solvers import hinge_only
from assay.svm._svc import SVC, NuSVC
from assay.svm._svr import SVR, NuSVR, OneClassSVM

__all__ = [
    "SVC",
    "SVR",
    "Lagrangian",
    "LinearSVC",
    "LinearSVR",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "canonical",
    "distances",
    "functional_margins",
    "geometric_margin",
    "hinge_only",
    "intertwined_curves",
    "lagrangian",
    "margin_through_origin",
    "problem_size",
    "smo",
    "zero_one_soft_margin",
]

__getattr__, __dir__ = borrowed(__name__, __all__)
