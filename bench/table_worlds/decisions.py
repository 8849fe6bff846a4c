"""Other metrics than the error rate, sets, explanations, comparisons."""

import numpy as np

from bench.table_worlds._world import chance, labels, logistic, world

_TWO = ("LogisticRegression", "GaussianNB")


def _two_classes(rng, n, share=0.2):
    positive = rng.random(n) < share
    return {"x": rng.normal(size=n) + 1.2 * positive, "z": rng.normal(size=n) - positive, "y": labels(positive)}


@world(300, metric="f1", learners=_TWO, trials=2)
def metric_f1(rng, n):
    """F1 of the rarer class at a threshold that is chosen on training rows."""
    return _two_classes(rng, n)


@world(300, metric="balanced", learners=_TWO, trials=2)
def metric_balanced(rng, n):
    """Error rate with every class counted alike."""
    return _two_classes(rng, n)


@world(300, metric="balanced", learners=_TWO, trials=2)
def balanced_five(rng, n):
    """Five classes of very different size, counted alike."""
    k = rng.choice(5, n, p=[0.5, 0.2, 0.15, 0.1, 0.05])
    x = np.eye(5)[k][:, :3] * 2 + rng.normal(size=(n, 3))
    return {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": np.array(list("vwxyz"))[k]}


@world(300, cost=[[0, 1], [8, 0]], learners=_TWO, trials=2)
def cost_matrix(rng, n):
    """A missed case costs eight times as much as a false alarm."""
    return _two_classes(rng, n)


@world(240, metric="auc", learners=_TWO, trials=2)
def metric_auc(rng, n):
    """Area under the ROC curve."""
    return _two_classes(rng, n, 0.3)


@world(240, metric="brier", learners=_TWO, trials=2)
def metric_brier(rng, n):
    """Brier score."""
    return _two_classes(rng, n, 0.3)


@world(800, metric="brier", learners=("LogisticRegression", "MixedNB"), trials=2, sort="kind")
def brier_sorted(rng, n):
    """Brier score of a table that is sorted by a column, so that the rows that are hard to predict come last."""
    kind = rng.choice(["a", "b"], n)
    return {"kind": kind, "x": rng.normal(size=n), "y": labels(chance(rng, np.where(kind == "a", 0.01, 0.5)))}


@world(320, also=("sets",), learners=("LogisticRegression", "GaussianNB", "DecisionTreeClassifier"))
def prediction_sets(rng, n):
    """Sets of three classes."""
    k = rng.integers(0, 3, n)
    x = np.eye(3)[k] * 1.5 + rng.normal(size=(n, 3))
    return {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": np.array(["ash", "elm", "oak"])[k]}


@world(320, also=("sets",), learners=("MixedNB", "DecisionTreeClassifier"), trials=2)
def sets_codes(rng, n):
    """Sets where a column has 500 codes and one label in twenty is of its own."""
    code = rng.integers(0, 500, n)
    y = labels(chance(rng, np.where(code % 2 == 0, 0.9, 0.1))).astype(object)
    own = np.flatnonzero(rng.random(n) < 0.05)
    y[own] = [f"own{i}" for i in rng.integers(0, 2**62, len(own))]
    return {"code": np.array([f"c{i}" for i in code]), "x": rng.normal(size=n), "y": y}


@world(400, also=("explain",), learners=("LogisticRegression", "MixedNB"), trials=2)
def subgroups(rng, n):
    """Groups of rows with other error rates: limits of groups, importance and calibration."""
    level, x = rng.choice(list("abcdefgh"), n), rng.normal(size=n).round(3)
    steep = np.where(np.isin(level, ["a", "b"]), 0.3, 3.0)
    return {"level": level, "x": x, "z": rng.normal(size=n).round(3), "y": labels(chance(rng, logistic(steep * x)))}


@world(300, also=("slider",), learners=_TWO, trials=2)
def slider(rng, n):
    """The mean cost at every threshold, for several costs."""
    return _two_classes(rng, n)


@world(240, also=("compare",), learners=("LogisticRegression",), trials=1)
def compare_classes(rng, n):
    """Two models of one table, compared on its hold-out rows and on new rows."""
    return _two_classes(rng, n, 0.4)
