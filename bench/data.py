"""Generators of the benchmark data."""

import numpy as np


def regression(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return standard normal X and y = <w, x> + noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + rng.normal(size=n)


def classification(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return correlated X and labels drawn from the logistic model with weights of norm about 2."""
    rng = np.random.default_rng(seed)
    mix = np.eye(d) + 0.3 * rng.normal(size=(d, d)) / np.sqrt(d)
    X = rng.normal(size=(n, d)) @ mix
    score = X @ rng.normal(size=d) * 2 / np.sqrt(d) + 0.5
    return X, (score + rng.logistic(size=n) > 0).astype(np.int64)
