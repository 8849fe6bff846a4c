"""Rules for statements about new data: exact tails at the published value, one evaluation each."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from assay.checker.bounds.tails import binomial_at_least, binomial_at_most, hypergeometric_at_most, ln, ln_growth
from assay.checker.facts import ErrorCount
from assay.checker.numerics import Sums, U, above
from assay.checker.predictors import predicted
from assay.checker.record import Rejected, exact_decimal, signed
from assay.checker.rule import Rule, View


class CountedRisk(Rule):
    """A bound on the error rate from a recount of errors."""

    def prepare(self) -> None:
        if self.model.classes is None:
            raise Rejected("an error rate needs a classifier")
        if not 0 <= self.claim.value <= 1:
            raise Rejected(f"an error rate lies between 0 and 1; the value is {self.claim.value!r}")
        self.check_rows()
        self.count("errors")
        self.delta = exact_decimal(self.claim.delta, "delta")
        self.total = ErrorCount()

    def block(self, view: View) -> None:
        self.total.add(view)

    def recount(self) -> int:
        """Return the number of errors the bound must use; the claim, whose sentence tells its own, may name a larger
        one (for a lower bound, a smaller)."""
        low, high = self.total.bounds()
        errors, upper = self.count("errors"), self.claim.direction == "upper"
        if errors > self.rows or (errors < high if upper else errors > low):
            raise Rejected(f"errors is {errors}, recounted {low if low == high else f'{low} to {high}'}")
        return high if upper else low

    def observed(self) -> float:
        low, high = self.total.bounds()
        return low / self.rows * (1 - 4 * U) if self.claim.direction == "upper" else high / self.rows * (1 + 4 * U)

    def limit(self, errors: int, delta: Fraction) -> float:
        """Return the value if it is a Clopper-Pearson limit for that many errors; say how far off it is
        otherwise."""
        value, m = Fraction(self.claim.value), self.rows
        if self.claim.direction == "upper":
            trivial, tail = value == 1, binomial_at_most
        else:
            trivial, tail = value == 0, binomial_at_least
        if trivial:
            return self.claim.value
        possible = 0 < value < 1 and tail(errors, m, value).high <= ln(delta)
        if not possible:
            side = "above" if self.claim.direction == "upper" else "below"
            raise Rejected(
                f"the limit for {errors} errors in {m} rows at delta {float(delta):.3g} "
                f"lies {side} {self.claim.value:.10g}"
            )
        return self.claim.value


class HoldoutBinomial(CountedRisk):
    """holdout.binomial: Clopper-Pearson limit of the errors on the hold-out rows."""

    set = "holdout"

    def measure(self) -> float:
        return self.limit(self.recount(), self.delta)


class HoldoutSelect(CountedRisk):
    """holdout.selection: the same after `compared` models were tried on the hold-out rows; each pays delta /
    compared."""

    set = "holdout"

    def prepare(self) -> None:
        super().prepare()
        self.compared = self.count("compared", 1)
        self.predictions = self.witness("predictions", self.compared, self.rows, integer=True)
        self.agree = np.ones(self.compared, dtype=bool)

    def block(self, view: View) -> None:
        super().block(view)
        guess, sure = predicted(view)
        rows = slice(view.start, view.start + len(guess))
        self.agree &= ((self.predictions[:, rows] == guess) | ~sure).all(axis=1)

    def measure(self) -> float:
        if not self.agree.any():
            raise Rejected("no row of predictions is this model's: it is not among the models compared")
        return self.limit(self.recount(), self.delta / self.compared)


class Vc(CountedRisk):
    """vc, form c: a ghost sample of M = 4 n rows, q = 1/2.

    K marked rows of n + M leave at most the counted errors in the sample with probability at most delta q /
    growth, and an error rate equal to the value gives at least K - errors errors in the ghost sample with
    probability q.
    """

    def prepare(self) -> None:
        super().prepare()
        self.choice("form", ["c"])
        n = self.rows
        if self.count("M") != 4 * n:
            raise Rejected(f"M is {self.params['M']}; the rule fixed in advance is M = 4 n = {4 * n}")
        if self.number("q") != 0.5:
            raise Rejected(f"q is {self.params['q']!r}; the rule fixed in advance is q = 1/2")
        self.K = self.count("K", 1)
        self.ln_growth = ln_growth(self.param("class"), 5 * n, self.model)
        self.delta /= self.model.price(self.param("class"))

    def measure(self) -> float:
        # A stated count above the recount is used: with fewer errors, as many fewer marked rows prove the same, since
        # marking one row more adds one error at most.
        errors, n, M = max(self.recount(), self.count("errors")), self.rows, 4 * self.rows
        value = Fraction(self.claim.value)
        if value == 1:
            return 1.0
        if not errors < self.K <= n + M:
            raise Rejected(f"K is {self.K}; it must lie above the {errors} errors and be at most {n + M}")
        with localcontext(prec=60):
            allowed = ln(self.delta / 2) - self.ln_growth - Decimal("1e-40")
        if hypergeometric_at_most(errors, n + M, self.K, n).high > allowed:
            raise Rejected(
                f"K is {self.K}, too small for {errors} errors, this class and delta {float(self.delta):.3g}"
            )
        if value <= 0 or binomial_at_least(self.K - errors, M, value).low < ln(Fraction(1, 2)) + Decimal("1e-40"):
            raise Rejected(f"the bound for K = {self.K} and {errors} errors lies above {self.claim.value:.10g}")
        return self.claim.value


class ClippedRisk(Rule):
    """A bound on the mean of min(|y - f|, clip) from the hold-out rows; for a density, of -ln p(x) clipped to [low, low
    + clip], less low; for centres or a flat, of min(squared distance, clip)."""

    set = "holdout"

    def prepare(self) -> None:
        if self.model.classes is not None:
            raise Rejected("it needs a regression with one target")
        own = self.model.loss
        stated = self.param("loss") if self.has("loss") else "absolute"
        if stated != own:
            raise Rejected(f"the loss of such a model is {own!r}; the claim says {str(stated)[:40]!r}")
        self.low = signed(self.param("low"), "low") if own == "log" else 0.0
        self.check_rows()
        compared = self.count("compared", 1) if self.has("compared") else 1
        self.clip, self.delta = self.number("clip"), exact_decimal(self.claim.delta, "delta") / compared
        self.sums = Sums(2)

    def losses(self, view: View) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of each row's loss, from below and above."""
        return self.model.losses(view, self.clip, self.low)

    def block(self, view: View) -> None:
        self.sums.add(np.stack(self.losses(view), axis=1))

    def observed(self) -> float:
        return self.means()[0]

    def means(self) -> tuple[float, float]:
        low, high = self.sums.value / self.rows
        low_error, high_error = 2 * self.sums.error / self.rows
        return float(low - low_error - 4 * U * low), float(above(high + high_error))


