"""Fingerprints of data and model, as SPEC.md section 1 defines them (producer's side).

Orders of rows: that of bets, which does not depend on the order of the table, and those drawn from a seed.

Bets: a row's digest is the SHA-256 of its cells, as they are fingerprinted, and its target. Rows are sorted by the
SHA-256 of the digest of the whole set, their own digest, and their number among equal rows. SPEC.md, "Order of bets".

Draws: each row number has a random key that follows from the seed, so that the checker repeats them: the state of the
generator splitmix64 (Steele, Lea and Flood 2014) is set from seed, purpose and row number in turn. Rows in the order of
their keys are a random permutation.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np

from assay.claims.claim import DataReference, ModelReference
from assay.claims.model import Storable
from assay.data.blocks import Block
from assay.messages import Message
from assay.scan import Rows, rows_per_block

CHUNK = 4096  # rows hashed together; part of the format


def data_reference(rows: Rows, classes: np.ndarray | None, has_target: bool = True) -> DataReference:
    """Return the fingerprint of `rows`, whose labels are positions in `classes` (None for a numeric target);
    without `has_target` it is one of X and the weights alone."""
    labels = None if classes is None else tuple(str(label) for label in classes.tolist())
    first = next(iter(rows.blocks()))
    header = {
        "columns": rows.n_features,
        "labels": None if labels is None else list(labels),
        "rows": rows.n_rows,
        "targets": 0 if not has_target else 1 if first.y.ndim == 1 else first.y.shape[1],
        "weights": first.weight is not None,
    }
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(f"assay-data/1\n{text}\n".encode())
    target = "" if not has_target else "<i4" if labels is not None else "<f8"
    for part in _chunk_digests(rows, target):
        digest.update(part)
    return DataReference(digest.hexdigest(), rows.n_rows, rows.n_features, labels)


def model_reference(model: Storable) -> ModelReference:
    """Return the fingerprint of class, parameters and arrays of a fitted model."""
    stored = model.stored()
    return ModelReference(stored.learner, stored.family, stored.digest())


def _chunk_digests(rows: Rows, target: str) -> list[bytes]:
    """Return the digest of every chunk, on threads when the blocks of the scan are whole chunks."""
    if rows_per_block(rows.n_features) % CHUNK == 0:
        hashed = rows.map(_hash_block, target)
        if all(start % CHUNK == 0 for start, _ in hashed):  # partitions of a cluster may begin anywhere
            return [part for _, parts in hashed for part in parts]
    return [part for block in _regrouped(rows) for part in _hash_block(block, target)[1]]


def _hash_block(block: Block, target: str) -> tuple[int, list[bytes]]:
    """Return the first row of the block and the digests of its rows, CHUNK at a time."""
    return block.start, [
        _hash_chunk(block.X[i : i + CHUNK], _slice(block.y, i), _slice(block.weight, i), target)
        for i in range(0, len(block.X), CHUNK)
    ]


def _hash_chunk(X: np.ndarray, y: np.ndarray | None, weight: np.ndarray | None, target: str) -> bytes:
    """Return the digest of rows; `target` is the type that y is hashed in, "" leaves it out."""
    digest = hashlib.sha256(canonical(X).data)
    if target:
        values = np.ascontiguousarray(y).astype(target)
        digest.update((values + 0.0).data if target == "<f8" else values.data)
    if weight is not None:
        digest.update(np.add(weight, 0.0, dtype="<f8", order="C").data)
    return digest.digest()


def _regrouped(rows: Rows) -> Iterator[Block]:
    """Yield blocks of exactly CHUNK rows (the last may be shorter) from blocks of any size."""
    held: list[Block] = []
    start = size = 0
    for block in rows.blocks():
        held.append(block)
        size += len(block.X)
        while size >= CHUNK:
            whole = _joined(held, start)
            yield Block(whole.X[:CHUNK], _slice(whole.y, 0), _slice(whole.weight, 0), start)
            start, size = start + CHUNK, size - CHUNK
            y, weight = (None if part is None else part[CHUNK:] for part in (whole.y, whole.weight))
            held = [Block(whole.X[CHUNK:], y, weight, start)]
    if size:
        yield _joined(held, start)


def _joined(parts: list[Block], start: int) -> Block:
    X, y, weight = (None if column[0] is None else np.concatenate(column) for column in list(zip(*parts))[:3])
    return Block(np.asarray(X), y, weight, start)


def _slice(values: np.ndarray | None, i: int) -> np.ndarray | None:
    return None if values is None else values[i : i + CHUNK]


def keys(rows: Rows) -> np.ndarray:
    """Return a number for each row, the same for rows that are nearly copies of each other (SPEC.md)."""
    return np.concatenate(rows.map(_near_keys))


def sequence_keys(sequences: Iterable[np.ndarray]) -> np.ndarray:
    """Return a number for each sequence of rows, the same for sequences whose rows are nearly copies (SPEC.md)."""
    made = [hashlib.sha256(_near_keys(Block(X, None, None, 0)).astype("<u8").tobytes()).digest() for X in sequences]
    return np.array([int.from_bytes(item[:8], "little") for item in made], dtype=np.uint64)


def near_copies(train: Rows, holdout: Rows) -> int:
    """Return how many hold-out rows equal a training row in the first ten bits of every entry, rounded (SPEC.md)."""
    known, held = np.sort(keys(train)), keys(holdout)
    return int(np.sum(known[np.minimum(np.searchsorted(known, held), len(known) - 1)] == held))


def repeats(chosen: np.ndarray, known: np.ndarray) -> int:
    """Return how many chosen keys are among the known ones, or are not the first of their kind."""
    before, result = set(known.tolist()), 0
    for key in chosen.tolist():
        result += key in before
        before.add(key)
    return result


def _near_keys(block: Block) -> np.ndarray:
    """Return a number for each row: a sum over columns of its rounded entries, mixed and weighted."""
    entries = canonical(block.X).view(np.uint64)
    entries = (entries + np.uint64(1 << 41)) >> np.uint64(42)
    entries = entries * np.uint64(0x9E3779B97F4A7C15)
    entries ^= entries >> np.uint64(29)
    weights = np.random.default_rng(1).integers(2**63, size=entries.shape[1], dtype=np.uint64)
    keys: np.ndarray = entries @ (2 * weights + np.uint64(1))
    return keys


def canonical(X: np.ndarray) -> np.ndarray:
    """Return doubles in C order with one zero and one NaN."""
    values: np.ndarray = np.add(X, 0.0, dtype="<f8", order="C")  # adding 0.0 turns -0.0 into 0.0
    gaps = np.isnan(values)
    if gaps.any():
        values[gaps] = np.nan
    return values


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
