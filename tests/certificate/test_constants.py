"""Every constant of every bound matters: ten percent off, and the checker notices.

Each formula is written once more, its constants as keywords. With a constant moved so that the bound gets smaller the
checker must refuse it; moved the other way the number is larger, still true, and accepted. Files of single claims have
the others.
"""

import inspect
import math
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from sklearn.datasets import load_breast_cancer

import assay
from assay.claims.directory import codes, definition
from assay.ensemble import AdaBoostClassifier, RandomForestClassifier
from assay.kernel_model import KernelLogisticRegression, KernelPerceptron
from assay.linear_model import LinearRegression, LogisticRegression, Perceptron, VotedPerceptron
from assay.model_selection import CrossValidated
from assay.neighbors import KNeighborsClassifier
from assay.svm import SVC, LinearSVC
from assay.theory.pac import tree_bits
from assay.tree import DecisionTreeClassifier
from tests.certificate import bets
from tests.certificate import test_rules_holdout as holdout

ELSEWHERE = {
    "holdout.binomial",
    "holdout.empirical-bernstein",
    "holdout.auc",
    "holdout.thresholds",
    "vc",
    "rademacher.empirical",
    "progressive.vote",
    "regression.rademacher",
    "kmeans.risk",
    "projection.risk",
    "selective.risk",
    "selective.fixed",
    "cost.chosen",
    "cost.holdout",
    "calibration.error",
    "output-code.bits",
    "hmm.holdout",
    "teacher.disagreement",
}


def two_classes(n=1500, d=3, distance=2.5, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, d))
    X[:, 0] += distance * (2 * y - 1)
    return X, y


def corners(n=3000):
    rng = np.random.default_rng(1)
    y = np.arange(n) % 3
    angle = 2 * math.pi * y / 3
    return np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * rng.normal(size=(n, 2)), y


def loosened(at, formula):
    """A gap that matters: publishing a larger one than was proved is allowed."""
    gaps = ("duality-gap", "kernel-duality-gap")
    facts = [replace(one, value=1e-7) if one.name in gaps else one for one in at.certificate.claims]
    at.certificate = replace(at.certificate, claims=tuple(facts))
    at.claim = replace(at.claim, value=formula(at) + 1e-9)
    return at


def corners_of_two(n=6000):
    X, y = corners(n)
    return X[y < 2], y[y < 2]


def sided(n=1500):
    """Two heaps far apart, for a kernel of length one and a strong penalty."""
    side = np.arange(n) % 2
    return 3.0 * (2.0 * side[:, None] - 1) + 0.01 * np.random.default_rng(2).normal(size=(n, 1)), side


class Setting:
    """A fitted model with its certificate, the claim in question and what it rests on."""

    def __init__(self, name, model, rows, **options):
        self.X, self.y = rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model = model.fit(self.X, self.y)
        self.options = options
        self.certificate = model.certify(self.X, self.y, **options)
        self.claim = self.certificate.find(name)
        self.params, self.delta, self.n = self.claim.params, float(self.claim.delta), len(self.X)

    def holds(self, value, **changes):
        claim = replace(self.claim, value=float(value), **changes)
        kept = [one for one in self.certificate.claims if one.is_fact]
        certificate = replace(self.certificate, claims=(*kept, claim))
        holdout = self.options.get("holdout")
        return assay.verify(certificate, self.model, self.X, self.y, holdout=holdout).holds

    def margins(self):
        """Margins with the constant column, squared lengths, and the length of the weights."""
        scores = self.model.decision_function(self.X)
        if scores.ndim == 1:
            margin = np.where(self.y == 1, scores, -scores)
        else:
            own = scores[np.arange(self.n), self.y]
            scores[np.arange(self.n), self.y] = -np.inf
            margin = own - scores.max(axis=1)
        norm = math.hypot(np.linalg.norm(self.model.coef_), np.linalg.norm(self.model.intercept_))
        return margin, (self.X**2).sum(axis=1) + 1.0, norm


def limit(errors, rows, log_level, plus=1.0):
    """Clopper and Pearson's upper limit at a level given by its logarithm."""
    return float(stats.beta.isf(math.exp(log_level), errors + plus, rows - errors))


def ln_choose(n, k):
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


# Hold-out rows ----------------------------------------------------------------------------------------------


