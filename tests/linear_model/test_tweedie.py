"""Poisson, gamma and Tweedie regression beside scikit-learn's classes of these names, and by their own formulas."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as scikit
from sklearn.metrics import mean_tweedie_deviance

import assay
import assay.linear_model as ours

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 5))
MEAN = np.exp(X @ [0.3, -0.2, 0.0, 0.1, 0.2] + 0.3)
Y = {
    "counts": RNG.poisson(MEAN).astype(float),
    "durations": MEAN * RNG.gamma(2.0, 0.5, 400),
    "costs": np.where(RNG.random(400) < 0.3, 0.0, MEAN * RNG.gamma(2.0, 0.5, 400)),
    "numbers": np.log(MEAN) + RNG.normal(size=400),
}
WEIGHT = RNG.uniform(0.5, 2.0, 400)
CASES = [
    ("PoissonRegressor", {}, "counts"),
    ("PoissonRegressor", {"fit_intercept": False, "alpha": 0.01}, "counts"),
    ("GammaRegressor", {"alpha": 0.1}, "durations"),
    ("TweedieRegressor", {}, "numbers"),
    ("TweedieRegressor", {"power": 1}, "counts"),
    ("TweedieRegressor", {"power": 1, "link": "log", "alpha": 0.0}, "counts"),
    ("TweedieRegressor", {"power": 1.5}, "costs"),
    ("TweedieRegressor", {"power": 1.9, "alpha": 0.0, "fit_intercept": False}, "costs"),
    ("TweedieRegressor", {"power": 2}, "durations"),
    ("TweedieRegressor", {"power": 3, "alpha": 0.1}, "durations"),
]


@pytest.mark.parametrize(("name", "settings", "target"), CASES)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
def test_the_minimum_is_scikit_learns(name, settings, target, weight):
    y = Y[target]
    model = getattr(ours, name)(**settings).fit(X, y, weight)
    peer = getattr(scikit, name)(**settings, tol=1e-10, max_iter=10_000).fit(X, y, weight)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-6)
    assert model.intercept_ == pytest.approx(peer.intercept_, abs=1e-6)
    assert model.score(X, y, weight) == pytest.approx(peer.score(X, y, weight), abs=1e-7)
    power = {"PoissonRegressor": 1, "GammaRegressor": 2}.get(name, settings.get("power", 0))
    total = mean_tweedie_deviance(y, model.predict(X), sample_weight=weight, power=power)
    assert model.deviance_ == pytest.approx(total * (400 if weight is None else weight.sum()))
    sparse = getattr(ours, name)(**settings).fit(sp.csr_array(X), y, weight)
    np.testing.assert_allclose(sparse.coef_, model.coef_, atol=1e-9)


@pytest.mark.parametrize(("name", "settings", "target"), [CASES[0], CASES[2], CASES[4]])
def test_the_certificate_proves_the_minimum(name, settings, target):
    rows, held = (X[100:], Y[target][100:]), (X[:100], Y[target][:100])
    model = getattr(ours, name)(**settings).fit(*rows)
    certificate = model.certify(*rows, holdout=held, clip=3.0)
    assert certificate["glm.stationarity"].value < 1e-5
    assert assay.verify(certificate, model, *rows, holdout=held).holds


def test_other_powers_say_why_they_prove_nothing_of_the_minimum():
    model = ours.TweedieRegressor(power=1.5).fit(X, Y["costs"])
    assert model.objective(X, Y["costs"]) < model.objective(X, Y["costs"], coef=model.coef_ + 0.01)
    (gap,) = [gap for gap in model.certify(X, Y["costs"]).not_applicable if gap.name == "glm.stationarity"]
    assert "Poisson" in gap.reason


def test_a_warm_start_needs_fewer_steps():
    cold = ours.PoissonRegressor(warm_start=True).fit(X, Y["counts"])
    steps = cold.n_iter_
    assert cold.set_params(alpha=1.001).fit(X, Y["counts"]).n_iter_ < steps
    assert cold.fit(X[:, :2], Y["counts"]).coef_.shape == (2,)


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (ours.PoissonRegressor(), Y["numbers"], "out of the valid range of the loss 'HalfPoissonLoss'"),
        (ours.GammaRegressor(), Y["costs"], "it needs y > 0"),
        (ours.TweedieRegressor(power=0.5), Y["costs"], "no distribution has a power between 0 and 1"),
        (ours.TweedieRegressor(power=1.5, link="identity"), Y["costs"], 'the link must be "log"'),
        (ours.PoissonRegressor(solver="newton"), Y["counts"], "solver must be one of 'lbfgs', 'newton-cholesky'"),
    ],
)
def test_what_cannot_be_fitted_is_refused(model, y, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
