"""`assay.learn`: from a table to the best model that can be proved, in the time given.

Rows are held out once (or, `certify="folds"`, each fold is judged by a model made without it: `folds`). Learners and
settings are chosen by cross-validation inside the training rows (`search`); the ranking fixes how delta is shared among
the finalists, which are fitted to all training rows; then the hold-out rows are opened, once (`finalists`). The
baseline is a row of the leaderboard, and beating it is a claim of its own.

A first certified answer comes within seconds, while the search has just begun: a linear model whose settings are
fixed before any row is seen is fitted to a part of the training rows and certified on others of them, drawn at
random. The hold-out rows stay closed, so whoever sees this row and stops the search takes nothing from the bounds of
the finalists. It is a statement by itself, at the confidence asked for, and no candidate: the same learner is judged
with all others.
"""

import pickle
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import cache, cached_property, partial
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from assay.checker.rules.folds import of_vote
from assay.claims.claim import Certificate
from assay.data import Encoding, RawTable, Table, raw_table
from assay.explain import Explanation, explain, grouped
from assay.guarantees.seal import Others, RepeatedUseWarning
from assay.learning import baseline, notebook, spaces, verdict
from assay.learning import looks as looking
from assay.learning.events import Event, First, Note
from assay.learning.finalists import Final, Finalist, certified
from assay.learning.folds import FoldModel, Folds
from assay.learning.jobs import Answer, Certify, Pool, Recipe
from assay.learning.metrics import Metric, chosen_metric
from assay.learning.model import TableModel, checked_input
from assay.learning.problem import (
    Problem,
    about_held_rows,
    default_clip,
    hold_out,
    informative_columns,
    make_problem,
    training_target,
    with_target,
)
from assay.learning.search import Budget, Candidate, Scores, Search, fingerprint, options_for
from assay.messages import Message, sentences
from assay.stored import class_name


