"""Answers of a network given evidence: most probable states, and probabilities of all states (claims
network.explanation, network.posterior).

Nodes are summed out, or maximised over, one after the other, in an order of the checker's own: each time the one whose
neighbours have the smallest table. Tables hold logarithms, so that nothing underflows; every number on the way is a sum
of at most as many logarithms as there are tables, and of the logarithms of numbers of terms.
"""

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from assay.checker.numerics import above, gamma, largest
from assay.checker.record import Refused, Rejected
from assay.checker.rule import Rule
from assay.checker.rules.network_facts import MOST_CELLS
from assay.checker.rules.networks import Net

Factor = tuple[tuple[int, ...], np.ndarray]


class Query(Rule):
    """A rule about a network given the states of some nodes, by name in the parameter `given`."""

    def prepare(self) -> None:
        self.net: Net = self.model.net
        if 0 in self.net.sizes:
            raise Rejected("it is about networks whose nodes all have states")
        self.given = self.states_of("given")

    def states_of(self, name: str) -> dict[int, int]:
        """Return the states that a parameter names, by node."""
        told = self.param(name)
        if not isinstance(told, Mapping):
            raise Rejected(f"{name} must name states by node")
        found = {}
        for node, state in told.items():
            if node not in self.net.names or state not in self.net.levels[self.net.names.index(node)]:
                raise Rejected(
                    f"{name} names {str(node)[:40]!r} = {str(state)[:40]!r}, which the network does not have"
                )
            at = self.net.names.index(node)
            found[at] = self.net.levels[at].index(state)
        return found

    def logs(self, known: Mapping[int, int], kept: Collection[int], maximised: Collection[int] = ()) -> np.ndarray:
        """Return ln of the joint probability of `known` and each state of `kept`, in order, summed over the other nodes
        and then maximised over some."""
        factors, self.error = self._factors({*known, *kept, *maximised}, known)
        others = {node for where, _ in factors for node in where} - set(kept) - set(maximised)
        for group, together in ((others, _log_sum), (set(maximised) - set(known), _max)):
            while group:
                node = min(group, key=lambda one: (self._cells(factors, one), one))
                group.discard(node)
                self.context.clock.check()
                if self._cells(factors, node) > MOST_CELLS:
                    raise Refused("the tables of the query are too large")
                where, table = _product([one for one in factors if node in one[0]], self.net.sizes)
                factors = [one for one in factors if node not in one[0]]
                factors.append((tuple(one for one in where if one != node), together(table, where.index(node))))
        return _product(factors, self.net.sizes)[1]

    def _factors(self, nodes: Collection[int], known: Mapping[int, int]) -> tuple[list[Factor], float]:
        """Return the logarithms of the tables of the nodes and their ancestors, cut down to what is known, and how far
        rounding can move any sum of them."""
        waiting, needed = list(nodes), set[int]()
        while waiting:
            node = waiting.pop()
            if node not in needed:
                needed.add(node)
                waiting += self.net.parents[node]
        found, size, steps = [], 0.0, 16
        for node in sorted(needed):
            family = (*self.net.parents[node], node)
            with np.errstate(divide="ignore"):
                logs = np.log(self.net.shares(node))
            cut = logs[tuple(known[one] if one in known else slice(None) for one in family)]
            found.append((tuple(one for one in family if one not in known), cut))
            size += float(np.max(np.abs(np.where(np.isfinite(cut), cut, 0.0)), initial=0.0))
            size, steps = size + math.log(self.net.sizes[node]) + 1, steps + 2 * self.net.sizes[node] + 24
        return found, float(above(gamma(steps) * (size + 1), 8))

    def _cells(self, factors: list[Factor], node: int) -> int:
        return math.prod(self.net.sizes[one] for one in {one for where, _ in factors if node in where for one in where})


def _product(factors: list[Factor], sizes: tuple[int, ...]) -> Factor:
    nodes = sorted({node for where, _ in factors for node in where})
    total: Any = 0.0
    for where, table in factors:
        order = sorted(range(len(where)), key=where.__getitem__)
        total = total + table.transpose(order).reshape([sizes[node] if node in where else 1 for node in nodes])
    return tuple(nodes), np.asarray(total)


def _log_sum(table: np.ndarray, axis: int) -> np.ndarray:
    top = table.max(axis=axis, keepdims=True)
    top = np.where(top > -np.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        return (np.log(np.exp(table - top).sum(axis=axis, keepdims=True)) + top).squeeze(axis)


def _max(table: np.ndarray, axis: int) -> np.ndarray:
    return table.max(axis=axis)


class Explanation(Query):
    """network.explanation: no other states of the nodes that `states` names have, with `given`, a probability whose
    logarithm is larger by more than the value."""

    def prepare(self) -> None:
        super().prepare()
        self.states = self.states_of("states")
        if not self.states or set(self.states) & set(self.given):
            raise Rejected("states must name nodes, and none whose state is given")

    def measure(self) -> float:
        own = float(self.logs({**self.given, **self.states}, ()))
        off = self.error
        best = float(self.logs(self.given, (), sorted(self.states)))
        if own == -math.inf:
            raise Rejected("the states have probability 0")
        return float(above(max(0.0, best - own) + off + self.error, 4))


class Posterior(Query):
    """network.posterior: the listed probabilities are those of the states of each node with `given`, none off by more
    than the value."""

    def measure(self) -> float:
        told = np.split(self.witness("marginals", sum(self.net.sizes)), np.cumsum(self.net.sizes)[:-1])
        worst = 0.0
        for node, one in enumerate(told):
            if node in self.given:
                found, off = np.eye(self.net.sizes[node])[self.given[node]], 0.0
            else:
                logs = self.logs(self.given, [node])
                if not np.isfinite(logs).any():
                    raise Rejected("the states that are given have probability 0")
                found, off = (
                    np.exp(logs - _log_sum(logs, 0)),
                    math.expm1(2 * self.error + gamma(self.net.sizes[node] + 8)),
                )
            worst = largest(worst, float(above(np.max(np.abs(found - one) + off * found), 4)))
        return worst
