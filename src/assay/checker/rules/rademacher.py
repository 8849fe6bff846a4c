"""A bound on the error rate of a stump from how well stumps follow random signs on the training rows
(rademacher.empirical)."""

import math
from decimal import Decimal, localcontext

import numpy as np

from assay.checker.bounds.error_rate import CountedRisk
from assay.checker.bounds.tails import ln
from assay.checker.record import Rejected
from assay.checker.rule import View
from assay.checker.rules.trees import Trees
from assay.checker.rules.votes import mixed

DRAWS, SEED = 16, 0  # fixed in advance: whoever chose them after looking at the rows could choose a small average
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_KEPT = 2**25  # entries of X that are sorted in one pass over the rows


class StumpComplexity(CountedRisk):
    """rademacher.empirical: errors / n + U / (N n) + sqrt((9 + 4 / N) ln(1 / delta) / (2 n)), N = 16 vectors of n
    signs.

    U is the sum over the vectors of the largest sum_i sign_i h(x_i) of a stump h with values -1 and +1: for each column
    the largest |sum of signs above a border minus sum below it|, borders only between different values, and |sum of all
    signs| for the constants. All of it in integers.
    """

    def prepare(self) -> None:
        super().prepare()
        for name, fixed in (("draws", DRAWS), ("seed", SEED)):
            if self.count(name) != fixed:
                raise Rejected(f"{name} is {self.params[name]}; the rule fixed in advance is {fixed}")
        self.choice("class", ["stumps"])
        model = self.model
        if not isinstance(model, Trees) or model.kind != "classifier" or len(model.classes or ()) != 2:
            raise Rejected("the class is one of stumps with two labels; the model is another kind")
        if not _is_stump(model):
            raise Rejected("the class is one of stumps: one column compared with one threshold; the model is larger")
        self.first, self.width = 0, max(1, _KEPT // self.rows)
        self.parts: list[np.ndarray] = []

    def block(self, view: View) -> None:
        if self.first == 0:
            super().block(view)
        self.parts.append(view.X[:, self.first : self.first + self.width].T.copy())

    def next_pass(self) -> bool:
        if self.first == 0:
            self.signs = signs(DRAWS, self.rows, SEED)
            self.totals = self.signs.sum(axis=1, dtype=np.int64)
            self.largest = np.abs(self.totals)
        columns, self.parts = np.concatenate(self.parts, axis=1), []
        for column in columns:
            self.context.clock.check()
            order = np.argsort(column)  # ties in any order: sums are taken where a value ends
            border = column[order[1:]] > column[order[:-1]]
            for j, drawn in enumerate(self.signs):
                below = np.cumsum(drawn[order], dtype=np.int64)[:-1][border]
                most = int(np.max(np.abs(self.totals[j] - 2 * below), initial=0))
                self.largest[j] = max(self.largest[j], most)
        self.first += self.width
        return self.first < self.model.columns

    def measure(self) -> float:
        n, total = self.rows, int(self.largest.sum())
        with localcontext(prec=60):
            mean = (Decimal(self.recount()) + Decimal(total) / DRAWS) / n
            deviation = ((9 + Decimal(4) / DRAWS) * -ln(self.delta) / (2 * n)).sqrt()
            return min(1.0, math.nextafter(float(mean + deviation + Decimal("1e-40")), 2.0))


def _is_stump(model: Trees) -> bool:
    """Tell whether the tree is a leaf, or two leaves below one comparison with a threshold."""
    root = int(model.root[0])
    first = int(model.child[root])
    return first < 0 or bool(model.table[root] < 0 and np.all(model.child[[first, first + 1]] < 0))


def signs(draws: int, n: int, seed: int) -> np.ndarray:
    """Return (draws, n) signs: sign i of draw j is +1 iff bit i mod 64 of word j ceil(n / 64) + i // 64 is set.

    Word t = 0, 1, ... is mix(seed + (t + 1) 0x9E3779B97F4A7C15), SplitMix64 (SPEC.md).
    """
    words = -(-n // 64)
    result = np.empty((draws, n), dtype=np.int8)
    place = np.arange(64, dtype=np.uint64)
    for j in range(draws):
        counter = np.arange(j * words + 1, (j + 1) * words + 1, dtype=np.uint64)
        bits = mixed(np.uint64(seed) + counter * _GAMMA)[:, None] >> place & np.uint64(1)
        result[j] = np.where(bits.ravel()[:n], 1, -1)
    return result
