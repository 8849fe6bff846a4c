"""What support vector machines take: memory beside the cache, time with half the cache, time for many rows.

    python -m bench svm_limits            all; --case memory, halved or large for one

Memory is the peak of a child process that fits, less what it held before the fit.
"""

import argparse
import multiprocessing
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.datasets import make_classification

from assay.svm import SVC
from bench.harness import save, touch_memory
from bench.svm import fashion

console = Console(width=110)
_ALLOWED = 300  # megabytes besides the cache


def _resident(name: str) -> float:
    """Return VmRSS (now) or VmHWM (the peak) of this process in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(name))) / 1e3


def _child(make: Callable, params: dict[str, Any], pipe: Any) -> None:
    warnings.simplefilter("ignore")
    X, y = make(20_000)
    SVC(**params).fit(X[:2000], y[:2000])  # what is imported and compiled is not the fit's
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before, began = _resident("VmRSS"), time.perf_counter()
    SVC(**params).fit(X, y)
    pipe.send((_resident("VmHWM") - before, time.perf_counter() - began))


def measured(make: Callable, **params: Any) -> tuple[float, float]:
    """Return megabytes and seconds of a fit in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(make, params, theirs))
    child.start()
    found = ours.recv()
    child.join()
    return found


def _images(rows: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = fashion("train", rows)
    return X, (y >= 5).astype(int)


def _columns(rows: int) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(rows, 50, random_state=0)


_DATA: dict[str, Callable] = {"20,000 x 50": _columns, "20,000 images": _images}


def case_memory() -> list[dict]:
    """Peak memory beside the data, for kernels that are kept (784 columns) and that are not (50)."""
    rows = []
    for title, make in _DATA.items():
        for cache in (100, 400):
            used, _ = measured(make, C=10.0, cache_size=cache)
            rows.append({"case": title, "cache_size": cache, "peak_mb": used, "allowed_mb": cache + _ALLOWED})
            console.print(f"{title}, cache_size={cache}: peak {used:.0f} MB over the data, allowed {cache + _ALLOWED}")
    return rows


def case_halved() -> list[dict]:
    """Time with a cache and with half of it."""
    rows = []
    for title, make in _DATA.items():
        for cache in (800, 400, 200, 100):
            seconds = measured(make, C=10.0, cache_size=cache)[1]
            rows.append({"case": title, "cache_size": cache, "seconds": seconds})
            console.print(f"{title}, cache_size={cache}: {seconds:.2f} s")
    return rows


def case_large() -> list[dict]:
    """100,000 x 20, and the certified gap."""
    X, y = make_classification(100_000, 20, random_state=0)
    began = time.perf_counter()
    model = SVC(C=1.0).fit(X, y)
    fitted = time.perf_counter()
    gap = model.certify(X, y).find("svm.gap").value
    done = time.perf_counter() - fitted
    console.print(
        f"100,000 x 20: fit {fitted - began:.1f} s, {len(model.support_)} support vectors, objective "
        f"{model.history_[-1].objective:.2f} certified within {gap:.3g} in {done:.1f} s"
    )
    return [{"case": "100,000 x 20", "seconds": fitted - began, "gap": float(gap), "certify": done}]


CASES = {"memory": case_memory, "halved": case_halved, "large": case_large}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench svm_limits", description=__doc__)
    parser.add_argument("--case", choices=sorted(CASES))
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    touch_memory(2.0)
    rows: list[dict] = []
    for name, run in CASES.items():
        if options.case in (None, name):
            try:
                rows += run()
            except FileNotFoundError as error:
                console.print(f"{name}: skipped, no data: {error}")
    console.print(f"written to {save('svm_limits' if options.case is None else f'svm_limits-{options.case}', rows)}")
