"""Networks: gradients, regularised error, choices, ways out of local minima, interruptions, files, refusals."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, train_test_split

import assay
from assay.neural_network import MLPClassifier, MLPRegressor, hidden_units_by_trial, lambda_by_cross_validation
from assay.neural_network._network import Shape
from assay.neural_network._training import Objective, Penalty
from assay.optim.descent import check_gradient
from assay.scan import rows
from tests.contract.test_contract import Interrupt

pytestmark = pytest.mark.filterwarnings("ignore")

SQUARE = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
XOR = np.array([0, 1, 1, 0])


def moons(n=200, seed=0):
    from sklearn.datasets import make_moons

    return make_moons(n, noise=0.2, random_state=seed)


# Gradients --------------------------------------------------------------------------------------------------


def objective(unit, output, sizes, penalty, seed=0):
    rng = np.random.default_rng(seed)
    n = 23
    X, weight = rng.normal(size=(n, sizes[0])), rng.uniform(0.2, 2.0, n)
    y = {
        "softmax": rng.integers(0, sizes[-1], n),
        "logistic": rng.integers(0, 2, n),
        "identity": rng.normal(size=(n, sizes[-1])),
        "exp": rng.poisson(2.0, (n, sizes[-1])).astype(float),
        "squared_logistic": rng.integers(0, sizes[-1], n),
    }[output]
    shape = Shape(sizes, unit, output)
    found = Objective(rows(X, y, weight), shape, penalty, y.ndim == 1)
    return found, shape.start(np.random.RandomState(seed), np.float64)


@pytest.mark.mission("NNW-14", "NNW-38")
@pytest.mark.parametrize("sizes", [(3, 4), (3, 5, 4), (3, 5, 6, 4), (3, 5, 4, 6, 4)], ids=str)
@pytest.mark.parametrize("output", ["softmax", "logistic", "identity", "exp", "squared_logistic"])
@pytest.mark.parametrize("unit", ["identity", "logistic", "tanh", "relu"])
def test_gradients_against_finite_differences(unit, output, sizes):
    sizes = (*sizes[:-1], 1) if output == "logistic" else sizes
    found, theta = objective(unit, output, sizes, Penalty(1.0, 0.3, 0.0, 0.0))
    assert check_gradient(found.value, found(theta)[1], theta) < 1e-6


@pytest.mark.mission("NNW-07")
def test_the_forward_pass_is_the_matrix_formula():
    X, y = moons()
    model = MLPClassifier((6, 5), "tanh", max_iter=3, random_state=0).fit(X, y)
    (v, w, u), (a, b, c) = model.coefs_, model.intercepts_
    score = np.tanh(np.tanh(X @ v + a) @ w + b) @ u + c
    assert [part.shape for part in model.coefs_] == [(2, 6), (6, 5), (5, 1)]
    assert np.allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-score[:, 0])))


# The regularised error --------------------------------------------------------------------------------------


@pytest.mark.mission("NNW-18")
@pytest.mark.parametrize("output", ["squared_logistic", "identity"])
def test_the_regularised_error_is_its_formula(output):
    lam = 0.7
    plain, theta = objective("logistic", output, (3, 4, 2), Penalty(1.0, 0.0, 0.0, 0.0))
    model = MLPClassifier(lam=lam)
    penalty = model._penalty()
    found, _ = objective("logistic", output, (3, 4, 2), penalty)
    assert found.value(theta) == pytest.approx(lam * plain.value(theta) + (1 - lam) * float(theta @ theta), rel=1e-12)
    assert check_gradient(found.value, found(theta)[1], theta) < 1e-7


@pytest.mark.mission("NNW-18")
def test_lambda_one_is_no_penalty_and_smaller_ones_shrink_the_weights():
    X, y = moons()

    def norm(**params):
        model = MLPClassifier(6, "tanh", solver="lbfgs", loss="squared_error", random_state=0, max_iter=300, **params)
        return np.linalg.norm(model.fit(X, y).network_weights_)

    assert norm(lam=1.0) == norm(alpha=0.0)
    sizes = [norm(lam=lam) for lam in (0.9999, 0.99, 0.9, 0.5)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 0.1 * sizes[0]
    # Batches do not change what is minimised: the mean error of a batch estimates that of all rows.
    model = MLPClassifier(6, "tanh", lam=0.9, batch_size=20, max_iter=400, tol=0.0, random_state=0).fit(X, y)
    whole = MLPClassifier(6, "tanh", lam=0.9, solver="lbfgs", max_iter=400, random_state=0).fit(X, y)
    assert np.linalg.norm(model.network_weights_) == pytest.approx(np.linalg.norm(whole.network_weights_), rel=0.1)


@pytest.mark.mission("NNW-19")
def test_lambda_by_cross_validation_is_the_argmin():
    X, y = moons(120)
    net = MLPClassifier(5, "tanh", solver="lbfgs", random_state=0, max_iter=150)
    grid, folds = (0.2, 0.9, 0.999), StratifiedKFold(4)
    trial = lambda_by_cross_validation(net, X, y, grid, folds=folds)
    errors = []
    for lam in grid:
        wrong = []
        for kept, held in folds.split(X, y):
            model = MLPClassifier(5, "tanh", solver="lbfgs", random_state=0, max_iter=150, lam=lam).fit(
                X[kept], y[kept]
            )
            wrong.append(np.mean(model.predict(X[held]) != y[held]))
        errors.append(np.mean(wrong))
    assert np.allclose(trial.errors, errors)
    assert trial.best == grid[int(np.argmin(errors))]
    assert net.lam is None
    with pytest.raises(ValueError, match="grid must hold at least one value"):
        lambda_by_cross_validation(net, X, y, ())


# Size and stopping ------------------------------------------------------------------------------------------


@pytest.mark.mission("NNW-15")
def test_one_hidden_layer_approximates_the_sine():
    x = np.linspace(-np.pi, np.pi, 200)[:, None]
    between = np.linspace(-np.pi, np.pi, 1999)[:, None]
    errors = []
    for q in (1, 2, 4, 8):
        model = MLPRegressor(
            hidden_layer_sizes=q, activation="tanh", solver="lbfgs", alpha=0.0, tol=1e-9, max_iter=5000, n_restarts=3,
            random_state=0,
        ).fit(x, np.sin(x[:, 0]))  # fmt: skip
        errors.append(float(np.abs(model.predict(between) - np.sin(between[:, 0])).max()))
    assert all(after < before for before, after in itertools.pairwise(errors))
    assert errors[-1] < 0.01


@pytest.mark.mission("NNW-16")
def test_hidden_units_by_trial_is_the_argmin():
    X, y = moons(300)
    net = MLPClassifier(activation="tanh", solver="lbfgs", random_state=0, max_iter=200)
    sizes = (1, 4, (8, 4))
    trial = hidden_units_by_trial(net, X, y, sizes, random_state=5)
    kept, held = train_test_split(np.arange(300), test_size=0.25, random_state=5, stratify=y)
    errors = [
        np.mean(net.set_params(hidden_layer_sizes=size).fit(X[kept], y[kept]).predict(X[held]) != y[held])
        for size in sizes
    ]
    assert np.allclose(trial.errors, errors)
    assert trial.best == sizes[int(np.argmin(errors))]
    assert trial.errors[0] > trial.errors.min()  # one unit is a straight border, which the moons do not have


@pytest.mark.mission("NNW-16")
def test_of_equal_errors_the_network_with_fewest_weights_is_taken():
    """Two far clusters: every network is right, whatever the order in which the sizes are tried."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = 8.0 * y[:, None] + rng.normal(size=(80, 3))
    net = MLPClassifier(solver="lbfgs", random_state=0, max_iter=50)
    for sizes in itertools.permutations([9, (4, 4), 5]):  # 9 * 4 + 10, 4 * 4 + 4 * 5 + 5 and 5 * 4 + 6 weights
        trial = hidden_units_by_trial(net, X, y, sizes)
        assert not trial.errors.any()
        assert trial.best == 5
    assert hidden_units_by_trial(net, X, y, [9, (4, 4)]).best == (4, 4)


