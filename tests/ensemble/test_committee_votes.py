"""Committees of any learners: hand examples, enumeration, scikit-learn, identities; certificates and forgeries."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import beta
from sklearn import ensemble as peer
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression as PeerLogistic
from sklearn.naive_bayes import GaussianNB

import assay
from assay.discriminant_analysis import LinearDiscriminantAnalysis
from assay.ensemble import VotingClassifier, VotingRegressor
from assay.ensemble._combined import MemberError
from assay.ensemble._named_members import chosen_weights, learnt_weights, squared_error
from assay.linear_model import LinearRegression, LogisticRegression, Ridge
from assay.neighbors import KNeighborsClassifier
from assay.persist import ModelFileError
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor

X, Y = load_iris(return_X_y=True)
CUT = np.random.default_rng(0).permutation(150)
X, Y = X[CUT], Y[CUT]
MEMBERS = [
    ("linear", LogisticRegression()),
    ("tree", DecisionTreeClassifier(max_depth=2, random_state=0)),
    ("near", KNeighborsClassifier()),
    ("discriminant", LinearDiscriminantAnalysis()),
]
NUMBERS = [("line", LinearRegression()), ("ridge", Ridge(5.0)), ("tree", DecisionTreeRegressor(max_depth=3))]


class Says(ClassifierMixin, BaseEstimator):
    """A classifier that says what stands in a column."""

    def __init__(self, column=0):
        self.column = column

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.asarray(X)[:, self.column].astype(int)


class Breaks(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        raise RuntimeError("no ink left")

    def predict(self, X):
        return np.zeros(len(X))


def of_columns(T, **parameters):
    """Return a committee whose member t says column t; classes are 0, 1, 2."""
    model = VotingClassifier([(f"m{t}", Says(t)) for t in range(T)], **parameters)
    return model.fit(np.resize([0, 1, 2], (6, T)), np.resize([0, 1, 2], 6))


@pytest.mark.mission("ENS-01")
def test_members_of_one_kind_and_of_several():
    mixed = VotingClassifier(MEMBERS).fit(X, Y)
    assert mixed.member_kinds_["near"] == "KNeighborsClassifier"
    assert not mixed.homogeneous_
    votes = np.stack([clone(member).fit(X, Y).predict(X) for _, member in MEMBERS])
    counts = (votes[:, :, None] == np.unique(Y)).sum(axis=0)
    assert np.array_equal(counts[np.arange(len(X)), mixed.predict(X)], counts.max(axis=1))
    alike = VotingClassifier([(f"C{C:g}", LogisticRegression(C=C)) for C in (0.1, 1.0)]).fit(X, Y)
    assert alike.homogeneous_


@pytest.mark.mission("ENS-02", "ENS-49", "ENS-50", "ENS-51")
class TestSmallVotes:
    def test_every_vote_of_four_members_and_three_classes(self):
        rows = np.array(list(product(range(3), repeat=4)))
        plural, major = of_columns(4, random_state=3), of_columns(4, rule="majority", reject_label=9)
        for row, one, two in zip(rows, plural.predict(rows), major.predict(rows)):
            counts = np.bincount(row, minlength=3)
            assert counts[one] == counts.max()
            assert two == (counts.argmax() if counts.max() > 2 else 9)

    def test_three_way_split_is_rejected(self):
        model = of_columns(3, rule="majority")
        row = [[0, 1, 2], [0, 0, 1]]
        assert model.predict(row).tolist() == [-1, 0]
        assert model.rejected(row).tolist() == [True, False]
        assert model.coverage(row) == 0.5
        assert model.score(row, [0, 0]) == 0.5

    def test_weights_decide_as_their_sum_says(self):
        rows, weights = np.array(list(product(range(3), repeat=3))), np.array([3.0, 2.0, 1.5])
        model = of_columns(3, weights=weights)
        for row, said in zip(rows, model.predict(rows)):
            total = np.bincount(row, weights=weights, minlength=3)
            assert total[said] == total.max()
        assert model.weights_.sum() == pytest.approx(1)
        assert np.array_equal(of_columns(3, weights=[2, 2, 2]).weights_, of_columns(3).weights_)

    def test_ties_are_drawn_and_the_same_row_is_decided_the_same_way(self):
        rows = np.column_stack([np.zeros(60, int), np.ones(60, int), np.arange(60) % 3])[:, :2]
        rows = np.column_stack([rows, np.arange(60)])  # a third column nobody reads makes the rows differ
        model = VotingClassifier([("a", Says(0)), ("b", Says(1))], random_state=1).fit(rows, np.resize([0, 1], 60))
        said = model.predict(rows)
        assert set(said) == {0, 1}
        assert np.array_equal(said[::-1], model.predict(rows[::-1]))
        other = clone(model).set_params(random_state=2).fit(rows, np.resize([0, 1], 60))
        assert not np.array_equal(said, other.predict(rows))

    def test_labels_of_two_signs_give_the_sign_of_the_sum(self):
        rng = np.random.default_rng(0)
        A = rng.normal(size=(80, 3))
        y = np.where(A[:, 0] + 0.3 * rng.normal(size=80) > 0, 1, -1)
        stumps = [(f"t{j}", DecisionTreeClassifier(max_depth=j + 1, random_state=j)) for j in range(3)]
        model = VotingClassifier(stumps).fit(A, y)
        total = sum(clone(one).fit(A, y).predict(A) for _, one in stumps)
        assert np.array_equal(model.predict(A), np.sign(total))

    @pytest.mark.parametrize(
        ("labels", "expected"), [([0, 1], -1), ([-1, 1], 0), ([-1, 0], -2), (["no", "yes"], "reject")]
    )
    def test_default_label_of_rejected_rows_is_no_class(self, labels, expected):
        y = np.array(labels)[np.resize([0, 1], 20)]
        model = VotingClassifier([("a", Says(0)), ("b", Says(1))], rule="majority").fit(np.eye(2)[[0, 1] * 10], y)
        assert model.predict([[0.0, 1.0]]).tolist() == [expected]


@pytest.mark.parametrize(
    ("labels", "away", "kind"), [((0, 1), "away", "O"), ((0, 1), -1, "i"), (("a", "b"), "longer than that", "U")]
)
def test_labels_keep_their_types_beside_that_of_rejected_rows(labels, away, kind):
    y = np.array(labels)[np.resize([0, 1], 20)]
    members = [("a", Says(0)), ("b", Says(1))]
    model = VotingClassifier(members, rule="majority", reject_label=away).fit(np.eye(2)[[0, 1] * 10], y)
    said = model.predict([[0.0, 1.0], [1.0, 1.0]])
    assert said.tolist() == [away, labels[1]]
    assert said.dtype.kind == kind


@pytest.mark.mission("ENS-50", "ENS-52")
class TestAgainstScikitLearn:
    @pytest.mark.parametrize("weights", [None, [1, 2, 3, 1.5]])
    def test_soft_vote_is_the_mean_of_probabilities(self, weights):
        model = VotingClassifier(MEMBERS, voting="soft", weights=weights).fit(X, Y)
        theirs = peer.VotingClassifier(MEMBERS, voting="soft", weights=weights).fit(X, Y)
        assert model.predict_proba(X) == pytest.approx(theirs.predict_proba(X), abs=1e-12)
        assert np.array_equal(model.predict(X), theirs.predict(X))
        assert model.transform(X) == pytest.approx(theirs.transform(X), abs=1e-12)

    def test_hard_vote_without_ties(self):
        members = MEMBERS[:3]
        model, theirs = (kind(members).fit(X, Y) for kind in (VotingClassifier, peer.VotingClassifier))
        votes = theirs.transform(X)
        clear = np.array([np.bincount(row, minlength=3).max() > 1 for row in votes])
        assert np.array_equal(model.predict(X)[clear], theirs.predict(X)[clear])
        assert np.array_equal(model.transform(X), votes)

    def test_parameters_of_members_are_reached_by_name(self):
        model = VotingClassifier(MEMBERS)
        model.set_params(linear__C=0.01, tree="drop")
        assert model.get_params()["linear__C"] == 0.01
        assert len(model.fit(X, Y).estimators_) == 3
        MEMBERS[0][1].set_params(C=1.0)

    @pytest.mark.mission("ENS-46", "ENS-47")
    @pytest.mark.parametrize("weights", [None, [2.0, 1.0, 1.0]])
    def test_regression_is_the_weighted_mean(self, weights):
        A, t = load_diabetes(return_X_y=True)
        model, theirs = (kind(NUMBERS, weights=weights).fit(A, t) for kind in (VotingRegressor, peer.VotingRegressor))
        assert model.predict(A) == pytest.approx(theirs.predict(A), rel=1e-12)
        assert VotingRegressor(NUMBERS, weights=[1, 1, 1]).fit(A, t).predict(A) == pytest.approx(
            VotingRegressor(NUMBERS).fit(A, t).predict(A), rel=1e-13
        )


class TestRefusals:
    @pytest.mark.parametrize("weights", [[-1, 1, 1], [0, 0, 0], [1, 1], "best", [np.nan, 1, 1]])
    def test_weights(self, weights):
        with pytest.raises(ValueError, match="weights must be"):
            of_columns(3, weights=weights)

    def test_a_member_that_fails_is_named_with_its_error(self):
        with pytest.raises(MemberError, match=r"the member 'bad' \(Breaks\) failed: no ink left"):
            VotingRegressor([("good", Ridge()), ("bad", Breaks())]).fit(X, Y.astype(float))

    def test_members_from_outside_predict_and_are_not_stored(self, tmp_path):
        model = VotingClassifier([("ours", LogisticRegression()), ("theirs", GaussianNB())]).fit(X, Y)
        assert model.score(X, Y) > 0.9
        with pytest.raises(ModelFileError, match=r"cannot be (saved|written)"):
            assay.save(model, tmp_path / "model.assay")
        with pytest.raises(ValueError, match="GaussianNB is not a learner of Assay"):
            model.certify(X, Y)

    def test_a_label_of_rejection_that_is_a_class(self):
        with pytest.raises(ValueError, match="reject_label must be no class"):
            of_columns(3, rule="majority", reject_label=1)

    def test_soft_votes_need_probabilities(self):
        with pytest.raises(ValueError, match="needs probabilities, which Says does not have"):
            of_columns(3, voting="soft")


def held_out(rows=300, members=5, seed=0, spread=2.0):
    """Return outputs of members that see the target through noise of different sizes, and the target."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(rows, 1))
    noise = np.linspace(0.2, spread, members)
    return y[:, None, :] + noise[:, None] * rng.normal(size=(rows, members, 1)), y


