"""Compression, stability, PAC-Bayes, progressive and cross-validation, conformal sets, k-means and PCA."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta, binom, entropy, norm
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVC

from assay.theory import exchangeability, holdout, pac_bayes, rademacher, sequential, stability
from assay.theory.concentration import clopper_pearson_lower, clopper_pearson_upper, kl, kl_upper, maurer_xi


def exact_cdf(k, m, p):
    p = Fraction(p)
    return sum(math.comb(m, j) * p**j * (1 - p) ** (m - j) for j in range(k + 1))


def test_area_under_the_curve_and_difference_by_hand():
    bound = holdout.auc_lower(0.8, 20, 30, 0.05)
    assert kl(0.8, bound) == pytest.approx(math.log(20) / 20)
    assert bound > 0.8 - math.sqrt(50 * math.log(20) / (2 * 20 * 30)), "McDiarmid's inequality gives less"
    assert holdout.threshold_width(50, 80, 0.05) == pytest.approx(math.sqrt(math.log(80) / 100))
    value = holdout.difference_upper(12, 5, 100, 0.05)
    assert value == clopper_pearson_upper(12, 100, 0.025) - clopper_pearson_lower(5, 100, 0.025)


@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_the_area_fails_rarely_by_enumeration(delta):
    """Scores are one of three numbers: every sample of 4 + 3 rows, every law on a grid, ties among them."""
    laws = [(0.1, 0.2, 0.7), (0.3, 0.4, 0.3), (0.0, 0.5, 0.5), (0.6, 0.3, 0.1), (0.0, 0.1, 0.9)]
    samples = {m: np.array(list(itertools.product(range(3), repeat=m))) for m in (4, 3)}
    ahead = (samples[4][:, None, :, None] > samples[3][None, :, None, :]).mean(axis=(2, 3))
    ahead += 0.5 * (samples[4][:, None, :, None] == samples[3][None, :, None, :]).mean(axis=(2, 3))
    bounds = {seen: holdout.auc_lower(seen, 4, 3, delta) for seen in np.unique(ahead)}
    bound = np.vectorize(bounds.get)(ahead)
    order = np.subtract.outer(np.arange(3), np.arange(3))
    for p, q in itertools.product(laws, laws):
        truth = float(np.outer(p, q)[order > 0].sum() + 0.5 * np.outer(p, q)[order == 0].sum())
        chance = np.outer(np.prod(np.array(p)[samples[4]], axis=1), np.prod(np.array(q)[samples[3]], axis=1))
        assert chance[bound > truth + 1e-12].sum() <= delta


def test_bounded_differences_of_the_area():
    """Replacing one positive score moves the area by at most 1/a, one negative score by 1/b."""
    rng = np.random.default_rng(10)
    for _ in range(50):
        a, b = rng.integers(0, 5, 4).astype(float), rng.integers(0, 5, 6).astype(float)

        def area(p, q):
            return ((p[:, None] > q) + 0.5 * (p[:, None] == q)).mean()

        for scores, share in ((a, 1 / 4), (b, 1 / 6)):
            before = area(a, b)
            kept = scores[0]
            scores[0] = rng.integers(0, 5)
            assert abs(area(a, b) - before) <= share + 1e-12
            scores[0] = kept


@pytest.mark.parametrize(("e", "n", "k"), [(0, 50, 2), (3, 60, 5), (10, 200, 0), (1, 120, 10)])
def test_compression_solves_its_equation_exactly(e, n, k):
    bound = Fraction(stability.compression_bound(e, n, k, 0.05, largest=12))
    share = Fraction(0.05) / 13 / math.comb(n, k)
    assert exact_cdf(e, n - k, bound) <= share
    assert exact_cdf(e, n - k, bound * Fraction(10**9 - 2, 10**9)) > share
    ordered = stability.compression_bound(e, n, k, 0.05, largest=12, ordered=True)
    assert exact_cdf(e, n - k, ordered) <= share / math.factorial(k)
    assert exact_cdf(e, n - k, Fraction(ordered) * Fraction(10**9 - 2, 10**9)) > share / math.factorial(k)
    message = Fraction(stability.compression_bound(e, n, k, 0.05, largest=12, log_message=-math.log(8)))
    assert exact_cdf(e, n - k, message) <= share / 8 < exact_cdf(e, n - k, message * Fraction(10**9 - 2, 10**9))


def test_weights_of_sizes_add_up_to_at_most_one():
    assert sum(math.exp(stability.log_size_weight(k)) for k in range(10**4)) == pytest.approx(1, abs=1e-4)
    assert sum(math.exp(stability.log_size_weight(k, 9)) for k in range(10)) == pytest.approx(1)


def test_realizable_compression_is_below_its_closed_form():
    for n, k in ((100, 1), (1000, 20)):
        closed = (math.log(math.comb(n, k)) + math.log(21) + math.log(20)) / (n - k)
        assert stability.compression_bound(0, n, k, 0.05, largest=20) <= closed


def test_compression_of_noise_needs_the_binomial_coefficient():
    """Labels are coins; among all pairs of rows the rule 'nearer of the two' with fewest errors is kept."""
    rng = np.random.default_rng(0)
    n, honest, naive = 40, 0, 0
    for _ in range(150):
        x, y = rng.random(n), rng.choice([-1, 1], n)
        best = n
        for i, j in itertools.combinations(range(n), 2):
            predicted = np.where(np.abs(x - x[i]) <= np.abs(x - x[j]), y[i], y[j])
            wrong = predicted != y
            wrong[[i, j]] = False
            best = min(best, int(wrong.sum()))
        honest += stability.compression_bound(best, n, 2, 0.05, largest=2) < 0.5
        naive += clopper_pearson_upper(best, n - 2, 0.05) < 0.5
    assert honest <= binom.isf(1e-6, 150, 0.05)
    assert naive > 38


@pytest.mark.mission("LTH-53")
def test_uniform_stability_of_ridge_is_not_exceeded():
    """Absolute loss of ridge on |x|, |y| <= 1: the training loss is 2(1 + |f|)-Lipschitz on its range."""
    rng = np.random.default_rng(1)
    n, strength = 40, 0.5
    X = rng.normal(size=(n, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.clip(X @ [1.0, -0.5, 0.2] + 0.1 * rng.normal(size=n), -1, 1)
    ridge = Ridge(alpha=strength * n / 2, fit_intercept=False)  # (1/n) sum (y-f)^2 + (strength/2) |w|^2
    measured = stability.measured_stability(ridge, X, y, lambda t, f: np.abs(t - f))
    reach = math.sqrt(2 / strength)  # |w|, since the objective at 0 is at most 1
    beta_ = stability.uniform_stability(n, strength, 1.0, lipschitz=2 * (1 + reach), evaluation_lipschitz=1.0)
    assert 0 < measured.removal <= beta_
    assert 0 < measured.replacement <= beta_
    assert beta_ == pytest.approx(2 * 2 * (1 + reach) / (strength * n))

    def error(rows):  # the normal equations, row by row
        w = np.linalg.solve(X[rows].T @ X[rows] + strength * n / 2 * np.eye(3), X[rows].T @ y[rows])
        return np.abs(y - X @ w)

    everything, changes = list(range(n)), {"removal": [], "replacement": [], "own": []}
    for i in everything:
        without = np.abs(error(everything[:i] + everything[i + 1 :]) - error(everything))
        copied = np.abs(error([*everything[:i], (i + 1) % n, *everything[i + 1 :]]) - error(everything))
        for name, value in zip(changes, (without.max(), copied.max(), without[i])):
            changes[name].append(value)
    assert tuple(measured) == pytest.approx([max(values) for values in changes.values()])


@pytest.mark.mission("LTH-53")
def test_uniform_stability_of_a_support_vector_machine_is_not_exceeded():
    """No bias: a linear kernel on rows doubled by their mirror image has an intercept of zero."""
    rng = np.random.default_rng(2)
    n, C = 30, 0.05
    half = rng.normal(size=(n // 2, 2))
    half /= np.linalg.norm(half, axis=1, keepdims=True)
    signs = np.where(half[:, 0] + 0.3 * rng.normal(size=n // 2) > 0, 1, -1)
    beta_ = stability.uniform_stability(n, 1 / (C * n), 1.0)
    assert beta_ == pytest.approx(2 * C)
    weights = []
    for i in range(n // 2):
        keep = np.arange(n // 2) != i
        for rows in (np.arange(n // 2), keep):
            X, y = np.vstack([half[rows], -half[rows]]), np.r_[signs[rows], -signs[rows]]
            weights.append(SVC(C=C, kernel="linear", tol=1e-10).fit(X, y).coef_[0])
    # a mirrored pair is two rows, so twice the stability of one
    moved = [np.linalg.norm(a - b) for a, b in zip(weights[::2], weights[1::2])]
    assert 0 < max(moved) <= 2 * beta_


@pytest.mark.mission("LTH-53")
def test_a_rote_learner_is_unstable():
    X = np.arange(10.0)[:, None]
    y = np.tile([0.0, 1.0], 5)
    measured = stability.measured_stability(KNeighborsRegressor(1), X, y, lambda t, f: np.abs(t - f))
    assert measured.own == 1.0  # its own row is the only reason for its fit


@pytest.mark.mission("LTH-53")
def test_stability_bounds_by_hand():
    root = math.sqrt(math.log(20) / 2000)
    assert stability.stability_bound(0.1, 1e-4, 1000, 0.05) == pytest.approx(0.1 + 1e-4 + 1.2 * root)
    removal = stability.stability_bound(0.1, 1e-4, 1000, 0.05, removal=True)
    assert removal == pytest.approx(0.1 + 2e-4 + 1.4 * root)
    assert stability.stability_bound(1.0, 1e-4, 1000, 0.05, high=3.0) == pytest.approx(1 + 1e-4 + 3.2 * root)
    assert stability.suboptimality_slack(0.02, 4.0, 3.0) == pytest.approx(2 * 3 * 0.1)
    assert stability.uniform_stability(50, 0.4, 3.0, lipschitz=2.0) == pytest.approx(2 * 4 * 9 / (0.4 * 50))


def test_strong_convexity_lemma_behind_stability():
    """|w_S - w_S'| <= 2 sigma r / (strength n) for ridge with the clipped range of its loss."""
    rng = np.random.default_rng(3)
    n, strength = 12, 0.3
    for _ in range(50):
        X = rng.normal(size=(n + 1, 2))
        X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
        y = rng.uniform(-1, 1, n + 1)

        def solve(rows, X=X, y=y):
            return np.linalg.solve(2 * X[rows].T @ X[rows] / n + strength * np.eye(2), 2 * X[rows].T @ y[rows] / n)

        sigma = 2 * (1 + math.sqrt(2 / strength))
        moved = np.linalg.norm(solve(np.arange(n)) - solve(np.arange(1, n + 1)))
        assert moved <= 2 * sigma / (strength * n)


