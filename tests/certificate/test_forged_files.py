"""A hostile reviewer: every stored item of every learner is forged, and what is accepted must be what was certified.

Without sealing again, a forged file may pass only if all that the model says is what the certified model says. A forger
who has the software can seal the file again and give the certificate the forged model's fingerprint. Then the
certificate speaks of the forged model, and it may pass only if `predict` says what the checker's own predictor says.
"""

import io
import warnings
import zipfile
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor

import assay
from assay.checker.family import read_model
from assay.checker.predictors import DensityModel, DistanceModel, margins
from assay.checker.rules.chains import Chain
from assay.claims.document import DocumentError, from_json
from assay.persist import ModelFileError
from tests.certificate.forged_files import Parts, certificate_forgeries, forgeries
from tests.contract.test_contract import example, fitted, small

METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba", "transform", "score_samples")
LEARNERS = assay.learners()


class Certified(NamedTuple):
    """A certified model in a file, with its rows."""

    content: bytes
    X: np.ndarray
    y: Any
    holdout: tuple[np.ndarray, Any]
    said: dict[str, np.ndarray]

    @property
    def rows(self) -> np.ndarray:
        return np.concatenate([self.X, self.holdout[0]])


@cache
def certified(learner, folder):
    X, y = small(example(learner))
    held = small(example(learner), seed=1)
    model = fitted(example(learner), X, y)
    path = folder / f"{learner.__name__}.assay"
    assay.save(model, path, certificate=model.certify(X, y, holdout=held))
    return Certified(path.read_bytes(), X, y, held, said(model, np.concatenate([X, held[0]])))


def said(model, X):
    """Return what the methods of a model say of rows."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        told = {name: _told(getattr(model, name), X) for name in METHODS if hasattr(model, name)}
        return {name: array for name, array in told.items() if array is not None}


def _told(method, X):
    """Return what a method says; None where the model's parameters leave it without one, as scikit-learn's do."""
    try:
        return _array(method(X))
    except NotImplementedError:
        return None


def _array(told):
    """Return an answer as one array; a log-likelihood beside probabilities of states as one row more."""
    return np.concatenate([np.ravel(part) for part in told]) if isinstance(told, tuple) else np.asarray(told)


def same(one, other):
    return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)


def _equal(one, other):
    return np.array_equal(one, other, equal_nan=one.dtype.kind == other.dtype.kind == "f")


def contradiction(model, X):
    """Return where a model says something else than the checker's predictor of its numbers; empty if nowhere."""
    predictor = read_model(model.stored())
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if isinstance(predictor, Chain):
            return _outside(np.array(model.score(X)), *predictor.log_likelihood(X))
        if isinstance(predictor, DensityModel):
            low, high = predictor.log_bounds(X, np.abs(X).max(axis=0))
            return _outside(model.score_samples(X), low, high)
        if isinstance(predictor, DistanceModel):
            low, high = predictor.squared_distances(X)
            if hasattr(model, "inverse_transform"):
                return _outside(np.square(X - model.inverse_transform(model.transform(X))).sum(axis=1), low, high)
            if hasattr(model, "nominal_columns_"):
                return _outside([-model.score(row[None]) for row in X], low, high)
            return _outside(np.square(X - model.cluster_centers_[model.predict(X)]).sum(axis=1), low, high)
        scores, errors = predictor.scores(X, np.abs(X).max(axis=0))
        if is_classifier(model):
            return _other_classes(model, predictor, X, scores, errors)
        told = model.predict(X) if is_regressor(model) else _map(model, X)
    return _outside(np.reshape(told, scores.shape), scores - errors, scores + errors)


def _map(model, X):
    return model.transform(X) if hasattr(model, "transform") else model.decision_function(X)


def _outside(told, low, high):
    slack = 1e-9 * (1 + np.abs(told))
    wrong = (told < low - slack) | (told > high + slack) | np.isnan(told)
    return f"{int(wrong.sum())} of {wrong.size} numbers" if wrong.any() else ""


def _other_classes(model, predictor, X, scores, errors):
    guess = (scores[:, 0] > 0).astype(int) if predictor.binary else scores.argmax(axis=1)
    margin, error = margins(predictor, scores, errors, guess)
    told = np.searchsorted(model.classes_, model.predict(X)) if np.all(model.classes_[:-1] <= model.classes_[1:]) else (
        np.array([model.classes_.tolist().index(label) for label in model.predict(X).tolist()])
    )  # fmt: skip
    wrong = (margin > error + 1e-9) & (told != guess)
    return f"{int(wrong.sum())} of {len(X)} labels" if wrong.any() else ""


