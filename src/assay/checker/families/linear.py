"""Linear models: scores X W' + b.

Arrays: `coef_` (K, d), or (d,) for one output; `intercept_` (K,) or one number; `classes_` of a classifier, with one
row of coefficients for two classes (positive: the second), one row per class for more (the largest wins).

Sub-optimality of multinomial logistic regression (duality gap), and of problems without a penalty (gradient).
"""

import math
from typing import NamedTuple

import numpy as np

from assay.checker.family import NUMBERS, Family, Variant
from assay.checker.numerics import (
    SMALLEST,
    UNDERFLOW,
    Products,
    Sums,
    U,
    above,
    excess_above,
    gamma,
    is_psd_after,
    norm_above,
)
from assay.checker.record import Refused, Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules import duality, hyperplanes
from assay.checker.rules.duality import accurate_scores, check_intercept, cost
from assay.checker.rules.duality import class_weights as exact_class_weights
from assay.checker.rules.hyperplanes import PerceptronCompression
from assay.checker.rules.linear_models import ENCLOSURE, MISTAKES, class_weights, read_linear
from assay.checker.rules.losses import TINY, far_mass, sigmoid
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


class Softmax(NamedTuple):
    """Probabilities of the classes of each row."""

    p: np.ndarray  # (rows, K)
    own: np.ndarray  # one-hot labels
    depth: np.ndarray  # how far each score is below the largest of its row
    rounding_error: np.ndarray  # relative error of p as softmax of the computed scores
    score_error: float


def softmax(view: View) -> Softmax:
    scores, errors = accurate_scores(view)
    depth = scores.max(axis=1, keepdims=True) - scores
    p = np.exp(-depth)
    p /= p.sum(axis=1, keepdims=True)
    own = np.zeros_like(p)
    own[np.arange(len(p)), view.known_codes] = 1.0
    return Softmax(p, own, depth, (p.shape[1] + 40 + depth) * U, float(errors.max()))


class MultinomialGap(Rule):
    """multinomial.gap: 1/2 |W|^2 + sum C_i (ln sum_k exp(s_ik) - s_iy).

    Any rows p_i of the simplex with sum C_i p_i = sum C_i e_(y_i) (for a free intercept) give the bound
    sum C_i KL(p_i || softmax(s_i)) + 1/2 |W - V|^2, V = sum C_i (e_(y_i) - p_i) x_i'. Here p = softmax(s) as
    computed and divided by its sum, mixed with a constant row until the column sums are right.
    """

    strength = 1.0

    def prepare(self) -> None:
        self.outputs, d = self.linear.W.shape
        if self.model.classes is None or self.outputs != len(self.model.classes):
            raise Rejected("the multinomial problem needs one row of coefficients per class")
        self.C, self.intercept = self.number("C"), self.flag("intercept")
        check_intercept(self, self.linear.b)
        self.class_weight = exact_class_weights(self.param("class_weight"), self.outputs)
        self.sums, self.losses, self.products = Sums(2 * self.outputs), Sums(1), Products(d, self.outputs)
        self.balancing = self.intercept
        self.keep, self.mix, self.mix_error = 1.0, np.zeros(self.outputs), np.zeros(self.outputs)

    def block(self, view: View) -> None:
        soft = softmax(view)
        c = cost(view, self.C, self.class_weight)[:, None]
        if self.balancing:
            self.sums.add(np.hstack([c * soft.p, c * soft.own]))
        else:
            self._evaluate(view, c, soft)

    def next_pass(self) -> bool:
        """Find the mixture. Exact numbers are c, p / sum(p) and their sums; the computed ones are off by a
        few U."""
        if not self.balancing:
            return False
        self.balancing = False
        have, want = self.sums.value.reshape(2, -1)
        off = above(self.sums.error.reshape(2, -1) + (self.outputs + 16) * U * np.stack([have, want]))
        total = max(float(want.sum()), SMALLEST)
        most = float(np.min((want - off[1]) / np.maximum(have + off[0], SMALLEST))) * (1 - 8 * U)
        self.keep = max(0.0, min(1.0, most))
        self.mix = np.maximum(want - self.keep * have, 0.0) / total
        self.mix_error = above((off.sum(axis=0) + (self.outputs + 16) * U * (want + have)) / total)
        return True

    def _evaluate(self, view: View, c: np.ndarray, soft: Softmax) -> None:
        p, error = soft.p, soft.score_error
        mixed = self.keep * p + self.mix
        slip = above((soft.rounding_error + 8 * U) * (mixed + p) + self.mix_error)
        gap, off = mixed - p, above(slip + p * np.expm1(2 * error))
        reference = np.maximum(p, TINY) * np.exp(-2 * error) * (1 - soft.rounding_error)
        brackets = excess_above(reference, above(np.abs(gap) + off), gap > off)
        far = soft.depth > 300
        if far.any():
            bound = far_mass(mixed + slip, soft.depth + 2 * error + math.log(self.outputs))
            brackets = np.where(far, bound, brackets)
        self.losses.add(above((c * brackets).sum(axis=1), self.outputs + 8)[:, None])
        theta = c * (soft.own - mixed)
        slack = (c * (slip + 8 * U * (soft.own + mixed)) + SMALLEST).sum(axis=0)
        self.products.add(view.X, np.where(np.abs(theta) < SMALLEST, 0.0, theta), view.largest, slack)

    def measure(self) -> float:
        v, error = self.products.value, self.products.error
        distance = above(np.abs(v - self.linear.W) + error + 4 * U * (np.abs(v) + np.abs(self.linear.W)))
        penalty = float(above(np.sum(distance * distance) / 2, distance.size + 8))
        return float(above(self.losses.value[0] + self.losses.error[0] + penalty + UNDERFLOW))


