"""What kernel machines say about new data (the producer's side; the checker has its own)."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from assay.claims.claim import NotApplicable
from assay.data.blocks import Block
from assay.guarantees.compression import Supported, kernel_perceptron_statement, support_statement
from assay.guarantees.ledger import Statement
from assay.guarantees.margins import Scores, statements
from assay.kernels import Precomputed
from assay.scan import Rows
from assay.svm._base import support_rows
from assay.svm._facts import hinge_problem, kernel_magnitude, machine_gap, scores, why_no_gap

_UNIT = 2.0**-53


def margin_statements(machine: Any, rows: Rows) -> Iterator[Statement | NotApplicable]:
    """Yield P12 (P13 for a score per class) and P18 in the kernel's space, with a constant column if b is free."""
    several = len(machine.classes_) > 2
    reason = why_not_fixed(machine) or _why_no_space(machine)
    if several and machine.family == "kernel.classifier":
        reason = "More than two classes decide by votes of pairs, which are not scores of one space."
    if reason is not None:
        yield from (NotApplicable(template, reason) for template in ("P13/1" if several else "P12/1", "P18/1"))
        return
    norm, slack = _length(machine)
    intercept = bool(getattr(machine, "fit_intercept", True))
    parameters = (machine, machine._kernel(), intercept)
    slack += 64 * (rows.n_features * len(machine.pair_coef_) + len(machine.support_) + 64) * _UNIT
    yield from statements(Scores(_margins, parameters, norm, len(machine.classes_), intercept, slack), rows)


def _length(machine: Any) -> tuple[float, float]:
    """Return |(w, b)|, all outputs together, and how far rounding can have moved it, as a share of it."""
    kernel, vectors, beta = machine._kernel(), support_rows(machine), machine.pair_coef_
    square = float(np.einsum("ki,ij,kj->", beta, kernel(vectors), beta, optimize=True)) if beta.size else 0.0
    size, slip = (float(part.max(initial=0.0)) for part in kernel_magnitude(kernel, vectors, vectors))
    most = slip + 16 * (beta.shape[1] + len(beta) + 16) * _UNIT * size
    slip = most * float(np.square(np.abs(beta).sum(axis=1)).sum())
    norm = float(np.sqrt(max(0.0, square) + np.square(machine.intercept_).sum()))
    return norm, 2 * slip / norm**2 if norm > 0 else 0.0


def _margins(block: Block, machine: Any, kernel: Any, intercept: bool) -> tuple[np.ndarray, np.ndarray]:
    values, error = scores(machine, block)
    own = np.maximum(kernel.diagonal(block.X), 0.0) + float(intercept)
    if values.shape[1] == 1:
        return np.where(block.y == 1, values[:, 0], -values[:, 0]) - 1.01 * error.max(), own
    row = np.arange(len(values))
    best = values.copy()
    best[row, block.y] = -np.inf
    return values[row, block.y] - best.max(axis=1) - 2.1 * error.max(), own


def compression_statements(machine: Any, rows: Rows) -> Iterator[Statement | NotApplicable]:
    """Yield P16/2: the machine rebuilt from its support vectors."""
    reason = why_no_gap(machine)
    if len(machine.classes_) > 2:
        reason = "More than two classes: every pair has support vectors and an offset of its own to pay for."
    elif getattr(machine, "C", None) is None or np.isinf(machine.C):
        reason = "The machine is rebuilt through the duality gap, which needs a finite C."
    elif rows.has_weight:
        reason = "Row weights: the bound is about equally likely rows."
    if reason is not None:
        yield NotApplicable("P16/2", reason)
    else:
        yield support_statement(rows, len(machine.support_), partial(_supported, machine, rows))


def _supported(machine: Any, rows: Rows) -> Supported:
    kept, kernel = np.sort(machine.support_).astype(np.int64), machine._kernel()
    is_kept = np.zeros(rows.n_rows, dtype=bool)
    is_kept[kept] = True

    def open_margins(block: Block) -> tuple[np.ndarray, np.ndarray, float]:
        values, error = scores(machine, block)
        others = ~is_kept[block.start : block.start + len(values)]
        margin = np.where(block.y == 1, values[:, 0], -values[:, 0])
        return margin[others], np.sqrt(np.maximum(kernel.diagonal(block.X), 0.0))[others], float(error.max())

    margins, lengths, errors = zip(*rows.map(open_margins), strict=True)
    margin, length, error = np.concatenate(margins), np.concatenate(lengths) * (1 + 1e-9), max(errors)

    def lost(slope: float, step: float) -> int:
        return int(np.count_nonzero(margin <= (2 * slope * length + step) * (1 + 1e-9) + 1.01 * error))

    weighted = machine.class_weight is not None
    params = {"C": float(machine.C), "class_weight": machine.class_weight_.tolist() if weighted else None}
    told = 2 * (isinstance(machine.class_weight, str)) + told_numbers(machine)
    gap = machine_gap(machine, rows, hinge_problem(machine), kept=is_kept)
    return Supported(kept, gap, float(machine.intercept_[0]), int(told), params, lost)


def told_numbers(machine: Any) -> int:
    """Return how many numbers of the kernel were computed from the rows: gamma, and which kernel for "auto"."""
    auto = isinstance(machine.kernel, str) and machine.kernel == "auto"
    return int(why_not_fixed(machine) is not None) + int(auto)


def update_statements(machine: Any, rows: Rows) -> Iterator[Statement | NotApplicable]:
    """Yield P16/3 of an expansion whose coefficients are numbers of updates."""
    if machine.chosen_kernel_ in ("given", "precomputed"):
        yield NotApplicable("P16/3", "The kernel is a matrix, function or object which the checker does not have.")
        return
    if np.any(machine.pair_coef_ != np.rint(machine.pair_coef_)):
        yield NotApplicable("P16/3", "The coefficients are not the numbers of updates that fit left.")
        return
    is_kept = np.zeros(rows.n_rows, dtype=bool)
    is_kept[machine.support_] = True
    kernel = machine._kernel()

    def part(block: Block) -> int:
        margin = _margins(block, machine, kernel, False)[0]
        return int(np.count_nonzero(~(margin > 0) & ~is_kept[block.start : block.start + len(margin)]))

    counts, intercept = np.abs(machine.pair_coef_.T).astype(np.int64), bool(machine.fit_intercept)
    yield kernel_perceptron_statement(
        rows.n_rows, counts, intercept, told_numbers(machine), lambda: sum(rows.map(part))
    )


def _why_no_space(machine: Any) -> str | None:
    """Return why the kernel gives no space that the checker knows, or None."""
    kernel = machine._kernel()
    if isinstance(kernel, Precomputed) or machine.chosen_kernel_ == "given":
        return "The kernel is a matrix, function or object which the checker does not have."
    return None if kernel.psd else f"{kernel!r} is not positive semidefinite in general: there is no space."


def why_not_fixed(machine: Any) -> str | None:
    """Return which parameter of the kernel was computed from the training rows, or None."""
    if isinstance(machine.kernel, str) and machine.kernel == "auto":
        return "kernel='auto' looks at the training rows, so the space was not fixed in advance; name a kernel."
    scaled = isinstance(machine.gamma, str) and machine.gamma == "scale"
    if scaled and machine.chosen_kernel_ not in ("linear", "precomputed", "given"):
        return "gamma='scale' is computed from the training rows, so the space was not fixed in advance; give a number."
    return None
