"""Networks of radial basis functions: W f + b with f_i = exp(-beta_i |x - c_i|^2)."""

import numpy as np

from assay.claims.model import StoredModel
from assay.export._graph import Graph
from assay.export._links import Scores


def scores(graph: Graph, x: str, model: StoredModel) -> Scores:
    if "cascade" in model.family:
        raise ValueError("cascade networks cannot be exported to ONNX.")
    distances = graph.squared_distances(x, model.arrays["centers_"])
    features = graph.node("Exp", graph.node("Mul", distances, -model.arrays["betas_"]))
    coef = np.atleast_2d(model.arrays["coef_"])
    return Scores(graph.affine(features, coef.T, np.atleast_1d(model.arrays["intercept_"])), len(coef))
