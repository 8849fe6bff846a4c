"""Columns without any value, rows with weights, and rows that are drawn as frames."""

from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import multinomial
from sklearn.exceptions import ConvergenceWarning

import assay
from assay.bayes_net import BayesianNetwork, BayesianNetworkClassifier, ChowLiu, Network, structural_hamming_distance
from tests.bayes_net.networks import asia, random_network


def mixture(n, seed=0):
    """Return a hidden class of two states with four children, and rows of the children."""
    net = Network.of(
        {"h": "01", **{f"c{i}": "012" for i in range(4)}},
        {"h": [0.4, 0.6], **{f"c{i}": (["h"], [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]) for i in range(4)}},
    )
    return net, net.sample(n, random_state=seed)


EDGES = [("h", f"c{i}") for i in range(4)]


@pytest.mark.mission("LAT-05")
class TestHidden:
    def fitted(self, n=5000, **more):
        net, rows = mixture(n)
        rows[:, 0] = np.nan
        X = pd.DataFrame(rows, columns=net.names)
        options = {"nominal": "all", "hidden": {"h": 2}, "alpha": 0.0, "tol": 1e-9, "random_state": 0} | more
        return net, X, BayesianNetwork(EDGES, **options).fit(X)

    def test_the_tables_are_recovered_up_to_the_names_of_the_states(self):
        net, _, model = self.fitted(20_000)
        errors = []
        for order in permutations(range(2)):
            found = [model.network_.tables[0][list(order)], *(t[list(order)] for t in model.network_.tables[1:])]
            errors.append(max(np.abs(a - b).max() for a, b in zip(found, net.tables)))
        assert min(errors) < 0.03
        assert np.all(np.diff(model.em_history_) > -1e-9)

    def test_the_likelihood_is_that_of_a_sum_over_the_states(self):
        _, X, model = self.fitted(500)
        tables = model.network_.tables
        codes = X.to_numpy()[:, 1:].astype(int)
        by_hand = np.log(sum(tables[0][h] * np.prod([tables[1 + i][h, codes[:, i]] for i in range(4)], axis=0)
                             for h in range(2)))  # fmt: skip
        assert model.score_samples(X) == pytest.approx(by_hand, abs=1e-12)
        before = model.log_likelihood(X)
        rng = np.random.default_rng(0)
        for _ in range(20):  # no likelihood near the end of EM is larger
            moved = tuple(t * np.exp(0.01 * rng.normal(size=t.shape)) for t in tables)
            moved = tuple(t / t.sum(axis=-1, keepdims=True) for t in moved)
            other = np.log(sum(moved[0][h] * np.prod([moved[1 + i][h, codes[:, i]] for i in range(4)], axis=0)
                               for h in range(2)))  # fmt: skip
            assert other.sum() < before + 1e-6

    def test_more_states_than_needed_and_their_names(self):
        _, X, model = self.fitted(hidden={"h": ["low", "high"]}, tol=1e-4)
        shares = model.predict_column_proba(X, "h")
        assert shares.shape == (5000, 2)
        assert set(model.predict_column(X, "h")) == {"low", "high"}
        assert model.infer("h", {"c0": 0, "c1": 0, "c2": 0, "c3": 0}).table.max() > 0.95

    def test_the_best_of_several_starts_is_kept(self):
        found = [self.fitted(300, restarts=k, tol=1e-4, hidden={"h": 3})[2].em_history_[-1] for k in (0, 4)]
        assert found[1] >= found[0]

    def test_it_is_certified(self):
        _, X, model = self.fitted(400, alpha=1.0)
        certificate = model.certify(X)
        assert certificate["network.counts"].value < 0.1
        assert assay.verify(certificate, model, X).holds
        with pytest.warns(ConvergenceWarning):
            copy = BayesianNetwork(EDGES, nominal="all", hidden={"h": 2}, random_state=1, max_iter=2).fit(X)
        assert copy.certify(X)["network.counts"].value > 1

    def test_frames_with_text(self):
        net, rows = mixture(2000)
        X = net.sample(2000, random_state=0, frame="pandas")
        X["h"] = None
        model = BayesianNetwork(EDGES, hidden={"h": 2}, random_state=0).fit(X)
        assert model.network_.states[0] == ("0", "1")
        truth = rows[:, 0].astype(int)
        agree = np.mean(model.predict_column_proba(X, "h").argmax(axis=1) == truth)
        assert max(agree, 1 - agree) > 0.85

    def test_what_cannot_be_is_said(self):
        _, rows = mixture(50)
        with pytest.raises(ValueError, match="has values; name columns that have none"):
            BayesianNetwork([(0, 1)], nominal="all", hidden={0: 2}).fit(rows)
        rows[:, 0] = np.nan
        with pytest.raises(ValueError, match="at least 2 states"):
            BayesianNetwork([(0, 1)], nominal="all", hidden={0: 1}).fit(rows)
        with pytest.raises(ValueError, match="give edges as structure"):
            BayesianNetwork(nominal="all", hidden={0: 2}).fit(rows)
        with pytest.raises(ValueError, match="'x0' has no value"):
            BayesianNetwork([(0, 1)], nominal="all").fit(rows)
        with pytest.raises(ValueError, match="hidden names a column that is not there"):
            BayesianNetwork([(0, 1)], nominal="all", hidden={"z": 2}).fit(rows)


