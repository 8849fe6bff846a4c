"""Hidden Markov models with Gaussian emissions, rows with missing values included.

`factors` are upper triangular U with U U' = S^-1, (K, d, d), or scales 1 / s, (K, d), one for each component. An entry
that is missing is integrated out: with variances its column is left out; with full matrices the density is that of the
entries that are there, and moments take the missing ones by their conditional mean and covariance.
"""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from assay.card import Card
from assay.cluster import KMeans
from assay.fitlog import part_of_a_fit
from assay.hmm._base import HiddenMarkovModel
from assay.hmm._chain import Arrays, Emissions, Sequences
from assay.params import Choice, Number, refuse
from assay.scan import thread_map

KINDS = ("full", "tied", "diag", "spherical")
_HALF_LOG_2PI = 0.9189385332046727418
NARROWEST = 1e-9
"""Least variance, in any direction, as a share of that of the columns."""


class Moments(NamedTuple):
    """Sums over rows for each component: share, share z, share z z' (or z^2), z = x - m; mass is (K, d) with scales,
    as each column counts the entries that are there, else (K,)."""

    mass: np.ndarray
    linear: np.ndarray
    square: np.ndarray


def log_densities(X: np.ndarray, means: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return ln N_k(x) of each row (n, K)."""
    result = np.empty((len(X), len(means)))
    if factors.ndim == 2:
        for k, (m, u) in enumerate(zip(means, factors)):
            result[:, k] = np.nansum(np.log(u) - _HALF_LOG_2PI - 0.5 * ((X - m) * u) ** 2, axis=1)
        return result
    missing = np.isnan(X)
    whole = ~missing.any(axis=1)
    for k, (m, U) in enumerate(zip(means, factors)):
        z = (X[whole] - m) @ U
        constant = np.log(np.diag(U)).sum() - len(m) * _HALF_LOG_2PI
        result[whole, k] = constant - 0.5 * np.einsum("ij,ij->i", z, z)
    for rows, there in _patterns(missing):
        for k, (m, U) in enumerate(zip(means, factors)):
            own = np.linalg.inv(np.linalg.cholesky(_covariance(U)[np.ix_(there, there)])) if there.any() else None
            if own is None:
                result[rows, k] = 0.0
                continue
            z = (X[np.ix_(rows, there)] - m[there]) @ own.T
            result[rows, k] = np.log(np.diag(own)).sum() - there.sum() * _HALF_LOG_2PI - 0.5 * (z**2).sum(axis=1)
    return result


def moments(sequences: Sequences, means: np.ndarray, factors: np.ndarray, shares: np.ndarray) -> Moments:
    """Return the moments of the rows weighted by shares (n, K)."""
    if factors.ndim == 2:
        from assay.hmm._loops import diagonal_moments

        def diagonal(piece: tuple[int, int]) -> Any:
            return diagonal_moments(sequences.X, means, shares, *piece)

        result = thread_map(diagonal, sequences.stretches(), n_jobs=sequences.n_jobs)
    else:

        def full(piece: tuple[int, int]) -> Any:
            here = slice(*piece)
            return _full_moments(sequences.X[here], means, factors, shares[here])

        result = thread_map(full, sequences.stretches(), n_jobs=sequences.n_jobs)
    return Moments(*(sum(parts[1:], start=parts[0].copy()) for parts in zip(*result)))


def _full_moments(X: np.ndarray, means: np.ndarray, factors: np.ndarray, shares: np.ndarray) -> Moments:
    K, d = means.shape
    missing = np.isnan(X)
    holes, nothing = missing.any(axis=1), missing.all(axis=1)
    mass, linear, square = np.zeros(K), np.zeros((K, d)), np.zeros((K, d, d))
    for k, (m, U) in enumerate(zip(means, factors)):
        r = np.where(nothing, 0.0, shares[:, k])
        z = np.where(holes[:, None], 0.0, X - m) if holes.any() else X - m
        for rows, there in _patterns(missing):
            if there.any():
                z[rows] = _filled(X[rows] - m, there, U)
                square[k] += r[rows].sum() * _spread(there, U)
        mass[k], linear[k] = r.sum(), r @ z
        square[k] += (z * r[:, None]).T @ z
    return Moments(mass, linear, square)


def _patterns(missing: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the rows that lack the same entries, and which entries these have, for each such set of rows."""
    rows = np.flatnonzero(missing.any(axis=1))
    if not len(rows):
        return []
    kinds, which = np.unique(missing[rows], axis=0, return_inverse=True)
    return [(rows[which.ravel() == i], ~kind) for i, kind in enumerate(kinds)]


def _covariance(U: np.ndarray) -> np.ndarray:
    back = np.linalg.inv(U)
    return back.T @ back


def _filled(z: np.ndarray, there: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Return deviations z whose missing entries are their conditional means."""
    P = U @ U.T
    z = z.copy()
    z[:, ~there] = -np.linalg.solve(P[np.ix_(~there, ~there)], P[np.ix_(~there, there)] @ z[:, there].T).T
    return z


def _spread(there: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Return the covariance of the missing entries given those that are there, zero elsewhere."""
    result = np.zeros_like(U)
    result[np.ix_(~there, ~there)] = np.linalg.inv((U @ U.T)[np.ix_(~there, ~there)])
    return result


class Prior(NamedTuple):
    """What is added to sums of squares (`scale`) and to counts (`count`) before one is divided by the other, and to the
    sums for the means, which `weight` rows at `mean` would be. `mean` (K, d), the others to be broadcast."""

    mean: np.ndarray
    weight: np.ndarray
    scale: Any
    count: Any

    def log(self, kind: str, means: np.ndarray, covariances: np.ndarray) -> float:
        """Return its logarithm up to a constant; covariances (K, d, d) or (K, d), of "tied" (groups, d, d)."""
        off = means - self.mean
        flat = covariances.ndim == 2
        logs = np.log(covariances).sum(axis=1) if flat else np.linalg.slogdet(covariances)[1]
        if flat:
            trace = (np.broadcast_to(self.scale, covariances.shape) / covariances).sum(axis=1)
            pull = (off**2 / covariances).sum(axis=1)
        else:
            inverse = np.linalg.inv(covariances)
            trace = np.einsum("kij,kij->k", inverse, np.broadcast_to(self.scale, covariances.shape))
            own = np.repeat(inverse, len(means) // len(inverse), axis=0)
            pull = np.einsum("ki,kij,kj->k", off, own, off)
        count = np.broadcast_to(self.count, logs.shape)
        return float(-0.5 * ((count * logs).sum() + trace.sum() + (self.weight * pull).sum()))


def maximise(
    kind: str, old: Moments, means: np.ndarray, prior: Prior, groups: int, free: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means and covariances of the M step, and which components are to stay as they are, having no rows.

    Covariances are (K, d, d), (K, d), or for "tied" (groups, d, d), each shared by as many components. `free` has "m"
    if the means may move.
    """
    mass = old.mass if old.mass.ndim == 2 else old.mass[:, None]
    weight = np.broadcast_to(prior.weight, len(means))[:, None]
    empty = mass.sum(axis=1) <= 1e-12
    total = np.where(mass + weight > 0, mass + weight, 1.0)
    new = means + (old.linear + weight * (prior.mean - means)) / total if "m" in free else means
    step, off = new - means, new - prior.mean
    if old.square.ndim == 2:
        square = old.square - 2 * step * old.linear + mass * step**2 + weight * off**2
        result = square + prior.scale
        count = mass + prior.count
        if kind == "spherical":
            result = np.repeat(result.sum(axis=1, keepdims=True), len(step.T), axis=1)
            count = np.repeat(count.sum(axis=1, keepdims=True), len(step.T), axis=1)
    else:
        outer = step[:, :, None] * old.linear[:, None, :]
        square = old.square - outer - outer.swapaxes(1, 2) + mass[:, :, None] * step[:, :, None] * step[:, None, :]
        square = square + weight[:, :, None] * off[:, :, None] * off[:, None, :]
        if kind == "tied":
            square = square.reshape(groups, -1, *square.shape[1:]).sum(axis=1)
            mass = mass.reshape(groups, -1).sum(axis=1, keepdims=True)
            empty = np.repeat(mass[:, 0] <= 1e-12, len(means) // groups)
        result = square + prior.scale
        count = (mass[:, 0] + prior.count)[:, None, None]
    covariances = result / np.maximum(count, 1e-300)
    return np.where(empty[:, None], means, new), covariances, empty


def widened(covariances: np.ndarray, least: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the covariances, none of which is narrower than `least` (d,) in any direction, and how many were.

    In units of `least` eigenvalues are raised to one, which is the maximum of the expected likelihood among such.
    """
    if covariances.ndim == 2:
        return np.maximum(covariances, least), int((covariances < least).any(axis=1).sum())
    units = np.sqrt(least)
    scaled = covariances / (units[:, None] * units)
    values = np.linalg.eigvalsh(scaled)[:, 0]
    result, thin = covariances.copy(), np.flatnonzero(values < 1)
    for k in thin:
        spectrum, V = np.linalg.eigh((scaled[k] + scaled[k].T) / 2)
        result[k] = (V * np.maximum(spectrum, 1.0)) @ V.T * (units[:, None] * units)
    return result, len(thin)


def factors_of(covariances: np.ndarray) -> np.ndarray:
    """Return the factors of covariances (K, d, d) or (K, d)."""
    if covariances.ndim == 2:
        return 1.0 / np.sqrt(covariances)
    lower = np.linalg.cholesky((covariances + covariances.swapaxes(1, 2)) / 2)
    return np.triu(np.linalg.inv(lower).swapaxes(1, 2))


def covariances_of(factors: np.ndarray) -> np.ndarray:
    """Return the covariances of factors (K, d, d) or (K, d)."""
    if factors.ndim == 2:
        return 1.0 / factors**2
    return np.array([_covariance(U) for U in factors])


@dataclass(eq=False, repr=False)
class GaussianEmissions(HiddenMarkovModel):
    """What models with Gaussian components share; `means_` and `precisions_cholesky_` define them."""

    constraints: ClassVar = {"covariance_type": Choice(*KINDS), "min_covar": Number(low=0.0)}

    _: KW_ONLY
    covariance_type: str = "diag"
    min_covar: float = 1e-3
    means_prior: Any = 0.0
    means_weight: Any = 0.0

    per_state: ClassVar[bool] = False  # whether each state has several components
    if TYPE_CHECKING:
        means_: np.ndarray
        precisions_cholesky_: np.ndarray

    def _prior(self, d: int) -> Prior:
        """Return the prior of means and covariances."""
        raise NotImplementedError

    def _flat(self, means: np.ndarray, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return means (K, d) and a factor, (K, d, d) or (K, d), of each component."""
        d = means.shape[-1]
        flat = means.reshape(-1, d)
        kind = self.covariance_type
        if kind == "tied":
            each = factors.reshape(-1, d, d)
            return flat, np.repeat(each, len(flat) // len(each), axis=0)
        if kind == "full":
            return flat, factors.reshape(-1, d, d)
        if kind == "diag":
            return flat, factors.reshape(-1, d)
        return flat, np.repeat(factors.reshape(-1, 1), d, axis=1)

    def _shape(self, d: int) -> tuple[int, ...]:
        """Return the shape of covariances and factors."""
        k = self.n_components
        each = (k, self.n_mix) if self.per_state else (k,)  # type: ignore[attr-defined]
        tied = (k, d, d) if self.per_state else (d, d)
        return {"full": (*each, d, d), "tied": tied, "diag": (*each, d), "spherical": each}[self.covariance_type]

    def _factors_from(self, covariances: Any, d: int) -> np.ndarray:
        """Return the factors of covariances that a user gives."""
        given = np.asarray(covariances, dtype=float)
        shape = self._shape(d)
        if given.shape != shape:
            raise refuse(self, f"covars_ of type {self.covariance_type!r} must have shape {shape}; got {given.shape}.")
        if self.covariance_type in ("diag", "spherical"):
            if not (given > 0).all():
                raise refuse(self, "variances must be > 0.")
            return 1.0 / np.sqrt(given)
        try:
            if not np.allclose(given, given.swapaxes(-1, -2)):
                raise np.linalg.LinAlgError
            return factors_of(given.reshape(-1, d, d)).reshape(shape)
        except np.linalg.LinAlgError:
            raise refuse(self, "covars_ must be symmetric and positive definite.") from None

    def _covariances(self) -> np.ndarray:
        """Return the covariances in the shape of their kind."""
        U, d = self.precisions_cholesky_, self.means_.shape[-1]
        if self.covariance_type in ("diag", "spherical"):
            return 1.0 / U**2
        return covariances_of(U.reshape(-1, d, d)).reshape(U.shape)

    def _gaussians(self) -> tuple[np.ndarray, np.ndarray]:
        """Return means and factors, after checking those that a user has set."""
        k, means = self.n_components, np.array(self.means_, dtype=float)
        shape = (k, self.n_mix) if self.per_state else (k,)  # type: ignore[attr-defined]
        if means.ndim != len(shape) + 1 or means.shape[:-1] != shape or not np.isfinite(means).all():
            raise refuse(self, f"means_ must be finite and have shape {(*shape, 'columns')}; got {means.shape}.")
        if np.shape(self.precisions_cholesky_) != self._shape(means.shape[-1]):
            raise refuse(self, "covars_ do not go with means_, n_components and covariance_type.")
        return means, self.precisions_cholesky_

    def _columns(self, emission: Arrays) -> int:
        return emission[-2].shape[-1]

    def _start_covariance(self, X: np.ndarray) -> np.ndarray:
        """Return the factors of the covariance of all rows for each component, and note how narrow one may become."""
        d = X.shape[1]
        filled = np.where(np.isnan(X), np.nanmean(X, axis=0) if len(X) else 0.0, X)
        whole = np.cov(filled.T).reshape(d, d) if len(X) > 1 else np.zeros((d, d))
        variances = np.diag(whole)
        floor = self.min_covar if self.min_covar > 0 else 1e-12
        self._least = NARROWEST * np.where(variances > 0, variances, floor)
        whole = whole + self.min_covar * np.eye(d)
        if np.linalg.eigvalsh(whole)[0] <= 0 or not np.isfinite(whole).all():
            whole = np.diag(np.maximum(np.nan_to_num(variances), 1.0))
        given = {"full": whole, "tied": whole, "diag": np.diag(whole), "spherical": np.diag(whole).mean()}
        return self._factors_from(np.broadcast_to(given[self.covariance_type], self._shape(d)), d)

    def _centres(self, X: np.ndarray, count: int, random: Any) -> np.ndarray:
        """Return centres of the rows by k-means; fewer distinct rows than centres give some of them twice."""
        whole = X[~np.isnan(X).any(axis=1)]
        if not len(whole):
            whole = np.where(np.isnan(X), np.nan_to_num(np.nanmean(X, axis=0)), X)
        distinct = np.unique(whole, axis=0)
        if len(distinct) <= count:
            return distinct[np.arange(count) % len(distinct)]
        with part_of_a_fit():
            model = KMeans(n_clusters=count, n_init=4, random_state=random, n_jobs=self.n_jobs)
            return model.fit(whole).cluster_centers_

    def _log_rows(self, X: np.ndarray, emission: Arrays) -> np.ndarray:
        """Return ln b_j(x) of each row (n, k)."""
        return log_densities(X, *self._flat(*emission))

    def _see(self, sequences: Sequences, emission: Arrays) -> Emissions:
        from assay.hmm._loops import FLOOR, diagonal_emissions

        n, X = len(sequences.X), sequences.X
        table, shift = sequences.buffer("table", n, self.n_components), sequences.buffer("shift", n)
        means, factors = self._flat(*emission[-2:])

        def fill(piece: tuple[int, int]) -> float:
            if factors.ndim == 2 and not self.per_state:
                return diagonal_emissions(X, means, factors, *piece, table, shift)
            here = slice(*piece)
            logs = self._log_rows(X[here], emission)
            shift[here] = logs.max(axis=1)
            logs -= shift[here, None]
            np.exp(np.maximum(logs, -FLOOR), out=table[here])
            return float(logs.min())

        least = min(thread_map(fill, sequences.stretches(), n_jobs=sequences.n_jobs))
        index = np.arange(n)
        return Emissions(table, shift, index, lambda here: self._log_rows(X[here], emission), least < -FLOOR, True)

    def _maximised(self, result: Moments, emission: Arrays) -> tuple[Arrays, int]:
        """Return means and factors of the M step, and how many were widened."""
        means, factors = emission[-2:]
        flat, each = self._flat(means, factors)
        groups = self.n_components if self.per_state else 1
        new, covariances, empty = maximise(
            self.covariance_type, result, flat, self._prior(flat.shape[1]), groups, self.params
        )
        if "c" not in self.params:
            return (new.reshape(means.shape), factors), 0
        if self.covariance_type == "tied":
            empty = np.asarray(empty.reshape(groups, -1).all(axis=1))
            each = each.reshape(groups, -1, *each.shape[1:])[:, 0]
        old = covariances_of(each)
        covariances = np.where(empty.reshape(-1, *[1] * (covariances.ndim - 1)), old, covariances)
        covariances, narrow = widened(covariances, self._least)
        made = factors_of(covariances)
        made = made[:, 0] if self.covariance_type == "spherical" else made
        return (new.reshape(means.shape), made.reshape(self._shape(flat.shape[1]))), narrow

    def _log_prior(self, emission: Arrays) -> float:
        means, factors = self._flat(*emission[-2:])
        prior = self._prior(means.shape[1])
        if not np.any(prior.scale) and not np.any(prior.count) and not np.any(prior.weight):
            return 0.0
        if self.covariance_type == "tied":
            factors = factors[:: len(means) // (self.n_components if self.per_state else 1)]
        covariances = covariances_of(factors)
        count = np.asarray(prior.count, dtype=float)
        prior = prior._replace(count=count.mean(axis=-1) if count.ndim == 2 else count)
        return prior.log(self.covariance_type, means, covariances)

    def _rows_of(self, means: np.ndarray, factors: np.ndarray, which: np.ndarray, random: Any) -> np.ndarray:
        """Return a row drawn from the component that `which` names, for each of its entries."""
        noise = random.standard_normal((len(which), means.shape[1]))
        if factors.ndim == 2:
            return means[which] + noise / factors[which]
        back = np.linalg.inv(factors)  # x = m + U^-T z
        return means[which] + np.einsum("nji,nj->ni", back[which], noise)

    def _n_covariances(self, d: int) -> int:
        groups = int(np.prod(self._shape(d)[: -2 if self.covariance_type in ("full", "tied") else None]))
        return groups * (d * (d + 1) // 2) if self.covariance_type in ("full", "tied") else groups


@dataclass(eq=False, repr=False)
class GaussianHMM(GaussianEmissions):
    """A hidden Markov chain each of whose states emits rows from a Gaussian of its own.

        p(x_1..x_T) = sum over states s_1..s_T of  pi(s_1) N(x_1; m, S of s_1) prod_t A(s_{t-1}, s_t) N(x_t; of s_t)

    Missing entries (NaN) are integrated out, and a row of NaN is a step at which nothing was seen.

    Parameters
    ----------
    n_components : int >= 1
        Number of states.
    covariance_type : "diag", "full", "tied" or "spherical"
        Variances of the columns for each state; a covariance for each state; one for all; one variance for each.
    min_covar : float >= 0
        Added to the variances that the fit starts from.
    startprob_prior, transmat_prior : float >= 0, or arrays
        Dirichlet priors of the rows of the tables; 1 is none.
    means_prior, means_weight : float, or arrays
        As if so many rows had been seen at `means_prior` in each state; 0 is none.
    covars_prior, covars_weight : float
        `covars_prior` is added to sums of squares ("full", "tied": to every entry of them, as in hmmlearn), and
        max(covars_weight - 1, 0), of full matrices max(covars_weight - columns, 0), to the counts that they are
        divided by. The defaults are hmmlearn's, and keep variances above 0; covars_prior=0 is none.
    algorithm : "viterbi" or "map"
        How `predict` decodes.
    random_state : int, RandomState or None
    n_iter : int >= 0
        Steps of EM allowed.
    tol : float
        In nats. After a step that gains less, one more is made and EM ends.
    n_init : int >= 1
        Starts of EM; the fit of largest objective is kept.
    verbose : bool
    params, init_params : str
        Letters of the parts that the fit changes, and of those that it starts anew: s(tart), t(ransitions), m(eans),
        c(ovariances).
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    startprob_ (k,), transmat_ (k, k), means_ (k, d)
    covars_ : (k, d, d)
        Set it in the shape of its type: (k, d), (k, d, d), (d, d) or (k,).
    precisions_cholesky_
        Upper triangular U with U U' = S^-1, or 1 / s; the model is that of these numbers.
    monitor_ : history, iter, converged, tol
        The log-likelihood at the start and after each step.
    mended_ : int
        How often a component had shrunk to a point, or to fewer dimensions, and was widened.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.hmm import GaussianHMM
    >>> X = np.array([0.0, 0.1, -0.1, 5.0, 5.1, 4.9, 0.0, 0.2])[:, None]
    >>> model = GaussianHMM(2, random_state=0).fit(X)
    >>> states = model.predict(X)
    >>> (states == states[0]).tolist()
    [True, True, True, False, False, False, True, True]
    """

    further_loops = tuple({"n_components": 2, "covariance_type": kind} for kind in ("full", "diag"))
    card = Card(
        name="Hidden Markov model of Gaussian rows",
        task="density",
        model="densities of sequences of rows by a hidden Markov chain with a Gaussian for each state",
        strategy="log-likelihood of the sequences, plus the logarithms of priors",
        algorithm="EM (Baum and Welch), forward and backward passes for each step; counts where states are known",
        guarantee=("hmm.log-likelihood", "hmm.stationary", "hmm.monotone", "hmm.holdout"),
        input=("numbers", "missing"),
    )

    letters: ClassVar = {**HiddenMarkovModel.letters, "m": "means_", "c": "precisions_cholesky_"}

    _: KW_ONLY
    covars_prior: Any = 1e-2
    covars_weight: Any = 1.0
    params: str = "stmc"
    init_params: str = "stmc"

    @property
    def family(self) -> str:  # type: ignore[override]
        """Which of the checker's predictors reads the fitted parameters."""
        return f"hmm.{self.covariance_type}"

    @property
    def covars_(self) -> np.ndarray:
        """Covariances (k, d, d)."""
        result, (k, d) = self._covariances(), self.means_.shape
        if self.covariance_type == "tied":
            return np.repeat(result[None], k, axis=0)
        if self.covariance_type == "full":
            return result
        result = result if result.ndim == 2 else np.repeat(result[:, None], d, axis=1)
        return result[:, :, None] * np.eye(d)

    @covars_.setter
    def covars_(self, value: Any) -> None:
        self.precisions_cholesky_ = self._factors_from(value, np.shape(self.means_)[-1])

    def _prior(self, d: int) -> Prior:
        less = 1 if self.covariance_type in ("diag", "spherical") else d
        weight = np.broadcast_to(np.asarray(self.means_weight, dtype=float), (self.n_components,))
        mean = np.broadcast_to(np.asarray(self.means_prior, dtype=float), (self.n_components, d))
        return Prior(mean, weight, np.asarray(self.covars_prior, dtype=float), max(float(self.covars_weight) - less, 0))

    def _emission(self) -> Arrays:
        return self._gaussians()

    def _attributes(self, emission: Arrays) -> dict[str, np.ndarray]:
        return dict(zip(("means_", "precisions_cholesky_"), emission))

    def _begin(self, X: np.ndarray, random_state: Any) -> Arrays:
        factors, random = self._start_covariance(X), check_random_state(random_state)
        means = self._centres(X, self.n_components, random) if self._draws("m") else np.asarray(self.means_, float)
        return means, factors if self._draws("c") else self.precisions_cholesky_

    def _count(self, sequences: Sequences, seen: Emissions, shares: np.ndarray, emission: Arrays) -> Any:
        return moments(sequences, *self._flat(*emission), shares)

    def _maximise(self, counts: Any, emission: Arrays) -> tuple[Arrays, int]:
        return self._maximised(counts, emission)

    def _draw(self, states: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        return self._rows_of(*self._flat(*self._emission()), states, random)

    def n_parameters(self) -> int:
        k, d = self.means_.shape
        return super().n_parameters() + k * d * ("m" in self.params) + self._n_covariances(d) * ("c" in self.params)
