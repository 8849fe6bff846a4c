"""Passes over the rows for k-means: in memory with bounds kept from pass to pass, elsewhere by sums over blocks. The
cost of sparse rows goes with the entries that are not 0.

Starting centres: k-means++ with several candidates a step, random rows, or what the user gives.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_array

from assay.base import require_finite
from assay.data.blocks import Block
from assay.params import refuse
from assay.scan import Rows, thread_map
from assay.scan.memory import MemoryRows

LANES = 16
_POINTS = 2048  # centres that are compared with all others at a time
_MOST_CHUNKS, _LEAST_ROWS = 64, 2048  # a chunk is one task of a thread; its size depends on the data alone
_SPARSE_ROWS = 512  # rows of a chunk, at least, where they are sparse
_MOST_SEEDED = 200_000  # rows of a file or cluster that k-means++ draws its centres from


class Summary(NamedTuple):
    """What is known of the rows before the first pass: their mean, spread and size."""

    origin: np.ndarray  # mean of the rows
    scale: float  # a power of two: |x - origin| scale <= 1 in every column
    variance: float  # mean over columns
    total: float  # sum of weight |x - origin|^2
    longest: float  # largest |x - origin|


class Assigned(NamedTuple):
    """What one pass finds: sums about the origin and weights of the clusters, rows that moved, distances computed."""

    sums: np.ndarray
    counts: np.ndarray
    changed: int
    computed: int


def summary(rows: Rows, learner: Any) -> Summary:
    """Return mean, spread and size of the rows, in two passes; refuse entries that are not finite."""
    sums, low, high = zip(*rows.map(_extremes))
    origin = np.sum(sums, axis=0) / rows.n_rows
    if not np.isfinite(origin).all():
        require_finite(rows, learner)
    reach = float(np.max(np.maximum(np.max(high, axis=0) - origin, origin - np.min(low, axis=0)), initial=0.0))
    scale = 2.0 ** -np.frexp(reach)[1] if 0 < reach < np.inf else 1.0
    squares, weighted, longest = zip(*rows.map(_squares, origin))
    variance = float(np.sum(squares)) / (rows.n_rows * rows.n_features)
    return Summary(origin, float(scale), variance, float(np.sum(weighted)), float(np.sqrt(np.max(longest))))


def _extremes(block: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from assay.cluster import _kmeans_loops as loops

    total, low, high = loops.extremes_block(block.X)
    wrong = block.weight is not None and not (block.weight >= 0).all()
    return np.full_like(total, np.nan) if wrong else total, low, high


def _squares(block: Block, origin: np.ndarray) -> tuple[float, float, float]:
    from assay.cluster import _kmeans_loops as loops

    return loops.squares_block(block.X, np.empty(0) if block.weight is None else block.weight, origin)


class Layout:
    """Centres in groups of at most sixteen that lie near each other, as the compiled pass wants them."""

    def __init__(self, centers: np.ndarray):
        groups = _halved(centers, np.arange(len(centers)), -(-len(centers) // LANES))
        self.order = np.full((len(groups), LANES), -1, np.int32)
        self.group_of = np.empty(len(centers), np.int32)
        for g, members in enumerate(groups):
            self.order[g, : len(members)] = members
            self.group_of[members] = g

    def points(self, centers: np.ndarray, known: Summary) -> np.ndarray:
        """Return the scaled centres, (groups, d, 16) float32."""
        from assay.cluster._kmeans_loops import FAR

        scaled = np.append((centers - known.origin) * known.scale, np.full((1, centers.shape[1]), FAR), axis=0)
        with np.errstate(over="ignore"):  # a centre so far away is compared in double precision
            return np.ascontiguousarray(scaled.astype(np.float32)[self.order].transpose(0, 2, 1))

    def moves(self, centers: np.ndarray, before: np.ndarray | None, known: Summary) -> tuple[np.ndarray, ...]:
        """Return, in scaled units, how far centres and groups moved, at most, and half the distance from each centre to
        the nearest other one, at least."""
        k = len(centers)
        shift = np.zeros(k) if before is None else np.linalg.norm(centers - before, axis=1)
        of_groups = np.array([shift[row[row >= 0]].max(initial=0.0) for row in self.order])
        apart = np.zeros(k)  # of no use to rows that have no centre yet
        if before is not None:
            apart = _half_gaps(centers - known.origin) if k > 1 else np.full(k, np.inf)
        with np.errstate(over="ignore"):
            moved = [np.float32(1 + 2.0**-20) * (part * known.scale).astype(np.float32) for part in (shift, of_groups)]
            return (*moved, np.float32(1 - 2.0**-20) * (apart * known.scale).astype(np.float32))

    def shared(self, centers: np.ndarray, before: np.ndarray | None, known: Summary) -> tuple[Any, ...]:
        """Return what the compiled pass wants to know of the centres, which were `before` in the last pass."""
        moves, slack = self.moves(centers, before, known), self.slack(centers, known)
        return self.points(centers, known), self.order, self.group_of, centers, moves, slack

    def slack(self, centers: np.ndarray, known: Summary) -> tuple[float, float]:
        """Return how far a computed distance can be off: a factor, and an amount in scaled units."""
        farthest = float(np.max(np.linalg.norm(centers - known.origin, axis=1)))
        return (centers.shape[1] + 8) * 2.0**-24, 2.0**-23 * (known.longest + farthest) * known.scale


def _half_gaps(points: np.ndarray) -> np.ndarray:
    """Return half the distance of each point to the nearest other one, at least: by products, less what rounding can
    have added; 0 where squares overflow."""
    least = np.empty(len(points))
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.einsum("ij,ij->i", points, points)
        for start in range(0, len(points), _POINTS):
            part = slice(start, min(start + _POINTS, len(points)))
            between = length[part, None] + length - 2 * (points[part] @ points.T)
            between[np.arange(part.stop - start), np.arange(start, part.stop)] = np.inf
            least[part] = between.min(axis=1)
        least -= 1e-13 * (points.shape[1] + 8) * (length + length.max())
    return np.sqrt(np.where(np.isfinite(least), np.maximum(least, 0.0), 0.0)) / 2


def _halved(centers: np.ndarray, members: np.ndarray, groups: int) -> list[np.ndarray]:
    """Return the members in that many groups of nearly equal size, cut across the widest column each time."""
    if groups <= 1:
        return [np.sort(members)]
    widest = int(np.argmax(np.ptp(centers[members], axis=0)))
    members = members[np.argsort(centers[members, widest], kind="stable")]
    left = groups // 2
    cut = round(len(members) * left / groups)
    return _halved(centers, members[:cut], left) + _halved(centers, members[cut:], groups - left)


class MemoryPasses:
    """Passes over arrays; `bounds` keeps bounds between passes, else every pass computes every distance."""

    def __init__(self, rows: Any, known: Summary, bounds: bool):
        from assay.cluster import _kmeans_loops

        self.loops, self.rows, self.known, self.bounds = _kmeans_loops, rows, known, bounds
        self.X = rows.X
        self.weight = np.empty(0) if rows.weight is None else np.ascontiguousarray(rows.weight, np.float64)
        n, d = self.X.shape
        size = max(_LEAST_ROWS, -(-n // _MOST_CHUNKS))
        self.cuts = [slice(start, min(start + size, n)) for start in range(0, n, size)]
        self.X32 = np.empty((n, d), np.float32)
        self._each(self._narrow)

    def _each(self, work: Any) -> list[Any]:
        return thread_map(work, self.cuts, n_jobs=self.rows.n_jobs)

    def _narrow(self, cut: slice) -> Any:
        X, _ = self._part(cut)
        return self.loops.narrow_block(X, self.known.origin, self.known.scale, self.X32[cut])

    def _part(self, cut: slice) -> tuple[np.ndarray, np.ndarray]:
        return np.ascontiguousarray(self.X[cut], np.float64), self.weight[cut] if self.weight.size else self.weight

    def begin(self, centers: np.ndarray) -> None:
        """Forget what is known of another run."""
        n, k = len(self.X), len(centers)
        self.layout = Layout(centers)
        self.labels, self.upper = np.full(n, -1, np.int32), np.empty(n, np.float32)
        groups = len(self.layout.order)
        self.lower = {cut.start: np.zeros((groups, cut.stop - cut.start), np.float32) for cut in self.cuts}
        self.sums, self.counts = np.zeros((k, self.X.shape[1])), np.zeros(k)
        self.before: np.ndarray | None = None

    def assign(self, centers: np.ndarray) -> Assigned:
        """Give each row its nearest centre."""
        if not self.bounds:
            self.upper[:] = np.inf
            for bounds in self.lower.values():
                bounds[:] = 0.0
        shared = self.layout.shared(centers, self.before, self.known)
        changed = computed = 0
        for sums, counts, moved, distances in self._each(partial(self._assign, shared)):
            self.sums += sums
            self.counts += counts
            changed, computed = changed + moved, computed + distances
        self.before = centers
        return Assigned(self.sums.copy(), self.counts.copy(), changed, computed)

    def _assign(self, shared: tuple[Any, ...], cut: slice) -> tuple[np.ndarray, np.ndarray, int, int]:
        X, weight = self._part(cut)
        sums, counts = np.zeros_like(self.sums), np.zeros_like(self.counts)
        own = (self.labels[cut], self.upper[cut], self.lower[cut.start])
        known = self.known
        result = self.loops.assign_block(
            self.X32[cut], X, weight, known.origin, known.scale, *own, *shared, sums, counts
        )
        return sums, counts, *result

    def inertia(self, centers: np.ndarray) -> float:
        return sum(self._each(lambda cut: self.loops.inertia_block(*self._part(cut), self.labels[cut], centers)))

    def farthest(self, centers: np.ndarray, count: int) -> list[tuple[float, np.ndarray, float, int]]:
        """Return the rows that are farthest from their nearest centre: squared distance, row, weight, centre."""
        return _farthest_of(self.rows, centers, count)


class StreamedPasses:
    """Passes over rows that are not kept in memory: each block is assigned from scratch."""

    def __init__(self, rows: Rows, known: Summary):
        self.rows, self.known = rows, known

    def begin(self, centers: np.ndarray) -> None:
        self.layout = Layout(centers)
        self.before: np.ndarray | None = None

    def assign(self, centers: np.ndarray) -> Assigned:
        """Give each row its nearest centre; rows have moved unless the centres are the ones of the last pass."""
        result = self.rows.sum(_assigned, self.known, self.layout.shared(centers, None, self.known))
        still = self.before is not None and np.array_equal(centers, self.before)
        self.before = centers
        return Assigned(result[0], result[1], 0 if still else self.rows.n_rows, self.rows.n_rows * len(centers))

    def inertia(self, centers: np.ndarray) -> float:
        parts = self.rows.map(_labelled, self.known, self.layout.shared(centers, None, self.known), centers)
        self.labels = np.concatenate([labels for labels, _ in parts])
        return float(sum(inertia for _, inertia in parts))

    def farthest(self, centers: np.ndarray, count: int) -> list[tuple[float, np.ndarray, float, int]]:
        """Return the rows that are farthest from their nearest centre: squared distance, row, weight, centre."""
        return _farthest_of(self.rows, centers, count)


def _block_pass(block: Block, known: Summary, shared: tuple[Any, ...]) -> Any:
    """Return labels, sums and counts of one block."""
    from assay.cluster import _kmeans_loops as loops

    n, (groups, k) = len(block.X), (len(shared[1]), len(shared[3]))
    weight = np.empty(0) if block.weight is None else block.weight
    X32, labels = np.empty(block.X.shape, np.float32), np.full(n, -1, np.int32)
    loops.narrow_block(block.X, known.origin, known.scale, X32)
    sums, counts = np.zeros((k, block.X.shape[1])), np.zeros(k)
    kept = (labels, np.empty(n, np.float32), np.zeros((groups, n), np.float32))
    loops.assign_block(X32, block.X, weight, known.origin, known.scale, *kept, *shared, sums, counts)
    return labels, sums, counts


def _assigned(block: Block, known: Summary, shared: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    return _block_pass(block, known, shared)[1:]


def _labelled(block: Block, known: Summary, shared: tuple[Any, ...], centers: np.ndarray) -> tuple[np.ndarray, float]:
    from assay.cluster import _kmeans_loops as loops

    labels = _block_pass(block, known, shared)[0]
    weight = np.empty(0) if block.weight is None else block.weight
    return labels, loops.inertia_block(block.X, weight, labels, centers)


def by_blocks(rows: Rows, known: Summary, centers: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the number of each row's nearest centre and the weighted sum of squared distances."""
    passes = StreamedPasses(rows, known)
    passes.begin(centers)
    inertia = passes.inertia(centers)
    return passes.labels, inertia


