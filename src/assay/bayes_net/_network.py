"""A Bayesian network: a directed acyclic graph and the distribution of each node given its parents.

    P(x_1, ..., x_d) = prod_i P(x_i | parents of x_i)

A node with states has a conditional probability table. A numeric node is linear Gaussian: its mean is linear in its
numeric parents, with coefficients and a standard deviation for each combination of its other parents. A node with
states has no numeric parents.

Arrays in which a fitted network is stored:

sizes_ (d,)         number of states of each node, 0 for a number
edges_ (m, 2)       parent and child of each edge, sorted by child and then by parent
counts_             counts by (parents in order, state) of each node with states, tables concatenated
alpha_ (1,)         additive smoothing: P = (count + alpha) / (sum + alpha r), uniform if that is 0 / 0
gaussians_          for each numeric node a table by parents' states of intercept, coefficients, standard deviation
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from assay.bayes_net import _graph, _inference
from assay.bayes_net._graph import Parents
from assay.bayes_net._inference import LOG_2PI, Answer, Explanation, JunctionTree, as_frame, labels, place_of
from assay.data.columns import ColumnType

_SMALL = 2**24  # bytes of a junction tree that is made and kept without being asked for
_METHODS = ("auto", "elimination", "enumeration", "junction", "weighting", "gibbs")
_SUM = 1e-6  # by how much a row of a table that is given may miss 1, as tables printed to a few digits do


@dataclass(frozen=True, eq=False)
class Network:
    """Nodes, edges and tables, as they are: a network that is known, or what `BayesianNetwork` learnt.

    Parameters
    ----------
    names : tuple of str
    states : tuple of (tuple of str or None)
        The states of each node; None for a number.
    parents : tuple of tuples of int
        Positions of the parents of each node, in the order of the axes of its table.
    tables : tuple of arrays
        With states: P(x | parents), one axis for each parent and the last for the node. A number: one axis for each
        parent with states, and a last one of intercept, a coefficient for each numeric parent, and standard deviation.

    `Network.of` builds one by names.
    """

    names: tuple[str, ...]
    states: tuple[tuple[str, ...] | None, ...]
    parents: tuple[tuple[int, ...], ...]
    tables: tuple[np.ndarray, ...]

    def __post_init__(self) -> None:
        _graph.topological_order(self.parents, self.names)
        for node in range(len(self.names)):
            self._check(node)

    @classmethod
    def of(cls, states: Mapping[str, Sequence[Any] | None], tables: Mapping[str, Any]) -> "Network":
        """Build a network by names.

        Parameters
        ----------
        states : the states of each node, by its name; None for a number
        tables : for each node its table, or a pair: names of the parents, and the table

        >>> states = {"rain": ["no", "yes"], "wet": ["no", "yes"]}
        >>> net = Network.of(states, {"rain": [0.8, 0.2], "wet": (["rain"], [[0.9, 0.1], [0.2, 0.8]])})
        >>> round(net.infer("rain", {"wet": "yes"})["yes"], 4)
        0.6667
        """
        names = tuple(map(str, states))
        if set(names) != set(map(str, tables)):
            raise ValueError("Network: states and tables must name the same nodes.")
        parents, arrays = [], []
        for name in names:
            given = tables[name]
            above, table = given if isinstance(given, tuple) else ((), given)
            parents.append(tuple(_position(names, parent) for parent in above))
            arrays.append(np.asarray(table, dtype=np.float64))
        kept = tuple(None if state is None else tuple(map(str, state)) for state in states.values())
        return cls(names, kept, tuple(parents), tuple(arrays))

    def _check(self, node: int) -> None:
        name, table, above = self.names[node], self.tables[node], self.parents[node]
        shape = tuple(self.sizes[parent] for parent in above if self.states[parent] is not None)
        if self.is_number(node):
            if table.shape != (*shape, len(above) - len(shape) + 2):
                raise ValueError(f"Network: the table of {name!r} has shape {table.shape}, which does not fit.")
            if not np.isfinite(table).all() or (table[..., -1] <= 0).any():
                raise ValueError(f"Network: the table of {name!r} must be finite, with standard deviations > 0.")
            return
        if len(shape) < len(above):
            raise ValueError(f"Network: {name!r} has states, so its parents must; one of them is a number.")
        if table.shape != (*shape, self.sizes[node]):
            wanted = (*shape, self.sizes[node])
            raise ValueError(f"Network: the table of {name!r} must have shape {wanted}; it has {table.shape}.")
        if not np.isfinite(table).all() or (table < 0).any() or (np.abs(table.sum(axis=-1) - 1) > _SUM).any():
            raise ValueError(f"Network: the rows of the table of {name!r} must be probabilities that sum to 1.")

    # What the graph says ---------------------------------------------------------------------------------------

    @cached_property
    def sizes(self) -> list[int]:
        """Number of states of each node, 1 for a number."""
        return [1 if state is None else len(state) for state in self.states]

    def is_number(self, node: int) -> bool:
        """Tell whether a node is Gaussian.

        Parameters
        ----------
        node : int
            Name or number of the node.
        """
        return self.states[node] is None

    @property
    def edges(self) -> list[tuple[str, str]]:
        """Pairs (parent, child), by name."""
        return [(self.names[parent], name) for name, above in zip(self.names, self.parents) for parent in above]

    @cached_property
    def order(self) -> list[int]:
        """Nodes with parents before children."""
        return _graph.topological_order(self.parents)

    def n_parameters(self) -> int:
        """Return the number of free parameters: (r - 1) for each row of a table of r states; of a Gaussian node its
        coefficients and spread for each combination of states."""
        return sum(
            int(t.size if self.is_number(i) else t.size - t.size // t.shape[-1]) for i, t in enumerate(self.tables)
        )

    def d_separated(self, first: Any, second: Any, given: Any = ()) -> bool:
        """Tell whether the graph says that nodes are independent of others, given some: names, or lists of names.

        Parameters
        ----------
        first, second : array-like
            Nodes, by name.
        given : object, default=()
            Nodes whose states are known.
        """
        return _graph.d_separated(self.parents, *(self._nodes(part) for part in (first, second, given)))

    def cpdag(self) -> _graph.Cpdag:
        """Return the equivalence class of the graph: which edges all graphs with the same independences have in one
        direction, and which in both."""
        return _graph.cpdag(self.names, self.parents)

    def markov_blanket(self, name: str) -> list[str]:
        """Return parents, children and other parents of the children: given these, nothing else tells of the node.

        Parameters
        ----------
        name : str
            Name of the node.
        """
        node = _position(self.names, name)
        result = set(self.parents[node])
        for child, above in enumerate(self.parents):
            if node in above:
                result |= {child, *above}
        return [self.names[item] for item in sorted(result - {node})]

    def _nodes(self, names: Any) -> list[int]:
        return [_position(self.names, node) for node in ([names] if isinstance(names, str) else names)]

    # Rows --------------------------------------------------------------------------------------------------------

    def log_joint(self, rows: Any) -> np.ndarray:
        """Return ln P(row) of rows of positions among the states, or numbers: (n, nodes), without gaps."""
        rows = np.asarray(rows, dtype=np.float64)
        for node, states in enumerate(self.states):
            if states is not None and not np.isin(rows[:, node], np.arange(len(states))).all():
                raise ValueError(f"Network: {self.names[node]!r} takes positions from 0 to {len(states) - 1} in rows.")
        total = np.zeros(len(rows))
        for node in range(len(self.names)):
            total += self.log_conditional(node, rows)
        return total

    def log_conditional(self, node: int, rows: np.ndarray) -> np.ndarray:
        """Return ln P(x | parents) of one node for each row.

        Parameters
        ----------
        node : int
            Name or number of the node.
        """
        above, table = self.parents[node], self.tables[node]
        where = tuple(rows[:, parent].astype(np.intp) for parent in above if not self.is_number(parent))
        if not self.is_number(node):
            with np.errstate(divide="ignore"):
                return np.log(table)[(*where, rows[:, node].astype(np.intp))]
        numbers = [parent for parent in above if self.is_number(parent)]
        at = np.broadcast_to(table[where], (len(rows), table.shape[-1]))
        mean = at[:, 0] + np.einsum("ij,ij->i", at[:, 1:-1], rows[:, numbers])
        value = -0.5 * ((rows[:, node] - mean) / at[:, -1]) ** 2 - np.log(at[:, -1]) - 0.5 * LOG_2PI
        return np.where(np.isnan(rows[:, node]), 0.0, value)  # a number without a value is the parent of none

    def sample(self, n_samples: int = 1, random_state: Any = None, *, frame: str | None = None) -> Any:
        """Return rows drawn from the network, (n_samples, nodes): positions among the states, and numbers.

        With `frame` ("pandas", "polars" or "pyarrow") a frame of such a kind, of the states' names and numbers.
        """
        from assay.bayes_net import _draws

        rows = _draws.ancestral(self, int(n_samples), np.random.default_rng(random_state))
        if frame is None:
            return rows
        columns = ((node if own is None else labels(node, own)) for node, own in zip(rows.T, self.states))
        return as_frame(self.names, columns, frame)

    # Questions ---------------------------------------------------------------------------------------------------

    def infer(
        self,
        query: Any,
        evidence: Mapping[str, Any] | None = None,
        *,
        method: str = "auto",
        memory: int = _inference.MEMORY,
        n_samples: int = 10_000,
        burn_in: int = 500,
        chains: int = 4,
        random_state: Any = 0,
    ) -> Answer:
        """Return P(query | evidence).

        Parameters
        ----------
        query : a name, or several for their joint distribution
        evidence : state (or number) of nodes that are known, by name
        method : "elimination" and "enumeration" are exact, and so is "junction", which answers one query (about one
            node) after the other from tables made once; "auto" is that where these are small, else elimination;
            "weighting" draws rows forwards and weights them by the
            evidence, "gibbs" draws one node at a time given its Markov blanket. Both estimate a standard error and an
            effective sample size, and warn if that is small or the chains have not mixed.
        memory : bytes that tables may take; a query that needs more is refused with its size
        n_samples, random_state : rows drawn, of all chains together, and the seed
        burn_in, chains : of Gibbs' method, rows of each chain that are dropped first, and how many chains run
        """
        asked, known = self._nodes(query), self._known(evidence)
        self._check_query(asked, known, method)
        if method in ("weighting", "gibbs"):
            from assay.bayes_net import _draws

            rng = np.random.default_rng(random_state)
            if method == "weighting":
                drawn = _draws.weighted(self, asked, known, int(n_samples), rng)
            else:
                drawn = _draws.gibbs(self, asked, known, int(n_samples), int(burn_in), int(chains), rng)
            return self._answer(asked, drawn.table, drawn.error, 0, drawn.effective, drawn.r_hat)
        method = ("junction" if self._has_small_tree else "elimination") if method == "auto" else method
        if method == "junction" and len(asked) == 1:
            tree, tables = self._calibrated(known, memory)
            return self._answer(asked, tables[asked[0]], None, tree.cells)
        solve = _inference.enumerate_joint if method == "enumeration" else _inference.eliminate
        solution = solve(self.factors(known, asked, memory), asked, self.sizes, memory)
        total = _inference.log_sum(solution.logs)
        self.require_possible(float(total))
        return self._answer(asked, np.exp(solution.logs - total), None, solution.cells)

    def marginals(
        self, evidence: Mapping[str, Any] | None = None, *, memory: int = _inference.MEMORY
    ) -> dict[str, dict[str, float]]:
        """Return P(node | evidence) of every node with states, by name and state, from one junction tree.

        Parameters
        ----------
        memory : int, default=2**30
            Bytes that tables may take; more is refused.
        """
        result = self._calibrated(self._known(evidence), memory)[1]
        return {self.names[k]: dict(zip(self.states[k] or (), table.tolist())) for k, table in sorted(result.items())}

    def map_query(
        self, query: Any = None, evidence: Mapping[str, Any] | None = None, *, memory: int = _inference.MEMORY
    ) -> Explanation:
        """Return the most probable states of some nodes together (MAP); of all that are not known (MPE) by default.

        The other nodes are summed out first, which can take much larger tables than the explanation of all nodes does.

        Parameters
        ----------
        memory : int, default=2**30
            Bytes that tables may take; more is refused.

        Examples
        --------
        >>> states = {"rain": ["no", "yes"], "wet": ["no", "yes"]}
        >>> net = Network.of(states, {"rain": [0.8, 0.2], "wet": (["rain"], [[0.9, 0.1], [0.2, 0.8]])})
        >>> net.map_query(evidence={"wet": "yes"}).states
        {'rain': 'yes'}
        """
        known = self._known(evidence)
        every = [node for node in range(len(self.names)) if node not in known and not self.is_number(node)]
        asked = every if query is None else self._nodes(query)
        self._check_query(asked, known, "elimination")
        factors = self.factors(known, asked, memory)
        result = _inference.maximise(factors, asked, self.sizes, memory)
        self.require_possible(result.log)
        total = float(_inference.eliminate(self.factors(known, (), memory), [], self.sizes, memory).logs)
        states = {self.names[node]: (self.states[node] or ())[result.states[node]] for node in asked}
        return Explanation(states, min(result.log - total, 0.0), result.log, result.cells)

    def log_evidence(self, evidence: Mapping[str, Any], *, memory: int = _inference.MEMORY) -> float:
        """Return ln P(evidence), the density of it if there are numbers in it; -infinity if it cannot be.

        Parameters
        ----------
        memory : int, default=2**30
            Bytes that tables may take; more is refused.
        """
        known = self._known(evidence)
        return float(_inference.eliminate(self.factors(known, (), memory), [], self.sizes, memory).logs)

    def factors(
        self, known: Mapping[int, float], asked: Iterable[int], memory: int = _inference.MEMORY
    ) -> list[_inference.Factor]:
        """Return the factors that a query needs, cut down to the evidence, as logarithms.

        Nodes below everything asked are left out; numbers that are not known are integrated out.

        Parameters
        ----------
        known : mapping
            Known states, by number of the node.
        memory : int, default=2**30
            Bytes that tables may take; more is refused.
        """
        needed = _graph.ancestors(self.parents, {*asked, *known})
        groups = _inference.groups(self, known, needed)
        joined = {family for group in groups for family in group.families}
        results = [self._factor(node, known) for node in sorted(needed - joined)]
        return results + [_inference.integrate(self, group, known, memory).factor for group in groups]

    def _factor(self, node: int, known: Mapping[int, float]) -> _inference.Factor:
        family = [item for item in (*self.parents[node], node) if not self.is_number(item)]
        table = self.tables[node]
        if self.is_number(node):
            numbers = [known[parent] for parent in self.parents[node] if self.is_number(parent)]
            mean = table[..., 0] + table[..., 1:-1] @ np.array(numbers)
            logs = -0.5 * ((known[node] - mean) / table[..., -1]) ** 2 - 0.5 * LOG_2PI - np.log(table[..., -1])
        else:
            with np.errstate(divide="ignore"):
                logs = np.log(table)
        cut = tuple(int(known[item]) if item in known else slice(None) for item in family)
        return tuple(item for item in family if item not in known), logs[cut]

    def _calibrated(self, known: Mapping[int, float], memory: int) -> tuple[JunctionTree, dict[int, np.ndarray]]:
        tree = self._tree(known, memory)
        result, total = tree.marginals({k: int(v) for k, v in known.items() if not self.is_number(k)})
        self.require_possible(total)
        return tree, result

    def _tree(self, known: Mapping[int, float], memory: int) -> JunctionTree:
        """Return the junction tree: one for all queries if every node has states, else one for this evidence."""
        if any(state is None for state in self.states):
            nodes = [node for node in range(len(self.names)) if not self.is_number(node)]
            free = {k: v for k, v in known.items() if self.is_number(k)}
            return JunctionTree(self.factors(free, nodes, memory), self.sizes, memory)
        made = self.__dict__.get("_made")
        if made is None:
            made = JunctionTree(self.factors({}, range(len(self.names))), self.sizes, memory)
            self.__dict__["_made"] = made
        return made

    @cached_property
    def _has_small_tree(self) -> bool:
        """Whether there is a junction tree for all queries, and it takes little memory."""
        if any(state is None for state in self.states):
            return False
        try:
            self._tree({}, _SMALL)
        except _inference.TooLargeError:
            return False
        return True

    def _known(self, evidence: Mapping[str, Any] | None) -> dict[int, float]:
        """Return evidence by position: the state's position, or the number."""
        results: dict[int, float] = {}
        for name, value in (evidence or {}).items():
            node = _position(self.names, name)
            states = self.states[node]
            if states is None:
                results[node] = float(value)
                if not np.isfinite(results[node]):
                    raise ValueError(f"Network: the value of {name!r} must be a finite number; got {value!r}.")
                continue
            place = place_of(value, states)
            if place is None:
                raise ValueError(f"Network: {name!r} has no state {value!r}; its states are {', '.join(states)}.")
            results[node] = place
        return results

    def _check_query(self, asked: list[int], known: Mapping[int, float], method: str) -> None:
        if method not in _METHODS:
            raise ValueError(f"Network: method must be one of {', '.join(_METHODS)}; got {method!r}.")
        if not asked or len(set(asked)) < len(asked) or set(asked) & set(known):
            raise ValueError("Network: the query must name at least one node, none twice, and none of the evidence.")
        numbers = [self.names[node] for node in asked if self.is_number(node)]
        if numbers:
            raise ValueError(f"Network: {numbers[0]!r} is a number; ask `expectation` for its mean and spread.")

    def require_possible(self, log_evidence: float) -> None:
        """Raise if ln P(evidence) is -infinity.

        Parameters
        ----------
        log_evidence : float
            ln P(evidence).
        """
        if log_evidence == -np.inf:
            raise ValueError("Network: the evidence has probability 0, so that nothing follows from it.")

    def _answer(self, asked: list[int], table: np.ndarray, error: np.ndarray | None, cells: int, *drawn: Any) -> Answer:
        names = tuple(self.names[node] for node in asked)
        return Answer(names, tuple(self.states[node] or () for node in asked), table, error, cells, *drawn)

    def expectation(
        self,
        name: str,
        evidence: Mapping[str, Any] | None = None,
        *,
        method: str = "elimination",
        memory: int = _inference.MEMORY,
        n_samples: int = 10_000,
        random_state: Any = 0,
    ) -> tuple[float, float, float]:
        """Return mean and standard deviation of a number given evidence, and the standard error of the mean.

        They are exact, with error 0, by "elimination"; "weighting" draws `n_samples` rows forwards and weights them.

        Parameters
        ----------
        name : str
            Name of the node.
        method : str, default="elimination"
            "elimination" or "weighting".
        memory : int, default=2**30
            Bytes that tables may take; more is refused.
        """
        node, known = _position(self.names, name), self._known(evidence)
        if not self.is_number(node):
            raise ValueError(f"Network: {name!r} has states and no mean; ask `infer`.")
        if method not in ("elimination", "weighting") or node in known:
            raise ValueError("Network: method must be 'elimination' or 'weighting', of a number that is not known.")
        if method == "elimination":
            return (*_inference.moments(self, node, known, memory), 0.0)
        from assay.bayes_net import _draws

        return _draws.moments(self, node, known, int(n_samples), np.random.default_rng(random_state))

    def do(self, values: Mapping[str, Any]) -> "Network":
        """Return the network in which nodes are set to values from outside, whatever their parents are.

        A node that is set keeps its name and loses its parents; it has the state with probability 1. A number that is
        set is no longer a node: its children have its value in their intercepts.

        Parameters
        ----------
        values : mapping
            State or number of each node that is set, by name.

        Examples
        --------
        >>> levels = {"a": ["0", "1"], "b": ["0", "1"]}
        >>> net = Network.of(levels, {"a": [0.5, 0.5], "b": (["a"], [[0.9, 0.1], [0.2, 0.8]])})
        >>> net.do({"b": 1}).infer("a")["1"]
        0.5
        """
        return do(self, self._known(values))

    # Files -------------------------------------------------------------------------------------------------------

    def to_bif(self, path: Any = None) -> str:
        """Return the network as text in the Bayesian Interchange Format; with `path`, write it there too.

        Parameters
        ----------
        path : path or None
            File to write; None: only return the text.
        """
        from assay.bayes_net import _draws

        return _draws.write(self, path)

    def __repr__(self) -> str:
        return f"Network of {len(self.names)} nodes, {len(self.edges)} edges and {self.n_parameters()} parameters"


