"""Discriminants: linear ones, and <u, A u> + <w, u> + b with u = x - center."""

import numpy as np

from assay.claims.model import StoredModel
from assay.export._graph import Graph
from assay.export._links import Scores
from assay.export.onnx_families import linear


def scores(graph: Graph, x: str, model: StoredModel) -> Scores:
    if model.family == "discriminant.linear":
        return linear.scores(graph, x, model)
    quadratic, K = model.arrays["quadratic_"], len(model.arrays["quadratic_"])
    d = quadratic.shape[1]
    u = graph.node("Sub", x, model.arrays["center_"])
    turned = graph.reshape(graph.product(u, quadratic.transpose(1, 0, 2).reshape(d, K * d)), -1, K, d)
    wide = graph.node("Unsqueeze", u, graph.constant([1], np.int64))
    squares = graph.total(graph.node("Mul", turned, wide), axis=2, keep=False)
    rest = graph.affine(u, model.arrays["linear_"].T, np.atleast_1d(model.arrays["constant_"]))
    return Scores(graph.node("Add", squares, rest), K)
