"""The end of a study: who is certified on the hold-out rows, at which share of delta, and who is chosen.

The ranking of the cross-validation is known before the hold-out rows are opened, and fixes the shares: the first has
nine tenths of delta, those that cross-validation cannot tell from it share the last tenth. All bounds hold together,
so the smallest may be chosen; it is never above the first one's at 0.9 delta, which is within a few per cent of what
a single model fixed in advance would have had.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from assay.claims.claim import Certificate
from assay.guarantees.ledger import DOWN
from assay.guarantees.seal import Others
from assay.learning.events import Event, Finished, Started
from assay.learning.jobs import Answer, Certify, Pool
from assay.learning.problem import Problem
from assay.learning.search import Budget, Candidate, Search, failures, options_for
from assay.messages import Message, sentences

FIRST = Decimal("0.9")
MOST = 3


def finalists(ranked: list[Candidate], by_bound: bool) -> list[Candidate]:
    """Return the first of the ranking, and other learners within one standard error of it on the same folds."""
    first = ranked[0]
    results = [first]
    if not by_bound:
        return results
    for candidate in ranked[1:]:
        if len(results) == MOST:
            break
        if (
            candidate.step == first.step
            and candidate.name not in [other.name for other in results]
            and is_level(first, candidate)
        ):
            results.append(candidate)
    return results


def is_level(first: Candidate, other: Candidate) -> bool:
    """Tell whether the folds leave open which of two is better."""
    if len(first.losses) != len(other.losses) or len(first.losses) < 2:
        return False
    differences = np.subtract(other.losses, first.losses)
    return bool(differences.mean() <= differences.std(ddof=1) / np.sqrt(len(differences)))


def shares(delta: Decimal, count: int) -> list[Decimal]:
    """Return the share of delta of each finalist; together at most delta."""
    if count == 1:
        return [delta]
    rest = DOWN.divide(delta * (1 - FIRST), Decimal(count - 1))
    return [DOWN.multiply(delta, FIRST), *[rest] * (count - 1)]


class Finalist(NamedTuple):
    """A candidate that was certified on the hold-out rows, its model, and its certificate at its share of delta."""

    candidate: Candidate
    model: Any
    certificate: Certificate


class Final:
    """Fits and certifies finalists, and keeps what came of each."""

    def __init__(
        self, problem: Problem, search: Search, pool: Pool, budget: Budget, tell: Callable[[Event], None],
        delta: Decimal, clip: float | None, look: int,
    ) -> None:  # fmt: skip
        self.problem, self.search, self.pool, self.budget, self.tell = problem, search, pool, budget, tell
        self.delta, self.clip, self.look = delta, clip, look
        self.results: dict[int, dict[str, Any]] = {}
        self.tried: list[Candidate] = []  # by rank

    def run(self) -> tuple[Candidate, dict[str, Any]]:
        """Return the chosen candidate, its model and certificate; if all finalists fail, the next ones are tried, and
        those that failed stay paid for."""
        ranked = self.search.finishable()
        if not ranked:
            raise ValueError(Message("failed.all", reasons=failures(self.search.all)))
        by_bound = self.search.metric.name in ("error", "mae")
        chosen = self._in_time(finalists(ranked, by_bound))
        spare = [candidate for candidate in ranked if candidate not in chosen]
        left = self.delta
        while True:
            parts = (
                shares(left, len(chosen)) if not spare else shares(DOWN.multiply(left, Decimal("0.99")), len(chosen))
            )
            left -= sum(parts)
            self.tried += chosen
            self._certify(chosen, parts)
            best = [item for item in chosen if id(item) in self.results]
            if best:
                return self._best(best)
            chosen, spare = spare[:1], spare[1:]
            if not chosen:
                reasons = failures([candidate for candidate in self.search.all if candidate.note])
                raise ValueError(Message("failed.all", reasons=reasons))

    @property
    def certified(self) -> tuple[Finalist, ...]:
        """All that were certified, as cross-validation ranks them."""
        done = [(candidate, self.results[id(candidate)]) for candidate in self.tried if id(candidate) in self.results]
        return tuple(Finalist(item, result["model"], result["certificate"]) for item, result in done)

    def _in_time(self, chosen: list[Candidate]) -> list[Candidate]:
        """Return the first finalist, and the others if there is time for all; who said stop waits for one alone."""
        if self.budget.stopped:
            return chosen[:1]
        left = self.budget.left()
        needed = sum(self.search.finishing(item) for item in chosen) / max(1, self.pool.size)
        return chosen if left is None or needed < left else chosen[:1]

    def _best(self, finished: list[Candidate]) -> tuple[Candidate, dict[str, Any]]:
        with_bound = [candidate for candidate in finished if candidate.bound is not None]
        chosen = min(with_bound, key=lambda item: item.bound or 0.0) if with_bound else finished[0]
        chosen.status = "chosen"
        return chosen, self.results[id(chosen)]

    def _certify(self, chosen: list[Candidate], parts: list[Decimal]) -> None:
        claim = "holdout.binomial" if self.problem.task == "classify" else "holdout.betting"
        claim = claim if self.problem.group is None else "holdout.groups"
        name = self.problem.group_name
        groups = self.problem.raw.text(name)[self.problem.held] if name else None
        work = []
        for place, item in enumerate(chosen):
            entries = tuple((claim, str(part)) for i, part in enumerate(parts) if i != place)
            item.share = float(parts[place] / self.delta)
            encoding = self.problem.view(item.kind, item.plain)[0]
            asked = options_for(self.search.metric, self.clip, groups, name)
            others = Others(self.delta, entries)
            assert item.recipe is not None
            whole, task = self.problem.whole(), self.problem.task
            seed, newest = (self.problem.seed, None) if self.problem.time is None else (None, self.problem.newest_by)
            known = (task, seed, newest, self.look, self.search.metric)
            work.append(Certify(item.recipe, whole, encoding, parts[place], others, asked, *known))

        def done(place: int, answer: Answer) -> None:
            self._take(chosen[place], answer)

        def begun(place: int) -> None:
            self.tell(Started(chosen[place].name, chosen[place].settings, "final"))

        seconds = self.budget.seconds

        def over() -> bool:
            """Tell whether the time is over and there is a model; without one, the first is waited for."""
            return seconds is not None and self.budget.spent() > 1.05 * seconds and bool(self.results)

        self.pool.run(work, done, begun, over=over)
        for item in chosen:
            if id(item) not in self.results and item.status != "left out":
                item.status, item.note = "left out", Message("uncertified")

    def _take(self, candidate: Candidate, answer: Answer) -> None:
        if answer.result is None:
            candidate.status, candidate.note = "left out", answer.note
        else:
            result, problem = answer.result, self.problem
            candidate.status, candidate.seconds = "finalist", result["seconds"]
            candidate.note = sentences([candidate.note, answer.note])
            candidate.training_error = problem.mean_error(problem.y, result["train"])
            candidate.holdout_error = problem.mean_error(problem.held_targets(), result["held"])
            candidate.bound = certified(result["certificate"], problem.task)
            candidate.holdout_metric, metric = result["measured"], self.search.metric
            candidate.metric_bound = (
                candidate.bound if metric.error else metric_bound(result["certificate"], metric.name)
            )
            self.results[id(candidate)] = result
        self.tell(Finished(candidate))


_OF_METRIC = {"auc": "holdout.auc", "f1": "holdout.f1", "balanced": "holdout.balanced", "cost": "cost.holdout"}


def metric_bound(certificate: Certificate, metric: str) -> float | None:
    """Return what is proved of a metric that is no error rate or mean absolute error; None if nothing is."""
    name = _OF_METRIC.get(metric, "")
    if metric == "brier":
        return min((claim.value for claim in certificate.claims if claim.params.get("loss") == "brier"), default=None)
    return next((claim.value for claim in certificate.claims if claim.name == name), None)


def certified(certificate: Certificate, task: str) -> float | None:
    """Return the bound of the error rate, or the least of the mean clipped error, of new rows or of new groups; None if
    there is none."""
    quantities = ("error rate" if task == "classify" else "mean loss", "mean loss of groups")
    values = [
        claim.value
        for claim in certificate.claims
        if not claim.is_fact and claim.quantity in quantities and claim.direction == "upper"
        and claim.params.get("loss", "absolute") == "absolute"
    ]  # fmt: skip
    return min(values, default=None)
