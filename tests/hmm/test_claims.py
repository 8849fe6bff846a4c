"""Certificates of hidden Markov models: they hold, and forgeries are refused."""

import dataclasses
import warnings

import numpy as np
import pytest

import assay
from assay.hmm import GMMHMM, CategoricalHMM, GaussianHMM

LENGTHS = np.array([40, 1, 59, 50])
MODELS = [
    CategoricalHMM(2),
    CategoricalHMM(3, transmat_prior=2.0, emissionprob_prior=1.5, startprob_prior=1.5),
    *(GaussianHMM(2, covariance_type=kind) for kind in ("full", "tied", "diag", "spherical")),
    GaussianHMM(2, covars_prior=0.0, params="tm"),
    *(GMMHMM(2, n_mix=2, covariance_type=kind) for kind in ("full", "tied", "diag", "spherical")),
]


def rows(model, seed=0, n=150):
    rng = np.random.default_rng(seed)
    if isinstance(model, CategoricalHMM):
        return rng.integers(0, 3, (n, 2)).astype(float)
    return rng.normal(size=(n, 2)) + np.repeat(4 * rng.integers(0, 2, (n // 5, 1)), 5, axis=0)


def fitted(model, X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return type(model)(**{**model.get_params(), "random_state": 0, **options}).fit(X, LENGTHS)


def certified(model, X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.certify(X, lengths=LENGTHS, **options)


def judged(certificate, model, X, holdout=None):
    return {
        claim.name: verdict.status
        for claim, verdict in zip(certificate.claims, assay.verify(certificate, model, X, holdout=holdout).verdicts)
    }


@pytest.mark.mission("LAT-19")
@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("gaps", [False, True])
def test_facts_hold(model, gaps):
    X = rows(model)
    if gaps:
        X[[3, 50]] = np.nan
    model = fitted(model, X)
    certificate = certified(model, X)
    claims = {claim.name: claim for claim in certificate.claims}
    assert {"hmm.log-likelihood", "hmm.stationary", "hmm.monotone"} <= claims.keys()
    assert claims["hmm.log-likelihood"].params["center"] == pytest.approx(
        model.score(X, lengths=LENGTHS) / len(X), abs=1e-12
    )
    report = assay.verify(certificate, model, X)
    assert report.holds, report.reason


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_longer_fit_is_nearer_to_a_fixed_point(model):
    X = rows(model)
    values = []
    for n_iter in (2, 150):
        found = certified(fitted(model, X, n_iter=n_iter, tol=-1e300), X)
        values.append(next(claim.value for claim in found.claims if claim.name == "hmm.stationary"))
    assert values[1] < 0.2 * values[0]


@pytest.mark.parametrize("model", [MODELS[0], MODELS[2], MODELS[4], MODELS[7]], ids=str)
class TestForgeries:
    def forged(self, model, claimed, **changes):
        X = rows(model)
        model = fitted(model, X, n_iter=3)
        certificate = certified(model, X)
        claims = [
            dataclasses.replace(claim, **{name: change(getattr(claim, name)) for name, change in changes.items()})
            if claim.name == claimed
            else claim
            for claim in certificate.claims
        ]
        return judged(dataclasses.replace(certificate, claims=tuple(claims)), model, X)[claimed]

    def test_the_unforged_holds(self, model):
        assert self.forged(model, "hmm.log-likelihood", value=lambda value: value) == "PROVED"

    def test_another_likelihood(self, model):
        assert (
            self.forged(model, "hmm.log-likelihood", params=lambda p: {**p, "center": p["center"] + 1e-6}) == "REJECTED"
        )

    def test_other_lengths(self, model):
        for lengths in (LENGTHS[::-1].copy(), np.array([150]), np.array([149]), np.array([0, 150])):
            assert (
                self.forged(model, "hmm.log-likelihood", witness=lambda w, lengths=lengths: {"lengths": lengths})
                == "REJECTED"
            )

    def test_nearer_to_a_fixed_point_than_it_is(self, model):
        assert self.forged(model, "hmm.stationary", value=lambda value: value / 2) == "REJECTED"
        assert self.forged(model, "hmm.stationary", params=lambda p: {**p, "start_prior": 0.5}) == "REJECTED"
        assert self.forged(model, "hmm.stationary", params=lambda p: {**p, "parts": "x"}) == "REJECTED"
        assert self.forged(model, "hmm.stationary", params=lambda p: {**p, "more": 1.0}) == "REJECTED"

    def test_another_start(self, model):
        def moved(witness):
            return {**witness, "trans": witness["trans"][::-1].copy()}

        assert self.forged(model, "hmm.monotone", witness=moved) == "REJECTED"
        assert self.forged(model, "hmm.monotone", params=lambda p: {**p, "steps": p["steps"] + 1}) == "REJECTED"
        assert self.forged(model, "hmm.monotone", witness=lambda w: {**w, "trans": w["trans"] * 2}) == "REJECTED"


class TestHoldout:
    def model(self):
        true = CategoricalHMM(2)
        true.startprob_, true.transmat_ = np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.2, 0.8]])
        true.emissionprob_ = np.array([[0.8, 0.1, 0.1], [0.1, 0.2, 0.7]])
        return true

    def sequences(self, count, seed):
        draws = [self.model().sample(8, random_state=1000 * seed + i)[0] for i in range(count)]
        return np.concatenate(draws).astype(float), [8] * count

    def certified(self, seed=0, count=60):
        X, lengths = self.sequences(30, 77)
        model = CategoricalHMM(2, random_state=0, n_iter=20).fit(X, lengths)
        held = self.sequences(count, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model, X, held, model.certify(X, lengths=lengths, holdout=held, clip=(0.0, 3.0))

    def test_the_bound_is_above_the_mean_over_sequences(self):
        model, X, (Xh, lengths), certificate = self.certified()
        claim = next(claim for claim in certificate.claims if claim.name == "hmm.holdout")
        losses = [-model.score(Xh[8 * i : 8 * i + 8]) / 8 for i in range(len(lengths))]
        assert np.mean(losses) < claim.value < np.mean(losses) + 0.5
        report = assay.verify(certificate, model, X, holdout=(Xh, None))
        assert report.holds, report.reason

    def test_forgeries(self):
        model, X, (Xh, _), certificate = self.certified()
        place = next(i for i, claim in enumerate(certificate.claims) if claim.name == "hmm.holdout")
        sound = certificate.claims[place]
        for change in (
            {"value": sound.value - 0.1},
            {"witness": {"lengths": np.ones(480, dtype=np.int64)}},
            {"params": {**sound.params, "sequences": 61}},
            {"params": {**sound.params, "low": -1.0}},
            {"params": {**sound.params, "repeated": sound.params["repeated"] + 1}},
            {"assumptions": tuple(a for a in sound.assumptions if "SEQ" not in a)},
        ):
            claims = list(certificate.claims)
            claims[place] = dataclasses.replace(sound, **change)
            forged = dataclasses.replace(certificate, claims=tuple(claims))
            assert not assay.verify(forged, model, X, holdout=(Xh, None)).holds, change

    def test_sequences_that_repeat_others_are_told(self):
        """Whoever picks one likely sequence and repeats it cannot hide that."""
        model, X, (Xh, _), _ = self.certified()
        held = np.tile(Xh[:8], (60, 1)), [8] * 60
        certificate = model.certify(X, lengths=[8] * 30, holdout=held, clip=(0.0, 3.0))
        claim = certificate.find("hmm.holdout")
        assert claim.params["repeated"] == 59
        assert "59 of which nearly repeat an earlier one" in claim.statement
        claims = [replace_in(one, "repeated", 0) if one is claim else one for one in certificate.claims]
        forged = dataclasses.replace(certificate, claims=tuple(claims))
        assert not assay.verify(forged, model, X, holdout=(held[0], None)).holds

    def test_rows_by_number_are_refused(self):
        model, X, _, _ = self.certified()
        with pytest.raises(ValueError, match="rows of one sequence"):
            model.certify(X, holdout=[1, 2])
        with pytest.raises(ValueError, match="lengths must sum"):
            model.certify(X, lengths=[3])

    def test_the_share_of_failures_is_at_most_delta(self):
        truth, losses = self.model(), []
        X, lengths = self.sequences(30, 77)
        model = CategoricalHMM(2, random_state=0, n_iter=20).fit(X, lengths)
        draws = np.concatenate([truth.sample(8, random_state=10_000 + i)[0] for i in range(3000)])
        losses = [-model.score(draws[8 * i : 8 * i + 8]) / 8 for i in range(3000)]
        from assay.theory.concentration import betting_upper

        rng, mean = np.random.default_rng(0), np.mean(losses)
        failed = sum(3 * betting_upper(rng.choice(losses, 40) / 3, 0.1) < mean for _ in range(200))
        assert failed <= 0.1 * 200 + 3 * np.sqrt(200 * 0.1 * 0.9)


def test_saved_and_loaded(tmp_path):
    X = rows(MODELS[4])
    model = fitted(MODELS[4], X)
    certificate = certified(model, X)
    path = tmp_path / "model.assay"
    assay.save(model, path, certificate=certificate)
    saved = assay.load(path)
    assert np.array_equal(saved.model.predict_proba(X, LENGTHS), model.predict_proba(X, LENGTHS))
    assert np.array_equal(saved.model.covars_, model.covars_)
    assert assay.verify(saved.certificate, saved.model, X).holds


def replace_in(claim, name, value):
    """Return the claim with another value of one parameter."""
    return dataclasses.replace(claim, params={**claim.params, name: value})
