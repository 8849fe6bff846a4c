"""Rows that a claim rests on and its issuer could choose: how many repeat others, and whether chance explains it.

Rows are told apart by their keys (`identity.near_keys`), equal for rows that agree in the first digits of every entry.
"""

import hashlib
import math
from collections.abc import Iterable

import numpy as np

from assay.checker.identity import canonical, copies, near_keys
from assay.checker.record import Rejected

CHANCE = math.log(1e6)
"""The guards are wrong once in so many draws, at most."""


def keys_of(X: np.ndarray) -> np.ndarray:
    return near_keys(canonical(X))


def sequence_keys(parts: Iterable[np.ndarray]) -> np.ndarray:
    """Return a number for each sequence of rows: the first 8 bytes of the SHA-256 of the keys of its rows."""
    digests = [hashlib.sha256(keys_of(X).astype("<u8").tobytes()).digest()[:8] for X in parts]
    return np.array([int.from_bytes(digest, "little") for digest in digests], dtype=np.uint64)


def repeated(keys: np.ndarray, known: np.ndarray) -> int:
    """Return how many of the keys occur among `known` ones, or earlier among the keys themselves."""
    _, first = np.unique(keys, return_index=True)
    new = np.zeros(len(keys), dtype=bool)
    new[first] = True
    return int(np.sum(~new | np.isin(keys, known)))


def lumps(chosen: np.ndarray, others: np.ndarray) -> float:
    """Return -ln of a bound of the probability that chosen rows repeat each other as often as they do, if chosen and
    other rows were drawn alike.

    Of N rows m are chosen by chance, so that of a group of s rows with one key k or more are chosen with probability
    at most exp(-s kl(k/s, m/N)) (Hoeffding 1963), times the number C of such groups for the largest of them; and the
    share of the groups that are chosen as a whole exceeds the mean of (m/N)^s as Chernoff's bound says.
    """
    m, N = len(chosen), len(chosen) + len(others)
    _, group = np.unique(np.concatenate([chosen, others]), return_inverse=True)
    size = np.bincount(group)
    inside, size = np.bincount(group[:m], minlength=len(size))[size > 1], size[size > 1]
    if not len(size) or not len(others):
        return 0.0
    one = max(float(s * _kl(k / s, m / N)) for k, s in zip(inside.tolist(), size.tolist())) - math.log(len(size))
    whole = len(size) * _kl(float(np.mean(inside == size)), float(np.mean((m / N) ** size.astype(float))))
    return max(one, whole, 0.0)


def _kl(share: float, mean: float) -> float:
    """Return kl(share, mean) where the share is the larger, else 0."""
    if share <= mean:
        return 0.0
    rest = 0.0 if share == 1 else (1 - share) * math.log((1 - share) / (1 - mean))
    return share * math.log(share / max(mean, 1e-300)) + rest


def check_drawn(chosen: np.ndarray, others: np.ndarray, name: str) -> None:
    """Reject rows that are copies of the others, or of each other, more often than rows drawn like these others."""
    if copies(chosen, others)[1] > CHANCE:
        raise Rejected(f"{name} are training rows again, or nearly so: they were not kept apart")
    if lumps(chosen, others) > CHANCE:
        raise Rejected(f"{name} repeat each other far more often than the other rows do: they were picked")
