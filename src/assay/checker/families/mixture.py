"""Gaussian mixtures, and the classifier that compares the mixtures of its classes.

Arrays: `weights_` (k,), `means_` (k, d), `precisions_cholesky_` ((k, d, d) full, (d, d) tied, (k, d) diag, (k,)
spherical), upper triangular with a positive diagonal; a classifier also has `priors_` (classes,) and
`component_class_` (k,).
"""

from functools import partial

from assay.checker.family import NUMBERS, WHOLE, Family, Variant
from assay.checker.rules import densities, mixtures
from assay.checker.rules.mixtures import LOG_LIKELIHOOD
from assay.claims.definitions import Definition
from assay.claims.sentences import Sentence, part

_STATIONARY = Sentence(
    {
        "": "The mixture{which} ({covariance:term} covariances) is near a fixed point of EM{added}: an M step gains at "
        "most {value:up} nats per row and moves means (in units of spread), covariances and weights (as shares) by at "
        "most {moved:up}.",
        "class": " of class number {class}",
        "added": " with {reg_covar:g} added to each variance",
    },
    lambda value, direction, params: {
        "which": part("class" in params, "class"),
        "added": part(params["reg_covar"], "added"),
    },
)


_WEIGHTS = Sentence(
    {
        "": "No other weights of the same components{which} fit the training rows better by more than {value:up} nats "
        "per row.",
        "class": " of class number {class}",
    },
    lambda value, direction, params: {"which": part("class" in params, "class")},
)


_MONOTONE = Sentence.plain(
    "EM from the listed start comes within {distance:up1} of the model in {steps} steps, none of which lowers the mean "
    "log-likelihood by more than {value:up1}."
)


CLAIMS = {
    "D23/1": Definition("density.log-likelihood", mixtures.LogLikelihood, LOG_LIKELIHOOD),
    "D23/2": Definition("em.stationary", mixtures.Stationary, _STATIONARY),
    "D23/3": Definition("em.weights", mixtures.BestWeights, _WEIGHTS),
    "D23/4": Definition("em.monotone", mixtures.Monotone, _MONOTONE),
}
_ARRAYS = {"weights_": NUMBERS, "means_": NUMBERS, "precisions_cholesky_": NUMBERS}
FAMILY = Family(
    "mixture",
    {
        **{kind: Variant(_ARRAYS, partial(densities.read_mixture, kind), target=False) for kind in densities.KINDS},
        "classifier": Variant(
            {"priors_": NUMBERS, "component_class_": WHOLE, **_ARRAYS},
            densities.read_classifier,
            classes=True,
            probabilities=("logistic",),
        ),
    },
    CLAIMS,
)
