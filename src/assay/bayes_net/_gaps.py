"""Rows with gaps: the probability of what is known of them, and EM for the tables.

Given the known entries of a row its gaps fall into groups that are independent of each other; a group is summed by
listing the values that its gaps can have together. Groups that are too large for that go through a junction tree.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import logsumexp, xlogy

from assay.bayes_net import _graph, _inference
from assay.bayes_net._inference import JunctionTree
from assay.bayes_net._network import LOG_2PI, Network, probabilities
from assay.optim.em import Expected

_MOST_CELLS = 2**12  # values of one group of gaps that are listed
_HELD = 2**21  # numbers held at once


def log_known(net: Network, rows: np.ndarray) -> np.ndarray:
    """Return ln P of what is known of each row, NaN where there is a gap."""
    gaps = gaps_of(net, rows)
    if not gaps.any():
        return net.log_joint(rows)
    found = np.empty(len(rows))
    for missing, at in _patterns(gaps):
        for part in np.array_split(at, max(1, len(at) * _MOST_CELLS // _HELD)):
            found[part] = _log_known(net, rows[part], missing)
    return found


def gaps_of(net: Network, rows: np.ndarray) -> np.ndarray:
    """Return where nodes with states lack a value; numbers that do are left out of the product and need no sum."""
    return np.isnan(rows) & [states is not None for states in net.states]


def _patterns(gaps: np.ndarray) -> Iterator[tuple[list[int], np.ndarray]]:
    """Yield the nodes that lack a value and the rows that lack these."""
    patterns, which = np.unique(gaps, axis=0, return_inverse=True)
    which = which.ravel()
    order = np.argsort(which, kind="stable")
    for pattern, at in zip(patterns, np.split(order, np.cumsum(np.bincount(which))[:-1])):
        yield np.flatnonzero(pattern).tolist(), at


def _log_known(net: Network, rows: np.ndarray, missing: list[int]) -> np.ndarray:
    known = [node for node in range(len(net.names)) if node not in missing]
    needed = _graph.ancestors(net.parents, known)
    groups = _graph.groups_of(net.parents, [node for node in missing if node in needed], needed)
    if any(_cells(net, group) > _MOST_CELLS for group in groups):
        return np.array([_by_elimination(net, row) for row in rows])
    touched = {family for group in groups for family in group.families}
    total = np.zeros(len(rows))
    for family in needed - touched:
        total += net.log_conditional(family, rows)
    for group in groups:
        joint = joint_logs(net, rows, group)
        top = joint.max(axis=1)
        total += np.where(top > -np.inf, logsumexp(joint, axis=1), -np.inf)
    return total


def _by_elimination(net: Network, row: np.ndarray) -> float:
    known = {node: float(row[node]) for node in range(len(row)) if not np.isnan(row[node])}
    return float(_inference.eliminate(net.factors(known, []), [], net.sizes, _inference.MEMORY).logs)


def _cells(net: Network, group: _graph.Group) -> float:
    return float(np.prod([float(net.sizes[node]) for node in group.nodes]))


def joint_logs(net: Network, rows: np.ndarray, group: _graph.Group) -> np.ndarray:
    """Return the sum of the group's log-tables for each row and each choice of its gaps, (rows, choices)."""
    shape = [net.sizes[node] for node in group.nodes]
    total = np.zeros((len(rows), *shape))
    for family in group.families:
        total += _log_table(net, rows, group.nodes, family)
    return total.reshape(len(rows), -1)


def _log_table(net: Network, rows: np.ndarray, missing: Sequence[int], family: int) -> np.ndarray:
    """Return ln P(x | parents) with one axis for the rows and one for each missing node (length 1 if absent)."""

    def at(node: int) -> np.ndarray:
        if node in missing:
            axes = [1] * (1 + len(missing))
            axes[1 + missing.index(node)] = net.sizes[node]
            return np.arange(net.sizes[node]).reshape(axes)
        return rows[:, node].astype(np.intp).reshape(-1, *[1] * len(missing))

    above, table = net.parents[family], net.tables[family]
    where = tuple(at(node) for node in above if not net.is_number(node))
    if not net.is_number(family):
        with np.errstate(divide="ignore"):
            return np.log(table[(*where, at(family))])
    chosen = table[where]
    wide = (-1, *[1] * len(missing))
    mean = chosen[..., 0].copy()
    for k, node in enumerate(one for one in above if net.is_number(one)):
        mean = mean + chosen[..., 1 + k] * rows[:, node].reshape(wide)
    apart = (rows[:, family].reshape(wide) - mean) / chosen[..., -1]
    value = -0.5 * apart**2 - np.log(chosen[..., -1]) - 0.5 * LOG_2PI
    return np.where(np.isnan(rows[:, family].reshape(wide)), 0.0, value)


# EM ------------------------------------------------------------------------------------------------------------


