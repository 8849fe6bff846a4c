"""Compression, stability, PAC-Bayes, streams, folds, conformal sets, k-means and PCA."""

import math

import numpy as np
from scipy.stats import norm

from assay.theory import concentration, exchangeability, holdout, pac_bayes, rademacher, sequential, stability
from assay.theory._patterns import best_threshold
from bench.worlds._case import case
from bench.worlds.classes import THETA
from bench.worlds.margins import vote_risk


@case("compression", "smallest consistent interval, n = 100")
def compress_interval(rng, delta):
    x = rng.random(100)
    inside = x[(x >= 0.3) & (x <= 0.7)]
    k = min(2, len(inside))
    bound = stability.compression_bound(0, 100, k, delta, largest=2)
    risk = 0.4 if k == 0 else float(inside.min() - 0.3 + 0.7 - inside.max())
    return bound < risk, bound < 0.5


def best_pair(rng, n):
    """Fewest errors, on the other rows, of any nearest-of-two rule with coin labels."""
    x, y = np.sort(rng.random(n)), rng.choice([-1, 1], n)
    i, j = np.triu_indices(n, 1)
    border = np.searchsorted(x, (x[i] + x[j]) / 2, side="right")
    ones = np.concatenate(([0], np.cumsum(y == 1)))
    left_wrong = np.where(y[i] == 1, border - ones[border], ones[border])
    right_ones = ones[n] - ones[border]
    right_wrong = np.where(y[j] == 1, (n - border) - right_ones, right_ones)
    return int((left_wrong + right_wrong).min())


@case("compression", "best pair of prototypes on coin labels, n = 60 (below one: informative)")
def compress_noise(rng, delta):
    bound = stability.compression_bound(best_pair(rng, 60), 60, 2, delta, largest=2)
    return bound < 0.5, bound < 1


@case("compression", "without the binomial coefficient", control=True)
def compress_unpaid(rng, delta):
    return concentration.clopper_pearson_upper(best_pair(rng, 60), 58, delta) < 0.5, True


@case("stability", "ridge on the circle, 10 % wrong labels, n = 1000")
def stable_ridge(rng, delta):
    n, strength = 1000, 4.0
    angle = rng.uniform(0, 2 * math.pi, n)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    y = np.where((X[:, 0] > 0) ^ (rng.random(n) < 0.1), 1.0, -1.0)
    w = np.linalg.solve(2 * X.T @ X / n + strength * np.eye(2), 2 * X.T @ y / n)
    slope = 2 * (1 + math.sqrt(2 / strength))  # of (y - f)^2 while |f| <= sqrt(2/strength)
    beta = stability.uniform_stability(n, strength, 1.0, lipschitz=slope, evaluation_lipschitz=0.5)
    bound = stability.stability_bound(float(np.abs(y - X @ w).mean()) / 2, beta, n, delta)
    return bound < (1 - 0.8 * w[0] * 2 / math.pi) / 2, bound < 0.75


def gaussian_margins(rng, n, d, shift):
    y = rng.choice([-1, 1], n)
    X = rng.normal(size=(n, d))
    X[:, 0] += shift * y
    w = (y[:, None] * X).mean(axis=0)
    w /= np.linalg.norm(w)
    return y * (X @ w) / np.linalg.norm(X, axis=1), w


@case("pac-bayes.linear", "two Gaussians four units apart, class means as weights, n = 300")
def pac_bayes_linear(rng, delta):
    z, w = gaussian_margins(rng, 300, 3, 2.0)
    bound = pac_bayes.linear_bound(z, delta).bound
    return bound < norm.cdf(-2.0 * w[0]), bound < 0.5


@case("pac-bayes.linear", "no divergence paid, coin labels", control=True)
def pac_bayes_unpaid(rng, delta):
    z, _ = gaussian_margins(rng, 40, 400, 0.0)
    loss = pac_bayes.linear_gibbs_loss(z, 20.0)
    return pac_bayes.gibbs_bound(loss, 0.0, 40, delta) < 0.5, True