class TestWeights:
    @pytest.mark.parametrize(
        "model",
        [
            BayesianNetwork(nominal="all", criterion="bic"),
            BayesianNetwork(nominal="all", criterion="bdeu"),
            BayesianNetwork(structure="exact", nominal="all", criterion="aic"),
            BayesianNetwork(),
            BayesianNetwork(nominal=[0, 1, 2]),
            ChowLiu(nominal="all"),
        ],
        ids=["bic", "bdeu", "exact", "numbers", "mixed", "tree"],
    )
    def test_weights_are_repeats(self, model):
        rng = np.random.default_rng(0)
        X = random_network(5, 1).sample(300, random_state=1)
        X[:, 3:] += rng.normal(size=(300, 2)) if model.nominal != "all" else 0
        weight = rng.integers(0, 4, 300)
        weighted = model.fit(X, sample_weight=weight)
        arrays = {name: getattr(weighted, name).copy() for name in ("edges_", "counts_", "gaussians_", "values_")}
        before, score = weighted.network_, getattr(weighted, "score_", weighted.log_likelihood(X))
        again = model.fit(np.repeat(X, weight, axis=0))
        assert structural_hamming_distance(before, again) == 0
        assert score == pytest.approx(getattr(again, "score_", again.log_likelihood(X)), rel=1e-9)
        if getattr(model, "criterion", "") == "bdeu":
            return  # graphs of the same score are told apart by rounding
        for name, value in arrays.items():
            assert value == pytest.approx(getattr(again, name), rel=1e-9), name

    def test_of_gaps_too(self):
        rng = np.random.default_rng(0)
        X = random_network(4, 1).sample(200, random_state=1)
        X[rng.random(X.shape) < 0.2] = np.nan
        weight, edges = rng.integers(0, 3, 200), random_network(4, 1).edges
        edges = [(int(a[1:]), int(b[1:])) for a, b in edges]
        one = BayesianNetwork(edges, nominal="all", tol=1e-8).fit(X, sample_weight=weight)
        two = BayesianNetwork(edges, nominal="all", tol=1e-8).fit(np.repeat(X, weight, axis=0))
        assert one.counts_ == pytest.approx(two.counts_, rel=1e-6)

    def test_shares_by_hand(self):
        X = np.array([[0], [1], [1]])
        model = BayesianNetwork("empty", nominal="all", alpha=0.0).fit(X, sample_weight=[1.5, 0.25, 0.25])
        assert model.network_.tables[0].tolist() == [0.75, 0.25]
        numbers = BayesianNetwork("empty").fit(X.astype(float) * 4, sample_weight=[3.0, 0.5, 0.5])
        assert numbers.network_.tables[0] == pytest.approx([1.0, np.sqrt(3)])

    def test_classes_have_weights(self):
        rng = np.random.default_rng(0)
        X, y = rng.integers(0, 3, (200, 3)), rng.integers(0, 2, 200)
        weight = rng.integers(0, 3, 200)
        one = BayesianNetworkClassifier(nominal="all").fit(X, y, sample_weight=weight)
        two = BayesianNetworkClassifier(nominal="all").fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        assert one.predict_proba(X) == pytest.approx(two.predict_proba(X), abs=1e-12)

    @pytest.mark.parametrize("whole", [True, False])
    def test_they_are_certified(self, whole):
        rng = np.random.default_rng(0)
        X = random_network(4, 1).sample(300, random_state=1)
        weight = rng.integers(0, 4, 300) if whole else rng.uniform(0, 2, 300)
        model = BayesianNetwork(nominal="all").fit(X, sample_weight=weight)
        certificate = model.certify(X, sample_weight=weight)
        assert certificate["network.counts"].value <= (0 if whole else 1e-5)
        assert assay.verify(certificate, model, X, sample_weight=weight).holds
        assert not assay.verify(certificate, model, X).holds
        assert model.certify(X)["network.counts"].value > 1

    def test_weights_of_no_row(self):
        with pytest.raises(ValueError, match="at least one non-zero"):
            BayesianNetwork(nominal="all").fit(np.array([[0], [1]]), sample_weight=[0, 0])


