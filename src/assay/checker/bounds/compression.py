"""Sample compression: the model is close to one that can be rebuilt from a few of its rows and a short message.

Let g be the rebuilt score, and t(x) a tolerance that rows and message determine too, with |f(x) - g(x)| <= t(x) for
every x, f the score of the model. Where f errs, the margin of g is at most t(x). That is an event about (x, y)
which is fixed before the other rows are drawn, so the Clopper-Pearson limit holds for its count there; a row
whose margin of f is above 2 t(x) is certainly not counted.
"""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from assay.checker.bounds.tails import binomial_at_most, ln, ln_binomial
from assay.checker.numerics import U
from assay.checker.predictors import margins
from assay.checker.record import Rejected, exact_decimal
from assay.checker.rule import Rule, View

_PI_SQUARE = Decimal("9.86960440108935861883449099987615113531369940724079062641335")
SLIP = Decimal("1e-18")  # more than all logarithms here are off by
NEAR = 2.0**-30  # relative distance of a perceptron from the exact sum of its updates
GRID = tuple(2.0**exponent for exponent in range(-30, 11))
WORD = 64  # bits of a number that is told


def ln_size(k: int) -> Decimal:
    """Return ln(6 / (pi^2 (k + 1)^2)), weights of 0, 1, 2, ... that add up to one."""
    with localcontext(prec=60):
        return ln(6) - _PI_SQUARE.ln() - 2 * ln(k + 1) - SLIP


class Rebuilt:
    """What both kinds of compression share: counting on the other rows, and the limit."""

    def check_claim(self, rule: Rule) -> None:
        if rule.model.classes is None:
            raise Rejected("an error rate needs a classifier")
        if not 0 <= rule.claim.value <= 1:
            raise Rejected(f"an error rate lies between 0 and 1; the value is {rule.claim.value!r}")
        rule.check_rows()
        rule.count("errors")
        self.delta, self.lost = exact_decimal(rule.claim.delta, "delta"), 0

    def count_outside(self, view: View, kept: np.ndarray, tolerance: np.ndarray) -> None:
        """Count rows outside the sorted `kept` whose margin is not certainly above the tolerance."""
        margin, error = margins(view.model, *view.scores, view.codes)
        lost = ~(margin > (tolerance + error) * (1 + 8 * U))
        lost[view.pick(kept)[1]] = False
        self.lost += int(lost.sum())

    def limit(self, rule: Rule, kept: int, ln_message: Decimal) -> float:
        n, value = rule.rows, Fraction(rule.claim.value)
        if rule.count("kept") != kept or kept >= n:
            raise Rejected(f"kept is {rule.params['kept']}; the rows it is rebuilt from are {kept} of {n}")
        errors = rule.count("errors")
        if not self.lost <= errors <= n - kept:
            raise Rejected(f"errors is {errors}, recounted {self.lost} in the {n - kept} other rows")
        if value == 1:
            return 1.0
        with localcontext(prec=60):
            allowed = ln(self.delta) + ln_size(kept) - ln_binomial(n, kept) + ln_message - SLIP
        if value <= 0 or binomial_at_most(errors, n - kept, value).high > allowed:
            raise Rejected(
                f"the limit for {errors} errors in {n - kept} rows, after paying for {kept} kept ones, "
                f"lies above {rule.claim.value:.10g}"
            )
        return rule.claim.value


def ln_counts(counts: np.ndarray) -> Decimal:
    """Return ln of the weight of the message that tells (k, hyperplanes) numbers of updates."""
    (k, outputs), message = counts.shape, Decimal(0)
    with localcontext(prec=60):
        for total in (sum(column) for column in counts.T.tolist()):  # sums of int64 could wrap around
            ways = ln_binomial(total - 1, k - 1) if outputs == 1 else ln_binomial(total + k - 1, k - 1)
            message += ln_size(total) - ways - SLIP
    return message
