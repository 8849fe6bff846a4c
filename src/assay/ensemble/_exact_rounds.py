"""The rounds of gradient boosting with exact regression trees: Friedman's algorithm, step by step.

    g_i = -dL/dF at F_{m-1}(x_i)         (each output by itself)
    tree_m                               least squares on g_i, over the rows drawn for the round
    value of a leaf                      squares: the mean of its g; log and exponential loss: one Newton step
                                         sum w g / sum w h (softmax: times (K - 1) / K); else the minimiser over the
                                         residuals y_i - F_{m-1}(x_i) (Huber: one step from their median)
    F_m = F_{m-1} + nu * value

Rows are drawn, and the state of the generator moved on, as scikit-learn does it, so that both draw the same rows.
"""

import time
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from assay.ensemble._losses import Loss, Slopes
from assay.fitlog import FitLog
from assay.scan import thread_map
from assay.tree._classes import DecisionTreeRegressor
from assay.tree._nodes import Nodes, joined
from assay.tree._predict import leaves
from assay.tree._pruning import cost_complexity
from assay.tree._reading import Read
from assay.tree.growth._exact import encode
from assay.tree.growth._growers import limits_of
from assay.tree.growth._levels import Presorted, grow_levels

_SEEDS = 2**31 - 1
_NO_CURVATURE = 1e-150
_FACTOR = {"squared_error": 2.0, "log_loss": 2.0}  # scores of these losses are deviances


class Scored:
    """Rows with their scores F (outputs, rows) and the loss there."""

    def __init__(self, loss: Loss, data: Read, scores: np.ndarray, n_jobs: int | None):
        self.loss, self.X, self.y = loss, data.X, data.y
        self.weight, self.scores, self.n_jobs = data.weight, scores, n_jobs
        self.spread = partial(thread_map, n_jobs=n_jobs)
        self.buffers = loss.buffers(len(data.y), False, np.float64)

    def slopes(self) -> Slopes:
        """Return the derivatives at the scores, without weights."""
        return self.loss.slopes(self.y, self.scores, None, self.buffers, self.spread)

    def score(self, rows: Any = None) -> float:
        """Return the mean loss of some rows, or of all, weighted; twice that where it is half a deviance."""
        some = slice(None) if rows is None else rows
        y, scores = self.y[some], np.ascontiguousarray(self.scores[:, some])
        weight = None if self.weight is None else self.weight[some]
        if not len(y):
            return float("nan")
        buffers = self.loss.buffers(len(y), weight is not None, np.float64)
        return _FACTOR.get(self.loss.name, 1.0) * self.loss.slopes(y, scores, weight, buffers, self.spread).mean

    def add(self, tree: Nodes, k: int) -> None:
        """Add a tree to the k-th score."""
        self.scores[k] += tree.value[leaves(tree, self.X, self.n_jobs)[:, 0], 0]


