"""The covariances of Gaussian classes: of the rows as they are, shrunk, or from an estimator of the user's."""

from typing import Any

import numpy as np
from sklearn.base import clone

from assay.data.blocks import Block
from assay.discriminant_analysis._scatter import ClassSums, fourth_powers
from assay.params import refuse
from assay.scan import Rows


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
    found, d = np.atleast_2d(np.asarray(estimator.covariance_, dtype=np.float64)), X.shape[1]
    if found.shape != (d, d) or not np.isfinite(found).all():
        raise refuse(
            model, f"{type(estimator).__name__}.covariance_ must be ({d}, {d}) finite numbers; got {found.shape}."
        )
    return (found + found.T) / 2


def _fourth_power_of_all(block: Block, mean: np.ndarray, scale: np.ndarray) -> float:
    """Return the sum of |z|^4 over the rows, z = (x - mean) / scale."""
    z = (block.X - mean) / scale
    return float(np.sum(np.einsum("ij,ij->i", z, z) ** 2))