@pytest.mark.mission("NNW-17")
def test_early_stopping_restores_the_best_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 10))
    y = X[:, 0] + 0.5 * rng.normal(size=60)
    model = MLPRegressor(
        hidden_layer_sizes=50, early_stopping=True, validation_fraction=0.3, max_iter=400, learning_rate_init=0.01,
        n_iter_no_change=30, random_state=1,
    ).fit(X, y)  # fmt: skip
    random = np.random.RandomState(1)
    Shape((10, 50, 1), "relu", "identity").start(random, np.float64)  # the draws of the first weights come first
    _, held = train_test_split(np.arange(60), random_state=random, test_size=0.3)
    scores = model.validation_scores_
    assert model.score(X[held], y[held]) == pytest.approx(max(scores), abs=1e-12)
    assert scores[-1] < max(scores)  # validation error had risen again ...
    assert model.loss_curve_[-1] < model.loss_curve_[int(np.argmax(scores))]  # ... while training error still fell
    assert model.n_iter_ < 400


# Ways out of local minima -----------------------------------------------------------------------------------


def at_saddle(**params):
    """Return a learner at a stationary point of XOR on -1, +1: output weights are zero, hidden ones odd functions, so
    that the gradients of the four rows cancel."""
    model = MLPClassifier(
        4, "tanh", loss="squared_error", alpha=0.0, warm_start=True, max_iter=1, tol=0.0, n_iter_no_change=np.inf,
        random_state=0, **params,
    )  # fmt: skip
    model.fit(SQUARE, XOR)
    model.coefs_[1][:] = 0.0
    for intercept in model.intercepts_:
        intercept[:] = 0.0
    return model


