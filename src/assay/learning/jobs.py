"""What a worker does: judge a candidate by cross-validation, or fit a finalist and certify it; and worker processes
that do so side by side and can be ended when they take too long.

A job is plain data and returns plain data, so that it gives the same result in any process.

A worker is forked by a process of its own (`assay.fork_server`), reads jobs from a pipe and writes answers. While all
workers are busy, a small job keeps to one thread. Where there are no such processes (Windows), or none are asked for,
jobs run here, one after the other.
"""

import os
import pickle
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import import_module
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

import numpy as np

from assay.base import Learner
from assay.data import ColumnType, Encoding, RawTable
from assay.fork_server import LEARNERS, ForkServer, can_fork, fork_server
from assay.guarantees.ledger import CertifyOptions
from assay.guarantees.seal import Others
from assay.learning.metrics import Metric
from assay.learning.model import TableModel, target_values
from assay.learning.problem import Pair
from assay.messages import Message, of_error, sentences
from assay.registry import find
from assay.scan.memory import one_thread, thread_count

SMALL = 30_000  # rows up to which a fit is not spread over threads while other processes have work


@dataclass(frozen=True)
class Recipe:
    """How a learner is made: its class by name, its settings, its seed; members for a vote or a stack of others."""

    kind: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    members: tuple["Recipe", ...] = ()
    wrapped: str = ""
    cost: Any = None
    threshold: str = ""

    def make(self, nominal: list[int]) -> Learner:
        """Return the learner, not fitted."""
        kind = _class_of(self.kind)
        given = {"random_state": self.seed, "nominal": nominal, **self.settings}
        if self.members:
            given |= kind.card.begin(0)
            names = [f"{place}-{member.kind.split('.')[-1]}" for place, member in enumerate(self.members)]
            given["estimators"] = list(zip(names, [member.make(nominal) for member in self.members]))
        known = kind._get_param_names()
        made = kind(**{name: value for name, value in given.items() if name in known and value != []})
        if not self.wrapped:
            return made
        options = {"cost": self.cost} if self.cost is not None else {}
        options |= {"threshold": self.threshold} if self.threshold else {}
        return find(self.wrapped)(estimator=made, **options)


def _class_of(name: str) -> type[Learner]:
    """Return the class of a learner; one from outside the package is registered where its module is loaded."""
    try:
        return find(name)
    except ValueError:
        import_module(name.rpartition(".")[0])
        return find(name)


