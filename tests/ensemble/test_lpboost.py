"""LPBoost against the whole linear programme over all stumps, weak duality; AdaBoost.R2 against scikit-learn."""

import warnings

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn import ensemble as peer
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor as PeerTree

import assay
from assay import datasets
from assay.ensemble import AdaBoostClassifier, AdaBoostRegressor, LPBoost
from assay.ensemble._adaboost_regressor import weighted_median
from assay.ensemble._lpboost import soft_margin, solve_soft_margin
from assay.guarantees.evidence import Predictions
from assay.tree import DecisionTreeRegressor
from tests.evidence import evidence


def small(seed, n=30, d=3, flips=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 1)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    y[:flips] = 1 - y[:flips]
    return X, y


def all_stumps(X):
    """Return (rows, stumps) in {-1, 1}: every threshold of every column, both ways, and the two constants."""
    sides = [np.where(X[:, f] > t, 1.0, -1.0) for f in range(X.shape[1]) for t in np.unique(X[:, f])]
    return np.column_stack([*sides, *(-side for side in sides)])


def largest_margin(X, y, nu):
    """Return the optimum of the primal programme over all stumps at once."""
    H = all_stumps(X) * (2 * y - 1)[:, None]
    n, T = H.shape
    cap = 1.0 if nu == 0 else min(1.0, 1 / (nu * n))
    # variables: a (T), rho, xi (n): maximise rho - cap sum xi with rho - xi_i - <H_i, a> <= 0, sum a = 1
    found = linprog(
        np.concatenate([np.zeros(T), [-1.0], np.full(n, cap)]),
        A_ub=np.column_stack([-H, np.ones(n), -np.eye(n)]),
        b_ub=np.zeros(n),
        A_eq=np.concatenate([np.ones(T), np.zeros(n + 1)])[None],
        b_eq=[1.0],
        bounds=[(0, None)] * T + [(None, None)] + [(0, None)] * n,
    )
    return -found.fun


@pytest.mark.mission("ENS-06")
@pytest.mark.parametrize("nu", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("seed", range(4))
def test_the_margin_is_that_of_the_whole_programme(seed, nu):
    X, y = small(seed, flips=2 if nu else 0)
    model = LPBoost(nu=nu, n_estimators=300).fit(X, y)
    best = largest_margin(X, y, nu)
    assert model.margin_ == pytest.approx(best, abs=2e-6)
    assert model.margin_bound_ == pytest.approx(best, abs=2e-6)
    assert model.gap_ <= 1e-6
    if nu == 0:
        assert model.margin_ == pytest.approx(model.margins_.min())
        assert model.min_margin_ == model.margins_.min()


@pytest.mark.parametrize("seed", range(3))
def test_the_programme_of_some_stumps_is_solved(seed):
    rng = np.random.default_rng(seed)
    signed, caps = np.where(rng.random((40, 25)) < 0.6, 1.0, -1.0), rng.uniform(0.03, 0.2, 40)
    found = solve_soft_margin(signed, caps, 1e-9)
    peer = linprog(
        np.append(np.zeros(40), 1.0),
        A_ub=np.column_stack([signed.T, -np.ones(25)]),
        b_ub=np.zeros(25),
        A_eq=np.append(np.ones(40), 0.0)[None],
        b_eq=[1.0],
        bounds=[*((0.0, c) for c in caps), (None, None)],
    )
    assert (found.u @ signed).max() == pytest.approx(peer.fun, abs=1e-8)
    assert soft_margin(signed @ found.a, caps) == pytest.approx(peer.fun, abs=1e-8)
    assert (found.a >= 0).all()
    assert (found.u <= caps * (1 + 1e-9)).all()


def overlapping(seed, gap, n=600, d=5):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d))
    X[:, :2] += gap * (2 * y - 1)[:, None]
    return X, y


def credit():
    table, target = datasets.load("credit").split_target("default")
    return np.nan_to_num(table.matrix(), nan=-1.0), target.values()


TABLES = {
    "credit": credit,
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    "far apart": lambda: overlapping(0, 1.0),
    "overlapping": lambda: overlapping(1, 0.5),
    "hardly apart": lambda: overlapping(2, 0.15),
}


