"""The compiled pass of adaptive resonance: choice, vigilance, resonance or a new category."""

import numpy as np

from assay.jit import compiled


@compiled
def resonate(coded, order, start, weights, sizes, known, vigilance, choice, rate, labels):
    """Visit rows from position `start` of `order` on. Categories are tried by falling |I and w| / (choice + |w|), the
    first of equals first; the first with |I and w| >= vigilance |I| learns, w <- w + rate (min(I, w) - w); if there
    is none, the row becomes a category. A row without any entry resonates with a category without any, or if
    vigilance is 0.

    Writes weights (room, m), sizes (room,) and labels (rows,); returns the next position (before the end if there is no
    room), the number of categories and the largest change of an entry."""
    room, m = weights.shape
    scores, shared, tried = np.empty(room), np.empty(room), np.empty(room, dtype=np.bool_)
    largest = 0.0
    for at in range(start, len(order)):
        row = coded[order[at]]
        size = 0.0
        for k in range(m):
            size += row[k]
        for j in range(known):
            both = 0.0
            for k in range(m):
                both += min(row[k], weights[j, k])
            shared[j], tried[j] = both, False
            scores[j] = both / (choice + sizes[j])
        found = -1
        for _ in range(known):
            best = -1
            for j in range(known):
                if not tried[j] and (best < 0 or scores[j] > scores[best]):
                    best = j
            tried[best] = True
            enough = shared[best] >= vigilance * size
            if size == 0.0:
                enough = sizes[best] == 0.0 or vigilance == 0.0
            if enough:
                found = best
                break
        if found < 0:
            if known == room:
                return at, known, largest
            found = known
            weights[known] = row
            known += 1
            largest = max(largest, 1.0)
        else:
            for k in range(m):
                low = min(row[k], weights[found, k])
                if low != weights[found, k]:
                    moved = low if rate == 1.0 else weights[found, k] + rate * (low - weights[found, k])
                    largest = max(largest, weights[found, k] - moved)
                    weights[found, k] = moved
        total = 0.0
        for k in range(m):
            total += weights[found, k]
        sizes[found] = total
        labels[order[at]] = found
    return len(order), known, largest
