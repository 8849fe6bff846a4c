"""Generalised linear models under scikit-learn's names: counts, durations, and Tweedie's distributions.

    minimise over w, b    1 / S sum_i s_i d(y_i, mu_i) / 2 + alpha / 2 |w|^2,   mu_i = exp(<w, x_i> + b)

d the unit deviance of a distribution whose variance is mean^power: 0 normal, 1 Poisson, 2 gamma, 3 inverse Gaussian,
between 1 and 2 sums of gamma numbers, Poisson many of them.

Claims: for the powers 0, 1 and 2 those of `GeneralizedLinearRegressor`.
Method: Fisher scoring, as there; the other powers have their own loss and slope.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import d2_tweedie_score

from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.linear_model._glm import GeneralizedLinearRegressor, Problem, totals
from assay.messages import Message
from assay.params import Choice, Count, Flag, Number, refuse
from assay.scan import Rows
from assay.theory.spaces import LinearFunctions

_POWERS = {0.0: "gaussian", 1.0: "poisson", 2.0: "gamma"}
_LOSSES = {0.0: "HalfSquaredError", 1.0: "HalfPoissonLoss", 2.0: "HalfGammaLoss"}


@dataclass(eq=False, repr=False)
class PoissonRegressor(GeneralizedLinearRegressor):
    """Counts whose mean is exp(<w, x> + b): generalised linear regression by the Poisson deviance.

    Parameters
    ----------
    alpha : float >= 0
        Weight of the L2 penalty on w; b is not penalised.
    fit_intercept : bool
    solver : "lbfgs" or "newton-cholesky"
        scikit-learn's names; there is one minimum, and Newton's method finds it.
    max_iter, tol : int, float > 0
        Steps allowed, and about the gradient at which they end.
    warm_start : bool
        Whether to start from the coefficients of the last fit.
    n_jobs : int or None
        Threads; None uses all cores.

    Attributes
    ----------
    coef_, intercept_, n_iter_, deviance_

    Examples
    --------
    >>> from assay.linear_model import PoissonRegressor
    >>> model = PoissonRegressor(alpha=0.0).fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 4.0])
    >>> model.predict([[3.0]]).round(6).tolist()
    [8.0]
    """

    card = Card(
        name="Poisson regression",
        task="regress",
        model=LinearFunctions(),
        strategy="Poisson deviance + L2",
        algorithm="Fisher scoring with a sampled start and a lazily renewed Hessian",
        guarantee=("glm.stationarity",),
        role="named",
    )

    constraints: ClassVar = {"solver": Choice("lbfgs", "newton-cholesky"), "warm_start": Flag, "verbose": Count(low=0)}

    distribution: str = field(default="poisson", init=False)
    _: KW_ONLY
    link: Any = field(default=None, init=False)
    alpha: float = 1.0
    solver: str = "lbfgs"
    max_iter: int = 100
    tol: float = 1e-4
    warm_start: bool = False
    verbose: int = 0

    @property
    def _precision(self) -> float:
        return 1e-6 * self.tol**2  # where the gradient is about a thousandth of tol

    @property
    def _power(self) -> float:
        return {name: power for power, name in _POWERS.items()}[self.distribution]

    def _begin(self, problem: Problem) -> np.ndarray | None:
        """Return the coefficients of the last fit, if they are to be started from and fit the rows."""
        last = getattr(self, "coef_", np.empty(0))
        if not self.warm_start or len(last) != problem.rows.n_features:
            return None
        return problem.pack(last, float(self.intercept_))

    def _require_range(self, least: float, most: float) -> None:
        power = self._power
        if (least < 0 and power >= 1) or (least <= 0 and power >= 2):
            loss = _LOSSES.get(power, "HalfTweedieLoss")
            bounds = "y >= 0" if power < 2 else "y > 0"
            raise refuse(
                self, f"it needs {bounds}; got values from {least:g} to {most:g}. Some value(s) of y are out of the "
                f"valid range of the loss '{loss}'.",
            )  # fmt: skip

    def _scikit_state(self, estimator: Any) -> dict[str, Any]:
        return {"_base_loss": estimator._get_loss()}

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return D^2, the share of the deviance that the model explains: 1 is the best."""
        mean = self.predict(X)
        if len(y) != len(mean):
            raise refuse(self, f"X has {len(mean)} rows and y {len(y)}.")
        self._require_range(float(np.min(y)), float(np.max(y)))
        return float(d2_tweedie_score(y, mean, sample_weight=sample_weight, power=self._power))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.positive_only = self._power >= 1
        return tags


@dataclass(eq=False, repr=False)
class GammaRegressor(PoissonRegressor):
    """Positive numbers whose mean is exp(<w, x> + b) and whose spread grows with it: the gamma deviance.

    Parameters and attributes as of `PoissonRegressor`.

    Examples
    --------
    >>> from assay.linear_model import GammaRegressor
    >>> model = GammaRegressor(alpha=0.0).fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 4.0])
    >>> model.predict([[3.0]]).round(6).tolist()
    [8.0]
    """

    card = Card(
        name="Gamma regression",
        task="regress",
        model=LinearFunctions(),
        strategy="gamma deviance + L2",
        algorithm="Fisher scoring with a sampled start and a lazily renewed Hessian",
        guarantee=("glm.stationarity",),
        role="named",
    )

    distribution: str = field(default="gamma", init=False)


