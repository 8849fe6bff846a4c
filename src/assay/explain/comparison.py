"""Whether one model of a table is proved better than another, on rows that neither was fitted to.

Better at all, of classes: the exact sign test on the rows that exactly one model gets wrong. By how much: the mean of
the difference of the two losses of a row (0 or 1 for a class; the absolute error of a number, counted up to the limit
of a certificate), by betting; without such a limit, of whether the first is further off (+1) or nearer (-1). The bets
are in an order that follows from the rows themselves, so that it does not matter how the table is sorted.

Half of delta is for the sign test and half for the limits. Rows on which a model was chosen among k are paid for:
delta is divided by k, and by what a further look at them costs (`guarantees.ledger.price_of_look`).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.data import RawTable, raw_table
from assay.data.digests import order
from assay.guarantees.fingerprint import data_reference
from assay.guarantees.ledger import price_of_look
from assay.messages import Message
from assay.theory.holdout import mean_limits, sign_test


@dataclass(frozen=True)
class Comparison:
    """`low` to `high` are limits of the first model's mean loss minus the second's: error rates, or mean absolute
    errors up to `clip`; without one, of the share of all rows where the first is further off less that where it is
    nearer. `alone` counts the rows that the first alone, and the second alone, gets wrong (or further off).

    Parameters
    ----------
    rows : int
        Number of rows compared.
    losses : tuple of float
        Mean loss of each model.
    low, high : float
        Limits of the difference.
    verdict : str
        Which model is better, if one is proved to be.
    sentences : tuple of str
        The result in words.
    alone : tuple of int, default=(0, 0)
        Rows on which only the first, and only the second model is wrong.
    clip : float or None
        Absolute errors count at most this; None: signs of differences are compared.
    """

    rows: int
    losses: tuple[float, float]
    low: float
    high: float
    verdict: str
    sentences: tuple[str, ...]
    alone: tuple[int, int] = (0, 0)
    clip: float | None = None


def compare(first: Any, second: Any, source: Any, *, delta: float = 0.05) -> Comparison:
    """Compare two saved models (`assay.load`) on a table with the target.

    Rows that a certificate says a model was fitted to are left out, if this is the table that it is about.

    Parameters
    ----------
    first, second : model file
        What `assay.load` returned.
    source : path, frame or dict
        Table with the target.
    delta : float, default=0.05
        Probability with which the limits may fail.

    Returns
    -------
    Comparison
        Losses, limits and verdict.
    """
    models = first.model, second.model
    table, unseen, compared, said = _rows(first, second, source)
    if len(unseen) < 2:
        raise ValueError(Message("compare.none"))
    rows = table.take(unseen)
    rows = rows.take(order(rows))
    predicted = [model.predict(rows) for model in models]
    share, clip = delta / compared, None
    if models[0].task == "classify":
        y = rows.text(models[0].target.name)
        losses = [
            (_words(prediction) != _words(y, prediction.dtype.kind in "iufb")).astype(np.float64)
            for prediction in predicted
        ]
        what = Message("difference.rate")
    else:
        y = models[0].labels(rows)
        losses = [np.abs(prediction - y) for prediction in predicted]
        clip = _clip(first, second)
        what = Message("difference.sign") if clip is None else Message("difference.clipped", clip=clip)
    alone = int((losses[0] > losses[1]).sum()), int((losses[0] < losses[1]).sum())
    low, high, verdict = _limits(losses, share, clip, models[0].task)
    means = float(losses[0].mean()), float(losses[1].mean())
    sentence = _sentence(verdict, what, low, high, delta)
    return Comparison(len(unseen), means, low, high, verdict, (*said, sentence), alone, clip)


def _limits(losses: list[np.ndarray], delta: float, clip: float | None, task: str) -> tuple[float, float, str]:
    """Return limits of the mean difference, and which is proved better: of classes by the sign test, paid apart."""
    if task == "classify":
        alone = int((losses[0] > losses[1]).sum()), int((losses[0] < losses[1]).sum())
        low, high = mean_limits(losses[0] - losses[1], delta / 2, -1.0, 1.0)
        if sign_test(*alone) <= delta / 4:
            return min(low, 0.0), min(high, 0.0), "first"
        if sign_test(*alone[::-1]) <= delta / 4:
            return max(low, 0.0), max(high, 0.0), "second"
    elif clip is None:
        low, high = mean_limits(np.sign(losses[0] - losses[1]), delta, -1.0, 1.0)
    else:
        difference = np.minimum(losses[0], clip) - np.minimum(losses[1], clip)
        low, high = mean_limits(difference, delta, -clip, clip)
    return low, high, "first" if high < 0 else "second" if low > 0 else "neither"


def _words(values: np.ndarray, numbers: bool = False) -> np.ndarray:
    """Return class labels as text; whole numbers are the same however they are written."""
    return np.array([_word(value, numbers) for value in values.tolist()])


def _word(value: Any, number: bool) -> str:
    try:
        plain = float(value) if number or isinstance(value, float) else None
    except ValueError:
        plain = None
    return str(value) if plain is None else str(int(plain)) if plain.is_integer() else str(plain)


def _clip(*saved: Any) -> float | None:
    """Return up to what errors count in a certificate of the models, which was fixed before its rows were opened."""
    for item in saved:
        for claim in () if item.certificate is None else item.certificate.claims:
            if not claim.is_fact and "clip" in claim.params and claim.params.get("loss", "absolute") == "absolute":
                return float(claim.params["clip"])
    return None


_PROVED = {
    "first": "compare.first-better",
    "second": "compare.second-better",
    "neither": "compare.neither-better",
}
_WHICH = {"first": Message("which.first"), "second": Message("which.second")}


def _sentence(verdict: str, what: Message, low: float, high: float, delta: float) -> Message:
    least, most = math.floor(1e4 * low) / 1e4, math.ceil(1e4 * high) / 1e4
    return Message(_PROVED[verdict], what=what, low=least, high=most, sure=100 * (1 - delta))


def _rows(first: Any, second: Any, source: Any) -> tuple[RawTable, np.ndarray, int, list[str]]:
    """Return the table, the rows that neither model has seen, what choosing on them costs, and sentences about it."""
    target, other = first.model.target, second.model.target
    if (target.name, first.model.task) != (other.name, second.model.task):
        raise ValueError(Message("compare.targets", first=target.name, second=other.name))
    columns = [column.name for saved in (first, second) for column in (*saved.model.columns, saved.model.target)]
    table = raw_table(source, only=list(dict.fromkeys(columns)))
    own = np.intersect1d(first.model.own_rows(table), second.model.own_rows(table))
    missing = table.n_rows - len(own)
    said: list[str] = [Message("compare.missing", count=missing)] if missing else []
    table, unseen, compared = table.take(own), np.arange(len(own)), 1
    for name, saved in (("first", first), ("second", second)):
        which = _WHICH[name]
        held = _held(saved, table)
        if held is None:
            said.append(Message("compare.assumed", which=which))
            continue
        if any(claim.name.startswith("holdout.groups") for claim in saved.certificate.claims):
            raise ValueError(Message("compare.groups", which=which))
        unseen = np.intersect1d(unseen, held)
        look = price_of_look((saved.certificate.looks or {"count": 0})["count"])
        cost = _compared(saved, look)
        compared *= cost * look
        paid = Message("compare.own-paid", which=which, rows=len(held), models=cost)
        said.append(paid if cost > 1 else Message("compare.own", which=which, rows=len(held)))
        if (saved.certificate.looks or {"count": 0})["count"] > 1:
            said.append(Message("compare.looked", which=which))
    return table, unseen, compared, said


def _compared(saved: Any, look: int) -> int:
    """Return among how many models one was chosen on its hold-out rows; what it remembers also pays for the look."""
    others = sum(
        code in ("holdout.binomial", "holdout.betting", "holdout.groups") for code, _ in saved.certificate.unreported
    )
    return max(1 + others, 1 if saved.model.memory is None else saved.model.memory.compared // look)


def _held(saved: Any, table: RawTable) -> np.ndarray | None:
    """Return the hold-out rows, if this is the table that a model's certificate is about; else None."""
    model, certificate = saved.model, saved.certificate
    if certificate is not None and certificate.split is None:
        _refuse_fitted(model, certificate, table)
    if certificate is None or certificate.split is None:
        return None
    kept = [] if certificate.looks is None else certificate.looks["reserve"]  # for later looks, and no part of it
    rest = np.setdiff1d(np.arange(table.n_rows), kept)
    table = table.take(rest)
    train, held = (np.asarray(certificate.split.get(name, ()), dtype=np.intp) for name in ("train", "holdout"))
    if len(train) + len(held) != table.n_rows or not len(held) or max(train.max(), held.max()) >= table.n_rows:
        return None
    rows = model.rows(model.raw(table)[train], model.labels(table)[train])
    classes = model.learner.classes_ if model.task == "classify" else None
    same = data_reference(rows, classes).digest == certificate.data["train"].digest
    return rest[held] if same else None


def _refuse_fitted(model: Any, certificate: Any, table: RawTable) -> None:
    """Refuse the table of a certificate that holds no rows out: the model was fitted to all of it."""
    stated = certificate.data.get("train")
    if stated is None or stated.rows != table.n_rows:
        return
    rows = model.rows(model.raw(table), model.labels(table))
    classes = model.learner.classes_ if model.task == "classify" else None
    if data_reference(rows, classes).digest == stated.digest:
        raise ValueError(Message("compare.fitted", certify="folds"))
