"""Which graphs say the same: equivalence classes of directed acyclic graphs, and how far two of them are apart.

Two graphs have the same independences if and only if they join the same pairs and have the same colliders a -> c <- b
whose parents are not joined (Verma and Pearl 1990). Rows can tell no more: of an equivalence class they show which
edges have one direction in all of its graphs, and which have both among them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from assay.bayes_net._graph import Parents


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
        for one in above:
            near[one].add(node)
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
    edges = [(one, node) for node, above in enumerate(parents) for one in above]
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
