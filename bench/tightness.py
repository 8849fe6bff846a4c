"""How close are certified bounds to the error on test rows? For each data set, learner and claim.

    python -m bench tightness [--only spam] [--learners LogisticRegression,RandomForestClassifier]

A quarter of the rows is kept for testing and takes no part in any bound: bounds come from the training rows alone,
share delta = 0.05 within a certificate, and each certificate is verified. Nominal columns are one-hot over the levels
of the data set's description, and missing values a level of their own, so nothing is fitted to the training rows.
"""

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_digits

import assay
from assay.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from assay.ensemble import AdaBoostClassifier, ForestCommitteeClassifier, RandomForestClassifier
from assay.linear_model import LogisticRegression, SGDClassifier, VotedPerceptron
from assay.model_selection import CrossValidated
from assay.svm import SVC
from assay.tree import DecisionTreeClassifier

TABLES = Path(os.environ.get("ASSAY_DATA", Path(__file__).parents[2] / "shared" / "data")) / "tables"
TARGETS = {
    "BreastCancer": "Class", "Glass": "Type", "HouseVotes84": "Class", "Ionosphere": "Class",
    "LetterRecognition": "lettr", "Sonar": "Class", "Soybean": "Class", "Vehicle": "Class", "income": "INCOME",
    "promotergene": "Class", "spam": "type",
}  # fmt: skip
FEW = 500  # rows below which no goal is set
DELTA = 0.05


@dataclass
class Line:
    """One bound of one learner on one data set."""

    data: str
    rows: int
    learner: str
    claim: str
    bound: float
    error: float

    @property
    def excess(self) -> float:
        return self.bound - self.error


def tables() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield the classification tables that are there, and those bundled with scikit-learn."""
    yield "breast_cancer", *load_breast_cancer(return_X_y=True)
    yield "digits", *load_digits(return_X_y=True)
    for name, target in TARGETS.items():
        if (TABLES / f"{name}.csv").exists():
            yield name, *read(TABLES / f"{name}.csv", target)


def read(path: Path, target: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a table as numbers: nominal columns one-hot, missing values marked."""
    import pandas as pd

    frame = pd.read_csv(path).drop(columns="Id", errors="ignore").dropna(subset=[target])
    y = frame.pop(target).astype(str).to_numpy()
    nominal = [name for name in frame if frame[name].dtype.kind == "O" or frame[name].nunique() <= 3]
    numbers = frame.drop(columns=nominal).astype(float)
    missing = numbers.isna()
    parts = [numbers.fillna(0.0), missing.loc[:, missing.any()].astype(float)]
    parts += [pd.get_dummies(frame[nominal].astype(str)).astype(float)] if nominal else []
    return np.ascontiguousarray(np.concatenate([part.to_numpy() for part in parts], axis=1)), y


def learners(classes: int, columns: int) -> Iterator[tuple[str, Any]]:
    """Yield the learners that are compared; those whose bounds are about two classes only for two."""
    yield "LogisticRegression", LogisticRegression()
    yield "LinearDiscriminantAnalysis", LinearDiscriminantAnalysis()
    yield "DecisionTree, 16 leaves", DecisionTreeClassifier(max_leaf_nodes=16)
    yield "DecisionTree, 4 leaves, short", DecisionTreeClassifier(max_leaf_nodes=4, thresholds="short")
    yield "RandomForest, 100 trees", RandomForestClassifier(n_estimators=100, random_state=0)
    yield "ForestCommittee", ForestCommitteeClassifier(random_state=0)
    yield "3 folds of LogisticRegression", CrossValidated(LogisticRegression(), folds=3, random_state=0)
    yield "3 folds of QDA", CrossValidated(QuadraticDiscriminantAnalysis(reg_param=0.1), folds=3, random_state=0)
    forest = RandomForestClassifier(n_estimators=30, random_state=0)
    yield "3 folds of RandomForest", CrossValidated(forest, folds=3, random_state=0)
    if classes == 2:
        yield "SVC, rbf", SVC(gamma=1.0 / columns)
        yield "AdaBoost", AdaBoostClassifier(n_estimators=50)
        yield "SGDClassifier, one pass", SGDClassifier(max_iter=1, random_state=0)
        yield "VotedPerceptron", VotedPerceptron(random_state=0)


