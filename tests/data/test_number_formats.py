"""Tables as people write them: each form gives the numbers of the plain table, the same model and the same error."""

import io
import json

import numpy as np
import pyarrow as pa
import pytest

import assay
from assay.data import Column, ColumnType, Table, chunks, names, read
from assay.data.number_formats import GAPS, Style
from assay.data.places import Stdin

RNG = np.random.default_rng(3)
N = 300
AMOUNT = np.round(RNG.lognormal(8, 1.2, N), 2)
LABEL = np.where(np.log(AMOUNT) + 0.4 * RNG.normal(size=N) > 8, "high", "low")


def german(x):
    return f"{x:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".")


FORMS = {
    "plain": "{:.2f}".format,
    "percent": "{:.2f}%".format,
    "percent apart": "{:.2f} %".format,
    "groups": "{:,.2f}".format,
    "dollars": "${:,.2f}".format,
    "euros": lambda x: german(x) + " €",
    "decimal comma": lambda x: f"{x:.2f}".replace(".", ","),
    "german": german,
    "french": lambda x: f"{x:,.2f}".replace(",", "\u202f").replace(".", ","),
    "swiss": lambda x: f"{x:,.2f}".replace(",", "'"),
    "unit": "{:.2f} kg".format,
    "minus sign": lambda x: f"−{x:.2f}",
}


def written(form, gaps=(), bad=()):
    cells = [FORMS[form](x) for x in AMOUNT]
    for row, word in gaps:
        cells[row] = word
    for row, word in bad:
        cells[row] = word
    lines = ["amount;y", *(f"{cell};{label}" for cell, label in zip(cells, LABEL, strict=True))]
    return "\n".join(lines) + "\n"


def numbers(form, gaps=(), bad=()):
    wanted = AMOUNT.copy() * (-1 if form == "minus sign" else 1)
    wanted[[row for row, _ in (*gaps, *bad)]] = np.nan
    return wanted


@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_the_plain_numbers_whole_and_streamed(form, tmp_path):
    gaps = [(5, "-"), (9, "n/a"), (20, "None")]
    path = tmp_path / "t.csv"
    path.write_text(written(form, gaps, [(7, "see note"), (8, "??")]), "utf-8")
    table = read(path)
    column = table.column("amount")
    assert column.type.kind == "numeric"
    np.testing.assert_array_equal(column.data, numbers(form, gaps, [(7, ""), (8, "")]))
    assert "2 cells that are not numbers ('see note', '??') are missing values" in column.note
    schema = table.schema
    later = read(path, schema=schema).require_same_columns(schema)[0]
    assert later.column("amount").data.tobytes() == column.data.tobytes()
    parts = [part.require_same_columns(schema)[0].column("amount").data for part in chunks(path, 100, schema)]
    assert np.concatenate(parts).tobytes() == column.data.tobytes()


@pytest.mark.parametrize("form", [form for form in FORMS if form != "minus sign"])
def test_each_form_gives_the_model_and_the_error_of_the_plain_table(form, tmp_path):
    found = []
    for one in ("plain", form):
        path = tmp_path / f"{one}.csv"
        path.write_text(written(one, [(5, "missing"), (6, ".")]), "utf-8")
        result = assay.learn(path, "y", learners=["LogisticRegression"], trials=1, workers=0)
        found.append((result.chosen.holdout_error, result.model.learner.coef_.tolist()))
        assay.save(result.model, tmp_path / "m.assay", result.certificate)
        model = assay.load(tmp_path / "m.assay").model
        assert model.encoding == result.model.encoding
        assert assay.verify(result.certificate, model, path).holds
    assert found[0] == found[1]


