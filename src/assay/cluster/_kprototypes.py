"""k-prototypes and k-modes: clusters of rows that have names in some columns, or in all.

    minimise over p_1, ..., p_k    J(p) = sum_i min_j  sum_numbers (x_if - p_jf)^2 + gamma * (names that differ)

A prototype has the mean of its rows where columns are numbers and the most frequent name where they are names (Huang
1998). A gap adds nothing to the dissimilarity, and is left out of means and modes.

Claims: the cost of the prototypes, how far each is from the means of its rows, and how many of its names are not the
        most frequent (prototypes.fixed-point); on new data the mean dissimilarity is at most ... (hold-out).
Method: nearest prototypes, then means and modes, until no row moves; neither step raises J.
"""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import ClusterMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names, check_is_fitted, validate_data

from assay import data
from assay.base import Learner, fit_log
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.data.columns import ColumnType, Schema, schema_from_text, schema_text
from assay.guarantees.evidence import Distances, Evidence
from assay.messages import Message
from assay.optim.duality import outward
from assay.params import Count, Maybe, NameOr, Number, check, refuse
from assay.prototypes import PrototypeMixin
from assay.scan import Rows, thread_map
from assay.scan import rows as rows_of

_CHUNK = 4096  # rows of one task of a thread


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
                result = descend(problem, self._start(problem, random), self.max_iter, log)
                if best is None or result.cost < best.cost:
                    best = result
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
        why = Message("why.numbers-only")
        yield Distances(_least, (self.prototypes_, self.nominal_columns_ > 0, self.gamma_), "kmeans.risk", None, why)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the cost, and how far prototypes are from means and modes."""
        yield mixed_claim(self, rows)


@dataclass(eq=False, repr=False)
class KPrototypes(Mixed):
    """Clusters of rows with numbers in some columns and names in others.

    Parameters
    ----------
    n_clusters : int
        Number of clusters k.
    nominal : list of column positions, optional
        Columns of an array whose numbers are only names. A frame says it by its types: text, categories and booleans
        are names, ordered categories count as the numbers of their levels.
    gamma : float >= 0, optional
        What one differing name weighs beside squared differences; None is half the mean standard deviation of the
        numeric columns. Scale the columns first if they have different units.
    init : "k-prototypes++", "random" or (k, d) array
        First prototypes: rows far from each other, rows at random, or given, as `codes` writes them.
    n_init : int
        Runs from different starts, of which the best is kept.
    max_iter : int
        Iterations of one run, at most.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads; None uses all cores. It changes the time, never a bit of the result.

    Attributes
    ----------
    prototypes_ : (k, d)
        Means, and positions of names among the levels of their column (of an array: the numbers themselves).
    labels_ : (n,), cost_ : float, n_iter_ : int, gamma_ : float

    Gaps (NaN, None) add nothing to a dissimilarity and are left out of means and modes; a name that was not seen in
    `fit` counts as a gap. Certificates need complete rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from assay.cluster import KPrototypes
    >>> jobs = ["cook", "cook", None, "judge", "judge", "cook"]
    >>> table = pd.DataFrame({"age": [20.0, 22, 21, 60, 62, 64], "job": jobs})
    >>> model = KPrototypes(2, random_state=0).fit(table)
    >>> sorted((row["age"], row["job"]) for row in model.described())
    [(21.0, 'cook'), (62.0, 'judge')]
    """

    card = Card(
        name="k-prototypes",
        task="cluster",
        model=MixedCells(),
        strategy="squared differences of numbers and weighted mismatches of names to the nearest of k prototypes",
        algorithm="nearest prototypes, then means and modes",
        guarantee=("prototypes.fixed-point",),
        input=("numbers", "nominal", "missing"),
    )
    n_iter_: int = field(init=False)
    constraints: ClassVar = {
        "n_clusters": Count(),
        "gamma": Maybe(Number(low=0.0), None),
        "init": NameOr(None, "k-prototypes++", "random"),
        "n_init": Count(),
        "max_iter": Count(),
    }

    n_clusters: int = 8
    _: KW_ONLY
    nominal: Any = None
    gamma: float | None = None
    init: Any = "k-prototypes++"
    n_init: int = 5
    max_iter: int = 100
    random_state: Any = None
    n_jobs: int | None = None

    def _nominal(self, d: int) -> np.ndarray:
        result = np.zeros(d, dtype=np.int64)
        if self.columns_ is not None:
            result[[j for j, column in enumerate(self.columns_) if column.kind == "nominal"]] = 1
        at = np.asarray([] if self.nominal is None else self.nominal)
        if at.size:
            if at.ndim != 1 or at.dtype.kind not in "iu" or at.min() < 0 or at.max() >= d:
                raise refuse(self, f"nominal must list column positions from 0 to {d - 1}; got {self.nominal!r}.")
            result[at] = 1
        return result

    def _weight(self, table: np.ndarray) -> float:
        if self.gamma is not None:
            return float(self.gamma)
        numbers = table[:, self.nominal_columns_ == 0]
        spreads = [float(np.nanstd(column)) for column in numbers.T if not np.isnan(column).all()]
        return 0.5 * float(np.mean(spreads)) if spreads and np.mean(spreads) > 0 else 1.0


@dataclass(eq=False, repr=False)
class KModes(Mixed):
    """Clusters of rows whose columns are all names.

    Parameters
    ----------
    n_clusters : int
        Number of clusters k.
    init : "k-modes++", "random" or (k, d) array
        First modes: rows far from each other, rows at random, or given, as `codes` writes them.
    n_init, max_iter, random_state, n_jobs
        As in `KPrototypes`.

    Attributes
    ----------
    prototypes_ : (k, d)
        Modes, as positions of names among the levels of their column (of an array: the numbers themselves).
    labels_ : (n,), cost_ : float, n_iter_ : int
        `cost_` is the number of entries that differ from those of their mode.

    Numbers of an array, and numeric columns of a frame, are taken as names. Gaps as in `KPrototypes`.

    Examples
    --------
    >>> from assay.cluster import KModes
    >>> rows = [["red", "round"], ["red", "round"], ["red", "long"], ["green", "long"], ["green", "long"]]
    >>> model = KModes(2, random_state=0).fit(rows)
    >>> sorted(tuple(row.values()) for row in model.described()), model.cost_
    ([('green', 'long'), ('red', 'round')], 1.0)
    """

    card = Card(
        name="k-modes",
        task="cluster",
        model=MixedCells(),
        strategy="names that differ from the nearest of k modes",
        algorithm="nearest modes, then most frequent names",
        guarantee=("prototypes.fixed-point",),
        input=("numbers", "nominal", "missing"),
    )
    n_iter_: int = field(init=False)
    constraints: ClassVar = {
        "n_clusters": Count(),
        "init": NameOr(None, "k-modes++", "random"),
        "n_init": Count(),
        "max_iter": Count(),
    }

    n_clusters: int = 8
    _: KW_ONLY
    init: Any = "k-modes++"
    n_init: int = 5
    max_iter: int = 100
    random_state: Any = None
    n_jobs: int | None = None

    def _nominal(self, d: int) -> np.ndarray:
        return np.ones(d, dtype=np.int64)


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


class Problem:
    """The rows, numbers and names apart: levels of each column of names, and what a column has in the middle."""

    def __init__(self, X: np.ndarray, nominal: np.ndarray, gamma: float, n_jobs: int | None):
        self.X, self.nominal, self.gamma, self.n_jobs = X, nominal, gamma, n_jobs
        self.levels: dict[int, np.ndarray] = {}
        self.places: dict[int, np.ndarray] = {}
        self.middle = np.zeros(X.shape[1])
        for j in range(X.shape[1]):
            there = ~np.isnan(X[:, j])
            if nominal[j]:
                self.levels[j], place = np.unique(X[there, j], return_inverse=True)
                self.places[j] = np.full(len(X), -1)
                self.places[j][there] = place
                if there.any():
                    self.middle[j] = self.levels[j][np.bincount(place).argmax()]
            elif there.any():
                self.middle[j] = X[there, j].mean()

    def assign(self, prototypes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return assigned(self.X, prototypes, self.nominal, self.gamma, self.n_jobs)

    def centred(self, labels: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Return means and modes of the rows of each prototype; what no row tells stays as it was."""
        result, k = before.copy(), len(before)
        for j in range(self.X.shape[1]):
            if self.nominal[j]:
                size, there = len(self.levels[j]), self.places[j] >= 0
                if size:
                    counts = np.bincount(labels[there] * size + self.places[j][there], minlength=k * size)
                    counts = counts.reshape(k, size)
                    full = counts.any(axis=1)
                    result[full, j] = self.levels[j][counts.argmax(axis=1)][full]
                continue
            there = ~np.isnan(self.X[:, j])
            shift, counts = self.middle[j], np.bincount(labels[there], minlength=k)
            sums = np.bincount(labels[there], self.X[there, j] - shift, minlength=k)
            full = counts > 0
            result[full, j] = shift + sums[full] / counts[full]
        return result