class Suboptimality(Rule):
    """suboptimality. Form a: P - min P <= |g|^2 / (2 mu) where mu bounds the least eigenvalue of the Gram matrix from
    below.

    Columns may be shifted (with an intercept) and scaled by powers of two: both are changes of coordinates.
    Form b: no coefficients within `radius` lower the objective by more than |g| radius (convexity). `g` is
    the gradient.
    """

    def prepare(self) -> None:
        self.form, self.intercept = self.choice("form", ["a", "b"]), self.flag("intercept")
        self.objective = self.choice("objective", ["squared", "logistic", "multinomial"])
        check_intercept(self, self.linear.b)
        outputs, d = self.linear.W.shape
        classes = self.model.classes
        fits = {
            "squared": classes is None,
            "logistic": self.model.binary,
            "multinomial": outputs == len(classes or ()),
        }
        if not fits[self.objective]:
            raise Rejected(f"the {self.objective} objective does not fit this model")
        self.class_weight = None
        if self.objective != "squared":
            given = self.param("class_weight") if self.has("class_weight") else None
            self.class_weight = exact_class_weights(given, len(classes or ()))
        size = d + 1 if self.intercept else d
        self.center, self.scale = np.zeros(d), np.ones(size)
        if self.form == "a":
            self._read_coordinates(d, size)
        else:
            self.radius = self.number("radius")
        self.products = Products(size, outputs)
        self.gram, self.roundings, self.adds = np.zeros((size, size)), 0, 0

    def _read_coordinates(self, d: int, size: int) -> None:
        if self.objective != "squared":
            raise Rejected("form a is for the squared objective")
        self.mu, self.center = self.number("mu"), self.witness("center", d)
        if not self.intercept and np.any(self.center):
            raise Rejected("columns can be shifted only with an intercept")
        exponents = self.witness("exponents", size, integer=True)
        if np.any(np.abs(exponents) > 400):
            raise Refused("exponents beyond 400")
        self.scale = np.ldexp(1.0, exponents)

    def block(self, view: View) -> None:
        pull, off = self._pull(view)
        d = len(self.center)
        A = np.ones((len(view.X), len(self.scale)))
        np.subtract(view.X, self.center, out=A[:, :d])
        A *= self.scale
        largest = np.maximum(A.max(axis=0), -A.min(axis=0)) * (1 + 4 * U)
        slack = (off + 4 * U * np.abs(pull)).sum(axis=0)
        self.products.add(A, np.where(np.abs(pull) < SMALLEST, 0.0, pull), largest, slack + len(A) * SMALLEST)
        if self.form == "a":
            plain = np.all(view.weight == 1.0)
            self.gram += A.T @ (A if plain else A * view.weight[:, None])
            self.roundings, self.adds = max(self.roundings, len(A)), self.adds + 1

    def _pull(self, view: View) -> tuple[np.ndarray, np.ndarray]:
        """Return minus the derivative of each row's loss by its scores, and a bound of the error."""
        c = cost(view, 1.0, self.class_weight)[:, None]
        if self.objective == "multinomial":
            soft = softmax(view)
            pull = soft.own - soft.p
            off = soft.p * (np.expm1(2 * soft.score_error) + soft.rounding_error) + 2 * U * np.abs(pull)
        else:
            scores, errors = view.scores if self.objective == "squared" else accurate_scores(view)
            y = view.targets if self.objective == "squared" else np.where(view.known_codes == 1, 1.0, -1.0)[:, None]
            if self.objective == "squared":
                pull = y - scores
                off = errors + 2 * U * np.abs(pull)
            else:
                s, rest = sigmoid(-y * scores)
                pull, off = y * s, s * (np.expm1(errors) * rest + 16 * U)
        return c * pull, above(c * (off + 4 * U * np.abs(pull)))

    def measure(self) -> float:
        norm = norm_above(np.abs(self.products.value) + self.products.error)
        if self.form == "b":
            return float(above(norm * self.radius))
        # |error of the Gram matrix| <= gamma sqrt(G_jj G_kk) entry by entry, hence at most gamma trace(G) in
        # norm
        trace = above(float(np.trace(self.gram)), len(self.gram) + 8)
        slack = above(gamma(self.roundings + self.adds + 16) * trace * 2)
        if not is_psd_after(self.gram, above(self.mu + slack, 2)):
            raise Rejected(f"mu = {self.mu:g} is not shown to be below the least eigenvalue of the Gram matrix")
        return float(above(norm * norm / (2 * self.mu)))


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
    "D05/1": Definition("suboptimality", Suboptimality, _SUBOPTIMALITY),
    "D09/1": Definition("multinomial.gap", MultinomialGap, gap_sentence("multinomial logistic")),
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
