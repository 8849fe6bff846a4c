"""Tables that are read in parts: the verdict is that of the whole table, and no part escapes it."""

import base64
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import assay
from assay.claims.document import from_json, to_json
from assay.data import names, raw_table
from assay.learning import model

ROWS = 230


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=ROWS)
    job = rng.choice(["cook", "clerk", "judge"], size=ROWS)
    y = np.where(x + (job == "cook") + rng.normal(size=ROWS) > 0, "yes", "no").astype(object)
    y[[3, 100]] = None  # rows without a target, which no set has
    return pa.table({"x": x, "job": job, "y": y})


@pytest.fixture(scope="module")
def study(table):
    return assay.learn(table, "y", learners=["LogisticRegression"], trials=1, workers=0)


@pytest.fixture
def file(table, tmp_path, monkeypatch):
    monkeypatch.setattr(model, "rows_at_once", lambda columns: 40)
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=64)
    return tmp_path / "rows.parquet"


def test_a_file_in_parts_has_the_verdict_of_the_whole(study, file, table):
    parts = [len(part["x"]) for part, _ in model.StreamedCells(study.model, study.certificate, file).parts()]
    assert parts == [40] * 5 + [30]
    report, whole = (assay.verify(study.certificate, study.model, one) for one in (file, table))
    assert report.holds
    assert whole.holds
    assert [one.measured for one in report.verdicts] == [one.measured for one in whole.verdicts]


@pytest.mark.parametrize("row", [0, 120, ROWS - 1])
def test_a_row_of_any_part_that_is_predicted_otherwise_is_found(study, file, row, monkeypatch):
    used, seen = type(study.model).used, []

    def other(self, part):
        found, first = used(self, part), sum(seen)
        seen.append(part.n_rows)
        if first <= row < first + part.n_rows:
            found.said[row - first] = "no" if found.said[row - first] == "yes" else "yes"
        return found

    monkeypatch.setattr(type(study.model), "used", other)
    report = assay.verify(study.certificate, study.model, file)
    assert not report.holds
    assert "predicted otherwise" in report.reason


@pytest.mark.parametrize("row", [0, ROWS - 1])
def test_a_cell_of_any_part_that_is_changed_is_found(study, file, table, row):
    x = table.column("x").to_numpy().copy()
    x[row] += 1e-9
    pq.write_table(table.set_column(0, "x", pa.array(x)), file, row_group_size=64)
    assert not assay.verify(study.certificate, study.model, file).holds


@pytest.mark.parametrize("named", ["rows", "rows/part-*.parquet"])
def test_a_folder_of_files_is_one_table(named, study, table, tmp_path, monkeypatch):
    monkeypatch.setattr(model, "rows_at_once", lambda columns: 40)
    folder = tmp_path / "rows"
    folder.mkdir()
    for k, start in enumerate((0, 10, 150)):
        pq.write_table(table.slice(start, [10, 140, ROWS][k]), folder / f"part-{k}.parquet")
    source = tmp_path / named
    assert raw_table(source).arrow.equals(table)
    assert names(str(source)) == ["x", "job", "y"]
    assert assay.verify(study.certificate, study.model, source).holds
    assert np.array_equal(study.model.predict(source), study.model.predict(table))
    again = assay.learn(source, "y", learners=["LogisticRegression"], trials=1, workers=0)
    assert again.certificate.data == study.certificate.data


def test_an_arrow_data_set_is_a_table(table, file):
    import pyarrow.dataset as ds

    assert raw_table(ds.dataset(file)).arrow.equals(table)


def test_a_folder_without_files_is_refused(tmp_path):
    with pytest.raises(ValueError, match="folder"):
        raw_table(tmp_path)


@pytest.mark.parametrize("way", ["newest", "gaps", "numbers"])
def test_a_part_without_rows_to_certify_is_no_obstacle(table, way, tmp_path, monkeypatch):
    """All hold-out rows at the end, and a part in which no row has a target: a prediction for no rows was asked for."""
    monkeypatch.setattr(model, "rows_at_once", lambda columns: 40)
    x = table.column("x").to_numpy()
    target = table.column("y").to_pylist() if way != "numbers" else x + np.sin(np.arange(ROWS))
    told = [None if way != "newest" and 70 <= i < 125 else y for i, y in enumerate(target)]
    rows = pa.table({"x": x, "at": np.arange(ROWS), "y": told})
    options = {"time_column": "at"} if way != "gaps" else {}
    learner = "Ridge" if way == "numbers" else "LogisticRegression"
    found = assay.learn(rows, "y", learners=[learner], trials=1, workers=0, **options)
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=64)
    for source in (rows, tmp_path / "rows.parquet"):
        report = assay.verify(found.certificate, found.model, source)
        assert report.holds, report.reason


def test_bits_behind_those_of_the_rows_say_nothing(study):
    """The certificate is the same, and so is its digest."""
    record = json.loads(to_json(study.certificate))
    split = record["split"]
    bits = np.frombuffer(base64.b64decode(split["holdout"]), dtype=np.uint8).copy()
    assert split["rows"] % 8
    bits[-1] |= 1
    split["holdout"] = base64.b64encode(bits.tobytes()).decode()
    assert to_json(from_json(json.dumps(record))) == to_json(study.certificate)
