"""Information bottleneck on a discrete joint table: keep what X says about Y, forget the rest of X.

    maximise over P(z|x)    I(Z;Y) - beta I(X;Z),    Y - X - Z a Markov chain, 0 <= beta

by the alternating updates of Tishby, Pereira and Bialek 1999: P(z|x) proportional to P(z) exp(-KL(P(y|x),
P(y|z)) / beta), then P(z) and P(y|z) from it. Each round does not lower the objective. By the data
processing inequality I(Z;Y) <= I(X;Z), so for beta >= 1 a constant Z with value 0 is optimal; as beta falls
to 0 the optimum tends to I(X;Y). Information is in nats.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, xlogy

from assay.theory import _checks as check


def entropy(p: ArrayLike) -> float:
    """Return -sum p ln p of a table of probabilities.

    Parameters
    ----------
    p : array-like
        Probabilities; their sum is 1.

    Returns
    -------
    float
        The entropy, in nats.
    """
    return float(-xlogy(_table(p), _table(p)).sum())


def mutual_information(joint: ArrayLike) -> float:
    """Return sum P(x,y) ln(P(x,y) / (P(x) P(y))) of a joint table; divide by ln 2 for bits.

    Parameters
    ----------
    joint : array-like
        Joint probabilities P(x, y), a row for each value x; their sum is 1.

    Returns
    -------
    float
        I(X;Y), in nats.
    """
    p = _table(joint)
    if p.ndim != 2:
        raise ValueError(f"joint must be a two-dimensional table; got {p.ndim} dimensions.")
    return max(0.0, entropy(p.sum(axis=1)) + entropy(p.sum(axis=0)) - entropy(p))


def _table(p: ArrayLike) -> np.ndarray:
    table = np.asarray(p, dtype=np.float64)
    if table.size == 0 or not np.all(table >= 0.0) or abs(table.sum() - 1.0) > 1e-9:
        raise ValueError("probabilities must be non-negative and add up to 1.")
    return table


class Bottleneck(NamedTuple):
    """P(z|x) and what it keeps: I(X;Z), I(Z;Y), the objective after every round, and whether it settled.

    Parameters
    ----------
    encoder : ndarray
        P(z|x), a row for each x.
    compression : float
        I(X;Z), in nats.
    relevance : float
        I(Z;Y), in nats.
    history : tuple of float
        The objective after every round.
    converged : bool
        Whether the rounds ended before `max_iter`.
    """

    encoder: np.ndarray
    compression: float
    relevance: float
    history: tuple[float, ...]
    converged: bool

    @property
    def objective(self) -> float:
        """The last of `history`."""
        return self.history[-1]


def information_bottleneck(
    joint: ArrayLike,
    beta: float,
    *,
    clusters: int | None = None,
    start: ArrayLike | None = None,
    max_iter: int = 2000,
    tol: float = 1e-12,
    seed: int = 0,
) -> Bottleneck:
    """Return an encoder P(z|x) that no further round improves by `tol`: a stationary point of the objective.

    `joint` is P(x, y) with rows x; `clusters` values of z (as many as of x unless given); `start` an
    encoder to begin with, else the identity mixed with a little seeded noise.

    Parameters
    ----------
    joint : array-like
        Joint probabilities P(x, y), a row for each value x; their sum is 1.
    beta : float
        Price of compression: the objective is I(Z;Y) - beta I(X;Z).
    clusters : int or None
        Number of values of the representation Z; None: as many as X has.
    start : array-like or None
        P(z|x) to begin with; None: the identity with a little noise.
    max_iter : int, default=2000
        Largest number of rounds.
    tol : float, default=1e-12
        The rounds end once the objective falls by less than this.
    seed : int, default=0
        Seed of the noise that is mixed into the first encoder.

    Returns
    -------
    Bottleneck
        The encoder and what it keeps.
    """
    p = _table(joint)
    beta = check.positive("beta", beta, why="it divides the divergence")
    max_iter, px = check.whole("max_iter", max_iter), p.sum(axis=1)
    if px.min() <= 0.0:
        raise ValueError("every row of joint must have positive probability; leave out values of x that never occur.")
    size = len(px) if clusters is None else check.whole("clusters", clusters)
    encoder = _start(len(px), size, seed) if start is None else np.asarray(start, dtype=np.float64)
    history = [_objective(encoder, p, beta)]
    for _ in range(max_iter):
        encoder = _round(encoder, p, px, beta)
        history.append(_objective(encoder, p, beta))
        if history[-1] - history[-2] <= tol:
            break
    keeps = _kept(encoder, p)
    return Bottleneck(encoder, *keeps, tuple(history), history[-1] - history[-2] <= tol)


def _start(values: int, size: int, seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).dirichlet(np.ones(size), size=values)
    return 0.9 * np.eye(size)[np.arange(values) % size] + 0.1 * noise


def _round(encoder: np.ndarray, p: np.ndarray, px: np.ndarray, beta: float) -> np.ndarray:
    """Return the encoder after one update of P(y|z), P(z) and P(z|x)."""
    pz = px @ encoder
    y_given_z = (encoder.T @ p) / np.maximum(pz, 1e-300)[:, None]
    y_given_x = p / px[:, None]
    with np.errstate(divide="ignore"):
        log_y = np.log(y_given_z)
        log_z = np.log(pz)
    cross = np.where(y_given_x[:, None, :] > 0.0, y_given_x[:, None, :] * log_y[None, :, :], 0.0).sum(axis=2)
    divergence = xlogy(y_given_x, y_given_x).sum(axis=1)[:, None] - cross
    log_encoder = log_z[None, :] - divergence / beta
    return np.exp(log_encoder - logsumexp(log_encoder, axis=1, keepdims=True))


def _kept(encoder: np.ndarray, p: np.ndarray) -> tuple[float, float]:
    """Return I(X;Z) and I(Z;Y)."""
    return mutual_information(p.sum(axis=1)[:, None] * encoder), mutual_information(encoder.T @ p)


def _objective(encoder: np.ndarray, p: np.ndarray, beta: float) -> float:
    compression, relevance = _kept(encoder, p)
    return relevance - beta * compression


class CurvePoint(NamedTuple):
    """One point of the information curve.

    Parameters
    ----------
    beta : float
        Price of compression.
    compression : float
        I(X;Z), in nats.
    relevance : float
        I(Z;Y), in nats.
    """

    beta: float
    compression: float
    relevance: float


def information_curve(
    joint: ArrayLike, betas: Sequence[float] | None = None, *, clusters: int | None = None, seed: int = 0
) -> list[CurvePoint]:
    """Return I(X;Z) and I(Z;Y) as the price of compression falls.

    beta runs down from 1 to 0.01 unless given, so Z grows from a constant to nearly all that X says about Y.

    Parameters
    ----------
    joint : array-like
        Joint probabilities P(x, y), a row for each value x; their sum is 1.
    betas : sequence of float or None
        Prices of compression; None: from 1 down to 0.01.
    clusters : int or None
        Number of values of the representation Z; None: as many as X has.
    seed : int, default=0
        Seed of the noise that is mixed into the first encoder.

    Returns
    -------
    list of CurvePoint
        One point for each price.
    """
    values = np.geomspace(1.0, 0.01, 40) if betas is None else np.asarray(betas, dtype=np.float64)
    rising = sorted(float(b) for b in values)
    points, start = [], None
    for beta in rising:
        result = information_bottleneck(joint, beta, clusters=clusters, start=start, seed=seed)
        start = result.encoder
        points.append(CurvePoint(beta, result.compression, result.relevance))
    return points[::-1]
