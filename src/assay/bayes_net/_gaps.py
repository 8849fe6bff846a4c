"""Rows of a network: columns of states as codes, numeric columns, missing values and EM.

The types of a frame say which columns have states (text, categories, booleans). In an array, or among the numbers of a
frame, `nominal` names the columns whose numbers are labels. A value that was not seen in `fit` is missing. Codes take
one byte where a column has at most 255 states, so that the table of codes is small beside the data.

Given the known entries of a row, its missing ones fall into independent groups; the probability of the known entries is
summed over the joint values of each group, or by a junction tree if there are too many.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from scipy.special import logsumexp, xlogy
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_feature_names, _check_sample_weight, validate_data

from assay import data
from assay.base import read_rows, streams
from assay.bayes_net import _graph, _inference
from assay.bayes_net._inference import JunctionTree
from assay.bayes_net._network import LOG_2PI, Network, probabilities
from assay.data.columns import ColumnType
from assay.optim.em import Expected
from assay.params import refuse

_MOST_STATES = 65_534


class Coded(NamedTuple):
    """Columns of a table: `codes` (d, n) of states (zeros where a column holds numbers; the number of states where
    there is a gap), `numbers` (d, n) or (0, n) if no column holds any, `sizes` (d,), 0 for numbers, `holes` (d,) where
    a column lacks values; `weight` (n,), None if every row counts once."""

    codes: np.ndarray
    numbers: np.ndarray
    sizes: np.ndarray
    holes: np.ndarray
    weight: np.ndarray | None = None

    @property
    def total(self) -> float:
        """How many rows the rows count for."""
        return float(self.n_rows if self.weight is None else self.weight.sum())

    @property
    def n_rows(self) -> int:
        return self.codes.shape[1]

    @property
    def gaps(self) -> bool:
        """Whether a column with states lacks values, which takes EM."""
        return bool(self.holes[self.sizes > 0].any())

    def take(self, rows: np.ndarray) -> "Coded":
        """Return some of the rows, in which no column with states lacks a value."""
        holes, weight = self.holes & (self.sizes == 0), None if self.weight is None else self.weight[rows]
        return Coded(np.ascontiguousarray(self.codes[:, rows]), self.numbers[:, rows], self.sizes, holes, weight)


def counted_rows(learner: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, np.ndarray | None]:
    """Return the rows whose weight is not 0, their labels, and their weights, None if all are 1."""
    if sample_weight is None:
        return X, y, None
    if streams(X, () if is_classifier(learner) else None):
        raise refuse(learner, "sample_weight goes with rows in memory, an array or a frame.")
    weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
    kept = np.flatnonzero(weight)
    if len(kept) < len(weight):
        X, y = _safe_indexing(X, kept), None if y is None else _safe_indexing(y, kept)
    weight = weight[kept].astype(np.float64)
    return X, y, None if (weight == 1).all() else weight


def read_coded(
    learner: Any, X: Any, extra: tuple[ColumnType, np.ndarray] | None = None, weight: np.ndarray | None = None
) -> Coded:
    """Return the rows of a fit, and remember their columns in `columns_`; `extra` is one more column, of classes."""
    types, values, holes = [], [], []
    codes = np.zeros((0, 0), dtype=np.uint8)
    numbers = np.empty((0, 0))
    columns = _fresh(learner, X)
    for j, (kind, column, known) in enumerate(columns if extra is None else chain(columns, [(*extra, None)])):
        if j == 0:
            codes = np.zeros((learner.n_features_in_ + (extra is not None), len(column)), dtype=np.uint8)
            numbers = np.empty((0, len(column)))
        types.append(kind)
        values += [] if known is None else [known]
        if kind.kind == "numeric":
            _check_numbers(learner, kind.name, column)
            if np.isnan(column).all():
                raise refuse(learner, f"the column {kind.name!r} has no value.")
            holes.append(bool(np.isnan(column).any()))
            numbers = np.empty(codes.shape) if not len(numbers) else numbers
            numbers[j] = column
            continue
        _check_states(learner, kind)
        codes = codes.astype(np.uint16) if len(kind.levels) > 255 and codes.dtype == np.uint8 else codes
        codes[j] = column if column.dtype.kind == "i" else np.where(np.isnan(column), len(kind.levels), column)
        holes.append(bool((codes[j] == len(kind.levels)).any()))
    learner.columns_, learner.values_ = tuple(types[: learner.n_features_in_]), np.concatenate(values)
    learner.gaps_ = np.array(holes[: learner.n_features_in_], dtype=np.int64)
    sizes = np.array([len(kind.levels) for kind in types], dtype=np.int64)
    return Coded(codes, numbers, sizes, np.array(holes), weight)


def raw(learner: Any, X: Any) -> np.ndarray:
    """Return rows as a certificate sees them, (n, d) doubles: numbers of an array as they are, the states of a frame's
    columns as codes, NaN where a value is missing."""
    if _has_types(X):
        _check_feature_names(learner, X, reset=False)
        result = data.read(X, schema=learner.columns_).require_same_columns(learner.columns_)[0].matrix()
    else:
        result = np.ascontiguousarray(_array(learner, X, reset=False), dtype=np.float64)
    for j, kind in enumerate(learner.columns_):
        if kind.kind == "numeric":
            _check_numbers(learner, kind.name, result[:, j], bool(learner.gaps_[j]))
    return result


def places(results: np.ndarray, sizes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return rows with the value of each column that has states replaced by its position; NaN if it is none of them.

    `values` lists, column by column, the `sizes` numbers that stand for the states; columns of numbers have size 0.
    """
    result, start = results.copy(), 0
    for j, size in enumerate(sizes.tolist()):
        if size:
            known = values[start : start + size]
            at = np.minimum(np.searchsorted(known, results[:, j]), size - 1)
            result[:, j] = np.where(known[at] == results[:, j], at, np.nan)
            start += size
    return result


