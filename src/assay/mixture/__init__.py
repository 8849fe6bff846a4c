"""Mixtures and densities: Gaussian mixtures by EM, one Gaussian, histograms, and the classifier that mixtures make.

A Gaussian is a mixture of one component and a histogram one of uniform cells, so that every density is in this room.
Small models for `assay.optim.em.em`, such as the three coins, are in `assay.mixture.latent`.
"""

from assay.borrowed import borrowed
from assay.mixture._classifier import GaussianMixtureClassifier
from assay.mixture._components import DegenerateComponentWarning
from assay.mixture._gaussian_mixture import GaussianDensity, GaussianMixture
from assay.mixture._histogram import HistogramDensity

__all__ = [
    "DegenerateComponentWarning",
    "GaussianDensity",
    "GaussianMixture",
    "GaussianMixtureClassifier",
    "HistogramDensity",
]

__getattr__, __dir__ = borrowed(__name__, __all__)
