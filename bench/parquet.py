"""Fit on a Parquet file larger than the memory the process may use.

The file is written first (at least 4 GiB uncompressed); then the learner is fitted in a process whose address space is
limited to 2 GiB above what the imports take, and its coefficients are compared with the true ones of the generator.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

console = Console(width=110)
GROUP = 100_000


def write(path: Path, rows: int, columns: int, learner: str) -> np.ndarray:
    """Write columns x0.. and y, a label for logistic regression and a number otherwise; return the true weights."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=columns) / np.sqrt(columns)
    names = [*(f"x{j}" for j in range(columns)), "y"]
    with pq.ParquetWriter(path, pa.schema([(name, pa.float64()) for name in names]), compression="none") as writer:
        for _ in range(0, rows, GROUP):
            X = rng.normal(size=(GROUP, columns))
            noise = rng.logistic(size=GROUP)
            y = X @ w + noise if learner == "LinearRegression" else (X @ w + noise > 0).astype(float)
            writer.write_table(pa.table([*X.T.copy(), y], names=names))
    return w


def child(path: str, learner: str, limit: int) -> None:
    """Fit in this process after limiting its address space; print seconds, distance to the truth and peak memory."""
    import assay.linear_model
    from assay import loops  # noqa: F401
    from assay.scan import parquet  # noqa: F401  imports come before the limit

    model = getattr(assay.linear_model, learner)()
    rng = np.random.default_rng(0)
    model.fit(rng.normal(size=(100, 28)), rng.integers(0, 2, 100))  # compiled loops too
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + limit, used + limit))
    began = time.perf_counter()
    model.fit(path, "y")
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    w = np.load(Path(path).with_suffix(".npy"))
    print(f"{seconds} {np.abs(model.coef_.ravel() - w).max()} {peak}")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench parquet", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=4.2)
    parser.add_argument("--columns", type=int, default=28)
    parser.add_argument("--limit", type=float, default=2.0, help="GiB of address space above the imports")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        child(*options.child, int(options.limit * 2**30))
        return
    rows = int(options.gigabytes * 2**30 / (8 * (options.columns + 1)) / GROUP + 1) * GROUP
    for learner in ("LinearRegression", "LogisticRegression"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.parquet"
            np.save(path.with_suffix(".npy"), write(path, rows, options.columns, learner))
            size = path.stat().st_size / 2**30
            command = [
                sys.executable,
                "-m",
                "bench",
                "parquet",
                "--limit",
                str(options.limit),
                "--child",
                str(path),
                learner,
            ]
            answer = subprocess.run(command, capture_output=True, text=True)
        if answer.returncode:
            sys.exit(f"{learner}: failed\n{answer.stderr[-2000:]}")
        seconds, error, peak = map(float, answer.stdout.split())
        console.print(
            f"{learner}: {rows} x {options.columns}, {size:.2f} GiB, "
            f"address space limited to {options.limit:g} GiB above the imports: "
            f"{seconds:.1f} s, largest error of a coefficient {error:.1e}, peak {peak:.2f} GiB resident"
        )
