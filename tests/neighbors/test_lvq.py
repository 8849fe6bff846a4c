"""Learning vector quantisation: the step by hand, the stop conditions, Voronoi cells."""

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

import assay
from assay.neighbors import LearningVectorQuantization
from assay.neighbors._loops import lvq_pass


def blobs(n=300, seed=0):
    return make_blobs(n, centers=[[0.0, 0.0], [6.0, 1.0]], random_state=seed)


@pytest.mark.mission("CLU-43")
@pytest.mark.parametrize(("label", "factor"), [(0, 0.7), (1, 1.3)])
def test_one_step_by_hand(label, factor):
    """The nearest prototype's distance to the row becomes (1 - eta) or (1 + eta) times what it was; others rest."""
    prototypes, row = np.array([[1.0, 0.0], [9.0, 9.0]]), np.array([[0.0, 2.0]])
    before = prototypes.copy()
    box = np.full(2, -100.0), np.full(2, 100.0)
    wrong = lvq_pass(row, np.array([label]), np.array([0]), 0.3, *box, prototypes, np.array([0, 1]))
    assert wrong == label
    assert np.linalg.norm(prototypes[0] - row[0]) == pytest.approx(factor * np.linalg.norm(before[0] - row[0]))
    assert np.array_equal(prototypes[1], before[1])


@pytest.mark.mission("CLU-43")
def test_two_blobs():
    X, y = blobs()
    model = LearningVectorQuantization(schedule="inverse", random_state=1).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.prototype_codes_.tolist() == [0, 1]
    assert np.abs(model.prototypes_ - [[0.0, 0.0], [6.0, 1.0]]).max() < 0.5
    again = LearningVectorQuantization(schedule="inverse", random_state=1).fit(X, y)
    assert np.array_equal(again.prototypes_, model.prototypes_)


def test_prototypes_of_each_class():
    X, y = blobs()
    model = LearningVectorQuantization({0: 1, 1: 3}, max_iter=1, learning_rate=1e-12, random_state=0).fit(X, y)
    assert model.prototype_codes_.tolist() == [0, 1, 1, 1]
    start = cdist(model.prototypes_, X)
    assert start.min(axis=1).max() < 1e-9  # each starts at a row ...
    assert np.array_equal(y[start.argmin(axis=1)], model.prototype_codes_)  # ... of its own label
    for wrong in ({0: 1}, {0: 1, 1: 0}, 0, 1.5):
        with pytest.raises(ValueError, match="n_prototypes must be"):
            LearningVectorQuantization(wrong).fit(X, y)


@pytest.mark.mission("CLU-44")
def test_both_stop_conditions_fire():
    X, y = blobs()
    rested = LearningVectorQuantization(schedule="inverse", tol=0.05, max_iter=500, random_state=0).fit(X, y)
    assert rested.n_iter_ < 500
    assert rested.movement_ <= 0.05
    with pytest.warns(ConvergenceWarning, match="still moved"):
        stopped = LearningVectorQuantization(schedule="inverse", tol=0.0, max_iter=7, random_state=0).fit(X, y)
    assert stopped.n_iter_ == 7
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # with a constant step the number of passes is the rule, not a failure
        assert LearningVectorQuantization(tol=0.0, max_iter=3, random_state=0).fit(X, y).n_iter_ == 3


@pytest.mark.mission("CLU-45")
def test_cells_are_nearest_prototypes():
    X, y = make_blobs(400, centers=5, random_state=3)
    model = LearningVectorQuantization(3, random_state=0, max_iter=5).fit(X, y)
    cells = cdist(X, model.prototypes_).argmin(axis=1)
    assert np.array_equal(model.cells(X), cells)
    assert np.array_equal(model.predict(X), model.classes_[model.prototype_codes_[cells]])
    model.prototypes_ = np.repeat([[8.0, 0.0], [6.0, 0.0]], [14, 1], axis=0)
    assert model.cells([[7.0, 5.0], [6.9, 5.0]]).tolist() == [0, 14]  # on a border the first prototype has the row


def test_certificate_by_the_number_of_prototypes():
    X, y = blobs(1500)
    model = LearningVectorQuantization(schedule="inverse", random_state=0).fit(X, y)
    certificate = model.certify(X, y)
    claim = certificate.find("vc")
    assert claim.params["class"] == {"class": "prototypes", "d": 2, "k": 2, "classes": 2}
    assert claim.value < 0.05
    assert assay.verify(certificate, model, X, y).holds
    noise = np.random.default_rng(0).integers(0, 2, 1500)
    model = LearningVectorQuantization(2, random_state=0, max_iter=3).fit(X, noise)
    assert model.certify(X, noise).find("vc").value > 0.5  # labels that are coins


@pytest.mark.parametrize("seed", range(3))
def test_prototypes_stay_among_the_rows_where_most_rows_push(seed):
    """Eleven labels that the columns hardly tell apart: nearly every row has another label than its prototype."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(693, 3)), rng.integers(0, 11, 693)
    X[:, 0] += 0.1 * y
    model = LearningVectorQuantization(random_state=seed).fit(X, y)
    assert (model.prototypes_ >= X.min(axis=0)).all()
    assert (model.prototypes_ <= X.max(axis=0)).all()
    assert np.array_equal(model.cells(X), cdist(X, model.prototypes_).argmin(axis=1))
    assert set(model.predict(1e3 * X)) <= set(range(11))


def test_huge_rows_have_cells():
    X = np.array([[1e300, 0.0], [-1e300, 0.0], [9e299, 1.0], [-9e299, 1.0]])
    model = LearningVectorQuantization(random_state=0).fit(X, [0, 1, 0, 1])
    assert model.predict(X).tolist() == [0, 1, 0, 1]
