"""Latent Dirichlet allocation: against scikit-learn, brute force, known topics; its certificates."""

import dataclasses
import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import gammaln, psi
from sklearn.decomposition import LatentDirichletAllocation as Peer

import assay
from assay.checker.family import read_model
from assay.decomposition import LatentDirichletAllocation
from assay.decomposition import _topics_collapsed as chains
from assay.decomposition._topics_collapsed import Collapsed, Gibbs, estimated
from assay.decomposition._topics_data import Documents


def bars(documents=300, words=40, seed=0):
    """Return documents of the bars of Griffiths and Steyvers: ten topics, a row or a column of a 5 x 5 square each."""
    rng = np.random.default_rng(seed)
    topics = np.zeros((10, 5, 5))
    for i in range(5):
        topics[i, i, :] = topics[5 + i, :, i] = 0.2
    topics = topics.reshape(10, 25)
    theta = rng.dirichlet(np.full(10, 0.3), documents)
    return np.stack([rng.multinomial(words, one @ topics) for one in theta]), topics


def apart(found, topics):
    """Return the largest distance, in total variation, of a true topic from the nearest found one."""
    return max(0.5 * np.abs(found - one).sum(axis=1).min() for one in topics)


OPTIONS = {
    "batch": {"max_iter": 60},
    "online": {"learning_method": "online", "max_iter": 30, "batch_size": 32},
    "collapsed": {"method": "collapsed", "max_iter": 60},
    "gibbs": {"method": "gibbs", "max_iter": 150},
}


@pytest.mark.mission("LAT-21", "LAT-22")
@pytest.mark.parametrize("how", ["batch", "collapsed", "gibbs"])
def test_bars_are_recovered(how):
    X, topics = bars()
    options = {"doc_topic_prior": 0.3, "topic_word_prior": 0.1, **OPTIONS[how]}
    fits = [LatentDirichletAllocation(10, random_state=seed, **options).fit(X) for seed in range(3)]
    model = min(fits, key=lambda one: one.bound_)
    assert model.topics_.sum(axis=1) == pytest.approx(1.0)
    assert model.transform(X).sum(axis=1) == pytest.approx(1.0)
    assert apart(model.topics_, topics) < 0.25


@pytest.mark.mission("LAT-22")
def test_the_bound_never_falls():
    X, _ = bars(100)
    model = LatentDirichletAllocation(6, random_state=0, max_iter=40).fit(X)
    assert np.diff([-step.objective for step in model.history_]).min() > -1e-12
    assert len(model.history_) == 40


@pytest.mark.mission("LAT-22")
def test_answers_are_scikit_learns_for_the_same_topics():
    X = bars(80)[0].astype(float)
    ours = LatentDirichletAllocation(5, random_state=0, total_samples=500).fit(X)
    peer = Peer(5, random_state=0, max_iter=1, total_samples=500).fit(X)
    peer.components_ = ours.components_
    peer.exp_dirichlet_component_ = np.exp(psi(ours.components_) - psi(ours.components_.sum(axis=1, keepdims=True)))
    assert ours.exp_dirichlet_component_ == pytest.approx(peer.exp_dirichlet_component_, rel=1e-12)
    assert ours.transform(X) == pytest.approx(peer.transform(X), abs=1e-7)
    assert ours.transform(X, normalize=False) == pytest.approx(peer.transform(X, normalize=False), rel=1e-5)
    assert ours.score(X) == pytest.approx(peer.score(X), rel=1e-9)
    assert ours.perplexity(X) == pytest.approx(peer.perplexity(X), rel=1e-9)
    assert ours.perplexity(X, sub_sampling=True) == pytest.approx(peer.perplexity(X, sub_sampling=True), rel=1e-9)


@pytest.mark.mission("LAT-22")
def test_topics_are_scikit_learns_from_the_same_start():
    X, _ = bars(200)
    options = {"max_iter": 30, "mean_change_tol": 1e-6, "max_doc_update_iter": 1000, "random_state": 1}
    options |= {"doc_topic_prior": 0.3, "topic_word_prior": 0.1}
    ours, peer = LatentDirichletAllocation(5, **options).fit(X), Peer(5, **options).fit(X)
    theirs = peer.components_ / peer.components_.sum(axis=1, keepdims=True)
    assert 0.5 * np.abs(ours.topics_ - theirs).sum(axis=1).max() < 0.02  # unmatched: topic k is topic k
    assert 0.5 * np.abs(ours.transform(X) - peer.transform(X)).sum(axis=1).mean() < 0.02


