"""The main job beside its peers: test error, certified bound, baseline, seconds, mean ranks, violations.

The tables of ../shared/data (or the folder in ASSAY_BENCH_DATA) and the bundled ones, cut by seeds into outer training
rows (70 %) and test rows, which nobody sees. Assay and FLAML have the same seconds; LightGBM,
HistGradientBoosting, RandomForest and a linear pipeline run with their defaults on the same one-hot columns. Error:
share of wrong rows, or mean absolute error. A bound is violated if the test error is above it by more than three
standard errors of the test rows. Peers that are not installed are left out; FLAML, whose dependencies may want
other versions, is also found by the interpreter in ASSAY_BENCH_FLAML.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from assay import datasets
from assay.data import Encoding, Table, read
from assay.learning import learn
from assay.learning.model import target_values
from assay.learning.verdict import constant
from bench.harness import RESULTS, save

TABLES = Path(os.environ.get("ASSAY_BENCH_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "tables"
TARGETS = {
    "Soybean": "Class", "HouseVotes84": "Class", "BreastCancer": "Class", "Vehicle": "Class", "Sonar": "Class",
    "Ionosphere": "Class", "promotergene": "Class", "LetterRecognition": "lettr", "Glass": "Type", "spam": "type",
    "income": "INCOME", "Servo": "Class",
}  # fmt: skip


def tables(names: list[str]) -> Iterator[tuple[str, Table, str]]:
    """Yield name, table and target of those that are there."""
    for name, target in TARGETS.items():
        path = TABLES / f"{name}.csv"
        if path.exists() and (not names or name in names):
            with path.open(newline="", encoding="utf-8") as file:
                header = next(csv.reader(file))
            drop = ["Id"] if "Id" in header else []
            nominal = [target] if name == "Glass" else []
            yield name, read(path, nominal=nominal, drop=drop), target
    for name in datasets.names():
        if not names or name in names:
            yield name, datasets.load(name), datasets.TARGETS[name]


def peers(task: str, seconds: float, seed: int) -> dict[str, Callable[[], Any]]:
    """Return how to make each peer that is installed."""
    from sklearn import ensemble, linear_model

    end = "Classifier" if task == "classify" else "Regressor"
    linear: Any = (
        linear_model.LogisticRegression(max_iter=2000)
        if task == "classify"
        else linear_model.RidgeCV(np.logspace(-3, 4, 15))
    )
    found: dict[str, Callable[[], Any]] = {
        "HistGradientBoosting": lambda: getattr(ensemble, f"HistGradientBoosting{end}")(random_state=seed),
        "RandomForest": lambda: getattr(ensemble, f"RandomForest{end}")(random_state=seed, n_jobs=-1),
        "linear": lambda: linear,
    }
    try:
        import lightgbm

        found["LightGBM"] = lambda: getattr(lightgbm, f"LGBM{end}")(random_state=seed, verbose=-1)
    except ImportError:
        pass
    if _flaml_python():
        found["FLAML"] = lambda: _Flaml(task, seconds, seed)
    return found


@cache
def _flaml_python() -> str:
    """Return an interpreter that has FLAML: this one, or that of ASSAY_BENCH_FLAML; empty if there is none."""
    for python in (sys.executable, os.environ.get("ASSAY_BENCH_FLAML", "")):
        if python and not subprocess.run([python, "-c", "from flaml import AutoML"], capture_output=True).returncode:
            return python
    return ""


_FLAML = """
import json, sys, warnings, numpy, flaml
warnings.simplefilter("ignore")
folder, asked = sys.argv[1], json.loads(sys.argv[2])
X, y, new = (numpy.load(f"{folder}/{name}.npy", allow_pickle=False) for name in ("X", "y", "new"))
tool = flaml.AutoML()
tool.fit(X_train=X, y_train=y, **asked)
numpy.save(f"{folder}/predicted.npy", tool.predict(new))
"""


class _Flaml:
    """FLAML with the metric that is compared and the same seconds, in a process of its own: it pins other versions."""

    def __init__(self, task: str, seconds: float, seed: int) -> None:
        kind, metric = ("classification", "accuracy") if task == "classify" else ("regression", "mae")
        self.asked = {"task": kind, "metric": metric, "time_budget": seconds, "verbose": 0, "seed": seed}

    def fit(self, X: np.ndarray, y: np.ndarray) -> "_Flaml":
        self.X, (self.classes, self.y) = X, np.unique(y, return_inverse=True)
        if self.asked["task"] == "regression":
            self.y = y
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Fit and predict in one go."""
        with tempfile.TemporaryDirectory() as folder:
            for name, array in (("X", self.X), ("y", self.y), ("new", X)):
                np.save(Path(folder) / f"{name}.npy", array)
            command = [_flaml_python(), "-c", _FLAML, folder, json.dumps(self.asked)]
            clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            subprocess.run(command, check=True, capture_output=True, env=clean)
            predicted = np.load(Path(folder) / "predicted.npy", allow_pickle=False)
        return predicted if self.asked["task"] == "regression" else self.classes[predicted.astype(int)]


