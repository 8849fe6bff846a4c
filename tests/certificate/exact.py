"""The statements again in exact arithmetic, as oracles: rationals where there is no logarithm, else 60
digits.

Nothing here is fast or rounds; it is for two dozen rows. `is_true(case)` decides the last claim of a case.
"""

import bisect
import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import linprog

from tests.certificate import forge

DIGITS = 60


def rational(values: Any) -> list:
    return [rational(v) for v in values] if np.ndim(values) else Fraction(float(values))


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def scores(case: forge.Case, X: Any = None) -> list[list[Fraction]]:
    X = rational(case.X if X is None else X)
    W, b = rational(np.atleast_2d(case.model.coef_)), rational(np.atleast_1d(case.model.intercept_))
    b = b * len(W) if len(b) == 1 else b
    return [[sum((x * w for x, w in zip(row, weights)), bias) for weights, bias in zip(W, b)] for row in X]


def codes(case: forge.Case, y: Any = None) -> list[int]:
    names = case.model.classes_.tolist()
    return [names.index(label) for label in (case.y if y is None else y).tolist()]


def row_costs(case: forge.Case, scale: Any = 1, class_weight: Any = None) -> list[Fraction]:
    weight = rational(np.ones(len(case.X)) if case.weight is None else case.weight)
    if class_weight is None:
        return [Fraction(scale) * w for w in weight]
    return [Fraction(scale) * w * Fraction(class_weight[k]) for w, k in zip(weight, codes(case))]


def combine(case: forge.Case, theta: list) -> list:
    """Return X' theta for one dual vector."""
    columns = list(zip(*rational(case.X)))
    convert = decimal if isinstance(theta[0], Decimal) else (lambda value: value)
    return [sum((convert(x) * t for x, t in zip(column, theta)), type(theta[0])(0)) for column in columns]


# Gaps -------------------------------------------------------------------------------------------------------


def ridge_gap(case: forge.Case) -> Fraction:
    params, c = case.claim.params, row_costs(case, case.claim.params["C"])
    alpha, total = Fraction(params["penalty"]["L2"]), Fraction(0)
    f, W = scores(case), rational(np.atleast_2d(case.model.coef_))
    Y = rational(case.y.reshape(len(case.X), -1))
    for k, w in enumerate(W):
        r = [y[k] - s[k] for y, s in zip(Y, f)]
        mean = sum(a * b for a, b in zip(c, r)) / sum(c) if params["intercept"] else Fraction(0)
        v = combine(case, [a * (b - mean) for a, b in zip(c, r)])
        total += sum(c) * mean**2 / 2 + sum((a - alpha * b) ** 2 for a, b in zip(v, w)) / (2 * alpha)
    return total


def piecewise(name: str, y: Fraction, f: Fraction, tau: Fraction, params: dict) -> Fraction:
    """Loss + conjugate + tau f from their definitions, for losses without transcendental functions."""
    r, z, a = y - f, y * f, y * tau
    p = {key: Fraction(value) for key, value in params.items()}
    if name == "squared":
        return r**2 / 2 + tau**2 / 2 - tau * y + tau * f
    if name == "hinge":
        return max(Fraction(0), 1 - z) - a + tau * f
    if name == "squared-hinge":
        return max(Fraction(0), 1 - z) ** 2 - a + a**2 / 4 + tau * f
    if name == "huber":
        k = p["kappa"]
        return (r**2 / 2 if abs(r) <= k else k * abs(r) - k**2 / 2) + tau**2 / 2 - tau * y + tau * f
    if name == "quantile":
        return max(p["level"] * r, (p["level"] - 1) * r) - tau * y + tau * f
    if name == "epsilon-insensitive":
        return max(Fraction(0), abs(r) - p["epsilon"]) - tau * y + p["epsilon"] * abs(tau) + tau * f
    if name == "squared-epsilon-insensitive":
        e = p["epsilon"]
        return max(Fraction(0), abs(r) - e) ** 2 - tau * y + e * abs(tau) + tau**2 / 4 + tau * f
    raise KeyError(name)


