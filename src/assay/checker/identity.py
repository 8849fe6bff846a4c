"""Fingerprints of data, and orders of rows drawn from a seed, recomputed by the checker's own code (SPEC.md, section
1).

The order of n row numbers that a seed gives is that of splitmix64. Row i has the key mix(mix(mix(seed) ^ purpose) ^ i),
and rows are ordered by their keys, the first of equals first. `mix` adds the golden ratio's 64 bits and scrambles
(Steele, Lea and Flood 2014). Purposes: 1 which rows are held out, 2 which groups, 3 the folds of cross-validation, 4
which hold-out rows are kept for which look.

Bets are made in the order of digests instead (SPEC.md, "Order of bets"): each row, or set of rows, has a digest, and
the order is that of the SHA-256 of the digest of all digests, sorted, the own digest and the number among equals.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from assay.checker.numerics import LARGEST, SMALLEST
from assay.checker.record import Refused, Rejected

CHUNK = 4096


class DataDigest:
    """Fingerprint of one data set, fed block by block."""

    def __init__(
        self,
        labels: tuple[str, ...] | None,
        classes: tuple[str, ...] | None,
        has_target: bool = True,
        others: bool = False,
    ):
        self.rows, self.has_target, self._hash = 0, has_target, hashlib.sha256()
        if has_target and classes is not None and not (labels is not None and set(labels) <= set(classes)):
            raise Rejected("the certificate must list the labels of the rows, all of them classes of the model")
        self._chunks: list[bytes] = []
        self._held: tuple[list[bytes], list[bytes]] = ([], [])  # targets and weights of the open chunk
        self._labels = None if labels is None else LabelReader(labels, classes, others)
        self._header: dict[str, Any] = {"labels": None if labels is None else list(labels)}

    def read_targets(self, y: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return class codes, or numeric targets as (rows, targets); neither for a model without a target."""
        if not self.has_target:
            return None, None
        if y is None:
            raise Rejected("y is missing")
        return (None, numeric_targets(y)) if self._labels is None else (self._labels.codes(np.asarray(y)), None)

    def feed(self, X: np.ndarray, targets: np.ndarray | None, weight: np.ndarray | None) -> None:
        """Take in a block in its `canonical` form, whose targets were just read."""
        if self._labels is not None:
            held = self._labels.positions().astype("<i4")
        elif self.has_target:
            held = (np.asarray(targets) + 0.0).astype("<f8")
        else:
            held = np.empty((len(X), 0))
        self._header |= {"columns": X.shape[1], "targets": held.shape[1] if held.ndim == 2 else 1}
        self._header["weights"] = weight is not None
        borders = [0, *range(CHUNK - self.rows % CHUNK, len(X), CHUNK), len(X)]
        for start, stop in pairwise(borders):
            self._hash.update(np.ascontiguousarray(X[start:stop], dtype="<f8"))
            self._held[0].append(held[start:stop].tobytes())
            if weight is not None:
                self._held[1].append((weight[start:stop] + 0.0).astype("<f8").tobytes())
            self.rows += stop - start
            if self.rows % CHUNK == 0:
                self._close_chunk()

    def _close_chunk(self) -> None:
        for part in self._held:
            self._hash.update(b"".join(part))
            part.clear()
        self._chunks.append(self._hash.digest())
        self._hash = hashlib.sha256()

    def hexdigest(self) -> str:
        """Return the fingerprint of all rows fed."""
        if self.rows % CHUNK:
            self._close_chunk()
        header = self._header | {"rows": self.rows}
        text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        return hashlib.sha256(b"assay-data/1\n" + text + b"\n" + b"".join(self._chunks)).hexdigest()


