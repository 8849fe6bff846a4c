"""What a worker does: judge a candidate by cross-validation, or fit a finalist and certify it.

A job is plain data and returns plain data, so that it gives the same result in any process.
"""

import pickle
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from assay.base import Learner
from assay.data import ColumnType, Encoding, RawTable
from assay.guarantees.ledger import CertifyOptions
from assay.guarantees.seal import Others
from assay.learning.metrics import Metric
from assay.learning.model import TableModel, target_values
from assay.learning.split import Pair
from assay.messages import Message, of_error, sentences
from assay.registry import find

SMALL = 30_000  # rows up to which a fit is not spread over threads while other processes have work


@dataclass(frozen=True)
class Recipe:
    """How a learner is made: its class by name, its settings, its seed; members for a vote or a stack of others."""

    kind: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    members: tuple["Recipe", ...] = ()
    wrapped: str = ""
    cost: Any = None
    threshold: str = ""

    def make(self, nominal: list[int]) -> Learner:
        """Return the learner, not fitted."""
        kind = _class_of(self.kind)
        given = {"random_state": self.seed, "nominal": nominal, **self.settings}
        if self.members:
            given |= kind.card.begin(0)
            names = [f"{place}-{member.kind.split('.')[-1]}" for place, member in enumerate(self.members)]
            given["estimators"] = list(zip(names, [member.make(nominal) for member in self.members]))
        known = kind._get_param_names()
        made = kind(**{name: value for name, value in given.items() if name in known and value != []})
        if not self.wrapped:
            return made
        options = {"cost": self.cost} if self.cost is not None else {}
        options |= {"threshold": self.threshold} if self.threshold else {}
        return find(self.wrapped)(estimator=made, **options)


def _class_of(name: str) -> type[Learner]:
    """Return the class of a learner; one from outside the package is registered where its module is loaded."""
    try:
        return find(name)
    except ValueError:
        import_module(name.rpartition(".")[0])
        return find(name)


