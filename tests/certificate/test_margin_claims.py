"""Bounds from margins (margin.kernel, margin.multiclass, pac-bayes.linear): formulas again by hand, attacks, and
promises kept in simulation."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, norm

import assay
from assay.kernel_model import KernelLogisticRegression, KernelPerceptron
from assay.linear_model import LogisticRegression, Perceptron
from assay.svm import SVC, LinearSVC
from tests.certificate import exact, forge, truths
from tests.certificate.attacks import assault, operators

# Formulas again ---------------------------------------------------------------------------------------------


def margins_and_lengths(coef, intercept, X, codes, constant):
    """Return the margin of each row and its squared length in the space of the score, and |(w, b)|."""
    scores = X @ np.atleast_2d(coef).T + intercept
    if scores.shape[1] == 1:
        margin = scores[:, 0] * (2 * codes - 1)
    else:
        others = scores.copy()
        others[np.arange(len(X)), codes] = -np.inf
        margin = scores[np.arange(len(X)), codes] - others.max(axis=1)
    norm = math.sqrt(np.sum(np.square(coef)) + constant * np.sum(np.square(intercept)))
    return margin, np.sum(X * X, axis=1) + constant, norm


def ramp_bound(margin, square, norm, scale, factor, delta):
    n = len(margin)
    ramp = np.clip(1 - scale * margin / norm, 0, 1).mean()
    return ramp + factor * scale * math.sqrt(square.sum()) / n + 3 * math.sqrt(math.log(41 / delta) / (2 * n))


def l1_bound(margin, X, coef, intercept, constant, scale, delta):
    n, norm = len(X), np.abs(coef).sum() + constant * np.abs(intercept).sum()
    longest = math.sqrt(max(np.sum(X * X, axis=0).max(), n * constant))
    ramp = np.clip(1 - scale * margin / norm, 0, 1).mean()
    complexity = 2 * scale * longest * math.sqrt(2 * math.log(2 * (X.shape[1] + constant))) / n
    return ramp + complexity + 3 * math.sqrt(math.log(41 / delta) / (2 * n))


def gibbs_loss(margin, square, norm, mu):
    angles = mu * margin / norm / np.sqrt(np.maximum(square, 1e-300))
    return float(np.mean([1.0 if s == 0 else 0.5 * math.erfc(a / math.sqrt(2)) for a, s in zip(angles, square)]))


def kl(p, q):
    first = p * math.log(p / q) if p else 0.0
    return first + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def pac_bayes_bound(margin, square, norm, mu, delta):
    """The least q >= p with kl(p, q) >= (mu^2/2 + ln(2 sqrt(n)/delta))/n, by bisection; twice that."""
    n, p = len(margin), gibbs_loss(margin, square, norm, mu)
    paid, low, high = (mu * mu / 2 + math.log(2 * math.sqrt(n) / delta)) / n, p, 1 - 1e-15
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if kl(p, middle) >= paid else (middle, high)
    return 2 * high


# Honest certificates made by hand ---------------------------------------------------------------------------


def margin_case(seed, name="margin.kernel"):
    rng = np.random.default_rng([seed, 21])
    classes = 3 if name == "margin.multiclass" else 2
    n, constant = 1200 if classes == 3 else 400, bool(seed % 2)
    codes = rng.integers(0, classes, n)
    X = 0.3 * rng.standard_normal((n, 3))
    if classes == 2:
        X[:, 0] += 4.0 * codes - 2.0
        coef = np.array([[1.0, 0.0, 0.0]]) + 0.1 * rng.standard_normal((1, 3))
    else:
        X[np.arange(n), codes] += 2.0
        coef = np.eye(3) + 0.1 * rng.standard_normal((3, 3))
    intercept = 0.1 * constant * rng.standard_normal(len(coef))
    margin, square, norm = margins_and_lengths(coef, intercept, X, codes, constant)
    params = {"intercept": constant, "rows": n}
    if name == "pac-bayes.linear":
        params["mu"] = float(2.0 ** rng.uniform(0, 3))
        value = pac_bayes_bound(margin, square, norm, params["mu"], 0.05)
    else:
        factor = 2.0 if classes == 2 else 4 * math.sqrt(3)
        bounds = {s: ramp_bound(margin, square, norm, s, factor, 0.05) for s in (0.25, 0.5, 1.0, 2.0)}
        if name == "margin.l1":
            bounds = {s: l1_bound(margin, X, coef, intercept, constant, s, 0.05) for s in bounds}
        params["scale"] = min(bounds, key=bounds.get)
        value = bounds[params["scale"]]
    fitted = forge.model(coef, intercept, list(range(classes)))
    assert value < 0.95
    stated = forge.claim(name, value + 1e-9, delta="0.05", params=params)
    return forge.Case((stated,), fitted, X, codes).seal()


CASES = {
    name: lambda seed, name=name: margin_case(seed, name)
    for name in ("margin.kernel", "margin.multiclass", "margin.l1", "pac-bayes.linear")
}


def truth(case):
    """Does the value follow from the theorem, at these parameters? In decimal arithmetic where that is easy."""
    claim, params = case.claim, case.claim.params
    if claim.name not in CASES:
        return truths.truth(case)
    binary = len(case.model.coef_) == 1
    if binary != (claim.name != "margin.multiclass") or (not params["intercept"] and np.any(case.model.intercept_)):
        return False
    if params["rows"] != len(case.X) or not 0 <= claim.value <= 1 or claim.direction != "upper":
        return False
    codes = np.array(exact.codes(case))
    margin, square, norm = margins_and_lengths(
        case.model.coef_, case.model.intercept_, case.X, codes, params["intercept"]
    )
    if claim.name == "pac-bayes.linear":
        return claim.value == 1 or claim.value >= pac_bayes_bound(
            margin, square, norm, params["mu"], float(claim.delta)
        ) * (1 - 1e-11)
    if claim.name == "margin.l1":
        sums = (margin, case.X, case.model.coef_, case.model.intercept_, params["intercept"], params["scale"])
        in_grid = math.log2(params["scale"]) in range(-10, 31)
        return in_grid and claim.value >= l1_bound(*sums, float(claim.delta)) * (1 - 1e-12)
    factor = 2.0 if binary else 4 * math.sqrt(len(case.model.coef_))
    return math.log2(params["scale"]) in range(-10, 31) and exact_ramp(case, codes, factor) <= claim.value


def exact_ramp(case, codes, factor):
    """The bound of margin.kernel or margin.multiclass with 50 digits, in the direction that lets more pass."""
    params, n = case.claim.params, len(case.X)
    rows, one = exact.scores(case), Fraction(int(params["intercept"]))
    numbers = [*np.ravel(case.model.coef_), *(np.ravel(case.model.intercept_) if params["intercept"] else [])]
    trace = sum((Fraction(float(v)) ** 2 for v in np.ravel(case.X)), n * one)
    with localcontext(prec=50):
        norm = exact.decimal(sum(Fraction(float(v)) ** 2 for v in numbers)).sqrt()
        total = Decimal(0)
        for row, k in zip(rows, codes.tolist()):
            z = row[0] * (2 * k - 1) if len(row) == 1 else row[k] - max(v for j, v in enumerate(row) if j != k)
            total += min(Decimal(1), max(Decimal(0), 1 - Decimal(params["scale"]) * exact.decimal(z) / norm))
        complexity = Decimal(factor) * Decimal(params["scale"]) * exact.decimal(trace).sqrt() / n
        log = (Decimal(41) / exact.decimal(Fraction(case.claim.delta))).ln()
        return float(total / n + complexity * (1 - Decimal("1e-15")) + 3 * (log / (2 * n)).sqrt()) * (1 - 1e-15)


@pytest.mark.parametrize("name", CASES)
def test_no_false_mutant_is_accepted(name):
    accepted = assault(CASES[name], truth, 12, seed=0)
    assert set(accepted) <= {operator for operator, _, _ in operators()}
    assert sum(accepted.values()) > 0


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_no_false_mutant_among_a_hundred_per_operator(name):
    assert sum(assault(CASES[name], truth, 100, seed=1).values()) > 0


@pytest.mark.parametrize("name", CASES)
def test_honest_claims_hold_and_constants_matter(name):
    for seed in range(8):
        case = CASES[name](seed)
        assert truth(case)
        assert case.verify().holds, case.verify().reason
        assert not case.with_claim(value=case.claim.value * (1 - 1e-6) - 2e-9).verify().holds


def test_rows_of_length_zero_are_lost():
    """A row at the origin has score zero whatever the weights: it counts as wrong with certainty."""
    X = np.vstack([np.zeros((40, 1)), np.ones((160, 1))])
    y = np.ones(200, dtype=int)
    y[:40] = 0
    fitted = forge.model([[1.0]], 0.0, [0, 1])
    params = {"mu": 3.0, "intercept": False, "rows": 200}
    loss = 0.2 + 0.8 * 0.5 * math.erfc(3 / math.sqrt(2))
    margin, square, norm = np.r_[np.zeros(40), np.ones(160)], X[:, 0], 1.0
    assert gibbs_loss(margin, square, norm, 3.0) == pytest.approx(loss, rel=1e-12)
    value = pac_bayes_bound(margin, square, norm, 3.0, 0.05)
    case = forge.Case(
        (forge.claim("pac-bayes.linear", value + 1e-9, delta="0.05", params=params),), fitted, X, y
    ).seal()
    assert case.verify().holds
    assert not case.with_claim(value=value - 1e-6).verify().holds


# What learners state ----------------------------------------------------------------------------------------


def gaussians(rng, n, d=3, distance=2.0):
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d))
    X[:, 0] += distance * (2 * y - 1)
    return X, y


def gaussian_risk(w, b, distance):
    size, shift = np.linalg.norm(w), distance * w[0]
    return 0.5 * (norm.cdf(-(shift + b) / size) + norm.cdf((b - shift) / size))


@pytest.mark.parametrize("intercept", [True, False])
def test_learners_publish_the_best_of_the_grid(intercept):
    X, y = gaussians(np.random.default_rng(3), 600)
    model = LogisticRegression(fit_intercept=intercept).fit(X, y)
    certificate = model.certify(X, y)
    assert assay.verify(certificate, model, X, y).holds
    margin, square, size = margins_and_lengths(model.coef_, model.intercept_, X, y, intercept)
    ramp, bayes = certificate.find("margin.kernel"), certificate.find("pac-bayes.linear")
    best = min(ramp_bound(margin, square, size, 2.0**e, 2.0, float(ramp.delta)) for e in range(-10, 31))
    assert ramp.value == pytest.approx(best, abs=1e-8)
    free = min(pac_bayes_bound(margin, square, size, mu, float(bayes.delta)) for mu in np.geomspace(0.5, 30, 120))
    assert free - 1e-4 <= bayes.value <= free + 2e-3


def test_kernel_machines_live_in_the_kernels_space():
    """A linear kernel gives the numbers of the linear model; without fixed parameters nothing is said."""
    X, y = gaussians(np.random.default_rng(4), 400)
    model = SVC(kernel="linear", C=0.1, tol=1e-8).fit(X, y)
    certificate = model.certify(X, y)
    assert assay.verify(certificate, model, X, y).holds
    margin, square, size = margins_and_lengths(model.coef_, model.intercept_, X, y, True)
    claim = certificate.find("margin.kernel")
    expected = ramp_bound(margin, square, size, claim.params["scale"], 2.0, float(claim.delta))
    assert claim.value == pytest.approx(expected, abs=1e-7)
    claim = certificate.find("pac-bayes.linear")
    expected = pac_bayes_bound(margin, square, size, claim.params["mu"], float(claim.delta))
    assert claim.value == pytest.approx(expected, abs=1e-7)
    scaled = SVC(kernel="rbf", gamma="scale").fit(X, y)
    reasons = {gap.name: gap.reason for gap in scaled.certify(X, y).not_applicable}
    assert "gamma" in reasons["margin.kernel"]
    assert "gamma" in reasons["pac-bayes.linear"]
    fixed = SVC(kernel="rbf", gamma=0.05).fit(X, y)
    certificate = fixed.certify(X, y)
    assert assay.verify(certificate, fixed, X, y).holds
    assert {"margin.kernel", "pac-bayes.linear"} <= {claim.name for claim in certificate.claims}


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("learner", [KernelLogisticRegression, KernelPerceptron])
def test_expansions_live_there_too(learner, intercept):
    X, y = gaussians(np.random.default_rng(9), 300, distance=3.0)
    model = learner(gamma=0.05, fit_intercept=intercept).fit(X, y)
    certificate = model.certify(X, y)
    assert assay.verify(certificate, model, X, y).holds
    K, beta = model._kernel()(X, model.support_vectors_), model.pair_coef_[0]
    size = math.sqrt(beta @ model._kernel()(model.support_vectors_) @ beta + model.intercept_[0] ** 2)
    margin = (K @ beta + model.intercept_[0]) * (2 * y - 1)
    claim = certificate.find("pac-bayes.linear")
    square = np.full(300, 1.0 + intercept)
    expected = pac_bayes_bound(margin, square, size, claim.params["mu"], float(claim.delta))
    assert claim.value == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("intercept", [True, False])
def test_sparse_weights_are_known_by_their_sum(intercept):
    rng = np.random.default_rng(6)
    X = rng.choice([-1.0, 1.0], (2000, 30))
    y = ((X[:, 0] > 0) ^ (rng.random(2000) < 0.02)).astype(int)
    model = LinearSVC(penalty="l1", C=0.01, fit_intercept=intercept).fit(X, y)
    certificate = model.certify(X, y)
    assert assay.verify(certificate, model, X, y).holds
    claim = certificate.find("margin.l1")
    margin = model.decision_function(X) * (2 * y - 1)
    best = min(
        l1_bound(margin, X, model.coef_, model.intercept_, intercept, 2.0**e, float(claim.delta))
        for e in range(-10, 31)
    )
    assert claim.value == pytest.approx(best, abs=1e-8)
    assert "margin.kernel" not in {one.name for one in certificate.claims}


def test_what_is_not_claimed_says_why():
    X, y = gaussians(np.random.default_rng(5), 60)
    certificate = LogisticRegression().fit(X, y, np.ones(60)).certify(X, y, sample_weight=np.ones(60))
    assert {gap.name for gap in certificate.not_applicable} >= {"margin.kernel", "pac-bayes.linear"}
    few = LogisticRegression().fit(X, y).certify(X, y)
    assert "too few" in next(gap.reason for gap in few.not_applicable if gap.name == "margin.kernel")
    three = LogisticRegression().fit(X, np.arange(60) % 3).certify(X, np.arange(60) % 3)
    assert {"margin.multiclass", "pac-bayes.linear"} <= {gap.name for gap in three.not_applicable}


# Promises ---------------------------------------------------------------------------------------------------

REPETITIONS = 40


def violations(run, seed):
    outcomes = np.array([run(np.random.default_rng([seed, i])) for i in range(REPETITIONS)])
    return int(outcomes[:, 0].sum()), outcomes[:, 1].mean()


def separated(rng):
    X, y = gaussians(rng, 300)
    model = LogisticRegression(n_jobs=1).fit(X, y)
    claims = [c for c in model.certify(X, y, delta=0.2).claims if c.name in ("margin.kernel", "pac-bayes.linear")]
    assert len(claims) == 2
    least = min(claim.value for claim in claims)
    return least < gaussian_risk(model.coef_[0], model.intercept_[0], 2.0), least < 0.5


def noise(rng):
    """Labels by coin: the risk of every classifier is one half, and the perceptron fits them as well as it can."""
    X, y = rng.normal(size=(160, 40)), rng.integers(0, 2, 160)
    with pytest.warns(UserWarning, match="mistakes"):
        model = Perceptron(max_iter=5, random_state=0, n_jobs=1).fit(X, y)
    claims = [c for c in model.certify(X, y, delta=0.2).claims if c.name in ("margin.kernel", "pac-bayes.linear")]
    return any(claim.value < 0.5 for claim in claims), True


def feature_made_of_labels(rng):
    """Misuse: one column, built from the labels of the sample, is declared as fixed in advance."""
    wide, y = rng.normal(size=(160, 4000)), rng.integers(0, 2, 160)
    X = (wide @ (wide.T @ (2 * y - 1.0)))[:, None] / 4000
    model = LogisticRegression(fit_intercept=False, n_jobs=1).fit(X, y)
    claims = [c for c in model.certify(X, y, delta=0.2).claims if c.name in ("margin.kernel", "pac-bayes.linear")]
    return any(claim.value < 0.5 for claim in claims), True


@pytest.mark.parametrize("run", [separated, noise], ids=lambda run: run.__name__)
def test_margin_bounds_keep_their_promise(run):
    wrong, informative = violations(run, 7)
    assert wrong <= binom.isf(1e-6, REPETITIONS, 0.2)
    assert informative >= 0.5


def test_misuse_is_caught():
    wrong, _ = violations(feature_made_of_labels, 8)
    assert wrong > binom.isf(1e-6, REPETITIONS, 0.2)
