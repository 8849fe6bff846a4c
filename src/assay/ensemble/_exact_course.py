"""The course of a fit of gradient boosting with exact trees: scores after each round, what ends it, what is printed."""

import time
from typing import Any

import numpy as np

from assay.ensemble._exact_rounds import ExactRounds, Scored
from assay.fitlog import FitLog
from assay.tree._nodes import Nodes, joined
from assay.tree._reading import Read


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
        loss, recent = held.score(), self.recent
        if not np.any(loss + self.learner.tol < recent):
            return True
        recent[i % len(recent)] = loss  # type: ignore[index]
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
