"""Directed acyclic graphs: topological order, ancestors, d-separation, elimination orders, Markov equivalence.

A graph over nodes 0, ..., d - 1 is a list with the parents of each node. Sets of nodes are bit masks where many are
compared.

Two graphs are Markov equivalent if and only if they have the same skeleton and the same v-structures a -> c <- b with a
and b not adjacent (Verma and Pearl 1990). Data cannot distinguish them: a CPDAG has the edges whose direction is the
same in the whole equivalence class, and those whose direction is not.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import combinations, product
from math import prod
from typing import Any, NamedTuple

Parents = Sequence[Sequence[int]]
_LARGE = 2**14  # cells of tables that are worth a second search for an order


def topological_order(parents: Parents, names: Sequence[str] | None = None) -> list[int]:
    """Return the nodes with every parent before its children, layer by layer; a cycle is refused by name.

    >>> topological_order([(1,), (), (0, 1)])
    [1, 0, 2]
    """
    children: list[list[int]] = [[] for _ in parents]
    for node, above in enumerate(parents):
        for parent in above:
            children[parent].append(node)
    waiting = [len(above) for above in parents]
    layer = [node for node, many in enumerate(waiting) if not many]
    results: list[int] = []
    while layer:
        results += layer
        below = []
        for node in layer:
            for child in children[node]:
                waiting[child] -= 1
                below += [] if waiting[child] else [child]
        layer = sorted(below)
    if len(results) < len(parents):
        cycle = _cycle(parents, set(range(len(parents))) - set(results))
        told = [str(node) if names is None else names[node] for node in cycle]
        raise ValueError(f"the edges have a cycle: {' -> '.join([*told, told[0]])}; a network must have none.")
    return results


def _cycle(parents: Parents, left: set[int]) -> list[int]:
    """Return the nodes of a cycle, in the direction of its edges; every node of `left` has a parent in it."""
    walk, node = [], min(left)
    while node not in walk:
        walk.append(node)
        node = next(parent for parent in parents[node] if parent in left)
    return walk[walk.index(node) :][::-1]


def ancestors(parents: Parents, nodes: Iterable[int]) -> set[int]:
    """Return the nodes and all from which a directed path leads to one of them."""
    results: set[int] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in results:
            results.add(node)
            waiting += parents[node]
    return results


def d_separated(parents: Parents, first: Iterable[int], second: Iterable[int], given: Iterable[int]) -> bool:
    """Tell whether every path between two sets of nodes is blocked by `given`, so that they are independent given it.

    The nodes that are no ancestors of any of the three sets are left out, parents of a child are joined, directions and
    the nodes of `given` are dropped: separated means not connected (Lauritzen et al. 1990).

    Parameters
    ----------
    parents : tuple of tuple of int
        Parents of each node.
    first, second : iterable of int
        The two sets of nodes.
    given : iterable of int
        Nodes whose states are known.

    Returns
    -------
    bool
        Whether they are d-separated.

    Examples
    --------
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
        for item in (node, *parents[node]):
            adjacent[item] |= family & ~(1 << item)
    return adjacent


def _bits(nodes: Iterable[int]) -> int:
    return sum(1 << node for node in set(nodes))


def nodes_of(bits: int) -> list[int]:
    """Return the numbers of the bits that are set, in order."""
    results = []
    while bits:
        low = bits & -bits
        results.append(low.bit_length() - 1)
        bits ^= low
    return results


class Group(NamedTuple):
    """Nodes that lack a value together, and the families that they stand in."""

    nodes: list[int]
    families: list[int]


def groups_of(parents: Parents, missing: Iterable[int], kept: Iterable[int]) -> list[Group]:
    """Return the groups of nodes without a value that share families, among the `kept` families."""
    kept = sorted(kept)
    absent = set(missing)
    families = {node: {*parents[node], node} & absent for node in kept}
    groups: list[set[int]] = []
    for node in kept:
        if families[node]:
            joined = set(families[node])
            for other in [group for group in groups if group & joined]:
                joined |= other
                groups.remove(other)
            groups.append(joined)
    return [Group(sorted(group), [node for node in kept if families[node] & group]) for group in groups]


class Elimination(NamedTuple):
    """Nodes in the order of elimination, and for each the clique that arises (bits, the node among them)."""

    order: list[int]
    cliques: list[int]


