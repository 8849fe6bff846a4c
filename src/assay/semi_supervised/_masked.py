"""Features learnt without labels, by predicting a hidden entry of a row from the others (self-supervised learning).

    for every row x and column j, with column j set to its mean:  h = f(W x' + b),  prediction of x_j = <v_j, h> + c_j
    minimise   1/(2 n d) sum over rows and columns (x_j - prediction)^2  +  alpha/2 (|W|^2 + |V|^2)

`transform` returns the hidden layer of whole rows: what had to be known of a row to fill its gaps.

Claims: the mean squared error of the hidden entries (masked.error).
Method: L-BFGS on all rows and columns at once; hiding column j takes x_j w_j off the hidden sums, so that no row is
        copied. Columns are scaled to unit spread first.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from assay import scan
from assay.base import Diagram, Learner, fit_log, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim
from assay.data.blocks import Block
from assay.params import Choice, Count, Number, Positive, check
from assay.scan import Rows
from assay.theory.spaces import Unbounded

_SLOPES = {
    "identity": (lambda z: z, lambda h: np.ones_like(h)),
    "logistic": (expit, lambda h: h * (1.0 - h)),
    "tanh": (np.tanh, lambda h: 1.0 - h * h),
    "relu": (lambda z: np.maximum(z, 0.0), lambda h: (h > 0).astype(np.float64)),
}


class Layers(NamedTuple):
    """W (d, units), b (units,), V (units, d), c (d,)."""

    W: np.ndarray
    b: np.ndarray
    V: np.ndarray
    c: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray, d: int, units: int) -> "Layers":
        cuts = np.cumsum([d * units, units, units * d])
        W, b, V, c = np.split(x, cuts)
        return cls(W.reshape(d, units), b, V.reshape(units, d), c)


class Networks:
    """Networks of one hidden layer, which predict no class."""

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Unbounded:
        return Unbounded("networks of one hidden layer that predict columns, not classes")

    def __str__(self) -> str:
        return "hidden layer of a network that fills hidden entries"


@dataclass(eq=False, repr=False)
class MaskedFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Learner):
    """The hidden layer of a network that predicts each entry of a row from the others.

    Parameters
    ----------
    n_components : int
        Hidden units, which are the columns of the transformed rows.
    activation : "identity", "logistic", "tanh" or "relu"
        With "identity" and as many units as columns the error is that of least squares, column by column.
    alpha : float >= 0
        Weight of the penalty.
    tol : float > 0
        The steps end when no entry of the gradient is above tol.
    max_iter : int
        L-BFGS steps.
    random_state : int, RandomState or None
        Of the first weights.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    center_, scale_ : (n_features,)
        Mean and spread of each column; constant columns have the scale 1.
    W_ (n_features, n_components), b_, V_ (n_components, n_features), c_
        The network, of the scaled columns.
    error_ : float
        Mean squared error of the hidden entries, in units of the spread.
    n_iter_

    Examples
    --------
    >>> import numpy as np
    >>> from assay.semi_supervised import MaskedFeatures
    >>> X = np.random.default_rng(0).normal(size=(100, 1)) @ [[1.0, 2.0, -1.0]]
    >>> model = MaskedFeatures(1, activation="identity", alpha=0.0, random_state=0).fit(X)
    >>> model.transform(X).shape, model.error_ < 0.1
    ((100, 1), True)
    """

    family = "semi.masked"
    figure = "network"
    self_supervised: ClassVar[bool] = True
    card = Card(
        name="Masked features",
        task="transform",
        model=Networks(),
        strategy="squared error of hidden entries + L2",
        algorithm="L-BFGS on all rows and columns",
        guarantee=("masked.error",),
    )
    constraints: ClassVar = {
        "n_components": Count(),
        "activation": Choice(*_SLOPES),
        "alpha": Number(low=0.0),
        "tol": Positive(),
        "max_iter": Count(),
    }

    n_components: int = 16
    _: KW_ONLY
    activation: str = "tanh"
    alpha: float = 1e-4
    tol: float = 1e-5
    max_iter: int = 500
    random_state: Any = None
    n_jobs: int | None = None

    def diagram(self) -> Diagram:
        """Return the layers that a diagram shows."""
        return Diagram([self.W_, self.V_], ["scaled columns", "features", "columns guessed"])

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "MaskedFeatures":
        """Learn to fill the rows X; y is not used."""
        check(self)
        rows = read_rows(self, X, y)
        require_finite(rows, self)
        n, d = rows.n_rows, rows.n_features
        self.center_ = rows.sum(lambda block: block.X.sum(axis=0)) / n
        spread = np.sqrt(rows.sum(_squares, self.center_) / n)
        flat = spread <= 1e-12 * (1 + np.abs(self.center_))
        self.scale_ = np.where(flat, 1.0, spread)
        units, random = self.n_components, check_random_state(self.random_state)
        start = np.concatenate(
            [
                random.normal(0, 1 / np.sqrt(d), d * units),
                np.zeros(units),
                random.normal(0, 0.1, units * d),
                np.zeros(d),
            ]
        )
        with fit_log(self, self.max_iter, X, None) as log, scan.one_blas_thread():
            self._descend(rows, start, log)
        return self

    def _descend(self, rows: Rows, start: np.ndarray, log: Any) -> None:
        d, units, size = rows.n_features, self.n_components, rows.n_rows * rows.n_features

        def value_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
            at = Layers.of(x, d, units)
            result = rows.sum(_filled, at, self.center_, self.scale_, self.activation)
            penalty = np.concatenate([at.W.ravel(), np.zeros(units), at.V.ravel(), np.zeros(d)]) * self.alpha
            value = 0.5 * result[0] / size + 0.5 * float(penalty @ x)
            return value, np.concatenate([part.ravel() for part in result[1:]]) / size + penalty

        def keep(x: np.ndarray) -> dict[str, np.ndarray]:
            W, b, V, c = (part.copy() for part in Layers.of(x, d, units))
            return {"W_": W, "b_": b, "V_": V, "c_": c}

        best, self.n_iter_ = start, 0

        def callback(intermediate_result: Any) -> None:
            nonlocal best
            best, self.n_iter_ = intermediate_result.x.copy(), self.n_iter_ + 1
            if log.step(float(intermediate_result.fun), 0.0, **keep(best)):
                raise StopIteration

        options = {"maxiter": self.max_iter, "maxfun": 20 * self.max_iter, "ftol": 0.0, "gtol": self.tol, "maxcor": 20}
        try:
            solution = minimize(value_gradient, start, jac=True, method="L-BFGS-B", callback=callback, options=options)
            if solution.status == 1 and not log.stopped:
                message = f"{type(self).__name__}: not converged after {solution.nit} steps; raise max_iter or tol."
                warnings.warn(message, ConvergenceWarning, stacklevel=4)
        except KeyboardInterrupt:
            log.stopped = True
        if not log.history:
            self.n_iter_ = 1
            log.step(value_gradient(best)[0], 0.0, **keep(best))
        self._take_arrays(keep(best))
        at = Layers(self.W_, self.b_, self.V_, self.c_)
        self.error_ = float(rows.sum(_filled, at, self.center_, self.scale_, self.activation)[0]) / size

    def facts(self, rows: Rows) -> Iterator[Claim]:
        """Yield the error of the hidden entries."""
        at = Layers(self.W_, self.b_, self.V_, self.c_)
        total = float(rows.sum(_filled, at, self.center_, self.scale_, self.activation)[0])
        size = float((rows.largest_entries + np.abs(self.center_)).max() / self.scale_.min())
        reach = (1 + size) * (1 + np.abs(self.W_).sum() + np.abs(self.b_).max()) * (1 + np.abs(self.V_).sum())
        value = total / (rows.n_rows * rows.n_features)
        yield Claim(
            "masked.error", value * (1 + 1e-9) + 1e-11 * reach * (reach + 1) * 1e-2, params={"rows": rows.n_rows}
        )

    @property
    def _n_features_out(self) -> int:
        return len(self.b_)

    def transform(self, X: Any) -> np.ndarray:
        """Return the hidden layer of each row, (n, n_components)."""
        check_is_fitted(self)
        Z = (validate_data(self, X, reset=False, dtype=np.float64) - self.center_) / self.scale_
        return _SLOPES[self.activation][0](Z @ self.W_ + self.b_)

    def fill(self, X: Any) -> np.ndarray:
        """Return each entry as it is predicted from the others of its row, (n, n_features)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        Z = (X - self.center_) / self.scale_
        base, out = Z @ self.W_ + self.b_, np.empty_like(Z)
        for j in range(Z.shape[1]):
            hidden = _SLOPES[self.activation][0](base - np.outer(Z[:, j], self.W_[j]))
            out[:, j] = hidden @ self.V_[:, j] + self.c_[j]
        return out * self.scale_ + self.center_


def _squares(block: Block, center: np.ndarray) -> np.ndarray:
    return np.square(block.X - center).sum(axis=0)


def _filled(
    block: Block, at: Layers, center: np.ndarray, scale: np.ndarray, activation: str
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the sum of squared errors of a block over all hidden entries, and half its gradient in each layer."""
    f, slope = _SLOPES[activation]
    Z = (block.X - center) / scale
    base = Z @ at.W + at.b
    dW, db, dV, dc, total = np.zeros_like(at.W), np.zeros_like(at.b), np.zeros_like(at.V), np.zeros_like(at.c), 0.0
    pulls = np.zeros_like(base)
    for j in range(Z.shape[1]):
        hidden = f(base - np.outer(Z[:, j], at.W[j]))
        error = hidden @ at.V[:, j] + at.c[j] - Z[:, j]
        total += float(error @ error)
        dV[:, j], dc[j] = hidden.T @ error, error.sum()
        pull = np.outer(error, at.V[:, j]) * slope(hidden)
        dW[j] -= Z[:, j] @ pull
        pulls += pull
    dW += Z.T @ pulls
    db += pulls.sum(axis=0)
    return total, dW, db, dV, dc
