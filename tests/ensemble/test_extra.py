"""Extremely randomised trees: thresholds against brute force, their distribution, scikit-learn's quality, threads."""

from math import log

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn import ensemble as peer
from sklearn.datasets import make_classification

from assay.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from assay.tree.growth._extra_loops import grow_extra
from assay.tree.growth._records import Limits, target_of

RNG = np.random.default_rng(0)
N = 1300  # more than two blocks of rows
X = np.column_stack([RNG.normal(size=(N, 4)), RNG.integers(0, 2, N), np.full(N, 3.0)])
WEIGHT = RNG.uniform(0.5, 2.0, N)
NUMBERS = np.maximum(0.0, X[:, 0] + X[:, 1] + X[:, 2] * X[:, 3] + RNG.normal(size=N))
CLASSES = np.digitize(NUMBERS, [0.2, 1.0]).astype(float)


def uniforms(seed, count):
    """SplitMix64 in whole numbers: the upper 53 bits of each draw, over 2^53."""
    mask, found = 2**64 - 1, []
    for i in range(1, count + 1):
        z = (seed + i * 0x9E3779B97F4A7C15) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        found.append(((z ^ (z >> 31)) >> 11) / 2**53)
    return found


def impurity(y, w, criterion):
    """Return impurity times weight, from its definition."""
    if criterion in ("gini", "entropy"):
        shares = [w[y == k].sum() / w.sum() for k in np.unique(y)]
        return w.sum() * (
            sum(p * (1 - p) for p in shares) if criterion == "gini" else -sum(p * np.log2(p) for p in shares)
        )
    mean = np.average(y, weights=w)
    if criterion == "poisson":
        return -sum(w * y) * log(mean) if mean > 0 else np.inf  # a mean of 0 is no Poisson mean
    return (w * (y - mean) ** 2).sum()


def grown(y, criterion, seed, most=6, **limits):
    classes = [3] if criterion in ("gini", "entropy") else []
    target = target_of(y, WEIGHT, np.array(classes), criterion)
    rows = np.arange(N).astype(np.uint64)
    return grow_extra(X, target, rows, Limits(max_features=most, **limits).record(6), np.uint64(seed))


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
@pytest.mark.parametrize("least", [1, 200])
def test_the_threshold_taken_has_the_largest_decrease_of_those_drawn(criterion, least):
    y = CLASSES if criterion in ("gini", "entropy") else NUMBERS
    chosen = set()
    for seed in range(12):
        drawn = [low + (high - low) * u for low, high, u in zip(X.min(0), X.max(0), uniforms(seed, 5))]
        decrease = []
        for f, t in enumerate(drawn):
            left = X[:, f] <= t
            allowed = min(left.sum(), N - left.sum()) >= least
            after = sum(impurity(y[part], WEIGHT[part], criterion) for part in (left, ~left)) if allowed else np.inf
            decrease.append(impurity(y, WEIGHT, criterion) - after)
        nodes, _ = grown(y, criterion, seed, max_depth=1, min_samples_leaf=least)
        best = int(np.argmax(decrease))
        assert nodes["column"][0] == best
        assert nodes["threshold"][0] == pytest.approx(drawn[best], rel=1e-12)
        purity = nodes["purity"]
        assert purity[1] + purity[2] - purity[0] == pytest.approx(decrease[best], rel=1e-8)
        chosen.add(best)
    assert len(chosen) > 1


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
def test_of_several_outputs_the_mean_decrease_counts(criterion):
    classes = [3, 2] if criterion in ("gini", "entropy") else []
    other = np.digitize(X[:, 3], [0.0]).astype(float) if classes else np.abs(X[:, 3]) + 0.1
    Y = np.column_stack([CLASSES if classes else NUMBERS + 0.1, other])
    chosen = set()
    for seed in range(8):
        drawn = [low + (high - low) * u for low, high, u in zip(X.min(0), X.max(0), uniforms(seed, 5))]

        def total(part):
            return sum(impurity(y[part], WEIGHT[part], criterion) for y in Y.T) / 2

        every = np.ones(N, dtype=bool)
        decrease = [total(every) - total(X[:, f] <= t) - total(X[:, f] > t) for f, t in enumerate(drawn)]
        target = target_of(Y, WEIGHT, np.array(classes), criterion)
        rows, limits = np.arange(N).astype(np.uint64), Limits(max_depth=1).record(6)
        nodes, sums = grow_extra(X, target, rows, limits, np.uint64(seed))
        best, purity = int(np.argmax(decrease)), nodes["purity"]
        assert nodes["column"][0] == best
        assert purity[1] + purity[2] - purity[0] == pytest.approx(decrease[best], rel=1e-8)
        left = X[:, best] <= nodes["threshold"][0]
        if not classes:
            assert sums[1] == pytest.approx([WEIGHT[left].sum(), *(WEIGHT[left] @ Y[left])])
        chosen.add(best)
    assert len(chosen) > 1


@pytest.mark.parametrize("outputs", [1, 2])
def test_several_outputs_and_sparse_rows_are_learnt_as_well_as_scikit_learn_learns_them(outputs):
    thin = sp.random(3_000, 40, 0.1, format="csr", random_state=0)
    signal = np.asarray(thin @ RNG.normal(size=(40, outputs))) + 0.1 * RNG.normal(size=(3_000, outputs))
    labels = (signal > 0).astype(int) if outputs > 1 else (signal[:, 0] > 0).astype(int)
    for rows in (thin, thin.toarray()):
        for own, other, target in (
            (ExtraTreesClassifier, peer.ExtraTreesClassifier, labels),
            (ExtraTreesRegressor, peer.ExtraTreesRegressor, signal if outputs > 1 else signal[:, 0]),
        ):
            scores = [
                np.mean([
                    make(15, random_state=s, min_samples_leaf=2).fit(rows[:2_000], target[:2_000])
                    .score(rows[2_000:], target[2_000:]) for s in range(3)
                ]) for make in (own, other)
            ]  # fmt: skip
            assert scores[0] > scores[1] - 0.03


