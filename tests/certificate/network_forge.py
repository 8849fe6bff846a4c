"""Honest certificates about networks, made by hand: weights drawn at random, formulas in extended precision; no learner
and no producer."""

from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats

from tests.certificate import forge

UNITS = ("identity", "logistic", "tanh", "relu")
Long = np.longdouble


def network(rng: np.random.Generator, sizes: tuple, unit: str, classes: int = 0, exponential: bool = False) -> Any:
    count = sum(a * b + b for a, b in pairwise(sizes))
    model = forge.Forged(
        family="network.classifier" if classes else "network.regressor",
        network_sizes_=np.array(sizes),
        network_weights_=rng.normal(size=count) * rng.choice([0.3, 1.0]),
        network_codes_=np.array([UNITS.index(unit), int(exponential)]),
    )
    if classes:
        model.classes_, model.several_labels_ = np.arange(classes), np.array(0)
    return model


# The mathematics once more, in extended precision --------------------------------------------------------------


def layers(model: Any) -> tuple[list, list]:
    weights, at, sizes = [], 0, [int(size) for size in model.network_sizes_]
    whole = model.network_weights_.astype(Long)
    for a, b in pairwise(sizes):
        weights.append(whole[at : at + a * b].reshape(a, b))
        at += a * b
    return weights, np.split(whole[at:], np.cumsum(sizes[1:])[:-1])


def logistic(z: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, 1, e) / (1 + e)


def unit_of(model: Any) -> tuple:
    return {
        "identity": (lambda z: z, lambda z: np.ones_like(z)),
        "logistic": (logistic, lambda z: logistic(z) * logistic(-z)),
        "tanh": (np.tanh, lambda z: 4 * logistic(2 * z) * logistic(-2 * z)),
        "relu": (lambda z: np.maximum(z, 0), lambda z: (z > 0).astype(Long)),
    }[UNITS[int(model.network_codes_[0])]]


def scores(model: Any, X: np.ndarray) -> list[np.ndarray]:
    """Return the sums that every layer receives."""
    value, _ = unit_of(model)
    A, found = X.astype(Long), []
    for W, b in zip(*layers(model), strict=True):
        found.append(A @ W + b)
        A = value(found[-1])
    return found


def gradient_length(case: forge.Case) -> float:
    """Return the length of the gradient that network.gradient is about."""
    model, params = case.model, case.claim.params
    value, slope = unit_of(model)
    sums, (weights, intercepts) = scores(model, case.X), layers(model)
    Z, n = sums[-1], len(case.X)
    s = np.ones(n, Long) if case.weight is None else case.weight.astype(Long)
    if hasattr(model, "classes_"):
        codes = np.array([model.classes_.tolist().index(label) for label in case.y.tolist()])
        Y = (codes[:, None] == (np.arange(Z.shape[1]) if Z.shape[1] > 1 else 1)).astype(Long)
        P = logistic(Z)
        if params["loss"] == "squared":
            D = (P - Y) * P * logistic(-Z)
        elif Z.shape[1] == 1:
            D = P - Y
        else:
            E = np.exp(Z - Z.max(axis=1, keepdims=True))
            D = E / E.sum(axis=1, keepdims=True) - Y
    else:
        D = (np.exp(Z) if params["loss"] == "poisson" else Z) - case.y.reshape(n, -1).astype(Long)
    D = D * s[:, None]
    square = Long(0)
    for k in range(len(weights) - 1, -1, -1):
        A = case.X.astype(Long) if k == 0 else value(sums[k - 1])
        by_weights = params["share"] * (A.T @ D) / s.sum() + params["decay"] * weights[k]
        by_intercepts = params["share"] * D.sum(axis=0) / s.sum() + params["intercept_decay"] * intercepts[k]
        square += (by_weights**2).sum() + (by_intercepts**2).sum()
        D = (D @ weights[k].T) * slope(sums[k - 1]) if k else D
    return float(np.sqrt(square))


def errors(model: Any, X: np.ndarray, y: np.ndarray) -> int:
    Z = scores(model, X)[-1]
    codes = np.array([model.classes_.tolist().index(label) for label in y.tolist()])
    if Z.shape[1] == 1:
        return int(np.sum(np.where(codes == 1, Z[:, 0] <= 0, Z[:, 0] >= 0)))
    own = Z[np.arange(len(Z)), codes]
    Z[np.arange(len(Z)), codes] = -np.inf
    return int(np.sum(own <= Z.max(axis=1)))


