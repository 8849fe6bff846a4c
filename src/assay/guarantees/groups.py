"""Statements about new groups (holdout.groups), where hold-out groups are the sample, and about the squared distance of
new rows to the nearest of k centres or to a flat (kmeans.risk).
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.evidence import Decided, Distances, Gathered, Predictions, labels, wrong_rows
from assay.guarantees.ledger import DOWN, OUTWARD, CertifyOptions, Statement, Vacuous, claim
from assay.guarantees.order import BetOrder
from assay.messages import Message
from assay.scan import Rows
from assay.theory.concentration import betting_upper


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
