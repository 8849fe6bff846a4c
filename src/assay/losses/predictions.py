"""Losses of predictions, Loss(y, f(x)): what risks are means of. Scores have theirs in `assay.losses`."""

import numpy as np
from numpy.typing import ArrayLike

from assay.losses._losses import absolute_error, squared_error


def zero_one(y: ArrayLike, prediction: ArrayLike) -> np.ndarray:
    """Return 1 where the prediction differs from y, else 0.

    >>> zero_one(["a", "b"], ["a", "c"]).tolist()
    [0.0, 1.0]
    """
    return (np.asarray(y) != np.asarray(prediction)).astype(np.float64)


def squared(y: ArrayLike, prediction: ArrayLike) -> np.ndarray:
    """Return (y - f)^2, twice `assay.losses.squared_error`.

    >>> squared([1.0], [3.0]).tolist()
    [4.0]
    """
    return 2.0 * squared_error.value(np.asarray(y, dtype=np.float64), np.asarray(prediction, dtype=np.float64))


def absolute(y: ArrayLike, prediction: ArrayLike) -> np.ndarray:
    """Return |y - f|.

    >>> absolute([1.0], [3.0]).tolist()
    [2.0]
    """
    return absolute_error.value(np.asarray(y, dtype=np.float64), np.asarray(prediction, dtype=np.float64))


def log_loss(y: ArrayLike, probability: ArrayLike) -> np.ndarray:
    """Return -ln P(y | x) for labels 0..K-1 and rows of class probabilities, clipped away from 0 by 1e-15.

    >>> log_loss([0], [[1.0, 0.0]]).tolist() == [0.0]
    True
    """
    labels, p = np.asarray(y), np.asarray(probability, dtype=np.float64)
    if p.ndim != 2 or labels.shape != (len(p),) or labels.dtype.kind not in "iu" or labels.max() >= p.shape[1]:
        raise ValueError(f"y must be integers below the number of columns of the probabilities {p.shape}.")
    if not np.allclose(p.sum(axis=1), 1.0) or p.min() < 0.0:
        raise ValueError("each row of probabilities must be non-negative and add up to 1.")
    return -np.log(np.clip(p[np.arange(len(p)), labels], 1e-15, None))
