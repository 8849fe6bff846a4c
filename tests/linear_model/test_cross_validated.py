"""Linear models that choose their penalty: against scikit-learn's, models without a row, and their certificates."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn import linear_model as scikit
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit

from assay import verify
from assay.linear_model import ElasticNetCV, Lasso, LassoCV, LogisticRegression, LogisticRegressionCV, Ridge, RidgeCV

ALPHAS = (0.01, 1.0, 30.0, 1000.0)


def draw(n=60, d=5, k=1, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) + 3.0
    y = X @ random.normal(size=(d, k)) + 2.0 * random.normal(size=(n, k))
    return X, y[:, 0] if k == 1 else y, random.uniform(0.5, 2.0, n)


def left_out(X, y, weight, alpha, **options):
    """Return the error of each row by a ridge regression of scikit-learn's that has not seen it."""
    errors = []
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        model = scikit.Ridge(alpha=alpha, **options).fit(X[rest], y[rest], sample_weight=weight[rest])
        errors.append(y[i] - model.predict(X[[i]])[0])
    return np.array(errors)


@pytest.mark.parametrize("shape", [(30, 4), (12, 20), (15, 15)])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("mode", ["eigen", "svd"])
def test_leave_one_out_errors_are_those_of_models_without_the_row(shape, intercept, mode):
    X, y, weight = draw(*shape)
    model = RidgeCV(ALPHAS, fit_intercept=intercept, gcv_mode=mode, store_cv_results=True).fit(X, y, weight)
    expected = [weight * left_out(X, y, weight, alpha, fit_intercept=intercept) ** 2 for alpha in ALPHAS]
    np.testing.assert_allclose(model.cv_results_, np.transpose(expected), rtol=1e-7)
    means = np.mean(expected, axis=1)
    assert model.alpha_ == ALPHAS[means.argmin()]
    assert model.best_score_ == pytest.approx(-means.min())


@pytest.mark.parametrize("shape", [(60, 5, 1), (60, 5, 3), (20, 40, 2)])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fit_intercept": False},
        {"scoring": "neg_mean_absolute_error"},
        {"scoring": "r2", "store_cv_results": True},
        {"alpha_per_target": True},
        {"alphas": np.logspace(-3, 3, 9), "store_cv_results": True},
        {"cv": 4},
        {"cv": 4, "alphas": [0.5, 1.0, 500.0], "scoring": "neg_mean_absolute_error"},
        {"cv": ShuffleSplit(3, test_size=0.3, random_state=0)},
    ],
)
def test_ridge_chooses_as_scikit_learn_does(shape, options):
    X, y, weight = draw(*shape)
    options = {"alphas": ALPHAS, **options}
    ours, theirs = (kind(**options).fit(X, y, sample_weight=weight) for kind in (RidgeCV, scikit.RidgeCV))
    np.testing.assert_array_equal(ours.alpha_, theirs.alpha_)
    for name in ("best_score_", "coef_", "intercept_", *(["cv_results_"] if options.get("store_cv_results") else [])):
        assert np.shape(getattr(ours, name)) == np.shape(getattr(theirs, name))
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-7, atol=1e-10)


def test_ridge_reads_sparse_rows_and_columns_of_one_value():
    X, y, _ = draw()
    X[:, 2] = 1e6
    X[X < 2.5] = 0.0
    expected = scikit.RidgeCV(ALPHAS).fit(X, y)
    for rows in (X, sp.csr_matrix(X), sp.csc_array(X)):
        model = RidgeCV(ALPHAS).fit(rows, y)
        assert model.alpha_ == expected.alpha_
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-8)