@pytest.mark.filterwarnings("ignore:LPBoost. the margin is proved")
@pytest.mark.parametrize("name", TABLES)
def test_a_fit_as_it_comes_is_as_good_as_adaboost(name):
    X, y = TABLES[name]()
    order = np.random.default_rng(0).permutation(len(y))
    fit, new = order[: len(y) // 2], order[len(y) // 2 :]
    own, other = (make().fit(X[fit], y[fit]) for make in (LPBoost, AdaBoostClassifier))
    assert own.score(X[fit], y[fit]) > other.score(X[fit], y[fit]) - 0.03
    assert own.score(X[new], y[new]) > other.score(X[new], y[new]) - 0.05
    assert len(own.estimator_weights_) <= 50
    assert own.margin_ > 0
    assert own.gap_ < 0.3 * own.margin_bound_
    assert own.margin_ > soft_margin(other.margins_, own.sample_caps_)
    wrong = 1 - other.score(X[fit], y[fit])
    assert own.nu_ == pytest.approx(min(max(0.1, 2 * wrong + 0.05), 0.95), abs=1e-9)


def test_where_no_vote_has_a_positive_margin_adaboost_votes():
    X, y = overlapping(2, 0.15)
    with pytest.warns(ConvergenceWarning, match="raise n_estimators"):
        model = LPBoost(nu=0.05, n_estimators=10).fit(X, y)
    boosted = AdaBoostClassifier(n_estimators=10).fit(X, y)
    assert model.margins_ == pytest.approx(boosted.margins_)
    assert model.gap_ == pytest.approx(model.margin_bound_ - soft_margin(boosted.margins_, model.sample_caps_))
    same = np.repeat(X[:20], 2, axis=0)  # every row with both labels: the largest soft margin is 0
    with pytest.warns(ConvergenceWarning):
        model = LPBoost(nu=0.5).fit(same, np.tile([0, 1], 20))
    assert model.margin_bound_ == pytest.approx(0.0, abs=1e-6)


def test_few_stumps_of_many_are_almost_as_good():
    X, y = overlapping(0, 1.0)
    many = LPBoost(nu=0.2, n_estimators=200).fit(X, y)
    assert many.gap_ <= 1e-6
    with pytest.warns(ConvergenceWarning):
        few = LPBoost(nu=0.2, n_estimators=len(many.estimator_weights_) // 2).fit(X, y)
    assert 0.5 * many.margin_ < few.margin_ < many.margin_
    assert len(few.estimator_weights_) <= len(many.estimator_weights_) // 2


def test_weak_duality_holds_in_every_round():
    X, y = load_breast_cancer(return_X_y=True)
    H = all_stumps(X) * (2 * y - 1)[:, None]
    for rounds in (1, 3, 10, 25):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LPBoost(nu=0.0, n_estimators=rounds).fit(X, y)
        u = model.sample_weights_
        assert u.sum() == pytest.approx(1.0)
        assert (u >= 0).all()
        assert model.margin_bound_ == pytest.approx((u @ H).max(), abs=1e-9)  # the edge of the best stump of all
        assert model.margin_ <= model.margin_bound_ + 1e-12
        assert len(model.estimator_weights_) <= rounds
        assert model.estimator_weights_.sum() == pytest.approx(1.0)
    assert model.gap_ > 1e-3


def test_margins_are_those_of_the_decision_function():
    X, y = small(7)
    model = LPBoost(nu=0.0).fit(X, y)
    f = model.decision_function(X)
    assert model.margins_ == pytest.approx((2 * y - 1) * f)
    assert np.abs(f).max() <= 1 + 1e-12
    assert (model.score(X, y) == 1.0) == (model.min_margin_ > 0)


def test_no_vote_of_adaboost_has_a_larger_minimum_margin():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:200], y[:200]
    best = LPBoost(nu=0.0, n_estimators=300).fit(X, y)
    for rounds in (10, 200):
        boosted = AdaBoostClassifier(n_estimators=rounds, stump="error").fit(X, y)
        assert boosted.margins_.min() <= best.margin_bound_ + 1e-9
    assert boosted.margins_.min() < best.min_margin_ - 0.005


def test_soft_margin_by_brute_force():
    rng = np.random.default_rng(0)
    for _ in range(20):
        m, c = rng.normal(size=6), rng.uniform(0.2, 1.0, 6)
        grid = np.linspace(-4, 4, 20001)
        values = grid - (c * np.maximum(0, grid[:, None] - m)).sum(axis=1)
        assert soft_margin(m, c) == pytest.approx(values.max(), abs=1e-3)
        assert soft_margin(m, c) >= values.max() - 1e-12


def test_weights_are_repeated_rows():
    X, y = small(3, flips=3)
    without = LPBoost(nu=0.3).fit(X, y, [0.0] * 5 + [1.0] * 25)
    assert without.margin_ == pytest.approx(LPBoost(nu=0.3).fit(X[5:], y[5:]).margin_, abs=1e-6)
    times = np.random.default_rng(0).integers(1, 4, len(y))
    weighted = LPBoost(nu=0.3).fit(X, y, times)
    repeated = LPBoost(nu=0.3).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.margin_ == pytest.approx(repeated.margin_, abs=1e-6)


def test_a_fit_cut_short_says_so_and_classes_are_two():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match=r"LPBoost: the margin is proved to .* raise n_estimators"):
        LPBoost(n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match="Only binary classification"):
        LPBoost().fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    for change, words in (
        ({"nu": 1.5}, "nu must be"),
        ({"nu": "own"}, "nu must be"),
        ({"tol": 0.0}, "tol must be"),
        ({"n_estimators": 0}, "n_est"),
    ):
        with pytest.raises(ValueError, match=words):
            LPBoost(**change).fit(X, y)