@dataclass(frozen=True)
class Judge:
    """Fit a learner to the rows of each pair and measure its loss on the others."""

    recipe: Recipe
    view: str
    target: str
    nominal: list[int]
    pairs: Sequence[Pair]
    metric: Metric
    n_classes: int

    @property
    def small(self) -> bool:
        """Tell whether threads gain little."""
        return len(self.pairs[0].fit) <= SMALL

    @property
    def alike(self) -> str:
        """What jobs have in common that run the same compiled loops."""
        return self.recipe.kind

    def run(self) -> dict[str, Any]:
        X, y = (np.load(path, mmap_mode="r") for path in (self.view, self.target))
        losses, seconds, predicting = [], [], 0.0
        if len(self.pairs) == 1:
            self._load(X, y)
        for pair in self.pairs:
            began = time.perf_counter()
            learner = self.recipe.make(self.nominal).fit(X[pair.fit], y[pair.fit])
            seconds.append(time.perf_counter() - began)
            if self.recipe.members and min(learner.links_) < 0:
                raise ValueError(Message("member-unreadable"))
            losses.append(self._loss(learner, X[pair.judge], y[pair.judge]))
            predicting = time.perf_counter() - began - seconds[-1]
        per_row = predicting / len(self.pairs[-1].judge)
        return {"losses": losses, "seconds": seconds, "per_row": per_row}

    def _load(self, X: np.ndarray, y: np.ndarray) -> None:
        """Fit to a few rows, so that loading and compiling are not taken for what a fit of many rows costs."""
        rows = self.pairs[0].fit[:: max(1, len(self.pairs[0].fit) // 300)]
        with suppress(Exception):
            self.recipe.make(self.nominal).fit(X[rows], y[rows]).predict(X[rows])

    def _loss(self, learner: Any, X: np.ndarray, y: np.ndarray) -> float:
        predicted, shares = learner.predict(X), None
        if self.n_classes and self.metric.needs_probabilities and hasattr(learner, "predict_proba"):
            shares = np.zeros((len(y), self.n_classes))
            shares[:, learner.classes_] = learner.predict_proba(X)
        if not self.n_classes and not np.isfinite(predicted).all():
            raise ArithmeticError(Message("not-finite"))
        return self.metric.of(y, predicted, shares, self.n_classes)


@dataclass(frozen=True)
class Fit:
    """Fit a learner to rows that are encoded already."""

    recipe: Recipe
    view: str
    y: np.ndarray
    nominal: list[int]

    def run(self) -> dict[str, Any]:
        X, began = np.load(self.view), time.perf_counter()
        learner = self.recipe.make(self.nominal).fit(X, self.y)
        return {"learner": learner, "seconds": time.perf_counter() - began}


@dataclass(frozen=True)
class Certify:
    """Fit a finalist to all training rows, open the hold-out rows, and certify it at its share of delta."""

    recipe: Recipe
    problem: str
    encoding: Encoding
    delta: Decimal
    others: Others
    asked: CertifyOptions
    task: str
    drawn_with: int | None = None
    newest_by: ColumnType | None = None
    look: int = 1
    metric: Metric | None = None
    small = False

    def run(self) -> dict[str, Any]:
        raw, target, train, held = pickle.loads(Path(self.problem).read_bytes())
        rows = raw.take(train)
        X, y = self._training_rows(rows, target)
        began = time.perf_counter()
        learner = self.recipe.make(self.encoding.nominal()).fit(X, y)
        seconds = time.perf_counter() - began
        model = TableModel(target, self.encoding, learner)
        certificate = model.certify(
            raw, held, delta=self.delta, asked=self.asked, others=self.others, seed=self.drawn_with,
            time=self.newest_by, look=self.look,
        )  # fmt: skip
        Xh = model.encode(raw.take(held), lenient=True)[0]
        return {
            "model": model, "certificate": certificate, "seconds": seconds, "train": learner.predict(X),
            "held": learner.predict(Xh), "measured": self._measured(learner, Xh, model.labels(raw.take(held))),
        }  # fmt: skip

    def _measured(self, learner: Any, X: np.ndarray, y: np.ndarray) -> float:
        """Return the metric that was asked for, on the hold-out rows."""
        if self.metric is None:
            return np.nan
        shares = learner.predict_proba(X) if self.metric.needs_probabilities else None
        return self.metric.on(y, learner.predict(X), shares, getattr(learner, "classes_", np.empty(0)))

    def _training_rows(self, rows: RawTable, target: ColumnType) -> tuple[np.ndarray, np.ndarray]:
        X = self.encoding.apply(rows.read_as(self.encoding.schema))
        column = rows.read_as((target,)).column(target.name)
        return X, target_values(column, self.task)


@dataclass(frozen=True)
class Answer:
    """What came of a job: its result, or why there is none; what the learner warned of."""

    result: dict[str, Any] | None
    note: str = ""


@dataclass(frozen=True)
class Compiling:
    """What a worker says meanwhile: whether it compiles loops, or waits for another that does."""

    now: bool


def run(job: Any) -> Answer:
    """Run a job; whatever fails, for want of memory too, is an answer."""
    name = job.recipe.kind.split(".")[-1]
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            result = job.run()
    except Exception as error:
        return Answer(None, reason(name, error))
    texts = [one_line(output.message, name) for output in said if issubclass(output.category, UserWarning)]
    kept = [text for text in dict.fromkeys(texts) if "certificate" not in text]
    return Answer(result, sentences(kept))


def seconds_compiling() -> float:
    """Return for how long this process has compiled loops, if it has loaded any."""
    return sys.modules["assay.loop_cache"].seconds_compiling() if "assay.loop_cache" in sys.modules else 0.0


def together(answers: Sequence[Answer]) -> Answer:
    """Return the answer to a job that was done in parts, one after the other in the order of its pairs."""
    failed = next((answer for answer in answers if answer.result is None), None)
    if failed is not None:
        return failed
    parts = [answer.result for answer in answers if answer.result is not None]
    lists = {name: [value for part in parts for value in part[name]] for name in ("losses", "seconds")}
    return Answer({**parts[-1], **lists}, sentences([answer.note for answer in answers]))


def reason(name: str, error: Exception) -> str:
    """Return why a learner is left out: its own refusal, or what kind of failure it was."""
    text = one_line(error, name)
    if isinstance(error, (ValueError, ArithmeticError)) and text:
        return text
    return Message("error", kind=type(error).__name__, text=text) if text else f"{type(error).__name__}."


def one_line(message: Any, name: str) -> str:
    """Return what an exception or a warning says, without the name of the learner that says it."""
    said = of_error(message)
    if isinstance(said, Message):
        return said.values["what"] if said.code == "named" and said.values["who"] == name else said
    return " ".join(said.split()).removeprefix(f"{name}: ")[:400]
