"""Tables, gaps, numbers, frames, prediction: against counting, closed forms, enumeration and scikit-learn."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import multivariate_normal
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from assay.bayes_net import BayesianNetwork, BayesianNetworkClassifier, ChowLiu
from tests.bayes_net.networks import burglary, drawn, joint, random_network

EDGES = [("burglary", "alarm"), ("earthquake", "alarm"), ("alarm", "john"), ("alarm", "mary")]


def with_gaps(X, share, seed=0):
    Y = X.astype(float)
    Y[np.random.default_rng(seed).random(Y.shape) < share] = np.nan
    return Y


class TestTables:
    @pytest.mark.mission("BAY-30")
    def test_relative_frequencies_have_the_largest_likelihood(self):
        X = drawn(4, 0)
        model = BayesianNetwork([(0, 2), (1, 2), (2, 3)], alpha=0.0, nominal="all").fit(X)
        table = model.network_.tables[2]
        for config in np.ndindex(*table.shape[:-1]):
            inside = np.all(X[:, :2] == config, axis=1)
            if inside.any():
                assert table[config] == pytest.approx(
                    np.bincount(X[inside, 2], minlength=table.shape[-1]) / inside.sum()
                )
        rng, best = np.random.default_rng(0), model.log_likelihood(X)
        for _ in range(50):
            noisy = [
                0.95 * one + 0.05 * rng.dirichlet(np.ones(one.shape[-1]), one.shape[:-1])
                for one in model.network_.tables
            ]
            other = type(model.network_)(
                model.network_.names, model.network_.states, model.network_.parents, tuple(noisy)
            )
            assert other.log_joint(X).sum() < best

    @pytest.mark.mission("BAY-30")
    def test_smoothing_and_what_was_never_seen(self):
        X = np.array([[0, 0], [0, 0], [1, 1], [2, 1]])
        table = BayesianNetwork([(0, 1)], alpha=1.0, nominal="all").fit(X).network_.tables[1]
        assert table == pytest.approx(np.array([[3 / 4, 1 / 4], [1 / 3, 2 / 3], [1 / 3, 2 / 3]]))
        plain = BayesianNetwork([(0, 1)], alpha=0.0, nominal="all").fit(X)
        assert plain.score_samples([[0, 1]]) == -np.inf
        assert plain.score_samples([[7, 1]]) == pytest.approx(np.log(0.5))  # a value that is not known is a gap
        both = BayesianNetwork([(0, 2), (1, 2)], alpha=0.0, nominal="all").fit([[0, 0, 0], [1, 1, 1], [1, 1, 0]])
        assert both.network_.tables[2][0, 1] == pytest.approx([0.5, 0.5])  # parents that were never seen together
        assert not np.isnan(both.predict_column_proba([[0, 1, 0], [1, 0, 0]], 2)).any()

    @pytest.mark.mission("BAY-24", "BAY-25")
    def test_likelihood_is_the_sum_over_rows(self):
        X = burglary().sample(500, random_state=1)
        frame = pd.DataFrame(np.array(["yes", "no"])[X.astype(int)], columns=burglary().names)
        model = BayesianNetwork(EDGES).fit(frame)
        total = 0.0
        for row in frame.to_dict("records"):
            for name, above in zip(model.network_.names, model.network_.parents):
                known = {model.network_.names[one]: row[model.network_.names[one]] for one in above}
                total += np.log(model.infer(name, known)[row[name]])
        assert model.log_likelihood(frame) == pytest.approx(total, rel=1e-10)
        assert model.score(frame) == pytest.approx(total / 500, rel=1e-10)

    def test_a_known_network_is_learnt_back(self):
        net = burglary()
        X = net.sample(200_000, random_state=0).astype(int)
        model = BayesianNetwork([(0, 2), (1, 2), (2, 3), (2, 4)], alpha=0.0, nominal="all").fit(X)
        assert model.n_parameters() == 10
        assert model.network_.tables[3] == pytest.approx(net.tables[3], abs=0.05)
        assert model.network_.tables[0] == pytest.approx(net.tables[0], abs=5e-4)

    @pytest.mark.mission("BAY-37")
    def test_samples_come_back_as_values(self):
        X = np.array([[10.0, -1.0], [10.0, -1.0], [20.0, 3.5], [20.0, 3.5]])
        model = BayesianNetwork([(0, 1)], alpha=0.0, nominal="all").fit(X)
        assert {tuple(row) for row in model.sample(50, random_state=0).tolist()} == {(10.0, -1.0), (20.0, 3.5)}


class TestGaps:
    @pytest.mark.mission("LAT-05")
    def test_without_gaps_em_is_counting(self):
        from assay.bayes_net._gaps import NetworkWithGaps
        from assay.optim.em import em

        X = random_network(4, 1).sample(300, random_state=1)
        for alpha in (0.0, 1.0):
            counted = BayesianNetwork([(0, 1), (1, 2), (0, 3)], alpha=alpha, nominal="all").fit(X)
            start = [np.full(one.shape, 1 / one.shape[-1]) for one in counted.network_.tables]
            found = em(NetworkWithGaps(counted.network_, X, alpha), start, tol=1e-9, max_iter=50)
            assert found.history[1:] == pytest.approx([found.history[1]] * found.n_iter, rel=1e-14)
            for one, other in zip(found.parameters, counted.network_.tables):
                assert one == pytest.approx(other, abs=1e-14)

    @pytest.mark.mission("LAT-05")
    @pytest.mark.parametrize("alpha", [0.0, 1.0])
    def test_likelihood_never_falls_and_ends_at_a_maximum(self, alpha):
        net = random_network(5, 3)
        X = with_gaps(net.sample(800, random_state=0), 0.25)
        edges = [(one, child) for child, above in enumerate(net.parents) for one in above]
        model = BayesianNetwork(edges, alpha=alpha, tol=1e-9, nominal="all").fit(X)
        assert np.all(np.diff(model.em_history_) >= -1e-9)
        if alpha:
            return
        best, rng = model.log_likelihood(X), np.random.default_rng(0)
        net = model.network_
        for _ in range(20):  # no table nearby is better
            noise = [rng.dirichlet(np.ones(one.shape[-1]), one.shape[:-1]) for one in net.tables]
            tables = tuple(0.999 * one + 0.001 * other for one, other in zip(net.tables, noise))
            model._network = alpha, type(net)(net.names, net.states, net.parents, tables)
            assert model.log_likelihood(X) <= best + 1e-6

    @pytest.mark.mission("LAT-05")
    def test_tables_are_recovered_from_rows_with_gaps(self):
        net = random_network(4, 5)
        X = net.sample(20_000, random_state=0)
        edges = [(one, child) for child, above in enumerate(net.parents) for one in above]
        whole, gaps = (BayesianNetwork(edges, nominal="all").fit(rows) for rows in (X, with_gaps(X, 0.2)))
        for one, other in zip(whole.network_.tables, gaps.network_.tables):
            assert one == pytest.approx(other, abs=0.06)

    def test_probability_of_what_is_known_is_a_sum_of_the_joint(self):
        net = random_network(6, 2)
        X = net.sample(400, random_state=0)
        model = BayesianNetwork([(a, b) for b, above in enumerate(net.parents) for a in above], nominal="all").fit(X)
        table = joint(model.network_)
        for row in with_gaps(X[:40], 0.5):
            cut = tuple(slice(None) if np.isnan(v) else int(v) for v in row)
            assert model.score_samples([row])[0] == pytest.approx(np.log(table[cut].sum()), abs=1e-11)

    def test_large_groups_of_gaps_go_through_a_junction_tree(self, monkeypatch):
        from assay.bayes_net import _gaps

        net = random_network(6, 4)
        X = with_gaps(net.sample(200, random_state=0), 0.5)
        model = BayesianNetwork([(a, b) for b, above in enumerate(net.parents) for a in above], nominal="all").fit(X)
        problem = _gaps.NetworkWithGaps(model.network_, X, 1.0)
        listed, told = problem.e_step(model.network_.tables), model.score_samples(X)
        monkeypatch.setattr(_gaps, "_MOST_CELLS", 1)
        by_tree = problem.e_step(model.network_.tables)
        assert by_tree.log_likelihood == pytest.approx(listed.log_likelihood, rel=1e-12)
        for one, other in zip(by_tree.statistics, listed.statistics):
            assert one == pytest.approx(other, abs=1e-9)
        assert model.score_samples(X) == pytest.approx(told, abs=1e-10)

    def test_structure_is_learnt_from_rows_without_gaps(self):
        X = random_network(5, 1).sample(1500, random_state=0)
        Y = with_gaps(X, 0.05)
        whole = ~np.isnan(Y).any(axis=1)
        gaps, complete = BayesianNetwork(nominal="all").fit(Y), BayesianNetwork(nominal="all").fit(X[whole])
        assert gaps.edges == complete.edges
        with pytest.raises(ValueError, match="fewer than 2 rows have no gaps"):
            BayesianNetwork(nominal="all").fit([[0, np.nan], [np.nan, 1], [1, 1]])
        with pytest.raises(ValueError, match="has no value"):
            BayesianNetwork(nominal="all").fit([[0, np.nan], [1, np.nan], [1, np.nan]])

    def test_a_number_with_gaps_is_a_leaf_that_is_learnt_from_the_rows_that_have_it(self):
        rng = np.random.default_rng(0)
        kind = rng.integers(0, 2, 500)
        X = np.column_stack([kind, rng.normal(size=500) + 2 * kind, rng.normal(size=500)])
        X[:, 2] += X[:, 1]
        gaps = X.copy()
        gaps[::7, 2] = np.nan
        model = BayesianNetwork([(0, 1), (0, 2), (1, 2)], nominal=[0]).fit(gaps)
        only = BayesianNetwork([(0, 1), (0, 2), (1, 2)], nominal=[0]).fit(X[~np.isnan(gaps[:, 2])])
        assert model.network_.tables[2] == pytest.approx(only.network_.tables[2])
        known = BayesianNetwork([(0, 1)], nominal=[0]).fit(X[:, :2])
        assert model.score_samples(gaps)[::7] == pytest.approx(known.score_samples(X[:, :2])[::7])
        turned = gaps[:, [0, 2, 1]]
        with pytest.raises(ValueError, match="'x1' has gaps and is a parent of the number 'x2'"):
            BayesianNetwork([(1, 2)], nominal=[0]).fit(turned)
        assert (1, 2) not in map(tuple, BayesianNetwork(nominal=[0]).fit(turned).edges_.tolist())
        with pytest.raises(ValueError, match="NaN in 'x1', a column of numbers that had none in fit"):
            model.score_samples([[0, np.nan, 1.0]])

    def test_gaps_in_states_and_numbers_together(self):
        rng = np.random.default_rng(1)
        a = rng.integers(0, 2, 800)
        X = np.column_stack([a, np.where(rng.random(800) < 0.9, a, 1 - a), rng.normal(size=800) + 3 * a])
        model = BayesianNetwork([(0, 1), (0, 2)], nominal=[0, 1]).fit(
            np.where(rng.random(X.shape) < [0.0, 0.2, 0.2], np.nan, X)
        )
        assert np.all(np.diff(model.em_history_) >= -1e-9)
        assert model.network_.tables[2][:, 0] == pytest.approx([0, 3], abs=0.2)
        rows = np.array([[0, np.nan, np.nan], [np.nan, 1, 2.5], [np.nan, np.nan, 2.5]])
        net = model.network_
        told = [net.log_evidence({"x0": 0}), net.log_evidence({"x1": 1, "x2": 2.5}), net.log_evidence({"x2": 2.5})]
        assert model.score_samples(rows) == pytest.approx(told, abs=1e-12)


class TestNumbers:
    def test_a_full_gaussian_network_is_the_multivariate_normal(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4)) + [1, 2, 3, 1e3]
        edges = [(i, j) for j in range(4) for i in range(j)]
        model = BayesianNetwork(edges).fit(X)
        normal = multivariate_normal(X.mean(axis=0), np.cov(X.T, bias=True))
        assert model.score_samples(X) == pytest.approx(normal.logpdf(X), abs=1e-6)
        assert model.n_parameters() == 4 + 10  # means and covariance
        f = np.log(200) / 2
        assert model.score_ == pytest.approx(f * 14 - normal.logpdf(X).sum(), rel=1e-9)

    def test_the_structure_of_numbers_is_found(self):
        rng = np.random.default_rng(1)
        a, b = rng.normal(size=(2, 3000))
        X = np.column_stack([a, b, a + b + rng.normal(size=3000), rng.normal(size=3000)])
        assert sorted(BayesianNetwork().fit(X).edges) == [("x0", "x2"), ("x1", "x2")]

    def test_states_above_numbers(self):
        rng = np.random.default_rng(2)
        kind = rng.integers(0, 2, 4000)
        size = np.where(kind == 1, 3.0, 0.0) + rng.normal(size=4000)
        weight = np.where(kind == 1, 2.0, -1.0) * size + 0.5 * rng.normal(size=4000)
        frame = pd.DataFrame({"weight": weight, "size": size, "kind": np.array(["a", "b"])[kind]})
        model = BayesianNetwork().fit(frame)
        assert set(model.edges) >= {("kind", "size"), ("kind", "weight")}
        given = BayesianNetwork([("kind", "size"), ("kind", "weight"), ("size", "weight")]).fit(frame)
        assert given.network_.tables[0] == pytest.approx(np.array([[0.0, -1.0, 0.5], [0.0, 2.0, 0.5]]), abs=0.12)
        assert np.mean(given.predict_column(frame, "kind") == frame["kind"]) > 0.95
        with pytest.raises(ValueError, match="turn the edge round"):
            BayesianNetwork([("size", "kind")]).fit(frame)

    def test_constant_columns_and_few_rows_are_never_nan(self):
        X = np.column_stack([np.ones(6), [0, 0, 1, 1, 2, 2], np.arange(6.0)])
        model = BayesianNetwork([(1, 2), (1, 0), (0, 2)], nominal=[1]).fit(X)
        assert np.isfinite(model.score_samples(X)).all()
        assert np.isfinite(BayesianNetwork(nominal=[1]).fit(X).score_samples(X)).all()


class TestFrames:
    def frame(self):
        rng = np.random.default_rng(0)
        a = rng.integers(0, 3, 500)
        b = (a + (rng.random(500) < 0.1)) % 3
        return {"a": np.array(["x", "y", "z"])[a], "b": np.array(["u", "v", "w"])[b], "c": rng.random(500) < 0.5}

    def test_pandas_polars_and_codes_agree(self):
        columns = self.frame()
        one, two = BayesianNetwork().fit(pd.DataFrame(columns)), BayesianNetwork().fit(pl.DataFrame(columns))
        codes = np.column_stack([np.unique(column, return_inverse=True)[1] for column in columns.values()])
        three = BayesianNetwork(nominal="all").fit(codes)
        assert one.edges == two.edges
        assert np.array_equal(one.edges_, three.edges_)
        assert np.array_equal(one.counts_, three.counts_)
        assert np.array_equal(one.score_samples(pd.DataFrame(columns)), three.score_samples(codes))
        assert np.array_equal(one.codes(pl.DataFrame(columns)), codes)

    @pytest.mark.mission("BAY-38")
    def test_a_column_is_predicted_from_the_others(self):
        frame = pd.DataFrame(self.frame())
        model = BayesianNetwork().fit(frame)
        told = model.predict_column_proba(frame, "b")
        for k in range(5):
            row = frame.iloc[k]
            answer = model.infer("b", {"a": row["a"], "c": str(row["c"])})
            assert told[k] == pytest.approx(answer.table, abs=1e-12)
        assert np.mean(model.predict_column(frame, "b") == frame["b"]) > 0.85

    def test_parquet(self, tmp_path):
        X = random_network(4, 0).sample(300, random_state=0)
        pd.DataFrame(X, columns=list("abcd")).to_parquet(tmp_path / "rows.parquet")
        model = BayesianNetwork(nominal="all").fit(tmp_path / "rows.parquet")
        assert np.array_equal(model.counts_, BayesianNetwork(nominal="all").fit(X).counts_)


@pytest.mark.mission("BAY-38")
class TestClassifier:
    def test_the_naive_structure_is_naive_bayes(self):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 3, 400)
        X = (y[:, None] + rng.integers(0, 3, (400, 5))) % 4
        ours = BayesianNetworkClassifier("naive", nominal="all").fit(X, y)
        theirs = CategoricalNB(alpha=1.0, class_prior=ours.network_.tables[-1]).fit(X, y)
        assert ours.predict_proba(X) == pytest.approx(theirs.predict_proba(X), abs=1e-12)

    def test_naive_numbers_are_gaussian_naive_bayes(self):
        from sklearn.datasets import load_iris

        X, y = load_iris(return_X_y=True)
        ours = BayesianNetworkClassifier("naive").fit(X, y)
        theirs = GaussianNB(var_smoothing=0.0, priors=[1 / 3] * 3).fit(X, y)
        assert ours.predict_proba(X) == pytest.approx(theirs.predict_proba(X), abs=1e-8)

    def test_edges_between_columns_solve_exclusive_or(self):
        rng = np.random.default_rng(0)
        X = rng.integers(0, 2, (500, 3))
        y = np.array(["no", "yes"])[X[:, 0] ^ X[:, 1]]
        naive, both = (BayesianNetworkClassifier(one, nominal="all").fit(X, y) for one in ("naive", "augmented"))
        assert naive.score(X, y) < 0.75
        assert both.score(X, y) == 1.0
        given = BayesianNetworkClassifier([(0, "class"), (1, "class")], nominal="all").fit(X, y)
        assert given.score(X, y) == 1.0
        assert given.network_.infer("class", {"x0": 1, "x1": 0})["yes"] > 0.98

    def test_gaps_are_summed_over(self):
        rng = np.random.default_rng(1)
        y = rng.integers(0, 2, 600)
        X = np.where(rng.random((600, 3)) < 0.8, y[:, None], 1 - y[:, None])
        model = BayesianNetworkClassifier("naive", nominal="all").fit(X, y)
        told = model.predict_proba([[1, np.nan, np.nan]])[0]
        assert told == pytest.approx(model.network_.infer("class", {"x0": 1}).table, abs=1e-12)
        assert model.predict_proba([[np.nan] * 3])[0] == pytest.approx(model.network_.tables[-1])
        holes = BayesianNetworkClassifier("naive", nominal="all").fit(with_gaps(X, 0.1), y)
        assert holes.score(X, y) > 0.85

    def test_classes_that_are_rare_and_columns_named_class(self):
        X = pd.DataFrame({"class": ["a", "b"] * 10, "z": ["u"] * 20})
        with pytest.raises(ValueError, match="rename it"):
            BayesianNetworkClassifier().fit(X, [0, 1] * 10)
        with pytest.raises(ValueError, match="alpha must be"):
            BayesianNetworkClassifier(alpha=0.0).fit([[0.0], [1.0]], [0, 1])

    def test_samples_have_labels(self):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 300)
        X = np.column_stack([y, 5 * y])
        rows, labels = BayesianNetworkClassifier(nominal="all", alpha=1e-9).fit(X, y).sample(100, random_state=0)
        assert set(map(tuple, np.column_stack([rows, labels]).tolist())) == {(0.0, 0.0, 0.0), (1.0, 5.0, 1.0)}


def test_an_interrupt_keeps_the_best_graph_so_far(monkeypatch):
    from assay.bayes_net import _search

    X = random_network(6, 0).sample(500, random_state=0)
    real, calls = _search.State.make, 0

    def interrupted(state, change):
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        real(state, change)

    monkeypatch.setattr(_search.State, "make", interrupted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianNetwork(nominal="all").fit(X)
    assert len(model.edges) == 2
    assert len(model.history_) == 2


def test_the_limit_of_changes_is_told():
    X = random_network(6, 0).sample(500, random_state=0)
    with pytest.warns(UserWarning, match="max_iter=1"):
        model = BayesianNetwork(max_iter=1, nominal="all").fit(X)
    assert len(model.edges) == 1


def test_threads_change_no_bit():
    X = random_network(10, 0).sample(3000, random_state=0)
    one, three = (BayesianNetwork(n_jobs=k, nominal="all").fit(X) for k in (1, 3))
    assert np.array_equal(one.counts_, three.counts_)
    assert one.score_ == three.score_
    assert np.array_equal(
        ChowLiu(n_jobs=1, nominal="all").fit(X).edges_, ChowLiu(n_jobs=3, nominal="all").fit(X).edges_
    )


def test_a_fit_holds_far_less_than_its_rows():
    import tracemalloc

    X = random_network(20, 0).sample(60_000, random_state=0).astype(np.int64)
    BayesianNetwork(nominal="all", tabu=0).fit(X[:1000])
    tracemalloc.start()
    BayesianNetwork(nominal="all", tabu=0).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.4 * X.nbytes
