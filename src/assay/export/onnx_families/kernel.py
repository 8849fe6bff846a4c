"""Support vector machines: sum_j beta_j kappa(v_j, x) + b, one score for each pair of classes, which vote."""

from itertools import combinations

import numpy as np

from assay.claims.model import StoredModel
from assay.export._graph import Graph
from assay.export._links import Scores

_LINEAR, _POLYNOMIAL, _GAUSSIAN, _LAPLACIAN, _SIGMOID = range(5)


def scores(graph: Graph, x: str, model: StoredModel) -> Scores:
    coef = np.atleast_2d(model.arrays["pair_coef_"])
    values = _kernel(graph, x, model.arrays["support_vectors_"], model.arrays["kernel_numbers_"])
    return Scores(graph.affine(values, coef.T, np.atleast_1d(model.arrays["intercept_"])), len(coef))


def _kernel(graph: Graph, x: str, points: np.ndarray, numbers: np.ndarray) -> str:
    """Return kappa(x, v) for each stored row v, (rows, stored rows)."""
    kind, gamma, degree, coef0 = numbers[:4].tolist()
    if kind == _GAUSSIAN:
        return graph.node("Exp", graph.node("Mul", graph.squared_distances(x, points), [-gamma]))
    if kind == _LAPLACIAN:
        return graph.node("Exp", graph.node("Mul", graph.absolute_distances(x, points), [-gamma]))
    if kind not in (_LINEAR, _POLYNOMIAL, _SIGMOID):
        raise ValueError("models with a kernel of their own, or precomputed kernels, cannot be exported to ONNX.")
    products = graph.product(x, points.T)
    if kind == _LINEAR:
        return products
    inner = graph.node("Add", graph.node("Mul", products, [gamma]), [coef0])
    return graph.node("Pow", inner, [degree]) if kind == _POLYNOMIAL else graph.node("Tanh", inner)


def positions(graph: Graph, scores: Scores, model: StoredModel) -> str:
    """Return the class with most votes of the pairs, the first of equals."""
    K = len(model.arrays["classes_"])
    graph.need(K * K * (K - 1))
    pairs = list(combinations(range(K), 2))
    first, second = np.zeros((len(pairs), K)), np.zeros((len(pairs), K))
    first[np.arange(len(pairs)), [i for i, _ in pairs]] = 1.0
    second[np.arange(len(pairs)), [j for _, j in pairs]] = 1.0
    first, second = (second, first) if K == 2 else (first, second)  # of two classes a positive score is the second's
    won = graph.numbers(graph.node("Greater", scores.value, [0.0]))
    votes = graph.node("Add", graph.product(won, first), graph.product(graph.node("Sub", [1.0], won), second))
    return graph.argmax(votes)
