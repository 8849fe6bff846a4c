"""Starting centres: k-means++ with several candidates a step, random rows, or what the user gives."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_array

from assay.cluster._assignment import LANES, MemoryPasses, Summary
from assay.cluster._sparse import SparseSeeding
from assay.params import refuse
from assay.scan import Rows
from assay.scan.memory import MemoryRows

_MOST_SEEDED = 200_000  # rows of a file or cluster that k-means++ draws its centres from


def starting_centers(learner: Any, rows: Rows, k: int, random_state: np.random.RandomState) -> np.ndarray:
    """Return (k, d) centres as `init` says."""
    init = learner.init
    if isinstance(init, str):
        table = rows if isinstance(rows, MemoryRows) else drawn(rows, random_state)
        weight = np.ones(table.n_rows) if table.weight is None else np.asarray(table.weight, dtype=np.float64)
        if init == "random":
            chosen = random_state.choice(table.n_rows, size=k, replace=False, p=weight / weight.sum())
            return _dense(table.X[chosen])
        return plus_plus(table, weight, k, random_state)
    if callable(init):
        if not isinstance(rows, MemoryRows):
            raise refuse(learner, "a function as init needs the rows in memory; pass an array of centres.")
        init = init(rows.X, k, random_state=random_state)
    centers = check_array(init, dtype=np.float64, order="C", copy=True, input_name="init")
    if centers.shape != (k, rows.n_features):
        wrong = "clusters" if len(centers) != k else "features of the data"
        raise refuse(
            learner,
            f"init: The shape of the initial centers {centers.shape} does not match the number of {wrong}; "
            f"{(k, rows.n_features)} is needed.",
        )
    return centers


def drawn(rows: Rows, random_state: np.random.RandomState) -> MemoryRows:
    """Return at most 200,000 of the rows, drawn without replacement in one pass, in memory."""
    n = rows.n_rows
    chosen = np.arange(n) if n <= _MOST_SEEDED else np.sort(random_state.choice(n, _MOST_SEEDED, replace=False))
    X, weight = [], []
    for block in rows.blocks():
        low, high = np.searchsorted(chosen, [block.start, block.start + len(block.X)])
        X.append(block.X[chosen[low:high] - block.start])
        weight.append(None if block.weight is None else block.weight[chosen[low:high] - block.start])
    whole = None if weight[0] is None else np.concatenate([part for part in weight if part is not None])
    return MemoryRows(np.concatenate(X), None, whole, n_jobs=rows.n_jobs)


def plus_plus(rows: MemoryRows, weight: np.ndarray, k: int, random_state: np.random.RandomState) -> np.ndarray:
    """Return k rows drawn one after another with probability proportional to weight times the squared distance to the
    nearest row drawn so far; of 2 + ln k candidates a step the one that lowers the sum of these most (Arthur &
    Vassilvitskii 2007). Random numbers are drawn as scikit-learn draws them."""
    trials = min(2 + int(np.log(k)), LANES)
    seeding = SparseSeeding(rows, weight) if issparse(rows.X) else _Seeding(_unbounded(rows), weight)
    chosen = [int(random_state.choice(rows.n_rows, p=weight / weight.sum()))]
    total = seeding.add(chosen[0])
    for _ in range(1, k):
        candidates = seeding.find(random_state.uniform(size=trials) * total)
        chosen.append(int(candidates[np.argmin(seeding.potentials(candidates))]))
        total = seeding.add(chosen[-1])
    return _dense(rows.X[chosen])


def _dense(rows: Any) -> np.ndarray:
    return np.array(rows.toarray() if issparse(rows) else rows, dtype=np.float64)


def _unbounded(rows: MemoryRows) -> MemoryPasses:
    """Return passes over dense rows that keep nothing in mind."""
    origin = np.asarray(rows.X).mean(axis=0, dtype=np.float64)
    reach = float(np.abs(rows.X - origin).max(initial=0.0)) if rows.n_rows < 1_000 else _reach(rows, origin)
    scale = 2.0 ** -np.frexp(reach)[1] if 0 < reach < np.inf else 1.0
    return MemoryPasses(rows, Summary(origin, float(scale), 0.0, 0.0, 0.0), bounds=False)


def _reach(rows: MemoryRows, origin: np.ndarray) -> float:
    return float(np.max(rows.map(lambda block: np.abs(block.X - origin).max())))


class _Seeding:
    """Squared distance of each row to the nearest centre drawn so far, and sums over it."""

    def __init__(self, passes: MemoryPasses, weight: np.ndarray):
        self.passes, self.weight = passes, weight
        self.closest = np.full(len(weight), np.inf, np.float32)
        self.numbers = np.arange(max(cut.stop - cut.start for cut in passes.cuts) + 4, dtype=np.int32)

    def add(self, row: int) -> float:
        """Take a row as a centre; return the weighted sum of squared distances to the nearest centre."""
        passes, point = self.passes, self.passes.X32[row].copy()

        def lower(cut: slice) -> float:
            return passes.loops.closest_block(passes.X32[cut], self.weight[cut], self.closest[cut], point)

        self.sums = np.array(passes._each(lower))
        return float(self.sums.sum())

    def find(self, values: np.ndarray) -> np.ndarray:
        """Return, for each value, the row at which the running sum of weighted squared distances reaches it."""
        ends = np.cumsum(self.sums)
        found = []
        for value in values:
            c = min(int(np.searchsorted(ends, value)), len(ends) - 1)
            cut = self.passes.cuts[c]
            inside = np.cumsum(self.weight[cut] * self.closest[cut], dtype=np.float64)
            at = int(np.searchsorted(inside, value - (ends[c] - self.sums[c])))
            found.append(cut.start + min(at, len(inside) - 1))
        return np.array(found)

    def potentials(self, candidates: np.ndarray) -> np.ndarray:
        """Return what the sum would be after taking each candidate."""
        passes = self.passes
        points = np.zeros((1, passes.X32.shape[1], LANES), np.float32)
        points[0, :, : len(candidates)] = passes.X32[candidates].T

        def tried(cut: slice) -> np.ndarray:
            totals, n = np.zeros(len(candidates)), cut.stop - cut.start
            rows = np.minimum(self.numbers[: n + 4], n - 1)
            passes.loops.candidates_block(
                passes.X32[cut], self.weight[cut], self.closest[cut], points, len(candidates), rows, totals
            )
            return totals

        return np.sum(passes._each(tried), axis=0)
