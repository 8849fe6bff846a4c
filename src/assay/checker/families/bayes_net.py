"""Bayesian networks: the probability of a row, and the classifier whose class is a node.

Arrays: `sizes_` (d,) states of each node, 0 for a number; `values_` the numbers that stand for the states, column by
column; `gaps_` (columns,) 1 where values may be missing; `edges_` (m, 2) parent and child, in order of child, then
parent; `counts_` and `gaussians_` the tables, node by node; `alpha_` (1,); `column_types_` name, kind and levels of
each column as JSON. The last node of a classifier is the class, which is no column.

Bayesian networks: scores of structures with numeric nodes (network.local-optimum-mixed), and posterior probabilities
and most probable explanations given evidence (network.posterior, network.explanation).

Columns of numbers are taken as z = (x - mean) / deviation over all rows; the deviation is 1 if below 1e-12 |mean|. The
cost of a number with k numeric parents is f (k + 2) q - sum over the q combinations of its other parents of

    L = - n/2 (ln(2 pi v) + s / v) - n ln(deviation),   v = max(s, 1e-6),   n rows of the combination,

s their mean squared residual after the best linear function of the numeric parents, those directions left out along
which these vary by at most 1e-12, or by 1e-10 of the most. With n < k + 2 the function is 0, and v = 1. The cost of a
node with states is that of claims chow-liu.optimal; a number is no parent of it.

Given evidence, nodes are summed out, or maximised over, one after the other, in an order of the checker's own: each
time the one whose neighbours have the smallest table. Tables hold logarithms, so that nothing underflows; every number
on the way is a sum of at most as many logarithms as there are tables, and of the logarithms of numbers of terms.
"""

import math
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from assay.checker.family import NUMBERS, TEXT, WHOLE, Family, Variant
from assay.checker.numerics import above, gamma, largest
from assay.checker.record import Refused, Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules import bayes_nets, mixtures
from assay.checker.rules.bayes_nets import MOST_CELLS, Families, LocalOptimum, Net, Optimum
from assay.checker.rules.mixtures import LOG_LIKELIHOOD
from assay.claims.definitions import Definition
from assay.claims.sentences import Params, Part, Sentence, part

_FLOOR, _DIRECTION, _RANK = 1e-6, 1e-12, 1e-10


class Columns(NamedTuple):
    """Numbers z (d, rows), right to a few units in the last place up to one shift, their deviations (d,), and that
    shift, at most (d,)."""

    z: np.ndarray
    deviations: np.ndarray
    shifts: np.ndarray


class MixedFamilies(Families):
    """A rule that compares structures in which some nodes are numbers."""

    def prepare(self) -> None:
        self.begin()
        if 0 not in self.net.sizes:
            raise Rejected("it is about networks with numbers among their nodes")
        if self.rows * len(self.net.sizes) > MOST_CELLS:
            raise Refused("so many rows are not held to fit regressions")
        self.kept: list[np.ndarray] = []

    def block(self, view: View) -> None:
        super().block(view)
        numbers = view.X[:, [j for j in range(view.X.shape[1]) if not self.net.sizes[j]]]
        if not np.isfinite(numbers).all():
            raise Rejected("it is about rows without gaps")
        self.kept.append(numbers.T.copy())

    @cached_property
    def columns(self) -> Columns:
        x = np.concatenate(self.kept, axis=1)
        center = x.mean(axis=1)
        spread = np.sqrt(np.mean((x - center[:, None]) ** 2, axis=1))
        scale = np.where(spread > 1e-12 * np.abs(center), spread, 1.0)
        shift = gamma(x.shape[1] + 8) * np.abs(x).max(axis=1) / scale
        return Columns((x - center[:, None]) / scale[:, None], scale, shift)

    def _cost(self, codes: np.ndarray, child: int, parents: tuple[int, ...]) -> tuple[float, float]:
        if not self.net.sizes[child]:
            return self.regression(codes, child, parents)
        if any(not self.net.sizes[parent] for parent in parents):
            return math.inf, 0.0
        return super()._cost(codes, child, parents)

    def regression(self, codes: np.ndarray, child: int, parents: tuple[int, ...]) -> tuple[float, float]:
        """Return the cost of a number's family, and how far rounding can move it."""
        place = {node: k for k, node in enumerate(np.flatnonzero(np.array(self.net.sizes) == 0).tolist())}
        states = [parent for parent in parents if self.net.sizes[parent]]
        used = [place[item] for item in (*parents, child) if item in place]
        q, k = math.prod(self.net.sizes[state] for state in states), len(used) - 1
        if q > MOST_CELLS:
            raise Refused("the regressions of a family are too many to be numbered")
        config = np.zeros(codes.shape[1], dtype=np.int64)
        for state in states:
            config = config * self.net.sizes[state] + codes[state]
        order, (_, sizes) = np.argsort(config, kind="stable"), np.unique(config, return_counts=True)
        z, shift = self.columns.z[used], float(self.columns.shifts[used[-1]])
        results = [likelihood(z[:, at], shift) for at in np.split(order, np.cumsum(sizes)[:-1])]
        n, deviation = codes.shape[1], float(np.log(self.columns.deviations[used[-1]]))
        parts = self.factor * (k + 2) * q, -math.fsum(item for item, _ in results), n * deviation
        error = math.fsum(off for _, off in results) + gamma(n + 64) * n * (abs(deviation) + 1)
        return float(sum(parts)), float(above(error + gamma(64) * sum(map(abs, parts)), 64))


