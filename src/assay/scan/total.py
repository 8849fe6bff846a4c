"""Adding the partial sums of blocks in one fixed order, whoever brings them and when.

The blocks are the leaves of a binary tree: 0 + 1, 2 + 3, ..., then (0 + 1) + (2 + 3), ... A sum is formed as soon as
both halves are there. So threads never wait for each other, about log2(blocks) partial sums exist at a time, totals
of neighbouring stretches merge into exactly what one total would hold, and rounding grows with the logarithm of the
number of blocks (pairwise summation: Higham, Accuracy and Stability of Numerical Algorithms, 4.2).
"""

import threading
from typing import Any

import numpy as np

Node = tuple[int, int]
"""Level and position: node (l, i) is the sum of blocks i 2^l to (i + 1) 2^l - 1."""


class Total:
    """A sum over blocks under construction; threads may add at the same time.

    >>> total = Total()
    >>> for number in (2, 0, 1):
    ...     total.add(number, 10.0**number)
    >>> total.value()
    111.0
    """

    def __init__(self) -> None:
        self._nodes: dict[Node, tuple[Any, bool]] = {}
        self._lock = threading.Lock()

    def add(self, number: int, partial: Any, *, level: int = 0) -> None:
        """Add the partial sum of a block, or of the node at the given level."""
        owned = False  # whether `partial` was made here, so that it may be written to
        while True:
            with self._lock:
                sibling = self._nodes.pop((level, number ^ 1), None)
                if sibling is None:
                    self._nodes[level, number] = partial, owned
                    return
            left, right = ((partial, owned), sibling) if number % 2 == 0 else (sibling, (partial, owned))
            partial, owned = added(left[0], right[0], in_place=left[1]), True
            level, number = level + 1, number // 2

    def nodes(self) -> dict[Node, Any]:
        """Return the sums that still miss their other half."""
        return {node: partial for node, (partial, _) in self._nodes.items()}

    def merge(self, nodes: dict[Node, Any]) -> None:
        """Add the nodes of a total over other blocks; they are not written to."""
        for (level, number), partial in nodes.items():
            self.add(number, partial, level=level)

    def value(self) -> Any:
        """Return the sum of what was added."""
        if not self._nodes:
            raise ValueError("rows: there are no rows to sum over; got 0 rows.")
        smallest, *larger = (self._nodes[node][0] for node in sorted(self._nodes))
        for partial in larger:
            smallest = added(partial, smallest, in_place=False)
        return smallest


def block_nodes(numbers: np.ndarray, sums: np.ndarray) -> dict[Node, Any]:
    """Return what `Total.nodes` gives after the sums (blocks, ...) of blocks with ascending numbers were added.

    >>> {node: float(total) for node, total in block_nodes(np.arange(3), np.array([1.0, 10.0, 100.0])).items()}
    {(0, 2): 100.0, (1, 0): 11.0}
    """
    nodes: dict[Node, Any] = {}
    level = 0
    while len(numbers):
        pair = np.zeros(len(numbers), dtype=bool)
        pair[:-1] = (numbers[:-1] % 2 == 0) & (numbers[1:] == numbers[:-1] + 1)
        left = np.flatnonzero(pair)
        pair[left + 1] = True
        nodes |= {(level, int(numbers[i])): sums[i] for i in np.flatnonzero(~pair)}
        numbers, sums, level = numbers[left] // 2, sums[left] + sums[left + 1], level + 1
    return nodes


def added(a: Any, b: Any, *, in_place: bool) -> Any:
    """Return a + b, member by member of tuples; with `in_place`, arrays of `a` may be overwritten."""
    if isinstance(a, tuple):
        sums = [added(x, y, in_place=in_place) for x, y in zip(a, b, strict=True)]
        return type(a)(*sums) if hasattr(a, "_fields") else tuple(sums)
    if not isinstance(a, np.ndarray):
        return a + b
    if a.shape != np.shape(b):
        raise ValueError(f"rows: a statistic must have the same shape for each block; got {a.shape} and {np.shape(b)}.")
    if in_place and a.dtype == np.result_type(a, b):
        a += b
        return a
    return a + b
