"""Which columns a node may be split on: interaction constraints, and a share of the columns drawn at each node."""

from math import ceil
from typing import Any

import numpy as np


class Allowed:
    """The columns of each node of the trees of one fit.

    Groups of columns may interact: on a way down, all splits are on columns of one group. Of the columns that are left
    a node draws a `share`. The draw depends on the seed, the tree and the rows of the node, so that neither threads nor
    the order in which nodes are worked on change it.
    """

    def __init__(self, n_columns: int, groups: list[set[int]] | None = None, share: float = 1.0, seed: int = 0):
        self.n_columns, self.share, self.seed = n_columns, share, seed
        self.groups = None if groups is None else [np.array(sorted(group), dtype=np.int64) for group in groups]
        self._all = np.ones(n_columns, dtype=np.uint8)

    def open_groups(self, before: Any, column: int) -> Any:
        """Return the groups that are open below a split on `column`; None stands for all of them."""
        if self.groups is None:
            return None
        asked = range(len(self.groups)) if before is None else before
        return [i for i in asked if column in self.groups[i]]

    def columns(self, groups: Any, tree: int, start: int, stop: int) -> np.ndarray:
        """Return 1 for each column that a node may be split on, else 0 (columns,)."""
        if self.groups is None and self.share == 1:
            return self._all
        result = self._all
        if self.groups is not None:
            chosen = self.groups if groups is None else [self.groups[i] for i in groups]
            result = np.zeros(self.n_columns, dtype=np.uint8)
            for group in chosen:
                result[group] = 1
        if self.share == 1:
            return result
        at = np.flatnonzero(result)
        rng = np.random.default_rng((self.seed, tree, start, stop))
        drawn = np.zeros(self.n_columns, dtype=np.uint8)
        drawn[rng.permutation(at)[: max(1, ceil(self.share * len(at)))]] = 1
        return drawn
