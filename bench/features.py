"""What features and rows without labels are worth: accuracy on rows that nothing was fitted to.

    python -m bench features --only pictures     visual words against raw pixels, 10,000 pictures of clothes
    python -m bench features --only labels       50 labels: learners that read the other rows too, and one that does not

Real data are read as in `bench svm` (ASSAY_BENCH_DATA); without them `labels` has scikit-learn's tables alone. Means
over `--draws` draws of the labels; "wins" counts the draws in which a learner beats the supervised one.
"""

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from assay.feature_extraction import BagOfVisualWords
from assay.linear_model import LogisticRegression
from assay.semi_supervised import (
    EntropyLogisticRegression,
    GaussianEM,
    LabelPropagation,
    LabelSpreading,
    SelfTrainingClassifier,
)
from assay.svm import LinearSVC
from bench.svm import FOLDER, fashion

LABELS = 50


def csv_table(name: str, target: str, drop: tuple[str, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    """Return the numeric columns and the labels of a table; rows with gaps are left out."""
    with open(FOLDER / "tables" / f"{name}.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if "NA" not in row.values()]
    columns = [column for column in rows[0] if column not in (target, *drop)]
    return np.array([[float(row[c]) for c in columns] for row in rows]), np.array([row[target] for row in rows])


def tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return scikit-learn's tables, and those of the data folder that are there."""
    found = {
        "digits": load_digits(return_X_y=True),
        "breast cancer": load_breast_cancer(return_X_y=True),
        "wine": load_wine(return_X_y=True),
    }
    others: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
        "spam": lambda: csv_table("spam", "type"),
        "letters A to F": letters,
    }
    for name, read in others.items():
        try:
            found[name] = read()
        except OSError:
            Console().print(f"{name}: no data, left out")
    return found


def letters() -> tuple[np.ndarray, np.ndarray]:
    X, y = csv_table("LetterRecognition", "lettr")
    kept = np.isin(y, list("ABCDEF"))
    return X[kept], y[kept]


def learners(labels: int, others: int) -> dict[str, Any]:
    """Return the supervised learner, then those that read the other rows; settings are the same for all tables."""
    return {
        "logistic, labels only": LogisticRegression(),
        "entropy": EntropyLogisticRegression(alpha=0.2 * labels / others),
        "self-training": SelfTrainingClassifier(LogisticRegression(), threshold=0.9),
        "propagation": LabelPropagation("knn"),
        "spreading": LabelSpreading("knn", alpha=0.9),
        "gaussian EM": GaussianEM(covariance_type="diag", reg_covar=1e-1, weight=0.1),
    }


def few_labels(y: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return 50 of the rows, at least two of each class."""
    order = rng.permutation(rows)
    first = np.concatenate([order[y[order] == label][:2] for label in np.unique(y)])
    rest = order[~np.isin(order, first)]
    return np.concatenate([first, rest[: LABELS - len(first)]])


def with_few_labels(draws: int) -> Table:
    """Return the table of accuracies with 50 labels."""
    shown = Table("table", *learners(1, 1), title=f"accuracy on new rows, {LABELS} labels, {draws} draws (wins)")
    for name, (X, y) in tables().items():
        X = StandardScaler().fit_transform(X[:, X.std(axis=0) > 0])
        scores: dict[str, list[float]] = {}
        for draw in range(draws):
            rng = np.random.default_rng(draw)
            order = rng.permutation(len(y))[:1_500]
            held, rows = order[: len(order) // 3], order[len(order) // 3 :]
            marked = np.full(len(y), -1, dtype=object)
            own = few_labels(y, rows, rng)
            marked[own] = y[own]
            for kind, model in learners(len(own), len(rows) - len(own)).items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fit = own if kind.endswith("only") else rows
                    labels = y[own] if kind.endswith("only") else marked[rows]
                    right = model.fit(X[fit], labels).predict(X[held]) == y[held]
                scores.setdefault(kind, []).append(float(np.mean(right)))
        base = np.array(next(iter(scores.values())))
        cells = [f"{np.mean(s):.3f} ({int(np.sum(np.array(s) > base))})" for s in scores.values()]
        shown.add_row(name, *cells)
    return shown


def pictures(rows: int, words: int) -> None:
    """Print accuracy and seconds of linear machines on visual words and on raw pixels."""
    X, y = fashion("train", rows)
    Xt, yt = fashion("t10k", 5_000)
    X, Xt = (part / part.max() if part.max() > 1 else part for part in (X, Xt))
    bag = BagOfVisualWords(words, levels=2, size=8, step=2, random_state=0)
    contestants = {
        "visual words, linear machine": make_pipeline(bag, FunctionTransformer(np.sqrt), LinearSVC(C=1.0)),
        "pixels, linear machine": LinearSVC(C=0.01),
        "pixels, logistic": LogisticRegression(C=0.1, solver="lbfgs", tol=1e-6),
    }
    console = Console()
    console.print(f"{rows} pictures of clothes, 5,000 new ones")
    for name, model in contestants.items():
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        console.print(f"  {name:30} accuracy {model.score(Xt, yt):.4f}, {time.perf_counter() - start:.0f} s")


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench features", description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("pictures", "labels"))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000, help="pictures that are learnt from")
    parser.add_argument("--words", type=int, default=150)
    asked = parser.parse_args(argv)
    if asked.only != "labels":
        try:
            pictures(asked.rows, asked.words)
        except OSError as error:
            Console().print(f"pictures: left out ({error})")
    if asked.only != "pictures":
        Console(width=140).print(with_few_labels(asked.draws))
