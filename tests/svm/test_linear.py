"""LinearSVC and LinearSVR: against LIBLINEAR, by hand, optimality conditions, routes, certificate, refusals."""

import zlib
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm as liblinear
from scipy.optimize import LinearConstraint, minimize
from sklearn.exceptions import ConvergenceWarning

import assay
from assay.svm import SVC, LinearSVC, LinearSVR, _linear_interior, _linear_problem

# LIBLINEAR, and coordinate descent at C = 1000, may stop short; objectives are compared all the same.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
HINGE = ("hinge", "squared_hinge")
TUBE = ("epsilon_insensitive", "squared_epsilon_insensitive")


def random_problem(seed):
    """Return rows with duplicates, constant and badly scaled columns; labels; a target; weights or None; C."""
    random = np.random.default_rng(seed)
    n, d = int(random.integers(6, 60)), int(random.integers(1, 8))
    X = random.normal(size=(n, d))
    if random.random() < 0.3:
        X[: n // 4] = X[n // 2 : n // 2 + n // 4]
    if random.random() < 0.3:
        X[:, 0] = 3.0
    if random.random() < 0.2:
        X[:, -1] *= 10.0
    y = (X @ random.normal(size=d) + random.normal(size=n) > 0).astype(int)
    y[:2] = 0, 1
    target = X[:, 0] - X[:, -1] + random.standard_t(2, size=n)
    weight = random.uniform(0.1, 3.0, n) if random.random() < 0.4 else None
    return X, y, target, weight, float(10 ** random.uniform(-3, 3))


def objective(model, X, y, weight, params):
    """Return P at a fitted model, of two classes or of numbers, from its definition."""
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    s = params.get("intercept_scaling", 1.0) if params.get("fit_intercept", True) else np.inf
    f, epsilon = X @ w + b, params.get("epsilon", 0.0)
    beyond = np.maximum(1 - (2 * y - 1) * f if "hinge" in params["loss"] else np.abs(y - f) - epsilon, 0.0)
    c = params["C"] * (np.ones(len(y)) if weight is None else weight)
    return 0.5 * (w @ w + (b / s) ** 2) + c @ (beyond**2 if params["loss"].startswith("squared") else beyond)


# LIBLINEAR --------------------------------------------------------------------------------------------------


@pytest.mark.mission("KER-23", "KER-25")
@pytest.mark.parametrize("loss", HINGE)
@pytest.mark.parametrize("seed", range(60))
def test_classifier_is_as_good_as_liblinear_and_proves_it(seed, loss):
    X, y, _, weight, C = random_problem(seed)
    params = {"loss": loss, "C": C, "fit_intercept": seed % 3 > 0, "intercept_scaling": [1.0, 4.0][seed % 2]}
    theirs = liblinear.LinearSVC(dual=True, tol=1e-6, max_iter=20_000, random_state=0, **params).fit(X, y, weight)
    best = objective(theirs, X, y, weight, params)
    for dual in (False, True):
        ours = LinearSVC(dual=dual, tol=1e-5, max_iter=20_000, random_state=0, **params).fit(X, y, weight)
        reached = objective(ours, X, y, weight, params)
        at_zero = C * (len(y) if weight is None else weight.sum())
        assert reached - ours.gap_ <= best * (1 + 1e-12)  # what the gap says of the minimum is true
        if not dual:  # Newton and interior points get there whatever C is; coordinate descent may stop short
            assert reached <= best + 1e-9 * at_zero
            assert ours.gap_ <= 1e-10 * at_zero
        elif ours.n_iter_ < 20_000:
            assert reached <= best + 1e-9 * at_zero


@pytest.mark.mission("KER-80", "KER-81")
@pytest.mark.parametrize("loss", TUBE)
@pytest.mark.parametrize("seed", range(30))
def test_regressor_is_as_good_as_liblinear_and_proves_it(seed, loss):
    X, _, y, weight, C = random_problem(seed)
    params = {"loss": loss, "C": C, "epsilon": [0.0, 0.3][seed % 2], "fit_intercept": seed % 3 > 0}
    theirs = liblinear.LinearSVR(dual=True, tol=1e-8, max_iter=20_000, random_state=0, **params).fit(X, y, weight)
    best = objective(theirs, X, y, weight, params)
    at_zero = objective(_zero(X.shape[1]), X, y, weight, params)
    for dual in (False, True):
        ours = LinearSVR(dual=dual, tol=1e-5, max_iter=20_000, random_state=0, **params).fit(X, y, weight)
        reached = objective(ours, X, y, weight, params)
        assert reached - ours.gap_ <= best * (1 + 1e-12)
        if not dual or ours.n_iter_ < 20_000:
            assert reached <= best + 1e-9 * at_zero


def _zero(d):
    model = LinearSVR()
    model.coef_, model.intercept_ = np.zeros(d), np.zeros(1)
    return model


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.5, 1: 2.0, 2: 3.0}])
@pytest.mark.parametrize("loss", HINGE)
def test_several_classes_and_their_weights_as_in_liblinear(class_weight, loss):
    random = np.random.default_rng(3)
    X = random.normal(size=(120, 3))
    y = np.digitize(X[:, 0] + random.normal(size=120), [-0.5, 1.0])
    params = {"loss": loss, "class_weight": class_weight, "max_iter": 50_000, "random_state": 0}
    theirs = liblinear.LinearSVC(dual=True, tol=1e-8, **params).fit(X, y)
    for dual in (True, False):
        ours = LinearSVC(dual=dual, tol=1e-6, **params).fit(X, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-4)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