def elimination(
    adjacent: Sequence[int], sizes: Sequence[int], nodes: Iterable[int], then: Iterable[int] = ()
) -> Elimination:
    """Return an order in which to sum out `nodes`, and after all of them `then`: each time the one that joins the
    fewest pairs of neighbours, of equals the one of the smallest table (min-fill).

    If the tables are large, pairs are also counted by the product of their numbers of states, and the better order of
    the two is taken.
    """
    groups = [set(nodes), set(then)]
    result = _eliminate(adjacent, sizes, groups, [(-1, 1)])
    if _cells(result, sizes) > _LARGE and len(set(sizes)) > 1:
        by_size: dict[int, int] = {}
        for node, size in enumerate(sizes):
            by_size[size] = by_size.get(size, 0) | 1 << node
        other = _eliminate(adjacent, sizes, groups, [(bits, size) for size, bits in by_size.items()])
        result = min(result, other, key=lambda item: _cells(item, sizes))
    return result


def _cells(result: Elimination, sizes: Sequence[int]) -> int:
    return sum(prod(sizes[node] for node in nodes_of(bits)) for bits in result.cliques)


class _Graph:
    """Neighbours of each node, and what it costs to take a node out: see `elimination`.

    `weights` lists sets of nodes, as bits, with the weight of each node in them.
    """

    def __init__(self, adjacent: Sequence[int], sizes: Sequence[int], weights: Sequence[tuple[int, int]]):
        self.adjacent, self.sizes, self.weights = list(adjacent), sizes, weights
        self.own = [self.weight(1 << node) for node in range(len(sizes))]

    def weight(self, bits: int) -> int:
        return sum(weight * (bits & mask).bit_count() for mask, weight in self.weights)

    def cost(self, near: Iterable[int], node: int) -> tuple[int, int, int]:
        """Return twice the weight of the pairs of neighbours that are not joined, the cells, and the node."""
        around, missing, size = self.adjacent[node], 0, self.sizes[node]
        for neighbor in near:
            missing += self.own[neighbor] * (self.weight(around & ~self.adjacent[neighbor]) - self.own[neighbor])
            size *= self.sizes[neighbor]
        return missing, size, node


def _eliminate(
    adjacent: Sequence[int], sizes: Sequence[int], groups: Sequence[set[int]], weights: Sequence[tuple[int, int]]
) -> Elimination:
    graph, result = _Graph(adjacent, sizes, weights), Elimination([], [])
    for group in groups:
        _eliminate_group(graph, set(group), result)
    return result


