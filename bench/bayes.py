"""Naive Bayes beside scikit-learn's: fits and predictions on many rows, accuracy on tables with gaps.

    python -m bench bayes --only gaussian       one case; without --only all of them
    python -m bench bayes --tables FOLDER       ten-fold accuracy on HouseVotes84.csv and Soybean.csv of that folder

The judge computes the mean log-posterior of the true class, by SciPy's densities and plain counting.
"""

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Contestant, compare, save, touch_memory

ROWS, COLUMNS = 500_000, 28
SPEED = ("gaussian", "categorical", "multinomial", "aode")
TABLES = ("HouseVotes84", "Soybean")


def rows_of(case: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of two classes: normal numbers, or levels 0 to 7 (as integers), or counts."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, ROWS)
    if case == "gaussian":
        return rng.normal(size=(ROWS, COLUMNS)) + 0.3 * y[:, None], y
    if case == "multinomial":
        return rng.poisson(1.0 + 0.2 * y[:, None] * (np.arange(COLUMNS) % 3), size=(ROWS, COLUMNS)).astype(float), y
    X = rng.integers(0, 8, size=(ROWS, COLUMNS))
    return np.where(rng.uniform(size=X.shape) < 0.2 * y[:, None], X // 2, X), y


def quality(X: np.ndarray, y: np.ndarray) -> Callable[[Any], float]:
    """Return the mean log-posterior of the true class of the first rows, from probabilities or a model."""

    def judge(found: Any) -> float:
        P = found.predict_log_proba(X[:20_000]) if hasattr(found, "predict_log_proba") else found[:20_000]
        return float(P[np.arange(20_000), y[:20_000]].mean())

    return judge


def speed(case: str, repeats: int) -> list[dict[str, Any]]:
    """Time a fit, and the log-probabilities of all rows."""
    import sklearn.naive_bayes as peers

    from assay import naive_bayes as own

    X, y = rows_of(case)
    name = {"gaussian": "GaussianNB", "categorical": "CategoricalNB", "multinomial": "MultinomialNB"}[case]
    judge, found = quality(X, y), []
    ours, theirs = (getattr(room, name) for room in (own, peers))
    fitted = ours().fit(X, y), theirs().fit(X, y)
    for what, run in (
        ("fit", (lambda: ours().fit(X, y), lambda: theirs().fit(X, y))),
        ("predict_log_proba", tuple((lambda model=model: model.predict_log_proba(X)) for model in fitted)),
    ):
        contestants = [Contestant("assay", run[0], peer=False), Contestant("scikit-learn", run[1])]
        title = f"{name}, {what}: {ROWS:,} x {COLUMNS}"
        found += compare(title, contestants, judge, better="higher", repeats=repeats)
    return found


def pairs(repeats: int) -> list[dict[str, Any]]:
    """Time AODE, which no peer has, beside CategoricalNB."""
    import sklearn.naive_bayes as peers

    from assay.naive_bayes import AODE, TAN

    X, y = rows_of("categorical")
    levels = list(range(COLUMNS))
    return compare(
        f"AODE and TAN, fit: {ROWS:,} x {COLUMNS} of 8 levels; the peer is naive",
        [
            Contestant("assay AODE", lambda: AODE(nominal=levels).fit(X, y), peer=False),
            Contestant("assay TAN", lambda: TAN(nominal=levels).fit(X, y), peer=False),
            Contestant("scikit-learn CategoricalNB", lambda: peers.CategoricalNB().fit(X, y)),
        ],
        quality(X, y),
        better="higher",
        repeats=repeats,
    )


def accuracy(folder: Path) -> list[dict[str, Any]]:
    """Print ten-fold accuracy of learners that read the table as it is, and of naive Bayes on one-hot columns."""
    import pandas as pd
    from sklearn.model_selection import StratifiedKFold
    from sklearn.naive_bayes import BernoulliNB, MultinomialNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    from assay.naive_bayes import A2DE, AODE, SPODE, TAN, MixedNB

    def one_hot(last: Any) -> Callable[[], Any]:
        return lambda: make_pipeline(OneHotEncoder(handle_unknown="ignore"), last())

    found = []
    for name in TABLES:
        table = pd.read_csv(folder / f"{name}.csv", dtype=str)
        y = table.pop("Class").to_numpy()
        filled = table.astype(object).where(table.notna(), "?")
        folds = list(StratifiedKFold(10, shuffle=True, random_state=0).split(table, y))
        contestants = {one.__name__: (one, table) for one in (MixedNB, SPODE, TAN, AODE, A2DE)}
        contestants |= {
            "one-hot BernoulliNB": (one_hot(BernoulliNB), filled),
            "one-hot MultinomialNB": (one_hot(MultinomialNB), filled),
        }
        for label, (make, rows) in contestants.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scores = [make().fit(rows.iloc[a], y[a]).score(rows.iloc[b], y[b]) for a, b in folds]
            print(f"{name:14s} {label:24s} ten-fold accuracy {np.mean(scores):.4f}", flush=True)
            found.append({"case": name, "contestant": label, "accuracy": float(np.mean(scores))})
    return found


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench bayes", description=__doc__)
    parser.add_argument("--only", choices=SPEED)
    parser.add_argument("--tables", type=Path, help="folder with HouseVotes84.csv and Soybean.csv")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    found: list[dict[str, Any]] = []
    if options.tables is not None:
        found += accuracy(options.tables)
    if options.tables is None or options.only:
        touch_memory(1)
        for case in [options.only] if options.only else SPEED:
            found += pairs(options.repeats) if case == "aode" else speed(case, options.repeats)
    save("bayes", found)
