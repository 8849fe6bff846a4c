"""What the parameters of boosting on histograms say about columns: which are categories, which may interact, which the
score must rise or fall with."""

from itertools import combinations
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_categorical_features, _check_monotonic_cst

from assay.base import streams
from assay.params import refuse
from assay.tree._reading import _has_types, nominal_levels


def as_asked(learner: Any, X: Any, *, fitting: bool = False) -> Any:
    """Return X with the columns that `categorical_features` names marked as such, where X is a frame that has types;
    when fitting, the positions of those of an array, or of a frame of numbers, are kept in the learner."""
    asked = learner.categorical_features
    if fitting:
        learner._categories_at = None
    if streams(X):
        if fitting and asked is not None and not isinstance(asked, str):
            raise refuse(learner, "categories of rows that are streamed are not known; encode them.")
        return X
    typed = _has_types(X) and hasattr(X, "astype")
    if isinstance(asked, str) or not (typed or fitting):
        return X
    if asked is None:
        return X.astype(np.float64) if typed else X
    X = X if hasattr(X, "shape") else np.asarray(X)
    marked = _check_categorical_features(X, asked) if len(X.shape) == 2 else None
    if marked is None:
        return X
    if typed:
        return X.astype(dict.fromkeys(np.asarray(X.columns)[marked], "category"))
    learner._categories_at = np.flatnonzero(marked)
    return X


def check_levels(learner: Any) -> dict[int, int]:
    """Return the number of categories of each column that has them; refuse more than there are bins."""
    levels = nominal_levels(learner)
    for position, count in levels.items():
        if count > learner.max_bins:
            names = getattr(learner, "feature_names_in_", None)
            name = f"at index {position}" if names is None else repr(names[position])
            raise refuse(
                learner,
                f"Categorical feature {name} is expected to have a cardinality <= {learner.max_bins} but actually has "
                f"a cardinality of {count}. Join rare categories, or raise max_bins (at most 255).",
            )
    return levels


def signs_of(learner: Any, levels: dict[int, int], n_outputs: int) -> np.ndarray:
    """Return `monotonic_cst` as -1, 0, 1 for each column."""
    signs = _check_monotonic_cst(learner, learner.monotonic_cst).astype(np.int64)
    if learner.monotonic_cst is not None and n_outputs > 1:
        raise refuse(
            learner,
            "monotonic constraints are not supported for multiclass classification: the score of one class cannot rise "
            "without the probability of another.",
        )
    if any(signs[position] for position in levels):
        raise refuse(learner, "Categorical features cannot have monotonic constraints: their values have no order.")
    return signs


def groups_of(learner: Any, d: int) -> list[set[int]] | None:
    """Return the groups of columns that may interact; columns that no group names are one more."""
    asked = learner.interaction_cst
    if asked is None:
        return None
    if isinstance(asked, str):
        asked = [{i} for i in range(d)] if asked == "no_interactions" else combinations(range(d), 2)
    try:
        groups = [set(group) for group in asked]
    except TypeError:
        raise refuse(
            learner,
            "Interaction constraints must be a sequence of tuples or lists of column positions; got "
            f"{learner.interaction_cst!r}.",
        ) from None
    for group in groups:
        if not all(isinstance(i, Integral) and 0 <= int(i) < d for i in group):
            raise refuse(
                learner,
                f"Interaction constraints must consist of integer indices in [0, n_features - 1] = [0, {d - 1}], "
                f"specifying the position of features, got invalid indices: {group!r}.",
            )
    rest = set(range(d)).difference(*groups)
    return groups + ([rest] if rest else [])
