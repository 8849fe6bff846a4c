"""The encoding of a table: scikit-learn's numbers, a plain form that is refused when it lies, one arithmetic."""

import copy
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from assay.data import Column, ColumnType, Encoding, Table, read
from assay.data.encoding import MOST_LEVELS
from assay.datasets import load


def sklearn_encoder(table: Table) -> ColumnTransformer:
    numbers = make_pipeline(SimpleImputer(add_indicator=True, keep_empty_features=True), StandardScaler())
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False, max_categories=MOST_LEVELS)
    return ColumnTransformer(
        [
            ("numbers", numbers, table.positions("numeric", "ordered")),
            ("nominal", one_hot, table.positions("nominal")),
        ],
        sparse_threshold=0.0,
    )


def coded(name: str, codes: list[float], n_levels: int, kind: str = "nominal") -> Column:
    return Column(ColumnType(name, kind, tuple(f"v{i:03d}" for i in range(n_levels))), np.array(codes, dtype=float))


def check_against_sklearn(train: Table, table: Table) -> None:
    wanted = sklearn_encoder(table).fit(train.matrix()).transform(table.matrix())
    found = Encoding.fit(train).apply(table)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_the_numbers_are_those_of_scikit_learn_on_a_table_with_gaps():
    table, _ = load("credit").split_target("default")
    check_against_sklearn(table.take(np.arange(0, 1000, 3)), table)


def a_number(gaps: bool):
    plain = st.sampled_from([-3.0, 0.0, 0.5, 1.0, 2.0, 1e6])
    return st.one_of(plain, st.just(np.nan)) if gaps else plain


@settings(max_examples=60)
@given(st.data())
def test_the_numbers_are_those_of_scikit_learn_on_any_table(data):
    """Gaps in training rows, in others, in none; columns that are empty or constant; levels that do not occur."""
    n, cut = 12, 8
    columns = []
    for i in range(data.draw(st.integers(1, 5))):
        kind = data.draw(st.sampled_from(["numeric", "ordered", "nominal"]))
        if kind == "numeric":
            values = data.draw(st.lists(a_number(data.draw(st.booleans())), min_size=n, max_size=n))
            columns.append(Column(ColumnType(f"c{i}", kind), np.array(values)))
        else:
            codes = st.sampled_from([0.0, 1.0, 2.0, 3.0, np.nan])
            columns.append(coded(f"c{i}", data.draw(st.lists(codes, min_size=n, max_size=n)), 4, kind))
    table = Table(columns)
    check_against_sklearn(table.take(slice(cut)), table)


@pytest.mark.parametrize("n_levels", [98, 99, 100, 101, 150])
@pytest.mark.parametrize("gap", [False, True])
def test_rare_levels_share_a_column_as_in_scikit_learn(n_levels, gap):
    rng = np.random.default_rng(n_levels)
    codes = np.concatenate([np.arange(n_levels), rng.integers(0, 30, 600), [np.nan] * gap])
    table = Table([coded("c", codes.tolist(), n_levels)])
    check_against_sklearn(table, table)
    names = Encoding.fit(table).feature_names()
    assert len(names) == Encoding.fit(table).apply(table).shape[1]
    assert ("c = other" in names) == (n_levels + gap >= MOST_LEVELS)


def test_names_of_the_encoded_columns():
    table = read({"age": [1.0, None, 3.0], "job": ["cook", None, "clerk"]})
    assert Encoding.fit(table).feature_names() == ["age", "age missing", "job = clerk", "job = cook", "job = missing"]


def test_a_table_is_one_matrix_of_raw_rows_whatever_its_bits():
    odd = np.array([-0.0, np.frombuffer(np.uint64(0x7FF8000000000001).tobytes(), np.float64)[0], 2.0])
    table = Table([Column(ColumnType("a", "numeric"), odd), coded("c", [0, 1, np.nan], 2)])
    raw, unknown = Encoding.fit(table).raw(table)
    wanted = np.array([[0.0, 0.0], [np.nan, 1.0], [2.0, np.nan]])
    assert raw.tobytes() == wanted.tobytes()
    assert unknown == {}


def test_new_levels_are_told_and_are_no_gaps():
    encoding = Encoding.fit(read({"job": ["cook", "clerk", None]}))
    rows = read({"job": ["cook", "diver"]})
    assert encoding.raw(rows)[1] == {"job": ["diver"]}
    assert encoding.apply(rows).tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    assert encoding.apply(read({"job": ["cook", None]})).tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def test_learners_that_read_levels_and_gaps_get_them():
    table = read({"age": [1.0, None, 3.0], "job": ["b", "a", "b"], "town": ["x", None, "y"]})
    everything = Encoding.fit(table, ("numbers", "nominal", "missing"))
    np.testing.assert_array_equal(everything.apply(table), table.matrix())
    assert everything.nominal() == [1, 2]
    no_gaps = Encoding.fit(table, ("numbers", "nominal"))  # a new level is a gap for who reads levels
    assert no_gaps.nominal() == []
    assert no_gaps.feature_names()[2:] == ["job = a", "job = b", "town = x", "town = y", "town = missing"]
    new = everything.apply(read({"age": [1.0], "job": ["c"], "town": ["x"]}))
    np.testing.assert_array_equal(new, [[1.0, np.nan, 0.0]])


