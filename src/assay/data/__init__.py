"""Columns with types, tables, blocks of rows, and what reads them from CSV, Parquet, Arrow, pandas, polars or arrays.

Everything is loaded when it is first used: the checker of certificates imports `data.blocks` and nothing else of it,
and Arrow is there only for who reads.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.data.columns import Column as Column
    from assay.data.columns import ColumnType as ColumnType
    from assay.data.columns import Schema as Schema
    from assay.data.encoding import Encoding as Encoding
    from assay.data.raw import RawTable as RawTable
    from assay.data.readers import chunks as chunks
    from assay.data.readers import names as names
    from assay.data.readers import raw_chunks as raw_chunks
    from assay.data.readers import raw_table as raw_table
    from assay.data.readers import read as read
    from assay.data.table import Table as Table

_HOMES = {
    "Column": "columns",
    "ColumnType": "columns",
    "Encoding": "encoding",
    "RawTable": "raw",
    "Schema": "columns",
    "Table": "table",
    "chunks": "readers",
    "names": "readers",
    "raw_chunks": "readers",
    "raw_table": "readers",
    "read": "readers",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'assay.data' has no attribute {name!r}")
    return getattr(import_module(f"assay.data.{_HOMES[name]}"), name)
