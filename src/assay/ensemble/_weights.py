"""Weights of members learnt from rows that the members did not see.

    minimise  F(w) = mean over rows and outputs of |sum_t w_t h_t(x) - y|^2   subject to  w >= 0, sum w = 1

y is the target, or for classes the one-hot label. Every member and the plain mean are points of the simplex, so none of
them has a smaller error on these rows. On other rows that need not hold: T weights fitted to few rows overfit them, and
if members are about equally good there is nothing to learn. `chosen_weights` therefore lets the rows decide.
"""

from typing import NamedTuple

import numpy as np

from assay.optim.constrained import QuadraticProgramme


class Learnt(NamedTuple):
    """Weights, how far their error can be above the least one, and whether they are those of the plain mean."""

    weights: np.ndarray
    gap: float
    simple: bool


def squared_error(outputs: np.ndarray, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the squared error of the weighted mean for each row; `outputs` is (rows, members, outputs)."""
    return ((np.einsum("t,itk->ik", weights, outputs) - target) ** 2).sum(axis=1)


def learnt_weights(outputs: np.ndarray, target: np.ndarray) -> Learnt:
    """Return the weights of least squared error over the simplex and a bound of the excess, <grad F, w> - min grad F.

    >>> said = np.array([[[1.0], [0.0]], [[2.0], [0.0]], [[3.0], [0.0]]])  # three rows, two members
    >>> learnt_weights(said, np.array([[1.0], [2.0], [3.0]])).weights.round(6).tolist()
    [1.0, 0.0]
    """
    m, T, _ = outputs.shape
    flat, y = outputs.transpose(0, 2, 1).reshape(-1, T), target.reshape(-1)
    scale = max(float(np.mean(flat * flat)), 1e-300)
    Q, p = flat.T @ flat / (len(flat) * scale), -flat.T @ y / (len(flat) * scale)
    found = QuadraticProgramme(2 * Q, 2 * p, np.eye(T), np.zeros(T), np.ones((1, T)), np.ones(1)).solve().u
    weights = np.where(found > 1e-9, found, 0.0)
    weights = weights / weights.sum()
    best = min([weights, *np.eye(T), np.full(T, 1 / T)], key=lambda w: float(squared_error(outputs, target, w).mean()))
    residual = np.einsum("t,itk->ik", best, outputs) - target
    slope = 2 * np.einsum("ik,itk->t", residual, outputs) / m
    return Learnt(best, max(0.0, float(slope @ best - slope.min())), False)


def chosen_weights(outputs: np.ndarray, target: np.ndarray) -> Learnt:
    """Return learnt weights if members differ so much that they pay on rows they were not learnt from, else equal ones.

    The rows are cut in two; weights learnt on one half are compared with equal weights on the other, and the learnt
    ones are taken if their error is lower by more than one standard error of the paired differences and by a hundredth.
    """
    m, T, _ = outputs.shape
    equal = np.full(T, 1 / T)
    if m >= 4:
        halves = np.arange(m) % 2 == 0
        gains, errors = [], []
        for half in (halves, ~halves):
            learnt = learnt_weights(outputs[half], target[half]).weights
            rest = outputs[~half], target[~half]
            errors.append(squared_error(*rest, equal))
            gains.append(errors[-1] - squared_error(*rest, learnt))
        gain = np.concatenate(gains)
        if gain.mean() > max(gain.std() / np.sqrt(m), 0.01 * float(np.concatenate(errors).mean())):
            return learnt_weights(outputs, target)
    return Learnt(equal, float("nan"), True)
