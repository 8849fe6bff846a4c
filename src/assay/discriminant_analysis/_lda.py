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

from assay.base import fit_log, label_classes, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.discriminant_analysis._mle import PROVABLE, Statistics, linear_claim, recompute, row_shares
from assay.discriminant_analysis._sampling import GaussianClasses
from assay.discriminant_analysis._scatter import ClassSums, class_sums, fourth_powers
from assay.linear_model._base import LinearClassifier
from assay.optim.duality import outward
from assay.params import Choice, Constraint, Count, Maybe, Positive, check, refuse
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
    shrinkage : None, "auto" or float in [0, 1]
        Replace Sigma by (1 - s) Sigma + s tr(Sigma) / d I; "auto" takes Ledoit and Wolf's s for each class
        on standardised
        columns. Use it when columns are many and rows few.
    priors : (n_classes,) or None
        Class probabilities; None takes the shares of the rows.
    n_components : int or None
        Dimensions that `transform` keeps; None keeps all.
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
        Sigma, after shrinkage.
    scalings_ : (n_features, n_components)
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
    more_arrays = ("scalings_", "means_", "covariance_", "priors_")
    constraints: ClassVar[dict[str, Constraint]] = {
        "tol": Positive(),
        "covariance": Choice("pooled", "equal"),
        "n_components": Maybe(Count()),
    }
    card = Card(
        name="Linear discriminant analysis",
        zh="线性判别分析",
        mission=(
            *("LIN-26", "LIN-27", "LIN-30", "LIN-31", "LIN-32", "LIN-33", "LIN-34", "LIN-35", "LIN-37"),
            *("DEC-05", "DEC-06"),
        ),
        task="classify",
        model=Linear(),
        strategy="Fisher ratio of scatter between classes to scatter within them",
        algorithm="one pass for the moments, spectral decomposition with a pseudo-inverse",
        guarantee=("lda.optimality", "gaussian.mle", "vc", "margin.kernel", "margin.multiclass", "pac-bayes.linear"),
    )

    _: KW_ONLY
    shrinkage: Any = None
    priors: Any = None
    n_components: int | None = None
    covariance: str = "pooled"
    tol: float = 1e-4
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "LinearDiscriminantAnalysis":
        """Fit to rows X and labels y; X may be arrays, a frame, Parquet files or a Dask collection."""
        check(self)
        shrinkage, kind = _shrinkage(self), self.covariance
        rows = read_rows(self, X, y)
        self.classes_ = label_classes(self, rows)
        n_classes = len(self.classes_)
        keep = self._kept_components(n_classes, rows.n_features)
        if rows.n_rows == n_classes:
            raise refuse(
                self,
                f"needs more rows than classes to measure spread within classes; got {rows.n_rows} of both.",
            )
        rows = rows.encoded(self.classes_)
        with fit_log(self, 1, X, y) as log:
            sums = class_sums(rows, n_classes, apart=kind == "equal" or shrinkage == "auto")
            if not all(np.isfinite(part).all() for part in sums):
                require_finite(rows, self)
                raise refuse(self, "the entries are too large; their squares overflow.")
            self.priors_ = priors_of(self, sums.counts)
            self.means_ = sums.means
            self.covariance_ = _shared_covariance(sums, kind, shrinkage, rows, self.priors_)
            found = _discriminants(self.covariance_, self.means_, self.priors_, float(self.tol))
            self._keep(found, keep)
            log.step(0.0, 0.0, coef_=self.coef_, intercept_=self.intercept_)
        if self.rank_ < rows.n_features:
            warnings.warn(
                f"{type(self).__name__}: within classes the rows vary in {self.rank_} of {rows.n_features} "
                "directions only, so "
                "the scatter matrix has no inverse; its pseudo-inverse was used, which ignores the other "
                "directions. Drop "
                "dependent columns, or set shrinkage.",
                SingularScatterWarning,
                stacklevel=2,
            )
        return self

    def _keep(self, found: "_Discriminants", components: int) -> None:
        """Store what was found; two classes are told apart by the difference of their scores."""
        binary = len(self.classes_) == 2
        self.rank_ = found.rank
        self.scalings_ = found.scalings[:, :components]
        self.explained_variance_ratio_ = found.shares[:components]
        self.coef_ = found.coef[1:] - found.coef[:1] if binary else found.coef
        self.intercept_ = found.intercept[1:] - found.intercept[:1] if binary else found.intercept

    @property
    def xbar_(self) -> np.ndarray:
        """The mean of the class means, weighted by their priors, (n_features,)."""
        return self.priors_ @ self.means_

    @property
    def _n_features_out(self) -> int:
        return self.scalings_.shape[1]

    def _kept_components(self, n_classes: int, n_features: int) -> int:
        most = min(n_classes - 1, n_features)
        if self.n_components is None:
            return most
        wanted = int(self.n_components)
        if wanted > most:
            raise refuse(self, f"n_components must be at most min(n_classes - 1, n_features) = {most}; got {wanted}.")
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

    def transform(self, X: Any) -> np.ndarray:
        """Return the rows projected on the discriminant directions, (n, n_components)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return (X - self.xbar_) @ self.scalings_

    @property
    def logistic_scores(self) -> bool:
        return True

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield how close the (first) direction's Fisher ratio is to the largest one, and that means, covariance and
        scores are those of maximum likelihood."""
        if self.shrinkage == "auto":
            reason = "Shrinkage was estimated from the rows; the claim is made for a fixed shrinkage or none."
            yield NotApplicable("D19/1", reason)
            yield NotApplicable("D19/3", reason)
            return
        shrinkage = 0.0 if self.shrinkage is None else float(self.shrinkage)
        shares = row_shares(rows, len(self.classes_), self.covariance)
        found = recompute(rows, self.means_, self.covariance_[None], shares, shrinkage)
        if 2 * found.mu < PROVABLE:
            for template in ("D19/1", "D19/3"):
                yield NotApplicable(template, "The scatter within classes is singular or nearly so; set shrinkage.")
            return
        stated = {"covariance": self.covariance, "shrinkage": shrinkage, "mu": found.mu}
        yield (self._two_class_claim if len(self.classes_) == 2 else self._direction_claim)(found, stated)
        yield linear_claim(self, found)

    def _two_class_claim(self, found: Statistics, stated: dict) -> Claim:
        (within,), (scale,) = found.matrices, found.scale
        w, apart = self.coef_[0] / scale, (self.means_[1] - self.means_[0]) * scale
        u = w * (w @ apart) / (w @ within @ w)
        largest = np.abs(self.means_).max(axis=0) * scale
        excess = float(np.linalg.norm(apart - within @ u)) + found.slack * float(np.linalg.norm(u))
        excess += 1e-14 * float(np.linalg.norm(np.abs(apart) + largest))
        params, witness = {**stated, "form": "two-class"}, {"exponents": found.exponents[0]}
        return Claim("D19/1", outward(excess**2 / found.mu), params=params, witness=witness)

    def _direction_claim(self, found: Statistics, stated: dict) -> Claim:
        (within,), (scale,) = found.matrices, found.scale
        apart = (self.means_ - self.xbar_) * np.sqrt(self.priors_)[:, None] * scale
        between = apart.T @ apart
        w = self.scalings_[:, 0] / scale
        ratio = float(w @ between @ w) / float(w @ within @ w)
        top = float(eigh(between, within, eigvals_only=True)[-1])
        size, largest = float(np.linalg.norm(apart)), np.abs(self.means_).max(axis=0) * scale
        off = 64 * _UNIT * len(apart) ** 1.5 * float(np.linalg.norm(largest))
        wobble = 1e-13 * size**2 + (2 * size + off) * off + 8 * found.slack * top
        tau = top + wobble / found.mu + 1e-12
        params = {**stated, "form": "direction", "tau": tau, "priors": self.priors_.tolist()}
        excess = tau - ratio * (1 - 2 * found.slack / found.mu) + wobble / found.mu
        witness = {"exponents": found.exponents[0], "direction": self.scalings_[:, 0].copy()}
        return Claim("D19/1", outward(excess), params=params, witness=witness)