@pytest.mark.mission("NNW-22")
def test_single_rows_leave_a_saddle_where_the_mean_gradient_is_zero():
    losses = {}
    for solver in ("accumulated_bp", "standard_bp"):
        model = at_saddle(solver=solver, learning_rate_init=5.0)
        losses[solver] = model.set_params(max_iter=500).fit(SQUARE, XOR).loss_
    assert losses["accumulated_bp"] > 0.12  # the error of a network that says 1/2, up to rounding
    assert losses["standard_bp"] < 0.01


@pytest.mark.mission("NNW-21")
def test_annealing_solves_xor_from_a_bad_start():
    stuck = at_saddle(solver="lbfgs").set_params(max_iter=100).fit(SQUARE, XOR)
    assert stuck.loss_ == pytest.approx(0.125, abs=1e-9)
    model = at_saddle(solver="anneal").set_params(max_iter=60).fit(SQUARE, XOR)
    assert model.loss_ < 0.01
    assert model.predict(SQUARE).tolist() == XOR.tolist()
    assert len(model.loss_curve_) == model.n_iter_ == 60
    assert all(after <= before for before, after in itertools.pairwise(model.loss_curve_))


@pytest.mark.mission("NNW-21")
def test_annealing_leaves_a_local_minimum_by_steps_upwards(monkeypatch):
    """L-BFGS rests in a minimum of two units that is not the lowest; so does a search that never steps upwards."""
    stuck = MLPClassifier(
        2,
        "tanh",
        loss="squared_error",
        alpha=1e-3,
        solver="lbfgs",
        tol=1e-9,
        max_iter=500,
        warm_start=True,
        random_state=1,
    ).fit(SQUARE, XOR)
    assert stuck.loss_ == pytest.approx(0.0656, abs=5e-4)
    assert stuck.n_iter_ < 500
    greedy, annealed = (clone(stuck).fit(SQUARE, XOR).set_params(solver="anneal", max_iter=60) for _ in range(2))
    assert annealed.fit(SQUARE, XOR).loss_ < 0.01
    monkeypatch.setattr("assay.optim.descent.acceptance", lambda rise, temperature: float(rise <= 0))
    assert greedy.fit(SQUARE, XOR).loss_ > 0.06


@pytest.mark.mission("NNW-23")
def test_a_genetic_search_solves_xor():
    model = MLPClassifier(2, "tanh", solver="genetic", loss="squared_error", alpha=0.0, max_iter=100, random_state=0)
    model.fit(SQUARE, XOR)
    assert model.loss_ < 0.01
    assert model.predict(SQUARE).tolist() == XOR.tolist()


