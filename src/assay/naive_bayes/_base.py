"""The base of naive Bayes classifiers: posterior, decision and evidence from ln P(x, c), and columns as codes.

A class of probability zero has ln P(x, c) = -infinity. If all classes have probability zero, the posterior is the
prior; no prediction is NaN.

Classifiers that count read frames and arrays as matrices of codes: numbers are kept, levels become their positions,
missing values NaN. In a frame or `Table` the types say which columns are categorical (text, categories, booleans); in
an array, `nominal` lists their positions. A level that was not seen in `fit` counts as missing. A slot is a level, an
interval between cut points of a number, or "missing".
"""

import json
import warnings
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from assay import data, scan
from assay.base import Learner, read_rows, streams
from assay.data.blocks import Block
from assay.data.columns import KINDS, ColumnType
from assay.guarantees.evidence import Evidence, Scores
from assay.params import refuse
from assay.scan import Rows

IMPOSSIBLE = 1000.0
"""How far below the least score of a possible class a certificate puts the score of an impossible one."""
_UNIT = 2.0**-53


class ZeroProbabilityWarning(UserWarning):
    """A value that never occurred in a class has probability 0 there."""


class Scorer(Protocol):
    """A fitted model as a function of rows, which may be sent to other processes."""

    @property
    def log_prior(self) -> np.ndarray:
        """ln P(c), (K,)."""

    @property
    def logs(self) -> np.ndarray:
        """All logarithms of probabilities of values, in any order."""

    def joint(self, X: Any) -> np.ndarray:
        """Return ln P(x, c), (n, K)."""

    def sizes(self, X: Any, joint: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the sum of magnitudes of the terms of each row, at most, and a number of roundings of each."""


class BayesClassifier(ClassifierMixin, Learner):
    """The class of largest posterior, for a model of ln P(x, c)."""

    figure = "tables"
    n_jobs: int | None
    class_count_: np.ndarray
    class_prior_: np.ndarray
    feature_count_: np.ndarray

    def _scorer(self) -> Scorer:
        raise NotImplementedError

    def _read(self, X: Any) -> Any:
        """Return rows to predict for, checked."""
        return validate_data(self, X, reset=False, dtype=np.float64)

    def predict_joint_log_proba(self, X: Any) -> np.ndarray:
        """Return ln P(x, c) of each row and class, (n, K); -inf for a class that cannot have produced the row."""
        check_is_fitted(self)
        rows = scan.rows(self._read(X), n_jobs=self.n_jobs)
        return np.concatenate(rows.map(_joint, self._scorer()))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return ln P(c | x), (n, K)."""
        return log_posterior(self.predict_joint_log_proba(X), self._log_prior)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return P(c | x), (n, K)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        best = known(self.predict_joint_log_proba(X), self._log_prior).argmax(axis=1)
        return self.classes_[best]

    @property
    def _log_prior(self) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.class_prior_)

    def evidence(self, rows: Any) -> Any:
        """Yield the scores."""
        result: Evidence = Scores(_bounded, (self._scorer(),), logistic=True)
        yield result

    def _check_prior(self, given: Any, name: str) -> np.ndarray:
        """Return the class probabilities that the user gave."""
        prior = np.asarray(given, dtype=np.float64)
        if prior.shape != (len(self.classes_),):
            raise refuse(self, f"Number of priors must match number of classes: {name} has shape {prior.shape}.")
        if not (prior >= 0).all():
            raise refuse(self, f"Priors must be non-negative; {name} is {given!r}.")
        if not np.isclose(prior.sum(), 1.0):
            raise refuse(self, f"The sum of the priors should be 1; {name} sums to {prior.sum():g}.")
        return prior

    def _drawn_classes(self, n_samples: Any, random_state: Any) -> tuple[np.random.RandomState, np.ndarray]:
        """Return the source of random numbers, and the class of each row that is to be drawn."""
        check_is_fitted(self)
        if isinstance(n_samples, bool) or not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
            raise refuse(self, f"n_samples must be an integer >= 1; got {n_samples!r}.")
        random = check_random_state(random_state)
        chances = self.class_prior_ / self.class_prior_.sum()
        return random, random.choice(len(chances), size=int(n_samples), p=chances)

    def _tell_zeros(self, log_tables: np.ndarray) -> None:
        """Warn if a probability is 0, which is so only if nothing is added to the counts."""
        zeros = int(np.count_nonzero(np.isneginf(log_tables)))
        if zeros:
            warnings.warn(
                f"{type(self).__name__}: without smoothing {zeros} of {log_tables.size} probabilities are 0: a value "
                "that a class never had rules the class out. Use alpha > 0 if it should not.",
                ZeroProbabilityWarning,
                stacklevel=5,
            )

    def _take_classes(self, y: Any, classes: Any) -> bool:
        """Keep the classes of a first `partial_fit`; return whether it is the first."""
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise refuse(self, "classes must be passed on the first call to partial_fit.")
        if classes is not None:
            listed = np.unique(np.asarray(classes))
            if not first and not np.array_equal(self.classes_, listed):
                raise refuse(self, f"`classes={classes!r}` is not the same as on last call to partial_fit.")
            check_classification_targets(listed)
            self.classes_ = listed
        unknown = [] if y is None or isinstance(y, str) else np.setdiff1d(np.asarray(y), self.classes_).tolist()
        if unknown:
            listed = self.classes_.tolist()
            raise refuse(self, f"The target label(s) {unknown} in y do not exist in the initial classes {listed}.")
        return first

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        if len(self.classes_) < 2:
            raise refuse(self, "a certificate needs two classes; all training rows have one label.")
        return super()._known_rows(X, y, sample_weight)


