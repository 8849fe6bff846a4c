"""What a fit of a hidden Markov model finds, and what it does with odd sequences."""

import itertools
import warnings

import numpy as np
import pytest

from assay.hmm import GMMHMM, CategoricalHMM, GaussianHMM
from tests.hmm.test_oracles import boxes

ALL = [
    CategoricalHMM(2),
    GMMHMM(2, n_mix=2),
    *(GaussianHMM(2, covariance_type=kind) for kind in ("full", "tied", "diag", "spherical")),
]


def some(model, n=60, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 3, (n, 1)) if isinstance(model, CategoricalHMM) else rng.normal(size=(n, 2))


def quiet(model, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*args, **options)


def matched(found, wanted):
    """Return the order of states that brings the rows of `found` nearest to those of `wanted`."""
    orders = itertools.permutations(range(len(wanted)))
    return list(min(orders, key=lambda order: np.abs(found[list(order)] - wanted).sum()))


@pytest.mark.mission("LAT-19")
def test_symbols_parameters_are_recovered_up_to_names():
    true = CategoricalHMM(2)
    true.startprob_, true.transmat_ = np.array([0.5, 0.5]), np.array([[0.95, 0.05], [0.1, 0.9]])
    true.emissionprob_ = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    X, _ = true.sample(20_000, random_state=0)
    model = CategoricalHMM(2, random_state=1, n_iter=300, tol=1e-4).fit(X)
    order = matched(model.emissionprob_, true.emissionprob_)
    assert model.emissionprob_[order] == pytest.approx(true.emissionprob_, abs=0.03)
    assert model.transmat_[np.ix_(order, order)] == pytest.approx(true.transmat_, abs=0.02)


@pytest.mark.mission("LAT-19")
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_gaussian_parameters_are_recovered_up_to_names_with_gaps(kind):
    true = GaussianHMM(3, covariance_type=kind)
    true.startprob_, true.transmat_ = np.full(3, 1 / 3), np.full((3, 3), 0.05) + 0.85 * np.eye(3)
    true.means_ = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    S = np.array([[1.0, 0.6], [0.6, 1.5]])
    true.covars_ = {"full": np.stack([S] * 3), "tied": S, "diag": np.ones((3, 2)), "spherical": np.ones(3)}[kind]
    X, _ = true.sample(6000, random_state=0)
    X[np.random.default_rng(0).random(X.shape) < 0.15] = np.nan
    fits = [GaussianHMM(3, covariance_type=kind, random_state=i, n_iter=60).fit(X, [3000] * 2) for i in range(4)]
    model = max(fits, key=lambda one: one.monitor_.history[-1])
    order = matched(model.means_, true.means_)
    assert model.means_[order] == pytest.approx(true.means_, abs=0.12)
    assert model.covars_[order] == pytest.approx(true.covars_, abs=0.15)
    assert model.transmat_[np.ix_(order, order)] == pytest.approx(true.transmat_, abs=0.03)


@pytest.mark.mission("LAT-19")
@pytest.mark.parametrize("model", ALL, ids=str)
@pytest.mark.parametrize("gaps", [False, True])
def test_the_likelihood_never_falls(model, gaps):
    X = some(model).astype(float)
    if gaps:
        X[::7] = np.nan
        X[3, 0] = np.nan
    options = {"covars_prior": 0.0} if isinstance(model, GaussianHMM) else {}
    model = type(model)(**{**model.get_params(), **options, "random_state": 3, "n_iter": 40, "tol": -1e300})
    history = quiet(model, X, lengths=[20, 1, 39]).monitor_.history
    assert len(history) == 41
    assert np.diff(history).min() > -1e-9
    assert history[-1] == pytest.approx(model.score(X, lengths=[20, 1, 39]), rel=1e-12)


@pytest.mark.mission("LAT-20")
def test_labelled_sequences_are_counted():
    X, states = np.array([[0], [1], [1], [0], [2]]), np.array([0, 0, 1, 1, 0])
    model = CategoricalHMM(2, n_features=4).fit(X, lengths=[3, 2], states=states)
    assert model.startprob_.tolist() == [0.5, 0.5]
    assert model.transmat_.tolist() == [[0.5, 0.5], [1.0, 0.0]]
    assert model.emissionprob_ == pytest.approx(np.array([[1, 1, 1, 0], [1.5, 1.5, 0, 0]]) / 3)
    smooth = CategoricalHMM(2, n_features=4, emissionprob_prior=2.0).fit(X, lengths=[3, 2], states=states)
    assert smooth.emissionprob_ == pytest.approx(np.array([[2 / 7, 2 / 7, 2 / 7, 1 / 7], [1 / 3, 1 / 3, 1 / 6, 1 / 6]]))
    rows = np.array([[0.0], [2.0], [10.0], [14.0], [1.0]])
    gaussian = GaussianHMM(2, covars_prior=0.0).fit(rows, lengths=[3, 2], states=states)
    assert gaussian.means_[:, 0] == pytest.approx([1.0, 12.0])
    assert gaussian.covars_[:, 0, 0] == pytest.approx([2 / 3, 4.0])
    with pytest.raises(ValueError, match="states must be 5 integers from 0 to 1"):
        CategoricalHMM(2).fit(X, states=[0, 0, 1, 1, 2])