class Split:
    """Outer training and test rows of a table, and what a prediction of the test rows loses."""

    def __init__(self, table: Table, target: str, seed: int) -> None:
        table = table.take(~table.column(target).missing)
        order = np.random.default_rng([7, seed]).permutation(table.n_rows)
        cut = round(0.7 * len(order))
        self.train, test = (table.take(np.sort(part)) for part in (order[:cut], order[cut:]))
        self.task = "regress" if table.column(target).type.kind == "numeric" else "classify"
        self.labels, y = (target_values(part.column(target), self.task) for part in (self.train, test))
        known = np.ones(len(y), bool) if self.task == "regress" else np.isin(y, self.labels)
        self.test, self.y, self.target, self.seed = test.take(known), y[known], target, seed

    def losses(self, predicted: Any) -> np.ndarray:
        """Return the loss of each test row: wrong or not, or the absolute error."""
        return self.y != predicted if self.task == "classify" else np.abs(self.y - predicted)


def run_assay(split: Split, seconds: float) -> dict[str, Any]:
    """Return our test error, seconds, bound and choice on one outer split."""
    began = time.perf_counter()
    study = learn(split.train, split.target, time=seconds, seed=split.seed, task=split.task)
    spent = time.perf_counter() - began
    losses = split.losses(study.model.predict(split.test))
    clipped = losses if study.clip is None else np.minimum(losses, study.clip)
    slack = 3 * float(np.std(clipped)) / np.sqrt(len(clipped))
    bound = study.chosen.bound
    return {
        "error": float(np.mean(losses)), "seconds": spent, "bound": bound, "chosen": study.chosen.name,
        "held": study.rows[1], "violated": bool(bound is not None and clipped.mean() > bound + slack),
    }  # fmt: skip


def run_peer(split: Split, make: Callable[[], Any]) -> dict[str, Any]:
    """Return a peer's test error and seconds on one outer split, on one-hot columns."""
    features = split.train.split_target(split.target)[0]
    encoding = Encoding.fit(features)
    X, new = encoding.apply(split.train), encoding.apply(split.test)
    began = time.perf_counter()
    losses = split.losses(make().fit(X, split.labels).predict(new))
    return {"error": float(np.mean(losses)), "seconds": time.perf_counter() - began}


def one_split(split: Split, seconds: float, kept: dict[str, Any], wanted: list[str]) -> dict[str, Any]:
    """Return what everybody who is wanted reached on one outer split; what was kept of the others is added."""
    runs = dict(kept)
    contest = {"Assay": lambda: run_assay(split, seconds)}
    for name, make in peers(split.task, seconds, split.seed).items():
        contest[name] = lambda make=make: run_peer(split, make)
    for name, run in contest.items():
        if name in wanted or (not wanted and (name not in kept or name == "Assay")):
            runs[name] = run()
    return runs


def large_table(rows: int = 500_000, seed: int = 0) -> Table:
    """Return 28 columns, three of them nominal and two with gaps, and a label that some of them make."""
    random = np.random.default_rng(seed)
    columns: dict[str, Any] = {f"x{k}": random.normal(size=rows) for k in range(25)}
    for k, levels in enumerate((3, 12, 40)):
        columns[f"level{k}"] = np.array([f"v{i}" for i in range(levels)])[random.integers(levels, size=rows)]
    score = columns["x0"] * columns["x1"] + np.sin(2 * columns["x2"]) + (columns["level0"] == "v1")
    columns["y"] = np.where(score + random.normal(size=rows) > 0.5, "yes", "no")
    for name in ("x3", "x0"):
        columns[name][random.uniform(size=rows) < 0.05] = np.nan
    return read(columns)


