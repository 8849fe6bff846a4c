"""Facts in the certificates of regressors made of trees: the mean squared error, the size of a tree."""

from dataclasses import replace

import numpy as np
import pytest

import assay
from assay.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from assay.tree import DecisionTreeRegressor

MODELS = [
    DecisionTreeRegressor(max_depth=4),
    DecisionTreeRegressor(),
    DecisionTreeRegressor(criterion="absolute_error", max_depth=3),
    RandomForestRegressor(15, random_state=0),
    ExtraTreesRegressor(5, random_state=0),
    BaggingRegressor(n_estimators=5, random_state=0),
    HistGradientBoostingRegressor(max_iter=20),
    AdaBoostRegressor(n_estimators=5, random_state=0),
]


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_squared_error_is_stated_and_checked(model, scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = scale * (X[:, 0] ** 2 + 0.3 * rng.normal(size=200) + 5)
    model.fit(X, y)
    certificate = model.certify(X, y)
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason
    claim = certificate.find("train.errors")
    mean = np.mean((y - model.predict(X)) ** 2)
    assert claim.params["low"] <= mean * (1 + 1e-12) + 1e-20
    assert mean <= claim.value * (1 + 1e-12)
    assert claim.value - claim.params["low"] <= 1e-9 * mean + 1e-12 * scale**2


def test_a_tree_states_its_size():
    X, y = np.arange(8.0)[:, None], np.arange(8.0)
    model = DecisionTreeRegressor(max_depth=2).fit(X, y)
    certificate = model.certify(X, y)
    assert certificate.find("tree.facts").params == {"leaves": 4, "depth": 2}
    assert assay.verify(certificate, model, X, y).holds


def test_an_error_stated_too_small_is_rejected():
    X, y = np.random.default_rng(1).normal(size=(50, 2)), np.arange(50.0)
    model = DecisionTreeRegressor(max_depth=2).fit(X, y)
    certificate = model.certify(X, y)
    at = next(i for i, claim in enumerate(certificate.claims) if claim.name == "train.errors")
    claims = list(certificate.claims)
    claims[at] = replace(claims[at], value=claims[at].value * (1 - 1e-9))
    assert not assay.verify(replace(certificate, claims=tuple(claims)), model, X, y).holds


def test_the_exponential_of_a_score_is_no_score():
    """With the Poisson loss the prediction is exp(score), which the sum of trees does not give; nothing is stated."""
    X, y = np.arange(30.0)[:, None], np.arange(30.0)
    certificate = HistGradientBoostingRegressor(loss="poisson", max_iter=3).fit(X, y).certify(X, y)
    assert not [claim for claim in certificate.claims if claim.name == "train.errors"]
