"""Claim D19/3: stored means and covariances are the maximum-likelihood ones, and the scores are what follows from them
(the producer's side; the checker has its own).

One pass over the rows takes sums and scatter about the stored class means, so that what rounding did to those shows.
Everything is measured in columns of about unit spread, scaled by powers of two. With S the covariance there and mu at
most its least eigenvalue, a row of coefficients u that should solve S u = t is within |t - S u| / mu of the solution,
and a matrix P that should be the inverse of S is within |I - S P| / mu of it.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky, eigh

from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.optim.duality import gamma, outward
from assay.scan import Rows

_UNIT = 2.0**-53
PROVABLE = 1e-7  # least eigenvalue of a scaled covariance that the checker can prove in double precision


class Statistics(NamedTuple):
    """What a pass about the stored means gives, in scaled columns: the covariances (G, d, d), the scales (G, d), a
    bound on the error of the covariances in norm, how far stored means and covariances are off at most, and mu."""

    matrices: np.ndarray
    scale: np.ndarray
    slack: float
    error: float
    mu: float

    @property
    def exponents(self) -> np.ndarray:
        """The scales as powers of two."""
        return np.frexp(self.scale)[1].astype(np.int64) - 1

    def stated(self, form: str, shrinkage: float, model: Any) -> dict[str, Any]:
        given = "rows" if model.priors is None else model.priors_.tolist()
        return {"form": form, "shrinkage": shrinkage, "priors": given, "mu": self.mu, "error": outward(self.error)}

    def witness(self, means: np.ndarray, covariance: np.ndarray) -> dict[str, np.ndarray]:
        return {"exponents": self.exponents, "means": means, "covariance": covariance}


def row_shares(rows: Rows, n_classes: int, covariance: str, priors: Any = None) -> np.ndarray:
    """Return what a row of each class counts in a covariance: pooled over all rows, the mean of the classes' ("equal",
    or under the "priors"), or its class's own ("apart")."""
    counts = rows.sum(_counts, n_classes)
    if covariance == "pooled":
        return np.full(n_classes, 1 / counts.sum())
    if covariance == "priors":
        return priors / counts
    return 1 / (counts * (n_classes if covariance == "equal" else 1))


def recompute(
    rows: Rows,
    means: np.ndarray,
    covariance: np.ndarray,
    shares: np.ndarray,
    shrinkage: float,
    to_trace: bool = True,
) -> Statistics:
    """Take sums and scatter about `means` (K, d) and compare with `covariance`: (1, d, d) shared by all classes or
    (K, d, d), shrunk towards tr / d I (`to_trace`) or towards I. A row of class k counts shares[k] in its matrix."""
    counts, sums, scatter = rows.sum(_about, means, shares, len(covariance))
    d = means.shape[1]
    variance = np.maximum(np.einsum("gjj->gj", covariance), 1e-280)
    scale = np.ldexp(1.0, -np.frexp(np.sqrt(variance))[1])
    target = np.einsum("gjj->g", scatter)[:, None, None] / d if to_trace else 1.0
    outer = scale[:, :, None] * scale[:, None, :]
    matrices = ((1 - shrinkage) * scatter + shrinkage * target * np.eye(d)) * outer
    widest = shrinkage * float(((scale.max(axis=1) / scale.min(axis=1)) ** 2).max()) if to_trace else 0.0
    size = float(np.maximum(np.einsum("gjj->g", scatter * outer), np.einsum("gjj->g", matrices)).max())
    offset = np.abs(sums / counts[:, None]) * scale + 32 * _UNIT * np.abs(means) * scale
    slack = 4 * gamma(rows) * (1 + widest) * size + 4 * float(np.sum(offset.max(axis=0) ** 2))
    off = float(np.abs(covariance * outer - matrices).max()) + slack + 2e-13
    least = min(float(eigh(matrix, eigvals_only=True)[0]) for matrix in matrices)
    return Statistics(matrices, scale, slack, max(off, float(offset.max()) + 4 * gamma(rows)), 0.5 * least)


def linear_claim(model: Any, found: Statistics) -> Claim:
    """Return claim D19/3 of a linear discriminant analysis with a fixed shrinkage."""
    priors, (S,), (scale,) = model.priors_, found.matrices, found.scale
    centre = priors @ model.means_
    t, logs = (model.means_ - centre) * scale, np.log(priors)
    middle = t / 2
    if len(priors) == 2:
        t, middle, logs = t[1:] - t[:1], (t[1:] + t[:1]) / 2, np.diff(logs)
    u, d = model.coef_ / scale, len(scale)
    size = np.abs(model.means_).max(axis=0) * scale
    error = 64 * _UNIT * (len(priors) + 2) * size + 1e-300
    rounding = 8 * (2 * d + 32) * _UNIT
    rest = np.abs(t - u @ S) + 2 * error + rounding * (np.abs(t) + np.abs(u) @ np.abs(S))
    distance = (np.linalg.norm(rest, axis=1) + found.slack * np.linalg.norm(u, axis=1)) / found.mu
    score = model.coef_ @ centre + model.intercept_ - logs + np.einsum("ij,ij->i", u, middle)
    magnitude = np.abs(u) @ size + np.einsum("ij,ij->i", np.abs(u), np.abs(middle) + 4 * error / rounding)
    off = np.abs(score) + rounding * (magnitude + np.abs(model.intercept_) + np.abs(logs) + 1)
    at_centre = off + distance * np.linalg.norm(np.abs(middle) + error, axis=1)
    value = outward(1.001 * float(max(distance.max(), at_centre.max())))
    shrinkage = 0.0 if model.shrinkage is None else float(model.shrinkage)
    params = found.stated("linear", shrinkage, model) | {"covariance": model._weighing}
    return Claim("D19/3", value, params=params, witness=found.witness(model.means_, model.sigma_[None]))


