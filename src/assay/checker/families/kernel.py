"""Support vector machines and kernel ridge regression: f(x) = sum_j beta_j kappa(v_j, x) + b.

Arrays: `support_vectors_` (m, d), `pair_coef_` (outputs, m), `intercept_` (outputs,), `support_` (m,) row numbers,
`kernel_numbers_` (kind, gamma, degree, coef0, columns). A classifier has an output for each pair of classes, and
the pairs vote.
"""

from typing import Any

import numpy as np

from assay.checker.family import Family, Variant
from assay.checker.rules import duality, kernel_machines, kernels
from assay.checker.rules.kernel_machines import GAP, SupportCompression
from assay.checker.rules.kernels import ARRAYS
from assay.checker.rules.linear_models import ENCLOSURE, class_weights
from assay.claims.definitions import PRIOR, Definition
from assay.claims.sentences import Sentence, error_rate, part

_MARGIN = Sentence(
    {
        "lower": "The classes are separated in the kernel's space with a margin of at least {value:out6}.",
        "upper": "No hyperplane of the kernel's space separates the classes with a margin above {value:out6}.",
    }
)


_KKT = Sentence(
    {
        "": "The largest KKT violation{which} is at most {value:up}, in units of the margin.",
        "pair": " of pair {pair} of classes",
    },
    lambda value, direction, params: {"which": part("pair" in params, "pair")},
)


def _sigmoids(array: np.ndarray, model: Any) -> bool:
    """Tell whether an array is slope and offset of the calibration of each pair of classes, or none."""
    return array.shape in ((0, 2), (len(model.coef), 2))


def _width(array: np.ndarray, model: Any) -> bool:
    return array.shape == () and bool(array >= 0)


_PRESS = Sentence.plain("The mean squared leave-one-out error of the exact algorithm is at most {value:up6}.")


CLAIMS = {
    "D04/2": GAP,
    "D13/2": Definition("kernel-margin.bounds", kernels.KernelMargin, _MARGIN, (), ("upper", "lower")),
    "D15/1": Definition("solution.enclosure", duality.Enclosure, ENCLOSURE),
    "D15/2": Definition("kkt.residual", kernel_machines.KktResidual, _KKT),
    "D16/1": Definition("loo.squared-error", duality.PressError, _PRESS),
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
