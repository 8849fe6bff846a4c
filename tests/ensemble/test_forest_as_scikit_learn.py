"""Forests under scikit-learn's names: several outputs, weights, warm starts, members, sparse rows, refusals."""

import numpy as np
import pytest
import sklearn.ensemble as peer
from scipy.sparse import csc_matrix
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, make_multilabel_classification
from sklearn.inspection import partial_dependence
from sklearn.metrics import f1_score
from sklearn.tree import export_text

import assay
from assay.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor

IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
CLASSIFIERS = [RandomForestClassifier, ExtraTreesClassifier]
REGRESSORS = [RandomForestRegressor, ExtraTreesRegressor]


@pytest.mark.parametrize("forest", [*CLASSIFIERS, *REGRESSORS])
@pytest.mark.parametrize("limit", [2**63 - 1, 2**65])
def test_numbers_too_large_for_a_machine_are_no_limit(forest, limit):
    limits = {"max_leaf_nodes": limit, "max_depth": limit, "min_samples_split": 2}
    plain = forest(3, random_state=0).fit(*IRIS)
    assert np.array_equal(forest(3, random_state=0, **limits).fit(*IRIS).predict(IRIS[0]), plain.predict(IRIS[0]))


@pytest.mark.parametrize("forest", CLASSIFIERS)
def test_several_labels(forest):
    X, y = make_multilabel_classification(n_samples=300, n_features=8, n_classes=3, random_state=0)
    model = forest(30, bootstrap=True, oob_score=True, random_state=0).fit(X[:200], y[:200])
    other = getattr(peer, forest.__name__)(30, random_state=0).fit(X[:200], y[:200])
    assert model.n_outputs_ == 3
    assert list(model.n_classes_) == [2, 2, 2]
    assert [part.shape for part in model.predict_proba(X)] == [(300, 2)] * 3
    assert model.predict(X).shape == y.shape
    assert abs((model.predict(X[200:]) == y[200:]).mean() - (other.predict(X[200:]) == y[200:]).mean()) < 0.08
    assert model.oob_decision_function_.shape == (200, 2, 3)
    mean = np.mean([tree.predict_proba(X)[1] for tree in model.estimators_], axis=0)
    assert model.predict_proba(X)[1] == pytest.approx(mean)
    with pytest.raises(ValueError, match="about one target"):
        model.certify(X[:200], y[:200])


@pytest.mark.parametrize("forest", REGRESSORS)
def test_several_numbers(forest):
    X, y = DIABETES
    two = np.column_stack([y, -2 * y])
    model = forest(10, random_state=0).fit(X, two)
    assert model.predict(X)[:, 1] == pytest.approx(-2 * model.predict(X)[:, 0])


@pytest.mark.parametrize("forest", [*CLASSIFIERS, *REGRESSORS])
def test_sparse_rows_are_those_rows(forest):
    X = np.where(IRIS[0] > 2, IRIS[0], 0.0)
    one, two = (forest(5, random_state=0).fit(rows, IRIS[1]) for rows in (X, csc_matrix(X)))
    assert np.array_equal(one.predict(X), two.predict(csc_matrix(X)))


@pytest.mark.parametrize("forest", [*CLASSIFIERS, *REGRESSORS])
def test_a_warm_start_is_a_fit_of_all_trees(forest):
    X, y = IRIS
    grown = forest(4, warm_start=True, random_state=0).fit(X, y)
    grown.set_params(n_estimators=9).fit(X, y)
    whole = forest(9, random_state=0).fit(X, y)
    assert np.array_equal(grown.apply(X), whole.apply(X))
    assert [tree.random_state for tree in grown] == [tree.random_state for tree in whole]
    with pytest.warns(UserWarning, match="does not fit new trees"):
        grown.fit(X, y)
    with pytest.raises(ValueError, match="larger or equal"):
        grown.set_params(n_estimators=2).fit(X, y)


def test_a_warm_start_with_other_classes_is_refused():
    model = RandomForestClassifier(2, warm_start=True, random_state=0).fit(*IRIS)
    with pytest.raises(ValueError, match="not those of the trees"):
        model.set_params(n_estimators=3).fit(IRIS[0], IRIS[1] + 1)
    assert model.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("forest", CLASSIFIERS)
def test_weights_of_classes(forest):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + rng.normal(size=400) > 2).astype(int)
    plain, bags, given = (
        forest(40, bootstrap=True, min_samples_leaf=5, class_weight=weights, random_state=0).fit(X, y)
        for weights in (None, "balanced_subsample", {0: 1.0, 1: 20.0})
    )
    found = [model.predict(X)[y == 1].mean() for model in (plain, bags, given)]
    assert found[1] > found[0] + 0.1
    assert found[2] > found[0] + 0.1
    for tree in bags.estimators_[:3]:
        assert tree.node_value_[0] == pytest.approx([0.5, 0.5])
    with pytest.raises(ValueError, match="valid presets"):
        forest(class_weight="even").fit(X, y)


def test_rows_are_drawn_by_their_weights_and_then_there_is_no_bound_by_bags():
    X, y = IRIS
    weight = np.where(y == 0, 0.0, 1.0)
    model = RandomForestClassifier(20, random_state=0).fit(X, y, weight)
    assert model.bags()[:, y == 0].sum() == 0
    assert {len(rows) for rows in model.estimators_samples_} == {150}
    assert model.predict_proba(X)[:, 0].max() == 0
    assert "drawn by their weights" in str([one.reason for one in model.certify(X, y).not_applicable])


