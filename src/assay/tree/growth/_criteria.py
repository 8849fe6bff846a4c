"""Compiled criteria of splits.

A criterion is written as a purity: minus the impurity times the weight of a node, up to a term that no split of it
changes. The purity of both children less that of the node is the decrease of impurity times weight. Of several outputs
it is the mean.

    Gini     sum c_k^2 / W                     entropy (bits)   sum c_k log2 c_k - W log2 W
    squares  s^2 / W                           Poisson          s ln(s / W)
    Friedman W_l W_r / (W_l + W_r) (mean_l - mean_r)^2, a decrease by itself

Sums of some rows are their weight, then the weights of the classes of each output, or its weighted sum.
"""

from math import log

import numpy as np

from assay.jit import compiled
from assay.tree.growth._records import ENTROPY, FRIEDMAN, POISSON

_POSITIVE = 1e-11  # share of a node's sum that a child must have under Poisson's criterion: less may be rounding alone


@compiled
def mean_purity(sums, outputs, criterion):
    """Return the purity of some rows; under Friedman's criterion that of squared errors, which it improves on."""
    weight, out = sums[0], 0.0
    if criterion == ENTROPY:
        for k in range(1, sums.shape[0]):
            if sums[k] > 0:
                out += sums[k] * log(sums[k])
        out = (out - outputs * weight * log(weight)) / log(2.0)
    elif criterion == POISSON:
        for k in range(1, sums.shape[0]):
            out += sums[k] * log(sums[k] / weight) if sums[k] > 0 else 0.0
    else:
        for k in range(1, sums.shape[0]):
            out += sums[k] * sums[k]
        out /= weight
    return out / outputs if outputs > 1 else out


@compiled
def children_purity(left, right, total, outputs, criterion):
    """Return the purity of two children of a node with these sums together; minus infinity if one would predict 0
    under Poisson's criterion."""
    if criterion == FRIEDMAN:
        gap = 0.0
        for k in range(1, left.shape[0]):
            gap += left[k] / left[0] - right[k] / right[0]
        gap /= left.shape[0] - 1
        return left[0] * right[0] / (left[0] + right[0]) * gap * gap
    if criterion == POISSON:
        for k in range(1, left.shape[0]):
            if total[k] > 0 and min(left[k], right[k]) <= _POSITIVE * total[k]:
                return -np.inf
    return mean_purity(left, outputs, criterion) + mean_purity(right, outputs, criterion)


@compiled
def spread_of(y, w, criterion):
    """Return what a row adds to the impurity times weight of its node beside minus the purity."""
    if criterion == POISSON:
        return w * y * log(y) if y > 0 else 0.0
    return w * y * y
