"""Trees, forests and boosting beside their peers: times in one run, with the quality reached beside each time.

    python -m bench trees --only forest         one case; without --only all of them

Peers that are not installed are left out. `memory` fits boosting in a process of its own and prints how far the
resident memory rises above what the process held with the raw input; it reads /proc and runs on Linux alone.
"""

import argparse
import importlib
import importlib.util
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from bench.harness import Contestant, compare, save, touch_memory

console = Console(width=110)


def table(n_train: int, n_test: int, d: int = 28, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Return training and test rows of a made-up two-class problem with interactions, ties and noise."""
    rng = np.random.default_rng(seed)
    n = n_train + n_test
    X = rng.normal(size=(n, d))
    X[:, 5:10] = np.exp(0.7 * X[:, 5:10])
    X[:, 20:] = np.round(4 * X[:, 20:]) / 4
    score = (
        (X[:, 0] + 0.7) * (X[:, 1] + 0.7)
        + np.sin(2 * X[:, 2])
        + 0.5 * np.abs(X[:, 3]) * X[:, 4]
        + np.log1p(X[:, 5]) * X[:, 6]
    )
    score += 0.7 * (X[:, 7] > 1.2) + 0.15 * X[:, 10:20].sum(axis=1) + 0.2 * X[:, 21] - 1.2
    y = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(np.int64)
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


def clusters(n_train: int, n_test: int, d: int = 28, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Return training and test rows of two classes that are clouds of points, a second kind of problem."""
    from sklearn.datasets import make_classification

    X, y = make_classification(n_train + n_test, d, n_informative=14, n_clusters_per_class=4, random_state=seed)
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


def peers_of(case: str) -> dict[str, Callable[[], Any]]:
    """Return how each contestant of a case makes its unfitted model; ours first."""
    makers = {name: make for name, make in PEERS[case].items() if _installed(name)}
    return {"assay": OWN[case], **makers}


def _installed(name: str) -> bool:
    package = {"lightgbm": "lightgbm", "xgboost": "xgboost", "scikit-learn-intelex": "sklearnex"}.get(name, "sklearn")
    return importlib.util.find_spec(package) is not None


def _make(module: str, name: str, **params: Any) -> Callable[[], Any]:
    return lambda: getattr(importlib.import_module(module), name)(**params)


OWN = {
    "boosting": _make("assay.ensemble", "HistGradientBoostingClassifier", early_stopping=False, random_state=0),
    "tree": _make("assay.tree", "DecisionTreeClassifier"),
    "forest": _make("assay.ensemble", "RandomForestClassifier", random_state=0),
    "numbers": _make("assay.ensemble", "RandomForestRegressor", n_estimators=20, random_state=0),
    "adaboost": _make("assay.ensemble", "AdaBoostClassifier", n_estimators=100),
    "c45": _make("assay.tree", "C45"),
}
PEERS: dict[str, dict[str, Callable[[], Any]]] = {
    "boosting": {
        "lightgbm": _make("lightgbm", "LGBMClassifier", n_jobs=2, verbose=-1, max_bin=255),
        "xgboost": _make(
            "xgboost",
            "XGBClassifier",
            n_estimators=100,
            learning_rate=0.1,
            max_leaves=31,
            max_depth=0,
            grow_policy="lossguide",
            tree_method="hist",
            max_bin=255,
            n_jobs=2,
        ),
        "scikit-learn (histogram)": _make(
            "sklearn.ensemble", "HistGradientBoostingClassifier", early_stopping=False, max_iter=100
        ),
    },
    "tree": {"scikit-learn": _make("sklearn.tree", "DecisionTreeClassifier", random_state=0)},
    "forest": {
        "scikit-learn": _make("sklearn.ensemble", "RandomForestClassifier", n_jobs=2, random_state=0),
        "scikit-learn-intelex": _make("sklearnex.ensemble", "RandomForestClassifier", n_jobs=2, random_state=0),
    },
    "numbers": {
        "scikit-learn": _make("sklearn.ensemble", "RandomForestRegressor", n_estimators=20, n_jobs=2, random_state=0),
        "scikit-learn-intelex": _make(
            "sklearnex.ensemble", "RandomForestRegressor", n_estimators=20, n_jobs=2, random_state=0
        ),
    },
    "adaboost": {"scikit-learn": _make("sklearn.ensemble", "AdaBoostClassifier", n_estimators=100, random_state=0)},
    "c45": {
        "scikit-learn (entropy)": _make("sklearn.tree", "DecisionTreeClassifier", criterion="entropy", random_state=0)
    },
}


def log_loss(p: np.ndarray, y: np.ndarray) -> float:
    return float(-np.mean(np.log(np.clip(p[np.arange(len(y)), y], 1e-15, 1))))


def race(case: str, title: str, data: tuple[np.ndarray, ...], repeats: int) -> list:
    """Fit all contestants of a case; judge them by test log loss (boosting) or test accuracy."""
    X, y, Xt, yt = data
    runs = [
        Contestant(name, lambda make=make: make().fit(X, y), peer=name != "assay")
        for name, make in peers_of(case).items()
    ]
    if case == "boosting":
        return compare(title, runs, lambda m: log_loss(m.predict_proba(Xt), yt), better="lower", repeats=repeats)
    if case == "numbers":
        return compare(title, runs, lambda m: float(m.score(Xt, yt)), better="higher", repeats=repeats)
    return compare(title, runs, lambda m: float(np.mean(m.predict(Xt) == yt)), better="higher", repeats=repeats)


def case_boosting(repeats: int) -> list:
    title = "boosting: 500,000 x 28, 100 trees of 31 leaves, 255 bins; test log loss"
    return race("boosting", title, table(500_000, 100_000), repeats)


def case_losses(repeats: int) -> list:
    """Two other seeds and a second kind of data, once each: the quality counts."""
    rows = []
    for name, draw, seed in (
        ("table", table, 1),
        ("table", table, 2),
        ("clusters", clusters, 0),
        ("clusters", clusters, 1),
    ):
        data = draw(200_000, 100_000, seed=seed)
        rows += race("boosting", f"boosting: {name}, seed {seed}, 200,000 x 28; test log loss", data, 1)
    return rows


def case_predict(repeats: int) -> list:
    X, y, Xt, yt = table(50_000, 500_000)
    fitted = {name: make().fit(X, y) for name, make in peers_of("boosting").items()}
    runs = [
        Contestant(name, lambda model=model: model.predict_proba(Xt), peer=name != "assay")
        for name, model in fitted.items()
    ]
    title = "prediction: probabilities of 500,000 rows by 100 trees of 31 leaves; log loss"
    return compare(title, runs, lambda p: log_loss(p, yt), better="lower", repeats=repeats)


def case_tree(repeats: int) -> list:
    return race("tree", "one exact tree: 100,000 x 28; test accuracy", table(100_000, 50_000), repeats)


def case_forest(repeats: int) -> list:
    return race("forest", "forest: 100 trees, 50,000 x 28; test accuracy", table(50_000, 50_000), repeats)


def case_numbers(repeats: int) -> list:
    """Predict the score behind the labels, with noise."""
    X, _, Xt, _ = table(50_000, 20_000)
    rng = np.random.default_rng(5)
    y, yt = (
        (Z[:, 0] + 0.7) * (Z[:, 1] + 0.7) + np.sin(2 * Z[:, 2]) + np.abs(Z[:, 3]) * Z[:, 4] + rng.normal(size=len(Z))
        for Z in (X, Xt)
    )
    return race("numbers", "regression forest: 20 trees, 50,000 x 28; test R^2", (X, y, Xt, yt), min(repeats, 1))


def case_adaboost(repeats: int) -> list:
    return race("adaboost", "AdaBoost: 100 stumps, 50,000 x 28; test accuracy", table(50_000, 50_000), repeats)


def case_stumps(repeats: int) -> list:
    """Compare the stumps of both AdaBoosts, round by round."""
    X, y, _, _ = table(50_000, 1)
    own, peer = OWN["adaboost"]().fit(X, y), PEERS["adaboost"]["scikit-learn"]().fit(X, y)
    found = [_same_stump(X, own, peer, t) for t in range(len(peer.estimators_))]
    gap = float(np.abs(own.estimator_errors_ - peer.estimator_errors_).max())
    title = "AdaBoost: 100 stumps, 50,000 x 28; rounds with the stump of scikit-learn"
    console.print(f"{title}: {sum(found)} of {len(found)}; weighted errors differ by at most {gap:.1e}")
    return [{"case": title, "name": "assay", "same": sum(found), "rounds": len(found), "gap": gap}]


def case_lpboost(repeats: int) -> list:
    """Fit LPBoost as it comes beside AdaBoost of as many stumps: errors, and how far the margin is proved."""
    from time import perf_counter

    from assay.ensemble import LPBoost

    rows = []
    for name, draw in (("table", table), ("clusters", clusters)):
        X, y, Xt, yt = draw(3_000, 3_000)
        start = perf_counter()
        own = LPBoost().fit(X, y)
        seconds = perf_counter() - start
        boosted = _make("assay.ensemble", "AdaBoostClassifier")().fit(X, y)
        wrong = [[float(np.mean(m.predict(Z) != z)) for Z, z in ((X, y), (Xt, yt))] for m in (own, boosted)]
        title = f"LPBoost: {name}, 3,000 x 28, 50 stumps"
        console.print(
            f"{title}: {seconds:.2f} s, errors {wrong[0][0]:.3f} and {wrong[0][1]:.3f} on new rows (AdaBoost "
            f"{wrong[1][0]:.3f}, {wrong[1][1]:.3f}); soft margin {own.margin_:.4f} of at most {own.margin_bound_:.4f}"
        )
        rows.append({"case": title, "name": "assay", "seconds": seconds, "errors": wrong, "gap": own.gap_})
    return rows


def _same_stump(X: np.ndarray, own: Any, peer: Any, t: int) -> bool:
    """Tell whether round t has the same column, the same rows on both sides and the same classes there.

    scikit-learn reads X in single precision, so that its threshold may differ in the last digits.
    """
    nodes, other = own.nodes_, peer.estimators_[t].tree_
    root = nodes.root[t]
    child = nodes.child[root]
    if nodes.column[root] != other.feature[0]:
        return False
    column = X[:, other.feature[0]]
    left, theirs = column <= nodes.threshold[root], column.astype(np.float32) <= other.threshold[0]
    classes = [nodes.value[child + side].argmax() for side in (0, 1)]
    return bool((left == theirs).all()) and classes == [other.value[side].argmax() for side in (1, 2)]


def case_c45(repeats: int) -> list:
    return race("c45", "C4.5: 9,000 x 28, continuous; test accuracy", table(9_000, 9_000), repeats)


def case_memory(repeats: int) -> list:
    rows = []
    for name in peers_of("boosting"):
        command = [sys.executable, "-c", f"from bench.trees import rise; print(rise({name!r}))"]
        folder = Path(__file__).resolve().parents[1]
        rose = float(subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.split()[-1])
        raw, binned = 500_000 * 28 * 8 / 2**20, 500_000 * 28 / 2**20
        share = (raw + rose) / (raw + binned)
        rows.append({"case": "memory of boosting, 500,000 x 28", "name": name, "rise": rose, "share": share})
        console.print(
            f"memory of boosting, 500,000 x 28: {name:24s} rises by {rose:6.1f} MB, {rose / binned:.2f} times the bins "
            f"({binned:.1f} MB); with the raw input ({raw:.0f} MB) {share:.2f} times raw input and bins"
        )
    return rows


def rise(name: str) -> float:
    """Return by how many megabytes the resident memory of this process rises while a model is fitted."""
    X, y, _, _ = (np.ascontiguousarray(part) for part in table(500_000, 1))
    make = peers_of("boosting")[name]
    make().fit(X[:1000], y[:1000])
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    make().fit(X, y)
    return _memory("VmHWM") - before


def _memory(field: str) -> float:
    """Return a figure of /proc/self/status in megabytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024


CASES = {name.removeprefix("case_"): run for name, run in list(globals().items()) if name.startswith("case_")}


def main(arguments: list[str]) -> None:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench trees", description=__doc__, formatter_class=about)
    parser.add_argument("--only", choices=sorted(CASES), nargs="+", help="some cases; all of them without it")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each contestant (default 3)")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    touch_memory(4.0)
    rows: list[dict] = []
    for name, run in CASES.items():
        if options.only is None or name in options.only:
            rows += run(options.repeats)
    console.print(f"written to {save('-'.join(['trees', *(options.only or [])]), rows)}")
