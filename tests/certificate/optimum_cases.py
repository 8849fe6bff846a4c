"""Honest claims on how far a model is from its optimum: fits, duality gaps and gradients by formulas of this file."""

import math
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from tests.certificate.forge import Case, claim, draw, gap_params, labels, model, publish, weights


def ridge_case(seed: int) -> Case:
    X = draw(seed)
    rng = np.random.default_rng([seed, 3])
    y = X @ rng.standard_normal((X.shape[1], 2)) + rng.standard_normal((len(X), 2))
    if seed % 2:
        y = y[:, 0]
    weight, alpha, intercept = weights(seed, len(X)), float(10.0 ** rng.integers(-2, 3)), bool(seed % 4 < 2)
    W, b = ridge_fit(X, y, weight, alpha, intercept)
    W = W * (1 + 10.0 ** -int(rng.integers(3, 17)) * rng.standard_normal(W.shape))
    gap = float(ridge_gap(X, y, weight, alpha, intercept, W, b))
    params = gap_params("squared", 1.0, alpha, intercept)
    return Case((claim("duality-gap", publish(gap) + 1e-9, params=params),), model(W, b), X, y, weight).seal()


def ridge_fit(X, y, weight, alpha, intercept):
    s = np.ones(len(X)) if weight is None else weight
    mean = (s @ X) / s.sum() if intercept else np.zeros(X.shape[1])
    mean_y = (s @ y) / s.sum() if intercept else 0.0 * y[0]
    A = X - mean
    W = np.linalg.solve(A.T @ (A * s[:, None]) + alpha * np.eye(X.shape[1]), A.T @ ((y - mean_y).T * s).T)
    return np.ascontiguousarray(W.T), np.atleast_1d(mean_y - mean @ W)


def ridge_gap(X, y, weight, alpha, intercept, W, b):
    s = np.ones(len(X)) if weight is None else weight
    r = y.reshape(len(X), -1) - (X @ np.atleast_2d(W).T + b)
    mean = (s @ r) / s.sum() if intercept else 0 * r[0]
    v = X.T @ ((r - mean) * s[:, None])
    return (0.5 * s.sum() * mean**2).sum() + ((v - alpha * np.atleast_2d(W).T) ** 2).sum() / (2 * alpha)


def logistic_case(seed: int, classes: int = 2) -> Case:
    X = draw(seed)
    rng = np.random.default_rng([seed, 4])
    y = labels(seed, X, classes) if len(X) >= classes else np.arange(len(X)) % classes
    weight, C, intercept = weights(seed, len(X)), float(10.0 ** rng.integers(-2, 2)), bool(seed % 4 < 2)
    if weight is not None:
        weight[:classes] = 1.0
    class_weight = [float(v) for v in rng.choice([0.5, 1.0, 3.0], size=classes)] if seed % 5 == 0 else None
    c = (
        C
        * (np.ones(len(X)) if weight is None else weight)
        * (1.0 if class_weight is None else np.array(class_weight)[y])
    )
    W, b = logistic_fit(X, y, c, intercept, classes)
    W = W * (1 + 10.0 ** -int(rng.integers(3, 17)) * rng.standard_normal(W.shape))
    name, gap_of = ("duality-gap", logistic_gap) if classes == 2 else ("multinomial.gap", multinomial_gap)
    params = {"C": C, "intercept": intercept, "class_weight": class_weight}
    params = gap_params("logistic", l2=1.0, **params) if classes == 2 else params
    published = claim(name, publish(gap_of(X, y, c, intercept, W, b)) * 1.001 + 1e-9, params=params)
    names = np.array(["no", "yes", "zebra"][:classes])
    return Case((published,), model(W, b, names), X, names[y], weight).seal()


def logistic_fit(X, y, c, intercept, classes):
    outputs, d = (1 if classes == 2 else classes), X.shape[1]
    Z = np.hstack([X, np.full((len(X), 1), float(intercept))])
    own = np.where(y == 1, 1.0, -1.0)[:, None] if classes == 2 else np.eye(classes)[y]

    def value(t):
        T = t.reshape(outputs, d + 1)
        s = Z @ T.T
        if classes == 2:
            loss, pull = np.logaddexp(0, -own * s)[:, 0], -own * expit(-own * s)
        else:
            loss, pull = (
                logsumexp(s, axis=1) - (own * s).sum(axis=1),
                np.exp(s - logsumexp(s, axis=1)[:, None]) - own,
            )
        G = (pull * c[:, None]).T @ Z
        G[:, :d] += T[:, :d]
        G[:, d] *= intercept
        return c @ loss + 0.5 * np.sum(T[:, :d] ** 2), G.ravel()

    found = minimize(
        value, np.zeros(outputs * (d + 1)), jac=True, method="L-BFGS-B", options={"gtol": 1e-12, "ftol": 0}
    )
    T = found.x.reshape(outputs, d + 1)
    return T[:, :d].copy(), T[:, d] * intercept


