"""Issue a certificate: a learner's facts, the statements about new data that apply to it, and the fingerprints.

Statements about new groups (holdout.groups), where hold-out groups are the sample, and about the squared distance of
new rows to the nearest of k centres or to a flat (kmeans.risk).
"""

import hashlib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from assay.claims.claim import Certificate, Claim, DataReference, NotApplicable
from assay.claims.model import Storable
from assay.data.blocks import Block
from assay.guarantees import holdout
from assay.guarantees.compression import error_floor
from assay.guarantees.evidence import Decided, Density, Distances, Gathered, Penalised, Predictions, labels, wrong_rows
from assay.guarantees.fingerprint import BetOrder, data_reference, model_reference, near_copies
from assay.guarantees.ledger import (
    DOWN,
    OUTWARD,
    CertifyOptions,
    Expected,
    Prepared,
    SecondaryBound,
    Statement,
    Vacuous,
    claim,
    error_rate,
)
from assay.guarantees.margins import by_norm, in_ball
from assay.messages import Message
from assay.params import refuse
from assay.scan import Rows
from assay.theory import vc
from assay.theory.concentration import betting_upper
from assay.theory.spaces import Space

if TYPE_CHECKING:
    from assay.base import Learner


def make_statements(
    learner: "Learner",
    cut: "DataSplit",
    results: Mapping[str, Gathered],
    delta: Decimal,
    asked: CertifyOptions,
    order: BetOrder,
) -> list[Claim | NotApplicable]:
    """Return every statement about new data at its share of delta: claims, and why others are not made.

    `results` holds the evidence about each data set; bounds use the largest number of errors that rounding leaves open.
    `order` is that of bets on the hold-out rows.
    """
    if asked.groups is not None and cut.holdout is not None:
        return of_groups(results["holdout"], cut.train, cut.holdout, asked, delta, order)
    prepared = prepare(learner, cut, results, asked, order)
    shares = prepared.shares(delta)
    each: list[Claim | NotApplicable] = []
    for place, expected in enumerate(prepared.all()):
        made = expected if isinstance(expected, NotApplicable) else expected(shares[place])
        each += made if isinstance(made, list) else [made]
    return sorted(each, key=lambda item: isinstance(item, NotApplicable) and not isinstance(item, Vacuous))


def prepare(
    learner: "Learner", cut: "DataSplit", results: Mapping[str, Gathered], asked: CertifyOptions, order: BetOrder
) -> Prepared:
    """Return the statements that apply to a learner, before any of them is computed."""
    train, held = results["train"], results.get("holdout", Gathered([]))
    if train.get(Decided):
        if cut.holdout is not None and held.too_open:
            return Prepared([], [NotApplicable("holdout.binomial", held.too_open)])
        if cut.holdout is None and train.too_open:
            return Prepared([], [NotApplicable("vc", train.too_open)])
        on_holdout = holdout.of_classifier(learner.classes_, cut.holdout, held, asked, order)
        beside = list(_secondary_bounds(cut.train, cut.holdout, held, order)) if asked.baseline and cut.holdout else []
        return Prepared(
            list(_of_class(learner, cut.train, train, train.errors[1], asked)),
            [*on_holdout, *learner.holdout_statements(cut.holdout, asked), *beside],
        )
    if train.get(Density):
        return Prepared([], list(holdout.of_density(cut.holdout, held, asked, order)))
    if distances := train.get(Distances):
        return Prepared(
            list(by_radius(distances, cut.train, asked)) if asked.hypothesis_class_fixed else [],
            list(of_distances(cut.holdout, held, asked, order)),
        )
    if train.get(Predictions) is None and learner.card.task != "regress":
        return Prepared([], list(learner.holdout_statements(cut.holdout, asked)))
    training = [*by_norm(train, cut.train, asked), *learner.statements(cut.train)]
    stated: list[Expected] = list(holdout.of_regressor(cut.holdout, held, asked, order))
    if (
        cut.holdout is not None
        and asked.baseline
        and any(not isinstance(expected, NotApplicable) for expected in stated)
    ):
        predicted, clip = held.the(Predictions), float(asked.clip)
        stated.append(SecondaryBound(partial(holdout.against_median, predicted, cut.train, cut.holdout, clip, order)))
    return Prepared(training if asked.hypothesis_class_fixed else [], stated)


