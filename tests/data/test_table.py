"""Table: every source gives the same columns; what cannot be read is refused by name and place."""

import csv
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay import datasets
from assay.data import Column, ColumnType, Table, chunks, read
from assay.datasets import make_credit

CSV = """age,job,size,member
31,cook,small,True
,clerk,large,False
58.5,cook,?,True
"""
SIZES = ["small", "large"]
EXPECTED = np.array([[31.0, 1, 0, 1], [np.nan, 0, 1, 0], [58.5, 1, np.nan, 1]])


def sources(folder):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = {
        "age": [31.0, None, 58.5],
        "job": ["cook", "clerk", "cook"],
        "size": ["small", "large", None],
        "member": [True, False, True],
    }
    (folder / "t.csv").write_text(CSV)
    (folder / "semicolon.csv").write_text("\ufeff" + CSV.replace(",", ";").replace("\n", "\r\n"), "utf-8")
    arrow = pa.table(columns)
    pq.write_table(arrow, folder / "t.parquet")
    frame = pd.DataFrame(columns, index=[5, 6, 7])
    categories = frame.assign(size=pd.Categorical(frame["size"], SIZES, ordered=True), job=frame.job.astype("category"))
    enumeration = pl.DataFrame(columns, schema_overrides={"size": pl.Enum(SIZES), "job": pl.Categorical})
    return [folder / "t.csv", str(folder / "semicolon.csv"), folder / "t.parquet", arrow, columns, frame,
            pl.DataFrame(columns), categories, enumeration]  # fmt: skip


@pytest.mark.parametrize("which", range(9))
def test_every_source_gives_the_same_table(which, tmp_path):
    table = read(sources(tmp_path)[which], ordered={} if which >= 7 else {"size": SIZES})
    assert table.schema == (
        ColumnType("age", "numeric"),
        ColumnType("job", "nominal", ("clerk", "cook")),
        ColumnType("size", "ordered", ("small", "large")),
        ColumnType("member", "nominal", ("False", "True")),
    )
    np.testing.assert_array_equal(table.matrix(), EXPECTED)
    assert table.column("size").values().tolist() == ["small", "large", None]
    assert [tuple(row[:4]) for row in table.summary()] == [
        ("age", "numeric", 2, 1),
        ("job", "nominal", 2, 0),
        ("size", "ordered", 2, 1),
        ("member", "nominal", 2, 0),
    ]
    assert table.positions("nominal", "ordered") == [1, 2, 3]


@pytest.mark.parametrize("frame", [False, True])
def test_a_table_survives_the_way_out_and_back(frame, tmp_path):
    table = read(sources(tmp_path)[0], ordered={"size": SIZES})
    back = read(table.to_frame() if frame else table.to_arrow())
    assert back.schema == table.schema
    np.testing.assert_array_equal(back.matrix(), table.matrix())


def test_numbers_can_be_names(tmp_path):
    (tmp_path / "t.csv").write_text("zip,x\n007,1\n10115,2\n,3\n")
    assert read(tmp_path / "t.csv", nominal=["zip"]).column("zip").type.levels == ("007", "10115")
    for values in ([7, None, 10], [7.0, np.nan, 10.0]):
        column = read({"zip": values}, nominal=["zip"]).column("zip")
        assert column.values().tolist() == ["7", None, "10"]


@settings(max_examples=50)
@given(st.lists(st.one_of(st.none(), st.text(alphabet='ab?," \né', min_size=1)), min_size=1))
def test_any_text_column_is_read_back(values):
    if not any(values):
        values = [*values, "a"]
    column = read({"x": values}).column("x")
    assert column.values().tolist() == values
    assert list(column.type.levels) == sorted({value for value in values if value is not None})


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from("abcd"), min_size=1),
    st.lists(st.sampled_from("abcdef"), min_size=1),
    st.integers(1, 5),
)
def test_later_tables_get_the_codes_of_the_first(tmp_path_factory, first, later, size):
    schema = read({"x": first}).schema
    levels = schema[0].levels
    path = tmp_path_factory.mktemp("later") / "later.csv"
    path.write_text("extra,x\n" + "".join(f"2020-01-01,{value}\n" for value in later))
    expected = [levels.index(value) if value in levels else len(levels) for value in later]  # a new level
    table, unknown = read(path, schema=schema).require_same_columns(schema)
    np.testing.assert_array_equal(table.column("x").data, expected)
    assert unknown == ({"x": sorted(set(later) - set(levels))} if set(later) - set(levels) else {})
    parts = [part.require_same_columns(schema)[0] for part in chunks(path, size, schema)]
    assert all(part.n_rows <= size for part in parts)
    np.testing.assert_array_equal(np.concatenate([part.column("x").data for part in parts]), expected)