class LabelReader:
    """Turns labels into their positions in the certificate's list and in the model's list of classes.

    With `others`, labels that are not listed have the position -1 in both; else they are refused.
    """

    def __init__(self, labels: tuple[str, ...], classes: tuple[str, ...] | None, others: bool = False):
        self._others = others
        self._position = {label: i for i, label in enumerate(labels)}
        self._class = {label: i for i, label in enumerate(classes or ())}
        self._values: np.ndarray | None = None
        if len(self._position) != len(labels):
            raise Rejected("the certificate lists a label twice")

    def codes(self, y: np.ndarray) -> np.ndarray:
        """Return positions in the model's classes, -1 for labels it does not know."""
        self._last = self._where(y)
        return self._codes[self._last]

    def positions(self) -> np.ndarray:
        """Return positions of the labels last read in the certificate's list of labels."""
        return self._positions[self._last]

    def _where(self, y: np.ndarray) -> np.ndarray:
        """Return the place of each label among the values met so far, which grow as new ones appear."""
        if y.ndim != 1:
            raise Rejected(f"labels must be one column; y has shape {y.shape}")
        for _ in range(2):
            if self._values is not None and self._values.dtype.kind == y.dtype.kind:
                where = np.minimum(np.searchsorted(self._values, y), len(self._values) - 1)
                if np.all(self._values[where] == y):
                    return where
            met = np.unique(y) if self._values is None else np.unique(np.concatenate([self._values, np.unique(y)]))
            names = [str(value) for value in met.tolist()]
            unknown = [name for name in names if name not in self._position]
            if unknown and not self._others:
                raise Rejected(f"the rows have the label {unknown[0][:40]!r}, which the certificate does not list")
            self._values = met
            self._positions = np.array([self._position.get(name, -1) for name in names])
            self._codes = np.array([self._class.get(name, -1) for name in names])
        raise Rejected("y mixes types, or has labels that are not equal to themselves")


def numeric_targets(y: Any) -> np.ndarray:
    """Return a numeric target as (rows, targets) binary64."""
    values = np.asarray(y)
    if values.dtype.kind not in "iufb" or values.ndim not in (1, 2):
        raise Rejected(f"y must be one or more columns of numbers; it is {values.dtype} of shape {values.shape}")
    check_integers(values, "y")
    columns = np.ascontiguousarray(values.reshape(len(values), -1), dtype=np.float64)
    column_range(columns, "y")
    return columns


def canonical(X: np.ndarray) -> np.ndarray:
    """Return doubles in C order with one zero and one NaN."""
    values = np.add(X, 0.0, dtype=np.float64, order="C")  # -0.0 becomes 0.0
    gaps = np.isnan(values)
    if gaps.any():
        values[gaps] = np.nan
    return values


def texts_of(values: Any) -> list[str]:
    """Return the values of a column as text: whole numbers without a point, others as Python writes them; a missing
    one is empty."""
    results = []
    for value in np.asarray(values, dtype=object).ravel().tolist():
        whole = isinstance(value, float) and value.is_integer()
        results.append("" if value is None or value != value else str(int(value)) if whole else str(value))
    return results


def digest_of_values(texts: list[str]) -> str:
    """Return the fingerprint of a column: SHA-256 of each text's length and UTF-8, in the order of the rows."""
    digest = hashlib.sha256(b"assay-column/1\n")
    for text in texts:
        content = text.encode()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


def check_integers(values: Any, name: str) -> None:
    """Reject integers that binary64 does not hold."""
    whole = values is not None and values.dtype.kind in "iu" and values.shape[0]
    if whole and max(int(values.max()), -int(values.min())) > 2**53:
        raise Rejected(f"{name} has integers beyond 2^53, which binary64 does not hold")


