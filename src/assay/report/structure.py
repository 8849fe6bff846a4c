"""What the model of a study is made of, as far as it can be drawn: weights, support vectors, layers, a tree."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from assay.checker.family import find
from assay.learning import Study, TableModel
from assay.plot import frames, tree_frames
from assay.tree._export import ReadableTree, Words, as_text

_WEIGHTS, _POINTS, _VALUES, _LINES, _DEPTH = 12, 400, 12, 40, 3


def structure(found: Study, columns: Sequence[str]) -> dict[str, Any]:
    """Return the parts of the chosen model; support vectors are shown on the first two of the columns that are
    numbers."""
    model = found.judged[0]
    learner, names = model.learner, model.encoding.feature_names()
    shown: dict[str, Any] = dict.fromkeys(("coefficients", "support", "vectors", "network", "tree", "rules"))
    if np.shape(getattr(learner, "coef_", ()))[-1:] == (len(names),):
        frame = frames.coefficients(learner, names, _WEIGHTS)
        shown["coefficients"] = [frame["names"], frame["values"][:, -1].tolist()]
    arrays = find(learner.family)[1].arrays
    if "support_" in arrays:
        shown["support"] = [len(learner.support_), found.table.n_rows - len(found.judged[1])]
        shown["vectors"] = _vectors(found, columns)
    if "network_sizes_" in arrays:
        shown["network"] = learner.network_sizes_.tolist()
    if isinstance(learner, ReadableTree):
        words = _words(model, names)
        shown["tree"] = _tree(tree_frames.tree(learner, words=words))
        shown["rules"] = as_text(learner.nodes_, words).splitlines()[:_LINES]
    return shown


def _words(model: TableModel, names: list[str]) -> Words:
    """Return the names of the table's columns and levels, as the learner's conditions are to say them."""
    return Words(names, model.encoding.levels(), getattr(model.learner, "classes_", None))


def _tree(frame: Any) -> list[dict[str, Any]]:
    """Return the nodes of the upper levels: place, what it says, the condition that leads to it, and whether more
    follows below."""
    edges = [edge for edge in frame["edges"] if frame["depth"][edge[1]] <= _DEPTH]
    inner, over = {edge[0] for edge in edges}, {child: (parent, text) for parent, child, text in edges}
    drawn = [0, *over]
    ends = sorted((at for at in drawn if at not in inner), key=lambda at: frame["x"][at])
    x = {at: float(i) for i, at in enumerate(ends)}
    for at in sorted(inner, key=lambda at: -frame["depth"][at]):
        below = [x[child] for parent, child, _ in edges if parent == at]
        x[at] = (min(below) + max(below)) / 2
    return [
        {
            "x": x[at],
            "depth": int(frame["depth"][at]),
            "says": frame["text"][at],
            "code": int(frame["code"][at]),
            "condition": over[at][1] if at in over else "",
            "parent": drawn.index(over[at][0]) if at in over else -1,
            "more": at in ends and not frame["leaf"][at],
        }
        for at in drawn
    ]


def _vectors(found: Study, columns: Sequence[str]) -> dict[str, Any] | None:
    """Return training rows on two columns, those that are support vectors ringed."""
    model, held = found.judged
    sources, names = model.encoding.sources(), model.encoding.feature_names()
    kinds = {column.name: column.kind for column in model.encoding.schema}
    drawn = [name for name in columns if kinds.get(name) == "numeric" and name in sources]
    drawn.sort(key=lambda name: len(np.unique(found.table.column(name).data)) < _VALUES)  # few values lie on lines
    chosen = [sources.index(name) for name in drawn[:2]]
    if len(chosen) < 2:
        return None
    rows = found.table.take(np.setdiff1d(np.arange(found.table.n_rows), held))
    X, y = model.encode(rows)[0], model.labels(rows)
    learner, marked = model.learner, np.zeros(len(X), dtype=bool)
    if max(learner.support_, default=0) >= len(X):
        return None  # it was fitted to other rows than these
    marked[learner.support_] = True
    some = np.sort(np.random.default_rng(0).permutation(len(X))[:_POINTS])
    points = X[some][:, chosen]
    codes = np.searchsorted(model.classes_, y[some]) if found.task == "classify" else np.zeros(len(some), dtype=int)
    low, high = points.min(axis=0), points.max(axis=0)
    return {
        "points": points.tolist(),
        "codes": codes.tolist(),
        "x_range": [low[0], high[0]],
        "y_range": [low[1], high[1]],
        "x": names[chosen[0]],
        "y": names[chosen[1]],
        "rings": np.flatnonzero(marked[some]).tolist(),
    }
