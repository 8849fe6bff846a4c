"""A worker process that is killed while it works, however fast or slow the machine is."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PAUSE, _LONGEST = 0.005, 120.0  # seconds between two looks, and until nobody waits any longer


def begun(folder: Path) -> list[str]:
    """Return the names of the parts of the work that were begun, in order; each ends with its process."""
    return sorted(path.name for path in folder.iterdir() if path.name != "killed")


def begin(folder: str, first: int) -> None:
    """Say in a worker that a part is begun; from the part of this number on, wait until a worker was killed."""
    place, end = Path(folder), time.monotonic() + _LONGEST
    (place / f"{time.time_ns()}-{os.getpid()}").touch()
    while len(begun(place)) >= first and not (place / "killed").exists() and time.monotonic() < end:
        time.sleep(_PAUSE)


@contextmanager
def one_is_killed(folder: Path, first: int) -> Iterator[list[int]]:
    """Kill a worker once so many parts were begun, which `begin` waits for; yield a list for its process number."""
    killed: list[int] = []

    def kill() -> None:
        end = time.monotonic() + _LONGEST
        while len(found := begun(folder)) < first:
            if time.monotonic() > end:
                return
            time.sleep(_PAUSE)
        os.kill(number := int(found[0].split("-")[1]), signal.SIGKILL)
        killed.append(number)
        (folder / "killed").touch()

    killer = threading.Thread(target=kill)
    killer.start()
    yield killed
    killer.join()
