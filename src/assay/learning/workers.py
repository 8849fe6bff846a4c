"""Worker processes that fit learners side by side and can be ended when they take too long.

A worker is forked by a process of its own (`assay.fork_server`), reads jobs from a pipe and writes answers. While all
workers are busy, a small job keeps to one thread. Where there are no such processes (Windows), or none are asked for,
jobs run here, one after the other.
"""

import os
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from assay.fork_server import LEARNERS, ForkServer, can_fork, fork_server
from assay.learning import jobs
from assay.messages import Message
from assay.scan.memory import one_thread, thread_count

_ENDED = Message("process-ended")
_LONGEST_ASIDE = 30.0  # seconds that a job beside the others may take


def answer(pipe: int) -> None:
    """Answer jobs until the pipe is closed; the program of a worker."""
    from assay.loop_cache import tell_compiling

    with Connection(pipe) as jobs_in, suppress(EOFError, OSError):
        jobs_in.send(os.getpid())
        tell_compiling(lambda now: jobs_in.send(jobs.Compiling(now)))
        while True:
            job, alone = jobs_in.recv()
            with one_thread() if alone else nullcontext():
                result = jobs.run(job)
            jobs_in.send(result)


class _Worker:
    """One process, the job it is at, and since when."""

    def __init__(self, home: ForkServer) -> None:
        self.pipe, other = Pipe()
        self.home = home
        home.fork(other.fileno())
        other.close()
        self.place: int | None = None
        self.aside: Callable[[jobs.Answer], None] | None = None  # takes the answer to a job beside all others
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

    def start(self, job: Any, done: Callable[[jobs.Answer], None]) -> None:
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
        done: Callable[[int, jobs.Answer], None],
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

    def _run_here(self, job: Any) -> jobs.Answer:
        before = jobs.seconds_compiling()
        answer = jobs.run(job)
        self.compiling += (jobs.seconds_compiling() - before) * self.waits_for_loops
        if jobs.seconds_compiling() > before:
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

    def _collect(self, done: Callable[[int, jobs.Answer], None], limit: float | None) -> None:
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
                if isinstance(answer, jobs.Compiling):
                    worker.compiling = answer.now
                    self._say_compiling()
                    continue
                worker.place = worker.aside = None
            except (EOFError, OSError):
                answer = jobs.Answer(None, _ENDED)
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
                done(place, jobs.Answer(None, Message("late", seconds=limit)))  # type: ignore[arg-type]

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
