"""Histogram boosting on a Dask cluster of worker processes on this machine, beside xgboost.dask and lightgbm.dask.

For each number of workers: seconds, processor seconds of the client and of the busiest worker, bytes that the workers
fetched from each other, bytes through the loopback interface (of everything on this machine), peak memory of the client
and of a worker, and whether the model has the bits of the first one. Rows are drawn on the workers and stay there. On a
machine that others use too, compare the processor seconds of the busiest process.
"""

import argparse
import hashlib
import resource
import time
from importlib.util import find_spec
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from rich.console import Console
from rich.table import Table

console = Console(width=140)


class Used(NamedTuple):
    """What the processes have used so far."""

    seconds: float
    client: float
    workers: dict[str, float]  # processor seconds
    fetched: int
    loopback: int

    @classmethod
    def now(cls, client: Client) -> "Used":
        fetched = client.run(lambda dask_worker: dask_worker.transfer_incoming_bytes_total)
        return cls(
            time.perf_counter(), time.process_time(), client.run(time.process_time), sum(fetched.values()), _loopback()
        )


def _loopback() -> int:
    import psutil

    return psutil.net_io_counters(pernic=True)["lo"].bytes_sent


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def assay_model(iterations: int) -> Any:
    from assay.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=iterations, early_stopping=False, random_state=0)


def xgboost_model(iterations: int) -> Any:
    from xgboost.dask import DaskXGBClassifier

    return DaskXGBClassifier(
        n_estimators=iterations,
        max_leaves=31,
        max_depth=0,
        grow_policy="lossguide",
        learning_rate=0.1,
        tree_method="hist",
    )


def lightgbm_model(iterations: int) -> Any:
    from lightgbm import DaskLGBMClassifier

    return DaskLGBMClassifier(
        n_estimators=iterations, num_leaves=31, learning_rate=0.1, verbose=-1, tree_learner="data"
    )


MODELS = {"assay": assay_model, "xgboost": xgboost_model, "lightgbm": lightgbm_model}


def data(rows: int, columns: int, chunk: int) -> tuple[Any, Any]:
    """Return rows and labels, computed on the workers and kept there."""
    rng = da.random.default_rng(0)
    X = rng.normal(size=(rows, columns), chunks=(chunk, columns))
    noise = rng.normal(size=rows, chunks=chunk)
    y = (X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * noise > 0).astype(np.int64)
    X, y = dask.persist(X, y)
    wait([X, y])
    return X, y


def bits(model: Any) -> str:
    """Return a digest of an Assay model's trees; of a peer's nothing."""
    if not hasattr(model, "trees_"):
        return "-"
    digest = hashlib.sha256()
    for name in sorted(model.trees_):
        digest.update(np.ascontiguousarray(model.trees_[name]).tobytes())
    return digest.hexdigest()[:12]


def measure(name: str, workers: int, options: argparse.Namespace) -> list[str]:
    """Return a row of the table."""
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    )
    with cluster, Client(cluster) as client:
        client.wait_for_workers(workers)
        X, y = data(options.rows, options.columns, options.chunk)
        MODELS[name](2).fit(X, y)  # compiles, at full size
        peak, before = _peak(), Used.now(client)
        model = MODELS[name](options.iterations).fit(X, y)
        after = Used.now(client)
        busy = max(after.workers[w] - before.workers[w] for w in before.workers)
        return [
            name,
            str(workers),
            f"{after.seconds - before.seconds:.1f}",
            f"{after.client - before.client:.2f}",
            f"{busy:.2f}",
            f"{(after.fetched - before.fetched) / 1e6:.1f}",
            f"{(after.loopback - before.loopback) / 1e6:.0f}",
            f"{peak:.0f} + {_peak() - peak:.0f}",
            f"{max(client.run(_peak).values()):.0f}",
            bits(model),
        ]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench scale", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--columns", type=int, default=28)
    parser.add_argument("--chunk", type=int, default=100_000, help="rows of a partition")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", choices=list(MODELS), nargs="+", default=list(MODELS))
    options = parser.parse_args(arguments)
    dask.config.set({"xgboost.scheduler_address": "127.0.0.1"})
    heads = ("", "workers", "s", "client CPU s", "busiest worker CPU s", "fetched MB", "loopback MB", "client MB")
    table = Table(*heads, "worker MB", "bits", title=f"{options.rows} x {options.columns}, {options.iterations} rounds")
    for name in options.only:
        if find_spec(name) is None:
            console.print(f"{name} is not installed")
            continue
        for workers in options.workers:
            table.add_row(*measure(name, workers, options))
    console.print(table)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
