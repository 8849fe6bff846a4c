"""Do statements from hold-out rows beside the error rate keep their promise? Known truth, violations counted."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from assay.linear_model import LinearRegression, LogisticRegression
from tests.certificate.test_validity import DELTAS, MANY, REPETITIONS, accepted, tally


def sign_of_first(d=2):
    """A classifier that looks at the sign of the first column."""
    model = LogisticRegression(n_jobs=1)
    model.classes_, model.n_features_in_, model.n_iter_ = np.array([0, 1]), d, 1
    model.coef_, model.intercept_, model.separator_ = np.eye(d)[:1], np.zeros(1), None
    return model


def rows(rng, n, flips=0.0):
    """Labels are fair coins, the first column N(+-1, 1), the second the label itself, flipped at a rate."""
    y = rng.integers(0, 2, n)
    y[:2] = [0, 1]
    X = np.column_stack([rng.normal(2.0 * y - 1.0), np.where(rng.random(n) < flips, 1 - y, y)])
    return X, y


def curve(rng):
    """holdout.auc and holdout.thresholds: the true area is Phi(sqrt 2); shares above every threshold at once."""
    model, (Xh, yh) = sign_of_first(), rows(rng, 60)

    def judge(delta):
        found = model.certify(*TRAIN, holdout=(Xh, yh), scores=True, delta=delta, hypothesis_class_fixed=False)
        area, width = found.find("holdout.auc").value, found.find("holdout.thresholds").value
        off = max(_farthest(Xh[yh == k, 0], 2.0 * k - 1.0) for k in (0, 1))
        return area > norm.cdf(math.sqrt(2)) or off > width, area > 0.5

    return judge


def _farthest(values, mean):
    """Largest distance of the empirical from the true distribution function."""
    true, n = norm.cdf(np.sort(values), mean), len(values)
    return max((np.arange(1, n + 1) / n - true).max(), (true - np.arange(n) / n).max())


def pair(rng):
    """holdout.paired: the sign of the first column, wrong for Phi(-1) of rows, against the second, wrong for 40 %."""
    model, (Xh, yh) = sign_of_first(), rows(rng, 150, flips=0.4)
    truth = norm.cdf(-1.0) - 0.4

    def judge(delta):
        options = {"holdout": (Xh, yh), "against": Xh[:, 1].astype(int), "hypothesis_class_fixed": False}
        claim = model.certify(*TRAIN, delta=delta, **options).find("holdout.paired")
        bound = claim.value if claim.direction == "upper" else -claim.value
        return bound < truth, bound < 0

    return judge


def intervals(rng, extra=1):
    """conformal.coverage for a regression: the share of new rows inside prediction +- size."""
    x = rng.normal(size=100)
    y = x + rng.standard_t(3, size=100)
    model = LinearRegression(n_jobs=1)
    model.coef_, model.intercept_, model.n_features_in_ = np.ones(1), 0.0, 1

    def judge(delta):
        found = model.certify(*LINE, holdout=(x[:, None], y), coverage=0.8, delta=delta, hypothesis_class_fixed=False)
        size = found.find("conformal.coverage").value if extra else np.sort(np.abs(y - x))[79]
        from scipy.stats import t

        return 2 * t.cdf(size, 3) - 1 < 0.8, True

    return judge


def label_sets(rng):
    """conformal.coverage for a classifier: how often the true class is among those within `size` of the largest
    score."""
    model, (Xh, yh) = sign_of_first(), rows(rng, 80)

    def judge(delta):
        asked = {"holdout": (Xh, yh), "coverage": 0.9, "delta": delta, "hypothesis_class_fixed": False}
        size = model.certify(*TRAIN, **asked).find("conformal.coverage").value
        return norm.cdf(1.0 + size) < 0.9, True

    return judge


TRAIN = rows(np.random.default_rng(0), 20)
LINE = (np.arange(3.0)[:, None], np.arange(3.0))
HONEST = [curve, pair, intervals, label_sets]


@DELTAS
@pytest.mark.parametrize("run", HONEST, ids=lambda run: run.__name__)
def test_statements_keep_their_promise(run, delta, long):
    repetitions = MANY if long else REPETITIONS
    violations, informative = tally(run, 200 + HONEST.index(run), repetitions)[delta]
    assert violations <= accepted(repetitions, delta)
    assert informative >= 0.5


def plain_quantile(rng):
    return intervals(rng, extra=0)


def compared_after_looking(rng):
    """Two models chosen as the best and worst of thirty on the same rows, read as if fixed before."""
    y = rng.integers(0, 2, 100)
    guesses = rng.integers(0, 2, size=(30, 100))
    wrong = (guesses != y).sum(axis=1)
    X = np.column_stack([2.0 * guesses[int(np.argmin(wrong))] - 1.0, np.zeros(100)])
    worst = guesses[int(np.argmax(wrong))]

    def judge(delta):
        options = {"holdout": (X, y), "against": worst, "hypothesis_class_fixed": False}
        claim = sign_of_first().certify(*TRAIN, delta=delta, **options).find("holdout.paired")
        return claim.direction == "lower", True

    return judge


CONTROLS = [plain_quantile, compared_after_looking]


@DELTAS
@pytest.mark.parametrize("run", CONTROLS, ids=lambda run: run.__name__)
def test_misuse_is_caught(run, delta):
    violations, _ = tally(run, seed=300 + CONTROLS.index(run), repetitions=60)[delta]
    assert violations > binom.isf(1e-6, 60, delta)
