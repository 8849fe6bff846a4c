"""Queries where products underflow, networks of a thousand nodes, unknown numbers, MAP, interventions, chains."""

import json
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.exceptions import ConvergenceWarning

from assay.bayes_net import Network, read_bif
from assay.bayes_net._inference import JunctionTree
from tests.bayes_net.networks import asia, burglary, joint, random_network, sprinkler

BITS = ["0", "1"]
EXACT = ("elimination", "junction")
PUBLISHED = Path(__file__).parent / "published"


def star(n, p=0.6):
    """Return a root and n children that each agree with it with probability p."""
    child = (["root"], [[p, 1 - p], [1 - p, p]])
    return Network.of(
        {"root": BITS} | {f"c{i}": BITS for i in range(n)}, {"root": [0.5, 0.5]} | {f"c{i}": child for i in range(n)}
    )


def split(n, zeros):
    """Return evidence for n children, the first of them 0 and the others 1."""
    return {f"c{i}": int(i >= zeros) for i in range(n)}


@pytest.mark.mission("BAY-07", "BAY-35")
class TestUnderflow:
    @pytest.mark.parametrize("method", ["elimination", "enumeration", "junction", "weighting", "gibbs"])
    def test_fifteen_hundred_children(self, method):
        found = star(1500).infer("root", split(1500, 752), method=method)
        wanted = 1 / (1 + (0.4 / 0.6) ** 4)  # the odds are 0.6 / 0.4 to the power of the majority
        slack = 1e-9 if found.standard_error is None else 4 * found.standard_error[0]
        assert found["0"] == pytest.approx(wanted, abs=slack)
        assert found.standard_error is None or 0.001 < found.standard_error[0] < 0.01

    @pytest.mark.parametrize("method", EXACT)
    def test_evidence_against_each_state_beyond_the_range_of_doubles(self, method):
        """Either half of the children alone makes a state impossible, as doubles see it: 0.9^-1000 / 0.1^..."""
        assert star(2000, 0.9).infer("root", split(2000, 1000), method=method)["0"] == pytest.approx(0.5, abs=1e-9)
        wanted = 1 / (1 + (0.1 / 0.9) ** 2)
        assert star(2000, 0.9).infer("root", split(2000, 1001), method=method)["0"] == pytest.approx(wanted, abs=1e-9)

    def test_evidence_of_a_long_chain(self):
        n, step = 1200, np.array([[0.9, 0.1], [0.2, 0.8]])
        net = Network.of(
            {f"x{i}": BITS for i in range(n)},
            {"x0": [0.3, 0.7]} | {f"x{i}": ([f"x{i - 1}"], step) for i in range(1, n)},
        )
        every = {f"x{i}": i % 2 for i in range(n)}
        by_hand = np.log(0.3) + (n // 2) * np.log(0.1) + (n // 2 - 1) * np.log(0.2)
        assert net.log_evidence(every) == pytest.approx(by_hand, rel=1e-12)
        ends = np.linalg.matrix_power(step, 600)
        wanted = ends[1] * np.linalg.matrix_power(step, 599)[:, 0]
        for method in EXACT:
            found = net.infer("x600", {"x0": 1, "x1199": 0}, method=method)
            assert found.table == pytest.approx(wanted / wanted.sum(), abs=1e-12)

    @pytest.mark.parametrize("method", EXACT)
    def test_a_number_at_forty_standard_deviations(self, method):
        net = Network.of({"kind": BITS, "x": None}, {"kind": [0.5, 0.5], "x": (["kind"], [[0.0, 1.0], [0.1, 1.0]])})
        logs = norm.logpdf(-40.0, [0.0, 0.1], 1.0)
        assert net.infer("kind", {"x": -40.0}, method=method)["0"] == pytest.approx(
            1 / (1 + np.exp(logs[1] - logs[0])), rel=1e-12
        )
        assert net.log_evidence({"x": -40.0}) == pytest.approx(np.logaddexp(*logs) - np.log(2), rel=1e-12)

    def test_logarithms_are_the_numbers(self):
        """The messages in logarithms, of which most trees have no need, are those in numbers."""
        net = random_network(9, 3, zeros=True)
        tree = JunctionTree(net.factors({}, range(9)), net.sizes, 2**20)
        numbers, total = tree.calibrated({2: 1})
        with np.errstate(divide="ignore"):
            tree.tables, tree._in_logs = np.log(tree.tables), True
        logs, other = tree.calibrated({2: 1})
        assert logs == pytest.approx(numbers, abs=1e-14)
        assert other == pytest.approx(total, abs=1e-12)


@pytest.mark.mission("BAY-35")
@pytest.mark.parametrize("name", ["asia", "child", "alarm", "insurance"])
def test_published_networks_agree_with_peers(name):
    """The values are those of pyAgrum; see `published/peers.py`."""
    net = read_bif(PUBLISHED / f"{name}.bif")
    for case in json.loads((PUBLISHED / "marginals.json").read_text())[name]:
        evidence, found = case["evidence"], net.marginals(case["evidence"])
        assert net.log_evidence(evidence) == pytest.approx(np.log(case["probability"]), abs=1e-9)
        for node, wanted in case["marginals"].items():
            assert found[node] == pytest.approx(wanted, abs=1e-9)
        for node in list(case["marginals"])[::5]:  # eliminated in an order of its own
            assert net.infer(node, evidence).to_dict() == pytest.approx(case["marginals"][node], abs=1e-9)


@pytest.mark.mission("BAY-35")
def test_a_thousand_nodes():
    """The marginals of a polytree are products of their parents' ones, which no tree of tables is needed for."""
    d, rng = 1000, np.random.default_rng(0)
    parents = [sorted({i - 1, i - 2 - int(rng.integers(0, 3))} & set(range(i))) if i % 3 else [] for i in range(d)]
    tables = {f"v{i}": ([f"v{p}" for p in above], rng.dirichlet([1, 1, 1], [3] * len(above)))
              for i, above in enumerate(parents)}  # fmt: skip
    net = Network.of({f"v{i}": "abc" for i in range(d)}, tables)
    by_tree = net.marginals({"v500": "b"})
    for node in ("v3", "v499", "v501", "v999"):
        assert net.infer(node, {"v500": "b"}).to_dict() == pytest.approx(by_tree[node], abs=1e-12)
    rows = net.sample(2000, random_state=0)
    first = net.marginals()
    for node in (10, 998):
        wanted = np.array(list(first[f"v{node}"].values()))
        shares = np.bincount(rows[:, node].astype(int), minlength=3) / len(rows)
        assert np.all(np.abs(shares - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / len(rows)))


@pytest.mark.mission("BAY-36")
class TestDraws:
    def sticky(self, off):
        """Return a chain of near copies, which Gibbs' method hardly moves."""
        copy = [[1 - off, off], [off, 1 - off]]
        return Network.of(
            dict.fromkeys("abcd", BITS),
            {"a": [0.3, 0.7], "b": (["a"], copy), "c": (["b"], copy), "d": (["c"], [[0.6, 0.4], [0.5, 0.5]])},
        )

    @pytest.mark.parametrize("off", [0.0, 1e-6, 1e-4])
    def test_chains_that_do_not_mix_are_told_and_not_trusted(self, off):
        net = self.sticky(off)
        exact = net.infer("a", {"d": 1})
        for seed in range(20):
            with pytest.warns(ConvergenceWarning, match="have not mixed|ever changed"):
                found = net.infer("a", {"d": 1}, method="gibbs", n_samples=2000, random_state=seed)
            assert np.all(np.abs(found.table - exact.table) < 4 * found.standard_error)
            assert found.effective_samples < 400
            assert not found.r_hat < 1.01

    def test_chains_that_mix_are_said_to(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = burglary().infer("earthquake", {"alarm": "yes"}, method="gibbs", n_samples=40_000)
        assert found.r_hat < 1.01
        assert found.effective_samples > 400

    def test_independent_draws_are_worth_their_number(self):
        net = Network.of({"a": BITS, "b": BITS}, {"a": [0.3, 0.7], "b": [0.5, 0.5]})
        found = [
            net.infer("a", method="gibbs", n_samples=6400, random_state=seed).effective_samples for seed in range(20)
        ]
        assert 3200 < np.median(found) < 9600
        assert net.infer("a", {"b": 1}, method="weighting", n_samples=500).effective_samples == pytest.approx(500)

    def test_weights_that_few_rows_carry_are_told(self):
        net = star(40, 0.9)
        with pytest.warns(ConvergenceWarning, match="worth .* independent"):
            found = Network.of(
                {"z": [str(i) for i in range(500)], "y": BITS},
                {"z": np.full(500, 1 / 500), "y": (["z"], [[1 - (i == 7), float(i == 7)] for i in range(500)])},
            ).infer("z", {"y": 1}, method="weighting", n_samples=1000)
        assert found.effective_samples < 20
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert net.infer("root", split(40, 20), method="weighting").effective_samples > 1000

    def test_what_was_never_drawn_is_not_certain(self):
        net = Network.of({"a": BITS, "b": BITS}, {"a": [1e-9, 1 - 1e-9], "b": (["a"], [[0.5, 0.5], [0.4, 0.6]])})
        found = net.infer("a", {"b": 0}, method="weighting", n_samples=1000)
        assert found["0"] == 0
        assert 0 < found.standard_error[0] < 0.01


class TestUnknownNumbers:
    """Numbers that are not known, integrated out, against the joint normal distribution of each combination."""

    def network(self, seed):
        rng = np.random.default_rng(seed)
        return Network.of(
            {"a": "xyz", "b": BITS, "u": None, "v": None, "w": None, "t": None},
            {
                "a": rng.dirichlet(np.ones(3)),
                "b": (["a"], rng.dirichlet([1, 1], 3)),
                "u": (["a"], np.column_stack([rng.normal(size=3), rng.uniform(0.5, 2, 3)])),
                "v": (["b", "u"], np.column_stack([rng.normal(size=(2, 2)), rng.uniform(0.5, 2, 2)])),
                "w": (["u", "v"], [*rng.normal(size=3), 0.7]),
                "t": (["w"], [*rng.normal(size=2), 1.3]),
            },
        )

    def given_states(self, net, a, b):
        """Return mean and covariance of (u, v, w, t)."""
        rows = [net.tables[2][a], net.tables[3][b], net.tables[4], net.tables[5]]
        above = [[], [0], [0, 1], [2]]
        mean, covariance = np.zeros(4), np.zeros((4, 4))
        for i, (row, parents) in enumerate(zip(rows, above)):
            slopes = np.zeros(4)
            slopes[parents] = row[1:-1]
            mean[i] = row[0] + slopes @ mean
            covariance[i] = covariance[:, i] = slopes @ covariance
            covariance[i, i] = row[-1] ** 2 + slopes @ covariance @ slopes
        return mean, covariance

    @pytest.mark.parametrize("known", [{"t": 0.4}, {"t": 0.4, "u": -1.0}, {"v": 2.0}, {"w": 0.3, "u": 1.0}, {}])
    @pytest.mark.parametrize("seed", range(3))
    def test_states_and_moments(self, known, seed):
        net = self.network(seed)
        at = ["uvwt".index(name) for name in known]
        values = np.array(list(known.values()))
        weights, means, variances = np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((3, 2))
        asked = next(i for i in (2, 1, 0) if i not in at)
        for a, b in product(range(3), range(2)):
            mean, covariance = self.given_states(net, a, b)
            weights[a, b] = net.tables[0][a] * net.tables[1][a, b]
            gain = np.zeros((0, 0))
            if at:
                weights[a, b] *= multivariate_normal.pdf(values, mean[at], covariance[np.ix_(at, at)])
                gain = np.linalg.solve(covariance[np.ix_(at, at)], covariance[at, asked])
            means[a, b] = mean[asked] + (gain @ (values - mean[at]) if at else 0.0)
            variances[a, b] = covariance[asked, asked] - (gain @ covariance[at, asked] if at else 0.0)
        total = weights.sum()
        for method in EXACT:
            assert net.infer("a", known, method=method).table == pytest.approx(weights.sum(axis=1) / total, rel=1e-9)
        assert net.infer(["a", "b"], known).table == pytest.approx(weights / total, rel=1e-9)
        assert net.marginals(known)["b"]["1"] == pytest.approx(weights[:, 1].sum() / total, rel=1e-9)
        if at:
            assert net.log_evidence(known) == pytest.approx(np.log(total), rel=1e-9)
        mean = (weights * means).sum() / total
        spread = np.sqrt((weights * (variances + (means - mean) ** 2)).sum() / total)
        assert net.expectation("uvwt"[asked], known) == pytest.approx((mean, spread, 0.0), rel=1e-9)
        by_draws = net.expectation("uvwt"[asked], known, method="weighting", n_samples=20_000)
        assert abs(by_draws[0] - mean) < 5 * by_draws[2]

    def test_evidence_of_states(self):
        net = self.network(0)
        table = net.infer(["a", "b"], {"t": 1.0}).table
        assert net.infer("a", {"t": 1.0, "b": 1}).table == pytest.approx(table[:, 1] / table[:, 1].sum(), rel=1e-9)

    def test_large_tables_are_refused(self):
        with pytest.raises(MemoryError, match="GiB"):
            self.network(0).infer("a", {"t": 0.0}, memory=256)


class TestMostProbable:
    @pytest.mark.parametrize("seed", range(8))
    def test_all_queries_against_the_joint(self, seed):
        net, rng = random_network(7, seed, zeros=seed % 2 == 1), np.random.default_rng(seed)
        table = joint(net)
        cell = np.array(np.nonzero(table)).T[rng.integers(np.count_nonzero(table))]
        known = {f"v{i}": str(cell[i]) for i in (2, 5)}
        cut = table[:, :, cell[2], :, :, cell[5]]
        for query, other in ((None, ()), (["v0", "v4"], (1, 2, 4)), (["v6"], (0, 1, 2, 3))):
            wanted = cut.sum(axis=other)
            found = net.map_query(query, known)
            names = [name for name in found.states if query is None or name in query]
            assert names == ([f"v{i}" for i in (0, 1, 3, 4, 6)] if query is None else query)
            at = wanted[tuple(int(found[name]) for name in names)]
            assert at == pytest.approx(wanted.max(), rel=1e-12)
            assert found.log_joint == pytest.approx(np.log(wanted.max()), abs=1e-12)
            assert found.log_probability == pytest.approx(np.log(wanted.max() / cut.sum()), abs=1e-12)

    def test_the_most_probable_states_together_are_not_those_of_each(self):
        net = Network.of({"a": BITS, "b": "xyz"}, {"a": [0.4, 0.6], "b": (["a"], [[1, 0, 0], [0.4, 0.3, 0.3]])})
        assert net.map_query().states == {"a": "0", "b": "x"}
        assert net.map_query("a").states == {"a": "1"}

    def test_of_a_published_network(self):
        found = sprinkler().map_query(evidence={"wet": "yes"})
        assert found.states == {"cloudy": "yes", "sprinkler": "no", "rain": "yes"}
        assert np.exp(found.log_joint) == pytest.approx(0.5 * 0.9 * 0.8 * 0.9)

    def test_what_cannot_be_is_said(self):
        with pytest.raises(ValueError, match="probability 0"):
            asia().map_query(evidence={"lung": "yes", "either": "no"})
        with pytest.raises(ValueError, match="none of the evidence"):
            asia().map_query("lung", {"lung": "yes"})


class TestInterventions:
    def test_truncated_factorisation(self):
        net = random_network(6, 4)
        wanted = np.zeros(net.sizes)
        for cell in np.ndindex(*net.sizes):
            factors = (
                net.tables[i][(*(cell[p] for p in above), cell[i])] for i, above in enumerate(net.parents) if i != 3
            )
            wanted[cell] = np.prod(list(factors)) * (cell[3] == 1)
        assert joint(net.do({"v3": "1"})) == pytest.approx(wanted, abs=1e-14)

    def test_setting_is_not_seeing(self):
        """Simpson's reversal (Charig et al. 1986, as Pearl tells it): treatment a is better for stones of each size."""
        net = Network.of(
            {"size": ["small", "large"], "treatment": ["a", "b"], "cured": ["no", "yes"]},
            {
                "size": [357 / 700, 343 / 700],
                "treatment": (["size"], [[87 / 357, 270 / 357], [263 / 343, 80 / 343]]),
                "cured": (["size", "treatment"], [[[6 / 87, 81 / 87], [36 / 270, 234 / 270]],
                                                  [[71 / 263, 192 / 263], [25 / 80, 55 / 80]]]),
            },
        )  # fmt: skip
        seen = [net.infer("cured", {"treatment": t})["yes"] for t in "ab"]
        made = [net.do({"treatment": t}).infer("cured")["yes"] for t in "ab"]
        assert seen == pytest.approx([273 / 350, 289 / 350])
        assert made == pytest.approx([0.8325, 0.7789], abs=5e-5)

    def test_numbers_that_are_set_leave_their_value(self):
        net = Network.of(
            {"a": BITS, "x": None, "y": None},
            {"a": [0.3, 0.7], "x": (["a"], [[0, 1], [5, 1]]), "y": (["a", "x"], [[1, 2, 0.5], [0, 3, 1]])},
        )
        after = net.do({"x": 2.0})
        assert after.names == ("a", "y")
        assert after.infer("a")["0"] == pytest.approx(0.3)
        assert after.expectation("y")[0] == pytest.approx(0.3 * 5 + 0.7 * 6)


@pytest.mark.parametrize("value", [1, 1.0, "1", np.int64(1), np.float64(1.0), True])
def test_states_that_are_numbers_may_be_given_as_numbers(value):
    net = Network.of({"a": BITS, "b": BITS}, {"a": [0.5, 0.5], "b": (["a"], [[0.9, 0.1], [0.2, 0.8]])})
    assert net.infer("a", {"b": value}).to_dict() == net.infer("a", {"b": "1"}).to_dict()
    assert net.infer("b")[value] == net.infer("b")["1"]
    with pytest.raises(ValueError, match=r"no state 1\.5"):
        net.infer("a", {"b": 1.5})