def test_chunks_of_every_source(tmp_path):
    all_sources = sources(tmp_path)
    schema = read(all_sources[0], ordered={"size": SIZES}).schema
    for source in all_sources:
        parts = [part.require_same_columns(schema) for part in chunks(source, 2, schema)]
        assert [part.n_rows for part, _ in parts] == [2, 1]
        assert all(part.schema == schema and not unknown for part, unknown in parts)
        np.testing.assert_array_equal(np.concatenate([part.matrix() for part, _ in parts]), EXPECTED)


def test_unknown_values_are_those_of_the_rows_at_hand():
    schema = read({"x": ["a", "b"]}).schema
    parts = list(chunks({"x": ["a", "z", "b", "y"]}, 2, schema))
    assert [part.require_same_columns(schema)[1] for part in parts] == [{"x": ["z"]}, {"x": ["y"]}]


@pytest.mark.parametrize(("ordered", "levels"), [(False, ("a", "b", "c")), (True, ("b", "a", "c"))])
def test_dictionaries_that_differ_between_chunks(ordered, levels):
    parts = [
        pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(words), ordered=ordered)
        for words in (["b", "a"], ["c", "b"])
    ]
    column = read(pa.table({"x": pa.chunked_array(parts)})).column("x")
    assert column.type.levels == levels
    assert column.values().tolist() == ["b", "a", "c", "b"]


def test_words_for_true_and_false_keep_their_spelling(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\nTRUE,true\nFALSE,false\n")
    table = read(tmp_path / "t.csv")
    assert [column.type.levels for column in table.columns.values()] == [("FALSE", "TRUE"), ("false", "true")]


def test_columns_may_change_place_and_number_columns_may_have_become_whole():
    schema = read({"a": [1.5, 2.5], "b": ["1", "2"]}).schema
    table, unknown = read({"b": [2, 3], "c": [0, 0], "a": [7, 8]}).require_same_columns(schema)
    assert table.schema == schema
    np.testing.assert_array_equal(table.matrix(), [[7, 1], [8, np.nan]])
    assert unknown == {"b": ["3"]}


def test_refusals_of_later_tables(tmp_path):
    schema = read({"a": [1.5, 2.5], "b": ["x", "y"]}).schema
    with pytest.raises(ValueError, match="lacks columns that the model was fitted with: b; it has a, c"):
        read({"a": [1.0], "c": [2.0]}).require_same_columns(schema)
    with pytest.raises(ValueError, match="column 'a' must hold numbers; got 'one' in row 1"):
        read({"a": [None, "one"], "b": ["x", "y"]}).require_same_columns(schema)
    (tmp_path / "t.csv").write_text("a,b\n1,x\none,y\n")
    with pytest.raises(ValueError, match="column 'a' must hold numbers; got 'one' in row 1"):
        list(chunks(tmp_path / "t.csv", 10, schema))
    (tmp_path / "u.csv").write_text("a,c\n1,x\n")
    for call in (lambda path: list(chunks(path, 10, schema)), lambda path: read(path, schema=schema)):
        with pytest.raises(ValueError, match=r"u.csv lacks the column b; it has a, c"):
            call(tmp_path / "u.csv")


def test_target():
    table = read({"income": [1.0, 2.0, 3.0], "default": ["no", None, "yes"]})
    with pytest.raises(ValueError, match=r"no column 'defualt'; did you mean 'default'\? The columns are income, d"):
        table.split_target("defualt")
    with pytest.raises(ValueError, match=r"target 'default' has no value in 1 of 3 rows \(counted from 0: 1\)"):
        table.split_target("default")
    others, target = table.take([0, 2]).split_target("default")
    assert others.names == ["income"]
    assert target.values().tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match="no column to learn from beside the target 'income'"):
        read({"income": [1.0]}).split_target("income")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; its first line must name the columns"),
        ("a,b\n", "has no rows, only the columns a, b"),
        ("a,b\n1,2\n3\n4,5\n", r"Row #3: Expected 2 columns, got 1: 3 \(the first line is row 1\)"),
        ("a,a\n1,2\n", r"two columns are called 'a' \(columns 1 and 2\)"),
        ("a,b\n1,inf\n", "column 'b' has an infinite value in row 0"),
    ],
)
def test_refusals_of_csv(text, message, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "t.csv")


