"""Where to draw the nodes of a directed acyclic graph so that its edges can be followed.

Nodes stand in layers, children below parents (Sugiyama, Tagawa and Toda 1981). An edge that passes layers has a place
of its own in each, so that it meets no node there. Layers are ordered by the mean places of neighbours, up and down,
and the order with the fewest crossings is kept; then places move towards their neighbours as far as there is room.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

_SWEEPS = 24
_STEPS = 100
_GAP = 0.25  # between two places of a layer


class Layout(NamedTuple):
    """x and layer of each node; of each edge its x in the layers from parent to child, both among them."""

    x: np.ndarray
    layer: np.ndarray
    routes: list[list[float]]


class _Places(NamedTuple):
    """Nodes, and after them the places of long edges; `up` and `down` are their neighbours in the layers beside."""

    layers: list[list[int]]
    up: list[list[int]]
    down: list[list[int]]
    width: list[float]
    chains: list[list[int]]


def layered(parents: Sequence[Sequence[int]], order: Sequence[int], width: Sequence[float]) -> Layout:
    """Return the layout of a graph; `order` has parents before children, `width` the room that each node takes."""
    layer = _layers(parents, order)
    places = _places(parents, layer, width)
    best, fewest = [list(one) for one in places.layers], _crossings(places.layers, places.down)
    for sweep in range(_SWEEPS):
        _sort(places, downwards=sweep % 2 == 0)
        crossings = _crossings(places.layers, places.down)
        if crossings < fewest:
            best, fewest = [list(one) for one in places.layers], crossings
    x = _spread(places._replace(layers=best))
    return Layout(x[: len(parents)], layer, [[float(x[one]) for one in chain] for chain in places.chains])


def _layers(parents: Sequence[Sequence[int]], order: Sequence[int]) -> np.ndarray:
    """Return the layer of each node: as high as its parents let it, unless it has more children, then near these."""
    found = np.zeros(len(parents), dtype=int)
    children: list[list[int]] = [[] for _ in parents]
    for node in order:
        found[node] = max((found[one] + 1 for one in parents[node]), default=0)
        for one in parents[node]:
            children[one].append(node)
    for node in reversed(order):
        if len(children[node]) > len(parents[node]):
            found[node] = min(found[one] for one in children[node]) - 1
    return found


def _places(parents: Sequence[Sequence[int]], layer: np.ndarray, width: Sequence[float]) -> _Places:
    layers: list[list[int]] = [np.flatnonzero(layer == k).tolist() for k in range(layer.max(initial=0) + 1)]
    up: list[list[int]] = [[] for _ in parents]
    down: list[list[int]] = [[] for _ in parents]
    found = _Places(layers, up, down, list(width), [])
    for child, above in enumerate(parents):
        for parent in above:
            chain = [parent]
            for k in range(layer[parent] + 1, layer[child]):
                chain.append(len(found.width))
                found.width.append(0.0)
                layers[k].append(chain[-1])
                up.append([])
                down.append([])
            chain.append(child)
            for one, other in pairwise(chain):
                down[one].append(other)
                up[other].append(one)
            found.chains.append(chain)
    return found


def _sort(places: _Places, downwards: bool) -> None:
    """Order each layer by the mean places of the neighbours in the layer before it."""
    layers, near = (places.layers, places.up) if downwards else (places.layers[::-1], places.down)
    for before, here in pairwise(layers):
        at = {one: k for k, one in enumerate(before)}
        own = {one: k for k, one in enumerate(here)}
        mean = {one: np.mean([at[other] for other in near[one]]) if near[one] else own[one] for one in here}
        here.sort(key=lambda one: (mean[one], own[one]))


def _crossings(layers: Sequence[Sequence[int]], down: Sequence[Sequence[int]]) -> int:
    total = 0
    for here, below in pairwise(layers):
        at = {one: k for k, one in enumerate(below)}
        ends = np.array([end for one in here for end in sorted(at[other] for other in down[one])])
        starts = np.array([k for k, one in enumerate(here) for _ in down[one]])
        crossed = (ends[:, None] > ends) & (starts[:, None] < starts)
        total += int(crossed.sum())
    return total


def _spread(places: _Places) -> np.ndarray:
    """Return the x of all places: near their neighbours, in the order of the layer, and so far apart that all fit."""
    x = np.zeros(len(places.width))
    for here in places.layers:
        x[here] = _apart(places, here)
        x[here] -= x[here].mean()
    for sweep in range(_STEPS):
        for here in places.layers if sweep % 2 == 0 else places.layers[::-1]:
            offset = _apart(places, here)
            pulls = [_pull(places, one, x) for one in here]
            wished, weight = (np.array(part) for part in zip(*pulls))
            x[here] = isotonic_regression(wished - offset, weights=weight).x + offset
    return x


def _pull(places: _Places, one: int, x: np.ndarray) -> tuple[float, float]:
    """Return where the neighbours of a place would have it, and how strongly: a long edge should run straight first."""
    near = places.up[one] + places.down[one]
    pulls = [8.0 if places.width[one] == places.width[other] == 0 else 2.0 if places.width[other] == 0 else 1.0
             for other in near]  # fmt: skip
    return (float(np.average(x[near], weights=pulls)), float(sum(pulls))) if near else (float(x[one]), 0.1)


def _apart(places: _Places, here: Sequence[int]) -> np.ndarray:
    """Return how far from the first each place of a layer must stand, at least."""
    width = np.array([places.width[one] for one in here])
    return np.concatenate([[0.0], np.cumsum((width[:-1] + width[1:]) / 2 + _GAP)])
