"""From the same seed: the same weights, loss curves, scores and iterations as scikit-learn."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn import neural_network as peer

from assay.neural_network import MLPClassifier, MLPRegressor

pytestmark = pytest.mark.filterwarnings("ignore")

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 5))
WEIGHT = rng.uniform(0.1, 2.0, 150)
TARGETS = {
    "two": (X[:, 0] * X[:, 1] > 0).astype(int),
    "four": np.array(["d", "a", "c", "b"])[np.digitize(X[:, 0] + X[:, 1] ** 2, [0, 1, 2])],
    "labels": np.stack([X[:, 0] > 0, X[:, 1] * X[:, 2] > 0, X[:, 3] > 1], axis=1).astype(int),
    "number": X[:, 0] ** 2 + X[:, 1],
    "numbers": np.stack([X[:, 0] ** 2, X[:, 1]], axis=1),
}
SOLVERS = {
    "adam": {"solver": "adam"},
    "momentum": {"solver": "sgd", "momentum": 0.5, "nesterovs_momentum": False},
    "nesterov": {"solver": "sgd", "learning_rate": "invscaling", "learning_rate_init": 0.1, "power_t": 0.3},
    "adaptive": {"solver": "sgd", "learning_rate": "adaptive", "tol": 1e-2, "n_iter_no_change": 2},
    "early": {"solver": "adam", "early_stopping": True, "validation_fraction": 0.2},
    "single": {"solver": "sgd", "batch_size": 1},
    "ordered": {"solver": "adam", "shuffle": False, "batch_size": 40, "beta_1": 0.8, "beta_2": 0.9, "epsilon": 1e-3},
}


def both(target, **params):
    number = target.startswith("number")
    ours, theirs = (MLPRegressor, peer.MLPRegressor) if number else (MLPClassifier, peer.MLPClassifier)
    params = {"hidden_layer_sizes": (7,), "max_iter": 12, "random_state": 3, **params}
    return ours(**params), theirs(**params)


def compare(ours, theirs, tol=1e-9):
    for name in ("coefs_", "intercepts_"):
        for have, want in zip(getattr(ours, name), getattr(theirs, name), strict=True):
            assert have.shape == want.shape
            assert np.allclose(have, want, rtol=tol, atol=tol)
    assert ours.loss_ == pytest.approx(theirs.loss_, rel=tol)
    for name in ("n_iter_", "n_layers_", "n_outputs_", "out_activation_"):
        assert getattr(ours, name) == getattr(theirs, name)


@pytest.mark.mission("NNW-07", "NNW-14")
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_stochastic_runs(solver, target, weighted):
    weight = WEIGHT if weighted else None
    activation = ["relu", "tanh", "logistic", "identity"][(len(solver) + len(target)) % 4]
    ours, theirs = both(target, activation=activation, **SOLVERS[solver])
    ours.fit(X, TARGETS[target], sample_weight=weight)
    theirs.fit(X, TARGETS[target], sample_weight=weight)
    compare(ours, theirs)
    assert np.allclose(ours.loss_curve_, theirs.loss_curve_, rtol=1e-10)
    assert ours.t_ == theirs.t_
    if solver == "early":
        assert np.allclose(ours.validation_scores_, theirs.validation_scores_)
        assert ours.best_validation_score_ == pytest.approx(theirs.best_validation_score_)
        assert ours.best_loss_ is theirs.best_loss_ is None
    else:
        assert ours.best_loss_ == pytest.approx(theirs.best_loss_, rel=1e-10)
        assert ours.validation_scores_ is theirs.validation_scores_ is None
    assert np.array_equal(ours.predict(X), theirs.predict(X)) or np.allclose(ours.predict(X), theirs.predict(X))
    if hasattr(ours, "predict_proba"):
        assert np.allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)
        assert np.allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-6)


@pytest.mark.mission("NNW-38")
@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
def test_deep_networks(activation):
    ours, theirs = both("four", activation=activation, hidden_layer_sizes=(6, 5, 4))
    compare(ours.fit(X, TARGETS["four"]), theirs.fit(X, TARGETS["four"]))


@pytest.mark.parametrize("target", ["two", "four", "labels", "number"])
@pytest.mark.parametrize("activation", ["tanh", "logistic"])
def test_lbfgs(target, activation):
    ours, theirs = both(target, solver="lbfgs", activation=activation, tol=1e-6, alpha=0.1)
    ours.fit(X, TARGETS[target], sample_weight=WEIGHT)
    theirs.fit(X, TARGETS[target], sample_weight=WEIGHT)
    compare(ours, theirs, tol=1e-6)


def test_lbfgs_of_several_targets_reaches_at_least_as_low():
    # scikit-learn's loss is the mean over targets and its gradient that of the sum, so its line search is misled.
    ours, theirs = both("numbers", solver="lbfgs", activation="tanh", max_iter=200)
    ours.fit(X, TARGETS["numbers"])
    theirs.fit(X, TARGETS["numbers"])
    ours_error, theirs_error = (np.mean((one.predict(X) - TARGETS["numbers"]) ** 2) for one in (ours, theirs))
    assert ours_error <= theirs_error * 1.05


def test_counts():
    y = np.random.default_rng(1).poisson(np.exp(X[:, 0]))
    ours, theirs = both("number", loss="poisson")
    compare(ours.fit(X, y), theirs.fit(X, y))
    assert np.allclose(ours.predict(X), theirs.predict(X))
    with pytest.raises(ValueError, match="needs y >= 0"):
        ours.fit(X, X[:, 0])


@pytest.mark.parametrize("target", ["two", "four", "number"])
def test_single_precision(target):
    ours, theirs = both(target, max_iter=5)
    single = X.astype(np.float32)
    compare(ours.fit(single, TARGETS[target]), theirs.fit(single, TARGETS[target]), tol=1e-4)
    assert {W.dtype for W in ours.coefs_} == {np.dtype(np.float32)}
    if target == "number":
        assert ours.predict(single).dtype == np.float64  # what a certificate speaks of


@pytest.mark.parametrize("solver", ["adam", "lbfgs"])
def test_sparse_rows(solver):
    table = np.where(np.abs(X) > 1, X, 0.0)
    ours, theirs = both("four", solver=solver, activation="tanh")
    compare(ours.fit(csr_matrix(table), TARGETS["four"]), theirs.fit(table, TARGETS["four"]), tol=1e-7)
    assert np.array_equal(ours.predict(csr_matrix(table)), ours.predict(table))


@pytest.mark.parametrize("solver", ["adam", "sgd"])
@pytest.mark.parametrize("target", ["two", "labels", "number"])
def test_partial_fit_goes_on_where_it_ended(target, solver):
    ours, theirs = both(target, solver=solver)
    first = {} if target == "number" else {"classes": [0, 1] if target == "two" else [0, 1, 2]}
    for k in range(4):
        part = slice(37 * k, 37 * (k + 1))
        for model in (ours, theirs):
            model.partial_fit(X[part], TARGETS[target][part], **first)
        first = {}
    compare(ours, theirs)
    assert np.allclose(ours.loss_curve_, theirs.loss_curve_)
    assert ours.t_ == theirs.t_ == 148


def test_warm_start_goes_on_from_the_weights():
    ours, theirs = both("two", warm_start=True, max_iter=4)
    for model in (ours, theirs):
        model.fit(X, TARGETS["two"]).fit(X, TARGETS["two"])
    compare(ours, theirs)
    assert np.allclose(ours.loss_curve_, theirs.loss_curve_)
    assert len(ours.loss_curve_) == 8


def test_the_printed_course(capsys):
    ours, theirs = both("two", verbose=True, max_iter=2)
    ours.fit(X, TARGETS["two"])
    said = capsys.readouterr().out
    theirs.fit(X, TARGETS["two"])
    assert said == capsys.readouterr().out