# Sparse coefficients ----------------------------------------------------------------------------------------


def l1_objective(model, X, y, weight, C, s):
    w, b = model.coef_[0], float(np.ravel(model.intercept_)[0])
    c = C * (np.ones(len(y)) if weight is None else weight)
    return np.abs(w).sum() + abs(b) / s + c @ np.maximum(1 - (2 * y - 1) * (X @ w + b), 0) ** 2


@pytest.mark.parametrize("seed", range(40))
def test_l1_is_as_good_as_liblinear_and_proves_it(seed):
    X, y, _, weight, C = random_problem(seed)
    s = [1.0, 4.0][seed % 2]
    settings = {"penalty": "l1", "C": C, "intercept_scaling": s, "max_iter": 5_000, "random_state": 0}
    theirs = liblinear.LinearSVC(dual=False, tol=1e-7, **settings).fit(X, y, weight)
    best, at_zero = l1_objective(theirs, X, y, weight, C, s), C * (len(y) if weight is None else weight.sum())
    table = sp.csr_matrix(X)
    for rows in (X, table):
        ours = LinearSVC(tol=1e-5, **settings).fit(rows, y, weight)
        reached = l1_objective(ours, X, y, weight, C, s)
        assert reached - ours.gap_ <= best * (1 + 1e-12)
        settled = ours.n_iter_ < 5_000  # a constant column beside the intercept's makes any coordinate descent crawl
        assert reached <= best + (1e-9 if settled else 1e-4) * at_zero
        assert ours.gap_ <= 1e-10 * at_zero or not settled
    assert certified(ours, table, y, weight).find("linear-svm.gap").value <= ours.gap_ * 1.01 + 1e-8 * (1 + at_zero)


@pytest.mark.parametrize("C", [0.1, 0.25, 1.0, 50.0])
def test_l1_by_hand(C):
    # x = -1, +1 without intercept: |w| + 2 C (1 - w)^2 has its minimum at max(0, 1 - 1 / (4 C)).
    model = LinearSVC("l1", C=C, fit_intercept=False, tol=1e-7).fit([[-1.0], [1.0]], [0, 1])
    assert model.coef_[0, 0] == pytest.approx(max(0.0, 1 - 1 / (4 * C)), abs=1e-6)


def test_l1_sets_coefficients_to_zero():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 30))
    y = (X[:, 3] + 0.3 * random.normal(size=200) > 0).astype(int)
    model = LinearSVC("l1", C=0.02).fit(X, y)
    assert model.coef_[0, 3] > 0
    assert np.count_nonzero(model.coef_) < 10
    forged = replace(model.certify(X, y))
    assert not any(claim.template == "D15/1" for claim in forged.claims)  # nothing makes the optimum unique


