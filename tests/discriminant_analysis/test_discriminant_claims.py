"""Certificates of discriminant analysis: the optimum of Fisher's criterion, moments and scores, forgeries."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import assay
from assay.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    fisher_ratio,
)
from tests.discriminant_analysis.gaussian_classes import draw


@pytest.mark.parametrize("options", [{}, {"covariance": "equal"}, {"solver": "lsqr", "shrinkage": 0.3}])
@pytest.mark.parametrize("classes", [2, 3])
def test_certificate_holds_and_a_worse_direction_is_caught(classes, options):
    X, y = draw(10, n=700, classes=classes)
    model = LinearDiscriminantAnalysis(**options).fit(X, y)
    certificate = model.certify(X, y)
    claim = certificate.find("lda.optimality")
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason
    assert claim.value < 1e-5
    if classes == 2:
        turned = LinearDiscriminantAnalysis(**options).fit(X, y)
        turned.coef_ = turned.coef_ * np.array([1.05, 1, 1, 1])
        report = assay.verify(turned.certify(X, y), turned, X, y)
        assert report.holds, report.reason  # still true: the claim says how much is lost
        lost = turned.certify(X, y).find("lda.optimality").value
        apart = np.diff(turned.means_, axis=0)[0]
        J = [fisher_ratio(m.coef_[0], np.outer(apart, apart), turned.sigma_) for m in (model, turned)]
        assert lost > 0.99 * (J[0] - J[1]) > 100 * claim.value
        claims = tuple(claim if c.name == "lda.optimality" else c for c in turned.certify(X, y).claims)
        forged = replace(turned.certify(X, y), claims=claims)
        assert "lda.optimality" in assay.verify(forged, turned, X, y).reason
    for change in ({"mu": claim.params["mu"] * 3}, {"shrinkage": 0.9}, {"covariance": "none"}):
        wrong = replace(claim, params={**claim.params, **change})
        claims = tuple(wrong if c is claim else c for c in certificate.claims)
        assert not assay.verify(replace(certificate, claims=claims), model, X, y).holds


MODELS = [
    LinearDiscriminantAnalysis(),
    LinearDiscriminantAnalysis(covariance="equal"),
    LinearDiscriminantAnalysis("lsqr", shrinkage=0.3),
    LinearDiscriminantAnalysis("lsqr", shrinkage=0.3, priors=[0.2, 0.5, 0.3]),
    LinearDiscriminantAnalysis("eigen", priors=[0.2, 0.5, 0.3]),
    QuadraticDiscriminantAnalysis(),
    QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.3),
    QuadraticDiscriminantAnalysis(reg_param=0.2, priors=[0.2, 0.5, 0.3]),
]


@pytest.mark.parametrize("offset", [0.0, 30.0, 1e6])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_moments_and_scores_are_proved_on_whatever_offset(model, offset):
    for classes in (2, 3):
        X, y = draw(14, n=300, classes=classes)
        X, priors = X - 30 + offset, {2: [0.4, 0.6], 3: [0.2, 0.5, 0.3]}
        model = clone(model).set_params(priors=None if model.priors is None else priors[classes]).fit(X, y)
        certificate = model.certify(X, y)
        report = assay.verify(certificate, model, X, y)
        assert report.holds, report.reason
        claim = certificate.find("gaussian.mle")
        assert claim.params["error"] < 1e-10 + 1e-13 * offset
        assert claim.value < 1e-4 + 1e-9 * offset


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
def test_forged_moments_and_scores_are_refused(kind, classes):
    """Another model under the old claim, other moments, other parameters: each change is more than the claim allows."""
    X, y = draw(15, n=300, classes=classes)
    model = kind().fit(X, y)
    certificate = model.certify(X, y)
    claim = certificate.find("gaussian.mle")

    def holds(changed, fitted=model):
        issued = replace(fitted.certify(X, y), claims=(*certificate.claims[:2], changed))
        return assay.verify(issued, fitted, X, y)

    assert holds(claim).holds
    names = ("coef_", "intercept_") if kind is LinearDiscriminantAnalysis else ("quadratic_", "linear_", "constant_")
    for name in names:
        bent = kind().fit(X, y)
        setattr(bent, name, getattr(bent, name) * (1 + 1e-4))
        assert "gaussian.mle: fails: claimed" in holds(claim, bent).reason
    for name, words in (("means", "a mean is off"), ("covariance", "a covariance is off")):
        moved = claim.witness[name].copy()
        moved.flat[0] += 1e-5 * abs(moved.flat[0])
        assert words in holds(replace(claim, witness={**claim.witness, name: moved})).reason
    if kind is QuadraticDiscriminantAnalysis:
        moved = claim.witness["precision"] * 1.001
        assert not holds(replace(claim, witness={**claim.witness, "precision": moved})).holds
    wide = claim.witness["exponents"] - 9  # in coarser units every error would look small
    assert "unit spread" in holds(replace(claim, witness={**claim.witness, "exponents": wide})).reason
    even = [1 / classes] * classes
    for change in ({"mu": 3 * claim.params["mu"]}, {"shrinkage": 0.1}, {"priors": even}, {"priors": even[:-1]}):
        assert not holds(replace(claim, params={**claim.params, **change})).holds
    other = "quadratic" if kind is LinearDiscriminantAnalysis else "linear"
    assert "it needs a" in holds(replace(claim, params={**claim.params, "form": other})).reason