def test_members_are_trees_that_tools_read():
    X, y = IRIS
    model = RandomForestClassifier(5, max_depth=2, random_state=0).fit(X, y)
    assert len(model) == len(list(model)) == 5
    assert "feature_" in export_text(model[0])
    assert isinstance(model, peer.RandomForestClassifier)
    drawn = model.estimators_samples_[1]
    again = type(model[1])(**model[1].get_params()).fit(X[drawn], y[drawn])
    assert np.array_equal(again.predict_proba(X), model[1].predict_proba(X))
    passed, ends = model.decision_path(X)
    assert passed.shape == (150, ends[-1])
    assert np.array_equal(model.apply(X)[:, 2], model[2].apply(X))
    mean = np.mean([tree.predict_proba(X) for tree in model], axis=0)
    assert model.predict_proba(X) == pytest.approx(mean)


@pytest.mark.parametrize("forest", [*CLASSIFIERS, *REGRESSORS])
@pytest.mark.parametrize("bootstrap", [True, False])
def test_a_member_fitted_alone_to_its_rows_is_the_same_tree(forest, bootstrap):
    X, y = IRIS
    model = forest(3, max_features=0.5, bootstrap=bootstrap, random_state=1).fit(X, y)
    for member, rows in zip(model.estimators_, model.estimators_samples_):
        alone = clone(member).fit(X[rows], y[rows])
        assert np.array_equal(alone.tree_.feature, member.tree_.feature)
        assert np.array_equal(alone.tree_.threshold, member.tree_.threshold)
        assert alone.tree_.value == pytest.approx(member.tree_.value)


def test_partial_dependence_by_the_trees():
    X, y = DIABETES
    model = RandomForestRegressor(10, max_depth=3, bootstrap=False, random_state=0).fit(X, y)
    own, other = (partial_dependence(model, X, [2], method=how)["average"] for how in ("recursion", "brute"))
    assert np.corrcoef(own[0], other[0])[0, 1] > 0.98


def test_pruned_and_ordered_trees_are_certified():
    X, y = DIABETES
    signs = [0, 0, 1, *[0] * 7]
    model = RandomForestRegressor(8, ccp_alpha=20.0, monotonic_cst=signs, random_state=0).fit(X, y)
    assert assay.verify(model.certify(X, y), model, X, y).holds
    assert len(model.node_child_) < len(RandomForestRegressor(8, random_state=0).fit(X, y).node_child_)
    higher = X.copy()
    higher[:, 2] += 0.05
    assert (model.predict(higher) >= model.predict(X) - 1e-9).all()


def test_out_of_bag_score_by_a_function():
    model = RandomForestClassifier(40, oob_score=lambda y, said: f1_score(y, said, average="micro"), random_state=0)
    plain = RandomForestClassifier(40, oob_score=True, random_state=0).fit(*IRIS)
    assert model.fit(*IRIS).oob_score_ == pytest.approx(plain.oob_score_)
    with pytest.warns(UserWarning, match="Some inputs do not have OOB scores"):
        RandomForestClassifier(1, oob_score=True, random_state=0).fit(*IRIS)


@pytest.mark.parametrize("forest", REGRESSORS)
@pytest.mark.parametrize(("y", "words"), [([-1, 1, 3], "negative"), ([0, 0, 0], "not strictly positive")])
def test_poisson_refuses_targets_that_it_cannot_handle(forest, y, words):
    with pytest.raises(ValueError, match=words):
        forest(3, criterion="poisson").fit(np.eye(3), y)


def test_one_class_is_predicted():
    model = RandomForestClassifier(3, random_state=0).fit(IRIS[0], np.full(150, "a"))
    assert (model.predict(IRIS[0]) == "a").all()
    with pytest.raises(ValueError, match="two classes"):
        model.certify(IRIS[0], np.full(150, "a"))


def test_an_interrupt_keeps_the_trees_that_are_grown(monkeypatch):
    times, grown = RandomForestClassifier._times, []

    def interrupted(self, draw, seed, codes):
        if len(grown) == 3:
            raise KeyboardInterrupt
        grown.append(seed)
        return times(self, draw, seed, codes)

    monkeypatch.setattr(RandomForestClassifier, "_times", interrupted)
    model = RandomForestClassifier(10, n_jobs=1, random_state=0).fit(*IRIS)
    assert len(model) == len(model.seeds_) == 3
    monkeypatch.undo()
    assert np.array_equal(model.apply(IRIS[0]), RandomForestClassifier(3, random_state=0).fit(*IRIS).apply(IRIS[0]))


def test_what_does_not_go_together_is_refused():
    with pytest.raises(ValueError, match="bootstrap=True"):
        RandomForestClassifier(bootstrap=False, max_samples=0.5).fit(*IRIS)
    with pytest.raises(ValueError, match="only available if bootstrap=True"):
        RandomForestClassifier(bootstrap=False, oob_score=True).fit(*IRIS)
    with pytest.raises(ValueError, match="multiclass"):
        RandomForestClassifier(monotonic_cst=[1, 0, 0, 0]).fit(*IRIS)
