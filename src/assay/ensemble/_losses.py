"""The losses that gradient boosting minimises, and what each needs beside its derivatives.

raw score F, prediction   F (regression), sigma(F) (log_loss, exponential: sigma(2 F)), softmax(F), e^F (poisson, gamma)
F_0                       the constant that minimises the loss
leaf value                Newton's step -sum g / (sum h + l2); for absolute, Huber and quantile loss the minimiser over
                          the leaf's residuals itself, because the curvature of these losses says nothing

The curved losses have |h'| <= h, so that at a distance s the curvature is at most h e^s, and a step s against G is sure
to lower the loss of a leaf where  e^s - 1 - s <= N s,  N = |G| / H.  Steps up to 1/2 + ln(1 + N) do; `held_back` keeps
to them. Without that a leaf of a rare class, whose h are almost 0, throws all of its rows beyond any return. The K
scores of the softmax move together, which doubles the curvature at most: N is halved.
"""

from math import log1p
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from assay.losses import CODES

_ROWS = 65_536  # rows of one task
_EPSILON = float(np.finfo(np.float64).eps)


class Slopes(NamedTuple):
    """Derivatives of the loss at the current scores."""

    g: np.ndarray  # (outputs, rows)
    h: np.ndarray  # (outputs, rows) or (outputs, 1)
    top_g: float
    top_h: float
    mean: float  # mean loss