@pytest.mark.parametrize("alpha", [1e-9, 1e-3, 1.0, 1e4])
@pytest.mark.parametrize("intercept", [True, False])
def test_ridge_of_more_columns_than_rows(alpha, intercept):
    X, y, weight = draw(20, 300, 2)
    ours, theirs = (
        kind(alpha, fit_intercept=intercept).fit(X, y, sample_weight=weight) for kind in (Ridge, scikit.Ridge)
    )
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["LassoCV", "ElasticNetCV"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fit_intercept": False},
        {"positive": True},
        {"alphas": 12, "eps": 0.05, "cv": 3},
        {"alphas": [0.1, 1.0, 0.02]},
        {"cv": ShuffleSplit(3, test_size=0.3, random_state=0)},
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_paths_are_scikit_learns(kind, options, weighted):
    X, y, weight = draw(80, 6)
    weight = weight if weighted else None
    ours = {"LassoCV": LassoCV, "ElasticNetCV": ElasticNetCV}[kind](**options, tol=1e-12).fit(X, y, weight)
    theirs = getattr(scikit, kind)(**options, tol=1e-12, max_iter=100_000).fit(X, y, sample_weight=weight)
    for name in ("alphas_", "alpha_", "mse_path_", "coef_", "intercept_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-5, atol=1e-7)
        assert np.shape(getattr(ours, name)) == np.shape(getattr(theirs, name))


def test_the_share_of_the_l1_penalty_is_chosen_too():
    X, y, _ = draw(80, 6)
    ours, theirs = (
        kind(l1_ratio=[0.2, 0.9, 0.5], alphas=15, tol=1e-10).fit(X, y) for kind in (ElasticNetCV, scikit.ElasticNetCV)
    )
    assert ours.l1_ratio_ == theirs.l1_ratio_
    assert ours.alphas_.shape == theirs.alphas_.shape == (3, 15)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-6)


def test_errors_of_a_perfect_fit_and_of_a_fold_with_all_the_variation():
    X, _, _ = draw(40, 3)
    X[7, 1] = 1e9  # what the other folds have of this column is lost in the moments of all rows
    y = X[:, 0] - 2 * X[:, 2]
    ours = LassoCV(alphas=[1e-6, 1e-3], cv=4, tol=1e-14).fit(X, y)
    theirs = scikit.LassoCV(alphas=[1e-6, 1e-3], cv=4, tol=1e-14, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-4)


@pytest.mark.parametrize("model", [RidgeCV(ALPHAS), RidgeCV(ALPHAS, cv=3), LassoCV(alphas=20), ElasticNetCV(alphas=20)])
def test_the_chosen_model_is_proved_to_be_a_minimum(model):
    X, y, weight = draw(80, 6)
    model.fit(X, y, weight)
    certificate = model.certify(X, y, sample_weight=weight)
    gap = certificate.find("duality-gap")
    assert gap.value < 1e-6 * np.sum(y**2)
    assert verify(certificate, model, X, y, sample_weight=weight).holds
    wrong = model.__class__(**model.get_params()).fit(X, y, weight)
    wrong.coef_ = wrong.coef_ + 1e-2
    assert not verify(certificate, wrong, X, y, sample_weight=weight).holds


def test_the_certificate_is_about_the_penalty_chosen():
    X, y, _ = draw(80, 6)
    model = LassoCV(alphas=20).fit(X, y)
    same = Lasso(alpha=model.alpha_).fit(X, y)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-8)
    claims = [fitted.certify(X, y).find("duality-gap") for fitted in (model, same)]
    assert dict(claims[0].params) == dict(claims[1].params)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RidgeCV([0.0, 1.0]), r"alphas\[0\] == 0.0, must be > 0"),
        (RidgeCV(cv=3, store_cv_results=True), "cv!=None and store_cv_results=True"),
        (RidgeCV(cv=3, alpha_per_target=True), "cv!=None and alpha_per_target=True"),
        (ElasticNetCV(l1_ratio=0.0), "not supported for l1_ratio=0"),
        (ElasticNetCV(l1_ratio=[0.5, 1.5]), "l1_ratio must be numbers in"),
        (LassoCV(alphas=0), "alphas must be an integer >= 1"),
        (LassoCV(alphas=[1.0, -1.0]), r"alphas\[1\] == -1.0"),
    ],
)
def test_refusals(model, message):
    X, y, _ = draw()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_groups_reach_the_splitter():
    X, y, _ = draw()
    groups = np.arange(len(X)) % 3
    with config_context(enable_metadata_routing=True):
        for kind in (LassoCV, RidgeCV):
            cv = GroupKFold(3).set_split_request(groups=True)
            assert kind(cv=cv).fit(X, y, groups=groups).alpha_ > 0


