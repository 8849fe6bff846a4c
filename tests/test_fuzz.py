"""The fuzzer itself, for a few inputs; `--long` for a minute and every learner."""

import faulthandler
import os
import signal
import sys

import pytest

from tests import fuzz, fuzz_claims, fuzz_inputs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked, and their time is read from /proc")
FEW = (
    "Ridge", "LogisticRegression", "SVC", "DecisionTreeClassifier", "HistGradientBoostingClassifier",
    "KNeighborsClassifier", "KMeans", "GaussianMixture", "MLPRegressor", "VotedPerceptron",
)  # fmt: skip


def test_mutated_inputs_do_no_harm():
    tally = fuzz.fuzz(30.0, seed=1, learners=FEW, most=300)
    assert tally.tried == 300
    assert not tally.bad, tally.text(10.0)


@pytest.mark.long(by_hand="how far it comes depends on the machine")
def test_mutated_inputs_of_every_learner_do_no_harm():
    tally = fuzz.fuzz(1.0, seed=2)
    assert not tally.bad, tally.text(60.0)


def test_claims_that_are_forged_and_sealed_again_do_no_harm():
    tally = fuzz_claims.fuzz(30.0, seed=3, most=40)
    assert not tally.bad, tally.text(1.0)
    assert tally.counts["refused"] >= 20


def test_a_false_claim_that_is_accepted_is_seen():
    target = next(one for one in fuzz_claims.targets() if one.name == "linear holdout.binomial")
    tally = fuzz_claims.fuzz(30.0, seed=3, most=40, known=[target._replace(truth=lambda case: False)])
    assert {kind for kind, _ in tally.bad} == {"wrong"}


@pytest.mark.parametrize("harm", ["crash", "hang", "wrong", "unexpected"])
def test_harm_is_seen(harm, monkeypatch, tmp_path):
    """Inputs that end the process, never end, verify falsely or raise what they should not are told apart."""
    sound = fuzz_inputs.seeds(("Ridge",), tmp_path)
    monkeypatch.setattr(fuzz, "LIMIT", 0.3 if harm == "hang" else 30.0)
    monkeypatch.setattr(fuzz, "run", {"crash": crash, "hang": hang, "wrong": wrong, "unexpected": unexpected}[harm])
    monkeypatch.setattr(fuzz, "seeds", lambda *_: sound)
    monkeypatch.setattr(fuzz, "warm_up", lambda *_: None)
    tally = fuzz.fuzz(30.0, most=2)
    assert {kind for kind, _, _ in tally.bad} == {harm}
    assert any(tally.folder.glob(f"{harm}-*"))


def crash(one, sound, path):
    faulthandler.disable()
    os.kill(os.getpid(), signal.SIGSEGV)


def hang(one, sound, path):
    while True:
        pass


def wrong(one, sound, path):
    return fuzz.Outcome("wrong", "here", "a lie")


def unexpected(one, sound, path):
    return fuzz.Outcome("unexpected", "here", "KeyError")
