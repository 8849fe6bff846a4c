"""`predict`, `verify` and `compare` as other programs run them: columns kept, JSON, exit codes."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import assay
from assay.claims.directory import code
from assay.claims.document import digest
from assay.cli.app import app


def frame(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    name = [f'=row {i}, "q"' for i in range(rows)]
    town = rng.choice(["Ulm", "Bonn"], rows)
    return pd.DataFrame(
        {"name": name, "x": x, "town": town, "y": np.where(x + 0.2 * rng.normal(size=rows) > 0, "b", "a")}
    )


def run(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("jobs")
    frame().to_csv(place / "t.csv", index=False)
    frame(300, 1).drop(columns="y").to_csv(place / "new.csv", index=False)
    frame(300, 1).drop(columns="y").to_parquet(place / "new.parquet")
    frame(300, 1).assign(x=7.0).to_csv(place / "moved.csv", index=False)
    study = assay.learn(str(place / "t.csv"), "y", learners=["DecisionTreeClassifier"], trials=1, workers=0)
    study.save(place / "m.assay")
    worse = assay.learn(frame().assign(x=0.0), "y", learners=["GaussianNB"], trials=1, workers=0, seed=1)
    worse.save(place / "worse.assay")
    return place


@pytest.fixture(scope="module")
def wanted(folder):
    return assay.load(folder / "m.assay").model.predict(frame(300, 1)).tolist()


@pytest.mark.parametrize("source", ["new.csv", "new.parquet"])
@pytest.mark.parametrize("out", ["p.csv", "p.parquet"])
def test_columns_are_kept_beside_the_predictions(folder, wanted, source, out, tmp_path):
    done = run("predict", folder / "m.assay", folder / source, "--keep", "name,x", "--out", tmp_path / out, "--raw")
    assert done.exit_code == 0, done.output
    found = pd.read_csv(tmp_path / out) if out.endswith("csv") else pd.read_parquet(tmp_path / out)
    new = frame(300, 1)
    assert list(found.columns) == ["name", "x", "prediction"]
    assert found["prediction"].tolist() == wanted
    assert found["name"].tolist() == new["name"].tolist()
    assert found["x"].astype(float).tolist() == pytest.approx(new["x"].tolist())


def test_all_columns_and_an_identifier_are_kept_in_small_parts(folder, wanted, monkeypatch):
    monkeypatch.setattr("assay.cli.predicting.rows_at_once", lambda columns: 7)
    done = run("predict", folder / "m.assay", folder / "new.csv", "--keep", "all")
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert list(rows[0]) == ["name", "x", "town", "prediction"]
    assert rows[0]["name"] == '\'=row 0, "q"'  # safe for spreadsheets unless --raw
    assert [row["prediction"] for row in rows] == wanted
    assert run("predict", folder / "m.assay", folder / "new.csv", "--id", "name").stdout.startswith("name,prediction")


def test_columns_that_are_not_there_or_have_the_name_of_an_answer_are_refused(folder, tmp_path):
    absent = run("predict", folder / "m.assay", folder / "new.csv", "--keep", "nome")
    assert absent.exit_code == 2
    assert "--keep nome: there is no such column" in absent.output
    frame(20).assign(prediction="x").to_csv(tmp_path / "t.csv", index=False)
    same = run("predict", folder / "m.assay", tmp_path / "t.csv", "--keep", "prediction")
    assert same.exit_code == 2
    assert "a column of the predictions has this name" in same.output


def test_json_has_predictions_notes_and_the_certificate(folder, wanted, tmp_path):
    done = run("predict", folder / "m.assay", folder / "new.csv", "--json", "--proba", "--id", "name")
    found = json.loads(done.stdout)
    assert done.stderr == ""
    assert [row["prediction"] for row in found["predictions"]] == wanted
    assert found["predictions"][0]["name"] == '=row 0, "q"'
    assert sum(found["predictions"][0][f"probability of {one}"] for one in "ab") == pytest.approx(1)
    assert (found["rows"], found["drift"]) == (300, [])
    assert found["certificate"] == digest(assay.load(folder / "m.assay").certificate)
    done = run("predict", folder / "m.assay", folder / "moved.csv", "--json", "--out", tmp_path / "p.csv")
    found = json.loads(done.stdout)
    assert "predictions" not in found
    assert found["drift"] == ["x"]
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 301


@pytest.mark.parametrize(("source", "options", "code"), [
    ("new.csv", ["--fail-on-drift"], 0), ("moved.csv", ["--fail-on-drift"], 3), ("moved.csv", [], 0),
    ("none.csv", ["--fail-on-drift"], 2),
])  # fmt: skip
def test_rows_that_look_otherwise_can_end_with_a_code_of_their_own(folder, source, options, code):
    done = run("predict", folder / "m.assay", folder / source, *options)
    assert done.exit_code == code
    assert ("do not look like those" in done.stderr) == (source == "moved.csv")


def test_verify_tells_a_program_what_it_tells_a_person(folder):
    done = run("verify", folder / "m.assay", folder / "t.csv", "--json")
    found = json.loads(done.stdout)
    certificate = assay.load(folder / "m.assay").certificate
    assert done.exit_code == 0
    assert found["holds"]
    assert [one["code"] for one in found["claims"]] == [code(one.name) for one in certificate]
    assert {one["verdict"] for one in found["claims"]} <= {"PROVED", "PROVED-GIVEN"}
    assert found["if"]
    done = run("verify", folder / "m.assay", folder / "moved.csv", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["holds"] is False
    assert json.loads(done.stdout)["reason"]


def test_compare_tells_a_program_who_is_better(folder, tmp_path):
    frame(500, 9).to_csv(tmp_path / "more.csv", index=False)
    done = run("compare", folder / "m.assay", folder / "worse.assay", tmp_path / "more.csv", "--json")
    found = json.loads(done.stdout)
    assert found["verdict"] == "first"
    assert found["losses"][0] < found["losses"][1]
    assert found["high"] < 0
    assert found["rows"] == 500
