"""The choice among learners and settings, by cross-validation inside the training rows.

It goes in rounds. The first fits each learner of a short list with its own settings. Each later round lets the best
third go on to further folds, or more rows (successive halving; Jamieson and Talwalkar 2016), and tries settings of the
best learners: drawn from their ranges, and near the best so far. What a round holds depends on the results of the
rounds before and on nothing else, so that a number of trials gives the same on every machine; a time budget only
decides after which round, or within which, it ends.

Unless a time was asked for, the search ends with the first round that improves nothing beyond noise: the best is not
better than the best before it by two standard errors of the difference of their losses on the same folds. What lies
within them further trials on these rows could not tell apart either.

What a study writes down so that a second run of it goes on from there: scores, as lines of JSON.

A line holds what cross-validation found of one candidate, under a digest of all that it depends on: the rows, the
split, the folds, the metric, the learner with its settings and seed, the version. Lines that are no such thing are
passed over; nothing in the file is run, and a certificate never rests on it.
"""

import hashlib
import itertools
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import assay
from assay.base import Learner
from assay.fitlog import Interrupts
from assay.guarantees.ledger import CertifyOptions
from assay.learning import spaces
from assay.learning.events import Event, Finished, Left, Started
from assay.learning.jobs import SMALL, Answer, Judge, Pool, Recipe, together
from assay.learning.metrics import Metric
from assay.learning.problem import FOLDS, Problem
from assay.messages import Message, from_plain, plain
from assay.stored import class_name


def fingerprint(*more: Any) -> str:
    """Return a digest of what is given."""
    result = hashlib.blake2b(digest_size=20)
    result.update(json.dumps([assay.__version__, *more], default=_plain).encode())
    return result.hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=20).hexdigest()
    return vars(value) if hasattr(value, "__dict__") else str(value)


