"""From a table to a certified model: encode, fit every suitable learner, choose by certified risk.

Structural risk minimisation made practical. The rows are split once at random; the encoder and the learners
see the training rows only; all learners are compared on the same hold-out rows, and the bound pays for that.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from assay import scan
from assay.base import Learner
from assay.certificate.claim import Certificate
from assay.certificate.holdout import least_mean_loss
from assay.data import Column, Table
from assay.learning.model import TableModel, digest, encoder_of, target_values
from assay.registry import learners as all_learners
from assay.theory import concentration

MOST_CLASSES = 20  # a numeric target with at most so many whole values is read as class labels
TASKS = {"classify": "classification", "regress": "regression"}


@dataclass
class Candidate:
    """One learner of a study. Errors are shares of rows (classes) or mean absolute errors (numbers)."""

    name: str
    learner: Learner | None = None
    training_error: float = np.nan
    holdout_error: float = np.nan
    bound: float | None = None
    seconds: float = 0.0
    note: str = ""


@dataclass
class Study:
    """What `learn` found: the leaderboard, the chosen model, its certificate, the rows it was judged on."""

    task: str
    candidates: list[Candidate]
    chosen: Candidate
    model: TableModel
    certificate: Certificate
    confidence: str
    why: str
    notes: list[str]
    holdout: tuple[np.ndarray, np.ndarray]
    rows: tuple[int, int]


def learn(
    table: Table,
    target: str,
    *,
    confidence: str = "0.95",
    holdout: float = 0.25,
    learners: Sequence[str] = (),
    seed: int = 0,
    clip: float | None = None,
    task: str | None = None,
    tell: Callable[[str], None] = lambda name: None,
) -> Study:
    """Fit every suitable learner to a table and choose the one of smallest certified risk.

    Parameters
    ----------
    confidence : str
        A decimal number in (0, 1): the statements about new data hold together with this probability.
    holdout : float
        Share of the rows that nothing is fitted to.
    learners : names of learners to compare; empty for every suitable one.
    clip : float, optional
        Regression: absolute errors are clipped here, which is what makes a bound possible. Fix it in advance.
    tell : called with the name of each learner before it is fitted.
    """
    delta = 1 - Decimal(confidence)
    features, column = table.split_target(target)
    task = task or _task_of(column)
    features, notes = _usable(features)
    y = target_values(column, task)
    train, held = _split(table.n_rows, holdout, seed)
    _check_classes(y, train, held, task)
    encoder = encoder_of(features).fit(features.matrix()[train])
    X = np.ascontiguousarray(encoder.transform(features.matrix()))
    kinds = _suitable(task, learners)
    slow = set() if learners else {kind for kind in kinds if _too_slow(kind, len(train))}
    candidates = [
        Candidate(kind.__name__, note=_TOO_SLOW.format(len(train)))
        if kind in slow
        else _fit(kind, X, y, train, held, seed, tell)
        for kind in kinds
    ]
    compared = [one for one in candidates if one.learner is not None]
    if not compared:
        reasons = "; ".join(f"{one.name}: {one.note}" for one in candidates)
        raise ValueError(f"no learner could be fitted ({reasons}).")
    judge = _judge_classes if task == "classify" else _judge_numbers
    chosen, certificate, why = judge(compared, X, y, held, float(delta), clip, confidence)
    digests = {"rows": str(table.n_rows)} | {
        f"column {c.name}": digest(c) for c in (*features.columns.values(), column)
    }
    model = TableModel(features.schema, column.type, encoder, _learner(chosen), digests)
    candidates.sort(key=lambda one: (one is not chosen, one.learner is None, one.bound or 0.0, one.holdout_error))
    return Study(
        task,
        candidates,
        chosen,
        model,
        certificate,
        confidence,
        why,
        notes,
        (X[held], y[held]),
        (len(train), len(held)),
    )


def _task_of(target: Column) -> str:
    """Return the task that a target asks for: classes if it is text or a few whole numbers, else numbers."""
    if target.type.kind != "numeric":
        return "classify"
    values = np.unique(target.data)
    return "classify" if len(values) <= MOST_CLASSES and (values == np.round(values)).all() else "regress"


def _usable(features: Table) -> tuple[Table, list[str]]:
    """Return the columns worth learning from, and a sentence for each one that is left out."""
    notes, kept = [], []
    for column in features.columns.values():
        if column.type.kind == "nominal" and len(column.type.levels) == features.n_rows > 20:
            notes.append(f"Column {column.name!r} is left out: it names each row, so it says nothing about new ones.")
        else:
            kept.append(column)
    if not kept:
        raise ValueError(f"there is no column to learn from. {' '.join(notes)}")
    return Table(kept), notes


def _split(rows: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return training and hold-out row numbers: one plain random split, in increasing order."""
    held = round(rows * share)
    if not 0 < share < 1 or held < 1 or rows - held < 2:
        raise ValueError(f"--holdout {share:g} of {rows} rows leaves too few rows to fit or to test on.")
    order = np.random.default_rng(seed).permutation(rows)
    return np.sort(order[held:]), np.sort(order[:held])


def _check_classes(y: np.ndarray, train: np.ndarray, held: np.ndarray, task: str) -> None:
    if task != "classify":
        return
    known = np.unique(y[train])
    if len(known) < 2:
        raise ValueError(f"the training rows have one class only ({known[0]}); learning needs two.")
    strange = np.setdiff1d(y[held], known)
    if len(strange):
        raise ValueError(
            f"the class {strange[0]!s} is so rare that no training row has it; remove its rows, or merge it "
            "with another class."
        )


