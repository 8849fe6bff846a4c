"""Boosting on histograms: published numbers, scikit-learn, brute force on small data, constraints, threads."""

import numpy as np
import pandas as pd
import pytest
from sklearn import ensemble as peers
from sklearn.datasets import load_breast_cancer, load_iris, make_friedman1
from sklearn.inspection import partial_dependence
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from assay.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from assay.ensemble._losses import Loss, weighted_quantile
from assay.tree import DecisionTreeRegressor
from assay.tree._nodes import tree_at

ALL = {"max_iter": 30, "random_state": 0}


def losses(model):
    """Return the mean training loss after each round."""
    return np.array([step.objective for step in model.history_])


@pytest.fixture(autouse=True)
def one_thread_for_peers():
    """Keep the peers' OpenMP threads from waiting for each other on a busy machine."""
    with threadpool_limits(1):
        yield


@pytest.mark.mission("ENS-26")
def test_example_of_li():
    x = np.arange(1.0, 11.0)[:, None]
    y = [5.56, 5.70, 5.91, 6.40, 6.80, 7.05, 8.90, 8.70, 9.00, 9.05]
    model = HistGradientBoostingRegressor(max_iter=6, learning_rate=1.0, max_leaf_nodes=2, min_samples_leaf=1).fit(x, y)
    assert 20 * losses(model) == pytest.approx([1.93, 0.80, 0.48, 0.31, 0.23, 0.17], abs=6e-3)
    assert 20 * losses(model)[-1] == pytest.approx(((y - model.predict(x)) ** 2).sum())


