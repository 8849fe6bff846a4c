"""Boltzmann machines against enumeration, finite differences and moments; relaxation to local minima."""

import doctest
import itertools

import numpy as np
import pytest

from assay.neural_network import BoltzmannMachine, _boltzmann, learn_boltzmann
from assay.optim.descent import check_gradient


def machine(seed, n=4, scale=1.0):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.normal(scale=scale, size=(n, n)), 1)
    return BoltzmannMachine(W + W.T, rng.normal(size=n))


def by_hand(model):
    """Return exp(-E) / Z of every state, summed term by term."""
    n = len(model.thresholds)
    weight = {}
    for s in itertools.product((0, 1), repeat=n):
        energy = -sum(model.weights[i, j] * s[i] * s[j] for i in range(n) for j in range(i + 1, n))
        energy -= sum(model.thresholds[i] * s[i] for i in range(n))
        weight[s] = np.exp(-energy)
    total = sum(weight.values())
    return {s: value / total for s, value in weight.items()}


@pytest.mark.mission("NNW-35")
@pytest.mark.parametrize("seed", range(3))
def test_the_distribution_is_that_of_the_energy(seed):
    model = machine(seed)
    states, p = model.distribution()
    want = by_hand(model)
    assert p.sum() == pytest.approx(1.0)
    for s, value in zip(states.astype(int).tolist(), p, strict=True):
        assert value == pytest.approx(want[tuple(s)], rel=1e-12)


@pytest.mark.mission("NNW-35")
@pytest.mark.parametrize("seed", range(3))
def test_gibbs_sampling_leaves_the_distribution_as_it_is(seed):
    model = machine(seed)
    states, p = model.distribution()
    place = {tuple(s): k for k, s in enumerate(states.astype(int).tolist())}
    for unit in range(4):
        after = np.zeros(16)
        for k, s in enumerate(states.astype(int).tolist()):
            on = float(model.chance(s, unit)[0])
            for value, share in ((1, on), (0, 1 - on)):
                s[unit] = value
                after[place[tuple(s)]] += p[k] * share
        assert after == pytest.approx(p, rel=1e-12)
    drawn = model.sample(8000, random_state=seed)
    counts = np.bincount([place[tuple(s)] for s in drawn.tolist()], minlength=16) / 8000
    assert np.abs(counts - p).sum() < 0.06
    assert np.array_equal(drawn[:50], model.sample(50, random_state=seed))


@pytest.mark.mission("NNW-35")
@pytest.mark.parametrize("hidden", [0, 1, 2])
def test_the_gradient_of_the_likelihood(hidden):
    model = machine(5, n=3 + hidden)
    V = np.random.default_rng(5).integers(0, 2, (7, 3))
    by_weight, by_threshold = model.gradient(V)
    above = np.triu_indices(len(model.thresholds), 1)

    def value(vector):
        W = np.zeros_like(model.weights)
        W[above] = vector[: len(above[0])]
        return BoltzmannMachine(W + W.T, vector[len(above[0]) :]).log_likelihood(V)

    here = np.concatenate([model.weights[above], model.thresholds])
    assert check_gradient(value, np.concatenate([by_weight[above], by_threshold]), here) < 1e-7


@pytest.mark.mission("NNW-35")
def test_learning_raises_the_likelihood_until_moments_agree():
    truth = machine(1)
    V = truth.sample(400, random_state=0)
    found = learn_boltzmann(V, steps=3000, tol=1e-13)
    assert (np.diff(found.likelihoods) > 0).all()
    states, p = found.machine.distribution()
    assert p @ states == pytest.approx(V.mean(axis=0), abs=1e-4)
    assert (states * p[:, None]).T @ states == pytest.approx(V.T @ V / 400, abs=1e-4)
    assert found.machine.log_likelihood(V) >= truth.log_likelihood(V)


@pytest.mark.mission("NNW-35")
def test_hidden_units_hold_what_pairs_cannot():
    parity = [s for s in itertools.product((0, 1), repeat=3) if sum(s) % 2 == 0]  # all pairs independent
    plain = learn_boltzmann(parity)
    assert plain.likelihoods[-1] == pytest.approx(-3 * np.log(2), abs=1e-9)
    hidden = learn_boltzmann(parity, n_hidden=1, steps=2000, random_state=0)
    assert hidden.likelihoods[-1] > -2.5 * np.log(2)
    assert (np.diff(hidden.likelihoods) > 0).all()


@pytest.mark.mission("NNW-36")
@pytest.mark.parametrize("seed", range(6))
def test_relaxation_never_raises_the_energy_and_ends_in_a_minimum(seed):
    model = machine(seed, n=12, scale=2.0)
    start = np.random.default_rng(seed).integers(0, 2, 12)
    found = model.relax(start)
    assert (np.diff(found.energies) < 0).all()
    assert found.energies[0] == model.energy(start)[0]
    assert found.energies[-1] == model.energy(found.state)[0]
    for unit in range(12):
        other = found.state.copy()
        other[unit] = 1 - other[unit]
        assert model.energy(other)[0] >= found.energies[-1] - 1e-12


@pytest.mark.mission("NNW-36")
def test_a_stored_pattern_is_recalled_from_a_damaged_one():
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 2, (3, 60))
    memory = BoltzmannMachine.storing(patterns)
    for pattern in patterns:
        assert np.array_equal(memory.relax(pattern).state, pattern)
        damaged = pattern.copy()
        damaged[rng.permutation(60)[:8]] ^= 1
        assert np.array_equal(memory.relax(damaged).state, pattern)


@pytest.mark.parametrize(
    ("weights", "thresholds", "message"),
    [
        ([[0.0, 1.0]], [0.0], "weights must be"),
        ([[0.0, np.nan], [np.nan, 0.0]], [0.0, 0.0], "all finite"),
        ([[0.0, 1.0], [2.0, 0.0]], [0.0, 0.0], "symmetric"),
        ([[1.0, 0.0], [0.0, 0.0]], [0.0, 0.0], "zeros on the diagonal"),
    ],
)
def test_refusals(weights, thresholds, message):
    with pytest.raises(ValueError, match=message):
        BoltzmannMachine(weights, thresholds)


def test_what_is_too_large_or_not_binary_is_refused():
    with pytest.raises(ValueError, match="cannot be listed"):
        BoltzmannMachine(np.zeros((40, 40)), np.zeros(40)).distribution()
    with pytest.raises(ValueError, match="patterns must be a table of 0 and 1"):
        BoltzmannMachine.storing([[2, 3]])
    with pytest.raises(ValueError, match="a state has 3 units"):
        BoltzmannMachine.storing([[1, 0, 1]]).relax([1, 0])
    with pytest.raises(ValueError, match="table of 0 and 1"):
        learn_boltzmann([[0.5, 1.0]])


def test_docstring_examples():
    outcome = doctest.testmod(_boltzmann)
    assert outcome.attempted > 4
    assert outcome.failed == 0
