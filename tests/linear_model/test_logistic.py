"""Logistic regression against scikit-learn, SciPy, finite differences and 60-digit arithmetic."""

import decimal
import warnings

import numpy as np
import pytest
import sklearn.linear_model as peers
from scipy.optimize import minimize
from scipy.sparse import csr_array, csr_matrix
from scipy.special import expit, log_softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

import assay
from assay import scan
from assay.linear_model import LogisticRegression
from assay.linear_model._logistic_problem import Problem


def data(seed, n=150, d=4, classes=2, spread=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    W = rng.normal(size=(classes, d)) * spread
    noise = rng.gumbel(size=(n, classes))
    return X, np.argmax(X @ W.T + noise, axis=1), rng.uniform(0.2, 3.0, n)


def objective(X, y, coef, intercept, C, weight=None, class_weight=None):
    """Return 1/2 |W|^2 + sum C_i (logsumexp(s_i) - s_i,y), by another formula than the learner's."""
    scores = X @ np.atleast_2d(coef).T + intercept
    if scores.shape[1] == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    s = np.ones(len(y)) if weight is None else weight
    s = s if class_weight is None else s * np.asarray(class_weight)[y]
    loss = -log_softmax(scores, axis=1)[np.arange(len(y)), y] @ s
    return loss if np.isinf(C) else 0.5 * np.sum(np.square(coef)) + C * loss


def peer(C, **options):
    penalty = {"C": 1e300} if np.isinf(C) else {"C": C}
    return peers.LogisticRegression(tol=1e-12, max_iter=100_000, **penalty, **options)


# Other solvers ----------------------------------------------------------------------------------------------


@pytest.mark.mission("LIN-21")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("lam", [5e3, 5.0, 0.5, 5e-5])
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_penalised_optimum_is_scikit_learns(classes, intercept, lam, solver):
    X, y, _ = data(1, classes=classes)
    C = 1 / (2 * lam)  # lam |w|^2 + sum of losses
    model = LogisticRegression(C=C, solver=solver, fit_intercept=intercept, tol=1e-14, max_iter=2_000)
    model.fit(X, y)
    other = peer(C, fit_intercept=intercept, solver="newton-cholesky").fit(X, y)
    assert model.coef_ == pytest.approx(other.coef_, rel=1e-6, abs=1e-7)
    shift = model.intercept_.mean() - other.intercept_.mean() if classes > 2 else 0.0  # softmax ignores it
    assert model.intercept_ - shift == pytest.approx(other.intercept_, rel=1e-6, abs=1e-7)
    ours = objective(X, y, model.coef_, model.intercept_, C)
    assert ours <= objective(X, y, other.coef_, other.intercept_, C) * (1 + 1e-13)
    assert ours == pytest.approx(objective(X, y, other.coef_, other.intercept_, C), rel=1e-11)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0, 1: 0.25}])
@pytest.mark.parametrize("weighted", [True, False])
def test_weights_are_scikit_learns(classes, class_weight, weighted):
    X, y, weight = data(2, classes=classes)
    weight[::7] = 0.0
    s = weight if weighted else None
    model = LogisticRegression(class_weight=class_weight, tol=1e-14).fit(X, y, sample_weight=s)
    other = peer(1.0, class_weight=class_weight, solver="newton-cholesky").fit(X, y, sample_weight=s)
    assert model.coef_ == pytest.approx(other.coef_, rel=1e-6, abs=1e-8)


