"""The checker's own densities: Gaussian mixtures, histograms, and the classifier that compares mixtures of classes.

The density of a mixture is defined by its stored numbers: p(x) = sum_k w_k det(U_k) phi(U_k' (x - m_k)), phi the
standard normal density, U_k upper triangular with a positive diagonal, weights divided by their sum. It integrates to
one whatever the numbers are.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from assay.checker.numerics import U as UNIT
from assay.checker.numerics import above, gamma
from assay.checker.predictors import DensityModel, Predictor
from assay.checker.record import Rejected

KINDS = ("full", "tied", "diag", "spherical")
_LOG_2PI = math.log(2 * math.pi)
_MOST_CELLS = 2**62


class Whitened:
    """U_k'(x - m_k) of a block for one component, and how far rounding can move it: in length, and its square."""

    def __init__(self, X: np.ndarray, largest: np.ndarray, mean: np.ndarray, factor: np.ndarray):
        apart = X - mean
        self.z = apart @ factor if factor.ndim == 2 else apart * factor
        size = largest + np.abs(mean)
        each = size @ np.abs(factor) if factor.ndim == 2 else size * np.abs(factor)
        d = X.shape[1]
        self.reach = float(above(gamma(2 * d + 16) * math.sqrt(float(each @ each)), d + 8))
        self.square = np.einsum("ij,ij->i", self.z, self.z)
        self.length = above(np.sqrt(self.square), d + 8)

    def square_error(self) -> np.ndarray:
        d = self.z.shape[1]
        return above(2 * self.length * self.reach + self.reach**2 + gamma(d + 8) * self.square)


