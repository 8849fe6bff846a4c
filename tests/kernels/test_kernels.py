"""Kernels against explicit feature maps, scikit-learn's pairwise kernels and eigenvalues."""

import json
import math
import warnings

import numpy as np
import pytest
from sklearn.metrics import pairwise

from assay.kernels import (
    Expansion,
    Function,
    Gaussian,
    IndefiniteKernelWarning,
    Laplacian,
    Linear,
    Polynomial,
    PowerSeries,
    Sigmoid,
    choose_kernel,
    definiteness,
    embedding,
    find_counterexample,
    from_plain,
    median_gamma,
    named_kernel,
)
from assay.kernels._tiles import BitTiles, ProductTiles, tiles
from assay.svm import SVC

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(25, 3)), RNG.normal(size=(17, 3))


@pytest.mark.mission("KER-53", "KER-55")
@pytest.mark.parametrize("kernel", [Polynomial(1), Polynomial(2), Polynomial(3, 0.5, 0.0), Polynomial(3, 0.7, 1.3)])
def test_explicit_monomials_reproduce_the_polynomial_kernel(kernel):
    np.testing.assert_allclose(kernel.features(X) @ kernel.features(Z).T, kernel(X, Z), rtol=1e-10, atol=1e-12)
    one = (kernel.gamma * (Z @ X[0]) + kernel.coef0) ** kernel.degree
    np.testing.assert_allclose(kernel(X[:1], Z)[0], one, rtol=1e-10, atol=1e-12)


@pytest.mark.mission("KER-55")
def test_degree_must_be_a_positive_integer():
    for degree in (0, 1.5, -2):
        with pytest.raises(ValueError, match="degree must be an integer"):
            Polynomial(degree)


@pytest.mark.mission("KER-54", "KER-56", "KER-57", "KER-58", "KER-59")
def test_named_kernels_against_direct_formulas_and_scikit_learn():
    np.testing.assert_allclose(Linear()(X, Z), X @ Z.T)
    np.testing.assert_allclose(
        Gaussian.of_width(0.8)(X, Z), pairwise.rbf_kernel(X, Z, gamma=1 / (2 * 0.64)), atol=1e-14
    )
    apart = np.linalg.norm(X[:, None] - Z[None], axis=2)
    np.testing.assert_allclose(Laplacian(1 / 0.7)(X, Z), np.exp(-apart / 0.7), rtol=1e-9)
    np.testing.assert_allclose(Laplacian(0.9, norm=1)(X, Z), pairwise.laplacian_kernel(X, Z, gamma=0.9))
    x, z = X[:, :1], Z[:, :1]
    np.testing.assert_allclose(Laplacian(0.9)(x, z), pairwise.laplacian_kernel(x, z, gamma=0.9), rtol=1e-9)
    np.testing.assert_allclose(Sigmoid(0.3, -0.2)(X, Z), pairwise.sigmoid_kernel(X, Z, gamma=0.3, coef0=-0.2))


@pytest.mark.mission("KER-59", "KER-64", "KER-70")
def test_sigmoid_kernel_is_refuted_by_two_points():
    K = Sigmoid(1.0, -0.5)(np.array([[0.0], [1.0]]))
    np.testing.assert_allclose(np.linalg.eigvalsh(K), [-0.6535, 0.6535], atol=5e-5)
    found = definiteness(K)
    assert not found.psd
    assert found.direction @ K @ found.direction < -0.6


@pytest.mark.mission("KER-60")
def test_quadratic_kernel_of_the_notes():
    kernel = PowerSeries([1, 1, 1])
    x, z = np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]])
    assert kernel(x, z)[0, 0] == 3.0
    phi = lambda v: np.concatenate([[1.0], v, np.outer(v, v).ravel()])  # noqa: E731  (with duplicate products)
    assert phi(x[0]) @ phi(z[0]) == pytest.approx(3.0)
    np.testing.assert_allclose(kernel.features(X) @ kernel.features(Z).T, kernel(X, Z), rtol=1e-10, atol=1e-12)


