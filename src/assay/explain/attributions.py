"""Shapley values of a prediction: what each column adds to it, beside what is predicted without the row.

    phi_j = sum over sets S of other columns of |S|! (d - 1 - |S|)! / d! times v(S with j) - v(S)

v(S) is the mean prediction when the columns of S are those of the row and the others those of the reference: rows of a
background, each as often as another, or, of trees, the training rows by the weights of the branches. They add up to the
prediction. Of linear models and trees they are exact, in time that is linear in columns, or leaves times depth squared.

Method: of a linear model, a coefficient times the distance from the background's mean; of trees, leaf by leaf, an
integral that a rule of Gauss and Legendre gives exactly (`_shapley_loops`). Shapley 1953; Lundberg et al. 2020.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from assay.ensemble._boosted import Boosted
from assay.params import refuse
from assay.scan import thread_map
from assay.tree._nodes import Nodes
from assay.tree._reading import read_columns

_SAME = 1e-6  # of the largest number: by how much the sum may miss the prediction


class Attributions(NamedTuple):
    """What each column adds to the predictions of rows.

    Attributes
    ----------
    values : array of shape (rows, columns, outputs)
        Shapley values.
    base : array of shape (outputs,)
        The mean prediction of the reference.
    predicted : array of shape (rows, outputs)
        `base` and the sum of the values over the columns.
    """

    values: np.ndarray
    base: np.ndarray
    predicted: np.ndarray


def shapley(model: Any, X: Any, background: Any = None, *, n_jobs: int | None = None) -> Attributions:
    """Return the exact Shapley values of a linear model or of trees.

    What is attributed: decision values of linear classifiers and of boosting (before the link), class probabilities of
    trees and forests, predicted numbers of regressions (of generalised linear models and boosting before the link).
    There is one output for each class, of decision values of two classes one for the second.

    Parameters
    ----------
    model : fitted learner, or model of a table
        A learner with `coef_`, or one made of trees: a decision tree, a forest, gradient boosting, bagged trees. The
        model of a study has values for the columns of the table, each with all that is encoded of it.
    X : array or frame of shape (rows, columns)
        Rows as the model reads them.
    background : array or frame of shape (rows, columns), optional
        Rows that stand for the columns that are left out. A linear model needs them. Trees without them follow the
        weights of the training rows in their branches.
    n_jobs : int or None
        Threads; None uses all cores.

    Returns
    -------
    Attributions
        Values, base and predictions, which are `base` plus the sum of the values.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.explain import shapley
    >>> from assay.tree import DecisionTreeRegressor
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> tree = DecisionTreeRegressor().fit(X, [0.0, 1.0, 2.0, 3.0])
    >>> told = shapley(tree, [[1.0, 0.0]])
    >>> told.values[0, :, 0].tolist(), float(told.base[0])
    ([1.0, -0.5], 1.5)
    """
    check_is_fitted(model)
    owners = None
    if hasattr(model, "encoding"):
        names = [column.name for column in model.columns]
        owners = np.array([names.index(name) for name in model.encoding.sources()], dtype=np.int64)
        X = model.encode(X, lenient=True)[0]
        background = None if background is None else model.encode(background, lenient=True)[0]
        model = model.learner
    rows = _table(model, X)
    if owners is None:
        owners = np.arange(rows.shape[1])
    reference = None if background is None else _table(model, background)
    if not len(rows) or (reference is not None and not len(reference)):
        raise refuse(model, "X, and the background if there is one, must have at least one row.")
    if hasattr(model, "coef_"):
        return _of_line(model, rows, reference, owners)
    if not getattr(model, "has_nodes", False):
        raise refuse(model, "Shapley values are for linear models and for models made of trees.")
    return _of_trees(model, X, rows, reference, owners, n_jobs)


def _table(model: Any, X: Any) -> np.ndarray:
    if hasattr(model, "coef_"):
        table = np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64)
    else:
        table = np.asarray(read_columns(model, X).X, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != model.n_features_in_:
        raise refuse(model, f"rows must have {model.n_features_in_} columns; got an array of shape {table.shape}.")
    return table


def _of_line(model: Any, X: np.ndarray, background: np.ndarray | None, owners: np.ndarray) -> Attributions:
    if background is None:
        raise refuse(model, "Shapley values of a linear model need a background: give rows, the training rows say.")
    coef = model.coef_
    W = np.atleast_2d(coef.toarray() if issparse(coef) else coef).astype(np.float64)
    if W.shape[1] != X.shape[1]:
        raise refuse(model, "its scores are not linear in the columns.")
    mean, b = background.mean(axis=0), np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), len(W))
    values = np.zeros((len(X), int(owners.max()) + 1, len(W)))
    for column, owner in enumerate(owners.tolist()):
        values[:, owner] += (X[:, column] - mean[column])[:, None] * W[:, column]
    return Attributions(values, mean @ W.T + b, X @ W.T + b)


# Trees ------------------------------------------------------------------------------------------------------------


class _Paths(NamedTuple):
    """The ways from the roots of trees to their ends; a column that is tested again on the way has one entry, and so
    have columns of one owner."""

    starts: np.ndarray
    steps: np.ndarray  # (steps, 2) node and branch, -1 for rows of an unknown level, which end there
    place: np.ndarray  # of each step, its entry
    entries: np.ndarray  # of each path, its first entry
    columns: np.ndarray  # of each entry
    weights: np.ndarray  # of each entry, the share of the training rows that pass
    ends: np.ndarray  # of each path, the node
    trees: np.ndarray  # of each path


def _paths(nodes: Nodes, owners: np.ndarray) -> _Paths:
    starts, entries, ends, trees = [0], [0], [], []
    steps: list[tuple[int, int]] = []
    place: list[int] = []
    columns: list[int] = []
    weights: list[float] = []
    for t, root in enumerate(nodes.root.tolist()):
        for end, way in _ways(nodes, root):
            own: dict[int, int] = {}
            for node, branch in way:
                column = int(owners[nodes.column[node]])
                if column not in own:
                    own[column] = len(columns)
                    columns.append(column)
                    weights.append(1.0)
                steps.append((node, branch))
                place.append(own[column])
                weights[own[column]] *= _weight_of(nodes, node, branch)
            starts.append(len(steps))
            entries.append(len(columns))
            ends.append(end)
            trees.append(t)

    def whole(part: list[Any]) -> np.ndarray:
        return np.array(part, dtype=np.int64)

    return _Paths(
        whole(starts), whole(steps).reshape(-1, 2), whole(place), whole(entries), whole(columns), np.array(weights),
        whole(ends), whole(trees),
    )  # fmt: skip


def _ways(nodes: Nodes, root: int) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Yield each end of a tree with the nodes and branches on the way to it."""
    stack: list[tuple[int, list[tuple[int, int]]]] = [(root, [])]
    while stack:
        node, way = stack.pop()
        if nodes.child[node] < 0:
            yield node, way
            continue
        if nodes.table[node] >= 0:
            yield node, [*way, (node, -1)]
        first = int(nodes.child[node])
        stack += [(first + k, [*way, (node, k)]) for k in range(int(nodes.n_children[node]))]