@pytest.mark.mission("ENS-26")
@pytest.mark.parametrize("seed", range(3))
def test_one_tree_is_the_exact_leaf_wise_tree(seed):
    """With as many bins as values, one tree on the squared loss is scikit-learn's, split by split."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 40, (600, 4)).astype(float)
    y = X[:, 0] * (X[:, 1] > 20) + 5 * rng.normal(size=600)
    own = HistGradientBoostingRegressor(max_iter=1, learning_rate=1.0, max_leaf_nodes=8).fit(X, y)
    other = peers.HistGradientBoostingRegressor(max_iter=1, learning_rate=1.0, max_leaf_nodes=8).fit(X, y)
    assert own.predict(X) == pytest.approx(other.predict(X), rel=1e-5)


@pytest.mark.mission("ENS-27")
def test_two_classes():
    X, y = load_breast_cancer(return_X_y=True)
    own = HistGradientBoostingClassifier(learning_rate=0.05, **ALL).fit(X[::2], y[::2])
    other = peers.HistGradientBoostingClassifier(learning_rate=0.05, max_iter=30).fit(X[::2], y[::2])
    ours, theirs = (log_loss(y[1::2], model.predict_proba(X[1::2])) for model in (own, other))
    assert ours == pytest.approx(theirs, rel=0.05)
    assert (np.diff(losses(own)) < 0).all()
    assert log_loss(y[::2], own.predict_proba(X[::2])) == pytest.approx(losses(own)[-1], rel=1e-6)
    assert own.decision_function(X)[0] == pytest.approx(np.log(own.predict_proba(X)[0, 1] / own.predict_proba(X)[0, 0]))


@pytest.mark.mission("ENS-28")
def test_three_classes():
    X, y = load_iris(return_X_y=True)
    model = HistGradientBoostingClassifier(**ALL).fit(X, y)
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(len(X)))
    assert (np.diff(losses(model)) < 0).all()
    assert model.score(X, y) > 0.97
    assert log_loss(y, model.predict_proba(X)) == pytest.approx(losses(model)[-1], rel=1e-5)


@pytest.mark.mission("ENS-29")
def test_first_values():
    y = np.array([0.0, 0.0, 1.0, 0.0])
    assert Loss("squared_error").start(y, None)[0] == 0.25
    assert Loss("log_loss").start(y, None)[0] == pytest.approx(np.log(0.25 / 0.75))
    assert Loss("exponential").start(y, None)[0] == pytest.approx(np.log(0.25 / 0.75) / 2)
    assert Loss("poisson").start(y, None)[0] == pytest.approx(np.log(0.25))
    assert Loss("absolute_error").start(np.array([1.0, 5.0, 9.0]), None)[0] == 5.0
    assert Loss("multinomial", 0.0, 2).start(y, None) == pytest.approx(np.log(3) / 2 * np.array([1, -1]))
    same = np.zeros((4, 1))  # no tree can part these rows
    assert HistGradientBoostingRegressor().fit(same, y).predict(same[:1])[0] == pytest.approx(0.25)
    model = HistGradientBoostingRegressor(loss="absolute_error").fit(same, [1.0, 2.0, 9.0, 2.0])
    assert model.predict(same[:1])[0] == 2.0
    model = HistGradientBoostingClassifier().fit(same, ["a", "a", "b", "a"], sample_weight=[1, 1, 2, 1])
    assert model.predict_proba(same[:1])[0] == pytest.approx([0.6, 0.4])


@pytest.mark.parametrize(
    "name",
    [
        "log_loss",
        "exponential",
        "poisson",
        "gamma",
        "squared_error",
        "absolute_error",
        "huber",
        "quantile",
        "multinomial",
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_derivatives_are_those_of_the_loss(name, weighted):
    rng = np.random.default_rng(0)
    K = 3 if name == "multinomial" else 1
    loss = Loss(name, 0.3, K)
    y = rng.integers(0, K if K > 1 else 2, 50).astype(float) + (name == "gamma")
    F, weight = rng.normal(size=(K, 50)) * 2, rng.uniform(0.5, 2, 50) if weighted else None
    spread = lambda work, items: [work(item) for item in items]  # noqa: E731
    total = 50.0 if weight is None else weight.sum()

    def value(scores):
        return loss.slopes(y, scores, weight, loss.buffers(50, weighted), spread).mean * total

    found = loss.slopes(y, F, weight, loss.buffers(50, weighted), spread)
    for k in range(K):
        for i in (0, 7, 49):
            up, down = F.copy(), F.copy()
            up[k, i], down[k, i] = F[k, i] + 1e-5, F[k, i] - 1e-5
            assert found.g[k, i] == pytest.approx((value(up) - value(down)) / 2e-5, abs=2e-4)
            if name in ("log_loss", "exponential", "poisson", "gamma", "multinomial"):
                assert found.h[k, i] == pytest.approx((value(up) + value(down) - 2 * value(F)) / 1e-10, abs=5e-3)


@pytest.mark.parametrize("loss", ["absolute_error", "huber", "quantile", "poisson"])
def test_other_losses_learn(loss):
    X, y = make_friedman1(800, random_state=0)
    y = np.round(np.abs(y))
    model = HistGradientBoostingRegressor(loss=loss, quantile=0.8, **ALL).fit(X, y)
    assert losses(model)[-1] < 0.5 * losses(model)[0]
    if loss == "quantile":
        assert np.mean(y <= model.predict(X)) == pytest.approx(0.8, abs=0.05)
    other = {"absolute_error": "absolute_error", "poisson": "poisson", "quantile": "quantile"}.get(loss)
    if other:
        more = {"quantile": 0.8} if loss == "quantile" else {}
        peer = peers.HistGradientBoostingRegressor(loss=other, max_iter=30, early_stopping=False, **more).fit(X, y)
        assert np.corrcoef(model.predict(X), peer.predict(X))[0, 1] > 0.98


def test_weighted_quantile_minimises():
    rng = np.random.default_rng(1)
    for level in (0.1, 0.5, 0.9):
        v, w = rng.normal(size=31), rng.integers(1, 5, 31).astype(float)

        def cost(q, v=v, w=w, level=level):
            return (w * np.where(v > q, level * (v - q), (1 - level) * (q - v))).sum()

        assert cost(weighted_quantile(v, w, level)) == pytest.approx(min(cost(q) for q in v))


def test_monotone_constraints_hold():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, 2))
    y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=3000)
    model = HistGradientBoostingRegressor(monotonic_cst=[1, -1], **ALL).fit(X, y)
    grid = np.linspace(0, 1, 200)
    for other in (0.1, 0.5, 0.9):
        assert (np.diff(model.predict(np.column_stack([grid, np.full(200, other)]))) >= -1e-12).all()
        assert (np.diff(model.predict(np.column_stack([np.full(200, other), grid]))) <= 1e-12).all()


def test_missing_and_nominal_values():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 12, 2000).astype(float)
    x = rng.normal(size=2000)
    x[rng.random(2000) < 0.3] = np.nan
    y = (np.isin(code, [1, 5, 7, 11]) ^ np.isnan(x)).astype(int)
    model = HistGradientBoostingClassifier(categorical_features=[0], **ALL).fit(np.column_stack([code, x]), y)
    assert model.score(np.column_stack([code, x]), y) == 1.0
    assert model.predict([[99.0, 0.0]]).shape == (1,)  # an unknown level is a missing value


def test_threads_and_rounds_change_no_bit():
    X, y = make_friedman1(5000, random_state=0)
    one, two = (HistGradientBoostingRegressor(subsample=0.7, n_jobs=k, **ALL).fit(X, y) for k in (1, 2))
    assert all(np.array_equal(one.trees_[name], two.trees_[name]) for name in one.trees_)
    whole = HistGradientBoostingRegressor(subsample=0.7, max_features=0.5, **ALL).fit(X, y)
    half = HistGradientBoostingRegressor(
        subsample=0.7, max_features=0.5, warm_start=True, **{**ALL, "max_iter": 10}
    ).fit(X, y)
    half.set_params(max_iter=30).fit(X, y)
    assert all(np.array_equal(half.trees_[name], whole.trees_[name]) for name in whole.trees_)
    assert list(whole.staged_predict(X))[-1] == pytest.approx(whole.predict(X))


def test_early_stopping():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1500, 5)), rng.integers(0, 2, 1500)
    model = HistGradientBoostingClassifier(max_iter=300, early_stopping=True, n_iter_no_change=5, random_state=0)
    model.fit(X, y)
    assert model.n_iter_ < 100
    assert len(model.validation_score_) == len(model.train_score_) == model.n_iter_ + 1


def test_quantised_sums_are_close_to_exact_ones():
    from assay.tree.growth import _hist_loops as loops

    rng = np.random.default_rng(0)
    n = 20_000
    g, h = rng.normal(size=n).astype(np.float32), rng.uniform(0, 1, n).astype(np.float32)
    bins = rng.integers(0, 256, (n, 8)).astype(np.uint8)
    entries, found = np.empty(n, dtype=np.int64), np.empty((3, 8 * 256), dtype=np.int64)
    top = float(np.abs(g).max())
    loops.pack_block(g, h, loops.LEVELS / top, 2 * loops.LEVELS, np.empty(0, dtype=np.int64), 0, n, 3, 0, entries)
    loops.histogram_rows(bins, 0, 8, entries, 0, n, found)
    for f in range(8):
        part = slice(256 * f, 256 * f + 256)
        assert np.array_equal(found[2, part], np.bincount(bins[:, f], minlength=256))
        assert found[0, part] * top / loops.LEVELS == pytest.approx(np.bincount(bins[:, f], g, 256), abs=0.05)
        assert found[1, part] / (2 * loops.LEVELS) == pytest.approx(np.bincount(bins[:, f], h, 256), abs=0.02)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_bins": 256}, "at most 255"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"monotonic_cst": [1]}, "monotonic_cst"),
    ],
)
def test_refusals(change, words):
    with pytest.raises(ValueError, match=words):
        HistGradientBoostingRegressor(**change).fit(*make_friedman1(50, random_state=0))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_rows_are_divided_in_their_order_and_the_smaller_side_is_summed(share, dtype):
    from assay.tree.growth._hist_loops import partition

    rng = np.random.default_rng(0)
    n, d, start, stop = 30_000, 5, 1_001, 28_000
    bins = rng.integers(0, 256, (n, 8)).astype(np.uint8)
    g, h = rng.integers(-2047, 2048, n), rng.integers(0, 4096, n)
    goes_left = (rng.random(256) < share).astype(np.uint8)
    entries = (rng.permutation(n).astype(np.int64) << 32) | (((g << 12) + h) & 0xFFFFFFFF)
    before = entries.copy()
    left = goes_left[bins[before[start:stop] >> 32, 3]] == 1
    small_left = bool(left.sum() <= (~left).sum())
    sums, scratch = np.full((3, d * 256), 7, dtype=dtype), np.full(stop // 2 + 5, -1, dtype=np.int64)
    base = start // 2 + 2
    boundary = partition(bins, bins[:, 3].copy(), goes_left, small_left, entries, scratch, base, start, stop, sums)
    assert boundary == start + left.sum()
    assert np.array_equal(entries[start:boundary], before[start:stop][left])
    assert np.array_equal(entries[boundary:stop], before[start:stop][~left])
    assert np.array_equal(entries[:start], before[:start])
    assert np.array_equal(entries[stop:], before[stop:])
    assert (scratch[:base] == -1).all()
    assert (scratch[base + min(left.sum(), (~left).sum()) + 1 :] == -1).all()
    small = before[start:stop][left == small_left]
    packed = (small & 0xFFFFFFFF).astype(np.uint32).astype(np.int32).astype(np.int64)
    for column in range(d):
        at = bins[small >> 32, column]
        for k, values in enumerate((packed >> 12, packed & 4095, np.ones(len(small)))):
            assert np.array_equal(sums[k, 256 * column : 256 * column + 256], np.bincount(at, values, 256))


@pytest.mark.parametrize("nominal", [None, [3]])
def test_boosting_follows_its_thresholds(nominal):
    """The walk on derived bins is the walk by the node arrays, for values on and beside every threshold."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 4))
    X[:, 3] = rng.integers(0, 5, 3_000)
    X[rng.random(X.shape) < 0.05] = np.nan
    model = HistGradientBoostingRegressor(max_iter=40, categorical_features=nominal, random_state=0)
    model.fit(X, np.nan_to_num(X[:, 0] * X[:, 1]) + np.nan_to_num(X[:, 3]))
    edges = model.node_threshold_[(model.node_child_ >= 0) & (model.node_table_ < 0)]
    picked = rng.choice(np.concatenate([edges, np.nextafter(edges, np.inf), [np.nan]]), size=(300, 4))
    picked[:, 3] = rng.integers(0, 5, 300) if nominal else picked[:, 3]
    expected = np.full(300, model.base_score_[0])
    nodes = model.nodes_
    for i, row in enumerate(picked):
        for at in nodes.root:
            while nodes.child[at] >= 0:
                x = row[nodes.column[at]]
                if np.isnan(x):
                    branch = nodes.missing[at]
                elif nodes.table[at] >= 0:
                    branch = nodes.tables[nodes.table[at], int(x)]
                else:
                    branch = int(x > nodes.threshold[at])
                at = nodes.child[at] + branch
            expected[i] += nodes.value[at, 0]
    assert model.predict(picked) == pytest.approx(expected, rel=1e-12)
    many = np.sort(rng.normal(size=len(nodes.child)))  # more thresholds than bins of one byte can tell apart
    model.node_threshold_ = many
    trees = [tree_at(model.nodes_, t) for t in range(len(model.tree_root_))]
    sums = sum(DecisionTreeRegressor().restored(tree, model, 4).predict(picked) for tree in trees)
    assert model.predict(picked) == pytest.approx(model.base_score_[0] + sums, rel=1e-12)


