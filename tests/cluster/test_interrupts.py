"""Ctrl-C in the middle of a fit keeps what was found so far: prototypes, mixtures, categories, machines."""

import signal
import warnings

import numpy as np
import pytest

import assay
from assay import fitlog
from assay.cluster import KMeans, KMedoids, KModes, KPrototypes, MiniBatchKMeans
from assay.mixture import GaussianDensity, GaussianMixture
from assay.neural_network import (
    ART1,
    BernoulliRBM,
    CompetitiveLearning,
    DeepBeliefNetwork,
    FuzzyART,
    RBFRegressor,
    SelfOrganizingMap,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
NAMES = RNG.integers(4, size=(300, 5)).astype(float)
DOTS = (RNG.uniform(size=(200, 8)) < 0.5).astype(float)
GAPS = np.where(RNG.uniform(size=X.shape) < 0.2, np.nan, X)
LEARNERS = [
    (KMeans(8, n_init=3, random_state=0, tol=0), X),
    (MiniBatchKMeans(8, batch_size=30, random_state=0), X),
    (KMedoids(6, random_state=0), X),
    (KModes(5, n_init=3, random_state=0), NAMES),
    (KPrototypes(5, nominal=[0], n_init=3, random_state=0), np.column_stack([NAMES[:, :1], X])),
    (GaussianMixture(4, n_init=3, tol=0, init_params="random", random_state=0), X),
    (GaussianDensity(tol=0), GAPS),
    (CompetitiveLearning(6, tol=0, random_state=0), X),
    (FuzzyART(0.9, random_state=0), X),
    (ART1(0.7), DOTS),
    (SelfOrganizingMap((4, 4)), X),
    (SelfOrganizingMap((4, 4), algorithm="online", random_state=0), X),
    (BernoulliRBM(4, random_state=0), DOTS),
]


def press(monkeypatch, after):
    """Let Ctrl-C be pressed when so many steps of a fit are logged."""
    real, steps = fitlog.FitLog.step, []

    def step(self, *args, **fitted):
        found = real(self, *args, **fitted)
        steps.append(self)
        if len(steps) == after:
            signal.raise_signal(signal.SIGINT)
        return found

    monkeypatch.setattr(fitlog.FitLog, "step", step)
    return steps


def fitted(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(data)


@pytest.mark.parametrize(("learner", "data"), LEARNERS, ids=lambda part: type(part).__name__)
def test_what_was_found_stays(learner, data, monkeypatch):
    from sklearn.base import clone

    steps = press(monkeypatch, 2)
    model = fitted(clone(learner), data)
    assert len(model.history_) == len(steps) == 2
    if not np.isnan(data).any():
        certificate = model.certify(data)
        assert assay.verify(certificate, model, data).holds
    if hasattr(model, "labels_") and not isinstance(model, (FuzzyART, ART1)):
        assert np.array_equal(model.labels_, model.predict(data))


def test_k_means_keeps_the_means_and_the_cost_of_the_last_whole_iteration(monkeypatch):
    press(monkeypatch, 3)
    model = KMeans(8, init=X[:8], tol=0).fit(X)
    monkeypatch.undo()
    whole = fitted(KMeans(8, init=X[:8], tol=0, max_iter=3), X)
    assert np.array_equal(model.cluster_centers_, whole.cluster_centers_)
    assert np.array_equal(model.labels_, whole.labels_)
    assert model.inertia_ == whole.inertia_
    assert model.n_iter_ == 3


def test_the_best_of_the_starts_so_far_is_kept(monkeypatch):
    """Ctrl-C in the second start: the first one, which came to its end, is the better of the two."""
    first = fitted(KMeans(8, init="random", n_init=1, random_state=1), X)
    press(monkeypatch, len(first.history_) + 1)
    model = KMeans(8, init="random", n_init=5, random_state=1).fit(X)
    assert model.inertia_ == first.inertia_


def test_within_another_fit_it_ends_both(monkeypatch):
    """k-means, which seeks the centres of a network, answers by keeping its best; the network has none yet."""
    press(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        RBFRegressor(4, random_state=0, centers="kmeans").fit(X, X[:, 0])
    monkeypatch.undo()
    press(monkeypatch, 2)
    stack = fitted(DeepBeliefNetwork((5, 4, 3), n_iter=6, random_state=0), DOTS)
    assert [len(machine.history_) for machine in stack.machines_] == [2, 1, 1]
    assert stack.transform(DOTS).shape == (200, 3)


def test_before_anything_is_found_it_is_what_it_was(monkeypatch):
    def never(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("assay.cluster._kmeans.starting_centers", never)
    with pytest.raises(KeyboardInterrupt):
        KMeans(3).fit(X)