@dataclass
class Study:
    """What `learn` found: the leaderboard, the chosen model, its certificate, and the rows of the table that have a
    target; `features` are the columns as the training rows were read, `finalists` all that were certified.

    Parameters
    ----------
    task : str
        "classify" or "regress".
    metric : Metric
        What was minimised.
    candidates : list of Candidate
        The leaderboard.
    chosen : Candidate
        The candidate chosen.
    model : TableModel
        The fitted model.
    certificate : Certificate
        Its certificate.
    confidence : str
        Confidence of the statements about new data.
    why : str
        Why it was chosen.
    notes : list of str
        What was noticed.
    rows : tuple of int
        Numbers of training and hold-out rows.
    raw : RawTable
        The cells of the table.
    features : Table
        The columns as the training rows were read.
    clip : float or None
        Absolute errors count at most this.
    source : str, default="the table"
        Name of the table.
    baseline : Candidate
        The baseline.
    folds : tuple of FoldModel, default=()
        Models of the folds, if no row is held out.
    finalists : tuple of Finalist, default=()
        All candidates that were certified.
    """

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
    raw: RawTable
    features: Table
    clip: float | None = None
    source: str = "the table"
    baseline: Candidate = field(default_factory=lambda: Candidate(baseline.NAME))
    folds: tuple[FoldModel, ...] = ()
    finalists: tuple[Finalist, ...] = ()

    def __repr__(self) -> str:
        return notebook.study_text(self)

    def _repr_html_(self) -> str:
        return notebook.study_html(self)

    @property
    def leaderboard(self) -> Any:
        """A pandas frame, or a list of records without pandas: the chosen learner first."""
        records = [
            {
                "learner": candidate.name, "settings": dict(candidate.settings), "status": candidate.status,
                self.metric.name: candidate.cv, "training error": candidate.training_error,
                "hold-out error": candidate.holdout_error,
                "bound": candidate.bound, "seconds": candidate.seconds, "note": candidate.note,
            }
            | ({} if self.metric.error else {
                f"hold-out {self.metric.name}": candidate.holdout_metric,
                f"bound of {self.metric.name}": candidate.metric_bound,
            })
            for candidate in self.candidates
        ]  # fmt: skip
        try:
            import pandas
        except ImportError:
            return records
        return pandas.DataFrame(records)

    @property
    def judged(self) -> tuple[TableModel, np.ndarray]:
        """The model that explanations are about, and the numbers of the rows that it was not fitted to.

        These are the chosen model and the hold-out rows; where every row was fitted to, the first fold's model and the
        rows of this fold.
        """
        if self.folds:
            return self.folds[0].model, self.folds[0].held
        assert self.certificate.split is not None
        return self.model, np.asarray(self.certificate.split["holdout"])

    @cached_property
    def table(self) -> Table:
        """All rows that have a target, as the model reads them, with the target."""
        target = self.raw.read_as((self.model.target,), lenient=True)
        columns = self.model.read(self.raw, lenient=True).columns | target.columns
        return Table(columns.values(), n_rows=self.raw.n_rows)

    @property
    def holdout(self) -> tuple[RawTable, np.ndarray]:
        """The rows of `judged`, and their targets."""
        model, held = self.judged
        rows = self.raw.take(held)
        return rows, model.labels(rows)

    @property
    def encoded_holdout(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows of `judged` as the learner reads them, and their targets."""
        rows, y = self.holdout
        return self.judged[0].encode(rows, lenient=True)[0], y

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model and its certificate to a file.

        Parameters
        ----------
        path : str or PathLike
            File to write.
        """
        from assay.persist import save

        save(self.model, path, self.certificate)

    def report(self, path: str | PathLike[str]) -> None:
        """Write the report, one page of HTML.

        Parameters
        ----------
        path : str or PathLike
            File to write.
        """
        from importlib import import_module

        import_module("assay.report").write_report(self, path, self.source)

    def explain(self, columns: Sequence[str] = ()) -> Explanation:
        """Return what the model does on the hold-out rows: what columns are worth and do, and where the errors are; see
        `judged`."""
        model, held = self.judged
        return explain(model, self.raw, held, columns=columns, **self.explaining)

    @property
    def explaining(self) -> dict[str, Any]:
        """What `explain` needs to know of the study: delta and the share of it that the chosen model had among the
        finalists, up to what errors count, and whether rows come in groups."""
        delta, share = float(self.certificate.delta_total), 1.0 if self.folds else self.chosen.share
        return {"delta": delta, "share": share, "clip": self.clip, "grouped": grouped(self.certificate)}

    def plot(self) -> Any:
        """Return a figure of the leaderboard: each learner by cross-validation."""

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
    holdout: float | None = None,
    certify: str = "holdout",
    folds: int = 3,
    learners: Sequence[str] = (),
    exclude: Sequence[str] = (),
    group: str | None = None,
    time_column: str | None = None,
    seed: int = 0,
    clip: float | None = None,
    task: str | None = None,
    force: bool = False,
    workers: int | None = None,
    looks: int | None = None,
    resume: str | PathLike[str] | None = None,
    tell: Callable[[Event], None] = lambda event: None,
    stop: Any = None,
) -> Study:
    """Choose, fit and certify the best model of a column of a table, in the time given.

    Parameters
    ----------
    table : path, frame, dict or RawTable
        What `assay.data.read` reads; or `assay.data.raw_table` of it, which says which columns are nominal or ordered.
    target : str
        Name of the column that is predicted.
    time : float or None
        Seconds for everything; None: 60, and it ends when two rounds of the search improve nothing.
    trials : int or None
        Judge so many settings instead: the result is then the same, to the bit, on every machine.
    metric : str or None
        What is minimised: error, balanced, logloss, auc, brier or f1 for classes; mae, rmse or r2 for numbers. Names of
        scikit-learn's scorers are understood ("accuracy", "roc_auc", "neg_mean_absolute_error", ...).
    cost : array-like of shape (n_classes, n_classes) or None
        cost[i][j] is paid for deciding j where i is true, classes in sorted order; its mean is minimised.
    confidence : str, default="0.95"
        A decimal number in (0, 1): the statements about new data hold together with this probability.
    holdout : float or None
        Share of the rows that nothing is fitted to; None: a quarter, less of more than 2,000 rows.
    certify : "holdout" or "folds", default="holdout"
        With "folds" none is held out. Without each fold in turn a model is chosen and fitted, and judged on the fold;
        the model that is returned is their vote, or the mean of their numbers.
    folds : int, default=3
        Number of folds of certify="folds": more of them leave each model more rows to learn from, and its bound fewer;
        an odd one is best for a vote.
    learners, exclude : sequence of str
        Names of learners to compare, and not to; "all" for every suitable one.
    group : str or None
        Column whose rows of one value stay together.
    time_column : str or None
        Column by which the newest rows are held out.
    seed : int, default=0
        Seed of the split and of everything that is drawn.
    clip : float or None
        Regression: absolute errors count at most this, which makes a bound possible. None: the largest error of the
        median on the training rows.
    task : "classify", "regress" or None
        Whether classes or numbers are predicted; None: by the kind of the target.
    force : bool, default=False
        Try learners that are named although there are too many rows for them.
    workers : int or None
        Processes that fit side by side; None: all cores; 0: none beside this one.
    looks : int or None
        Split the hold-out rows in advance into so many parts. Each study of the same table and seed opens one that no
        earlier one has seen, so that whatever was changed in between is covered; see `assay.learning.looks`, also for
        the ledger that tells how often hold-out rows were looked at.
    resume : path or None
        A file of scores, which is made, or added to: candidates that an earlier run of the same study has judged are
        not fitted again for it.
    tell : callable
        Called with each event (`assay.learning.events`).
    stop : event, callable or None
        Ends the search when it is set, or true; so does the first Ctrl-C.

    Returns
    -------
    Study
        Leaderboard, chosen model and certificate.

    Examples
    --------
    >>> import assay
    >>> study = assay.learn(assay.datasets.load("iris"), "species", learners=["LinearDiscriminantAnalysis"], workers=0)
    >>> study.chosen.name, study.chosen.bound < 0.25
    ('LinearDiscriminantAnalysis', True)
    """
    _check(time, trials, certify, group, time_column, clip, seed, holdout)
    confidence = _share(confidence)
    if looks is not None and (certify == "folds" or time_column is not None):
        raise ValueError(Message("looks.drawn"))
    budget = Budget(None if trials is not None else 60.0 if time is None else time, trials, stop)
    source = str(table) if isinstance(table, (str, PathLike)) else "the table"
    delta, file = 1 - Decimal(confidence), None if resume is None else Path(resume)
    compiling = partial(tell, Note(Message("compiling"), passing=True))
    with tempfile.TemporaryDirectory(prefix="assay-") as folder, Pool(workers, compiling) as pool:
        budget.aside = lambda: pool.compiling  # compiling happens once, and is no part of the time
        in_folds = certify == "folds"
        known, dropped = with_target(raw_table(table), target)
        reserve = None
        if looks is not None:
            known, reserve = looking.reserved(known, target, looks, holdout, seed, group)
        own = None if reserve is None else reserve.held
        problem = make_problem(
            known, target, spaces.task_named(task), holdout, seed, group, time_column, Path(folder), in_folds, own
        )
        problem.notes[:0] = dropped
        given, clip = clip, None if in_folds else _clip(problem, clip)
        wanted = chosen_metric(metric, cost, problem.task, problem.codes, len(problem.classes))
        spaces.check_names(problem.task, [*learners, *exclude])
        _tell_notes(problem, tell)
        rows = fingerprint(problem.raw.digest(), target, problem.task)

        def searched(part: Problem, judge: Metric, allowed: Budget) -> Search:
            about = fingerprint(rows, part.held, seed, group, time_column, judge.name, judge.cost)
            asked = (problem.task, learners, exclude, len(part.train))
            first, slow = spaces.suitable(*asked, force)
            search = Search(part, judge, pool, allowed, tell, time is not None, Scores(file, about))
            search.leave_out(slow, Message("too-slow", rows=len(part.train)))
            search.run(first, lambda: spaces.others(*asked, first))
            return search

        if in_folds:
            look = cache(partial(_look, problem, delta, None, tell))
            parts = Folds(problem, folds, wanted, pool, budget, tell, searched, look)
            parts.run()
            results = _folds_study(problem, parts, looking.share(delta, look().count), confidence, source)
            return _with_looks(results, look(), None)
        if not learners:
            k = looking.number(problem.raw, target, problem.held, reserve)
            begin_first_answer(problem, wanted, pool, tell, looking.share(delta, k), given)
        search = searched(problem, wanted, budget)
        if budget.stopped:
            tell(Note(Message("stopped"), passing=True))
        looked = _look(problem, delta, reserve, tell)
        final = Final(problem, search, pool, budget, tell, looking.share(delta, looked.count), clip, looked.count)
        chosen, result = final.run()
        for note in about_held_rows(problem, result["model"]):
            problem.notes.append(note)
            tell(Note(note))
    results = _study(problem, search, chosen, result, confidence, clip, source)
    return _with_looks(replace(results, finalists=final.certified), looked, reserve)