@pytest.mark.mission("LAT-22")
@pytest.mark.parametrize("how", ["batch", "online"])
def test_perplexities_are_near_scikit_learns(how):
    X, _ = bars(100)
    options = {"max_iter": 15, "learning_method": how, "doc_topic_prior": 0.3, "topic_word_prior": 0.1}
    ours = min(LatentDirichletAllocation(6, random_state=s, **options).fit(X).perplexity(X) for s in range(3))
    peer = min(Peer(6, random_state=s, **options).fit(X).perplexity(X) for s in range(3))
    assert ours == pytest.approx(peer, rel=0.03)


def test_an_online_step_weighs_old_and_new():
    X, _ = bars(50)
    start = np.random.RandomState(0).gamma(100.0, 0.01, (4, 25))
    model = LatentDirichletAllocation(4, random_state=0, batch_size=50, total_samples=1000).partial_fit(X)
    weight = 11.0**-0.7
    expected = (1 - weight) * start.sum(axis=0) + weight * (4 * 0.25 + 20 * X.sum(axis=0))
    assert model.components_.sum(axis=0) == pytest.approx(expected, rel=1e-12)
    assert model.n_batch_iter_ == 2


def likelihood(counts, topics, alpha, cells=400):
    """Return ln p of a document with two topics, the share of the first integrated out by the midpoint rule."""
    share = (np.arange(cells) + 0.5) / cells
    density = (alpha - 1) * (np.log(share) + np.log1p(-share)) + gammaln(2 * alpha) - 2 * gammaln(alpha)
    words = np.log(np.outer(share, topics[0]) + np.outer(1 - share, topics[1])) @ counts
    return float(np.log(np.mean(np.exp(density + words))))


def test_the_bound_of_a_document_is_below_its_likelihood():
    X, _ = bars(60)
    model = LatentDirichletAllocation(2, random_state=0, doc_topic_prior=1.5).fit(X)
    exact = np.array([likelihood(row, model.topics_, 1.5, 4000) for row in X])
    bound = model.score_samples(X)
    assert (bound <= exact + 1e-4).all()
    assert bound.mean() > exact.mean() - 0.5


def test_gibbs_draws_from_the_posterior():
    """Two documents, all assignments of topics enumerated: how often two words share a topic."""
    X = np.array([[2, 1, 0], [0, 1, 2]])
    alpha, eta, words = 0.5, 0.3, [0, 0, 1, 1, 2, 2]
    owner, total, together = [0, 0, 0, 1, 1, 1], 0.0, np.zeros((6, 6))
    for z in itertools.product(range(2), repeat=6):
        log_p = 0.0
        for d in range(2):
            n = np.bincount([k for k, o in zip(z, owner) if o == d], minlength=2)
            log_p += gammaln(n + alpha).sum()
        for k in range(2):
            n = np.bincount([w for w, own in zip(words, z) if own == k], minlength=3)
            log_p += gammaln(n + eta).sum() - gammaln(n.sum() + 3 * eta)
        p = np.exp(log_p)
        total += p
        together += p * np.equal.outer(z, z)
    chain = Gibbs(Documents.of(X), 2, alpha, eta, seed=1)
    found = np.zeros((6, 6))
    for _ in range(6000):
        chain.sweep()
        found += np.equal.outer(chain.topics, chain.topics)
    assert found / 6000 == pytest.approx(together / total, abs=0.05)


