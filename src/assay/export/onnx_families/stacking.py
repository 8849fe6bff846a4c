"""Stacking: what members predict are the columns of a final learner."""

import numpy as np

from assay.claims.model import StoredModel
from assay.export._graph import Graph
from assay.export._links import Scores, member_outputs, scores_of


def scores(graph: Graph, x: str, model: StoredModel) -> Scores:
    binary = len(model.arrays.get("classes_", ())) == 2
    parts = member_outputs(graph, x, model.members[:-1], np.asarray(model.arrays["links_"]))
    columns = [graph.columns(part.value, [1]) if binary and part.width == 2 else part.value for part in parts]
    columns += [x] if int(model.arrays["passes_"]) else []
    return scores_of(graph, graph.join(columns), model.members[-1])