def test_gibbs_bound_inverts_kl():
    bound = pac_bayes.gibbs_bound(0.1, 2.0, 500, 0.05)
    assert kl(0.1, bound) == pytest.approx((2.0 + math.log(maurer_xi(500) / 0.05)) / 500, rel=1e-7)


def test_pac_bayes_holds_on_a_finite_domain_for_every_posterior():
    """Ten coins as hypotheses with exact risks: the worst posterior for a sample is a tilted prior."""
    rng = np.random.default_rng(4)
    risks, prior, n = np.linspace(0.05, 0.95, 10), np.full(10, 0.1), 40
    failures, informative = 0, 0
    for _ in range(400):
        empirical = rng.binomial(n, risks) / n
        for tilt in (0.0, 5.0, 20.0, 80.0):
            weights = prior * np.exp(-tilt * (empirical - empirical.min()))
            weights /= weights.sum()
            bound = pac_bayes.gibbs_bound(float(weights @ empirical), pac_bayes.divergence(weights), n, 0.2)
            informative += bound < 0.5
            if weights @ risks > bound:
                failures += 1
                break
    assert failures <= 120
    assert informative > 400


def test_linear_gibbs_loss_is_the_error_of_random_weights():
    rng = np.random.default_rng(5)
    X, y, w = rng.normal(size=(6, 3)), rng.choice([-1, 1], 6), np.array([0.3, -1.0, 2.0])
    unit = w / np.linalg.norm(w)
    z = y * (X @ unit) / np.linalg.norm(X, axis=1)
    draws = 3.0 * unit + rng.normal(size=(200_000, 3))
    simulated = ((draws @ X.T) * y <= 0).mean()
    assert pac_bayes.linear_gibbs_loss(z, 3.0) == pytest.approx(norm.sf(3.0 * z).mean(), rel=1e-9)
    assert pac_bayes.linear_gibbs_loss(z, 3.0) == pytest.approx(simulated, abs=4e-3)


