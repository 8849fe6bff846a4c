"""Two partitions of the same rows, compared by pairs of rows."""

import math
from typing import NamedTuple

from numpy.typing import ArrayLike
from sklearn.metrics.cluster import pair_confusion_matrix


class PairCounts(NamedTuple):
    """Pairs of rows that are together in both partitions, in the first alone, in the second alone, in neither."""

    both: int
    first: int
    second: int
    neither: int


def pair_counts(first: ArrayLike, second: ArrayLike) -> PairCounts:
    """Return how many of the n (n - 1) / 2 pairs of rows are together in which partition; labels are only names.

    >>> pair_counts([0, 0, 1, 1], [0, 0, 0, 1])
    PairCounts(both=1, first=1, second=2, neither=2)
    """
    (neither, second_alone), (first_alone, both) = (pair_confusion_matrix(first, second) // 2).tolist()
    return PairCounts(both, first_alone, second_alone, neither)


def jaccard(first: ArrayLike, second: ArrayLike) -> float:
    """Return the Jaccard coefficient a / (a + b + c): of the pairs together in one partition, the share together in
    both.

    It is 1 for equal partitions, also when no two rows are together in either.

    >>> jaccard([0, 0, 1, 1], ["x", "x", "x", "y"])
    0.25
    """
    counts = pair_counts(first, second)
    together = counts.both + counts.first + counts.second
    return counts.both / together if together else 1.0


def fowlkes_mallows(first: ArrayLike, second: ArrayLike) -> float:
    """Return the Fowlkes-Mallows index sqrt(a / (a + b) * a / (a + c)); 0 when no pair is together in both.

    >>> round(fowlkes_mallows([0, 0, 1, 1], [0, 0, 0, 1]), 6)
    0.408248
    """
    a, b, c, _ = pair_counts(first, second)
    return math.sqrt(a / (a + b) * (a / (a + c))) if a else 0.0


def rand_index(first: ArrayLike, second: ArrayLike) -> float:
    """Return the Rand index 2 (a + d) / (n (n - 1)), the share of pairs on which the partitions agree; 1 for one row.

    >>> rand_index([0, 0, 1, 1], [0, 0, 0, 1])
    0.5
    """
    counts = pair_counts(first, second)
    return (counts.both + counts.neither) / sum(counts) if sum(counts) else 1.0
