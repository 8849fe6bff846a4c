"""What density estimators have in common: densities of rows, their mean, and what a certificate says of them.

Of a mixture it says the log-likelihood, that it is a fixed point of EM, that no other weights of its components are
better, and that no step lowered the likelihood.
"""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from assay import scan
from assay.base import Learner
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.evidence import Density, Evidence, Gathered
from assay.guarantees.ledger import FIT_NOT_KEPT
from assay.messages import Message
from assay.mixture._components import Components, GaussianProblem, covariances_of, plain_step
from assay.optim.duality import outward
from assay.optim.em import em
from assay.params import refuse
from assay.scan import Rows

_UNIT = 2.0**-53
_MOST_WORK = 2e8  # rows x components x (columns^2 + 50) x steps that are worth making again
_MOST_ENTRIES = 2**26  # components x columns^2 up to which the checker holds moments
_AGREE = 1e-6  # two runs of EM that differ in rounding alone and end farther apart were near a saddle
_HIDDEN = 1e-6  # rounding of a log-density beyond which a fall of the likelihood cannot be seen


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

    def _keep(self, components: Components) -> None:
        for name, value in attributes(components).items():
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
        yield from mixture_facts(self, rows)


def attributes(components: Components) -> dict[str, Any]:
    """Return the fitted attributes that these components are."""
    return {"weights_": components.weights, "means_": components.means, "precisions_cholesky_": components.factors}


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


class Moments(NamedTuple):
    """Sums over rows for each component: shares, z, z z' (z = U'(x - m)), and how far rounding can move them."""

    mass: np.ndarray
    linear: np.ndarray
    square: np.ndarray
    moved: np.ndarray  # (k, 3)
    total: float


def mixture_facts(model: Any, rows: Rows) -> Iterator[Claim | NotApplicable]:
    """Yield the claims density.log-likelihood about a Gaussian mixture, or one Gaussian, on the rows it was fitted
    to."""
    at = model.components_
    yield log_likelihood(model, rows)
    hard = getattr(model, "assignment", "soft") == "hard"
    if hard:
        yield NotApplicable("em.stationary", Message("why.hard-em"))
        return
    if not hasattr(model, "reg_covar_"):
        yield NotApplicable("em.stationary", FIT_NOT_KEPT)
        return
    yield from stationary(at, rows, model.reg_covar_)
    yield from _monotone(model, rows)


def log_likelihood(model: Any, rows: Rows) -> Claim | NotApplicable:
    """Return the mean of ln p(x) over the rows."""
    values, errors = density_of(model, rows)
    weight = np.concatenate([np.ones(len(b.X)) if b.weight is None else b.weight for b in rows.blocks()])
    if not np.isfinite(values).all():
        return NotApplicable("density.log-likelihood", Message("why.zero-density"))
    mean, spread = np.average(values, weights=weight), np.average(errors, weights=weight)
    return Claim(
        "density.log-likelihood", outward(4 * float(spread) + 1e-13 * abs(mean)), params={"center": float(mean)}
    )


def stationary(
    at: Components, rows: Rows, reg_covar: float, code: int | None = None
) -> Iterator[Claim | NotApplicable]:
    """Yield how much an M step would gain and move, and how much other weights could gain; with `code` of one class."""
    if at.means.size * at.means.shape[1] > _MOST_ENTRIES:
        yield NotApplicable("em.stationary", Message("why.many-moments"))
        return
    which = {} if code is None else {"class": code}
    result = Moments(*rows.sum(_moments, at, rows.largest_entries, code))
    ratio, off = result.mass / (result.total * at.weights), result.moved[:, 0] / np.maximum(result.mass, 1e-300)
    if off.max() > 0.1:
        yield NotApplicable("em.stationary", Message("why.open-shares"))
        return
    excess = np.abs(ratio - 1) + 2 * ratio * off
    gain = float(at.weights @ np.maximum(_entropy(excess), _entropy(-np.minimum(excess, 1.0))))
    try:
        spread, moved = _spread(at, result, reg_covar)
    except ArithmeticError:
        yield NotApplicable("em.stationary", Message("why.component-covariance"))
        return
    params = {
        "covariance": at.kind,
        "reg_covar": float(reg_covar),
        "moved": outward(float(max(moved, excess.max()))),
        **which,
    }
    yield Claim("em.stationary", outward(gain + spread), params=params)
    yield Claim("em.weights", outward(max(0.0, float(np.max(ratio - 1 + 2 * ratio * off)))), params=which)


