"""One-class gaps (one-class.gap), optimality conditions (kkt.residual) and leave-one-out errors (loo.squared-error),
against other libraries and brute force."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn import svm as libsvm

import assay
from assay.kernel_ridge import KernelRidge
from assay.linear_model import LogisticRegression
from assay.svm import SVC, OneClassSVM


def rows(seed, n=120):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3))
    X[:, 0] += 1.2 * (2 * y - 1)
    return X, y


def forged(certificate, name, **changes):
    claims = [replace(one, **changes) if one.name == name else one for one in certificate.claims]
    return replace(certificate, claims=tuple(claims))


def refused(certificate, model, *data, **changes):
    report = assay.verify(forged(certificate, **changes), model, *data)
    return not report.holds


# One class --------------------------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("nu", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_one_class_gap_covers_the_excess(kernel, nu, weighted):
    X, _ = rows(1)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, len(X)) if weighted else None
    options = {"kernel": kernel, "nu": nu, "gamma": 0.3, "degree": 2, "coef0": 1.0}
    model = OneClassSVM(tol=1e-4, **options).fit(X, sample_weight=weight)
    certificate = model.certify(X, sample_weight=weight)
    assert assay.verify(certificate, model, X, sample_weight=weight).holds
    found = [claim for claim in certificate.claims if claim.name == "one-class.gap"]
    if not found:
        assert nu == 1.0  # every alpha is at its bound, and rounding can miss the sum
        return
    s = np.ones(len(X)) if weight is None else weight
    f, rho = model.score_samples(X), float(model.offset_[0])
    K = model._kernel()(X)
    beta = np.zeros(len(X))
    beta[model.support_] = model.dual_coef_[0]
    primal = 0.5 * beta @ K @ beta - nu * s.sum() * rho + s @ np.maximum(0.0, rho - f)
    alpha = s.copy()  # nu = 1 leaves no choice
    if nu < 1:
        theirs = libsvm.OneClassSVM(tol=1e-6, **options).fit(X, sample_weight=weight)
        alpha[:] = 0.0
        alpha[theirs.support_] = theirs.dual_coef_[0]
    excess = primal + 0.5 * alpha @ K @ alpha
    assert excess <= found[0].value + 1e-5 * (1 + abs(primal))  # the other library's dual is good to that
    assert found[0].value <= 1e-2
    changes = [{"params": {"nu": 0.9 * nu}}]
    if found[0].value > 1e-5:  # below that it is mostly what rounding is allowed
        changes.append({"value": 0.5 * found[0].value})
    for change in changes:
        report = assay.verify(forged(certificate, "one-class.gap", **change), model, X, sample_weight=weight)
        assert not report.holds


def test_a_kernel_that_is_no_inner_product_has_no_gap():
    X, _ = rows(1)
    certificate = OneClassSVM(kernel="sigmoid", nu=0.5, gamma=0.1).fit(X).certify(X)
    assert "one-class.gap" in {gap.name for gap in certificate.not_applicable}


# Optimality conditions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"kernel": "linear"}, {"gamma": 0.5, "C": 5.0}, {"class_weight": "balanced"}])
def test_the_residual_is_that_of_the_textbook(options):
    X, y = rows(3)
    model = SVC(tol=1e-2, **options).fit(X, y)
    certificate = model.certify(X, y)
    assert assay.verify(certificate, model, X, y).holds
    claim = certificate.find("kkt.residual")
    signs, alpha = 2.0 * y - 1, np.zeros(len(X))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    bound = model.C * model.class_weight_[y]
    e = signs - model.decision_function(X)
    up = np.where(y == 1, alpha < bound, alpha > 0)
    down = np.where(y == 1, alpha > 0, alpha < bound)
    assert claim.value == pytest.approx(max(0.0, e[up].max() - e[down].min()), rel=1e-5, abs=1e-9)
    assert claim.value <= 1e-2 * (1 + 1e-5)
    assert refused(certificate, model, X, y, name="kkt.residual", value=0.99 * claim.value)
    assert refused(certificate, model, X, y, name="kkt.residual", params={**claim.params, "C": 2 * claim.params["C"]})


@pytest.mark.parametrize("kernel", ["sigmoid", "precomputed"])
def test_without_a_proof_of_convexity_the_first_order_conditions_remain(kernel):
    X, y = rows(6)
    K = np.tanh(0.2 * X @ X.T + 0.1)
    given = K if kernel == "precomputed" else X
    model = SVC(kernel=kernel, gamma=0.2, coef0=0.1, C=3.0).fit(given, y)
    certificate = model.certify(given, y)
    assert assay.verify(certificate, model, given, y).holds
    assert "kernel-duality-gap" in {gap.name for gap in certificate.not_applicable}
    claim = certificate.find("kkt.residual")
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    e = (2.0 * y - 1) - K @ beta
    up = np.where(y == 1, beta < 3.0, beta < 0)
    down = np.where(y == 1, beta > 0, beta > -3.0)
    assert claim.value == pytest.approx(max(0.0, e[up].max() - e[down].min()), rel=1e-5, abs=1e-9)
    if claim.value > 1e-8:
        assert refused(certificate, model, given, y, name="kkt.residual", value=0.9 * claim.value)


def test_every_pair_of_classes_has_its_residual():
    X, _ = rows(4)
    y = np.arange(len(X)) % 3
    model = SVC(gamma=0.5).fit(X, y)
    certificate = model.certify(X, y)
    assert assay.verify(certificate, model, X, y).holds
    assert [claim.params["pair"] for claim in certificate.claims if claim.name == "kkt.residual"] == [0, 1, 2]


# Leave one out ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kernel", "alpha"), [("rbf", 0.1), ("linear", 1.0), ("poly", 1.0), ("laplacian", 1e-3)])
def test_kernel_ridge_against_as_many_fits(kernel, alpha):
    X, _ = rows(5, 40)
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1]

    def fit(keep):
        return KernelRidge(alpha=alpha, kernel=kernel, gamma=0.5, degree=2).fit(X[keep], y[keep])

    model, everything = fit(slice(None)), np.arange(40)
    missed = [fit(everything != i).predict(X[i : i + 1])[0] - y[i] for i in everything]
    certificate = model.certify(X, y)
    assert assay.verify(certificate, model, X, y).holds
    claim = certificate.find("loo.squared-error")
    assert claim.value == pytest.approx(np.mean(np.square(missed)), rel=1e-3)
    assert claim.value >= np.mean(np.square(missed)) * (1 - 1e-9)
    assert refused(certificate, model, X, y, name="loo.squared-error", value=0.99 * claim.value)
    assert refused(certificate, model, X, y, name="loo.squared-error", params={"alpha": 2 * alpha})


def test_kernel_ridge_says_why_not():
    X, y = rows(6, 40)
    weighted = KernelRidge().fit(X, y * 1.0, np.ones(40)).certify(X, y * 1.0, sample_weight=np.ones(40))
    assert "loo.squared-error" in {gap.name for gap in weighted.not_applicable}


@pytest.mark.parametrize("C", [0.01, 0.3, 10.0])
@pytest.mark.parametrize("class_weight", [None, {0: 1.0, 1: 3.0}])
def test_logistic_regression_against_as_many_fits(C, class_weight):
    X, y = rows(7, 60)

    def fit(keep):
        return LogisticRegression(C=C, fit_intercept=False, class_weight=class_weight).fit(X[keep], y[keep])

    model, everything = fit(slice(None)), np.arange(60)
    wrong = sum(fit(everything != i).predict(X[i : i + 1])[0] != y[i] for i in everything)
    certificate = model.certify(X, y)
    assert assay.verify(certificate, model, X, y).holds
    claim = certificate.find("loo.errors")
    assert wrong <= claim.value
    if C == 0.01:
        assert claim.value <= wrong + 4  # a strong penalty leaves little open
    assert refused(certificate, model, X, y, name="loo.errors", value=claim.value - 1)
    assert refused(certificate, model, X, y, name="loo.errors", params={"gap": "multinomial.gap"})
    assert refused(certificate, model, X, y, name="duality-gap", value=0.0)


@pytest.mark.parametrize(
    "change",
    [{"penalty": {"L2": 0.5}}, {"penalty": {"L1": 0.1, "L2": 1.0}}, {"intercept": True}, {"dual": "witness"}],
    ids=str,
)
def test_leave_one_out_needs_the_problem_it_was_proved_for(change):
    """The gap itself holds at its large value; what builds on it asks for the loss, penalty, intercept and dual."""
    X, y = rows(7, 60)
    certificate = (model := LogisticRegression(fit_intercept=False).fit(X, y)).certify(X, y)
    gap, sign = certificate["logistic.gap"], 2.0 * y - 1
    witness = {"theta": 0.5 * sign} if "dual" in change else {}
    loose = forged(certificate, "duality-gap", value=1e6, params={**gap.params, **change}, witness=witness)
    verdicts = dict(zip([one.name for one in loose.claims], assay.verify(loose, model, X, y).verdicts))
    assert verdicts["duality-gap"].holds, verdicts["duality-gap"]
    assert not verdicts["loo.errors"].holds


def test_a_free_intercept_has_no_such_bound():
    X, y = rows(8)
    for model in (LogisticRegression(), SVC()):
        certificate = model.fit(X, y).certify(X, y)
        assert "intercept" in next(gap.reason for gap in certificate.not_applicable if gap.name == "loo.errors")
