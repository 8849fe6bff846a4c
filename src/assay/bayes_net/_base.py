"""What learners of networks have in common: structure, tables, EM for gaps, and the network as a model."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner
from assay.bayes_net import _graph, _network, _search
from assay.bayes_net._gaps import Coded, NetworkWithGaps, places, raw, text_of
from assay.bayes_net._inference import as_frame, labels
from assay.bayes_net._network import Network
from assay.bayes_net._search import Families, factor_of
from assay.data.columns import ColumnType
from assay.fitlog import FitLog
from assay.naive_bayes._base import types_as_text, types_of_text
from assay.optim.em import em
from assay.params import Constraint, Count, Maybe, NameOr, Number, Positive, refuse

SCORES = ("bic", "mdl", "aic", "ll", "bdeu")
SEARCH: dict[str, Constraint] = {
    "criterion": NameOr(Number(low=0.0, why="it is the price of a parameter"), *SCORES),
    "equivalent_sample_size": Positive(),
    "max_parents": Maybe(Count()),
    "tabu": Count(low=0),
    "restarts": Count(low=0),
    "max_iter": Count(),
    "tol": Positive(),
}


@dataclass(eq=False, repr=False)
class SearchParameters:
    """The parameters that learning a network has, whatever it is for."""

    _: KW_ONLY
    criterion: Any = "bic"
    equivalent_sample_size: float = 10.0
    alpha: float = 1.0
    max_parents: int | None = None
    required: Any = ()
    forbidden: Any = ()
    tabu: int = 30
    restarts: int = 0
    max_iter: int = 10_000
    tol: float = 1e-3
    nominal: Any = None
    hidden: Any = None
    random_state: Any = None
    n_jobs: int | None = None


class NetworkLearner(Learner):
    """A learner whose model is a network; `sizes_`, `values_`, `edges_`, `counts_` and `gaussians_` define it."""

    figure = "dependency_graph"
    alpha: float
    nominal: Any
    n_jobs: int | None
    max_iter: int
    tol: float
    tabu: int
    restarts: int
    random_state: Any
    columns_: tuple[ColumnType, ...]
    values_: np.ndarray
    gaps_: np.ndarray
    sizes_: np.ndarray
    edges_: np.ndarray
    counts_: np.ndarray
    gaussians_: np.ndarray
    constraints: ClassVar[Mapping[str, Constraint]] = {"alpha": Number(low=0.0, why="it is a number of rows")}

    # The stored form -------------------------------------------------------------------------------------------

    @property
    def alpha_(self) -> np.ndarray:
        """The rows added to each entry of a table, as the checker reads them."""
        return np.array([float(self.alpha)])

    @property
    def column_types_(self) -> np.ndarray:
        """Name, kind and levels of each column as JSON text."""
        return types_as_text(self.columns_)

    def _take_arrays(self, arrays: Mapping[str, Any]) -> None:
        super()._take_arrays(arrays)
        self.columns_ = types_of_text(arrays["column_types_"]) or ()

    def _node_types(self) -> tuple[ColumnType, ...]:
        return self.columns_

    def _derive(self) -> None:
        self._network = float(self.alpha), _network.network_of(self, self._node_types())

    @property
    def network_(self) -> Network:
        """The network with its probabilities, which follow `alpha` when this is set after the fit, as `alpha_` does."""
        if self._network[0] != float(self.alpha):
            self._derive()
        return self._network[1]

    # Rows ---------------------------------------------------------------------------------------------------------

    def _raw(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return raw(self, X)

    def codes(self, X: Any) -> np.ndarray:
        """Return rows as the network reads them, (n, columns): positions among the states, numbers, NaN for gaps."""
        return self._coded(self._raw(X))

    def _coded(self, rows: np.ndarray) -> np.ndarray:
        return places(rows, self.sizes_[: self.n_features_in_], self.values_)

    def _drawn(self, n_samples: int, random_state: Any, frame: str | None) -> tuple[Any, np.ndarray]:
        """Return rows of the columns, as values or as a frame, and the same as positions among the states."""
        check_is_fitted(self)
        codes = self.network_.sample(n_samples, check_random_state(random_state).randint(2**31 - 1))
        rows, columns, start = codes[:, : len(self.columns_)].copy(), [], 0
        for j, kind in enumerate(self.columns_):
            if kind.kind == "numeric":
                columns.append(rows[:, j])
                continue
            values = self.values_[start : start + len(kind.levels)]
            start += len(values)
            named = list(kind.levels) != [text_of(value) for value in values.tolist()]  # states that are no numbers
            columns.append(labels(codes[:, j], kind.levels if named else values.tolist()))
            rows[:, j] = values[codes[:, j].astype(np.intp)]
        return rows if frame is None else as_frame([kind.name for kind in self.columns_], columns, frame), codes

    # Fitting ------------------------------------------------------------------------------------------------------

    def _enough(self, data: Coded) -> None:
        if data.n_rows < 2:
            raise refuse(self, f"needs at least 2 rows; got n_samples = {data.n_rows}, that is 1 sample.")

    def _complete(self, data: Coded) -> Coded:
        """Return the rows without gaps, on which the structure is learnt."""
        if not data.gaps:
            return data
        whole = np.ones(data.n_rows, dtype=bool)
        for j, size in enumerate(data.sizes.tolist()):
            if size:
                whole &= data.codes[j] < size
        if whole.sum() < 2:
            raise refuse(
                self, "fewer than 2 rows have no gaps, and the structure is learnt from these; give edges as structure."
            )
        return data.take(np.flatnonzero(whole))

    def _families(self, data: Coded, score: Any = "ll", samples: float = 1.0) -> Families:
        factor = factor_of(score, data.total)
        if factor < 0 and (data.sizes == 0).any():
            raise refuse(self, "the criterion 'bdeu' is about tables, and a column holds numbers; use 'bic'.")
        return Families(data, factor, float(samples), self.n_jobs)

    def _estimate(self, data: Coded, parents: Sequence[Sequence[int]], families: Families | None = None) -> dict:
        """Return the fitted attributes: counts of the rows (of those whose family has no gap), and regressions."""
        families = self._families(data) if families is None else families
        counts, gaussians = [], []
        for node, above in enumerate(parents):
            if data.sizes[node]:
                counts.append(_counted(data, families, node, above))
            else:
                self._check_no_gaps(data, node, above)
                gaussians.append(families.regression(node, sorted(above)).table)
        results = {
            "sizes_": data.sizes, "edges_": _network.edges_of(parents), "counts_": _network.flat(counts),
            "gaussians_": _network.flat(gaussians),
        }  # fmt: skip
        return results

    def _check_no_gaps(self, data: Coded, node: int, above: Sequence[int]) -> None:
        for parent in above:
            if data.holes[parent]:
                names = [kind.name for kind in self._node_types()]
                raise refuse(
                    self, f"{names[parent]!r} has gaps and is a parent of the number {names[node]!r}; drop that edge."
                )

    def _keep(self, results: Mapping[str, Any]) -> None:
        for name, value in results.items():
            setattr(self, name, value)
        self._derive()

    def _arrays(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("sizes_", "edges_", "counts_", "gaussians_")}

    def _usable(self, results: Mapping[str, Any]) -> dict[str, Any]:
        """Return all attributes that make a learner with these arrays usable, for whoever watches the fit."""
        twin = type(self)(**self.get_params(deep=False))
        for name in ("columns_", "values_", "gaps_", "n_features_in_", "feature_names_in_", "classes_"):
            if name in vars(self):
                setattr(twin, name, getattr(self, name))
        NetworkLearner._keep(twin, results)
        return {k: v for k, v in vars(twin).items() if k.endswith("_") and not k.startswith("_")}

    def _fill_gaps(self, data: Coded, log: FitLog) -> None:
        """Learn the tables by EM from rows with gaps, from the counts of what is known."""
        net = self.network_
        rows = np.where(data.sizes[:, None] > 0, data.codes, data.numbers if len(data.numbers) else 0.0).T
        rows = np.where((data.sizes > 0) & (rows == data.sizes), np.nan, rows)
        problem = NetworkWithGaps(net, rows, float(self.alpha), data.weight)

        def watch(parameters: Any, value: float, gain: float) -> bool:
            fitted = self._usable(self._expected(problem, parameters)) if log.watched else {}
            return log.step(-value, max(gain, 0.0), **fitted)

        runs = []
        for start in self._em_starts(data):
            runs.append(em(problem, start, tol=self.tol, max_iter=self.max_iter, watch=watch))
            if log.stopped:
                break
        result = max(runs, key=lambda node: node.log_likelihood)
        self._keep(self._expected(problem, result.parameters))
        self.em_history_ = result.history
        if not result.converged and not log.stopped:
            self._warn(f"EM stopped after max_iter={self.max_iter} steps; raise max_iter or tol.")

    def _em_starts(self, data: Coded) -> Iterator[list[np.ndarray]]:
        """Yield tables to start EM from: the counts of what is known, and of families with a column of which nothing is
        known random rows, since equal ones would stay equal; as many such starts as `restarts` says, and one."""
        net, unseen = self.network_, {j for j, size in enumerate(data.sizes) if size and (data.codes[j] == size).all()}
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1) if unseen else 0)
        for _ in range(1 + (self.restarts if unseen else 0)):
            tables = []
            for node, node_table in enumerate(self._node_tables()):
                if net.is_number(node):
                    tables.append(node_table)
                elif unseen & {node, *net.parents[node]}:
                    tables.append(rng.dirichlet(np.ones(node_table.shape[-1]), node_table.shape[:-1]))
                else:
                    tables.append(_network.probabilities(node_table, max(float(self.alpha), 1.0)))
            yield tables

    def _expected(self, problem: NetworkWithGaps, parameters: Sequence[np.ndarray]) -> dict[str, Any]:
        """Return the arrays whose counts are those expected at the parameters."""
        counts = problem.e_step(parameters).statistics
        kept = [np.where(count > 1e-140, count, 0.0) for i, count in enumerate(counts) if self.sizes_[i]]
        return {**self._arrays(), "counts_": _network.flat(kept)}

    def _node_tables(self) -> list[np.ndarray]:
        return _network.unpacked(self.sizes_, self.edges_, self.counts_, self.gaussians_)

    def _warn(self, text: str) -> None:
        warnings.warn(f"{type(self).__name__}: {text}", ConvergenceWarning, stacklevel=5)

    # Structure ----------------------------------------------------------------------------------------------------

    def _edges(self, given: Any, names: Sequence[str], what: str) -> list[tuple[int, int]]:
        """Return pairs (parent, child) of names or positions as positions."""
        try:
            pairs = [tuple(pair) for pair in given]
        except TypeError:
            raise refuse(self, f"{what} must be a list of pairs (parent, child); got {given!r}.") from None
        results = []
        for pair in pairs:
            if len(pair) != 2:
                raise refuse(self, f"{what} must be a list of pairs (parent, child); got {pair!r} in it.")
            at = [names.index(node) if isinstance(node, str) and node in names else node for node in pair]
            if not all(isinstance(node, (int, np.integer)) and 0 <= node < len(names) for node in at) or at[0] == at[1]:
                raise refuse(self, f"{what} names {pair!r}; the nodes are {', '.join(names[:20])}.")
            results.append((int(at[0]), int(at[1])))
        return results

    def _given(self, structure: Any, names: Sequence[str], sizes: np.ndarray) -> _search.Parents:
        """Return the structure that the user lists, after checking that it has no cycle."""
        parents: list[set[int]] = [set() for _ in names]
        for parent, child in self._edges(structure, names, "structure"):
            if sizes[child] and not sizes[parent]:
                raise refuse(self, f"{names[child]!r} has states, so that the number {names[parent]!r} cannot be its "
                                   "parent; turn the edge round.")  # fmt: skip
            parents[child].add(parent)
        result = tuple(tuple(sorted(item)) for item in parents)
        try:
            _graph.topological_order(result, names)
        except ValueError as error:
            raise refuse(self, str(error)) from None
        return result

    def _climb(
        self, data: Coded, families: Families, limits: _search.Limits, log: FitLog
    ) -> tuple[_search.Parents, float]:
        """Return the graph that greedy search finds, and its cost."""

        def watch(state: _search.State, cost: float, gain: float) -> bool:
            fitted = self._usable(self._estimate(data, state.frozen(), families)) if log.watched else {}
            return log.step(cost, gain, **fitted)

        seed = check_random_state(self.random_state).randint(2**31 - 1) if self.restarts else 0
        parents, cost, ended = _search.greedy(
            families, limits, tabu=self.tabu, restarts=self.restarts, max_iter=self.max_iter,
            rng=np.random.default_rng(seed), watch=watch,
        )  # fmt: skip
        if not ended and not log.stopped:
            self._warn(f"the search stopped after max_iter={self.max_iter} changes; raise max_iter.")
        return parents, cost

    def _limits(
        self, data: Coded, names: Sequence[str], required: Any, forbidden: Any, most: int | None
    ) -> _search.Limits:
        """Return which edges there may and must be; numbers are parents of numbers alone, gaps of no number."""
        d = len(names)
        allowed = ~np.eye(d, dtype=bool)
        states = data.sizes > 0
        allowed &= ~(~states[:, None] & states[None, :])
        allowed[np.ix_(data.holes, ~states)] = False
        for parent, child in self._edges(forbidden, names, "forbidden"):
            allowed[parent, child] = False
        needed = np.zeros((d, d), dtype=bool)
        for parent, child in self._edges(required, names, "required"):
            if not allowed[parent, child]:
                raise refuse(self, f"the edge {names[parent]!r} -> {names[child]!r} is required, and may not be there.")
            needed[parent, child] = True
        limits = _search.Limits(allowed, needed, d if most is None else int(most))
        if needed.sum(axis=0).max() > limits.most:
            raise refuse(self, f"a node has more required parents than max_parents={most}.")
        try:
            _graph.topological_order(limits.start(), names)
        except ValueError as error:
            raise refuse(self, f"required: {error}") from None
        return limits


def _counted(data: Coded, families: Families, node: int, above: Sequence[int]) -> np.ndarray:
    """Return the counts of a family, of the rows in which none of it is a gap."""
    if not data.gaps:
        return families.table(node, above)
    family = [*sorted(above), node]
    known = np.ones(data.n_rows, dtype=bool)
    for item in family:
        known &= data.codes[item] < data.sizes[item]
    result = np.zeros([int(data.sizes[other_item]) for other_item in family])
    weight = 1.0 if data.weight is None else data.weight[known]
    np.add.at(result, tuple(data.codes[other_item][known] for other_item in family), weight)
    return result
