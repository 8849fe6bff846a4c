"""Many classes from classifiers of two: one against one, one against the rest, and codes that correct errors."""

from assay.borrowed import borrowed
from assay.multiclass._codes import bch_code, code_distance, exhaustive_code, pairs_code, random_code, ternary_code
from assay.multiclass._output_codes import OutputCodeClassifier
from assay.multiclass._reductions import OneVsOneClassifier, OneVsRestClassifier

__all__ = [
    "OneVsOneClassifier",
    "OneVsRestClassifier",
    "OutputCodeClassifier",
    "bch_code",
    "code_distance",
    "exhaustive_code",
    "pairs_code",
    "random_code",
    "ternary_code",
]

__getattr__, __dir__ = borrowed(__name__, __all__)
