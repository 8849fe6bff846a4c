"""What an ensemble of trees can say about new data from the rows that its members did not see (P19)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from assay.claims.claim import NotApplicable
from assay.ensemble._bootstrap import bag
from assay.guarantees.ledger import FIT_NOT_KEPT, Statement
from assay.guarantees.out_of_bag import Bags, out_of_bag_vote
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
        "Parameters that decide which rows a member saw were set after the fit: fit again.",
    )
    yield (
        bool(model.bootstrap) or model.bag_size_ < model.n_rows_,
        "Every member saw every row; with bootstrap=True or smaller bags each is judged on the rows it did not see.",
    )
    yield not rows.has_weight, "Row weights: the bound is about unweighted errors of equally likely rows."
    yield (
        getattr(model, "class_weight", None) is None,
        "class_weight: weights taken from all rows make a member depend on rows outside its bag.",
    )
    yield not getattr(model, "drawn_by_weight_", False), "Rows were drawn by their weights, not evenly."
    yield (
        getattr(model, "out_of_bag", None) is None,
        "The members were pruned or stopped on their out-of-bag rows, which are therefore no longer unseen.",
    )
    yield (
        not getattr(model, "kept_members_", 0),
        "Members of an earlier fit were kept; their bags may have been others: fit without warm_start.",
    )
    yield (
        getattr(model, "binned_rows_", 0) < model.n_rows_,
        "The bins were taken from all rows, so that every member depends on all of them; use max_bins=None.",
    )
    yield (
        not np.any(model.nodes_.table >= 0),
        "Nominal columns: a level that is not in a member's bag has no branch of its own in it; encode the columns.",
    )
    yield rows.n_rows == model.n_rows_, "These are not as many rows as the model was fitted to."


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
