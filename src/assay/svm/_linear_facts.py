"""What linear machines prove about their training rows (the producer's side; the checker has its own)."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from assay.claims.claim import Claim, NotApplicable
from assay.optim.duality import enclosure, gamma, outward, score_rounding
from assay.scan import Rows
from assay.svm._linear_problem import Losses, residuals, transposed_product

_UNIT = 2.0**-53
_LEAST = 1e-150  # smaller dual variables are zero in a certificate
_OTHER_ROWS = "The dual variables belong to the rows of the fit, which are as many as dual_coef_ has columns; got {}."


def machine_claims(
    template: str, rows: Rows, losses: Losses, model: Any, row: int, params: Mapping[str, Any]
) -> Iterator[Claim | NotApplicable]:
    """Yield the gap of one hyperplane at the dual variables of the fit, and the enclosure where there is one alone."""
    dual = getattr(model, "dual_coef_", np.empty((0, 0)))  # a model file does not keep them
    if dual.shape[1] != rows.n_rows:
        yield NotApplicable(template, _OTHER_ROWS.format(rows.n_rows))
        return
    w, b = np.atleast_2d(model.coef_)[row], float(np.ravel(model.intercept_)[row])
    theta = _feasible(dual[row], rows, losses)
    gap = outward(gap_above(rows, losses, w, b, theta))
    yield Claim(template, gap, params=dict(params), witness={"theta": theta})
    if "class" not in params and not losses.l1:
        yield enclosure(template, gap, 1.0)


def _feasible(theta: np.ndarray, rows: Rows, losses: Losses) -> np.ndarray:
    """Return theta inside its range, computed as a checker computes it, and without numbers too small to multiply."""
    limit = losses.c if losses.linear else np.where(losses.c > 0, np.inf, 0.0)
    low = np.where(losses.t > 0, 0.0, -limit) if losses.labels else -limit
    high = np.where(losses.t < 0, 0.0, limit) if losses.labels else limit
    theta = np.clip(theta, low, high)
    if losses.l1:
        v, error = _transposed_product(rows, losses, theta)
        theta = theta * min(1.0, (1 - 1e-12) / float(np.max(np.abs(v) + error)))
    return np.where(np.abs(theta) < _LEAST, 0.0, theta)


def _transposed_product(rows: Rows, losses: Losses, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return v = sum theta_i (x_i, s), and how far rounding can move it."""
    largest = np.append(rows.largest_entries, losses.column)
    return transposed_product(rows, losses, theta), gamma(rows) * largest * float(np.abs(theta).sum())


def gap_above(rows: Rows, losses: Losses, w: np.ndarray, b: float, theta: np.ndarray) -> float:
    """Return an upper bound of the duality gap, enlarged by what rounding can hide."""
    s = losses.column
    u = np.append(w, b / s if s > 0 else 0.0)
    r = residuals(rows, losses, u)
    v, error = _transposed_product(rows, losses, theta)
    apart = np.abs(u - v) + error + 4 * _UNIT * np.abs(u)
    penalty = 0.5 * float(apart @ apart)
    if losses.l1:
        penalty = float(np.abs(u) @ (np.maximum(1 - np.sign(u) * v, 0.0) + error + 16 * _UNIT))
    reach = float(np.abs(w) @ rows.largest_entries) + abs(b)
    rounding = float(score_rounding(rows, w, b)[0]) + 64 * _UNIT * (1 + reach)
    load = np.abs(theta) + losses.c * (1 if losses.linear else 2 * np.abs(r) + rounding)
    slack = 4 * float(load.sum()) * rounding + 64 * _UNIT * float(
        load @ (np.abs(r) + np.abs(losses.t) + losses.epsilon)
    )
    return (penalty + float(losses.brackets(r, theta).sum())) * (1 + 1e-9) + slack
