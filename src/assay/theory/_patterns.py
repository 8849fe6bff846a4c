"""Labellings of points as bit masks (bit i set: point i is +1), and exact searches over simple rules."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

_MOST_MASKS = 2_000_000

Rule = Callable[[np.ndarray], np.ndarray]  # from rows to labels -1 and +1


def points(values: ArrayLike, d: int, who: str) -> np.ndarray:
    """Return the points as an (m, d) array of finite floats; a flat list means points of the line."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 1 and d == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != d or array.shape[0] == 0:
        raise ValueError(f"{who}: points must have shape (m, {d}) with m >= 1; got shape {array.shape}.")
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array).all(axis=1)))
        raise ValueError(f"{who}: points must be finite numbers; row {row} is {array[row]!r}.")
    return array + 0.0  # -0.0 and 0.0 are one point


def signs(labels: ArrayLike, m: int) -> np.ndarray:
    """Return the labels as an integer array of m values, each -1 or +1."""
    array = np.asarray(labels)
    if array.shape != (m,) or not np.isin(array, (-1, 1)).all():
        raise ValueError(f"labels must be {m} values, each -1 or +1; got shape {array.shape}, {array[:10]!r}.")
    return array.astype(np.int64)


def weights(values: ArrayLike | None, m: int) -> np.ndarray:
    """Return m non-negative weights, all 1 if none are given."""
    array = np.ones(m) if values is None else np.asarray(values, dtype=np.float64)
    if array.shape != (m,) or not np.all(np.isfinite(array) & (array >= 0.0)):
        raise ValueError(f"sample_weight must be {m} finite numbers >= 0; got shape {array.shape}.")
    return array


def pack(labels: np.ndarray) -> int:
    """Return the bit mask of a row of labels."""
    return sum(1 << i for i, label in enumerate(labels) if label > 0)


def unpack(masks: Iterable[int], m: int) -> np.ndarray:
    """Return the labellings behind the masks as sorted rows of -1 and +1."""
    rows = [[1 if mask >> i & 1 else -1 for i in range(m)] for mask in masks]
    return np.array(sorted(rows), dtype=np.int8).reshape(len(rows), m)


def score(mask: int, gain: np.ndarray) -> float:
    """Return the sum of gain over +1 points minus the sum over -1 points."""
    return float(sum(g if mask >> i & 1 else -g for i, g in enumerate(gain)))


def with_complements(masks: Iterable[int], m: int) -> set[int]:
    """Return the masks and their complements."""
    full = (1 << m) - 1
    return {flipped for mask in masks for flipped in (mask, full - mask)}


def _levels(column: np.ndarray) -> list[int]:
    """Return, for each distinct value in rising order, the mask of the points that have it."""
    _, level = np.unique(column, return_inverse=True)
    masks = [0] * (int(level.max()) + 1)
    for i, at in enumerate(level):
        masks[at] |= 1 << i
    return masks


def suffixes(column: np.ndarray) -> list[int]:
    """Return the masks of {x > t} for all t."""
    return [0, *itertools.accumulate(reversed(_levels(column)), int.__or__)]


def unions(column: np.ndarray, k: int) -> Iterator[int]:
    """Yield the masks of unions of at most k intervals: 2j borders among the gaps between distinct values."""
    prefix = [0, *itertools.accumulate(_levels(column), int.__or__)]
    for j in range(k + 1):
        for borders in itertools.combinations(range(len(prefix)), 2 * j):
            yield sum(prefix[b] - prefix[a] for a, b in zip(borders[::2], borders[1::2]))


def boxes(rows: np.ndarray) -> set[int]:
    """Return the masks of all boxes: intersections of one interval for each coordinate."""
    results = {(1 << len(rows)) - 1}
    for column in rows.T:
        spans = set(unions(column, 1))
        if len(results) * len(spans) > 50 * _MOST_MASKS:
            raise ValueError(f"Boxes: too many boxes on {len(rows)} points; ask about fewer points.")
        results = {mask & span for mask in results for span in spans}
    return results


@dataclass(frozen=True)
class Threshold:
    """`sign` where x[feature] > at, -sign elsewhere."""

    feature: int
    at: float
    sign: int

    def __call__(self, X: np.ndarray) -> np.ndarray:
        column = np.asarray(X, dtype=np.float64).reshape(len(X), -1)[:, self.feature]
        return np.where(column > self.at, self.sign, -self.sign)


