"""Bayesian networks: the probability of a row, and the classifier whose class is a node.

Arrays: `sizes_` (d,) states of each node, 0 for a number; `values_` the numbers that stand for the states, column by
column; `gaps_` (columns,) 1 where values may be missing; `edges_` (m, 2) parent and child, in order of child, then
parent; `counts_` and `gaussians_` the tables, node by node; `alpha_` (1,); `column_types_` name, kind and levels of
each column as JSON. The last node of a classifier is the class, which is no column.
"""

import math
from collections.abc import Mapping

from assay.checker.family import NUMBERS, TEXT, WHOLE, Family, Variant
from assay.checker.rules import bayes_net_numbers, bayes_nets, mixtures
from assay.checker.rules.mixtures import LOG_LIKELIHOOD
from assay.claims.definitions import Definition
from assay.claims.sentences import Params, Part, Sentence, part

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
    "D26/6": Definition("network.explanation", bayes_net_numbers.Explanation, _EXPLANATION),
    "D26/7": Definition("network.posterior", bayes_net_numbers.Posterior, _POSTERIOR),
    "D62/1": Definition("network.local-optimum-mixed", bayes_net_numbers.MixedLocalOptimum, _LOCAL),
    "D62/2": Definition("network.optimum-mixed", bayes_net_numbers.MixedOptimum, _BEST),
    "D62/3": Definition("network.regressions", bayes_net_numbers.Regressions, _REGRESSIONS),
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
