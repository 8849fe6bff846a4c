"""Attacks on the families of Bayes, committees, costs, hidden states and radii: each was once accepted."""

from dataclasses import replace

import numpy as np
import pytest

import assay
from assay import persist
from assay.checker.family import read_model
from assay.checker.numerics import largest
from assay.checker.rules.members import VOTE, Reading
from assay.ensemble import VotingClassifier
from assay.ensemble._combined import probability_link
from assay.hmm import CategoricalHMM
from assay.imbalance import CostClassifier
from assay.linear_model import LogisticRegression
from assay.naive_bayes import CategoricalNB, GaussianNB
from assay.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from assay.svm import SVC

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
Y = (X[:, 0] + 0.5 * RNG.normal(size=120) > 0).astype(int)


def test_levels_of_categorical_naive_bayes_are_their_own_places():
    levels = RNG.integers(0, 2, (60, 2)).astype(float)
    model = CategoricalNB().fit(levels, levels[:, 0].astype(int))
    arrays = dict(model.stored().arrays)
    arrays |= {
        "n_levels_": np.array([3, 2]),
        "level_values_": np.array([-1.0, 0.0, 1.0, 0.0, 1.0]),
        "level_counts_": np.hstack([np.zeros((2, 1)), arrays["level_counts_"]]),
    }
    with pytest.raises(ValueError, match="its own place"):
        persist.built(replace(model.stored(), arrays=arrays))


def test_probabilities_with_numbers_of_their_own_have_no_link():
    assert probability_link(SVC(probability=True, random_state=0).fit(X, Y)) == -1
    assert probability_link(LogisticRegression().fit(X, Y)) >= 0
    assert probability_link(KNeighborsClassifier(3).fit(X, Y)) >= 0


def test_a_tied_member_votes_as_it_predicts():
    model = KNeighborsClassifier(2).fit([[0.0], [2.0], [9.0]], [0, 1, 1])
    votes, unsure = Reading(read_model(model.stored()), VOTE, 2).values(np.array([[1.0]]))
    assert not unsure.any()
    assert votes[0].argmax() == model.predict([[1.0]])[0] == 0


def test_no_number_is_larger_than_what_is_none():
    assert np.isnan(largest(0.0, np.nan))
    assert np.isnan(largest(np.nan, 1.0))
    assert largest(0.0, 2.0, 1.0) == 2.0


def test_means_that_overflow_hide_no_false_ones():
    model = GaussianNB().fit(X, Y)
    certificate = model.certify(X, Y)
    stored = model.stored()
    arrays = {name: np.array(value) for name, value in stored.arrays.items()}
    arrays["theta_"][:, 0], arrays["theta_"][:, 1], arrays["var_"][:, 1] = 77.0, 1e150, 1e-150
    forged = replace(stored, arrays=arrays)
    claims = tuple(replace(one, value=0.0) if one.name == "gaussian-nb.mle" else one for one in certificate.claims)
    told = replace(certificate, model=replace(certificate.model, digest=forged.digest()), claims=claims)
    report = assay.verify(told, persist.built(forged), X, Y)
    assert {one.claim: one.status for one in report.verdicts}["gaussian-nb.mle"] != "PROVED"


def test_a_fixed_point_of_no_part_is_no_claim():
    letters = RNG.integers(0, 3, (200, 1))
    model = CategoricalHMM(2, random_state=0).fit(letters)
    certificate = model.certify(letters)
    assert assay.verify(certificate, model, letters).holds
    for name in ("hmm.stationary", "hmm.monotone"):
        claims = tuple(
            replace(one, params={**one.params, "parts": ""}) if one.name == name else one for one in certificate.claims
        )
        if any(one.name == name for one in claims):
            assert not assay.verify(replace(certificate, claims=claims), model, letters).holds


def test_a_distance_with_parameters_is_not_certified():
    model = RadiusNeighborsClassifier(0.5, metric="chebyshev", metric_params={"w": [0.0, 1.0]}).fit(X, Y)
    with pytest.raises(ValueError, match="certificates are about"):
        model.certify(X, Y)


@pytest.mark.parametrize(
    "model",
    [
        VotingClassifier([("a", LogisticRegression()), ("b", GaussianNB())], rule="majority", reject_label=7),
        CostClassifier(LogisticRegression(), reject=0.2, reject_label=7),
        RadiusNeighborsClassifier(0.5, outlier_label=7),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_label_for_rejected_rows_is_checked_on_load(model):
    stored = model.fit(X, Y).stored()
    name = "outlier_label" if hasattr(model, "outlier_label") else "reject_label"
    wrong = "another kind" if name == "outlier_label" else 1
    with pytest.raises((ValueError, TypeError)):
        persist.built(replace(stored, parameters={**stored.parameters, name: wrong}))


def test_the_rows_of_a_chosen_threshold_follow_from_the_seed():
    noise = RNG.integers(0, 2, 120)
    model = CostClassifier(LogisticRegression(), [[0, 1], [1, 0]], choose="holdout", random_state=0).fit(X, noise)
    certificate = model.certify(X, noise)
    right = np.flatnonzero(model.predict(X) == noise)
    for one in certificate.claims:
        assert "held" not in one.witness
        forged = replace(one, witness={"held": right})
        claims = tuple(forged if other is one else other for other in certificate.claims)
        assert not assay.verify(replace(certificate, claims=claims), model, X, noise).holds
