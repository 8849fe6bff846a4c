"""Networks that are known: graph, joint probability, queries by every method, files."""

import numpy as np
import pytest

from assay.bayes_net import Network, TooLargeError, all_dags, d_separated, read_bif
from tests.bayes_net.networks import YES, asia, burglary, joint, random_network, sprinkler

CALLS = {"john": "yes", "mary": "yes"}


@pytest.mark.mission("BAY-22")
class TestGraph:
    def test_a_cycle_is_named(self):
        states = dict.fromkeys("abc", YES)
        table = [[0.5, 0.5], [0.5, 0.5]]
        with pytest.raises(ValueError, match=r"cycle: (a -> b -> c -> a|b -> c -> a -> b|c -> a -> b -> c)"):
            Network.of(states, {"a": (["c"], table), "b": (["a"], table), "c": (["b"], table)})

    @pytest.mark.parametrize("seed", range(4))
    def test_the_joint_sums_to_one(self, seed):
        net = random_network(6, seed)
        rows = np.array(list(np.ndindex(*net.sizes)))
        assert np.exp(net.log_joint(rows)).sum() == pytest.approx(1, abs=1e-12)
        assert np.exp(net.log_joint(rows)) == pytest.approx(joint(net).ravel(), rel=1e-12)

    @pytest.mark.parametrize(
        ("table", "message"),
        [([[0.5, 0.6], [0.5, 0.5]], "sum to 1"), ([0.5, 0.5], "shape"), ([[1.5, -0.5], [0.5, 0.5]], "probabilities")],
    )
    def test_tables_are_checked(self, table, message):
        with pytest.raises(ValueError, match=message):
            Network.of({"a": YES, "b": YES}, {"a": [0.5, 0.5], "b": (["a"], table)})

    def test_d_separation_is_independence_in_random_tables(self):
        """For tables drawn at random, a graph's independences are the only ones."""
        for seed in range(12):
            net = random_network(5, seed, most=2)
            table = joint(net)
            rng = np.random.default_rng(seed)
            for _ in range(12):
                a, b, *given = rng.permutation(5)[: rng.integers(2, 5)].tolist()
                other = tuple(i for i in range(5) if i not in (a, b, *given))
                part = np.moveaxis(table.sum(axis=other, keepdims=True), (a, b), (0, 1))
                part = part.reshape(net.sizes[a], net.sizes[b], -1)
                left = part * part.sum(axis=(0, 1)) - part.sum(axis=1, keepdims=True) * part.sum(axis=0, keepdims=True)
                assert d_separated(net.parents, [a], [b], given) == (np.abs(left).max() < 1e-12)

    def test_markov_blanket_separates_from_the_rest(self):
        net = asia()
        for name in net.names:
            blanket = net.markov_blanket(name)
            rest = [one for one in net.names if one not in (name, *blanket)]
            assert net.d_separated(name, rest, blanket)
        assert burglary().markov_blanket("alarm") == ["burglary", "earthquake", "john", "mary"]

    def test_all_graphs_are_listed(self):
        assert [sum(1 for _ in all_dags(d)) for d in (1, 2, 3, 4)] == [1, 3, 25, 543]  # Robinson 1973
        with pytest.raises(ValueError, match="at most 5"):
            next(all_dags(6))


@pytest.mark.mission("BAY-23")
def test_joint_probability_by_hand():
    row = [1, 1, 0, 0, 0]  # no burglary, no earthquake, alarm, both call
    assert np.exp(burglary().log_joint([row])[0]) == pytest.approx(0.999 * 0.998 * 0.001 * 0.9 * 0.7, rel=1e-14)


@pytest.mark.mission("BAY-24")
def test_number_of_parameters():
    assert burglary().n_parameters() == 10
    assert asia().n_parameters() == 18
    net = random_network(7, 3)
    by_hand = sum((r - 1) * int(np.prod([net.sizes[p] for p in above])) for r, above in zip(net.sizes, net.parents))
    assert net.n_parameters() == by_hand


