"""Ctrl-C: the first ends the current fit and keeps what is done, the second quits; also where a fit swallows it."""

import contextlib
import os
import signal

import numpy as np
import pytest

import assay
from assay.fitlog import Interrupts
from assay.learning.events import Note
from assay.linear_model import LogisticRegression, Perceptron

X = np.random.default_rng(0).normal(size=120)
TABLE = {"x": X, "y": np.where(X > 0, "a", "b")}


def ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("swallows", [True, False])
def test_the_first_one_ends_the_fit_and_keeps_what_is_done(monkeypatch, swallows):
    fit, pressed = Perceptron.fit, []

    def interrupted(self, *words, **options):
        try:
            if not pressed:
                pressed.append(True)
                ctrl_c()
        except KeyboardInterrupt:
            if not swallows:
                raise
        return fit(self, *words, **options)

    monkeypatch.setattr(Perceptron, "fit", interrupted)
    before = signal.getsignal(signal.SIGINT)
    names = ["LogisticRegression", "Perceptron", "GaussianNB"]
    found = assay.learn(TABLE, "y", learners=names, trials=9, workers=0)
    assert signal.getsignal(signal.SIGINT) is before
    assert found.chosen.name == "LogisticRegression"
    judged = {one.name for one in found.candidates if one.losses}
    assert "LogisticRegression" in judged
    assert "GaussianNB" not in judged


def test_who_stops_waits_for_one_certificate(monkeypatch):
    """Two learners that cross-validation cannot tell apart are both certified, unless somebody is waiting."""
    table = {"x": X, "y": np.where(X + np.random.default_rng(1).normal(size=120) > 0, "a", "b")}
    names, stop = ["LogisticRegression", "LinearDiscriminantAnalysis", "Perceptron", "GaussianNB"], []
    given = {"learners": names, "trials": 4, "workers": 0, "stop": lambda: bool(stop)}
    level = [one.status for one in assay.learn(table, "y", **given).candidates]
    assert "finalist" in level
    fit = Perceptron.fit
    monkeypatch.setattr(Perceptron, "fit", lambda self, *words: stop.append(True) or fit(self, *words))
    statuses = [one.status for one in assay.learn(table, "y", **given).candidates]
    assert statuses.count("chosen") == 1
    assert "finalist" not in statuses


def test_the_second_one_quits_and_one_before_any_fit_too(monkeypatch):
    def twice(self, *words, **options):
        for _ in range(2):
            with contextlib.suppress(KeyboardInterrupt):
                ctrl_c()
        return self

    monkeypatch.setattr(LogisticRegression, "fit", twice)
    with pytest.raises(KeyboardInterrupt):
        assay.learn(TABLE, "y", learners=["GaussianNB", "LogisticRegression"], trials=9, workers=0)
    monkeypatch.setattr(LogisticRegression, "fit", lambda self, *words: ctrl_c())
    with pytest.raises(KeyboardInterrupt):
        assay.learn(TABLE, "y", learners=["LogisticRegression", "GaussianNB"], trials=9, workers=0)


def test_a_study_by_folds_gives_the_folds_that_are_left_the_first_learners(monkeypatch):
    """Ctrl-C in the second fold: what is done is kept, and the rest is done in short."""
    fit, count, told = Perceptron.fit, [], []

    def interrupted(self, *words, **options):
        count.append(True)
        if len(count) == 7:
            with contextlib.suppress(KeyboardInterrupt):
                ctrl_c()
        return fit(self, *words, **options)

    monkeypatch.setattr(Perceptron, "fit", interrupted)
    names = ["LogisticRegression", "Perceptron", "GaussianNB", "LinearDiscriminantAnalysis"]
    more = {"certify": "folds", "tell": lambda event: told.append(event)}
    found = assay.learn(TABLE, "y", learners=names, trials=4, workers=0, **more)
    assert len(found.folds) == 3
    notes = [one.text for one in told if isinstance(one, Note) and one.passing]
    assert notes == [f"Fold {k} of 3: a model is chosen and fitted without it." for k in (1, 2, 3)]
    assert assay.verify(found.certificate, found.model, found.raw).holds


def test_who_stops_a_study_by_folds_twice_or_before_its_first_model_quits(monkeypatch):
    monkeypatch.setattr(LogisticRegression, "fit", lambda self, *words: ctrl_c())
    with pytest.raises(KeyboardInterrupt):
        assay.learn(TABLE, "y", learners=["LogisticRegression"], trials=9, workers=0, certify="folds")


def test_requests_are_counted_and_the_handler_comes_back():
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as wish:
        wish.check()
        with pytest.raises(KeyboardInterrupt):
            ctrl_c()
        assert wish.asked == 1
        wish.check()
    assert signal.getsignal(signal.SIGINT) is before
