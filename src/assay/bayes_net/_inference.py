"""Exact inference: enumeration, variable elimination (sums and maxima), junction trees, unobserved Gaussian nodes.

A factor is a pair: its nodes, in order, and an array of logarithms with one axis for each. Products are sums of
logarithms, and sums are taken relative to the largest term, so that products of thousands of small probabilities
neither underflow nor lose more than a few bits.

In a junction tree each family lies in a clique of the triangulated moral graph, and the intersection of two cliques
lies in every clique between them. After messages to a root and back each clique's table is the joint distribution of
its nodes and the evidence (Lauritzen and Spiegelhalter 1988; Jensen et al. 1990). The tree is built once for many
queries. Messages are rescaled numbers, and logarithms where a number could underflow.

Given the states, the numeric nodes are jointly Gaussian. Unobserved ones form groups that share families; the product
of a group's densities is the exponential of a quadratic form of its unobserved values h,

    prod_f N(x_f; a_f + b_f' x_parents, s_f^2)  =  c exp(-|A h - r|^2 / 2),

for each combination of the states that its families depend on. Its integral is a factor over these states; its mode
and curvature are the mean and the covariance of h (by a QR decomposition of A, which avoids squaring its condition).

What a query of a network returns.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np

from assay.bayes_net import _graph

if TYPE_CHECKING:
    from assay.bayes_net._network import Network


Factor = tuple[tuple[int, ...], np.ndarray]
MEMORY = 2**30
"""Bytes that the tables of a query may take, unless it is told otherwise."""
LOG_2PI = float(np.log(2 * np.pi))


class TooLargeError(MemoryError):
    """The tables of a query would take more memory than it may.

    Parameters
    ----------
    needed : float
        Bytes that would be needed.
    memory : int
        Bytes allowed.
    """

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
        left.add((tuple(item for item in where if item != node), log_sum(table, where.index(node))))
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
        axis, rest = where.index(node), tuple(item for item in where if item != node)
        if node in others:
            left.add((rest, log_sum(table, axis)))
        else:
            best.append((node, rest, table.argmax(axis=axis)))
            left.add((rest, table.max(axis=axis)))
    states: dict[int, int] = {}
    for node, rest, places in reversed(best):
        states[node] = int(places[tuple(states[item] for item in rest)])
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
    result = _graph.elimination(adjacent, sizes, nodes, then)
    tables = [prod(sizes[node] for node in _graph.nodes_of(bits)) for bits in result.cliques]
    cells = max([*tables, prod(sizes[node] for node in joined)])
    if 8 * cells > memory:
        raise TooLargeError(8.0 * cells, memory)
    return result.order, cells


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
            for item in taken[-1][0]:
                self.about[item].discard(number)
        return multiply(taken)


def multiply(factors: Sequence[Factor]) -> Factor:
    """Return the product of factors, its nodes in increasing order."""
    nodes = sorted({node for where, _ in factors for node in where})
    table: Any = 0.0
    for factor in sorted(factors, key=lambda item: item[1].size):
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
        result = _graph.elimination(adjacent, self.sizes, self.nodes)
        kept, self.parent, clique_of = _tree_of(result)
        self.cliques = [_graph.nodes_of(bits) for bits in kept]
        cells = [prod(self.sizes[node] for node in clique) for clique in self.cliques]
        # Tables and a copy of them; a map of half the width from each clique, and one from the parent of each.
        needed = 20 * sum(cells) + 4 * sum(cells[above] for above in self.parent if above >= 0)
        if needed > memory:
            raise TooLargeError(float(needed), memory)
        self.cells = sum(cells)
        self._strides_of = [dict(zip(c, _strides([self.sizes[node] for node in c]))) for c in self.cliques]
        place = {node: i for i, node in enumerate(result.order)}  # the first of a family to go has all of it around
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
        from assay.bayes_net._loops import places

        return places(*self._axes(jobs), start)

    def _axes(self, jobs: list[tuple[list[int], dict[int, int]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sizes = [self.sizes[node] for clique, _ in jobs for node in clique]
        steps = [own.get(node, 0) for clique, own in jobs for node in clique]
        return np.array(sizes, np.int64), np.array(steps, np.int64), _starts([len(clique) for clique, _ in jobs])

    def _fill(self, factors: Sequence[Factor]) -> None:
        """Multiply each factor into the table of its clique.

        `tables` are kept over their largest entries, as logarithms if an entry would be lost otherwise.
        """
        from assay.bayes_net._loops import TINY, multiply_in

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
        from assay.bayes_net._loops import calibrate, calibrate_logs

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
        from assay.bayes_net._loops import marginals

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


def _tree_of(result: _graph.Elimination) -> tuple[list[int], list[int], list[int]]:
    """Return the cliques that lie in no other one, children before parents; the parent of each (-1: a root); and which
    of them each clique of the elimination lies in."""
    place = {node: i for i, node in enumerate(result.order)}
    above = []
    for node, bits in zip(result.order, result.cliques):
        rest = [place[other] for other in _graph.nodes_of(bits) if other != node]
        above.append(min(rest) if rest else -1)
    # A clique that equals what its child sends lies in that child: the child takes its place.
    stands = list(range(len(above)))
    for i, bits in enumerate(result.cliques):
        j = above[i]
        if j >= 0 and stands[j] == j and result.cliques[j] & ~bits == 0:
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
    return [result.cliques[i] for i in order], [number.get(parent[i], -1) for i in order], within


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
    results, step = [], 1
    for size in reversed(shape):
        results.append(step)
        step *= size
    return results[::-1]


class Integrated(NamedTuple):
    """The factor of a group over the states that it depends on; means (..., hidden) and the upper triangular R of its
    unknown numbers, whose covariance is inverse(R) inverse(R)'."""

    factor: Factor
    hidden: list[int]
    means: np.ndarray
    R: np.ndarray


