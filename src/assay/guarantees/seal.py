"""Issue a certificate: seal a learner's facts with fingerprints, and add what can be said about new data."""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from assay.claims.claim import Certificate, Claim, DataReference, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.error_floor import error_floor
from assay.guarantees.evidence import Decided, Distances, Gathered, Penalised, Predictions
from assay.guarantees.fingerprint import data_reference, model_reference, near_copies
from assay.guarantees.ledger import CertifyOptions, Vacuous
from assay.guarantees.order import BetOrder
from assay.guarantees.statements import make_statements
from assay.messages import Message
from assay.params import refuse
from assay.scan import Rows

# Failure probability spent on each data set by this process: fingerprint -> (certificates, sum of deltas).
_session: dict[str, tuple[int, Fraction]] = {}

_RANGE = (1e-150, 1e150)  # of every number in a claim: their products neither overflow nor lose digits
_OUT_OF_RANGE = Message("why.out-of-range")


class RepeatedUseWarning(UserWarning):
    """Rows were certified on more than once, so that the best of the certificates is paid for by all of them."""


class DataSplit(NamedTuple):
    """The rows of a certificate: training, hold-out, and their row numbers if both come from one table."""

    train: Rows
    holdout: Rows | None = None
    split: Mapping[str, np.ndarray] | None = None


class About(NamedTuple):
    """The model that a certificate is about, and its rows as they are fingerprinted."""

    model: Any
    cut: DataSplit


class Others(NamedTuple):
    """What was spent on models that this one was chosen from: the total delta, and their ledger entries."""

    delta: Decimal
    entries: tuple[tuple[str, str], ...] = ()


def issue(
    learner: Any,
    cut: DataSplit,
    *,
    delta: Decimal,
    asked: CertifyOptions,
    others: Others | None = None,
    about: About | None = None,
) -> Certificate:
    """Return the certificate of a fitted learner on the rows of `cut`; its statements share `delta`.

    With `others`, the certificate is about the chosen one of several models, whose statements all count; with `about`,
    about the model of a table whose encoded rows are those of `cut`.
    """
    about = About(learner, cut) if about is None else about
    has_target = get_tags(learner).target_tags.required
    data = {name: data_reference(rows, _classes(learner), has_target) for name, rows in _named(about.cut)}
    with learner.certifying():
        found = gather(learner, cut)
        if asked.radius is not None and not (found["train"].get(Distances) or found["train"].get(Penalised)):
            raise refuse(learner, "radius is for centres, flats and linear classifiers with a penalty.")
        about_new = make_statements(learner, cut, found, delta, asked, _order(learner, about.cut))
        stated = list(_published([*_about_rows(about.cut, cut, found), *learner.facts(cut.train), *about_new]))
    others = Others(delta) if others is None else others
    spent = any(isinstance(one, (Claim, Vacuous)) for one in about_new)
    _log_session(cut, data, Fraction(others.delta) if spent else Fraction(0))
    unreported = tuple((one.name, one.delta) for one in stated if isinstance(one, Vacuous))
    return Certificate(
        claims=tuple(one for one in stated if isinstance(one, Claim)),
        model=model_reference(about.model),
        data=data,
        delta_total=str(others.delta),
        not_applicable=tuple(one for one in stated if isinstance(one, NotApplicable)),
        unreported=(*unreported, *others.entries),
        split=about.cut.split,
    )


def risks(learner: Any, cut: DataSplit, *, delta: Decimal, asked: CertifyOptions) -> list[Claim | NotApplicable]:
    """Return what a certificate at `delta` would say about new data, without its facts."""
    return make_statements(learner, cut, gather(learner, cut), delta, asked, _order(learner, cut))


def gather(learner: Any, cut: DataSplit) -> dict[str, Gathered]:
    """Return the learner's evidence about each data set."""
    return {name: Gathered(learner.evidence(rows), rows) for name, rows in _named(cut)}


