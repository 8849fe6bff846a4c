"""What margins say about boosted votes: the largest margin there can be, and bounds of the error on new data."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from assay.claims.claim import Claim, NotApplicable
from assay.guarantees.ledger import FIT_NOT_KEPT, Statement, Vacuous, error_rate
from assay.messages import Message
from assay.scan import Rows
from assay.theory import margin
from assay.theory.spaces import Space, Stumps
from assay.tree._spaces import VotesOfOneSize, _Everything

_ROUND = 1e-9  # of published margins, more than what another order of summation changes
_LEAST = 1e-100  # weights of rows below do not matter, and a checker does not read them


def vote_space(model: Any) -> Space:
    """Return the class of votes of as many stumps, for two classes."""
    if len(model.classes_) > 2:
        return _Everything("votes of stumps for more than two classes, whose patterns are not counted here")
    return VotesOfOneSize(Stumps(model.n_features_in_), len(model.estimator_weights_))


def margin_statement(model: Any, rows: Rows) -> Iterator[Statement | NotApplicable]:
    """Yield the bound of the error from the margins of the training rows, or why there is none."""
    reason = _reason(model, rows)
    if reason is not None:
        yield NotApplicable("P15/1", reason)
    else:
        yield partial(_margin_bound, np.clip(model.margins_, -1.0, 1.0), Stumps(model.n_features_in_))


def _margin_bound(margins: np.ndarray, base: Space, delta: str) -> Claim | NotApplicable:
    found = margin.boosting_margin_bound(margins - 1e-12, float(delta), base.log_growth)
    if found.bound >= 1:
        why = Message("why.small-vote-margins", rows=len(margins))
        return Vacuous("P15/1", why, delta)
    params = {"class": base.descriptor(), "exponent": found.exponent, "rows": len(margins)}
    return error_rate("P15/1", found.bound, params, "train", delta)


def margin_facts(model: Any, rows: Rows, cap: float, bound: float, weights: np.ndarray) -> Iterator[Any]:
    """Yield the soft margin that the vote reaches, and that no vote of stumps exceeds `bound`, by `weights`."""
    reason = _reason(model, rows)
    if reason is not None:
        yield NotApplicable("D25/1", reason)
        return
    ordered = np.sort(model.margins_)
    short = cap * (np.arange(len(ordered)) * ordered - np.append(0.0, np.cumsum(ordered)[:-1]))
    best = int(np.argmax(ordered - short))
    rho, reached = float(ordered[best]), float((ordered - short)[best])
    params = {"rows": rows.n_rows, "cap": cap}
    if reached > 2 * _ROUND:
        yield Claim("D25/1", reached - _ROUND, "lower", {**params, "rho": rho})
    kept = np.where(weights < _LEAST * weights.max(), 0.0, weights)
    over = max(0.0, kept.max() / kept.sum() / cap - 1.0) if cap < 1 else 0.0
    value = max(bound, 0.0) + _ROUND * (1 + bound) + 2 * over
    yield Claim("D25/1", value, "upper", params, witness={"weights": kept})


def _reason(model: Any, rows: Rows) -> str | None:
    if len(model.classes_) > 2:
        return Message("why.vote-classes")
    if rows.has_weight:
        return Message("why.weights.margins")
    if not hasattr(model, "margins_"):
        return FIT_NOT_KEPT
    if len(model.margins_) != rows.n_rows:
        return Message("why.other-count")
    return None
