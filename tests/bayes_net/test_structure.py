"""Scores and structures: formulas, brute force over all graphs, trees, limits."""

import itertools

import numpy as np
import pytest
from scipy.special import gammaln

from assay.bayes_net import BayesianNetwork, ChowLiu, all_dags
from tests.bayes_net.networks import drawn


def log_likelihood(X, parents):
    """Return the largest log-likelihood of a graph, by counting rows one by one."""
    total = 0.0
    for child, above in enumerate(parents):
        whole, part = {}, {}
        for row in X.tolist():
            key = tuple(row[one] for one in above)
            whole[key] = whole.get(key, 0) + 1
            part[key, row[child]] = part.get((key, row[child]), 0) + 1
        total += sum(count * np.log(count / whole[key]) for (key, _), count in part.items())
    return total


def parameters(X, parents):
    sizes = [len(set(column)) for column in X.T.tolist()]
    return sum((sizes[i] - 1) * int(np.prod([sizes[p] for p in above])) for i, above in enumerate(parents))


def bdeu(X, parents, samples):
    """Return minus ln of the rows' probability, from the formula of Heckerman et al. 1995."""
    sizes, total = [len(set(column)) for column in X.T.tolist()], 0.0
    for child, above in enumerate(parents):
        q, r = int(np.prod([sizes[p] for p in above])), sizes[child]
        for config in itertools.product(*(range(sizes[p]) for p in above)):
            inside = np.all(X[:, list(above)] == config, axis=1) if above else np.ones(len(X), dtype=bool)
            counts = np.bincount(X[inside, child], minlength=r)
            total += gammaln(samples / q) - gammaln(samples / q + counts.sum())
            total += (gammaln(samples / (q * r) + counts) - gammaln(samples / (q * r))).sum()
    return -total


def acyclic(edges):
    reach = np.zeros((5, 5), dtype=int)
    reach[tuple(np.array(edges).T)] = 1
    return not any(np.trace(np.linalg.matrix_power(reach, k)) for k in range(1, 6))


EDGES = [(0, 1), (0, 2), (1, 3), (2, 3)]
PARENTS = [(), (0,), (0,), (1, 2)]


class TestScores:
    @pytest.mark.mission("BAY-26", "BAY-28", "BAY-29", "BAY-27")
    @pytest.mark.parametrize("criterion", ["ll", "aic", "bic", "mdl", 2.5])
    def test_formula(self, criterion):
        X = drawn(4, 1)
        f = {"ll": 0.0, "aic": 1.0, "bic": np.log(400) / 2, "mdl": np.log(400) / 2}.get(criterion, criterion)
        found = BayesianNetwork(EDGES, criterion=criterion, nominal="all").fit(X).score_
        assert found == pytest.approx(f * parameters(X, PARENTS) - log_likelihood(X, PARENTS), rel=1e-12)

    def test_bdeu_formula(self):
        X = drawn(4, 1)
        for samples in (1.0, 10.0):
            model = BayesianNetwork(EDGES, criterion="bdeu", equivalent_sample_size=samples, nominal="all").fit(X)
            assert model.score_ == pytest.approx(bdeu(X, PARENTS, samples), rel=1e-11)

    @pytest.mark.mission("BAY-26")
    @pytest.mark.parametrize("criterion", ["bic", "bdeu", 0.7])
    def test_a_score_is_a_sum_over_families(self, criterion):
        """What an edge adds to the score does not depend on edges elsewhere."""
        X = drawn(4, 2)

        def of(edges):
            return BayesianNetwork(edges, criterion=criterion, nominal="all").fit(X).score_

        assert of([(0, 1), (2, 3)]) - of([(2, 3)]) == pytest.approx(of([(0, 1)]) - of([]), abs=1e-8)

    @pytest.mark.mission("BAY-27")
    def test_likelihood_alone_never_prefers_fewer_edges(self):
        X = drawn(4, 3)
        for parents in all_dags(3):
            edges = [(one, child) for child, above in enumerate(parents) for one in above]
            fewer = [
                BayesianNetwork(edges[:k], criterion="ll", nominal="all").fit(X[:, :3]).score_
                for k in range(len(edges) + 1)
            ]
            assert np.all(np.diff(fewer) <= 1e-9)
        assert len(BayesianNetwork("exact", criterion="ll", nominal="all").fit(X).edges) == 6

    @pytest.mark.mission("BAY-29")
    def test_independent_columns_have_no_edge(self):
        X = np.random.default_rng(0).integers(0, 3, size=(20_000, 5))
        assert BayesianNetwork(nominal="all").fit(X).edges == []


