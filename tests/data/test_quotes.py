"""Quotes, marks and line ends of CSV files: read as they are meant, or refused with the line; no row is lost."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import assay
from assay.data import chunks, read, readers
from assay.data.quotes import Checked

ROWS = [f"{i},{2 * i},w{i % 3}" for i in range(1000)]


def written(folder, *lines, ends="\n"):
    path = folder / "t.csv"
    path.write_bytes(ends.join([*lines, ""]).encode())
    return path


def opened(number, *more):
    """The rows, in one of which a quote is opened and not closed; `more` are changes of later rows."""
    changed = dict([(number, f'{number},{2 * number},"w0'), *more])
    return [changed.get(i, row) for i, row in enumerate(ROWS)]


HIDDEN = {
    "never closed": (opened(399), "line 401.*never closed"),
    "never closed, of the first row": (opened(0), "line 2.*never closed"),
    "never closed, of the last row": (opened(999), "line 1001.*never closed"),
    "closed by the next quoted cell": (opened(399, (900, '900,1800,"w0"')), "line 401.*closed 501 lines below"),
    "closed by a stray quote": (opened(399, (900, '900,1800,w0"')), "line 401.*closed 501 lines below"),
    "closed by a stray quote in the row after the next": (opened(399, (401, '401,802,w0"')), "line 401.*2 lines below"),
    "in a middle column": (
        [*ROWS[:50], '50,"100,w2', *ROWS[51:60], '60,120",w0', *ROWS[61:]],
        "line 52.*closed 10 lines below",
    ),
    "in the first column": ([*ROWS[:50], '"50,100,w2', *ROWS[51:]], "line 52.*never closed"),
}


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("which", HIDDEN)
def test_a_quote_that_hides_rows_is_refused_with_its_line(which, ends, tmp_path):
    rows, message = HIDDEN[which]
    path = written(tmp_path, "a,b,c", *rows, ends=ends)
    with pytest.raises(ValueError, match=message):
        read(path)
    schema = read({"a": [1.0, 2.0]}).schema  # the column with the quote is not even asked for
    with pytest.raises(ValueError, match=message):
        sum(part.n_rows for part in chunks(path, 100, schema))


def test_a_quote_that_hides_rows_of_words_is_refused(tmp_path):
    """No column has figures, so that lines are told from prose by their delimiters alone."""
    rows = [f"x{i},y{i % 5},z" for i in range(100)]
    rows[40], rows[80] = 'x40,y0,"z', 'x80,y0,z"'
    with pytest.raises(ValueError, match=r"line 42.*closed 40 lines below"):
        read(written(tmp_path, "a,b,c", *rows))


def test_a_quote_in_the_header_that_hides_the_rows_is_refused(tmp_path):
    with pytest.raises(ValueError, match="among the names of the columns a quote is opened and never closed"):
        read(written(tmp_path, 'a,b,"c', *ROWS))


PROSE = [
    "one\ntwo",
    "Dear all,\n\nsee below, please, and answer.\nYours",
    "a list:\n1, this\n2, that",
    "\n",
    'she said\n"no", and left',
    "12,5\n13",
    "ends in a line\n",
    "\r\nwindows\r\n",
]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_text_of_several_lines_is_read(delimiter, place, tmp_path):
    path = tmp_path / "t.csv"
    texts = PROSE * 20
    rows = [[str(i), str(i / 2)] for i in range(len(texts))]
    for row, text in zip(rows, texts, strict=True):
        row.insert(place, text)
    with path.open("w", newline="") as file:
        names = ["a", "b"]
        names.insert(place, "text")
        csv.writer(file, delimiter=delimiter).writerows([names, *rows])
    table = read(path, nominal=["text"])
    assert table.column("text").values().tolist() == texts


@settings(max_examples=200)
@given(
    st.lists(st.lists(st.text(alphabet='ab1," \n\r;', max_size=6), min_size=3, max_size=3), min_size=1, max_size=12),
    st.integers(1, 9),
)
def test_the_size_of_a_block_makes_no_difference(rows, size):
    """In parts of few bytes the same is refused, or passed unchanged, as at once."""

    def outcome(size, content):
        stream = Checked(io.BytesIO(content), "it", ",", 3, 2**20)
        try:
            return b"".join(iter(lambda: stream.read(size), b""))
        except ValueError as error:
            return str(error)

    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([["a", "b", "c"], *rows])
    right = file.getvalue().encode()
    for content in (right, right.replace(b'"', b"", 1), right + b'x,"'):
        assert outcome(size, content) == outcome(10**6, content)


@settings(max_examples=200)
@given(st.lists(st.lists(st.text(alphabet="ab, \n\"'", max_size=8), min_size=3, max_size=3), min_size=1, max_size=8))
def test_what_csv_writes_of_words_is_passed(rows):
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([["a", "b", "c"], *rows])
    stream = Checked(io.BytesIO(file.getvalue().encode()), "it", ",", 3, 2**20)
    assert b"".join(iter(lambda: stream.read(7), b"")).decode() == file.getvalue()


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;", "sep=;;;"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_excels_first_line_tells_the_delimiter(first, mark, ends, tmp_path):
    path = written(tmp_path, mark + first, "a;b, or c;", "1;2,5;x", "3;4,5;y", ends=ends)
    table = read(path)
    assert table.names == ["a", "b, or c", "column 3 (unnamed)"]
    assert table.column("b, or c").data.tolist() == [2.5, 4.5]
    assert readers.names(path) == table.names
    assert [part.n_rows for part in chunks(path, 1, table.schema)] == [1, 1]


@pytest.mark.parametrize("mark", ["|", "\t", ",", ";", ":", "^", "]", "\\", "-"])
def test_excels_first_line_tells_any_delimiter(mark, tmp_path):
    path = written(tmp_path, f"sep={mark}", mark.join(["a", f'"b{mark}c"']), f"1{mark}x", f"2{mark}y")
    assert read(path).names == ["a", f"b{mark}c"]


def test_excels_first_line_in_learn_predict_and_verify(tmp_path):
    rng = np.random.default_rng(0)
    size = rng.normal(size=200)
    rows = [f"{x:.3f};{'big' if x > 0 else 'small'}" for x in size]
    path = written(tmp_path, "sep=;", "size;y", *rows)
    found = assay.learn(path, "y", learners=["LogisticRegression"], workers=0)
    assay.save(found.model, tmp_path / "m.assay", found.certificate)
    from typer.testing import CliRunner

    from assay.cli.app import app

    verified = CliRunner().invoke(app, ["verify", str(tmp_path / "m.assay"), str(path)])
    assert verified.exit_code == 0, verified.output
    predicted = CliRunner().invoke(app, ["predict", str(tmp_path / "m.assay"), str(path)])
    assert len(predicted.stdout.splitlines()) == 201


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n3,x\0y\n", "line 3: there is a NUL byte"),
        (b"a,b\n1,2\n3,4\0\n", "line 3: there is a NUL byte"),
        (b"a\0,b\n1,2\n", "NUL byte among the names"),
        ("a,b\n1,2\n".encode("utf-16-le"), "NUL byte among the names"),
        (b"a,b\n1,2\n1,2,3\n", "Row #3: Expected 2 columns, got 3"),
        (b"\xef\xbb\xbfa,a\n1,2\n", "two columns are called 'a'"),
    ],
)
def test_what_is_no_table_is_refused(content, message, tmp_path):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "t.csv")
