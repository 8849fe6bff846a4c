"""What a fitted network proves about its rows: likelihood, counts, structure, marginals."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from assay.bayes_net import _network, _search
from assay.bayes_net._gaps import Coded, NetworkWithGaps
from assay.bayes_net._inference import TooLargeError
from assay.bayes_net._network import Network
from assay.bayes_net._search import Families, factor_of
from assay.claims.claim import Claim, NotApplicable
from assay.messages import Message
from assay.mixture._density import log_likelihood
from assay.optim.duality import outward
from assay.scan import Rows

_UNIT = 2.0**-53
_MOST_LISTED = 6  # columns up to which the checker compares all graphs
_MOST_CELLS = 2**20  # of a junction tree whose marginals are listed
_NUMBERS = Message("why.network-numbers")
_GAPS = Message("why.gaps")
_WEIGHTS = Message("why.weighted-counts")
_MANY = Message("why.refit-size")
_MOST_NUMBERS = 2**24  # entries of such rows
_ROUNDING = 1e-11  # share of a score by which the rounding of two programs can differ, generously


def rounding(net: Network, rows: np.ndarray) -> np.ndarray:
    """Return how far rounding can move ln P of each row, doubled and more; gaps count as their worst state."""
    total = np.full(len(rows), 8.0 + len(net.names))
    for node, table in enumerate(net.tables):
        if not net.is_number(node):
            with np.errstate(divide="ignore"):
                logs = np.abs(np.log(table))
            total += float(np.max(np.where(np.isfinite(logs), logs, 0.0))) + net.sizes[node]
            continue
        reach, logs = _reach(net, node, rows)
        total += reach**2 * (table.shape[-1]) + logs + 4
    return 64 * _UNIT * (len(net.names) + 8) * total


def _reach(net: Network, node: int, rows: np.ndarray) -> tuple[np.ndarray, float]:
    """Return how large the terms of x - mean of a number are beside its spread, at most, and |ln spread|, at most."""
    size = np.abs(net.tables[node]).reshape(-1, net.tables[node].shape[-1])
    spread, most = float(size[:, -1].min()), size.max(axis=0)
    numbers = [parent for parent in net.parents[node] if net.is_number(parent)]
    reach = (most[0] + np.abs(rows[:, numbers]) @ most[1:-1] + np.abs(np.nan_to_num(rows[:, node]))) / spread
    return reach, float(np.abs(np.log(size[:, -1])).max())


def coded_rows(model: Any, rows: Rows) -> np.ndarray:
    """Return the rows of a certificate as codes, with the class as a last column if the model has one."""
    parts = []
    for block in rows.blocks():
        codes = model._coded(block.X)
        parts.append(codes if len(model.sizes_) == codes.shape[1] else np.column_stack([codes, block.y]))
    return np.concatenate(parts)


def facts(model: Any, rows: Rows) -> Iterator[Claim | NotApplicable]:
    """Yield the claims about a network that was learnt as a density."""
    yield log_likelihood(model, rows)
    codes = coded_rows(model, rows)
    yield counts(model, rows, codes)
    yield from structure(model, rows, codes)
    yield from queries(model)


def queries(model: Any) -> Iterator[Claim | NotApplicable]:
    """Yield the marginals, and the answers to what was asked."""
    yield marginals(model.network_)
    for asked, given in model.queries:
        yield from answers(model.network_, asked, given)


def answers(net: Network, asked: Any, given: dict[str, Any]) -> Iterator[Claim | NotApplicable]:
    """Yield the most probable states of nodes given evidence, and the probabilities of all."""
    if any(state is None for state in net.states):
        yield NotApplicable("network.explanation", _NUMBERS)
        return
    known = {net.names[node]: (net.states[node] or ())[int(at)] for node, at in net._known(given).items()}
    try:
        best, result = net.map_query(asked, known), net.marginals(known, memory=48 * _MOST_CELLS)
    except TooLargeError:
        yield NotApplicable("network.explanation", Message("why.query-tables"))
        return
    size = sum(float(np.abs(np.log(table[table > 0])).max(initial=0.0)) + table.shape[-1] for table in net.tables)
    slack = 64 * _UNIT * (sum(net.sizes) + 16 * len(net.names)) * (size + 16)
    yield Claim("network.explanation", outward(slack), params={"given": known, "states": best.states})
    probabilities = np.array([p for item in result.values() for p in item.values()])
    witness = {"marginals": np.where(probabilities > 1e-140, probabilities, 0.0)}
    yield Claim("network.posterior", outward(1e-10 + slack), params={"given": known}, witness=witness)


def counts(model: Any, rows: Rows, codes: np.ndarray) -> Claim | NotApplicable:
    """Return how far the stored counts are from those of the rows, gaps shared out as the model has it."""
    if not model.sizes_.any():
        return NotApplicable("network.counts", Message("why.no-states"))
    weight = None
    if rows.has_weight:
        weight = np.concatenate([np.ones(len(b.X)) if b.weight is None else b.weight for b in rows.blocks()])
    problem = NetworkWithGaps(model.network_, codes, float(model.alpha), weight)
    result = problem.e_step(model.network_.tables).statistics
    pairs = [(a, b) for i, (a, b) in enumerate(zip(result, model._node_tables())) if model.sizes_[i]]
    worst = max(float(np.max(np.abs(a - b))) for a, b in pairs)
    if np.isnan(codes[:, model.sizes_ > 0]).any() or (weight is not None and (weight % 1).any()):
        worst = outward(1.01 * worst + 1e-9 * (len(codes) if weight is None else max(1.0, weight.sum())))
    return Claim("network.counts", worst, params={"rows": len(codes)})


def structure(model: Any, rows: Rows, codes: np.ndarray) -> Iterator[Claim | NotApplicable]:
    """Yield that no change of an edge, and of few columns no other graph, has a better score."""
    kind, mixed = model.structure, not model.sizes_.all()
    local, best = (
        ("network.local-optimum-mixed", "network.optimum-mixed")
        if mixed
        else ("network.local-optimum", "network.optimum")
    )
    reason = _GAPS if np.isnan(codes).any() else _WEIGHTS if rows.has_weight else ""
    reason = reason or (_MANY if mixed and codes.size > _MOST_NUMBERS else "")
    if mixed:
        yield NotApplicable("network.regressions", reason) if reason else regressions(model, codes)
    if not reason and kind not in ("greedy", "exact", "augmented"):
        reason = Message("why.structure-given")
    if reason:
        yield NotApplicable(local, reason)
        return
    data = whole(model, codes)
    factor = factor_of(model.criterion, len(codes))
    samples = float(model.equivalent_sample_size)
    families = Families(data, factor, samples, model.n_jobs)
    names = model.network_.names
    limits = model._own_limits(data)
    params = {"rows": len(codes), "max_parents": limits.most}
    if mixed:
        params |= {"factor": factor}
    else:
        params |= {"score": "bdeu", "samples": samples} if factor < 0 else {"score": "penalised", "factor": factor}
    parents = _network.parents_of(model.edges_, len(names))
    gain = _search.remaining_gain(families, limits, parents)
    slack = _ROUNDING * (1 + abs(families.total(parents))) + 4 * families.slack
    never = ~limits.allowed & ~np.eye(len(names), dtype=bool) & ~np.outer(model.sizes_ == 0, model.sizes_ > 0)
    witness = {"required": np.argwhere(limits.required), "forbidden": np.argwhere(never)}
    fixed = {f"n_{name}": len(edges) for name, edges in witness.items()}
    yield Claim(local, outward(gain + slack), params={**params, **fixed}, witness=witness)
    if kind == "exact" and len(names) <= _MOST_LISTED and not any(len(node) for node in witness.values()):
        least = _search.exact(families, limits)[1]
        slack += 4 * len(names) * families.slack
        yield Claim(best, outward(families.total(parents) - least + slack), params=params)
    elif kind == "exact":
        yield NotApplicable(best, Message("why.all-graphs", most=_MOST_LISTED))


def regressions(model: Any, codes: np.ndarray) -> Claim:
    """Return that no other regressions of the numbers have a larger likelihood."""
    data = whole(model, codes)
    families, own, best = Families(data, 0.0, 1.0, model.n_jobs), 0.0, 0.0
    net, slack = model.network_, 0.0
    for node in np.flatnonzero(model.sizes_ == 0).tolist():
        fitted = families.regression(node, net.parents[node])
        best, slack = best + fitted.log_likelihood, slack + 2 * fitted.slack
        values, (reach, logs) = net.log_conditional(node, codes), _reach(net, node, codes)
        own += float(values.sum())
        off, far = 128 * _UNIT * (net.tables[node].shape[-1] + 16) * reach, 2 * (np.abs(values) + logs + 2)
        slack += float((np.sqrt(far) * off + off**2 + 128 * _UNIT * far).sum())
    value = max(0.0, best - own) + slack + _ROUNDING * (1 + abs(best))
    return Claim("network.regressions", outward(value), params={"rows": len(codes)})


def tree(model: Any, rows: Rows, codes: np.ndarray) -> Claim | NotApplicable:
    """Return that no tree has a larger likelihood."""
    if not model.sizes_.all():
        return NotApplicable("chow-liu.optimal", _NUMBERS)
    if np.isnan(codes).any():
        return NotApplicable("chow-liu.optimal", _GAPS)
    if rows.has_weight:
        return NotApplicable("chow-liu.optimal", _WEIGHTS)
    families = Families(whole(model, codes), 0.0, 1.0, model.n_jobs)
    weights = _search.information(families)
    best = _search.tree(weights, 0)
    own = sum(weights[a, b] for a, b in model.edges_.tolist())
    most = sum(weights[above[0], node] for node, above in enumerate(best) if above)
    size = sum(families.cost(i, ()) for i in range(families.d)) + len(codes) * np.log(len(codes) + 1)
    return Claim(
        "chow-liu.optimal",
        outward((families.d - 1) * (max(0.0, most - own) + 1e-12 * size)),
        params={"rows": len(codes)},
    )


def whole(model: Any, codes: np.ndarray) -> Coded:
    """Return rows without gaps as columns of codes."""
    small = np.uint8 if model.sizes_.max() < 256 else np.uint16
    whole_columns, numbers = np.zeros(len(model.sizes_), dtype=bool), np.empty((0, len(codes)))
    states = np.where(model.sizes_ > 0, codes, 0.0)
    if not model.sizes_.all():
        numbers = np.ascontiguousarray(codes.T)
    return Coded(np.ascontiguousarray(states.T.astype(small)), numbers, model.sizes_, whole_columns)


def marginals(net: Network) -> Claim | NotApplicable:
    """Return the probabilities of the states of each node."""
    if any(state is None for state in net.states):
        return NotApplicable("network.marginals", _NUMBERS)
    try:
        result = net.marginals(memory=48 * _MOST_CELLS)
    except TooLargeError:
        return NotApplicable("network.marginals", Message("why.marginal-tables"))
    probabilities = np.array([p for item in result.values() for p in item.values()])
    return Claim(
        "network.marginals", 1e-10, witness={"marginals": np.where(probabilities > 1e-140, probabilities, 0.0)}
    )
