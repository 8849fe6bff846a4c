"""Arrays in memory: blocks on threads.

The caller's own thread works too, so n_jobs threads cost n_jobs - 1 tasks of a pool that is made once. Each
thread takes the next block that nobody has taken and adds its partial sum to the total.

Rows that workers of a cluster keep in memory for many passes: a pass is one message to each worker, and sums come
back. A worker that dies is made again from the graph of its partitions (`scan.dask`).
"""

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import cloudpickle
import numpy as np

from assay.data.blocks import Block, block, blocks, rows_per_block
from assay.scan.source import Node, Rows, Statistic, Total, class_codes

T = TypeVar("T")
R = TypeVar("R")

_MAX_THREADS = 256
_STRETCH = 64  # blocks in one compiled call of a thread that works alone; an interrupt waits for it


class MemoryRows(Rows):
    """Rows of arrays."""

    def __init__(self, X: Any, y: Any = None, weight: Any = None, *, n_jobs: int | None = None):
        names = getattr(X, "columns", None)
        self.feature_names = None if names is None else [str(name) for name in names]
        self.X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
        if self.X.ndim != 2 or self.X.dtype.kind not in "fiub":
            raise ValueError(
                "rows: X must be a table of numbers with rows and columns (two dimensions); "
                f"got shape {self.X.shape} of type {self.X.dtype}."
            )
        self.n_rows, self.n_features = self.X.shape
        self.y = _beside(y, "y", self.n_rows)
        self.weight = _beside(weight, "sample_weight", self.n_rows)
        self.has_y, self.has_weight = y is not None, weight is not None
        self.n_jobs = n_jobs
        self._step = rows_per_block(self.n_features)

    def _starts(self) -> range:
        return range(0, self.n_rows, self._step)

    def _block(self, start: int) -> Block:
        return block(self.X, self.y, self.weight, start, start + self._step)

    def sum(self, statistic: Statistic, *parameters: Any) -> Any:
        total, threads = Total(), 1 if in_worker_thread() else thread_count(self.n_jobs)
        pieces = self._pieces(statistic, threads)

        def work(i: int) -> None:
            level, number = pieces[i]
            first = (number << level) * self._step
            if not level:
                total.add(number, on_block(statistic, self._block(first), parameters))
                return
            part = block(self.X, self.y, self.weight, first, first + (self._step << level))
            stretch = statistic.stretch  # type: ignore[attr-defined]
            total.add(number, on_block(stretch, part, (self._step, *parameters)), level=level)

        with one_blas_thread():
            spread(work, len(pieces), threads)
        return total.value()

    def _pieces(self, statistic: Any, threads: int) -> Sequence[tuple[int, int]]:
        """Return the nodes of the sum (level, number) that are worked out at once: blocks, or stretches of them."""
        count = len(self._starts())
        copied = not isinstance(self.X, np.ndarray) or self.X.dtype != np.float64 or not self.X.flags.c_contiguous
        if copied or not hasattr(statistic, "stretch"):  # of blocks that are copied, one at a time
            return [(0, i) for i in range(count)]
        most = _STRETCH if threads == 1 else max(1, count // (8 * threads))
        return stretches(self.n_rows // self._step, count, most)

    def map(self, function: Callable[..., Any], *parameters: Any) -> list[Any]:
        return thread_map(
            lambda start: on_block(function, self._block(start), parameters),
            self._starts(),
            n_jobs=self.n_jobs,
        )

    def collect(self, consume: Callable[[int, Any], None], function: Callable[..., Any], *parameters: Any) -> None:
        def work(start: int) -> None:
            consume(start, on_block(function, self._block(start), parameters))

        thread_map(work, self._starts(), n_jobs=self.n_jobs)

    def blocks(self) -> Iterator[Block]:
        return blocks(self.X, self.y, self.weight)

    def take(self, numbers: np.ndarray) -> np.ndarray:
        taken = self.X[numbers]
        return np.asarray(taken.toarray() if hasattr(taken, "toarray") else taken, dtype=np.float64)

    def sample(self, size: int) -> "MemoryRows":
        step = max(1, self.n_rows // size)
        y = None if self.y is None else self.y[::step]
        weight = None if self.weight is None else self.weight[::step]
        return MemoryRows(self.X[::step].copy(), y, weight, n_jobs=self.n_jobs)

    def labels(self) -> np.ndarray:
        if (counted := _counted_from(self.y)) is None:
            return super().labels()
        low, codes = counted
        return np.flatnonzero(np.bincount(codes)) + low

    def encoded(self, classes: np.ndarray, *, others: bool = False) -> "MemoryRows":
        classes = np.asarray(classes)
        own = self._are_positions_in(classes)
        codes = self.y if own else np.concatenate(self.map(class_codes, classes, others))
        encoded = MemoryRows(self.X, codes, self.weight, n_jobs=self.n_jobs)
        encoded.feature_names = self.feature_names
        return encoded

    def _are_positions_in(self, classes: np.ndarray) -> bool:
        """Tell whether the labels are 0, 1, ... and so their own positions."""
        if (counted := _counted_from(self.y)) is None or not np.array_equal(classes, np.arange(len(classes))):
            return False
        low, codes = counted
        return low >= 0 and low + int(codes.max()) < len(classes)


def in_stretches(stretch: Callable[..., Any]) -> Callable[[Any], Any]:
    """Mark a statistic that can also be had of a stretch of blocks: stretch(block, rows per block, *parameters).

    Threads that work on different sums meet at the interpreter's lock after each compiled call, so that fewer and
    longer calls let them run side by side. The stretch has 2^l whole blocks, and is added up as `Total` would:
    pairs of neighbours, then pairs of pairs.
    """

    def mark(statistic: Any) -> Any:
        statistic.stretch = stretch
        return statistic

    return mark


def stretches(whole: int, count: int, most: int) -> list[tuple[int, int]]:
    """Return the nodes (level, number) of stretches of whole blocks, at most so many long, and of the other blocks.

    >>> stretches(6, 7, 4)
    [(2, 0), (1, 2), (0, 6)]
    """
    results, at = [], 0
    while at < count:
        level = 0
        while 2 << level <= most and at % (2 << level) == 0 and at + (2 << level) <= whole:
            level += 1
        results.append((level, at >> level))
        at += 1 << level
    return results


def _counted_from(y: np.ndarray | None) -> tuple[int, np.ndarray] | None:
    """Return the least label and y minus it, if y are integers of a small range: counting beats sorting."""
    if y is None or y.ndim != 1 or y.dtype != np.int64 or not len(y):
        return None
    low = int(y.min())
    return (low, y - low) if int(y.max()) - low < 65_536 else None


def _beside(values: Any, name: str, n_rows: int) -> np.ndarray | None:
    """Return y or the weights as an array, after checking that it has a value for each row."""
    if values is None:
        return None
    values = np.asarray(values)
    if values.ndim not in (1, 2) or len(values) != n_rows or (name == "sample_weight" and values.ndim != 1):
        raise ValueError(f"rows: {name} must have one value for each of the {n_rows} rows; got shape {values.shape}.")
    return values


def on_block(statistic: Statistic, part: Block, parameters: Sequence[Any]) -> Any:
    """Return statistic(part, *parameters); an error says in which rows it arose."""
    try:
        return statistic(part, *parameters)
    except Exception as error:
        error.add_note(f"in the block of {len(part.X)} rows that starts at row {part.start}")
        raise


def thread_map(function: Callable[[T], R], items: Sequence[T], *, n_jobs: int | None = None) -> list[R]:
    """Return [function(item) for item in items], computed on threads while BLAS keeps to one thread.

    Useful when the function releases the interpreter's lock: compiled loops, BLAS, most of NumPy.

    Parameters
    ----------
    function : callable
        Called with each item.
    items : sequence of T
        The items.
    n_jobs : int or None
        Number of threads; None: all cores.

    Returns
    -------
    list
        The results, in order.

    Examples
    --------
    >>> thread_map(lambda k: k * k, range(4), n_jobs=2)
    [0, 1, 4, 9]
    """
    items = list(items)
    results: list[Any] = [None] * len(items)

    def work(i: int) -> None:
        results[i] = function(items[i])

    with one_blas_thread():
        spread(work, len(items), thread_count(n_jobs))
    return results


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads that n_jobs asks for: None or -1 is all cores, -2 all but one.

    >>> thread_count(3)
    3
    """
    if n_jobs is None or n_jobs == -1:
        return _cores()
    if n_jobs == 0:
        raise ValueError("n_jobs must be a number of threads >= 1, or None for every core; got 0.")
    return min(n_jobs, _MAX_THREADS) if n_jobs > 0 else max(_cores() + 1 + n_jobs, 1)


@cache
def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_local = threading.local()


def in_worker_thread() -> bool:
    """Tell whether this thread is one of several that share some work, and so works alone on its part."""
    return getattr(_local, "working", False)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep to this thread inside: other processes have the other cores. Results are the same, to the bit."""
    before, _local.working = in_worker_thread(), True
    try:
        yield
    finally:
        _local.working = before


def spread(work: Callable[[int], None], count: int, threads: int) -> None:
    """Call work(0), ..., work(count - 1), each once, on at most `threads` threads, the caller's among them.

    After an error no further work is begun, and the error of the smallest number is raised (an interrupt
    before any other). A call from within `work` runs on its own thread alone.
    """
    work = _interruptible(work)
    if threads <= 1 or count <= 1 or in_worker_thread():
        for i in range(count):
            work(i)
        return
    numbers = itertools.count()
    failures: list[tuple[int, BaseException]] = []

    def crew() -> None:
        i = -1
        _local.working = True
        try:
            while not failures and (i := next(numbers)) < count:
                work(i)
        except BaseException as error:
            failures.append((i, error))
        finally:
            _local.working = False

    def finish() -> None:
        for other in others:
            if not other.cancel():
                other.result()

    others = [_pool().submit(crew) for _ in range(min(threads, count) - 1)]
    try:
        crew()
        finish()
    except BaseException as error:  # an interrupt that struck outside `work`
        failures.append((-1, error))
        finish()
    if failures:
        raise min(failures, key=lambda failure: (isinstance(failure[1], Exception), failure[0]))[1]


def _interruptible(work: Callable[[int], None]) -> Callable[[int], None]:
    """Return work that raises KeyboardInterrupt where Numba makes it a SystemError: Ctrl-C that is heard while the
    result of a compiled loop is made a Python object."""

    def heard(i: int) -> None:
        try:
            work(i)
        except SystemError as error:
            if isinstance(error.__cause__, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            raise

    return heard


@cache
def _pool() -> ThreadPoolExecutor:
    """Return the pool of this process; its threads start when they are first needed."""
    return ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="assay")


class _Blas:
    """Holds every BLAS of this process to one thread while any scan is running."""

    def __init__(self) -> None:
        import scipy.linalg  # noqa: F401  (brings its own BLAS, which must be loaded to be found)
        from threadpoolctl import ThreadpoolController

        self.libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        self.lock = threading.Lock()
        self.users = 0
        self.before: list[int] = []

    def enter(self) -> None:
        with self.lock:
            self.users += 1
            if self.users == 1:
                self.before = [library.num_threads for library in self.libraries]
                self._set([1] * len(self.libraries))

    def leave(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users == 0:
                self._set(self.before)

    def _set(self, counts: list[int]) -> None:
        for library, before, count in zip(self.libraries, self.before, counts, strict=True):
            if before == 1:
                continue
            # threadpoolctl 3.8 hears only the first thread that sets OpenBLAS; here any thread may be the
            # first to begin a scan and any other the last to end one, so no thread keeps the claim.
            release = getattr(library, "clear_controlling_thread", lambda force: None)
            release(force=True)
            library.set_num_threads(count)
            release(force=True)


_making = threading.Lock()
_the_blas = cache(_Blas)


def _blas() -> _Blas:
    with _making:  # two threads that begin at once must share one count of users
        return _the_blas()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread: blocks must not compete for cores, nor a bit depend on the thread count.

    Yields
    ------
    None
        Nothing.
    """
    blas = _blas()
    blas.enter()
    try:
        yield
    finally:
        blas.leave()


def _after_fork() -> None:
    """Forget threads that a forked child does not have."""
    global _making
    _making = threading.Lock()
    _pool.cache_clear()
    _the_blas.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


_SHARE = 0.4  # of the memory of the workers that rows may fill


class WorkerBlocks:
    """The blocks of some partitions, on the worker that has them."""

    def __init__(self, parts: dict[int, Block], threads: int):
        self.threads, self.blocks = threads, [cut for part in parts.values() for cut in _cut(part)]

    def sum(self, packed: bytes) -> dict[Node, Any]:
        """Return the nodes of a total over the blocks."""
        total, (statistic, parameters) = Total(), cloudpickle.loads(packed)

        def one(cut: Block) -> None:
            total.add(cut.start // rows_per_block(cut.X.shape[1]), on_block(statistic, cut, parameters))

        self._each(one)
        return total.nodes()

    def map(self, packed: bytes) -> list[tuple[int, Any]]:
        """Return the first row of each block with what a function gives of it."""
        function, parameters = cloudpickle.loads(packed)
        return self._each(lambda cut: (cut.start, on_block(function, cut, parameters)))

    def _each(self, work: Callable[[Block], Any]) -> list[Any]:
        with one_blas_thread():
            return thread_map(work, self.blocks, n_jobs=self.threads)


def _cut(part: Block) -> Iterator[Block]:
    step = rows_per_block(part.X.shape[1])
    for start in range(0, len(part.X), step):
        cut = block(part.X, part.y, part.weight, start, min(start + step, len(part.X)))
        yield cut._replace(start=part.start + start)


class KeptRows(Rows):
    """The rows of a Dask collection, kept by the workers while this object lives. Sums have the same bits."""

    def __init__(self, rows: Rows):
        self.rows = rows
        self.n_rows, self.n_features, self.n_jobs = rows.n_rows, rows.n_features, rows.n_jobs
        self.feature_names, self.has_y, self.has_weight = rows.feature_names, rows.has_y, rows.has_weight
        self._workers = rows.pinned((_whole,), WorkerBlocks)

    def sum(self, statistic: Statistic, *parameters: Any) -> Any:
        total = Total()
        for nodes in self._call("sum", statistic, parameters):
            total.merge(nodes)
        return total.value()

    def map(self, function: Callable[..., Any], *parameters: Any) -> list[Any]:
        values = [item for results in self._call("map", function, parameters) for item in results]
        return [result for _, result in sorted(values, key=lambda item: item[0])]

    def collect(self, consume: Callable[[int, Any], None], function: Callable[..., Any], *parameters: Any) -> None:
        for results in self._call("map", function, parameters):
            for start, result in results:
                consume(start, result)

    def _call(self, method: str, function: Callable[..., Any], parameters: tuple) -> list[Any]:
        results = self._workers.each(method, cloudpickle.dumps((function, parameters)))
        self._workers.journal.clear()  # blocks stay what they were
        return results

    def blocks(self) -> Iterator[Block]:
        return self.rows.blocks()


def _whole(part: Block) -> Block:
    return part


def kept(rows: Rows) -> Rows:
    """Return rows on workers as rows that these keep, if they fit there beside their source."""
    from distributed import get_client

    workers = get_client().scheduler_info(n_workers=-1)["workers"].values()
    room = [worker["memory_limit"] or np.inf for worker in workers]
    size = 8.0 * rows.n_rows * (rows.n_features + 2)
    return KeptRows(rows) if size <= _SHARE * sum(room) else rows
