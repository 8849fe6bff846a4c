"""Occam: the prior of a tree by the code of SPEC.md, and the limit it pays for."""

import math
from fractions import Fraction
from typing import Any

from assay.checker.bounds.error_rate import CountedRisk
from assay.checker.record import Rejected
from assay.checker.rules.trees import Trees


class Occam(CountedRisk):
    """occam: the Clopper-Pearson limit of the training errors at delta times the prior of the tree."""

    def prepare(self) -> None:
        super().prepare()
        self.choice("code", ["tree/1"])
        self.prior = tree_prior(self.model)

    def measure(self) -> float:
        return self.limit(self.recount(), self.delta * self.prior)


def tree_prior(model: Any) -> Fraction:
    """Return 2^-bits: nodes level by level, 1/2 for leaf or split, 1/K for a label, 1/d for a column, thresholds."""
    if not isinstance(model, Trees) or model.kind != "classifier":
        raise Rejected("the code is for a single tree")
    last: dict[int, int] = {}
    bits = splits = leaves = 0
    level = [int(model.root[0])]
    while level:
        below: list[int] = []
        for at in level:
            bits += 1
            if model.child[at] < 0:
                leaves += 1
                continue
            if model.table[at] >= 0:
                raise Rejected("the code has no words for splits of nominal columns")
            splits += 1
            j, value = int(model.column[at]), float(model.threshold[at])
            word, last[j] = threshold_word(value, last.get(j, 0))
            bits += word
            below += (int(model.child[at]), int(model.child[at]) + 1)
        level = below
    return Fraction(1, 2**bits * model.columns**splits * len(model.classes or ()) ** leaves)


def threshold_word(value: float, last: int) -> tuple[int, int]:
    """Return the length of the code of a threshold, and the exponent that the next one is relative to."""
    if value == 0:
        return 1, last
    numerator = Fraction(abs(value)).numerator
    exponent = math.frexp(value)[1] - 1
    while numerator % 2 == 0:
        numerator //= 2
    size, shift = numerator.bit_length(), exponent - last
    place = 2 * shift if shift > 0 else 1 - 2 * shift
    return 2 + (2 * place.bit_length() - 1) + (2 * size.bit_length() - 1) + max(0, size - 2), exponent
