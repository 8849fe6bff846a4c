"""holdout.median: a regression against the median of the training rows; holdout.groups: hold-out groups as the draws,
also against both."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

import assay
from assay import verify
from assay.guarantees.ledger import CertifyOptions
from assay.guarantees.seal import issue
from assay.linear_model import LinearRegression, LogisticRegression
from tests.certificate import bets

CLIP = 4.0


def regression(seed, n=160, signal=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, signal * X[:, 0] + rng.normal(size=n)


def grouped(seed, groups=40, size=6, shift=1.0, numbers=False):
    """Rows of groups; each group has a shift of its own that no column tells."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), size)
    X = rng.normal(size=(len(group), 2))
    score = 2 * X[:, 0] + shift * rng.normal(size=groups)[group] + 0.5 * rng.normal(size=len(group))
    return X, score if numbers else (score > 0).astype(int), group


def certified(model, X, y, train, delta=0.05, **asked):
    model = model.fit(X[:train], y[:train])
    cut = model._cut(X, y, None, np.arange(train, len(y)))
    return model, issue(model, cut, delta=Decimal(str(delta)), asked=CertifyOptions(baseline=True, **asked))


def judged(certificate, model, X, y, name, group=None):
    columns = {} if group is None else {"group": group}
    report = verify(certificate, model, X, y, columns=columns)
    return next((one for one in report.verdicts if one.claim == name), report.structure).status


