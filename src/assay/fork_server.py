"""A process that has loaded what workers need and forks into them: a new worker costs next to nothing.

It is a fresh interpreter, which does not import the caller's main program, with one thread when it forks. It may be
started early, before the caller has loaded anything itself. When the caller ends, so does it, with its workers.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

LEARNERS = ("assay.learning.jobs:answer", ("assay.ensemble", "assay.linear_model", "assay.jit"))
"""What a worker of a study runs, and what nearly every job needs loaded."""
_PROGRAM = "from assay.fork_server import main; main()"
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_NEW, _END = b"n", b"e"
_early: "list[ForkServer]" = []


class ForkServer:
    """The process, seen from the one who started it. `work` is "module:function", called with the end of a pipe."""

    def __init__(self, work: str, load: tuple[str, ...] = ()) -> None:
        self._door, other = socket.socketpair()
        paths = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(other.fileno()), work, *load],
            pass_fds=[other.fileno()],
            env=os.environ | _ONE_THREAD | {"PYTHONPATH": paths},
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the one who started it
        )
        other.close()

    def fork(self, pipe: int) -> None:
        """Start a worker with this end of a pipe, a file number."""
        with suppress(OSError):  # it has ended: so will the pipe
            socket.send_fds(self._door, [_NEW + bytes(4)], [pipe])

    def end_worker(self, number: int) -> None:
        """End the worker with this process number, whatever it does."""
        with suppress(OSError):
            self._door.send(_END + number.to_bytes(4, "little"))

    def close(self) -> None:
        """End all workers and the process itself."""
        self._door.close()
        self._process.wait()


def can_fork() -> bool:
    """Tell whether there are such processes here."""
    return hasattr(os, "fork") and hasattr(socket, "send_fds")


@contextmanager
def started_early(work: str, load: tuple[str, ...]) -> Iterator[None]:
    """Start a fork server that the next `fork_server` takes, while the caller loads what it needs itself."""
    if can_fork() and not _early:
        _early.append(ForkServer(work, load))
    try:
        yield
    finally:
        while _early:
            _early.pop().close()


def fork_server(work: str, load: tuple[str, ...]) -> ForkServer:
    """Return the fork server that was started early, or a new one."""
    return _early.pop() if _early else ForkServer(work, load)


def main() -> None:
    """Fork on request; the program of the process."""
    door, work = socket.socket(fileno=int(sys.argv[1])), sys.argv[2]
    for name in sys.argv[3:]:
        import_module(name)
    module, function = work.split(":")
    run = getattr(import_module(module), function)
    workers: set[int] = set()
    while True:
        said, pipes, *_ = socket.recv_fds(door, 5, 1)
        if not said:
            break
        if said[:1] == _END:
            _end(int.from_bytes(said[1:5], "little"), workers)
            continue
        number = os.fork()
        if number == 0:
            door.close()
            _work(run, pipes[0])
        os.close(pipes[0])
        workers.add(number)
    for number in list(workers):
        _end(number, workers)
    os._exit(0)  # the caller waits: taking down what was loaded for the workers would cost it half a second


def _end(number: int, workers: set[int]) -> None:
    """End a worker. It was not waited for before, so that its number is no other process's."""
    if number in workers:
        workers.remove(number)
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
        os.waitpid(number, 0)


def _work(run: Any, pipe: int) -> None:
    """Run a worker to its end; never return to the fork server's own loop."""
    code = 1
    try:
        run(pipe)
        code = 0
    finally:
        os._exit(code)
