"""Gaussian components of a mixture, and the problem that EM solves for them.

    p(x) = sum_k w_k N(x; m_k, S_k),   S_k^-1 = U_k U_k',   ln N = -d/2 ln(2 pi) + sum_j ln U_jj - |U' (x - m)|^2 / 2

    M step    w_k = N_k / N,   m_k = sum_i r_ik x_i / N_k,   S_k = sum_i r_ik (x_i - m_k)(x_i - m_k)' / N_k + reg I

with shares r_ik of the components in row i and N_k their sum. Kinds of S_k: "full"; "tied", one for all, the mean of
the S_k weighted by N_k; "diag", their diagonals; "spherical", the mean of each diagonal.

EM begins with components from k centres, from random shares, or as the user gives them.
"""

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from sklearn.cluster import KMeans, kmeans_plusplus

from assay.data.blocks import Block
from assay.optim.em import Expected
from assay.params import Choice, Count, Number, refuse
from assay.scan import Rows

KINDS = ("full", "tied", "diag", "spherical")
LOG_2PI = math.log(2 * math.pi)
_WIDEST = 128  # columns beyond which BLAS is the faster way
_FEWEST = 1024  # rows below which compiling takes longer than any number of passes
_CANCELLED = 1e-8  # share of a column's scatter that lies within components, below which it is summed row by row
_EMPTY = 1e-10  # rows: a component that has less of them in all has died
_MOST_RESTARTS = 2  # for each component
_FLOOR = 1e-6  # of the mean variance of the columns, added when restarts do not help
_NOTHING = np.empty(0)
STARTS = ("kmeans", "k-means++", "random", "random_from_data")
CONSTRAINTS = {
    "n_components": Count(),
    "covariance_type": Choice(*KINDS),
    "init_params": Choice(*STARTS),
    "tol": Number(low=0.0),
    "reg_covar": Number(low=0.0, why="it is added to variances"),
    "max_iter": Count(),
    "n_init": Count(),
}
"""What EM for a mixture asks of its parameters."""
_SAMPLE = 50_000  # rows among which centres are sought
_NEAR = 1e-6  # weights that sum to one up to here are taken as given


class DegenerateComponentWarning(UserWarning):
    """A component shrank to a point or lost all rows and was started afresh."""


class Components(NamedTuple):
    """Weights (k,), means (k, d), covariances and U as scikit-learn shapes them for the kind."""

    kind: str
    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    factors: np.ndarray

    @property
    def constants(self) -> np.ndarray:
        """ln w_k + ln det U_k - d/2 ln(2 pi), for each component."""
        d = self.means.shape[1]
        with np.errstate(divide="ignore"):
            return np.log(self.weights) + log_volume(self.kind, self.factors, d) - 0.5 * d * LOG_2PI

    def log_joint(self, X: np.ndarray) -> np.ndarray:
        """Return ln w_k + ln N(x; m_k, S_k), (rows, k)."""
        return self.constants - 0.5 * self.distances(X)

    def distances(self, X: np.ndarray) -> np.ndarray:
        """Return |U_k' (x - m_k)|^2, (rows, k)."""
        out = np.empty((len(X), len(self.means)))
        for k, mean in enumerate(self.means):
            apart = whitened(self.kind, self.factors, k, X - mean)
            np.einsum("ij,ij->i", apart, apart, out=out[:, k])
        return out

    def part(self, chosen: np.ndarray) -> "Components":
        """Return some of the components, weights as they are."""
        shared = self.kind == "tied"
        covariances, factors = (part if shared else part[chosen] for part in (self.covariances, self.factors))
        return Components(self.kind, self.weights[chosen], self.means[chosen], covariances, factors)

    def each(self, values: np.ndarray) -> np.ndarray:
        """Return covariances or factors of this kind as one matrix per component, (k, d, d)."""
        k, d = self.means.shape
        if self.kind in ("full", "tied"):
            return np.broadcast_to(values, (k, d, d))
        columns = values if self.kind == "diag" else np.repeat(values[:, None], d, axis=1)
        return columns[:, :, None] * np.eye(d)


