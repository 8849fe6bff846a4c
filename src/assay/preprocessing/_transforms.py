"""Columns brought to one scale, or to scales that say how much each of them counts.

Rows of unit length, as perceptron and margin arguments want them.

Augmented vectors: a hyperplane <w, x> = b becomes one through the origin, <(w, -b), (x, 1)> = 0.

All monomials up to a degree: the nonlinear transform that turns polynomial boundaries into hyperplanes.

Discretisation of numeric columns at the border of largest information gain (C4.5's bi-partition).
"""

import os
from dataclasses import KW_ONLY, dataclass
from itertools import combinations_with_replacement, product
from math import comb, factorial, prod, sqrt
from typing import Any, ClassVar

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from assay.base import Learner, read_rows, require_finite
from assay.data.blocks import Block
from assay.params import Choice, Count, Flag, check, refuse

_MOST_FACTORS = 2**22  # of all monomials together, which are kept as lists
_SHARE = 0.5  # of the machine's memory that the transformed rows may take


@dataclass(eq=False, repr=False)
class ScaledColumns(OneToOneFeatureMixin, TransformerMixin, Learner):
    """Subtract each column's mean and divide by its standard deviation, or multiply columns by the roots of weights.

        variance   z_j = (x_j - mean_j) / s_j,  s_j^2 = sum_i (x_ij - mean_j)^2 / n;  a constant column becomes 0
        weights    z_j = sqrt(w_j) x_j,  so that  |z - z'|^2 = sum_j w_j (x_j - x'_j)^2

    The first is scikit-learn's StandardScaler, in sums over blocks of rows: X may be Parquet files or a Dask table. The
    second makes any learner that looks at Euclidean distances use those of `metrics.distance.Weighted`.

    Parameters
    ----------
    by : "variance", or numbers >= 0
        Unit variance, or a weight for each column.
    n_jobs : int or None
        Threads; changes the time, never a bit.

    Attributes
    ----------
    center_, factor_ : (d,)
        z_j = (x_j - center_j) * factor_j.

    Examples
    --------
    >>> from assay.preprocessing import ScaledColumns
    >>> ScaledColumns().fit_transform([[1.0, 10.0], [3.0, 30.0]]).tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    >>> ScaledColumns([4.0, 0.0]).fit_transform([[1.0, 10.0], [3.0, 30.0]]).tolist()
    [[2.0, 0.0], [6.0, 0.0]]
    """

    family = "features.scaled"

    by: Any = "variance"
    _: KW_ONLY
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any = None) -> "ScaledColumns":
        """Find center and factor of each column of rows X."""
        check(self)
        rows = read_rows(self, X, None)
        require_finite(rows, self)
        d = rows.n_features
        if not isinstance(self.by, str):
            weights = np.asarray(self.by, dtype=np.float64)
            if weights.shape != (d,) or not np.isfinite(weights).all() or weights.min() < 0:
                raise refuse(self, f"by must be {d} weights >= 0, one for each column; got {str(self.by)[:60]}.")
            self.center_, self.factor_ = np.zeros(d), np.sqrt(weights)
            return self
        if self.by != "variance":
            raise refuse(self, f'by must be "variance" or a weight for each column; got {self.by!r}.')
        self.center_ = rows.sum(_total) / rows.n_rows
        squares, rest = rows.sum(_squares, self.center_)
        spread = np.sqrt(np.maximum(squares - rest**2 / rows.n_rows, 0.0) / rows.n_rows)
        constant = spread <= 8 * np.finfo(float).eps * np.abs(self.center_)  # what rounding of the mean leaves
        self.factor_ = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, spread))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the rows with scaled columns."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return (X - self.center_) * self.factor_

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return rows of which `transform` makes X; a column with factor 0 comes back as its center."""
        check_is_fitted(self)
        X = np.asarray(X, dtype=np.float64)
        return X / np.where(self.factor_ == 0, np.inf, self.factor_) + self.center_


def _total(block: Block) -> np.ndarray:
    return block.X.sum(axis=0)


def _squares(block: Block, center: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of squares of x - center, and of x - center, which is nearly 0."""
    X = block.X - center
    return (X * X).sum(axis=0), X.sum(axis=0)