def budgets(asked: list[float]) -> list[dict[str, Any]]:
    """Print how budgets are kept on 500,000 rows of 28 columns."""
    table, rows = large_table(), []
    for seconds in asked:
        began = time.perf_counter()
        study = learn(table, "y", time=seconds)
        spent, chosen = time.perf_counter() - began, study.chosen
        rows.append({"asked": seconds, "seconds": spent, "chosen": chosen.name, "bound": chosen.bound})
        print(
            f"500,000 x 28, {seconds:.0f} s asked for: {spent:.1f} s ({spent / seconds:.2f}), {chosen.name}, held-out "
            f"error {chosen.holdout_error:.4f}, at most {chosen.bound:.4f}", flush=True,
        )  # fmt: skip
    return rows


def proves_too_little(row: dict[str, Any]) -> bool:
    """Tell whether a bound of an error rate is not below the baseline's error although FLAML is better by five points
    and 200 rows or more were held out."""
    ours, theirs = row["runs"]["Assay"], row["runs"].get("FLAML", {"error": np.inf})
    found = row["baseline"] - theirs["error"] >= 0.05 and ours["held"] >= 200
    return bool(found and row["task"] == "classify" and ours["bound"] >= row["baseline"])


def ranks(errors: dict[str, float]) -> dict[str, float]:
    """Return the rank of each by its error; equals share the mean of their ranks."""
    from scipy.stats import rankdata

    return dict(zip(errors, rankdata(list(errors.values())).tolist()))


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench learn", description=__doc__)
    parser.add_argument("--tables", default="", help="names with commas; all if left out")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--time", type=float, default=60.0)
    parser.add_argument("--keep", action="store_true", help="peers' results of an earlier run are not measured again")
    parser.add_argument("--only", default="", help="who runs (Assay, FLAML, ...), with commas; all if left out")
    parser.add_argument("--budgets", default="", help="instead: seconds with commas, kept on 500,000 x 28 or not?")
    options = parser.parse_args(words)
    warnings.simplefilter("ignore")
    if options.budgets:
        save("learn-budgets", budgets([float(text) for text in options.budgets.split(",")]))
        return
    rows = _earlier(options.time) if options.keep else {}
    asked, only = (list(filter(None, text.split(","))) for text in (options.tables, options.only))
    for name, table, target in tables(asked):
        for seed in range(options.splits):
            split = Split(table, target, seed)
            runs = one_split(split, options.time, rows.get((name, seed), {}).get("runs", {}), only)
            baseline = float(np.mean(split.losses(constant(split.labels, split.task))))
            row = {"table": name, "split": seed, "time": options.time, "task": split.task, "baseline": baseline}
            rows[name, seed] = {**row, "runs": runs}
            print(_line(rows[name, seed]), flush=True)
            save("learn", list(rows.values()))
    _summary([row for row in rows.values() if "Assay" in row["runs"]], options.time)


def _earlier(seconds: float) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the rows of the last run with the same seconds."""
    path = RESULTS / "learn.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    return {(row["table"], row["split"]): row for row in rows if row["time"] == seconds}


def _line(row: dict[str, Any]) -> str:
    runs = row["runs"]
    parts = [f"{row['table']} {row['split']}: baseline {row['baseline']:.4g}"]
    parts += [f"{who} {run['error']:.4g} ({run['seconds']:.0f} s)" for who, run in runs.items()]
    if ours := runs.get("Assay"):
        bound = "none" if ours["bound"] is None else f"{ours['bound']:.4g}"
        parts.append(f"bound {bound} [{ours['chosen']}]" + (" VIOLATED" if ours["violated"] else ""))
    return "  ".join(parts)


def _summary(rows: list[dict[str, Any]], seconds: float) -> None:
    """Print mean ranks of those who ran everywhere, and how the bounds and the budget held."""
    if not rows:
        print("Assay ran on no table.")
        return
    names = [who for who in rows[0]["runs"] if all(who in row["runs"] for row in rows)]
    table = [ranks({who: row["runs"][who]["error"] for who in names}) for row in rows]
    mean = {who: np.mean([one[who] for one in table]) for who in names}
    print("mean ranks:", "  ".join(f"{who} {rank:.2f}" for who, rank in sorted(mean.items(), key=lambda one: one[1])))
    bounded = [row for row in rows if row["runs"]["Assay"]["bound"] is not None]
    violated = sum(row["runs"]["Assay"]["violated"] for row in bounded)
    late = sum(row["runs"]["Assay"]["seconds"] > 1.1 * seconds for row in rows)
    print(f"violated bounds: {violated} of {len(bounded)}; over time by 10 %: {late}")
    idle = [f"{row['table']} {row['split']}" for row in bounded if proves_too_little(row)]
    print("bounds not below the baseline where FLAML beats it by 5 points:", ", ".join(idle) or "none")
