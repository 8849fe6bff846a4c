"""The models of the folds of a table as one: they vote, or their mean is taken.

Each member has columns, levels and an encoding of its own, which the rows of its fold had no part in. So each reads the
table by itself, and the rows of the whole are the members' raw rows (`data.encoding`) side by side. See
`checker.families.folded` for what is proved of it.

A model of tables fitted again: the same learner with the same settings, to other rows.

This is what cross-validation of scikit-learn does with `study.model`. The reading of the columns and the encoding are
made anew of the rows that are given; what was certified is about the model as it was.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from assay.card import Card
from assay.checker.family import read_model
from assay.checker.tables import Used
from assay.claims.claim import Certificate
from assay.claims.model import StoredModel
from assay.data import ColumnType, Encoding, RawTable, Schema, Table, raw_table
from assay.data.columns import LARGEST
from assay.guarantees.fingerprint import fold_of_rows
from assay.learning.memory import FoldSizes, Memory, Sizes, class_scores, of_folds, remember, sizes_of, slip
from assay.learning.model import StreamedCells, TableModel, checked_input, target_values, without_reserve
from assay.learning.problem import informative_columns
from assay.theory.spaces import Unbounded

_SPACE = Unbounded("votes and means of models of several folds")
_HOW = "the study's own search inside the rows outside each fold"


class _Folded:
    """Fitted models of a table's folds; they read raw rows of their own, which stand side by side."""

    family: ClassVar[str]
    card: ClassVar[Card]

    def __init__(self, members: Sequence[TableModel]) -> None:
        self.members = list(members)
        ends = np.cumsum([0, *(member.encoding.raw_width for member in members)]).tolist()
        self._spans = [slice(start, stop) for start, stop in pairwise(ends)]

    @property
    def n_features_in_(self) -> int:
        """The number of columns."""
        return self._spans[-1].stop

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return of which learners it is made."""
        return {"members": [type(member.learner).__name__ for member in self.members]}

    def encoded(self, k: int, X: np.ndarray) -> np.ndarray:
        """Return the rows as member k encodes them.

        Parameters
        ----------
        k : int
            Number of the member.
        """
        return self.members[k].encoding.apply_raw(np.ascontiguousarray(np.asarray(X)[:, self._spans[k]]))

    def answers(self, method: str, X: np.ndarray) -> list[np.ndarray]:
        """Return what each member's learner predicts.

        Parameters
        ----------
        method : str
            Name of the method.
        """
        return [getattr(member.learner, method)(self.encoded(k, X)) for k, member in enumerate(self.members)]

    def stored(self) -> StoredModel:
        """Return the models as plain data."""
        members = tuple(member.stored() for member in self.members)
        return StoredModel(f"learning.{type(self).__name__}", self.family, {}, self._arrays(), members)

    def _arrays(self) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def table(self, target: ColumnType, memory: "Memory | None") -> "FoldedTable":
        """Return the model of tables that the members make.

        Parameters
        ----------
        target : ColumnType
            Type of the target.
        memory : Memory or None
            Bytes that tables may take; more is refused.
        """
        return FoldedTable(target, self, memory)  # type: ignore[arg-type]

    def __sklearn_tags__(self) -> Any:
        return self.members[0].learner.__sklearn_tags__()


def _all_tell(name: str) -> Any:
    return available_if(lambda self: all(hasattr(member.learner, name) for member in self.members))


class FoldVote(_Folded):
    """The class that most models of the folds decide for, the first of equals.

    Parameters
    ----------
    members : sequence of TableModel
        Model of each fold.
    classes : ndarray
        The classes.
    """

    family = "folded.classes"
    card = Card(
        name="Vote of the models of the folds", task="classify",
        strategy="the mean error rate of the models, each on the fold that it was fitted without",
        guarantee=("cross-validation.mean", "cross-validation.baseline"),
        model=_SPACE, algorithm=_HOW, input=("numbers", "nominal", "missing"),
    )  # fmt: skip

    def __init__(self, members: Sequence[TableModel], classes: np.ndarray) -> None:
        super().__init__(members)
        self.classes_ = classes

    def _arrays(self) -> dict[str, np.ndarray]:
        return {"classes_": self.classes_}

    @classmethod
    def restore(cls, stored: StoredModel, members: Sequence[Any], build: Any) -> "FoldVote":
        """Return the models that `stored` describes, after the checker has read them."""
        read_model(stored, any_size=True)
        return cls(members, stored.arrays["classes_"])

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with most votes."""
        votes = np.zeros((len(X), len(self.classes_)))
        for labels in self.answers("predict", X):
            votes[np.arange(len(X)), np.searchsorted(self.classes_, labels)] += 1
        return self.classes_[votes.argmax(axis=1)]

    @_all_tell("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the mean of the probabilities that the models give each class."""
        result = np.zeros((len(X), len(self.classes_)))
        for member, shares in zip(self.members, self.answers("predict_proba", X), strict=True):
            result[:, np.searchsorted(self.classes_, member.classes_)] += shares
        return result / len(self.members)


class FoldMean(_Folded):
    """The mean of the numbers that the models of the folds predict, each moved into `range_`.

    Parameters
    ----------
    members : sequence of TableModel
        Model of each fold.
    range_ : ndarray
        Smallest and largest number that is predicted.
    """

    family = "folded.numbers"
    card = Card(
        name="Mean of the models of the folds", task="regress",
        strategy="the mean absolute error of the models, each on the fold that it was fitted without",
        guarantee=("cross-validation.mean-loss", "cross-validation.median"),
        model=_SPACE, algorithm=_HOW, input=("numbers", "nominal", "missing"),
    )  # fmt: skip

    def __init__(self, members: Sequence[TableModel], range_: np.ndarray) -> None:
        super().__init__(members)
        self.range_ = range_

    def _arrays(self) -> dict[str, np.ndarray]:
        return {"range_": self.range_}

    @classmethod
    def restore(cls, stored: StoredModel, members: Sequence[Any], build: Any) -> "FoldMean":
        """Return the models that `stored` describes, after the checker has read them."""
        read_model(stored, any_size=True)
        return cls(members, stored.arrays["range_"])

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean of the predictions."""
        return np.mean([np.clip(answer, *self.range_) for answer in self.answers("predict", X)], axis=0)


class FoldedTable(TableModel):
    """The vote or mean of models of folds, which reads tables as its members do."""

    learner: Any

    def __init__(self, target: ColumnType, learner: FoldVote | FoldMean, memory: Memory | None = None) -> None:
        super().__init__(target, Encoding([]), learner, memory)

    @property
    def members(self) -> list[TableModel]:
        return self.learner.members

    @property
    def columns(self) -> Schema:
        """The columns that a member reads, as the first that reads them does."""
        results = {column.name: column for member in reversed(self.members) for column in member.columns}
        return tuple(results.values())

    def read(self, source: Any, *, lenient: bool = False) -> Table:
        """Return the columns as members read them; `unknown` are levels that one of them does not know."""
        rows = raw_table(self.named(source))
        tables = [member.read(rows, lenient=lenient) for member in self.members]
        known = {name: column for table in reversed(tables) for name, column in table.columns.items()}
        unknown = {name: values for table in tables for name, values in table.unknown.items()}
        return Table((known[column.name] for column in self.columns), n_rows=rows.n_rows, unknown=unknown)

    def raw(self, source: Any) -> np.ndarray:
        """Return the raw rows of the members side by side."""
        rows = raw_table(self.named(source))
        return np.hstack([member.raw(rows) for member in self.members])

    def read_and_encode(self, source: Any, *, lenient: bool = False) -> tuple[Table, np.ndarray]:
        """Return the columns that members read, and the raw rows, which the members encode."""
        rows = raw_table(self.named(source))
        return self.read(rows, lenient=lenient), self.raw(rows)

    def used(self, source: RawTable) -> Used:
        raw = self.raw(source)
        return Used(raw, self.learner.predict(raw))

    marginal = True

    def recall(self, source: RawTable, held: Any = None, compared: int = 1, seed: int | None = None) -> Memory:
        """Return what is remembered of rows: their columns, and the sizes of the predictions on each fold, by the model
        that did not see it; the folds are those of the seed, which is the remembered one if none is given."""
        if seed is None and self.memory is not None and self.memory.folds is not None:
            seed = self.memory.folds.seed
        result = None if seed is None else self._sizes(source, seed)
        sizes = None if seed is None or result is None else of_folds(seed, [item.values for item in result])
        table = self.read(source, lenient=True)
        known = (column.in_range() for column in table.columns.values())
        return replace(remember(np.empty(0), 1, Table(known, n_rows=table.n_rows)), folds=sizes)

    def _sizes(self, source: RawTable, seed: int) -> list[Sizes] | None:
        """Return the sizes of the rows of each fold; None if a model tells neither numbers nor scores."""
        X, y, count = self.raw(source), self.labels(source), len(self.members)
        fold, results = fold_of_rows(len(y), count, seed), []
        for k, member in enumerate(self.members):
            size = sizes_of(member.learner, self.learner.encoded(k, X[fold == k]), y[fold == k])
            if size is None or not len(size.values) or not (size.values <= LARGEST).all():
                return None
            results.append(size)
        return results

    def sets(self, X: np.ndarray, coverage: float, delta: float) -> np.ndarray:
        """Return the prediction sets: they hold the class of a new row with a chance of `coverage`, over the rows of
        the table and the new one; `delta` has no part in it."""
        kept = self._kept(coverage, "classify")
        gaps = []
        for k, member in enumerate(self.members):
            scores = class_scores(member.learner, self.learner.encoded(k, X))
            assert scores is not None
            below = scores.max(axis=1, keepdims=True) - scores
            below -= slip(below, np.abs(scores).max(axis=1, keepdims=True))
            gap = np.full((len(X), len(self.classes_)), LARGEST)
            gap[:, np.searchsorted(self.classes_, member.classes_)] = below
            gaps.append(gap)
        return kept.sets(gaps, coverage)

    def intervals(self, X: np.ndarray, coverage: float, delta: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of intervals: they hold a new row's number with a chance of `coverage`, as the sets do."""
        return self._kept(coverage, "regress").intervals(self.learner.answers("predict", X), coverage)

    def _kept(self, coverage: float, task: str) -> FoldSizes:
        folds = self._promised(coverage, task).folds
        if folds is None:
            raise ValueError("the model remembers no sizes of its folds, which sets and intervals are made of.")
        return folds

    def _memory_is_honest(self, cells: StreamedCells, certificate: Certificate) -> bool:
        """Tell whether the rows give the memory again, by the folds that the claims are about."""
        if self.memory is None or self.memory.folds is None:
            return super()._memory_is_honest(cells, certificate)
        seeds = {claim.params["seed"] for claim in certificate.claims if "folds" in claim.params}
        rows = cells.rows(*(item.name for item in (*self.columns, self.target)))
        sizes = self._sizes(rows.take(without_reserve(cells.own, certificate)), self.memory.folds.seed)
        return (
            seeds == {self.memory.folds.seed}
            and sizes is not None
            and self.memory.folds.agree(sizes)
            and super()._memory_is_honest(cells, certificate)
        )


def unfitted(model: TableModel) -> TableModel:
    """Return a model with the same choice that has seen no rows."""
    if isinstance(model, FoldedTable):
        members = [unfitted(member) for member in model.members]
        whole = FoldVote(members, np.empty(0)) if model.task == "classify" else FoldMean(members, np.empty(0))
        return FoldedTable(model.target, whole)
    return TableModel(model.target, model.encoding, clone(model.learner))


def fit_again(model: TableModel, X: Any, y: Any) -> None:
    """Fit a model's learner to rows without the target, and the target of each."""
    rows = raw_table(model.named(X))
    target = raw_table({model.target.name: np.asarray(y)}).typed().column(model.target.name)
    if len(target.data) != rows.n_rows:
        raise ValueError(f"there are {rows.n_rows} rows and {len(target.data)} targets.")
    if target.missing.any():
        raise ValueError(f"the target {model.target.name!r} has missing values.")
    _fit(model, rows, target.type, target_values(target, model.task))


def _fit(model: TableModel, rows: RawTable, target: Any, y: np.ndarray) -> None:
    model.target, model.memory = target, None
    if isinstance(model, FoldedTable):
        _fit_folds(model, rows, y)
        return
    features = informative_columns(rows.typed())
    reads = checked_input(model.learner)
    if any(column.kind == "nominal" for column in model.columns) and not model.encoding.nominal():
        reads = frozenset({"numbers"})  # it was chosen with levels encoded as numbers
    model.encoding = Encoding.fit(features, reads)
    known = model.learner.get_params(deep=True)
    places = {name: model.encoding.nominal() or None for name in known if name.split("__")[-1] == "nominal"}
    model.learner = clone(model.learner).set_params(**places).fit(model.encoding.apply(features), y)


def _fit_folds(model: FoldedTable, rows: RawTable, y: np.ndarray) -> None:
    """Fit each member to the rows outside one of as many folds as there are members."""
    fold = fold_of_rows(len(y), len(model.members), 0)
    members = [unfitted(member) for member in model.members]
    for k, member in enumerate(members):
        _fit(member, rows.take(fold != k), model.target, y[fold != k])
    ends = np.unique(y) if model.task == "classify" else np.array([y.min(), y.max()], dtype=np.float64)
    model.learner = FoldVote(members, ends) if model.task == "classify" else FoldMean(members, ends)
