"""Tails against exact integers and scipy.stats, and how many terms they take at two million rows."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from assay.checker.bounds import tails
from tests.certificate import exact_counts

SLIP = Decimal("1e-25")


def check(bounds: tails.LogBounds, truth: Fraction, width: float) -> None:
    if truth == 0:
        assert bounds.high == Decimal("-Infinity")
        return
    log = tails.ln(truth)
    assert bounds.low - SLIP <= log <= bounds.high + SLIP
    assert float(bounds.high - bounds.low) <= width


@pytest.mark.parametrize("seed", range(10))
def test_binomial_against_integers(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        m = int(rng.integers(1, 90))
        k, p = (
            int(rng.integers(-1, m + 2)),
            Fraction(float(rng.choice([rng.uniform(0, 1), 10.0 ** -rng.uniform(1, 9)]))),
        )
        truth = exact_counts.binomial_at_most(k, m, p) if k >= 0 else Fraction(0)
        check(tails.binomial_at_most(k, m, p), truth, 1e-11)
        check(
            tails.binomial_at_least(k, m, p),
            1 - exact_counts.binomial_at_most(k - 1, m, p) if k > 0 else Fraction(1),
            1e-11,
        )


@pytest.mark.parametrize("seed", range(10))
def test_hypergeometric_against_integers(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        total = int(rng.integers(1, 90))
        marked, drawn = int(rng.integers(0, total + 1)), int(rng.integers(0, total + 1))
        k = int(rng.integers(-1, drawn + 2))
        truth = exact_counts.hypergeometric_at_most(k, total, marked, drawn) if k >= 0 else Fraction(0)
        check(tails.hypergeometric_at_most(k, total, marked, drawn), truth, 1e-11)


@pytest.fixture
def terms(monkeypatch):
    """The number of terms that a tail was summed from, as a list."""
    found, plain = [], tails._sum

    def counted(first, most, ratio):
        def spy(places):
            found.append(np.size(places))
            return ratio(places)

        return plain(first, most, spy)

    monkeypatch.setattr(tails, "_sum", counted)
    return found


@pytest.mark.parametrize("k", [0, 10, 99_000, 100_000, 101_000])
def test_large_binomial_against_scipy_takes_few_terms(k, terms):
    m, p = 500_000, (k + 600.5) / 500_000
    bounds = tails.binomial_at_most(k, m, Fraction(p))
    assert sum(terms) <= 20_000  # of up to 101,001: those beyond are bounded by a geometric series
    assert float(bounds.low) == pytest.approx(stats.binom.logcdf(k, m, p), rel=1e-7)
    assert 0 < bounds.high - bounds.low < 1e-10


@pytest.mark.parametrize("marked", [510_000, 530_000, 600_000])
def test_large_hypergeometric_against_scipy_takes_few_terms(marked, terms):
    bounds = tails.hypergeometric_at_most(100_000, 2_500_000, marked, 500_000)
    assert 0 < sum(terms) <= 20_000
    if marked < 600_000:  # scipy underflows beyond
        assert float(bounds.low) == pytest.approx(stats.hypergeom.logcdf(100_000, 2_500_000, marked, 500_000), rel=1e-7)
    assert 0 < bounds.high - bounds.low < 1e-10


def test_factorials_by_stirling_meet_the_integers():
    import math

    for n in (401, 402, 1000, 5000):
        assert abs(tails.ln_factorial(n) - tails.ln(math.factorial(n))) < Decimal("1e-24")
