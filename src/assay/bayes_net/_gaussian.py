"""Gaussian nodes: a regression on the numeric parents for each combination of the others.

Given a combination with n rows, the maximum-likelihood coefficients solve the normal equations and the variance v is
the mean squared residual; the log-likelihood is then -n/2 (ln(2 pi v) + 1). A variance below a millionth of the
column's is raised to that, so that the likelihood stays finite; a combination with too few rows for its coefficients
has the mean and variance of the whole column.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from assay.bayes_net._reading import Coded
from assay.scan.memory import one_blas_thread

_FLOOR = 1e-6
_UNIT = 2.0**-53
_RANK = 1e-10  # directions of the parents that vary by so little of the most, or
_DIRECTION = 1e-12  # by so little of the columns' own variance, are left out
_MOST_MOMENTS = 2**24


class Fitted(NamedTuple):
    """A row (intercept, coefficients, standard deviation) for each combination of states, the log-likelihood, and how
    far rounding can move that, generously."""

    table: np.ndarray
    log_likelihood: float
    slack: float


class Moments(NamedTuple):
    """Rows, means (q, m) and covariances (q, m, m) of the standardised numeric columns, by combination of states."""

    counts: np.ndarray
    means: np.ndarray
    covariances: np.ndarray


class GaussianFamilies:
    """Fits of numeric nodes; moments of the rows by combination of states are kept."""

    def __init__(self, data: Coded):
        self.data = data
        self.columns = np.flatnonzero(data.sizes == 0)
        self.place = {int(node): k for k, node in enumerate(self.columns)}
        X = data.numbers[self.columns]
        self.weight = np.ones(data.n_rows) if data.weight is None else data.weight
        with np.errstate(invalid="ignore"):  # of columns that lack values nothing is asked here
            self.center = X.mean(axis=1) if data.weight is None else X @ self.weight / data.total
            apart = (X - self.center[:, None]) ** 2
            spread = np.sqrt(apart.mean(axis=1) if data.weight is None else apart @ self.weight / data.total)
            self.scale = np.where(spread > 1e-12 * np.abs(self.center), spread, 1.0)
            self.shift = (len(data.codes[0]) + 8) * _UNIT * np.abs(X).max(axis=1) / self.scale
            self.reach = np.abs(X - self.center[:, None]).max(axis=1) / self.scale
        self.known: dict[tuple[int, ...], Moments] = {}

    def moments(self, states: tuple[int, ...]) -> Moments:
        """Return the moments of all numeric columns for each combination of these nodes."""
        if states not in self.known:
            if len(self.known) * len(self.columns) ** 2 > _MOST_MOMENTS:
                self.known.clear()
            self.known[states] = self._moments(states)
        return self.known[states]

    def _moments(self, states: tuple[int, ...]) -> Moments:
        sizes = [int(self.data.sizes[one]) for one in states]
        q, m = int(np.prod(sizes)), len(self.columns)
        X = ((self.data.numbers[self.columns] - self.center[:, None]) / self.scale[:, None]).T
        if states:
            config = np.ravel_multi_index(tuple(self.data.codes[list(states)].astype(np.intp)), sizes)
            order, ends = np.argsort(config, kind="stable"), np.cumsum(np.bincount(config, minlength=q))[:-1]
            counts = np.bincount(config, self.data.weight, minlength=q)
            parts = list(zip(np.split(X[order], ends), np.split(self.weight[order], ends)))
        else:
            counts, parts = np.array([self.data.total]), [(X, self.weight)]
        means, covariances = np.zeros((q, m)), np.zeros((q, m, m))
        with one_blas_thread():
            for k, (part, weight) in enumerate(parts):
                if len(part):
                    means[k] = part.mean(axis=0) if self.data.weight is None else weight @ part / weight.sum()
                    apart = part - means[k]
                    heavy = apart if self.data.weight is None else apart * weight[:, None]
                    covariances[k] = apart.T @ heavy / counts[k]
        return Moments(counts, means, covariances)

    def fit(self, child: int, parents: Sequence[int]) -> Fitted:
        """Return the best table of a numeric node given its parents, which are sorted."""
        states = tuple(one for one in parents if one not in self.place)
        above = [self.place[one] for one in parents if one in self.place]
        own, (n, means, covariances) = self.place[child], self.moments(states)
        across, inner = covariances[:, above, own], covariances[:, above][:, :, above]
        with one_blas_thread():
            slopes, least = _solved(inner, across)
        total = covariances[:, own, own]
        left = total - 2 * np.einsum("qk,qk->q", slopes, across) + np.einsum("qk,qkl,ql->q", slopes, inner, slopes)
        few = n < len(above) + 2
        slopes[few] = 0.0
        intercept = np.where(few, 0.0, means[:, own] - np.einsum("qk,qk->q", slopes, means[:, above]))
        left = np.where(few, total + means[:, own] ** 2, np.maximum(left, 0.0))
        variance = np.where(few, 1.0, np.maximum(left, _FLOOR))
        logs = -0.5 * n * (np.log(2 * np.pi * variance) + left / variance) - n * np.log(self.scale[own])
        size = 1 + np.abs(slopes).sum(axis=1)
        slack = self._slack([*above, own], n, covariances, variance, size, least) + 1e-13 * float(np.abs(logs).sum())
        slopes = slopes * self.scale[own] / self.scale[above]
        intercept = self.center[own] + intercept * self.scale[own] - slopes @ self.center[above]
        table = np.column_stack([intercept, slopes, np.sqrt(variance) * self.scale[own]])
        shape = [int(self.data.sizes[one]) for one in states]
        return Fitted(table.reshape(*shape, -1), float(logs.sum()), slack)

    def _slack(
        self,
        used: list[int],
        n: np.ndarray,
        covariances: np.ndarray,
        variance: np.ndarray,
        size: np.ndarray,
        least: np.ndarray,
    ) -> float:
        """Return how far the rounding of moments can move the log-likelihood of a regression among these columns."""
        reach, shift = float(self.reach[used].max()), float(self.shift[used].max())
        largest = covariances[:, used, used].max(axis=1)
        off = (len(used) + 1) * (n + 64) * _UNIT * largest + 128 * _UNIT * reach**2
        wrong = 8 * off * size**2 * (1 + 16 * off / least)
        rest = np.where(n < len(used) + 1, 2 * n * (reach + shift) * shift, 0.0)
        return float((2 * n * wrong / np.maximum(variance - wrong, _FLOOR) + rest + 1e-12 * n).sum())


def _solved(inner: np.ndarray, across: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients (q, k) of least squares in the directions that vary, and how much the least of them does."""
    if not across.shape[1]:
        return across, np.ones(len(across))
    spectrum, directions = np.linalg.eigh(inner)
    kept = spectrum > np.maximum(_DIRECTION, _RANK * spectrum[:, -1:])
    inverse = np.where(kept, 1.0 / np.where(kept, spectrum, 1.0), 0.0)
    along = np.einsum("qij,qi->qj", directions, across) * inverse
    return np.einsum("qij,qj->qi", directions, along), np.where(kept, spectrum, 1.0).min(axis=1)
