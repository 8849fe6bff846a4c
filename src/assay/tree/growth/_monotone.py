"""Compiled checks of trees whose values rise (sign 1) or fall (sign -1) with some columns.

    allowed     a split on such a column whose children's values lie within the node's bounds, in the order of the sign
    children    the middle of the two values parts the bounds of everything below them
    other splits  hand the bounds on; a value outside the bounds of its node is moved to the nearer one

The value is the mean, or the share of class 1. Since the middle lies between the bounds of its node, any two leaves
that a split on such a column parts have values on the right sides of it.
"""

from assay.jit import compiled


@compiled
def value_of(sums, classes):
    """Return the share of class 1 from class weights (2,), or the mean from weight and sum (2,)."""
    return sums[1] / (sums[0] + sums[1]) if classes > 0 else sums[1] / sums[0]


@compiled
def allowed(left, right, sign, low, high):
    """Tell whether two children's values lie between low and high, in the order of the sign."""
    return min(left, right) >= low and max(left, right) <= high and (left - right) * sign <= 0


@compiled
def narrow(bounds, node, child, sign, middle):
    """Write the bounds (nodes, 2) of the two children of a node."""
    bounds[child] = bounds[node]
    bounds[child + 1] = bounds[node]
    if sign > 0:
        bounds[child, 1] = middle
        bounds[child + 1, 0] = middle
    elif sign < 0:
        bounds[child, 0] = middle
        bounds[child + 1, 1] = middle
