"""Support vector machines: margins, hard and soft margin problems, the Lagrangian, Platt's SMO with a trace.

    hard   L(w, b, alpha)          = 1/2 |w|^2 + sum alpha_i (1 - y_i (<w, x_i> + b))
    soft   L(w, b, xi, alpha, mu)  = 1/2 |w|^2 + C sum xi_i + sum alpha_i (1 - xi_i - y_i (<w, x_i> + b)) - <mu, xi>

At the optimum all derivatives vanish: w = sum alpha_i y_i x_i, sum alpha_i y_i = 0, and C = alpha_i + mu_i. The dual is

    minimise W(alpha) = 1/2 sum_ij alpha_i alpha_j y_i y_j K_ij - sum alpha_i,  sum alpha_i y_i = 0,  0 <= alpha_i <= C

SMO (Platt 1998) changes two variables a step; on the line y_1 alpha_1 + y_2 alpha_2 = const the minimum has a closed
form, clipped to the ends L and H of the box. The solver of `assay.svm` makes the same steps inside larger working sets.
"""

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog


def distances(w: np.ndarray, b: float, X: np.ndarray) -> np.ndarray:
    """Return |<w, x> + b| / |w|, the distance of each row to the hyperplane.

    Parameters
    ----------
    w : ndarray
        Normal of the hyperplane.
    b : float
        Intercept.
    X : ndarray
        Rows.

    Returns
    -------
    ndarray
        Distance of each row.

    Examples
    --------
    >>> distances(np.array([3.0, 4.0]), -5.0, np.array([[0.0, 0.0], [3.0, 4.0]])).tolist()
    [1.0, 4.0]
    """
    return np.abs(X @ w + b) / np.linalg.norm(w)