# Cases -----------------------------------------------------------------------------------------------------------

KINDS = {"two": (2, 1), "three": (3, 3), "number": (0, 1), "numbers": (0, 2), "counts": (0, 1)}


def draw(seed: int, kind: str) -> tuple[Any, np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, len(kind)])
    classes, outputs = KINDS[kind]
    X = forge.draw(seed, n=20)
    hidden = [(), (4,), (3, 4)][seed % 3]
    model = network(rng, (X.shape[1], *hidden, outputs), UNITS[seed % 4], classes, kind == "counts")
    if kind == "counts":
        model.network_weights_ *= 0.1 / max(1.0, np.abs(X).max())
        return model, X, rng.poisson(1.0, len(X)).astype(float)
    if classes:
        return model, X, rng.integers(0, classes, len(X))
    return model, X, rng.normal(size=len(X)) if outputs == 1 else rng.normal(size=(len(X), outputs))


def gradient_case(kind: str, loss: str):
    def make(seed: int) -> forge.Case:
        model, X, y = draw(seed, kind)
        rng = np.random.default_rng(seed)
        weight = rng.uniform(0.5, 2.0, len(X)) if seed % 2 else None
        params = {"loss": loss, "share": [1.0, 0.7][seed % 2], "decay": 0.01 * (seed % 3), "intercept_decay": 0.0}
        case = forge.Case((forge.claim("network.gradient", 1.0, params=params),), model, X, y, weight)
        return case.with_claim(value=gradient_length(case) * (1 + 1e-6) + 1e-8).seal()

    return make


def errors_case(kind: str):
    def make(seed: int) -> forge.Case:
        model, X, y = draw(seed, kind)
        wrong = errors(model, X, y)
        params = {"set": "train", "rows": len(X), "loss": "zero-one", "low": wrong}
        return forge.Case((forge.claim("train.errors", float(wrong), params=params),), model, X, y).seal()

    return make


def holdout_case(seed: int) -> forge.Case:
    model, X, y = draw(seed, "two")
    rng = np.random.default_rng([seed, 99])
    Xh = rng.normal(size=(30, X.shape[1]))
    yh = rng.integers(0, 2, 30)
    wrong = errors(model, Xh, yh)
    limit = float(stats.beta.ppf(0.96, wrong + 1, 30 - wrong)) if wrong < 30 else 1.0
    params = {"errors": wrong, "rows": 30}
    stated = forge.claim("holdout.binomial", min(1.0, limit + 1e-9), delta="0.04", params=params, data=("holdout",))
    return forge.Case((stated,), model, X, y, holdout=(Xh, yh)).seal()


CASES = {
    "log loss of two classes": gradient_case("two", "log"),
    "log loss of three classes": gradient_case("three", "log"),
    "squared error of two classes": gradient_case("two", "squared"),
    "squared error of three classes": gradient_case("three", "squared"),
    "squared error": gradient_case("number", "squared"),
    "squared error of two targets": gradient_case("numbers", "squared"),
    "counts": gradient_case("counts", "poisson"),
    "errors of two classes": errors_case("two"),
    "errors of three classes": errors_case("three"),
    "hold-out": holdout_case,
}


def truth(case: forge.Case) -> bool:
    """Tell whether the claim of a case is true, whatever the checker says."""
    claim = case.claim
    if claim.name == "network.gradient":
        return bool(gradient_length(case) <= claim.value)
    if claim.name == "train.errors":
        return claim.params["low"] <= errors(case.model, case.X, case.y) <= claim.value
    assert claim.name == "holdout.binomial"
    wrong, m = errors(case.model, *case.holdout), len(case.holdout[1])
    if claim.direction == "upper":
        return bool(claim.value >= 1 or stats.binom.cdf(wrong, m, claim.value) <= float(claim.delta) * (1 + 1e-9))
    return bool(claim.value <= 0 or stats.binom.sf(wrong - 1, m, claim.value) <= float(claim.delta) * (1 + 1e-9))
