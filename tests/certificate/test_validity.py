"""Do whole certificates keep their promise? Data with known risk, many repetitions, violations counted.

A certificate violates its promise when any of its statements about new data is false. At `delta` that may
happen in a share delta of the repetitions; a count so large that it would come about with probability below
1e-6 is an error. The controls misuse certificates in ways known to break them: they must exceed the count.
"""

import warnings
from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, norm

from assay.guarantees.seal import RepeatedUseWarning
from assay.linear_model import LinearRegression, LogisticRegression, Perceptron

REPETITIONS, MANY = 60, 400  # without and with --long


def accepted(repetitions, delta):
    """Return how many violations may be chance."""
    return binom.isf(1e-6, repetitions, delta)


ACCEPTED = {delta: accepted(REPETITIONS, delta) for delta in (0.05, 0.2)}
DELTAS = pytest.mark.parametrize("delta", list(ACCEPTED))


def gaussians(rng, n, d=2, distance=1.0, flips=0.05):
    """Draw two classes N(-mu, I), N(mu, I), labels flipped at a rate."""
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d))
    X[:, 0] += distance * (2 * y - 1)
    return X, np.where(rng.random(n) < flips, 1 - y, y)


def gaussian_risk(model, distance=1.0, flips=0.05):
    w, b = model.coef_[0], model.intercept_[0]
    shift = distance * w[0]
    wrong = 0.5 * (norm.cdf(-(shift + b) / np.linalg.norm(w)) + norm.cdf((b - shift) / np.linalg.norm(w)))
    return flips + (1 - 2 * flips) * wrong


def noise(rng, n, d=2, classes=2):
    """Draw labels that have nothing to do with the rows: every classifier has risk 1 - 1 / classes."""
    y = rng.integers(0, classes, n)
    y[:classes] = np.arange(classes)
    return rng.normal(size=(n, d)), y


