"""Which centre is nearest to a sparse row: the compiled pass over a chunk of rows.

|x - c|^2 / 2 = |x|^2 / 2 + |c|^2 / 2 - x'c, and x'c takes as many products as the row has entries. Centres stand by
columns, (d, k): an entry of a row adds a multiple of one line of them, a piece of which stays in cache while all rows
of the chunk pass.
"""

import numpy as np

from assay.jit import compiled

_PIECE = 1024  # centres that are compared with all rows of a chunk before the next ones


@compiled
def nearest_block(indptr, indices, data, columns, halves, labels, least):
    """Write the nearest centre of each row, the first of equals, and |c|^2 / 2 - x'c of it.

    indptr (n + 1,), indices, data: the rows; columns (d, k); halves (k,): |c|^2 / 2; labels (n,), least (n,): written.
    """
    n, k = len(indptr) - 1, columns.shape[1]
    scores = np.empty(min(k, _PIECE))
    least[:] = np.inf
    for first in range(0, k, _PIECE):
        last = min(first + _PIECE, k)
        piece = scores[: last - first]
        for i in range(n):
            for j in range(len(piece)):
                piece[j] = halves[first + j]
            _take_products(indptr[i], indptr[i + 1], indices, data, columns, first, last, piece)
            low = _least(piece)
            if low < least[i]:
                least[i] = low
                for j in range(len(piece)):
                    if piece[j] == low:
                        labels[i] = first + j
                        break


@compiled(reduction=True)
def _take_products(begin, end, indices, data, columns, first, last, piece):
    """Take the products of one row with the centres first, ..., last - 1 off `piece`, four entries at a time."""
    whole = begin + (end - begin) // 4 * 4
    for e in range(begin, whole, 4):
        a, b, c, d = data[e], data[e + 1], data[e + 2], data[e + 3]
        p, q = columns[indices[e], first:last], columns[indices[e + 1], first:last]
        r, s = columns[indices[e + 2], first:last], columns[indices[e + 3], first:last]
        for j in range(len(piece)):
            piece[j] -= a * p[j] + b * q[j] + c * r[j] + d * s[j]
    for e in range(whole, end):
        a, p = data[e], columns[indices[e], first:last]
        for j in range(len(piece)):
            piece[j] -= a * p[j]


@compiled
def _least(values):
    """Return the least value; four running minima, so that none waits for the one before."""
    whole = len(values) // 4 * 4
    a = b = c = d = values[0]
    for j in range(0, whole, 4):
        a = values[j] if values[j] < a else a
        b = values[j + 1] if values[j + 1] < b else b
        c = values[j + 2] if values[j + 2] < c else c
        d = values[j + 3] if values[j + 3] < d else d
    for j in range(whole, len(values)):
        a = values[j] if values[j] < a else a
    return min(min(a, b), min(c, d))


@compiled(reduction=True)
def own_block(indptr, indices, data, centers, squares, labels, own):
    """Write the squared distance of each row to its centre: entries of the row one by one, the other columns by |c|^2,
    `squares`."""
    for i in range(len(indptr) - 1):
        c = labels[i]
        total = squares[c]
        for e in range(indptr[i], indptr[i + 1]):
            at = centers[c, indices[e]]
            total += (data[e] - at) * (data[e] - at) - at * at
        own[i] = max(total, 0.0)