def test_certificate():
    X, y = small(1)
    model = LPBoost(nu=0.0).fit(X, y)
    certificate = model.certify(X, y)
    assert assay.verify(certificate, model, X, y).holds
    model.estimator_weights_ = model.estimator_weights_[::-1].copy()
    assert not assay.verify(certificate, model, X, y).holds


# AdaBoost.R2 ----------------------------------------------------------------------------------------------------


@pytest.mark.mission("ENS-06")
@pytest.mark.parametrize("loss", ["linear", "square", "exponential"])
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_regression_rounds_are_scikit_learns(loss, rate):
    X, y = load_diabetes(return_X_y=True)
    base = PeerTree(max_depth=3)  # the same trees, ties included
    own, other = (
        make(base, n_estimators=12, loss=loss, learning_rate=rate, random_state=0).fit(X, y)
        for make in (AdaBoostRegressor, peer.AdaBoostRegressor)
    )
    rounds = len(own.estimator_weights_)
    assert own.estimator_weights_ == pytest.approx(other.estimator_weights_[:rounds])
    assert own.estimator_errors_ == pytest.approx(other.estimator_errors_[:rounds])
    assert own.predict(X) == pytest.approx(other.predict(X))
    for mine, theirs in zip(own.staged_predict(X), other.staged_predict(X)):
        assert mine == pytest.approx(theirs)


def test_regression_with_own_trees_is_as_good_as_scikit_learns():
    X, y = load_diabetes(return_X_y=True)
    own, other = (
        np.mean([m(random_state=s).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) for s in range(3)])
        for m in (AdaBoostRegressor, peer.AdaBoostRegressor)
    )
    assert own > other - 0.03


def test_weighted_median_by_counting():
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=(50, 7)), rng.integers(1, 5, 7).astype(float)
    for row, found in zip(values, weighted_median(values, weights)):
        line = np.sort(np.repeat(row, weights.astype(int)))
        assert found == line[(len(line) + 1) // 2 - 1]
    assert weighted_median(np.array([[1.0, 2.0]]), np.array([0.1, 0.1])).tolist() == [1.0]  # half is enough


def test_perfect_and_useless_regressors():
    X = np.arange(8.0)[:, None]
    perfect = AdaBoostRegressor(LinearRegression(), random_state=0).fit(X, 2 * X[:, 0])
    assert perfect.score(X, 2 * X[:, 0]) == pytest.approx(1.0)
    noise = np.where(np.arange(8) % 2, 1.0, -1.0)
    useless = AdaBoostRegressor(LinearRegression(), n_estimators=30, random_state=0).fit(X, noise)
    assert len(useless.estimators_) < 30
    with pytest.raises(ValueError, match="must be a regressor"):
        AdaBoostRegressor(AdaBoostClassifier()).fit(X, noise)
    with pytest.raises(ValueError, match="loss must be one of"):
        AdaBoostRegressor(loss="cubic").fit(X, noise)


def test_certificate_of_the_median(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = AdaBoostRegressor(DecisionTreeRegressor(max_depth=2), n_estimators=9, random_state=0).fit(X[::2], y[::2])
    held = X[1::2], y[1::2]
    certificate = model.certify(X[::2], y[::2], holdout=held, clip=200.0)
    assert assay.verify(certificate, model, X[::2], y[::2], holdout=held).holds
    assert any(not claim.is_fact for claim in certificate.claims)
    errors = np.minimum(np.abs(model.predict(held[0]) - held[1]), 200.0)
    rows = model._known_rows(*held)
    assert evidence(model, rows, Predictions).clipped_errors(rows, 200.0) == pytest.approx(errors)
    model.estimator_weights_ = model.estimator_weights_[::-1].copy()
    assert not assay.verify(certificate, model, X[::2], y[::2], holdout=held).holds
    with pytest.raises(ValueError, match="not re-run"):
        AdaBoostRegressor(LinearRegression(), n_estimators=2).fit(X, y).certify(X, y)


@pytest.mark.parametrize("change", [-1.0, 0.0, np.nan])
def test_damaged_weights_of_the_median_are_rejected(change):
    from assay.checker.record import Refused, Rejected
    from assay.checker.verify import verify

    X, y = load_diabetes(return_X_y=True)
    model = AdaBoostRegressor(n_estimators=4, random_state=0).fit(X, y)
    certificate = model.certify(X, y)
    model.estimator_weights_[1] = change
    try:
        assert not verify(certificate, model, X, y).holds
    except (Refused, Rejected):
        pytest.fail("the checker must answer, not raise")
    from assay.checker.rules.trees import _check_outputs

    with pytest.raises(Rejected):
        _check_outputs("median", np.ones((3, 1)), np.array([change, 1.0]), np.array([0, 1]), None)
