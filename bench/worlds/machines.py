"""Fitted learners whose true risk is known: what their certificates say, as a user meets it."""

import warnings

import numpy as np
from scipy.stats import norm

from assay.linear_model import LogisticRegression, Perceptron
from assay.svm import SVC
from assay.theory import concentration
from bench.worlds._case import case


def gaussians(rng, n, d, distance):
    """Two classes N(-mu, I) and N(mu, I), |mu| = distance."""
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    X = rng.normal(size=(n, d))
    X[:, 0] += distance * (2 * y - 1)
    return X, y


def gaussian_risk(w, b, distance):
    size, shift = np.linalg.norm(w), distance * w[0]
    return 0.5 * (norm.cdf(-(shift + b) / size) + norm.cdf((b - shift) / size))


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def told(model, X, y, delta, name):
    """The value of one claim when the whole delta is its own; 1 if it is not made."""
    for statement in model.statements(model._known_rows(X, y)):
        claim = statement(str(delta)) if callable(statement) else statement
        if claim.name == name:
            return getattr(claim, "value", 1.0)
    return 1.0


@case("pac-bayes.linear", "logistic regression on two Gaussians, n = 300")
def logistic_pac_bayes(rng, delta):
    X, y = gaussians(rng, 300, 3, 2.0)
    model = fitted(LogisticRegression(n_jobs=1), X, y)
    bound = told(model, X, y, delta, "pac-bayes.linear")
    return bound < gaussian_risk(model.coef_[0], model.intercept_[0], 2.0), bound < 0.5


@case("margin.kernel", "logistic regression on two Gaussians, n = 1500")
def logistic_margin(rng, delta):
    X, y = gaussians(rng, 1500, 3, 2.5)
    model = fitted(LogisticRegression(n_jobs=1), X, y)
    bound = told(model, X, y, delta, "margin.kernel")
    return bound < gaussian_risk(model.coef_[0], model.intercept_[0], 2.5), bound < 0.5


@case("compression.perceptron", "perceptron on two Gaussians, n = 200")
def perceptron_updates(rng, delta):
    X, y = gaussians(rng, 200, 2, 3.0)
    model = fitted(Perceptron(max_iter=20, random_state=0, n_jobs=1), X, y)
    bound = told(model, X, y, delta, "compression.perceptron")
    return bound < gaussian_risk(model.coef_[0], model.intercept_[0], 3.0), bound < 0.5


@case("compression.support-vectors", "support vectors of a linear kernel, two Gaussians, n = 200")
def linear_support(rng, delta):
    X, y = gaussians(rng, 200, 2, 2.5)
    model = fitted(SVC(kernel="linear", n_jobs=1), X, y)
    bound = told(model, X, y, delta, "compression.support-vectors")
    return bound < gaussian_risk(model.coef_[0], model.intercept_[0], 2.5), bound < 0.5


def interval(rng, n, flips):
    """Uniform x in [0, 1], class 1 in the middle half, some labels wrong."""
    x = rng.random(n)
    y = ((np.abs(x - 0.5) < 0.25) ^ (rng.random(n) < flips)).astype(int)
    y[:2] = 0, 1
    return x[:, None], y


GRID = (np.arange(4000)[:, None] + 0.5) / 4000


@case("compression.support-vectors", "support vectors of the Gaussian kernel, gamma told, an interval, n = 400")
def gaussian_support(rng, delta):
    X, y = interval(rng, 400, 0.02)
    model = fitted(SVC(kernel="rbf", gamma="scale", C=10.0, n_jobs=1), X, y)
    bound = told(model, X, y, delta, "compression.support-vectors")
    wrong = float(np.mean(model.predict(GRID) != (np.abs(GRID[:, 0] - 0.5) < 0.25)))
    return bound < 0.02 + 0.96 * wrong - 1e-3, bound < 0.6  # the grid is off by less than 1e-3


@case("compression.support-vectors", "support vectors on coin labels (below one: informative)")
def support_of_noise(rng, delta):
    X, y = rng.random((60, 1)), rng.integers(0, 2, 60)
    y[:2] = 0, 1
    bound = told(fitted(SVC(gamma=2000.0, C=1e3, n_jobs=1), X, y), X, y, delta, "compression.support-vectors")
    return bound < 0.5, bound < 1


@case("compression.support-vectors", "support vectors that are not paid for, coin labels", control=True)
def support_unpaid(rng, delta):
    X, y = rng.random((60, 1)), rng.integers(0, 2, 60)
    y[:2] = 0, 1
    kept = fitted(SVC(gamma=2000.0, C=1e3, n_jobs=1), X, y).support_
    others = np.setdiff1d(np.arange(60), kept)
    return len(others) > 0 and concentration.clopper_pearson_upper(0, len(others), delta) < 0.5, True
