"""The perceptron as theory describes it: any start, any rule to choose a violated row, and a trace of its
convergence."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

RULES = ("first", "random", "worst")


class PerceptronTrace(NamedTuple):
    """The final w, whether no row is violated, the rows used, and <w_t, w_f>, |w_t|^2 before each update and
    at the end."""

    w: np.ndarray
    separated: bool
    updates: np.ndarray
    products: np.ndarray
    squares: np.ndarray


def perceptron_trace(
    A: Any,
    labels: Any,
    *,
    rule: str = "first",
    start: str = "zero",
    target: Any = None,
    max_updates: int = 100_000,
    random_state: Any = None,
) -> PerceptronTrace:
    """Run w <- w + l_i a_i on rows with l_i <a_i, w> <= 0 until there is none, and record each step.

    `rule` picks the violated row: "first", "random", or "worst" (the most negative l_i <a_i, w>). `start` is
    "zero", or
    "first" for w = l_1 a_1. For unit rows and a unit `target` w_f of margin delta, after t updates from w =
    l_1 a_1
    <w, w_f> >= (t + 1) delta and |w|^2 <= t + 1, so t <= 1 / delta^2 - 1; from zero t <= 1 / delta^2; for
    rows of length at
    most R, t <= (R / delta)^2 from zero.

    >>> trace = perceptron_trace([[1.0, 0.0], [0.6, 0.8]], [1, -1], start="first")
    >>> trace.separated, len(trace.updates)
    (True, 1)
    """
    if rule not in RULES or start not in ("zero", "first"):
        raise ValueError(
            f'perceptron_trace: rule must be in {RULES}, start "zero" or "first"; got {rule!r}, {start!r}.'
        )
    signed = np.asarray(A, dtype=np.float64) * np.asarray(labels, dtype=np.float64)[:, None]
    random = check_random_state(random_state)
    w = signed[0].copy() if start == "first" else np.zeros(signed.shape[1])
    goal = np.zeros_like(w) if target is None else np.asarray(target, dtype=np.float64)
    used: list[int] = []
    products, squares = [w @ goal], [w @ w]
    separated = False
    while len(used) < max_updates:
        scores = signed @ w
        violated = np.flatnonzero(scores <= 0)
        if not len(violated):
            separated = True
            break
        i = {"first": violated[0], "worst": int(np.argmin(scores))}.get(rule)
        i = random.choice(violated) if i is None else i
        w = w + signed[i]
        used.append(i)
        products.append(w @ goal)
        squares.append(w @ w)
    return PerceptronTrace(w, separated, np.array(used, dtype=np.int64), np.array(products), np.array(squares))
