"""Rows of one source are said to differ no more often than promised: rare levels, ties, gaps, levels that are new."""

import numpy as np
import pytest
from scipy import stats

from assay.data import Column, ColumnType, Table
from assay.learning.memory import Drift, remember
from assay.theory import exchangeability

LEVELS = tuple("abcdefghijklmnopqrst")


def source(rng, n, kind):
    """Return a column of n rows of a source, always the same one."""
    if kind == "rare":
        weights = 1.0 / np.arange(1, 21) ** 2
        return rng.choice(20, n, p=weights / weights.sum()).astype(float)
    if kind == "two":
        return (rng.random(n) < 0.02).astype(float)
    if kind == "ties":
        return rng.poisson(1.0, n).astype(float)
    values = rng.normal(size=n)
    return np.where(rng.random(n) < 0.03, np.nan, values) if kind == "gaps" else values


def table(data, kind):
    nominal = kind in ("rare", "two")
    return Table([Column(ColumnType("c", "nominal", LEVELS) if nominal else ColumnType("c", "numeric"), data)])


def alarms(kind, trials, n, m, alarm):
    rng, count = np.random.default_rng(3), 0
    for _ in range(trials):
        drift = Drift(remember(np.arange(50.0), 1, table(source(rng, n, kind), kind)), ["c"])
        drift.see(table(source(rng, m, kind), kind))
        count += bool(drift.moved(alarm))
    return count


@pytest.mark.parametrize("kind", ["rare", "two", "ties", "gaps", "plain"])
@pytest.mark.parametrize(("n", "m"), [(300, 60), (90, 200)])
def test_false_alarms_are_as_rare_as_said(kind, n, m):
    """At 10 % instead of 1 %, so that 400 trials tell: more than 55 has a chance below 1 % at 10 %."""
    assert alarms(kind, 400, n, m, 0.1) <= 55


@pytest.mark.long
@pytest.mark.parametrize("kind", ["rare", "two", "ties", "gaps", "plain"])
def test_false_alarms_at_one_per_cent(kind):
    assert stats.binomtest(alarms(kind, 10_000, 300, 80, 0.01), 10_000, 0.01, "greater").pvalue > 1e-3


def test_a_level_that_training_rows_lack_is_a_value_of_its_own():
    rng = np.random.default_rng(0)
    told = []
    for shift in (0.0, 0.9):
        count = 0
        for _ in range(100):
            levels = LEVELS[:10]
            old = rng.integers(0, 10, 300).astype(float)
            held_strange = rng.random(100) < 0.1  # a tenth of the source is not among the levels
            kind = ColumnType("c", "nominal", levels)
            memory = remember(np.arange(100.0), 1, Table([Column(kind, np.append(old, np.where(held_strange, 10, 3)))]))
            new = np.where(rng.random(80) < max(0.1, shift), 10.0, rng.integers(0, 10, 80))
            drift = Drift(memory, ["c"])
            drift.see(Table([Column(kind, new)]))
            strange = drift._levels_differ(memory.columns[0], drift._new[0], 0.1)
            only = exchangeability.two_sided(
                int((new == 10).sum()), 180, int((new == 10).sum() + held_strange.sum()), 80
            )
            count += only <= 0.05
            assert strange >= (only <= 0.05)
        told.append(count)
    assert told[0] <= 12
    assert told[1] == 100


def test_tails_are_those_of_the_hypergeometric_distribution():
    for total, marked, drawn in [(30, 11, 7), (500, 40, 300), (9, 9, 4)]:
        for k in range(drawn + 1):
            exact = stats.hypergeom(total, marked, drawn)
            assert exchangeability.at_most(k, total, marked, drawn) == pytest.approx(exact.cdf(k), rel=1e-6, abs=1e-12)
            assert exchangeability.at_least(k, total, marked, drawn) == pytest.approx(
                exact.sf(k - 1), rel=1e-6, abs=1e-12
            )


def test_the_bound_for_many_rows_is_above_the_tail(monkeypatch):
    exact = [exchangeability.at_most(k, 600, 200, 150) for k in range(30, 60)]
    monkeypatch.setattr(exchangeability, "_EXACT", 0)
    bound = [exchangeability.at_most(k, 600, 200, 150) for k in range(30, 60)]
    assert all(a <= b for a, b in zip(exact, bound))
    assert bound[0] < 0.02


def test_the_rank_test_is_the_count_of_all_orders():
    """Of n old and m new numbers without ties, all orders are as likely: tails by listing them."""
    from itertools import combinations

    n, m = 4, 3
    orders = list(combinations(range(n + m), m))
    for j in range(1, n + 1):
        before = [sorted(set(range(n + m)) - set(new))[j - 1] - (j - 1) for new in orders]
        for r in range(m + 1):
            up = np.mean([one >= r for one in before])
            down = np.mean([one <= r for one in before])
            if r:
                assert exchangeability.at_most(j - 1, n + m, n, j + r - 1) == pytest.approx(up)
            assert exchangeability.at_least(j, n + m, n, j + r) == pytest.approx(down)


@pytest.mark.parametrize("kind", ["plain", "ties", "rare"])
def test_a_shift_is_seen(kind):
    rng = np.random.default_rng(1)
    drift = Drift(remember(np.arange(50.0), 1, table(source(rng, 600, kind), kind)), ["c"])
    new = source(rng, 300, kind)
    drift.see(table(np.where(rng.random(300) < 0.3, 4.0, new), kind))
    assert drift.moved() == ["c"]
