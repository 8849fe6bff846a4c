"""Small files do small work: what sizes memory or loops has a limit, and the fuzzer of costs finds nothing else.

The fuzzer runs some mutants, one model of each kind; with `--long` for some minutes and every model.
"""

import sys
import tracemalloc
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone

import assay
from assay.base import Learner
from assay.claims.model import StoredModel
from assay.decomposition import LatentDirichletAllocation, _topics_data
from assay.discriminant_analysis import LinearDiscriminantAnalysis
from assay.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    RandomForestClassifier,
    StackingRegressor,
)
from assay.feature_extraction import Dictionary, FourierContour
from assay.linear_model import LogisticRegression, Ridge
from assay.persist import ModelFileError
from assay.preprocessing import PolynomialTransform, UnitRows
from assay.svm import SVC
from assay.tree import DecisionTreeClassifier
from tests import cost
from tests.cost_inputs import Case
from tests.watched import watch

linux = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked, and their time is read from /proc")
X = np.random.default_rng(0).normal(size=(60, 4))
LABELS = np.array(["a", "b", "c"])[np.arange(60) % 3]


def loaded(stored: StoredModel, tmp_path):
    path = tmp_path / "model.assay"
    path.write_bytes(cost.content_of(stored))
    return assay.load(path).model


def refused(stored: StoredModel, tmp_path, reason: str) -> None:
    with pytest.raises(ModelFileError, match=reason):
        loaded(stored, tmp_path)


def with_parameters(model: Learner, **changed) -> StoredModel:
    stored = model.stored()
    return replace(stored, parameters={**stored.parameters, **changed})


def with_arrays(model: Learner, **changed) -> StoredModel:
    stored = model.stored()
    return replace(stored, arrays={**stored.arrays, **changed})


# What is remembered of a table --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table_model():
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(size=80).tolist(), "town": (["Ulm", "Bonn"] * 40), "y": (["yes", "no"] * 40)}
    return assay.learn(columns, "y", learners=["LogisticRegression"], trials=1, workers=0).model


@pytest.mark.parametrize(
    ("column", "held"),
    [
        (0, {"missing": 0, "counts": [1, 2]}),  # counts of numbers, which were bins: 1.6e9 of them took 12.9 GB
        (0, {"missing": 0, "counts": [1, 2], "edges": [0.0], "rows": 3}),
        (0, {"missing": 0, "edges": [0.0]}),
        (1, {"missing": 0, "counts": [1, 2, 3, 4]}),
        (1, {"missing": 0, "counts": [1, 2], "edges": [0.0, 1.0], "rows": 3}),
        (1, {"missing": 0, "counts": []}),
    ],
)
def test_what_is_remembered_of_a_column_goes_with_its_kind(table_model, column, held, tmp_path):
    stored = table_model.stored()
    memory = dict(stored.parameters["memory"])
    memory["columns"] = [held if i == column else one for i, one in enumerate(memory["columns"])]
    loaded(stored, tmp_path)
    refused(replace(stored, parameters={**stored.parameters, "memory": memory}), tmp_path, "column")


# Columns ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", [{"rows": 3_000_000}, {"counts": "reversed"}, {"edges": "reversed"}])
def test_edges_of_a_column_are_those_of_its_rows(table_model, changed, tmp_path):
    """Rows beyond the last count made an index of a place that is not there."""
    stored = table_model.stored()
    memory = dict(stored.parameters["memory"])
    at = next(i for i, one in enumerate(memory["columns"]) if "edges" in one)
    name, value = next(iter(changed.items()))
    column = memory["columns"][at]
    column = {**column, name: column[name][::-1] if value == "reversed" else value}
    memory["columns"] = [*memory["columns"][:at], column, *memory["columns"][at + 1 :]]
    refused(with_parameters(table_model, memory=memory), tmp_path, "edge")


def test_a_model_reads_no_more_columns_than_its_size_allows(tmp_path):
    forest = RandomForestClassifier(5, random_state=0).fit(X, LABELS)
    for model in (forest, UnitRows().fit(X)):
        wide = with_arrays(model, n_features_in_=np.array(3_000_000))
        refused(wide, tmp_path, "3000000 columns")
    bagged = BaggingClassifier(LogisticRegression(), 3, max_features=2, random_state=0).fit(X, LABELS)
    refused(with_arrays(bagged, n_features_in_=np.array(3_000_000)), tmp_path, "3000000 columns")


def test_what_cannot_be_loaded_is_not_saved(tmp_path):
    model = UnitRows().fit(X)
    model.n_features_in_ = 2**20 + 1
    with pytest.raises(ModelFileError, match="1048577 columns"):
        assay.save(model, tmp_path / "model.assay")


