"""The usual scores of a classifier on rows that it was not fitted to, each with limits that hold for new data.

Of the m_k rows that are said to be of class k, c_k are; of the n_k rows of class k, c_k are found:

    precision  P_k = c_k / m_k        recall  R_k = c_k / n_k        F1_k = 2 / (1 / P_k + 1 / R_k)

Given m_k, c_k is binomial with the precision on new data, and given n_k with the recall there, so that both have the
limits of Clopper and Pearson; F1 grows with both, so that it has limits of theirs. All of them hold at once with
probability 1 - delta: each of the 4 K ends fails with probability at most delta / (4 K).
"""

from typing import Any, NamedTuple

import numpy as np

from assay.theory.concentration import clopper_pearson_lower, clopper_pearson_upper


class Limited(NamedTuple):
    """A share that was counted, and limits of the one on new data; NaN, 0 and 1 if there is no row to count."""

    value: float
    low: float
    high: float


class ClassScore(NamedTuple):
    """What is known of one class: how many rows it has, how many are said to be of it, and its scores."""

    label: Any
    rows: int
    said: int
    precision: Limited
    recall: Limited
    f1: Limited


def class_scores(y: Any, said: Any, delta: float = 0.05) -> list[ClassScore]:
    """Return precision, recall and F1 of each class, with limits that all hold at once for new data.

    `y` are the true labels of independent rows that had no part in fitting or choosing the classifier, and `said` what
    it says of them. Labels that are neither said nor true have no place.

    >>> found = class_scores(["cat", "cat", "dog", "dog"], ["cat", "dog", "dog", "dog"])
    >>> [(one.label, one.precision.value, one.recall.value) for one in found]
    [('cat', 1.0, 0.5), ('dog', 0.6666666666666666, 1.0)]
    >>> found[0].precision.low < 0.1 < 1.0 == found[0].precision.high
    True
    """
    true, told = np.asarray(y), np.asarray(said)
    if true.shape != told.shape or true.ndim != 1 or not len(true):
        raise ValueError(f"class_scores: needs one label and one answer for each row; got {true.shape}, {told.shape}.")
    labels = np.unique(np.concatenate([true, told]))
    each, found = delta / (4 * len(labels)), []
    for label in labels.tolist():
        own, claimed = true == label, told == label
        right = int(np.sum(own & claimed))
        precision, recall = (_limited(right, int(part.sum()), each) for part in (claimed, own))
        f1 = Limited(*(_f1(p, r) for p, r in zip(precision, recall)))
        found.append(ClassScore(label, int(own.sum()), int(claimed.sum()), precision, recall, f1))
    return found


def _limited(right: int, rows: int, delta: float) -> Limited:
    if not rows:
        return Limited(np.nan, 0.0, 1.0)
    return Limited(right / rows, clopper_pearson_lower(right, rows, delta), clopper_pearson_upper(right, rows, delta))


def _f1(precision: float, recall: float) -> float:
    """Return F1, 0 where either is 0 or nothing was counted, as scikit-learn has it."""
    return 2 / (1 / precision + 1 / recall) if precision > 0 and recall > 0 else 0.0