def logistic_gap(X, y, c, intercept, W, b):
    sign = np.where(y == 1, 1.0, -1.0)
    z = sign * (X @ W[0] + b[0])
    p = expit(-z)
    if intercept:
        up, down = (c * p)[sign > 0].sum(), (c * p)[sign < 0].sum()
        p = p * np.where(sign > 0, min(1, down / up), min(1, up / down))
    kl = np.where(p > 0, p * np.log(np.maximum(p, 1e-300)), 0) + (1 - p) * np.log1p(-p) + np.logaddexp(0, -z) + p * z
    return float(np.sum(c * np.maximum(kl, 0)) + 0.5 * np.sum((W[0] - X.T @ (c * p * sign)) ** 2))


def multinomial_gap(X, y, c, intercept, W, b):
    scores = X @ W.T + b
    log_q = scores - logsumexp(scores, axis=1, keepdims=True)
    own, p = np.eye(len(W))[y], np.exp(log_q)
    if intercept:
        have, want = c @ p, c @ own
        t = min(1.0, float(np.min(want / have)))
        p = t * p + (want - t * have) / c.sum()
    kl = np.sum(np.where(p > 0, p * (np.log(np.maximum(p, 1e-300)) - log_q), 0), axis=1)
    return float(np.sum(c * np.maximum(kl, 0)) + 0.5 * np.sum((W - ((own - p) * c[:, None]).T @ X) ** 2))


def enclosure_case(seed: int) -> Case:
    base = logistic_case(seed * 4 + 2)  # without intercept
    gap = base.claim
    value = math.sqrt(2 * gap.value) * (1 + 1e-9)
    scores = base.X @ base.model.coef_[0]
    fixed = int(np.sum(np.abs(scores) > np.linalg.norm(base.X, axis=1) * value * (1 + 1e-9) + 1e-9))
    params = {"gap": "duality-gap", "strength": 1.0, "fixed_rows": fixed}
    return replace(base, claims=(gap, claim("solution.enclosure", value, params=params)), sealed=None).seal()


def least_squares_case(seed: int) -> Case:
    X = draw(seed, kind=seed % 4)
    rng = np.random.default_rng([seed, 5])
    intercept, weight = (
        bool(seed % 2) and seed % 4 != 2,
        None if seed % 3 else weights(seed * 3, len(X)) + 0.25,
    )
    y = X @ rng.standard_normal(X.shape[1]) + rng.standard_normal(len(X)) + intercept
    W, b = ridge_fit(X, y, weight, 0.0, intercept)
    W = W * (1 + 10.0 ** -int(rng.integers(3, 17)) * rng.standard_normal(W.shape))
    center = X.mean(axis=0) if intercept else np.zeros(X.shape[1])
    A = np.hstack([X - center, np.ones((len(X), 1))]) if intercept else X - center
    exponents = -np.frexp(np.linalg.norm(A, axis=0))[1].astype(np.int64)
    A = A * np.ldexp(1.0, exponents)
    s = np.ones(len(X)) if weight is None else weight
    mu = 0.5 * float(np.linalg.eigvalsh(A.T @ (A * s[:, None]))[0])
    g = A.T @ (s * (y - X @ W - b))
    witness = {"center": center, "exponents": exponents}
    params = {"form": "a", "objective": "squared", "intercept": intercept, "mu": mu}
    return Case(
        (claim("suboptimality", publish(g @ g / (2 * mu) * 1.001), params=params, witness=witness),),
        model(W, b),
        X,
        y,
        weight,
    ).seal()


