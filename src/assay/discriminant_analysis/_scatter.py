"""Scatter matrices of labelled rows, and what Fisher's criterion makes of them.

    S_w = sum_k sum_{x in class k} (x - mu_k)(x - mu_k)^T        within classes
    S_b = sum_k n_k (mu_k - mu)(mu_k - mu)^T                     between classes
    S_t = S_w + S_b                                              of all rows

One pass over the rows gives all three. A scatter matrix is the number of rows times a covariance; the two readings
of Fisher's criterion differ unless the classes have equally many rows, so each function says which one it takes.

The covariances of Gaussian classes are those of the rows as they are, shrunk, or from an estimator of the user's.

Claim gaussian.mle: stored means and covariances are the maximum-likelihood ones, and the scores are what follows from
them (the producer's side; the checker has its own).

One pass over the rows takes sums and scatter about the stored class means, so that what rounding did to those shows.
Everything is measured in columns of about unit spread, scaled by powers of two. With S the covariance there and mu at
most its least eigenvalue, a row of coefficients u that should solve S u = t is within |t - S u| / mu of the solution,
and a matrix P that should be the inverse of S is within |I - S P| / mu of it.
"""

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky, eigh, pinvh
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.messages import Message
from assay.optim.duality import gamma, outward
from assay.params import refuse
from assay.scan import Rows, rows

_CANCELLED = 1e-6  # share of a column's scatter that lies within classes, below which means are taken out row by row
_FEW_CLASSES = 9  # up to here class sums ride along with the second moments
_UNIT = 2.0**-53
PROVABLE = 1e-7  # least eigenvalue of a scaled covariance that the checker can prove in double precision


class ClassSums(NamedTuple):
    """Rows per class (K,), class means (K, d) and the scatter within each class (K, d, d) or pooled (1, d,
    d)."""

    counts: np.ndarray
    means: np.ndarray
    within: np.ndarray


class Scatter(NamedTuple):
    """Scatter within classes, between them, and of all rows, each (d, d).

    Parameters
    ----------
    within : ndarray
        Scatter within classes.
    between : ndarray
        Scatter between classes.
    total : ndarray
        Scatter of all rows.
    """

    within: np.ndarray
    between: np.ndarray
    total: np.ndarray


def scatter_matrices(X: Any, y: Any) -> Scatter:
    """Return S_w, S_b and S_t of rows X with labels y.

    Parameters
    ----------
    X : array-like
        Rows.
    y : array-like
        Labels.

    Returns
    -------
    Scatter
        The three matrices.

    Examples
    --------
    >>> S = scatter_matrices([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1])
    >>> [matrix.item() for matrix in map(np.round, S)]
    [4.0, 100.0, 104.0]
    """
    source = rows(np.asarray(X, dtype=np.float64), np.asarray(y))
    classes = source.labels()
    sums = class_sums(source.encoded(classes), len(classes))
    mean = sums.counts @ sums.means / sums.counts.sum()
    apart = np.sqrt(sums.counts)[:, None] * (sums.means - mean)
    within, between = sums.within[0], apart.T @ apart
    return Scatter(within, between, within + between)


