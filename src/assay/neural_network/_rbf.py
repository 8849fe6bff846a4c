"""Radial basis function networks: one hidden layer of bells, and outputs that are linear in them.

    phi(x) = sum_i w_i exp(-beta_i |x - c_i|^2) + b
    minimise over w, b    1/(2 n) sum_i |y_i - phi(x_i)|^2 + alpha/2 |w|^2

A class is the target +1 against -1, and the label of a row that of the largest output.

Claims: no other output weights of the same centres and widths are better by more than a stated number
        (features.least-squares); errors and hold-out statements from the checker's own bells.
Method: centres drawn from the rows or by k-means, widths from the distances between centres, then least squares
        (Broomhead and Lowe 1988); with `refine`, L-BFGS moves centres, widths and output weights together, and least
        squares ends it.

`Basis` is what networks share whose outputs are linear in features of the row: least squares, predictions and claims.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigvalsh, lstsq
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from assay.base import Diagram, Learner, fit_log, label_classes, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.fitlog import FitLog, part_of_a_fit
from assay.guarantees.evidence import Evidence, Predictions, Scores
from assay.messages import Message
from assay.neural_network._claims import Networks
from assay.params import Count, Flag, NameOr, Number, check, refuse
from assay.scan import Rows
from assay.scan.memory import MemoryRows

_UNIT = 2.0**-53
_LEAST = 1e-140
_MOST_FEATURES = 2_000  # as the checker's rule


class Stopped(Exception):
    """A callback, or the keyboard, asked to stop inside a solver."""


class Basis(Learner):
    """A network whose outputs are linear in its features."""

    figure = "network"
    coef_: np.ndarray
    intercept_: np.ndarray
    alpha: float

    # What a network adds

    def _features(self, X: np.ndarray) -> np.ndarray:
        """Return the features of rows, (n, q)."""
        raise NotImplementedError

    def _feature_errors(self, X: np.ndarray, F: np.ndarray) -> np.ndarray:
        """Return how far rounding can move each feature, doubled."""
        raise NotImplementedError

    # Reading and solving

    def _read(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows in memory and the targets of the outputs, (n, K)."""
        rows = read_rows(self, X, y)
        require_finite(rows, self)
        rows = self._coded(rows)
        parts = [(block.X, np.asarray(block.y)) for block in rows.blocks()]
        X, y = (np.concatenate(part) for part in zip(*parts, strict=True))
        return np.ascontiguousarray(X, dtype=np.float64), self._targets(
            y, len(self.classes_) if is_classifier(self) else 0
        )

    def _coded(self, rows: Any) -> Any:
        return rows

    @staticmethod
    def _targets(y: np.ndarray, classes: int) -> np.ndarray:
        """Return the target of each output: +1 or -1 for a class, else the numbers themselves."""
        if not classes:
            return np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        return np.where(y[:, None] == (np.arange(classes) if classes > 2 else 1), 1.0, -1.0)

    def _outputs(self, F: np.ndarray, Y: np.ndarray) -> dict[str, np.ndarray]:
        """Return the output weights of least squares on features F (n, q) and targets Y (n, K)."""
        n, q = F.shape
        middle, mean = F.mean(axis=0), Y.mean(axis=0)
        A = np.vstack([(F - middle) / np.sqrt(n), np.sqrt(self.alpha) * np.eye(q)]) if self.alpha else F - middle
        B = np.vstack([(Y - mean) / np.sqrt(n), np.zeros((q, Y.shape[1]))]) if self.alpha else Y - mean
        W = lstsq(A, B, check_finite=False)[0].T
        W = np.where(np.abs(W) < _LEAST, 0.0, W)
        return {"coef_": W, "intercept_": mean - W @ middle}

    def _objective(self, F: np.ndarray, Y: np.ndarray, W: np.ndarray, b: np.ndarray) -> float:
        return float(0.5 * np.square(F @ W.T + b - Y).sum() / len(Y) + 0.5 * self.alpha * np.square(W).sum())

    # Prediction

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self._features(X) @ self.coef_.T + self.intercept_

    def _bounded(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        """Return outputs, and twice how far rounding can move each."""
        F = self._features(block.X)
        size = np.abs(self.coef_).T
        rounding = (2 * len(size) + 24) * _UNIT * (np.abs(F) @ size + np.abs(self.intercept_))
        return F @ self.coef_.T + self.intercept_, 2 * (rounding + self._feature_errors(block.X, F) @ size) + _LEAST

    # Certificate

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield how far the output weights are from the best of the same features."""
        q = self.coef_.shape[1]
        if q > _MOST_FEATURES:
            yield NotApplicable("features.least-squares", Message("why.features-size", most=_MOST_FEATURES, features=q))
            return
        n = rows.n_rows
        slope, rounding_error, square, off, cost = rows.sum(
            _normal_sums, self, len(self.classes_) if is_classifier(self) else 0
        )
        penalty = self.alpha * np.column_stack([self.coef_, np.zeros(len(self.coef_))])
        square[np.diag_indices(q)] += n * self.alpha
        curvature = 0.5 * float(eigvalsh(square / n)[0]) - 2 * float(off.sum(axis=1).max()) / n
        curvature -= (4 * q + 64) * _UNIT * float(np.trace(square)) / n
        own = float(cost) / (2 * n) + self.alpha / 2 * float(np.square(self.coef_).sum())
        gap = np.inf
        if curvature > 1e-15:
            g = np.abs(slope / n + penalty) + 2 * rounding_error / n + 64 * _UNIT * np.abs(penalty)
            gap = float(np.square(g).sum()) / (2 * curvature)
        value, curvature = (gap, curvature) if gap < own else (own, 0.0)
        params = {"rows": n, "alpha": float(self.alpha), "curvature": curvature}
        yield Claim("features.least-squares", value * (1 + 1e-6) + _LEAST, params=params)


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

    def diagram(self) -> Diagram:
        """Return the layers that a diagram shows."""
        nearness = np.repeat(self.betas_[None, :], self.centers_.shape[1], axis=0)
        return Diagram([nearness, self.coef_.T], ["inputs", "bells", "outputs"])

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
        result = self._outputs(F, Y)
        for name, value in result.items():
            setattr(self, name, value)
        log.step(self._objective(F, Y, **_short(result)), 0.0, centers_=self.centers_, betas_=self.betas_, **result)

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

        def callback(theta: np.ndarray) -> None:
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
                callback=callback,
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


def _short(results: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"W": results["coef_"], "b": results["intercept_"]}


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


class BasisRegressor(RegressorMixin, Basis):
    """A regression whose predictions are linear in features."""

    def _coded(self, rows: Any) -> Any:
        if isinstance(rows, MemoryRows) and rows.y is not None and rows.y.ndim == 2 and rows.y.shape[1] == 1:
            rows.y = column_or_1d(rows.y, warn=True)
        if isinstance(rows, MemoryRows) and rows.y is not None and rows.y.ndim > 2:
            raise refuse(self, f"y must be (n,) or (n, targets); got shape {rows.y.shape}.")
        return rows

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted value of each row, (n,), or (n, targets)."""
        Z = self._scores(X)
        return Z[:, 0] if Z.shape[1] == 1 else Z

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predictions."""
        radius = np.max(rows.map(_largest_radius, self), axis=0)  # the checker has one bound for the rows of a block
        yield Predictions(_values, (self, radius))


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
        task="regress",
        model=Networks(),
        strategy="squared error + L2 on the output weights",
        algorithm="centres by k-means or sampling, output weights by least squares; L-BFGS refines",
        guarantee=("features.least-squares",),
        most_rows=20_000,
    )


class BasisClassifier(ClassifierMixin, Basis):
    """A classifier whose scores are linear in features."""

    def _coded(self, rows: Any) -> Any:
        self.classes_ = label_classes(self, rows)
        return rows.encoded(self.classes_)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the outputs: (n,), positive for the second of two classes, or (n, classes)."""
        Z = self._scores(X)
        return Z[:, 0] if Z.shape[1] == 1 else Z

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of the largest output of each row."""
        Z = self._scores(X)
        return self.classes_[(Z[:, 0] > 0).astype(np.int64) if Z.shape[1] == 1 else Z.argmax(axis=1)]

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the scores."""
        yield Scores(_row_scores, (self,))


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
        task="classify",
        model=Networks(),
        strategy="squared error of +1 and -1 + L2 on the output weights",
        algorithm="centres by k-means or sampling, output weights by least squares; L-BFGS refines",
        guarantee=("features.least-squares",),
        most_rows=20_000,
    )


