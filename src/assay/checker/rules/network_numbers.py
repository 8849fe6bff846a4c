"""Facts about networks with numbers among their nodes (claims network.local-optimum-mixed): their regressions, and
their structure.

Columns of numbers are taken as z = (x - mean) / deviation over all rows; the deviation is 1 if below 1e-12 |mean|. The
cost of a number with k numeric parents is f (k + 2) q - sum over the q combinations of its other parents of

    L = - n/2 (ln(2 pi v) + s / v) - n ln(deviation),   v = max(s, 1e-6),   n rows of the combination,

s their mean squared residual after the best linear function of the numeric parents, those directions left out along
which these vary by at most 1e-12, or by 1e-10 of the most. With n < k + 2 the function is 0, and v = 1. The cost of a
node with states is that of claims chow-liu.optimal; a number is no parent of it.
"""

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from assay.checker.numerics import above, gamma
from assay.checker.record import Refused, Rejected
from assay.checker.rule import View
from assay.checker.rules.network_facts import MOST_CELLS, Families, LocalOptimum, Optimum

_FLOOR, _DIRECTION, _RANK = 1e-6, 1e-12, 1e-10


class Columns(NamedTuple):
    """Numbers z (d, rows), right to a few units in the last place up to one shift, their deviations (d,), and that
    shift, at most (d,)."""

    z: np.ndarray
    deviations: np.ndarray
    shifts: np.ndarray


class MixedFamilies(Families):
    """A rule that compares structures in which some nodes are numbers."""

    def prepare(self) -> None:
        self.begin()
        if 0 not in self.net.sizes:
            raise Rejected("it is about networks with numbers among their nodes")
        if self.rows * len(self.net.sizes) > MOST_CELLS:
            raise Refused("so many rows are not held to fit regressions")
        self.kept: list[np.ndarray] = []

    def block(self, view: View) -> None:
        super().block(view)
        numbers = view.X[:, [j for j in range(view.X.shape[1]) if not self.net.sizes[j]]]
        if not np.isfinite(numbers).all():
            raise Rejected("it is about rows without gaps")
        self.kept.append(numbers.T.copy())

    @cached_property
    def columns(self) -> Columns:
        x = np.concatenate(self.kept, axis=1)
        center = x.mean(axis=1)
        spread = np.sqrt(np.mean((x - center[:, None]) ** 2, axis=1))
        scale = np.where(spread > 1e-12 * np.abs(center), spread, 1.0)
        shift = gamma(x.shape[1] + 8) * np.abs(x).max(axis=1) / scale
        return Columns((x - center[:, None]) / scale[:, None], scale, shift)

    def _cost(self, codes: np.ndarray, child: int, parents: tuple[int, ...]) -> tuple[float, float]:
        if not self.net.sizes[child]:
            return self.regression(codes, child, parents)
        if any(not self.net.sizes[one] for one in parents):
            return math.inf, 0.0
        return super()._cost(codes, child, parents)

    def regression(self, codes: np.ndarray, child: int, parents: tuple[int, ...]) -> tuple[float, float]:
        """Return the cost of a number's family, and how far rounding can move it."""
        place = {node: k for k, node in enumerate(np.flatnonzero(np.array(self.net.sizes) == 0).tolist())}
        states = [one for one in parents if self.net.sizes[one]]
        used = [place[one] for one in (*parents, child) if one in place]
        q, k = math.prod(self.net.sizes[one] for one in states), len(used) - 1
        if q > MOST_CELLS:
            raise Refused("the regressions of a family are too many to be numbered")
        config = np.zeros(codes.shape[1], dtype=np.int64)
        for one in states:
            config = config * self.net.sizes[one] + codes[one]
        order, (_, sizes) = np.argsort(config, kind="stable"), np.unique(config, return_counts=True)
        z, shift = self.columns.z[used], float(self.columns.shifts[used[-1]])
        found = [likelihood(z[:, at], shift) for at in np.split(order, np.cumsum(sizes)[:-1])]
        n, deviation = codes.shape[1], float(np.log(self.columns.deviations[used[-1]]))
        parts = self.factor * (k + 2) * q, -math.fsum(one for one, _ in found), n * deviation
        error = math.fsum(off for _, off in found) + gamma(n + 64) * n * (abs(deviation) + 1)
        return float(sum(parts)), float(above(error + gamma(64) * sum(map(abs, parts)), 64))