def groups(net: "Network", known: Mapping[int, float], needed: set[int]) -> list[_graph.Group]:
    """Return the groups of unknown numbers among the `needed` nodes, and the families that each stands in."""
    hidden = [node for node in sorted(needed) if net.is_number(node) and node not in known]
    return _graph.groups_of(net.parents, hidden, needed)


def integrate(net: "Network", group: _graph.Group, known: Mapping[int, float], memory: int) -> Integrated:
    """Integrate the unknown numbers of a group out of the product of its families."""
    over = {parent for family in group.families for parent in net.parents[family] if not net.is_number(parent)}
    states = sorted(node for node in over if node not in known)
    shape = tuple(net.sizes[state] for state in states)
    F, H = len(group.families), len(group.nodes)
    needed = 32.0 * prod(shape) * F * (H + 1)
    if needed > memory:
        raise TooLargeError(needed, memory)
    A, r, log_spread = np.zeros((*shape, F, H)), np.zeros((*shape, F)), np.zeros(shape)
    for row, family in enumerate(group.families):
        table, numbers = _cut(net, family, known, states), [p for p in net.parents[family] if net.is_number(p)]
        spread = table[..., -1]
        rest = -table[..., 0]
        for column, node in [*zip(range(1, len(numbers) + 1), numbers), (None, family)]:
            slope = 1.0 if column is None else -table[..., column]
            if node in known:
                rest = rest + slope * known[node]
            else:
                A[..., row, group.nodes.index(node)] += slope / spread
        r[..., row] = -rest / spread
        log_spread += np.log(spread)
    Q, R = np.linalg.qr(A)
    along = np.einsum("...fh,...f->...h", Q, r)
    across = r - np.einsum("...fh,...h->...f", Q, along)
    volume = np.log(np.abs(np.diagonal(R, axis1=-2, axis2=-1))).sum(axis=-1)
    logs = -0.5 * (across**2).sum(axis=-1) - volume - log_spread - 0.5 * (F - H) * LOG_2PI
    means = np.linalg.solve(R, along[..., None])[..., 0]
    return Integrated((tuple(states), logs), group.nodes, means, R)


def _cut(net: "Network", family: int, known: Mapping[int, float], states: Sequence[int]) -> np.ndarray:
    """Return the table of a number at the evidence, with one axis for each of `states` and the last for its entries."""
    over = [parent for parent in net.parents[family] if not net.is_number(parent)]
    table = net.tables[family][tuple(int(known[node]) if node in known else slice(None) for node in over)]
    left = tuple(node for node in over if node not in known)
    return np.stack([aligned((left, table[..., k]), states) for k in range(table.shape[-1])], axis=-1)