def opened(content, path):
    """Return what the file holds; None if it is refused, as it may be in no other way."""
    path.write_bytes(content)
    try:
        return assay.load(path)
    except ModelFileError:
        return None


def chosen(found, most, seed):
    """Return all forgeries, or so many of them, drawn by a seed."""
    found = list(found)
    if most is None or len(found) <= most:
        return found
    return [found[i] for i in sorted(np.random.default_rng(seed).choice(len(found), most, replace=False))]


def holds(certificate, model, subject):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return assay.verify(certificate, model, subject.X, subject.y, holdout=subject.holdout).holds


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("certified")


@pytest.fixture
def subject(learner, folder):
    return certified(learner, folder)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)
class TestForgedFiles:
    def test_the_certified_file_passes(self, subject, tmp_path):
        saved = opened(subject.content, tmp_path / "file")
        assert saved is not None
        assert holds(saved.certificate, saved.model, subject)
        assert same(said(saved.model, subject.rows), subject.said)
        assert not contradiction(saved.model, subject.rows)

    def test_a_forged_model_passes_only_if_it_says_the_same(self, subject, tmp_path, most):
        accepted, parts = [], Parts.of(subject.content)
        for name, change in chosen(forgeries(parts), most, 1):
            forged = parts.copy()
            change(forged)
            saved = opened(forged.content(), tmp_path / "file")
            if saved and holds(saved.certificate, saved.model, subject):
                accepted += [] if same(said(saved.model, subject.rows), subject.said) else [name]
        assert not accepted

    def test_a_forged_model_that_is_sealed_again_says_what_the_checker_reads(self, subject, tmp_path, most):
        wrong, parts = {}, Parts.of(subject.content)
        for name, change in chosen(forgeries(parts), most, 2):
            forged = parts.copy()
            change(forged)
            try:
                forged.seal()
            except ValueError:  # no stored model is described, and no file of this content is loaded
                assert opened(forged.content(), tmp_path / "file") is None
                continue
            saved = opened(forged.content(), tmp_path / "file")
            if saved and holds(saved.certificate, saved.model, subject):
                odd = contradiction(saved.model, subject.rows) or _untrue(saved, subject)
                wrong |= {name: odd} if odd else {}
        assert not wrong

    def test_a_forged_certificate_is_judged_and_printed_as_one_line_each(self, subject, tmp_path, most):
        parts = Parts.of(subject.content)
        for name, change in chosen(certificate_forgeries(parts), most, 3):
            forged = parts.copy()
            change(forged)
            try:
                certificate = from_json(forged.members()["certificate.json"])
            except DocumentError:
                assert opened(forged.content(), tmp_path / "file") is None
                continue
            text = str(certificate)
            assert all(line.isprintable() for line in text.split("\n")), name
            assert "\n  - The error rate is 0 %." not in text, name
            saved = opened(forged.content(), tmp_path / "file")
            assert saved is not None, name
            if holds(certificate, saved.model, subject):
                assert not _untrue(saved, subject), name

    def test_a_changed_file_that_is_not_sealed_is_refused(self, subject, tmp_path, most):
        parts = Parts.of(subject.content)
        manifest = _manifest(subject.content)
        for name, change in chosen(forgeries(parts), most, 4):
            forged = parts.copy()
            change(forged)
            if forged.members() != parts.members():
                assert opened(forged.content(manifest=manifest), tmp_path / "file") is None, name


def _manifest(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read("manifest.json")


def _untrue(saved, subject):
    """Return a claim about errors on the rows that `predict` contradicts; empty if there is none.

    The checker counts ties as errors, so that there can be fewer than stated.
    """
    sets = {"train": (subject.X, subject.y), "holdout": subject.holdout}
    for claim in saved.certificate.claims:
        if claim.name == "train.errors":
            X, y = sets[claim.params["set"]]
            told = np.asarray(said(saved.model, X)["predict"])
            if is_classifier(saved.model):
                measured = np.sum(told.astype(str) != y.astype(str))
            else:
                measured = np.mean(np.square(told - y.reshape(told.shape)))
            if not measured <= claim.value + 1e-9 * (1 + claim.value):
                return f"{claim.statement} Measured {measured}."
    return ""
