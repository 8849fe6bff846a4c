"""Support vector machines: classification, regression, novelty detection, with a kernel or linear."""

from assay.svm._svc import SVC, NuSVC
from assay.svm._svr import SVR, NuSVR, OneClassSVM

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"]
