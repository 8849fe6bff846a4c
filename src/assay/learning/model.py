"""A model that reads tables: an encoding and a learner, and the column they predict.

The cells of a model's table as the checker asks for them: a column, or a part of the rows, at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property, partial
from typing import Any

import numpy as np

from assay import scan
from assay.base import Learner
from assay.checker.family import read_model
from assay.checker.tables import Used, verify_table
from assay.checker.verdict import Report, Verdict
from assay.claims.claim import Certificate
from assay.claims.model import StoredModel
from assay.data import Column, ColumnType, Encoding, RawTable, Schema, Table, names, raw_chunks, raw_table
from assay.data.readers import is_streamed, rows_at_once
from assay.data.table import written_like
from assay.guarantees.ledger import CertifyOptions, price_of_look
from assay.guarantees.seal import About, DataSplit, Others, issue
from assay.learning.memory import Memory, Sizes, class_scores, outward, ranked, remember, sizes_of, sketches
from assay.messages import Message


class StreamedCells:
    """Cells of the columns that a model reads, of its target, and of those that the certificate names. Parquet files
    are read again for each column and each pass, so that they may be larger than memory; other sources are held."""

    def __init__(self, model: "TableModel", certificate: Certificate, source: Any) -> None:
        self.model = model
        self.source = source if is_streamed(source) else raw_table(source)
        known = self.source.names if isinstance(self.source, RawTable) else names(self.source)
        kinds = {item.name: item.kind for item in (*model.columns, model.target)}
        kinds |= {name: "nominal" for name in certificate.named_columns if name not in kinds}
        if certificate.time is not None:
            kinds.setdefault(certificate.time["name"], certificate.time["kind"])
        self.kinds = {name: kind for name, kind in kinds.items() if name in known}
        self.names = list(self.kinds)
        self._read = [column.name for column in model.columns]

    def rows(self, *columns: str) -> RawTable:
        """Return columns as the source holds them."""
        return raw_table(self.source, only=list(columns))

    def column(self, name: str) -> np.ndarray:
        """Return the cells of a column."""
        return self.rows(name).cells(name, self.kinds[name])

    def chunks(self, *more: str) -> Iterator[RawTable]:
        """Yield the columns that the model reads, and more, in parts of the rows."""
        columns = list(dict.fromkeys([*self._read, *more]))
        return raw_chunks(self.source, rows_at_once(len(columns)), columns)

    def parts(self) -> Iterator[tuple[dict[str, np.ndarray], Callable[[], Used]]]:
        """Yield the cells of the columns that the model reads in parts of the rows, and what it makes of these."""
        for part in self.chunks():
            yield {name: part.cells(name, self.kinds[name]) for name in self._read}, partial(self.model.used, part)

    def typed(self, numbers: np.ndarray) -> Iterator[Column]:
        """Yield the columns that the model reads, as it reads them, of the rows with these numbers."""
        for column in self.model.columns:
            rows = self.rows(column.name)
            rows = rows if len(numbers) == rows.n_rows else rows.take(numbers)
            yield rows.read_as((column,), lenient=True).column(column.name)

    @cached_property
    def own(self) -> np.ndarray:
        """The numbers of the rows that have a target."""
        return self.model.own_rows(self.rows(self.model.target.name))

    @cached_property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.rows(self.model.target.name).n_rows


_NAME = "learning.TableModel"

_CHECKED = frozenset({"numbers", "nominal", "missing"})
"""What the checker of certificates can read."""


def checked_input(learner: type[Learner] | Learner) -> frozenset[str]:
    """Return what is handed to a learner as it is: what both it and the checker read."""
    return _CHECKED.intersection(learner.card.input)


class TableModel:
    """An encoding and a fitted learner that read a table by column names; what `assay learn` saves.

    It predicts for frames, dicts of columns, files and tables alike, as a fitted estimator of scikit-learn does.

    Parameters
    ----------
    target : ColumnType
        Type of the target.
    encoding : Encoding
        How rows are made of the columns.
    learner : learner
        The fitted learner.
    memory : Memory or None
        What it remembers of the training rows to notice drift; None: nothing.
    """

    family = "table"
    marginal = False  # whether the coverage of sets and intervals is a chance over table and new row together

    def __init__(self, target: ColumnType, encoding: Encoding, learner: Any, memory: Memory | None = None) -> None:
        self.target, self.encoding, self.learner, self.memory = target, encoding, learner, memory

    @property
    def classes_(self) -> np.ndarray:
        """The classes, in the order of the columns of `predict_proba`."""
        if self.task != "classify":
            raise AttributeError("a model of numbers has no classes.")
        return self.learner.classes_

    @property
    def n_features_in_(self) -> int:
        """The number of columns."""
        return len(self.columns)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The names of the columns."""
        return np.array([column.name for column in self.columns], dtype=object)

    @property
    def _estimator_type(self) -> str:
        return "classifier" if self.task == "classify" else "regressor"

    def __sklearn_tags__(self) -> Any:
        return self.learner.__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        return has_seen_rows(self.learner)

    def __sklearn_clone__(self) -> "TableModel":
        from assay.learning.folded import unfitted

        return unfitted(self)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return what it is made of."""
        own = {"target": self.target, "encoding": self.encoding, "learner": self.learner}
        inner = self.learner.get_params(deep=True) if deep else {}
        return own | {f"learner__{name}": value for name, value in inner.items()}

    def set_params(self, **params: Any) -> "TableModel":
        """Set parameters of the learner, `learner__alpha=0.1`, for when it is fitted again."""
        inner = {name.removeprefix("learner__"): value for name, value in params.items()}
        if not all(name.startswith("learner__") for name in params):
            raise ValueError(f"parameters are those of the learner, such as learner__alpha; got {', '.join(params)}.")
        self.learner.set_params(**inner)
        return self

    def fit(self, X: Any, y: Any) -> "TableModel":
        """Fit the same learner with the same settings to other rows: X without the target, y the target of each.

        Columns are read, and encoded, by what these rows hold. A certificate is about the model before.
        """
        from assay.learning.folded import fit_again

        fit_again(self, X, y)
        return self

    def __repr__(self) -> str:
        from assay.learning.notebook import model_text

        return model_text(self)

    def _repr_html_(self) -> str:
        from assay.learning.notebook import model_html

        return model_html(self)

    def named(self, source: Any) -> Any:
        """Return a source; the columns of an array are named as the model's are.

        Parameters
        ----------
        source : path, frame or dict
            What `assay.data.read` reads.
        """
        if not isinstance(source, np.ndarray):
            return source
        if source.ndim != 2 or source.shape[1] != len(self.columns):
            raise ValueError(f"an array must have the model's {len(self.columns)} columns; got shape {source.shape}.")
        return {column.name: source[:, j] for j, column in enumerate(self.columns)}

    def stored(self) -> StoredModel:
        """Return the model as plain data: the encoding in names and numbers, and the learner as its parts."""
        written = {"written": list(self.target.written)} if self.target.written else {}
        target = {"name": self.target.name, "kind": self.target.kind, "levels": list(self.target.levels), **written}
        parameters: dict[str, Any] = {"encoding": self.encoding.plain(), "target": target}
        if self.memory is not None:
            parameters["memory"] = self.memory.plain()
        return StoredModel(_NAME, self.family, parameters, {}, (self.learner.stored(),))

    @classmethod
    def restore(cls, stored: StoredModel, members: Sequence[Any], build: Any) -> "TableModel":
        """Return the model that `stored` describes, after the checker has read it."""
        read_model(stored, any_size=True)
        target = stored.parameters["target"]
        column = ColumnType(target["name"], target["kind"], tuple(target["levels"]), tuple(target.get("written", ())))
        memory = stored.parameters.get("memory")
        remembered = None if memory is None else Memory.from_plain(memory)
        if not stored.parameters["encoding"]:  # members that are models of tables read them
            return members[0].table(column, remembered)
        return cls(column, Encoding.from_plain(stored.parameters["encoding"]), members[0], remembered)

    def certify(
        self,
        source: RawTable,
        held: np.ndarray,
        *,
        delta: Decimal,
        asked: CertifyOptions,
        others: Others | None = None,
        seed: int | None = None,
        time: ColumnType | None = None,
        look: int = 1,
    ) -> Certificate:
        """Return a certificate of the model on rows of a table, some of which were kept out of `fit`; `seed` is the one
        that they were drawn with, if they were, and `time` the column by which they are the newest, if they are (one
        with an order of its own is not named: no file tells that order again). `look`
        counts the looks at these rows, this one included, which prediction sets and intervals pay for, too.

        All rows are read as new ones are. The claims are computed from encoded rows; fingerprints are those of the raw
        rows, which the checker reads and encodes by itself.

        Parameters
        ----------
        source : RawTable
            What `assay.data.read` reads.
        held : ndarray
            Numbers of the rows kept out of `fit`.
        others : Others or None
            Models that were certified on the same rows.
        seed : int or None
            Seed of the split.
        time : ColumnType or None
            The time column, if rows were held out by it.
        look : int, default=1
            Number of the look at the hold-out rows, this one included.
        """
        compared = len(asked.compared) or 1 + len(() if others is None else others.entries)
        compared *= price_of_look(look)
        self.memory = self.recall(source, held, compared) if asked.groups is None else None
        raw, y = self.raw(source), self.labels(source)
        kept = np.setdiff1d(np.arange(len(raw)), held)
        split = {"train": kept, "holdout": held} | ({} if seed is None else {"seed": np.array([seed])})
        cuts = [
            DataSplit(self.rows(X[kept], y[kept]), self.rows(X[held], y[held]), split)
            for X in (self.encoding.apply_raw(raw), raw)
        ]
        result = issue(self.learner, cuts[0], delta=delta, asked=asked, others=others, about=About(self, cuts[1]))
        if asked.groups is not None and not result.named_columns:  # nothing is proved: no claim says what was drawn
            result = replace(result, split={name: rows for name, rows in split.items() if name != "seed"})
        if time is None or time.kind == "ordered":
            return result
        return replace(result, time=vars(time) | {"levels": list(time.levels), "written": list(time.written)})

    def recall(self, source: RawTable, held: np.ndarray, compared: int) -> Memory | None:
        """Return what is remembered of rows: sizes of the predictions on those held out, and the columns of all.

        Parameters
        ----------
        source : RawTable
            What `assay.data.read` reads.
        held : ndarray
            Numbers of the rows kept out of `fit`.
        compared : int
            Number of models compared on these rows.
        """
        fitting = self.encoding.fitting(self.read(source, lenient=True))[0]
        y = self.labels(source.take(held))
        sizes = sizes_of(self.learner, self.encoding.apply(fitting.take(held)), y)
        if sizes is None or not np.isfinite(sizes.values).all():
            return None
        return remember(sizes.values, compared, fitting)

    def rows(self, X: np.ndarray, y: np.ndarray) -> scan.Rows:
        """Return rows and their targets as the learner sees them; a class that it does not know is -1."""
        rows = scan.rows(X, y)
        return rows.encoded(self.learner.classes_, others=True) if self.task == "classify" else rows

    @property
    def columns(self) -> Schema:
        """The columns that it reads."""
        return self.encoding.schema

    def raw(self, source: Any) -> np.ndarray:
        """Return the raw rows of a source (`data.encoding`), whatever share of its cells cannot be read.

        Parameters
        ----------
        source : path, frame or dict
            What `assay.data.read` reads.
        """
        return self.encoding.raw(self.read(source, lenient=True))[0]

    def encode(self, source: Any, *, lenient: bool = False) -> tuple[np.ndarray, dict[str, list[str]]]:
        """Return the encoded rows, and the values of nominal columns that training rows did not have.

        Parameters
        ----------
        source : path, frame or dict
            What `assay.data.read` reads.
        lenient : bool, default=False
            Whether cells that cannot be read are missing, whatever their share.
        """
        table, X = self.read_and_encode(source, lenient=lenient)
        return X, table.unknown

    def read_and_encode(self, source: Any, *, lenient: bool = False) -> tuple[Table, np.ndarray]:
        """Return the model's columns of a source, and its rows as the learner reads them.

        Parameters
        ----------
        source : path, frame or dict
            What `assay.data.read` reads.
        lenient : bool, default=False
            Whether cells that cannot be read are missing, whatever their share.
        """
        table = self.read(source, lenient=lenient)
        return table, self.encoding.apply_raw(self.encoding.raw(table)[0])

    def labels(self, source: Any) -> np.ndarray:
        """Return the target of each row as the learner reads it; a class that it does not know keeps its name.

        Parameters
        ----------
        source : path, frame or dict
            What `assay.data.read` reads.
        """
        classes = self.classes_ if self.task == "classify" else np.empty(0)
        return read_target(raw_table(source), self.target, self.task, classes)

    def own_rows(self, source: RawTable) -> np.ndarray:
        """Return the numbers of the rows that the model is about; see `has_target`.

        Parameters
        ----------
        source : RawTable
            What `assay.data.read` reads.
        """
        return np.flatnonzero(has_target(source, self.target, self.task))

    def read(self, source: Any, *, lenient: bool = False) -> Table:
        """Return the model's columns of what `assay.data.read` reads (a file, a frame, a dict), as training rows were
        read: this is the one way by which rows reach the learner. Unless `lenient`, a column of which many cells cannot
        be read is refused.

        Parameters
        ----------
        source : path, frame or dict
            What `assay.data.read` reads.
        lenient : bool, default=False
            Whether cells that cannot be read are missing, whatever their share.
        """
        rows = raw_table(self.named(source), only=[column.name for column in self.columns])
        return rows.read_as(self.columns, lenient=lenient)

    def predict(self, source: Any) -> np.ndarray:
        """Return the prediction for each row of a table that has the model's columns.

        Parameters
        ----------
        source : path, frame or dict
            What `assay.data.read` reads.

        Examples
        --------
        >>> import assay
        >>> columns = {"x": [0.0, 1.0, 2.0, 3.0] * 10, "y": ["a", "a", "b", "b"] * 10}
        >>> model = assay.learn(columns, "y", learners=["LogisticRegression"], trials=1, workers=0).model
        >>> model.predict({"x": [0.2, 2.7]}).tolist()
        ['a', 'b']
        """
        return self.learner.predict(self.encode(source)[0])

    def predict_proba(self, source: Any) -> np.ndarray:
        """Return the probability of each class of `classes_`, (rows, classes).

        Parameters
        ----------
        source : path, frame or dict
            What `assay.data.read` reads.
        """
        return self.probabilities(self.encode(source)[0])

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of each class of encoded rows."""
        if not hasattr(self.learner, "predict_proba"):
            raise ValueError(f"{type(self.learner).__name__} gives no probabilities.")
        return np.asarray(self.learner.predict_proba(X))

    def predict_set(self, source: Any, coverage: float, delta: float = 0.05) -> np.ndarray:
        """Return (rows, classes) whether each class is in the row's prediction set.

        But for a chance of delta, the sets of at least a share `coverage` of new rows have the true class.

        Parameters
        ----------
        source : path, frame or dict
            What `assay.data.read` reads.
        coverage : float
            Share of new rows whose set or interval holds the target.
        """
        return self.sets(self.encode(source)[0], coverage, delta)

    def sets(self, X: np.ndarray, coverage: float, delta: float) -> np.ndarray:
        """Return the prediction sets of encoded rows.

        Parameters
        ----------
        coverage : float
            Share of new rows whose set or interval holds the target.
        """
        size, scores = self._size(coverage, delta, "classify"), class_scores(self.learner, X)
        assert scores is not None
        most = scores.max(axis=1, keepdims=True)
        return scores >= most - outward(size, np.abs(scores).max(axis=1, keepdims=True))

    def predict_interval(self, source: Any, coverage: float, delta: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of an interval around each prediction.

        But for a chance of delta, at least a share `coverage` of new rows lie in theirs.

        Parameters
        ----------
        source : path, frame or dict
            What `assay.data.read` reads.
        coverage : float
            Share of new rows whose set or interval holds the target.
        """
        return self.intervals(self.encode(source)[0], coverage, delta)

    def intervals(self, X: np.ndarray, coverage: float, delta: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the intervals of encoded rows.

        Parameters
        ----------
        coverage : float
            Share of new rows whose set or interval holds the target.
        """
        size, predicted = self._size(coverage, delta, "regress"), self.learner.predict(X)
        wide = outward(size, np.abs(predicted))
        return predicted - wide, predicted + wide

    def _size(self, coverage: float, delta: float, task: str) -> float:
        return self._promised(coverage, task).size(coverage, delta)

    def _promised(self, coverage: float, task: str) -> Memory:
        """Return the memory, if it can give what is asked for."""
        if self.task != task:
            raise ValueError("sets are of classes, and intervals of numbers; this model predicts the other.")
        if not 0 < coverage < 1:
            raise ValueError(f"the coverage must be a share between 0 and 1, such as 0.9; got {coverage:g}.")
        if self.memory is None:
            raise ValueError("the model remembers no hold-out rows, which prediction sets and intervals are made of.")
        return self.memory

    def decision_function(self, table: Any) -> np.ndarray:
        """Return the scores of the rows.

        Parameters
        ----------
        table : path, frame or dict
            The table.
        """
        return self._method("decision_function")(self.encode(table)[0])

    def score(self, table: Any, y: Any = None) -> float:
        """Return the share of right predictions, or R^2; `y` is the table's own target if left out.

        Parameters
        ----------
        table : path, frame or dict
            The table.
        """
        source = raw_table(self.named(table))
        y = self.labels(source) if y is None else np.asarray(y)
        predicted = self.predict(source)
        if self.task == "classify":
            return float(np.mean(predicted == y))
        return float(1 - np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2))

    def _method(self, name: str) -> Any:
        result = getattr(self.learner, name, None)
        if result is None:
            raise AttributeError(f"{type(self.learner).__name__} has no {name}.")
        return result

    @property
    def task(self) -> str:
        """ "classify" or "regress"."""
        return self.learner.card.task

    def verify(self, certificate: Certificate, source: Any, *, limit: float | None = None) -> Report:
        """Re-check a certificate of this model from the cells of its table; see `assay.verify`.

        Parameters
        ----------
        certificate : Certificate
            The certificate.
        source : path, frame or dict
            What `assay.data.read` reads.
        limit : float or None
            Seconds that the checker may take; None: any number.
        """
        cells = StreamedCells(self, certificate, source)
        problems = self.differences(cells, certificate)
        if problems:
            return Report(Verdict("certificate", "REJECTED", f"this is not its table. {' '.join(problems)}"))
        report = verify_table(certificate, self, cells, limit=limit)
        if report.holds and not self._memory_is_honest(cells, certificate):
            reason = "the sizes of predictions and the columns that the model remembers are not what its rows give"
            return Report(Verdict("certificate", "REJECTED", reason), report.verdicts)
        return replace(report, about=self._about(cells.n_rows, certificate))

    def _about(self, rows: int, certificate: Certificate) -> str:
        """Return which rows of a table a certificate is about."""
        told = sum(part.rows for part in certificate.data.values())
        target = f"its column {self.target.name!r}"
        if self.target.written:
            target += f", read as numbers written like {written_like(self.target)}"
        if told == rows:
            return f"The claims are about all {told} rows of this table and {target}."
        kept = 0 if certificate.looks is None else len(certificate.looks["reserve"])
        later = f", and {kept} are kept for later looks" if kept else ""
        return (
            f"The claims are about {told} of the {rows} rows of this table and {target}: {rows - told - kept} have no "
            f"value there that can be read{later}."
        )

    def used(self, source: RawTable) -> Used:
        """Return what `predict` makes of rows: how it reads them, and what it says.

        Parameters
        ----------
        source : RawTable
            What `assay.data.read` reads.
        """
        raw = self.raw(source)
        return Used(raw, self.learner.predict(self.encoding.apply_raw(raw)))

    def _memory_is_honest(self, cells: StreamedCells, certificate: Certificate) -> bool:
        """Tell whether the hold-out rows give the sizes of predictions again, and all rows the columns."""
        if self.memory is None:
            return True
        own = without_reserve(cells.own, certificate)
        held = np.asarray((certificate.split or {}).get("holdout", ()), dtype=np.intp)
        paid = [int(claim.params["compared"]) for claim in certificate.claims if "compared" in claim.params]
        paid.append(self._models_paid_for(certificate))
        look = 1 if certificate.looks is None else certificate.looks["count"]
        known = (column.in_range() for column in cells.typed(own))
        return (
            self.memory.rows == (len(held) or len(own))
            and self.memory.compared >= (max(paid) * price_of_look(look) if len(held) else 1)
            and self._same_sizes(cells, own[held])
            and sketches(known, len(self.columns)) == self.memory.columns
        )

    def _models_paid_for(self, certificate: Certificate) -> int:
        """Return how many models the ledger pays for: this one, and others whose bounds are not reported; among these
        may be its own, which says nothing."""
        bound = "holdout.binomial" if self.task == "classify" else "holdout.betting"
        spent = sum(code == bound for code, _ in certificate.unreported)
        vacuous = any(gap.name == bound for gap in certificate.not_applicable)
        stated = any(claim.name == bound for claim in certificate.claims)
        return 1 + spent - (spent > 0 and vacuous and not stated)

    def _same_sizes(self, cells: StreamedCells, held: np.ndarray) -> bool:
        """Tell whether the sizes that are remembered are those of the predictions on hold-out rows, but for
        rounding."""
        assert self.memory is not None
        if not len(held):
            return not self.memory.sizes
        results, first = [], 0
        for part in cells.chunks(self.target.name):
            low, high = np.searchsorted(held, [first, first + part.n_rows])
            rows = part.take(held[low:high] - first)
            first += part.n_rows
            if not rows.n_rows:
                continue
            sizes = sizes_of(self.learner, self.encoding.apply_raw(self.raw(rows)), self.labels(rows))
            if sizes is None or not np.isfinite(sizes.values).all():
                return False
            results.append(sizes)
        return Sizes(*map(np.concatenate, zip(*results, strict=True))).agree(self.memory.sizes, ranked)

    def differences(self, cells: StreamedCells, certificate: Certificate) -> list[str]:
        """Return a sentence for each way in which a table cannot be the one that the model was certified on.

        Parameters
        ----------
        cells : StreamedCells
            The cells of the table.
        certificate : Certificate
            The certificate.
        """
        lacking = [column.name for column in (*self.columns, self.target) if column.name not in cells.names]
        if lacking:
            return [f"The column {name!r} is not there." for name in lacking]
        try:
            own = len(without_reserve(cells.own, certificate))
        except ValueError as error:
            return [f"It cannot be read as the model reads tables: {error}"]
        rows = sum(part.rows for part in certificate.data.values())
        if own != rows:
            return [f"The table has {own} rows; the certificate is about {rows}."]
        return []


