"""Models of counts, lists of sequences, symbols that are text, and several starts of EM."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import gamma, poisson

import assay
from assay.hmm import GMMHMM, CategoricalHMM, GaussianHMM, PoissonHMM


def counting(k=2, columns=2, seed=0):
    rng = np.random.default_rng(seed)
    model = PoissonHMM(k)
    model.startprob_, model.transmat_ = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), k)
    model.lambdas_ = rng.gamma(2.0, 3.0, (k, columns))
    return model


def paths(model, X):
    """Return p(X, states) of every path, (k,) * T, and the states."""
    k, total = model.n_components, {}
    for states in product(range(k), repeat=len(X)):
        p = model.startprob_[states[0]]
        for t, s in enumerate(states):
            p *= model.transmat_[states[t - 1], s] if t else 1.0
            there = ~np.isnan(X[t])
            p *= np.prod(poisson.pmf(X[t, there], model.lambdas_[s, there]))
        total[states] = p
    return total


class TestPoisson:
    @pytest.mark.parametrize("seed", range(3))
    def test_every_answer_is_a_sum_over_paths(self, seed):
        model = counting(3, 2, seed)
        X = model.sample(5, random_state=seed)[0].astype(float)
        X[1, 0] = np.nan
        X[3] = np.nan
        listed = paths(model, X)
        total = sum(listed.values())
        assert model.score(X) == pytest.approx(np.log(total), rel=1e-12)
        shares = np.zeros((5, 3))
        for states, p in listed.items():
            shares[np.arange(5), states] += p / total
        assert model.predict_proba(X) == pytest.approx(shares, abs=1e-12)
        best = max(listed, key=listed.get)
        assert model.decode(X)[0] == pytest.approx(np.log(listed[best]), rel=1e-12)
        assert tuple(model.predict(X)) == best

    def test_a_step_of_em_is_the_weighted_mean(self):
        model = counting(2, 2, 1)
        X = model.sample(200, random_state=0)[0].astype(float)
        shares = model.predict_proba(X)
        start = {name: getattr(model, name).copy() for name in ("startprob_", "transmat_", "lambdas_")}
        other = PoissonHMM(2, n_iter=1, init_params="", lambdas_prior=3.0, lambdas_weight=2.0)
        for name, value in start.items():
            setattr(other, name, value)
        other.fit(X)
        wanted = (shares.T @ X + 3.0) / (shares.sum(axis=0)[:, None] + 2.0)
        assert other.lambdas_ == pytest.approx(wanted, rel=1e-12)

    def test_the_prior_is_a_gamma_distribution(self):
        """The objective is the log-posterior: its mode for one state is that of Gamma(1 + prior, weight)."""
        X = np.array([[3.0], [5.0], [4.0]])
        model = PoissonHMM(1, lambdas_prior=2.0, lambdas_weight=1.0, n_iter=5).fit(X)
        grid = np.linspace(0.1, 10, 100_000)
        logs = poisson.logpmf(X, grid).sum(axis=0) + gamma.logpdf(grid, 3.0, scale=1.0)
        assert model.lambdas_[0, 0] == pytest.approx(grid[logs.argmax()], abs=2e-4)
        assert PoissonHMM(1).fit(X).lambdas_.tolist() == [[4.0]]

    def test_rates_are_recovered(self):
        true = PoissonHMM(2)
        true.startprob_, true.transmat_ = np.array([0.5, 0.5]), np.array([[0.95, 0.05], [0.1, 0.9]])
        true.lambdas_ = np.array([[1.0, 8.0], [5.0, 2.0]])
        X, states = true.sample(5000, random_state=0)
        model = PoissonHMM(2, n_iter=100, random_state=0).fit(X)
        order = model.lambdas_[:, 0].argsort()
        assert model.lambdas_[order] == pytest.approx(true.lambdas_, abs=0.2)
        assert model.transmat_[order][:, order] == pytest.approx(true.transmat_, abs=0.02)
        assert np.mean(order.argsort()[model.predict(X)] == states) > 0.95
        assert np.all(np.diff(model.monitor_.history) > -1e-6)

    def test_against_hmmlearn(self):
        peer = pytest.importorskip("hmmlearn.hmm")
        X = counting(3, 2, 2).sample(400, random_state=1)[0]
        start = counting(3, 2, 5)
        models = [kind(3, n_iter=20, tol=-1e300, init_params="") for kind in (PoissonHMM, peer.PoissonHMM)]
        for model in models:
            for name in ("startprob_", "transmat_", "lambdas_"):
                setattr(model, name, getattr(start, name).copy())
            model.fit(X, lengths=[250, 150])
        for name in ("startprob_", "transmat_", "lambdas_"):
            assert getattr(models[0], name) == pytest.approx(getattr(models[1], name), rel=1e-6, abs=1e-9)
        assert models[0].score(X, lengths=[250, 150]) == pytest.approx(models[1].score(X, lengths=[250, 150]))

    def test_states_that_are_known_are_counted(self):
        X, states = np.array([[1], [3], [10], [20]]), np.array([0, 0, 1, 1])
        model = PoissonHMM(2).fit(X, states=states)
        assert model.lambdas_.tolist() == [[2.0], [15.0]]

    def test_large_and_constant_counts(self):
        X = np.array([[10**7], [10**7 + 5], [3], [4]] * 10)
        model = PoissonHMM(2, random_state=0, n_iter=20).fit(X)
        assert np.isfinite(model.score(X))
        assert sorted(model.lambdas_.ravel().round()) == [4.0, 10_000_002.0]
        assert PoissonHMM(2, random_state=0).fit(np.zeros((5, 1))).score(np.zeros((5, 1))) == pytest.approx(0.0)

    @pytest.mark.parametrize("X", [[[1.5], [2.0]], [[-1.0], [2.0]]])
    def test_what_is_no_count_is_refused(self, X):
        with pytest.raises(ValueError, match="counts are integers"):
            PoissonHMM(1).fit(X)

    def test_parameters_by_hand_are_checked(self):
        model = counting()
        model.lambdas_ = -model.lambdas_
        with pytest.raises(ValueError, match="finite numbers >= 0"):
            model.score([[1, 2]])
        model.lambdas_ = np.ones((3, 2))
        with pytest.raises(ValueError, match="a row for each of 2 states"):
            model.score([[1, 2]])

    def test_parameters_and_files(self, tmp_path):
        model = PoissonHMM(3, random_state=0).fit(counting(3).sample(100, random_state=0)[0])
        assert model.n_parameters() == 2 + 6 + 6
        assay.save(model, tmp_path / "m.assay")
        again = assay.load(tmp_path / "m.assay").model
        assert np.array_equal(again.lambdas_, model.lambdas_)


class TestClaims:
    def fitted(self, **options):
        X = counting(2, 2, 3).sample(300, random_state=0)[0].astype(float)
        X[5, 0] = np.nan
        return X, PoissonHMM(2, n_iter=60, random_state=0, **options).fit(X, lengths=[200, 100])

    @pytest.mark.parametrize("options", [{}, {"lambdas_prior": 2.0, "lambdas_weight": 0.5}, {"params": "l"}])
    def test_certificates_hold(self, options):
        X, model = self.fitted(**options)
        certificate = model.certify(X, lengths=[200, 100])
        assert {"hmm.log-likelihood", "hmm.stationary", "hmm.monotone"} <= {one.kind for one in certificate.claims}
        assert certificate["hmm.stationary"].value < 1e-3
        assert assay.verify(certificate, model, X).holds

    def test_an_unfinished_fit_says_so(self):
        X = counting(2, 2, 3).sample(300, random_state=0)[0]
        model = PoissonHMM(2, n_iter=1, random_state=0).fit(X)
        assert model.certify(X)["hmm.stationary"].value > 1e-3

    @pytest.mark.parametrize("factor", [1.01, 0.99])
    def test_other_rates_are_found(self, factor):
        X, model = self.fitted()
        certificate = model.certify(X, lengths=[200, 100])
        model.lambdas_ = model.lambdas_ * factor
        report = assay.verify(certificate, model, X)
        assert not report.holds
        other = model.certify(X, lengths=[200, 100])
        assert assay.verify(other, model, X).verdicts  # readable
        assert other["hmm.stationary"].value > 10 * certificate["hmm.stationary"].value

    def test_new_sequences(self):
        model = PoissonHMM(2, random_state=0).fit(counting().sample(300, random_state=0)[0])
        draws = [counting().sample(10, random_state=i)[0] for i in range(60)]
        certificate = model.certify(counting().sample(300, random_state=0)[0], holdout=(draws, None), clip=(0, 20))
        assert certificate["hmm.holdout"].value < 20


def as_list(X, lengths):
    return np.split(X, np.cumsum(lengths)[:-1])


class TestLists:
    @pytest.mark.parametrize("model", [GaussianHMM(2, random_state=0), GMMHMM(2, n_mix=2, random_state=0)])
    def test_a_list_is_rows_with_lengths(self, model):
        rng = np.random.default_rng(0)
        X, lengths = np.concatenate([rng.normal(m, 1, (30, 2)) for m in (0, 5, 0)]), [40, 1, 49]
        one = {name: np.array(value) for name, value in vars(model.fit(X, lengths=lengths)).items() if name == "means_"}
        score, states = model.score(X, lengths=lengths), model.predict(X, lengths)
        for listed in (
            as_list(X, lengths),
            tuple(as_list(X, lengths)),
            [part.tolist() for part in as_list(X, lengths)],
        ):
            model.fit(listed)
            assert np.array_equal(model.means_, one["means_"])
            assert model.score(listed) == score
            assert np.array_equal(model.predict(listed), states)
            assert model.bic(listed) == model.bic(X, lengths)
        certificate = model.certify(as_list(X, lengths))
        assert certificate["hmm.log-likelihood"].witness["lengths"].tolist() == lengths
        assert assay.verify(certificate, model, X).holds

    def test_frames_in_a_list(self):
        rng = np.random.default_rng(0)
        frames = [pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"]) for n in (20, 30)]
        model = GaussianHMM(2, random_state=0).fit(frames)
        assert model.predict_proba(frames).shape == (50, 2)

    def test_rows_that_are_plain_lists_stay_rows(self):
        assert CategoricalHMM(2, random_state=0).fit([[0], [1], [0]]).emissionprob_.shape == (2, 2)

    def test_what_does_not_go_together(self):
        parts = [np.zeros((3, 2)), np.zeros((4, 2))]
        with pytest.raises(ValueError, match="pass none beside it"):
            GaussianHMM(2).fit(parts, lengths=[3, 4])
        with pytest.raises(ValueError, match="same number of columns"):
            GaussianHMM(2).fit([np.zeros((3, 2)), np.zeros((4, 1))])
        with pytest.raises(ValueError, match="must have rows"):
            GaussianHMM(2).fit([np.zeros((3, 2)), np.zeros((0, 2))])


class TestText:
    WORDS = (["rain", "rain", "sun"], ["sun", "sun", "sun", "fog"], ["fog"])

    def test_words_are_numbers_in_order(self):
        codes, lengths = np.array([[1], [1], [2], [2], [2], [2], [0], [0]]), [3, 4, 1]
        model = CategoricalHMM(2, random_state=0).fit(list(self.WORDS))
        assert model.symbols_.tolist() == ["fog", "rain", "sun"]
        plain = CategoricalHMM(2, random_state=0).fit(codes, lengths=lengths)
        assert np.array_equal(model.emissionprob_, plain.emissionprob_)
        assert model.score(list(self.WORDS)) == plain.score(codes, lengths=lengths)
        assert np.array_equal(model.codes(list(self.WORDS)), codes)
        one = np.array([[word] for part in self.WORDS for word in part])
        assert model.score(one, lengths=lengths) == plain.score(codes, lengths=lengths)
        assert model.score(pd.DataFrame(one), lengths=lengths) == plain.score(codes, lengths=lengths)
        assert len(plain.symbols_) == 0

    def test_characters_of_strings(self):
        dna = ["GATTACA", "CAT"]
        model = CategoricalHMM(2, random_state=0).fit(dna)
        assert model.symbols_.tolist() == ["A", "C", "G", "T"]
        assert np.isfinite(model.score("TAGA"))
        drawn = model.sample(20, random_state=0)[0]
        assert set(drawn.ravel()) <= set("ACGT")

    def test_gaps_and_files(self, tmp_path):
        X = np.array([["a"], [None], ["b"], ["a"]], dtype=object)
        model = CategoricalHMM(2, random_state=0).fit(X)
        assert model.codes(X)[1, 0] != model.codes(X)[1, 0]
        certificate = model.certify(X)
        assert assay.verify(certificate, model, model.codes(X)).holds
        assay.save(model, tmp_path / "m.assay", certificate=certificate)
        again = assay.load(tmp_path / "m.assay").model
        assert again.symbols_.tolist() == ["a", "b"]
        assert again.score(X) == model.score(X)

    def test_a_symbol_without_a_text_cannot_be_drawn(self):
        model = CategoricalHMM(2, n_features=3, emissionprob_prior=5.0, random_state=0).fit(
            [["a", "b", "a", "b", "b", "a"]]
        )
        with pytest.raises(ValueError, match="symbol 2 was drawn, but only 2 symbols have a text"):
            model.sample(500, random_state=0)

    def test_by_hand(self):
        model = CategoricalHMM(2)
        model.startprob_, model.transmat_ = np.array([0.5, 0.5]), np.full((2, 2), 0.5)
        model.emissionprob_, model.symbols_ = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array(["red", "white"])
        assert np.exp(model.score([["red", "white"]])) == pytest.approx(0.55 * 0.45)

    def test_refusals(self):
        model = CategoricalHMM(2, random_state=0).fit(list(self.WORDS))
        with pytest.raises(ValueError, match="'snow' is not among the 3 symbols fog, rain, sun"):
            model.score([["snow"]])
        with pytest.raises(ValueError, match="got numbers"):
            model.score([[0], [1]])
        with pytest.raises(ValueError, match="all text or all numbers"):
            CategoricalHMM(2).fit(np.array([["a"], [1]], dtype=object))
        with pytest.raises(ValueError, match="knows none"):
            CategoricalHMM(2, random_state=0).fit([[0], [1]]).score([["a"]])


class TestStarts:
    def rows(self):
        rng = np.random.default_rng(3)
        return np.concatenate([rng.normal(m, 0.6, (25, 1)) for m in (0, 3, 6, 9, 0, 6, 3, 9)])

    def test_the_best_of_many_starts_is_kept(self):
        X, options = np.random.default_rng(0).integers(0, 4, (300, 1)), {"n_iter": 50}
        seeds = np.random.RandomState(0).randint(2**31 - 1, size=5)
        alone = [CategoricalHMM(3, random_state=int(seed), **options).fit(X).score(X) for seed in seeds]
        together = CategoricalHMM(3, random_state=0, n_init=5, **options).fit(X)
        assert together.score(X) == max(alone)
        assert max(alone) > min(alone) + 1e-3
        assert together.monitor_.history[-1] == pytest.approx(max(alone))

    def test_of_the_others_too(self):
        X = self.rows()
        few, many = (GaussianHMM(4, random_state=0, n_init=n, n_iter=30).fit(X).score(X) for n in (1, 6))
        assert many >= few - 1e-9
        counts = np.abs(X.round() * 3)
        few, many = (PoissonHMM(4, random_state=0, n_init=n, n_iter=30).fit(counts).score(counts) for n in (1, 6))
        assert many > few - 1e-9

    def test_the_kept_start_is_certified(self):
        X = np.random.default_rng(0).integers(0, 3, (60, 1))
        model = CategoricalHMM(2, random_state=0, n_init=4).fit(X)
        certificate = model.certify(X)
        assert "hmm.monotone" in {one.kind for one in certificate.claims}
        assert assay.verify(certificate, model, X).holds


@pytest.mark.parametrize("kind", [CategoricalHMM, GaussianHMM, PoissonHMM])
def test_the_parts_of_a_step_are_named(kind):
    X = np.random.default_rng(0).integers(0, 3, (60, 1))
    told = str(kind(2, random_state=0).fit(X).certify(X))
    assert f"an M step of the parts {', '.join(kind(2).params)} with the stated priors" in told
