"""Compiled criteria of splits.

A criterion is written as a purity: minus the impurity times the weight of a node, up to a term that no split of it
changes. The purity of both children less that of the node is the decrease of impurity times weight.

    Gini     sum c_k^2 / W                     entropy (bits)   sum c_k log2 c_k - W log2 W
    squares  s^2 / W                           Poisson          s ln(s / W)
    Friedman W_l W_r / (W_l + W_r) (mean_l - mean_r)^2, a decrease by itself
"""

from math import log

import numpy as np

from assay.jit import compiled
from assay.tree.growth._records import ENTROPY, FRIEDMAN, GINI, POISSON, SQUARED

POSITIVE = 1e-11  # share of a node's sum that a child must have under Poisson's criterion: less may be rounding alone


@compiled
def purity_of(sums, criterion, classes):
    """Return the purity of weights of classes (classes,), or of weight and weighted sum (2,)."""
    if criterion == GINI:
        total, squares = 0.0, 0.0
        for k in range(classes):
            total += sums[k]
            squares += sums[k] * sums[k]
        return squares / total
    if criterion == ENTROPY:
        total, purity = 0.0, 0.0
        for k in range(classes):
            if sums[k] > 0:
                total += sums[k]
                purity += sums[k] * log(sums[k])
        return (purity - total * log(total)) / log(2.0)
    if criterion == POISSON:
        return sums[1] * log(sums[1] / sums[0]) if sums[1] > 0 else 0.0
    return sums[1] * sums[1] / sums[0]


@compiled
def spread_of(y, w, criterion):
    """Return what a row adds to the impurity times weight of its node beside minus the purity."""
    if criterion == POISSON:
        return w * y * log(y) if y > 0 else 0.0
    return w * y * y


@compiled
def node_purity(sums, criterion, classes):
    """Return the purity of a node; under Friedman's criterion that of squared errors, which it improves on."""
    return purity_of(sums, SQUARED if criterion == FRIEDMAN else criterion, classes)


@compiled
def children_purity(left, right, criterion, classes):
    """Return the purity of two children together; minus infinity if one would predict 0 under Poisson's criterion."""
    if criterion == FRIEDMAN:
        gap = left[1] / left[0] - right[1] / right[0]
        return left[0] * right[0] / (left[0] + right[0]) * gap * gap
    if criterion == POISSON and min(left[1], right[1]) <= POSITIVE * (left[1] + right[1]):
        return -np.inf
    return purity_of(left, criterion, classes) + purity_of(right, criterion, classes)


@compiled
def decrease(children, node, criterion):
    """Return the decrease of impurity times weight, from the purities of the children and of the node."""
    return children - (0.0 if criterion == FRIEDMAN else node)
