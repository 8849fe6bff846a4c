"""Hold-out statements beside the error rate: mean losses, the ROC curve, two models, coverage.

Each case is made by hand from its formula, its truth decided in rational arithmetic, and attacked.
"""

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from tests.certificate import bets, exact, exact_counts, forge, truths
from tests.certificate.attacks import assault, operators

DELTA = 0.04


def kl(p, q):
    return float(stats.entropy([p, 1 - p], [q, 1 - q]))


def regression(seed):
    rng = np.random.default_rng([seed, 31])
    X, Xh = rng.standard_normal((12, 2)), rng.standard_normal((40, 2))
    fitted = forge.model(rng.standard_normal(2), 0.2)
    yh = Xh @ fitted.coef_ + 0.2 + 0.4 * rng.standard_normal(40)
    return fitted, (X, X @ fitted.coef_), (Xh, yh), np.abs(yh - Xh @ fitted.coef_ - 0.2)


def _told(y, loss):
    return [str(label) for label in y.tolist()] if loss == "brier" else y


def mean_case(name, loss="absolute"):
    def make(seed):
        if loss == "absolute":
            fitted, train, holdout, gaps = regression(seed)
            clip = 2.0
            losses = np.minimum(gaps, clip) / clip
        else:
            _, fitted, train, holdout, score = classifier(seed)
            clip = 1.0
            losses = (1 / (1 + np.exp(-score)) - holdout[1]) ** 2
        if name == "holdout.kl":
            p = float(losses.mean())
            bound = brentq(lambda q: kl(p, q) - math.log(1 / DELTA) / 40, p, 1 - 1e-12, xtol=1e-14)
        else:
            bound = bets.bound(losses[bets.of_rows(holdout[0], _told(holdout[1], loss))], DELTA)
        stated = forge.claim(
            name,
            clip * bound + 2e-9,
            delta=str(DELTA),
            params={"loss": loss, "clip": clip, "rows": 40},
            data=("holdout",),
        )
        return forge.Case((stated,), fitted, *train, holdout=holdout).seal()

    return make


def classifier(seed, rows=40):
    rng = np.random.default_rng([seed, 32])
    X, Xh = rng.standard_normal((12, 2)), rng.standard_normal((rows, 2))
    fitted = forge.model(rng.standard_normal((1, 2)), 0.1, [0, 1])
    score = Xh @ fitted.coef_[0] + 0.1
    yh = (score + rng.standard_normal(rows) > 0).astype(int)
    yh[:2] = [0, 1]
    return rng, fitted, (X, np.arange(12) % 2), (Xh, yh), score


def area_bound(area, pairs, one=1.0, once=1.0):
    """The smallest q with kl(area, q) <= ln(1 / DELTA) / pairs."""
    return brentq(lambda q: kl(area, q) - once * math.log(one / DELTA) / pairs, 1e-12, area, xtol=1e-14)


def curve_case(name):
    def make(seed):
        _, fitted, train, (Xh, yh), score = classifier(seed)
        a, b = int(yh.sum()), int((1 - yh).sum())
        if name == "holdout.auc":
            area = float((score[yh == 1][:, None] > score[yh == 0][None, :]).mean())
            value = area_bound(area, min(a, b)) - 1e-9
        else:
            value = math.sqrt(math.log(4 / DELTA) / (2 * min(a, b))) + 1e-9
        params = {"positives": a, "negatives": b, "compared": 1}
        direction = "lower" if name == "holdout.auc" else "upper"
        stated = forge.claim(name, value, direction, str(DELTA), params=params, data=("holdout",))
        return forge.Case((stated,), fitted, *train, holdout=(Xh, yh)).seal()

    return make


def paired_case(seed):
    rng, fitted, train, (Xh, yh), score = classifier(seed)
    right = (score > 0) == (yh == 1)
    share = 0.95 if seed % 2 else 0.2  # of rows that the other model has right
    other = np.where(rng.random(40) < share, yh, 1 - yh).astype(np.int32)
    alone, other_alone = int(np.sum(~right & (other == yh))), int(np.sum(right & (other != yh)))
    moved = 0.5 + 0.5 * (~right & (other == yh)) - 0.5 * (right & (other != yh))
    most = 2 * bets.bound(moved[bets.of_rows(Xh, _told(yh, "brier"))], DELTA) - 1 + 1e-9
    params = {"alone": alone, "other_alone": other_alone, "rows": 40}
    direction, value = "lower" if most < 0 else "upper", abs(most)
    stated = forge.claim(
        "holdout.paired", value, direction, str(DELTA), params=params, data=("holdout",), witness={"predictions": other}
    )
    return forge.Case((stated,), fitted, *train, holdout=(Xh, yh)).seal()