def test_thresholds_of_sparse_rows_are_drawn_evenly_over_columns_and_values():
    dense = np.zeros((40, 3))
    dense[[0, 1], 0], dense[[2, 3, 4], 1], dense[[0, 5], 2] = (-2.0, 4.0), (1.0, 2.0, 3.0), (-1.0, 1.0)
    y = np.arange(40) % 2
    roots = [[tree_of(rows, y, seed) for seed in range(600)] for rows in (sp.csr_matrix(dense), dense)]
    thin, full = (np.array(found) for found in roots)
    assert stats.chi2_contingency([np.bincount(a[:, 0].astype(int), minlength=3) for a in (thin, full)]).pvalue > 0.001
    for f in range(3):
        assert stats.ks_2samp(*(a[a[:, 0] == f, 1] for a in (thin, full))).pvalue > 0.001


def tree_of(rows, y, seed):
    """Return column and threshold of the root of a tree that draws one column."""
    model = ExtraTreesRegressor(1, max_depth=1, max_features=1, random_state=seed, n_jobs=1).fit(rows, y.astype(float))
    tree = model.trees_
    return tree["column"][0], tree["threshold"][0]


def test_friedmans_criterion_chooses_like_squared_error():
    # W_l W_r / W (mean_l - mean_r)^2 is the decrease of the weighted squared error
    for seed in range(5):
        one, other = (grown(NUMBERS, c, seed, most=2, max_depth=3) for c in ("squared_error", "friedman_mse"))
        assert np.array_equal(one[0]["column"], other[0]["column"])
        assert np.array_equal(one[0]["threshold"], other[0]["threshold"])


def test_every_node_holds_the_rows_that_reach_it():
    nodes, sums = grown(NUMBERS, "squared_error", 5, most=2, min_samples_leaf=4)
    column, threshold, child, squares = (nodes[name] for name in ("column", "threshold", "child", "squares"))
    members = {0: np.arange(N)}
    for node in range(len(child)):
        of = members[node]
        assert sums[node] == pytest.approx([WEIGHT[of].sum(), WEIGHT[of] @ NUMBERS[of]], abs=1e-9)
        assert squares[node] == pytest.approx(WEIGHT[of] @ NUMBERS[of] ** 2, abs=1e-9)
        assert len(of) >= 4
        if child[node] >= 0:
            x = X[of, column[node]]
            assert x.min() <= threshold[node] < x.max()
            members[child[node]], members[child[node] + 1] = of[x <= threshold[node]], of[x > threshold[node]]
    assert len(child) > 100
    assert not (column == 5).any()


def test_thresholds_are_uniform_and_ties_are_broken_evenly():
    x, two = np.array([[-1.0], [0.0], [5.0]]), np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])

    def root(x, y, seed):
        rows = np.arange(len(x)).astype(np.uint64)
        target = target_of(y, None, np.array([2]), "gini")
        return grow_extra(x, target, rows, Limits(max_depth=1).record(x.shape[1]), np.uint64(seed))[0][0]

    thresholds = [root(x, np.array([0.0, 1.0, 0.0]), seed * 7919)["threshold"] for seed in range(1000)]
    assert stats.kstest(thresholds, stats.uniform(-1, 6).cdf).pvalue > 0.001
    columns = [root(two, np.array([0.0, 1.0]), seed * 7919)["column"] for seed in range(1500)]
    assert stats.chisquare(np.bincount(columns, minlength=3)).pvalue > 0.001


def test_values_at_the_ends_of_the_numbers_are_parted():
    huge = np.array([[-1.7e308], [-1.6e308], [1.6e308], [1.7e308]])
    for model in (ExtraTreesClassifier(5, random_state=0), ExtraTreesRegressor(5, random_state=0)):
        assert np.array_equal(model.fit(huge, [0, 1, 0, 1]).predict(huge), [0, 1, 0, 1])


def test_quality_beside_scikit_learn_on_many_rows():
    X, y = make_classification(24_000, 20, n_informative=8, flip_y=0.05, random_state=0)
    z = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + RNG.normal(size=len(X)) / 2
    pairs = (
        (ExtraTreesClassifier, peer.ExtraTreesClassifier, y, 0.01),
        (ExtraTreesRegressor, peer.ExtraTreesRegressor, z, 0.01),
    )
    for own, other, target, gap in pairs:
        ours, theirs = (
            np.mean(
                [
                    make(20, random_state=s, n_jobs=2).fit(X[:8000], target[:8000]).score(X[8000:], target[8000:])
                    for s in range(2)
                ]
            )
            for make in (own, other)
        )
        assert ours > theirs - gap


def test_the_forest_is_the_same_for_any_number_of_threads():
    for make, y in ((ExtraTreesClassifier, CLASSES), (ExtraTreesRegressor, NUMBERS)):
        one, two = (make(6, bootstrap=True, random_state=4, n_jobs=jobs).fit(X, y).trees_ for jobs in (1, 2))
        assert all(np.array_equal(one[name], two[name]) for name in one)
