"""Least squares and ridge against NIST's reference data sets, rational arithmetic, NumPy and scikit-learn."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as peers

import assay
from assay import scan
from assay.linear_model import LinearRegression, Ridge
from assay.linear_model._least_squares import RankWarning
from tests.linear_model import rational

# NIST Statistical Reference Datasets, linear regression: https://www.itl.nist.gov/div898/strd/lls/lls.shtml
NORRIS_X = [
    0.2, 337.4, 118.2, 884.6, 10.1, 226.5, 666.3, 996.3, 448.6, 777.0, 558.2, 0.4, 0.6, 775.5, 666.9, 338.0,
    447.5, 11.6, 556.0, 228.1, 995.8, 887.6, 120.2, 0.3, 0.3, 556.8, 339.1, 887.2, 999.0, 779.0, 11.1, 118.3,
    229.2, 669.1, 448.9, 0.5,
]  # fmt: skip
NORRIS_Y = [
    0.1, 338.8, 118.1, 888.0, 9.2, 228.1, 668.5, 998.5, 449.1, 778.9, 559.2, 0.3, 0.1, 778.1, 668.8, 339.3,
    448.9, 10.8, 557.7, 228.3, 998.0, 888.8, 119.6, 0.3, 0.6, 557.6, 339.3, 888.0, 998.5, 778.9, 10.2, 117.6,
    228.9, 668.4, 449.2, 0.2,
]  # fmt: skip
NORRIS = (-0.262323073774029, 1.00211681802045)

LONGLEY_Y = [
    60323, 61122, 60171, 61187, 63221, 63639, 64989, 63761, 66019, 67857, 68169, 66513, 68655, 69564, 69331,
    70551,
]  # fmt: skip
LONGLEY_X = [
    [83.0, 234289, 2356, 1590, 107608, 1947], [88.5, 259426, 2325, 1456, 108632, 1948],
    [88.2, 258054, 3682, 1616, 109773, 1949], [89.5, 284599, 3351, 1650, 110929, 1950],
    [96.2, 328975, 2099, 3099, 112075, 1951], [98.1, 346999, 1932, 3594, 113270, 1952],
    [99.0, 365385, 1870, 3547, 115094, 1953], [100.0, 363112, 3578, 3350, 116219, 1954],
    [101.2, 397469, 2904, 3048, 117388, 1955], [104.6, 419180, 2822, 2857, 118734, 1956],
    [108.4, 442769, 2936, 2798, 120445, 1957], [110.8, 444546, 4681, 2637, 121950, 1958],
    [112.6, 482704, 3813, 2552, 123366, 1959], [114.2, 502601, 3931, 2514, 125368, 1960],
    [115.7, 518173, 4806, 2572, 127852, 1961], [116.9, 554894, 4007, 2827, 130081, 1962],
]  # fmt: skip
LONGLEY = (
    -3482258.63459582, 15.0618722713733, -0.358191792925910e-01, -2.02022980381683, -1.03322686717359,
    -0.511041056535807e-01, 1829.15146461355,
)  # fmt: skip

WAMPLER_X = np.arange(21.0)[:, None] ** np.arange(1, 6)
WAMPLER_POWERS = np.arange(21)[:, None] ** np.arange(6)
WAMPLER_NOISE = np.array([
    759, -2048, 2048, -2048, 2523, -2048, 2048, -2048, 1838, -2048, 2048, -2048, 1838, -2048, 2048, -2048,
    2523, -2048, 2048, -2048, 759,
])  # fmt: skip
WAMPLER = {
    "1": (WAMPLER_POWERS.sum(axis=1), np.ones(6)),
    "2": ((WAMPLER_POWERS * 10 ** np.arange(5, -1, -1)).sum(axis=1) / 1e5, 0.1 ** np.arange(6)),
    "3": (WAMPLER_POWERS.sum(axis=1) + WAMPLER_NOISE, np.ones(6)),
    "4": (WAMPLER_POWERS.sum(axis=1) + 100 * WAMPLER_NOISE, np.ones(6)),
    "5": (WAMPLER_POWERS.sum(axis=1) + 10_000 * WAMPLER_NOISE, np.ones(6)),
}


def digits(found, certified):
    """Return the least number of correct digits over all coefficients."""
    found, certified = np.asarray(found), np.asarray(certified)
    error = np.abs(found - certified) / np.abs(certified)
    return float(np.min(-np.log10(np.maximum(error, 1e-16))))


def parameters(model):
    return np.append(model.intercept_, model.coef_)


def quiet(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankWarning)
        return model.fit(*args, **kwargs)


# Published values -----------------------------------------------------------------------------------------


def test_the_wampler_noise_is_orthogonal_to_the_polynomials():
    assert not (WAMPLER_NOISE @ WAMPLER_POWERS).any()  # so the certified values are exactly 1


@pytest.mark.mission("LIN-02")
def test_norris():
    model = LinearRegression().fit(np.array(NORRIS_X)[:, None], NORRIS_Y)
    assert digits(parameters(model), NORRIS) >= 11
    slope, offset = np.polyfit(NORRIS_X, NORRIS_Y, 1)
    assert parameters(model) == pytest.approx([offset, slope], rel=1e-10)
    residual = np.array(NORRIS_Y) - model.predict(np.array(NORRIS_X)[:, None])
    assert abs(residual.sum()) < 1e-9  # both partial derivatives of the squared error vanish
    assert abs(residual @ NORRIS_X) < 1e-6


def test_longley():
    model = LinearRegression().fit(LONGLEY_X, LONGLEY_Y)
    assert digits(parameters(model), LONGLEY) >= 12
    assert digits(parameters(model), rational.least_squares(LONGLEY_X, LONGLEY_Y)) >= 12


@pytest.mark.parametrize("name", WAMPLER)
def test_wampler(name):
    y, certified = WAMPLER[name]
    model = LinearRegression().fit(WAMPLER_X, y)
    assert digits(parameters(model), certified) >= 7
    without = LinearRegression(fit_intercept=False).fit(np.hstack([np.ones((21, 1)), WAMPLER_X]), y)
    assert digits(without.coef_, certified) >= 7


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("weighted", [False, True])
def test_degree_ten_polynomial(order, weighted):
    rng = np.random.default_rng(0)
    x = np.linspace(-8.8, -3.1, 82)
    X = np.asarray(x[:, None] ** np.arange(1, 11), order=order)
    y = 0.05 * np.cos(x) + 0.85 + 0.003 * rng.normal(size=82)
    weight = rng.uniform(0.5, 2.0, 82) if weighted else None
    assert 1e14 < np.linalg.cond(np.column_stack([np.ones(82), X])) < 1e16
    exact = rational.least_squares(X, y, weight=weight)
    model = LinearRegression().fit(X, y, sample_weight=weight)
    assert digits(parameters(model), exact) >= 12
    assert digits(model.predict(X), np.column_stack([np.ones(82), X]).astype(np.longdouble) @ exact) >= 6
    columns = np.column_stack([np.ones(82), X])
    without = LinearRegression(fit_intercept=False).fit(columns, y, sample_weight=weight)
    assert digits(without.coef_, exact) >= 12


@pytest.mark.parametrize("alpha", [1e-12, 1e-3, 1e3])
def test_ridge_on_a_degree_ten_polynomial(alpha):
    x = np.linspace(0.1, 2.0, 30)
    X, y = x[:, None] ** np.arange(1, 11), np.sin(3 * x)
    model = Ridge(alpha=alpha).fit(X, y)
    assert digits(parameters(model), rational.least_squares(X, y, alpha=alpha)) >= 9


# Other libraries ------------------------------------------------------------------------------------------


def problem(seed, n=60, d=5, targets=None, scale=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * scale + rng.normal(size=d) * scale
    y = X @ rng.normal(size=d if targets is None else (d, targets)) + rng.normal(
        size=n if targets is None else (n, targets)
    )
    return X, y, rng.uniform(0.1, 3.0, n)


@pytest.mark.mission("LIN-01", "LIN-04")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("targets", [None, 1, 3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_least_squares_is_numpy_and_scikit_learn(seed, targets, intercept, weighted):
    X, y, weight = problem(seed, targets=targets)
    s = weight if weighted else None
    model = LinearRegression(fit_intercept=intercept).fit(X, y, sample_weight=s)
    peer = peers.LinearRegression(fit_intercept=intercept).fit(X, y, sample_weight=s)
    assert model.coef_.shape == peer.coef_.shape
    assert np.shape(model.intercept_) == np.shape(peer.intercept_)
    assert model.coef_ == pytest.approx(peer.coef_, rel=1e-10, abs=1e-12)
    assert model.intercept_ == pytest.approx(peer.intercept_, rel=1e-10, abs=1e-11)
    A = np.column_stack([X, np.ones(len(X))]) if intercept else X
    root = np.sqrt(weight)[:, None] if weighted else 1.0
    beta = np.linalg.lstsq(A * root, (y.T * np.ravel(root)).T, rcond=None)[0]
    assert model.coef_ == pytest.approx(beta[: X.shape[1]].T, rel=1e-10, abs=1e-12)
    prediction = X @ model.coef_.T + model.intercept_
    assert np.array_equal(model.predict(X), prediction)
    residual = ((y - prediction).T * (weight if weighted else 1.0)).T
    assert np.abs(A.T @ residual).max() < 1e-9  # orthogonal to every column


@pytest.mark.mission("LIN-08")
@pytest.mark.parametrize("lam", [1e-6, 0.1, 10.0, 1e6])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_ridge_is_scikit_learn(lam, intercept, weighted):
    X, y, weight = problem(7, targets=2)
    s, alpha = (weight if weighted else None), len(X) * lam  # the mean loss with lam is the sum with n lam
    model = Ridge(alpha=alpha, fit_intercept=intercept).fit(X, y, sample_weight=s)
    peer = peers.Ridge(alpha=alpha, fit_intercept=intercept, solver="cholesky").fit(X, y, sample_weight=s)
    assert model.coef_ == pytest.approx(peer.coef_, rel=1e-9, abs=1e-14)
    assert model.intercept_ == pytest.approx(peer.intercept_, rel=1e-9, abs=1e-14)
    if not intercept and not weighted:
        closed = np.linalg.solve(X.T @ X + alpha * np.eye(5), X.T @ y)
        assert model.coef_ == pytest.approx(closed.T, rel=1e-9, abs=1e-14)


def test_ridge_without_penalty_is_least_squares():
    X, y, _ = problem(2)
    assert np.array_equal(Ridge(alpha=0.0).fit(X, y).coef_, LinearRegression().fit(X, y).coef_)


@pytest.mark.parametrize("seed", range(4))
def test_badly_scaled_columns(seed):
    # The largest column makes the targets large, and with them the rounding of every double-precision method.
    X, y, _ = problem(seed, scale=10.0 ** np.array([-8, -4, 0, 4, 8]))
    exact = rational.least_squares(X, y)
    model = LinearRegression().fit(X, y)
    largest = np.abs(X).max(axis=0)
    best = np.linalg.lstsq(np.column_stack([np.ones(len(X)), X / largest]), y, rcond=None)[0]
    best[1:] /= largest
    assert digits(parameters(model), exact) >= digits(best, exact) - 0.5
    for alpha in (0.0, 1e-9):
        model = Ridge(alpha=alpha).fit(X, y)
        optimum = rational.least_squares(X, y, alpha=alpha)
        least = rational.objective(X, y, optimum[1:], optimum[0], alpha=alpha)
        excess = rational.objective(X, y, model.coef_, model.intercept_, alpha=alpha) - least
        assert excess < 1e-9 * least


@pytest.mark.parametrize("offset", [1e4, 1e8, -1e12])
def test_targets_and_columns_far_from_zero(offset):
    X, y, weight = problem(3)
    X, y = X + offset * np.array([0, 0, 0, 1e-3, 0]), y + offset
    exact = rational.least_squares(X, y, weight=weight)
    model = LinearRegression().fit(X, y, sample_weight=weight)
    assert digits(model.coef_, exact[1:]) >= 9
    assert digits(model.intercept_, exact[0]) >= 12


@pytest.mark.mission("LIN-05")
@pytest.mark.parametrize("seed", range(5))
def test_hat_matrix(seed):
    X, y, _ = problem(seed, n=30, d=4)
    A = np.column_stack([X, np.ones(30)])
    hat = A @ np.linalg.inv(A.T @ A) @ A.T
    assert LinearRegression().fit(X, y).predict(X) == pytest.approx(hat @ y, rel=1e-10)
    unit = LinearRegression().fit(X, np.eye(30))  # its predictions are the columns of the hat matrix
    found = unit.predict(X)
    assert found == pytest.approx(hat, abs=1e-12)
    assert found @ found == pytest.approx(found, abs=1e-12)
    assert np.trace(found) == pytest.approx(5, abs=1e-12)
    x = np.random.default_rng(seed).normal(size=4)
    expected = np.append(x, 1.0) @ np.linalg.inv(A.T @ A) @ A.T @ y
    assert LinearRegression().fit(X, y).predict(x[None]) == pytest.approx(expected, rel=1e-9)


# Columns that depend on each other ------------------------------------------------------------------------


def dependent(kind, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    columns = {
        "duplicate": [X, X[:, :1]],
        "sum": [X, X.sum(axis=1, keepdims=True)],
        "multiple": [X, 0.1 * X[:, 1:2]],
        "constant": [X, np.full((40, 1), 0.1)],
        "zero": [X, np.zeros((40, 1))],
        "one-hot": [X, np.eye(3)[rng.integers(0, 3, 40)]],
        "more columns than rows": [rng.normal(size=(40, 60))],
        "as many columns as rows": [rng.normal(size=(40, 40))],
        "all constant": [np.tile([0.1, 1e8 + 0.1, 1 / 3], (40, 1))],
    }
    return np.hstack(columns[kind]), X @ [1.0, -1.0, 2.0] + rng.normal(size=40)


KINDS = ["duplicate", "sum", "multiple", "constant", "zero", "one-hot", "more columns than rows"]
KINDS += ["as many columns as rows", "all constant"]


@pytest.mark.mission("LIN-06")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", [True, False])
def test_dependent_columns_get_the_solution_of_least_norm(kind, intercept):
    X, y = dependent(kind)
    centred = X - X.mean(axis=0) if intercept else X
    if kind in ("constant", "all constant") and intercept:
        centred[:, np.ptp(X, axis=0) == 0] = 0.0  # what is left of a constant is rounding
    centre = y.mean() if intercept else 0.0
    expected, _, rank, _ = np.linalg.lstsq(centred, y - centre, rcond=1e-12)
    model = LinearRegression(fit_intercept=intercept)
    if rank < X.shape[1]:
        with pytest.warns(RankWarning, match=f"rank {rank} of {X.shape[1]}"):
            model.fit(X, y)
    else:
        model.fit(X, y)
    assert model.rank_ == rank
    assert model.coef_ == pytest.approx(expected, abs=1e-10 * max(1.0, np.abs(expected).max()))
    residual = (y - centre) - centred @ model.coef_
    assert np.abs(centred.T @ residual).max() < 1e-12 * np.abs(centred).sum() + 1e-12  # a solution ...
    null = np.linalg.svd(centred)[2][rank:]
    assert np.abs(null @ model.coef_).max(initial=0.0) < 1e-9  # ... and no other is shorter


def test_dependence_shows_whatever_the_weights():
    X, y = dependent("duplicate")
    weight = np.random.default_rng(1).uniform(0, 2, 40)
    weight[:5] = 0.0
    with pytest.warns(RankWarning, match="rank 3 of 4"):
        model = LinearRegression().fit(X, y, sample_weight=weight)
    root = np.sqrt(weight)
    means = np.average(X, axis=0, weights=weight), np.average(y, weights=weight)
    expected = np.linalg.lstsq((X - means[0]) * root[:, None], (y - means[1]) * root, rcond=1e-12)[0]
    assert model.coef_ == pytest.approx(expected, abs=1e-11)
    assert model.coef_[0] == pytest.approx(model.coef_[3], rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_ridge_needs_no_warning(kind):
    X, y = dependent(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Ridge(alpha=0.5).fit(X, y)
    peer = peers.Ridge(alpha=0.5, solver="svd").fit(X, y)
    assert model.coef_ == pytest.approx(peer.coef_, abs=1e-9)


def test_nearly_dependent_columns_are_not_dependent():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    X[:, 2] = X[:, 0] + 1e-9 * rng.normal(size=50)
    y = rng.normal(size=50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LinearRegression().fit(X, y)
    assert digits(parameters(model), rational.least_squares(X, y)) >= 12


def test_many_rows_in_many_blocks():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150_000, 4)) + np.array([0, 5, 0, 0])
    y = X @ [1, 2, 3, 4] + rng.normal(size=150_000)
    A = np.column_stack([X, np.ones(len(X))])
    beta = np.linalg.lstsq(A, y, rcond=None)[0]
    model = LinearRegression().fit(X, y)
    assert np.append(model.coef_, model.intercept_) == pytest.approx(beta, rel=1e-11)
    hard = X * [1, 1, 1, 1e-3] + X[:, :1] * [0, 0, 0, 1]  # the last column nearly repeats the first
    beta = np.linalg.lstsq(np.column_stack([hard, np.ones(len(X))]), y, rcond=None)[0]
    model = LinearRegression().fit(hard, y)
    assert np.append(model.coef_, model.intercept_) == pytest.approx(beta, rel=1e-8)
    with pytest.warns(RankWarning, match="rank 4 of 5"):
        model = LinearRegression().fit(np.hstack([X, X[:, :1]]), y)
    assert model.coef_[0] + model.coef_[4] == pytest.approx(1.0, abs=0.02)
    assert model.coef_[0] == pytest.approx(model.coef_[4], rel=1e-9)


def test_wide_tables():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(700, 200)), rng.normal(size=700)
    expected = np.linalg.lstsq(np.column_stack([X, np.ones(700)]), y, rcond=None)[0]
    model = LinearRegression().fit(X, y)
    assert np.append(model.coef_, model.intercept_) == pytest.approx(expected, abs=1e-10)


def test_history_tells_the_objective_of_what_is_returned():
    for seed, alpha in ((0, 0.0), (1, 2.0)):
        X, y, weight = problem(seed, scale=10.0 ** np.array([-2, -1, 0, 1, 2]))
        for columns in (X, X @ np.triu(np.ones((5, 5))), np.hstack([X, X[:, :1]])):
            model = quiet(Ridge(alpha=alpha), columns, y, sample_weight=weight)
            exact = rational.objective(columns, y, model.coef_, model.intercept_, weight=weight, alpha=alpha)
            (step,) = model.history_
            assert step.objective == pytest.approx(float(exact), rel=1e-9)
            assert step.violation < 1e-6 * np.abs(columns).sum()


# Refusals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [LinearRegression, Ridge])
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0], [np.nan]], [1.0, 2.0], "contains NaN"),
        ([[1.0], [np.inf]], [1.0, 2.0], "contains infinity"),
        ([[1.0], [2.0]], [1.0, np.nan], "y contains NaN"),
        ([[1.0], [2.0]], [1.0, -np.inf], "y contains infinity"),
        ([["a"], ["b"]], [1.0, 2.0], "could not convert string"),
        ([[1.0], [2.0]], ["a", "b"], "could not convert string"),
        ([1.0, 2.0], [1.0, 2.0], "Expected 2D array"),
        ([[1.0], [2.0]], [1.0, 2.0, 3.0], "inconsistent numbers of samples"),
        ([[1.0], [2.0]], None, "y cannot be None|requires y to be passed"),
        (np.empty((0, 2)), [], "0 sample"),
        (np.empty((3, 0)), [1.0, 2.0, 3.0], "0 feature"),
        ([[1e200], [-1e200]], [1.0, 2.0], "too large"),
        ([[1.0], [2.0]], [1e200, 2e200], "too large"),
        (np.array([[1 + 2j], [2.0]]), [1.0, 2.0], "Complex data"),
    ],
)
def test_bad_data_are_refused(learner, X, y, message):
    with pytest.raises(ValueError, match=message):
        learner().fit(X, y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([0.0, 0.0, 0.0], "non-zero"),
        ([1.0, -1.0, 1.0], "Negative"),
        ([1.0, np.nan, 1.0], "contains NaN"),
        ([1.0, np.inf, 1.0], "infinity"),
        ([1.0, 2.0], "sample_weight.shape|inconsistent"),
        ([[1.0], [1.0], [1.0]], "1D array or scalar"),
    ],
)
def test_bad_weights_are_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        LinearRegression().fit([[1.0], [2.0], [4.0]], [1.0, 2.0, 3.0], sample_weight=weight)


def test_bad_streams_are_refused():
    import pyarrow as pa

    table = pa.table({"a": [1.0, 2.0, 4.0], "y": [1.0, 2.0, 3.0], "w": [1.0, -1.0, 2.0], "t": ["1", "2", "3"]})
    with pytest.raises(ValueError, match="weights must be >= 0; row 1 "):
        LinearRegression().fit(table.select(["a", "y", "w"]), "y", "w")
    with pytest.raises(ValueError, match="target of a regression must be numbers"):
        LinearRegression().fit(table.select(["a", "t"]), "t")
    with pytest.raises(ValueError, match="y is missing"):
        LinearRegression().fit(table.select(["a", "y"]))
    rows = scan.rows(np.eye(3), np.array([1.0, np.nan, 2.0]))
    with pytest.raises(ValueError, match="y contains NaN"):
        LinearRegression().fit(rows)
    model = LinearRegression().fit(table.select(["a", "w", "y"]), "y")
    with pytest.raises(ValueError, match="in order: a, w; got w, a"):
        model.certify(table.select(["w", "a", "y"]), "y")


def test_one_row_and_one_column():
    model = quiet(LinearRegression(), [[3.0, 4.0]], [5.0])
    assert model.predict([[3.0, 4.0], [0.0, 0.0]]).tolist() == [5.0, 5.0]
    model = quiet(LinearRegression(fit_intercept=False), [[3.0, 4.0]], [5.0])
    assert model.coef_ == pytest.approx([0.6, 0.8], rel=1e-14)
    assert Ridge().fit([[1.0]], [7.0]).predict([[100.0]]).tolist() == [7.0]


@pytest.mark.parametrize("intercept", [True, False])
def test_positive_coefficients_are_scikit_learns(intercept):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 6)) + 1
    Y = X @ rng.normal(size=(6, 2)) + rng.normal(size=(60, 2))
    options = {"positive": True, "fit_intercept": intercept}
    for ours, other in (
        (LinearRegression(**options), peers.LinearRegression(**options)),
        (Ridge(2.0, **options), peers.Ridge(2.0, **options, tol=1e-12)),
    ):
        ours.fit(X, Y)
        other.fit(X, Y)
        assert ours.coef_.min() == 0.0
        np.testing.assert_allclose(ours.coef_, other.coef_, atol=1e-5)
        assert assay.verify(ours.certify(X, Y), ours, X, Y).holds


@pytest.mark.parametrize("columns", [30, 2500])
@pytest.mark.parametrize("intercept", [True, False])
def test_sparse_rows_give_the_fit_of_dense_ones(columns, intercept):
    rng = np.random.default_rng(4)
    X = sp.random(120, columns, 0.05, format="csr", random_state=0)
    y, weight = rng.normal(size=120), rng.random(120)
    ours = Ridge(0.5, fit_intercept=intercept, tol=1e-13).fit(X, y, weight)
    dense = Ridge(0.5, fit_intercept=intercept).fit(X.toarray(), y, weight)
    np.testing.assert_allclose(ours.coef_, dense.coef_, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, dense.intercept_, atol=1e-9)
    assert ours.certify(X, y, sample_weight=weight)["ridge.gap"].value < 1e-6


def test_a_penalty_for_each_target():
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    both = Ridge(np.array([0.1, 10.0])).fit(X, Y)
    for k, alpha in enumerate((0.1, 10.0)):
        np.testing.assert_allclose(both.coef_[k], Ridge(alpha).fit(X, Y[:, k]).coef_, rtol=1e-12)
    with pytest.raises(ValueError, match="do not correspond: 3 != 2"):
        Ridge(np.ones(3)).fit(X, Y)
    with pytest.raises(ValueError, match="alpha must be"):
        Ridge(np.array([1.0, -1.0])).fit(X, Y)


@pytest.mark.parametrize("solver", ["svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga"])
def test_every_name_of_a_solver_finds_the_same_minimum(solver):
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    model = Ridge(solver=solver).fit(X, y)
    assert model.solver_ == solver
    np.testing.assert_array_equal(model.coef_, Ridge().fit(X, y).coef_)
    with pytest.raises(ValueError, match="does not support positive"):
        Ridge(solver=solver, positive=True).fit(X, y)


def test_singular_values_are_those_of_the_centred_rows():
    rng = np.random.default_rng(7)
    for shape in ((50, 4), (5, 9)):
        X, y = rng.normal(size=shape) + 3, rng.normal(size=shape[0])
        found = LinearRegression().fit(X, y).singular_
        np.testing.assert_allclose(found, np.linalg.svd(X - X.mean(axis=0), compute_uv=False), atol=1e-8)


def test_an_objective_without_targets_is_refused():
    X = np.arange(12.0).reshape(6, 2)
    with pytest.raises(ValueError, match="objective needs y"):
        Ridge().fit(X, X[:, 0]).objective(X)