@pytest.mark.parametrize("word", GAPS)
@pytest.mark.parametrize("spelled", [str, str.upper, str.capitalize])
def test_words_for_a_gap_leave_a_column_of_numbers_one(word, spelled, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f'{i},"{spelled(word) if i % 3 else i / 2}"\n' for i in range(60)))
    column = read(path).column("b")
    assert column.type.kind == "numeric"
    np.testing.assert_array_equal(column.data, [np.nan if i % 3 else i / 2 for i in range(60)])


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        (["1,234", "5,678"], [1234, 5678]),
        (["1,234", "1,5"], [1.234, 1.5]),
        (["0,123", "5,678"], [0.123, 5.678]),
        (["1234,567", "5,678"], [1234.567, 5.678]),
        (["1,234.5", "7"], [1234.5, 7]),
        (["1.234", "5.678"], [1.234, 5.678]),
        (["1.234", "1.234.567"], [1234, 1234567]),
        (["1.234,5", "0,5"], [1234.5, 0.5]),
        (["$1,200", "$7"], [1200, 7]),
        (["-$5", "$-6.5"], [-5, -6.5]),
        (["10%", "0"], [10, 0]),
        (["1e-3", "2.5E+2", "-"], [1e-3, 250, np.nan]),
        ([" 36 months", " 60 months"], [36, 60]),
        (["+3.5", "-.5", "x" * 0], [3.5, -0.5, np.nan]),
    ],
)
def test_the_whole_column_decides_what_a_sign_means(cells, wanted):
    column = read({"a": cells, "b": [1.0] * len(cells)}).column("a")
    assert column.type.kind == "numeric"
    np.testing.assert_array_equal(column.data, wanted)


@pytest.mark.parametrize(
    "cells",
    [
        ["$5", "€5", "12 kg"] * 10,
        ["10%", "0.1"] * 20,
        ["36 months", "3 years"] * 20,
        ["A1", "A2", "B1"] * 10,
        ["007", "010", "112"] * 10,
        ["1", "2", "3"] * 10,
        ["0", "1", "other"] * 100,
        ["0"] * 100 + ["1"] * 100 + ["other"] * 3,
        ["1.2.3", "1.2.4"] * 10,
        ["10-20", "20-30"] * 10,
        ["12:30", "x", "y", "z"] * 10,
        ["3+", "1", "2"] * 10,
    ],
)
def test_what_could_be_names_stays_names(cells):
    column = read({"a": cells}).column("a")
    assert column.type.kind == "nominal"
    assert column.values().tolist() == cells


def test_one_bad_cell_in_twenty_is_a_gap_and_more_are_names(tmp_path):
    for bad, kind in ((5, "numeric"), (6, "nominal")):
        cells = [f"{i / 4}" for i in range(100 - bad)] + ["bad"] * bad
        (tmp_path / "t.csv").write_text("a\n" + "\n".join(cells) + "\n")
        assert read(tmp_path / "t.csv").column("a").type.kind == kind


def test_a_later_table_is_read_as_the_first_was(tmp_path):
    schema = read({"rate": ["12.5%", "3%"], "size": ["1,5", "2,25"]}).schema
    later, _ = read({"rate": ["8%", "0"], "size": ["1,234", "7"]}, schema=schema).require_same_columns(schema)
    np.testing.assert_array_equal(later.matrix(), [[8, 1.234], [0, 7]])
    typed, _ = read({"rate": [8.0, 0.5], "size": [1.234, 7.0]}, schema=schema).require_same_columns(schema)
    np.testing.assert_array_equal(typed.matrix(), [[8, 1.234], [0.5, 7]])
    apart, _ = read({"rate": ["8%", "0"], "size": ["1,234", "1,2"]}).require_same_columns(schema)
    np.testing.assert_array_equal(apart.matrix(), [[8, 1.234], [0, 1.2]])
    with pytest.raises(ValueError, match=r"column 'rate' must hold numbers written like 1234.5%; got '0.08' in row 0"):
        read({"rate": ["0.08", "0.1"], "size": ["1,5", "2"]}, schema=schema)
    (tmp_path / "t.csv").write_text("rate;size\n0.08;1,5\n")
    with pytest.raises(ValueError, match="must hold numbers written like"):
        list(chunks(tmp_path / "t.csv", 10, schema))


def test_gaps_of_names_are_fewer_than_those_of_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("garage,x\nNone,1\n-,2\nbuilt in,3\n#N/A,4\n,5\n")
    assert read(tmp_path / "t.csv").column("garage").values().tolist() == ["None", "-", "built in", None, None]


