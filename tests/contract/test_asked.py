"""Every learner states, when asked, what hold-out rows say beside the error; each statement is true of those rows and
verifies."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, roc_auc_score

import assay
from assay.guarantees.evidence import Decided
from tests.contract.test_contract import example, fitted, suited, suited_target
from tests.evidence import evidence

RNG = np.random.default_rng(3)
X = RNG.normal(size=(260, 3))
LABELS = np.where(X[:, 0] + 0.6 * RNG.normal(size=260) > 0, "yes", "no")
ROWS = X
NUMBERS = X[:, 0] - 0.5 * X[:, 1] + 0.3 * RNG.normal(size=260)
TRAIN, HELD = slice(0, 140), slice(140, 260)


def learners(task):
    return pytest.mark.parametrize("learner", assay.learners(task), ids=lambda learner: learner.__name__)


@pytest.mark.sampled(2)
@learners("classify")
def test_classifiers(learner):
    other = np.where(ROWS[HELD, 1] > 0, "yes", "no")  # knows nothing
    X = suited(example(learner), ROWS)
    model = fitted(example(learner), X[TRAIN], LABELS[TRAIN])
    asked = {"holdout": (X[HELD], LABELS[HELD]), "coverage": 0.8, "scores": True, "against": other}
    certificate = model.certify(X[TRAIN], LABELS[TRAIN], **asked)
    report = assay.verify(certificate, model, X[TRAIN], LABELS[TRAIN], holdout=asked["holdout"])
    assert report.holds, report.reason
    found = {claim.name: claim for claim in certificate.claims}
    wrong = np.mean(model.predict(X[HELD]) != LABELS[HELD])
    assert found["holdout.binomial"].value > wrong
    worse = np.mean(other != LABELS[HELD])
    paired = (
        found["holdout.paired"].value
        if found["holdout.paired"].direction == "upper"
        else -found["holdout.paired"].value
    )
    rows = model._known_rows(X[HELD], LABELS[HELD])
    known = evidence(model, rows, Decided).positions(rows) >= 0  # the others count as errors of its own
    assert wrong - worse < paired < wrong - worse + np.mean(~known) + 0.3
    assert 0 < found["holdout.thresholds"].value < 0.5
    if "holdout.auc" in found:
        score = model.decision_function(X[HELD]) if hasattr(model, "decision_function") else None
        shares = "predict_proba" if hasattr(model, "predict_proba") else "vote_shares"
        score = getattr(model, shares)(X[HELD])[:, 1] if score is None else score
        many = len(np.unique(score)) > 60  # scores within rounding of each other count as in the wrong order
        assert 0 < roc_auc_score(LABELS[HELD], score) - found["holdout.auc"].value < (0.35 if many else 1.0)
    if "holdout.betting" in found:
        assert found["holdout.betting"].value > brier_score_loss(
            LABELS[HELD] == "yes", model.predict_proba(X[HELD])[:, 1]
        )
    said = {*found, *(gap.name for gap in certificate.not_applicable)}
    assert {
        "holdout.binomial",
        "holdout.betting",
        "holdout.auc",
        "holdout.thresholds",
        "holdout.paired",
        "vc",
        "conformal.coverage",
    } <= said


@learners("regress")
def test_regressors(learner):
    y = suited_target(example(learner), NUMBERS)
    model = fitted(example(learner), X[TRAIN], y[TRAIN])
    asked = {"holdout": (X[HELD], y[HELD]), "coverage": 0.8, "clip": 2.0}
    certificate = model.certify(X[TRAIN], y[TRAIN], **asked)
    report = assay.verify(certificate, model, X[TRAIN], y[TRAIN], holdout=asked["holdout"])
    assert report.holds, report.reason
    gaps = np.abs(y[HELD] - model.predict(X[HELD]))
    found = {claim.name: claim.value for claim in certificate.claims}
    assert np.minimum(gaps, 2.0).mean() < found["holdout.betting"] < 2.0
    assert np.mean(gaps <= found["conformal.coverage"]) >= 0.8
    said = {*found, *(gap.name for gap in certificate.not_applicable)}
    assert "regression.rademacher" in said


def test_what_cannot_be_asked_is_refused():
    from assay.linear_model import LogisticRegression, Ridge

    classifier, regression = LogisticRegression().fit(X, LABELS), Ridge().fit(X, NUMBERS)
    held = (X[HELD], LABELS[HELD])
    for options, word in (
        ({"scores": True}, "needs hold-out rows"),
        ({"coverage": 0.9}, "needs hold-out rows"),
        ({"holdout": held, "coverage": 1.0}, "coverage must be a share"),
        ({"holdout": held, "clip": 1.0}, "clip is for regression"),
        ({"holdout": held, "against": LABELS[HELD], "compared": [LABELS[HELD]]}, "cannot be read beside compared"),
        ({"holdout": held, "against": LABELS[:3]}, "one predicted label for each"),
    ):
        with pytest.raises(ValueError, match=word):
            classifier.certify(X, LABELS, **options)
    with pytest.raises(ValueError, match="about classifiers"):
        regression.certify(X, NUMBERS, holdout=(X[HELD], NUMBERS[HELD]), scores=True)
    with pytest.raises(ValueError, match="finite number > 0"):
        regression.certify(X, NUMBERS, holdout=(X[HELD], NUMBERS[HELD]), clip=-1.0)