@dataclass(eq=False, repr=False)
class TweedieRegressor(PoissonRegressor):
    """Generalised linear regression by the deviance of a distribution whose variance is mean^power.

    Parameters
    ----------
    power : float, not between 0 and 1
        0 normal, 1 Poisson, 2 gamma, 3 inverse Gaussian; between 1 and 2 numbers that are often exactly zero, such as
        the cost of claims.
    link : "auto", "identity" or "log"
        "auto" is "identity" for a power <= 0, else "log". "identity" is for the powers up to 1.

    The other parameters and the attributes are those of `PoissonRegressor`.

    Examples
    --------
    >>> from assay.linear_model import TweedieRegressor
    >>> model = TweedieRegressor(power=1.5, alpha=0.0).fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 4.0])
    >>> model.predict([[3.0]]).round(6).tolist()
    [8.0]
    """

    card = Card(
        name="Tweedie regression",
        task="regress",
        model=LinearFunctions(),
        strategy="deviance of a distribution whose variance is a power of the mean + L2",
        algorithm="Fisher scoring with a sampled start and a lazily renewed Hessian",
        guarantee=("glm.stationarity",),
        role="named",
    )

    constraints: ClassVar = {
        "power": Number(),
        "link": Choice("auto", "identity", "log"),
        "distribution": Choice(*_POWERS.values(), "tweedie"),
    }

    distribution: str = field(default="tweedie", init=False)
    power: float = 0.0
    _: KW_ONLY
    link: str = "auto"

    @property
    def link_(self) -> str:
        """The link: the parameter, or what "auto" stands for."""
        return self.link if self.link != "auto" else "log" if self.power > 0 else "identity"

    @property
    def _power(self) -> float:
        return float(self.power)

    def _problem(self, rows: Rows) -> Problem:
        if self.distribution != "tweedie":
            return super()._problem(rows)
        if 0 < self.power < 1:
            raise refuse(self, f"no distribution has a power between 0 and 1; got {self.power!r}.")
        if self.link_ != "log":
            raise refuse(self, f'with power={self.power!r} the link must be "log", which keeps means positive.')
        weight, total = rows.sum(totals)
        intercept = bool(self.fit_intercept)
        return _PowerProblem(rows, "tweedie", "log", float(self.alpha), intercept, weight, total, self._power)

    def _row_losses(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        if self.distribution != "tweedie":
            return super()._row_losses(y, scores)
        return _deviances(y.astype(np.float64), scores[:, 0], self._power) / (2 * len(y))

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the bound on nearby improvements, for the powers 0, 1 and 2."""
        if self.distribution == "tweedie":
            yield NotApplicable("glm.stationarity", Message("why.tweedie-power"))
        else:
            yield from super().facts(rows)


def _distribution(model: TweedieRegressor) -> str:
    """Return the name of the distribution that has this power."""
    return _POWERS.get(model.power, "tweedie")


TweedieRegressor.distribution = property(_distribution)  # type: ignore[assignment]


@dataclass(frozen=True)
class _PowerProblem(Problem):
    """The objective for a power that is neither 0, 1 nor 2, by the logarithm of the mean."""

    power: float = 1.5

    def value_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        w, b = self.unpack(x)
        value, slope, offset = self.rows.sum(_loss, w, b, self.power)
        gradient = self.pack(slope / self.weight + self.alpha * w, float(offset) / self.weight)
        return float(value) / self.weight + 0.5 * self.alpha * float(w @ w), gradient

    def hessian(self, x: np.ndarray, *, observed: bool = False) -> np.ndarray:
        d = self.rows.n_features
        matrix = self.rows.sum(_curvature, *self.unpack(x), self.power) / self.weight
        matrix[np.arange(d), np.arange(d)] += self.alpha
        return matrix if self.intercept else matrix[:d, :d]

    def deviance(self, x: np.ndarray) -> float:
        return float(self.rows.sum(_weighted_deviance, *self.unpack(x), self.power))


def _loss(block: Block, w: np.ndarray, b: float, power: float) -> tuple[float, np.ndarray, float]:
    """Return the sum of half the deviances, up to what the coefficients do not change, and its gradient."""
    y, f = block.y.reshape(len(block.X)), block.X @ w + b
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = np.exp((1 - power) * f), np.exp((2 - power) * f)
        lost, slope = high / (2 - power) - y * low / (1 - power), high - y * low
    weight = 1.0 if block.weight is None else block.weight
    slope = weight * slope
    return float((weight * lost).sum()), slope @ block.X, float(slope.sum())


def _curvature(block: Block, w: np.ndarray, b: float, power: float) -> np.ndarray:
    from assay.loops.moments import moments

    h = np.exp((2 - power) * (block.X @ w + b)) * (1.0 if block.weight is None else block.weight)
    return moments(block.X, np.empty((len(h), 0)), h, np.zeros(block.X.shape[1]))


def _weighted_deviance(block: Block, w: np.ndarray, b: float, power: float) -> float:
    unit = _deviances(block.y.reshape(len(block.X)), block.X @ w + b, power)
    return float(unit.sum() if block.weight is None else block.weight @ unit)


def _deviances(y: np.ndarray, f: np.ndarray, power: float) -> np.ndarray:
    """Return the deviance of each row whose logarithm of the mean is f."""
    own = np.maximum(y, 0.0) ** (2 - power) / ((1 - power) * (2 - power))
    return 2 * (own - y * np.exp((1 - power) * f) / (1 - power) + np.exp((2 - power) * f) / (2 - power))