def fit(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def broken(certificate, risk):
    """Tell whether a statement about new data is false, and whether one says more than a coin toss does."""
    claims = [claim for claim in certificate.claims if not claim.is_fact]
    assert all(claim.direction == "upper" for claim in claims)
    return any(claim.value < risk for claim in claims), any(claim.value < 0.5 for claim in claims)


@cache
def tally(run, seed, repetitions=REPETITIONS):
    """Return violations and the share of informative certificates at each delta, on the same samples."""
    outcomes = []
    for i in range(repetitions):
        judge = run(np.random.default_rng([seed, i]))
        outcomes.append([judge(delta) for delta in ACCEPTED])
    counts = np.array(outcomes, dtype=bool)
    return {delta: (int(counts[:, k, 0].sum()), counts[:, k, 1].mean()) for k, delta in enumerate(ACCEPTED)}


# Honest use -------------------------------------------------------------------------------------------------


def holdout_bound(rng):
    """holdout.binomial alone, on few hold-out rows, where it is nearly tight."""
    (X, y), holdout = gaussians(rng, 40), gaussians(rng, 40)
    model = fit(LogisticRegression(n_jobs=1), X, y)

    def judge(delta):
        certificate = model.certify(X, y, delta=delta, holdout=holdout, hypothesis_class_fixed=False)
        assert [claim.name for claim in certificate.claims if not claim.is_fact] == ["holdout.binomial"]
        return broken(certificate, gaussian_risk(model))

    return judge


def holdout_and_class_bound(rng):
    """holdout.binomial and vc read together."""
    (X, y), holdout = gaussians(rng, 300), gaussians(rng, 60)
    model = fit(LogisticRegression(n_jobs=1), X, y)

    def judge(delta):
        certificate = model.certify(X, y, delta=delta, holdout=holdout)
        assert {claim.name for claim in certificate.claims} >= {"holdout.binomial", "vc"}
        return broken(certificate, gaussian_risk(model))

    return judge


def class_bound_on_noise(rng):
    """vc for a learner that fits noise as well as a half-space can."""
    X, y = noise(rng, 120, d=3)
    models = [LogisticRegression(C=np.inf, n_jobs=1), Perceptron(max_iter=5, random_state=0, n_jobs=1)]
    best = min((fit(model, X, y) for model in models), key=lambda model: np.mean(model.predict(X) != y))
    return lambda delta: (broken(best.certify(X, y, delta=delta), 0.5)[0], True)


def class_bound_on_separable_rows(rng):
    """vc where the training error is zero and the bound says most."""
    X, y = gaussians(rng, 150, distance=2.5, flips=0.0)
    model = fit(Perceptron(max_iter=200, random_state=0, n_jobs=1), X, y)
    return lambda delta: broken(model.certify(X, y, delta=delta), gaussian_risk(model, 2.5, 0.0))


def three_classes(rng):
    """holdout.binomial and vc for the softmax on noise."""
    (X, y), holdout = noise(rng, 150, classes=3), noise(rng, 50, classes=3)
    model = fit(LogisticRegression(C=100.0, n_jobs=1, tol=1e-4), X, y)
    return lambda delta: (broken(model.certify(X, y, delta=delta, holdout=holdout), 2 / 3)[0], True)


def know_nothing(d):
    """Return d classifiers, each of which looks at the sign of one column."""
    for j in range(d):
        model = LogisticRegression(n_jobs=1)
        model.classes_, model.n_features_in_, model.n_iter_ = np.array([0, 1]), d, 1
        model.coef_, model.intercept_, model.separator_ = np.eye(d)[j : j + 1], np.zeros(1), None
        yield model


def best_of_twenty(rng, paid=True):
    """holdout.selection: the best of twenty models on one hold-out set; every one of them has risk 1/2."""
    (X, y), (Xh, yh) = noise(rng, 30, d=20), noise(rng, 60, d=20)
    models = list(know_nothing(20))
    predictions = [model.predict(Xh) for model in models]
    chosen = models[int(np.argmin([np.mean(guess != yh) for guess in predictions]))]
    options = {"compared": predictions} if paid else {}

    def judge(delta):
        certificate = chosen.certify(X, y, delta=delta, holdout=(Xh, yh), hypothesis_class_fixed=False, **options)
        return broken(certificate, 0.5)[0], True

    return judge


CLIP = 2.0


def clipped_mean(mean, deviation):
    """Return E min(|R|, clip) of R ~ N(mean, deviation^2)."""
    return quad(lambda t: norm.sf(t, mean, deviation) + norm.cdf(-t, mean, deviation), 0, CLIP)[0]


def regression(rng):
    """holdout.betting: the clipped absolute error of a fitted line."""
    x, xh = rng.normal(size=20), rng.normal(size=400)
    y, yh = x + 0.3 * rng.normal(size=20), xh + 0.3 * rng.normal(size=400)
    model = LinearRegression(n_jobs=1).fit(x[:, None], y)
    truth = clipped_mean(-model.intercept_, np.hypot(1 - model.coef_[0], 0.3))

    def judge(delta):
        certificate = model.certify(x[:, None], y, delta=delta, holdout=(xh[:, None], yh), clip=CLIP)
        values = [claim.value for claim in certificate.claims if not claim.is_fact]
        assert len(values) == 1
        return min(values) < truth, min(values) < CLIP / 4

    return judge


HONEST = [
    holdout_bound,
    holdout_and_class_bound,
    class_bound_on_noise,
    class_bound_on_separable_rows,
    three_classes,
    best_of_twenty,
    regression,
]


@DELTAS
@pytest.mark.parametrize("run", HONEST, ids=lambda run: run.__name__)
def test_certificates_keep_their_promise(run, delta, long):
    repetitions = MANY if long else REPETITIONS
    violations, informative = tally(run, HONEST.index(run), repetitions)[delta]
    assert violations <= accepted(repetitions, delta)
    assert informative >= 0.5  # a bound that is always trivial would pass, and prove nothing


@DELTAS
def test_the_holdout_bound_is_not_wasteful(delta):
    violations, _ = tally(holdout_bound, 0, 120)[delta]
    assert violations >= 120 * delta / 10  # Clopper and Pearson's limit is nearly exact


# Misuse -----------------------------------------------------------------------------------------------------


def unpaid_comparison(rng):
    return best_of_twenty(rng, paid=False)


def training_rows_as_holdout(rng):
    X, y = noise(rng, 40, d=20)
    model = fit(LogisticRegression(C=np.inf, n_jobs=1), X, y)

    def judge(delta):
        return broken(model.certify(X, y, delta=delta, holdout=(X, y), hypothesis_class_fixed=False), 0.5)

    return judge


def best_of_many_splits(rng):
    X, y = noise(rng, 80, d=3)
    tried = []
    for _ in range(15):
        held = rng.choice(80, 40, replace=False)
        kept = np.setdiff1d(np.arange(80), held)
        tried.append((fit(LogisticRegression(n_jobs=1, tol=1e-3), X[kept], y[kept]), held))

    def judge(delta):
        fixed = {"delta": delta, "hypothesis_class_fixed": False}
        certificates = (model.certify(X, y, holdout=held, **fixed) for model, held in tried)
        return min(one.find("holdout.binomial").value for one in certificates) < 0.5, True

    return judge


CONTROLS = [unpaid_comparison, training_rows_as_holdout, best_of_many_splits]


@DELTAS
@pytest.mark.parametrize("run", CONTROLS, ids=lambda run: run.__name__)
def test_misuse_is_caught(run, delta):
    violations, _ = tally(run, seed=100 + CONTROLS.index(run), repetitions=30)[delta]
    assert violations > binom.isf(1e-6, 30, delta)


def test_the_checker_refuses_training_rows_as_holdout():
    import assay

    X, y = noise(np.random.default_rng(0), 40, d=20)
    model = fit(LogisticRegression(), X, y)
    certificate = model.certify(X, y, holdout=(X, y), hypothesis_class_fixed=False)
    report = assay.verify(certificate, model, X, y, holdout=(X, y))
    assert not report.holds
    assert "training rows" in report.reason


def test_repeated_use_of_one_table_is_told():
    X, y = noise(np.random.default_rng(1), 60, d=2)
    for serial, held in enumerate((np.arange(20), np.arange(20, 40), np.arange(40, 60)), start=1):
        model = fit(LogisticRegression(), np.delete(X, held, axis=0), np.delete(y, held))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model.certify(X, y, holdout=held, hypothesis_class_fixed=False)
        said = [str(one.message) for one in told if issubclass(one.category, RepeatedUseWarning)]
        assert len(said) == (serial > 1)
        for text in said:
            assert f"certificate {serial} " in text
            assert f"{0.05 * serial:g}" in text