def generic_gap(case: forge.Case) -> Fraction:
    """P - D at the repaired dual vector, as the difference of both objectives' parts, in rationals."""
    params, c = case.claim.params, row_costs(case, case.claim.params["C"], case.claim.params.get("class_weight"))
    name, theta = params["loss"], rational(case.claim.witness["theta"])
    labels = hasattr(case.model, "classes_")
    y = [Fraction(2 * k - 1) for k in codes(case)] if labels else rational(case.y)
    if params["intercept"]:
        up, down = sum(max(t, 0) for t in theta), sum(max(-t, 0) for t in theta)
        if name in ("squared", "squared-epsilon-insensitive"):
            theta = [t - (up - down) * a / sum(c) for t, a in zip(theta, c)]
        else:
            low = min(up, down)
            theta = [t * (low / up if t > 0 else low / down) if t else t for t in theta]
    w = rational(np.atleast_2d(case.model.coef_))[0]
    l1, l2 = (Fraction(params["penalty"].get(key, 0)) for key in ("L1", "L2"))
    v = combine(case, theta)
    if not l2 and max(map(abs, v)) > l1:
        theta = [t * l1 / max(map(abs, v)) for t in theta]
        v = combine(case, theta)
    conjugate = sum(max(Fraction(0), abs(a) - l1) ** 2 for a in v) / (2 * l2) if l2 else Fraction(0)
    penalty = sum(l1 * abs(a) + l2 * a * a / 2 for a in w) + conjugate - sum(a * b for a, b in zip(w, v))
    f = [s[0] for s in scores(case)]
    brackets = [a * piecewise(name, t, s, d / a, params["loss_params"]) for a, t, s, d in zip(c, y, f, theta) if a]
    return penalty + sum(brackets)


def logistic_gap(case: forge.Case) -> Decimal:
    params = case.claim.params
    with localcontext(prec=DIGITS):
        c = [decimal(a) for a in row_costs(case, params["C"], params["class_weight"])]
        sign = [2 * k - 1 for k in codes(case)]
        z = [s * decimal(f[0]) for s, f in zip(sign, scores(case))]
        p, rest = [1 / (1 + v.exp()) for v in z], [1 / (1 + (-v).exp()) for v in z]
        if params["intercept"]:
            up = sum(a * b for a, b, s in zip(c, p, sign) if s > 0)
            down = sum(a * b for a, b, s in zip(c, p, sign) if s < 0)
            shrink = {1: min(Decimal(1), down / up), -1: min(Decimal(1), up / down)}
            rest = [a + (1 - shrink[s]) * b for a, b, s in zip(rest, p, sign)]
            p = [a * shrink[s] for a, s in zip(p, sign)]
        kl = sum(a * (q * q.ln() + t * t.ln() + (1 + (-v).exp()).ln() + q * v) for a, q, t, v in zip(c, p, rest, z))
        v = combine(case, [a * q * s for a, q, s in zip(c, p, sign)])
        w = [decimal(a) for a in rational(np.atleast_2d(case.model.coef_))[0]]
        l2 = decimal(Fraction(params["penalty"]["L2"]))
        return kl + sum((a - l2 * b) ** 2 for a, b in zip(v, w)) / (2 * l2)


def multinomial_gap(case: forge.Case) -> Decimal:
    params, y = case.claim.params, codes(case)
    with localcontext(prec=DIGITS):
        c = [decimal(a) for a in row_costs(case, params["C"], params["class_weight"])]
        K, total = len(case.model.classes_), sum(c)
        s = [[decimal(a) for a in row] for row in scores(case)]
        norm = [sum((a.exp() for a in row), Decimal(0)).ln() for row in s]
        p = [[(a - n).exp() for a in row] for row, n in zip(s, norm)]
        if params["intercept"]:
            have = [sum(a * row[k] for a, row in zip(c, p)) for k in range(K)]
            want = [sum((a for a, label in zip(c, y) if label == k), Decimal(0)) for k in range(K)]
            t = min([Decimal(1), *(a / b for a, b in zip(want, have))])
            p = [[t * row[k] + (want[k] - t * have[k]) / total for k in range(K)] for row in p]
        gap = Decimal(0)
        for a, q, row, n in zip(c, p, s, norm):
            gap += a * sum((b * (b.ln() - v + n) for b, v in zip(q, row) if b > 0), Decimal(0))
        W = [[decimal(a) for a in row] for row in rational(case.model.coef_)]
        for k in range(K):
            v = combine(case, [a * ((label == k) - q[k]) for a, label, q in zip(c, y, p)])
            gap += sum((a - b) ** 2 for a, b in zip(v, W[k])) / 2
        return gap


