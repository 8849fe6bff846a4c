"""Certificates of support vector machines: gaps, margins from both sides, and where there is no claim."""

from dataclasses import replace

import numpy as np
import pytest

import assay
from assay.svm import SVC
from assay.textbook import svm as textbook
from tests.svm.machine_rows import beta_of, overlapping, separable


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian"])
def test_gap_bounds_the_true_excess_and_forgeries_fail(kernel):
    X, y = overlapping(2, 60)
    params = {"kernel": kernel, "gamma": 0.5, "coef0": 1.0, "degree": 2, "C": 2.0}
    loose = SVC(tol=0.05, **params).fit(X, y)
    exact = SVC(tol=1e-9, **params).fit(X, y)
    K = loose._kernel()(X)

    def objective(model):
        beta = beta_of(model, len(X))
        return 0.5 * beta @ K @ beta + 2.0 * np.maximum(0, 1 - y * (K @ beta + model.intercept_[0])).sum()

    certificate = loose.certify(X, y)
    gap = certificate.find("svm.gap").value
    assert objective(loose) - objective(exact) <= gap
    assert assay.verify(certificate, loose, X, y).holds
    claims = tuple(replace(c, value=0.9 * c.value) if c.name == "kernel-duality-gap" else c for c in certificate.claims)
    assert not assay.verify(replace(certificate, claims=claims), loose, X, y).holds
    claims = tuple(
        replace(c, params={**c.params, "C": 1.0}) if c.name == "kernel-duality-gap" else c for c in certificate.claims
    )
    assert not assay.verify(replace(certificate, claims=claims), loose, X, y).holds
    loose.intercept_ = loose.intercept_ + 0.5
    assert not assay.verify(certificate, loose, X, y).holds


def test_hard_margin_is_enclosed_from_both_sides():
    X, y = separable(5)
    model = SVC(C=np.inf, kernel="linear", tol=1e-9).fit(X, y)
    certificate = model.certify(X, y)
    low, high = (c.value for c in certificate.claims if c.name == "kernel-margin.bounds")
    margin = textbook.geometric_margin(model.coef_[0], model.intercept_[0], X, y)
    assert low <= margin * (1 + 1e-9)
    assert margin <= high
    assert high - low < 1e-6 * high
    assert assay.verify(certificate, model, X, y).holds


def test_an_indefinite_kernel_gets_no_optimality_claim():
    X, y = overlapping(0)
    certificate = SVC(kernel="sigmoid").fit(X, y).certify(X, y)
    assert not [c for c in certificate.claims if c.name == "kernel-duality-gap"]
    assert any("not positive semidefinite" in gap.reason for gap in certificate.not_applicable)
