"""The multinomial logistic loss: class positions y = 0, ..., K - 1 and scores (n, K)."""

from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax, xlogy

from assay.losses._loss import Dual, Loss, within

_SIMPLEX = 1e-12  # how far rounding may put a row from the simplex


def _of_class(y: Any, shape: tuple[int, ...]) -> np.ndarray:
    own = np.zeros(shape)
    own[np.arange(shape[0]), np.asarray(y)] = 1.0
    return own


def _value(y: Any, F: Any) -> np.ndarray:
    F = np.asarray(F)
    return logsumexp(F, axis=1) - F[np.arange(len(F)), np.asarray(y)]


def _slope(y: Any, F: Any) -> np.ndarray:
    return softmax(F, axis=1) - _of_class(y, np.shape(F))


def _conjugate(y: Any, U: Any) -> np.ndarray:
    p = U + _of_class(y, np.shape(U))
    inside = (p.min(axis=1) >= -_SIMPLEX) & (np.abs(p.sum(axis=1) - 1.0) <= _SIMPLEX * p.shape[1])
    kept = np.maximum(p, 0.0)
    return within(inside, xlogy(kept, kept).sum(axis=1))


def _bracket(y: Any, F: Any, T: Any) -> np.ndarray:
    p = np.maximum(_of_class(y, np.shape(F)) - T, 0.0)
    log_q = F - logsumexp(F, axis=1, keepdims=True)
    return np.maximum((xlogy(p, p) - p * log_q).sum(axis=1), 0.0)


multinomial = Loss(
    "multinomial",
    _value,
    _slope,
    dual=Dual(_conjugate, lambda y, F: -_slope(y, F), _bracket, boxed=True),
)
"""logsumexp(F) - F_y; conjugate sum_k p_k ln p_k with p = U + e_y in the simplex: the bracket is the relative entropy
of p to softmax(F)."""
