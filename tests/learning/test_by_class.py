"""F1 and the error rate with every class counted alike: thresholds chosen for them, and bounds at the chosen one."""

import itertools
import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from sklearn.metrics import balanced_accuracy_score, f1_score

import assay
from assay import verify
from assay.guarantees.ledger import CertifyOptions
from assay.guarantees.seal import issue
from assay.imbalance import ThresholdClassifier
from assay.learning.metrics import Metric
from assay.linear_model import LogisticRegression
from assay.theory.holdout import balanced_upper


def rare(seed, n=400, share=0.1, classes=2):
    """Classes that overlap; the second is rare. Given the class, x is normal around its number."""
    rng = np.random.default_rng(seed)
    p = np.array([1 - share, share]) if classes == 2 else np.array([0.6, 0.3, 0.1])
    y = rng.choice(classes, size=n, p=p)
    return (1.5 * y + rng.normal(size=n))[:, None], y


def certified(seed, metric, positive=None, delta=0.05, model=None, **more):
    X, y = rare(seed, **more)
    half = len(y) // 2
    model = (LogisticRegression() if model is None else model).fit(X[:half], y[:half])
    cut = model._cut(X, y, None, np.arange(half, len(y)))
    asked = CertifyOptions(metric=metric, positive=positive, hypothesis_class_fixed=False)
    return model, issue(model, cut, delta=Decimal(str(delta)), asked=asked), X, y


def status(certificate, model, X, y, name):
    return next(one for one in verify(certificate, model, X, y).verdicts if one.claim == name).status


def lower(k, m, delta):
    return stats.beta.ppf(delta, k, m - k + 1) if k else 0.0


def upper(k, m, delta):
    return stats.beta.ppf(1 - delta, k + 1, m - k) if k < m else 1.0


@pytest.mark.parametrize("classes", [2, 3])
def test_f1_by_hand(classes):
    model, certificate, X, y = certified(0, "f1", 1 if classes == 2 else None, classes=classes, n=900, share=0.3)
    claim, half = certificate.find("holdout.f1"), 450
    guess, truth = model.predict(X[half:]), y[half:]
    wanted = [1] if classes == 2 else range(3)
    limits = []
    for k in wanted:
        both, either = np.sum((guess == k) & (truth == k)), np.sum((guess == k) | (truth == k))
        limits.append(lower(both, either, float(claim.delta) / len(wanted)))
    by_hand = np.mean([2 * one / (1 + one) for one in limits])
    assert claim.value == pytest.approx(by_hand, abs=1e-7)
    seen = f1_score(truth, guess, **({} if classes == 2 else {"average": "macro"}))
    assert 0 < claim.value < seen
    assert status(certificate, model, X, y, "holdout.f1") == "PROVED-GIVEN"


def kl(p, q):
    return float(stats.entropy([p, 1 - p], [q, 1 - q]))


def test_balanced_by_limits_where_one_class_is_rare():
    """By the numbers of rows alone: few rows of one class waste most of the others."""
    model, certificate, X, y = certified(4, "balanced", n=1200, share=0.02)
    claim, half = certificate.find("holdout.balanced"), 600
    guess, truth = model.predict(X[half:]), y[half:]
    own = [truth == k for k in range(2)]
    at = float(claim.delta) / 2
    limits = [upper(int(np.sum(guess[one] != k)), int(one.sum()), at) for k, one in enumerate(own)]
    assert claim.value == pytest.approx(np.mean(limits), abs=1e-7)
    assert status(certificate, model, X, y, "holdout.balanced") == "PROVED-GIVEN"


@pytest.mark.parametrize("rows", [(2, 2), (3, 5), (2, 3, 4)])
@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_balanced_fails_rarely_by_enumeration(rows, delta):
    """All numbers of errors in each class, error rates on a grid: the exact probability that the bound is too small."""
    counts = list(itertools.product(*(range(m + 1) for m in rows)))
    bounds = np.array([balanced_upper(one, rows, delta) for one in counts])
    for rates in itertools.product(np.linspace(0.05, 0.95, 7), repeat=len(rows)):
        chance = np.prod([stats.binom.pmf(np.array(counts)[:, k], m, rates[k]) for k, m in enumerate(rows)], axis=0)
        assert chance[bounds < np.mean(rates) - 1e-12].sum() <= delta


def test_other_classes_are_one_class_more():
    rng = np.random.default_rng(5)
    X, y = rare(5, n=800, share=0.4)
    y[400:][rng.random(400) < 0.1] = 7
    model = LogisticRegression().fit(X[:400], y[:400])
    cut = model._cut(X, y, None, np.arange(400, 800))
    found = issue(model, cut, delta=Decimal("0.05"), asked=CertifyOptions(metric="balanced"))
    claim = found.find("holdout.balanced")
    assert claim.params["others"] == int(np.sum(y == 7))
    assert claim.value > 1 / 3
    assert "as one more" in claim.statement
    assert status(found, model, X, y, "holdout.balanced") == "PROVED-GIVEN"
    for others in (0, claim.params["others"] - 1):
        forged = replace(claim, params={**claim.params, "others": others})
        claims = tuple(forged if one is claim else one for one in found.claims)
        assert status(replace(found, claims=claims), model, X, y, "holdout.balanced") == "REJECTED"