# By hand ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dual", [True, False])
@pytest.mark.parametrize("C", [1e-3, 0.2, 0.5, 3.0, 1e3])
def test_two_points_by_hand(C, dual):
    # x = -1, +1 without intercept: 1/2 w^2 + 2 C max(0, 1 - w), and with the square.
    fit = {"C": C, "dual": dual, "fit_intercept": False, "tol": 1e-7, "max_iter": 100_000}
    X, y = [[-1.0], [1.0]], [0, 1]
    assert LinearSVC(loss="hinge", **fit).fit(X, y).coef_[0, 0] == pytest.approx(min(1.0, 2 * C), rel=1e-6)
    assert LinearSVC(**fit).fit(X, y).coef_[0, 0] == pytest.approx(4 * C / (1 + 4 * C), rel=1e-6)


@pytest.mark.parametrize("dual", [True, False])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_one_point_of_a_regression_by_hand(C, dual):
    # x = 1, y = 2, epsilon = 1/2: 1/2 w^2 + C max(0, |2 - w| - 1/2), and with the square.
    fit = {"C": C, "epsilon": 0.5, "dual": dual, "fit_intercept": False, "tol": 1e-7}
    insensitive, squared = (LinearSVR(loss=loss, **fit).fit([[1.0]], [2.0]).coef_[0] for loss in TUBE)
    assert insensitive == pytest.approx(min(C, 1.5), rel=1e-6)
    assert squared == pytest.approx(3 * C / (1 + 2 * C), rel=1e-6)


@pytest.mark.mission("KER-22", "KER-25", "KER-26")
@pytest.mark.parametrize("seed", range(6))
def test_the_constrained_form_has_the_same_minimum(seed):
    """min 1/2 |w|^2 + C sum xi with y <w, x> >= 1 - xi, xi >= 0, by SLSQP; and sum of hinges + |w|^2 / (2 C)."""
    random = np.random.default_rng(seed)
    X, C = random.normal(size=(12, 2)), 0.8
    y = (X[:, 0] + random.normal(size=12) > 0).astype(int)
    y[:2] = 0, 1
    t = 2.0 * y - 1.0
    slacks = LinearConstraint(np.hstack([t[:, None] * X, np.eye(12)]), 1.0, np.inf)
    found = minimize(
        lambda v: 0.5 * v[:2] @ v[:2] + C * v[2:].sum(),
        np.append(np.zeros(2), np.ones(12)),
        jac=lambda v: np.append(v[:2], np.full(12, C)),
        bounds=[(None, None)] * 2 + [(0, None)] * 12,
        constraints=slacks,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    model = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-7).fit(X, y)
    w = model.coef_[0]
    hinges = np.maximum(1 - t * (X @ w), 0)
    assert 0.5 * w @ w + C * hinges.sum() == pytest.approx(found.fun, rel=1e-8)
    np.testing.assert_allclose(w, found.x[:2], atol=1e-5)
    np.testing.assert_allclose(hinges, found.x[2:], atol=1e-5)
    risk = minimize(
        lambda v: np.maximum(1 - t * (X @ v), 0).sum() + v @ v / (2 * C),
        w,
        method="Nelder-Mead",
        options={"xatol": 1e-9},
    )
    np.testing.assert_allclose(risk.x, w, atol=1e-5)


@pytest.mark.mission("KER-22")
def test_a_wide_column_gives_the_machine_with_a_free_intercept():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 3))
    y = (X[:, 0] + 1.0 + random.normal(size=80) > 0).astype(int)
    free = SVC(kernel="linear", C=0.7, tol=1e-8).fit(X, y)
    ours = LinearSVC(loss="hinge", C=0.7, intercept_scaling=1e4, tol=1e-7).fit(X, y)
    np.testing.assert_allclose(ours.coef_, free.coef_ * np.sign(free.coef_ @ ours.coef_.T), atol=1e-4)
    assert np.array_equal(ours.predict(X), free.predict(X))


