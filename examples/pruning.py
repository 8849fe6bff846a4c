"""Stopping a tree early or cutting it back afterwards: time, leaves, and errors of both
=====================================================================================

Pre-pruning stops where a split does not help at once; it saves time, and misses splits that only help together (the
exclusive or). Post-pruning grows the whole tree and cuts back what held-out rows do not support; it takes longer and
underfits less.

Run `python examples/pruning.py` to print the table.
"""

import time
from typing import Any, NamedTuple

import numpy as np

from assay.datasets.worked import four_quadrants
from assay.tree import DecisionTreeClassifier


class Outcome(NamedTuple):
    """Seconds of the fit, leaves, training error and error on new rows."""

    seconds: float
    leaves: int
    training: float
    error: float


def noisy_quadrants(n: int, seed: int, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Return the exclusive or of two signs with some labels flipped, and two columns that say nothing."""
    rng = np.random.default_rng(seed)
    X, y = four_quadrants(n, seed=seed)
    return np.column_stack([X, rng.normal(size=(n, 2))]), np.where(rng.random(n) < noise, -y, y)


def trees() -> dict[str, Any]:
    """Return a tree that is grown out, one that stops early, and one that is cut back."""
    return {
        "whole": DecisionTreeClassifier(),
        "pre-pruned": DecisionTreeClassifier(min_impurity_decrease=0.01),
        "post-pruned": DecisionTreeClassifier(ccp_alpha=0.004),
    }


def compare(n: int = 1000, seed: int = 0) -> dict[str, Outcome]:
    """Return the outcome of each tree on the same rows."""
    X, y = noisy_quadrants(n, seed)
    fresh = noisy_quadrants(4000, seed + 1000, noise=0.0)
    found = {}
    for name, model in trees().items():
        model.fit(X[:50], y[:50])  # compiled loops are loaded
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
        found[name] = Outcome(seconds, int(model.get_n_leaves()), 1 - model.score(X, y), 1 - model.score(*fresh))
    return found


def main() -> None:
    print(f"{'':12}  seconds  leaves  training error  error on new rows")
    for name, one in compare().items():
        print(f"{name:12}  {one.seconds:7.4f}  {one.leaves:6d}  {one.training:14.1%}  {one.error:17.1%}")


if __name__ == "__main__":
    main()
