"""Compiled loops over all rows: candidates for medoids (FasterPAM, Schubert & Rousseeuw 2021), and the nearest
prototypes of numbers and names.
"""

import numpy as np

from assay.jit import compiled

_CLOSE = 1e-5  # of |x|^2 + |y|^2: smaller squares of distances keep fewer than eleven digits


@compiled
def best_exchanges(apart, near, second, owner, removal, change, slot):
    """Write, for each candidate, the least change of the cost if it takes the place of a medoid, and of which.

    apart (candidates, n): distances to the rows. near, second (n,): distances of the rows to their nearest and second
    nearest medoid, the nearest being number owner (n,). removal (k,): the sum of second - near over a medoid's rows,
    what the cost rises by when it goes. A candidate nearer than `near` gains the difference, and its row does not miss
    the owner; one between the two only softens the loss.
    """
    for c in range(apart.shape[0]):
        loss, gain = removal.copy(), 0.0
        for o in range(apart.shape[1]):
            d = apart[c, o]
            if d < second[o]:
                if d < near[o]:
                    gain += d - near[o]
                    loss[owner[o]] += near[o] - second[o]
                else:
                    loss[owner[o]] += d - second[o]
        i = np.argmin(loss)
        change[c], slot[c] = gain + loss[i], i


@compiled
def exchange(apart, slot, near, second, owner, runner, unsure):
    """Let a candidate with these distances (n,) to the rows take the place of medoid `slot`. Rows that must look at all
    medoids again are listed in `unsure` (n,); return how many. runner (n,): number of the second nearest medoid."""
    m = 0
    for o in range(len(apart)):
        d = apart[o]
        if owner[o] == slot:
            if d < second[o]:
                near[o] = d
            else:
                unsure[m] = o
                m += 1
        elif d < near[o]:
            second[o], runner[o] = near[o], owner[o]
            near[o], owner[o] = d, slot
        elif runner[o] == slot:
            if d <= second[o]:
                second[o] = d
            else:
                unsure[m] = o
                m += 1
        elif d < second[o]:
            second[o], runner[o] = d, slot
    return m


@compiled
def two_nearest(apart, rows, near, second, owner, runner):
    """Write the two nearest of all medoids, the first of equals, of the rows whose distances (rows, k) are given."""
    for t in range(len(rows)):
        o = rows[t]
        near[o], second[o], owner[o], runner[o] = np.inf, np.inf, 0, 0
        for j in range(apart.shape[1]):
            d = apart[t, j]
            if d < near[o]:
                second[o], runner[o] = near[o], owner[o]
                near[o], owner[o] = d, j
            elif d < second[o]:
                second[o], runner[o] = d, j


@compiled
def euclidean_block(products, lengths, rows, X):
    """Turn the products <x, y> of some rows with all rows X (n, d) into distances |x - y|, in place.

    |x|^2 + |y|^2 - 2 <x, y> loses digits where rows are near each other; these distances are computed from X.
    """
    for c in range(products.shape[0]):
        square = lengths[rows[c]]
        for o in range(products.shape[1]):
            gap = square + lengths[o] - 2.0 * products[c, o]
            products[c, o] = np.sqrt(gap if gap > 0.0 else 0.0)
        for o in range(products.shape[1]):
            if products[c, o] * products[c, o] < _CLOSE * (square + lengths[o]):
                products[c, o] = _apart(X[rows[c]], X[o])


@compiled
def _apart(x, y):
    square = 0.0
    for j in range(len(x)):
        gap = x[j] - y[j]
        square += gap * gap
    return np.sqrt(square)


@compiled
def assign_mixed(X, prototypes, nominal, gamma, labels, costs):
    """Write the nearest prototype of each row, the first of equals, and the dissimilarity to it.

    X (n, d) with NaN for gaps, prototypes (k, d), nominal (d,) bool: squares of differences, gamma for names that
    differ; a gap adds nothing.
    """
    n, d = X.shape
    for i in range(n):
        best, who = -1.0, 0
        for j in range(prototypes.shape[0]):
            square, differ = 0.0, 0
            for f in range(d):
                x = X[i, f]
                if x == x:
                    gap = x - prototypes[j, f]
                    if nominal[f]:
                        differ += gap != 0.0
                    else:
                        square += gap * gap
            total = square + gamma * differ
            if best < 0.0 or total < best:
                best, who = total, j
        labels[i], costs[i] = who, best
