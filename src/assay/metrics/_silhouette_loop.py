"""The compiled half of the silhouette: a tile of products becomes distances, each added to two sums and not kept."""

import numpy as np

from assay.jit import compiled


@compiled(reduction=True)
def add_tile(products, left, right, piece, starts, first, to_rows, to_columns):
    """Add the distances sqrt(left_i + right_j - 2 products_ij) of a tile to sums over its columns and over its rows.

    left (a,), right (b,): squared lengths. piece (a,): which piece of to_columns (pieces, b) a row belongs to. Columns
    starts[s] .. starts[s + 1] - 1 are of one cluster, whose sums are column first + s of to_rows (a, clusters).
    """
    apart = np.empty(products.shape[1])
    for i in range(products.shape[0]):
        own, square = piece[i], left[i]
        for j in range(len(apart)):
            gap = square + right[j] - 2.0 * products[i, j]
            apart[j] = np.sqrt(gap if gap > 0.0 else 0.0)
        for j in range(len(apart)):
            to_columns[own, j] += apart[j]
        for s in range(len(starts) - 1):
            total = 0.0
            for j in range(starts[s], starts[s + 1]):
                total += apart[j]
            to_rows[i, first + s] += total
