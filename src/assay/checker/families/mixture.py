"""Gaussian mixtures, and the classifier that compares the mixtures of its classes.

Arrays: `weights_` (k,), `means_` (k, d), `precisions_cholesky_` ((k, d, d) full, (d, d) tied, (k, d) diag, (k,)
spherical), upper triangular with a positive diagonal; a classifier also has `priors_` (classes,) and
`component_class_` (k,).
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from assay.checker.family import NUMBERS, WHOLE, Family, Variant
from assay.checker.rules import densities, mixtures
from assay.checker.rules.mixtures import log_likelihood
from assay.claims.definitions import Definition, up


def _stationary(value: float, direction: str, params: Mapping[str, Any]) -> str:
    which = f" of class number {params['class']}" if "class" in params else ""
    which += f" ({params['covariance']} covariances)"
    added = f" with {params['reg_covar']:g} added to each variance" if params["reg_covar"] else ""
    return (
        f"The mixture{which} is near a fixed point of EM{added}: an M step gains at most {up(value)} nats per row and "
        f"moves means (in units of spread), covariances and weights (as shares) by at most {up(params['moved'])}."
    )


def _weights(value: float, direction: str, params: Mapping[str, Any]) -> str:
    which = f" of class number {params['class']}" if "class" in params else ""
    fit = f"No other weights of the same components{which} fit the training rows better"
    return f"{fit} by more than {up(value)} nats per row."


def _monotone(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return (
        f"EM from the listed start comes within {up(params['distance'], 1)} of the model in {params['steps']} steps, "
        f"none of which lowers the mean log-likelihood by more than {up(value, 1)}."
    )


CLAIMS = {
    "D23/1": Definition("density.log-likelihood", mixtures.LogLikelihood, log_likelihood),
    "D23/2": Definition("em.stationary", mixtures.Stationary, _stationary),
    "D23/3": Definition("em.weights", mixtures.BestWeights, _weights),
    "D23/4": Definition("em.monotone", mixtures.Monotone, _monotone),
}
_ARRAYS = {"weights_": NUMBERS, "means_": NUMBERS, "precisions_cholesky_": NUMBERS}
FAMILY = Family(
    "mixture",
    {
        **{kind: Variant(_ARRAYS, partial(densities.read_mixture, kind), target=False) for kind in densities.KINDS},
        "classifier": Variant(
            {"priors_": NUMBERS, "component_class_": WHOLE, **_ARRAYS}, densities.read_classifier, classes=True
        ),
    },
    CLAIMS,
)