def _normal_sums(block: Block, model: Any, classes: int) -> tuple[Any, ...]:
    """Return sums over a block: residuals times features with a bound of the error, products of features with a bound
    of theirs, and an upper bound of the squared residuals."""
    Z, off = model._bounded(block)
    F = model._features(block.X)
    error = np.column_stack([model._feature_errors(block.X, F), np.zeros(len(F))])
    F = np.column_stack([F, np.ones(len(F))])
    residual, n = Z - model._targets(np.asarray(block.y), classes), len(F)
    size, rounding = np.abs(F), 4 * (n + 64) * _UNIT
    rounding_error = (off + rounding * np.abs(residual)).T @ size + (np.abs(residual) + off).T @ error
    mixed = size.T @ error
    plain = rounding * (size.T @ size) + mixed + mixed.T + error.T @ error
    return residual.T @ F, rounding_error, F.T @ F, plain, float(np.square(np.abs(residual) + off).sum())


def _row_scores(block: Block, model: Any) -> tuple[np.ndarray, np.ndarray]:
    Z, radius = model._bounded(block)
    return Z, radius.max(axis=1)


def _values(block: Block, model: Any, radius: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return model._bounded(block)[0], radius[None, :]


def _largest_radius(block: Block, model: Any) -> np.ndarray:
    return model._bounded(block)[1].max(axis=0)