def _clip(problem: Problem, given: float | None) -> float | None:
    """Return up to what the errors of a regression count."""
    if problem.task == "classify" and given is not None:
        raise ValueError(Message("clip.classes"))
    return default_clip(problem.y) if problem.task == "regress" and given is None else given


def _tell_notes(problem: Problem, tell: Callable[[Event], None]) -> None:
    for note in problem.notes:
        tell(Note(note))


def _look(
    problem: Problem, delta: Decimal, reserve: looking.Reserve | None, tell: Callable[[Event], None]
) -> looking.Looks:
    """Write down that the hold-out rows are opened (of folds, all rows), and say so if they were before."""
    held = problem.held if len(problem.held) else np.arange(len(problem.y))
    looked = looking.record(problem.raw, problem.target.name, held, delta, reserve)
    if looked.note:
        problem.notes.append(looked.note)
        tell(Note(looked.note))
    if looked.count > 1:
        warnings.warn(looked.note, RepeatedUseWarning, stacklevel=3)
    return looked


def _with_looks(study: Study, looked: looking.Looks, reserve: looking.Reserve | None) -> Study:
    """Return the study with the looks in its certificate and, if there were earlier ones, in its sentence."""
    if looked.count:
        study.certificate = replace(study.certificate, looks={"count": looked.count, **looking.plain(reserve)})
    if looked.count > 1:
        study.why = sentences([study.why, Message("looks.count", count=looked.count)])
    return study


