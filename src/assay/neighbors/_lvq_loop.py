"""The compiled pass of learning vector quantisation."""

from assay.jit import compiled


@compiled
def lvq_pass(X, y, order, rate, low, high, prototypes, codes):
    """Visit the rows in `order`: the nearest prototype, the first of equals, moves by `rate` of its gap to the row,
    towards it if their labels agree, else away from it, but not out of the box from low (d,) to high (d,).

    Writes prototypes (q, d); returns how many rows disagreed."""
    q, d = prototypes.shape
    wrong = 0
    for i in order:
        nearest, least = 0, -1.0
        for c in range(q):
            total = 0.0
            for j in range(d):
                gap = X[i, j] - prototypes[c, j]
                total += gap * gap
            if least < 0.0 or total < least:
                nearest, least = c, total
        agree = codes[nearest] == y[i]
        wrong += not agree
        step = rate if agree else -rate
        for j in range(d):
            moved = prototypes[nearest, j] + step * (X[i, j] - prototypes[nearest, j])
            prototypes[nearest, j] = min(max(moved, low[j]), high[j])
    return wrong
