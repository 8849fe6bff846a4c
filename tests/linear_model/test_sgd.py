"""SGDClassifier and SGDRegressor: row and class weights, further epochs, parameters; scikit-learn's are the oracle."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as sk
from scipy.optimize import minimize

import assay
from assay.linear_model import SGDClassifier, SGDRegressor
from assay.losses import named

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

IN_ORDER = {"learning_rate": "constant", "eta0": 0.02, "alpha": 0.01, "shuffle": False, "max_iter": 3}
"""In the order of the data and at a constant rate nothing is left to chance: every library must give the same bits but
for rounding."""


def labelled(seed, n=120, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.digitize(X @ [1.0, -1.0, 0.5, 0.0] + 0.7 * rng.normal(size=n), np.linspace(-0.7, 0.9, classes - 1))
    return X, np.array(["fig", "pear", "plum"])[y], rng.uniform(0.0, 3.0, n) * (rng.random(n) < 0.8)


def pair(ours, peer, shared, *arguments, **fit):
    """Return Assay's model and scikit-learn's, fitted alike for three epochs."""
    return ours(**shared, tol=0.0, n_iter_no_change=9).fit(*arguments, **fit), peer(**shared, tol=None).fit(
        *arguments, **fit
    )


def same(ours, peer, rtol=1e-9):
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("loss", ["hinge", "log_loss", "squared_hinge"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"fig": 0.3, "pear": 2.0}])
def test_weights_move_the_classifier_as_in_scikit_learn(classes, loss, class_weight):
    X, y, weight = labelled(classes, classes=classes)
    shared = {**IN_ORDER, "loss": loss, "class_weight": class_weight}
    for given in ({}, {"sample_weight": weight}):
        same(*pair(SGDClassifier, sk.SGDClassifier, shared, X, y, **given))


@pytest.mark.parametrize("loss", ["squared_error", "epsilon_insensitive"])
def test_weights_move_the_regressor_as_in_scikit_learn(loss):
    X, _, weight = labelled(4)
    y = X @ [1.0, 2.0, 0.0, -1.0] + 0.5
    same(*pair(SGDRegressor, sk.SGDRegressor, {**IN_ORDER, "loss": loss}, X, y, sample_weight=weight))


@pytest.mark.parametrize(
    "options", [{}, {"batch_size": 7}, {"batch_size": 5, "optimizer": "adam"}, {"loss": "log_loss", "alpha": 0.1}]
)
def test_sparse_rows_and_batches_are_weighted_too(options):
    X, y, weight = labelled(5)
    X = X * (np.abs(X) > 0.7)
    model = SGDClassifier(random_state=0, fit_intercept=False, **options)
    dense, sparse = (model.fit(kind, y, sample_weight=weight).coef_.copy() for kind in (X, sp.csr_matrix(X)))
    np.testing.assert_allclose(sparse, dense, rtol=1e-9)
    plain = model.fit(X, y).coef_
    assert np.abs(plain - dense).max() > 1e-3
    np.testing.assert_allclose(model.fit(X, y, sample_weight=np.ones(len(y))).coef_, plain, rtol=1e-9)


def weighted_objective(model, X, y, weight):
    """Return P of the module's docstring as a function of (w, b), written out again."""
    numeric = y.dtype.kind == "f"
    target = y if numeric else np.where(y == model.classes_[1], 1.0, -1.0)
    cost = weight * (1.0 if numeric else np.where(target > 0, model.class_weight_[1], model.class_weight_[0]))
    return lambda v: (
        0.5 * model.alpha * v[:-1] @ v[:-1]
        + np.mean(cost * named(model.loss, float(model.epsilon)).value(target, X @ v[:-1] + v[-1]))
    )