def _share(confidence: object) -> str:
    """Return a confidence as decimal text; what is none is refused before anything is written down."""
    try:
        sound = 0 < Decimal(str(confidence)) < 1
    except InvalidOperation:  # no number, or one that cannot be compared: NaN
        sound = False
    if not sound:
        raise ValueError(f"confidence must be a number between 0 and 1, such as 0.95; got {confidence!r}.")
    return str(confidence)


def _check(
    time: float | None, trials: int | None, certify: str, group: str | None, time_column: str | None, clip: Any,
    seed: int, holdout: Any,
) -> None:  # fmt: skip
    if time is not None and not time > 0:
        raise ValueError(f"time must be a number of seconds > 0; got {time!r}.")
    if trials is not None and trials < 1:
        raise ValueError(f"trials must be a whole number > 0; got {trials!r}.")
    if holdout is not None and not (isinstance(holdout, Real) and 0 < holdout < 1):
        raise ValueError(f"holdout must be a share of the rows, a number in (0, 1); got {str(holdout)[:60]!r}.")
    if not 0 <= seed < 2**63:
        raise ValueError(f"seed must be a whole number from 0 to 2^63 - 1; got {seed!r}.")
    if certify not in ("holdout", "folds"):
        raise ValueError(f'certify must be "holdout" or "folds"; got {certify!r}.')
    if certify == "folds" and (group is not None or time_column is not None):
        raise ValueError(Message("folds.group" if group is not None else "folds.time", certify="folds"))
    if group is not None and time_column is not None:
        raise ValueError(Message("split.both"))
    if certify == "folds" and clip is not None:
        raise ValueError(Message("folds.clip"))