class TestWeights:
    @pytest.mark.mission("ENS-48")
    def test_no_member_and_no_mean_is_better_on_the_held_rows(self):
        outputs, y = held_out()
        found = learnt_weights(outputs, y)
        error = squared_error(outputs, y, found.weights).mean()
        for other in [*np.eye(5), np.full(5, 0.2)]:
            assert error <= squared_error(outputs, y, other).mean() + 1e-12
        rng = np.random.default_rng(1)
        for other in rng.dirichlet(np.ones(5), 200):
            assert squared_error(outputs, y, other).mean() >= error - found.gap - 1e-12
        assert found.weights.min() >= 0
        assert found.weights.sum() == pytest.approx(1)

    @pytest.mark.mission("ENS-48")
    @pytest.mark.parametrize("how", [{"holdout": 0.3}, {"cv": 3, "holdout": None}])
    def test_in_a_committee(self, how):
        A, t = load_diabetes(return_X_y=True)
        model = VotingRegressor(NUMBERS, weights="learn", random_state=0, **how).fit(A, t)
        assert model.weights_.sum() == pytest.approx(1)
        if "cv" not in how:
            held, own = A[model.held_], t[model.held_]
            error = np.mean((model.predict(held) - own) ** 2)
            for one in model.estimators_:
                assert error <= np.mean((one.predict(held) - own) ** 2) + 1e-9

    def test_equal_weights_if_members_differ_little_and_learnt_ones_if_much(self):
        assert chosen_weights(*held_out(spread=0.2)).simple
        assert not chosen_weights(*held_out(spread=4.0)).simple

    def test_many_weights_overfit_few_rows_and_the_rule_sees_it(self):
        """60 equally good members, 40 rows: learnt weights look better on these rows and are worse on others."""
        rng = np.random.default_rng(2)
        y, fresh = rng.normal(size=(40, 1)), rng.normal(size=(4000, 1))
        seen = y[:, None, :] + rng.normal(size=(40, 60, 1))
        new = fresh[:, None, :] + rng.normal(size=(4000, 60, 1))
        learnt, equal = learnt_weights(seen, y).weights, np.full(60, 1 / 60)
        assert squared_error(seen, y, learnt).mean() < squared_error(seen, y, equal).mean()
        assert squared_error(new, fresh, learnt).mean() > 1.5 * squared_error(new, fresh, equal).mean()
        assert chosen_weights(seen, y).simple

    def test_auto_in_a_committee(self):
        A, t = load_diabetes(return_X_y=True)
        twins = [("a", Ridge(1.0)), ("b", Ridge(1.001))]
        assert VotingRegressor(twins, weights="auto", random_state=0).fit(A, t).weights_.tolist() == [0.5, 0.5]


