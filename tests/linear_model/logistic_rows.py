"""Rows of several classes, the penalised logistic loss by a formula of its own, and scikit-learn's learner."""

import numpy as np
import sklearn.linear_model as peers
from scipy.special import log_softmax


def data(seed, n=150, d=4, classes=2, spread=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    W = rng.normal(size=(classes, d)) * spread
    noise = rng.gumbel(size=(n, classes))
    return X, np.argmax(X @ W.T + noise, axis=1), rng.uniform(0.2, 3.0, n)


def objective(X, y, coef, intercept, C, weight=None, class_weight=None):
    """Return 1/2 |W|^2 + sum C_i (logsumexp(s_i) - s_i,y), by another formula than the learner's."""
    scores = X @ np.atleast_2d(coef).T + intercept
    if scores.shape[1] == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    s = np.ones(len(y)) if weight is None else weight
    s = s if class_weight is None else s * np.asarray(class_weight)[y]
    loss = -log_softmax(scores, axis=1)[np.arange(len(y)), y] @ s
    return loss if np.isinf(C) else 0.5 * np.sum(np.square(coef)) + C * loss


def peer(C, **options):
    penalty = {"C": 1e300} if np.isinf(C) else {"C": C}
    return peers.LogisticRegression(tol=1e-12, max_iter=100_000, **penalty, **options)
