"""Mini-batches of k-means: the compiled half of a step."""

import numpy as np

from assay.jit import compiled


@compiled(reduction=True)
def absorb(batch, weight, products, lengths, centers, counts, labels):
    """Give each row of a batch its nearest centre, move the centres to the means of all rows they have had; return the
    sum of weighted squared distances before.

    products (n, k): <x, c>; lengths (k,): |c|^2, of which the least of lengths - 2 products tells the nearest; centers
    (k, d) and counts (k,), the weight each centre has had, are changed; labels (n,) are written.
    """
    n, k = products.shape
    d = batch.shape[1]
    sums, gained = np.zeros((k, d)), np.zeros(k)
    inertia = 0.0
    for i in range(n):
        best, who = np.inf, 0
        for j in range(k):
            value = lengths[j] - 2.0 * products[i, j]
            if value < best:
                best, who = value, j
        labels[i] = who
        square = 0.0
        for f in range(d):
            apart = batch[i, f] - centers[who, f]
            square += apart * apart
            sums[who, f] += weight[i] * batch[i, f]
        inertia += weight[i] * square
        gained[who] += weight[i]
    for j in range(k):
        if gained[j] > 0.0:
            before, after = counts[j], counts[j] + gained[j]
            for f in range(d):
                centers[j, f] = (centers[j, f] * before + sums[j, f]) / after
            counts[j] = after
    return inertia
