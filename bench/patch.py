"""Scripts written for scikit-learn, unchanged: as they are, and with Assay's classes.

    python -m bench patch                     the scripts of tests/patch_scripts as they stand
    python -m bench patch --rows 20000        with so many rows where a script makes its rows itself
    python -m bench patch --only k-means      those whose title has these words

Each script runs once to warm up and then in turn; the median counts. Numbers that differ by more than the script allows
are named, as is what fell back to scikit-learn's own classes.
"""

import argparse
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import Any

import matplotlib
import numpy as np
from rich.console import Console
from rich.table import Table

import assay
from bench.harness import save
from tests.patch_scripts import Script, scripts

console = Console(width=110)


class _Intel(AbstractContextManager[None]):
    def __enter__(self) -> None:
        from sklearnex import patch_sklearn

        patch_sklearn(verbose=False)

    def __exit__(self, *error: object) -> None:
        from sklearnex import unpatch_sklearn

        unpatch_sklearn()


def contestants() -> dict[str, Callable[[], AbstractContextManager[Any]]]:
    """Return in which surroundings a script runs."""
    found: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "scikit-learn": nullcontext,
        "Assay": assay.patch_sklearn,
    }
    return {**found, "sklearnex": _Intel} if find_spec("sklearnex") else found


def measure(script: Script, rows: int | None, repeats: int) -> dict[str, Any]:
    """Return the median seconds of each contestant, whether the numbers agree, and what fell back."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants()}
    found: dict[str, np.ndarray] = {}
    fallen: dict[str, Any] = {}
    for turn in range(repeats + 1):
        for name, surroundings in contestants().items():
            with surroundings():
                began = time.perf_counter()
                found[name] = script.run(rows)
                seconds[name] += [time.perf_counter() - began] if turn else []
                fallen = assay.patch.report().fallen_back if name == "Assay" else fallen
    medians = {name: float(np.median(times)) for name, times in seconds.items()}
    ours, theirs = found["Assay"], found["scikit-learn"]
    equal = ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=script.rtol, atol=script.atol)
    return {"case": script.title, **medians, "equal": bool(equal), "fallen_back": fallen}


def _print(rows: list[dict[str, Any]]) -> None:
    others = [name for name in contestants() if name != "scikit-learn"]
    table = Table(title="Scripts for scikit-learn, unchanged", title_justify="left")
    for name in (
        "script",
        "scikit-learn s",
        *(f"{one} s" for one in others),
        *(f"{one} times faster" for one in others),
    ):
        table.add_column(name, justify="left" if name == "script" else "right")
    table.add_column("numbers")
    for row in rows:
        times = [f"{row[name]:.3f}" for name in ("scikit-learn", *others)]
        ratios = [f"{row['scikit-learn'] / row[name]:.2f}" for name in others]
        told = "equal" if row["equal"] else "differ"
        table.add_row(row["case"], *times, *ratios, told + (", fell back" if row["fallen_back"] else ""))
    console.print(table)
    for name in others:
        ratios = [row["scikit-learn"] / row[name] for row in rows]
        total = sum(row["scikit-learn"] for row in rows) / sum(row[name] for row in rows)
        console.print(f"{name}: median {np.median(ratios):.2f} times faster, total {total:.2f}, of {len(rows)} scripts")


def main(arguments: list[str]) -> None:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench patch", description=__doc__, formatter_class=about)
    parser.add_argument("--rows", type=int, help="rows that scripts make (default: as written)")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each (default 3)")
    parser.add_argument("--only", default="", help="scripts whose title has these words")
    options = parser.parse_args(arguments)
    matplotlib.use("agg")
    rows = [measure(one, options.rows, options.repeats) for one in scripts() if options.only in one.title]
    _print(rows)
    console.print(f"written to {save('patch', rows)}")
