"""What k-prototypes and k-modes share: tables are read, prototypes are found, rows get the nearest one."""

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names, check_is_fitted, validate_data

from assay import data
from assay.base import Learner, fit_log
from assay.claims.claim import Claim, NotApplicable
from assay.cluster._mixed_search import Found, Problem, assigned, descend, drawn_apart
from assay.data.blocks import Block
from assay.data.columns import ColumnType, Schema, schema_from_text, schema_text
from assay.guarantees.evidence import Distances, Evidence
from assay.params import check, refuse
from assay.prototypes import PrototypeMixin
from assay.scan import Rows
from assay.scan import rows as rows_of


class MixedCells:
    """The maps that send a row to the nearest of k prototypes of numbers and names."""

    def __str__(self) -> str:
        return "cells of the k nearest prototypes of numbers and names"


class Mixed(PrototypeMixin, ClusterMixin, Learner):
    """What k-prototypes and k-modes share: reading tables, alternating, predicting, telling what was proved."""

    family = "mixed"
    figure = "prototypes"
    columns_: Schema | None
    prototypes_: np.ndarray
    nominal_columns_: np.ndarray
    gamma_: float
    n_clusters: int
    init: Any
    n_init: int
    max_iter: int
    random_state: Any
    n_jobs: int | None

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Any:
        """Find prototypes of the rows X: a frame, whose types say which columns are names, or an array."""
        check(self)
        table = self._read(X, reset=True)
        if len(table) < self.n_clusters:
            raise refuse(self, f"n_clusters={self.n_clusters} needs as many rows; n_samples={len(table)}.")
        self.nominal_columns_ = self._nominal(table.shape[1])
        self.gamma_ = self._weight(table)
        problem = Problem(table, self.nominal_columns_ > 0, self.gamma_, self.n_jobs)
        random = check_random_state(self.random_state)
        best: Found | None = None
        with fit_log(self, self.max_iter * self.n_init, X, None) as log, log.keeping():
            for _ in range(1 if not isinstance(self.init, str) else self.n_init):
                found = descend(problem, self._start(problem, random), self.max_iter, log)
                if best is None or found.cost < best.cost:
                    best = found
                if log.stopped:
                    break
        if best is None:
            raise KeyboardInterrupt
        self.prototypes_, self.labels_, self.cost_ = best.prototypes, best.labels, best.cost
        self.n_iter_ = best.n_iter
        if not best.rests and not log.stopped:
            warnings.warn(
                f"{type(self).__name__}: rows still moved after max_iter={self.max_iter} iterations; raise it.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _nominal(self, d: int) -> np.ndarray:
        """Return 1 for each column of names, 0 for numbers."""
        raise NotImplementedError

    def _weight(self, table: np.ndarray) -> float:
        """Return gamma."""
        return 1.0

    def _start(self, problem: "Problem", random: np.random.RandomState) -> np.ndarray:
        k, (n, d) = self.n_clusters, problem.X.shape
        if isinstance(self.init, str):
            numbers = random.choice(n, k, replace=False) if self.init == "random" else drawn_apart(problem, k, random)
            return np.where(np.isnan(problem.X[numbers]), problem.middle, problem.X[numbers])
        start = np.array(self.init, dtype=np.float64)
        if start.shape != (k, d) or not np.isfinite(start).all():
            raise refuse(self, f"init must hold {k} prototypes (n_clusters) of {d} columns without gaps.")
        return start

    # Rows

    def _read(self, X: Any, reset: bool = False) -> np.ndarray:
        """Return rows as numbers: those of numeric columns, and of columns of names the positions among the levels, or
        the numbers that are names; NaN for gaps and names that were not seen in `fit`."""
        X = _as_frame(X)
        if not _has_types(X):
            table = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
            if reset:
                self.columns_ = None
            elif self.columns_ is not None:
                raise refuse(self, "it was fitted to a table with columns of names; X must have them too.")
            return np.ascontiguousarray(table)
        if not isinstance(X, Mapping):
            _check_feature_names(self, X, reset=reset)
        if reset:
            read = data.read(X, exact=True)
            self.columns_, self.n_features_in_ = read.schema, len(read.schema)
        elif self.columns_ is None:
            raise refuse(self, "X has columns of names, but it was fitted to numbers.")
        else:
            read = data.read(X, schema=self.columns_).require_same_columns(self.columns_)[0]
        return read.matrix()

    def codes(self, X: Any) -> np.ndarray:
        """Return the rows as numbers, names as positions among the levels; what a certificate of a frame is about."""
        check_is_fitted(self)
        return self._read(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the number of the nearest prototype of each row, the first of equals."""
        return self._nearest(X)[0]

    def cells(self, X: Any) -> np.ndarray:
        """Return the number of the nearest prototype of each row, as `predict` does."""
        return self.predict(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the sum of the dissimilarities of the rows to their nearest prototypes."""
        return -float(self._nearest(X)[1].sum())

    def _nearest(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        return assigned(self._read(X), self.prototypes_, self.nominal_columns_ > 0, self.gamma_, self.n_jobs)

    def described(self) -> list[dict[str, Any]]:
        """Return the prototypes as a person reads them: by column, a number or the name of a level."""
        check_is_fitted(self)
        columns = self.columns_ or tuple(
            ColumnType(str(name), "numeric")
            for name in getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.prototypes_.shape[1])])
        )
        return [
            {c.name: c.levels[int(value)] if c.kind == "nominal" else float(value) for c, value in zip(columns, row)}
            for row in self.prototypes_
        ]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # Certificate

    @property
    def column_types_(self) -> np.ndarray:
        """Name, kind and levels of each column as JSON text; empty if X was an array."""
        return schema_text(self.columns_)

    @property
    def mismatch_weight_(self) -> np.ndarray:
        """gamma, as the checker reads it."""
        return np.array([self.gamma_])

    def _take_arrays(self, arrays: Mapping[str, Any]) -> None:
        super()._take_arrays(arrays)
        self.columns_ = schema_from_text(np.atleast_1d(arrays["column_types_"]).tolist())
        self.gamma_ = float(np.ravel(arrays["mismatch_weight_"])[0])

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        table = self._read(X)
        if np.isnan(table).any():
            raise refuse(self, "X has gaps (NaN), or names that were not seen in fit; certificates need complete rows.")
        return rows_of(table, n_jobs=self.n_jobs)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the dissimilarity of each row to the nearest prototype, which is a squared distance."""
        why = "The bound from training rows is about numbers alone; hold-out rows serve names too."
        yield Distances(_least, (self.prototypes_, self.nominal_columns_ > 0, self.gamma_), "P26/1", None, why)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the cost, and how far prototypes are from means and modes."""
        from assay.cluster._mixed_claims import mixed_claim

        yield mixed_claim(self, rows)


