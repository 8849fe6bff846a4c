"""Classes: new, rare, many, and such as no column tells."""

import numpy as np

from bench.table_worlds._world import chance, labels, logistic, world


@world(240, learners=("GaussianNB", "DecisionTreeClassifier"), trials=2)
def own_labels(rng, n):
    """Two classes, but one row in ten has a label of its own."""
    x = rng.normal(size=n)
    y = labels(chance(rng, logistic(4 * x))).astype(object)
    own = np.flatnonzero(rng.random(n) < 0.1)
    y[own] = [f"own{i}" for i in rng.integers(0, 2**62, len(own))]
    return {"x": x, "y": y}


@world(300, learners=("GaussianNB", "DecisionTreeClassifier"), trials=2)
def many_classes(rng, n):
    """Sixty classes, most of them rare, of which training rows lack some."""
    k = np.minimum(rng.zipf(1.6, n), 60)
    return {"x": k % 7 + rng.normal(size=n), "z": k / 4 + rng.normal(size=n), "y": np.array([f"k{i:02d}" for i in k])}


@world(400)
def imbalance(rng, n):
    """One row in fifty is of the rarer class."""
    positive = rng.random(n) < 0.02
    return {"x": rng.normal(size=n) + 2 * positive, "z": rng.normal(size=n), "y": labels(positive)}


@world(200, also=("drift",))
def pure_noise(rng, n):
    """The class depends on no column."""
    level = rng.choice(list("abcdef"), n)
    return {"x": rng.normal(size=n), "level": level, "y": labels(rng.random(n) < 0.5)}


@world(30)
def tiny_30(rng, n):
    """A table of 30 rows."""
    x = rng.normal(size=n)
    return {"x": x, "z": rng.choice(list("abc"), n), "y": labels(chance(rng, logistic(3 * x)))}


@world(60)
def tiny_60(rng, n):
    """A table of 60 rows with a column of many levels."""
    x = rng.normal(size=n)
    level = rng.integers(0, 40, n)
    return {"x": x, "level": np.array([f"l{i}" for i in level]), "y": labels(chance(rng, logistic(3 * x)))}


@world(240, certify="folds", trials=2, learners=("LogisticRegression", "GaussianNB"))
def folds_classes(rng, n):
    """Every row is fitted to: three models, which vote."""
    x = rng.normal(size=(n, 2))
    k = (x[:, 0] + 0.7 * rng.normal(size=n) > 0).astype(int) + (x[:, 1] > 1)
    return {"x": x[:, 0], "z": x[:, 1], "y": np.array(["low", "middle", "high"])[k]}


@world(240, certify="folds", trials=2, learners=("GaussianNB", "DecisionTreeClassifier"))
def folds_own_labels(rng, n):
    """Every row is fitted to, and one row in ten has a label of its own."""
    return own_labels(rng, n)