@pytest.mark.parametrize("alphas", [(1e-8, 1e-3, 1.0, 10.0), tuple(np.logspace(-10, 3, 14))])
def test_wide_rows_are_left_out_exactly_with_nearly_no_penalty(alphas):
    X, y, weight = draw(20, 30)
    model = RidgeCV(alphas, store_cv_results=True).fit(X, y, weight)
    expected = [weight * left_out(X, y, weight, alpha, solver="svd") ** 2 for alpha in alphas]
    np.testing.assert_allclose(model.cv_results_, np.transpose(expected), rtol=1e-7)


@pytest.mark.parametrize("enabled", [False, True])
def test_routing_ends_whether_or_not_it_is_enabled(enabled):
    """A scorer that is the model's own score asked the model for its routing, without end."""
    with config_context(enable_metadata_routing=enabled):
        for model in (RidgeCV(), RidgeCV(scoring="r2"), LassoCV(), ElasticNetCV(), LogisticRegressionCV(scoring=None)):
            assert "splitter" in str(model.get_metadata_routing())


def classes(n=90, d=4, k=2, seed=0):
    X, _, weight = draw(n, d, seed=seed)
    scores = 0.8 * (X - 3.0) @ np.random.default_rng(seed).normal(size=(d, k))
    return X, (scores + np.random.default_rng(seed + 1).gumbel(size=(n, k))).argmax(axis=1), weight


MODERN = {"l1_ratios": (0.0,), "scoring": "neg_log_loss", "use_legacy_attributes": False, "Cs": [0.01, 0.3, 10.0]}

SAGA = {"solver": "saga", "max_iter": 20_000, "Cs": [0.3, 2.0]}  # theirs stops too early where all coefficients are 0


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"l1_ratios": (0.0, 0.5, 1.0), **SAGA},
        {"l1_ratios": np.array([1.0, 0.5]), **SAGA, "refit": False},
        {"refit": False, "cv": 3},
        {"scoring": None, "fit_intercept": False, "Cs": 4},
        {"class_weight": "balanced", "cv": ShuffleSplit(3, test_size=0.3, random_state=0)},
        {"use_legacy_attributes": True},
        {"use_legacy_attributes": True, "l1_ratios": None},
    ],
)
def test_logistic_paths_are_scikit_learns(k, options):
    X, y, weight = classes(k=k)
    options = {"tol": 1e-8, "max_iter": 2_000, **MODERN, **options}
    solver = options.get("solver", "lbfgs")
    with pytest.warns(FutureWarning) if options["l1_ratios"] is None else nullcontext():
        ours = LogisticRegressionCV(**options).fit(X, y, weight)
        theirs = scikit.LogisticRegressionCV(**{**options, "solver": solver}).fit(X, y, sample_weight=weight)
    for name in ("C_", "l1_ratio_", "Cs_", "l1_ratios_"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    for name in ("coef_", "intercept_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-3, atol=2e-4)
    for name in ("scores_", "coefs_paths_"):
        one, other = getattr(ours, name), getattr(theirs, name)
        if isinstance(other, dict):
            assert list(one) == list(other)
            one, other = (np.array(list(each.values())) for each in (one, other))
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=1e-3)
    assert ours.n_iter_.shape == theirs.n_iter_.shape
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-4)


