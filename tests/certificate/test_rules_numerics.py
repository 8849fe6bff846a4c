"""The checker's arithmetic against rationals: every bound must hold, and be tight enough to be of use."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from assay.checker.numerics import (
    Products,
    Sums,
    above,
    entropy_excess,
    excess_above,
    is_psd_after,
    norm_above,
    null_signs,
)
from tests.certificate.exact import DIGITS, decimal


@pytest.mark.parametrize("seed", range(20))
def test_sums_are_within_their_bound_and_nearly_exact(seed):
    rng = np.random.default_rng(seed)
    blocks = [rng.standard_normal((int(rng.integers(1, 300)), 3)) * 10.0 ** rng.integers(-8, 9, 3) for _ in range(6)]
    blocks.append(-np.vstack(blocks)[:200])  # cancellation
    sums = Sums(3)
    for block in blocks:
        sums.add(block)
    for j in range(3):
        exact = sum((Fraction(float(x)) for block in blocks for x in block[:, j]), Fraction(0))
        off = abs(Fraction(float(sums.value[j])) - exact)
        assert off <= Fraction(float(sums.error[j]))
        magnitude = sum(float(np.abs(block).sum()) for block in blocks)
        assert sums.error[j] <= 2.0**-52 * abs(float(exact)) + 1e-24 * magnitude


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 700])
def test_products_are_within_their_bound(rows):
    rng = np.random.default_rng(rows)
    X = rng.standard_normal((rows, 2)) * [1e4, 1e-4]
    T = rng.standard_normal((rows, 2))
    products = Products(2, 2)
    for part in np.array_split(np.arange(rows), 3):
        if len(part):
            products.add(X[part], T[part], np.abs(X[part]).max(axis=0))
    for k, j in itertools.product(range(2), range(2)):
        exact = sum((Fraction(float(a)) * Fraction(float(b)) for a, b in zip(T[:, k], X[:, j])), Fraction(0))
        off = abs(Fraction(float(products.value[k, j])) - exact)
        assert off <= Fraction(float(products.error[k, j]))
        assert products.error[k, j] <= 80 * 2.0**-53 * np.abs(T[:, k]).sum() * np.abs(X[:, j]).max()


@pytest.mark.parametrize(
    "x", [0.0, 1e-12, -1e-12, 0.009, -0.009, 0.011, -0.011, 0.5, -0.5, -1 + 2**-40, -1.0, 30.0, 1e8]
)
def test_entropy_excess_against_sixty_digits(x):
    from decimal import localcontext

    with localcontext(prec=DIGITS):
        d = decimal(Fraction(x))
        exact = (1 + d) * (1 + d).ln() - d if d > -1 else 1
        found = decimal(Fraction(float(entropy_excess(np.array([x]))[0])))
        assert abs(found - exact) <= exact * decimal(Fraction(2e-13))


def test_excess_above_holds_for_every_reference_and_distance_it_covers():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        low, far = 10.0 ** rng.uniform(-12, 0), 10.0 ** rng.uniform(-14, 0)
        s, d = low * (1 + rng.random() * 3), far * rng.random()
        up = float(excess_above(np.array([low]), np.array([far]), np.array([True]))[0])
        down = float(excess_above(np.array([low]), np.array([far]), np.array([False]))[0])
        true_up = s * float(entropy_excess(np.array([d / s]))[0])
        true_down = s * float(entropy_excess(np.array([-min(d, s) / s]))[0])
        assert true_up * (1 - 1e-12) <= up
        assert true_down * (1 - 1e-12) <= down


def rational_psd(rows: list[list[Fraction]]) -> bool:
    """Positive semidefinite by exact elimination with symmetric pivoting."""
    left = list(range(len(rows)))
    while left:
        k = max(left, key=lambda i: rows[i][i])
        if rows[k][k] < 0 or (rows[k][k] == 0 and any(rows[i][j] for i in left for j in left)):
            return False
        if rows[k][k] == 0:
            return True
        left.remove(k)
        for i in left:
            factor = rows[i][k] / rows[k][k]
            for j in left:
                rows[i][j] -= factor * rows[k][j]
    return True


@pytest.mark.parametrize("seed", range(100))
def test_psd_never_accepts_a_matrix_that_is_not(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    B = rng.standard_normal((n, n + 1)) * 10.0 ** rng.integers(-3, 4, size=(n, 1))
    A = B @ B.T
    A = (A + A.T) / 2
    least = max(float(np.linalg.eigvalsh(A)[0]), 0.0)
    for factor in (0.0, 0.5, 0.999, 1 - 1e-12, 1.0, 1 + 1e-12, 1.001, 2.0):
        shift = least * factor
        if is_psd_after(A, shift):
            exact = [[Fraction(float(v)) for v in row] for row in A]
            for i in range(n):
                exact[i][i] -= Fraction(shift)
            assert rational_psd(exact)
    if least > 1e-9 * np.trace(A):
        assert is_psd_after(A, 0.9 * least)  # and it is of use


def test_null_signs_against_rational_elimination():
    assert null_signs([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]) == [1, 1, 1]
    assert null_signs([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]) in ([1, 1, -1], [-1, -1, 1])
    assert null_signs([[1.0, 0.0], [0.0, 1.0]]) is None  # independent
    assert null_signs([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]) is None  # two dimensions
    rng = np.random.default_rng(1)
    for _ in range(200):
        d = int(rng.integers(1, 6))
        basis = rng.standard_normal((d, d)) * 10.0 ** rng.integers(-30, 30, size=(d, 1))
        weights = rng.integers(-3, 4, size=d)
        last = [
            float(v)
            for v in sum(
                Fraction(int(w)) * np.array([Fraction(float(v)) for v in row]) for w, row in zip(weights, basis)
            )
        ]
        exact = all(
            Fraction(v) == sum(Fraction(int(w)) * Fraction(float(row[j])) for w, row in zip(weights, basis))
            for j, v in enumerate(last)
        )
        signs = null_signs([*basis.tolist(), last])
        if exact and np.linalg.matrix_rank(basis / np.abs(basis).max(axis=1, keepdims=True)) == d:
            want = [int(np.sign(w)) for w in weights] + [-1]
            assert signs in (want, [-s for s in want])


def test_norm_above_is_above():
    rng = np.random.default_rng(2)
    for _ in range(200):
        v = rng.standard_normal(7) * 10.0 ** rng.integers(-20, 20)
        exact = sum(Fraction(float(x)) ** 2 for x in v)
        assert Fraction(norm_above(v)) ** 2 >= exact
        assert norm_above(v) <= math.sqrt(float(exact)) * (1 + 1e-14)
    assert above(1.0) > 1.0