def test_importances_of_many_trees_of_many_columns_take_the_memory_of_the_columns(tmp_path):
    forest = RandomForestClassifier(30, max_depth=2, random_state=0).fit(X, LABELS)
    wide = loaded(with_arrays(forest, n_features_in_=np.array(2**20)), tmp_path)
    tracemalloc.start()
    found = wide.feature_importances_
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(found[:4], forest.feature_importances_, rtol=1e-12)
    assert peak < 6 * 8 * 2**20  # 30 trees x columns were 250 MB


@pytest.mark.parametrize("shape", [(10**9, 0), (0, 10**14)])
def test_an_array_without_entries_has_no_long_axis(shape, tmp_path):
    forest = RandomForestClassifier(3, random_state=0).fit(X, LABELS)
    refused(with_arrays(forest, branch_tables_=np.empty(shape, np.int64)), tmp_path, "no entries")


def test_monomials_are_counted_before_they_are_listed(tmp_path):
    model = PolynomialTransform().fit(X)
    refused(with_arrays(model, n_features_in_=np.array(100_000)), tmp_path, "100000 columns makes")
    refused(with_parameters(model, degree=900), tmp_path, "degree 900 of 4 columns makes")
    refused(with_parameters(model, degree=10**9), tmp_path, "degree must be an integer")


# Steps --------------------------------------------------------------------------------------------------------


def documents():
    return np.random.default_rng(0).integers(0, 4, (12, 6))


def test_steps_for_a_document_have_an_end(tmp_path):
    model = LatentDirichletAllocation(2, random_state=0).fit(documents())
    endless = with_parameters(model, max_doc_update_iter=10**9, mean_change_tol=0.0)
    refused(endless, tmp_path, "max_doc_update_iter must be an integer >= 1 and <= 100000")


def test_steps_are_made_in_slices_that_change_nothing(monkeypatch):
    model = LatentDirichletAllocation(2, max_doc_update_iter=40, mean_change_tol=1e-9, random_state=0)
    whole = model.fit(documents())
    told = whole.transform(documents())
    calls = []
    original = _topics_data.thread_map
    monkeypatch.setattr(_topics_data, "thread_map", lambda *given, **more: calls.append(1) or original(*given, **more))
    monkeypatch.setattr(_topics_data, "_TOGETHER", 3)
    np.testing.assert_array_equal(whole.transform(documents()), told)
    assert 3 < len(calls) <= 14


@pytest.mark.parametrize("pattern", [r"(\w+)+x", r"\w*\w*\w*\w*x", r"(a)\1", r"(?:a|a?)+b", "a?" * 9, "("])
def test_patterns_that_may_search_for_ever_are_not_loaded(pattern, tmp_path):
    model = Dictionary().fit(["good parcel", "bad letter"])
    refused(with_parameters(model, pattern=pattern), tmp_path, "pattern")
    for usual in (r"(?u)\b\w\w+\b", r"\w+(?:'\w+)?", r"[A-Za-z]+|[0-9]+"):
        assert loaded(with_parameters(model, pattern=usual), tmp_path).transform(["bad bad"]).sum() == 2


def test_runs_of_words_longer_than_any_of_the_dictionary_are_not_made(tmp_path):
    model = Dictionary(ngram_range=(1, 2)).fit(["good parcel", "bad letter"])
    again = loaded(with_parameters(model, ngram_range={"tuple": [1, 10**15]}), tmp_path)
    text = ["good parcel " * 500]
    assert (again.transform(text) != model.transform(text)).nnz == 0


def test_a_contour_comes_back_without_a_table_of_all_cosines():
    t = np.arange(4096) * 2 * np.pi / 4096
    curves = np.stack([np.cos(t) + 0.1 * np.sin(7 * t), np.sin(t)], axis=1)[None]
    model = FourierContour(2047).fit(curves)
    tracemalloc.start()
    back = model.inverse_transform(model.transform(curves))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(back, curves, atol=1e-12)
    assert peak < 2**22  # the table had 2048 x 4096 entries


# Members ------------------------------------------------------------------------------------------------------


@cache
def bagged():
    return BaggingClassifier(LogisticRegression(), 3, random_state=0).fit(X, LABELS)


def boosted():
    return AdaBoostRegressor(Ridge(), n_estimators=2, random_state=0).fit(X, X[:, 0])


def stacked():
    return StackingRegressor().fit(X, X[:, 0])


@pytest.mark.parametrize("make", [bagged, boosted, stacked], ids=["bagged", "boosted", "stacked"])
@pytest.mark.parametrize("member", [PolynomialTransform(), LatentDirichletAllocation(2)])
def test_members_that_predict_nothing_are_refused(make, member, tmp_path):
    stored = make().stored()
    forged = replace(stored, members=(*stored.members[:-1], clone(member).fit(np.abs(X)).stored()))
    refused(forged, tmp_path, "member")