class TestQueries:
    @pytest.mark.mission("BAY-34")
    @pytest.mark.parametrize("method", ["enumeration", "elimination", "junction"])
    def test_burglary_given_both_calls(self, method):
        assert burglary().infer("burglary", CALLS, method=method)["yes"] == pytest.approx(0.28417, abs=5e-6)

    def test_published_values(self):
        net = sprinkler()
        assert net.infer("sprinkler", {"wet": "yes"})["yes"] == pytest.approx(0.4298, abs=5e-5)
        assert net.infer("rain", {"wet": "yes"})["yes"] == pytest.approx(0.7079, abs=5e-5)
        assert net.infer("wet")["yes"] == pytest.approx(0.6471, abs=5e-5)
        marginals = asia().marginals()
        published = {"tub": 0.0104, "lung": 0.055, "bronc": 0.45, "either": 0.064828, "xray": 0.11029, "dysp": 0.43597}
        for name, p in published.items():
            assert marginals[name]["yes"] == pytest.approx(p, abs=5e-6)

    @pytest.mark.mission("BAY-35")
    @pytest.mark.parametrize("seed", range(10))
    def test_every_exact_method_is_the_joint(self, seed):
        net, rng = random_network(7, seed, zeros=seed % 2 == 1), np.random.default_rng(seed)
        table = joint(net)
        known = {
            f"v{i}": str(v)
            for i, v in zip((2, 5), np.array(np.nonzero(table)).T[rng.integers(np.count_nonzero(table))][[2, 5]])
        }
        cut = table[:, :, int(known["v2"]), :, :, int(known["v5"])]
        for query, other in (("v0", (1, 2, 3, 4)), ("v6", (0, 1, 2, 3)), (["v4", "v1"], (0, 2, 4))):
            wanted = cut.sum(axis=other) / cut.sum()
            wanted = wanted.T if isinstance(query, list) else wanted
            for method in ("enumeration", "elimination", "junction"):
                assert net.infer(query, known, method=method).table == pytest.approx(wanted, abs=1e-13)
        assert np.exp(net.log_evidence(known)) == pytest.approx(cut.sum(), rel=1e-12)

    @pytest.mark.mission("BAY-35")
    def test_elimination_holds_smaller_tables(self):
        chain = {f"x{i}": ([f"x{i - 1}"], [[0.9, 0.1], [0.2, 0.8]]) for i in range(1, 12)}
        net = Network.of({f"x{i}": YES for i in range(12)}, {"x0": [0.3, 0.7], **chain})
        by_sums, by_list = (net.infer("x11", method=method) for method in ("elimination", "enumeration"))
        assert (by_sums.cells, by_list.cells) == (4, 2**12)
        assert by_sums.table == pytest.approx(by_list.table, abs=1e-14)

    def test_a_query_beyond_memory_is_refused_with_its_size(self):
        d = 40  # every node has two parents drawn anywhere before it: wide
        rng = np.random.default_rng(0)
        states = {f"v{i}": ["0", "1", "2", "3"] for i in range(d)}
        tables = {}
        for i in range(d):
            parents = [f"v{j}" for j in sorted(rng.choice(i, size=min(i, 3), replace=False).tolist())] if i else []
            tables[f"v{i}"] = (parents, np.full((4,) * len(parents) + (4,), 0.25))
        net = Network.of(states, tables)
        for method in ("enumeration", "elimination", "junction"):
            with pytest.raises(TooLargeError, match=r"GiB.*method='weighting'"):
                net.infer("v39", {"v38": "1"}, method=method, memory=2**16)
        assert net.infer("v39", {"v38": "1"}, method="weighting").table == pytest.approx(0.25, abs=0.05)

    @pytest.mark.mission("BAY-36")
    @pytest.mark.parametrize("method", ["gibbs", "weighting"])
    @pytest.mark.parametrize("seed", range(5))
    def test_draws_lie_within_four_standard_errors(self, method, seed):
        net = random_network(6, seed)
        known = {"v3": "1", "v5": "0"}
        exact = net.infer(["v0", "v2"], known)
        drawn = net.infer(["v0", "v2"], known, method=method, n_samples=20_000, random_state=seed)
        assert np.all(np.abs(drawn.table - exact.table) <= 4 * drawn.standard_error + 1e-3)
        assert drawn.standard_error.max() < 0.05
        again = net.infer(["v0", "v2"], known, method=method, n_samples=20_000, random_state=seed)
        assert np.array_equal(drawn.table, again.table)

    @pytest.mark.mission("BAY-36")
    def test_standard_errors_are_those_of_repeated_draws(self):
        net, known = random_network(6, 1), {"v5": "0"}
        for method in ("gibbs", "weighting"):
            runs = [net.infer("v0", known, method=method, n_samples=3200, random_state=seed) for seed in range(60)]
            spread = np.std([run.table[0] for run in runs])
            told = np.mean([run.standard_error[0] for run in runs])
            assert 0.7 < told / spread < 1.4

    @pytest.mark.mission("BAY-36")
    def test_tables_with_zeros_give_a_warning(self):
        with pytest.warns(UserWarning, match="may never leave"):
            asia().infer("tub", {"xray": "yes"}, method="gibbs", n_samples=64)

    def test_what_cannot_be_is_said(self):
        net = asia()
        for method in ("enumeration", "elimination", "junction"):
            with pytest.raises(ValueError, match="probability 0"):
                net.infer("asia", {"lung": "yes", "either": "no"}, method=method)
        with pytest.raises(ValueError, match="no state 'maybe'"):
            net.infer("asia", {"lung": "maybe"})
        with pytest.raises(ValueError, match="no node 'age'"):
            net.infer("age")
        with pytest.raises(ValueError, match="none of the evidence"):
            net.infer("asia", {"asia": "yes"})

    @pytest.mark.mission("BAY-37")
    def test_frequencies_of_samples_tend_to_the_joint(self):
        net = random_network(4, 2)
        rows = net.sample(200_000, random_state=0).astype(int)
        counts = np.zeros(net.sizes)
        np.add.at(counts, tuple(rows.T), 1)
        p = joint(net)
        assert np.all(np.abs(counts / 200_000 - p) <= 5 * np.sqrt(p * (1 - p) / 200_000) + 1e-9)
        assert np.array_equal(rows, net.sample(200_000, random_state=0))


