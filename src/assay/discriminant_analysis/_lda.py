"""Linear discriminant analysis: Fisher's directions, and the classifier of Gaussian classes that share a covariance.

    maximise over w    J(w) = (w^T S_b w) / (w^T S_w w)           two classes: w = S_w^-1 (mu_1 - mu_0)
    predict            argmax_k  <Sigma^-1 mu_k, x> - 1/2 mu_k^T Sigma^-1 mu_k + ln p_k

Claims: two classes   max J - J(w) <= |e|^2 / mu, e = Delta - Sigma u, u the multiple of w that fits best and
mu at most the
                      least eigenvalue of Sigma (Cauchy-Schwarz in the inner product of Sigma).
        more classes  J of the first direction is within the stated distance of tau, and tau Sigma - S_b is
        positive
                      semidefinite, so that no direction has a ratio above tau.
        always        means, covariance and scores are those of maximum likelihood, up to a stated error.
Method: one pass for class means and pooled scatter, then the spectral decomposition of the within-class
correlation matrix.
        Directions in which the rows do not vary within classes are dropped (the pseudo-inverse), and
        reported.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import eigh
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import fit_log, label_classes, read_rows, require_finite, streams
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.discriminant_analysis._scatter import (
    PROVABLE,
    ClassSums,
    GaussianClasses,
    Statistics,
    class_covariances,
    class_sums,
    linear_claim,
    read_shrinkage,
    recompute,
    row_shares,
    shrunk,
    total_covariance,
)
from assay.linear_model._base import LinearClassifier
from assay.messages import Message, named
from assay.optim.duality import outward
from assay.params import Choice, Constraint, Count, Flag, Maybe, Number, check, refuse
from assay.scan import Rows
from assay.theory.spaces import Linear

_UNIT = 2.0**-53


class SingularScatterWarning(UserWarning):
    """The rows do not vary within classes in some direction, so S_w has no inverse."""


@dataclass(eq=False, repr=False)
class LinearDiscriminantAnalysis(
    GaussianClasses, ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, LinearClassifier
):
    """Fisher's linear discriminant, as classifier and as projection to at most n_classes - 1 dimensions.

    As a classifier it is the Bayes rule if every class is Gaussian, all share one covariance, and `priors`
    are the true
    ones; with equal priors two classes are cut half-way between their projected means.

    Parameters
    ----------
    solver : "svd", "lsqr" or "eigen"
        One method serves all; the name says which problem. "svd": Sigma = S_w / n, no shrinkage. "lsqr" and "eigen":
        Sigma is the mean of the classes' covariances under the priors, and may be shrunk or estimated otherwise.
        "lsqr" has no `transform`; that of "eigen" does not subtract the mean first, and with shrinkage its directions
        are those of the shrunk covariance of all rows minus Sigma.
    shrinkage : None, "auto" or float in [0, 1]
        Replace Sigma by (1 - s) Sigma + s tr(Sigma) / d I; "auto" takes Ledoit and Wolf's s for each class
        on standardised
        columns. Use it when columns are many and rows few.
    priors : (n_classes,) or None
        Class probabilities; None takes the shares of the rows.
    n_components : int or None
        Dimensions that `transform` keeps; None keeps all.
    store_covariance : bool
        Whether `covariance_` is there after solver="svd"; it always is after the others.
    covariance_estimator : estimator or None
        Its `fit` and `covariance_` on the rows of each class replace the classes' covariances ("lsqr", "eigen").
    covariance : "pooled" or "equal"
        Sigma as the scatter of all rows, S_w / n, in which large classes weigh more; or as the plain mean of
        the
        classes' covariances. For two classes these are the two definitions of Fisher's direction in use.
    tol : float > 0
        A direction counts as constant within classes when its spread, on columns of unit spread, is below
        tol.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    classes_, coef_ (1 or n_classes, n_features), intercept_
    means_ : (n_classes, n_features)
    priors_ : (n_classes,)
    covariance_ : (n_features, n_features)
        Sigma, after shrinkage; with solver="svd" only if store_covariance is True.
    scalings_ : (n_features, at most n_classes - 1)
        Directions w with w^T Sigma w = 1, by falling Fisher ratio.
    explained_variance_ratio_ : (n_components,)
        Share of the variance between classes along each direction.
    xbar_ : (n_features,)
        Mean of the class means under the priors.
    rank_ : int
        Number of directions in which rows vary within classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.discriminant_analysis import LinearDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearDiscriminantAnalysis().fit(X, y)
    >>> model.score(X, y), model.transform(X).shape
    (0.98, (150, 2))
    """

    family = "discriminant.linear"
    more_arrays = ("scalings_", "means_", "sigma_", "priors_")
    solvers: ClassVar[tuple[str, ...]] = ("svd", "lsqr", "eigen")
    constraints: ClassVar[dict[str, Constraint]] = {
        "solver": Choice(*solvers),
        "store_covariance": Flag,
        "tol": Number(low=0.0),
        "covariance": Choice("pooled", "equal"),
        "n_components": Maybe(Count()),
    }
    card = Card(
        name="Linear discriminant analysis",
        task="classify",
        model=Linear(),
        strategy="Fisher ratio of scatter between classes to scatter within them",
        algorithm="one pass for the moments, spectral decomposition with a pseudo-inverse",
        guarantee=("lda.optimality", "gaussian.mle", "vc", "margin.kernel", "margin.multiclass", "pac-bayes.linear"),
        first=1,
    )

    solver: str = "svd"
    shrinkage: Any = None
    priors: Any = None
    n_components: int | None = None
    store_covariance: bool = False
    tol: float = 1e-4
    covariance_estimator: Any = None
    _: KW_ONLY
    covariance: str = "pooled"
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "LinearDiscriminantAnalysis":
        """Fit to rows X and labels y; X may be arrays, a frame, Parquet files or a Dask collection."""
        check(self)
        shrinkage = read_shrinkage(self)
        rows = read_rows(self, X, y, dtype=[np.float64, np.float32])
        self.classes_ = label_classes(self, rows)
        n_classes = len(self.classes_)
        self._kept_components(n_classes, rows.n_features)
        if rows.n_rows == n_classes:
            raise refuse(
                self,
                "The number of samples must be more than the number of classes, to measure spread within classes; got "
                f"{rows.n_rows} of both.",
            )
        rows = rows.encoded(self.classes_)
        with fit_log(self, 1, X, y) as log:
            sums = class_sums(rows, n_classes, apart=self._weighing != "pooled" or shrinkage == "auto")
            if not all(np.isfinite(part).all() for part in sums):
                require_finite(rows, self)
                raise refuse(self, "the entries are too large; their squares overflow.")
            self.priors_ = priors_of(self, sums.counts)
            self.means_ = sums.means
            self.sigma_ = self._within(rows, sums, shrinkage)
            between = None
            if self.solver == "eigen" and (shrinkage or self.covariance_estimator or self.priors is not None):
                between = total_covariance(self, rows, sums, shrinkage) - self.sigma_
            self._keep(_discriminants(self.sigma_, self.means_, self.priors_, float(self.tol), between))
            if not streams(X, y) and getattr(X, "dtype", None) == np.float32:
                self.coef_, self.intercept_ = self.coef_.astype(np.float32), self.intercept_.astype(np.float32)
            log.step(0.0, 0.0, coef_=self.coef_, intercept_=self.intercept_)
        if self.rank_ < rows.n_features:
            warnings.warn(
                named(self, "warn.rank", rank=int(self.rank_), columns=rows.n_features),
                SingularScatterWarning,
                stacklevel=2,
            )
        return self

    @property
    def _weighing(self) -> str:
        """How Sigma weighs the classes: as the rows do, equally, or by priors that were given."""
        given = self.solver != "svd" and self.priors is not None
        return "priors" if given and self.covariance == "pooled" else self.covariance

    def _within(self, rows: Rows, sums: ClassSums, shrinkage: float | str | None) -> np.ndarray:
        """Return Sigma: pooled or a mean over classes, after shrinkage."""
        if self._weighing == "pooled" and shrinkage != "auto" and self.covariance_estimator is None:
            return shrunk(sums.within / sums.counts.sum(), shrinkage)[0]
        weights = np.full(len(sums.counts), 1 / len(sums.counts)) if self.covariance == "equal" else self.priors_
        return np.tensordot(weights, class_covariances(self, rows, sums, shrinkage), axes=1)

    @property
    def covariance_(self) -> np.ndarray:
        """Sigma, (n_features, n_features)."""
        if self.solver == "svd" and not self.store_covariance:
            raise AttributeError("covariance_ is kept with store_covariance=True, or another solver than 'svd'.")
        return self.sigma_

    def _keep(self, discriminants: "_Discriminants") -> None:
        """Store what was found; two classes are told apart by the difference of their scores."""
        binary = len(self.classes_) == 2
        self.rank_, self.scalings_ = discriminants.rank, discriminants.scalings
        self.explained_variance_ratio_ = discriminants.shares[: self._n_features_out]
        self.coef_ = discriminants.coef[1:] - discriminants.coef[:1] if binary else discriminants.coef
        self.intercept_ = (
            discriminants.intercept[1:] - discriminants.intercept[:1] if binary else discriminants.intercept
        )

    def _scikit_state(self, estimator: Any) -> dict[str, Any]:
        return {"_max_components": self._n_features_out}

    @property
    def xbar_(self) -> np.ndarray:
        """The mean of the class means, weighted by their priors, (n_features,)."""
        return self.priors_ @ self.means_

    @property
    def _n_features_out(self) -> int:
        return self._kept_components(*self.means_.shape)

    def _kept_components(self, n_classes: int, n_features: int) -> int:
        most = min(n_classes - 1, n_features)
        if self.n_components is None:
            return most
        wanted = int(self.n_components)
        if wanted > most:
            raise refuse(
                self, f"n_components cannot be larger than min(n_features, n_classes - 1) = {most}; got {wanted}."
            )
        return wanted

    @property
    def threshold_(self) -> float:
        """Two classes: the value of <coef_, x> above which the second class is predicted."""
        check_is_fitted(self)
        if len(self.classes_) != 2:
            raise AttributeError(
                "threshold_ belongs to two classes; with more, compare the scores of decision_function."
            )
        return -float(self.intercept_[0])

    def project(self, X: Any) -> np.ndarray:
        """Two classes: return s = <w, x> of each row, (n,), w = coef_: the line on which `threshold_` parts the
        classes."""
        check_is_fitted(self)
        if len(self.classes_) != 2:
            raise refuse(self, "one direction is enough for two classes alone; use transform for more.")
        return validate_data(self, X, reset=False, dtype=np.float64) @ self.coef_[0]

    def transform(self, X: Any) -> np.ndarray:
        """Return the rows projected on the discriminant directions, (n, n_components)."""
        if self.solver == "lsqr":
            raise NotImplementedError(
                f"{type(self).__name__}: transform not implemented for 'lsqr'; fit with solver 'svd' or 'eigen'."
            )
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        centred = X - self.xbar_ if self.solver == "svd" else X
        return centred @ self.scalings_[:, : self._n_features_out]

    @property
    def logistic_scores(self) -> bool:
        return True

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield how close the (first) direction's Fisher ratio is to the largest one, and that means, covariance and
        scores are those of maximum likelihood."""
        if self.shrinkage == "auto" or self.covariance_estimator is not None:
            reason = Message("why.covariance-estimate")
            yield NotApplicable("lda.optimality", reason)
            yield NotApplicable("gaussian.mle", reason)
            return
        shrinkage = 0.0 if self.shrinkage is None else float(self.shrinkage)
        shares = row_shares(rows, len(self.classes_), self._weighing, self.priors_)
        result = recompute(rows, self.means_, self.sigma_[None], shares, shrinkage)
        if 2 * result.mu < PROVABLE:
            for name in ("lda.optimality", "gaussian.mle"):
                yield NotApplicable(name, Message("why.singular-scatter"))
            return
        stated = {"covariance": self._weighing, "shrinkage": shrinkage, "mu": result.mu}
        if len(self.classes_) == 2:
            yield self._two_class_claim(result, stated)
        elif self.solver == "eigen" and (shrinkage or self.priors is not None):
            reason = Message("why.total-covariance")
            yield NotApplicable("lda.optimality", reason)
        else:
            yield self._direction_claim(result, stated)
        yield linear_claim(self, result)

    def _two_class_claim(self, statistics: Statistics, stated: dict) -> Claim:
        (within,), (scale,) = statistics.matrices, statistics.scale
        w, apart = self.coef_[0] / scale, (self.means_[1] - self.means_[0]) * scale
        u = w * (w @ apart) / (w @ within @ w)
        largest = np.abs(self.means_).max(axis=0) * scale
        excess = float(np.linalg.norm(apart - within @ u)) + statistics.slack * float(np.linalg.norm(u))
        excess += 1e-14 * float(np.linalg.norm(np.abs(apart) + largest))
        params, witness = {**stated, "form": "two-class"}, {"exponents": statistics.exponents[0]}
        if self._weighing == "priors":
            params["priors"] = self.priors_.tolist()
        return Claim("lda.optimality", outward(excess**2 / statistics.mu), params=params, witness=witness)

    def _direction_claim(self, statistics: Statistics, stated: dict) -> Claim:
        (within,), (scale,) = statistics.matrices, statistics.scale
        apart = (self.means_ - self.xbar_) * np.sqrt(self.priors_)[:, None] * scale
        between = apart.T @ apart
        w = self.scalings_[:, 0] / scale
        ratio = float(w @ between @ w) / float(w @ within @ w)
        top = float(eigh(between, within, eigvals_only=True)[-1])
        size, largest = float(np.linalg.norm(apart)), np.abs(self.means_).max(axis=0) * scale
        off = 64 * _UNIT * len(apart) ** 1.5 * float(np.linalg.norm(largest))
        rounding_error = 1e-13 * size**2 + (2 * size + off) * off + 8 * statistics.slack * top
        tau = top + rounding_error / statistics.mu + 1e-12
        params = {**stated, "form": "direction", "tau": tau, "priors": self.priors_.tolist()}
        excess = tau - ratio * (1 - 2 * statistics.slack / statistics.mu) + rounding_error / statistics.mu
        witness = {"exponents": statistics.exponents[0], "direction": self.scalings_[:, 0].copy()}
        return Claim("lda.optimality", outward(excess), params=params, witness=witness)


