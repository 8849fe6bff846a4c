"""Directions that tell two groups of rows apart: how a node of an oblique tree finds its linear combination.

Each function gets rows X (n, d) with columns of mean 0 and deviation 1, signs s in {-1, 1} and weights w > 0, and
returns a vector of length d. Only the direction matters: the threshold is found afterwards by trying every threshold.
"""

from collections.abc import Callable

import numpy as np

from assay.jit import compiled
from assay.losses import log_loss

_STEPS = 30
_EPOCHS = 50


def discriminant(X: np.ndarray, s: np.ndarray, w: np.ndarray, seed: int) -> np.ndarray:
    """Return Fisher's direction: within-group covariance^-1 (mean of the one group - mean of the other)."""
    one, other = s > 0, s < 0
    means = [np.average(X[side], axis=0, weights=w[side]) for side in (one, other)]
    centred = X - np.where(one[:, None], means[0], means[1])
    within = (centred * w[:, None]).T @ centred / w.sum()
    return np.linalg.solve(within + 1e-6 * np.eye(X.shape[1]), means[0] - means[1])


def logistic(X: np.ndarray, s: np.ndarray, w: np.ndarray, seed: int) -> np.ndarray:
    """Return the slopes that minimise  sum_i w_i log(1 + exp(-s_i (<x_i, v> + b))) + |v|^2 / 200  (Newton's method)."""
    A = np.column_stack([X, np.ones(len(X))])
    penalty = np.append(np.full(X.shape[1], 0.01), 1e-9)
    v = np.zeros(A.shape[1])

    def objective(v: np.ndarray) -> float:
        return float((w * log_loss.value(s, A @ v)).sum() + 0.5 * (penalty * v * v).sum())

    value = objective(v)
    for _ in range(_STEPS):
        p = 0.5 * (1.0 - np.tanh(0.5 * s * (A @ v)))  # probability given to the wrong sign
        gradient = penalty * v - A.T @ (w * s * p)
        hessian = (A * (w * p * (1 - p))[:, None]).T @ A + np.diag(penalty)
        step = np.linalg.solve(hessian, gradient)
        rate = 1.0
        while objective(v - rate * step) > value and rate > 1e-6:
            rate /= 2
        v = v - rate * step
        before, value = value, objective(v)
        if before - value <= 1e-9 * before:
            break
    return v[:-1]


def perceptron(X: np.ndarray, s: np.ndarray, w: np.ndarray, seed: int) -> np.ndarray:
    """Return the slopes, among those after each pass of the perceptron rule, with the least weight of mistakes."""
    rng = np.random.default_rng(seed)
    v, best, least = np.zeros(X.shape[1] + 1), np.zeros(X.shape[1] + 1), np.inf
    for _ in range(_EPOCHS):
        pass_over(X, s, rng.permutation(len(X)), v)
        mistakes = w[s * (X @ v[:-1] + v[-1]) <= 0].sum()
        if mistakes < least:
            best, least = v.copy(), mistakes
        if least == 0:
            break
    return best[:-1]


@compiled
def pass_over(X, s, order, v):
    """Add s_i (x_i, 1) to v (d + 1,) for each row i, in this order, that v gets wrong."""
    d = X.shape[1]
    for i in order:
        score = v[d]
        for j in range(d):
            score += X[i, j] * v[j]
        if s[i] * score <= 0:
            for j in range(d):
                v[j] += s[i] * X[i, j]
            v[d] += s[i]


DIRECTIONS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]] = {
    "logistic": logistic,
    "lda": discriminant,
    "perceptron": perceptron,
}
