"""Compiled loops: contingency tables of many families and their scores; messages of a junction tree; a Gibbs chain."""

from math import lgamma, log

import numpy as np

from assay.jit import compiled

_BLOCK = 4096  # rows whose codes stay in the nearest cache while every table takes them in
TINY = 1e-280  # what is positive and smaller may be lost: then the messages are sent again, in logarithms
SMALL = 1e-100  # a table whose largest entry is smaller is divided by it


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


@compiled
def calibrate(potential, start, parent, message_start, to_message, parent_start, parent_map):
    """Make every clique's table the sum of the joint over the nodes that it lacks; return the ln of the total, NaN if a
    positive number became so small on the way that it may be lost.

    `potential` holds the cliques' tables one after the other, at `start`. Clique c sends sums of its cells, at
    `to_message`, up to its `parent` (-1 for a root), whose cells `parent_map` names for it; each table is divided by
    its total, whose logarithm is kept. On the way down a parent sends its sums, divided by what it was sent. Children
    stand before their parents.
    """
    messages = np.zeros(message_start[-1])
    total = 0.0
    for c in range(len(parent)):
        first, last = start[c], start[c + 1]
        size = 0.0
        for i in range(first, last):
            size += potential[i]
        if not size > 0.0:
            return -np.inf
        total += np.log(size)
        for i in range(first, last):
            potential[i] /= size
        if parent[c] < 0:
            continue
        at = message_start[c]
        for i in range(first, last):
            messages[at + to_message[i]] += potential[i]
        above, map_start, end = start[parent[c]], parent_start[c], start[parent[c] + 1]
        least, most = 1.0, 0.0
        for i in range(end - above):
            old, sent = potential[above + i], messages[at + parent_map[map_start + i]]
            new = old * sent
            potential[above + i] = new
            if new > most:
                most = new
            if new < least and old > 0.0 and sent > 0.0:
                least = new
        if least < TINY:
            return np.nan
        if 0.0 < most < SMALL:
            total += np.log(most)
            for i in range(above, end):
                potential[i] /= most
    for c in range(len(parent) - 1, -1, -1):
        if parent[c] < 0:
            continue
        at, end = message_start[c], message_start[c + 1]
        down = np.zeros(end - at)
        above, map_start = start[parent[c]], parent_start[c]
        for i in range(start[parent[c] + 1] - above):
            down[parent_map[map_start + i]] += potential[above + i]
        for j in range(end - at):
            down[j] = down[j] / messages[at + j] if messages[at + j] > 0.0 else 0.0
        for i in range(start[c], start[c + 1]):
            potential[i] *= down[to_message[i]]
    return total


@compiled
def _log_sums(logs, first, last, place, begin, result):
    """Set result[j] to ln of the sum of exp(logs[i]) over the cells i whose place, from `begin` on, is j."""
    result[:] = -np.inf
    for i in range(last - first):
        j = place[begin + i]
        result[j] = max(result[j], logs[first + i])
    sums = np.zeros(len(result))
    for i in range(last - first):
        j = place[begin + i]
        if result[j] > -np.inf:
            sums[j] += np.exp(logs[first + i] - result[j])
    for j in range(len(result)):
        if result[j] > -np.inf:
            result[j] += np.log(sums[j])


@compiled
def calibrate_logs(potential, start, parent, message_start, to_message, parent_start, parent_map):
    """Do what `calibrate` does, of logarithms: nothing underflows."""
    messages = np.empty(message_start[-1])
    whole = np.empty(1)
    zeros = np.zeros(start[-1], dtype=np.int32)
    total = 0.0
    for c in range(len(parent)):
        first, last = start[c], start[c + 1]
        _log_sums(potential, first, last, zeros, 0, whole)
        if whole[0] == -np.inf:
            return -np.inf
        total += whole[0]
        for i in range(first, last):
            potential[i] -= whole[0]
        if parent[c] < 0:
            continue
        sent = messages[message_start[c] : message_start[c + 1]]
        _log_sums(potential, first, last, to_message, first, sent)
        above, map_start = start[parent[c]], parent_start[c]
        for i in range(start[parent[c] + 1] - above):
            potential[above + i] += sent[parent_map[map_start + i]]
    for c in range(len(parent) - 1, -1, -1):
        if parent[c] < 0:
            continue
        sent = messages[message_start[c] : message_start[c + 1]]
        down = np.empty(len(sent))
        _log_sums(potential, start[parent[c]], start[parent[c] + 1], parent_map, parent_start[c], down)
        for j in range(len(sent)):
            down[j] = down[j] - sent[j] if sent[j] > -np.inf else -np.inf
        for i in range(start[c], start[c + 1]):
            potential[i] += down[to_message[i]]
    return total


@compiled
def marginals(potential, first, length, stride, states, result, result_start):
    """Sum the cells of one clique for each node into the node's states; its state changes every `stride` cells."""
    for v in range(len(first)):
        at, i = first[v], 0
        while i < length[v]:
            for state in range(states[v]):
                part = 0.0
                for _ in range(stride[v]):
                    part += potential[at + i]
                    i += 1
                result[result_start[v] + state] += part
        size = 0.0
        for j in range(result_start[v], result_start[v + 1]):
            size += result[j]
        for j in range(result_start[v], result_start[v + 1]):
            result[j] /= size


@compiled
def _advance(digit, size, step, first, last, at):
    """Go to the next cell of a table with axes first, ..., last - 1, the last fastest; return its new sum of steps."""
    axis = last - 1
    while axis >= first:
        digit[axis - first] += 1
        at += step[axis]
        if digit[axis - first] < size[axis]:
            return at
        at -= size[axis] * step[axis]
        digit[axis - first] = 0
        axis -= 1
    return at


@compiled
def places(size, step, begin, start):
    """Return for each cell of tables, one after the other at `start`, the sum of its indices times `step`."""
    result = np.empty(start[-1], dtype=np.int32)
    for k in range(len(begin) - 1):
        first, last, at = begin[k], begin[k + 1], 0
        digit = np.zeros(last - first, dtype=np.int64)
        for cell in range(start[k], start[k + 1]):
            result[cell] = at
            at = _advance(digit, size, step, first, last, at)
    return result


@compiled
def multiply_in(potential, start, home, size, step, begin, tables, table_start):
    """Add each of `tables`, logarithms, to the cells of its home, a clique whose axes have these sizes and steps."""
    for k in range(len(home)):
        first, last, at = begin[k], begin[k + 1], table_start[k]
        digit = np.zeros(last - first, dtype=np.int64)
        for cell in range(start[home[k]], start[home[k] + 1]):
            potential[cell] += tables[at]
            at = _advance(digit, size, step, first, last, at)


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
