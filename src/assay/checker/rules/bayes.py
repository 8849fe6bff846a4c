"""Naive Bayes: ln P(x, c) from stored counts and moments, and whether these are the rows'.

A class of probability zero scores 1000 less than the least of the others; if all have probability zero, the scores are
the logarithms of the class probabilities.
"""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property
from typing import Any

import numpy as np

from assay.checker.bounds.tails import MOST_COLUMNS, ln, ln_patterns
from assay.checker.numerics import Sums, above, gamma, largest
from assay.checker.predictors import Predictor
from assay.checker.record import Refused, Rejected, count
from assay.checker.rule import Rule, View
from assay.claims.sentences import Part, Sentence

IMPOSSIBLE = 1000.0


class Joint(Predictor):
    """Classes compared by ln P(x, c): `terms` gives it for each row, with the sum of magnitudes of what was added."""

    prior: np.ndarray
    classes: tuple[str, ...]
    roundings: int = 64

    def terms(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def tally(self, X: np.ndarray, member: np.ndarray) -> tuple[np.ndarray, bool]:
        """Return the counts of these rows, of which each counts as `member` (n, K) says for each class, in the shape of
        `counts`; and whether all that is counted are whole numbers."""
        raise NotImplementedError

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, sizes = self._decided(X)
        return values, above(gamma(self.roundings) * sizes.max(axis=0, initial=0.0), 8)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return above(gamma(self.roundings) * self._decided(X)[1], 8)

    def _decided(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, sizes = self.terms(X)
        none = (values == -np.inf).all(axis=1)
        values = np.where(none[:, None], logs(self.prior), values)
        possible = values > -np.inf
        least = np.where(possible, values, np.inf).min(axis=1, initial=np.inf)
        values = np.where(possible, values, (least - IMPOSSIBLE)[:, None])
        most = sizes.max(axis=1, initial=0.0) + np.abs(values).max(axis=1, initial=0.0) + 16
        return values, np.broadcast_to(most[:, None], values.shape)

    @property
    def dimension(self) -> int | None:
        """The dimension of the linear space that the scores lie in, None if there is none."""
        return None

    def own_growth(self, descriptor: Any, points: int) -> Decimal | None:
        if descriptor.get("class") != "function-space":
            return None
        stated = count(descriptor.get("dimension"), "dimension of the class", 1)
        k = count(descriptor.get("classes"), "classes of the class", 2)
        if self.dimension is None or not self.dimension <= stated <= MOST_COLUMNS or k < len(self.classes):
            raise Rejected(f"the class has dimension {stated} and {k} labels; the model does not belong to it")
        with localcontext(prec=60):
            return (ln(2) + ln_patterns(points - 1, stated - 1)) * (k * (k - 1) // 2)


def logs(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(values)


def check_classes(sizes: np.ndarray, prior: np.ndarray, classes: tuple[str, ...]) -> None:
    K = len(classes)
    if sizes.shape != (K,) or prior.shape != (K,) or np.any(sizes < 0) or np.any(prior < 0):
        raise Rejected(f"class_count_ and class_prior_ must be {K} numbers >= 0")
    if abs(math.fsum(prior) - 1) > 1e-6:
        raise Rejected("class_prior_ does not sum to 1")


class CountsOfRows(Rule):
    """counts.mle: no stored count differs from that of the rows by more than the value; the class probabilities are the
    shares of the counts, with `prior_alpha` rows added to each class if "smoothed", equal, or given."""

    def prepare(self) -> None:
        self.check_rows()
        self.prior = self.choice("prior", ["rows", "smoothed", "uniform", "given"])
        self.added = self.number("prior_alpha") if self.prior == "smoothed" else 0.0
        self.sums, self.class_sums = np.zeros(self.model.counts.shape), np.zeros(self.model.sizes.shape)
        self.exact, self.seen = True, 0

    def block(self, view: View) -> None:
        member = np.eye(len(self.model.classes))[view.known_codes] * view.weight[:, None]
        result, whole = self.model.tally(view.X, member)
        self.sums += result
        self.class_sums += member.sum(axis=0)
        self.seen += len(view.X)
        self.exact &= whole and bool(np.all(view.weight % 1 == 0))

    def measure(self) -> float:
        if self.prior != "given":
            shares = np.full(len(self.class_sums), 1.0) if self.prior == "uniform" else self.class_sums + self.added
            expected = shares / shares.sum()
            if np.any(np.abs(expected - self.model.prior) > 1e-12 + gamma(4 * self.seen) * expected):
                raise Rejected(f"class_prior_ are not the class probabilities by {self.prior!r}")
        worst = 0.0
        for sums, stored in ((self.sums, self.model.counts), (self.class_sums, self.model.sizes)):
            most = float(np.max(sums, initial=0.0))
            exact = self.exact and most < 2**53
            slip = 0.0 if exact else gamma(2 * self.seen + 8) * sums
            scale = 1.0 if exact else max(1.0, most)
            worst = largest(worst, float(np.max((np.abs(sums - stored) + slip) / scale, initial=0.0)))
        return above(worst)


COUNTS_OF_ROWS = Sentence(
    {
        "": "The counts that the probabilities are made of are {exact} of the {rows} training rows, and so of maximum "
        "likelihood, smoothed as declared; the class probabilities are {shares}.",
        "exact": "exactly those",
        "up-to": "those, up to a share of {value:up1} of the largest,",
        "rows": "the shares of the classes",
        "smoothed": "the shares of the classes with {prior_alpha} rows added to each",
        "uniform": "equal",
        "given": "as given",
    },
    lambda value, direction, params: {"exact": Part("up-to" if value else "exact"), "shares": Part(params["prior"])},
)


# Columns: normal numbers and tables of levels ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ColumnTables(Joint):
    """ln P(c) + sum of ln P(x_j | c) over the values that are there."""

    n_levels: np.ndarray  # (d,) -1 for numbers
    values: np.ndarray  # (S,)
    counts: np.ndarray  # (K, S)
    present: np.ndarray  # (K, p)
    theta: np.ndarray
    var: np.ndarray
    added: np.ndarray  # (p,)
    sizes: np.ndarray  # (K,)
    prior: np.ndarray
    smoothing: np.ndarray  # alpha, m
    gaps: int  # 1 if values may be missing, or of no known level
    classes: tuple[str, ...]

    @property
    def reads_gaps(self) -> bool:  # type: ignore[override]
        return bool(self.gaps)

    @property
    def columns(self) -> int:
        return len(self.n_levels)

    @property
    def width(self) -> int:  # type: ignore[override]
        return 4 * len(self.classes) + self.columns

    @property
    def roundings(self) -> int:  # type: ignore[override]
        return 2 * self.columns + 64

    @property
    def parts(self) -> list[tuple[int, slice]]:
        """Position and place in the tables of each column of levels."""
        at, results = 0, []
        for j in np.flatnonzero(self.n_levels >= 0):
            results.append((int(j), slice(at, at + int(self.n_levels[j]))))
            at += int(self.n_levels[j])
        return results

    @property
    def numeric(self) -> np.ndarray:
        return np.flatnonzero(self.n_levels < 0)

    @cached_property
    def tables(self) -> np.ndarray:
        """ln of (n + alpha + m p) / (N + alpha S + m), (K, S)."""
        result = np.zeros(self.counts.shape)
        alpha, m = self.smoothing
        for _, part in self.parts:
            n, size = self.counts[:, part], part.stop - part.start
            if not size:
                continue
            share = n.sum(axis=0) / n.sum() if n.sum() > 0 else np.full(size, 1 / size)
            below = n.sum(axis=1, keepdims=True) + alpha * size + m
            with np.errstate(divide="ignore", invalid="ignore"):
                result[:, part] = np.where(below > 0, logs((n + alpha + m * share) / below), -math.log(size))
        return result

    def codes(self, x: np.ndarray, part: slice) -> np.ndarray:
        """Return the place of each value among the levels, -1 if it is none of them."""
        levels = self.values[part]
        if not len(levels):
            return np.full(len(x), -1)
        at = np.minimum(np.searchsorted(levels, x), len(levels) - 1)
        result = np.where(levels[at] == x, at, -1)
        if not self.gaps and np.any(result < 0):
            raise Refused("a column holds a level that the model does not know")
        return result

    def terms(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        total = np.repeat(logs(self.prior)[None], len(X), axis=0)
        sizes = np.where(np.isfinite(total), np.abs(total), 0.0)
        for j, part in self.parts:
            code = self.codes(X[:, j], part)
            there = np.flatnonzero(code >= 0)
            value = self.tables[:, part].T[code[there]]
            total[there] += value
            sizes[there] += np.where(np.isfinite(value), np.abs(value), 0.0) + 4
        for i, j in enumerate(self.numeric):
            there = np.flatnonzero(~np.isnan(X[:, j]))
            square = np.square(X[there, j][:, None] - self.theta[:, i]) / (2 * self.var[:, i])
            scale = 0.5 * np.log(2 * math.pi * self.var[:, i])
            total[there] -= square + scale
            sizes[there] += square + np.abs(scale) + 4
        return total, sizes

    def tally(self, X: np.ndarray, member: np.ndarray) -> tuple[np.ndarray, bool]:
        result = np.zeros(self.counts.shape)
        for j, part in self.parts:
            code = self.codes(X[:, j], part)
            there, table = code >= 0, np.zeros((part.stop - part.start, member.shape[1]))
            np.add.at(table, code[there], member[there])
            result[:, part] = table.T
        return result, True

    @property
    def dimension(self) -> int | None:
        if not np.isfinite(self.tables).all() or not np.all(self.prior > 0):
            return None
        levels = np.maximum(self.n_levels[self.n_levels >= 0] - 1 + self.gaps, 0)
        return 1 + (2 + self.gaps) * len(self.numeric) + int(levels.sum())


def read_columns(*arrays: Any) -> ColumnTables:
    """Return the model after checking that its arrays fit together."""
    n_levels, values, counts, present, theta, var, added, sizes, prior, smoothing, gaps, types, classes = arrays
    K = len(classes)
    if n_levels.ndim != 1 or not len(n_levels) or np.any(n_levels < -1):
        raise Rejected("n_levels_ must be a number >= 0 for each column of levels, -1 for numbers")
    p, S = int(np.sum(n_levels < 0)), int(np.maximum(n_levels, 0).sum())
    shaped = all(part.shape == (K, p) for part in (present, theta, var)) and added.shape == (p,)
    if not shaped or counts.shape != (K, S) or values.shape != (S,) or smoothing.shape != (2,):
        raise Rejected("the arrays of the columns have shapes that differ")
    if gaps.shape != (1,) or gaps[0] not in (0, 1):
        raise Rejected("reads_gaps_ must be 0 or 1")
    if types.shape not in ((0,), (len(n_levels),)):
        raise Rejected("column_types_ must be empty, or tell the type of each column")
    if any(np.any(part < 0) for part in (counts, present, added, smoothing)) or np.any(var <= 0):
        raise Rejected("counts are negative, or variances not above 0")
    check_classes(sizes, prior, classes)
    rest = (sizes, prior, smoothing, int(gaps[0]), classes)
    model = ColumnTables(n_levels, values, counts, present, theta, var, added, *rest)
    if any(np.any(np.diff(values[part]) <= 0) for _, part in model.parts):
        raise Rejected("the values of the levels of a column must increase")
    return model


# Counts: scores that are linear in the columns ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CountScores(Joint):
    """ln P(c) + <w_c, x> + b_c; a weight of -infinity counts where x > 0."""

    weights: np.ndarray  # (K, d)
    offsets: np.ndarray  # (K, d), 0 unless absence speaks too
    counts: np.ndarray  # (K, d)
    sizes: np.ndarray
    prior: np.ndarray
    used: np.ndarray  # (K,) the class probabilities that take part in the score
    threshold: float | None  # columns become 1 above it, else 0
    classes: tuple[str, ...]

    @property
    def columns(self) -> int:
        return self.weights.shape[1]

    @property
    def roundings(self) -> int:  # type: ignore[override]
        return 4 * self.columns + 64

    def seen(self, X: np.ndarray) -> np.ndarray:
        return X if self.threshold is None else (self.threshold < X).astype(np.float64)

    def terms(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X, prior = self.seen(X), logs(self.used)
        total, sizes = np.zeros((len(X), len(self.classes))) + prior, np.zeros((len(X), len(self.classes)))
        for part, weight in ((X, self.weights), (1 - X, self.offsets)):
            if not np.any(weight):
                continue
            finite = np.where(np.isfinite(weight), weight, 0.0)
            total += part @ finite.T
            sizes += np.abs(part) @ (np.abs(finite) + 8).T
            if not np.isfinite(weight).all():
                total[(part != 0).astype(np.float64) @ np.isinf(weight).astype(np.float64).T > 0] = -np.inf
        return total, sizes + np.where(np.isfinite(prior), np.abs(prior), 0.0)

    def tally(self, X: np.ndarray, member: np.ndarray) -> tuple[np.ndarray, bool]:
        X = self.seen(X)
        if np.any(X < 0):
            raise Rejected("counts are of numbers >= 0")
        return member.T @ X, bool(np.all(X % 1 == 0))

    @property
    def dimension(self) -> int | None:
        finite = np.isfinite(self.weights).all() and np.isfinite(self.offsets).all() and np.all(self.used > 0)
        return self.columns + 1 if finite else None


def _checked(counts: np.ndarray, sizes: np.ndarray, prior: np.ndarray, alpha: np.ndarray, classes: Any) -> None:
    if counts.ndim != 2 or len(counts) != len(classes) or not counts.size or np.any(counts < 0):
        raise Rejected(f"feature_count_ must have a row of numbers >= 0 for each of {len(classes)} classes")
    if alpha.shape != (counts.shape[1],) or np.any(alpha < 0):
        raise Rejected("alpha_ must be a number >= 0 for each column")
    check_classes(sizes, prior, classes)


def read_multinomial(counts: Any, sizes: Any, prior: Any, alpha: Any, classes: Any) -> CountScores:
    _checked(counts, sizes, prior, alpha, classes)
    weights = _shares(counts + alpha)
    return CountScores(weights, np.zeros(counts.shape), counts, sizes, prior, prior, None, classes)


def _shares(counts: np.ndarray) -> np.ndarray:
    """Return ln of the share of each column in its row; equal shares where there is nothing."""
    total = counts.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total > 0, logs(counts / total), -math.log(counts.shape[1]))


def read_complement(counts: Any, sizes: Any, prior: Any, alpha: Any, norm: Any, classes: Any) -> CountScores:
    _checked(counts, sizes, prior, alpha, classes)
    if norm.shape != (1,) or norm[0] not in (0, 1):
        raise Rejected("norm_ must be 0 or 1")
    logged = _shares(np.maximum(counts.sum(axis=0) - counts, 0.0) + alpha)
    if not np.isfinite(logged).all():
        raise Rejected("a word never occurs outside a class, and alpha is 0: its weight would be infinite")
    total = logged.sum(axis=1, keepdims=True)
    if norm[0] and np.any(total == 0):
        raise Rejected("weights that are all zero cannot be normed")
    weights = logged / total if norm[0] else -logged
    used = np.ones(len(classes))
    return CountScores(weights, np.zeros(counts.shape), counts, sizes, prior, used, None, classes)


def read_bernoulli(counts: Any, sizes: Any, prior: Any, alpha: Any, binarize: Any, classes: Any) -> CountScores:
    _checked(counts, sizes, prior, alpha, classes)
    if binarize.shape not in ((0,), (1,)) or np.any(counts > sizes[:, None] * (1 + 1e-12)):
        raise Rejected("binarize_ must be empty or one number, and no count above that of its class")
    below = sizes[:, None] + 2 * alpha
    with np.errstate(divide="ignore", invalid="ignore"):
        present = np.where(below > 0, logs((counts + alpha) / below), -math.log(2))
        absent = np.where(below > 0, logs((np.maximum(sizes[:, None] - counts, 0.0) + alpha) / below), -math.log(2))
    threshold = float(binarize[0]) if len(binarize) else None
    return CountScores(present, absent, counts, sizes, prior, prior, threshold, classes)


def read_poisson(counts: Any, sizes: Any, prior: Any, alpha: Any, beta: Any, classes: Any) -> CountScores:
    """Rates (n + alpha) / (N + beta): x ln r - r is x (ln r - r) - (1 - x) r."""
    _checked(counts, sizes, prior, alpha, classes)
    if beta.shape != (1,) or not beta[0] > 0:
        raise Rejected("beta_ must be one number above 0")
    rate = (counts + alpha) / (sizes[:, None] + beta)
    return CountScores(logs(rate) - rate, -rate, counts, sizes, prior, prior, None, classes)


# Rules -------------------------------------------------------------------------------------------------------


class NormalColumns(Rule):
    """gaussian-nb.mle: means and variances of the numeric columns in each class are those of the rows, up to the value:
    means in units of the standard deviation, variances relatively; `added_` is part of each variance."""

    def prepare(self) -> None:
        self.check_rows()
        if not isinstance(self.model, ColumnTables) or not len(self.model.numeric):
            raise Rejected("such a model has no normal columns")
        self.ddof = self.choice("ddof", [0, 1])
        K, p = self.model.theta.shape
        self.sums = [[Sums(p) for _ in range(3)] for _ in range(K)]

    def block(self, view: View) -> None:
        for k, (weight, first, second) in enumerate(self.sums):
            own = view.known_codes == k
            X = view.X[own][:, self.model.numeric]
            there = ~np.isnan(X)
            w = view.weight[own][:, None] * there
            apart = np.where(there, X - self.model.theta[k], 0.0) / np.sqrt(self.model.var[k])
            weight.add(w)
            first.add(w * apart)
            second.add(w * np.square(apart))

    def measure(self) -> float:
        worst = 0.0
        for k, (weight, first, second) in enumerate(self.sums):
            n = weight.value - weight.error
            if np.any(n <= self.ddof):
                raise Rejected("a class has too few values for a variance")
            if np.any(np.abs(weight.value - self.model.present[k]) > weight.error + 1e-9 * n):
                raise Rejected("column_count_ is not the number of values")
            rounding = gamma(64) * (second.value + weight.value)  # of the standardised values and their squares
            shift = (np.abs(first.value) + first.error + rounding) / n
            spread = second.value / (weight.value - self.ddof) + self.model.added / self.model.var[k]
            about_mean = shift * shift * above(weight.value / (n - self.ddof))
            off = np.abs(spread - 1) + about_mean + (second.error + rounding) / (n - self.ddof) + gamma(16)
            worst = largest(worst, float(np.max(shift)), float(np.max(off)))
        return above(worst)
