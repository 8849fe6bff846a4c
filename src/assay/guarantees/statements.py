"""Which statements about new data apply to a learner, and the bound by the size of its class (P10)."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from assay.claims.claim import Claim, NotApplicable
from assay.guarantees import holdout
from assay.guarantees.distances import by_radius, of_distances
from assay.guarantees.ledger import Asked, Prepared, Vacuous, error_rate
from assay.guarantees.norm import by_norm
from assay.guarantees.stability import in_ball
from assay.scan import Rows
from assay.theory import vc


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
            list(holdout.of_classifier(learner, cut.holdout, errors.get("holdout", (0, 0))[1], asked)),
        )
    if hasattr(learner, "log_density_bounds"):
        return Prepared([], list(holdout.of_density(learner, cut.holdout, asked)))
    if hasattr(learner, "squared_distances"):
        return Prepared(
            list(by_radius(learner, cut.train, asked)) if asked.fixed_class else [],
            list(of_distances(learner, cut.holdout, asked)),
        )
    if learner.card.task != "regress":
        return Prepared([], [])
    return Prepared(
        [*by_norm(learner, cut.train, asked), *learner.statements(cut.train)] if asked.fixed_class else [],
        list(holdout.of_regressor(learner, cut.holdout, asked)),
    )


def _of_class(learner: Any, train: Rows, errors: int, asked: Asked) -> Iterator[Any]:
    if asked.fixed_class:
        yield from _by_class(learner, train, errors)
        yield from learner.statements(train)
        yield from in_ball(learner, train, asked)
    else:
        yield NotApplicable(
            "P10/1",
            "The encoding was fitted to the training rows, so the class was not fixed in advance.",
        )


def _by_class(learner: Any, train: Rows, errors: int) -> Iterator[Any]:
    space = learner.space(train)
    n = train.n_rows
    if space.vc_dimension is None or space.vc_dimension == np.inf:
        why = f"{space}: the class has no finite VC dimension, so no bound of this kind exists."
        yield NotApplicable("P10/1", getattr(space, "why_no_bound", why))
    elif train.has_weight:
        yield NotApplicable("P10/1", "Row weights: the bound is about unweighted errors of equally likely rows.")
    elif not hasattr(space, "price") and space.log_growth(5 * n) >= n / 3:
        yield NotApplicable(
            "P10/1",
            f"{n} rows are too few for {space}: the bound would be above one half whatever the labels.",
        )
    else:
        yield partial(_ghost_sample, errors, n, space)


def _ghost_sample(errors: int, n: int, space: Any, delta: str) -> Claim | NotApplicable:
    # A class whose size is not fixed in advance has a share of delta that depends on its size.
    found = vc.ghost_sample_bound(errors, n, space.log_growth, float(delta) / getattr(space, "price", 1))
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
    return error_rate("P10/1", found.bound, params, "train", delta)
