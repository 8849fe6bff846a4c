"""Work of a fuzzer in a process of its own: a crash ends the process and not the fuzzer, and work without end is ended.

`watch` forks a process that runs `run(number)` for number after number, with a limit of memory, and tells what became
of each. Processor time is measured, not the clock, so that a busy machine is not taken for a hang.
"""

import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

_FORK = multiprocessing.get_context("fork")
_stage = _FORK.Array("c", 120, lock=False)


class Outcome(NamedTuple):
    """What became of one input: "refused", "accepted" or what it must not be; where and what, if it is bad."""

    kind: str
    place: str = ""
    detail: str = ""


def at_stage(name: str) -> None:
    """Note what an input is about to do, for whoever asks after a crash or hang."""
    _stage.value = name.encode(errors="replace")[:100]


def watch(
    run: Callable[[int], Outcome],
    tell: Callable[[int, Outcome], None],
    first: int,
    *,
    end: float,
    seconds: float,
    memory: int,
    last: int | None = None,
) -> int:
    """Run inputs from a number on, until the clock says `end`, one crashes or hangs, or `last` is done; return the
    next number. An input may take so many seconds of the processor, and the process so much memory (in bytes)."""
    at, (mine, theirs) = _FORK.Value("q", first, lock=False), _FORK.Pipe(duplex=False)
    worker = _FORK.Process(target=_work, args=(run, first, last, memory, at, theirs), daemon=True)
    worker.start()
    theirs.close()
    seen, since, done, broken = -1, (0.0, 0.0), first, ""
    while not broken and time.monotonic() < end:
        if mine.poll(0.05):
            try:
                for number, outcome in mine.recv():
                    tell(number, outcome)
                    done = number + 1
            except EOFError:
                broken = "crash"
        now = (time.monotonic(), _processor_seconds(worker.pid))
        if at.value != seen:
            seen, since = at.value, now
        elif now[1] - since[1] > seconds or now[0] - since[0] > 15 * seconds:
            broken = "hang"
    stuck = at.value
    worker.kill()
    worker.join()
    if not broken or (last is not None and done > last):
        return done
    stage = _stage.value.decode(errors="replace")
    tell(stuck, Outcome(broken, stage, f"exit code {worker.exitcode}" if broken == "crash" else ""))
    return stuck + 1


def _work(run: Callable[[int], Outcome], first: int, last: int | None, memory: int, at: Any, pipe: Any) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    found, sent, number = [], time.monotonic(), first
    while last is None or number <= last:
        at.value = number
        at_stage("")
        try:
            outcome = run(number)
        except BaseException as error:
            trace = traceback.extract_tb(error.__traceback__)[-1]
            outcome = Outcome("unexpected", f"{Path(trace.filename).name}:{trace.lineno}", _named(error))
        found.append((number, outcome))
        number += 1
        if time.monotonic() - sent > 0.2:
            pipe.send(found)
            found, sent = [], time.monotonic()
    pipe.send(found)


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"


def _processor_seconds(pid: int | None) -> float:
    """Return the processor time that a process has used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return time.monotonic()