def _eliminate_group(graph: _Graph, left: set[int], result: Elimination) -> None:
    adjacent = graph.adjacent
    near = {node: set(nodes_of(adjacent[node])) for node in left}
    cost = {node: graph.cost(near[node], node) for node in left}
    heap = list(cost.values())
    heapify(heap)
    while left:
        entry = heappop(heap)
        node = entry[2]
        if node not in left or cost[node] != entry:
            continue  # it was changed since
        around, mine = adjacent[node], near[node]
        result.order.append(node)
        result.cliques.append(around | 1 << node)
        left.discard(node)
        changed: set[int] = set()
        for item in mine:
            adjacent[item] = (adjacent[item] | around) & ~(1 << item) & ~(1 << node)
            if item not in left:
                continue
            near[item].discard(node)
            if entry[0]:  # new neighbours: what their other neighbours would join has changed too
                near[item] |= mine - {item}
                changed |= near[item] | {item}
            else:  # its neighbours were joined already, so that only pairs with the node itself are gone
                missing, size, _ = cost[item]
                gone = 2 * graph.own[node] * graph.weight(adjacent[item] & ~around)
                cost[item] = (missing - gone, size // graph.sizes[node], item)
                heappush(heap, cost[item])
        for item in changed & left:
            cost[item] = graph.cost(near[item], item)
            heappush(heap, cost[item])


def all_dags(d: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield the parents of every directed acyclic graph on d nodes; there are 1, 3, 25, 543 and 29,281 up to d = 5.

    Parameters
    ----------
    d : int
        Number of nodes.

    Yields
    ------
    tuple of tuple of int
        The parents of each node.

    Examples
    --------
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


@dataclass(frozen=True)
class Cpdag:
    """An equivalence class of graphs: the edges that all of them have in one direction, and the others.

    Attributes
    ----------
    names : tuple of str
    directed : list of (parent, child), by name
    undirected : list of pairs of names
    """

    names: tuple[str, ...]
    directed: list[tuple[str, str]]
    undirected: list[tuple[str, str]]

    def __repr__(self) -> str:
        arrows = [f"{a} -> {b}" for a, b in self.directed] + [f"{a} - {b}" for a, b in self.undirected]
        return f"Cpdag({', '.join(arrows)})"


def cpdag(names: Sequence[str], parents: Parents) -> Cpdag:
    """Return the equivalence class of a graph: its colliders, and what follows by the rules of Meek (1995)."""
    near = [set(above) for above in parents]
    for node, above in enumerate(parents):
        for parent in above:
            near[parent].add(node)
    fixed: set[tuple[int, int]] = set()
    for node, above in enumerate(parents):
        for a, b in combinations(above, 2):
            if b not in near[a]:
                fixed |= {(a, node), (b, node)}
    waiting = list(fixed)
    while waiting:
        for edge in _implied(*waiting.pop(), near, fixed):
            if edge not in fixed:
                fixed.add(edge)
                waiting.append(edge)
    edges = [(item, node) for node, above in enumerate(parents) for item in above]
    told = {kind: [(names[a], names[b]) for a, b in edges if ((a, b) in fixed) is kind] for kind in (True, False)}
    return Cpdag(tuple(names), told[True], told[False])


def _implied(a: int, b: int, near: Sequence[set[int]], fixed: set[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """Yield the directions that a new a -> b implies: otherwise there were a collider more, or a cycle."""
    for c in near[b] - near[a] - {a}:
        if (c, b) not in fixed:
            yield b, c
    for c in near[a] & near[b]:
        if (b, c) in fixed:
            yield a, c
        if (c, a) in fixed:
            yield c, b
        # b -> c would turn both parents of b, not joined to each other, towards c, where they are no collider.
        parents = (d for d in near[c] & near[b] - near[a] - {a} if (d, b) in fixed)
        if any((a, c) not in fixed or (d, c) not in fixed for d in parents):
            yield c, b


def structural_hamming_distance(first: Any, second: Any, *, as_drawn: bool = False) -> int:
    """Return how many pairs of nodes are joined in one way by one network, and in another or not at all by the other.

    Equivalence classes are compared (Tsamardinos et al. 2006), so that 0 means the same independences; with `as_drawn`
    the edges themselves. Networks, fitted learners and `Cpdag`s, over the same names.

    Parameters
    ----------
    first, second : Network, learner or graph
        The two networks.
    as_drawn : bool, default=False
        Whether directed edges are compared instead of equivalence classes.

    Returns
    -------
    int
        Number of pairs of nodes.

    Examples
    --------
    >>> from assay.bayes_net import Network
    >>> bits, copy = ["0", "1"], [[0.9, 0.1], [0.2, 0.8]]
    >>> forth = Network.of({"a": bits, "b": bits}, {"a": [0.5, 0.5], "b": (["a"], copy)})
    >>> back = Network.of({"a": bits, "b": bits}, {"b": [0.5, 0.5], "a": (["b"], copy)})
    >>> structural_hamming_distance(forth, back), structural_hamming_distance(forth, back, as_drawn=True)
    (0, 1)
    """
    (names, one), (other_names, other) = (_marks(part, as_drawn) for part in (first, second))
    if sorted(names) != sorted(other_names):
        raise ValueError("structural_hamming_distance: the two networks must have the same nodes.")
    return sum(one.get(pair) != other.get(pair) for pair in one.keys() | other.keys())


def _marks(part: Any, as_drawn: bool) -> tuple[Sequence[str], dict[frozenset[str], Any]]:
    """Return the nodes, and for each joined pair its direction, or "both"."""
    net = getattr(part, "network_", part)
    if not isinstance(net, Cpdag):
        net = Cpdag(net.names, net.edges, []) if as_drawn else net.cpdag()
    marks: dict[frozenset[str], Any] = {frozenset(edge): edge for edge in net.directed}
    return net.names, marks | {frozenset(edge): "both" for edge in net.undirected}