def test_integer_weights_repeat_rows():
    X, y, _ = data(3)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = LogisticRegression(tol=1e-15).fit(X, y, sample_weight=times)
    repeated = LogisticRegression(tol=1e-15).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.coef_ == pytest.approx(repeated.coef_, rel=1e-7)
    assert weighted.intercept_ == pytest.approx(repeated.intercept_, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_unpenalised_optimum_is_scipys(classes, intercept):
    X, y, weight = data(4, n=300, classes=classes, spread=0.7)
    models = [
        LogisticRegression(C=np.inf, solver=solver, fit_intercept=intercept, tol=1e-14, max_iter=3_000)
        for solver in ("newton", "lbfgs")
    ]
    one, two = (model.fit(X, y, sample_weight=weight) for model in models)
    k, d = one.coef_.shape

    def function(x):
        W = x[: k * d].reshape(k, d)
        return objective(X, y, W, x[k * d :] if intercept else 0.0, np.inf, weight)

    start = np.zeros(k * d + (k if intercept else 0))
    least = min(minimize(function, start, method=m, options={"maxiter": 2_000}).fun for m in ("BFGS", "L-BFGS-B"))
    for model in (one, two):
        ours = objective(X, y, model.coef_, model.intercept_, np.inf, weight)
        assert ours <= least + 1e-9
        assert ours == pytest.approx(least, rel=1e-7)
    assert one.predict_proba(X) == pytest.approx(two.predict_proba(X), abs=1e-6)
    if classes == 2:
        assert one.coef_ == pytest.approx(two.coef_, abs=1e-5)


@pytest.mark.parametrize(("n", "d", "classes"), [(30, 80, 2), (30, 80, 3), (60, 1_600, 2), (2_500, 140, 2)])
def test_many_columns(n, d, classes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)), rng.integers(0, classes, n)
    for solver in ("newton", "lbfgs"):
        model = LogisticRegression(C=0.05, solver=solver, tol=1e-13, max_iter=1_000).fit(X, y)
        other = peer(0.05).fit(X, y)
        assert model.coef_ == pytest.approx(other.coef_, rel=1e-4, abs=1e-6)
        ours = objective(X, y, model.coef_, model.intercept_, 0.05)
        assert ours <= objective(X, y, other.coef_, other.intercept_, 0.05) * (1 + 1e-10)


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("C", [1e-3, 1.0, np.inf])
def test_badly_scaled_columns_change_no_prediction_without_penalty(solver, C):
    X, y, _ = data(5, n=400, spread=0.5)
    scale = 10.0 ** np.array([-6, -2, 3, 6])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = LogisticRegression(C=C, solver=solver, tol=1e-12).fit(X * scale, y)
    if np.isinf(C):
        plain = LogisticRegression(C=C, tol=1e-12).fit(X, y)
        assert model.coef_ * scale == pytest.approx(plain.coef_, rel=1e-4, abs=1e-6)
    else:
        least = minimize(lambda x: objective(X * scale, y, x[:-1] / scale, x[-1], C), np.zeros(5)).fun
        assert objective(X * scale, y, model.coef_, model.intercept_, C) <= least + 1e-8


def test_columns_far_from_zero():
    X, y, _ = data(6, n=500)
    model = LogisticRegression(C=10.0, tol=1e-12).fit(X + 1e5, y)
    plain = LogisticRegression(C=10.0, tol=1e-12).fit(X, y)
    assert model.coef_ == pytest.approx(plain.coef_, rel=1e-5)


@pytest.mark.parametrize("share", [0.5, 0.01])
@pytest.mark.parametrize("C", [1e-6, 1e-2, 1e4])
def test_tol_bounds_the_gap_also_where_the_intercept_does_the_work(share, C):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(2_000, 3))
    y = (rng.random(2_000) < share).astype(int)
    model = LogisticRegression(C=C, tol=1e-9).fit(X, y)
    allowed = 1e-9 * C * 2_000 * np.log(2)
    tight = LogisticRegression(C=C, tol=1e-16).fit(X, y)
    excess = objective(X, y, model.coef_, model.intercept_, C) - objective(X, y, tight.coef_, tight.intercept_, C)
    assert excess <= allowed * 1.01 + 1e-15 * C * 2_000
    assert model.certify(X, y).find("logistic.gap").value <= 30 * allowed + 2e-12


