"""Statements about new groups (P66): hold-out groups, in order, are the draws."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from assay.claims.claim import Claim, NotApplicable
from assay.guarantees.evidence import Decided, Gathered, Predictions, labels
from assay.guarantees.holdout import MEAN_LOSS
from assay.guarantees.ledger import DOWN, OUTWARD, CertifyOptions, Vacuous, claim
from assay.scan import Rows

_MANY = 30  # groups from which betting on them does better than Chernoff's bound


def of_groups(found: Gathered, train: Rows, holdout: Rows, asked: CertifyOptions, delta: Decimal) -> list[Any]:
    """Return a bound of the mean over groups of the mean loss within a group and, if a baseline is asked for, at a
    tenth of delta, how that differs from the baseline's on the same rows."""
    losses, clip, more = _losses(found, holdout, asked)
    if losses is None:
        why = "It needs an error of each row with a range: pass clip=, and predict one target."
        return [NotApplicable("P66/1", why)]
    group = np.unique(np.asarray(asked.groups), return_inverse=True)[1]
    tenth = DOWN.multiply(delta, Decimal("0.1")) if asked.baseline else Decimal(0)
    stated: list[Any] = [_mean(losses, clip, group, more, str(delta - tenth))]
    if asked.baseline:
        stated.append(_against(losses, clip, group, more, _constant(found, train), holdout, str(tenth)))
    return stated


def _losses(found: Gathered, holdout: Rows, asked: CertifyOptions) -> tuple[np.ndarray | None, float, dict[str, Any]]:
    """Return the loss of each row, its largest value, and what a claim says of it; None if there is no such loss."""
    if decided := found.get(Decided):
        return (decided.positions(holdout) != labels(holdout)).astype(np.float64), 1.0, {}
    predicted = found.get(Predictions)
    if asked.clip is None or predicted is None or predicted.targets(holdout) > 1:
        return None, 0.0, {}
    clip = float(asked.clip)
    rounding = predicted.largest_radius(holdout)
    return np.minimum(predicted.clipped_errors(holdout, clip) + 2 * rounding, clip), clip, {"loss": "absolute"}


def _mean(losses: np.ndarray, clip: float, group: np.ndarray, more: dict[str, Any], delta: str) -> Any:
    count = int(group.max()) + 1
    if count < 2:
        return Vacuous("P66/1", "One hold-out group says next to nothing about new groups.", delta)
    means = np.minimum(np.bincount(group, losses) / np.bincount(group) / clip * (1 + 1e-12), 1.0)
    how, upper = _bounded(means, delta)
    bound = clip * (upper + 2 * OUTWARD)
    if bound >= clip:
        return Vacuous("P66/1", f"With {count} hold-out groups the bound is {clip:g}, the largest loss.", delta)
    params = {"clip": clip, "rows": len(losses), **more, "groups": count, "how": how}
    return claim("P66/1", bound, params, "holdout", delta, witness={"group": group})


def _against(
    losses: np.ndarray, clip: float, group: np.ndarray, more: dict[str, Any], constant: Any, holdout: Rows, delta: str
) -> Claim | NotApplicable:
    """Return how the mean over groups differs from that of always answering the same."""
    count = int(group.max()) + 1
    if count < 2:
        return Vacuous("P66/2", "One hold-out group says next to nothing about new groups.", delta)
    targets = np.concatenate([np.ravel(block.y) for block in holdout.blocks()])
    own = {"constant": constant} if more else {"label": constant}
    other = np.minimum(np.abs(targets - constant), clip) if more else (targets != constant).astype(np.float64)
    means = np.bincount(group, losses - other) / np.bincount(group) / clip
    how, upper = _bounded(np.clip((means + 1) / 2 + OUTWARD, 0.0, 1.0), delta)
    most = clip * (2 * upper - 1 + 4 * OUTWARD)
    if most >= clip:
        return Vacuous("P66/2", f"{count} hold-out groups are too few for any statement.", delta)
    params = {"clip": clip, "rows": len(losses), **more, "groups": count, "how": how, **own}
    direction = "lower" if most < 0 else "upper"
    stated = claim("P66/2", abs(most), params, "holdout", delta, direction=direction, witness={"group": group})
    return replace(stated, data=("train", "holdout"))


def _bounded(means: np.ndarray, delta: str) -> tuple[str, float]:
    """Return which bound is used, by the number of groups alone, which is known before any loss is; and the bound."""
    how = "kl" if len(means) < _MANY else "betting"
    return how, MEAN_LOSS["P03/1" if how == "kl" else "P05/1"](means, float(delta))


def _constant(found: Gathered, train: Rows) -> Any:
    """Return the position of the commonest class of the training rows, or the lower median of their targets."""
    if found.get(Decided):
        return int(np.bincount(labels(train)).argmax())
    targets = np.concatenate([np.ravel(block.y) for block in train.blocks()])
    return float(np.sort(targets)[(len(targets) - 1) // 2])