def rare_classes(seed=0, n=3_000):
    """Seven classes, the rarest with three rows in a thousand."""
    rng = np.random.default_rng(seed)
    share = np.array([0.36, 0.49, 0.06, 0.003, 0.017, 0.03, 0.04])
    y = rng.choice(7, n, p=share)
    return rng.normal(size=(n, 10)) + 0.9 * rng.normal(size=(7, 10))[y], y


@pytest.mark.parametrize("seed", [0, 2, 4])
def test_rare_classes_do_not_throw_the_fit_away(seed):
    """Leaves of rare classes have almost no curvature: Newton's full steps raised the loss to 1e5 and far beyond."""
    X, y = rare_classes(seed)
    model = HistGradientBoostingClassifier(learning_rate=0.3, max_iter=60, random_state=0).fit(X, y)
    assert (np.diff(losses(model)) < 0).all()
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("name", ["log_loss", "exponential", "poisson", "gamma"])
def test_no_step_raises_the_loss_of_a_leaf(name):
    """Brute force over leaves of two or three rows with scores far off: the step held back never raises the loss."""
    rng = np.random.default_rng(0)
    loss, spread = Loss(name), lambda work, items: [work(item) for item in items]
    for _ in range(300):
        y = rng.integers(0, 2, 3).astype(float) + (name == "gamma")
        F = rng.normal(scale=rng.choice([1.0, 5.0, 12.0]), size=(1, 3))
        at = loss.slopes(y, F, None, loss.buffers(3, False, np.float64), spread)
        value = -at.g.sum() / at.h.sum()
        for rate in (0.1, 0.5, 1.0):
            moved = loss.slopes(y, F + loss.held_back(value, rate), None, loss.buffers(3, False, np.float64), spread)
            assert moved.mean <= at.mean * (1 + 1e-12) + 1e-12


