"""The names of scikit-learn's `metrics.pairwise`."""

from assay.borrowed import borrowed

__getattr__, __dir__ = borrowed(__name__)
