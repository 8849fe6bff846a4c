"""Poisson naive Bayes against the distribution itself, repeated rows, sparse rows and the checker."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import logsumexp
from scipy.stats import poisson

import assay
from assay.naive_bayes import MultinomialNB, PoissonNB, ZeroProbabilityWarning

RNG = np.random.default_rng(7)
RATES = np.array([[1.0, 4.0, 0.3], [3.0, 1.5, 0.3], [0.5, 6.0, 2.0]])
Y = RNG.integers(0, 3, size=300)
X = RNG.poisson(RATES[Y]).astype(float)
LABELS = np.array(["a", "b", "c"])[Y]


def posterior(X, rate, prior):
    joint = np.stack([poisson.logpmf(X, r).sum(axis=1) + np.log(p) for r, p in zip(rate, prior)], axis=1)
    return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))


def test_rates_and_probabilities_are_those_of_the_distribution():
    model = PoissonNB(alpha=0.5, beta=2.0).fit(X, LABELS)
    rate = np.array([(X[k == Y].sum(axis=0) + 0.5) / (np.sum(k == Y) + 2.0) for k in range(3)])
    np.testing.assert_allclose(model.rate_, rate, rtol=1e-14)
    wanted = posterior(X, rate, np.bincount(Y) / len(Y))
    np.testing.assert_allclose(model.predict_proba(X), wanted, rtol=1e-9, atol=1e-12)
    assert np.array_equal(model.predict(X), np.array(["a", "b", "c"])[wanted.argmax(axis=1)])


def test_the_size_of_a_row_speaks():
    """Two classes with equal shares of words, one of which has ten times as many: a multinomial model is blind."""
    y = np.repeat([0, 1], 200)
    counts = np.random.default_rng(0).poisson(np.where(y[:, None], 10.0, 1.0), size=(400, 2)).astype(float)
    assert PoissonNB().fit(counts, y).score(counts, y) > 0.99
    assert MultinomialNB().fit(counts, y).score(counts, y) < 0.65


def test_the_linear_form_decides_alike():
    model = PoissonNB().fit(X, LABELS)
    w, b = model.linear_form()
    np.testing.assert_allclose(w, np.log(model.rate_))
    assert np.array_equal(model.classes_[(X @ w.T + b).argmax(axis=1)], model.predict(X))


def test_weights_are_repeated_rows_and_parts_are_the_whole():
    weight = RNG.integers(0, 4, size=300).astype(float)
    repeated = PoissonNB().fit(np.repeat(X, weight.astype(int), axis=0), np.repeat(LABELS, weight.astype(int)))
    np.testing.assert_array_equal(PoissonNB().fit(X, LABELS, weight).rate_, repeated.rate_)
    parts = PoissonNB()
    for some in np.array_split(np.arange(300), 4):
        parts.partial_fit(X[some], LABELS[some], classes=["a", "b", "c"])
    np.testing.assert_array_equal(parts.rate_, PoissonNB().fit(X, LABELS).rate_)


def test_sparse_rows_are_dense_rows():
    sparse = PoissonNB().fit(csr_array(X), LABELS)
    np.testing.assert_array_equal(sparse.rate_, PoissonNB().fit(X, LABELS).rate_)
    np.testing.assert_allclose(sparse.predict_proba(csr_array(X)), sparse.predict_proba(X), rtol=1e-12)


def test_what_it_draws_has_its_rates():
    model = PoissonNB().fit(X, LABELS)
    drawn, labels = model.sample(20_000, random_state=0)
    for k, label in enumerate(model.classes_):
        own = drawn[labels == label]
        assert np.all(np.abs(own.mean(axis=0) - model.rate_[k]) < 5 * np.sqrt(model.rate_[k] / len(own)))


def test_the_certificate_holds_and_other_counts_do_not():
    model = PoissonNB().fit(X[:200], LABELS[:200])
    certificate = model.certify(X[:200], LABELS[:200], holdout=(X[200:], LABELS[200:]))
    given = {"X": X[:200], "y": LABELS[:200], "holdout": (X[200:], LABELS[200:])}
    assert assay.verify(certificate, model, **given).holds
    assert certificate["counts.mle"].value == 0
    model.feature_count_ = model.feature_count_ + 1
    assert not assay.verify(certificate, model, **given).holds
    with pytest.raises(ValueError, match="beta"):
        PoissonNB(beta=0.0).fit(X, LABELS)


def test_a_rate_of_zero_rules_a_class_out():
    with pytest.warns(ZeroProbabilityWarning):
        model = PoissonNB(alpha=0.0).fit([[0, 2], [0, 3], [4, 1]], [0, 0, 1])
    assert model.predict([[1, 9]]).tolist() == [1]
    assert model.predict_proba([[1, 9]]).tolist() == [[0.0, 1.0]]
