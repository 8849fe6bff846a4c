"""Sums over rows of generalised linear models: deviance, gradient, curvature, residuals."""

import numpy as np

from assay.data.blocks import Block
from assay.losses.deviance import FAMILIES, LINKS, inverse_link, second_derivative, unit_deviance


def _target(block: Block, distribution: str) -> np.ndarray:
    y = np.ascontiguousarray(block.y.reshape(len(block.X)), dtype=np.float64)
    return np.log(y) if distribution == "lognormal" else y


def _family(distribution: str) -> str:
    return "gaussian" if distribution == "lognormal" else distribution


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
        h = second_derivative(_family(distribution), LINKS[link], y, f)
        h = h if block.weight is None else h * block.weight
    else:
        h = curvatures(block.X, y, _weights(block), family, link, w, b)
    return moments(block.X, np.empty((len(y), 0)), h, np.zeros(block.X.shape[1]))


def slope_size(block: Block, w: np.ndarray, b: float, distribution: str, link: str) -> float:
    """Return a bound of the sum of s |d loss / d f|, up to a small factor."""
    from assay.loops.glm import slope_size_block

    y, f = _target(block, distribution), block.X @ w + b
    family, code = (0, 0) if distribution == "lognormal" else (FAMILIES.index(distribution), LINKS.index(link))
    return float(slope_size_block(y, f, _weights(block), family, code))


def deviance(block: Block, w: np.ndarray, b: float, distribution: str, link: str) -> float:
    y, f = _target(block, distribution), block.X @ w + b
    unit = unit_deviance(_family(distribution), y, f if distribution == "lognormal" else inverse_link(link, f))
    return float(unit.sum() if block.weight is None else block.weight @ unit)


def bounded_means(block: Block, w: np.ndarray, b: float, link: str, rounding: float) -> tuple[np.ndarray, float]:
    """Return the means g^-1(<w, x> + b), and how far rounding can move them, doubled."""
    f = block.X @ w + b
    with np.errstate(over="ignore", divide="ignore"):
        mean = inverse_link(link, f)
        ends = [inverse_link(link, f + side * rounding) for side in (1, -1)]
    slack = 2 * np.maximum(np.abs(ends[0] - mean), np.abs(ends[1] - mean)).max() + 4e-13 * np.abs(mean).max()
    return mean[:, None], float(slack)
