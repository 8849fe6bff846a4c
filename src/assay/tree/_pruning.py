"""Pruning: which splits of a grown tree are kept.

pre             from the root down, keep a split only if its children as leaves do strictly better on
validation rows
reduced_error   from the leaves up, replace a subtree by a leaf if validation accuracy rises (or does not
fall, on request)
pessimistic     C4.5: replace a subtree if its leaves' errors, raised to the upper confidence limit, are no
fewer than the leaf's
cost_complexity the smallest subtree that minimises  R(T) + alpha * leaves  (Breiman et al. 1984, 3.3)
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv

from assay.tree._nodes import Nodes
from assay.tree._predict import visits
from assay.tree.growth._exact import compact


class Path(NamedTuple):
    """The nested subtrees that are optimal for some alpha: alphas ascending, impurity and leaves of each."""

    ccp_alphas: np.ndarray
    impurities: np.ndarray
    n_leaves: np.ndarray


def cut(nodes: Nodes, at: np.ndarray) -> Nodes:
    """Return the tree in which the given nodes (mask or positions) are leaves."""
    child = nodes.child.copy()
    child[at] = -1
    column = np.where(child < 0, -1, nodes.column).astype(np.int32)
    n_children = np.where(child < 0, 0, nodes.n_children).astype(np.int32)
    return compact(nodes._replace(child=child, column=column, n_children=n_children))


def validation_hits(nodes: Nodes, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return, for each node, how much of the validation rows that pass through it its own majority class gets
    right."""
    passed = np.zeros((len(nodes.child), nodes.value.shape[1]))
    for at, rows, share in visits(nodes, 0, X):
        np.add.at(passed[at], y[rows], share)
    parent = nodes.parents()
    for at in range(len(parent) - 1, 0, -1):
        passed[parent[at]] += passed[at]
    return passed[np.arange(len(passed)), nodes.value.argmax(axis=1)]


def pre_pruned(nodes: Nodes, X: np.ndarray, y: np.ndarray) -> Nodes:
    """Keep a split only if its children, as leaves, get strictly more validation rows right than the node
    does."""
    hits = validation_hits(nodes, X, y)
    inner = np.flatnonzero(nodes.child >= 0)
    stop = [
        at for at in inner if hits[nodes.child[at] : nodes.child[at] + nodes.n_children[at]].sum() <= hits[at] + 1e-9
    ]
    return cut(nodes, np.array(stop, dtype=int))


def reduced_error(nodes: Nodes, X: np.ndarray, y: np.ndarray, ties: bool = False) -> Nodes:
    """Replace subtrees by leaves, from the bottom up, where validation accuracy rises (with `ties`: does not
    fall)."""
    hits = validation_hits(nodes, X, y)
    return bottom_up(nodes, -hits, -1e-9 if not ties else 1e-9)


def pessimistic(nodes: Nodes, confidence: float) -> Nodes:
    """Replace subtrees by leaves where the upper limit of the error at this confidence is no larger for the
    leaf."""
    n = nodes.weight
    errors = n * (1 - nodes.value.max(axis=1))
    return bottom_up(nodes, np.where(n > 0, n * upper_limit(errors, n, confidence), 0.0), 1e-9)


def upper_limit(errors: np.ndarray, n: np.ndarray, confidence: float) -> np.ndarray:
    """Return the error rate at which at most `errors` errors in n rows have probability `confidence`.

    >>> round(float(upper_limit(np.array(0.0), np.array(6.0), 0.25)), 3)
    0.206
    """
    errors, n = np.asarray(errors, dtype=np.float64), np.maximum(n, 1e-9)
    return np.where(errors >= n - 1e-9, 1.0, betaincinv(errors + 1, np.maximum(n - errors, 1e-9), 1 - confidence))


def bottom_up(nodes: Nodes, cost: np.ndarray, slack: float) -> Nodes:
    """Cut every node whose cost as a leaf is at most that of its (already pruned) subtree plus slack."""
    best, stop = cost.copy(), np.zeros(len(cost), dtype=bool)
    for at in np.flatnonzero(nodes.child >= 0)[::-1]:
        below = best[nodes.child[at] : nodes.child[at] + nodes.n_children[at]].sum()
        stop[at] = cost[at] <= below + slack
        best[at] = cost[at] if stop[at] else below
    return cut(nodes, stop)