def log_posterior(joint: np.ndarray, log_prior: np.ndarray) -> np.ndarray:
    """Return ln P(c | x) from ln P(x, c)."""
    joint = known(joint, log_prior)
    joint = joint - joint.max(axis=1, keepdims=True)
    return joint - np.log(np.exp(joint).sum(axis=1, keepdims=True))


def known(joint: np.ndarray, log_prior: np.ndarray) -> np.ndarray:
    """Return the rows with the prior where no class can have produced them."""
    none = (joint == -np.inf).all(axis=1)
    return np.where(none[:, None], log_prior, joint) if none.any() else joint


def log_of(values: Any) -> np.ndarray:
    """Return logarithms, -inf of 0."""
    with np.errstate(divide="ignore"):
        return np.log(values)


def _joint(block: Block, scorer: Scorer) -> np.ndarray:
    return scorer.joint(block.X)


def _bounded(block: Block, scorer: Scorer) -> tuple[np.ndarray, np.ndarray]:
    """Return scores that are all finite, and twice how far rounding can move them."""
    joint = scorer.joint(block.X)
    sizes, roundings = scorer.sizes(block.X, joint)
    values = known(joint, scorer.log_prior)
    possible = values > -np.inf
    if not possible.all():
        least = np.where(possible, values, np.inf).min(axis=1)
        values = np.where(possible, values, (least - IMPOSSIBLE)[:, None])
    return values, 8 * (roundings + 16) * _UNIT * (sizes + np.abs(values).max(axis=1) + 16)


_SAMPLE = 65_536  # rows that the cuts of numbers are taken from
MOST_CELLS = 2**27


def rows_to_fit(learner: Any, X: Any, y: Any, weight: Any, *, reset: bool = True) -> Rows:
    """Return rows with their labels; with `reset`, remember the types of the columns in `columns_` (None: numbers)."""
    if streams(X, y):
        if reset:
            learner.columns_ = None
        return read_rows(learner, X, y, weight, reset=reset)
    if y is None:
        raise ValueError(f"{type(learner).__name__} requires y to be passed, but the target y is None.")
    matrix = rows_to_read(learner, X, reset=reset)
    y = _check_y(y, multi_output=False, estimator=learner)
    check_consistent_length(matrix, y)
    if weight is not None:
        weight = _check_sample_weight(
            weight, matrix, dtype=np.float64, ensure_non_negative=True, allow_all_zero_weights=not reset
        )
    return scan.rows(matrix, y, weight, n_jobs=learner.n_jobs)


