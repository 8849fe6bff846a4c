"""Statements about votes: the error of an ensemble from the rows that its members did not see."""

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from assay.claims.claim import Claim, NotApplicable
from assay.guarantees.ledger import Statement, Vacuous, error_rate
from assay.messages import Message
from assay.theory.pac_bayes import OutOfBag


class Bags(NamedTuple):
    """How bags were drawn: a seed for each member, draws per bag, and the sample that all members depend on."""

    seeds: np.ndarray
    size: int
    replace: bool
    shared: int = 0  # rows of a sample without replacement, such as the one that bins were taken from
    shared_seed: int = 0


def out_of_bag_vote(
    blocks: Iterable[tuple[np.ndarray, np.ndarray]], bags: Bags, rows: int, threshold: float
) -> Statement:
    """Return the statement about a vote; `blocks` yields losses and which of them are out of bag, (rows, members)."""
    sums = OutOfBag(len(bags.seeds))
    for losses, out in blocks:
        sums.add(losses, out)
    return partial(_vote, sums, bags, rows, threshold)


def _vote(sums: OutOfBag, bags: Bags, rows: int, threshold: float, delta: str) -> Claim | NotApplicable:
    result = sums.bound(float(delta), threshold)
    members = len(bags.seeds)
    if result.bound >= 1:
        wrong = 100 * sums.loss("first", threshold)[0]
        reason = Message("why.out-of-bag-vacuous", percent=wrong)
        return Vacuous("pac-bayes.vote", reason, delta)
    params: dict[str, Any] = {
        "form": result.form,
        "rate": result.exponent,
        "members": members,
        "rows": rows,
        "bag": bags.size,
        "replace": bags.replace,
        "shared": bags.shared,
        "shared_seed": bags.shared_seed,
    }
    witness = {"seeds": np.asarray(bags.seeds, dtype=np.int64)}
    return error_rate("pac-bayes.vote", result.bound, params, "train", delta, witness=witness)
