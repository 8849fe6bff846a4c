"""What kernel machines say about new data (the producer's side; the checker has its own)."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from assay.certificate.claim import NotApplicable
from assay.certificate.compression import Supported, support_statement
from assay.certificate.margins import Scores, statements
from assay.certificate.risk import Statement
from assay.scan import Rows
from assay.scan.blocks import Block
from assay.svm._facts import dual_gap, hinge_bracket, kernel_magnitude, scores, why_no_gap

_UNIT = 2.0**-53


def margin_statements(machine: Any, rows: Rows) -> Iterator[Statement | NotApplicable]:
    """Yield P12 and P18 in the kernel's space with a constant column."""
    reason = why_not_fixed(machine) or why_no_gap(machine)
    if len(machine.classes_) > 2:
        reason = "More than two classes decide by votes of pairs, which are not scores of one space."
    if reason is not None:
        yield from (NotApplicable(template, reason) for template in ("P12/1", "P18/1"))
        return
    kernel, vectors, beta, b = machine._kernel(), machine.support_vectors_, machine.pair_coef_[0], machine.intercept_[0]
    square = max(0.0, float(beta @ kernel(vectors) @ beta)) if len(beta) else 0.0
    size, slip = (float(part.max(initial=0.0)) for part in kernel_magnitude(kernel, vectors, vectors))
    slip = (slip + 16 * (len(beta) + 16) * _UNIT * size) * float(np.abs(beta).sum()) ** 2
    norm = float(np.sqrt(square + b * b))

    def margins(block: Block) -> tuple[np.ndarray, np.ndarray]:
        values, error = scores(machine, block)
        own = np.maximum(kernel.diagonal(block.X), 0.0) + 1.0
        return np.where(block.y == 1, values[:, 0], -values[:, 0]) - error.max(), own

    slack = 2 * slip / norm**2 + 64 * (rows.n_features + len(beta) + 64) * _UNIT if norm > 0 else 0.0
    yield from statements(Scores(margins, (), norm, 2, True, slack), rows)


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

    def bracket(block: Block, f: np.ndarray, error: np.ndarray, theta: np.ndarray) -> np.ndarray:
        here = is_kept[block.start : block.start + len(f)]
        return np.where(here, hinge_bracket(machine, (1, 0), block, f, error, theta), 0.0)

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
    told = 2 * (isinstance(machine.class_weight, str)) + (why_not_fixed(machine) is not None)
    told += isinstance(machine.kernel, str) and machine.kernel == "auto"
    gap = dual_gap(machine, rows, 0, bracket)
    return Supported(kept, gap, float(machine.intercept_[0]), int(told), params, lost)


def why_not_fixed(machine: Any) -> str | None:
    """Return which parameter of the kernel was computed from the training rows, or None."""
    if isinstance(machine.kernel, str) and machine.kernel == "auto":
        return "kernel='auto' looks at the training rows, so the space was not fixed in advance; name a kernel."
    scaled = isinstance(machine.gamma, str) and machine.gamma == "scale"
    if scaled and machine.chosen_kernel_ not in ("linear", "precomputed", "given"):
        return "gamma='scale' is computed from the training rows, so the space was not fixed in advance; give a number."
    return None
