"""A junction tree: every marginal of a network, given evidence, from two passes of messages.

The nodes of each family lie in a clique of the triangulated moral graph; cliques form a tree in which what two of them
share lies in all between. After messages to a root and back every clique's table is the joint distribution of its nodes
and the evidence (Lauritzen and Spiegelhalter 1988; Jensen et al. 1990). The tree is built once and asked many times.
Messages are sent as numbers, rescaled on the way; where one of them could be lost to underflow, as logarithms.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from assay.bayes_net import _graph
from assay.bayes_net._exact import Factor, TooLargeError


class JunctionTree:
    """Cliques over nodes with `sizes` states, made for these factors (each is multiplied into one clique).

    `cells` is the number of entries of all tables together.
    """

    def __init__(self, factors: Sequence[Factor], sizes: Sequence[int], memory: int):
        self.sizes = list(sizes)
        self.nodes = sorted({node for where, _ in factors for node in where})
        self._place = {node: i for i, node in enumerate(self.nodes)}
        adjacent = [0] * len(self.sizes)
        families = [sum(1 << node for node in where) for where, _ in factors]
        for bits in families:
            for node in _graph.nodes_of(bits):
                adjacent[node] |= bits & ~(1 << node)
        found = _graph.elimination(adjacent, self.sizes, self.nodes)
        kept, self.parent, clique_of = _tree_of(found)
        self.cliques = [_graph.nodes_of(bits) for bits in kept]
        cells = [prod(self.sizes[node] for node in clique) for clique in self.cliques]
        # Tables and a copy of them; a map of half the width from each clique, and one from the parent of each.
        needed = 20 * sum(cells) + 4 * sum(cells[above] for above in self.parent if above >= 0)
        if needed > memory:
            raise TooLargeError(float(needed), memory)
        self.cells = sum(cells)
        self._strides_of = [dict(zip(c, _strides([self.sizes[node] for node in c]))) for c in self.cliques]
        place = {node: i for i, node in enumerate(found.order)}  # the first of a family to go has all of it around
        self.home = [clique_of[min((place[node] for node in where), default=0)] for where, _ in factors]
        self._lay_out(kept, cells)
        self._fill(factors)

    def _lay_out(self, kept: list[int], cells: list[int]) -> None:
        """Number the cells: where each table begins, and which entry of a message or marginal each cell belongs to."""
        self.start = _starts(cells)
        up, down, sent, begun = [], [], [], [0]
        for c, clique in enumerate(self.cliques):
            shared = _graph.nodes_of(kept[c] & kept[self.parent[c]]) if self.parent[c] >= 0 else []
            above = self.cliques[self.parent[c]] if self.parent[c] >= 0 else []
            steps = dict(zip(shared, _strides([self.sizes[node] for node in shared])))
            sent.append(prod(self.sizes[node] for node in shared) if above else 0)
            begun.append(begun[-1] + (cells[self.parent[c]] if above else 0))
            up.append((clique, steps))
            down.append((above, steps))
        self.to_message = self._maps(up, self.start)
        self.message_start, self.parent_start = _starts(sent), np.array(begun)
        self.parent_map = self._maps(down, self.parent_start)
        best: dict[int, int] = {}
        for c in sorted(range(len(cells)), key=lambda c: -cells[c]):
            best.update(dict.fromkeys(self.cliques[c], c))
        self._first = np.array([self.start[best[node]] for node in self.nodes])
        self._length = np.array([cells[best[node]] for node in self.nodes])
        self._stride = np.array([self._strides_of[best[node]][node] for node in self.nodes])
        self._states = np.array([self.sizes[node] for node in self.nodes])
        self._result_start = _starts(self._states)
        self._parents = np.array(self.parent, dtype=np.int64)

    def _maps(self, jobs: list[tuple[list[int], dict[int, int]]], start: np.ndarray) -> np.ndarray:
        """Return for each cell of each listed clique the sum of its states times the steps of their nodes."""
        from assay.bayes_net._junction_loop import places

        return places(*self._axes(jobs), start)

    def _axes(self, jobs: list[tuple[list[int], dict[int, int]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sizes = [self.sizes[node] for clique, _ in jobs for node in clique]
        steps = [own.get(node, 0) for clique, own in jobs for node in clique]
        return np.array(sizes, np.int64), np.array(steps, np.int64), _starts([len(clique) for clique, _ in jobs])

    def _fill(self, factors: Sequence[Factor]) -> None:
        """Multiply each factor into the table of its clique.

        `tables` are kept over their largest entries, as logarithms if an entry would be lost otherwise.
        """
        from assay.bayes_net._junction_loop import TINY, multiply_in

        jobs = [
            (self.cliques[home], dict(zip(where, _strides(table.shape))))
            for (where, table), home in zip(factors, self.home)
        ]
        flat = np.concatenate([table.ravel() for _, table in factors])
        logs = np.zeros(self.start[-1])
        starts = _starts([table.size for _, table in factors])
        multiply_in(logs, self.start, np.array(self.home, np.int64), *self._axes(jobs), flat, starts)
        top = np.maximum.reduceat(logs, self.start[:-1])
        top = np.where(top > -np.inf, top, 0.0)
        self._constant = float(top.sum())
        logs -= np.repeat(top, np.diff(self.start))
        self._in_logs = bool(((logs < np.log(TINY)) & (logs > -np.inf)).any())
        self.tables = logs if self._in_logs else np.exp(logs, out=logs)

    def calibrated(self, evidence: Mapping[int, int]) -> tuple[np.ndarray, float]:
        """Return the tables of all cliques given the evidence, each summing to one, and ln P(evidence)."""
        from assay.bayes_net._junction_loop import calibrate, calibrate_logs

        plan = (
            self.start, self._parents, self.message_start, self.to_message, self.parent_start, self.parent_map,
        )  # fmt: skip
        if not self._in_logs:
            potential = self._cut(self.tables, evidence, 0.0)
            total = calibrate(potential, *plan)
            if not np.isnan(total):
                return potential, float(total) + self._constant
        with np.errstate(divide="ignore"):
            logs = self.tables if self._in_logs else np.log(self.tables)
        potential = self._cut(logs, evidence, -np.inf)
        total = calibrate_logs(potential, *plan)
        return np.exp(potential, out=potential), float(total) + self._constant

    def _cut(self, tables: np.ndarray, evidence: Mapping[int, int], nothing: float) -> np.ndarray:
        """Return the tables with `nothing` for the states that the evidence excludes."""
        tables = tables.copy()
        for node, state in evidence.items():
            at = self._place[node]
            here = tables[self._first[at] : self._first[at] + self._length[at]]
            cut = here.reshape(-1, self._states[at], self._stride[at])
            cut[:, np.arange(self._states[at]) != state] = nothing
        return tables

    def marginals(self, evidence: Mapping[int, int]) -> tuple[dict[int, np.ndarray], float]:
        """Return P(node | evidence) of every node, and ln P(evidence), which is -infinity if it cannot be."""
        from assay.bayes_net._junction_loop import marginals

        potential, total = self.calibrated(evidence)
        if total == -np.inf:
            return {}, total
        result = np.zeros(self._result_start[-1])
        marginals(potential, self._first, self._length, self._stride, self._states, result, self._result_start)
        ends = self._result_start.tolist()
        return {node: result[ends[k] : ends[k + 1]] for k, node in enumerate(self.nodes)}, total

    def joint(self, potential: np.ndarray, number: int) -> Factor:
        """Return the distribution of the nodes of the factor with that number, from calibrated tables."""
        c = self.home[number]
        table = potential[self.start[c] : self.start[c + 1]].reshape([self.sizes[node] for node in self.cliques[c]])
        return tuple(self.cliques[c]), table


def _tree_of(found: _graph.Elimination) -> tuple[list[int], list[int], list[int]]:
    """Return the cliques that lie in no other one, children before parents; the parent of each (-1: a root); and which
    of them each clique of the elimination lies in."""
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
    within = [number[final(i)] for i in range(len(above))]
    return [found.cliques[i] for i in order], [number.get(parent[i], -1) for i in order], within


def _children_first(kept: list[int], parent: Mapping[int, int]) -> list[int]:
    depth = {-1: -1}
    for i in kept:
        path = []
        while i not in depth:
            path.append(i)
            i = parent[i]
        for j in reversed(path):
            depth[j] = depth[parent[j]] + 1
    return sorted(kept, key=lambda i: (-depth[i], i))


def _starts(lengths: Any) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _strides(shape: Sequence[int]) -> list[int]:
    """Return by how much the number of an entry grows with each index of a table of this shape, the last fastest."""
    found, step = [], 1
    for size in reversed(shape):
        found.append(step)
        step *= size
    return found[::-1]