def _least(block: Block, prototypes: np.ndarray, nominal: np.ndarray, gamma: float) -> np.ndarray:
    return assigned(np.ascontiguousarray(block.X), prototypes, nominal, gamma, 1)[1]


def _as_frame(X: Any) -> Any:
    """Return lists and arrays that hold text as columns by name; everything else as it is."""
    if isinstance(X, (list, tuple)) and X and isinstance(X[0], (list, tuple)) and _has_text(X[0]):
        X = np.array([list(row) for row in X], dtype=object)
    if isinstance(X, np.ndarray) and X.ndim == 2 and len(X) and (X.dtype.kind in "US" or _has_text(X[0])):
        return {f"x{j}": [None if _is_gap(value) else value for value in X[:, j].tolist()] for j in range(X.shape[1])}
    return X


def _has_text(row: Any) -> bool:
    return any(isinstance(value, str) for value in row)


def _is_gap(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _has_types(X: Any) -> bool:
    """Tell whether X has a column that is not a plain number."""
    if hasattr(X, "tocsr"):
        return False
    if isinstance(X, Mapping) or type(X).__module__.partition(".")[0] == "pyarrow":
        return True
    columns = getattr(X, "dtypes", None)
    if columns is None or not hasattr(X, "columns"):
        return False
    kinds = list(columns.values) if hasattr(columns, "values") else list(columns)
    return any(not str(kind).lower().startswith(("int", "uint", "float")) for kind in kinds)
