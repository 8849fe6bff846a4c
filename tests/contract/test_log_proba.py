"""Probabilities of many columns are logarithms: finite where a product would be zero, and never NaN."""

import numpy as np
import pytest

import assay
from tests.contract.test_contract import example, fitted, suited

COLUMNS = 1_000
PAIRS = ("A2DE", "AODE", "SPODE", "TAN")  # their counts of pairs or triples of a thousand columns are refused
FEW = 40
LEARNERS = [learner for learner in assay.learners("classify") if hasattr(example(learner), "predict_log_proba")]


@pytest.mark.mission("BAY-07")
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)
def test_rows_of_a_thousand_columns_have_finite_logarithms(learner):
    rng = np.random.default_rng(0)
    d = FEW if learner.__name__ in PAIRS else COLUMNS
    y = np.arange(60) % 2
    model = example(learner)
    if learner.__name__ == "BayesianNetworkClassifier":
        model.set_params(structure="naive")  # a search would look at a million pairs of columns
    if learner.__name__ == "QuadraticDiscriminantAnalysis":
        model.set_params(solver="eigen", shrinkage="auto")  # a class of 30 rows has no covariance of its own
    X = suited(model, np.round(rng.normal(size=(60, d)) + 0.5 * y[:, None], 1))
    model = fitted(model, X, y)
    logs = model.predict_log_proba(X)
    assert not np.isnan(logs).any()
    own = model.predict(X)
    assert np.isfinite(logs[np.arange(60), own]).all()
    assert np.allclose(np.exp(logs).sum(axis=1), 1)
    if hasattr(model, "log_joint"):
        joint = model.log_joint(X)
        assert np.isfinite(joint).all()
