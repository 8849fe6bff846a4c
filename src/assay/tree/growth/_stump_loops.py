"""Compiled search for the best decision stump under weights: columns sorted once, then one scan per column
and round."""

import numpy as np

from assay.jit import compiled

GINI, ERROR = 0, 1
_BLOCK = 64  # rows summed before a bound is looked at
STUMP = np.dtype(
    [
        ("purity", np.float64),
        ("scale", np.float64),  # denominator of the purity
        ("position", np.int64),  # of the last row on the left in the order of the column; -1: none was found
        ("negative", np.float64),  # weights of class 0 and of class 1 on the left, of two classes
        ("positive", np.float64),
    ],
    align=True,
)


@compiled
def scan_column(order, last, y, weight, total, criterion, best):
    """Find the best threshold of one column; write it to `best`, a STUMP, where its purity is larger.

    order (n,) rows by ascending value; last (n,) 1 where the next value is larger; total (classes,) weights
    of the classes.
    Gini: sum c_k^2 / W of both sides; error: weight of the two majorities.
    """
    classes = total.shape[0]
    left = np.zeros(classes)
    right = total.copy()
    for i in range(order.shape[0] - 1):
        row = order[i]
        w = weight[row]
        left[y[row]] += w
        right[y[row]] -= w
        if not last[i]:
            continue
        a, b, purity = 0.0, 0.0, 0.0
        if criterion == GINI:
            squares_left, squares_right = 0.0, 0.0
            for k in range(classes):
                a += left[k]
                b += right[k]
                squares_left += left[k] * left[k]
                squares_right += right[k] * right[k]
            if a <= 0 or b <= 0:
                continue
            purity = squares_left / a + squares_right / b
        else:
            for k in range(classes):
                a, b = max(a, left[k]), max(b, right[k])
            purity = a + b
        if purity > best.purity:
            best.purity, best.position = purity, i


@compiled
def _fraction(negative, positive, total, criterion):
    """Return numerator and denominator of a number that grows with the purity of a threshold.

    Gini, with l = negative + positive of W on the left: (positive W - l total_1)^2 / (l (W - l)), which is
    W / 2 times the decrease of impurity. Both purities are convex in (negative, positive).
    """
    if criterion == GINI:
        left, whole = negative + positive, total[0] + total[1]
        gap = positive * whole - left * total[1]
        return gap * gap, left * (whole - left)
    return max(negative, positive) + max(total[0] - negative, total[1] - positive), 1.0


@compiled
def scan_two_classes(order, last, signed, total, criterion, best):
    """The same for two classes; signed (n,) is the weight, negative for class 0; total (2,). The purity and
    its scale are numerator and denominator of `_fraction`.

    Rows are summed by blocks. A convex function is largest at a corner, so that no threshold inside a block is better
    than the corners of the box between the sums before and after it; thresholds are tried where that is not enough.
    """
    n = np.uint64(order.shape[0] - 1)
    negative, positive = 0.0, 0.0
    for begin in range(np.uint64(0), n, np.uint64(_BLOCK)):
        end = min(begin + np.uint64(_BLOCK), n)
        up, down = _sums(order, signed, begin, end)
        more, most = negative + down, positive + up
        a, b = _fraction(negative, most, total, criterion)
        c, d = _fraction(more, positive, total, criterion)
        e, f = _fraction(more, most, total, criterion)
        under, top = best.scale * (1 + 1e-9), best.purity
        if a * under >= top * b or c * under >= top * d or e * under >= top * f:
            _try(order, last, signed, total, criterion, begin, end, negative, positive, best)
        negative, positive = more, most


@compiled(reduction=True)
def _sums(order, signed, begin, end):
    """Return the weights of class 1 and of class 0 among some rows."""
    difference, whole = 0.0, 0.0
    for i in range(begin, end):
        s = signed[np.uint64(order[i])]
        difference += s
        whole += abs(s)
    return (whole + difference) / 2, (whole - difference) / 2


@compiled
def _try(order, last, signed, total, criterion, begin, end, negative, positive, best):
    """Try every threshold of a block; weights before it are given."""
    for i in range(begin, end):
        s = signed[np.uint64(order[i])]
        negative += max(-s, 0.0)
        positive += max(s, 0.0)
        if not last[i]:
            continue
        purity, scale = _fraction(negative, positive, total, criterion)
        if scale > 0 and purity * best.scale > best.purity * scale:
            best.purity, best.scale, best.position = purity, scale, i
            best.negative, best.positive = negative, positive


@compiled
def peaks(order, last, signed, whole, edges, places):
    """Find the threshold with the largest edge in each of `edges.size` stretches of one column.

    The edge is the sum of `signed` to the right of the threshold less that to the left; it keeps its sign. A stretch
    without a threshold keeps its place.
    """
    n, parts = order.shape[0], edges.shape[0]
    left = 0.0
    for part in range(parts):
        for i in range(part * n // parts, (part + 1) * n // parts):
            left += signed[order[i]]
            if last[i] and (places[part] < 0 or abs(whole - 2 * left) > abs(edges[part])):
                edges[part], places[part] = whole - 2 * left, i


@compiled(reduction=True)
def mark_right(left, y, left_class, right_class, weight, right):
    """Write to `right` (n,) whether each label y is the class of its side; return the weight of those that are not.

    `left` lists the rows of the left side.
    """
    for i in range(y.shape[0]):
        right[i] = y[i] == right_class
    for i in range(left.shape[0]):
        row = np.uint64(left[i])
        right[row] = y[row] == left_class
    error = 0.0
    for i in range(y.shape[0]):
        error += 0.0 if right[i] else weight[i]
    return error


@compiled(reduction=True)
def sign_weights(y, weight, signed, total):
    """Write the weight, negative for class 0, to `signed`, and the weights of the two classes to `total`."""
    zero, one = 0.0, 0.0
    for i in range(y.shape[0]):
        signed[i] = weight[i] if y[i] == 1 else -weight[i]
    for i in range(y.shape[0]):  # by itself: see `loops.logistic.loss_stretch`
        zero += 0.0 if y[i] == 1 else weight[i]
        one += weight[i] if y[i] == 1 else 0.0
    total[0], total[1] = zero, one


@compiled(reduction=True)
def stretch(right, alpha, weight, score, stretched):
    """Write weight * exp(-alpha s) with s = 1 where right and -1 elsewhere; return its sum. Add alpha s to `score`."""
    down, up, whole = np.exp(-alpha), np.exp(alpha), 0.0
    for i in range(right.shape[0]):
        stretched[i] = weight[i] * (down if right[i] else up)
        score[i] += alpha if right[i] else -alpha
    for i in range(right.shape[0]):  # by itself: see `loops.logistic.loss_stretch`
        whole += stretched[i]
    return whole