@dataclass(frozen=True)
class Mixture(DensityModel):
    """A Gaussian mixture; `factors` has a matrix (d, d) or a row of scales (d,) for each component."""

    weights: np.ndarray
    means: np.ndarray
    factors: tuple[np.ndarray, ...]
    kind: str

    @property
    def columns(self) -> int:
        return self.means.shape[1]

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.means.size

    def constants(self) -> tuple[np.ndarray, np.ndarray]:
        """Return ln w_k + ln det U_k - d/2 ln(2 pi), and bounds of their errors."""
        d = self.columns
        logs = [np.log(np.diag(U) if U.ndim == 2 else U) for U in self.factors]
        with np.errstate(divide="ignore"):
            shares = np.log(self.weights / math.fsum(self.weights))
        sizes = np.where(np.isfinite(shares), np.abs(shares), 0.0) + [np.abs(log_).sum() for log_ in logs] + d
        total = shares + [math.fsum(log_) for log_ in logs] - 0.5 * d * _LOG_2PI
        return total, gamma(2 * d + 32) * (sizes + 2)

    def joint(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[Whitened]]:
        """Return ln w_k N_k(x) (rows, k), bounds of their errors, and the rows as each component sees them."""
        constants, slack = self.constants()
        seen = [Whitened(X, largest, m, U) for m, U in zip(self.means, self.factors)]
        values = np.stack([c - 0.5 * item.square for c, item in zip(constants, seen)], axis=1)
        errors = np.stack([0.5 * item.square_error() for item in seen], axis=1) + slack
        return values, above(errors + 4 * UNIT * np.abs(np.where(np.isfinite(values), values, 0.0))), seen

    def log_bounds(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return summed(*self.joint(X, largest)[:2])

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return middle(self.log_bounds(X, largest))

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        low, high = self.log_bounds(X, np.abs(X).max(axis=0))
        return (high - low)[:, None]


def summed(joint: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds of ln sum_k exp(joint_k), whose terms are off by `errors`."""
    low, high = logsumexp(joint - errors, axis=1), logsumexp(joint + errors, axis=1)
    slack = 8 * UNIT * (np.abs(low) + np.abs(high) + joint.shape[1] + 8)
    return low - slack, high + slack


def middle(bounds: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the values between two bounds (rows, 1) and the largest distance from them (1,)."""
    low, high = bounds
    return ((low + high) / 2)[:, None], np.array([float(above(np.max(high - low)))])


def read_mixture(kind: str, weights: np.ndarray, means: np.ndarray, factors: np.ndarray, classes: None) -> Mixture:
    """Return the mixture that these arrays define."""
    if means.ndim != 2 or not means.size:
        raise Rejected(f"means_ has shape {means.shape}; it must be (components, columns)")
    k, d = means.shape
    shape = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[kind]
    if weights.shape != (k,) or factors.shape != shape:
        raise Rejected(f"weights_ {weights.shape}, means_ {means.shape}, precisions_cholesky_ {factors.shape} differ")
    check_weights(weights)
    if kind == "spherical":
        factors = np.repeat(factors[:, None], d, axis=1)
    each = (factors,) * k if kind == "tied" else tuple(factors)
    for U in each:
        check_factor(U)
    return Mixture(weights, means, each, kind)


def check_weights(weights: np.ndarray) -> None:
    if np.any(weights < 0) or abs(math.fsum(weights) - 1) > 1e-9:
        raise Rejected("weights must be at least 0 and sum to 1")


def check_factor(U: np.ndarray) -> None:
    if np.any((np.diag(U) if U.ndim == 2 else U) <= 0) or (U.ndim == 2 and np.any(np.tril(U, -1))):
        raise Rejected("a factor must be upper triangular with a positive diagonal")


@dataclass(frozen=True)
class MixtureClassifier(Predictor):
    """Score of class c: ln prior_c + ln density of the mixture of its components."""

    priors: np.ndarray
    owner: np.ndarray  # class of each component
    parts: tuple[Mixture, ...]
    classes: tuple[str, ...] | None

    @property
    def columns(self) -> int:
        return self.parts[0].columns

    @property
    def width(self) -> int:  # type: ignore[override]
        return sum(part.width for part in self.parts)

    def _bounds(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        total = math.fsum(self.priors)
        with np.errstate(divide="ignore"):
            logs = np.log(self.priors / total)
        results = [part.log_bounds(X, largest) for part in self.parts]
        low, high = (np.stack([result[side] for result in results], axis=1) + logs for side in (0, 1))
        slack = (
            8 * UNIT * (np.abs(np.where(np.isfinite(low), low, 0.0)) + np.abs(np.where(np.isfinite(logs), logs, 0.0)))
        )
        return low - slack, high + slack

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = self._bounds(X, largest)
        return (low + high) / 2, above(np.max(high - low, axis=0))

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        low, high = self._bounds(X, np.abs(X).max(axis=0))
        return high - low


def read_classifier(
    priors: np.ndarray,
    owner: np.ndarray,
    weights: np.ndarray,
    means: np.ndarray,
    factors: np.ndarray,
    classes: tuple[str, ...],
) -> MixtureClassifier:
    """Return the classifier that these arrays define; components of a class stand together, in order of class."""
    k = len(owner)
    if priors.shape != (len(classes),) or owner.shape != (k,) or weights.shape != (k,) or len(means) != k:
        raise Rejected("priors_, component_class_, weights_ and means_ do not fit together")
    if np.any(priors <= 0) or abs(math.fsum(priors) - 1) > 1e-9:
        raise Rejected("priors_ must be above 0 and sum to 1")
    if not np.array_equal(np.unique(owner), np.arange(len(classes))):
        raise Rejected("component_class_ must name every class")
    parts = tuple(
        read_mixture("full", weights[owner == c], means[owner == c], factors[owner == c], None)
        for c in range(len(classes))
    )
    return MixtureClassifier(priors, owner, parts, classes)


@dataclass(frozen=True)
class Histogram(DensityModel):
    """(count + alpha) / (total + alpha cells) over the volume, in each cell of a grid; 0 outside.

    Cells are [e_i, e_i+1) along each column, the last one closed. Only cells that hold rows are listed.
    """

    edges: np.ndarray  # (d, bins + 1)
    cells: np.ndarray  # (m, d), increasing
    counts: np.ndarray  # (m,)
    alpha: float

    @property
    def columns(self) -> int:
        return len(self.edges)

    def find(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the place of each row's cell along the columns (rows, d), whether it lies in the grid, and its
        position in the list of cells or -1."""
        bins = self.edges.shape[1] - 1
        places = np.stack([np.searchsorted(e, x, side="right") - 1 for e, x in zip(self.edges, X.T)], axis=1)
        places = np.where(self.edges[:, -1] == X, bins - 1, places)
        inside = ((places >= 0) & (places < bins)).all(axis=1)
        codes, known = self.code(np.clip(places, 0, bins - 1)), self.code(self.cells)
        at = np.minimum(np.searchsorted(known, codes), len(known) - 1)
        return places, inside, np.where(inside & (known[at] == codes), at, -1)

    def code(self, places: np.ndarray) -> np.ndarray:
        """Return one integer for each cell, increasing in the order of the list."""
        result = np.zeros(len(places), dtype=np.int64)
        for column in places.T:
            result = result * (self.edges.shape[1] - 1) + column.astype(np.int64)
        return result

    def log_bounds(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        places, inside, at = self.find(X)
        bins, d = self.edges.shape[1] - 1, self.columns
        count = np.where(at >= 0, self.counts[at], 0.0) + self.alpha
        total = math.fsum(self.counts) + self.alpha * float(bins**d)
        where = np.clip(places, 0, bins - 1)
        widths = np.stack([np.diff(e)[p] for e, p in zip(self.edges, where.T)], axis=1)
        with np.errstate(divide="ignore"):
            logs = np.log(np.where(inside, count, 0.0) / total)
            value = logs - np.log(widths).sum(axis=1)
        size = np.where(np.isfinite(logs), np.abs(logs), 0.0) + np.abs(np.log(widths)).sum(axis=1)
        slack = gamma(2 * d + 32) * (size + d + 4)
        return value - slack, value + slack

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return middle(self.log_bounds(X, largest))

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        low, high = self.log_bounds(X, np.abs(X).max(axis=0))
        return (high - low)[:, None]


def read_histogram(
    edges: np.ndarray, cells: np.ndarray, counts: np.ndarray, alpha: np.ndarray, classes: None
) -> Histogram:
    """Return the histogram that these arrays define."""
    if edges.ndim != 2 or edges.shape[1] < 2 or np.any(np.diff(edges, axis=1) <= 0):
        raise Rejected("edges_ must have two or more increasing numbers for each column")
    d, bins = len(edges), edges.shape[1] - 1
    if (
        cells.ndim != 2
        or cells.shape[1:] != (d,)
        or not len(cells)
        or counts.shape != (len(cells),)
        or alpha.shape != (1,)
    ):
        raise Rejected("cells_, counts_ and alpha_ do not fit together")
    if bins**d > _MOST_CELLS:
        raise Rejected("the grid has more than 2^62 cells")
    if np.any(cells != np.floor(cells)) or np.any(cells < 0) or np.any(cells >= bins):
        raise Rejected("cells_ must be places in the grid")
    if np.any(counts <= 0) or alpha[0] < 0:
        raise Rejected("counts_ must be above 0 and alpha_ at least 0")
    result = Histogram(edges, cells, counts, float(alpha[0]))
    if np.any(np.diff(result.code(cells)) <= 0):
        raise Rejected("cells_ must be in order and without repeats")
    return result
