"""What every learner of the registry is: its task, its kind of learning, and how it meets bad rows."""

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone, is_classifier, is_clusterer, is_outlier_detector, is_regressor

import assay
from assay.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from assay.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge
from assay.registry import kinds
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
    Lasso(alpha=0.05),
    ElasticNet(alpha=0.1, l1_ratio=0.3),
    LogisticRegression(C=0.7),
    LogisticRegression(fit_intercept=False),
    LogisticRegression(C=np.inf),
]


@pytest.mark.mission("CON-50")
@pytest.mark.parametrize("model", CONVEX, ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_no_perturbed_coefficients_have_a_smaller_objective(model, classes):
    X, y = small(model, classes=classes)
    model = quiet(lambda: clone(model).fit(X, y))
    least = model.objective(X, y)
    rng = np.random.default_rng(0)
    for size in 10.0 ** rng.uniform(-4, 0.5, 100):
        coef = model.coef_ + size * rng.normal(size=np.shape(model.coef_))
        shift = size * rng.normal(size=np.shape(model.intercept_)) * model.fit_intercept
        assert model.objective(X, y, coef, model.intercept_ + shift) >= least * (1 - 1e-9)


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
    labels = np.array(["no", "yes", "yes"])
    logistic = LogisticRegression(C=2.0).fit(X, labels)
    z = np.array([-1, 1, 1]) * (X @ w + b)
    expected = 2.0 * float(np.log1p(np.exp(-z)).sum()) + 0.5 * 1.25
    assert logistic.objective(X, labels, w[None], np.array([b])) == pytest.approx(expected)


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
