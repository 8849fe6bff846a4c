"""What every learner of the registry is: its task, its kind of learning, and how it meets bad rows."""

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone, is_classifier, is_clusterer, is_outlier_detector, is_regressor

import assay
from assay.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from assay.kernel_model import KernelLogisticRegression
from assay.kernel_ridge import KernelRidge
from assay.linear_model import (
    ElasticNet,
    ElasticNetCV,
    GammaRegressor,
    GeneralizedLinearRegressor,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    PoissonRegressor,
    Ridge,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
    TweedieRegressor,
)
from assay.registry import kinds
from assay.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVR, OneClassSVM
from tests.contract.test_contract import example, output, small

LEARNERS = pytest.mark.parametrize("learner", assay.learners(), ids=lambda learner: learner.__name__)


def quiet(run):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run()


@pytest.mark.mission("CON-46")
@LEARNERS
def test_each_task_answers_to_its_name(learner):
    model, task = example(learner), learner.card.task
    assert is_classifier(model) == (task == "classify")
    assert is_regressor(model) == (task == "regress")
    assert is_clusterer(model) == (task == "cluster")
    if task == "transform":
        assert hasattr(model, "transform")
    if task == "density":
        assert is_outlier_detector(model) or hasattr(model, "score_samples")


@pytest.mark.mission("CON-39")
@LEARNERS
def test_kinds_are_those_of_the_interface(learner):
    model = example(learner)
    X, y = small(model)
    found = kinds(learner)
    assert len(found & {"supervised", "unsupervised", "semi-supervised"}) == 1
    if "unsupervised" in found:
        quiet(lambda: clone(model).fit(X))
    else:
        with pytest.raises((ValueError, TypeError)):
            quiet(lambda: clone(model).fit(X, None))
    if "semi-supervised" in found:
        marked = y.astype(object)
        marked[::3] = -1
        some = quiet(lambda: clone(model).fit(X, marked))
        assert set(some.classes_) == set(y)
    elif "supervised" in found and is_classifier(model):
        with pytest.raises((ValueError, TypeError)):
            quiet(lambda: clone(model).fit(X, np.where(np.arange(len(y)) % 3, y.astype(object), None)))
    assert ("online" in found) == hasattr(model, "partial_fit")
    if "online" in found:
        options = {"classes": np.unique(y)} if is_classifier(model) else {}
        seeded = {"random_state": 0} if hasattr(model, "random_state") else {}
        once = quiet(lambda: clone(model).set_params(**seeded).partial_fit(X[:45], y[:45], **options))
        before = np.array(coefficients(once))
        quiet(lambda: once.partial_fit(X[45:], y[45:]))
        assert not np.array_equal(before, coefficients(once))


def coefficients(model):
    """Return the weights of a linear model, of the first layer of a network, of prototypes, or counts."""
    if hasattr(model, "coefs_"):
        return model.coefs_[0]
    names = ("coef_", "prototypes_", "cluster_centers_", "weights_", "components_", "class_count_")
    return next(getattr(model, name) for name in names if hasattr(model, name))


@pytest.mark.mission("CON-01")
@LEARNERS
def test_rows_are_remembered_and_bad_ones_refused(learner):
    model = example(learner)
    X, y = small(model)
    found = quiet(lambda: clone(model).fit(X, y))
    assert found.n_features_in_ == 4
    if is_classifier(model):
        assert set(found.classes_) == set(y)
        with pytest.raises(ValueError, match=r"label|class"):
            found.certify(X, np.where(np.arange(len(y)) == 3, "quince", y.astype("<U6")))
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        output(found, X[:, :3])
    with pytest.raises(ValueError, match=r"[Ee]xpected 2D array|Reshape|2D"):
        quiet(lambda: clone(model).fit(X[:, 0], y))
    if "unsupervised" not in kinds(learner):
        with pytest.raises(ValueError, match=r"inconsistent|length|rows"):
            quiet(lambda: clone(model).fit(X, y[:-1]))
    if learner.__name__.startswith("HistGradientBoosting"):
        return  # infinite numbers lie in the first or the last bin, as in scikit-learn
    spoilt = X.copy()
    spoilt[2, 1] = np.inf
    with pytest.raises(ValueError, match=r"inf"):
        quiet(lambda: clone(model).fit(spoilt, y))


