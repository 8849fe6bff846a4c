"""Expectation and maximisation: parameters of a model in which a part Z of each row is hidden.

    E step    the expected statistics of (X, Z) given X and the parameters: Q(T | T_t) = E[ln p(X, Z | T)] as a function
              of T needs no more of the rows
    M step    T_{t+1} = argmax_T Q(T | T_t)

The log-likelihood ln p(X | T) never falls, since it rises by at least as much as Q does (Jensen's inequality); a
fixed point is a stationary point, which need not be a maximum and depends on the start (Dempster, Laird and Rubin
1977; Wu 1983). Hard EM puts the most probable value of Z in place of its distribution; what never falls is then
ln p(X, Z | T), of X and that Z together.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol

ROUNDING = 1e-9
"""Share of the log-likelihood by which rounding may make it fall."""


class Expected(NamedTuple):
    """What an E step finds at some parameters: the log-likelihood there, and the statistics for the M step.

    Parameters
    ----------
    log_likelihood : float
        Log-likelihood of the parameters.
    statistics : object
        What the M step needs.
    """

    log_likelihood: float
    statistics: Any


class LatentModel(Protocol):
    """Rows with a hidden part, as EM sees them; parameters are whatever `m_step` returns.

    `exact` tells that each M step maximises Q, so that a fall of the log-likelihood is an error; a model whose last M
    step started a component afresh, or which adds to its covariances, says False.
    """

    @property
    def exact(self) -> bool:
        """Whether the last M step maximised Q."""

    def e_step(self, parameters: Any) -> Expected:
        """Return the log-likelihood at the parameters and the expected statistics of the complete rows."""

    def m_step(self, statistics: Any) -> Any:
        """Return the parameters of largest expected complete log-likelihood.

        Parameters
        ----------
        statistics : object
            What the E step returned.
        """

    def log_likelihood(self, parameters: Any) -> float:
        """Return ln p(X | parameters), of hard EM ln p(X, Z | parameters)."""


class Found(NamedTuple):
    """The end of a run of EM.

    `history` holds the log-likelihood of the start and after each of the `n_iter` steps, the last being that of
    `parameters`.

    Parameters
    ----------
    parameters : object
        The parameters.
    history : list of float
        Log-likelihood of the start and after each step.
    n_iter : int
        Number of steps.
    converged : bool
        Whether a step gained less than `tol`.
    """

    parameters: Any
    history: list[float]
    n_iter: int
    converged: bool

    @property
    def log_likelihood(self) -> float:
        """The last of `history`."""
        return self.history[-1]


class LikelihoodFellError(ArithmeticError):
    """A step of EM lowered the likelihood: its E or M step is wrong, or rounding has the better of it."""


def em(
    model: LatentModel,
    start: Any,
    *,
    tol: float,
    max_iter: int,
    watch: Callable[[Any, float, float], bool] = lambda parameters, value, gain: False,
    keeping: AbstractContextManager[None] | None = None,
) -> Found:
    """Run EM from `start`: after a step that gains less than `tol`, one more is made and the run ends.

    `watch(parameters, log_likelihood, gain)` is called after each step; if it returns True the run ends there. The
    steps are made within `keeping`: one that swallows Ctrl-C (`FitLog.keeping`) ends the run at the last whole step.

    Parameters
    ----------
    model : LatentModel
        E step and M step.
    start : array-like
        Parameters to begin with.
    tol : float
        Gain of the log-likelihood that ends the run.
    max_iter : int
        Largest number of steps.
    watch : callable
        Called with parameters, log-likelihood and gain after each step: True ends the run.
    keeping : AbstractContextManager or None
        Context in which the steps are made; None: none.

    Returns
    -------
    Found
        Parameters and history.

    Raises
    ------
    LikelihoodFellError
        A step made the likelihood smaller by more than rounding.
    """
    before, statistics = model.e_step(start)
    history, parameters, converged = [before], start, False
    with keeping or nullcontext():
        for step in range(1, max_iter + 1):
            last = converged or step == max_iter
            result = model.m_step(statistics)
            if last:
                value = model.log_likelihood(result)
            else:
                value, statistics = model.e_step(result)
            parameters = result
            history.append(value)
            gain = value - history[-2]
            if model.exact and gain < -ROUNDING * (1.0 + abs(value)):
                fell = f"from {history[-2]!r} to {value!r}"
                raise LikelihoodFellError(f"EM: step {step} lowered the log-likelihood {fell}.")
            stop = watch(parameters, value, gain)
            converged = converged or (abs(gain) < tol and not stop)
            if stop or last:
                break
    return Found(parameters, history, len(history) - 1, converged)
