"""What a fitted network proves about its rows: likelihood, counts, structure, marginals."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from assay.bayes_net import _search, _tables
from assay.bayes_net._exact import TooLargeError
from assay.bayes_net._families import Families, factor_of
from assay.bayes_net._gaps import NetworkWithGaps
from assay.bayes_net._network import Network
from assay.bayes_net._reading import Coded
from assay.claims.claim import Claim, NotApplicable
from assay.mixture._claims import log_likelihood
from assay.optim.duality import outward
from assay.scan import Rows

_UNIT = 2.0**-53
_MOST_LISTED = 6  # columns up to which the checker compares all graphs
_MOST_CELLS = 2**20  # of a junction tree whose marginals are listed
_NUMBERS = "It is about networks whose nodes all have states, and a column holds numbers."
_GAPS = "It is about rows without gaps."
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
        size = np.abs(table).reshape(-1, table.shape[-1])
        spread, most = float(size[:, -1].min()), size.max(axis=0)
        numbers = [one for one in net.parents[node] if net.is_number(one)]
        reach = (most[0] + np.abs(rows[:, numbers]) @ most[1:-1] + np.abs(np.nan_to_num(rows[:, node]))) / spread
        total += reach**2 * (len(numbers) + 2) + float(np.abs(np.log(size[:, -1])).max()) + 4
    return 64 * _UNIT * (len(net.names) + 8) * total


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
    yield counts(model, codes)
    yield from structure(model, codes)
    yield marginals(model.network_)


def counts(model: Any, codes: np.ndarray) -> Claim | NotApplicable:
    """Return how far the stored counts are from those of the rows, gaps shared out as the model has it."""
    if not model.sizes_.any():
        return NotApplicable("D26/2", "No column has states to count.")
    found = NetworkWithGaps(model.network_, codes, float(model.alpha)).e_step(model.network_.tables).statistics
    pairs = [(a, b) for i, (a, b) in enumerate(zip(found, model._node_tables())) if model.sizes_[i]]
    worst = max(float(np.max(np.abs(a - b))) for a, b in pairs)
    if np.isnan(codes[:, model.sizes_ > 0]).any():
        worst = outward(1.01 * worst + 1e-9 * len(codes))
    return Claim("D26/2", worst, params={"rows": len(codes)})


def structure(model: Any, codes: np.ndarray) -> Iterator[Claim | NotApplicable]:
    """Yield that no change of an edge, and of few columns no other graph, has a better score."""
    kind = getattr(model, "structure", None)
    reason = _NUMBERS if not model.sizes_.all() else _GAPS if np.isnan(codes).any() else ""
    if not reason and kind not in ("greedy", "exact", "augmented"):
        reason = "The structure was given, not searched for."
    if reason:
        yield NotApplicable("D26/3", reason)
        return
    data = whole(model, codes)
    factor = factor_of(model.criterion, len(codes))
    samples = float(model.equivalent_sample_size)
    families = Families(data, factor, samples, model.n_jobs)
    names = model.network_.names
    limits = model._own_limits(data)
    params = {"rows": len(codes), "max_parents": limits.most}
    params |= {"score": "bdeu", "samples": samples} if factor < 0 else {"score": "penalised", "factor": factor}
    parents = _tables.parents_of(model.edges_, len(names))
    slack = _ROUNDING * (1 + abs(families.total(parents)))
    gain = _search.remaining_gain(families, limits, parents)
    never = ~limits.allowed & ~np.eye(len(names), dtype=bool)
    witness = {"required": np.argwhere(limits.required), "forbidden": np.argwhere(never)}
    fixed = {f"n_{name}": len(edges) for name, edges in witness.items()}
    yield Claim("D26/3", outward(gain + slack), params={**params, **fixed}, witness=witness)
    if kind == "exact" and len(names) <= _MOST_LISTED and not any(len(one) for one in witness.values()):
        best = _search.exact(families, limits)[1]
        yield Claim("D26/4", outward(families.total(parents) - best + slack), params=params)
    elif kind == "exact":
        yield NotApplicable("D26/4", f"All graphs are compared for at most {_MOST_LISTED} columns without limits.")


def tree(model: Any, codes: np.ndarray) -> Claim | NotApplicable:
    """Return that no tree has a larger likelihood."""
    if not model.sizes_.all():
        return NotApplicable("D26/1", _NUMBERS)
    if np.isnan(codes).any():
        return NotApplicable("D26/1", _GAPS)
    families = Families(whole(model, codes), 0.0, 1.0, model.n_jobs)
    weights = _search.information(families)
    best = _search.tree(weights, 0)
    own = sum(weights[a, b] for a, b in model.edges_.tolist())
    most = sum(weights[above[0], node] for node, above in enumerate(best) if above)
    size = sum(families.cost(i, ()) for i in range(families.d)) + len(codes) * np.log(len(codes) + 1)
    return Claim(
        "D26/1", outward((families.d - 1) * (max(0.0, most - own) + 1e-12 * size)), params={"rows": len(codes)}
    )


def whole(model: Any, codes: np.ndarray) -> Coded:
    """Return rows without gaps as columns of codes."""
    small = np.uint8 if model.sizes_.max() < 256 else np.uint16
    whole_columns = np.zeros(len(model.sizes_), dtype=bool)
    return Coded(np.ascontiguousarray(codes.T.astype(small)), np.empty((0, len(codes))), model.sizes_, whole_columns)


def marginals(net: Network) -> Claim | NotApplicable:
    """Return the probabilities of the states of each node."""
    if any(one is None for one in net.states):
        return NotApplicable("D26/5", _NUMBERS)
    try:
        found = net.marginals(memory=48 * _MOST_CELLS)
    except TooLargeError:
        return NotApplicable("D26/5", "The tables of the marginals are too large.")
    told = np.array([p for one in found.values() for p in one.values()])
    return Claim("D26/5", 1e-10, witness={"marginals": np.where(told > 1e-140, told, 0.0)})