@pytest.mark.parametrize("loss", ["hinge", "log_loss", "squared_hinge", "exponential"])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_the_gap_of_weighted_rows_is_proved_and_bounds_the_excess(loss, class_weight):
    X, y, weight = labelled(6, n=250)
    model = SGDClassifier(loss, alpha=0.1, max_iter=300, tol=0.0, class_weight=class_weight, random_state=0)
    model.fit(X, y, sample_weight=weight)
    certificate = model.certify(X, y, sample_weight=weight)
    report = assay.verify(certificate, model, X, y, sample_weight=weight)
    assert report.holds, report.reason
    assert not assay.verify(certificate, model, X, y).holds
    objective, here = weighted_objective(model, X, y, weight), np.append(model.coef_[0], model.intercept_)
    least = min(
        minimize(objective, here, method=how, options={"maxiter": 20_000}).fun for how in ("Nelder-Mead", "BFGS")
    )
    claim = certificate.find("duality-gap")
    assert objective(here) - least <= claim.value < 0.05
    forged = replace(claim, params={**claim.params, "class_weight": [9.0, 0.1]})
    claims = tuple(forged if one is claim else one for one in certificate.claims)
    assert not assay.verify(replace(certificate, claims=claims), model, X, y, sample_weight=weight).holds


def test_the_gap_of_a_weighted_regression_is_proved():
    X, _, weight = labelled(7, n=250)
    y = X @ [1.0, 2.0, 0.0, -1.0] + np.random.default_rng(0).normal(size=250)
    for loss in ("squared_error", "absolute_error", "epsilon_insensitive"):
        model = SGDRegressor(loss, alpha=0.1, max_iter=300, tol=0.0, random_state=0).fit(X, y, sample_weight=weight)
        certificate = model.certify(X, y, sample_weight=weight)
        assert assay.verify(certificate, model, X, y, sample_weight=weight).holds
        objective, here = weighted_objective(model, X, y, weight), np.append(model.coef_, model.intercept_)
        least = minimize(objective, here, method="Nelder-Mead", options={"maxiter": 20_000}).fun
        assert objective(here) - least <= certificate.find("duality-gap").value < 0.5


def test_without_penalty_the_distance_to_the_closed_form_is_proved():
    """Squared error: the excess over the normal equations, weights included, is at most the claim and close to it."""
    X, _, weight = labelled(15, n=250)
    y = X @ [1.0, 2.0, 0.0, -1.0] + np.random.default_rng(1).normal(size=250)
    model = SGDRegressor(alpha=0.0, eta0=0.002, max_iter=300, tol=0.0, random_state=0).fit(X, y, sample_weight=weight)
    certificate = model.certify(X, y, sample_weight=weight)
    assert assay.verify(certificate, model, X, y, sample_weight=weight).holds
    exact = sk.LinearRegression().fit(X, y, sample_weight=weight)
    excess = 0.5 * (weight @ (y - model.predict(X)) ** 2 - weight @ (y - exact.predict(X)) ** 2)
    claim = certificate.find("suboptimality")
    assert claim.params["form"] == "a"
    assert 0 < excess <= claim.value < 20 * excess


def test_without_penalty_the_logistic_loss_is_proved_stationary():
    X, y, weight = labelled(16, n=250)
    weight = weight + 0.1
    model = SGDClassifier("log_loss", penalty=None, learning_rate="sqrt", eta0=0.05, decay=0.01, max_iter=200, tol=0.0)
    values = []
    for epochs in (1, 200):
        model.set_params(max_iter=epochs, random_state=0, class_weight={"fig": 2.0}).fit(X, y, sample_weight=weight)
        certificate = model.certify(X, y, sample_weight=weight)
        assert assay.verify(certificate, model, X, y, sample_weight=weight).holds
        values.append(certificate.find("suboptimality").value)
    costs = weight * np.where(y == "fig", 2.0, 1.0)
    pull = costs * (model.predict_proba(X)[:, 1] - (y == "pear"))
    gradient = np.append(X.T @ pull, pull.sum())
    assert values[1] == pytest.approx(
        np.linalg.norm(gradient) * certificate.find("suboptimality").params["radius"], rel=1e-5
    )
    assert values[1] < values[0] / 3


