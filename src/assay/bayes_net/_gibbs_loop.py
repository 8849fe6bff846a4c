"""Compiled: one chain of Gibbs' method."""

import numpy as np

from assay.jit import compiled


@compiled
def chain(
    state, free, sizes, tables, starts, member, stride, begin, near, near_begin, asked, burn_in, draws, counts, b
):
    """Draw each free node in turn given all others, as often as `draws` has rows; count the states of `asked`.

    The distribution of a node given the rest is the product of its own table and those of its children, at the states
    of the others: `near` lists these tables, of logarithms, for each node, `member` and `stride` say which entry of one
    they are at.
    """
    p = np.empty(sizes.max())
    for t in range(len(draws)):
        for k in range(len(free)):
            v = free[k]
            r = sizes[v]
            p[:r] = 0.0
            for at in range(near_begin[v], near_begin[v + 1]):
                table = near[at]
                entry, step = starts[table], 0
                for i in range(begin[table], begin[table + 1]):
                    if member[i] == v:
                        step = stride[i]
                    else:
                        entry += state[member[i]] * stride[i]
                for s in range(r):
                    p[s] += tables[entry + s * step]
            top = p[0]
            for s in range(1, r):
                top = max(top, p[s])
            total = 0.0
            for s in range(r):
                p[s] = np.exp(p[s] - top)
                total += p[s]
            goal, s, run = draws[t, k] * total, 0, p[0]
            while s < r - 1 and (run <= goal or p[s] == 0.0):
                s += 1
                run += p[s]
            while p[s] == 0.0 and s > 0:
                s -= 1
            state[v] = s
        if burn_in == 0:
            cell = 0
            for node in asked:
                cell = cell * sizes[node] + state[node]
            counts[b, cell] += 1.0