@dataclass(eq=False, repr=False)
class UnitRows(OneToOneFeatureMixin, TransformerMixin, Learner):
    """Divide each row by its length; a row of zeros has no direction and is refused with its number.

    Parameters
    ----------
    zero : "refuse" or "keep"
        What a row of zeros meets; scikit-learn's Normalizer keeps it.

    Examples
    --------
    >>> from assay.preprocessing import UnitRows
    >>> UnitRows().fit_transform([[3.0, 4.0], [0.0, -2.0]]).tolist()
    [[0.6, 0.8], [0.0, -1.0]]
    """

    family = "features.columns"
    constraints: ClassVar = {"zero": Choice("refuse", "keep")}

    _: KW_ONLY
    zero: str = "refuse"

    def fit(self, X: Any, y: Any = None) -> "UnitRows":
        """Learn the number of columns."""
        check(self)
        validate_data(self, X, dtype=np.float64)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def transform(self, X: Any) -> np.ndarray:
        """Return the rows divided by their lengths."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        largest = np.abs(X).max(axis=1, keepdims=True)  # taken out first, so that no square over- or underflows
        empty = np.flatnonzero(largest[:, 0] == 0)
        if len(empty) and self.zero == "refuse":
            raise refuse(self, f"row {empty[0]} (counted from 0) is zero and has no direction; there are {len(empty)}.")
        scaled = X / np.where(largest == 0, 1.0, largest)
        length = np.linalg.norm(scaled, axis=1, keepdims=True)
        return scaled / np.where(length == 0, 1.0, length)


def augment(X: Any, *, unit: bool = False, position: str = "last") -> np.ndarray:
    """Return the rows (x, 1), or (1, x) with position="first"; with `unit` divided by their length.

    Dividing a row by its length changes on which side of a hyperplane through the origin it lies for no w,
    but it changes
    its distance: the margin of unit rows is not the margin of the rows that were given.

    Parameters
    ----------
    X : array-like
        Rows.
    unit : bool, default=False
        Whether rows are divided by their length.
    position : str, default="last"
        "last" or "first": where the 1 stands.

    Returns
    -------
    ndarray
        The rows with a further column.

    Examples
    --------
    >>> augment([[3.0, 4.0]]).tolist()
    [[3.0, 4.0, 1.0]]
    """
    if position not in ("first", "last"):
        raise ValueError(f"augment: position must be 'first' or 'last'; got {position!r}.")
    X = np.atleast_2d(np.asarray(X, dtype=np.float64))
    parts = [X, np.ones(len(X))]
    rows = np.column_stack(parts if position == "last" else parts[::-1])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) if unit else rows


def augmented_weights(w: Any, b: float) -> np.ndarray:
    """Return (w, -b), so that <(w, -b), (x, 1)> = <w, x> - b.

    Parameters
    ----------
    w : array-like
        Weights.
    b : float
        Threshold.

    Returns
    -------
    ndarray
        The weights of augmented rows.

    Examples
    --------
    >>> augmented_weights([2.0, 1.0], 3.0).tolist()
    [2.0, 1.0, -3.0]
    """
    return np.append(np.asarray(w, dtype=np.float64), -float(b))


def plain_weights(augmented: Any) -> tuple[np.ndarray, float]:
    """Return w and b of (w, -b).

    Parameters
    ----------
    augmented : array-like
        Weights of augmented rows.

    Returns
    -------
    tuple of ndarray, float
        w and b.

    Examples
    --------
    >>> plain_weights([2.0, 1.0, -3.0])
    (array([2., 1.]), 3.0)
    """
    augmented = np.asarray(augmented, dtype=np.float64)
    return augmented[:-1].copy(), -float(augmented[-1])


def monomial_count(n_features: int, degree: int) -> int:
    """Return C(degree + n_features, degree), the number of monomials of at most that degree, the constant
    included.

    Each is a choice of `degree` factors, with repetition, from 1, x_1, ..., x_d.

    Parameters
    ----------
    n_features : int
        Number of variables.
    degree : int
        Largest degree.

    Returns
    -------
    int
        The number.

    Examples
    --------
    >>> monomial_count(2, 2)
    6
    """
    return comb(degree + n_features, degree)


@dataclass(eq=False, repr=False)
class PolynomialTransform(TransformerMixin, Learner):
    """Replace each row by all monomials of its entries up to a degree.

    For d columns and degree Q these are C(Q + d, Q) columns, ordered by degree; a transform that would not
    fit in memory is
    refused, with its size, before anything is computed.

    Parameters
    ----------
    degree : int >= 1
    include_bias : bool
        Whether to keep the constant monomial 1; a learner with an intercept does not need it.
    repeated : bool
        Whether x_1 x_2 and x_2 x_1 are two columns: 1 + d + d^2 + ... + d^Q in all.
    weighted : bool
        Whether each monomial is multiplied by the root of the number of its orders, sqrt(2) for x_1 x_2. In both forms
        the inner product of two transformed rows is 1 + <x, z> + ... + <x, z>^Q.

    Attributes
    ----------
    powers_ : list of tuples
        For each column the features multiplied, in order; () is the constant.

    Examples
    --------
    >>> from assay.preprocessing import PolynomialTransform
    >>> PolynomialTransform(2).fit_transform([[2.0, 3.0]]).tolist()
    [[1.0, 2.0, 3.0, 4.0, 6.0, 9.0]]
    """

    family = "features.columns"
    constraints: ClassVar = {"degree": Count(high=1000), "include_bias": Flag, "repeated": Flag, "weighted": Flag}

    degree: int = 2
    _: KW_ONLY
    include_bias: bool = True
    repeated: bool = False
    weighted: bool = False

    def fit(self, X: Any, y: Any = None) -> "PolynomialTransform":
        """Learn the number of columns."""
        check(self)
        if self.repeated and self.weighted:
            raise refuse(self, "weighted stands for what repeated writes out; ask for one of them.")
        X = validate_data(self, X, dtype=np.float64)
        self._require_memory(X.shape[0], X.shape[1], self.degree)
        self._derive()
        return self

    def _derive(self) -> None:
        """List the monomials of as many columns as there are."""
        made, columns = self._count(self.n_features_in_, self.degree), range(self.n_features_in_)
        if made * self.degree > _MOST_FACTORS:
            raise refuse(
                self,
                f"degree {self.degree} of {len(columns)} columns makes {_shown(made)} columns of up to {self.degree} "
                f"factors, more than {_MOST_FACTORS} in all. Lower the degree, drop columns, or use a "
                "polynomial kernel.",
            )
        self.powers_ = [
            factors
            for k in range(0 if self.include_bias else 1, self.degree + 1)
            for factors in (product(columns, repeat=k) if self.repeated else combinations_with_replacement(columns, k))
        ]

    def transform(self, X: Any) -> np.ndarray:
        """Return the monomials of each row, (n, C(degree + d, degree))."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        self._require_memory(X.shape[0], X.shape[1], self.degree)
        out = np.empty((len(X), len(self.powers_)))
        place = {factors: j for j, factors in enumerate(self.powers_)}
        for j, factors in enumerate(self.powers_):
            if len(factors) < 2:
                out[:, j] = X[:, factors[0]] if factors else 1.0
            else:
                np.multiply(out[:, place[factors[:-1]]], X[:, factors[-1]], out=out[:, j])
        return out * [_root_of_orders(factors) for factors in self.powers_] if self.weighted else out

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return a name for each column: factors joined by blanks, repeated ones as powers."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        if self.repeated:
            return np.array([" ".join(names[j] for j in factors) or "1" for factors in self.powers_], dtype=object)
        return np.array([_name(factors, names) for factors in self.powers_], dtype=object)

    def _formula(self, columns: int, degree: int) -> str:
        return f"1 + ... + {columns}^{degree}" if self.repeated else f"C({degree + columns}, {degree})"

    def _count(self, columns: int, degree: int) -> int:
        return sum(columns**k for k in range(degree + 1)) if self.repeated else monomial_count(columns, degree)

    def _require_memory(self, rows: int, columns: int, degree: int) -> None:
        made = self._count(columns, degree)
        limit = _SHARE * _memory()
        if made * 8 * rows > limit:
            raise refuse(
                self,
                f"degree {degree} of {columns} columns makes {self._formula(columns, degree)} = {made} "
                f"columns, and {rows} rows of "
                f"them take {made * 8 * rows / 2**30:.3g} GiB; at most {limit / 2**30:.3g} GiB may be used "
                "here. "
                "Lower the degree, drop columns, or use a polynomial kernel.",
            )