# Objectives, for the true distance to the optimum -----------------------------------------------------------


def ridge_excess(case: forge.Case) -> Fraction:
    """P(model) - min P, exactly: g' H^-1 g / 2 with the gradient g and the Hessian H in (w, b)."""
    params, total = case.claim.params, Fraction(0)
    c = row_costs(case, params["C"])
    f, W = scores(case), rational(np.atleast_2d(case.model.coef_))
    Z = rational(np.hstack([case.X, np.ones((len(case.X), 1))]) if params["intercept"] else case.X)
    d = len(Z[0])
    alpha = [Fraction(params["penalty"]["L2"])] * case.X.shape[1] + [Fraction(0)] * (d - case.X.shape[1])
    H = [[sum((a * r[i] * r[j] for a, r in zip(c, Z)), alpha[i] * (i == j)) for j in range(d)] for i in range(d)]
    for k, y in enumerate(zip(*rational(case.y.reshape(len(case.X), -1)))):
        r = [a - s[k] for a, s in zip(y, f)]
        w = [*W[k], Fraction(0)]
        g = [sum((a * b * row[j] for a, b, row in zip(c, r, Z)), -alpha[j] * w[j]) for j in range(d)]
        total += sum(a * b for a, b in zip(g, solve(H, g))) / 2
    return total


