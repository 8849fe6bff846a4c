"""What makes members differ: samples, labels, parameters; and which ensembles may fit their members side by side."""

import itertools

import numpy as np
import pytest
from scipy.stats import randint
from sklearn.base import is_classifier
from sklearn.datasets import load_breast_cancer, load_iris

import assay
from assay.ensemble import BaggingClassifier, BaggingRegressor
from assay.linear_model import LinearRegression, LogisticRegression, Ridge
from assay.metrics.diversity import pairwise
from assay.registry import kinds
from assay.theory.stability import measured_stability
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.contract.test_contract import example, fitted, small

X, Y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
ENSEMBLES = [one for one in assay.learners() if one.card.ensemble]


@pytest.mark.mission("ENS-65")
def test_trees_on_samples_differ_and_linear_members_hardly():
    trees = BaggingClassifier(DecisionTreeClassifier(), 8, random_state=0).fit(X[:300], Y[:300])
    lines = BaggingClassifier(LogisticRegression(), 8, random_state=0).fit(X[:300], Y[:300])
    far, near = (pairwise(model, X[300:]).means["disagreement"] for model in (trees, lines))
    assert far > 2 * near
    said = [one.predict(X[300:]) for one in lines.estimators_]
    assert near == pytest.approx(np.mean([np.mean(a != b) for a, b in itertools.combinations(said, 2)]))


@pytest.mark.mission("ENS-66")
def test_a_tree_is_less_stable_than_ridge():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 3))
    y = A[:, 0] + 0.5 * rng.normal(size=60)
    tree, ridge = (
        measured_stability(one, A, y, lambda y, said: np.abs(y - said), rows=range(30))
        for one in (DecisionTreeRegressor(), Ridge())
    )
    assert tree.removal > 3 * ridge.removal
    found = measured_stability(LinearRegression(fit_intercept=False), A, y, lambda y, said: np.abs(y - said))

    def errors(rows):
        return np.abs(y - A @ np.linalg.lstsq(A[rows], y[rows], rcond=None)[0])

    own = np.arange(60)
    without = [np.abs(errors(np.delete(own, i)) - errors(own)) for i in own]
    twice = [np.abs(errors(np.r_[np.delete(own, i), (i + 1) % 60]) - errors(own)) for i in own]
    assert found.removal == pytest.approx(np.max(without))
    assert found.replacement == pytest.approx(np.max(twice))
    leverage = np.einsum("ij,ij->i", A @ np.linalg.inv(A.T @ A), A)
    assert found.own == pytest.approx(np.max(errors(own) * leverage / (1 - leverage)))


@pytest.mark.mission("ENS-68")
class TestFlippedLabels:
    @pytest.mark.parametrize("share", [0.1, 0.25])
    def test_exactly_the_share_is_flipped_and_the_same_for_a_seed(self, share):
        model = BaggingClassifier(n_estimators=4, flip_labels=share, bootstrap=False, random_state=0).fit(X, Y)
        again = BaggingClassifier(n_estimators=4, flip_labels=share, bootstrap=False, random_state=0).fit(X, Y)
        assert np.array_equal(model.predict_proba(X), again.predict_proba(X))
        for member in model.estimators_:  # a full tree says what it was told
            assert np.sum(member.predict(X) != Y) == round(share * len(Y))
        flips = np.array([one.predict(X) != Y for one in model.estimators_])
        assert len(np.unique(flips, axis=0)) == 4

    def test_none_is_the_base_learner(self):
        model = BaggingClassifier(LogisticRegression(), 2, bootstrap=False, flip_labels=0.0, random_state=0).fit(X, Y)
        assert np.array_equal(model.predict(X), LogisticRegression().fit(X, Y).predict(X))

    def test_many_classes_get_another_label(self):
        A, y = load_iris(return_X_y=True)
        A = A + 1e-4 * np.random.default_rng(0).normal(size=A.shape)  # no two rows alike
        model = BaggingClassifier(n_estimators=3, flip_labels=0.2, bootstrap=False, random_state=0).fit(A, y)
        assert all(np.sum(one.predict(A) != y) == 30 for one in model.estimators_)

    def test_a_vote_is_better_than_its_members_on_flipped_labels(self):
        model = BaggingClassifier(n_estimators=25, flip_labels=0.2, random_state=0).fit(X[:400], Y[:400])
        alone = np.mean([one.score(X[400:], Y[400:]) for one in model.estimators_])
        assert model.score(X[400:], Y[400:]) > alone + 0.1

    @pytest.mark.parametrize("share", [-0.1, 1.0, "half"])
    def test_refusals(self, share):
        with pytest.raises(ValueError, match="flip_labels must be"):
            BaggingClassifier(flip_labels=share).fit(X, Y)