def likelihood(z: np.ndarray, shift: float) -> tuple[float, float]:
    """Return L + n ln(deviation) of one combination, z (parents and child, rows), and how far rounding can move it.

    A difference of two numbers is rounded once, so that a common shift of all z is the one large error they can have.
    """
    k, n = len(z) - 1, z.shape[1]
    if n < k + 2:
        value = -0.5 * (n * math.log(2 * math.pi) + float(np.square(z[-1]).sum()))
        reach = float(np.abs(z[-1]).max())
        return value, n * (reach + shift) * shift + gamma(4 * n + 64) * (abs(value) + n)
    apart = z - z.mean(axis=1, keepdims=True)
    moments = apart @ apart.T / n
    off = float(moments.diagonal().max()) * (k + 2) * gamma(n + 64) + float(np.square(z).mean(axis=1).max()) * gamma(64)
    s, wrong = residual(moments, off)
    v = max(s, _FLOOR)
    value = -0.5 * n * (math.log(2 * math.pi * v) + s / v)
    return value, n * wrong / max(v - wrong, _FLOOR) + gamma(64) * (abs(value) + n)


def residual(moments: np.ndarray, off: float) -> tuple[float, float]:
    """Return the least mean squared residual of the last variable given the others, and how far it can be off if every
    moment is by `off`: as much as the quadratic form at the coefficients found, and as that lies above its least."""
    inner, across, total = moments[:-1, :-1], moments[:-1, -1], float(moments[-1, -1])
    if not len(across):
        return total, 2 * off
    spectrum, directions = np.linalg.eigh(inner)
    cut = max(_DIRECTION, _RANK * float(spectrum[-1]))
    if np.any(np.abs(spectrum - cut) < 0.1 * cut + off):
        raise Refused("a direction of the parents of a number is neither flat nor steep")
    kept = spectrum > cut
    directions, spectrum = directions[:, kept], spectrum[kept]
    beta = directions @ (directions.T @ across / spectrum)
    s, size = total - 2 * float(across @ beta) + float(beta @ inner @ beta), 1 + float(np.abs(beta).sum())
    slope = float(np.linalg.norm(directions.T @ (across - inner @ beta))) + off * size
    return s, 4 * off * size**2 + 4 * slope**2 / float(np.min(spectrum, initial=1.0))


class MixedLocalOptimum(MixedFamilies, LocalOptimum):
    """network.local-optimum-mixed: as network.local-optimum, for networks with numbers among their nodes; the score is
    penalised."""

    def prepare(self) -> None:
        MixedFamilies.prepare(self)
        self.read_score()
        self.read_edges()

    def read_score(self) -> None:
        self.factor, self.most = self.number("factor", zero=True), self.count("max_parents")

    def _gain(self, child: int, before: set[int], after: set[int]) -> float:
        if self.net.sizes[child] and any(not self.net.sizes[node] for node in after):
            return -math.inf
        return super()._gain(child, before, after)


class MixedOptimum(MixedFamilies, Optimum):
    """network.optimum-mixed: as network.optimum, for networks with numbers among their nodes; the score is
    penalised."""

    def prepare(self) -> None:
        MixedFamilies.prepare(self)
        self.factor, self.most = self.number("factor", zero=True), self.count("max_parents")
        self.require_few()


