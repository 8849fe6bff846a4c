"""A model that reads tables: an encoder and a learner, and the columns they know."""

import hashlib
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from assay.base import Learner
from assay.data import Column, ColumnType, Table

MOST_LEVELS = 100  # columns that a nominal column may become; rarer levels share one


class TableModel:
    """A fitted encoder and learner that read a table by column names; what `assay learn` saves."""

    def __init__(
        self,
        columns: tuple[ColumnType, ...],
        target: ColumnType,
        encoder: ColumnTransformer,
        learner: Learner,
        digests: dict[str, str],
    ) -> None:
        self.columns, self.target, self.encoder, self.learner, self.digests = (
            columns,
            target,
            encoder,
            learner,
            digests,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
        plain = isinstance(self.columns, tuple) and all(
            isinstance(one, ColumnType) for one in (*self.columns, self.target)
        )
        if not (plain and isinstance(self.encoder, ColumnTransformer) and isinstance(self.learner, Learner)):
            raise ValueError("a table model needs columns, a target, an encoder and a learner.")

    def encode(self, table: Table) -> tuple[np.ndarray, dict[str, list[str]]]:
        """Return the encoded rows, and the values of nominal columns that the model does not know."""
        fitting, unknown = table.require_same_columns(self.columns)
        return np.ascontiguousarray(self.encoder.transform(fitting.matrix())), unknown

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

    def feature_names(self) -> list[str]:
        """Return the name of each encoded column, as a person would say it."""
        numbers, nominal = self.encoder.transformers_[0], self.encoder.transformers_[1]
        names = []
        if len(numbers[2]):
            names = [self.columns[j].name for j in numbers[2]]
            indicator = numbers[1][0].indicator_
            names += [f"{names[j]} missing" for j in indicator.features_]
        if len(nominal[2]):
            for j, codes, rare in zip(
                nominal[2], nominal[1].categories_, nominal[1].infrequent_categories_, strict=True
            ):
                shared = set() if rare is None else set(rare.tolist())
                names += [_level_name(self.columns[j], code) for code in codes if code not in shared]
                names += [f"{self.columns[j].name} = other"] if shared else []
        return names


def encoder_of(features: Table) -> ColumnTransformer:
    """Return the encoder: numbers imputed, marked where missing and scaled; nominal columns one-hot."""
    numbers = make_pipeline(SimpleImputer(add_indicator=True, keep_empty_features=True), StandardScaler())
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False, max_categories=MOST_LEVELS)
    return ColumnTransformer(
        [
            ("numbers", numbers, features.positions("numeric", "ordered")),
            ("nominal", one_hot, features.positions("nominal")),
        ],
        sparse_threshold=0.0,
    )


def target_values(target: Column, task: str) -> np.ndarray:
    if task == "regress":
        if target.type.kind != "numeric":
            raise ValueError(f"the target {target.name!r} holds text, and regression needs numbers.")
        return target.data
    if target.type.kind != "numeric":
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


def _level_name(column: ColumnType, code: float) -> str:
    return f"{column.name} = {'missing' if np.isnan(code) else column.levels[int(code)]}"