def stationary_case(seed: int) -> Case:
    base = logistic_case(seed, 2 if seed % 2 else 3)
    weight, params = base.weight, base.claim.params
    names = base.model.classes_.tolist()
    y = np.array([names.index(v) for v in base.y])
    c = np.ones(len(y)) if weight is None else weight
    c = c * (1.0 if params["class_weight"] is None else np.array(params["class_weight"])[y])
    intercept, W, b = params["intercept"], base.model.coef_, base.model.intercept_
    Z = np.hstack([base.X, np.ones((len(base.X), 1))]) if intercept else base.X
    scores = base.X @ W.T + b
    if len(names) == 2:
        sign = np.where(y == 1, 1.0, -1.0)
        pull = (sign * expit(-sign * scores[:, 0]))[:, None]
    else:
        pull = np.eye(3)[y] - np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    norm = float(np.linalg.norm(Z.T @ (pull * c[:, None])))
    stated = {
        "form": "b",
        "objective": "logistic" if len(names) == 2 else "multinomial",
        "intercept": intercept,
        "radius": 2.5,
    }
    stated["class_weight"] = params["class_weight"]
    return replace(
        base, claims=(claim("suboptimality", publish(norm * 2.5) + 1e-9, params=stated),), sealed=None
    ).seal()


def hinge_case(seed: int) -> Case:
    """A linear SVM by its dual, as an instance of the generic gap."""
    X = draw(seed)
    y = labels(seed, X) if len(X) > 1 else np.array([0, 1])
    sign, intercept, C = np.where(y == 1, 1.0, -1.0), bool(seed % 2), 0.5
    A = sign[:, None] * X
    constraints = [{"type": "eq", "fun": lambda a: a @ sign, "jac": lambda a: sign}] if intercept else []
    found = minimize(
        lambda a: (0.5 * np.sum((A.T @ a) ** 2) - a.sum(), A @ (A.T @ a) - 1),
        np.full(len(X), 1e-3),
        jac=True,
        bounds=[(0, C)] * len(X),
        constraints=constraints,
        method="SLSQP" if intercept else "L-BFGS-B",
    )
    alpha = np.clip(found.x, 0, C)
    w = A.T @ alpha
    z = X @ w
    b = float((sign - z)[np.argmin(np.abs(alpha - C / 2))]) if intercept else 0.0
    repaired = alpha.copy()
    if intercept:
        up, down = alpha[sign > 0].sum(), alpha[sign < 0].sum()
        repaired = alpha * np.where(sign > 0, min(1, down / up), min(1, up / down))
    s = 1 - sign * (z + b)
    gap = 0.5 * np.sum((w - A.T @ repaired) ** 2) + np.sum(np.maximum((C - repaired) * s, -repaired * s))
    params = gap_params("hinge", C, 1.0, intercept, class_weight=None, dual="witness")
    stated = claim("duality-gap", publish(float(gap)) + 1e-10, params=params, witness={"theta": alpha * sign})
    return Case((stated,), model(w[None, :], b, [0, 1]), X, y).seal()


def gaussian_case(seed: int) -> Case:
    """Gaussian classes with one covariance: the discriminant of the textbook, solved in floating point."""
    rng = np.random.default_rng([seed, 15])
    K, d, n = 2 + seed % 2, 2, 26
    y = np.append(np.arange(K), rng.integers(0, K, size=n - K))
    X = (rng.standard_normal((n, d)) + rng.standard_normal((K, d))[y]) * 10.0 ** rng.integers(-3, 4, size=d)
    kind, s = ["pooled", "equal"][seed % 4 // 2], [0.0, 0.25][seed % 5 // 3]
    counts = np.bincount(y)
    means = np.array([X[y == k].mean(axis=0) for k in range(K)])
    share = np.full(n, 1 / n) if kind == "pooled" else 1 / (K * counts[y])
    S = (X - means[y]).T @ ((X - means[y]) * share[:, None])
    S = (1 - s) * S + s * np.trace(S) / d * np.eye(d)
    priors = counts / n if seed % 3 else np.full(K, 1 / K)
    centre = priors @ means
    coef = np.linalg.solve(S, (means - centre).T).T
    intercept = np.log(priors) - 0.5 * np.sum(coef * (means - centre), axis=1) - coef @ centre
    if K == 2:
        coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    exponents = -np.frexp(np.sqrt(np.diag(S)))[1]
    scale = np.ldexp(1.0, exponents)
    mu = float(np.linalg.eigvalsh(S * np.outer(scale, scale))[0]) / 2
    params = {"form": "linear", "covariance": kind, "shrinkage": s, "mu": mu, "error": 1e-11}
    params["priors"] = "rows" if seed % 3 else priors.tolist()
    witness = {"exponents": exponents[None].astype(np.int64), "means": means, "covariance": S[None]}
    stated = claim("gaussian.mle", 1e-9, params=params, witness=witness)
    return Case((stated,), model(coef, intercept, range(K), "discriminant.linear"), X, y).seal()
