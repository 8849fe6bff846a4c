"""How large a tree do the rows justify? Trees of 2, 4, 8, ... leaves, chosen by what is proved about them
=======================================================================================================

Run `python examples/choosing.py [curve.png]`; with a file name the learning curve is drawn (needs matplotlib).
"""

import sys

import numpy as np

import assay
from assay.model_selection import LearningCurve, StructuralRiskMinimizer
from assay.tree import DecisionTreeClassifier


def table(n: int = 4000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return points of the square in four quarters of two classes, a tenth of the labels flipped, and six more columns
    that say nothing."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 8)).round(1)
    y = (X[:, 0] > 0.1) ^ (X[:, 1] > -0.2)
    return X, np.where(rng.random(n) < 0.1, ~y, y).astype(int)


def main(curve: str | None = None) -> StructuralRiskMinimizer:
    X, y = table()
    leaves = [2**j for j in range(1, 7)]
    # The weights 1 / (j (j + 1)) sum to one over all sizes that there are: larger trees could be added later.
    model = StructuralRiskMinimizer(
        [(f"{size} leaves", DecisionTreeClassifier(max_leaf_nodes=size)) for size in leaves],
        weights=[1 / (j * (j + 1)) for j in range(1, 7)],
        holdout=0.0,
    ).fit(X, y)
    new = table(seed=1)
    for one in model.candidates_:
        errors = [np.mean(one.learner.predict(rows) != labels) for rows, labels in ((X, y), new)]
        by = "nothing below 1" if one.claim is None else f"at most {one.bound:.3f} by {one.claim.kind}"
        print(f"{one.name}: training {errors[0]:.3f}, new rows {errors[1]:.3f}, proved {by}")
    print(f"chosen: {model.candidates_[model.best_index_].name}")
    print(assay.verify(model.certificate_, model.best_estimator_, X, y).reason or "the certificate verifies")
    if curve is not None:
        LearningCurve(model.best_estimator_, random_state=0).fit(X, y).plot().savefig(curve)
    return model


if __name__ == "__main__":
    main(*sys.argv[1:])
