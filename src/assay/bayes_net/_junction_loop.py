"""Compiled: messages between the cliques of a junction tree."""

import numpy as np

from assay.jit import compiled

TINY = 1e-280  # what is positive and smaller may be lost: then the messages are sent again, in logarithms
SMALL = 1e-100  # a table whose largest entry is smaller is divided by it


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
    found = np.empty(start[-1], dtype=np.int32)
    for k in range(len(begin) - 1):
        first, last, at = begin[k], begin[k + 1], 0
        digit = np.zeros(last - first, dtype=np.int64)
        for cell in range(start[k], start[k + 1]):
            found[cell] = at
            at = _advance(digit, size, step, first, last, at)
    return found


@compiled
def multiply_in(potential, start, home, size, step, begin, tables, table_start):
    """Add each of `tables`, logarithms, to the cells of its home, a clique whose axes have these sizes and steps."""
    for k in range(len(home)):
        first, last, at = begin[k], begin[k + 1], table_start[k]
        digit = np.zeros(last - first, dtype=np.int64)
        for cell in range(start[home[k]], start[home[k] + 1]):
            potential[cell] += tables[at]
            at = _advance(digit, size, step, first, last, at)
