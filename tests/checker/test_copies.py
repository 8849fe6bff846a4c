"""Rows chosen by whoever issues a claim: repeated rows are counted, and lumps that chance does not explain rejected."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import assay
from assay.checker.record import Rejected
from assay.checker.rules.copies import check_drawn, keys_of, lumps, repeated, sequence_keys
from assay.guarantees import fingerprint
from assay.scan import rows
from assay.semi_supervised import VouchedClassifier, _self_training, labelled_rows


def test_repeated_rows_by_hand():
    keys, known = np.array([3, 3, 5, 7, 5, 9], dtype=np.uint64), np.array([7], dtype=np.uint64)
    assert repeated(keys, known) == fingerprint.repeats(keys, known) == 3  # the second 3, the 7, the second 5


def test_producer_and_checker_have_the_same_keys():
    X = np.random.default_rng(0).normal(size=(300, 3))
    X[4, 1] = np.nan
    assert np.array_equal(keys_of(X), fingerprint.keys(rows(X)))
    parts = np.split(X, [10, 11, 200])
    assert np.array_equal(sequence_keys(parts), fingerprint.sequence_keys(parts))
    moved = [part * (1 + 1e-9) for part in parts]
    assert np.mean(sequence_keys(moved) == sequence_keys(parts)) >= 0.5
    assert len(set(sequence_keys([X[:3], X[2::-1], X[:2]]).tolist())) == 3


@pytest.mark.parametrize("groups", [[2, 2, 3], [5], [2] * 4, [3, 1, 1, 2]])
def test_lumps_are_bounded_for_every_split(groups):
    """All ways to choose 4 of the rows: P[lumps >= t] <= 2 exp(-t), one half for each of its two bounds."""
    keys = np.repeat(np.arange(len(groups)), groups).astype(np.uint64)
    found = []
    for chosen in combinations(range(len(keys)), 4):
        held = np.zeros(len(keys), dtype=bool)
        held[list(chosen)] = True
        found.append(lumps(keys[held], keys[~held]))
    for t in np.linspace(0.1, 8, 80):
        assert np.mean(np.array(found) >= t) <= 2 * math.exp(-t)


def test_lumps_of_honest_draws_are_rare_and_picked_rows_are_found():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(300):
        values = rng.zipf(1.6, 400) % 50  # many ties, some values far commoner than others
        found.append(lumps(values[:250].astype(np.uint64), values[250:].astype(np.uint64)))
    assert np.mean(np.array(found) > math.log(20)) <= 2 / 20
    others, some = np.arange(200, dtype=np.uint64), np.arange(1000, 1450, dtype=np.uint64)
    assert lumps(some, others) == 0
    assert lumps(np.full(450, 7_000, dtype=np.uint64), others) > 100
    assert lumps(np.repeat(some[:225], 2), others) > 50
    for picked in (np.full(450, 7_000, dtype=np.uint64), np.repeat(some[:225], 2), others[:150]):
        with pytest.raises(Rejected):
            check_drawn(picked, others, "these rows")
    check_drawn(some, others, "these rows")


class TestVouched:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1500)
    X = rng.normal(size=(1500, 2)) + 2.0 * y[:, None]
    seen = np.where(np.arange(1500) < 500, y, -1)

    def forged(self, model, monkeypatch):
        """Return the verdict about teacher.disagreement of an issuer that does not look at its own rows."""
        monkeypatch.setattr(_self_training, "check_drawn", lambda *arguments: None)
        certificate = model.certify(self.X, self.seen)
        report = assay.verify(certificate, model, *labelled_rows(self.X, self.seen))
        return next(one for one in report.verdicts if one.claim == "teacher.disagreement")

    @pytest.mark.parametrize("how", ["one", "jittered", "pairs", "twenty", "labelled"])
    def test_picked_rows_are_rejected(self, how, monkeypatch):
        model = VouchedClassifier(random_state=0).fit(self.X, self.seen)
        own, sure = model.unlabelled_, model.unlabelled_[[int(np.argmax(model.unlabelled_.sum(axis=1)))]]
        model.unlabelled_ = {
            "one": np.repeat(sure, 450, axis=0),
            "jittered": sure + 1e-7 * np.random.default_rng(1).normal(size=(450, 2)),
            "pairs": np.repeat(own[:225], 2, axis=0),
            "twenty": np.concatenate([own[:430], np.repeat(sure, 20, axis=0)]),
            "labelled": self.X[:450],
        }[how]
        gap = next(one for one in model.certify(self.X, self.seen).not_applicable if one.name == "teacher.disagreement")
        assert "repeat each other" in gap.reason or "training rows again" in gap.reason
        assert self.forged(model, monkeypatch).status == "REJECTED"

    def test_labelled_rows_in_an_order_that_puts_copies_before_the_judge(self, monkeypatch):
        """Every labelled row twice, once where the teacher sees it and once where it is judged."""
        X, y, half = self.X.copy(), self.seen.copy(), 250
        split = np.array([int(np.random.RandomState(0).randint(2**31 - 1)), 500, half])
        kept = _self_training.kept_rows(split)
        rest = np.delete(np.arange(500), kept)
        X[kept], y[kept] = X[rest], y[rest]
        model = VouchedClassifier(random_state=0).fit(X, y)
        assert np.array_equal(model.split_, split)
        monkeypatch.setattr(_self_training, "check_drawn", lambda *arguments: None)
        report = assay.verify(model.certify(X, y), model, *labelled_rows(X, y))
        verdict = next(one for one in report.verdicts if one.claim == "teacher.disagreement")
        assert verdict.status == "REJECTED"
        assert "kept from the teacher" in verdict.reason

    def test_the_number_is_told_and_recounted(self):
        X = np.round(self.X * 4) / 4  # so that rows repeat by themselves
        model = VouchedClassifier(random_state=0).fit(X, self.seen)
        certificate, own = model.certify(X, self.seen), labelled_rows(X, self.seen)
        claim = certificate.find("teacher.disagreement")
        rows_seen, repeats = {tuple(row) for row in own[0]}, 0
        for row in map(tuple, model.unlabelled_):
            repeats += row in rows_seen
            rows_seen.add(row)
        assert claim.params["repeated"] == repeats > 100
        assert f"{repeats} of which nearly repeat" in claim.statement
        assert assay.verify(certificate, model, *own).holds
        for told in (0, repeats - 1, repeats + 1, -1, 2.5):
            other = replace(claim, params={**claim.params, "repeated": told})
            claims = tuple(other if one is claim else one for one in certificate.claims)
            assert not assay.verify(replace(certificate, claims=claims), model, *own).holds
