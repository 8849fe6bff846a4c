"""Weights of classes in forests: given, or such that all classes count alike."""

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

from assay.params import refuse

PRESETS = ("balanced", "balanced_subsample")


class ClassWeight:
    """None, "balanced", "balanced_subsample", a dict, or a list of dicts for several outputs."""

    @staticmethod
    def check(owner: Any, name: str) -> Any:
        asked = getattr(owner, name)
        if asked is None or isinstance(asked, (dict, list)) or (isinstance(asked, str) and asked in PRESETS):
            return asked
        raise refuse(
            owner,
            f"the valid presets for class_weight include 'balanced' and 'balanced_subsample'; a dict, a list of dicts "
            f"or None will do too; got {asked!r}.",
        )


def labels_of(classes: Any, codes: np.ndarray) -> np.ndarray:
    """Return the labels of positions, (rows,) or (rows, outputs)."""
    if not isinstance(classes, list):
        return classes[codes]
    return np.column_stack([own[column] for own, column in zip(classes, codes.T)])


def class_factors(asked: Any, classes: Any, codes: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return the factor of each row's weight; of several outputs the product."""
    if isinstance(asked, (dict, list)):
        return compute_sample_weight(asked, labels_of(classes, codes))
    outputs = zip(classes, codes.T) if isinstance(classes, list) else [(classes, codes)]
    factor = np.ones(len(codes))
    for own, column in outputs:
        each = compute_class_weight("balanced", classes=np.arange(len(own)), y=column, sample_weight=weight)
        factor *= each[column]
    return factor


def balanced_in(codes: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the factor of every row that makes the classes count alike among the rows drawn, 0 for classes that were
    not drawn."""
    return compute_sample_weight("balanced", codes, indices=rows)
