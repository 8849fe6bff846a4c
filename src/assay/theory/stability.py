"""Algorithmic stability: a learner that hardly changes when one row changes does not overfit.

Replace-one stability beta: for every sample and every row put in the place of another, the loss at every
point changes by at most beta. For a loss in [0, M] (Bousquet and Elisseeff 2002; Mohri et al. 2018, chapter
14), with probability 1 - delta,  L <= L_n + beta + (2 n beta + M) sqrt(ln(1/delta) / (2n)).

For w minimising (1/n) sum loss_i(w) + (strength/2) |w|^2 with a convex sigma-Lipschitz loss and |x| <= r,
strong convexity on both samples gives |w - w'| <= 2 sigma r / (strength n), hence beta = 2 sigma sigma' r^2
/ (strength n) for an evaluation loss that is sigma'-Lipschitz. There must be no unpenalised intercept,
strength is fixed in advance and r holds for every possible row, not only for those seen.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from assay.theory import _checks as check


def uniform_stability(
    n: int,
    strength: float,
    radius: float,
    *,
    lipschitz: float = 1.0,
    evaluation_lipschitz: float | None = None,
) -> float:
    """Return beta = 2 sigma sigma' r^2 / (strength n) of a minimiser of mean loss + (strength/2) |w|^2.

    A support vector machine with scikit-learn's C has strength 1/(C n) and sigma = 1. The evaluation loss
    has the constant of the training loss unless another is given.
    """
    n, strength = check.whole("n", n), check.positive("strength", strength)
    sigma = check.positive("lipschitz", lipschitz)
    other = sigma if evaluation_lipschitz is None else check.positive("evaluation_lipschitz", evaluation_lipschitz)
    return check.enlarge(2.0 * sigma * other * check.positive("radius", radius) ** 2 / (strength * n))


def stability_bound(
    loss: float, beta: float, n: int, delta: float, *, high: float = 1.0, removal: bool = False
) -> float:
    """Return loss + beta + (2 n beta + high) sqrt(ln(1/delta) / (2n)), `loss` the mean training loss.

    With `removal` beta is leave-one-out stability and the bound is loss + 2 beta + (4 n beta + high)
    sqrt(...), theorem 12 of Bousquet and Elisseeff 2002. At most `high`.
    """
    n, high = check.whole("n", n), check.positive("high", high)
    loss, beta = check.number("loss", loss, low=0.0, high=high), check.number("beta", beta, low=0.0)
    factor = 2.0 if removal else 1.0
    root = math.sqrt(-math.log(check.failure(delta)) / (2.0 * n))
    return min(high, check.enlarge(loss + factor * beta + (2.0 * factor * n * beta + high) * root))


def suboptimality_slack(gap: float, strength: float, radius: float, lipschitz: float = 1.0) -> float:
    """Return 2 sigma' r sqrt(2 gap / strength), to be added when the shipped w is only `gap`-optimal.

    Half of it for the training loss and half for the risk: |w - w*| <= sqrt(2 gap / strength).
    """
    gap, strength = check.number("gap", gap, low=0.0), check.positive("strength", strength)
    slope = check.positive("lipschitz", lipschitz) * check.positive("radius", radius)
    return check.enlarge(2.0 * slope * math.sqrt(2.0 * gap / strength))


class MeasuredStability(NamedTuple):
    """Largest changes seen: of the loss anywhere when a row is removed, or replaced, and of its own loss."""

    removal: float
    replacement: float
    own: float


def measured_stability(
    learner: Any,
    X: ArrayLike,
    y: ArrayLike,
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray],
    *,
    rows: Iterable[int] | None = None,
) -> MeasuredStability:
    """Return the largest change of `loss(y, output)` when one row is left out, or replaced by the next one.

    Output is the learner's decision_function if it has one, else predict. This is a lower bound of the true
    stability: only these changes are tried, on this sample. The learner is cloned and refitted twice for
    each of `rows` (all by default).
    """
    from sklearn.base import clone

    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    if len(X) < 3:
        raise ValueError(f"leaving rows out needs at least 3 of them; got {len(X)}.")

    def losses(keep: np.ndarray) -> np.ndarray:
        fitted = clone(learner).fit(X[keep], y[keep])
        output = getattr(fitted, "decision_function", fitted.predict)(X)
        return np.asarray(loss(y, output), dtype=np.float64)

    everything = np.arange(len(X))
    base = losses(everything)
    removal = replacement = own = 0.0
    for i in everything if rows is None else rows:
        without = np.abs(losses(np.delete(everything, i)) - base)
        replaced = everything.copy()
        replaced[i] = (i + 1) % len(X)
        removal, own = max(removal, float(without.max())), max(own, float(without[i]))
        replacement = max(replacement, float(np.abs(losses(replaced) - base).max()))
    return MeasuredStability(removal, replacement, own)
