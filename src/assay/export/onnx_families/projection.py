"""Principal components: V (x - center), divided by standard deviations if whitened."""

import numpy as np

from assay.claims.model import StoredModel
from assay.export._graph import Graph
from assay.export._links import Scores


def scores(graph: Graph, x: str, model: StoredModel) -> Scores:
    components = model.arrays["components_"]
    result = graph.product(graph.node("Sub", x, model.arrays["center_"]), components.T)
    if model.parameters.get("whiten"):
        spread = np.sqrt(model.arrays["explained_variance_"])
        result = graph.node("Div", result, np.maximum(spread, np.finfo(spread.dtype).eps))
    return Scores(result, len(components))
