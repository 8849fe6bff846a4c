"""Linear models: scores X W' + b.

Arrays: `coef_` (K, d), or (d,) for one output; `intercept_` (K,) or one number; `classes_` of a classifier, with one
row of coefficients for two classes (positive: the second), one row per class for more (the largest wins).
"""

from collections.abc import Mapping
from typing import Any

from assay.checker.family import NUMBERS, Family, Variant
from assay.checker.rules import duality, geometry, gradient, leave_one_out, multinomial
from assay.checker.rules.linear_models import class_weights, enclosure, mistakes, read_linear
from assay.checker.rules.perceptron import PerceptronCompression
from assay.checker.rules.stability import StabilityInBall
from assay.claims.definitions import (
    PRIOR,
    Definition,
    classes_in_words,
    error_rate,
    gap_sentence,
    outward,
    problem_in_words,
    up,
)


def _suboptimality(value: float, direction: str, params: Mapping[str, Any]) -> str:
    problem = problem_in_words({**params, "loss": params["objective"]})
    if params["form"] == "a":
        return f"The training objective ({problem}) is at most {up(value)} above its minimum."
    near = f"No coefficients within distance {params['radius']:.3g} of these lower the training objective"
    return f"{near} ({problem}) by more than {up(value)}."


def _plane(params: Mapping[str, Any]) -> str:
    return "hyperplane" if params["intercept"] is True else "hyperplane through the origin"


def _margin(value: float, direction: str, params: Mapping[str, Any]) -> str:
    where = " in the space with a constant column added" if params["intercept"] == "augmented" else ""
    plane, classes, margin = _plane(params), classes_in_words(params), outward(value, direction, 6)
    if direction == "lower":
        return f"Some {plane} separates {classes} with a margin of at least {margin}{where}."
    return f"No {plane} separates {classes} with a margin above {margin}{where}."


def _inseparable(value: float, direction: str, params: Mapping[str, Any]) -> str:
    if params["form"] == "ii":
        listed = "a few listed rows already cannot be separated"
        return f"No {_plane(params)} separates {classes_in_words(params)}: {listed}."
    told = f" in telling {classes_in_words(params)}" if "class" in params else ""
    return f"Every {_plane(params)} makes at least {int(value)} training errors{told}."


def _left_out(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return f"The exact algorithm makes at most {int(value)} leave-one-out errors on these rows."


CLAIMS = {
    "D04/1": Definition(
        "opt.duality-gap",
        duality.LinearGap,
        gap_sentence(),
        by_loss={
            "squared": "ridge.gap",
            "squared L1": "elastic-net.gap",
            "logistic": "logistic.gap",
            "hinge": "linear-svm.gap",
            "squared-hinge": "linear-svm.gap",
            "epsilon-insensitive": "linear-svr.gap",
            "squared-epsilon-insensitive": "linear-svr.gap",
        },
    ),
    "D05/1": Definition("opt.suboptimality", gradient.Suboptimality, _suboptimality),
    "D09/1": Definition("multinomial.gap", multinomial.MultinomialGap, gap_sentence("multinomial logistic")),
    "D13/1": Definition("margin.bounds", geometry.Margin, _margin, (), ("upper", "lower")),
    "D14/1": Definition("inseparability", geometry.Inseparable, _inseparable, (), ("lower",)),
    "D15/1": Definition("solution.enclosure", duality.Enclosure, enclosure),
    "D16/2": Definition("loo.errors", leave_one_out.LeaveOneOutErrors, _left_out),
    "D17/1": Definition("perceptron.mistakes", geometry.PerceptronMistakes, mistakes),
    "P16/1": Definition(
        "compression.perceptron",
        PerceptronCompression,
        error_rate("{errors} errors outside the {kept} of {rows} training rows that the updates were made on"),
        PRIOR,
        quantity="error rate",
    ),
    "P17/2": Definition(
        "stability.ball",
        StabilityInBall,
        error_rate("{rows} training rows, each of which moves the model little; no row longer than {radius:g}"),
        (*PRIOR, "A-SUPP"),
        quantity="error rate",
    ),
}
_ARRAYS = {"coef_": NUMBERS, "intercept_": NUMBERS}
FAMILY = Family(
    "linear",
    {
        "classifier": Variant(_ARRAYS, read_linear, classes=True, more={"class_weight_": class_weights}),
        "regressor": Variant(_ARRAYS, read_linear),
    },
    CLAIMS,
)