def test_a_collapsed_pass_is_the_formula():
    """One pass, word by word, in binary64 with Python's own sums."""
    X = np.array([[2, 1, 0, 0], [0, 0.5, 3, 0], [0, 0, 0, 0], [1, 0, 2, 0]])
    alpha, eta, K = np.array([0.5, 0.2, 0.1]), 0.3, 3
    chain = Collapsed(Documents.of(X), K, alpha, eta, seed=4)
    entries = [(d, w, X[d, w]) for d in range(4) for w in range(4) if X[d, w]]
    g = [row.astype(float) for row in chain.shares]
    assert np.sum(g, axis=1) == pytest.approx(1.0, rel=1e-6)
    by_document, by_word = np.zeros((4, K)), np.zeros((4, K))
    for (d, w, c), own in zip(entries, g, strict=True):
        by_document[d] += c * own
        by_word[w] += c * own
    logs = 0.0
    for i, (d, w, c) in enumerate(entries):
        out = min(c, 1.0) * g[i]
        p = (by_document[d] - out + alpha) * (by_word[w] - out + eta) / (by_word.sum(axis=0) - out + 4 * eta)
        logs += c * np.log(p.sum() / (max(X[d].sum() - 1, 0) + alpha.sum()))
        fresh = p / p.sum()
        by_document[d] += c * (fresh - g[i])
        by_word[w] += c * (fresh - g[i])
        g[i] = fresh
    assert chain.renew() == pytest.approx(logs / X.sum(), rel=1e-5)
    assert chain.shares == pytest.approx(np.array(g), abs=1e-5)
    assert chain.word_topic == pytest.approx(by_word, abs=1e-5)
    assert chain.doc_topic == pytest.approx(by_document, abs=1e-5)
    chain.recount()
    assert chain.word_topic.sum(axis=1) == pytest.approx(X.sum(axis=0), rel=1e-6)


def test_groups_of_documents_and_words_change_little(monkeypatch):
    """Entries in tiles, or one after the other: as good a model, and the same sums of words."""
    X, _ = bars(400)
    monkeypatch.setattr(chains, "_FEW", 0)
    model = LatentDirichletAllocation(10, doc_topic_prior=0.3, random_state=0, method="collapsed", max_iter=60).fit(X)
    monkeypatch.undo()
    plain = LatentDirichletAllocation(10, doc_topic_prior=0.3, random_state=0, method="collapsed", max_iter=60).fit(X)
    assert model.components_.sum(axis=0) - 1 == pytest.approx(X.sum(axis=0), rel=1e-5)
    assert model.heldout_perplexity(X) == pytest.approx(plain.heldout_perplexity(X), rel=0.05)


def drawn_counts(weights, draws, size, rng):
    return np.stack([rng.multinomial(size, one) for one in rng.dirichlet(weights, draws)])


def test_priors_are_the_most_probable():
    """Counts from known Dirichlet distributions: no step lowers ln p of the counts, and the true weights are found."""
    rng = np.random.default_rng(3)
    alpha, eta = np.array([0.1, 0.5, 1.5]), 0.05
    documents, topics = drawn_counts(alpha, 2000, 60, rng), drawn_counts(np.full(200, eta), 3, 20_000, rng)

    def log_p(counts, prior):
        total = gammaln(prior.sum()) - gammaln(counts.sum(axis=1) + prior.sum())
        return float((total + (gammaln(counts + prior) - gammaln(prior)).sum(axis=1)).sum())

    found, other, before = np.full(3, 1.0), 1.0, -np.inf
    for _ in range(60):
        found, other = estimated(documents, topics.T, found, other, steps=1)
        now = log_p(documents, found) + log_p(topics, np.full(200, other))
        assert now >= before - 1e-6
        before = now
    assert found == pytest.approx(alpha, rel=0.1)
    assert other == pytest.approx(eta, rel=0.15)
    assert estimated(np.zeros((2, 3)), np.zeros((4, 3)), alpha, eta)[1] == eta
    assert (estimated(np.array([[5, 0]]), np.array([[5, 0]]), np.ones(2), 1.0, 200)[0] > 0).all()


def test_estimated_priors_raise_the_likelihood_of_uneven_topics():
    """Documents that hardly use some topics: the estimate says so, and new words are better foretold."""
    rng = np.random.default_rng(5)
    topics = rng.dirichlet(np.full(60, 0.1), 4)
    true = np.array([1.0, 0.5, 0.05, 0.05])
    X = np.stack([rng.multinomial(40, one @ topics) for one in rng.dirichlet(true, 500)])
    options = {"method": "gibbs", "max_iter": 80, "random_state": 0}
    fixed = LatentDirichletAllocation(4, doc_topic_prior=2.0, topic_word_prior=1.0, **options).fit(X[:400])
    free = LatentDirichletAllocation(4, optimize_interval=5, **options).fit(X[:400])
    assert free.doc_topic_prior_.shape == (4,)
    assert np.sort(free.doc_topic_prior_) == pytest.approx(np.sort(true), abs=0.25)
    assert free.topic_word_prior_ == pytest.approx(0.1, rel=0.5)
    assert free.heldout_perplexity(X[400:]) < 0.99 * fixed.heldout_perplexity(X[400:])
    assert free.transform(np.zeros((1, 60)))[0] == pytest.approx(free.doc_topic_prior_ / free.doc_topic_prior_.sum())


