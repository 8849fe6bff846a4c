"""One- and two-dependence estimators against direct formulas, enumeration and the models that generated the rows."""

import dataclasses
import itertools
import warnings

import numpy as np
import pandas as pd
import pytest

import assay
from assay import naive_bayes as nb
from assay.checker.family import read_model
from assay.checker.record import Rejected
from assay.naive_bayes._dependence import spanning_tree
from tests.tree.melons import melons, melons_with_gaps

SEMI = [nb.OneDependence, nb.SPODE, nb.TAN, nb.AODE, nb.A2DE]
LEVELS = (2, 3, 2)


@pytest.fixture(scope="module")
def rows():
    """Return rows of three columns of levels, the second and third of which follow the first."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    first = (rng.uniform(size=400) < 0.3 + 0.4 * y).astype(int)
    second = (first + rng.integers(0, 2, 400) * (y + 1)) % 3
    third = np.where(rng.uniform(size=400) < 0.8, first ^ y, 1 - (first ^ y))
    return np.column_stack([first, second, third]).astype(float), y


def every_row():
    return np.array(list(itertools.product(*map(range, LEVELS))), dtype=float)


def share(X, y, c, given, target, alpha=1.0):
    """P(target | c, given) by counting, both as {column: value}."""
    own = y == c
    for j, v in given.items():
        own &= X[:, j] == v
    both = own.copy()
    for j, v in target.items():
        both &= X[:, j] == v
    cells = np.prod([LEVELS[j] for j in target])
    return (both.sum() + alpha) / (own.sum() + alpha * cells)


@pytest.mark.mission("BAY-18")
class TestOneDependence:
    def test_without_parents_it_is_naive_bayes(self, rows):
        X, y = rows
        one, naive = nb.OneDependence(nominal=[0, 1, 2]).fit(X, y), nb.MixedNB(nominal=[0, 1, 2]).fit(X, y)
        assert np.allclose(one.predict_joint_log_proba(X), naive.predict_joint_log_proba(X), rtol=1e-13)

    def test_the_product_by_hand(self, rows):
        X, y = rows
        model = nb.OneDependence([None, 0, 1], alpha=0.5, nominal=[0, 1, 2]).fit(X, y)
        for x in every_row():
            expected = [
                np.mean(y == c)
                * share(X, y, c, {}, {0: x[0]}, 0.5)
                * share(X, y, c, {0: x[0]}, {1: x[1]}, 0.5)
                * share(X, y, c, {1: x[1]}, {2: x[2]}, 0.5)
                for c in (0, 1)
            ]
            assert np.exp(model.predict_joint_log_proba(x[None]))[0] == pytest.approx(expected, rel=1e-12)

    def test_parents_by_name(self):
        X, y = melons()
        by_name, by_place = nb.OneDependence({"根蒂": "色泽"}), nb.OneDependence({1: 0})
        assert np.array_equal(by_name.fit(X, y).parents_, by_place.fit(X, y).parents_)

    def test_refusals(self, rows):
        X, y = rows
        with pytest.raises(ValueError, match="cycle: 0 <- 2 <- 1 <- 0"):
            nb.OneDependence([2, 0, 1]).fit(X, y)
        with pytest.raises(ValueError, match="is no column"):
            nb.OneDependence({0: 9}).fit(X, y)
        with pytest.raises(ValueError, match="for each of 3 columns"):
            nb.OneDependence([None]).fit(X, y)
        with pytest.raises(ValueError, match="root must be a column"):
            nb.TAN(root=3).fit(X, y)


@pytest.mark.mission("BAY-18", "BAY-19", "BAY-20", "BAY-21")
@pytest.mark.parametrize("learner", SEMI, ids=lambda one: one.__name__)
def test_joint_probabilities_sum_to_one(learner, rows):
    X, y = rows
    parents = {"parents": [None, 0, 0]} if learner is nb.OneDependence else {}
    model = learner(nominal=[0, 1, 2], **parents).fit(X, y)
    assert np.exp(model.predict_joint_log_proba(every_row())).sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.mission("BAY-19")
class TestSuperParent:
    def test_left_out_errors_by_fitting_without_each_row(self, rows):
        X, y = rows[0][:60], rows[1][:60]
        model = nb.SPODE(nominal=[0, 1, 2]).fit(X, y)
        wrong = np.zeros(3)
        for parent in range(3):
            parents = [None if j == parent else parent for j in range(3)]
            for i in range(60):
                rest = np.arange(60) != i
                left = nb.OneDependence(parents, nominal=[0, 1, 2]).fit(X[rest], y[rest])
                wrong[parent] += left.predict(X[i : i + 1])[0] != y[i]
        assert model.left_out_errors_.tolist() == wrong.tolist()
        assert model.super_parent_ == wrong.argmin()

    def test_beats_naive_bayes_where_it_should(self, rows):
        X, y = rows
        model = nb.SPODE(nominal=[0, 1, 2]).fit(X[:300], y[:300])
        assert model.super_parent_ == 0
        naive = nb.MixedNB(nominal=[0, 1, 2]).fit(X[:300], y[:300])
        assert model.score(X[300:], y[300:]) > naive.score(X[300:], y[300:]) + 0.05


@pytest.mark.mission("BAY-20")
class TestTree:
    def test_the_generating_tree_is_found(self):
        rng, n = np.random.default_rng(1), 20_000
        parents = [-1, 0, 0, 1, 3, 2]
        y, X = rng.integers(0, 2, n), np.empty((n, 6))
        for j, parent in enumerate(parents):
            before = y if parent < 0 else X[:, parent].astype(int) * 2 + y
            tables = rng.dirichlet([0.7, 0.7, 0.7], size=8)
            X[:, j] = (rng.uniform(size=n)[:, None] > np.cumsum(tables[before], axis=1)).sum(axis=1).clip(0, 2)
        assert nb.TAN(nominal=list(range(6))).fit(X, y).parents_.tolist() == parents

    def test_no_other_tree_is_heavier(self):
        weight = np.random.default_rng(2).uniform(size=(4, 4))
        weight = weight + weight.T
        edges = list(itertools.combinations(range(4), 2))
        best = max(sum(weight[e] for e in tree) for tree in itertools.combinations(edges, 3) if spans(tree))
        parents = spanning_tree(weight, 2)
        assert parents[2] == -1
        assert sum(weight[j, p] for j, p in enumerate(parents) if p >= 0) == pytest.approx(best)

    def test_information_by_hand(self, rows):
        X, y = rows
        found = nb.TAN(nominal=[0, 1, 2]).fit(X, y).information_[0, 2]
        direct = 0.0
        for c, u, v in itertools.product((0, 1), (0, 1), (0, 1)):
            p = np.mean((y == c) & (X[:, 0] == u) & (X[:, 2] == v))
            p_u, p_v = (np.mean((y == c) & (X[:, j] == value)) for j, value in ((0, u), (2, v)))
            direct += p * np.log(p * np.mean(y == c) / (p_u * p_v))
        assert found == pytest.approx(direct, rel=1e-12)


def spans(tree):
    seen = {0}
    for _ in range(3):
        seen |= {b for a, b in tree if a in seen} | {a for a, b in tree if b in seen}
    return len(seen) == 4


@pytest.mark.mission("BAY-21")
class TestAveraged:
    def test_one_column_is_naive_bayes(self, rows):
        X, y = rows[0][:, 1:2], rows[1]
        naive = nb.MixedNB(nominal=[0]).fit(X, y).predict_joint_log_proba(X)
        for learner in (nb.AODE, nb.A2DE):
            assert np.allclose(learner(nominal=[0]).fit(X, y).predict_joint_log_proba(X), naive, rtol=1e-13)

    @pytest.mark.parametrize("min_count", [1, 150])
    def test_the_mean_by_hand(self, rows, min_count):
        X, y = rows
        model = nb.AODE(min_count=min_count, nominal=[0, 1, 2]).fit(X, y)
        for x in every_row():
            used = [i for i in range(3) if np.sum(X[:, i] == x[i]) >= min_count]
            assert used
            expected = [0.0, 0.0]
            for c, i in itertools.product((0, 1), used):
                p = np.mean(y == c) * share(X, y, c, {}, {i: x[i]})
                expected[c] += p * np.prod([share(X, y, c, {i: x[i]}, {j: x[j]}) for j in range(3) if j != i])
            joint = np.exp(model.predict_joint_log_proba(x[None]))[0]
            assert joint == pytest.approx(np.array(expected) / len(used), rel=1e-12)

    def test_pairs_of_parents_by_hand(self, rows):
        X, y = rows
        model = nb.A2DE(nominal=[0, 1, 2]).fit(X, y)
        for x in every_row():
            used = [(i, j) for i, j in ((0, 1), (0, 2), (1, 2)) if np.any((X[:, i] == x[i]) & (X[:, j] == x[j]))]
            expected = [0.0, 0.0]
            for c, (i, j) in itertools.product((0, 1), used):
                rest, two = 3 - i - j, {i: x[i], j: x[j]}
                p = np.mean(y == c) * share(X, y, c, {}, two)
                expected[c] += p * share(X, y, c, two, {rest: x[rest]})
            joint = np.exp(model.predict_joint_log_proba(x[None]))[0]
            assert joint == pytest.approx(np.array(expected) / len(used), rel=1e-12)

    def test_parents_that_nobody_has_are_none(self, rows):
        X, y = rows
        naive = nb.MixedNB(nominal=[0, 1, 2]).fit(X, y).predict_joint_log_proba(X)
        for learner in (nb.AODE, nb.A2DE):
            model = learner(min_count=1e6, nominal=[0, 1, 2]).fit(X, y)
            assert np.allclose(model.predict_joint_log_proba(X), naive, rtol=1e-13)

    def test_tables_that_memory_does_not_hold_are_refused(self):
        X, y = np.random.default_rng(0).integers(0, 9, size=(30, 400)).astype(float), np.arange(30) % 2
        with pytest.raises(ValueError, match=r"triples of values have .* cells, .* GiB"):
            nb.A2DE(nominal=list(range(400))).fit(X, y)


# Tables, gaps, certificates -----------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", SEMI, ids=lambda one: one.__name__)
class TestTables:
    def test_gaps_numbers_and_levels_as_they_are(self, learner):
        X, y = melons_with_gaps()
        X["sugar"] = melons(continuous=True)[0]["含糖率"]
        model = learner(n_bins=3).fit(X, y)
        assert model.score(X, y) > 0.8
        new = X.iloc[:2].copy()
        new["纹理"] = ["strange", None]
        proba = model.predict_proba(new)
        assert np.allclose(proba.sum(axis=1), 1)
        assert np.allclose(proba[0], model.predict_proba(X.iloc[:1].assign(纹理=[None]))[0])

    def test_equal_bits_from_files_and_threads(self, learner, rows, tmp_path):
        X, y = np.tile(rows[0], (100, 1)), np.tile(rows[1], 100)
        frame = pd.DataFrame({**{f"x{j}": X[:, j] for j in range(3)}, "y": y})
        frame.to_parquet(tmp_path / "rows.parquet")
        models = [learner(n_jobs=jobs).fit(X, y) for jobs in (1, 3)]
        models.append(learner().fit(str(tmp_path / "rows.parquet"), "y"))
        one, *others = [model.stored().arrays for model in models]
        for name in set(one) - {"feature_names_in_"}:
            assert all(np.array_equal(one[name], other[name]) for other in others), name

    def test_the_checker_predicts_alike(self, learner, rows):
        X, y = np.array(rows[0]), rows[1]
        X[::7, 1] = np.nan
        model = learner(nominal=[0, 1], n_bins=2).fit(X, y)
        fresh = X.copy()
        fresh[::5, 0], fresh[::3, 2] = np.nan, 9.5
        scores, errors = read_model(model.stored()).scores(fresh, np.ones(3))
        assert np.all(np.abs(scores - model.predict_joint_log_proba(fresh)) <= errors + 1e-12)
        assert errors.max() < 1e-9

    def test_counts_are_certified_and_forgeries_found(self, learner, rows):
        X, y = np.array(rows[0]), rows[1]
        X[::7, 1] = np.nan
        model = learner(nominal=[0, 1, 2]).fit(X, y)
        certificate = model.certify(X, y, holdout=(X[:50], y[:50]))
        assert assay.verify(certificate, model, X, y, holdout=(X[:50], y[:50])).holds
        assert next(one for one in certificate.claims if one.name == "counts.mle").value == 0.0
        for name in {"joint_counts_", "pair_counts_", "triple_counts_", "class_count_"} & set(model.stored().arrays):
            counts = np.array(getattr(model, name))
            forged = counts.copy()
            forged.flat[-1] += 1
            setattr(model, name, forged)
            assert not assay.verify(model.certify(X, y), model, X, y).holds, name
            setattr(model, name, counts)

    def test_weights(self, learner, rows):
        X, y = rows
        weight = np.random.default_rng(3).uniform(0, 2, len(y))
        model = learner(nominal=[0, 1, 2]).fit(X, y, sample_weight=weight)
        certificate = model.certify(X, y, sample_weight=weight)
        assert assay.verify(certificate, model, X, y, sample_weight=weight).holds

    def test_without_smoothing_nothing_is_nan(self, learner, rows):
        X, y = np.column_stack([rows[0], rows[1]]), rows[1]
        with pytest.warns(nb.ZeroProbabilityWarning):
            model = learner(alpha=0.0, nominal=[0, 1, 2, 3]).fit(X, y)
        fresh = np.array([[*x, v] for x in every_row() for v in (0, 1)])
        assert not np.isnan(model.predict_proba(fresh)).any()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert model.score(X, y) == 1.0
        certificate = model.certify(X, y)
        assert assay.verify(certificate, model, X, y).holds

    def test_arrays_that_are_no_model(self, learner, rows):
        stored = learner(nominal=[0, 1, 2]).fit(*rows).stored()
        wrong = {"n_values_": -1, "values_": 5.0, "is_cut_": 2, "has_gap_": 3, "smoothing_": -1.0, "class_count_": -1.0}
        negative = ("joint_counts_", "pair_counts_", "triple_counts_", "min_count_")
        wrong |= dict.fromkeys(negative, -1.0) | {"parents_": 3}
        for name in set(wrong) & set(stored.arrays):
            array = np.array(stored.arrays[name])
            array.flat[0] = wrong[name]
            with pytest.raises(Rejected):
                read_model(dataclasses.replace(stored, arrays={**stored.arrays, name: array}))


def test_a_cycle_of_parents_is_no_model(rows):
    stored = nb.OneDependence([None, 0, 0], nominal=[0, 1, 2]).fit(*rows).stored()
    counts = np.zeros((2, 2 * 3 + 3 * 2 + 2 * 2))
    arrays = {**stored.arrays, "parents_": np.array([1, 0, 0]), "joint_counts_": counts}
    with pytest.raises(Rejected, match="cycle"):
        read_model(dataclasses.replace(stored, arrays=arrays))
