"""Where boosting on histograms keeps its rows: bins, scores, derivatives, and which node each row is in.

A fit asks the store for sums and says what was decided: a split, the values of leaves, a tree. Sums of derivatives are
integers, sums of losses are added in the fixed tree of the blocks of rows, so that the model has the same bits whether
the rows lie in memory, in a file or on the workers of a cluster, and however they are spread there.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from assay.ensemble._losses import Loss, weighted_quantile
from assay.scan import rows_per_block, thread_map
from assay.scan.draws import Draw, draw_share
from assay.scan.source import Node as TotalNode
from assay.scan.source import Total, block_nodes
from assay.tree._nodes import Nodes
from assay.tree._predict import SumOfTrees, add_trees
from assay.tree._reading import Read
from assay.tree.growth._bins import Binned, Binner
from assay.tree.growth._hist_rows import BinnedRows, GrowingRows

TRAINING, VALIDATION = 1, 2  # kinds of rows; those of kind 0 have no weight
_ROWS = 65_536  # of one task
_BITS = 61  # of a sum of derivatives

Leaf = tuple[int, int]
"""Where the rows of a leaf begin and end in the order of the leaves."""


class Kept(NamedTuple):
    """Rows of one kind: their bins, y and weights, and how they lie in the whole."""

    binned: Binned
    y: np.ndarray
    weight: np.ndarray | None
    borders: np.ndarray  # (blocks + 1,) where the rows of each block of the data begin, and the end
    numbers: np.ndarray  # (blocks,) of the blocks
    runs: list[tuple[int, int, int]]  # start, stop, and the number of the first row among all of this kind


class Sums(NamedTuple):
    """What a round needs to know of the derivatives."""

    mean: float  # loss
    top_g: float
    top_h: float


class Part:
    """Rows of one kind on one machine: bins, scores and derivatives."""

    def __init__(self, loss: Loss, binner: Binner, kept: Kept, n_jobs: int | None):
        self.loss, self.binner, self.kept = loss, binner, kept
        self.y, self.weight, self.n_rows = kept.y, kept.weight, len(kept.y)
        self.scores = np.empty((0, 0))
        self.buffers = loss.buffers(self.n_rows, kept.weight is not None)
        self.spread = partial(thread_map, n_jobs=n_jobs)

    def start_sums(self) -> dict[TotalNode, Any]:
        """Return `Loss.start_sums` of the blocks."""
        sums = [
            self.loss.start_sums(self.y[a:b], None if self.weight is None else self.weight[a:b])
            for a, b in zip(self.kept.borders[:-1], self.kept.borders[1:])
        ]
        return block_nodes(self.kept.numbers, np.array(sums))

    def begin(self, base: np.ndarray) -> None:
        """Set the scores of all rows to `base` (outputs,)."""
        self.scores = np.repeat(base[:, None], self.n_rows, axis=1)

    def slopes(self) -> tuple[dict[TotalNode, Any], float, float]:
        """Find the derivatives at the scores; return the losses of the blocks, the largest |g| and the largest h."""
        losses, top_g, top_h = self.loss.block_slopes(
            self.y, self.scores, self.weight, self.buffers, self.kept.borders, self.spread
        )
        return block_nodes(self.kept.numbers, losses), top_g, top_h

    def add(self, tree: Nodes, k: int) -> None:
        """Add a tree to the k-th score."""
        add_trees(tree, self.binner, self.kept.binned, self.scores[k], self.spread)


class MachineRows:
    """The training and validation rows of one machine."""

    def __init__(self, loss: Loss, binner: Binner, kept: Sequence[Kept], n_jobs: int | None, *, any_side: bool = False):
        self.parts = {kind + 1: Part(loss, binner, rows, n_jobs) for kind, rows in enumerate(kept)}
        self.training = self.parts[TRAINING]
        self.rows = BinnedRows(kept[0].binned, n_jobs, any_side=any_side)
        self.drawn = np.empty(0, dtype=np.int64)
        self._chosen = np.empty(0, dtype=np.int64)

    def start_sums(self, kind: int) -> dict[TotalNode, Any]:
        return self.parts[kind].start_sums()

    def begin(self, base: np.ndarray) -> None:
        for part in self.parts.values():
            part.begin(base)

    def slopes(self, kind: int) -> tuple[dict[TotalNode, Any], float, float]:
        return self.parts[kind].slopes()

    def draw(self, draw: Draw | None) -> int:
        """Draw the rows of the next trees, all of them without a draw; return how many these are."""
        self.drawn = self._chosen[:0]
        if draw is None:
            return self.training.n_rows
        if not len(self._chosen):
            self._chosen = np.empty(self.training.n_rows + 1, dtype=np.int64)
        taken = 0
        for start, stop, first in self.training.kept.runs:
            taken = draw.places(first, start, stop, self._chosen, taken)
        self.drawn = self._chosen[:taken]
        return taken

    def pack(self, k: int, units: tuple[float, float], turn: int, draws: bool) -> None:
        """Write the quantised derivatives of the rows that were drawn to the entries of the tree."""
        from assay.tree.growth._hist_loops import pack_block

        g, h = self._derivatives(k)
        scales, none = (1 / units[0], 1 / units[1]), self._chosen[:0]

        def pack(task: tuple[int, int, int, np.ndarray]) -> None:
            start, stop, first, chosen = task
            pack_block(g, h, *scales, chosen, start, stop, turn, first, self.rows.entries)

        if not draws:
            tasks = [
                (i, min(i + _ROWS, stop), first - start, none)
                for start, stop, first in self.training.kept.runs
                for i in range(start, stop, _ROWS)
            ]
        else:
            ends = np.searchsorted(self.drawn, [stop for _, stop, _ in self.training.kept.runs]).tolist()
            tasks = [
                (i, min(i + _ROWS, end), first - start, self.drawn)
                for begin, end, (start, _, first) in zip([0, *ends], ends, self.training.kept.runs)
                for i in range(begin, end, _ROWS)
            ]
        self.training.spread(pack, tasks)

    def leaf_sums(self, k: int, leaves: list[Leaf], scales: tuple[float, float]) -> np.ndarray:
        """Return the sums of the scaled derivatives of the rows of leaves, as integers (leaves, 2)."""
        from assay.tree.growth._hist_loops import leaf_sums

        g, h = self._derivatives(k)
        sums = self.training.spread(lambda leaf: leaf_sums(self.rows.entries, *leaf, g, h, *scales), leaves)
        return np.array(sums, dtype=np.int64).reshape(len(leaves), 2)

    def add_values(self, k: int, leaves: list[Leaf], values: list[float]) -> None:
        """Add the values of leaves to the k-th score of their rows."""
        from assay.tree.growth._hist_loops import add_to_rows

        scores, entries = self.training.scores[k], self.rows.entries
        self.training.spread(lambda i: add_to_rows(entries, *leaves[i], values[i], scores), range(len(leaves)))

    def add_trees(self, kind: int, trees: list[Nodes]) -> None:
        """Add the trees of a round, one for each output, to the scores."""
        for k, tree in enumerate(trees):
            self.parts[kind].add(tree, k)

    def _derivatives(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        buffers = self.training.buffers
        return buffers.g[k], buffers.h[min(k, len(buffers.h) - 1)]


class Places(Protocol):
    """The machines that keep the rows."""

    rows: GrowingRows

    def each(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of `MachineRows` on each machine; return what each answers."""


