"""Regressions of the logarithm of the target: formula, certificate on the target's own scale, and the search."""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import Ridge as TheirRidge

import assay
from assay import verify
from assay.checker.family import read_model
from assay.ensemble import LogTargetRegressor
from assay.ensemble._log_target import is_skewed, scale_of
from assay.linear_model import Ridge
from assay.tree import DecisionTreeRegressor


def skewed(seed, n=400):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, 50 * np.exp(X @ [1.0, 0.6, 0.0] + 0.3 * rng.normal(size=n))


def test_predictions_are_those_of_the_transformed_target_clipped_to_its_range():
    X, y = skewed(0)
    unit = np.quantile(y[:300], 0.1)
    theirs = TransformedTargetRegressor(
        TheirRidge(), func=lambda v: np.log1p(v / unit), inverse_func=lambda v: unit * np.expm1(v), check_inverse=False
    ).fit(X[:300], y[:300])
    ours = LogTargetRegressor(Ridge()).fit(X[:300], y[:300])
    far = np.vstack([X[300:], 50 * np.ones((1, 3)), -50 * np.ones((1, 3))])
    np.testing.assert_allclose(ours.predict(far), np.clip(theirs.predict(far), 0.0, y[:300].max()), rtol=1e-9)


def test_negative_targets_move_the_origin():
    y = np.array([-3.0, -2.0, 0.0, 10.0, 100.0])
    origin, unit, top = scale_of(y)
    assert origin == -3.0
    assert unit == np.quantile([1.0, 3.0, 13.0, 103.0], 0.1)
    assert origin + unit * np.expm1(top) == pytest.approx(100.0)


@pytest.mark.parametrize("member", [Ridge(), DecisionTreeRegressor(max_depth=4, random_state=0)])
def test_the_certificate_is_about_the_target_itself(member):
    """The checker's own predictor gives what `predict` gives, within its bound of rounding; the claim is verified, and
    not of a model whose scale has been changed."""
    X, y = skewed(1)
    model = LogTargetRegressor(member).fit(X[:300], y[:300])
    certificate = model.certify(X[:300], y[:300], holdout=(X[300:], y[300:]), clip=float(y[:300].max()))
    assert verify(certificate, model, X[:300], y[:300], holdout=(X[300:], y[300:])).holds
    judge = read_model(model.stored())
    values, errors = judge.scores(X, np.abs(X).max(axis=0))
    apart = np.abs(values[:, 0] - model.predict(X))
    assert np.all(apart <= errors[0])
    assert errors[0] < 1e-6
    bound = next(claim for claim in certificate if claim.name == "holdout.betting")
    assert bound.value > np.mean(np.abs(model.predict(X[300:]) - y[300:]))
    model.target_scale_[1] *= 1.01
    assert not verify(certificate, model, X[:300], y[:300], holdout=(X[300:], y[300:])).holds


@pytest.mark.parametrize("scale", [[0.0, 0.0, 1.0], [0.0, -1.0, 1.0], [0.0, 1.0, 701.0], [0.0, 1.0, -1.0], [0.0, 1.0]])
def test_a_forged_scale_is_rejected(scale):
    from assay.checker.record import Rejected

    X, y = skewed(2, 60)
    model = LogTargetRegressor(Ridge()).fit(X, y)
    model.target_scale_ = np.array(scale)
    with pytest.raises(Rejected):
        read_model(model.stored())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "y",
    [
        np.repeat([-1e308, 1e308], 20),
        np.r_[np.zeros(2), np.full(8, 5e-324), np.full(30, 1e300)],
        np.exp(np.linspace(-600, 600, 40)),
        np.exp(np.linspace(-700, 709.7, 40)),
        np.full(40, 1.7e308),
    ],
    ids=["difference", "denormal decile", "ratio", "whole range", "largest"],
)
def test_targets_whose_exponentials_overflow_are_refused_in_words(y):
    X = np.linspace(-1, 1, 40)[:, None]
    assert not is_skewed(y)
    with pytest.raises(ValueError, match=r"the targets reach from .* to .*: their range is above"):
        LogTargetRegressor(DecisionTreeRegressor()).fit(X, y)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e140, 1e295])
def test_tiny_and_huge_targets_are_as_good_as_others(size):
    """The formula has the target's own unit, so that a target of another size is predicted alike."""
    X, y = skewed(3, 80)
    y = y / y.max()
    models = [LogTargetRegressor(DecisionTreeRegressor(max_depth=3)).fit(X, y * k) for k in (1.0, size)]
    one, other = (model.predict(X) for model in models)
    np.testing.assert_allclose(other, one * size, rtol=1e-9 if size > 1e-300 else 1e-3)
    assert other.max() <= size * (1 + 1e-12)
    assert is_skewed(y) == is_skewed(y * size)


def test_skewness_is_told_by_the_logarithm():
    rng = np.random.default_rng(0)
    assert is_skewed(np.exp(rng.normal(size=300)))
    assert not is_skewed(rng.normal(size=300))
    assert not is_skewed(np.ones(300))
    assert not is_skewed(np.r_[np.zeros(299), 1.0])  # the logarithm is as skewed


def test_the_main_job_tries_it_and_what_is_saved_is_what_was_judged(tmp_path):
    """Rows that are held out have no say: with huge targets there, the training rows decide that nothing is skewed."""
    X, y = skewed(3)
    table = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y}
    study = assay.learn(table, "y", learners=["Ridge"], trials=2, workers=0)
    assert study.chosen.name == "Ridge of the log target"
    assert study.chosen.loss < 0.6 * min(one.loss for one in study.candidates if one.name == "Ridge")
    study.save(tmp_path / "m.assay")
    model = assay.load(tmp_path / "m.assay").model
    assert np.array_equal(model.predict(table), study.model.predict(table))
    assert assay.verify(study.certificate, model, table).holds
    even = np.random.default_rng(4).normal(size=400)
    even[study.judged[1]] = np.exp(8 * even[study.judged[1]])  # the same rows are held out
    plain = assay.learn(table | {"y": even}, "y", learners=["Ridge"], trials=2, workers=0)
    assert not any("log target" in one.name for one in plain.candidates)


@pytest.mark.long
def test_bounds_on_the_original_scale_hold():
    """400 tables: the mean clipped error on many new rows is above the bound at delta = .1 in at most 10 % of them."""
    missed = 0
    far_X, far_y = skewed(10_000, 20_000)
    for seed in range(400):
        X, y = skewed(20_000 + seed, 150)
        model = LogTargetRegressor(Ridge()).fit(X[:90], y[:90])
        clip = float(np.abs(y[:90] - np.median(y[:90])).max())
        certificate = model.certify(X[:90], y[:90], holdout=(X[90:], y[90:]), clip=clip, delta=0.1)
        bound = min(claim.value for claim in certificate if claim.name == "holdout.betting")
        missed += np.mean(np.minimum(np.abs(model.predict(far_X) - far_y), clip)) > bound
    assert missed <= 58  # three standard errors above 40