NAMES = ["plain", "a,b", 'say "no"', "two\nlines", "semi;colon", "tab\there", 'inch 5"', " spaces "]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("quote", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_names_may_hold_commas_quotes_and_line_ends(delimiter, ends, quote, tmp_path):
    """The whole file, the columns of a schema and the streamed parts: all know the names that csv wrote."""
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as file:
        rows = [NAMES, *([i] * len(NAMES) for i in range(5))]
        csv.writer(file, delimiter=delimiter, lineterminator=ends, quoting=quote).writerows(rows)
    table = read(path)
    assert table.names == NAMES
    assert read(path, schema=table.schema).names == NAMES
    assert sum(part.n_rows for part in chunks(path, 2, table.schema)) == 5


def test_a_quote_within_a_name_is_a_character(tmp_path):
    (tmp_path / "t.csv").write_text('inch 5",b\n1,2\n3,4\n')
    table = read(tmp_path / "t.csv")
    assert table.names == ['inch 5"', "b"]
    assert read(tmp_path / "t.csv", schema=table.schema).n_rows == 2


@pytest.mark.long(by_hand="a ratio of times")
def test_time_grows_with_the_columns_and_not_with_their_square(tmp_path):
    """Twelve times the columns; a square would take 144 times as long. The longer first line is over 1 MiB."""

    def seconds(n):
        path = tmp_path / f"{n}.csv"
        names = [f"a column with a long name {i}" for i in range(n)]
        path.write_text(",".join(names) + "\n" + ",".join(["1"] * n) + "\n")
        began = time.process_time()
        table = read(path)
        assert read(path, schema=table.schema).names == names
        return time.process_time() - began

    seconds(5_000)
    assert seconds(60_000) < 50 * seconds(5_000)


def test_arrow_types_without_a_reading_are_refused_by_name():
    fixed = pa.array([b"ab", b"cd"], pa.binary(2))
    with pytest.raises(ValueError, match="column 'a' holds bytes"):
        read(pa.table({"a": fixed}))
    lists = pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array([[1]]))
    with pytest.raises(ValueError, match="column 'a' holds list<item: int64>; give each value"):
        read(pa.table({"a": lists}))


