"""Gaussian classes: linear and quadratic discriminants.

`linear`: `coef_`, `intercept_`, `classes_` as in the linear family. `quadratic`: scores <u, A u> + <w, u> + b,
u = x - c, with `center_` (d,), `quadratic_` (K, d, d), `linear_` (K, d), `constant_` (K,); K = 1 for two classes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from assay.checker.family import NUMBERS, SINGLE, Family, Variant
from assay.checker.predictors import Linear, Quadratic
from assay.checker.record import Rejected
from assay.checker.rules.linear_models import read_linear
from assay.checker.rules.moments import FisherOptimality, GaussianClasses
from assay.claims.definitions import Definition
from assay.claims.sentences import Part, Sentence, part


def read_fisher(W: np.ndarray, b: np.ndarray, classes: Any) -> Linear:
    """Return the model of linear scores, which has an intercept for each of them."""
    if b.ndim != 1:
        raise Rejected(f"intercept_ has shape {b.shape}; it must have an entry for each row of coef_")
    return read_linear(W, b, classes)


def read_quadratic(center: np.ndarray, A: np.ndarray, w: np.ndarray, b: np.ndarray, classes: Any) -> Quadratic:
    """Return the model after checking that its arrays fit together."""
    K, d = 1 if len(classes) == 2 else len(classes), center.size
    if center.ndim != 1 or not d or A.shape != (K, d, d) or w.shape != (K, d) or b.shape != (K,):
        raise Rejected(f"center_ {center.shape}, quadratic_ {A.shape}, linear_ {w.shape}, constant_ {b.shape} differ")
    return Quadratic(center, A, w, b, classes)


_FISHER = Sentence(
    {
        "": "{which} reaches the largest Fisher ratio up to {value:up}: no other separates the class means better.",
        "only": "The direction",
        "first": "The first direction",
    },
    lambda value, direction, params: {"which": Part("only" if params["form"] == "two-class" else "first")},
)


_GAUSSIAN = Sentence(
    {
        "": "The scores are those of Gaussian classes with {kept}{shrunk}, fitted to the rows by maximum likelihood: "
        "means and covariances are right to {error:up1} and scores near the centre to {value:up1}, columns in units of "
        "their spread.",
        "shared": "one covariance",
        "each": "a covariance each",
        "shrunk": ", shrunk by {shrinkage:g}",
    },
    lambda value, direction, params: {
        "kept": Part("shared" if params["form"] == "linear" else "each"),
        "shrunk": part(params["shrinkage"], "shrunk"),
    },
)


def _per_class(*rest: str) -> Callable[[np.ndarray, Any], bool]:
    """Return the check that an array has a row for each class, of so many columns as the model where "d" stands."""

    def check(array: np.ndarray, model: Any) -> bool:
        return array.shape == (len(model.classes), *(model.columns for _ in rest))

    return check


def _shares(array: np.ndarray, model: Any) -> bool:
    return array.shape == (len(model.classes),) and bool((array >= 0).all()) and abs(array.sum() - 1) <= 1e-9


def _directions(array: np.ndarray, model: Any) -> bool:
    return array.ndim == 2 and len(array) == model.columns


def _square(array: np.ndarray, model: Any) -> bool:
    return array.shape == (model.columns, model.columns)


CLAIMS = {
    "D19/1": Definition("lda.optimality", FisherOptimality, _FISHER),
    "D19/3": Definition("gaussian.mle", GaussianClasses, _GAUSSIAN),
}
FAMILY = Family(
    "discriminant",
    {
        "linear": Variant(
            {"coef_": SINGLE, "intercept_": SINGLE},
            read_fisher,
            classes=True,
            probabilities=("logistic",),
            more={
                "scalings_": _directions,
                "means_": _per_class("d"),
                "sigma_": _square,
                "priors_": _shares,
            },
        ),
        "quadratic": Variant(
            {"center_": NUMBERS, "quadratic_": NUMBERS, "linear_": NUMBERS, "constant_": NUMBERS},
            read_quadratic,
            classes=True,
            probabilities=("logistic",),
            more={"means_": _per_class("d"), "sigma_": _per_class("d", "d"), "priors_": _shares},
        ),
    },
    CLAIMS,
)