@pytest.mark.mission("NNW-20")
@pytest.mark.parametrize("solver", ["lbfgs", "adam"])
def test_several_starts_keep_the_best(solver):
    net = MLPClassifier(2, "tanh", solver=solver, max_iter=40, random_state=0)
    one, many = net.fit(SQUARE, XOR), MLPClassifier(**{**net.get_params(), "n_restarts": 6}).fit(SQUARE, XOR)
    assert len(many.restarts_) == 6
    assert many.restarts_[0] == pytest.approx(one.loss_, rel=1e-12)
    assert all(after <= before for before, after in itertools.pairwise(many.restarts_))
    assert many.loss_ == pytest.approx(many.restarts_[-1], rel=1e-12)
    assert many.loss_ < one.loss_
    assert not hasattr(one, "restarts_")


@pytest.mark.mission("NNW-20")
def test_a_start_that_diverges_leaves_the_others(monkeypatch):
    from assay.neural_network._network import Shape

    starts, good = iter([np.nan, 1.0, np.nan, 1.0]), Shape.start
    monkeypatch.setattr(Shape, "start", lambda shape, random, dtype: next(starts) * good(shape, random, dtype))
    for solver in ("adam", "lbfgs"):
        starts = iter([np.nan, 1.0, np.nan, 1.0])
        net = MLPClassifier(2, "tanh", solver=solver, max_iter=40, random_state=0, n_restarts=4).fit(SQUARE, XOR)
        assert np.isinf(net.restarts_[0])
        assert np.isfinite(net.restarts_[1:]).all()
        assert net.restarts_[1] == net.restarts_[2] >= net.restarts_[3] == pytest.approx(net.loss_)
    starts = iter([np.nan] * 2)
    with pytest.raises(ValueError, match="non-finite"):
        MLPClassifier(2, "tanh", max_iter=40, random_state=0, n_restarts=2).fit(SQUARE, XOR)


# Interruptions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("starts", [1, 3])
@pytest.mark.parametrize("solver", ["adam", "lbfgs", "anneal", "genetic"])
def test_ctrl_c_keeps_the_best_so_far(solver, starts, monkeypatch):
    from assay.neural_network import _training

    X, y = moons()
    owner, name = (_training.Epochs, "run") if solver == "adam" else (_training.Objective, "__call__")
    real, calls = getattr(owner, name), 0

    def interrupted(self, *args):
        nonlocal calls
        calls += 1
        if calls == 12:
            raise KeyboardInterrupt
        return real(self, *args)

    monkeypatch.setattr(owner, name, interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted after"):
        model = MLPClassifier(5, "tanh", solver=solver, random_state=0, n_restarts=starts).fit(X, y)
    assert calls == 12  # no further start begins
    monkeypatch.undo()
    assert len(model.predict(X)) == 200
    found = Objective(rows(X, y), Shape((2, 5, 1), "tanh", "logistic"), model._penalty(), True)
    reached = found.value(model.network_weights_)
    start = found.value(Shape((2, 5, 1), "tanh", "logistic").start(np.random.RandomState(0), np.float64))
    assert reached < start
    if solver == "adam":  # the weights of the eleventh epoch, which had the lowest loss
        plain = MLPClassifier(5, "tanh", random_state=0, max_iter=11).fit(X, y)
        assert np.array_equal(model.network_weights_, plain.network_weights_)
        assert model.n_iter_ == 11


@pytest.mark.parametrize("solver", ["lbfgs", "anneal", "genetic", "adam"])
def test_a_callback_that_asks_to_stop_is_no_interrupt(solver):
    X, y = moons(60)
    model = MLPClassifier(3, solver=solver, random_state=0, max_iter=50).set_callbacks(Interrupt(4, None))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nobody interrupted, and the user who asked knows
        model.fit(X, y)
    assert len(model.history_) == 4
    assert model.n_iter_ in (4, 5)
    assert model.score(X, y) >= 0.5


# Files ------------------------------------------------------------------------------------------------------


def test_lbfgs_reads_files_and_gives_the_same_bits(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y = moons(3000)
    names = np.array(["new", "full"])[y]
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": names}), tmp_path / "moons.parquet")
    net = MLPClassifier(4, "tanh", solver="lbfgs", random_state=0, max_iter=15)
    memory, file = net.fit(X, names), MLPClassifier(**net.get_params()).fit(str(tmp_path / "moons.parquet"), "y")
    assert np.array_equal(memory.network_weights_, file.network_weights_)
    with pytest.raises(ValueError, match='visits rows in random order: they must be in memory, or use "lbfgs"'):
        MLPClassifier().fit(str(tmp_path / "moons.parquet"), "y")


def test_threads_change_no_bit_of_lbfgs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 28))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    one, two = (
        MLPRegressor(hidden_layer_sizes=10, solver="lbfgs", max_iter=5, random_state=0, n_jobs=k).fit(X, y)
        for k in (1, 2)
    )
    assert np.array_equal(one.network_weights_, two.network_weights_)


