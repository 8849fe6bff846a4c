"""From a table to a certified model: encode, fit every suitable learner, choose by certified risk.

Structural risk minimisation made practical. The rows are split once at random; the encoding and the learners
see the training rows only; all learners are compared on the same hold-out rows, and the bound pays for that.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from assay import scan
from assay.base import Learner
from assay.claims.claim import Certificate
from assay.claims.definitions import percent as share_in_percent
from assay.data import Column, Encoding, Table, read
from assay.fitlog import Interrupts
from assay.guarantees.evidence import Decided, Gathered
from assay.guarantees.holdout import least_mean_loss
from assay.guarantees.ledger import CertifyOptions
from assay.learning.model import TableModel, checked_input, target_values
from assay.registry import learners as all_learners
from assay.theory import concentration

MOST_CLASSES = 20  # a numeric target with at most so many whole values is read as class labels
TASKS = {"classify": "classification", "regress": "regression"}


@dataclass
class Candidate:
    """One learner that was tried. Errors are shares of rows (classes) or mean absolute errors (numbers).

    `learner` is None if it is left out; `note` says why.
    """

    name: str
    learner: Learner | None = None
    view: "View | None" = None
    model: TableModel | None = None
    """What was certified: encoding, learner, and what it remembers of the rows."""
    predicted: np.ndarray = field(default_factory=lambda: np.empty(0))
    training_error: float = np.nan
    holdout_error: float = np.nan
    bound: float | None = None
    seconds: float = 0.0
    note: str = ""


class View(NamedTuple):
    """The table as a learner reads it."""

    encoding: Encoding
    X: np.ndarray


@dataclass
class Result:
    """What `learn` found: the leaderboard, the chosen model, its certificate, the rows it was judged on."""

    task: str
    leaderboard: list[Candidate]
    chosen: Candidate
    model: TableModel
    certificate: Certificate
    confidence: str
    why: str
    notes: list[str]
    holdout: tuple[np.ndarray, np.ndarray]
    rows: tuple[int, int]


def learn(
    table: Any,
    target: str,
    *,
    confidence: str = "0.95",
    holdout: float = 0.25,
    learners: Sequence[str] = (),
    seed: int = 0,
    clip: float | None = None,
    task: str | None = None,
    tell: Callable[[str], None] = lambda name: None,
) -> Result:
    """Fit every suitable learner to a table and choose the one of smallest certified risk.

    A learner that fails is named in the leaderboard and left out.

    Parameters
    ----------
    table : a `Table`, or what `assay.data.read` reads: a file, a frame, a dict of columns.
    confidence : str
        A decimal number in (0, 1): the statements about new data hold together with this probability.
    holdout : float
        Share of the rows that nothing is fitted to.
    learners : names of learners to compare; empty for every suitable one.
    clip : float, optional
        Regression: absolute errors are clipped here, which is what makes a bound possible. Fix it in advance.
    tell : called with the name of each learner before it is fitted.
    """
    table = table if isinstance(table, Table) else read(table)
    table, dropped = table.with_target(target)
    features, column = table.split_target(target)
    task = task or _task_of(column)
    if clip is not None and task == "classify":
        raise ValueError("--clip is for regression; the error rate of a classifier needs none.")
    features = features.useful()
    notes = [f"Column {name!r} is left out: {why}" for name, why in features.left_out.items()]
    notes += [dropped] if dropped else []
    y = target_values(column, task)
    train, held = _split(table.n_rows, holdout, seed)
    _check_classes(y, train, held, task)
    rows = _Rows(table, column, features, y, train, held)
    kinds = _suitable(task, learners)
    slow = set() if learners else {kind for kind in kinds if _too_slow(kind, len(train))}
    tried, stopped = _fit_all(kinds, slow, rows, seed, tell)
    notes += [stopped] if stopped else []
    judge = _judge_classes if task == "classify" else _judge_numbers
    chosen, certificate, why = judge(tried, rows, Decimal(confidence), clip)
    view = _view(chosen)
    assert chosen.model is not None
    model = chosen.model
    tried.sort(key=lambda one: (one is not chosen, one.learner is None, one.bound or 0.0, one.holdout_error))
    return Result(
        task,
        tried,
        chosen,
        model,
        certificate,
        confidence,
        why,
        notes,
        (view.X[held], y[held]),
        (len(train), len(held)),
    )


class _Rows:
    """The table that is learnt from, its split, and what learners of each kind of input see of it."""

    def __init__(
        self, table: Table, target: Column, features: Table, y: np.ndarray, train: np.ndarray, held: np.ndarray
    ) -> None:
        self.table, self.target, self.features = table, target, features
        self.y, self.train, self.held = y, train, held
        self._views: dict[frozenset[str], View] = {}

    def seen_by(self, kind: type[Learner]) -> View:
        """Return the encoding that the training rows give for such a learner, and all rows in it."""
        reads = checked_input(kind)
        if reads not in self._views:
            encoding = Encoding.fit(self.features.take(self.train), reads)
            self._views[reads] = View(encoding, encoding.apply(self.features))
        return self._views[reads]


def _task_of(target: Column) -> str:
    """Return the task that a target asks for: classes if it is text or a few whole numbers, else numbers."""
    if target.type.kind != "numeric":
        return "classify"
    values = np.unique(target.data)
    return "classify" if len(values) <= MOST_CLASSES and (values == np.round(values)).all() else "regress"


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
    unasked = [kind for kind in known.values() if not getattr(kind, "semi_supervised", False)]  # every row has a label
    return [known[name.lower()] for name in dict.fromkeys(names)] or unasked


_TOO_SLOW = "it would take long for {} training rows; name it with --learners to try it."


def _too_slow(kind: type[Learner], rows: int) -> bool:
    return kind.card.most_rows is not None and rows > kind.card.most_rows


def _fit_all(
    kinds: Sequence[type[Learner]], slow: set[type[Learner]], rows: _Rows, seed: int, tell: Callable[[str], None]
) -> tuple[list[Candidate], str]:
    """Fit one learner after the other; Ctrl-C ends the current fit and keeps what is done, and a sentence says so."""
    tried: list[Candidate] = []
    with Interrupts() as wish:
        for kind in kinds:
            try:
                if kind in slow:
                    tried.append(Candidate(kind.__name__, note=_TOO_SLOW.format(len(rows.train))))
                else:
                    tried.append(_fit(kind, rows, seed, tell))
            except KeyboardInterrupt:
                tried.append(Candidate(kind.__name__, note="It was interrupted."))
            wish.check()
            if wish.asked:
                break
    if not wish.asked:
        return tried, ""
    if all(one.learner is None for one in tried):
        raise KeyboardInterrupt
    return tried, f"Interrupted: {len(kinds) - len(tried)} learners were not tried."


def _fit(kind: type[Learner], rows: _Rows, seed: int, tell: Callable[[str], None]) -> Candidate:
    """Fit one learner with its default parameters; a learner that cannot take part says why."""
    tell(kind.__name__)
    found = Candidate(kind.__name__)
    began = time.perf_counter()
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found.view = rows.seen_by(kind)
            learner = _made(kind, found.view.encoding, seed).fit(found.view.X[rows.train], rows.y[rows.train])
            found.seconds = time.perf_counter() - began
            predicted = learner.predict(found.view.X)
        loss = (_zero_one if kind.card.task == "classify" else _absolute)(rows.y, predicted)
        found.training_error, found.holdout_error = (float(loss[part].mean()) for part in (rows.train, rows.held))
    except Exception as error:
        found.seconds, found.note = time.perf_counter() - began, _reason(kind.__name__, error)
        return found
    texts = [_one_line(one.message, kind.__name__) for one in said if issubclass(one.category, UserWarning)]
    found.learner, found.predicted, found.note = learner, predicted[rows.held], " ".join(dict.fromkeys(texts))
    return found


def _made(kind: type[Learner], encoding: Encoding, seed: int) -> Learner:
    """Return a learner with default parameters, the seed, and the columns that are nominal."""
    given = {"random_state": seed, "nominal": encoding.nominal()}
    return kind(**{name: value for name, value in given.items() if name in kind._get_param_names() and value != []})


def _leave_out(one: Candidate, error: Exception) -> None:
    one.learner, one.bound, one.note = None, None, _reason(one.name, error)


def _reason(name: str, error: Exception) -> str:
    """Return why a learner is left out: its own refusal, or what kind of failure it was."""
    text = _one_line(error, name)
    if isinstance(error, (ValueError, ArithmeticError)) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else f"{type(error).__name__}."


def _one_line(message: Any, name: str) -> str:
    return " ".join(str(message).split()).removeprefix(f"{name}: ")


def _zero_one(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return y != predicted


def _absolute(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return np.abs(y - predicted)


def _judge_classes(
    tried: list[Candidate], rows: _Rows, confidence: Decimal, clip: float | None
) -> tuple[Candidate, Certificate, str]:
    """Choose the classifier of smallest certified error rate: that of fewest hold-out errors."""
    compared, errors = _taking_part(tried), {}
    for one in compared:
        try:
            errors[one.name] = _most_errors(_learner(one), scan.rows(_view(one).X[rows.held], rows.y[rows.held]))
        except Exception as error:
            _leave_out(one, error)
    chosen, certificate = _certified(
        compared, tried, rows, confidence, lambda one: (errors[one.name], one.training_error)
    )
    claim = certificate.find("P07")
    for one in _taking_part(tried):
        share = float(claim.delta) / len(compared)
        one.bound = concentration.clopper_pearson_upper(errors[one.name], len(rows.held), share)
    chosen.bound = claim.value
    found = f"error rate, at most {share_in_percent(claim.value)} on new data"
    return chosen, certificate, _why(chosen, len(compared), len(rows.held), found, confidence)


def _most_errors(learner: Learner, rows: scan.Rows) -> int:
    """Return the errors on the rows as a certificate counts them: a row that rounding leaves open is one."""
    known = rows.encoded(learner.classes_)
    return Gathered(learner.evidence(known)).the(Decided).count_errors(known)[1]


def _judge_numbers(
    tried: list[Candidate], rows: _Rows, confidence: Decimal, clip: float | None
) -> tuple[Candidate, Certificate, str]:
    """Choose the regressor of smallest certified clipped error; without a clip, of least hold-out error."""
    compared = _taking_part(tried)
    if clip is not None:
        for one in compared:
            losses = np.minimum(_absolute(rows.y[rows.held], one.predicted), clip)
            one.bound = least_mean_loss(losses, clip, float(1 - confidence) / len(compared))
    chosen, certificate = _certified(
        compared, tried, rows, confidence, lambda one: (one.bound or 0.0, one.holdout_error), clip=clip
    )
    if clip is None or certificate.tightest is None:
        why = f"{chosen.name} is chosen: it has the smallest hold-out error. {_NO_BOUND[clip is None]}"
        return chosen, certificate, why
    chosen.bound = certificate.tightest.value
    found = f"mean absolute error (clipped at {clip:g}), at most {chosen.bound:.6g} on new data"
    return chosen, certificate, _why(chosen, len(compared), len(rows.held), found, confidence)


def _taking_part(tried: list[Candidate]) -> list[Candidate]:
    """Return those that are not left out; refuse to go on with none."""
    left = [one for one in tried if one.learner is not None]
    if not left:
        reasons = "; ".join(f"{one.name}: {one.note}" for one in tried)
        raise ValueError(f"no learner could be fitted and certified ({reasons}).")
    return left


def _certified(
    compared: list[Candidate], tried: list[Candidate], rows: _Rows, confidence: Decimal, key: Callable, **asked: Any
) -> tuple[Candidate, Certificate]:
    """Return the best candidate that can be certified, and its certificate.

    The bound is paid for all that were compared on the hold-out rows, those that could not be certified among them.
    """
    predictions = [one.predicted for one in compared]
    while True:
        chosen = min(_taking_part(tried), key=key)
        try:
            model = TableModel(rows.target.type, _view(chosen).encoding, _learner(chosen))
            options = CertifyOptions(compared=predictions, hypothesis_class_fixed=False, **asked)
            certificate = model.certify(rows.table, rows.held, delta=1 - confidence, asked=options)
        except Exception as error:
            _leave_out(chosen, error)
        else:
            chosen.model = model
            return chosen, certificate


_NO_BOUND = {
    True: "Its error on new data has no bound, because the errors of a regression have no range: "
    "pass --clip to give them one.",
    False: "Its error on new data has no bound below the clip: there are too few hold-out rows.",
}


def _why(chosen: Candidate, compared: int, held: int, found: str, confidence: Decimal) -> str:
    if compared == 1:
        return f"{chosen.name}: certified {found}. This holds with {percent(confidence)} confidence."
    return (
        f"{chosen.name} is chosen: of {compared} learners compared on the same {held} hold-out rows it has the "
        f"smallest certified {found}. This holds with {percent(confidence)} confidence, the choice paid for."
    )


def _view(candidate: Candidate) -> View:
    assert candidate.view is not None
    return candidate.view


def _learner(candidate: Candidate) -> Learner:
    assert candidate.learner is not None
    return candidate.learner


def percent(confidence: str | Decimal) -> str:
    """Return a confidence such as "0.95" in per cent."""
    return f"{Decimal(confidence) * 100:f}".rstrip("0").rstrip(".") + " %"