class Regressions(MixedFamilies):
    """network.regressions: no other regressions of the numbers, of variances at least a millionth of the columns', have
    a likelihood larger by more than the value; with n < k + 2 rows a combination counts as if it had the column's
    moments."""

    def prepare(self) -> None:
        super().prepare()
        self.own, self.slips = list[float](), list[float]()

    def block(self, view: View) -> None:
        super().block(view)
        codes = self.net.codes(view.X)
        if self.model.classes is not None:
            codes = np.column_stack([codes, view.known_codes])
        for node in range(view.X.shape[1]):
            if not self.net.sizes[node]:
                value, error = self.net.terms(node, codes, view.X)
                self.own.append(math.fsum(value))
                self.slips.append(math.fsum(error))

    def measure(self) -> float:
        costs = [self.cost(node, over) for node, over in enumerate(self.net.parents) if not self.net.sizes[node]]
        best = -math.fsum(cost for cost, _ in costs)
        slack = math.fsum(self.slips) + math.fsum(off for _, off in costs) + gamma(16) * (abs(best) + 1)
        return max(0.0, float(best - math.fsum(self.own) + above(slack, 8)))


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
        results = {}
        for node, state in told.items():
            if node not in self.net.names or state not in self.net.levels[self.net.names.index(node)]:
                raise Rejected(
                    f"{name} names {str(node)[:40]!r} = {str(state)[:40]!r}, which the network does not have"
                )
            at = self.net.names.index(node)
            results[at] = self.net.levels[at].index(state)
        return results

    def logs(self, known: Mapping[int, int], kept: Collection[int], maximised: Collection[int] = ()) -> np.ndarray:
        """Return ln of the joint probability of `known` and each state of `kept`, in order, summed over the other nodes
        and then maximised over some."""
        factors, self.error = self._factors({*known, *kept, *maximised}, known)
        others = {node for where, _ in factors for node in where} - set(kept) - set(maximised)
        for group, together in ((others, _log_sum), (set(maximised) - set(known), _max)):
            while group:
                node = min(group, key=lambda item: (self._cells(factors, item), item))
                group.discard(node)
                self.context.clock.check()
                if self._cells(factors, node) > MOST_CELLS:
                    raise Refused("the tables of the query are too large")
                where, table = _product([factor for factor in factors if node in factor[0]], self.net.sizes)
                factors = [factor for factor in factors if node not in factor[0]]
                factors.append(
                    (
                        tuple(other_item for other_item in where if other_item != node),
                        together(table, where.index(node)),
                    )
                )
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
        results, size, steps = [], 0.0, 16
        for node in sorted(needed):
            family = (*self.net.parents[node], node)
            with np.errstate(divide="ignore"):
                logs = np.log(self.net.shares(node))
            cut = logs[tuple(known[item] if item in known else slice(None) for item in family)]
            results.append((tuple(item for item in family if item not in known), cut))
            size += float(np.max(np.abs(np.where(np.isfinite(cut), cut, 0.0)), initial=0.0))
            size, steps = size + math.log(self.net.sizes[node]) + 1, steps + 2 * self.net.sizes[node] + 24
        return results, float(above(gamma(steps) * (size + 1), 8))

    def _cells(self, factors: list[Factor], node: int) -> int:
        return math.prod(
            self.net.sizes[item] for item in {item for where, _ in factors if node in where for item in where}
        )


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
        for node, item in enumerate(told):
            if node in self.given:
                result, off = np.eye(self.net.sizes[node])[self.given[node]], 0.0
            else:
                logs = self.logs(self.given, [node])
                if not np.isfinite(logs).any():
                    raise Rejected("the states that are given have probability 0")
                result, off = (
                    np.exp(logs - _log_sum(logs, 0)),
                    math.expm1(2 * self.error + gamma(self.net.sizes[node] + 8)),
                )
            worst = largest(worst, float(above(np.max(np.abs(result - item) + off * result), 4)))
        return worst


_SCORE = {
    "bdeu": "BDeu score with {samples:g} rows in advance",
    "penalised": "score {factor:.6g} x parameters - log-likelihood",
}


def _score(params: Params) -> Part:
    return Part("bdeu" if params.get("score") == "bdeu" else "penalised")


_TREE = Sentence(
    {
        "": "No tree over the columns fits the {rows} training rows better {more}, in log-likelihood.",
        "by": "by more than {value:up1} nats",
        "none": "at all",
    },
    lambda value, direction, params: {"more": Part("by" if value else "none")},
)