@pytest.mark.parametrize("classes", [2, 3])
def test_balanced_by_hand(classes):
    model, certificate, X, y = certified(1, "balanced", classes=classes, n=900, share=0.3)
    claim, half = certificate.find("holdout.balanced"), 450
    guess, truth = model.predict(X[half:]), y[half:]
    own = [truth == k for k in range(classes)]
    seen = np.mean([np.mean(guess[one] != k) for k, one in enumerate(own)])
    rows = classes * min(int(one.sum()) for one in own)
    paid = math.log(1 / float(claim.delta)) / rows
    assert claim.value == pytest.approx(brentq(lambda q: kl(seen, q) - paid, seen, 1 - 1e-12), abs=1e-7)
    assert not claim.witness
    assert claim.value > 1 - balanced_accuracy_score(truth, guess)
    assert status(certificate, model, X, y, "holdout.balanced") == "PROVED-GIVEN"


@pytest.mark.parametrize(("metric", "code"), [("f1", "holdout.f1"), ("balanced", "holdout.balanced")])
@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_constants_are_noticed(metric, code, factor):
    model, certificate, X, y = certified(2, metric, n=900, classes=3)
    if metric == "balanced":
        _shares_of_delta_are_noticed(model, certificate, X, y, factor)
        return
    claim = certificate.find(code)
    guess, truth = model.predict(X[450:]), y[450:]
    at, limits = float(claim.delta) / 3 * factor, claim.witness["limits"].copy()
    limits[0] = lower(np.sum((guess == 0) & (truth == 0)), np.sum((guess == 0) | (truth == 0)), at) - 1e-12
    value = float(np.mean(2 * limits / (1 + limits))) - 1e-9
    moved = replace(claim, witness={"limits": limits}, value=value)
    claims = [moved if one is claim else one for one in certificate.claims]
    found = status(replace(certificate, claims=tuple(claims)), model, X, y, claim.kind)
    assert found == ("PROVED-GIVEN" if factor < 1 else "REJECTED")


def _shares_of_delta_are_noticed(model, certificate, X, y, factor):
    claim = certificate.find("holdout.balanced")
    guess, truth = model.predict(X[450:]), y[450:]
    errors = [int(np.sum(guess[truth == k] != k)) for k in range(3)]
    value = balanced_upper(errors, np.bincount(truth).tolist(), float(claim.delta) * factor)
    claims = [replace(claim, value=value + 1e-9) if one is claim else one for one in certificate.claims]
    found = status(replace(certificate, claims=tuple(claims)), model, X, y, claim.kind)
    assert found == ("PROVED-GIVEN" if factor < 1 else "REJECTED")


@pytest.mark.parametrize(("metric", "code"), [("f1", "holdout.f1"), ("balanced", "holdout.balanced")])
def test_forgeries_are_rejected(metric, code):
    model, certificate, X, y = certified(3, metric, 0 if metric == "f1" else None, n=900, share=0.3)
    claim = certificate.find(code)
    better = 1.001 if metric == "f1" else 0.999
    limits = claim.witness.get("limits", np.array([0.1, 0.1]))
    for change in (
        {"value": claim.value * better},
        {"witness": {"limits": limits * better}, "value": claim.value * better},
        {"witness": {"limits": limits[:0]}},
        {"witness": {"limits": np.append(limits, limits)}},
        {"params": {**claim.params, "rows": 5}},
        {"params": {**claim.params, "label": 1}},
        {"params": {**claim.params, "label": 7}},
        {"params": {**claim.params, "more": 1}},
    ):
        claims = [replace(one, **change) if one is claim else one for one in certificate.claims]
        assert status(replace(certificate, claims=tuple(claims)), model, X, y, claim.kind) == "REJECTED", change


def truths(model, share):
    """The true F1 of the second class and the true balanced error: x is normal around 0 or 1.5, and the decision is
    that x exceeds a number."""
    grid = np.linspace(-6, 8, 14001)[:, None]
    called = model.predict(grid) == 1
    cut = grid[called.argmax(), 0] if called.any() else np.inf
    hit, alarm = stats.norm.sf(cut - 1.5), stats.norm.sf(cut)
    f1 = 2 * share * hit / (share + share * hit + (1 - share) * alarm)
    return f1, 0.5 * (alarm + 1 - hit)


