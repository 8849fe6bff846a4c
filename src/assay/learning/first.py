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
from assay.learning.events import Event, First
from assay.learning.finalists import certified
from assay.learning.jobs import Answer, Certify, Recipe
from assay.learning.metrics import Metric
from assay.learning.model import checked_input
from assay.learning.problem import Problem, of_use
from assay.learning.search import Candidate, options_for
from assay.learning.split import hold_out
from assay.learning.workers import Pool
from assay.registry import find

KINDS = {"classify": "linear_model.LogisticRegression", "regress": "linear_model.Ridge"}
SHARE = 0.25
_MOST = 10_000  # rows that are fitted


def begin(
    problem: Problem, metric: Metric, pool: Pool, tell: Callable[[Event], None], delta: Decimal, clip: float | None
) -> None:
    """Have the first answer made beside everything else; it is told when it is there, or never if it fails."""
    fit, judge = _parts(problem)
    rows = np.sort(np.concatenate([fit, judge]))
    known = problem.task == "regress" or np.isin(problem.y[judge], problem.y[fit]).all()
    if len(fit) < 20 or not known:
        return
    kind = find(KINDS[problem.task])
    try:
        features = of_use(problem.features, fit)  # nothing of the others has a say in the model
        encoding = Encoding.fit(features.take(fit), checked_input(kind))
    except ValueError:  # these rows have nothing to learn from; all training rows may
        return
    held = np.searchsorted(rows, judge)
    path = problem.folder / "first.pickle"
    whole = (problem.table.take(rows), problem.target.type, problem.y[rows], held)
    path.write_bytes(pickle.dumps(whole, protocol=5))
    groups = None if problem.group is None else problem.group[judge]
    recipe = Recipe(KINDS[problem.task], seed=problem.seed)
    job = Certify(recipe, str(path), encoding, delta, Others(delta, ()), options_for(metric, clip, groups))

    def done(answer: Answer) -> None:
        if answer.result is not None:
            bound = certified(answer.result["certificate"], problem.task)
            row = Candidate(kind.__name__, status="first", bound=bound, seconds=answer.result["seconds"])
            row.holdout_error = problem.mean_error(judge, answer.result["held"])
            row.note = f"a first answer: fitted to {len(fit)} of the training rows, certified on {len(judge)} others."
            if bound is not None:
                tell(First(row))

    pool.start(job, done)


def _parts(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return training rows to fit and others to certify on."""
    train = problem.train
    marks = [None if mark is None else mark[train] for mark in (problem.group, problem.time)]
    try:
        held = hold_out(len(train), SHARE, problem.seed, *marks)
    except ValueError:  # too few rows, or groups
        return train[:0], train[:0]
    rest = np.setdiff1d(np.arange(len(train)), held)
    if len(rest) > _MOST:
        rest = np.sort(np.random.default_rng([3, problem.seed]).permutation(rest)[:_MOST])
    return train[rest], train[held]