class _Discriminants(NamedTuple):
    coef: np.ndarray  # (K, d)
    intercept: np.ndarray  # (K,)
    scalings: np.ndarray  # (d, at most K - 1)
    shares: np.ndarray
    rank: int


def _discriminants(covariance: np.ndarray, means: np.ndarray, priors: np.ndarray, tol: float) -> _Discriminants:
    """Return scores and directions; `covariance` may be singular."""
    spread = np.sqrt(np.diag(covariance))
    scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    values, vectors = eigh(covariance * np.outer(scale, scale))
    kept = values > tol**2
    whiten = scale[:, None] * vectors[:, kept] / np.sqrt(values[kept])
    xbar = priors @ means
    white = (means - xbar) @ whiten
    coef = white @ whiten.T
    intercept = np.log(priors) - 0.5 * np.einsum("ij,ij->i", white, white) - coef @ xbar
    _, stretch, turn = np.linalg.svd(np.sqrt(priors)[:, None] * white, full_matrices=False)
    most = min(len(means) - 1, means.shape[1])
    scalings = np.zeros((means.shape[1], most))
    found = min(most, len(turn))
    scalings[:, :found] = whiten @ turn[:found].T
    variance = np.zeros(most)
    variance[:found] = stretch[:found] ** 2
    total = variance.sum()
    return _Discriminants(coef, intercept, scalings, variance / total if total > 0 else variance, int(kept.sum()))


