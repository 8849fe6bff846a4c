"""The statement from uniform stability (P17): a strong penalty keeps one row from moving the model far."""

import math
from functools import partial

import numpy as np

from assay.certificate.claim import Claim, NotApplicable
from assay.certificate.risk import Statement, Vacuous, error_rate
from assay.theory.stability import stability_bound, suboptimality_slack, uniform_stability

_WIDTHS = tuple(2.0**-exponent for exponent in range(21))


def stability_statement(margins: np.ndarray, cost: float, gap: float) -> Statement:
    """Return how to state P17 from lower bounds of the margins, the largest C_i and the gap of the model.

    The problem is 1/2 |w|^2 + sum C_i loss(z_i) with a loss of slope at most 1, rows of length 1 and no intercept.
    """
    return partial(_uniform, margins, cost, gap)


def _uniform(margins: np.ndarray, cost: float, gap: float, delta: str) -> Claim | NotApplicable:
    n, best = len(margins), (math.inf, 1.0)
    for rho in _WIDTHS:
        beta = uniform_stability(n, 1.0 / (cost * n), 1.0, evaluation_lipschitz=1.0 / rho)
        ramp = min(1.0, float(np.clip(1.0 - margins / rho, 0.0, 1.0).mean()) * (1 + 1e-12))
        bound = stability_bound(ramp, beta, n, float(delta) / len(_WIDTHS))
        best = min(best, (bound + suboptimality_slack(gap, 1.0, 1.0, 1.0 / rho), rho))
    bound, rho = best[0] * (1 + 1e-9), best[1]
    if bound >= 1:
        return Vacuous("P17/1", f"One row can move the model too far for {n} rows to show much: the bound is 1.", delta)
    return error_rate("P17/1", bound, {"rho": rho, "intercept": False, "rows": n}, "train", delta)
