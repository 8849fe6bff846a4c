"""The length of a kernel regression's weights in the kernel's space, for the statement that rests on it (P24)."""

from typing import Any

import numpy as np

from assay.guarantees.evidence import Norm
from assay.scan import Rows
from assay.svm._base import support_rows
from assay.svm._facts import kernel_magnitude, why_no_gap
from assay.svm._statements import why_not_fixed

_UNIT = 2.0**-53


def function_norm(machine: Any, rows: Rows, intercept: bool) -> Norm:
    """Return |(w, b)|, rounded up, and the trace of the Gram matrix; or why the space was not fixed or has no norm."""
    reason = why_not_fixed(machine) or why_no_gap(machine)
    if reason is not None:
        return Norm(why_not=reason)
    kernel, vectors = machine._kernel(), support_rows(machine)
    beta, b = machine.pair_coef_[0], float(machine.intercept_[0])
    square = max(0.0, float(beta @ kernel(vectors) @ beta)) if len(beta) else 0.0
    size, slip = (float(part.max(initial=0.0)) for part in kernel_magnitude(kernel, vectors, vectors))
    slip = 2 * (slip + 16 * (len(beta) + 16) * _UNIT * size) * float(np.abs(beta).sum()) ** 2
    trace = sum(rows.map(lambda block: float(np.maximum(kernel.diagonal(block.X), 0.0).sum())))
    return Norm(float(np.sqrt(square + slip + b * b)), trace, intercept)