def _suitable(task: str, names: Sequence[str]) -> list[type[Learner]]:
    known = {kind.__name__.lower(): kind for kind in all_learners(task)}
    unknown = [name for name in names if name.lower() not in known]
    if unknown:
        listed = ", ".join(kind.__name__ for kind in known.values())
        raise ValueError(f"{unknown[0]!r} is not a learner for {TASKS[task]}; there are {listed}.")
    return [known[name.lower()] for name in dict.fromkeys(names)] or list(known.values())


_TOO_SLOW = "it would take long for {} training rows; name it with --learners to try it."


def _too_slow(kind: type[Learner], rows: int) -> bool:
    return kind.card.most_rows is not None and rows > kind.card.most_rows


def _fit(
    kind: type[Learner], X: Any, y: Any, train: Any, held: Any, seed: int, tell: Callable[[str], None]
) -> Candidate:
    """Fit one learner with its default parameters; a learner that cannot take part says why."""
    tell(kind.__name__)
    learner = kind(random_state=seed) if "random_state" in kind._get_param_names() else kind()
    began = time.perf_counter()
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            learner.fit(X[train], y[train])
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        return Candidate(
            kind.__name__,
            note=" ".join(str(error).split()).removeprefix(f"{kind.__name__}: "),
            seconds=time.perf_counter() - began,
        )
    seconds = time.perf_counter() - began
    texts = [" ".join(str(one.message).split()) for one in said if issubclass(one.category, UserWarning)]
    note = " ".join(dict.fromkeys(text.removeprefix(f"{kind.__name__}: ") for text in texts))
    loss = _zero_one if learner.card.task == "classify" else _absolute
    trained, tested = (float(loss(y[rows], learner.predict(X[rows])).mean()) for rows in (train, held))
    return Candidate(kind.__name__, learner, trained, tested, seconds=seconds, note=note)


def _zero_one(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return y != predicted


def _absolute(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return np.abs(y - predicted)


def _judge_classes(
    compared: list[Candidate], X: Any, y: Any, held: Any, delta: float, clip: float | None, confidence: str
) -> tuple[Candidate, Certificate, str]:
    """Choose the classifier of smallest certified error rate: that of fewest hold-out errors."""
    if clip is not None:
        raise ValueError("--clip is for regression; the error rate of a classifier needs none.")
    rows = scan.rows(X[held], y[held])
    errors = {one.name: _most_errors(_learner(one), rows) for one in compared}
    chosen = min(compared, key=lambda one: (errors[one.name], one.training_error))
    predictions = [one.learner.predict(X[held]) for one in compared if one.learner is not None]
    certificate = _learner(chosen).certify(X, y, delta=delta, holdout=held, compared=predictions, fixed_class=False)
    claim = certificate.find("P07")
    for one in compared:
        share = float(claim.delta) / len(compared)
        one.bound = concentration.clopper_pearson_upper(errors[one.name], len(held), share)
    chosen.bound = claim.value
    found = f"error rate, at most {100 * claim.value:.2f} % on new data"
    return chosen, certificate, _why(chosen, len(compared), len(held), found, confidence)


def _most_errors(learner: Learner, rows: scan.Rows) -> int:
    """Return the errors on the rows as a certificate counts them: a row that rounding leaves open is one."""
    return learner.count_errors(rows.encoded(learner.classes_))[1]  # type: ignore[attr-defined]


def _judge_numbers(
    compared: list[Candidate], X: Any, y: Any, held: Any, delta: float, clip: float | None, confidence: str
) -> tuple[Candidate, Certificate, str]:
    """Choose the regressor of smallest certified clipped error; without a clip, of least hold-out error."""
    share = delta / len(compared)
    if clip is not None:
        for one in compared:
            losses = np.minimum(_absolute(y[held], _learner(one).predict(X[held])), clip)
            one.bound = least_mean_loss(losses, clip, share)
    chosen = min(compared, key=lambda one: (one.bound or 0.0, one.holdout_error))
    predictions = [_learner(one).predict(X[held]) for one in compared]
    certificate = _learner(chosen).certify(
        X, y, delta=delta, holdout=held, compared=predictions, clip=clip, fixed_class=False
    )
    if clip is None or certificate.tightest is None:
        return (
            chosen,
            certificate,
            f"{chosen.name} is chosen: it has the smallest hold-out error. {_NO_BOUND[clip is None]}",
        )
    chosen.bound = certificate.tightest.value
    found = f"mean absolute error (clipped at {clip:g}), at most {chosen.bound:.6g} on new data"
    return chosen, certificate, _why(chosen, len(compared), len(held), found, confidence)


_NO_BOUND = {
    True: "Its error on new data has no bound, because the errors of a regression have no range: "
    "pass --clip to give them one.",
    False: "Its error on new data has no bound below the clip: there are too few hold-out rows.",
}


def _why(chosen: Candidate, compared: int, held: int, found: str, confidence: str) -> str:
    if compared == 1:
        return f"{chosen.name}: certified {found}. This holds with {percent(confidence)} confidence."
    return (
        f"{chosen.name} is chosen: of {compared} learners compared on the same {held} hold-out rows it has the "
        f"smallest certified {found}. This holds with {percent(confidence)} confidence, the choice paid for."
    )


def _learner(candidate: Candidate) -> Learner:
    assert candidate.learner is not None
    return candidate.learner


def percent(confidence: str) -> str:
    """Return a confidence such as "0.95" in per cent."""
    return f"{Decimal(confidence) * 100:f}".rstrip("0").rstrip(".") + " %"
