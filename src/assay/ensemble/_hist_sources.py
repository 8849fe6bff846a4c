"""Where the rows of a fit of boosting on histograms come from: this machine, or the workers of a cluster."""

from typing import Any, Protocol

import numpy as np

from assay.ensemble._hist_store import TRAINING, VALIDATION, Store, local_store, row_kinds
from assay.ensemble._losses import Loss
from assay.scan import Rows
from assay.scan.draws import Draw
from assay.tree._reading import Read
from assay.tree.growth._bins import Binner

_SAMPLE = 100_000  # rows whose quantiles are the edges of the bins


class Source(Protocol):
    """Rows with y and weights, from which a fit makes its store."""

    n_rows: int
    has_validation: bool  # rows for validation were given

    def draw(self, draw: Draw | None) -> None:
        """Keep the rows that are drawn for validation."""

    def sample(self, seed: int) -> np.ndarray:
        """Return training rows whose quantiles are the edges of the bins; which ones depends on the numbers of the rows
        alone."""

    def store(self, learner: Any, loss: Loss, binner: Binner) -> Store:
        """Return the store of the rows in bins."""

    def shown(self, learner: Any) -> tuple[Any, Any]:
        """Return what callbacks are shown of X and y."""


class LocalSource:
    """Rows in memory, or streamed from files into a store on this machine."""

    def __init__(self, data: Read, given: Read | None):
        self.data, self.given, self.has_validation, self.n_rows = data, given, given is not None, data.rows.n_rows
        self.kinds: np.ndarray | None = None

    def draw(self, draw: Draw | None) -> None:
        self.kinds = row_kinds(self.n_rows, self.data.weight, draw)

    def sample(self, seed: int) -> np.ndarray:
        numbers = sampled_rows(self.n_rows, seed)
        return self.data.rows.take(numbers if self.kinds is None else numbers[self.kinds[numbers] == TRAINING])

    def store(self, learner: Any, loss: Loss, binner: Binner) -> Store:
        return local_store(learner, loss, binner, self.data, self.kinds, self.given)

    def shown(self, learner: Any) -> tuple[Any, Any]:
        return learner._shown(self.data)

    def rows_of(self, kind: int) -> tuple[Read, np.ndarray]:
        """Return the data that have the rows of a kind, and their numbers."""
        if kind == VALIDATION and self.given is not None:
            return self.given, np.arange(self.given.rows.n_rows)
        kinds = self.kinds
        return self.data, np.arange(self.n_rows) if kinds is None else np.flatnonzero(kinds == kind)


class WorkerSource:
    """Rows that stay on the workers of a cluster; y become of type `kind` there."""

    has_validation = False

    def __init__(self, rows: Rows, kind: Any):
        self.rows, self.kind, self.n_rows = rows, kind, rows.n_rows
        self.held: Draw | None = None

    def draw(self, draw: Draw | None) -> None:
        self.held = draw

    def sample(self, seed: int) -> np.ndarray:
        from assay.ensemble._hist_workers import sampled_on_workers

        return sampled_on_workers(self.rows, sampled_rows(self.n_rows, seed), self.held)

    def store(self, learner: Any, loss: Loss, binner: Binner) -> Store:
        from assay.ensemble._hist_workers import worker_store

        return worker_store(learner, loss, binner, self.rows, self.held, self.kind)

    def shown(self, learner: Any) -> tuple[Any, Any]:
        return None, None


def sampled_rows(n: int, seed: int) -> np.ndarray:
    """Return the numbers of at most 100,000 of n rows, ascending."""
    if n <= _SAMPLE:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, _SAMPLE, replace=False, shuffle=False))
