"""How good each column is as the first split: the numbers that ID3, C4.5 and CART compare."""

from typing import Any, NamedTuple

import numpy as np

from assay.tree._reading import nominal_levels
from assay.tree._trees import DecisionTreeClassifier
from assay.tree.growth._nominal import Method, column_splits, impurity


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