def moments(net: "Network", node: int, known: Mapping[int, float], memory: int) -> tuple[float, float]:
    """Return mean and standard deviation of a number given the evidence."""
    needed = _graph.ancestors(net.parents, {node, *known})
    group = next(item for item in groups(net, known, needed) if node in item.nodes)
    result = integrate(net, group, known, memory)
    states = result.factor[0]
    logs = eliminate(net.factors(known, {node}, memory), states, net.sizes, memory).logs
    total = log_sum(logs)
    net.require_possible(float(total))
    weight = np.exp(logs - total)
    at = group.nodes.index(node)
    mean = float((weight * result.means[..., at]).sum())
    variance = (np.linalg.inv(result.R)[..., at, :] ** 2).sum(axis=-1)
    return mean, float(np.sqrt((weight * (variance + (result.means[..., at] - mean) ** 2)).sum()))


def place_of(value: Any, states: Sequence[str]) -> int | None:
    """Return the position of a state; numbers are equal to states that write the same number, 1.0 to "1"."""
    if str(value) in states:
        return states.index(str(value))
    if isinstance(value, Real):
        number = float(value)
        text = repr(int(number)) if number % 1 == 0 else repr(number)
        return states.index(text) if text in states else None
    return None


def labels(codes: np.ndarray, states: Sequence[Any]) -> list[Any]:
    """Return the states at these positions."""
    return [states[int(code)] for code in codes]


def as_frame(names: Sequence[str], columns: Iterable[Any], backend: Any) -> Any:
    """Return a frame of pandas, polars or pyarrow."""
    if backend not in ("pandas", "polars", "pyarrow"):
        raise ValueError(f"sample: frame must be None, 'pandas', 'polars' or 'pyarrow'; got {backend!r}.")
    return nw.from_dict(dict(zip(names, columns)), backend=backend).to_native()


@dataclass(frozen=True, eq=False)
class Answer:
    """P(query | evidence).

    Attributes
    ----------
    names : tuple of str
        The nodes asked about.
    states : tuple of tuples of str
    table : array, one axis for each node
    standard_error : array like `table`, or None if the answer is exact
    cells : int
        Entries of the largest table that was held on the way (of all tables of a junction tree); 0 for samples.
    effective_samples : float or None
        How many independent draws the samples are worth: of weighted rows (sum w)^2 / sum w^2, of Gibbs' method
        p (1 - p) / standard_error^2, the least over the entries of the table.
    r_hat : float or None
        Of Gibbs' method: spread over all chains beside that within halves of chains, the largest over the entries; 1
        once the chains have mixed.

    `answer["yes"]` is the probability of a state; of several nodes, `answer["yes", "no"]`.
    """

    names: tuple[str, ...]
    states: tuple[tuple[str, ...], ...]
    table: np.ndarray
    standard_error: np.ndarray | None = None
    cells: int = 0
    effective_samples: float | None = None
    r_hat: float | None = None

    def __getitem__(self, state: Any) -> float:
        wanted = state if isinstance(state, tuple) else (state,)
        places = [place_of(node, own) for node, own in zip(wanted, self.states)]
        if len(wanted) != len(self.names) or None in places:
            raise KeyError(f"{state!r} is not a state of {', '.join(self.names)}")
        return float(self.table[tuple(places)])

    def to_dict(self) -> dict[Any, float]:
        """Return the probabilities by state, of several nodes by tuples of states."""
        if len(self.names) == 1:
            return dict(zip(self.states[0], self.table.tolist()))
        cells = (tuple(own[i] for own, i in zip(self.states, at)) for at in np.ndindex(*self.table.shape))
        return dict(zip(cells, self.table.ravel().tolist()))

    def __repr__(self) -> str:
        text = ", ".join(f"{state}: {p:.6g}" for state, p in list(self.to_dict().items())[:8])
        return f"P({', '.join(self.names)}): {text}{', ...' if self.table.size > 8 else ''}"


@dataclass(frozen=True, eq=False)
class Explanation:
    """The most probable states of some nodes given evidence.

    Attributes
    ----------
    states : dict
        State by name.
    log_probability : float
        ln P(states | evidence).
    log_joint : float
        ln P(states, evidence), the density of it if there are numbers in the evidence.
    cells : int
        Entries of the largest table that was held on the way.
    """

    states: dict[str, str]
    log_probability: float
    log_joint: float
    cells: int = 0

    def __getitem__(self, name: str) -> str:
        return self.states[name]
