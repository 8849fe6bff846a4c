"""Inference by drawing: forwards from the network, with weights, or by Gibbs' method; with standard errors."""

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from assay.bayes_net._network import Network

_BATCHES = 32  # means of consecutive draws, nearly independent of each other, from which a standard error follows


def ancestral(net: "Network", n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n rows, each node drawn after its parents."""
    if n < 1:
        raise ValueError(f"Network: n_samples must be an integer >= 1; got {n!r}.")
    return _forward(net, {}, n, rng)[0]


def _forward(
    net: "Network", known: Mapping[int, float], n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in which known nodes have their values, and ln of their weights, the probability of these."""
    rows, logs = np.empty((n, len(net.names))), np.zeros(n)
    for node in net.order:
        if node in known:
            rows[:, node] = known[node]
            logs += net.log_conditional(node, rows)
        else:
            rows[:, node] = _draw(net, node, rows, rng)
    return rows, logs


def _draw(net: "Network", node: int, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    table, above = net.tables[node], net.parents[node]
    where = tuple(rows[:, one].astype(np.intp) for one in above if not net.is_number(one))
    at = np.broadcast_to(table[where], (len(rows), table.shape[-1]))
    if net.is_number(node):
        numbers = rows[:, [one for one in above if net.is_number(one)]]
        return at[:, 0] + np.einsum("ij,ij->i", at[:, 1:-1], numbers) + at[:, -1] * rng.normal(size=len(rows))
    ends = np.cumsum(at, axis=1)
    drawn = (ends < (rng.random(len(rows)) * ends[:, -1])[:, None]).sum(axis=1)
    # A draw at the very end of a row of the table must not fall on a state of probability 0.
    last = table.shape[-1] - 1 - np.argmax(at[:, ::-1] > 0, axis=1)
    return np.minimum(drawn, last)


def weighted(
    net: "Network", asked: list[int], known: Mapping[int, float], n: int, burn_in: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return P(asked | known) by rows weighted with the probability of the evidence, and its standard errors."""
    rows, weight = _weighted_rows(net, known, n, rng)
    shape = tuple(net.sizes[node] for node in asked)
    cell = np.ravel_multi_index(tuple(rows[:, node].astype(np.intp) for node in asked), shape)
    table = np.bincount(cell, weights=weight, minlength=int(np.prod(shape)))
    # Of the ratio sum w f / sum w the variance is sum w^2 (f - mean)^2 / (sum w)^2.
    square = np.bincount(cell, weights=weight**2, minlength=table.size)
    error = np.sqrt(np.maximum(square * (1 - 2 * table) + table**2 * np.sum(weight**2), 0.0))
    return table.reshape(shape), error.reshape(shape)


def _weighted_rows(
    net: "Network", known: Mapping[int, float], n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    if n < 2:
        raise ValueError(f"Network: n_samples must be an integer >= 2; got {n!r}.")
    rows, logs = _forward(net, known, n, rng)
    if logs.max() == -np.inf:
        raise ValueError(f"Network: none of {n} rows drawn agrees with the evidence; draw more, or ask exactly.")
    weight = np.exp(logs - logs.max())
    return rows, weight / weight.sum()


def moments(
    net: "Network", node: int, known: Mapping[int, float], n: int, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Return mean, standard deviation and the standard error of the mean of a number, by weighted rows."""
    rows, weight = _weighted_rows(net, known, n, rng)
    mean = float(weight @ rows[:, node])
    apart = (rows[:, node] - mean) ** 2
    return mean, float(np.sqrt(weight @ apart)), float(np.sqrt(weight**2 @ apart))


def gibbs(
    net: "Network", asked: list[int], known: Mapping[int, float], n: int, burn_in: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return P(asked | known) by one chain of Gibbs' method, and standard errors from the means of 32 batches."""
    from assay.bayes_net._gibbs_loop import chain

    if any(one is None for one in net.states):
        raise ValueError("Network: Gibbs' method draws states alone; with numbers use method='weighting'.")
    if n < 2 * _BATCHES or burn_in < 0:
        raise ValueError(f"Network: n_samples must be at least {2 * _BATCHES} and burn_in at least 0.")
    if any((table == 0).any() for table in net.tables):
        warnings.warn(
            "Network: some probabilities are 0, so that a chain of Gibbs' method may never leave a part of the states; "
            "compare with method='weighting'.",
            stacklevel=4,
        )
    state = _start(net, known, rng)
    free = np.array([node for node in range(len(net.names)) if node not in known], dtype=np.int64)
    plan = _plan(net)
    n -= n % _BATCHES
    counts = np.zeros((_BATCHES, int(np.prod([net.sizes[node] for node in asked]))))
    chain(state, free, *plan, np.array(asked), burn_in, rng.random((burn_in, len(free))), counts, 0)
    for batch in range(_BATCHES):
        draws = rng.random((n // _BATCHES, len(free)))
        chain(state, free, *plan, np.array(asked), 0, draws, counts, batch)
    means = counts / (n // _BATCHES)
    error = means.std(axis=0, ddof=1) / np.sqrt(_BATCHES)
    shape = tuple(net.sizes[node] for node in asked)
    return means.mean(axis=0).reshape(shape), error.reshape(shape)


def _start(net: "Network", known: Mapping[int, float], rng: np.random.Generator) -> np.ndarray:
    """Return states of positive probability that agree with the evidence."""
    for n in (100, 10_000, 100_000):
        rows, logs = _forward(net, known, n, rng)
        if logs.max() > -np.inf:
            return rows[int(np.argmax(logs))].astype(np.int64)
    raise ValueError("Network: no row drawn agrees with the evidence; ask exactly (method='elimination').")


def _plan(net: "Network") -> tuple[Any, ...]:
    """Return the tables one after the other, and for each node which of their entries depend on it and how."""
    starts = np.concatenate([[0], np.cumsum([table.size for table in net.tables])])
    steps: list[dict[int, int]] = []
    for node, above in enumerate(net.parents):
        axes = [*above, node]
        strides = np.cumprod([1, *[net.sizes[one] for one in axes[:0:-1]]])[::-1]
        steps.append(dict(zip(axes, strides.tolist())))
    members = [sorted(step) for step in steps]
    flat = np.array([one for part in members for one in part], dtype=np.int64)
    stride = np.array([steps[node][one] for node, part in enumerate(members) for one in part], dtype=np.int64)
    begin = np.concatenate([[0], np.cumsum([len(part) for part in members])])
    near = [
        [node, *(child for child, above in enumerate(net.parents) if node in above)] for node in range(len(members))
    ]
    near_begin = np.concatenate([[0], np.cumsum([len(part) for part in near])])
    tables = np.concatenate([table.ravel() for table in net.tables])
    return (
        np.array(net.sizes), tables, starts[:-1], flat, stride, begin,
        np.array([one for part in near for one in part]), near_begin,
    )  # fmt: skip
