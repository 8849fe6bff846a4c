"""A classifier's error bounded through its disagreement with a certified one: promise, recount, forgeries."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import assay
from assay.linear_model import LogisticRegression
from assay.neighbors import KNeighborsClassifier
from assay.semi_supervised import VouchedClassifier, labelled_rows
from assay.semi_supervised._self_training import kept_rows
from assay.theory.concentration import clopper_pearson_upper
from assay.tree import DecisionTreeClassifier
from bench.claims import largest_accepted
from bench.worlds.vouched import bound, fitted, own_rows, risk


def world(seed=0, n=1500, labels=500, classes=2):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    X = rng.normal(size=(n, 2)) + 2.5 * np.column_stack([y == 1, y == 2])
    return X, y, np.where(np.arange(n) < labels, y, -1)


def changed(certificate, **new):
    """Return the certificate with other parameters, or another value, of its claim teacher.disagreement."""
    claim = certificate.find("teacher.disagreement")
    value = new.pop("value", claim.value)
    other = replace(claim, value=value, params={**claim.params, **new})
    return replace(certificate, claims=tuple(other if one is claim else one for one in certificate.claims))


@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_the_promise_is_kept_where_the_risk_is_known(delta):
    rng = np.random.default_rng(int(100 * delta))
    broken, loose = 0, []
    for _ in range(60):
        model, X, y = fitted(rng)
        limit = bound(model, X, y, delta)
        broken += limit < risk(model.estimator_)
        loose.append(limit)
    assert broken <= largest_accepted(60, delta)
    assert np.mean(np.array(loose) < 0.6) > 0.8


def test_a_teacher_that_saw_its_judges_is_caught():
    rng = np.random.default_rng(1)
    outcomes = [own_rows(rng, 0.05)[0] for _ in range(40)]
    assert sum(outcomes) > binom.isf(1e-6, 40, 0.05)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "student",
    [None, DecisionTreeClassifier(max_depth=4), KNeighborsClassifier(5)],
    ids=["linear", "tree", "neighbours"],
)
def test_the_numbers_are_those_of_a_recount(classes, student):
    X, _y, marked = world(classes=classes)
    model = VouchedClassifier(student, LogisticRegression(), random_state=0).fit(X, marked)
    claim = model.certify(X, marked).find("teacher.disagreement")
    own, labels = labelled_rows(X, marked)
    kept = kept_rows(model.split_)
    errors = int(np.sum(model.teacher_.predict(own[kept]) != labels[kept]))
    differ = int(np.sum(model.predict(model.unlabelled_) != model.teacher_.predict(model.unlabelled_)))
    assert claim.params["errors"] == errors
    assert differ <= claim.params["differ"] <= differ + (len(model.unlabelled_) if student is not None else 0)
    half = float(claim.delta) / 2
    limit = clopper_pearson_upper(errors, len(kept), half)
    limit += clopper_pearson_upper(claim.params["differ"], len(model.unlabelled_), half)
    assert claim.value == pytest.approx(limit, abs=1e-6)
    report = assay.verify(model.certify(X, marked), model, own, labels)
    assert report.holds, report.reason


def test_the_splits_keep_rows_apart():
    X, _y, marked = world()
    model = VouchedClassifier(KNeighborsClassifier(1), KNeighborsClassifier(1), keep=0.3, random_state=4).fit(X, marked)
    assert len(model.unlabelled_) == 300
    kept = kept_rows(model.split_)
    assert len(kept) == 150
    seen = {tuple(row) for row in model.teacher_.fit_X_}
    assert not seen & {tuple(row) for row in X[:500][kept]}
    assert not {tuple(row) for row in model.estimator_.fit_X_} & {tuple(row) for row in model.unlabelled_}
    assert {tuple(row) for row in X[:500]} <= {tuple(row) for row in model.estimator_.fit_X_}


def test_forged_numbers_are_rejected():
    X, _y, marked = world()
    model = VouchedClassifier(random_state=0).fit(X, marked)
    own = labelled_rows(X, marked)
    certificate = model.certify(X, marked)
    claim = certificate.find("teacher.disagreement")
    assert assay.verify(certificate, model, *own).holds
    errors, differ = claim.params["errors"], claim.params["differ"]
    whole = clopper_pearson_upper(errors, claim.params["kept"], float(claim.delta))  # at delta, not half of it
    lower = clopper_pearson_upper(errors - 1, claim.params["kept"], float(claim.delta) / 2)
    forged = [
        {"value": claim.value - 1e-3},
        {"errors": errors - 1},
        {"errors": errors - 1, "teacher": lower, "value": lower + claim.params["difference"] + 1e-9},
        {"teacher": claim.params["teacher"] / 2, "value": claim.value / 2 + claim.params["difference"]},
        {"difference": claim.params["difference"] / 2},
        {"teacher": whole, "value": whole + claim.params["difference"] + 1e-9},
        {"teacher": 0.999 * claim.params["teacher"], "value": claim.value},
        {"difference": 0.999 * claim.params["difference"], "value": claim.value},
        {"differ": -1},
        {"differ": differ + 10_000},
        {"kept": claim.params["kept"] + 1},
        {"unlabelled": claim.params["unlabelled"] - 1},
        {"rows": claim.params["rows"] - 1},
        {"note": 1},
    ]
    for change in forged:
        assert not assay.verify(changed(certificate, **change), model, *own).holds, change
    claims = tuple(replace(one, delta="0.5") if one is claim else one for one in certificate.claims)
    cheap = replace(certificate, claims=claims)
    assert not assay.verify(cheap, model, *own).holds


def test_a_model_with_other_rows_or_another_split_is_rejected():
    X, _y, marked = world()
    own = labelled_rows(X, marked)
    model = VouchedClassifier(random_state=0).fit(X, marked)
    certificate = model.certify(X, marked)
    for name, value in (
        ("split_", model.split_ + np.array([1, 0, 0])),
        ("unlabelled_", model.unlabelled_[:-1]),
        ("teacher_", LogisticRegression().fit(*own)),
    ):
        kept = getattr(model, name)
        setattr(model, name, value)
        assert not assay.verify(certificate, model, *own).holds, name
        setattr(model, name, kept)
    assert assay.verify(certificate, model, *own).holds
    other = own[0].copy()
    other[3, 0] += 1e-9
    assert not assay.verify(certificate, model, other, own[1]).holds


def test_rows_that_are_missing_are_told():
    X, y, _marked = world()
    model = VouchedClassifier(random_state=0).fit(X[:500], y[:500])
    gap = next(one for one in model.certify(X[:500], y[:500]).not_applicable if one.name == "teacher.disagreement")
    assert "without labels" in gap.reason
    with pytest.raises(ValueError, match="every class needs a row"):
        VouchedClassifier(keep=0.9).fit(X[:40], np.where(np.arange(40) < 2, [0, 1] * 20, -1))


def test_a_stored_model_proves_the_same(tmp_path):
    X, _y, marked = world()
    model = VouchedClassifier(DecisionTreeClassifier(max_depth=3), random_state=0).fit(X, marked)
    certificate = model.certify(X, marked)
    assay.save(model, tmp_path / "m.assay", certificate=certificate)
    saved = assay.load(tmp_path / "m.assay")
    assert assay.verify(saved.certificate, saved.model, *labelled_rows(X, marked)).holds
    assert Fraction(saved.model.certify(X, marked).find("teacher.disagreement").value) == Fraction(
        certificate.find("teacher.disagreement").value
    )
