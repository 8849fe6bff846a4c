"""A statement about the mean error of a regression from its training rows: the length of its weights
(regression.rademacher)."""

from collections.abc import Iterator
from functools import partial

from assay.claims.claim import Claim, NotApplicable
from assay.guarantees.evidence import Gathered, Norm, Predictions
from assay.guarantees.ledger import OUTWARD, CertifyOptions, Statement, Vacuous, claim
from assay.messages import Message
from assay.scan import Rows
from assay.theory.margin import regression_bound


def by_norm(found: Gathered, train: Rows, asked: CertifyOptions) -> Iterator[Statement | NotApplicable]:
    """Yield the Rademacher bound of the mean clipped error, or why it is not made."""
    norm = found.get(Norm) or Norm(why_not=Message("why.no-norm"))
    if norm.why_not:
        yield NotApplicable("regression.rademacher", norm.why_not)
    elif asked.clip is None:
        yield NotApplicable("regression.rademacher", Message("why.clip-missing"))
    elif train.has_weight:
        yield NotApplicable("regression.rademacher", Message("why.weights.mean"))
    else:
        yield partial(_stated, found.the(Predictions), train, norm, float(asked.clip))


def _stated(predicted: Predictions, train: Rows, norm: Norm, clip: float, delta: str) -> Claim | NotApplicable:
    losses = predicted.clipped_errors(train, clip)
    rounding = 2 * predicted.largest_radius(train)
    n, slack = train.n_rows, 1 + 1e-12
    trace = (norm.trace + n * norm.intercept) * slack
    try:
        found = regression_bound(losses, norm.length * slack, trace, clip, float(delta))
    except ValueError:
        return Vacuous("regression.rademacher", Message("why.long-weights", length=norm.length), delta)
    bound = found.bound + rounding + clip * OUTWARD
    if bound >= clip:
        return Vacuous("regression.rademacher", Message("why.clip-vacuous", rows=n, clip=clip), delta)
    params = {"clip": clip, "rows": n, "scale": 2.0**found.exponent, "intercept": norm.intercept}
    return claim("regression.rademacher", bound, params, "train", delta)