def _spread(at: Components, moments: Moments, reg: float) -> tuple[float, float]:
    """Return the gain of means and covariances per unit of weight, and the farthest that one of them moves."""
    share, d = moments.mass / moments.total, at.means.shape[1]
    s = moments.linear / moments.mass[:, None]
    lengths = np.linalg.norm(s, axis=1)
    off = moments.moved / moments.mass[:, None]
    s_off = 2 * (off[:, 1] + lengths * off[:, 0])
    A = moments.square / moments.mass[:, None, None] - s[:, :, None] * s[:, None, :] - np.eye(d)
    sizes = np.linalg.norm(A, axis=(1, 2)) + d + lengths**2
    A_off = 2 * (off[:, 2] + sizes * off[:, 0] + 2 * lengths * s_off + s_off**2) + 64 * d * _UNIT * sizes
    lengths = lengths + s_off
    gain, farthest = float(share @ lengths**2) / 2, float(lengths.max())
    U = at.each(at.factors)
    if at.kind == "tied":
        parts = [(1.0, np.einsum("k,kij->ij", share, A), float(share @ A_off), U[0])]
    else:
        parts = list(zip(share, A, A_off, U))
    for weight, matrix, error, factor in parts:
        added = reg * (factor.T @ factor)
        matrix, error = matrix + added, error + 64 * d * _UNIT * float(np.linalg.norm(added))
        values = np.diag(matrix)
        if at.kind in ("full", "tied"):
            values = np.linalg.eigvalsh(matrix)
            error += 256 * d * d * _UNIT * (1 + float(np.abs(values).max()))
        elif at.kind == "spherical":
            values = np.full(d, values.mean())
        error = 1.01 * error + 32 * d * _UNIT
        ends = np.stack([values - error, values + error])
        if ends.min() <= -0.999:
            raise ArithmeticError
        gain += 0.5 * float(weight) * float((ends - np.log1p(ends)).max(axis=0).sum() * (1 + 1e-9) + d * 1e-15)
        farthest = max(farthest, float(np.abs(ends).max()) * np.sqrt(d))
    return gain, farthest


def _entropy(x: np.ndarray) -> np.ndarray:
    """Return (1 + x) ln(1 + x) - x, a little enlarged."""
    near = np.abs(x) < 1e-3
    safe = np.where(near, 0.0, x)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(safe <= -1, 1.0, (1 + safe) * np.log1p(np.maximum(safe, -1)) - safe)
    return np.where(near, x**2 / 2 * (1 + np.abs(x)), far) * (1 + 1e-9)


def _moments(block: Block, at: Components, largest: np.ndarray, code: int | None) -> tuple[Any, ...]:
    """Return `Moments` of one block."""
    X = block.X if code is None else block.X[block.y == code]
    weight = np.ones(len(block.X)) if block.weight is None else block.weight
    weight = weight if code is None else weight[block.y == code]
    k, d = at.means.shape
    distances = at.distances(X)
    joint, errors = at.constants - 0.5 * distances, rounding_of(at, distances, largest)
    total = logsumexp(joint, axis=1)
    share = np.exp(joint - total[:, None]) * weight[:, None]
    apart = 4 * (errors + (logsumexp(joint + errors, axis=1) - total)[:, None]) + 256 * _UNIT
    lost = share * np.expm1(np.minimum(apart, 1.0)) + 1e-280
    length, U = np.sqrt(distances), at.each(at.factors)
    reach = (
        4 * (2 * d + 32) * _UNIT * np.sqrt((np.einsum("kj,kji->ki", largest + np.abs(at.means), np.abs(U)) ** 2).sum(1))
    )
    rounding = 4 * (len(X) + 64) * _UNIT
    linear, square, moved = np.empty((k, d)), np.empty((k, d, d)), np.empty((k, 3))
    for c in range(k):
        z = (X - at.means[c]) @ U[c]
        r, slip, sure = share[:, c], lost[:, c], share[:, c] + lost[:, c]
        linear[c], square[c] = r @ z, (z * r[:, None]).T @ z
        own = length[:, c]
        moved[c] = (
            slip.sum() + rounding * _UNIT * r.sum(),
            slip @ own + reach[c] * sure.sum() + rounding * (r @ own),
            slip @ own**2 + sure @ (2 * own * reach[c] + reach[c] ** 2) + rounding * (r @ own**2),
        )
    return share.sum(axis=0), linear, square, moved, float(weight.sum())


