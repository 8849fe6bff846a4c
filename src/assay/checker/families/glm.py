"""Generalised linear models: means of rows through a link, and how flat and how curved the deviance is (claim
glm.stationarity)."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import erfc, log_ndtr

from assay.checker.family import NUMBERS, Family, Variant
from assay.checker.numerics import SMALLEST, Products, U, above, gamma, is_psd_after, norm_above
from assay.checker.predictors import Linear, Predictor
from assay.checker.record import Refused, Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules.linear_models import read_linear
from assay.checker.rules.losses import sigmoid
from assay.claims.definitions import Definition
from assay.claims.sentences import Sentence, part

LINKS = ("log", "logit", "probit", "inverse")
CONVEX = {
    "gaussian": ("identity",),
    "lognormal": ("log",),
    "poisson": ("log", "identity"),
    "gamma": ("log", "inverse"),
    "binomial": ("logit", "probit", "log", "identity"),
}
"""Pairs for which the loss of a row is convex in its score, its slope rises with it, and its curvature has
no dip."""
_ROUNDING_ERROR = 1e-13  # relative error of an elementary function or of a few of them in a row


@dataclass(frozen=True)
class Linked(Predictor):
    """Means g^-1(<w, x> + b) of a linear score."""

    inner: Linear
    link: str

    @property
    def columns(self) -> int:
        return self.inner.columns

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return means (rows, 1) and error bounds (1,); every link is monotone, so the ends of the score
        bound the mean."""
        mean, off = self._means(*self.inner.scores(X, largest))
        return mean, off.max(axis=0)

    def _means(self, f: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, low, high = (_mean(self.link, f + side * error) for side in (0.0, -1.0, 1.0))
        off = np.maximum(np.abs(low - mean), np.abs(high - mean)) + _ROUNDING_ERROR * np.maximum(
            np.abs(low), np.abs(high)
        )
        if self.link == "inverse" and np.any(np.abs(f) <= error):
            raise Refused("a score may be zero, where the inverse link has no mean")
        return mean, above(off) + SMALLEST  # `predict` may round a mean below the normal numbers to zero

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self._means(*self.inner.scores(X, np.zeros(X.shape[1]))[:1], self.inner.row_errors(X))[1]


def read_linked(link: str, W: np.ndarray, b: np.ndarray, classes: Any) -> Linked:
    """Return the model of that link; it has one row of coefficients."""
    if W.ndim != 1 or b.size != 1 or not W.size:
        raise Rejected(f"coef_ has shape {W.shape} and intercept_ {b.shape}; they must be (d,) and one number")
    return Linked(Linear(W[None, :], b.reshape(1), None), link)


def _mean(link: str, f: np.ndarray) -> np.ndarray:
    if link == "log":
        return np.exp(f)
    if link == "logit":
        return sigmoid(f)[0]
    return 0.5 * erfc(-f / np.sqrt(2.0)) if link == "probit" else 1.0 / f


class GlmStationarity(Rule):
    """glm.stationarity: P = 1/S sum s_i d(y_i, mu_i)/2 + alpha/2 |w|^2 is convex; no coefficients within `radius` lower
    it by more
    than |g| radius. With mu > 0: the Hessian at the model, columns times 2^exponents, minus mu I is PSD."""

    def prepare(self) -> None:
        self.kind = self.choice("distribution", list(CONVEX))
        self.link = self.choice("link", CONVEX[self.kind])
        model = self.model.inner if isinstance(self.model, Linked) else self.linear
        if (self.model.link if isinstance(self.model, Linked) else "identity") != self.link or len(model.W) != 1:
            raise Rejected("the link is not the model's")
        self.inner, self.intercept = model, self.flag("intercept")
        if not self.intercept and np.any(model.b):
            raise Rejected("the problem has no intercept, the model has one")
        self.alpha, self.mu = self.number("alpha", zero=True), self.number("mu", zero=True)
        self.radius = self.number("radius")
        self.size = model.columns + self.intercept
        exponents = self.witness("exponents", self.size, integer=True)
        if np.any(np.abs(exponents) > 400):
            raise Refused("exponents beyond 400")
        self.scale = np.ldexp(1.0, exponents)
        self.products, self.weight = Products(self.size, 1), 0.0
        self.gram, self.longest, self.adds = np.zeros((self.size, self.size)), 0, 0

    def block(self, view: View) -> None:
        f, error = self.inner.scores(view.X, view.largest)
        y, s = view.targets[:, :1], view.weight[:, None]
        if view.targets.shape[1] != 1:
            raise Rejected("it needs one target")
        if self.kind == "lognormal":
            if np.any(y <= 0):
                raise Rejected("the logarithm needs y > 0")
            y = np.log(y)
            error = error + 4 * U * np.abs(y).max()
        middle, low, high = (self._slope(y, f + side * error) for side in (0.0, -1.0, 1.0))
        spread = np.maximum(np.abs(high - middle), np.abs(low - middle))
        off = spread + _ROUNDING_ERROR * (self._size(y, f) + np.abs(middle))
        if not np.isfinite(off).all():
            raise Rejected("a score is outside the domain of the link")
        A = np.hstack([view.X, np.ones((len(f), 1))])[:, : self.size]
        largest = np.append(view.largest, 1.0)[: self.size]
        pull = np.where(np.abs(s * middle) < SMALLEST, 0.0, s * middle)
        self.products.add(A, pull, largest, above(s * off + 4 * U * np.abs(pull)).sum(axis=0) + len(f) * SMALLEST)
        self.weight += float(s.sum())
        if self.mu > 0:
            h = np.minimum(*(self._curve(y, f + side * error) for side in (-1.0, 1.0))) * (1 - 1e-6)
            B = A * self.scale
            self.gram += B.T @ (B * (s * np.maximum(h, 0.0)))
            self.longest, self.adds = max(self.longest, len(f)), self.adds + 1

    def measure(self) -> float:
        if not self.weight > 0:
            raise Rejected("the weights are all zero")
        w = np.append(self.inner.W[0], 0.0)[: self.size]
        slope, error = self.products.value[0] / self.weight, self.products.error[0] / self.weight
        rounding = gamma(self.rows + 16) * np.abs(slope) + 8 * U * np.abs(self.alpha * w)
        norm = norm_above(np.abs(slope + self.alpha * w) + above(error + rounding))
        if self.mu > 0:
            self._check_curvature()
        return float(above(norm * self.radius))

    def _check_curvature(self) -> None:
        penalty = np.append(np.full(self.inner.columns, self.alpha), 0.0)[: self.size] * self.scale**2
        H = self.gram / self.weight + np.diag(penalty)
        trace = above(float(np.trace(H)), self.size + 8)
        slack = above(gamma(self.longest + self.adds + self.rows + 32) * trace * 2)
        if not is_psd_after(H, above(self.mu + slack, 2)):
            raise Rejected(f"mu = {self.mu:g} is not shown to be below the least curvature")

    def _size(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Return the size of the terms whose difference the slope is."""
        return (
            np.abs(y) + np.abs(self._slope(np.zeros_like(y), f)) + np.abs(self._slope(np.ones_like(y), f)) + np.abs(f)
        )

    def _slope(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Return the derivative of half the deviance by the score."""
        if self.kind in ("gaussian", "lognormal"):
            return f - y
        if self.kind == "poisson":
            return np.exp(f) - y if self.link == "log" else _positive(f, 1 - y / f)
        if self.kind == "gamma":
            return 1 - y * np.exp(-f) if self.link == "log" else _positive(f, y - 1 / f)
        if self.link == "logit":
            return sigmoid(f)[0] - y
        if self.link == "probit":
            return (1 - y) * _mills(-f) - y * _mills(f)
        if self.link == "log":
            return _positive(-f, (1 - y) * np.exp(f) / -np.expm1(f) - y)
        return np.where((f > 0) & (f < 1), (1 - y) / (1 - f) - y / f, np.nan)

    def _curve(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Return the second derivative of half the deviance by the score."""
        if self.kind in ("gaussian", "lognormal"):
            return np.ones_like(f)
        if self.kind == "poisson":
            return np.exp(f) if self.link == "log" else y / f**2
        if self.kind == "gamma":
            return y * np.exp(-f) if self.link == "log" else 1 / f**2
        if self.link == "logit":
            p, q = sigmoid(f)
            return p * q
        if self.link == "probit":
            up, down = _mills(f), _mills(-f)
            return y * up * (f + up) + (1 - y) * down * (down - f)
        if self.link == "log":
            return (1 - y) * np.exp(f) / np.expm1(f) ** 2
        return y / f**2 + (1 - y) / (1 - f) ** 2


def _positive(f: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.where(f > 0, value, np.nan)


def _mills(f: np.ndarray) -> np.ndarray:
    """Return phi(f) / Phi(f)."""
    return np.exp(-0.5 * f * f - 0.5 * np.log(2 * np.pi) - log_ndtr(f))


_SENTENCE = Sentence(
    {
        "": "No coefficients within distance {radius:.3g} of these lower the {distribution:term} deviance by more than "
        "{value:up}.{curved}",
        "curved": " There it is curved upwards, by at least {mu:down} in scaled columns.",
    },
    lambda value, direction, params: {"curved": part(params["mu"], "curved")},
)


CLAIMS = {"D32/1": Definition("glm.stationarity", GlmStationarity, _SENTENCE)}
_ARRAYS = {"coef_": NUMBERS, "intercept_": NUMBERS}
FAMILY = Family(
    "glm",
    {
        "identity": Variant(_ARRAYS, read_linear),
        **{link: Variant(_ARRAYS, partial(read_linked, link)) for link in LINKS},
    },
    CLAIMS,
)
