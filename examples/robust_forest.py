"""A forest against a single tree: flipped labels, missing entries, and how many columns a node should try
=======================================================================================================

Run `python examples/robust_forest.py` to print the tables.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import StratifiedKFold

from assay.ensemble import RandomForestClassifier
from assay.tree import DecisionTreeClassifier

Spoil = Callable[[np.random.Generator, np.ndarray, np.ndarray, float], tuple[np.ndarray, np.ndarray]]


def flip_labels(rng: np.random.Generator, X: np.ndarray, y: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows with that share of labels replaced by another one."""
    classes = np.unique(y)
    at = rng.random(len(y)) < share
    other = classes[(np.searchsorted(classes, y) + rng.integers(1, len(classes), len(y))) % len(classes)]
    return X, np.where(at, other, y)


def lose_entries(rng: np.random.Generator, X: np.ndarray, y: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows with that share of entries missing."""
    return np.where(rng.random(X.shape) < share, np.nan, X), y


def cross_validated_error(model: Any, X: np.ndarray, y: np.ndarray, spoil: Spoil, share: float) -> float:
    """Return the ten-fold error on clean labels after training on spoilt rows; held-out rows lack entries too."""
    wrong = 0
    for fit, held in StratifiedKFold(10, shuffle=True, random_state=0).split(X, y):
        rng = np.random.default_rng(len(fit))
        Xf, yf = spoil(rng, X[fit], y[fit], share)
        Xh, _ = spoil(rng, X[held], y[held], share)
        wrong += int(np.sum(clone(model).fit(Xf, yf).predict(Xh) != y[held]))
    return wrong / len(y)


class NoiseCurve(NamedTuple):
    """Errors of a forest and of a tree at each share of spoilt labels or entries."""

    shares: list[float]
    forest: list[float]
    tree: list[float]


def noise_curve(
    X: np.ndarray, y: np.ndarray, spoil: Spoil, shares: Sequence[float] = (0.0, 0.1, 0.2), trees: int = 40
) -> NoiseCurve:
    """Return how both suffer as more is spoilt."""
    forest, tree = RandomForestClassifier(trees, random_state=0), DecisionTreeClassifier()
    errors = [[cross_validated_error(model, X, y, spoil, share) for share in shares] for model in (forest, tree)]
    return NoiseCurve(list(shares), *errors)


class ColumnScan(NamedTuple):
    """Out-of-bag error for each number of columns that a node tries, and the number with the least."""

    columns: list[int]
    errors: list[float]
    best: int
    forest: RandomForestClassifier


def scan_columns(X: np.ndarray, y: np.ndarray, columns: Sequence[int] | None = None, **options: Any) -> ColumnScan:
    """Choose `max_features` of a forest by its out-of-bag error, which needs no held-out rows; ties go to fewer."""
    d = X.shape[1]
    columns = sorted({1, int(np.log2(d)), int(np.sqrt(d)), d // 2, d}) if columns is None else sorted(columns)
    columns = [k for k in columns if k >= 1]
    settings = {"n_estimators": 60, "oob_score": True, "random_state": 0, **options}
    forests = [RandomForestClassifier(max_features=k, **settings).fit(X, y) for k in columns]
    errors = [float(forest.oob_errors_[-1]) for forest in forests]
    best = int(np.argmin(errors))
    return ColumnScan(columns, errors, columns[best], forests[best])


def main() -> None:
    for name, (X, y), spoil in (
        ("flipped labels, breast cancer", load_breast_cancer(return_X_y=True), flip_labels),
        ("missing entries, iris", load_iris(return_X_y=True), lose_entries),
    ):
        curve = noise_curve(X, y, spoil)
        print(f"{name}\n  share   forest     tree")
        for share, forest, tree in zip(*curve):
            print(f"  {share:5.0%}  {forest:7.2%}  {tree:7.2%}")
    found = scan_columns(*load_breast_cancer(return_X_y=True))
    print("columns tried at a node, out-of-bag error")
    for k, error in zip(found.columns, found.errors):
        print(f"  {k:3d}  {error:.2%}{'  <- least' if k == found.best else ''}")


if __name__ == "__main__":
    main()
