"""Worker processes that fit learners side by side and can be ended when they take too long.

A worker is a fresh interpreter that reads jobs from a pipe and writes answers; it does not import the caller's main
program. Where there are no such pipes (Windows), or none are asked for, jobs run here, one after the other.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

import numpy as np

from assay.learning import jobs

_ENDED = "its process ended, most likely for want of memory."
_LATE = "it was stopped after {:.0f} s."
_START = "from assay.learning.workers import main; main()"


def main() -> None:
    """Answer jobs until the pipe is closed; the program of a worker."""
    import assay.ensemble
    import assay.linear_model  # noqa: F401  # what nearly every job needs, before the time of the first one begins

    pipe = Connection(int(sys.argv[1]))
    pipe.send(None)
    while True:
        try:
            job = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send(jobs.run(job))


class _Worker:
    """One process, the job it is at, and since when."""

    def __init__(self) -> None:
        self.pipe, other = Pipe()
        paths = os.pathsep.join(path for path in sys.path if path)
        limits = {"PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, str(other.fileno())],
            pass_fds=[other.fileno()],
            env=os.environ | limits,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the one who started the study
        )
        other.close()
        self.place: int | None = None
        self.began = 0.0
        self.new = True

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.pipe.close()


class Pool:
    """Runs jobs on `size` workers; 0 runs them here."""

    def __init__(self, size: int | None) -> None:
        self.size = (os.cpu_count() or 1) if size is None else size
        if not hasattr(os, "fork"):
            self.size = 0
        self._workers: list[_Worker] = []
        self._overhead = 0.0

    def start_up(self) -> float:
        """Return how long a job will wait for its worker: nothing if one is idle, else as long as it took before."""
        idle = any(one.place is None for one in self._workers)
        return 0.0 if idle or self.size == 0 else self._overhead

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *error: Any) -> None:
        for worker in self._workers:
            worker.end()
        self._workers = []

    def run(
        self,
        work: list[Any],
        done: Callable[[int, jobs.Answer], None],
        begun: Callable[[int], None],
        deadline: float | None = None,
        limit: Callable[[], float | None] = lambda: None,
        over: Callable[[], bool] = lambda: False,
    ) -> None:
        """Run jobs in order and call `done(place, answer)` for each as it ends.

        At `deadline` (of `time.monotonic`), or when `over()` says so, what runs is stopped and the rest not begun; a
        job that runs longer than `limit()` seconds is stopped and the others go on.
        """
        if self.size == 0:
            for place, job in enumerate(work):
                if over() or (deadline is not None and time.monotonic() > deadline):
                    return
                begun(place)
                done(place, jobs.run(job))
            return
        waiting = list(range(len(work)))
        try:
            while waiting or any(one.place is not None for one in self._workers):
                if over() or (deadline is not None and time.monotonic() > deadline):
                    return
                self._hand_out(work, waiting, begun)
                self._collect(done, limit())
        finally:
            self._drop([one for one in self._workers if one.place is not None])

    def _hand_out(self, work: list[Any], waiting: list[int], begun: Callable[[int], None]) -> None:
        while waiting:
            free = [one for one in self._workers if one.place is None]
            if not free and len(self._workers) >= self.size:
                return
            worker = free[0] if free else _Worker()
            if not free:
                self._workers.append(worker)
            worker.place, worker.began = waiting.pop(0), time.monotonic()
            begun(worker.place)
            with suppress(OSError):  # it has ended; reading from it says so
                worker.pipe.send(work[worker.place])

    def _collect(self, done: Callable[[int, jobs.Answer], None], limit: float | None) -> None:
        busy = {one.pipe: one for one in self._workers if one.place is not None}
        for pipe in wait(list(busy), timeout=0.1):
            worker = busy[pipe]  # type: ignore[index]
            place = worker.place
            try:
                answer = worker.pipe.recv()
                if answer is None:  # it is ready: its first job begins now
                    worker.began = time.monotonic()
                    continue
                if worker.new and answer.result is not None:
                    spent = sum(np.atleast_1d(answer.result["seconds"])[1:])  # the first fit loads or compiles
                    self._overhead = max(self._overhead, time.monotonic() - worker.began - spent)
                worker.place, worker.new = None, False
            except (EOFError, OSError):
                answer = jobs.Answer(None, _ENDED)
                self._drop([worker])
            done(place, answer)  # type: ignore[arg-type]
        for worker in [one for one in busy.values() if one.place is not None and one in self._workers]:
            if limit is not None and time.monotonic() - worker.began > limit:
                place = worker.place
                self._drop([worker])
                done(place, jobs.Answer(None, _LATE.format(limit)))  # type: ignore[arg-type]

    def _drop(self, workers: list[_Worker]) -> None:
        for worker in workers:
            worker.end()
            self._workers.remove(worker)
