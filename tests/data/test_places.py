"""Files as people have them: other encodings, packed, JSON, Excel. The oracle is the same table, saved by pandas."""

import gzip
import json
import zipfile
from datetime import datetime

import pandas as pd
import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.data import raw_chunks, raw_table, read
from assay.data.places import Content, form_of, guessed_encoding
from assay.data.records import from_records

GERMAN = pd.DataFrame({"größe": [1.5, 2.0, 3.25] * 4, "straße": ["Müllerweg", "Café", "Œuvre"] * 4})
CHINESE = pd.DataFrame({"城市": ["北京", "上海", "广州", "重庆"] * 3, "价格": [1.0, 2.0, 3.5, 4.0] * 3})
KEPT = [(GERMAN, "utf-8"), (GERMAN, "utf-8-sig"), (GERMAN, "utf-16"), (GERMAN, "cp1252"), (CHINESE, "gbk")]
KEPT += [(CHINESE, "gb18030"), (CHINESE, "utf-16"), (CHINESE, "utf-8")]


def cells(source, **more):
    return {name: raw_table(source, **more).text(name).tolist() for name in raw_table(source).names}


def expected(frame):
    return {name: [str(one) for one in column] for name, column in frame.items()}


@pytest.mark.parametrize(("frame", "encoding"), KEPT)
def test_encodings_are_told_by_the_bytes_and_said(frame, encoding, tmp_path):
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False, encoding=encoding)
    table = raw_table(path)
    assert cells(path) == expected(frame)
    assert ("is not UTF-8; it was read as" in table.note) == (not encoding.startswith("utf-8"))
    streamed = list(raw_chunks(path, 5, list(frame.columns)))
    assert [one.n_rows for one in streamed] == [5, 5, 2]
    assert streamed[0].note == table.note
    assert [cell for one in streamed for cell in one.text(frame.columns[0])] == expected(frame)[frame.columns[0]]


@pytest.mark.parametrize("word", ["Müller", "é", "naïve façade", "Ångström", "à la carte", "Ñandú"])
def test_western_words_are_not_taken_for_chinese(word):
    assert guessed_encoding(f"name\n{word}\n".encode("cp1252")) == "cp1252"


SIDE_BY_SIDE = ["geöäst", "ää", "ääni", "PÄÄTÖS", "Ääretön", "TÄÖT", "créée", "öö", "«Évidemment»", "¿Él?", "thé»"]


@pytest.mark.parametrize("word", SIDE_BY_SIDE)
def test_two_accented_letters_side_by_side_are_not_taken_for_chinese(word):
    for text in (f"name,x\n{word},1\nplain,2\n", f"x,{word}\n" + "1,a\n" * 50):
        assert guessed_encoding(text.encode("cp1252")) == "cp1252"


@pytest.mark.parametrize("word", ["年", "股", "A股", "B超", "维生素C", "iPhone手机", "男", "是", "否", "价格"])
def test_a_chinese_word_alone_is_chinese(word):
    for text in (f"name,x\n{word},1\nplain,2\n", f"x,{word}\n" + "1,a\n" * 50):
        assert guessed_encoding(text.encode("gbk")) == "gb18030"


def test_what_is_no_text_stays_what_it_was():
    assert guessed_encoding(b"\x89PNG\r\n\x1a\n\0\xff") == "UTF-8"
    assert guessed_encoding(b"\x81\x8d\n") == "latin-1"


def test_an_encoding_that_ends_in_the_middle_is_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes("a,b\n1,x\n".encode("utf-16")[:-1])
    with pytest.raises(ValueError, match="not all in one encoding"):
        read(tmp_path / "t.csv")


@pytest.mark.parametrize("name", ["t.csv.gz", "t.csv.zip", "t.zip", "t.jsonl.gz", "t.jsonl.zip"])
def test_packed_files(name, tmp_path):
    form = "json lines" if "json" in name else "csv"
    assert form_of(name) == form
    text = GERMAN.to_json(orient="records", lines=True) if form == "json lines" else GERMAN.to_csv(index=False)
    path = tmp_path / name
    if name.endswith("gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inside.txt", text)
    assert cells(path) == expected(GERMAN) | ({"größe": ["1.5", "2", "3.25"] * 4} if form == "json lines" else {})


def test_archives_that_hold_no_single_table_are_refused(tmp_path):
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "a\n1\n")
        archive.writestr("b.csv", "a\n1\n")
    with pytest.raises(ValueError, match="holds 2 files"):
        read(path)
    path.write_bytes(b"PK no archive")
    with pytest.raises(ValueError, match="cannot be read as a zip archive"):
        read(path)


