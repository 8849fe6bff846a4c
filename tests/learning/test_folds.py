"""`certify="folds"`: every row is fitted to, and each fold judges the model that was made without it."""

import itertools
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from assay.checker.rules.folds import of_vote
from assay.cli.app import app
from assay.guarantees.fingerprint import fold_of_rows
from assay.learning import search
from assay.learning.folds import FoldModel, Folds
from assay.learning.search import Budget, Candidate
from assay.messages import Message
from assay.neighbors import KNeighborsClassifier
from assay.report.views import in_chinese
from tests.learning.fold_rows import DELTA, columns, judged, learnt, numbers

runner = CliRunner()


@pytest.mark.filterwarnings("ignore::assay.guarantees.seal.RepeatedUseWarning")
def test_the_mean_of_the_folds_by_hand():
    study = learnt(columns(300, 0), folds=3)
    y, table, limits = np.array(study.table.column("y").values()), study.table, []
    assert sorted(np.concatenate([one.held for one in study.folds]).tolist()) == list(range(300))
    for one in study.folds:
        errors = int(np.sum(one.model.predict(table.take(one.held)) != y[one.held]))
        limits.append(stats.beta.ppf(1 - 0.9 * DELTA / 3, errors + 1, len(one.held) - errors))
    claim = study.certificate.find("cross-validation.mean")
    assert claim.value == pytest.approx(np.mean(limits), abs=1e-8)
    assert study.chosen.bound == pytest.approx(1.5 * claim.value)
    assert judged(study).holds
    members = [np.array(one.model.predict(table)) == "b" for one in study.folds]
    assert ((np.sum(members, axis=0) >= 2) == (study.model.predict(table) == "b")).all()


@pytest.mark.parametrize("folds", [2, 3, 4, 5])
def test_a_vote_that_errs_has_half_of_its_members_wrong(folds):
    """All ways in which members vote among three classes, ties resolved against the truth."""
    worst = Fraction(0)
    for votes in itertools.product(range(3), repeat=folds):
        counts = [votes.count(k) for k in range(3)]
        errs = counts[0] <= max(counts[1:])
        if errs:
            worst = max(worst, Fraction(folds, folds - counts[0]))
    assert of_vote(0.1, folds) == pytest.approx(0.1 * worst)


def test_numbers_by_hand():
    study = learnt(numbers(240, 1), learners=["Ridge"])
    model, y = study.model, np.array(study.table.column("y").values())
    low, high = model.learner.range_
    outside = [np.delete(y, one.held) for one in study.folds]
    assert (low, high) == (max(one.min() for one in outside), min(one.max() for one in outside))
    parts = [np.clip(one.model.predict(study.table), low, high) for one in study.folds]
    np.testing.assert_allclose(model.predict(study.table), np.mean(parts, axis=0))
    assert judged(study).holds
    assert (
        study.chosen.bound
        == study.certificate.find("cross-validation.mean-loss").value
        > study.chosen.holdout_error * 0.5
    )
    assert "targets clipped to" in study.why


@pytest.mark.parametrize("table", [columns(300, 0), numbers(150, 1)], ids=["classes", "numbers"])
def test_the_comparison_with_the_baseline_is_said_as_it_is_measured(table):
    """cross-validation.baseline is about the models of the folds, each in its own range and against its own baseline,
    not their mean."""
    study = learnt(table, learners=["GaussianNB" if "level" in table else "Ridge"])
    claim = next(
        one for one in study.certificate.claims if one.name in ("cross-validation.baseline", "cross-validation.median")
    )
    assert "on average over them" in claim.statement
    assert "outside its fold" in claim.statement
    assert "mean of the 3 models" not in claim.statement
    assert "on average" in study.why.rpartition(";")[2]
    assert "outside each fold" in study.why
    assert isinstance(study.why, Message)
    assert "该折之外" in in_chinese(claim)
    if claim.name == "cross-validation.median":
        assert "outside the fold are counted as its ends" in claim.statement
        assert "按端点计" in in_chinese(claim)


def test_folds_are_drawn_by_the_seed_alone_and_are_of_equal_size():
    assert np.bincount(fold_of_rows(101, 4, 0)).tolist() == [26, 25, 25, 25]
    assert (fold_of_rows(101, 4, 0) == fold_of_rows(101, 4, 0)).all()
    assert (fold_of_rows(101, 4, 0) != fold_of_rows(101, 4, 1)).any()
    with pytest.raises(ValueError, match="at least 2"):
        fold_of_rows(5, 3, 0)


