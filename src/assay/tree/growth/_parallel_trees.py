"""Trees of a forest on threads; an interrupt keeps those that are grown."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from assay.scan import thread_map


def tree_seed(seed: int) -> np.uint64:
    """Return the state from which a tree with `random_state=seed` draws, so that a member of a forest is that tree."""
    return np.uint64(np.random.RandomState(seed).randint(2**31 - 1))


def grown_trees(tree: Callable[[int], Any], seeds: Sequence[int], n_jobs: int | None) -> list[Any]:
    """Return a tree for each seed; after an interrupt the first of them, without a gap, if there is one."""
    made: list[Any] = [None] * len(seeds)

    def work(t: int) -> None:
        made[t] = tree(seeds[t])

    try:
        thread_map(work, range(len(seeds)), n_jobs=n_jobs)
    except KeyboardInterrupt:
        done = next(t for t, one in enumerate([*made, None]) if one is None)
        if not done:
            raise
        return made[:done]
    return made
