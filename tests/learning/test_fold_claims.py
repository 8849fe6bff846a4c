"""Claims of models of folds: forged ones are refused, constants are noticed, bounds hold as often as they say."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import assay
from assay.claims.model import StoredModel
from assay.guarantees.fingerprint import model_reference
from assay.persist import built
from tests.certificate import bets
from tests.learning.fold_rows import DELTA, columns, judged, learnt, numbers


def changed(study, name, **witness):
    """The certificate with other witnesses of one claim."""
    claims = tuple(
        replace(one, witness={**one.witness, **witness}) if one.name == name else one
        for one in study.certificate.claims
    )
    return replace(study, certificate=replace(study.certificate, claims=claims))


def status(study, name):
    report = judged(study)
    place = [one.name for one in study.certificate.claims].index(name)
    return report.verdicts[place].status if report.verdicts else "REJECTED"


def test_forged_witnesses_are_refused():
    study = learnt(columns(300, 8))
    claim = study.certificate.find("cross-validation.mean")
    limits = claim.witness["limits"]
    for witness in ({"limits": limits * 0.99}, {"limits": limits[:2]}, {"fold": np.zeros(300, dtype=np.int64)}):
        assert status(changed(study, "cross-validation.mean", **witness), "cross-validation.mean") == "REJECTED"
    lower = replace(
        study.certificate.find("cross-validation.mean"),
        value=study.certificate.find("cross-validation.mean").value * 0.999,
    )
    claims = tuple(lower if one.name == "cross-validation.mean" else one for one in study.certificate.claims)
    assert (
        status(replace(study, certificate=replace(study.certificate, claims=claims)), "cross-validation.mean")
        == "REJECTED"
    )
    limits, labels = (
        study.certificate.find("cross-validation.baseline").witness[name] for name in ("limits", "labels")
    )
    for witness in ({"limits": limits * 0.99}, {"labels": 1 - labels}, {"labels": labels + 5}):
        assert status(changed(study, "cross-validation.baseline", **witness), "cross-validation.baseline") == "REJECTED"


@pytest.mark.parametrize("change", [{"seed": -1}, {"seed": 0.5}, {"folds": 2}, {"folds": 301}, {"rows": 299}], ids=str)
def test_other_folds_are_refused(change):
    """Folds follow from the seed. (What another one proves about models that were fitted to the rows is not seen here,
    but by whoever makes the encodings again: A-FOLDS.)"""
    study = learnt(columns(300, 8))
    for name in ("cross-validation.mean", "cross-validation.baseline"):
        assert status(stated(study, name, **change), name) == "REJECTED"


def stated(study, name, **params):
    """The certificate with other parameters of one claim."""
    claims = tuple(
        replace(one, params={**one.params, **params}) if one.name == name else one for one in study.certificate.claims
    )
    return replace(study, certificate=replace(study.certificate, claims=claims))


@pytest.mark.parametrize("table", [columns(300, 8), numbers(240, 9)], ids=["classes", "numbers"])
def test_the_command_notices_folds_that_differ_between_claims(table):
    """Other folds beside honest ones, or alone: whatever the limits prove there, no model was made without them."""
    study = learnt(table, learners=["LogisticRegression" if "level" in table else "Ridge"])
    mean, other = (one.name for one in study.certificate.claims if "folds" in one.params)
    forged = stated(study, other, seed=1)
    alone = tuple(one for one in forged.certificate.claims if one.name != mean)
    alone = replace(forged, certificate=replace(forged.certificate, claims=alone))
    assert judged(study).holds
    assert "different folds" in judged(forged).reason
    assert not judged(alone).holds


def test_a_table_around_the_models_of_folds_encodes_nothing():
    """Where it could, a shift tuned on all rows would pass as the folds' own encoding."""
    study = learnt(columns(150, 8))
    stored = study.model.stored()
    assert stored.parameters["encoding"] == []
    shift = {"name": "a", "kind": "numeric", "fill": 0.0, "scaling": [-0.3, 1.0], "gap": None}
    with pytest.raises(Exception, match="empty if the members read tables"):
        built(replace(stored, parameters={**stored.parameters, "encoding": [shift]}))
    member = stored.members[0].members[0]
    with pytest.raises(Exception, match="empty if the members read tables"):
        built(replace(member, parameters={**member.parameters, "encoding": []}))