class NetworkWithGaps:
    """Tables of a given graph, of rows with gaps, for `optim.em.em`; parameters are the tables of all nodes.

    Equal rows are put together first. With `alpha` > 0 what never falls is the log-likelihood plus alpha times the sum
    of the logarithms of all table entries, the logarithm of the posterior density up to a constant.
    """

    exact = True

    def __init__(self, net: Network, rows: np.ndarray, alpha: float, weight: np.ndarray | None = None):
        self.net, self.alpha = net, alpha
        self.rows, which = np.unique(rows, axis=0, return_inverse=True)
        self.times = np.bincount(which.ravel(), weight)

    def e_step(self, parameters: Sequence[np.ndarray]) -> Expected:
        net = self._with(parameters)
        counts = [np.zeros(table.shape) for table in net.tables]
        total = 0.0
        for missing, at in _patterns(gaps_of(net, self.rows)):
            for part in np.array_split(at, max(1, len(at) * _MOST_CELLS // _HELD)):
                total += self._expect(net, part, missing, counts)
        return Expected(total + self._prior(parameters), counts)

    def m_step(self, statistics: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [
            table if self.net.is_number(i) else probabilities(counts, self.alpha)
            for i, (counts, table) in enumerate(zip(statistics, self.net.tables))
        ]

    def log_likelihood(self, parameters: Sequence[np.ndarray]) -> float:
        values = log_known(self._with(parameters), self.rows)
        return float(self.times @ values) + self._prior(parameters)

    def _prior(self, parameters: Sequence[np.ndarray]) -> float:
        tables = [table for i, table in enumerate(parameters) if not self.net.is_number(i)]
        return float(sum(xlogy(self.alpha, table).sum() for table in tables))

    def _with(self, parameters: Sequence[np.ndarray]) -> Network:
        return Network(self.net.names, self.net.states, self.net.parents, tuple(parameters))

    def _expect(self, net: Network, part: np.ndarray, missing: list[int], counts: list[np.ndarray]) -> float:
        """Add the expected counts of some rows; return their log-likelihood."""
        rows, times = self.rows[part], self.times[part].astype(np.float64)
        every = range(len(net.names))
        groups = _graph.groups_of(net.parents, missing, every)
        if any(_cells(net, group) > _MOST_CELLS for group in groups):
            return sum(_expect_by_tree(net, row, many, counts) for row, many in zip(rows, times))
        touched = {family for group in groups for family in group.families}
        total = np.zeros(len(rows))
        for family in set(every) - touched:
            total += net.log_conditional(family, rows)
            if not net.is_number(family):
                where = tuple(rows[:, node].astype(np.intp) for node in (*net.parents[family], family))
                np.add.at(counts[family], where, times)
        for group in groups:
            joint = joint_logs(net, rows, group)
            size = logsumexp(joint, axis=1)
            total += size
            share = np.exp(joint - size[:, None]) * times[:, None]
            _add_shares(net, rows, group, share, counts)
        return float(times @ total)


def _add_shares(
    net: Network, rows: np.ndarray, group: _graph.Group, share: np.ndarray, counts: list[np.ndarray]
) -> None:
    shape = [net.sizes[node] for node in group.nodes]
    share = share.reshape(len(rows), *shape)
    for family in group.families:
        if net.is_number(family):
            continue
        nodes = (*net.parents[family], family)
        mine = [node for node in group.nodes if node in nodes]
        small = share.sum(axis=tuple(1 + i for i, node in enumerate(group.nodes) if node not in nodes))
        if len(mine) == len(nodes):
            small = small.sum(axis=0, keepdims=True)
        where = []
        for node in nodes:
            axes = [-1] + [1] * len(mine)
            if node in mine:
                axes[0], axes[1 + mine.index(node)] = 1, net.sizes[node]
                where.append(np.arange(net.sizes[node]).reshape(axes))
            else:
                where.append(rows[:, node].astype(np.intp).reshape(axes))
        np.add.at(counts[family], tuple(np.broadcast_arrays(*where)), small)


def _expect_by_tree(net: Network, row: np.ndarray, times: float, counts: list[np.ndarray]) -> float:
    """Add the expected counts of one row by a junction tree over its gaps."""
    known = {node: float(row[node]) for node in range(len(row)) if not np.isnan(row[node])}
    nodes = [node for node in range(len(net.names)) if not net.is_number(node)]
    factors = net.factors(known, nodes)
    tree = JunctionTree([one for one in factors if one[0]], net.sizes, _inference.MEMORY)
    potential, total = tree.calibrated({})
    constant = sum(float(logs) for where, logs in factors if not where)
    place = 0
    families = [node for node in range(len(net.names)) if not net.is_number(node) or node in known]
    for family, (where, _) in zip(families, factors):
        share, own = None, where
        if where:
            clique, table = tree.joint(potential, place)
            place += 1
            share = table.sum(axis=tuple(i for i, node in enumerate(clique) if node not in where))
            own = tuple(node for node in clique if node in where)
        if family not in nodes:
            continue
        cut = tuple(int(known[node]) if node in known else slice(None) for node in (*net.parents[family], family))
        axes = [node for node in (*net.parents[family], family) if node not in known]
        counts[family][cut] += times * (1.0 if share is None else share.transpose([own.index(node) for node in axes]))
    return times * (total + constant)
