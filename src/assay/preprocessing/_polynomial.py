"""All monomials up to a degree: the nonlinear transform that turns polynomial boundaries into hyperplanes."""

import os
from dataclasses import KW_ONLY, dataclass
from itertools import combinations_with_replacement, product
from math import comb, factorial, prod, sqrt
from typing import Any, ClassVar

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from assay.base import Learner
from assay.params import Count, Flag, check, refuse

_SHARE = 0.5  # of the machine's memory that the transformed rows may take


def monomial_count(n_features: int, degree: int) -> int:
    """Return C(degree + n_features, degree), the number of monomials of at most that degree, the constant
    included.

    Each is a choice of `degree` factors, with repetition, from 1, x_1, ..., x_d.

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
    constraints: ClassVar = {"degree": Count(), "include_bias": Flag, "repeated": Flag, "weighted": Flag}

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
        columns = range(self.n_features_in_)
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

    def _require_memory(self, rows: int, columns: int, degree: int) -> None:
        made = sum(columns**k for k in range(degree + 1)) if self.repeated else monomial_count(columns, degree)
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