@dataclass(frozen=True)
class Judge:
    """Fit a learner to the rows of each pair and measure its loss on the others."""

    recipe: Recipe
    view: str
    target: str
    nominal: list[int]
    pairs: Sequence[Pair]
    metric: Metric
    n_classes: int

    @property
    def small(self) -> bool:
        """Tell whether threads gain little."""
        return len(self.pairs[0].fit) <= SMALL

    @property
    def alike(self) -> str:
        """What jobs have in common that run the same compiled loops."""
        return self.recipe.kind

    def run(self) -> dict[str, Any]:
        X, y = (np.load(path, mmap_mode="r") for path in (self.view, self.target))
        losses, seconds, predicting = [], [], 0.0
        if len(self.pairs) == 1:
            self._load(X, y)
        for pair in self.pairs:
            began = time.perf_counter()
            learner = self.recipe.make(self.nominal).fit(X[pair.fit], y[pair.fit])
            seconds.append(time.perf_counter() - began)
            if self.recipe.members and min(learner.links_) < 0:
                raise ValueError(Message("member-unreadable"))
            losses.append(self._loss(learner, X[pair.judge], y[pair.judge]))
            predicting = time.perf_counter() - began - seconds[-1]
        per_row = predicting / len(self.pairs[-1].judge)
        return {"losses": losses, "seconds": seconds, "per_row": per_row}

    def _load(self, X: np.ndarray, y: np.ndarray) -> None:
        """Fit to a few rows, so that loading and compiling are not taken for what a fit of many rows costs."""
        rows = self.pairs[0].fit[:: max(1, len(self.pairs[0].fit) // 300)]
        with suppress(Exception):
            self.recipe.make(self.nominal).fit(X[rows], y[rows]).predict(X[rows])

    def _loss(self, learner: Any, X: np.ndarray, y: np.ndarray) -> float:
        predicted, shares = learner.predict(X), None
        if self.n_classes and self.metric.needs_probabilities and hasattr(learner, "predict_proba"):
            shares = np.zeros((len(y), self.n_classes))
            shares[:, learner.classes_] = learner.predict_proba(X)
        if not self.n_classes and not np.isfinite(predicted).all():
            raise ArithmeticError(Message("not-finite"))
        return self.metric.of(y, predicted, shares, self.n_classes)


@dataclass(frozen=True)
class Fit:
    """Fit a learner to rows that are encoded already."""

    recipe: Recipe
    view: str
    y: np.ndarray
    nominal: list[int]

    def run(self) -> dict[str, Any]:
        X, began = np.load(self.view), time.perf_counter()
        learner = self.recipe.make(self.nominal).fit(X, self.y)
        return {"learner": learner, "seconds": time.perf_counter() - began}


@dataclass(frozen=True)
class Certify:
    """Fit a finalist to all training rows, open the hold-out rows, and certify it at its share of delta."""

    recipe: Recipe
    problem: str
    encoding: Encoding
    delta: Decimal
    others: Others
    asked: CertifyOptions
    task: str
    drawn_with: int | None = None
    newest_by: ColumnType | None = None
    look: int = 1
    metric: Metric | None = None
    small = False

    def run(self) -> dict[str, Any]:
        raw, target, train, held = pickle.loads(Path(self.problem).read_bytes())
        rows = raw.take(train)
        X, y = self._training_rows(rows, target)
        began = time.perf_counter()
        learner = self.recipe.make(self.encoding.nominal()).fit(X, y)
        seconds = time.perf_counter() - began
        model = TableModel(target, self.encoding, learner)
        certificate = model.certify(
            raw, held, delta=self.delta, asked=self.asked, others=self.others, seed=self.drawn_with,
            time=self.newest_by, look=self.look,
        )  # fmt: skip
        Xh = model.encode(raw.take(held), lenient=True)[0]
        return {
            "model": model, "certificate": certificate, "seconds": seconds, "train": learner.predict(X),
            "held": learner.predict(Xh), "measured": self._measured(learner, Xh, model.labels(raw.take(held))),
        }  # fmt: skip

    def _measured(self, learner: Any, X: np.ndarray, y: np.ndarray) -> float:
        """Return the metric that was asked for, on the hold-out rows."""
        if self.metric is None:
            return np.nan
        shares = learner.predict_proba(X) if self.metric.needs_probabilities else None
        return self.metric.on(y, learner.predict(X), shares, getattr(learner, "classes_", np.empty(0)))

    def _training_rows(self, rows: RawTable, target: ColumnType) -> tuple[np.ndarray, np.ndarray]:
        X = self.encoding.apply(rows.read_as(self.encoding.schema))
        column = rows.read_as((target,)).column(target.name)
        return X, target_values(column, self.task)


@dataclass(frozen=True)
class Answer:
    """What came of a job: its result, or why there is none; what the learner warned of."""

    result: dict[str, Any] | None
    note: str = ""


@dataclass(frozen=True)
class Compiling:
    """What a worker says meanwhile: whether it compiles loops, or waits for another that does."""

    now: bool


def run(job: Any) -> Answer:
    """Run a job; whatever fails, for want of memory too, is an answer."""
    name = job.recipe.kind.split(".")[-1]
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            result = job.run()
    except Exception as error:
        return Answer(None, reason(name, error))
    texts = [one_line(output.message, name) for output in said if issubclass(output.category, UserWarning)]
    kept = [text for text in dict.fromkeys(texts) if "certificate" not in text]
    return Answer(result, sentences(kept))


def seconds_compiling() -> float:
    """Return for how long this process has compiled loops, if it has loaded any."""
    return sys.modules["assay.loop_cache"].seconds_compiling() if "assay.loop_cache" in sys.modules else 0.0


def together(answers: Sequence[Answer]) -> Answer:
    """Return the answer to a job that was done in parts, one after the other in the order of its pairs."""
    failed = next((answer for answer in answers if answer.result is None), None)
    if failed is not None:
        return failed
    parts = [answer.result for answer in answers if answer.result is not None]
    lists = {name: [value for part in parts for value in part[name]] for name in ("losses", "seconds")}
    return Answer({**parts[-1], **lists}, sentences([answer.note for answer in answers]))


def reason(name: str, error: Exception) -> str:
    """Return why a learner is left out: its own refusal, or what kind of failure it was."""
    text = one_line(error, name)
    if isinstance(error, (ValueError, ArithmeticError)) and text:
        return text
    return Message("error", kind=type(error).__name__, text=text) if text else f"{type(error).__name__}."


def one_line(message: Any, name: str) -> str:
    """Return what an exception or a warning says, without the name of the learner that says it."""
    said = of_error(message)
    if isinstance(said, Message):
        return said.values["what"] if said.code == "named" and said.values["who"] == name else said
    return " ".join(said.split()).removeprefix(f"{name}: ")[:400]


_ENDED = Message("process-ended")
_LONGEST_ASIDE = 30.0  # seconds that a job beside the others may take


def answer(pipe: int) -> None:
    """Answer jobs until the pipe is closed; the program of a worker."""
    from assay.loop_cache import tell_compiling

    with Connection(pipe) as jobs_in, suppress(EOFError, OSError):
        jobs_in.send(os.getpid())
        tell_compiling(lambda now: jobs_in.send(Compiling(now)))
        while True:
            job, alone = jobs_in.recv()
            with one_thread() if alone else nullcontext():
                result = run(job)
            jobs_in.send(result)


class _Worker:
    """One process, the job it is at, and since when."""

    def __init__(self, home: ForkServer) -> None:
        self.pipe, other = Pipe()
        self.home = home
        home.fork(other.fileno())
        other.close()
        self.place: int | None = None
        self.aside: Callable[[Answer], None] | None = None  # takes the answer to a job beside all others
        self.began = 0.0
        self.compiling = False
        self.number = 0  # known when it is ready

    def end(self) -> None:
        with suppress(EOFError, OSError):
            if not self.number and self.pipe.poll(0):
                self.number = self.pipe.recv()
        if self.number:
            self.home.end_worker(self.number)
        self.pipe.close()


class Pool:
    """Runs jobs on `size` workers; 0 runs them here.

    `compiling` are the seconds of `run` that went into compiling loops, which happens once: while it is done by some of
    the workers that have a job, their share counts. Once `waits_for_loops` is false no more is added. `tell_compiling`
    is called when compiling begins.
    """

    def __init__(self, size: int | None, tell_compiling: Callable[[], None] = lambda: None) -> None:
        self.size = thread_count(None) if size is None else size
        if not can_fork():
            self.size = 0
        self._home = fork_server(*LEARNERS) if self.size else None
        self._workers: list[_Worker] = []
        self.compiling = 0.0
        self.waits_for_loops = True
        self._tell_compiling: Callable[[], None] | None = tell_compiling

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *error: Any) -> None:
        for worker in self._workers:
            worker.pipe.close()
        self._workers = []
        if self._home is not None:
            self._home.close()

    def start(self, job: Any, done: Callable[[Answer], None]) -> None:
        """Have a job done beside those that follow, before them where there is one worker; its answer is taken in while
        they run, or never if it takes long."""
        if self.size == 0:
            done(self._run_here(job))
            return
        worker = self._new_worker()
        worker.aside, worker.began = done, time.monotonic()
        with suppress(OSError):
            worker.pipe.send((job, True))

    def run(
        self,
        work: list[Any],
        done: Callable[[int, Answer], None],
        begun: Callable[[int], None],
        deadline: float | None = None,
        limit: Callable[[], float | None] = lambda: None,
        over: Callable[[], bool] = lambda: False,
    ) -> None:
        """Run jobs, the first ones first unless their like runs already; call `done(place, answer)` as each ends.

        At `deadline` (of `time.monotonic`), or when `over()` says so, what runs is stopped and the rest not begun; a
        job that runs longer than `limit()` seconds is stopped and the others go on.
        """
        if self.size == 0:
            for place, job in enumerate(work):
                if over() or (deadline is not None and time.monotonic() > deadline):
                    return
                begun(place)
                done(place, self._run_here(job))
            return
        waiting = list(range(len(work)))
        try:
            while waiting or any(worker.place is not None for worker in self._workers):
                if over() or (deadline is not None and time.monotonic() > deadline):
                    return
                self._hand_out(work, waiting, begun)
                self._collect(done, limit())
        finally:
            self._drop([worker for worker in self._workers if worker.place is not None])

    def _run_here(self, job: Any) -> Answer:
        before = seconds_compiling()
        answer = run(job)
        self.compiling += (seconds_compiling() - before) * self.waits_for_loops
        if seconds_compiling() > before:
            self._say_compiling()
        return answer

    def _say_compiling(self) -> None:
        if self._tell_compiling is not None:
            self._tell_compiling()
        self._tell_compiling = None

    def _hand_out(self, work: list[Any], waiting: list[int], begun: Callable[[int], None]) -> None:
        while waiting:
            free = [item for item in self._workers if item.place is None and item.aside is None]
            if not free and len(self._workers) >= self.size:
                return
            worker = free[0] if free else self._new_worker()
            worker.place, worker.began = waiting.pop(self._next(work, waiting)), time.monotonic()
            job = work[worker.place]
            with suppress(OSError):  # it has ended; reading from it says so
                worker.pipe.send((job, getattr(job, "small", False) and len(waiting) + self._busy() >= self.size))
            begun(worker.place)

    def _next(self, work: list[Any], waiting: list[int]) -> int:
        """Return which of the waiting jobs is next: the first whose like is at no other worker, which may be compiling
        what both need; or else the first."""
        running = {
            getattr(work[worker.place], "alike", None) for worker in self._workers if worker.place is not None
        } - {None}
        others = (at for at, place in enumerate(waiting) if getattr(work[place], "alike", None) not in running)
        return next(others, 0)

    def _new_worker(self) -> _Worker:
        assert self._home is not None
        self._workers.append(_Worker(self._home))
        return self._workers[-1]

    def _busy(self) -> int:
        return sum(worker.place is not None or worker.aside is not None for worker in self._workers)

    def _collect(self, done: Callable[[int, Answer], None], limit: float | None) -> None:
        busy = {item.pipe: item for item in self._workers if item.place is not None or item.aside is not None}
        began = time.monotonic()
        ready = wait(list(busy), timeout=0.1)
        self._count(time.monotonic() - began)
        for pipe in ready:
            worker = busy[pipe]  # type: ignore[index]
            place, aside = worker.place, worker.aside
            try:
                answer = worker.pipe.recv()
                if isinstance(answer, int):  # it is ready: its first job begins now
                    worker.number, worker.began = answer, time.monotonic()
                    continue
                if isinstance(answer, Compiling):
                    worker.compiling = answer.now
                    self._say_compiling()
                    continue
                worker.place = worker.aside = None
            except (EOFError, OSError):
                answer = Answer(None, _ENDED)
                self._drop([worker])
            if aside is not None:
                aside(answer)
            else:
                done(place, answer)  # type: ignore[arg-type]
        self._drop([item for item in self._workers if item.aside and time.monotonic() - item.began > _LONGEST_ASIDE])
        for worker in [item for item in busy.values() if item.place is not None and item in self._workers]:
            if limit is not None and time.monotonic() - worker.began > limit:
                place = worker.place
                self._drop([worker])
                done(place, Answer(None, Message("late", seconds=limit)))  # type: ignore[arg-type]

    def _count(self, seconds: float) -> None:
        """Count the time just waited for answers, as far as it went into compiling; no job is too slow by that."""
        working = [worker for worker in self._workers if worker.place is not None]
        compiling = [item for item in working if item.compiling]
        self.compiling += self.waits_for_loops * seconds * len(compiling) / max(1, len(working))
        for item in compiling:
            item.began += seconds

    def _drop(self, workers: list[_Worker]) -> None:
        for worker in workers:
            worker.end()
            self._workers.remove(worker)
