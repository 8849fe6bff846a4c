"""A regression of the logarithm of the target, inverted: predictions and errors are on the target's own scale.

    h(y) = ln(1 + (y - a) / u),   f(x) = a + u (exp(min(max(g(x), 0), t)) - 1)

a is 0, or the least target if that is negative; u the first decile of y - a where it is positive; t = h of the largest
target; g is fitted to h(y). So f never leaves the range of the targets that it was fitted to. Money, times and counts
are often products of many causes: their logarithm is closer to a sum.

What is certified is f: the bound of its rounding follows from that of g, since |exp(p) - exp(q)| <= exp(max(p, q)) |p -
q|.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from assay.card import Card
from assay.data.blocks import Block
from assay.ensemble._combined import UNIT, CombinedLearner, Output, Task, fit_members, raw_link
from assay.fitlog import FitLog
from assay.linear_model import Ridge
from assay.params import check, refuse
from assay.theory.spaces import Unbounded

_SKEWED = 1.0
_LARGEST = 700.0  # exponents above it come near to overflow


def is_skewed(y: np.ndarray) -> bool:
    """Tell whether the logarithm of a target is worth a trial: its skewness is above 1, and the logarithm's is less
    than half of that.

    >>> y = np.random.default_rng(0).normal(size=500)
    >>> is_skewed(y), is_skewed(np.exp(y))
    (False, True)
    """
    before, scale = _skewness(y), scale_of(y)
    return before > _SKEWED and _fits(scale) and abs(_skewness(_logarithms(y, scale))) < 0.5 * before


def _skewness(y: np.ndarray) -> float:
    y = y / max(float(np.abs(y).max()), 1e-300)  # whose cubes neither overflow nor vanish
    apart = y - y.mean()
    spread = float(np.sqrt(np.mean(apart**2)))
    return float(np.mean((apart / spread) ** 3)) if spread > 0 else 0.0


def scale_of(y: np.ndarray) -> np.ndarray:
    """Return a, u and t of the formula."""
    origin = min(0.0, float(y.min()))
    with np.errstate(over="ignore", invalid="ignore"):
        above = (y - origin)[y > origin]
        unit = float(np.quantile(above, 0.1)) if len(above) else 1.0
        return np.array([origin, unit, np.log1p((y.max() - origin) / unit)])


def _fits(scale: np.ndarray) -> bool:
    """Tell whether the exponentials of the formula are far from the largest number."""
    origin, unit, top = scale.tolist()
    return top <= _LARGEST and np.log(unit) + top <= _LARGEST and -origin <= np.exp(_LARGEST)


def _logarithms(y: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return np.log1p((y - scale[0]) / scale[1])


@dataclass(eq=False, repr=False)
class LogTargetRegressor(RegressorMixin, CombinedLearner):
    """A regression of the logarithm of the target, whose predictions are on the target's own scale.

    Parameters
    ----------
    estimator : regressor or None
        Any regressor; None is `Ridge`.
    n_jobs : int or None
        Threads of the regressor; changes the time, never a bit.

    Attributes
    ----------
    estimator_ : the fitted regressor of the logarithm
    target_scale_ : (3,)
        a, u and t of the formula.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.ensemble import LogTargetRegressor
    >>> from assay.linear_model import LinearRegression
    >>> X = np.linspace(0, 5, 50)[:, None]
    >>> y = np.exp(2 * X[:, 0])
    >>> models = [model.fit(X, y) for model in (LogTargetRegressor(LinearRegression()), LinearRegression())]
    >>> [round(float(np.mean(np.abs(model.predict(X) - y)))) for model in models]
    [369, 2570]
    """

    combines = "exponentials of regressions of any class"
    family = "log_target"
    figure = "wrapped"
    card = Card(
        name="Regression of the logarithm",
        task="regress",
        model=Unbounded("exponentials of regressions of any class"),
        strategy="that of the learner, on the logarithm of the target",
        algorithm="one fit; predictions inverted, and clipped to the range of the targets",
        guarantee=(),
        role="target",
    )

    estimator: Any = None
    _: KW_ONLY
    n_jobs: int | None = None

    def _base(self) -> Any:
        return Ridge() if self.estimator is None else self.estimator

    @property
    def estimator_(self) -> Any:
        """The fitted learner of the logarithm."""
        check_is_fitted(self, "members_")
        return self.members_[0]

    def fit(self, X: Any, y: Any) -> "LogTargetRegressor":
        """Fit the regressor to rows X and the logarithms of y."""
        check(self)
        X = self._rows(X, reset=True)
        target, _ = self._targets(X, y, None)
        self._check_kinds(self._bases(), False)
        with FitLog(self, 1, X, y) as log:
            scale = scale_of(target)
            if not _fits(scale):
                raise refuse(self, f"the targets reach from {target.min():g} to {target.max():g}: their range is above "
                             "1e304 or exp(700) times the first decile of y - a.")  # fmt: skip
            self.target_scale_ = scale
            logarithms = _logarithms(target, self.target_scale_)
            self._keep(fit_members(self, [Task("estimator", self._base(), X, logarithms)], self.n_jobs))
            log.step(float(np.mean(np.abs(self._inverted(X) - target))), 0.0)
        return self

    def _link_of(self, t: int) -> int:
        return raw_link(self.members_[t])

    def _inverted(self, X: Any) -> np.ndarray:
        origin, unit, top = self.target_scale_.tolist()
        said = np.asarray(self.members_[0].predict(X), dtype=np.float64)
        return origin + unit * np.expm1(np.clip(said, 0.0, top))

    def predict(self, X: Any) -> np.ndarray:
        """Return the predictions on the scale of the target."""
        check_is_fitted(self, "members_")
        return self._inverted(self._rows(X, reset=False))

    def _combine(self, outputs: Sequence[Output], block: Block) -> Output:
        origin, unit, top = self.target_scale_.tolist()
        values, errors = outputs[0]
        grown = np.exp(np.clip(values + errors, 0.0, top))
        rounding = 64 * UNIT * (abs(origin) + unit * grown)
        moved = np.minimum(errors, top) * unit * grown
        return origin + unit * np.expm1(np.clip(values, 0.0, top)), 1.01 * moved + rounding