_COUNTS = Sentence(
    {
        "": "The tables hold exactly the counts of the {rows} training rows.",
        "shared": "The tables hold the counts of the {rows} training rows, each gap shared out over its values as the "
        "model has it, to within {value:up2} rows.",
    },
    lambda value, direction, params: {"text": "shared" if value else ""},
)


_LOCAL = Sentence(
    _SCORE
    | {
        "": "No edge of the network can be added, deleted or reversed so that the {score} on the {rows} training rows "
        "falls by more than {value:up1} nats; a node may have {max_parents} parents{fixed}.",
        "fixed": ", {n_required} edges are required and {n_forbidden} forbidden",
    },
    lambda value, direction, params: {
        "score": _score(params),
        "fixed": part(params["n_required"] or params["n_forbidden"], "fixed"),
    },
)


_BEST = Sentence(
    _SCORE
    | {
        "": "Of all networks in which a node has at most {max_parents} parents, none has a {score} on the {rows} "
        "training rows that is lower by more than {value:up1} nats."
    },
    lambda value, direction, params: {"score": _score(params)},
)


_MARGINALS = Sentence.plain(
    "The listed probabilities of the states of every node are those of the network, to within {value:up1}."
)


_LISTED = {"all": "{listed:, }", "some": "{listed:, } and {more} more"}


def _listed(states: Mapping[str, str]) -> Part:
    shown = [f"{name} = {state}" for name, state in list(states.items())[:8]]
    more = len(states) - len(shown)
    return Part("some" if more else "all", {"listed": shown, "more": more})


_EXPLANATION = Sentence(
    _LISTED
    | {
        "": "No other states of {count} nodes are more probable together, by a factor of more than 1 + {excess:up1}, "
        "than {states}.",
        "given": "Given {given}, no other states of {count} nodes are more probable together, by a factor of more than "
        "1 + {excess:up1}, than {states}.",
    },
    lambda value, direction, params: {
        "text": "given" if params["given"] else "",
        "given": _listed(params["given"]),
        "states": _listed(params["states"]),
        "count": len(params["states"]),
        "excess": math.expm1(value),
    },
)


_POSTERIOR = Sentence(
    _LISTED
    | {
        "": "The listed probabilities of the states of every node given {given} are those of the network, to within "
        "{value:up1}."
    },
    lambda value, direction, params: {"given": _listed(params["given"])},
)


_REGRESSIONS = Sentence.plain(
    "No other regressions of the numeric columns on their parents, of variances at least a millionth of the columns', "
    "fit the {rows} training rows better by more than {value:up1} nats, in log-likelihood."
)


CLAIMS = {
    "D23/1": Definition("density.log-likelihood", mixtures.LogLikelihood, LOG_LIKELIHOOD),
    "D26/1": Definition("chow-liu.optimal", bayes_nets.BestTree, _TREE),
    "D26/2": Definition("network.counts", bayes_nets.Counts, _COUNTS),
    "D26/3": Definition("network.local-optimum", bayes_nets.LocalOptimum, _LOCAL),
    "D26/4": Definition("network.optimum", bayes_nets.Optimum, _BEST),
    "D26/5": Definition("network.marginals", bayes_nets.Marginals, _MARGINALS),
    "D26/6": Definition("network.explanation", Explanation, _EXPLANATION),
    "D26/7": Definition("network.posterior", Posterior, _POSTERIOR),
    "D62/1": Definition("network.local-optimum-mixed", MixedLocalOptimum, _LOCAL),
    "D62/2": Definition("network.optimum-mixed", MixedOptimum, _BEST),
    "D62/3": Definition("network.regressions", Regressions, _REGRESSIONS),
}
_ARRAYS = {
    "sizes_": WHOLE,
    "values_": NUMBERS,
    "gaps_": WHOLE,
    "edges_": WHOLE,
    "counts_": NUMBERS,
    "alpha_": NUMBERS,
    "gaussians_": NUMBERS,
    "column_types_": TEXT,
}
FAMILY = Family(
    "bayes_net",
    {
        "density": Variant(_ARRAYS, bayes_nets.read_density, target=False),
        "classifier": Variant(_ARRAYS, bayes_nets.read_classifier, classes=True, probabilities=("logistic",)),
    },
    CLAIMS,
)
