"""Alarms about a promise, and limits that hold at every moment: exact chances by counting paths, and simulations."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from assay.theory.sequential import Promise, mean_always


@pytest.mark.parametrize("bound", [0.03, 0.3])
def test_the_evidence_is_expected_to_stay_one_when_losses_are_just_what_was_promised(bound: float) -> None:
    expected = 0.0
    for path in product([0, 1], repeat=9):
        watched = Promise(bound)
        watched.see(path)
        expected += watched.evidence * bound ** sum(path) * (1 - bound) ** (len(path) - sum(path))
    assert expected == pytest.approx(1.0, rel=1e-9)


def test_the_chance_of_an_alarm_on_all_paths_is_at_most_the_alarm() -> None:
    """Every path of 12 losses, with its chance: no simulation, no luck."""
    bound, alarm, chance = 0.2, 0.3, 0.0
    for path in product([0, 1], repeat=12):
        watched = Promise(bound, alarm)
        watched.see(path)
        chance += watched.broken * bound ** sum(path) * (1 - bound) ** (len(path) - sum(path))
    assert 0.01 < chance <= alarm  # and it is not idle


def simulated(rng: np.random.Generator, draw, bound: float, alarm: float, trials: int, rows: int) -> list[int | None]:
    """Return when each of some streams made an alarm."""
    found = []
    for _ in range(trials):
        watched = Promise(bound, alarm)
        watched.see(draw(rng, rows))
        found.append(watched.alarmed_at)
    return found


def coins(p: float):
    return lambda rng, rows: (rng.random(rows) < p).astype(float)


@pytest.mark.parametrize(
    ("draw", "bound"),
    [(coins(0.05), 0.05), (lambda rng, rows: rng.beta(0.2, 1.8, rows), 0.1), (coins(0.02), 0.05)],
    ids=["classes", "numbers", "better than promised"],
)
def test_false_alarms_are_as_rare_as_said(draw, bound: float) -> None:
    """Looked at after each of 300 losses, at 10 %: of 200 streams, more than 33 has a chance below 0.1 %."""
    alarms = simulated(np.random.default_rng(5), draw, bound, 0.1, 200, 300)
    assert sum(one is not None for one in alarms) <= 33


@pytest.mark.long(by_hand="minutes")
def test_false_alarms_over_long_streams() -> None:
    alarms = simulated(np.random.default_rng(6), coins(0.05), 0.05, 0.01, 2000, 3000)
    assert stats.binomtest(sum(one is not None for one in alarms), 2000, 0.01, "greater").pvalue > 1e-3


def test_a_promise_that_breaks_is_noticed_soon_also_when_it_breaks_late() -> None:
    rng = np.random.default_rng(7)
    at_once = simulated(rng, coins(0.2), 0.05, 0.01, 30, 400)
    assert all(one is not None and one < 250 for one in at_once)
    for kept in (1000, 5000):
        late = simulated(
            rng, lambda r, n, kept=kept: np.append(r.random(kept) < 0.04, r.random(n) < 0.2) * 1.0, 0.05, 0.01, 5, 600
        )
        assert all(one is not None and one < kept + 500 for one in late)


def test_limits_at_all_times_fail_together_with_the_stated_chance() -> None:
    """The exact chance that the limits ever miss the mean, by recursion over the number of errors, 90 rows long."""
    p, delta, rows = 0.15, 0.1, 90
    alive, missed = np.array([1.0]), 0.0
    for n in range(1, rows + 1):
        alive = np.append(alive * (1 - p), 0.0) + np.append(0.0, alive * p)
        inside = [low <= p <= high for low, high in (mean_always(k, n, delta) for k in range(n + 1))]
        missed += float(alive[~np.array(inside)].sum())
        alive = np.where(inside, alive, 0.0)
    assert 0.01 < missed <= delta
    assert missed + alive.sum() == pytest.approx(1.0)


def test_limits_are_around_the_mean_and_narrow_with_rows() -> None:
    assert mean_always(0, 0, 0.05) == (0.0, 1.0)
    widths = []
    for n in (10, 100, 1000, 100_000):
        low, high = mean_always(0.3 * n, n, 0.05)
        assert 0 <= low <= 0.3 <= high <= 1
        widths.append(high - low)
    assert sorted(widths, reverse=True) == widths
    assert mean_always(0, 50, 0.05)[0] == 0.0
    assert mean_always(50, 50, 0.05)[1] == 1.0


def test_a_record_goes_on_where_it_was_written() -> None:
    rng = np.random.default_rng(1)
    losses = rng.random(60) ** 4
    whole, first = Promise(0.3), Promise(0.3)
    whole.see(losses)
    first.see(losses[:20])
    again = Promise.from_plain(first.plain())
    again.see(losses[20:])
    assert again.plain() == whole.plain()


@pytest.mark.parametrize("change", [{"money": [1.0]}, {"count": -1}, {"total": 1e9}, {"bound": 0}, {"most": "x"}])
def test_a_record_that_is_none_is_refused(change) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        Promise.from_plain(Promise(0.1).plain() | change)


@pytest.mark.parametrize("loss", [-0.1, 1.5, float("nan")])
def test_losses_outside_the_range_are_refused(loss: float) -> None:
    with pytest.raises(ValueError, match="losses"):
        Promise(0.1).see([loss])
