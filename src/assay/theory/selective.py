"""Errors among the rows that a classifier decides, when it may reject those whose share of votes is too small.

A row is decided if its share is above t. For thresholds t = g/64, fixed in advance, errors among the N decided of m
hold-out rows are binomial given which rows are decided, so that Clopper-Pearson limits, each at delta / 128, hold for
all 64 of them at once with half of delta. The other half is for thresholds between two of them:

    P[wrong | share > t]  <=  P[wrong and share > g/64] / P[share > (g+1)/64],    g/64 < t < (g+1)/64,

whose numerator and denominator have limits at delta / 256 each. So a threshold may be chosen by looking at these rows.
Nothing is assumed about ties or about the distribution of the shares. Compare Geifman and El-Yaniv 2017, who search for
one threshold.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from assay.theory import _checks as check
from assay.theory.concentration import clopper_pearson_lower, clopper_pearson_upper

GRID = 64
"""Thresholds fixed in advance: 0, 1/64, ..., 63/64."""


class AtThreshold(NamedTuple):
    """A limit of the selective risk at one threshold, and what it was computed from."""

    limit: float
    form: str
    wrong: int
    decided: int
    joint: float | None = None
    coverage: float | None = None

    def params(self) -> dict[str, Any]:
        """Return the parameters of the claim selective.risk that this proves."""
        counts = {"wrong": self.wrong, "decided": self.decided}
        if self.form == "fixed":
            return counts
        more = {} if self.form == "grid" else {"joint": self.joint, "coverage": self.coverage}
        return {"form": self.form, **counts, **more}


def at_threshold(
    shares: np.ndarray, wrong: np.ndarray, threshold: float, delta: float, slack: Any = 0.0
) -> AtThreshold | None:
    """Return the limit of P[wrong | share > threshold]; None if too few rows are decided. `slack` is how far a share
    can be off by rounding: such rows count as errors, and not as decided.

    >>> shares, wrong = np.linspace(0.3, 1, 200), np.arange(200) < 40
    >>> found = at_threshold(shares, wrong, 0.5, 0.05)
    >>> found.decided, found.wrong, round(found.limit, 3)
    (143, 0, 0.053)
    """
    shares, wrong = np.asarray(shares, dtype=np.float64), np.asarray(wrong, dtype=bool)
    threshold, delta = check.number("threshold", threshold, low=0.0, high=1.0), check.failure(delta)
    low = math.floor(threshold * GRID) / GRID
    on_grid = low == threshold
    high, m = low if on_grid else low + 1 / GRID, len(shares)
    decided = int(np.sum(shares > high + slack))
    errors = int(np.sum((shares > low - slack) & wrong)) if np.any(slack) else int(np.sum((shares > low) & wrong))
    if not decided or errors > (decided if on_grid else m):
        return None
    if on_grid:
        limit = clopper_pearson_upper(errors, decided, delta / (2 * GRID))
        return AtThreshold(limit, "grid", errors, decided)
    joint = min(1.0, clopper_pearson_upper(errors, m, delta / (4 * GRID)) + 1e-9)
    coverage = clopper_pearson_lower(decided, m, delta / (4 * GRID)) - 1e-9
    if coverage <= 0:
        return None
    return AtThreshold(min(1.0, joint / coverage), "between", errors, decided, joint, coverage)


def fixed_threshold(
    shares: np.ndarray, wrong: np.ndarray, threshold: float, delta: float, slack: Any = 0.0
) -> AtThreshold | None:
    """Return the limit as `at_threshold` does, for the one threshold that was fixed before the rows were looked at.

    >>> shares, wrong = np.linspace(0.3, 1, 200), np.arange(200) < 40
    >>> round(fixed_threshold(shares, wrong, 0.5, 0.05).limit, 3)
    0.021
    """
    decided = int(np.sum(shares > threshold + slack))
    errors = int(np.sum((shares > threshold - slack) & wrong))
    if not decided or errors > decided:
        return None
    return AtThreshold(clopper_pearson_upper(errors, decided, check.failure(delta)), "fixed", errors, decided)


class Curve(NamedTuple):
    """Error against coverage: for each threshold the share of rows decided, of errors among them, and its limit."""

    threshold: np.ndarray
    coverage: np.ndarray
    error: np.ndarray
    limit: np.ndarray


def curve(shares: np.ndarray, wrong: np.ndarray, delta: float = 0.05) -> Curve:
    """Return error, coverage and the limit of the error on new data at every threshold, all valid at once.

    >>> found = curve(np.array([0.6, 0.9, 0.95, 1.0]), np.array([True, False, False, False]))
    >>> found.coverage[[0, 40, 63]].tolist(), found.error[[0, 40]].tolist()
    ([1.0, 0.75, 0.25], [0.25, 0.0])
    """
    shares, wrong = np.asarray(shares, dtype=np.float64), np.asarray(wrong, dtype=bool)
    thresholds = np.arange(GRID) / GRID
    decided = np.array([np.sum(shares > t) for t in thresholds])
    errors = np.array([np.sum((shares > t) & wrong) for t in thresholds])
    found = [at_threshold(shares, wrong, float(t), delta) for t in thresholds]
    limits = np.array([1.0 if one is None else one.limit for one in found])
    rate = np.where(decided > 0, errors / np.maximum(decided, 1), np.nan)
    return Curve(thresholds, decided / max(1, len(shares)), rate, limits)
