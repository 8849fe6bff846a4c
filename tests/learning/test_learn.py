"""`assay.learn`: each learner sees the table as it can read it, and one that fails ends nothing."""

import numpy as np
import pytest

import assay
from assay.data import read
from assay.ensemble import RandomForestClassifier
from assay.guarantees.fingerprint import HOLDOUT, permutation
from assay.linear_model import LinearRegression, LogisticRegression, Perceptron, Ridge
from assay.tree import DecisionTreeClassifier

TWO = ["Perceptron", "LogisticRegression"]


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(0)
    size = rng.normal(size=240)
    town = rng.choice(["Ulm", "Bonn", "Kiel"], 240)
    label = np.where(size + (town == "Kiel") + 0.3 * rng.normal(size=240) > 0.3, "yes", "no")
    gaps = np.where(rng.random(240) < 0.1, np.nan, size)
    return {"size": size, "gaps": gaps, "town": town, "y": label, "amount": 3 * size + (town == "Ulm")}


def holds(found, table):
    return assay.verify(found.certificate, found.model, table).holds


def learn(table, target, **more):
    return assay.learn(table, target, **{"workers": 0, "trials": 2, **more})


def test_learn_is_a_public_function_that_reads_frames_and_files(columns, tmp_path):
    found = learn({name: columns[name] for name in ("size", "town", "y")}, "y", learners=TWO)
    assert {one.name for one in found.candidates} == {*TWO, "Baseline"}
    assert found.candidates[0] is found.chosen
    assert holds(found, read(columns))
    assert found.leaderboard["learner"][0] == found.chosen.name
    found.save(tmp_path / "m.assay")
    again = assay.load(tmp_path / "m.assay").model
    table = read(columns)
    assert again.encoding == found.model.encoding
    assert again.predict(table).tolist() == found.model.predict(table).tolist()


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier])
def test_nominal_columns_reach_learners_that_read_them(kind, columns, monkeypatch):
    """The learner sees the table as it is: a number with its gaps, and the codes of the towns."""
    seen = {}
    fit = kind.fit

    def spy(self, X, y, *more):
        seen["X"], seen["nominal"] = X.copy(), self.nominal
        return fit(self, X, y, *more)

    monkeypatch.setattr(kind, "fit", spy)
    table = read({name: columns[name] for name in ("gaps", "town", "y")})
    found = learn(table, "y", learners=[kind.__name__])
    assert seen["nominal"] == [1]
    train = found.certificate.split["train"]
    np.testing.assert_array_equal(seen["X"], np.column_stack([columns["gaps"], table.column("town").data])[train])
    assert holds(found, table)


def _fails(error):
    def method(self, *words, **options):
        raise error

    return method


@pytest.mark.parametrize("error", [ValueError("not these rows"), MemoryError(), TypeError("typing"), KeyError("k")])
@pytest.mark.parametrize("method", ["fit", "predict"])
def test_a_classifier_that_fails_is_named_and_left_out(method, error, columns, monkeypatch):
    monkeypatch.setattr(Perceptron, method, _fails(error))
    table = {name: columns[name] for name in ("size", "town", "y")}
    found = learn(table, "y", learners=TWO)
    assert found.chosen.name == "LogisticRegression"
    lost = found.candidates[-1]
    assert (lost.name, lost.status) == ("Perceptron", "left out")
    assert lost.note
    assert str(error) in lost.note


@pytest.mark.parametrize("method", ["fit", "predict", "facts"])
def test_a_regressor_that_fails_is_named_and_left_out(method, columns, monkeypatch):
    first, second = LinearRegression, Ridge
    monkeypatch.setattr(first, method, _fails(MemoryError()))
    table = {name: columns[name] for name in ("size", "town", "amount")}
    found = learn(table, "amount", learners=["LinearRegression", "Ridge"], clip=5.0)
    assert found.chosen.name == second.__name__
    lost = found.candidates[-1]
    assert (lost.name, lost.status, lost.note) == ("LinearRegression", "left out", "MemoryError.")


