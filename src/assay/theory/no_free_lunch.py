"""No free lunch, by counting: averaged over all targets, every learner errs alike outside its training set.

X is the set of points 0..n-1, a target any function from them to {0, 1}. A learner is a function
learner(train, labels, n) -> P[h(x) = 1] for each of the n points; it sees the labels of the training points
only and may be random, hence the probabilities. Noise-free labels, zero-one loss.

Theorem (Wolpert 1996): the sum over all 2^n targets of the error outside the training set is 2^(n-1) sum_{x
outside} P(x), whatever the learner. Targets group by their training labels, and at each point outside half
of every group is wrong. With unequal weights of targets learners differ.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

Learner = Callable[[Sequence[int], Sequence[int], int], ArrayLike]


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
