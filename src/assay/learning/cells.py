"""The cells of a model's table as the checker asks for them: a column, or a part of the rows, at a time."""

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.checker.tables import Used
from assay.claims.claim import Certificate
from assay.data import Column, RawTable, names, raw_chunks, raw_table
from assay.data.readers import is_streamed, rows_at_once

if TYPE_CHECKING:
    from assay.learning.model import TableModel


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