@pytest.mark.mission("KER-61", "KER-69")
def test_power_series_converge_to_the_exponential_and_the_gaussian_kernel():
    series = PowerSeries([1 / math.factorial(p) for p in range(30)])
    np.testing.assert_allclose(series(X, Z), np.exp(X @ Z.T), rtol=1e-6)
    assert definiteness(series(X)).psd
    sigma = 1.5
    scaled = PowerSeries([1 / (math.factorial(p) * sigma ** (2 * p)) for p in range(40)])
    gaussian = scaled.rescaled(lambda A: np.exp(-np.sum(A * A, axis=1) / (2 * sigma**2)))
    np.testing.assert_allclose(gaussian(X, Z), Gaussian.of_width(sigma)(X, Z), atol=1e-12)
    assert np.linalg.eigvalsh(Gaussian.of_width(sigma)(X)).min() > -1e-12
    with pytest.raises(ValueError, match=">= 0"):
        PowerSeries([1, -1])


@pytest.mark.mission("KER-61")
def test_a_power_series_is_cut_where_it_has_converged_or_refused():
    """c_p = 1 / p! is exp(<x, z>), c_p = 1 the geometric series inside the unit ball, c_p = 1 / (2 p)! of even powers
    cosh; all are positive semidefinite. What does not converge absolutely at the reach is refused."""
    reach = float(np.abs(X @ X.T).max())
    exponential = PowerSeries.converged(lambda p: 1 / math.factorial(p), reach)
    np.testing.assert_allclose(exponential(X), np.exp(X @ X.T), rtol=1e-12, atol=1e-12 * math.exp(reach))
    near = 0.9 * X / np.sqrt(reach)
    geometric = PowerSeries.converged(lambda p: 1.0, 0.81)
    np.testing.assert_allclose(geometric(near), 1 / (1 - near @ near.T), rtol=1e-12)
    even = PowerSeries.converged(lambda p: 0.0 if p % 2 else 1 / math.factorial(p), reach)
    np.testing.assert_allclose(even(X), np.cosh(X @ X.T), rtol=1e-12)
    for series, rows in ((exponential, X), (geometric, near), (even, X)):
        K = series(rows)
        assert np.linalg.eigvalsh(K).min() >= -1e-13 * np.trace(K)
    for factor, far in (
        (lambda p: 1.0, 1.0),
        (lambda p: 1.0, 3.0),
        (lambda p: 1.0 / (p + 1), 1.0),
        (lambda p: float(math.factorial(p)) if p < 170 else math.inf, 0.5),
    ):
        with pytest.raises(ValueError, match="not seen to converge absolutely"):
            PowerSeries.converged(factor, far)
    with pytest.raises(ValueError, match=">= 0"):
        PowerSeries.converged(lambda p: (-1.0) ** p / math.factorial(p), 1.0)


@pytest.mark.mission("KER-62", "KER-63")
def test_any_function_is_a_kernel_and_gram_matrices_are_symmetric():
    kernel = Function(lambda A, B: np.minimum(np.abs(A[:, :1]), np.abs(B[:, 0])[None, :]))
    K = kernel(X)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(np.diag(K), np.abs(X[:, 0]))
    for one in (Linear(), Gaussian(0.3), Polynomial(2, 1.0, 1.0), Laplacian(2.0), Sigmoid(0.2)):
        K = one(X)
        np.testing.assert_allclose(K, K.T, atol=1e-14)
        np.testing.assert_allclose(np.diag(K), one.diagonal(X), atol=1e-12)
    with pytest.raises(ValueError, match="one number per pair"):
        Function(lambda A, B: A)(X)


@pytest.mark.mission("KER-64")
def test_every_named_kernel_passes_on_random_samples_except_the_sigmoid():
    for kernel in (Linear(), Gaussian(2.0), Laplacian(1.0), Laplacian(1.0, norm=1), Polynomial(3, 0.5, 0.2)):
        assert find_counterexample(kernel, n_features=2) is None
    points = find_counterexample(Sigmoid(1.0, -0.5), n_features=2)
    assert np.linalg.eigvalsh(Sigmoid(1.0, -0.5)(points)).min() < 0


@pytest.mark.mission("KER-65")
def test_embedding_reproduces_the_matrix_and_refuses_an_indefinite_one():
    for K in (Gaussian(0.5)(X), Linear()(X)):
        B = embedding(K)
        np.testing.assert_allclose(B @ B.T, K, atol=1e-10)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        embedding(np.array([[0.0, 1.0], [1.0, 0.0]]))


