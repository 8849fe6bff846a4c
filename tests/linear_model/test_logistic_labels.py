"""Logistic regression: probabilities, labels of any type, and what is refused."""

import warnings

import numpy as np
import pytest
import sklearn.linear_model as peers

from assay.linear_model import LogisticRegression
from tests.linear_model.logistic_rows import data


@pytest.mark.mission("LIN-01", "LIN-13", "LIN-24")
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities(classes):
    X, y, _ = data(13, classes=classes)
    model = LogisticRegression().fit(X, y)
    other = peers.LogisticRegression().fit(X, y)
    other.coef_, other.intercept_ = model.coef_, model.intercept_
    assert model.predict_proba(X) == pytest.approx(other.predict_proba(X), rel=1e-12)
    assert model.predict_log_proba(X) == pytest.approx(other.predict_log_proba(X), rel=1e-10, abs=1e-12)
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(len(X)), rel=1e-14)
    assert (model.predict(X) == model.predict_proba(X).argmax(axis=1)).all()
    scores = X @ model.coef_.T + model.intercept_
    assert np.array_equal(model.decision_function(X), scores.ravel() if classes == 2 else scores)
    if classes == 2:
        score = model.decision_function(X)
        positive = model.predict_proba(X)[:, 1]
        order = np.argsort(score)
        assert (np.diff(positive[order]) >= 0).all()
        assert positive == pytest.approx(np.exp(score) / (1 + np.exp(score)), rel=1e-12)
        w = model.coef_[0]
        on_plane = -model.intercept_[0] * w / (w @ w)
        assert model.predict_proba(on_plane[None])[0] == pytest.approx([0.5, 0.5], abs=1e-15)
        assert np.array_equal(model.predict_at(X), model.predict(X))
        for threshold in (0.0, 0.1, 0.9, 1.0):
            assert np.array_equal(model.predict_at(X, threshold), model.classes_[(positive > threshold).astype(int)])
        with pytest.raises(ValueError, match="threshold must be a probability"):
            model.predict_at(X, 1.5)
    else:
        with pytest.raises(ValueError, match="decides between two classes"):
            model.predict_at(X, 0.3)


def test_log_probabilities_of_certain_rows():
    X, y, _ = data(14)
    for classes in (y, np.where(X[:, 0] > 1, 2, y)):
        model = LogisticRegression(C=100.0).fit(X, classes)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            values = model.predict_log_proba(1e4 * X)
        assert np.isfinite(values).all()
        assert values.min() < -1_000


@pytest.mark.parametrize(
    "labels",
    [
        np.array([False, True]),
        np.array([-1, 1]),
        np.array([-7, 3], dtype=np.int8),
        np.array([0.0, 2.0]),
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([2**62, -(2**62)]),
        np.array([200, 255], dtype=np.uint8),
    ],
    ids=str,
)
def test_any_labels(labels):
    X, y, _ = data(15)
    plain = LogisticRegression().fit(X, y)
    model = LogisticRegression().fit(X, labels[y])
    order = np.argsort(labels)
    assert model.classes_.dtype == labels.dtype
    assert np.array_equal(model.classes_, labels[order])
    if order[0] == 0:
        assert np.array_equal(model.coef_, plain.coef_)
    else:  # the second label sorts first: the same hyperplane, seen from behind
        assert -model.coef_ == pytest.approx(plain.coef_, rel=1e-9)
    assert np.array_equal(model.predict(X), labels[plain.predict(X)])


def test_many_classes_say_nothing_odd():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 40
    X = rng.normal(size=(200, 3)) + y[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LogisticRegression().fit(X, y)
    assert model.coef_.shape == (40, 3)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 0, 0], "at least 2 classes"),
        ([0.0, 1.0, np.nan], "contains NaN"),
        ([0.1, 0.7, 0.3], "[Uu]nknown label type"),
        (np.array([None, "a", "b"], dtype=object), "of one type"),
        ([[0, 1], [1, 0], [1, 1]], "1d array"),
        ([0, 1], "inconsistent numbers of samples"),
    ],
)
def test_bad_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        LogisticRegression().fit([[0.0], [1.0], [2.0]], y)


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "X contains NaN"), (np.inf, "X contains infinity"), (1e200, "entries are too large")],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_bad_entries_are_refused(solver, value, message, classes):
    X, y, _ = data(16, classes=classes)
    X[17, 2] = value
    with pytest.raises(ValueError, match=message):
        LogisticRegression(solver=solver).fit(X, y)


def test_a_class_without_weight_is_refused():
    X, y, _ = data(17, classes=3)
    with pytest.raises(ValueError, match="class 2 has no row of positive weight"):
        LogisticRegression().fit(X, y, sample_weight=(y < 2).astype(float))