def _shown(count: int) -> str:
    return str(count) if count < 10**15 else "more than 10^15"


def _root_of_orders(factors: tuple[int, ...]) -> float:
    """Return the root of the number of ways in which these factors can be ordered."""
    return sqrt(factorial(len(factors)) / prod(factorial(factors.count(j)) for j in set(factors)))


def _name(factors: tuple[int, ...], names: np.ndarray) -> str:
    powers = {j: factors.count(j) for j in dict.fromkeys(factors)}
    return " ".join(names[j] if power == 1 else f"{names[j]}^{power}" for j, power in powers.items()) or "1"


def _memory() -> int:
    """Return the machine's memory in bytes; 8 GiB where it cannot be asked."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 2**33


@dataclass(eq=False, repr=False)
class BiPartition(OneToOneFeatureMixin, TransformerMixin, Learner):
    """Replace each column by 0 up to a threshold and 1 above it.

    Candidates are the middles of neighbouring different values; the threshold is the one with the largest gain
    Ent(D) - sum_v |D_v| / |D| Ent(D_v), the first of equal ones. A column with one value stays 0.

    Attributes
    ----------
    thresholds_ : (d,)
        0 for a column with one value, of which `divided_` is 0.
    gains_ : (d,)
        In bits.

    Examples
    --------
    >>> from assay.preprocessing import BiPartition
    >>> cut = BiPartition().fit([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0], [4.0, 5.0]], ["a", "a", "b", "b"])
    >>> cut.thresholds_.tolist(), cut.transform([[2.4, 9.0], [2.6, 0.0]]).tolist()
    ([2.5, 0.0], [[0.0, 0.0], [1.0, 0.0]])
    """

    family = "features.cuts"

    def fit(self, X: Any, y: Any = None) -> "BiPartition":
        """Find the threshold of each column."""
        check(self)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        codes = np.unique(y, return_inverse=True)[1]
        results = [_best(X[:, j], codes) for j in range(X.shape[1])]
        self.thresholds_, self.gains_, self.divided_ = (np.array(part) for part in zip(*results))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return 1 where an entry lies above its column's threshold."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return ((self.thresholds_ < X) & (self.divided_ == 1)).astype(np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _best(x: np.ndarray, codes: np.ndarray) -> tuple[float, float, int]:
    """Return the threshold of largest gain, the gain, and whether there is one."""
    order = np.argsort(x, kind="stable")
    x, member = x[order], np.eye(codes.max() + 1)[codes[order]]
    border = np.flatnonzero(x[1:] > x[:-1])
    if not len(border):
        return 0.0, 0.0, 0
    left = member.cumsum(axis=0)[border]
    right = member.sum(axis=0) - left
    parts = [part.sum(axis=1) / len(x) * _entropy(part) for part in (left, right)]
    gains = _entropy(member.sum(axis=0, keepdims=True))[0] - sum(parts)
    best = int(np.argmax(gains >= gains.max() - 1e-12))
    low, high = x[border[best]], x[border[best] + 1]
    middle = low + (high - low) / 2
    return float(middle if low <= middle < high else low), float(gains[best]), 1


def _entropy(counts: np.ndarray) -> np.ndarray:
    """Return the entropy of each row of counts in bits."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    return -np.sum(shares * np.log2(np.where(shares > 0, shares, 1.0)), axis=1)
