"""Exact, or counted against: no row is judged otherwise than it is predicted."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

import assay
from assay.checker.family import read_model
from assay.checker.predictors import decided
from assay.ensemble import VotingRegressor
from assay.kernel_ridge import KernelRidge
from assay.kernels import Gaussian
from assay.kernels._tiles import SingleExpansion, double_expansion
from assay.linear_model import LogisticRegression, Ridge
from assay.multiclass import OneVsOneClassifier
from assay.neighbors import KNeighborsClassifier, KNeighborsRegressor
from assay.svm import SVC, SVR
from tests.certificate import forge
from tests.differential_inputs import bisected, subjects


def holdout_claim(model, X, y, errors, value):
    """Return a forged claim about the second half of the rows."""
    half = len(y) // 2
    params = {"errors": errors, "rows": half}
    claim = forge.claim("holdout.binomial", value, params=params, data=("holdout",), delta="0.05")
    return forge.Case((claim,), model, X[:half], y[:half], holdout=(X[half:], y[half:])).seal()


def test_neighbours_exactly_as_far_are_those_that_predict_asks():
    """Stored pairs whose distances are equal as fractions and not always in doubles: the checker knows no better."""
    rng = np.random.default_rng(0)
    place = 100.0 * np.arange(200)[:, None]  # each query has two stored rows of its own, in permuted columns
    gap = rng.integers(1, 1000, (200, 3)) / 1000
    stored = np.concatenate([np.hstack([gap, place]), np.hstack([gap[:, [2, 0, 1]], place])])
    X = np.hstack([np.zeros((200, 3)), place])
    model = KNeighborsClassifier(1).fit(stored, np.repeat([0, 1], 200))
    said = model.predict(X)
    assert 20 < said.sum() < 180  # rounding decides, and not always for the first
    guess, sure = decided(read_model(model.stored()), X)
    assert sure.all()
    assert np.array_equal(guess, said)


def test_a_linear_model_whose_sums_cancel_has_no_errors_that_it_does_not_make():
    """Coefficients (1.1e16, -1.1e16, -1.1e16, 1) on a table with total = a + b: rounding is all that predict says."""
    rng = np.random.default_rng(0)
    a, b, z = rng.integers(1, 50, 240) / 4, rng.integers(1, 50, 240) / 4, rng.normal(size=240)
    X, y = np.column_stack([a + b, a, b, z]), (z > 0).astype(int)
    model = forge.model([[1.1e16, -1.1e16, -1.1e16, 1.0]], 0.0, [0, 1])
    assert not holdout_claim(model, X, y, 0, 0.05).verify().holds
    assert holdout_claim(model, X, y, 120, 1.0).verify().holds


def test_a_model_that_rounding_decides_gets_no_statement_and_is_told_why():
    rng = np.random.default_rng(0)
    X = rng.integers(1, 50, (240, 2)) / 4
    X = np.column_stack([X.sum(axis=1), X, rng.normal(size=240)])
    y = (X[:, 3] > 0).astype(int)
    model = LogisticRegression().fit(X, y)
    model.coef_, model.intercept_ = np.array([[1.1e16, -1.1e16, -1.1e16, 1.0]]), np.zeros(1)
    certificate = model.certify(X[:120], y[:120], holdout=(X[120:], y[120:]))
    assert not [one for one in certificate.claims if not one.is_fact]
    assert any("Rounding decides the class of 120 of 120 rows" in one.reason for one in certificate.not_applicable)


WITH_BORDERS = (
    "QuadraticDiscriminantAnalysis", "MLPClassifier", "ObliqueTreeClassifier", "VotedPerceptron", "StackingClassifier",
    "SelfTrainingClassifier", "LabelSpreading", "CrossValidated", "KNeighborsClassifier", "LogisticRegression",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WITH_BORDERS)
def test_no_claim_profits_from_rows_at_a_border(name):
    """Rows down to adjacent doubles at borders, each of another class than predicted: every one counts as an error."""
    model = next(one for one in subjects() if type(one).__name__ == name)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model.fit(X, (X[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int))
    ends = X[rng.integers(60, size=60)], 1.5 * X[rng.integers(60, size=60)]
    rows = np.unique(np.concatenate(list(bisected(model.predict, *ends, rng))), axis=0)
    held = rows, 1 - model.predict(rows)
    assert len(rows) > 50
    for errors, holds in ((len(rows), True), (len(rows) - 1, False)):
        claim = forge.claim(
            "holdout.binomial", 1.0, params={"errors": errors, "rows": len(rows)}, data=("holdout",), delta="0.05"
        )
        assert forge.Case((claim,), model, X, (X[:, 0] > 0).astype(int), holdout=held).seal().verify().holds is holds


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
def test_iris_is_judged_as_it_is_predicted(metric, weights):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(1).permutation(150)
    train, held = order[:90], order[90:]
    for k in (1, 2, 3):
        number = KNeighborsRegressor(k, metric=metric, weights=weights).fit(X[train], y[train].astype(float))
        scores, errors = read_model(number.stored()).scores(X[held], np.abs(X[held]).max(axis=0))
        assert np.all(np.abs(scores[:, 0] - number.predict(X[held])) <= errors[0])
        assert errors.max() < 1e-12
        model = KNeighborsClassifier(k, metric=metric, weights=weights).fit(X[train], y[train])
        guess, sure = decided(read_model(model.stored()), X[held])
        assert sure.all()
        assert np.array_equal(guess, model.predict(X[held]))
        given = {"holdout": (X[held], y[held])}
        certificate = model.certify(X[train], y[train], **given)
        assert certificate.find("holdout.binomial").params["errors"] == int(np.sum(model.predict(X[held]) != y[held]))
        assert assay.verify(certificate, model, X[train], y[train], **given).holds


@pytest.mark.parametrize(
    "model",
    [
        KernelRidge(kernel="rbf"),
        SVR(),
        Ridge(),
        KNeighborsRegressor(3),
        VotingRegressor([("a", SVR()), ("b", Ridge())]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_an_outlier_among_hold_out_rows_widens_no_other_row(model):
    """What rounding can move a prediction of the outlier by is not what it can move the others by."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = X[:, 0] + rng.normal(size=90)
    X[-1] *= 1e8
    model.fit(X[:60], y[:60])
    given = {"holdout": (X[60:], y[60:])}
    certificate = model.certify(X[:60], y[:60], clip=5.0, coverage=0.5, **given)
    report = assay.verify(certificate, model, X[:60], y[:60], **given)
    assert report.holds, report.reason