def test_a_parquet_file_damaged_in_the_middle_is_named(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": np.arange(50_000.0)}), path, compression="snappy")
    content = bytearray(path.read_bytes())
    content[100:40_000] = bytes(39_900)
    path.write_bytes(content)
    schema = (ColumnType("a", "numeric"),)
    with pytest.raises(ValueError, match=r"t.parquet cannot be read as Parquet"):
        read(path)
    with pytest.raises(ValueError, match=r"t.parquet cannot be read as Parquet"):
        list(chunks(path, 1000, schema))


def test_refusals_of_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none.csv"):
        read(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="is a folder"):
        read(tmp_path)
    (tmp_path / "t.csv").write_bytes(b"a,b\n1,\x01\xff\xfe\n")  # a control character: no text of any encoding
    with pytest.raises(ValueError, match="column 'b' holds bytes that are not UTF-8 text"):
        read(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    with pytest.raises(ValueError, match="does not begin with a line of UTF-8 text"):
        read(tmp_path / "t.csv")
    (tmp_path / "t.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(ValueError, match=r"t.parquet cannot be read as Parquet"):
        read(tmp_path / "t.parquet")


def test_text_of_an_arrow_table_that_is_no_utf8_is_named():
    offsets, words = pa.array([0, 1, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xf9a")
    text = pa.StringArray.from_buffers(2, offsets, words)
    with pytest.raises(ValueError, match="column 'b' holds bytes that are not UTF-8 text"):
        read(pa.table({"a": [1.0, 2.0], "b": text}))


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (3, {}, "a table is a path to a CSV or Parquet file, .* got int"),
        ({"a": [1, "x"]}, {}, "the table cannot be read"),
        ({"a": [1, 2], "b": [1]}, {}, "the table cannot be read"),
        ({"a": [[1], [2]]}, {}, "column 'a' holds list"),
        ({"a": [1]}, {"nominal": ["b"]}, "no column 'b' to read as categories; the columns are a"),
        ({"a": ["x", "z"]}, {"ordered": {"a": ["x", "y"]}}, "column 'a' has 'z' in row 1 .* its levels x, y"),
    ],
)
def test_refusals_of_data(source, options, message):
    with pytest.raises(ValueError, match=message):
        read(source, **options)


def test_matrix_feeds_a_column_transformer_without_pandas():
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    table, target = datasets.load("credit").split_target("default")
    encode = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), table.positions("numeric")),
            ("names", OneHotEncoder(handle_unknown="ignore"), table.positions("nominal", "ordered")),
        ]
    )
    model = make_pipeline(encode, LogisticRegression()).fit(table.matrix(), target.data)
    assert encode.fit_transform(table.matrix()).shape == (1000, 5 + 3 + 4 + 4)  # history: three and missing
    assert model.score(table.matrix(), target.data) > 0.765  # better than saying no to all


def test_credit_is_what_its_script_makes_and_follows_its_rule():
    table = datasets.load("credit")
    made = make_credit.credit()
    assert (table.n_rows, table.names) == (1000, make_credit.COLUMNS)
    for j, column in enumerate(table.columns.values()):
        text = [row[j] or None for row in made]
        values = [None if t is None else float(t) for t in text] if column.type.kind == "numeric" else text
        assert [None if v != v else v for v in column.values()] == values
    kinds = [row.kind for row in table.summary()]
    assert kinds == ["numeric"] * 4 + ["nominal"] * 2 + ["ordered", "numeric", "nominal"]
    full = table.take(~np.isnan(table.matrix()).any(axis=1))
    names = ("age", "income", "loan", "months", "housing", "history", "late")
    chance = 1 / (1 + np.exp(-make_credit.log_odds(*(full.column(name).values() for name in names))))
    surprise = (full.column("default").data - chance) / np.sqrt((chance * (1 - chance)).sum())
    for half in (chance < np.median(chance), chance >= np.median(chance)):
        assert abs(surprise[half].sum()) < 3  # standard deviations


@pytest.mark.parametrize("name", datasets.names())
def test_every_bundled_table_loads_with_its_target(name):
    others, target = datasets.load(name).split_target(datasets.TARGETS[name])
    assert others.n_rows == len(target.data) > 100
    assert len({column.name for column in others.columns.values()}) == len(others.names)


def test_scikit_learns_tables_keep_their_values():
    from sklearn.datasets import load_wine

    data, labels = load_wine(return_X_y=True)
    others, target = datasets.load("wine").split_target("cultivar")
    np.testing.assert_array_equal(others.matrix(), data)
    np.testing.assert_array_equal(target.data, labels)
    with pytest.raises(ValueError, match="there is no bundled table 'irs'; the names are credit, iris"):
        datasets.load("irs")


WITHOUT_FRAMES = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ("pandas", "polars"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
from assay.datasets import load
print(type(load("credit").to_frame()).__name__)
"""


def test_table_needs_neither_pandas_nor_polars():
    done = subprocess.run([sys.executable, "-c", WITHOUT_FRAMES], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "Table"


def test_empty_table_has_an_empty_matrix():
    assert Table([]).matrix().shape == (0, 0)
    assert Table([Column(ColumnType("a", "numeric"), np.zeros(3))]).n_rows == 3
