"""Quadratic discriminant analysis: Gaussian classes, each with its own covariance.

    predict    argmax_k  -1/2 (x - mu_k)^T Sigma_k^-1 (x - mu_k) - 1/2 ln det Sigma_k + ln p_k

The score of a class is a polynomial of degree two, kept as <u, A_k u> + <w_k, u> + b_k with u = x - center_, so that
whoever checks the model reads three arrays and no covariance.

Claim:  means, covariances and scores are those of maximum likelihood (regularised as declared), up to a stated error.
Method: two passes for class means and scatter about them, then one spectral decomposition per class.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError, eigh
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import Learner, fit_log, label_classes, read_rows, require_finite
from assay.card import Card, Range
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.discriminant_analysis._lda import priors_of
from assay.discriminant_analysis._scatter import (
    GaussianClasses,
    class_covariances,
    class_sums,
    quadratic_claim,
    read_shrinkage,
)
from assay.guarantees.evidence import Evidence, Scores
from assay.messages import Message
from assay.params import Choice, Constraint, Flag, Number, check, refuse
from assay.scan import Rows
from assay.theory.spaces import Quadratic

_UNIT = 2.0**-53


@dataclass(eq=False, repr=False)
class QuadraticDiscriminantAnalysis(GaussianClasses, ClassifierMixin, Learner):
    """The Bayes rule of Gaussian classes with different covariances; its boundaries are quadrics.

    Parameters
    ----------
    solver : "svd" or "eigen"
        One method serves both; the name says how covariances are regularised: by `reg_param` ("svd"), or by
        `shrinkage` or an estimator of your own ("eigen").
    shrinkage : None, "auto" or float in [0, 1]
        Replaces each covariance by (1 - s) Sigma_k + s tr(Sigma_k) / d I; "auto" takes Ledoit and Wolf's s on
        standardised columns. Use it when a class has few rows.
    priors : (n_classes,) or None
        Class probabilities; None takes the shares of the rows.
    reg_param : float in [0, 1]
        Replaces each covariance by (1 - r) Sigma_k + r I.
    store_covariance : bool
        Whether `covariance_` is there after the fit.
    tol : float > 0
        A direction counts as constant within a class when its spread, on columns of unit spread, is below
        tol; then the covariance has no inverse, and the fit is refused.
    covariance_estimator : estimator or None
        Its `fit` and `covariance_` on the rows of each class replace the covariances ("eigen").
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    classes_
    means_ : (n_classes, n_features)
    covariance_ : (n_classes, n_features, n_features)
        The maximum-likelihood estimate (divisor n_k), after regularisation; with store_covariance=True.
    rotations_, scalings_ : lists, one per class
        Principal axes (n_features, n_features) of its covariance, and the variances along them, falling.
    priors_ : (n_classes,)
    center_ : (n_features,)
    quadratic_ (K, n_features, n_features), linear_ (K, n_features), constant_ (K,)
        The scores; K is 1 for two classes (second minus first), else n_classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.discriminant_analysis import QuadraticDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> QuadraticDiscriminantAnalysis().fit(X, y).score(X, y)
    0.98
    """

    family = "discriminant.quadratic"
    figure = "components"
    more_arrays = ("means_", "sigma_", "priors_")
    solvers: ClassVar[tuple[str, ...]] = ("svd", "eigen")
    constraints: ClassVar[dict[str, Constraint]] = {
        "solver": Choice(*solvers),
        "reg_param": Number(low=0.0, high=1.0, why="it is the share of the identity"),
        "store_covariance": Flag,
        "tol": Number(low=0.0),
    }

    card = Card(
        name="Quadratic discriminant analysis",
        task="classify",
        model=Quadratic(),
        strategy="likelihood of Gaussian classes",
        algorithm="class means and covariances, one spectral decomposition per class",
        guarantee=("gaussian.mle",),
        search={"reg_param": Range(0.0, 0.9)},
    )

    _: KW_ONLY
    solver: str = "svd"
    shrinkage: Any = None
    priors: Any = None
    reg_param: float = 0.0
    store_covariance: bool = False
    tol: float = 1e-4
    covariance_estimator: Any = None
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "QuadraticDiscriminantAnalysis":
        """Fit to rows X and labels y; X may be arrays, a frame, Parquet files or a Dask collection."""
        check(self)
        shrinkage = read_shrinkage(self)
        if self.solver == "eigen" and self.reg_param:
            warnings.warn(
                f"{type(self).__name__}: reg_param belongs to solver='svd'; solver='eigen' does not use it. "
                "Set shrinkage.",
                UserWarning,
                stacklevel=2,
            )
        rows = read_rows(self, X, y)
        self.classes_ = label_classes(self, rows)
        rows = rows.encoded(self.classes_)
        with fit_log(self, 1, X, y) as log:
            sums = class_sums(rows, len(self.classes_), apart=True)
            if not all(np.isfinite(part).all() for part in sums):
                require_finite(rows, self)
                raise refuse(self, "the entries are too large; their squares overflow.")
            if sums.counts.min() < 2:
                few = self.classes_[int(np.argmin(sums.counts))]
                raise refuse(self, f"y has only 1 sample in class {few}; two rows are needed to measure its spread.")
            self.priors_, self.means_ = priors_of(self, sums.counts), sums.means
            covariance = class_covariances(self, rows, sums, shrinkage)
            if self.solver == "svd":
                covariance = (1 - self.reg_param) * covariance + self.reg_param * np.eye(rows.n_features)
            self.sigma_ = covariance
            self.center_ = self.priors_ @ self.means_
            self._set_scores(sums.counts)
            log.step(0.0, 0.0, quadratic_=self.quadratic_, linear_=self.linear_, constant_=self.constant_)
        return self

    def _set_scores(self, counts: np.ndarray) -> None:
        parts = [
            _score(covariance, mean - self.center_, prior, float(self.tol))
            for covariance, mean, prior in zip(self.sigma_, self.means_, self.priors_)
        ]
        ranks = [rank for *_, rank in parts]
        d = self.means_.shape[1]
        for label, rank, count in zip(self.classes_, ranks, counts):
            crowded = self.solver == "svd" and count <= d
            if rank < d or crowded:
                way = "reg_param" if self.solver == "svd" else "shrinkage"
                cure = f"Increase the value of `{way}`, or drop dependent columns."
                if crowded:
                    cure = (
                        "When using `solver='svd'` a class needs more rows than there are columns, and it has "
                        f"{count:.0f} rows of {d} columns. Set solver='eigen' and shrinkage."
                    )
                raise LinAlgError(
                    f"{type(self).__name__}: The covariance matrix of class {label} is not full rank. {cure}"
                )
        quadratic, linear, constant = (np.array(part) for part in list(zip(*parts))[:3])
        binary = len(parts) == 2
        self.quadratic_ = quadratic[1:] - quadratic[:1] if binary else quadratic
        self.linear_ = linear[1:] - linear[:1] if binary else linear
        self.constant_ = constant[1:] - constant[:1] if binary else constant

    @property
    def covariance_(self) -> np.ndarray:
        """The covariance of each class, (n_classes, n_features, n_features)."""
        if not self.store_covariance:
            raise AttributeError("covariance_ is kept with store_covariance=True.")
        return self.sigma_

    @property
    def rotations_(self) -> list[np.ndarray]:
        """The principal axes of each class, as columns."""
        return [eigh(covariance)[1][:, ::-1] for covariance in self.sigma_]

    @property
    def scalings_(self) -> list[np.ndarray]:
        """The variances of each class along its principal axes, falling."""
        return [eigh(covariance, eigvals_only=True)[::-1] for covariance in self.sigma_]

    def _scores(self, X: Any) -> np.ndarray:
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return _scores_of(X, self.center_, self.quadratic_, self.linear_, self.constant_)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return log posterior odds of the second class (n,), or log posteriors up to a shift (n,
        n_classes)."""
        check_is_fitted(self)
        scores = self._scores(X)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted label of each row."""
        check_is_fitted(self)
        return self.classes_[_winners(self._scores(X))]

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield that means, covariances and scores are those of maximum likelihood, up to a stated error."""
        yield quadratic_claim(self, rows)
        yield NotApplicable("lda.optimality", Message("why.shared-covariance"))

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the scores."""
        yield Scores(_bounded_scores, (*self._stored, 2 * self._rounding(rows)), logistic=True)

    @property
    def _stored(self) -> tuple[np.ndarray, ...]:
        return self.center_, self.quadratic_, self.linear_, self.constant_

    def _rounding(self, rows: Rows) -> float:
        """Return how far rounding can move any score, doubled."""
        u = rows.largest_entries + np.abs(self.center_)
        k = 4 * rows.n_features + 32
        size = (
            np.einsum("i,kij,j->k", u, np.abs(self.quadratic_), u) + np.abs(self.linear_) @ u + np.abs(self.constant_)
        )
        return float(2 * k * _UNIT / (1 - k * _UNIT) * size.max())


def _score(
    covariance: np.ndarray, mean: np.ndarray, prior: float, tol: float
) -> tuple[np.ndarray, np.ndarray, float, int]:
    """Return A, w, b of <u, A u> + <w, u> + b, and the rank of the covariance; the first three serve if it is full."""
    spread = np.sqrt(np.diag(covariance))
    spread[spread == 0] = 1.0
    values, vectors = eigh(covariance / np.outer(spread, spread))
    rank = int((values > max(tol**2, len(values) * _UNIT)).sum())
    values = np.maximum(values, _UNIT)
    inverse = (vectors / values) @ vectors.T / np.outer(spread, spread)
    A = -0.25 * (inverse + inverse.T)
    w = -2.0 * (A @ mean)
    log_volume = 0.5 * np.log(values).sum() + np.log(spread).sum()
    return A, w, float(mean @ A @ mean - log_volume + np.log(prior)), rank


def _scores_of(
    X: np.ndarray, center: np.ndarray, quadratic: np.ndarray, linear: np.ndarray, constant: np.ndarray
) -> np.ndarray:
    u = X - center
    return np.stack([np.einsum("ij,ij->i", u @ A + w, u) + b for A, w, b in zip(quadratic, linear, constant)], axis=1)


def _winners(scores: np.ndarray) -> np.ndarray:
    return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)


def _margins(scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return score of the given class minus the best other one."""
    if scores.shape[1] == 1:
        return np.where(codes == 1, scores[:, 0], -scores[:, 0])
    row = np.arange(len(scores))
    own = scores[row, codes]
    scores[row, codes] = -np.inf
    return own - scores.max(axis=1)


def _bounded_scores(
    block: Block, center: Any, quadratic: Any, linear: Any, constant: Any, rounding: float
) -> tuple[np.ndarray, float]:
    return _scores_of(block.X, center, quadratic, linear, constant), rounding
