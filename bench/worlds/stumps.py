"""Stumps and random signs: uniform columns, the first of which tells the class at 0.4 up to noise."""

import numpy as np

from assay.theory import rademacher
from assay.theory.spaces import Stumps
from bench.worlds._case import case

DRAWS, SEED = 16, 0
THETA = 0.4


def average(X):
    """Return the mean over the signs of the largest correlation of a stump with them, as certificates do."""
    return rademacher.average(rademacher.of_space(Stumps(X.shape[1]), X), rademacher.signs(DRAWS, len(X), SEED)).value


def all_stumps(X, y, noise):
    """Return training error and risk of the stumps at the borders of every gap, for y in {0, 1}."""
    n, d = X.shape
    ones = noise + (1 - 2 * noise) * (1 - THETA)
    errors, risks = [], []
    for j in range(d):
        order = np.argsort(X[:, j])
        below = np.concatenate(([0], np.cumsum(2 * y[order] - 1)))
        wrong = (below + np.sum(y == 0)) / n  # second class above the border
        for edge in (np.concatenate(([0.0], X[order, j])), np.concatenate((X[order, j], [1.0]))):
            risk = noise + (1 - 2 * noise) * np.abs(edge - THETA) if j == 0 else ones * edge + (1 - ones) * (1 - edge)
            errors += [wrong, 1 - wrong]
            risks += [risk, 1 - risk]
    return np.concatenate(errors), np.concatenate(risks)


@case("rademacher.empirical", "all stumps of three columns at once, n = 1000, noise 0.1")
def every_stump(rng, delta):
    X = rng.random((1000, 3))
    y = ((X[:, 0] > THETA) ^ (rng.random(1000) < 0.1)).astype(int)
    errors, risks = all_stumps(X, y, 0.1)
    slack = rademacher.monte_carlo_error_bound(0.0, average(X), DRAWS, 1000, delta)
    return bool(np.any(risks > errors + slack)), float(errors.min()) + slack < 0.5


def best_on_coins(rng, n, d):
    """Return rows whose labels are coins, and values and training error of the best stump."""
    X, y = rng.random((n, d)), rng.choice([-1, 1], n)
    order = np.argsort(X, axis=0)
    edges = int(y.sum()) - 2 * np.cumsum(y[order], axis=0)
    i, j = np.unravel_index(np.abs(edges).argmax(), edges.shape)
    says = np.where(X[:, j] > X[order[i, j], j], 1, -1) * (1 if edges[i, j] > 0 else -1)
    return X, says, float(np.mean(says != y))


@case("rademacher.empirical", "best stump of 300 columns on coin labels, n = 150 (below one: informative)")
def stumps_on_coins(rng, delta):
    X, _, error = best_on_coins(rng, 150, 300)
    bound = rademacher.monte_carlo_error_bound(error, average(X), DRAWS, 150, delta)
    return bound < 0.5, bound < 1


@case(
    "rademacher.empirical",
    "best stump of 2000 columns on coin labels, its own correlation for the largest",
    control=True,
    rate=0.5,
)
def stump_for_the_supremum(rng, delta):
    """At delta = 1/2, where the deviation is small enough for the mistake to show."""
    _, says, error = best_on_coins(rng, 80, 2000)
    value = float(np.mean(rademacher.signs(DRAWS, 80, SEED) @ says)) / 80
    return rademacher.monte_carlo_error_bound(error, max(0.0, value), DRAWS, 80, 0.5) < 0.5, True
