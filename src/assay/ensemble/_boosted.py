"""Sums of trees, which gradient boosting makes: what predicts and is certified, whichever way the trees were grown.

F(x) = base_score_ + sum over the trees of the value of the leaf that x reaches        (one F for each output)

Early stopping: scores after each round, on validation or training rows, and when they have stopped rising.

The rounds of boosting on histograms: derivatives, one tree for each output, new scores, the curve on validation
rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils import resample
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner
from assay.data.blocks import Block
from assay.ensemble._hist_store import TRAINING, VALIDATION, Store, Sums
from assay.ensemble._losses import Loss
from assay.fitlog import FitLog
from assay.guarantees.evidence import Evidence, Predictions, Scores
from assay.scan import Rows, rows_per_block, thread_map
from assay.tree._decision_tree import known_rows
from assay.tree._nodes import Nodes, TreeModel, joined, stored_arrays
from assay.tree._predict import SumOfTrees, weighted_values
from assay.tree._reading import Read, read_columns
from assay.tree.growth._bins import Allowed, Binner
from assay.tree.growth._hist_grower import Grower, Node, Rule, grown_nodes


class Boosted(TreeModel, Learner):
    """Mixin: scores of a sum of trees."""

    figure = "importance"
    base_score_: np.ndarray
    n_jobs: int | None

    def _loss(self) -> Loss:
        """Return the loss that the fit lowers."""
        raise NotImplementedError

    def _bounded(self, block: Block) -> tuple[np.ndarray, float]:
        """Return the scores of a block's rows, and how far rounding can move them."""
        return self._raw(block.X), self._rounding()

    def _rounding(self) -> float:
        """Return how far two orders of summation can differ: 4 u times trees times the largest sum."""
        leaves = np.abs(self.nodes_.value).max() * len(self.nodes_.root) + np.abs(self.base_score_).max()
        return 2.0**-50 * (len(self.nodes_.root) + 1) * float(leaves)

    def _trees(self) -> SumOfTrees:
        check_is_fitted(self)
        return SumOfTrees(self.nodes_.check(self.n_features_in_), self.n_features_in_, len(self.base_score_))

    def _shown(self, data: Read) -> tuple[Any, Any]:
        """Return what callbacks are shown of X and y: nothing of rows that are streamed, else labels as they came."""
        X, y = data.shown
        return (X, y) if y is None or not is_classifier(self) else (X, self.classes_[y])

    def _columns(self, X: Any) -> np.ndarray:
        """Return rows as the trees see them."""
        return read_columns(self, X).X

    def _first(self, X: np.ndarray) -> np.ndarray:
        """Return the scores before the first tree (rows, outputs)."""
        return np.tile(self.base_score_, (len(X), 1))

    def _raw(self, X: Any) -> np.ndarray:
        """Return the scores (rows, outputs)."""
        trees, X = self._trees(), self._columns(X)
        scores, step = self._first(X), rows_per_block(X.shape[1])

        def work(i: int) -> None:
            trees.add(X[i : i + step], scores[i : i + step])

        thread_map(work, range(0, len(X), step), n_jobs=self.n_jobs)
        return scores

    def _staged_raw(self, X: Any) -> Iterator[np.ndarray]:
        trees, X, outputs = self._trees(), self._columns(X), len(self.base_score_)
        scores = self._first(X)
        for first in range(0, len(trees.nodes.root), outputs):
            trees.add(X, scores, first, first + outputs)
            yield scores.copy()

    def _partial_dependence(self, grid: Any, target_features: Any) -> np.ndarray:
        """Return the trees' mean at the grid over the other columns, by the training rows that went down each branch,
        (outputs, points), without the first constant."""
        nodes, columns = self.nodes_, np.asarray(target_features, dtype=np.intp)
        nodes = nodes._replace(missing=np.where(np.isin(nodes.column, columns), nodes.missing, -1))
        points = np.full((len(grid), self.n_features_in_), np.nan)
        for column, values in zip(columns, np.asarray(grid).T):
            points[:, column] = _codes(self.columns_, column, values)
        total = np.zeros((len(self.base_score_), len(grid)))
        for t, root in enumerate(nodes.root):
            total[t % len(total)] += weighted_values(nodes, root, points)[:, 0]
        return total

    @property
    def n_trees_per_iteration_(self) -> int:
        """Trees of a round: one for each output."""
        check_is_fitted(self)
        return len(self.base_score_)

    def _n_rounds(self) -> int:
        return len(self.tree_root_) // len(self.base_score_) if self.has_nodes else 0

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        return known_rows(self, X, y, sample_weight)


def _codes(types: Any, column: int, values: np.ndarray) -> np.ndarray:
    """Return values of a column as trees read them: of a nominal one the positions of the levels."""
    if not types or types[column].kind != "nominal":
        return values.astype(np.float64)
    given = values.tolist()
    levels = [level if isinstance(given[0], str) else float(level) for level in types[column].levels]
    return np.array([levels.index(value) if value in levels else np.nan for value in given])