class TestNumbers:
    """Gaussian nodes below nodes with states."""

    def network(self):
        return Network.of(
            {"kind": ["a", "b"], "size": None, "weight": None},
            {
                "kind": [0.3, 0.7],
                "size": (["kind"], [[1.0, 0.5], [3.0, 1.0]]),
                "weight": (["kind", "size"], [[0.0, 2.0, 1.0], [1.0, -1.0, 0.5]]),
            },
        )

    def test_posterior_of_states_given_numbers(self):
        from scipy.stats import norm

        net = self.network()
        a = 0.3 * norm.pdf(2.0, 1.0, 0.5) * norm.pdf(1.0, 4.0, 1.0)
        b = 0.7 * norm.pdf(2.0, 3.0, 1.0) * norm.pdf(1.0, -1.0, 0.5)
        known = {"size": 2.0, "weight": 1.0}
        for method in ("elimination", "junction"):
            assert net.infer("kind", known, method=method)["a"] == pytest.approx(a / (a + b), rel=1e-12)
        assert net.log_evidence(known) == pytest.approx(np.log(a + b), rel=1e-12)

    def test_means_by_weighted_draws(self):
        mean, spread, error = self.network().expectation("size", method="weighting", n_samples=50_000)
        assert mean == pytest.approx(0.3 * 1 + 0.7 * 3, abs=4 * error)
        assert spread == pytest.approx(np.sqrt(0.3 * 0.25 + 0.7 + 0.21 * 4), rel=0.02)


class TestFiles:
    @pytest.mark.parametrize("net", [burglary(), sprinkler(), asia(), random_network(6, 0)], ids=str)
    def test_round_trip_is_exact(self, net, tmp_path):
        net.to_bif(tmp_path / "net.bif")
        again = read_bif(tmp_path / "net.bif")
        assert (again.names, again.states, again.parents) == (net.names, net.states, net.parents)
        for one, other in zip(again.tables, net.tables):
            assert other == pytest.approx(one, abs=1e-15)

    def test_other_spellings_are_read(self):
        text = """// a comment
        network "dog problem" { property author; }
        variable light { type discrete [2] { true, false }; property position = (1, 2) ; }
        variable "family out" { type discrete [ 2 ] { "is so", no }; }
        probability ( "family out" ) { table 0.15, 0.85; }
        probability ( light | "family out" ) { default 0.05, 0.95; ("is so") 0.6, 0.4; }
        """
        net = read_bif(text)
        assert net.states[1] == ("is so", "no")
        assert net.infer("light", {"family out": "is so"})["true"] == pytest.approx(0.6, abs=1e-15)
        assert net.infer("light", {"family out": "no"})["true"] == pytest.approx(0.05, abs=1e-15)

    def test_a_table_lists_the_child_first(self):
        text = (
            "network n {} variable a { type discrete [2] { x, y }; } variable b { type discrete [2] { u, v }; }"
            "probability (a) { table 0.5, 0.5; } probability (b | a) { table 0.1, 0.2, 0.9, 0.8; }"
        )
        assert read_bif(text).infer("b", {"a": "y"}).table == pytest.approx([0.2, 0.8])

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("network n { variable", "ends too early"),
            ("network n {} variable a { type discrete [3] { x, y }; }", "2 states, not 3"),
            ("network n {} probability (a) { table 1; }", "not declared"),
            ("network n {} nonsense", "no block"),
        ],
    )
    def test_broken_files_are_refused(self, text, message):
        with pytest.raises(ValueError, match=message):
            read_bif(text)
