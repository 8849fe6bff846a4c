"""A junction tree: every marginal of a network, given evidence, from two passes of messages.

The nodes of each family lie in a clique of the triangulated moral graph; cliques form a tree in which what two of them
share lies in all between. After messages to a root and back every clique's table is the joint distribution of its nodes
and the evidence (Lauritzen and Spiegelhalter 1988; Jensen et al. 1990). The tree is built once and asked many times.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from assay.bayes_net import _graph
from assay.bayes_net._exact import Factor, TooLargeError, multiply


class JunctionTree:
    """Cliques over nodes with `sizes` states, made for these factors (each is multiplied into one clique).

    `cells` is the number of entries of all tables together.
    """

    def __init__(self, factors: Sequence[Factor], sizes: Sequence[int], memory: int):
        self.sizes = list(sizes)
        self.nodes = sorted({node for where, _ in factors for node in where})
        adjacent = [0] * len(self.sizes)
        families = [sum(1 << node for node in where) for where, _ in factors]
        for bits in families:
            for node in _graph.nodes_of(bits):
                adjacent[node] |= bits & ~(1 << node)
        found = _graph.elimination(adjacent, self.sizes, self.nodes)
        kept, self.parent = _tree_of(found)
        cliques = [_graph.nodes_of(bits) for bits in kept]
        cells = [float(prod(self.sizes[node] for node in clique)) for clique in cliques]
        if 8 * 6 * sum(cells) > memory:  # tables, a copy, and four maps of half the width
            raise TooLargeError(sum(cells), memory)
        self.cliques, self.cells = cliques, int(sum(cells))
        self.home = [_smallest(bits, kept, cells) for bits in families]
        self._lay_out(cliques, kept)
        self._fill(factors)

    def _lay_out(self, cliques: list[list[int]], kept: list[int]) -> None:
        """Number the cells: where each table begins, and which entry of a message or marginal each cell belongs to."""
        shapes = [[self.sizes[node] for node in clique] for clique in cliques]
        lengths = [prod(shape) for shape in shapes]
        self.start = _starts(lengths)
        to_message, from_parent, sent = [], [], []
        for c, clique in enumerate(cliques):
            shared = _graph.nodes_of(kept[c] & kept[self.parent[c]]) if self.parent[c] >= 0 else []
            sent.append(prod(self.sizes[node] for node in shared) if self.parent[c] >= 0 else 0)
            to_message.append(_places(clique, shared, self.sizes))
            above = cliques[self.parent[c]] if self.parent[c] >= 0 else []
            from_parent.append(_places(above, shared, self.sizes) if above else np.zeros(0, np.int32))
        self.to_message, self.parent_map = np.concatenate(to_message), np.concatenate(from_parent)
        self.message_start = _starts(sent)
        self.parent_start = _starts([len(part) for part in from_parent])
        best = {}
        for c in sorted(range(len(cliques)), key=lambda c: -lengths[c]):
            best.update(dict.fromkeys(cliques[c], c))
        self.of_node = best
        maps = [_places(cliques[best[node]], [node], self.sizes) for node in self.nodes]
        self._node_map, self._node_start = np.concatenate(maps), _starts([len(one) for one in maps])
        self._first = np.array([self.start[best[node]] for node in self.nodes])
        self._length = np.array([len(one) for one in maps])
        self._result_start = _starts([self.sizes[node] for node in self.nodes])
        self._parents = np.array(self.parent, dtype=np.int64)
        self._order = np.arange(len(cliques))

    def _fill(self, factors: Sequence[Factor]) -> None:
        mine: list[list[Factor]] = [[] for _ in self.cliques]
        for factor, home in zip(factors, self.home):
            mine[home].append(factor)
        self.prior = np.ones(self.start[-1])
        for c, clique in enumerate(self.cliques):
            if mine[c]:
                where, table = multiply(mine[c])
                shape = [self.sizes[node] if node in where else 1 for node in clique]
                full = np.broadcast_to(table.reshape(shape), [self.sizes[node] for node in clique])
                self.prior[self.start[c] : self.start[c + 1]] = full.ravel()

    def calibrated(self, evidence: Mapping[int, int]) -> tuple[np.ndarray, float]:
        """Return the tables of all cliques given the evidence, each summing to one, and ln P(evidence)."""
        from assay.bayes_net._junction_loop import calibrate

        potential = self.prior.copy()
        for node, state in evidence.items():
            at = self.nodes.index(node)
            here = slice(self._first[at], self._first[at] + self._length[at])
            potential[here] *= self._node_map[self._node_start[at] : self._node_start[at + 1]] == state
        total = calibrate(
            potential, self.start, self._parents, self._order, self.message_start, self.to_message, self.parent_start,
            self.parent_map,
        )  # fmt: skip
        return potential, float(total)

    def marginals(self, evidence: Mapping[int, int]) -> tuple[dict[int, np.ndarray], float]:
        """Return P(node | evidence) of every node, and ln P(evidence), which is -infinity if it cannot be."""
        from assay.bayes_net._junction_loop import marginals

        potential, total = self.calibrated(evidence)
        if total == -np.inf:
            return {}, total
        result = np.zeros(self._result_start[-1])
        marginals(
            potential, self._first, self._length, self._node_map, self._node_start[:-1], result, self._result_start
        )
        return dict(zip(self.nodes, np.split(result, self._result_start[1:-1]))), total

    def joint(self, potential: np.ndarray, number: int) -> Factor:
        """Return the distribution of the nodes of the factor with that number, from calibrated tables."""
        c = self.home[number]
        table = potential[self.start[c] : self.start[c + 1]].reshape([self.sizes[node] for node in self.cliques[c]])
        return tuple(self.cliques[c]), table


def _tree_of(found: _graph.Elimination) -> tuple[list[int], list[int]]:
    """Return the cliques that lie in no other one, children before parents, and the parent of each (-1: a root)."""
    place = {node: i for i, node in enumerate(found.order)}
    above = []
    for node, bits in zip(found.order, found.cliques):
        rest = [place[other] for other in _graph.nodes_of(bits) if other != node]
        above.append(min(rest) if rest else -1)
    # A clique that equals what its child sends lies in that child: the child takes its place.
    stands = list(range(len(above)))
    for i, bits in enumerate(found.cliques):
        j = above[i]
        if j >= 0 and stands[j] == j and found.cliques[j] & ~bits == 0:
            stands[j] = i

    def final(i: int) -> int:
        while stands[i] != i:
            i = stands[i]
        return i

    kept = [i for i in range(len(above)) if stands[i] == i]
    parent = {}
    for i in kept:
        j = i
        while above[j] >= 0 and final(above[j]) == i:
            j = above[j]
        parent[i] = final(above[j]) if above[j] >= 0 else -1
    order = _children_first(kept, parent)
    number = {i: k for k, i in enumerate(order)}
    return [found.cliques[i] for i in order], [number.get(parent[i], -1) for i in order]


def _children_first(kept: list[int], parent: Mapping[int, int]) -> list[int]:
    def depth(i: int) -> int:
        steps = 0
        while (i := parent[i]) >= 0:
            steps += 1
        return steps

    return sorted(kept, key=lambda i: (-depth(i), i))


def _smallest(bits: int, kept: list[int], cells: list[float]) -> int:
    return min((c for c in range(len(kept)) if bits & ~kept[c] == 0), key=cells.__getitem__)


def _starts(lengths: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _places(clique: Sequence[int], shared: Sequence[int], sizes: Sequence[int]) -> np.ndarray:
    """Return for each cell of a clique's table the cell of the table of some of its nodes that it adds to."""
    step, shape = 1, [sizes[node] for node in clique]
    found: Any = np.zeros([1] * len(clique), dtype=np.int32)
    for node in reversed(shared):
        axes = [1] * len(clique)
        axes[clique.index(node)] = sizes[node]
        found = found + np.arange(0, step * sizes[node], step, dtype=np.int32).reshape(axes)
        step *= sizes[node]
    return np.broadcast_to(found, shape).ravel()
