"""The names of scikit-learn's `feature_extraction.text`."""

from assay.borrowed import borrowed

__getattr__, __dir__ = borrowed(__name__)
