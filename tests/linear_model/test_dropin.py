"""What users of scikit-learn's linear models rely on: every parameter of the perceptron, single precision that stays,
averages that start late, penalties that are large."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as theirs
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import l1_min_c

import assay
from assay.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    Ridge,
    SGDClassifier,
    SGDRegressor,
)

X, y = make_classification(200, 5, random_state=0)


def test_a_perceptron_without_shuffling_is_scikit_learns_at_every_setting():
    """Rows in order leave nothing to chance, so that weights, penalties and tolerances give the same numbers."""
    weight = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    for params, given in (
        ({"penalty": "l2", "alpha": 0.01}, None),
        ({"class_weight": {0: 1.0, 1: 3.0}}, None),
        ({"tol": 1e-3}, None),
        ({"penalty": "l1", "alpha": 1e-3, "fit_intercept": False}, weight),
        ({"penalty": "elasticnet", "l1_ratio": 0.4}, weight),
    ):
        ours, reference = (
            kind(**({"shuffle": False, "max_iter": 7, "tol": None, "eta0": 0.5} | params))
            for kind in (Perceptron, theirs.Perceptron)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            ours.fit(X, y, sample_weight=given)
            reference.fit(X, y, sample_weight=given)
        np.testing.assert_allclose(ours.coef_, reference.coef_, rtol=1e-7, atol=1e-9, err_msg=str(params))
        np.testing.assert_allclose(ours.intercept_, reference.intercept_, rtol=1e-7, atol=1e-9)


def test_parts_of_the_rows_teach_a_perceptron_what_all_of_them_do():
    whole, parts = Perceptron(shuffle=False, max_iter=1, tol=0.0), Perceptron(shuffle=False)
    with pytest.warns(ConvergenceWarning, match="^Perceptron: Maximum number of iteration"):
        whole.fit(X, y)
    for part in np.array_split(np.arange(len(X)), 4):
        parts.partial_fit(X[part], y[part], classes=[0, 1])
    np.testing.assert_allclose(parts.coef_, whole.coef_)
    further = Perceptron(shuffle=False, max_iter=1, warm_start=True, tol=None).fit(X, y)
    again = Perceptron(shuffle=False, max_iter=2, tol=None, alpha=0.0, penalty="l2").fit(X, y)
    np.testing.assert_allclose(further.fit(X, y).coef_, again.coef_)


def test_a_weighted_perceptron_is_certified_without_what_is_about_plain_updates():
    weight = np.linspace(0.5, 1.5, len(X))
    model = Perceptron(penalty="l2", early_stopping=True, random_state=0).fit(X, y, sample_weight=weight)
    certificate = model.certify(X, y, sample_weight=weight)
    assert assay.verify(certificate, model, X, y, sample_weight=weight).holds
    assert "plain updates" in " ".join(str(one.reason) for one in certificate.not_applicable)


def test_learning_together_goes_with_plain_updates():
    with pytest.raises(ValueError, match="goes with plain updates"):
        Perceptron(multi_class="joint", penalty="l2").fit(*load_iris(return_X_y=True))


@pytest.mark.parametrize("kind", [LogisticRegression, SGDClassifier, SGDRegressor])
def test_single_rows_give_single_coefficients_and_a_certificate_that_holds(kind, tmp_path):
    single = X.astype(np.float32)
    model = kind().set_params(random_state=0).fit(single, y)
    assert model.coef_.dtype == np.float32
    assert kind().fit(X, y).coef_.dtype == np.float64
    certificate = model.certify(single, y)
    assert assay.verify(certificate, model, single, y).holds
    assay.save(model, tmp_path / "model.assay")
    loaded = assay.load(tmp_path / "model.assay").model
    np.testing.assert_array_equal(loaded.predict(single), model.predict(single))


def test_an_average_that_has_not_begun_changes_no_bit():
    late, plain = SGDClassifier(average=10_000, random_state=0), SGDClassifier(random_state=0)
    for _ in range(5):
        late.partial_fit(X, y, classes=[0, 1])
        plain.partial_fit(X, y, classes=[0, 1])
    np.testing.assert_array_equal(late.coef_, plain.coef_)


def test_a_penalty_that_outweighs_a_step_leaves_coefficients_near_zero():
    model = SGDClassifier(alpha=1e5, eta0=0.1, learning_rate="constant", tol=None, max_iter=5, shuffle=False)
    expected = theirs.SGDClassifier(alpha=1e5, eta0=0.1, learning_rate="constant", tol=None, max_iter=5, shuffle=False)
    np.testing.assert_allclose(model.fit(X, y).coef_, expected.fit(X, y).coef_, rtol=1e-9, atol=1e-12)


def test_rows_kept_out_must_leave_rows_to_learn_from():
    with pytest.raises(ValueError, match="leaves none for training"):
        SGDClassifier(early_stopping=True, validation_fraction=0.99).fit(X[:20], y[:20])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_thin_rows_are_multiplied_with_and_reach_the_minimum_of_dense_ones(n_classes):
    random = np.random.default_rng(0)
    thin = sp.random(300, 150, 0.05, format="csr", random_state=random)
    labels = random.integers(0, n_classes, 300)
    weight = random.integers(1, 3, 300).astype(float)
    params = {"tol": 1e-8, "class_weight": {0: 2.0}}
    sparse, dense = (LogisticRegression(**params).fit(rows, labels, weight) for rows in (thin, thin.toarray()))
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-6)
    np.testing.assert_allclose(sparse.intercept_, dense.intercept_, atol=1e-6)
    certificate = sparse.certify(thin, labels, sample_weight=weight)
    assert assay.verify(certificate, sparse, thin, labels, sample_weight=weight).holds


def test_ridge_of_thin_rows_is_that_of_dense_ones():
    random = np.random.default_rng(1)
    thin = sp.random(500, 300, 0.02, format="csr", random_state=random)
    target = random.normal(size=500)
    sparse, dense = (Ridge(tol=1e-12).fit(rows, target) for rows in (thin, thin.toarray()))
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-8)
    assert assay.verify(sparse.certify(thin, target), sparse, thin, target).holds


def test_lbfgs_calls_back_as_scikit_learn_does():
    """A task begins where the last one ended; what it shows is the model after so many iterations."""
    seen = []

    class Watch:
        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context, *, fitted_estimator=None):
            seen.append(("begin", context.task_name, fitted_estimator))

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            seen.append(("end", context.task_name, fitted_estimator))

    three = np.arange(len(X)) % 3
    model = LogisticRegression(solver="lbfgs").set_callbacks(Watch()).fit(X, three)
    inner = [(when, shown) for when, task, shown in seen if task == "iteration"]
    assert [when for when, _ in inner] == ["begin", "end"] * (model.n_iter_[0] + 1)
    assert inner[0][1] is None
    assert inner[-1][1] is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        second = LogisticRegression(solver="lbfgs", max_iter=2).fit(X, three)
    np.testing.assert_allclose(inner[3][1].coef_, second.coef_)
    np.testing.assert_allclose(inner[4][1].coef_, second.coef_)


def test_what_scikit_learn_will_drop_is_told():
    for model, words in [
        (LogisticRegression(penalty="l2"), "'penalty' was deprecated in scikit-learn"),
        (LogisticRegression(l1_ratio=None), "'l1_ratio=None' was deprecated in scikit-learn"),
    ]:
        with pytest.warns(FutureWarning, match=words):
            model.fit(X, y)


def test_a_minimum_with_a_huge_constant_column_is_no_stall():
    rows, labels = load_iris(return_X_y=True)
    rows, labels = rows[labels != 2], labels[labels != 2]
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    C = l1_min_c(rows, labels, loss="log") * 10 ** (10 / 29)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        LogisticRegression(l1_ratio=1, C=C, solver="liblinear", tol=1e-6, intercept_scaling=1e4).fit(scaled, labels)


@pytest.mark.parametrize("model", [Ridge(), LinearRegression(), ElasticNet(0.1), Lasso(0.1)], ids=str)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_coefficients_of_single_rows_are_single_and_certified(model, kind):
    single, target = kind(X.astype(np.float32)), (X @ np.arange(5.0)).astype(np.float32)
    model.fit(single, target)
    assert model.coef_.dtype == np.float32
    assert model.intercept_.dtype == np.float32
    wide = type(model)(**model.get_params()).fit(X.astype(np.float32).astype(np.float64), target)
    np.testing.assert_allclose(model.coef_, wide.coef_, rtol=1e-5, atol=1e-6)
    assert assay.verify(model.certify(single, target), model, single, target).holds


def test_a_lasso_that_starts_at_its_minimum_makes_no_sweep():
    target = X @ np.arange(5.0)
    model = ElasticNet(1e-3, tol=1e-3, warm_start=True).fit(X, target)
    assert model.n_iter_ > 0
    assert model.fit(X, target).n_iter_ == 0


def test_a_gram_matrix_of_weights_with_mean_one_is_read():
    weight = np.random.default_rng(0).lognormal(size=len(X))
    target, mean_one = X @ np.arange(5.0), weight / weight.mean()
    centred = X - np.average(X, axis=0, weights=weight)
    gram = (centred * mean_one[:, None]).T @ centred
    given = ElasticNet(0.01, precompute=gram).fit(centred, target, sample_weight=weight)
    np.testing.assert_allclose(given.coef_, ElasticNet(0.01).fit(X, target, sample_weight=weight).coef_)


def test_sag_of_sparse_rows_is_scikit_learns_slow_descent():
    """The same rows are drawn and the intercept is as slow; what the certificate says of the objective holds."""
    rows, labels = sp.csr_matrix(X * (np.abs(X) > 0.5)), y
    settings = {"solver": "sag", "max_iter": 30, "tol": 0.0, "random_state": 4, "C": 0.05}
    for weight in (None, np.random.default_rng(0).uniform(0.5, 2.0, len(labels))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LogisticRegression(**settings, class_weight={0: 1.0, 1: 3.0}).fit(rows, labels, weight)
            peer = theirs.LogisticRegression(**settings, class_weight={0: 1.0, 1: 3.0}).fit(rows, labels, weight)
        np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-7)
        np.testing.assert_allclose(model.intercept_, peer.intercept_, rtol=1e-7)
        assert model.n_iter_ == peer.n_iter_
        certificate = model.certify(rows, labels, sample_weight=weight)
        assert assay.verify(certificate, model, rows, labels, sample_weight=weight).holds


@pytest.mark.parametrize("kind", [LogisticRegression, Ridge])
def test_sag_refuses_rows_without_entries(kind):
    with pytest.raises(ZeroDivisionError, match=r"step_size . alpha_scaled == 1"):
        kind(solver="sag", fit_intercept=False).fit(np.zeros((4, 2)), [0, 1, 0, 1])


def test_a_list_of_texts_is_no_list_of_files():
    for texts in (["a", "b", "c"], [["a"], ["b"], ["c"]], np.array(["1.5", "x", "2.5"])):
        with pytest.raises(ValueError, match=r"could not convert string|2D array"):
            LogisticRegression().fit(texts, [0, 1, 1])


def test_coefficients_of_a_descent_can_be_sparse():
    X = np.random.default_rng(0).normal(size=(60, 5))
    model = SGDRegressor(penalty="l1", alpha=0.1, random_state=0).fit(X, X[:, 0])
    dense, coef = model.predict(X), model.coef_
    assert model.sparsify().coef_.shape == (1, 5)
    for rows in (X, sp.csr_matrix(X), sp.csr_array(X)):
        np.testing.assert_allclose(model.predict(rows), dense)
    assert model.certify(X, X[:, 0]).find("duality-gap") is not None
    np.testing.assert_array_equal(model.densify().coef_, coef)
