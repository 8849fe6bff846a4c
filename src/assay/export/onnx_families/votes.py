"""Votes and means of members, with weights."""

import numpy as np

from assay.checker.rules.members import VOTE
from assay.claims.model import StoredModel
from assay.export._graph import Graph
from assay.export._links import Scores, member_outputs, weighted_sum


def scores(graph: Graph, x: str, model: StoredModel) -> Scores:
    if float(model.arrays.get("needed_", np.array(-1.0)).ravel()[0]) >= 0:
        raise ValueError("committees that reject rows cannot be exported to ONNX.")
    weights = model.arrays["vote_weights_"]
    if np.any(model.arrays["links_"] == VOTE) and not _never_ties(weights, len(model.arrays["classes_"])):
        raise ValueError("ties of a hard vote are drawn by a hash of the row, which ONNX cannot compute; vote softly.")
    weights = weights if "classes_" in model.arrays else weights / weights.sum()
    return weighted_sum(graph, member_outputs(graph, x, model.members, model.arrays["links_"]), weights.tolist())


def _never_ties(weights: np.ndarray, classes: int) -> bool:
    return classes == 2 and len(weights) % 2 == 1 and bool(np.all(weights == weights[0]))