@pytest.mark.parametrize("model", ALL, ids=str)
def test_threads_change_no_bit(model):
    X = some(model, 5000)
    lengths = [1, 2000, 2500, 499]
    one, two = (type(model)(**{**model.get_params(), "random_state": 0, "n_jobs": n}).fit(X, lengths) for n in (1, 4))
    assert one.monitor_.history == two.monitor_.history
    assert np.array_equal(one.predict_proba(X, lengths), two.predict_proba(X, lengths))


@pytest.mark.parametrize("model", ALL, ids=str)
class TestOddSequences:
    def test_one_state(self, model):
        X = some(model)
        model = type(model)(**{**model.get_params(), "n_components": 1, "random_state": 0}).fit(X)
        assert model.transmat_.tolist() == [[1.0]]
        assert set(model.predict(X)) == {0}
        assert np.isfinite(model.score(X))

    def test_sequences_of_one_row(self, model):
        X = some(model)
        model = type(model)(**{**model.get_params(), "random_state": 0}).fit(X, lengths=[1] * 60)
        assert model.transmat_.sum(axis=1) == pytest.approx([1.0, 1.0])
        assert np.isfinite(model.score(X))
        assert model.predict_proba(X, [1] * 60).sum(axis=1) == pytest.approx(1.0)

    def test_all_rows_alike(self, model):
        X = np.zeros_like(some(model))
        model = quiet(type(model)(**{**model.get_params(), "random_state": 0}), X)
        assert np.isfinite(model.score(X))
        assert np.isfinite(model.predict_proba(X)).all()

    def test_nothing_seen(self, model):
        X = np.full((5, 1 if isinstance(model, CategoricalHMM) else 2), np.nan)
        model = quiet(type(model)(**{**model.get_params(), "random_state": 0}), some(model))
        assert model.score(X) == pytest.approx(0.0, abs=1e-12)
        assert model.predict_proba(X)[0] == pytest.approx(model.startprob_)
        assert model.predict_proba(X)[1] == pytest.approx(model.startprob_ @ model.transmat_)

    def test_draws_have_the_models_frequencies(self, model):
        model = quiet(type(model)(**{**model.get_params(), "random_state": 0}), some(model))
        X, states = model.sample(4000, random_state=5)
        share = np.bincount(states, minlength=2) / 4000
        assert share == pytest.approx(model.get_stationary_distribution(), abs=0.06)
        assert model.get_stationary_distribution() @ model.transmat_ == pytest.approx(share, abs=0.06)
        assert X.shape == (4000, model.n_features_in_)

    def test_refusals(self, model):
        X = some(model)
        for lengths in ([60.0], [0, 60], [59], [], [[60]]):
            with pytest.raises(ValueError, match="lengths must"):
                type(model)(**model.get_params()).fit(X, lengths=lengths)
        with pytest.raises(ValueError, match="params must consist of letters"):
            type(model)(**{**model.get_params(), "params": "xyz"}).fit(X)


def test_a_component_on_one_point_is_widened_and_told():
    X = np.concatenate([np.zeros(20), np.random.default_rng(0).normal(5, 1, 40)])[:, None]
    model = GMMHMM(2, n_mix=1, random_state=0, n_iter=30)
    with pytest.warns(UserWarning, match="shrank to a point"):
        model.fit(X)
    assert model.mended_ > 0
    assert np.isfinite(model.score(X))
    assert np.diff(model.monitor_.history).min() > -1e-9


def test_a_sequence_that_cannot_occur():
    model = boxes()
    model.emissionprob_ = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    assert model.score([[0], [1]]) == -np.inf
    for ask in (model.predict, model.predict_proba, lambda X: model.set_params(init_params="").fit(X)):
        with pytest.raises(ValueError, match=r"sequence 0 .* has probability 0"):
            ask([[0], [1]])
    with pytest.raises(ValueError, match="symbol 2 is not among the 2 symbols"):
        model.score([[2]])


def test_parts_that_params_does_not_name_stay():
    model = boxes().set_params(params="e", init_params="")
    before = model.transmat_.copy()
    model.fit(np.array([[0], [1], [1], [0]]))
    assert np.array_equal(model.transmat_, before)
    assert not np.array_equal(model.emissionprob_, boxes().emissionprob_)


def test_parameters_are_counted():
    assert boxes().set_params(params="ste").n_parameters() == 2 + 6 + 3
    X = np.random.default_rng(0).normal(size=(100, 3))
    for kind, count in (("full", 12), ("tied", 6), ("diag", 6), ("spherical", 2)):
        model = GaussianHMM(2, covariance_type=kind, random_state=0).fit(X)
        assert model.n_parameters() == 1 + 2 + 6 + count
        assert model.bic(X) - model.aic(X) == pytest.approx(model.n_parameters() * (np.log(100) - 2))
