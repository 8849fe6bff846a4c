"""Kernel expansions f_k(x) = sum_j c_kj kappa(v_j, x) + b_k: the class of the largest, or coordinates of a map.

Arrays are those of the kernel family; a classifier has an output per class, one alone for two classes.
"""

from typing import Any

import numpy as np

from assay.checker.family import Family, Variant
from assay.checker.rules import duality, expansions, kernel_machines
from assay.checker.rules.expansions import KernelPerceptronCompression
from assay.checker.rules.kernel_machines import GAP
from assay.checker.rules.kernels import ARRAYS
from assay.checker.rules.linear_models import ENCLOSURE, MISTAKES, class_weights
from assay.checker.rules.stability import UniformStability
from assay.claims.definitions import PRIOR, Definition
from assay.claims.sentences import Sentence, error_rate

_ONE_CLASS = Sentence.plain("The training objective (one class, nu = {nu:g}) is at most {value:up} above its minimum.")


_VARIANCE = Sentence.plain(
    "No {components} directions of the kernel's space hold more of the rows' variance than these, up to {value:up}."
)


_FISHER = Sentence.plain(
    "In the kernel's space no directions reach a sum of Fisher ratios (mu = {mu:g}) more than {value:up} above that of "
    "these."
)


def _directions(array: np.ndarray, model: Any) -> bool:
    return array.ndim == 2 and len(array) == len(model.vectors)


def _means(array: np.ndarray, model: Any) -> bool:
    return array.shape == (len(model.classes), len(model.vectors))


def _ratios(array: np.ndarray, model: Any) -> bool:
    return array.ndim == 1 and len(array) < len(model.classes)


CLAIMS = {
    "D04/2": GAP,
    "D12/1": Definition("one-class.gap", kernel_machines.OneClassGap, _ONE_CLASS),
    "D15/1": Definition("solution.enclosure", duality.Enclosure, ENCLOSURE),
    "D17/2": Definition("kernel-perceptron.mistakes", expansions.KernelMistakes, MISTAKES),
    "D18/2": Definition("kernel-pca.optimality", expansions.KernelComponents, _VARIANCE),
    "D19/2": Definition("kernel-lda.optimality", expansions.KernelFisher, _FISHER),
    "P16/3": Definition(
        "compression.kernel-perceptron",
        KernelPerceptronCompression,
        error_rate("{errors} errors outside the {kept} of {rows} training rows that the updates were made on"),
        PRIOR,
        quantity="error rate",
    ),
    "P17/1": Definition(
        "stability.uniform",
        UniformStability,
        error_rate("{rows} training rows, each of which moves the model little"),
        PRIOR,
        quantity="error rate",
    ),
}
FAMILY = Family(
    "expansion",
    {
        "classifier": Variant(
            ARRAYS,
            expansions.read_expansion,
            classes=True,
            probabilities=("logistic",),
            more={
                "class_weight_": class_weights,
                "priors_": class_weights,
                "scalings_": _directions,
                "kernel_means_": _means,
                "fisher_ratios_": _ratios,
            },
        ),
        "map": Variant(ARRAYS, expansions.read_expansion, target=False),
    },
    CLAIMS,
)
