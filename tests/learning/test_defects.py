"""What a person met who had read the README alone: tables as they are, and learners that fail on some."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

import assay
from assay.cli.app import app
from assay.ensemble import GradientBoostingClassifier
from assay.neighbors import KNeighborsClassifier, LearningVectorQuantization


def rows(seed=0, n=300):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return x, rng.normal(size=n), np.where(x + 0.3 * rng.normal(size=n) > 0, "yes", "no")


def learnt(table, **more):
    return assay.learn(table, "y", **{"learners": ["LogisticRegression"], "trials": 2, "workers": 0, **more})


@pytest.mark.parametrize("seed", range(5))
def test_prototypes_of_eleven_classes_stay_where_the_rows_are(seed):
    """693 rows of 11 classes: prototypes ran away and indices went beyond the classes, for every seed."""
    rng = np.random.default_rng(7)
    y = rng.integers(0, 11, 693)
    X = rng.normal(size=(693, 10)) + 1.5 * rng.normal(size=(11, 10))[y]
    model = LearningVectorQuantization(random_state=seed).fit(X, y)
    assert np.abs(model.prototypes_).max() <= np.abs(X).max()
    assert np.mean(model.predict(X) == y) > 0.5


@pytest.mark.parametrize("learners", [["KNeighborsClassifier"], ["LogisticRegression"], ["RandomForestClassifier"]])
def test_two_cells_of_1e300_cost_a_column_and_not_the_run(learners):
    x, z, y = rows()
    z[[6, 72]] = 1e300, -1e300
    study = learnt({"x": x, "z": z, "y": y}, learners=learners)
    assert not {6, 72} & set(study.judged[1].tolist())
    assert [column.name for column in study.model.columns] == ["x"]
    assert any("'z' is left out: it has numbers beyond 1e150" in note for note in study.notes)
    assert study.chosen.holdout_error < 0.25
    with pytest.raises(ValueError, match="no column to learn from"):
        learnt({"z": z, "y": y})


@pytest.mark.parametrize("learner", ["LogisticRegression", "DecisionTreeClassifier", "GradientBoostingClassifier"])
def test_the_model_does_not_know_the_rows_that_are_held_out(learner, tmp_path):
    """Cells of 1e200 among them took the column from the model, which the training rows alone should make."""
    x, z, y = rows(2)
    plain = learnt({"x": x, "z": z, "y": y}, learners=[learner], trials=1)
    held = plain.judged[1]
    for i, value in zip(held, [1e200, -1e200, 1e-200, 1e3, 1e150], strict=False):
        z[i] = value
    y[held[10:20]] = np.where(y[held[10:20]] == "yes", "no", "yes")
    table = {"x": x, "z": z, "y": y}
    study = learnt(table, learners=[learner], trials=1)
    assert study.judged[1].tolist() == held.tolist()
    assert study.model.encoding == plain.model.encoding
    assert study.model.learner.stored().digest() == plain.model.learner.stored().digest()
    assert any("'z' has 3 numbers beyond 1e150" in note for note in study.notes)
    gaps = {**table, "z": np.where(np.abs(z) > 1e150, np.nan, np.where(np.abs(z) < 1e-150, 0.0, z))}
    assert study.model.predict_proba(table).tolist() == study.model.predict_proba(gaps).tolist()
    assert study.explain().importance["column"][0] == "x"
    lines = [f"{a!r},{b!r},{label}" for a, b, label in zip(x.tolist(), z.tolist(), y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["x,z,y", *lines]))
    study.save(tmp_path / "m.assay")
    said = CliRunner().invoke(app, ["verify", str(tmp_path / "m.assay"), str(tmp_path / "t.csv")])
    assert said.exit_code == 0, said.output


def test_neighbours_predict_beside_cells_of_1e300():
    x, z, y = rows()
    z[[5, 70]] = 1e300, -1e300
    assert np.mean(KNeighborsClassifier().fit(np.c_[x, z], y).predict(np.c_[x, z]) == y) > 0.8


def test_boosting_that_diverges_says_so():
    rng = np.random.default_rng(1)
    y = rng.choice(7, size=600, p=[0.48, 0.36, 0.06, 0.05, 0.03, 0.015, 0.005])
    X = 3 * rng.normal(size=(600, 8)) + rng.normal(size=(7, 8))[y]
    with pytest.warns(ConvergenceWarning, match="lower learning_rate"):
        GradientBoostingClassifier(learning_rate=1.0, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GradientBoostingClassifier(random_state=0, n_estimators=20).fit(X, y)


@pytest.mark.parametrize("gap", ["-", "None", ".", "missing"])
@pytest.mark.parametrize("form", ["{:.1f}%", "${:.2f}", "{:,.1f}"])
def test_numbers_written_as_people_write_them_are_numbers(gap, form, tmp_path):
    x, z, y = rows(1)
    cells = [gap if i % 15 == 0 else form.format(1000 * value) for i, value in enumerate(x)]
    lines = [f'"{cell}",{b:.4f},{label}' for cell, b, label in zip(cells, z, y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["x,z,y", *lines]))
    study = learnt(str(tmp_path / "t.csv"))
    assert [column.kind for column in study.model.columns] == ["numeric", "numeric"]
    assert study.chosen.holdout_error < 0.2


def test_constant_columns_alone_are_refused():
    with pytest.raises(ValueError, match="same value in every row"):
        learnt({"a": np.ones(100), "b": ["u"] * 100, "y": rows()[2][:100]})


def test_columns_are_judged_by_the_training_rows_alone():
    """A column that is constant but for one hold-out row tells the model nothing, whatever that row holds."""
    x, z, y = rows(2)
    plain = learnt({"x": x, "z": z, "y": y})
    one = np.zeros(300)
    one[plain.certificate.split["holdout"][0]] = 1.0
    study = learnt({"x": x, "c": one, "y": y})
    assert [column.name for column in study.model.columns] == ["x"]


def test_a_duplicate_table_with_an_unnamed_index_dates_and_an_empty_column():
    frame = pytest.importorskip("pandas").DataFrame
    x, _, y = rows(3)
    days = np.datetime64("2024-01-01") + np.arange(300).astype("timedelta64[D]")
    y = y.astype(object)
    y[:4] = None
    study = learnt(frame({"x": x, "when": days, "e": [None] * 300, "y": y}))
    assert {column.name: column.kind for column in study.model.columns} == {"x": "numeric", "when": "date"}
    assert any("4 of 300 rows have no value of the target" in note for note in study.notes)
    assert any("'e' is left out" in note for note in study.notes)
    new = frame({"x": x[:5], "when": days[:5]})
    assert study.model.predict_proba(new).shape == (5, 2)
    assert set(study.model.predict(new)) <= {"yes", "no"}
