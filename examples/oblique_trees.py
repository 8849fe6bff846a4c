"""One slanted split where a staircase was needed: oblique trees on borders that no column follows
===============================================================================================

Run `python examples/oblique_trees.py [borders.png]`; with a file name the borders are drawn (needs matplotlib).
"""

import sys

import numpy as np

import assay
from assay.tree import DecisionTreeClassifier, ObliqueTreeClassifier


def stripes(n: int = 600, count: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in a square, in slanted stripes of two classes."""
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n, 2))
    return X, np.floor(count * (X @ [0.5, 0.5] + 1) / 2).astype(int) % 2


def compare(X: np.ndarray, y: np.ndarray) -> dict[str, tuple[int, float]]:
    """Return leaves and error on the second half of the rows of each tree fitted to the first half."""
    half = len(y) // 2
    models = {
        f"oblique, {name}": ObliqueTreeClassifier(learner=name, random_state=0)
        for name in ("logistic", "lda", "perceptron")
    }
    found = {}
    for name, model in {"columns": DecisionTreeClassifier(), **models}.items():
        model.fit(X[:half], y[:half])
        certificate = model.certify(X[:half], y[:half], holdout=(X[half:], y[half:]))
        if not assay.verify(certificate, model, X[:half], y[:half], holdout=(X[half:], y[half:])).holds:
            raise AssertionError("a certificate failed")
        found[name] = model.get_n_leaves(), 1 - model.score(X[half:], y[half:])
    return found


def main(path: str | None = None) -> None:
    X, y = stripes()
    for name, (leaves, error) in compare(X, y).items():
        print(f"{name:20s} {leaves:3d} leaves, {100 * error:4.1f} % errors on new rows")
    model = ObliqueTreeClassifier(learner="perceptron", random_state=0).fit(X, y)
    print(model.to_text())
    soft = ObliqueTreeClassifier(routing="soft", max_depth=3, max_steps=5).fit(X, y)
    reached = (soft.route_probabilities(X) > 0.01).sum(axis=1).mean()
    print(f"soft routes: a row reaches {reached:.2f} leaves on average")
    if path is not None:
        from assay import plot

        plot.boundary(model, X, y).savefig(path)


if __name__ == "__main__":
    main(*sys.argv[1:2])