class Found(NamedTuple):
    prototypes: np.ndarray
    labels: np.ndarray
    cost: float
    n_iter: int
    rests: bool


def descend(problem: Problem, prototypes: np.ndarray, max_iter: int, log: Any) -> Found:
    """Alternate from `prototypes` until no row moves, or Ctrl-C is pressed."""
    labels, costs = problem.assign(prototypes)
    rests, made = False, 0
    with log.keeping():
        while made < max_iter:
            labels = _filled(labels, costs, len(prototypes))
            prototypes = problem.centred(labels, prototypes)
            now, costs = problem.assign(prototypes)
            moved = int(np.sum(now != labels))
            rests, labels, made = moved == 0, now, made + 1
            if log.step(float(costs.sum()), float(moved), prototypes_=prototypes.copy()) or rests:
                break
    if log.stopped:  # perhaps between prototypes and labels
        labels, costs = problem.assign(prototypes)
    return Found(prototypes, labels, float(costs.sum()), made, rests)


def _filled(labels: np.ndarray, costs: np.ndarray, k: int) -> np.ndarray:
    """Return labels in which a prototype without rows has the row that is farthest from its own, if it is away."""
    counts = np.bincount(labels, minlength=k)
    empty = np.flatnonzero(counts == 0)
    labels = labels.copy()
    for j, i in zip(empty, np.argsort(-costs, kind="stable")):
        if costs[i] > 0 and counts[labels[i]] > 1:
            counts[labels[i]] -= 1
            labels[i], counts[j] = j, 1
    return labels