def rows_to_read(learner: Any, X: Any, *, reset: bool = False) -> np.ndarray:
    """Return a frame, a `Table` or an array as a matrix of doubles."""
    if isinstance(X, data.Table) or _has_types(X):
        return _from_table(learner, X, reset)
    matrix = validate_data(learner, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
    if reset:
        learner.columns_ = None
    elif learner.columns_ is not None and any(column.kind != "numeric" for column in learner.columns_):
        raise refuse(learner, "was fitted to a table with names and levels; got an array of numbers.")
    return matrix


def _from_table(learner: Any, X: Any, reset: bool) -> np.ndarray:
    if not isinstance(X, data.Table):
        _check_feature_names(learner, X, reset=reset)
    elif reset:
        learner.feature_names_in_ = np.asarray(X.names, dtype=object)
    if reset:
        table = X if isinstance(X, data.Table) else data.read(X, exact=True)
        learner.columns_, learner.n_features_in_ = table.schema, len(table.schema)
        return table.matrix()
    if learner.columns_ is None:
        raise refuse(learner, "X has columns of text, but was fitted on numbers alone.")
    table = X if isinstance(X, data.Table) else data.read(X, schema=learner.columns_)
    return table.require_same_columns(learner.columns_)[0].matrix()


def _has_types(X: Any) -> bool:
    """Tell whether X is a frame with a column that is not a plain number."""
    kinds = getattr(X, "dtypes", None)
    if kinds is None or not hasattr(X, "columns"):
        return False
    listed = list(kinds.values) if hasattr(kinds, "values") and not callable(kinds.values) else list(kinds)
    return any(not str(kind).lower().startswith(("int", "uint", "float")) for kind in listed)


def levels_of(learner: Any, rows: Rows) -> list[np.ndarray | None]:
    """Return the increasing values of the levels of each column, None for numbers: the positions of a table's levels,
    the distinct values of columns that `nominal` names."""
    if learner.columns_ is not None:
        return [
            None if column.kind == "numeric" else np.arange(float(len(column.levels))) for column in learner.columns_
        ]
    named = _named(learner, rows.n_features)
    results: list[np.ndarray | None] = [None] * rows.n_features
    if len(named):
        for j, parts in zip(named, zip(*rows.map(_distinct, named))):
            values = np.unique(np.concatenate(parts))
            results[j] = values[~np.isnan(values)]
    return results


def _named(learner: Any, n_features: int) -> np.ndarray:
    positions = learner.nominal
    if isinstance(positions, str) and positions == "all":
        return np.arange(n_features)
    if positions is None or not np.size(positions):
        return np.empty(0, dtype=np.int64)
    at = np.unique(np.asarray(positions))
    if np.ndim(positions) != 1 or at.dtype.kind not in "iu" or at[0] < 0 or at[-1] >= n_features:
        wanted = f"'all', or list column positions from 0 to {n_features - 1}"
        raise refuse(learner, f"nominal must be {wanted}; got {positions!r}.")
    return at


def _distinct(block: Block, named: np.ndarray) -> list[np.ndarray]:
    X = block.X if block.weight is None else block.X[block.weight > 0]
    return [np.unique(X[:, j]) for j in named]


def types_as_text(columns: tuple[ColumnType, ...] | None) -> np.ndarray:
    """Return name, kind and levels of each column as JSON text; empty if all are numbers."""
    return np.array(
        [json.dumps([column.name, column.kind, list(column.levels)]) for column in columns or ()], dtype=str
    )


def types_of_text(texts: np.ndarray) -> tuple[ColumnType, ...] | None:
    """Return the reverse of `types_as_text`; refuse what it could not have written."""
    results = []
    for text in texts.tolist():
        name, kind, levels = json.loads(text)
        plain = isinstance(levels, list) and all(isinstance(item, str) for item in (name, *levels))
        if kind not in KINDS or not plain:
            raise ValueError("column_types_ must tell name, kind and levels of each column.")
        results.append(ColumnType(name, kind, tuple(levels)))
    return tuple(results) or None


class Cells(NamedTuple):
    """How a row becomes slots.

    A column has a slot for each level, or for each interval between its cuts (the upper one at a cut), and one more for
    missing and unknown values if some were missing in `fit`.
    """

    n_values: np.ndarray  # (d,) levels, or cuts
    values: np.ndarray  # (sum,) the levels' numbers, or the cuts; increasing in each column
    is_cut: np.ndarray  # (d,) 1 for a column of numbers
    has_gap: np.ndarray  # (d,) 1 if missing values have a slot

    @property
    def sizes(self) -> np.ndarray:
        """Number of slots of each column."""
        return self.n_values + self.is_cut + self.has_gap

    @property
    def starts(self) -> np.ndarray:
        """First slot of each column, and after the last one their number."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @property
    def column(self) -> np.ndarray:
        """The column that each slot belongs to."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def slots(self, X: np.ndarray) -> np.ndarray:
        """Return the slot of each entry, (n, d); -1 for a value without one."""
        from assay.naive_bayes._loops import slots_of

        first = np.concatenate([[0], np.cumsum(self.n_values)]).astype(np.int64)
        return slots_of(np.ascontiguousarray(X), first, self.values, self.is_cut, self.has_gap, self.starts)


def cells_of(learner: Any, rows: Rows, n_bins: int) -> Cells:
    """Return the slots of the columns: all levels, and of numbers intervals that hold about equally many rows."""
    levels = levels_of(learner, rows)
    drawn: Any = rows.sample(_SAMPLE)
    weight = np.ones(drawn.n_rows) if drawn.weight is None else drawn.weight
    parts = [_cuts(drawn.X[:, j], weight, n_bins) if level is None else level for j, level in enumerate(levels)]
    gaps = np.any(rows.map(_gaps), axis=0)
    is_cut = np.array([level is None for level in levels]).astype(np.int64)
    empty = [j for j, part in enumerate(parts) if not len(part) and not is_cut[j] and not gaps[j]]
    if empty:
        raise refuse(learner, f"column {empty[0]} has no value.")
    lengths = np.array([len(part) for part in parts])
    return Cells(lengths, np.concatenate([np.empty(0), *parts]), is_cut, gaps.astype(np.int64))


def _cuts(x: np.ndarray, weight: np.ndarray, n_bins: int) -> np.ndarray:
    """Return up to n_bins - 1 cuts at quantiles of the values, each above the least value."""
    there = ~np.isnan(x) & (weight > 0)
    x, weight = x[there], weight[there]
    if not len(x):
        return np.empty(0)
    shares = np.arange(1, n_bins) / n_bins
    result = np.unique(np.quantile(x, shares, method="inverted_cdf", weights=weight))
    return result[result > x.min()]


def _gaps(block: Block) -> np.ndarray:
    X = block.X if block.weight is None else block.X[block.weight > 0]
    return np.isnan(X).any(axis=0)


def check_size(learner: Any, cells: int, what: str) -> None:
    """Refuse a table that memory would not hold, with its size."""
    if cells > MOST_CELLS:
        raise refuse(
            learner,
            f"the counts of {what} have {cells:.3g} cells, {8 * cells / 2**30:.1f} GiB; at most {MOST_CELLS} are held. "
            "Use fewer columns or n_bins, or MixedNB.",
        )