class Scores:
    """The scores of a study: those of earlier runs, and a file to which new ones are added; without one, none."""

    def __init__(self, path: Path | None, about: str) -> None:
        self.path, self.about = path, about
        self._known: dict[str, dict[str, Any]] = {}
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path and path.exists() else []
        for line in lines:
            self._take(line)

    def _take(self, line: str) -> None:
        try:
            record = json.loads(line)
            losses, seconds = ([float(item) for item in record[name]] for name in ("losses", "seconds"))
            results: dict[str, Any] = {"losses": losses, "seconds": seconds, "per_row": float(record["per_row"])}
            key, note = str(record["key"]), from_plain(record["note"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return
        numbers = [*losses, *seconds, results["per_row"]]
        if losses and len(losses) == len(seconds) and all(math.isfinite(number) for number in numbers):
            self._known[key] = {"result": results, "note": note}

    def key(self, *what: Any) -> str:
        """Return the digest under which a score is kept."""
        text = json.dumps([self.about, *what], default=_plain)
        return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()

    def find(self, key: str, pairs: int) -> dict[str, Any] | None:
        """Return `result` and `note` of an earlier run on so many pairs."""
        result = self._known.get(key)
        return result if result is not None and len(result["result"]["losses"]) == pairs else None

    def add(self, key: str, result: dict[str, Any], note: str) -> None:
        """Write down what was found."""
        self._write(
            {"key": key, **{name: result[name] for name in ("losses", "seconds", "per_row")}, "note": plain(note)}
        )

    def _write(self, record: dict[str, Any]) -> None:
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")


_PATIENCE = 6  # rounds without any improvement, where a time was asked for
_STACKED = 6  # fits of each member that a stack takes: five folds and all rows
_TUNED = 3  # learners that are tuned
_NEW = 3  # settings of each in a round
_GOING_ON = 4  # candidates that may go on to the next step in one round


@dataclass
class Candidate:
    """One learner with its settings. `loss` is the mean over the pairs judged so far; smaller is better.

    `status` is "ranked", "finalist", "chosen", "baseline", "left out" or "first" (a certified answer that is told while
    the search runs, `learning.study`); `note` says why, or what the fit warned of. `number` counts them as they are
    made.
    Errors are shares of rows (classes) or mean absolute errors (numbers); `cv` and `holdout_metric` are numbers of the
    metric that was asked for, and so is `metric_bound`, if there is a bound of it.

    Parameters
    ----------
    name : str
        Name of the learner.
    settings : dict
        Its parameters.
    status : str, default="ranked"
        What became of it.
    losses : list of float
        Loss on each fold.
    step : int, default=0
        Number of folds it was judged on.
    cv : float, default=nan
        Cross-validated value of the metric.
    training_error : float, default=nan
        Error on the training rows.
    holdout_error : float, default=nan
        Error on the hold-out rows.
    bound : float or None
        Upper bound of the error on new data; None: it has none.
    holdout_metric : float, default=nan
        Value of the metric on the hold-out rows.
    metric_bound : float or None
        Bound of the metric on new data; None: it has none.
    seconds : float, default=0.0
        Time spent on it.
    note : str, default=""
        Why it was left out, or what the fit warned of.
    kind : class or None
        Class of the learner.
    recipe : Recipe or None
        How its rows are made of the table.
    plain : bool, default=False
        Whether the parameters are the defaults.
    per_row : float, default=0.0
        Seconds that a prediction takes for each row.
    share : float, default=0.0
        Its share of delta.
    number : int, default=0
        When it was made, counted from 0.
    late : bool, default=False
        Whether it was not in the first list.
    """

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    status: str = "ranked"
    losses: list[float] = field(default_factory=list)
    step: int = 0
    cv: float = np.nan
    training_error: float = np.nan
    holdout_error: float = np.nan
    bound: float | None = None
    holdout_metric: float = np.nan
    metric_bound: float | None = None
    seconds: float = 0.0
    note: str = ""
    kind: Any = None
    recipe: Recipe | None = None
    plain: bool = False
    per_row: float = 0.0
    share: float = 0.0
    number: int = 0
    late: bool = False  # not of the first list

    @property
    def loss(self) -> float:
        """The mean of its losses."""
        return float(np.mean(self.losses)) if self.losses else np.inf


def failures(candidates: Sequence[Candidate]) -> list[Message]:
    """Return why candidates came to nothing, or that nothing was fitted in time."""
    results = [Message("failed.one", name=candidate.name, why=candidate.note) for candidate in candidates]
    return results or [Message("failed.time")]


def was_stopped(candidate: Candidate) -> bool:
    """Tell whether a candidate was stopped because it took too long."""
    return isinstance(candidate.note, Message) and candidate.note.code == "late"


class Budget:
    """Time, trials, and somebody who may say stop. `aside` tells how many seconds so far do not count."""

    def __init__(
        self, seconds: float | None, trials: int | None, stop: Any, aside: Callable[[], float] = lambda: 0.0
    ) -> None:
        self.seconds, self.trials, self.done, self.aside = seconds, trials, 0, aside
        self.began = time.monotonic() - aside()
        self._asked = stop.is_set if hasattr(stop, "is_set") else stop
        self.heard = Interrupts()
        self.stopped = False

    def spent(self) -> float:
        """Return the seconds since it began that count."""
        return time.monotonic() - self.began - self.aside()

    def left(self) -> float | None:
        return None if self.seconds is None else max(0.0, self.seconds - self.spent())

    def is_stopped(self) -> bool:
        self.heard.check()
        asked = self.heard.asked or (self._asked is not None and self._asked())
        self.stopped = self.stopped or bool(asked)
        return self.stopped


class Search:
    """Judges candidates in rounds until nothing improves, or the budget ends."""

    def __init__(
        self,
        problem: Problem,
        metric: Metric,
        pool: Pool,
        budget: Budget,
        tell: Callable[[Event], None],
        thorough: bool,
        scores: Scores,
    ) -> None:
        self.problem, self.metric, self.pool, self.budget, self.tell = problem, metric, pool, budget, tell
        self.thorough, self.scores = thorough, scores
        self.all: list[Candidate] = []
        self.numbers: dict[str, int] = {}
        self.made = 0
        self.rungs = list(problem.rungs)
        if not thorough and budget.trials is None and len(problem.train) > 400:  # a second look, not a third
            self.rungs[1] = self.rungs[1][:FOLDS]

    def leave_out(self, names: Sequence[str], why: str) -> None:
        """List learners that are not tried, with the reason."""
        self.all += [Candidate(name, status="left out", note=why) for name in names]

    def run(self, first: list[type[Learner]], others: Callable[[], list[type[Learner]]]) -> None:
        """Fill `all`. The first Ctrl-C ends the current fits and keeps what is done, also where a fit swallows it;
        where nothing is done yet it goes on to the caller."""
        try:
            with self.budget.heard:
                self._judge([self._new(kind, dict(kind.card.begin(len(self.problem.train)))) for kind in first], 0)
                if not self._is_over():
                    self._judge(self._of_logarithms(), 0)
                waited, best = 0, self._best()
                while not self._is_over() and waited < (_PATIENCE if self.thorough else 1):
                    self._judge(self._going_on(), 1)
                    if not self._is_over():
                        self._judge(self._tuned(), 0)
                        self._judge(self._going_on(), 1)
                    before, best = best, self._best()
                    waited = 0 if self._improves(best, before) else waited + 1
                if self.thorough and not self._is_over():
                    self.pool.waits_for_loops = False  # of so many learners
                    self._judge([replace(self._new(kind, {}), late=True) for kind in others()], 0)
                    self._judge(self._going_on(), 1)
                if not self._is_over():
                    self._judge(self._combined(), 0)
                    self._judge(self._going_on(), 1)
        except KeyboardInterrupt:
            self.budget.stopped = True
            self.budget.heard.check()
        if self.budget.stopped and not self.ranked():
            raise KeyboardInterrupt

    def ranked(self) -> list[Candidate]:
        """Return what was judged, best first: those that came furthest before the others."""
        judged = [candidate for candidate in self.all if candidate.losses and candidate.status != "left out"]
        usual = min(
            (verdict for verdict in judged if not verdict.late),
            key=lambda candidate: (-candidate.step, candidate.loss),
            default=None,
        )
        return sorted(judged, key=lambda item: (-item.step, item.loss + _doubt(item, usual), item.number))

    def _best(self) -> Candidate | None:
        return next(iter(self.ranked()), None)

    def _improves(self, new: Candidate | None, old: Candidate | None) -> bool:
        """Tell whether the best of a round is better than that of the round before; see the rule above."""
        if new is None or old is None or new is old:
            return old is None and new is not None
        common = min(len(new.losses), len(old.losses))
        gains = np.subtract(old.losses[:common], new.losses[:common])
        noise = 2 * gains.std(ddof=1) / np.sqrt(common) if common > 1 and not self.thorough else 1e-12
        return bool(gains.mean() > noise)

    def reserve(self) -> float:
        """Return the seconds that fitting and certifying the best so far will take, with some room."""
        return 0.3 + 1.4 * min((self.finishing(candidate) for candidate in self.finishable()[:1]), default=0.0)

    def finishable(self) -> list[Candidate]:
        """Return what was judged, best first: those that can be fitted to all training rows and certified in the time
        that is left before the others, of which the fastest comes first."""
        ranked, left = self.ranked(), self.budget.left()
        if left is None:
            return ranked
        left += 0.08 * (self.budget.seconds or 0.0)  # a budget may be passed by a little
        slow = [candidate for candidate in ranked if 0.3 + 1.3 * self.finishing(candidate) > left]
        return [candidate for candidate in ranked if candidate not in slow] + sorted(slow, key=self.finishing)

    def finishing(self, candidate: Candidate) -> float:
        """Return how long a candidate takes to be fitted to all training rows and certified, about. A certificate asks
        the model for its answer to a row up to four times; models that keep rows are slower by those that are added."""
        rows = len(self.problem.train)
        kept = min(rows / len(self.rungs[candidate.step][0].fit), 2.0) if candidate.kind.card.most_rows else 1.0
        return (
            candidate.seconds * self._growth(candidate, rows)
            + 4 * candidate.per_row * kept * self.problem.certified
            + 0.2
        )

    def _growth(self, candidate: Candidate, rows: int) -> float:
        """Return how many times as long a fit to so many rows takes as those that were timed, about: if these were a
        small part of the rows, on one thread, all threads will share the work."""
        fitted = len(self.rungs[candidate.step][0].fit)
        times = rows / fitted
        if times < 2 or fitted > SMALL or candidate.kind.card.most_rows:
            return times**1.1
        return times / (1 + 0.75 * (max(1, self.pool.size) - 1))

    def _is_over(self) -> bool:
        left = self.budget.left()
        full = self.budget.trials is not None and self.budget.done >= self.budget.trials
        return full or self._is_stopped() or (left is not None and left < self.reserve())

    def _is_stopped(self) -> bool:
        """Tell whether to stop: at Ctrl-C at once, where the caller asks for it once there is a result to keep."""
        return self.budget.is_stopped() and (bool(self.budget.heard.asked) or bool(self.ranked()))

    def _new(
        self, kind: type[Learner], settings: dict[str, Any], members: tuple[Recipe, ...] = (), *, log: bool = False
    ) -> Candidate:
        """Return a candidate; with `log` a regression of the logarithm of the target."""
        wrapping = (class_name(spaces.in_role("regress", "target")), None, "") if log else self._wrapping(kind)
        recipe = Recipe(class_name(kind), settings, self.problem.seed, members, *wrapping)
        name = f"{kind.__name__} of the log target" if log else kind.__name__
        if members:
            name = f"{kind.card.role.capitalize()} of " + ", ".join(m.kind.split(".")[-1] for m in members)
        self.made += 1
        plain = bool(members or recipe.wrapped)
        return Candidate(name, settings, kind=kind, recipe=recipe, plain=plain, number=self.made)

    def _of_logarithms(self) -> list[Candidate]:
        """Return what was judged as regressions of the logarithm of the target, if that is skewed on the training rows:
        who is best may be another one then."""
        from assay.ensemble._log_target import is_skewed

        if self.problem.task != "regress" or not is_skewed(self.problem.y):
            return []
        judged = sorted(self.ranked(), key=lambda item: item.number)
        return [self._new(verdict.kind, verdict.settings, log=True) for verdict in judged]

    def _wrapping(self, kind: type[Learner]) -> tuple[str, Any, str]:
        """Return the learner that moves the threshold for the metric, where the probabilities are there for it."""
        two, name = len(self.problem.classes) == 2, self.metric.name
        if not hasattr(kind, "predict_proba") or name not in ("balanced", "f1", "cost") or (name == "f1" and not two):
            return "", None, ""
        if name == "cost":
            return class_name(spaces.in_role("classify", "cost")), self.metric.cost.tolist(), ""
        return class_name(spaces.in_role("classify", "threshold")), None, name if two else "prior"

    def _judge(self, candidates: list[Candidate], step: int) -> None:
        """Judge candidates on the pairs of a step, side by side."""
        if self.budget.trials is not None and step == 0:
            candidates = candidates[: max(0, self.budget.trials - self.budget.done)]
        candidates = [candidate for candidate in candidates if not self._known(candidate, step)]
        count = self._parts(len(candidates), step)
        work = [job for candidate in candidates for job in self._jobs(candidate, step, count)]
        answers: list[list[Answer | None]] = [[None] * count for _ in candidates]
        seconds = self.budget.seconds

        def begun(place: int) -> None:
            if place % count == 0:
                self.tell(Started(candidates[place // count].name, candidates[place // count].settings))

        def done(place: int, answer: Answer) -> None:
            one, parts = candidates[place // count], answers[place // count]
            parts[place % count] = answer
            known = [part for part in parts if part is not None]
            if len(known) == count:
                answer = together(known)
                if answer.result is not None:
                    self.scores.add(self._key(one, step), answer.result, answer.note)
                self._take(one, answer, step)

        def limit() -> float | None:
            slow = None if seconds is None else max(5.0, (0.4 if self.thorough else 1.0) * seconds)
            return slow if self.ranked() else None

        self.pool.run(work, done, begun, limit=limit, over=self._out_of_time)

    def _key(self, candidate: Candidate, step: int) -> str:
        reads = sorted(candidate.kind.card.input) if not candidate.plain else []
        return self.scores.key(candidate.recipe, candidate.plain, reads, step)

    def _known(self, candidate: Candidate, step: int) -> bool:
        """Take the score that an earlier run of the same study found, if there is one."""
        result = self.scores.find(self._key(candidate, step), len(self.rungs[step]))
        if result is not None:
            self._take(candidate, Answer(result["result"], result["note"]), step)
        return result is not None

    def _parts(self, candidates: int, step: int) -> int:
        """Return into how many jobs a candidate is cut, so that no worker is idle while another has many folds."""
        pairs = len(self.rungs[step]) if step < len(self.rungs) else 1
        return max(1, min(pairs, self.pool.size)) if candidates < 8 * self.pool.size else 1

    def _out_of_time(self) -> bool:
        """Tell whether to stop; the time does not end before there is something to return."""
        left = self.budget.left()
        return self._is_stopped() or (left is not None and left < self.reserve() and bool(self.ranked()))

    def _jobs(self, candidate: Candidate, step: int, count: int) -> list[Judge]:
        assert candidate.recipe is not None
        encoding, path = self.problem.view(candidate.kind, candidate.plain)
        pairs, n_classes = self.rungs[step], len(self.problem.classes)
        cuts = [round(i * len(pairs) / count) for i in range(count + 1)]
        return [
            Judge(
                candidate.recipe, path, self.problem.target_file, encoding.nominal(), pairs[a:b], self.metric, n_classes
            )
            for a, b in itertools.pairwise(cuts)
        ]  # fmt: skip

    def _take(self, candidate: Candidate, answer: Answer, step: int) -> None:
        many = len(self.problem.train) > 30_000
        self.budget.done += step == 0
        if candidate not in self.all:
            self.all.append(candidate)
        candidate.note = answer.note
        if answer.result is None and step == 0:
            candidate.status = "left out"
        elif answer.result is not None:
            losses = answer.result["losses"]
            candidate.losses = losses if many and step else [*candidate.losses, *losses]
            candidate.step, candidate.cv = step, self.metric.shown(candidate.loss)
            candidate.seconds, candidate.per_row = float(np.median(answer.result["seconds"])), answer.result["per_row"]
        self.tell(Finished(candidate))
        self.tell(Left(self.budget.left(), self.budget.done))

    def _going_on(self) -> list[Candidate]:
        """Return the best that have not come to the last step: those that may be better than the best that have."""
        if len(self.rungs) < 2 or not self.rungs[1]:
            return []
        judged = sorted(self.ranked(), key=lambda candidate: (candidate.loss, candidate.number))
        waiting = [verdict for verdict in judged if verdict.step == 0 and not was_stopped(verdict)]
        some = waiting[: min(_GOING_ON, -(-len(waiting) // 3))]
        best = min(judged, key=lambda item: float(np.mean(item.losses[: len(self.rungs[0])])), default=None)
        return [
            other_item
            for other_item in some
            if best is None or (self._may_be_best(other_item, best) and self._has_time_for(other_item))
        ]

    def _has_time_for(self, candidate: Candidate) -> bool:
        """Tell whether the time that is left is enough to judge a candidate on the pairs of the last step, one after
        the other, and to fit and certify it then; by how long its fits took so far."""
        left, pairs = self.budget.left(), self.rungs[1]
        judging = len(pairs) * candidate.seconds * self._growth(candidate, len(pairs[0].fit))
        judging += candidate.per_row * sum(len(pair.judge) for pair in pairs)
        return left is None or judging / self._parts(1, 1) + self.finishing(candidate) < left

    def _may_be_best(self, candidate: Candidate, best: Candidate) -> bool:
        """Tell whether the folds leave open which is better: within one standard error of their difference, or two
        where a time was asked for."""
        common = min(len(candidate.losses), len(best.losses))
        if common < 2:
            return True
        behind = np.subtract(candidate.losses[:common], best.losses[:common])
        return bool(behind.mean() <= (2 if self.thorough else 1) * behind.std(ddof=1) / np.sqrt(common))

    def _tuned(self) -> list[Candidate]:
        """Return new settings of the best learners that have any, and that are not clearly behind the best one."""
        best: dict[str, Candidate] = {}
        judged = sorted(self.ranked(), key=lambda candidate: (candidate.loss, candidate.number))
        for item in judged:
            if spaces.tunable(item.kind) and not (item.recipe and item.recipe.members):
                best.setdefault(item.name, item)
        if not self.thorough:
            best = {name: other_item for name, other_item in best.items() if self._may_be_best(other_item, judged[0])}
        results, tuned = [], list(best.values())[:_TUNED]
        if self.thorough:
            tuned += [other_item for other_item in list(best.values())[_TUNED:] if other_item.kind.card.always_tuned]
        for place, item in enumerate(tuned):
            for _ in range(_NEW if place == 0 else 2):
                number = self.numbers[item.name] = self.numbers.get(item.name, 0) + 1
                settings = (
                    spaces.near(item.kind, item.settings, number, self.problem.seed)
                    if number % 2 == 0
                    else spaces.drawn(item.kind, number, self.problem.seed)
                )
                log = self.problem.task == "regress" and item.recipe is not None and bool(item.recipe.wrapped)
                results.append(self._new(item.kind, settings, log=log))
        return results

    def _combined(self) -> list[Candidate]:
        """Return the vote and the stack of the best learners of different kinds that certificates can join, but no
        longer than a quarter of what the search took so far, or half of the time that is left of what was asked for.
        Votes read numbers alone: unless a time was asked for, who was judged on other columns is no member."""
        best: dict[str, Candidate] = {}
        for candidate in self.ranked():
            alike = self.thorough or self._reads_numbers(candidate)
            if candidate.recipe is not None and not candidate.recipe.wrapped and alike and self._joins(candidate):
                best.setdefault(candidate.name, candidate)
        members = list(best.values())[:3]
        if len(members) < 2 or len(self.problem.train) > 30_000:
            return []
        recipes = tuple(member.recipe for member in members if member.recipe is not None)
        one_fit = sum(member.seconds for member in members) * len(self.rungs[0])
        left, workers = self.budget.left(), max(1, self.pool.size)
        room = np.inf if left is None else 0.5 * left if self.thorough else 0.25 * min(left, self.budget.spent())
        roles = [role for role, fits in (("vote", 1), ("stack", _STACKED)) if one_fit * fits / workers <= room]
        return [self._new(spaces.in_role(self.problem.task, role), {}, recipes) for role in roles]

    def _reads_numbers(self, candidate: Candidate) -> bool:
        """Tell whether a learner was judged on numbers alone, none of them missing."""
        encoding, path = self.problem.view(candidate.kind, candidate.plain)
        return not encoding.nominal() and not np.isnan(np.load(path, mmap_mode="r")).any()

    def _joins(self, candidate: Candidate) -> bool:
        """Tell whether the probabilities of a learner are ones that certificates of votes and stacks can read."""
        if self.problem.task == "regress":
            return True
        from assay.ensemble._combined import may_have_probability_link

        return may_have_probability_link(candidate.kind())


def _doubt(candidate: Candidate, usual: Candidate | None) -> float:
    """Return by how much a learner that is not of the first list must be better than the best of it: by a standard
    error of the difference. There are many such learners, and the best of many looks better than it is."""
    if usual is None or not candidate.late:
        return 0.0
    common = min(len(candidate.losses), len(usual.losses))
    apart = np.subtract(candidate.losses[:common], usual.losses[:common])
    return float(apart.std(ddof=1) / np.sqrt(common)) if common > 1 else 0.0


def options_for(metric: Metric, clip: float | None, groups: np.ndarray | None, name: str = "") -> CertifyOptions:
    """Return what certificates of the finalists are asked for; `groups` are the values of the column `name` on the
    hold-out rows."""
    return CertifyOptions(
        clip=clip, scores=metric.name in ("auc", "brier"), hypothesis_class_fixed=False, baseline=True, groups=groups,
        group_name=name, metric=metric.name, positive=metric.positive,
    )  # fmt: skip
