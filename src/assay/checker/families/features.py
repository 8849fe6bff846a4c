"""Transformers: stored and loaded, with no claim and no prediction of their own.

Arrays: "columns", a map of given columns, has `n_features_in_`; "cuts" `thresholds_` (d,) and `divided_` (d,) of 0 and
1; "scaled" `center_` and `factor_` >= 0, (d,); "dictionary" `words_`, text, sorted; "patches" `shape_` (2,), height
and width; "visual-words" also `vocabulary_` (words, length of a descriptor); "contour" `points_`, the number of points.
"""

import itertools
import math
from typing import Any

import numpy as np

from assay.checker.family import NUMBERS, TEXT, WHOLE, Family, Variant
from assay.checker.predictors import Predictor
from assay.checker.record import Rejected

_LARGEST = 2**26


class Transformer(Predictor):
    """A model that makes other columns of the rows and decides nothing."""

    def __init__(self, columns: int):
        self._columns = columns

    @property
    def columns(self) -> int:
        return self._columns


def _size(values: np.ndarray, name: str) -> int:
    """Return the product of positive whole numbers."""
    if values.ndim > 1 or np.any(values < 1) or np.any(values > _LARGEST):
        raise Rejected(f"{name} must be whole numbers of at least 1")
    size = math.prod(values.ravel().tolist())
    if size > _LARGEST:
        raise Rejected(f"{name} stands for {size} numbers; there may be {_LARGEST}")
    return size


def read_columns(columns: np.ndarray, classes: Any) -> Transformer:
    if columns.shape != ():
        raise Rejected("n_features_in_ must be one number")
    return Transformer(_size(columns, "n_features_in_"))


def read_cuts(thresholds: np.ndarray, divided: np.ndarray, classes: Any) -> Transformer:
    if thresholds.ndim != 1 or not len(thresholds) or divided.shape != thresholds.shape:
        raise Rejected("thresholds_ and divided_ must have a number for each column")
    if not np.isin(divided, (0, 1)).all():
        raise Rejected("divided_ is 0 or 1")
    return Transformer(len(thresholds))


def read_scaled(center: np.ndarray, factor: np.ndarray, classes: Any) -> Transformer:
    if center.ndim != 1 or not len(center) or factor.shape != center.shape or factor.min() < 0:
        raise Rejected("center_ and factor_ must have a number for each column, the second not below 0")
    return Transformer(len(center))


def read_dictionary(words: np.ndarray, classes: Any) -> Transformer:
    listed = words.tolist()
    if words.ndim != 1 or not listed or any(a >= b for a, b in itertools.pairwise(listed)):
        raise Rejected("words_ must be distinct words in order")
    return Transformer(1)


def read_patches(shape: np.ndarray, classes: Any) -> Transformer:
    if shape.shape != (2,):
        raise Rejected("shape_ must be height and width")
    return Transformer(_size(shape, "shape_"))


def read_visual_words(shape: np.ndarray, vocabulary: np.ndarray, classes: Any) -> Transformer:
    if vocabulary.ndim != 2 or not vocabulary.size:
        raise Rejected("vocabulary_ must have a row for each word")
    return read_patches(shape, classes)


def read_contour(points: np.ndarray, classes: Any) -> Transformer:
    if points.shape != ():
        raise Rejected("points_ must be one number")
    return Transformer(2 * _size(points, "points_"))


FAMILY = Family(
    "features",
    {
        "columns": Variant({"n_features_in_": WHOLE}, read_columns, target=False),
        "cuts": Variant({"thresholds_": NUMBERS, "divided_": WHOLE}, read_cuts, target=False),
        "scaled": Variant({"center_": NUMBERS, "factor_": NUMBERS}, read_scaled, target=False),
        "dictionary": Variant({"words_": TEXT}, read_dictionary, target=False),
        "patches": Variant({"shape_": WHOLE}, read_patches, target=False, wide=True),
        "visual-words": Variant({"shape_": WHOLE, "vocabulary_": NUMBERS}, read_visual_words, target=False, wide=True),
        "contour": Variant({"points_": WHOLE}, read_contour, target=False),
    },
)
