"""The rounds of gradient boosting: derivatives, one tree for each output, new scores, the curve on validation rows."""

from functools import partial
from typing import Any

import numpy as np

from assay.ensemble._losses import Loss, Slopes, weighted_quantile
from assay.fitlog import FitLog
from assay.scan import thread_map
from assay.tree._bin_walk import SumOfTrees, add_trees
from assay.tree._nodes import Nodes
from assay.tree._reading import Read
from assay.tree.growth._bins import Binner
from assay.tree.growth._hist_grower import Grower, Node, grown_nodes

_ROWS = 65_536


class Rounds:
    """One fit: scores of the training and validation rows, and the rounds that improve them."""

    def __init__(self, learner: Any, binner: Binner, loss: Loss, data: Read, held: Read | None, rng: Any, log: FitLog):
        self.learner, self.binner, self.loss, self.data, self.held = learner, binner, loss, data, held
        self.rng, self.log = rng, log
        self.spread = partial(thread_map, n_jobs=learner.n_jobs)
        n = data.rows.n_rows
        self.binned = binner.transform(data.rows)
        self.grower = Grower(self.binned, learner._rule(binner), learner.n_jobs)
        self.scores = np.repeat(learner.base_score_[:, None], n, axis=1)
        self.buffers = loss.buffers(n, data.weight is not None)
        self.train: list[float] = []
        self.validation: list[float] = []
        self.rows: np.ndarray = np.empty(0, dtype=np.int64)
        if held is not None:
            self.held_binned = binner.transform(held.rows, by_column=False)
            self.held_scores = np.repeat(learner.base_score_[:, None], len(held.y), axis=1)
            self.held_buffers = loss.buffers(len(held.y), held.weight is not None)
        if learner.has_nodes:
            self._add_existing()

    def rounds(self, most: int) -> list[Nodes]:
        """Return the trees of at most that many rounds."""
        learner, trees = self.learner, []
        slopes = self._slopes()
        for _ in range(most):
            self._draw()
            made = [self._tree(slopes, k) for k in range(self.loss.n_outputs)]
            trees += made
            slopes = self._slopes()
            self.train.append(slopes.mean)
            if self.held is not None:
                self._validate(made)
            if self.log.step(slopes.mean, slopes.top_g) or self._stalled():
                break
            if all(len(tree.child) == 1 for tree in made) and learner.subsample == 1:
                break
        return trees

    def _slopes(self) -> Slopes:
        if self.loss.name == "huber":
            weight = np.ones(len(self.data.y)) if self.data.weight is None else self.data.weight
            self.loss.level = weighted_quantile(np.abs(self.data.y - self.scores[0]), weight, self.learner.alpha)
        return self.loss.slopes(self.data.y, self.scores, self.data.weight, self.buffers, self.spread)

    def _draw(self) -> None:
        """Draw the rows and columns of the next round."""
        n, d = self.data.rows.n_rows, self.data.rows.n_features
        share = float(self.learner.subsample)
        self.rows = np.empty(0, dtype=np.int64)
        if share < 1:
            self.rows = np.sort(self.rng.permutation(n)[: max(1, int(share * n))])
        self.allowed = np.ones(d, dtype=np.uint8)
        if self.learner.max_features < 1:
            self.allowed[self.rng.permutation(d)[max(1, int(self.learner.max_features * d)) :]] = 0

    def _tree(self, slopes: Slopes, k: int) -> Nodes:
        from assay.tree.growth._hist_loops import LEVELS, pack_block

        g, h = slopes.g[k], slopes.h[min(k, len(slopes.h) - 1)]
        units = (slopes.top_g or 1.0) / LEVELS, (slopes.top_h or 1.0) / (2 * LEVELS)
        n, turn = len(self.rows) or len(g), len(self.train) * self.loss.n_outputs + k
        entries = self.grower.entries

        def pack(i: int) -> None:
            pack_block(g, h, 1 / units[0], 1 / units[1], self.rows, i, min(i + 65_536, n), turn, entries)

        self.spread(pack, range(0, n, 65_536))
        grown = self.grower.grow(n, units, self.allowed)
        leaves = [node for node in grown if not node.accepted]
        values = self.spread(lambda node: self._settle(node, g, h, k), leaves)
        for node, value in zip(leaves, values):
            node.value = value
        tree = grown_nodes(grown, self.binner)
        if len(self.rows):
            add_trees(tree, self.binner, self.binned, self.scores[k], self.spread)
        return tree

    def _settle(self, node: Node, g: np.ndarray, h: np.ndarray, k: int) -> float:
        """Return the value of a leaf, and add it to the scores of its rows."""
        from assay.tree.growth._hist_loops import add_to_rows, leaf_sums

        entries = self.grower.entries
        if self.loss.by_residuals:
            of = entries[node.start : node.stop] >> 32
            weight = np.ones(len(of)) if self.data.weight is None else self.data.weight[of]
            value = self.loss.leaf_value(self.data.y[of] - self.scores[k, of], weight) if weight.sum() > 0 else 0.0
        else:
            gradient, hessian = leaf_sums(entries, node.start, node.stop, g, h)
            hessian += self.grower.rule.l2
            value = -gradient / hessian if hessian > 0 else 0.0
        value = min(max(value, node.low), node.high)
        if self.loss.name == "multinomial":
            value *= (self.loss.n_outputs - 1) / self.loss.n_outputs
        value *= self.learner.learning_rate
        if not len(self.rows):
            add_to_rows(entries, node.start, node.stop, value, self.scores[k])
        return value

    def _validate(self, made: list[Nodes]) -> None:
        for k, tree in enumerate(made):
            add_trees(tree, self.binner, self.held_binned, self.held_scores[k], self.spread)
        held: Any = self.held
        slopes = self.loss.slopes(held.y, self.held_scores, held.weight, self.held_buffers, self.spread)
        self.validation.append(slopes.mean)

    def _stalled(self) -> bool:
        """Tell whether the best of the last rounds on the validation rows is no better than the best before
        them."""
        wait = self.learner.n_iter_no_change
        if wait is None or len(self.validation) <= wait:
            return False
        return min(self.validation[-wait:]) > min(self.validation[:-wait]) - self.learner.tol

    def _add_existing(self) -> None:
        """Add the trees that exist already to the scores."""
        existing = SumOfTrees(self.learner.nodes_, self.data.rows.n_features, self.loss.n_outputs)
        self.scores += existing.sums(self.data.rows).T
        if self.held is not None:
            self.held_scores += existing.sums(self.held.rows).T
