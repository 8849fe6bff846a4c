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
from bench.harness import save

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


def one_split(table: Table, target: str, seconds: float, seed: int) -> dict[str, Any]:
    """Return the test error and the seconds of everybody on one outer split."""
    table = table.take(~table.column(target).missing)
    order = np.random.default_rng([7, seed]).permutation(table.n_rows)
    cut = round(0.7 * len(order))
    train, test = (table.take(np.sort(part)) for part in (order[:cut], order[cut:]))
    began = time.perf_counter()
    study = learn(train, target, time=seconds, seed=seed)
    spent = {"Assay": time.perf_counter() - began}
    test = test.take(study.model.own_rows(test))
    y = study.model.labels(test)
    loss = (lambda p: y != p) if study.task == "classify" else (lambda p: np.abs(y - p))
    losses = {"Assay": loss(study.model.predict(test))}
    features = train.split_target(target)[0]
    own = train.take(study.model.own_rows(train))
    encoding = Encoding.fit(features)
    X, labels, new = encoding.apply(own), study.model.labels(own), encoding.apply(test)
    for name, make in peers(study.task, seconds, seed).items():
        began = time.perf_counter()
        losses[name] = loss(make().fit(X, labels).predict(new))
        spent[name] = time.perf_counter() - began
    errors = {name: float(np.mean(values)) for name, values in losses.items()}
    clipped = losses["Assay"] if study.clip is None else np.minimum(losses["Assay"], study.clip)
    slack = 3 * float(np.std(clipped)) / np.sqrt(len(clipped))
    bound = study.chosen.bound
    return {
        "errors": errors, "seconds": spent, "bound": bound, "chosen": study.chosen.name, "held": study.rows[1],
        "task": study.task, "baseline": float(np.mean(loss(_constant(study, own, target)))),
        "violated": bool(bound is not None and clipped.mean() > bound + slack),
    }  # fmt: skip


def _constant(study: Any, own: Table, target: str) -> Any:
    from assay.learning.baseline import constant

    return constant(study.model.labels(own), study.task)


def proves_too_little(row: dict[str, Any]) -> bool:
    """Tell whether a bound of an error rate is not below the baseline's error although FLAML is better by five points
    and 200 rows or more were held out."""
    found = row["baseline"] - row["errors"].get("FLAML", np.inf) >= 0.05 and row["held"] >= 200
    return bool(found and row["task"] == "classify" and row["bound"] >= row["baseline"])


def ranks(errors: dict[str, float]) -> dict[str, float]:
    """Return the rank of each by its error; equals share the mean of their ranks."""
    from scipy.stats import rankdata

    return dict(zip(errors, rankdata(list(errors.values())).tolist()))


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench learn", description=__doc__)
    parser.add_argument("--tables", default="", help="names with commas; all if left out")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--time", type=float, default=60.0)
    options = parser.parse_args(words)
    warnings.simplefilter("ignore")
    found: list[dict[str, Any]] = []
    wanted = [name for name in options.tables.split(",") if name]
    for name, table, target in tables(wanted):
        for seed in range(options.splits):
            row = {"table": name, "split": seed, **one_split(table, target, options.time, seed)}
            found.append(row)
            bound = "none" if row["bound"] is None else f"{row['bound']:.4g}"
            listed = "  ".join(
                f"{who} {error:.4g} ({row['seconds'][who]:.0f} s)" for who, error in row["errors"].items()
            )
            mark = "  VIOLATED" if row["violated"] else ""
            print(
                f"{name} {seed}: bound {bound}  baseline {row['baseline']:.4g}  {listed}  [{row['chosen']}]{mark}",
                flush=True,
            )
    if not found:
        print("no table is there.")
        return
    names = [who for who in found[0]["errors"] if all(who in row["errors"] for row in found)]
    mean = {who: np.mean([ranks(row["errors"])[who] for row in found]) for who in names}
    print("mean ranks:", "  ".join(f"{who} {rank:.2f}" for who, rank in sorted(mean.items(), key=lambda one: one[1])))
    bounded = [row for row in found if row["bound"] is not None]
    late = sum(row["seconds"]["Assay"] > 1.1 * options.time for row in found)
    print(f"violated bounds: {sum(row['violated'] for row in found)} of {len(bounded)}; over time by 10 %: {late}")
    idle = [f"{row['table']} {row['split']}" for row in bounded if proves_too_little(row)]
    print("bounds not below the baseline where FLAML beats it by 5 points:", ", ".join(idle) or "none")
    save("learn", found)
