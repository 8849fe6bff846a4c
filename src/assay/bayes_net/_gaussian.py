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
_RANK = 1e-10
_MOST_MOMENTS = 2**24


class Fitted(NamedTuple):
    """A row (intercept, coefficients, standard deviation) for each combination of states, and the log-likelihood."""

    table: np.ndarray
    log_likelihood: float


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
        with np.errstate(invalid="ignore"):  # of columns that lack values nothing is asked here
            self.center, spread = X.mean(axis=1), X.std(axis=1)
            self.scale = np.where(spread > 1e-12 * np.abs(self.center), spread, 1.0)
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
            counts = np.bincount(config, minlength=q)
            parts = np.split(X[np.argsort(config, kind="stable")], np.cumsum(counts)[:-1])
        else:
            counts, parts = np.array([len(X)]), [X]
        means, covariances = np.zeros((q, m)), np.zeros((q, m, m))
        with one_blas_thread():
            for k, part in enumerate(parts):
                if len(part):
                    means[k] = part.mean(axis=0)
                    apart = part - means[k]
                    covariances[k] = apart.T @ apart / len(part)
        return Moments(counts, means, covariances)

    def fit(self, child: int, parents: Sequence[int]) -> Fitted:
        """Return the best table of a numeric node given its parents, which are sorted."""
        states = tuple(one for one in parents if one not in self.place)
        above = [self.place[one] for one in parents if one in self.place]
        own, (n, means, covariances) = self.place[child], self.moments(states)
        across, inner = covariances[:, above, own], covariances[:, above][:, :, above]
        with one_blas_thread():
            slopes = (np.linalg.pinv(inner, rcond=_RANK, hermitian=True) @ across[..., None])[..., 0]
        total = covariances[:, own, own]
        left = total - 2 * np.einsum("qk,qk->q", slopes, across) + np.einsum("qk,qkl,ql->q", slopes, inner, slopes)
        few = n < len(above) + 2
        slopes[few] = 0.0
        intercept = np.where(few, 0.0, means[:, own] - np.einsum("qk,qk->q", slopes, means[:, above]))
        left = np.where(few, total + means[:, own] ** 2, np.maximum(left, 0.0))
        variance = np.where(few, 1.0, np.maximum(left, _FLOOR))
        logs = -0.5 * n * (np.log(2 * np.pi * variance) + left / variance) - n * np.log(self.scale[own])
        slopes = slopes * self.scale[own] / self.scale[above]
        intercept = self.center[own] + intercept * self.scale[own] - slopes @ self.center[above]
        table = np.column_stack([intercept, slopes, np.sqrt(variance) * self.scale[own]])
        shape = [int(self.data.sizes[one]) for one in states]
        return Fitted(table.reshape(*shape, -1), float(logs.sum()))