class Here:
    """This machine alone."""

    def __init__(self, machine: MachineRows):
        self.machine = machine
        self.rows: GrowingRows = machine.rows

    def each(self, method: str, *arguments: Any) -> list[Any]:
        return [getattr(self.machine, method)(*arguments)]


class Store:
    """The rows of a fit, wherever they are kept.

    n_rows : training rows;  validates : whether some rows are kept for validation
    """

    def __init__(self, loss: Loss, places: Places, n_rows: int, validates: bool):
        self.loss, self.places, self.n_rows, self.validates = loss, places, n_rows, validates
        self._weights: dict[int, float] = {}
        self._draws = False

    @property
    def rows(self) -> GrowingRows:
        """What a tree grows on."""
        return self.places.rows

    def start_sums(self, kind: int = TRAINING) -> np.ndarray:
        """Return `Loss.start_sums` of all rows of a kind."""
        return np.asarray(_total(self.places.each("start_sums", kind)))

    def start(self) -> np.ndarray:
        """Return the F_0 of the loss."""
        return self.loss.start_from(self.start_sums())

    def begin(self, base: np.ndarray) -> None:
        """Set all scores to `base` (outputs,)."""
        self.places.each("begin", base)

    def slopes(self, kind: int = TRAINING) -> Sums:
        """Find the derivatives at the scores."""
        if kind not in self._weights:
            self._weights[kind] = float(self.start_sums(kind)[0]) or 1.0
        nodes, top_g, top_h = zip(*self.places.each("slopes", kind))
        return Sums(float(_total(list(nodes))) / self._weights[kind], max(top_g), max(top_h))

    def draw(self, seed: int, turn: int, share: float) -> int:
        """Draw the rows of the next round; return how many these are."""
        self._draws = share < 1
        return sum(self.places.each("draw", draw_share(seed, turn, share) if self._draws else None))

    def pack(self, k: int, units: tuple[float, float], turn: int) -> None:
        """Quantise the derivatives of the k-th output, in these units."""
        self.places.each("pack", k, units, turn, self._draws)

    def leaf_sums(self, k: int, leaves: list[Leaf], tops: tuple[float, float]) -> np.ndarray:
        """Return the sums of g and h of leaves (leaves, 2), as doubles; `tops`: the largest |g| and h."""
        bits = 2.0 ** (_BITS - self.n_rows.bit_length())
        scales = bits / (tops[0] or 1.0), bits / (tops[1] or 1.0)
        return sum(self.places.each("leaf_sums", k, leaves, scales)) / np.array(scales)

    def add_values(self, k: int, leaves: list[Leaf], values: list[float]) -> None:
        """Add the values of leaves to the k-th score of their rows."""
        self.places.each("add_values", k, leaves, values)

    def add_trees(self, trees: list[Nodes], kind: int) -> None:
        """Add the trees of a round to the scores of the rows of a kind."""
        self.places.each("add_trees", kind, trees)

    def set_level(self) -> None:
        """Set what the loss takes from the residuals: nothing."""

    def residual_values(self, leaves: list[Leaf]) -> list[float]:
        """Return the values of leaves that minimise the loss of their residuals."""
        raise NotImplementedError

    def end_round(self, trees: list[Nodes]) -> None:
        """The round is over: `trees`, one for each output, are in the scores of all rows."""