def whitened(kind: str, factors: np.ndarray, k: int, apart: np.ndarray) -> np.ndarray:
    """Return U_k' of each row of x - m_k."""
    if kind in ("full", "tied"):
        return apart @ (factors[k] if kind == "full" else factors)
    return apart * factors[k]


def log_volume(kind: str, factors: np.ndarray, d: int) -> np.ndarray:
    """Return ln det U_k for each component; one number for "tied"."""
    if kind == "full":
        return np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    if kind == "tied":
        return np.log(np.diag(factors)).sum()
    return np.log(factors).sum(axis=1) if kind == "diag" else d * np.log(factors)


def factor(covariance: np.ndarray) -> np.ndarray:
    """Return the upper triangular U with U U' = S^-1; raise LinAlgError if S is not positive definite."""
    lower = cholesky(covariance, lower=True)
    return solve_triangular(lower, np.eye(len(covariance)), lower=True).T.copy()


def factors_of(kind: str, covariances: np.ndarray) -> np.ndarray:
    """Return U for covariances of the kind, NaN in components whose covariance has no inverse."""
    if kind in ("diag", "spherical"):
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = 1.0 / np.sqrt(covariances)
        bad = ~np.isfinite(inverse)
        inverse[bad.any(axis=1) if kind == "diag" else bad] = np.nan
        return inverse
    matrices = covariances[None] if kind == "tied" else covariances
    result = np.full(matrices.shape, np.nan)
    for k, matrix in enumerate(matrices):
        try:
            result[k] = factor(matrix)
        except (np.linalg.LinAlgError, ValueError):
            continue
        if not np.isfinite(result[k]).all():
            result[k] = np.nan
    return result[0] if kind == "tied" else result


def covariances_of(kind: str, factors: np.ndarray) -> np.ndarray:
    """Return S for factors of the kind, U U' = S^-1: U^-T U^-1, or 1 / s^2 of scales s."""
    if kind in ("diag", "spherical"):
        return 1.0 / factors**2
    inverse = np.linalg.inv(factors)
    return np.swapaxes(inverse, -1, -2) @ inverse


class Sums(NamedTuple):
    """Expected statistics: N_k (k,), sums of x - m_k (k, d), and second moments about m_k as the kind needs them."""

    mass: np.ndarray
    linear: np.ndarray
    quadratic: np.ndarray


