"""A model that reads tables: an encoding and a learner, and the column they predict."""

import hashlib
from typing import Any

import numpy as np

from assay.base import Learner
from assay.data import Column, ColumnType, Encoding, Schema, Table

_CHECKED = frozenset({"numbers", "nominal"})
"""What the checker of certificates can read. Gaps are filled and marked for every learner, since it reads none."""


def checked_input(learner: type[Learner] | Learner) -> frozenset[str]:
    """Return what is handed to a learner as it is: what both it and the checker read."""
    return _CHECKED.intersection(learner.card.input)


class TableModel:
    """An encoding and a fitted learner that read a table by column names; what `assay learn` saves."""

    def __init__(self, target: ColumnType, encoding: Encoding, learner: Learner, digests: dict[str, str]) -> None:
        self.target, self.encoding, self.learner, self.digests = target, encoding, learner, digests

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
        kinds = ((self.target, ColumnType), (self.encoding, Encoding), (self.learner, Learner))
        if not all(isinstance(one, kind) for one, kind in kinds):
            raise ValueError("a table model needs a target, an encoding and a learner.")

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

    def predict(self, table: Table) -> np.ndarray:
        """Return the prediction for each row of a table that has the model's columns."""
        return self.learner.predict(self.encode(table)[0])

    @property
    def task(self) -> str:
        return self.learner.card.task

    def differences(self, table: Table) -> list[str]:
        """Return a sentence for each way in which a table is not the one that the model was certified on."""
        wanted = (*self.columns, self.target)
        lacking = [column.name for column in wanted if column.name not in table.columns]
        if lacking:
            return [f"The column {name!r} is not there." for name in lacking]
        rows = int(self.digests["rows"])
        if table.n_rows != rows:
            return [f"The table has {table.n_rows} rows; the certificate is about {rows}."]
        return [
            f"The column {column.name!r} has other values than the certificate is about."
            for column in wanted
            if digest(table.column(column.name)) != self.digests[f"column {column.name}"]
        ]


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


def digest(column: Column) -> str:
    """Return SHA-256 of a column's values: doubles, or the text of each level."""
    hashed = hashlib.sha256(b"numbers" if column.type.kind == "numeric" else b"text")
    if column.type.kind == "numeric":
        hashed.update(np.where(column.missing, np.nan, column.data + 0.0).astype("<f8").tobytes())
    else:
        for value in column.values():
            encoded = b"-" if value is None else value.encode()
            hashed.update(b"%d:" % (-1 if value is None else len(encoded)) + encoded)
    return hashed.hexdigest()