def _study(
    problem: Problem, search: Search, chosen: Candidate, result: dict[str, Any], confidence: str, clip: float | None,
    source: str,
) -> Study:  # fmt: skip
    base = _baseline(problem, search.metric)
    order = {"chosen": 0, "finalist": 1, "ranked": 2, "left out": 4}
    rest = sorted(
        search.all, key=lambda candidate: (order[candidate.status], -candidate.step, candidate.loss, candidate.number)
    )
    place = next(
        (i for i, item in enumerate(rest) if i and (item.status == "left out" or item.loss > base.loss)), len(rest)
    )
    results = Study(
        problem.task, search.metric, [*rest[:place], base, *rest[place:]], chosen, result["model"],
        result["certificate"], confidence, "", problem.notes, (len(problem.train), len(problem.held)), problem.raw,
        problem.features, clip if problem.task == "regress" else None, source, base,
    )  # fmt: skip
    results.why = verdict.of_study(results, problem)
    return results


def _folds_study(problem: Problem, parts: Folds, delta: Decimal, confidence: str, source: str) -> Study:
    """Return the study whose model is made of the models of the folds."""
    model = parts.joined()
    parts.tell_copies(model)
    certificate = parts.certify(model, delta)
    own = [item.candidate for item in parts.models]
    name = Message("name.vote" if problem.task == "classify" else "name.mean", count=len(own))
    chosen = Candidate(name, status="chosen", losses=[loss for candidate in own for loss in candidate.losses])
    chosen.cv = parts.metric.shown(chosen.loss)
    chosen.holdout_error = float(
        np.average([candidate.holdout_error for candidate in own], weights=np.bincount(parts.fold))
    )
    chosen.holdout_metric = float(
        np.average([candidate.holdout_metric for candidate in own], weights=np.bincount(parts.fold))
    )
    chosen.seconds = sum(item.seconds for item in own)
    claim = next((item for item in certificate.claims if item.name.startswith("cross-validation.mean")), None)
    if claim is not None:
        chosen.bound = of_vote(claim.value, len(own)) if problem.task == "classify" else claim.value
        chosen.metric_bound = chosen.bound if parts.metric.error else None
    base = _baseline(problem, parts.metric)
    errors = [problem.mean_error(problem.y[item.held], item.baseline) for item in parts.models]
    base.holdout_error = float(np.average(errors, weights=np.bincount(parts.fold)))
    base.holdout_metric = base.holdout_error if parts.metric.error else base.cv
    result = Study(
        problem.task, parts.metric, [chosen, *own, base, *_together(parts)], chosen, model, certificate, confidence, "",
        problem.notes, (len(problem.y), 0), problem.raw, problem.features, None, source, base, tuple(parts.models),
    )  # fmt: skip
    result.why = verdict.of_folds(result)
    return result


def _together(parts: Folds) -> list[Candidate]:
    """Return the candidates of all folds that were not chosen, the same settings as one."""
    results: dict[str, Candidate] = {}
    for candidate in parts.candidates:
        if candidate.status == "finalist":
            continue
        first = results.setdefault(f"{candidate.name} {sorted(candidate.settings.items())}", candidate)
        if first is not candidate:
            first.losses, first.seconds = [*first.losses, *candidate.losses], first.seconds + candidate.seconds
            first.status = "ranked" if first.losses else first.status
            first.cv = parts.metric.shown(first.loss) if first.losses else first.cv
    return sorted(results.values(), key=lambda item: (item.status == "left out", item.loss))


def _baseline(problem: Problem, metric: Metric) -> Candidate:
    """Return the row of the leaderboard for a model that looks at no column."""
    own = problem.y
    value = baseline.best_constant(metric, own, problem.classes)
    row = Candidate(baseline.NAME, status="baseline", note=baseline.in_words(value, problem.task, metric.name))
    n = len(problem.classes)
    if problem.task == "classify":
        shares = np.tile(baseline.shares(problem.codes, n), (len(own), 1))
        code = np.full(len(own), int(np.searchsorted(problem.classes, value)))
        row.losses = [metric.of(problem.codes, code, shares, n)]
    else:
        row.losses = [metric.of(own, np.full(len(own), value), None, 0)]
    row.training_error = problem.mean_error(own, value)
    if len(problem.held):
        held = problem.held_targets()
        row.holdout_error = problem.mean_error(held, value)
        predicted = np.full(len(held), value)
        often = np.tile(baseline.shares(problem.codes, n), (len(held), 1)) if n else None
        row.holdout_metric = metric.on(held, predicted, often, problem.classes)
    row.cv = metric.shown(row.loss)
    return row