def sign_case(seed):
    """holdout.paired-better: the other model is right on 5 % of rows, so that the sign test proves that this one errs
    less often."""
    rng, fitted, train, (Xh, yh), score = classifier(seed)
    right = (score > 0) == (yh == 1)
    other = np.where(rng.random(40) < 0.05, yh, 1 - yh).astype(np.int32)
    alone, other_alone = int(np.sum(~right & (other == yh))), int(np.sum(right & (other != yh)))
    value = float(stats.beta.ppf(1 - DELTA, alone + 1, other_alone)) + 1e-9
    assert value < 0.5
    params = {"alone": alone, "other_alone": other_alone, "rows": 40}
    stated = forge.claim(
        "holdout.paired-better",
        value,
        delta=str(DELTA),
        params=params,
        data=("holdout",),
        witness={"predictions": other},
    )
    return forge.Case((stated,), fitted, *train, holdout=(Xh, yh)).seal()


def coverage_case(seed):
    if seed % 2:
        fitted, train, holdout, sizes = regression(seed)
    else:
        _, fitted, train, holdout, score = classifier(seed)
        sizes = np.maximum(0.0, np.where(holdout[1] == 1, -score, score))
    j = next(j for j in range(1, 41) if stats.binom.sf(j - 1, 40, 0.7) <= DELTA)
    params = {"coverage": 0.7, "rows": 40, "compared": 1}
    value = float(np.sort(sizes)[j - 1]) * (1 + 1e-9) + 1e-12
    stated = forge.claim("conformal.coverage", value, delta=str(DELTA), params=params, data=("holdout",))
    return forge.Case((stated,), fitted, *train, holdout=holdout).seal()


CASES = {
    "holdout.kl": mean_case("holdout.kl"),
    "holdout.betting": mean_case("holdout.betting"),
    "holdout.kl brier": mean_case("holdout.kl", "brier"),
    "holdout.betting brier": mean_case("holdout.betting", "brier"),
    "holdout.auc": curve_case("holdout.auc"),
    "holdout.thresholds": curve_case("holdout.thresholds"),
    "holdout.paired": paired_case,
    "holdout.paired-better": sign_case,
    "conformal.coverage": coverage_case,
}


# Truth in rational arithmetic -------------------------------------------------------------------------------


def exact_scores(case):
    X, y = exact_counts.named_rows(case, "holdout")
    return [row[0] for row in exact.scores(case, X)], y


def mean_truth(case):
    params = case.claim.params
    scores, y = exact_scores(case)
    clip = Fraction(params["clip"])
    if (params["loss"] == "brier") != hasattr(case.model, "classes_"):
        return False
    if params["loss"] == "brier":
        if clip != 1:
            return False
        losses = [brier(s, v == case.model.classes_[1]) for s, v in zip(scores, y)]
    else:
        losses = [min(abs(Fraction(float(v)) - f), clip) / clip for v, f in zip(y, scores)]
    bound, m = Fraction(case.claim.value) / clip, len(losses)
    delta = Fraction(case.claim.delta) / params.get("compared", 1)
    if params["rows"] != m or case.claim.direction != "upper":
        return False
    if bound >= 1:
        return True
    with localcontext(prec=50):
        if case.claim.name == "holdout.kl":
            p = sum(losses) / m
            log = exact.decimal(1 / delta).ln() / m
            return p < bound and _kl(p, bound) >= log
        order = bets.of_rows(case.holdout[0], _told(y, params["loss"]))
        return bets.bound([float(losses[i]) for i in order], float(delta)) <= float(bound) + 1e-12


def brier(score, second):
    """(sigma(score) - 1[second])^2 to 40 digits."""
    with localcontext(prec=50):
        away = 1 / (1 + (exact.decimal(score) * (1 if second else -1)).exp())
        return Fraction(away * away)


