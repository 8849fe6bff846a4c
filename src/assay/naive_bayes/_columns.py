"""Naive Bayes column by column: counts of levels and moments of numbers, summed over blocks of rows.

    P(c | x) ~ P(c) prod_j P(x_j | c)        x_j a number: N(theta_cj, var_cj);  a level: a table of shares

All that a fit learns are sums over the rows, so that rows may come in parts (`partial_fit`), from files or from other
machines, and give the same model.

Claims: the counts are those of the rows, means and variances those of the rows up to a stated error.
Method: one pass; moments of a block are taken about its own means and merged (Chan, Golub and LeVeque 1983).

The fitted columns of naive Bayes as a scorer: normal densities of numbers, tables of levels.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from assay.base import fit_log, require_finite
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.messages import Message
from assay.naive_bayes._base import BayesClassifier, log_of
from assay.params import refuse
from assay.scan import Rows
from assay.theory.spaces import FunctionSpace, Space, Unbounded

_LEAST_VARIANCE = 1e-100


class DegenerateVarianceWarning(UserWarning):
    """A column is constant within a class, and nothing is added to its variance."""


@dataclass(frozen=True)
class Moments:
    """Weight, mean and sum of squares about the mean, (K, p) each, of some rows; they add."""

    count: np.ndarray
    mean: np.ndarray
    square: np.ndarray

    def __add__(self, other: "Moments") -> "Moments":
        count = self.count + other.count
        share = np.divide(other.count, count, out=np.zeros_like(count), where=count > 0)
        apart = other.mean - self.mean
        mean = self.mean + apart * share
        return Moments(count, mean, self.square + other.square + np.square(apart) * self.count * share)

    def together(self) -> "Moments":
        """Return the moments of all classes, (1, p)."""
        count = self.count.sum(axis=0)
        mean = (self.count * self.mean).sum(axis=0) / np.maximum(count, np.finfo(float).tiny)
        square = (self.square + self.count * np.square(self.mean - mean)).sum(axis=0)
        return Moments(count[None], mean[None], square[None])


class Statistics(NamedTuple):
    """What a fit knows of its rows."""

    sizes: np.ndarray  # (K,) weight of the rows of each class
    counts: np.ndarray  # (K, S)
    moments: Moments


class Columns(NamedTuple):
    """Which columns are numbers and which levels, and the values of the levels, column after column."""

    numeric: np.ndarray  # (p,) positions
    nominal: np.ndarray  # (q,) positions
    starts: np.ndarray  # (q + 1,) where the levels of each nominal column begin
    values: np.ndarray  # (S,) the number that stands for each level in the rows; increasing in each column

    @classmethod
    def of(cls, n_levels: np.ndarray, values: np.ndarray, is_numeric: np.ndarray) -> "Columns":
        nominal = np.flatnonzero(~is_numeric)
        starts = np.concatenate([[0], np.cumsum(n_levels[nominal])]).astype(np.int64)
        return cls(np.flatnonzero(is_numeric), nominal, starts, np.asarray(values, dtype=np.float64))

    @property
    def slices(self) -> list[slice]:
        return [slice(int(a), int(b)) for a, b in zip(self.starts[:-1], self.starts[1:])]


class ColumnScorer(NamedTuple):
    """ln P(c) + sum_j ln P(x_j | c) over the values that are there."""

    columns: Columns
    theta: np.ndarray  # (K, p)
    half: np.ndarray  # (K, p) 1 / (2 variance)
    log_scale: np.ndarray  # (K, p) -ln(2 pi variance) / 2
    tables: np.ndarray  # (S, K)
    log_prior: np.ndarray  # (K,)
    gaps: bool  # whether values may be missing
    plain: bool = False  # whether all columns are levels 0, 1, ...

    @property
    def logs(self) -> np.ndarray:
        return self.tables

    def joint(self, X: np.ndarray) -> np.ndarray:
        from assay.naive_bayes._loops import column_scores, gaussian_scores, level_scores

        columns = self.columns
        if self.plain:
            result, odd = level_scores(X, columns.starts, self.tables, self.log_prior)
            if odd >= 0:
                most = columns.starts[odd + 1] - columns.starts[odd] - 1
                raise ValueError(
                    f"CategoricalNB: column {odd} has a value that is no level of it: levels are 0 to {most}. Fit with "
                    "min_categories, or use MixedNB, which leaves unknown levels out."
                )
            return result
        if not len(columns.nominal) and not self.gaps:
            return gaussian_scores(X, self.theta, self.half, self.log_prior + self.log_scale.sum(axis=1))
        return column_scores(
            np.ascontiguousarray(X),
            columns.numeric,
            self.theta,
            self.half,
            self.log_scale,
            columns.nominal,
            columns.starts,
            columns.values,
            self.tables,
            self.log_prior,
        )

    def sizes(self, X: Any, joint: np.ndarray) -> tuple[np.ndarray, int]:
        """The squares of a row have one sign, so that its score is at most the constants away from their sum."""
        finite = np.where(np.isfinite(joint), np.abs(joint), 0.0).max(axis=1)
        tables = np.where(np.isfinite(self.tables), np.abs(self.tables), 0.0)
        constants = sum(float(tables[part].max(initial=0.0)) for part in self.columns.slices)
        constants += float(np.abs(self.log_scale).sum(axis=1).max(initial=0.0))
        constants += float(np.abs(self.log_prior[np.isfinite(self.log_prior)]).max(initial=0.0))
        if len(self.columns.numeric) and not np.isfinite(joint).all():  # squares beside a probability of 0
            apart = np.nan_to_num(X[:, self.columns.numeric, None]) - self.theta.T
            finite = finite + (np.square(apart) * self.half.T).sum(axis=1).max(axis=1)
        return finite + 2 * constants, 2 * (len(self.columns.numeric) + len(self.columns.nominal)) + 16


class ColumnsNB(BayesClassifier):
    """Base of the classifiers whose columns are normal or have tables."""

    family = "naive_bayes.columns"
    columns_: Any = None
    _ddof = 0
    prior_alpha = 0.0
    _gaps = False  # whether values may be missing

    n_levels_: np.ndarray
    level_values_: np.ndarray
    level_counts_: np.ndarray
    column_count_: np.ndarray
    theta_: np.ndarray
    var_: np.ndarray
    added_: np.ndarray
    class_count_: np.ndarray

    def _columns(self) -> Columns:
        return Columns.of(self.n_levels_, self.level_values_, self.n_levels_ < 0)

    def _fit_rows(self, rows: Rows, given: tuple, before: Statistics | None = None) -> None:
        """Fit to rows with labels as positions in `classes_`, after what was seen before."""
        columns, K = self._columns(), len(self.classes_)
        if rows.has_weight:
            check_weights(rows, self)
            if not self._gaps:
                require_finite(rows, self)
        with fit_log(self, 1, *given) as log:
            result = rows.sum(_statistics, K, columns, self._plain_levels, self._gaps)
            if before is not None:
                result = Statistics(*(a + b for a, b in zip(before, result)))
            if not np.isfinite(result.moments.square).all() or not np.isfinite(result.moments.mean).all():
                if not self._gaps:
                    require_finite(rows, self)
                raise refuse(self, "Input X contains infinity, or numbers too large to square; scale the columns.")
            fitted = self._estimates(result)
            for name, value in fitted.items():
                setattr(self, name, value)
            self._tell_zeros(self._scorer().logs)
            log.step(0.0, 0.0, **fitted)

    @property
    def _plain_levels(self) -> bool:
        """Whether all columns are levels 0, 1, ..., checked before."""
        return False

    def _estimates(self, statistics: Statistics) -> dict[str, np.ndarray]:
        added = self._added(statistics.moments)
        theta, var = _normal(statistics.moments, self._ddof)
        var = var + added
        if np.any(var < _LEAST_VARIANCE):
            warnings.warn(
                f"{type(self).__name__}: a column is constant within a class and var_smoothing adds nothing to its "
                f"variance; {_LEAST_VARIANCE:g} stands for it, so that other values are next to impossible there.",
                DegenerateVarianceWarning,
                stacklevel=4,
            )
            var = np.maximum(var, _LEAST_VARIANCE)
        return {
            "class_count_": statistics.sizes,
            "class_prior_": self._prior(statistics.sizes),
            "level_counts_": statistics.counts,
            "column_count_": statistics.moments.count,
            "theta_": theta,
            "var_": var,
            "added_": added,
        }

    def _added(self, moments: Moments) -> np.ndarray:
        """Return what is added to the variance of each numeric column."""
        return np.zeros(moments.count.shape[1])

    def _prior(self, sizes: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _shares(self, sizes: np.ndarray) -> np.ndarray:
        """Return the shares of the classes, `prior_alpha` rows added to each."""
        return (sizes + self.prior_alpha) / (sizes.sum() + self.prior_alpha * len(sizes))

    def _prior_source(self) -> str:
        """Return where the class probabilities come from: "rows", "uniform" or "given"."""
        raise NotImplementedError

    def _seen(self) -> Statistics:
        """Return what was seen so far, from the fitted arrays."""
        square = np.maximum(self.var_ - self.added_, 0.0) * np.maximum(self.column_count_ - self._ddof, 0.0)
        moments = Moments(self.column_count_, np.where(self.column_count_ > 0, self.theta_, 0.0), square)
        return Statistics(self.class_count_, self.level_counts_, moments)

    @property
    def smoothing_(self) -> np.ndarray:
        """alpha and m of the tables, as the checker reads them."""
        return np.zeros(2)

    @property
    def reads_gaps_(self) -> np.ndarray:
        """1 if values may be missing, as the checker reads it."""
        return np.array([int(self._gaps)])

    @property
    def column_types_(self) -> np.ndarray:
        """Name, kind and levels of each column as JSON text; empty if the rows were numbers."""
        return np.empty(0, dtype=str)

    @property
    def tables_(self) -> list[np.ndarray | None]:
        """ln P(level | class) of each column, (K, levels), in logarithms; None for a column of numbers."""
        results: list[np.ndarray | None] = [None] * len(self.n_levels_)
        columns = self._columns()
        alpha, m = self.smoothing_
        for j, part in zip(columns.nominal, columns.slices):
            results[j] = log_table(self.level_counts_[:, part], alpha, m)
        return results

    def _scorer(self) -> ColumnScorer:
        columns = self._columns()
        tables = [table.T for table in self.tables_ if table is not None]
        joined = np.concatenate(tables) if tables else np.zeros((0, len(self.classes_)))
        log_scale = -0.5 * np.log(2 * np.pi * self.var_)
        half = 0.5 / self.var_
        prior = log_of(self.class_prior_)
        return ColumnScorer(columns, self.theta_, half, log_scale, joined, prior, self._gaps, self._plain_levels)

    def linear_form(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (w, b) such that the scores <w_k, z> + b_k decide as `predict` does.

        z has, column after column, the number itself, or a 1 at the place of its level and 0 elsewhere. This is
        possible for levels, and for numbers whose variance is the same in all classes; otherwise squares remain, and
        it is refused. A probability of 0 has no weight.
        """
        scorer = self._scorer()
        if not np.isfinite(scorer.tables).all() or not np.isfinite(scorer.log_prior).all():
            raise refuse(self, "a probability is 0, so that its weight is infinite; use alpha > 0.")
        spread = np.ptp(self.var_, axis=0) > 1e-12 * self.var_.max(axis=0, initial=0.0)
        if spread.any():
            at = int(np.flatnonzero(self.n_levels_ < 0)[np.argmax(spread)])
            raise refuse(
                self,
                f"it is linear only if classes share the variance of each number; those of column {at} differ, so that "
                "squares remain. Its score is linear in the numbers and their squares.",
            )
        weights: list[np.ndarray] = []
        bias, numbers = scorer.log_prior.copy(), 0
        for table in self.tables_:
            if table is not None:
                weights.append(table)
                continue
            theta, var = self.theta_[:, numbers], self.var_[:, numbers].mean()
            weights.append((theta / var)[:, None])
            bias -= theta * theta / (2 * var)
            numbers += 1
        return np.concatenate(weights, axis=1), bias

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return rows drawn from the fitted classes, (n_samples, n_features), and their labels; a level is the number
        that stands for it, in a table its position."""
        random, drawn = self._drawn_classes(n_samples, random_state)
        columns, X = self._columns(), np.full((len(drawn), len(self.n_levels_)), np.nan)
        X[:, columns.numeric] = random.normal(self.theta_[drawn], np.sqrt(self.var_[drawn]))
        for j, part in zip(columns.nominal, columns.slices):
            table = self.tables_[j]
            if table is not None and table.size:
                heaps = np.cumsum(np.exp(table), axis=1)
                heaps /= heaps[:, -1:]
                place = (random.uniform(size=(len(drawn), 1)) >= heaps[drawn]).sum(axis=1)
                X[:, j] = columns.values[part][place]
        return X, self.classes_[drawn]

    def space(self, rows: Rows) -> Space:
        """The scores are linear in each number, its square and the place of each level, which were fixed before."""
        if not np.isfinite(self._scorer().tables).all() or not np.all(self.class_prior_ > 0):
            return Unbounded("scores with probabilities of 0 are not of one linear space")
        return FunctionSpace(dimension(self.n_levels_, self._gaps), len(self.classes_))

    # What a certificate asks ------------------------------------------------------------------------------------

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield that counts, means and variances are those of the rows."""
        yield counts_claim(rows, self._prior_source(), prior_alpha=float(self.prior_alpha))
        if np.any(self.n_levels_ < 0):
            yield from self._gaussian_claim(rows)

    def _gaussian_claim(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        if np.any(self.var_ <= _LEAST_VARIANCE) or np.any(self.column_count_ <= self._ddof):
            reason = Message("why.class-variance")
            yield NotApplicable("gaussian-nb.mle", reason)
            return
        yield Claim("gaussian-nb.mle", 1e-6, params={"rows": rows.n_rows, "ddof": self._ddof})


def counts_claim(rows: Rows, prior: str, exact: bool = True, prior_alpha: float = 0.0) -> Claim:
    """Return the claim that the stored counts are those of the rows: exactly, or up to rounding if weights are not
    whole numbers."""
    exact = exact and (not rows.has_weight or rows.sum(_uneven) == 0)
    smoothed = (
        {"prior": "smoothed", "prior_alpha": prior_alpha} if prior == "rows" and prior_alpha else {"prior": prior}
    )
    return Claim("counts.mle", 0.0 if exact else 1e-9, params={"rows": rows.n_rows, **smoothed})


def _uneven(block: Block) -> int:
    return 0 if block.weight is None else int(np.count_nonzero(block.weight % 1))


def dimension(n_levels: np.ndarray, gaps: bool) -> int:
    """Return the dimension of the linear space that the scores lie in: constants, x and x^2 of each number, levels."""
    numbers, levels = int(np.sum(n_levels < 0)), np.maximum(n_levels[n_levels >= 0] - 1 + gaps, 0)
    return 1 + (2 + gaps) * numbers + int(levels.sum())


def _normal(moments: Moments, ddof: int) -> tuple[np.ndarray, np.ndarray]:
    """Return means and variances (K, p); those of all rows for a class with too few values."""
    pooled = moments.together()
    few, none = moments.count <= ddof, moments.count <= 0
    var = moments.square / np.where(few, 1.0, moments.count - ddof)
    left = np.maximum(pooled.count - ddof, np.finfo(float).tiny)
    return np.where(none, pooled.mean, moments.mean), np.where(few, pooled.square / left, var)


def check_weights(rows: Rows, learner: Any) -> None:
    """Refuse weights that are negative or not numbers; streamed ones were not seen before."""
    if any(rows.map(_odd_weights)):
        raise refuse(learner, "row weights must be finite numbers >= 0.")


def _odd_weights(block: Block) -> bool:
    return block.weight is not None and not bool(((block.weight >= 0) & np.isfinite(block.weight)).all())


def _statistics(block: Block, K: int, columns: Columns, plain_levels: bool, gaps: bool) -> Statistics:
    from assay.naive_bayes import _loops

    weight = np.empty(0) if block.weight is None else block.weight
    sizes = np.bincount(block.y, weights=block.weight, minlength=K).astype(np.float64)
    p, none = len(columns.numeric), np.zeros((K, 0))
    if not p:
        moments = Moments(none, none, none)
    elif not gaps and not weight.size:
        size, mean, square = _loops.whole_moments(block.X, block.y, K)
        moments = Moments(np.repeat(size[:, None], p, axis=1), mean, square)
    else:
        moments = Moments(*_loops.class_moments(block.X, block.y, weight, columns.numeric, K))
    if not len(columns.nominal):
        return Statistics(sizes, none, moments)
    if plain_levels and not weight.size:
        return Statistics(sizes, _loops.whole_counts(block.X, block.y, columns.starts, K).T, moments)
    result = _loops.level_counts(block.X, block.y, weight, columns.nominal, columns.starts, columns.values, K)
    return Statistics(sizes, result, moments)


def log_table(counts: np.ndarray, alpha: float, m: float) -> np.ndarray:
    """Return ln P(level | class), (K, S), of one column from its counts.

    (n + alpha + m p) / (N + alpha S + m), where n counts rows of the class with the level, N those with any, and p is
    the share of the level among all rows: alpha = 1 is Laplace's rule, m the m-estimate. A level without a count has
    probability 0 if both are 0; a class without any value here, 1 / S.
    """
    size = counts.shape[1]
    if not size:
        return np.zeros(counts.shape)
    total = counts.sum()
    share = counts.sum(axis=0) / total if total > 0 else np.full(size, 1 / size)
    above, below = counts + alpha + m * share, counts.sum(axis=1, keepdims=True) + alpha * size + m
    empty = below[:, 0] <= 0
    below[empty] = 1.0
    result = log_of(above) - np.log(below)
    result[empty] = -np.log(size)
    return result