class TestSearch:
    @pytest.mark.mission("BAY-31", "BAY-33")
    @pytest.mark.parametrize("criterion", ["bic", "aic", "bdeu"])
    @pytest.mark.parametrize("seed", range(3))
    def test_against_every_graph_on_four_columns(self, criterion, seed):
        X = drawn(4, seed, n=150)

        def of(parents):
            if criterion == "bdeu":
                return bdeu(X, parents, 10.0)
            return {"bic": np.log(150) / 2, "aic": 1.0}[criterion] * parameters(X, parents) - log_likelihood(X, parents)

        families, base = {}, of([()] * 4)
        for child in range(4):
            others = [i for i in range(4) if i != child]
            for k in range(4):
                for above in itertools.combinations(others, k):
                    alone = [above if i == child else () for i in range(4)]
                    families[child, above] = of(alone) - base
        best = min(base + sum(families[i, above] for i, above in enumerate(parents)) for parents in all_dags(4))
        exact = BayesianNetwork("exact", criterion=criterion, nominal="all").fit(X)
        assert exact.score_ == pytest.approx(best, abs=1e-8)
        greedy = BayesianNetwork(criterion=criterion, tabu=0, nominal="all").fit(X)
        assert greedy.score_ >= best - 1e-8
        assert BayesianNetwork(criterion=criterion, tabu=30, restarts=3, random_state=0, nominal="all").fit(
            X
        ).score_ == pytest.approx(best, abs=1e-8)

    @pytest.mark.mission("BAY-31")
    def test_the_score_falls_at_every_step_and_a_chain_is_found(self):
        rng = np.random.default_rng(0)
        columns = [rng.integers(0, 3, 5000)]
        for _ in range(5):
            columns.append(np.where(rng.random(5000) < 0.7, columns[-1], rng.integers(0, 3, 5000)))
        X = np.column_stack(columns)
        model = BayesianNetwork(nominal="all").fit(X)
        assert sorted(sorted(map(int, edge)) for edge in model.edges_) == [[i, i + 1] for i in range(5)]
        objective = [step.objective for step in model.history_]
        assert np.all(np.diff(objective) < 0)
        assert objective[-1] == pytest.approx(model.score_, rel=1e-12)

    @pytest.mark.mission("BAY-31")
    @pytest.mark.parametrize("seed", range(4))
    def test_no_single_change_is_better(self, seed):
        X = drawn(5, seed)
        model = BayesianNetwork(tabu=0, nominal="all").fit(X)
        edges = [tuple(edge) for edge in model.edges_.tolist()]
        changed = [[one for one in edges if one != edge] for edge in edges]
        changed += [[*rest, edge[::-1]] for rest, edge in zip(changed.copy(), edges)]
        changed += [[*edges, (i, j)] for i in range(5) for j in range(5) if i != j and (i, j) not in edges]
        for other in changed:
            if acyclic(other):
                assert BayesianNetwork(other, nominal="all").fit(X).score_ >= model.score_ - 1e-6

    def test_tabu_and_restarts_never_end_worse(self):
        for seed in range(3):
            X = drawn(8, seed)
            plain, tabu, both = (
                BayesianNetwork(tabu=t, restarts=r, random_state=0, nominal="all").fit(X).score_
                for t, r in ((0, 0), (20, 0), (20, 3))
            )
            assert tabu <= plain + 1e-6
            assert both <= tabu + 1e-6

    def test_limits_are_kept(self):
        X = drawn(6, 5)
        free = BayesianNetwork(nominal="all").fit(X)
        parent, child = map(int, free.edges_[0])
        model = BayesianNetwork(
            max_parents=1, required=[(5, 0)], forbidden=[(parent, child), (child, parent)], nominal="all"
        ).fit(X)
        edges = [tuple(edge) for edge in model.edges_.tolist()]
        assert (5, 0) in edges
        assert (parent, child) not in edges
        assert (child, parent) not in edges
        assert np.bincount(model.edges_[:, 1]).max() == 1
        exact = BayesianNetwork("exact", max_parents=1, required=[(5, 0)], nominal="all").fit(X)
        assert (5, 0) in [tuple(edge) for edge in exact.edges_.tolist()]

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"structure": [(0, 1), (1, 2), (2, 0)]}, "cycle: "),
            ({"structure": [("x0", "age")]}, "names"),
            ({"structure": "best"}, "structure must be one of"),
            ({"criterion": -1.0}, "criterion must be"),
            ({"required": [(0, 1)], "forbidden": [(0, 1)]}, "required, and may not"),
            ({"required": [(0, 1), (1, 0)]}, "cycle"),
            ({"required": [(0, 2), (1, 2)], "max_parents": 1}, "more required parents"),
            ({"nominal": ["age"]}, "not there"),
            ({"criterion": "bdeu", "nominal": None}, "numbers"),
        ],
    )
    def test_refusals(self, parameters, message):
        with pytest.raises(ValueError, match=f"^BayesianNetwork: .*{message}"):
            BayesianNetwork(**{"nominal": "all", **parameters}).fit(drawn(4, 0))
        with pytest.raises(ValueError, match="at most 12 columns"):
            BayesianNetwork("exact", nominal="all").fit(np.random.default_rng(0).integers(0, 2, (50, 13)))