CONVEX = [
    LinearRegression(),
    Ridge(alpha=2.0),
    RidgeCV(),
    LassoCV(tol=1e-10, cv=3),
    ElasticNetCV(tol=1e-10, cv=3),
    Lasso(alpha=0.05, tol=1e-10),
    ElasticNet(alpha=0.1, l1_ratio=0.3, tol=1e-10),
    LogisticRegression(C=0.7),
    LogisticRegression(C=0.7, l1_ratio=0.4, solver="saga", tol=1e-12, max_iter=10_000),
    LogisticRegression(C=0.7, class_weight="balanced"),
    LogisticRegression(fit_intercept=False),
    LogisticRegression(C=np.inf),
    LogisticRegressionCV(Cs=3, cv=3, tol=1e-10),
    GeneralizedLinearRegressor("poisson", alpha=0.1),
    GeneralizedLinearRegressor("lognormal", alpha=0.1),
    PoissonRegressor(alpha=0.1, tol=1e-8),
    GammaRegressor(alpha=0.1, tol=1e-8),
    TweedieRegressor(power=1.5, alpha=0.1, tol=1e-8),
    SGDClassifier("hinge", alpha=0.1, max_iter=3000, tol=None, random_state=0),
    SGDClassifier("log_loss", alpha=0.1, class_weight={"apple": 2.0}, max_iter=3000, tol=None, random_state=0),
    SGDRegressor("huber", alpha=0.1, epsilon=0.3, max_iter=3000, tol=None, random_state=0),
    LinearSVC(C=0.3, tol=1e-8),
    LinearSVC(C=0.3, loss="hinge", intercept_scaling=2.0, class_weight={"apple": 3.0}, tol=1e-8),
    LinearSVC(C=0.3, penalty="l1", tol=1e-8, max_iter=10_000),
    LinearSVC(C=0.3, multi_class="crammer_singer", tol=1e-8, max_iter=100_000),
    LinearSVR(C=0.4, epsilon=0.2, tol=1e-8),
    LinearSVR(C=0.4, epsilon=0.2, loss="squared_epsilon_insensitive", tol=1e-8),
    SVC(C=0.8, gamma=0.4, tol=1e-8),
    SVC(C=0.8, kernel="linear", class_weight="balanced", tol=1e-8),
    SVR(C=0.8, gamma=0.4, epsilon=0.2, tol=1e-8),
    NuSVR(C=0.8, gamma=0.4, tol=1e-8),
    OneClassSVM(nu=0.4, gamma=0.4, tol=1e-8),
    KernelRidge(alpha=0.5, kernel="rbf", gamma=0.4),
    KernelLogisticRegression(C=0.8, gamma=0.4, class_weight={"apple": 2.0}),
]


def positive_target(model, y):
    """Return targets that the distribution can have."""
    return np.abs(y) + 0.1 if isinstance(model, GeneralizedLinearRegressor) else y


@pytest.mark.mission("CON-50")
def test_every_learner_that_proves_a_duality_gap_has_its_objective():
    without = {
        learner.__name__ for learner in assay.learners() if any(".gap" in code for code in learner.card.guarantee)
    }
    without -= {learner.__name__ for learner in assay.learners() if hasattr(learner, "objective")}
    assert without == {"EntropyLogisticRegression"}  # convex without its entropy term alone; `terms_` has the terms
    assert {type(model) for model in CONVEX} == {
        learner
        for learner in assay.learners()
        if hasattr(learner, "objective") and learner.__module__.startswith("assay.")
    }