def _secondary_bounds(train: Rows, rows: Rows, held: Gathered, order: BetOrder) -> Iterator[SecondaryBound]:
    """Yield the comparison with the class that most training rows have."""
    commonest = int(np.bincount(labels(train)).argmax())
    yield SecondaryBound(holdout.against_baseline(held.the(Decided), rows, commonest, order))


def _of_class(
    learner: "Learner", train: Rows, gathered: Gathered, errors: int, asked: CertifyOptions
) -> Iterator[Statement | NotApplicable]:
    if asked.hypothesis_class_fixed:
        yield from _by_class(learner.space(train), train, errors)
        yield from learner.statements(train)
        yield from in_ball(learner, train, gathered, asked)
    else:
        yield NotApplicable(
            "vc",
            Message("why.encoding-fitted"),
        )


def _by_class(space: Space, train: Rows, errors: int) -> Iterator[Statement | NotApplicable]:
    n = train.n_rows
    if space.vc_dimension is None or space.vc_dimension == np.inf:
        yield NotApplicable("vc", space.why_no_bound)
    elif train.has_weight:
        yield NotApplicable("vc", Message("why.weights.errors"))
    elif space.price == 1 and space.log_growth(5 * n) >= n / 3:
        yield NotApplicable(
            "vc",
            Message("why.few-for-class", rows=n, space=str(space)),
        )
    else:
        yield partial(_ghost_sample, errors, n, space)


def _ghost_sample(errors: int, n: int, space: Space, delta: str) -> Claim | NotApplicable:
    # A class whose size is not fixed in advance has a share of delta that depends on its size.
    result = vc.ghost_sample_bound(errors, n, space.log_growth, float(delta) / space.price)
    if result.bound >= 1:
        return Vacuous("vc", Message("why.class-vacuous", errors=errors, rows=n, space=str(space)), delta)
    params = {
        "class": space.descriptor(),
        "form": "c",
        "errors": errors,
        "rows": n,
        "M": result.M,
        "q": result.q,
        "K": result.K,
    }
    return error_rate("vc", result.bound, params, "train", delta)


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

    model: Storable
    cut: DataSplit


class Others(NamedTuple):
    """What was spent on models that this one was chosen from: the total delta, and their ledger entries."""

    delta: Decimal
    entries: tuple[tuple[str, str], ...] = ()


