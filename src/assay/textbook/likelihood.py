"""Maximum likelihood for a density that is given as a function.

    maximise over theta    LL(theta) = sum_i w_i ln p(x_i; theta)

Method: L-BFGS-B on the mean of -ln p with differences for the gradient, then Newton steps with differences of the
gradient on the parameters that no bound holds, kept only if they raise the likelihood. It finds a local maximum.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

_STEP = np.finfo(np.float64).eps ** (1 / 3)  # of a central difference
_POLISH = 20  # Newton steps at most


class Likelihood(NamedTuple):
    """The parameters, their log-likelihood, its gradient, which parameters lie on a bound, and whether it is flat.

    Parameters
    ----------
    parameters : ndarray
        The parameters.
    log_likelihood : float
        Their log-likelihood.
    gradient : ndarray
        Its gradient there.
    on_bound : ndarray
        Which parameters lie on a bound.
    converged : bool
        Whether the gradient is small in the directions that are free.
    """

    parameters: np.ndarray
    log_likelihood: float
    gradient: np.ndarray
    on_bound: np.ndarray
    converged: bool


def fit(
    log_density: Callable[[Any, np.ndarray], Any],
    data: Any,
    start: Any,
    bounds: Sequence[tuple[float | None, float | None]] | None = None,
    *,
    sample_weight: Any = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> Likelihood:
    """Return the parameters of largest likelihood near `start`.

    Parameters
    ----------
    log_density : function
        ln p of each row: log_density(data, parameters) returns an array with a number for each row.
    data : array-like
        The rows, as `log_density` takes them.
    start : (p,)
        Where the search begins; its likelihood must be above 0.
    bounds : p pairs (low, high), optional
        None for an end that is free. A parameter that must be > 0, such as a variance, gets a low end above 0.
    sample_weight : array-like or None
        Weights of the rows; None: each has the weight 1.
    tol : float, default=1e-6
        It has converged if the gradient of the mean log-likelihood, on parameters inside their bounds, is below tol.
    max_iter : int, default=1000
        Largest number of steps.

    Returns
    -------
    Likelihood
        The parameters and what they reach.

    Examples
    --------
    The exponential density of rate t, t exp(-t x); the closed form is 1 / mean:

    >>> import numpy as np
    >>> found = fit(lambda x, t: np.log(t[0]) - t[0] * x, np.array([1.0, 2.0, 6.0]), [1.0], [(1e-9, None)])
    >>> found.parameters.round(6).tolist(), found.converged
    ([0.333333], True)
    """
    x = np.array(start, dtype=np.float64, ndmin=1)
    low, high = _ends(bounds, len(x))
    if np.any(x < low) or np.any(x > high):
        raise ValueError(f"likelihood.fit: start must lie within its bounds; got {x.tolist()}.")
    mean = _mean(log_density, data, sample_weight)
    if not np.isfinite(mean(x)):
        raise ValueError("likelihood.fit: the likelihood is 0 or not a number at start; begin elsewhere.")

    def objective(point: np.ndarray) -> float:
        value = -mean(np.clip(point, low, high))
        return value if np.isfinite(value) else 1e300

    def slope(point: np.ndarray) -> np.ndarray:
        return _gradient(objective, point, low, high)

    ends = list(zip(low.tolist(), high.tolist()))
    options = {"maxiter": max_iter, "gtol": tol * 1e-3, "ftol": 1e-15}
    x = np.clip(minimize(objective, x, jac=slope, method="L-BFGS-B", bounds=ends, options=options).x, low, high)
    x = _polished(objective, slope, x, low, high)
    gradient = -slope(x)
    held = ((x <= low) & (gradient < 0)) | ((x >= high) & (gradient > 0))
    converged = bool(np.abs(np.where(held, 0.0, gradient)).max() <= tol)
    if not converged:
        warnings.warn(
            f"likelihood.fit: stopped where the gradient of the mean is {np.abs(gradient).max():.3g}, above {tol:g}.",
            RuntimeWarning,
            stacklevel=2,
        )
    total = mean.total
    return Likelihood(x, mean(x) * total, gradient * total, held, converged)


class _mean:
    """The mean log-likelihood of the rows as a function of the parameters."""

    def __init__(self, log_density: Callable[[Any, np.ndarray], Any], data: Any, weight: Any) -> None:
        self.log_density, self.data = log_density, data
        self.weight = None if weight is None else np.asarray(weight, dtype=np.float64)
        self.total = float(len(data) if self.weight is None else self.weight.sum())
        if not self.total > 0:
            raise ValueError("likelihood.fit: there are no rows, or all weights are zero.")

    def __call__(self, parameters: np.ndarray) -> float:
        with np.errstate(all="ignore"):
            logs = np.asarray(self.log_density(self.data, parameters), dtype=np.float64)
        if logs.shape != (len(self.data),):
            raise ValueError(
                f"likelihood.fit: log_density must return a number for each of {len(self.data)} rows; "
                f"got shape {logs.shape}."
            )
        return float((logs.sum() if self.weight is None else logs @ self.weight) / self.total)


def _ends(bounds: Any, size: int) -> tuple[np.ndarray, np.ndarray]:
    pairs = [(None, None)] * size if bounds is None else list(bounds)
    if len(pairs) != size:
        raise ValueError(f"likelihood.fit: bounds must be a pair for each of {size} parameters; got {len(pairs)}.")
    low = np.array([-np.inf if end is None else end for end, _ in pairs], dtype=np.float64)
    high = np.array([np.inf if end is None else end for _, end in pairs], dtype=np.float64)
    if not np.all(low < high):
        raise ValueError("likelihood.fit: each pair of bounds needs low < high.")
    return low, high


def _gradient(objective: Callable[[np.ndarray], float], x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return central differences, one-sided at a bound."""
    result = np.empty(len(x))
    for j in range(len(x)):
        step = _STEP * max(1.0, abs(x[j]))
        left, right = x.copy(), x.copy()
        left[j], right[j] = max(x[j] - step, low[j]), min(x[j] + step, high[j])
        result[j] = (objective(right) - objective(left)) / (right[j] - left[j])
    return result


def _polished(
    objective: Callable[[np.ndarray], float],
    slope: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> np.ndarray:
    """Return x after Newton steps on the parameters strictly inside their bounds, while the gradient falls."""
    gradient = slope(x)
    for _ in range(_POLISH):
        free = np.flatnonzero((x > low) & (x < high))
        if not len(free):
            break
        H = np.empty((len(free), len(free)))
        for a, j in enumerate(free):
            step = np.zeros(len(x))
            step[j] = 1e-4 * max(1.0, abs(x[j]))
            ahead, behind = (np.clip(x + sign * step, low, high) for sign in (1, -1))
            H[a] = (slope(ahead) - slope(behind))[free] / (ahead[j] - behind[j])
        try:
            move = np.linalg.solve((H + H.T) / 2, gradient[free])
        except np.linalg.LinAlgError:
            break
        trial = x.copy()
        trial[free] -= move
        trial = np.clip(trial, low, high)
        result = slope(trial)
        if not np.abs(result).max() < np.abs(gradient).max() or objective(trial) > objective(x) + 1e-12:
            break
        x, gradient = trial, result
    return x
