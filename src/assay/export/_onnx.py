"""ONNX graphs of fitted models.

A family of models brings `export.onnx_families.<name>`, with a function `scores(graph, x, model)` that adds the nodes
of its predictor (claims/SPEC.md, section 1) and returns the scores of the rows; also

    positions(graph, scores, model)        if classes are not decided by the sign of a score or the largest of several
    probabilities(graph, scores, model)    if its variant does not say how they follow from the scores
    outputs(graph, scores)                 if it predicts neither classes nor numbers
"""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto

from assay.checker.family import find, stored_form
from assay.claims.model import StoredModel
from assay.ensemble._combined import LINKS, probability_link
from assay.export._encoding import encoded_columns
from assay.export._graph import Graph
from assay.export._links import Scores, family_module, linked, positions, scores_of
from assay.files import written_whole


def onnx_model(model: Any) -> Any:
    """Return a fitted model as an `onnx.ModelProto` that predicts the same.

    The input of a learner is `X`, doubles (rows, columns). A model of a table has an input (rows, 1) for each column,
    by its name: doubles for numbers (NaN is a missing value) and dates (seconds since 1970), text for categories ("" is
    a missing value). Classifiers have the outputs `label` and, if their probabilities follow from their scores,
    `probabilities`; regressions and transformers `variable`; clusterings `label` and `scores`, the squared distances.
    Where a column has such a name the output has a `_` behind it.

    Parameters
    ----------
    model : fitted learner or model of a table
        Linear and generalised linear models, discriminants, support vector machines and other kernel expansions, trees,
        forests and boosting, naive Bayes, feed-forward and radial basis networks, k-means, principal components, and
        votes and thresholds of these; others are refused.

    Returns
    -------
    onnx.ModelProto
        Its metadata have the fingerprint that a certificate of the model names (`assay.model`).

    Examples
    --------
    >>> from assay.linear_model import LogisticRegression
    >>> model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> [output.name for output in onnx_model(model).graph.output]
    ['label', 'probabilities']
    """
    encoding = getattr(model, "encoding", None)
    learner = model if encoding is None else model.learner
    stored = stored_form(learner)
    graph = Graph(() if encoding is None else [column.name for column in encoding.schema], _size(stored))
    x = graph.input("X", int(learner.n_features_in_)) if encoding is None else encoded_columns(graph, encoding)
    _add_outputs(graph, scores_of(graph, x, stored), stored, learner)
    return graph.model({"assay.model": stored_form(model).digest(), "assay.learner": stored.learner})


def save_onnx(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted model as an ONNX file; see `onnx_model`.

    Parameters
    ----------
    model : learner
        Fitted model, or that of a study.
    path : str or path
        File to write.
    """
    made = onnx_model(model)
    with written_whole(Path(path)) as part:
        part.write_bytes(made.SerializeToString())


def _size(model: StoredModel) -> int:
    """Return how many numbers a model stores."""
    return sum(array.size for array in model.arrays.values()) + sum(map(_size, model.members))


def _add_outputs(graph: Graph, scores: Scores, model: StoredModel, learner: Any) -> None:
    if not find(model.family)[1].classes:
        getattr(family_module(model), "outputs", _number)(graph, scores)
        return
    classes = model.arrays["classes_"]
    _label(graph, positions(graph, scores, model), classes)
    shares = _probabilities(graph, scores, model, learner)
    if shares is not None:
        graph.output("probabilities", shares.value, (len(classes),))


def _probabilities(graph: Graph, scores: Scores, model: StoredModel, learner: Any) -> Scores | None:
    module = family_module(model)
    if hasattr(module, "probabilities"):
        return module.probabilities(graph, scores, model)
    link = probability_link(learner)
    if link < 0 and len(model.arrays.get("column_types_", ())) and learner.probabilities_of_family:
        link = next((LINKS[name] for name in find(model.family)[1].probabilities), -1)  # levels cannot be probed
    return linked(graph, scores, link) if link >= 0 else None


def _number(graph: Graph, scores: Scores) -> None:
    graph.output("variable", scores.value, (scores.width,))


_LABELS = {"U": (object, TensorProto.STRING), "O": (object, TensorProto.STRING), "f": (np.float64, TensorProto.DOUBLE)}


def _label(graph: Graph, chosen: str, classes: np.ndarray) -> None:
    dtype, kind = _LABELS.get(classes.dtype.kind, (np.int64, TensorProto.INT64))
    graph.output("label", graph.node("Gather", graph.constant(classes, dtype), chosen), (), kind)
