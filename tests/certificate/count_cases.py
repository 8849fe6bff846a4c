"""Honest claims on counted errors and what they say of the risk: binomial limits, clipped losses, ghost samples."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

from tests.certificate.forge import Case, claim, draw, labels, model


def errors_case(seed: int) -> Case:
    X = draw(seed, n=30)
    y = labels(seed, X, 2 + seed % 2) if len(X) > 2 else np.arange(len(X))
    rng = np.random.default_rng([seed, 6])
    K = 1 if y.max() < 2 else 3
    W, b = rng.standard_normal((K, X.shape[1])), rng.standard_normal(K)
    scores = X @ W.T + b
    guess = (scores[:, 0] > 0).astype(int) if K == 1 else scores.argmax(axis=1)
    wrong = int(np.sum(guess != y))
    params = {"set": "train", "rows": len(X), "loss": "zero-one", "low": wrong}
    return Case(
        (claim("train.errors", float(wrong), params=params),), model(W, b, np.arange(2 if K == 1 else 3)), X, y
    ).seal()


def identity_case(seed: int) -> Case:
    base = errors_case(seed)
    stated = claim("data.identity", float(len(base.X)), "lower", params={"set": "train"})
    return replace(base, claims=(stated,), sealed=None).seal()


def floor_case(seed: int) -> Case:
    rng = np.random.default_rng([seed, 7])
    X = rng.integers(0, 2, size=(30, 3)).astype(float)
    y = rng.integers(0, 3, size=30)
    _, group = np.unique(X, axis=0, return_inverse=True)
    floor = sum(np.sum(group == g) - np.bincount(y[group == g]).max() for g in np.unique(group))
    witness = {"rows": np.arange(30), "group": group.astype(np.int64)}
    stated = claim("train.error-floor", float(floor), "lower", params={"rows": 30}, witness=witness)
    return Case((stated,), model(rng.standard_normal((3, 3)), np.zeros(3), [0, 1, 2]), X, y).seal()


def holdout_case(seed: int, name: str = "holdout.binomial") -> Case:
    """A fixed classifier, counted on rows passed apart (even seeds) or cut from one table (odd seeds)."""
    rng = np.random.default_rng([seed, 11])
    X = rng.standard_normal((50, 3))
    fitted = model(rng.standard_normal((1, 3)), 0.1, [0, 1])
    guess = (X @ fitted.coef_[0] + 0.1 > 0).astype(int)
    y = np.where(rng.random(50) < 0.15, 1 - guess, guess)
    rows = rng.permutation(50)[:30]
    wrong = int(np.sum((guess != y)[rows]))
    lower = name == "holdout.binomial" and seed % 4 == 3 and wrong > 0
    params: dict[str, Any] = {"errors": wrong, "rows": 30}
    witness = {}
    if name == "holdout.selection":
        others = rng.integers(0, 2, size=(4, 30))
        witness = {"predictions": np.vstack([others, guess[np.sort(rows)][None, :]]).astype(np.int32)}
        params["compared"] = 5
    delta = 0.04 / params.get("compared", 1)
    value = (
        stats.beta.ppf(delta, wrong, 31 - wrong) - 1e-9
        if lower
        else stats.beta.ppf(1 - delta, wrong + 1, 30 - wrong) + 1e-9
    )
    value = 1.0 if wrong == 30 else min(1.0, float(value))
    stated = claim(
        name,
        value,
        "lower" if lower else "upper",
        "0.04",
        params=params,
        data=("holdout",),
        witness=witness,
    )
    rest = np.setdiff1d(np.arange(50), rows)
    if seed % 2:
        return Case((stated,), fitted, X, y, split={"train": rest, "holdout": rows}).seal()
    order = np.sort(rows)
    return Case((stated,), fitted, X[rest], y[rest], holdout=(X[order], y[order])).seal()


def clipped_case(seed: int) -> Case:
    rng = np.random.default_rng([seed, 12])
    X, Xh = rng.standard_normal((20, 2)), rng.standard_normal((60, 2))
    fitted = model(rng.standard_normal(2), 0.2)
    yh = Xh @ fitted.coef_ + 0.2 + 0.5 * rng.standard_normal(60)
    clip, m = 2.0, 60
    losses = np.minimum(np.abs(yh - Xh @ fitted.coef_ - 0.2), clip)
    log = math.log(2 / 0.05)
    value = losses.mean() + math.sqrt(2 * losses.var(ddof=1) * log / m) + 7 * clip * log / (3 * (m - 1))
    params = {"clip": clip, "rows": m}
    stated = claim("holdout.empirical-bernstein", float(value) + 1e-9, delta="0.05", params=params, data=("holdout",))
    return Case((stated,), fitted, X, X @ fitted.coef_, holdout=(Xh, yh)).seal()


def growth(descriptor: dict, points: int) -> int:
    d = descriptor["d"]
    if descriptor["class"] == "halfspaces" and not descriptor["bias"]:
        return sum(math.comb(points, i) for i in range(d + 1))
    affine = 2 * sum(math.comb(points - 1, i) for i in range(d + 1))
    return affine ** (descriptor["classes"] * (descriptor["classes"] - 1) // 2) if "classes" in descriptor else affine


def ghost_threshold(wrong: int, n: int, ways: int, delta: float) -> int:
    """Return the least K with P[Hyp(5n, K, n) <= wrong] <= delta / (2 ways), in floating point."""
    target = math.log(delta / 2) - math.log(ways)
    return next(K for K in range(wrong + 1, 5 * n + 1) if stats.hypergeom.logcdf(wrong, 5 * n, K, n) <= target - 1e-9)


def vc_case(seed: int, n: int = 60) -> Case:
    rng = np.random.default_rng([seed, 14])
    bias = bool(seed % 2)
    X = rng.standard_normal((n, 1 + seed % 3 // 2))
    fitted = model(rng.standard_normal((1, X.shape[1])), 0.2 * bias, [0, 1])
    guess = (X @ fitted.coef_[0] + fitted.intercept_[0] > 0).astype(int)
    y = np.where(rng.random(n) < 0.05, 1 - guess, guess)
    wrong = int(np.sum(guess != y))
    descriptor = {"class": "halfspaces", "d": X.shape[1], "bias": bias}
    K = ghost_threshold(wrong, n, growth(descriptor, 5 * n), 0.05)
    value = float(stats.beta.ppf(0.5, K - wrong, 4 * n - (K - wrong) + 1)) + 1e-9
    params = {"class": descriptor, "form": "c", "errors": wrong, "rows": n, "M": 4 * n, "q": 0.5, "K": K}
    return Case((claim("vc", value, delta="0.05", params=params),), fitted, X, y).seal()
