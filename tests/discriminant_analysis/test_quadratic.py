"""Quadratic discriminant analysis: scikit-learn's, and what no line can learn."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.covariance import OAS
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis as PeerQDA

import assay
from assay.discriminant_analysis import QuadraticDiscriminantAnalysis
from tests.discriminant_analysis.gaussian_classes import certified_or_said_why_not


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_quadratic_agrees_with_scikit_learn(load):
    X, y = load(return_X_y=True)
    for options in ({}, {"reg_param": 0.2}, {"priors": [0.2, 0.3, 0.5]}):
        ours, peer = QuadraticDiscriminantAnalysis(**options).fit(X, y), PeerQDA(**options).fit(X, y)
        np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-9)
        certificate = ours.certify(X, y)
        report = assay.verify(certificate, ours, X, y)
        assert report.holds, report.reason


def test_quadratic_learns_what_no_line_can():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(4_000, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = QuadraticDiscriminantAnalysis().fit(X, y)
    assert model.score(X, y) > 0.95
    certificate = model.certify(X, y)
    assert certificate.find("vc").params["class"] == {
        "class": "function-space",
        "dimension": 6,
        "classes": 2,
    }
    assert assay.verify(certificate, model, X, y).holds
    claim = certificate.find("vc")
    small = replace(claim, params={**claim.params, "class": {**claim.params["class"], "dimension": 3}})
    claims = tuple(small if c is claim else c for c in certificate.claims)
    assert "does not belong" in assay.verify(replace(certificate, claims=claims), model, X, y).reason
    model.quadratic_ = -model.quadratic_
    assert "fingerprint" in assay.verify(certificate, model, X, y).reason


@pytest.mark.parametrize(
    "options", [{"shrinkage": 0.4}, {"shrinkage": "auto"}, {"covariance_estimator": OAS()}], ids=str
)
def test_quadratic_shrinkage_agrees_with_scikit_learn(options):
    X, y = load_wine(return_X_y=True)
    options = {"solver": "eigen", "store_covariance": True, **options}
    ours, peer = (kind(**options).fit(X, y) for kind in (QuadraticDiscriminantAnalysis, PeerQDA))
    np.testing.assert_allclose(ours.covariance_, peer.covariance_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-8)
    for k in range(3):
        np.testing.assert_allclose(ours.scalings_[k], peer.scalings_[k], rtol=1e-8)
        np.testing.assert_allclose(np.abs(ours.rotations_[k]), np.abs(peer.rotations_[k]), atol=1e-7)
    certified_or_said_why_not(ours, X, y)
