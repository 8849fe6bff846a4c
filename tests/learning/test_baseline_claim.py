"""P61: the chosen classifier against the commonest class of the training rows."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import multinomial

from assay import verify
from assay.guarantees.ledger import CertifyOptions
from assay.guarantees.seal import issue
from assay.linear_model import LogisticRegression
from assay.theory.concentration import clopper_pearson_lower, clopper_pearson_upper


def world(seed, n=160, share=0.3, signal=1.5):
    """Rows of two classes of which the second has that share; with no signal nothing can be learnt."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return rng.normal(size=(n, 2)) + signal * y[:, None], y


def certified(seed, delta=0.05, **more):
    from decimal import Decimal

    X, y = world(seed, **more)
    half = len(y) // 2
    model = LogisticRegression(C=1.0).fit(X[:half], y[:half])
    cut = model._cut(X, y, None, np.arange(half, len(y)))
    return model, issue(model, cut, delta=Decimal(str(delta)), asked=CertifyOptions(baseline=True)), X, y


def judged(certificate, model, X, y):
    verdicts = verify(certificate, model, X, y).verdicts
    return next(one for one in verdicts if one.claim == "holdout.baseline").status


def test_a_good_model_is_proved_to_beat_the_baseline_and_a_bad_one_is_not():
    model, certificate, X, y = certified(0, n=600, signal=3.0)
    claim = certificate.find("P61")
    assert (claim.direction, judged(certificate, model, X, y)) == ("lower", "PROVED-GIVEN")
    assert 0.05 < claim.value < 0.3
    assert "below that of always answering" in claim.statement
    model, certificate, X, y = certified(0, signal=0.0)
    assert (certificate.find("P61").direction, judged(certificate, model, X, y)) == ("upper", "PROVED-GIVEN")


def test_the_main_bound_keeps_nine_tenths():
    _, certificate, *_ = certified(0)
    assert float(certificate.find("P61").delta) <= 0.1 * 0.05
    assert float(certificate.find("P01").delta) >= 0.4 * 0.05  # the other half is for training rows


@pytest.mark.parametrize(
    "change",
    [{"label": 1}, {"alone": 0}, {"other_alone": 299}, {"high": 0.0}, {"low": 0.4}, {"rows": 5}, {"more": 1}],
    ids=lambda change: next(iter(change)),
)
def test_forged_numbers_are_rejected(change):
    model, certificate, X, y = certified(0, n=600, signal=2.0)
    claims = [
        replace(one, params={**one.params, **change}) if one.template == "P61/1" else one for one in certificate.claims
    ]
    assert judged(replace(certificate, claims=tuple(claims)), model, X, y) == "REJECTED"
    better = [replace(one, value=one.value + 1e-6) if one.template == "P61/1" else one for one in certificate.claims]
    assert judged(replace(certificate, claims=tuple(better)), model, X, y) == "REJECTED"


def test_it_fails_no_more_often_than_its_delta():
    """Worlds where the truth is known from many fresh rows; delta is large, so that failures would show."""
    failures = 0
    for seed in range(120):
        model, certificate, *_ = certified(seed, delta=0.5, signal=0.4)
        claim = certificate.find("P61")
        fresh, truth = world(10_000 + seed, n=20_000, signal=0.4)
        y = world(seed, signal=0.4)[1]
        commonest = np.bincount(y[:80]).argmax()
        difference = np.mean(model.predict(fresh) != truth) - np.mean(truth != commonest)
        failures += difference > (claim.value if claim.direction == "upper" else -claim.value) + 0.005
    assert failures <= 120 * 0.05 + 3 * np.sqrt(120 * 0.05)


@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_the_limits_fail_rarely_by_enumeration(delta):
    """All outcomes of 12 rows: this model alone wrong, that answer alone wrong, or neither; every share on a grid."""
    m = 12
    counts = [(a, b) for a in range(m + 1) for b in range(m + 1 - a)]
    limit = {
        (a, b): clopper_pearson_upper(a, m, delta / 2) - clopper_pearson_lower(b, m, delta / 2) for a, b in counts
    }
    for p, both in combinations(range(1, 10), 2):
        q = both - p
        law = multinomial(m, np.array([p, q, 10 - p - q]) / 10)
        failed = sum(law.pmf([a, b, m - a - b]) for a, b in counts if limit[a, b] < (p - q) / 10 - 1e-12)
        assert failed <= delta


def test_limits_that_are_no_shares_prove_nothing():
    model, certificate, X, y = certified(0, n=600, signal=2.0)
    for change in ({"low": 1.5}, {"low": 1.0}, {"low": 3.0, "other_alone": 0}, {"high": -0.1}, {"high": float("nan")}):
        claims = [
            replace(one, params={**one.params, **change}) if one.template == "P61/1" else one
            for one in certificate.claims
        ]
        assert judged(replace(certificate, claims=tuple(claims)), model, X, y) != "PROVED-GIVEN", change