# Conditions of an optimum -----------------------------------------------------------------------------------


@pytest.mark.mission("KER-24", "KER-29")
@pytest.mark.parametrize("dual", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_conditions_of_the_hinge_hold_row_by_row(seed, dual):
    X, y, _, weight, _ = random_problem(seed)
    model = LinearSVC(loss="hinge", C=0.5, dual=dual, tol=1e-7, max_iter=100_000).fit(X, y, weight)
    t = 2.0 * y - 1.0
    alpha, top = model.dual_coef_[0] * t, 0.5 * (np.ones(len(y)) if weight is None else weight)
    z = t * model.decision_function(X)
    assert np.all((alpha >= 0) & (alpha <= top))
    np.testing.assert_allclose((alpha * t) @ X, model.coef_[0], atol=1e-4)
    assert (alpha * t).sum() == pytest.approx(model.intercept_[0], abs=1e-4)
    assert np.all(z[alpha < 1e-3 * top] >= 1 - 1e-3)
    assert np.all(z[alpha > (1 - 1e-3) * top] <= 1 + 1e-3)
    np.testing.assert_allclose(z[(alpha > 0.01 * top) & (alpha < 0.99 * top)], 1.0, atol=1e-3)


@pytest.mark.parametrize("dual", [True, False])
@pytest.mark.parametrize("loss", HINGE)
def test_dual_variables_of_squared_losses_are_their_slopes(loss, dual):
    X, y, target, _, _ = random_problem(4)
    model = LinearSVC(dual=dual, tol=1e-7, max_iter=100_000).fit(X, y)
    t = 2.0 * y - 1.0
    slopes = 2 * t * np.maximum(1 - t * model.decision_function(X), 0)
    np.testing.assert_allclose(model.dual_coef_[0], slopes, atol=1e-4)
    model = LinearSVR(loss=TUBE[1], epsilon=0.2, dual=dual, tol=1e-7, max_iter=100_000).fit(X, target)
    r = target - model.predict(X)
    np.testing.assert_allclose(model.dual_coef_[0], 2 * np.sign(r) * np.maximum(np.abs(r) - 0.2, 0), atol=1e-4)


@pytest.mark.mission("KER-16", "KER-18")
def test_rows_without_a_dual_variable_do_not_matter():
    random = np.random.default_rng(1)
    X = np.vstack([random.normal(-1.5, 1, (60, 2)), random.normal(1.5, 1, (60, 2))])
    y = np.repeat([0, 1], 60)
    model = LinearSVC(loss="hinge", tol=1e-7).fit(X, y)
    support = np.abs(model.dual_coef_[0]) > 1e-6
    assert 0 < support.sum() < 60
    again = LinearSVC(loss="hinge", tol=1e-7).fit(X[support], y[support])
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-5)
    np.testing.assert_allclose(again.intercept_, model.intercept_, atol=1e-5)


# Routes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dual", [True, False])
def test_sparse_rows_give_the_dense_model(dual, index):
    random = np.random.default_rng(2)
    X = random.normal(size=(150, 30)) * (random.random((150, 30)) < 0.2)
    X[:3] = 0.0
    y, target = (X[:, 0] + X[:, 1] + 0.3 * random.normal(size=150) > 0).astype(int), X[:, 0] + random.normal(size=150)
    table = sp.csr_matrix(X)
    table.indices, table.indptr = table.indices.astype(index), table.indptr.astype(index)
    for kind, losses, t in ((LinearSVC, HINGE, y), (LinearSVR, TUBE, target)):
        for loss in losses:
            settings = {"loss": loss, "dual": dual, "tol": 1e-6, "random_state": 0, "max_iter": 20_000}
            dense, sparse = (kind(**settings).fit(rows, t) for rows in (X, table))
            np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-5)
            np.testing.assert_allclose(sparse.predict(table), dense.predict(X), atol=1e-4)


