"""Bagging and random subspaces: votes by hand, scikit-learn, out-of-bag rows and their uses, time, refusals."""

import numpy as np
import pandas as pd
import pytest
from sklearn import ensemble as peer
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import assay
from assay.ensemble import BaggingClassifier, BaggingRegressor, RandomSubspaceClassifier, RandomSubspaceRegressor
from assay.tree import C45, DecisionTreeClassifier, DecisionTreeRegressor

IRIS, DIABETES, CANCER = (load(return_X_y=True) for load in (load_iris, load_diabetes, load_breast_cancer))


@pytest.mark.mission("ENS-30")
@pytest.mark.parametrize("base", [DecisionTreeClassifier(max_depth=2), LogisticRegression(max_iter=3000), GaussianNB()])
def test_one_member_without_bootstrap_is_the_base_learner(base):
    X, y = IRIS
    one = BaggingClassifier(base, 1, bootstrap=False).fit(X, y)
    assert one.predict_proba(X) == pytest.approx(base.fit(X, y).predict_proba(X), abs=1e-6)


@pytest.mark.mission("ENS-30")
@pytest.mark.parametrize("data", [IRIS, CANCER])
def test_accuracy_of_scikit_learn(data):
    X, y = data
    own, other = (
        np.mean([make(None, 30, random_state=s).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) for s in range(4)])
        for make in (BaggingClassifier, peer.BaggingClassifier)
    )
    assert own == pytest.approx(other, abs=0.02)


@pytest.mark.mission("ENS-31")
@pytest.mark.parametrize("base", [None, GaussianNB(), LinearSVC(), KNeighborsClassifier(3)])
@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_three_classes_are_the_vote_of_the_members_by_hand(base, voting):
    X, y = IRIS
    y = np.array(["setosa", "versicolor", "virginica"])[y]
    model = BaggingClassifier(base, 7, voting=voting, max_features=0.5, random_state=1).fit(X, y)
    shares = np.zeros((len(X), 3))
    for member, columns in zip(model.estimators_, model.estimators_features_):
        said = member.predict_proba(X[:, columns]) if voting == "soft" and hasattr(member, "predict_proba") else None
        if said is None:
            votes = member.predict(X[:, columns])
            votes = np.searchsorted(model.classes_, votes) if votes.dtype.kind in "UO" else votes
            said = np.eye(3)[votes]
        shares += said / 7
    assert model.predict_proba(X) == pytest.approx(shares, abs=1e-12)
    assert np.array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])


@pytest.mark.mission("ENS-31")
@pytest.mark.parametrize("base", [None, LinearRegression(), DecisionTreeRegressor(criterion="absolute_error")])
def test_regression_is_the_mean_of_the_members_by_hand(base):
    X, y = DIABETES
    model = BaggingRegressor(base, 6, max_features=0.6, random_state=1).fit(X, y)
    mean = np.mean([m.predict(X[:, c]) for m, c in zip(model.estimators_, model.estimators_features_)], axis=0)
    assert model.predict(X) == pytest.approx(mean, rel=1e-12)


