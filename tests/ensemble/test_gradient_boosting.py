"""Gradient boosting with exact trees: scikit-learn's numbers, warm starts, certificates."""

import pickle

import numpy as np
import pytest
from sklearn import ensemble as peers
from sklearn.datasets import load_breast_cancer, load_iris, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

import assay
from assay.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from assay.ensemble._exact_rounds import quantile_of
from assay.tree.growth._exact import encode, grow_exact
from assay.tree.growth._levels import Presorted, grow_levels
from assay.tree.growth._records import Limits


def friedman(n=400):
    """Return rows that float32, which scikit-learn's trees read, holds exactly."""
    X, y = make_friedman1(n, random_state=0)
    return X.astype(np.float32).astype(float), y


@pytest.mark.mission("ENS-26")
@pytest.mark.parametrize("loss", ["squared_error", "huber"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"max_depth": 6, "min_samples_leaf": 5, "min_impurity_decrease": 0.01, "ccp_alpha": 0.001},
        {"max_leaf_nodes": 6},
    ],
)
def test_numbers_of_scikit_learn(loss, weighted, more):
    X, y = friedman()
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y)) if weighted else None
    options = {"loss": loss, "n_estimators": 20, "random_state": 0, **more}
    own = GradientBoostingRegressor(**options).fit(X, y, weight)
    other = peers.GradientBoostingRegressor(**options).fit(X, y, weight)
    assert own.predict(X) == pytest.approx(other.predict(X), abs=1e-11)
    assert own.train_score_ == pytest.approx(other.train_score_, rel=1e-11)
    assert own.estimators_[3, 0].tree_.node_count == other.estimators_[3, 0].tree_.node_count


@pytest.mark.mission("ENS-27")
@pytest.mark.mission("ENS-28")
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_classes_of_scikit_learn(load):
    X, y = load(return_X_y=True)
    X = X.astype(np.float32).astype(float)
    own, other = (kind(random_state=0, n_estimators=30).fit(X, y) for kind in BOTH)
    assert own.predict_proba(X) == pytest.approx(other.predict_proba(X), abs=1e-9)
    assert own.init_.predict_proba(X[:1]) == pytest.approx(other.init_.predict_proba(X[:1]))
    assert own.apply(X).shape == other.apply(X).shape


BOTH = (GradientBoostingClassifier, peers.GradientBoostingClassifier)


@pytest.mark.parametrize("seed", range(4))
def test_levels_are_the_trees_of_the_general_grower(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 400))
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 4, n), np.round(rng.normal(size=n), 1), np.zeros(n)])
    y, weight = rng.normal(size=n) + X[:, 0], None if seed % 2 else rng.uniform(0.1, 3, n)
    rows = np.sort(rng.permutation(n)[: n - n // 4])
    limits = Limits(min_samples_leaf=1 + seed, min_samples_split=2, max_depth=2 + seed, min_decrease=0.01)
    columns = encode(X, 1)
    own = grow_levels(Presorted(columns, 2), y, weight, rows, limits, 0)
    other = grow_exact(columns, y, weight, rows.copy(), np.empty(0), "squared_error", limits, 0)

    def leaves(tree):
        return sorted(zip(np.round(tree.value[tree.child < 0, 0], 9), np.round(tree.weight[tree.child < 0], 9)))

    assert leaves(own) == leaves(other)


def test_quantile_is_the_inverted_distribution():
    rng = np.random.default_rng(0)
    values, weight = rng.normal(size=41), rng.integers(1, 5, 41)
    for level in (0.1, 0.37, 0.5, 0.9):
        expected = np.quantile(np.repeat(values, weight), level, method="inverted_cdf")
        assert quantile_of(values, weight.astype(float), level) == expected


@pytest.mark.parametrize("subsample", [1.0, 0.5])
def test_two_warm_fits_are_one(subsample):
    X, y = friedman()
    options = {"subsample": subsample, "random_state": 0, "max_features": 2}
    whole = GradientBoostingRegressor(n_estimators=20, **options).fit(X, y)
    half = GradientBoostingRegressor(n_estimators=8, warm_start=True, **options).fit(X, y)
    half.set_params(n_estimators=20).fit(X, y)
    assert all(np.array_equal(half.trees_[name], whole.trees_[name]) for name in whole.trees_)
    assert np.array_equal(half.train_score_, whole.train_score_)
    assert list(whole.staged_predict(X))[-1] == pytest.approx(whole.predict(X), abs=0)


def test_early_stopping_with_a_small_part_to_fit_to():
    """Two rows of a class and most rows kept for validation: refused in words, no division by zero."""
    model = GradientBoostingClassifier(n_iter_no_change=5, random_state=0, validation_fraction=0.8)
    with pytest.raises(ValueError, match="missing some classes"):
        model.fit([[1.0]] * 10, [0, 0] + [1] * 8)


@pytest.mark.parametrize("kind", [GradientBoostingClassifier, GradientBoostingRegressor])
def test_steps_that_are_too_long_are_told_in_the_words_of_the_task(kind):
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    off = "probabilities" if kind is GradientBoostingClassifier else "predictions"
    with pytest.warns(ConvergenceWarning, match=f"{kind.__name__}: the training loss rose .* some {off} are far off"):
        kind(learning_rate=8.0, n_estimators=20).fit(X, y)


def test_threads_change_no_bit_and_pickles_predict():
    X, y = friedman(3_000)
    one, two = (GradientBoostingRegressor(n_estimators=5, n_jobs=k).fit(X, y) for k in (1, 2))
    assert all(np.array_equal(one.trees_[name], two.trees_[name]) for name in one.trees_)
    again = pickle.loads(pickle.dumps(one))
    assert np.array_equal(again.predict(X), one.predict(X))


def test_certificate_and_what_has_none():
    X, y = load_breast_cancer(return_X_y=True)
    model = GradientBoostingClassifier(n_estimators=10, subsample=0.7, random_state=0).fit(X, y)
    assert assay.verify(model.certify(X, y), model, X, y).holds
    X, y = friedman(100)
    started = GradientBoostingRegressor(init=LinearRegression(), n_estimators=3).fit(X, y)
    assert started.score(X, y) > LinearRegression().fit(X, y).score(X, y)
    with pytest.raises(ValueError, match="no certificate"):
        started.certify(X, y)