def _fresh(learner: Any, X: Any) -> Iterator[tuple[ColumnType, np.ndarray, np.ndarray]]:
    """Yield of each column of new rows its type, its values (numbers, or codes: doubles with NaN where there is a gap,
    or integers with the number of states there), and the numbers that stand for its states."""
    if _has_types(X):
        _check_feature_names(learner, X, reset=True)
        names = [str(name) for name in X.columns]
        learner.n_features_in_ = len(names)
        chosen, hidden = _nominal(learner, names), _hidden(learner, names)
        for j, name in enumerate(X.columns):
            if j in hidden:
                yield _never_seen(learner, names[j], hidden[j], np.asarray(nw.from_native(X)[names[j]].is_null()))
                continue
            column = data.read(X[[name]], nominal=[names[j]] if j in chosen else (), exact=True).column(names[j])
            kind = column.type if column.type.kind == "numeric" else replace(column.type, kind="nominal")
            yield kind, column.data, np.arange(float(len(kind.levels)))
        return
    X = _array(learner, X, reset=True)
    names = [str(name) for name in getattr(learner, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])])]
    chosen, hidden = _nominal(learner, names), _hidden(learner, names)
    for j, name in enumerate(names):
        if j in hidden:
            yield _never_seen(learner, name, hidden[j], np.isnan(X[:, j].astype(np.float64)))
        elif j not in chosen:
            yield ColumnType(name, "numeric"), X[:, j].astype(np.float64), np.empty(0)
        else:
            known, at = _states(X[:, j])
            if not np.isfinite(known).all():
                raise refuse(learner, f"Input X contains infinity in the column {name!r}.")
            yield ColumnType(name, "nominal", tuple(map(text_of, known.tolist()))), at, known


def text_of(value: float) -> str:
    """Return how a state that is a number is called."""
    return repr(int(value)) if value % 1 == 0 else repr(value)


def _hidden(learner: Any, names: list[str]) -> dict[int, tuple[str, ...]]:
    """Return the states of the columns that the parameter `hidden` names, by position."""
    results = {}
    for node, states in (getattr(learner, "hidden", None) or {}).items():
        levels = tuple(map(str, range(states) if isinstance(states, (int, np.integer)) else states))
        if len(set(levels)) < max(2, len(levels)):
            raise refuse(learner, f"hidden: {node!r} must have at least 2 states, all different; got {states!r}.")
        results[_place(learner, "hidden", node, names)] = levels
    return results