def _kl(p, q):
    with localcontext(prec=50):
        p, q = exact.decimal(p), exact.decimal(q)
        first = p * (p / q).ln() if p else Decimal(0)
        return first + (1 - p) * ((1 - p) / (1 - q)).ln()


def curve_truth(case):
    params = case.claim.params
    scores, y = exact_scores(case)
    positive = [s for s, v in zip(scores, y) if v == case.model.classes_[1]]
    negative = [s for s, v in zip(scores, y) if v == case.model.classes_[0]]
    a, b = len(positive), len(negative)
    if (params["positives"], params["negatives"]) != (a, b) or len(case.model.classes_) != 2:
        return False
    delta = Fraction(case.claim.delta) / params["compared"]
    with localcontext(prec=50):
        value = exact.decimal(Fraction(case.claim.value))
        if case.claim.name == "holdout.thresholds":
            width = ((4 / exact.decimal(delta)).ln() / (2 * min(a, b))).sqrt()
            return case.claim.direction == "upper" and value >= width
        twice = sum((p > q) + (p >= q) for p in positive for q in negative)
        wrong, stated = 1 - Fraction(twice, 2 * a * b), 1 - Fraction(case.claim.value)
        enough = wrong < stated < 1 and _kl(wrong, stated) >= (1 / exact.decimal(delta)).ln() / min(a, b)
        return case.claim.direction == "lower" and (value <= 0 or enough)


def discordant(case):
    """Return on which rows one model alone errs, and whether the counts are no better than these."""
    params, other = case.claim.params, case.claim.witness["predictions"]
    scores, y = exact_scores(case)
    codes = np.searchsorted(case.model.classes_, y) if case.model.classes_[0] == 0 else 1 - y
    right = np.array([s > 0 if c == 1 else s < 0 for s, c in zip(scores, codes)])
    alone, other_alone = ~right & (other == codes), right & (other != codes)
    stated = params["alone"] >= alone.sum() and params["other_alone"] <= other_alone.sum()
    return alone, other_alone, stated and params["rows"] == len(y)


def paired_truth(case):
    alone, other_alone, stated = discordant(case)
    order = bets.of_rows(case.holdout[0], [str(label) for label in exact_scores(case)[1].tolist()])
    most = case.claim.value if case.claim.direction == "upper" else -case.claim.value
    limit = 2 * bets.bound((0.5 + 0.5 * alone - 0.5 * other_alone)[order], float(case.claim.delta)) - 1
    return stated and (most >= 1 or limit <= most + 1e-12)


def sign_truth(case):
    alone, other_alone = case.claim.params["alone"], case.claim.params["other_alone"]
    tail = stats.binom.cdf(alone, alone + other_alone, case.claim.value)
    proved = case.claim.value <= 0.5 and tail <= float(case.claim.delta) * (1 + 1e-9)
    return case.claim.direction == "upper" and discordant(case)[2] and proved


def coverage_truth(case):
    params = case.claim.params
    scores, y = exact_scores(case)
    if hasattr(case.model, "classes_"):
        sizes = [max(Fraction(0), -s if v == case.model.classes_[1] else s) for s, v in zip(scores, y)]
    else:
        sizes = [abs(Fraction(float(v)) - f) for v, f in zip(y, scores)]
    inside = sum(size <= Fraction(case.claim.value) for size in sizes)
    delta = float(Fraction(case.claim.delta) / params["compared"]) * (1 + 1e-9)
    enough = stats.binom.sf(inside - 1, len(y), params["coverage"]) <= delta
    return case.claim.direction == "upper" and params["rows"] == len(y) and enough


TRUTHS = {
    "holdout.kl": mean_truth,
    "holdout.betting": mean_truth,
    "holdout.auc": curve_truth,
    "holdout.thresholds": curve_truth,
    "holdout.paired": paired_truth,
    "holdout.paired-better": sign_truth,
    "conformal.coverage": coverage_truth,
}


def truth(case):
    known = TRUTHS.get(case.claim.name)
    return truths.truth(case) if known is None else bool(known(case))


@pytest.mark.parametrize("name", CASES)
def test_honest_claims_are_true_and_accepted(name):
    for seed in range(12):
        case = CASES[name](seed)
        assert truth(case)
        assert case.verify().holds, case.verify().reason


