"""Logistic regression without a penalty on classes that a hyperplane separates: there is no minimum, and it says so."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from assay.linear_model import LogisticRegression
from tests.linear_model.logistic_rows import data


def separable(seed, n=40, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    w, b = rng.normal(size=d), rng.normal() * 0.2
    score = X @ w + b
    keep = np.abs(score) > 0.15
    return X[keep], (score[keep] > 0).astype(int)


class Watch:
    """A callback that keeps the coefficients of every iteration."""

    def __init__(self):
        self.seen = []

    def setup(self, estimator, context):
        pass

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        if fitted_estimator is not None:
            self.seen.append(fitted_estimator.coef_.ravel())


def watched(model, X, y):
    watch = Watch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_callbacks(watch).fit(X, y)
    return np.array(watch.seen)


@pytest.mark.mission("LIN-20")
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_separable_classes_are_recognised(seed, solver):
    X, y = separable(seed)
    with pytest.warns(ConvergenceWarning, match="a hyperplane separates the classes"):
        model = LogisticRegression(C=np.inf, solver=solver).fit(X, y)
    w, b = model.separator_[:-1], model.separator_[-1]
    assert ((X @ w + b) * (2 * y - 1) > 0).all()
    certificate = model.certify(X, y)
    margin = certificate.find("margin.bounds").value
    best = ((X @ w)[y == 1].min() - (X @ w)[y == 0].max()) / (2 * np.linalg.norm(w))  # at the best offset
    assert 0.999 * best < margin <= best
    assert any("no minimum" in gap.reason for gap in certificate.not_applicable)
    logged = np.linalg.norm(watched(LogisticRegression(C=np.inf, solver=solver), X, y), axis=1)
    assert (np.diff(logged) > 0).all()  # it grows until the hyperplane is found
    norms = [np.linalg.norm(LogisticRegression(C=C).fit(X, y).coef_) for C in 10.0 ** np.arange(0, 13, 3)]
    assert np.isfinite(norms).all()
    assert (np.diff(norms) > 1.0).all()  # the weaker the penalty the longer, without end
    assert LogisticRegression(C=1e12).fit(X, y).separator_ is None


@pytest.mark.parametrize("seed", range(10))
def test_overlapping_classes_are_not_called_separable(seed):
    X, y = separable(seed)
    y[0] = 1 - y[0]
    X = np.vstack([X, X[:2]])
    y = np.append(y, 1 - y[:2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(C=np.inf).fit(X, y)
    assert model.separator_ is None


def test_quasi_separable_classes_are_recognised():
    X = np.array([[0.0, 1.0], [0.0, -1.0], [1.0, 0.3], [2.0, -0.7], [-1.0, 0.2], [-2.0, 0.9]])
    y = np.array([1, 0, 1, 1, 0, 0])
    X, y = (
        np.vstack([X, [[0.0, 1.0], [0.0, -1.0]]]),
        np.append(y, [0, 1]),
    )  # the plane x_1 = 0 holds both classes
    for solver in ("newton", "lbfgs"):
        with pytest.warns(ConvergenceWarning, match="except for rows that lie on it"):
            model = LogisticRegression(C=np.inf, solver=solver).fit(X, y)
        assert model.separator_ is None
        assert np.abs(model.coef_).max() > 10


def test_no_penalty_on_ordinary_data_says_nothing():
    X, y, _ = data(12, n=400, spread=0.5)
    for solver in ("newton", "lbfgs"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = LogisticRegression(C=np.inf, solver=solver).fit(X, y)
        assert model.separator_ is None
    with pytest.warns(ConvergenceWarning, match="not converged after 1 steps"):
        LogisticRegression(C=np.inf, max_iter=1).fit(X, y)


def test_three_separable_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) * 0.3 + np.repeat([[0, 3], [3, 0], [-3, -3]], 20, axis=0)
    y = np.repeat([0, 1, 2], 20)
    with pytest.warns(ConvergenceWarning, match="separates the classes"):
        model = LogisticRegression(C=np.inf).fit(X, y)
    assert model.separator_.shape == (3, 3)
    assert ((X @ model.separator_[:, :2].T + model.separator_[:, 2]).argmax(axis=1) == y).all()


def test_rows_without_weight_do_not_hide_separability():
    X, y = separable(0)
    X, y = np.vstack([X, X[:1]]), np.append(y, 1 - y[0])
    weight = np.append(np.ones(len(y) - 1), 0.0)
    with pytest.warns(ConvergenceWarning, match="a hyperplane separates the classes"):
        model = LogisticRegression(C=np.inf).fit(X, y, sample_weight=weight)
    assert model.separator_ is not None
