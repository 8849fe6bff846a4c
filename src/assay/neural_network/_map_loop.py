"""Compiled loops of prototypes on a grid: rows visited one by one, and the sums of one block.

Prototypes are passed by columns, (d, cells), so that the loops over cells use vector registers. The neighbourhood of
two cells is the product of a number by the rows that they are apart and one by twice the columns, which hexagonal
grids shift.
"""

import numpy as np

from assay.jit import compiled


@compiled
def _nearest(x, prototypes, squares):
    """Return the nearest cell, the first of equals; writes the squared distance of every cell."""
    d, cells = prototypes.shape
    squares[:] = 0.0
    whole = d - d % 4
    for k in range(0, whole, 4):  # four columns at a time: sums stay in registers, in the same order
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
    best = 0
    for c in range(1, cells):
        if squares[c] < squares[best]:
            best = c
    return best


@compiled
def visit(X, order, prototypes, shape, shifted, by_row, by_column, reach_row, reach_column, rate, wins):
    """Visit the rows in `order`: cells near the winner move by rate * neighbourhood of their gap to the row; a rate
    of 0 stands for 1 / (rows that the winner has won).

    Writes prototypes (d, cells) and wins (cells,); returns the sum of the distances to the winners before they
    moved."""
    d, cells = prototypes.shape
    height, width = shape
    squares, pull = np.empty(cells), np.empty(width)
    total = 0.0
    for i in order:
        x = X[i]
        best = _nearest(x, prototypes, squares)
        total += np.sqrt(squares[best])
        wins[best] += 1.0
        step = rate if rate > 0.0 else 1.0 / wins[best]
        row, column = best // width, best % width
        left, right = max(0, column - reach_column), min(width, column + reach_column + 1)
        many = right - left
        for r in range(max(0, row - reach_row), min(height, row + reach_row + 1)):
            skew = 2 * (left - column) + shifted * (r % 2 - row % 2)
            strength = step * by_row[abs(r - row)]
            for c in range(many):
                pull[c] = strength * by_column[abs(skew + 2 * c)]
            first = r * width + left
            for k in range(d):
                line = prototypes[k, first : first + many]  # a loop from 0 on uses vector registers
                value = x[k]
                for c in range(many):
                    line[c] += pull[c] * (value - line[c])
    return total


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
