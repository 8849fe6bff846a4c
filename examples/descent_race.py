"""Batch sizes and rules of descent compared on logistic regression
================================================================

Run `python examples/descent_race.py race.png` to print the table and draw the race (needs matplotlib).
"""

import sys
import time

import numpy as np
from sklearn.datasets import load_breast_cancer

from assay.losses import log_loss
from assay.optim.descent import Descent, Rule, Schedule, Stop, descend


def problem():
    """Return the gradient of the mean log loss on standardised rows, their number, and a function for the
    accuracy."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X, signs = np.column_stack([X, np.ones(len(X))]), 2.0 * y - 1

    def gradient(w, rows):
        f = X[rows] @ w
        slope = log_loss.slope(signs[rows], f)
        return float(log_loss.value(signs[rows], f).mean()), X[rows].T @ slope / len(rows)

    return gradient, len(X), lambda w: float(np.mean(signs * (X @ w) > 0))


def batch_sizes(sizes=(1, 8, 64, 569), epochs=10) -> list[dict]:
    """Return for each batch size the updates, seconds per update and per epoch, and the accuracy reached."""
    gradient, n, accuracy = problem()
    table = []
    for size in sizes:
        began = time.perf_counter()
        found = descend(
            gradient,
            np.zeros(31),
            n_rows=n,
            batch_size=size,
            schedule=Schedule("sqrt", 0.1, 0.01),
            stop=Stop(epochs=epochs),
        )
        seconds = time.perf_counter() - began
        table.append(
            {
                "batch": size,
                "updates": found.updates,
                "per update": seconds / found.updates,
                "per epoch": seconds / epochs,
                "accuracy": accuracy(found.x),
            }
        )
    return table


def race(epochs=30) -> dict[str, Descent]:
    """Return a descent for each rule, with batches of 32."""
    gradient, n, _ = problem()
    rates = {"plain": 0.1, "momentum": 0.02, "adagrad": 0.1, "rmsprop": 0.01, "adam": 0.02}
    return {
        name: descend(
            gradient,
            np.zeros(31),
            n_rows=n,
            batch_size=32,
            rule=Rule(name),
            schedule=Schedule(eta=eta),
            stop=Stop(epochs=epochs),
        )
        for name, eta in rates.items()
    }


def main() -> None:
    for row in batch_sizes():
        print("  ".join(f"{name} {value:.4g}" for name, value in row.items()))
    runs = race()
    for name, found in runs.items():
        print(f"{name:10s} mean loss of the last epoch {found.trace.objective[-1]:.4f}")
    if len(sys.argv) > 1:
        from assay import plot

        plot.descents(runs).savefig(sys.argv[1])


if __name__ == "__main__":
    main()