def test_an_index_of_a_frame_is_left_out_and_other_columns_without_a_name_get_one(tmp_path):
    pd = pytest.importorskip("pandas")
    path = tmp_path / "t.csv"
    frame = pd.DataFrame({"a": [1.5, 2.5, 4.5], "b": ["x", "y", "x"]})
    frame.to_csv(path)
    for table in (read(path), read(pd.read_csv(path))):
        assert table.names == ["a", "b"]
        (why,) = table.left_out.values()
        assert why == "it has no name and counts the rows; the index of a data frame was written with it."
    later = read(path, schema=read(path).schema)
    assert later.matrix().tolist() == [[1.5, 0], [2.5, 1], [4.5, 0]]
    frame.index = [7, 3, 9]
    frame.to_csv(path)
    table = read(path)
    assert table.names == ["column 1 (unnamed)", "a", "b"] == names(path)
    assert table.matrix()[:, 0].tolist() == [7, 3, 9]
    parts = [part.require_same_columns(table.schema)[0].matrix() for part in chunks(path, 2, table.schema)]
    np.testing.assert_array_equal(np.concatenate(parts), table.matrix())
    path.write_text("a,,c\n1,2,3\n4,5,6\n")
    assert read(path).matrix().tolist() == [[1, 2, 3], [4, 5, 6]]


def test_columns_that_say_nothing_are_left_out_with_a_reason(tmp_path):
    n = 30
    path = tmp_path / "t.csv"
    header = "user_id,constant,empty,name,x,y"
    path.write_text(header + "\n" + "".join(f"{1000 - i},7,,n{i},{i % 5},{i % 2}\n" for i in range(n)))
    table = read(path)
    assert table.left_out == {"empty": "it has no value in any row."}
    useful = table.useful()
    assert useful.names == ["x", "y"]
    assert useful.left_out == {
        "empty": "it has no value in any row.",
        "user_id": "it identifies each row, so it carries no information about new ones.",
        "constant": "it has the same value in every row.",
        "name": "it identifies each row, so it carries no information about new ones.",
    }
    with pytest.raises(ValueError, match=r"there is no column to learn from\. Column 'constant': it has the same"):
        read({"constant": [1.0, 1.0]}).useful()
    with pytest.raises(ValueError, match="the column 'empty' is of no use: it has no value in any row"):
        table.column("empty")


def test_rows_without_a_target_are_left_out_and_the_certificate_holds(tmp_path):
    path = tmp_path / "t.csv"
    text = written("plain").split("\n")
    text[4], text[50] = text[4].split(";")[0] + ";", text[50].split(";")[0] + ";?"
    path.write_text("\n".join(text))
    found = assay.learn(path, "y", learners=["LogisticRegression"], trials=1, workers=0)
    assert found.notes == ["2 of 300 rows have no value of the target 'y'; they are left out."]
    assert sum(found.rows) == 298
    table = read(path).with_target("y")[0]
    assert (table.n_rows, read(path).with_target("amount")[1]) == (298, "")
    model = found.model
    assert assay.verify(found.certificate, model, path).holds
    empty = Table([Column(ColumnType("y", "numeric"), np.array([np.nan, np.nan]))])
    with pytest.raises(ValueError, match="target 'y' has no value in any row"):
        empty.with_target("y")


def test_columns_can_be_dropped():
    table = read({"a": [1.0, 2.0], "b": [3.0, 4.0], "c": [5.0, 6.0]}, drop=["b"])
    assert table.names == ["a", "c"]
    assert table.without("a").left_out == {"a": "it was dropped."}
    with pytest.raises(ValueError, match="there is no column 'bb' to leave out; did you mean 'b'"):
        read({"a": [1.0], "b": [2.0]}, drop=["bb"])
    with pytest.raises(ValueError, match="no column 'B'; did you mean 'b'"):
        read({"b": [1.0]}).without("B")


def test_the_summary_says_what_was_done_and_what_to_do():
    n = 60
    table = read(
        {
            "rate": [f"{i / 2}%" for i in range(n)],
            "grade": [i % 4 for i in range(n)],
            "size": [("low", "middle", "high")[i % 3] for i in range(n)],
            "name": [f"n{i}" for i in range(n - 1)] + [None],
            "empty": [None] * n,
        }
    )
    rate, grade, size, name, empty = table.summary()
    assert (rate.kind, rate.holds, rate.note) == ("numeric", "0 to 29.5", "numbers written like 1234.5%")
    assert grade.advice.render(place="terminal") == "--nominal grade if its numbers are names."
    assert size.advice.render(place="terminal").startswith("--ordered size=lowest,...,highest")
    assert (name.distinct, name.missing, name.advice) == (n - 1, 1, "drop='name' if it identifies the rows.")
    assert (empty.kind, empty.note) == ("left out", "it has no value in any row.")


