"""Exact inference in networks with tables: enumeration of the joint distribution, and elimination of variables.

A factor is a pair: the nodes it is about, in order, and an array with one axis for each. Every sum is over numbers that
are not negative, so that no answer loses more than a few bits to rounding.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from assay.bayes_net import _graph

Factor = tuple[tuple[int, ...], np.ndarray]
MEMORY = 2**30
"""Bytes that the tables of a query may take, unless it is told otherwise."""


class TooLargeError(MemoryError):
    """The tables of a query would take more memory than it may."""

    def __init__(self, cells: float, memory: int):
        super().__init__(
            f"the query needs a table of {cells:.3g} numbers ({8 * cells / 2**30:.3g} GiB), more than the "
            f"{memory / 2**30:.3g} GiB that it may take: sample instead (method='weighting' or 'gibbs'), give more "
            "evidence, or raise memory=."
        )


class Summed(NamedTuple):
    """The unnormalised table of a query, one axis for each node; cells of the largest table; order of the sums."""

    table: np.ndarray
    cells: int
    order: list[int]


def enumerate_joint(factors: Sequence[Factor], query: Sequence[int], sizes: Sequence[int], memory: int) -> Summed:
    """Multiply all factors into one table and sum it down to the query."""
    nodes = sorted({node for where, _ in factors for node in where} | set(query))
    cells = float(np.prod([float(sizes[node]) for node in nodes]))
    if 8 * cells > memory:
        raise TooLargeError(cells, memory)
    joint = np.ones([sizes[node] for node in nodes])
    for factor in factors:
        joint *= _aligned(factor, nodes)
    summed = joint.sum(axis=tuple(i for i, node in enumerate(nodes) if node not in query))
    return Summed(_ordered(summed, sorted(query), query), int(cells), [node for node in nodes if node not in query])


def eliminate(factors: Sequence[Factor], query: Sequence[int], sizes: Sequence[int], memory: int) -> Summed:
    """Sum out one node after the other, each time multiplying only the tables that it stands in."""
    nodes = {node for where, _ in factors for node in where} | set(query)
    adjacent = [0] * len(sizes)
    for where in [*(where for where, _ in factors), tuple(query)]:
        bits = sum(1 << node for node in where)
        for node in where:
            adjacent[node] |= bits & ~(1 << node)
    found = _graph.elimination(adjacent, sizes, nodes - set(query))
    tables = [float(np.prod([float(sizes[node]) for node in _graph.nodes_of(bits)])) for bits in found.cliques]
    tables.append(float(np.prod([float(sizes[node]) for node in query])))
    if 8 * max(tables) > memory:
        raise TooLargeError(max(tables), memory)
    left = list(factors)
    for node in found.order:
        mine = [factor for factor in left if node in factor[0]]
        left = [factor for factor in left if node not in factor[0]]
        where, table = multiply(mine)
        left.append(((*where[: where.index(node)], *where[where.index(node) + 1 :]), table.sum(axis=where.index(node))))
    where, table = multiply([*left, (tuple(query), np.ones([sizes[node] for node in query]))])
    return Summed(_ordered(table, where, query), int(max(tables)), found.order)


def multiply(factors: Sequence[Factor]) -> Factor:
    """Return the product of factors, its nodes in increasing order."""
    nodes = sorted({node for where, _ in factors for node in where})
    table: Any = 1.0
    for factor in sorted(factors, key=lambda one: one[1].size):
        table = table * _aligned(factor, nodes)
    return tuple(nodes), np.asarray(table)


def _aligned(factor: Factor, nodes: Sequence[int]) -> np.ndarray:
    """Return the array of a factor with one axis for each of the sorted nodes, of length 1 where it has none."""
    where, table = factor
    order = sorted(range(len(where)), key=where.__getitem__)
    own = dict(zip(where, table.shape))
    return table.transpose(order).reshape([own.get(node, 1) for node in nodes])


def _ordered(table: np.ndarray, nodes: Sequence[int], query: Sequence[int]) -> np.ndarray:
    return table.transpose([list(nodes).index(node) for node in query])
