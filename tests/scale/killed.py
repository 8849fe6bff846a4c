"""Worker processes that are killed while they work, however fast or slow the machine is."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

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


@contextmanager
def cluster_that_loses_a_worker(due: Callable[[list[str]], bool]) -> Iterator[list[int]]:
    """Start a client of two workers that keep rows; yield a list for the process number of the one killed before
    the first call for which `due` is true of the names of the calls so far, its own the last."""
    distributed = pytest.importorskip("distributed")
    from assay.scan.dask import Pinned

    calls: list[str] = []
    killed: list[int] = []
    each = Pinned.each

    def killing(pinned: Any, method: str, *arguments: Any) -> Any:
        calls.append(method)
        if not killed and due(calls):
            holder = pinned._holders[0][1]._address
            killed.append(client.run(os.getpid, workers=[holder])[holder])
            os.kill(killed[0], signal.SIGKILL)
        return each(pinned, method, *arguments)

    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pinned, "each", killing)
        yield killed
