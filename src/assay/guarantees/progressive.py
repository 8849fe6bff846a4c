"""Statements about the vote of the hypotheses that one pass over the rows went through (progressive.vote,
compression.voted-perceptron)."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from assay.claims.claim import Claim, NotApplicable
from assay.guarantees.compression import SideInformation, bound_of, stated, too_many
from assay.guarantees.ledger import OUTWARD, Statement, Vacuous, error_rate
from assay.messages import Message
from assay.theory.sequential import progressive_choice


class Pass(NamedTuple):
    """One pass: rows, those before the vote begins, mistakes of the hypotheses that vote on the rows that they met
    before learning from them, rows that were learnt from, and the seed of the order (None: that of the data)."""

    rows: int
    skipped: int
    errors: int
    kept: int
    seed: int | None

    @property
    def params(self) -> dict[str, int | None]:
        return {"rows": self.rows, "skipped": self.skipped, "seed": self.seed}


def vote_statements(one: Pass, lost: Callable[[], int]) -> list[Statement]:
    """Return how to state progressive.vote and compression.voted-perceptron; lost() counts the rows, outside those
    learnt from, on which the vote is wrong or left open by rounding."""
    return [partial(_progressive, one), partial(_compressed, one, lost)]


def _progressive(one: Pass, delta: str) -> Claim | NotApplicable:
    judged = one.rows - one.skipped
    losses = np.zeros(judged)
    losses[: one.errors] = 1.0  # the bound depends on their sum alone
    found = progressive_choice(losses, float(delta))
    if 2 * found.bound + OUTWARD >= 1:
        reason = Message("why.progressive-vacuous", errors=one.errors, rows=judged)
        return Vacuous("progressive.vote", reason, delta)
    rate = None if found.rate is None else round(math.log2(found.rate))
    return error_rate(
        "progressive.vote", 2 * found.bound, {**one.params, "errors": one.errors, "rate": rate}, "train", delta
    )


def _compressed(one: Pass, lost: Callable[[], int], delta: str) -> Claim | NotApplicable:
    if bound_of(0, one.rows, one.kept, 0.0, delta) + OUTWARD >= 1:
        return too_many("compression.voted-perceptron", one.rows, one.kept, delta)
    params = {"skipped": one.skipped, "seed": one.seed}
    return stated("compression.voted-perceptron", lost(), one.rows, one.kept, SideInformation(params, 0.0, {}), delta)