def _shared_covariance(
    sums: ClassSums, kind: str, shrinkage: float | str | None, rows: Rows, priors: np.ndarray
) -> np.ndarray:
    """Return Sigma: pooled or the mean over classes, then shrunk."""
    if shrinkage == "auto":
        return np.tensordot(priors, _ledoit_wolf(sums, rows), axes=1)
    if kind == "equal":
        covariance = np.mean(sums.within / sums.counts[:, None, None], axis=0)
    else:
        covariance = sums.within[0] / sums.counts.sum()
    if shrinkage is None:
        return covariance
    d, shrinkage = len(covariance), float(shrinkage)
    return (1 - shrinkage) * covariance + shrinkage * np.trace(covariance) / d * np.eye(d)


def _ledoit_wolf(sums: ClassSums, rows: Rows) -> np.ndarray:
    """Return each class's covariance, its standardised form shrunk by Ledoit and Wolf's estimate (2004)."""
    n = sums.counts[:, None, None]
    covariance = sums.within / n
    d = covariance.shape[1]
    spread = np.sqrt(np.einsum("kjj->kj", covariance))
    spread[spread == 0] = 1.0
    outer = spread[:, :, None] * spread[:, None, :]
    standard = covariance / outer
    fourth = rows.sum(fourth_powers, sums.means, spread)
    mean = np.einsum("kjj->k", standard) / d
    square = np.einsum("kij,kij->k", standard, standard)
    delta = (square - d * mean**2) / d
    beta = np.minimum((fourth / sums.counts - square) / (d * sums.counts), delta)
    share = np.divide(beta, delta, out=np.zeros_like(beta), where=(delta > 0) & (beta > 0))[:, None, None]
    return ((1 - share) * standard + share * mean[:, None, None] * np.eye(d)) * outer


def _shrinkage(model: Any) -> float | str | None:
    value = model.shrinkage
    if value is None or (isinstance(value, str) and value == "auto"):
        return value
    if isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise refuse(model, f'shrinkage must be None, "auto" or a number from 0 to 1; got {value!r}.')


def priors_of(model: Any, counts: np.ndarray) -> np.ndarray:
    """Return the class probabilities asked for, or the shares of the rows; they sum to one."""
    if model.priors is None:
        return counts / counts.sum()
    priors = np.asarray(model.priors, dtype=np.float64)
    if priors.shape != counts.shape or not (priors > 0).all() or abs(priors.sum() - 1) > 1e-9:
        raise refuse(
            model,
            f"priors must be {len(counts)} positive numbers, one per class, that sum to 1; got {model.priors!r}.",
        )
    return priors / priors.sum()