def test_the_model_of_a_fold_does_not_know_the_rows_of_its_fold():
    """Whatever the rows of a fold are changed to, its model and its encoding stay the same."""
    first = columns(120, 3)
    fold = fold_of_rows(120, 3, 0)
    second = {name: list(values) for name, values in first.items()}
    for i in np.flatnonzero(fold == 1):
        second["a"][i], second["y"][i], second["level"][i] = 1e3 * i, "a" if i % 2 else "b", "u"
    third = {name: list(values) for name, values in second.items()}
    for name, i, value in (("a", 3, 1e200), ("b", 5, -1e-200), ("b", 7, 1e150)):
        third[name][np.flatnonzero(fold == 1)[i]] = value
    studies = [learnt(table) for table in (first, second, third)]
    assert len({study.folds[1].model.stored().digest() for study in studies}) == 1
    assert judged(studies[2]).holds
    assert [len(one.model.columns) for one in studies[2].folds] == [1, 3, 1]
    assert any(
        "'a' is left out of the models whose training rows have such numbers" in note for note in studies[2].notes
    )


def test_the_rarer_class_is_told_by_the_rows_outside_a_fold():
    """F1 is of the rarer class: were it that of all rows, a fold's rows would have a say in the choice of its model."""
    first, fold = columns(240, 3, noise=0.35), fold_of_rows(240, 3, 0)
    outside = np.array(first["y"])[fold != 1]
    assert abs(np.sum(outside == "a") - np.sum(outside == "b")) < 40
    tables = []
    for label in ("a", "b"):
        table = {name: list(values) for name, values in first.items()}
        for i in np.flatnonzero(fold == 1):
            table["y"][i] = label
        tables.append(table)
    one, other = (learnt(table, metric="f1").folds[1] for table in tables)
    assert one.candidate.losses == other.candidate.losses
    assert one.model.stored().digest() == other.model.stored().digest()


def test_a_class_that_a_fold_lacks_is_an_error_of_its_model():
    table = columns(120, 4)
    table["y"][np.flatnonzero(fold_of_rows(120, 3, 0) == 0)[0]] = "rare"
    study = learnt(table)
    assert study.model.classes_.tolist() == ["a", "b", "rare"]
    assert [len(one.model.classes_) for one in study.folds] == [2, 3, 3]
    assert judged(study).holds
    assert study.model.predict_proba(study.table).shape == (120, 3)


def test_a_learner_that_the_checker_cannot_follow_is_left_out_of_a_fold(monkeypatch):
    """The vote is best outside the fold; its probabilities at a threshold are none that certificates know."""
    monkeypatch.setattr(search.Search, "finishable", lambda self: sorted(self.ranked(), key=lambda one: -len(one.name)))
    study = learnt(columns(120, 1), metric="f1", learners=["VotingClassifier", "MixedNB"], trials=2)
    assert ["MixedNB" in str(one.candidate.name) for one in study.folds] == [True] * 3
    left = [one for one in study.candidates if one.name == "VotingClassifier"]
    assert left
    assert all("checker does not know" in one.note for one in left)
    assert judged(study).holds


@pytest.mark.parametrize(
    ("given", "words"),
    [({"group": "a"}, "independent draws"), ({"time_column": "a"}, "independent draws"), ({"certify": "x"}, "holdout")],
)
def test_refusals(given, words):
    with pytest.raises(ValueError, match=words):
        learnt(columns(60, 0), **given)
    with pytest.raises(ValueError, match="clip is for a hold-out set"):
        learnt(numbers(60, 0), learners=["Ridge"], clip=1.0)


def test_rows_that_are_copied_into_other_folds_are_counted():
    table = columns(90, 14)
    twice = {name: [*values, *values[:40]] for name, values in table.items()}
    fold = fold_of_rows(130, 3, 0)
    apart = 2 * int(np.sum(fold[:40] != fold[90:]))
    said = f"{apart} of 130 rows have the same columns as a row of another fold"
    assert any(said in one for one in learnt(twice).notes)
    assert not any("same columns" in one for one in learnt(table).notes)


def test_dates_and_text_keep_their_own_words_in_each_fold():
    rng = np.random.default_rng(5)
    words = np.array(["red", "green", "blue", "rare"])[rng.integers(0, 4, 150)]
    table = {
        "note": [f"a {word} thing of number {i} {'seldom' if i == 3 else ''}" for i, word in enumerate(words)],
        "day": [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(150)],
        "x": rng.normal(size=150).tolist(),
        "y": np.where(words == "red", "yes", "no").tolist(),
    }
    study = learnt(table)
    assert {column.kind for column in study.model.columns} == {"text", "date", "numeric"}
    assert judged(study).holds
    assert study.chosen.holdout_error < 0.1


