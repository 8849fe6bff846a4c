"""Generalised linear models: the inverse link of a linear score."""

from assay.claims.model import StoredModel
from assay.export._graph import Graph
from assay.export._links import Scores
from assay.export.onnx_families import linear

_INVERSE_LINKS = {"identity": "Identity", "log": "Exp", "logit": "Sigmoid", "inverse": "Reciprocal"}


def scores(graph: Graph, x: str, model: StoredModel) -> Scores:
    link = model.family.partition(".")[2]
    if link not in _INVERSE_LINKS:
        raise ValueError(f"ONNX has no operator of double precision for the inverse of the {link} link.")
    result = linear.scores(graph, x, model)
    return Scores(graph.node(_INVERSE_LINKS[link], result.value), result.width)
