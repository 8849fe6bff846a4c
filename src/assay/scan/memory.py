"""Arrays in memory: blocks on threads.

The caller's own thread works too, so n_jobs threads cost n_jobs - 1 tasks of a pool that is made once. Each
thread takes the next block that nobody has taken; partial sums are added in block order as they come in, and
a thread that is far ahead waits, so that only a few partial sums exist at a time.
"""

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import numpy as np

from assay.scan.blocks import Block, block, blocks, rows_per_block
from assay.scan.source import Rows, Statistic, class_codes

T = TypeVar("T")
R = TypeVar("R")

_MAX_THREADS = 256
AHEAD = 4  # blocks per thread that may be finished before their turn to be added


class MemoryRows(Rows):
    """Rows of arrays."""

    def __init__(self, X: Any, y: Any = None, weight: Any = None, *, n_jobs: int | None = None):
        names = getattr(X, "columns", None)
        self.feature_names = None if names is None else [str(name) for name in names]
        self.X = np.asarray(X)
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
        starts = self._starts()
        if not starts:
            raise ValueError("rows: there are no rows to sum over; got 0 rows.")
        threads = min(thread_count(self.n_jobs), len(starts))
        total = OrderedSum(ahead=AHEAD * threads)
        with one_blas_thread():
            spread(
                lambda i: total.add(i, on_block(statistic, self._block(starts[i]), parameters)),
                len(starts),
                threads,
                total.abandon,
            )
        return total.value

    def map(self, function: Callable[..., Any], *parameters: Any) -> list[Any]:
        return thread_map(
            lambda start: on_block(function, self._block(start), parameters),
            self._starts(),
            n_jobs=self.n_jobs,
        )

    def blocks(self) -> Iterator[Block]:
        return blocks(self.X, self.y, self.weight)

    def encoded(self, classes: np.ndarray) -> "MemoryRows":
        codes = np.concatenate(self.map(class_codes, np.asarray(classes)))
        encoded = MemoryRows(self.X, codes, self.weight, n_jobs=self.n_jobs)
        encoded.feature_names = self.feature_names
        return encoded


def _beside(values: Any, name: str, n_rows: int) -> np.ndarray | None:
    """Return y or the weights as an array, after checking that it has a value for each row."""
    if values is None:
        return None
    values = np.asarray(values)
    if values.ndim not in (1, 2) or len(values) != n_rows or (name == "sample_weight" and values.ndim != 1):
        raise ValueError(
            f"rows: {name} must have one value for each of the {n_rows} rows; got shape {values.shape}."
        )
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


def spread(
    work: Callable[[int], None], count: int, threads: int, abandon: Callable[[], None] = lambda: None
) -> None:
    """Call work(0), ..., work(count - 1), each once, on at most `threads` threads, the caller's among them.

    After an error no further work is begun, `abandon` is called to wake whoever waits for its turn, and the
    error of the smallest number is raised (an interrupt before any other). A call from within `work` runs on
    its own thread alone.
    """
    if threads <= 1 or count <= 1 or getattr(_local, "working", False):
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
            abandon()
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
        abandon()
        finish()
    if failures:
        raise min(failures, key=lambda failure: (isinstance(failure[1], Exception), failure[0]))[1]


class OrderedSum:
    """Adds what `add(0, ...)`, `add(1, ...)`, ... bring, in that order whatever the order of the calls."""

    def __init__(self, ahead: int):
        self.value: Any = None
        self._ahead, self._next = ahead, 0
        self._waiting: dict[int, Any] = {}
        self._turn = threading.Condition()
        self._abandoned = False

    def add(self, number: int, partial: Any) -> None:
        """Add the partial sum of this number now or when its turn comes; wait if it is far from its turn."""
        with self._turn:
            while number - self._next > self._ahead and not self._abandoned:
                self._turn.wait()
            self._waiting[number] = partial
            while self._next in self._waiting:
                self.value = added(self.value, self._waiting.pop(self._next))
                self._next += 1
            self._turn.notify_all()

    def abandon(self) -> None:
        with self._turn:
            self._abandoned = True
            self._turn.notify_all()


def added(total: Any, partial: Any) -> Any:
    """Return total + partial, member by member of tuples; arrays that the total owns are added in place."""
    if isinstance(partial, tuple):
        members = (None,) * len(partial) if total is None else total
        sums = [added(a, b) for a, b in zip(members, partial, strict=True)]
        return type(partial)(*sums) if hasattr(partial, "_fields") else tuple(sums)
    if total is None:
        return partial.copy() if isinstance(partial, np.ndarray) else partial
    if not isinstance(total, np.ndarray):
        return total + partial
    if total.shape != np.shape(partial):
        raise ValueError(
            f"rows: a statistic gave shape {total.shape} for one block, {np.shape(partial)} for another."
        )
    if total.dtype == np.result_type(total, partial):
        total += partial
        return total
    return total + partial


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
            if before != 1:
                library.set_num_threads(count)


_blas = cache(_Blas)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread: blocks must not compete for cores, nor a bit depend on the thread count."""
    blas = _blas()
    blas.enter()
    try:
        yield
    finally:
        blas.leave()


def _after_fork() -> None:
    """Forget threads that a forked child does not have."""
    _pool.cache_clear()
    _blas.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