def test_numbers_too_large_to_average_are_refused():
    with pytest.raises(ValueError, match="column 'a' has numbers too large"):
        Encoding.fit(read({"a": [1e308, 1.7e308, -1e308]}))


@pytest.fixture(scope="module")
def plain():
    table = read(
        {"age": [1.0, None, 3.0], "job": ["cook", None, "clerk"], "size": ["s", "l", "s"]},
        ordered={"size": ["s", "l"]},
    )
    return Encoding.fit(table).plain()


@pytest.mark.parametrize("reads", [("numbers",), ("numbers", "nominal", "missing")])
def test_the_plain_form_goes_through_json(reads):
    table, _ = load("credit").split_target("default")
    encoding = Encoding.fit(table, reads)
    again = Encoding.from_plain(json.loads(json.dumps(encoding.plain(), allow_nan=False)))
    assert again == encoding
    assert again.apply(table).tobytes() == encoding.apply(table).tobytes()


@pytest.mark.parametrize(
    ("at", "field", "value"),
    [
        (0, "fill", float("nan")),
        (0, "fill", "1"),
        (0, "fill", 10**400),
        (0, "fill", True),
        (0, "scaling", [0.0, 0.0]),
        (0, "scaling", [0.0, -1.0]),
        (0, "scaling", [0.0]),
        (0, "scaling", [float("inf"), 1.0]),
        (0, "gap", [0.0, 0.0]),
        (0, "gap", 0),
        (0, "kind", "nominal"),
        (0, "kind", ["numeric"]),
        (0, "levels", ["a"]),
        (0, "name", ""),
        (0, "name", "job"),
        (0, "name", 7),
        (0, "kept", True),
        (1, "levels", ["cook", "cook"]),
        (1, "levels", ["cook"]),
        (1, "levels", "ab"),
        (1, "slots", [0, 1]),
        (1, "slots", [0, 1, 2]),
        (1, "slots", [0, 1, 2, -1, 3]),
        (1, "slots", [0, 0, -1, 1]),
        (1, "slots", [0, 1, 2, 3]),
        (1, "slots", [0, 2, -1, 3]),
        (1, "slots", [-1, -1, -1, -1]),
        (1, "slots", [0, 1, -1, MOST_LEVELS]),
        (1, "slots", [0, 1.0, -1, 2]),
        (1, "slots", [False, True, -1, 2]),
        (1, "shared", 1),
        (2, "fill", None),
    ],
)
def test_a_plain_form_that_lies_is_refused(plain, at, field, value):
    forged = copy.deepcopy(plain)
    forged[at][field] = value
    with pytest.raises(ValueError, match=r"encoding"):
        Encoding.from_plain(forged)


@pytest.mark.parametrize("forged", [None, {}, [], [None], ["age"], [{}], [{"name": "a", "kind": "numeric"}]])
def test_what_is_no_encoding_is_refused(forged):
    with pytest.raises(ValueError, match="encoding"):
        Encoding.from_plain(forged)


def test_numbers_beyond_what_can_be_certified_count_as_gaps():
    """Each cell by itself, alike in the checker's encoding; a number that only scaling makes too large is filled."""
    from assay.checker.predictors import Predictor
    from assay.checker.rules.encodings import TableModel

    class Four(Predictor):
        columns = 4

    train = read({"a": [1.0, 3.0, None], "b": [1e-9, 3e-9, 2e-9], "c": [-1e90, 1e90, 0.0]})
    encoding = Encoding.fit(train)
    new = read({"a": [1e200, -1e-200, 1e150], "b": [1e149, -1e149, 3e-9], "c": [1e-80, 1e151, 1e90]})
    raw = encoding.raw(new)[0]
    np.testing.assert_array_equal(raw[:, 0], [np.nan, 0.0, 1e150])
    np.testing.assert_array_equal(raw[:, 2], [1e-80, np.nan, 1e90])
    found = encoding.apply(new)
    fill = encoding.arrays().fill
    a, b, c, gap = (found[:, encoding.feature_names().index(name)] for name in ("a", "b", "c", "a missing"))
    assert a[0] == pytest.approx(0, abs=1e-15)
    assert a[1] == pytest.approx(-fill[0] / encoding.arrays().scale[0])
    assert gap[0] > 0 > gap[1] == gap[2]
    assert b[:2] == pytest.approx([0, 0], abs=1e-12)
    assert b[2] == pytest.approx(np.sqrt(1.5))
    assert c[:2].tolist() == [0.0, 0.0]
    sizes = np.abs(found[found != 0])
    assert sizes.min() >= 1e-150
    assert sizes.max() <= 1e150
    target = {"name": "y", "kind": "numeric", "levels": []}
    checker = TableModel({"encoding": encoding.plain(), "target": target}, Four())
    assert checker.encode(raw).tolist() == found.tolist()
    assert encoding.apply(train).tolist() == checker.encode(encoding.raw(train)[0]).tolist()
