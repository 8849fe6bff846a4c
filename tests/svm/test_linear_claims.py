"""Certificates of LinearSVC and LinearSVR: gaps, the distance to the optimum, forgeries."""

from dataclasses import replace

import numpy as np
import pytest

import assay
from assay.svm import LinearSVC, LinearSVR
from tests.svm.linear_problems import HINGE, TUBE, certified, objective, random_problem

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("dual", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_certificate_holds_and_is_tight(seed, dual):
    X, y, target, weight, C = random_problem(seed)
    C = min(C, 10.0)
    for loss in HINGE:
        params = {"loss": loss, "C": C, "fit_intercept": seed % 3 > 0, "intercept_scaling": [1.0, 3.0][seed % 2]}
        model = LinearSVC(dual=dual, max_iter=50, **params).fit(X, y, weight)  # cut short, it must tell the truth
        gap = certified(model, X, y, weight).find("linear-svm.gap").value
        exact = LinearSVC(dual=False, tol=1e-7, **params).fit(X, y, weight)
        excess = objective(model, X, y, weight, params) - objective(exact, X, y, weight, params)
        assert excess <= gap <= model.gap_ * 1.01 + 1e-6 * (1 + C)
    model = LinearSVR(loss=TUBE[seed % 2], C=C, epsilon=0.1, dual=dual).fit(X, target, weight)
    assert certified(model, X, target, weight).find("linear-svr.gap").value <= model.gap_ * 1.01 + 1e-6 * (1 + C)


def test_enclosure_holds_the_optimum():
    X, y, *_ = random_problem(2)
    rough = LinearSVC(dual=True, max_iter=3, random_state=0).fit(X, y)
    exact = LinearSVC(dual=False, tol=1e-7).fit(X, y)
    away = np.append(rough.coef_ - exact.coef_, rough.intercept_ - exact.intercept_)
    assert 0 < np.linalg.norm(away) <= certified(rough, X, y).find("solution.enclosure").value


def test_each_class_has_its_gap():
    random = np.random.default_rng(8)
    X = random.normal(size=(90, 3))
    y = np.digitize(X[:, 0] + 0.5 * random.normal(size=90), [-0.5, 0.5])
    model = LinearSVC(class_weight={0: 2.0, 1: 1.0, 2: 0.5}).fit(X, y)
    claims = [claim for claim in certified(model, X, y).claims if claim.name == "duality-gap"]
    assert [claim.params["class"] for claim in claims] == [0, 1, 2]
    assert "class number 2 against the rest" in claims[2].statement


def test_certificate_refuses_forgeries():
    X, y, *_ = random_problem(1)
    model = LinearSVC(loss="hinge").fit(X, y)
    honest = model.certify(X, y)
    at = next(i for i, claim in enumerate(honest.claims) if claim.name == "duality-gap")
    claim = honest.claims[at]
    theta = claim.witness["theta"]

    def holds(**changes):
        claims = list(honest.claims)
        claims[at] = replace(claim, **changes)
        return assay.verify(replace(honest, claims=tuple(claims)), model, X, y).holds

    assert holds()
    assert not holds(value=claim.value / 1e3)
    assert not holds(params={**claim.params, "C": 2.0})
    assert not holds(params={**claim.params, "column": 2.0})
    assert not holds(params={**claim.params, "loss": "squared-hinge"})
    assert not holds(params={**claim.params, "class_weight": [1.0, 2.0]})
    assert not holds(witness={"theta": -theta})
    assert not holds(witness={"theta": 0.9 * theta})
    assert not holds(witness={})
    assert not assay.verify(honest, model, X[::-1], y[::-1]).holds
    model.coef_ = model.coef_ + 1e-3
    assert not assay.verify(honest, model, X, y).holds


def test_other_rows_get_no_gap():
    X, y, *_ = random_problem(1)
    model = LinearSVC().fit(X, y)
    certificate = model.certify(X[:-1], y[:-1])
    assert any("rows of the fit" in one.reason for one in certificate.not_applicable)
    assert assay.verify(certificate, model, X[:-1], y[:-1]).holds