# The way there ------------------------------------------------------------------------------------------------
def _monotone(model: Any, rows: Rows) -> Iterator[Claim | NotApplicable]:
    """Yield that EM from the start did not lower the likelihood; the run is made once more, in another order."""
    if not hasattr(model, "start_"):
        return
    k, d = model.means_.shape
    steps = model.n_iter_
    if not steps:
        yield NotApplicable("em.monotone", Message("why.no-em-step"))
    elif model.restarts_:
        yield NotApplicable("em.monotone", Message("why.component-restart"))
    elif (rows.n_rows * k * (d * d + 50) + 20_000) * steps > _MOST_WORK:
        yield NotApplicable("em.monotone", Message("why.steps-cost-fit", steps=steps, rows=rows.n_rows))
    else:
        yield _replayed(model, rows, steps)


def _replayed(model: Any, rows: Rows, steps: int) -> Claim | NotApplicable:
    at, given = model.components_, model.start_
    start = at._replace(weights=given["weights"], means=given["means"], factors=given["factors"])
    problem = PlainProblem(rows, at.kind, model.reg_covar_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = em(problem, start, tol=0.0, max_iter=steps)
    distance = apart(at, solution.parameters)
    if problem.restarts or not distance < _AGREE:
        return NotApplicable("em.monotone", Message("why.saddle"))
    rounding = float(np.mean(density_of(model, rows)[1]))
    if rounding > _HIDDEN:
        return NotApplicable("em.monotone", Message("why.rounding-hides"))
    fall = max(0.0, float(-np.min(np.diff(solution.history))))
    params = {"steps": int(steps), "distance": outward(100 * distance + 1e-9), "reg_covar": float(model.reg_covar_)}
    witness = {"weights": start.weights, "means": start.means, "factors": np.array(start.each(start.factors))}
    value = fall + 1e-9 * (1 + abs(solution.log_likelihood)) + 16 * rounding
    return Claim("em.monotone", value, params=params, witness=witness)


class PlainProblem(GaussianProblem):
    """The same problem by matrix products alone, every kind as full matrices: other roundings than the fit's."""

    def __init__(self, rows: Rows, kind: str, reg_covar: float):
        super().__init__(rows, kind, reg_covar)
        self.direct = True

    @property
    def exact(self) -> bool:
        return False

    def _pass(self, at: Components, wanted: bool) -> tuple[float, Any]:
        value, result = self.rows.sum(_plain, *self._shape(at))
        return float(value), self._sums(at, result)


def _plain(block: Block, means: Any, factors: Any, constants: Any, mapped: Any) -> tuple[float, np.ndarray]:
    return plain_step(block.X, block.weight, means, factors, constants, False)


def apart(components: Components, other: Components) -> float:
    """Return how far two mixtures are apart: means in units of spread, covariances and weights as shares."""
    d = components.means.shape[1]
    U, S = components.each(components.factors), other.each(other.covariances)
    results = [float(np.abs(components.weights - other.weights).max())]
    for k in range(len(components.means)):
        results.append(float(np.linalg.norm(U[k].T @ (other.means[k] - components.means[k]))))
        results.append(float(np.linalg.norm(U[k].T @ S[k] @ U[k] - np.eye(d))))
    return max(results)


def density_of(model: Any, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Return ln p(x) of each row and how far rounding can move it."""
    return Gathered(model.evidence(rows)).the(Density).values(rows)
