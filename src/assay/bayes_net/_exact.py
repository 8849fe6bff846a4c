"""Exact inference in networks with tables: enumeration, elimination by sums, and elimination by maxima.

A factor is a pair: the nodes it is about, in order, and an array of logarithms with one axis for each. Products are
sums of logarithms, and a sum is taken relative to its largest term, so that thousands of small probabilities
multiplied together neither underflow nor lose more than a few bits.
"""

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from assay.bayes_net import _graph

Factor = tuple[tuple[int, ...], np.ndarray]
MEMORY = 2**30
"""Bytes that the tables of a query may take, unless it is told otherwise."""


class TooLargeError(MemoryError):
    """The tables of a query would take more memory than it may."""

    def __init__(self, needed: float, memory: int):
        super().__init__(
            f"the query needs tables of {needed / 2**30:.3g} GiB, more than the "
            f"{memory / 2**30:.3g} GiB that it may take: sample instead (method='weighting' or 'gibbs'), give more "
            "evidence, or raise memory=."
        )


class Summed(NamedTuple):
    """The logarithms of a query's unnormalised table, one axis for each node, and the cells of the largest table."""

    logs: np.ndarray
    cells: int


class Maximum(NamedTuple):
    """The states of largest probability by node, ln of it, and the cells of the largest table."""

    states: dict[int, int]
    log: float
    cells: int


def enumerate_joint(factors: Sequence[Factor], query: Sequence[int], sizes: Sequence[int], memory: int) -> Summed:
    """Multiply all factors into one table and sum it down to the query."""
    nodes = sorted({node for where, _ in factors for node in where} | set(query))
    cells = prod(sizes[node] for node in nodes)
    if 8 * cells > memory:
        raise TooLargeError(8.0 * cells, memory)
    joint = np.zeros([sizes[node] for node in nodes])
    for factor in factors:
        joint += aligned(factor, nodes)
    logs = log_sum(joint, tuple(i for i, node in enumerate(nodes) if node not in query))
    return Summed(_ordered(logs, sorted(query), query), cells)


def eliminate(factors: Sequence[Factor], query: Sequence[int], sizes: Sequence[int], memory: int) -> Summed:
    """Sum out one node after the other, each time multiplying only the tables that it stands in."""
    nodes = {node for where, _ in factors for node in where} - set(query)
    order, cells = _order(factors, query, sizes, memory, nodes)
    left = _Factors(factors)
    for node in order:
        where, table = left.product_of(node)
        left.add((tuple(one for one in where if one != node), log_sum(table, where.index(node))))
    where, table = multiply([*left.factors.values(), (tuple(query), np.zeros([sizes[node] for node in query]))])
    return Summed(_ordered(table, where, query), cells)


def maximise(factors: Sequence[Factor], query: Sequence[int], sizes: Sequence[int], memory: int) -> Maximum:
    """Sum out the nodes that are not asked about, then take the maximum over one asked node after the other, and go
    back through the places of the maxima."""
    others = {node for where, _ in factors for node in where} - set(query)
    order, cells = _order(factors, (), sizes, memory, others, query)
    left, best = _Factors(factors), []
    for node in order:
        where, table = left.product_of(node)
        axis, rest = where.index(node), tuple(one for one in where if one != node)
        if node in others:
            left.add((rest, log_sum(table, axis)))
        else:
            best.append((node, rest, table.argmax(axis=axis)))
            left.add((rest, table.max(axis=axis)))
    states: dict[int, int] = {}
    for node, rest, places in reversed(best):
        states[node] = int(places[tuple(states[one] for one in rest)])
    return Maximum(states, float(sum(table for _, table in left.factors.values())), cells)


def _order(
    factors: Sequence[Factor],
    joined: Sequence[int],
    sizes: Sequence[int],
    memory: int,
    nodes: Iterable[int],
    then: Iterable[int] = (),
) -> tuple[list[int], int]:
    """Return the order in which `nodes`, and after them `then`, are taken out, and the cells of the largest table."""
    adjacent = [0] * len(sizes)
    for where in [*(where for where, _ in factors), tuple(joined)]:
        bits = sum(1 << node for node in where)
        for node in where:
            adjacent[node] |= bits & ~(1 << node)
    found = _graph.elimination(adjacent, sizes, nodes, then)
    tables = [prod(sizes[node] for node in _graph.nodes_of(bits)) for bits in found.cliques]
    cells = max([*tables, prod(sizes[node] for node in joined)])
    if 8 * cells > memory:
        raise TooLargeError(8.0 * cells, memory)
    return found.order, cells


class _Factors:
    """Factors, found by the nodes that they are about."""

    def __init__(self, factors: Iterable[Factor]):
        self.factors: dict[int, Factor] = {}
        self.about: dict[int, set[int]] = {}
        self.number = 0
        for factor in factors:
            self.add(factor)

    def add(self, factor: Factor) -> None:
        self.factors[self.number] = factor
        for node in factor[0]:
            self.about.setdefault(node, set()).add(self.number)
        self.number += 1

    def product_of(self, node: int) -> Factor:
        """Take out the factors about a node, and return their product."""
        taken = []
        for number in sorted(self.about.get(node, ())):
            taken.append(self.factors.pop(number))
            for one in taken[-1][0]:
                self.about[one].discard(number)
        return multiply(taken)


def multiply(factors: Sequence[Factor]) -> Factor:
    """Return the product of factors, its nodes in increasing order."""
    nodes = sorted({node for where, _ in factors for node in where})
    table: Any = 0.0
    for factor in sorted(factors, key=lambda one: one[1].size):
        table = table + aligned(factor, nodes)
    return tuple(nodes), np.asarray(table)


def aligned(factor: Factor, nodes: Sequence[int]) -> np.ndarray:
    """Return the array of a factor with one axis for each of the sorted nodes, of length 1 where it has none."""
    where, table = factor
    order = sorted(range(len(where)), key=where.__getitem__)
    own = dict(zip(where, table.shape))
    return table.transpose(order).reshape([own.get(node, 1) for node in nodes])


def log_sum(logs: np.ndarray, axis: Any = None) -> np.ndarray:
    """Return ln of the sum of exp(logs) along some axes; -infinity where all terms are."""
    top = logs.max(axis=axis, keepdims=True)
    top = np.where(top > -np.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        return (np.log(np.exp(logs - top).sum(axis=axis, keepdims=True)) + top).squeeze(axis)


def _ordered(table: np.ndarray, nodes: Sequence[int], query: Sequence[int]) -> np.ndarray:
    return table.transpose([list(nodes).index(node) for node in query])
