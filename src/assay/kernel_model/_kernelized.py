"""Any linear learner of the representer form in the space of a kernel.

    minimise over h, b   L(h(x_1) + b, ..., h(x_n) + b) + g(|h|),   g increasing,   h in the kernel's space

Some minimiser is h = sum_i alpha_i kappa(x_i, .): only the span of the training rows matters. Rows B with B B' = K are
coordinates of the images of the training rows in that span, so that the learner fitted to B is the learner of the
kernel's space, and alpha = B (B'B)^-1 w. Learners that change w by multiples of rows alone, as the perceptron does,
stay in the span too. A penalty of single coefficients, |w|_1, depends on the coordinates and has no such form.

Schoelkopf, Herbrich and Smola 2001.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from assay.kernels import Precomputed, embedding, median_gamma, named_kernel
from assay.params import refuse


def _offers(name: str) -> Any:
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), name))


@dataclass(eq=False, repr=False)
class Kernelized(MetaEstimatorMixin, BaseEstimator):
    """A linear learner, fitted through alpha in the space of a kernel.

    It has no certificate of its own: `SVC`, `KernelRidge`, `KernelLogisticRegression` and `KernelPerceptron` have, and
    solve their problems without the eigenvectors of the Gram matrix, which this needs: n^3 steps for n rows.

    Parameters
    ----------
    estimator : a linear learner with `coef_` after `fit`, whose penalty is a function of |w| if it has one
    kernel : name, kernel object, function of two arrays of rows, or "precomputed"
    gamma : float or "median"
        Of the named kernels; "median" is 1 / the median squared distance of two rows.
    degree, coef0 : as in `assay.svm.SVC`

    Attributes
    ----------
    estimator_ : the learner, fitted to coordinates of the rows' images
    dual_coef_ : (outputs, n)
        alpha: f_k(x) = sum_i alpha_ki kappa(x_i, x) + intercept_k.
    intercept_, X_fit_

    Examples
    --------
    >>> from assay.kernel_model import Kernelized
    >>> from assay.linear_model import LogisticRegression
    >>> X, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1, 0]
    >>> model = Kernelized(LogisticRegression(C=100), kernel="rbf", gamma=1.0).fit(X, y)
    >>> model.predict(X).tolist(), model.dual_coef_.shape
    ([0, 1, 1, 0], (1, 4))
    """

    estimator: Any
    _: KW_ONLY
    kernel: Any = "rbf"
    gamma: Any = "median"
    degree: int = 3
    coef0: float = 0.0

    def fit(self, X: Any, y: Any) -> "Kernelized":
        """Fit to rows X, or a square Gram matrix, and targets y."""
        X = check_array(X, dtype=np.float64)
        self._refuse_single_coefficients()
        self.n_features_in_, self.X_fit_ = X.shape[1], X
        gamma = median_gamma(X) if self.gamma == "median" else float(self.gamma)
        self.kernel_ = named_kernel(self.kernel, gamma, self.degree, self.coef0)
        B = embedding(self._values(X))
        self.coordinates_ = np.linalg.pinv(B, rcond=1e-10).T  # B (B'B)^-1: from kernel values to coordinates
        self.estimator_ = clone(self.estimator).fit(B, y)
        if not hasattr(self.estimator_, "coef_"):
            raise refuse(self, f"{type(self.estimator).__name__} is not linear: it has no coef_.")
        if is_classifier(self):
            self.classes_ = self.estimator_.classes_
        return self

    def _refuse_single_coefficients(self) -> None:
        params = self.estimator.get_params()
        penalty = params.get("penalty", "elasticnet")
        share = getattr(self.estimator, "l1_ratio", 0.0) if penalty not in (None, "l2") else 0.0
        if penalty == "l1" or share:
            raise refuse(self, "a penalty |w|_1 depends on the coordinates of the kernel's space; use one of |w|.")

    def _values(self, X: np.ndarray) -> np.ndarray:
        if isinstance(self.kernel_, Precomputed):
            return X
        return self.kernel_(X, self.X_fit_)

    def transform(self, X: Any) -> np.ndarray:
        """Return coordinates of the images of rows in the span of the training rows' images."""
        check_is_fitted(self, "estimator_")
        X = check_array(X, dtype=np.float64)
        if X.shape[1] != self.n_features_in_:
            raise refuse(self, f"X must have {self.n_features_in_} columns; got {X.shape[1]}.")
        return self._values(X) @ self.coordinates_

    @property
    def dual_coef_(self) -> np.ndarray:
        """alpha of each function, (outputs, n)."""
        check_is_fitted(self, "estimator_")
        return np.atleast_2d(self.estimator_.coef_) @ self.coordinates_.T

    @property
    def intercept_(self) -> Any:
        """The intercept of each function."""
        return self.estimator_.intercept_

    def predict(self, X: Any) -> np.ndarray:
        """Return what the learner says of each row."""
        return self.estimator_.predict(self.transform(X))

    @_offers("decision_function")
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of each row."""
        return self.estimator_.decision_function(self.transform(X))

    @_offers("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes."""
        return self.estimator_.predict_proba(self.transform(X))

    def score(self, X: Any, y: Any) -> float:
        """Return the learner's own score, accuracy or R^2."""
        return float(self.estimator_.score(self.transform(X), y))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type, tags.target_tags = inner.estimator_type, inner.target_tags
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
