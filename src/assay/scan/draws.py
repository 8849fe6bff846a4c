"""Rows drawn by a hash of their number: the same rows from memory, files and clusters, and no list of them."""

from typing import NamedTuple

import numpy as np

_ALL = 2**64 - 1


class Draw(NamedTuple):
    """The rows whose hash under `seed` lies below `limit`."""

    seed: int
    limit: int

    def mark(self, first: int, mark: int, marks: np.ndarray) -> None:
        """Set to `mark` those of the marks of rows first, first + 1, ... that are drawn."""
        from assay.scan.row_hash import mark_below

        mark_below(np.uint64(self.seed), np.uint64(self.limit), first, mark, marks)

    def places(self, first: int, start: int, stop: int, chosen: np.ndarray, taken: int) -> int:
        """Write to chosen[taken], ... those of the places start .. stop - 1 whose rows are drawn; return how many
        places of `chosen`, which has one to spare, are taken then. Place `start` holds row `first`."""
        from assay.scan.row_hash import drawn_below

        return int(drawn_below(np.uint64(self.seed), np.uint64(self.limit), first, start, stop, chosen, taken))


def draw_count(seed: int, n: int, count: int) -> Draw:
    """Return a draw of `count` of n rows: those with the smallest hashes.

    >>> marks = np.zeros(1000, dtype=np.uint8)
    >>> draw_count(0, 1000, 100).mark(0, 1, marks)
    >>> int(marks.sum())
    100
    """
    from assay.scan.row_hash import TOP, count_leading_bits, numbers_with

    mixed = np.uint64(_mixed(seed))
    counts = np.zeros(2**TOP, dtype=np.int64)
    count_leading_bits(mixed, n, counts)
    below = np.cumsum(counts)
    bits = int(np.searchsorted(below, count, side="right"))
    if bits == len(counts):
        return Draw(int(mixed), _ALL)
    numbers = np.empty(counts[bits], dtype=np.uint64)
    numbers_with(mixed, n, bits, numbers)
    return Draw(int(mixed), int(np.sort(numbers)[count - int(below[bits] - counts[bits])]))


def draw_share(seed: int, turn: int, share: float) -> Draw:
    """Return a draw that takes each row with the chance `share`; another one for each turn."""
    return Draw(_mixed(seed, turn), min(int(share * 2.0**64), _ALL))


def _mixed(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])
