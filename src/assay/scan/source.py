"""`Rows`, the rows that a learner sums over, and `rows`, which makes them of whatever the user holds.

Adding the partial sums of blocks in one fixed order, whoever brings them and when.

The blocks are the leaves of a binary tree: 0 + 1, 2 + 3, ..., then (0 + 1) + (2 + 3), ... A sum is formed as soon as
both halves are there. So threads never wait for each other, about log2(blocks) partial sums exist at a time, totals
of neighbouring stretches merge into exactly what one total would hold, and rounding grows with the logarithm of the
number of blocks (pairwise summation: Higham, Accuracy and Stability of Numerical Algorithms, 4.2).
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from os import PathLike, fspath
from typing import Any

import numpy as np

from assay.data.blocks import Block

Statistic = Callable[..., Any]


class Rows(ABC):
    """Rows of a table, cut into fixed blocks (`data.blocks`), wherever they are kept.

    Attributes
    ----------
    n_rows, n_features : int
    feature_names : list of str, or None when the source has no names
    n_jobs : int or None
        Threads used; None means every core this process may use. It changes the time, never a bit of a sum.
    """

    n_rows: int
    n_features: int
    feature_names: list[str] | None = None
    n_jobs: int | None = None
    has_y: bool
    has_weight: bool

    @abstractmethod
    def sum(self, statistic: Statistic, *parameters: Any) -> Any:
        """Return the sum over all blocks of statistic(block, *parameters).

        The statistic returns an array, a number, or a tuple (best a NamedTuple) of such, with the same shapes
        for each block. Partial sums are added in one fixed order, so the threads used change
        no bit. While it runs, BLAS keeps to one thread. The statistic must not write to the block.

        Parameters
        ----------
        statistic : callable
            Called with a block and the parameters; its results can be added.
        """

    @abstractmethod
    def map(self, function: Callable[..., Any], *parameters: Any) -> list[Any]:
        """Return function(block, *parameters) of each block, in order. The results are all kept in memory.

        Parameters
        ----------
        function : callable
            Called with a block, and with the parameters.
        """

    def collect(self, consume: Callable[[int, Any], None], function: Callable[..., Any], *parameters: Any) -> None:
        """Call consume(first row, function(block, *parameters)) for each block, in any order, on threads of this
        process; the function itself runs where the rows are. Only a few results exist at a time.

        Parameters
        ----------
        consume : callable
            Called with the number of the first row and the result of a block.
        function : callable
            Called with a block, and with the parameters.
        """
        for block in self.blocks():
            consume(block.start, function(block, *parameters))

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Yield the blocks in order, on the caller's thread; one pass."""

    def take(self, numbers: np.ndarray) -> np.ndarray:
        """Return the rows of X with the given numbers, which ascend; one pass.

        Parameters
        ----------
        numbers : ndarray
            Numbers of the rows, ascending.
        """
        result = np.empty((len(numbers), self.n_features))

        def place(start: int, part: tuple[int, np.ndarray]) -> None:
            result[part[0] : part[0] + len(part[1])] = part[1]

        self.collect(place, _chosen, np.asarray(numbers))
        return result

    def sample(self, size: int) -> "Rows":
        """Return about `size` of the rows, in memory: for a first guess, never for a result.

        They are taken at even distances, rows 0, s, 2 s, ..., the same from every source; one pass.

        Parameters
        ----------
        size : int
            Number of rows, about.
        """
        from assay.scan.memory import MemoryRows

        parts = self.map(_every, max(1, self.n_rows // size))
        X, y, weight = (None if part[0] is None else np.concatenate(part) for part in zip(*parts))
        return MemoryRows(X, y, weight, n_jobs=self.n_jobs)

    @cached_property
    def largest_entries(self) -> np.ndarray:
        """The largest absolute value in each column of X; one pass, once."""
        return np.max(self.map(_largest), axis=0)

    def labels(self) -> np.ndarray:
        """Return the distinct values of y, sorted; one pass."""
        return np.unique(np.concatenate(self.map(_distinct)))

    @property
    def on_workers(self) -> bool:
        """Whether the rows lie on the workers of a cluster that this process is connected to."""
        return False

    def pinned(self, call: tuple, make: Callable[..., Any], *arguments: Any) -> Any:
        """Return objects that stay on the workers, `make` of what `call`, (function, *parameters), gives of each
        partition as one block (see `scan.dask`); for rows that are `on_workers`.

        Parameters
        ----------
        call : tuple
            Function and parameters.
        make : callable
            Makes the object that stays.
        *arguments : object
            Further arguments of `make`.
        """
        raise NotImplementedError

    def kept(self) -> "Rows":
        """Return the same rows for many passes: on a cluster, workers keep them in memory if they fit."""
        if not self.on_workers:
            return self
        from assay.scan.memory import kept

        return kept(self)

    def encoded(self, classes: np.ndarray, *, others: bool = False) -> "Rows":
        """Return the same rows with y replaced by its position in `classes` (int64); with `others`, -1 for labels that
        are none of them, which are refused otherwise.

        Parameters
        ----------
        others : bool, default=False
            Models that were certified on the same rows.
        """
        return EncodedRows(self, np.asarray(classes), others)


class EncodedRows(Rows):
    """Rows whose y is looked up in a list of classes, block by block, on the way to the statistic."""

    def __init__(self, rows: Rows, classes: np.ndarray, others: bool):
        self.rows, self.classes, self.others = rows, classes, others
        self.n_rows, self.n_features, self.feature_names = rows.n_rows, rows.n_features, rows.feature_names
        self.n_jobs, self.has_y, self.has_weight = rows.n_jobs, rows.has_y, rows.has_weight

    def sum(self, statistic: Statistic, *parameters: Any) -> Any:
        return self.rows.sum(_on_encoded, self.classes, self.others, statistic, *parameters)

    def map(self, function: Callable[..., Any], *parameters: Any) -> list[Any]:
        return self.rows.map(_on_encoded, self.classes, self.others, function, *parameters)

    def collect(self, consume: Callable[[int, Any], None], function: Callable[..., Any], *parameters: Any) -> None:
        self.rows.collect(consume, _on_encoded, self.classes, self.others, function, *parameters)

    @property
    def on_workers(self) -> bool:
        return self.rows.on_workers

    def pinned(self, call: tuple, make: Callable[..., Any], *arguments: Any) -> Any:
        return self.rows.pinned((_on_encoded, self.classes, self.others, *call), make, *arguments)

    def blocks(self) -> Iterator[Block]:
        for block in self.rows.blocks():
            yield block._replace(y=class_codes(block, self.classes, self.others))


def _on_encoded(block: Block, classes: np.ndarray, others: bool, statistic: Statistic, *parameters: Any) -> Any:
    return statistic(block._replace(y=class_codes(block, classes, others)), *parameters)


def _every(block: Block, step: int) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Return X, y and weights of the rows whose number is a multiple of `step`."""
    chosen = slice(-block.start % step, None, step)
    y, weight = (None if part is None else part[chosen].copy() for part in (block.y, block.weight))
    return block.X[chosen].copy(), y, weight


def _chosen(block: Block, numbers: np.ndarray) -> tuple[int, np.ndarray]:
    """Return the place of the first chosen row of the block among all chosen ones, and those rows."""
    first, end = np.searchsorted(numbers, (block.start, block.start + len(block.X)))
    return int(first), block.X[numbers[first:end] - block.start]


def _largest(block: Block) -> np.ndarray:
    """Return max_i |x_ij| of each column; rows are laid side by side, because long vectors reduce faster."""
    n, d = block.X.shape
    together = 64 if n % 64 == 0 and d < 512 else 1
    wide = block.X.reshape(n // together, together * d)
    return np.maximum(wide.max(axis=0), -wide.min(axis=0)).reshape(together, d).max(axis=0)


def _distinct(block: Block) -> np.ndarray:
    y = block.y
    if y is None:
        raise ValueError("rows: labels() needs y, and these rows have none.")
    if y.ndim != 1:
        raise ValueError(f"rows: labels() needs y with one column; got shape (rows, {y.shape[1]}).")
    return np.unique(y)


def class_codes(block: Block, classes: np.ndarray, others: bool = False) -> np.ndarray:
    """Return the position in `classes` of each label of the block (int64); the first unknown one is refused, or, with
    `others`, each of them has the position -1."""
    labels = np.asarray(block.y)
    order = np.argsort(classes)
    codes = order[np.minimum(np.searchsorted(classes, labels, sorter=order), len(classes) - 1)]
    unknown = classes[codes] != labels
    if others:
        codes = np.where(unknown, -1, codes)
    elif unknown.any():
        at = int(np.argmax(unknown))
        known = ", ".join(repr(c.item() if isinstance(c, np.generic) else c) for c in classes[:10])
        more = ", ..." if len(classes) > 10 else ""
        label = labels[at].item() if isinstance(labels[at], np.generic) else labels[at]
        raise ValueError(
            f"rows: the label {label!r} in row {block.start + at} is not among the classes {known}{more}; "
            "correct the label, or learn from rows that contain it."
        )
    return codes.astype(np.int64, copy=False)


def rows(X: Any, y: Any = None, sample_weight: Any = None, *, n_jobs: int | None = None) -> Rows:
    """Return X (and y, and sample_weight) as rows to sum over.

    X is one of

    - an array, or anything NumPy can read as one, with y and sample_weight arrays beside it;
    - Parquet: a path, a folder, a pattern such as "folder/*.parquet", or a list of paths; y and sample_weight
      name columns. The files are streamed at each pass and may be larger than memory;
    - an Arrow table or data set; y and sample_weight name columns;
    - a Dask data frame with y and sample_weight naming columns, or a Dask array with Dask arrays beside it;
    - `Rows`, returned as they are.

    Parameters
    ----------
    X : array, path or collection
        Rows.
    y : array, name of a column or None
        Labels or targets.
    sample_weight : array, name of a column or None
        Weights of the rows.
    n_jobs : int or None
        Number of threads. The result does not depend on it.

    Returns
    -------
    Rows
        The rows.

    Examples
    --------
    >>> import numpy as np
    >>> table = rows(np.arange(12.0).reshape(6, 2))
    >>> table.sum(lambda block: block.X.sum(axis=0))
    array([30., 36.])
    """
    if isinstance(X, Rows):
        if y is not None or sample_weight is not None:
            raise ValueError("rows: X already holds its y and weights; pass y=None and sample_weight=None with it.")
        return X
    if hasattr(X, "__dask_graph__"):
        from assay.scan.dask import dask_rows

        return dask_rows(X, y, sample_weight, n_jobs=n_jobs)
    if _is_parquet(X):
        from assay.scan.parquet import parquet_rows

        return parquet_rows(X, y, sample_weight, n_jobs=n_jobs)
    from assay.scan.memory import MemoryRows

    return MemoryRows(X, y, sample_weight, n_jobs=n_jobs)


def connected() -> bool:
    """Tell whether this process is connected to a Dask cluster."""
    try:
        from distributed import get_client

        get_client()
    except (ImportError, ValueError):
        return False
    return True


def _is_parquet(X: Any) -> bool:
    """Tell whether X is for the Arrow reader: a path, a list of paths, an Arrow table or data set."""
    if isinstance(X, (str, PathLike)):
        return True
    if isinstance(X, (list, tuple)) and X:
        return all(isinstance(item, (str, PathLike)) and fspath(item) for item in X)
    return type(X).__module__.partition(".")[0] == "pyarrow"


Node = tuple[int, int]
"""Level and position: node (l, i) is the sum of blocks i 2^l to (i + 1) 2^l - 1."""


class Total:
    """A sum over blocks under construction; threads may add at the same time.

    >>> total = Total()
    >>> for number in (2, 0, 1):
    ...     total.add(number, 10.0**number)
    >>> total.value()
    111.0
    """

    def __init__(self) -> None:
        self._nodes: dict[Node, tuple[Any, bool]] = {}
        self._lock = threading.Lock()

    def add(self, number: int, partial: Any, *, level: int = 0) -> None:
        """Add the partial sum of a block, or of the node at the given level."""
        owned = False  # whether `partial` was made here, so that it may be written to
        while True:
            with self._lock:
                sibling = self._nodes.pop((level, number ^ 1), None)
                if sibling is None:
                    self._nodes[level, number] = partial, owned
                    return
            left, right = ((partial, owned), sibling) if number % 2 == 0 else (sibling, (partial, owned))
            partial, owned = added(left[0], right[0], in_place=left[1]), True
            level, number = level + 1, number // 2

    def nodes(self) -> dict[Node, Any]:
        """Return the sums that still miss their other half."""
        return {node: partial for node, (partial, _) in self._nodes.items()}

    def merge(self, nodes: dict[Node, Any]) -> None:
        """Add the nodes of a total over other blocks; they are not written to."""
        for (level, number), partial in nodes.items():
            self.add(number, partial, level=level)

    def value(self) -> Any:
        """Return the sum of what was added."""
        if not self._nodes:
            raise ValueError("rows: there are no rows to sum over; got 0 rows.")
        smallest, *larger = (self._nodes[node][0] for node in sorted(self._nodes))
        for partial in larger:
            smallest = added(partial, smallest, in_place=False)
        return smallest


def block_nodes(numbers: np.ndarray, sums: np.ndarray) -> dict[Node, Any]:
    """Return what `Total.nodes` gives after the sums (blocks, ...) of blocks with ascending numbers were added.

    >>> {node: float(total) for node, total in block_nodes(np.arange(3), np.array([1.0, 10.0, 100.0])).items()}
    {(0, 2): 100.0, (1, 0): 11.0}
    """
    nodes: dict[Node, Any] = {}
    level = 0
    while len(numbers):
        pair = np.zeros(len(numbers), dtype=bool)
        pair[:-1] = (numbers[:-1] % 2 == 0) & (numbers[1:] == numbers[:-1] + 1)
        left = np.flatnonzero(pair)
        pair[left + 1] = True
        nodes |= {(level, int(numbers[i])): sums[i] for i in np.flatnonzero(~pair)}
        numbers, sums, level = numbers[left] // 2, sums[left] + sums[left + 1], level + 1
    return nodes


def added(a: Any, b: Any, *, in_place: bool) -> Any:
    """Return a + b, member by member of tuples; with `in_place`, arrays of `a` may be overwritten."""
    if isinstance(a, tuple):
        sums = [added(x, y, in_place=in_place) for x, y in zip(a, b, strict=True)]
        return type(a)(*sums) if hasattr(a, "_fields") else tuple(sums)
    if not isinstance(a, np.ndarray):
        return a + b
    if a.shape != np.shape(b):
        raise ValueError(f"rows: a statistic must have the same shape for each block; got {a.shape} and {np.shape(b)}.")
    if in_place and a.dtype == np.result_type(a, b):
        a += b
        return a
    return a + b