def functional_margins(w: np.ndarray, b: float, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return y (<w, x> + b) of each row, y = -1 or +1; it scales with (w, b).

    Parameters
    ----------
    w : ndarray
        Normal of the hyperplane.
    b : float
        Intercept.
    X : ndarray
        Rows.
    y : ndarray
        Labels -1 and +1.

    Returns
    -------
    ndarray
        Margin of each row.
    """
    return y * (X @ w + b)


def geometric_margin(w: np.ndarray, b: float, X: np.ndarray, y: np.ndarray) -> float:
    """Return min y (<w, x> + b) / |w|; the same for (w, b) and any positive multiple of it.

    Parameters
    ----------
    w : ndarray
        Normal of the hyperplane.
    b : float
        Intercept.
    X : ndarray
        Rows.
    y : ndarray
        Labels -1 and +1.

    Returns
    -------
    float
        The margin.
    """
    return float(functional_margins(w, b, X, y).min() / np.linalg.norm(w))


def canonical(w: np.ndarray, b: float, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Return (w, b) rescaled so that the least functional margin is 1; the data must be separated.

    Parameters
    ----------
    w : ndarray
        Normal of the hyperplane.
    b : float
        Intercept.
    X : ndarray
        Rows.
    y : ndarray
        Labels -1 and +1.

    Returns
    -------
    tuple of ndarray, float
        w and b.
    """
    least = float(functional_margins(w, b, X, y).min())
    if least <= 0:
        raise ValueError(f"canonical: the hyperplane does not separate the rows (least margin {least:.4g}).")
    return w / least, b / least


class SoftMargin(NamedTuple):
    """A soft margin with 0/1 losses: the value, w, b and the rows that are given up.

    Parameters
    ----------
    value : float
        The objective.
    w : ndarray
        Normal of the hyperplane.
    b : float
        Intercept.
    given_up : ndarray
        Which rows are given up.
    """

    value: float
    w: np.ndarray
    b: float
    given_up: np.ndarray


def zero_one_soft_margin(X: np.ndarray, y: np.ndarray, C: float, *, count: str = "margin") -> SoftMargin:
    """Minimise 1/2 |w|^2 + C * (number of rows given up) exactly, by going through all sets of rows (n <=
    12).

    count="margin": a row is given up when y f < 1. count="error": the rows that are not misclassified must
    have y f >= 1,
    and a row costs C only if it is misclassified; its side is then free.

    Parameters
    ----------
    X : ndarray
        Rows.
    y : ndarray
        Labels -1 and +1.
    C : float
        Largest multiplier: the price of crossing the margin.
    count : str, default="margin"
        "margin" or "error": what a row is given up for.

    Returns
    -------
    SoftMargin
        The minimum.
    """
    if len(X) > 12:
        raise ValueError(f"zero_one_soft_margin: goes through 2^n sets, so n must be at most 12; got {len(X)}.")
    if count not in ("margin", "error"):
        raise ValueError(f"zero_one_soft_margin: count must be 'margin' or 'error'; got {count!r}.")
    best = SoftMargin(np.inf, np.zeros(X.shape[1]), 0.0, np.ones(len(X), bool))
    for pattern in product((False, True), repeat=len(X)):
        given_up = np.array(pattern)
        if C * given_up.sum() >= best.value:
            continue
        sides = np.where(given_up, -y, y) if count == "error" else y
        kept = np.ones(len(X), bool) if count == "error" else ~given_up
        margin = np.where(given_up & (count == "error"), 0.0, 1.0)
        result = _least_norm(X[kept], sides[kept], margin[kept])
        if result is None:
            continue
        w, b = result
        value = 0.5 * float(w @ w) + C * float(given_up.sum())
        if value < best.value:
            best = SoftMargin(value, w, b, given_up)
    return best


def _least_norm(X: np.ndarray, y: np.ndarray, margin: np.ndarray) -> tuple[np.ndarray, float] | None:
    """Return the smallest w, with b, such that y (<w, x> + b) >= margin; None if there is none."""
    from scipy import sparse

    from assay.svm._reference_solvers import _clarabel, _solved

    if len(X) == 0 or not margin.any():
        return np.zeros(X.shape[1]), 0.0
    A = -y[:, None] * np.column_stack([np.ones(len(X)), X])
    if linprog(np.zeros(A.shape[1]), A_ub=A, b_ub=-margin, bounds=(None, None), method="highs").status != 0:
        return None
    P = sparse.block_diag([sparse.csc_matrix((1, 1)), sparse.eye(X.shape[1])])
    answer = _clarabel(P, np.zeros(A.shape[1]), A, -margin, 0, 1e-10)
    return (np.array(answer.x)[1:], float(answer.x[0])) if _solved(answer) else None


def margin_through_origin(K: np.ndarray, y: np.ndarray, C: float = np.inf) -> np.ndarray:
    """Return the coefficients c of w = sum c_j phi(a_j) that minimise |w|^2 + C sum slack, y_i <w,
    phi(a_i)> >= 1 - slack_i.

    The kernel program of the notes, min c'Kc subject to y_i (K c)_i >= 1, without an offset; C = infinity
    allows no slack.
    K must be positive semidefinite.

    Parameters
    ----------
    K : ndarray
        Gram matrix of the rows.
    y : ndarray
        Labels -1 and +1.
    C : float, default=inf
        Largest multiplier: the price of crossing the margin.

    Returns
    -------
    ndarray
        Coefficients of the rows.
    """
    from scipy import sparse

    from assay.kernels import embedding
    from assay.svm._reference_solvers import _clarabel, _solved

    embedding(K)  # refuses an indefinite K, for which the program is not convex
    n = len(y)
    Q = y[:, None] * K * y[None, :]
    bound = [] if np.isinf(C) else [sparse.eye(n)]
    A = sparse.vstack([-sparse.eye(n), *bound])
    right = np.concatenate([np.zeros(n), np.full(n if bound else 0, 0.5 * C)])
    answer = _clarabel(sparse.csc_matrix(Q), -np.ones(n), A, right, 0, 1e-10)
    if not _solved(answer) or float(np.abs(answer.x).max()) > 1e9:
        raise ValueError("margin_through_origin: no hyperplane through the origin separates the rows.")
    return y * np.array(answer.x)


def hinge_only(X: np.ndarray, y: np.ndarray, *, rate: float = 0.1, max_steps: int = 10_000) -> tuple[np.ndarray, float]:
    """Descend on sum max(0, 1 - y (<w, x> + b)) alone: stops at the first separator with zero loss, whose
    margin is not maximal.

    Parameters
    ----------
    X : ndarray
        Rows.
    y : ndarray
        Labels -1 and +1.
    rate : float, default=0.1
        Learning rate.
    max_steps : int, default=10000
        Largest number of steps.

    Returns
    -------
    tuple of ndarray, float
        w and b.
    """
    w, b = np.zeros(X.shape[1]), 0.0
    for _ in range(max_steps):
        inside = y * (X @ w + b) < 1
        if not inside.any():
            break
        w = w + rate * (y[inside] @ X[inside]) / len(X)
        b = b + rate * float(y[inside].sum()) / len(X)
    return w, b


def intertwined_curves(
    delta: float = 0.25, distance: float = 3.0, turns: float = 60.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return points on two congruent waves, `delta` apart along each and `distance` from each other, with
    labels -1 and +1.

    Parameters
    ----------
    delta : float, default=0.25
        Distance of neighbouring points of one curve.
    distance : float, default=3.0
        Distance of the curves.
    turns : float, default=60.0
        Length of the curves along the first axis.

    Returns
    -------
    tuple of ndarray
        Points and labels.
    """
    t = np.arange(0.0, turns, delta)
    wave = np.column_stack([t, 3.0 * np.sin(t / 6.0)])
    X = np.vstack([wave, wave + np.array([0.0, distance])])
    return X, np.repeat([1.0, -1.0], len(t))


class Lagrangian(NamedTuple):
    """Value, and derivatives by w (d,), by b, and by the slacks (n,); the last is empty for the hard margin.

    Parameters
    ----------
    value : float
        The value.
    by_w : ndarray
        Derivatives by w.
    by_b : float
        Derivative by b.
    by_slack : ndarray
        Derivatives by the slacks; empty for the hard margin.
    """

    value: float
    by_w: np.ndarray
    by_b: float
    by_slack: np.ndarray


def lagrangian(
    X: Any, y: Any, w: Any, b: float, alpha: Any, *, C: float = np.inf, slack: Any = None, mu: Any = None
) -> Lagrangian:
    """Return the Lagrangian at w, b and the multipliers alpha; with a finite C also of `slack` with multipliers `mu`.

    Parameters
    ----------
    X : array-like
        Rows.
    y : array-like
        Labels -1 and +1.
    w : array-like
        Normal of the hyperplane.
    b : float
        Intercept.
    alpha : array-like
        Multipliers of the margin constraints.
    C : float, default=inf
        Price of the slacks; infinity: the hard margin.
    slack : array-like
        Slack of each row.
    mu : array-like
        Multipliers of slack >= 0.

    Returns
    -------
    Lagrangian
        Value and derivatives.

    Examples
    --------
    >>> found = lagrangian([[1.0], [-1.0]], [1, -1], [1.0], 0.0, [0.5, 0.5])
    >>> found.value, found.by_w.tolist(), found.by_b
    (0.5, [0.0], 0.0)
    """
    X, y, w, alpha = (np.asarray(part, dtype=np.float64) for part in (X, y, w, alpha))
    if X.ndim != 2 or w.shape != X.shape[1:] or y.shape != (len(X),) or alpha.shape != y.shape:
        raise ValueError(
            f"lagrangian: X {X.shape}, y {y.shape}, w {w.shape} and alpha {alpha.shape} do not go together."
        )
    if np.isfinite(C) != (slack is not None and mu is not None):
        raise ValueError("lagrangian: a finite C comes with slack and mu, the hard margin with neither.")
    short = 1.0 - y * (X @ w + b)
    value = 0.5 * float(w @ w) + float(alpha @ short)
    by_w, by_b = w - (alpha * y) @ X, 0.0 - float(alpha @ y)
    if not np.isfinite(C):
        return Lagrangian(value, by_w, by_b, np.empty(0))
    slack, mu = np.asarray(slack, dtype=np.float64), np.asarray(mu, dtype=np.float64)
    if slack.shape != y.shape or mu.shape != y.shape:
        raise ValueError(f"lagrangian: slack {slack.shape} and mu {mu.shape} must have a number for each row.")
    value += C * float(slack.sum()) - float((alpha + mu) @ slack)
    return Lagrangian(value, by_w, by_b, C - alpha - mu)


class PairStep(NamedTuple):
    """One step: the pair, the ends of its segment, eta, the new alphas, the offset and W after it.

    Parameters
    ----------
    i, j : int
        Numbers of the two rows.
    low, high : float
        Ends of the segment.
    eta : float
        Curvature K_ii + K_jj - 2 K_ij.
    alpha_i, alpha_j : float
        The new multipliers.
    b : float
        Intercept after the step.
    objective : float
        W after the step.
    """

    i: int
    j: int
    low: float
    high: float
    eta: float
    alpha_i: float
    alpha_j: float
    b: float
    objective: float


class SmoTrace(NamedTuple):
    """Result of `smo`: multipliers, offset, steps, whether the conditions hold to `tol`.

    Parameters
    ----------
    alpha : ndarray
        Multipliers of the rows.
    b : float
        Intercept.
    steps : list of PairStep
        The steps.
    converged : bool
        Whether the conditions hold to `tol`.
    """

    alpha: np.ndarray
    b: float
    steps: list[PairStep]
    converged: bool


def box_ends(y1: float, y2: float, a1: float, a2: float, C: float) -> tuple[float, float]:
    """Return L and H: the ends for alpha_2 of the segment in which the line meets the box.

    Parameters
    ----------
    y1, y2 : float
        Labels of the two rows.
    a1, a2 : float
        Their multipliers.
    C : float
        Largest multiplier: the price of crossing the margin.

    Returns
    -------
    tuple of float
        L and H.

    Examples
    --------
    >>> box_ends(1.0, -1.0, 0.2, 0.5, 1.0), box_ends(1.0, 1.0, 0.7, 0.5, 1.0)
    ((0.3, 1.0), (0.19999999999999996, 1.0))
    """
    if y1 != y2:
        return max(0.0, a2 - a1), min(C, C + a2 - a1)
    return max(0.0, a1 + a2 - C), min(C, a1 + a2)


def dual_objective(K: np.ndarray, y: np.ndarray, alpha: np.ndarray) -> float:
    """Return W(alpha), the dual in minimising form.

    Parameters
    ----------
    K : ndarray
        Gram matrix of the rows.
    y : ndarray
        Labels -1 and +1.
    alpha : ndarray
        Multipliers of the rows.

    Returns
    -------
    float
        W(alpha).
    """
    beta = alpha * y
    return float(0.5 * beta @ K @ beta - alpha.sum())


def pair_step(
    K: np.ndarray, y: np.ndarray, alpha: np.ndarray, errors: np.ndarray, i: int, j: int, C: float
) -> tuple[float, float, float, float, float]:
    """Return new alpha_i and alpha_j with L, H and eta for the pair (i, j); errors are E_k = g(x_k) - y_k.

    The free minimum is alpha_j + y_j (E_i - E_j) / eta, eta = K_ii + K_jj - 2 K_ij. Where eta <= 0 (equal
    points, or an
    indefinite kernel) W is compared at the two ends.

    Parameters
    ----------
    K : ndarray
        Gram matrix of the rows.
    y : ndarray
        Labels -1 and +1.
    alpha : ndarray
        Multipliers of the rows.
    errors : ndarray
        g(x) - y of each row.
    i, j : int
        Numbers of the two rows.
    C : float
        Largest multiplier: the price of crossing the margin.

    Returns
    -------
    tuple of float
        New alpha_i and alpha_j, L, H and eta.
    """
    low, high = box_ends(y[i], y[j], alpha[i], alpha[j], C)
    eta = float(K[i, i] + K[j, j] - 2 * K[i, j])
    if eta > 1e-12:
        new_j = float(np.clip(alpha[j] + y[j] * (errors[i] - errors[j]) / eta, low, high))
    else:
        ends = [end for end in (low, high) if np.isfinite(end)]
        change = [_change(K, y, alpha, errors, i, j, end) for end in ends]
        best = int(np.argmin(change))
        new_j = ends[best] if change[best] < -1e-15 else float(alpha[j])
    new_i = float(alpha[i] + y[i] * y[j] * (alpha[j] - new_j))
    return _on_bound(new_i, C), _on_bound(new_j, C), low, high, eta


def _on_bound(a: float, C: float) -> float:
    """Return a, or the bound from which only rounding separates it."""
    room = 1e-13 * (C if np.isfinite(C) else 1.0)
    return 0.0 if a <= room else C if a >= C - room else a


def _change(K: np.ndarray, y: np.ndarray, alpha: np.ndarray, errors: np.ndarray, i: int, j: int, new_j: float) -> float:
    """Return how much W changes when alpha_j becomes new_j along the line."""
    t = y[j] * (new_j - alpha[j])
    eta = K[i, i] + K[j, j] - 2 * K[i, j]
    return float(0.5 * eta * t * t - t * (errors[i] - errors[j]))


def offset_after(
    K: np.ndarray,
    y: np.ndarray,
    b: float,
    errors: np.ndarray,
    pair: tuple[int, int],
    change: tuple,
    inside: tuple,
) -> float:
    """Return b after a step: from whichever of the two is free, else the mean of both values.

    Parameters
    ----------
    K : ndarray
        Gram matrix of the rows.
    y : ndarray
        Labels -1 and +1.
    b : float
        Intercept.
    errors : ndarray
        g(x) - y of each row.
    pair : tuple of int
        Numbers of the two rows.
    change : tuple
        Changes of the two multipliers.
    inside : tuple
        Whether each new multiplier lies inside the box.

    Returns
    -------
    float
        The new intercept.
    """
    (i, j), (di, dj) = pair, change
    b1 = b - errors[i] - y[i] * K[i, i] * di - y[j] * K[i, j] * dj
    b2 = b - errors[j] - y[i] * K[i, j] * di - y[j] * K[j, j] * dj
    if inside[0]:
        return float(b1)
    return float(b2) if inside[1] else float(0.5 * (b1 + b2))


def violations(y: np.ndarray, alpha: np.ndarray, errors: np.ndarray, C: float) -> np.ndarray:
    """Return by how much each sample breaks its condition: y g >= 1 where alpha = 0, = 1 inside, <= 1
    where alpha = C.

    Parameters
    ----------
    y : ndarray
        Labels -1 and +1.
    alpha : ndarray
        Multipliers of the rows.
    errors : ndarray
        g(x) - y of each row.
    C : float
        Largest multiplier: the price of crossing the margin.

    Returns
    -------
    ndarray
        Violation of each row.
    """
    r = y * errors  # y g(x) - 1
    return np.maximum(np.where(alpha < C, -r, 0.0), np.where(alpha > 0, r, 0.0))


def smo(
    K: np.ndarray,
    y: np.ndarray,
    C: float = 1.0,
    *,
    second: str = "change",
    tol: float = 1e-3,
    max_steps: int = 100_000,
    seed: int = 0,
) -> SmoTrace:
    """Solve the dual pair by pair; C = infinity is the hard margin.

    The first variable is the one that violates its condition most. `second` chooses its partner: "change" (largest
    |E_1 - E_2|, the fastest change), "distance" (the sample farthest from the first in feature space) or "random".
    A partner that allows no progress is passed over for the next.

    Parameters
    ----------
    K : ndarray
        Gram matrix of the rows.
    y : ndarray
        Labels -1 and +1.
    C : float, default=1.0
        Largest multiplier: the price of crossing the margin.
    second : str, default="change"
        "change", "distance" or "random": choice of the second variable.
    tol : float, default=0.001
        Violation that is tolerated.
    max_steps : int, default=100000
        Largest number of steps.
    seed : int, default=0
        Seed of random choices.

    Returns
    -------
    SmoTrace
        Multipliers, intercept and steps.

    Examples
    --------
    >>> X = np.array([[3.0, 3.0], [4.0, 3.0], [1.0, 1.0]])
    >>> trace = smo(X @ X.T, np.array([1.0, 1.0, -1.0]), C=np.inf, tol=1e-9)
    >>> np.round(trace.alpha, 6).tolist(), round(trace.b, 6)
    ([0.25, 0.0, 0.25], -2.0)
    """
    if second not in ("change", "distance", "random"):
        raise ValueError(f"smo: second must be 'change', 'distance' or 'random'; got {second!r}.")
    K, y = np.asarray(K, dtype=np.float64), np.asarray(y, dtype=np.float64)
    random = np.random.default_rng(seed)
    alpha, b = np.zeros(len(y)), 0.0
    steps: list[PairStep] = []
    errors = -y.copy()
    while len(steps) < max_steps:
        broken = violations(y, alpha, errors, C)
        if broken.max() <= tol:
            return SmoTrace(alpha, b, steps, True)
        step = _next_step(K, y, alpha, b, errors, C, second, random, broken, tol)
        if step is None:  # alpha cannot be improved; the offset of the last pair may still be off
            b, errors = _averaged_offset(K, y, alpha, C)
            return SmoTrace(alpha, b, steps, bool(violations(y, alpha, errors, C).max() <= tol))
        errors = errors + _error_change(K, y, alpha, step, b)
        b = step.b
        alpha[step.i], alpha[step.j] = step.alpha_i, step.alpha_j
        steps.append(step._replace(objective=dual_objective(K, y, alpha)))
    return SmoTrace(alpha, b, steps, False)


def _averaged_offset(K: np.ndarray, y: np.ndarray, alpha: np.ndarray, C: float) -> tuple[float, np.ndarray]:
    """Return b as the mean of y_s - sum_i alpha_i y_i K_is over the free support vectors, and the errors
    with it."""
    g = K @ (alpha * y)
    room = 1e-8 * (C if np.isfinite(C) else float(alpha.max()))
    free = (alpha > room) & (alpha < C - room)
    b = float((y - g)[free].mean()) if free.any() else 0.0
    return b, g + b - y


def _error_change(K: np.ndarray, y: np.ndarray, alpha: np.ndarray, step: PairStep, b: float) -> np.ndarray:
    di, dj = step.alpha_i - alpha[step.i], step.alpha_j - alpha[step.j]
    return y[step.i] * di * K[step.i] + y[step.j] * dj * K[step.j] + (step.b - b)


def _next_step(K, y, alpha, b, errors, C, second, random, broken, tol) -> PairStep | None:
    """Return the first step that makes progress, trying violators and partners in the order of the rules."""
    for i in np.argsort(-broken, kind="stable"):
        if broken[i] <= tol:
            return None
        order = {
            "change": lambda k: np.argsort(-np.abs(errors - errors[k]), kind="stable"),
            "distance": lambda k: np.argsort(-(np.diag(K) - 2 * K[k]), kind="stable"),
            "random": lambda k: random.permutation(len(y)),
        }[second](i)
        for j in order:
            if j == i:
                continue
            new_i, new_j, low, high, eta = pair_step(K, y, alpha, errors, i, j, C)
            if abs(new_j - alpha[j]) <= 1e-12 * (1.0 + alpha[j]):
                continue
            inside = (0 < new_i < C, 0 < new_j < C)
            new_b = offset_after(K, y, b, errors, (i, j), (new_i - alpha[i], new_j - alpha[j]), inside)
            return PairStep(int(i), int(j), low, high, eta, new_i, new_j, new_b, np.nan)
    return None
