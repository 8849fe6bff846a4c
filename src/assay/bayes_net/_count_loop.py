"""Compiled: contingency tables of many families at once, and their scores."""

from math import lgamma, log

from assay.jit import compiled

_BLOCK = 4096  # rows whose codes stay in the nearest cache while every table takes them in


@compiled
def count_with(config, codes, others, sizes, starts, counts):
    """Count rows by (config, state of j) for every column j of `others`; its table begins at starts of j.

    Two columns are counted side by side, so that an increment need not wait for the one before it.
    """
    n, many = len(config), len(others)
    for first in range(0, n, _BLOCK):
        last = min(first + _BLOCK, n)
        for k in range(0, many - 1, 2):
            one, two = codes[others[k]], codes[others[k + 1]]
            at, other = starts[k], starts[k + 1]
            r, s = sizes[others[k]], sizes[others[k + 1]]
            for i in range(first, last):
                counts[at + config[i] * r + one[i]] += 1
                counts[other + config[i] * s + two[i]] += 1
        if many % 2:
            j, at = others[many - 1], starts[many - 1]
            r = sizes[j]
            for i in range(first, last):
                counts[at + config[i] * r + codes[j, i]] += 1


@compiled
def family_score(counts, at, q, r, s, swapped, factor, samples, powers):
    """Return the cost of a family: child of r states, parents of q combinations, one more of s states.

    `counts` has one entry for (parents, child, other), the last fastest; with `swapped` (and q = 1) the child is the
    last. `factor` >= 0: factor times the number of parameters minus the log-likelihood; else minus the logarithm of the
    Dirichlet marginal likelihood with `samples` rows spread evenly over all cells. powers[c] = c ln c.
    """
    cost = 0.0
    if swapped:
        r, s, step_child, step_other = s, r, 1, s
    else:
        step_child, step_other = s, 1
    row_prior, cell_prior = samples / (q * s), samples / (q * s * r)
    for p in range(q):
        for o in range(s):
            total, part = 0, 0.0
            for x in range(r):
                c = counts[at + p * r * s + x * step_child + o * step_other]
                if c > 0:
                    total += c
                    if factor < 0:
                        part += lgamma(cell_prior + c) - lgamma(cell_prior)
                    else:
                        part += powers[c] if c < len(powers) else c * log(c)
            if total > 0:
                if factor < 0:
                    cost -= part + lgamma(row_prior) - lgamma(row_prior + total)
                else:
                    cost -= part - (powers[total] if total < len(powers) else total * log(total))
    return cost + (factor * (r - 1) * q * s if factor > 0 else 0.0)


@compiled
def scores_with(config, codes, child, q, others, sizes, starts, counts, mirrored, factor, samples, powers, out, back):
    """Count, and write the cost of the child's family with each of `others` added; with `mirrored` (no other parents)
    also that of each of the others with the child as its parent."""
    count_with(config, codes, others, sizes, starts, counts)
    r = sizes[child]
    for k in range(len(others)):
        j = others[k]
        out[j] = family_score(counts, starts[k], q, r, sizes[j], False, factor, samples, powers)
        if mirrored:
            back[j] = family_score(counts, starts[k], 1, r, sizes[j], True, factor, samples, powers)
