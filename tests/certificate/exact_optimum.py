"""Duality gaps, gradients and the true distance to the optimum in exact arithmetic, as oracles."""

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from tests.certificate.exact import DIGITS, codes, combine, decimal, rational, row_costs, scores, solve
from tests.certificate.forge import Case, model
from tests.certificate.optimum_cases import logistic_fit


def ridge_gap(case: Case) -> Fraction:
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


def generic_gap(case: Case) -> Fraction:
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


def logistic_gap(case: Case) -> Decimal:
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


def multinomial_gap(case: Case) -> Decimal:
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


def ridge_excess(case: Case) -> Fraction:
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


def logistic_excess(case: Case) -> Decimal:
    """P(model) - P(the forge's optimum), to 60 digits: at most the true distance to the minimum."""
    params, y = case.claim.params, np.array(codes(case))
    c = params["C"] * (np.ones(len(y)) if case.weight is None else case.weight)
    c = c * (1.0 if params["class_weight"] is None else np.array(params["class_weight"])[y])
    W, b = logistic_fit(case.X, y, c, params["intercept"], len(case.model.classes_))
    return objective(case) - objective(replace(case, model=model(W, b, case.model.classes_)))


def objective(case: Case) -> Decimal:
    params = case.claim.params
    with localcontext(prec=DIGITS):
        f = [[decimal(a) for a in row] for row in scores(case)]
        size = sum(decimal(a) ** 2 for row in rational(np.atleast_2d(case.model.coef_)) for a in row)
        c = [decimal(a) for a in row_costs(case, params["C"], params["class_weight"])]
        if len(case.model.classes_) == 2:
            f = [[Decimal(0), g[0]] for g in f]
        losses = [sum((a.exp() for a in g), Decimal(0)).ln() - g[k] for g, k in zip(f, codes(case))]
        return sum(a * b for a, b in zip(c, losses)) + size / 2


def gradient_norm(case: Case) -> Decimal:
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