class GaussianProblem:
    """Rows and the kind of components, as EM sees them (`optim.em.LatentModel`); log-likelihoods are per row.

    A component that dies (no rows, or a covariance without inverse) starts afresh in the row that the mixture fits
    worst, with the covariance of all rows; `restarts` counts them. If that does not help, `reg_covar` is raised.
    """

    def __init__(self, rows: Rows, kind: str, reg_covar: float, *, hard: bool = False, name: str = "EM"):
        self.rows, self.kind, self.reg_covar, self.hard, self.name = rows, kind, reg_covar, hard, name
        self.restarts, self.restarted, self.direct = 0, False, False
        total, self.center, self.scatter = _overall(rows)
        self.total = total

    @property
    def exact(self) -> bool:
        """Whether the last M step maximised the expected log-likelihood."""
        return self.reg_covar == 0 and not self.restarted

    def e_step(self, parameters: Components) -> Expected:
        value, sums = self._pass(parameters, wanted=True)
        return Expected(value / self.total, (parameters, sums))

    def log_likelihood(self, parameters: Components) -> float:
        return self._pass(parameters, wanted=False)[0] / self.total

    def _pass(self, at: Components, wanted: bool) -> tuple[float, Any]:
        value, result = self.rows.sum(_step, *self._shape(at), at.weights, self.hard, wanted)
        return float(value), self._sums(at, result) if wanted else None

    def _shape(self, at: Components) -> tuple[Any, ...]:
        """Return means, factors, constants and the map of the rows for one pass.

        Components that share a covariance are round after the rows are mapped by U', so that distances cost d.
        """
        k, d = at.means.shape
        if self.kind != "tied" or self.direct:
            factors = at.each(at.factors) if self.kind in ("full", "tied") else at.factors
            return at.means, factors if self.kind != "spherical" else np.tile(factors[:, None], d), at.constants, None
        means = (at.means - self.center) @ at.factors
        return means, np.ones((k, d)), at.constants, (self.center, at.factors)

    def _sums(self, at: Components, result: np.ndarray) -> Sums:
        d = at.means.shape[1]
        if result.ndim == 3:
            upper = result[:, :d, :d]
            whole = np.triu(upper) + np.triu(upper, 1).transpose(0, 2, 1)
            return Sums(result[:, d, d], result[:, :d, d], whole)
        linear = result[:, :d]
        if self.kind == "tied":  # sums are of U'(x - m): back to the columns
            linear = solve_triangular(at.factors, linear.T, trans="T").T
        return Sums(result[:, 2 * d], linear, result[:, d : 2 * d])

    def m_step(self, statistics: tuple[Components, Sums]) -> Components:
        before, sums = statistics
        self.restarted = False
        mass = np.maximum(sums.mass, 1e-300)
        shift = sums.linear / mass[:, None]
        means, weights = before.means + shift, sums.mass / sums.mass.sum()
        covariances = self._covariances(before, sums, mass, shift, means)
        result = Components(self.kind, weights, means, covariances, factors_of(self.kind, covariances))
        dead = sums.mass <= _EMPTY
        if self.kind == "tied":
            if np.isnan(result.factors).any():
                self._floor()
                return self.m_step(statistics)
        else:
            dead |= np.isnan(result.factors).reshape(len(mass), -1).any(axis=1)
        if not dead.any():
            return result
        if self.restarts >= _MOST_RESTARTS * len(dead):
            self._floor()
            return self.m_step(statistics)
        return self._restarted(result, dead)

    def _floor(self) -> None:
        """Add to all variances, once: what is left when restarts do not help."""
        floor = _FLOOR * float(np.trace(self.scatter)) / (self.total * len(self.scatter))
        if not floor > self.reg_covar:
            raise DegenerateError(f"{self.name}: {_SINGULAR}")
        self.reg_covar, self.restarts = floor, self.restarts + 1
        warnings.warn(
            f"{self.name}: components keep shrinking to points, where the likelihood has no bound; {floor:.3g} is "
            f"added to all variances from here on ({_FLOOR:g} of the columns' mean). Set reg_covar to choose it.",
            DegenerateComponentWarning,
            stacklevel=6,
        )

    def _covariances(self, before: Components, sums: Sums, mass: Any, shift: Any, means: Any) -> np.ndarray:
        d, reg = means.shape[1], self.reg_covar
        if self.kind in ("diag", "spherical"):
            columns = np.maximum(sums.quadratic / mass[:, None] - shift**2, 0.0) + reg
            return columns if self.kind == "diag" else columns.mean(axis=1)
        if self.kind == "full" or self.direct:
            apart = sums.quadratic / mass[:, None, None] - shift[:, :, None] * shift[:, None, :]
            if self.kind == "full":
                return apart + reg * np.eye(d)
            return np.einsum("k,kij->ij", mass / mass.sum(), apart) + reg * np.eye(d)
        offset = np.sqrt(mass)[:, None] * (means - self.center)
        within = self.scatter - offset.T @ offset
        if (np.diag(within) < _CANCELLED * np.diag(self.scatter)).any():
            self.direct = True
            return self._covariances(before, self._pass(before, wanted=True)[1], mass, shift, means)
        return within / self.total + reg * np.eye(d)

    def _restarted(self, result: Components, dead: np.ndarray) -> Components:
        """Return the components with the dead ones in the rows that the others fit worst."""
        self.restarts += int(dead.sum())
        self.restarted = True
        warnings.warn(
            f"{self.name}: component {', '.join(map(str, np.flatnonzero(dead)))} shrank to a point or lost all rows; "
            "it starts again in the row that the mixture fits worst. Raise reg_covar, or ask for fewer components.",
            DegenerateComponentWarning,
            stacklevel=6,
        )
        wide = single(self.kind, self.center, self.scatter / self.total, self.reg_covar)
        if np.isnan(wide.factors).any():
            raise DegenerateError(f"{self.name}: {_SINGULAR}")
        means, covariances, factors = (part.copy() for part in (result.means, result.covariances, result.factors))
        means[dead] = self._worst_rows(result.part(~dead) if not dead.all() else wide, int(dead.sum()))
        if self.kind != "tied":
            covariances[dead], factors[dead] = wide.covariances[0], wide.factors[0]
        weights = np.where(dead, 1.0 / len(dead), result.weights)
        return Components(self.kind, weights / weights.sum(), means, covariances, factors)

    def _worst_rows(self, at: Components, count: int) -> np.ndarray:
        """Return the rows, all different where possible, that the components fit worst."""
        parts = self.rows.map(_worst_of_block, at, count)
        values, rows = (np.concatenate(part) for part in zip(*parts))
        _, first = np.unique(rows, axis=0, return_index=True)
        order = first[np.argsort(values[first], kind="stable")]
        return rows[np.resize(order[:count], count)]


