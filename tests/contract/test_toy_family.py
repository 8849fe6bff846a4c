"""A family of models is a plug-in: this one lives in the tests alone, and no other file knows of it."""

from dataclasses import replace

import numpy as np
import pytest

import assay
from assay import registry
from assay.claims.claim import Claim
from assay.claims.directory import definition
from assay.claims.document import from_json, to_json
from tests.contract.toy_family import NearestMean

RNG = np.random.default_rng(5)
Y = RNG.integers(0, 3, 400)
X = RNG.normal(size=(400, 4)) + 2.0 * np.eye(3, 4)[Y]
TRAIN, HELD = slice(0, 250), slice(250, 400)
NAMES = np.array(["red", "green", "blue"])


@pytest.fixture(scope="module")
def fitted():
    model = NearestMean().fit(X[TRAIN], NAMES[Y[TRAIN]])
    certificate = model.certify(X[TRAIN], NAMES[Y[TRAIN]], holdout=(X[HELD], NAMES[Y[HELD]]))
    return model, certificate


def check(certificate, model):
    return assay.verify(certificate, model, X[TRAIN], NAMES[Y[TRAIN]], holdout=(X[HELD], NAMES[Y[HELD]]))


def test_it_fits_certifies_and_verifies(fitted):
    model, certificate = fitted
    report = check(certificate, model)
    assert report.holds, report.reason
    nearest = ((X[HELD][:, None] - model.means_) ** 2).sum(axis=2).argmin(axis=1)
    assert np.array_equal(model.predict(X[HELD]), model.classes_[nearest])
    assert certificate["toy.means"].statement.startswith("Each class's mean is that of its rows")
    assert certificate["holdout.binomial"].value < 0.5
    assert definition("toy.means").rule.__name__ == "ClassMeans"


def test_it_is_saved_and_loaded(fitted, tmp_path):
    model, certificate = fitted
    registry.register(NearestMean)
    try:
        assay.save(model, tmp_path / "toy.assay", certificate)
        again, told = assay.load(tmp_path / "toy.assay")
    finally:
        registry.forget(NearestMean)
    assert np.array_equal(again.predict(X), model.predict(X))
    assert check(told, again).holds
    assert to_json(from_json(to_json(certificate))) == to_json(certificate)


@pytest.mark.parametrize("shift", [1e-6, -3.0, 1e9])
def test_other_means_are_refused(fitted, shift):
    model, certificate = fitted
    forged = NearestMean().fit(X[TRAIN], NAMES[Y[TRAIN]])
    forged.means_ = model.means_ + shift * np.eye(3, 4)
    assert "fingerprint" in check(certificate, forged).reason
    resealed = replace(certificate, model=replace(certificate.model, digest=forged.stored().digest()))
    assert "toy.means" in check(resealed, forged).reason


NO_MEANS = [np.zeros((2, 4)), np.zeros((3, 0)), np.zeros(12), np.full((3, 4), np.nan), np.zeros((3, 4), dtype=np.int8)]


@pytest.mark.parametrize("means", NO_MEANS)
def test_arrays_that_are_no_means_are_refused(fitted, means):
    certificate = fitted[1]
    forged = NearestMean().fit(X[TRAIN], NAMES[Y[TRAIN]])
    forged.means_ = means
    assert not check(certificate, forged).holds


def test_claims_of_other_families_and_false_values_are_refused(fitted):
    model, certificate = fitted
    foreign = replace(
        certificate, claims=(*certificate.claims, Claim("tree.facts", 3.0, params={"leaves": 3, "depth": 1}))
    )
    assert "unknown claim" in check(foreign, model).reason
    tighter = tuple(replace(one, value=1e-300) if one.name == "toy.means" else one for one in certificate.claims)
    assert not check(replace(certificate, claims=tighter), model).holds
    renamed = replace(certificate, model=replace(certificate.model, family="linear.classifier"))
    assert not check(renamed, model).holds


def test_a_name_that_the_package_has_cannot_be_taken():
    from assay.checker.family import Family, register

    with pytest.raises(ValueError, match="new one"):
        register(Family("linear", {}))