def against_median(seed, delta=0.05, **more):
    X, y = regression(seed, **more)
    model, certificate = certified(LinearRegression(), X, y, len(y) // 2, delta, clip=CLIP)
    return model, certificate, X, y


def test_a_good_regression_is_proved_to_beat_the_median_and_noise_is_not():
    model, certificate, X, y = against_median(0, n=800, signal=2.0)
    claim = certificate.find("holdout.median")
    assert (claim.direction, judged(certificate, model, X, y, "holdout.median")) == ("lower", "PROVED-GIVEN")
    assert claim.params["constant"] == np.sort(y[:400])[199]
    own = np.minimum(np.abs(y[400:] - model.predict(X[400:])), CLIP).mean()
    other = np.minimum(np.abs(y[400:] - claim.params["constant"]), CLIP).mean()
    assert 0.5 * (other - own) < claim.value < other - own
    assert "below that of always predicting" in claim.statement
    model, certificate, X, y = against_median(0, signal=0.0)
    claim = certificate.find("holdout.median")
    assert (claim.direction, judged(certificate, model, X, y, "holdout.median")) == ("upper", "PROVED-GIVEN")


@pytest.mark.parametrize(
    "change", [{"constant": 0.0}, {"clip": 1.0}, {"rows": 5}, {"more": 1}, {"constant": "a"}], ids=str
)
def test_a_forged_comparison_with_the_median_is_rejected(change):
    model, certificate, X, y = against_median(1, n=400, signal=2.0)
    claims = [
        replace(one, params={**one.params, **change}) if one.name == "holdout.median" else one
        for one in certificate.claims
    ]
    assert judged(replace(certificate, claims=tuple(claims)), model, X, y, "holdout.median") == "REJECTED"
    better = [
        replace(one, value=one.value + 1e-4) if one.name == "holdout.median" else one for one in certificate.claims
    ]
    assert judged(replace(certificate, claims=tuple(better)), model, X, y, "holdout.median") == "REJECTED"


def test_the_comparison_with_the_median_fails_no_more_often_than_its_delta():
    failures = 0
    for seed in range(100):
        model, certificate, _, y = against_median(seed, delta=0.5, n=60, signal=0.3)
        claim = certificate.find("holdout.median")
        X, truth = regression(10_000 + seed, n=20_000, signal=0.3)
        constant = np.sort(y[:30])[14]
        own, other = (np.minimum(np.abs(truth - p), CLIP).mean() for p in (model.predict(X), constant))
        failures += own - other > (claim.value if claim.direction == "upper" else -claim.value) + 0.005
    assert failures <= 100 * 0.05 + 3 * np.sqrt(100 * 0.05)  # a tenth of delta stands beside the other bounds


def group_bound(seed, numbers=False, delta=0.05, **more):
    X, y, group = grouped(seed, numbers=numbers, **more)
    half = len(y) // 2
    asked = {"groups": group[half:], **({"clip": CLIP} if numbers else {})}
    kind = LinearRegression() if numbers else LogisticRegression()
    return (*certified(kind, X, y, half, delta, **asked), X, y, group)


@pytest.mark.parametrize("numbers", [False, True])
def test_groups_are_the_draws(numbers):
    model, certificate, X, y, group = group_bound(0, numbers, groups=80)
    claim = certificate.find("holdout.groups")
    assert [one.name for one in certificate.claims if not one.is_fact] == ["holdout.groups", "holdout.groups-baseline"]
    assert judged(certificate, model, X, y, "holdout.groups", group) == "PROVED-GIVEN"
    assert judged(certificate, model, X, y, "holdout.groups") == "REFUSED"
    half = len(y) // 2
    own = model.predict(X[half:])
    losses = np.minimum(np.abs(own - y[half:]), CLIP) if numbers else own != y[half:]
    mean = np.mean([losses[group[half:] == g].mean() for g in np.unique(group[half:])])
    assert mean < claim.value < mean + 0.25 * claim.params["clip"]
    assert claim.params["groups"] == 40
    assert "new groups" in claim.statement


@pytest.mark.parametrize("change", [{"groups": 19}, {"rows": 5}, {"clip": 2.0}, {"more": 1}], ids=str)
def test_forged_groups_are_rejected(change):
    model, certificate, X, y, group = group_bound(1)
    name = "holdout.groups"

    def with_claim(**changes):
        claims = [replace(one, **changes) if one.name == "holdout.groups" else one for one in certificate.claims]
        return replace(certificate, claims=tuple(claims))

    claim = certificate.find("holdout.groups")
    assert judged(with_claim(params={**claim.params, **change}), model, X, y, name, group) == "REJECTED"
    assert judged(with_claim(value=claim.value - 1e-4), model, X, y, name, group) == "REJECTED"
    finer = np.arange(len(group))
    assert judged(certificate, model, X, y, name, finer) == "REJECTED"
    assert judged(certificate, model, X, y, name, group[::-1]) == "REJECTED"
    assert judged(certificate, model, X, y, name, group[1:]) == "REJECTED"
    witness = {"group": finer[len(y) // 2 :]}
    assert judged(with_claim(witness=witness), model, X, y, name, group) == "REJECTED"
    assert judged(with_claim(params={**claim.params, "group": "other"}), model, X, y, name, group) == "REFUSED"


def test_the_bound_of_groups_fails_no_more_often_than_its_delta():
    """Rows of one group share much: counted as single draws, they would promise too much."""
    failures = 0
    for seed in range(120):
        model, certificate, *_ = group_bound(seed, delta=0.2, groups=24, size=10, shift=6.0)
        X, y, _ = grouped(20_000 + seed, groups=800, size=10, shift=6.0)
        wrong = model.predict(X) != y
        failures += np.mean(wrong) > certificate.find("holdout.groups").value + 0.01
    assert failures <= 120 * 0.2 + 3 * np.sqrt(120 * 0.2 * 0.8)


def test_a_study_of_numbers_says_whether_the_median_is_beaten():
    X, y = regression(0, n=600, signal=2.0)
    study = assay.learn({"a": X[:, 0], "b": X[:, 1], "y": y}, "y", learners=["Ridge"], trials=1, workers=0)
    assert study.certificate.find("holdout.median").direction == "lower"
    assert "proved to beat always predicting the median" in study.why


def test_too_few_groups_prove_nothing():
    X, y, group = grouped(0, groups=4)
    table = {"a": X[:, 0], "b": X[:, 1], "who": group.astype(float), "y": np.where(y, "yes", "no")}
    study = assay.learn(table, "y", group="who", learners=["LogisticRegression"], trials=1, workers=0)
    assert study.chosen.bound is None
    assert "too few groups" in study.why


def told(y):
    return [str(label) for label in y.tolist()] if y.dtype.kind == "i" else y


@pytest.mark.parametrize("factor", [0.9, 1.1])
@pytest.mark.parametrize("groups", [24, 80])
def test_the_constants_of_the_bound_of_groups_are_noticed(groups, factor):
    """Bounds at a delta that is wrong by a tenth, recomputed from the losses: only the weaker ones are accepted."""
    model, certificate, X, y, group = group_bound(3, groups=groups, shift=3.0)
    half, claim = len(y) // 2, certificate.find("holdout.groups")
    wrong = model.predict(X[half:]) != y[half:]
    means = [wrong[group[half:] == g].mean() for g in np.unique(group[half:])]
    order = bets.of_groups(X[half:], told(y[half:]), group[half:] - group[half])
    value = bets.bound([means[i] for i in order], float(claim.delta) / factor)
    moved = [replace(one, value=value + 1e-9) if one is claim else one for one in certificate.claims]
    status = judged(replace(certificate, claims=tuple(moved)), model, X, y, "holdout.groups", group)
    assert status == ("PROVED-GIVEN" if factor > 1 else "REJECTED")


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_constants_of_the_comparison_with_the_median_are_noticed(factor):
    model, certificate, X, y = against_median(2, n=400, signal=2.0)
    claim, half = certificate.find("holdout.median"), 200
    own, other = (np.minimum(np.abs(y[half:] - p), CLIP) for p in (model.predict(X[half:]), claim.params["constant"]))
    moved = ((own - other) / CLIP + 1) / 2
    order = bets.of_rows(X[half:], y[half:])
    value = -CLIP * (2 * bets.bound(moved[order], float(claim.delta) / factor) - 1)
    claims = [replace(one, value=value - 1e-7) if one is claim else one for one in certificate.claims]
    status = judged(replace(certificate, claims=tuple(claims)), model, X, y, "holdout.median")
    assert status == ("PROVED-GIVEN" if factor > 1 else "REJECTED")


def apart(model, X, y, group, constant, numbers):
    """The mean of each group of the model's loss less that of the constant."""
    own = model.predict(X)
    if numbers:
        losses = np.minimum(np.abs(own - y), CLIP) - np.minimum(np.abs(y - constant), CLIP)
    else:
        losses = (own != y).astype(float) - (y != constant)
    return np.array([losses[group == g].mean() for g in np.unique(group)])


@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("groups", [24, 160])
def test_the_baseline_is_compared_over_groups(numbers, groups):
    model, certificate, X, y, group = group_bound(0, numbers, groups=groups, shift=1.0)
    claim, half = certificate.find("holdout.groups-baseline"), len(y) // 2
    assert [one.name for one in certificate.claims if not one.is_fact] == ["holdout.groups", "holdout.groups-baseline"]
    assert sum(float(one.delta) for one in certificate.claims if not one.is_fact) <= 0.05
    assert judged(certificate, model, X, y, "holdout.groups-baseline", group) == "PROVED-GIVEN"
    constant = np.sort(y[:half])[(half - 1) // 2] if numbers else model.classes_[np.bincount(y[:half]).argmax()]
    stated = claim.value if claim.direction == "upper" else -claim.value
    mean = apart(model, X[half:], y[half:], group[half:], constant, numbers).mean()
    assert mean < stated < mean + 0.9 * claim.params["clip"]
    assert "new groups" in claim.statement


@pytest.mark.parametrize("numbers", [False, True])
def test_forged_comparisons_over_groups_are_rejected(numbers):
    model, certificate, X, y, group = group_bound(1, numbers, groups=160, shift=1.0)
    claim, name = certificate.find("holdout.groups-baseline"), "holdout.groups-baseline"

    def status(**changes):
        claims = [replace(one, **changes) if one is claim else one for one in certificate.claims]
        return judged(replace(certificate, claims=tuple(claims)), model, X, y, name, group)

    assert status() == "PROVED-GIVEN"
    better = 1e-4 if claim.direction == "lower" else -1e-4
    assert status(value=claim.value + better) == "REJECTED"
    other = {"constant": claim.params["constant"] + 1.0} if numbers else {"label": 1 - claim.params["label"]}
    for change in (other, {"rows": 5}, {"groups": 7}, {"more": 1}):
        assert status(params={**claim.params, **change}) == "REJECTED"
    assert status(witness={"group": np.arange(len(y) // 2)}) == "REJECTED"
    assert judged(certificate, model, X, y, name, np.arange(len(y))) == "REJECTED"


@pytest.mark.parametrize("factor", [0.9, 1.1])
@pytest.mark.parametrize("groups", [24, 160])
def test_the_constants_of_the_comparison_over_groups_are_noticed(groups, factor):
    model, certificate, X, y, group = group_bound(4, groups=groups, shift=1.0)
    claim, half = certificate.find("holdout.groups-baseline"), len(y) // 2
    constant = model.classes_[np.bincount(y[:half]).argmax()]
    moved = (apart(model, X[half:], y[half:], group[half:], constant, False) + 1) / 2
    order = bets.of_groups(X[half:], told(y[half:]), group[half:] - group[half])
    g = bets.bound(moved[order], float(claim.delta) / factor)
    most = 2 * g - 1 + 1e-7
    direction = "lower" if most < 0 else "upper"
    claims = [replace(one, value=abs(most), direction=direction) if one is claim else one for one in certificate.claims]
    status = judged(replace(certificate, claims=tuple(claims)), model, X, y, "holdout.groups-baseline", group)
    assert status == ("PROVED-GIVEN" if factor > 1 else "REJECTED")


def test_the_comparison_over_groups_fails_no_more_often_than_its_delta():
    failures = 0
    for seed in range(60):
        model, certificate, _, y, _ = group_bound(seed, delta=0.999, groups=24, size=10, shift=6.0)
        claim = certificate.find("holdout.groups-baseline")
        X, new, group = grouped(20_000 + seed, groups=800, size=10, shift=6.0)
        constant = model.classes_[np.bincount(y[: len(y) // 2]).argmax()]
        truth = apart(model, X, new, group, constant, False).mean()
        failures += truth > (claim.value if claim.direction == "upper" else -claim.value) + 0.01
    assert failures <= 60 * 0.1 + 3 * np.sqrt(60 * 0.1 * 0.9)


def test_a_study_of_groups_says_whether_the_baseline_is_beaten():
    X, y, group = grouped(0, groups=200, shift=1.0)
    table = {"a": X[:, 0], "b": X[:, 1], "who": group.astype(float), "y": np.where(y, "yes", "no")}
    study = assay.learn(table, "y", group="who", learners=["LogisticRegression"], trials=1, workers=0)
    claim = study.certificate.find("holdout.groups-baseline")
    assert ("is proved to beat always predicting" in study.why) == (claim.direction == "lower")


@pytest.mark.filterwarnings("ignore::assay.guarantees.seal.RepeatedUseWarning")
def test_a_study_of_groups_that_proves_nothing_is_verified():
    """No claim names the column of groups, so that the seed could not tell what was drawn."""
    rng = np.random.default_rng(2)
    group = np.repeat([f"g{i}" for i in range(6)], 20)
    table = {"x": rng.normal(size=120), "group": group, "y": np.where(rng.random(120) < 0.5, "yes", "no")}
    found = assay.learn(table, "y", group="group", learners=["LogisticRegression"], trials=1, workers=0)
    assert not [one for one in found.certificate.claims if not one.is_fact]
    assert "Nothing is proved" in found.why
    assert verify(found.certificate, found.model, table).holds
