"""regression.rademacher: the mean clipped error of a regression from its training rows and the length of its
weights."""

import math
from decimal import localcontext
from fractions import Fraction

import numpy as np
import pytest

import assay
from assay.kernel_ridge import KernelRidge
from assay.linear_model import Lasso, LinearRegression, Ridge
from assay.svm import SVR
from tests.certificate import exact, forge, truths
from tests.certificate.attacks import assault
from tests.certificate.test_validity import ACCEPTED, DELTAS, tally


def norm_case(seed):
    rng = np.random.default_rng([seed, 41])
    n, with_intercept = 400, bool(seed % 2)
    X = rng.uniform(-1, 1, size=(n, 2))
    fitted = forge.model(0.3 * rng.standard_normal(2), 0.1 if with_intercept else 0.0)
    y = X @ fitted.coef_ + fitted.intercept_[0] + 0.1 * rng.standard_normal(n)
    clip = 1.0
    size = math.sqrt(float(fitted.coef_ @ fitted.coef_ + fitted.intercept_[0] ** 2))
    scale = next(2.0**e for e in range(-10, 31) if 2.0**e >= size)
    losses = np.minimum(np.abs(y - X @ fitted.coef_ - fitted.intercept_[0]), clip)
    trace = float((X * X).sum()) + n * with_intercept
    value = losses.mean() + 2 * scale * math.sqrt(trace) / n + 3 * clip * math.sqrt(math.log(41 / 0.04) / (2 * n))
    params = {"clip": clip, "rows": n, "scale": scale, "intercept": with_intercept}
    stated = forge.claim("regression.rademacher", float(value) + 1e-9, delta="0.04", params=params)
    return forge.Case((stated,), fitted, X, y).seal()


def truth(case):
    if case.claim.name != "regression.rademacher":
        return truths.truth(case)
    params, n = case.claim.params, len(case.X)
    clip, scale = Fraction(params["clip"]), Fraction(params["scale"])
    length = sum(Fraction(float(v)) ** 2 for v in np.append(case.model.coef_, case.model.intercept_))
    on_grid = params["scale"] in [2.0**e for e in range(-10, 31)] and scale**2 >= length
    offset_allowed = params["intercept"] or not np.any(case.model.intercept_)
    losses = [min(abs(Fraction(float(v)) - row[0]), clip) for v, row in zip(case.y, exact.scores(case, case.X))]
    trace = sum(Fraction(float(v)) ** 2 for v in case.X.ravel()) + n * params["intercept"]
    with localcontext(prec=50):
        log = (41 / exact.decimal(Fraction(case.claim.delta))).ln()
        bound = exact.decimal(sum(losses) / n) + 2 * exact.decimal(scale) * exact.decimal(trace).sqrt() / n
        bound += 3 * exact.decimal(clip) * (log / (2 * n)).sqrt()
        enough = exact.decimal(Fraction(case.claim.value)) >= bound
    return on_grid and offset_allowed and params["rows"] == n and case.claim.direction == "upper" and enough


def test_honest_claims_are_true_and_accepted_and_not_inside():
    for seed in range(8):
        case = norm_case(seed)
        assert truth(case)
        assert case.verify().holds, case.verify().reason
        assert not case.with_claim(value=case.claim.value - 1e-7).verify().holds
        assert not case.with_claim(params=case.claim.params | {"scale": case.claim.params["scale"] / 2}).verify().holds


def test_no_false_mutant_is_accepted():
    assert sum(assault(norm_case, truth, 12, seed=0).values()) > 0


@pytest.mark.long
def test_no_false_mutant_among_two_hundred_per_operator():
    assault(norm_case, truth, 200, seed=1)


def test_constants_off_by_ten_percent_are_noticed():
    case = norm_case(1)
    params, n = case.claim.params, 400

    def formula(two, three, grid, half):
        losses = np.minimum(np.abs(case.y - case.X @ case.model.coef_ - case.model.intercept_[0]), 1.0)
        trace = float((case.X * case.X).sum()) + n
        deviation = three * math.sqrt(math.log(grid / 0.04) / (half * n))
        return losses.mean() + two * params["scale"] * math.sqrt(trace) / n + deviation

    constants = (2.0, 3.0, 41.0, 2.0)
    right = formula(*constants)
    for i in range(4):
        for factor in (0.9, 1.1):
            wrong = formula(*constants[:i], constants[i] * factor, *constants[i + 1 :])
            assert case.with_claim(value=wrong + 1e-9).verify().holds == (wrong >= right), (i, factor)


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(),
        Ridge(fit_intercept=False),
        Lasso(alpha=0.01),
        SVR(gamma=0.5),
        SVR(kernel="linear"),
        KernelRidge(kernel="rbf", gamma=0.5, alpha=10.0),
        KernelRidge(kernel="poly", degree=2, gamma=0.5, alpha=1.0),
    ],
    ids=str,
)
def test_every_regression_with_a_norm_states_it(model):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(1500, 2))
    y = 0.5 * X[:, 0] + 0.2 * rng.uniform(-1, 1, 1500)
    certificate = model.fit(X, y).certify(X, y, clip=1.0)
    assert certificate.find("regression.rademacher").value < 0.5  # the mean error of zero is 0.26
    assert certificate.tightest is certificate.find("regression.rademacher")
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason


def test_why_it_is_not_stated():
    X = np.random.default_rng(0).uniform(-1, 1, size=(60, 2))
    y = X[:, 0]

    def reason(model, **options):
        certificate = model.fit(X, y).certify(X, y, **options)
        return next(gap.reason for gap in certificate.not_applicable if gap.name == "regression.rademacher")

    assert "pass clip=" in reason(Ridge())
    assert "gamma='scale'" in reason(SVR(), clip=1.0)
    assert "the bound is the clip" in reason(Ridge(), clip=1.0)  # 60 rows are too few
    from assay.tree import DecisionTreeRegressor

    assert "one space with a norm" in reason(DecisionTreeRegressor(), clip=1.0)


def line_on_signs(rng):
    """y = x / 2 + u, x = +-1, u uniform on [-1, 1]: the mean absolute error of w x is (1 + (1/2 - w)^2) / 2."""
    x, u = rng.choice([-1.0, 1.0], 2000), rng.uniform(-1, 1, 2000)
    model = Ridge(alpha=1.0, fit_intercept=False, n_jobs=1).fit(x[:, None], 0.5 * x + u)
    truth = (1 + (0.5 - model.coef_[0]) ** 2) / 2

    def judge(delta):
        value = model.certify(x[:, None], 0.5 * x + u, clip=2.0, delta=delta).find("regression.rademacher").value
        return value < truth, value < 1

    return judge


@DELTAS
def test_the_bound_keeps_its_promise(delta):
    violations, informative = tally(line_on_signs, seed=400)[delta]
    assert violations <= ACCEPTED[delta]
    assert informative >= 0.5


def test_training_error_alone_would_not_hold():
    """The control: without its two terms the bound fails whenever the fit follows its noise."""
    rng, failed = np.random.default_rng(5), 0
    for _ in range(60):
        X, y = rng.normal(size=(20, 10)), rng.uniform(-1, 1, 20)
        model = LinearRegression().fit(X, y)
        failed += np.minimum(np.abs(y - model.predict(X)), 2.0).mean() < 0.5  # no function does better than 1/2
    assert failed > 30
