"""The families of models that have an ONNX graph: the nodes of each predictor (claims/SPEC.md, section 1), and what
follows from its scores: the class that is predicted, and what its link makes of them.

A family is an entry of `_FAMILIES`. The links are those of models made of members (`checker.rules.members`).
"""

import math
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from onnx import TensorProto

from assay.checker.family import read_model
from assay.checker.rules.bayes import ColumnTables, CountScores
from assay.checker.rules.members import BALANCE, BOOSTED, COUNTS, LEAVES, LOGISTIC, RAW, SCORE, SHARES, VOTE
from assay.claims.model import StoredModel
from assay.export import _trees
from assay.export._graph import Graph, Scores


class Exported(NamedTuple):
    """How a family is exported: its scores, and functions where the common rule does not hold.

    The class is decided by the sign of a score or the largest of several unless there are `positions`; the variant says
    how probabilities follow from the scores unless there are `probabilities`; what predicts neither classes nor numbers
    has `outputs`.
    """

    scores: Callable[[Graph, str, StoredModel], Scores]
    positions: Callable[[Graph, Scores, StoredModel], str] | None = None
    probabilities: Callable[[Graph, Scores, StoredModel], Scores] | None = None
    outputs: Callable[[Graph, Scores], None] | None = None


def exported(model: StoredModel) -> Exported:
    """Return how the family of a model is exported."""
    name = model.family.partition(".")[0]
    if name not in _FAMILIES:
        raise ValueError(f"models of the family {model.family} cannot be exported to ONNX.")
    return _FAMILIES[name]


def scores_of(graph: Graph, x: str, model: StoredModel) -> Scores:
    """Add the nodes of a model's predictor and return its scores."""
    return exported(model).scores(graph, x, model)


def positions(graph: Graph, scores: Scores, model: StoredModel) -> str:
    """Return the position of the class that is predicted, (rows,)."""
    decide = exported(model).positions
    if decide is not None:
        return decide(graph, scores, model)
    if scores.width > 1:
        return graph.argmax(scores.value)
    return graph.cast(graph.reshape(graph.node("Greater", scores.value, [0.0]), -1), TensorProto.INT64)


def linked(graph: Graph, scores: Scores, link: int) -> Scores:
    """Return what a link makes of scores."""
    if link not in _FORMULAS:
        raise ValueError("the outputs of a member do not follow from its scores; it cannot be exported to ONNX.")
    return _FORMULAS[link](graph, scores)


def member_outputs(graph: Graph, x: str, members: Sequence[StoredModel], links: np.ndarray) -> list[Scores]:
    """Return what each member contributes to a model made of members."""
    return [_output(graph, x, member, link) for member, link in zip(members, links.ravel().tolist(), strict=True)]


def _output(graph: Graph, x: str, member: StoredModel, link: int) -> Scores:
    scores = scores_of(graph, x, member)
    if link != VOTE:
        return linked(graph, scores, link)
    classes = len(member.arrays["classes_"])
    return Scores(graph.one_hot(positions(graph, scores, member), classes), classes)


