"""Drawing from Gaussian classes: what a generative classifier has learnt, as rows."""

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.params import refuse


class GaussianClasses:
    """Probabilities of Gaussian classes, and `sample`: a class drawn by its prior, then a row from its Gaussian."""

    classes_: np.ndarray
    priors_: np.ndarray
    means_: np.ndarray
    sigma_: np.ndarray

    decision_function: Callable[[Any], np.ndarray]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, n_classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores, axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`, which is finite where that is 0."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return log_softmax(scores, axis=1)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return rows (n_samples, n_features) drawn from the fitted classes, and their labels."""
        check_is_fitted(self)
        if isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 1:
            raise refuse(self, f"n_samples must be an integer >= 1; got {n_samples!r}.")
        random = check_random_state(random_state)
        codes = random.choice(len(self.classes_), size=int(n_samples), p=self.priors_)
        shared = np.ndim(self.sigma_) == 2
        X = np.empty((int(n_samples), self.means_.shape[1]))
        for k, mean in enumerate(self.means_):
            covariance = self.sigma_ if shared else self.sigma_[k]
            X[codes == k] = random.multivariate_normal(mean, covariance, size=int(np.sum(codes == k)))
        return X, self.classes_[codes]
