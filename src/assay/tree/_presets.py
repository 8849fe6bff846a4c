"""Quinlan's and Breiman's trees: the parameters that make a decision tree theirs, and the scores that they compare."""

from typing import Any, NamedTuple

import numpy as np

from assay.tree._classes import DecisionTreeClassifier
from assay.tree._reading import nominal_levels
from assay.tree.growth._nominal import Method, column_splits, impurity


class ID3(DecisionTreeClassifier):
    """Quinlan's ID3: information gain, a branch for each level of a nominal column, no pruning.

    >>> from assay.tree import ID3
    >>> import pandas as pd
    >>> print(ID3().fit(pd.DataFrame({"sky": ["clear", "cloud", "clear"]}), [1, 0, 1]).to_text())
    sky = clear: 1 (2)
    sky = cloud: 0 (1)
    """

    def __init__(
        self,
        *,
        max_depth: int | None = None,
        min_samples_split: Any = 2,
        min_samples_leaf: Any = 1,
        pruning: str | None = None,
        validation_fraction: float = 0.3,
        prune_ties: bool = False,
        missing: str = "fractional",
        nominal: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            criterion="gain",
            split="multiway",
            missing=missing,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            pruning=pruning,
            validation_fraction=validation_fraction,
            prune_ties=prune_ties,
            nominal=nominal,
            random_state=random_state,
            n_jobs=n_jobs,
        )


class C45(DecisionTreeClassifier):
    """Quinlan's C4.5: gain ratio among columns of at least average gain, fractional missing values,
    pessimistic pruning.

    `min_samples_leaf` is the weight that at least two branches must have (2 in C4.5).

    >>> from assay.tree import C45
    >>> model = C45().fit([[1.0], [2.0], [3.0], [4.0], [None]], ["no", "no", "yes", "yes", "yes"])
    >>> model.predict([[0.0], [9.0]])
    array(['no', 'yes'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        max_depth: int | None = None,
        min_samples_split: Any = 2,
        min_samples_leaf: Any = 2,
        pruning: str | None = "pessimistic",
        confidence: float = 0.25,
        validation_fraction: float = 0.3,
        prune_ties: bool = False,
        nominal: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            criterion="gain_ratio",
            split="multiway",
            missing="fractional",
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            pruning=pruning,
            confidence=confidence,
            validation_fraction=validation_fraction,
            prune_ties=prune_ties,
            nominal=nominal,
            random_state=random_state,
            n_jobs=n_jobs,
        )


class CART(DecisionTreeClassifier):
    """Breiman's CART: Gini, two branches, cost-complexity pruning with alpha chosen by cross-validation.

    >>> from sklearn.datasets import load_iris
    >>> from assay.tree import CART
    >>> CART().fit(*load_iris(return_X_y=True)).get_n_leaves()
    5
    """

    def __init__(
        self,
        *,
        max_depth: int | None = None,
        min_samples_split: Any = 2,
        min_samples_leaf: Any = 1,
        pruning: str | None = "cost_complexity",
        missing: str = "direction",
        nominal: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            criterion="gini",
            split="binary",
            missing=missing,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            pruning=pruning,
            nominal=nominal,
            random_state=random_state,
            n_jobs=n_jobs,
        )


class ColumnScore(NamedTuple):
    """Gain and intrinsic value in bits, gain ratio, Gini index, and the threshold of a numeric column (None
    if nominal)."""

    gain: float
    intrinsic_value: float
    gain_ratio: float
    gini_index: float
    threshold: float | None


def column_scores(X: Any, y: Any, *, nominal: Any = None) -> list[ColumnScore | None]:
    """Return the score of each column as a split of all rows, None for a column with one value.

    gain = rho (Ent - sum r_v Ent_v), intrinsic value = -sum r_v log2 r_v, Gini index = sum r_v Gini_v, over
    the rows whose value is
    known (a share rho of all); a nominal column has a branch for each level, a numeric one two.

    >>> column_scores([[1.0], [2.0], [3.0], [4.0]], ["a", "a", "b", "b"])[0]
    ColumnScore(gain=1.0, intrinsic_value=1.0, gain_ratio=1.0, gini_index=0.0, threshold=2.5)
    """
    reader = DecisionTreeClassifier(nominal=nominal)
    data, counts_of_outputs = reader._read(X, y, None)
    n_classes = int(counts_of_outputs[0])
    levels = nominal_levels(reader)
    method = Method("gain", "multiway", "fractional", levels, n_classes, 1, 2, 0, 0.0)
    found: list[ColumnScore | None] = []
    rows = data.dense("column_scores")
    for f, split in enumerate(column_splits(rows, data.y, np.ones(len(data.y)), method)):
        if split is None:
            found.append(None)
            continue
        x = rows[:, f]
        known = ~np.isnan(x)
        branch = x[known].astype(int) if split.threshold is None else (x[known] > split.threshold).astype(int)
        counts = np.zeros((levels.get(f, 2), n_classes))
        np.add.at(counts, (branch, data.y[known]), 1)
        shares = counts.sum(axis=1) / known.sum()
        iv = float(-(shares[shares > 0] * np.log2(shares[shares > 0])).sum())
        gini = float((shares * impurity(counts, "gini")).sum())
        found.append(ColumnScore(split.gain, iv, split.ratio, gini, split.threshold))
    return found