def test_model_files(tmp_path):
    X, y = moons()
    model = MLPClassifier((6, 5), early_stopping=True, max_iter=20, random_state=0).fit(X, y)
    assay.save(model, tmp_path / "net.assay", model.certify(X, y))
    saved = assay.load(tmp_path / "net.assay")
    assert np.array_equal(saved.model.predict_proba(X), model.predict_proba(X))
    assert assay.verify(saved.certificate, saved.model, X, y).holds


@pytest.mark.mission("NNW-39")
def test_a_network_in_scikit_learns_tools():
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils.estimator_checks import check_estimator

    X, y = moons(400)
    pipeline = make_pipeline(StandardScaler(), MLPClassifier(20, solver="lbfgs", max_iter=200, random_state=0))
    assert cross_val_score(pipeline, X, y).mean() > 0.93
    assert np.allclose(pipeline.fit(X, y).predict_proba(X).sum(axis=1), 1.0)
    check_estimator(MLPClassifier())


# Refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"hidden_layer_sizes": 0}, "hidden_layer_sizes must be a number of units >= 1"),
        ({"hidden_layer_sizes": (5, -1)}, "hidden_layer_sizes must be a number of units >= 1"),
        ({"hidden_layer_sizes": (5, 2.5)}, "hidden_layer_sizes must be a number of units >= 1"),
        ({"activation": "step"}, "activation must be one of 'identity', 'logistic', 'tanh', 'relu'"),
        ({"solver": "newton"}, "solver must be one of 'lbfgs', 'sgd', 'adam', 'standard_bp'"),
        ({"alpha": -1.0}, "alpha must be a finite number >= 0 .*; got -1.0"),
        ({"lam": 0.0}, "lam must be a finite number > 0 and <= 1 .*; got 0.0"),
        ({"lam": 1.5}, "lam must be a finite number > 0 and <= 1"),
        ({"batch_size": "all"}, "batch_size must be one of 'auto'"),
        ({"batch_size": 0}, "batch_size must be an integer >= 1"),
        ({"learning_rate": "optimal"}, "learning_rate must be one of 'constant', 'invscaling', 'adaptive'"),
        ({"learning_rate_init": 0.0}, "learning_rate_init must be a finite number > 0"),
        ({"momentum": 1.5}, "momentum must be a finite number >= 0 and <= 1"),
        ({"beta_1": 1.0}, "beta_1 must be a finite number >= 0 and <= 1"),
        ({"epsilon": 0.0}, "epsilon must be a finite number > 0"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be an integer >= 1"),
        ({"n_restarts": 0}, "n_restarts must be an integer >= 1"),
        ({"validation_fraction": 1.0, "early_stopping": True}, "validation_fraction must be"),
        ({"loss": "hinge"}, "loss must be one of 'log_loss', 'squared_error'"),
        ({"verbose": "yes"}, "verbose must be"),
        ({"learning_rate_init": 1e200, "solver": "sgd"}, "non-finite parameter weights"),
    ],
    ids=str,
)
def test_refusals(params, message):
    X, y = moons(40)
    with pytest.raises(ValueError, match=message):
        MLPClassifier(**{"hidden_layer_sizes": 3, "max_iter": 3, "random_state": 0, **params}).fit(X, y)


