"""Compiled: messages between the cliques of a junction tree."""

import numpy as np

from assay.jit import compiled


@compiled
def calibrate(potential, start, parent, order, message_start, to_message, parent_start, parent_map):
    """Make every clique's table the sum of the joint over the nodes that it lacks; return the ln of the total.

    `potential` holds the cliques' tables one after the other, at `start`. Clique c sends sums of its cells, at
    `to_message`, up to its `parent` (-1 for a root), whose cells `parent_map` names for it; each table is then divided
    by its total, whose logarithm is kept, so that nothing underflows. On the way down a parent sends its sums, divided
    by what it was sent. Cliques come in an order in which children stand before their parents.
    """
    messages = np.zeros(message_start[-1])
    total = 0.0
    for c in order:
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
        above, map_start = start[parent[c]], parent_start[c]
        for i in range(start[parent[c] + 1] - above):
            potential[above + i] *= messages[at + parent_map[map_start + i]]
    for k in range(len(order) - 1, -1, -1):
        c = order[k]
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
def marginals(potential, first, length, node_map, node_map_start, result, result_start):
    """Sum the cells of one clique for each node into the node's states."""
    for v in range(len(first)):
        at, where = result_start[v], node_map_start[v]
        for i in range(length[v]):
            result[at + node_map[where + i]] += potential[first[v] + i]
        size = 0.0
        for j in range(result_start[v], result_start[v + 1]):
            size += result[j]
        for j in range(result_start[v], result_start[v + 1]):
            result[j] /= size