def test_linear_bound_uses_the_best_length_and_the_factor_two():
    z, n, delta = np.random.default_rng(6).uniform(0.1, 0.9, 2000), 2000, 0.05
    k = np.arange(n + 1)
    xi = binom.pmf(k, n, k / n).sum()  # Maurer's: the mean of exp(n kl) if the loss is k/n

    def by_hand(mu):
        """The largest q with n kl(loss, q) <= mu^2 / 2 + ln(xi / delta), for weights N(mu w, I)."""
        p, paid = norm.sf(mu * z).mean(), (mu**2 / 2 + math.log(xi / delta)) / n
        return brentq(lambda q: entropy([p, 1 - p], [q, 1 - q]) - paid, p, 1 - 1e-12, xtol=1e-14)

    found = pac_bayes.linear_bound(z, delta)
    assert found.gibbs_bound == pytest.approx(by_hand(found.mu), rel=1e-7)
    best = min(by_hand(mu) for mu in np.linspace(0.5, 40, 300))
    assert best * (1 - 1e-3) <= found.gibbs_bound <= best * 1.002
    assert found.bound == pytest.approx(2 * by_hand(found.mu), rel=1e-7)
    assert found.bound < 0.2
    for mu in (0.5, 3.0, 20.0):
        assert pac_bayes.linear_bound(z, delta, mu=mu).gibbs_bound == pytest.approx(by_hand(mu), rel=1e-7)