def test_members_are_the_base_learner_on_their_samples():
    X, y = DIABETES
    model = BaggingRegressor(LinearRegression(), 4, max_samples=0.5, max_features=4, random_state=3).fit(X, y)
    for member, rows, columns in zip(model.estimators_, model.estimators_samples_, model.estimators_features_):
        assert (len(rows), len(columns), len(np.unique(columns))) == (len(y) // 2, 4, 4)
        again = LinearRegression().fit(X[np.ix_(rows, columns)], y[rows])
        assert member.coef_ == pytest.approx(again.coef_)
    distinct = BaggingRegressor(None, 4, max_samples=100, bootstrap=False, bootstrap_features=True).fit(X, y)
    assert all(len(np.unique(rows)) == 100 for rows in distinct.estimators_samples_)
    assert any(len(np.unique(columns)) < 10 for columns in distinct.estimators_features_)


def test_rows_are_drawn_by_their_weights():
    """A row of weight 0 is in no bag, and one of weight 3 as often as three rows."""
    X, y = IRIS
    weight = np.where(y == 0, 0.0, np.where(y == 1, 1.0, 3.0))
    for base in (None, GaussianNB(), KNeighborsClassifier()):
        model = BaggingClassifier(base, 60, random_state=0).fit(X, y, weight)
        drawn = model.bags().sum(axis=0)
        assert drawn[y == 0].sum() == 0
        assert drawn[y == 2].sum() / drawn[y == 1].sum() == pytest.approx(3.0, rel=0.1)
        assert model.predict_proba(X)[:, 0].max() == 0
        assert [len(rows) for rows in model.estimators_samples_] == [150] * 60
    assert BaggingClassifier(None, 2, max_samples=0.5).fit(X, y, weight).bag_size_ == int(0.5 * weight.sum())
    with pytest.warns(UserWarning, match="recommended to use bootstrap=True"):
        once = BaggingClassifier(None, 5, bootstrap=False, max_samples=60).fit(X, y, weight)
    assert once.bags().max() == 1


def test_members_that_take_weights_are_told_how_often_rows_were_drawn():
    seen = []

    class Told(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            seen.append(sample_weight)
            return super().fit(X, y, sample_weight)

    model = BaggingClassifier(Told(), 3, random_state=0, n_jobs=1).fit(*IRIS)
    assert np.array_equal(seen, model.bags())


def test_a_class_derived_from_a_tree_is_fitted_by_its_own_fit():
    class Mine(DecisionTreeRegressor):
        def fit(self, X, y):
            self.seen_ = y
            return super().fit(X, y)

    X, y = np.random.default_rng(0).normal(size=(13, 4)), np.arange(13.0)
    model = BaggingRegressor(Mine(), 2, random_state=0).fit(X, y)
    assert np.array_equal(model.estimators_[0].seen_, model.estimators_samples_[0])


def test_an_interrupt_keeps_the_members_that_are_fitted():
    fitted = []

    class Interrupted(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            if len(fitted) == 3:
                raise KeyboardInterrupt
            fitted.append(self)
            return super().fit(X, y, sample_weight)

    model = BaggingClassifier(Interrupted(), 10, random_state=0, n_jobs=1).fit(*IRIS)
    assert len(model) == 3
    assert model.score(*IRIS) > 0.9


def test_a_member_that_fails_is_named():
    class Broken(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            raise ValueError("no wind")

    with pytest.raises(ValueError, match=r"member 0 \(Broken\) failed: no wind"):
        BaggingClassifier(Broken(), 2).fit(*IRIS)


@pytest.mark.mission("ENS-33")
@pytest.mark.parametrize("base", [None, GaussianNB()])
def test_out_of_bag_quantities_by_hand(base):
    X, y = IRIS
    model = BaggingClassifier(base, 12, oob_score=True, random_state=0).fit(X, y)
    totals, votes, counted = np.zeros((150, 3)), np.zeros((150, 3)), np.zeros(150)
    for t, (member, rows) in enumerate(zip(model.estimators_, model.estimators_samples_)):
        for i in np.setdiff1d(np.arange(150), rows):
            said = member.predict_proba(X[i : i + 1])[0]
            totals[i] += said
            votes[i, said.argmax()] += 1
            counted[i] += 1
        seen = counted > 0
        wrong = totals[seen].argmax(axis=1) != y[seen]
        assert model.oob_errors_[t] == pytest.approx(wrong.mean())
    assert np.array_equal(model.oob_votes_, votes)
    assert model.oob_decision_function_[seen] == pytest.approx(totals[seen] / counted[seen, None])
    assert model.oob_score_ == pytest.approx(1 - wrong.mean())


def test_out_of_bag_prediction_of_numbers_is_scikit_learns_estimate():
    X, y = DIABETES
    own = np.mean([BaggingRegressor(None, 50, oob_score=True, random_state=s).fit(X, y).oob_score_ for s in range(3)])
    other = peer.BaggingRegressor(None, 150, oob_score=True, random_state=0).fit(X, y).oob_score_
    assert own == pytest.approx(other, abs=0.06)


# Uses of out-of-bag rows --------------------------------------------------------------------------------------


@pytest.mark.mission("ENS-34")
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_out_of_bag_pruning(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = X[:, 0] + rng.normal(size=300)
    make = BaggingRegressor
    if kind == "classes":
        y, make = (y > 0).astype(int), BaggingClassifier
    full = make(None, 8, random_state=0).fit(X, y)
    cut = make(None, 8, random_state=0, out_of_bag="prune").fit(X, y)
    for before, after, rows in zip(full.estimators_, cut.estimators_, cut.estimators_samples_):
        held = np.setdiff1d(np.arange(300), rows)
        assert after.get_n_leaves() < before.get_n_leaves()
        errors = [
            ((tree.predict(X[held]) != y[held]) if kind == "classes" else (tree.predict(X[held]) - y[held]) ** 2).sum()
            for tree in (before, after)
        ]
        assert errors[1] <= errors[0] + 1e-9


@pytest.mark.mission("ENS-34")
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_out_of_bag_pruning_is_optimal_among_subtrees(kind):
    """Reduced-error pruning finds the subtree with the least error: compare with every subtree of small trees."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    make, base = (BaggingClassifier, DecisionTreeClassifier(max_depth=3))
    if kind == "numbers":
        y, make, base = 10 + rng.normal(size=60), BaggingRegressor, DecisionTreeRegressor(max_depth=3)
    full = make(base, 5, random_state=0).fit(X, y)
    cut = make(base, 5, random_state=0, out_of_bag="prune").fit(X, y)

    def cost(said, inside):
        return (y[inside] != said).sum() if kind == "classes" else ((y[inside] - said) ** 2).sum()

    def best(nodes, at, inside):
        as_leaf = cost(nodes.value[at].argmax() if kind == "classes" else nodes.value[at, 0], inside)
        if nodes.child[at] < 0:
            return as_leaf
        left = X[inside, nodes.column[at]] <= nodes.threshold[at]
        below = (best(nodes, nodes.child[at] + v, inside[side]) for v, side in enumerate((left, ~left)))
        return min(as_leaf, sum(below))

    for before, after, rows in zip(full.estimators_, cut.estimators_, cut.estimators_samples_):
        held = np.setdiff1d(np.arange(60), rows)
        assert cost(after.predict(X[held]), held) == pytest.approx(best(before.nodes_, 0, held))


@pytest.mark.mission("ENS-35")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_networks_stop_at_their_best_out_of_bag_epoch(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    if kind == "classes":
        y, make, network = (X[:, 0] + rng.normal(size=120) > 0).astype(int), BaggingClassifier, MLPClassifier
    else:
        y, make, network = X[:, 0] + rng.normal(size=120), BaggingRegressor, MLPRegressor
    base = network(hidden_layer_sizes=(20,), learning_rate_init=0.02, random_state=0)
    model = make(base, 3, out_of_bag="stop", max_epochs=60, patience=15, random_state=0).fit(X, y)
    for member, rows, errors in zip(model.estimators_, model.estimators_samples_, model.epoch_errors_):
        held = np.setdiff1d(np.arange(120), rows)
        said = member.predict(X[held])
        error = (said != y[held]).mean() if kind == "classes" else ((said - y[held]) ** 2).mean()
        assert error == errors.min()  # the best epoch is restored
        best = int(errors.argmin()) + 1
        assert len(errors) == min(60, best + 15)
        again = network(hidden_layer_sizes=(20,), learning_rate_init=0.02, random_state=member.random_state)
        for epoch in range(best):
            first = {"classes": [0, 1]} if kind == "classes" and epoch == 0 else {}
            again.partial_fit(X[rows], y[rows], **first)
        assert all(np.array_equal(a, b) for a, b in zip(member.coefs_, again.coefs_))


class Slow(ClassifierMixin, BaseEstimator):
    """A majority that takes a time proportional to the rows, by a clock of its own."""

    now = 0.0

    def __init__(self, per_row=1e-4):
        self.per_row = per_row

    def fit(self, X, y):
        Slow.now += self.per_row * len(X)
        self.classes_ = np.unique(y)
        self.most_ = np.bincount(y).argmax()
        return self

    def predict(self, X):
        return np.full(len(X), self.most_)


@pytest.mark.mission("ENS-36")
def test_time_grows_with_the_number_of_members_and_the_time_of_one(monkeypatch):
    X, y = IRIS
    monkeypatch.setattr("time.perf_counter", lambda: Slow.now)

    def seconds(members, rows):
        model = BaggingClassifier(Slow(), members, max_samples=rows, n_jobs=1, random_state=0).fit(X, y)
        assert len(model.member_seconds_) == members
        assert model.member_seconds_.sum() == pytest.approx(model.history_[-1].seconds)
        return model.member_seconds_.sum()

    few, many, small = seconds(4, 150), seconds(16, 150), seconds(16, 75)
    assert many / few == pytest.approx(4)
    assert many / small == pytest.approx(2)


# Random subspaces, trees, warm starts ---------------------------------------------------------------------------


@pytest.mark.mission("ENS-67")
def test_random_subspaces():
    X, y = CANCER
    stump = DecisionTreeClassifier(max_depth=1)  # deeper down, which of two equal splits is taken depends on the seed
    whole = RandomSubspaceClassifier(stump, 4, max_features=30, random_state=0).fit(X, y)
    tree = DecisionTreeClassifier(max_depth=1).fit(X, y)
    assert all(np.array_equal(member.nodes_.threshold, tree.nodes_.threshold) for member in whole.estimators_)
    model = RandomSubspaceClassifier(None, 12, max_features=5, random_state=0).fit(X, y)
    roots = np.append(model.nodes_.root, len(model.nodes_.child))
    for t, columns in enumerate(model.estimators_features_):
        used = model.nodes_.column[roots[t] : roots[t + 1]]
        assert len(columns) == 5
        assert set(used[used >= 0]) <= set(columns)
    numbers = RandomSubspaceRegressor(LinearRegression(), 3, max_features=2, random_state=0).fit(*DIABETES)
    changed = DIABETES[0].copy()
    unused = np.setdiff1d(np.arange(10), np.concatenate(numbers.estimators_features_))
    changed[:, unused] = 99.0
    assert len(unused) > 0
    assert np.array_equal(numbers.predict(changed), numbers.predict(DIABETES[0]))


def test_warm_start_is_a_fit_of_all_members():
    X, y = CANCER
    grown = BaggingClassifier(None, 4, warm_start=True, oob_score=True, random_state=0).fit(X, y)
    first = grown.estimators_[0]
    grown.set_params(n_estimators=10).fit(X, y)
    fresh = BaggingClassifier(None, 10, oob_score=True, random_state=0).fit(X, y)
    assert np.array_equal(grown.estimators_[0].node_threshold_, first.node_threshold_)
    assert np.array_equal(grown.predict_proba(X), fresh.predict_proba(X))
    assert np.array_equal(grown.oob_votes_, fresh.oob_votes_)
    with pytest.warns(UserWarning, match="does not fit new"):
        grown.fit(X, y)
    with pytest.raises(ValueError, match="larger or equal to len"):
        grown.set_params(n_estimators=3).fit(X, y)
    with pytest.raises(ValueError, match="fitted to 569 rows"):
        grown.set_params(n_estimators=12).fit(X[:500], y[:500])
    with pytest.raises(ValueError, match="classes are not those"):
        grown.fit(X, y + 1)


def test_nominal_columns_and_missing_values_with_trees():
    rng = np.random.default_rng(0)
    colour, number = rng.choice(["red", "green", "blue"], 200), rng.normal(size=200)
    number[::9] = np.nan
    frame = pd.DataFrame({"colour": colour, "number": number})
    y = np.where(colour == "red", "warm", "cold")
    model = BaggingClassifier(C45(), 5, oob_score=True, random_state=0).fit(frame, y)
    assert model.oob_score_ == 1.0
    assert (model.predict(frame) == y).all()
    with pytest.raises(ValueError, match=r"\(GaussianNB\) failed"):
        BaggingClassifier(GaussianNB(), 2).fit(frame, y)


def test_pipelines_are_base_learners():
    X, y = CANCER
    base = make_pipeline(StandardScaler(), LogisticRegression())
    assert BaggingClassifier(base, 5, random_state=0).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.95


def test_a_sample_of_one_class_votes_for_it():
    X, y = np.arange(20.0)[:, None], np.array([0] * 19 + [1])
    model = BaggingClassifier(GaussianNB(), 30, random_state=0).fit(X, y)
    lonely = [t for t, rows in enumerate(model.estimators_samples_) if 19 not in rows]
    assert lonely
    assert all((model.estimators_[t].predict(X) == 0).all() for t in lonely)


def test_threads_change_no_member():
    X, y = CANCER
    one, three = (BaggingClassifier(None, 9, random_state=5, n_jobs=k).fit(X, y) for k in (1, 3))
    assert all(np.array_equal(one.trees_[name], three.trees_[name]) for name in one.trees_)


def test_certificates_are_about_trees(tmp_path):
    X, y = IRIS
    model = RandomSubspaceClassifier(None, 5, max_features=2, random_state=0).fit(X, y)
    certificate = model.certify(X, y)
    assert assay.verify(certificate, model, X, y).holds
    assay.save(model, tmp_path / "bag.assay", certificate)
    again = assay.load(tmp_path / "bag.assay").model
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert assay.verify(certificate, again, X, y).holds
    again.node_value_[-1] = again.node_value_[-1][::-1]
    assert not assay.verify(certificate, again, X, y).holds
    with pytest.raises(ValueError, match="not re-run"):
        BaggingClassifier(GaussianNB(), 2).fit(X, y).certify(X, y)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"estimator": LinearRegression()}, "must be a classifier"),
        ({"n_estimators": 0}, "n_estimators must be an integer >= 1"),
        ({"max_samples": 200, "bootstrap": False}, "without replacement"),
        ({"oob_score": True, "bootstrap": False}, "Out of bag estimation"),
        ({"out_of_bag": "prune", "estimator": GaussianNB()}, "needs a tree"),
        ({"out_of_bag": "stop"}, "needs a learner with partial_fit"),
        ({"max_features": "most"}, "max_features must be"),
        ({"voting": "loud"}, "voting must be one of"),
        ({"bootstrap": 1}, "bootstrap must be one of True, False"),
    ],
)
def test_refusals(change, words):
    with pytest.raises(ValueError, match=words):
        BaggingClassifier(**{"n_estimators": 3, **change}).fit(*IRIS)
