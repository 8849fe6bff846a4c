"""Learners that answer from the nearest rows or prototypes: k nearest neighbours, neighbours within a radius, learning
vector quantisation.

Distances beyond Minkowski's are in `assay.metrics.distance` and serve as `metric=` here.
"""

from assay.borrowed import borrowed
from assay.neighbors._k_neighbors import KNeighborsClassifier, KNeighborsRegressor
from assay.neighbors._lvq import LearningVectorQuantization
from assay.neighbors._radius import NearestNeighbors, RadiusNeighborsClassifier, RadiusNeighborsRegressor

__all__ = [
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "LearningVectorQuantization",
    "NearestNeighbors",
    "RadiusNeighborsClassifier",
    "RadiusNeighborsRegressor",
]

__getattr__, __dir__ = borrowed(__name__, __all__)
