"""The compiled sort of a column beside NumPy's stable sort."""

import numpy as np
import pytest

from assay.tree.growth._order import sort_column

RNG = np.random.default_rng(0)
COLUMNS = {
    "normal": RNG.normal(size=3000),
    "ties": np.round(RNG.normal(size=3000), 1),
    "zeros of both signs": RNG.choice([0.0, -0.0, 1.0, -1.0], 500),
    "extremes": RNG.permutation([np.inf, -np.inf, 5e-324, -5e-324, 1e308, -1e308, 0.0, 1.0]),
    "equal": np.full(10, 3.5),
    "one": np.array([2.0]),
    "integers": RNG.integers(-100, 100, 2000).astype(float),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_rows_by_ascending_value(name):
    column = COLUMNS[name]
    order = np.empty(len(column), dtype=np.int32)
    sort_column(column, order)
    assert np.array_equal(order, np.argsort(column, kind="stable"))