def _position(names: Sequence[str], name: Any) -> int:
    if str(name) not in names:
        raise ValueError(f"Network: there is no node {name!r}; the nodes are {', '.join(names[:20])}.")
    return names.index(str(name))


def do(net: "Network", known: Mapping[int, float]) -> "Network":
    """Return the network whose `known` nodes have these values and no parents."""
    numbers = [node for node in known if net.is_number(node)]
    kept = [node for node in range(len(net.names)) if node not in numbers]
    place = {node: i for i, node in enumerate(kept)}
    parents: list[tuple[int, ...]] = []
    tables = []
    for node in kept:
        if node in known:
            parents.append(())
            tables.append(np.eye(net.sizes[node])[int(known[node])])
            continue
        parents.append(tuple(place[parent] for parent in net.parents[node] if parent not in numbers))
        tables.append(_with_values(net, node, known) if net.is_number(node) else net.tables[node])
    names = tuple(net.names[node] for node in kept)
    states = tuple(net.states[node] for node in kept)
    return type(net)(names, states, tuple(parents), tuple(tables))


def _with_values(net: "Network", node: int, known: Mapping[int, float]) -> np.ndarray:
    """Return the table of a number with the values of numeric parents that are set moved into the intercept."""
    table = net.tables[node].copy()
    above = [parent for parent in net.parents[node] if net.is_number(parent)]
    for k, parent in enumerate(above):
        if parent in known:
            table[..., 0] += table[..., 1 + k] * known[parent]
    return np.delete(table, [1 + k for k, item in enumerate(above) if item in known], axis=-1)


