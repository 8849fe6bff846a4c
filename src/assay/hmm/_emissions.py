"""Gaussian components of rows that may lack entries: densities, moments given shares, and the M step.

`factors` are upper triangular U with U U' = S^-1, (K, d, d), or scales 1 / s, (K, d), one for each component. An entry
that is missing is integrated out: with variances its column is left out; with full matrices the density is that of the
entries that are there, and moments take the missing ones by their conditional mean and covariance.
"""

from typing import Any, NamedTuple

import numpy as np

from assay.hmm._chain import Sequences
from assay.scan import thread_map

KINDS = ("full", "tied", "diag", "spherical")
_HALF_LOG_2PI = 0.9189385332046727418
NARROWEST = 1e-9
"""Least variance, in any direction, as a share of that of the columns."""


class Moments(NamedTuple):
    """Sums over rows for each component: share, share z, share z z' (or z^2), z = x - m; mass is (K, d) with scales,
    as each column counts the entries that are there, else (K,)."""

    mass: np.ndarray
    linear: np.ndarray
    square: np.ndarray


def log_densities(X: np.ndarray, means: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return ln N_k(x) of each row (n, K)."""
    found = np.empty((len(X), len(means)))
    if factors.ndim == 2:
        for k, (m, u) in enumerate(zip(means, factors)):
            found[:, k] = np.nansum(np.log(u) - _HALF_LOG_2PI - 0.5 * ((X - m) * u) ** 2, axis=1)
        return found
    missing = np.isnan(X)
    whole = ~missing.any(axis=1)
    for k, (m, U) in enumerate(zip(means, factors)):
        z = (X[whole] - m) @ U
        constant = np.log(np.diag(U)).sum() - len(m) * _HALF_LOG_2PI
        found[whole, k] = constant - 0.5 * np.einsum("ij,ij->i", z, z)
    for rows, there in _patterns(missing):
        for k, (m, U) in enumerate(zip(means, factors)):
            own = np.linalg.inv(np.linalg.cholesky(_covariance(U)[np.ix_(there, there)])) if there.any() else None
            if own is None:
                found[rows, k] = 0.0
                continue
            z = (X[np.ix_(rows, there)] - m[there]) @ own.T
            found[rows, k] = np.log(np.diag(own)).sum() - there.sum() * _HALF_LOG_2PI - 0.5 * (z**2).sum(axis=1)
    return found


def moments(sequences: Sequences, means: np.ndarray, factors: np.ndarray, shares: np.ndarray) -> Moments:
    """Return the moments of the rows weighted by shares (n, K)."""
    if factors.ndim == 2:
        from assay.hmm._loops import diagonal_moments

        def diagonal(piece: tuple[int, int]) -> Any:
            return diagonal_moments(sequences.X, means, shares, *piece)

        found = thread_map(diagonal, sequences.stretches(), n_jobs=sequences.n_jobs)
    else:

        def full(piece: tuple[int, int]) -> Any:
            here = slice(*piece)
            return _full_moments(sequences.X[here], means, factors, shares[here])

        found = thread_map(full, sequences.stretches(), n_jobs=sequences.n_jobs)
    return Moments(*(sum(parts[1:], start=parts[0].copy()) for parts in zip(*found)))


def _full_moments(X: np.ndarray, means: np.ndarray, factors: np.ndarray, shares: np.ndarray) -> Moments:
    K, d = means.shape
    missing = np.isnan(X)
    holes, nothing = missing.any(axis=1), missing.all(axis=1)
    mass, linear, square = np.zeros(K), np.zeros((K, d)), np.zeros((K, d, d))
    for k, (m, U) in enumerate(zip(means, factors)):
        r = np.where(nothing, 0.0, shares[:, k])
        z = np.where(holes[:, None], 0.0, X - m) if holes.any() else X - m
        for rows, there in _patterns(missing):
            if there.any():
                z[rows] = _filled(X[rows] - m, there, U)
                square[k] += r[rows].sum() * _spread(there, U)
        mass[k], linear[k] = r.sum(), r @ z
        square[k] += (z * r[:, None]).T @ z
    return Moments(mass, linear, square)


def _patterns(missing: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the rows that lack the same entries, and which entries these have, for each such set of rows."""
    rows = np.flatnonzero(missing.any(axis=1))
    if not len(rows):
        return []
    kinds, which = np.unique(missing[rows], axis=0, return_inverse=True)
    return [(rows[which.ravel() == i], ~kind) for i, kind in enumerate(kinds)]


def _covariance(U: np.ndarray) -> np.ndarray:
    back = np.linalg.inv(U)
    return back.T @ back


def _filled(z: np.ndarray, there: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Return deviations z whose missing entries are their conditional means."""
    P = U @ U.T
    z = z.copy()
    z[:, ~there] = -np.linalg.solve(P[np.ix_(~there, ~there)], P[np.ix_(~there, there)] @ z[:, there].T).T
    return z


def _spread(there: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Return the covariance of the missing entries given those that are there, zero elsewhere."""
    found = np.zeros_like(U)
    found[np.ix_(~there, ~there)] = np.linalg.inv((U @ U.T)[np.ix_(~there, ~there)])
    return found


class Prior(NamedTuple):
    """What is added to sums of squares (`scale`) and to counts (`count`) before one is divided by the other, and to the
    sums for the means, which `weight` rows at `mean` would be. `mean` (K, d), the others to be broadcast."""

    mean: np.ndarray
    weight: np.ndarray
    scale: Any
    count: Any

    def log(self, kind: str, means: np.ndarray, covariances: np.ndarray) -> float:
        """Return its logarithm up to a constant; covariances (K, d, d) or (K, d), of "tied" (groups, d, d)."""
        off = means - self.mean
        flat = covariances.ndim == 2
        logs = np.log(covariances).sum(axis=1) if flat else np.linalg.slogdet(covariances)[1]
        if flat:
            trace = (np.broadcast_to(self.scale, covariances.shape) / covariances).sum(axis=1)
            pull = (off**2 / covariances).sum(axis=1)
        else:
            inverse = np.linalg.inv(covariances)
            trace = np.einsum("kij,kij->k", inverse, np.broadcast_to(self.scale, covariances.shape))
            own = np.repeat(inverse, len(means) // len(inverse), axis=0)
            pull = np.einsum("ki,kij,kj->k", off, own, off)
        count = np.broadcast_to(self.count, logs.shape)
        return float(-0.5 * ((count * logs).sum() + trace.sum() + (self.weight * pull).sum()))


def maximise(
    kind: str, old: Moments, means: np.ndarray, prior: Prior, groups: int, free: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means and covariances of the M step, and which components are to stay as they are, having no rows.

    Covariances are (K, d, d), (K, d), or for "tied" (groups, d, d), each shared by as many components. `free` has "m"
    if the means may move.
    """
    mass = old.mass if old.mass.ndim == 2 else old.mass[:, None]
    weight = np.broadcast_to(prior.weight, len(means))[:, None]
    empty = mass.sum(axis=1) <= 1e-12
    total = np.where(mass + weight > 0, mass + weight, 1.0)
    new = means + (old.linear + weight * (prior.mean - means)) / total if "m" in free else means
    step, off = new - means, new - prior.mean
    if old.square.ndim == 2:
        square = old.square - 2 * step * old.linear + mass * step**2 + weight * off**2
        found = square + prior.scale
        count = mass + prior.count
        if kind == "spherical":
            found = np.repeat(found.sum(axis=1, keepdims=True), len(step.T), axis=1)
            count = np.repeat(count.sum(axis=1, keepdims=True), len(step.T), axis=1)
    else:
        outer = step[:, :, None] * old.linear[:, None, :]
        square = old.square - outer - outer.swapaxes(1, 2) + mass[:, :, None] * step[:, :, None] * step[:, None, :]
        square = square + weight[:, :, None] * off[:, :, None] * off[:, None, :]
        if kind == "tied":
            square = square.reshape(groups, -1, *square.shape[1:]).sum(axis=1)
            mass = mass.reshape(groups, -1).sum(axis=1, keepdims=True)
            empty = np.repeat(mass[:, 0] <= 1e-12, len(means) // groups)
        found = square + prior.scale
        count = (mass[:, 0] + prior.count)[:, None, None]
    covariances = found / np.maximum(count, 1e-300)
    return np.where(empty[:, None], means, new), covariances, empty


def widened(covariances: np.ndarray, least: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the covariances, none of which is narrower than `least` (d,) in any direction, and how many were.

    In units of `least` eigenvalues are raised to one, which is the maximum of the expected likelihood among such.
    """
    if covariances.ndim == 2:
        return np.maximum(covariances, least), int((covariances < least).any(axis=1).sum())
    units = np.sqrt(least)
    scaled = covariances / (units[:, None] * units)
    values = np.linalg.eigvalsh(scaled)[:, 0]
    found, thin = covariances.copy(), np.flatnonzero(values < 1)
    for k in thin:
        spectrum, V = np.linalg.eigh((scaled[k] + scaled[k].T) / 2)
        found[k] = (V * np.maximum(spectrum, 1.0)) @ V.T * (units[:, None] * units)
    return found, len(thin)


def factors_of(covariances: np.ndarray) -> np.ndarray:
    """Return the factors of covariances (K, d, d) or (K, d)."""
    if covariances.ndim == 2:
        return 1.0 / np.sqrt(covariances)
    lower = np.linalg.cholesky((covariances + covariances.swapaxes(1, 2)) / 2)
    return np.triu(np.linalg.inv(lower).swapaxes(1, 2))


def covariances_of(factors: np.ndarray) -> np.ndarray:
    """Return the covariances of factors (K, d, d) or (K, d)."""
    if factors.ndim == 2:
        return 1.0 / factors**2
    return np.array([_covariance(U) for U in factors])