def test_a_part_of_one_class_to_fit_to():
    """With two rows of a class and most rows kept for validation, the part to fit to may lack it."""
    model = HistGradientBoostingClassifier(
        early_stopping=True, validation_fraction=0.8, min_samples_leaf=1, random_state=0
    )
    model.fit([[1.0]] * 10, [0, 0] + [1] * 8)
    assert np.isfinite(model.predict_proba([[1.0]])).all()


def test_interactions_and_categories():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1_500, 3))
    y = X[:, 0] + X[:, 1] + 5 * X[:, 0] * X[:, 1]
    model = HistGradientBoostingRegressor(interaction_cst=[[0], [1, 2]], **ALL).fit(X, y)
    grid = X[(X[:, :2] < 0.75).all(axis=1)]
    steps = [model.predict(grid + step) for step in ([0, 0, 0], [0.25, 0, 0], [0, 0.25, 0], [0.25, 0.25, 0])]
    assert steps[0] + steps[3] == pytest.approx(steps[1] + steps[2], abs=1e-9)
    with pytest.raises(ValueError, match="Categorical features cannot have monotonic"):
        HistGradientBoostingRegressor(categorical_features=[0], monotonic_cst=[1, 0, 0]).fit(np.round(X * 5), y)


def test_infinite_values_are_values():
    X = np.array([[-np.inf], [0.0], [1.0], [np.inf], [np.nan]])
    for target in (np.isnan(X[:, 0]), X[:, 0] == np.inf, X[:, 0] == -np.inf):
        model = HistGradientBoostingClassifier(min_samples_leaf=1, max_iter=1, learning_rate=1.0).fit(X, target)
        assert model.score(X, target) == 1.0
        with pytest.raises(ValueError, match="infinity"):
            model.certify(X, target)


