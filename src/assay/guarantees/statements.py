"""Which statements about new data apply to a learner, and the bound by the size of its class (vc)."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

from assay.claims.claim import Claim, NotApplicable
from assay.guarantees import holdout
from assay.guarantees.distances import by_radius, of_distances
from assay.guarantees.evidence import Decided, Density, Distances, Gathered, Predictions, labels
from assay.guarantees.groups import of_groups
from assay.guarantees.ledger import CertifyOptions, Prepared, SecondaryBound, Vacuous, error_rate
from assay.guarantees.norm import by_norm
from assay.guarantees.order import BetOrder
from assay.guarantees.stability import in_ball
from assay.messages import Message
from assay.scan import Rows
from assay.theory import vc
from assay.theory.spaces import Space


def make_statements(
    learner: Any, cut: Any, found: Mapping[str, Gathered], delta: Decimal, asked: CertifyOptions, order: BetOrder
) -> list[Any]:
    """Return every statement about new data at its share of delta: claims, and why others are not made.

    `found` holds the evidence about each data set; bounds use the largest number of errors that rounding leaves open.
    `order` is that of bets on the hold-out rows.
    """
    if asked.groups is not None:
        return of_groups(found["holdout"], cut.train, cut.holdout, asked, delta, order)
    prepared = prepare(learner, cut, found, asked, order)
    shares = prepared.shares(delta)
    made = [one(shares[place]) if place in shares else one for place, one in enumerate(prepared.all())]
    each = [one for found in made for one in (found if isinstance(found, list) else [found])]
    return sorted(each, key=lambda one: isinstance(one, NotApplicable) and not isinstance(one, Vacuous))


def prepare(learner: Any, cut: Any, found: Mapping[str, Gathered], asked: CertifyOptions, order: BetOrder) -> Prepared:
    """Return the statements that apply to a learner, before any of them is computed."""
    train, held = found["train"], found.get("holdout", Gathered([]))
    if train.get(Decided):
        if cut.holdout is not None and held.too_open:
            return Prepared([], [NotApplicable("holdout.binomial", held.too_open)])
        if cut.holdout is None and train.too_open:
            return Prepared([], [NotApplicable("vc", train.too_open)])
        on_holdout = holdout.of_classifier(learner.classes_, cut.holdout, held, asked, order)
        beside = list(_secondary_bounds(cut, held, order)) if asked.baseline and cut.holdout is not None else []
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
    stated: list[Any] = list(holdout.of_regressor(cut.holdout, held, asked, order))
    if asked.baseline and any(not isinstance(one, NotApplicable) for one in stated):
        predicted, clip = held.the(Predictions), float(asked.clip)
        stated.append(SecondaryBound(partial(holdout.against_median, predicted, cut.train, cut.holdout, clip, order)))
    return Prepared(training if asked.hypothesis_class_fixed else [], stated)


def _secondary_bounds(cut: Any, held: Gathered, order: BetOrder) -> Iterator[SecondaryBound]:
    """Yield the comparison with the class that most training rows have."""
    commonest = int(np.bincount(labels(cut.train)).argmax())
    yield SecondaryBound(holdout.against_baseline(held.the(Decided), cut.holdout, commonest, order))


def _of_class(learner: Any, train: Rows, found: Gathered, errors: int, asked: CertifyOptions) -> Iterator[Any]:
    if asked.hypothesis_class_fixed:
        yield from _by_class(learner.space(train), train, errors)
        yield from learner.statements(train)
        yield from in_ball(learner, train, found, asked)
    else:
        yield NotApplicable(
            "vc",
            Message("why.encoding-fitted"),
        )


def _by_class(space: Space, train: Rows, errors: int) -> Iterator[Any]:
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


def _ghost_sample(errors: int, n: int, space: Any, delta: str) -> Claim | NotApplicable:
    # A class whose size is not fixed in advance has a share of delta that depends on its size.
    found = vc.ghost_sample_bound(errors, n, space.log_growth, float(delta) / space.price)
    if found.bound >= 1:
        return Vacuous("vc", Message("why.class-vacuous", errors=errors, rows=n, space=str(space)), delta)
    params = {
        "class": space.descriptor(),
        "form": "c",
        "errors": errors,
        "rows": n,
        "M": found.M,
        "q": found.q,
        "K": found.K,
    }
    return error_rate("vc", found.bound, params, "train", delta)
