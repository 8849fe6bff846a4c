"""Sub-optimality from the gradient, for problems without a penalty (claim suboptimality)."""

import numpy as np

from assay.checker.numerics import SMALLEST, Products, U, above, gamma, is_psd_after, norm_above
from assay.checker.record import Refused, Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules.losses import sigmoid
from assay.checker.rules.multinomial import softmax
from assay.checker.rules.problem import accurate_scores, check_intercept, class_weights, cost


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
            self.class_weight = class_weights(given, len(classes or ()))
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