class ExactRounds:
    """The trees of one fit."""

    def __init__(self, learner: Any, part: Scored, data: Read, rng: Any):
        self.learner, self.part, self.rng, self.loss = learner, part, rng, part.loss
        self.pattern = DecisionTreeRegressor(**learner._tree_parameters())
        self.limits = limits_of(self.pattern, data, False)
        self.columns = Presorted(encode(part.X, learner.n_jobs), learner.n_jobs)
        n = len(part.y)
        self.weight = np.ones(n) if part.weight is None else part.weight
        self.in_bag: np.ndarray | None = None
        self.n_in_bag = max(1, int(learner.subsample * n))

    def draw(self) -> None:
        """Draw the rows of the next round."""
        if self.learner.subsample < 1:
            self.in_bag = _drawn(len(self.part.y), self.n_in_bag, self.rng)

    def grow(self) -> list[Nodes]:
        """Return the trees of one round, their values times the learning rate, and add them to the scores."""
        part = self.part
        if self.loss.name == "huber":
            self.loss.level = quantile_of(np.abs(part.y - part.scores[0]), self.weight, self.loss.share)
        slopes = part.slopes()
        return [self._tree(slopes, k) for k in range(self.loss.n_outputs)]

    def _tree(self, slopes: Slopes, k: int) -> Nodes:
        target, part, n = -slopes.g[k], self.part, len(self.part.y)
        counts = self.weight > 0 if self.in_bag is None else self.in_bag & (self.weight > 0)
        rows = np.flatnonzero(counts) if not counts.all() else np.arange(n)
        weight = None if part.weight is None else part.weight
        total = float(len(rows)) if weight is None else float(weight[rows].sum())
        seed = int(self.rng.randint(0, _SEEDS))
        limits = self.limits._replace(
            min_weight_leaf=self.pattern.min_weight_fraction_leaf * total,
            min_decrease=self.pattern.min_impurity_decrease * total,
        )
        tree = grow_levels(self.columns, target, weight, rows, limits, seed)
        if self.pattern.ccp_alpha > 0:
            risk = tree.impurity * tree.weight / tree.weight[0]
            tree = cost_complexity(tree, risk, float(self.pattern.ccp_alpha))
        ends = leaves(tree, part.X, self.learner.n_jobs)[:, 0]
        value = tree.value.copy()
        if self.loss.name != "squared_error":
            leaf = np.flatnonzero(tree.child < 0)
            h = slopes.h[min(k, len(slopes.h) - 1)]
            value[leaf, 0] = self._values(ends, rows, target, h, k)[leaf]
        tree = tree._replace(value=float(self.learner.learning_rate) * value)
        part.scores[k] += tree.value[ends, 0]
        return tree

    def _values(self, ends: np.ndarray, rows: np.ndarray, target: np.ndarray, h: np.ndarray, k: int) -> np.ndarray:
        """Return the value of each leaf, from the rows that were drawn."""
        at, weight, n = ends[rows], self.weight[rows], int(ends.max()) + 1
        if self.loss.by_residuals:
            return self._minimisers(at, self.part.y[rows] - self.part.scores[k, rows], weight, n)
        mass = np.maximum(np.bincount(at, weight, n), 1e-300)
        gain, curve = (np.bincount(at, weight * part[rows], n) / mass for part in (target, h))
        if self.loss.name == "multinomial":
            gain *= (self.loss.n_outputs - 1) / self.loss.n_outputs
        flat = np.abs(curve) < _NO_CURVATURE
        return np.where(flat, 0.0, gain / np.where(flat, 1.0, curve))

    def _minimisers(self, at: np.ndarray, residuals: np.ndarray, weight: np.ndarray, n: int) -> np.ndarray:
        result, order = np.zeros(n), np.argsort(at, kind="stable")
        bounds = np.append(np.flatnonzero(np.diff(at[order], prepend=-1)), len(at))
        for start, stop in pairwise(bounds):
            own = order[start:stop]
            result[at[own[0]]] = minimiser(self.loss, residuals[own], weight[own])
        return result


def minimiser(loss: Loss, residuals: np.ndarray, weight: np.ndarray) -> float:
    """Return the number that lowers the loss of residuals y - F most."""
    middle = quantile_of(residuals, weight, loss.level if loss.name == "quantile" else 0.5)
    if loss.name != "huber":
        return middle
    rest = residuals - middle
    return middle + float(np.average(np.sign(rest) * np.minimum(np.abs(rest), loss.level), weights=weight))