def _order(learner: Any, cut: DataSplit) -> BetOrder:
    """Return the order of bets on the hold-out rows, as they are fingerprinted."""
    rows = cut.train if cut.holdout is None else cut.holdout
    return BetOrder(rows, _classes(learner), get_tags(learner).target_tags.required)


def _classes(learner: Any) -> Any:
    return learner.classes_ if is_classifier(learner) else None


def _published(stated: Iterable[Claim | NotApplicable]) -> Iterable[Claim | NotApplicable]:
    """Yield the claims whose numbers a checker reads, and why the others, and what rests on them, are not
    made."""
    dropped = set()
    for one in stated:
        rests_on = one.params.get("gap") if isinstance(one, Claim) else None
        if isinstance(one, Claim) and (not _in_range(one) or rests_on in dropped):
            dropped.add(one.name)
            yield NotApplicable(one.name, _OUT_OF_RANGE)
        else:
            yield one


def _in_range(claim: Claim) -> bool:
    return all(_RANGE[0] <= abs(value) <= _RANGE[1] for value in _numbers((claim.value, claim.params)) if value != 0)


def _numbers(values: Any) -> Iterator[float]:
    """Yield the floats among values, however they are nested."""
    if isinstance(values, float):
        yield values
    elif isinstance(values, (Mapping, list, tuple)):
        for one in values.values() if isinstance(values, Mapping) else values:
            yield from _numbers(one)


def _named(cut: DataSplit) -> list[tuple[str, Rows]]:
    return [(name, rows) for name, rows in (("train", cut.train), ("holdout", cut.holdout)) if rows is not None]


def _about_rows(given: DataSplit, cut: DataSplit, found: Mapping[str, Gathered]) -> Iterable[Claim]:
    """Yield the facts that every learner's certificate has: which rows, and how the model does on them."""
    stated = dict(_named(given))
    for name, rows in _named(cut):
        near = {"near": near_copies(given.train, stated[name])} if name == "holdout" else {}
        yield Claim("data.identity", float(rows.n_rows), "lower", {"set": name, **near}, (name,))
        if found[name].get(Decided):
            low, high = found[name].errors
            params: dict[str, Any] = {"set": name, "rows": rows.n_rows, "loss": "zero-one", "low": low}
            yield Claim("train.errors", float(high), "upper", params, (name,))
        elif predicted := found[name].get(Predictions):
            least, most = predicted.squared_error(rows)
            params = {"set": name, "rows": rows.n_rows, "loss": "squared", "low": least}
            yield Claim("train.errors", most, "upper", params, (name,))
    if found["train"].get(Decided):
        yield from error_floor(cut.train)


def _log_session(cut: DataSplit, data: Mapping[str, DataReference], spent: Fraction) -> None:
    """Count this certificate on each data set it uses and on their union; warn when they were used before.

    The union is known by a sum that does not depend on how its rows were split, so that trying many splits of
    one table counts as using it many times.
    """
    union = sum(int(rows.sum(_bit_sum)[0]) for _, rows in _named(cut)) % 2**64
    whole = f"{sum(reference.rows for reference in data.values())}:{union}"
    for key in (whole, *(reference.digest for reference in data.values())):
        count, sum_of_deltas = _session.get(key, (0, Fraction(0)))
        _session[key] = (count + 1, sum_of_deltas + spent)
    count, total = max(_session[key] for key in (whole, *(reference.digest for reference in data.values())))
    if count > 1 and spent:
        warnings.warn(
            f"This is certificate {count} on these rows in this session; together they spent a failure probability of "
            f"{float(total):g}. Choosing the best of them is covered only at that total.",
            RepeatedUseWarning,
            stacklevel=5,
        )


def _bit_sum(block: Block) -> np.ndarray:
    """Return the sum modulo 2^64 of the entries' bits, read as integers; an array, since those wrap
    silently."""
    return np.ascontiguousarray(block.X).view(np.uint64).sum(dtype=np.uint64, keepdims=True).ravel()
