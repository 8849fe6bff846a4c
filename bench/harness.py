"""Run contestants in turn, score them alike, print ratios.

Times on a shared machine are noise; ratios within one run are less so. Every contestant is run once to warm up,
then all of them in turn, several rounds; the median counts. The judge computes the quality from the fitted model, so
that a contestant cannot be fast by stopping early unseen.
"""

import gc
import json
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


@dataclass
class Contestant:
    """A name, what to time, whether it is a peer to be compared with, and whether one run, timed, must do."""

    name: str
    run: Callable[[], Any]
    peer: bool = True
    once: bool = False


def touch_memory(gigabytes: float = 8.0) -> None:
    """Touch memory once, so that nobody pays for pages that the machine has never used."""
    buffers = [np.ones(2**27) for _ in range(int(gigabytes))]
    del buffers
    gc.collect()


def compare(
    title: str,
    contestants: list[Contestant],
    quality: Callable[[Any], float],
    *,
    better: str,
    repeats: int = 7,
    touched: float = 0.0,
) -> list[dict[str, Any]]:
    """Time the contestants in turn and print a table: median seconds, quality, ratio to Assay of these and of the
    processor's time, which others at work on the machine change less.

    `quality(result)` is computed here; `better` ("lower" or "higher") says which way it improves. So many gigabytes
    are touched before every run: a virtual machine hands freed pages back, and who asks for them next would pay.
    """
    results: dict[str, Any] = {}
    times: dict[str, list[float]] = {one.name: [] for one in contestants}
    worked: dict[str, list[float]] = {one.name: [] for one in contestants}
    for turn in range(repeats + 1):
        for one in contestants:
            if turn > 0 and one.once:
                continue
            touch_memory(touched)
            began, before = time.perf_counter(), time.process_time()
            results[one.name] = one.run()
            if turn > 0 or one.once:
                times[one.name].append(time.perf_counter() - began)
                worked[one.name].append(time.process_time() - before)
    work = {name: float(np.median(seconds)) for name, seconds in worked.items()}
    medians = {name: float(np.median(seconds)) for name, seconds in times.items()}
    ours = next(one.name for one in contestants if not one.peer)
    rows = [
        {
            "case": title,
            "name": one.name,
            "seconds": medians[one.name],
            "spread": float(np.ptp(times[one.name])),
            "quality": float(quality(results[one.name])),
            "ratio": medians[one.name] / medians[ours],
            "processor_seconds": work[one.name],
            "processor_ratio": work[one.name] / max(work[ours], 1e-9),
        }
        for one in contestants
    ]
    _print(title, rows, better)
    return rows


def _print(title: str, rows: list[dict[str, Any]], better: str) -> None:
    table = Table(title=title, title_justify="left")
    for name in ("", "median s", "spread s", f"quality ({better} is better)", "time / Assay's", "processor's"):
        table.add_column(name, justify="left" if not name else "right")
    for row in rows:
        numbers = (
            f"{row['seconds']:.4f}",
            f"{row['spread']:.4f}",
            f"{row['quality']:.12g}",
            f"{row['ratio']:.2f}",
            f"{row['processor_ratio']:.2f}",
        )
        table.add_row(row["name"], *numbers)
    Console(width=110).print(table)


def save(name: str, rows: list[dict[str, Any]]) -> Path:
    """Write the rows and the machine to results/NAME.json."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1))
    return path


def machine() -> dict[str, str]:
    """Return what a reader needs to know of the machine and the packages; no field is empty."""
    packages = ("numpy", "scipy", "scikit-learn", "numba", "scikit-learn-intelex")
    return {
        "processor": platform.processor() or platform.machine(),
        "system": platform.platform(),
        "python": platform.python_version(),
        **{package: _version(package) for package in packages},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
