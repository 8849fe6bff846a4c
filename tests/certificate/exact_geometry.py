"""Margins and separability by programmes that SciPy solves, as oracles."""

import itertools
from typing import Any

import numpy as np
from scipy.optimize import linprog

from tests.certificate.exact import codes
from tests.certificate.forge import Case
from tests.certificate.margin_cases import hard_margin


def columns(case: Case, augmented: bool) -> np.ndarray:
    return np.hstack([case.X, np.ones((len(case.X), 1))]) if augmented else case.X


def best_margin(case: Case, intercept: Any) -> float:
    """The largest margin, by the quadratic programme of the forge (about 1e-7)."""
    Z = columns(case, intercept == "augmented")
    side = np.where(np.array(codes(case)) == 1, 1.0, -1.0)
    w, _ = hard_margin(Z, side, intercept is True)
    values = Z @ w
    least = (side * values)[side > 0].min(), (side * values)[side < 0].min()
    return float((sum(least) / 2 if intercept is True else min(least)) / np.linalg.norm(w))


def separable(X: np.ndarray, side: np.ndarray, intercept: bool) -> bool:
    """Is there a strict separator, by a linear programme?"""
    Z = np.hstack([X, np.ones((len(X), 1))]) if intercept else X
    A = np.hstack([-side[:, None] * Z, np.ones((len(X), 1))])
    found = linprog([*([0] * Z.shape[1]), -1], A, np.zeros(len(X)), bounds=[(-1, 1)] * Z.shape[1] + [(None, 1)])
    return found.status == 0 and -found.fun > 1e-9


def fewest_errors(X: np.ndarray, side: np.ndarray) -> int:
    """Least number of rows to remove until an affine hyperplane separates the rest."""
    for k in range(len(X) + 1):
        for gone in itertools.combinations(range(len(X)), k):
            keep = np.setdiff1d(np.arange(len(X)), gone)
            if len(set(side[keep])) < 2 or separable(X[keep], side[keep], True):
                return k
    return len(X)
