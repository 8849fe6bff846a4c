"""Directed acyclic graphs: order, cycles, ancestors, d-separation, orders of elimination.

A graph over nodes 0, ..., d - 1 is a list with the parents of each node. Sets of nodes are kept as bits of integers
where many are compared.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import log2
from typing import NamedTuple

Parents = Sequence[Sequence[int]]


def topological_order(parents: Parents, names: Sequence[str] | None = None) -> list[int]:
    """Return the nodes with every parent before its children, layer by layer; a cycle is refused by name.

    >>> topological_order([(1,), (), (0, 1)])
    [1, 0, 2]
    """
    children: list[list[int]] = [[] for _ in parents]
    for node, above in enumerate(parents):
        for one in above:
            children[one].append(node)
    waiting = [len(above) for above in parents]
    layer = [node for node, many in enumerate(waiting) if not many]
    found: list[int] = []
    while layer:
        found += layer
        below = []
        for node in layer:
            for child in children[node]:
                waiting[child] -= 1
                below += [] if waiting[child] else [child]
        layer = sorted(below)
    if len(found) < len(parents):
        cycle = _cycle(parents, set(range(len(parents))) - set(found))
        told = [str(node) if names is None else names[node] for node in cycle]
        raise ValueError(f"the edges have a cycle: {' -> '.join([*told, told[0]])}; a network must have none.")
    return found


def _cycle(parents: Parents, left: set[int]) -> list[int]:
    """Return the nodes of a cycle, in the direction of its edges; every node of `left` has a parent in it."""
    walk, node = [], min(left)
    while node not in walk:
        walk.append(node)
        node = next(parent for parent in parents[node] if parent in left)
    return walk[walk.index(node) :][::-1]


def ancestors(parents: Parents, nodes: Iterable[int]) -> set[int]:
    """Return the nodes and all from which a directed path leads to one of them."""
    found: set[int] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += parents[node]
    return found


def d_separated(parents: Parents, first: Iterable[int], second: Iterable[int], given: Iterable[int]) -> bool:
    """Tell whether every path between two sets of nodes is blocked by `given`, so that they are independent given it.

    The nodes that are no ancestors of any of the three sets are left out, parents of a child are joined, directions and
    the nodes of `given` are dropped: separated means not connected (Lauritzen et al. 1990).

    >>> collider = [(), (), (0, 1)]
    >>> d_separated(collider, [0], [1], []), d_separated(collider, [0], [1], [2])
    (True, False)
    """
    first, second, given = set(first), set(second), set(given)
    if first & second:
        return False
    kept = ancestors(parents, first | second | given)
    adjacent = moral(parents, kept)
    blocked = _bits(given)
    reached = waiting = _bits(first - given)
    while waiting:
        node = waiting.bit_length() - 1
        waiting &= ~(1 << node)
        new = adjacent[node] & ~reached & ~blocked
        reached |= new
        waiting |= new
    return not reached & _bits(second)


def moral(parents: Parents, kept: Iterable[int] | None = None) -> list[int]:
    """Return the neighbours of each node, as bits, once the parents of each child are joined; of `kept` nodes alone."""
    adjacent = [0] * len(parents)
    for node in range(len(parents)) if kept is None else kept:
        family = _bits([node, *parents[node]])
        for one in (node, *parents[node]):
            adjacent[one] |= family & ~(1 << one)
    return adjacent


def _bits(nodes: Iterable[int]) -> int:
    return sum(1 << node for node in set(nodes))


def nodes_of(bits: int) -> list[int]:
    """Return the numbers of the bits that are set, in order."""
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


class Elimination(NamedTuple):
    """Nodes in the order of elimination, and for each the clique that arises (bits, the node among them)."""

    order: list[int]
    cliques: list[int]


def elimination(adjacent: Sequence[int], sizes: Sequence[int], nodes: Iterable[int]) -> Elimination:
    """Return an order in which to sum out `nodes`: each time the one that joins the fewest pairs of neighbours, of
    equals the one of the smallest table (min-fill)."""
    adjacent, left = list(adjacent), set(nodes)
    logs = [log2(max(size, 1)) for size in sizes]
    near = {node: nodes_of(adjacent[node]) for node in left}
    cost: dict[int, tuple[int, float, int]] = {}
    found = Elimination([], [])
    changed = set(left)
    while left:
        for node in changed & left:
            cost[node] = _fill(adjacent, near[node], logs, node)
        node = min(left, key=cost.__getitem__)
        around, mine = adjacent[node], near[node]
        found.order.append(node)
        found.cliques.append(around | 1 << node)
        left.discard(node)
        changed = {one for one in mine if one in left}
        for one in mine:
            before = adjacent[one]
            adjacent[one] = (before | around) & ~(1 << one) & ~(1 << node)
            if one in left:
                near[one] = nodes_of(adjacent[one])
                if cost[node][0]:  # new neighbours: what their other neighbours would join has changed too
                    changed.update(near[one])
    return found


def _fill(adjacent: Sequence[int], near: list[int], logs: Sequence[float], node: int) -> tuple[int, float, int]:
    around, missing, size = adjacent[node], 0, logs[node]
    for one in near:
        missing += (around & ~adjacent[one]).bit_count() - 1
        size += logs[one]
    return missing, size, node


def all_dags(d: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield the parents of every directed acyclic graph on d nodes; there are 1, 3, 25, 543 and 29,281 up to d = 5.

    >>> sum(1 for _ in all_dags(4))
    543
    """
    if not 1 <= d <= 5:
        raise ValueError(f"all_dags: there are too many graphs on {d} nodes to list; at most 5.")
    choices = [[tuple(nodes_of(bits)) for bits in range(1 << d) if not bits >> node & 1] for node in range(d)]
    for parents in product(*choices):
        done: set[int] = set()
        left = set(range(d))
        while free := {node for node in left if done.issuperset(parents[node])}:
            done |= free
            left -= free
        if not left:
            yield parents