def edges_of(parents: Parents) -> np.ndarray:
    """Return the edges (m, 2), sorted by child and parent."""
    results = [(parent, child) for child, above in enumerate(parents) for parent in sorted(above)]
    return np.array(results, dtype=np.int64).reshape(-1, 2)


def parents_of(edges: np.ndarray, d: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(edges[edges[:, 1] == child, 0].tolist()) for child in range(d))


def flat(tables: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *(np.asarray(table, dtype=np.float64).ravel() for table in tables)])


def probabilities(counts: np.ndarray, alpha: float) -> np.ndarray:
    """Return (count + alpha) / (sum + alpha r) along the last axis, equal shares where there is nothing to count."""
    total = counts.sum(axis=-1, keepdims=True) + alpha * counts.shape[-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, (counts + alpha) / total, 1.0 / counts.shape[-1])


def unpacked(sizes: np.ndarray, edges: np.ndarray, counts: np.ndarray, gaussians: np.ndarray) -> list[np.ndarray]:
    """Return the table of each node: counts, or rows of intercept, coefficients and spread."""
    tables, at, other = [], 0, 0
    for node, above in enumerate(parents_of(edges, len(sizes))):
        shape = [int(sizes[parent]) for parent in above if sizes[parent]]
        if sizes[node]:
            shape.append(int(sizes[node]))
            length = int(np.prod(shape))
            tables.append(counts[at : at + length].reshape(shape))
            at += length
        else:
            shape.append(len(above) - len(shape) + 2)
            length = int(np.prod(shape))
            tables.append(gaussians[other : other + length].reshape(shape))
            other += length
    return tables


def network_of(model: Any, types: Sequence[ColumnType]) -> Network:
    """Return the network that the arrays of a fitted learner are; `types` name the nodes and their states."""
    sizes, parents = model.sizes_, parents_of(model.edges_, len(model.sizes_))
    tables = unpacked(sizes, model.edges_, model.counts_, model.gaussians_)
    tables = [probabilities(table, float(model.alpha)) if sizes[i] else table for i, table in enumerate(tables)]
    states = tuple(kind.levels if kind.kind == "nominal" else None for kind in types)
    return Network(tuple(kind.name for kind in types), states, parents, tuple(tables))
