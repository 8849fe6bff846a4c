"""Radial basis functions and cascades: closed forms, classic tasks, the claim about their output weights."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

import assay
from assay.neural_network import (
    CascadeCorrelationClassifier,
    CascadeCorrelationRegressor,
    MLPClassifier,
    RBFClassifier,
    RBFRegressor,
)
from assay.neural_network._cascade import covariance

SQUARE = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
XOR = [0, 1, 1, 0]
SINE = np.linspace(-3, 3, 60)[:, None]


def spirals():
    """Return the two spirals of 97 points each that cascade-correlation was first shown on."""
    i = np.arange(97)
    angle, radius = i * np.pi / 16, 6.5 * (104 - i) / 104
    one = np.stack([radius * np.sin(angle), radius * np.cos(angle)], axis=1)
    return np.vstack([one, -one]), np.repeat([1, 0], 97)


def sound(model, X, y):
    certificate = model.certify(X, y)
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason
    return certificate


# Radial basis functions


@pytest.mark.mission("NNW-24")
def test_as_many_centres_as_rows_interpolate():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(25, 2)), rng.normal(size=25)
    model = RBFRegressor(centers=X, beta=2.0, alpha=0).fit(X, y)
    assert np.abs(model.predict(X) - y).max() < 1e-8
    assert sound(model, X, y).find("features.least-squares").value < 1e-15


@pytest.mark.mission("NNW-24")
def test_output_weights_are_those_of_ridge_on_the_bells():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 3)), rng.normal(size=(80, 2))
    model = RBFRegressor(12, centers="sample", beta="each", alpha=0.01, random_state=0).fit(X, y)
    bells = np.stack([np.exp(-b * ((X - c) ** 2).sum(axis=1)) for b, c in zip(model.betas_, model.centers_)], axis=1)
    ridge = Ridge(alpha=0.01 * len(X)).fit(bells, y)
    assert np.allclose(model.coef_, ridge.coef_, atol=1e-8)
    assert np.allclose(model.predict(X), ridge.predict(bells), atol=1e-9)


@pytest.mark.mission("NNW-25")
def test_xor_with_four_centres_is_exact():
    for seed in range(10):
        model = RBFClassifier(4, centers="sample", alpha=0, random_state=seed).fit(SQUARE, XOR)
        assert np.allclose(model.decision_function(SQUARE), [-1, 1, 1, -1], atol=1e-9)


@pytest.mark.mission("NNW-25")
def test_refinement_has_the_gradient_of_its_objective_and_lowers_it():
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
    model = RBFRegressor(4, alpha=0.1, random_state=0)
    shapes = ((4, 2), (4,), (2, 4), (2,))
    theta = rng.normal(size=4 * 2 + 4 + 8 + 2)
    slope = approx_fprime(theta, lambda t: model.slopes(t, shapes, X, Y)[0], 1e-7)
    assert np.allclose(model.slopes(theta, shapes, X, Y)[1], slope, atol=1e-5)
    y = np.sin(2 * SINE[:, 0])
    plain, refined = (RBFRegressor(4, refine=r, random_state=0).fit(SINE, y) for r in (False, True))
    assert refined.history_[-1].objective < 0.2 * plain.history_[-1].objective
    sound(refined, SINE, y)


@pytest.mark.mission("NNW-26")
def test_the_error_falls_with_the_number_of_centres():
    errors = [
        np.abs(RBFRegressor(q, random_state=0).fit(SINE, np.sin(SINE[:, 0])).predict(SINE) - np.sin(SINE[:, 0])).max()
        for q in (1, 2, 4, 8, 16)
    ]
    assert all(after < before for before, after in itertools.pairwise(errors))
    assert errors[-1] < 1e-2


def test_centres_and_widths_that_cannot_be_are_refused():
    for parameters, word in [
        ({"centers": np.zeros((2, 3))}, "centers must be"),
        ({"beta": -1.0}, "beta must be"),
        ({"beta": "wide"}, "beta must be"),
    ]:
        with pytest.raises(ValueError, match=word):
            RBFRegressor(**parameters).fit(SQUARE, XOR)


# Cascades


@pytest.mark.mission("NNW-32")
def test_every_seed_solves_xor_with_one_unit_and_parity():
    parity = np.array(list(itertools.product([0.0, 1.0], repeat=4)))
    for seed in range(10):
        model = CascadeCorrelationClassifier(random_state=seed).fit(SQUARE, XOR)
        assert model.n_units_ == 1
        assert model.predict(SQUARE).tolist() == XOR
        model = CascadeCorrelationClassifier(random_state=seed).fit(parity, parity.sum(axis=1) % 2)
        assert model.score(parity, parity.sum(axis=1) % 2) == 1


@pytest.mark.mission("NNW-32")
def test_every_seed_tells_two_spirals_apart():
    X, y = spirals()
    for seed in range(10):
        model = CascadeCorrelationClassifier(40, random_state=seed).fit(X, y)
        assert model.score(X, y) == 1
        assert model.n_units_ < 40
        values = [step.objective for step in model.history_]
        assert all(after <= before * (1 + 1e-9) for before, after in itertools.pairwise(values))
    assert sound(model, X, y).find("train.errors").value == 0


@pytest.mark.mission("NNW-32")
def test_a_candidate_climbs_the_covariance_with_the_residual():
    rng = np.random.default_rng(3)
    Z, E = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    E -= E.mean(axis=0)
    theta = rng.normal(size=4)
    V = np.tanh(Z @ theta[:3] + theta[3])
    by_hand = sum(abs(sum((V[p] - V.mean()) * (E[p, o] - E[:, o].mean()) for p in range(40))) for o in range(2))
    assert covariance(theta, Z, E)[0] == pytest.approx(-by_hand / 40)
    slope = approx_fprime(theta, lambda t: covariance(t, Z, E)[0], 1e-7)
    assert np.allclose(covariance(theta, Z, E)[1], slope, atol=1e-5)


@pytest.mark.mission("NNW-32")
def test_units_are_frozen_and_threads_change_nothing():
    X, y = spirals()
    with pytest.warns(ConvergenceWarning, match="units leave"):
        few, many = (CascadeCorrelationClassifier(k, random_state=0, n_jobs=k).fit(X, y) for k in (2, 3))
    assert np.array_equal(few.units_[:, :3], many.units_[:2, :3])
    assert np.array_equal(few.units_[:, -1], many.units_[:2, -1])


def test_few_rows_are_learnt_by_heart_and_rows_kept_out_prevent_it():
    """The notes' warning: on 40 noisy rows the free cascade is worse on new rows than one that stops in time."""
    rng = np.random.default_rng(0)
    worse = []
    for seed in range(5):
        X, new = rng.uniform(-1, 1, size=(40, 2)), rng.uniform(-1, 1, size=(500, 2))
        y, truth = X[:, 0] + 0.5 * rng.normal(size=40), new[:, 0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            free, held = (
                CascadeCorrelationRegressor(20, early_stopping=stop, random_state=seed).fit(X, y)
                for stop in (False, True)
            )
        assert np.mean((free.predict(X) - y) ** 2) < 0.5 * np.mean((held.predict(X) - y) ** 2)
        worse.append(np.mean((free.predict(new) - truth) ** 2) / np.mean((held.predict(new) - truth) ** 2))
        sound(held, X, y)
    assert min(worse) > 2


def test_every_seed_of_a_network_that_starts_several_times_solves_xor_and_parity():
    parity = np.array(list(itertools.product([0.0, 1.0], repeat=4)))
    for seed in range(10):
        options = {"solver": "lbfgs", "alpha": 1e-4, "n_restarts": 5, "max_iter": 500, "random_state": seed}
        assert MLPClassifier(3, "tanh", **options).fit(SQUARE, XOR).score(SQUARE, XOR) == 1
        net = MLPClassifier(8, "tanh", **options).fit(parity, parity.sum(axis=1) % 2)
        assert net.score(parity, parity.sum(axis=1) % 2) == 1


# The claim


@pytest.mark.parametrize("kind", [RBFClassifier, CascadeCorrelationClassifier])
def test_output_weights_that_are_not_the_best_are_found_out(kind):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(5, random_state=0).fit(X, y)
    certificate = sound(model, X, y)
    place = [claim.name for claim in certificate.claims].index("features.least-squares")
    claim = certificate.claims[place]

    def verdict(**changes):
        claims = list(certificate.claims)
        claims[place] = replace(claim, **changes)
        return assay.verify(replace(certificate, claims=tuple(claims)), model, X, y).holds

    assert not verdict(value=claim.value / 1e6)
    assert not verdict(params=claim.params | {"curvature": claim.params["curvature"] * 1e3})
    assert not verdict(params=claim.params | {"alpha": 1.0})
    assert not verdict(params=claim.params | {"rows": 59})
    moved = model.coef_.copy()
    moved[0, 0] += 1e-3
    model.coef_ = moved
    assert model.certify(X, y).find("features.least-squares").value > 1e-10


def test_a_cascade_whose_unit_sees_itself_is_rejected():
    from assay.checker.families.basis import read_cascade
    from assay.checker.record import Rejected

    units = np.zeros((2, 5))
    units[0, 3] = 1.0
    with pytest.raises(Rejected, match="sees itself"):
        read_cascade(units, np.ones((1, 4)), np.zeros(1), None)


def test_an_interrupt_keeps_the_cascade_so_far(monkeypatch):
    X, y = spirals()
    calls = []

    def candidate(self, *args):
        calls.append(1)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return real(self, *args)

    real = CascadeCorrelationClassifier._best_candidate
    monkeypatch.setattr(CascadeCorrelationClassifier, "_best_candidate", candidate)
    model = CascadeCorrelationClassifier(random_state=0).fit(X, y)
    assert model.n_units_ == 3
    sound(model, X, y)
