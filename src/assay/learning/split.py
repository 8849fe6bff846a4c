"""Which rows are held out, and how the others are cut for the choice among learners.

The hold-out rows are drawn once, plainly at random: so they are independent draws, which the certificate rests on.
A stratified draw would not be. With groups, whole groups are drawn; with a time column the newest rows are held out.
The training rows are cut into folds, by class and by group, and small tables again and again: the more often, the
less a choice is made by chance.
"""

from dataclasses import dataclass

import numpy as np

from assay.guarantees.order import GROUPS, HOLDOUT, permutation
from assay.messages import Message

FOLDS = 5


@dataclass(frozen=True)
class Pair:
    """Rows to fit and rows to judge on, both counted among the training rows."""

    fit: np.ndarray
    judge: np.ndarray


def usual_share(n: int) -> float:
    """Return the share of n independent draws (rows, or groups) that is held out unless told: a quarter, less of many.

    It is where a bound is expected to be least: an error of 10 % that falls as the rows it was learnt from to the power
    -0.3, plus 1.645 standard errors of the rows it is measured on. Of fewer than 2,000 that would be more than a
    quarter, at the cost of the model.

    >>> [round(usual_share(n), 2) for n in (1_000, 10_000, 500_000)]
    [0.25, 0.16, 0.05]
    """
    shares = np.linspace(0.01, 0.25, 241)
    expected = 0.1 * (1 - shares) ** -0.3 + 1.645 * np.sqrt(0.1 * 0.9 / (shares * n))
    return float(shares[expected.argmin()])


def hold_out(n: int, share: float | None, seed: int, group: np.ndarray | None, time: np.ndarray | None) -> np.ndarray:
    """Return the numbers of the hold-out rows, in increasing order; None is the usual share."""
    share = usual_share(n if group is None else len(np.unique(group))) if share is None else share
    wanted = round(n * share)
    if not 0 < share < 1 or wanted < 1 or n - wanted < 2:
        raise ValueError(Message("split.small", share=float(f"{share:g}"), rows=n))
    if time is not None:
        held = np.flatnonzero(time >= np.sort(time)[n - wanted])
        if not 0 < len(held) < n - 1:
            raise ValueError(Message("split.times"))
        return held
    if group is None:
        return np.sort(permutation(n, seed, HOLDOUT)[:wanted])
    names, codes = np.unique(group, return_inverse=True)
    if len(names) < 4:
        raise ValueError(Message("split.groups", groups=len(names)))
    count = min(max(1, round(len(names) * share)), len(names) - 2)
    return np.flatnonzero(np.isin(codes, permutation(len(names), seed, GROUPS)[:count]))


def rungs(y: np.ndarray, classes: bool, seed: int, group: np.ndarray | None, time: np.ndarray | None) -> list:
    """Return the steps of the choice: each has the pairs on which a candidate that comes so far is judged."""
    n = len(y)
    if time is not None:
        return _forward(time)
    if n > 30_000:
        return _on_one_part(n, seed, group)
    repeats = 1 if n > 8_000 else 2 if n > 2_500 else 3 if n > 400 else 5
    pairs = [pair for r in range(repeats) for pair in _folds(y, classes, [seed, r], group)]
    if n > 8_000:
        return [pairs[:1], pairs[1:3]]
    if n > 2_500:
        return [pairs[:2], pairs[2:5]]
    return [pairs[:FOLDS], pairs[FOLDS:]]


def _folds(y: np.ndarray, classes: bool, seed: list[int], group: np.ndarray | None) -> list[Pair]:
    """Return folds with nearly equal shares of each class (of sorted numbers, of each part); groups stay together."""
    random, n = np.random.default_rng([1, *seed]), len(y)
    units = np.arange(n) if group is None else np.unique(group, return_inverse=True)[1]
    first = np.unique(units, return_index=True)[1]
    drawn = random.permutation(len(first))
    by = y[first][drawn]
    order = drawn[np.argsort(by, kind="stable")]
    fold_of_unit = np.empty(len(first), dtype=np.int64)
    fold_of_unit[order] = np.arange(len(first)) % FOLDS
    fold = fold_of_unit[units]
    results = [Pair(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(FOLDS)]
    return [pair for pair in results if len(pair.judge) and len(pair.fit)]


def _on_one_part(n: int, seed: int, group: np.ndarray | None) -> list[list[Pair]]:
    """Return steps for many rows: a fifth judges, at most 50,000; 10,000 rows are fitted first, then all others."""
    random = np.random.default_rng([2, seed])
    if group is None:
        order = random.permutation(n)
    else:
        codes = np.unique(group, return_inverse=True)[1]
        order = np.argsort(random.permutation(codes.max() + 1)[codes], kind="stable")
    judge = np.sort(order[: min(n // FOLDS, 50_000)])
    rest = order[len(judge) :]
    return [[Pair(np.sort(random.permutation(rest)[:10_000]), judge)], [Pair(np.sort(rest), judge)]]


def _forward(time: np.ndarray) -> list[list[Pair]]:
    """Return pairs in which the rows that judge are newer than those that are fitted."""
    parts = np.array_split(np.argsort(time, kind="stable"), FOLDS + 1)
    pairs = [Pair(np.sort(np.concatenate(parts[:k])), np.sort(parts[k])) for k in range(1, FOLDS + 1)]
    return [pairs[-2:], pairs[:-2]]
