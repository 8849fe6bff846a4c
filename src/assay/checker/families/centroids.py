"""Rows near the closest of k centres (k-means): cost and fixed point (kmeans.fixed-point), what any centres cost
(kmeans.lower-bound, kmeans-1d.optimal), new rows (kmeans.risk)."""

import math
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from assay.checker.family import NUMBERS, Family, Variant
from assay.checker.numerics import Products, Sums, U, above, gamma, norm_above
from assay.checker.record import Refused, Rejected
from assay.checker.rule import View
from assay.checker.rules.centroids import RISK, Centroids, ClusterRule, Scatter, eigenvalues
from assay.claims.definitions import Definition
from assay.claims.sentences import WEIGHED, Part, Sentence

_KEPT = 2**25  # entries of X that are sorted in one pass over the rows
_MOST_STEPS = 2**31  # of the programme over buckets
_MOST_BUCKETS = 2048  # a number is held for each pair of them
_MOST_CUTS = 2**22  # distinct values times clusters, for the exact optimum on a line


def read_centroids(centers: np.ndarray, classes: Any) -> Centroids:
    if centers.ndim != 2 or not centers.size:
        raise Rejected(f"cluster_centers_ has shape {centers.shape}; it must be (k, d)")
    return Centroids(centers)


class FixedPoint(ClusterRule):
    """kmeans.fixed-point: the weighted sum of squared distances of the rows to their nearest centres is at most
    `value`, and no centre that has rows is farther than `shift` from their weighted mean. A row goes to the centre
    whose computed distance is smallest, which is the nearest up to the rounding of a sum of d squares."""

    def prepare(self) -> None:
        super().prepare()
        k, d = self.model.centers.shape
        self.shift = self.number("shift", zero=True)
        self.cost, self.counts, self.products = Sums(1), Sums(k), Products(d, k)

    def block(self, view: View) -> None:
        square = cdist(view.X, self.model.centers, "sqeuclidean")
        nearest = square.argmin(axis=1)
        rows = np.arange(len(nearest))
        least = square[rows, nearest]
        self.cost.add((self.model.enlarged(view.X, least, nearest) * view.weight)[:, None])
        share = np.zeros_like(square)
        share[rows, nearest] = view.weight
        self.counts.add(share)
        self.products.add(view.X, share, view.largest)

    def measure(self) -> float:
        counts = self.counts.value
        full = counts > 0
        means = self.products.value[full] / counts[full, None]
        off = (self.products.error[full] + np.abs(means) * self.counts.error[full, None]) / counts[full, None]
        off = above(off + 8 * U * np.abs(means))
        apart = [norm_above(row) for row in np.abs(self.model.centers[full] - means) + off]
        if max(apart, default=0.0) > self.shift:
            raise Rejected(f"shift is {self.shift:.3g}; a centre is up to {max(apart):.3g} from the mean of its rows")
        return float(above(self.cost.value[0] + self.cost.error[0]))