def _farthest_of(rows: Rows, centers: np.ndarray, count: int) -> list[tuple[float, np.ndarray, float, int]]:
    """Return the rows that are farthest from their nearest centre: squared distance, row, weight, centre."""
    results = [item for part in rows.map(_farthest, centers, count) for item in part]
    return sorted(results, key=lambda item: -item[0])[:count]


def _farthest(block: Block, centers: np.ndarray, count: int) -> list[tuple[float, np.ndarray, float, int]]:
    square = cdist(block.X, centers, "sqeuclidean")
    label = square.argmin(axis=1)
    own = square[np.arange(len(label)), label]
    far = np.argsort(-own, kind="stable")[:count]
    weight = np.ones(len(own)) if block.weight is None else block.weight
    return [(float(own[i]), block.X[i].copy(), float(weight[i]), int(label[i])) for i in far]


def sparse_summary(rows: Any, learner: Any) -> Summary:
    """Return mean, spread and size of sparse rows; refuse entries that are not finite."""
    X, n = _csr(rows.X), rows.n_rows
    weight = np.ones(n) if rows.weight is None else np.asarray(rows.weight, dtype=np.float64)
    if not (np.isfinite(X.data).all() and (weight >= 0).all()):
        require_finite(rows, learner)
    origin = np.asarray(X.sum(axis=0), dtype=np.float64).ravel() / n
    size = float(origin @ origin)
    squares = np.maximum(_squared_lengths(X) - 2 * (X @ origin) + size, 0.0)
    longest = float(np.sqrt(squares.max(initial=0.0)))
    variance = float(squares.sum()) / (n * X.shape[1])
    return Summary(origin, 1.0, variance, float(weight @ squares), longest)