def test_a_winner_that_cannot_be_certified_makes_room_and_is_paid_for(columns, monkeypatch):
    """The best of two is left out at the last step; the other has what its share leaves."""
    table = {name: columns[name] for name in ("size", "town", "y")}
    best = learn(table, "y", learners=TWO).chosen.name
    kind = {"Perceptron": Perceptron, "LogisticRegression": LogisticRegression}[best]
    monkeypatch.setattr(kind, "facts", _fails(RuntimeError("no certificate today")))
    found = learn(table, "y", learners=TWO)
    assert found.chosen.name != best
    assert found.candidates[-1].note == "RuntimeError: no certificate today"
    assert float(found.certificate.find("holdout.binomial").delta) < 0.0051
    assert holds(found, read(table))


def test_with_no_learner_left_the_reasons_are_said(columns, monkeypatch):
    monkeypatch.setattr(Perceptron, "predict", _fails(RuntimeError("lost")))
    with pytest.raises(ValueError, match=r"no learner could be fitted and certified \(Perceptron: RuntimeError: lost"):
        learn({"size": columns["size"], "y": columns["y"]}, "y", learners=["Perceptron"])


def test_frames_get_labels_and_probabilities_from_a_loaded_model(columns, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({name: columns[name] for name in ("size", "gaps", "town", "y")})
    found = learn(frame, "y", learners=["LogisticRegression"])
    found.save(tmp_path / "m.assay")
    model = assay.load(tmp_path / "m.assay").model
    shares = model.predict_proba(frame.drop(columns="y").head(7))
    assert shares.shape == (7, 2)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert model.classes_.tolist() == ["no", "yes"]
    assert (model.classes_[shares.argmax(axis=1)] == model.predict(frame.head(7))).all()
    assert model.score(frame) > 0.8


def test_the_holdout_rows_are_kept_for_explanations(columns):
    found = learn({name: columns[name] for name in ("size", "town", "y")}, "y", learners=TWO)
    rows, y = found.holdout
    pytest.importorskip("matplotlib")
    assert len(found.plot().axes[0].patches) == 3
    assert rows.n_rows == len(y) == 60
    assert found.chosen.holdout_error == np.mean(found.model.predict(rows) != y)


def test_worker_processes_find_what_this_process_finds(columns):
    """The same settings, judged in other processes, to the bit."""
    table = {name: columns[name] for name in ("size", "gaps", "town", "y")}
    asked = {"learners": ["LinearDiscriminantAnalysis", "LogisticRegression"], "trials": 4}
    here, there = learn(table, "y", **asked), learn(table, "y", **asked, workers=2)
    told = [[(one.name, one.settings, one.losses, one.bound) for one in found.candidates] for found in (here, there)]
    assert told[0] == told[1]
    assert here.certificate.model == there.certificate.model


def test_the_holdout_bound_pays_little_for_the_finalists():
    from decimal import Decimal

    from assay.learning.finalists import shares
    from assay.theory.concentration import clopper_pearson_upper

    for count in (1, 2, 3):
        parts = shares(Decimal("0.05"), count)
        assert sum(parts) <= Decimal("0.05")
        for errors, rows in ((0, 20), (3, 50), (40, 400)):
            alone = clopper_pearson_upper(errors, rows, 0.05)
            assert clopper_pearson_upper(errors, rows, float(parts[0])) <= 1.10 * alone


def test_a_study_that_is_told_to_stop_keeps_what_it_has(columns):
    judged = []

    def tell(event):
        if type(event).__name__ == "Finished":
            judged.append(event.candidate.name)

    table = {name: columns[name] for name in ("size", "town", "y")}
    found = learn(table, "y", trials=None, time=60, stop=lambda: len(judged) >= 1, tell=tell)
    assert found.chosen.name == judged[0]
    assert len(found.candidates) == 2  # and the baseline


def test_a_stop_that_is_asked_for_before_there_is_a_result_waits_for_one(columns):
    table = {name: columns[name] for name in ("size", "town", "y")}
    found = learn(table, "y", trials=None, time=60, stop=lambda: True)
    assert len(found.candidates) == 2  # and the baseline
    assert found.certificate is not None


def test_hold_out_rows_of_classes_that_no_training_row_has_are_errors(columns):
    held = np.sort(permutation(240, 0, HOLDOUT)[:60])
    y = columns["y"].astype(object).copy()
    y[held[0]] = "never seen"
    table = {"size": columns["size"], "y": y.tolist()}
    found = learn(table, "y", learners=["LogisticRegression"])
    assert holds(found, table)
    assert found.model.classes_.tolist() == ["no", "yes"]
    assert any("1 of 60 hold-out rows have a class that no training row has (never seen)" in one for one in found.notes)
    assert found.rows == (180, 60)
    told = found.model.predict(table)[held]
    assert found.chosen.holdout_error == np.mean(told != y[held])
    assert found.certificate["holdout.binomial"].params["errors"] == np.sum(told != y[held])


def test_a_worthless_model_is_said_to_be_worthless():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(200) < 0.2, "rare", "common")
    found = learn({"noise": rng.normal(size=200), "y": y}, "y", learners=["KNeighborsClassifier"])
    assert "not proved to beat" in found.why or "no evidence" in found.why
    assert found.baseline.note == "always common"


