"""Finite classes, codes, growth functions and Rademacher averages."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from assay.theory import (
    pac,
    rademacher,
    vc,
)
from assay.theory.spaces import Intervals, Thresholds
from bench.worlds._case import Run, case


@case("finite-class", "ten independent hypotheses with error 0.2, n = 60")
def finite_class(rng, delta):
    bounds = [pac.finite_class_bound(int(k), 60, delta, 10) for k in rng.binomial(60, 0.2, 10)]
    return min(bounds) < 0.2, bounds[0] < 0.5


@case("occam", "twenty hypotheses with prior 2^-j, n = 60")
def occam_prior(rng, delta):
    errors = rng.binomial(60, 0.3, 20)
    bounds = [pac.occam_bound(int(k), 60, delta, -(j + 1) * math.log(2)) for j, k in enumerate(errors)]
    return min(bounds) < 0.3, bounds[0] < 0.5


@case("occam", "dyadic stumps on coin labels, n = 200 (below one: informative)")
def occam_noise(rng, delta):
    x, y = rng.random(200), rng.choice([-1, 1], 200)
    bounds = []
    for j in range(1, 6):
        for m in range(1, 2**j, 2):
            wrong = int(np.sum(np.where(x > m / 2**j, 1, -1) != y))
            prior = -2 * j * math.log(2)  # 2j - 1 bits for the threshold, one for the side
            bounds.append(pac.occam_bound(min(wrong, 200 - wrong), 200, delta, prior))
    return min(bounds) < 0.5, min(bounds) < 1


THETA = 0.4


def noisy_thresholds(rng, n, noise):
    """Sorted uniform points with noisy labels; errors and worst risk of the thresholds in each gap."""
    x = np.sort(rng.random(n))
    y = np.where((x > THETA) ^ (rng.random(n) < noise), 1, -1)
    errors = np.concatenate(([0], np.cumsum(y))) + int(np.sum(y == -1))
    left, right = np.concatenate(([0.0], x)), np.concatenate((x, [1.0]))
    risk = noise + (1 - 2 * noise) * np.maximum(np.abs(left - THETA), np.abs(right - THETA))
    return x, errors, risk


@cache
def ghost_table(space, n, delta):
    return np.array([vc.ghost_sample_bound(k, n, space.log_growth, delta).bound for k in range(n + 1)])


def over_thresholds(bound_of: Callable[[np.ndarray, float], np.ndarray], n: int, noise: float) -> Run:
    def run(rng, delta):
        _, errors, risk = noisy_thresholds(rng, n, noise)
        bounds = bound_of(errors, delta)
        return bool(np.any(risk > bounds)), float(bounds.min()) < 0.5

    return run


for _noise, _n in ((0.0, 60), (0.1, 200), (0.3, 400)):
    case("vc", f"all thresholds, noise {_noise}, n = {_n}")(
        over_thresholds(lambda k, delta, n=_n: ghost_table(Thresholds(), n, delta)[k], _n, _noise)
    )
case("vc", "all thresholds, noise 0.1, n = 400")(
    over_thresholds(lambda k, d: k / 400 + vc.massart_deviation(400, d, Thresholds().log_growth), 400, 0.1)
)
case("vc", "VC inequality, all thresholds, noise 0, n = 3000")(
    over_thresholds(lambda k, d: k / 3000 + vc.uniform_deviation(3000, d, Thresholds().log_growth), 3000, 0.0)
)
case("vc", "all thresholds, bounds cut to a third", control=True)(
    over_thresholds(lambda k, d: ghost_table(Thresholds(), 60, d)[k] / 3, 60, 0.0)
)


@case("vc", "consistent thresholds, n = 200")
def realizable_thresholds(rng, delta):
    _, errors, risk = noisy_thresholds(rng, 200, 0.0)
    bound = vc.realizable_growth_bound(200, delta, Thresholds().log_growth)
    return bool(np.any(risk[errors == 0] > bound)), bound < 0.5


@case("vc", "best interval on coin labels, n = 100 (below one: informative)")
def intervals_on_noise(rng, delta):
    y = rng.choice([-1, 1], 100)
    prefix = np.concatenate(([0], np.cumsum(y)))
    segment = int((prefix - np.minimum.accumulate(prefix)).max())
    bound = ghost_table(Intervals(), 100, delta)[int(np.sum(y == 1)) - segment]
    return bound < 0.5, bound < 1


@case("vc", "fifty independent hypotheses with error 0.3, n = 80 (below one: informative)")
def ghost_on_independent(rng, delta):
    bounds = [_finite_ghost(delta)[k] for k in rng.binomial(80, 0.3, 50)]
    return min(bounds) < 0.3, min(bounds) < 1


@cache
def _finite_ghost(delta):
    return [vc.ghost_sample_bound(k, 80, math.log(50), delta).bound for k in range(81)]


@case("rademacher.empirical", "all thresholds, signs included, n = 400, noise 0.1")
def rademacher_signs(rng, delta):
    x, errors, risk = noisy_thresholds(rng, 400, 0.1)
    suprema = rademacher.of_space(Thresholds(), x)
    value = rademacher.average(suprema, rademacher.signs(10, 400, int(rng.integers(2**62)))).value
    bounds = errors / 400 + rademacher.monte_carlo_error_bound(0.0, value, 10, 400, delta)
    return bool(np.any(risk > bounds)), float(bounds.min()) < 0.5


@cache
def threshold_complexity(n):
    return rademacher.monte_carlo(rademacher.of_space(Thresholds(), np.arange(float(n))), 4000, 1).value


case("rademacher.empirical", "all thresholds, complexity of the sample, n = 400, noise 0.1")(
    over_thresholds(lambda k, d: k / 400 + rademacher.error_bound(0.0, threshold_complexity(400), 400, d), 400, 0.1)
)


@case("rademacher.empirical", "one fixed classifier on coin labels, without the deviation term", control=True)
def rademacher_without_deviation(rng, delta):
    complexity = rademacher.exact(rademacher.of_functions(np.ones((1, 8))))  # of a single function: 0
    return rng.binomial(100, 0.5) / 100 + complexity < 0.5, True
