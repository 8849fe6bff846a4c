"""Rows of a linear model with a little noise, for the tests of gradient descent."""

import numpy as np


def rows_of(seed, n=200, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ np.arange(1.0, d + 1) + 0.1 * rng.normal(size=n)