@pytest.mark.mission("BAY-32")
class TestTree:
    @pytest.mark.parametrize("seed", range(4))
    def test_no_tree_on_four_columns_has_a_larger_likelihood(self, seed):
        X = drawn(4, seed, n=200)
        model = ChowLiu(alpha=0.0, nominal="all").fit(X)
        pairs = list(itertools.combinations(range(4), 2))
        best, trees = -np.inf, 0
        for edges in itertools.combinations(pairs, 3):
            parents, reached = {0: ()}, [0]
            for node in reached:
                for pair in edges:
                    other = sum(pair) - node
                    if node in pair and other not in parents:
                        parents[other] = (node,)
                        reached.append(other)
            if len(parents) == 4:
                trees += 1
                best = max(best, log_likelihood(X, [parents[i] for i in range(4)]))
        assert trees == 16  # Cayley: 4^2
        assert model.log_likelihood(X) == pytest.approx(best, abs=1e-9)

    def test_the_root_changes_no_likelihood(self):
        X = drawn(5, 1)
        found = [ChowLiu(root, alpha=0.0, nominal="all").fit(X).log_likelihood(X) for root in range(5)]
        assert found == pytest.approx([found[0]] * 5, rel=1e-12)

    def test_gaussian_columns(self):
        rng = np.random.default_rng(0)
        a = rng.normal(size=2000)
        b = a + 0.5 * rng.normal(size=2000)
        X = np.column_stack([a, b, b + 0.5 * rng.normal(size=2000)])
        model = ChowLiu().fit(X)
        assert model.edges == [("x0", "x1"), ("x1", "x2")]
        rho = np.corrcoef(X.T)
        assert model.information_ == pytest.approx(-0.5 * np.log((1 - rho[0, 1] ** 2) * (1 - rho[1, 2] ** 2)), rel=1e-9)

    def test_a_mixture_of_kinds_is_refused(self):
        with pytest.raises(ValueError, match="cannot both"):
            ChowLiu(nominal=[0]).fit(drawn(3, 0))
