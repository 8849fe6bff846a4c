"""The trees of a forest as learners of their own, and where rows end in them."""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from assay.ensemble._members import Indexed
from assay.ensemble._voting import Members
from assay.params import refuse
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor
from assay.tree._nodes import tree_at
from assay.tree._predict import goes_one_way, leaves, mixed_leaves
from assay.tree._reading import Read, read_columns
from assay.tree._scikit_tree import ways_down

_SHARED = (
    "criterion", "max_depth", "min_samples_split", "min_samples_leaf", "min_weight_fraction_leaf", "max_features",
    "max_leaf_nodes", "min_impurity_decrease", "ccp_alpha", "monotonic_cst", "nominal",
)  # fmt: skip


class TreeMembers(Indexed, Members):
    """Mixin of forests: the arrays of all trees are the model, and its members are made of them when asked for."""

    extra: bool
    n_jobs: int | None

    @property
    def _n_members(self) -> int:
        return len(self.tree_root_)

    @property
    def estimator(self) -> Any:
        """What the members are before they are fitted."""
        kind = DecisionTreeClassifier if is_classifier(self) else DecisionTreeRegressor
        return kind(splitter="random" if self.extra else "best")

    @property
    def estimator_(self) -> Any:
        """What the members are before they are fitted."""
        check_is_fitted(self)
        return self.estimator

    @property
    def estimator_params(self) -> tuple[str, ...]:
        """The parameters that the members share with the forest."""
        return _SHARED

    @property
    def estimators_(self) -> list[Any]:
        """The trees; they are made of the arrays of the model once, and again after a new fit."""
        check_is_fitted(self)
        known = vars(self).get("_made")
        if known is None or known[0] is not self.node_child_ or known[1] is not self.node_value_:
            nodes = self.nodes_
            given = {name: getattr(self, name) for name in _SHARED}
            seeds = getattr(self, "seeds_", np.full(len(nodes.root), -1)).tolist()
            trees = [
                self.estimator.set_params(**given, random_state=None if seed < 0 else seed, n_jobs=1).restored(
                    tree_at(nodes, t), self, self.n_features_in_
                )
                for t, seed in enumerate(seeds)
            ]
            known = self._made = (self.node_child_, self.node_value_, trees)
        return known[2]

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()  # type: ignore[misc]
        return {name: value for name, value in state.items() if name != "_made"}

    @property
    def n_outputs_(self) -> int:
        """Number of targets."""
        check_is_fitted(self)
        classes = getattr(self, "classes_", None)
        if classes is None:
            return int(self.node_value_.shape[1])
        return len(classes) if isinstance(classes, list) else 1

    def _ends(self, data: Read) -> np.ndarray:
        """Return the node of each tree, by its number in that tree, where each row ends (rows, trees)."""
        nodes = self.nodes_.check(self.n_features_in_)
        gaps = data.has_gaps
        if gaps and not goes_one_way(nodes):
            raise refuse(self, "rows without a value reach several leaves of these trees; fill in the values.")
        walk = mixed_leaves if gaps or np.any(nodes.table >= 0) else leaves
        ends = [walk(nodes, part, self.n_jobs) for part in data.dense_parts()]
        return np.concatenate(ends).astype(np.int64) - nodes.root

    def apply(self, X: Any) -> np.ndarray:
        """Return the number of the leaf that each row reaches in each tree (rows, trees)."""
        check_is_fitted(self)
        return self._ends(read_columns(self, X))  # type: ignore[arg-type]

    def decision_path(self, X: Any) -> tuple[csr_matrix, np.ndarray]:
        """Return (rows, nodes of all trees) with a 1 for every node that a row passes, and where each tree begins."""
        ends, nodes = self.apply(X), self.nodes_
        parts = [ways_down(tree_at(nodes, t), ends[:, t]) for t in range(ends.shape[1])]
        return hstack(parts).tocsr(), np.cumsum([0, *(part.shape[1] for part in parts)])