class EmpiricalBernstein(ClippedRisk):
    """holdout.empirical-bernstein: mean + sqrt(2 V ln(2/delta) / m) + 7 clip ln(2/delta) / (3 (m - 1)), V the unbiased
    sample variance.

    V is at most the sum of (loss - c)^2 over m - 1 for every c; c is the mean as computed in the first pass.
    """

    center: float | None = None

    def block(self, view: View) -> None:
        if self.center is None:
            super().block(view)
        else:
            low, high = self.losses(view)
            self.squares.add(above(np.maximum(np.abs(low - self.center), np.abs(high - self.center)) ** 2)[:, None])

    def next_pass(self) -> bool:
        if self.center is not None:
            return False
        if self.rows < 2:
            raise Rejected("the sample variance needs two rows")
        self.center, self.squares = float(np.mean(self.means())), Sums(1)
        return True

    def measure(self) -> float:
        m, log = self.rows, ln_above(2 / self.delta)
        variance = above((self.squares.value[0] + self.squares.error[0]) / (m - 1))
        return above(self.means()[1] + math.sqrt(2 * variance * log / m) + 7 * self.clip * log / (3 * (m - 1)))


def ln_above(value: Fraction) -> float:
    """Return a float that is at least ln(value)."""
    return math.nextafter(float(ln(value)), math.inf)
