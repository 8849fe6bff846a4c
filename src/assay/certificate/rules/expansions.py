"""Kernel expansions f_k(x) = sum_j c_kj kappa(v_j, x) + b_k: the class of the largest, or a map of the rows.

Kernel values and their errors are those of `kernels`; what differs from a support vector machine is that the
outputs are compared with each other instead of voting in pairs, or stand for coordinates.
"""

import numpy as np

from assay.certificate.rules.kernels import KernelMachine, read_kernel_machine
from assay.certificate.rules.record import Rejected


class Expansion(KernelMachine):
    """One output per class (one alone for two classes: positive means the second), or any number of coordinates."""

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scores, errors = self.pair_scores(X)
        return scores, errors.max(axis=0)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self.pair_scores(X)[1]


def read_expansion(
    vectors: np.ndarray,
    coef: np.ndarray,
    b: np.ndarray,
    support: np.ndarray,
    kernel: np.ndarray,
    classes: tuple[str, ...] | None,
) -> Expansion:
    """Return the expansion of stored arrays, after checking that they fit together."""
    if classes is not None and len(coef) != (1 if len(classes) == 2 else len(classes)):
        raise Rejected(f"pair_coef_ has {len(coef)} rows for {len(classes)} classes")
    if coef.ndim != 2 or b.shape != (len(coef),) or not len(coef):
        raise Rejected(f"pair_coef_ and intercept_ have shapes {coef.shape}, {b.shape}")
    one = read_kernel_machine(vectors, coef[:1], b[:1], support, kernel, None)
    stored = (one.kind, one.gamma, one.degree, one.coef0, one.width)
    return Expansion(one.vectors, coef, b, one.support, *stored, classes)
