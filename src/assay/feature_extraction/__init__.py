"""Features of texts, pictures and contours: transformers that pipelines clone and model files keep.

scikit-learn's vectorisers are its own; `token_pattern=LETTERS` gives them the words of the notes.
"""

from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer

from assay.borrowed import borrowed
from assay.feature_extraction._dictionary import LETTERS, Dictionary
from assay.feature_extraction._image import (
    BagOfVisualWords,
    DensePatches,
    FourierContour,
    as_image,
    curve,
    descriptors,
    fourier,
    grid,
)

__all__ = [
    "LETTERS",
    "BagOfVisualWords",
    "CountVectorizer",
    "DensePatches",
    "Dictionary",
    "FourierContour",
    "HashingVectorizer",
    "TfidfTransformer",
    "TfidfVectorizer",
    "as_image",
    "curve",
    "descriptors",
    "fourier",
    "grid",
]

__getattr__, __dir__ = borrowed(__name__, __all__)
