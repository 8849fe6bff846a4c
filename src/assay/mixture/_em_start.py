"""Where EM begins: components from k centres, from random shares, or as the user gives them."""

from typing import Any

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus

from assay.data.blocks import Block
from assay.mixture._components import KINDS, Components, GaussianProblem, Sums, factors_of, weighted_sums
from assay.params import Choice, Count, Number, refuse
from assay.scan import Rows

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


def components(owner: Any, problem: GaussianProblem, n_components: int, random: np.random.RandomState) -> Components:
    """Return the components that `owner` (its *_init parameters) asks EM to begin with."""
    d = problem.rows.n_features
    given = _given(owner, n_components, d)
    if all(part is not None for part in given):
        weights, means, precisions = given
        return _from_precisions(owner, problem.kind, weights, means, precisions)
    found = _found(owner, problem, n_components, random)
    weights, means, precisions = given
    if precisions is not None:
        found = _from_precisions(owner, problem.kind, found.weights, found.means, precisions)
    return found._replace(
        weights=found.weights if weights is None else weights, means=found.means if means is None else means
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
    found = np.array(value, dtype=np.float64)
    if found.shape != shape or not np.isfinite(found).all():
        which = {"weights_init": "weights", "means_init": "means"}.get(name, f"{owner.covariance_type} precision")
        raise refuse(
            owner,
            f"{name}: The parameter '{which}' should have the shape of {shape}, but got {found.shape}; all its numbers "
            "must be finite.",
        )
    return found


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