# Derivatives ------------------------------------------------------------------------------------------------


def function_of(X, y, C=np.inf, classes=2, intercept=True, weight=None, class_weight=None):
    c = np.ones(classes) if class_weight is None else np.asarray(class_weight)
    return Problem(scan.rows(X, y.astype(np.int64), weight), C, c, intercept, classes)


def numerical_gradient(f, x, step=1e-5):
    basis = np.eye(len(x)) * step
    return np.array([(f(x + e) - f(x - e)) / (2 * step) for e in basis])


@pytest.mark.mission("LIN-15")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("C", [np.inf, 0.3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_gradient_and_hessian_by_finite_differences(classes, C, intercept, weighted):
    X, y, weight = data(9, n=40, d=3, classes=classes)
    s, c = (weight, np.linspace(0.5, 2.0, classes)) if weighted else (None, None)
    problem = function_of(X, y, C, classes, intercept, s, c)
    rng = np.random.default_rng(1)
    size = problem.n_outputs * (3 + intercept)
    for _ in range(3):
        x = rng.normal(size=size)
        value, gradient = problem.value_gradient(x)
        assert value == pytest.approx(objective(X, y, *problem.unpack(x), C, s, c), rel=1e-13)
        assert gradient == pytest.approx(
            numerical_gradient(lambda t: problem.value_gradient(t)[0], x), rel=1e-6, abs=1e-6
        )
        H = np.column_stack([problem._multiply(problem._products(*problem.unpack(x)), e) for e in np.eye(size)])
        slope = np.column_stack(
            [numerical_gradient(lambda t, k=k: problem.value_gradient(t)[1][k], x) for k in range(size)]
        )
        assert pytest.approx(slope, rel=1e-5, abs=1e-5) == H
        assert np.abs(H - H.T).max() < 1e-12
        assert np.linalg.eigvalsh(H).min() > -1e-10  # convex
        if classes == 2:
            g = rng.normal(size=size)
            assert H @ problem.curvature(x)(g) == pytest.approx(g, rel=1e-6, abs=1e-8)
    if np.isinf(C) and not weighted and classes == 2:
        z = X @ x[:3] + (x[3] if intercept else 0.0)
        assert value == pytest.approx(len(y) * log_loss(y, expit(z)), rel=1e-12)
        assert value == pytest.approx(np.sum(-y * z + np.log1p(np.exp(z))), rel=1e-12)


@pytest.mark.mission("LIN-16", "LIN-17")
def test_cross_entropy_of_labels_plus_and_minus_one():
    X, y, _ = data(10, n=60)
    sign = 2 * y - 1
    problem = function_of(X, y, intercept=False)
    rng = np.random.default_rng(0)
    for _ in range(5):
        w = rng.normal(size=4) * 3
        value, gradient = problem.value_gradient(w)
        assert value / 60 == pytest.approx(np.mean(np.log(1 + np.exp(-sign * (X @ w)))), rel=1e-12)
        formula = np.mean((1 / (1 + np.exp(sign * (X @ w))) * -sign)[:, None] * X, axis=0)
        assert gradient / 60 == pytest.approx(formula, rel=1e-11)
        assert formula == pytest.approx(
            numerical_gradient(lambda t: np.mean(np.log(1 + np.exp(-sign * (X @ t)))), w), rel=1e-6, abs=1e-9
        )


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_extreme_scores_neither_overflow_nor_vanish(scale):
    X, y, weight = data(11, n=3_000)
    for s in (None, weight):
        problem = function_of(X, y, weight=s)
        x = np.array([1.0, -2.0, 0.5, 1.0, 0.3]) * scale
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            value, gradient = problem.value_gradient(x)
        z = ((X @ x[:4] + x[4]) * (2 * y - 1)).astype(np.longdouble)
        t = np.ones(len(y)) if s is None else s
        exact = np.sum(t * (np.maximum(-z, 0) + np.log1p(np.exp(-np.abs(z)))))
        pull = t * np.where(z > 0, np.exp(-np.abs(z)), 1) / (1 + np.exp(-np.abs(z))) * (1 - 2 * y)
        assert value == pytest.approx(float(exact), rel=1e-13)
        assert gradient[:4] == pytest.approx((pull @ X).astype(float), rel=1e-10, abs=1e-12)


def test_exponential_to_the_last_digit():
    from assay.loops.logistic import exp_of_negative

    rng = np.random.default_rng(0)
    edges = [0.0, -0.0, -1e-300, -(2.0**-53), -np.log(2) / 2, -np.log(2), -1.0, -37.0, -700.0, -708.0]
    t = np.concatenate([edges, -rng.uniform(0, 1, 400), -rng.uniform(0, 40, 400), -rng.uniform(40, 708, 400)])
    out, power = np.empty_like(t), np.empty_like(t)
    exp_of_negative(t, out, power)
    with decimal.localcontext(prec=60):
        exact = [decimal.Decimal(float(v)).exp() for v in t]
        errors = [abs(decimal.Decimal(float(o)) - e) / e for o, e in zip(out, exact)]
    assert max(errors) < decimal.Decimal(2.0**-52)
    assert out[0] == 1.0
    exp_of_negative(np.array([-709.0, -1e6, -np.inf]), out[:3], power[:3])
    assert (out[:3] <= 3.4e-308).all()
    assert (out[:3] > 0).all()


# Newton -----------------------------------------------------------------------------------------------------


@pytest.mark.mission("LIN-19")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("C", [np.inf, 1.0, 100.0])
def test_newton_needs_few_steps(seed, C):
    X, y, _ = data(seed, n=300, spread=1.0)
    model = LogisticRegression(C=C, tol=4e-12).fit(X, y)
    assert model.n_iter_ < 15
    problem = function_of(X, y, C)
    gradient = problem.value_gradient(problem.pack(model.coef_, model.intercept_))[1]
    assert np.linalg.norm(gradient) < 1e-10
    other = peer(C, solver="newton-cholesky").fit(X, y)
    assert model.coef_ == pytest.approx(other.coef_, rel=1e-5)


def test_the_sampled_start_changes_no_optimum():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(201_000, 3))
    y = (X @ [1.0, -1.0, 0.5] + rng.logistic(size=len(X)) > 0.3).astype(int)
    order = np.argsort(y, kind="stable")  # the sample of sorted rows is as good as any other
    one = LogisticRegression(tol=1e-14).fit(X, y)
    two = LogisticRegression(tol=1e-14).fit(X[order], y[order])
    three = LogisticRegression(tol=1e-14, solver="lbfgs").fit(X, y)
    assert one.coef_ == pytest.approx(two.coef_, rel=1e-8)
    assert one.coef_ == pytest.approx(three.coef_, rel=1e-6)


# Separable classes ------------------------------------------------------------------------------------------


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
    margin = certificate.find("D13").value
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


# Probabilities and labels -----------------------------------------------------------------------------------


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
    assert (model.coef_ == (plain.coef_ if order[0] == 0 else model.coef_)).all()
    assert model.coef_ * (1 if order[0] == 0 else -1) == pytest.approx(plain.coef_, rel=1e-9)
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


# L1 penalties, and scikit-learn's parameters ----------------------------------------------------------------


@pytest.mark.parametrize("share", [0.3, 1.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_an_l1_penalty_meets_its_optimality_conditions(share, classes):
    """Where a coefficient is zero its slope is at most the penalty, elsewhere it balances it; the intercept's is 0."""
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(200, 8))
    y = np.argmax(X[:, :classes] + rng.normal(size=(200, classes)), axis=1)
    model = LogisticRegression(C=0.2, l1_ratio=share, tol=1e-7).fit(X, y)
    assert (model.coef_ == 0).any()
    p = model.predict_proba(X)
    told = (y[:, None] == np.arange(classes)) if classes > 2 else (y == 1)[:, None]
    slope = 0.2 * (p if classes > 2 else p[:, 1:]).T @ X - 0.2 * told.T @ X + (1 - share) * model.coef_
    at_zero = model.coef_ == 0
    assert np.abs(slope[at_zero]).max() <= share + 1e-6
    np.testing.assert_allclose(slope[~at_zero], -share * np.sign(model.coef_[~at_zero]), atol=1e-6)
    np.testing.assert_allclose((p if classes > 2 else p[:, 1:]).sum(axis=0), told.sum(axis=0), atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"solver": "liblinear"}, {"solver": "liblinear", "intercept_scaling": 5.0}])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_penalised_intercept_and_an_l1_penalty_are_certified(options, share):
    X, y, _ = data(3, n=300, spread=1.0)
    model = LogisticRegression(l1_ratio=share, **options).fit(X + 1, y)
    certificate = model.certify(X + 1, y)
    assert certificate["logistic.gap"].value < 1e-4
    assert assay.verify(certificate, model, X + 1, y).holds
    if options:
        other = peers.LogisticRegression(l1_ratio=share, tol=1e-10, max_iter=10_000, random_state=0, **options)
        other.fit(X + 1, y)
        np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-3)
        np.testing.assert_allclose(model.intercept_, other.intercept_, atol=1e-3)


