"""Draws that anyone can repeat: the order of n row numbers that a seed gives, by splitmix64.

Row i has the key mix(mix(mix(seed) ^ purpose) ^ i), and rows are ordered by their keys, the first of equals first.
`mix` adds the golden ratio's 64 bits and scrambles (Steele, Lea and Flood 2014). Purposes: 1 which rows are held out,
2 which groups, 3 the folds of cross-validation, 4 which hold-out rows are kept for which look.

Bets are made in the order of digests instead (SPEC.md, "Order of bets"): each row, or set of rows, has a digest, and
the order is that of the SHA-256 of the digest of all digests, sorted, the own digest and the number among equals.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

HOLDOUT, GROUPS, FOLDS, RESERVE = 1, 2, 3, 4

_STEP, _FIRST, _SECOND = (np.uint64(one) for one in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def drawn_order(n: int, seed: int, purpose: int) -> np.ndarray:
    """Return the numbers 0..n-1 in the order that the seed gives."""
    with np.errstate(over="ignore"):
        start = _mix(_mix(np.array([seed % 2**64], dtype=np.uint64)) ^ np.uint64(purpose))
        return np.argsort(_mix(start ^ np.arange(n, dtype=np.uint64)), kind="stable")


def drawn_folds(n: int, folds: int, seed: int) -> np.ndarray:
    """Return the fold of each of n rows: rows in the order drawn are dealt out in turn."""
    found = np.empty(n, dtype=np.int64)
    found[drawn_order(n, seed, FOLDS)] = np.arange(n) % folds
    return found


def _mix(x: np.ndarray) -> np.ndarray:
    z = x + _STEP
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


def digests_of(view: Any) -> list[bytes]:
    """Return the digest of each row of a `rule.View`, which tells the order of bets; computed once for all rules."""
    if view.digests is None:
        view.digests = row_digests(view.raw, view.codes, view.model.classes, view.targets)
    return view.digests


def row_digests(raw: np.ndarray, codes: Any, classes: Sequence[str] | None, targets: Any) -> list[bytes]:
    """Return the SHA-256 of each row: its cells in canonical form, then "=" and its label ("?" for one that the model
    does not know) or its targets as numbers, if it has any."""
    if codes is not None:
        known = ["=" + label for label in classes or ()]
        told = [(known[code] if code >= 0 else "?").encode() for code in codes.tolist()]
    elif targets is not None:
        told = [(row + 0.0).astype("<f8").tobytes() for row in targets]
    else:
        told = [b""] * len(raw)
    return [hashlib.sha256(row.astype("<f8").tobytes() + own).digest() for row, own in zip(raw, told, strict=True)]


def digest_of_set(digests: Sequence[bytes]) -> bytes:
    """Return the digest of rows whatever their order."""
    return hashlib.sha256(b"".join(sorted(digests))).digest()


def order_of_bets(digests: Sequence[bytes]) -> np.ndarray:
    """Return in which order bets are made on what has these digests."""
    whole, met, keys = digest_of_set(digests), Counter[bytes](), []
    for one in digests:
        keys.append(hashlib.sha256(whole + one + met[one].to_bytes(8, "little")).digest())
        met[one] += 1
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
