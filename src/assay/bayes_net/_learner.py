"""Bayesian networks learnt from data.

    BayesianNetwork    minimise over graphs  f |B| - LL(B | rows)       (AIC: f = 1, BIC: f = (ln n) / 2, LL: f = 0)
                       P(x | parents) = (count(x, parents) + alpha) / (count(parents) + alpha r)
    ChowLiu            maximise over trees T  the sum over edges (i, j) of T of the mutual information I(x_i, x_j)

Claims: the counts are those of the rows; no change of a single edge lowers the score, and with few columns no graph
        does; no tree has a larger log-likelihood than Chow and Liu's (1968).
Method: greedy search with a tabu list over changes of single edges, tables counted once; a maximum spanning tree.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import DensityMixin
from sklearn.callback import with_callbacks

from assay import scan
from assay.base import fit_log
from assay.bayes_net import _claims, _search
from assay.bayes_net._base import SEARCH, NetworkLearner, SearchParameters
from assay.bayes_net._gaps import Coded, counted_rows, log_known, read_coded
from assay.bayes_net._inference import Answer
from assay.card import Card
from assay.claims.claim import Certificate, Claim, NotApplicable
from assay.data.blocks import Block
from assay.fitlog import FitLog
from assay.guarantees.evidence import Density, Evidence
from assay.mixture._density import log_likelihood
from assay.params import Count, NameOr, Positive, check, refuse
from assay.scan import Rows

STRUCTURES = ("greedy", "exact", "empty")


class NetworkDensity(DensityMixin, NetworkLearner):
    """A network over the columns as a density of rows: probabilities of states, densities of numbers."""

    family = "bayes_net.density"

    def score_samples(self, X: Any) -> np.ndarray:
        """Return ln P(row) of each row; of a row with gaps, of what is known of it."""
        return np.concatenate(scan.rows(self._raw(X), n_jobs=self.n_jobs).map(_log_rows, self))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of ln P(row); y is not used."""
        return float(np.mean(self.score_samples(X)))

    def log_likelihood(self, X: Any) -> float:
        """Return the sum of ln P(row) over the rows, in nats."""
        return float(np.sum(self.score_samples(X)))

    def n_parameters(self) -> int:
        """Return the number of free parameters of the network."""
        return self.network_.n_parameters()

    @property
    def edges(self) -> list[tuple[str, str]]:
        """Pairs (parent, child), by name."""
        return self.network_.edges

    def infer(self, query: Any, evidence: Mapping[str, Any] | None = None, **how: Any) -> Answer:
        """Return P(query | evidence); see `Network.infer` for the methods."""
        return self.network_.infer(query, evidence, **how)

    def sample(self, n_samples: int = 1, random_state: Any = None, *, frame: str | None = None) -> Any:
        """Return rows drawn from the network, (n_samples, columns), parents before children: values as in an array that
        was fitted, codes of a frame's states; with `frame` ("pandas", "polars", "pyarrow") a frame, of their names."""
        return self._drawn(n_samples, random_state, frame)[0]

    def predict_column_proba(self, X: Any, column: Any) -> np.ndarray:
        """Return P(state | the other columns) of a column with states, (rows, states); its own entries are not read."""
        node = self._position(column)
        rows = self.codes(X)
        logs = np.empty((len(rows), int(self.sizes_[node])))
        for state in range(logs.shape[1]):
            rows[:, node] = state
            logs[:, state] = log_known(self.network_, rows)
        top = logs.max(axis=1, keepdims=True)
        shares = np.where(top > -np.inf, np.exp(logs - np.where(top > -np.inf, top, 0.0)), 1.0)
        return shares / shares.sum(axis=1, keepdims=True)

    def predict_column(self, X: Any, column: Any) -> np.ndarray:
        """Return the most probable state of a column given the others, as text; its own entries are not read."""
        states = np.array(self.network_.states[self._position(column)], dtype=object)
        return states[self.predict_column_proba(X, column).argmax(axis=1)]

    def _position(self, column: Any) -> int:
        names = self.network_.names
        node = names.index(column) if column in names else column
        if not isinstance(node, (int, np.integer)) or not 0 <= node < len(names) or not self.sizes_[node]:
            raise refuse(self, f"column must be one with states; got {column!r}.")
        return int(node)

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        return scan.rows(self._raw(X), None, sample_weight, n_jobs=self.n_jobs)

    def certify(self, X: Any, y: Any = None, *, queries: Sequence[Any] = (), **asked: Any) -> Certificate:
        """Return a certificate of this fitted model; see `Learner.certify`.

        `queries` are evidence, states by name, or pairs (nodes, evidence): of each the certificate proves which states
        of the nodes, or of all that are not known, are the most probable together, and the probabilities of all states.
        """
        self.queries = [query if isinstance(query, tuple) else (None, query) for query in queries]
        try:
            return super().certify(X, y, **asked)
        finally:
            del self.queries

    queries: Sequence[tuple[Any, Any]] = ()

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the probability of each row."""
        yield Density(_bounded, (self,))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


@dataclass(eq=False, repr=False)
class BayesianNetwork(SearchParameters, NetworkDensity):
    """A Bayesian network: structure and tables, learnt from rows.

    Columns of text, categories and booleans of a frame are nodes with states; columns of numbers are Gaussian given
    their parents, unless `nominal` says that their numbers are names. Entries may be missing: the tables are then
    learnt by EM, the structure from the rows without gaps in states; a column that lacks values is the parent of no
    number.

    Parameters
    ----------
    structure : "greedy", "exact", "empty" or a list of edges
        How the graph is found: by changes of one edge; the best of all graphs (up to 12 columns); no edges; or pairs
        (parent, child), by name or position.
    criterion : "bic", "mdl" (the same), "aic", "ll", "bdeu" or a number f >= 0
        f |B| - LL, in nats and to be minimised, with f = (ln n) / 2, 1, 0 or the number; "bdeu" is minus the logarithm
        of the probability of the rows under even Dirichlet priors (tables only).
    equivalent_sample_size : float > 0
        Rows that the priors of "bdeu" are worth.
    alpha : float >= 0
        Rows added to each entry of a table. With 0 a combination that was never seen has probability 0 (ln is
        -infinity, never NaN), and parents that were never seen give equal shares.
    max_parents : int or None
        Parents of a node, at most.
    required, forbidden : list of edges
        Edges that must, and must not, be there.
    tabu : int
        Changes, of edges not changed lately, that a search may make in vain before it ends; 0: the first optimum.
    restarts : int
        Further searches, from random graphs with the same independences as the best; of EM with hidden columns, further
        starts.
    max_iter : int
        Changes of edges, and steps of EM, at most.
    tol : float > 0
        EM ends once a step gains less, in nats over all rows.
    nominal : None, "all" or a list of columns
        Columns, by name or position, whose numbers are names.
    hidden : mapping or None
        Columns that have no value in any row, by name or position, with the number of their states or a list of these.
        Their tables are learnt by EM from random starts, `restarts` + 1 of them; edges must be given.
    random_state, n_jobs
        Seed of the restarts and random starts; threads (they change the time, never a bit of the result).

    Attributes
    ----------
    network_ : Network
        Names, states, parents and tables; asks and answers queries.
    edges_ (m, 2), sizes_ (d,), values_, counts_, gaussians_
        The network as arrays: see `assay.bayes_net._network`.
    score_ : float
        Score of the structure on the rows that it was learnt from.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.bayes_net import BayesianNetwork
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.random(1000) < 0.3
    >>> wet = rng.random(1000) < np.where(rain, 0.9, 0.1)
    >>> X = np.column_stack([rain, wet, rng.random(1000) < 0.5]).astype(int)
    >>> model = BayesianNetwork(nominal="all").fit(X)
    >>> [sorted(edge) for edge in model.edges]
    [['x0', 'x1']]
    >>> round(model.infer("x0", {"x1": 1})["1"], 2)
    0.73
    """

    card = Card(
        name="Bayesian network",
        task="density",
        model="products of P(x | parents) over the nodes of a directed acyclic graph",
        strategy="log-likelihood with a price for parameters, or the probability of the rows",
        algorithm="greedy changes of one edge with a tabu list, or dynamic programming; counting, EM",
        guarantee=(
            "density.log-likelihood",
            "network.counts",
            "network.local-optimum",
            "network.optimum",
            "network.marginals",
            "network.explanation",
            "network.posterior",
            "network.local-optimum-mixed",
            "network.optimum-mixed",
            "network.regressions",
        ),
    )

    constraints: ClassVar = {
        **SEARCH,
        "structure": NameOr(None, *STRUCTURES),
    }

    structure: Any = "greedy"

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "BayesianNetwork":
        """Learn the network of the rows X: an array, a frame, Parquet files; y is not used.

        With `sample_weight` a row counts as so many.
        """
        check(self)
        X, _, weight = counted_rows(self, X, None, sample_weight)
        data = read_coded(self, X, weight=weight)
        self._enough(data)
        with fit_log(self, self.max_iter, X, None) as log:
            parents = self._structure(data, log)
            self._keep(self._estimate(data, parents))
            if data.gaps and not log.stopped:
                self._fill_gaps(data, log)
            if not log.history:
                log.step(self.score_, 0.0, **(self._usable(self._arrays()) if log.watched else {}))
            self.n_iter_ = len(log.history)
        return self

    def _structure(self, data: Coded, log: FitLog) -> _search.Parents:
        """Return the parents of each node; keep the score and the limits of the search."""
        names = [kind.name for kind in self.columns_]
        if not isinstance(self.structure, str):
            parents = self._given(self.structure, names, data.sizes)
            self.score_ = np.nan if data.gaps else self._price(data).total(parents)
            return parents
        whole = self._complete(data)
        families = self._price(whole)
        limits = self._own_limits(data)
        if self.structure == "empty":
            parents = limits.start()
            self.score_ = families.total(parents)
        elif self.structure == "exact":
            if len(names) > _search.MOST_EXACT:
                raise refuse(self, f"structure='exact' is for at most {_search.MOST_EXACT} columns; got {len(names)}.")
            parents, self.score_ = _search.exact(families, limits)
        else:
            parents, self.score_ = self._climb(whole, families, limits, log)
        return parents

    def _price(self, data: Coded):
        return self._families(data, self.criterion, self.equivalent_sample_size)

    def _own_limits(self, data: Coded) -> _search.Limits:
        names = [kind.name for kind in self.columns_]
        return self._limits(data, names, self.required, self.forbidden, self.max_parents)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield likelihood, counts, that no change of an edge is better, and marginals."""
        yield from _claims.facts(self, rows)


