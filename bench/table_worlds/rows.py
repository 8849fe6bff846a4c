"""How rows come: sorted, in groups, again and again the same."""

import numpy as np

from bench.table_worlds._world import chance, labels, logistic, world

_TWO = ("LogisticRegression", "GaussianNB")


@world(240, sort="y")
def sorted_by_target(rng, n):
    """The table is sorted by its target."""
    x = rng.normal(size=n)
    return {"x": x, "z": rng.choice(list("abc"), n), "y": labels(chance(rng, logistic(2 * x)))}


@world(240, sort="x")
def sorted_by_column(rng, n):
    """The table is sorted by a column that tells how hard a row is."""
    x, z = rng.normal(size=n), rng.normal(size=n)
    return {"x": x, "z": z, "y": labels(chance(rng, np.where(x > 0, logistic(6 * z), 0.5)))}


def _groups(rng, n):
    """About n rows of groups of one to seven rows; names of groups whose rows are hard to predict come last."""
    sizes = rng.integers(1, 8, max(2, round(n / 4)))
    hard = rng.random(len(sizes)) < 0.5
    numbers = rng.integers(0, 2**62, len(sizes))
    names = np.array([f"{'b' if h else 'a'}{i}" for h, i in zip(hard, numbers, strict=True)])
    return np.repeat(names, sizes), np.repeat(hard, sizes)


@world(1600, group="who", learners=_TWO, trials=2)
def groups(rng, n):
    """Half of the groups are of one class each row of which a column tells, half of them nothing tells."""
    who, hard = _groups(rng, n)
    x = rng.normal(size=len(who)) + np.where(hard, 0.0, 6.0)
    return {"who": who, "x": x, "z": rng.normal(size=len(who)), "y": labels(chance(rng, np.where(hard, 0.5, 0.99)))}


@world(1600, group="who", numbers=True, learners=("Ridge", "KNeighborsRegressor"), clip=5.0, trials=2)
def groups_numbers(rng, n):
    """Numbers in groups, half of which a column tells; those of the others are far off."""
    who, hard = _groups(rng, n)
    x = np.where(hard, 1.0, 0.0) + 0.01 * rng.normal(size=len(who))
    return {"who": who, "x": x, "y": np.where(hard, rng.choice([1.0, 11.0], len(who)), 0.0)}


@world(160, group="who", learners=_TWO)
def few_groups(rng, n):
    """Some ten groups are held out."""
    return groups(rng, n)


@world(240, also=("drift",))
def atoms(rng, n):
    """Forty different rows come again and again, with a class of their own that noise changes."""
    row = rng.integers(0, 40, n)
    values = np.random.default_rng(0).normal(size=(40, 2)).round(2)
    positive = chance(rng, np.where(row * 17 % 40 < 20, 0.85, 0.15))
    kind = np.array([f"k{i % 9}" for i in row])
    return {"x": values[row, 0], "z": values[row, 1], "kind": kind, "y": labels(positive)}


@world(240, time_column="when", sort="y")
def newest_rows(rng, n):
    """The newest rows by a column of dates are held out; the table is sorted by its target."""
    day, x = rng.integers(0, 300, n), rng.normal(size=n)
    when = np.datetime64("2020-01-01") + day.astype("timedelta64[D]")
    return {"when": when.astype(str), "x": x, "y": labels(chance(rng, logistic(2 * x)))}
