"""Fitted trees for people and tools: indented text, a list of rules, HTML, an SVG picture, scikit-learn's `Tree`."""

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from assay.params import refuse
from assay.tree._nodes import Nodes
from assay.tree._predict import goes_one_way, leaves, mean_values, mixed_leaves
from assay.tree._reading import Read, read_columns
from assay.tree.growth._growers import feature_count

_LEAF, _UNDEFINED = -1, -2  # scikit-learn's numbers for "no child" and "no test"


class RuleLine(NamedTuple):
    """If all conditions hold, predict `label`; `weight` training rows did, a share of `purity` of them with
    this label."""

    conditions: tuple[str, ...]
    label: Any
    weight: float
    purity: float

    def __str__(self) -> str:
        when = " and ".join(self.conditions) or "always"
        return f"if {when} then {self.label}"


class Words(NamedTuple):
    """Names of columns, levels and predictions."""

    names: list[str]
    levels: dict[int, tuple[str, ...]]
    classes: np.ndarray | None

    def conditions(self, nodes: Nodes, at: int) -> list[str]:
        """Return the condition of each branch of a node."""
        f = int(nodes.column[at])
        name = self.names[f]
        if nodes.table[at] < 0:
            threshold, ordered = nodes.threshold[at], self.levels.get(f, ())
            last = ordered[int(threshold)] if 0 <= threshold < len(ordered) else f"{threshold:.6g}"
            return [f"{name} <= {last}", f"{name} > {last}"]
        table = nodes.tables[nodes.table[at]]
        levels = self.levels.get(f, tuple(map(str, range(len(table)))))
        groups = [[levels[i] for i in np.flatnonzero(table[: len(levels)] == v)] for v in range(nodes.n_children[at])]
        return [f"{name} = {group[0]}" if len(group) == 1 else f"{name} in {{{', '.join(group)}}}" for group in groups]

    def prediction(self, nodes: Nodes, at: int) -> Any:
        if self.classes is None:
            return float(nodes.value[at, 0])
        return self.classes[int(nodes.value[at].argmax())]

    def caption(self, nodes: Nodes, at: int) -> str:
        what = self.prediction(nodes, at)
        return f"{what:.6g}" if self.classes is None else f"{what}"


def as_text(nodes: Nodes, words: Words) -> str:
    """Return the tree as indented text, one line per branch."""
    lines: list[str] = []

    def write(at: int, depth: int) -> None:
        if nodes.child[at] < 0:
            lines[-1] += f": {words.caption(nodes, at)} ({nodes.weight[at]:g})"
            return
        for v, condition in enumerate(words.conditions(nodes, at)):
            lines.append("|   " * depth + condition)
            write(int(nodes.child[at]) + v, depth + 1)

    if nodes.child[0] < 0:
        return f"{words.caption(nodes, 0)} ({nodes.weight[0]:g})"
    write(0, 0)
    return "\n".join(lines)


def as_rules(nodes: Nodes, words: Words) -> list[RuleLine]:
    """Return one rule for each leaf; their conditions exclude each other and cover everything."""
    rule_lines: list[RuleLine] = []
    stack: list[tuple[int, tuple[str, ...]]] = [(0, ())]
    while stack:
        at, conditions = stack.pop()
        if nodes.child[at] < 0:
            purity = float(nodes.value[at].max()) if words.classes is not None else 1.0
            rule_lines.append(RuleLine(conditions, words.prediction(nodes, at), float(nodes.weight[at]), purity))
            continue
        branches = words.conditions(nodes, at)
        stack += [(int(nodes.child[at]) + v, (*conditions, text)) for v, text in reversed(list(enumerate(branches)))]
    return rule_lines


def as_html(nodes: Nodes, words: Words) -> str:
    """Return the tree as nested lists that can be folded."""

    def item(at: int, condition: str) -> str:
        head = f"{escape(condition)} <b>{escape(words.caption(nodes, at))}</b> ({nodes.weight[at]:g})"
        if nodes.child[at] < 0:
            return f"<li>{head}</li>"
        inside = "".join(item(int(nodes.child[at]) + v, text) for v, text in enumerate(words.conditions(nodes, at)))
        return f"<li><details open><summary>{head}</summary><ul>{inside}</ul></details></li>"

    return f"<ul>{item(0, '')}</ul>"


