"""Feed-forward networks: a <- f(a W + b) from layer to layer, the last one without f."""

from itertools import pairwise

import numpy as np

from assay.checker.rules.members import COUNTS, LOGISTIC
from assay.claims.model import StoredModel
from assay.export._graph import Graph
from assay.export._links import Scores, linked

_UNITS = ("Identity", "Sigmoid", "Tanh", "Relu")


def scores(graph: Graph, x: str, model: StoredModel) -> Scores:
    sizes = model.arrays["network_sizes_"].tolist()
    flat = model.arrays["network_weights_"].astype(np.float64)
    unit, exponential = model.arrays["network_codes_"].tolist()
    shapes = list(pairwise(sizes))
    ends = np.cumsum([a * b for a, b in shapes] + sizes[1:])[:-1]
    parts = np.split(flat, ends)
    for layer, (shape, weights, offset) in enumerate(zip(shapes, parts, parts[len(shapes) :])):
        x = graph.affine(x, weights.reshape(shape), offset)
        x = graph.node(_UNITS[unit], x) if layer < len(shapes) - 1 else x
    return Scores(graph.node("Exp", x) if exponential else x, sizes[-1])


def probabilities(graph: Graph, scores: Scores, model: StoredModel) -> Scores:
    """Return logistic outputs or their softmax; those of squared errors are logistic, divided by their sum."""
    if scores.width == 1 or model.parameters["loss"] == "log_loss":
        return linked(graph, scores, LOGISTIC)
    return linked(graph, Scores(graph.node("Sigmoid", scores.value), scores.width), COUNTS)
