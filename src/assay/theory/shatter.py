"""Half-spaces and points in exact arithmetic: which labellings exist, and a proof for each that does not.

Coordinates are binary fractions, so everything here is done on integers. Points are first lifted to vectors
v such that the class is {v : w.v > 0}; an affine half-space appends a coordinate 1.

`cells` lists all labellings. Every cell of the arrangement {w : w.v_i = 0} has an extreme ray, which is
orthogonal to r - 1 independent v_i (r the rank); away from these the labels are those of the ray, and on
them every labelling of the smaller arrangement occurs nearby. So it walks over (r-1)-subsets: C(16, 5) =
4,368 of them decide all 65,536 labellings of 16 points in five dimensions.

`separate` decides one labelling by the simplex method on rationals (Bland's rule). It ends with w.y_i v_i > 0 for
all i, or with weights >= 0, not all 0, that make sum_i weight_i y_i v_i = 0 (Gordan's theorem of the alternative).
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

_MOST_SUBSETS = 3_000_000


class Separation(NamedTuple):
    """A separator, or the proof that there is none.

    `normal`.v_i has the asked sign for every lifted point; or `weights` are non-negative, at most one more
    of them positive than the lifted dimension, and sum_i weights_i label_i v_i = 0. Both are exact
    fractions.
    """

    separable: bool
    normal: tuple[Fraction, ...] | None
    weights: tuple[Fraction, ...] | None


@dataclass(frozen=True)
class LiftedRule:
    """+1 where normal.lift(x) > 0, decided exactly."""

    normal: tuple[Fraction, ...]
    lift: Callable[[np.ndarray], list[list]]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        rows = self.lift(np.asarray(X, dtype=np.float64))
        return np.array([1 if sum(w * v for w, v in zip(self.normal, row)) > 0 else -1 for row in rows])


def monomials(points: np.ndarray, degree: int, constant: bool) -> list[list[Fraction]]:
    """Return the exact values of all monomials up to the degree, the constant (if wanted) last."""
    d = points.shape[1]
    powers = [
        combination
        for total in range(1, degree + 1)
        for combination in itertools.combinations_with_replacement(range(d), total)
    ]
    lifted = []
    for point in points:
        exact = [Fraction(value) for value in point.tolist()]
        row = [math.prod((exact[j] for j in power), start=Fraction(1)) for power in powers]
        lifted.append([*row, Fraction(1)] if constant else row)
    return lifted


def paraboloid(points: np.ndarray) -> list[list[Fraction]]:
    """Return (2x, 1, -|x|^2): its product with (c, r^2 - |c|^2, 1) is r^2 - |x - c|^2."""
    lifted = []
    for point in points:
        exact = [Fraction(value) for value in point.tolist()]
        square = sum((value * value for value in exact), Fraction(0))
        lifted.append([2 * value for value in exact] + [Fraction(1), -square])
    return lifted


def vertical(d: int) -> list[Fraction]:
    """Return the last unit vector of the space of `paraboloid`."""
    return [Fraction(0)] * (d + 1) + [Fraction(1)]


def _integers(row: Sequence[Fraction]) -> list[int]:
    """Return the row scaled by a positive number to coprime integers."""
    scale = math.lcm(*(value.denominator for value in row))
    whole = [int(value * scale) for value in row]
    common = math.gcd(*whole) or 1
    return [value // common for value in whole]


def _echelon(rows: Sequence[Sequence[int]], columns: int) -> tuple[list[list[int]], list[int]]:
    """Return the reduced rows of an integer matrix, fraction-free (Bareiss), and its pivot columns."""
    matrix, pivots, previous, top = [list(row) for row in rows], [], 1, 0
    for column in range(columns):
        at = next((i for i in range(top, len(matrix)) if matrix[i][column]), None)
        if at is None:
            continue
        matrix[top], matrix[at] = matrix[at], matrix[top]
        pivot_row, pivot = matrix[top], matrix[top][column]
        for i, row in enumerate(matrix):
            if i != top:
                factor = row[column]
                matrix[i] = [(pivot * a - factor * b) // previous for a, b in zip(row, pivot_row)]
        previous, top = pivot, top + 1
        pivots.append(column)
        if top == len(matrix):
            break
    return matrix[:top], pivots


def _normal(rows: Sequence[Sequence[int]], size: int) -> list[int] | None:
    """Return the integer vector orthogonal to size - 1 independent rows, None if they are dependent."""
    matrix, pivots = _echelon(rows, size)
    if len(pivots) < size - 1:
        return None
    free = next(column for column in range(size) if column not in pivots)
    diagonal = matrix[0][pivots[0]] if matrix else 1
    normal = [0] * size
    normal[free] = diagonal
    for row, column in zip(matrix, pivots):
        normal[column] = -row[free]
    return normal


def cells(vectors: Sequence[Sequence[Fraction]]) -> set[int]:
    """Return all labellings by hyperplanes through the origin that meet no vector, as bit masks."""
    rows = [_integers(row) for row in vectors]
    if not all(any(row) for row in rows):
        raise ValueError("a point lifted to the zero vector lies on every hyperplane; leave it out.")
    return _cells(rows)


def _cells(rows: list[list[int]]) -> set[int]:
    _, pivots = _echelon(rows, len(rows[0]))
    rank = len(pivots)
    rows = [[row[column] for column in pivots] for row in rows]
    full = (1 << len(rows)) - 1
    if rank == 1:
        mask = sum(1 << i for i, row in enumerate(rows) if row[0] > 0)
        return {mask, full - mask}
    if math.comb(len(rows), rank - 1) > _MOST_SUBSETS:
        raise ValueError(f"too many hyperplanes through {rank - 1} of {len(rows)} points; ask about fewer points.")
    found: set[int] = set()
    flats: set[tuple[int, ...]] = set()
    for subset in itertools.combinations(range(len(rows)), rank - 1):
        normal = _normal([rows[i] for i in subset], rank)
        if normal is None:
            continue
        values = [sum(map(int.__mul__, normal, row)) for row in rows]
        flat = tuple(i for i, value in enumerate(values) if value == 0)
        if flat in flats:
            continue
        flats.add(flat)
        positive = sum(1 << i for i, value in enumerate(values) if value > 0)
        negative = sum(1 << i for i, value in enumerate(values) if value < 0)
        nearby = _spread(range(1 << len(flat)) if len(flat) == rank - 1 else _cells([rows[i] for i in flat]), flat)
        found.update(positive | local for local in nearby)
        found.update(negative | local for local in nearby)
    return found


def _spread(masks, places: tuple[int, ...]) -> list[int]:
    """Return the masks with bit j moved to places[j]."""
    return [sum(1 << place for j, place in enumerate(places) if mask >> j & 1) for mask in masks]


def separate(points: ArrayLike, labels: ArrayLike) -> Separation:
    """Return an affine separator (w, b) of points labelled -1 and +1, or the proof that there is none.

    >>> separate([[0.0], [1.0], [2.0]], [-1, 1, 1]).separable
    True
    >>> separate([[0.0], [1.0], [2.0]], [1, -1, 1]).weights
    (Fraction(1, 4), Fraction(1, 2), Fraction(1, 4))
    """
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or not np.isfinite(array).all():
        raise ValueError(f"points must be a two-dimensional array of finite numbers; got shape {array.shape}.")
    signs = np.asarray(labels)
    if signs.shape != (len(array),) or not np.isin(signs, (-1, 1)).all():
        raise ValueError(f"labels must be {len(array)} values, each -1 or +1.")
    return separate_lifted(monomials(array, 1, constant=True), signs)


def separate_lifted(vectors: Sequence[Sequence[Fraction]], labels: np.ndarray) -> Separation:
    """Return w with labels_i w.v_i > 0 for all i, or the weights that rule it out."""
    scales = [_scale(row) for row in vectors]
    signed = [[int(sign) * value for value in _integers(row)] for row, sign in zip(vectors, labels.tolist())]
    prices, basis, amounts = _phase_one([[*row, 1] for row in signed])
    if basis is None:
        return Separation(True, tuple(-value for value in prices[:-1]), None)
    raw = [Fraction(0)] * len(signed)
    for column, amount in zip(basis, amounts):
        if column < len(signed):
            raw[column] = amount * scales[column]
    total = sum(raw)
    return Separation(False, None, tuple(value / total for value in raw))


def _scale(row: Sequence[Fraction]) -> Fraction:
    """Return the positive factor that `_integers` multiplies the row by."""
    whole = _integers(row)
    return next((Fraction(a) / b for a, b in zip(whole, row) if b), Fraction(1))


def _phase_one(columns: list[list[int]]):
    """Find x >= 0 with sum_j x_j columns_j = (0, ..., 0, 1), by minimising artificial variables.

    Return (prices, basis, amounts); basis is None if there is no such x, and then prices.column_j <= 0 for
    all j while the last price is positive.
    """
    size, count = len(columns[0]), len(columns)
    inverse = [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    basis, amounts = list(range(count, count + size)), [Fraction(0)] * (size - 1) + [Fraction(1)]
    while True:
        artificial = [i for i in range(size) if basis[i] >= count]
        prices = [sum((inverse[i][j] for i in artificial), Fraction(0)) for j in range(size)]
        if sum((amounts[i] for i in artificial), Fraction(0)) == 0:
            return prices, basis, amounts
        whole = _integers(prices)
        entering = next((j for j in range(count) if sum(map(int.__mul__, whole, columns[j])) > 0), None)
        if entering is None:
            return prices, None, amounts
        direction = [sum(a * b for a, b in zip(row, columns[entering])) for row in inverse]
        leaving = min((i for i in range(size) if direction[i] > 0), key=lambda i: (amounts[i] / direction[i], basis[i]))
        _pivot(inverse, amounts, direction, leaving)
        basis[leaving] = entering


def _pivot(inverse: list, amounts: list, direction: list, leaving: int) -> None:
    """Update the basis inverse and the basic amounts in place when `leaving` leaves the basis."""
    pivot = direction[leaving]
    inverse[leaving] = [value / pivot for value in inverse[leaving]]
    amounts[leaving] /= pivot
    for i, factor in enumerate(direction):
        if i != leaving and factor:
            inverse[i] = [a - factor * b for a, b in zip(inverse[i], inverse[leaving])]
            amounts[i] -= factor * amounts[leaving]