def weighted_sum(graph: Graph, parts: Sequence[Scores], weights: Sequence[float]) -> Scores:
    """Return the sum of the parts, each times its weight, added in their order."""
    terms = [graph.node("Mul", part.value, [weight]) for part, weight in zip(parts, weights, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = graph.node("Add", total, term)
    return Scores(total, parts[0].width)


# Formulas ---------------------------------------------------------------------------------------------------------


def _unchanged(graph: Graph, scores: Scores) -> Scores:
    return scores


def _shares(graph: Graph, scores: Scores) -> Scores:
    """Return class probabilities; one of them alone is that of the second of two classes."""
    if scores.width > 1:
        return scores
    return Scores(graph.join([graph.node("Sub", [1.0], scores.value), scores.value]), 2)


def _logistic(graph: Graph, scores: Scores) -> Scores:
    if scores.width == 1:
        return _shares(graph, Scores(graph.node("Sigmoid", scores.value), 1))
    return Scores(graph.node("Softmax", scores.value, axis=1), scores.width)


def _divided(graph: Graph, scores: Scores) -> Scores:
    total = graph.total(scores.value)
    some = graph.node("Where", graph.node("Greater", total, [0.0]), total, [1.0])
    return Scores(graph.node("Div", scores.value, some), scores.width)


def _boosted(graph: Graph, scores: Scores) -> Scores:
    factor = scores.width / (scores.width - 1) ** 2
    return _logistic(graph, Scores(graph.node("Mul", _divided(graph, scores).value, [factor]), scores.width))


def _difference(graph: Graph, scores: Scores) -> Scores:
    return scores if scores.width != 2 else Scores(graph.product(scores.value, [[-1.0], [1.0]]), 1)


def _balance(graph: Graph, scores: Scores) -> Scores:
    return Scores(graph.product(_divided(graph, scores).value, [[-2.0], [2.0]]), 1)


_FORMULAS: dict[int, Callable[[Graph, Scores], Scores]] = {
    SHARES: _shares,
    LOGISTIC: _logistic,
    LEAVES: _unchanged,
    SCORE: _difference,
    RAW: _unchanged,
    COUNTS: _divided,
    BOOSTED: _boosted,
    BALANCE: _balance,
}

# Families ---------------------------------------------------------------------------------------------------------


def _linear(graph: Graph, x: str, model: StoredModel) -> Scores:
    """Linear models: x W + b."""
    coef = np.atleast_2d(model.arrays["coef_"])
    return Scores(graph.affine(x, coef.T, np.atleast_1d(model.arrays["intercept_"])), len(coef))


_INVERSE_LINKS = {"identity": "Identity", "log": "Exp", "logit": "Sigmoid", "inverse": "Reciprocal"}


def _glm(graph: Graph, x: str, model: StoredModel) -> Scores:
    """Generalised linear models: the inverse link of a linear score."""
    link = model.family.partition(".")[2]
    if link not in _INVERSE_LINKS:
        raise ValueError(f"ONNX has no operator of double precision for the inverse of the {link} link.")
    result = _linear(graph, x, model)
    return Scores(graph.node(_INVERSE_LINKS[link], result.value), result.width)


def _discriminant(graph: Graph, x: str, model: StoredModel) -> Scores:
    """Discriminants: linear ones, and <u, A u> + <w, u> + b with u = x - center."""
    if model.family == "discriminant.linear":
        return _linear(graph, x, model)
    quadratic, K = model.arrays["quadratic_"], len(model.arrays["quadratic_"])
    d = quadratic.shape[1]
    u = graph.node("Sub", x, model.arrays["center_"])
    turned = graph.reshape(graph.product(u, quadratic.transpose(1, 0, 2).reshape(d, K * d)), -1, K, d)
    wide = graph.node("Unsqueeze", u, graph.constant([1], np.int64))
    squares = graph.total(graph.node("Mul", turned, wide), axis=2, keep=False)
    rest = graph.affine(u, model.arrays["linear_"].T, np.atleast_1d(model.arrays["constant_"]))
    return Scores(graph.node("Add", squares, rest), K)


def _projection(graph: Graph, x: str, model: StoredModel) -> Scores:
    """Principal components: V (x - center), divided by standard deviations if whitened."""
    components = model.arrays["components_"]
    result = graph.product(graph.node("Sub", x, model.arrays["center_"]), components.T)
    if model.parameters.get("whiten"):
        spread = np.sqrt(model.arrays["explained_variance_"])
        result = graph.node("Div", result, np.maximum(spread, np.finfo(spread.dtype).eps))
    return Scores(result, len(components))


def _centroids(graph: Graph, x: str, model: StoredModel) -> Scores:
    """k-means: squared distances to the centres; the nearest, the first of equals, is the cluster."""
    centers = model.arrays["cluster_centers_"]
    return Scores(graph.squared_distances(x, centers), len(centers))


def _centroids_outputs(graph: Graph, scores: Scores) -> None:
    graph.output("label", graph.node("ArgMin", scores.value, axis=1, keepdims=0), (), TensorProto.INT64)
    graph.output("scores", scores.value, (scores.width,))


def _basis(graph: Graph, x: str, model: StoredModel) -> Scores:
    """Networks of radial basis functions: W f + b with f_i = exp(-beta_i |x - c_i|^2)."""
    if "cascade" in model.family:
        raise ValueError("cascade networks cannot be exported to ONNX.")
    distances = graph.squared_distances(x, model.arrays["centers_"])
    features = graph.node("Exp", graph.node("Mul", distances, -model.arrays["betas_"]))
    coef = np.atleast_2d(model.arrays["coef_"])
    return Scores(graph.affine(features, coef.T, np.atleast_1d(model.arrays["intercept_"])), len(coef))


_UNITS = ("Identity", "Sigmoid", "Tanh", "Relu")


def _network(graph: Graph, x: str, model: StoredModel) -> Scores:
    """Feed-forward networks: a <- f(a W + b) from layer to layer, the last one without f."""
    sizes = model.arrays["network_sizes_"].tolist()
    flat = model.arrays["network_weights_"].astype(np.float64)
    unit, exponential = model.arrays["network_codes_"].tolist()
    shapes = list(pairwise(sizes))
    ends = np.cumsum([a * b for a, b in shapes] + sizes[1:])[:-1]
    parts = np.split(flat, ends)
    for layer, (shape, weights, offset) in enumerate(zip(shapes, parts, parts[len(shapes) :])):
        x = graph.affine(x, weights.reshape(shape), offset)
        x = graph.node(_UNITS[unit], x) if layer < len(shapes) - 1 else x
    return Scores(graph.node("Exp", x) if exponential else x, sizes[-1])


def _network_probabilities(graph: Graph, scores: Scores, model: StoredModel) -> Scores:
    """Return logistic outputs or their softmax; those of squared errors are logistic, divided by their sum."""
    if scores.width == 1 or model.parameters["loss"] == "log_loss":
        return linked(graph, scores, LOGISTIC)
    return linked(graph, Scores(graph.node("Sigmoid", scores.value), scores.width), COUNTS)


_LINEAR, _POLYNOMIAL, _GAUSSIAN, _LAPLACIAN, _SIGMOID = range(5)


def _kernel(graph: Graph, x: str, model: StoredModel) -> Scores:
    """Support vector machines: sum_j beta_j kappa(v_j, x) + b, one score for each pair of classes, which vote."""
    coef = np.atleast_2d(model.arrays["pair_coef_"])
    values = _kernel_values(graph, x, model.arrays["support_vectors_"], model.arrays["kernel_numbers_"])
    return Scores(graph.affine(values, coef.T, np.atleast_1d(model.arrays["intercept_"])), len(coef))


def _kernel_values(graph: Graph, x: str, points: np.ndarray, numbers: np.ndarray) -> str:
    """Return kappa(x, v) for each stored row v, (rows, stored rows)."""
    kind, gamma, degree, coef0 = numbers[:4].tolist()
    if kind == _GAUSSIAN:
        return graph.node("Exp", graph.node("Mul", graph.squared_distances(x, points), [-gamma]))
    if kind == _LAPLACIAN:
        return graph.node("Exp", graph.node("Mul", graph.absolute_distances(x, points), [-gamma]))
    if kind not in (_LINEAR, _POLYNOMIAL, _SIGMOID):
        raise ValueError("models with a kernel of their own, or precomputed kernels, cannot be exported to ONNX.")
    products = graph.product(x, points.T)
    if kind == _LINEAR:
        return products
    inner = graph.node("Add", graph.node("Mul", products, [gamma]), [coef0])
    return graph.node("Pow", inner, [degree]) if kind == _POLYNOMIAL else graph.node("Tanh", inner)


def _kernel_positions(graph: Graph, scores: Scores, model: StoredModel) -> str:
    """Return the class with most votes of the pairs, the first of equals."""
    K = len(model.arrays["classes_"])
    graph.need(K * K * (K - 1))
    pairs = list(combinations(range(K), 2))
    first, second = np.zeros((len(pairs), K)), np.zeros((len(pairs), K))
    first[np.arange(len(pairs)), [i for i, _ in pairs]] = 1.0
    second[np.arange(len(pairs)), [j for _, j in pairs]] = 1.0
    first, second = (second, first) if K == 2 else (first, second)  # of two classes a positive score is the second's
    won = graph.numbers(graph.node("Greater", scores.value, [0.0]))
    votes = graph.node("Add", graph.product(won, first), graph.product(graph.node("Sub", [1.0], won), second))
    return graph.argmax(votes)


def _naive_bayes(graph: Graph, x: str, model: StoredModel) -> Scores:
    """Naive Bayes: ln P(c) + sum over columns of ln P(x_j | c), as the checker reads the stored counts and moments."""
    read = read_model(model, any_size=True)
    result = _column_terms(graph, x, read) if isinstance(read, ColumnTables) else _count_terms(graph, x, read)
    return Scores(result, len(read.classes))


def _logs(shares: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(shares)


def _column_terms(graph: Graph, x: str, model: ColumnTables) -> str:
    """Return the sum of the normal log-densities and the logarithms of the tables, of the values that are there."""
    result = _constant_rows(graph, x, _logs(model.prior))
    if len(model.numeric):
        result = graph.node("Add", result, _normal_terms(graph, x, model))
    for j, part in model.parts:
        result = graph.node("Add", result, _level_term(graph, graph.columns(x, [j]), model, part))
    return result


def _constant_rows(graph: Graph, x: str, row: np.ndarray) -> str:
    """Return the same row for each row of x."""
    rows = graph.node("Gather", graph.node("Shape", x), graph.constant([0], np.int64))
    shape = graph.node("Concat", rows, graph.constant([len(row)], np.int64), axis=0)
    return graph.node("Expand", row[None], shape)


def _normal_terms(graph: Graph, x: str, model: ColumnTables) -> str:
    values = graph.columns(x, model.numeric.tolist())
    missing = graph.node("IsNaN", values)
    parts = []
    for theta, var in zip(model.theta, model.var):
        apart = graph.node("Sub", values, theta)
        density = graph.node("Div", graph.node("Mul", apart, apart), -2.0 * var)
        density = graph.node("Sub", density, 0.5 * np.log(2 * math.pi * var))
        parts.append(graph.total(graph.node("Where", missing, [0.0], density)))
    return graph.join(parts)


def _level_term(graph: Graph, x: str, model: ColumnTables, part: slice) -> str:
    """Return a column's term: the row of the table that belongs to the level, nothing for a gap or a new level."""
    table = np.vstack([model.tables[:, part].T, np.zeros(len(model.classes))])
    equal = graph.numbers(graph.node("Equal", x, model.values[part][None]))
    none = graph.node("Sub", [0.5], graph.total(equal))
    place = graph.argmax(graph.join([equal, none]))
    return graph.node("Gather", table, place, axis=0)


def _count_terms(graph: Graph, x: str, model: CountScores) -> str:
    if model.threshold is not None:
        x = graph.numbers(graph.node("Greater", x, [model.threshold]))
    result = _constant_rows(graph, x, _logs(model.used))
    for part, weights in ((x, model.weights), (graph.node("Sub", [1.0], x), model.offsets)):
        if not np.any(weights):
            continue
        result = graph.node("Add", result, graph.product(part, np.where(np.isfinite(weights), weights, 0.0).T))
        if not np.isfinite(weights).all():
            there = graph.numbers(graph.cast(part, TensorProto.BOOL))
            barred = graph.node("Greater", graph.product(there, np.isinf(weights).T.astype(np.float64)), [0.0])
            result = graph.node("Where", barred, [-np.inf], result)
    return result


def _semi(graph: Graph, x: str, model: StoredModel) -> Scores:
    """Learners of labelled and unlabelled rows that are a model of another family."""
    if model.family != "semi.wrapped":
        raise ValueError(f"models of the family {model.family} cannot be exported to ONNX.")
    return scores_of(graph, x, model.members[0])


def _votes(graph: Graph, x: str, model: StoredModel) -> Scores:
    """Votes and means of members, with weights."""
    if float(model.arrays.get("needed_", np.array(-1.0)).ravel()[0]) >= 0:
        raise ValueError("committees that reject rows cannot be exported to ONNX.")
    weights = model.arrays["vote_weights_"]
    if np.any(model.arrays["links_"] == VOTE) and not _never_ties(weights, len(model.arrays["classes_"])):
        raise ValueError("ties of a hard vote are drawn by a hash of the row, which ONNX cannot compute; vote softly.")
    weights = weights if "classes_" in model.arrays else weights / weights.sum()
    return weighted_sum(graph, member_outputs(graph, x, model.members, model.arrays["links_"]), weights.tolist())


def _never_ties(weights: np.ndarray, classes: int) -> bool:
    return classes == 2 and len(weights) % 2 == 1 and bool(np.all(weights == weights[0]))


def _stacking(graph: Graph, x: str, model: StoredModel) -> Scores:
    """Stacking: what members predict are the columns of a final learner."""
    binary = len(model.arrays.get("classes_", ())) == 2
    parts = member_outputs(graph, x, model.members[:-1], np.asarray(model.arrays["links_"]))
    columns = [graph.columns(part.value, [1]) if binary and part.width == 2 else part.value for part in parts]
    columns += [x] if int(model.arrays["passes_"]) else []
    return scores_of(graph, graph.join(columns), model.members[-1])


def _thresholds(graph: Graph, x: str, model: StoredModel) -> Scores:
    """Classifiers whose probabilities are weighed by a matrix before a class is predicted."""
    matrix = model.arrays["matrix_"]
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError("classifiers that reject rows cannot be exported to ONNX.")
    (shares,) = member_outputs(graph, x, model.members, model.arrays["links_"])
    return Scores(graph.product(shares.value, matrix), len(matrix))


_FAMILIES = {
    "basis": Exported(_basis),
    "centroids": Exported(_centroids, outputs=_centroids_outputs),
    "discriminant": Exported(_discriminant),
    "expansion": Exported(_kernel),
    "glm": Exported(_glm),
    "kernel": Exported(_kernel, _kernel_positions),
    "linear": Exported(_linear),
    "naive_bayes": Exported(_naive_bayes),
    "network": Exported(_network, probabilities=_network_probabilities),
    "projection": Exported(_projection),
    "semi": Exported(_semi),
    "stacking": Exported(_stacking),
    "thresholds": Exported(_thresholds),
    "trees": Exported(_trees.scores),
    "votes": Exported(_votes),
}
