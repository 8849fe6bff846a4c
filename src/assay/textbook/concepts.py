"""Concepts, hypotheses, the version space, and learnability: PAC learning, no free lunch, points on a sphere.

A hypothesis is any function from rows to labels -1 and +1; a concept is one that may be the truth. `Finite`
of `assay.theory.spaces` holds a list of them.

PAC learning, by simulation. A run is a function run(rng, m) -> error rate of the model learnt from m freshly drawn
rows. Failures (error above epsilon) are counted over independent runs; a Clopper-Pearson limit bounds the failure
probability.

No free lunch, by enumeration. Points are 0..n-1, a target is any function from them to {0, 1}, and a learner is a
function learner(train, labels, n) -> P[h(x) = 1] for each of the n points. Theorem (Wolpert 1996): the sum over all 2^n
targets of the error outside the training set is 2^(n-1) sum_{x outside} P(x), whatever the learner: targets group by
their training labels, and at each point outside half of every group is wrong. Unequal weights of targets break the tie.

Sphere. (w.x)^2 for x uniform on the unit sphere of R^d has the Beta(1/2, (d-1)/2) distribution, for x uniform in the
ball Beta(1/2, (d+1)/2). Cover 1965: n points in general position with random labels are separable by a hyperplane
through the origin with probability 2^(1-n) (C(n-1,0) + ... + C(n-1,d-1)), which is 1/2 at n = 2d.
"""

import itertools
import math
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from assay.theory import _checks as check
from assay.theory.concentration import clopper_pearson_lower, clopper_pearson_upper, hoeffding_deviation
from assay.theory.vc import cover

Hypothesis = Callable[[Any], np.ndarray]


@dataclass(frozen=True)
class Concept:
    """A named labelling rule: +1 where `holds` is true of a row, -1 elsewhere.

    Parameters
    ----------
    name : str
        Name of the concept.
    holds : callable
        Whether it is true of a row.

    Examples
    --------
    >>> triangle = Concept("triangle", lambda corners: corners == 3)
    >>> triangle([3, 4, 5]).tolist()
    [1, -1, -1]
    """

    name: str
    holds: Callable[[Any], bool]

    def __call__(self, rows: Any) -> np.ndarray:
        return np.array([1 if self.holds(row) else -1 for row in rows])

    def __repr__(self) -> str:
        return f"Concept({self.name!r})"


@dataclass(frozen=True)
class Corners:
    """Whether a polygon has so many corners; equal for equal numbers, so that concepts can be compared.

    Parameters
    ----------
    count : int
        Number of corners.
    """

    count: int

    def __call__(self, corners: Any) -> bool:
        return bool(corners == self.count)


def polygons() -> list[Concept]:
    """Return the concept class of the notes: triangles, quadrilaterals and pentagons, told by their corners.

    Returns
    -------
    list of Concept
        Three concepts.

    Examples
    --------
    >>> [concept([3, 4, 5]).tolist() for concept in polygons()]
    [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    """
    named = {"triangle": 3, "quadrilateral": 4, "pentagon": 5}
    return [Concept(name, Corners(count)) for name, count in named.items()]


def consistent(hypothesis: Hypothesis, rows: Any, labels: ArrayLike) -> bool:
    """Return whether the hypothesis gives every row its label, as a target concept does.

    Parameters
    ----------
    hypothesis : callable
        Function from a row to its label.
    rows : array-like
        Rows.
    labels : array-like
        Label of each row.

    Returns
    -------
    bool
        Whether no row has another label.
    """
    return bool(np.array_equal(hypothesis(rows), np.asarray(labels)))


class Contradiction(NamedTuple):
    """Rows with the same attributes and different labels: their numbers, the attributes and the labels.

    Parameters
    ----------
    numbers : tuple of int
        Numbers of the rows.
    row : tuple of hashable
        Their attributes.
    labels : tuple of hashable
        Their labels.
    """

    numbers: tuple[int, ...]
    row: tuple[Hashable, ...]
    labels: tuple[Hashable, ...]


