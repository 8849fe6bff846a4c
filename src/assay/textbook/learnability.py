"""Learnability: PAC learning by simulation, the no-free-lunch theorem by enumeration, points on a sphere.

PAC. A run is a function run(rng, m) -> error rate of the model learnt from m freshly drawn rows. Failures (error above
epsilon) are counted over independent runs; a Clopper-Pearson limit bounds the failure probability.

No free lunch. Points are 0..n-1, a target is any function from them to {0, 1}, and a learner is a function
learner(train, labels, n) -> P[h(x) = 1] for each of the n points. Theorem (Wolpert 1996): the sum over all 2^n targets
of the error outside the training set is 2^(n-1) sum_{x outside} P(x), whatever the learner: targets group by their
training labels, and at each point outside half of every group is wrong. Unequal weights of targets break the tie.

Sphere. (w.x)^2 for x uniform on the unit sphere of R^d has the Beta(1/2, (d-1)/2) distribution, for x uniform in the
ball Beta(1/2, (d+1)/2). Cover 1965: n points in general position with random labels are separable by a hyperplane
through the origin with probability 2^(1-n) (C(n-1,0) + ... + C(n-1,d-1)), which is 1/2 at n = 2d.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from assay.theory import _checks as check
from assay.theory.concentration import clopper_pearson_lower, clopper_pearson_upper
from assay.theory.vc import cover

Run = Callable[[np.random.Generator, int], float]
Learner = Callable[[Sequence[int], Sequence[int], int], ArrayLike]


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


def targets(n: int) -> Iterator[tuple[int, ...]]:
    """Yield all functions from n points to {0, 1}."""
    if n > 16:
        raise ValueError(f"2^{n} targets are too many to list; take n <= 16.")
    return itertools.product((0, 1), repeat=n)


def off_training_error(
    learner: Learner, train: Sequence[int], target: Sequence[int], weight: ArrayLike | None = None
) -> float:
    """Return the weighted probability of error on the points outside the training set, for one target."""
    n = len(target)
    p = np.full(n, 1.0 / n) if weight is None else np.asarray(weight, dtype=np.float64)
    outside = [x for x in range(n) if x not in set(train)]
    says_one = np.asarray(learner(train, [target[x] for x in train], n), dtype=np.float64)
    if says_one.shape != (n,) or says_one.min() < 0.0 or says_one.max() > 1.0:
        raise ValueError(f"the learner must return {n} probabilities of the label 1.")
    wrong = np.where(np.asarray(target) == 1, 1.0 - says_one, says_one)
    return math.fsum(p[outside] * wrong[outside])


def total_error(
    learner: Learner,
    train: Sequence[int],
    n: int,
    weight: ArrayLike | None = None,
    prior: Callable[[tuple[int, ...]], float] | None = None,
) -> float:
    """Return the sum over all targets of prior(target), 1 unless given, times the error outside."""
    return math.fsum(
        (1.0 if prior is None else prior(target)) * off_training_error(learner, train, target, weight)
        for target in targets(n)
    )


def mass_beyond(t: float, d: int, *, ball: bool = False) -> float:
    """Return P[|w.x| >= t] for a unit w and x uniform on the unit sphere of R^d (or in the unit ball).

    >>> round(mass_beyond(0.5, 3), 6)  # Archimedes: uniform in three dimensions
    0.5
    """
    t, d = check.number("t", t, low=0.0, high=1.0), check.whole("d", d, low=1 if ball else 2)
    return float(betainc((d + 1) / 2.0 if ball else (d - 1) / 2.0, 0.5, 1.0 - t * t))


def separable_share(n: int, d: int) -> Fraction:
    """Return the probability that coin labels of n points in general position in R^d are separable."""
    return Fraction(cover(n, d), 2 ** check.whole("n", n))


def random_points(n: int, d: int, rng: np.random.Generator, *, ball: bool = False) -> np.ndarray:
    """Return n points uniform on the unit sphere of R^d, or in the unit ball."""
    x = rng.standard_normal((check.whole("n", n), check.whole("d", d)))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x * rng.random((n, 1)) ** (1.0 / d) if ball else x


def best_margin(X: np.ndarray, y: np.ndarray, rounds: int = 2000) -> tuple[float, float]:
    """Return a lower and an upper bound of max over unit w of min_i y_i w.x_i.

    Frank-Wolfe steps towards the point of the hull of y_i x_i nearest to the origin: its norm is an upper
    bound, and its direction a hyperplane whose smallest margin is a lower one (negative if it does not
    separate).
    """
    Z = np.asarray(y)[:, None] * np.asarray(X, dtype=np.float64)
    p = Z.mean(axis=0)
    for _ in range(check.whole("rounds", rounds)):
        q = Z[int(np.argmin(Z @ p))]
        step = p - q
        length = float(step @ step)
        if length == 0.0:
            break
        p = p - min(1.0, max(0.0, float(p @ step) / length)) * step
    norm = math.sqrt(float(p @ p))
    return (float((Z @ p).min()) / norm if norm > 0.0 else -1.0), norm
