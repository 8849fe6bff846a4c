"""The checker's own predictors of combined models say what `predict` says, in floats and in rational numbers."""

import numpy as np
import pytest
from sklearn.base import is_classifier

from assay.checker.family import read_model
from assay.checker.predictors import margins
from assay.discriminant_analysis import LinearDiscriminantAnalysis
from assay.ensemble import (
    RandomForestClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from assay.imbalance import CostClassifier, EasyEnsembleClassifier, ThresholdClassifier
from assay.linear_model import LinearRegression, LogisticRegression, Ridge
from assay.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from assay.neighbors import KNeighborsClassifier
from assay.tree import DecisionTreeClassifier

RNG = np.random.default_rng(11)
X = RNG.normal(size=(240, 4))
Y = (X[:, 0] + 0.8 * RNG.normal(size=240) > 0.3).astype(int) + (X[:, 1] + RNG.normal(size=240) > 0.5)
NEW = RNG.normal(size=(400, 4)) * 1.5
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
MEMBERS = [
    ("linear", LogisticRegression()),
    ("tree", TREE),
    ("near", KNeighborsClassifier(7)),
    ("discriminant", LinearDiscriminantAnalysis()),
    ("forest", RandomForestClassifier(5, random_state=0)),
]
COST = [[0, 1, 4], [2, 0, 1], [9, 3, 0]]
CLASSIFIERS = [
    *(VotingClassifier(MEMBERS, voting=v, rule="majority", share=s) for v in ("hard", "soft") for s in (0.3, 0.5, 0.7)),
    VotingClassifier(MEMBERS, weights=[3, 1, 1, 2.5, 1], rule="majority"),
    VotingClassifier(MEMBERS, voting="soft", weights="learn", random_state=0),
    StackingClassifier(MEMBERS),
    StackingClassifier(MEMBERS, passthrough=True),
    OneVsOneClassifier(LogisticRegression()),
    OneVsOneClassifier(TREE),
    OneVsRestClassifier(LogisticRegression()),
    OneVsRestClassifier(KNeighborsClassifier(7)),
    OneVsRestClassifier(RandomForestClassifier(5, random_state=0)),
    *(OutputCodeClassifier(TREE, code="ternary", decoding=d, random_state=0) for d in ("hamming", "euclidean", "loss")),
    *(
        OutputCodeClassifier(LogisticRegression(), code=[[1, 1, 1], [-1, 1, 0], [0, -1, -1]], decoding=d)
        for d in ("hamming", "euclidean", "loss")
    ),
    ThresholdClassifier(LogisticRegression(), threshold=[1, 2, 5]),
    ThresholdClassifier(KNeighborsClassifier(7)),
    CostClassifier(LogisticRegression(), COST),
    CostClassifier(TREE, COST, reject=0.7),
    CostClassifier(LogisticRegression(), COST, choose="holdout", random_state=0),
    EasyEnsembleClassifier(n_estimators=5, random_state=0),
]
REGRESSORS = [
    VotingRegressor([("line", LinearRegression()), ("ridge", Ridge(50.0))], weights=[1, 3]),
    StackingRegressor(passthrough=True),
]


def told(model, X):
    """Return the positions of the predicted labels; the number of classes for rejected rows."""
    said = model.predict(X)
    at = np.searchsorted(model.classes_, said)
    known = model.classes_[np.minimum(at, len(model.classes_) - 1)] == said
    return np.where(known, at, len(model.classes_))


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: "".join(str(model).split()))
@pytest.mark.parametrize("classes", [2, 3])
def test_classes(model, classes):
    if classes == 2 and (getattr(model, "cost", None) is not None or not isinstance(getattr(model, "code", ""), str)):
        pytest.skip("is about three classes")
    if classes == 2 and isinstance(getattr(model, "threshold", ""), list):
        pytest.skip("is about three classes")
    if classes == 2 and getattr(model, "code", "") == "ternary":
        pytest.skip("two classes have no bits to leave out")
    y = Y if classes == 3 else (Y > 0).astype(int)
    model.fit(X, np.array([5, 7, 9])[y])
    if np.any(model.links_ < 0):
        pytest.skip("counts of two classes have no score that the checker knows")
    predictor = read_model(model.stored())
    scores, errors = predictor.scores(NEW, np.abs(NEW).max(axis=0))
    guess = (scores[:, 0] > 0).astype(int) if predictor.binary else scores.argmax(axis=1)
    margin, error = margins(predictor, scores, errors, guess)
    sure = margin > error
    assert sure.mean() > 0.5  # votes of few members are often tied
    assert np.array_equal(told(model, NEW)[sure], guess[sure])


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
def test_numbers(model):
    model.fit(X[:, 1:], X[:, 0])
    assert not is_classifier(model)
    predictor = read_model(model.stored())
    scores, errors = predictor.scores(NEW[:, 1:], np.abs(NEW[:, 1:]).max(axis=0))
    assert scores[:, 0] == pytest.approx(model.predict(NEW[:, 1:]), abs=1e-12)
    assert np.all(np.abs(scores[:, 0] - model.predict(NEW[:, 1:])) <= errors[0])
