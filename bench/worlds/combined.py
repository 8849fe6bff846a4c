"""Votes that reject rows, costs at a chosen threshold, bits of a code."""

import numpy as np
from scipy.stats import norm

from assay.checker.families.codes import corrected_bits
from assay.multiclass import exhaustive_code
from assay.multiclass._reductions import decode
from assay.theory import holdout
from assay.theory.concentration import clopper_pearson_upper, kl_upper
from bench.worlds._case import case

COST = np.array([[0.0, 1.0], [3.0, 0.0]])
GRID = np.arange(1, 100) / 100
CUT = np.log(GRID / (1 - GRID)) + 0.5  # where the posterior of N(0, 1) and N(1, 1) is above the threshold
TRUE_COST = 0.5 * norm.sf(CUT) + 1.5 * norm.cdf(CUT - 1)


def votes(rng, m):
    """Return shares, uniform on [0, 1], and errors: a row of share s is wrong with probability (1 - s) / 2."""
    share = rng.random(m)
    return share, rng.random(m) < (1 - share) / 2


@case("selective.risk", "uniform shares, m = 150, every threshold of the grid")
def rejection(rng, delta):
    found = holdout.curve(*votes(rng, 150), delta)
    return bool(np.any(found.limit < (1 - found.threshold) / 4)), found.limit[32] < 0.5


@case("selective.risk", "uniform shares, m = 300, between thresholds")
def rejection_between(rng, delta):
    share, wrong = votes(rng, 300)
    thresholds = np.arange(0, 50, 5) / 64 + 0.007
    found = [holdout.at_threshold(share, wrong, float(t), delta) for t in thresholds]
    broken = any(one is not None and one.limit < (1 - t) / 4 for one, t in zip(found, thresholds))
    return broken, found[2] is not None and found[2].limit < 0.5


@case("selective.risk", "a limit for one threshold, read at the best of all", control=True)
def rejection_unpaid(rng, delta):
    share, wrong = votes(rng, 150)
    for t in np.arange(60) / 64:
        kept = share > t
        if kept.any() and clopper_pearson_upper(int(wrong[kept].sum()), int(kept.sum()), delta) < (1 - t) / 4:
            return True, True
    return False, True


def best_threshold(rng, m):
    """Return the least mean cost of the thresholds on m rows, and where."""
    y = rng.integers(0, 2, m)
    z = rng.normal(size=m) + y
    paid = np.array([COST[y, (z > c).astype(int)].mean() for c in CUT])
    best = int(paid.argmin())
    return paid[best], best


@case("cost.chosen", "two Gaussians, cost at the best of 99 thresholds on 60 rows")
def chosen_cost(rng, delta):
    paid, best = best_threshold(rng, 60)
    bound = 3 * kl_upper(paid / 3, np.log(len(CUT) / delta) / 60)
    return bound < TRUE_COST[best], bound < 3


@case("cost.chosen", "mean cost at the best of 99 thresholds, taken as it is", control=True)
def chosen_cost_unpaid(rng, delta):
    paid, best = best_threshold(rng, 60)
    return paid < TRUE_COST[best], True


CODE = exhaustive_code(4)
BITS = CODE.shape[1]
_SAID = np.where(np.random.default_rng(0).random((200_000, BITS)) < 0.1, -1, 1) * CODE[0]
_SCORES = np.sort(decode(_SAID.astype(float), CODE.astype(float), 0), axis=1)
_WON = decode(_SAID.astype(float), CODE.astype(float), 0).argmax(axis=1) == 0
TRUE_ERROR = float(np.mean(~_WON | (_SCORES[:, -1] == _SCORES[:, -2])))


@case("output-code.bits", "7 bits that err in a tenth of the rows, m = 100")
def wrong_bits(rng, delta):
    wrong = int(rng.binomial(100 * BITS, 0.1))
    bound = BITS / (corrected_bits(CODE) + 1) * kl_upper(wrong / (100 * BITS), np.log(1 / delta) / 100)
    return bound < TRUE_ERROR, bound < 1


@case("output-code.bits", "divided by one bit more than the code corrects, and ten", control=True)
def wrong_bits_overstated(rng, delta):
    wrong = int(rng.binomial(100 * BITS, 0.1))
    bound = BITS / (corrected_bits(CODE) + 11) * kl_upper(wrong / (100 * BITS), np.log(1 / delta) / 100)
    return bound < TRUE_ERROR, True
