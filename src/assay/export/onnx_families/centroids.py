"""k-means: squared distances to the centres; the nearest, the first of equals, is the cluster."""

from onnx import TensorProto

from assay.claims.model import StoredModel
from assay.export._graph import Graph
from assay.export._links import Scores


def scores(graph: Graph, x: str, model: StoredModel) -> Scores:
    centers = model.arrays["cluster_centers_"]
    return Scores(graph.squared_distances(x, centers), len(centers))


def outputs(graph: Graph, scores: Scores) -> None:
    graph.output("label", graph.node("ArgMin", scores.value, axis=1, keepdims=0), (), TensorProto.INT64)
    graph.output("scores", scores.value, (scores.width,))
