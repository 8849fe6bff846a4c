"""The truth of a whole claim, decided without the checker: `truth(case)` for the last claim of a case."""

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from tests.certificate.exact import DIGITS, codes, decimal, rational, scores, solve
from tests.certificate.exact_counts import limit_holds, named_rows, vc_holds, wrong_rows
from tests.certificate.exact_geometry import columns, separable
from tests.certificate.exact_optimum import generic_gap, gradient_norm, logistic_gap, multinomial_gap, ridge_excess
from tests.certificate.forge import Case, gap_params


def truth(case: Case) -> bool:
    """Is the last claim true (for gaps: proved at its number), decided without the checker?"""
    return _TRUTHS[case.claim.name](case)


def at_most(case: Case, quantity: Fraction | Decimal, slip: float = 1e-9) -> bool:
    """Slip covers the choice of dual floats, where the checker's dual vector is not the exact one."""
    return Fraction(quantity) * (1 - Fraction(slip)) <= Fraction(case.claim.value)


def _identity(case: Case) -> bool:
    return case.claim.value == len(named_rows(case, case.claim.params["set"])[0])


def _errors(case: Case) -> bool:
    params = case.claim.params
    X, y = named_rows(case, params["set"])
    return params["rows"] == len(X) and params["low"] <= wrong_rows(case, X, y) <= case.claim.value


def _floor(case: Case) -> bool:
    _, group = np.unique(case.X, axis=0, return_inverse=True)
    y = np.array(codes(case))
    floor = sum(int(np.sum(group == g)) - int(np.bincount(y[group == g]).max()) for g in np.unique(group))
    return case.claim.value <= floor and case.claim.params["rows"] == len(case.X)


def _gap(case: Case) -> bool:
    loss = case.claim.params["loss"]
    if loss == "squared":
        return at_most(case, ridge_excess(case), 0.0)
    return at_most(case, logistic_gap(case)) if loss == "logistic" else _generic(case)


def _generic(case: Case) -> bool:
    theta, y = case.claim.witness["theta"], 2 * np.array(codes(case)) - 1
    top = case.claim.params["C"] * (np.ones(len(y)) if case.weight is None else case.weight)
    return bool(np.all((theta * y >= 0) & (theta * y <= top))) and at_most(case, generic_gap(case), 0.0)


def _suboptimal(case: Case) -> bool:
    params = case.claim.params
    if params["form"] == "a":
        as_ridge = case.with_claim(params=gap_params("squared", 1.0, 0.0, params["intercept"]))
        return at_most(case, ridge_excess(as_ridge), 0.0)
    return at_most(case, gradient_norm(case) * Decimal(params["radius"]), 1e-12)


def _margin(case: Case) -> bool:
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


def _inseparable(case: Case) -> bool:
    rows, sets = case.claim.witness["rows"], case.claim.witness["set"]
    side = np.where(np.array(codes(case)) == case.claim.params.get("class", 1), 1.0, -1.0)
    each = [rows[sets == name] for name in np.unique(sets)]
    apart = len(set(rows.tolist())) == len(rows)
    hopeless = all(not separable(case.X[r], side[r], case.claim.params["intercept"]) for r in each)
    return apart and hopeless and case.claim.value <= len(each)


def _enclosure(case: Case) -> bool:
    params, gap = case.claim.params, logistic_gap(replace(case, claims=case.claims[:1]))
    value = Fraction(case.claim.value)
    f, X = scores(case), rational(case.X)
    fixed = sum(row[0] ** 2 > value**2 * sum(x * x for x in xs) for row, xs in zip(f, X))
    return (
        params["strength"] <= 1
        and 2 * Fraction(gap) * (1 - Fraction(1e-9)) <= value**2 * Fraction(params["strength"])
        and params.get("fixed_rows", 0) <= fixed
    )


def _mistakes(case: Case) -> bool:
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


def gaussian_distances(case: Case) -> tuple[Fraction, Decimal]:
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


def exact_moments(case: Case) -> tuple[list, list]:
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


def _gaussian(case: Case) -> bool:
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


def _counted(case: Case, name: str, share: Fraction) -> bool:
    X, y = named_rows(case, name)
    params = case.claim.params
    wrong = wrong_rows(case, X, y)
    stated = params["errors"] >= wrong if case.claim.direction == "upper" else params["errors"] <= wrong
    return stated and params["rows"] == len(X) and limit_holds(case, name, share)


def _vc(case: Case) -> bool:
    params = case.claim.params
    stated = params["rows"] == len(case.X) and params["errors"] >= wrong_rows(case, case.X, case.y)
    return stated and params["M"] == 4 * len(case.X) and params["q"] == 0.5 and vc_holds(case)


def _clipped(case: Case) -> bool:
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
    "data.identity": _identity,
    "train.errors": _errors,
    "train.error-floor": _floor,
    "duality-gap": _gap,
    "suboptimality": _suboptimal,
    "multinomial.gap": lambda case: at_most(case, multinomial_gap(case)),
    "margin.bounds": _margin,
    "inseparability": _inseparable,
    "solution.enclosure": _enclosure,
    "perceptron.mistakes": _mistakes,
    "gaussian.mle": _gaussian,
    "holdout.binomial": lambda case: _counted(case, "holdout", Fraction(1)),
    "holdout.empirical-bernstein": _clipped,
    "holdout.selection": lambda case: _counted(case, "holdout", Fraction(1, case.claim.params["compared"])),
    "vc": _vc,
}
