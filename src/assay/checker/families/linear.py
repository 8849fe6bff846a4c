"""Linear models: scores X W' + b.

Arrays: `coef_` (K, d), or (d,) for one output; `intercept_` (K,) or one number; `classes_` of a classifier, with one
row of coefficients for two classes (positive: the second), one row per class for more (the largest wins).
"""

from assay.checker.family import NUMBERS, Family, Variant
from assay.checker.rules import duality, hyperplanes, optimality
from assay.checker.rules.hyperplanes import PerceptronCompression
from assay.checker.rules.linear_models import ENCLOSURE, MISTAKES, class_weights, read_linear
from assay.checker.rules.stability import StabilityInBall
from assay.claims.definitions import PRIOR, Definition
from assay.claims.sentences import (
    CLASSES,
    PROBLEM,
    Params,
    Part,
    Sentence,
    classes,
    error_rate,
    gap_sentence,
    part,
    problem,
)

_SUBOPTIMALITY = Sentence(
    PROBLEM
    | {
        "": "The training objective ({problem:, }) is at most {value:up} above its minimum.",
        "near": "No coefficients within distance {radius:.3g} of these lower the training objective ({problem:, }) by "
        "more than {value:up}.",
    },
    lambda value, direction, params: {
        "text": "" if params["form"] == "a" else "near",
        "problem": problem({**params, "loss": params["objective"]}),
    },
)


_PLANE = CLASSES | {"plane": "hyperplane", "origin": "hyperplane through the origin"}


def _separated(value: float, direction: str, params: Params) -> Params:
    plane = Part("plane" if params["intercept"] is True else "origin")
    return {"plane": plane, "classes": classes(params)}


_MARGIN = Sentence(
    _PLANE
    | {
        "lower": "Some {plane} separates {classes} with a margin of at least {value:out6}{where}.",
        "upper": "No {plane} separates {classes} with a margin above {value:out6}{where}.",
        "augmented": " in the space with a constant column added",
    },
    lambda value, direction, params: {
        "where": part(params["intercept"] == "augmented", "augmented"),
        **_separated(value, direction, params),
    },
)


def _inseparable(value: float, direction: str, params: Params) -> Params:
    counted = "one-errors" if "class" in params else "errors"
    return {"text": "" if params["form"] == "ii" else counted, **_separated(value, direction, params)}


_INSEPARABLE = Sentence(
    _PLANE
    | {
        "": "No {plane} separates {classes}: a few listed rows already cannot be separated.",
        "errors": "Every {plane} makes at least {value:count} training errors.",
        "one-errors": "Every {plane} makes at least {value:count} training errors in separating {classes}.",
    },
    _inseparable,
)


_LEFT_OUT = Sentence.plain("The exact algorithm makes at most {value:count} leave-one-out errors on these rows.")


CLAIMS = {
    "D04/1": Definition(
        "duality-gap",
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
    "D05/1": Definition("suboptimality", optimality.Suboptimality, _SUBOPTIMALITY),
    "D09/1": Definition("multinomial.gap", optimality.MultinomialGap, gap_sentence("multinomial logistic")),
    "D13/1": Definition("margin.bounds", hyperplanes.Margin, _MARGIN, (), ("upper", "lower")),
    "D14/1": Definition("inseparability", hyperplanes.Inseparable, _INSEPARABLE, (), ("lower",)),
    "D15/1": Definition("solution.enclosure", duality.Enclosure, ENCLOSURE),
    "D16/2": Definition("loo.errors", duality.LeaveOneOutErrors, _LEFT_OUT),
    "D17/1": Definition("perceptron.mistakes", hyperplanes.PerceptronMistakes, MISTAKES),
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
        "classifier": Variant(
            _ARRAYS, read_linear, classes=True, probabilities=("logistic",), more={"class_weight_": class_weights}
        ),
        "regressor": Variant(_ARRAYS, read_linear),
    },
    CLAIMS,
)
