"""Cascade-correlation networks: hidden units are added one by one, each seeing the columns and all units before it.

    maximise over u    sum_o | sum_p (V_p - mean V) (E_po - mean E_o) |,    V_p = tanh(<u, (x_p, h_p)> + c)

E are the residuals of the outputs o at rows p. The best of several candidates is frozen and becomes a feature; then
the output weights are those of least squares on columns and units (with penalty alpha), so that the objective never
rises: a new unit with weight zero changes nothing. The structure is learnt too, there are no layer sizes to choose;
which is also why few rows are soon learnt by heart, and `early_stopping` keeps rows out to end the growth by.

Claims: no other output weights of the same units are better by more than a stated number (features.least-squares);
        errors and hold-out statements from the checker's own units.
Method: L-BFGS for each candidate, candidates on threads (Fahlman and Lebiere 1990).
"""

import math
import warnings
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from assay.base import Diagram, fit_log
from assay.card import Card
from assay.fitlog import FitLog
from assay.messages import named
from assay.neural_network._claims import Networks
from assay.neural_network._rbf import _LEAST, _UNIT, Basis, BasisClassifier, BasisRegressor
from assay.params import Count, Flag, Number, check, refuse
from assay.scan import thread_map

_ENOUGH = 0.8  # of the residual of a target +1 or -1: the row is on its side with something to spare


class Parted(NamedTuple):
    """Rows to train on and rows to judge by, as features and targets."""

    F: np.ndarray
    Y: np.ndarray
    held: np.ndarray | None
    held_Y: np.ndarray | None


