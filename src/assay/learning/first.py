"""A first certified answer within seconds, while the search has just begun.

A linear model with its own settings, fixed before any row is seen, is fitted to a part of the training rows and
certified on others of them, drawn at random. The hold-out rows stay closed, so whoever sees this row and stops the
search takes nothing from the bounds of the finalists. It is a statement by itself, at the confidence asked for, and no
candidate: the same learner is judged with all others.
"""

import pickle
from collections.abc import Callable
from decimal import Decimal

import numpy as np

from assay.data import Encoding
from assay.guarantees.seal import Others
from assay.learning import spaces
from assay.learning.events import Event, First
from assay.learning.finalists import certified
from assay.learning.jobs import Answer, Certify, Recipe
from assay.learning.metrics import Metric
from assay.learning.model import checked_input
from assay.learning.problem import Problem, default_clip, informative_columns, training_target
from assay.learning.search import Candidate, options_for
from assay.learning.split import hold_out
from assay.learning.workers import Pool
from assay.stored import class_name

SHARE = 0.25
_MOST = 10_000  # rows that are fitted


def begin(
    problem: Problem, metric: Metric, pool: Pool, tell: Callable[[Event], None], delta: Decimal, clip: float | None
) -> None:
    """Have the first answer made beside everything else; it is told when it is there, or never if it fails.

    Errors of numbers count up to `clip` or, if that is not given, what the rows that are fitted say.
    """
    fit, judge = _parts(problem)
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
            row.note = f"a first answer: fitted to {len(fit)} of the training rows, certified on {len(judge)} others."
            row.note += "" if clip is None else f" Errors count up to {clip:.4g}."
            if bound is not None:
                tell(First(row))

    pool.start(job, done)


def _parts(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
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
