"""Votes judged on the rows that their members did not see."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from assay.checker.bounds.tails import ln
from assay.checker.numerics import above, gamma
from assay.checker.record import Refused, Rejected, exact_decimal
from assay.checker.rule import Rule, View
from assay.checker.rules.tree_classes import tree_sizes
from assay.checker.rules.trees import Trees

_EXPONENTS = range(-5, 3)
_SHARES = {"first": Fraction(1, 2), "tandem": Fraction(1, 4), "disagreement": Fraction(1, 4)}
_SLIP = Decimal("1e-30")
_GAMMA, _FIRST, _SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_MOST = 2**33  # members times rows: more draws than that are not repeated
_MOST_MEMBERS = 2**13  # a number is held for each pair of them


class OutOfBagVote(Rule):
    """pac-bayes.vote: the error of the vote is at most factor * E g, g the loss of a member or of a pair of members.

    Bags are drawn again from the seeds; rows of the `shared` sample are in every bag. With p the mean over members
    (pairs) of their mean losses on out-of-bag rows, n the harmonic mean of the numbers of these rows, r = 2^rate:
    value >= factor (1 - exp(-r p - ln(8 / (share delta)) / n)) / (1 - exp(-r)).
    """

    def prepare(self) -> None:
        model = self.model
        if not isinstance(model, Trees) or model.kind not in ("vote", "committee"):
            raise Rejected("it is about a vote of trees")
        self.check_rows()
        self.form = self.choice("form", list(_SHARES))
        self.exponent = self.choice("rate", list(_EXPONENTS))
        self.delta = exact_decimal(self.claim.delta, "delta") * _SHARES[self.form] / len(_EXPONENTS)
        self.members = model.members
        if self.count("members") != self.members:
            raise Rejected(f"members is {self.params['members']}, the model has {self.members}")
        self.in_bag = self._draw()
        self.threshold = vote_threshold(model)
        T = self.members
        self.out, self.single, self.both = (np.zeros((T, T)) for _ in range(3))

    def _draw(self) -> np.ndarray:
        """Return, packed in bits, which rows are in the bag of each member."""
        seeds = self.witness("seeds", self.members, integer=True)
        n, size, replace = self.rows, self.count("bag", 1), self.flag("replace")
        shared, shared_seed = self.count("shared"), self.count("shared_seed")
        if np.any(seeds < 0):
            raise Rejected("seeds must not be negative")
        if size > n or shared > n:
            raise Rejected(f"bags of {max(size, shared)} rows are larger than the table, which has {n}")
        if n >= 2**32 or n * len(seeds) > _MOST or len(seeds) > _MOST_MEMBERS:
            raise Refused(f"bags of {len(seeds)} members cannot be checked: they and their pairs are too many")
        if size + shared < self._leaves():
            raise Rejected(f"a tree has more leaves than the {size + shared} rows that its bag is said to have")
        common = np.zeros(n, dtype=bool)
        if shared:
            common[drawn(shared_seed, n, shared, False)] = True
        packed = np.empty((len(seeds), (n + 7) // 8), dtype=np.uint8)
        for j, seed in enumerate(seeds.tolist()):
            self.context.clock.check()
            inside = common.copy()
            inside[drawn(seed, n, size, replace)] = True
            packed[j] = np.packbits(inside)
        return packed

    def _leaves(self) -> int:
        """Return the most leaves of a tree, each of which holds a row of its bag; branches of a table may hold none."""
        return max(tree_sizes(self.model)) if np.all(self.model.table < 0) else 0

    def block(self, view: View) -> None:
        start, rows = view.start, len(view.X)
        bits = np.unpackbits(self.in_bag[:, start // 8 : (start + rows + 7) // 8], axis=1)
        out = np.ascontiguousarray((1 - bits[:, start % 8 : start % 8 + rows]).T, dtype=np.float32)
        losses = self.model.member_losses(view.X, view.codes) * out
        if rows < 2**24 and np.all((losses == 0) | (losses == 1)):  # sums of 0 and 1 are exact in single precision
            losses = losses.astype(np.float32)
        wide = out if rows < 2**24 else out.astype(np.float64)
        self.out += wide.T @ wide
        self.single += losses.T @ out.astype(losses.dtype)
        if self.form != "first":
            self.both += losses.T @ losses

    def measure(self) -> float:
        if self.claim.value == 1:
            return 1.0
        loss, rows, factor = self._loss()
        r = Fraction(2) ** self.exponent
        with localcontext(prec=60):
            paid = _decimal(r * loss) - ln(self.delta) / _decimal(rows)
            risk = (1 - (-paid).exp()) / (1 - (-_decimal(r)).exp()) + _SLIP
            value = _decimal(factor) * risk
        if Fraction(self.claim.value) < Fraction(value):
            raise Rejected(f"the bound from a mean loss of {float(loss):.6g} is {float(value):.10g}")
        return self.claim.value

    def _loss(self) -> tuple[Fraction, Fraction, Fraction]:
        """Return the mean loss (rounded up) in units of the factor, rows (rounded down), and the factor."""
        w, rows = self.threshold, np.diag(self.out) if self.form == "first" else self.out
        if rows.min() < 1:
            raise Rejected("a member, or a pair of members, has no out-of-bag row")
        slip = gamma(2 * self.rows + 64)  # of the sums over rows: non-negative terms, in blocks
        if self.form == "first":
            factor, mean = 1 / w, math.fsum(np.diag(self.single) / rows) / rows.size * (1 + slip)
        elif self.form == "tandem":
            factor, mean = 1 / w**2, math.fsum((self.both / rows).ravel()) / rows.size * (1 + slip)
        else:
            factor = (1 + 1 / w) / 2
            one = math.fsum((self.single / rows).ravel()) / rows.size * (1 + slip)
            both = math.fsum((self.both / rows).ravel()) / rows.size * (1 - slip)
            mean = 2 * one - both / float(w * factor) * (1 - 2.0**-50)
        harmonic = rows.size / above(math.fsum((1 / rows).ravel())) * (1 - 2.0**-50)
        return Fraction(min(1.0, max(0.0, mean) * (1 + 2.0**-49) + 2.0**-50)), Fraction(harmonic), factor


def vote_threshold(model: Trees) -> Fraction:
    """Return w such that the vote is right wherever the mean loss of the members is below w.

    With one vote each of T members, more than half of them right suffices. With mean shares, the true class has
    more than half of the sum of all shares; the sum exceeds 1 by rounding at most.
    """
    leaf = model.value[model.child < 0]
    if model.kind == "committee" or (np.all((leaf == 0) | (leaf == 1)) and np.all(leaf.sum(1) == 1)):
        return Fraction((model.members + 1) // 2, model.members)
    most = above(float(leaf.sum(axis=1).max()), leaf.shape[1])
    if np.any(leaf < 0) or most > 1 + 1e-6:
        raise Rejected("the leaves do not hold shares of classes")
    return Fraction(1, 2) - Fraction(max(0.0, most - 1))


def drawn(seed: int, n: int, size: int, replace: bool) -> np.ndarray:
    """Return the row numbers of one bag, by SplitMix64 (SPEC.md)."""
    count = size if replace else n
    state = mixed(np.array([seed], dtype=np.uint64))
    numbers = mixed(state + np.arange(1, count + 1, dtype=np.uint64) * _GAMMA)
    if replace:
        return ((numbers >> np.uint64(32)) * np.uint64(n) >> np.uint64(32)).astype(np.int64)
    return np.argsort(numbers, kind="stable")[:size]


def mixed(z: np.ndarray) -> np.ndarray:
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


def _decimal(value: Any) -> Decimal:
    value = Fraction(value)
    return Decimal(value.numerator) / Decimal(value.denominator)
