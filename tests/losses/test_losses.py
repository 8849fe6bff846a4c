"""Losses against their definitions: differences for slopes, conjugates by search, other libraries."""

from math import erf

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import huber as scipy_huber
from sklearn._loss import loss as theirs
from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance

from assay import losses
from assay.losses import deviance
from assay.optim.descent import check_gradient

SMOOTH = [
    losses.squared_error,
    losses.squared_epsilon_insensitive(0.3),
    losses.huber(0.7),
    losses.log_loss,
    losses.squared_hinge,
    losses.exponential,
    losses.squared_margin,
    losses.sigmoid_squared,
    losses.poisson,
    losses.gamma,
]
KINKED = [
    losses.absolute_error,
    losses.epsilon_insensitive(0.3),
    losses.quantile(0.8),
    losses.hinge,
    losses.perceptron,
]
ALL = SMOOTH + KINKED
CONVEX = [loss for loss in ALL if loss.convex]
CODED = [loss for loss in ALL if loss.name in losses.CODES]


def by_name(loss):
    return loss.name


def rows(loss, n=400, seed=0):
    random = np.random.default_rng(seed)
    f = 2.0 * random.normal(size=n)
    if loss.labels:
        return random.choice([-1.0, 1.0], size=n), f
    if loss.name in ("poisson", "gamma"):
        return random.integers(1, 6, size=n).astype(float), f
    return random.normal(size=n), f


@pytest.mark.mission("OPT-34", "LIN-17", "LIN-22")
@pytest.mark.parametrize("loss", ALL, ids=by_name)
def test_slopes_are_derivatives(loss):
    y, f = rows(loss)
    step = 1e-6
    rise = (loss.value(y, f + step) - loss.value(y, f - step)) / (2 * step)
    bend = np.abs(loss.slope(y, f + step) - loss.slope(y, f - step)) > 0.5  # a kink is in between
    assert bend.mean() < 0.01
    np.testing.assert_allclose(loss.slope(y, f)[~bend], rise[~bend], rtol=1e-5, atol=1e-8)


@pytest.mark.mission("OPT-34")
@pytest.mark.parametrize("loss", [*SMOOTH, losses.modified_huber], ids=by_name)
@pytest.mark.parametrize("seed", range(5))
def test_gradients_of_linear_models_pass_the_check_by_differences(loss, seed):
    """Differentiable losses: relative error below 1e-6 at any point; a slope that is off by a thousandth fails."""
    random = np.random.default_rng(seed)
    y, _ = rows(loss, 50, seed)
    X, w = random.normal(size=(50, 3)), random.normal(size=3)
    gradient = X.T @ loss.slope(y, X @ w)

    def value(v):
        return float(loss.value(y, X @ v).sum())

    assert check_gradient(value, gradient, w) < 1e-6
    assert check_gradient(value, 1.001 * gradient, w) > 1e-4


@pytest.mark.mission("OPT-34")
@pytest.mark.parametrize("loss", KINKED, ids=by_name)
def test_gradients_between_kinks_pass_the_check_too(loss):
    random = np.random.default_rng(1)
    y, _ = rows(loss, 50)
    X, w = random.normal(size=(50, 2)), random.normal(size=2)
    assert check_gradient(lambda v: float(loss.value(y, X @ v).sum()), X.T @ loss.slope(y, X @ w), w) < 1e-6


@pytest.mark.mission("OPT-34")
def test_the_check_knows_the_multinomial_loss_and_every_deviance():
    random = np.random.default_rng(2)
    X, W, y = random.normal(size=(40, 3)), random.normal(size=(3, 4)), random.integers(0, 4, 40)
    gradient = X.T @ losses.multinomial.slope(y, X @ W)
    assert (
        check_gradient(
            lambda v: float(losses.multinomial.value(y, X @ v.reshape(3, 4)).sum()), gradient.ravel(), W.ravel()
        )
        < 1e-6
    )
    from assay.losses.compiled import deviance_terms

    pairs = [
        ("gaussian", "identity"),
        ("gaussian", "log"),
        ("poisson", "log"),
        ("poisson", "identity"),
        ("gamma", "log"),
    ]
    pairs += [("gamma", "inverse"), ("gamma", "identity"), ("binomial", "logit"), ("binomial", "probit")]
    for family, link in [*pairs, ("binomial", "log"), ("binomial", "identity")]:
        target, score = random.uniform(0.1, 0.9, 30), random.uniform(0.2, 0.8, 30)
        score = -score if (family, link) == ("binomial", "log") else score
        codes = deviance.FAMILIES.index(family), deviance.LINKS.index(link)
        slope = np.array([deviance_terms(*codes, *pair)[1] for pair in zip(target, score, strict=True)])

        def half(v, family=family, link=link, target=target):
            return 0.5 * float(deviance.unit_deviance(family, target, deviance.inverse_link(link, v)).sum())

        assert check_gradient(half, slope, score) < 1e-6