@pytest.mark.mission("ENS-70")
class TestDrawnParameters:
    @pytest.mark.parametrize(
        ("base", "given"),
        [
            (DecisionTreeClassifier(), {"max_depth": randint(1, 9), "criterion": ["gini", "entropy"]}),
            (LogisticRegression(), {"C": [0.001, 0.01, 0.1, 1.0]}),
        ],
        ids=["trees", "lines"],
    )
    def test_members_have_their_own_and_the_vote_works(self, base, given):
        model = BaggingClassifier(base, 8, parameters=given, random_state=0).fit(X, Y)
        drawn = model.estimator_params_
        assert all(set(one) == set(given) for one in drawn)
        assert len({str(one) for one in drawn}) > 2
        assert model.score(X, Y) > 0.9
        if isinstance(base, LogisticRegression):
            assert [one.C for one in model.estimators_] == [one["C"] for one in drawn]
        else:
            assert all(one.get_depth() <= told["max_depth"] for one, told in zip(model.estimators_, drawn))
        again = BaggingClassifier(base, 8, parameters=given, random_state=0, n_jobs=3).fit(X, Y)
        assert np.array_equal(model.predict_proba(X), again.predict_proba(X))

    def test_certificates_of_such_trees_hold(self):
        model = BaggingClassifier(n_estimators=6, parameters={"max_depth": [2, 4]}, flip_labels=0.1, random_state=0)
        model.fit(X, Y)
        assert assay.verify(model.certify(X, Y), model, X, Y).holds

    def test_regressors(self):
        model = BaggingRegressor(Ridge(), 5, parameters={"alpha": [0.1, 10.0]}, random_state=0).fit(X, X[:, 0])
        assert {one.alpha for one in model.estimators_} == {0.1, 10.0}

    @pytest.mark.parametrize("given", [{"depth": [1]}, {"max_depth": 3}, {"max_depth": []}, [1]])
    def test_refusals(self, given):
        with pytest.raises(ValueError, match="parameters"):
            BaggingClassifier(parameters=given).fit(X, Y)


@pytest.mark.mission("ENS-05")
class TestSerialOrParallel:
    def test_every_ensemble_is_one_of_the_two(self):
        told = {one.__name__: kinds(one) & {"serial", "parallel"} for one in ENSEMBLES}
        assert all(len(one) == 1 for one in told.values())
        assert told["AdaBoostClassifier"] == told["HistGradientBoostingRegressor"] == {"serial"}
        assert told["RandomForestClassifier"] == told["VotingClassifier"] == told["StackingRegressor"] == {"parallel"}
        rooms = {one.__name__ for one in assay.learners() if one.__module__.startswith("assay.ensemble.")}
        assert rooms - set(told) == {"LogTargetRegressor"}  # one regressor, of the logarithm
        assert not kinds(LinearRegression) & {"serial", "parallel"}

    @pytest.mark.parametrize("kind", [one for one in ENSEMBLES if one.card.ensemble == "parallel"])
    def test_parallel_ones_have_threads_which_change_no_bit(self, kind):
        model = example(kind)
        A, y = small(model)
        assert "n_jobs" in model.get_params()
        one, three = (fitted(model.set_params(n_jobs=k), A, y) for k in (1, 3))
        assert np.array_equal(one.predict(A), three.predict(A))
        if is_classifier(one) and hasattr(one, "predict_proba"):
            assert np.array_equal(one.predict_proba(A), three.predict_proba(A))