def test_wide_rows_with_an_l1_penalty():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 1600)), rng.integers(0, 2, 60)
    X[:, 0] += 2 * y
    model = LogisticRegression(C=0.1, l1_ratio=1.0).fit(X, y)
    assert 0 < np.count_nonzero(model.coef_) < 60
    assert model.certify(X, y)["logistic.gap"].value < 1e-3 * 60


def test_a_warm_start_needs_fewer_steps():
    X, y, _ = data(4, n=300, spread=1.0)
    model = LogisticRegression(warm_start=True).fit(X, y)
    cold, coef = model.n_iter_[0], model.coef_
    assert model.fit(X, y).n_iter_[0] < cold
    np.testing.assert_allclose(model.coef_, coef, atol=1e-6)


def test_coefficients_can_be_sparse(tmp_path):
    X, y, _ = data(5, n=300, spread=1.0)
    model = LogisticRegression(C=0.05, l1_ratio=1.0).fit(X, y)
    scores, certificate = model.decision_function(X), model.certify(X, y)
    assert model.sparsify().coef_.format == "csr"
    for rows in (X, csr_matrix(X), csr_array(X)):
        np.testing.assert_allclose(model.decision_function(rows), scores)
        assert model.predict(rows).shape == (300,)
    assay.save(model, tmp_path / "m.assay", certificate)
    assert assay.verify(*assay.load(tmp_path / "m.assay")[::-1], X, y).holds
    assert isinstance(model.densify().coef_, np.ndarray)


def test_solvers_refuse_what_they_do_not_offer():
    X, y = np.arange(12.0).reshape(6, 2), [0, 1, 2, 0, 1, 2]
    for options, words in [
        ({"solver": "liblinear"}, "does not support multiclass"),
        ({"solver": "lbfgs", "l1_ratio": 1.0}, "supports only 'l2' or None"),
        ({"solver": "liblinear", "l1_ratio": 0.5}, "Only 'saga' solver supports elasticnet"),
        ({"dual": True}, "supports only dual=False"),
        ({"solver": "liblinear", "C": np.inf}, "penalty=None is not supported"),
    ]:
        with pytest.raises(ValueError, match=words):
            LogisticRegression(**options).fit(X, y)
    with pytest.warns(UserWarning, match="penalty=None will ignore the C"):
        LogisticRegression(penalty=None, C=2.0, max_iter=1000).fit(np.r_[X, X[::-1]], [0, 1] * 6)
