"""Hidden Markov models against enumeration of all paths, Li Hang's boxes and balls, and hmmlearn."""

import itertools

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from assay.hmm import GMMHMM, CategoricalHMM, GaussianHMM
from assay.hmm._chain import expect


def boxes():
    """Return the three boxes of Li Hang's example 10.2."""
    model = CategoricalHMM(3)
    model.startprob_ = np.array([0.2, 0.4, 0.4])
    model.transmat_ = np.array([[0.5, 0.2, 0.3], [0.3, 0.5, 0.2], [0.2, 0.3, 0.5]])
    model.emissionprob_ = np.array([[0.5, 0.5], [0.4, 0.6], [0.7, 0.3]])
    return model


BALLS = np.array([[0], [1], [0]])


def drawn(kind, rng, k=3, d=2, mix=2):
    """Return a model with drawn parameters, and ten rows, some of which lack entries."""
    start, trans = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), k)
    X = 2 * rng.normal(size=(7, d))
    if kind == "categorical":
        model, X = CategoricalHMM(k), rng.integers(0, 3, (7, d)).astype(float)
        model.emissionprob_ = rng.dirichlet(np.ones(3), (d, k))
    elif kind == "mixtures":
        model = GMMHMM(k, n_mix=mix, covariance_type="full")
        model.weights_, model.means_ = rng.dirichlet(np.ones(mix), k), rng.normal(size=(k, mix, d))
        model.covars_ = spd(rng, (k, mix), d)
    else:
        model = GaussianHMM(k, covariance_type=kind)
        model.means_ = rng.normal(size=(k, d))
        model.covars_ = {
            "full": lambda: spd(rng, (k,), d),
            "tied": lambda: spd(rng, (1,), d)[0],
            "diag": lambda: rng.uniform(0.5, 2, (k, d)),
            "spherical": lambda: rng.uniform(0.5, 2, k),
        }[kind]()
    model.startprob_, model.transmat_ = start, trans
    X[2, 0], X[4] = np.nan, np.nan
    return model, X


def spd(rng, shape, d):
    A = rng.normal(size=(*shape, d, d))
    return A @ A.swapaxes(-1, -2) + 0.5 * np.eye(d)


def densities(model, X):
    """Return b_j(x_t), by SciPy's densities of the entries that are there."""
    found = np.ones((len(X), model.n_components))
    for t, x in enumerate(X):
        there = ~np.isnan(x)
        for s in range(model.n_components):
            if isinstance(model, CategoricalHMM):
                found[t, s] = np.prod([model.emissionprob_[j, s, int(x[j])] for j in np.flatnonzero(there)])
            elif there.any():
                if isinstance(model, GMMHMM):
                    parts = zip(model.weights_[s], model.means_[s], model.covars_[s])
                else:
                    parts = [(1.0, model.means_[s], model.covars_[s])]
                found[t, s] = sum(
                    w * multivariate_normal(m[there], S[np.ix_(there, there)]).pdf(x[there]) for w, m, S in parts
                )
    return found


def enumerated(model, X):
    """Return p(X), p(s_t | X), the expected steps, and the best path with its probability, over all paths."""
    b, k, T = densities(model, X), model.n_components, len(X)
    total, shares, pairs, best = 0.0, np.zeros((T, k)), np.zeros((k, k)), (-1.0, None)
    for path in itertools.product(range(k), repeat=T):
        p = model.startprob_[path[0]] * np.prod(b[np.arange(T), path])
        p *= np.prod([model.transmat_[i, j] for i, j in itertools.pairwise(path)])
        total += p
        shares[np.arange(T), path] += p
        for i, j in itertools.pairwise(path):
            pairs[i, j] += p
        best = max(best, (p, path))
    return total, shares / total, pairs / total, best


@pytest.mark.mission("LAT-16", "LAT-17", "LAT-18")
def test_boxes_and_balls():
    model = boxes()
    assert np.exp(model.score(BALLS)) == pytest.approx(0.130218, abs=5e-13)
    log_p, states = model.decode(BALLS)
    assert states.tolist() == [2, 2, 2]
    assert np.exp(log_p) == pytest.approx(0.0147, abs=1e-15)
    forward = np.array([0.10, 0.16, 0.28])  # alpha_1 as printed
    first = model.predict_proba(BALLS)[0]
    backward = first * 0.130218 / forward
    assert backward == pytest.approx([0.2451, 0.2622, 0.2277], abs=1e-12)  # beta_1 as printed


KINDS = ["categorical", "full", "tied", "diag", "spherical", "mixtures"]


