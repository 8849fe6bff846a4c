"""Statements from sample compression (compression.perceptron, compression.voted-perceptron, progressive.vote), and the
training error that identical rows with different labels force on every classifier (train.error-floor).

SPEC.md says how a model and the one rebuilt from few of its rows are compared; `theory.stability` has the theorem.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.ledger import OUTWARD, Statement, Vacuous, assumptions_of, error_rate
from assay.messages import Message
from assay.scan import Rows
from assay.theory.sequential import progressive_choice
from assay.theory.stability import compression_bound, log_size_weight

if TYPE_CHECKING:
    from assay.base import Learner


def error_floor(rows: Rows) -> Iterator[Claim]:
    """Yield claim train.error-floor if some identical rows carry different labels."""
    keys = np.concatenate(rows.map(_row_keys, np.random.default_rng(0).normal(size=rows.n_features)))
    sorted_keys = np.sort(keys)
    if (sorted_keys[1:] != sorted_keys[:-1]).all():
        return
    order = np.argsort(keys, kind="stable")
    sizes = np.diff(np.flatnonzero(np.concatenate([[True], np.diff(keys[order]) != 0, [True]])))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    candidates = np.sort(order[sizes[groups] > 1])
    X, y = gather(rows, candidates)
    result = _conflicts(_groups(X, keys[candidates]), y, candidates)
    if result is not None:
        floor, listed, group = result
        yield Claim(
            "train.error-floor", float(floor), "lower", {"rows": rows.n_rows}, witness={"rows": listed, "group": group}
        )


def _row_keys(block: Block, direction: np.ndarray) -> np.ndarray:
    """Return a projection of each row; identical rows of a block have equal keys.

    Rows summed in another order (the last few of the data) may be missed, which makes the floor lower, not
    wrong.
    """
    keys: np.ndarray = block.X @ direction
    return keys


def gather(rows: Rows, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return X and y of the wanted row numbers (sorted)."""

    def pick(block: Block) -> tuple[np.ndarray, np.ndarray]:
        low, high = np.searchsorted(wanted, [block.start, block.start + len(block.X)])
        at = wanted[low:high] - block.start
        return block.X[at] + 0.0, block.y[at]

    parts = rows.map(pick)
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def _groups(X: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return a number for each row, the same for two rows only if they are identical; equal rows have equal
    keys."""
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    other = np.flatnonzero((X[first[group]] != X).any(axis=1))
    if len(other):  # different rows with one key
        group[other] = len(first) + np.unique(X[other], axis=0, return_inverse=True)[1]
    return group


def _conflicts(group: np.ndarray, y: np.ndarray, numbers: np.ndarray) -> tuple[int, np.ndarray, np.ndarray] | None:
    """Return the floor, the rows of conflicting groups and their group numbers; None if there is no
    conflict."""
    classes = int(y.max()) + 1
    cells = (int(group.max()) + 1) * classes
    table = np.bincount(group * classes + y, minlength=cells).reshape(-1, classes)
    excess = table.sum(axis=1) - table.max(axis=1)
    if not excess.any():
        return None
    listed = excess[group] > 0
    _, renumbered = np.unique(group[listed], return_inverse=True)
    return int(excess.sum()), numbers[listed].astype(np.int64), renumbered.astype(np.int64)


_NEAR = 2.0**-30
_SLACK = 1 + 1e-9
_GRID = range(-30, 11)


class SideInformation(NamedTuple):
    """What is told besides the rows: parameters and arrays of the claim, and ln of the message's weight."""

    params: dict[str, Any]
    log_weight: float
    witness: dict[str, np.ndarray]


def stated(name: str, errors: int, n: int, kept: int, message: SideInformation, delta: str) -> Claim | NotApplicable:
    """Return the claim for `errors` errors outside the `kept` rows, or Vacuous."""
    bound = bound_of(errors, n, kept, message.log_weight, delta)
    if bound + OUTWARD >= 1:
        return too_many(name, n, kept, delta)
    params = {**message.params, "rows": n, "kept": kept, "errors": errors}
    assumptions = assumptions_of(name)
    return Claim(name, bound + OUTWARD, "upper", params, ("train",), delta, assumptions, message.witness)


def too_many(name: str, n: int, kept: int, delta: str) -> Vacuous:
    return Vacuous(name, Message("why.compression-size", kept=kept, rows=n), delta)


def bound_of(errors: int, n: int, kept: int, log_weight: float, delta: str) -> float:
    if not kept < n or errors > n - kept:
        return 1.0
    return compression_bound(errors, n, kept, float(delta), log_message=min(0.0, log_weight - 1e-9))


# The perceptron ---------------------------------------------------------------------------------------------


class Updates(NamedTuple):
    """Row number of each update, one array per hyperplane; `known` is False if some were not kept."""

    sequences: list[np.ndarray]
    rate: float
    intercept: bool
    known: bool


def perceptron_statements(
    learner: "Learner", rows: Rows, updates: Updates, rounding: float
) -> Iterator[Statement | NotApplicable]:
    """Yield compression.perceptron for w = sum of rate y (x, 1) over updates; rounding moves no score by more than
    `rounding`."""
    yield partial(_perceptron, learner, rows, updates, rounding)


def _perceptron(learner: "Learner", rows: Rows, updates: Updates, rounding: float, delta: str) -> Claim | NotApplicable:
    n, name = rows.n_rows, "compression.perceptron"
    if not updates.known or not any(len(sequence) for sequence in updates.sequences):
        return Vacuous(name, Message("why.no-updates-kept"), delta)
    kept = np.unique(np.concatenate(updates.sequences))
    counts = np.stack([np.bincount(np.searchsorted(kept, s), minlength=len(kept)) for s in updates.sequences], axis=1)
    log_weight = _log_counts(counts)
    if bound_of(0, n, len(kept), log_weight, delta) + OUTWARD >= 1:
        return too_many(name, n, len(kept), delta)
    coef, intercept = np.atleast_2d(learner.coef_), np.atleast_1d(learner.intercept_)
    size = _rebuilt_length(rows, kept, counts, updates, coef, intercept)
    if size is None:
        return Vacuous(name, Message("why.updates-mismatch"), delta)
    several = 1 if len(coef) == 1 else 2
    tolerance = 2 * several * _NEAR * size * _SLACK
    errors = sum(rows.map(_lost_rows, coef, intercept, rounding, (tolerance, float(updates.intercept)), kept))
    params = {"rate": updates.rate, "intercept": updates.intercept}
    witness = {"rows": kept.astype(np.int64), "counts": counts.astype(np.int64)}
    return stated(name, int(errors), n, len(kept), SideInformation(params, log_weight, witness), delta)


def kernel_perceptron_statement(
    n: int, counts: np.ndarray, intercept: bool, n_numbers: int, lost: Callable[[], int]
) -> Statement:
    """Return how to state compression.kernel-perceptron of an expansion with integer coefficients, counts (k, outputs)
    in magnitude; lost() counts the other rows that are wrong, or open in rounding."""
    return partial(_kernel_perceptron, n, counts, intercept, n_numbers, lost)


def _kernel_perceptron(
    n: int, counts: np.ndarray, intercept: bool, n_numbers: int, lost: Callable[[], int], delta: str
) -> Claim | NotApplicable:
    kept = len(counts)
    if not kept:
        return Vacuous("compression.kernel-perceptron", Message("why.no-update"), delta)
    log_weight = _log_counts(counts) - n_numbers * 64 * math.log(2)
    if bound_of(0, n, kept, log_weight, delta) + OUTWARD >= 1:
        return too_many("compression.kernel-perceptron", n, kept, delta)
    message = SideInformation({"intercept": intercept, "told": n_numbers}, log_weight, {})
    return stated("compression.kernel-perceptron", lost(), n, kept, message, delta)


def _log_counts(counts: np.ndarray) -> float:
    """Return ln of the weight of the message: how many updates there were, and on which rows."""
    (k, outputs), total = counts.shape, 0.0
    for updates in map(int, counts.sum(axis=0)):
        parts = (updates - 1, k - 1) if outputs == 1 else (updates + k - 1, k - 1)
        ways = math.lgamma(parts[0] + 1) - math.lgamma(parts[1] + 1) - math.lgamma(parts[0] - parts[1] + 1)
        total += log_size_weight(updates) - max(0.0, ways) * (1 + 1e-12)
    return total


def _rebuilt_length(
    rows: Rows, kept: np.ndarray, counts: np.ndarray, updates: Updates, coef: np.ndarray, intercept: np.ndarray
) -> float | None:
    """Return the largest |(w, b)| of the exact sums of updates; None if the model is not near them."""
    if kept[-1] >= rows.n_rows:
        return None
    X, y = gather(rows, kept)
    positive = np.arange(counts.shape[1]) if counts.shape[1] > 1 else np.array([1])
    weights = updates.rate * counts * np.where(y[:, None] == positive, 1.0, -1.0)
    table = np.column_stack([X, np.ones(len(X))]) if updates.intercept else X
    model = np.column_stack([coef, intercept]) if updates.intercept else coef
    sums = weights.T @ table
    slip = 16 * len(table) * 2.0**-53 * (np.abs(weights).T @ np.abs(table))
    length, apart = np.linalg.norm(sums, axis=1), np.linalg.norm(np.abs(model - sums) + slip, axis=1)
    near = apart * _SLACK <= _NEAR * (length / _SLACK - np.linalg.norm(slip, axis=1))
    return float(length.max()) * _SLACK if near.all() else None


def _lost_rows(
    block: Block,
    coef: np.ndarray,
    intercept: np.ndarray,
    rounding: float,
    tolerance: tuple[float, float],
    kept: np.ndarray,
) -> int:
    """Return how many rows outside `kept` have a margin that is not above the tolerance, whatever the rounding."""
    values = block.X @ coef.T + intercept
    if len(coef) == 1:
        margin = np.where(block.y == 1, values[:, 0], -values[:, 0])
    else:
        row = np.arange(len(values))
        margin = values[row, block.y].copy()
        values[row, block.y] = -np.inf
        margin -= values.max(axis=1)
    reach = tolerance[0] * np.sqrt(np.einsum("ij,ij->i", block.X, block.X) + tolerance[1]) * _SLACK
    return outside(block, margin <= reach + rounding, kept)


def outside(block: Block, lost: np.ndarray, kept: np.ndarray) -> int:
    """Return how many rows of the block are lost and not among the sorted row numbers `kept`."""
    low, high = np.searchsorted(kept, [block.start, block.start + len(block.X)])
    lost[kept[low:high] - block.start] = False
    return int(np.count_nonzero(lost))


# Support vectors --------------------------------------------------------------------------------------------


class Supported(NamedTuple):
    """A kernel machine of two classes: sorted support vectors, the gap of the problem of these rows alone, the
    offset b, and how many numbers have to be told; `lost(slope, step)` counts the other rows that the
    tolerance 2 slope sqrt(kappa(x, x)) + step leaves open."""

    kept: np.ndarray
    gap: float
    b: float
    told: int
    params: dict[str, Any]
    lost: Callable[[float, float], int]


def support_statement(rows: Rows, k: int, machine: Callable[[], Supported]) -> Statement:
    """Return how to state compression.support-vectors of a machine with k support vectors."""
    return partial(_support, rows.n_rows, k, machine)


def _support(n: int, k: int, machine: Callable[[], Supported], delta: str) -> Claim | NotApplicable:
    name = "compression.support-vectors"
    if bound_of(0, n, k, 0.0, delta) + OUTWARD >= 1:
        return too_many(name, n, k, delta)
    result = machine()
    slope = next((2.0**e for e in _GRID if 2.0**e >= math.sqrt(2 * result.gap) * _SLACK), None)
    if slope is None:
        return Vacuous(name, Message("why.gap-too-large", gap=result.gap), delta)
    best: tuple[float, int, SideInformation] | None = None
    for step in (2.0**e for e in range(-12, 3)):
        units = round(result.b / step)
        weight = -2 * math.log(len(_GRID)) - math.log(1.5 * (abs(units) + 1) * (abs(units) + 2))
        weight -= result.told * 64 * math.log(2)
        errors = result.lost(slope, step)
        params = {"slope": slope, "step": step, "offset": abs(units), "side": 1 if units >= 0 else -1}
        message = SideInformation({**result.params, **params, "told": result.told}, weight, {})
        bound = bound_of(errors, n, k, weight, delta)
        if best is None or bound < best[0]:
            best = bound, errors, message
    assert best is not None
    return stated(name, best[1], n, k, best[2], delta)


class Pass(NamedTuple):
    """One pass: rows, those before the vote begins, mistakes of the hypotheses that vote on the rows that they met
    before learning from them, rows that were learnt from, and the seed of the order (None: that of the data)."""

    rows: int
    skipped: int
    errors: int
    kept: int
    seed: int | None

    @property
    def params(self) -> dict[str, int | None]:
        return {"rows": self.rows, "skipped": self.skipped, "seed": self.seed}


def vote_statements(pass_: Pass, lost: Callable[[], int]) -> list[Statement]:
    """Return how to state progressive.vote and compression.voted-perceptron; lost() counts the rows, outside those
    learnt from, on which the vote is wrong or left open by rounding."""
    return [partial(_progressive, pass_), partial(_compressed, pass_, lost)]


def _progressive(pass_: Pass, delta: str) -> Claim | NotApplicable:
    judged = pass_.rows - pass_.skipped
    losses = np.zeros(judged)
    losses[: pass_.errors] = 1.0  # the bound depends on their sum alone
    result = progressive_choice(losses, float(delta))
    if 2 * result.bound + OUTWARD >= 1:
        reason = Message("why.progressive-vacuous", errors=pass_.errors, rows=judged)
        return Vacuous("progressive.vote", reason, delta)
    rate = None if result.rate is None else round(math.log2(result.rate))
    return error_rate(
        "progressive.vote", 2 * result.bound, {**pass_.params, "errors": pass_.errors, "rate": rate}, "train", delta
    )


def _compressed(pass_: Pass, lost: Callable[[], int], delta: str) -> Claim | NotApplicable:
    if bound_of(0, pass_.rows, pass_.kept, 0.0, delta) + OUTWARD >= 1:
        return too_many("compression.voted-perceptron", pass_.rows, pass_.kept, delta)
    params = {"skipped": pass_.skipped, "seed": pass_.seed}
    return stated(
        "compression.voted-perceptron", lost(), pass_.rows, pass_.kept, SideInformation(params, 0.0, {}), delta
    )
