"""Votes of the hypotheses of a voted perceptron, and which of them rounding leaves open."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from assay.data.blocks import Block
from assay.guarantees.compression import outside
from assay.guarantees.evidence import NOBODY, OPEN

_UNIT = 2.0**-53
_LEAST = 1e-290  # what underflow can hide
_ENTRIES = 2**20  # numbers of hyperplanes, and of scores, that are held at once


class PerceptronVotes(NamedTuple):
    """Updates w_gained += (vector, constant), w_lost -= the same, from zero, and the votes of what is between them."""

    vectors: np.ndarray
    gained: np.ndarray
    lost: np.ndarray
    votes: np.ndarray
    constant: float
    classes: int

    def hypotheses(self, rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield hyperplanes (members, 1 or K, d + 1) that have a vote, and their votes, so many as fit into memory with
        their scores on that many rows. The first hypothesis, zero, votes for nobody and is left out."""
        outputs, (updates, d) = 1 if self.classes == 2 else self.classes, self.vectors.shape
        size = max(1, _ENTRIES // (outputs * max(d + 1, rows)))
        W = np.zeros((outputs, d + 1))
        for first in range(0, updates, size):
            steps = self._steps(slice(first, first + size), outputs)
            steps[0] += W
            members = np.add.accumulate(steps, axis=0)
            W, votes = members[-1], self.votes[first + 1 : first + 1 + size]
            if votes.any():
                yield members[votes > 0], votes[votes > 0].astype(np.float64)

    def _steps(self, some: slice, outputs: int) -> np.ndarray:
        rows = np.column_stack([self.vectors[some], np.full(len(self.vectors[some]), self.constant)])
        if outputs == 1:
            return np.where(self.gained[some] == 1, 1.0, -1.0)[:, None, None] * rows[:, None, :]
        steps, at = np.zeros((len(rows), outputs, rows.shape[1])), np.arange(len(rows))
        steps[at, self.gained[some]] = rows
        steps[at, self.lost[some]] = -rows
        return steps


def tally(block: Block, voters: PerceptronVotes, rounded: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the votes (rows, K) for each class, and for each row the votes that rounding leaves open; these are not
    looked for unless `rounded`."""
    X = np.column_stack([block.X, np.full(len(block.X), voters.constant)])
    votes, unsure = np.zeros((len(X), voters.classes)), np.zeros(len(X))
    size = np.abs(X) if rounded else None
    for W, weight in voters.hypotheses(len(X)):
        outputs = W.shape[1]
        scores = (X @ W.reshape(-1, X.shape[1]).T).reshape(len(X), -1, outputs)
        slack = 0.0
        if size is not None:
            magnitude = (size @ np.abs(W).reshape(-1, X.shape[1]).T).reshape(scores.shape).max(axis=2)
            slack = 8 * (X.shape[1] + 4) * _UNIT * magnitude + np.where(magnitude > 0, _LEAST, 0.0)
        if outputs == 1:
            score = scores[:, :, 0]
            sides = [score < -slack, score > slack]
        else:
            best = np.partition(scores, outputs - 2, axis=2)[:, :, -2:]
            sure, winner = best[:, :, 1] - best[:, :, 0] > 2 * slack, scores.argmax(axis=2)
            sides = [sure & (winner == k) for k in range(outputs)]
        for k, side in enumerate(sides):
            votes[:, k] += side @ weight
        if size is not None:
            unsure += ((slack > 0) & ~np.logical_or.reduce(sides)) @ weight
    return votes, unsure


def _margins(block: Block, voters: PerceptronVotes) -> tuple[np.ndarray, np.ndarray]:
    """Return by how many votes the class of each row leads, and the votes that rounding leaves open."""
    votes, unsure = tally(block, voters, True)
    at = np.arange(len(votes))
    own = votes[at, block.y].copy()
    votes[at, block.y] = -1.0
    return own - votes.max(axis=1), unsure


def lost_rows(block: Block, voters: PerceptronVotes, kept: np.ndarray) -> int:
    """Return how many rows outside the sorted row numbers `kept` are not certainly right."""
    margin, unsure = _margins(block, voters)
    return outside(block, margin - unsure <= 0, kept)


def sure_positions(block: Block, voters: PerceptronVotes) -> np.ndarray:
    """Return the class with most votes; NOBODY for a tie, OPEN where rounding leaves it so."""
    votes, unsure = tally(block, voters, True)
    best = np.sort(votes, axis=1)[:, -2:]
    lead = best[:, 1] - best[:, 0]
    return np.where(lead > unsure, votes.argmax(axis=1), np.where((lead == 0) & (unsure == 0), NOBODY, OPEN))