@pytest.mark.parametrize(("metric", "place"), [("f1", 0), ("balanced", 1)])
def test_bounds_hold_as_often_as_they_say(metric, place):
    """Half of delta is the error rate's: a bound at 0.25 fails at most a quarter of the time."""
    draws, failed, stated = 80, 0, 0
    for seed in range(draws):
        model, certificate, _, _ = certified(seed, metric, 1 if metric == "f1" else None, 0.5, n=160, share=0.25)
        claims = [one for one in certificate.claims if one.name in ("holdout.f1", "holdout.balanced")]
        truth, stated = truths(model, 0.25)[place], stated + len(claims)
        failed += any(truth < one.value - 1e-3 if metric == "f1" else truth > one.value + 1e-3 for one in claims)
    assert stated > draws / 2
    assert failed <= stats.binom.ppf(0.9999, draws, 0.25)


# The threshold


@pytest.mark.parametrize("metric", ["f1", "balanced"])
def test_the_threshold_is_the_best_of_its_grid_on_rows_not_fitted_to(metric):
    X, y = rare(5, n=1500)
    model = ThresholdClassifier(LogisticRegression(), threshold=metric).fit(X, y)
    t = model.class_weights_[0]
    assert t * 100 == pytest.approx(round(t * 100))
    second = model.estimator_.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(model.predict(X), (second > t).astype(int))
    score = f1_score if metric == "f1" else balanced_accuracy_score
    best = max(score(y, second > k / 100) for k in range(1, 100))
    assert score(y, second > t) > best - 0.03
    new, truth = rare(6, n=5000)
    plain = LogisticRegression().fit(X, y)
    assert score(truth, model.predict(new)) > score(truth, plain.predict(new)) + 0.05


def test_few_rows_of_a_class_and_many_classes():
    X, y = rare(7, n=100, share=0.5)
    few = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:4]]
    prior, chosen = (ThresholdClassifier(threshold=one).fit(X[few], y[few]) for one in ("prior", "f1"))
    np.testing.assert_array_equal(prior.class_weights_, chosen.class_weights_)
    with pytest.raises(ValueError, match="two classes"):
        ThresholdClassifier(threshold="f1").fit(*rare(8, classes=3))
    with pytest.raises(ValueError, match="'balanced'"):
        ThresholdClassifier(threshold="f2").fit(X, y)


@pytest.mark.parametrize("metric", ["f1", "balanced"])
@pytest.mark.parametrize("learner", ["LogisticRegression", "RandomForestClassifier", "MixedNB"])
def test_a_study_moves_the_threshold_and_bounds_the_metric(metric, learner):
    X, y = rare(9, n=900)
    table = {"x": X[:, 0], "z": np.random.default_rng(0).normal(size=900), "y": np.where(y, "yes", "no")}
    study = assay.learn(table, "y", metric=metric, learners=[learner], trials=1, workers=0, seed=1)
    plain = assay.learn(table, "y", learners=[learner], trials=1, workers=0, seed=1)
    assert type(study.model.learner).__name__ == "ThresholdClassifier"
    X, y = rare(10, n=5000)
    rows = {"x": X[:, 0], "z": np.random.default_rng(1).normal(size=5000)}
    score = f1_score if metric == "f1" else balanced_accuracy_score
    own, other = (score(y == 1, one.model.predict(rows) == "yes") for one in (study, plain))
    assert own > other
    claim = study.certificate.find("holdout.f1" if metric == "f1" else "holdout.balanced")
    assert (claim.value < own) if metric == "f1" else (claim.value > 1 - own)
    assert ("its F1 of yes is at least" if metric == "f1" else "balanced error rate is at most") in study.why
    assert assay.verify(study.certificate, study.model, study.raw).holds


def test_f1_is_of_the_class_that_is_rare_among_the_training_rows():
    from assay.learning.metrics import chosen_metric

    assert chosen_metric("f1", None, "classify", np.array([0, 0, 1]), 2).positive == 1
    assert chosen_metric("f1", None, "classify", np.array([0, 1, 1]), 2).positive == 0
    assert chosen_metric("f1", None, "classify", np.array([0, 1, 2]), 3).positive is None
    mostly = chosen_metric("f1", None, "classify", np.array([0, 0, 1]), 2)
    assert mostly.of(np.array([1, 1, 1, 0]), np.array([1, 1, 0, 0]), None, 2) == pytest.approx(1 - 0.8)


LABELS = np.array(["a", "b", "c"])


