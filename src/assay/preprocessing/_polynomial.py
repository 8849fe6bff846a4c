"""All monomials up to a degree: the nonlinear transform that turns polynomial boundaries into hyperplanes."""

import os
from dataclasses import KW_ONLY, dataclass
from itertools import combinations_with_replacement
from math import comb
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

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
class PolynomialTransform(TransformerMixin, BaseEstimator):
    """Replace each row by all monomials of its entries up to a degree.

    For d columns and degree Q these are C(Q + d, Q) columns, ordered by degree; a transform that would not
    fit in memory is
    refused, with its size, before anything is computed.

    Parameters
    ----------
    degree : int >= 1
    include_bias : bool
        Whether to keep the constant monomial 1; a learner with an intercept does not need it.

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

    constraints: ClassVar = {"degree": Count(), "include_bias": Flag}

    degree: int = 2
    _: KW_ONLY
    include_bias: bool = True

    def fit(self, X: Any, y: Any = None) -> "PolynomialTransform":
        """Learn the number of columns."""
        check(self)
        X = validate_data(self, X, dtype=np.float64)
        self._require_memory(X.shape[0], X.shape[1], self.degree)
        self._derive()
        return self

    def _derive(self) -> None:
        """List the monomials of as many columns as there are."""
        self.powers_ = [
            factors
            for k in range(0 if self.include_bias else 1, self.degree + 1)
            for factors in combinations_with_replacement(range(self.n_features_in_), k)
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
        return out

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return a name for each column: factors joined by blanks, repeated ones as powers."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.array([_name(factors, names) for factors in self.powers_], dtype=object)

    def _require_memory(self, rows: int, columns: int, degree: int) -> None:
        made = monomial_count(columns, degree)
        limit = _SHARE * _memory()
        if made * 8 * rows > limit:
            raise refuse(
                self,
                f"degree {degree} of {columns} columns makes C({degree + columns}, {degree}) = {made} "
                f"columns, and {rows} rows of "
                f"them take {made * 8 * rows / 2**30:.3g} GiB; at most {limit / 2**30:.3g} GiB may be used "
                "here. "
                "Lower the degree, drop columns, or use a polynomial kernel.",
            )


def _name(factors: tuple[int, ...], names: np.ndarray) -> str:
    powers = {j: factors.count(j) for j in dict.fromkeys(factors)}
    return " ".join(names[j] if power == 1 else f"{names[j]}^{power}" for j, power in powers.items()) or "1"


def _memory() -> int:
    """Return the machine's memory in bytes; 8 GiB where it cannot be asked."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 2**33
