"""The table of growers: which one serves a request, and what all of them must keep."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor
from assay.tree.growth._growers import grower_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
LEVELS = np.column_stack([X[:, :3], RNG.integers(0, 3, 120)])
GAPS = np.where(RNG.uniform(size=X.shape) < 0.1, np.nan, X)
Y = (X[:, 0] > 0).astype(np.int64)
TREE, NUMBERS = DecisionTreeClassifier, DecisionTreeRegressor


@pytest.mark.parametrize(
    ("model", "rows", "y", "name"),
    [
        (TREE(), X, Y, "sorted"),
        (TREE(), csr_array(X), Y, "sorted"),
        (TREE(max_features=2), X, Y, "exact"),
        (TREE(max_features=2), csr_array(X), Y, "sorted"),
        (TREE(monotonic_cst=[1, 0, 0, 0]), X, Y, "exact"),
        (TREE(), GAPS, Y, "general"),
        (TREE(monotonic_cst=[1, 0, 0, 0]), GAPS, Y, "general"),
        (TREE(missing="fractional"), GAPS, Y, "nominal"),
        (TREE(missing="fractional"), X, Y, "sorted"),
        (TREE(nominal=[3]), LEVELS, Y, "nominal"),
        (TREE(criterion="gain_ratio"), X, Y, "nominal"),
        (TREE(splitter="random"), X, Y, "extra"),
        (TREE(splitter="random"), GAPS, Y, "general"),
        (TREE(splitter="random", monotonic_cst=[1, 0, 0, 0]), X, Y, "exact"),
        (NUMBERS(criterion="absolute_error"), X, X[:, 1], "absolute"),
        (NUMBERS(criterion="absolute_error"), GAPS, X[:, 1], "general"),
        (NUMBERS(criterion="absolute_error"), X, X[:, :2], "general"),
        (NUMBERS(), X, X[:, :2], "sorted"),
        (NUMBERS(max_features=1), X, X[:, :2], "sorted"),
        (NUMBERS(splitter="random", criterion="friedman_mse"), X, X[:, :2], "general"),
    ],
)
def test_table(model, rows, y, name):
    data, n_classes = model._read(rows, y, None)
    assert grower_of(model._request(data, n_classes)).name == name


@pytest.mark.parametrize("setting", [{}, {"max_features": 2}, {"splitter": "random"}])
@pytest.mark.parametrize("rows", [X, np.round(X), GAPS], ids=["many values", "few values", "gaps"])
def test_rows_of_a_class_without_weight_move_no_threshold(setting, rows):
    y = np.where(X[:, 1] > 1, 2, Y)
    binary = y < 2
    model = TREE(class_weight={0: 1.0, 1: 1.0, 2: 0.0}, random_state=0, **setting).fit(rows, y)
    twin = TREE(random_state=0, **setting).fit(rows[binary], y[binary])
    np.testing.assert_array_equal(model.nodes_.threshold, twin.nodes_.threshold)
    np.testing.assert_array_equal(model.nodes_.weight, twin.nodes_.weight)