# Time


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now


class Large:
    """A model of so many bytes."""

    def __init__(self, size):
        self.arrays, self.members, self.nbytes = {"x": self}, (), size

    def stored(self):
        return self


def test_time_is_left_to_seal_the_models(monkeypatch):
    """Each fold takes all the time that it has; what models of 200 MB take to be sealed comes at the end."""
    clock = Clock()
    monkeypatch.setattr(search, "time", clock)
    budget, asked = Budget(30.0, None, None), []

    def searched(part, metric, allowed):
        asked.append(allowed.seconds)
        return SimpleNamespace(budget=allowed, all=[])

    def fitted(self, k, part, found):
        clock.now += found.budget.left()
        return FoldModel(Candidate("A"), Large(200_000_000), np.empty(0), None, None)

    problem = SimpleNamespace(y=np.zeros(9_000), seed=0)
    parts = Folds(problem, 3, None, None, budget, lambda event: None, searched, lambda: None)
    monkeypatch.setattr(Folds, "_fitted", fitted)
    for name in ("_problem", "_metric"):
        monkeypatch.setattr(Folds, name, lambda *given: None)
    parts.run()
    assert asked[0] == pytest.approx(10.0, abs=0.2)
    assert asked[1] == pytest.approx(asked[2])
    assert asked[1] < asked[0]
    assert 2 <= budget.left() <= 6  # 600 MB at some 5 ns


def test_the_answers_of_a_fold_are_certified_in_its_own_time(monkeypatch):
    """What the models answer is known before they are joined: nothing that may be slow is left for the end."""
    counted = []
    of = Folds._fitted
    monkeypatch.setattr(Folds, "_fitted", lambda *given: counted.append(of(*given)) or counted[-1])
    monkeypatch.setattr(Folds, "joined", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        learnt(columns(90, 2))
    assert [len(one.answers) for one in counted] == [30, 30, 30]
    assert all(set(one.answers.tolist()) <= {0, 1} for one in counted)


def test_a_fold_reserves_time_for_its_own_rows(monkeypatch):
    made = []
    run = search.Search.run
    monkeypatch.setattr(search.Search, "run", lambda self, *given: made.append(self) or run(self, *given))
    learnt(columns(300, 3))
    one = Candidate("A", seconds=0.0, per_row=1.0, kind=KNeighborsClassifier)
    fitted = len(made[0].problem.rungs[0][0].fit)
    assert made[0].finishing(one) == pytest.approx(4 * 100 * 200 / fitted + 0.2)  # 100 rows of 300


# Files, the command, explanations


def test_the_command_saves_verifies_and_predicts(tmp_path):
    table = columns(200, 6)
    cells = [["" if one is None else str(one) for one in row] for row in zip(*table.values(), strict=True)]
    lines = [",".join(row) for row in (list(table), *cells)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    out, report = tmp_path / "m.assay", tmp_path / "r.html"
    common = ["--target", "y", "--learners", "LogisticRegression", "--trials", "1", "--workers", "0"]
    files = ["--out", str(out), "--report", str(report)]
    more = [*common, *files, "--certify", "folds", "--folds", "3"]
    found = runner.invoke(app, ["learn", str(tmp_path / "t.csv"), *more])
    assert found.exit_code == 0, found.output
    assert "Vote of 3 fold models" in found.output
    assert "Vote of 3 fold models" in report.read_text()
    assert runner.invoke(app, ["verify", str(out), str(tmp_path / "t.csv")]).exit_code == 0
    said = runner.invoke(app, ["predict", str(out), str(tmp_path / "t.csv"), "--proba"])
    assert said.exit_code == 0
    assert len(said.stdout.splitlines()) == 201
    said = runner.invoke(app, ["predict", str(out), str(tmp_path / "t.csv"), "--sets", "0.9"])
    assert said.exit_code == 0
    assert "marginal" in said.output
    refused = runner.invoke(app, ["compare", str(out), str(out), str(tmp_path / "t.csv")])
    assert refused.exit_code == 2
    assert "fitted to every row" in refused.output
    (tmp_path / "u.csv").write_text("\n".join([*lines[:-1], lines[1]]))
    assert runner.invoke(app, ["verify", str(out), str(tmp_path / "u.csv")]).exit_code == 1


def test_explanations_are_of_the_first_fold():
    study = learnt(columns(150, 7))
    said = study.explain()
    assert sum(map(sum, zip(*(said.confusion[name] for name in said.confusion if name != "true")))) == 50
    assert set(said.hardest["row"]) <= set(study.folds[0].held.tolist())