@pytest.mark.mission("KER-66", "KER-67", "KER-68")
def test_closure_under_sums_products_and_rescaling():
    g = lambda A: 1.0 + np.sin(A[:, 0])  # noqa: E731
    first, second = Gaussian(0.7), Polynomial(2, 1.0, 0.5)
    np.testing.assert_allclose((2.0 * first + 0.5 * second)(X, Z), 2 * first(X, Z) + 0.5 * second(X, Z))
    np.testing.assert_allclose((first * second)(X, Z), first(X, Z) * second(X, Z))
    np.testing.assert_allclose(first.rescaled(g)(X, Z), g(X)[:, None] * first(X, Z) * g(Z))
    for kernel in (2.0 * first + 0.5 * second, first * second, second.rescaled(g)):
        assert kernel.psd
        assert definiteness(kernel(X)).psd
    lowered = first + -1.0 * Linear()
    assert lowered.psd is None
    assert not definiteness(lowered(X)).psd
    both = Linear() * Polynomial(2)
    np.testing.assert_allclose(both.features(X) @ both.features(Z).T, both(X, Z), rtol=1e-10, atol=1e-12)
    total = Linear() + 3 * Polynomial(2)
    np.testing.assert_allclose(total.features(X) @ total.features(Z).T, total(X, Z), rtol=1e-10, atol=1e-12)


@pytest.mark.mission("KER-77")
def test_reproducing_property_and_the_bound_by_the_norm():
    kernel = Gaussian(0.6)
    h = Expansion(kernel, X, RNG.normal(size=25))
    assert h.norm**2 == pytest.approx(h.alpha @ kernel(X) @ h.alpha)
    for point in Z:
        section = Expansion(kernel, point[None], np.ones(1))
        value = h(point[None])[0]
        assert value == pytest.approx(h.alpha @ np.exp(-0.6 * np.sum((X - point) ** 2, axis=1)))
        assert h.inner(section) == pytest.approx(value)
        assert abs(value) <= h.norm * np.sqrt(kernel(point[None])[0, 0]) + 1e-12


@pytest.mark.mission("KER-92")
def test_rule_of_thumb_for_the_choice_of_a_kernel():
    from scipy.sparse import random_array

    text = random_array((50, 400), density=0.01, rng=np.random.default_rng(1), format="csr")
    assert isinstance(choose_kernel(text), Linear)
    dense = RNG.normal(size=(200, 4))
    chosen = choose_kernel(dense)
    squares = ((dense[:, None] - dense[None]) ** 2).sum(axis=2)[np.triu_indices(200, 1)]
    assert chosen == Gaussian(median_gamma(dense))
    assert chosen.gamma == pytest.approx(1 / np.median(squares))


def test_names_are_refused_by_name():
    with pytest.raises(ValueError, match="kernel must be one of"):
        named_kernel("gauss")


@pytest.mark.parametrize("kernel", [Gaussian(0.4), Linear(), Polynomial(3, 0.5, 1.0), Gaussian(0.4) + Linear()])
@pytest.mark.parametrize("single", [True, False])
def test_tiles_agree_with_the_kernel(kernel, single):
    A = RNG.normal(size=(300, 5)) + 100.0 * (type(kernel) is Gaussian)  # an offset must not cost precision
    source = tiles(kernel, A, single)
    rows, out = np.array([3, 77, 250]), np.empty((3, 60), source.dtype)
    source.fill(rows, 40, 100, out)
    np.testing.assert_allclose(out, kernel(A[rows], A[40:100]), rtol=2e-5 if single else 1e-9, atol=1e-6 * single)
    sub = source.take(np.arange(50, 90))
    out = np.empty((2, 40), source.dtype)
    sub.fill(np.array([0, 5]), 0, 40, out)
    np.testing.assert_allclose(out, kernel(A[[50, 55]], A[50:90]), rtol=2e-5 if single else 1e-9, atol=1e-6 * single)


