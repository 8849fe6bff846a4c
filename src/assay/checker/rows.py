"""The rows as the checker reads them: block by block, fingerprinted in every pass, encoded if they are a table's."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.checker.identity import DataDigest, canonical, check_integers, column_range, near_keys, texts_of
from assay.checker.predictors import Predictor
from assay.checker.record import MALFORMED_INPUT_ERRORS, Refused, Rejected, array
from assay.checker.rule import View
from assay.claims.claim import Certificate, DataReference
from assay.data.blocks import Block, blocks


@dataclass(frozen=True)
class Reader:
    """How rows are read: for which model, with a target or not, and encoded first if they are raw rows of a table."""

    model: Predictor
    has_target: bool
    columns: int
    encode: Callable[[np.ndarray], np.ndarray] | None = None


class DataSet:
    """One data set while it is read: its fingerprint in this pass, and what went wrong with it."""

    def __init__(self, reference: DataReference, reader: Reader, keep_keys: bool, others: bool = False):
        self.others = others  # whether rows may be of classes that the model does not know
        self.reference, self.reader, self.keep_keys = reference, reader, keep_keys
        self.failure: Exception | None = None
        self.keys: list[np.ndarray] = []  # one number per row, equal for nearly equal rows; kept to compare two sets
        self.passes = 0

    def open(self) -> None:
        """Begin a pass over the rows."""
        self.passes += 1
        reader = self.reader
        self.digest = DataDigest(self.reference.labels, reader.model.classes, reader.has_target, self.others)

    def view(self, block: Block) -> View | None:
        """Return the block as the rules see it; None once something is wrong with the set."""
        try:
            return self._view(block) if self.failure is None else None
        except (Rejected, Refused, *MALFORMED_INPUT_ERRORS) as error:
            self.failure = error
            return None

    def _view(self, block: Block) -> View:
        columns, rows = self.reader.columns, len(block.X)
        if block.X.ndim != 2 or block.X.shape[1] != columns or self.reference.columns != columns:
            stated = self.reference.columns
            raise Rejected(f"X has shape {block.X.shape}; the model reads {columns} columns, the certificate {stated}")
        weight = None if block.weight is None else array(block.weight, "sample_weight", (rows,))
        if weight is not None and np.any(weight < 0):
            raise Rejected("sample_weight has negative entries")
        codes, targets = self.digest.read_targets(block.y)
        raw = canonical(block.X)
        self.digest.feed(raw, targets, weight)
        if self.passes == 1 and self.keep_keys:
            self.keys.append(near_keys(raw))
        X = raw if self.reader.encode is None else self.reader.encode(raw)
        weight = np.ones(rows) if weight is None else weight
        whole = np.nan_to_num(X, posinf=np.inf, neginf=-np.inf) if self.reader.model.reads_gaps else X
        return View(X, codes, targets, weight, column_range(whole), block.start, self.reader.model, raw)

    def close(self, name: str) -> None:
        """Compare the rows of this pass with the ones the certificate is about."""
        given, stated = self.digest.rows, self.reference.rows
        if self.failure is None and given != stated:
            self.failure = other_rows(name, stated, given)
        if self.failure is None and self.digest.hexdigest() != self.reference.digest:
            self.failure = Rejected(
                f"these are not the {name} rows the certificate is about: their fingerprint differs"
            )


def other_rows(name: str, stated: int, given: int) -> Rejected:
    return Rejected(f"the certificate is about {stated} {name} rows; {given} are given")


class Table:
    """Rows in the order given, and which of them belong to which set (None: all)."""

    rows = 0  # seen in the last pass

    def __init__(self, X: Any, y: Any, weight: Any, sets: Mapping[str, np.ndarray | None]):
        self.X, self.sets, self.stored = X, sets, hasattr(X, "blocks")
        if self.stored:
            return
        self.X = X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
        if X.dtype.kind not in "iufb" or X.ndim != 2:
            raise Rejected(f"X must be a two-dimensional array of numbers; it is {X.dtype} of shape {X.shape}")
        self.y, self.weight = (None if part is None else _column(part) for part in (y, weight))
        for name, part in (("X", X), ("sample_weight", self.weight)):
            check_integers(part, name)
        for name, part in (("y", self.y), ("sample_weight", self.weight)):
            if part is not None and part.shape[:1] != X.shape[:1]:
                raise Rejected(f"{name} has shape {part.shape}, X has {X.shape[0]} rows")

    def size(self) -> int:
        """Return how many rows there are; a source that does not tell is read to count them."""
        if not self.stored:
            return self.X.shape[0]
        told = getattr(self.X, "n_rows", None)
        return sum(len(block.X) for block in self.X.blocks()) if told is None else int(told)

    def cut(self, most: int) -> Iterator[tuple[str, Block]]:
        """Yield the blocks of each set, of at most so many rows; `start` counts the rows of that set."""
        for block in self.X.blocks() if self.stored else blocks(self.X, self.y, self.weight):
            if self.stored:  # its blocks may all be one array, filled anew; rules and models keep what they saw
                block = block._replace(X=np.array(block.X))
            self.rows = block.start + len(block.X)
            for name, rows in self.sets.items():
                part = block if rows is None else _select(block, rows)
                for at in range(0, len(part.X), most):
                    here = slice(at, at + most)
                    y, weight = (None if item is None else item[here] for item in part[1:3])
                    yield name, Block(part.X[here], y, weight, part.start + at)


def _column(values: Any) -> np.ndarray:
    """Return targets or weights as an array; a list of text as objects, since arrays of text lose a NUL at the end."""
    array = np.asarray(values)
    return array if array.dtype.kind != "U" or isinstance(values, np.ndarray) else np.asarray(values, dtype=object)


def _select(block: Block, rows: np.ndarray) -> Block:
    low, high = np.searchsorted(rows, [block.start, block.start + len(block.X)])
    inside: Any = rows[low:high] - block.start
    if high > low and inside[-1] - inside[0] == high - low - 1:
        inside = slice(int(inside[0]), int(inside[-1]) + 1)
    X, y, weight = (None if part is None else np.asarray(part)[inside] for part in block[:3])
    return Block(np.asarray(X), y, weight, int(low))


def tables_of(certificate: Certificate, X: Any, y: Any, weight: Any, holdout: Any) -> list[Table]:
    if certificate.time is not None or certificate.looks is not None or "seed" in (certificate.split or ()):
        raise Rejected("it says how the hold-out rows were drawn, which the cells of a table alone can show")
    if certificate.split is not None:
        if holdout is not None:
            raise Rejected("the certificate splits one table; pass that table as X, y and no holdout")
        return [] if X is None else [Table(X, y, weight, _split(certificate, certificate.split))]
    tables = [] if X is None or "train" not in certificate.data else [Table(X, y, weight, {"train": None})]
    if holdout is not None and "holdout" in certificate.data:
        if hasattr(holdout, "blocks"):
            holdout = (holdout, None)
        if not isinstance(holdout, (tuple, list)) or len(holdout) != 2:
            raise Rejected("holdout must be (X, y)")
        tables.append(Table(holdout[0], holdout[1], None, {"holdout": None}))
    return tables


def columns_of(certificate: Certificate, columns: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the values on the hold-out rows of columns beside X, as text."""
    results: dict[str, list[str]] = {}
    if "holdout" not in certificate.data:
        return results
    split, rows = certificate.split, certificate.data["holdout"].rows
    for name, values in columns.items():
        array_of = np.asarray(values, dtype=object)
        if split is not None:
            if array_of.shape != (sum(item.rows for item in certificate.data.values()),):
                raise Rejected(f"the column {name[:40]!r} must have a value for each row of the table")
            array_of = array_of[np.sort(np.asarray(split["holdout"]))]
        if array_of.shape != (rows,):
            raise Rejected(f"the column {name[:40]!r} has {array_of.size} values for {rows} hold-out rows")
        results[name] = texts_of(array_of)
    return results


def _split(certificate: Certificate, split: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the sorted row numbers of each set: disjoint, without repeats, as many as the sets have rows."""
    if not {"train", "holdout"} == set(split) == set(certificate.data):
        raise Rejected("a split names the rows of train and holdout")
    sizes = {name: (certificate.data[name].rows,) for name in ("train", "holdout")}
    rows = {name: np.sort(array(split[name], f"split of {name}", size, integer=True)) for name, size in sizes.items()}
    every = np.sort(np.concatenate(list(rows.values())))
    if every[0] < 0 or np.any(every[1:] == every[:-1]):
        raise Rejected("the split names a row twice, or has negative row numbers: each row is in one set")
    return rows
