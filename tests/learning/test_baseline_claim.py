"""holdout.baseline: the chosen classifier against the commonest class of the training rows."""

from dataclasses import replace
from decimal import Decimal
from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import binom, multinomial

from assay import learn, verify
from assay.guarantees.ledger import CertifyOptions
from assay.guarantees.seal import issue
from assay.learning import baseline
from assay.learning.metrics import Metric
from assay.linear_model import LogisticRegression
from assay.theory.concentration import betting_upper, clopper_pearson_lower, clopper_pearson_upper


def world(seed, n=160, share=0.3, signal=1.5):
    """Rows of two classes of which the second has that share; with no signal nothing can be learnt."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return rng.normal(size=(n, 2)) + signal * y[:, None], y


def certified(seed, delta=0.05, **more):
    X, y = world(seed, **more)
    half = len(y) // 2
    model = LogisticRegression(C=1.0).fit(X[:half], y[:half])
    cut = model._cut(X, y, None, np.arange(half, len(y)))
    return model, issue(model, cut, delta=Decimal(str(delta)), asked=CertifyOptions(baseline=True)), X, y


def judged(certificate, model, X, y):
    return status(certificate, model, X, y, "holdout.baseline")


def status(certificate, model, X, y, name):
    return next(one for one in verify(certificate, model, X, y).verdicts if one.claim == name).status


def test_a_good_model_is_proved_to_beat_the_baseline_and_a_bad_one_is_not():
    model, certificate, X, y = certified(0, n=600, signal=3.0)
    claim = certificate.find("holdout.baseline")
    assert (claim.direction, judged(certificate, model, X, y)) == ("lower", "PROVED-GIVEN")
    assert 0.05 < claim.value < 0.3
    assert "below that of always predicting" in claim.statement
    model, certificate, X, y = certified(0, signal=0.0)
    assert (certificate.find("holdout.baseline").direction, judged(certificate, model, X, y)) == (
        "upper",
        "PROVED-GIVEN",
    )


def test_too_few_rows_for_any_difference_are_said_and_the_certificate_holds():
    """A difference of at most 1 says nothing, and was stated so closely that the checker refused it."""
    nothing = 0
    for seed in range(100):
        X, y = world(seed, n=30, share=0.5, signal=1.0)
        model = LogisticRegression(C=1.0).fit(X[:22], y[:22])
        cut = model._cut(X, y, None, np.arange(22, 30))
        certificate = issue(model, cut, delta=Decimal("0.0045"), asked=CertifyOptions(baseline=True))
        assert verify(certificate, model, X, y).holds
        nothing += "holdout.baseline" in [code for code, _ in certificate.unreported]
    assert nothing


def test_the_main_bound_keeps_nine_tenths():
    _, certificate, *_ = certified(0)
    assert float(certificate.find("holdout.baseline").delta) <= 0.1 * 0.05
    assert float(certificate.find("holdout.binomial").delta) >= 0.4 * 0.05  # the other half is for training rows


@pytest.mark.parametrize(
    "change",
    [{"label": 1}, {"alone": 0}, {"other_alone": 299}, {"rows": 5}, {"more": 1}],
    ids=lambda change: next(iter(change)),
)
def test_forged_numbers_are_rejected(change):
    model, certificate, X, y = certified(0, n=600, signal=2.0)
    claims = [
        replace(one, params={**one.params, **change}) if one.name == "holdout.baseline" else one
        for one in certificate.claims
    ]
    assert judged(replace(certificate, claims=tuple(claims)), model, X, y) == "REJECTED"
    better = [
        replace(one, value=one.value + 1e-6) if one.name == "holdout.baseline" else one for one in certificate.claims
    ]
    assert judged(replace(certificate, claims=tuple(better)), model, X, y) == "REJECTED"


def test_it_fails_no_more_often_than_its_delta():
    """Worlds where the truth is known from many fresh rows; delta is large, so that failures would show."""
    failures = 0
    for seed in range(120):
        model, certificate, *_ = certified(seed, delta=0.5, signal=0.4)
        claim = certificate.find("holdout.baseline")
        fresh, truth = world(10_000 + seed, n=20_000, signal=0.4)
        y = world(seed, signal=0.4)[1]
        commonest = np.bincount(y[:80]).argmax()
        difference = np.mean(model.predict(fresh) != truth) - np.mean(truth != commonest)
        failures += difference > (claim.value if claim.direction == "upper" else -claim.value) + 0.005
    assert failures <= 120 * 0.05 + 3 * np.sqrt(120 * 0.05)


@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_the_limits_fail_rarely_by_enumeration(delta):
    """All outcomes of 7 rows in order: this model alone wrong, that answer alone, or neither; shares on a grid."""
    outcomes = np.array(list(product([0.0, 0.5, 1.0], repeat=7)))
    limits = 2 * np.array([betting_upper(one, delta) for one in outcomes]) - 1
    alone, other = np.sum(outcomes == 1, axis=1), np.sum(outcomes == 0, axis=1)
    for p, both in combinations(range(1, 10), 2):
        q = both - p
        chance = (p / 10) ** alone * (q / 10) ** other * (1 - both / 10) ** (7 - alone - other)
        assert chance[limits < (p - q) / 10 - 1e-12].sum() <= delta


def changed(certificate, name, **changes):
    claims = [replace(one, **changes) if one.name == name else one for one in certificate.claims]
    return replace(certificate, claims=tuple(claims))


def test_the_sign_test_proves_that_a_model_is_better_where_bets_do_not():
    """39 rows against 14 of 250, at half of a tenth of .05: certificates of those that there are."""
    assert binom.cdf(14, 53, 0.5) <= 0.05 * 0.1 / 2
    only = 0
    for seed in range(40):
        model, certificate, X, y = certified(seed, n=240, signal=1.3)
        found = {one.name: one for one in certificate.claims}
        if "holdout.baseline-better" in found and found["holdout.baseline"].direction == "upper":
            only += 1
            claim = found["holdout.baseline-better"]
            assert claim.statement.startswith("On new data it errs less often than always predicting")
            counts = claim.params["alone"], claim.params["alone"] + claim.params["other_alone"]
            assert binom.cdf(*counts, 0.5) <= float(claim.delta)
            assert status(certificate, model, X, y, "holdout.baseline-better") == "PROVED-GIVEN"
    assert only >= 3


def test_both_statements_share_a_tenth_of_delta():
    _, certificate, *_ = certified(0, n=600, signal=3.0)
    deltas = [Decimal(certificate.find(code).delta) for code in ("holdout.baseline", "holdout.baseline-better")]
    assert deltas[0] == deltas[1]
    assert sum(deltas) <= Decimal("0.005")
    _, certificate, *_ = certified(0, signal=0.0)  # what is not proved is paid for all the same
    assert "holdout.baseline-better" in dict(certificate.unreported)


@pytest.mark.parametrize(
    "change",
    [{"label": 1}, {"alone": 0}, {"other_alone": 299}, {"rows": 5}, {"more": 1}],
    ids=lambda change: next(iter(change)),
)
def test_a_forged_sign_test_is_rejected(change):
    model, certificate, X, y = certified(0, n=600, signal=2.0)
    claim = certificate.find("holdout.baseline-better")
    assert verify(certificate, model, X, y).holds
    for forged in (
        {"params": {**claim.params, **change}},
        {"value": claim.value - 1e-6},
        {"value": 0.6},
        {"value": 0.0},
        {"direction": "lower"},
        {"delta": str(Decimal(claim.delta) / 2)},
        {"assumptions": ()},
    ):
        assert not verify(changed(certificate, "holdout.baseline-better", **forged), model, X, y).holds, forged


def test_the_sign_test_fails_rarely_by_enumeration():
    """All numbers of rows of 12 wrong for one alone; the other model is at least as good: nothing may be proved."""
    m, delta = 12, 0.05
    for p, q in [(0.1, 0.1), (0.3, 0.3), (0.45, 0.45), (0.3, 0.2), (0.8, 0.1)]:
        chance = 0.0
        for a in range(m + 1):
            for b in range(m + 1 - a):
                if b > a and clopper_pearson_upper(a, a + b, delta) <= 0.5:
                    chance += multinomial.pmf([a, b, m - a - b], m, [p, q, 1 - (p + q)])
        assert 0 <= chance <= delta
    # and the share itself: no limit lies below it more often than delta
    for p, q in [(0.1, 0.3), (0.2, 0.25), (0.05, 0.6)]:
        chance = 0.0
        for a in range(m + 1):
            for b in range(m + 1 - a):
                if a + b and clopper_pearson_upper(a, a + b, delta) < p / (p + q):
                    chance += multinomial.pmf([a, b, m - a - b], m, [p, q, 1 - (p + q)])
        assert chance <= delta


def test_it_is_seldom_said_to_be_better_where_it_is_not():
    """No signal: whatever was fitted is at most as good as the commonest class; delta is large."""
    said = sum("holdout.baseline-better" in {one.name for one in certified(seed, 0.5, signal=0.0, share=0.45)[1].claims}
               for seed in range(150))  # fmt: skip
    assert said <= 150 * 0.025 + 3 * np.sqrt(150 * 0.025)


def test_more_is_proved_than_by_two_limits():
    """What the difference of two Clopper-Pearson limits, each at half of delta, would be."""
    _, certificate, _, _ = certified(0, n=600, signal=2.0)
    claim = certificate.find("holdout.baseline")
    half, m = float(claim.delta) / 2, claim.params["rows"]
    two = clopper_pearson_lower(claim.params["other_alone"], m, half) - clopper_pearson_upper(
        claim.params["alone"], m, half
    )
    assert claim.direction == "lower"
    assert claim.value > two


def test_a_model_behind_the_baseline_is_called_that_in_the_first_sentence():
    rng = np.random.default_rng(0)
    noise = {"a": rng.normal(size=300), "y": rng.choice(["no", "yes"], 300, p=[0.8, 0.2])}
    study = learn(noise, "y", learners=["DecisionTreeClassifier"], trials=1, workers=0)
    assert study.chosen.loss > study.baseline.loss
    assert study.why.startswith("No model is better than always predicting no, whose error rate")


def test_who_asks_for_the_area_is_told_of_the_area():
    rng = np.random.default_rng(1)
    x = rng.normal(size=900)
    rows = {"x": x, "y": np.where(x + rng.normal(size=900) > 1.5, "yes", "no")}
    found = learn(rows, "y", metric="auc", learners=["LogisticRegression"], trials=1, workers=0)
    assert found.baseline.cv == 0.5
    assert "proved to rank rows better than chance, which has an area of one half" in found.why
    lost = learn(rows | {"y": rng.permutation(rows["y"])}, "y", metric="auc", learners=["LogisticRegression"], trials=1,
                 workers=0)  # fmt: skip
    assert "it is not proved to rank rows better than chance" in lost.why or lost.why.startswith("No model is better")


def test_one_that_could_not_be_finished_is_named():
    from types import SimpleNamespace

    from assay.learning.search import Candidate
    from assay.learning.verdict import _choice

    base = Candidate("Baseline", losses=[0.5], cv=0.5, note=baseline.in_words("no", "classify"))
    chosen = Candidate("Ridge", losses=[0.3, 0.31, 0.3], cv=0.3)
    better = Candidate("SVC", losses=[0.1, 0.11, 0.1], cv=0.1, status="left out")
    found = SimpleNamespace(
        chosen=chosen,
        baseline=base,
        candidates=[chosen, better, base],
        rows=(90, 30),
        metric=Metric("error"),
    )
    assert "SVC had 10.0 %, and could not be fitted" in _choice(found)
    found.candidates = [chosen, base]
    assert "was the best, or level with the best" in _choice(found)
