"""Compiled loops of prototypes on a grid: rows visited one by one, and the sums of one block.

Prototypes are passed by columns, (d, cells), so that the loops over cells use vector registers. The neighbourhood of
two cells is the product of a number by the rows that they are apart and one by the columns, from the farthest to the
left to the farthest to the right, which odd rows of hexagonal grids shift by half a column.

`resonate` is the pass of adaptive resonance: choice, vigilance, resonance or a new category.
"""

import numpy as np

from assay.jit import compiled


@compiled(reduction=True)
def _nearest(x, prototypes, squares):
    """Return the nearest cell, the first of equals; writes the squared distance of every cell."""
    d, cells = prototypes.shape
    squares[:] = 0.0
    whole = d - d % 4
    for k in range(0, whole, 4):  # four columns at a time: sums stay in registers
        a, b, c, e = prototypes[k], prototypes[k + 1], prototypes[k + 2], prototypes[k + 3]
        u, v, w, z = x[k], x[k + 1], x[k + 2], x[k + 3]
        for j in range(cells):
            total = squares[j]
            gap = a[j] - u
            total += gap * gap
            gap = b[j] - v
            total += gap * gap
            gap = c[j] - w
            total += gap * gap
            gap = e[j] - z
            total += gap * gap
            squares[j] = total
    for k in range(whole, d):
        column, value = prototypes[k], x[k]
        for j in range(cells):
            gap = column[j] - value
            squares[j] += gap * gap
    return _first_least(squares)


@compiled
def _first_least(values):
    """Return where the least value stands, the first of equals."""
    whole = len(values) - len(values) % 4
    a = b = c = d = values[0]
    for j in range(0, whole, 4):  # four minima side by side: each waits for itself alone
        a = values[j] if values[j] < a else a
        b = values[j + 1] if values[j + 1] < b else b
        c = values[j + 2] if values[j + 2] < c else c
        d = values[j + 3] if values[j + 3] < d else d
    least = min(min(a, b), min(c, d))
    for j in range(whole, len(values)):
        least = min(least, values[j])
    for j in range(len(values)):
        if values[j] == least:
            return j
    return 0


@compiled
def visit(X, order, prototypes, shape, shifted, by_row, by_column, reach_row, reach_column, rate, wins):
    """Visit the rows in `order`: cells near the winner move by rate * neighbourhood of their gap to the row; a rate
    of 0 stands for 1 / (rows that the winner has won).

    Writes prototypes (d, cells) and wins (cells,); returns the sum of the distances to the winners before they
    moved."""
    cells = prototypes.shape[1]
    height, width = shape
    squares, pull = np.empty(cells), np.empty(cells)
    total = 0.0
    for i in order:
        x = X[i]
        best = _nearest(x, prototypes, squares)
        total += np.sqrt(squares[best])
        wins[best] += 1.0
        step = rate if rate > 0.0 else 1.0 / wins[best]
        row, column = best // width, best % width
        left, right = max(0, column - reach_column), min(width, column + reach_column + 1)
        top, bottom = max(0, row - reach_row), min(height, row + reach_row + 1)
        if 2 * (right - left) > width:  # whole rows lie side by side: one long loop
            left, right = 0, width
        many = right - left
        for r in range(top, bottom):
            bell = by_column[1 + shifted * (r % 2 - row % 2), width - 1 - column + left :]
            strength, part = step * by_row[abs(r - row)], pull[(r - top) * many : (r - top + 1) * many]
            for c in range(many):
                part[c] = strength * bell[c]
        if many == width:
            _pull(prototypes, top * width, (bottom - top) * width, pull, 0, x)
        else:
            for r in range(top, bottom):
                _pull(prototypes, r * width + left, many, pull, (r - top) * many, x)
    return total


@compiled(reduction=True)
def _pull(prototypes, first, many, pull, start, x):
    """Move cells first, ..., first + many - 1 towards x by their share of the gap."""
    share = pull[start : start + many]
    for k in range(len(x)):
        line, value = prototypes[k, first : first + many], x[k]
        for c in range(many):
            line[c] += share[c] * (value - line[c])


@compiled
def cell_sums(X, prototypes, sums, counts):
    """Add each row to the sums (cells, d) and counts (cells,) of its nearest cell; returns the sum of the distances."""
    squares = np.empty(prototypes.shape[1])
    total = 0.0
    for i in range(X.shape[0]):
        best = _nearest(X[i], prototypes, squares)
        total += np.sqrt(squares[best])
        counts[best] += 1.0
        for k in range(X.shape[1]):
            sums[best, k] += X[i, k]
    return total


@compiled
def nearest_two(X, prototypes, found):
    """Write the nearest and the second nearest cell of each row to found (rows, 2)."""
    cells = prototypes.shape[1]
    squares = np.empty(cells)
    for i in range(X.shape[0]):
        best = _nearest(X[i], prototypes, squares)
        second = 1 if best == 0 else 0
        for c in range(cells):
            if c != best and squares[c] < squares[second]:
                second = c
        found[i, 0], found[i, 1] = best, second if cells > 1 else best


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
        result = -1
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
                result = best
                break
        if result < 0:
            if known == room:
                return at, known, largest
            result = known
            weights[known] = row
            known += 1
            largest = max(largest, 1.0)
        else:
            for k in range(m):
                low = min(row[k], weights[result, k])
                if low != weights[result, k]:
                    moved = low if rate == 1.0 else weights[result, k] + rate * (low - weights[result, k])
                    largest = max(largest, weights[result, k] - moved)
                    weights[result, k] = moved
        total = 0.0
        for k in range(m):
            total += weights[result, k]
        sizes[result] = total
        labels[order[at]] = result
    return len(order), known, largest
