"""Rows of two classes, separable and not, and what the tests of machines read from a fit."""

import numpy as np

THREE = np.array([[3.0, 3.0], [4.0, 3.0], [1.0, 1.0]])
SIGNS = np.array([1.0, 1.0, -1.0])


def separable(seed=0, n=30):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    y = np.where(X @ [1.0, 0.5] > 0.1, 1.0, -1.0)
    return X + 0.4 * y[:, None] * np.array([1.0, 0.5]), y


def overlapping(seed=0, n=40):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    return X, np.where(X[:, 0] + 0.7 * random.normal(size=n) > 0, 1.0, -1.0)


def beta_of(model, n):
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_[0]
    return beta
