"""What ensembles of trees share: what each member says, how far votes can be trusted to rounding, strength."""

from typing import NamedTuple

import numpy as np

from assay.data.blocks import Block
from assay.tree._nodes import Nodes
from assay.tree._predict import (
    goes_one_way,
    leaves,
    mean_values,
    mixed_leaves,
    weighted_values,
)


class Strength(NamedTuple):
    """The two factors of a forest's error: strength s, mean correlation of the trees, bound correlation (1 -
    s^2) / s^2."""

    strength: float
    correlation: float
    bound: float


def member_values(nodes: Nodes, t: int, X: np.ndarray, n_jobs: int | None = 1) -> np.ndarray:
    """Return what tree t predicts for rows X, (rows, outputs)."""
    one = nodes._replace(root=nodes.root[t : t + 1])
    if not np.any(nodes.table >= 0) and not np.isnan(X).any():
        return nodes.value[leaves(one, X, n_jobs)[:, 0]]
    if goes_one_way(nodes):
        return nodes.value[mixed_leaves(one, X, n_jobs)[:, 0]]
    return weighted_values(nodes, int(nodes.root[t]), X)


def strength_of(votes: np.ndarray, codes: np.ndarray, n_classes: int, said: np.ndarray | None = None) -> Strength:
    """Return strength and correlation from the votes (rows, members) for rows of classes `codes`.

    Margin of a row: share of votes for its class minus the largest share of another class; s its mean. The raw
    margin of a member is 1 where it votes for the class, -1 where it votes for that rival, else 0; the
    correlation is var(margin) over the squared mean deviation of the raw margins (Breiman 2001, 2.2 and
    appendix II). `said` (rows, members) tells which votes count: those of members that did not see the row.
    """
    said = np.ones(votes.shape, dtype=bool) if said is None else said
    heard = said.any(axis=1)
    votes, codes, said = votes[heard], codes[heard], said[heard]
    count = said.sum(axis=1)
    shares = np.stack([((votes == k) & said).sum(axis=1) / count for k in range(n_classes)], axis=1)
    at = np.arange(len(codes))
    right = shares[at, codes]
    shares[at, codes] = -1.0
    rival = shares.argmax(axis=1)
    margin = right - shares.max(axis=1)
    raw = (votes == codes[:, None]).astype(float) - (votes == rival[:, None])
    deviation = np.array([raw[said[:, t], t].std() for t in range(votes.shape[1]) if said[:, t].any()])
    s = float(margin.mean())
    correlation = float(margin.var() / max(deviation.mean() ** 2, 1e-300))
    return Strength(s, correlation, correlation * (1 - s * s) / (s * s) if s > 0 else float("inf"))


def bounded_shares(block: Block, nodes: Nodes) -> tuple[np.ndarray, float]:
    """Return the mean shares of each row, and how far rounding can move them."""
    return mean_values(nodes, block.X, 1), 2.0**-51 * (len(nodes.root) + 2)


def bounded_means(block: Block, nodes: Nodes) -> tuple[np.ndarray, float]:
    """Return the mean of the trees' values for each row, and how far rounding can move it."""
    slack = 2.0**-49 * (len(nodes.root) + 2) * float(np.abs(nodes.value).max())
    return mean_values(nodes, block.X, 1), slack
