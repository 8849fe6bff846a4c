"""A certificate is about models of one family: it cannot be read as one of another, nor carry another's claims."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.base import is_regressor

import assay
from assay.checker.family import NUMBERS, WHOLE, find
from assay.claims.model import StoredModel
from assay.cluster import KMeans
from assay.decomposition import PCA, KernelPCA
from assay.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from assay.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from assay.kernel_model import KernelPerceptron
from assay.linear_model import GeneralizedLinearRegressor, LinearRegression, LogisticRegression, VotedPerceptron
from assay.mixture import GaussianMixture, GaussianMixtureClassifier, HistogramDensity
from assay.model_selection import CrossValidated
from assay.neighbors import KNeighborsClassifier, KNeighborsRegressor, LearningVectorQuantization
from assay.neural_network import MLPClassifier, MLPRegressor
from assay.svm import SVC, SVR
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor, ObliqueTreeClassifier
from tests.certificate import forge

LEARNERS = [
    LinearRegression(),
    LogisticRegression(),
    GeneralizedLinearRegressor("poisson"),
    LinearDiscriminantAnalysis(),
    QuadraticDiscriminantAnalysis(),
    VotedPerceptron(random_state=0),
    SVC(),
    SVR(),
    KernelPerceptron(random_state=0),
    KernelPCA(2),
    DecisionTreeClassifier(max_depth=3, random_state=0),
    DecisionTreeRegressor(max_depth=3, random_state=0),
    ObliqueTreeClassifier(max_depth=2),
    RandomForestClassifier(n_estimators=4, random_state=0),
    RandomForestRegressor(n_estimators=4, random_state=0),
    HistGradientBoostingClassifier(max_iter=3),
    HistGradientBoostingRegressor(max_iter=3),
    AdaBoostClassifier(n_estimators=3),
    AdaBoostRegressor(n_estimators=3, random_state=0),
    KMeans(2, random_state=0),
    PCA(1),
    GaussianMixture(2, random_state=0),
    GaussianMixtureClassifier(2, random_state=0),
    HistogramDensity(bins=3),
    KNeighborsClassifier(),
    KNeighborsRegressor(),
    LearningVectorQuantization(random_state=0),
    MLPClassifier(3, max_iter=5, random_state=0),
    MLPRegressor(hidden_layer_sizes=3, max_iter=5, random_state=0),
    CrossValidated(LogisticRegression(), folds=2, random_state=0),
]


def rows(learner, n=80):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    if is_regressor(learner):
        return X, rng.poisson(np.exp(0.3 * X[:, 0])).astype(float)
    return X, np.array(["no", "yes"])[(X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)]


def fitted(learner):
    X, y = rows(learner)
    return learner.fit(X, y), X, y


each = pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: type(one).__name__)


@each
@pytest.mark.filterwarnings("ignore")
def test_the_fingerprint_is_that_of_the_specification(learner):
    model, X, y = fitted(learner)
    own = model.stored()
    assert own.digest() == forge.model_digest(own)
    certificate = model.certify(X, y)
    assert certificate.model == forge.model_reference(model)
    assert assay.verify(certificate, own, X, y).holds


@each
@pytest.mark.filterwarnings("ignore")
def test_every_part_of_a_model_is_in_the_fingerprint(learner):
    """A parameter, the class, a name of a column, the type or shape of an array: none can be exchanged unseen."""
    model, X, y = fitted(learner)
    own, certificate = model.stored(), model.certify(X, y)
    others = [replace(own, learner="linear_model.Other"), replace(own, parameters={**own.parameters, "more": 1})]
    others += [replace(own, parameters={**own.parameters, name: "other"}) for name in own.parameters]
    names = np.array([f"column {j}" for j in range(X.shape[1])])
    others.append(replace(own, arrays={**own.arrays, "feature_names_in_": names}))
    for name, value in own.arrays.items():
        others.append(replace(own, arrays={key: part for key, part in own.arrays.items() if key != name}))
        others.append(replace(own, arrays={**own.arrays, name: value[None]}))
        if value.dtype.kind in "fi":
            others.append(replace(own, arrays={**own.arrays, name: value.astype(f"<{value.dtype.kind}4")}))
    for k in range(len(own.members)):
        others.append(replace(own, members=(*own.members[:k], others[0], *own.members[k + 1 :])))
    for other in others:
        if other.digest() != own.digest():
            assert not assay.verify(certificate, other, X, y).holds
    assert len({other.digest() for other in others} - {own.digest()}) >= len(others) - len(own.arrays)


@each
@pytest.mark.filterwarnings("ignore")
def test_arrays_of_a_wrong_type_are_rejected_even_with_a_fingerprint_that_fits(learner):
    model, X, y = fitted(learner)
    own, certificate = model.stored(), model.certify(X, y)
    wanted = find(own.family)[1].arrays
    for name, value in own.arrays.items():
        right = wanted.get(name, NUMBERS + WHOLE)  # those beside the family's may be either
        types = [kind for kind in ("<f8", "<i8", "<i2", "<u8", "|b1") if kind not in right]
        for kind in types if value.dtype.kind in "fi" else ():
            other = replace(own, arrays={**own.arrays, name: np.abs(value).astype(kind)})
            sealed = replace(certificate, model=forge.model_reference(other))
            assert f"{name} must be an array of type" in assay.verify(sealed, other, X, y).reason
        for odd in (value.astype(object) if value.dtype.kind in "fi" else value.astype("S"), value.tolist(), None):
            assert not assay.verify(certificate, replace(own, arrays={**own.arrays, name: odd}), X, y).holds


def relabelled(certificate, model, family, without=()):
    """The certificate and the stored form under another family, with a fingerprint that fits."""
    own = model.stored()
    arrays = {name: value for name, value in own.arrays.items() if name not in without}
    if family == "trees.sum-regressor":
        arrays["base_score_"] = np.zeros(1)
    other = replace(own, family=family, arrays=arrays)
    return replace(certificate, model=forge.model_reference(other)), other


DISGUISES = {
    "a mean behind a log link as a linear one": (GeneralizedLinearRegressor("poisson"), "linear.regressor", ()),
    "another link": (GeneralizedLinearRegressor("poisson"), "glm.identity", ()),
    "a weighted vote as a forest": (AdaBoostClassifier(n_estimators=3), "trees.vote", ("estimator_weights_",)),
    "a forest as a sum": (RandomForestRegressor(n_estimators=4, random_state=0), "trees.sum-regressor", ()),
    "a median as a mean": (AdaBoostRegressor(n_estimators=3, random_state=0), "trees.mean", ("estimator_weights_",)),
    "a discriminant as another linear classifier": (LinearDiscriminantAnalysis(), "linear.classifier", ()),
    "a machine of pairs as an expansion": (SVC(), "expansion.classifier", ()),
}


@pytest.mark.parametrize("name", DISGUISES)
def test_a_certificate_is_not_read_as_one_of_another_family(name):
    learner, family, without = DISGUISES[name]
    model, X, y = fitted(learner)
    certificate = model.certify(X, y)
    assert assay.verify(certificate, model, X, y).holds
    only_named = replace(certificate, model=replace(certificate.model, family=family))
    sealed, disguised = relabelled(certificate, model, family, without)
    for forged in (only_named, sealed):
        assert "the certificate is about a" in refusal(forged, model, X, y)
    assert not assay.verify(only_named, disguised, X, y).holds
    assert not assay.verify(certificate, disguised, X, y).holds


def refusal(certificate, model, X, y):
    """Why a certificate of facts that every family has does not hold."""
    facts = tuple(claim for claim in certificate.claims if claim.name in ("data.identity", "train.errors"))
    assert facts
    return assay.verify(replace(certificate, claims=facts), model, X, y).reason


@pytest.mark.parametrize("name", DISGUISES)
def test_a_model_of_another_family_than_its_class_is_not_loaded(name, tmp_path):
    """A file names class and family: they must go together, whatever its fingerprints say."""
    learner, family, without = DISGUISES[name]
    model, X, y = fitted(learner)
    sealed, disguised = relabelled(model.certify(X, y), model, family, without)
    assay.save(model, tmp_path / "model.assay")
    assert np.array_equal(assay.load(tmp_path / "model.assay").model.predict(X), model.predict(X))
    assay.save(Disguised(disguised), tmp_path / "model.assay", sealed)
    with pytest.raises(assay.persist.ModelFileError):
        assay.load(tmp_path / "model.assay")


class Disguised(NamedTuple):
    """What a forger saves in place of a fitted learner."""

    held: StoredModel

    def stored(self):
        return self.held


FOREIGN = {
    "the gap of a logistic regression": (LogisticRegression(), "duality-gap", DecisionTreeClassifier(max_depth=2)),
    "the gap of an SVM": (SVC(), "kernel-duality-gap", LogisticRegression()),
    "the pass of a voted perceptron": (VotedPerceptron(random_state=0), "progressive.vote", LogisticRegression()),
    "the code of a tree": (DecisionTreeClassifier(max_depth=1), "occam", LogisticRegression()),
    "the score of a GLM": (GeneralizedLinearRegressor("poisson"), "glm.stationarity", LinearRegression()),
    "left-out rows of neighbours": (KNeighborsClassifier(), "knn.loo-errors", SVC()),
    "the fixed point of k-means": (KMeans(2, random_state=0), "kmeans.fixed-point", PCA(1)),
    "the stationary point of a mixture": (
        GaussianMixture(2, random_state=0),
        "em.stationary",
        HistogramDensity(bins=3),
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_claims_of_another_family_are_unknown(name):
    learner, claimed, other = FOREIGN[name]
    model, X, y = fitted(learner)
    claim = model.certify(X, y).find(claimed)
    second, X, y = fitted(other)
    honest = second.certify(X, y)
    family, _ = find(honest.model.family)
    assert claimed not in {one.name for one in family.claims.values()}
    for claims in ((*honest.claims, claim), (claim,)):
        spent = str(sum(float(one.delta) for one in claims) + 0.5)
        report = assay.verify(replace(honest, claims=claims, unreported=(), delta_total=spent), second, X, y)
        assert not report.holds
        assert f"unknown claim {claimed!r}" in report.reason


@pytest.mark.parametrize(
    "name", ["", "linear", "linear.", "linear.other", "Linear.classifier", "..os", "os.path", "family", "linear.a.b", 7]
)
def test_families_that_do_not_exist(name):
    model, X, y = fitted(LogisticRegression())
    certificate = model.certify(X, y)
    forged = replace(certificate, model=replace(certificate.model, family=name))
    assert not assay.verify(forged, model, X, y).holds
    for one in (certificate, forged):
        assert "unknown family" in assay.verify(one, replace(model.stored(), family=name), X, y).reason