def test_sparse_rows_are_never_made_dense(monkeypatch):
    random = np.random.default_rng(0)
    X = sp.random(300, 5_000, density=0.01, format="csr", random_state=0)
    y = (X @ random.normal(size=5_000) > 0).astype(int)
    monkeypatch.setattr(sp.csr_matrix, "toarray", lambda self: pytest.fail("made dense"))
    model = LinearSVC().fit(X, y)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("loss", HINGE + TUBE)
def test_many_rows_start_on_a_sample_and_end_at_the_same_optimum(loss, monkeypatch):
    random = np.random.default_rng(5)
    X = random.normal(size=(6_000, 4))
    score = X @ [1.0, -0.5, 0.2, 0.0] + 0.5 * random.normal(size=6_000)
    kind, y = (LinearSVC, (score > 0.3).astype(int)) if loss in HINGE else (LinearSVR, score)
    whole = kind(loss=loss, tol=1e-6).fit(X, y)
    monkeypatch.setattr(_linear_problem, "_SAMPLE", 300)
    monkeypatch.setattr(_linear_interior, "_WHOLE", 100)
    sampled = kind(loss=loss, tol=1e-6).fit(X, y)
    params = {"loss": loss, "C": 1.0}
    assert objective(sampled, X, y, None, params) == pytest.approx(objective(whole, X, y, None, params), rel=1e-10)
    np.testing.assert_allclose(sampled.coef_, whole.coef_, atol=1e-4)


def test_a_sorted_table_misleads_the_sample_but_not_the_fit(monkeypatch):
    """Every tenth row is of one class, so that the sample's optimum is far away."""
    random = np.random.default_rng(6)
    X = random.normal(size=(3_000, 3))
    y = (X[:, 0] + 0.3 * random.normal(size=3_000) > 0).astype(int)
    y[::10], y[1] = 0, 1
    whole = LinearSVC(loss="hinge", tol=1e-6).fit(X, y)
    monkeypatch.setattr(_linear_problem, "_SAMPLE", 300)
    monkeypatch.setattr(_linear_interior, "_WHOLE", 100)
    sampled = LinearSVC(loss="hinge", tol=1e-6).fit(X, y)
    np.testing.assert_allclose(sampled.coef_, whole.coef_, atol=1e-4)


def test_files_give_the_model_of_the_arrays(tmp_path):
    import pandas as pd

    random = np.random.default_rng(7)
    X = random.normal(size=(500, 3))
    y = (X[:, 0] + random.normal(size=500) > 0).astype(int)
    table = pd.DataFrame(X, columns=list("abc")).assign(y=y)
    table.to_parquet(tmp_path / "rows.parquet")
    for loss in HINGE:
        from_file = LinearSVC(loss=loss).fit(str(tmp_path / "rows.parquet"), "y")
        np.testing.assert_allclose(from_file.coef_, LinearSVC(loss=loss).fit(X, y).coef_, atol=1e-7)
    with pytest.raises(ValueError, match=r"^LinearSVC: coordinate descent .* needs the rows in memory"):
        LinearSVC(dual=True).fit(str(tmp_path / "rows.parquet"), "y")


# Certificate ------------------------------------------------------------------------------------------------


def certified(model, X, y, weight=None):
    certificate = model.certify(X, y, sample_weight=weight)
    report = assay.verify(certificate, model, X, y, sample_weight=weight)
    assert report.holds, report.reason
    return certificate


