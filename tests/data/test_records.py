"""Tables of JSON and of Arrow's rarer types are read right, or refused."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import assay
from assay.data import raw_table, read
from assay.data.records import from_json


@pytest.mark.parametrize("text", ['{"x": 1, "y": "a", "x": 2}', '[{"x": 1}, {"x": 2, "x": 2}]'])
def test_a_key_that_is_there_twice_is_refused(text, tmp_path):
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="the key 'x' twice"):
        read(path)
    with pytest.raises(ValueError, match="the key 'x' twice"):
        from_json(text)


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x0b", "\x1c"])
def test_lines_of_json_end_with_a_line_feed_alone(sign, tmp_path):
    """Python's `splitlines` knows more line ends, all but two of which JSON strings may hold as they are."""
    path = tmp_path / "t.jsonl"
    rows = [{"x": i, "y": f"a{sign}b" if i % 2 else "c"} for i in range(4)]
    text = "\r\n".join(json.dumps(row, ensure_ascii=sign < "\x20") for row in rows)
    path.write_text(text, newline="")
    assert read(path).column("y").values().tolist() == [row["y"] for row in rows]


@pytest.mark.parametrize(("zone", "hours"), [("+14:00", -14), ("-12:00", 12), ("+2359", -23 - 59 / 60), ("-00", 0)])
def test_time_zones_are_read(zone, hours):
    rows = {"t": [f"2024-01-0{day}T00:00:00{zone}" for day in (1, 2, 3)]}
    first = np.datetime64("2024-01-01").astype("datetime64[s]").astype(float)
    assert read(rows).column("t").data[0] == pytest.approx(first + 3600 * hours, abs=1e-6)


@pytest.mark.parametrize("zone", ["+99:99", "+24:00", "-12:60", "+2400"])
def test_what_is_no_time_zone_makes_no_date(zone):
    column = read({"t": [f"2024-01-0{day}T00:00:00{zone}" for day in (1, 2, 3)]}).column("t")
    assert column.type.kind == "nominal"


def arrow_columns(rows):
    rng = np.random.default_rng(0)
    names = pa.array([str(one) for one in rng.choice(["a", "b", "c"], rows)])
    runs = pa.RunEndEncodedArray.from_arrays(
        pa.array(np.arange(1, rows // 2 + 1) * 2, pa.int32()), pa.array(rng.normal(size=rows // 2))
    )
    return {
        "time64[ns]": pa.array(rng.integers(0, 86_400 * 10**9, rows), pa.time64("ns")),
        "string_view": names.cast(pa.string_view()),
        "runs": runs,
    }


@pytest.mark.parametrize("kind", ["time64[ns]", "string_view", "runs"])
def test_certificates_of_rarer_types_hold(kind, tmp_path):
    rows = 160
    x = np.random.default_rng(1).normal(size=rows)
    table = pa.table({"x": x, "c": arrow_columns(rows)[kind], "y": np.where(x > 0, "yes", "no")})
    sources = [table]
    if kind != "runs":  # which Parquet does not hold
        pq.write_table(table, tmp_path / "t.parquet")
        sources.append(tmp_path / "t.parquet")
    for source in sources:
        study = assay.learn(source, "y", learners=["LogisticRegression"], trials=1, workers=0)
        assert "c" in [column.name for column in study.model.columns]
        report = assay.verify(study.certificate, study.model, source)
        assert report.holds, report.reason
    assert raw_table(table).take([1, 3]).n_rows == 2


def test_numbers_that_count_as_missing_are_told():
    """Beyond 1e150 no certificate holds, so that such a number is a gap; predictions of it say so."""
    column = read({"x": [1.0, 1e200, -1e151, 1e-200]}).column("x")
    assert str(column.unread) == "2 numbers beyond 1e150 are missing values"
    assert read({"x": [1.0, 1e150]}).column("x").unread == ""
    texts = [f"{i}.5" for i in range(40)] + ["1e200", "much"]
    told = str(read({"x": texts}).column("x").unread)
    assert "'much'" in told
    assert "1 numbers beyond" in told
