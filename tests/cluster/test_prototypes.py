"""Learners that stand for rows by a few points have one face: `prototypes_` and `cells`."""

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from assay.cluster import KMeans, KMedoids, KPrototypes, MiniBatchKMeans
from assay.mixture import GaussianMixture
from assay.neighbors import LearningVectorQuantization
from assay.prototypes import PrototypeMixin

PLACES = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
LEARNERS = [
    KMeans(3, random_state=0, n_init=5),
    MiniBatchKMeans(3, random_state=0),
    KMedoids(3, random_state=0),
    KPrototypes(3, random_state=0),
    LearningVectorQuantization({0: 2, 1: 2, 2: 1}, random_state=0),
    GaussianMixture(3, covariance_type="spherical", random_state=0),
]


def _rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    y = rng.integers(3, size=240)
    return PLACES[y] + rng.normal(size=(240, 2)) * 0.5, y


@pytest.mark.mission("CLU-42")
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: type(one).__name__)
def test_labels_are_those_of_the_nearest_prototype(learner: Any) -> None:
    X, y = _rows()
    model = learner.fit(X, y)
    assert isinstance(model, PrototypeMixin)
    assert model.prototypes_.shape[1] == 2
    cells = model.cells(X)
    np.testing.assert_array_equal(cells, cdist(X, model.prototypes_).argmin(axis=1))
    label_of = model.classes_[model.prototype_codes_] if hasattr(model, "classes_") else np.arange(3)
    # Components that are round, of one size and weight nearly, have the cells of their means: the rows lie well inside.
    np.testing.assert_array_equal(model.predict(X), label_of[cells])
    first = model.cells(np.repeat(model.prototypes_[:1], 2, axis=0))
    np.testing.assert_array_equal(first, [0, 0])


def test_rows_that_are_not_finite_have_no_cell() -> None:
    X, y = _rows()
    for learner in LEARNERS:
        if isinstance(learner, KPrototypes):  # to which NaN is a gap
            continue
        with pytest.raises(ValueError, match="NaN"):
            learner.fit(X, y).cells([[np.nan, 0.0]])
