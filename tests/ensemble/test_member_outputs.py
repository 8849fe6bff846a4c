"""What is made of members is certified from what these say themselves: evidence never comes from the checker."""

import numpy as np
import pytest

import assay
from assay.checker import family, predictors
from assay.checker.rules import members as checker_members
from assay.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from assay.ensemble._combined import probability_link, raw_link, score_link
from assay.imbalance import CostClassifier, EasyEnsembleClassifier, ThresholdClassifier
from assay.kernel_model import KernelLogisticRegression
from assay.linear_model import LogisticRegression, Ridge, SGDClassifier
from assay.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from assay.naive_bayes import GaussianNB
from assay.neighbors import KNeighborsClassifier, KNeighborsRegressor
from assay.semi_supervised import LabelPropagation
from assay.svm import SVC
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor

RNG = np.random.default_rng(3)
X = RNG.normal(size=(240, 3))
TWO = (X[:, 0] + 0.4 * RNG.normal(size=240) > 0).astype(int)
THREE = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=240), [-0.5, 0.5])
NUMBERS = X @ [1.0, -2.0, 0.5] + 0.1 * RNG.normal(size=240)
KINDS = [
    ("line", LogisticRegression()),
    ("bayes", GaussianNB()),
    ("tree", DecisionTreeClassifier(max_depth=3, random_state=0)),
    ("near", KNeighborsClassifier(weights="distance")),
    ("forest", RandomForestClassifier(5, random_state=0)),
    ("boost", AdaBoostClassifier(n_estimators=5)),
    ("sum", GradientBoostingClassifier(n_estimators=5)),
    ("graph", LabelPropagation(gamma=0.5)),
]
CLASSIFIERS = [
    VotingClassifier(KINDS, voting="soft"),
    VotingClassifier(KINDS, voting="hard"),
    VotingClassifier(KINDS[:3], voting="hard", rule="majority", share=0.6),
    StackingClassifier(KINDS[:4], LogisticRegression(), passthrough=True),
    EasyEnsembleClassifier(n_estimators=3, random_state=0),
    ThresholdClassifier(GaussianNB()),
    CostClassifier(LogisticRegression()),
    OneVsOneClassifier(LogisticRegression()),
    OneVsOneClassifier(AdaBoostClassifier(n_estimators=4)),
    OneVsRestClassifier(DecisionTreeClassifier(random_state=0)),
    OutputCodeClassifier(LogisticRegression(), random_state=0),
    OutputCodeClassifier(AdaBoostClassifier(n_estimators=4), code="exhaustive"),
]
REGRESSORS = [
    VotingRegressor([("a", Ridge()), ("b", KNeighborsRegressor()), ("c", DecisionTreeRegressor(random_state=0))]),
    StackingRegressor([("a", Ridge()), ("c", DecisionTreeRegressor(max_depth=3, random_state=0))], Ridge()),
]


def judged(model, y, monkeypatch, **more):
    """Return the certificate, made while the checker cannot be asked, and the verdict on it."""
    model.fit(X[:160], y[:160])

    def poisoned(*args, **kwargs):
        raise AssertionError("the checker was asked for evidence")

    with monkeypatch.context() as patch:
        for place, names in (
            (family, ["read_model"]),
            (predictors, ["decided"]),
            (checker_members.Reading, ["values"]),
            (checker_members.Combined, ["scores", "row_errors"]),
        ):
            for name in names:
                patch.setattr(place, name, poisoned)
        certificate = model.certify(X[:160], y[:160], holdout=(X[160:], y[160:]), **more)
    return certificate, assay.verify(certificate, model.stored(), X[:160], y[:160], holdout=(X[160:], y[160:]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda one: type(one).__name__)
def test_a_certificate_of_members_needs_no_checker_and_holds(model, target, monkeypatch):
    certificate, report = judged(model, target, monkeypatch)
    assert report.holds, report
    train = certificate.find("train.errors", set="train")
    wrong = int(np.sum(model.predict(X[:160]) != target[:160]))
    assert train.params["low"] <= wrong <= train.value
    assert train.value <= wrong + 16  # rows that rounding or a tie leaves open are few


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", REGRESSORS, ids=lambda one: type(one).__name__)
def test_means_of_members(model, monkeypatch):
    certificate, report = judged(model, NUMBERS, monkeypatch, clip=5.0)
    assert report.holds, report
    claim = certificate.find("train.errors", set="train")
    error = float(np.mean((model.predict(X[:160]) - NUMBERS[:160]) ** 2))
    assert claim.params["low"] <= error * (1 + 1e-9)
    assert error <= claim.value <= error * (1 + 1e-6) + 1e-9


def test_probabilities_that_the_family_does_not_know_have_no_link():
    assert probability_link(SGDClassifier(loss="modified_huber", random_state=0).fit(X, TWO)) == -1
    assert probability_link(SVC(probability=True, random_state=0).fit(X, TWO)) == -1
    assert probability_link(KernelLogisticRegression().fit(X, THREE)) == -1  # one against the rest, then divided
    assert probability_link(GradientBoostingClassifier(n_estimators=3).fit(X, THREE)) == 2


def test_numbers_that_are_no_scores_of_the_checker_have_no_link():
    assert raw_link(SVC().fit(X, THREE)) == -1  # votes of pairs with confidences between them
    assert raw_link(SVC().fit(X, TWO)) == 5
    assert score_link(GaussianNB().fit(X, TWO)) == -1  # it has probabilities, no decision value
