"""`assay.learn`: each learner sees the table as it can read it, and one that fails ends nothing."""

import numpy as np
import pytest

import assay
from assay.data import read
from assay.ensemble import RandomForestClassifier
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
    model = found.model
    return assay.verify(found.certificate, model, model.encoding.raw(table)[0], model.labels(table)).holds


def test_learn_is_a_public_function_that_reads_frames_and_files(columns, tmp_path):
    found = assay.learn({name: columns[name] for name in ("size", "town", "y")}, "y", learners=TWO)
    assert {one.name for one in found.leaderboard} == set(TWO)
    assert found.leaderboard[0] is found.chosen
    assert holds(found, read(columns))
    assay.save(found.model, tmp_path / "m.assay", found.certificate)
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
    found = assay.learn(table, "y", learners=[kind.__name__])
    assert seen["nominal"] == [1]
    train = found.certificate.split["train"]
    np.testing.assert_array_equal(seen["X"], np.column_stack([columns["gaps"], table.column("town").data])[train])
    assert holds(found, table)


def _fails(error):
    def method(self, *words, **options):
        raise error

    return method


@pytest.mark.parametrize("error", [ValueError("not these rows"), MemoryError(), TypeError("typing"), KeyError("k")])
@pytest.mark.parametrize("method", ["fit", "predict", "evidence"])
def test_a_classifier_that_fails_is_named_and_left_out(method, error, columns, monkeypatch):
    monkeypatch.setattr(Perceptron, method, _fails(error))
    table = {name: columns[name] for name in ("size", "town", "y")}
    found = assay.learn(table, "y", learners=TWO)
    assert found.chosen.name == "LogisticRegression"
    lost = found.leaderboard[-1]
    assert (lost.name, lost.learner) == ("Perceptron", None)
    assert lost.note
    assert str(error) in lost.note


@pytest.mark.parametrize("method", ["fit", "predict", "facts"])
def test_a_regressor_that_fails_is_named_and_left_out(method, columns, monkeypatch):
    first, second = LinearRegression, Ridge
    monkeypatch.setattr(first, method, _fails(MemoryError()))
    table = {name: columns[name] for name in ("size", "town", "amount")}
    found = assay.learn(table, "amount", learners=["LinearRegression", "Ridge"], clip=5.0)
    assert found.chosen.name == second.__name__
    lost = found.leaderboard[-1]
    assert (lost.name, lost.learner, lost.note) == ("LinearRegression", None, "MemoryError.")


def test_a_winner_that_cannot_be_certified_makes_room_and_is_paid_for(columns, monkeypatch):
    """The best of two is left out at the last step; the bound of the other still pays for two."""
    table = {name: columns[name] for name in ("size", "town", "y")}
    best = assay.learn(table, "y", learners=TWO).chosen.name
    kind = {"Perceptron": Perceptron, "LogisticRegression": LogisticRegression}[best]
    monkeypatch.setattr(kind, "facts", _fails(RuntimeError("no certificate today")))
    found = assay.learn(table, "y", learners=TWO)
    assert found.chosen.name != best
    assert found.leaderboard[-1].note == "RuntimeError: no certificate today"
    assert found.certificate.find("P07").params["compared"] == 2


def test_with_no_learner_left_the_reasons_are_said(columns, monkeypatch):
    monkeypatch.setattr(Perceptron, "predict", _fails(RuntimeError("lost")))
    with pytest.raises(ValueError, match=r"no learner could be fitted and certified \(Perceptron: RuntimeError: lost"):
        assay.learn({"size": columns["size"], "y": columns["y"]}, "y", learners=["Perceptron"])
