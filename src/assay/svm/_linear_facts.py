"""What linear machines prove about their training rows (the producer's side; the checker has its own)."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from assay.certificate.claim import Claim, NotApplicable
from assay.optim.duality import enclosure, gamma, outward, score_rounding
from assay.scan import Rows
from assay.svm._linear_problem import Losses, pulled, residuals

_UNIT = 2.0**-53
_LEAST = 1e-150  # smaller dual variables are zero in a certificate
_OTHER_ROWS = "The dual variables belong to the rows of the fit, which are as many as dual_coef_ has columns; got {}."


def machine_claims(
    template: str, rows: Rows, losses: Losses, model: Any, row: int, params: Mapping[str, Any]
) -> Iterator[Claim | NotApplicable]:
    """Yield the gap of one hyperplane at the dual variables of the fit, and the enclosure where there is one alone."""
    if model.dual_coef_.shape[1] != rows.n_rows:
        yield NotApplicable(template, _OTHER_ROWS.format(rows.n_rows))
        return
    w, b = np.atleast_2d(model.coef_)[row], float(np.ravel(model.intercept_)[row])
    theta = _feasible(model.dual_coef_[row], losses)
    gap = outward(gap_above(rows, losses, w, b, theta))
    yield Claim(template, gap, params=dict(params), witness={"theta": theta})
    if "class" not in params:
        yield enclosure(template, gap, 1.0)


def _feasible(theta: np.ndarray, losses: Losses) -> np.ndarray:
    """Return theta inside its range, computed as a checker computes it, and without numbers too small to multiply."""
    limit = losses.c if losses.linear else np.where(losses.c > 0, np.inf, 0.0)
    low = np.where(losses.t > 0, 0.0, -limit) if losses.labels else -limit
    high = np.where(losses.t < 0, 0.0, limit) if losses.labels else limit
    return np.where(np.abs(theta) < _LEAST, 0.0, np.clip(theta, low, high))


def gap_above(rows: Rows, losses: Losses, w: np.ndarray, b: float, theta: np.ndarray) -> float:
    """Return an upper bound of the duality gap, enlarged by what rounding can hide."""
    s = losses.column
    u = np.append(w, b / s if s > 0 else 0.0)
    r = residuals(rows, losses, u)
    largest = np.append(rows.largest_entries, s)
    size = float(np.abs(theta).sum())
    apart = np.abs(u - pulled(rows, losses, theta)) + gamma(rows) * largest * size + 4 * _UNIT * np.abs(u)
    rounding = float(score_rounding(rows, w, b)[0]) + 64 * _UNIT * (
        1 + float(np.abs(w) @ rows.largest_entries) + abs(b)
    )
    load = np.abs(theta) + losses.c * (1 if losses.linear else 2 * np.abs(r) + rounding)
    slack = 4 * float(load.sum()) * rounding + 64 * _UNIT * float(
        load @ (np.abs(r) + np.abs(losses.t) + losses.epsilon)
    )
    return 0.5 * float(apart @ apart) * (1 + 1e-9) + float(losses.brackets(r, theta).sum()) * (1 + 1e-9) + slack