def contradictions(rows: Sequence[Sequence[Hashable]], labels: Sequence[Hashable]) -> list[Contradiction]:
    """Return every set of equal rows that carry different labels; while there is one, no hypothesis is consistent.

    Parameters
    ----------
    rows : sequence of sequence of hashable
        Rows.
    labels : sequence of hashable
        Label of each row.

    Returns
    -------
    list of Contradiction
        The sets of equal rows.

    Examples
    --------
    >>> contradictions([("yes",), ("no",), ("yes",)], [1, 1, -1])
    [Contradiction(numbers=(0, 2), row=('yes',), labels=(1, -1))]
    """
    groups: dict[tuple[Hashable, ...], list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(tuple(row), []).append(number)
    if len(labels) != sum(map(len, groups.values())):
        raise ValueError(f"contradictions: there are {len(rows)} rows and {len(labels)} labels.")
    return [
        Contradiction(tuple(numbers), row, tuple(labels[i] for i in numbers))
        for row, numbers in groups.items()
        if len({labels[i] for i in numbers}) > 1
    ]


@dataclass(frozen=True)
class Pattern:
    """A conjunction: a value for each attribute, None (written ?) where any will do; or nothing at all.

    Parameters
    ----------
    values : tuple of hashable or None
        A value for each attribute, None for any; None instead of the tuple: the empty concept.

    Examples
    --------
    >>> str(Pattern(("yes", None)))
    '(yes, ?)'
    """

    values: tuple[Hashable, ...] | None

    def matches(self, row: Sequence[Hashable]) -> bool:
        """Return whether the row has every value that is not None; the empty concept matches nothing.

        Parameters
        ----------
        row : sequence of hashable
            The row.
        """
        if self.values is None:
            return False
        return all(value is None or value == given for value, given in zip(self.values, row, strict=True))

    def __call__(self, rows: Sequence[Sequence[Hashable]]) -> np.ndarray:
        return np.array([1 if self.matches(row) else -1 for row in rows])

    def __str__(self) -> str:
        if self.values is None:
            return "nothing"
        return "(" + ", ".join("?" if value is None else str(value) for value in self.values) + ")"


@dataclass(frozen=True)
class Conjunctions:
    """All patterns over attributes with the given values, and the empty concept.

    Parameters
    ----------
    domains : tuple of tuple of hashable
        Values of each attribute.
    """

    domains: tuple[tuple[Hashable, ...], ...]

    def __len__(self) -> int:
        size = 1
        for values in self.domains:
            size *= len(values) + 1
        return size + 1

    def __iter__(self) -> Iterator[Pattern]:
        yield Pattern(None)
        for values in itertools.product(*((None, *domain) for domain in self.domains)):
            yield Pattern(values)

    def __contains__(self, pattern: object) -> bool:
        if not isinstance(pattern, Pattern):
            return False
        if pattern.values is None:
            return True
        fits = zip(pattern.values, self.domains)
        return len(pattern.values) == len(self.domains) and all(v is None or v in d for v, d in fits)

    def sample(self, rng: np.random.Generator) -> Pattern:
        """Return a pattern drawn uniformly.

        Parameters
        ----------
        rng : Generator
            Random generator.
        """
        index = int(rng.integers(len(self)))
        return next(itertools.islice(iter(self), index, None))


class VersionSpace:
    """The hypotheses that agree with every row seen so far; each new row deletes those it contradicts.

    Parameters
    ----------
    hypotheses : object
        The hypotheses to begin with.

    Examples
    --------
    >>> space = VersionSpace(Conjunctions((("yes", "no"),) * 2))
    >>> space.observe(("yes", "no"), 1).observe(("no", "no"), -1)
    VersionSpace(2 of 10 hypotheses after 2 rows)
    >>> [str(pattern) for pattern in space.hypotheses]
    ['(yes, ?)', '(yes, no)']
    """

    def __init__(self, hypotheses: Any) -> None:
        self.hypotheses: list[Hypothesis] = list(hypotheses)
        if not self.hypotheses:
            raise ValueError("a version space starts with at least one hypothesis.")
        self.sizes = [len(self.hypotheses)]

    def observe(self, row: Any, label: int) -> "VersionSpace":
        """Delete the hypotheses that give the row another label.

        Parameters
        ----------
        row : object
            The row.
        label : int
            Its label.
        """
        if label not in (-1, 1):
            raise ValueError(f"label must be -1 or +1; got {label!r}.")
        self.hypotheses = [h for h in self.hypotheses if h([row])[0] == label]
        self.sizes.append(len(self.hypotheses))
        return self

    def query(self, candidates: Sequence[Any]) -> int | None:
        """Return the place of the candidate that splits the hypotheses left most evenly, the first of equal ones:
        asking for its label deletes most of them in the worse case. None if they agree on every candidate.

        Parameters
        ----------
        candidates : sequence of object
            Rows to choose from.

        Examples
        --------
        >>> space = VersionSpace([lambda rows, t=t: np.where(np.array(rows) >= t, 1, -1) for t in range(5)])
        >>> space.query([0, 1, 2, 3])
        1
        """
        votes = [sum(int(h([row])[0]) == 1 for h in self.hypotheses) for row in candidates]
        split = [min(count, len(self.hypotheses) - count) for count in votes]
        best = max(range(len(split)), key=lambda i: split[i], default=None)
        return None if best is None or split[best] == 0 else best

    def __len__(self) -> int:
        return len(self.hypotheses)

    def __iter__(self) -> Iterator[Hypothesis]:
        return iter(self.hypotheses)

    def __contains__(self, hypothesis: object) -> bool:
        return hypothesis in self.hypotheses

    def __repr__(self) -> str:
        return f"VersionSpace({len(self)} of {self.sizes[0]} hypotheses after {len(self.sizes) - 1} rows)"

    @property
    def separable(self) -> bool:
        """Whether some hypothesis labels every row seen correctly."""
        return bool(self.hypotheses)

    def choose(self, cost: Callable[[Hypothesis], float]) -> Hypothesis:
        """Return the consistent hypothesis with the smallest cost: the learner's inductive bias.

        Parameters
        ----------
        cost : callable
            Cost of a hypothesis.
        """
        if not self.hypotheses:
            raise ValueError("no hypothesis agrees with the rows seen: the problem is not separable in this space.")
        return min(self.hypotheses, key=cost)


@dataclass(frozen=True)
class Problem:
    """What may be true (concepts) and what a learner may answer (hypotheses).

    Parameters
    ----------
    concepts : tuple of callable
        Hypotheses that may be true.
    hypotheses : tuple of callable
        Hypotheses that a learner may return.
    """

    concepts: tuple[Hypothesis, ...]
    hypotheses: tuple[Hypothesis, ...]

    @property
    def proper(self) -> bool:
        """Whether both sets are the same, so that a learner answers with a concept."""
        return set(self.concepts) == set(self.hypotheses)

    def erm(self, rows: Any, labels: ArrayLike) -> Hypothesis:
        """Return the first hypothesis with the fewest errors on the rows.

        Parameters
        ----------
        labels : array-like
            Label of each row.
        """
        y = np.asarray(labels)
        return min(self.hypotheses, key=lambda h: int(np.sum(h(rows) != y)))


class Disagreement(NamedTuple):
    """The share of rows on which two hypotheses differ, and an interval for its expectation.

    Parameters
    ----------
    value : float
        Share of the rows on which they differ.
    lower, upper : float
        Ends of the interval for its expectation.
    """

    value: float
    lower: float
    upper: float


def disagreement(first: Hypothesis, second: Hypothesis, rows: Any, delta: float = 0.05) -> Disagreement:
    """Return how often two hypotheses differ on independent rows, with a two-sided Hoeffding interval.

    Parameters
    ----------
    first, second : callable
        Functions from a row to its label.
    rows : array-like
        Rows.
    delta : float, default=0.05
        Probability with which the statement may fail.

    Returns
    -------
    Disagreement
        The share and its interval.
    """
    apart = np.asarray(first(rows)) != np.asarray(second(rows))
    share, half = float(apart.mean()), hoeffding_deviation(len(apart), delta, two_sided=True)
    return Disagreement(share, max(0.0, share - half), min(1.0, share + half))


@dataclass(frozen=True)
class RuleBook:
    """Rules written by a person: the first whose condition holds gives the label, else the default.

    Parameters
    ----------
    rules : tuple of tuple of callable, hashable
        Pairs of a condition and a label, in order.
    default : hashable
        Label of rows that meet no condition.

    Examples
    --------
    >>> cars = RuleBook(((lambda row: row["wheels"] == 4, "car"),), default="truck")
    >>> cars.predict([{"wheels": 4}, {"wheels": 6}])
    ['car', 'truck']
    """

    rules: tuple[tuple[Callable[[Any], bool], Hashable], ...]
    default: Hashable

    def predict(self, rows: Sequence[Any]) -> list[Hashable]:
        """Return the label of each row."""
        return [next((label for holds, label in self.rules if holds(row)), self.default) for row in rows]


class LookupTable:
    """Rote learning: remembers the label of every row, knows nothing of others.

    A row seen with several labels keeps the most frequent one (the first seen, if they tie). Unseen rows
    get `default`; if it is None they are refused.

    Parameters
    ----------
    default : hashable or None
        Label of rows never seen; None: they are refused.
    """

    def __init__(self, default: Hashable | None = None) -> None:
        self.default = default

    def fit(self, rows: Sequence[Sequence[Hashable]], labels: Sequence[Hashable]) -> "LookupTable":
        """Remember the rows.

        Parameters
        ----------
        labels : sequence of hashable
            Label of each row.
        """
        counts: dict[tuple, dict[Hashable, int]] = {}
        for row, label in zip(rows, labels, strict=True):
            seen = counts.setdefault(tuple(row), {})
            seen[label] = seen.get(label, 0) + 1
        self.table_ = {row: max(seen, key=lambda v: seen[v]) for row, seen in counts.items()}
        return self

    def predict(self, rows: Sequence[Sequence[Hashable]]) -> list[Hashable]:
        """Return the remembered labels."""
        unknown = [row for row in rows if tuple(row) not in self.table_]
        if unknown and self.default is None:
            raise ValueError(f"row {tuple(unknown[0])!r} was never seen and no default label was given.")
        return [self.table_.get(tuple(row), self.default) for row in rows]


class Edge(NamedTuple):
    """Weighted error of a weak hypothesis and what it gains over guessing.

    Parameters
    ----------
    error : float
        Weighted error rate.
    edge : float
        1/2 - error.
    """

    error: float
    edge: float


def weak_edge(labels: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None = None) -> Edge:
    """Return the weighted error and the edge 1/2 - error of a weak hypothesis.

    Parameters
    ----------
    labels : array-like
        Label of each row.
    predictions : array-like
        Prediction for each row.
    weights : array-like or None
        Weights of the rows; None: all are equal.

    Returns
    -------
    Edge
        Error and edge.
    """
    y, h = np.asarray(labels), np.asarray(predictions)
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    if y.shape != h.shape or w.shape != y.shape or w.min() < 0.0 or not w.sum() > 0.0:
        raise ValueError("labels, predictions and weights must have one shape; weights >= 0, not all 0.")
    error = float(w[y != h].sum() / w.sum())
    return Edge(error, 0.5 - error)


def boosting_error_bound(edges: ArrayLike) -> float:
    """Return exp(-2 sum edge^2), above the training error of AdaBoost after rounds with these edges.

    Freund and Schapire 1997: a weak learner with edge gamma under every weighting becomes a strong one, since
    T = ln(n)/(2 gamma^2) rounds leave no training error.

    Parameters
    ----------
    edges : array-like
        Edge of each round.

    Returns
    -------
    float
        Upper bound of the training error.
    """
    gamma = np.asarray(edges, dtype=np.float64)
    if gamma.ndim != 1 or gamma.size == 0 or np.abs(gamma).max() > 0.5:
        raise ValueError("edges must be a non-empty list of numbers in [-1/2, 1/2].")
    return check.up(float(np.exp(-2.0 * (gamma * gamma).sum())))


Run = Callable[[np.random.Generator, int], float]
Learner = Callable[[Sequence[int], Sequence[int], int], ArrayLike]


class Identification(NamedTuple):
    """Whether P[error > epsilon] <= delta was confirmed or refuted, with the count behind it.

    Parameters
    ----------
    confirmed : bool
        Whether the upper limit is at most delta.
    refuted : bool
        Whether the lower limit is above delta.
    failures : int
        Number of failed runs.
    runs : int
        Number of simulated runs.
    upper, lower : float
        Limits of the probability of failure.
    """

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

    Parameters
    ----------
    run : callable
        `run(rng, m)` returns the error rate of what was learnt from m new rows.
    m : int
        Number of rows.
    epsilon : float
        Error rate that counts as a failure.
    delta : float
        Probability with which the statement may fail.
    runs : int, default=400
        Number of simulated runs.
    confidence : float, default=0.99
        Confidence of the limits.
    seed : int, default=0
        Seed of the runs.

    Returns
    -------
    Identification
        Whether it was confirmed or refuted.
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

    Parameters
    ----------
    run : callable
        `run(rng, m)` returns the error rate of what was learnt from m new rows.
    epsilon : float
        Error rate that counts as a failure.
    delta : float
        Probability with which the statement may fail.
    most : int
        Largest m.
    runs : int, default=200
        Number of simulated runs.
    seed : int, default=0
        Seed of the runs.

    Returns
    -------
    int
        Number of rows.
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
    """Return the slope of ln function against ln value by least squares: 1 for linear growth.

    Parameters
    ----------
    function : callable
        Positive function of a number.
    values : sequence of float
        Where it is evaluated.

    Returns
    -------
    float
        The slope.
    """
    x, y = np.log(np.asarray(values, dtype=np.float64)), np.log([function(v) for v in values])
    return float(np.polyfit(x, y, 1)[0])


def time_exponent(work: Callable[[int], object], sizes: Sequence[int], repeats: int = 5) -> float:
    """Return the slope of ln time against ln size, from the fastest of `repeats` runs at each size.

    An efficient learner has a polynomial run time, hence a bounded slope.

    Parameters
    ----------
    work : callable
        Called with a size, and timed.
    sizes : sequence of int
        Sizes to try.
    repeats : int, default=5
        Number of runs at each size.

    Returns
    -------
    float
        The slope.
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
    """Yield all functions from n points to {0, 1}.

    Parameters
    ----------
    n : int
        Number of points.

    Yields
    ------
    tuple of int
        Labels of the n points.
    """
    if n > 16:
        raise ValueError(f"2^{n} targets are too many to list; take n <= 16.")
    return itertools.product((0, 1), repeat=n)


def off_training_error(
    learner: Learner, train: Sequence[int], target: Sequence[int], weight: ArrayLike | None = None
) -> float:
    """Return the weighted probability of error on the points outside the training set, for one target.

    Parameters
    ----------
    learner : callable
        Maps training points, their labels and n to a label for every point.
    train : sequence of int
        Numbers of the points of the training set.
    target : sequence of int
        Label of every point.
    weight : array-like or None
        Probability of each point; None: all are equal.

    Returns
    -------
    float
        Probability of error.
    """
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
    """Return the sum over all targets of prior(target), 1 unless given, times the error outside.

    Parameters
    ----------
    learner : callable
        Maps training points, their labels and n to a label for every point.
    train : sequence of int
        Numbers of the points of the training set.
    n : int
        Number of points.
    weight : array-like or None
        Probability of each point; None: all are equal.
    prior : callable or None
        Probability of each target; None: 1 for each.

    Returns
    -------
    float
        The sum.
    """
    return math.fsum(
        (1.0 if prior is None else prior(target)) * off_training_error(learner, train, target, weight)
        for target in targets(n)
    )


def mass_beyond(t: float, d: int, *, ball: bool = False) -> float:
    """Return P[|w.x| >= t] for a unit w and x uniform on the unit sphere of R^d (or in the unit ball).

    Parameters
    ----------
    t : float
        Distance from the hyperplane through the centre.
    d : int
        Dimension.
    ball : bool, default=False
        Whether the points lie in the ball; otherwise on the sphere.

    Returns
    -------
    float
        The probability.

    Examples
    --------
    >>> round(mass_beyond(0.5, 3), 6)  # Archimedes: uniform in three dimensions
    0.5
    """
    t, d = check.number("t", t, low=0.0, high=1.0), check.whole("d", d, low=1 if ball else 2)
    return float(betainc((d + 1) / 2.0 if ball else (d - 1) / 2.0, 0.5, 1.0 - t * t))


def separable_share(n: int, d: int) -> Fraction:
    """Return the probability that coin labels of n points in general position in R^d are separable.

    Parameters
    ----------
    n : int
        Number of points.
    d : int
        Dimension.

    Returns
    -------
    Fraction
        The probability, exactly.
    """
    return Fraction(cover(n, d), 2 ** check.whole("n", n))


def random_points(n: int, d: int, rng: np.random.Generator, *, ball: bool = False) -> np.ndarray:
    """Return n points uniform on the unit sphere of R^d, or in the unit ball.

    Parameters
    ----------
    n : int
        Number of points.
    d : int
        Dimension.
    rng : Generator
        Random generator.
    ball : bool, default=False
        Whether the points lie in the ball; otherwise on the sphere.

    Returns
    -------
    ndarray
        Array of shape (n, d).
    """
    x = rng.standard_normal((check.whole("n", n), check.whole("d", d)))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x * rng.random((n, 1)) ** (1.0 / d) if ball else x


def best_margin(X: np.ndarray, y: np.ndarray, rounds: int = 2000) -> tuple[float, float]:
    """Return a lower and an upper bound of max over unit w of min_i y_i w.x_i.

    Frank-Wolfe steps towards the point of the hull of y_i x_i nearest to the origin: its norm is an upper
    bound, and its direction a hyperplane whose smallest margin is a lower one (negative if it does not
    separate).

    Parameters
    ----------
    X : ndarray
        Rows.
    y : ndarray
        Labels -1 and +1.
    rounds : int, default=2000
        Number of Frank-Wolfe steps.

    Returns
    -------
    tuple of float
        Lower and upper bound.
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
