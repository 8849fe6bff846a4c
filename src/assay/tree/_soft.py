"""Soft trees: at each node a row goes both ways with probabilities, and everything is trained by gradient.

    p_i(x)       = 1 / (1 + exp(-(<w_i, x> - t_i)))     share that goes to the second child of node i
    r_leaf(x)    = product of the shares along the way; the r of all leaves sum to 1
    P(k | x)     = sum over leaves of r_leaf(x) softmax(v_leaf)_k
    minimised    - mean_i weight_i log P(y_i | x_i)  over all w, t and v   (L-BFGS)

With w and t multiplied by a number that grows, the shares become 0 or 1 and the tree becomes the hard one.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax


class SoftTree(NamedTuple):
    """W (nodes, d), t (nodes,), first child or -1 (nodes,), leaf scores before the softmax (nodes, classes)."""

    W: np.ndarray
    t: np.ndarray
    child: np.ndarray
    scores: np.ndarray


def routes(W: np.ndarray, t: np.ndarray, child: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return the share of each row that reaches each node, (rows, nodes); a node stands after its parent."""
    shares = np.zeros((len(X), len(child)))
    shares[:, 0] = 1.0
    for i in np.flatnonzero(child >= 0):
        p = expit(X @ W[i] - t[i])
        first = child[i]
        shares[:, first] = shares[:, i] * (1 - p)
        shares[:, first + 1] = shares[:, i] * p
    return shares


def loss_and_gradient(tree: SoftTree, X: np.ndarray, y: np.ndarray, w: np.ndarray) -> tuple[float, SoftTree]:
    """Return the weighted mean log-loss and its derivative by W, t and scores (zero where they have no effect)."""
    leaf, inner = np.flatnonzero(tree.child < 0), np.flatnonzero(tree.child >= 0)
    shares, values = routes(*tree[:3], X), softmax(tree.scores, axis=1)
    said = values[:, y].T  # (rows, nodes) probability that each node gives to the class of the row
    P = np.maximum((shares[:, leaf] * said[:, leaf]).sum(axis=1), 1e-300)
    gradient = -w / w.sum() / P
    below = np.zeros_like(shares)  # derivative of the loss by the share of a node
    below[:, leaf] = gradient[:, None] * said[:, leaf]
    W, t, scores = np.zeros_like(tree.W), np.zeros_like(tree.t), np.zeros_like(tree.scores)
    for i in inner[::-1]:
        p, first = expit(X @ tree.W[i] - tree.t[i]), tree.child[i]
        below[:, i] = (1 - p) * below[:, first] + p * below[:, first + 1]
        slope = shares[:, i] * (below[:, first + 1] - below[:, first]) * p * (1 - p)
        W[i], t[i] = slope @ X, -slope.sum()
    for i in leaf:
        part = gradient * shares[:, i] * said[:, i]
        scores[i] = np.bincount(y, part, values.shape[1]) - part.sum() * values[i]
    return float(-(w * np.log(P)).sum() / w.sum()), SoftTree(W, t, tree.child, scores)


def trained(tree: SoftTree, X: np.ndarray, y: np.ndarray, w: np.ndarray, max_iter: int) -> SoftTree:
    """Return the tree after at most `max_iter` steps of L-BFGS from the given one."""
    shapes = [tree.W.shape, tree.t.shape, tree.scores.shape]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])

    def unpacked(z: np.ndarray) -> SoftTree:
        W, t, scores = (part.reshape(shape) for part, shape in zip(np.split(z, ends[:-1]), shapes))
        return SoftTree(W, t, tree.child, scores)

    def packed(one: SoftTree) -> np.ndarray:
        return np.concatenate([one.W.ravel(), one.t, one.scores.ravel()])

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        loss, gradient = loss_and_gradient(unpacked(z), X, y, w)
        return loss, packed(gradient)

    if max_iter == 0:
        return tree
    found = minimize(objective, packed(tree), jac=True, method="L-BFGS-B", options={"maxiter": max_iter})
    return unpacked(found.x)
