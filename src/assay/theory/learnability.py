"""Learnability measured: does a learner reach error epsilon with chance 1 - delta, and how fast?

A run is a function run(rng, m) -> error rate of the model learnt from m freshly drawn rows; the caller
computes the error exactly or closely. Failures (error above epsilon) are counted over independent runs, and
a Clopper-Pearson limit turns the count into a statement about the failure probability.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from assay.theory import _checks as check
from assay.theory.concentration import clopper_pearson_lower, clopper_pearson_upper

Run = Callable[[np.random.Generator, int], float]


class Identification(NamedTuple):
    """Whether P[error > epsilon] <= delta was confirmed or refuted, with the count behind it."""

    confirmed: bool
    refuted: bool
    failures: int
    runs: int
    upper: float
    lower: float


def identifies(
    run: Run,
    m: int,
    epsilon: float,
    delta: float,
    *,
    runs: int = 400,
    confidence: float = 0.99,
    seed: int = 0,
) -> Identification:
    """Return whether the learner identifies the target from m rows: P[error <= epsilon] >= 1 - delta.

    One-sided limits of the failure probability at `confidence`; between them the runs do not decide.
    """
    epsilon, delta = check.probability("epsilon", epsilon), check.failure(delta)
    runs, doubt = check.whole("runs", runs), 1.0 - check.probability("confidence", confidence)
    rng = np.random.default_rng(seed)
    failures = sum(run(rng, check.whole("m", m)) > epsilon for _ in range(runs))
    upper, lower = (limit(failures, runs, doubt) for limit in (clopper_pearson_upper, clopper_pearson_lower))
    return Identification(upper <= delta, lower > delta, failures, runs, upper, lower)


def simulated_sample_size(run: Run, epsilon: float, delta: float, *, most: int, runs: int = 200, seed: int = 0) -> int:
    """Return the smallest m <= most at which at most a share delta of the runs fails, by bisection.

    An estimate of the sample complexity, to be compared with a theorem's; `most` must itself succeed.
    """

    def succeeds(m: int) -> bool:
        rng = np.random.default_rng(seed)
        return sum(run(rng, m) > epsilon for _ in range(runs)) <= check.failure(delta) * runs

    if not succeeds(check.whole("most", most)):
        raise ValueError(f"the learner fails too often at m = {most} already.")
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if succeeds(middle) else (middle, high)
    return high


def growth_exponent(function: Callable[[float], float], values: Sequence[float]) -> float:
    """Return the slope of ln function against ln value by least squares: 1 for linear growth."""
    x, y = np.log(np.asarray(values, dtype=np.float64)), np.log([function(v) for v in values])
    return float(np.polyfit(x, y, 1)[0])


def time_exponent(work: Callable[[int], object], sizes: Sequence[int], repeats: int = 5) -> float:
    """Return the slope of ln time against ln size, from the fastest of `repeats` runs at each size.

    An efficient learner has a polynomial run time, hence a bounded slope.
    """

    def fastest(size: float) -> float:
        times = []
        for _ in range(repeats):
            start = time.process_time()
            work(int(size))
            times.append(time.process_time() - start)
        return max(min(times), math.ulp(1.0))

    return growth_exponent(fastest, [float(size) for size in sizes])