def between_two_classes(X: Any, y: Any) -> np.ndarray:
    """Return (mu_0 - mu_1)(mu_0 - mu_1)^T of two classes, (d, d), of rank 1: the scatter between classes of Fisher's
    criterion. That of `scatter_matrices` is n_0 n_1 / n times it.

    Parameters
    ----------
    X : array-like
        Rows.
    y : array-like
        Labels.

    Returns
    -------
    ndarray
        The scatter matrix.

    Examples
    --------
    >>> between_two_classes([[0.0, 0.0], [2.0, 2.0], [1.0, 3.0]], [0, 0, 1]).tolist()
    [[0.0, -0.0], [-0.0, 4.0]]
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    classes = np.unique(y)
    if X.ndim != 2 or len(X) != len(y) or len(classes) != 2:
        raise ValueError(f"between_two_classes: needs rows of two classes; got {X.shape} and {len(classes)} classes.")
    apart = X[y == classes[0]].mean(axis=0) - X[y == classes[1]].mean(axis=0)
    return np.outer(apart, apart)


def fisher_ratio(w: Any, between: np.ndarray, within: np.ndarray) -> float:
    """Return J(w) = (w^T S_b w) / (w^T S_w w), which does not change with the length of w.

    Parameters
    ----------
    w : array-like
        A direction.
    between : ndarray
        Scatter between classes.
    within : ndarray
        Scatter within classes.

    Returns
    -------
    float
        The ratio.

    Examples
    --------
    >>> fisher_ratio([2.0], np.array([[9.0]]), np.array([[3.0]]))
    3.0
    """
    w = np.asarray(w, dtype=np.float64)
    return float(w @ between @ w) / float(w @ within @ w)


def fisher_direction(within: np.ndarray, difference: np.ndarray) -> np.ndarray:
    """Return w = S_w^+ (mu_1 - mu_0), the direction of the largest Fisher ratio of two classes.

    S_w^+ is the inverse, or for a singular matrix the pseudo-inverse from its spectral decomposition.

    Parameters
    ----------
    within : ndarray
        Scatter within classes.
    difference : ndarray
        Difference of the means.

    Returns
    -------
    ndarray
        The direction.
    """
    return pinvh(within) @ np.asarray(difference, dtype=np.float64)


class TraceRatio(NamedTuple):
    """Orthonormal directions (d, k), the trace ratio they reach, and the ratio at each iteration.

    Parameters
    ----------
    directions : ndarray
        Orthonormal directions, one in each column.
    ratio : float
        The trace ratio.
    history : list of float
        The ratio at each iteration.
    """

    directions: np.ndarray
    ratio: float
    history: list[float]


def trace_ratio(
    between: np.ndarray, within: np.ndarray, k: int, *, tol: float = 1e-12, max_iter: int = 200
) -> TraceRatio:
    """Maximise tr(W^T S_b W) / tr(W^T S_w W) over W (d, k) with orthonormal columns.

    W holds the k leading eigenvectors of S_b - lambda S_w, with lambda the ratio reached before; lambda
    never falls and
    its fixed point is the maximum (Wang et al. 2007). The eigenvectors of S_w^-1 S_b maximise another
    criterion,
    tr((W^T S_w W)^-1 W^T S_b W).

    Parameters
    ----------
    between : ndarray
        Scatter between classes.
    within : ndarray
        Scatter within classes.
    k : int
        Number of directions.
    tol : float, default=1e-12
        Gain that ends the iterations.
    max_iter : int, default=200
        Largest number of iterations.

    Returns
    -------
    TraceRatio
        Directions and ratio.
    """
    ratio, history = 0.0, []
    directions = np.eye(len(within))[:, :k]
    for _ in range(max_iter):
        directions = eigh(between - ratio * within)[1][:, ::-1][:, :k]
        before = ratio
        ratio = float(np.trace(directions.T @ between @ directions) / np.trace(directions.T @ within @ directions))
        history.append(ratio)
        if abs(ratio - before) <= tol * abs(ratio):
            break
    return TraceRatio(directions, ratio, history)


# Sums over rows -----------------------------------------------------------------------------------
def class_sums(source: Rows, n_classes: int, *, apart: bool = False) -> ClassSums:
    """Return counts, means and scatter of rows whose y holds class positions; `apart` keeps each class's
    scatter.

    Pooled scatter takes one pass: total second moments minus those of the class means. Where that
    subtraction would
    cancel most digits of a column, a second pass takes the class means out of the rows first.
    """
    pilot = next(iter(source.blocks())).X.mean(axis=0)
    counts, sums, moments = source.sum(_pooled, pilot, n_classes)
    shift = sums / np.maximum(counts, 1)[:, None]
    means = pilot + shift
    if apart:
        return ClassSums(counts, means, source.sum(_centred, means, True))
    offsets = np.sqrt(counts)[:, None] * shift
    within = moments - offsets.T @ offsets
    if (np.diag(within) < _CANCELLED * np.diag(moments)).any():
        return ClassSums(counts, means, source.sum(_centred, means, False))
    return ClassSums(counts, means, within[None])


def _pooled(block: Block, pilot: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows per class, sums of x - pilot per class, and second moments of x - pilot."""
    from assay.loops.moments import moments

    d = block.X.shape[1]
    member = np.zeros((len(block.X), n_classes))
    member[np.arange(len(member)), block.y] = 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        if n_classes > _FEW_CLASSES:
            return (
                member.sum(axis=0),
                member.T @ (block.X - pilot),
                moments(block.X, member[:, :0], None, pilot)[:d, :d],
            )
        M = moments(block.X, member[:, 1:].copy(), None, pilot)
    counts, sums = np.append(0.0, M[d, d + 1 :]), np.vstack([np.zeros(d), M[d + 1 :, :d]])
    counts[0], sums[0] = M[d, d] - counts.sum(), M[d, :d] - sums.sum(axis=0)
    return counts, sums, M[:d, :d]