def leaderboard(study: Any) -> Any:
    """Return a matplotlib figure: the cross-validated metric of each learner's best settings, the chosen one marked."""
    from matplotlib.figure import Figure

    best: dict[str, Any] = {}
    for candidate in study.candidates:
        if candidate.losses:
            best.setdefault(candidate.name, candidate)
    rows = list(best.values())[::-1]
    figure = Figure(figsize=(7, 1 + 0.3 * len(rows)), layout="constrained")
    axes = figure.subplots()
    colours = ["tab:blue" if row is study.chosen else "tab:gray" for row in rows]
    axes.barh([row.name for row in rows], [row.cv for row in rows], color=colours)
    axes.set_xlabel(f"{study.metric.name} in cross-validation")
    return figure


SHARE = 0.25
_MOST = 10_000  # rows that are fitted


def begin_first_answer(
    problem: Problem, metric: Metric, pool: Pool, tell: Callable[[Event], None], delta: Decimal, clip: float | None
) -> None:
    """Have the first answer made beside everything else; it is told when it is there, or never if it fails.

    Errors of numbers count up to `clip` or, if that is not given, what the rows that are fitted say.
    """
    fit, judge = _first_parts(problem)
    if len(fit) < 20:
        return
    kind, target = spaces.quick(problem.task), problem.target
    try:  # everything is typed by the rows that are fitted: the others have no say in the model
        rows = problem.raw.take(fit).without(target.name, *problem.apart)
        encoding = Encoding.fit(informative_columns(rows.typed()), checked_input(kind))
        target = training_target(problem.raw, fit, target.name, problem.task).type
    except ValueError:  # these rows have nothing to learn from; all training rows may
        return
    if (target.kind, target.written) != (problem.target.kind, problem.target.written):
        return
    path = problem.folder / "first.pickle"
    both = np.sort(np.concatenate([fit, judge]))
    places = (np.searchsorted(both, part) for part in (fit, judge))
    path.write_bytes(pickle.dumps((problem.raw.take(both), target, *places), protocol=5))
    if problem.task == "regress" and clip is None:
        clip = default_clip(problem.y[np.searchsorted(problem.train, fit)])
    groups = problem.raw.text(problem.group_name)[judge] if problem.group_name else None
    recipe = Recipe(class_name(kind), seed=problem.seed)
    asked = options_for(metric, clip, groups, problem.group_name)
    job = Certify(recipe, str(path), encoding, delta, Others(delta, ()), asked, problem.task)

    def done(answer: Answer) -> None:
        if answer.result is not None:
            bound = certified(answer.result["certificate"], problem.task)
            row = Candidate(kind.__name__, status="first", bound=bound, seconds=answer.result["seconds"])
            judged = problem.y[np.searchsorted(problem.train, judge)]
            row.holdout_error = problem.mean_error(judged, answer.result["held"])
            sizes = {"fitted": len(fit), "rows": len(judge)}
            row.note = Message("quick", **sizes) if clip is None else Message("quick.clip", clip=clip, **sizes)
            if bound is not None:
                tell(First(row))

    pool.start(job, done)


def _first_parts(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return training rows to fit and others to certify on."""
    train = problem.train
    marks = None if problem.group is None else problem.group[train], problem.time
    try:
        held = hold_out(len(train), SHARE, problem.seed, *marks)
    except ValueError:  # too few rows, or groups
        return train[:0], train[:0]
    rest = np.setdiff1d(np.arange(len(train)), held)
    if len(rest) > _MOST:
        rest = np.sort(np.random.default_rng([3, problem.seed]).permutation(rest)[:_MOST])
    return train[rest], train[held]