def line():
    X = np.random.default_rng(3).normal(size=(40, 1))
    rng = np.random.default_rng(4)
    Xh = rng.normal(size=(30, 1))
    held = (Xh, Xh[:, 0] + 0.7 * rng.normal(size=30))
    return Setting("holdout.betting", LinearRegression(), (X, X[:, 0]), holdout=held, clip=2.0)


def losses(at):
    Xh, yh = at.options["holdout"]
    return np.minimum(np.abs(yh - at.model.predict(Xh)), 2.0) / 2.0


def chernoff(at, *, one=1.0, once=1.0):
    Xh, yh = at.options["holdout"]
    p, m = float(np.mean((at.model.predict_proba(Xh)[:, 1] - yh) ** 2)), 150
    paid = once * math.log(one / at.delta) / m
    return brentq(lambda q: stats.entropy([p, 1 - p], [q, 1 - q]) - paid, p, 1 - 1e-12, xtol=1e-14)


def betting(at, *, most=0.98, two=2.0, half=0.5, quarter=0.25, one=1.0):
    rows = losses(at)[bets.of_rows(*at.options["holdout"])].tolist()
    return 2.0 * bets.bound(rows, at.delta, most=most, two=two, half=half, quarter=quarter, one=one)


def probabilities():
    X, y = two_classes(60, distance=1.0)
    return Setting(
        "holdout.kl", LogisticRegression(), (X, y), holdout=two_classes(150, distance=1.0, seed=5), scores=True
    )


def compared():
    X, y = two_classes(60, distance=1.0)
    Xh, yh = two_classes(90, distance=1.0, seed=5)
    model = LogisticRegression().fit(X, y)
    other = np.where(np.random.default_rng(6).random(90) < 0.5, 0, 1)
    return Setting("holdout.selection", model, (X, y), holdout=(Xh, yh), compared=[model.predict(Xh), other])


def selected(at, *, plus=1.0, models=2.0):
    return limit(at.params["errors"], at.params["rows"], math.log(at.delta / models), plus)


# Training rows: counts --------------------------------------------------------------------------------------


def tree():
    return Setting("occam", DecisionTreeClassifier(max_depth=2, random_state=0), load_breast_cancer(return_X_y=True))


def occam(at, *, plus=1.0, bits=1.0, share=1.0):
    model = at.model
    length = tree_bits(model.node_column_, model.node_threshold_, model.node_child_, at.X.shape[1], 2)
    return limit(at.params["errors"], at.n, math.log(share * at.delta) - bits * length * math.log(2), plus)


def ln_size(k, six, square):
    return math.log(six) - 2 * math.log(math.pi) - square * math.log(k + 1)


def ln_updates(counts, six, square):
    """Weight of the message: how many updates, on which rows."""
    (k, outputs), total = counts.shape, 0.0
    for updates in counts.sum(axis=0).tolist():
        ways = (updates - 1, k - 1) if outputs == 1 else (updates + k - 1, k - 1)
        total += ln_size(updates, six, square) - ln_choose(*ways)
    return total


def updates(at, *, plus=1.0, six=6.0, square=2.0, once=1.0, choose=1.0):
    kept = at.params["kept"]
    counts = np.asarray(at.claim.witness["counts"])
    level = math.log(once * at.delta) + ln_size(kept, six, square) - choose * ln_choose(at.n, kept)
    return limit(at.params["errors"], at.n - kept, level + ln_updates(counts, six, square), plus)


def kernel_updates(at, *, plus=1.0, six=6.0, square=2.0, choose=1.0, word=64.0):
    kept, counts = at.params["kept"], np.abs(at.model.dual_coef_.T).astype(int)
    level = math.log(at.delta) + ln_size(kept, six, square) - choose * ln_choose(at.n, kept)
    told = at.params["told"] * word * math.log(2)
    return limit(at.params["errors"], at.n - kept, level + ln_updates(counts, six, square) - told, plus)


def support_vectors(at, *, plus=1.0, six=6.0, square=2.0, choose=1.0, grid=41.0, half=1.5, word=64.0):
    kept, offset = at.params["kept"], at.params["offset"]
    level = math.log(at.delta) + ln_size(kept, six, square) - choose * ln_choose(at.n, kept)
    level -= 2 * math.log(grid) + math.log(half * (offset + 1) * (offset + 2)) + at.params["told"] * word * math.log(2)
    return limit(at.params["errors"], at.n - kept, level, plus)


