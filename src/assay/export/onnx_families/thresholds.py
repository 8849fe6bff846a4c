"""Classifiers whose probabilities are weighed by a matrix before a class is predicted."""

from assay.claims.model import StoredModel
from assay.export._graph import Graph
from assay.export._links import Scores, member_outputs


def scores(graph: Graph, x: str, model: StoredModel) -> Scores:
    matrix = model.arrays["matrix_"]
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError("classifiers that reject rows cannot be exported to ONNX.")
    (shares,) = member_outputs(graph, x, model.members, model.arrays["links_"])
    return Scores(graph.product(shares.value, matrix), len(matrix))
