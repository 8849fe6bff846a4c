"""Betting, row by row in plain Python, in the order of the rows' digests: neither producer's code nor checker's."""

import hashlib
import math
import struct

from scipy.optimize import brentq


def digest(row, target):
    """SHA-256 of the cells and the target: "=" and the text of a label, or a number; None for no target."""
    cells = b"".join(struct.pack("<d", float(x) + 0.0) for x in row)
    if target is None:
        return hashlib.sha256(cells).digest()
    told = f"={target}".encode() if isinstance(target, str) else struct.pack("<d", float(target) + 0.0)
    return hashlib.sha256(cells + told).digest()


def order(digests):
    """The places of digests in the order of bets."""
    whole, keys = hashlib.sha256(b"".join(sorted(digests))).digest(), []
    for i, one in enumerate(digests):
        number = struct.pack("<Q", digests[:i].count(one))
        keys.append((hashlib.sha256(whole + one + number).digest(), i))
    return [i for _, i in sorted(keys)]


def of_rows(X, y):
    """The order of rows with numbers as targets, or labels given as text."""
    return order([digest(row, target) for row, target in zip(X, y, strict=True)])


def of_groups(X, y, group):
    """The order of the groups 0, 1, ..."""
    rows = [digest(row, target) for row, target in zip(X, y, strict=True)]
    parts = [sorted(one for one, own in zip(rows, group) if own == g) for g in range(max(group) + 1)]
    return order([hashlib.sha256(b"".join(part)).digest() for part in parts])


def bound(losses, delta, *, most=0.98, two=2.0, half=0.5, quarter=0.25, one=1.0):
    """The smallest g at which money reaches 1 / delta; the losses are in the order of bets."""

    def money(g):
        total = sum_of = best = 0.0
        spread, seen, before = quarter, 1, quarter
        for loss in losses:
            stake = min(most / (1 - g), math.sqrt(two * math.log(one / delta) / (len(losses) * before)))
            total += math.log1p(max(-stake * (loss - g), -1 + 1e-12))
            best = max(best, total)
            sum_of, seen = sum_of + loss, seen + 1
            spread += (loss - (half + sum_of) / seen) ** 2
            before = spread / seen
        return best - math.log(one / delta)

    return brentq(money, 1e-9, 1.0 - 1e-12, xtol=1e-13)
