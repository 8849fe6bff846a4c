"""How many clusters: the gap statistic and BIC against their definitions, and where the answer is known."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.cluster import KMeans as Peer

from assay.cluster import KMeans, sweep


def heaps(k, seed=0, each=60, d=3):
    rng = np.random.default_rng(seed)
    places = 8 * np.stack([np.cos(np.arange(k)), np.sin(np.arange(k)), np.arange(k) % 2], axis=1)[:, :d]
    return np.concatenate([rng.normal(place, 0.7, size=(each, d)) for place in places])


@pytest.mark.parametrize("k", [1, 2, 4])
def test_gap_and_bic_find_the_number_of_heaps(k):
    found = sweep(heaps(k), range(1, 7), model=KMeans(n_init=4, random_state=0), references=8, random_state=0)
    assert found.first_gap == k
    assert found.least_bic == k


def test_gap_is_its_definition():
    X = heaps(3, seed=1)
    model = KMeans(n_init=3, random_state=0)
    found = sweep(X, [1, 2, 3, 4], model=model, references=5, random_state=7)
    random, middle = np.random.RandomState(7), X.mean(axis=0)
    axes = np.linalg.eigh(np.cov(X.T))[1].T[::-1]
    logs = []
    for _ in range(5):
        turned = (X - middle) @ axes.T
        # The direction of an axis is a matter of sign: the box is mirrored, the distribution is the same.
        drawn = random.uniform(turned.min(axis=0), turned.max(axis=0), size=X.shape) @ axes + middle
        logs.append([np.log(Peer(k, n_init=3, random_state=0).fit(drawn).inertia_) for k in (1, 2, 3, 4)])
    logs = np.array(logs)
    expected = logs.mean(axis=0) - np.log([Peer(k, n_init=3, random_state=0).fit(X).inertia_ for k in (1, 2, 3, 4)])
    error = logs.std(axis=0) * np.sqrt(1 + 1 / 5)
    assert found.gap == pytest.approx(expected, abs=4 * error.max())
    assert found.gap_error == pytest.approx(error, abs=0.05)
    assert np.argmax(expected) == np.argmax(found.gap) == 2


def test_bic_is_that_of_round_gaussians():
    X = heaps(2, seed=2)
    found = sweep(X, [2], model=KMeans(random_state=0))
    model, (n, d) = found.models[0], X.shape
    variance = model.inertia_ / (n * d)
    each = [
        np.log(np.mean(model.labels_ == j)) + multivariate_normal(c, variance * np.eye(d)).logpdf(X[model.labels_ == j])
        for j, c in enumerate(model.cluster_centers_)
    ]
    parameters = 1 + 2 * d + 1
    assert found.bic[0] == pytest.approx(-2 * np.sum(np.concatenate(each)) + parameters * np.log(n), rel=1e-10)


def test_without_references_there_is_no_gap_and_rows_on_their_centres_have_neither():
    found = sweep(heaps(2), [1, 2], model=KMeans(random_state=0))
    assert np.isnan(found.gap).all()
    with pytest.raises(ValueError, match="needs references"):
        _ = found.first_gap
    alone = sweep([[0.0], [1.0]], [2], model=KMeans(random_state=0), references=2)
    assert np.isnan(alone.bic).all()
    with pytest.raises(ValueError, match="lies on its centre"):
        _ = alone.least_bic
    with pytest.raises(ValueError, match="references must be a whole number"):
        sweep(heaps(2), [1], references=-1)
