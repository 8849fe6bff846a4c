"""Restricted Boltzmann machines: scikit-learn's steps, exact sums against the general machine, bars and stripes."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn import neural_network
from sklearn.datasets import load_digits

import assay
from assay.neural_network import BernoulliRBM, BoltzmannMachine, DeepBeliefNetwork

RNG = np.random.default_rng(0)
ROWS = (RNG.uniform(size=(200, 6)) < RNG.uniform(0.2, 0.8, size=6)).astype(float)


def bars_and_stripes(n):
    """Return all n x n pictures whose rows, or columns, are each all on or all off."""
    lines = list(itertools.product((0.0, 1.0), repeat=n))
    return np.unique([np.repeat(line, n) for line in lines] + [np.tile(line, n) for line in lines], axis=0)


def general(model):
    """Return the same distribution as a machine in which any units may be connected."""
    h, d = model.components_.shape
    W = np.zeros((d + h, d + h))
    W[:d, d:], W[d:, :d] = model.components_.T, model.components_
    return BoltzmannMachine(W, np.concatenate([model.intercept_visible_, model.intercept_hidden_]))


@pytest.mark.mission("NNW-37")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_steps_are_scikit_learns(dtype):
    X = ROWS.astype(dtype)
    ours, theirs = (
        kind(n_components=9, learning_rate=0.05, batch_size=7, n_iter=4, random_state=3).fit(X)
        for kind in (BernoulliRBM, neural_network.BernoulliRBM)
    )
    close = {"rtol": 1e-10, "atol": 1e-12} if dtype is np.float64 else {"rtol": 1e-3, "atol": 1e-5}
    for name in ("components_", "intercept_hidden_", "intercept_visible_", "h_samples_"):
        assert np.allclose(getattr(ours, name), getattr(theirs, name), **close)
        assert getattr(ours, name).dtype == dtype
    assert np.allclose(ours.transform(X), theirs.transform(X), **close)
    if dtype is np.float64:
        assert np.allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-8)
        assert np.array_equal(ours.gibbs(X), theirs.gibbs(X))


@pytest.mark.mission("NNW-37")
@pytest.mark.parametrize(("hidden", "columns"), [(3, 6), (8, 4)])
def test_likelihood_and_gradient_are_those_of_the_general_machine(hidden, columns):
    X = ROWS[:, :columns]
    model = BernoulliRBM(hidden, random_state=0, n_iter=5).fit(X)
    model.components_ = RNG.normal(size=(hidden, columns))
    machine = general(model)
    assert model.log_likelihood(X) == pytest.approx(machine.log_likelihood(X), abs=1e-10)
    by_weight, by_threshold = machine.gradient(X)
    found = model.gradient(X)
    assert np.allclose(found.W, by_weight[columns:, :columns], atol=1e-10)
    assert np.allclose(np.concatenate([found.visible, found.hidden]), by_threshold, atol=1e-10)
    every = np.array(list(itertools.product((0.0, 1.0), repeat=columns)))
    assert np.exp(model.machine.log_likelihood(every)).sum() == pytest.approx(1)
    assert np.allclose(model.free_energy(every) + model.machine.log_likelihood(every), -model.machine.log_partition())


@pytest.mark.mission("NNW-37")
def test_contrastive_divergence_tends_to_the_exact_gradient():
    """The mean update of CD-k from one point, over many draws, comes closer to the gradient as k grows."""
    X = ROWS[:50, :4]
    rng = np.random.default_rng(1)
    W, a, b = rng.normal(size=(3, 4)) * 1.5, rng.normal(size=4), rng.normal(size=3)
    apart = []
    for k in (1, 3, 20):
        model = BernoulliRBM(3, k=k, persistent=False, learning_rate=1.0)
        total = np.zeros_like(W)
        random = np.random.RandomState(0)
        model.h_samples_ = np.zeros((50, 3))
        for _ in range(400):
            model.components_ = np.asfortranarray(W)
            model.intercept_visible_, model.intercept_hidden_ = a.copy(), b.copy()
            model._update(X, random)
            total += (model.components_ - W) / 400
        model.components_, model.intercept_visible_, model.intercept_hidden_ = W, a, b
        model.n_features_in_ = 4
        apart.append(np.linalg.norm(total - model.gradient(X).W))
    assert apart[1] < 0.7 * apart[0]
    assert apart[2] < 0.3 * apart[0]


@pytest.mark.mission("NNW-37")
def test_bars_and_stripes_have_most_of_the_probability():
    patterns = bars_and_stripes(3)
    masses = []
    for seed in range(10):
        model = BernoulliRBM(14, learning_rate=0.3, batch_size=14, n_iter=2000, k=3, random_state=seed).fit(patterns)
        masses.append(float(np.exp(model.machine.log_likelihood(patterns)).sum()))
    print("mass on bars and stripes:", np.round(masses, 3))
    assert len(patterns) == 14
    assert min(masses) > 0.9  # 14 of 512 patterns have 0.027 by chance
    drawn = model.sample(300, steps=300, random_state=0)
    share = np.mean([(row == patterns).all(axis=1).any() for row in drawn])
    assert share == pytest.approx(masses[-1], abs=0.12)


@pytest.mark.mission("NNW-37")
def test_the_certificate_holds_the_exact_likelihood_and_forgeries_fall():
    for hidden in (4, 9):
        model = BernoulliRBM(hidden, random_state=0, n_iter=20).fit(ROWS)
        certificate = model.certify(ROWS)
        report = assay.verify(certificate, model, ROWS)
        assert report.holds, report.reason
        said, slope = certificate.find("rbm.log-likelihood"), certificate.find("rbm.gradient")
        assert said.params["center"] == pytest.approx(general(model).log_likelihood(ROWS), abs=1e-9)
        exact = np.sqrt(sum(np.square(part).sum() for part in model.gradient(ROWS)))
        assert exact <= slope.value < exact * 1.001 + 1e-6
        for code, changes in [
            ("rbm.log-likelihood", {"params": said.params | {"center": said.params["center"] + 1e-6}}),
            ("rbm.gradient", {"value": 0.999 * exact}),
        ]:
            claims = tuple(replace(one, **changes) if one.name == code else one for one in certificate.claims)
            assert not assay.verify(replace(certificate, claims=claims), model, ROWS).holds


def test_where_nothing_is_exact_the_certificate_says_why():
    wide = BernoulliRBM(20, random_state=0, n_iter=1).fit(RNG.integers(0, 2, size=(30, 20)))
    assert "at most 16 units" in str(wide.certify(RNG.integers(0, 2, size=(30, 20))))
    grey = BernoulliRBM(4, random_state=0, n_iter=1).fit(RNG.uniform(size=(30, 5)))
    assert "0 and 1" in str(grey.certify(RNG.uniform(size=(30, 5))))
    with pytest.raises(ValueError, match="0 and 1"):
        grey.log_likelihood(RNG.uniform(size=(30, 5)))


def test_divergence_names_the_pass_and_an_interrupt_keeps_the_best(monkeypatch):
    with pytest.raises(ValueError, match="beyond all bounds in pass 1"), np.errstate(all="ignore"):
        BernoulliRBM(3, learning_rate=1e308, random_state=0).fit(ROWS * 1e10)
    calls = []

    def update(self, V, random):
        calls.append(1)
        if len(calls) > 45:
            raise KeyboardInterrupt
        real(self, V, random)

    real = BernoulliRBM._update
    monkeypatch.setattr(BernoulliRBM, "_update", update)
    model = BernoulliRBM(3, random_state=0).fit(ROWS)
    assert len(model.history_) == 2
    best = min(step.objective for step in model.history_)
    assert -model._shown(ROWS) == pytest.approx(best)


@pytest.mark.mission("NNW-37")
def test_a_stack_hands_its_weights_to_a_network():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    stack = DeepBeliefNetwork((40, 20), n_iter=5, learning_rate=0.05, random_state=0).fit(X)
    few = stack.classifier(X[:300], y[:300], solver="lbfgs", max_iter=200)
    assert few.score(X[:300], y[:300]) > 0.95
    assert few.score(X[300:], y[300:]) > 0.65
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        still = stack.classifier(X[:50], y[:50], solver="sgd", learning_rate_init=1e-12, tol=0, max_iter=1)
    for k, machine in enumerate(stack.machines_):
        assert np.allclose(still.coefs_[k], machine.components_.T, atol=1e-9)
        assert np.allclose(still.intercepts_[k], machine.intercept_hidden_, atol=1e-9)
    assert assay.verify(few.certify(X[:300], y[:300]), few, X[:300], y[:300]).holds
    values = X
    for machine in stack.machines_:
        values = 1 / (1 + np.exp(-(values @ machine.components_.T + machine.intercept_hidden_)))
    assert np.allclose(stack.transform(X), values)
    with pytest.raises(ValueError, match="follows from the machines"):
        stack.classifier(X, y, activation="relu")


def test_sparse_rows_are_read_batch_by_batch():
    from scipy.sparse import csr_array

    X = (np.random.default_rng(0).random((40, 6)) < 0.5).astype(float)
    plain, sparse = (BernoulliRBM(3, n_iter=3, random_state=0).fit(rows) for rows in (X, csr_array(X)))
    assert np.array_equal(plain.components_, sparse.components_)
    assert np.allclose(plain.transform(X), sparse.transform(csr_array(X)))
