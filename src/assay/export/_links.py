"""What follows from the scores of a model: the class that is predicted, and what its link makes of them.

The links are those of models made of members (`checker.rules.members`).
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto

from assay.checker.rules.members import BALANCE, BOOSTED, COUNTS, LEAVES, LOGISTIC, RAW, SCORE, SHARES, VOTE
from assay.claims.model import StoredModel
from assay.export._graph import Graph


class Scores(NamedTuple):
    """A value of the graph, doubles (rows, width)."""

    value: str
    width: int


def family_module(model: StoredModel) -> Any:
    """Return the module that exports the family of a model."""
    name = f"assay.export.onnx_families.{model.family.partition('.')[0]}"
    if find_spec(name) is None:
        raise ValueError(f"models of the family {model.family} cannot be exported to ONNX.")
    return import_module(name)


def scores_of(graph: Graph, x: str, model: StoredModel) -> Scores:
    """Add the nodes of a model's predictor and return its scores."""
    return family_module(model).scores(graph, x, model)


def positions(graph: Graph, scores: Scores, model: StoredModel) -> str:
    """Return the position of the class that is predicted, (rows,)."""
    decide = getattr(family_module(model), "positions", None)
    if decide is not None:
        return decide(graph, scores, model)
    if scores.width > 1:
        return graph.argmax(scores.value)
    return graph.cast(graph.reshape(graph.node("Greater", scores.value, [0.0]), -1), TensorProto.INT64)


def linked(graph: Graph, scores: Scores, link: int) -> Scores:
    """Return what a link makes of scores."""
    if link not in _FORMULAS:
        raise ValueError("the outputs of a member do not follow from its scores; it cannot be exported to ONNX.")
    return _FORMULAS[link](graph, scores)


def member_outputs(graph: Graph, x: str, members: Sequence[StoredModel], links: np.ndarray) -> list[Scores]:
    """Return what each member contributes to a model made of members."""
    return [_output(graph, x, member, link) for member, link in zip(members, links.ravel().tolist(), strict=True)]


def _output(graph: Graph, x: str, member: StoredModel, link: int) -> Scores:
    scores = scores_of(graph, x, member)
    if link != VOTE:
        return linked(graph, scores, link)
    classes = len(member.arrays["classes_"])
    return Scores(graph.one_hot(positions(graph, scores, member), classes), classes)


def weighted_sum(graph: Graph, parts: Sequence[Scores], weights: Sequence[float]) -> Scores:
    """Return the sum of the parts, each times its weight, added in their order."""
    terms = [graph.node("Mul", part.value, [weight]) for part, weight in zip(parts, weights, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = graph.node("Add", total, term)
    return Scores(total, parts[0].width)


# Formulas ---------------------------------------------------------------------------------------------------------


def _unchanged(graph: Graph, scores: Scores) -> Scores:
    return scores


def _shares(graph: Graph, scores: Scores) -> Scores:
    """Return class probabilities; one of them alone is that of the second of two classes."""
    if scores.width > 1:
        return scores
    return Scores(graph.join([graph.node("Sub", [1.0], scores.value), scores.value]), 2)


def _logistic(graph: Graph, scores: Scores) -> Scores:
    if scores.width == 1:
        return _shares(graph, Scores(graph.node("Sigmoid", scores.value), 1))
    return Scores(graph.node("Softmax", scores.value, axis=1), scores.width)


def _divided(graph: Graph, scores: Scores) -> Scores:
    total = graph.total(scores.value)
    some = graph.node("Where", graph.node("Greater", total, [0.0]), total, [1.0])
    return Scores(graph.node("Div", scores.value, some), scores.width)


def _boosted(graph: Graph, scores: Scores) -> Scores:
    factor = scores.width / (scores.width - 1) ** 2
    return _logistic(graph, Scores(graph.node("Mul", _divided(graph, scores).value, [factor]), scores.width))


def _difference(graph: Graph, scores: Scores) -> Scores:
    return scores if scores.width != 2 else Scores(graph.product(scores.value, [[-1.0], [1.0]]), 1)


def _balance(graph: Graph, scores: Scores) -> Scores:
    return Scores(graph.product(_divided(graph, scores).value, [[-2.0], [2.0]]), 1)


_FORMULAS: dict[int, Callable[[Graph, Scores], Scores]] = {
    SHARES: _shares,
    LOGISTIC: _logistic,
    LEAVES: _unchanged,
    SCORE: _difference,
    RAW: _unchanged,
    COUNTS: _divided,
    BOOSTED: _boosted,
    BALANCE: _balance,
}
