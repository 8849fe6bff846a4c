"""What a forest knows about itself: its error on new rows, the columns it needs, which of them act together
=========================================================================================================

Run `python examples/forest.py [curve.png importance.png]`; with file names the figures are drawn (needs matplotlib).
"""

import sys

import numpy as np

from assay.ensemble import RandomForestClassifier


def table(n: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return six columns: the class is (x0 xor x1) or x2, a tenth of the labels flipped; a tenth of x4 is missing."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 6)).astype(float)
    y = ((X[:, 0] != X[:, 1]) | (X[:, 2] > 0)).astype(int)
    X[rng.random(n) < 0.1, 4] = np.nan
    return X, np.where(rng.random(n) < 0.1, 1 - y, y)


def main(curve: str | None = None, bars: str | None = None) -> None:
    X, y = table()
    new = table(seed=1)
    model = RandomForestClassifier(100, max_features="log2", oob_score=True, random_state=0).fit(X, y)
    print(f"out-of-bag error {100 * model.oob_errors_[-1]:.1f} %, on new rows {100 * (1 - model.score(*new)):.1f} %")
    importance = model.permutation_importances(X, y, random_state=0)
    print("importance:", ", ".join(f"x{j} {100 * value:.1f} %" for j, value in enumerate(importance)))
    shared = model.interactions(X, y, random_state=0)
    j, k = np.unravel_index(np.triu(shared, 1).argmax(), shared.shape)
    print(f"acting together: x{j} and x{k} ({100 * shared[j, k]:.1f} %)")
    found = model.strength(X, y, out_of_bag=True)
    print(f"strength {found.strength:.2f}, correlation {found.correlation:.2f}: error at most {found.bound:.2f}")
    if curve is not None and bars is not None:
        from assay import plot

        plot.out_of_bag(model).savefig(curve)
        plot.importance(model, importance).savefig(bars)


if __name__ == "__main__":
    main(*sys.argv[1:3])