def test_votes_of_pairs_that_an_outlier_leaves_open_are_counted_once():
    """Scores of a block in which a vote was open must not meet the bounds of rows in which it is certain."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.4, 0.4])
    model = OneVsOneClassifier(LogisticRegression()).fit(X, y)
    rows = np.concatenate([X, X * 1e12])
    guess, sure = decided(read_model(model.stored()), rows)
    assert sure.mean() > 0.8
    assert np.array_equal(guess[sure], model.predict(rows)[sure])


def test_a_kernel_machine_predicts_a_row_alone_as_among_others():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = SVC().fit(X, X[:, 0] * X[:, 1] > 0)
    among = model.decision_function(np.concatenate([X, X * 1e12]))[:60]
    np.testing.assert_allclose(among, model.decision_function(X), rtol=0, atol=1e-12)


def test_signs_of_many_kernel_values_are_those_of_double_precision():
    rng = np.random.default_rng(0)
    V, coef = rng.normal(size=(2100, 6)) + 5.0, rng.normal(size=(2, 2100))
    near, far = V[:300] + 1e-3 * rng.normal(size=(300, 6)), 30 * rng.normal(size=(300, 6))
    X = np.concatenate([near, far, np.full((1, 6), 1e200)])
    values, slack = SingleExpansion(Gaussian(0.3), V, coef)(X)
    exact = double_expansion(Gaussian(0.3), V, coef, X[:-1])
    assert np.all(np.abs(values[:-1] - exact) <= slack[:-1])
    assert not (np.abs(values[-1]) > slack[-1]).any()
