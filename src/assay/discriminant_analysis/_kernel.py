"""Kernel discriminant analysis: Fisher's directions in the space of a kernel.

    maximise over alpha   J = alpha' M alpha / alpha' (N + mu I) alpha,     w = sum_i alpha_i phi(x_i)

    k_c = K 1_c / m_c                                   kernel means of the classes, 1_c the indicator of class c
    M   = sum_c p_c (k_c - k)(k_c - k)',  k = sum p_c k_c     scatter between classes
    N   = K (I - sum_c 1_c 1_c' / m_c) K'                     scatter within classes

N has at most m - n_classes directions in which it is not zero, so without mu there is always an alpha with no
scatter within classes at all; mu > 0 bounds the length of alpha instead (Mika et al. 1999). Two classes:
alpha = (N + mu I)^-1 (k_1 - k_0).

Claims: for no alpha (more classes: no set of n_classes - 1 of them) is J larger by more than the value.
Method: Cholesky factorisation of N + mu I, singular vectors of the whitened class means.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import label_classes, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.discriminant_analysis._lda import priors_of
from assay.fitlog import FitLog
from assay.kernels._tiles import expand
from assay.messages import Message
from assay.optim.duality import outward
from assay.params import Constraint, Count, Maybe, Number, check, refuse
from assay.scan import Rows
from assay.svm._base import KernelFunctions, dense
from assay.svm._claims import computed_scores, kernel_magnitude
from assay.svm._expansions import ExpansionClassifier, blas_for, same_rows, whole_gram


@dataclass(eq=False, repr=False)
class KernelDiscriminantAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ExpansionClassifier):
    """Fisher's discriminant directions in the space of a kernel; a transformer and a classifier.

    Rows are assigned as in `LinearDiscriminantAnalysis`: to the nearest class mean along the directions, distances
    measured in units of the scatter within classes, plus the logarithm of the prior.

    Parameters
    ----------
    n_components : int or None
        Directions that `transform` keeps; None keeps all n_classes - 1.
    kernel, gamma, degree, coef0
        As in `assay.svm.SVC`.
    mu : float > 0
        Added to the diagonal of the scatter within classes N, which has no inverse; in units of N, whose entries are
        sums over rows of products of kernel values.
    priors : (n_classes,) or None
        Class probabilities; None takes the shares of the rows.
    n_jobs : int or None
        Threads of prediction; None uses all cores.

    Attributes
    ----------
    classes_, priors_
    scalings_ : (n, n_components)
        Coefficients alpha of each direction over the training rows, alpha' (N + mu I) alpha = n, by falling ratio.
    fisher_ratios_ : (n_classes - 1,)
        J of each direction, times n: scatter between class means in units of the (regularised) variance within.
    explained_variance_ratio_ : (n_components,)
        Share of the sum of all ratios.
    kernel_means_ : (n_classes, n)
        k_c, the mean over class c of kappa(x_i, .) for each training row i.
    X_fit_ : (n, n_features)
        The training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.discriminant_analysis import KernelDiscriminantAnalysis
    >>> angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> X, y = np.concatenate([circle, 3 * circle]), np.repeat([0, 1], 40)
    >>> model = KernelDiscriminantAnalysis(gamma=0.5).fit(X, y)
    >>> model.score(X, y), model.transform(X).shape
    (1.0, (80, 1))
    """

    more_arrays = ("scalings_", "kernel_means_", "priors_", "fisher_ratios_")
    constraints: ClassVar[dict[str, Constraint]] = {"mu": Number(low=0.0), "n_components": Maybe(Count())}
    card = Card(
        name="Kernel discriminant analysis",
        task="classify",
        model=KernelFunctions(),
        strategy="Fisher ratio in the kernel's space, scatter within classes regularised",
        algorithm="Cholesky factorisation, singular vectors of the whitened class means",
        guarantee=("kernel-lda.optimality", "margin.kernel", "margin.multiclass", "pac-bayes.linear"),
        most_rows=5_000,
    )

    n_components: int | None = None
    _: KW_ONLY
    kernel: Any = "rbf"
    gamma: Any = "scale"
    degree: int = 3
    coef0: float = 0.0
    mu: float = 1e-3
    priors: Any = None
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "KernelDiscriminantAnalysis":
        """Fit to rows X (or a square Gram matrix, kernel="precomputed") and labels y."""
        check(self)
        rows = read_rows(self, X, y)
        require_finite(rows, self)
        self.classes_ = label_classes(self, rows)
        keep = self._kept_components(len(self.classes_))
        features, codes, _ = dense(rows.encoded(self.classes_))
        kernel = self._set_kernel(features)
        self._store_all(features)
        self.priors_ = priors_of(self, np.bincount(codes))
        with FitLog(self, 1, X, y) as log, blas_for(len(features)):
            gram = whole_gram(self, kernel, features, copies=4)
            self.kernel_means_ = np.stack([gram[:, codes == k].mean(axis=1) for k in range(len(self.classes_))])
            spread = gram - self.kernel_means_.T[:, codes]
            self._solve(self._factor(spread @ spread.T, float(self.mu)), keep)
            log.step(-float(self.fisher_ratios_.sum()), 0.0, pair_coef_=self.pair_coef_, intercept_=self.intercept_)
        return self

    def _kept_components(self, n_classes: int) -> int:
        if self.n_components is None:
            return n_classes - 1
        if self.n_components > n_classes - 1:
            raise refuse(
                self, f"n_components must be at most n_classes - 1 = {n_classes - 1}; got {self.n_components}."
            )
        return int(self.n_components)

    def _factor(self, N: np.ndarray, mu: float) -> np.ndarray:
        """Return the lower Cholesky factor of N + mu I."""
        N[np.diag_indices_from(N)] += mu
        try:
            factor = cholesky(N, lower=True)
        except np.linalg.LinAlgError:
            factor = np.zeros((1, 1))
        if mu == 0 or not factor.diagonal().all():
            N[np.diag_indices_from(N)] -= mu
            raise refuse(
                self,
                f"the scatter within classes N has rank {np.linalg.matrix_rank(N, hermitian=True)} of {len(N)} (never "
                f"more than rows minus classes), so it has no inverse; mu = {mu:g} must be larger.",
            )
        return factor

    def _solve(self, factor: np.ndarray, keep: int) -> None:
        """Set directions and scores: linear discriminant analysis of kernel vectors, covariance (N + mu I) / n."""
        n, priors, means = len(factor), self.priors_, self.kernel_means_
        xbar = self.xbar_
        white = np.sqrt(n) * solve_triangular(factor, (means - xbar).T, lower=True).T
        coef = np.sqrt(n) * solve_triangular(factor, white.T, lower=True, trans="T").T
        intercept = np.log(priors) - 0.5 * np.einsum("ij,ij->i", white, white) - coef @ xbar
        _, stretch, turn = np.linalg.svd(np.sqrt(priors)[:, None] * white, full_matrices=False)
        most = len(means) - 1
        self.fisher_ratios_ = stretch[:most] ** 2
        directions = np.sqrt(n) * solve_triangular(factor, turn[:most].T, lower=True, trans="T")
        self.scalings_ = np.ascontiguousarray(directions[:, :keep])
        two = len(means) == 2
        self.pair_coef_ = coef[1:] - coef[:1] if two else coef
        self.intercept_ = intercept[1:] - intercept[:1] if two else intercept

    @property
    def X_fit_(self) -> np.ndarray:
        """The training rows; none are kept of a Gram matrix that was given."""
        return self.support_vectors_

    @property
    def xbar_(self) -> np.ndarray:
        """The mean of the kernel means, (n,)."""
        return self.priors_ @ self.kernel_means_

    @property
    def explained_variance_ratio_(self) -> np.ndarray:
        """Share of each kept direction in the sum of all ratios, (n_components,)."""
        return self.fisher_ratios_[: self._n_features_out] / max(float(self.fisher_ratios_.sum()), 1e-300)

    @property
    def _n_features_out(self) -> int:
        return self.scalings_.shape[1]

    def transform(self, X: Any) -> np.ndarray:
        """Return the rows projected on the discriminant directions, (n, n_components)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return expand(self._kernel(), self.X_fit_, self.scalings_.T, X, self.n_jobs) - self.xbar_ @ self.scalings_

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, n_classes), if projected classes are Gaussian."""
        values = self.decision_function(X)
        return np.column_stack([expit(-values), expit(values)]) if values.ndim == 1 else softmax(values, axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`, which is finite where that is 0."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return log_softmax(scores, axis=1)

    @property
    def logistic_scores(self) -> bool:
        return True

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield by how much the sum of Fisher ratios could at most be larger."""
        if self.chosen_kernel_ == "precomputed":
            yield NotApplicable("kernel-lda.optimality", Message("why.gram-symmetric"))
            return
        if not same_rows(rows, self.X_fit_):
            yield NotApplicable("kernel-lda.optimality", Message("why.other-order"))
            return
        n, mu, codes = len(self.X_fit_), float(self.mu), np.concatenate(rows.map(lambda block: block.y))
        share = (codes == np.arange(len(self.classes_))[:, None]) / np.bincount(codes)[:, None]
        apart = share - self.priors_ @ share
        weight = self.priors_
        if len(self.classes_) == 2:
            apart, weight = apart[1:] - apart[:1], np.array([self.priors_.prod()])
        u = self.pair_coef_ / n
        reached, error = self._products(u)
        combined = apart - (reached - (reached @ share.T)[:, codes])
        residual, slip = self._products(combined)
        largest = float(kernel_magnitude(self._kernel(), self.X_fit_, self.X_fit_)[0].max())
        slack = slip + 3 * largest * (error + 1e-15 * np.abs(reached)).sum(axis=1, keepdims=True)
        slack += 1e-14 * (np.abs(residual) + mu * np.abs(u))
        excess = float(weight @ ((np.abs(residual - mu * u) + slack) ** 2).sum(axis=1)) / mu
        if excess >= self.fisher_ratios_.sum() / n:
            yield NotApplicable("kernel-lda.optimality", Message("why.small-mu"))
            return
        yield Claim("kernel-lda.optimality", outward(excess), params={"mu": mu, "priors": self.priors_.tolist()})

    def _products(self, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return sum_j coef_kj kappa(x_j, x_i) at the training rows, (k, n), and how far rounding can move it."""
        shape = SimpleNamespace(_kernel=self._kernel, support_vectors_=self.X_fit_, support_=self.support_)
        shape.pair_coef_, shape.intercept_ = coef, np.zeros(len(coef))
        values, error = computed_scores(shape, Block(self.X_fit_, None, None, 0))
        return values.T, error.T
