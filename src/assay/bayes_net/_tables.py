"""The arrays that a fitted network is stored as, and the network that they are.

sizes_ (d,)         number of states of each node, 0 for a number
edges_ (m, 2)       parent and child of each edge, in order of child and then of parent
counts_             for each node with states its rows by (parents in order, state), one table after the other
alpha_ (1,)         rows added to each entry: P = (count + alpha) / (sum + alpha r), equal shares if that is 0 / 0
gaussians_          for each number its table by (parents with states), of intercept, coefficients and spread
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from assay.bayes_net._network import Network
from assay.data.columns import ColumnType

Parents = Sequence[Sequence[int]]


def edges_of(parents: Parents) -> np.ndarray:
    """Return the edges (m, 2), sorted by child and parent."""
    found = [(one, child) for child, above in enumerate(parents) for one in sorted(above)]
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def parents_of(edges: np.ndarray, d: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(edges[edges[:, 1] == child, 0].tolist()) for child in range(d))


def flat(tables: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *(np.asarray(table, dtype=np.float64).ravel() for table in tables)])


def probabilities(counts: np.ndarray, alpha: float) -> np.ndarray:
    """Return (count + alpha) / (sum + alpha r) along the last axis, equal shares where there is nothing to count."""
    total = counts.sum(axis=-1, keepdims=True) + alpha * counts.shape[-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, (counts + alpha) / total, 1.0 / counts.shape[-1])


def unpacked(sizes: np.ndarray, edges: np.ndarray, counts: np.ndarray, gaussians: np.ndarray) -> list[np.ndarray]:
    """Return the table of each node: counts, or rows of intercept, coefficients and spread."""
    tables, at, other = [], 0, 0
    for node, above in enumerate(parents_of(edges, len(sizes))):
        shape = [int(sizes[one]) for one in above if sizes[one]]
        if sizes[node]:
            shape.append(int(sizes[node]))
            length = int(np.prod(shape))
            tables.append(counts[at : at + length].reshape(shape))
            at += length
        else:
            shape.append(len(above) - len(shape) + 2)
            length = int(np.prod(shape))
            tables.append(gaussians[other : other + length].reshape(shape))
            other += length
    return tables


def network_of(model: Any, types: Sequence[ColumnType]) -> Network:
    """Return the network that the arrays of a fitted learner are; `types` name the nodes and their states."""
    sizes, parents = model.sizes_, parents_of(model.edges_, len(model.sizes_))
    tables = unpacked(sizes, model.edges_, model.counts_, model.gaussians_)
    tables = [probabilities(one, float(model.alpha)) if sizes[i] else one for i, one in enumerate(tables)]
    states = tuple(kind.levels if kind.kind == "nominal" else None for kind in types)
    return Network(tuple(kind.name for kind in types), states, parents, tuple(tables))


def types_as_text(types: Sequence[ColumnType]) -> np.ndarray:
    """Return name, kind and levels of each column as JSON text."""
    return np.array([json.dumps([one.name, one.kind, list(one.levels)]) for one in types], dtype=str)


def types_from_text(records: Sequence[str]) -> tuple[ColumnType, ...]:
    """Return the types that `types_as_text` wrote."""
    return tuple(ColumnType(name, kind, tuple(levels)) for name, kind, levels in map(json.loads, records))
