"""Generalised linear models against statsmodels, scikit-learn, closed forms and their own certificates."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import sklearn.linear_model as sk
from scipy.special import expit
from scipy.stats import norm

import assay
from assay.checker.family import read_model, stored_form
from assay.linear_model import GeneralizedLinearRegressor, LinearRegression, LogisticRegression, Ridge
from assay.linear_model._glm import CONVEX
from assay.losses.deviance import FAMILIES, LINKS, first_derivative, inverse_link, link_function, second_derivative
from assay.optim.descent import check_gradient
from assay.textbook.linear import logit, sigmoid

sm = pytest.importorskip("statsmodels.api")
PAIRS = [
    ("gaussian", "identity"),
    ("gaussian", "log"),
    ("poisson", "log"),
    ("poisson", "identity"),
    ("gamma", "log"),
    ("gamma", "inverse"),
    ("gamma", "identity"),
    ("binomial", "logit"),
    ("binomial", "probit"),
]


def draw(kind, n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = 0.3 * rng.normal(size=(n, 3))
    eta = X @ [0.5, -0.4, 0.3] + 0.4
    made = {
        "gaussian": lambda: np.exp(eta) + 0.1 * rng.normal(size=n),
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
        "gamma": lambda: rng.gamma(2, np.exp(eta) / 2),
        "binomial": lambda: (rng.random(n) < expit(eta)).astype(float),
        "lognormal": lambda: np.exp(eta + 0.3 * rng.normal(size=n)),
    }
    return X, made[kind]()


def peer(kind, link, X, y, weight=None):
    family = {"gaussian": "Gaussian", "poisson": "Poisson", "gamma": "Gamma", "binomial": "Binomial"}[kind]
    name = {
        "identity": "Identity",
        "log": "Log",
        "logit": "Logit",
        "probit": "Probit",
        "inverse": "InversePower",
    }[link]
    made = getattr(sm.families, family)(link=getattr(sm.families.links, name)(), check_link=False)
    return sm.GLM(y, sm.add_constant(X), family=made, freq_weights=weight).fit(tol=1e-15, maxiter=500)


@pytest.mark.mission("LIN-10")
@pytest.mark.filterwarnings("ignore:.*does not respect the domain.*")
@pytest.mark.parametrize(("kind", "link"), PAIRS)
def test_agrees_with_statsmodels(kind, link):
    X, y = draw(kind)
    weight = np.random.default_rng(1).integers(1, 4, size=len(y)).astype(float)
    for s in (None, weight):
        model = GeneralizedLinearRegressor(kind, link=link).fit(X, y, s)
        other = peer(kind, link, X, y, s)
        np.testing.assert_allclose(np.append(model.intercept_, model.coef_), other.params, atol=2e-6)
        assert model.deviance_ == pytest.approx(other.deviance, rel=1e-9)
        np.testing.assert_allclose(model.predict(X), other.predict(sm.add_constant(X)), rtol=1e-5)
        certificate = model.certify(X, y, sample_weight=s)
        report = assay.verify(certificate, model, X, y, sample_weight=s)
        assert report.holds, report.reason
        convex = (kind, link) in CONVEX
        assert any(c.name == "glm.stationarity" for c in certificate.claims) == convex
        if convex:
            assert certificate.find("glm.stationarity").value < 1e-4
            assert certificate.find("glm.stationarity").params["mu"] > 0


@pytest.mark.mission("LIN-10")
@pytest.mark.filterwarnings("ignore:.*does not respect the domain.*")
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("kind", FAMILIES)
def test_every_link_goes_with_every_family(kind, link):
    """All twenty pairs, those that statsmodels advises against included; means lie in (0, 1), where each link works."""
    rng = np.random.default_rng(2)
    X = 0.1 * rng.normal(size=(2000, 3))
    level = {"identity": 0.5, "log": -0.7, "logit": 0.1, "probit": 0.1, "inverse": 2.0}[link]
    mean = inverse_link(link, X @ [0.5, -0.4, 0.3] + level)
    y = {
        "gaussian": lambda: mean + 0.05 * rng.normal(size=2000),
        "poisson": lambda: rng.poisson(mean).astype(float),
        "gamma": lambda: rng.gamma(20, mean / 20),
        "binomial": lambda: (rng.random(2000) < mean).astype(float),
    }[kind]()
    model, other = GeneralizedLinearRegressor(kind, link=link).fit(X, y), peer(kind, link, X, y)
    np.testing.assert_allclose(np.append(model.intercept_, model.coef_), other.params, atol=1e-6)
    assert model.deviance_ == pytest.approx(other.deviance, rel=1e-10)
    assert assay.verify(model.certify(X, y), model, X, y).holds


@pytest.mark.mission("LIN-10")
def test_three_links_are_three_known_models():
    X, y = draw("gaussian")
    line = GeneralizedLinearRegressor(alpha=0.1).fit(X, y)
    np.testing.assert_allclose(line.coef_, Ridge(0.1 * len(y)).fit(X, y).coef_, rtol=1e-9)
    X, y = draw("binomial")
    logit = GeneralizedLinearRegressor("binomial").fit(X, y)
    np.testing.assert_allclose(logit.coef_, LogisticRegression(C=np.inf, tol=1e-15).fit(X, y).coef_[0], atol=1e-6)
    X, y = draw("poisson")
    rates = GeneralizedLinearRegressor("poisson", alpha=0.01).fit(X, y)
    np.testing.assert_allclose(
        rates.coef_, sk.PoissonRegressor(alpha=0.01, tol=1e-12, max_iter=1000).fit(X, y).coef_, atol=1e-7
    )
    X, y = draw("gamma")
    times = GeneralizedLinearRegressor("gamma", alpha=0.01).fit(X, y)
    np.testing.assert_allclose(
        times.coef_, sk.GammaRegressor(alpha=0.01, tol=1e-12, max_iter=1000).fit(X, y).coef_, atol=1e-6
    )


@pytest.mark.mission("LIN-09")
def test_log_linear_regression_is_least_squares_of_the_logarithm():
    X, y = draw("lognormal")
    model = GeneralizedLinearRegressor("lognormal").fit(X, y)
    line = LinearRegression().fit(X, np.log(y))
    np.testing.assert_allclose(model.coef_, line.coef_, atol=1e-9)
    np.testing.assert_allclose(model.predict(X), np.exp(line.predict(X)), rtol=1e-8)
    assert model.deviance_ == pytest.approx(np.sum((np.log(y) - line.predict(X)) ** 2), rel=1e-9)
    assert assay.verify(model.certify(X, y), model, X, y).holds
    gaussian = GeneralizedLinearRegressor("gaussian", link="log").fit(X, y)  # errors add on y: another model
    assert np.abs(gaussian.coef_ - model.coef_).max() > 1e-3
    for wrong in (0.0, -1.0):
        y[3] = wrong
        with pytest.raises(ValueError, match="needs y > 0"):
            GeneralizedLinearRegressor("lognormal").fit(X, y)


@pytest.mark.mission("LIN-11", "LIN-12")
def test_sigmoid_and_logit_are_inverse_and_overflow_safe():
    z = np.linspace(-700, 700, 2001)
    np.testing.assert_allclose(sigmoid(z), expit(z), rtol=1e-12)
    np.testing.assert_allclose(sigmoid(-z), 1 - sigmoid(z), atol=1e-15)
    middle = np.linspace(-20, 20, 401)
    p = sigmoid(middle)
    np.testing.assert_allclose(np.log(p / (1 - p)), middle, atol=1e-6)
    np.testing.assert_allclose(logit(p), middle, atol=1e-6)
    assert logit([0.0, 1.0]).tolist() == [-np.inf, np.inf]
    slope = (sigmoid(middle + 1e-6) - sigmoid(middle - 1e-6)) / 2e-6
    np.testing.assert_allclose(slope, p * (1 - p), atol=1e-9)
    np.testing.assert_array_equal(inverse_link("logit", middle), p)
    np.testing.assert_array_equal(link_function("logit", p), logit(p))
    for link in ("identity", "log", "probit", "inverse"):
        m = np.linspace(0.05, 0.95, 19)
        np.testing.assert_allclose(inverse_link(link, link_function(link, m)), m, rtol=1e-12)


@pytest.mark.parametrize(("kind", "link"), list(product(FAMILIES, LINKS)))
def test_compiled_terms_are_derivatives_of_the_deviance(kind, link):
    from assay.losses.compiled import deviance_terms

    rng = np.random.default_rng(0)
    family, code = FAMILIES.index(kind), LINKS.index(link)
    for _ in range(30):
        y = {"binomial": float(rng.integers(0, 2)), "gaussian": rng.normal()}.get(kind, float(rng.integers(1, 6)))
        f = rng.uniform(0.1, 0.9) if link in ("identity", "inverse") else rng.uniform(-2, 2)
        f = -0.1 - abs(f) if (kind, link) == ("binomial", "log") else f
        f = 1.1 + abs(f) if (kind, link) == ("binomial", "inverse") else f
        _, slope, expected = deviance_terms(family, code, y, f)
        value = lambda v, y=y: deviance_terms(family, code, y, v[0])[0]  # noqa: E731
        assert check_gradient(value, np.array([slope]), np.array([f])) < 1e-6
        if (kind, link) in CONVEX:
            assert first_derivative(kind, link, np.array([y]), np.array([f]))[0] == pytest.approx(
                slope, rel=1e-9, abs=1e-12
            )
            second = second_derivative(kind, link, np.array([y]), np.array([f]))
            rise = (deviance_terms(family, code, y, f + 1e-5)[1] - deviance_terms(family, code, y, f - 1e-5)[1]) / 2e-5
            assert second[0] == pytest.approx(rise, rel=1e-6, abs=1e-8)
        mean = inverse_link(link, np.array(f))
        variance = {"gaussian": 1.0, "poisson": mean, "gamma": mean**2, "binomial": mean * (1 - mean)}[kind]
        rise = {
            "identity": 1.0,
            "log": mean,
            "logit": mean * (1 - mean),
            "probit": norm.pdf(f),
            "inverse": -(mean**2),
        }[link]
        assert expected == pytest.approx(rise**2 / variance, rel=1e-9)


def test_a_worse_model_and_forged_numbers_are_caught():
    X, y = draw("poisson")
    model = GeneralizedLinearRegressor("poisson").fit(X, y)
    certificate = model.certify(X, y)
    claim = certificate.find("glm.stationarity")
    for change in (
        {"mu": claim.params["mu"] * 3},
        {"distribution": "gamma"},
        {"link": "identity"},
        {"alpha": 0.5},
        {"intercept": False},
        {"radius": claim.params["radius"] * 1e6},
    ):
        wrong = replace(claim, params={**claim.params, **change})
        claims = tuple(wrong if c is claim else c for c in certificate.claims)
        assert not assay.verify(replace(certificate, claims=claims), model, X, y).holds, change
    model.coef_ = model.coef_ + 0.01
    worse = model.certify(X, y)
    assert assay.verify(worse, model, X, y).holds
    assert worse.find("glm.stationarity").value > 1e3 * claim.value
    forged = replace(worse, claims=tuple(claim if c.name == "glm.stationarity" else c for c in worse.claims))
    assert "glm.stationarity" in assay.verify(forged, model, X, y).reason


def _hard_rows(kind, link, rng):
    """Return rows, targets and weights of very different sizes: scores that cancel, separated classes, few rows."""
    n, d = int(rng.integers(5, 120)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, size=d) + rng.choice([0.0, 0.0, 1e3, 1e5])
    y = {
        "gaussian": rng.normal(size=n) * 10.0 ** rng.integers(-3, 5),
        "poisson": rng.poisson(10.0 ** rng.integers(-1, 4), size=n) * 1.0,
        "gamma": rng.gamma(2.0, size=n) * 10.0 ** rng.integers(-5, 5),
        "lognormal": np.exp(rng.normal(size=n) * rng.integers(1, 5)),
        "binomial": rng.choice([rng.integers(0, 2, n) * 1.0, rng.uniform(size=n), (X[:, 0] > X[:, 0].mean()) * 1.0]),
    }[kind]
    return X, y, None if rng.random() < 0.5 else rng.uniform(0, 3, size=n)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("kind", "link"), [*sorted(CONVEX), ("lognormal", "log")])
def test_honest_stationarity_verifies(kind, link):
    """The claim holds whatever the rounding: a third of gamma models, some binomial and Poisson ones were refused."""
    claimed = 0
    for seed in range(20):
        rng = np.random.default_rng([seed, *map(ord, kind + link)])
        X, y, weight = _hard_rows(kind, link, rng)
        more = {"alpha": float(rng.choice([0.0, 1e-6, 0.1])), "max_iter": int(rng.choice([3, 200]))}
        model = GeneralizedLinearRegressor(kind, link=link, **more).fit(X, y, sample_weight=weight)
        certificate = model.certify(X, y, sample_weight=weight)
        report = assay.verify(certificate, model, X, y, sample_weight=weight)
        assert report.holds, (seed, report.reason)
        claimed += any(claim.name == "glm.stationarity" for claim in certificate.claims)
    assert claimed >= (5 if link == "identity" or (kind, link) == ("binomial", "log") else 20)


def test_a_score_at_the_edge_of_the_link_is_said():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.0, 1.0, 1.0, 1.0])
    model = GeneralizedLinearRegressor("binomial", link="identity").fit(X * 0.1, [0.3, 0.4, 0.5, 0.6])
    model.coef_, model.intercept_ = np.array([1 / 3]), 0.0
    certificate = model.certify(X, y)
    assert [one.reason.code for one in certificate.not_applicable if one.name == "glm.stationarity"] == [
        "why.link-domain"
    ]
    assert assay.verify(certificate, model, X, y).holds


def test_holdout_claims_are_about_the_means():
    X, y = draw("poisson", n=3000)
    model = GeneralizedLinearRegressor("poisson").fit(X[:1000], y[:1000])
    certificate = model.certify(X[:1000], y[:1000], holdout=(X[1000:], y[1000:]), clip=5.0)
    mean = np.minimum(np.abs(y[1000:] - model.predict(X[1000:])), 5.0).mean()
    assert mean < certificate.find("holdout.betting").value < mean + 0.3
    report = assay.verify(certificate, model, X[:1000], y[:1000], holdout=(X[1000:], y[1000:]))
    assert report.holds, report.reason


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_files_and_clusters_give_the_same_model(tmp_path):
    import dask.array as da
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y = draw("poisson", n=20_000)
    memory = GeneralizedLinearRegressor("poisson").fit(X, y)
    pq.write_table(pa.table([*X.T.copy(), y], names=["a", "b", "c", "y"]), tmp_path / "rows.parquet")
    parquet = GeneralizedLinearRegressor("poisson").fit(str(tmp_path / "rows.parquet"), "y")
    dask = GeneralizedLinearRegressor("poisson").fit(da.from_array(X, chunks=(3000, 3)), da.from_array(y, chunks=3000))
    for other in (parquet, dask):
        np.testing.assert_allclose(other.coef_, memory.coef_, atol=1e-9)


def test_refusals_say_what_is_wrong():
    X, y = draw("poisson")
    for options, target, words in [
        ({"distribution": "tweedie"}, y, "distribution must be one of"),
        ({"distribution": "poisson", "link": "cauchit"}, y, "link must be one of"),
        ({"distribution": "poisson"}, -y - 1, "needs y >= 0"),
        ({"distribution": "binomial"}, y, "y <= 1"),
        ({"distribution": "gamma"}, y * 0, "needs y > 0"),
        ({"distribution": "lognormal", "link": "identity"}, y + 1, 'link "log"'),
        ({"distribution": "gamma", "link": "inverse", "fit_intercept": False}, y + 1, "needs an intercept"),
    ]:
        with pytest.raises(ValueError, match=words):
            GeneralizedLinearRegressor(**options).fit(X, target)


def test_a_mean_below_the_normal_numbers_may_be_zero():
    """The logistic function of -712 is 6e-310 by the checker's formula, and zero where its exponential overflows."""
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = GeneralizedLinearRegressor(distribution="binomial", link="logit").fit(X, [0.0, 1.0, 0.0, 1.0])
    model.coef_, model.intercept_ = np.array([-1.0]), 0.0
    rows = np.array([[709.0], [712.0], [744.0], [5e4]])
    mean, error = read_model(stored_form(model)).scores(rows, rows.max(axis=0))
    assert np.all(np.abs(model.predict(rows) - mean[:, 0]) <= error)
    assert error[0] < 1e-149
