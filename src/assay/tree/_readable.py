"""What a fitted tree says: leaves, ways down, importances, scikit-learn's `tree_`, words and pictures."""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from assay.params import refuse
from assay.tree import _export
from assay.tree._limits import feature_count
from assay.tree._nodes import Nodes
from assay.tree._predict import goes_one_way, leaves, mean_values, mixed_leaves
from assay.tree._reading import Read, read_columns


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
            made = _export.scikit_tree(
                nodes, self.n_features_in_, self.classes_per_output(), vars(self).get("leaf_rows_")
            )
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
        return _export.ways_down(self.nodes_, self.apply(X))

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

    def _words(self) -> _export.Words:
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [c.name for c in self.columns_] if self.columns_ else [f"x{i}" for i in range(self.n_features_in_)]
        levels = {i: column.levels for i, column in enumerate(self.columns_ or ()) if column.kind == "nominal"}
        return _export.Words([str(name) for name in names], levels, getattr(self, "classes_", None))

    def to_text(self) -> str:
        """Return the tree as indented text; the weight of the training rows of a leaf in brackets."""
        return _export.as_text(self.nodes_, self._words())

    def to_rules(self) -> list[_export.RuleLine]:
        """Return one rule for each leaf."""
        return _export.as_rules(self.nodes_, self._words())

    def to_html(self) -> str:
        """Return the tree as nested lists that can be folded."""
        return _export.as_html(self.nodes_, self._words())

    def to_svg(self) -> str:
        """Return a picture of the tree."""
        return _export.as_svg(self.nodes_, self._words())


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
    found = np.bincount(place, drops, len(pairs))
    totals = np.bincount(pairs // n_columns, found, len(nodes.root))[pairs // n_columns]
    shares = np.where(totals > 0, found / np.where(totals > 0, totals, 1.0), 0.0)
    mean = np.bincount(pairs % n_columns, shares, n_columns) / len(nodes.root)
    return mean / mean.sum() if mean.sum() > 0 else mean
