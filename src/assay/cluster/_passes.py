"""The passes over the rows that suit where they are: dense in memory, sparse in memory, or read block by block."""

from typing import Any

import numpy as np
from scipy.sparse import issparse

from assay.cluster._assignment import MemoryPasses, StreamedPasses, by_blocks, summary
from assay.cluster._sparse import SparsePasses, sparse_summary
from assay.scan import Rows
from assay.scan.memory import MemoryRows

Passes = MemoryPasses | SparsePasses | StreamedPasses


def passes_of(rows: Rows, learner: Any, *, bounds: bool) -> Passes:
    """Return passes over the rows, and with them what is known of the rows; refuse entries that are not finite."""
    if isinstance(rows, MemoryRows):
        if issparse(rows.X):
            return SparsePasses(rows, sparse_summary(rows, learner))
        if isinstance(rows.X, np.ndarray):
            return MemoryPasses(rows, summary(rows, learner), bounds)
    return StreamedPasses(rows, summary(rows, learner))


def nearest(rows: Rows, learner: Any, centers: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the number of each row's nearest centre and the weighted sum of squared distances, in one pass."""
    if not (isinstance(rows, MemoryRows) and issparse(rows.X)):
        return by_blocks(rows, summary(rows, learner), centers)
    passes = SparsePasses(rows, sparse_summary(rows, learner))
    passes.begin(centers)
    passes.label(centers)
    return passes.labels, passes.inertia(centers)
