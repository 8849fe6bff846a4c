"""Least squares, ridge and logistic regression beside scikit-learn and scikit-learn-intelex; certify and verify."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from typing import Any

import numpy as np
import sklearn.linear_model as sk
from rich.console import Console

import assay
from assay.linear_model import LinearRegression, LogisticRegression, Ridge
from bench.data import classification, regression
from bench.harness import Contestant, compare, save, touch_memory

console = Console(width=110)


def peers() -> Any:
    """Return scikit-learn-intelex's linear models, None if it is not installed."""
    try:
        import sklearnex.linear_model

        return sklearnex.linear_model
    except ImportError:
        console.print("scikit-learn-intelex is not installed: its rows are missing (pip install 'assay[bench]').")
        return None


def least_squares(X: np.ndarray, y: np.ndarray, repeats: int) -> list[dict]:
    contestants = [
        Contestant("assay", lambda: LinearRegression().fit(X, y), peer=False),
        Contestant("scikit-learn", lambda: sk.LinearRegression().fit(X, y)),
    ]
    if intelex := peers():
        contestants.append(Contestant("intelex", lambda: intelex.LinearRegression().fit(X, y)))

    def quality(model: Any) -> float:
        return float(np.sum((y - X @ model.coef_ - model.intercept_) ** 2))

    return compare(f"LinearRegression {X.shape}", contestants, quality, better="lower", repeats=repeats)


def ridge(X: np.ndarray, y: np.ndarray, repeats: int) -> list[dict]:
    contestants = [
        Contestant("assay", lambda: Ridge(1.0).fit(X, y), peer=False),
        Contestant("scikit-learn", lambda: sk.Ridge(1.0).fit(X, y)),
    ]
    if intelex := peers():
        contestants.append(Contestant("intelex", lambda: intelex.Ridge(1.0).fit(X, y)))

    def quality(model: Any) -> float:
        return float(np.sum((y - X @ model.coef_ - model.intercept_) ** 2) + np.sum(model.coef_**2))

    return compare(f"Ridge {X.shape}", contestants, quality, better="lower", repeats=repeats)


def logistic(X: np.ndarray, y: np.ndarray, repeats: int) -> list[dict]:
    contestants = [
        Contestant("assay newton", lambda: LogisticRegression().fit(X, y), peer=False),
        Contestant("assay lbfgs", lambda: LogisticRegression(solver="lbfgs").fit(X, y)),
        Contestant("scikit-learn lbfgs", lambda: sk.LogisticRegression().fit(X, y)),
        Contestant("scikit-learn lbfgs, tol=1e-6", lambda: sk.LogisticRegression(tol=1e-6).fit(X, y)),
        Contestant("scikit-learn newton-cholesky", lambda: sk.LogisticRegression(solver="newton-cholesky").fit(X, y)),
    ]
    if intelex := peers():
        contestants.append(Contestant("intelex lbfgs", lambda: intelex.LogisticRegression().fit(X, y)))

    def quality(model: Any) -> float:
        z = (X @ model.coef_.ravel() + model.intercept_[0]) * (2 * y - 1)
        return float(0.5 * np.sum(model.coef_**2) + np.logaddexp(0, -z).sum())

    return compare(f"LogisticRegression C=1 {X.shape}", contestants, quality, better="lower", repeats=repeats)