def test_forged_witnesses_of_numbers_are_refused():
    study = learnt(numbers(240, 9), learners=["Ridge"])
    found = study.certificate.find("cross-validation.mean-loss").witness
    for witness in (
        {"limits": found["limits"] * 0.99},
        {"low": found["low"] - 1.0},
        {"high": found["high"] * 0.9},
    ):
        assert (
            status(changed(study, "cross-validation.mean-loss", **witness), "cross-validation.mean-loss") == "REJECTED"
        )
    found = study.certificate.find("cross-validation.median").witness
    for witness in ({"limits": found["limits"] * 0.99}, {"constants": found["constants"] + 1e-6}):
        assert status(changed(study, "cross-validation.median", **witness), "cross-validation.median") == "REJECTED"


def order_of(study, held):
    """The order of bets on some rows of the table."""
    raw = study.model.raw(study.raw)[held]
    y = [str(one) if isinstance(one, str) else one for one in np.array(study.table.column("y").values())[held].tolist()]
    return bets.of_rows(raw, y)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_constants_of_the_limits_are_noticed(factor):
    """Limits at another share of delta than the folds leave are proved if and only if it is smaller."""
    study = learnt(columns(300, 11))
    y, claim = np.array(study.table.column("y").values()), study.certificate.find("cross-validation.baseline")
    limits = claim.witness["limits"].copy()
    label = study.model.classes_[claim.witness["labels"][0]]
    held = study.folds[0].held
    right, other = study.folds[0].model.predict(study.table.take(held)) == y[held], y[held] == label
    losses = (0.5 + 0.5 * (~right & other) - 0.5 * (right & ~other))[order_of(study, held)]
    limits[0] = bets.bound(losses, 0.1 * DELTA / 3 * factor) + 1e-11
    value = -np.mean(2 * limits - 1) * np.where(claim.direction == "lower", 1, -1)
    moved = changed(study, "cross-validation.baseline", limits=limits)
    claims = tuple(
        replace(one, value=float(value - 1e-9 if one.direction == "lower" else value + 1e-9))
        if one.name == "cross-validation.baseline" else one
        for one in moved.certificate.claims
    )  # fmt: skip
    moved = replace(moved, certificate=replace(moved.certificate, claims=claims))
    assert (status(moved, "cross-validation.baseline") == "PROVED-GIVEN") == (factor < 1)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_constants_of_betting_are_noticed(factor):
    study = learnt(numbers(240, 12), learners=["Ridge"])
    for claimed, share in (("cross-validation.mean-loss", 0.9), ("cross-validation.median", 0.1)):
        claim = study.certificate.find(claimed)
        low, high, limits = (np.array(claim.witness[name]) for name in ("low", "high", "limits"))
        for k, one in enumerate(study.folds):
            target = np.array(study.table.column("y").values())[one.held]
            answers = one.model.predict(study.table.take(one.held))
            target, guess = (np.clip(part, low[k], high[k]) for part in (target, answers))
            losses = np.abs(target - guess) / (high[k] - low[k])
            if claimed == "cross-validation.median":
                losses = (losses - np.abs(target - one.baseline) / (high[k] - low[k]) + 1) / 2
            losses = losses[order_of(study, one.held)]
            limits[k] = bets.bound(losses + 1e-10, share * DELTA / 3 * factor) + 1e-10
        value = float(np.mean((limits if claimed == "cross-validation.mean-loss" else 2 * limits - 1) * (high - low)))
        value = value + 1e-8 if claim.direction == "upper" else -value - 1e-8
        moved = changed(study, claimed, limits=limits)
        claims = moved.certificate.claims
        claims = tuple(replace(one, value=value) if one.name == claimed else one for one in claims)
        moved = replace(moved, certificate=replace(moved.certificate, claims=claims))
        assert (status(moved, claimed) == "PROVED-GIVEN") == (factor < 1), claimed


def resealed(study, **parts):
    """The study with another stored model inside its table model, and the certificate's fingerprint made anew."""
    stored = study.model.stored()
    inner = replace(stored.members[0], **parts)
    model = built(StoredModel(stored.learner, stored.family, stored.parameters, stored.arrays, (inner,)))
    certificate = replace(study.certificate, model=model_reference(model))
    return replace(study, model=model, certificate=certificate)


def test_forged_models_are_refused():
    study = learnt(numbers(240, 10), learners=["Ridge"])
    inner = study.model.stored().members[0]
    wide = resealed(study, arrays={"range_": inner.arrays["range_"] * 3})
    assert status(wide, "cross-validation.mean-loss") == "REJECTED"
    for parts in (
        {"members": inner.members[:1]},
        {"arrays": {"range_": inner.arrays["range_"][::-1].copy()}},
        {"members": tuple(one.members[0] for one in inner.members)},
    ):
        with pytest.raises(Exception, match=r"fold|range_|column|words|table"):
            resealed(study, **parts)


