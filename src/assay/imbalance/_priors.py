"""Probabilities for other shares of the classes than those they were learnt with."""

from typing import Any

import numpy as np


def rescale(p: Any, ratio: Any) -> np.ndarray:
    """Return probabilities as if all classes were equally frequent.

    Of two classes, p the probability of the second and ratio = m+ / m-, the rows of the second over those of the first:

        p' / (1 - p') = p / (1 - p) * m- / m+

    so that p' > 1/2 exactly if p / (1 - p) > m+ / m-, that is p > m+ / (m+ + m-). Of more classes, p is (rows, classes)
    and ratio the shares (or numbers) of the classes: divide by them and by the sum.

    >>> round(float(rescale(0.1, 1 / 9)), 12)
    0.5
    >>> rescale([[0.6, 0.3, 0.1]], [6, 3, 1]).round(6).tolist()
    [[0.333333, 0.333333, 0.333333]]
    """
    p, ratio = np.asarray(p, dtype=np.float64), np.asarray(ratio, dtype=np.float64)
    if np.any(p < 0) or np.any(p > 1 + 1e-12) or not np.isfinite(ratio).all() or np.any(ratio <= 0):
        raise ValueError("rescale: p must hold probabilities, and ratio numbers > 0.")
    if ratio.ndim == 0:
        odds = p / float(ratio)
        return odds / (odds + (1 - p))
    if p.ndim != 2 or p.shape[1] != len(ratio):
        raise ValueError(f"rescale: p must be (rows, {len(ratio)}); got shape {p.shape}.")
    weighed = p / ratio
    return weighed / weighed.sum(axis=1, keepdims=True)


def prior_correction(p: Any, trained: Any, true: Any) -> np.ndarray:
    """Return the probabilities of a classifier that was fitted to rows with class shares `trained`, for data with
    shares `true`: p_k true_k / trained_k, divided by the sum. Exact if the rows of each class keep their
    distribution, as they do after a random choice of rows.

    >>> prior_correction([[0.5, 0.5]], [0.5, 0.5], [0.9, 0.1]).round(6).tolist()
    [[0.9, 0.1]]
    """
    trained, true = (np.asarray(part, dtype=np.float64) for part in (trained, true))
    if trained.shape != true.shape or np.any(true <= 0):
        raise ValueError("prior_correction: trained and true must hold a share > 0 for each class.")
    return rescale(p, trained / trained.sum() / (true / true.sum()))
