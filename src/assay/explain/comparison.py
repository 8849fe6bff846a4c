"""Whether one model of a table is proved better than another, on rows that neither was fitted to.

Classes: of n rows a are wrong by the first model alone and b by the second alone. The difference of the error rates
is the difference of the probabilities of these two events, and lies between low(a) - high(b) and high(a) - low(b),
the Clopper-Pearson limits at delta/4 each. Numbers: the first is nearer to the truth than the second in more than
half of new rows (or less) if the limits of that share, at delta/2 each, say so; ties count for neither.

Rows on which a model was chosen among k are paid for: delta is divided by k.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.data import Table, read
from assay.guarantees.fingerprint import data_reference
from assay.theory.concentration import clopper_pearson_lower, clopper_pearson_upper


@dataclass(frozen=True)
class Comparison:
    """`low` to `high` are limits of the first model's error rate minus the second's; of numbers, of the share of rows
    where the first is further off than the second, minus one half."""

    rows: int
    losses: tuple[float, float]
    low: float
    high: float
    verdict: str
    sentences: tuple[str, ...]


def compare(first: Any, second: Any, source: Any, *, delta: float = 0.05) -> Comparison:
    """Compare two saved models (`assay.load`) on a table with the target.

    Rows that a certificate says a model was fitted to are left out, if this is the table that it is about.
    """
    models = first.model, second.model
    table, unseen, compared, said = _rows(first, second, source)
    if len(unseen) < 2:
        raise ValueError("there are no two rows that neither model was fitted to; give a table of new rows.")
    rows = table.take(unseen)
    y = models[0].labels(rows)
    predicted = [model.predict(rows) for model in models]
    share = delta / compared
    if models[0].task == "classify":
        wrong = [one.astype(str) != y.astype(str) for one in predicted]
        low, high = _rates(wrong[0], wrong[1], share)
        losses = float(wrong[0].mean()), float(wrong[1].mean())
        what = "error rate of the first minus that of the second"
    else:
        off = [np.abs(one - y) for one in predicted]
        low, high = _nearer(off[0] > off[1], off[0] < off[1], share)
        losses = float(off[0].mean()), float(off[1].mean())
        what = "share of rows in which the first is further off than the second, less one half,"
    verdict = "first" if high < 0 else "second" if low > 0 else "neither"
    return Comparison(len(unseen), losses, low, high, verdict, (*said, _sentence(verdict, what, low, high, delta)))


def _rates(first: np.ndarray, second: np.ndarray, delta: float) -> tuple[float, float]:
    n, a, b = len(first), int((first & ~second).sum()), int((second & ~first).sum())
    low = clopper_pearson_lower(a, n, delta / 4) - clopper_pearson_upper(b, n, delta / 4)
    return low, clopper_pearson_upper(a, n, delta / 4) - clopper_pearson_lower(b, n, delta / 4)


def _nearer(further: np.ndarray, nearer: np.ndarray, delta: float) -> tuple[float, float]:
    n = int(further.sum() + nearer.sum())
    if not n:
        return -0.5, 0.5
    k = int(further.sum())
    return clopper_pearson_lower(k, n, delta / 2) - 0.5, clopper_pearson_upper(k, n, delta / 2) - 0.5


def _sentence(verdict: str, what: str, low: float, high: float, delta: float) -> str:
    proved = {
        "first": "The first model is proved better",
        "second": "The second model is proved better",
        "neither": "Neither model is proved better",
    }[verdict]
    return (
        f"{proved}: the {what} lies between {low:+.4f} and {high:+.4f} with {100 * (1 - delta):g} % confidence, if "
        "these rows are independent draws from the source of new ones."
    )


def _rows(first: Any, second: Any, source: Any) -> tuple[Table, np.ndarray, int, list[str]]:
    """Return the table, the rows that neither model has seen, what choosing on them costs, and sentences about it."""
    target, other = first.model.target, second.model.target
    if (target.name, first.model.task) != (other.name, second.model.task):
        raise ValueError(f"the models predict {target.name!r} and {other.name!r}; they cannot be compared.")
    schema = {column.name: column for saved in (second, first) for column in (*saved.model.columns, saved.model.target)}
    table = source if isinstance(source, Table) else read(source, schema=tuple(schema.values()))
    table, dropped = table.with_target(target.name)
    unseen, compared, said = np.arange(table.n_rows), 1, [dropped] if dropped else []
    for which, saved in (("first", first), ("second", second)):
        held = _held(saved, table)
        if held is None:
            said.append(f"That the {which} model was not fitted to any of these rows is assumed.")
            continue
        unseen = np.intersect1d(unseen, held)
        cost = 1 if saved.model.memory is None else saved.model.memory.compared
        compared *= cost
        said.append(
            f"This is the table of the {which} model's certificate: its {len(held)} hold-out rows are used"
            + (f", and that it was chosen on them among {cost} is paid for." if cost > 1 else ".")
        )
    return table, unseen, compared, said


def _held(saved: Any, table: Table) -> np.ndarray | None:
    """Return the hold-out rows, if this is the table that a model's certificate is about; else None."""
    model, certificate = saved.model, saved.certificate
    if certificate is not None and certificate.split is None:
        _refuse_fitted(model, certificate, table)
    if certificate is None or certificate.split is None:
        return None
    train, held = (np.asarray(certificate.split.get(name, ()), dtype=np.intp) for name in ("train", "holdout"))
    if len(train) + len(held) != table.n_rows or not len(held) or max(train.max(), held.max()) >= table.n_rows:
        return None
    rows = model.rows(model.encoding.raw(table)[0][train], model.labels(table)[train])
    classes = model.learner.classes_ if model.task == "classify" else None
    same = data_reference(rows, classes).digest == certificate.data["train"].digest
    return held if same else None


def _refuse_fitted(model: Any, certificate: Any, table: Table) -> None:
    """Refuse the table of a certificate that holds no rows out: the model was fitted to all of it."""
    stated = certificate.data.get("train")
    if stated is None or stated.rows != table.n_rows:
        return
    rows = model.rows(model.encoding.raw(table)[0], model.labels(table))
    classes = model.learner.classes_ if model.task == "classify" else None
    if data_reference(rows, classes).digest == stated.digest:
        raise ValueError("a model was fitted to every row of this table (--certify folds); compare on other rows.")
