"""ONNX graphs of fitted models."""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto

from assay.checker.family import find, stored_form
from assay.claims.model import StoredModel
from assay.data.columns import LARGEST, ColumnType
from assay.data.encoding import Encoding, Words
from assay.export._families import exported, linked, positions, scores_of
from assay.export._graph import Graph, Scores
from assay.export._python import exported_link
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
        (exported(model).outputs or _number)(graph, scores)
        return
    classes = model.arrays["classes_"]
    _label(graph, positions(graph, scores, model), classes)
    shares = _probabilities(graph, scores, model, learner)
    if shares is not None:
        graph.output("probabilities", shares.value, (len(classes),))


def _probabilities(graph: Graph, scores: Scores, model: StoredModel, learner: Any) -> Scores | None:
    own = exported(model).probabilities
    if own is not None:
        return own(graph, scores, model)
    link = exported_link(learner, model)
    return linked(graph, scores, link) if link >= 0 else None


def _number(graph: Graph, scores: Scores) -> None:
    graph.output("variable", scores.value, (scores.width,))


_LABELS = {"U": (object, TensorProto.STRING), "O": (object, TensorProto.STRING), "f": (np.float64, TensorProto.DOUBLE)}


def _label(graph: Graph, chosen: str, classes: np.ndarray) -> None:
    dtype, kind = _LABELS.get(classes.dtype.kind, (np.int64, TensorProto.INT64))
    graph.output("label", graph.node("Gather", graph.constant(classes, dtype), chosen), (), kind)


_DAY = 86_400.0


def encoded_columns(graph: Graph, encoding: Encoding) -> str:
    """Declare an input for each column of the table and return the encoded rows (rows, columns)."""
    text = [part.type.name for part in encoding.parts if isinstance(part, Words)]
    if text:
        raise ValueError(f"the column {text[0]!r} holds free text, whose words an ONNX graph cannot look for; drop it.")
    arrays = encoding.arrays()
    raw = [_raw(graph, part.type) for part in encoding.parts]
    raw += [_date_part(graph, raw[place], name) for place, name in arrays.dates]
    kept = [_kept(graph, raw[i], limit) for i, limit in zip(arrays.kept, arrays.kept_levels)]
    scales = zip(arrays.numbers, arrays.fill, arrays.mean, arrays.scale)
    numbers = [_number_column(graph, raw[i], *scale) for i, *scale in scales]
    gaps = [
        graph.node("Div", graph.node("Sub", graph.numbers(graph.node("IsNaN", raw[i])), [mean]), [scale])
        for i, mean, scale in zip(arrays.gaps, arrays.gap_mean, arrays.gap_scale)
    ]
    starts = zip(arrays.nominal, arrays.starts[:-1], arrays.starts[1:])
    levels = [_slots(graph, raw[i], arrays.slots[start:stop]) for i, start, stop in starts]
    return graph.join([*kept, *numbers, *gaps, *levels])


def _raw(graph: Graph, column: ColumnType) -> str:
    """Return a column of raw rows: a number, the position of a level, or seconds; NaN where a value is missing."""
    if column.levels:
        return _level(graph, graph.input(column.name, 1, TensorProto.STRING), column)
    x = graph.input(column.name, 1)
    size = graph.node("Abs", x)
    x = graph.node("Where", graph.node("Greater", size, [LARGEST]), [np.nan], x)
    return graph.node("Where", graph.node("Less", size, [1 / LARGEST]), [0.0], x)


def _level(graph: Graph, text: str, column: ColumnType) -> str:
    """Return the position of each level; that of an unknown one is the number of levels, if the column is nominal."""
    keys, codes = [*column.levels, ""], [*range(len(column.levels)), -1]
    other = len(column.levels) if column.kind == "nominal" else -1
    code = graph.node(
        "LabelEncoder", text, domain="ai.onnx.ml", keys_strings=keys, values_int64s=codes, default_int64=other
    )
    number = graph.numbers(code)
    return graph.node("Where", graph.node("Less", number, [0.0]), [np.nan], number)


def _kept(graph: Graph, x: str, limit: float) -> str:
    return x if np.isinf(limit) else graph.node("Where", graph.node("GreaterOrEqual", x, [limit]), [np.nan], x)


def _number_column(graph: Graph, x: str, fill: float, mean: float, scale: float) -> str:
    x = graph.node("Where", graph.node("IsNaN", x), [fill], x)
    x = graph.node("Div", graph.node("Sub", x, [mean]), [scale])
    size = graph.node("Abs", x)
    x = graph.node("Where", graph.node("Greater", size, [LARGEST]), [(fill - mean) / scale], x)
    return graph.node("Where", graph.node("Less", size, [1 / LARGEST]), [0.0], x)


def _slots(graph: Graph, x: str, slots: np.ndarray) -> str:
    """Return a column for each slot: 1 where x is a level of the slot. The last of `slots` is that of a gap."""
    code = graph.node("Where", graph.node("IsNaN", x), [len(slots) - 1.0], x)
    place = graph.reshape(graph.cast(code, TensorProto.INT64), -1)
    slot = graph.node("Gather", graph.constant(slots, np.int64), place)
    width = int(slots.max()) + 1
    return graph.node("Gather", np.eye(width + 1, width), slot, axis=0)  # -1 is the last row, of zeros


def _date_part(graph: Graph, seconds: str, name: str) -> str:
    """Return a part of moments; days are counted in eras of 400 years that begin in March."""
    if name == "elapsed days":
        return graph.node("Div", seconds, [_DAY])
    days = _floor(graph, seconds, _DAY)
    if name == "weekday":
        return _remainder(graph, graph.node("Add", days, [3.0]), 7.0)
    if name == "hour":
        return _floor(graph, graph.node("Sub", seconds, graph.node("Mul", days, [_DAY])), 3600.0)
    shifted = graph.node("Add", days, [719_468.0])
    era, day = _floor(graph, shifted, 146_097.0), _remainder(graph, shifted, 146_097.0)
    leap = [_floor(graph, day, span) for span in (1460.0, 36_524.0, 146_096.0)]
    counted = graph.node("Sub", graph.node("Add", graph.node("Sub", day, leap[0]), leap[1]), leap[2])
    year = _floor(graph, counted, 365.0)
    before = graph.node("Add", graph.node("Mul", year, [365.0]), _floor(graph, year, 4.0))
    day = graph.node("Sub", day, graph.node("Sub", before, _floor(graph, year, 100.0)))
    month = _floor(graph, graph.node("Add", graph.node("Mul", day, [5.0]), [2.0]), 153.0)
    if name == "day":
        gone = _floor(graph, graph.node("Add", graph.node("Mul", month, [153.0]), [2.0]), 5.0)
        return graph.node("Add", graph.node("Sub", day, gone), [1.0])
    january = graph.node("GreaterOrEqual", month, [10.0])
    if name == "month":
        return graph.node("Add", month, graph.node("Where", january, [-9.0], [3.0]))
    whole = graph.node("Add", graph.node("Mul", era, [400.0]), year)
    return graph.node("Add", whole, graph.numbers(january))


def _floor(graph: Graph, x: str, divisor: float) -> str:
    return graph.node("Floor", graph.node("Div", x, [divisor]))


def _remainder(graph: Graph, x: str, divisor: float) -> str:
    return graph.node("Sub", x, graph.node("Mul", _floor(graph, x, divisor), [divisor]))