def test_no_loss_is_left_out_of_the_check():
    checked = {loss.name for loss in [*ALL, losses.modified_huber, losses.multinomial]}
    assert checked == {*losses._PLAIN, *losses._WITH_PARAMETER} - {"zero_one"}  # which has no slope


@pytest.mark.parametrize("loss", [loss for loss in ALL if loss.curvature is not None], ids=by_name)
def test_curvatures_are_derivatives_of_slopes(loss):
    y, f = rows(loss)
    step = 1e-6
    rise = (loss.slope(y, f + step) - loss.slope(y, f - step)) / (2 * step)
    kink = np.abs(loss.curvature(y, f + step) - loss.curvature(y, f - step)) > 1
    assert kink.mean() < 0.01
    np.testing.assert_allclose(loss.curvature(y, f)[~kink], rise[~kink], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("loss", CODED, ids=by_name)
def test_compiled_forms_are_the_same_losses(loss):
    from assay.losses.compiled import loss_and_slope

    for y, f in zip(*rows(loss, 100)):
        one = loss_and_slope(loss.code, loss.parameter, y, f)
        np.testing.assert_allclose(one, (loss.value(y, f), loss.slope(y, f)), rtol=1e-12, atol=1e-15)
    assert loss_and_slope(loss.code, loss.parameter, 1.0, 1.0)[0] == loss.value(1.0, 1.0)


@pytest.mark.parametrize("loss", CONVEX, ids=by_name)
def test_conjugates_are_suprema(loss):
    y, f = rows(loss, 40)
    for target, u in zip(y, -loss.dual.point(y, f)):
        worst = minimize_scalar(
            lambda s, target=target, u=u: loss.value(target, s) - u * s, bounds=(-40, 40), options={"xatol": 1e-10}
        )
        assert loss.dual.conjugate(target, u) >= -worst.fun - 1e-9
        if 0.01 < abs(u) < 0.99 and loss.name != "perceptron":
            assert loss.dual.conjugate(target, u) == pytest.approx(-worst.fun, abs=1e-5)


@pytest.mark.parametrize("loss", CONVEX, ids=by_name)
def test_fenchel_young_inequality_and_equality(loss):
    y, f = rows(loss)
    tau = loss.dual.point(*rows(loss, seed=1))
    if loss.name == "poisson":
        tau = np.minimum(tau, y)
    if loss.labels and loss.dual.boxed:
        tau = y * np.abs(tau)
    bracket = loss.dual.bracket(y, f, tau)
    assert np.all(bracket >= -1e-13)
    direct = loss.value(y, f) + loss.dual.conjugate(y, -tau) + tau * f
    np.testing.assert_allclose(bracket, direct, rtol=1e-9, atol=1e-9)
    assert np.mean(bracket) > 1e-2
    at = loss.dual.bracket(y, f, -loss.slope(y, f))
    np.testing.assert_allclose(at, 0.0, atol=1e-12 * (1 + np.abs(loss.value(y, f)).max()))


@pytest.mark.parametrize("loss", CONVEX, ids=by_name)
def test_conjugates_are_infinite_outside_their_domain(loss):
    free = ("squared_error", "squared_epsilon_insensitive", "squared_margin")
    outside = {"poisson": -3.0, "gamma": 2.0}.get(loss.name, 5.0)
    value = loss.dual.conjugate(1.0, outside)
    assert np.isfinite(value) if loss.name in free else value == np.inf


@pytest.mark.mission("KER-34", "LIN-22")
def test_a_score_of_exactly_zero_is_an_error_for_both_classes():
    found = losses.zero_one.value([1, 1, -1, -1, 1, -1], [0.0, 2.0, 0.0, 3.0, -1.0, -1.0])
    np.testing.assert_array_equal(found, [1, 0, 1, 1, 1, 0])
    assert losses.surrogates([0.0])["0/1"] == 1.0


@pytest.mark.mission("KER-34")
def test_zero_one_counts_what_a_certificate_counts():
    from assay.linear_model import LogisticRegression

    X = np.array([[-1.0], [1.0], [0.0], [0.0]])
    model = LogisticRegression(fit_intercept=False).fit(X, [0, 1, 0, 1])
    counted = model.certify(X, [0, 1, 0, 1]).find("train.errors")
    assert counted.value == losses.zero_one.value([-1, 1, -1, 1], model.decision_function(X)).sum() == 2


@pytest.mark.mission("KER-34", "KER-35", "KER-36", "KER-37", "KER-38", "KER-39", "KER-40")
def test_surrogates_lie_above_the_zero_one_loss():
    z = np.linspace(-3, 3, 601)
    table = losses.surrogates(z)
    assert np.array_equal(table["0/1"], np.where(z <= 0, 1.0, 0.0))
    for name in ("hinge", "exponential", "logistic, base 2", "squared"):
        assert np.all(np.diff(table[name], 2) >= -1e-12)
        assert np.all(table[name] >= table["0/1"] - 1e-12)
    assert np.all((table["hinge"] == 0) == (z >= 1))
    at = losses.surrogates(np.array([-1.0, 0.0, 1.0]))
    np.testing.assert_allclose(at["hinge"], [2, 1, 0])
    np.testing.assert_allclose(at["exponential"], [np.e, 1, 1 / np.e])
    np.testing.assert_allclose(at["logistic"], np.log([1 + np.e, 2, 1 + 1 / np.e]))
    np.testing.assert_allclose(at["logistic, base 2"], np.log2([1 + np.e, 2, 1 + 1 / np.e]))
    np.testing.assert_allclose(at["squared"], [4, 1, 0])
    y, s = np.array([-1.0, 1.0]), np.array([0.3, -0.8])
    np.testing.assert_allclose(losses.squared_margin.value(y, s), (y - s) ** 2)
    np.testing.assert_allclose(table["sigmoid squared"], (1 / (1 + np.exp(-z)) - 1) ** 2)
    step = 1e-6  # the slope by differences
    there = (losses.sigmoid_squared.value(y, s + step) - losses.sigmoid_squared.value(y, s - step)) / (2 * step)
    np.testing.assert_allclose(losses.sigmoid_squared.slope(y, s), there, rtol=1e-6)
    bend = np.diff(table["sigmoid squared"], 2)
    assert bend.min() < 0 < bend.max()
    assert np.all(losses.squared_hinge.value(1.0, z) >= table["0/1"])


@pytest.mark.mission("LIN-22", "LIN-23")
def test_the_squared_loss_of_the_sigmoid_has_a_vanishing_gradient():
    z = np.array([-10.0, -5.0, -1.0, 0.0, 1.0, 5.0])
    theta = 1 / (1 + np.exp(-z))
    squared, cross = losses.sigmoid_squared.slope(1.0, z), losses.log_loss.slope(1.0, z)
    np.testing.assert_allclose(squared, 2 * (theta - 1) * theta * (1 - theta), rtol=1e-12)
    np.testing.assert_allclose(losses.sigmoid_squared.value(-1.0, -z), (theta - 1) ** 2, rtol=1e-12)
    assert abs(squared[0] / cross[0]) < 1e-3
    assert abs(cross[0]) > 0.9999
    table = losses.gradient_table(z)
    np.testing.assert_allclose(table["squared"], np.abs(squared))
    np.testing.assert_allclose(table["cross-entropy"], np.abs(cross))
    np.testing.assert_allclose(table["ratio"], 2 * theta * (1 - theta), rtol=1e-9)
    assert table["ratio"][0] < 1e-3
    assert next(iter(losses.gradient_table()["margin"])) == -10.0


@pytest.mark.parametrize("loss", [loss for loss in ALL if loss.prox is not None], ids=by_name)
def test_proximal_operators_minimise(loss):
    y, v = rows(loss, 30)
    for t in (0.2, 3.0):
        found = loss.prox(y, v, t)
        for target, at, f in zip(y, v, found):
            best = minimize_scalar(
                lambda s, target=target, at=at, t=t: t * loss.value(target, s) + 0.5 * (s - at) ** 2,
                bounds=(at - 5, at + 5),
                options={"xatol": 1e-10},
            )
            assert f == pytest.approx(best.x, abs=1e-5)


def test_losses_of_scikit_learn_and_scipy():
    random = np.random.default_rng(0)
    y, f = random.normal(size=50), random.normal(size=50)
    np.testing.assert_allclose(losses.squared_error.value(y, f), theirs.HalfSquaredError().loss(y, f))
    np.testing.assert_allclose(losses.absolute_error.value(y, f), theirs.AbsoluteError().loss(y, f))
    np.testing.assert_allclose(losses.quantile(0.3).value(y, f), theirs.PinballLoss(quantile=0.3).loss(y, f))
    np.testing.assert_allclose(losses.huber(0.4).value(y, f), scipy_huber(0.4, y - f))
    labels = (y > 0).astype(float)
    signs = 2 * labels - 1
    np.testing.assert_allclose(losses.log_loss.value(signs, f), theirs.HalfBinomialLoss().loss(labels, f))
    codes = random.integers(0, 3, size=50)
    F = random.normal(size=(50, 3))
    other = theirs.HalfMultinomialLoss(n_classes=3)
    np.testing.assert_allclose(losses.multinomial.value(codes, F), other.loss(codes.astype(float), F))
    np.testing.assert_allclose(losses.multinomial.slope(codes, F), other.gradient(codes.astype(float), F), atol=1e-15)
    counts = random.integers(1, 5, size=50).astype(float)
    apart = losses.poisson.value(counts, f) - losses.poisson.value(counts, np.log(counts))
    assert 2 * apart.mean() == pytest.approx(mean_poisson_deviance(counts, np.exp(f)))
    apart = losses.gamma.value(counts, f) - losses.gamma.value(counts, np.log(counts))
    assert 2 * apart.mean() == pytest.approx(mean_gamma_deviance(counts, np.exp(f)))


def test_unit_deviances_of_scikit_learn():
    random = np.random.default_rng(0)
    y, mean = random.integers(1, 5, size=50).astype(float), random.uniform(0.5, 4.0, size=50)
    assert deviance.unit_deviance("poisson", y, mean).mean() == pytest.approx(mean_poisson_deviance(y, mean))
    assert deviance.unit_deviance("gamma", y, mean).mean() == pytest.approx(mean_gamma_deviance(y, mean))
    assert deviance.inverse_link("probit", np.array(1.0)) == pytest.approx(0.5 * (1 + erf(1 / np.sqrt(2))))


def test_multinomial_dual():
    random = np.random.default_rng(0)
    y, F, G = random.integers(0, 4, size=60), random.normal(size=(60, 4)), random.normal(size=(60, 4))
    dual, tau = losses.multinomial.dual, losses.multinomial.dual.point(y, G)
    direct = losses.multinomial.value(y, F) + dual.conjugate(y, -tau) + (tau * F).sum(axis=1)
    np.testing.assert_allclose(dual.bracket(y, F, tau), direct, atol=1e-12)
    assert dual.bracket(y, F, tau).min() > 0
    np.testing.assert_allclose(dual.bracket(y, F, dual.point(y, F)), 0.0, atol=1e-14)
    assert np.all(np.isinf(dual.conjugate(y, np.ones((60, 4)))))


def test_losses_are_found_by_name_and_bad_parameters_refused():
    assert losses.named("hinge") is losses.hinge
    assert losses.named("huber", 2.0).parameter == 2.0
    with pytest.raises(ValueError, match="no loss is called 'hing'"):
        losses.named("hing")
    for make, value in ((losses.huber, -1.0), (losses.epsilon_insensitive, np.nan), (losses.quantile, 1.5)):
        with pytest.raises(ValueError, match="must be a finite number"):
            make(value)
