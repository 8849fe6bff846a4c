"""Statements about the squared distance of new rows to a fitted set, the nearest of k centres or a flat (kmeans.risk,
hold-out)."""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.evidence import Distances, Gathered
from assay.guarantees.ledger import OUTWARD, CertifyOptions, Statement, Vacuous, claim
from assay.guarantees.order import BetOrder
from assay.messages import Message
from assay.scan import Rows
from assay.theory.concentration import betting_upper

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
    holdout: Rows | None, found: Gathered, asked: CertifyOptions, order: BetOrder
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
        yield partial(_mean_distance, found.the(Distances), holdout, float(clip), compared, order)


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