@pytest.mark.parametrize("name", ["error", "balanced", "f1", "logloss", "brier", "auc", "cost"])
@pytest.mark.parametrize("n", [2, 3])
def test_metrics_on_held_out_rows_are_those_of_scikit_learn(name, n):
    from sklearn import metrics

    rng = np.random.default_rng(n)
    y, shares = rng.choice(LABELS[:n], 80), rng.dirichlet(np.ones(n), 80)
    told = LABELS[shares.argmax(axis=1)]
    cost = rng.random((n, n))
    metric = Metric(name, cost if name == "cost" else None, 1 if name == "f1" and n == 2 else None)
    codes = np.searchsorted(LABELS, y)
    expected = {
        "error": lambda: 1 - metrics.accuracy_score(y, told),
        "balanced": lambda: 1 - metrics.balanced_accuracy_score(y, told),
        "f1": lambda: metrics.f1_score(y, told, **({"pos_label": "b"} if n == 2 else {"average": "macro"})),
        "logloss": lambda: metrics.log_loss(y, shares, labels=LABELS[:n]),
        "brier": lambda: 0.5 * np.mean(((shares - np.eye(n)[codes]) ** 2).sum(axis=1)),
        "auc": lambda: metrics.roc_auc_score(y == "b", shares[:, 1]) if n == 2 else (
            metrics.roc_auc_score(y, shares, multi_class="ovr")
        ),
        "cost": lambda: cost[codes, np.searchsorted(LABELS, told)].mean(),
    }[name]()  # fmt: skip
    assert metric.on(y, told, shares, LABELS[:n]) == pytest.approx(expected)


def test_classes_that_nobody_predicts_count_as_errors_and_cost_most():
    y, told, classes = np.array(["a", "b", "x", "0"]), np.array(["a", "b", "a", "b"]), LABELS[:2]
    shares = np.array([[0.8, 0.2], [0.4, 0.6], [0.9, 0.1], [0.3, 0.7]])
    assert Metric("error").on(y, told, shares, classes) == 0.5
    assert Metric("cost", np.array([[0.0, 2.0], [7.0, 0.0]])).on(y, told, None, classes) == 2 * 7 / 4
    assert Metric("brier").on(y, told, shares, classes) == pytest.approx(
        0.5 * np.mean([2 * 0.2**2, 2 * 0.4**2, 0.81 + 0.01 + 1, 0.09 + 0.49 + 1])
    )
    assert Metric("logloss").on(y, told, shares, classes) > 10


@pytest.mark.parametrize("metric", ["auc", "logloss", "rmse", "r2"])
def test_every_column_of_the_leaderboard_is_in_the_metric(metric, tmp_path):
    """The hold-out column is what scikit-learn measures with the model; the baseline's is known."""
    from sklearn import metrics

    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 2))
    total = x.sum(axis=1) + 0.5 * rng.normal(size=400)
    classes = metric in ("auc", "logloss")
    table = {"a": x[:, 0], "b": x[:, 1], "y": np.where(total > 0.5, "yes", "no") if classes else total}
    name = "LogisticRegression" if classes else "Ridge"
    study = assay.learn(table, "y", metric=metric, learners=[name], trials=1, workers=0)
    rows, y = study.holdout
    told = study.model.predict_proba(rows)[:, 1] if classes else study.model.predict(rows)
    base = study.baseline
    expected = {
        "auc": lambda: metrics.roc_auc_score(y == "yes", told),
        "logloss": lambda: metrics.log_loss(y == "yes", told),
        "rmse": lambda: metrics.mean_squared_error(y, told) ** 0.5,
        "r2": lambda: metrics.r2_score(y, told),
    }[metric]()
    assert study.chosen.holdout_metric == pytest.approx(expected)
    assert f"{expected:.4g}" in repr(study).splitlines()[1]
    assert f"Held-out {metric}" in repr(study)
    assert {"auc": 0.5, "r2": 0.0}.get(metric, base.cv) == pytest.approx(base.cv)
    if metric == "auc":
        assert base.holdout_metric == 0.5
        assert study.chosen.metric_bound == next(c.value for c in study.certificate if c.name == "holdout.auc")
        assert "Certified auc at least" in repr(study)
        study.report(tmp_path / "report.html")
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert f"auc ≥ {math.floor(study.chosen.metric_bound * 1e4) / 1e4:.4g}" in page
        assert f'<td class="n">{expected:.4g}</td>' in page
    else:
        assert study.chosen.metric_bound is None
        assert f"{expected:.4g}" in study.why


def test_the_baseline_of_a_cost_is_the_cheapest_constant():
    """With missed ones at ten times the price always saying "yes" is cheaper than always saying the commonest class."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=300)
    table = {"x": x, "y": np.where(x + 0.3 * rng.normal(size=300) > 0.8, "yes", "no")}
    study = assay.learn(table, "y", cost=[[0, 1], [10, 0]], learners=["LogisticRegression"], trials=1, workers=0)
    no = 1 - np.mean(study.holdout[1] == "yes")
    assert study.baseline.holdout_metric == pytest.approx(no)
    assert "always yes" in study.why
    assert "proved to beat" not in study.why