def without_reserve(own: np.ndarray, certificate: Certificate) -> np.ndarray:
    """Return rows with a target but for those that are kept for later looks."""
    kept = [] if certificate.looks is None else certificate.looks["reserve"]
    return np.delete(own, [item for item in kept if item < len(own)])


def has_target(source: RawTable, target: ColumnType, task: str) -> np.ndarray:
    """Return which rows have a target: of numbers, one that can be read; of classes, any that is no gap, since one that
    is written otherwise is a class that there is not."""
    if target.kind != "numeric":
        return source.present(target.name)
    if task == "classify":
        return source.told(target)
    return ~source.read_as((target,), lenient=True).column(target.name).missing


def has_seen_rows(learner: Any) -> bool:
    """Tell whether a learner, or all of its members, are fitted."""
    if hasattr(learner, "fit"):
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted

        try:
            check_is_fitted(learner)
        except NotFittedError:
            return False
        return True
    return all(has_seen_rows(member.learner) for member in learner.members)


def read_target(source: RawTable, target: ColumnType, task: str, classes: np.ndarray) -> np.ndarray:
    """Return the targets of rows, read as the training rows' were; a class that these lack keeps its own name."""
    if not has_target(source, target, task).all():
        raise ValueError(Message("target.gaps", target=target.name))
    column = source.read_as((target,), lenient=True).column(target.name)
    if task == "regress":
        return target_values(column, task)
    if target.kind != "numeric":
        return np.array(source.text(target.name).tolist(), dtype=str)
    known = np.where(column.missing, float(classes.max()) + 1, column.data)
    if classes.dtype.kind in "iu":  # a number that is not whole is no class that there is
        whole = np.where(known == np.round(known), known, float(classes.max()) + 1)
        return np.clip(whole, -(2.0**53), 2.0**53).astype(np.int64)
    return known


def target_values(target: Column, task: str) -> np.ndarray:
    if task == "regress":
        if target.type.kind != "numeric":
            raise ValueError(Message("target.text", target=target.name))
        return target.data
    if target.type.kind != "numeric":
        ending = [level for level in target.type.levels if level.endswith("\0")]
        if ending:
            raise ValueError(Message("target.nul", target=target.name, label=ending[0]))
        return np.asarray(target.type.levels)[target.data.astype(np.intp)]
    whole = (target.data == np.round(target.data)).all() and np.abs(target.data).max() < 2**53
    return target.data.astype(np.int64) if whole else target.data
