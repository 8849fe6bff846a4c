"""Learners of labelled and unlabelled rows that are a model of another family."""

from assay.claims.model import StoredModel
from assay.export._graph import Graph
from assay.export._links import Scores, scores_of


def scores(graph: Graph, x: str, model: StoredModel) -> Scores:
    if model.family != "semi.wrapped":
        raise ValueError(f"models of the family {model.family} cannot be exported to ONNX.")
    return scores_of(graph, x, model.members[0])
