"""One claim serves the gaps of many learners: the names and sentences that a person reads stay those of the problem."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import is_classifier

import assay
from assay.claims.directory import definition
from assay.kernel_model import KernelLogisticRegression
from assay.kernel_ridge import KernelRidge
from assay.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from assay.svm import SVC, SVR, LinearSVC, LinearSVR, OneClassSVM

NAMES = {
    "ridge.gap": (Ridge(2.0), ("squared loss", "C = 1", "L2 penalty 2", "free intercept")),
    "elastic-net.gap": (ElasticNet(0.5, l1_ratio=0.25), ("L1 penalty 5", "L2 penalty 15")),
    "elastic-net.gap of L1": (Lasso(0.5), ("squared loss", "L1 penalty 20")),
    "elastic-net.gap of L2": (ElasticNet(0.5, l1_ratio=0.0), ("L2 penalty 20",)),
    "logistic.gap": (LogisticRegression(C=0.5, fit_intercept=False), ("logistic loss", "C = 0.5", "no intercept")),
    "linear-svm.gap": (LinearSVC(intercept_scaling=3.0), ("squared-hinge loss", "coefficient of a column of 3")),
    "linear-svr.gap": (LinearSVR(epsilon=0.25), ("epsilon-insensitive loss", "epsilon = 0.25")),
    "linear-svm.gap of gradients": (SGDClassifier(random_state=0, alpha=0.5), ("hinge loss", "L2 penalty 0.5")),
    "duality-gap": (SGDRegressor("absolute_error", random_state=0), ("quantile loss", "level = 0.5")),
    "svm.gap": (SVC(class_weight={0: 2.0, 1: 3.0}), ("hinge loss", "class weights 2, 3", "free intercept")),
    "svr.gap": (SVR(epsilon=0.25), ("epsilon-insensitive loss", "epsilon = 0.25")),
    "kernel-logistic.gap": (KernelLogisticRegression(C=2.0), ("logistic loss", "C = 2")),
    "kernel-ridge.gap": (KernelRidge(alpha=0.125), ("squared loss", "L2 penalty 0.125", "no intercept")),
}


def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    return X, (X[:, 0] + 0.5 * rng.normal(size=40) > 0).astype(int)


@pytest.mark.parametrize("name", NAMES)
def test_a_gap_is_found_and_judged_by_the_name_of_its_problem(name):
    model, words = NAMES[name]
    name = name.split(" of ")[0]
    X, y = rows()
    target = y if is_classifier(model) else y * 1.0
    certificate = model.fit(X, target).certify(X, target)
    claim = certificate[name]
    assert claim.kind == name
    assert all(word in claim.statement for word in words), claim.statement
    verdicts = assay.verify(certificate, model, X, target).verdicts
    assert name in {verdict.claim for verdict in verdicts if verdict.holds}
    assert name in definition(claim.name).names


def test_each_class_and_each_pair_is_told_apart():
    X, _ = rows()
    y = np.arange(40) % 3
    pairs = [claim for claim in SVC().fit(X, y).certify(X, y).claims if claim.kind == "svm.gap"]
    assert [claim.statement[23:32] for claim in pairs] == ["of pair 0", "of pair 1", "of pair 2"]
    classes = [claim for claim in LinearSVC().fit(X, y).certify(X, y).claims if claim.kind == "linear-svm.gap"]
    assert [claim.params["class"] for claim in classes] == [0, 1, 2]
    assert LogisticRegression().fit(X, y).certify(X, y)["multinomial.gap"].name == "multinomial.gap"
    assert OneClassSVM().fit(X).certify(X)["one-class.gap"].name == "one-class.gap"


@pytest.mark.parametrize("params", [{}, {"loss": 3}, {"loss": ["hinge"]}, {"loss": "squared", "penalty": 1}])
def test_a_malformed_problem_has_a_name_and_is_refused(params):
    X, y = rows()
    model = LogisticRegression().fit(X, y)
    certificate = model.certify(X, y)
    claims = tuple(replace(one, params=params) if one.name == "duality-gap" else one for one in certificate.claims)
    report = assay.verify(forged := replace(certificate, claims=claims), model, X, y)
    assert not report.holds
    assert str(forged)
