"""Parquet and Arrow: the same bits as memory, in bounded memory, with refusals that say where."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.scan import rows


def moments(block, scale=1.0):
    return len(block.X), scale * block.X.T @ block.X, block.X.T @ (block.y * block.weight)


def table_of(n, d=28, seed=0):
    rng = np.random.default_rng(seed)
    X, y, weight = rng.normal(size=(n, d)), rng.normal(size=n), rng.random(n)
    columns = {"w": weight} | {f"x{j}": X[:, j] for j in range(d // 2)} | {"y": y}
    columns |= {f"x{j}": X[:, j] for j in range(d // 2, d)}
    return pa.table(columns), X, y, weight


def same_bits(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@settings(max_examples=15)
@given(
    n=st.integers(1, 20_000),
    group=st.integers(500, 30_000),
    files=st.integers(1, 3),
    n_jobs=st.sampled_from([1, 2, 3]),
)
def test_parquet_is_memory_to_the_bit(tmp_path_factory, n, group, files, n_jobs):
    table, X, y, weight = table_of(n)
    folder = tmp_path_factory.mktemp("parquet")
    cuts = np.linspace(0, n, files + 1).astype(int)
    for k in range(files):
        pq.write_table(table.slice(cuts[k], cuts[k + 1] - cuts[k]), folder / f"{k}.parquet", row_group_size=group)
    expected = rows(X, y, weight, n_jobs=1).sum(moments, 3.0)
    for source in (folder, str(folder / "*.parquet"), sorted(folder.iterdir())):
        streamed = rows(source, "y", "w", n_jobs=n_jobs)
        assert (streamed.n_rows, streamed.n_features) == X.shape
        assert streamed.feature_names == [f"x{j}" for j in range(28)]
        assert same_bits(streamed.sum(moments, 3.0), expected)


@pytest.mark.parametrize("form", ["table", "dataset"])
def test_arrow_is_memory_to_the_bit(form, tmp_path):
    table, X, y, weight = table_of(10_000)
    if form == "dataset":
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=3333)
    source = table if form == "table" else ds.dataset(tmp_path)
    assert same_bits(rows(source, "y", "w").sum(moments), rows(X, y, weight).sum(moments))


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint16(), pa.float32(), pa.float16(), pa.bool_()])
def test_every_numeric_type_is_read_as_doubles(kind, tmp_path):
    values = np.random.default_rng(0).integers(0, 2, size=1000)
    table = pa.table({"a": pa.array(values).cast(kind), "b": np.arange(1000.0)})
    pq.write_table(table, tmp_path / "t.parquet")
    (block,) = rows(tmp_path / "t.parquet").blocks()
    assert block.X.dtype == np.float64
    assert block.X.flags.c_contiguous
    assert np.array_equal(block.X, np.column_stack([values, np.arange(1000)]))


def test_blocks_and_map_give_the_rows_in_order(tmp_path):
    table, X, y, weight = table_of(10_000)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=999)
    streamed = rows(tmp_path / "t.parquet", "y", "w", n_jobs=3)
    for cut in (list(streamed.blocks()), streamed.map(lambda block: block)):
        assert [b.start for b in cut] == [0, 4096, 8192]
        assert np.array_equal(np.concatenate([b.X for b in cut]), X)
        assert np.array_equal(np.concatenate([b.y for b in cut]), y)
        assert np.array_equal(np.concatenate([b.weight for b in cut]), weight)


@pytest.mark.parametrize("dictionary", [True, False])
def test_text_labels(dictionary, tmp_path):
    y = np.random.default_rng(0).choice(["no", "yes"], size=9000)
    column = pa.array(y).dictionary_encode() if dictionary else pa.array(y)
    pq.write_table(pa.table({"x": np.zeros(9000), "y": column}), tmp_path / "t.parquet", row_group_size=2000)
    streamed = rows(tmp_path / "t.parquet", "y")
    assert streamed.labels().tolist() == ["no", "yes"]
    counts = streamed.encoded(streamed.labels()).sum(lambda block: np.bincount(block.y, minlength=2))
    assert counts.tolist() == [(y == "no").sum(), (y == "yes").sum()]
    with pytest.raises(ValueError, match=r"the label 'yes' in row .* is not among the classes 'no'"):
        streamed.encoded(np.array(["no"])).sum(lambda block: 1.0)


def damaged(tmp_path, change):
    table, *_ = table_of(9000)
    values = table.column("x3").to_pylist()
    values[5000] = change
    table = table.set_column(table.schema.names.index("x3"), "x3", pa.array(values))
    pq.write_table(table, tmp_path / "bad.parquet", row_group_size=2000)
    return tmp_path / "bad.parquet"


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(("value", "words"), [(None, "a missing value"), (np.nan, "NaN"), (np.inf, "infinity")])
def test_a_bad_value_is_named_by_file_column_and_row(tmp_path, value, words, n_jobs):
    path = damaged(tmp_path, value)
    with pytest.raises(ValueError, match=rf"column 'x3' of .*bad.parquet has .*{words}.* in row 5000"):
        rows(path, "y", "w", n_jobs=n_jobs).sum(moments)


def test_large_finite_values_are_not_refused(tmp_path):
    pq.write_table(pa.table({"x": np.full(100, 1e308)}), tmp_path / "t.parquet")
    assert rows(tmp_path / "t.parquet").sum(lambda block: block.X.max()) == 1e308


def test_refusals(tmp_path):
    table, *_ = table_of(100)
    good = tmp_path / "good.parquet"
    pq.write_table(table, good)
    with pytest.raises(FileNotFoundError, match="no Parquet file at"):
        rows(tmp_path / "none.parquet")
    with pytest.raises(FileNotFoundError, match="no file matches"):
        rows(str(tmp_path / "q*.parquet"))
    with pytest.raises(ValueError, match="y must name a column; got 'z', the columns are w, x0"):
        rows(good, "z")
    with pytest.raises(ValueError, match="y must name a column; got ndarray"):
        rows(good, np.zeros(100))
    text = tmp_path / "text.parquet"
    pq.write_table(table.append_column("name", pa.array(["a"] * 100)), text)
    with pytest.raises(ValueError, match="column 'name' holds string"):
        rows(text, "y")
    other = tmp_path / "other.parquet"
    pq.write_table(table.drop_columns(["x5"]), other)
    with pytest.raises(ValueError, match=r"other.parquet has no column 'x5', which .*good.parquet has"):
        rows([good, other], "y")
    pq.write_table(table.drop_columns(["x5"]).append_column("x5", pa.array(["a"] * 100)), other)
    with pytest.raises(ValueError, match=r"column 'x5' is string in .*other.parquet but double in"):
        rows([good, other], "y")
    junk = tmp_path / "junk.parquet"
    junk.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(ValueError, match=r"junk.parquet cannot be read as Parquet"):
        rows(junk)


def test_a_file_that_shrinks_is_noticed(tmp_path):
    table, *_ = table_of(20_000)
    pq.write_table(table, tmp_path / "t.parquet")
    streamed = rows(tmp_path / "t.parquet", "y", "w")
    pq.write_table(table.slice(0, 5000), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="fewer rows than the 20000 it was opened with"):
        streamed.sum(moments)


MEMORY = """
import sys
from pathlib import Path
import numpy as np
from assay.scan import rows

def peak(): return int(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0]) / 1024
def gram(block): return block.X.T @ block.X
table = rows(sys.argv[1], n_jobs=2)
rows(sys.argv[2], n_jobs=2).sum(gram)  # libraries and buffers, on a tenth of the rows
before = peak()
table.sum(gram)
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of resident memory from /proc")
def test_memory_does_not_grow_with_the_file(tmp_path):
    rng = np.random.default_rng(0)
    for name, n in (("large", 600_000), ("small", 60_000)):
        table = pa.table({f"x{j}": rng.normal(size=n) for j in range(28)})
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=n, use_dictionary=False)
    command = [sys.executable, "-c", MEMORY, tmp_path / "large.parquet", tmp_path / "small.parquet"]
    grown = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert grown < 40  # MiB, for a file of 128 MiB in one row group
