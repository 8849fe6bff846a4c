"""Compiled walk down trees that send rows without a value, or with a level, down one branch."""

import numpy as np

from assay.jit import compiled


@compiled
def walk_mixed(X, column, threshold, table, tables, child, missing, roots, out):
    """Write where each row of X ends in each tree, (rows, trees): a leaf, or the node that does not know its level."""
    for t in range(roots.shape[0]):
        for i in range(X.shape[0]):
            at = roots[t]
            while child[at] >= 0:
                x = X[i, column[at]]
                if np.isnan(x):
                    branch = missing[at]
                elif table[at] < 0:
                    branch = 0 if x <= threshold[at] else 1
                elif x < 0 or x >= tables.shape[1]:
                    break
                else:
                    branch = tables[table[at], np.int64(x)]
                    if branch < 0:
                        break
                at = child[at] + branch
            out[i, t] = at