class TestCertificate:
    @pytest.mark.parametrize("voting", ["hard", "soft"])
    @pytest.mark.parametrize("share", [0.5, 0.7])
    def test_holds_and_counts_rejected_rows_as_errors(self, voting, share):
        model = VotingClassifier(MEMBERS, voting=voting, rule="majority", share=share).fit(X[:90], Y[:90])
        given = {"holdout": (X[90:], Y[90:])}
        found = model.certify(X[:90], Y[:90], **given)
        report = assay.verify(found, model, X[:90], Y[:90], **given)
        assert report.holds, report.reason
        errors = next(one for one in found.claims if one.params.get("set") == "holdout" and one.name == "train.errors")
        assert errors.params["low"] <= np.sum(model.predict(X[90:]) != Y[90:]) <= errors.value
        risk = found.find("selective.fixed")
        decided = ~model.rejected(X[90:])
        assert risk.value >= np.mean(model.predict(X[90:])[decided] != Y[90:][decided])

    def test_a_share_fixed_in_advance_has_a_clopper_pearson_limit(self):
        model = VotingClassifier(MEMBERS, rule="majority").fit(X[:90], Y[:90])
        found = model.certify(X[:90], Y[:90], holdout=(X[90:], Y[90:]))
        assert "selective.risk" not in {one.name for one in found.claims}
        one = found.find("selective.fixed")
        wrong, decided = one.params["wrong"], one.params["decided"]
        assert one.value == pytest.approx(beta.ppf(1 - float(one.delta), wrong + 1, decided - wrong), abs=1e-8)
        asked = model.certify(X[:90], Y[:90], holdout=(X[90:], Y[90:]), scores=True)
        assert asked.find("selective.fixed").value < asked.find("selective.risk").value

    @pytest.mark.parametrize("name", ["selective.risk", "selective.fixed"])
    def test_forged_selective_risks_are_rejected(self, name):
        model = VotingClassifier(MEMBERS, rule="majority").fit(X[:90], Y[:90])
        given = {"holdout": (X[90:], Y[90:])}
        found = model.certify(X[:90], Y[:90], **given, scores=True)
        at = next(i for i, one in enumerate(found.claims) if one.name == name)
        risk = found.claims[at]
        assert assay.verify(found, model, X[:90], Y[:90], **given).holds
        forged = [
            replace(risk, value=risk.value * 0.9),
            replace(risk, params={**risk.params, "wrong": 0}),
            replace(risk, params={**risk.params, "decided": risk.params["decided"] + 1}),
            replace(risk, params={**risk.params, "form": "between"}),
            replace(risk, params={**risk.params, "joint": 0.01}),
        ]
        for one in forged:
            claims = (*found.claims[:at], one, *found.claims[at + 1 :])
            assert not assay.verify(replace(found, claims=claims), model, X[:90], Y[:90], **given).holds

    @pytest.mark.parametrize("kind", ["votes", "shares", "numbers"])
    def test_gap_of_learnt_weights_and_forgeries_of_it(self, kind):
        if kind == "numbers":
            A, t = load_diabetes(return_X_y=True)
            model = VotingRegressor(NUMBERS, weights="learn", random_state=1).fit(A, t)
        else:
            A, t = X, Y
            voting = "hard" if kind == "votes" else "soft"
            model = VotingClassifier(MEMBERS, voting=voting, weights="learn", random_state=1).fit(A, t)
        found = model.certify(A, t)
        assert assay.verify(found, model, A, t).holds
        at = next(i for i, one in enumerate(found.claims) if one.name == "weights.simplex")
        gap = found.claims[at]
        for one in (
            replace(gap, value=1e-140),
            replace(gap, witness={"held": gap.witness["held"][:-1] + 1}),
            replace(gap, witness={"held": gap.witness["held"][::-1]}),
            replace(gap, witness={}),
        ):
            claims = (*found.claims[:at], one, *found.claims[at + 1 :])
            assert not assay.verify(replace(found, claims=claims), model, A, t).holds

    def test_other_weights_are_not_the_best(self):
        A, t = load_diabetes(return_X_y=True)
        model = VotingRegressor(NUMBERS, weights="learn", random_state=1).fit(A, t)
        model.vote_weights_ = np.array([0.1, 0.1, 0.8])
        assert not assay.verify(model.certify(A, t), model, A, t).holds

    def test_reading_of_every_member_is_found(self):
        soft = VotingClassifier(MEMBERS, voting="soft").fit(X, Y)
        assert (soft.links_ >= 0).all()

    def test_a_file_says_the_same(self, tmp_path):
        for model in (VotingClassifier(MEMBERS, rule="majority"), VotingClassifier(MEMBERS, voting="soft")):
            model.fit(X, Y)
            assay.save(model, tmp_path / "model.assay")
            assert np.array_equal(assay.load(tmp_path / "model.assay").model.predict(X), model.predict(X))


@pytest.mark.mission("ENS-05")
def test_threads_change_no_bit_and_callers_rows_are_not_touched():
    A, t = load_breast_cancer(return_X_y=True)
    one, three = (VotingClassifier(MEMBERS, voting="soft", n_jobs=k).fit(A, t).predict_proba(A) for k in (1, 3))
    assert np.array_equal(one, three)


def test_scikit_learn_members_in_a_pipeline_with_text():
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline

    texts, moods = ["good film", "bad film", "good good", "bad bad film"] * 5, ["+", "-", "+", "-"] * 5
    member = make_pipeline(CountVectorizer(), PeerLogistic())
    model = VotingClassifier([("words", member), ("again", member)]).fit(texts, moods)
    assert model.predict(["good", "bad"]).tolist() == ["+", "-"]