def test_an_interrupted_fit_keeps_its_topics(monkeypatch):
    X, _ = bars(40)
    for chain, step, method in ((Gibbs, "sweep", "gibbs"), (Collapsed, "renew", "collapsed")):
        plain, calls = getattr(chain, step), []

        def broken(self, plain=plain, calls=calls):
            calls.append(1)
            if len(calls) > 14:
                raise KeyboardInterrupt
            return plain(self)

        monkeypatch.setattr(chain, step, broken)
        with pytest.warns(UserWarning, match="interrupted after 14 passes"):
            model = LatentDirichletAllocation(3, method=method, max_iter=50, random_state=0).fit(X)
        assert model.components_.sum(axis=0) - 1 == pytest.approx(X.sum(axis=0), rel=1e-5)


def test_a_part_of_the_documents_can_start_gibbs(monkeypatch):
    X, topics = bars()
    documents = Documents.of(X)
    some = documents.spread(7)
    rows = np.linspace(0, 299, 7).astype(int)
    again = sp.csr_array((some.counts, some.words, some.offsets), shape=(7, 25)).toarray()
    assert np.array_equal(again, X[rows])
    monkeypatch.setattr(chains, "_WARM_BYTES", 40_000)
    options = {"doc_topic_prior": 0.3, "topic_word_prior": 0.1, **OPTIONS["gibbs"]}
    fits = [LatentDirichletAllocation(10, random_state=seed, **options).fit(X) for seed in range(2)]
    assert min(apart(model.topics_, topics) for model in fits) < 0.25


@pytest.mark.parametrize("how", OPTIONS)
def test_threads_and_sparse_rows_change_no_bit(how, monkeypatch):
    monkeypatch.setattr(chains, "_FEW", 0)
    X, _ = bars(200)
    options = {**OPTIONS[how], "max_iter": 5, "random_state": 0}
    cases = ((1, X), (3, X), (2, sp.csr_array(X)))
    fits = [LatentDirichletAllocation(4, n_jobs=n, **options).fit(rows) for n, rows in cases]
    for other in fits[1:]:
        assert np.array_equal(fits[0].components_, other.components_)
        assert np.array_equal(fits[0].transform(X), other.transform(X))


@pytest.mark.parametrize("how", OPTIONS)
def test_odd_documents(how):
    X, _ = bars(30)
    X[4] = 0
    X[:, 7] = 0
    options = {**OPTIONS[how], "max_iter": 5, "random_state": 0}
    model = LatentDirichletAllocation(3, **options).fit(X)
    assert np.isfinite(model.components_).all()
    assert model.transform(X)[4] == pytest.approx([1 / 3] * 3)
    assert model.score_samples(X)[4] == pytest.approx(0.0, abs=1e-9)
    one = LatentDirichletAllocation(1, topic_word_prior=1e-9, **options).fit(X)
    if how != "online":
        assert one.topics_[0] == pytest.approx(X.sum(axis=0) / X.sum(), abs=1e-9)
    empty = LatentDirichletAllocation(2, **options).fit(np.zeros((3, 4)))
    assert np.isfinite(empty.components_).all()
    assert np.isfinite(empty.bound_)