@dataclass(eq=False, repr=False)
class BoostedClassifier(ClassifierMixin, Boosted):
    """Mixin: classes from the scores of a sum of trees."""

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores F: (rows,) for two classes, (rows, classes) for more."""
        return _one_or_all(self._raw(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (rows, classes)."""
        scores = self._raw(X)
        return self._loss().probabilities(scores)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the label with the largest score."""
        return self._labels(self._raw(X))

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield `decision_function` after each round."""
        for scores in self._staged_raw(X):
            yield _one_or_all(scores)

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the probabilities after each round."""
        for scores in self._staged_raw(X):
            yield self._loss().probabilities(scores)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predicted labels after each round."""
        for scores in self._staged_raw(X):
            yield self._labels(scores)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the scores."""
        yield Scores(self._bounded, (), self._loss().name in ("log_loss", "multinomial"))

    def _labels(self, scores: np.ndarray) -> np.ndarray:
        at = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return self.classes_[at]


@dataclass(eq=False, repr=False)
class BoostedRegressor(RegressorMixin, Boosted):
    """Mixin: numbers from the scores of a sum of trees."""

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted number of each row."""
        return self._loss().numbers(self._raw(X))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predictions after each round."""
        for scores in self._staged_raw(X):
            yield self._loss().numbers(scores)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predictions; where these are the exponentials of the scores, nothing."""
        if not self._loss().of_logarithm:
            yield Predictions(self._bounded)


def _one_or_all(scores: np.ndarray) -> np.ndarray:
    return scores[:, 0] if scores.shape[1] == 1 else scores


_MOST = 10_000  # training rows that a scorer sees


class Watch:
    """The scores of the rounds: minus the mean loss, or what a scorer says. Larger is better.

    train, validation : the score before the first round and after each one; empty if nothing is watched
    """

    def __init__(self, learner: Any, source: Any, store: Any, seed: int):
        self.learner, self.store = learner, store
        self.validates = store.validates
        self.on = learner.do_early_stopping_
        more = learner.has_nodes
        self.train: list[float] = learner.train_score_.tolist() if more else []
        self.validation: list[float] = learner.validation_score_.tolist() if more else []
        self.scorer = None
        if self.on and learner.scoring != "loss":
            self.scorer = check_scoring(learner, learner.scoring)
            self.chosen = self._chosen(seed)
            self.training, self.validating = source.rows_of(TRAINING), source.rows_of(VALIDATION)

    def first(self, loss: float, run: Any) -> None:
        """Write down the scores before the first round of the first fit."""
        if self.on and not self.train:
            self._write(loss, run)

    def step(self, loss: float, run: Any) -> bool:
        """Write down the scores after a round; tell whether the last ones are no better than the one before them."""
        if not self.on:
            return False
        self._write(loss, run)
        return stalled(self.validation if self.validates else self.train, self.learner)

    def latest(self) -> tuple[tuple[str, list[float]], ...]:
        """Return the scores by name."""
        return ("train", self.train), ("validation", self.validation)

    def _write(self, loss: float, run: Any) -> None:
        if self.scorer is None:
            self.train.append(-loss)
            if self.validates:
                self.validation.append(-run.validation_loss())
            return
        scores = self.store.training.scores[:, self.chosen]
        data, numbers = self.training
        self.train.append(self._score(data, numbers[self.chosen], scores))
        if self.validates:
            data, numbers = self.validating
            self.validation.append(self._score(data, numbers, self.store.validation.scores))

    def _score(self, data: Read, rows: Any, scores: np.ndarray) -> float:
        """Return what the scorer says of some rows whose scores are known."""
        learner: Any = self.learner
        y = learner.classes_[data.y[rows]] if is_classifier(learner) else data.y[rows]
        weight = {} if data.weight is None else {"sample_weight": data.weight[rows]}
        learner._raw = lambda X: np.ascontiguousarray(scores.T)
        try:
            return float(self.scorer(learner, data.X[rows], y, **weight))  # type: ignore[misc]
        finally:
            del learner._raw

    def _chosen(self, seed: int) -> Any:
        """Return training rows for the scorer: all, or 10,000 with the shares of the classes kept."""
        y, n = self.store.training.y, self.store.n_rows
        if n <= _MOST:
            return slice(None)
        shares = y if is_classifier(self.learner) else None
        return resample(np.arange(n), n_samples=_MOST, replace=False, random_state=seed, stratify=shares)


def stalled(scores: list[float], learner: Any) -> bool:
    """Tell whether none of the last `n_iter_no_change` scores exceeds the one before them by more than `tol`."""
    wait = learner.n_iter_no_change
    return len(scores) > wait and max(scores[-wait:]) <= scores[-wait - 1] + learner.tol


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
