"""Orders of rows: that of bets, which does not depend on the order of the table, and those drawn from a seed.

Bets: a row's digest is the SHA-256 of its cells, as they are fingerprinted, and its target. Rows are sorted by the
SHA-256 of the digest of the whole set, their own digest, and their number among equal rows. SPEC.md, "Order of bets".

Draws: each row number has a random key that follows from the seed, so that the checker repeats them: the state of the
generator splitmix64 (Steele, Lea and Flood 2014) is set from seed, purpose and row number in turn. Rows in the order of
their keys are a random permutation.
"""

import hashlib
from functools import cached_property

import numpy as np

from assay.data.blocks import Block
from assay.guarantees.fingerprint import canonical
from assay.messages import Message
from assay.scan import Rows


class BetOrder:
    """The order of the rows of one data set, as they are fingerprinted; labels are positions in `classes`."""

    def __init__(self, rows: Rows, classes: np.ndarray | None = None, has_target: bool = True) -> None:
        self._rows, self._has_target = rows, has_target
        self._names = None if classes is None else [f"={label}".encode() for label in np.asarray(classes).tolist()]

    @cached_property
    def digests(self) -> np.ndarray:
        """The digest of each row (rows, 32)."""
        names = self._names if self._has_target else []
        return np.concatenate(self._rows.map(_block_digests, names, self._has_target))

    @cached_property
    def of_rows(self) -> np.ndarray:
        """The numbers of the rows in order."""
        return drawn_order(self.digests)

    def of_some(self, rows: np.ndarray) -> np.ndarray:
        """Return the numbers 0, 1, ... of some rows, which are a set of their own, in order."""
        return drawn_order(self.digests[rows])

    def of_groups(self, group: np.ndarray) -> np.ndarray:
        """Return the numbers of groups in order: `group` tells that of each row, from 0 on."""
        at = np.lexsort([*_sort_keys(self.digests), group])
        ends = np.cumsum(np.bincount(group))[:-1]
        return drawn_order(np.stack([digest_of(part.tobytes()) for part in np.split(self.digests[at], ends)]))

    def of_runs(self, lengths: np.ndarray) -> np.ndarray:
        """Return the numbers of sequences of so many rows each, one after the other, in order."""
        parts = np.split(self.digests, np.cumsum(lengths)[:-1])
        return drawn_order(np.stack([digest_of(part.tobytes()) for part in parts]))


def drawn_order(digests: np.ndarray) -> np.ndarray:
    """Return in which order those come whose digests (n, 32) are given, of bytes."""
    at = np.lexsort(_sort_keys(digests))
    ranked = digests[at]
    whole = hashlib.sha256(ranked.tobytes()).digest()
    first = np.flatnonzero(np.append(True, (ranked[1:] != ranked[:-1]).any(axis=1)))
    number = np.arange(len(at)) - np.repeat(first, np.diff(np.append(first, len(at))))
    again = number.astype("<u8").view(np.uint8).reshape(-1, 8)
    keys = [digest_of(whole + row.tobytes() + count.tobytes()) for row, count in zip(ranked, again)]
    return at[np.lexsort(_sort_keys(np.stack(keys)))]


def digest_of(content: bytes) -> np.ndarray:
    return np.frombuffer(hashlib.sha256(content).digest(), dtype=np.uint8)


def _sort_keys(digests: np.ndarray) -> list[np.ndarray]:
    """Return numbers by which `lexsort` sorts digests as text would be sorted, the last key first."""
    words = np.ascontiguousarray(digests).view(">u8")
    return [words[:, i] for i in (3, 2, 1, 0)]


def _block_digests(block: Block, names: list[bytes] | None, has_target: bool) -> np.ndarray:
    cells, width = canonical(block.X).tobytes(), 8 * block.X.shape[1]
    targets = _target_bytes(block, names, has_target)
    return np.stack([digest_of(cells[i * width : (i + 1) * width] + target) for i, target in enumerate(targets)])


def _target_bytes(block: Block, names: list[bytes] | None, has_target: bool) -> list[bytes]:
    if not has_target:
        return [b""] * len(block.X)
    if names is not None:
        return [names[code] if code >= 0 else b"?" for code in np.asarray(block.y).tolist()]
    values = (np.asarray(block.y, dtype="<f8") + 0.0).reshape(len(block.X), -1)
    return [row.tobytes() for row in values]


HOLDOUT, GROUPS, FOLDS, RESERVE = 1, 2, 3, 4
"""Purposes: draws for one say nothing about draws for another."""

_MASK = 2**64 - 1


def permutation(n: int, seed: int, purpose: int) -> np.ndarray:
    """Return the numbers 0..n-1 in random order.

    >>> permutation(5, 0, HOLDOUT).tolist() == permutation(5, 0, HOLDOUT).tolist()
    True
    """
    state = _scramble(_scramble(seed & _MASK) ^ purpose)
    keys = np.bitwise_xor(np.uint64(state), np.arange(n, dtype=np.uint64))
    keys += np.uint64(0x9E3779B97F4A7C15)
    keys ^= keys >> np.uint64(30)
    keys *= np.uint64(0xBF58476D1CE4E5B9)
    keys ^= keys >> np.uint64(27)
    keys *= np.uint64(0x94D049BB133111EB)
    keys ^= keys >> np.uint64(31)
    return np.argsort(keys, kind="stable")


def fold_of_rows(n: int, folds: int, seed: int) -> np.ndarray:
    """Return the fold of each of n rows, drawn without looking at them; sizes differ by at most one."""
    if not 2 <= folds <= n // 2:
        raise ValueError(Message("folds.few", folds=folds, rows=n))
    result = np.empty(n, dtype=np.int64)
    result[permutation(n, seed, FOLDS)] = np.arange(n) % folds
    return result


def _scramble(state: int) -> int:
    """Return one output of splitmix64."""
    z = (state + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