def quantile_of(values: np.ndarray, weight: np.ndarray, level: float) -> float:
    """Return the smallest value up to which a share `level` of the weight lies."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weight[order])
    at = int(np.searchsorted(below, max(level * below[-1], np.nextafter(0.0, 1.0))))
    return float(values[order[min(at, len(values) - 1)]])


def _drawn(n: int, size: int, rng: Any) -> np.ndarray:
    """Return a mask of `size` of n rows."""
    from assay.ensemble._loss_loops import draw_rows

    mask = np.zeros(n, dtype=bool)
    draw_rows(rng.uniform(size=n), size, mask)
    return mask


# Scores after each round, early stopping, verbose output ----------------------------------------------------------


class Course:
    """The course of one fit: rounds, scores after each, and what ends them."""

    def __init__(self, learner: Any, part: Scored, held: Scored | None, data: Read):
        self.learner, self.part, self.held = learner, part, held
        self.rounds = ExactRounds(learner, part, data, learner._rng)
        self.trees: list[Nodes] = []
        self.first = learner._n_rounds()
        self.train = learner.train_score_.tolist()
        empty = np.zeros(self.first)
        self.improved = getattr(learner, "oob_improvement_", empty).tolist()
        self.scores = getattr(learner, "oob_scores_", empty).tolist()
        self.drawing = learner.subsample < 1
        wait = learner.n_iter_no_change
        self.recent = None if wait is None else np.full(wait, np.inf)

    def run(self, monitor: Any, log: FitLog) -> None:
        """Add the rounds, and leave them in the learner, whatever ends them."""
        learner, printer = self.learner, _Printer(self)
        most = learner.n_estimators
        for i in range(self.first, most):
            self._round(i)
            printer.line(i, most)
            if monitor is not None or log.watched:
                self.publish()
            state = {"i": i, "self": learner, "raw_predictions": self.part.scores.T}
            if monitor is not None and monitor(i, learner, state):
                break
            if log.step(self.train[-1], 0.0) or (self.held is not None and self._stalled(i)):
                break
        self.publish()

    def _round(self, i: int) -> None:
        rounds, part = self.rounds, self.part
        rounds.draw()
        out = None if rounds.in_bag is None else ~rounds.in_bag
        before = part.score(out) if self.drawing and i == 0 else None
        made = rounds.grow()
        self.trees += made
        if self.held is not None:
            for k, tree in enumerate(made):
                self.held.add(tree, k)
        self.train.append(part.score(rounds.in_bag))
        if self.drawing:
            after = part.score(out)
            previous = before if before is not None else self.scores[-1]
            self.improved.append(previous - after)
            self.scores.append(after)

    def _stalled(self, i: int) -> bool:
        """Tell whether the loss on the validation rows is better than none of the last ones."""
        held: Any = self.held
        recent: Any = self.recent
        loss = held.score()
        if not np.any(loss + self.learner.tol < recent):
            return True
        recent[i % len(recent)] = loss
        return False

    def publish(self) -> None:
        """Make the learner what the rounds so far have made."""
        learner = self.learner
        if self.trees:
            learner.keep_nodes(joined(([learner.nodes_] if learner.has_nodes else []) + self.trees))
            learner._batches.append((len(self.trees), float(learner.learning_rate), learner._tree_parameters()))
            self.trees = []
        learner.train_score_ = np.array(self.train)
        if self.drawing:
            learner.oob_improvement_, learner.oob_scores_ = np.array(self.improved), np.array(self.scores)
            learner.oob_score_ = learner.oob_scores_[-1] if self.scores else np.nan


class _Printer:
    """What `verbose` prints: a line for each round, or for the first ten, every tenth, every hundredth."""

    def __init__(self, course: Course):
        self.course, self.verbose, self.step = course, course.learner.verbose, 1
        self.began = time.perf_counter()
        if self.verbose:
            names = ["Train Loss", *(["OOB Improve"] if course.drawing else []), "Remaining Time"]
            print(" ".join([f"{'Iter':>10s}", *(f"{name:>16s}" for name in names)]))

    def line(self, i: int, most: int) -> None:
        """Print the line of round i, if it is its turn."""
        done = i - self.course.first + 1
        if not self.verbose or done % self.step:
            return
        left = (most - i - 1) * (time.perf_counter() - self.began) / done
        words = [f"{i + 1:>10d}", f"{self.course.train[-1]:>16.4f}"]
        words += [f"{self.course.improved[-1]:>16.4f}"] if self.course.drawing else []
        print(" ".join([*words, f"{f'{left / 60:.2f}m' if left > 60 else f'{left:.2f}s':>16s}"]))
        if self.verbose == 1 and done // (10 * self.step) > 0:
            self.step *= 10
