"""Interventions: nodes that are set from outside, so that nothing can be concluded about their causes (Pearl)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from assay.bayes_net._network import Network


def do(net: "Network", known: Mapping[int, float]) -> "Network":
    """Return the network whose `known` nodes have these values and no parents."""
    numbers = [node for node in known if net.is_number(node)]
    kept = [node for node in range(len(net.names)) if node not in numbers]
    place = {node: i for i, node in enumerate(kept)}
    parents: list[tuple[int, ...]] = []
    tables = []
    for node in kept:
        if node in known:
            parents.append(())
            tables.append(np.eye(net.sizes[node])[int(known[node])])
            continue
        parents.append(tuple(place[one] for one in net.parents[node] if one not in numbers))
        tables.append(_with_values(net, node, known) if net.is_number(node) else net.tables[node])
    names = tuple(net.names[node] for node in kept)
    states = tuple(net.states[node] for node in kept)
    return type(net)(names, states, tuple(parents), tuple(tables))


def _with_values(net: "Network", node: int, known: Mapping[int, float]) -> np.ndarray:
    """Return the table of a number with the values of numeric parents that are set moved into the intercept."""
    table = net.tables[node].copy()
    above = [one for one in net.parents[node] if net.is_number(one)]
    for k, one in enumerate(above):
        if one in known:
            table[..., 0] += table[..., 1 + k] * known[one]
    return np.delete(table, [1 + k for k, one in enumerate(above) if one in known], axis=-1)
