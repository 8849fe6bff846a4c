"""Compiled scans for the suprema of threshold classes over many sign vectors."""

import numpy as np

from assay.jit import compiled


@compiled
def prefix_extremes_block(order, ends, signs, lowest, highest):
    """Update `lowest` and `highest` (draws,) by the prefix sums of each sign vector in one sorted order.

    `order` (n,) sorts the points; `ends` (n,) is True where a group of equal points ends, and only there a
    prefix counts; `signs` (draws, n) are -1 and +1. The empty prefix counts too, so start both arrays at 0
    or below/above.
    """
    draws, n = signs.shape
    for j in range(draws):
        total = 0
        low, high = lowest[j], highest[j]
        for i in range(n):
            total += signs[j, order[i]]
            if ends[i]:
                if total < low:
                    low = total
                if total > high:
                    high = total
        lowest[j], highest[j] = low, high


@compiled
def best_segment_block(order, ends, signs, best):
    """Write to `best` (draws,) the largest sum of signs over a run of groups; the empty run has 0."""
    draws, n = signs.shape
    for j in range(draws):
        total, low, largest = 0, 0, 0
        for i in range(n):
            total += signs[j, order[i]]
            if ends[i]:
                if total - low > largest:
                    largest = total - low
                if total < low:
                    low = total
        best[j] = largest


def sorted_groups(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the order that sorts the column and where in it a group of equal values ends."""
    order = np.argsort(column, kind="stable")
    ends = np.ones(len(column), dtype=np.bool_)
    ends[:-1] = column[order[1:]] != column[order[:-1]]
    return order, ends