def bagged(rng, n, members, noise):
    """Thresholds fitted to halves of the rows, with errors on the rest, for each and for each pair."""
    x, y = rng.random((n, 1)), np.zeros(n)
    y = np.where((x[:, 0] > THETA) ^ (rng.random(n) < noise), 1, -1)
    rules, out, wrong = [], [], []
    for _ in range(members):
        inside = rng.permutation(n)[: n // 2]
        rule = best_threshold(x[inside], y[inside].astype(float), [0], (1, -1))
        mask = np.ones(n, dtype=bool)
        mask[inside] = False
        rules.append((1.0 / members, rule))
        out.append(mask)
        wrong.append(mask & (rule(x) != y))
    out, wrong = np.array(out, dtype=int), np.array(wrong, dtype=int)
    return rules, out, wrong


@case("pac-bayes.vote", "vote of eight thresholds, out-of-bag halves, noise 0.05, n = 600")
def vote_first(rng, delta):
    rules, out, wrong = bagged(rng, 600, 8, 0.05)
    bound = pac_bayes.vote_bound(wrong.sum(axis=1), out.sum(axis=1), delta)
    return bound < vote_risk(rules, 0.05), bound < 0.5


@case("pac-bayes.vote", "the same, pairs of members, n = 1200")
def vote_second(rng, delta):
    rules, out, wrong = bagged(rng, 1200, 8, 0.05)
    bound = pac_bayes.tandem_bound(wrong @ wrong.T, out @ out.T, delta)
    return bound < vote_risk(rules, 0.05), bound < 0.6


@case("pac-bayes.vote", "in-bag rows of rote learners on coin labels", control=True)
def vote_in_bag(rng, delta):
    rows = np.full(8, 100)
    return pac_bayes.vote_bound(np.zeros(8, dtype=int), rows, delta) < 0.5, True  # they know their rows by heart


@case("progressive.vote", "stream whose next risk depends on past losses, n = 200")
def progressive_adaptive(rng, delta):
    risks, losses = np.empty(200), np.empty(200)
    draws, last = rng.random(200), 0.0
    for t in range(200):
        risks[t] = 0.05 if last == 0.0 else 0.4
        losses[t] = last = float(draws[t] < risks[t])
    bound = sequential.progressive_bound(losses, delta)
    plain = sequential.progressive_hoeffding(losses, delta)
    return bound < risks.mean(), min(bound, plain) < 0.5


@case("progressive.vote", "the same, Hoeffding-Azuma")
def progressive_plain(rng, delta):
    risks, losses, last = np.empty(200), np.empty(200), 0.0
    for t, draw in enumerate(rng.random(200)):
        risks[t] = 0.2 if last == 0.0 else 0.6
        losses[t] = last = float(draw < risks[t])
    bound = sequential.progressive_hoeffding(losses, delta)
    return bound < risks.mean(), bound < 0.6


def minority_folds(rng, n, K):
    """Errors in each fold of the learner that predicts the rarer of its labels; its risk is one half."""
    y = rng.choice([-1, 1], n)
    total = y.sum()
    folds = y.reshape(K, n // K)
    label = np.where(total - folds.sum(axis=1) > 0, -1, 1)
    return (folds != label[:, None]).sum(axis=1)


for _name, _bound in (
    ("Hoeffding", holdout.fold_hoeffding),
    ("kl", holdout.fold_kl),
    ("binomial", holdout.fold_binomial),
):

    @case("cross-validation.mean", f"minority learner, five folds of 40, {_name} (below one: informative)")
    def folds_case(rng, delta, bound_of=_bound):
        bound = bound_of(minority_folds(rng, 200, 5), 40, delta)
        return bound < 0.5, bound < 1


@case("cross-validation.mean", "ten folds pooled as one binomial count", control=True)
def folds_pooled(rng, delta):
    return concentration.clopper_pearson_upper(int(minority_folds(rng, 100, 10).sum()), 100, delta) < 0.5, True


@case("conformal.coverage", "coverage given the calibration set, m = 99")
def conformal_conditional(rng, delta):
    coverage = exchangeability.threshold(rng.random(99), 90)  # uniform scores: the threshold is the coverage
    promised = exchangeability.conditional_coverage(90, 99, delta)
    return coverage < promised, promised > 0.5


@case("conformal.coverage", "coverage of the next row, alpha = 0.2, m = 30", rate=0.2)
def conformal_marginal(rng, delta):
    scores = rng.normal(size=31)
    return scores[-1] > exchangeability.threshold(scores[:-1], exchangeability.conformal_index(30, 0.2)), True


@case("conformal.coverage", "jackknife+ around the mean, 1 - 2 alpha = 0.6, n = 20", rate=0.4)
def conformal_jackknife(rng, delta):
    y = rng.exponential(size=21)
    means = (y[:-1].sum() - y[:-1]) / 19
    low, high = exchangeability.jackknife_plus(means, np.abs(y[:-1] - means), 0.2)
    return not low <= y[-1] <= high, True


@case("conformal.coverage", "quantile without the extra one", control=True, rate=0.25, times=5)
def conformal_short(rng, delta):
    scores = rng.normal(size=5)
    return scores[-1] > exchangeability.threshold(scores[:-1], math.ceil(4 * 0.75)), True


@case("kmeans.risk", "two centres, uniform on [-1, 1], n = 3000 (below 4: informative)")
def kmeans(rng, delta):
    x = rng.uniform(-1, 1, (3000, 1))
    centres = np.array([x[x < 0].mean(), x[x >= 0].mean()])
    cost = float((np.abs(x - centres).min(axis=1) ** 2).mean())
    bound = rademacher.kmeans_bound(x, cost, 2, 1.0, delta)
    cut = centres.mean()

    def part(a, b, c):
        return ((b - c) ** 3 - (a - c) ** 3) / 6

    return bound < part(-1, cut, centres[0]) + part(cut, 1, centres[1]), bound < 4


@case("projection.risk", "principal direction of the uniform disc, n = 1000 (below 1: informative)")
def subspace(rng, delta):
    X = rng.normal(size=(1000, 2))
    X *= (np.sqrt(rng.random(1000)) / np.linalg.norm(X, axis=1))[:, None]
    cost = float((X * X).sum() - np.linalg.eigvalsh(X.T @ X)[-1]) / 1000
    bound = rademacher.subspace_bound(X, max(0.0, cost), 1, 1.0, delta)
    return bound < 0.25, bound < 1