def test_vote_bounds_by_hand():
    errors, rows = np.array([3, 5, 10]), np.array([100, 90, 120])
    w = np.array([0.5, 0.5, 0.0])
    paid = math.log(3) - math.log(2) + math.log(2 * math.sqrt(90) / 0.05)
    expected = 2 * kl_upper(0.5 * 0.03 + 0.5 * 5 / 90, paid / 90)
    assert pac_bayes.vote_bound(errors, rows, 0.05, weights=w) == pytest.approx(expected)
    even = 2 * kl_upper((3 / 100 + 5 / 90 + 10 / 120) / 3, math.log(2 * math.sqrt(90) / 0.05) / 90)
    assert pac_bayes.vote_bound(errors, rows, 0.05) == pytest.approx(even)
    pairs, counts = np.array([[3, 1], [1, 5]]), np.array([[100, 40], [40, 90]])
    rate = (3 / 100 + 5 / 90 + 2 / 40) / 4
    expected = min(1.0, 4 * kl_upper(rate, math.log(2 * math.sqrt(40) / 0.05) / 40))
    assert pac_bayes.tandem_bound(pairs, counts, 0.05) == pytest.approx(expected)
    pairs, counts = 10 * pairs, 100 * counts
    paid = 2 * (0.9 * math.log(1.8) + 0.1 * math.log(0.2)) + math.log(2 * math.sqrt(4000) / 0.05)
    rate = 0.81 * 0.003 + 0.01 * 5 / 900 + 0.18 * 10 / 4000
    expected = 4 * kl_upper(rate, paid / 4000)
    assert pac_bayes.tandem_bound(pairs, counts, 0.05, weights=[0.9, 0.1]) == pytest.approx(expected)


def test_a_vote_errs_at_most_at_twice_and_four_times_the_rates():
    """Markov's inequalities behind the two orders, on random finite distributions with ties as errors."""
    rng = np.random.default_rng(7)
    for _ in range(200):
        T, cells = 5, 8
        wrong, p = rng.random((T, cells)) < rng.random((T, 1)), rng.dirichlet(np.ones(cells))
        w = rng.dirichlet(np.ones(T))
        vote = p[(w @ wrong) >= 0.5].sum()
        assert vote <= 2 * w @ (wrong @ p) + 1e-12
        assert vote <= 4 * w @ ((wrong * p) @ wrong.T) @ w + 1e-12


