"""Search beyond one descent: kinds of stationary points, many starts, annealing, noise, evolution."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from assay.optim.descent import Schedule, Stop, acceptance, anneal, descend, evolve, multi_start, stationary_kind


def wells(x):
    """A double well with minima near -1 (higher) and +1 (lower)."""
    return float((x[0] ** 2 - 1) ** 2 - 0.3 * x[0])


@pytest.mark.mission("OPT-27")
def test_kinds_of_stationary_points():
    zero = np.zeros(2)
    assert stationary_kind(zero, np.diag([2.0, 2.0])) == "minimum"
    assert stationary_kind(zero, np.diag([-2.0, -2.0])) == "maximum"
    assert stationary_kind(zero, np.diag([2.0, -2.0])) == "saddle"
    assert stationary_kind(zero, np.diag([2.0, 0.0])) == "flat"
    assert stationary_kind([1.0, 0.0], np.eye(2)) == "not stationary"


@pytest.mark.mission("OPT-28")
def test_more_starts_are_never_worse():
    def run(start):
        found = minimize(wells, start)
        return found.x, found.fun

    starts = [[-1.5], [-0.5], [0.7], [2.0]]
    values = [multi_start(run, starts[: k + 1]) for k in range(4)]
    assert [one.value for one in values] == [min(run(np.array(s))[1] for s in starts[: k + 1]) for k in range(4)]
    assert values[0].value > values[3].value
    np.testing.assert_array_equal(values[3].history, np.minimum.accumulate([run(np.array(s))[1] for s in starts]))


@pytest.mark.mission("OPT-29")
def test_annealing_accepts_by_metropolis_and_finds_the_deeper_well():
    random = np.random.default_rng(0)
    for rise, temperature in ((0.5, 1.0), (1.0, 0.4)):
        accepted = np.mean(random.random(40_000) < acceptance(rise, temperature))
        assert accepted == pytest.approx(math.exp(-rise / temperature), abs=0.012)
    found = [anneal(wells, [-1.0], seed=seed, steps=1_500).x[0] > 0 for seed in range(100)]
    assert sum(found) >= 95


@pytest.mark.mission("OPT-30")
def test_noise_can_leave_a_shallow_well_and_plain_descent_cannot():
    def gradient(x, rows):
        return wells(x), np.array([4 * x[0] * (x[0] ** 2 - 1) - 0.3])

    def ends(noise, seed):
        return descend(gradient, [-1.0], schedule=Schedule(eta=0.05), stop=Stop(epochs=400), noise=noise, seed=seed).x[
            0
        ]

    assert ends(0.0, 0) < 0
    assert sum(ends(4.0, seed) > 0 for seed in range(20)) > 0


@pytest.mark.mission("OPT-31")
def test_evolution_beats_random_search_on_rastrigin():
    def rastrigin(x):
        return float(10 * len(x) + np.sum(x**2 - 10 * np.cos(2 * np.pi * x)))

    low, high = np.full(4, -5.12), np.full(4, 5.12)
    wins = 0
    for seed in range(5):
        found = evolve(rastrigin, low, high, seed=seed)
        assert (np.diff(found.history) <= 0).all()
        assert found.value == pytest.approx(rastrigin(found.x))
        budget = 40 + 100 * 38
        best = min(rastrigin(x) for x in np.random.default_rng(seed).uniform(low, high, size=(budget, 4)))
        wins += found.value < best
    assert wins == 5
    sides = np.full(4, 5.0)
    near, far = (evolve(lambda x: float(x @ x), -scale * sides, scale * sides) for scale in (1, 100))
    assert near.value < 1e-4
    np.testing.assert_allclose(far.x, 100 * near.x, rtol=1e-6)  # jumps are as wide as the box
    first = np.random.default_rng(0).uniform(low, high, size=(40, 4))
    bred = evolve(rastrigin, low, high, mutation=0.0)
    assert all(bred.x[j] in first[:, j] for j in range(4))  # crossover alone makes nothing new
    assert bred.value < min(rastrigin(x) for x in first)
