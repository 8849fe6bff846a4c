"""Statements about new data: which apply to a learner, and their bounds.

Each statement is prepared first and computed when its share of delta is known, so that the number of
statements, and with it the price of reading them together, is fixed before any bound is looked at.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from assay.certificate.claim import Claim, NotApplicable
from assay.certificate.templates import TEMPLATES
from assay.scan import Rows
from assay.theory import concentration, vc

OUTWARD = 1e-9  # added to every published probability, so that another order of summation changes no verdict

_ROUNDED = Context(prec=12, rounding=ROUND_DOWN)

Statement = Callable[[str], Claim | NotApplicable]


@dataclass(frozen=True)
class Vacuous(NotApplicable):
    """A bound that was computed at `delta` and says nothing."""

    delta: str = "0"


@dataclass(frozen=True)
class Asked:
    """What `certify` was asked to say about new data; see there."""

    compared: Sequence[np.ndarray] = ()
    clip: float | None = None
    fixed_class: bool = True


class Prepared(NamedTuple):
    """For each statement that could be expected, how to make it, or why it is not made; by the rows it uses."""

    training: list[Any]
    holdout: list[Any]

    def shares(self, delta: Decimal) -> dict[int, str]:
        """Return the share of delta of each statement that is made, by its place among all of them.

        The two kinds of rows have half of delta each, or all of it if the other has no statement; statements of
        one kind have equal shares. Hold-out rows usually say most, and this keeps what they say from getting
        weaker with every further bound from the training rows. It depends on which statements can be made, and
        on nothing that they say. Shares are rounded down, so that they never exceed delta together.
        """
        groups: list[list[int]] = [[], []]
        for place, one in enumerate(self.all()):
            if not isinstance(one, NotApplicable):
                groups[place >= len(self.training)].append(place)
        used = [group for group in groups if group]
        return {
            place: str(_ROUNDED.divide(delta, Decimal(len(used) * len(group)))) for group in used for place in group
        }

    def all(self) -> list[Any]:
        return [*self.training, *self.holdout]


def made(learner: Any, cut: Any, errors: Mapping[str, tuple[int, int]], delta: Decimal, asked: Asked) -> list[Any]:
    """Return every statement about new data at its share of delta: claims, and why others are not made.

    `errors` holds the least and largest possible number of errors on each data set; bounds use the largest.
    """
    prepared = prepare(learner, cut, errors, asked)
    shares = prepared.shares(delta)
    found = [one(shares[place]) if place in shares else one for place, one in enumerate(prepared.all())]
    return sorted(found, key=lambda one: isinstance(one, NotApplicable) and not isinstance(one, Vacuous))


def prepare(learner: Any, cut: Any, errors: Mapping[str, tuple[int, int]], asked: Asked) -> Prepared:
    """Return the statements that apply to a learner, before any of them is computed."""
    if is_classifier(learner):
        return Prepared(
            list(_of_class(learner, cut.train, errors["train"][1], asked)),
            list(_by_holdout(learner, cut.holdout, errors.get("holdout", (0, 0))[1], asked.compared)),
        )
    if learner.card.task != "regress":
        return Prepared([], [])
    rows = 0 if cut.holdout is None else cut.holdout.n_rows
    if any(len(one) != rows for one in asked.compared):
        raise ValueError(f"compared: each array must hold one prediction for each of the {rows} hold-out rows.")
    return Prepared(
        list(learner.statements(cut.train)) if asked.fixed_class else [],
        list(_by_clipped_holdout(learner, cut.holdout, asked.clip, max(1, len(asked.compared)))),
    )


def _of_class(learner: Any, train: Rows, errors: int, asked: Asked) -> Iterator[Any]:
    if asked.fixed_class:
        yield from _by_class(learner, train, errors)
        yield from learner.statements(train)
    else:
        yield NotApplicable(
            "P10/1",
            "The encoding was fitted to the training rows, so the class was not fixed in advance.",
        )


def _by_class(learner: Any, train: Rows, errors: int) -> Iterator[Any]:
    space = learner.space(train)
    n = train.n_rows
    if space.vc_dimension is None or space.vc_dimension == np.inf:
        yield NotApplicable("P10/1", f"{space}: the class has no finite VC dimension, so no bound of this kind exists.")
    elif train.has_weight:
        yield NotApplicable("P10/1", "Row weights: the bound is about unweighted errors of equally likely rows.")
    elif space.log_growth(5 * n) >= n / 3:
        yield NotApplicable(
            "P10/1",
            f"{n} rows are too few for {space}: the bound would be above one half whatever the labels.",
        )
    else:
        yield partial(_ghost_sample, errors, n, space)


def _ghost_sample(errors: int, n: int, space: Any, delta: str) -> Claim | NotApplicable:
    found = vc.ghost_sample_bound(errors, n, space.log_growth, float(delta))
    if found.bound >= 1:
        return Vacuous("P10/1", f"With {errors} errors in {n} rows the bound for {space} is 1.", delta)
    params = {
        "class": space.descriptor(),
        "form": "c",
        "errors": errors,
        "rows": n,
        "M": found.M,
        "q": found.q,
        "K": found.K,
    }
    return _claim("P10/1", found.bound, params, "train", delta)


def _by_holdout(learner: Any, holdout: Rows | None, errors: int, compared: Sequence[np.ndarray]) -> Iterator[Any]:
    if holdout is None:
        yield NotApplicable("P01/1", "No hold-out rows were given; they usually give the tightest bound.")
    elif len(compared):
        predictions = _label_positions(learner, compared, holdout.n_rows)
        own = learner.predicted_positions(holdout) if hasattr(learner, "predicted_positions") else np.array(-1)
        if not ((predictions == own) | (own < 0)).all(axis=1).any():
            raise ValueError("compared: this model's own predictions on the hold-out rows must be among them.")
        yield partial(_selected, errors, predictions)
    else:
        yield partial(_binomial, errors, holdout.n_rows)


def _binomial(errors: int, m: int, delta: str) -> Claim:
    bound = concentration.clopper_pearson_upper(errors, m, float(delta))
    return _claim("P01/1", bound, {"errors": errors, "rows": m}, "holdout", delta)


def _selected(errors: int, predictions: np.ndarray, delta: str) -> Claim:
    compared, m = predictions.shape
    bound = concentration.clopper_pearson_upper(errors, m, float(delta) / compared)
    params = {"errors": errors, "rows": m, "compared": compared}
    return _claim("P07/1", bound, params, "holdout", delta, {"predictions": predictions})


def _label_positions(learner: Any, compared: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """Return predicted labels of all compared models as positions in `classes_`, one row per model."""
    predictions = np.asarray(compared)
    if predictions.shape != (len(compared), rows):
        raise ValueError(f"compared: each array must hold one predicted label for each of the {rows} hold-out rows.")
    order = np.argsort(learner.classes_)
    at = np.minimum(np.searchsorted(learner.classes_, predictions, sorter=order), len(order) - 1)
    positions = order[at]
    if (learner.classes_[positions] != predictions).any():
        raise ValueError("compared: a predicted label is not among the classes of this model.")
    return positions.astype(np.int32)


def _by_clipped_holdout(learner: Any, holdout: Rows | None, clip: float | None, compared: int) -> Iterator[Any]:
    if holdout is None:
        yield NotApplicable("P04/1", "No hold-out rows were given.")
    elif clip is None:
        yield NotApplicable(
            "P04/1", "The error of a regression has no range: pass clip=, fixed before looking at the data."
        )
    elif len(np.atleast_2d(learner.coef_)) > 1:
        yield NotApplicable("P04/1", "These bounds are about one target, and the model predicts several.")
    elif not (np.isfinite(clip) and clip > 0):
        raise ValueError(f"clip must be a finite number > 0 (absolute errors are clipped there); got {clip!r}.")
    else:
        yield partial(_hoeffding, learner, holdout, float(clip), compared)
        yield partial(_empirical_bernstein, learner, holdout, float(clip), compared)


def _hoeffding(learner: Any, holdout: Rows, clip: float, compared: int, delta: str) -> Claim | NotApplicable:
    losses = learner.clipped_errors(holdout, clip)
    deviation = concentration.hoeffding_deviation(len(losses), float(delta) / compared, width=clip)
    params = {"clip": clip, "rows": len(losses), "compared": compared}
    return _mean_loss("P02/1", float(losses.mean()) + deviation, params, delta)


def _empirical_bernstein(learner: Any, holdout: Rows, clip: float, compared: int, delta: str) -> Claim | NotApplicable:
    losses = learner.clipped_errors(holdout, clip)
    if len(losses) < 2:
        return Vacuous("P04/1", "The sample variance needs two hold-out rows.", delta)
    level = float(delta) / compared
    spread = np.sqrt(2 * np.log(2 / level) / len(losses))  # what a unit of the standard deviation adds
    rounding = getattr(learner, "loss_rounding", lambda rows: 0.0)(holdout)
    bound = concentration.empirical_bernstein_upper(losses, level, high=clip) + 2 * (1 + spread) * rounding
    return _mean_loss("P04/1", bound, {"clip": clip, "rows": len(losses), "compared": compared}, delta)


def _mean_loss(template: str, bound: float, params: dict[str, Any], delta: str) -> Claim | NotApplicable:
    clip = params["clip"]
    if bound >= clip:
        return Vacuous(template, f"With {params['rows']} hold-out rows the bound is the clip {clip:g} itself.", delta)
    return _claim(template, bound + clip * OUTWARD, params, "holdout", delta)


def _claim(template: str, bound: float, params: dict, data: str, delta: str, witness: dict | None = None) -> Claim:
    value = min(1.0, bound + OUTWARD) if template not in ("P02/1", "P04/1") else bound
    return Claim(template, value, "upper", params, (data,), delta, TEMPLATES[template].assumptions, witness or {})