def drawn_apart(problem: Problem, k: int, random: np.random.RandomState) -> np.ndarray:
    """Return k rows drawn one after another with probability proportional to the dissimilarity to the nearest row drawn
    so far; of 2 + ln k candidates a step the one that lowers their sum most."""
    filled = np.where(np.isnan(problem.X), problem.middle, problem.X)
    chosen = [int(random.randint(len(filled)))]
    closest = problem.assign(filled[chosen])[1]
    while len(chosen) < k:
        until = np.cumsum(closest)
        if not until[-1] > 0:
            rest = np.setdiff1d(np.arange(len(filled)), chosen)
            return np.append(chosen, random.choice(rest, k - len(chosen), replace=False))
        drawn = np.searchsorted(until, random.uniform(size=2 + int(np.log(k))) * until[-1], side="right")
        drawn = np.minimum(drawn, len(filled) - 1)
        near = [np.minimum(problem.assign(filled[[i]])[1], closest) for i in drawn]
        best = int(np.argmin([neighbor.sum() for neighbor in near]))
        chosen.append(int(drawn[best]))
        closest = near[best]
    return np.array(chosen)


def assigned(
    X: np.ndarray, prototypes: np.ndarray, nominal: np.ndarray, gamma: float, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest prototype of each row and the dissimilarity to it."""
    from assay.cluster._search_loops import assign_mixed

    labels, costs = np.empty(len(X), np.int64), np.empty(len(X))

    def work(cut: slice) -> None:
        assign_mixed(X[cut], prototypes, nominal, gamma, labels[cut], costs[cut])

    thread_map(work, [slice(at, at + _CHUNK) for at in range(0, len(X), _CHUNK)], n_jobs=n_jobs)
    return labels, costs


def mixed_claim(learner: Any, rows: Rows) -> Claim:
    """Return claim prototypes.fixed-point, rows given to the first prototype that is nearest in the arithmetic that
    SPEC.md names."""
    prototypes, nominal = learner.prototypes_, learner.nominal_columns_ > 0
    parts = rows.map(_nearest, prototypes, nominal, learner.gamma_)
    X, labels, costs = (np.concatenate(part) for part in zip(*parts))
    shift, odd = 0.0, 0
    for j in np.unique(labels):
        own = X[labels == j]
        apart = own[:, ~nominal].mean(axis=0) - prototypes[j, ~nominal]
        shift = max(shift, float(np.linalg.norm(apart)))
        for f in np.flatnonzero(nominal):
            _, counts = np.unique(own[:, f], return_counts=True)
            odd += int(np.sum(own[:, f] == prototypes[j, f]) < counts.max())
    rounding = 1e-13 * (float(np.linalg.norm(np.abs(X[:, ~nominal]).max(axis=0))) if (~nominal).any() else 0.0)
    stated = {"clusters": len(prototypes), "rows": len(X), "shift": shift * (1 + 1e-9) + rounding, "odd": odd}
    return Claim("prototypes.fixed-point", outward(float(costs.sum())), params=stated)


def _nearest(block: Block, prototypes: np.ndarray, nominal: np.ndarray, gamma: float) -> tuple[np.ndarray, ...]:
    differ = np.zeros((len(block.X), len(prototypes)))
    for f in np.flatnonzero(nominal):
        differ += block.X[:, f, None] != prototypes[None, :, f]
    apart = gamma * differ
    if not nominal.all():
        apart = cdist(block.X[:, ~nominal], prototypes[:, ~nominal], "sqeuclidean") + apart
    labels = apart.argmin(axis=1)
    return block.X, labels, apart[np.arange(len(labels)), labels]