def solve(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    rows = [[*row, b] for row, b in zip(matrix, right)]
    for j in range(len(rows)):
        at = next(i for i in range(j, len(rows)) if rows[i][j])
        rows[j], rows[at] = rows[at], rows[j]
        rows[j] = [v / rows[j][j] for v in rows[j]]
        for i in range(len(rows)):
            if i != j:
                rows[i] = [a - rows[i][j] * b for a, b in zip(rows[i], rows[j])]
    return [row[-1] for row in rows]


def logistic_excess(case: forge.Case) -> Decimal:
    """P(model) - P(the forge's optimum), to 60 digits: at most the true distance to the minimum."""
    params, y = case.claim.params, np.array(codes(case))
    c = params["C"] * (np.ones(len(y)) if case.weight is None else case.weight)
    c = c * (1.0 if params["class_weight"] is None else np.array(params["class_weight"])[y])
    W, b = forge.logistic_fit(case.X, y, c, params["intercept"], len(case.model.classes_))
    return objective(case) - objective(forge.replace(case, model=forge.model(W, b, case.model.classes_)))


def objective(case: forge.Case) -> Decimal:
    params = case.claim.params
    with localcontext(prec=DIGITS):
        f = [[decimal(a) for a in row] for row in scores(case)]
        size = sum(decimal(a) ** 2 for row in rational(np.atleast_2d(case.model.coef_)) for a in row)
        c = [decimal(a) for a in row_costs(case, params["C"], params["class_weight"])]
        if len(case.model.classes_) == 2:
            f = [[Decimal(0), g[0]] for g in f]
        losses = [sum((a.exp() for a in g), Decimal(0)).ln() - g[k] for g, k in zip(f, codes(case))]
        return sum(a * b for a, b in zip(c, losses)) + size / 2


# Counting and tails -----------------------------------------------------------------------------------------


def wrong_rows(case: forge.Case, X: Any, y: Any) -> int:
    """Errors in exact arithmetic; a score of zero and a tie are errors."""
    total = 0
    for row, label in zip(scores(case, X), codes(case, y)):
        if len(row) == 1:
            total += not (row[0] > 0 if label == 1 else row[0] < 0)
        else:
            total += not all(row[label] > other for k, other in enumerate(row) if k != label)
    return total


def named_rows(case: forge.Case, name: str) -> tuple[np.ndarray, np.ndarray]:
    if case.split is not None:
        rows = np.sort(case.split[name])
        return case.X[rows], case.y[rows]
    return (case.X, case.y) if name == "train" else case.holdout


def binomial_at_most(k: int, m: int, p: Fraction) -> Fraction:
    return sum((math.comb(m, j) * p**j * (1 - p) ** (m - j) for j in range(min(k, m) + 1)), Fraction(0))


def hypergeometric_at_most(k: int, total: int, marked: int, drawn: int) -> Fraction:
    ways = sum(math.comb(marked, j) * math.comb(total - marked, drawn - j) for j in range(min(k, drawn) + 1))
    return Fraction(ways, math.comb(total, drawn))


def limit_holds(case: forge.Case, name: str, share: Fraction) -> bool:
    """Is the value a Clopper-Pearson limit of the exact count at delta * share?"""
    X, y = named_rows(case, name)
    k, m, p = wrong_rows(case, X, y), len(X), Fraction(case.claim.value)
    level = Fraction(case.claim.delta) * share
    if case.claim.direction == "upper":
        return p == 1 or (p > 0 and k < m and binomial_at_most(k, m, p) <= level)
    return p == 0 or (p < 1 and k > 0 and 1 - binomial_at_most(k - 1, m, p) <= level)


def vc_holds(case: forge.Case) -> bool:
    """Is the value at least the exact ghost-sample bound at the exact count? The growth function is
    recomputed."""
    params, n = case.claim.params, len(case.X)
    k, p = wrong_rows(case, case.X, case.y), Fraction(case.claim.value)
    if p == 1:
        return True
    d, bias = case.X.shape[1], bool(np.any(case.model.intercept_)) or params["class"]["bias"]
    ways = forge.growth({"class": "halfspaces", "d": max(d, params["class"]["d"]), "bias": bias}, 5 * n)
    level = Fraction(case.claim.delta) / 2 / ways
    K = bisect.bisect_left(range(5 * n + 1), True, k + 1, key=lambda K: hypergeometric_at_most(k, 5 * n, K, n) <= level)
    return 5 * n >= K and K - k <= 4 * n and 1 - binomial_at_most(K - k - 1, 4 * n, p) >= Fraction(1, 2)


# Geometry ---------------------------------------------------------------------------------------------------


def columns(case: forge.Case, augmented: bool) -> np.ndarray:
    return np.hstack([case.X, np.ones((len(case.X), 1))]) if augmented else case.X


def best_margin(case: forge.Case, intercept: Any) -> float:
    """The largest margin, by the quadratic programme of the forge (about 1e-7)."""
    Z = columns(case, intercept == "augmented")
    side = np.where(np.array(codes(case)) == 1, 1.0, -1.0)
    w, _ = forge.hard_margin(Z, side, intercept is True)
    values = Z @ w
    least = (side * values)[side > 0].min(), (side * values)[side < 0].min()
    return float((sum(least) / 2 if intercept is True else min(least)) / np.linalg.norm(w))


def separable(X: np.ndarray, side: np.ndarray, intercept: bool) -> bool:
    """Is there a strict separator, by a linear programme?"""
    Z = np.hstack([X, np.ones((len(X), 1))]) if intercept else X
    A = np.hstack([-side[:, None] * Z, np.ones((len(X), 1))])
    found = linprog([*([0] * Z.shape[1]), -1], A, np.zeros(len(X)), bounds=[(-1, 1)] * Z.shape[1] + [(None, 1)])
    return found.status == 0 and -found.fun > 1e-9


def fewest_errors(X: np.ndarray, side: np.ndarray) -> int:
    """Least number of rows to remove until an affine hyperplane separates the rest."""
    for k in range(len(X) + 1):
        for gone in itertools.combinations(range(len(X)), k):
            keep = np.setdiff1d(np.arange(len(X)), gone)
            if len(set(side[keep])) < 2 or separable(X[keep], side[keep], True):
                return k
    return len(X)


# The truth of a whole claim ---------------------------------------------------------------------------------


def truth(case: forge.Case) -> bool:
    """Is the last claim true (for gaps: proved at its number), decided without the checker?"""
    return _TRUTHS[case.claim.template](case)


def at_most(case: forge.Case, quantity: Fraction | Decimal, slip: float = 1e-9) -> bool:
    """Slip covers the choice of dual floats, where the checker's dual vector is not the exact one."""
    return Fraction(quantity) * (1 - Fraction(slip)) <= Fraction(case.claim.value)


def _identity(case: forge.Case) -> bool:
    return case.claim.value == len(named_rows(case, case.claim.params["set"])[0])


def _errors(case: forge.Case) -> bool:
    params = case.claim.params
    X, y = named_rows(case, params["set"])
    return params["rows"] == len(X) and params["low"] <= wrong_rows(case, X, y) <= case.claim.value


def _floor(case: forge.Case) -> bool:
    _, group = np.unique(case.X, axis=0, return_inverse=True)
    y = np.array(codes(case))
    floor = sum(int(np.sum(group == g)) - int(np.bincount(y[group == g]).max()) for g in np.unique(group))
    return case.claim.value <= floor and case.claim.params["rows"] == len(case.X)


def _gap(case: forge.Case) -> bool:
    loss = case.claim.params["loss"]
    if loss == "squared":
        return at_most(case, ridge_excess(case), 0.0)
    return at_most(case, logistic_gap(case)) if loss == "logistic" else _generic(case)


def _generic(case: forge.Case) -> bool:
    theta, y = case.claim.witness["theta"], 2 * np.array(codes(case)) - 1
    top = case.claim.params["C"] * (np.ones(len(y)) if case.weight is None else case.weight)
    return bool(np.all((theta * y >= 0) & (theta * y <= top))) and at_most(case, generic_gap(case), 0.0)


def _suboptimal(case: forge.Case) -> bool:
    params = case.claim.params
    if params["form"] == "a":
        as_ridge = case.with_claim(params=forge.gap_params("squared", 1.0, 0.0, params["intercept"]))
        return at_most(case, ridge_excess(as_ridge), 0.0)
    return at_most(case, gradient_norm(case) * Decimal(params["radius"]), 1e-12)


def gradient_norm(case: forge.Case) -> Decimal:
    params = case.claim.params
    with localcontext(prec=DIGITS):
        f = [[decimal(a) for a in row] for row in scores(case)]
        if params["objective"] == "squared":
            return Decimal("inf")  # no such mutant is needed
        c = [decimal(a) for a in row_costs(case, 1, params.get("class_weight"))]
        f = [[Decimal(0), row[0]] for row in f] if len(f[0]) == 1 else f
        total = Decimal(0)
        for k in range(1 if len(case.model.classes_) == 2 else 0, len(case.model.classes_)):
            p = [row[k].exp() / sum((a.exp() for a in row), Decimal(0)) for row in f]
            theta = [a * ((label == k) - q) for a, label, q in zip(c, codes(case), p)]
            total += sum(v * v for v in combine(case, theta)) + (sum(theta) ** 2 if params["intercept"] else 0)
        return total.sqrt()


def _margin(case: forge.Case) -> bool:
    params, witness = case.claim.params, case.claim.witness
    intercept, value = params["intercept"], Fraction(case.claim.value)
    Z = rational(columns(case, intercept == "augmented"))
    side = [2 * k - 1 for k in codes(case)]
    if max(sum(x * x for x in row) for row in Z) > Fraction(params["radius"]) ** 2:
        return False
    if case.claim.direction == "lower":
        w = rational(witness["w"])
        values = [s * sum(a * b for a, b in zip(row, w)) for s, row in zip(side, Z)]
        up, down = (min(v for v, s in zip(values, side) if s == sign) for sign in (1, -1))
        least = (up + down) / 2 if intercept is True else min(up, down)
        return least > 0 and value**2 * sum(a * a for a in w) <= least**2
    parts = [("positive", 1), ("negative", -1)] if intercept is True else [("rows", 0)]
    point = [Fraction(0)] * len(Z[0])
    for name, sign in parts:
        rows, weight = (
            witness[name].tolist(),
            rational(witness["weight" if name == "rows" else f"{name}_weight"]),
        )
        if min(weight) < 0 or (sign and any(side[i] != sign for i in rows)):
            return False
        for i, a in zip(rows, weight):
            point = [p + a / sum(weight) * side[i] * x for p, x in zip(point, Z[i])]
    return sum(p * p for p in point) <= value**2 * (4 if intercept is True else 1)


def _inseparable(case: forge.Case) -> bool:
    rows, sets = case.claim.witness["rows"], case.claim.witness["set"]
    side = np.where(np.array(codes(case)) == case.claim.params.get("class", 1), 1.0, -1.0)
    each = [rows[sets == name] for name in np.unique(sets)]
    apart = len(set(rows.tolist())) == len(rows)
    hopeless = all(not separable(case.X[r], side[r], case.claim.params["intercept"]) for r in each)
    return apart and hopeless and case.claim.value <= len(each)


def _enclosure(case: forge.Case) -> bool:
    params, gap = case.claim.params, logistic_gap(forge.replace(case, claims=case.claims[:1]))
    value = Fraction(case.claim.value)
    f, X = scores(case), rational(case.X)
    fixed = sum(row[0] ** 2 > value**2 * sum(x * x for x in xs) for row, xs in zip(f, X))
    return (
        params["strength"] <= 1
        and 2 * Fraction(gap) * (1 - Fraction(1e-9)) <= value**2 * Fraction(params["strength"])
        and params.get("fixed_rows", 0) <= fixed
    )


def _mistakes(case: forge.Case) -> bool:
    params, witness = case.claim.params, case.claim.witness
    Z, w = columns(case, params["intercept"]), rational(witness["separator"])
    side = [2 * k - 1 for k in codes(case)]
    radius, margin = Fraction(params["radius"]), Fraction(params["margin"])
    reach = max(sum(x * x for x in row) for row in rational(Z))
    least = min(s * sum(a * b for a, b in zip(row, w)) for s, row in zip(side, rational(Z)))
    path = np.zeros(Z.shape[1])
    for i in witness["sequence"].tolist():
        if side[i] * (Z[i] @ path) > 1e-12:
            return False
        path = path + (params["rate"] * side[i]) * Z[i]
    found = np.append(case.model.coef_[0], case.model.intercept_)[: len(path)]
    return (
        reach <= radius**2
        and least > 0
        and least**2 >= margin**2 * sum(a * a for a in w)
        and np.array_equal(path, found)
        and params["updates"] == len(witness["sequence"])
        and (radius / margin) ** 2 <= Fraction(case.claim.value)
    )


def gaussian_distances(case: forge.Case) -> tuple[Fraction, Decimal]:
    """The largest square of a distance between a row of coefficients and the exact discriminant, in scaled columns, and
    the largest error of a score at the centre; the moments are recomputed in rationals."""
    params, scale = case.claim.params, [Fraction(2) ** int(e) for e in case.claim.witness["exponents"][0]]
    means, S = exact_moments(case)
    counts = [codes(case).count(k) for k in range(len(means))]
    priors = [Fraction(c, len(case.X)) for c in counts] if params["priors"] == "rows" else rational(params["priors"])
    priors = [p / sum(priors) for p in priors]
    centre = [sum(p * m[j] for p, m in zip(priors, means)) for j in range(len(S))]
    solved = [solve(S, [a - b for a, b in zip(m, centre)]) for m in means]
    heights = [sum(u * (a - b) for u, a, b in zip(row, m, centre)) / 2 for row, m in zip(solved, means)]
    logs = [decimal(p).ln() for p in priors]
    if len(np.atleast_2d(case.model.coef_)) == 1:
        solved, heights = [[b - a for a, b in zip(*solved)]], [heights[1] - heights[0]]
        logs = [logs[1] - logs[0]]
    W, b = rational(np.atleast_2d(case.model.coef_)), rational(case.model.intercept_)
    apart = max(sum(((a - u) / s) ** 2 for a, u, s in zip(w, row, scale)) for w, row in zip(W, solved))
    scores = [sum(a * c for a, c in zip(w, centre)) + bias for w, bias in zip(W, b)]
    return apart, max(abs(decimal(f + h) - log) for f, h, log in zip(scores, heights, logs))


def exact_moments(case: forge.Case) -> tuple[list, list]:
    """Class means and the shared covariance with divisor n, shrunk as the claim declares, in rationals."""
    params, X, y = case.claim.params, rational(case.X), codes(case)
    K, d, n, s = len(case.model.classes_), case.X.shape[1], len(case.X), Fraction(case.claim.params["shrinkage"])
    own = [[x for x, k in zip(X, y) if k == code] for code in range(K)]
    means = [[sum(column) / len(rows) for column in zip(*rows)] for rows in own]
    share = [Fraction(1, n) if params["covariance"] == "pooled" else Fraction(1, K * len(rows)) for rows in own]
    S = [
        [
            sum(share[k] * sum((x[i] - means[k][i]) * (x[j] - means[k][j]) for x in own[k]) for k in range(K))
            for j in range(d)
        ]
        for i in range(d)
    ]
    middle = sum(S[i][i] for i in range(d)) / d
    return means, [[(1 - s) * S[i][j] + (s * middle if i == j else 0) for j in range(d)] for i in range(d)]


def _gaussian(case: forge.Case) -> bool:
    params, witness = case.claim.params, case.claim.witness
    scale = [Fraction(2) ** int(e) for e in witness["exponents"][0]]
    means, S = exact_moments(case)
    d, error, value = len(S), Fraction(params["error"]), Fraction(case.claim.value)
    listed, matrix = rational(witness["means"]), rational(witness["covariance"][0])
    close = all(abs(a - b) * s <= error for row, m in zip(listed, means) for a, b, s in zip(row, m, scale))
    pairs = [(i, j) for i in range(d) for j in range(d)]
    alike = all(abs(matrix[i][j] - S[i][j]) * scale[i] * scale[j] <= error for i, j in pairs)
    fitting = all(Fraction(1, 64) <= S[i][i] * scale[i] ** 2 <= 64 for i in range(d))
    with localcontext() as context:
        context.prec = DIGITS
        apart, off = gaussian_distances(case)
        return close and alike and fitting and apart <= value**2 and off <= decimal(value)


def _counted(case: forge.Case, name: str, share: Fraction) -> bool:
    X, y = named_rows(case, name)
    params = case.claim.params
    wrong = wrong_rows(case, X, y)
    stated = params["errors"] >= wrong if case.claim.direction == "upper" else params["errors"] <= wrong
    return stated and params["rows"] == len(X) and limit_holds(case, name, share)


def _vc(case: forge.Case) -> bool:
    params = case.claim.params
    stated = params["rows"] == len(case.X) and params["errors"] >= wrong_rows(case, case.X, case.y)
    return stated and params["M"] == 4 * len(case.X) and params["q"] == 0.5 and vc_holds(case)


def _clipped(case: forge.Case) -> bool:
    params, (X, y) = case.claim.params, named_rows(case, "holdout")
    clip, m = Fraction(params["clip"]), len(X)
    losses = [min(abs(Fraction(float(v)) - row[0]), clip) for v, row in zip(y, scores(case, X))]
    mean = sum(losses) / m
    with localcontext(prec=DIGITS):
        value, delta = decimal(Fraction(case.claim.value)), decimal(Fraction(case.claim.delta))
        variance, log = decimal(sum((v - mean) ** 2 for v in losses) / (m - 1)), (2 / delta).ln()
        holds = value >= decimal(mean) + (2 * variance * log / m).sqrt() + 7 * decimal(clip) * log / (3 * (m - 1))
    return holds and params["rows"] == m


_TRUTHS = {
    "D01/1": _identity,
    "D02/1": _errors,
    "D03/1": _floor,
    "D04/1": _gap,
    "D05/1": _suboptimal,
    "D09/1": lambda case: at_most(case, multinomial_gap(case)),
    "D13/1": _margin,
    "D14/1": _inseparable,
    "D15/1": _enclosure,
    "D17/1": _mistakes,
    "D19/3": _gaussian,
    "P01/1": lambda case: _counted(case, "holdout", Fraction(1)),
    "P04/1": _clipped,
    "P07/1": lambda case: _counted(case, "holdout", Fraction(1, case.claim.params["compared"])),
    "P10/1": _vc,
}
