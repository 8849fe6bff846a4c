"""Hidden Markov models that emit rows of numbers: a mixture of Gaussians for each state."""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from assay.card import Card
from assay.hmm._base import HiddenMarkovModel, _normalised, log_dirichlet
from assay.hmm._chain import Arrays, Emissions, Sequences
from assay.hmm._gaussian import GaussianEmissions, Prior, log_densities, moments
from assay.params import Count


@dataclass(eq=False, repr=False)
class GMMHMM(GaussianEmissions):
    """A hidden Markov chain each of whose states emits rows from a mixture of Gaussians of its own.

        b(x | s) = sum_m w_sm N(x; m_sm, S_sm)

    Missing entries (NaN) are integrated out, and a row of NaN is a step at which nothing was seen. Each step of EM is
    exact: the covariances are about the new means (hmmlearn's are about the old ones, which takes more steps to the
    same fixed points).

    Parameters
    ----------
    n_components : int >= 1
        Number of states.
    n_mix : int >= 1
        Gaussians of each state.
    covariance_type : "diag", "full", "tied" or "spherical"
        Of each Gaussian; "tied" ones share theirs within a state.
    min_covar : float >= 0
        Added to the variances that the fit starts from.
    startprob_prior, transmat_prior, weights_prior : float >= 0, or arrays
        Dirichlet priors of the rows of the tables; 1 is none.
    means_prior, means_weight : float, or arrays
        As if so many rows had been seen at `means_prior` in each component; 0 is none.
    covars_prior, covars_weight : float or None
        Inverse gamma priors of variances (shape and scale), inverse Wishart priors of matrices (scale and degrees of
        freedom), as in hmmlearn; None is none.
    algorithm, random_state, n_iter, tol, n_init, verbose, n_jobs
        As in `GaussianHMM`.
    params, init_params : str
        Letters of the parts that the fit changes, and of those that it starts anew: s, t, m, c, w(eights).

    Attributes
    ----------
    startprob_ (k,), transmat_ (k, k), weights_ (k, mix), means_ (k, mix, d)
    covars_ : (k, mix, d), (k, mix, d, d), (k, d, d) or (k, mix)
    monitor_, mended_
        As in `GaussianHMM`.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.hmm import GMMHMM
    >>> X = np.concatenate([np.arange(8.0), 20 + np.arange(8.0)])[:, None]
    >>> model = GMMHMM(2, n_mix=2, random_state=0).fit(X)
    >>> model.predict(X).tolist() in ([0] * 8 + [1] * 8, [1] * 8 + [0] * 8)
    True
    """

    further_loops = tuple({"n_components": 2, "covariance_type": kind} for kind in ("full", "diag"))
    card = Card(
        name="Hidden Markov model of Gaussian mixtures",
        task="density",
        model="densities of sequences of rows by a hidden Markov chain with a Gaussian mixture for each state",
        strategy="log-likelihood of the sequences, plus the logarithms of priors",
        algorithm="EM (Baum and Welch), forward and backward passes for each step; counts where states are known",
        guarantee=("hmm.log-likelihood", "hmm.stationary", "hmm.monotone", "hmm.holdout"),
        input=("numbers", "missing"),
    )

    constraints: ClassVar = {"n_mix": Count()}
    letters: ClassVar = {
        **HiddenMarkovModel.letters,
        "m": "means_",
        "c": "precisions_cholesky_",
        "w": "weights_",
    }
    dirichlet: ClassVar = (*HiddenMarkovModel.dirichlet, "weights_prior")
    per_state: ClassVar = True

    _: KW_ONLY
    n_mix: int = 1
    weights_prior: Any = 1.0
    covars_prior: Any = None
    covars_weight: Any = None
    params: str = "stmcw"
    init_params: str = "stmcw"

    if TYPE_CHECKING:
        weights_: np.ndarray

    @property
    def family(self) -> str:  # type: ignore[override]
        """Which of the checker's predictors reads the fitted parameters."""
        return f"hmm.mixtures-{self.covariance_type}"

    @property
    def covars_(self) -> np.ndarray:
        """Covariances, in the shape of their type."""
        return self._covariances()

    @covars_.setter
    def covars_(self, value: Any) -> None:
        self.precisions_cholesky_ = self._factors_from(value, np.shape(self.means_)[-1])

    def _prior(self, d: int) -> Prior:
        K = self.n_components * self.n_mix
        weight = np.broadcast_to(np.asarray(self.means_weight, dtype=float), (self.n_components, self.n_mix)).ravel()
        mean = np.broadcast_to(np.asarray(self.means_prior, dtype=float), (self.n_components, self.n_mix, d))
        scale: Any = 0.0
        count, first, second = 0.0, self.covars_prior, self.covars_weight
        if self.covariance_type in ("diag", "spherical"):
            share = 1.0 if self.covariance_type == "diag" else 1 / d
            scale = 0.0 if second is None else 2 * float(second) * share
            count = 0.0 if first is None else 1 + 2 * (float(first) + 1) * share
        else:
            more = 1 if self.covariance_type == "full" else self.n_mix
            scale = 0.0 if first is None else np.asarray(first, dtype=float)
            count = 0.0 if second is None else float(second) + d + 1 + more
        return Prior(mean.reshape(K, d), weight, scale, count)

    def _emission(self) -> Arrays:
        return self._table("weights_", (self.n_components, self.n_mix)), *self._gaussians()

    def _attributes(self, emission: Arrays) -> dict[str, np.ndarray]:
        return dict(zip(("weights_", "means_", "precisions_cholesky_"), emission))

    def _begin(self, X: np.ndarray, random_state: Any) -> Arrays:
        k, M = self.n_components, self.n_mix
        factors, random = self._start_covariance(X), check_random_state(random_state)
        weights = np.full((k, M), 1 / M) if self._draws("w") else np.asarray(self.weights_, dtype=float)
        means = self._drawn_means(X, random) if self._draws("m") else np.asarray(self.means_, dtype=float)
        return weights, means, factors if self._draws("c") else self.precisions_cholesky_

    def _drawn_means(self, X: np.ndarray, random: Any) -> np.ndarray:
        """Return centres within the rows nearest to each of k centres."""
        centres = self._centres(X, self.n_components, random)
        whole = X[~np.isnan(X).any(axis=1)]
        if not len(whole):
            return np.repeat(centres[:, None], self.n_mix, axis=1)
        nearest = ((whole[:, None, :] - centres) ** 2).sum(axis=2).argmin(axis=1)
        parts = [whole[nearest == c] if (nearest == c).any() else centre[None] for c, centre in enumerate(centres)]
        return np.stack([self._centres(part, self.n_mix, random) for part in parts])

    def _joint(self, X: np.ndarray, emission: Arrays) -> np.ndarray:
        """Return ln w_sm N_sm(x) (n, k, mix)."""
        weights, means, factors = emission
        with np.errstate(divide="ignore"):
            logs = np.log(weights)
        return log_densities(X, *self._flat(means, factors)).reshape(len(X), *weights.shape) + logs

    def _log_rows(self, X: np.ndarray, emission: Arrays) -> np.ndarray:
        return logsumexp(self._joint(X, emission), axis=2)

    def _count(self, sequences: Sequences, seen: Emissions, shares: np.ndarray, emission: Arrays) -> Any:
        joint = self._joint(sequences.X, emission)
        own = np.exp(joint - logsumexp(joint, axis=2, keepdims=True)) * shares[:, :, None]
        there = ~np.isnan(sequences.X).all(axis=1)
        flat = np.ascontiguousarray(own.reshape(len(own), -1))
        return own[there].sum(axis=0), moments(sequences, *self._flat(*emission[1:]), flat)

    def _maximise(self, counts: Any, emission: Arrays) -> tuple[Arrays, int]:
        mass, result = counts
        weights = _normalised(mass, self.weights_prior, emission[0]) if "w" in self.params else emission[0]
        gaussians, narrow = self._maximised(result, emission)
        return (weights, *gaussians), narrow

    def _log_prior(self, emission: Arrays) -> float:
        return super()._log_prior(emission) + log_dirichlet(emission[0], self.weights_prior)

    def _draw(self, states: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        weights, means, factors = self._emission()
        cumulative = np.cumsum(weights, axis=1)[states]
        which = (random.random_sample(len(states))[:, None] * cumulative[:, -1:] >= cumulative).sum(axis=1)
        which = states * self.n_mix + np.minimum(which, self.n_mix - 1)
        return self._rows_of(*self._flat(means, factors), which, random)

    def n_parameters(self) -> int:
        k, M, d = self.means_.shape
        result = super().n_parameters() + k * (M - 1) * ("w" in self.params) + k * M * d * ("m" in self.params)
        return result + self._n_covariances(d) * ("c" in self.params)