def as_svg(nodes: Nodes, words: Words) -> str:
    """Return a picture: a box for each node, a line with its condition for each branch."""
    depth, place = nodes.depths(), np.zeros(len(nodes.child))
    leaf = 0
    stack = [0]
    while stack:  # leaves from left to right
        at = stack.pop()
        if nodes.child[at] < 0:
            place[at], leaf = leaf, leaf + 1
        else:
            stack += range(nodes.child[at] + nodes.n_children[at] - 1, nodes.child[at] - 1, -1)
    for at in np.flatnonzero(nodes.child >= 0)[::-1]:
        place[at] = place[nodes.child[at] : nodes.child[at] + nodes.n_children[at]].mean()
    x, y = 80 + 150 * place, 30 + 90 * depth
    drawn = []
    for at in np.flatnonzero(nodes.child >= 0):  # type: ignore[assignment]
        for v, text in enumerate(words.conditions(nodes, at)):
            c = int(nodes.child[at]) + v
            drawn.append(f'<line x1="{x[at]:g}" y1="{y[at]}" x2="{x[c]:g}" y2="{y[c]}" stroke="gray"/>')
            drawn.append(f'<text x="{(x[at] + x[c]) / 2:g}" y="{(y[at] + y[c]) / 2:g}">{escape(text)}</text>')
    for at in range(len(place)):
        label = words.caption(nodes, at) if nodes.child[at] < 0 else words.names[int(nodes.column[at])]
        drawn.append(f'<rect x="{x[at] - 60:g}" y="{y[at] - 14}" width="120" height="28" fill="white" stroke="black"/>')
        drawn.append(f'<text x="{x[at]:g}" y="{y[at] + 4}">{escape(label)}</text>')
    width, height = 160 + 150 * max(leaf - 1, 0), 60 + 90 * int(depth.max())
    style = "font-family:sans-serif;font-size:11px;text-anchor:middle"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" style="{style}">'
    return head + "".join(drawn) + "</svg>"


# scikit-learn's tree
# ----------------------------------------------------------------------------------------------------------------------


def scikit_tree(
    nodes: Nodes, n_features: int, n_classes: Sequence[int] | np.ndarray, leaf_rows: np.ndarray | None = None
) -> Any:
    """Return one tree as a `sklearn.tree._tree.Tree`, so that scikit-learn's tools and SHAP read it. It is
    derived from the nodes, which remain the model: writing to its arrays changes no prediction. Nodes keep their
    numbers, the children of a node side by side after it.

    n_classes : number of classes of each output, 1 for numbers; `nodes.value` holds their shares one after the other
    leaf_rows : (leaves,) training rows of each leaf; the weights, rounded, if it is None (all rows weigh 1)
    """
    from sklearn.tree._tree import NODE_DTYPE, Tree

    _require_thresholds(nodes)
    n, inner = len(nodes.child), nodes.child >= 0
    records = np.zeros(n, dtype=NODE_DTYPE)
    records["left_child"] = np.where(inner, nodes.child, _LEAF)
    records["right_child"] = np.where(inner, nodes.child + 1, _LEAF)
    records["feature"] = np.where(inner, nodes.column, _UNDEFINED)
    records["threshold"] = np.where(inner, nodes.threshold, _UNDEFINED)
    records["impurity"] = nodes.impurity
    records["n_node_samples"] = row_counts(nodes, leaf_rows)
    records["weighted_n_node_samples"] = nodes.weight
    records["missing_go_to_left"] = inner & (nodes.missing == 0)
    classes = np.asarray(n_classes, dtype=np.intp)
    tree = Tree(n_features, classes, len(classes))
    depth = int(nodes.depths().max())
    state = {"max_depth": depth, "node_count": n, "nodes": records, "values": padded(nodes.value, classes)}
    tree.__setstate__(state)
    return tree


def _require_thresholds(nodes: Nodes) -> None:
    if np.any(nodes.table[nodes.child >= 0] >= 0):
        raise AttributeError("tree_: scikit-learn's trees have no splits of nominal columns; read nodes_ instead.")
    if np.any(nodes.missing[nodes.child >= 0] < 0):
        raise AttributeError(
            "tree_: scikit-learn's trees send rows without a value down one branch, this one down all; read nodes_ "
            'instead, or fit with missing="direction".'
        )