def test_refusals(monkeypatch):
    with pytest.raises(ValueError, match="Negative values"):
        LatentDirichletAllocation(2).fit([[1, -1]])
    with pytest.raises(ValueError, match="whole numbers"):
        LatentDirichletAllocation(2, method="gibbs").fit([[1.5, 1.0]])
    for method in ("gibbs", "collapsed"):
        with pytest.raises(ValueError, match="partial_fit is for the variational"):
            LatentDirichletAllocation(2, method=method).partial_fit([[1, 1]])
    for method in ("variational", "collapsed"):
        with pytest.raises(ValueError, match="estimates priors from drawn topics"):
            LatentDirichletAllocation(2, method=method, optimize_interval=5).fit([[1, 1]])
    monkeypatch.setattr(chains, "MOST_BYTES", 7)
    with pytest.raises(ValueError, match=r"keeps 0.0 GiB of shares"):
        LatentDirichletAllocation(2, method="collapsed").fit([[1, 1]])
    model = LatentDirichletAllocation(2, random_state=0).fit([[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="names must be 2"):
        model.words(["a"])
    with pytest.raises(ValueError, match="measure must be"):
        model.coherence([[1, 1]], measure="c_w")


def test_held_out_words_and_coherence():
    X, _ = bars(400)
    model = LatentDirichletAllocation(10, doc_topic_prior=0.3, topic_word_prior=0.1, random_state=0, max_iter=40)
    model.fit(X[:300])
    assert 1 < model.heldout_perplexity(X[300:]) < 25
    uniform = LatentDirichletAllocation(1, random_state=0).fit(X[:300])
    assert model.heldout_perplexity(X[300:]) < 0.8 * uniform.heldout_perplexity(X[300:])
    pairs = np.array([[1, 1, 0, 0]] * 6 + [[0, 0, 1, 1]] * 2)
    two = LatentDirichletAllocation(2, random_state=0, max_iter=50).fit(pairs)
    assert two.coherence(pairs, top=2, measure="npmi") == pytest.approx([1.0, 1.0])
    sizes = [6 if set(words) == {"0", "1"} else 2 for words in two.words(top=2)]
    assert two.coherence(pairs, top=2) == pytest.approx([np.log((n + 1) / n) for n in sizes])


class TestCertificate:
    def certified(self, how="batch", **options):
        X, _ = bars(120, 20)
        model = LatentDirichletAllocation(3, random_state=0, **{**OPTIONS[how], "max_iter": 4}, **options).fit(X[:60])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            certificate = model.certify(X[:60], holdout=(X[60:], None), clip=(0.0, 100.0))
        return model, X, certificate

    def holds(self, model, X, certificate):
        return assay.verify(certificate, model, X[:60], holdout=(X[60:], None))

    @pytest.mark.mission("LAT-22")
    @pytest.mark.parametrize("how", OPTIONS)
    def test_it_holds(self, how):
        model, X, certificate = self.certified(how)
        report = self.holds(model, X, certificate)
        assert report.holds, report.reason
        found = {claim.name: claim for claim in certificate.claims}
        words = X[:60].sum()
        assert found["topics.bound"].params["center"] == pytest.approx(model.score(X[:60]) / words, abs=1e-3)
        assert ("topics.monotone" in found) == (how == "batch")
        losses = -model.score_samples(X[60:])
        assert losses.mean() <= found["holdout.betting"].value < 100

    def test_estimated_priors(self):
        """One weight for each topic: it holds, and with another weight it does not."""
        model, X, certificate = self.certified("gibbs", optimize_interval=2)
        assert model.doc_topic_prior_.shape == (3,)
        assert self.holds(model, X, certificate).holds
        model.doc_topic_prior_ = model.doc_topic_prior_ * np.array([1.0, 1.2, 1.0])
        assert not self.holds(model, X, certificate).holds

    def test_forgeries(self):
        model, X, certificate = self.certified()
        for code, changes in (
            ("topics.bound", {"params": lambda p: {"center": p["center"] + 1e-4}}),
            ("topics.bound", {"value": lambda value: 0.0}),
            ("topics.bound", {"params": lambda p: {**p, "more": 1.0}}),
            ("topics.monotone", {"params": lambda p: {**p, "steps": p["steps"] - 1}}),
            ("topics.monotone", {"params": lambda p: {**p, "doc_steps": 1}}),
            ("topics.monotone", {"witness": lambda w: {"start": w["start"][:, ::-1].copy()}}),
            ("topics.monotone", {"witness": lambda w: {"start": -w["start"]}}),
            ("holdout.betting", {"value": lambda value: value - 5.0}),
        ):
            claims = [
                dataclasses.replace(claim, **{name: change(getattr(claim, name)) for name, change in changes.items()})
                if claim.name == code
                else claim
                for claim in certificate.claims
            ]
            forged = dataclasses.replace(certificate, claims=tuple(claims))
            assert not self.holds(model, X, forged).holds, (code, changes)

    def test_the_checkers_density_is_the_models(self):
        model, X, _ = self.certified()
        low, high = read_model(model.stored()).log_bounds(X.astype(float), X.max(axis=0))
        assert model.score_samples(X) == pytest.approx((low + high) / 2, abs=1e-9)
        assert (high - low).max() < 1e-8
