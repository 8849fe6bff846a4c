"""Nearest neighbours beside scikit-learn and scikit-learn-intelex: fit and find k neighbours of 10,000 rows in 50,000.

Peers run with every algorithm that suits the number of columns; the fastest counts. Quality is the share of queries
whose neighbours are those of a direct comparison in double precision.
"""

import argparse
from typing import Any

import numpy as np
import sklearn.neighbors as sk

from assay.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from bench.harness import Contestant, compare, save, touch_memory

ROWS, QUERIES = 50_000, 10_000


def contestants(X: np.ndarray, y: np.ndarray, Q: np.ndarray, k: int) -> list[Contestant]:
    def found(model: Any) -> np.ndarray:
        return model.fit(X, y).kneighbors(Q, return_distance=False)

    few = X.shape[1] <= 15
    listed = [
        Contestant("assay", lambda: found(KNeighborsClassifier(k)), peer=False),
        Contestant("scikit-learn", lambda: found(sk.KNeighborsClassifier(k, n_jobs=-1))),
        Contestant("scikit-learn brute", lambda: found(sk.KNeighborsClassifier(k, algorithm="brute", n_jobs=-1))),
    ]
    try:
        from sklearnex.neighbors import KNeighborsClassifier as Intel
    except ImportError:
        return listed
    listed.append(Contestant("intelex brute", lambda: found(Intel(k, algorithm="brute", n_jobs=-1))))
    if few:
        listed.append(Contestant("intelex kd_tree", lambda: found(Intel(k, algorithm="kd_tree", n_jobs=-1))))
    return listed


def within(X: np.ndarray, y: np.ndarray, Q: np.ndarray, radius: float, repeats: int) -> list[dict[str, Any]]:
    """Time the vote of all rows within a radius; quality is the share of votes equal to scikit-learn's."""

    def labels(learner: Any, **settings: Any) -> np.ndarray:
        return learner(radius, outlier_label=0, n_jobs=-1, **settings).fit(X, y).predict(Q)

    listed = [
        Contestant("assay", lambda: labels(RadiusNeighborsClassifier), peer=False),
        Contestant("scikit-learn", lambda: labels(sk.RadiusNeighborsClassifier)),
        Contestant("scikit-learn brute", lambda: labels(sk.RadiusNeighborsClassifier, algorithm="brute")),
    ]
    expected = labels(sk.RadiusNeighborsClassifier)
    title = f"votes within {radius:g} of {len(X):,} rows of {X.shape[1]} columns, {len(Q):,} queries"
    return compare(title, listed, lambda found: float(np.mean(found == expected)), better="higher", repeats=repeats)


def direct(X: np.ndarray, Q: np.ndarray, k: int) -> np.ndarray:
    """Return the k nearest rows of a few queries by all squared differences, the first of equals."""
    return np.stack([np.argsort(((X - q) ** 2).sum(axis=1), kind="stable")[:k] for q in Q])


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench neighbors", description=__doc__)
    parser.add_argument("--columns", type=int, nargs="+", default=[2, 10, 28, 100])
    parser.add_argument("--neighbors", type=int, nargs="+", default=[5, 10])
    parser.add_argument("--radius", type=float, nargs="+", default=[2.0], help="of votes in 10 columns")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    touch_memory(2.0)
    rows: list[dict[str, Any]] = []
    for d in options.columns:
        rng = np.random.default_rng(d)
        X, Q = rng.normal(size=(ROWS, d)), rng.normal(size=(QUERIES, d))
        y = (X[:, 0] > 0).astype(int)
        for k in options.neighbors:
            right = direct(X, Q[:100], k)

            def quality(index: np.ndarray) -> float:
                return float(np.mean((index[:100] == right).all(axis=1)))

            title = f"{k} nearest of {ROWS:,} rows of {d} columns, {QUERIES:,} queries"
            found = compare(title, contestants(X, y, Q, k), quality, better="higher", repeats=options.repeats)
            best = min(row["ratio"] for row in found[1:])
            print(f"the fastest peer takes {best:.2f} times as long\n", flush=True)
            rows += found
    rng = np.random.default_rng(10)
    X, Q = rng.normal(size=(ROWS // 2, 10)), rng.normal(size=(QUERIES // 5, 10))
    for radius in options.radius:
        rows += within(X, (X[:, 0] > 0).astype(int), Q, radius, options.repeats)
    save(f"neighbors-{'-'.join(map(str, options.columns))}", rows)