def padded(value: np.ndarray, n_classes: np.ndarray) -> np.ndarray:
    """Return values (nodes, sum of classes) as (nodes, outputs, most classes), with zeros behind fewer classes."""
    out = np.zeros((len(value), len(n_classes), int(n_classes.max())))
    for k, part in enumerate(np.split(value, np.cumsum(n_classes)[:-1], axis=1)):
        out[:, k, : part.shape[1]] = part
    return out


def row_counts(nodes: Nodes, leaf_rows: np.ndarray | None) -> np.ndarray:
    """Return the number of training rows of each node, from that of the leaves."""
    if leaf_rows is None:
        return np.rint(nodes.weight).astype(np.int64)
    counts = np.zeros(len(nodes.child), dtype=np.int64)
    counts[nodes.child < 0] = leaf_rows
    for level in reversed(_levels(nodes)):
        inner = level[nodes.child[level] >= 0]
        counts[inner] = counts[nodes.child[inner]] + counts[nodes.child[inner] + 1]
    return counts


def _levels(nodes: Nodes) -> list[np.ndarray]:
    results, level = [], nodes.root.astype(np.int64)
    while len(level):
        results.append(level)
        level = nodes.children_of(level)
    return results


def ways_down(nodes: Nodes, ends: np.ndarray) -> csr_matrix:
    """Return (rows, nodes) with a 1 for every node on the way of each row, from the nodes where they end (rows,)."""
    parent, at = nodes.parents(), ends.astype(np.int64)
    ahead = np.append(0, np.cumsum(nodes.depths()[at] + 1))
    result, place = np.empty(ahead[-1], dtype=np.int64), ahead[1:] - 1
    while len(at):
        result[place] = at
        above = parent[at]
        going = above >= 0
        at, place = above[going], place[going] - 1
    return csr_matrix((np.ones(len(result), dtype=np.int64), result, ahead), shape=(len(ends), len(parent)))