class LowerBound(ClusterRule):
    """kmeans.lower-bound: no centres, as many as the model has, cost less than `value` on these rows.

    "spectral": the cost is at least trace S less the k - 1 largest eigenvalues of the scatter S about the mean.
    "axes": at least the sum over columns of the least cost of k centres on that column alone (`column_cost`).
    """

    scatter: Any = None  # of the second pass

    def prepare(self) -> None:
        super().prepare()
        k, d = self.model.centers.shape
        self.form = self.choice("form", ["spectral", "axes"])
        if self.form == "spectral":
            self.means = Sums(d + 1)
            return
        self.buckets = self.count("buckets", 1)
        if self.buckets > _MOST_BUCKETS or self.buckets**2 * k * d > _MOST_STEPS:
            raise Refused("so many buckets take too long, or too much memory")
        self.first, self.width, self.found = 0, max(1, _KEPT // self.rows), 0.0
        self.parts: list[np.ndarray] = []
        self.weights: list[np.ndarray] = []

    def block(self, view: View) -> None:
        if self.form == "axes":
            self.parts.append(view.X[:, self.first : self.first + self.width].T.copy())
            if self.first == 0:
                self.weights.append(view.weight.copy())
        elif self.scatter is None:
            self.means.add(np.column_stack([view.X * view.weight[:, None], view.weight]))
        else:
            self.scatter.add(view)

    def next_pass(self) -> bool:
        if self.form == "axes":
            columns, self.parts, weight = np.concatenate(self.parts, axis=1), [], np.concatenate(self.weights)
            for column in columns:
                self.context.clock.check()
                self.found += column_cost(column, weight, len(self.model.centers), self.buckets)
            self.first += self.width
            return self.first < self.model.columns
        if self.scatter is not None:
            return False
        *sums, weight = self.means.value
        if not weight > 0:
            raise Rejected("the rows have no weight")
        self.scatter = Scatter(np.array(sums) / weight)
        return True

    def measure(self) -> float:
        if self.form == "axes":
            return max(self.found * (1 - gamma(2 * self.model.columns + 8)), 0.0)
        S, k = self.scatter.S, len(self.model.centers)
        values, off = eigenvalues((S + S.T) / 2)
        top = values[: k - 1]
        off = (len(top) + len(S)) * above(off + self.scatter.error) + self.scatter.mean_above()
        bound = math.fsum(np.diag(S)) - math.fsum(np.maximum(top, 0.0))
        return max(bound - above(off) - 8 * U * float(np.trace(S)), 0.0)


def column_cost(column: np.ndarray, weight: np.ndarray, k: int, buckets: int) -> float:
    """Return a lower bound of the least cost of k centres on a line.

    The sorted values are cut into buckets. Clusters are intervals, so that each bucket lies in one cluster or is cut
    by a border; what a cut bucket costs is left out. The least cost of the whole buckets over all ways to cut is
    found by dynamic programming; a bucket of equal values need not be cut, since its values may all go to one side.
    """
    order = np.argsort(column, kind="stable")
    kept = order[weight[order] > 0]
    if not len(kept):
        return 0.0
    x, w = _about_mean(column[kept], weight[kept]), weight[kept]
    edges = np.unique(np.linspace(0, len(x), min(buckets, len(x)) + 1).astype(np.int64))
    prefix = [part[edges] for part in _prefix_sums(x, w)]
    cuttable = x[edges[1:] - 1] > x[edges[:-1]]
    cost = _interval_costs(*prefix)
    best = cost[0]
    for _ in range(k - 1):
        begin = np.append(best[0], np.minimum(best[1:], np.where(cuttable, best[:-1], np.inf)))
        best = np.min(begin[:, None] + cost, axis=0)
    return max(float(best[-1]) * (1 - 4 * U) - k * _cost_error(x, w), 0.0)


def _about_mean(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return x less a number near its mean."""
    return x - math.fsum(x * w) / math.fsum(w)


def _prefix_sums(x: np.ndarray, w: np.ndarray) -> list[np.ndarray]:
    """Return 0 and the running sums of w, w x and w x^2, in the widest numbers of the platform."""
    x, w = x.astype(np.longdouble), w.astype(np.longdouble)
    return [np.append(np.longdouble(0), np.cumsum(part)) for part in (w, w * x, w * x * x)]


def _cost_error(x: np.ndarray, w: np.ndarray) -> float:
    """Return a bound of the error of every cost(i, j) = S2 - S1^2 / S0, differences of running sums of n terms.

    Running sums are off by g times those of magnitudes, g = (n + 8) u. S1^2 / S0 is S0 times the square of a mean, and
    no mean is beyond the largest |x|; S0 is exact if weights are whole numbers. Rounding x - mean moves a cost by 4 U
    sum w x^2.
    """
    g = (len(x) + 8) * float(np.finfo(np.longdouble).eps)
    size, largest = np.abs(x), float(np.abs(x).max())
    first, second, mass = math.fsum(w * size), math.fsum(w * size * size), math.fsum(w)
    whole = bool(np.all(w == np.floor(w))) and mass < 2.0**53
    error = (2 * g + 8 * U) * second + 4 * g * largest * first + (2 * g * first) ** 2 / float(w.min())
    error += 0.0 if whole else 2 * g * mass * largest * largest
    return float(above(error, 32)) * 1.01


def _interval_costs(S0: np.ndarray, S1: np.ndarray, S2: np.ndarray) -> np.ndarray:
    """Return sum w x^2 - (sum w x)^2 / sum w of the buckets i..j-1 at [i, j]; infinite for j < i."""
    mass, first = S0[None, :] - S0[:, None], S1[None, :] - S1[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        cost = np.maximum(S2[None, :] - S2[:, None] - np.where(mass > 0, first * first / mass, 0.0), 0.0)
    return np.where(np.arange(len(S0))[:, None] <= np.arange(len(S0))[None, :], cost, np.inf)


class LineOptimum(FixedPoint):
    """kmeans-1d.optimal: the cost of the centres is at most `value` above the least cost of as many centres; one
    column.

    The exact programme: sorted distinct values, prefix sums about the mean,
    best(m, j) = min_i best(m - 1, i) + cost(i, j).
    """

    def prepare(self) -> None:
        ClusterRule.prepare(self)
        if self.model.columns != 1:
            raise Rejected("it is about one column")
        self.cost = Sums(1)
        self.parts: list[np.ndarray] = []

    def block(self, view: View) -> None:
        least = self.model.squared_distances(view.X)[1]
        self.cost.add((least * view.weight)[:, None])
        self.parts.append(np.stack([view.X[:, 0], view.weight]))

    def measure(self) -> float:
        x, w = np.concatenate(self.parts, axis=1)
        return float(
            above(max(self.cost.value[0] + self.cost.error[0] - line_optimum(x, w, len(self.model.centers)), 0.0))
        )


def line_optimum(column: np.ndarray, weight: np.ndarray, k: int) -> float:
    """Return a lower bound of the least cost of k centres on a line, exact up to rounding.

    Each of the k layers is found by halving: the best last border does not move left when the end moves right. Costs
    are off by at most `slip`; a border that is only best up to rounding is best up to 2 slip for later ends too (the
    costs satisfy the quadrangle inequality), so each halving adds that much.
    """
    order = np.argsort(column, kind="stable")
    order = order[weight[order] > 0]
    values, starts = np.unique(column[order], return_index=True)
    if len(values) <= k:
        return 0.0
    if len(values) * k > _MOST_CUTS:
        raise Refused(f"the exact optimum is found for at most {_MOST_CUTS} distinct values times clusters")
    w = np.add.reduceat(weight[order].astype(np.longdouble), starts)
    x = _about_mean(values, w)
    prefix = _prefix_sums(x, w)
    S0, S1, S2 = prefix
    best = np.append(np.longdouble(0), S2[1:] - S1[1:] ** 2 / S0[1:])
    for _ in range(k - 1):
        best = _next_layer(best, *prefix)
    rounded = 4 * U + len(column) * float(np.finfo(np.longdouble).eps)  # also of weights that were added
    return max(float(best[-1]) * (1 - rounded) - k * (2 * len(values).bit_length() + 4) * _cost_error(x, w), 0.0)


def _next_layer(before: np.ndarray, S0: np.ndarray, S1: np.ndarray, S2: np.ndarray) -> np.ndarray:
    """Return min over i <= j of before[i] + cost(i, j) for each j, all ends of one level of the halving at once."""
    n = len(before) - 1
    size = 1 << n.bit_length()
    choice, best = np.full(size + 1, n), np.empty(n + 1, dtype=before.dtype)
    choice[0], best[0] = 0, 0.0
    step = size
    while step > 1:
        step //= 2
        ends = np.arange(step, size, 2 * step)
        ends = ends[ends <= n]
        low, high = choice[ends - step], np.minimum(choice[ends + step], ends)
        lengths = np.maximum(high - low, 0) + 1
        starts = np.append(0, np.cumsum(lengths)[:-1])
        i = np.arange(lengths.sum()) - np.repeat(starts - low, lengths)
        j = np.repeat(ends, lengths)
        mass, first = S0[j] - S0[i], S1[j] - S1[i]
        with np.errstate(divide="ignore", invalid="ignore"):
            cost = np.where(mass > 0, S2[j] - S2[i] - first * first / mass, 0.0)
        value = before[i] + np.maximum(cost, 0.0)
        least = np.minimum.reduceat(value, starts)
        hits = np.flatnonzero(value == np.repeat(least, lengths))
        first_hit = hits[np.searchsorted(hits, starts)]
        best[ends], choice[ends] = least, i[first_hit]
    return best


_FIXED_POINT = Sentence.plain(
    "The squared distances of the {rows} training rows to the nearest of {clusters} centres sum to at most "
    "{value:up10}" + WEIGHED + ", and no centre is farther than {shift:up2} from the mean of its rows."
)


_FLOOR = Sentence(
    {
        "": "No {clusters} centres have squared distances to the training rows that sum to less than {value:out6}"
        + WEIGHED
        + " ({how}).",
        "spectral": "eigenvalues of the scatter",
        "axes": "the best clusters of each column alone",
    },
    lambda value, direction, params: {"how": Part(params["form"])},
)


_OPTIMUM = Sentence.plain(
    "The centres are the best {clusters} on the line: their sum of squared distances to the training rows is at most "
    "{value:up} above the least" + WEIGHED + "."
)


CLAIMS = {
    "D20/1": Definition("kmeans.fixed-point", FixedPoint, _FIXED_POINT),
    "D21/1": Definition("kmeans.lower-bound", LowerBound, _FLOOR, (), ("lower",)),
    "D22/1": Definition("kmeans-1d.optimal", LineOptimum, _OPTIMUM),
    "P26/1": RISK,
}
FAMILY = Family("centroids", {"": Variant({"cluster_centers_": NUMBERS}, read_centroids, target=False)}, CLAIMS)
