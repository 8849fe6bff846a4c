"""The recurrent layer of an Elman network over sequences of different lengths, and back-propagation through time.

    h_t = f(U' x_t + V' h_{t-1} + b),    z_t = W h_t + c,    h_0 = 0

Sequences are laid side by side so that all end at the same step: (n, T, d), with a mask (n, T) of the steps that there
are. The bounds of the rounding of outputs and gradient are doubled, so that whoever recomputes in another order
resolves every row that is resolved here.

Information plane: mutual information between each layer and the rows, and between it and their labels. A layer Z of a
network is a function of the row X, and Y - X - Z a Markov chain. With the values of Z cut into bins, I(X; Z) and I(Z;
Y) are those of tables of counts over the given rows; I(Z; Y) <= min(I(X; Z), I(X; Y)), and a layer that keeps the
second number while the first falls has forgotten what does not matter (Tishby and Zaslavsky 2015). Binning makes the
numbers depend on the number of bins; they describe these rows, and claim nothing about new ones.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_softmax
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.neural_network._network import sums_of_last
from assay.params import refuse
from assay.theory.bottleneck import mutual_information

UNITS = ("identity", "logistic", "tanh", "relu")
_STEEP = 1e10
_UNIT = 2.0**-53
_LEAST = 1e-140
_ROUNDING_ERROR = 64 * _UNIT
Bounded = tuple[np.ndarray, np.ndarray]


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


def _affine(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], b: Any) -> Bounded:
    many = sum(len(weights) for _, _, weights in parts)
    size = sum(np.abs(value) @ np.abs(weights) for value, _, weights in parts) + np.abs(b)
    carried = sum(error @ np.abs(weights) for _, error, weights in parts)
    total = sum(value @ weights for value, _, weights in parts) + b
    return total, (4 * many + 64) * _UNIT * size + (1 + 1e-9) * carried + _LEAST


def _unit_error(Z: np.ndarray, off: np.ndarray, unit: str) -> np.ndarray:
    if unit not in ("tanh", "logistic"):
        return off
    half = 1.0 if unit == "tanh" else 0.5
    nearest = np.clip((np.abs(Z) - off) * (1 - 1e-12) * half, 0.0, 290.0)
    return np.minimum((1 + 1e-9) * off * half * half / np.square(np.cosh(nearest)), 2.0) + _ROUNDING_ERROR


def states(net: Weights, X: np.ndarray, mask: np.ndarray, unit: str) -> list[tuple[np.ndarray, ...]]:
    """Return for each step the state before and its error, the sums and theirs, the state after and its error."""
    results: list[tuple[np.ndarray, ...]] = []
    state = np.zeros((len(X), len(net.b)))
    error = np.zeros_like(state)
    for t in range(X.shape[1]):
        x = X[:, t]
        sums, off = _affine([(x, np.zeros_like(x), net.U), (state, error, net.V)], net.b)
        on = mask[:, t, None]
        after = np.where(on, activated(sums, unit), state)
        wrong = np.where(on, _unit_error(sums, off, unit), error)
        results.append((state, error, sums, off, after, wrong))
        state, error = after, wrong
    return results


def last_outputs(net: Weights, X: np.ndarray, mask: np.ndarray, unit: str) -> Bounded:
    """Return the outputs after the last step, and twice how far rounding can move them."""
    *_, after, wrong = states(net, X, mask, unit)[-1]
    Z, off = _affine([(after, wrong, net.W.T)], net.c)
    return Z, 2 * off


def gradient_sums(
    net: Weights, X: np.ndarray, mask: np.ndarray, Y: np.ndarray, unit: str, output: str
) -> list[np.ndarray]:
    """Return the sums over sequences of the gradient by U, V, b, W, c, then bounds of the error of each."""
    steps, n = states(net, X, mask, unit), len(X)
    *_, after, wrong = steps[-1]
    Z, e = _affine([(after, wrong, net.W.T)], net.c)
    D = pull(Z, Y, output)[1]
    off = e + 8 * _UNIT * np.abs(D)
    if output == "logistic":
        off = e / 4 + 2 * _ROUNDING_ERROR
    elif output == "softmax":
        spread = Z.max(axis=1, keepdims=True) - Z.min(axis=1, keepdims=True)
        rough = np.expm1(2 * e.max(axis=1, keepdims=True)) + 16 * (spread + Z.shape[1] + 16) * _UNIT
        off = (np.abs(D) + Y) * rough + 8 * _UNIT
    ones = np.ones((n, 1))
    total = [np.zeros(part.shape) for part in net]
    error = [np.zeros(part.shape) for part in net]

    def add(place: int, A: np.ndarray, a: np.ndarray, B: np.ndarray, b: np.ndarray) -> None:
        rough = np.abs(A).T @ (b + 4 * (n + 32) * _UNIT * np.abs(B)) + a.T @ (np.abs(B) + b)
        total[place] += (A.T @ B).reshape(total[place].shape)
        error[place] += (1 + 1e-9) * rough.reshape(total[place].shape) + 8 * _UNIT * np.abs(total[place]) + _LEAST

    add(3, D, off, after, wrong)
    add(4, ones, 0 * ones, D, off)
    back, off = _affine([(D, off, net.W)], 0.0)
    for t in range(X.shape[1] - 1, -1, -1):
        before, early, sums, loose, after, wrong = steps[t]
        on = mask[:, t, None]
        slope, slip = slopes(after, unit), _slope_error(sums, loose, after, wrong, unit)
        D = back * slope * on
        off = (off * (np.abs(slope) + slip) + np.abs(back) * slip + 8 * _UNIT * np.abs(D)) * on
        add(0, X[:, t], np.zeros_like(X[:, t]), D, off)
        add(1, before, early, D, off)
        add(2, ones, 0 * ones, D, off)
        back, off = _affine([(D, off, net.V.T)], 0.0)
        back, off = np.where(on, back, 0.0), np.where(on, off, 0.0)
    return [*total, *error]


def _slope_error(Z: np.ndarray, off: np.ndarray, H: np.ndarray, error: np.ndarray, unit: str) -> np.ndarray:
    if unit == "relu":
        return (np.abs(Z) <= 2 * off).astype(float)
    if unit == "logistic":
        return error * (1 + error) + 16 * _UNIT
    return error * (2 * np.abs(H) + error) + 16 * _UNIT if unit == "tanh" else np.zeros_like(H)


def gradient_length(net: Weights, sums: list[np.ndarray], n: int, alpha: float) -> float:
    """Return an upper bound of the length of the gradient of the objective, from the sums over n sequences."""
    square = 0.0
    for place, part in enumerate(net):
        rate = alpha if place in (0, 1, 3) else 0.0
        mean, off = sums[place] / n, 2 * sums[5 + place] / n
        off = off + 64 * _UNIT * (np.abs(mean) + rate * np.abs(part))
        square += float(np.square(np.abs(mean + rate * part) + off).sum())
    return float(np.sqrt(square)) * (1 + 1e-6) + 1e-12


class LayerInformation(NamedTuple):
    """For the rows themselves, each hidden layer and the outputs: I(X; Z) and I(Z; Y), in bits.

    Parameters
    ----------
    about_rows : ndarray
        I(X; Z) of each layer.
    about_labels : ndarray
        I(Z; Y) of each layer.
    """

    about_rows: np.ndarray
    about_labels: np.ndarray


def layer_information(model: Any, X: Any, y: Any, *, bins: int = 30) -> LayerInformation:
    """Return what the layers of a fitted `MLPClassifier` or `MLPRegressor` tell about rows X and labels y, in bits.

    Each unit's values are cut into `bins` of equal width between its least and its largest value.

    Parameters
    ----------
    model : learner
        Fitted network.
    X : array-like
        Rows.
    y : array-like
        Labels or targets.
    bins : int, default=30
        Number of bins of each unit's values.

    Returns
    -------
    LayerInformation
        Bits about rows and labels.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.neural_network import MLPClassifier, layer_information
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> net = MLPClassifier((4, 1), "tanh", solver="lbfgs", random_state=0).fit(X, y)
    >>> found = layer_information(net, X, y)
    >>> bool(found.about_rows[-1] < found.about_rows[0] - 1), bool(found.about_labels[-1] > 0.95)
    (True, True)
    """
    check_is_fitted(model)
    if not hasattr(model, "coefs_"):
        raise refuse(model, "has no layers; it must be a fitted feed-forward network.")
    if bins < 2:
        raise ValueError(f"layer_information: bins must be at least 2; got {bins!r}.")
    X, labels = validate_data(model, X, reset=False, dtype=np.float64), np.asarray(y)
    check_consistent_length(X, labels)
    rows = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    codes = np.unique(labels, return_inverse=True)[1].ravel()
    cells = [rows]
    for depth in range(1, len(model.coefs_) + 1):
        Z = sums_of_last(X, model.coefs_[:depth], model.intercepts_[:depth], model.activation)
        cells.append(_binned(activated(Z, model.activation) if depth < len(model.coefs_) else Z, bins))
    bits = 1 / np.log(2)
    about = [[bits * mutual_information(_counts(Z, other)) for Z in cells] for other in (rows, codes)]
    return LayerInformation(*(np.array(part) for part in about))


def _binned(Z: np.ndarray, bins: int) -> np.ndarray:
    """Return the number of the cell of each row, a cell being a bin of every unit."""
    low, span = Z.min(axis=0), np.ptp(Z, axis=0)
    cut = np.minimum((bins * (Z - low) / np.where(span > 0, span, 1.0)).astype(int), bins - 1)
    return np.unique(cut, axis=0, return_inverse=True)[1].ravel()


def _counts(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    table = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(table, (one, other), 1.0)
    return table / len(one)