def test_a_class_weight_on_a_numeric_target_is_refused_by_the_checker():
    X, _, _ = labelled(8)
    y = X[:, 0] + 1.0
    model = SGDRegressor(alpha=0.1, random_state=0).fit(X, y)
    certificate = model.certify(X, y)
    claim = certificate.find("duality-gap")
    forged = replace(claim, params={**claim.params, "class_weight": [1.0, 1.0]})
    claims = tuple(forged if one is claim else one for one in certificate.claims)
    report = assay.verify(replace(certificate, claims=claims), model, X, y)
    assert "'class_weight' is no part of such a claim" in report.reason


# Further epochs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_partial_fit_goes_on_where_it_ended_as_in_scikit_learn(classes):
    X, y, weight = labelled(9, classes=classes)
    names = np.unique(y)
    ours, peer = SGDClassifier(**IN_ORDER), sk.SGDClassifier(**IN_ORDER)
    for part in (slice(0, 50), slice(50, 70), slice(70, 120)):
        ours.partial_fit(X[part], y[part], classes=names, sample_weight=weight[part])
        peer.partial_fit(X[part], y[part], classes=names, sample_weight=weight[part])
        same(ours, peer)
    assert ours.t_ == 120
    shared = {key: value for key, value in IN_ORDER.items() if key != "max_iter"}
    one, two = SGDRegressor(**shared), sk.SGDRegressor(**shared)
    for part in (slice(0, 60), slice(60, 120)):
        one.partial_fit(X[part], X[part, 0])
        two.partial_fit(X[part], X[part, 0])
    same(one, two)


@pytest.mark.parametrize("optimizer", ["plain", "momentum", "adagrad", "adam"])
def test_two_partial_fits_are_two_epochs(optimizer):
    """Rate and moments go on, so that two calls on all rows are a fit of two epochs."""
    X, y, _ = labelled(10)
    shared = {
        "optimizer": optimizer,
        "batch_size": 8,
        "learning_rate": "sqrt",
        "decay": 0.1,
        "eta0": 0.05,
        "shuffle": False,
    }
    whole = SGDClassifier("log_loss", max_iter=2, tol=0.0, **shared).fit(X, y)
    parts = SGDClassifier("log_loss", **shared)
    for _ in range(2):
        parts.partial_fit(X, y, classes=["fig", "pear"])
    np.testing.assert_array_equal(parts.coef_, whole.coef_)
    assert parts.t_ == whole.t_ == 2 * 15


def test_warm_start_begins_at_the_last_coefficients():
    X, y, _ = labelled(11)
    ours, peer = pair(SGDClassifier, sk.SGDClassifier, {**IN_ORDER, "warm_start": True}, X, y)
    ours.fit(X, y)
    peer.fit(X, y)
    same(ours, peer)
    cold = SGDClassifier(**IN_ORDER, tol=0.0).fit(X, y)
    assert np.abs(cold.coef_ - ours.coef_).max() > 1e-3
    with pytest.raises(ValueError, match="classes of the last fit"):
        ours.fit(X, np.where(y == "fig", "nut", y))


def test_early_stopping_judges_by_weight():
    """Rows of weight zero are of another kind; they must neither move nor judge the model."""
    X, y, _ = labelled(12, n=400)
    weight = (np.arange(400) % 2).astype(float)
    mixed = np.where(weight > 0, y, np.where(y == "fig", "pear", "fig"))
    model = SGDClassifier("log_loss", early_stopping=True, random_state=0, alpha=0.01).fit(
        X, mixed, sample_weight=weight
    )
    assert model.score(X, y) > 0.8


# Parameters -----------------------------------------------------------------------------------------------------------


def test_without_penalty_alpha_plays_no_part():
    X, y, _ = labelled(13)
    shared = {key: value for key, value in IN_ORDER.items() if key != "alpha"}
    free = SGDClassifier(penalty=None, alpha=5.0, **shared).fit(X, y)
    np.testing.assert_array_equal(free.coef_, SGDClassifier(alpha=0.0, **shared).fit(X, y).coef_)
    assert any("Without a penalty" in one.reason for one in free.certify(X, y).not_applicable)


