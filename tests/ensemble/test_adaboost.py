"""AdaBoost: Li's example, every identity of the notes, scikit-learn's sequence, brute force, certificates."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import AdaBoostClassifier as Peer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier as PeerTree

import assay
from assay.ensemble import AdaBoostClassifier
from assay.losses import exponential

LI = np.arange(10.0)[:, None], np.array([1, 1, 1, -1, -1, -1, 1, 1, 1, -1])


def cancer(rounds=25, **more):
    X, y = load_breast_cancer(return_X_y=True)
    return X, y, AdaBoostClassifier(n_estimators=rounds, **more).fit(X, y)


@pytest.mark.mission("ENS-07", "ENS-08")
def test_example_of_li():
    model = AdaBoostClassifier(n_estimators=3, stump="error").fit(*LI)
    assert model.nodes_.threshold[model.nodes_.child >= 0] == pytest.approx([2.5, 8.5, 5.5])
    assert model.estimator_weights_ == pytest.approx([0.4236, 0.6496, 0.7520], abs=5e-5)
    assert model.estimator_errors_ == pytest.approx([0.3, 0.2143, 0.1818], abs=5e-5)
    assert model.score(*LI) == 1.0


@pytest.mark.mission("ENS-09", "ENS-17", "ENS-14")
def test_weight_of_a_classifier_minimises_the_loss():
    model = cancer()[2]
    for error, alpha, z in zip(model.estimator_errors_, model.estimator_weights_, model.normalisers_):
        found = minimize_scalar(lambda a, e=error: np.exp(-a) * (1 - e) + np.exp(a) * e, bracket=(0.1, 1.0))
        assert found.x == pytest.approx(alpha, abs=1e-5)
        assert z == pytest.approx(2 * np.sqrt(error * (1 - error)))
        assert alpha == pytest.approx(-0.5 * np.log(error / (1 - error)))
    assert (np.diff(np.cumprod(model.normalisers_)) < 0).all()


class Wrong(ClassifierMixin, BaseEstimator):
    """Is wrong on the first `rows` rows of X = 0, 1, 2, ... and right on the others; labels are x odd."""

    def __init__(self, rows=0):
        self.rows = rows

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        x = X[:, 0].astype(int)
        return np.where(x < self.rows, 1 - x % 2, x % 2)


@pytest.mark.mission("ENS-09")
def test_weight_of_a_classifier_is_odd_and_falling_in_its_error():
    X = np.arange(20.0)[:, None]
    y = X[:, 0].astype(int) % 2
    alphas = {}
    for wrong in range(1, 20):
        model = AdaBoostClassifier(Wrong(wrong), n_estimators=1).fit(X, y)
        assert model.estimator_errors_[0] == pytest.approx(wrong / 20)
        alphas[wrong] = model.estimator_weights_[0]
        assert alphas[wrong] == pytest.approx(0.5 * np.log((20 - wrong) / wrong), abs=1e-12)
        if wrong < 10:
            peer = Peer(Wrong(wrong), n_estimators=1).fit(X, y)
            assert 2 * alphas[wrong] == pytest.approx(peer.estimator_weights_[0])
    assert alphas[10] == pytest.approx(0.0, abs=1e-12)
    assert all(alphas[k] == pytest.approx(-alphas[20 - k], abs=1e-12) for k in alphas)
    assert (np.diff(list(alphas.values())) < 0).all()


@pytest.mark.mission("ENS-20", "ENS-13")
def test_training_error_is_below_the_product():
    X, y, model = cancer()
    sign = 2 * y - 1
    f = model.decision_function(X) * model.estimator_weights_.sum() / 2
    by_hand = sum(a * (2 * v - 1) for a, v in zip(model.estimator_weights_, model._all_votes(X)))
    assert f == pytest.approx(by_hand)
    product = np.prod(model.normalisers_)
    assert np.exp(-sign * f).mean() == pytest.approx(product, rel=1e-12)
    assert 1 - model.score(X, y) <= product <= np.exp(-2 * (model.edges_**2).sum())
    assert product <= model.certify(X, y).find("adaboost.product").value <= product * (1 + 1e-6)


@pytest.mark.mission("ENS-11", "ENS-12", "ENS-19")
def test_weights():
    X, y, model = cancer(rounds=1)
    weight = model.sample_weights_
    right = model.predict(X) == y
    assert weight.sum() == pytest.approx(1.0)
    assert weight[~right].sum() == pytest.approx(0.5)  # the last member is no better than chance under the new weights
    assert weight[~right][0] / weight[right][0] == pytest.approx(np.exp(2 * model.estimator_weights_[0]))
    X, y, model = cancer(rounds=12)
    direct = np.exp(-(2 * y - 1) * model.decision_function(X) * model.estimator_weights_.sum() / 2)
    assert model.sample_weights_ == pytest.approx(direct / direct.sum())


@pytest.mark.mission("ENS-10")
def test_perfect_and_useless_members():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    perfect = AdaBoostClassifier(n_estimators=9).fit(X, [0, 0, 1, 1])
    assert len(perfect.estimator_weights_) == 1
    assert np.isfinite(perfect.estimator_weights_).all()
    assert perfect.score(X, [0, 0, 1, 1]) == 1.0


class Liar(PeerTree):
    """Predicts the other class."""

    def predict(self, X):
        return 1 - super().predict(X)


@pytest.mark.mission("ENS-10")
def test_a_member_that_is_always_wrong_is_turned_round():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = AdaBoostClassifier(Liar(), n_estimators=1).fit(X, [0, 0, 1, 1])
    assert model.estimator_weights_[0] < 0
    assert model.score(X, [0, 0, 1, 1]) == 1.0


@pytest.mark.mission("ENS-21")
def test_the_fit_stops_when_no_member_beats_chance():
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    model = AdaBoostClassifier(n_estimators=20).fit(X, [0, 1, 0, 1])
    assert len(model.estimator_weights_) <= 1
    X = np.arange(10.0)[:, None]
    model = AdaBoostClassifier(Wrong(4), n_estimators=20).fit(
        X, np.arange(10) % 2
    )  # its weights make the second no better
    assert model.estimator_errors_ == pytest.approx([0.4])
    assert model.estimator_weights_ == pytest.approx([0.5 * np.log(1.5)])
    assert model.sample_weights_ == pytest.approx(np.repeat([0.125, 1 / 12], [4, 6]))
    assert model.margins_.tolist() == [-1.0] * 4 + [1.0] * 6
    assert len(AdaBoostClassifier(Wrong(0), n_estimators=20).fit(X, np.arange(10) % 2).estimator_weights_) == 1
    assert [len(AdaBoostClassifier(n_estimators=n).fit(*LI).estimator_weights_) for n in (1, 2, 4)] == [1, 2, 4]


@pytest.mark.mission("ENS-24")
@pytest.mark.parametrize("n", [30, 500])
@pytest.mark.parametrize("seed", range(5))
def test_stump_is_the_best_of_all(seed, n):
    rng = np.random.default_rng(seed)
    X, y, weight = np.round(rng.normal(size=(n, 3)), 2), rng.integers(0, 2, n), rng.uniform(0.1, 1, n)
    weight /= weight.sum()
    model = AdaBoostClassifier(n_estimators=1, stump="error").fit(X, y, weight)
    errors = [
        weight[(X[:, f] > t) ^ flip != y].sum() for f in range(3) for t in np.unique(X[:, f]) for flip in (False, True)
    ]
    assert model.estimator_errors_[0] == pytest.approx(min(errors))
    wrong = model.predict(X) != y
    assert weight[wrong].sum() == pytest.approx(min(errors))
    assert model.sample_weights_[wrong].sum() == pytest.approx(0.5) == model.sample_weights_[~wrong].sum()
    assert np.sum(model.nodes_.child >= 0) == 1


@pytest.mark.mission("ENS-07", "ENS-09", "ENS-25")
@pytest.mark.parametrize("data", [load_breast_cancer, load_iris])
def test_sequence_of_scikit_learn(data):
    X, y = data(return_X_y=True)
    own, other = (
        AdaBoostClassifier(n_estimators=15).fit(X, y),
        Peer(n_estimators=15, random_state=0).fit(X, y),
    )
    assert 2 * own.estimator_weights_ == pytest.approx(other.estimator_weights_)  # SAMME's weight is twice alpha
    assert own.estimator_errors_ == pytest.approx(other.estimator_errors_)
    assert np.array_equal(own.predict(X), other.predict(X))
    assert own.decision_function(X) == pytest.approx(other.decision_function(X))
    assert own.predict_proba(X) == pytest.approx(other.predict_proba(X))
    for one, two in zip(own.staged_predict_proba(X), other.staged_predict_proba(X), strict=True):
        assert one == pytest.approx(two)
    assert list(own.staged_score(X, y)) == pytest.approx(list(other.staged_score(X, y)))
    if data is load_breast_cancer:  # two columns of the flowers split alike, and scikit-learn draws one of them
        assert own.feature_importances_ == pytest.approx(other.feature_importances_, abs=1e-9)
    assert len(own) == len(own.estimators_) == 15
    assert own[3].get_depth() == 1
    order = np.argsort(own.estimator_errors_)
    assert (np.diff(own.estimator_weights_[order]) <= 1e-12).all()


@pytest.mark.mission("ENS-07", "ENS-25")
def test_stumps_are_those_of_scikit_learn_round_by_round():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 6))
    X[:, 4:] = np.round(2 * X[:, 4:])
    y = (X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * X[:, 4] + rng.normal(size=4_000) > 0).astype(int)
    own, other = AdaBoostClassifier(n_estimators=60).fit(X, y), Peer(n_estimators=60, random_state=0).fit(X, y)
    nodes = own.nodes_
    assert len(nodes.root) == len(other.estimators_) == 60
    for root, member in zip(nodes.root, other.estimators_):
        tree = member.tree_
        assert nodes.column[root] == tree.feature[0]
        column = X[:, tree.feature[0]]
        assert np.array_equal(column <= nodes.threshold[root], column.astype(np.float32) <= tree.threshold[0])
        for side in (0, 1):
            assert nodes.value[nodes.child[root] + side] == pytest.approx(tree.value[1 + side, 0], abs=1e-9)


@pytest.mark.mission("ENS-06")
@pytest.mark.parametrize("base", [None, PeerTree(max_depth=2), LogisticRegression(max_iter=5000), GaussianNB()])
def test_any_base_learner(base):
    X, y = load_iris(return_X_y=True)
    assert AdaBoostClassifier(base, n_estimators=8).fit(X, y).score(X, y) > 0.85


@pytest.mark.mission("ENS-22")
def test_integer_weights_are_repeated_rows():
    rng = np.random.default_rng(0)
    X, y = load_breast_cancer(return_X_y=True)
    times = rng.integers(1, 4, len(y))
    weighted = AdaBoostClassifier(n_estimators=10).fit(X, y, times)
    repeated = AdaBoostClassifier(n_estimators=10).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.estimator_weights_ == pytest.approx(repeated.estimator_weights_)
    assert np.array_equal(weighted.nodes_.threshold, repeated.nodes_.threshold)


@pytest.mark.mission("ENS-23")
def test_resampling():
    X, y = load_breast_cancer(return_X_y=True)
    one, two = (AdaBoostClassifier(n_estimators=12, how="resample", random_state=4).fit(X, y) for _ in range(2))
    assert len(one.estimator_weights_) == 12
    assert np.array_equal(one.estimator_weights_, two.estimator_weights_)
    neighbours = AdaBoostClassifier(KNeighborsClassifier(), n_estimators=3, how="resample", random_state=0).fit(X, y)
    assert neighbours.score(X, y) > 0.9
    with pytest.raises(ValueError, match="resample"):
        AdaBoostClassifier(KNeighborsClassifier()).fit(X, y)


@pytest.mark.mission("ENS-23")
@pytest.mark.parametrize("failing", [{3}, {1, 2}, {2, 5, 6}])
def test_a_round_that_fails_is_drawn_again(failing):
    """A learner that is worse than chance on some draws: the round is drawn again, and all rounds are run."""
    X, y = load_breast_cancer(return_X_y=True)
    fits = []

    class Moody(KNeighborsClassifier):
        def fit(self, X, y):
            fits.append(np.bincount(np.searchsorted(np.unique(y), y)))
            self.fails_ = len(fits) in failing
            return super().fit(X, y)

        def predict(self, X):
            right = super().predict(X)
            return 1 - right if self.fails_ else right

    model = AdaBoostClassifier(Moody(3), n_estimators=6, how="resample", random_state=0).fit(X, y)
    assert len(model.estimator_weights_) == 6
    assert len(fits) == 6 + len(failing)
    assert not any(member.fails_ for member in model.members_)
    assert max(model.estimator_errors_) < 0.5
    fits.clear()
    again = AdaBoostClassifier(Moody(3), n_estimators=6, how="resample", random_state=0).fit(X, y)
    assert np.array_equal(again.estimator_weights_, model.estimator_weights_)


@pytest.mark.mission("ENS-15", "ENS-16", "ENS-18")
def test_exponential_loss_view():
    X = np.repeat([0.0, 1.0], 10)[:, None]
    for wins in (6, 7, 9):
        p, rows = wins / 10, np.arange(10)
        model = AdaBoostClassifier(n_estimators=1).fit(X, np.r_[rows >= wins, rows < wins].astype(int))
        found = minimize_scalar(lambda h, p=p: p * exponential.value(1, h) + (1 - p) * exponential.value(-1, h))
        assert model.estimator_weights_[0] == pytest.approx(found.x, abs=1e-6)
        assert found.x == pytest.approx(0.5 * np.log(p / (1 - p)), abs=1e-6)
        slope = p * exponential.slope(1, found.x) + (1 - p) * exponential.slope(-1, found.x)
        assert slope == pytest.approx(0, abs=1e-6)
        assert model.predict([[0.0], [1.0]]).tolist() == [0, 1]  # what is likelier
        assert model.predict_proba([[0.0], [1.0]])[:, 1] == pytest.approx(expit([-2.0, 2.0]))  # all votes agree
    model = AdaBoostClassifier(n_estimators=3, stump="error").fit(*LI)
    vote = 0.4236 * np.where(LI[0] < 2.5, 1, -1) + 0.6496 * np.where(LI[0] < 8.5, 1, -1)
    vote += 0.7520 * np.where(LI[0] > 5.5, 1, -1)
    assert model.predict_proba(LI[0])[:, 1] == pytest.approx(expit(2 * vote[:, 0] / 1.8252), abs=1e-4)
    share, cuts = np.full(10, 0.1), np.arange(-0.5, 10)
    for error, alpha in zip(model.estimator_errors_, model.estimator_weights_):
        stumps = [sign * np.where(LI[0][:, 0] < cut, 1, -1) for cut in cuts for sign in (1, -1)]
        errors = [share @ (stump != LI[1]) for stump in stumps]
        assert error == pytest.approx(min(errors))
        share = share * exponential.value(LI[1], alpha * stumps[int(np.argmin(errors))])
        share /= share.sum()
    for f in (-1, 1):
        for h in (-1, 1):
            assert np.exp(-f * h) == pytest.approx(np.cosh(1) - f * h * np.sinh(1))
    rng = np.random.default_rng(0)
    weight, y = rng.dirichlet(np.ones(20)), rng.choice([-1, 1], 20)
    members = rng.choice([-1, 1], (50, 20))
    assert (members * y @ weight).argmax() == ((members != y) @ weight).argmin()


def test_certificate_of_the_product():
    X, y, model = cancer()
    honest = model.certify(X, y)
    assert assay.verify(honest, model, X, y).holds
    claim = honest.find("adaboost.product")
    for forged in (replace(claim, value=0.9 * claim.value), replace(claim, params={"rounds": 3})):
        others = tuple(forged if one is claim else one for one in honest.claims)
        assert not assay.verify(replace(honest, claims=others), model, X, y).holds
    model.estimator_weights_[2] *= 1.5
    assert not assay.verify(honest, model, X, y).holds


def test_other_base_learners_are_not_certified():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="votes of stumps"):
        AdaBoostClassifier(GaussianNB(), n_estimators=2).fit(X, y).certify(X, y)


def test_stumps_of_adaboost_are_made_of_the_arrays():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(200, 4)), 2)
    y = (X[:, 0] + X[:, 3] + 0.3 * rng.normal(size=200) > 1).astype(np.int64)
    model = AdaBoostClassifier(n_estimators=8).fit(X, y)
    votes = sum(a * (2.0 * m.predict(X) - 1) for a, m in zip(model.estimator_weights_, model.estimators_, strict=True))
    assert votes == pytest.approx(model.decision_function(X) * model.estimator_weights_.sum() / 2)
    model.node_value_[:] = model.node_value_[:, ::-1]
    assert not np.array_equal(np.sign(votes), np.sign(sum(m.predict(X) - 0.5 for m in model.estimators_)))
