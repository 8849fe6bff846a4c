"""Rows that lack values: the certificate is about them as they are, and the checker goes the same ways."""

import numpy as np
import pytest

import assay
from assay.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from assay.tree import C45, DecisionTreeClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
X[:, 1] = RNG.integers(0, 4, 400)
Y = (X[:, 0] + X[:, 1] > 1).astype(int)
X[RNG.random(X.shape) < 0.1] = np.nan
TRAIN, HELD = (X[:300], Y[:300]), (X[300:], Y[300:])

MODELS = [
    RandomForestClassifier(10, random_state=0),
    RandomForestClassifier(10, nominal=[1], random_state=0),
    HistGradientBoostingClassifier(max_iter=10),
    HistGradientBoostingClassifier(max_iter=10, categorical_features=[1]),
    HistGradientBoostingRegressor(max_iter=10),
    RandomForestRegressor(10, random_state=0),
    ExtraTreesClassifier(10, random_state=0),
    DecisionTreeClassifier(),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_rows_with_gaps_are_certified_and_counted_as_they_are_predicted(model):
    model.fit(*TRAIN)
    certificate = model.certify(*TRAIN, holdout=HELD)
    report = assay.verify(certificate, model, *TRAIN, holdout=HELD)
    assert report.holds, report.reason
    fact = next(one for one in certificate.claims if one.name == "train.errors" and one.params["set"] == "holdout")
    lost = model.predict(HELD[0]) - HELD[1]
    measured = np.sum(lost != 0) if fact.params["loss"] == "zero-one" else np.mean(lost**2)
    assert fact.params["low"] <= measured <= fact.value


@pytest.mark.parametrize("model", [MODELS[0], MODELS[2]], ids=str)
def test_where_gaps_go_is_part_of_the_model(model):
    model.fit(*TRAIN)
    certificate = model.certify(*TRAIN)
    inner = np.flatnonzero(model.node_child_ >= 0)
    honest = model.node_missing_.copy()
    model.node_missing_[inner] = 1 - honest[inner]
    assert "fingerprint" in assay.verify(certificate, model, *TRAIN).reason
    model.node_missing_[inner] = 7
    assert not assay.verify(certificate, model, *TRAIN).holds


def test_trees_that_spread_gaps_over_their_branches_say_so():
    model = C45().fit(*TRAIN)
    with pytest.raises(ValueError, match="all branches"):
        model.certify(*TRAIN)


def test_levels_that_were_the_best_split_for_a_while_leave_no_marks():
    """A numeric split that beats a nominal one once sent the nominal column's levels left too, beyond the rows."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        Z = np.column_stack([rng.integers(0, 9, 300), rng.normal(size=(300, 3))])
        target = (Z[:, 1] + 0.3 * (Z[:, 0] % 3) > 0.3).astype(int)
        model = HistGradientBoostingClassifier(max_iter=20, categorical_features=[0]).fit(Z, target)
        assert model.node_weight_[model.tree_root_].tolist() == [300.0] * 20
        inner = np.flatnonzero(model.node_child_ >= 0)
        below = model.node_weight_[model.node_child_[inner]] + model.node_weight_[model.node_child_[inner] + 1]
        assert np.array_equal(below, model.node_weight_[inner])
        assert np.array_equal(np.isin(model.predict(Z), [0, 1]), np.ones(300, dtype=bool))
