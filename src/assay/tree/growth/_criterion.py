"""Compiled criteria of splits: impurities of nodes, for one output and as means over several.

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


@compiled
def add_up(rows, y, weight, classes, criterion, node, total):
    """Write the sums of a node's rows to `total`, their weighted squares to the node; tell whether the targets differ.

    y (n,) of all rows; weight (n,), or empty where all weigh 1.
    """
    first, differ, squares = y[rows[0]], False, 0.0
    total[:] = 0.0
    for i in range(rows.shape[0]):
        r = rows[i]
        w = weight[r] if weight.size else 1.0
        differ |= y[r] != first
        if classes > 0:
            total[np.int64(y[r])] += w
        else:
            total[0] += w
            total[1] += w * y[r]
            squares += spread_of(y[r], w, criterion)
    node.squares = squares
    return differ


# Several outputs: sums are the weight, then the weights of the classes of each output, or its weighted sum
# ----------------------------------------------------------------------------------------------------------------------


@compiled
def mean_purity(sums, outputs, criterion):
    """Return the purity of the sums of some rows, mean over outputs."""
    weight, out = sums[0], 0.0
    if criterion == ENTROPY:
        for k in range(1, sums.shape[0]):
            if sums[k] > 0:
                out += sums[k] * log(sums[k])
        return (out - outputs * weight * log(weight)) / log(2.0) / outputs
    if criterion == POISSON:
        for k in range(1, sums.shape[0]):
            out += sums[k] * log(sums[k] / weight) if sums[k] > 0 else 0.0
        return out / outputs
    for k in range(1, sums.shape[0]):
        out += sums[k] * sums[k]
    return out / weight / outputs


@compiled
def mean_children_purity(left, right, total, outputs, criterion):
    """Return the purity of two children of a node with these sums together."""
    if criterion == FRIEDMAN:
        gap = 0.0
        for k in range(1, left.shape[0]):
            gap += left[k] / left[0] - right[k] / right[0]
        gap /= left.shape[0] - 1
        return left[0] * right[0] / (left[0] + right[0]) * gap * gap
    if criterion == POISSON:
        for k in range(1, left.shape[0]):
            if total[k] > 0 and min(left[k], right[k]) <= POSITIVE * total[k]:
                return -np.inf
    return mean_purity(left, outputs, criterion) + mean_purity(right, outputs, criterion)
