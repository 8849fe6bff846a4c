"""Naive Bayes, for numbers, counts, levels and tables that mix them, and its relatives with one or two parents."""

from assay.borrowed import borrowed
from assay.naive_bayes._averaged import A2DE, AODE
from assay.naive_bayes._base import ZeroProbabilityWarning
from assay.naive_bayes._columns import DegenerateVarianceWarning
from assay.naive_bayes._counts import BernoulliNB, ComplementNB, MultinomialNB, PoissonNB
from assay.naive_bayes._dependence import SPODE, TAN, OneDependence
from assay.naive_bayes._gaussian import CategoricalNB, GaussianNB, MixedNB

__all__ = [
    "A2DE",
    "AODE",
    "SPODE",
    "TAN",
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "DegenerateVarianceWarning",
    "GaussianNB",
    "MixedNB",
    "MultinomialNB",
    "OneDependence",
    "PoissonNB",
    "ZeroProbabilityWarning",
]

__getattr__, __dir__ = borrowed(__name__, __all__)