@pytest.mark.mission("LAT-16", "LAT-17", "LAT-18")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_all_paths(kind, seed):
    model, X = drawn(kind, np.random.default_rng(seed))
    total, shares, pairs, (best, path) = enumerated(model, X)
    assert model.score(X) == pytest.approx(np.log(total), abs=1e-11)
    log_p, posterior = model.score_samples(X)
    assert log_p == pytest.approx(np.log(total), abs=1e-11)
    assert posterior == pytest.approx(shares, abs=1e-12)
    log_best, states = model.decode(X)
    assert states.tolist() == list(path)
    assert log_best == pytest.approx(np.log(best), abs=1e-11)
    at, sequences = model._given(X, None)
    found = expect(sequences, model._see(sequences, at.emission), at.start, at.trans)
    assert found.pairs == pytest.approx(pairs, abs=1e-12)
    assert found.start == pytest.approx(shares[0], abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_map_decoding_tells_the_probability_of_its_path(kind):
    model, X = drawn(kind, np.random.default_rng(8))
    log_p, states = model.decode(X, algorithm="map")
    assert states.tolist() == model.predict_proba(X).argmax(axis=1).tolist()
    b = densities(model, X)
    expected = np.log(model.startprob_[states[0]]) + np.log(b[np.arange(len(X)), states]).sum()
    expected += sum(np.log(model.transmat_[i, j]) for i, j in itertools.pairwise(states))
    assert log_p == pytest.approx(expected, abs=1e-10)


@pytest.mark.mission("LAT-16", "LAT-17")
def test_a_long_sequence_is_the_same_in_logarithms():
    from assay.hmm._loops import in_logarithms

    rng = np.random.default_rng(3)
    model, _ = drawn("full", rng)
    X = 3 * rng.normal(size=(2000, 2))
    logs = np.log(densities(model, X))
    posterior, pairs = np.zeros_like(logs), np.zeros((3, 3))
    value = in_logarithms(logs, np.log(model.startprob_), np.log(model.transmat_), posterior, pairs)
    assert model.score(X) == pytest.approx(value, rel=1e-13)
    assert model.predict_proba(X) == pytest.approx(posterior, abs=1e-9)


def test_rows_that_only_an_improbable_state_can_have_emitted_are_done_in_logarithms():
    model = GaussianHMM(2)
    model.startprob_, model.transmat_ = np.array([1.0, 0.0]), np.eye(2)
    model.means_, model.covars_ = np.array([[0.0], [100.0]]), np.ones((2, 1))
    X = np.array([[0.0], [100.0], [100.0]])  # the second state cannot be reached
    expected = sum(-0.5 * x**2 - 0.5 * np.log(2 * np.pi) for x in X[:, 0])
    assert model.score(X) == pytest.approx(expected, rel=1e-14)
    assert model.predict_proba(X)[:, 0].tolist() == [1.0, 1.0, 1.0]


class TestHmmlearn:
    """The same numbers from the same start."""

    lengths = (200, 1, 149, 150)

    def pair(self, ours, peers, **attributes):
        for model in (ours, peers):
            for name, value in attributes.items():
                setattr(model, name, value)
        return ours, peers

    def both(self, ours, peers, X, *names):
        assert ours.score(X, lengths=self.lengths) == pytest.approx(peers.score(X, self.lengths), rel=1e-12)
        assert ours.predict_proba(X, self.lengths) == pytest.approx(peers.predict_proba(X, self.lengths), abs=1e-8)
        assert ours.decode(X, self.lengths)[0] == pytest.approx(peers.decode(X, self.lengths)[0], rel=1e-10)
        ours.fit(X, self.lengths)
        peers.fit(X, self.lengths)
        for name in names:
            assert getattr(ours, name) == pytest.approx(getattr(peers, name), abs=1e-8), name
        assert ours.score(X, self.lengths) == pytest.approx(peers.score(X, self.lengths), rel=1e-8)
        assert ours.monitor_.history[:-1] == pytest.approx(list(peers.monitor_.history), rel=1e-8)

    def test_categorical(self):
        hmm = pytest.importorskip("hmmlearn.hmm")
        rng = np.random.default_rng(0)
        X = rng.integers(0, 4, (500, 1))
        options = {"n_iter": 10, "tol": -1e300, "init_params": ""}
        ours, peers = self.pair(
            CategoricalHMM(3, transmat_prior=1.5, **options),
            hmm.CategoricalHMM(3, transmat_prior=1.5, **options),
            startprob_=rng.dirichlet(np.ones(3)),
            transmat_=rng.dirichlet(np.ones(3), 3),
            emissionprob_=rng.dirichlet(np.ones(4), 3),
        )
        self.both(ours, peers, X, "startprob_", "transmat_", "emissionprob_")

    @pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
    @pytest.mark.parametrize("prior", [False, True])
    def test_gaussian(self, kind, prior):
        hmm = pytest.importorskip("hmmlearn.hmm")
        rng = np.random.default_rng(1)
        X = rng.normal(size=(500, 2)) + np.repeat(3 * rng.normal(size=(50, 2)), 10, axis=0)
        options = {"n_iter": 8, "tol": -1e300, "init_params": "", "covariance_type": kind}
        if prior:
            options |= {"means_prior": 0.5, "means_weight": 2.0, "covars_prior": 0.3, "covars_weight": 7.0}
        S = np.cov(X.T)
        covars = {"full": np.stack([S] * 3), "tied": S, "diag": np.stack([np.diag(S)] * 3), "spherical": np.ones(3)}
        ours, peers = self.pair(
            GaussianHMM(3, **options),
            hmm.GaussianHMM(3, **options),
            startprob_=np.full(3, 1 / 3),
            transmat_=rng.dirichlet(np.ones(3), 3),
            means_=X[:30:10],
            covars_=covars[kind],
        )
        self.both(ours, peers, X, "startprob_", "transmat_", "means_")

    @pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
    def test_mixtures_score_alike(self, kind):
        hmm = pytest.importorskip("hmmlearn.hmm")
        rng = np.random.default_rng(2)
        X = rng.normal(size=(500, 2)) + np.repeat(3 * rng.normal(size=(50, 2)), 10, axis=0)
        ours = GMMHMM(2, n_mix=2, covariance_type=kind, random_state=0).fit(X, self.lengths)
        peers = hmm.GMMHMM(2, 2, covariance_type=kind, init_params="", params="")
        for name in ("startprob_", "transmat_", "weights_", "means_", "covars_"):
            setattr(peers, name, getattr(ours, name))
        peers.n_features = 2
        assert ours.score(X, self.lengths) == pytest.approx(peers.score(X, self.lengths), rel=1e-10)
        assert ours.predict_proba(X, self.lengths) == pytest.approx(peers.predict_proba(X, self.lengths), abs=1e-8)
