"""The rounds of boosting on histograms: derivatives, one tree for each output, new scores, the curve on validation
rows."""

from collections.abc import Callable
from typing import Any

from assay.ensemble._hist_store import TRAINING, VALIDATION, Store, Sums
from assay.ensemble._stopping import Watch
from assay.fitlog import FitLog
from assay.tree._nodes import Nodes, joined, stored_arrays
from assay.tree.growth._allowed import Allowed
from assay.tree.growth._bins import Binner
from assay.tree.growth._hist_grower import Grower, Node, Rule, grown_nodes


class Rounds:
    """One fit: the rounds that lower the loss on the training rows of a store, and the watch that may end them."""

    def __init__(self, learner: Any, rule: Rule, allowed: Allowed, binner: Binner, store: Store, seed: int):
        self.learner, self.binner, self.store, self.seed = learner, binner, store, seed
        self.loss = store.loss
        self.grower = Grower(store.rows, rule, allowed, learner.n_jobs)
        self.done, self.n_drawn = learner._n_rounds(), 0

    def run(self, most: int, watch: Watch, log: FitLog, report: Callable[[list[Nodes]], None]) -> list[Nodes]:
        """Return the trees of the rounds until there are `most`, the watch stops them or a callback does."""
        trees: list[Nodes] = []
        sums = self._slopes()
        watch.first(sums.mean, self)
        still = False  # nothing can be split, and nothing is drawn: all further rounds are like the last
        while self.done < most:
            if not still:
                made = self._round(sums)
                sums = self._slopes()
            trees += made
            self.done += 1
            if self.store.validates:
                self.store.add_trees(made, VALIDATION)
            self.store.end_round(made)
            stop = watch.step(sums.mean, self)
            report(made)
            shown = self._so_far(trees) if log.watched else {}
            if log.step(sums.mean, sums.top_g, **shown) or stop:
                break
            still = not self._draws and all(len(tree.child) == 1 for tree in made)
        return trees

    @property
    def _draws(self) -> bool:
        return self.learner.subsample < 1 or self.learner.max_features < 1

    def _so_far(self, trees: list[Nodes]) -> dict[str, Any]:
        """Return the arrays of all trees, for callbacks that look at the model."""
        before = [self.learner.nodes_] if self.learner.has_nodes else []
        return stored_arrays(joined(before + trees))

    def validation_loss(self) -> float:
        """Return the mean loss on the validation rows."""
        return self.store.slopes(VALIDATION).mean

    def _slopes(self) -> Sums:
        self.store.set_level()
        return self.store.slopes()

    def _round(self, sums: Sums) -> list[Nodes]:
        """Return the trees of one round, whose values are in the scores of the training rows then."""
        self.n_drawn = self.store.draw(self.seed, self.done, float(self.learner.subsample))
        made = [self._tree(sums, k) for k in range(self.loss.n_outputs)]
        if self.learner.subsample < 1:
            self.store.add_trees(made, TRAINING)
        return made

    def _tree(self, sums: Sums, k: int) -> Nodes:
        from assay.tree.growth._hist_loops import LEVELS

        units = (sums.top_g or 1.0) / LEVELS, (sums.top_h or 1.0) / (2 * LEVELS)
        turn = self.done * self.loss.n_outputs + k
        self.store.pack(k, units, turn)
        grown = self.grower.grow(self.n_drawn, units, turn)
        if len(grown) > 1:  # a tree that is a single leaf changes nothing
            self._settle([node for node in grown if not node.accepted], sums, k)
        return grown_nodes(grown, self.binner)

    def _settle(self, leaves: list[Node], sums: Sums, k: int) -> None:
        """Set the values of leaves, and add them to the scores of their rows."""
        places = [(node.start, node.stop) for node in leaves]
        if self.loss.by_residuals:
            values = self.store.residual_values(places)
        else:
            totals = self.store.leaf_sums(k, places, (sums.top_g, sums.top_h)).tolist()
            values = [_newton_step(g, h + self.grower.rule.l2) for g, h in totals]
        for node, value in zip(leaves, values):
            node.value = self.loss.held_back(min(max(value, node.low), node.high), self.learner.learning_rate)
        if self.learner.subsample == 1:
            self.store.add_values(k, places, [node.value for node in leaves])


def _newton_step(gradient: float, hessian: float) -> float:
    return -gradient / hessian if hessian > 0 else 0.0
