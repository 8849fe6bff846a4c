"""Radial basis function networks: one hidden layer of bells, and outputs that are linear in them.

    phi(x) = sum_i w_i exp(-beta_i |x - c_i|^2) + b
    minimise over w, b    1/(2 n) sum_i |y_i - phi(x_i)|^2 + alpha/2 |w|^2

Claims: no other output weights of the same centres and widths are better by more than a stated number
(features.least-squares);
        errors and hold-out statements from the checker's own bells.
Method: centres drawn from the rows or by k-means, widths from the distances between centres, then least squares
        (Broomhead and Lowe 1988); with `refine`, L-BFGS moves centres, widths and output weights together, and least
        squares ends it.
"""

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state

from assay.base import fit_log
from assay.card import Card
from assay.fitlog import FitLog, part_of_a_fit
from assay.neural_network._basis import _UNIT, Basis, BasisClassifier, BasisRegressor
from assay.neural_network._claims import Networks
from assay.params import Count, Flag, NameOr, Number, check, refuse


class Stopped(Exception):
    """A callback, or the keyboard, asked to stop inside a solver."""


@dataclass(eq=False, repr=False)
class Radial(Basis):
    """Centres, widths, output weights; the parameters of both tasks."""

    constraints: ClassVar = {
        "n_centers": Count(),
        "centers": NameOr(None, "kmeans", "sample"),
        "alpha": Number(low=0.0),
        "refine": Flag,
        "max_iter": Count(),
        "tol": Number(low=0.0),
    }
    n_centers: int = 20
    _: KW_ONLY
    centers: Any = "kmeans"
    beta: Any = None
    alpha: float = 1e-8
    refine: bool = False
    max_iter: int = 200
    tol: float = 1e-6
    random_state: Any = None
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Any:
        """Fit centres, widths and output weights to rows X and targets y."""
        check(self)
        data, Y = self._read(X, y)
        random = check_random_state(self.random_state)
        centers = self._first_centers(data, random)
        self.centers_, self.betas_ = centers, self._widths(data, centers)
        with fit_log(self, self.max_iter + 1 if self.refine else 1, X, y) as log:
            if self.refine:
                self._refine(data, Y, log)
            self._solve(data, Y, log)
        self.n_iter_ = len(log.history)
        return self

    def _solve(self, X: np.ndarray, Y: np.ndarray, log: FitLog) -> None:
        if self.refine and log.stopped and hasattr(self, "coef_"):
            return
        F = self._features(X)
        found = self._outputs(F, Y)
        for name, value in found.items():
            setattr(self, name, value)
        log.step(self._objective(F, Y, **_short(found)), 0.0, centers_=self.centers_, betas_=self.betas_, **found)

    def _first_centers(self, X: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        if not isinstance(self.centers, str):
            given = np.array(self.centers, dtype=np.float64)
            if given.ndim != 2 or not given.size or given.shape[1] != X.shape[1] or not np.isfinite(given).all():
                raise refuse(self, f"centers must be finite numbers (q, {X.shape[1]}); got shape {given.shape}.")
            return given
        many = min(self.n_centers, len(X))
        if self.centers == "sample" or many == len(X):
            return X[np.sort(random.choice(len(X), many, replace=False))].copy()
        from assay.cluster import KMeans

        distinct = len(np.unique(X, axis=0))
        with part_of_a_fit():
            return KMeans(min(many, distinct), random_state=random, n_jobs=self.n_jobs).fit(X).cluster_centers_

    def _widths(self, X: np.ndarray, centers: np.ndarray) -> np.ndarray:
        """Return beta of each centre: 1 / (2 s^2), s^2 twice the mean square of the distances to the two
        nearest other centres."""
        q, given = len(centers), self.beta
        if isinstance(given, Real) and not isinstance(given, bool):
            if not 1e-100 < float(given) < 1e100:
                raise refuse(self, f"beta must be a number > 0, None or 'each'; got {given!r}.")
            return np.full(q, float(given))
        if given is not None and given != "each":
            raise refuse(self, f"beta must be a number > 0, None (one for all) or 'each'; got {given!r}.")
        spread = float(np.square(X - X.mean(axis=0)).sum(axis=1).mean()) or 1.0
        apart = np.sort(cdist(centers, centers, "sqeuclidean"), axis=1)[:, 1:3]
        squares = apart.mean(axis=1) if q > 1 else np.full(q, spread)
        squares = np.where(squares > 1e-12 * spread, squares, spread)
        return 1 / (4 * (squares if given == "each" else np.full(q, squares.mean())))

    # Refinement

    def _refine(self, X: np.ndarray, Y: np.ndarray, log: FitLog) -> None:
        """Lower the objective by centres, widths and output weights together."""
        start = self._outputs(self._features(X), Y)
        shapes = (self.centers_.shape, self.betas_.shape, start["coef_"].shape, start["intercept_"].shape)
        parts = (self.centers_, np.log(self.betas_), start["coef_"], start["intercept_"])
        state: dict[str, Any] = {"value": np.inf}

        def told(theta: np.ndarray) -> None:
            state["value"], state["step"] = self.slopes(theta, shapes, X, Y)[0], state.get("step", 0) + 1
            if not np.isfinite(state["value"]):
                raise refuse(self, f"the objective overflows in step {state['step']}; scale the columns.")
            fitted = _unpacked(theta, shapes)
            for name, value in fitted.items():
                setattr(self, name, value)
            if log.step(state["value"], 0.0, **fitted):
                raise Stopped

        try:
            minimize(
                lambda theta: self.slopes(theta, shapes, X, Y),
                np.concatenate([np.ravel(part) for part in parts]),
                jac=True,
                method="L-BFGS-B",
                callback=told,
                options={"maxiter": self.max_iter, "ftol": 1e-15, "gtol": self.tol},
            )
        except (Stopped, KeyboardInterrupt):
            log.stopped = True

    def slopes(self, theta: np.ndarray, shapes: tuple, X: np.ndarray, Y: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective at centres, ln beta, W, b in one vector, and its gradient by them."""
        C, betas, W, b = _unpacked(theta, shapes).values()
        square = cdist(X, C, "sqeuclidean")
        F = np.exp(-square * betas)
        R = F @ W.T + b - Y
        n = len(X)
        value = 0.5 * float(np.square(R).sum()) / n + 0.5 * self.alpha * float(np.square(W).sum())
        pull = (R @ W) * F / n  # by the logarithm of each bell
        by_center = 2 * betas[:, None] * (pull.T @ X - pull.sum(axis=0)[:, None] * C)
        by_width = -(pull * square).sum(axis=0) * betas
        parts = (by_center, by_width, R.T @ F / n + self.alpha * W, R.sum(axis=0) / n)
        return value, np.concatenate([np.ravel(part) for part in parts])

    # Features

    def _features(self, X: np.ndarray) -> np.ndarray:
        return np.exp(-cdist(X, self.centers_, "sqeuclidean") * self.betas_)

    def _feature_errors(self, X: np.ndarray, F: np.ndarray) -> np.ndarray:
        slip = (4 * X.shape[1] + 64) * _UNIT
        t = cdist(X, self.centers_, "sqeuclidean") * self.betas_
        return 2 * np.exp(-t * (1 - slip)) * (np.minimum(2 * slip * t, 1.0) + 64 * _UNIT) + 1e-280


def _short(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"W": found["coef_"], "b": found["intercept_"]}


def _unpacked(theta: np.ndarray, shapes: tuple) -> dict[str, np.ndarray]:
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    C, widths, W, b = (part.reshape(shape) for part, shape in zip(np.split(theta, ends), shapes, strict=True))
    return {"centers_": C, "betas_": np.exp(np.clip(widths, -200, 200)), "coef_": W, "intercept_": b}


_PARAMETERS = """
    Parameters
    ----------
    n_centers : int
        Number of bells q, at most the number of rows.
    centers : "kmeans", "sample" or (q, d) array
        Where the bells stand: means of clusters, rows drawn at random, or as given.
    beta : None, "each" or float > 0
        Widths: one for all from the distances between neighbouring centres, one for each, or as given.
    alpha : float >= 0
        Penalty of the output weights.
    refine : bool
        Whether L-BFGS then moves centres, widths and output weights together.
    max_iter, tol : int, float
        Steps of the refinement allowed, and the largest slope at which it ends.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads of k-means; None uses all cores.

    Attributes
    ----------
    centers_ : (q, d), betas_ : (q,)
    coef_ : (outputs, q), intercept_ : (outputs,)
"""


@dataclass(eq=False, repr=False)
class RBFRegressor(BasisRegressor, Radial):
    __doc__ = f"""Regression by a network of radial basis functions, sum_i w_i exp(-beta_i |x - c_i|^2) + b.
{_PARAMETERS}
    Examples
    --------
    >>> import numpy as np
    >>> from assay.neural_network import RBFRegressor
    >>> x = np.linspace(-3, 3, 40)[:, None]
    >>> model = RBFRegressor(8, random_state=0).fit(x, np.sin(x[:, 0]))
    >>> bool(np.abs(model.predict(x) - np.sin(x[:, 0])).max() < 0.01)
    True
    """

    family = "basis.radial-regressor"
    card = Card(
        name="Radial basis function regression",
        zh="径向基函数网络回归",
        mission=("NNW-24", "NNW-25", "NNW-26"),
        task="regress",
        model=Networks(),
        strategy="squared error + L2 on the output weights",
        algorithm="centres by k-means or sampling, output weights by least squares; L-BFGS refines",
        guarantee=("features.least-squares",),
        most_rows=20_000,
    )


@dataclass(eq=False, repr=False)
class RBFClassifier(BasisClassifier, Radial):
    __doc__ = f"""Classification by a network of radial basis functions, fitted to +1 and -1 by least squares.
{_PARAMETERS}    classes_

    Examples
    --------
    >>> from assay.neural_network import RBFClassifier
    >>> square = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> RBFClassifier(4, alpha=0).fit(square, [0, 1, 1, 0]).decision_function(square).round(6).tolist()
    [-1.0, 1.0, 1.0, -1.0]
    """

    family = "basis.radial-classifier"
    card = Card(
        name="Radial basis function classifier",
        zh="径向基函数网络",
        mission=("NNW-24", "NNW-25"),
        task="classify",
        model=Networks(),
        strategy="squared error of +1 and -1 + L2 on the output weights",
        algorithm="centres by k-means or sampling, output weights by least squares; L-BFGS refines",
        guarantee=("features.least-squares",),
        most_rows=20_000,
    )
