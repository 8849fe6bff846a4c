"""Hold-out rows of classes that no training row has are errors; no bound says more than the rows observed."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import assay
from assay.checker.rule import Rule
from assay.claims.directory import codes, definition
from assay.ensemble import RandomForestClassifier
from assay.guarantees.seal import RepeatedUseWarning
from assay.imbalance import ThresholdClassifier
from assay.linear_model import LinearRegression, LogisticRegression
from assay.tree import DecisionTreeClassifier

SHARE = 0.1


def world(seed, n, train=False):
    """Two classes, and among new rows a third one that training rows lack."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, "b", "a")
    return X, y if train else np.where(rng.random(n) < SHARE, "zz", y)


def certified(model, seed, m=80, **asked):
    X, y = world(seed, 60, train=True)
    held = world(100_000 + seed, m)
    model = model.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepeatedUseWarning)
        return model, model.certify(X, y, holdout=held, **asked), (X, y), held


@pytest.mark.parametrize(
    "model",
    [LogisticRegression(), DecisionTreeClassifier(max_depth=2), RandomForestClassifier(5, random_state=0),
     ThresholdClassifier(threshold=0.4)],
    ids=lambda one: type(one).__name__,
)  # fmt: skip
def test_they_are_counted(model):
    model, certificate, train, (Xh, yh) = certified(model, 0, m=200, scores=True, coverage=0.7)
    assert (yh == "zz").sum() > 5
    assert certificate.find("holdout.binomial").params["errors"] == int(np.sum(model.predict(Xh) != yh))
    report = assay.verify(certificate, model, *train, holdout=(Xh, yh))
    assert report.holds, report.reason
    other = np.where(yh == "zz", "another", yh)  # which other class it is plays no part
    assert assay.verify(certificate, model, *train, holdout=(Xh, other)).holds
    hidden = np.where(yh == "zz", "a", yh)
    assert not assay.verify(certificate, model, *train, holdout=(Xh, hidden)).holds
    kept = yh != "zz"
    assert not assay.verify(certificate, model, *train, holdout=(Xh[kept], yh[kept])).holds


def test_training_rows_of_other_classes_are_refused():
    model, certificate, (X, y), held = certified(LogisticRegression(), 1)
    assert "does not list" in assay.verify(certificate, model, X, np.where(y == "a", "zz", y), holdout=held).reason


def test_bounds_hold_as_often_as_they_say():
    """Error rate, Brier score and coverage of 120 models in a world where a tenth of new rows is of another class."""
    failed, trials = np.zeros(3, dtype=int), 120
    fresh = world(-1 % 2**31, 40_000)
    for seed in range(trials):
        model, found, _, _ = certified(
            LogisticRegression(), seed, scores=True, coverage=0.6, hypothesis_class_fixed=False, delta=0.5
        )
        shares, score = model.predict_proba(fresh[0]), model.decision_function(fresh[0])
        wrong = np.mean(model.predict(fresh[0]) != fresh[1])
        own = np.stack([fresh[1] == label for label in model.classes_], axis=1)
        brier = np.where(own.any(axis=1), 0.5 * ((shares - own) ** 2).sum(axis=1), 1.0).mean()
        size = found.find("conformal.coverage").value
        gap = np.where(fresh[1] == "b", -score, score)
        inside = np.mean((fresh[1] != "zz") & (gap <= size))
        failed += [
            wrong > found.find("holdout.binomial").value,
            brier > found.find("holdout.betting").value,
            inside < 0.6,
        ]
    assert (failed <= stats.binom.ppf(0.999, trials, 0.5 / 5)).all(), failed  # five statements share delta


def test_every_bound_of_a_mean_is_compared_with_what_was_observed():
    means = ("error rate", "mean loss", "mean loss of groups", "mean error rate of the folds", "mean loss of the folds")
    means += ("F1", "balanced error rate", "loss against the median")
    training = {
        "occam",
        "vc",
        "rademacher.empirical",
        "margin.kernel",
        "margin.multiclass",
        "margin.l1",
        "margin.boosting",
        "compression.perceptron",
        "compression.support-vectors",
        "compression.kernel-perceptron",
        "compression.voted-perceptron",
    }
    training |= {
        "stability.uniform",
        "stability.ball",
        "pac-bayes.linear",
        "pac-bayes.vote",
        "progressive.vote",
        "knn.loo",
        "regression.rademacher",
        "output-code.bits",
        "teacher.disagreement",
    }  # of other means
    for name in codes().values():
        meaning = definition(name)
        if meaning.quantity in means and name not in training:
            assert meaning.rule.observed is not Rule.observed, name


def test_a_value_below_the_observed_mean_is_rejected_whatever_delta_says():
    """Half a chance to fail is enough for a limit below the mean; none is accepted."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 1))
    y = X[:, 0] + rng.normal(size=300)
    model = LinearRegression().fit(X[:100], y[:100])
    held = X[100:], y[100:]
    certificate = model.certify(X[:100], y[:100], holdout=held, clip=3.0, delta=0.99)
    claim = certificate.find("holdout.betting")
    seen = np.minimum(np.abs(y[100:] - model.predict(X[100:])), 3.0).mean()
    assert claim.value >= seen
    claims = tuple(replace(one, value=seen * 0.999) if one is claim else one for one in certificate.claims)
    report = assay.verify(replace(certificate, claims=claims), model, X[:100], y[:100], holdout=held)
    assert not report.holds