class DegenerateError(ValueError):
    """No mixture of the kind asked for can be fitted to these rows."""


_SINGULAR = (
    "Fitting the mixture model failed because some components have ill-defined empirical covariance (for instance "
    "caused by singleton or collapsed samples). Try to decrease the number of components, increase reg_covar, or scale "
    "the input data. A covariance_type of 'diag' or 'spherical' needs fewer rows."
)


def single(kind: str, mean: np.ndarray, covariance: np.ndarray, reg_covar: float) -> Components:
    """Return one component with this mean and covariance, restricted to the kind."""
    covariance = covariance + reg_covar * np.eye(len(mean))
    if kind in ("diag", "spherical"):
        variances = np.diag(covariance)
        shaped = variances[None].copy() if kind == "diag" else np.array([variances.mean()])
    else:
        shaped = covariance if kind == "tied" else covariance[None]
    return Components(kind, np.ones(1), mean[None], shaped, factors_of(kind, shaped))


def _overall(rows: Rows) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the weight of all rows, their mean, and their scatter about it."""
    pilot = next(iter(rows.blocks())).X.mean(axis=0)
    moments = rows.sum(_moments, pilot)
    d = len(pilot)
    total, linear = float(moments[d, d]), moments[d, :d]
    shift = linear / total
    return total, pilot + shift, moments[:d, :d] - total * np.outer(shift, shift)


# One block ----------------------------------------------------------------------------------------------------
def _moments(block: Block, pilot: np.ndarray) -> np.ndarray:
    from assay.loops.moments import moments

    return moments(block.X, np.empty((len(block.X), 0)), block.weight, pilot)


def _step(
    block: Block,
    means: np.ndarray,
    factors: np.ndarray,
    constants: np.ndarray,
    mapped: Any,
    weights: np.ndarray,
    hard: bool,
    wanted: bool,
) -> tuple[float, np.ndarray]:
    """Return the log-likelihood of a block and the sums that `_loops` describes."""
    X = block.X if mapped is None else (block.X - mapped[0]) @ mapped[1]
    few = block.start == 0 and len(X) < _FEWEST  # and not the last block of many
    if X.shape[1] > _WIDEST or few:
        value, sums = plain_step(X, block.weight, means, factors, constants, hard)
    else:
        value, sums = _compiled_step(X, block.weight, means, factors, constants, weights, hard, wanted)
    return value, sums if wanted else _NOTHING


def _compiled_step(
    X: np.ndarray,
    weight: Any,
    means: np.ndarray,
    factors: np.ndarray,
    constants: Any,
    weights: np.ndarray,
    hard: bool,
    wanted: bool,
) -> tuple[float, np.ndarray]:
    from assay.mixture import _loops

    weight = _NOTHING if weight is None else weight
    if factors.ndim == 2:
        return _loops.scaled_block(X, weight, constants, means, factors, hard, wanted)
    d = X.shape[1]
    side = _loops.padded(d)
    room = np.zeros((len(means), side, side))
    room[:, :d, :d] = factors
    return _loops.full_block(X, weight, constants, means, room, weights, hard, wanted)


def plain_step(
    X: np.ndarray, weight: Any, means: np.ndarray, factors: np.ndarray, constants: Any, hard: bool
) -> tuple[float, np.ndarray]:
    """Return what the compiled loops return, by matrix products: for wide or few rows."""
    kind = "full" if factors.ndim == 3 else "diag"
    at = Components(kind, np.ones(len(means)), means, factors, factors)
    joint = constants - 0.5 * at.distances(X)
    largest = joint.max(axis=1)
    if hard:
        shares, values = np.zeros_like(joint), largest
        shares[np.arange(len(X)), joint.argmax(axis=1)] = 1.0
    else:
        shares = np.exp(joint - largest[:, None])
        total = shares.sum(axis=1)
        shares, values = shares / total[:, None], largest + np.log(total)
    if weight is not None:
        shares, values = shares * weight[:, None], values * weight
    return float(values.sum()), weighted_sums(X, shares, means, kind)


def weighted_sums(X: np.ndarray, shares: np.ndarray, means: np.ndarray, kind: str) -> np.ndarray:
    """Return the sums of rows about means, weighted by shares (rows, k), in the layout of the compiled loops."""
    d, k = X.shape[1], len(means)
    if kind == "diag":
        out = np.empty((k, 2 * d + 1))
        for c in range(k):
            apart = X - means[c]
            out[c] = np.concatenate([shares[:, c] @ apart, shares[:, c] @ apart**2, [shares[:, c].sum()]])
        return out
    side = (d + 4) // 4 * 4 + 4
    moments = np.zeros((k, side, side))
    for c in range(k):
        root = np.sqrt(shares[:, c])[:, None]
        A = np.hstack([(X - means[c]) * root, root])
        moments[c, : d + 1, : d + 1] = A.T @ A
    return moments


def _worst_of_block(block: Block, at: Components, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the `count` least densities of the block and their rows; rows of weight 0 are left out."""
    values = np.logaddexp.reduce(at.log_joint(block.X), axis=1)
    if block.weight is not None:
        values = np.where(block.weight > 0, values, np.inf)
    least = np.argsort(values, kind="stable")[:count]
    return values[least], block.X[least]


