"""Margins: Gaussians, directions, boosted thresholds, regression."""

import math

import numpy as np
from scipy.stats import norm

from assay.theory import (
    margin,
    rademacher,
)
from assay.theory._patterns import best_threshold
from assay.theory.spaces import SignedThresholds
from bench.worlds._case import case
from bench.worlds.classes import THETA


@case("margin.kernel", "two Gaussians five units apart, class means as weights, n = 3000")
def kernel_margin(rng, delta):
    y = rng.choice([-1, 1], 3000)
    X = y[:, None] * np.array([2.5, 0.0]) + rng.normal(size=(3000, 2))
    w = (y[:, None] * X).mean(axis=0)
    size = float(np.linalg.norm(w))
    bound = margin.kernel_margin_bound(y * (X @ w), size, float((X * X).sum()), delta).bound
    return bound < norm.cdf(-2.5 * w[0] / size), bound < 0.5


@case("margin.kernel", "the same with a free bias, n = 6000")
def kernel_margin_bias(rng, delta):
    y = rng.choice([-1, 1], 6000)
    X = y[:, None] * np.array([2.5, 0.0]) + np.array([0.3, 0.0]) + rng.normal(size=(6000, 2))
    centre = (X[y == 1].mean(axis=0) + X[y == -1].mean(axis=0)) / 2
    w = X[y == 1].mean(axis=0) - X[y == -1].mean(axis=0)
    b, size = -float(w @ centre), float(np.linalg.norm(w))
    bound = margin.kernel_margin_bound(y * (X @ w + b), size, float((X * X).sum()), delta, bias=b).bound
    risk = np.mean([norm.cdf(-s * (w @ (s * np.array([2.5, 0.0]) + [0.3, 0.0]) + b) / size) for s in (1, -1)])
    return bound < risk, bound < 0.5


CORNERS = np.array([[math.cos(a), math.sin(a)] for a in (0, 2 * math.pi / 3, 4 * math.pi / 3)])


@case("margin.multiclass", "three directions, 10 % wrong labels, class means as weights, n = 3000")
def multiclass_margin(rng, delta):
    place, n = rng.integers(0, 3, 3000), 3000
    y = np.where(rng.random(n) < 0.1, (place + rng.integers(1, 3, n)) % 3, place)
    X = CORNERS[place]
    W = np.array([X[y == k].mean(axis=0) for k in range(3)])
    scores = X @ W.T
    own = scores[np.arange(n), y]
    scores[np.arange(n), y] = -np.inf
    size = float(np.linalg.norm(W))
    bound = margin.multiclass_margin_bound(own - scores.max(axis=1), size, float(n), 3, delta).bound
    answers = np.argmax(CORNERS @ W.T, axis=1)
    risk = np.mean([0.1 if answer == k else 0.95 for k, answer in enumerate(answers)])
    return bound < risk, bound < 2 / 3


@case("margin.l1", "signs in ten features, one matters, 10 % wrong labels, n = 2000")
def l1_margin(rng, delta):
    n = 2000
    X = rng.choice([-1.0, 1.0], (n, 10))
    y = np.where(rng.random(n) < 0.1, -X[:, 0], X[:, 0])
    correlation = y @ X
    j = int(np.argmax(np.abs(correlation)))
    w = np.zeros(10)
    w[j] = np.sign(correlation[j])
    bound = margin.l1_margin_bound(y * (X @ w), 1.0, math.sqrt(n), 10, delta).bound
    return bound < (0.1 if j == 0 and w[0] > 0 else 0.5), bound < 0.5


def boosted(rng, n, noise, rounds):
    """AdaBoost on signed thresholds; its margins, votes as (weight, rule), and exact risk."""
    x, y = rng.random((n, 1)), np.zeros(n)
    y = np.where((x[:, 0] > THETA) ^ (rng.random(n) < noise), 1, -1)
    weight, members = np.full(n, 1 / n), []
    for _ in range(rounds):
        rule = best_threshold(x, y * weight, [0], (1, -1))
        error = float(weight[rule(x) != y].sum())
        if not 0 < error < 0.5 - 1e-9:
            members.append((1.0, rule))
            break
        alpha = 0.5 * math.log((1 - error) / error)
        members.append((alpha, rule))
        weight = weight * np.exp(-alpha * y * rule(x))
        weight /= weight.sum()
    return x, y, members


def vote_risk(members, noise):
    """The exact error of a weighted vote of thresholds on uniform points, ties as errors."""
    cuts = np.unique(np.clip([0.0, THETA, 1.0, *(rule.at for _, rule in members)], 0.0, 1.0))
    middle = (cuts[1:] + cuts[:-1]) / 2
    total = sum(alpha * rule(middle[:, None]) for alpha, rule in members)
    wrong = total * np.where(middle > THETA, 1, -1) <= 0
    share = float(np.diff(cuts)[wrong].sum())
    return noise + (1 - 2 * noise) * share


@case("margin.boosting", "AdaBoost on thresholds, noise 0.05, n = 3000, growth function")
def boosting_growth(rng, delta):
    x, y, members = boosted(rng, 3000, 0.05, 3)
    f = sum(a * rule(x) for a, rule in members) / sum(a for a, _ in members)
    bound = margin.boosting_margin_bound(y * f, delta, SignedThresholds().log_growth).bound
    return bound < vote_risk(members, 0.05), bound < 0.5


@case("margin.boosting", "AdaBoost on thresholds, noise 0.05, n = 3000, Monte-Carlo complexity")
def boosting_signs(rng, delta):
    x, y, members = boosted(rng, 3000, 0.05, 3)
    f = sum(a * rule(x) for a, rule in members) / sum(a for a, _ in members)
    estimate = rademacher.monte_carlo(rademacher.of_space(SignedThresholds(), x), 10, int(rng.integers(2**62)))
    bound = margin.boosting_sample_bound(y * f, delta, estimate).bound
    return bound < vote_risk(members, 0.05), bound < 0.5


@case("regression.rademacher", "regression on signs, uniform noise, n = 2000, clip 2 (below the clip: informative)")
def regression(rng, delta):
    n = 2000
    x, u = rng.choice([-1.0, 1.0], n), rng.uniform(-1, 1, n)
    y = 0.5 * x + u
    w = float(x @ y) / n
    bound = margin.regression_bound(y - w * x, abs(w), float(n), 2.0, delta).bound
    return bound < (1 + (0.5 - w) ** 2) / 2, bound < 2


@case("regression.rademacher", "the same, squared loss, n = 4000, clip 2")
def regression_squared(rng, delta):
    n = 4000
    x, u = rng.choice([-1.0, 1.0], n), rng.uniform(-1, 1, n)
    y = 0.5 * x + u
    w = float(x @ y) / n
    bound = margin.regression_bound(y - w * x, abs(w), float(n), 2.0, delta, squared=True).bound
    return bound < 1 / 3 + (0.5 - w) ** 2, bound < 4