class ReadableTree:
    """Mixin of fitted trees: reads `nodes_`."""

    nodes_: Nodes
    n_features_in_: int
    n_jobs: int | None
    classes_: Any
    columns_: Any
    leaf_rows_: np.ndarray

    @property
    def more_arrays(self) -> tuple[str, ...]:
        """What a file keeps beside the nodes: the rows of the leaves, if their weights do not tell."""
        return ("leaf_rows_",) if "leaf_rows_" in vars(self) else ()

    @property
    def n_outputs_(self) -> int:
        """Number of targets that the tree predicts."""
        return len(self.classes_per_output())

    @property
    def n_classes_(self) -> Any:
        """Number of classes; of several outputs, one number for each."""
        if not hasattr(self, "classes_"):
            raise AttributeError(f"{type(self).__name__} has no n_classes_: it is not fitted, or predicts numbers.")
        counts = self.classes_per_output()
        return int(counts[0]) if len(counts) == 1 else counts

    def classes_per_output(self) -> np.ndarray:
        """Return the number of classes of each output, 1 for numbers."""
        if not hasattr(self, "classes_"):
            return np.ones(self.nodes_.value.shape[1], dtype=np.intp)
        outputs = self.classes_ if isinstance(self.classes_, list) else [self.classes_]
        return np.array([len(classes) for classes in outputs], dtype=np.intp)

    @property
    def max_features_(self) -> int:
        """Number of columns looked at for a split."""
        return feature_count(self, self.n_features_in_)

    @property
    def tree_(self) -> Any:
        """The tree as scikit-learn's `Tree` (arrays by node, -1 and -2 at leaves), derived from `nodes_`.

        Trees that split nominal columns, or send rows without a value down all branches, have none.
        """
        if "node_child_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no tree_: it is not fitted.")
        nodes = self.nodes_
        known = vars(self).get("_scikit_tree")
        if known is None or known[0] is not nodes.child or known[1] is not nodes.value:
            made = scikit_tree(nodes, self.n_features_in_, self.classes_per_output(), vars(self).get("leaf_rows_"))
            known = self._scikit_tree = (nodes.child, nodes.value, made)
        return known[2]

    def __getstate__(self) -> Any:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name != "_scikit_tree"}

    def stored(self) -> Any:
        """Return this fitted model as plain data, for certificates and files; trees of one output, and classifiers of
        at least two classes, only."""
        check_is_fitted(self)
        require_one_target(self)
        return super().stored()  # type: ignore[misc]

    def _values(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        own: Any = self
        nodes = self.nodes_.check(self.n_features_in_)
        return np.concatenate([mean_values(nodes, part, self.n_jobs) for part in read_columns(own, X).dense_parts()])

    def apply(self, X: Any, check_input: bool = True) -> np.ndarray:
        """Return the number of the leaf that each row reaches.

        A row whose level of a nominal column was not seen at a node ends there. Rows are always checked.
        """
        check_is_fitted(self)
        own: Any = self
        return self._ends(read_columns(own, X))

    def _ends(self, data: Read) -> np.ndarray:
        nodes, gaps = self.nodes_.check(self.n_features_in_), data.has_gaps
        if gaps and not goes_one_way(nodes):
            raise refuse(self, "rows without a value reach several leaves of this tree; fill in the values.")
        walk = mixed_leaves if gaps or np.any(nodes.table >= 0) else leaves
        ends = [walk(nodes, part, self.n_jobs)[:, 0] for part in data.dense_parts()]
        return np.concatenate(ends).astype(np.int64)

    def decision_path(self, X: Any, check_input: bool = True) -> csr_matrix:
        """Return (rows, nodes) with a 1 for every node that a row passes. Rows are always checked."""
        return ways_down(self.nodes_, self.apply(X))

    def get_depth(self) -> int:
        """Return the number of splits on the longest way down."""
        check_is_fitted(self)
        return int(self.nodes_.depths().max())

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        check_is_fitted(self)
        return int(np.count_nonzero(self.nodes_.child < 0))

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each column in the decrease of impurity by all splits."""
        check_is_fitted(self)
        return impurity_importances(self.nodes_, self.n_features_in_)

    def _words(self) -> Words:
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [c.name for c in self.columns_] if self.columns_ else [f"x{i}" for i in range(self.n_features_in_)]
        levels = {i: column.levels for i, column in enumerate(self.columns_ or ()) if column.kind == "nominal"}
        return Words([str(name) for name in names], levels, getattr(self, "classes_", None))

    def to_text(self) -> str:
        """Return the tree as indented text; the weight of the training rows of a leaf in brackets."""
        return as_text(self.nodes_, self._words())

    def to_rules(self) -> list[RuleLine]:
        """Return one rule for each leaf."""
        return as_rules(self.nodes_, self._words())

    def to_html(self) -> str:
        """Return the tree as nested lists that can be folded."""
        return as_html(self.nodes_, self._words())

    def to_svg(self) -> str:
        """Return a picture of the tree."""
        return as_svg(self.nodes_, self._words())


def require_one_target(model: Any) -> None:
    """Refuse a certificate or a file of a model that predicts several outputs, or learnt a single class."""
    classes = getattr(model, "classes_", None)
    if isinstance(classes, list) or (classes is None and model.nodes_.value.shape[1] > 1):
        raise refuse(
            model,
            "certificates and model files are about one output, this model predicts several; fit one model for each "
            "output, or keep this one by pickle.",
        )
    if classes is not None and len(classes) < 2:
        raise refuse(
            model,
            "the training rows have one class, so that there is nothing to tell apart and to certify; keep the model "
            "by pickle.",
        )


def impurity_importances(nodes: Nodes, n_columns: int) -> np.ndarray:
    """Return, for each column, the decrease of impurity by its splits, mean over trees, scaled to sum 1."""
    load = nodes.impurity * nodes.weight
    inner = np.flatnonzero(nodes.child >= 0)
    below = np.array([load[c : c + k].sum() for c, k in zip(nodes.child[inner], nodes.n_children[inner])])
    bounds = np.append(nodes.root, len(load))
    tree = np.searchsorted(bounds, inner, side="right") - 1
    drops = (load[inner] - below) / np.maximum(nodes.weight[nodes.root[tree]], 1e-300)
    pairs, place = np.unique(tree * n_columns + nodes.column[inner], return_inverse=True)
    result = np.bincount(place, drops, len(pairs))
    totals = np.bincount(pairs // n_columns, result, len(nodes.root))[pairs // n_columns]
    shares = np.where(totals > 0, result / np.where(totals > 0, totals, 1.0), 0.0)
    mean = np.bincount(pairs % n_columns, shares, n_columns) / len(nodes.root)
    return mean / mean.sum() if mean.sum() > 0 else mean