def components(owner: Any, problem: GaussianProblem, n_components: int, random: np.random.RandomState) -> Components:
    """Return the components that `owner` (its *_init parameters) asks EM to begin with."""
    d = problem.rows.n_features
    given = _given(owner, n_components, d)
    if all(part is not None for part in given):
        weights, means, precisions = given
        return _from_precisions(owner, problem.kind, weights, means, precisions)
    result = _found(owner, problem, n_components, random)
    weights, means, precisions = given
    if precisions is not None:
        result = _from_precisions(owner, problem.kind, result.weights, result.means, precisions)
    return result._replace(
        weights=result.weights if weights is None else weights, means=result.means if means is None else means
    )


def _found(owner: Any, problem: GaussianProblem, k: int, random: np.random.RandomState) -> Components:
    """Return components from the rows: an M step with the shares that `init_params` names."""
    rows, d = problem.rows, problem.rows.n_features
    blank = Components(problem.kind, np.full(k, 1.0 / k), np.tile(problem.center, (k, 1)), np.empty(0), np.empty(0))
    if owner.init_params == "random":
        seed = int(random.randint(2**31))
        layout = "full" if problem.kind in ("full", "tied") else "diag"
        sums = rows.sum(_random_sums, problem.center, k, layout, seed)
    else:
        centers = _centers(owner.init_params, rows, k, random)
        blank = blank._replace(means=centers)
        sums = rows.sum(_nearest_sums, centers, "full" if problem.kind in ("full", "tied") else "diag")
    direct, problem.direct = problem.direct, True  # the second moments of "tied" are those of the rows themselves
    start = problem.m_step((blank, _read(sums, d)))
    problem.direct = direct
    return start