def test_logistic_paths_of_sparse_rows_and_of_folds_without_a_class():
    X, y, _ = classes(k=3)
    X[X < 2.5] = 0.0
    dense, thin = (LogisticRegressionCV(**MODERN).fit(rows, y) for rows in (X, sp.csr_matrix(X)))
    np.testing.assert_allclose(thin.scores_, dense.scores_, atol=1e-6)
    order = np.argsort(y, kind="stable")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a class without rows has no finite intercept
        apart = LogisticRegressionCV(**MODERN, cv=KFold(3)).fit(X[order], y[order])
        theirs = scikit.LogisticRegressionCV(**MODERN, cv=KFold(3)).fit(X[order], y[order])
    assert apart.C_ == theirs.C_


@pytest.mark.parametrize("k", [2, 3])
def test_the_chosen_logistic_model_is_certified_as_one_fitted_with_its_penalty(k):
    X, y, weight = classes(k=k)
    model = LogisticRegressionCV(**MODERN).fit(X, y, weight)
    same = LogisticRegression(C=model.C_).fit(X, y, weight)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-4)
    name = "logistic.gap" if k == 2 else "multinomial.gap"
    claims = [one.certify(X, y, sample_weight=weight).find(name) for one in (model, same)]
    assert dict(claims[0].params) == dict(claims[1].params)
    certificate = model.certify(X, y, sample_weight=weight)
    assert verify(certificate, model, X, y, sample_weight=weight).holds
    model.coef_ = model.coef_ + 0.01
    assert not verify(certificate, model, X, y, sample_weight=weight).holds


def test_means_of_folds_are_no_minimum_and_are_not_called_one():
    X, y, _ = classes()
    certificate = LogisticRegressionCV(**{**MODERN, "refit": False}).fit(X, y).certify(X, y)
    assert "logistic.gap" not in {claim.name for claim in certificate.claims}


def test_what_scikit_learn_will_change_is_told_by_name():
    X, y, _ = classes()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LogisticRegressionCV(Cs=1, cv=2).fit(X, y)
    told = " ".join(str(one.message) for one in caught)
    assert all(name in told for name in ("l1_ratios", "scoring", "use_legacy_attributes"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"Cs": 0}, "Cs must be an integer >= 1"),
        ({"Cs": [1.0, -1.0]}, "Cs must be an integer >= 1"),
        ({"l1_ratios": (0.5, 2.0)}, "l1_ratios must be an array-like of numbers between 0 and 1"),
        ({"penalty": "elasticnet", "l1_ratios": None}, "l1_ratios must be an array-like"),
        ({"l1_ratios": (1.0,), "solver": "lbfgs"}, "supports only 'l2'"),
    ],
)
def test_logistic_refusals(options, message):
    X, y, _ = classes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=message):
            LogisticRegressionCV(**{**MODERN, **options}).fit(X, y)


@pytest.mark.parametrize("Cs", [0, 10_001, 2**31 - 1, True])
def test_the_number_of_penalties_is_bounded(Cs):
    """A number in a small file must not ask for the memory of a large one."""
    model = LogisticRegressionCV(Cs=Cs)
    with pytest.raises(ValueError, match="Cs must be"):
        model.fit([[0.0], [1.0], [2.0], [3.0]] * 4, [0, 1, 0, 1] * 4)


@pytest.mark.parametrize(
    "model",
    [LassoCV(cv=5), ElasticNetCV(cv=5), RidgeCV(cv=5), LogisticRegressionCV(cv=KFold(5), use_legacy_attributes=False)],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize(("kept", "part"), [(slice(5), "training"), (slice(12, 60), "hold-out")], ids=str)
def test_folds_whose_rows_all_weigh_nothing_are_refused(model, kept, part):
    """Their mean errors are no numbers: the first penalty was chosen without a word, or a division by zero raised."""
    X, y, _ = draw(60, 3)
    weight = np.zeros(60)
    weight[kept] = 1.0
    y = np.where(y > np.median(y[:5]), 1, 0) if "Logistic" in type(model).__name__ else y
    with pytest.raises(ValueError, match=f"all {part} rows of fold 0 have weight 0"):
        model.fit(X, y, sample_weight=weight)