def test_refusals_say_what_is_wrong():
    X, y, _ = labelled(14)
    for model, words in [
        (SGDClassifier(penalty="l0"), "penalty must be one of 'l2', 'l1', 'elasticnet', None; got 'l0'"),
        (SGDClassifier(class_weight={"fig": -1.0}), "class_weight must hold finite numbers > 0"),
        (SGDClassifier(shuffle="yes"), "shuffle must be one of True, False"),
    ]:
        with pytest.raises(ValueError, match=words):
            model.fit(X, y)
    with pytest.raises(ValueError, match="first call of partial_fit needs classes"):
        SGDClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="early_stopping should be False"):
        SGDRegressor(early_stopping=True).partial_fit(X, X[:, 0])
    with pytest.raises(ValueError, match="is not supported for partial_fit"):
        SGDClassifier(class_weight="balanced").partial_fit(X, y, classes=["fig", "pear"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SGDClassifier().partial_fit(X, y, classes=["fig", "pear"])  # one epoch is what was asked for: no complaint


# scikit-learn's other penalties, rates and averages -------------------------------------------------------------------


@pytest.mark.parametrize("options", [
    {"penalty": "l1", "alpha": 0.01}, {"penalty": "elasticnet", "alpha": 0.01, "l1_ratio": 0.4},
    {"average": True}, {"average": 37},
    {"loss": "modified_huber"}, {"loss": "perceptron"}, {"loss": "huber", "epsilon": 0.2},
    {"learning_rate": "invscaling", "power_t": 0.3}, {"learning_rate": "adaptive", "max_iter": 9, "tol": 1.0},
])  # fmt: skip
def test_updates_are_scikit_learns_in_the_order_of_the_data(options):
    X, y, _ = labelled(15)
    settings = {"shuffle": False, "eta0": 0.05, "learning_rate": "constant", "max_iter": 4, "tol": None} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = SGDClassifier(**settings).fit(X, y)
        other = sk.SGDClassifier(**settings).fit(X, y)
    np.testing.assert_allclose(ours.coef_, other.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.intercept_, other.intercept_, rtol=1e-9, atol=1e-12)
    assert assay.verify(ours.certify(X, y), ours, X, y).holds


@pytest.mark.parametrize("loss", ["squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
def test_each_loss_of_numbers_is_certified_with_each_penalty(loss, penalty):
    X, _, _ = labelled(18)
    y = 2 * X[:, 0] + np.random.default_rng(0).normal(size=len(X))
    model = SGDRegressor(loss=loss, penalty=penalty, alpha=0.01, learning_rate="sqrt", decay=0.1, random_state=0)
    certificate = model.fit(X, y).certify(X, y)
    assert certificate.find("duality-gap").value < 5.0
    assert assay.verify(certificate, model, X, y).holds


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("options", [
    {}, {"class_weight": "balanced"}, {"penalty": "elasticnet", "tol": None, "max_iter": 9}, {"average": True},
    {"learning_rate": "adaptive", "eta0": 0.1}, {"learning_rate": "invscaling", "eta0": 0.1}, {"loss": "perceptron"},
])  # fmt: skip
def test_a_seed_is_scikit_learns_descent(options, classes, kind):
    """The same rows in the same order at the same rate, until the same epoch; by sparse rows the intercept is slow."""
    X, y, weight = labelled(19, classes=classes)
    X = kind(X * (np.abs(X) > 0.3))
    ours, other = (library(random_state=3, **options).fit(X, y) for library in (SGDClassifier, sk.SGDClassifier))
    assert ours.n_iter_ == other.n_iter_
    same(ours, other, rtol=1e-7)
    weighted = (m.fit(X, y, sample_weight=weight) for m in (ours, other))
    same(*weighted, rtol=1e-7)


@pytest.mark.parametrize("kind", [SGDClassifier, SGDRegressor])
def test_rows_kept_out_are_scikit_learns(kind):
    X, y, _ = labelled(20, classes=3)
    y = y if kind is SGDClassifier else X[:, 0]
    settings = {"early_stopping": True, "tol": None, "max_iter": 5, "learning_rate": "constant", "eta0": 0.01}
    peer = getattr(sk, kind.__name__)
    ours, other = (one(random_state=7, **settings).fit(X, y) for one in (kind, peer))
    same(ours, other)


def test_averages_and_l1_of_sparse_rows_are_those_of_dense_ones():
    """Sparse updates cost as much as the row has entries; sums of iterates are kept up by what they lag behind."""
    X, y, _ = labelled(21)
    settings = {"average": 10, "alpha": 0.5, "fit_intercept": False, "random_state": 1, "max_iter": 4, "tol": None}
    rows = X * (np.abs(X) > 0.7)
    dense, sparse = (SGDClassifier(**settings).fit(table, y) for table in (rows, sp.csr_matrix(rows)))
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-9)
    few = {"penalty": "l1", "alpha": 0.02, "random_state": 1, "max_iter": 5, "tol": None}
    one, two = (library(**few).fit(sp.csr_matrix(rows), y) for library in (SGDClassifier, sk.SGDClassifier))
    same(one, two)


def test_rows_of_infinite_length_are_refused_with_the_cure():
    X, y, _ = labelled(22)
    with pytest.raises(ValueError, match=r"Floating-point under-/overflow.*Scaling input data with StandardScaler"):
        SGDClassifier("squared_hinge", alpha=0.1).fit(X * 1e300, y)


def test_a_fit_starts_where_it_is_told_to():
    X, y, _ = labelled(16)
    settings = {"shuffle": False, "eta0": 0.05, "learning_rate": "constant", "max_iter": 1, "tol": None}
    start = {"coef_init": np.full((1, X.shape[1]), 0.3), "intercept_init": [-0.2]}
    ours, other = SGDClassifier(**settings).fit(X, y, **start), sk.SGDClassifier(**settings).fit(X, y, **start)
    np.testing.assert_allclose(ours.coef_, other.coef_, rtol=1e-9)
    with pytest.raises(ValueError, match="coef_init does not match"):
        SGDClassifier().fit(X, y, coef_init=np.zeros(99))


def test_probabilities_of_the_modified_huber_loss_are_scikit_learns():
    X, y, _ = labelled(17)
    settings = {"loss": "modified_huber", "shuffle": False, "eta0": 0.05, "learning_rate": "constant", "tol": None}
    ours, other = (kind(max_iter=3, **settings).fit(X, y) for kind in (SGDClassifier, sk.SGDClassifier))
    np.testing.assert_allclose(ours.predict_proba(X), other.predict_proba(X), atol=1e-9)
    assert not hasattr(SGDClassifier(loss="hinge").fit(X, y), "predict_proba")


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("how", ["pa1", "pa2"])
@pytest.mark.parametrize("penalty", [None, "l2"])
def test_passive_aggressive_steps_are_scikit_learns(how, penalty, sparse):
    X, y, weight = labelled(18, classes=3)
    rows = sp.csr_matrix(X) if sparse else X
    for eta in (0.02, 1.0):
        shared = {**IN_ORDER, "learning_rate": how, "eta0": eta, "penalty": penalty}
        same(*pair(SGDClassifier, sk.SGDClassifier, shared, rows, y, sample_weight=weight))
        loss = {"loss": "epsilon_insensitive", **shared}
        same(*pair(SGDRegressor, sk.SGDRegressor, loss, rows, X[:, 0] - X[:, 1] ** 2))


def test_a_passive_aggressive_step_ends_where_the_loss_does():
    X = np.array([[3.0, 4.0]])
    model = SGDRegressor(
        loss="epsilon_insensitive", epsilon=0.5, penalty=None, learning_rate="pa1", eta0=9.0, fit_intercept=False,
        max_iter=1, tol=None,
    ).fit(X, [2.0])  # fmt: skip
    assert model.predict(X)[0] == pytest.approx(1.5)
    with pytest.raises(ValueError, match="only works with loss 'hinge'"):
        SGDClassifier("log_loss", learning_rate="pa1").fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="batch_size=1"):
        SGDClassifier(learning_rate="pa2", batch_size=2).fit([[0.0], [1.0]], [0, 1])
