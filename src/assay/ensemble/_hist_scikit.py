"""The trees of histogram boosting as scikit-learn's predictors, which tools that read these understand."""

from typing import Any

import numpy as np
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE, X_BITSET_INNER_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

from assay.tree._nodes import Nodes, tree_at

_NO_SETS = np.zeros((0, 8), dtype=X_BITSET_INNER_DTYPE)


def predictors(nodes: Nodes, outputs: int) -> list[list[TreePredictor]]:
    """Return the trees round by round, of thresholds alone."""
    if np.any(nodes.table >= 0):
        raise ValueError("a split on levels has no form there")
    made = [_predictor(tree_at(nodes, t)) for t in range(len(nodes.root))]
    return [made[first : first + outputs] for first in range(0, len(made), outputs)]


def _predictor(tree: Nodes) -> TreePredictor:
    records = np.zeros(len(tree.child), dtype=PREDICTOR_RECORD_DTYPE)
    inner = tree.child >= 0
    records["value"], records["count"] = tree.value[:, 0], np.rint(tree.weight)
    records["is_leaf"], records["depth"] = ~inner, tree.depths()
    first = np.where(inner, tree.child, 0)
    records["left"], records["right"] = first, np.where(inner, first + 1, 0)
    records["feature_idx"] = np.where(inner, tree.column, 0)
    records["num_threshold"] = np.where(inner, tree.threshold, 0.0)
    records["missing_go_to_left"] = inner & (tree.missing == 0)
    return TreePredictor(records, _NO_SETS, _NO_SETS)


def numbers_only(columns: int) -> Any:
    """Return a mapper of that many columns without categories; scikit-learn asks it for these when it predicts."""
    mapper = _BinMapper()
    mapper.is_categorical_ = np.zeros(columns, dtype=np.uint8)
    mapper.bin_thresholds_ = [np.empty(0)] * columns
    return mapper
