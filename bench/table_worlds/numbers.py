"""Targets that are numbers."""

import numpy as np

from bench.table_worlds._world import world

_TWO = ("Ridge", "KNeighborsRegressor")


def _heavy(rng, n):
    x = rng.normal(size=n)
    return {"x": x, "z": rng.choice(list("abcd"), n), "y": x + rng.standard_t(1.5, n)}


@world(240, numbers=True, learners=_TWO)
def heavy_tail(rng, n):
    """A target with tails so heavy that it has no variance."""
    return _heavy(rng, n)


@world(240, numbers=True, learners=_TWO, sort="y")
def heavy_tail_sorted(rng, n):
    """The same, the table sorted by the target."""
    return _heavy(rng, n)


@world(200, numbers=True, learners=_TWO, clip=5.0)
def skewed_clip(rng, n):
    """A skewed target, errors counted up to 5."""
    x = rng.normal(size=n)
    return {"x": x, "z": rng.normal(size=n), "y": np.exp(0.5 * x + rng.normal(size=n))}


def _half_known(rng, n):
    """Rows of one kind are 0, and so predicted; those of the other are 1 or 11, and no column tells which."""
    kind = rng.choice(["a", "b"], n)
    return {"kind": kind, "x": rng.normal(size=n), "y": np.where(kind == "a", 0.0, rng.choice([1.0, 11.0], n))}


@world(240, numbers=True, learners=_TWO, clip=5.0, sort="y")
def numbers_sorted(rng, n):
    """A table that is sorted by its target, so that the rows that are hard to predict come last."""
    return _half_known(rng, n)


@world(240, numbers=True, learners=_TWO, also=("intervals", "drift"))
def intervals(rng, n):
    """Intervals around predictions where the noise differs from row to row."""
    x, level = rng.normal(size=n), rng.choice(list("abcde"), n)
    return {"x": x, "level": level, "y": 2 * x + rng.normal(size=n) * np.where(level == "a", 3.0, 0.5)}


@world(240, numbers=True, certify="folds", trials=2, learners=_TWO)
def folds_numbers(rng, n):
    """Every row is fitted to: the mean of three models of a skewed number."""
    x = rng.normal(size=n)
    return {"x": x, "z": rng.normal(size=n), "y": x + rng.exponential(size=n) ** 2}


@world(240, numbers=True, certify="folds", trials=2, learners=_TWO, sort="y")
def folds_numbers_sorted(rng, n):
    """Every row is fitted to, and the rows that are hard to predict come last."""
    return _half_known(rng, n)


@world(240, numbers=True, also=("compare",), learners=("DecisionTreeRegressor",), trials=1)
def compare_numbers(rng, n):
    """Two models of a number that is mostly 0, where both are right, compared on hold-out rows and on new ones."""
    kind, x = rng.choice(list("abcdef"), n), rng.integers(0, 3, n)
    return {"kind": kind, "x": x, "y": np.where(kind < "d", 0.0, x + rng.exponential(size=n))}


@world(240, numbers=True, also=("explain",), learners=("Ridge",), trials=1)
def subgroups_numbers(rng, n):
    """Groups of rows with other mean errors: limits of groups and importance of numbers."""
    x, level = rng.normal(size=n).round(3), rng.choice(list("abcd"), n)
    return {"x": x, "level": level, "y": x + rng.exponential(size=n) * np.where(level == "a", 3.0, 1.0)}
