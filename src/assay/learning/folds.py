"""A study that holds no rows out: each fold has a model that was chosen and fitted without it, and is judged on it.

The whole search runs again inside the rows outside each fold, so that learner, settings, encoding, threshold and the
columns that are of use know nothing of it: model k errs on the rows of fold k as on new rows, and delta pays for the
number of folds and for nothing else. What is saved are all of them, as their vote or mean (`folded`). Folds are drawn
plainly at random, by the seed alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from assay import scan
from assay.claims.claim import Certificate, Claim, NotApplicable
from assay.claims.model import StoredModel
from assay.guarantees.evidence import Decided, Gathered, Predictions
from assay.guarantees.fingerprint import BetOrder, data_reference, fold_of_rows, model_reference
from assay.guarantees.ledger import DOWN, OUTWARD, Vacuous, claim
from assay.learning import baseline
from assay.learning.events import Event, Finished, Note, Started
from assay.learning.folded import FoldedTable, FoldMean, FoldVote
from assay.learning.jobs import Answer, Fit, Pool, reason
from assay.learning.metrics import Metric, chosen_metric
from assay.learning.model import TableModel
from assay.learning.problem import Problem, copied, fold_problem
from assay.learning.search import Budget, Candidate, Search, failures
from assay.messages import Message
from assay.model_selection._validation import mean_of_folds
from assay.theory import concentration

_FIRST = 2  # learners that are tried for the folds that are left when somebody says stop
_ROW, _BYTE = 1e-5, 5e-9  # seconds that it takes to seal a row of the table, and a byte of the models
_BESIDE = Decimal("0.1")  # of delta, for the comparison with the baseline


@dataclass
class FoldModel:
    """What came of one fold: the candidate that was best outside it, fitted there; its answers to the fold's rows.

    `answers` are positions among all classes, -1 where rounding leaves the class open; or numbers, and how far rounding
    can move them, None if the checker has no predictor for them.
    """

    candidate: Candidate
    model: TableModel
    held: np.ndarray
    baseline: Any
    answers: Any


class Folds:
    """Chooses and fits a model for each fold, one after the other."""

    def __init__(
        self, problem: Problem, folds: int, metric: Metric, pool: Pool, budget: Budget, tell: Callable[[Event], None],
        search: Callable[[Problem, Metric, Budget], Search], opening: Callable[[], Any],
    ) -> None:  # fmt: skip
        self.problem, self.metric, self.pool, self.budget, self.tell, self.search = (
            problem, metric, pool, budget, tell, search,
        )  # fmt: skip
        self.opening = opening  # called before a model is evaluated on its fold
        self.fold = fold_of_rows(len(problem.y), folds, problem.seed)
        self.models: list[FoldModel] = []
        self.candidates: list[Candidate] = []

    def run(self) -> None:
        """Fill `models`. Who says stop gets the first learners alone for the folds that are left."""
        count = int(self.fold.max()) + 1
        for k in range(count):
            self.tell(Note(Message("fold.begins", fold=k + 1, folds=count), passing=True))
            part = self._problem(k)
            try:
                solution = self.search(part, self._metric(part), self._budget(count - k))
            except KeyboardInterrupt:
                if self.budget.stopped or not self.models:
                    raise
                self.budget.stopped = True
                solution = self.search(part, self._metric(part), self._budget(count - k))
            self.budget.stopped = self.budget.stopped or solution.budget.stopped
            self.models.append(self._fitted(k, part, solution))
            self.candidates += solution.all

    def tell_copies(self, model: TableModel) -> None:
        """Say how many rows look like rows of other folds, if they are many."""
        copies = int(copied(model.raw(self.problem.raw), self.fold).sum())
        if copies > max(1, len(self.fold) // 100):
            note = Message("note.fold-copies", copies=copies, rows=len(self.fold))
            self.problem.notes.append(note)
            self.tell(Note(note))

    def _budget(self, folds_left: int) -> Budget:
        """Return what the search of the next fold may take, the fit of its model and what is certified of it."""
        if self.budget.is_stopped():
            return Budget(None, _FIRST, None)
        left = self.budget.left()
        seconds = None if left is None else max(0.0, left - self._owed()) / folds_left
        return Budget(seconds, self.budget.trials, self.budget.is_stopped, self.budget.aside)

    def _owed(self) -> float:
        """Return about how many seconds it takes at the end to join and seal the models, whose answers are known: by
        the size of those that there are."""
        count = int(self.fold.max()) + 1
        size = sum(_bytes(model.model.stored()) for model in self.models) / max(1, len(self.models))
        return _ROW * len(self.fold) + _BYTE * size * count

    def _problem(self, k: int) -> Problem:
        folder = Path(self.problem.folder) / f"fold{k}"
        folder.mkdir()
        return fold_problem(self.problem, np.flatnonzero(self.fold == k), folder)

    def _metric(self, part: Problem) -> Metric:
        """Return the metric that the rows outside the fold give: a cost matrix of their classes, F1 of their rarer."""
        if self.metric.cost is None:
            return chosen_metric(self.metric.name, None, part.task, part.codes, len(part.classes))
        there = np.searchsorted(np.unique(self.problem.y), part.classes)
        return replace(self.metric, cost=self.metric.cost[np.ix_(there, there)])

    def _fitted(self, k: int, part: Problem, search: Search) -> FoldModel:
        """Return the best candidate of a fold, fitted to all rows outside it; the next one if that fails."""
        made: list[TableModel] = []

        def done(_: int, answer: Answer) -> None:
            if answer.result is None:
                candidate.status, candidate.note = "left out", answer.note
            else:
                made.append(TableModel(part.target, encoding, answer.result["learner"]))
                candidate.seconds = answer.result["seconds"]

        for candidate in search.finishable():
            assert candidate.recipe is not None
            encoding, view = part.view(candidate.kind, candidate.plain)
            self.tell(Started(candidate.name, candidate.settings, "final"))
            self.pool.run([Fit(candidate.recipe, view, part.y, encoding.nominal())], done, lambda place: None)
            why = _unproved(made[0], view) if made else ""
            if why:
                candidate.status, candidate.note = "left out", why
                made.clear()
            if made:
                break
        else:
            raise ValueError(Message("failed.fold", fold=k + 1, reasons=failures(search.all)))
        candidate.status, candidate.name = "finalist", Message("name.fold", fold=k + 1, name=candidate.name)
        self.opening()
        learner, X, y = made[0].learner, made[0].encode(part.raw.take(part.held), lenient=True)[0], part.held_targets()
        predicted = learner.predict(X)
        candidate.holdout_error = part.mean_error(y, predicted)
        shares = learner.predict_proba(X) if search.metric.needs_probabilities else None
        candidate.holdout_metric = search.metric.on(y, predicted, shares, part.classes)
        self.tell(Finished(candidate))
        constant = baseline.constant(part.y, part.task)
        return FoldModel(candidate, made[0], part.held, constant, self._answers(made[0], part.held))

    def _answers(self, model: TableModel, held: np.ndarray) -> Any:
        """Return what is certified of a model's answers to the rows of its fold; see `FoldModel`."""
        problem, X = self.problem, model.encode(self.problem.raw.take(held), lenient=True)[0]
        if problem.task == "classify":
            rows = scan.rows(X, np.zeros(len(held), dtype=np.int64))
            result = Gathered(model.learner.evidence(rows)).the(Decided).positions(rows)
            return np.where(
                result < 0, -1, np.searchsorted(np.unique(problem.y), model.classes_)[np.maximum(result, 0)]
            )
        rows = scan.rows(X, problem.y[held])
        numbers = Gathered(model.learner.evidence(rows)).get(Predictions)
        if numbers is None:
            return None
        parts = [np.asarray(part[0]).reshape(len(part[0]), -1) for part in rows.map(numbers.of, *numbers.parameters)]
        return np.concatenate(parts)[:, 0], numbers.largest_radius(rows)

    def joined(self) -> TableModel:
        """Return the vote or the mean of the models, which reads tables."""
        problem, members = self.problem, [item.model for item in self.models]
        learner: Any
        if problem.task == "classify":
            learner = FoldVote(members, np.unique(problem.y))
        else:
            low, high = ranges(problem.y, self.fold)
            if not low.max() < high.min():
                raise ValueError(Message("folds.constant"))
            learner = FoldMean(members, np.array([low.max(), high.min()]))
        model = FoldedTable(problem.target, learner)
        unproved = any(item.answers is None for item in self.models)  # no claim would say which the folds were
        model.memory = model.recall(problem.raw, seed=None if unproved else problem.seed)
        return model

    def certify(self, model: TableModel, delta: Decimal) -> Certificate:
        """Return the certificate: the mean loss of the models, and how it differs from the baselines'."""
        problem = self.problem
        classes = np.unique(problem.y) if problem.task == "classify" else None
        rows = model.rows(model.raw(problem.raw), problem.y)
        shares = [str(DOWN.multiply(delta, part)) for part in (1 - _BESIDE, _BESIDE)]
        make = self._of_classes if problem.task == "classify" else self._of_numbers
        stated: list[Any] = [Claim("data.identity", float(len(problem.y)), "lower", {"set": "train"}, ("train",))]
        stated += make(rows, *shares)
        return Certificate(
            claims=tuple(statement for statement in stated if isinstance(statement, Claim)),
            model=model_reference(model),
            data={"train": data_reference(rows, classes)},
            delta_total=str(delta),
            not_applicable=tuple(statement for statement in stated if isinstance(statement, NotApplicable)),
            unreported=tuple(
                (statement.name, statement.delta) for statement in stated if isinstance(statement, Vacuous)
            ),
            split=None,
        )

    # Claims

    def _of_classes(self, rows: scan.Rows, delta: str, beside: str) -> Iterator[Any]:
        """Yield the mean error rate, and the paired difference from the commonest class outside each fold."""
        every, order = np.unique(self.problem.y), BetOrder(rows, np.unique(self.problem.y))
        count, errors, limits, labels = len(self.models), [], [], []
        for model in self.models:
            codes, label = (
                np.searchsorted(every, self.problem.y[model.held]),
                int(np.searchsorted(every, model.baseline)),
            )
            wrong = model.answers != codes
            moved = 0.5 + 0.5 * (wrong & (codes == label)) - 0.5 * (~wrong & (codes != label))
            limit = concentration.betting_upper(moved[order.of_some(model.held)], float(beside) / count)
            errors.append(int(np.sum(wrong)))
            limits.append(min(1.0, limit + OUTWARD))
            labels.append(label)
        yield mean_of_folds(errors, self.fold, self.problem.seed, delta)
        witness = {"limits": np.array(limits), "labels": np.array(labels)}
        yield self._signed("cross-validation.baseline", 2 * float(np.mean(limits)) - 1, beside, witness)

    def _of_numbers(self, rows: scan.Rows, delta: str, beside: str) -> Iterator[Any]:
        """Yield the mean loss, and how it differs from that of the lower median outside each fold."""
        y, count = self.problem.y, len(self.models)
        low, high = ranges(y, self.fold)
        limits, against, order = np.ones(count), np.ones(count), BetOrder(rows)
        constants = np.array([model.baseline for model in self.models])
        for k, model in enumerate(self.models):
            target, width = np.clip(y[model.held], low[k], high[k]), high[k] - low[k]
            if model.answers is None:
                yield NotApplicable("cross-validation.mean-loss", Message("why.fold-predictor"))
                return
            losses = (
                np.abs(target - np.clip(model.answers[0], low[k], high[k])) + 2 * model.answers[1]
            ) / width + OUTWARD
            other = np.abs(target - constants[k]) / width
            mine = order.of_some(model.held)
            limits[k] = concentration.betting_upper(np.clip(losses, 0, 1)[mine], float(delta) / count)
            moved = np.clip((losses - other + 1) / 2 + OUTWARD, 0, 1)
            against[k] = concentration.betting_upper(moved[mine], float(beside) / count)
        limits, against = np.minimum(limits + OUTWARD, 1.0), np.minimum(against + OUTWARD, 1.0)
        ends = {"low": low, "high": high}
        value = float(np.mean(limits * (high - low))) * (1 + 1e-12)
        params = {"folds": count, "rows": len(y), "seed": self.problem.seed}
        if (limits < 1).any():
            yield claim("cross-validation.mean-loss", value, params, "train", delta, witness={**ends, "limits": limits})
        else:
            yield Vacuous(
                "cross-validation.mean-loss", Message("why.small-folds", rows=len(y) // count, folds=count), delta
            )
        difference = float(np.mean((2 * against - 1) * (high - low)))
        yield self._signed(
            "cross-validation.median", difference, beside, {**ends, "limits": against, "constants": constants}
        )

    def _signed(self, name: str, difference: float, delta: str, witness: dict[str, np.ndarray]) -> Claim:
        """Return a claim that a loss is above the baseline's by at most `difference`, or below it by at least that."""
        params = {"folds": len(self.models), "rows": len(self.fold), "seed": self.problem.seed}
        slack = 1e-12 * max(1.0, abs(difference))
        if difference + slack < 0:
            value, direction = -difference - slack, "lower"
        else:
            value, direction = difference + slack, "upper"
        return claim(name, value, params, "train", delta, direction=direction, witness=witness)


def _unproved(model: TableModel, view: str) -> str:
    """Return why the checker can tell nothing of a model's answers, whatever the rows; empty if it can."""
    X = np.load(view, mmap_mode="r")[:1]
    try:
        Gathered(model.learner.evidence(scan.rows(np.array(X), np.zeros(1, dtype=np.int64))))
    except ValueError as error:
        return reason(type(model.learner).__name__, error)
    return ""


def ranges(y: np.ndarray, fold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest target outside each fold."""
    parts = [y[fold != k] for k in range(int(fold.max()) + 1)]
    return np.array([part.min() for part in parts]), np.array([part.max() for part in parts])


def _bytes(stored: StoredModel) -> int:
    return sum(array.nbytes for array in stored.arrays.values()) + sum(_bytes(member) for member in stored.members)
