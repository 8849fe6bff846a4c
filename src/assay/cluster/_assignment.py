"""Passes over the rows for k-means: in memory with bounds kept from pass to pass, elsewhere by sums over blocks."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from assay.base import require_finite
from assay.data.blocks import Block
from assay.scan import Rows, thread_map

LANES = 16
_POINTS = 2048  # centres that are compared with all others at a time
_MOST_CHUNKS, _LEAST_ROWS = 64, 2048  # a chunk is one task of a thread; its size depends on the data alone


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
    from assay.cluster import _assign_loop as loops

    total, low, high = loops.extremes_block(block.X)
    wrong = block.weight is not None and not (block.weight >= 0).all()
    return np.full_like(total, np.nan) if wrong else total, low, high


def _squares(block: Block, origin: np.ndarray) -> tuple[float, float, float]:
    from assay.cluster import _assign_loop as loops

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
        from assay.cluster._assign_loop import FAR

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
        from assay.cluster import _assign_loop

        self.loops, self.rows, self.known, self.bounds = _assign_loop, rows, known, bounds
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
        found = self.loops.assign_block(
            self.X32[cut], X, weight, known.origin, known.scale, *own, *shared, sums, counts
        )
        return sums, counts, *found

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
        found = self.rows.sum(_assigned, self.known, self.layout.shared(centers, None, self.known))
        still = self.before is not None and np.array_equal(centers, self.before)
        self.before = centers
        return Assigned(found[0], found[1], 0 if still else self.rows.n_rows, self.rows.n_rows * len(centers))

    def inertia(self, centers: np.ndarray) -> float:
        parts = self.rows.map(_labelled, self.known, self.layout.shared(centers, None, self.known), centers)
        self.labels = np.concatenate([labels for labels, _ in parts])
        return float(sum(inertia for _, inertia in parts))

    def farthest(self, centers: np.ndarray, count: int) -> list[tuple[float, np.ndarray, float, int]]:
        """Return the rows that are farthest from their nearest centre: squared distance, row, weight, centre."""
        return _farthest_of(self.rows, centers, count)


def _block_pass(block: Block, known: Summary, shared: tuple[Any, ...]) -> Any:
    """Return labels, sums and counts of one block."""
    from assay.cluster import _assign_loop as loops

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


def _labelled(
    block: Block, known: Summary, shared: tuple[Any, ...], centers: np.ndarray
) -> tuple[np.ndarray, float]:
    from assay.cluster import _assign_loop as loops

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
    found = [one for part in rows.map(_farthest, centers, count) for one in part]
    return sorted(found, key=lambda one: -one[0])[:count]


def _farthest(block: Block, centers: np.ndarray, count: int) -> list[tuple[float, np.ndarray, float, int]]:
    square = cdist(block.X, centers, "sqeuclidean")
    label = square.argmin(axis=1)
    own = square[np.arange(len(label)), label]
    far = np.argsort(-own, kind="stable")[:count]
    weight = np.ones(len(own)) if block.weight is None else block.weight
    return [(float(own[i]), block.X[i].copy(), float(weight[i]), int(label[i])) for i in far]