def _weight_of(nodes: Nodes, node: int, branch: int) -> float:
    first, k = int(nodes.child[node]), int(nodes.n_children[node])
    total = float(nodes.weight[first : first + k].sum())
    return 0.0 if branch < 0 or total <= 0 else float(nodes.weight[first + branch]) / total


def _of_trees(
    model: Any, given: Any, X: np.ndarray, background: np.ndarray | None, owners: np.ndarray, n_jobs: int | None
) -> Attributions:
    from assay.explain._shapley_loops import attribute, passes

    nodes = model.nodes_.check(model.n_features_in_)
    paths, boosted = _paths(nodes, owners), isinstance(model, Boosted)
    predicted = model._raw(given) if boosted else _predicted(model, given)
    outputs = predicted.shape[1]
    leaf = nodes.value[paths.ends].astype(np.float64)
    values = np.zeros((len(leaf), outputs))
    if boosted:
        values[np.arange(len(leaf)), paths.trees % outputs] = leaf[:, 0]
    else:
        values = leaf / len(nodes.root)
    how = (nodes.column, nodes.threshold, nodes.table, nodes.tables, nodes.child, nodes.missing, nodes.weight)
    parts = (paths.starts, paths.steps, paths.place, *how)
    deepest = int(np.diff(paths.entries).max(initial=0))
    first, places, shares = _rules((deepest + 1) // 2)
    found, base = np.zeros((len(X), int(owners.max()) + 1, outputs)), np.zeros(outputs)
    references = [paths.weights] if background is None else [_passed(passes, row, parts, paths) for row in background]

    def work(i: int) -> None:
        own, beside = _passed(passes, X[i], parts, paths), np.zeros(outputs)
        for z in references:
            rule = (places, shares, first, 1.0 / len(references))
            attribute(own, z, paths.entries, paths.columns, values, *rule, found[i], beside)
        if i == 0:
            base[:] = beside

    thread_map(work, range(len(X)), n_jobs=n_jobs)
    base += model.base_score_ if boosted else 0.0
    told = base + found.sum(axis=1)
    if not np.allclose(told, predicted, rtol=_SAME, atol=_SAME * (1.0 + np.abs(predicted).max(initial=0.0))):
        raise refuse(model, "its predictions are no sum or mean of the values of its leaves.")
    return Attributions(found, base, told)


def _predicted(model: Any, X: np.ndarray) -> np.ndarray:
    said = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
    values = np.column_stack(said) if isinstance(said, list) else np.asarray(said, dtype=np.float64)
    return values.reshape(len(values), -1)


def _passed(passes: Any, row: np.ndarray, parts: tuple, paths: _Paths) -> np.ndarray:
    out = np.empty(len(paths.columns))
    passes(np.ascontiguousarray(row), *parts, out)
    return out


def _rules(most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Gauss and Legendre's rules with 0, 1, ..., `most` points on the interval from 0 to 1, joined."""
    rules = [(np.empty(0), np.empty(0)), *(np.polynomial.legendre.leggauss(k) for k in range(1, most + 1))]
    first = np.cumsum([0, *(len(points) for points, _ in rules)])
    points, weights = (np.concatenate(side) for side in zip(*rules))
    return first, 0.5 * (points + 1.0), 0.5 * weights
