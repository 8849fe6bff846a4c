"""Kernel principal component analysis.

    C = mean_i of (phi(x_i) - m)(phi(x_i) - m)',  m = mean of phi(x_i);   C v = (lambda / n) v

An eigenvector with lambda > 0 is v = sum_i a_i (phi(x_i) - m), where a is an eigenvector of the centred Gram
matrix H K H, H = I - 1 1'/n, for the eigenvalue lambda, of length 1 / sqrt(lambda) so that |v| = 1. The
coordinate of x along v is <v, phi(x) - m> = sum_i (H a)_i (kappa(x_i, x) - mean_j kappa(x_i, x_j)).

Claims: no other directions, as many as these, hold more variance than these by more than the value.
Method: a symmetric eigenproblem of the n x n matrix, whole, by Lanczos iterations or by a random sketch.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cholesky, eigh
from scipy.sparse.linalg import eigsh
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import KernelCenterer
from sklearn.utils import check_random_state
from sklearn.utils.extmath import _randomized_eigsh, svd_flip
from sklearn.utils.validation import check_is_fitted

from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.fitlog import FitLog
from assay.kernels import Precomputed
from assay.kernels._tiles import expand
from assay.messages import Message
from assay.optim.duality import outward
from assay.params import Choice, Count, Flag, Maybe, Number, Positive, check, refuse
from assay.scan import Rows
from assay.svm._base import KernelFunctions, MoreKernels, dense
from assay.svm._claims import kernel_magnitude
from assay.svm._expansions import blas_for, same_rows, whole_gram

_NEGLIGIBLE = 1e-12  # of the largest eigenvalue: below it an eigenvalue counts as zero
_INDEFINITE = 1e-5  # of the largest: more on the negative side is no rounding
_MOST_PROVED = 2_000  # rows up to which the checker factorises the matrix that proves optimality
_ITERATIVE_FROM, _FEW = 200, 10  # eigen_solver="auto": Lanczos for few components of more rows than that


@dataclass(eq=False, repr=False)
class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MoreKernels):
    """Principal components in the space of a kernel.

    Parameters
    ----------
    n_components : int or None
        Components kept; None keeps all with a positive eigenvalue.
    kernel : str, Kernel or function
        "linear", "poly", "rbf", "sigmoid", "laplacian", "cosine", "chi2", "additive_chi2", "precomputed", "auto", a
        kernel object, or a function of two rows, or of two arrays of rows that returns their Gram matrix.
    gamma, degree, coef0
        Parameters of the kernel; gamma=None is 1 / n_features.
    kernel_params : dict, optional
        What a function takes beside rows.
    alpha : float > 0
        Ridge penalty of the map back to the columns.
    fit_inverse_transform : bool
        Learn, by kernel ridge regression, the map from components to rows.
    eigen_solver : "auto", "dense", "arpack" or "randomized"
        "auto" is "arpack" (Lanczos) for fewer than 10 components of more than 200 rows, else "dense".
    tol, max_iter : float >= 0, int or None
        Of "arpack": accuracy (0: machine precision) and iterations allowed.
    iterated_power : int or "auto"
        Of "randomized": power iterations.
    remove_zero_eig : bool
        Drop components of eigenvalue zero also when n_components is given.
    random_state : int, RandomState or None
        Start of "arpack", sketch of "randomized".
    copy_X : bool
        Whether the model keeps a copy of X; without it, changing X later changes the model.
    n_jobs : int or None
        Threads of `transform`; None uses all cores.

    Attributes
    ----------
    eigenvalues_ : (n_components,)
        Of the centred Gram matrix, largest first.
    eigenvectors_ : (n, n_components)
        Its eigenvectors, of length one.
    explained_variance_ratio_ : (n_components,)
        Share of the variance in the kernel's space along each component.
    X_fit_ : (n, n_features)
        The training rows.
    gamma_ : float
    X_transformed_fit_ : (n, n_components), dual_coef_ : (n, n_features)
        With fit_inverse_transform: the training rows' components, and the coefficients of the map back.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.decomposition import KernelPCA
    >>> angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> X = np.concatenate([circle, 3 * circle])
    >>> first = KernelPCA(n_components=1, kernel="rbf", gamma=0.3).fit_transform(X)[:, 0]
    >>> bool(first[:100].max() < first[100:].min() or first[:100].min() > first[100:].max())
    True
    """

    family = "expansion.map"
    card = Card(
        name="Kernel principal component analysis",
        task="transform",
        model=KernelFunctions(),
        strategy="variance in the kernel's space along orthonormal directions",
        algorithm="eigenvectors of the centred Gram matrix",
        guarantee=("kernel-pca.optimality",),
        most_rows=5_000,
    )

    constraints: ClassVar = {
        "n_components": Maybe(Count()),
        "eigen_solver": Choice("auto", "dense", "arpack", "randomized"),
        "tol": Number(low=0.0),
        "max_iter": Maybe(Count()),
        "iterated_power": Maybe(Count(low=0), "auto"),
        "remove_zero_eig": Flag,
        "fit_inverse_transform": Flag,
        "copy_X": Flag,
        "alpha": Positive(why="without it the map back need not be determined"),
    }

    n_components: int | None = None
    _: KW_ONLY
    kernel: Any = "linear"
    gamma: float | None = None
    degree: int = 3
    coef0: float = 1.0
    kernel_params: Any = None
    alpha: float = 1.0
    fit_inverse_transform: bool = False
    eigen_solver: str = "auto"
    tol: float = 0.0
    max_iter: int | None = None
    iterated_power: Any = "auto"
    remove_zero_eig: bool = False
    random_state: Any = None
    copy_X: bool = True
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "KernelPCA":
        """Fit to rows X (or a square Gram matrix, kernel="precomputed"); y is not used."""
        self._check()
        X_fit = dense(self._read_rows(X, y, None))[0]
        if self.copy_X:
            X_fit = X_fit.copy()
        kernel = self._set_kernel(X_fit)
        self._store_all(X_fit)
        with FitLog(self, 1, X, None) as log, blas_for(len(X_fit)):
            gram = whole_gram(self, kernel, X_fit, copies=2)
            means = gram.mean(axis=0)
            total = _centre(gram, means, gram.mean(axis=1) if isinstance(kernel, Precomputed) else means)
            self.eigenvalues_, self.eigenvectors_ = self._decompose(gram)
            self.explained_variance_ratio_ = self.eigenvalues_ / max(total, 1e-300)
            length = np.sqrt(self.eigenvalues_)
            scaled = np.divide(self.eigenvectors_, length, out=np.zeros_like(self.eigenvectors_), where=length > 0)
            self.pair_coef_ = np.ascontiguousarray((scaled - scaled.mean(axis=0)).T)
            self.intercept_ = -(self.pair_coef_ @ means)
            log.step(total - float(self.eigenvalues_.sum()), 0.0)
        self._derive()
        return self

    def _derive(self) -> None:
        """Find the map back, by kernel ridge regression of the training rows on their components."""
        super()._derive()
        if not self.fit_inverse_transform:
            return
        self.X_transformed_fit_ = self._expansion(self.support_vectors_, self.pair_coef_) + self.intercept_
        gram = self._kernel()(self.X_transformed_fit_)
        gram[np.diag_indices_from(gram)] += self.alpha
        self.dual_coef_ = np.linalg.solve(gram, self.support_vectors_)

    def _check(self) -> None:
        check(self)
        if self.fit_inverse_transform and self.kernel == "precomputed":
            raise refuse(
                self, "Cannot fit_inverse_transform with a precomputed kernel: that has no rows to map back to."
            )

    def _decompose(self, gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the largest eigenvalues, falling, and their eigenvectors with scikit-learn's signs."""
        n = len(gram)
        k = n if self.n_components is None else min(n, int(self.n_components))
        solver = self.eigen_solver
        if solver == "auto":
            solver = "arpack" if n > _ITERATIVE_FROM and k < _FEW else "dense"
        if solver == "arpack" and k < n:
            start = check_random_state(self.random_state).uniform(-1, 1, n)
            values, vectors = eigsh(gram, k, which="LA", tol=self.tol, maxiter=self.max_iter, v0=start)
        elif solver == "randomized":
            values, vectors = _randomized_eigsh(
                gram, k, n_iter=self.iterated_power, random_state=self.random_state, selection="module"
            )
        else:
            values, vectors = eigh(gram, subset_by_index=None if k == n else (n - k, n - 1))
        if values.min() < -_INDEFINITE * max(abs(values).max(), 1e-300):
            raise refuse(
                self,
                f"There are significant negative eigenvalues of the centred Gram matrix, {values.min():.3g}: this "
                "kernel is no inner product.",
            )
        values = np.where(values > _NEGLIGIBLE * max(values.max(), 0.0), values, 0.0)
        order = np.argsort(-values, kind="stable")
        if self.remove_zero_eig or self.n_components is None:
            order = order[values[order] > 0]
        vectors, _ = svd_flip(u=vectors, v=None)
        return values[order], np.ascontiguousarray(vectors[:, order])

    # The map as an expansion

    pair_coef_: np.ndarray = field(init=False)
    """Coefficients of each component over the training rows, (n_components, n); each row sums to zero."""
    intercept_: np.ndarray = field(init=False)

    @property
    def _n_features_out(self) -> int:
        return len(self.pair_coef_)

    @property
    def X_fit_(self) -> np.ndarray:
        """The training rows; none if their Gram matrix was given."""
        return self.support_vectors_

    def _scikit_state(self, estimator: Any) -> dict[str, Any]:
        """Return the means of the kernel's values on the training rows, by which scikit-learn moves new ones."""
        estimator.gamma_ = self.gamma_
        gram = estimator._get_kernel(self.X_fit_)
        return {"_centerer": KernelCenterer().fit(gram), "gamma_": self.gamma_}

    def transform(self, X: Any) -> np.ndarray:
        """Return the components of each row, (n, n_components)."""
        return self._expansion(X, self.pair_coef_) + self.intercept_

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit to rows X and return their components."""
        self.fit(X)
        return self.eigenvectors_ * np.sqrt(self.eigenvalues_)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return rows whose components are about X, (n, n_features); needs fit_inverse_transform=True."""
        check_is_fitted(self)
        if not self.fit_inverse_transform:
            raise NotFittedError(
                f"{type(self).__name__}: inverse_transform needs fit_inverse_transform=True when fitting."
            )
        X = np.asarray(X, dtype=np.float64)
        return expand(self._kernel(), self.X_transformed_fit_, self.dual_coef_.T, X, self.n_jobs)

    # Certificate

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield how much more variance other directions could hold."""
        used = np.flatnonzero(self.pair_coef_.any(axis=1))
        reason = None
        if self.chosen_kernel_ == "precomputed":
            reason = Message("why.gram-symmetric")
        elif rows.n_rows > _MOST_PROVED:
            reason = Message("why.factorised-rows", most=_MOST_PROVED)
        elif not same_rows(rows, self.X_fit_):
            reason = Message("why.other-order")
        elif not len(used):
            reason = Message("why.kernel-constant")
        if reason is not None:
            yield NotApplicable("kernel-pca.optimality", reason)
            return
        kernel, n = self._kernel(), rows.n_rows
        size, slack = kernel_magnitude(kernel, self.X_fit_, self.X_fit_)
        rounding = n * float(np.max(slack)) + 4e-15 * n * n * float(size.max())  # of the centred Gram matrix, in norm
        gram = kernel(self.X_fit_)
        means = gram.mean(axis=0)
        _centre(gram, means, means)
        V = self.pair_coef_[used].T
        yield _optimality(gram, V / np.linalg.norm(V, axis=0), rounding)


def _centre(gram: np.ndarray, means: np.ndarray, row_means: np.ndarray) -> float:
    """Write H K H to `gram`, a matrix with these means of its columns and rows; return its trace."""
    gram -= row_means[:, None]
    gram -= means[None, :] - means.mean()
    return float(np.trace(gram))


def _optimality(gram: np.ndarray, V: np.ndarray, rounding: float) -> Claim:
    """Return claim pca.optimality: find t and e with (t + e) I + V (Theta - t I) V' - G positive definite, e as small
    as that allows."""
    n, k = V.shape
    theta = V.T @ gram @ V
    top = float(np.linalg.norm(theta, 2))
    t = max(float(np.linalg.eigvalsh(theta)[0]) - 1e-9 * top, 0.0)
    inner = theta - t * np.eye(k)
    matrix = t * np.eye(n) + V @ inner @ V.T - gram
    e = 4 * rounding + 1e-15 * n * (n * t + top + float(np.trace(gram)))
    while not _positive_definite(matrix + 0.3 * e * np.eye(n)):
        e *= 4
    loss = float(np.linalg.norm(V.T @ V - np.eye(k))) + 1e-13
    excess = k * (e + 2 * rounding) + 3 * loss * float(np.trace(theta))
    return Claim("kernel-pca.optimality", outward(excess / n), params={"components": k, "t": t, "e": e})


def _positive_definite(matrix: np.ndarray) -> bool:
    try:
        cholesky(matrix, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return False
    return True
