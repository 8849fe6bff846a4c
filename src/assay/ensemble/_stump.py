"""Compiled search for the best decision stump under weights: columns sorted once, then one scan per column
and round."""

import numpy as np

from assay.jit import compiled

GINI, ERROR = 0, 1


@compiled
def scan_column(order, last, y, weight, total, criterion, best):
    """Find the best border of one column; write merit, position to `best` (2,) where the merit is larger.

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
        a, b, merit = 0.0, 0.0, 0.0
        if criterion == GINI:
            squares_left, squares_right = 0.0, 0.0
            for k in range(classes):
                a += left[k]
                b += right[k]
                squares_left += left[k] * left[k]
                squares_right += right[k] * right[k]
            if a <= 0 or b <= 0:
                continue
            merit = squares_left / a + squares_right / b
        else:
            for k in range(classes):
                a, b = max(a, left[k]), max(b, right[k])
            merit = a + b
        if merit > best[0]:
            best[0], best[1] = merit, i


@compiled
def scan_two_classes(order, last, signed, total, criterion, best):
    """The same for two classes; signed (n,) is the weight, negative for class 0; total (2,).

    Merits are compared as fractions, which saves a division for each border.
    """
    negative, positive, whole = 0.0, 0.0, total[0] + total[1]
    top, under, at = best[0], 1.0, -1
    for i in range(order.shape[0] - 1):
        s = signed[order[i]]
        negative += max(-s, 0.0)
        positive += max(s, 0.0)
        a = negative + positive
        b = whole - a
        other_negative, other_positive = total[0] - negative, total[1] - positive
        if criterion == GINI:
            merit = (negative * negative + positive * positive) * b
            merit += (other_negative * other_negative + other_positive * other_positive) * a
            scale = a * b
        else:
            merit = max(negative, positive) + max(other_negative, other_positive)
            scale = 1.0
        if last[i] and scale > 0 and merit * under > top * scale:
            top, under, at = merit, scale, i
    if at >= 0:
        best[0], best[1] = top / under, at