def _csr(X: Any) -> csr_array:
    X = csr_array(X)
    return X if X.dtype == np.float64 else X.astype(np.float64)


def _squared_lengths(X: csr_array) -> np.ndarray:
    return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()


class SparsePasses:
    """Passes over sparse rows: a product for each entry and centre."""

    def __init__(self, rows: Any, known: Summary):
        from assay.cluster import _kmeans_loops

        self.loops, self.rows, self.known = _kmeans_loops, rows, known
        self.X = _csr(rows.X)
        n = self.X.shape[0]
        self.weight = np.ones(n) if rows.weight is None else np.ascontiguousarray(rows.weight, np.float64)
        size = max(_SPARSE_ROWS, -(-n // _MOST_CHUNKS))
        self.cuts = [slice(start, min(start + size, n)) for start in range(0, n, size)]

    def begin(self, centers: np.ndarray) -> None:
        """Forget what is known of another run."""
        self.labels = np.full(self.X.shape[0], -1, np.int32)
        self.least = np.empty(self.X.shape[0])

    def _each(self, work: Any) -> list[Any]:
        return thread_map(work, self.cuts, n_jobs=self.rows.n_jobs)

    def _part(self, cut: slice) -> tuple[np.ndarray, ...]:
        return self.X.indptr[cut.start : cut.stop + 1], self.X.indices, self.X.data

    def label(self, centers: np.ndarray) -> None:
        """Give each row its nearest centre."""
        columns, halves = np.ascontiguousarray(centers.T), 0.5 * np.einsum("ij,ij->i", centers, centers)

        def one(cut: slice) -> None:
            part = self._part(cut)
            self.loops.nearest_block(*part, columns, halves, self.labels[cut], self.least[cut])

        self._each(one)

    def assign(self, centers: np.ndarray) -> Assigned:
        """Give each row its nearest centre, and sum up the rows of each."""
        before = self.labels.copy()
        self.label(centers)
        n, k = len(before), len(centers)
        belongs = csr_array((self.weight, (self.labels, np.arange(n))), shape=(k, n))
        counts = np.bincount(self.labels, self.weight, k)
        sums = (belongs @ self.X).toarray()
        sums -= counts[:, None] * self.known.origin
        return Assigned(sums, counts, int(np.sum(self.labels != before)), n * k)

    def _own(self, centers: np.ndarray) -> np.ndarray:
        """Return the squared distance of each row to its centre."""
        own, squares = np.empty(len(self.labels)), np.einsum("ij,ij->i", centers, centers)

        def one(cut: slice) -> None:
            self.loops.own_block(*self._part(cut), centers, squares, self.labels[cut], own[cut])

        self._each(one)
        return own

    def inertia(self, centers: np.ndarray) -> float:
        return float(self.weight @ self._own(centers))

    def farthest(self, centers: np.ndarray, count: int) -> list[tuple[float, np.ndarray, float, int]]:
        """Return the rows that are farthest from their centre: squared distance, row, weight, centre."""
        square = self._own(centers)
        far = np.argsort(-square, kind="stable")[:count]
        dense = self.X[far].toarray()
        return [
            (float(square[i]), x, float(self.weight[i]), int(self.labels[i])) for i, x in zip(far, dense, strict=True)
        ]


class SparseSeeding:
    """Squared distance of each row to the nearest centre drawn so far, and sums over it; rows are sparse."""

    def __init__(self, rows: Rows, weight: np.ndarray):
        self.X, self.weight = _csr(rows.X), weight  # type: ignore[attr-defined]
        self.squares = _squared_lengths(self.X)
        self.closest = np.full(len(weight), np.inf)

    def _distances(self, rows: np.ndarray) -> np.ndarray:
        """Return the squared distance of every row to some of the rows, (n, rows)."""
        products = self.X @ np.ascontiguousarray(self.X[rows].toarray().T)
        return np.maximum(self.squares[:, None] + self.squares[rows] - 2 * products, 0.0)

    def add(self, row: int) -> float:
        """Take a row as a centre; return the weighted sum of squared distances to the nearest centre."""
        np.minimum(self.closest, self._distances(np.array([row]))[:, 0], out=self.closest)
        self.closest[row] = 0.0
        self.running = np.cumsum(self.weight * self.closest)
        return float(self.running[-1])

    def find(self, values: np.ndarray) -> np.ndarray:
        """Return, for each value, the row at which the running sum of weighted squared distances reaches it."""
        return np.minimum(np.searchsorted(self.running, values), len(self.running) - 1)

    def potentials(self, candidates: np.ndarray) -> np.ndarray:
        """Return what the sum would be after taking each candidate."""
        return self.weight @ np.minimum(self.closest[:, None], self._distances(candidates))


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
    results: dict[int, tuple[np.ndarray, np.ndarray | None]] = {}
    rows.collect(results.__setitem__, _rows_of, chosen)
    parts = [results[start] for start in sorted(results)]
    weight = None if parts[0][1] is None else np.concatenate([part[1] for part in parts if part[1] is not None])
    return MemoryRows(np.concatenate([part[0] for part in parts]), None, weight, n_jobs=rows.n_jobs)


def _rows_of(block: Block, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the rows of a block among those of the given numbers, which ascend."""
    low, high = np.searchsorted(chosen, [block.start, block.start + len(block.X)])
    own = chosen[low:high] - block.start
    return block.X[own], None if block.weight is None else block.weight[own]


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
        results = []
        for value in values:
            c = min(int(np.searchsorted(ends, value)), len(ends) - 1)
            cut = self.passes.cuts[c]
            inside = np.cumsum(self.weight[cut] * self.closest[cut], dtype=np.float64)
            at = int(np.searchsorted(inside, value - (ends[c] - self.sums[c])))
            results.append(cut.start + min(at, len(inside) - 1))
        return np.array(results)

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
