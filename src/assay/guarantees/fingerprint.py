"""Fingerprints of data and model, as SPEC.md section 1 defines them (producer's side)."""

import hashlib
import json
from collections.abc import Iterable, Iterator

import numpy as np

from assay.claims.claim import DataReference, ModelReference
from assay.claims.model import Storable
from assay.data.blocks import Block
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