def _total(nodes: list[dict[TotalNode, Any]]) -> Any:
    total = Total()
    for part in nodes:
        total.merge(part)
    return total.value()


class LocalStore(Store):
    """Rows on this machine, whose scores can be looked at."""

    def __init__(self, loss: Loss, machine: MachineRows):
        self.machine, self.training, self.validation = machine, machine.training, machine.parts.get(VALIDATION)
        super().__init__(loss, Here(machine), self.training.n_rows, self.validation is not None)

    def start(self) -> np.ndarray:
        """Return the F_0 of the loss."""
        if self.loss.by_residuals:
            return self.loss.start(self.training.y, self.training.weight)
        return super().start()

    def set_level(self) -> None:
        """Set the residual up to which Huber's loss is quadratic."""
        if self.loss.name == "huber":
            y, weight = self.training.y, self.training.weight
            weight = np.ones(len(y)) if weight is None else weight
            self.loss.level = weighted_quantile(np.abs(y - self.training.scores[0]), weight, self.loss.share)

    def residual_values(self, leaves: list[Leaf]) -> list[float]:
        """Return the values of leaves that minimise the loss of their residuals."""
        part, scores = self.training, self.training.scores[0]

        def value(leaf: Leaf) -> float:
            of = self.machine.rows.entries[slice(*leaf)] >> 32
            weight = np.ones(len(of)) if part.weight is None else part.weight[of]
            return self.loss.leaf_value(part.y[of] - scores[of], weight) if weight.sum() > 0 else 0.0

        return part.spread(value, leaves)


def local_store(
    learner: Any, loss: Loss, binner: Binner, data: Read, kinds: np.ndarray | None, given: Read | None
) -> LocalStore:
    """Return a store on this machine; rows for validation are those of that kind, or the given ones."""
    kept = kept_rows(binner, data, kinds)
    if given is not None:
        kept[1:] = kept_rows(binner, given, None)
    machine = MachineRows(loss, binner, kept, learner.n_jobs)
    if learner.has_nodes:
        existing = SumOfTrees(learner.nodes_, data.rows.n_features, loss.n_outputs)
        for kind, part in machine.parts.items():
            source = given if given is not None and kind == VALIDATION else data
            scores = existing.sums(source.rows, learner.base_score_)
            part.scores = np.ascontiguousarray((scores if kinds is None else scores[kinds == kind]).T)
    return LocalStore(loss, machine)


def row_kinds(n: int, weight: np.ndarray | None, draw: Draw | None, first: int = 0) -> np.ndarray | None:
    """Return the kinds of rows first, first + 1, ...: those that are drawn validate, those of no weight are left out;
    None if all are for training."""
    if draw is None and (weight is None or weight.all()):
        return None
    kinds = np.full(n, TRAINING, dtype=np.uint8)
    if draw is not None:
        draw.mark(first, VALIDATION, kinds)
    if weight is not None:
        kinds[weight == 0] = 0
    return kinds


def kept_rows(binner: Binner, data: Read, kinds: np.ndarray | None) -> list[Kept]:
    """Return the rows of each kind, training rows column by column too."""
    n, step = data.rows.n_rows, rows_per_block(data.rows.n_features)
    starts = np.arange(0, n, step)
    if kinds is None:
        binned = binner.transform_kinds(data.rows, None, (True,))[0]
        return [Kept(binned, data.y, data.weight, np.append(starts, n), np.arange(len(starts)), [(0, n, 0)])]
    by_column = (True, False)[: int(kinds.max(initial=TRAINING))]
    kept = []
    for kind, binned in enumerate(binner.transform_kinds(data.rows, kinds, by_column), TRAINING):
        own = kinds == kind
        borders = np.append(0, np.cumsum(np.add.reduceat(own, starts, dtype=np.int64)))
        weight = None if data.weight is None else data.weight[own]
        kept.append(Kept(binned, data.y[own], weight, borders, np.arange(len(starts)), [(0, int(borders[-1]), 0)]))
    return kept
