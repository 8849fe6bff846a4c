"""Coherence against its definition and gensim's, and the number of topics against sources with a known one."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

from assay.decomposition import LatentDirichletAllocation, TopicNumbers, number_of_topics
from assay.decomposition._topics_data import _compared, coherence, windows_together


def source(n, topics=4, words=5, length=60, alpha=0.2, seed=0):
    rng = np.random.default_rng(seed)
    true = np.kron(np.eye(topics), np.full(words, 1 / words))
    return np.stack([rng.multinomial(length, one @ true) for one in rng.dirichlet(np.full(topics, alpha), n)])


def texts_of(X, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.permutation(np.repeat(np.arange(X.shape[1]), row)).astype(str).tolist() for row in X]


def by_definition(texts, words, window):
    """Return c_v of some words: every window listed as a set."""
    windows = []
    for text in texts:
        starts = range(max(1, len(text) - window + 1))
        windows += [set(text[at : at + window]) for at in starts]
    n = len(windows)

    def share(*asked):
        return sum(set(asked) <= one for one in windows) / n

    def npmi(a, b):
        both = share(a, b) + 1e-12
        return np.log(both / (share(a) * share(b))) / -np.log(both)

    vectors = np.array([[npmi(a, b) for b in words] for a in words])
    total = vectors.sum(axis=0)
    return np.mean([v @ total / (np.linalg.norm(v) * np.linalg.norm(total)) for v in vectors])


class TestCoherence:
    def fitted(self):
        X = source(60, length=25)
        return X, LatentDirichletAllocation(4, random_state=0, max_iter=30).fit(X)

    @pytest.mark.parametrize("window", [3, 10, 110])
    def test_windows_by_definition(self, window):
        X, model = self.fitted()
        texts = texts_of(X)
        found = model.coherence(None, top=4, measure="c_v", texts=texts, window=window)
        for words, value in zip(model.words(top=4), found):
            assert value == pytest.approx(by_definition(texts, words, window), abs=1e-12)

    def test_whole_documents_are_one_window_each(self):
        X, model = self.fitted()
        whole = model.coherence(X, top=4, measure="c_v")
        assert whole == pytest.approx(model.coherence(None, top=4, measure="c_v", texts=texts_of(X)), abs=1e-12)
        for measure in ("npmi", "u_mass"):
            listed = model.coherence(None, top=4, measure=measure, texts=texts_of(X))
            assert model.coherence(X, top=4, measure=measure) == pytest.approx(listed, abs=1e-12)

    def test_against_gensim(self):
        """Where a text is no longer than a window; of longer ones peers differ from the definition and each other."""
        peer = pytest.importorskip("gensim.models.coherencemodel")
        from gensim.corpora import Dictionary

        X, model = self.fitted()
        texts, words = texts_of(X), model.words(top=4)
        for measure, name in (("c_v", "c_v"), ("npmi", "c_npmi")):
            judge = peer.CoherenceModel(
                topics=words, texts=texts, dictionary=Dictionary(texts), coherence=name, window_size=110, processes=1
            )
            found = model.coherence(None, top=4, measure=measure, texts=texts)
            assert found == pytest.approx(judge.get_coherence_per_topic(), abs=1e-9)

    def test_words_of_one_topic_score_higher_than_mixed_ones(self):
        X, model = self.fitted()
        mixed = LatentDirichletAllocation(4, random_state=0, max_iter=0).fit(X)
        mixed.components_ = np.tile(np.eye(5).repeat(4, axis=0).reshape(5, 20)[:4] + 0.01, 1)
        assert model.coherence(X, top=4, measure="c_v").min() > mixed.coherence(X, top=4, measure="c_v").max()

    def test_words_beside_the_model_fill_windows(self):
        _, model = self.fitted()
        texts = [["0", "other", "other", "1"]]
        together, n = windows_together([[0, 2, 2, 1]], np.array([0, 1, -1]), 2)
        assert n == 3
        assert together.tolist() == [[1, 0], [0, 1]]
        assert model.coherence(None, top=4, measure="c_v", texts=texts, window=2).shape == (4,)

    def test_a_word_that_never_occurs(self):
        assert np.isfinite(coherence(np.diag([3.0, 0.0, 2.0]), 5, "c_v"))
        with pytest.raises(ValueError, match="names must be 20"):
            self.fitted()[1].coherence(None, measure="c_v", texts=[["a"]], names=["a"])


class TestNumber:
    MODEL = LatentDirichletAllocation(method="collapsed", max_iter=25, doc_topic_prior=0.2, topic_word_prior=0.05)

    def test_the_number_of_the_source_is_found(self):
        for seed in range(3):
            found = number_of_topics(self.MODEL, source(200, seed=seed), [1, 2, 4, 8], random_state=seed)
            assert isinstance(found, TopicNumbers)
            assert found.chosen == 4
            assert found.best in (4, 8)
            assert all(one > other for one, other in pairwise(found.loss[:3]))
            assert found.best_share[:2].sum() == 0
            assert found.best_share.sum() == pytest.approx(1)

    def test_sparse_counts_and_seeds(self):
        X = source(60)
        one = number_of_topics(self.MODEL, X, [2, 4], cv=3, random_state=5)
        two = number_of_topics(self.MODEL, csr_array(X), [4, 2, 4], cv=3, random_state=5)
        assert np.array_equal(one.loss, two.loss)
        assert "chosen: 4" in repr(one)

    def test_the_loss_is_that_of_words_a_model_has_not_seen(self):
        """One topic foretells words by their shares in the other documents, with eta added."""
        X = source(40)
        model = LatentDirichletAllocation(topic_word_prior=0.5, max_iter=5)
        found = number_of_topics(model, X, [1], cv=4, random_state=0)
        assert found.loss[0] == pytest.approx(np.log(20), abs=0.02)
        assert found.best_share.tolist() == [1.0]

    def test_standard_errors_are_those_of_repeated_draws(self):
        rng, results = np.random.default_rng(0), []
        for _ in range(400):
            words = rng.integers(5, 50, 200).astype(float)
            noise = rng.normal(size=(200, 1)) * np.sqrt(words)[:, None]
            losses = words[:, None] * [2.0, 2.1] + noise + 0.3 * rng.normal(size=(200, 2)) * np.sqrt(words)[:, None]
            results.append(_compared(np.array([3, 6]), losses, words, np.random.RandomState(0)))
        loss = np.array([one.loss for one in results])
        assert np.median([one.standard_error for one in results], axis=0) == pytest.approx(loss.std(axis=0), rel=0.12)
        behind = loss[:, 1] - loss[:, 0]
        assert np.median([one.behind_error[1] for one in results]) == pytest.approx(behind.std(), rel=0.12)
        assert np.median([one.behind_error[1] for one in results]) < 0.5 * loss[:, 0].std()

    def test_of_equals_the_smallest_is_chosen(self):
        rng = np.random.default_rng(0)
        words = np.full(300, 20.0)
        losses = 40 + rng.normal(size=(300, 1)) + 0.5 * rng.normal(size=(300, 3))
        losses[:, 0] += 5
        found = _compared(np.array([2, 4, 8]), losses, words, np.random.RandomState(0))
        assert found.chosen == 4
        assert 0.02 < found.best_share[1] < 0.98
        assert found.behind[found.numbers == found.best] == 0

    def test_refusals(self):
        for numbers in ([], [0], [1.5]):
            with pytest.raises(ValueError, match="integers >= 1"):
                number_of_topics(self.MODEL, source(20), numbers)