@pytest.mark.parametrize("dual", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_certificate_holds_and_is_tight(seed, dual):
    X, y, target, weight, C = random_problem(seed)
    C = min(C, 10.0)
    for loss in HINGE:
        params = {"loss": loss, "C": C, "fit_intercept": seed % 3 > 0, "intercept_scaling": [1.0, 3.0][seed % 2]}
        model = LinearSVC(dual=dual, max_iter=50, **params).fit(X, y, weight)  # cut short, it must tell the truth
        gap = certified(model, X, y, weight).find("linear-svm.gap").value
        exact = LinearSVC(dual=False, tol=1e-7, **params).fit(X, y, weight)
        excess = objective(model, X, y, weight, params) - objective(exact, X, y, weight, params)
        assert excess <= gap <= model.gap_ * 1.01 + 1e-6 * (1 + C)
    model = LinearSVR(loss=TUBE[seed % 2], C=C, epsilon=0.1, dual=dual).fit(X, target, weight)
    assert certified(model, X, target, weight).find("linear-svr.gap").value <= model.gap_ * 1.01 + 1e-6 * (1 + C)


def test_enclosure_holds_the_optimum():
    X, y, *_ = random_problem(2)
    rough = LinearSVC(dual=True, max_iter=3, random_state=0).fit(X, y)
    exact = LinearSVC(dual=False, tol=1e-7).fit(X, y)
    away = np.append(rough.coef_ - exact.coef_, rough.intercept_ - exact.intercept_)
    assert 0 < np.linalg.norm(away) <= certified(rough, X, y).find("D15/1").value


def test_each_class_has_its_gap():
    random = np.random.default_rng(8)
    X = random.normal(size=(90, 3))
    y = np.digitize(X[:, 0] + 0.5 * random.normal(size=90), [-0.5, 0.5])
    model = LinearSVC(class_weight={0: 2.0, 1: 1.0, 2: 0.5}).fit(X, y)
    claims = [claim for claim in certified(model, X, y).claims if claim.template == "D04/1"]
    assert [claim.params["class"] for claim in claims] == [0, 1, 2]
    assert "class number 2 against the rest" in claims[2].statement


def test_certificate_refuses_forgeries():
    X, y, *_ = random_problem(1)
    model = LinearSVC(loss="hinge").fit(X, y)
    honest = model.certify(X, y)
    at = next(i for i, claim in enumerate(honest.claims) if claim.template == "D04/1")
    claim = honest.claims[at]
    theta = claim.witness["theta"]

    def holds(**changes):
        claims = list(honest.claims)
        claims[at] = replace(claim, **changes)
        return assay.verify(replace(honest, claims=tuple(claims)), model, X, y).holds

    assert holds()
    assert not holds(value=claim.value / 1e3)
    assert not holds(params={**claim.params, "C": 2.0})
    assert not holds(params={**claim.params, "column": 2.0})
    assert not holds(params={**claim.params, "loss": "squared-hinge"})
    assert not holds(params={**claim.params, "class_weight": [1.0, 2.0]})
    assert not holds(witness={"theta": -theta})
    assert not holds(witness={"theta": 0.9 * theta})
    assert not holds(witness={})
    assert not assay.verify(honest, model, X[::-1], y[::-1]).holds
    model.coef_ = model.coef_ + 1e-3
    assert not assay.verify(honest, model, X, y).holds


def test_other_rows_get_no_gap():
    X, y, *_ = random_problem(1)
    model = LinearSVC().fit(X, y)
    certificate = model.certify(X[:-1], y[:-1])
    assert any("rows of the fit" in one.reason for one in certificate.not_applicable)
    assert assay.verify(certificate, model, X[:-1], y[:-1]).holds


# Interruptions, messages ------------------------------------------------------------------------------------


class Press:
    """A callback that presses Ctrl-C at the end of one iteration."""

    def __init__(self, at):
        self.at, self.seen = at, 0

    def setup(self, estimator, context):
        pass

    teardown = setup

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if context.parent is not None:
            self.seen += 1
            if self.seen == self.at:
                raise KeyboardInterrupt


@pytest.mark.parametrize("loss", HINGE)
@pytest.mark.parametrize("dual", [True, False])
def test_ctrl_c_keeps_the_best_so_far(loss, dual):
    X, y, *_ = random_problem(10)
    model = LinearSVC(loss=loss, dual=dual, random_state=0, tol=1e-7).set_callbacks(Press(2))
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X, y)
    assert len(model.history_) == 2
    assert objective(model, X, y, None, {"loss": loss, "C": 1.0}) <= len(X)
    certified(model, X, y)