@pytest.mark.parametrize("metric", ["balanced", "logloss", "auc", "brier", "f1"])
def test_what_is_minimised_is_the_users(metric, columns):
    table = {name: columns[name] for name in ("size", "town", "y")}
    found = learn(table, "y", metric=metric, learners=["LogisticRegression", "Perceptron"])
    assert found.chosen.name == "LogisticRegression" or metric == "f1"
    assert holds(found, read(table))


def test_a_cost_matrix_moves_the_decisions(columns):
    table = {name: columns[name] for name in ("size", "town", "y")}
    plain = learn(table, "y", learners=["LogisticRegression"])
    dear = learn(table, "y", cost=[[0, 1], [50, 0]], learners=["LogisticRegression"])
    assert np.sum(dear.model.predict(table) == "yes") > np.sum(plain.model.predict(table) == "yes")
    assert dear.certificate.find("cost.holdout").value < 5


def test_groups_stay_together_and_the_newest_rows_are_held_out(columns):
    table = {"size": columns["size"], "who": np.repeat(np.arange(24.0), 10), "y": columns["y"]}
    found = learn(table, "y", group="who", learners=["LogisticRegression"])
    split, who = found.certificate.split, table["who"]
    assert not set(who[split["train"]]) & set(who[split["holdout"]])
    assert "who" not in [column.name for column in found.model.columns]
    bounds = [claim.name for claim in found.certificate.claims if not claim.is_fact]
    assert bounds == ["holdout.groups", "holdout.groups-baseline"], "other bounds count rows as independent draws"
    assert found.chosen.bound == found.certificate.find("holdout.groups").value
    assert found.model.memory is None
    assert "In new groups like these" in found.why
    assert holds(found, table)
    found = learn(table, "y", time_column="who", learners=["LogisticRegression"])
    assert who[found.certificate.split["holdout"]].min() > who[found.certificate.split["train"]].max()


def test_counts_are_not_silently_classes():
    from assay.learning.problem import _task_of

    def task(values):
        notes = []
        return _task_of(read({"n": np.asarray(values, dtype=float)}).column("n"), notes), len(notes)

    assert task([0, 1] * 10) == ("classify", 1)
    assert task([1, 2, 3] * 10) == ("classify", 1)
    assert task([0, 3, 7, 12] * 10) == ("regress", 1)
    assert task(np.linspace(0, 1, 30)) == ("regress", 0)


@pytest.mark.parametrize(
    "holdout", [0, 1.0, -0.2, "half", {"y": ["a"]}], ids=["none", "all", "negative", "text", "table"]
)
def test_a_holdout_share_that_is_none_is_refused(holdout):
    with pytest.raises(ValueError, match="holdout must be a share of the rows"):
        assay.learn({"x": [1.0, 2.0], "y": ["a", "b"]}, "y", holdout=holdout)
