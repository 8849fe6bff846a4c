"""Gaussian classes, their moments from the definitions, and a certificate or the reason why there is none."""

import numpy as np
import pytest

import assay


def draw(seed, n=400, d=4, classes=2):
    """Return Gaussian classes of different sizes with different means and spreads."""
    rng = np.random.default_rng(seed)
    y = rng.choice(classes, size=n, p=np.arange(1, classes + 1) / np.arange(1, classes + 1).sum())
    mix = rng.normal(size=(d, d))
    X = (rng.normal(size=(n, d)) @ mix) * (1 + 0.5 * y[:, None]) + 2 * rng.normal(size=(classes, d))[y] + 30
    return X, y


def parts(X, y):
    """Return class counts, means and scatter, straight from the definitions."""
    groups = [X[y == k] for k in np.unique(y)]
    means = np.array([g.mean(axis=0) for g in groups])
    scatter = np.array([(g - m).T @ (g - m) for g, m in zip(groups, means)])
    return np.array([len(g) for g in groups]), means, scatter


def certified_or_said_why_not(model, X, y):
    if model.covariance_estimator is not None:
        with pytest.raises(ValueError, match=r"covariance_estimator.* cannot be saved"):
            model.certify(X, y)
        return
    report = assay.verify(model.certify(X, y), model, X, y)
    assert report.holds, report.reason
