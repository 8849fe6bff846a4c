"""Many columns into one: Fisher's projection, then a threshold. The decisions stay those of the classifier
========================================================================================================

A new row costs d multiplications and one comparison, whatever comes after the projection: here nearest neighbours of
the one column are asked too, at the cost of distances of one column instead of d.

Run `python examples/projection.py`.
"""

from typing import NamedTuple

import numpy as np

from assay.discriminant_analysis import LinearDiscriminantAnalysis
from assay.neighbors import KNeighborsClassifier


class Projected(NamedTuple):
    """A direction, and the place on it beyond which a row is of the second class."""

    direction: np.ndarray
    threshold: float
    classes: np.ndarray

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.classes[(X @ self.direction > self.threshold).astype(int)]


def clouds(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two Gaussian classes of d correlated columns whose means are 3 standard deviations apart."""
    fixed = np.random.default_rng(0)
    mix, apart = fixed.normal(size=(d, d)) / np.sqrt(d), fixed.normal(size=d)
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return (rng.normal(size=(n, d)) + y[:, None] * 3 * apart / np.linalg.norm(apart)) @ mix, y


def projection(model: LinearDiscriminantAnalysis) -> Projected:
    """Return the projection to one column and the threshold that a discriminant of two classes amounts to."""
    direction = model.scalings_[:, 0]
    factor = float(model.coef_[0] @ direction / (direction @ direction))  # coef_ = factor * direction
    return Projected(direction * np.sign(factor), model.threshold_ / abs(factor), model.classes_)


def main(n: int = 4_000, d: int = 60) -> None:
    X, y = clouds(n, d, seed=1)
    new, truth = clouds(n, d, seed=2)
    model = LinearDiscriminantAnalysis(n_components=1).fit(X, y)
    cut = projection(model)
    same = float(np.mean(cut.predict(new) == model.predict(new)))
    print(f"one column and a threshold: {np.mean(cut.predict(new) == truth):.4f} of {n} new rows right")
    print(f"the classifier of {d} columns: {model.score(new, truth):.4f}; the same decision on {same:.4f} of them")
    column, new_column = model.transform(X), model.transform(new)
    wide = KNeighborsClassifier(25).fit(X, y).score(new, truth)
    narrow = KNeighborsClassifier(25).fit(column, y).score(new_column, truth)
    print(f"25 neighbours in {d} columns: {wide:.4f}, {n * d:,} multiplications a row if every distance is computed")
    print(f"25 neighbours in one column: {narrow:.4f}, {d + n:,} multiplications a row, projection included")


if __name__ == "__main__":
    main()
