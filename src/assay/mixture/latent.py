"""Small models with hidden parts, for `optim.em.em`: three coins, naive Bayes with gaps, spheres of known variance."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from assay.mixture._components import Components, GaussianProblem, Sums, factors_of
from assay.optim.em import Expected
from assay.scan import rows

# Three coins --------------------------------------------------------------------------------------------------


class Coins(NamedTuple):
    """Probabilities of heads of the first coin, and of the coins thrown after heads and after tails."""

    first: float
    after_heads: float
    after_tails: float


class ThreeCoins:
    """A first coin, which nobody sees, decides which of two others is thrown; that throw is seen (1 is heads).

    Which of the many parameters with the same likelihood EM finds is decided by the start.

    >>> from assay.optim.em import em
    >>> throws = [1, 1, 0, 1, 0, 0, 1, 0, 1, 1]
    >>> found = em(ThreeCoins(throws), Coins(0.4, 0.6, 0.7), tol=1e-12, max_iter=100)
    >>> [round(share, 4) for share in found.parameters]
    [0.4064, 0.5368, 0.6432]
    """

    exact = True

    def __init__(self, throws: Any) -> None:
        self.throws = np.asarray(throws, dtype=np.float64)
        if self.throws.ndim != 1 or not len(self.throws) or not np.isin(self.throws, (0, 1)).all():
            raise ValueError("ThreeCoins: throws must be a list of 0 (tails) and 1 (heads).")

    def e_step(self, parameters: Coins) -> Expected:
        seen = self.throws
        heads = parameters.first * np.where(seen == 1, parameters.after_heads, 1 - parameters.after_heads)
        tails = (1 - parameters.first) * np.where(seen == 1, parameters.after_tails, 1 - parameters.after_tails)
        share = heads / (heads + tails)  # that the first coin fell heads
        statistics = share.sum(), share @ seen, (1 - share).sum(), (1 - share) @ seen
        return Expected(float(np.log(heads + tails).sum()), statistics)

    def m_step(self, statistics: tuple[float, float, float, float]) -> Coins:
        heads, seen_after_heads, tails, seen_after_tails = map(float, statistics)
        return Coins(heads / len(self.throws), seen_after_heads / heads, seen_after_tails / tails)

    def log_likelihood(self, parameters: Coins) -> float:
        return self.e_step(parameters).log_likelihood


# Naive Bayes with gaps ----------------------------------------------------------------------------------------


class Tables(NamedTuple):
    """P(c) (classes,), and for each column P(value | c) (classes, values)."""

    priors: np.ndarray
    columns: list[np.ndarray]


class NaiveBayesWithGaps:
    """Naive Bayes on nominal columns, where entries of a row, and its class, may be missing (-1).

    The E step counts a gap as every value it could have, each with its probability given the rest of the row. Without
    gaps EM is counting, and one step ends it.

    >>> from assay.optim.em import em
    >>> model = NaiveBayesWithGaps([[0], [1], [1], [-1]], [0, 0, 1, 1])
    >>> found = em(model, model.start(), tol=1e-12, max_iter=100)
    >>> [row.round(6).tolist() for row in found.parameters.columns[0]]
    [[0.5, 0.5], [0.0, 1.0]]
    """

    exact = True

    def __init__(self, X: Any, y: Any, n_classes: int | None = None) -> None:
        self.X, self.y = np.asarray(X), np.asarray(y)
        if (
            self.X.ndim != 2
            or self.y.shape != (len(self.X),)
            or not {self.X.dtype.kind, self.y.dtype.kind} <= set("iu")
        ):
            raise ValueError(
                "NaiveBayesWithGaps: X must be a table and y a column of integers, -1 where one is missing."
            )
        self.n_classes = int(self.y.max()) + 1 if n_classes is None else int(n_classes)
        self.n_values = [max(1, int(column.max()) + 1) for column in self.X.T]
        if self.n_classes < 1 or self.X.min() < -1 or self.y.min() < -1:
            raise ValueError("NaiveBayesWithGaps: values and classes are 0, 1, ..., or -1 where one is missing.")

    def start(self, random_state: int = 0) -> Tables:
        """Return equal priors, and tables near equal ones: exactly equal classes would stay so."""
        random = np.random.default_rng(random_state)
        tables = [random.uniform(1.0, 2.0, size=(self.n_classes, values)) for values in self.n_values]
        return Tables(
            np.full(self.n_classes, 1.0 / self.n_classes),
            [table / table.sum(axis=1, keepdims=True) for table in tables],
        )

    def e_step(self, parameters: Tables) -> Expected:
        with np.errstate(divide="ignore"):
            joint = np.tile(np.log(parameters.priors), (len(self.X), 1))
            for column, table in zip(self.X.T, parameters.columns):
                joint += np.where(column[:, None] >= 0, np.log(table[:, column].T), 0.0)
        known = (self.y >= 0)[:, None] & (np.arange(self.n_classes) != self.y[:, None])
        joint = np.where(known, -np.inf, joint)
        total = logsumexp(joint, axis=1)
        shares = np.exp(joint - total[:, None])
        counts = []
        for column, table in zip(self.X.T, parameters.columns):
            seen = column >= 0
            count = shares[~seen].sum(axis=0)[:, None] * table  # what the gaps are expected to hold
            np.add.at(count.T, column[seen], shares[seen])
            counts.append(count)
        return Expected(float(total.sum()), (shares.sum(axis=0), counts))

    def m_step(self, statistics: tuple[np.ndarray, list[np.ndarray]]) -> Tables:
        classes, counts = statistics
        return Tables(
            classes / classes.sum(), [count / np.maximum(count.sum(axis=1, keepdims=True), 1e-300) for count in counts]
        )

    def log_likelihood(self, parameters: Tables) -> float:
        return self.e_step(parameters).log_likelihood


# Spheres of known variance ------------------------------------------------------------------------------------


class KnownVariance(GaussianProblem):
    """A mixture of equally likely round Gaussians whose variance is known and the same; only the means are learnt.

    As the variance goes to 0 each row belongs to its nearest mean alone, and EM becomes Lloyd's algorithm for k-means.

    >>> from assay.optim.em import em
    >>> model = KnownVariance([[0.0], [1.0], [9.0], [11.0]], variance=1e-6)
    >>> em(model, model.start([[0.0], [1.0]]), tol=1e-12, max_iter=100).parameters.means.round(6).tolist()
    [[0.5], [10.0]]
    """

    def __init__(self, X: Any, variance: float, *, hard: bool = False):
        super().__init__(rows(np.asarray(X, dtype=np.float64)), "spherical", 0.0, hard=hard, name="KnownVariance")
        self.variance = variance

    def start(self, means: Any) -> Components:
        """Return components with these means."""
        means = np.asarray(means, dtype=np.float64)
        variances = np.full(len(means), float(self.variance))
        return Components(
            "spherical", np.full(len(means), 1.0 / len(means)), means, variances, factors_of("spherical", variances)
        )

    def m_step(self, statistics: tuple[Components, Sums]) -> Components:
        before, sums = statistics
        return before._replace(means=before.means + sums.linear / np.maximum(sums.mass, 1e-300)[:, None])
