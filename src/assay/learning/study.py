"""`assay.learn`: from a table to the best model that can be proved, in the time given.

The rows are split once. Learners and settings are chosen by cross-validation inside the training rows (`search`); the
ranking fixes how delta is shared among the finalists, which are fitted to all training rows; then the hold-out rows
are opened, once (`finalists`). The baseline is a row of the leaderboard, and beating it is a claim of its own.
"""

import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from assay.claims.claim import Certificate
from assay.claims.definitions import outward, up
from assay.claims.definitions import percent as percent_up
from assay.data import Table, read
from assay.explain import Explanation, explain
from assay.guarantees.seal import RepeatedUseWarning
from assay.learning import baseline, spaces
from assay.learning import first as first_answer
from assay.learning.events import Event, Note
from assay.learning.finalists import Final
from assay.learning.metrics import Metric, chosen_metric
from assay.learning.model import TableModel
from assay.learning.problem import Problem, default_clip, posed
from assay.learning.resume import Scores, fingerprint
from assay.learning.search import Budget, Candidate, Search
from assay.learning.workers import Pool


@dataclass
class Study:
    """What `learn` found: the leaderboard, the chosen model, its certificate, the rows it was judged on."""

    task: str
    metric: Metric
    candidates: list[Candidate]
    chosen: Candidate
    model: TableModel
    certificate: Certificate
    confidence: str
    why: str
    notes: list[str]
    rows: tuple[int, int]
    table: Table
    clip: float | None = None
    source: str = "the table"
    baseline: Candidate = field(default_factory=lambda: Candidate(baseline.NAME))

    @property
    def leaderboard(self) -> Any:
        """A pandas frame, or a list of records without pandas: the chosen learner first."""
        records = [
            {
                "learner": one.name, "settings": dict(one.settings), "status": one.status, self.metric.name: one.cv,
                "training error": one.training_error, "hold-out error": one.holdout_error, "bound": one.bound,
                "seconds": one.seconds, "note": one.note,
            }
            for one in self.candidates
        ]  # fmt: skip
        try:
            import pandas
        except ImportError:
            return records
        return pandas.DataFrame(records)

    @property
    def holdout(self) -> tuple[Table, np.ndarray]:
        """The hold-out rows as a table, and their targets."""
        assert self.certificate.split is not None
        rows = self.table.take(self.certificate.split["holdout"])
        return rows, self.model.labels(rows)

    @property
    def encoded_holdout(self) -> tuple[np.ndarray, np.ndarray]:
        """The hold-out rows as the learner reads them, and their targets."""
        rows, y = self.holdout
        return self.model.encode(rows)[0], y

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model and its certificate to a file."""
        from assay.persist import save

        save(self.model, path, self.certificate)

    def report(self, path: str | PathLike[str]) -> None:
        """Write the report, one page of HTML."""
        from importlib import import_module

        import_module("assay.report").write_report(self, path, self.source)

    def explain(self, columns: Sequence[str] = ()) -> Explanation:
        """Return what the model does on the hold-out rows: what columns are worth and do, and where the errors are."""
        assert self.certificate.split is not None
        delta = float(1 - Decimal(self.confidence))
        return explain(self.model, self.table, self.certificate.split["holdout"], columns=columns, delta=delta)

    def plot(self) -> Any:
        """Return a figure of the leaderboard: each learner by cross-validation."""
        from assay.learning.figure import leaderboard

        return leaderboard(self)


def learn(
    table: Any,
    target: str,
    *,
    time: float | None = None,
    trials: int | None = None,
    metric: str | None = None,
    cost: Any = None,
    confidence: str = "0.95",
    holdout: float = 0.25,
    certify: str = "holdout",
    learners: Sequence[str] = (),
    exclude: Sequence[str] = (),
    group: str | None = None,
    time_column: str | None = None,
    seed: int = 0,
    clip: float | None = None,
    task: str | None = None,
    force: bool = False,
    workers: int | None = None,
    resume: str | PathLike[str] | None = None,
    tell: Callable[[Event], None] = lambda event: None,
    stop: Any = None,
) -> Study:
    """Choose, fit and certify the best model of a column of a table, in the time given.

    Parameters
    ----------
    table : a `Table`, or what `assay.data.read` reads: a file, a frame, a dict of columns.
    time : float, optional
        Seconds for everything; 60 if left out, and then it ends when two rounds of the search improve nothing.
    trials : int, optional
        Judge so many settings instead: the result is then the same, to the bit, on every machine.
    metric : str, optional
        What is minimised: error, balanced, logloss, auc, brier or f1 for classes; mae or rmse for numbers.
    cost : matrix (classes, classes), optional
        cost[i][j] is paid for deciding j where i is true, classes in sorted order; its mean is minimised.
    confidence : str
        A decimal number in (0, 1): the statements about new data hold together with this probability.
    holdout : float
        Share of the rows that nothing is fitted to.
    learners, exclude : names of learners to compare, and not to; "all" for every suitable one.
    group : column whose rows of one value stay together; time_column : column by which the newest rows are held out.
    clip : float, optional
        Regression: absolute errors count at most this, which makes a bound possible. If left out, the largest error
        of the median on the training rows.
    force : try learners that are named although there are too many rows for them.
    workers : processes that fit side by side, all cores if left out; 0: none beside this one.
    resume : a file of scores, which is made, or added to: candidates that an earlier run of the same study has judged
        are not fitted again for it. It also tells how often hold-out rows of the table were opened.
    tell : called with each event (`assay.learning.events`).
    stop : an event, or a function: ends the search when it is set, or true; so does the first Ctrl-C.

    Examples
    --------
    >>> import assay
    >>> study = assay.learn(assay.datasets.load("iris"), "species", learners=["LinearDiscriminantAnalysis"], workers=0)
    >>> study.chosen.name, study.chosen.bound < 0.25
    ('LinearDiscriminantAnalysis', True)
    """
    _check(time, trials, certify)
    budget = Budget(None if trials is not None else 60.0 if time is None else time, trials, stop)
    source = str(table) if isinstance(table, (str, PathLike)) else "the table"
    with tempfile.TemporaryDirectory(prefix="assay-") as folder, Pool(workers) as pool:
        known = table if isinstance(table, Table) else read(table)
        problem = posed(known, target, task, holdout, seed, group, time_column, Path(folder))
        clip = _clip(problem, clip)
        wanted = chosen_metric(metric, cost, problem.task, len(problem.classes))
        _tell_notes(problem, tell)
        delta = 1 - Decimal(confidence)
        if not learners:
            first_answer.begin(problem, wanted, pool, tell, delta, clip)
        asked = (problem.task, learners, exclude, len(problem.train))
        first, slow = spaces.suitable(*asked, force)
        rows = fingerprint(problem.table, target, problem.task)
        about = fingerprint(Table({}), rows, problem.held, seed, group, time_column, wanted.name, wanted.cost)
        scores = Scores(None if resume is None else Path(resume), about)
        search = Search(problem, wanted, pool, budget, tell, time is not None, scores)
        search.leave_out(slow, spaces.TOO_SLOW.format(len(problem.train)))
        search.run(first, lambda: spaces.others(*asked, first))
        _tell_opened(problem, *scores.opened(rows, delta), delta, tell)
        chosen, result = Final(problem, search, pool, budget, tell, delta, clip).run()
    return _study(problem, search, chosen, result, confidence, clip, source)


def _clip(problem: Problem, given: float | None) -> float | None:
    """Return up to what the errors of a regression count."""
    if problem.task == "classify" and given is not None:
        raise ValueError("--clip is for regression; the error rate of a classifier needs none.")
    return default_clip(problem.y[problem.train]) if problem.task == "regress" and given is None else given


def _tell_notes(problem: Problem, tell: Callable[[Event], None]) -> None:
    for note in problem.notes:
        tell(Note(note))


def _tell_opened(problem: Problem, times: int, spent: float, delta: Decimal, tell: Callable[[Event], None]) -> None:
    """Warn if the hold-out rows were opened before: what is chosen after looking twice is covered less."""
    if not times:
        return
    sure = 100 * (1 - min(1.0, spent + float(delta)))
    note = (
        f"Rows of this table were held out and opened {times} time{'s' if times > 1 else ''} before. Each result by "
        f"itself is as sure as it says; the best of all of them, only to {sure:.4g} %. New rows would mend that; "
        "another split of the same ones does not."
    )
    problem.notes.append(note)
    tell(Note(note))
    warnings.warn(note, RepeatedUseWarning, stacklevel=3)


def _check(time: float | None, trials: int | None, certify: str) -> None:
    if time is not None and not time > 0:
        raise ValueError(f"time must be a number of seconds > 0; got {time!r}.")
    if trials is not None and trials < 1:
        raise ValueError(f"trials must be a whole number > 0; got {trials!r}.")
    if certify != "holdout":
        raise ValueError(f'certify must be "holdout"; got {certify!r}.')


def _study(
    problem: Problem, search: Search, chosen: Candidate, result: dict[str, Any], confidence: str, clip: float | None,
    source: str,
) -> Study:  # fmt: skip
    base = _baseline(problem, search.metric)
    order = {"chosen": 0, "finalist": 1, "ranked": 2, "left out": 4}
    rest = sorted(search.all, key=lambda one: (order[one.status], -one.step, one.loss, one.number))
    place = next(
        (i for i, one in enumerate(rest) if i and (one.status == "left out" or one.loss > base.loss)), len(rest)
    )
    found = Study(
        problem.task, search.metric, [*rest[:place], base, *rest[place:]], chosen, result["model"],
        result["certificate"], confidence, "", problem.notes, (len(problem.train), len(problem.held)), problem.table,
        clip if problem.task == "regress" else None, source, base,
    )  # fmt: skip
    found.why = _why(found, problem)
    return found


def _baseline(problem: Problem, metric: Metric) -> Candidate:
    """Return the row of the leaderboard for a model that looks at no column."""
    own, held = problem.y[problem.train], problem.y[problem.held]
    value = baseline.constant(own, problem.task)
    row = Candidate(baseline.NAME, status="baseline", note=baseline.in_words(value, problem.task))
    n = len(problem.classes)
    if problem.task == "classify":
        shares = np.tile(baseline.shares(problem.codes, n), (len(own), 1))
        code = np.full(len(own), int(np.searchsorted(problem.classes, value)))
        row.losses = [metric.of(problem.codes, code, shares, n)]
        row.training_error, row.holdout_error = float(np.mean(own != value)), float(np.mean(held != value))
    else:
        row.losses = [metric.of(own, np.full(len(own), value), None, 0)]
        row.training_error, row.holdout_error = (
            float(np.mean(np.abs(own - value))),
            float(np.mean(np.abs(held - value))),
        )
    row.cv = metric.shown(row.loss)
    return row


def _why(found: Study, problem: Problem) -> str:
    """Return the choice in plain sentences: why this one, what is certain, and whether it is worth anything."""
    chosen, metric, classes = found.chosen, found.metric, found.task == "classify"
    judged = len({one.name for one in found.candidates if one.losses and one is not found.baseline})
    shown = f"{100 * chosen.cv:.1f} %" if metric.name in ("error", "balanced") else f"{chosen.cv:.4g}"
    why = (
        f"{chosen.name} is chosen: of {judged} learners tried on the {found.rows[0]} training rows its "
        f"{_WORDS[metric.name]} in cross-validation ({shown}) was the best, or level with "
        "the best."
    )
    if chosen.bound is None:
        units = "rows" if problem.group is None else "groups"
        return f"{why} Nothing is proved about its error on new data: there are too few {units} held out."
    sure = percent(found.confidence)
    said = (
        f"it errs in at most {percent_up(chosen.bound)} of cases"
        if classes
        else f"its mean absolute error (each counted up to {found.clip:.4g}) is at most {up(chosen.bound, 4)}"
    )
    where = "On new data like these" if problem.group is None else "In new groups like these, on average,"
    return f"{why} {where} {said}, with {sure} confidence; {_against_baseline(found)}"


def _against_baseline(found: Study) -> str:
    base = found.baseline
    rival = base.note.removeprefix("always ")
    claim = next((one for one in found.certificate.claims if one.template in ("P61/1", "P65/1")), None)
    if claim is not None and claim.direction == "lower" and claim.value > 0:
        by = percent_up(claim.value, "lower") if found.task == "classify" else outward(claim.value, "lower", 4)
        return f"it is proved to beat always answering {rival}, by at least {by}."
    error = base.holdout_error
    shown = f"{100 * error:.1f} %" if found.task == "classify" else f"{error:.4g}"
    if found.chosen.holdout_error >= error:
        return f"always answering {rival} does as well ({shown} on the rows held out): this model is worth nothing yet."
    return f"it is not proved to beat always answering {rival} ({shown} on the rows held out): more rows may show it."


_WORDS = {
    "error": "error rate", "balanced": "error rate with every class counted alike", "logloss": "log-loss",
    "auc": "area under the ROC curve", "brier": "Brier score", "f1": "F1", "cost": "mean cost",
    "mae": "mean absolute error", "rmse": "root mean squared error",
}  # fmt: skip


def percent(confidence: str | Decimal) -> str:
    """Return a confidence such as "0.95" in per cent."""
    return f"{Decimal(confidence) * 100:f}".rstrip("0").rstrip(".") + " %"
