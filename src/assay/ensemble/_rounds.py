"""The rounds of boosting on histograms: derivatives, one tree for each output, new scores, the curve on validation
rows."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from assay.ensemble._losses import Loss, Slopes, weighted_quantile
from assay.ensemble._stopping import Watch
from assay.fitlog import FitLog
from assay.scan import thread_map
from assay.tree._nodes import Nodes, joined, stored_arrays
from assay.tree._predict import SumOfTrees, add_trees
from assay.tree._reading import Read
from assay.tree.growth._allowed import Allowed
from assay.tree.growth._bins import Binned, Binner
from assay.tree.growth._hist_grower import Grower, Node, Rule, grown_nodes

_ROWS = 65_536


class Part:
    """Rows of the fit or of validation: bins, scores and derivatives."""

    def __init__(self, learner: Any, loss: Loss, binner: Binner, data: Read, *, by_column: bool):
        self.y, self.weight, self.loss, self.binner = data.y, data.weight, loss, binner
        self.binned: Binned = binner.transform(data.rows, by_column=by_column)
        n, base = data.rows.n_rows, learner.base_score_
        if learner.has_nodes:
            existing = SumOfTrees(learner.nodes_, data.rows.n_features, loss.n_outputs)
            self.scores = np.ascontiguousarray(existing.sums(data.rows, base).T)
        else:
            self.scores = np.repeat(base[:, None], n, axis=1)
        self.buffers = loss.buffers(n, data.weight is not None)

    def slopes(self, spread: Any) -> Slopes:
        """Return the derivatives at the scores."""
        return self.loss.slopes(self.y, self.scores, self.weight, self.buffers, spread)

    def add(self, tree: Nodes, k: int, spread: Any) -> None:
        """Add a tree to the k-th score."""
        add_trees(tree, self.binner, self.binned, self.scores[k], spread)


class Rounds:
    """One fit: the rounds that lower the loss on the rows of `part`, and the watch that may end them."""

    def __init__(self, learner: Any, rule: Rule, allowed: Allowed, part: Part, held: Part | None, seed: int):
        self.learner, self.part, self.held, self.seed = learner, part, held, seed
        self.loss, self.binner = part.loss, part.binner
        self.spread = partial(thread_map, n_jobs=learner.n_jobs)
        self.grower = Grower(part.binned, rule, allowed, learner.n_jobs)
        self.done = learner._n_rounds()
        self.rows: np.ndarray = np.empty(0, dtype=np.int64)

    def run(self, most: int, watch: Watch, log: FitLog, report: Callable[[list[Nodes]], None]) -> list[Nodes]:
        """Return the trees of the rounds until there are `most`, the watch stops them or a callback does."""
        trees: list[Nodes] = []
        slopes = self._slopes()
        watch.first(slopes.mean, self)
        still = False  # nothing can be split, and nothing is drawn: all further rounds are like the last
        while self.done < most:
            if not still:
                self._draw()
                made = [self._tree(slopes, k) for k in range(self.loss.n_outputs)]
                slopes = self._slopes()
            trees += made
            self.done += 1
            for k, tree in enumerate(made if self.held is not None else ()):
                self.held.add(tree, k, self.spread)  # type: ignore[union-attr]
            stop = watch.step(slopes.mean, self)
            report(made)
            shown = self._so_far(trees) if log.watched else {}
            if log.step(slopes.mean, slopes.top_g, **shown) or stop:
                break
            drawn = self.learner.subsample < 1 or self.learner.max_features < 1
            still = not drawn and all(len(tree.child) == 1 for tree in made)
        return trees

    def _so_far(self, trees: list[Nodes]) -> dict[str, Any]:
        """Return the arrays of all trees, for callbacks that look at the model."""
        before = [self.learner.nodes_] if self.learner.has_nodes else []
        return stored_arrays(joined(before + trees))

    def held_loss(self) -> float:
        """Return the mean loss on the validation rows."""
        held: Any = self.held
        return held.slopes(self.spread).mean

    def _slopes(self) -> Slopes:
        if self.loss.name == "huber":
            y, weight = self.part.y, self.part.weight
            weight = np.ones(len(y)) if weight is None else weight
            self.loss.level = weighted_quantile(np.abs(y - self.part.scores[0]), weight, self.loss.share)
        return self.part.slopes(self.spread)

    def _draw(self) -> None:
        """Draw the rows of the next round."""
        n, share = len(self.part.y), float(self.learner.subsample)
        self.rows = np.empty(0, dtype=np.int64)
        if share < 1:
            rng = np.random.default_rng((self.seed, self.done))
            self.rows = np.sort(rng.permutation(n)[: max(1, int(share * n))])

    def _tree(self, slopes: Slopes, k: int) -> Nodes:
        from assay.tree.growth._hist_loops import LEVELS, pack_block

        g, h = slopes.g[k], slopes.h[min(k, len(slopes.h) - 1)]
        units = (slopes.top_g or 1.0) / LEVELS, (slopes.top_h or 1.0) / (2 * LEVELS)
        n, turn = len(self.rows) or len(g), self.done * self.loss.n_outputs + k
        entries = self.grower.entries

        def pack(i: int) -> None:
            pack_block(g, h, 1 / units[0], 1 / units[1], self.rows, i, min(i + _ROWS, n), turn, entries)

        self.spread(pack, range(0, n, _ROWS))
        grown = self.grower.grow(n, units, turn)
        if len(grown) > 1:  # a tree that is a single leaf changes nothing
            leaves = [node for node in grown if not node.accepted]
            values = self.spread(lambda node: self._settle(node, g, h, k), leaves)
            for node, value in zip(leaves, values):
                node.value = value
        tree = grown_nodes(grown, self.binner)
        if len(self.rows):
            self.part.add(tree, k, self.spread)
        return tree

    def _settle(self, node: Node, g: np.ndarray, h: np.ndarray, k: int) -> float:
        """Return the value of a leaf, and add it to the scores of its rows."""
        from assay.tree.growth._hist_loops import add_to_rows, leaf_sums

        entries, part, scores = self.grower.entries, self.part, self.part.scores[k]
        if self.loss.by_residuals:
            of = entries[node.start : node.stop] >> 32
            weight = np.ones(len(of)) if part.weight is None else part.weight[of]
            value = self.loss.leaf_value(part.y[of] - scores[of], weight) if weight.sum() > 0 else 0.0
        else:
            gradient, hessian = leaf_sums(entries, node.start, node.stop, g, h)
            hessian += self.grower.rule.l2
            value = -gradient / hessian if hessian > 0 else 0.0
        value = self.loss.held_back(min(max(value, node.low), node.high), self.learner.learning_rate)
        if not len(self.rows):
            add_to_rows(entries, node.start, node.stop, value, scores)
        return value
