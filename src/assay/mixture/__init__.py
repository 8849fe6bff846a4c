"""Mixtures and densities: Gaussian mixtures by EM, one Gaussian, histograms, and the classifier that mixtures make.

A Gaussian is a mixture of one component and a histogram one of uniform cells, so that every density is in this room.
"""

from assay.mixture._classifier import GaussianMixtureClassifier
from assay.mixture._components import DegenerateComponentWarning
from assay.mixture._gaussian_density import GaussianDensity
from assay.mixture._gaussian_mixture import GaussianMixture
from assay.mixture._histogram import HistogramDensity
from assay.mixture._latent import Coins, KnownVariance, NaiveBayesWithGaps, Tables, ThreeCoins

__all__ = [
    "Coins",
    "DegenerateComponentWarning",
    "GaussianDensity",
    "GaussianMixture",
    "GaussianMixtureClassifier",
    "HistogramDensity",
    "KnownVariance",
    "NaiveBayesWithGaps",
    "Tables",
    "ThreeCoins",
]