@pytest.mark.parametrize("name", CASES)
def test_a_little_inside_is_refused(name):
    for seed in range(8):
        case = CASES[name](seed)
        step = 1e-7 * (1 if case.claim.direction == "lower" else -1)
        assert not case.with_claim(value=case.claim.value + step).verify().holds
        assert not case.with_claim(delta="0.0399").verify().holds or name == "conformal.coverage"  # j is a whole number


@pytest.mark.parametrize("name", CASES)
def test_no_false_mutant_is_accepted(name):
    accepted = assault(CASES[name], truth, 12, seed=0)
    assert set(accepted) <= {operator for operator, _, _ in operators()}
    assert sum(accepted.values()) > 0, "every mutant was refused: the attack no longer reaches the rules"


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_no_false_mutant_among_two_hundred_per_operator(name):
    assault(CASES[name], truth, 200, seed=1)


def test_a_conformal_quantile_without_the_extra_row_is_refused():
    """The textbook slip: the 70 % quantile of the sizes themselves."""
    case = coverage_case(1)
    _, _, _, sizes = regression(1)
    assert not case.with_claim(value=float(np.sort(sizes)[28 - 1])).verify().holds


def test_the_better_model_cannot_be_claimed_from_the_wrong_side():
    case = next(c for c in map(paired_case, range(20)) if c.claim.direction == "lower")
    turned = case.claim.params | {"alone": case.claim.params["other_alone"], "other_alone": case.claim.params["alone"]}
    assert not case.with_claim(params=turned).verify().holds
    assert not case.with_claim(value=0.9).verify().holds


def test_the_order_of_the_table_changes_nothing():
    case = CASES["holdout.betting"](3)
    order = np.argsort(np.abs(case.holdout[1] - case.holdout[0] @ case.model.coef_ - 0.2))
    X, y = case.holdout
    for turned in (order, order[::-1]):
        other = replace(case, holdout=(X[turned], y[turned]), sealed=None).seal()
        assert other.verify().holds
        assert not other.with_claim(value=case.claim.value - 1e-7).verify().holds


def width(case, four, two):
    params = case.claim.params
    return math.sqrt(math.log(four / DELTA) / (two * min(params["positives"], params["negatives"])))


def area(case, one, once):
    Xh, yh = case.holdout
    score = Xh @ case.model.coef_[0] + 0.1
    a, b = case.claim.params["positives"], case.claim.params["negatives"]
    seen = float((score[yh == 1][:, None] > score[yh == 0][None, :]).mean())
    return area_bound(seen, min(a, b), one, once)


@pytest.mark.parametrize(
    ("name", "formula", "constants"), [("holdout.auc", area, (1.0, 1.0)), ("holdout.thresholds", width, (4.0, 2.0))]
)
def test_constants_off_by_ten_percent_are_noticed(name, formula, constants):
    case = CASES[name](2)
    sign = 1 if case.claim.direction == "upper" else -1
    right = formula(case, *constants)
    assert case.with_claim(value=right + sign * 1e-9).verify().holds
    for i in range(len(constants)):
        for factor in (0.9, 1.1):
            wrong = formula(case, *constants[:i], constants[i] * factor, *constants[i + 1 :])
            holds = case.with_claim(value=wrong + sign * 1e-9).verify().holds
            assert holds == (sign * wrong >= sign * right), (name, i, factor)


@pytest.mark.parametrize("kept", [0.999, 1.5])
def test_stakes_that_know_the_outcome_are_refused(kept):
    """Stakes that look at the row they are bet on would prove too much; the checker has its own."""
    case = CASES["holdout.betting"](4)
    X, y = case.holdout
    losses = np.minimum(np.abs(y - X @ case.model.coef_ - 0.2), 2.0) / 2.0

    def money(g):
        stakes = np.where(losses < g, kept, 0.0)  # knows the outcome
        return np.cumsum(np.log1p(-stakes * (losses - g))).max() - math.log(1 / DELTA)

    cheat = 2.0 * brentq(money, 1e-6, 1.0)
    assert cheat < case.claim.value
    assert not case.with_claim(value=cheat).verify().holds