@pytest.mark.mission("BAY-37")
class TestFrames:
    @pytest.mark.parametrize(("kind", "made"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
    def test_states_have_their_names(self, kind, made):
        net = asia()
        drawn = net.sample(2000, random_state=3, frame=kind)
        assert isinstance(drawn, made)
        assert list(drawn.columns) == list(net.names)
        codes = net.sample(2000, random_state=3)
        for j, name in enumerate(net.names):
            assert list(drawn[name]) == [net.states[j][int(code)] for code in codes[:, j]]
        model = BayesianNetwork(net.edges, alpha=0.0).fit(drawn)
        assert set(model.network_.states[2]) == {"yes", "no"}

    def test_a_learnt_network_draws_what_it_was_fitted_to(self):
        frame = pd.DataFrame({"sky": ["grey", "blue", "grey", "blue"], "code": [7, 7, 9, 9], "heat": np.arange(4.0)})
        model = BayesianNetwork([("sky", "heat")], nominal=["code"]).fit(frame)
        drawn = model.sample(200, random_state=0, frame="pandas")
        assert set(drawn["sky"]) == {"grey", "blue"}
        assert set(drawn["code"]) == {"7", "9"}
        assert drawn["heat"].dtype == float
        assert BayesianNetwork([("sky", "heat")], nominal=["code"]).fit(drawn).network_.states == model.network_.states
        numbers = BayesianNetwork([(0, 1)], nominal="all").fit(frame[["code", "heat"]])
        assert set(numbers.sample(50, random_state=0, frame="pandas")["code"]) == {7, 9}

    def test_frequencies_are_those_of_the_tables(self):
        net = random_network(3, 5)
        drawn = net.sample(20_000, random_state=1, frame="pandas")
        p = net.infer("v2").to_dict()
        counts = drawn["v2"].value_counts()
        spread = np.sqrt(multinomial(20_000, list(p.values())).cov().diagonal())
        for (state, share), sd in zip(p.items(), spread):
            assert abs(counts[state] - 20_000 * share) < 5 * sd

    def test_classes_come_beside(self):
        X = pd.DataFrame({"a": ["x", "y", "x", "y"] * 5})
        rows, y = BayesianNetworkClassifier().fit(X, [0, 1] * 10).sample(30, random_state=0, frame="pandas")
        assert set(rows["a"]) == {"x", "y"}
        assert set(y) == {0, 1}

    def test_other_kinds_are_refused(self):
        with pytest.raises(ValueError, match="'pandas', 'polars' or 'pyarrow'"):
            asia().sample(3, frame="excel")
