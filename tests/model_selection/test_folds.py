"""Models of the folds: what the checker accepts, what it refuses, and that the bound keeps its promise."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta, binom
from sklearn.utils.estimator_checks import parametrize_with_checks

import assay
from assay.checker.identity import drawn_folds
from assay.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from assay.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from assay.guarantees.evidence import Decided
from assay.linear_model import LogisticRegression, Ridge
from assay.model_selection import CrossValidated
from assay.svm import SVC
from assay.tree import DecisionTreeClassifier
from tests.certificate import exact_counts, forge, truths
from tests.certificate.attacks import assault, tables
from tests.certificate.test_validity import ACCEPTED, DELTAS, gaussian_risk, gaussians, noise, tally
from tests.evidence import evidence


@parametrize_with_checks([CrossValidated(LinearDiscriminantAnalysis(), folds=2, random_state=0)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def fitted(seed=0, n=300, learner=None, folds=3):
    X, y = gaussians(np.random.default_rng(seed), n, d=3)
    return CrossValidated(learner or LogisticRegression(), folds, random_state=0).fit(X, y), X, y


@pytest.mark.mission("CON-35")
def test_models_are_those_of_the_other_folds_and_the_bound_is_the_mean_of_their_limits():
    model, X, y = fitted()
    assert np.bincount(model.fold_).tolist() == [100, 100, 100]
    limits = []
    for k in range(3):
        alone = LogisticRegression().fit(X[model.fold_ != k], y[model.fold_ != k])
        assert np.array_equal(alone.coef_, model.fold_models_[k].coef_)
        wrong = int(np.sum(alone.predict(X[model.fold_ == k]) != y[model.fold_ == k]))
        assert model.fold_errors_[k] == wrong / 100
        limits.append(beta.ppf(1 - 0.05 / 3, wrong + 1, 100 - wrong))
    certificate = model.certify(X, y)
    assert certificate.find("cross-validation.mean").value == pytest.approx(np.mean(limits), abs=1e-8)
    assert certificate.tightest is certificate.find("cross-validation.mean")
    assert assay.verify(certificate, model, X, y).holds


def test_the_vote():
    model, X, _ = fitted()
    votes = np.array([one.predict(X) for one in model.fold_models_])
    assert np.array_equal(model.predict(X), (votes.sum(axis=0) >= 2).astype(int))
    assert np.allclose(model.predict_proba(X)[:, 1], votes.mean(axis=0))
    y = model.predict(X)
    assert model.mean_error(X, y) == pytest.approx(np.mean(votes != y))


@pytest.mark.parametrize(
    "learner",
    [
        LinearDiscriminantAnalysis(),
        QuadraticDiscriminantAnalysis(),
        DecisionTreeClassifier(max_depth=3),
        RandomForestClassifier(n_estimators=4, random_state=0),
        HistGradientBoostingClassifier(max_iter=3),
        SVC(gamma=0.5),
    ],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize("folds", [2, 3])
def test_every_family_verifies(learner, folds):
    model, X, y = fitted(learner=learner, folds=folds)
    held = gaussians(np.random.default_rng(9), 60, d=3)
    certificate = model.certify(X, y, holdout=held)
    report = assay.verify(certificate, model, X, y, holdout=held)
    assert report.holds, report.reason
    wrong = int(np.sum(model.predict(held[0]) != held[1]))
    assert certificate.find("holdout.binomial").params["errors"] >= wrong  # a tie of two votes is an error


def forged(model, X, y, certificate, **changes):
    claims = [replace(one, **changes) if one.name == "cross-validation.mean" else one for one in certificate.claims]
    return assay.verify(replace(certificate, claims=tuple(claims)), model, X, y)


def test_forgeries_are_refused():
    model, X, y = fitted()
    certificate = model.certify(X, y)
    claim = certificate.find("cross-validation.mean")
    limits = claim.witness["limits"]
    assert forged(model, X, y, certificate).holds
    assert not forged(model, X, y, certificate, value=claim.value - 1e-7).holds
    assert not forged(model, X, y, certificate, delta="0.01").holds
    assert not forged(model, X, y, certificate, params=claim.params | {"folds": 2}).holds
    lower = limits - 1e-7
    assert "lies above" in forged(model, X, y, certificate, witness={"limits": lower}).reason
    pooled = beta.ppf(0.95, model.fold_errors_.sum() * 100 + 1, 300 - model.fold_errors_.sum() * 100)
    wrong = np.full(3, pooled)  # one binomial count of all rows
    assert not forged(model, X, y, certificate, value=float(pooled), witness={"limits": wrong}).holds
    assert not forged(model, X, y, certificate, witness={"fold": model.fold_, "limits": limits}).holds
    assert not forged(model, X, y, certificate, witness={"limits": limits * np.nan}).holds
    for seed in (-1, 0.5, None, 2**60):
        assert not forged(model, X, y, certificate, params=claim.params | {"seed": seed}).holds


def test_another_model_or_another_order_of_models_is_refused():
    model, X, y = fitted()
    certificate = model.certify(X, y)
    own = model.stored()
    assert assay.verify(certificate, own, X, y).holds
    turned = replace(own, members=own.members[::-1])
    assert "not the model" in assay.verify(certificate, turned, X, y).reason
    assert not assay.verify(certificate, model.fold_models_[0], X, y).holds
    nested = replace(own, members=(own, own))
    regressors = replace(own, members=(Ridge().fit(X, y).stored(),) * 3)
    narrow = replace(own, members=(*own.members[:2], LogisticRegression().fit(X[:, :1], y).stored()))
    for members, word in (
        (replace(own, members=own.members[:1]), "two or more"),
        (replace(own, members=()), "members"),
        (nested, "none of them folds again"),
        (regressors, "same classes and columns"),
        (narrow, "same classes and columns"),
    ):
        sealed = replace(certificate, model=forge.model_reference(members))
        assert word in assay.verify(sealed, members, X, y).reason


def test_nobody_deals_rows_to_the_models_that_get_them_right():
    """Folds are those of the seed; the checker draws them by itself."""
    model, X, y = fitted()
    assert np.array_equal(model.fold_, drawn_folds(len(y), 3, model.seed_))
    certificate = model.certify(X, y)
    right = np.array([one.predict(X) == y for one in model.fold_models_])
    dealt = {"fold": right.argmax(axis=0).astype(np.int32), "limits": np.full(3, 0.05)}
    assert not forged(model, X, y, certificate, witness=dealt, value=0.05).holds


def lines(rng):
    X, y = gaussians(rng, 90)
    model = CrossValidated(LinearDiscriminantAnalysis(n_jobs=1), 2, random_state=int(rng.integers(2**31))).fit(X, y)
    truth = np.mean([gaussian_risk(one) for one in model.fold_models_])

    def judge(delta):
        value = model.certify(X, y, delta=delta).find("cross-validation.mean").value
        return value < truth, value < 0.5

    return judge


def coins(rng):
    X, y = noise(rng, 60, d=3)
    model = CrossValidated(LinearDiscriminantAnalysis(n_jobs=1), 3, random_state=int(rng.integers(2**31))).fit(X, y)
    return lambda delta: (model.certify(X, y, delta=delta).find("cross-validation.mean").value < 0.5, True)


@DELTAS
@pytest.mark.parametrize("run", [lines, coins], ids=lambda run: run.__name__)
def test_the_bound_keeps_its_promise(run, delta):
    violations, informative = tally(run, seed=500)[delta]
    assert violations <= ACCEPTED[delta]
    assert informative >= 0.5


def test_training_rows_as_folds_are_caught():
    """The control: models fitted to all rows, tested on folds of those same rows."""
    caught = 0
    for seed in range(40):
        X, y = noise(np.random.default_rng([8, seed]), 60, d=25)
        model = CrossValidated(LinearDiscriminantAnalysis(n_jobs=1), 3, random_state=seed).fit(X, y)
        model.fold_models_ = [LinearDiscriminantAnalysis(n_jobs=1).fit(X, y)] * 3
        caught += model.certify(X, y).find("cross-validation.mean").value < 0.5
    assert caught > binom.isf(1e-6, 40, 0.05)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"estimator": Ridge()}, "classifier of Assay"),
        ({"folds": 1}, "folds must be"),
        ({"folds": 99}, "at least 99 rows"),
    ],
)
def test_refusals(options, word):
    X, y = gaussians(np.random.default_rng(0), 30)
    with pytest.raises(ValueError, match=word):
        CrossValidated(**{"estimator": LogisticRegression(), **options}).fit(X, y)


@pytest.mark.parametrize("label", [-3, 7])
def test_a_model_that_has_not_seen_a_class_is_wrong_on_its_rows(label):
    X, y = gaussians(np.random.default_rng(0), 300)
    y = y.astype(int)
    y[:2] = label
    rare = np.array([0, 1])
    model = next(
        one
        for seed in range(50)
        if len(set((one := CrossValidated(LogisticRegression(), 3, random_state=seed).fit(X, y)).fold_[rare])) == 1
    )
    blind = int(model.fold_[0])
    assert label not in model.fold_models_[blind].classes_
    limits = []
    for k, one in enumerate(model.fold_models_):
        mine = model.fold_ == k
        wrong = int(np.sum(one.predict(X[mine]) != y[mine]))
        assert wrong >= 2 * (k == blind)
        limits.append(beta.ppf(1 - 0.05 / 3, wrong + 1, 100 - wrong))
    assert model.certify(X, y).find("cross-validation.mean").value == pytest.approx(np.mean(limits), abs=1e-8)
    votes = np.array([one.predict(X) for one in model.fold_models_])
    most = [max(model.classes_, key=lambda c: (np.sum(votes[:, i] == c), -c)) for i in range(len(X))]
    assert np.array_equal(model.predict(X), most)
    rows = model._known_rows(X, y)
    assert np.sum(model.predict(X) != y) <= evidence(model, rows, Decided).count_errors(rows)[1]  # ties are errors


def test_one_class_outside_a_fold_is_refused():
    X = np.arange(6.0)[:, None]
    with pytest.raises(ValueError, match=r"outside fold \d there is only one class, 0"):
        CrossValidated(LogisticRegression(), 6).fit(X, [0, 0, 0, 0, 0, 1])


def test_shares_of_delta_in_the_ledger():
    model, X, y = fitted()
    assert Fraction(model.certify(X, y, delta=0.1).find("cross-validation.mean").delta) == Fraction("0.1")


def test_saved_models_of_folds_are_loaded_and_verified(tmp_path):
    model, X, y = fitted()
    assay.save(model, tmp_path / "folds.assay", model.certify(X, y))
    loaded, certificate = assay.load(tmp_path / "folds.assay")
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert assay.verify(certificate, loaded, X, y).holds


# Attacks ----------------------------------------------------------------------------------------------------


def folds_case(seed):
    """Three lines, each counted on its own fold of the training rows."""
    rng = np.random.default_rng([seed, 51])
    X = rng.standard_normal((60, 2))
    members = [forge.model(rng.standard_normal((1, 2)) + np.array([3.0, 0.0]), 0.1, [0, 1]) for _ in range(3)]
    y = np.where(rng.random(60) < 0.1, X[:, 0] < 0, X[:, 0] > 0).astype(int)
    fold = drawn_folds(60, 3, seed)
    limits = []
    for k, one in enumerate(members):
        wrong = int(np.sum((X[fold == k] @ one.coef_[0] + 0.1 > 0) != y[fold == k]))
        limits.append(min(1.0, float(beta.ppf(1 - 0.04 / 3, wrong + 1, 20 - wrong)) + 1e-9) if wrong < 20 else 1.0)
    together = forge.Forged(family="folds", members=tuple(members), classes_=np.array([0, 1]))
    value, params = float(np.mean(limits)) * (1 + 1e-12), {"folds": 3, "rows": 60, "seed": seed}
    stated = forge.claim(
        "cross-validation.mean", value, delta="0.04", params=params, witness={"limits": np.array(limits)}
    )
    return forge.Case((stated,), together, X, y).seal()


def folds_truth(case):
    if case.claim.name != "cross-validation.mean":
        return case.claim.name == "data.identity" and truths.truth(case)
    params, members = case.claim.params, case.model.members
    limits = [Fraction(float(v)) for v in case.claim.witness["limits"]]
    if (params["folds"], params["rows"]) != (len(members), len(case.X)) or case.claim.direction != "upper":
        return False
    share, fold = Fraction(case.claim.delta) / len(members), drawn_folds(60, len(members), params["seed"])
    for k, (one, limit) in enumerate(zip(members, limits)):
        mine = fold == k
        alone = replace(case, model=one)
        wrong = exact_counts.wrong_rows(alone, case.X[mine], case.y[mine])
        if limit < 1 and not (limit > 0 and exact_counts.binomial_at_most(wrong, int(mine.sum()), limit) <= share):
            return False
    return Fraction(case.claim.value) >= sum(limits) / len(members)


def changed(model, rng):
    """Return another model: members in another order, one of them moved or turned, or the classes exchanged."""
    members, at = list(model.members), rng.integers(3)
    which = rng.integers(4)
    if which == 0:
        members = [members[k] for k in rng.permutation(3)]
    elif which == 1:
        members[at] = members[at].but(coef_=members[at].coef_ + rng.choice([1e-12, 0.5, -3.0]))
    elif which == 2:
        members[at] = members[at].but(coef_=-members[at].coef_)
    else:
        members = [one.but(classes_=one.classes_[::-1]) for one in members]
        return model.but(members=tuple(members), classes_=model.classes_[::-1])
    return model.but(members=tuple(members))


TABLES = tables(changed)


def test_honest_folds_are_true_and_accepted():
    for seed in range(8):
        case = folds_case(seed)
        assert folds_truth(case)
        assert case.verify().holds, case.verify().reason
        assert not case.with_claim(value=case.claim.value - 1e-7).verify().holds


def test_no_false_mutant_is_accepted():
    assert sum(assault(folds_case, folds_truth, 40, seed=0, tables=TABLES).values()) > 0


@pytest.mark.long
def test_no_false_mutant_among_two_hundred_per_operator():
    assault(folds_case, folds_truth, 200, seed=1, tables=TABLES)
