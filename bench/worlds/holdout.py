"""Hold-out sets."""

import math

import numpy as np
from scipy.stats import norm

from assay.theory import (
    concentration,
    holdout,
    pac,
)
from assay.theory._patterns import best_threshold
from bench.worlds._case import case


@case("holdout.binomial", "coin errors, m = 50, p = 0.1")
def binomial_upper(rng, delta):
    bound = concentration.clopper_pearson_upper(int(rng.binomial(50, 0.1)), 50, delta)
    return bound < 0.1, bound < 0.5


@case("holdout.binomial", "coin errors, lower limit, m = 50, p = 0.3")
def binomial_lower(rng, delta):
    bound = concentration.clopper_pearson_lower(int(rng.binomial(50, 0.3)), 50, delta)
    return bound > 0.3, bound > 0


@case("hoeffding", "coin errors, m = 60, p = 0.5")
def hoeffding(rng, delta):
    bound = rng.binomial(60, 0.5) / 60 + concentration.hoeffding_deviation(60, delta)
    return bound < 0.5, bound < 1


@case("holdout.kl", "coin errors, m = 60, p = 0.2")
def kl_bound(rng, delta):
    bound = concentration.kl_upper(rng.binomial(60, 0.2) / 60, math.log(1 / delta) / 60)
    return bound < 0.2, bound < 0.5


def skewed(rng, m):
    return rng.choice([0.05, 1.0], m, p=[0.98, 0.02]), 0.05 * 0.98 + 0.02


def beta_losses(rng, m):
    return rng.beta(0.2, 2.0, m), 0.2 / 2.2


@case("holdout.empirical-bernstein", "two-point losses, m = 300")
def bernstein_two_point(rng, delta):
    losses, mean = skewed(rng, 300)
    bound = concentration.empirical_bernstein_upper(losses, delta)
    return bound < mean, bound < 0.5


@case("holdout.empirical-bernstein", "Beta(0.2, 2) losses, m = 300")
def bernstein_beta(rng, delta):
    losses, mean = beta_losses(rng, 300)
    bound = concentration.empirical_bernstein_upper(losses, delta)
    return bound < mean, bound < 0.5


@case("holdout.betting", "two-point losses, m = 200")
def betting_two_point(rng, delta):
    losses, mean = skewed(rng, 200)
    bound = concentration.betting_upper(losses, delta)
    return bound < mean, bound < 0.5


@case("holdout.betting", "uniform losses, m = 60")
def betting_uniform(rng, delta):
    bound = concentration.betting_upper(rng.random(60), delta)
    return bound < 0.5, bound < 1


@case("holdout.betting", "rows put in the order of their losses", control=True)
def betting_sorted(rng, delta):
    return concentration.betting_upper(np.sort(rng.random(60)), delta) < 0.5, True


@case("holdout.kl", "best of twenty mean losses without paying", control=True)
def kl_best_of_many(rng, delta):
    means = rng.binomial(60, 0.2, 20) / 60
    return concentration.kl_upper(float(means.min()), math.log(1 / delta) / 60) < 0.2, True


@case("holdout.auc", "area under the curve, normal scores one unit apart")
def area(rng, delta):
    positive, negative = rng.normal(1.0, 1.0, 80), rng.normal(0.0, 1.0, 120)
    seen = float((positive[:, None] > negative[None, :]).mean())
    bound = holdout.auc_lower(seen, 80, 120, delta)
    return bound > norm.cdf(1 / math.sqrt(2)), bound > 0.5


def farthest(values, mean):
    """Largest distance of the empirical from the true distribution function of N(mean, 1)."""
    true, n = norm.cdf(np.sort(values), mean), len(values)
    return max((np.arange(1, n + 1) / n - true).max(), (true - np.arange(n) / n).max())


@case("holdout.thresholds", "all points of the ROC curve at once, 60 and 60 rows")
def thresholds(rng, delta):
    off = max(farthest(rng.normal(mean, 1.0, 60), mean) for mean in (0.0, 1.0))
    return off > holdout.threshold_width(60, 60, delta), True


@case("holdout.thresholds", "all points of the ROC curve, with the width of one point", control=True)
def thresholds_one_point(rng, delta):
    off = max(farthest(rng.normal(mean, 1.0, 60), mean) for mean in (0.0, 1.0))
    return off > norm.isf(delta / 2) * 0.5 / math.sqrt(60), True


@case("holdout.paired", "difference of two models on the same rows")
def difference(rng, delta):
    first, second = rng.multinomial(100, [0.15, 0.10, 0.75])[:2]
    bound = holdout.difference_upper(int(first), int(second), 100, delta)
    return bound < 0.05, bound < 0.5


@case("holdout.selection", "best of twenty coin-flipping models, m = 100")
def selection(rng, delta):
    bound = pac.holdout_bound(int(rng.binomial(100, 0.5, 20).min()), 100, delta, candidates=20)
    return bound < 0.5, bound < 1


@case("holdout.selection", "best of twenty without paying", control=True)
def selection_unpaid(rng, delta):
    return pac.holdout_bound(int(rng.binomial(100, 0.5, 20).min()), 100, delta) < 0.5, True


@case("holdout.binomial", "minimum of three limits, each at delta", control=True, rate=0.2)
def minimum_of_three(rng, delta):
    return min(concentration.clopper_pearson_upper(int(k), 200, 0.2) for k in rng.binomial(200, 0.2, 3)) < 0.2, True


@case("holdout.binomial", "threshold tuned on the hold-out rows", control=True)
def tuned_on_holdout(rng, delta):
    y = rng.choice([-1, 1], 100)
    right = np.concatenate(([0], np.cumsum(y)))  # errors of all signed thresholds on coin labels
    errors = np.concatenate((right + (y == -1).sum(), 100 - right - (y == -1).sum())).min()
    return concentration.clopper_pearson_upper(int(errors), 100, delta) < 0.5, True


@case("holdout.binomial", "training error taken for a hold-out error", control=True)
def training_as_holdout(rng, delta):
    X, y = rng.random((50, 20)), rng.choice([-1, 1], 50)
    found = best_threshold(X, y.astype(float), range(20), (1, -1))
    return concentration.clopper_pearson_upper(int(np.sum(found(X) != y)), 50, delta) < 0.5, True


@case("holdout.binomial", "best of fifty re-splits", control=True)
def best_resplit(rng, delta):
    x, y = rng.random((60, 1)), rng.choice([-1, 1], 60)
    best = 1.0
    for _ in range(50):
        order = rng.permutation(60)
        found = best_threshold(x[order[:30]], y[order[:30]].astype(float), [0], (1, -1))
        errors = int(np.sum(found(x[order[30:]]) != y[order[30:]]))
        best = min(best, concentration.clopper_pearson_upper(errors, 30, delta))
    return best < 0.5, True
