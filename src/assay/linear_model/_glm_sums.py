"""Links and sums over rows of generalised linear models: deviance, gradient, curvature, residuals."""

import numpy as np
from scipy.special import expit, ndtr, ndtri, xlogy

from assay.linear_model._formulas import logit, sigmoid
from assay.scan.blocks import Block

FAMILIES = ("gaussian", "poisson", "gamma", "binomial")
LINKS = ("identity", "log", "logit", "probit", "inverse")
"""Compiled loops know a family and a link by their places in these lists."""


def inverse_link(link: str, f: np.ndarray) -> np.ndarray:
    """Return g^-1(f): the mean of rows with that score.

    >>> inverse_link("log", np.array([0.0])).tolist()
    [1.0]
    """
    return {
        "identity": lambda f: f,
        "log": np.exp,
        "logit": sigmoid,
        "probit": ndtr,
        "inverse": lambda f: 1.0 / f,
    }[link](f)


def link_function(link: str, mean: np.ndarray) -> np.ndarray:
    """Return g(mean); for "logit" the logarithm of the odds mean / (1 - mean).

    >>> link_function("logit", np.array([0.5])).tolist()
    [0.0]
    """
    table = {
        "identity": lambda m: m,
        "log": np.log,
        "logit": logit,
        "probit": ndtri,
        "inverse": lambda m: 1.0 / m,
    }
    return table[link](mean)


def _target(block: Block, distribution: str) -> np.ndarray:
    y = np.ascontiguousarray(block.y.reshape(len(block.X)), dtype=np.float64)
    return np.log(y) if distribution == "lognormal" else y


def _weights(block: Block) -> np.ndarray:
    return np.empty(0) if block.weight is None else block.weight


def least(block: Block) -> float:
    return float(np.min(block.y))


def most(block: Block) -> float:
    return float(np.max(block.y))


def totals(block: Block) -> tuple[float, float]:
    """Return the sum of weights, and of weighted targets."""
    y = block.y.reshape(len(block.X))
    return (
        (float(len(y)), float(y.sum()))
        if block.weight is None
        else (float(block.weight.sum()), float(block.weight @ y))
    )


def loss(
    block: Block, w: np.ndarray, b: float, distribution: str, family: int, link: int
) -> tuple[float, np.ndarray, float]:
    from assay.loops.glm import loss_block

    return loss_block(block.X, _target(block, distribution), _weights(block), family, link, w, b)


def curvature(
    block: Block, w: np.ndarray, b: float, distribution: str, family: int, link: int, observed: bool
) -> np.ndarray:
    """Return sum h_i (x, 1)(x, 1)^T, h the expected or the observed second derivative of each loss."""
    from assay.loops.glm import curvatures
    from assay.loops.moments import moments

    y = _target(block, distribution)
    if observed:
        f = block.X @ w + b
        h = second_derivative(distribution, LINKS[link], y, f) * (1.0 if block.weight is None else block.weight)
    else:
        h = curvatures(block.X, y, _weights(block), family, link, w, b)
    return moments(block.X, np.empty((len(y), 0)), h, np.zeros(block.X.shape[1]))


def second_derivative(distribution: str, link: str, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Return the second derivative of each loss by its score, for the convex pairs."""
    if distribution in ("gaussian", "lognormal"):
        return np.ones_like(f)
    if distribution == "poisson":
        return np.exp(f) if link == "log" else y / f**2
    if distribution == "gamma":
        return y * np.exp(-f) if link == "log" else 1.0 / f**2
    if link == "logit":
        return expit(f) * expit(-f)
    if link == "probit":
        up, down = _mills(f), _mills(-f)
        return y * up * (f + up) + (1 - y) * down * (down - f)
    if link == "log":
        return (1 - y) * np.exp(f) / np.expm1(f) ** 2
    return y / f**2 + (1 - y) / (1 - f) ** 2


def _mills(f: np.ndarray) -> np.ndarray:
    """Return phi(f) / Phi(f)."""
    from scipy.special import log_ndtr

    return np.exp(-0.5 * f * f - 0.5 * np.log(2 * np.pi) - log_ndtr(f))


def pull_size(block: Block, w: np.ndarray, b: float, distribution: str, link: str) -> float:
    """Return a bound of the sum of s |d loss / d f|, up to a small factor."""
    from assay.loops.glm import pull_size_block

    y, f = _target(block, distribution), block.X @ w + b
    family, code = (0, 0) if distribution == "lognormal" else (FAMILIES.index(distribution), LINKS.index(link))
    return float(pull_size_block(y, f, _weights(block), family, code))


def deviance(block: Block, w: np.ndarray, b: float, distribution: str, link: str) -> float:
    y, f = _target(block, distribution), block.X @ w + b
    if distribution in ("gaussian", "lognormal"):
        unit = (y - (f if distribution == "lognormal" else inverse_link(link, f))) ** 2
    else:
        mu = inverse_link(link, f)
        if distribution == "poisson":
            unit = 2 * (xlogy(y, y / mu) - y + mu)
        elif distribution == "gamma":
            unit = 2 * (y / mu - 1 - np.log(y / mu))
        else:
            unit = 2 * (xlogy(y, y / mu) + xlogy(1 - y, (1 - y) / (1 - mu)))
    return float(unit.sum() if block.weight is None else block.weight @ unit)


def _means(block: Block, w: np.ndarray, b: float, link: str, rounding: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the residuals y - mean, and how far rounding can move them."""
    f = block.X @ w + b
    with np.errstate(over="ignore", divide="ignore"):
        mean = inverse_link(link, f)
        ends = [inverse_link(link, f + side * rounding) for side in (1, -1)]
    slack = 2 * np.maximum(np.abs(ends[0] - mean), np.abs(ends[1] - mean)).max() + 4e-13 * np.abs(mean).max()
    return block.y.reshape(len(f)) - mean, slack


def squares(block: Block, w: np.ndarray, b: float, link: str, rounding: float) -> tuple[float, float]:
    residual, slack = _means(block, w, b, link, rounding)
    return float(residual @ residual), float(((2 * np.abs(residual) + slack) * slack).sum())


def clipped_residuals(block: Block, w: np.ndarray, b: float, link: str, rounding: float, clip: float) -> np.ndarray:
    residual, slack = _means(block, w, b, link, rounding)
    return np.minimum(np.abs(residual) + slack, clip)