def _centers(how: str, rows: Rows, k: int, random: np.random.RandomState) -> np.ndarray:
    """Return k centres, sought among a sample of the rows."""
    sample = rows.sample(_SAMPLE)
    X, weight = np.concatenate([block.X for block in sample.blocks()]), None
    if sample.has_weight:
        weight = np.concatenate([np.asarray(block.weight) for block in sample.blocks()])
        X, weight = X[weight > 0], weight[weight > 0]
    if how == "kmeans":
        return KMeans(k, n_init=1, random_state=random).fit(X, sample_weight=weight).cluster_centers_
    if how == "k-means++":
        return kmeans_plusplus(X, k, sample_weight=weight, random_state=random)[0]
    chances = None if weight is None else weight / weight.sum()
    return X[random.choice(len(X), size=k, replace=False, p=chances)]


def _read(sums: np.ndarray, d: int) -> Sums:
    if sums.ndim == 3:
        return Sums(sums[:, d, d], sums[:, :d, d], sums[:, :d, :d])
    return Sums(sums[:, 2 * d], sums[:, :d], sums[:, d : 2 * d])


def _nearest_sums(block: Block, centers: np.ndarray, layout: str) -> np.ndarray:
    """Return sums with each row in its nearest centre's component."""
    X = block.X
    apart = np.stack([np.einsum("ij,ij->i", X - center, X - center) for center in centers], axis=1)
    shares = np.zeros((len(X), len(centers)))
    shares[np.arange(len(X)), apart.argmin(axis=1)] = 1.0 if block.weight is None else block.weight
    return weighted_sums(X, shares, centers, layout)


def _random_sums(block: Block, center: np.ndarray, k: int, layout: str, seed: int) -> np.ndarray:
    """Return sums with shares drawn at random: row i has the draws from i k on, whichever block it is in."""
    draws = np.random.PCG64(seed).advance(block.start * k)
    shares = np.random.Generator(draws).random((len(block.X), k))
    shares /= shares.sum(axis=1)[:, None]
    if block.weight is not None:
        shares *= block.weight[:, None]
    return weighted_sums(block.X, shares, np.tile(center, (k, 1)), layout)


# What the user gives ------------------------------------------------------------------------------------------
def _given(owner: Any, k: int, d: int) -> tuple[Any, Any, Any]:
    """Return weights_init, means_init and precisions_init, checked; None where there is none."""
    shapes = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}
    weights = _array(owner, "weights_init", (k,))
    if weights is not None:
        if weights.min() < 0 or weights.max() > 1:
            raise refuse(
                owner,
                "weights_init: The parameter 'weights' should be in the range [0, 1], but got max value "
                f"{weights.min():.5f}, min value {weights.max():.5f}",
            )
        if abs(weights.sum() - 1) > _NEAR:
            raise refuse(
                owner,
                "weights_init: The parameter 'weights' should be normalized, but got sum(weights) = "
                f"{weights.sum():.5f}",
            )
        weights = weights / weights.sum()
    precisions = _array(owner, "precisions_init", shapes[owner.covariance_type])
    return weights, _array(owner, "means_init", (k, d)), precisions


def _array(owner: Any, name: str, shape: tuple[int, ...]) -> np.ndarray | None:
    value = getattr(owner, name)
    if value is None:
        return None
    result = np.array(value, dtype=np.float64)
    if result.shape != shape or not np.isfinite(result).all():
        which = {"weights_init": "weights", "means_init": "means"}.get(name, f"{owner.covariance_type} precision")
        raise refuse(
            owner,
            f"{name}: The parameter '{which}' should have the shape of {shape}, but got {result.shape}; all its "
            "numbers must be finite.",
        )
    return result


def _from_precisions(owner: Any, kind: str, weights: Any, means: Any, precisions: np.ndarray) -> Components:
    """Return components whose covariances are the inverses of the given matrices or numbers."""
    if kind in ("full", "tied"):
        symmetric = np.allclose(precisions, np.swapaxes(precisions, -1, -2))
        right = symmetric and np.linalg.eigvalsh(precisions).min() > 0
    else:
        right = precisions.min() > 0
    if not right:
        form = "symmetric, positive-definite" if kind in ("full", "tied") else "positive"
        raise refuse(owner, f"precisions_init: '{kind} precision' should be {form}.")
    covariances = np.linalg.inv(precisions) if kind in ("full", "tied") else 1.0 / precisions
    return Components(kind, weights, means, covariances, factors_of(kind, covariances))
