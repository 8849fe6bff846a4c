"""Tables that are read in parts: the verdict is that of the whole table, and no part escapes it."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import assay
from assay.learning import cells

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
    monkeypatch.setattr(cells, "rows_at_once", lambda columns: 40)
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=64)
    return tmp_path / "rows.parquet"


def test_a_file_in_parts_has_the_verdict_of_the_whole(study, file, table):
    parts = [len(part["x"]) for part, _ in cells.StreamedCells(study.model, study.certificate, file).parts()]
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