def _centred(block: Block, means: np.ndarray, apart: bool) -> np.ndarray:
    """Return the scatter about the class means: one matrix per class, or their sum."""
    from assay.loops.moments import moments

    d = block.X.shape[1]
    if not apart:
        return moments(block.X - means[block.y], np.empty((len(block.X), 0)), None, np.zeros(d))[None, :d, :d]
    out = np.zeros((len(means), d, d))
    for k in np.unique(block.y):
        own = np.ascontiguousarray(block.X[block.y == k])
        out[k] = moments(own, np.empty((len(own), 0)), None, means[k])[:d, :d]
    return out


def fourth_powers(block: Block, means: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return for each class the sum of |z|^4 over its rows, z = (x - mean) / scale."""
    z = (block.X - means[block.y]) / scale[block.y]
    return np.bincount(block.y, weights=np.einsum("ij,ij->i", z, z) ** 2, minlength=len(means))


def read_shrinkage(model: Any) -> float | str | None:
    """Return the parameter `shrinkage` after checking it together with `solver` and `covariance_estimator`."""
    value, estimator = model.shrinkage, model.covariance_estimator
    number = isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool)
    if not (value is None or (isinstance(value, str) and value == "auto") or (number and 0 <= value <= 1)):
        raise refuse(model, f'shrinkage must be None, "auto" or a number from 0 to 1; got {value!r}.')
    others = [name for name in model.solvers if name != "svd"]
    if model.solver == "svd" and value is not None:
        raise NotImplementedError(
            f"{type(model).__name__}: shrinkage not supported with 'svd' solver; set solver to one of {others}."
        )
    if model.solver == "svd" and estimator is not None:
        raise refuse(
            model,
            "covariance_estimator is not supported with solver='svd' (a covariance estimator is not supported with svd "
            f"at all); set solver to one of {others}.",
        )
    if estimator is not None and value is not None and value != 0:
        raise refuse(
            model, "covariance_estimator and shrinkage parameters are not None. Only one of the two can be set."
        )
    if estimator is not None and not hasattr(estimator, "fit"):
        raise refuse(model, f"covariance_estimator must have a method fit; got {estimator!r}.")
    return value if value is None or value == "auto" else float(value)


def class_covariances(model: Any, rows: Rows, sums: ClassSums, shrinkage: float | str | None) -> np.ndarray:
    """Return the covariance of each class, (K, d, d), divisor n_k; `sums` has the classes' scatter apart."""
    if model.covariance_estimator is not None:
        return _estimated(model, rows, len(sums.counts))
    covariance = sums.within / sums.counts[:, None, None]
    if shrinkage == "auto":
        spread = _spread(covariance)
        return _ledoit_wolf(covariance, sums.counts, rows.sum(fourth_powers, sums.means, spread), spread)
    return shrunk(covariance, shrinkage)


def total_covariance(model: Any, rows: Rows, sums: ClassSums, shrinkage: float | str | None) -> np.ndarray:
    """Return the covariance of all rows, treated as those of the classes are."""
    if model.covariance_estimator is not None:
        return _estimate(model, np.concatenate([block.X for block in rows.blocks()]))
    shares = sums.counts / sums.counts.sum()
    mean = shares @ sums.means
    apart = np.sqrt(shares)[:, None] * (sums.means - mean)
    covariance = (sums.within.sum(axis=0) / sums.counts.sum() + apart.T @ apart)[None]
    if shrinkage == "auto":
        spread = _spread(covariance)
        fourth = np.array([rows.sum(_fourth_power_of_all, mean, spread[0])])
        return _ledoit_wolf(covariance, sums.counts.sum(keepdims=True), fourth, spread)[0]
    return shrunk(covariance, shrinkage)[0]


def shrunk(covariance: np.ndarray, shrinkage: Any) -> np.ndarray:
    """Return (1 - s) C + s tr(C) / d I of each matrix (K, d, d)."""
    if shrinkage is None:
        return covariance
    d = covariance.shape[-1]
    centre = np.einsum("kjj->k", covariance)[:, None, None] / d * np.eye(d)
    return (1 - shrinkage) * covariance + shrinkage * centre


def _spread(covariance: np.ndarray) -> np.ndarray:
    spread = np.sqrt(np.einsum("kjj->kj", covariance))
    spread[spread == 0] = 1.0
    return spread


def _ledoit_wolf(covariance: np.ndarray, counts: np.ndarray, fourth: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return each covariance, its standardised form shrunk by Ledoit and Wolf's estimate (2004); `fourth` is the sum
    of |z|^4 over the rows, z standardised."""
    d = covariance.shape[1]
    outer = spread[:, :, None] * spread[:, None, :]
    standard = covariance / outer
    mean = np.einsum("kjj->k", standard) / d
    square = np.einsum("kij,kij->k", standard, standard)
    delta = (square - d * mean**2) / d
    beta = np.minimum((fourth / counts - square) / (d * counts), delta)
    share = np.divide(beta, delta, out=np.zeros_like(beta), where=(delta > 0) & (beta > 0))[:, None, None]
    return ((1 - share) * standard + share * mean[:, None, None] * np.eye(d)) * outer


def _estimated(model: Any, rows: Rows, n_classes: int) -> np.ndarray:
    blocks = list(rows.blocks())
    X, codes = (np.concatenate(part) for part in zip(*[(block.X, block.y) for block in blocks]))
    return np.stack([_estimate(model, X[codes == k]) for k in range(n_classes)])


def _estimate(model: Any, X: np.ndarray) -> np.ndarray:
    """Return the covariance that the user's estimator finds."""
    estimator = clone(model.covariance_estimator, safe=False)
    estimator.fit(X)
    if not hasattr(estimator, "covariance_"):
        raise refuse(model, f"{type(estimator).__name__} does not have a covariance_ attribute after its fit.")
    result, d = np.atleast_2d(np.asarray(estimator.covariance_, dtype=np.float64)), X.shape[1]
    if result.shape != (d, d) or not np.isfinite(result).all():
        raise refuse(
            model, f"{type(estimator).__name__}.covariance_ must be ({d}, {d}) finite numbers; got {result.shape}."
        )
    return (result + result.T) / 2


def _fourth_power_of_all(block: Block, mean: np.ndarray, scale: np.ndarray) -> float:
    """Return the sum of |z|^4 over the rows, z = (x - mean) / scale."""
    z = (block.X - mean) / scale
    return float(np.sum(np.einsum("ij,ij->i", z, z) ** 2))


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


def linear_claim(model: Any, statistics: Statistics) -> Claim:
    """Return claim gaussian.mle of a linear discriminant analysis with a fixed shrinkage."""
    priors, (S,), (scale,) = model.priors_, statistics.matrices, statistics.scale
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
    distance = (np.linalg.norm(rest, axis=1) + statistics.slack * np.linalg.norm(u, axis=1)) / statistics.mu
    score = model.coef_ @ centre + model.intercept_ - logs + np.einsum("ij,ij->i", u, middle)
    magnitude = np.abs(u) @ size + np.einsum("ij,ij->i", np.abs(u), np.abs(middle) + 4 * error / rounding)
    off = np.abs(score) + rounding * (magnitude + np.abs(model.intercept_) + np.abs(logs) + 1)
    at_centre = off + distance * np.linalg.norm(np.abs(middle) + error, axis=1)
    value = outward(1.001 * float(max(distance.max(), at_centre.max())))
    shrinkage = 0.0 if model.shrinkage is None else float(model.shrinkage)
    params = statistics.stated("linear", shrinkage, model) | {"covariance": model._weighing}
    return Claim("gaussian.mle", value, params=params, witness=statistics.witness(model.means_, model.sigma_[None]))


def quadratic_claim(model: Any, rows: Rows) -> Claim | NotApplicable:
    """Return claim gaussian.mle of a quadratic discriminant analysis."""
    if model.shrinkage == "auto" or model.covariance_estimator is not None:
        reason = Message("why.covariances-estimate")
        return NotApplicable("gaussian.mle", reason)
    shares, eigen = row_shares(rows, len(model.classes_), "apart"), model.solver == "eigen"
    share = float(model.shrinkage or 0.0) if eigen else float(model.reg_param)
    result = recompute(rows, model.means_, model.sigma_, shares, share, eigen)
    if 2 * result.mu < PROVABLE:
        return NotApplicable("gaussian.mle", Message("why.singular-class"))
    finest = result.scale.max(axis=0)
    precision = np.linalg.inv(result.matrices) * result.scale[:, :, None] * result.scale[:, None, :]
    parts = [_class_score(model, result, precision[k], k) for k in range(len(shares))]
    A, w, b, errors = (np.array(part) for part in zip(*parts))
    if len(shares) == 2:
        A, w, b, errors = A[1:] - A[:1], w[1:] - w[:1], b[1:] - b[:1], errors.sum(axis=0, keepdims=True)
    stored = (model.quadratic_ / np.outer(finest, finest), model.linear_ / finest, model.constant_)
    ours = (A / np.outer(finest, finest), w / finest, b)
    gaps = [
        np.linalg.norm((item - other).reshape(len(b), -1), axis=1)
        + 64 * _UNIT * np.linalg.norm(item.reshape(len(b), -1), axis=1)
        for item, other in zip(stored, ours)
    ]
    value = outward(1.001 * float((np.stack(gaps, axis=1) + errors).max()))
    witness = result.witness(model.means_, model.sigma_) | {"precision": precision}
    params = result.stated("quadratic-shrunk" if eigen else "quadratic", share, model)
    return Claim("gaussian.mle", value, params=params, witness=witness)


def _class_score(
    model: Any, statistics: Statistics, precision: np.ndarray, k: int
) -> tuple[Any, Any, float, np.ndarray]:
    """Return A, w, b of the score of class k in the rows' units, and bounds of their errors in scaled columns."""
    S, scale, d = statistics.matrices[k], statistics.scale[k], model.means_.shape[1]
    P = (precision + precision.T) / 2 / scale[:, None] / scale
    t = (model.means_[k] - model.center_) * scale
    off = float(
        np.linalg.norm(statistics.error + 64 * _UNIT * (np.abs(model.means_[k]) + np.abs(model.center_)) * scale)
    )
    rounding = 8 * (2 * d + 32) * _UNIT
    rest = np.abs(np.eye(d) - S @ P) + rounding * (np.eye(d) + np.abs(S) @ np.abs(P))
    size, length = float(np.linalg.norm(P)), float(np.linalg.norm(t)) + off
    distance = (float(np.linalg.norm(rest)) + statistics.slack * size) / statistics.mu
    L = cholesky(S, lower=True)
    loose = (
        float(np.linalg.norm(S - L @ L.T))
        + rounding * float(np.linalg.norm(np.abs(L) @ np.abs(L).T))
        + statistics.slack
    )
    volume = 2 * float(np.log(np.diag(L)).sum() - np.log(scale).sum())
    b = float(np.log(model.priors_[k]) - 0.5 * t @ P @ t - 0.5 * volume)
    reach = distance + rounding * size
    swing = reach * length + (size + distance) * off * 2
    constant = swing * length + d * loose / (statistics.mu - min(loose, 0.5 * statistics.mu))
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


class GaussianClasses:
    """Probabilities of Gaussian classes, and `sample`: a class drawn by its prior, then a row from its Gaussian."""

    classes_: np.ndarray
    priors_: np.ndarray
    means_: np.ndarray
    sigma_: np.ndarray

    decision_function: Callable[[Any], np.ndarray]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, n_classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores, axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`, which is finite where that is 0."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return log_softmax(scores, axis=1)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return rows (n_samples, n_features) drawn from the fitted classes, and their labels."""
        check_is_fitted(self)
        if isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 1:
            raise refuse(self, f"n_samples must be an integer >= 1; got {n_samples!r}.")
        random = check_random_state(random_state)
        codes = random.choice(len(self.classes_), size=int(n_samples), p=self.priors_)
        shared = np.ndim(self.sigma_) == 2
        X = np.empty((int(n_samples), self.means_.shape[1]))
        for k, mean in enumerate(self.means_):
            covariance = self.sigma_ if shared else self.sigma_[k]
            X[codes == k] = random.multivariate_normal(mean, covariance, size=int(np.sum(codes == k)))
        return X, self.classes_[codes]
