"""Equivalence classes against the list of all graphs, and distances by hand and by bnlearn's counting rule."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from assay.bayes_net import BayesianNetwork, Cpdag, Network, all_dags, read_bif, structural_hamming_distance
from assay.bayes_net._graph import cpdag
from tests.bayes_net.networks import asia

NAMES = "abcde"


def drawn(parents):
    """Return a network of that graph, of any tables."""
    tables = {NAMES[i]: ([NAMES[p] for p in above], np.full([2] * (len(above) + 1), 0.5))
              for i, above in enumerate(parents)}  # fmt: skip
    return Network.of({NAMES[i]: "01" for i in range(len(parents))}, tables)


def independences(net):
    """Return every statement "two nodes are independent given others" that the graph makes."""
    found = set()
    for a, b in combinations(net.names, 2):
        rest = [name for name in net.names if name not in (a, b)]
        for size in range(len(rest) + 1):
            found |= {(a, b, given) for given in combinations(rest, size) if net.d_separated(a, b, given)}
    return frozenset(found)


def test_the_class_is_that_of_all_graphs_with_the_same_independences():
    classes = {}
    for parents in all_dags(4):
        net = drawn(parents)
        classes.setdefault(independences(net), []).append(net)
    assert len(classes) == 185  # Gillispie and Perlman 2001
    for members in classes.values():
        common = set.intersection(*(set(net.edges) for net in members))
        for net in members:
            assert set(net.cpdag().directed) == common
            assert {frozenset(edge) for edge in net.cpdag().undirected} == {
                frozenset(edge) for edge in net.edges if edge not in common
            }
            assert structural_hamming_distance(net, members[0]) == 0


def test_graphs_of_five_nodes_whose_class_needs_every_rule():
    """Turning the undirected edges in all ways that make no cycle and no new collider gives both directions of each."""
    graphs = list(all_dags(5))
    rng = np.random.default_rng(0)
    for parents in (graphs[i] for i in rng.integers(0, len(graphs), 300)):
        found = cpdag(NAMES, parents)
        skeleton = {frozenset(edge) for edge in (*found.directed, *found.undirected)}
        assert skeleton == {frozenset((NAMES[p], NAMES[i])) for i, above in enumerate(parents) for p in above}
        same = [net for net in _orientations(found) if _colliders(net) == _colliders(parents)]
        for a, b in found.undirected:
            i, j = NAMES.index(a), NAMES.index(b)
            assert any(i in net[j] for net in same)
            assert any(j in net[i] for net in same)


def _orientations(found):
    for bits in range(1 << len(found.undirected)):
        parents = [set() for _ in NAMES]
        chosen = [edge if bits >> k & 1 else edge[::-1] for k, edge in enumerate(found.undirected)]
        for a, b in (*found.directed, *chosen):
            parents[NAMES.index(b)].add(NAMES.index(a))
        left, done = set(range(len(NAMES))), set()
        while free := {node for node in left if parents[node] <= done}:
            done |= free
            left -= free
        if not left:
            yield parents


def _colliders(parents):
    joined = {frozenset((p, i)) for i, above in enumerate(parents) for p in above}
    return {(a, b, i) for i, above in enumerate(parents) for a, b in combinations(sorted(above), 2)
            if frozenset((a, b)) not in joined}  # fmt: skip


def test_asia():
    """By hand: the only colliders are either and dysp; either -> xray follows, since it would be one more otherwise."""
    found = asia().cpdag()
    assert {("tub", "either"), ("lung", "either"), ("either", "xray"), ("either", "dysp"), ("bronc", "dysp")} == set(
        found.directed
    )
    assert {frozenset(edge) for edge in found.undirected} == {
        frozenset(edge) for edge in (("asia", "tub"), ("smoke", "lung"), ("smoke", "bronc"))
    }


def test_distances_by_hand():
    chain, turned, collider = drawn([(), (0,), (1,)]), drawn([(1,), (), (1,)]), drawn([(), (0, 2), ()])
    empty, full = drawn([(), (), ()]), drawn([(), (0,), (0, 1)])
    assert structural_hamming_distance(chain, turned) == 0
    assert structural_hamming_distance(chain, turned, as_drawn=True) == 1
    assert structural_hamming_distance(chain, collider) == 2
    assert structural_hamming_distance(chain, empty) == 2
    assert structural_hamming_distance(full, empty) == 3
    assert structural_hamming_distance(chain, full) == 1
    assert structural_hamming_distance(chain.cpdag(), Cpdag(chain.names, [], [("b", "a"), ("c", "b")])) == 0
    with pytest.raises(ValueError, match="same nodes"):
        structural_hamming_distance(chain, drawn([(), (0,)]))


@pytest.mark.mission("BAY-31")
def test_a_learnt_structure_comes_near_the_published_one():
    """The more rows, the fewer pairs are joined otherwise than in the network that they were drawn from."""
    net = read_bif(Path(__file__).parent / "published" / "child.bif")
    rows = net.sample(10_000, random_state=0, frame="pandas")
    far, near = (structural_hamming_distance(BayesianNetwork().fit(rows[:n]), net) for n in (300, 10_000))
    assert near <= 5 < far
