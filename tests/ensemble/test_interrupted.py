"""Ctrl-C while members are fitted: what is fitted is kept, is the committee of these members, and is certified."""

import os
import signal

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris

import assay
from assay.checker.family import read_model
from assay.checker.record import Rejected
from assay.ensemble import StackingClassifier, VotingClassifier, VotingRegressor
from assay.fitlog import Interrupts
from assay.imbalance import EasyEnsembleClassifier
from assay.linear_model import LinearRegression, LogisticRegression, Ridge
from assay.multiclass import OneVsRestClassifier, OutputCodeClassifier
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.contract.test_contract import Interrupt

IRIS = load_iris(return_X_y=True)
X, Y = IRIS[0][(order := np.random.default_rng(0).permutation(150))], IRIS[1][order]


class Interrupted(DecisionTreeClassifier):
    """A tree that presses Ctrl-C when it should be fitted."""

    def fit(self, X, y, sample_weight=None):
        raise KeyboardInterrupt


class Swallows(LogisticRegression):
    """Ctrl-C comes while it is fitted; it keeps what it has and returns, as learners here do."""

    def fit(self, X, y, sample_weight=None):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(10**6):  # the signal is heard between two steps
                pass
        except KeyboardInterrupt:
            pass
        return super().fit(X, y, sample_weight)


MEMBERS = [("a", LogisticRegression()), ("b", DecisionTreeClassifier(random_state=0)), ("c", LogisticRegression(C=9))]


def with_break(kind, at, breaks, **parameters):
    named = [*MEMBERS[:at], ("break", breaks), *MEMBERS[at:]]
    return kind(named, n_jobs=1, **parameters)


