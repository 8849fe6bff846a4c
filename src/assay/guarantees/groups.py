"""Statements about new groups (holdout.groups): hold-out groups are the draws."""

import hashlib
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from assay.claims.claim import Claim, NotApplicable
from assay.guarantees.evidence import Decided, Gathered, Predictions, labels, wrong_rows
from assay.guarantees.ledger import DOWN, OUTWARD, CertifyOptions, Vacuous, claim
from assay.guarantees.order import BetOrder
from assay.messages import Message
from assay.scan import Rows
from assay.theory.concentration import betting_upper


def of_groups(
    found: Gathered, train: Rows, holdout: Rows, asked: CertifyOptions, delta: Decimal, order: BetOrder
) -> list[Any]:
    """Return a bound of the mean over groups of the mean loss within a group and, if a baseline is asked for, at a
    tenth of delta, how that differs from the baseline's on the same rows."""
    losses, clip, more = _losses(found, holdout, asked)
    if losses is None:
        why = Message("why.groups-range")
        return [NotApplicable("holdout.groups", why)]
    names = texts(asked.groups)
    group = np.unique(np.array(names, dtype=object), return_inverse=True)[1]
    more = {**more, "group": asked.group_name, "fingerprint": digest_of(names)}
    tenth = DOWN.multiply(delta, Decimal("0.1")) if asked.baseline else Decimal(0)
    stated: list[Any] = [_mean(losses, clip, group, more, order, str(delta - tenth))]
    if asked.baseline:
        stated.append(_against(losses, clip, group, more, order, _constant(found, train), holdout, str(tenth)))
    return stated


def _losses(found: Gathered, holdout: Rows, asked: CertifyOptions) -> tuple[np.ndarray | None, float, dict[str, Any]]:
    """Return the loss of each row, its largest value, and what a claim says of it; None if there is no such loss."""
    if decided := found.get(Decided):
        return wrong_rows(decided.positions(holdout), labels(holdout)).astype(np.float64), 1.0, {}
    predicted = found.get(Predictions)
    if asked.clip is None or predicted is None or predicted.targets(holdout) > 1:
        return None, 0.0, {}
    clip = float(asked.clip)
    rounding = predicted.largest_radius(holdout)
    return np.minimum(predicted.clipped_errors(holdout, clip) + 2 * rounding, clip), clip, {"loss": "absolute"}


def _mean(
    losses: np.ndarray, clip: float, group: np.ndarray, more: dict[str, Any], order: BetOrder, delta: str
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
    more: dict[str, Any],
    order: BetOrder,
    constant: Any,
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


def _constant(found: Gathered, train: Rows) -> Any:
    """Return the position of the commonest class of the training rows, or the lower median of their targets."""
    if found.get(Decided):
        return int(np.bincount(labels(train)).argmax())
    targets = np.concatenate([np.ravel(block.y) for block in train.blocks()])
    return float(np.sort(targets)[(len(targets) - 1) // 2])


def texts(values: Any) -> list[str]:
    """Return the values of a column as text: whole numbers without a point, others as Python writes them; a missing
    one is empty, so that rows without a value are one group.

    >>> texts([1.0, 2.5, "a", 3, None])
    ['1', '2.5', 'a', '3', '']
    """
    listed = ["" if one is None or one != one else one for one in np.asarray(values, dtype=object).tolist()]
    return [str(int(one)) if isinstance(one, float) and one.is_integer() else str(one) for one in listed]


def digest_of(names: list[str]) -> str:
    """Return the fingerprint of a column of text (SPEC.md, section 1)."""
    parts = (name.encode() for name in names)
    content = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    return hashlib.sha256(b"assay-column/1\n" + content).hexdigest()
