"""Digests of cells and rows: 64 bits that depend on what a cell says, and on neither file format, row order nor column
order.

A number is its double; a level or a text that reads as a number is that number, so that a column of codes is the same
whether it was read as numbers or as names. Digests are mixed with the finaliser of splitmix64 (Steele, Lea and Flood
2014): good enough to tell rows apart and to order them as if by chance, and no defence against someone who makes rows
whose digests agree.
"""

import hashlib

import numpy as np
import pyarrow as pa
from pyarrow import types

from assay.data import number_formats
from assay.data.kinds import as_doubles, as_text, is_number
from assay.data.raw import RawTable

_GAP = np.uint64(0x9E3779B97F4A7C15)


def of_cells(table: RawTable, name: str) -> np.ndarray:
    """Return a digest of each cell of a column.

    >>> from assay.data import raw_table
    >>> table = raw_table({"codes": ["7", "x"], "numbers": [7.0, 8.0]})
    >>> (of_cells(table, "codes") == of_cells(table, "numbers")).tolist()
    [True, False]
    """
    table.require(name)
    values = table.arrow.column(name)
    if is_number(values.type):
        numbers = as_doubles(values)
    elif types.is_temporal(values.type):
        numbers = table.cells(name, "date").astype(np.int64).astype(np.float64)
        numbers[numbers == np.iinfo(np.int64).min] = np.nan
    else:
        values = as_text(values)
        plain = number_formats.plain_numbers(values)
        if plain is None:
            return _of_words(values)
        numbers = plain
    return np.where(np.isnan(numbers), _GAP, _of_numbers(numbers))


def _of_words(values: pa.ChunkedArray) -> np.ndarray:
    cells = number_formats.cells(values)
    known = np.array([_of_word(word) for word in cells.texts.to_pylist()] + [0], dtype=np.uint64)
    return np.where(cells.codes < 0, _GAP, known[cells.codes])


def of_rows(table: RawTable) -> np.ndarray:
    """Return a digest of each row: of its cells with the names of their columns."""
    result = np.zeros(table.n_rows, dtype=np.uint64)
    for name in table.names:
        result += mixed(of_cells(table, name) ^ _of_text(name))
    return mixed(result)


def order(table: RawTable) -> np.ndarray:
    """Return the rows in an order that is theirs: as if drawn, and the same however the table is sorted.

    It is that of digests of a row, its number among the rows that are equal to it, so that these do not stand together,
    and all rows. Rows whose cells are equal are equal in everything that is computed from them.
    """
    rows = of_rows(table)
    drawn = mixed(mixed(rows ^ rows.sum(dtype=np.uint64)) + _number_among_equals(rows))
    return np.argsort(drawn, kind="stable")


def _number_among_equals(values: np.ndarray) -> np.ndarray:
    together = np.argsort(values, kind="stable")
    ordered = values[together]
    begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(ordered) else ordered
    sizes = np.diff(np.append(begins, len(ordered)))
    result = np.empty(len(values), dtype=np.uint64)
    result[together] = np.arange(len(ordered), dtype=np.uint64) - np.repeat(begins, sizes).astype(np.uint64)
    return result


def mixed(values: np.ndarray) -> np.ndarray:
    """Return the outputs of splitmix64 for these states."""
    z = values + _GAP
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _of_numbers(values: np.ndarray) -> np.ndarray:
    plain = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # -0 is 0
    return mixed(plain.view(np.uint64))


def _of_word(word: str) -> int:
    try:
        return int(_of_numbers(np.array([float(word)]))[0])
    except ValueError:
        return int(_of_text(word))


def _of_text(word: str) -> np.uint64:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))
