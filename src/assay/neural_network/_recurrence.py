"""The recurrent layer of an Elman network over sequences of different lengths, and back-propagation through time.

    h_t = f(U' x_t + V' h_{t-1} + b),    z_t = W h_t + c,    h_0 = 0

Sequences are laid side by side so that all end at the same step: (n, T, d), with a mask (n, T) of the steps that
there are.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_softmax

UNITS = ("identity", "logistic", "tanh", "relu")
_STEEP = 1e10


class Weights(NamedTuple):
    """U (d, k), V (k, k), b (k,) of the recurrent layer, W (K, k) and c (K,) of the outputs."""

    U: np.ndarray
    V: np.ndarray
    b: np.ndarray
    W: np.ndarray
    c: np.ndarray

    def packed(self) -> np.ndarray:
        """Return all weights as one vector."""
        return np.concatenate([part.ravel() for part in self])


class Batch(NamedTuple):
    """Sequences side by side: steps (n, T, d), which of them there are (n, T), targets (n, T, K), and where targets are
    asked for (n, T)."""

    X: np.ndarray
    mask: np.ndarray
    Y: np.ndarray
    asked: np.ndarray


def start(d: int, k: int, outputs: int, random: np.random.RandomState) -> Weights:
    """Return first weights: uniform from and to the layer (Glorot and Bengio 2010), a rotation from state to state."""
    into, out = np.sqrt(6 / (d + k)), np.sqrt(6 / (k + outputs))
    V = np.linalg.qr(random.normal(size=(k, k)))[0]
    W = random.uniform(-out, out, (outputs, k))
    return Weights(random.uniform(-into, into, (d, k)), V, np.zeros(k), W, np.zeros(outputs))


def unpacked(theta: np.ndarray, d: int, k: int, outputs: int) -> Weights:
    """Return the weights in one vector as views of it."""
    shapes = ((d, k), (k, k), (k,), (outputs, k), (outputs,))
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    return Weights(*(part.reshape(shape) for part, shape in zip(np.split(theta, ends), shapes, strict=True)))


def activated(Z: np.ndarray, unit: str) -> np.ndarray:
    """Return what units say of their sums."""
    if unit == "tanh":
        return np.tanh(Z)
    if unit == "logistic":
        return expit(Z)
    return np.maximum(Z, 0.0) if unit == "relu" else Z


def slopes(H: np.ndarray, unit: str) -> np.ndarray:
    """Return f' by the values that units have."""
    if unit == "tanh":
        return 1 - H * H
    if unit == "logistic":
        return H * (1 - H)
    return (H > 0).astype(H.dtype) if unit == "relu" else np.ones_like(H)


def run(net: Weights, X: np.ndarray, mask: np.ndarray, unit: str, state: np.ndarray | None = None) -> np.ndarray:
    """Return the states (n, T + 1, k), the first of which is `state`, or zero; before a sequence begins it stays."""
    n, T, _ = X.shape
    states = np.empty((n, T + 1, len(net.b)))
    states[:, 0] = 0.0 if state is None else state
    inputs = X @ net.U + net.b
    for t in range(T):
        after = activated(inputs[:, t] + states[:, t] @ net.V, unit)
        states[:, t + 1] = np.where(mask[:, t, None], after, states[:, t])
    return states


def pull(Z: np.ndarray, Y: np.ndarray, output: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss of each row of outputs Z and its derivative by Z: squared error, or log loss of logistic or
    softmax."""
    if output == "identity":
        return 0.5 * np.square(Z - Y).sum(axis=-1), Z - Y
    if output == "logistic":
        return (np.logaddexp(0, Z) - Y * Z).sum(axis=-1), expit(Z) - Y
    logs = log_softmax(Z, axis=-1)
    return -(Y * logs).sum(axis=-1), np.exp(logs) - Y


def loss_gradient(net: Weights, batch: Batch, unit: str, output: str, alpha: float) -> tuple[float, Weights]:
    """Return the mean loss over the steps that are asked for + alpha/2 (|U|^2 + |V|^2 + |W|^2), and its gradient."""
    states = run(net, batch.X, batch.mask, unit)
    asked = batch.asked
    total = asked.sum()
    H = states[:, 1:]
    losses, D = pull(H[asked] @ net.W.T + net.c, batch.Y[asked], output)
    D = D / total
    back = np.zeros_like(H)
    back[asked] = D @ net.W
    slope = slopes(H, unit) * batch.mask[:, :, None]
    carried = np.zeros_like(states[:, 0])
    pulls = np.empty_like(H)
    for t in range(H.shape[1] - 1, -1, -1):
        pulls[:, t] = (back[:, t] + carried) * slope[:, t]
        carried = pulls[:, t] @ net.V.T  # a step that there is not has no slope, and no error comes from before it
    k = len(net.b)
    flat = pulls.reshape(-1, k)
    V = states[:, :-1].reshape(-1, k).T @ flat
    U = batch.X.reshape(-1, batch.X.shape[2]).T @ flat
    weights = alpha / 2 * sum(float(np.square(part).sum()) for part in (net.U, net.V, net.W))
    gradient = Weights(
        U + alpha * net.U, V + alpha * net.V, flat.sum(axis=0), D.T @ H[asked] + alpha * net.W, D.sum(axis=0)
    )
    return float(losses.sum() / total + weights), gradient


class Objective:
    """The objective of one vector of weights, as `lbfgs` wants it: it remembers the best."""

    def __init__(self, batch: Batch, unit: str, output: str, alpha: float, sizes: tuple[int, int, int]) -> None:
        self.batch, self.how, self.alpha, self.sizes = batch, (unit, output), alpha, sizes
        self.norm, self.calls = 0.0, 0
        self.best: tuple[float, np.ndarray] = (np.inf, np.empty(0))

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        with np.errstate(over="ignore", invalid="ignore"):
            value, parts = loss_gradient(unpacked(theta, *self.sizes), self.batch, *self.how, self.alpha)
        gradient = parts.packed()
        if not (np.isfinite(value) and np.isfinite(gradient).all()) and len(self.best[1]):
            return _STEEP * (1 + abs(self.best[0])), np.zeros_like(theta)  # the line search went too far: turn back
        self.norm, self.calls = float(np.linalg.norm(gradient)), self.calls + 1
        if value < self.best[0]:
            self.best = (value, theta.copy())
        return value, gradient


def laid_out(sequences: list[np.ndarray], T: int) -> tuple[np.ndarray, np.ndarray]:
    """Return sequences (t_i, d) side by side, all ending at step T, and the mask of the steps that there are."""
    X = np.zeros((len(sequences), T, sequences[0].shape[1]))
    mask = np.zeros((len(sequences), T), dtype=bool)
    for i, steps in enumerate(sequences):
        if len(steps):
            X[i, -len(steps) :], mask[i, -len(steps) :] = steps, True
    return X, mask


def cut(X: np.ndarray, lengths: Any) -> list[np.ndarray]:
    """Return the rows of X cut into sequences of these lengths."""
    return np.split(X, np.cumsum(lengths)[:-1])
