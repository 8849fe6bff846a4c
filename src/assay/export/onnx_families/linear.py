"""Linear models: x W + b."""

import numpy as np

from assay.claims.model import StoredModel
from assay.export._graph import Graph
from assay.export._links import Scores


def scores(graph: Graph, x: str, model: StoredModel) -> Scores:
    coef = np.atleast_2d(model.arrays["coef_"])
    return Scores(graph.affine(x, coef.T, np.atleast_1d(model.arrays["intercept_"])), len(coef))