# Simulations against a known truth


def violated(draws: int, confidence: str) -> np.ndarray:
    """How often a true value lies beyond what is claimed: the error rate of any fold's model, the mean of them, that of
    the vote, the mean less the baseline's; and that of any fold's model beyond a limit at the whole delta.

    y is "b" iff a > 0, turned over with a chance of 0.2: an error rate is known from the decisions on a grid of
    normal quantiles of a and b, up to 0.01; that of a constant is 0.5.
    """
    grid = stats.norm.ppf((np.arange(60) + 0.5) / 60)
    a, b = (part.ravel() for part in np.meshgrid(grid, grid))
    rows, failed = assay.data.read({"a": a, "b": b}), np.zeros(5, dtype=int)
    for seed in range(draws):
        table = {name: part for name, part in columns(40, seed).items() if name != "level"}
        study, y = learnt(table, confidence=confidence, learners=["GaussianNB"]), np.array(table["y"])
        *risks, vote = (
            np.mean(np.where((one.predict(rows) == "b") == (a > 0), 0.2, 0.8)) - 0.01
            for one in (*(one.model for one in study.folds), study.model)
        )
        claim = next((one for one in study.certificate.claims if one.name == "cross-validation.mean"), None)
        beside = study.certificate.find("cross-validation.baseline")
        wrong = [one.model.predict(study.table.take(one.held)) != y[one.held] for one in study.folds]
        whole = [stats.beta.ppf(1 - 0.9 * (1 - float(confidence)), one.sum() + 1, (~one).sum()) for one in wrong]
        failed += [
            claim is not None and np.any(risks > claim.witness["limits"]),
            claim is not None and np.mean(risks) > claim.value,
            claim is not None and vote > study.chosen.bound,
            np.mean(risks) - 0.5 > (beside.value if beside.direction == "upper" else -beside.value),
            np.any(risks > np.array(whole)),
        ]
    return failed


@pytest.mark.filterwarnings("ignore")
def test_bounds_hold_as_often_as_they_say():
    """Were delta not divided among the folds, one of the limits would fail too often, and this would show it."""
    draws = 150
    allowed = stats.binom.ppf(0.999, draws, 0.45)
    *failed, beside, undivided = violated(draws, "0.5")
    assert max(failed) <= allowed < undivided
    assert beside <= stats.binom.ppf(0.9999, draws, 0.05)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("confidence", ["0.5", "0.9"])
def test_bounds_hold_as_often_as_they_say_over_many_draws(confidence):
    draws, delta = 400, 1 - float(confidence)
    *failed, beside, _ = violated(draws, confidence)
    assert max(failed) <= stats.binom.ppf(0.999, draws, 0.9 * delta)
    assert beside <= stats.binom.ppf(0.999, draws, 0.1 * delta)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_bounds_of_numbers_hold_as_often_as_they_say_over_many_draws():
    """y = a + 0.3 t, t Student's with 3 degrees of freedom: the true mean losses from 200,000 new rows.

    Of the models and of the baselines they are those of targets within the range outside the fold, as is claimed; of
    the mean of the models, within its own.
    """
    new = numbers(200_000, 10**6)
    target, rows, draws = np.array(new["y"]), assay.data.read({"a": new["a"], "b": new["b"]}), 200
    failed = np.zeros(3, dtype=int)
    for seed in range(draws):
        study = learnt(numbers(90, seed), learners=["Ridge"], confidence="0.5")
        claim, beside = (
            study.certificate.find(claimed) for claimed in ("cross-validation.mean-loss", "cross-validation.median")
        )
        low, high = (claim.witness[name] for name in ("low", "high"))
        loss, base = np.empty(3), np.empty(3)
        for k, one in enumerate(study.folds):
            within = np.clip(target, low[k], high[k])
            loss[k] = np.mean(np.abs(within - np.clip(one.model.predict(rows), low[k], high[k])))
            base[k] = np.mean(np.abs(within - one.baseline))
        ends = study.model.learner.range_
        own = np.mean(np.abs(np.clip(target, *ends) - study.model.predict(rows)))
        failed += [
            np.any(loss > claim.witness["limits"] * (high - low)),
            max(own, loss.mean()) > study.chosen.bound,
            np.mean(loss - base) > (beside.value if beside.direction == "upper" else -beside.value),
        ]
    assert max(failed[:2]) <= stats.binom.ppf(0.999, draws, 0.45)
    assert failed[2] <= stats.binom.ppf(0.999, draws, 0.05)
