"""Bounds for ensembles of trees: out-of-bag votes, margins of boosting, empirical Rademacher complexity of stumps."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from assay.checker.bounds.error_rate import CountedRisk
from assay.checker.bounds.tails import ln
from assay.checker.numerics import Sums, above, gamma
from assay.checker.predictors import margins
from assay.checker.record import Refused, Rejected, exact_decimal
from assay.checker.rule import Rule, View
from assay.checker.rules.trees import Trees, ln_member_growth, price, tree_sizes

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
            single = math.fsum((self.single / rows).ravel()) / rows.size * (1 + slip)
            both = math.fsum((self.both / rows).ravel()) / rows.size * (1 - slip)
            mean = 2 * single - both / float(w * factor) * (1 - 2.0**-50)
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


_THRESHOLD_EXPONENTS = range(0, -11, -1)
_MOST_ENTRIES = 2**28  # entries of X that are kept to be sorted


class VoteMargins(Rule):
    """A rule about margins y f(x) of a vote f of two classes whose weights are scaled to sum 1 in magnitude."""

    def prepare(self) -> None:
        model = self.model
        if not isinstance(model, Trees) or model.kind != "weighted-vote" or len(model.classes or ()) != 2:
            raise Rejected("it is about a weighted vote of trees for two classes")
        self.check_rows()
        size = math.fsum(np.abs(model.extra).tolist())
        if not size > 0:
            raise Rejected("all weights of the vote are zero")
        self.size = size * (1 - 2.0**-52), size * (1 + 2.0**-52)

    def least(self, view: View) -> np.ndarray:
        """Return lower bounds of the margins."""
        scores, errors = view.scores
        margin, error = margins(view.model, scores, errors, view.codes)
        low = margin - error - 2.0**-51 * np.abs(margin)
        return np.maximum(low / np.where(low > 0, *self.size[::-1]) - 2.0**-51, -1.0)


class BoostingMargin(VoteMargins):
    """margin.boosting: mean of min(1, max(0, 1 - margin / rho)) + (2 / rho) sqrt(2 ln Pi(n) / n) + sqrt(ln(11 / delta)
    / (2n))."""

    def prepare(self) -> None:
        super().prepare()
        if not 0 <= self.claim.value <= 1:
            raise Rejected(f"an error rate lies between 0 and 1; the value is {self.claim.value!r}")
        self.rho = 2.0 ** self.choice("exponent", list(_THRESHOLD_EXPONENTS))
        base = self.param("class")
        self.ln_growth = ln_member_growth(base, self.rows, self.model)
        self.delta = exact_decimal(self.claim.delta, "delta") / (len(_THRESHOLD_EXPONENTS) * price(base))
        self.sums = Sums(1)

    def block(self, view: View) -> None:
        ramp = np.clip(1 - self.least(view) / self.rho, 0.0, 1.0)
        self.sums.add(np.minimum(above(ramp) + 2.0**-50, 1.0)[:, None])

    def measure(self) -> float:
        n = self.rows
        mean = above(float(self.sums.value[0] + self.sums.error[0]) / n)
        with localcontext(prec=60):
            complexity = 2 * (2 * self.ln_growth / n).sqrt() / Decimal(self.rho)
            deviation = (-ln(self.delta) / (2 * n)).sqrt()
            return min(1.0, math.nextafter(float(Decimal(mean) + complexity + deviation + Decimal("1e-40")), 2.0))


class MarginDuality(VoteMargins):
    """boosting.margin-duality: the largest soft margin max_rho rho - cap sum_i max(0, rho - m_i) of votes of stumps;
    cap 1: the smallest.

    Lower: the vote itself, at the stated rho. Upper: weights u of the rows; with v = u / sum u <= cap (1 + e), every
    vote's soft margin is at most the largest edge sum v_i y_i h(x_i) of a stump, plus 2 e.
    """

    def prepare(self) -> None:
        super().prepare()
        self.cap = self.number("cap")
        if not 1 / self.rows * (1 - 1e-9) <= self.cap <= 1:
            raise Rejected("cap must lie between one over the number of rows and 1")
        if max(tree_sizes(self.model)) > 2:
            raise Refused("the largest edge is searched among stumps; the vote has larger trees")
        self.lower = self.claim.direction == "lower"
        if self.lower:
            self.rho, self.sums = self.number("rho"), Sums(1)
            return
        self.u = self.witness("weights", self.rows)
        if np.any(self.u < 0) or not self.u.any():
            raise Rejected("weights of rows must not be negative, and not all zero")
        if self.rows * self.model.columns > _MOST_ENTRIES:
            raise Refused("the table is too large to be sorted here")
        self.X: list[np.ndarray] = []
        self.sides: list[np.ndarray] = []

    def block(self, view: View) -> None:
        if self.lower:
            short = np.maximum(self.rho - self.least(view), 0.0)
            self.sums.add(above(short)[:, None])
        else:
            if np.any(view.codes < 0):
                raise Rejected("a row has a label that the model does not know")
            self.X.append(view.X)
            self.sides.append(np.where(view.codes == 1, 1.0, -1.0))

    def measure(self) -> float:
        if self.lower:
            short = above(self.cap * above(float(self.sums.value[0] + self.sums.error[0])))
            return self.rho - short - 2.0**-52 * (self.rho + short)
        signed, total = self.u * np.concatenate(self.sides), math.fsum(self.u.tolist())
        most = _largest_edge(np.concatenate(self.X), signed) + gamma(2 * self.rows + 8) * total
        over = max(0.0, float(Fraction(float(self.u.max())) / Fraction(total)) / self.cap - 1) + 2.0**-50
        return above(above(most / total) + 2 * (over if self.cap < 1 else 0.0))


def _largest_edge(X: np.ndarray, signed: np.ndarray) -> float:
    """Return the largest |sum over one side of a border minus sum over the other|, over columns and borders."""
    whole = float(signed.sum())
    largest = abs(whole)
    for column in X.T:
        order = np.argsort(column, kind="stable")
        border = column[order[1:]] > column[order[:-1]]
        below = np.cumsum(signed[order])[:-1][border]
        largest = max(largest, float(np.max(np.abs(whole - 2 * below), initial=0.0)))
    return largest


DRAWS, SEED = 16, 0  # fixed in advance: whoever chose them after looking at the rows could choose a small average
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
