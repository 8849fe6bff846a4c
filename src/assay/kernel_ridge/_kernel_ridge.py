"""Kernel ridge regression.

    minimise over h   1/2 sum_i s_i (y_i - h(x_i))^2 + (alpha / 2) |h|^2,      h in the kernel's space

By the representer theorem h = sum_i c_i kappa(x_i, .), whatever the dimension of the space, and c = (S K +
alpha I)^-1 S y.

Claims: the duality gap; with q = s (y - K c) - alpha c it is q' K q / (2 alpha).
Method: one Cholesky factorisation of the n x n matrix S^1/2 K S^1/2 + alpha I.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lstsq
from sklearn.base import RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.claims.model import StoredModel
from assay.fitlog import FitLog
from assay.guarantees.evidence import Evidence, Predictions
from assay.messages import Message
from assay.optim.duality import outward
from assay.params import check, refuse
from assay.scan import Rows
from assay.svm._base import KernelFunctions, MoreKernels, dense
from assay.svm._claims import (
    GAP,
    MachineProblem,
    bounded_scores,
    function_norm,
    gap_claims,
    kernel_magnitude,
    why_no_gap,
)
from assay.svm._expansions import SquaredKernelObjective, whole_gram

_MOST_LEFT_OUT = 1000  # rows


@dataclass(eq=False, repr=False)
class KernelRidge(SquaredKernelObjective, RegressorMixin, MoreKernels):
    """Least squares in a kernel's space with a penalty on the norm.

    Parameters
    ----------
    alpha : float >= 0, or one for each target
        Weight of the penalty. With 0, the least-squares solution of least norm is taken, and nothing is proved of it.
    kernel, gamma, degree, coef0
        As in `assay.svm.SVC`, whose names of kernels this shares, and "polynomial" (as "poly"), "cosine", "chi2",
        "additive_chi2", which is no inner product, or a function of two rows; gamma=None is 1 / n_features.
    kernel_params : dict, optional
        What a function takes beside rows.
    n_jobs : int or None
        Threads; None uses all cores.

    Attributes
    ----------
    dual_coef_ : (n,) or (n, targets)
        c of f(x) = sum_i c_i kappa(x_i, x).
    X_fit_ : (n, d)
        The training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.kernel_ridge import KernelRidge
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> model = KernelRidge(alpha=1e-3, kernel="rbf", gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(model.predict(X) - np.sin(X[:, 0])).max() < 0.01)
    True
    """

    family = "kernel.regressor"
    card = Card(
        name="Kernel ridge regression",
        task="regress",
        model=KernelFunctions(),
        strategy="squared loss + squared norm of the kernel's space",
        algorithm="Cholesky factorisation of the regularised Gram matrix",
        guarantee=("kernel-ridge.gap", "solution.enclosure", "loo.squared-error"),
        most_rows=5_000,
    )

    alpha: Any = 1.0
    _: KW_ONLY
    kernel: Any = "linear"
    gamma: Any = None
    degree: int = 3
    coef0: float = 1.0
    kernel_params: Any = None
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "KernelRidge":
        """Fit to rows X (or a square Gram matrix, kernel="precomputed") and numbers y."""
        check(self)
        rows = self._read_rows(X, y, sample_weight)
        features, target, weight = dense(rows)
        alphas = self._alphas(1 if np.ndim(target) == 1 else target.shape[1])
        kernel = self._set_kernel(features)
        gram = whole_gram(self, kernel, features, copies=1 if (alphas == alphas[0]).all() else 2)
        root = np.ones(len(gram)) if weight is None else np.sqrt(weight)
        with FitLog(self, 1, X, y) as log:
            gram *= root[:, None] * root[None, :]
            columns = target.reshape(len(target), -1)
            coefficients = self._solve(gram, alphas, root[:, None] * columns)
            self.pair_coef_ = np.ascontiguousarray((root[:, None] * coefficients).T)
            self.intercept_ = np.zeros(len(self.pair_coef_))
            self._one = np.ndim(target) == 1
            self._store_all(features.copy())
            residual = columns - self._expansion(features, self.pair_coef_)
            names = ("support_", "support_vectors_", "pair_coef_", "intercept_", "kernel_numbers_")
            fitted = {name: getattr(self, name) for name in names}
            log.step(0.5 * float(np.sum((root[:, None] * residual) ** 2)), 0.0, **fitted)
        return self

    def _alphas(self, targets: int) -> np.ndarray:
        """Return the penalty of each target."""
        alphas = np.asarray(self.alpha, dtype=np.float64)
        if isinstance(self.alpha, (bool, str)) or alphas.shape not in ((), (1,), (targets,)):
            raise refuse(self, f"alpha must be a number, or one for each of {targets} targets; got {self.alpha!r}.")
        if not (np.isfinite(alphas) & (alphas >= 0)).all():
            raise refuse(self, f"alpha must be a finite number >= 0; got {self.alpha!r}.")
        return np.broadcast_to(alphas, (targets,))

    def _solve(self, gram: np.ndarray, alphas: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return the solutions of (K + alpha I) c = y, (n, targets); `gram` is written to."""
        if not (alphas == alphas[0]).all():
            parts = [
                self._solve(gram.copy(), penalty[None], column[:, None]) for penalty, column in zip(alphas, targets.T)
            ]
            return np.concatenate(parts, axis=1)
        gram[np.diag_indices_from(gram)] += alphas[0]
        may_fail = alphas[0] == 0 or self.chosen_kernel_ == "additive_chi2"
        try:
            return cho_solve(cho_factor(gram, overwrite_a=not may_fail), targets)
        except np.linalg.LinAlgError:
            if not may_fail:
                raise refuse(
                    self, "K + alpha I is not positive definite: the kernel is indefinite; raise alpha."
                ) from None
        warnings.warn(
            f"{type(self).__name__}: Singular matrix: the Gram matrix, with alpha on its diagonal, is not positive "
            "definite; the solution of least squares is taken. Raise alpha.",
            UserWarning,
            stacklevel=4,
        )
        return lstsq(gram, targets)[0]

    @property
    def X_fit_(self) -> np.ndarray:
        """The training rows; none are kept of a Gram matrix that was given."""
        return self.support_vectors_

    @property
    def dual_coef_(self) -> np.ndarray:
        """c of f(x) = sum_i c_i kappa(x_i, x), (n,), or (n, targets)."""
        return self.pair_coef_[0] if self._one else self.pair_coef_.T

    _one = True  # whether the target is one column, as that of every stored model is

    @property
    def violation_(self) -> float:  # type: ignore[override]
        """Zero: the solution is in closed form."""
        return 0.0

    def _derive(self) -> None:
        super()._derive()
        if np.any(self.intercept_ != 0):
            raise refuse(self, "its model has no intercept; intercept_ must be zero.")

    def predict(self, X: Any) -> np.ndarray:
        """Return sum_i c_i kappa(x_i, x) for each row."""
        check_is_fitted(self)
        values = self._expansion(X, self.pair_coef_)
        return values[:, 0] if self._one else values

    def stored(self) -> StoredModel:
        """Return this fitted model as plain data."""
        self._require_one()
        return super().stored()

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        self._require_one()
        return super()._known_rows(X, y, sample_weight)

    def _require_one(self) -> None:
        if not self._one:
            raise refuse(self, "a model of several targets has no certificate and no file; fit one for each column.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predictions and the length of the weights in the kernel's space."""
        yield Predictions(bounded_scores, (self,))
        yield function_norm(self, rows, False)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap and what it implies."""
        reason = "alpha = 0: the problem has no penalty to bound its gap by." if self.alpha == 0 else why_no_gap(self)
        if reason is not None:
            yield NotApplicable(GAP, reason)
            return
        problem = MachineProblem("squared", 1.0, float(self.alpha), intercept=False, sides=None)
        yield from gap_claims(self, rows, problem)
        yield self._left_out(rows)

    def _left_out(self, rows: Rows) -> Claim | NotApplicable:
        """Return loo.squared-error: the exact algorithm misses row i, if that is left out, by c_i / (G^-1)_ii, G = K +
        alpha I."""
        X, y, weight = dense(rows)
        n, c, alpha = len(X), self.dual_coef_, float(self.alpha)
        if weight is not None:
            return NotApplicable("loo.squared-error", Message("why.weights.loo"))
        if n > _MOST_LEFT_OUT:
            return NotApplicable("loo.squared-error", Message("why.cubic", most=_MOST_LEFT_OUT))
        kernel = self._kernel()
        off = float(kernel_magnitude(kernel, X, X)[1].max())
        gram = kernel(X) + alpha * np.eye(n)
        size, rounding = np.abs(gram), 8 * (n + 16) * 2.0**-53
        residual = np.abs(y - gram @ c) + rounding * (np.abs(y) + size @ np.abs(c)) + off * float(np.abs(c).sum())
        columns = np.linalg.inv(gram)
        slip = rounding * np.einsum("ij,ij->j", np.abs(columns), size @ np.abs(columns))
        slip = 2 * slip + off * np.square(np.abs(columns).sum(axis=0)) + 1e-14 * np.abs(np.diag(columns))
        inverse = 2 * np.diag(columns) - np.einsum("ij,ij->j", columns, gram @ columns) - slip
        if not inverse.min() > 0:
            return NotApplicable("loo.squared-error", Message("why.small-alpha"))
        missed = (np.abs(c) + float(np.linalg.norm(residual)) / alpha) / inverse
        return Claim("loo.squared-error", outward(float(np.mean(np.square(missed)))), params={"alpha": alpha})
