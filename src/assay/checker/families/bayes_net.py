"""Bayesian networks: the probability of a row, and the classifier whose class is a node.

Arrays: `sizes_` (d,) states of each node, 0 for a number; `values_` the numbers that stand for the states, column by
column; `gaps_` (columns,) 1 where values may be missing; `edges_` (m, 2) parent and child, in order of child, then
parent; `counts_` and `gaussians_` the tables, node by node; `alpha_` (1,); `column_types_` name, kind and levels of
each column as JSON. The last node of a classifier is the class, which is no column.
"""

import math
from collections.abc import Mapping
from typing import Any

from assay.checker.family import NUMBERS, TEXT, WHOLE, Family, Variant
from assay.checker.rules import mixtures, network_facts, network_numbers, network_queries, networks
from assay.checker.rules.mixtures import log_likelihood
from assay.claims.definitions import Definition, up


def _score(params: Mapping[str, Any]) -> str:
    if params.get("score") == "bdeu":
        return f"BDeu score with {params['samples']:g} rows in advance"
    return f"score {params['factor']:.6g} x parameters - log-likelihood"


def _tree(value: float, direction: str, params: Mapping[str, Any]) -> str:
    more = f"by more than {up(value, 1)} nats" if value else "at all"
    return f"No tree over the columns fits the {params['rows']} training rows better {more}, in log-likelihood."


def _counts(value: float, direction: str, params: Mapping[str, Any]) -> str:
    if value == 0:
        return f"The tables hold exactly the counts of the {params['rows']} training rows."
    return (
        f"The tables hold the counts of the {params['rows']} training rows, each gap shared out over its values as the "
        f"model has it, to within {up(value, 2)} rows."
    )


def _local(value: float, direction: str, params: Mapping[str, Any]) -> str:
    required, forbidden = params["n_required"], params["n_forbidden"]
    fixed = f", {required} edges are required and {forbidden} forbidden" if required or forbidden else ""
    return (
        f"No edge of the network can be added, deleted or reversed so that the {_score(params)} on the "
        f"{params['rows']} training rows falls by more than {up(value, 1)} nats; a node may have "
        f"{params['max_parents']} parents{fixed}."
    )


def _best(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return (
        f"Of all networks in which a node has at most {params['max_parents']} parents, none has a {_score(params)} on "
        f"the {params['rows']} training rows that is lower by more than {up(value, 1)} nats."
    )


def _marginals(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return f"The listed probabilities of the states of every node are those of the network, to within {up(value, 1)}."


def _told(states: Mapping[str, str]) -> str:
    shown = [f"{name} = {state}" for name, state in list(states.items())[:8]]
    return ", ".join(shown) + (f" and {len(states) - 8} more" if len(states) > 8 else "")


def _explanation(value: float, direction: str, params: Mapping[str, Any]) -> str:
    given = f"Given {_told(params['given'])}, no" if params["given"] else "No"
    return (
        f"{given} other states of {len(params['states'])} nodes are more probable together, by a factor of more than "
        f"1 + {up(math.expm1(value), 1)}, than {_told(params['states'])}."
    )


def _posterior(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return (
        f"The listed probabilities of the states of every node given {_told(params['given'])} are those of the "
        f"network, to within {up(value, 1)}."
    )


def _regressions(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return (
        "No other regressions of the numeric columns on their parents, of variances at least a millionth of the "
        f"columns', fit the {params['rows']} training rows better by more than {up(value, 1)} nats, in log-likelihood."
    )


CLAIMS = {
    "D23/1": Definition("density.log-likelihood", mixtures.LogLikelihood, log_likelihood),
    "D26/1": Definition("chow-liu.optimal", network_facts.BestTree, _tree),
    "D26/2": Definition("network.counts", network_facts.Counts, _counts),
    "D26/3": Definition("network.local-optimum", network_facts.LocalOptimum, _local),
    "D26/4": Definition("network.optimum", network_facts.Optimum, _best),
    "D26/5": Definition("network.marginals", network_facts.Marginals, _marginals),
    "D26/6": Definition("network.explanation", network_queries.Explanation, _explanation),
    "D26/7": Definition("network.posterior", network_queries.Posterior, _posterior),
    "D62/1": Definition("network.local-optimum-mixed", network_numbers.MixedLocalOptimum, _local),
    "D62/2": Definition("network.optimum-mixed", network_numbers.MixedOptimum, _best),
    "D62/3": Definition("network.regressions", network_numbers.Regressions, _regressions),
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
        "density": Variant(_ARRAYS, networks.read_density, target=False),
        "classifier": Variant(_ARRAYS, networks.read_classifier, classes=True),
    },
    CLAIMS,
)
