"""Properties of the linear learners and their certificates, over data drawn by Hypothesis."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import assay
from assay.guarantees.fingerprint import model_reference
from assay.linear_model import LinearRegression, LogisticRegression, Perceptron, Ridge

SEEDS = st.integers(0, 10_000)
POWERS = st.integers(-40, 40).map(lambda k: 2.0**k)
some = settings(max_examples=25)
few = settings(max_examples=8)


def rows(seed, n=60, d=3, classes=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=d)
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    if classes is not None:
        y = np.argsort(np.argsort(y)) * classes // n  # as many rows of each class
    return X, y


def fit(model, X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, **options)


def same(one, other):
    return np.array_equal(one.coef_, other.coef_) and np.array_equal(one.intercept_, other.intercept_)


# Threads ----------------------------------------------------------------------------------------------------


@few
@given(SEEDS, st.sampled_from([2, 3, 8]), st.sampled_from(["lin", "ridge", "newton", "lbfgs", "three", "hard"]))
def test_threads_change_no_bit(seed, n_jobs, kind):
    X, y = rows(seed, n=9_000, d=20, classes={"newton": 2, "lbfgs": 2, "three": 3}.get(kind))
    if kind == "hard":
        X[:, 1] = X[:, 0] + 1e-8 * X[:, 1]  # needs twice the precision
    make = {
        "lin": LinearRegression,
        "hard": LinearRegression,
        "ridge": Ridge,
        "newton": LogisticRegression,
        "three": LogisticRegression,
        "lbfgs": lambda **options: LogisticRegression(solver="lbfgs", **options),
    }[kind]
    weight = np.random.default_rng(seed).uniform(size=9_000) if seed % 2 else None
    one, many = (fit(make(n_jobs=k), X, y, sample_weight=weight) for k in (1, n_jobs))
    assert same(one, many)
    first, second = (model.certify(X, y, sample_weight=weight) for model in (one, many))
    assert [claim.value for claim in first.claims] == [claim.value for claim in second.claims]
    assert first.data == second.data
    assert first.model == second.model


# Units ------------------------------------------------------------------------------------------------------


@some
@given(SEEDS, POWERS, POWERS, st.booleans())
def test_least_squares_does_not_know_its_units(seed, column, target, intercept):
    X, y = rows(seed)
    plain = LinearRegression(fit_intercept=intercept).fit(X, y)
    scale = np.array([column, 1.0, 1.0])
    scaled = LinearRegression(fit_intercept=intercept).fit(X * scale, y * target)
    assert np.array_equal(scaled.coef_, plain.coef_ * target / scale)  # powers of two: not a bit changes
    assert np.array_equal(scaled.intercept_, plain.intercept_ * target)


@some
@given(SEEDS, st.floats(-1e6, 1e6), st.permutations([0, 1, 2]))
def test_least_squares_moves_with_the_data(seed, shift, order):
    X, y = rows(seed)
    plain = LinearRegression().fit(X, y)
    assert LinearRegression().fit(X, y + shift).coef_ == pytest.approx(plain.coef_, rel=1e-8, abs=1e-9)
    assert LinearRegression().fit(X + shift, y).coef_ == pytest.approx(plain.coef_, rel=1e-7, abs=1e-8)
    turned = LinearRegression().fit(X[::-1][:, order], y[::-1])
    assert turned.coef_ == pytest.approx(plain.coef_[list(order)], rel=1e-10, abs=1e-12)
    twice = LinearRegression().fit(np.vstack([X, X]), np.append(y, y))
    assert twice.coef_ == pytest.approx(plain.coef_, rel=1e-10, abs=1e-12)


@some
@given(SEEDS, st.floats(1e-3, 1e3), st.floats(0.1, 10))
def test_ridge_scales_with_its_penalty(seed, alpha, c):
    X, y = rows(seed)
    plain, scaled = Ridge(alpha=alpha).fit(X, y), Ridge(alpha=alpha * c * c).fit(X * c, y)
    assert scaled.coef_ * c == pytest.approx(plain.coef_, rel=1e-9, abs=1e-12)
    weighted = Ridge(alpha=alpha * c).fit(X, y, sample_weight=np.full(len(y), c))
    assert weighted.coef_ == pytest.approx(plain.coef_, rel=1e-9, abs=1e-12)
    shrunk = Ridge(alpha=2 * alpha).fit(X, y)
    assert np.linalg.norm(shrunk.coef_) <= np.linalg.norm(plain.coef_) * (1 + 1e-12)


@some
@given(SEEDS, st.floats(1e-3, 1e3), st.floats(0.1, 10), st.sampled_from(["newton", "lbfgs"]))
def test_logistic_symmetries(seed, C, c, solver):
    X, y = rows(seed, classes=2)
    make = lambda value: LogisticRegression(C=value, solver=solver, tol=1e-14, max_iter=2_000)  # noqa: E731
    plain = fit(make(C), X, y)
    close = {"rel": 1e-4, "abs": 1e-5}
    assert fit(make(C / c), X, y, sample_weight=np.full(60, c)).coef_ == pytest.approx(plain.coef_, **close)
    assert fit(make(C), -X, 1 - y).coef_ == pytest.approx(plain.coef_, **close)
    assert fit(make(C), X, 1 - y).coef_ == pytest.approx(-plain.coef_, **close)
    assert fit(make(C), X[::-1], y[::-1]).coef_ == pytest.approx(plain.coef_, **close)
    spread = fit(make(C / (c * c)), c * X, y)  # 1/2 |w|^2 + C loss, in other units of x
    assert c * spread.coef_ == pytest.approx(plain.coef_, **close)


@some
@given(SEEDS, POWERS)
def test_perceptron_does_not_know_its_units(seed, factor):
    X, y = rows(seed, classes=2)
    plain = fit(Perceptron(fit_intercept=False, shuffle=False, max_iter=20), X, y)
    scaled = fit(Perceptron(fit_intercept=False, shuffle=False, max_iter=20), factor * X, y)
    assert np.array_equal(scaled.coef_, factor * plain.coef_)
    assert np.array_equal(scaled.updates_[0], plain.updates_[0])


# Certificates -----------------------------------------------------------------------------------------------


@some
@given(
    seed=SEEDS,
    C=st.floats(-4, 4).map(lambda k: 10.0**k),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
    max_iter=st.integers(1, 6),
    classes=st.sampled_from([2, 3]),
    solver=st.sampled_from(["newton", "lbfgs"]),
    intercept=st.booleans(),
)
def test_a_fit_cut_short_tells_the_truth(seed, C, scale, max_iter, classes, solver, intercept):
    X, y = rows(seed, classes=classes)
    model = LogisticRegression(C=C, max_iter=max_iter, solver=solver, fit_intercept=intercept)
    fit(model, scale * X, y)
    report = assay.verify(model.certify(scale * X, y), model, scale * X, y)
    assert report.holds, report.reason


@some
@given(SEEDS, st.floats(1e-6, 1.0), st.sampled_from(["lin", "ridge", "binary", "three"]), st.booleans())
def test_a_gap_does_not_cover_another_model(seed, size, kind, offset):
    X, y = rows(seed, classes={"binary": 2, "three": 3}.get(kind))
    model = {"lin": LinearRegression(), "ridge": Ridge()}.get(kind, LogisticRegression(tol=1e-14))
    certificate = model.fit(X, y).certify(X, y)
    if offset:
        model.intercept_ = model.intercept_ + size * np.arange(1, 1 + np.size(model.intercept_))
    else:
        model.coef_ = model.coef_ + size * np.random.default_rng(seed).choice([-1, 1], model.coef_.shape)
    model.intercept_ = float(model.intercept_[0]) if kind in ("lin", "ridge") and offset else model.intercept_
    forged = replace(certificate, model=model_reference(model))  # the forger updates the fingerprint, not the gap
    report = assay.verify(forged, model, X, y)
    assert report.structure.holds
    judged = dict(zip([claim.name for claim in forged.claims], report.verdicts))
    gap = next(judged[key] for key in ("suboptimality", "duality-gap", "multinomial.gap") if key in judged)
    assert gap.status == "REJECTED"
    assert not report.holds


@some
@given(SEEDS, st.lists(st.floats(1e-6, 0.5), min_size=2, max_size=2, unique=True).map(sorted), st.booleans())
def test_more_doubt_never_raises_a_bound(seed, deltas, regression):
    X, y = rows(seed, n=400, classes=None if regression else 2)
    Xh, yh = rows(seed + 1, n=200, classes=None if regression else 2)
    options = {"clip": 20.0} if regression else {}
    model = (LinearRegression() if regression else LogisticRegression()).fit(X, y)
    strict, loose = (model.certify(X, y, delta=delta, holdout=(Xh, yh), **options) for delta in deltas)
    bounds = {claim.name: claim.value for claim in strict.claims if not claim.is_fact}
    for claim in loose.claims:
        if claim.name in bounds:
            assert claim.value <= bounds[claim.name]
    assert bounds or regression


@some
@given(SEEDS)
def test_one_more_success_never_raises_the_holdout_bound(seed):
    X, y = rows(seed, classes=2)
    Xh, yh = rows(seed + 1, classes=2)
    model = LogisticRegression().fit(X, y)
    before = model.certify(X, y, holdout=(Xh, yh)).find("holdout.binomial").value
    at = Xh[model.predict(Xh) == yh][:1]
    if len(at):
        more = np.vstack([Xh, at]), np.append(yh, model.predict(at))
        assert model.certify(X, y, holdout=more).find("holdout.binomial").value <= before
    compared = model.certify(X, y, holdout=(Xh, yh), compared=[model.predict(Xh), yh]).find("holdout.selection").value
    assert compared >= before  # comparing costs


@some
@given(SEEDS, st.integers(-20, 20).map(lambda k: 2.0**k))
def test_units_do_not_change_what_is_said_about_new_data(seed, factor):
    X, y = rows(seed, classes=2)
    model = LogisticRegression().fit(X, y)
    before = model.certify(X, y, holdout=(X[:30] + 1, y[:30]))
    model.coef_ = model.coef_ / factor
    after = model.certify(factor * X, y, holdout=(factor * (X[:30] + 1), y[:30]))
    for name in ("holdout.binomial", "train.errors"):
        assert before.find(name).value == after.find(name).value