@dataclass(eq=False, repr=False)
class Cascade(Basis):
    """A growing network; the parameters of both tasks."""

    constraints: ClassVar = {
        "max_units": Count(low=0),
        "n_candidates": Count(),
        "alpha": Number(low=0.0),
        "tol": Number(low=0.0),
        "max_iter": Count(),
        "early_stopping": Flag,
        "validation_fraction": Number(low=0.0, high=1 - 1e-12, open_low=True),
        "n_iter_no_change": Count(),
    }
    max_units: int = 30
    _: KW_ONLY
    n_candidates: int = 8
    alpha: float = 1e-8
    tol: float = 1e-4
    max_iter: int = 100
    early_stopping: bool = False
    validation_fraction: float = 0.2
    n_iter_no_change: int = 3
    random_state: Any = None
    n_jobs: int | None = None

    def diagram(self) -> Diagram:
        """Return the layers that a diagram shows."""
        return Diagram([], [], is_cascade=True)

    @property
    def n_units_(self) -> int:
        """Number of hidden units."""
        return len(self.units_)

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Any:
        """Grow a network on rows X and targets y."""
        check(self)
        data, Y = self._read(X, y)
        random = check_random_state(self.random_state)
        parted = self._parted(data, Y, random)
        self.units_ = np.zeros((0, data.shape[1] + 1))
        self.growth_: list[float] = []
        with fit_log(self, self.max_units + 1, X, y) as log:
            self._grow(data, Y, parted, random, log)
        self.n_iter_ = len(log.history)
        return self

    def _parted(self, X: np.ndarray, Y: np.ndarray, random: np.random.RandomState) -> Parted:
        if not self.early_stopping:
            return Parted(X, Y, None, None)
        coded = Y.argmax(axis=1) if Y.shape[1] > 1 else Y[:, 0]
        try:
            kept, held = train_test_split(
                np.arange(len(X)),
                test_size=self.validation_fraction,
                random_state=random,
                stratify=coded if hasattr(self, "classes_") else None,
            )
        except ValueError as error:
            raise refuse(self, f"early_stopping cannot keep out rows to judge by: {error}") from None
        return Parted(X[kept], Y[kept], X[held], Y[held])

    def _grow(self, X: np.ndarray, Y: np.ndarray, parted: Parted, random: np.random.RandomState, log: FitLog) -> None:
        """Add units until the residual is small, the rows kept out are met no better, or there are enough."""
        errors: list[float] = []
        enough = False
        while True:
            F = self._features(parted.F)
            out = self._outputs(F, parted.Y)
            residual = parted.Y - F @ out["coef_"].T - out["intercept_"]
            value = self._objective(F, parted.Y, out["coef_"], out["intercept_"])
            if not math.isfinite(value):
                raise refuse(self, f"the objective overflows with {len(self.units_)} units; scale the columns.")
            self.growth_.append(float(np.square(residual).mean()))
            done = log.step(value, 0.0, **self._whole(X, Y))
            if parted.held is not None and parted.held_Y is not None:
                scores = self._features(parted.held) @ out["coef_"].T + out["intercept_"]
                errors.append(float(np.square(scores - parted.held_Y).mean()))
                done |= len(errors) - 1 - int(np.argmin(errors)) >= self.n_iter_no_change
            classes = hasattr(self, "classes_")
            small = self.growth_[-1] <= self.tol**2 * _spread(Y)
            enough = float(np.abs(residual).max()) < _ENOUGH if classes else small
            if done or enough or len(self.units_) >= self.max_units:
                break
            try:
                unit = self._best_candidate(F, residual, random)
            except KeyboardInterrupt:
                log.stopped = True
                break
            self._add(unit)
        if errors:
            self._keep_units(int(np.argmin(errors)))
        elif not (enough or log.stopped) and self.max_units > 0:
            self._warn()
        for name, found in self._whole(X, Y).items():
            setattr(self, name, found)
        if errors and errors[-1] > min(errors):
            log.step(self._objective(self._features(X), Y, self.coef_, self.intercept_), 0.0, **self._whole(X, Y))

    def _warn(self) -> None:
        warnings.warn(
            named(self, "warn.units", units=len(self.units_), residual=float(self.growth_[-1])),
            ConvergenceWarning,
            stacklevel=6,
        )

    def _whole(self, X: np.ndarray, Y: np.ndarray) -> dict[str, np.ndarray]:
        """Return the units so far with the output weights of all rows."""
        return {"units_": self.units_, **self._outputs(self._features(X), Y)}

    def _add(self, unit: np.ndarray) -> None:
        """Append the unit that sees all columns and units so far: its weights, then its intercept."""
        old, H = self.units_, len(self.units_)
        units = np.zeros((H + 1, len(unit) + 1))
        units[:H, : old.shape[1] - 1], units[:H, -1] = old[:, :-1], old[:, -1]
        units[H, : len(unit) - 1], units[H, -1] = unit[:-1], unit[-1]
        self.units_ = np.where(np.abs(units) < _LEAST, 0.0, units)

    def _keep_units(self, many: int) -> None:
        """Keep the first units."""
        d = self.units_.shape[1] - 1 - len(self.units_)
        self.units_ = np.column_stack([self.units_[:many, : d + many], self.units_[:many, -1]])

    def _best_candidate(self, F: np.ndarray, residual: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        """Return the weights, and last the intercept, of the candidate of the largest covariance with the residual."""
        middle, scale = F.mean(axis=0), F.std(axis=0)
        scale = np.where(scale > 1e-12 * (np.abs(middle) + 1e-100), scale, np.inf)  # a constant column has no say
        Z, E = (F - middle) / scale, residual - residual.mean(axis=0)
        E = E / max(float(np.abs(E).max()), 1e-100)
        starts = [random.normal(size=Z.shape[1] + 1) * (1 if k % 2 else 3) for k in range(self.n_candidates)]
        tried = thread_map(partial(_trained, Z, E, self.max_iter), starts, n_jobs=self.n_jobs)
        best = max(tried, key=lambda candidate: candidate[0])[1]
        weights = best[:-1] / scale
        return np.append(weights, best[-1] - weights @ middle)

    # Features

    def _features(self, X: np.ndarray) -> np.ndarray:
        n, d = X.shape
        F = np.empty((n, d + len(self.units_)))
        F[:, :d] = X
        for k, row in enumerate(self.units_):
            F[:, d + k] = np.tanh(F[:, : d + k] @ row[: d + k] + row[-1])
        return F

    def _feature_errors(self, X: np.ndarray, F: np.ndarray) -> np.ndarray:
        d, size = X.shape[1], np.abs(self.units_)
        error = np.zeros_like(F)
        for k, row in enumerate(size):
            rounding = (4 * (d + k) + 64) * _UNIT * (np.abs(F[:, : d + k]) @ row[: d + k] + row[-1])
            rounding += (1 + 1e-9) * (error[:, : d + k] @ row[: d + k])
            sums = F[:, : d + k] @ self.units_[k, : d + k] + self.units_[k, -1]
            nearest = np.clip((np.abs(sums) - rounding) * (1 - 1e-12), 0.0, 290.0)  # to zero: there tanh is steepest
            error[:, d + k] = np.minimum((1 + 1e-9) * rounding / np.cosh(nearest) ** 2, 2.0) + 64 * _UNIT
        return error


def covariance(theta: np.ndarray, Z: np.ndarray, E: np.ndarray) -> tuple[float, np.ndarray]:
    """Return minus the sum over outputs of |covariance of a unit with the residual E|, per row, and its gradient by the
    unit's weights and intercept; E has mean zero."""
    V = np.tanh(Z @ theta[:-1] + theta[-1])
    share = E.T @ V / len(Z)
    pull = (1 - V * V) * (E @ np.sign(share)) / len(Z)
    return -float(np.abs(share).sum()), -np.append(Z.T @ pull, pull.sum())


def _trained(Z: np.ndarray, E: np.ndarray, max_iter: int, start: np.ndarray) -> tuple[float, np.ndarray]:
    solution = minimize(covariance, start, (Z, E), "L-BFGS-B", jac=True, options={"maxiter": max_iter})
    good = np.isfinite(solution.x).all() and np.isfinite(solution.fun)
    return (-float(solution.fun), solution.x) if good else (-math.inf, start)


def _spread(Y: np.ndarray) -> float:
    return float(np.square(Y - Y.mean(axis=0)).mean())


_PARAMETERS = """
    Parameters
    ----------
    max_units : int >= 0
        Hidden units at most.
    n_candidates : int
        Units that are trained from different starts, of which the best is taken.
    alpha : float >= 0
        Penalty of the output weights.
    tol : float >= 0
        Regression: the growth ends when the root mean squared residual is at most tol times the spread of the target.
        Of a classifier it ends when every output is less than 0.8 from its target +1 or -1.
    max_iter : int
        Steps of L-BFGS for each candidate.
    early_stopping : bool
        Keep rows out, end when the squared error on them has not fallen for `n_iter_no_change` units, and keep as
        many units as were best there. Few rows need it: a cascade soon learns them by heart.
    validation_fraction, n_iter_no_change : float, int
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads that train candidates; None uses all cores. It changes the time, never a bit of the result.

    Attributes
    ----------
    units_ : (H, d + H + 1)
        Weights of each unit from the columns and the units before it; last its intercept.
    n_units_ : int
    growth_ : list of float
        Mean squared residual with 0, 1, 2, ... units.
    coef_ : (outputs, d + H), intercept_ : (outputs,)
        Output weights of columns and units.
"""


@dataclass(eq=False, repr=False)
class CascadeCorrelationClassifier(BasisClassifier, Cascade):
    __doc__ = f"""Classification by a network that grows unit by unit (cascade-correlation).
{_PARAMETERS}    classes_

    Examples
    --------
    >>> from assay.neural_network import CascadeCorrelationClassifier
    >>> square = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> model = CascadeCorrelationClassifier(random_state=0).fit(square, [0, 1, 1, 0])
    >>> model.predict(square).tolist(), model.n_units_
    ([0, 1, 1, 0], 1)
    """

    family = "basis.cascade-classifier"
    card = Card(
        name="Cascade-correlation classifier",
        task="classify",
        model=Networks(),
        strategy="squared error of +1 and -1; each unit has the largest covariance with the residual",
        algorithm="candidates by L-BFGS, the best frozen; output weights by least squares",
        guarantee=("features.least-squares",),
        most_rows=5_000,
    )


@dataclass(eq=False, repr=False)
class CascadeCorrelationRegressor(BasisRegressor, Cascade):
    __doc__ = f"""Regression by a network that grows unit by unit (cascade-correlation).
{_PARAMETERS}
    Examples
    --------
    >>> import numpy as np
    >>> from assay.neural_network import CascadeCorrelationRegressor
    >>> x = np.linspace(-3, 3, 60)[:, None]
    >>> model = CascadeCorrelationRegressor(tol=0.05, random_state=0).fit(x, np.sin(x[:, 0]))
    >>> bool(np.abs(model.predict(x) - np.sin(x[:, 0])).max() < 0.1), model.n_units_ < 12
    (True, True)
    """

    family = "basis.cascade-regressor"
    card = Card(
        name="Cascade-correlation regression",
        task="regress",
        model=Networks(),
        strategy="squared error; each unit has the largest covariance with the residual",
        algorithm="candidates by L-BFGS, the best frozen; output weights by least squares",
        guarantee=("features.least-squares",),
        most_rows=5_000,
    )