@pytest.mark.parametrize("columns", [30, 128, 129, 300])
def test_bits_give_the_gaussian_kernel(columns):
    A = (RNG.random((80, columns)) < 0.3).astype(float)
    source = tiles(Gaussian(0.05), A, True)
    assert isinstance(source, BitTiles)
    out = np.empty((80, 80), np.float32)
    source.fill(np.arange(80), 0, 80, out)
    np.testing.assert_allclose(out, Gaussian(0.05)(A), rtol=1e-6)
    A[0, 0] = 0.5
    assert isinstance(tiles(Gaussian(0.05), A, True), ProductTiles)


# Files ------------------------------------------------------------------------------------------------------

STORED = [
    Linear(),
    Polynomial(2, 0.5, 1.0),
    Gaussian(np.float64(0.3)),
    Laplacian(2, norm=1),
    Sigmoid(0.1, -1.0),
    PowerSeries([1, 0.5, 0.25]),
    2 * Gaussian(1) + Linear() * Polynomial(3),
]


@pytest.mark.parametrize("kernel", STORED, ids=repr)
def test_a_kernel_comes_back_from_its_plain_form(kernel):
    text = json.dumps(kernel.plain())
    back = from_plain(json.loads(text))
    assert repr(back) == repr(kernel) if not isinstance(kernel, Gaussian) else back.gamma == kernel.gamma
    np.testing.assert_array_equal(back(X, Z), kernel(X, Z))


@pytest.mark.parametrize("kernel", [Function(lambda a, b: a @ b.T), Linear().rescaled(lambda a: a[:, 0])])
def test_functions_are_no_part_of_a_file(kernel):
    for one in (kernel, kernel + Linear()):
        with pytest.raises(ValueError, match="holds a Python function"):
            one.plain()


def test_a_class_that_takes_a_known_name_is_not_written():
    class Gaussian(Linear):
        pass

    with pytest.raises(ValueError, match="class of its own"):
        Gaussian().plain()


@pytest.mark.parametrize(
    "value",
    [
        None,
        "Linear",
        ["Linear"],
        ["Linear", [1.0]],
        ["Eval", []],
        ["Function", ["print"]],
        [["Linear", []], []],
        ["Gaussian", []],
        ["Gaussian", [-1.0]],
        ["Gaussian", [float("nan")]],
        ["Gaussian", [10**400]],
        ["Gaussian", [True]],
        ["Gaussian", ["1"]],
        ["Laplacian", [1.0, 3]],
        ["Polynomial", [1.5, 1.0, 0.0]],
        ["PowerSeries", [[]]],
        ["PowerSeries", [[1.0] * 2000]],
        ["Sum", [["Linear", []], 1.0]],
        {"Linear": []},
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_no_kernel_is_refused(value):
    with pytest.raises(ValueError, match=r"kernel|must be|needed"):
        from_plain(value)


def test_kernels_too_deep_or_too_many_are_refused():
    value = ["Linear", []]
    for _ in range(200):
        value = ["Scaled", [value, 1.0]]
    with pytest.raises(ValueError, match="nested deeper"):
        from_plain(value)
    wide = ["Linear", []]
    for _ in range(12):
        wide = ["Sum", [wide, wide]]
    with pytest.raises(ValueError, match="more than 1000 kernels"):
        from_plain(wide)


@pytest.mark.mission("KER-59")
def test_a_machine_warns_where_the_gram_matrix_is_indefinite():
    points, labels = np.array([[0.0], [1.0], [2.0], [-1.0]]), [0, 1, 1, 0]
    with pytest.warns(IndefiniteKernelWarning, match=r"eigenvalue -\d.*Sigmoid\(gamma=1.0, coef0=-0.5\)"):
        SVC(kernel="sigmoid", gamma=1.0, coef0=-0.5).fit(points, labels)
    gram = np.array([[0.0, 1.0], [1.0, 0.0]])
    with pytest.warns(IndefiniteKernelWarning, match="eigenvalue -1 < 0"):
        SVC(kernel="precomputed").fit(gram, [0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error", IndefiniteKernelWarning)
        for kernel in ("rbf", "linear", "poly", lambda a, b: a @ b.T):
            SVC(kernel=kernel).fit(points, labels)
        SVC(kernel="precomputed").fit(points @ points.T, labels)