def near_keys(X: np.ndarray) -> np.ndarray:
    """Return a 64-bit number per row that is the same for rows equal in the first ten bits of every entry.

    The other bits are rounded away, so that rows which were moved by a little have the same number almost always.
    """
    bits = X.view(np.uint64)
    coarse = (bits + np.uint64(2**41)) >> np.uint64(42)
    rng = np.random.default_rng(1)
    multipliers = rng.integers(2**63, size=X.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mixed = coarse * np.uint64(0x9E3779B97F4A7C15)
    return np.einsum("ij,j->i", mixed ^ (mixed >> np.uint64(29)), multipliers)


def copies(held: np.ndarray, kept: np.ndarray) -> tuple[int, float]:
    """Return how many hold-out rows have the key of a training row, and how surprising that is: -ln of a bound of its
    probability if both were drawn alike.

    Rows with one key are a group. Whether a row is held out is then a matter of chance, so that a group of s rows has
    rows of both kinds with probability at most q = 1 - (n/N)^s - (m/N)^s, and of C groups more than sum q have so only
    with probability exp(-C kl(share, mean q)) (Chernoff).
    """
    m, n = len(held), len(kept)
    _, group = np.unique(np.concatenate([held, kept]), return_inverse=True)
    size = np.bincount(group)
    inside = np.bincount(group[:m], minlength=len(size))
    mixed = (inside > 0) & (inside < size)
    several = size > 1
    if not several.any():
        return 0, 0.0
    q = 1 - (n / (m + n)) ** size[several] - (m / (m + n)) ** size[several]
    C, share, mean = int(several.sum()), float(mixed[several].mean()), float(q.mean())
    if share <= mean:
        return int(inside[mixed].sum()), 0.0
    rest = 0.0 if share == 1 else (1 - share) * math.log((1 - share) / (1 - mean))
    return int(inside[mixed].sum()), C * (share * math.log(share / mean) + rest)


def column_range(X: np.ndarray, name: str = "X") -> np.ndarray:
    """Return the largest magnitude of each column; stop at numbers that arithmetic cannot handle soundly.

    Doubled bit patterns order magnitudes and drop the sign; subtracting one sends zero to the top.
    """
    bits = np.left_shift(X.view(np.uint64), np.uint64(1))
    largest = (bits.max(axis=0) >> np.uint64(1)).view(np.float64)
    if not np.isfinite(largest).all():
        raise Rejected(f"{name} has NaN or infinite entries")
    bits -= np.uint64(1)
    lowest = bits.min(keepdims=True)  # an array, so that adding one wraps around
    smallest = ((lowest + np.uint64(1)) >> np.uint64(1)).view(np.float64)[0, 0]
    if largest.max() > LARGEST or 0 < smallest < SMALLEST:
        raise Refused(f"{name} has nonzero entries outside [1e-150, 1e150]; rescale the column")
    return largest


HOLDOUT, GROUPS, FOLDS, RESERVE = 1, 2, 3, 4

_STEP, _FIRST, _SECOND = (np.uint64(one) for one in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def drawn_order(n: int, seed: int, purpose: int) -> np.ndarray:
    """Return the numbers 0..n-1 in the order that the seed gives."""
    with np.errstate(over="ignore"):
        start = _mix(_mix(np.array([seed % 2**64], dtype=np.uint64)) ^ np.uint64(purpose))
        return np.argsort(_mix(start ^ np.arange(n, dtype=np.uint64)), kind="stable")


def drawn_folds(n: int, folds: int, seed: int) -> np.ndarray:
    """Return the fold of each of n rows: rows in the order drawn are dealt out in turn."""
    result = np.empty(n, dtype=np.int64)
    result[drawn_order(n, seed, FOLDS)] = np.arange(n) % folds
    return result


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
        cells = [(known[code] if code >= 0 else "?").encode() for code in codes.tolist()]
    elif targets is not None:
        cells = [(row + 0.0).astype("<f8").tobytes() for row in targets]
    else:
        cells = [b""] * len(raw)
    return [hashlib.sha256(row.astype("<f8").tobytes() + own).digest() for row, own in zip(raw, cells, strict=True)]


def digest_of_set(digests: Sequence[bytes]) -> bytes:
    """Return the digest of rows whatever their order."""
    return hashlib.sha256(b"".join(sorted(digests))).digest()


def order_of_bets(digests: Sequence[bytes]) -> np.ndarray:
    """Return in which order bets are made on what has these digests."""
    whole, met, keys = digest_of_set(digests), Counter[bytes](), []
    for digest in digests:
        keys.append(hashlib.sha256(whole + digest + met[digest].to_bytes(8, "little")).digest())
        met[digest] += 1
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
