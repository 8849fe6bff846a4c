"""Exact inference with numbers whose values are not known.

Given the states, the numbers of a network are jointly Gaussian. Those that are not known fall into groups that share
families; the product of a group's densities is the exponential of a quadratic form of its unknown numbers h,

    prod_f N(x_f; a_f + b_f' x_parents, s_f^2)  =  c exp(-|A h - r|^2 / 2),

for each combination of the states that its families depend on. Its integral is a factor over these states, and its
peak and curvature are the mean and the covariance of h (by a QR decomposition of A, which squares nothing).
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from assay.bayes_net import _exact, _graph

if TYPE_CHECKING:
    from assay.bayes_net._network import Network

LOG_2PI = float(np.log(2 * np.pi))


class Integrated(NamedTuple):
    """The factor of a group over the states that it depends on; means (..., hidden) and the upper triangular R of its
    unknown numbers, whose covariance is inverse(R) inverse(R)'."""

    factor: _exact.Factor
    hidden: list[int]
    means: np.ndarray
    R: np.ndarray


def groups(net: "Network", known: Mapping[int, float], needed: set[int]) -> list[_graph.Group]:
    """Return the groups of unknown numbers among the `needed` nodes, and the families that each stands in."""
    hidden = [node for node in sorted(needed) if net.is_number(node) and node not in known]
    return _graph.groups_of(net.parents, hidden, needed)


def integrate(net: "Network", group: _graph.Group, known: Mapping[int, float], memory: int) -> Integrated:
    """Integrate the unknown numbers of a group out of the product of its families."""
    over = {one for family in group.families for one in net.parents[family] if not net.is_number(one)}
    states = sorted(one for one in over if one not in known)
    shape = tuple(net.sizes[one] for one in states)
    F, H = len(group.families), len(group.nodes)
    needed = 32.0 * prod(shape) * F * (H + 1)
    if needed > memory:
        raise _exact.TooLargeError(needed, memory)
    A, r, log_spread = np.zeros((*shape, F, H)), np.zeros((*shape, F)), np.zeros(shape)
    for row, family in enumerate(group.families):
        table, numbers = _cut(net, family, known, states), [p for p in net.parents[family] if net.is_number(p)]
        spread = table[..., -1]
        rest = -table[..., 0]
        for column, one in [*zip(range(1, len(numbers) + 1), numbers), (None, family)]:
            slope = 1.0 if column is None else -table[..., column]
            if one in known:
                rest = rest + slope * known[one]
            else:
                A[..., row, group.nodes.index(one)] += slope / spread
        r[..., row] = -rest / spread
        log_spread += np.log(spread)
    Q, R = np.linalg.qr(A)
    along = np.einsum("...fh,...f->...h", Q, r)
    across = r - np.einsum("...fh,...h->...f", Q, along)
    volume = np.log(np.abs(np.diagonal(R, axis1=-2, axis2=-1))).sum(axis=-1)
    logs = -0.5 * (across**2).sum(axis=-1) - volume - log_spread - 0.5 * (F - H) * LOG_2PI
    means = np.linalg.solve(R, along[..., None])[..., 0]
    return Integrated((tuple(states), logs), group.nodes, means, R)


def _cut(net: "Network", family: int, known: Mapping[int, float], states: Sequence[int]) -> np.ndarray:
    """Return the table of a number at the evidence, with one axis for each of `states` and the last for its entries."""
    over = [one for one in net.parents[family] if not net.is_number(one)]
    table = net.tables[family][tuple(int(known[one]) if one in known else slice(None) for one in over)]
    left = tuple(one for one in over if one not in known)
    return np.stack([_exact.aligned((left, table[..., k]), states) for k in range(table.shape[-1])], axis=-1)


def moments(net: "Network", node: int, known: Mapping[int, float], memory: int) -> tuple[float, float]:
    """Return mean and standard deviation of a number given the evidence."""
    needed = _graph.ancestors(net.parents, {node, *known})
    group = next(one for one in groups(net, known, needed) if node in one.nodes)
    found = integrate(net, group, known, memory)
    states = found.factor[0]
    logs = _exact.eliminate(net.factors(known, {node}, memory), states, net.sizes, memory).logs
    total = _exact.log_sum(logs)
    net.require_possible(float(total))
    weight = np.exp(logs - total)
    at = group.nodes.index(node)
    mean = float((weight * found.means[..., at]).sum())
    variance = (np.linalg.inv(found.R)[..., at, :] ** 2).sum(axis=-1)
    return mean, float(np.sqrt((weight * (variance + (found.means[..., at] - mean) ** 2)).sum()))