@pytest.mark.mission("CON-50")
@pytest.mark.parametrize("model", CONVEX, ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_no_perturbed_coefficients_have_a_smaller_objective(model, classes):
    X, y = small(model, classes=classes)
    y = positive_target(model, y)
    model = quiet(lambda: clone(model).fit(X, y))
    least = model.objective(X, y)
    coef = getattr(model, "pair_coef_", None)
    coef = model.coef_ if coef is None else coef
    free = getattr(model, "fit_intercept", not isinstance(model, KernelRidge))
    slack = 1e-3 if type(model).__name__.startswith("SGD") else 1e-8  # steps that get ever smaller, not a solver
    rng, above = np.random.default_rng(0), 0.0
    for size in 10.0 ** rng.uniform(-4, 0.5, 100):
        moved = coef + size * rng.normal(size=np.shape(coef))
        shift = size * rng.normal(size=np.shape(model.intercept_)) * free
        there = model.objective(X, y, moved, model.intercept_ + shift)
        assert there >= least - slack * abs(least)
        above = max(above, there - least)
    assert above > 0.01 * abs(least)


@pytest.mark.mission("CON-50")
def test_objectives_are_those_of_the_formulas():
    X, y = np.array([[1.0, 2.0], [0.0, -1.0], [3.0, 1.0]]), np.array([1.0, 0.0, 2.0])
    w, b = np.array([0.5, -1.0]), 0.25
    residuals = y - (X @ w + b)
    at = {"coef": w, "intercept": b}
    squares = 0.5 * float(residuals @ residuals)
    assert LinearRegression().fit(X, y).objective(X, y, **at) == pytest.approx(squares)
    assert Ridge(alpha=3.0).fit(X, y).objective(X, y, **at) == pytest.approx(squares + 1.5 * 1.25)
    lasso = Lasso(alpha=0.2).fit(X, y)
    assert lasso.objective(X, y, **at) == pytest.approx(squares + 3 * 0.2 * 1.5)
    both = ElasticNet(alpha=0.2, l1_ratio=0.25).fit(X, y)
    assert both.objective(X, y, **at) == pytest.approx(squares + 3 * 0.2 * (0.25 * 1.5 + 0.75 * 0.5 * 1.25))
    rate = np.exp(X @ w + b)
    deviance = 2 * (np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0) / rate), 0.0) - y + rate)
    poisson = quiet(lambda: GeneralizedLinearRegressor("poisson", alpha=0.4).fit(X, y))
    assert poisson.objective(X, y, **at) == pytest.approx(deviance.mean() / 2 + 0.2 * 1.25)
    beyond = np.maximum(np.abs(residuals) - 0.1, 0.0)
    tube = LinearSVR(epsilon=0.1, C=2.0, intercept_scaling=0.5).fit(X, y)
    assert tube.objective(X, y, **at) == pytest.approx(2 * beyond.sum() + 0.5 * (1.25 + (b / 0.5) ** 2))
    sgd = SGDRegressor("epsilon_insensitive", epsilon=0.1, alpha=0.3, random_state=0).fit(X, y)
    assert sgd.objective(X, y, **at) == pytest.approx(beyond.mean() + 0.15 * 1.25)


