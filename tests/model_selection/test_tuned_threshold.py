"""TunedThresholdClassifierCV against scikit-learn's, by its definition, and by certificate."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn import linear_model as scikit
from sklearn import model_selection as peer
from sklearn import tree as tree_peer
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score, fbeta_score, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import assay
from assay.checker.family import read_model
from assay.checker.predictors import decided
from assay.imbalance import CostClassifier, ThresholdClassifier
from assay.linear_model import LinearSeparator, LogisticRegression
from assay.model_selection import TunedThresholdClassifierCV
from assay.persist import built
from assay.svm import SVC
from assay.tree import DecisionTreeClassifier

X, Y = make_classification(600, 6, weights=[0.85], flip_y=0.1, random_state=0)
NEW, TRUE = X[400:], Y[400:]
X, Y = X[:400], Y[:400]
F2 = make_scorer(fbeta_score, beta=2, pos_label="b")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scoring": "f1"},
        {"scoring": "accuracy", "cv": 0.3, "random_state": 0},
        {"scoring": "recall", "thresholds": np.linspace(0.05, 0.95, 7)},
        {"scoring": "jaccard"},
        {"response_method": "decision_function"},
        {"scoring": make_scorer(fbeta_score, beta=0.5, pos_label=0)},
        {"scoring": make_scorer(fbeta_score, beta=0.5, pos_label=0), "response_method": "decision_function"},
        {"cv": [(np.arange(200), np.arange(200, 400))], "refit": False},
    ],
)
def test_threshold_and_curve_are_scikit_learns(options):
    ours = TunedThresholdClassifierCV(LogisticRegression(tol=1e-8), store_cv_results=True, **options).fit(X, Y)
    exact = scikit.LogisticRegression(tol=1e-10, max_iter=10_000)
    theirs = peer.TunedThresholdClassifierCV(exact, store_cv_results=True, **options).fit(X, Y)
    assert ours.best_threshold_ == pytest.approx(theirs.best_threshold_, abs=1e-5)
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=1e-5)
    for name in ("thresholds", "scores"):
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], atol=1e-5)
    assert np.mean(ours.predict(NEW) != theirs.predict(NEW)) < 0.01


@pytest.mark.parametrize("response", ["predict_proba", "decision_function"])
def test_labels_of_text_and_the_positive_class(response):
    names = np.array(["c", "b"])[Y]
    model = TunedThresholdClassifierCV(scoring=F2, response_method=response).fit(X, names)
    said = model.predict(NEW)
    values = model.predict_proba(NEW)[:, 0] if response == "predict_proba" else -model.decision_function(NEW)
    assert np.array_equal(said == "b", values > model.best_threshold_)
    curve = TunedThresholdClassifierCV(LogisticRegression().fit(X, names), scoring=F2, cv="prefit", refit=False)
    scores = curve.set_params(store_cv_results=True, response_method="predict_proba").fit(X, names).cv_results_
    k = 30
    called = np.where(curve.predict_proba(X)[:, 0] >= scores["thresholds"][k], "b", "c")
    assert scores["scores"][k] == pytest.approx(fbeta_score(names, called, beta=2, pos_label="b"))


def test_the_fitted_classifier_is_taken_as_it_is():
    fitted = LogisticRegression().fit(X, Y)
    before = fitted.coef_.copy()
    model = TunedThresholdClassifierCV(fitted, cv="prefit", refit=False).fit(NEW, TRUE)
    assert model.estimator_ is fitted
    assert np.array_equal(fitted.coef_, before)
    with pytest.raises(NotFittedError):
        TunedThresholdClassifierCV(cv="prefit", refit=False).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": "prefit"}, "refit cannot be True"),
        ({"refit": False}, "refit cannot be False"),
        ({"thresholds": 0}, "thresholds must be"),
        ({"thresholds": [0.4, 0.4]}, "constant predictions"),
        ({"scoring": F2}, "pos_label='b' is not a valid label"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        TunedThresholdClassifierCV(**options).fit(X, Y)
    with pytest.raises(ValueError, match="Only binary classification"):
        TunedThresholdClassifierCV().fit(X, np.arange(len(X)) % 3)


@pytest.mark.parametrize("member", [None, DecisionTreeClassifier(max_depth=4, random_state=0)], ids=str)
def test_the_cost_at_the_threshold_is_bounded_by_rows_that_chose_nothing(member, tmp_path):
    model = TunedThresholdClassifierCV(member).fit(X, Y)
    certificate = model.certify(X, Y, holdout=(NEW, TRUE))
    assert assay.verify(certificate, model, X, Y, holdout=(NEW, TRUE)).holds
    rate = np.mean(model.predict(NEW) != TRUE)
    assert rate < certificate["holdout.binomial"].value < rate + 0.1
    assay.save(model, tmp_path / "m.assay", certificate=certificate)
    again = assay.load(tmp_path / "m.assay").model
    assert np.array_equal(again.predict(NEW), model.predict(NEW))
    assert again.best_threshold_ == pytest.approx(model.best_threshold_, abs=0)
    moved = replace(certificate, claims=tuple(
        replace(claim, value=claim.value - 0.03) if claim.name == "holdout.binomial" else claim
        for claim in certificate.claims
    ))  # fmt: skip
    assert not assay.verify(moved, model, X, Y, holdout=(NEW, TRUE)).holds
    model.matrix_ = np.diag([0.9, 0.1])
    assert not assay.verify(certificate, model, X, Y, holdout=(NEW, TRUE)).holds


@pytest.mark.parametrize(
    "thresholds", [100, np.array([0.1, 0.25, 0.5, 0.75, 0.9]), np.array([0.0, 0.5, 1.0])], ids=np.size
)
@pytest.mark.parametrize("names", [(0, 1), ("b", "a")], ids=str)
def test_a_probability_equal_to_the_threshold_is_decided_as_it_was_when_that_was_chosen(thresholds, names):
    """Trees of four leaves: nearly all thresholds that are tried equal a probability. The score of the predictions on
    the rows that chose the threshold is the best score, and scikit-learn decides alike but where rounding decides."""
    alike = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, 4, size=(40, 1)).astype(float)
        labels = np.array(names)[(rng.random(40) < rows[:, 0] / 4).astype(int)]
        options = {"cv": "prefit", "refit": False, "thresholds": thresholds, "scoring": "balanced_accuracy"}
        tree = DecisionTreeClassifier(max_depth=2).fit(rows, labels)
        model = TunedThresholdClassifierCV(tree, **options).fit(rows, labels)
        said = model.predict(rows)
        assert balanced_accuracy_score(labels, said) == pytest.approx(model.best_score_, abs=1e-12)
        judge = read_model(model.stored())
        guess, sure = decided(judge, rows)
        assert np.array_equal(model.classes_[guess[sure]], said[sure])
        assert built(model.stored()).best_threshold_ == model.best_threshold_
        fitted = tree_peer.DecisionTreeClassifier(max_depth=2).fit(rows, labels)
        theirs = peer.TunedThresholdClassifierCV(fitted, **options).fit(rows, labels)
        alike.append(np.array_equal(theirs.predict(rows), said))
    assert np.mean(alike) >= 0.9


def test_what_the_checker_cannot_follow_has_no_certificate():
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    for model in (TunedThresholdClassifierCV(SVC()), TunedThresholdClassifierCV(pipeline)):
        model.fit(X, Y)
        assert model.score(NEW, TRUE) > 0.6
        with pytest.raises(ValueError, match=r"does not know|not a learner of Assay"):
            model.certify(X, Y)


@pytest.mark.parametrize("names", [("b", "a"), (3, 7), (0, 1), (True, False), (1.0, 0.0)], ids=str)
@pytest.mark.parametrize("member", [LogisticRegression(), DecisionTreeClassifier(max_depth=2)], ids=str)
def test_a_classifier_that_was_fitted_to_labels_is_certified_and_loaded(names, member, tmp_path):
    labels, true = np.array(names)[Y], np.array(names)[TRUE]
    fitted = member.fit(X, labels)
    model = TunedThresholdClassifierCV(fitted, cv="prefit", refit=False).fit(X, labels)
    certificate = model.certify(X, labels, holdout=(NEW, true))
    assert assay.verify(certificate, model, X, labels, holdout=(NEW, true)).holds
    assay.save(model, tmp_path / "m.assay", certificate=certificate)
    again = assay.load(tmp_path / "m.assay").model
    assert np.array_equal(again.predict(NEW), model.predict(NEW))
    assert np.array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
    assert model.estimator_ is fitted
    assert fitted.classes_.tolist() == sorted(names)


@pytest.mark.parametrize("kind", [TunedThresholdClassifierCV, ThresholdClassifier, CostClassifier])
def test_a_file_with_a_member_without_probabilities_is_refused(kind):
    options = {"cost": 1 - np.eye(2)} if kind is CostClassifier else {}
    found = kind(**options).fit(X, Y).stored()
    other = LinearSeparator().fit(X, (X[:, 0] > 0).astype(np.int64)).stored()
    forged = replace(found, members=(other,), arrays={**found.arrays, "links_": np.array([-1])})
    with pytest.raises(ValueError, match="needs probabilities, which LinearSeparator"):
        built(forged)


def test_threads_change_no_bit():
    one, two = (TunedThresholdClassifierCV(n_jobs=k).fit(X, Y) for k in (1, 2))
    assert one.best_threshold_ == two.best_threshold_
    assert np.array_equal(one.predict_proba(NEW), two.predict_proba(NEW))