def quadratic_claim(model: Any, rows: Rows) -> Claim | NotApplicable:
    """Return claim D19/3 of a quadratic discriminant analysis."""
    if model.shrinkage == "auto" or model.covariance_estimator is not None:
        reason = "The covariances were estimated otherwise; the claim is made for a fixed shrinkage or none."
        return NotApplicable("D19/3", reason)
    shares, eigen = row_shares(rows, len(model.classes_), "apart"), model.solver == "eigen"
    share = float(model.shrinkage or 0.0) if eigen else float(model.reg_param)
    found = recompute(rows, model.means_, model.sigma_, shares, share, eigen)
    if 2 * found.mu < PROVABLE:
        return NotApplicable("D19/3", "The covariance of a class is singular or nearly so; regularise it more.")
    finest = found.scale.max(axis=0)
    precision = np.linalg.inv(found.matrices) * found.scale[:, :, None] * found.scale[:, None, :]
    parts = [_class_score(model, found, precision[k], k) for k in range(len(shares))]
    A, w, b, errors = (np.array(part) for part in zip(*parts))
    if len(shares) == 2:
        A, w, b, errors = A[1:] - A[:1], w[1:] - w[:1], b[1:] - b[:1], errors.sum(axis=0, keepdims=True)
    stored = (model.quadratic_ / np.outer(finest, finest), model.linear_ / finest, model.constant_)
    ours = (A / np.outer(finest, finest), w / finest, b)
    gaps = [
        np.linalg.norm((one - other).reshape(len(b), -1), axis=1)
        + 64 * _UNIT * np.linalg.norm(one.reshape(len(b), -1), axis=1)
        for one, other in zip(stored, ours)
    ]
    value = outward(1.001 * float((np.stack(gaps, axis=1) + errors).max()))
    witness = found.witness(model.means_, model.sigma_) | {"precision": precision}
    params = found.stated("quadratic-shrunk" if eigen else "quadratic", share, model)
    return Claim("D19/3", value, params=params, witness=witness)


def _class_score(model: Any, found: Statistics, precision: np.ndarray, k: int) -> tuple[Any, Any, float, np.ndarray]:
    """Return A, w, b of the score of class k in the rows' units, and bounds of their errors in scaled columns."""
    S, scale, d = found.matrices[k], found.scale[k], model.means_.shape[1]
    P = (precision + precision.T) / 2 / scale[:, None] / scale
    t = (model.means_[k] - model.center_) * scale
    off = float(np.linalg.norm(found.error + 64 * _UNIT * (np.abs(model.means_[k]) + np.abs(model.center_)) * scale))
    rounding = 8 * (2 * d + 32) * _UNIT
    rest = np.abs(np.eye(d) - S @ P) + rounding * (np.eye(d) + np.abs(S) @ np.abs(P))
    size, length = float(np.linalg.norm(P)), float(np.linalg.norm(t)) + off
    distance = (float(np.linalg.norm(rest)) + found.slack * size) / found.mu
    L = cholesky(S, lower=True)
    loose = float(np.linalg.norm(S - L @ L.T)) + rounding * float(np.linalg.norm(np.abs(L) @ np.abs(L).T)) + found.slack
    volume = 2 * float(np.log(np.diag(L)).sum() - np.log(scale).sum())
    b = float(np.log(model.priors_[k]) - 0.5 * t @ P @ t - 0.5 * volume)
    reach = distance + rounding * size
    swing = reach * length + (size + distance) * off * 2
    constant = swing * length + d * loose / (found.mu - min(loose, 0.5 * found.mu))
    constant += rounding * (np.abs(np.log(np.diag(L))).sum() + 100 * d + abs(volume) + abs(b) + 10)
    outer = np.outer(scale, scale)
    return -0.5 * P * outer, P @ t * scale, b, np.array([reach, swing, constant])


def _counts(block: Block, n_classes: int) -> np.ndarray:
    return np.bincount(block.y, minlength=n_classes).astype(float)


def _about(
    block: Block, means: np.ndarray, shares: np.ndarray, groups: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows per class, sums of x - mean per class, and scatter about the means times the shares, by group."""
    from assay.loops.moments import moments

    K, d = means.shape
    sums, scatter = np.zeros((K, d)), np.zeros((groups, d, d))
    none = np.empty((len(block.X), 0))
    for k in np.unique(block.y):
        own = np.ascontiguousarray(block.X[block.y == k])
        M = moments(own, none[: len(own)], None, means[k])
        sums[k] = M[d, :d]
        scatter[k if groups > 1 else 0] += shares[k] * M[:d, :d]
    return _counts(block, K), sums, scatter
