"""Facts about densities: their log-likelihood, and that a Gaussian mixture is a fixed point of EM (claims
density.log-likelihood, counts.mle).

With shares r_ik of the components in each row (times the row's weight), N_k their sums and W the sum of those, and
z = U_k' (x - m_k), the expected log-likelihood of rows and components together is largest, among all weights, means and
covariances of the kind, at the M step. What that gains over the stored parameters is

    W sum_k w_k f(N_k / (W w_k) - 1) + sum_k N_k / 2 (|s_k|^2 + sum_j h(l_kj)),   f(x) = (1 + x) ln(1 + x) - x,
                                                                                 h(x) = x - ln(1 + x),

s_k the mean of z and 1 + l_kj the eigenvalues of the covariance of z: a sum of terms that are not negative, all zero at
a fixed point and nowhere else. An amount `reg` on the diagonals adds reg U_k' U_k to the covariance of z.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from assay.checker.numerics import UNDERFLOW, Sums, U, above, entropy_excess, gamma
from assay.checker.record import Refused, Rejected, signed
from assay.checker.rule import Rule, View
from assay.checker.rules.densities import (
    KINDS,
    Histogram,
    Mixture,
    MixtureClassifier,
    Whitened,
    check_factor,
    summed,
)
from assay.claims.sentences import WEIGHED, Sentence, with_digits

_FARTHEST = 50.0  # error of a logarithm of a share beyond which nothing is claimed
MOST_WORK = 4e8
"""(Rows x components x (columns^2 + 50) + 20,000) x steps that are replayed at most."""
MOST_ENTRIES = 2**26
"""Components x columns^2 up to which moments are held."""


class LogLikelihood(Rule):
    """density.log-likelihood: the mean of ln p(x) over the rows, weighted as they are, is within `value` of
    `center`."""

    def prepare(self) -> None:
        if self.model.loss != "log":
            raise Rejected("it needs a model with a density")
        self.center = signed(self.param("center"), "center")
        self.total = MeanLog()

    def block(self, view: View) -> None:
        low, high = self.model.log_bounds(view.X, view.largest)
        self.total.add(low, high, view.weight)

    def measure(self) -> float:
        low, high = self.total.bounds()
        return float(above(max(high - self.center, self.center - low, 0.0) + 2 * U * abs(self.center), 2))


class MeanLog:
    """A weighted mean over rows of quantities known between two bounds."""

    def __init__(self) -> None:
        self.sums = Sums(3)

    def add(self, low: np.ndarray, high: np.ndarray, weight: np.ndarray) -> None:
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise Rejected("a row has no density")
        terms = np.stack([low * weight, high * weight], axis=1)
        slack = 2 * U * np.abs(terms)
        self.sums.add(np.column_stack([terms[:, 0] - slack[:, 0], terms[:, 1] + slack[:, 1], weight]))

    def bounds(self) -> tuple[float, float]:
        (low, high, weight), (low_off, high_off, off) = self.sums.value, self.sums.error
        if not weight > off:
            raise Rejected("all rows have weight 0")
        low, high = low - 2 * low_off, high + 2 * high_off
        lighter, heavier = weight - 2 * off, weight + 2 * off
        low, high = min(low / lighter, low / heavier), max(high / lighter, high / heavier)
        return float(low - 4 * U * abs(low)), float(high + 4 * U * abs(high))


class Shares:
    """Expected moments of the rows in each component, with bounds of their errors."""

    def __init__(self, model: Mixture):
        k, d = model.means.shape
        _check_size(model)
        self.model, self.mass, self.weight = model, Sums(k), Sums(1)
        self.linear, self.square = np.zeros((k, d)), np.zeros((k, d, d))
        # Sums over rows of: errors of shares, of z times share, of z z' times share; sizes of the last two.
        self.off, self.linear_off, self.square_off = np.zeros(k), np.zeros(k), np.zeros(k)
        self.linear_size, self.square_size = np.zeros(k), np.zeros(k)
        self.longest, self.adds = 1, 0

    def add(self, X: np.ndarray, weight: np.ndarray, largest: np.ndarray) -> None:
        joint, errors, seen = self.model.joint(X, largest)
        total, (low, high) = logsumexp(joint, axis=1), summed(joint, errors)
        share = np.exp(joint - total[:, None]) * weight[:, None]
        # ln share is off by the error of its own term and by that of the logarithm of the sum.
        apart = 2 * (errors + np.maximum(high - total, total - low)[:, None]) + 64 * U
        if not np.max(apart) < _FARTHEST:
            raise Refused("rounding leaves the shares of the components open; scale the columns")
        self.take(share, share * np.expm1(apart) + UNDERFLOW * (1 + weight[:, None]), seen, weight)

    def take(self, share: np.ndarray, lost: np.ndarray, seen: Sequence[Whitened], weight: np.ndarray) -> None:
        """Add rows by their shares (rows, k), which are off by at most `lost`."""
        self.mass.add(share)
        self.weight.add(weight[:, None])
        self.off += lost.sum(axis=0)
        for k, item in enumerate(seen):
            r, z, sure = share[:, k], item.z, share[:, k] + lost[:, k]
            self.linear[k] += r @ z
            self.square[k] += (z * r[:, None]).T @ z
            self.linear_size[k] += r @ item.length
            self.square_size[k] += r @ item.length**2
            self.linear_off[k] += lost[:, k] @ item.length + sure.sum() * item.reach
            self.square_off[k] += lost[:, k] @ item.length**2 + sure @ (2 * item.length * item.reach + item.reach**2)
        self.longest, self.adds = max(self.longest, len(share)), self.adds + 1

    @property
    def _roundings(self) -> int:
        return self.longest + self.adds + 16

    def masses(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return N_k, bounds of their errors, and W rounded down."""
        total = float(self.weight.value[0]) * (1 - 4 * U) - 2 * float(self.weight.error[0])
        return self.mass.value, above(self.off + self.mass.error, self._roundings), total

    def errors(self, k: int) -> tuple[float, float]:
        """Return bounds of the errors of `linear` and `square` of one component, in norm."""
        rounding = gamma(self._roundings)
        linear = self.linear_off[k] + rounding * self.linear_size[k]
        square = self.square_off[k] + rounding * self.square_size[k]
        return float(above(linear, self._roundings)), float(above(square, self._roundings))

    def ratios(self) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of N_k / (W w_k), from below and above; 1 for a component of weight 0."""
        mass, off, total = self.masses()
        weights = self.model.weights / math.fsum(self.model.weights)
        live = weights > 0
        expected = np.where(live, weights, 1.0) * total
        relative = 8 * U + 4 * float(self.weight.error[0]) / total
        low, high = (mass - off) / expected * (1 - relative), (mass + off) / expected * (1 + relative)
        return np.where(live, np.maximum(low, 0.0), 1.0), np.where(live, high, 1.0)


class Stationary(Rule):
    """em.stationary: an M step raises the expected log-likelihood of rows and components by at most `value` per unit of
    weight.

    One step moves no mean by more than `moved` in units of its component's spread, no covariance by more than that
    share of it, and no weight by more than that share. `covariance` is the kind that the model's covariances are of and
    the M step is restricted to. With `class` it is about the rows and components of one class.
    """

    def prepare(self) -> None:
        part, self.code = _mixture_of(self)
        self.part = _of_kind(part, self.choice("covariance", KINDS))
        self.reg, self.moved = self.number("reg_covar", zero=True), self.number("moved", zero=True)
        self.shares = Shares(self.part)

    def block(self, view: View) -> None:
        chosen = np.ones(len(view.X), dtype=bool) if self.code is None else view.codes == self.code
        if chosen.any():
            self.shares.add(view.X[chosen], view.weight[chosen], view.largest)

    def measure(self) -> float:
        low, high = self.shares.ratios()
        mass, off, total = self.shares.masses()
        if np.any((mass <= 2 * off) & (self.part.weights > 0)):
            raise Refused("a component has hardly any rows")
        weights = self.part.weights / math.fsum(self.part.weights)
        gains = np.maximum(entropy_excess(low - 1), entropy_excess(high - 1)) * (1 + 1e-12)
        spread, moved = self._spread(mass, off, total)
        result = above(float(weights @ gains) + spread, 64)
        moved = max(moved, float(np.max(np.maximum(high - 1, 1 - low))))
        if above(moved) > self.moved:
            raise Rejected(f"moved is {self.moved:.6g}; a step moves something by up to {moved:.6g}")
        return float(result)

    def _spread(self, mass: np.ndarray, off: np.ndarray, total: float) -> tuple[float, float]:
        """Return the gain of means and covariances per unit of weight, and the farthest that one of them moves."""
        k, d = self.part.means.shape
        share = above((mass + off) / total, 4)
        gain, farthest = 0.0, 0.0
        pooled, pooled_error = np.zeros((d, d)), 0.0
        for c in range(k):
            if self.part.weights[c] == 0:
                continue
            s, s_off, A, error = self._moments(c, mass[c], off[c])
            length = above(float(np.linalg.norm(s)) + s_off, d + 8)
            farthest = max(farthest, length)
            gain += share[c] * length**2 / 2
            if self.part.kind == "tied":
                pooled += mass[c] / total * A
                pooled_error += share[c] * error + float(np.linalg.norm(A)) * (off[c] / total + 16 * U * share[c])
            else:
                more, moved = self._covariance(A, error, self.part.factors[c])
                gain, farthest = gain + share[c] * more / 2, max(farthest, moved)
        if self.part.kind == "tied":
            more, moved = self._covariance(pooled, pooled_error, self.part.factors[0])
            gain, farthest = gain + more / 2, max(farthest, moved)
        return gain, farthest

    def _moments(self, c: int, mass: float, off: float) -> tuple[np.ndarray, float, np.ndarray, float]:
        """Return the mean of z and a bound of its error, and cov(z) - I with a bound of its error in norm."""
        d, least = self.part.columns, mass - off
        s = self.shares.linear[c] / mass
        size = float(np.linalg.norm(s))
        linear_off, square_off = self.shares.errors(c)
        s_off = above((linear_off + size * off) / least + 8 * U * size)
        M = self.shares.square[c] / mass
        error = (square_off + float(np.linalg.norm(M)) * off) / least
        error += 2 * size * s_off + s_off**2 + 16 * d * U * (float(np.linalg.norm(M)) + size**2 + d)
        return s, s_off, (M + M.T) / 2 - np.outer(s, s) - np.eye(d), float(above(error))

    def _covariance(self, A: np.ndarray, error: float, factor: np.ndarray) -> tuple[float, float]:
        """Return sum_j h(l_j) and |A| in norm, both bounded from above; A = cov(z) - I before `reg` is added."""
        d = len(A)
        added = self.reg * (factor.T @ factor if factor.ndim == 2 else np.diag(factor**2))
        error += gamma(d + 16) * self.reg * float(np.sum(np.abs(factor) ** 2))
        A = A + (added + added.T) / 2
        if self.part.kind == "diag":
            values = np.diag(A)
        elif self.part.kind == "spherical":
            values = np.full(d, float(np.mean(np.diag(A))))
        else:
            values, V = np.linalg.eigh(A)
            apart = float(np.linalg.norm(A - (V * values) @ V.T)) + gamma(4 * d + 16) * d * float(np.linalg.norm(A))
            skew = float(np.linalg.norm(V.T @ V - np.eye(d))) + gamma(2 * d + 16) * d
            error += apart + skew * float(np.abs(values).max())
        error = float(above(error + 8 * d * U))
        if values.min() - error <= -1:
            raise Rejected("the covariance of a component's rows is not shown to be positive definite")
        ends = np.stack([values - error, values + error])
        return float(above(np.maximum(*_excess(ends)).sum(), d + 16)), float(above(np.abs(ends).max() * math.sqrt(d)))


def _excess(x: np.ndarray) -> np.ndarray:
    """Return x - ln(1 + x), rounded up."""
    series = x**2 * (1 / 2 - x * (1 / 3 - x * (1 / 4 - x * (1 / 5 - x * (1 / 6 - x * (1 / 7 - x / 8))))))
    return np.where(np.abs(x) < 0.01, series, x - np.log1p(x)) * (1 + 1e-12)


def _mixture_of(rule: Rule) -> tuple[Mixture, int | None]:
    """Return the mixture that a claim is about, and the class whose rows it is fitted to, if there are classes."""
    if isinstance(rule.model, Mixture):
        if "class" in rule.params:
            raise Rejected("the model has no classes")
        return rule.model, None
    if not isinstance(rule.model, MixtureClassifier):
        raise Rejected("it needs a Gaussian mixture")
    code = rule.count("class")
    if code >= len(rule.model.parts):
        raise Rejected(f"there is no class number {code}")
    return rule.model.parts[code], code


def _check_size(part: Mixture) -> None:
    k, d = part.means.shape
    if k * d * d > MOST_ENTRIES:
        raise Refused(f"moments of {k} components in {d} columns are not held: more than {MOST_ENTRIES} numbers")


def _of_kind(part: Mixture, kind: str) -> Mixture:
    """Return the mixture as one of the kind, if it is one."""
    _check_size(part)
    matrices = [U if U.ndim == 2 else np.diag(U) for U in part.factors]
    if kind == "full":
        return Mixture(part.weights, part.means, tuple(matrices), kind)
    if kind == "tied":
        if any(not np.array_equal(U, matrices[0]) for U in matrices):
            raise Rejected("the components do not share one covariance")
        return Mixture(part.weights, part.means, tuple(matrices), kind)
    scales = [np.diag(U) for U in matrices]
    if any(not np.array_equal(U, np.diag(scale)) for U, scale in zip(matrices, scales)):
        raise Rejected("a covariance is not diagonal")
    if kind == "spherical" and any(np.any(scale != scale[0]) for scale in scales):
        raise Rejected("a covariance is not a multiple of the identity")
    return Mixture(part.weights, part.means, tuple(scales), kind)


class BestWeights(Rule):
    """em.weights: no other weights of the same components have a mean log-likelihood higher by more than `value`.

    The log-likelihood is concave in the weights, so its gain is at most max_k N_k / (W w_k) - 1 (Lindsay 1983).
    """

    def prepare(self) -> None:
        self.part, self.code = _mixture_of(self)
        if np.any(self.part.weights == 0):
            raise Rejected("a component of weight 0 could gain any amount")
        self.shares = Shares(self.part)

    def block(self, view: View) -> None:
        chosen = np.ones(len(view.X), dtype=bool) if self.code is None else view.codes == self.code
        if chosen.any():
            self.shares.add(view.X[chosen], view.weight[chosen], view.largest)

    def measure(self) -> float:
        return float(above(max(0.0, float(self.shares.ratios()[1].max()) - 1)))


class Monotone(Rule):
    """em.monotone: EM from the listed start reaches the model in `steps` steps, none of which lowers the mean
    log-likelihood by more than `value`.

    The steps are made again here, in binary64. They end within `distance` of the model: in means, in units of the
    component's spread, in covariances and weights as shares of them.
    """

    def prepare(self) -> None:
        if not isinstance(self.model, Mixture):
            raise Rejected("it needs a Gaussian mixture")
        self.steps, self.distance = self.count("steps", 1), self.number("distance")
        self.reg = self.number("reg_covar", zero=True)
        k, d = self.model.means.shape
        if (self.rows * k * (d * d + 50) + 20_000) * self.steps > MOST_WORK:
            raise Refused("so many steps on so many rows are not made again")
        factors = self.witness("factors", k, d, d)
        for factor in factors:
            check_factor(factor)
        weights = self.witness("weights", k)
        if np.any(weights < 0) or abs(math.fsum(weights) - 1) > 1e-9:
            raise Rejected("the weights of the start must be at least 0 and sum to 1")
        kind = "full" if self.model.kind != "tied" else "tied"
        self.at = Mixture(weights, self.witness("means", k, d), tuple(factors), kind)
        self.done, self.fall = 0, 0.0
        self.before: float | None = None
        self._begin()

    def _begin(self) -> None:
        self.total, self.shares = MeanLog(), Shares(self.at)

    def block(self, view: View) -> None:
        self.total.add(*self.at.log_bounds(view.X, view.largest), view.weight)
        if self.done < self.steps:
            self.shares.add(view.X, view.weight, view.largest)

    def next_pass(self) -> bool:
        low, high = self.total.bounds()
        if self.before is not None:
            self.fall = max(self.fall, self.before - low)
        self.before = high
        if self.done == self.steps:
            return False
        self._step()
        self.done += 1
        self._begin()
        return True

    def _step(self) -> None:
        mass, _, _ = self.shares.masses()
        if np.any(mass <= 1e-12 * mass.sum()):
            raise Refused("a component loses its rows")
        means, S, d = [], [], self.at.columns
        for c, factor in enumerate(self.at.factors):
            s, M = self.shares.linear[c] / mass[c], self.shares.square[c] / mass[c]
            back = np.linalg.inv(factor.T)
            means.append(self.at.means[c] + back @ s)
            S.append(back @ (M - np.outer(s, s)) @ back.T)
        share = mass / mass.sum()
        if self.model.kind == "tied":
            S = [np.einsum("k,kij->ij", share, np.array(S))] * len(S)
        matrices = [_restricted(node, self.model.kind) + self.reg * np.eye(d) for node in S]
        self.covariances = matrices
        factors = tuple(np.triu(np.linalg.inv(np.linalg.cholesky((matrix + matrix.T) / 2)).T) for matrix in matrices)
        self.at = Mixture(share, np.array(means), factors, self.at.kind)

    def measure(self) -> float:
        apart = [np.abs(self.at.weights - self.model.weights).max()]
        for c, own in enumerate(self.model.factors):
            factor = own if own.ndim == 2 else np.diag(own)
            apart.append(np.linalg.norm(factor.T @ (self.at.means[c] - self.model.means[c])))
            apart.append(np.linalg.norm(factor.T @ self.covariances[c] @ factor - np.eye(len(factor))))
        farthest = float(np.max(apart))  # not a number if one of them is
        if not farthest * (1 + 1e-6) <= self.distance:
            raise Rejected(f"the steps end {farthest:.3g} from the model, more than {self.distance:.3g}")
        return float(above(self.fall))


def _restricted(S: np.ndarray, kind: str) -> np.ndarray:
    if kind == "diag":
        return np.diag(np.diag(S))
    return np.eye(len(S)) * np.mean(np.diag(S)) if kind == "spherical" else S


class HistogramCounts(Rule):
    """histogram.counts: the cells hold exactly the stored numbers of rows, and `value` rows lie outside the grid."""

    def prepare(self) -> None:
        if not isinstance(self.model, Histogram):
            raise Rejected("it needs a histogram")
        self.check_rows()
        self.counted, self.outside = np.zeros(len(self.model.cells), dtype=np.int64), 0

    def block(self, view: View) -> None:
        if np.any(view.weight != 1):
            raise Rejected("rows with weights are not counted")
        _, inside, at = self.model.find(view.X)
        if np.any(inside & (at < 0)):
            raise Rejected("a row lies in a cell that is not listed")
        self.outside += int(np.count_nonzero(~inside))
        self.counted += np.bincount(at[inside], minlength=len(self.counted))

    def measure(self) -> float:
        if not np.array_equal(self.counted, self.model.counts):
            wrong = int(np.flatnonzero(self.counted != self.model.counts)[0])
            raise Rejected(f"cell {wrong} holds {self.counted[wrong]} rows, not {self.model.counts[wrong]:g}")
        return float(self.outside)


LOG_LIKELIHOOD = Sentence(
    {"": "The mean log-likelihood of the training rows is {shown} nats, to within {within:up1}" + WEIGHED + "."},
    with_digits,
)
