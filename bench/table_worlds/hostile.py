"""Tables in which a few rows decide how all are read, and what else could let hold-out rows have a say."""

import numpy as np
import pandas as pd

from bench.table_worlds._world import chance, labels, logistic, world

_ALL = ("LogisticRegression", "MixedNB", "DecisionTreeClassifier", "GaussianNB", "KNeighborsClassifier")


def _in_order(path):
    """Read a table whose codes are categories in the order that all of its rows give."""
    frame = pd.read_csv(path, dtype={"code": str})
    return frame.assign(code=pd.Categorical(frame["code"], ordered=True))


@world(600, given=_in_order)
def ordered_categories(rng, n):
    """A frame of ordered categories, whose list was made from all rows and is longer than those fitted to tell."""
    code = rng.integers(0, 2000, n)
    positive = chance(rng, np.where(code // 500 % 2 == 0, 0.95, 0.05))
    return {"code": np.array([f"k{i:05d}" for i in code]), "x": rng.normal(size=n), "y": labels(positive)}


@world(300)
def day_or_month_first(rng, n):
    """Dates of which one in a hundred tells whether the day or the month comes first."""
    month, day = rng.integers(1, 13, n), np.where(rng.random(n) < 0.01, 25, rng.integers(1, 13, n))
    cells = np.array([f"{d:02d}/{m:02d}/2021" for d, m in zip(day, month, strict=True)], dtype=object)
    return {"day": cells, "x": rng.normal(size=n), "y": labels(chance(rng, np.where(month > 6, 0.85, 0.2)))}


@world(300)
def points_in_numbers(rng, n):
    """Numbers with points between groups of digits, which one in a hundred tells from decimal points."""
    large = rng.random(n) < 0.01
    size = np.where(large, rng.integers(1_000_000, 9_000_000, n), rng.integers(1000, 999_999, n))
    cells = np.array([f"{one:,}".replace(",", ".") for one in size.tolist()], dtype=object)
    return {"size": cells, "x": rng.normal(size=n), "y": labels(chance(rng, np.where(size > 500_000, 0.85, 0.2)))}


@world(300)
def huge_numbers(rng, n):
    """A column of which one number in 150 is beyond all bounds, and tells the class."""
    huge, x = rng.random(n) < 1 / 150, rng.normal(size=n).round(3)
    cells = np.where(huge, "1e200", np.array([str(v) for v in x], dtype=object))
    return {"size": cells, "z": rng.normal(size=n), "y": labels(chance(rng, np.where(huge, 0.99, logistic(2 * x))))}


@world(120)
def numbered_classes(rng, n):
    """Classes 0 to 2, beside which one row in fifty says a word."""
    k = rng.integers(0, 3, n)
    y = k.astype(str).astype(object)
    y[rng.random(n) < 0.02] = "other"
    return {"x": k + 0.6 * rng.normal(size=n), "z": rng.normal(size=n), "y": y}


@world(240)
def spellings_of_classes(rng, n):
    """Classes that are now and then written otherwise."""
    x = rng.normal(size=n)
    y = labels(chance(rng, logistic(3 * x))).astype(object)
    odd = rng.random(n) < 0.05
    y[odd] = [f"{one.upper()}{'' if rng.random() < 0.5 else rng.integers(9)}" for one in y[odd]]
    return {"x": x, "z": rng.normal(size=n), "y": y}


@world(240, learners=_ALL, trials=10)
def votes_of_many(rng, n):
    """More learners and settings than the rows can tell apart, their votes and stacks among them."""
    x = rng.normal(size=(n, 3))
    level = rng.choice(list("abcdefghij"), n)
    score = np.sin(2 * x[:, 0]) + x[:, 1] * (level < "e")
    return {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "level": level, "y": labels(chance(rng, logistic(2 * score)))}


@world(300, metric="f1", learners=("LogisticRegression", "GaussianNB"), trials=2)
def f1_of_even_classes(rng, n):
    """Two classes of one size, so that chance decides which of them F1 is of."""
    positive = rng.random(n) < 0.5
    return {"x": rng.normal(size=n) + positive, "z": rng.normal(size=n), "y": labels(positive)}


@world(2500, group="who", learners=("LogisticRegression", "GaussianNB"), trials=2)
def unequal_groups(rng, n):
    """Groups of one row or of many, of which the small ones are hard to predict."""
    many = rng.random(round(n / 5)) < 0.1
    sizes, numbers = np.where(many, rng.integers(20, 60, len(many)), 1), rng.integers(0, 2**62, len(many))
    who, hard = np.repeat([f"g{i}" for i in numbers], sizes), np.repeat(~many, sizes)
    x = rng.normal(size=len(who))
    return {"who": who, "x": x, "y": labels(chance(rng, np.where(hard, 0.5, logistic(6 * x))))}


@world(400, metric="brier", learners=("LogisticRegression", "MixedNB"), trials=2, sort="y")
def atoms_sorted(rng, n):
    """Twelve different rows again and again, sorted by the target: equal rows stand together."""
    row = rng.integers(0, 12, n)
    return {
        "kind": np.array([f"k{i}" for i in row]),
        "x": row % 3,
        "y": labels(chance(rng, np.where(row < 4, 0.5, 0.03))),
    }


@world(300, certify="folds", trials=2, learners=("GaussianNB", "DecisionTreeClassifier"), sort="y")
def folds_of_rare_classes(rng, n):
    """Every row is fitted to, sorted by a target of thirty classes of which folds lack some."""
    k = np.minimum(rng.zipf(1.7, n), 30)
    return {"x": k % 5 + rng.normal(size=n), "z": k / 3 + rng.normal(size=n), "y": np.array([f"k{i:02d}" for i in k])}


@world(240, numbers=True, learners=("DecisionTreeRegressor",), trials=1, also=("intervals",))
def atoms_of_numbers(rng, n):
    """A target of few values, so that whether an interval has its end in it decides on many rows."""
    x = rng.integers(0, 2, n)
    return {"x": 1.0 * x, "y": np.round(rng.choice([0.1, 0.7, 5.03], n, p=[0.68, 0.29, 0.03]) + 1.1 * x, 2)}


@world(240, also=("sets",), learners=("MixedNB", "DecisionTreeClassifier"), trials=2)
def atoms_of_scores(rng, n):
    """Six different rows of three classes, so that whether a score is at the end of a set decides on many rows."""
    row = rng.integers(0, 6, n)
    k = (row + (rng.random(n) < 0.3) + (rng.random(n) < 0.1)) % 3
    return {"row": np.array([f"r{i}" for i in row]), "y": np.array(["ash", "elm", "oak"])[k]}