def test_refusals_of_calls():
    X, y = moons(40)
    with pytest.raises(ValueError, match="The validation set is too small: early_stopping keeps out 1 row"):
        MLPRegressor(early_stopping=True, validation_fraction=0.001).fit(X, y)
    with pytest.raises(ValueError, match=r"early_stopping cannot keep out rows to judge by: .*only 1 member"):
        MLPClassifier(early_stopping=True).fit(X[:3], [0, 1, 1])
    with pytest.raises(ValueError, match=r"^MLPClassifier: lam must be"):
        lambda_by_cross_validation(MLPClassifier(), X, y, (2.0,))
    with pytest.raises(ValueError, match="first call of partial_fit needs classes"):
        MLPClassifier(3).partial_fit(X, y)
    with pytest.raises(ValueError, match="does not support early_stopping=True"):
        MLPClassifier(3, early_stopping=True).partial_fit(X, y, classes=[0, 1])
    with pytest.raises(AttributeError, match="partial_fit"):
        MLPClassifier(3, solver="lbfgs").partial_fit  # noqa: B018
    model = MLPClassifier(3, max_iter=2, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="warm_start can only be used where"):
        model.fit(X, y + 1)
    with pytest.raises(ValueError, match="the weights that are there have layers"):
        model.set_params(hidden_layer_sizes=4).fit(X, y)
    with pytest.raises(ValueError, match="y with columns must hold 0 and 1"):
        MLPClassifier(3).fit(X, np.column_stack([y, y + 1]))
    several = MLPClassifier(3, max_iter=2).fit(X, np.column_stack([y, 1 - y]))
    with pytest.raises(ValueError, match="one label per row"):
        several.certify(X, np.column_stack([y, 1 - y]))
    with pytest.warns(UserWarning, match="batch_size=50 is more than the 40 rows"):
        MLPClassifier(3, batch_size=50, max_iter=2).fit(X, y)


def test_parameters_are_packed_as_stored():
    model = MLPClassifier((3, 2), max_iter=1, random_state=0).fit(*moons(30))
    parts = [part.ravel() for part in (*model.coefs_, *model.intercepts_)]
    assert np.array_equal(model.network_weights_, np.concatenate(parts))
    assert [part.shape for part in model.coefs_] == [(2, 3), (3, 2), (2, 1)]
    model.coefs_[1][0, 1] = 7.0  # a view: there is one set of weights
    assert model.network_weights_[2 * 3 + 1] == 7.0


def test_single_precision_weights_predict_what_the_checker_reads():
    """The prediction is the double that the stored weights give, row for row; in single precision scores near the
    threshold fell on the other side of it."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(200, 3)) * 1e3).astype(np.float32)
    y = (X.sum(axis=1) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MLPClassifier(8, activation="relu", max_iter=3, random_state=0).fit(X, y)
        line = MLPRegressor(hidden_layer_sizes=8, activation="relu", max_iter=3, random_state=0).fit(X, X[:, 0])
    assert model.coefs_[0].dtype == np.float32

    def doubles(net):
        A = X.astype(np.float64)
        for k, (W, b) in enumerate(zip(net.coefs_, net.intercepts_)):
            A = A @ W.astype(np.float64) + b
            A = np.maximum(A, 0) if k < len(net.coefs_) - 1 else A
        return A[:, 0]

    assert np.array_equal(line.predict(X), doubles(line))
    assert np.array_equal(model.predict(X), (doubles(model) > 0).astype(int))
    report = assay.verify(model.certify(X, y), model, X, y)
    assert report.holds, report.reason


def test_one_class_and_a_run_that_diverges_keep_a_model():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        only = MLPClassifier(4, max_iter=5).fit(X, np.full(60, "a"))
        assert set(only.predict(X)) == {"a"}
        assert np.array_equal(only.predict_proba(X), np.ones((60, 1)))
        with pytest.raises(ValueError, match="needs two classes"):
            only.certify(X, np.full(60, "a"))
        options = {"solver": "sgd", "activation": "identity", "learning_rate_init": 1.0, "random_state": 0}
        best = MLPRegressor(hidden_layer_sizes=50, early_stopping=True, **options).fit(X * 10, X[:, 0] * 100)
        assert np.isfinite(best.predict(X)).all()
        with pytest.raises(ValueError, match="non-finite parameter weights"):
            MLPRegressor(hidden_layer_sizes=50, **options).fit(X * 10, X[:, 0] * 100)