@pytest.mark.parametrize("voting", ["hard", "soft"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_vote_keeps_the_members_that_are_fitted(at, voting):
    model = with_break(VotingClassifier, at, Interrupted(), voting=voting, weights=[4, 3, 2, 1], random_state=0)
    model.fit(X, Y)
    plain = VotingClassifier(MEMBERS[:at], voting=voting, weights=[4, 3, 2, 1][:at], random_state=0).fit(X, Y)
    assert list(model.named_estimators_) == [name for name, _ in MEMBERS[:at]]
    assert model.kept_.tolist() == list(range(at))
    np.testing.assert_allclose(model.vote_shares(X), plain.vote_shares(X), rtol=1e-14)
    report = assay.verify(model.certify(X, Y), model, X, Y)
    assert report.holds, report.reason


def test_an_interrupted_vote_is_stored_and_a_forged_one_is_not_loaded(tmp_path):
    named = [*MEMBERS[:2], ("later", LogisticRegression(C=3.0))]
    model = VotingClassifier(named, n_jobs=1).set_callbacks(Interrupt(2, error=None)).fit(X, Y)
    assert model.kept_.tolist() == [0, 1]
    assay.save(model, tmp_path / "model.assay")
    loaded = assay.load(tmp_path / "model.assay").model
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert list(loaded.named_estimators_) == ["a", "b"]
    for kept in ([0], [1, 0], [0, 3], [-1, 0], [0.0, 1.0]):
        model.kept_ = np.array(kept)
        assay.save(model, tmp_path / "forged.assay")
        with pytest.raises(ValueError):  # noqa: PT011  (some by the reader, one by the learner)
            assay.load(tmp_path / "forged.assay")
    model.kept_ = np.array([1, 0])
    with pytest.raises(Rejected):
        read_model(model.stored())


def test_an_interrupt_that_a_member_answers_by_returning_ends_the_vote_too():
    model = with_break(VotingClassifier, 1, Swallows()).fit(X, Y)
    assert list(model.named_estimators_) == ["a", "break"]
    assert np.array_equal(model.estimators_[1].coef_, LogisticRegression().fit(X, Y).coef_)


@pytest.mark.parametrize("kind", [VotingClassifier, StackingClassifier])
def test_nothing_fitted_is_no_committee(kind):
    with pytest.raises(KeyboardInterrupt):
        with_break(kind, 0, Interrupted()).fit(X, Y)


def test_members_of_no_weight_are_no_committee():
    with pytest.raises(KeyboardInterrupt):
        with_break(VotingClassifier, 1, Interrupted(), weights=[0, 1, 1, 1]).fit(X, Y)


@pytest.mark.parametrize("cv", [3, None])
@pytest.mark.filterwarnings("ignore")
def test_stacking_keeps_members_with_all_folds(cv):
    model = with_break(StackingClassifier, 2, Interrupted(), cv=cv).fit(X, Y)
    plain = StackingClassifier(MEMBERS[:2], cv=cv).fit(X, Y)
    assert np.array_equal(model.transform(X), plain.transform(X))
    assert np.array_equal(model.predict_proba(X), plain.predict_proba(X))
    assert model.get_feature_names_out()[0] == "stackingclassifier_a0"
    report = assay.verify(model.certify(X, Y), model, X, Y)
    assert report.holds, report.reason


@pytest.mark.parametrize("how", [{"holdout": 0.3}, {"cv": 3, "holdout": None}])
def test_learnt_weights_are_those_of_the_members_that_are_kept(how):
    A, t = load_diabetes(return_X_y=True)
    named = [("line", LinearRegression()), ("tree", DecisionTreeRegressor(max_depth=3, random_state=0))]
    calls = []

    class Late(Ridge):
        def fit(self, X, y, sample_weight=None):
            calls.append(len(X))
            if len(calls) > how.get("cv", 0):
                raise KeyboardInterrupt
            return super().fit(X, y, sample_weight)

    model = VotingRegressor([*named, ("late", Late())], weights="learn", n_jobs=1, random_state=0, **how).fit(A, t)
    assert list(model.named_estimators_) == ["line", "tree"]
    if "cv" not in how:
        plain = VotingRegressor(named, weights="learn", random_state=0, **how).fit(A, t)
        np.testing.assert_allclose(model.weights_, plain.weights_, atol=1e-9)
        assert assay.verify(model.certify(A, t), model, A, t).holds


def test_easy_ensemble_keeps_its_members():
    fitted = []

    class Third(DecisionTreeClassifier):
        def fit(self, X, y, sample_weight=None):
            if len(fitted) == 2:
                raise KeyboardInterrupt
            fitted.append(self)
            return super().fit(X, y, sample_weight)

    model = EasyEnsembleClassifier(Third(), 5, random_state=0, n_jobs=1).fit(X, Y)
    assert len(model.estimators_) == 2
    assert model.score(X, Y) > 0.9


@pytest.mark.parametrize("bits", [1, 4])
def test_a_code_keeps_the_bits_that_tell_its_classes_apart(bits, tmp_path):
    fitted = []

    class After(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            if len(fitted) == bits:
                raise KeyboardInterrupt
            fitted.append(self)
            return super().fit(X, y, sample_weight)

    model = OutputCodeClassifier(After(), code="random", code_size=3, random_state=0, n_jobs=1)
    if bits == 1:  # two words of one bit for three classes
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
        return
    model.fit(X, Y)
    whole = OutputCodeClassifier(LogisticRegression(), code="random", code_size=3, random_state=0).fit(X, Y)
    plain = OutputCodeClassifier(LogisticRegression(), code=whole.code_[:, :bits]).fit(X, Y)
    assert np.array_equal(model.code_, whole.code_[:, :bits])
    assert model.distance_ == plain.distance_
    assert np.array_equal(model.predict(X), plain.predict(X))
    model.estimator = None
    model.members_ = plain.members_
    assert assay.verify(model.certify(X, Y), model, X, Y).holds
    assay.save(model, tmp_path / "model.assay")
    assert np.array_equal(assay.load(tmp_path / "model.assay").model.predict(X), model.predict(X))


def test_a_code_with_missing_bits_is_none():
    class Second(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            if y.sum() != 50 or Second.seen:
                raise KeyboardInterrupt
            Second.seen = True
            return super().fit(X, y, sample_weight)

    Second.seen = False
    with pytest.raises(KeyboardInterrupt):
        OneVsRestClassifier(Second(), n_jobs=1).fit(X, Y)


def test_callbacks_see_each_committee_and_one_member_less_changes_no_other():
    counter = Interrupt(0, error=None)
    model = VotingClassifier(MEMBERS, n_jobs=1, random_state=0).set_callbacks(counter).fit(X, Y)
    assert counter.seen == len(model.history_) == 3
    for t, step in enumerate(model.history_):
        plain = VotingClassifier(MEMBERS[: t + 1], random_state=0).fit(X, Y)
        assert step.objective == pytest.approx(1 - plain.score(X, Y))
    assert np.array_equal(model.predict(X), clone(model).set_callbacks().fit(X, Y).predict(X))


def test_who_counts_outside_hears_what_is_heard_inside():
    with Interrupts() as outer:
        model = with_break(VotingClassifier, 1, Swallows()).fit(X, Y)
        assert outer.asked == 1
    assert len(model.estimators_) == 2


def test_a_second_interrupt_quits():
    named = [("a", LogisticRegression()), ("one", Swallows()), ("c", LogisticRegression())]

    class Twice(Swallows):
        def fit(self, X, y, sample_weight=None):
            super().fit(X, y, sample_weight)
            return super().fit(X, y, sample_weight)

    named[1] = ("one", Twice())
    with pytest.raises(KeyboardInterrupt):
        VotingClassifier(named, n_jobs=1).fit(X, Y)