def _never_seen(
    learner: Any, name: str, levels: tuple[str, ...], missing: np.ndarray
) -> tuple[ColumnType, np.ndarray, np.ndarray]:
    if not missing.all():
        raise refuse(learner, f"hidden: the column {name!r} has values; name columns that have none.")
    return ColumnType(name, "nominal", levels), np.full(len(missing), len(levels)), np.arange(float(len(levels)))


def _states(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values, in order, and the place of each entry among them; their number for NaN."""
    if column.dtype.kind in "iu" and len(column):
        low, high = int(column.min()), int(column.max())
        if high - low < _MOST_STATES:  # counting beats sorting
            seen = np.bincount(column - low) > 0
            return np.flatnonzero(seen) + float(low), (np.cumsum(seen) - 1)[column - low]
    known = np.unique(column)
    known = known[~np.isnan(known)].astype(np.float64)
    return known, np.searchsorted(known, column)


def _array(learner: Any, X: Any, reset: bool) -> np.ndarray:
    if streams(X, () if is_classifier(learner) else None):
        rows = read_rows(learner, X, None, reset=reset)
        return rows.X if hasattr(rows, "X") else rows.take(np.arange(rows.n_rows))
    return validate_data(learner, X, reset=reset, dtype="numeric", ensure_all_finite=False)


def _nominal(learner: Any, names: list[str]) -> set[int]:
    """Return the positions of the columns that the parameter `nominal` names."""
    given = learner.nominal
    if given is None:
        return set()
    if isinstance(given, str):
        if given != "all":
            raise refuse(learner, f"nominal must be None, 'all', or a list of columns; got {given!r}.")
        return set(range(len(names)))
    return {_place(learner, "nominal", node, names) for node in np.asarray(given, dtype=object).ravel().tolist()}


def _place(learner: Any, parameter: str, column: Any, names: list[str]) -> int:
    """Return the position of a column that is given by its name or position."""
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool) and 0 <= column < len(names):
        return int(column)
    raise refuse(learner, f"{parameter} names a column that is not there: {column!r}; there are {len(names)}.")


def _check_states(learner: Any, kind: ColumnType) -> None:
    if not kind.levels:
        raise refuse(learner, f"the column {kind.name!r} has no value.")
    if len(kind.levels) > _MOST_STATES:
        raise refuse(learner, f"the column {kind.name!r} has {len(kind.levels)} values; at most {_MOST_STATES}.")


def _check_numbers(learner: Any, name: str, column: np.ndarray, gaps: bool = True) -> None:
    if np.isinf(column).any():
        raise refuse(learner, f"Input X contains infinity in the column {name!r}.")
    missing = np.isnan(column)
    if missing.any() and not gaps:
        raise refuse(
            learner,
            f"Input X contains NaN in {name!r}, a column of numbers that had none in fit; fit rows with gaps too.",
        )


def _has_types(X: Any) -> bool:
    """Tell whether X is a frame with a column that is not a plain number."""
    columns = getattr(X, "dtypes", None)
    if columns is None or not hasattr(X, "columns"):
        return False
    kinds = list(columns.items()) if hasattr(columns, "items") else list(zip(X.columns, columns))
    return any(not str(kind).lower().startswith(("int", "uint", "float")) for _, kind in kinds)


_MOST_CELLS = 2**12  # values of one group of gaps that are listed
_HELD = 2**21  # numbers held at once


def log_known(net: Network, rows: np.ndarray) -> np.ndarray:
    """Return ln P of what is known of each row, NaN where there is a gap."""
    gaps = gaps_of(net, rows)
    if not gaps.any():
        return net.log_joint(rows)
    result = np.empty(len(rows))
    for missing, at in _patterns(gaps):
        for part in np.array_split(at, max(1, len(at) * _MOST_CELLS // _HELD)):
            result[part] = _log_known(net, rows[part], missing)
    return result


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
    for k, node in enumerate(parent for parent in above if net.is_number(parent)):
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
    tree = JunctionTree([factor for factor in factors if factor[0]], net.sizes, _inference.MEMORY)
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