def test_json_is_records_with_types(tmp_path):
    frame = pd.DataFrame({"a": [1.0, None, 3.0], "b": ["x", "y", None], "c": [True, False, True]})
    frame.to_json(tmp_path / "t.json", orient="records")
    frame.to_json(tmp_path / "t.ndjson", orient="records", lines=True)
    for name in ("t.json", "t.ndjson"):
        table = read(tmp_path / name)
        assert [column.kind for column in table.schema] == ["numeric", "nominal", "nominal"]
        assert table.column("a").data[[0, 2]].tolist() == [1.0, 3.0]
        assert table.column("a").missing.tolist() == [False, True, False]
        assert table.column("c").type.levels == ("False", "True")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.json", "[1, 2]", "row 0 .* is not an object"),
        ("t.json", "[]", "must hold a list of records"),
        ("t.json", "[" * 100_000, "cannot be read as JSON"),
        ("t.jsonl", '{"a": 1}\n{"a"', "cannot be read as JSON"),
        ("t.jsonl", '{"a": [1]}', "column 'a' holds lists or objects"),
    ],
)
def test_json_that_is_no_table_is_refused(name, text, message, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        read(tmp_path / name)


def test_excel_as_pandas_writes_it(tmp_path):
    pytest.importorskip("openpyxl")
    when = [datetime(2024, 1, day, 12) for day in (1, 2, 3)]
    frame = pd.DataFrame({"n": [1.5, None, 3.0], "城市": ["北京", "x", None], "when": when, "mixed": [1, "a", 2.0]})
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    table = raw_table(tmp_path / "t.xlsx")
    assert table.names == list(frame.columns)
    assert table.text("mixed").tolist() == ["1", "a", "2"]
    assert [column.kind for column in table.typed().schema] == ["numeric", "nominal", "date", "nominal"]
    assert table.typed().column("when").data.tolist() == [one.timestamp() for one in frame["when"]]
    (tmp_path / "bad.xlsx").write_bytes(b"no workbook")
    with pytest.raises(ValueError, match="cannot be read as an Excel workbook"):
        read(tmp_path / "bad.xlsx")


def test_records_of_which_each_has_a_column_of_its_own_are_no_table(tmp_path):
    few, many = ([{"x": 1, f"a{i}": 0} for i in range(n)] for n in (200, 3000))
    (tmp_path / "few.json").write_text(json.dumps(few))
    (tmp_path / "many.json").write_text(json.dumps(many))
    assert len(raw_table(tmp_path / "few.json").names) == 201
    with pytest.raises(ValueError, match="3000 rows and 3001 columns or more would be nearly empty"):
        raw_table(tmp_path / "many.json")
    assert from_records(many, "here", {"x"}).to_pydict() == {"x": [1.0] * 3000}


@pytest.mark.parametrize(
    "number", [1, 1.0, -0.0, 1.5, 1e-7, 0.1, 1e15, 1e16, 2.0**53, 1e300, float("inf"), float("nan"), True]
)
def test_a_number_is_spelled_alike_whatever_is_beside_it(number):
    """A request to `assay serve` is read beside others, and must be answered as if it came alone."""
    alone, beside = (from_records([{"a": one} for one in cells], "here") for cells in ([number], [number, "text"]))
    assert raw_table(alone).text("a")[0] == raw_table(beside).text("a")[0]


def workbook(path, rows):
    """Write a sheet of which only the XML is given, row by row."""
    openpyxl = pytest.importorskip("openpyxl")
    openpyxl.Workbook().save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    members["xl/worksheets/sheet1.xml"] = (
        f'<worksheet xmlns="{space}"><sheetData>{rows}</sheetData></worksheet>'.encode()
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_one_cell_far_away_does_not_make_a_sheet_large(tmp_path):
    cell = '<row r="{0}"><c r="{1}{0}"><v>{0}</v></c></row>'
    wide = "".join(cell.format(i, "XFD") for i in range(1, 2001))
    with pytest.raises(ValueError, match="16384 columns or more would be nearly empty"):
        raw_table(workbook(tmp_path / "wide.xlsx", wide))
    deep = cell.format(1, "A") + cell.format(2, "A") + cell.format(10**12, "A")
    with pytest.raises(ValueError, match="1048576 rows and 1 columns or more would be nearly empty"):
        raw_table(workbook(tmp_path / "deep.xlsx", deep))
    apart = cell.format(1, "A") + cell.format(2, "A") + cell.format(10**6, "A")  # rows between them are none
    assert raw_table(workbook(tmp_path / "apart.xlsx", apart)).text("1").tolist() == ["2", "1000000"]


def test_bytes_in_memory_are_a_csv_file():
    assert cells(Content(b"a;b\n1;x\n2;y\n")) == {"a": ["1", "2"], "b": ["x", "y"]}
    with pytest.raises(ValueError, match="the request lacks the column c"):
        raw_table(Content(b"a,b\n1,2\n", "the request"), only=["c"])


def test_the_model_of_one_encoding_predicts_for_another_and_both_are_said(tmp_path):
    frame = pd.concat([CHINESE] * 10).assign(贵=["否", "否", "是", "是"] * 30)
    frame.to_csv(tmp_path / "t.csv", index=False, encoding="gbk")
    frame.to_csv(tmp_path / "new.csv", index=False, encoding="utf-16")
    run = CliRunner()
    files = ["--out", str(tmp_path / "m.assay"), "--report", str(tmp_path / "r.html")]
    options = ["--target", "贵", "--learners", "LogisticRegression", "--trials", "1", "--workers", "0"]
    learnt = run.invoke(app, ["learn", str(tmp_path / "t.csv"), *options, *files])
    assert learnt.exit_code == 0, learnt.output
    assert "read as GB18030" in " ".join(learnt.stdout.split())
    verified = run.invoke(app, ["verify", str(tmp_path / "m.assay"), str(tmp_path / "t.csv")])
    assert verified.exit_code == 0, verified.output
    predicted = run.invoke(app, ["predict", str(tmp_path / "m.assay"), str(tmp_path / "new.csv")])
    assert predicted.stdout.splitlines() == ["prediction", *frame["贵"]]
    assert "read as UTF-16" in predicted.stderr