@pytest.mark.parametrize("words", [True, False], ids=["words", "numbers"])
def test_partial_dependence_by_recursion_has_the_steps_of_brute_force(words):
    """Of trees that each read one column, both averages differ by a constant alone."""
    rng = np.random.default_rng(0)
    level, number = rng.integers(0, 4, 400), rng.normal(size=400)
    first = np.array(["ash", "elm", "fir", "oak"])[level] if words else level.astype(float)
    frame = pd.DataFrame({"a": pd.Categorical(first), "b": number})
    given = {"categorical_features": "from_dtype"} if words else {"categorical_features": [0]}
    rows = frame if words else np.column_stack([first, number])
    model = HistGradientBoostingRegressor(max_iter=20, interaction_cst="no_interactions", **given)
    model.fit(rows, 3.0 * (level % 2) + number)
    names = ["a", "b"] if words else [0, 1]
    for name in names:
        own, brute = (
            partial_dependence(model, rows, [name], method=how, categorical_features=names[:1], grid_resolution=6)
            for how in ("recursion", "brute")
        )
        np.testing.assert_allclose(np.diff(own["average"][0]), np.diff(brute["average"][0]), atol=1e-9)
    both = partial_dependence(model, rows, names, method="recursion", categorical_features=names[:1])
    assert both["average"].shape[1] == 4
