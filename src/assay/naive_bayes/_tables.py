"""The fitted columns of naive Bayes as a scorer: normal densities of numbers, tables of levels."""

from typing import Any, NamedTuple

import numpy as np

from assay.naive_bayes._base import log_of


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
    found = log_of(above) - np.log(below)
    found[empty] = -np.log(size)
    return found


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
            found, odd = level_scores(X, columns.starts, self.tables, self.log_prior)
            if odd >= 0:
                most = columns.starts[odd + 1] - columns.starts[odd] - 1
                raise ValueError(
                    f"CategoricalNB: column {odd} has a value that is no level of it: levels are 0 to {most}. Fit with "
                    "min_categories, or use MixedNB, which leaves unknown levels out."
                )
            return found
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