def voted(at, *, plus=1.0, six=6.0, square=2.0, choose=1.0):
    kept = at.params["kept"]
    level = math.log(at.delta) + ln_size(kept, six, square) - choose * ln_choose(at.n, kept)
    return limit(at.params["errors"], at.n - kept, level, plus)


# Training rows: margins -------------------------------------------------------------------------------------


def ramp(at, *, two=2.0, three=3.0, grid=41.0, half=2.0, unit=1.0):
    margin, square, norm = at.margins()
    scale = at.params["scale"]
    mean = np.clip(unit - scale * margin / norm, 0, 1).mean()
    width = three * math.sqrt(math.log(grid / at.delta) / (half * at.n))
    return mean + two * scale * math.sqrt(square.sum()) / at.n + width


def several(at, *, four=4.0, three=3.0, grid=41.0, half=2.0, classes=3.0):
    margin, square, norm = at.margins()
    scale = at.params["scale"]
    mean = np.clip(1 - scale * margin / norm, 0, 1).mean()
    width = three * math.sqrt(math.log(grid / at.delta) / (half * at.n))
    return mean + four * scale * math.sqrt(classes * square.sum()) / at.n + width


def sparse(at, *, two=2.0, massart=2.0, both=2.0, three=3.0, grid=41.0, half=2.0):
    margin = at.margins()[0]
    scale, norm = at.params["scale"], np.abs(at.model.coef_).sum() + abs(at.model.intercept_[0])
    longest = math.sqrt(max((at.X**2).sum(axis=0).max(), at.n))
    columns = at.X.shape[1] + 1
    complexity = two * scale * longest * math.sqrt(massart * math.log(both * columns)) / at.n
    mean = np.clip(1 - scale * margin / norm, 0, 1).mean()
    return mean + complexity + three * math.sqrt(math.log(grid / at.delta) / (half * at.n))


def boosting(at, *, two=2.0, massart=2.0, rates=11.0, half=2.0, stumps=2.0):
    scores = at.model.decision_function(at.X)
    margin = np.where(at.y == 1, scores, -scores) / 2  # scores are from -2 to 2
    margin = np.clip(margin / np.abs(margin).max(), -1, 1) if np.abs(margin).max() > 1 else margin
    rho, growth = 2.0 ** at.params["exponent"], stumps + stumps * at.X.shape[1] * (at.n - 1)
    complexity = two / rho * math.sqrt(massart * math.log(growth) / at.n)
    width = math.sqrt(math.log(rates / at.delta) / (half * at.n))
    return np.clip(1 - margin / rho, 0, 1).mean() + complexity + width


def stability(at, *, two=2.0, twice=2.0, unit=1.0, widths=21.0, half=2.0, gap_two=2.0, gap_out=2.0):
    rho, gap = at.params["rho"], at.certificate.find("kernel-logistic.gap").value
    z = at.model.decision_function(at.X) * (2 * at.y - 1)
    change = two * at.model.C / rho
    width = math.sqrt(math.log(widths / at.delta) / (half * at.n))
    return (
        np.clip(1 - z / rho, 0, 1).mean()
        + change
        + (twice * at.n * change + unit) * width
        + gap_out * math.sqrt(gap_two * gap) / rho
    )


def ball(at, *, two=2.0, twice=2.0, unit=1.0, widths=41.0, half=2.0, gap_two=2.0, gap_out=2.0, column=1.0):
    rho, gap = at.params["rho"], at.certificate.find("linear-svm.gap").value
    z = at.model.decision_function(at.X) * (2 * at.y - 1)
    square = at.params["radius"] ** 2 + column * at.model.intercept_scaling**2
    change = two * at.model.C * square / rho
    width = math.sqrt(math.log(widths / at.delta) / (half * at.n))
    away = gap_out * math.sqrt(square * gap_two * gap) / rho
    return np.clip(1 - z / rho, 0, 1).mean() + change + (twice * at.n * change + unit) * width + away


