"""AdaBoost pushes margins up without being told to; LPBoost finds the largest smallest margin and proves it
=========================================================================================================

Run `python examples/margins.py [margins.png weights.png]`; with file names the figures are drawn (needs matplotlib).
"""

import sys

import numpy as np
from sklearn.datasets import load_breast_cancer

from assay.ensemble import AdaBoostClassifier, LPBoost


def smallest_margins(X: np.ndarray, y: np.ndarray, rounds: tuple[int, ...]) -> dict[int, tuple[float, float]]:
    """Return training error and smallest margin of AdaBoost after so many rounds."""
    found = {}
    for count in rounds:
        model = AdaBoostClassifier(n_estimators=count, stump="error").fit(X, y)
        found[count] = 1 - model.score(X, y), float(model.margins_.min())
    return found


def main(margins: str | None = None, weights: str | None = None) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:200], y[:200]
    for count, (error, margin) in smallest_margins(X, y, (5, 20, 100, 400)).items():
        print(f"AdaBoost, {count:3d} rounds: training error {100 * error:4.1f} %, smallest margin {margin:+.4f}")
    best = LPBoost(nu=0.0, n_estimators=300).fit(X, y)
    print(f"LPBoost, {len(best.estimator_weights_)} stumps: smallest margin {best.min_margin_:+.4f}")
    print(f"no vote of stumps has more than {best.margin_bound_:+.4f} (gap {best.gap_:.1e})")
    if margins is not None and weights is not None:
        from assay import plot

        boosted = AdaBoostClassifier(n_estimators=60, stump="error").fit(X, y)
        plot.margins(boosted).savefig(margins)
        plot.row_weights(boosted, X, y).savefig(weights)


if __name__ == "__main__":
    main(*sys.argv[1:3])