class Loss:
    """A loss by name; `level` is that of the quantile loss, or the quantile of the absolute residuals up to which
    Huber's loss is quadratic (`share`; `level` then is that residual)."""

    def __init__(self, name: str, level: float = 0.0, n_outputs: int = 1):
        self.name, self.level, self.share, self.n_outputs = name, level, level, n_outputs
        self.of_residual = name in ("squared_error", "absolute_error", "huber", "quantile")
        self.of_logarithm = name in ("poisson", "gamma")  # predictions are exponentials of scores

    @property
    def by_residuals(self) -> bool:
        """Whether leaf values are found from the residuals of a leaf."""
        return self.name in ("absolute_error", "huber", "quantile")

    def start(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Return F_0, one number for each output."""
        if self.by_residuals:
            w = np.ones(len(y)) if weight is None else weight
            return np.array([weighted_quantile(y, w, self.level if self.name == "quantile" else 0.5)])
        return self.start_from(self.start_sums(y, weight))

    def start_sums(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Return what F_0 follows from, as sums over rows: the weights, then those of each class or the weighted y."""
        if self.name == "multinomial":
            counts = np.bincount(y.astype(int), weight, self.n_outputs)
            return np.append(counts.sum(), counts)
        total, targets = (len(y), y.sum()) if weight is None else (weight.sum(), (weight * y).sum())
        return np.array([total, targets], dtype=np.float64)

    def start_from(self, sums: np.ndarray) -> np.ndarray:
        """Return F_0 of rows with these `start_sums`."""
        if self.name == "multinomial":
            share = np.log(np.maximum(sums[1:] / sums[0], 1e-15))
            return share - share.mean()
        mean = float(sums[1] / sums[0])
        if self.name in ("log_loss", "exponential"):
            mean = min(max(mean, _EPSILON), 1 - _EPSILON)  # a small part of the rows may be of one class
            odds = np.log(mean / (1 - mean))
            return np.array([odds if self.name == "log_loss" else odds / 2])
        return np.array([np.log(mean) if self.of_logarithm else mean])

    def slopes(self, y: np.ndarray, F: np.ndarray, weight: np.ndarray | None, buffers: Slopes, spread: Any) -> Slopes:
        """Return the derivatives at scores F (outputs, rows), written to the arrays of `buffers`."""
        n = len(y)
        borders = np.append(np.arange(0, n, _ROWS), n)
        losses, top_g, top_h = self.block_slopes(y, F, weight, buffers, borders, spread)
        total = n if weight is None else weight.sum() or 1.0
        return buffers._replace(top_g=top_g, top_h=top_h, mean=sum(losses.tolist()) / total)

    def block_slopes(
        self, y: np.ndarray, F: np.ndarray, weight: np.ndarray | None, buffers: Slopes, borders: np.ndarray, spread: Any
    ) -> tuple[np.ndarray, float, float]:
        """Write the derivatives to `buffers`; return the sum of the losses between neighbouring borders, the largest
        |g| and the largest h."""
        from assay.ensemble import _loss_loops as loops

        loop = {
            "log_loss": loops.logistic,
            "multinomial": loops.softmax,
            "exponential": loops.exponential,
            "poisson": loops.poisson,
            "gamma": loops.gamma,
        }.get(self.name, loops.residual)
        w = np.empty(0) if weight is None else weight
        level = np.array([CODES.index(self.name) if self.of_residual else 0, self.level], dtype=np.float64)
        whole = self.name == "multinomial"
        f, g, h = (F, buffers.g, buffers.h) if whole else (F[0], buffers.g[0], buffers.h[0])
        ends, blocks = borders.tolist(), len(borders) - 1
        step = max(1, int(_ROWS * blocks // max(len(y), 1)))  # blocks of one task

        def work(first: int) -> list[tuple[float, float, float]]:
            return [loop(y, f, w, level, ends[i], ends[i + 1], g, h) for i in range(first, min(first + step, blocks))]

        parts = [part for task in spread(work, range(0, blocks, step)) for part in task]
        if not parts:
            return np.empty(0), 0.0, 0.0
        losses, top_g, top_h = zip(*parts)
        return np.array(losses), max(top_g), max(top_h)

    def buffers(self, n: int, weighted: bool, dtype: Any = np.float32) -> Slopes:
        constant = self.of_residual and not weighted
        h = np.ones((1, 1), dtype=dtype) if constant else np.empty((self.n_outputs, n), dtype=dtype)
        return Slopes(np.empty((self.n_outputs, n), dtype=dtype), h, 0.0, 0.0, 0.0)

    def held_back(self, value: float, rate: float) -> float:
        """Return `rate` times a Newton step, but no more than what is sure to lower the loss."""
        if self.of_residual:
            return rate * value
        most = 0.5 + log1p(abs(value) / (2 if self.name == "multinomial" else 1))
        return min(max(rate * value, -most), most)

    def leaf_value(self, residuals: np.ndarray, weight: np.ndarray) -> float:
        """Return the number that, added to a leaf's scores, lowers the loss of its residuals y - F most."""
        if self.name == "huber":
            middle = weighted_quantile(residuals, weight, 0.5)
            rest = residuals - middle
            return middle + float(np.average(np.sign(rest) * np.minimum(np.abs(rest), self.level), weights=weight))
        return weighted_quantile(residuals, weight, self.level if self.name == "quantile" else 0.5)

    def numbers(self, F: np.ndarray) -> np.ndarray:
        """Return predicted numbers (rows,) from scores (rows, 1)."""
        return np.exp(F[:, 0]) if self.of_logarithm else F[:, 0].copy()

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        """Return (rows, classes) from scores (rows, outputs)."""
        if self.name == "multinomial":
            return softmax(F, axis=1)
        p = expit(2 * F[:, 0] if self.name == "exponential" else F[:, 0])
        return np.column_stack([1 - p, p])


def weighted_quantile(values: np.ndarray, weight: np.ndarray, level: float) -> float:
    """Return a minimiser of sum w |v - q| (level above, 1 - level below): the middle of all minimisers."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weight[order])
    target = level * below[-1]
    low = int(np.searchsorted(below, target * (1 - 1e-12)))
    high = int(np.searchsorted(below, target * (1 + 1e-12), side="right"))
    low, high = min(low, len(values) - 1), min(high, len(values) - 1)
    return float(values[order[low]] / 2 + values[order[high]] / 2)