def noise(at, *, factor=2.0, half=0.5, maurer=2.0, root=0.5):
    margin, square, norm = at.margins()
    mu, n = at.params["mu"], at.n
    p = float(stats.norm.sf(mu * margin / norm / np.sqrt(square)).mean())
    paid = (half * mu * mu + math.log(maurer * n**root / at.delta)) / n
    return factor * brentq(lambda q: stats.entropy([p, 1 - p], [q, 1 - q]) - paid, p, 1 - 1e-12, xtol=1e-14)


def left_out(at, *, quarter=0.25, eight=8.0, two=2.0, more=8.0, one=1.0):
    k, n = at.params["k"], at.n
    m = k // 2 + 1
    share = m / (k + 1)
    f = m * math.comb(k + 1, m) * share**m * (1 - share) ** (k + 1 - m)
    variance = (quarter + f * (one + (eight * k + two * m + more) / n)) / (n - 1)
    return at.params["errors"] / n + math.sqrt(variance / at.delta)


# Votes and folds --------------------------------------------------------------------------------------------


def forest():
    model = RandomForestClassifier(10, voting="hard", max_samples=0.2, random_state=3)
    return Setting("pac-bayes.vote", model, two_classes(1000, distance=1.5))


def out_of_bag(at, *, two=2.0, rates=8.0, share=2.0, once=1.0):
    assert at.params["form"] == "first"
    wrong, out = at.model.member_votes(at.X) != at.y[:, None], at.model.bags().T == 0
    n = 10 / np.sum(1 / out.sum(axis=0))
    rate = 2.0 ** at.params["rate"]
    mean = np.mean((wrong & out).sum(axis=0) / out.sum(axis=0))
    paid = np.log(rates * share / at.delta) / n
    return two * (once - np.exp(-rate * mean - paid)) / (once - np.exp(-rate))


FORMULAS = {
    "holdout.kl": (probabilities, chernoff),
    "holdout.betting": (line, betting),
    "holdout.selection": (compared, selected),
    "occam": (tree, occam),
    "margin.kernel": (lambda: Setting("margin.kernel", LogisticRegression(), two_classes()), ramp),
    "margin.multiclass": (lambda: Setting("margin.multiclass", LogisticRegression(), corners()), several),
    "margin.l1": (lambda: Setting("margin.l1", LinearSVC(penalty="l1", C=0.01), two_classes()), sparse),
    "margin.boosting": (
        lambda: Setting("margin.boosting", AdaBoostClassifier(n_estimators=3), two_classes(6000)),
        boosting,
    ),
    "compression.perceptron": (
        lambda: Setting("compression.perceptron", Perceptron(random_state=0), two_classes(600, distance=3.5)),
        updates,
    ),
    "compression.support-vectors": (
        lambda: Setting("compression.support-vectors", SVC(kernel="rbf"), two_classes(600)),
        support_vectors,
    ),
    "compression.kernel-perceptron": (
        lambda: Setting(
            "compression.kernel-perceptron", KernelPerceptron(random_state=0), two_classes(600, distance=3.5)
        ),
        kernel_updates,
    ),
    "compression.voted-perceptron": (
        lambda: Setting("compression.voted-perceptron", VotedPerceptron(random_state=0), two_classes(600)),
        voted,
    ),
    "stability.uniform": (
        lambda: loosened(
            Setting(
                "stability.uniform",
                KernelLogisticRegression(C=4e-4, gamma=0.5, fit_intercept=False),
                sided(),
                delta=0.3,
            ),
            stability,
        ),
        stability,
    ),
    "stability.ball": (
        lambda: loosened(
            Setting(
                "stability.ball", LinearSVC(loss="hinge", C=1e-4, intercept_scaling=0.2), corners_of_two(), radius=1.5
            ),
            ball,
        ),
        ball,
    ),
    "pac-bayes.linear": (lambda: Setting("pac-bayes.linear", LogisticRegression(), two_classes()), noise),
    "pac-bayes.vote": (forest, out_of_bag),
    "knn.loo": (lambda: Setting("knn.loo", KNeighborsClassifier(n_neighbors=5), two_classes(400), delta=0.3), left_out),
}


@cache
def setting(name):
    return FORMULAS[name][0]()


def constants():
    for claimed, (_, formula) in FORMULAS.items():
        for name, parameter in inspect.signature(formula).parameters.items():
            if parameter.kind is parameter.KEYWORD_ONLY:
                yield claimed, name, parameter.default


