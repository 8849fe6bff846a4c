"""Networks beside scikit-learn's: times in one run, the loss reached beside each time.

    python -m bench neural                 all cases
    python -m bench neural --only single   one of them

Both start from the same weights and visit the same rows in the same order, so the losses agree to rounding; a
contestant that did less would show it. `single` updates after every row.
"""

import argparse
import warnings
from typing import Any

import numpy as np
from rich.console import Console
from sklearn import neural_network as peer

from assay import neural_network as ours
from bench.harness import Contestant, compare, save, touch_memory

console = Console(width=110)


def table(n: int, d: int, dtype: type = np.float64, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of two classes with a curved border and some noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(dtype)
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.5 * X[:, 3]
    return X, (score + 0.3 * rng.normal(size=n) > 0).astype(np.int64)


def race(title: str, X: np.ndarray, y: np.ndarray, repeats: int, **params: Any) -> list[dict[str, Any]]:
    """Fit both; judge them by the loss of the last epoch."""
    params = {"random_state": 0, "tol": 0.0, "n_iter_no_change": np.inf, **params}
    runs = [
        Contestant("assay", lambda: ours.MLPClassifier(**params).fit(X, y), peer=False),
        Contestant("scikit-learn", lambda: peer.MLPClassifier(**params).fit(X, y)),
    ]
    rows = compare(title, runs, lambda model: model.loss_curve_[-1], better="lower", repeats=repeats)
    curves = [np.array(one.run().loss_curve_) for one in runs]
    console.print(f"   largest difference of the loss curves: {np.abs(curves[0] - curves[1]).max():.2g}\n")
    return rows


def case_tabular(repeats: int) -> list:
    title = "50,000 x 28, hidden (100,), batch 200, adam, 10 epochs; loss"
    return race(title, *table(50_000, 28), repeats, max_iter=10)


def case_images(repeats: int) -> list:
    title = "20,000 x 784, hidden (100,), batch 200, adam, 5 epochs; loss"
    return race(title, *table(20_000, 784), repeats, max_iter=5)


def case_float32(repeats: int) -> list:
    title = "20,000 x 784 in single precision, hidden (100,), batch 200, adam, 5 epochs; loss"
    return race(title, *table(20_000, 784, np.float32), repeats, max_iter=5)


def case_deep(repeats: int) -> list:
    title = "50,000 x 28, hidden (64, 64, 64), tanh, batch 200, adam, 5 epochs; loss"
    return race(title, *table(50_000, 28), repeats, max_iter=5, hidden_layer_sizes=(64, 64, 64), activation="tanh")


def case_single(repeats: int) -> list:
    rows = []
    for solver in ("sgd", "adam"):
        title = f"2,000 x 28, hidden (100,), one row per update, {solver}, 2 epochs; loss"
        rows += race(title, *table(2_000, 28), repeats, max_iter=2, batch_size=1, solver=solver)
    return rows


def case_lbfgs(repeats: int) -> list:
    title = "50,000 x 28, hidden (50,), tanh, L-BFGS, 30 iterations; loss"
    X, y = table(50_000, 28)
    params = {"solver": "lbfgs", "hidden_layer_sizes": 50, "activation": "tanh", "max_iter": 30, "random_state": 0}
    runs = [
        Contestant("assay", lambda: ours.MLPClassifier(**params).fit(X, y), peer=False),
        Contestant("scikit-learn", lambda: peer.MLPClassifier(**params).fit(X, y)),
    ]
    return compare(title, runs, lambda model: model.loss_, better="lower", repeats=repeats)


CASES = {name.removeprefix("case_"): run for name, run in list(globals().items()) if name.startswith("case_")}


def main(arguments: list[str]) -> None:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench neural", description=__doc__, formatter_class=about)
    parser.add_argument("--only", choices=sorted(CASES), nargs="+", help="some cases; all of them without it")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each contestant (default 3)")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    touch_memory(2.0)
    rows: list[dict] = []
    for name, run in CASES.items():
        if options.only is None or name in options.only:
            rows += run(options.repeats)
    console.print(f"written to {save('-'.join(['neural', *(options.only or [])]), rows)}")