def measure(name: str, X: np.ndarray, y: np.ndarray, wanted: str) -> Iterator[Line]:
    """Fit, certify and verify every learner on three quarters of the rows; test on the rest."""
    order = np.random.default_rng(0).permutation(len(y))
    test, train = order[: len(y) // 4], order[len(y) // 4 :]
    test = test[np.isin(y[test], np.unique(y[train]))]
    X = X[:, (X[train] != X[train[0]]).any(axis=0)]  # a column that never varies in training decides nothing
    for title, learner in learners(len(np.unique(y)), X.shape[1]):
        if wanted not in title:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model = learner.fit(X[train], y[train])
            except ValueError as error:
                print(f"{name}: {title} left out: {' '.join(str(error).split())[:120]}")
                continue
        certificate = model.certify(X[train], y[train], delta=DELTA)
        report = assay.verify(certificate, model, X[train], y[train])
        if "cannot be checked" in report.reason:
            print(f"{name}: {title} left out: {report.reason}")
            continue
        if not report.holds:
            raise SystemExit(f"{name}: the certificate of {title} does not verify: {report.reason}")
        error = model.mean_error(X[test], y[test]) if hasattr(model, "mean_error") else None
        error = float(np.mean(model.predict(X[test]) != y[test])) if error is None else error
        for claim in certificate.claims:
            if claim.quantity and claim.direction == "upper":
                yield Line(name, len(train), title, claim.kind, claim.value, error)


def show(lines: list[Line]) -> Table:
    table = Table("data", "rows", "learner", "claim", "bound", "test error", "excess")
    for line in sorted(lines, key=lambda one: (one.data, one.bound)):
        numbers = (f"{value:.3f}" for value in (line.bound, line.error, line.excess))
        table.add_row(line.data, str(line.rows), line.learner, line.claim, *numbers)
    return table


def best(lines: list[Line]) -> Table:
    """Return the tightest bound of each data set."""
    table = Table("data", "rows", "tightest bound", "by", "test error", "excess", title="Tightest of each data set")
    for name in dict.fromkeys(line.data for line in lines):
        one = min((line for line in lines if line.data == name), key=lambda line: line.bound)
        close = min((line for line in lines if line.data == name), key=lambda line: line.excess)
        near = f"{close.excess:.3f} ({close.learner})"
        table.add_row(name, str(one.rows), f"{one.bound:.3f}", f"{one.learner}, {one.claim}", f"{one.error:.3f}", near)
    return table


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench tightness", description=__doc__.split("\n")[0])
    parser.add_argument("--only", help="one data set")
    parser.add_argument("--learners", default="", help="learners whose name has this text")
    options = parser.parse_args(arguments)
    lines: list[Line] = []
    began = time.perf_counter()
    for name, X, y in tables():
        if options.only in (None, name):
            lines += measure(name, X, y, options.learners)
    console = Console(width=150)
    console.print(show(lines))
    console.print(best(lines))
    print(f"{time.perf_counter() - began:.0f} s")
    for kind, some in (
        ("all claims", lines),
        ("without cross-validation.mean", [one for one in lines if one.claim != "cross-validation.mean"]),
    ):
        print(f"{kind}: {goals(some)}")


def goals(lines: list[Line]) -> str:
    """Say on how many of the larger data sets a bound is below one half, and close to the test error."""
    large = [name for name in dict.fromkeys(line.data for line in lines) if _rows(lines, name) * 4 / 3 >= FEW]
    below = [name for name in large if min(line.bound for line in lines if line.data == name) < 0.5]
    near = [name for name in large if min(line.excess for line in lines if line.data == name) <= 0.1]
    return (
        f"{len(large)} data sets of {FEW} rows or more; a bound below 0.5 on {len(below)}, within 0.10 of the test "
        f"error on {len(near)}."
    )


def _rows(lines: list[Line], name: str) -> int:
    return next(line.rows for line in lines if line.data == name)