@dataclass(frozen=True)
class Box:
    """+1 where low <= x <= high in every coordinate; empty if low > high somewhere."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        rows = np.asarray(X, dtype=np.float64).reshape(len(X), -1)
        return np.where(((rows >= self.low) & (rows <= self.high)).all(axis=1), 1, -1)


@dataclass(frozen=True)
class IntervalUnion:
    """+1 on closed intervals of the line."""

    intervals: tuple[tuple[float, float], ...]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        column = np.asarray(X, dtype=np.float64).reshape(-1)
        inside = [(column >= a) & (column <= b) for a, b in self.intervals]
        return np.where(np.any(inside, axis=0), 1, -1) if inside else np.full(len(column), -1)


def _between(left: float, right: float) -> float:
    """Return t with left <= t < right."""
    middle = left + (right - left) / 2.0
    return middle if left <= middle < right else left


def _grouped(column: np.ndarray, gain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values in rising order and the gain summed over equal values."""
    values, level = np.unique(column, return_inverse=True)
    return values, np.bincount(level, weights=gain, minlength=len(values))


def best_threshold(X: np.ndarray, gain: np.ndarray, features: Iterable[int], signs: Sequence[int]) -> Threshold:
    """Return the threshold rule with the largest sum of gain times label; ties go to the first found."""
    best, rule = -np.inf, Threshold(0, np.inf, 1)
    for feature in features:
        values, total = _grouped(X[:, feature], gain)
        # half of (gain where x > t minus gain elsewhere), t after each level
        right = total.sum() / 2.0 - np.concatenate(([0.0], np.cumsum(total)))
        for sign in signs:
            at = int(np.argmax(sign * right))
            if sign * right[at] > best:
                low = values[at - 1] if at > 0 else -np.inf
                cut = -np.inf if at == 0 else np.inf if at == len(values) else _between(low, values[at])
                best, rule = sign * right[at], Threshold(feature, float(cut), sign)
    return rule


def best_intervals(X: np.ndarray, gain: np.ndarray, k: int) -> IntervalUnion:
    """Return the union of at most k intervals with the largest gain, by dynamic programming in O(k m)."""
    values, total = _grouped(X[:, 0], gain)
    u = len(values)
    outside = np.zeros((k + 1, u + 1))  # best of the first i values with at most j intervals, value i - 1 outside
    inside = np.full((k + 1, u + 1), -np.inf)  # the same with value i - 1 inside the j-th interval
    for j in range(1, k + 1):
        for i in range(1, u + 1):
            inside[j, i] = max(outside[j - 1, i - 1], inside[j, i - 1]) + total[i - 1]
            outside[j, i] = max(outside[j, i - 1], inside[j, i - 1])
    intervals, i, j = [], u, k
    while i > 0 and j > 0:
        if inside[j, i] > outside[j, i]:
            end = i
            while inside[j, i - 1] >= outside[j - 1, i - 1]:
                i -= 1
            intervals.append((float(values[i - 1]), float(values[end - 1])))
            j -= 1
            i -= 1  # value i - 1 is now known to lie outside
        i -= 1
    return IntervalUnion(tuple(reversed(intervals)))


def best_box(X: np.ndarray, gain: np.ndarray) -> Box:
    """Return the box with the largest gain: all spans of all coordinates but the last, there a scan."""
    best, rule = 0.0, Box((np.inf,) * X.shape[1], (-np.inf,) * X.shape[1])

    def search(column: int, rows: np.ndarray, low: tuple, high: tuple) -> None:
        nonlocal best, rule
        values, total = _grouped(X[rows, column], gain[rows])
        if column == X.shape[1] - 1:
            ends = np.cumsum(total)
            starts = np.concatenate(([0.0], ends[:-1]))
            lowest = np.minimum.accumulate(starts)
            at = int(np.argmax(ends - lowest))
            if ends[at] - lowest[at] > best:
                first = int(np.argmin(starts[: at + 1]))
                best = ends[at] - lowest[at]
                rule = Box((*low, float(values[first])), (*high, float(values[at])))
            return
        for a, b in itertools.combinations_with_replacement(values, 2):
            inside = rows[(X[rows, column] >= a) & (X[rows, column] <= b)]
            search(column + 1, inside, (*low, float(a)), (*high, float(b)))

    if len(X) ** (2 * (X.shape[1] - 1)) > 50 * _MOST_MASKS:
        raise ValueError(f"Boxes: the exact search over {len(X)} points in {X.shape[1]} dimensions is too long.")
    search(0, np.arange(len(X)), (), ())
    return rule