def likelihood(z: np.ndarray, shift: float) -> tuple[float, float]:
    """Return L + n ln(deviation) of one combination, z (parents and child, rows), and how far rounding can move it.

    A difference of two numbers is rounded once, so that a common shift of all z is the one large error they can have.
    """
    k, n = len(z) - 1, z.shape[1]
    if n < k + 2:
        value = -0.5 * (n * math.log(2 * math.pi) + float(np.square(z[-1]).sum()))
        reach = float(np.abs(z[-1]).max())
        return value, n * (reach + shift) * shift + gamma(4 * n + 64) * (abs(value) + n)
    apart = z - z.mean(axis=1, keepdims=True)
    moments = apart @ apart.T / n
    off = float(moments.diagonal().max()) * (k + 2) * gamma(n + 64) + float(np.square(z).mean(axis=1).max()) * gamma(64)
    s, wrong = residual(moments, off)
    v = max(s, _FLOOR)
    value = -0.5 * n * (math.log(2 * math.pi * v) + s / v)
    return value, n * wrong / max(v - wrong, _FLOOR) + gamma(64) * (abs(value) + n)


def residual(moments: np.ndarray, off: float) -> tuple[float, float]:
    """Return the least mean squared residual of the last variable given the others, and how far it can be off if every
    moment is by `off`: as much as the quadratic form at the coefficients found, and as that lies above its least."""
    inner, across, total = moments[:-1, :-1], moments[:-1, -1], float(moments[-1, -1])
    if not len(across):
        return total, 2 * off
    spectrum, directions = np.linalg.eigh(inner)
    cut = max(_DIRECTION, _RANK * float(spectrum[-1]))
    if np.any(np.abs(spectrum - cut) < 0.1 * cut + off):
        raise Refused("a direction of the parents of a number is neither flat nor steep")
    kept = spectrum > cut
    directions, spectrum = directions[:, kept], spectrum[kept]
    beta = directions @ (directions.T @ across / spectrum)
    s, size = total - 2 * float(across @ beta) + float(beta @ inner @ beta), 1 + float(np.abs(beta).sum())
    slope = float(np.linalg.norm(directions.T @ (across - inner @ beta))) + off * size
    return s, 4 * off * size**2 + 4 * slope**2 / float(np.min(spectrum, initial=1.0))


class MixedLocalOptimum(MixedFamilies, LocalOptimum):
    """network.local-optimum-mixed: as network.local-optimum, for networks with numbers among their nodes; the score is
    penalised."""

    def prepare(self) -> None:
        MixedFamilies.prepare(self)
        self.read_score()
        self.read_edges()

    def read_score(self) -> None:
        self.factor, self.most = self.number("factor", zero=True), self.count("max_parents")

    def _gain(self, child: int, before: set[int], after: set[int]) -> float:
        if self.net.sizes[child] and any(not self.net.sizes[one] for one in after):
            return -math.inf
        return super()._gain(child, before, after)


class MixedOptimum(MixedFamilies, Optimum):
    """network.optimum-mixed: as network.optimum, for networks with numbers among their nodes; the score is
    penalised."""

    def prepare(self) -> None:
        MixedFamilies.prepare(self)
        self.factor, self.most = self.number("factor", zero=True), self.count("max_parents")
        self.require_few()


class Regressions(MixedFamilies):
    """network.regressions: no other regressions of the numbers, of variances at least a millionth of the columns', have
    a likelihood larger by more than the value; with n < k + 2 rows a combination counts as if it had the column's
    moments."""

    def prepare(self) -> None:
        super().prepare()
        self.own, self.slips = list[float](), list[float]()

    def block(self, view: View) -> None:
        super().block(view)
        codes = self.net.codes(view.X)
        if self.model.classes is not None:
            codes = np.column_stack([codes, view.known_codes])
        for node in range(view.X.shape[1]):
            if not self.net.sizes[node]:
                value, error = self.net.terms(node, codes, view.X)
                self.own.append(math.fsum(value))
                self.slips.append(math.fsum(error))

    def measure(self) -> float:
        costs = [self.cost(node, over) for node, over in enumerate(self.net.parents) if not self.net.sizes[node]]
        best = -math.fsum(cost for cost, _ in costs)
        slack = math.fsum(self.slips) + math.fsum(off for _, off in costs) + gamma(16) * (abs(best) + 1)
        return max(0.0, float(best - math.fsum(self.own) + above(slack, 8)))
