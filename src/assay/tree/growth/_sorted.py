"""Trees on columns that are sorted once, dense or sparse; the compiled part is `_sorted_loops`."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from assay.scan import thread_map
from assay.tree._nodes import Nodes, nodes_of
from assay.tree.growth._exact import WIDE, Columns, grown_in_parts
from assay.tree.growth._records import GINI, SQUARED, Limits, target_of

if TYPE_CHECKING:
    from assay.tree.growth._sorted_loops import Entries

_MOST = 2**25  # entries of dense rows that are kept sorted, at 16 bytes for each tree that is being grown
_SHARE = 4  # part of the columns from which it pays that all of them are kept sorted
_FEW = 256  # values of a column that are counted rather than sorted
_LEVEL, _ROW = np.uint64(32), np.uint64(0xFFFFFFFF)  # of a key
_WORTH = 40_000  # entries from which that pays
_EXACT = 2**26  # sums of whole numbers up to here have exact squares


class Column(NamedTuple):
    """A column of complete values, sorted."""

    keys: np.ndarray  # (entries,) uint64, ascending: place of the value among `values` times 2^32, plus the row
    values: np.ndarray  # distinct, ascending
    block: int  # place of the value of the rows that have no entry; -1 if every row has one


def sorts(data: Any, limits: Limits, criterion: str) -> bool:
    """Tell whether the columns are sorted once for a tree on complete numeric columns, without monotone ones: if
    entries are not too many and it pays, because the rows are sparse or a node tries all columns, or, of several
    outputs, many. Thresholds that are drawn need no order."""
    n, d = data.rows.n_rows, data.rows.n_features
    if limits.random or criterion == "absolute_error":
        return False
    drawn = d if data.y.ndim == 1 else d // _SHARE
    return data.sparse is not None or (limits.max_features >= drawn and n * d <= _MOST)


def sort_columns(data: Any, n_jobs: int | None, order: np.ndarray | None = None) -> list[Column]:
    """Return the sorted columns, in this order if one is given; of sparse rows, zeros have no entries."""
    from assay.tree.growth._order import sort_column
    from assay.tree.growth._sorted_loops import write_keys

    n, d = data.rows.n_rows, data.rows.n_features
    sparse = data.sparse is not None
    X = data.by_column if sparse else data.X

    def column(f: int) -> Column:
        at = f if order is None else int(order[f])
        own = slice(X.indptr[at], X.indptr[at + 1]) if sparse else slice(0, n)
        x = np.ascontiguousarray(X.data[own] if sparse else X[:, at], dtype=np.float64)
        if not len(x):
            return Column(np.empty(0, dtype=np.uint64), np.zeros(1), 0)
        places, keys, values = np.empty(len(x), np.int32), np.empty(len(x), np.uint64), np.empty(len(x))
        sort_column(x, places)
        values = values[: write_keys(places, x, keys, values)].copy()
        return _of_rows(keys, values, X.indices[own], n) if sparse else Column(keys, values, -1)

    return thread_map(column, range(d), n_jobs=n_jobs)


def _of_rows(keys: np.ndarray, values: np.ndarray, rows: np.ndarray, n: int) -> Column:
    """Return a sparse column, from entries numbered by their places in it, rows of these, and the other values."""
    level, own = keys >> _LEVEL, rows[(keys & _ROW).astype(np.intp)].astype(np.uint64)
    if len(keys) == n:
        return Column((level << _LEVEL) | own, values, -1)
    zero = int(np.searchsorted(values, 0.0))
    level += level >= zero
    return Column((level << _LEVEL) | own, np.insert(values, zero, 0.0), zero)


def _without_block(column: Column) -> Column:
    """Return the column without the entries of a value that more than half of the rows have: that of the middle."""
    if column.block >= 0:
        return column
    level = column.keys >> _LEVEL
    common = level[len(level) // 2]
    first, last = np.searchsorted(level, [common, common + np.uint64(1)])
    if 2 * (last - first) <= len(level):
        return column
    return Column(np.delete(column.keys, np.s_[first:last]), column.values, int(common))


def counted_instead(columns: list[Column], n: int, outputs: int, n_classes: int) -> Columns | None:
    """Return the codes of the columns where counting them is faster, None where scanning what is sorted is: if most
    columns have many values, rows are sparse, outputs several, or classes too many to lay out their sums."""
    few = sum(len(column.values) <= _FEW for column in columns)
    sparse = any(column.block >= 0 for column in columns)
    if sparse or outputs > 1 or 2 * few <= len(columns) or n * n_classes > WIDE:
        return None
    sizes = np.array([len(column.values) for column in columns])
    codes = np.empty((len(columns), n), dtype=np.uint8 if sizes.max() <= _FEW else np.int32)
    for own, column in zip(codes, columns):
        own[(column.keys & _ROW).astype(np.intp)] = (column.keys >> _LEVEL).astype(codes.dtype)
    starts = np.append(0, np.cumsum(sizes))[:-1]
    return Columns(
        codes, sizes, np.concatenate([column.values for column in columns]), starts, np.full(len(columns), -1)
    )


def as_entries(columns: list[Column], whole: bool) -> "Entries":
    """Return the columns as one; if sums are `whole` numbers, and so exact, without values that most rows have."""
    from assay.tree.growth._sorted_loops import Entries

    columns = [_without_block(column) for column in columns] if whole else columns
    first = np.append(0, np.cumsum([len(column.values) for column in columns])).astype(np.int64)
    block = np.array([-1 if own.block < 0 else first[f] + own.block for f, own in enumerate(columns)], dtype=np.int64)
    keys = [column.keys + (np.uint64(first[f]) << _LEVEL) for f, column in enumerate(columns)]
    column_of = np.repeat(np.arange(len(columns), dtype=np.int32), np.diff(first))
    return Entries(np.concatenate(keys), np.concatenate([own.values for own in columns]), column_of, first, block)


def grow_sorted(
    entries: "Entries",
    y: np.ndarray,
    weight: np.ndarray | None,
    n_classes: np.ndarray,
    criterion: str,
    limits: Limits,
    seed: int = 0,
    in_parts: bool = False,
    n_jobs: int | None = None,
) -> Nodes:
    """Return one tree on the rows of positive weight; `in_parts` has the subtrees of a large one grown on threads, the
    same ones for any number of them.

    y : (rows,) or (rows, outputs) numbers of classes, or numbers
    n_classes : (outputs,) classes of each output; empty for numbers
    """
    from assay.tree.growth import _sorted_loops as loops

    task = target_of(y, weight, n_classes, criterion)
    learned, d = _learned(task, loops), len(entries.block)
    keys, rows = entries.keys.copy(), np.flatnonzero(task.weight)
    if len(rows) < len(y):
        keys = keys[: loops.entries_of(entries.keys, task.weight, keys)]

    def call(part: tuple[np.ndarray, np.ndarray], limits: Limits) -> tuple:
        return loops.grow(entries, part[0], learned, task, part[1], limits.record(d), np.uint64(seed))

    def tree(grown: tuple) -> Nodes:
        return nodes_of(grown[0], grown[1], criterion)

    def part(top: tuple, i: int) -> tuple[np.ndarray, np.ndarray]:
        nodes, reach = top[0], top[3]
        return keys[reach[i, 0] : reach[i, 1]], rows[nodes["start"][i] : nodes["stop"][i]]

    if not in_parts or limits.max_leaves or limits.max_features < d or len(keys) < _WORTH:
        return tree(call((keys, rows), limits))
    return grown_in_parts(call, tree, part, (keys, rows), limits, n_jobs)


def _learned(task: Any, loops: Any) -> Any:
    """Return what each row adds to the sums of its node."""
    outputs, width = task.y.shape[1], int(task.first[-1])
    if not task.classes:
        added = np.column_stack([task.weight, task.y * task.weight[:, None]])
        kind = loops.SQUARES if task.criterion == SQUARED else loops.OTHER
        return loops.Learned(added, np.empty((0, outputs), dtype=np.int32), task.weight, kind)
    place = (task.y + task.first[:-1]).astype(np.int32)
    kind = loops.COUNTS if is_whole(task.weight) and task.criterion == GINI else loops.OTHER
    return loops.Learned(np.empty((0, width)), place, task.weight, kind)


def is_whole(weight: np.ndarray | None) -> bool:
    """Tell whether weights are whole numbers, whose sums and their squares are exact."""
    return weight is None or (weight.sum() <= _EXACT and bool(np.all(weight == np.floor(weight))))