@pytest.mark.mission("CON-50")
def test_objectives_of_classifiers_are_those_of_the_formulas():
    X, labels = np.array([[1.0, 2.0], [0.0, -1.0], [3.0, 1.0]]), np.array(["no", "yes", "yes"])
    w, b = np.array([[0.5, -1.0]]), np.array([0.25])
    z = np.array([-1, 1, 1]) * (X @ w[0] + b)
    logs, hinges, weight = np.log1p(np.exp(-z)), np.maximum(0, 1 - z), np.array([3.0, 1.0, 1.0])
    plain = LogisticRegression(C=2.0).fit(X, labels)
    assert plain.objective(X, labels, w, b) == pytest.approx(2.0 * logs.sum() + 0.5 * 1.25)
    weighted = LogisticRegression(C=2.0, class_weight={"no": 3.0}).fit(X, labels)
    assert weighted.objective(X, labels, w, b) == pytest.approx(2.0 * weight @ logs + 0.5 * 1.25)
    held = LogisticRegression(C=2.0, solver="liblinear", intercept_scaling=0.5).fit(X, labels)
    assert held.objective(X, labels, w, b) == pytest.approx(2.0 * logs.sum() + 0.5 * (1.25 + 0.25))
    free = LogisticRegression(C=np.inf).fit(X, labels)
    assert free.objective(X, labels, w, b) == pytest.approx(logs.sum())
    machine = LinearSVC(C=2.0, class_weight={"no": 3.0}).fit(X, labels)
    assert machine.objective(X, labels, w, b) == pytest.approx(2 * weight @ hinges**2 + 0.5 * (1.25 + 0.0625))
    sparse = LinearSVC(C=2.0, penalty="l1", fit_intercept=False).fit(X, labels)
    assert sparse.objective(X, labels, w, b) == pytest.approx(2 * (hinges**2).sum() + 1.5)
    descent = SGDClassifier("hinge", alpha=0.2, penalty="l1", random_state=0).fit(X, labels)
    assert descent.objective(X, labels, w, b) == pytest.approx(hinges.mean() + 0.2 * 1.5)
    three, names = np.vstack([w, [[1.0, 0.0]], [[0.0, 1.0]]]), np.array(["a", "b", "c"])
    scores = X @ three.T
    joint = LinearSVC(C=2.0, multi_class="crammer_singer", fit_intercept=False).fit(X, names)
    worst = [max(scores[i, k] + (k != i) for k in range(3)) - scores[i, i] for i in range(3)]
    assert joint.objective(X, names, three, np.zeros(3)) == pytest.approx(2 * sum(worst) + 0.5 * (three**2).sum())
    halves = LinearSVC(C=2.0, multi_class="crammer_singer", fit_intercept=False).fit(X, labels)
    sure = np.maximum(0, 1 - np.array([-1, 1, 1]) * scores[:, 0]).sum()
    assert halves.objective(X, labels, w, [0.0]) == pytest.approx(2 * sure + 0.5 * 2 * 1.25 / 4)
    apart = LinearSVC(C=2.0, fit_intercept=False, class_weight={"a": 5.0}).fit(X, names)
    each = np.maximum(0, 1 - np.where(np.eye(3) > 0, scores, -scores)) ** 2
    each[0, 0] *= 5  # where "a" is told from the rest
    assert apart.objective(X, names, three, np.zeros(3)) == pytest.approx(2 * each.sum() + 0.5 * (three**2).sum())


