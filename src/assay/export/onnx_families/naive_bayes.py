"""Naive Bayes: ln P(c) + sum over columns of ln P(x_j | c), as the checker reads the stored counts and moments."""

import math

import numpy as np
from onnx import TensorProto

from assay.checker.family import read_model
from assay.checker.rules.bayes import ColumnTables, CountScores
from assay.claims.model import StoredModel
from assay.export._graph import Graph
from assay.export._links import Scores


def scores(graph: Graph, x: str, model: StoredModel) -> Scores:
    read = read_model(model, any_size=True)
    result = _columns(graph, x, read) if isinstance(read, ColumnTables) else _counts(graph, x, read)
    return Scores(result, len(read.classes))


def _logs(shares: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(shares)


def _columns(graph: Graph, x: str, model: ColumnTables) -> str:
    """Return the sum of the normal log-densities and the logarithms of the tables, of the values that are there."""
    result = _constant_rows(graph, x, _logs(model.prior))
    if len(model.numeric):
        result = graph.node("Add", result, _normal(graph, x, model))
    for j, part in model.parts:
        result = graph.node("Add", result, _level(graph, graph.columns(x, [j]), model, part))
    return result


def _constant_rows(graph: Graph, x: str, row: np.ndarray) -> str:
    """Return the same row for each row of x."""
    rows = graph.node("Gather", graph.node("Shape", x), graph.constant([0], np.int64))
    shape = graph.node("Concat", rows, graph.constant([len(row)], np.int64), axis=0)
    return graph.node("Expand", row[None], shape)


def _normal(graph: Graph, x: str, model: ColumnTables) -> str:
    values = graph.columns(x, model.numeric.tolist())
    missing = graph.node("IsNaN", values)
    parts = []
    for theta, var in zip(model.theta, model.var):
        apart = graph.node("Sub", values, theta)
        density = graph.node("Div", graph.node("Mul", apart, apart), -2.0 * var)
        density = graph.node("Sub", density, 0.5 * np.log(2 * math.pi * var))
        parts.append(graph.total(graph.node("Where", missing, [0.0], density)))
    return graph.join(parts)


def _level(graph: Graph, x: str, model: ColumnTables, part: slice) -> str:
    """Return a column's term: the row of the table that belongs to the level, nothing for a gap or a new level."""
    table = np.vstack([model.tables[:, part].T, np.zeros(len(model.classes))])
    equal = graph.numbers(graph.node("Equal", x, model.values[part][None]))
    none = graph.node("Sub", [0.5], graph.total(equal))
    place = graph.argmax(graph.join([equal, none]))
    return graph.node("Gather", table, place, axis=0)


def _counts(graph: Graph, x: str, model: CountScores) -> str:
    if model.threshold is not None:
        x = graph.numbers(graph.node("Greater", x, [model.threshold]))
    result = _constant_rows(graph, x, _logs(model.used))
    for part, weights in ((x, model.weights), (graph.node("Sub", [1.0], x), model.offsets)):
        if not np.any(weights):
            continue
        result = graph.node("Add", result, graph.product(part, np.where(np.isfinite(weights), weights, 0.0).T))
        if not np.isfinite(weights).all():
            there = graph.numbers(graph.cast(part, TensorProto.BOOL))
            barred = graph.node("Greater", graph.product(there, np.isinf(weights).T.astype(np.float64)), [0.0])
            result = graph.node("Where", barred, [-np.inf], result)
    return result
