"""The numbers behind the figures of trees and ensembles, as dictionaries of arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from assay.plot.frames import Frame
from assay.tree._export import Words
from assay.tree._nodes import Nodes


def tree(model: Any, member: int = 0, words: Words | None = None, most: int | None = None) -> Frame:
    """Return `x`, `depth`, `text`, `leaf` and `code` (class position, -1 for numbers) of each node, and `edges`
    (parent, child, condition); of a tree with more than `most` leaves the upper levels only, where `cut` tells which
    nodes have children that are left out.

    Leaves stand side by side at 0, 1, 2, ..., a node half-way between its outer children. `member` chooses a tree of an
    ensemble; `words` are the names of its columns and levels, if they are not those that it was fitted to.
    """
    check_is_fitted(model)
    words = words or _words(model)
    labels, children, values = (
        _oblique(model, words.names) if hasattr(model, "node_weights_") else _plain(model, member, words)
    )
    n = len(children)
    x, depth, placed = np.zeros(n), np.zeros(n, dtype=int), 0
    for at in range(n):
        for child in children[at]:
            depth[child] = depth[at] + 1
    cut = np.zeros(n, dtype=bool)
    if most is not None:
        cut, children = _upper(children, depth, most)
    for at in _leaves_in_order(children):
        x[at], placed = placed, placed + 1
    for at in range(n - 1, -1, -1):
        if children[at]:
            x[at] = (x[children[at][0]] + x[children[at][-1]]) / 2
    classes = getattr(model, "classes_", None)
    code = np.full(n, -1) if classes is None else values.argmax(axis=1)
    said = [f"{value[0]:.4g}" if classes is None else str(classes[k]) for value, k in zip(values, code)]
    frame: Frame = {
        "x": x,
        "depth": depth,
        "text": said,
        "leaf": np.array([not item for item in children]),
        "cut": cut,
        "code": code,
        "edges": [(at, child, labels[at][v]) for at in range(n) for v, child in enumerate(children[at])],
    }
    if cut.any():
        return _shown(frame, depth <= int(depth[cut].max()))
    return frame


def _shown(frame: Frame, kept: np.ndarray) -> Frame:
    """Return the frame of the nodes that are kept, numbered anew."""
    number = np.cumsum(kept) - 1
    edges = [(int(number[at]), int(number[child]), words) for at, child, words in frame["edges"]]
    nodes = {name: np.asarray(values)[kept] for name, values in frame.items() if name != "edges"}
    return {**nodes, "edges": edges}


def _upper(children: list[list[int]], depth: np.ndarray, most: int) -> tuple[np.ndarray, list[list[int]]]:
    """Return which nodes lose their children, and the children that stay, so that at most `most` leaves are left."""
    leaf = np.array([not child for child in children])
    deepest = int(depth.max())
    while deepest and np.sum(leaf & (depth <= deepest)) + np.sum(~leaf & (depth == deepest)) > most:
        deepest -= 1
    return ~leaf & (depth == deepest), [[] if depth[at] >= deepest else child for at, child in enumerate(children)]


def _leaves_in_order(children: list[list[int]]) -> list[int]:
    results, waiting = [], [0]
    while waiting:
        at = waiting.pop()
        if children[at]:
            waiting += reversed(children[at])
        else:
            results.append(at)
    return results


def _plain(model: Any, member: int, words: Words) -> tuple[list[list[str]], list[list[int]], np.ndarray]:
    """Return conditions of the branches, children and values of the nodes of one tree."""
    if not hasattr(model, "trees_"):
        raise ValueError(f"{type(model).__name__}: has no tree of assay.tree to draw.")
    nodes: Nodes = model.nodes_
    if not 0 <= member < len(nodes.root):
        raise ValueError(f"tree: member must be one of 0..{len(nodes.root) - 1}; got {member!r}.")
    bounds = np.append(nodes.root, len(nodes.child))
    first, last = int(bounds[member]), int(bounds[member + 1])
    labels = [words.conditions(nodes, at) if nodes.child[at] >= 0 else [] for at in range(first, last)]
    children = [
        list(range(nodes.child[at] - first, nodes.child[at] - first + nodes.n_children[at]))
        if nodes.child[at] >= 0
        else []
        for at in range(first, last)
    ]
    return labels, children, nodes.value[first:last]


def _words(model: Any) -> Words:
    columns = getattr(model, "columns_", None) or ()
    levels = {i: column.levels for i, column in enumerate(columns) if column.kind == "nominal"}
    return Words(_names(model, model.n_features_in_), levels, getattr(model, "classes_", None))


def _names(model: Any, d: int) -> list[str]:
    names = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(d)] if names is None else [str(name) for name in names]


def _oblique(model: Any, names: list[str]) -> tuple[list[list[str]], list[list[int]], np.ndarray]:
    labels: list[list[str]] = []
    for w, t, child in zip(model.node_weights_, model.node_threshold_, model.node_child_):
        terms = " + ".join(f"{value:.2g} {names[j]}" for j, value in enumerate(w) if value)
        labels.append([f"{terms} {sign} {t:.3g}" for sign in ("<=", ">")] if child >= 0 else [])
    children = [[int(child), int(child) + 1] if child >= 0 else [] for child in model.node_child_]
    return labels, children, model.node_value_


def importance(
    model: Any, values: np.ndarray | None = None, names: Sequence[str] | None = None, limit: int = 20
) -> Frame:
    """Return `names` and `values` of the most important columns, largest first, and `all`, the number of columns.

    `values` are `feature_importances_` unless given, such as those of `permutation_importances`.
    """
    check_is_fitted(model)
    if values is None and not hasattr(model, "feature_importances_"):
        raise ValueError(f"{type(model).__name__}: has no importances; pass values=.")
    values = np.asarray(model.feature_importances_ if values is None else values, dtype=np.float64)
    names = _names(model, len(values)) if names is None else [str(name) for name in names]
    if len(names) != len(values):
        raise ValueError(f"importance: {len(names)} names for {len(values)} columns.")
    order = np.argsort(-values, kind="stable")[:limit]
    return {"names": [names[j] for j in order], "values": values[order], "all": len(values)}


def out_of_bag(model: Any) -> Frame:
    """Return `members` (1, 2, ...) and `error`, the out-of-bag error of so many members."""
    check_is_fitted(model)
    if not hasattr(model, "oob_errors_"):
        raise ValueError(f"{type(model).__name__}: no out-of-bag errors were kept; fit with oob_score=True.")
    known = np.flatnonzero(np.isfinite(model.oob_errors_))
    return {"members": known + 1, "error": model.oob_errors_[known]}


def margins(model: Any, X: Any = None, y: Any = None) -> Frame:
    """Return `margin` in ascending order and `share`, the share of the rows with at most that margin.

    Without rows those of the fit (`margins_`). With rows: weight of the votes for the class of a row minus the largest
    weight of another class, all weights summing to 1.
    """
    check_is_fitted(model)
    if X is None:
        if not hasattr(model, "margins_"):
            raise ValueError(f"{type(model).__name__}: keeps no margins of its training rows; pass X and y.")
        result = np.asarray(model.margins_)
    else:
        result = _margins(model, X, np.searchsorted(model.classes_, np.asarray(y)))
    return {"margin": np.sort(result), "share": np.arange(1, len(result) + 1) / len(result)}


def _margins(model: Any, X: Any, codes: np.ndarray) -> np.ndarray:
    if hasattr(model, "member_votes"):
        votes = model.member_votes(X)
        shares = np.stack([(votes == k).mean(axis=1) for k in range(len(model.classes_))], axis=1)
    elif hasattr(model, "estimator_weights_") and len(model.classes_) == 2:
        f = model.decision_function(X) / model.largest_decision
        shares = np.stack([-f, f], axis=1) / 2
    else:
        raise ValueError(f"{type(model).__name__}: is no vote, so that rows have no margin.")
    at = np.arange(len(codes))
    own = shares[at, codes].copy()
    shares[at, codes] = -np.inf
    return own - shares.max(axis=1)


def row_weights(model: Any, X: Any, y: Any) -> Frame:
    """Return `round` (0, 1, ...) and `weights` (rounds + 1, rows): AdaBoost's weights of its training rows X, y before
    the first round and after each."""
    check_is_fitted(model)
    if not hasattr(model, "first_weights_"):
        raise ValueError(f"{type(model).__name__}: does not weight its rows round by round; AdaBoostClassifier does.")
    codes, weight = np.searchsorted(model.classes_, np.asarray(y)), model.first_weights_
    if len(codes) != len(weight):
        raise ValueError(f"row_weights: pass the {len(weight)} training rows; got {len(codes)}.")
    results = [weight]
    for alpha, votes in zip(model.estimator_weights_, model._all_votes(X)):
        stretched = results[-1] * np.exp(np.where(votes == codes, -alpha, alpha))
        results.append(stretched / stretched.sum())
    return {"round": np.arange(len(results)), "weights": np.array(results)}