def issue(
    learner: "Learner",
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
        result = gather(learner, cut)
        if asked.radius is not None and not (result["train"].get(Distances) or result["train"].get(Penalised)):
            raise refuse(learner, "radius is for centres, flats and linear classifiers with a penalty.")
        about_new = make_statements(learner, cut, result, delta, asked, _order(learner, about.cut))
        stated = list(_published([*_about_rows(about.cut, cut, result), *learner.facts(cut.train), *about_new]))
    others = Others(delta) if others is None else others
    spent = any(isinstance(item, (Claim, Vacuous)) for item in about_new)
    _log_session(cut, data, Fraction(others.delta) if spent else Fraction(0))
    unreported = tuple((statement.name, statement.delta) for statement in stated if isinstance(statement, Vacuous))
    return Certificate(
        claims=tuple(statement for statement in stated if isinstance(statement, Claim)),
        model=model_reference(about.model),
        data=data,
        delta_total=str(others.delta),
        not_applicable=tuple(statement for statement in stated if isinstance(statement, NotApplicable)),
        unreported=(*unreported, *others.entries),
        split=about.cut.split,
    )


def risks(learner: "Learner", cut: DataSplit, *, delta: Decimal, asked: CertifyOptions) -> list[Claim | NotApplicable]:
    """Return what a certificate at `delta` would say about new data, without its facts."""
    return make_statements(learner, cut, gather(learner, cut), delta, asked, _order(learner, cut))


def gather(learner: "Learner", cut: DataSplit) -> dict[str, Gathered]:
    """Return the learner's evidence about each data set."""
    return {name: Gathered(learner.evidence(rows), rows) for name, rows in _named(cut)}


def _order(learner: "Learner", cut: DataSplit) -> BetOrder:
    """Return the order of bets on the hold-out rows, as they are fingerprinted."""
    rows = cut.train if cut.holdout is None else cut.holdout
    return BetOrder(rows, _classes(learner), get_tags(learner).target_tags.required)


def _classes(learner: "Learner") -> np.ndarray | None:
    return learner.classes_ if is_classifier(learner) else None


def _published(stated: Iterable[Claim | NotApplicable]) -> Iterable[Claim | NotApplicable]:
    """Yield the claims whose numbers a checker reads, and why the others, and what rests on them, are not
    made."""
    dropped = set()
    for statement in stated:
        rests_on = statement.params.get("gap") if isinstance(statement, Claim) else None
        if isinstance(statement, Claim) and (not _in_range(statement) or rests_on in dropped):
            dropped.add(statement.name)
            yield NotApplicable(statement.name, _OUT_OF_RANGE)
        else:
            yield statement


def _in_range(claim: Claim) -> bool:
    return all(_RANGE[0] <= abs(value) <= _RANGE[1] for value in _numbers((claim.value, claim.params)) if value != 0)


def _numbers(values: object) -> Iterator[float]:
    """Yield the floats among values, however they are nested."""
    if isinstance(values, float):
        yield values
    elif isinstance(values, (Mapping, list, tuple)):
        for value in values.values() if isinstance(values, Mapping) else values:
            yield from _numbers(value)


def _named(cut: DataSplit) -> list[tuple[str, Rows]]:
    return [(name, rows) for name, rows in (("train", cut.train), ("holdout", cut.holdout)) if rows is not None]


def _about_rows(given: DataSplit, cut: DataSplit, results: Mapping[str, Gathered]) -> Iterable[Claim]:
    """Yield the facts that every learner's certificate has: which rows, and how the model does on them."""
    stated = dict(_named(given))
    for name, rows in _named(cut):
        near = {"near": near_copies(given.train, stated[name])} if name == "holdout" else {}
        yield Claim("data.identity", float(rows.n_rows), "lower", {"set": name, **near}, (name,))
        if results[name].get(Decided):
            low, high = results[name].errors
            params: dict[str, Any] = {"set": name, "rows": rows.n_rows, "loss": "zero-one", "low": low}
            yield Claim("train.errors", float(high), "upper", params, (name,))
        elif predicted := results[name].get(Predictions):
            least, most = predicted.squared_error(rows)
            params = {"set": name, "rows": rows.n_rows, "loss": "squared", "low": least}
            yield Claim("train.errors", most, "upper", params, (name,))
    if results["train"].get(Decided):
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
    total: np.ndarray = np.ascontiguousarray(block.X).view(np.uint64).sum(dtype=np.uint64, keepdims=True).ravel()
    return total


def of_groups(
    gathered: Gathered, train: Rows, holdout: Rows, asked: CertifyOptions, delta: Decimal, order: BetOrder
) -> list[Claim | NotApplicable]:
    """Return a bound of the mean over groups of the mean loss within a group and, if a baseline is asked for, at a
    tenth of delta, how that differs from the baseline's on the same rows."""
    losses, clip, more = _losses(gathered, holdout, asked)
    if losses is None:
        why = Message("why.groups-range")
        return [NotApplicable("holdout.groups", why)]
    names = texts(asked.groups)
    group = np.unique(np.array(names, dtype=object), return_inverse=True)[1]
    more = {**more, "group": asked.group_name, "fingerprint": digest_of(names)}
    tenth = DOWN.multiply(delta, Decimal("0.1")) if asked.baseline else Decimal(0)
    stated: list[Claim | NotApplicable] = [_mean(losses, clip, group, more, order, str(delta - tenth))]
    if asked.baseline:
        stated.append(_against(losses, clip, group, more, order, _constant(gathered, train), holdout, str(tenth)))
    return stated


def _losses(
    gathered: Gathered, holdout: Rows, asked: CertifyOptions
) -> tuple[np.ndarray | None, float, dict[str, object]]:
    """Return the loss of each row, its largest value, and what a claim says of it; None if there is no such loss."""
    if decided := gathered.get(Decided):
        return wrong_rows(decided.positions(holdout), labels(holdout)).astype(np.float64), 1.0, {}
    predicted = gathered.get(Predictions)
    if asked.clip is None or predicted is None or predicted.targets(holdout) > 1:
        return None, 0.0, {}
    clip = float(asked.clip)
    rounding = predicted.largest_radius(holdout)
    return np.minimum(predicted.clipped_errors(holdout, clip) + 2 * rounding, clip), clip, {"loss": "absolute"}


def _mean(
    losses: np.ndarray, clip: float, group: np.ndarray, more: Mapping[str, object], order: BetOrder, delta: str
) -> Claim | NotApplicable:
    count = int(group.max()) + 1
    if count < 2:
        return Vacuous("holdout.groups", Message("why.one-group"), delta)
    means = np.minimum(np.bincount(group, losses) / np.bincount(group) / clip * (1 + 1e-12), 1.0)
    upper = _bounded(means, group, order, delta)
    bound = clip * (upper + 2 * OUTWARD)
    if bound >= clip:
        return Vacuous("holdout.groups", Message("why.groups-vacuous", groups=count, clip=clip), delta)
    params = {"clip": clip, "rows": len(losses), **more, "groups": count}
    return claim("holdout.groups", bound, params, "holdout", delta)


def _against(
    losses: np.ndarray,
    clip: float,
    group: np.ndarray,
    more: Mapping[str, object],
    order: BetOrder,
    constant: float,
    holdout: Rows,
    delta: str,
) -> Claim | NotApplicable:
    """Return how the mean over groups differs from that of always answering the same."""
    count = int(group.max()) + 1
    if count < 2:
        return Vacuous("holdout.groups-baseline", Message("why.one-group"), delta)
    targets = np.concatenate([np.ravel(block.y) for block in holdout.blocks()])
    own = {"constant": constant} if "loss" in more else {"label": constant}
    other = np.minimum(np.abs(targets - constant), clip) if "loss" in more else (targets != constant).astype(np.float64)
    means = np.bincount(group, losses - other) / np.bincount(group) / clip
    upper = _bounded(np.clip((means + 1) / 2 + OUTWARD, 0.0, 1.0), group, order, delta)
    most = clip * (2 * upper - 1 + 4 * OUTWARD)
    if most >= clip:
        return Vacuous("holdout.groups-baseline", Message("why.few-groups", groups=count), delta)
    params = {"clip": clip, "rows": len(losses), **more, "groups": count, **own}
    direction = "lower" if most < 0 else "upper"
    stated = claim("holdout.groups-baseline", abs(most), params, "holdout", delta, direction=direction)
    return replace(stated, data=("train", "holdout"))


def _bounded(means: np.ndarray, group: np.ndarray, order: BetOrder, delta: str) -> float:
    return betting_upper(means[order.of_groups(group)], float(delta))


def _constant(gathered: Gathered, train: Rows) -> float:
    """Return the position of the commonest class of the training rows, or the lower median of their targets."""
    if gathered.get(Decided):
        return int(np.bincount(labels(train)).argmax())
    targets = np.concatenate([np.ravel(block.y) for block in train.blocks()])
    return float(np.sort(targets)[(len(targets) - 1) // 2])


def texts(values: ArrayLike | None) -> list[str]:
    """Return the values of a column as text: whole numbers without a point, others as Python writes them; a missing
    one is empty, so that rows without a value are one group.

    >>> texts([1.0, 2.5, "a", 3, None])
    ['1', '2.5', 'a', '3', '']
    """
    listed = ["" if value is None or value != value else value for value in np.asarray(values, dtype=object).tolist()]
    return [str(int(value)) if isinstance(value, float) and value.is_integer() else str(value) for value in listed]


def digest_of(names: list[str]) -> str:
    """Return the fingerprint of a column of text (SPEC.md, section 1)."""
    parts = (name.encode() for name in names)
    content = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    return hashlib.sha256(b"assay-column/1\n" + content).hexdigest()


_ROUNDING = 1e-12  # relative, of a squared distance


class Sizes(NamedTuple):
    """Sums over rows: |x|^2, |x|^4, and the number of rows outside a ball."""

    squares: float
    fourth: float
    outside: int


def by_radius(distances: Distances, train: Rows, asked: CertifyOptions) -> Iterator[Statement | NotApplicable]:
    """Yield the Rademacher bound of the mean squared distance, or why it is not made."""
    name = distances.claim
    if asked.radius is None:
        yield NotApplicable(name, Message("why.distance-radius"))
    elif train.has_weight:
        yield NotApplicable(name, Message("why.weights.mean"))
    elif distances.why_not or distances.bound is None:
        yield NotApplicable(name, distances.why_not)
    else:
        yield partial(_stated, distances, train, float(asked.radius))


def _stated(distances: Distances, train: Rows, radius: float, delta: str) -> Claim | NotApplicable:
    name, sizes = distances.claim, Sizes(*train.sum(_sizes, radius))
    if sizes.outside:
        reason = Message("why.radius-reached", rows=sizes.outside, radius=radius)
        return Vacuous(name, reason, delta)
    mean = _upper(distances.squares(train), radius).sum() / train.n_rows
    params, bound = distances.bound(  # type: ignore[misc]
        float(mean), sizes, train.n_rows, radius, float(delta)
    )
    if bound >= 4 * radius * radius:
        return Vacuous(name, Message("why.ball-vacuous", rows=train.n_rows), delta)
    params |= {"radius": radius, "rows": train.n_rows}
    return claim(name, bound * (1 + OUTWARD), params, "train", delta)


def _sizes(block: Block, radius: float) -> tuple[float, float, int]:
    squares = np.einsum("ij,ij->i", block.X, block.X)
    outside = int(np.sum(squares > radius * radius * (1 - 1e-12)))
    return float(squares.sum()), float(squares @ squares), outside


def _longest(block: Block) -> float:
    return float(np.einsum("ij,ij->i", block.X, block.X).max())


def _upper(distances: np.ndarray, radius: float) -> np.ndarray:
    """Return distances that those of another order of summation do not exceed."""
    return distances * (1 + _ROUNDING) + _ROUNDING * radius * radius


def of_distances(
    holdout: Rows | None, gathered: Gathered, asked: CertifyOptions, order: BetOrder
) -> Iterator[Statement | NotApplicable]:
    """Yield bounds of the mean squared distance of new rows from hold-out rows, clipped at a number fixed in
    advance."""
    clip = asked.clip if asked.clip is not None or asked.radius is None else 4 * asked.radius**2
    if holdout is None:
        yield NotApplicable("holdout.betting", Message("why.no-holdout"))
    elif clip is None:
        yield NotApplicable("holdout.betting", Message("why.distance-clip"))
    else:
        compared = max(1, len(asked.compared))
        yield partial(_mean_distance, gathered.the(Distances), holdout, float(clip), compared, order)


def _mean_distance(
    distances: Distances, holdout: Rows, clip: float, compared: int, order: BetOrder, delta: str
) -> Claim | NotApplicable:
    longest = float(np.sqrt(np.max(holdout.map(_longest))))
    losses = np.minimum(_upper(distances.squares(holdout), longest), clip)[order.of_rows]
    bound = clip * betting_upper(losses / clip, float(delta) / compared) * (1 + 1e-10)
    if bound >= clip:
        why = Message("why.distance-vacuous", rows=len(losses), clip=clip)
        return Vacuous("holdout.betting", why, delta)
    params: dict[str, Any] = {"clip": clip, "rows": len(losses), "compared": compared, "loss": "distance"}
    return claim("holdout.betting", bound + clip * OUTWARD, params, "holdout", delta)