def test_the_standard_input_is_a_source(monkeypatch):
    class Input:
        buffer = io.BytesIO(b"a,b\n1,x\n2,y\n")

    monkeypatch.setattr("sys.stdin", Input)
    monkeypatch.setattr(Stdin, "content", None)
    table = read("-")
    assert (table.names, table.n_rows, names("-")) == (["a", "b"], 2, ["a", "b"])
    assert sum(part.n_rows for part in chunks("-", 1, table.schema)) == 2


def test_styles_are_shown_by_an_example():
    assert Style(".", ",", "$", "").example() == "$1,234.5"
    assert Style(".", "", "", "").plain


LONG = [2**53 + i for i in range(40)]
SPELLINGS = {
    "plain": str,
    "point": lambda n: f"{n}.0",
    "points": lambda n: f"{n}.",
    "comma": lambda n: f"{n},00",
    "groups": lambda n: f"{n:,}",
    "spaces": lambda n: f"{n:,}".replace(",", " "),
    "dots": lambda n: f"{n:,}".replace(",", "."),
    "apostrophes": lambda n: f"{n:,}".replace(",", "'"),
    "unit": lambda n: f"{n} kg",
    "currency": lambda n: f"${n}",
    "negative": lambda n: f"-{n}",
}


@pytest.mark.parametrize("spelled", SPELLINGS.values(), ids=SPELLINGS)
def test_whole_numbers_that_doubles_merge_are_names_however_they_are_written(spelled):
    cells = [spelled(number) for number in LONG]
    for rows in (cells, cells * 5):
        column = read({"id": rows}).column("id")
        assert column.type.kind == "nominal"
        assert len(column.type.levels) == len(LONG) > len({float(number) for number in LONG})
        assert "beyond 2^53" in column.note


@pytest.mark.parametrize("spelled", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("copies", [1, 8])
def test_the_first_whole_number_that_a_double_is_not_makes_names(spelled, copies):
    """2^53 + 1 is read as 2^53, which is no larger than 2^53; 2^53 alone is a number."""
    small = [10**15 + k for k in range(20)]
    column = read({"id": [spelled(number) for number in [*small, 2**53, 2**53 + 1]] * copies}).column("id")
    assert column.type.kind == "nominal"
    assert len(column.type.levels) == 22
    alone = read({"id": [spelled(number) for number in [*small, 2**53]] * copies}).column("id")
    assert alone.type.kind == "numeric"


@pytest.mark.parametrize("form", ["json", "jsonl", "decimal"])
def test_long_identifiers_of_files_that_know_numbers_stay_apart(form, tmp_path):
    source = tmp_path / f"t.{form}"
    if form == "json":
        source.write_text(json.dumps([{"id": number} for number in LONG]))
    elif form == "jsonl":
        source.write_text("\n".join(json.dumps({"id": number}) for number in LONG))
    else:
        source = pa.table({"id": pa.array([f"{number}.00" for number in LONG]).cast(pa.decimal128(24, 2))})
    assert len(read(source).column("id").type.levels) == len(LONG)


def test_numbers_of_many_digits_that_are_no_whole_numbers_stay_numbers():
    for cells in (["1e20", "2.5", "3"], ["0.12345678901234567890", "1.5", "2"], ["9007199254740991.5", "12", "2.5"]):
        assert read({"a": cells * 20}).column("a").type.kind == "numeric"


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["1.1", "1.10", "1.2"], True),
        (["$1.1", "$1.10", "$1.25"], True),
        (["1,1", "1,10", "2,5"], True),
        (["1.1 kg", "1.10 kg", "2.5 kg"], True),
        (["1.10", "1.20", "2.50"], False),
        (["1.1", "1.2", "2.5"], False),
        (["1", "1.0", "2.5"], False),
        (["10", "100", "2.5"], False),
    ],
)
def test_spellings_that_merge_as_versions_would_are_said(cells, said, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n" + "\n".join(f"{cell};{i}" for i, cell in enumerate(cells * 30)))
    column = read(path).column("a")
    assert column.type.kind == "numeric"
    assert ("1.1 and 1.10 are read as the same number" in column.note) == said
    named = read(path, nominal=["a"]).column("a")
    assert len(named.type.levels) == 3
    assert not named.note
