"""The differential fuzzer: it reaches every family whose answers a claim can be about, and finds nothing."""

from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest

import assay.checker.families
from assay.checker import reader
from assay.checker.family import read_model
from assay.checker.predictors import Linear, Predictor
from tests import differential, differential_tables
from tests.differential_inputs import name_of, quiet, subjects, table

QUICK = [one for one in subjects() if type(one).__name__ in (
    "KNeighborsClassifier", "KNeighborsRegressor", "RadiusNeighborsClassifier", "LogisticRegression", "Perceptron",
    "QuadraticDiscriminantAnalysis", "ObliqueTreeClassifier", "VotedPerceptron", "OneVsOneClassifier",
    "SVC", "RandomForestClassifier", "ForestCommitteeClassifier", "GaussianNB", "LabelSpreading", "AdaBoostClassifier",
    "VouchedClassifier", "SelfTrainingClassifier", "HistGradientBoostingClassifier", "VotingRegressor",
    "CategoricalNB", "CategoricalHMM", "GaussianHMM", "LatentDirichletAllocation", "KMeans", "PCA", "Lasso", "FuzzyART",
)]  # fmt: skip
SILENT = {
    "committee.bagging-classifier", "committee.bagging-regressor", "committee.boosting-classifier",
    "committee.boosting-regressor", "features.columns", "features.contour", "features.cuts", "features.dictionary",
    "features.patches", "features.scaled", "features.visual-words", "neighbors.rows", "oblique.soft",
    "trees.sum-exponential",
}  # fmt: skip
"""Kinds of models about whose answers there is no claim: their predictors have none to compare."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sampled(2)
@pytest.mark.parametrize("model", QUICK, ids=name_of)
def test_borderline_rows_are_judged_as_they_are_predicted(model):
    found = differential.run(model, seed=7, turn=0, size=100)
    assert not found.count.different, found.detail


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("subject", differential_tables.subjects(), ids=name_of)
def test_cells_are_read_by_the_checker_as_by_the_model(subject):
    found = differential_tables.run(subject, seed=7, turn=0, size=300)
    assert found.count.rows
    assert not found.count.different, found.detail


def test_every_family_is_asked():
    """A new kind of model that no subject is of is named here."""
    families = [
        import_module(f"assay.checker.families.{one.name}").FAMILY
        for one in iter_modules(assay.checker.families.__path__)
    ]
    known = {f"{one.name}.{variant}" if variant else one.name for one in families for variant in one.variants}
    asked = {"table"} | {f"folded.{kind}" for kind in ("classes", "numbers")}  # tests.differential_tables
    silent = set()
    for model in subjects():
        for turn in range(4):
            try:
                stored = quiet(
                    lambda model=model, turn=turn: model.fit(*table(model, np.random.default_rng(turn))).stored()
                )
                break
            except ValueError:
                continue
        (asked if differential.face_of(read_model(stored)) else silent).add(stored.family)
    assert known - asked == SILENT
    assert silent <= SILENT


def test_what_has_no_scores_has_nothing_to_compare():
    """A kind of model is silent because its predictor has no scores, not because the fuzzer does not know it."""
    assert differential.face_of(Predictor()) is None
    assert isinstance(differential.face_of(Linear(np.ones((1, 2)), np.zeros(1), ("a", "b"))), differential.Classes)


def test_a_bound_that_is_too_narrow_is_found(monkeypatch):
    """Without the learner's own rounding a row at the border is told otherwise than it is predicted."""
    monkeypatch.setattr(Linear, "_error", lambda self, magnitude: 0.0 * magnitude)
    line = next(one for one in subjects() if type(one).__name__ == "LogisticRegression")
    assert any(differential.run(line, seed=7, turn=turn, size=400).count.different for turn in range(3))


def test_a_bound_that_is_too_narrow_for_single_precision_is_found(monkeypatch):
    from assay.linear_model import Lasso

    answers = Lasso.predict
    monkeypatch.setattr(Lasso, "predict", lambda self, X: answers(self, X).astype(X.dtype))
    assert differential.run(Lasso(), seed=7, turn=0, size=100).count.different


def test_a_reader_of_its_own_is_found(monkeypatch):
    monkeypatch.setattr(reader, "LARGEST", 1e300)
    found = [differential_tables.run(one, seed=7, turn=0, size=300) for one in differential_tables.subjects()]
    assert any(one.count.different for one in found)


@pytest.mark.long(by_hand="minutes, and how far it comes depends on the machine")
@pytest.mark.filterwarnings("ignore")
def test_all_learners_for_a_while():
    assert differential.main(["--rows", "400000", "--minutes", "20", "--seed", "11"]) == 0
