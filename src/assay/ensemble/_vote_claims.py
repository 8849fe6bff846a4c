"""What an ensemble of trees can say about new data from the rows that its members did not see (P19)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from assay.claims.claim import NotApplicable
from assay.ensemble._bootstrap import bag
from assay.guarantees.ledger import FIT_NOT_KEPT, Statement
from assay.guarantees.out_of_bag import Bags, out_of_bag_vote
from assay.messages import Message
from assay.scan import Rows
from assay.tree._predict import leaves


def vote_statements(model: Any, rows: Rows) -> Iterator[Statement | NotApplicable]:
    """Yield the bound of the vote's error by out-of-bag rows, or why it is not made."""
    reason = next((sentence for holds, sentence in _conditions(model, rows) if not holds), None)
    if reason is not None:
        yield NotApplicable("P19/1", reason)
        return
    n, binned = rows.n_rows, int(getattr(model, "binned_rows_", 0))
    shared_seed = int(model.bin_seed_) if binned else 0
    bags = Bags(np.asarray(model.seeds_), int(model.bag_size_), bool(model.bootstrap), binned, shared_seed)
    value = model.nodes_.value[model.nodes_.child < 0]
    hard = bool(np.all((value == 0) | (value == 1)) and np.all(value.sum(axis=1) == 1))
    T = len(model.seeds_)
    yield out_of_bag_vote(_blocks(model, rows, bags), bags, n, (T + 1) // 2 / T if hard else 0.5)


def sampling(model: Any) -> dict[str, str]:
    """Return the parameters that decide which rows a member depends on; kept at the fit, as they can be set later."""
    return {name: repr(getattr(model, name, None)) for name in ("bootstrap", "class_weight", "out_of_bag")}


def _conditions(model: Any, rows: Rows) -> Iterator[tuple[bool, str]]:
    yield hasattr(model, "seeds_"), FIT_NOT_KEPT
    yield (
        getattr(model, "sampled_by_", None) == sampling(model),
        Message("why.parameters-after"),
    )
    yield (
        bool(model.bootstrap) or model.bag_size_ < model.n_rows_,
        Message("why.no-bags"),
    )
    yield not rows.has_weight, Message("why.weights.errors")
    yield (
        getattr(model, "class_weight", None) is None,
        Message("why.bag-class-weight"),
    )
    yield not getattr(model, "drawn_by_weight_", False), Message("why.weighted-draws")
    yield (
        getattr(model, "out_of_bag", None) is None,
        Message("why.pruned-out-of-bag"),
    )
    yield (
        not getattr(model, "kept_members_", 0),
        Message("why.warm-start"),
    )
    yield (
        getattr(model, "binned_rows_", 0) < model.n_rows_,
        Message("why.shared-bins"),
    )
    yield (
        not np.any(model.nodes_.table >= 0),
        Message("why.bag-levels"),
    )
    yield rows.n_rows == model.n_rows_, Message("why.other-count")


def _blocks(model: Any, rows: Rows, bags: Bags) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield one minus the share that each member gives to the true class, and whether the row is out of its bag."""
    n = rows.n_rows
    out = np.ones((len(bags.seeds), n), dtype=bool)
    if bags.shared:
        out[:, bag(bags.shared_seed, n, bags.shared, replace=False)] = False
    for j, seed in enumerate(bags.seeds.tolist()):
        out[j, bag(seed, n, bags.size, bags.replace)] = False
    nodes = model.nodes_
    for first, X, y in chunks(rows):
        at = leaves(nodes, X, model.n_jobs)
        yield 1.0 - nodes.value[at, y[:, None]], out[:, first : first + len(X)].T


def chunks(rows: Rows, size: int = 32_768) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield the number of the first row, rows and labels, so many at a time that threads can share the work."""
    held: list[Any] = []
    for block in rows.blocks():
        held.append(block)
        if sum(len(one.X) for one in held) >= size:
            yield _joined(held)
            held = []
    if held:
        yield _joined(held)


def _joined(held: list[Any]) -> tuple[int, np.ndarray, np.ndarray]:
    X, y = (np.concatenate([getattr(one, name) for one in held]) for name in ("X", "y"))
    return held[0].start, X, y
