"""What a forest knows of its columns and rows: importances, interactions, strength, correlation, out-of-bag errors."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from assay.ensemble import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor
from examples import robust_forest


@pytest.mark.mission("ENS-40")
def test_importances():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6))
    y = (X[:, 0] + X[:, 3] > 0).astype(int)
    model = RandomForestClassifier(60, random_state=0).fit(X, y)
    importances = model.feature_importances_
    assert importances.sum() == pytest.approx(1.0)
    assert set(np.argsort(importances)[-2:]) == {0, 3}
    from sklearn.inspection import permutation_importance

    permuted = permutation_importance(model, X, y, random_state=0, n_repeats=3).importances_mean
    assert set(np.argsort(permuted)[-2:]) == {0, 3}


@pytest.mark.mission("ENS-42")
def test_strength_and_correlation_bound_the_error():
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(100, voting="hard", random_state=0).fit(X[::2], y[::2])
    found = model.strength(X[1::2], y[1::2])
    assert found.strength > 0
    assert found.bound >= 1 - model.score(X[1::2], y[1::2])
    curve = [
        RandomForestClassifier(60, max_features=k, random_state=0).fit(X[::2], y[::2]).strength(X[1::2], y[1::2])
        for k in (1, 5, 30)
    ]
    assert curve[0].correlation < curve[-1].correlation


@pytest.mark.mission("ENS-43")
def test_number_of_columns_by_out_of_bag_error():
    X, y = load_breast_cancer(return_X_y=True)
    found = robust_forest.scan_columns(X, y, (1, 2, 4, 8, 16, 30))
    assert found.best == found.columns[int(np.argmin(found.errors))]
    for k, error in zip(found.columns, found.errors):
        forest = RandomForestClassifier(60, max_features=k, oob_score=True, random_state=0).fit(X, y)
        assert 1 - forest.oob_score_ == pytest.approx(error)
    assert found.forest.max_features == found.best
    assert robust_forest.scan_columns(X[:100, :9], y[:100], n_estimators=5).columns == [1, 3, 4, 9]


def exclusive_or(seed=0, n=800):
    X = np.random.default_rng(seed).integers(0, 2, (n, 5)).astype(float)
    return X, (X[:, 0] != X[:, 2]).astype(int)


@pytest.mark.mission("ENS-40")
def test_permutation_importance_by_hand():
    X, y = exclusive_or()
    model = RandomForestClassifier(15, max_features=None, random_state=0).fit(X, y)
    found = model.permutation_importances(X, y, n_repeats=3, random_state=0)
    assert set(np.argsort(found)[-2:]) == {0, 2}
    # A tree that knows exclusive or is right half of the time when one of the two columns is permuted.
    assert found[[0, 2]] == pytest.approx([0.5, 0.5], abs=0.05)
    assert np.abs(found[[1, 3, 4]]).max() < 0.05
    numbers = RandomForestRegressor(15, max_features=None, random_state=0).fit(X, 4.0 * X[:, 0])
    # Mean squared difference of two independent values: 2 * 16 / 4.
    assert numbers.permutation_importances(X, 4.0 * X[:, 0], random_state=0)[0] == pytest.approx(8.0, abs=0.6)
    with pytest.raises(ValueError, match="the 800 training rows"):
        model.permutation_importances(X[:10], y[:10])
    with pytest.raises(ValueError, match="out-of-bag rows"):
        ExtraTreesClassifier(3, random_state=0).fit(X, y).permutation_importances(X, y)


@pytest.mark.mission("ENS-41")
def test_interactions_of_exclusive_or_are_the_largest():
    X, y = exclusive_or()
    model = RandomForestClassifier(20, max_features=None, random_state=0).fit(X, y)
    shared = model.interactions(X, y, random_state=0)
    assert np.array_equal(shared, shared.T)
    assert np.unravel_index(np.triu(shared).argmax(), shared.shape) == (0, 2)
    assert shared[0, 2] == pytest.approx(0.5, abs=0.08)  # 1/2 + 1/2 alone, 1/2 together
    others = np.triu(np.abs(shared), 1)
    others[0, 2] = 0.0
    assert others.max() < 0.1


@pytest.mark.mission("ENS-41")
def test_columns_that_act_separately_share_nothing():
    X = np.tile([[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1]], (200, 1)).astype(float)
    y = 3.0 * X[:, 0] + 2.0 * X[:, 1]
    model = RandomForestRegressor(10, max_features=None, random_state=0).fit(X, y)
    shared = model.interactions(X, y, n_repeats=5, random_state=0)
    assert np.abs(shared).max() < 0.35  # of 4.5 + 2 for both columns
    product = RandomForestRegressor(10, max_features=None, random_state=0).fit(X, 6.0 * X[:, 0] * X[:, 1])
    found = product.interactions(X, 6.0 * X[:, 0] * X[:, 1], n_repeats=5, random_state=0)
    # I(0) = I(1) = 36 E[x1 (x0 - x0')^2] = 9; together 2 var = 2 * 36 * 3/16 = 13.5.
    assert found[0, 1] == pytest.approx(4.5, abs=0.9)


@pytest.mark.mission("ENS-42")
def test_strength_and_correlation_by_hand():
    from assay.ensemble._votes import strength_of

    votes = np.array([[0, 0, 1], [1, 1, 1], [0, 1, 2], [2, 2, 2]])
    codes = np.array([0, 1, 0, 1])
    found = strength_of(votes, codes, 3)
    margins = np.array([1 / 3, 1.0, 0.0, -1.0])
    assert found.strength == pytest.approx(margins.mean())
    raw = np.array([[1, 1, -1], [1, 1, 1], [1, -1, 0], [-1, -1, -1]])
    assert found.correlation == pytest.approx(margins.var() / raw.std(axis=0).mean() ** 2)
    s = margins.mean()
    assert found.bound == pytest.approx(found.correlation * (1 - s * s) / (s * s))
    said = np.array([[True, False, True], [True, True, True], [False, False, False], [False, True, True]])
    partly = strength_of(votes, codes, 3, said)
    assert partly.strength == pytest.approx((0.0 + 1.0 - 1.0) / 3)


@pytest.mark.mission("ENS-42")
def test_out_of_bag_strength_is_close_to_that_on_new_rows():
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(150, random_state=0).fit(X[::2], y[::2])
    inside, outside = model.strength(X[::2], y[::2], out_of_bag=True), model.strength(X[1::2], y[1::2])
    assert inside.strength == pytest.approx(outside.strength, abs=0.05)
    assert inside.bound > 1 - model.score(X[1::2], y[1::2])


@pytest.mark.mission("ENS-43")
def test_the_number_of_columns_with_the_smallest_out_of_bag_error_is_good_on_new_rows():
    """One column in 12 tells the class: few columns at a node miss it, all columns find it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 12)), rng.integers(0, 2, 400)
    X[:, 5] += 3 * y
    Xn, yn = rng.normal(size=(2000, 12)), rng.integers(0, 2, 2000)
    Xn[:, 5] += 3 * yn
    forests = {
        k: RandomForestClassifier(60, max_features=k, max_depth=2, oob_score=True, random_state=0).fit(X, y)
        for k in (1, 2, 4, 8, 12)
    }
    curve = {k: forest.oob_errors_[-1] for k, forest in forests.items()}
    chosen = min(curve, key=curve.get)
    errors = {k: 1 - forest.score(Xn, yn) for k, forest in forests.items()}
    assert chosen > 1
    assert curve[1] > curve[chosen]
    assert errors[chosen] <= min(errors.values()) + 0.02
    assert all(curve[k] == pytest.approx(errors[k], abs=0.05) for k in (4, 8, 12))


@pytest.mark.mission("ENS-33")
def test_out_of_bag_curve_ends_at_the_score():
    X, y = load_breast_cancer(return_X_y=True)
    for make in (RandomForestClassifier, ExtraTreesClassifier):
        model = make(30, oob_score=True, bootstrap=True, random_state=0).fit(X, y)
        assert model.oob_errors_[-1] == pytest.approx(1 - model.oob_score_)
        assert model.oob_errors_[-1] < model.oob_errors_[0]