def test_a_median_needs_members_of_one_number(tmp_path):
    model = AdaBoostRegressor(estimator=Ridge(), n_estimators=3, random_state=0).fit(X, X[:, 0])
    two = Ridge().fit(X, X[:, :2]).stored()
    forged = loaded(replace(model.stored(), members=(two,) * len(model.members_)), tmp_path)
    for asked in (lambda: forged.predict(X[:6]), lambda: list(forged.staged_predict(X[:6]))):
        with pytest.raises(ValueError, match="one number for each row"):
            asked()
    with pytest.raises(ValueError, match="something else"):
        forged.to_sklearn()


def test_parameters_beyond_what_scikit_learn_can_hold_are_refused():
    model = SVC(kernel="linear").fit(X, LABELS == "a")
    model.degree = 10**18
    with pytest.raises(ValueError, match="no form in scikit-learn"):
        model.to_sklearn()


@pytest.mark.parametrize("estimator", [0.5, None, {"object": Ridge().plain()}])
def test_members_are_those_of_the_estimator(estimator, tmp_path):
    refused(with_parameters(bagged(), estimator=estimator), tmp_path, "estimator")


@pytest.mark.parametrize("labels", [[0, 1, 7], [0, 1, 2**62], [0.0, 1.0, 2.0], ["0", "1", "b"]])
def test_members_know_classes_of_the_ensemble(labels, tmp_path):
    """Votes are written where the classes of members say, which was outside of the table of votes."""
    stored = bagged().stored()
    member = replace(stored.members[1], arrays={**stored.members[1].arrays, "classes_": np.array(labels)})
    refused(replace(stored, members=(stored.members[0], member, stored.members[2])), tmp_path, "classes")


def test_classes_stand_in_order(tmp_path):
    boosted = AdaBoostClassifier(LogisticRegression(), n_estimators=2, random_state=0).fit(X, LABELS)
    refused(with_arrays(boosted, classes_=np.array(["a", "c", "b"])), tmp_path, "increasing order")


def test_votes_do_not_take_a_table_of_all_pairs_of_classes(tmp_path):
    boosted = AdaBoostClassifier(LogisticRegression(), n_estimators=2, random_state=0).fit(X, LABELS)
    many = loaded(with_arrays(boosted, classes_=np.array([*"abc", *(f"d{i:05}" for i in range(10_000))])), tmp_path)
    tracemalloc.start()
    assert set(many.predict(X[:5])) <= {"a", "b", "c"}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24  # all pairs were 800 MB


def test_a_discriminant_has_an_intercept_for_each_score(tmp_path):
    model = LinearDiscriminantAnalysis().fit(X, LABELS == "a")
    refused(with_arrays(model, intercept_=np.array(0.5)), tmp_path, "intercept_ has shape")


def test_rules_of_a_tree_are_written_whatever_the_types_of_its_columns(tmp_path):
    rows = np.column_stack([X[:, 0], np.arange(60) % 3])
    tree = DecisionTreeClassifier(nominal=[1], split="multiway").fit(rows, LABELS)
    other = np.where(tree.node_column_ < 0, -1, 0).astype(tree.node_column_.dtype)
    assert "x0 = 1" in loaded(with_arrays(tree, node_column_=other), tmp_path).to_text()


# The fuzzer -----------------------------------------------------------------------------------------------------

FEW = (
    "Ridge()-numbers", "LatentDirichlet", "RandomForestClassifier(n_estimators=5)-two", "GaussianMixture()", "UnitRows",
    "PolynomialTransform", "Dictionary", "BaggingClassifier(estimator", "KNeighborsClassifier()-two",
    "HistogramDensity()",
)  # fmt: skip


@linux
def test_changed_models_cost_little():
    tally = cost.fuzz(30.0, seed=1, only=FEW, most=150)
    assert sum(tally.counts.values()) == 150
    assert not tally.findings, tally.text(10.0)


@linux
@pytest.mark.long(by_hand="how far it comes depends on the machine")
def test_changed_models_of_every_kind_cost_little():
    tally = cost.fuzz(5.0, seed=2)
    assert not tally.findings, tally.text(300.0)


@linux
@pytest.mark.parametrize("harm", ["memory", "hang", "kind"])
def test_harm_is_seen(harm, monkeypatch, tmp_path):
    """A method that takes too much memory or has no end, or raises what is no refusal, is told."""

    def transform(self, X):
        if harm == "memory":
            return np.ones(2**28)
        while harm == "hang":
            pass
        raise KeyError("x")

    monkeypatch.setattr(UnitRows, "transform", transform)
    case, found = Case("UnitRows", UnitRows().fit(X).stored(), None, X, None, X[:6]), []
    size = cost._size_of_this_process() + cost.MEMORY
    watch(
        lambda number: cost.run(case, case.stored, tmp_path / "file"),
        lambda number, outcome: found.append(outcome),
        0, end=np.inf, seconds=0.5 if harm == "hang" else 30.0, memory=size, last=0,
    )  # fmt: skip
    assert [one.kind for one in found] == ["hang" if harm == "hang" else "unexpected"]
    assert {"memory": "MemoryError", "hang": "", "kind": "KeyError"}[harm] in found[0].detail
    assert "transform" in found[0].place