def test_the_smaller_of_two_samples_dominates_the_moment():
    """E exp(n1 kl) <= 2 sqrt(n1) for n1 <= n rows, exact for coins."""
    for n, smaller in ((20, 7), (50, 50), (90, 30)):
        for p in (0.05, 0.3, 0.5):
            k = np.arange(n + 1)
            moment = sum(binom.pmf(j, n, p) * math.exp(smaller * kl(j / n, p)) for j in k)
            assert moment <= 2 * math.sqrt(smaller)
    ratios = [math.log(2 * math.sqrt(n)) / n for n in range(1, 500)]
    assert ratios == sorted(ratios, reverse=True)


def test_progressive_bounds_by_hand():
    losses = np.array([0.0, 1.0] + [0.0] * 198)
    mean, n = 1 / 200, 200
    assert sequential.progressive_hoeffding(losses, 0.05) == pytest.approx(mean + math.sqrt(math.log(20) / 400))
    paid = math.log(13 / 0.05) / n
    expected = min((1 - math.exp(-t * mean - paid)) / (1 - math.exp(-t)) for t in (2.0**j for j in range(-8, 5)))
    assert sequential.progressive_bound(losses, 0.05) == pytest.approx(expected, rel=1e-8)
    assert sequential.progressive_bound(losses, 0.05) < sequential.progressive_hoeffding(losses, 0.05)


def test_the_progressive_product_is_a_supermartingale():
    """Its mean by recursion, for a stream whose next risk depends on the losses so far; coins make it one."""
    t, rounds = 0.7, 8

    def mean(past):
        if len(past) == rounds:
            return 1.0
        risk = 0.1 + 0.8 * (sum(past) % 3) / 2
        factor = 1 - risk * (1 - math.exp(-t))
        hit = risk * math.exp(-t) / factor * mean((*past, 1))
        return hit + (1 - risk) / factor * mean((*past, 0))

    assert mean(()) == pytest.approx(1.0)


def test_cross_validation_bounds_by_hand():
    errors, m = np.array([3, 5, 1, 3, 8]), 40
    assert holdout.fold_hoeffding(errors, m, 0.05) == pytest.approx(0.1 + math.sqrt(math.log(20) / 80))
    assert kl(0.1, holdout.fold_kl(errors, m, 0.05)) == pytest.approx(math.log(maurer_xi(40) / 0.05) / 40)
    limits = [clopper_pearson_upper(int(k), m, 0.01) for k in errors]
    assert holdout.fold_binomial(errors, m, 0.05) == pytest.approx(np.mean(limits))


def test_pooling_the_folds_as_one_binomial_count_fails():
    """A minority learner has risk one half: the pooled interval breaks its promise, fold bounds do not."""
    rng = np.random.default_rng(8)
    n, K = 50, 10
    m, pooled, honest = n // K, 0, 0
    for _ in range(2000):
        y = rng.choice([-1, 1], n)
        errors = []
        for fold in np.split(np.arange(n), K):
            rest = np.delete(y, fold)
            label = -1 if rest.sum() > 0 else 1
            errors.append(int((y[fold] != label).sum()))
        pooled += clopper_pearson_upper(sum(errors), n, 0.05) < 0.5
        honest += holdout.fold_hoeffding(np.array(errors), m, 0.05) < 0.5
    assert pooled > 149
    assert honest <= 149


def test_conformal_coverage_is_exact_by_counting_orders():
    """The new score is equally likely to take any rank: coverage is j/(m+1), by enumeration of all orders."""
    for m, alpha in ((4, 0.25), (5, 0.2), (6, 0.2)):
        j = exchangeability.conformal_index(m, alpha)
        covered = [
            order[-1] <= exchangeability.threshold(order[:-1], j) for order in itertools.permutations(range(m + 1))
        ]
        assert np.mean(covered) == pytest.approx(j / (m + 1))
        assert 1 - alpha <= np.mean(covered) <= 1 - alpha + 1 / (m + 1) + 1e-12
        without = [
            order[-1] <= sorted(order[:-1])[math.ceil(m * (1 - alpha)) - 1]
            for order in itertools.permutations(range(m + 1))
        ]
        assert np.mean(without) < 1 - alpha  # the quantile without the +1 falls short