def certificates(cases: list[tuple[Any, np.ndarray, np.ndarray]], repeats: int) -> list[dict]:
    """Print fit, certify and verify beside each other; the verdict must hold."""
    rows = []
    for case in cases:
        model, X, y = case
        fit = _median(lambda: model.fit(X, y), repeats)
        certificate = model.certify(X, y)
        certify = _median(lambda: model.certify(X, y), repeats)
        report = assay.verify(certificate, model, X, y)
        verify = _median(lambda: assay.verify(certificate, model, X, y), max(3, repeats // 2))
        name = type(model).__name__
        console.print(
            f"{name:20s} fit {fit:.4f} s, certify {certify:.4f} s ({certify / fit:.2f} of the fit), "
            f"verify {verify:.4f} s ({verify / fit:.2f}); {'holds' if report.holds else report.reason}"
        )
        row = {"case": "certificate", "name": name, "fit": fit, "certify": certify, "verify": verify}
        rows.append({**row, "holds": report.holds})
    return rows


def growth(repeats: int) -> list[dict]:
    """Print how the time grows with ten times the rows, and the memory of a fit over the data."""
    rows = []
    for learner in (LinearRegression, LogisticRegression):
        make = regression if learner is LinearRegression else classification
        small, large = make(50_000, 28), make(500_000, 28)
        ratio = _median(lambda: learner().fit(*large), repeats) / _median(lambda: learner().fit(*small), repeats)
        memory = _peak_memory(learner.__name__)
        console.print(
            f"{learner.__name__:20s} ten times the rows: {ratio:.1f} times the time; "
            f"peak memory {memory:.2f} times the data"
        )
        rows.append({"case": "growth", "name": learner.__name__, "time": ratio, "memory": memory})
    return rows


def cold_start() -> list[dict]:
    """Print the cost of the import, and of the first fit with an empty compile cache."""
    code = "import sklearn, time; t = time.perf_counter(); import assay; print(time.perf_counter() - t)"
    extra = float(np.median([float(_python(code)) for _ in range(3)]))
    console.print(f"import assay: {extra:.3f} s on top of import sklearn")
    rows = [{"case": "import", "name": "assay", "seconds": extra}]
    for learner in ("LinearRegression", "Ridge", "LogisticRegression", "Perceptron"):
        seconds = float(_python(_FIRST_FIT.format(learner=learner), cold=True))
        console.print(f"first fit of {learner} with a cold compile cache: {seconds:.2f} s")
        rows.append({"case": "cold fit", "name": learner, "seconds": seconds})
    return rows


_FIRST_FIT = """
import time, warnings
import numpy as np
from sklearn.datasets import load_breast_cancer
warnings.simplefilter("ignore")
X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(0)) / X.std(0)
began = time.perf_counter()
from assay.linear_model import {learner}
{learner}().fit(X, y)
print(time.perf_counter() - began)
"""

_MEMORY = """
import gc
from bench.data import classification, regression
from assay.linear_model import {learner}

def status(name):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(name))

make = classification if "{learner}" == "LogisticRegression" else regression
{learner}().fit(*make(5_000, 28))
X, y = make(1_000_000, 28)
gc.collect()
before = status("VmRSS")
open("/proc/self/clear_refs", "w").write("5")  # the peak counts from here
{learner}().fit(X, y)
print(1 + (status("VmHWM") - before) / (X.nbytes + y.nbytes))
"""


def _peak_memory(learner: str) -> float:
    return float(_python(_MEMORY.format(learner=learner)))


def _python(code: str, *, cold: bool = False) -> str:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder} if cold else dict(os.environ)
        answer = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
    return answer.stdout.strip()


def _median(run: Any, repeats: int) -> float:
    run()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench linear", description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--columns", type=int, default=28)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="small data, two repeats: does it run?")
    options = parser.parse_args(arguments)
    n, repeats = (20_000, 2) if options.quick else (options.rows, options.repeats)
    warnings.simplefilter("ignore")
    touch_memory(1.0 if options.quick else 8.0)
    X, y = regression(n, options.columns)
    A, b = classification(n, options.columns)
    rows = [*least_squares(X, y, repeats), *ridge(X, y, repeats), *logistic(A, b, repeats)]
    rows += certificates([(LinearRegression(), X, y), (Ridge(), X, y), (LogisticRegression(), A, b)], repeats)
    if not options.quick:
        rows += growth(repeats) + cold_start()
    console.print(f"written to {save('linear', rows)}")
