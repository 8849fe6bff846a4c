"""Rows of numbers and names: the compiled pass that finds the nearest prototype."""

from assay.jit import compiled


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