@pytest.mark.mission("CON-50")
def test_objectives_of_kernel_machines_are_those_of_the_formulas():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(12, 2)), rng.normal(size=12)
    names = np.array(["a", "b", "c"])[np.arange(12) % 3]
    c, b = rng.normal(size=12), 0.3

    def gram(A, B):
        return np.exp(-0.7 * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    K = gram(X, X)
    ridge = KernelRidge(alpha=0.6, kernel="rbf", gamma=0.7).fit(X, y)
    assert ridge.objective(X, y, c) == pytest.approx(0.5 * ((y - K @ c) ** 2).sum() + 0.3 * c @ K @ c)
    for machine in (SVR(C=2.0, gamma=0.7, epsilon=0.1), NuSVR(C=2.0, gamma=0.7)):
        machine.fit(X, y)
        V = machine.support_vectors_
        d, epsilon = c[: len(V)], getattr(machine, "epsilon", machine.epsilon_)
        beyond = np.maximum(0, np.abs(y - gram(X, V) @ d - b) - epsilon)
        expected = 2 * beyond.sum() + 0.5 * d @ gram(V, V) @ d
        assert machine.objective(X, y, d[None], [b]) == pytest.approx(expected)
    novelty = OneClassSVM(nu=0.3, gamma=0.7).fit(X)
    V = novelty.support_vectors_
    d = c[: len(V)]
    expected = np.maximum(0, -(gram(X, V) @ d + b)).sum() + 0.3 * 12 * b + 0.5 * d @ gram(V, V) @ d
    assert novelty.objective(X, None, d[None], [b]) == pytest.approx(expected)
    shifts = np.array([0.1, -0.2, 0.3])
    machine = SVC(C=2.0, gamma=0.7, class_weight={"b": 4.0}).fit(X, names)
    V = machine.support_vectors_
    D = rng.normal(size=(3, len(V)))
    f, weight = gram(X, V) @ D.T + shifts, np.where(names == "b", 4.0, 1.0)
    expected = 0.5 * sum(D[k] @ gram(V, V) @ D[k] for k in range(3))
    for k, (first, second) in enumerate([("a", "b"), ("a", "c"), ("b", "c")]):
        for name, sign in ((first, 1.0), (second, -1.0)):
            rows = names == name
            expected += 2 * weight[rows] @ np.maximum(0, 1 - sign * f[rows, k])
    assert machine.objective(X, names, D, shifts) == pytest.approx(expected)
    logistic = KernelLogisticRegression(C=2.0, gamma=0.7, class_weight={"b": 4.0}).fit(X, names)
    V = logistic.support_vectors_
    D = rng.normal(size=(3, len(V)))
    signs = np.where(names[:, None] == np.array(["a", "b", "c"]), 1.0, -1.0)
    losses = np.log1p(np.exp(-signs * (gram(X, V) @ D.T + shifts)))
    expected = 2 * weight @ losses.sum(axis=1) + 0.5 * sum(D[k] @ gram(V, V) @ D[k] for k in range(3))
    assert logistic.objective(X, names, D, shifts) == pytest.approx(expected)
    with pytest.raises(ValueError, match="which a Gram matrix is not"):
        SVC(kernel="precomputed").fit(K, names == "a").objective(K, names == "a")


@pytest.mark.mission("CON-50")
@LEARNERS
def test_model_strategy_and_algorithm_are_told(learner):
    card = learner.card
    assert all(str(part).strip() for part in (card.model, card.strategy, card.algorithm))


@pytest.mark.parametrize("kind", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.mission("CON-49")
def test_a_generative_classifier_draws_what_it_learnt(kind, classes):
    X, y = small(kind(), n=300, classes=classes)
    model = kind(store_covariance=True).fit(X, y)
    assert "generative" in kinds(type(model))
    probabilities = model.predict_proba(X)
    assert probabilities.sum(axis=1) == pytest.approx(1.0)
    covariances = np.broadcast_to(model.covariance_, (classes, 4, 4))
    density = np.stack(
        [multivariate_normal(m, c).pdf(X) for m, c in zip(model.means_, covariances, strict=True)], axis=1
    )
    joint = density * model.priors_  # P(x | c) P(c)
    assert probabilities == pytest.approx(joint / joint.sum(axis=1, keepdims=True), abs=1e-9)
    drawn, labels = model.sample(20_000, random_state=0)
    for k, name in enumerate(model.classes_):
        some = drawn[labels == name]
        assert len(some) / 20_000 == pytest.approx(model.priors_[k], abs=0.02)
        assert some.mean(axis=0) == pytest.approx(model.means_[k], abs=0.06)
        assert np.cov(some.T) == pytest.approx(covariances[k], abs=0.08)
    again = clone(model).fit(drawn, labels)
    assert np.mean(again.predict(X) == model.predict(X)) > 0.95
    with pytest.raises(ValueError, match="n_samples must be"):
        model.sample(0)


@pytest.mark.mission("CON-49")
def test_gaussian_classes_of_one_covariance_have_a_logistic_posterior():
    X, y = small(LinearDiscriminantAnalysis(), n=200, classes=2)
    model = LinearDiscriminantAnalysis(store_covariance=True).fit(X, y)
    first, second = model.means_
    w = np.linalg.solve(model.covariance_, second - first)
    b = -0.5 * (second + first) @ w + np.log(model.priors_[1] / model.priors_[0])
    assert model.predict_proba(X)[:, 1] == pytest.approx(1 / (1 + np.exp(-(X @ w + b))), abs=1e-9)


@pytest.mark.mission("CON-48")
def test_discriminative_learners_carry_their_tag():
    from assay.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier
    from assay.neural_network import MLPClassifier
    from assay.svm import SVC
    from assay.tree import DecisionTreeClassifier

    boosting = (AdaBoostClassifier, HistGradientBoostingClassifier)
    for learner in (DecisionTreeClassifier, SVC, *boosting, MLPClassifier, LogisticRegression):
        assert "discriminative" in kinds(learner)
        assert "generative" not in kinds(learner)
