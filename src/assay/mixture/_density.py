"""What density estimators have in common: densities of rows, their mean, and what a certificate says of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from assay import scan
from assay.base import Learner
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.evidence import Density, Evidence
from assay.mixture._components import Components, covariances_of
from assay.params import refuse
from assay.scan import Rows

_UNIT = 2.0**-53


class DensityEstimator(DensityMixin, Learner):
    """A learner of p(x) from rows alone. It offers `score_samples`, ln p(x), and `score`, their mean."""

    n_jobs: int | None

    def score_samples(self, X: Any) -> np.ndarray:
        """Return ln p(x) of each row."""
        return np.concatenate(self._source(X).map(on_rows, self._log_density))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of ln p(x) over the rows; y is not used."""
        return float(np.mean(self.score_samples(X)))

    def _log_density(self, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _source(self, X: Any) -> Rows:
        check_is_fitted(self)
        return scan.rows(validate_data(self, X, reset=False, dtype=np.float64), n_jobs=self.n_jobs)

    def _draws(self, n_samples: int, random_state: Any) -> np.random.RandomState:
        """Check a request for rows; return the source of randomness."""
        check_is_fitted(self)
        if isinstance(n_samples, bool) or not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
            raise refuse(self, f"Invalid value for 'n_samples': it must be an integer >= 1; got {n_samples!r}.")
        return check_random_state(getattr(self, "random_state", None) if random_state is None else random_state)


class GaussianEstimator(DensityEstimator):
    """A density with Gaussian components; `weights_`, `means_` and `precisions_cholesky_` define it.

    `precisions_cholesky_` holds upper triangular U with U U' = S^-1 (or scales 1 / s), and the density is that of these
    numbers exactly: whoever checks it needs no covariance and no inverse.
    """

    figure = "components"
    weights_: np.ndarray
    means_: np.ndarray
    precisions_cholesky_: np.ndarray
    covariance_type: str
    reg_covar_: float

    @property
    def covariance_kind_(self) -> str:
        """The kind of the covariances, by its name among mixtures."""
        return self.covariance_type

    @property
    def family(self) -> str:  # type: ignore[override]
        """Which of the checker's predictors reads the fitted parameters."""
        return f"mixture.{self.covariance_kind_}"

    @property
    def components_(self) -> Components:
        """Weights, means and factors together: all that the density needs; covariances are left out."""
        return Components(self.covariance_kind_, self.weights_, self.means_, np.empty(0), self.precisions_cholesky_)

    @property
    def covariances_(self) -> np.ndarray:
        """Covariances, in scikit-learn's shape for their kind."""
        return covariances_of(self.covariance_kind_, self.precisions_cholesky_)

    @property
    def precisions_(self) -> np.ndarray:
        """Inverse covariances, in the shape of `covariances_`."""
        U = self.precisions_cholesky_
        return U @ np.swapaxes(U, -1, -2) if self.covariance_kind_ in ("full", "tied") else U**2

    def _keep(self, found: Components) -> None:
        for name, value in attributes(found).items():
            setattr(self, name, value)

    def _log_density(self, X: np.ndarray) -> np.ndarray:
        return logsumexp(self.components_.log_joint(X), axis=1)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return rows drawn from the density, (n_samples, n_features), and the component of each, in order of
        component."""
        random = self._draws(n_samples, random_state)
        counts = random.multinomial(int(n_samples), self.weights_ / self.weights_.sum())
        covariances = self.components_.each(self.covariances_)
        X = np.vstack(
            [
                random.multivariate_normal(mean, covariance, size=count)
                for mean, covariance, count in zip(self.means_, covariances, counts)
            ]
        )
        return X, np.repeat(np.arange(len(counts)), counts)

    def n_parameters(self) -> int:
        """Return the number of free parameters."""
        k, d = self.means_.shape
        each = {"full": k * d * (d + 1) // 2, "tied": d * (d + 1) // 2, "diag": k * d, "spherical": k}
        return each[self.covariance_kind_] + k * d + k - 1

    def bic(self, X: Any) -> float:
        """Return Bayes's information criterion, -2 ln-likelihood + parameters ln n; smaller is better."""
        values = self.score_samples(X)
        return float(-2 * values.sum() + self.n_parameters() * np.log(len(values)))

    def aic(self, X: Any) -> float:
        """Return Akaike's information criterion, -2 ln-likelihood + 2 parameters; smaller is better."""
        return float(-2 * self.score_samples(X).sum() + 2 * self.n_parameters())

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the density."""
        yield Density(bounded, (self.components_, rows.largest_entries))

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the log-likelihood and how little a step of EM would still gain."""
        from assay.mixture._claims import mixture_facts

        yield from mixture_facts(self, rows)


def attributes(found: Components) -> dict[str, Any]:
    """Return the fitted attributes that these components are."""
    return {"weights_": found.weights, "means_": found.means, "precisions_cholesky_": found.factors}


def rounding_of(at: Components, distances: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """Return how far rounding can move ln w_k N(x; m_k, S_k) of rows at these squared distances, (rows, k)."""
    d = at.means.shape[1]
    rounding = 2 * (2 * d + 32) * _UNIT
    U = np.abs(at.each(at.factors))
    reach = rounding * np.sqrt((np.einsum("kj,kji->ki", largest + np.abs(at.means), U) ** 2).sum(axis=1))
    logs = np.abs(np.log(np.diagonal(U, axis1=1, axis2=2))).sum(axis=1)
    with np.errstate(divide="ignore"):
        weights = np.abs(np.log(at.weights))
    fixed = rounding * (logs + np.where(np.isfinite(weights), weights, 0.0) + 2 * d + 8)
    return fixed + np.sqrt(distances) * reach + reach**2 + rounding * distances


def bounded(block: Block, at: Components, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ln p(x) of the rows of a block and how far rounding can move it."""
    distances = at.distances(block.X)
    joint, errors = at.constants - 0.5 * distances, rounding_of(at, distances, largest)
    value = logsumexp(joint, axis=1)
    slack = 64 * _UNIT * (np.abs(value) + len(at.weights) + 8)
    return value, np.maximum(
        logsumexp(joint + errors, axis=1) - value, value - logsumexp(joint - errors, axis=1)
    ) + slack


def on_rows(block: Block, function: Any) -> Any:
    """Return the function of the block's rows."""
    return function(block.X)
