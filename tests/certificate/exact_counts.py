"""Counted errors and the limits they give, in rationals, as oracles."""

import bisect
import math
from fractions import Fraction
from typing import Any

import numpy as np

from tests.certificate.count_cases import growth
from tests.certificate.exact import codes, scores
from tests.certificate.forge import Case


def wrong_rows(case: Case, X: Any, y: Any) -> int:
    """Errors in exact arithmetic; a score of zero and a tie are errors."""
    total = 0
    for row, label in zip(scores(case, X), codes(case, y)):
        if len(row) == 1:
            total += not (row[0] > 0 if label == 1 else row[0] < 0)
        else:
            total += not all(row[label] > other for k, other in enumerate(row) if k != label)
    return total


def named_rows(case: Case, name: str) -> tuple[np.ndarray, np.ndarray]:
    if case.split is not None:
        rows = np.sort(case.split[name])
        return case.X[rows], case.y[rows]
    return (case.X, case.y) if name == "train" else case.holdout


def binomial_at_most(k: int, m: int, p: Fraction) -> Fraction:
    return sum((math.comb(m, j) * p**j * (1 - p) ** (m - j) for j in range(min(k, m) + 1)), Fraction(0))


def hypergeometric_at_most(k: int, total: int, marked: int, drawn: int) -> Fraction:
    ways = sum(math.comb(marked, j) * math.comb(total - marked, drawn - j) for j in range(min(k, drawn) + 1))
    return Fraction(ways, math.comb(total, drawn))


def limit_holds(case: Case, name: str, share: Fraction) -> bool:
    """Is the value a Clopper-Pearson limit of the exact count at delta * share?"""
    X, y = named_rows(case, name)
    k, m, p = wrong_rows(case, X, y), len(X), Fraction(case.claim.value)
    level = Fraction(case.claim.delta) * share
    if case.claim.direction == "upper":
        return p == 1 or (p > 0 and k < m and binomial_at_most(k, m, p) <= level)
    return p == 0 or (p < 1 and k > 0 and 1 - binomial_at_most(k - 1, m, p) <= level)


def vc_holds(case: Case) -> bool:
    """Is the value at least the exact ghost-sample bound at the exact count? The growth function is
    recomputed."""
    params, n = case.claim.params, len(case.X)
    k, p = wrong_rows(case, case.X, case.y), Fraction(case.claim.value)
    if p == 1:
        return True
    d, bias = case.X.shape[1], bool(np.any(case.model.intercept_)) or params["class"]["bias"]
    ways = growth({"class": "halfspaces", "d": max(d, params["class"]["d"]), "bias": bias}, 5 * n)
    level = Fraction(case.claim.delta) / 2 / ways
    K = bisect.bisect_left(range(5 * n + 1), True, k + 1, key=lambda K: hypergeometric_at_most(k, 5 * n, K, n) <= level)
    return 5 * n >= K and K - k <= 4 * n and 1 - binomial_at_most(K - k - 1, 4 * n, p) >= Fraction(1, 2)