def _log_rows(block: Block, model: NetworkLearner) -> np.ndarray:
    return log_known(model.network_, model._coded(block.X))


def _bounded(block: Block, model: NetworkLearner) -> tuple[np.ndarray, np.ndarray]:
    """Return ln P of the rows of a block and how far rounding can move it."""
    rows = model._coded(block.X)
    return log_known(model.network_, rows), _claims.rounding(model.network_, rows)


@dataclass(eq=False, repr=False)
class ChowLiu(NetworkDensity):
    """A Bayesian network whose graph is the best tree.

    Columns all have states, or are all numbers (then their mutual information is that of Gaussian columns).

    Parameters
    ----------
    root : int >= 0
        Column that has no parent; edges point away from it. The likelihood is the same for every root.
    alpha : float >= 0
        Rows added to each entry of a table.
    max_iter, tol : of EM, if entries are missing; the tree is learnt from the rows without gaps.
    nominal : None, "all" or a list of columns
        Columns whose numbers are names.
    n_jobs : int or None
        Threads; changes the time, never a bit of the result.

    Attributes
    ----------
    network_ : Network
    information_ : float
        Sum of the mutual informations along the edges, in nats per row.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.bayes_net import ChowLiu
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(0, 2, 500)
    >>> b = np.where(rng.random(500) < 0.1, 1 - a, a)
    >>> c = np.where(rng.random(500) < 0.2, 1 - b, b)
    >>> ChowLiu(nominal="all").fit(np.column_stack([a, b, c])).edges
    [('x0', 'x1'), ('x1', 'x2')]
    """

    card = Card(
        name="Chow-Liu tree",
        task="density",
        model="products of P(x | parent) over the nodes of a tree",
        strategy="log-likelihood of the rows",
        algorithm="maximum spanning tree of mutual informations",
        guarantee=(
            "density.log-likelihood",
            "network.counts",
            "chow-liu.optimal",
            "network.marginals",
            "network.explanation",
            "network.posterior",
        ),
    )

    constraints: ClassVar = {"root": Count(low=0), "max_iter": Count(), "tol": Positive()}

    root: int = 0
    _: KW_ONLY
    alpha: float = 1.0
    max_iter: int = 1000
    tol: float = 1e-3
    nominal: Any = None
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "ChowLiu":
        """Learn the tree of the rows X, each counted as often as `sample_weight` says; y is not used."""
        check(self)
        X, _, weight = counted_rows(self, X, None, sample_weight)
        data = read_coded(self, X, weight=weight)
        self._enough(data)
        if self.root >= len(data.sizes):
            raise refuse(self, f"root must be one of {len(data.sizes)} columns; got {self.root}.")
        if data.sizes.any() and not data.sizes.all():
            raise refuse(self, "columns with states and numbers cannot both be in a tree of this kind; see nominal=.")
        if data.holes[data.sizes == 0].any():
            raise refuse(self, "Input X contains NaN in a column of numbers; a tree of numbers is learnt without gaps.")
        with fit_log(self, self.max_iter, X, None) as log:
            whole = self._complete(data)
            weights = _search.information(self._families(whole))
            parents = _search.tree(weights, self.root)
            total = sum(weights[above[0], node] for node, above in enumerate(parents) if above)
            self.information_ = float(total / whole.total)
            self._keep(self._estimate(data, parents))
            fitted = self._usable(self._arrays()) if log.watched else {}
            if not log.step(-self.information_, 0.0, **fitted) and data.gaps:
                self._fill_gaps(data, log)
            self.n_iter_ = len(log.history)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = isinstance(self.nominal, str)
        return tags

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield likelihood, counts, that no tree is better, and marginals."""
        yield log_likelihood(self, rows)
        codes = _claims.coded_rows(self, rows)
        yield _claims.counts(self, rows, codes)
        yield _claims.tree(self, rows, codes)
        yield from _claims.queries(self)