def test_conditional_coverage_has_the_beta_law():
    for j, m in ((18, 20), (95, 100), (29, 29)):
        value = exchangeability.conditional_coverage(j, m, 0.05)
        assert beta.cdf(value, j, m + 1 - j) == pytest.approx(0.05, rel=1e-6)
    rng = np.random.default_rng(9)
    thresholds = np.sort(rng.random((20_000, 30)), axis=1)[:, 27]  # uniform scores: coverage is the threshold
    assert np.mean(thresholds < exchangeability.conditional_coverage(28, 30, 0.05)) == pytest.approx(0.05, abs=0.008)


def test_conditional_index_is_the_smallest_that_works():
    for m, alpha in ((29, 0.1), (100, 0.1), (500, 0.05)):
        j = exchangeability.conditional_index(m, alpha, 0.05)
        assert binom.sf(j - 1, m, 1 - alpha) <= 0.05 < binom.sf(j - 2, m, 1 - alpha)
        assert exchangeability.conditional_coverage(j, m, 0.05) >= 1 - alpha - 1e-9
    for alpha, least in ((0.1, 29), (0.05, 59), (0.01, 299)):
        assert exchangeability.conditional_index(least, alpha, 0.05) == least
        with pytest.raises(ValueError, match="cannot promise"):
            exchangeability.conditional_index(least - 1, alpha, 0.05)


def test_jackknife_plus_by_its_definition():
    f, r = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 0.1, 0.2, 0.4])
    j = math.ceil(5 * 0.8)
    low, high = exchangeability.jackknife_plus(f, r, 0.2)
    assert high == sorted(f + r)[j - 1]
    assert low == sorted(f - r)[4 - j]


def test_population_bounds_by_hand():
    X = np.array([[0.6, 0.8], [1.0, 0.0], [0.0, -1.0], [0.5, 0.0]] * 50_000)
    n, root = len(X), math.sqrt(math.log(20) / (2 * len(X)))
    squares = np.array([1.0, 1.0, 1.0, 0.25] * 50_000)
    expected = 0.3 + 2 * 3 * (2 * math.sqrt(squares.sum()) / n + 0.5 / math.sqrt(n)) + 12 * root
    assert rademacher.kmeans_bound(X, 0.3, 3, 1.0, 0.05) == pytest.approx(expected, rel=1e-9)
    expected = 0.3 + 2 * math.sqrt((squares**2).sum()) / n + 3 * root
    assert rademacher.subspace_bound(X, 0.3, 1, 1.0, 0.05) == pytest.approx(expected, rel=1e-9)
    assert rademacher.subspace_bound(X[:4], 0.3, 1, 1.0, 0.05) == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stability.compression_bound(0, 5, 5, 0.05), "k must be less than n"),
        (lambda: stability.compression_bound(4, 5, 2, 0.05), "counted on the n - k = 3"),
        (lambda: stability.compression_bound(0, 50, 5, 0.05, largest=4), "exceeds the largest size"),
        (lambda: stability.stability_bound(2.0, 0.1, 10, 0.05), "loss must be"),
        (lambda: stability.uniform_stability(10, 0.0, 1.0), "strength must be"),
        (lambda: pac_bayes.gibbs_bound(0.1, -1.0, 10, 0.05), "divergence must be"),
        (lambda: pac_bayes.linear_bound([2.0], 0.05), "in \\[-1, 1\\]"),
        (lambda: pac_bayes.vote_bound([3], [2], 0.05), "0 <= errors <= rows"),
        (lambda: pac_bayes.vote_bound([1, 1], [5, 5], 0.05, weights=[0.5, 0.6]), "add up to 1"),
        (lambda: pac_bayes.tandem_bound([[1, 2], [0, 1]], [[9, 9], [9, 9]], 0.05), "symmetric"),
        (lambda: sequential.progressive_bound([2.0], 0.05), "losses must lie"),
        (lambda: holdout.fold_kl([1], 10, 0.05), "at least two integers"),
        (lambda: holdout.fold_kl([1, 11], 10, 0.05), "at least two integers"),
        (lambda: exchangeability.conformal_index(5, 0.1), "cannot promise"),
        (lambda: exchangeability.threshold([1.0, np.nan], 1), "numbers"),
        (lambda: exchangeability.threshold([1.0], 2), "j must lie"),
        (lambda: rademacher.kmeans_bound([[2.0]], 0.1, 1, 1.0, 0.05), "row 0 has a norm"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
