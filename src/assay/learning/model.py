"""A model that reads tables: an encoding and a learner, and the column they predict."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from assay import scan
from assay.base import Learner
from assay.checker.family import read_model
from assay.claims.claim import Certificate
from assay.claims.model import StoredModel
from assay.data import Column, ColumnType, Encoding, Schema, Table, read
from assay.guarantees.ledger import CertifyOptions
from assay.guarantees.seal import About, DataSplit, Others, issue
from assay.learning.memory import Memory, class_scores, remember, sizes_of

_NAME = "learning.TableModel"

_CHECKED = frozenset({"numbers", "nominal", "missing"})
"""What the checker of certificates can read."""


def checked_input(learner: type[Learner] | Learner) -> frozenset[str]:
    """Return what is handed to a learner as it is: what both it and the checker read."""
    return _CHECKED.intersection(learner.card.input)


class TableModel:
    """An encoding and a fitted learner that read a table by column names; what `assay learn` saves.

    It predicts for frames, dicts of columns, files and tables alike, as a fitted estimator of scikit-learn does.
    """

    family = "table"

    def __init__(
        self, target: ColumnType, encoding: Encoding, learner: Learner, memory: Memory | None = None
    ) -> None:
        self.target, self.encoding, self.learner, self.memory = target, encoding, learner, memory

    @property
    def classes_(self) -> np.ndarray:
        """The classes, in the order of the columns of `predict_proba`."""
        if self.task != "classify":
            raise AttributeError("a model of numbers has no classes.")
        return self.learner.classes_

    @property
    def n_features_in_(self) -> int:
        return len(self.columns)

    @property
    def feature_names_in_(self) -> np.ndarray:
        return np.array([column.name for column in self.columns], dtype=object)

    @property
    def _estimator_type(self) -> str:
        return "classifier" if self.task == "classify" else "regressor"

    def __sklearn_tags__(self) -> Any:
        return self.learner.__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return what it is made of."""
        return {"target": self.target, "encoding": self.encoding, "learner": self.learner}

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
        return cls(column, Encoding.from_plain(stored.parameters["encoding"]), members[0], remembered)

    def certify(
        self,
        table: Table,
        held: np.ndarray,
        *,
        delta: Decimal,
        asked: CertifyOptions,
        others: Others | None = None,
    ) -> Certificate:
        """Return a certificate of the model on a table, some of whose rows were kept out of `fit`.

        The claims are computed from encoded rows; fingerprints are those of the table's own values, which the checker
        encodes by itself.
        """
        compared = len(asked.compared) or 1 + len(() if others is None else others.entries)
        self.memory = self.recall(table, held, compared) if asked.groups is None else None
        raw, y = self.encoding.raw(table)[0], self.labels(table)
        kept = np.setdiff1d(np.arange(len(raw)), held)
        split = {"train": kept, "holdout": held}
        cuts = [
            DataSplit(self.rows(X[kept], y[kept]), self.rows(X[held], y[held]), split)
            for X in (self.encoding.apply_raw(raw), raw)
        ]
        return issue(self.learner, cuts[0], delta=delta, asked=asked, others=others, about=About(self, cuts[1]))

    def recall(self, table: Table, held: np.ndarray, compared: int) -> Memory | None:
        """Return what is remembered of a table: sizes of the predictions on its hold-out rows, and its columns."""
        fitting = self.encoding.fitting(table)[0]
        y = self.labels(table)[held]
        sizes = sizes_of(self.learner, self.encoding.apply(fitting.take(held)), y)
        return None if sizes is None or not np.isfinite(sizes).all() else remember(sizes, compared, fitting)

    def rows(self, X: np.ndarray, y: np.ndarray) -> scan.Rows:
        """Return rows and their targets as the learner sees them."""
        rows = scan.rows(X, y)
        return rows.encoded(self.learner.classes_) if self.task == "classify" else rows

    @property
    def columns(self) -> Schema:
        """The columns that it reads."""
        return self.encoding.schema

    def encode(self, table: Table) -> tuple[np.ndarray, dict[str, list[str]]]:
        """Return the encoded rows, and the values of nominal columns that the model does not know."""
        raw, unknown = self.encoding.raw(table)
        return self.encoding.apply_raw(raw), unknown

    def labels(self, table: Table) -> np.ndarray:
        """Return the target of each row as the learner reads it."""
        fitting, unknown = table.require_same_columns((self.target,))
        column = fitting.column(self.target.name)
        if unknown or column.missing.any():
            raise ValueError(f"the target {column.name!r} has missing or unknown values.")
        return target_values(column, self.task)

    def own_rows(self, table: Table) -> np.ndarray:
        """Return the numbers of the rows that the model is about: they have a target, and one that it knows."""
        column = table.require_same_columns((self.target,))[0].column(self.target.name)
        there = ~column.missing
        if self.task == "classify":
            there[there] = np.isin(target_values(Column(column.type, column.data[there]), self.task), self.classes_)
        return np.flatnonzero(there)

    def read(self, source: Any) -> Table:
        """Return the model's columns of a `Table`, or of what `assay.data.read` reads: a frame, a dict, a file."""
        return source if isinstance(source, Table) else read(source, schema=self.columns)

    def predict(self, source: Any) -> np.ndarray:
        """Return the prediction for each row of a table that has the model's columns.

        >>> import assay
        >>> columns = {"x": [0.0, 1.0, 2.0, 3.0] * 10, "y": ["a", "a", "b", "b"] * 10}
        >>> model = assay.learn(columns, "y", learners=["LogisticRegression"], trials=1, workers=0).model
        >>> model.predict({"x": [0.2, 2.7]}).tolist()
        ['a', 'b']
        """
        return self.learner.predict(self.encode(self.read(source))[0])

    def predict_proba(self, source: Any) -> np.ndarray:
        """Return the probability of each class of `classes_`, (rows, classes)."""
        return self.probabilities(self.encode(self.read(source))[0])

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of each class of encoded rows."""
        if not hasattr(self.learner, "predict_proba"):
            raise ValueError(f"{type(self.learner).__name__} gives no probabilities.")
        return np.asarray(self.learner.predict_proba(X))

    def predict_set(self, source: Any, coverage: float, delta: float = 0.05) -> np.ndarray:
        """Return (rows, classes) whether each class is in the row's prediction set.

        But for a chance of delta, the sets of at least a share `coverage` of new rows have the true class.
        """
        return self.sets(self.encode(self.read(source))[0], coverage, delta)

    def sets(self, X: np.ndarray, coverage: float, delta: float) -> np.ndarray:
        """Return the prediction sets of encoded rows."""
        size, scores = self._size(coverage, delta, "classify"), class_scores(self.learner, X)
        assert scores is not None
        return scores >= scores.max(axis=1, keepdims=True) - size * (1 + 1e-9)

    def predict_interval(self, source: Any, coverage: float, delta: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of an interval around each prediction.

        But for a chance of delta, at least a share `coverage` of new rows lie in theirs.
        """
        return self.intervals(self.encode(self.read(source))[0], coverage, delta)

    def intervals(self, X: np.ndarray, coverage: float, delta: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the intervals of encoded rows."""
        size, predicted = self._size(coverage, delta, "regress"), self.learner.predict(X)
        return predicted - size, predicted + size

    def _size(self, coverage: float, delta: float, task: str) -> float:
        if self.task != task:
            raise ValueError("sets are of classes, and intervals of numbers; this model predicts the other.")
        if not 0 < coverage < 1:
            raise ValueError(f"the coverage must be a share between 0 and 1, such as 0.9; got {coverage:g}.")
        if self.memory is None:
            raise ValueError("the model remembers no hold-out rows, which prediction sets and intervals are made of.")
        return self.memory.size(coverage, delta)

    def decision_function(self, table: Any) -> np.ndarray:
        """Return the scores of the rows."""
        return self._method("decision_function")(self.encode(self.read(table))[0])

    def score(self, table: Any, y: Any = None) -> float:
        """Return the share of right predictions, or R^2; `y` is the table's own target if left out."""
        if not isinstance(table, Table):
            table = read(table, schema=self.columns if y is not None else (*self.columns, self.target))
        y = self.labels(table) if y is None else np.asarray(y)
        predicted = self.predict(table)
        if self.task == "classify":
            return float(np.mean(predicted == y))
        return float(1 - np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2))

    def _method(self, name: str) -> Any:
        found = getattr(self.learner, name, None)
        if found is None:
            raise AttributeError(f"{type(self.learner).__name__} has no {name}.")
        return found

    @property
    def task(self) -> str:
        return self.learner.card.task

    def differences(self, table: Table, certificate: Certificate) -> list[str]:
        """Return a sentence for each way in which a table cannot be the one that the model was certified on."""
        lacking = [column.name for column in (*self.columns, self.target) if column.name not in table.columns]
        if lacking:
            return [f"The column {name!r} is not there." for name in lacking]
        rows = sum(part.rows for part in certificate.data.values())
        if table.n_rows != rows:
            return [f"The table has {table.n_rows} rows; the certificate is about {rows}."]
        numeric = [column.name for column in (*self.columns, self.target) if column.kind == "numeric"]
        text = [name for name in numeric if table.columns[name].type.kind != "numeric"]
        return [f"The column {name!r} holds text; the certificate is about numbers." for name in text]



def target_values(target: Column, task: str) -> np.ndarray:
    if task == "regress":
        if target.type.kind != "numeric":
            raise ValueError(f"the target {target.name!r} holds text, and regression needs numbers.")
        return target.data
    if target.type.kind != "numeric":
        ending = [level for level in target.type.levels if level.endswith("\0")]
        if ending:
            raise ValueError(
                f"the target {target.name!r} has the label {ending[0]!r}; labels must not end in a NUL character, "
                "because arrays of text drop it. Rename the label."
            )
        return np.asarray(target.type.levels)[target.data.astype(np.intp)]
    whole = (target.data == np.round(target.data)).all() and np.abs(target.data).max() < 2**53
    return target.data.astype(np.int64) if whole else target.data
