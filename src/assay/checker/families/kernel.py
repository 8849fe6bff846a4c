"""Support vector machines and kernel ridge regression: f(x) = sum_j beta_j kappa(v_j, x) + b.

Arrays: `support_vectors_` (m, d), `pair_coef_` (outputs, m), `intercept_` (outputs,), `support_` (m,) row numbers,
`kernel_numbers_` (kind, gamma, degree, coef0, columns). A classifier has an output for each pair of classes, and
the pairs vote.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from assay.checker.family import Family, Variant
from assay.checker.rules import duality, kernels, leave_one_out, machines
from assay.checker.rules.kernel_gap import GAP
from assay.checker.rules.kernels import ARRAYS
from assay.checker.rules.linear_models import class_weights, enclosure
from assay.checker.rules.support_vectors import SupportCompression
from assay.claims.definitions import PRIOR, Definition, error_rate, outward, up


def _margin(value: float, direction: str, params: Mapping[str, Any]) -> str:
    if direction == "lower":
        return (
            f"The classes are separated in the kernel's space with a margin of at least {outward(value, direction, 6)}."
        )
    return (
        f"No hyperplane of the kernel's space separates the classes with a margin above {outward(value, direction, 6)}."
    )


def _kkt(value: float, direction: str, params: Mapping[str, Any]) -> str:
    which = f" of pair {params['pair']} of classes" if "pair" in params else ""
    return f"The largest KKT violation{which} is at most {up(value)}, in units of the margin."


def _sigmoids(array: np.ndarray, model: Any) -> bool:
    """Tell whether an array is slope and offset of the calibration of each pair of classes, or none."""
    return array.shape in ((0, 2), (len(model.coef), 2))


def _width(array: np.ndarray, model: Any) -> bool:
    return array.shape == () and bool(array >= 0)


def _press(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return f"The mean squared leave-one-out error of the exact algorithm is at most {up(value, 6)}."


CLAIMS = {
    "D04/2": GAP,
    "D13/2": Definition("kernel-margin.bounds", kernels.KernelMargin, _margin, (), ("upper", "lower")),
    "D15/1": Definition("solution.enclosure", duality.Enclosure, enclosure),
    "D15/2": Definition("kkt.residual", machines.KktResidual, _kkt),
    "D16/1": Definition("loo.squared-error", leave_one_out.PressError, _press),
    "P16/2": Definition(
        "compression.support-vectors",
        SupportCompression,
        error_rate("{errors} rows in doubt outside the {kept} support vectors among {rows} training rows"),
        PRIOR,
        quantity="error rate",
    ),
}
FAMILY = Family(
    "kernel",
    {
        "classifier": Variant(
            ARRAYS,
            kernels.read_kernel_machine,
            classes=True,
            more={"calibration_": _sigmoids, "class_weight_": class_weights},
        ),
        "regressor": Variant(ARRAYS, kernels.read_kernel_machine, more={"epsilon_": _width}),
    },
    CLAIMS,
)
