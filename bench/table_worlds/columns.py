"""Columns that are hard to read: words among numbers, dates, prose, hardly any value."""

import numpy as np

from bench.table_worlds._world import chance, labels, logistic, world


def _days(days, spelled="%Y-%m-%d"):
    dates = np.datetime64("2015-01-01") + np.asarray(days).astype("timedelta64[D]")
    return np.array([date.strftime(spelled) for date in dates.astype(object)], dtype=object)


@world(300)
def words_among_numbers(rng, n):
    """A column of numbers but for a few words, which tell the class."""
    x = rng.normal(size=n).round(3)
    word = rng.random(n) < 0.04
    said = rng.choice(["low", "trace", "none", "error"], n)
    cells = np.where(word, said, np.array([str(v) for v in x], dtype=object))
    return {"level": cells, "z": rng.normal(size=n), "y": labels(chance(rng, np.where(word, 0.95, logistic(x))))}


@world(300)
def odd_word(rng, n):
    """A column of numbers in which one cell in 300 is a word, so that some tables have one and some have none."""
    x = rng.normal(size=n).round(3)
    word = rng.random(n) < 1 / 300
    cells = np.where(word, "see note", np.array([str(v) for v in x], dtype=object))
    return {"level": cells, "z": rng.normal(size=n), "y": labels(chance(rng, logistic(2 * x)))}


@world(300)
def two_date_formats(rng, n):
    """Dates of which one in five is written the other way round."""
    days = rng.integers(0, 3000, n)
    other = rng.random(n) < 0.2
    cells = np.where(other, _days(days, "%d.%m.%Y"), _days(days))
    return {"day": cells, "x": rng.normal(size=n), "y": labels(chance(rng, np.where(days > 1500, 0.8, 0.2)))}


@world(300)
def rare_years(rng, n):
    """Dates whose later years are rare, and differ."""
    days = np.minimum(rng.pareto(1.2, n) * 300, 20000).astype(np.int64)
    return {"day": _days(days), "x": rng.normal(size=n), "y": labels(chance(rng, np.where(days > 1500, 0.8, 0.2)))}


@world(250, learners=("LogisticRegression", "MixedNB"), trials=2)
def free_text(rng, n):
    """Sentences of words of which some are rare, and two of which tell the class."""
    words = np.array([f"w{i}" for i in range(2000)])
    picked = np.minimum(rng.zipf(1.3, (n, 8)) - 1, 1999)
    positive = rng.random(n) < 0.5
    good = np.where(chance(rng, np.where(positive, 0.6, 0.1)), "good news", "it came")
    said = np.array([f"{tail} on {' '.join(words[row])}" for tail, row in zip(good, picked, strict=True)], dtype=object)
    return {"said": said, "y": labels(positive)}


@world(200)
def nearly_constant(rng, n):
    """A column that has another value in one row of 200, beside one of use."""
    x = rng.normal(size=n)
    odd = np.where(rng.random(n) < 1 / 200, "b", "a")
    rare = np.where(rng.random(n) < 1 / 200, 1000.0, 1.0)
    return {"x": x, "odd": odd, "rare": rare, "y": labels(chance(rng, logistic(2 * x)))}


@world(300, time_column="when")
def by_time(rng, n):
    """Rows with a time, by which the newest are held out; nothing changes."""
    x = rng.normal(size=n)
    return {"when": _days(rng.integers(0, 2000, n)), "x": x, "y": labels(chance(rng, logistic(2 * x)))}