def test_history_ends_at_the_objective_of_the_model():
    X, y, *_ = random_problem(10)
    for loss in HINGE:
        for dual in (True, False):
            model = LinearSVC(loss=loss, dual=dual, random_state=0).fit(X, y)
            last = model.history_[-1]
            assert last.objective == pytest.approx(objective(model, X, y, None, {"loss": loss, "C": 1.0}), rel=1e-9)
            assert last.violation == pytest.approx(model.gap_, rel=1e-6, abs=1e-12)


def test_a_fit_cut_short_says_so():
    X, y, *_ = random_problem(3)
    with pytest.warns(
        ConvergenceWarning, match="LinearSVC: not converged after 1 iterations; the objective is at most"
    ):
        LinearSVC(dual=True, C=100.0, max_iter=1).fit(X, y)


def test_seeds_and_verbosity(capsys):
    X, y, *_ = random_problem(11)
    fits = [LinearSVC(dual=True, max_iter=3, random_state=seed).fit(X, y).coef_ for seed in (0, 0, 1)]
    assert np.array_equal(fits[0], fits[1])
    assert not np.array_equal(fits[0], fits[2])
    assert capsys.readouterr().out == ""
    LinearSVC(verbose=1).fit(X, y)
    assert "LinearSVC: hyperplane 1 of 1: objective" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "params", "message"),
    [
        (LinearSVC, {"penalty": "elastic"}, "penalty must be one of"),
        (LinearSVC, {"penalty": "l1", "loss": "hinge"}, "Unsupported set of arguments: penalty=.l1. goes with"),
        (LinearSVC, {"penalty": "l1", "dual": True}, "Unsupported set of arguments: penalty=.l1. goes with"),
        (LinearSVC, {"loss": "log"}, "loss must be one of 'squared_hinge', 'hinge'; got 'log'"),
        (LinearSVC, {"C": 0.0}, "C must be a finite number > 0"),
        (LinearSVC, {"tol": -1.0}, "tol must be a finite number > 0"),
        (LinearSVC, {"dual": "yes"}, "dual must be one of 'auto', True, False"),
        (LinearSVC, {"intercept_scaling": 0.0}, "intercept_scaling must be a finite number > 0"),
        (LinearSVC, {"class_weight": {0: -1.0}}, "class_weight must hold finite numbers > 0"),
        (LinearSVC, {"max_iter": 0}, "max_iter must be an integer >= 1"),
        (LinearSVR, {"epsilon": -0.1}, "epsilon must be a finite number >= 0"),
        (LinearSVR, {"loss": "hinge"}, "loss must be one of 'epsilon_insensitive'"),
    ],
)
def test_parameters_are_refused_by_name(kind, params, message):
    X, y, *_ = random_problem(0)
    with pytest.raises(ValueError, match=f"^{kind.__name__}: {message}"):
        kind(**params).fit(X, y)


def test_bad_rows_are_refused():
    X, y, *_ = random_problem(0)
    table = sp.csr_matrix(X)
    table.data[0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        LinearSVC().fit(table, y)
    with pytest.raises(ValueError, match="has no row of positive weight"):
        LinearSVC().fit(X, y, sample_weight=(y == 0).astype(float))
    for dual in (True, False):
        with pytest.raises(ValueError, match="too large"):
            LinearSVC(dual=dual).fit(X * 1e200, y)
    with pytest.raises(ValueError, match="too large"):
        LinearSVC(loss="hinge").fit(X * 1e200, y)


def test_multipliers_that_reach_their_bound_end_the_interior_point_method():
    """Asked for more than doubles hold, the method comes to rest; sample 27 of this stream once was an error."""
    name = b"P17 linear support vector regression on the circle, absolute loss up to 2, n = 1000"
    rng = np.random.default_rng([zlib.crc32(name), 200])
    for _ in range(28):
        angle = rng.uniform(0, 2 * np.pi, 1000)
        X = np.column_stack([np.cos(angle), np.sin(angle)])
        y = 0.5 * X[:, 0] + rng.uniform(-1, 1, 1000)
    model = LinearSVR(C=5e-4, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert assay.verify(model.certify(X, y), model, X, y).holds