def pruning_path(nodes: Nodes, risk: np.ndarray) -> tuple[Path, np.ndarray]:
    """Return the path of weakest links, and for each node the alpha at which its split is given up (inf for
    leaves).

    `risk` is R(t) of each node as a leaf.
    """
    n = len(nodes.child)
    parent = nodes.parents()
    leaf = nodes.child < 0
    subtree, count = np.where(leaf, risk, 0.0), leaf.astype(np.int64)
    for at in range(n - 1, 0, -1):
        subtree[parent[at]] += subtree[at]
        count[parent[at]] += count[at]
    links = _Links(nodes, parent, risk, subtree, count)
    alphas, impurities, sizes = [0.0], [subtree[0]], [count[0]]
    while links.alive[0]:
        at, strength = links.weakest()
        if strength > alphas[-1] + 1e-14 * max(1.0, strength):  # a smaller difference is rounding
            alphas.append(strength)
            impurities.append(0.0)
            sizes.append(0)
        links.give_up(at, alphas[-1])
        impurities[-1], sizes[-1] = subtree[0], count[0]
    return Path(np.array(alphas), np.array(impurities), np.array(sizes)), links.given_up


class _Links:
    """The splits that are still there, the weakest first: each gives (R(t) - R(subtree)) / (leaves - 1) per leaf."""

    def __init__(self, nodes: Nodes, parent: np.ndarray, risk: np.ndarray, subtree: np.ndarray, count: np.ndarray):
        self.nodes, self.parent, self.risk, self.subtree, self.count = nodes, parent, risk, subtree, count
        self.alive = nodes.child >= 0
        self.given_up = np.full(len(parent), np.inf)
        inner = np.flatnonzero(self.alive)
        self.strength = np.full(len(parent), np.inf)
        self.strength[inner] = (risk[inner] - subtree[inner]) / (count[inner] - 1)
        self.heap = list(zip(self.strength[inner].tolist(), inner.tolist()))
        heapify(self.heap)

    def weakest(self) -> tuple[int, float]:
        """Take the weakest split off; entries of a node whose strength has changed since are passed over."""
        while True:
            strength, at = heappop(self.heap)
            if self.alive[at] and strength == self.strength[at]:
                return at, strength

    def give_up(self, at: int, alpha: float) -> None:
        """Make a node a leaf: its splits are given up at alpha, and the subtrees above it change."""
        stack = [at]
        while stack:
            t = stack.pop()
            if self.alive[t]:
                self.alive[t], self.given_up[t] = False, alpha
                first = int(self.nodes.child[t])
                stack += range(first, first + int(self.nodes.n_children[t]))
        change, fewer = self.risk[at] - self.subtree[at], self.count[at] - 1
        self.subtree[at], self.count[at] = self.risk[at], 1
        t = int(self.parent[at])
        while t >= 0:
            self.subtree[t] += change
            self.count[t] -= fewer
            self.strength[t] = (self.risk[t] - self.subtree[t]) / (self.count[t] - 1)
            heappush(self.heap, (float(self.strength[t]), t))
            t = int(self.parent[t])


def cost_complexity(nodes: Nodes, risk: np.ndarray, alpha: float) -> Nodes:
    """Return the smallest subtree that minimises R(T) + alpha * leaves."""
    _, given_up = pruning_path(nodes, risk)
    return cut(nodes, (nodes.child >= 0) & (given_up <= alpha))


def path_losses(
    nodes: Nodes,
    risk: np.ndarray,
    alphas: np.ndarray,
    X: np.ndarray,
    losses: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> np.ndarray:
    """Return the loss on rows X of the subtree for each alpha (ascending); losses(value, rows) are those of some rows
    when a node of this value predicts them.

    A row is predicted by the first node on its way whose split is given up at alpha; one walk serves all
    alphas.
    """
    given_up, parent = pruning_path(nodes, risk)[1], nodes.parents()
    given_up[nodes.child < 0] = -np.inf
    change = np.zeros(len(alphas) + 1)
    for leaf, rows, share in visits(nodes, 0, X):
        way = [leaf]
        while parent[way[-1]] >= 0:
            way.append(int(parent[way[-1]]))
        upper = len(alphas)
        for at in reversed(way):  # this node predicts for alphas from given_up[at] up to those of its ancestors
            lower = min(int(np.searchsorted(alphas, given_up[at])), upper)
            loss = float((losses(nodes.value[at], rows) * share).sum())
            change[lower] += loss
            change[upper] -= loss
            upper = lower
    return np.cumsum(change)[:-1]