class _Discriminants(NamedTuple):
    coef: np.ndarray  # (K, d)
    intercept: np.ndarray  # (K,)
    scalings: np.ndarray  # (d, at most K - 1)
    shares: np.ndarray
    rank: int


def _discriminants(
    covariance: np.ndarray, means: np.ndarray, priors: np.ndarray, tol: float, between: np.ndarray | None
) -> _Discriminants:
    """Return scores and directions; `covariance` may be singular. `between` is the scatter between classes, that of the
    means under the priors if None."""
    spread = np.sqrt(np.diag(covariance))
    scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    values, vectors = eigh(covariance * np.outer(scale, scale))
    kept = values > tol**2
    whiten = scale[:, None] * vectors[:, kept] / np.sqrt(values[kept])
    xbar = priors @ means
    white = (means - xbar) @ whiten
    coef = white @ whiten.T
    intercept = np.log(priors) - 0.5 * np.einsum("ij,ij->i", white, white) - coef @ xbar
    if between is None:
        _, stretch, turn = np.linalg.svd(np.sqrt(priors)[:, None] * white, full_matrices=False)
        ratios = stretch**2
    else:
        ratios, turned = eigh(whiten.T @ between @ whiten)
        ratios, turn = ratios[::-1], turned.T[::-1]
    most = min(len(means) - 1, means.shape[1])
    scalings = np.zeros((means.shape[1], most))
    result = min(most, len(turn))
    scalings[:, :result] = whiten @ turn[:result].T
    variance = np.zeros(most)
    variance[:result] = ratios[:result]
    total = ratios.sum()
    return _Discriminants(coef, intercept, scalings, variance / total if total > 0 else variance, int(kept.sum()))


def priors_of(model: Any, counts: np.ndarray) -> np.ndarray:
    """Return the class probabilities asked for, or the shares of the rows; they sum to one."""
    if model.priors is None:
        return counts / counts.sum()
    priors = np.asarray(model.priors, dtype=np.float64)
    if priors.shape != counts.shape or not (priors > 0).all() or not np.isfinite(priors).all():
        raise refuse(
            model,
            f"priors must be non-negative, and none 0: {len(counts)} numbers, one per class; got {model.priors!r}.",
        )
    if abs(priors.sum() - 1) > 1e-5:
        warnings.warn(
            f"{type(model).__name__}: the priors do not sum to 1 but to {priors.sum():g}. Renormalizing.",
            UserWarning,
            stacklevel=3,
        )
    return priors / priors.sum()