@pytest.mark.parametrize("name", FORMULAS)
def test_the_formula_gives_the_published_value(name):
    at, formula = setting(name), FORMULAS[name][1]
    assert formula(at) == pytest.approx(at.claim.value, abs=1e-6)
    assert at.claim.value < 1
    assert at.holds(at.claim.value)


@pytest.mark.parametrize(("claimed", "name", "value"), list(constants()), ids=str)
def test_a_constant_off_by_ten_percent_is_noticed(claimed, name, value):
    at, formula = setting(claimed), FORMULAS[claimed][1]
    right = formula(at)
    moved = [formula(at, **{name: value * factor}) for factor in (0.9, 1.1)]
    assert any(abs(one - right) > 1e-5 for one in moved), "the constant plays no part here"
    for wrong in moved:
        if abs(wrong - right) > 1e-5:
            assert at.holds(min(1.0, wrong)) == (wrong > right)


# Tails of counts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_share_of_each_fold_is_noticed(factor):
    at = Setting(
        "cross-validation.mean",
        CrossValidated(LogisticRegression(), folds=4, random_state=0),
        two_classes(200, distance=1.0),
    )
    fold, levels = at.model.fold_, math.log(at.delta / (4 * factor))
    errors = [
        int(np.sum(one.predict(at.X[fold == k]) != at.y[fold == k])) for k, one in enumerate(at.model.fold_models_)
    ]
    limits = np.array([limit(e, int(np.sum(fold == k)), levels) for k, e in enumerate(errors)])
    witness = dict(at.claim.witness) | {"limits": limits}
    assert at.holds(limits.mean() + 1e-9, witness=witness) == (factor > 1)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_delta_of_a_paired_comparison_is_noticed(factor):
    case = holdout.CASES["holdout.paired"](0)
    (Xh, yh), other = case.holdout, case.claim.witness["predictions"]
    right = (Xh @ case.model.coef_[0] + 0.1 > 0) == (yh == 1)
    moved = 0.5 + 0.5 * (~right & (other == yh)) - 0.5 * (right & (other != yh))
    order = bets.of_rows(Xh, [str(label) for label in yh.tolist()])
    most = 2 * bets.bound(moved[order], float(case.claim.delta) / factor) - 1 + 1e-9
    stated = {"value": abs(most), "direction": "lower" if most < 0 else "upper"}
    assert case.with_claim(**stated).verify().holds == (factor > 1)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_tail_of_a_sign_test_is_noticed(factor):
    case = holdout.CASES["holdout.paired-better"](0)
    alone, other_alone = (case.claim.params[name] for name in ("alone", "other_alone"))
    tail = float(stats.binom.cdf(alone, alone + other_alone, case.claim.value))
    assert case.with_claim(delta=f"{tail * factor:.12f}").verify().holds == (factor > 1)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_tail_of_a_coverage_is_noticed(factor):
    case = holdout.CASES["conformal.coverage"](1)
    j = next(j for j in range(1, 41) if stats.binom.sf(j - 1, 40, 0.7) <= holdout.DELTA)
    tail = float(stats.binom.sf(j - 1, 40, 0.7))
    assert case.with_claim(delta=f"{tail * factor:.12f}").verify().holds == (factor > 1)


def test_every_statement_about_new_data_has_its_constants_tried():
    discrete = {
        "holdout.paired",
        "holdout.paired-better",
        "holdout.baseline-better",
        "cross-validation.mean",
        "cross-validation.mean-loss",
        "conformal.coverage",
        "holdout.baseline",
        "cross-validation.baseline",
        "cross-validation.median",
    }
    discrete |= {"holdout.f1", "holdout.balanced", "holdout.median", "holdout.groups", "holdout.groups-baseline"}
    # tails of counts: below; holdout.baseline has the limits of holdout.paired and holdout.paired-better;
    # holdout.median and holdout.groups:
    # tests/learning/test_paired_and_groups.py; cross-validation.mean-loss and cross-validation.baseline:
    # tests/learning/test_folds.py; holdout.f1, holdout.balanced:
    # tests/learning/test_by_class.py
    stated = {name for code, name in codes().items() if code[0] in "DP" and not definition(name).fact}
    assert stated - ELSEWHERE - discrete - set(FORMULAS) == set(), "add a formula with its constants"
