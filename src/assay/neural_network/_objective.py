"""The objective of a network over all rows as a sum over blocks, and its minimum by L-BFGS, annealing or evolution.

P(theta) = share / S sum_i s_i loss(y_i, f(x_i)) + penalty,   S = sum_i s_i
"""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from assay.data.blocks import Block
from assay.neural_network._network import Shape
from assay.neural_network._training import Penalty
from assay.optim.search import anneal, evolve
from assay.scan import Rows, one_blas_thread

SWEEP = 100
"""Proposals of the annealing that count as one iteration."""
_BOX = 10.0  # weights of the genetic search lie between minus this and this, at first
_POPULATION = 40
_kept = threading.local()

Told = Callable[[np.ndarray, float, float], bool]
"""Takes parameters, objective and length of the gradient of an iteration; returns True to stop."""


class Sums(NamedTuple):
    """Sums over rows: s_i loss_i, s_i, and the gradient of the first."""

    loss: float
    mass: float
    gradient: np.ndarray


def targets(y: np.ndarray, outputs: int, coded: bool) -> np.ndarray:
    """Return targets (n, outputs): numbers as they are; class positions as 0 and 1, one column for two classes."""
    if not coded:
        return np.ascontiguousarray(y.reshape(len(y), -1), dtype=np.float64)
    if outputs == 1:
        return y.astype(np.float64)[:, None]
    return (y[:, None] == np.arange(outputs)).astype(np.float64)


def block_sums(block: Block, theta: np.ndarray, shape: Shape, coded: bool) -> Sums:
    """Return the sums of one block."""
    from assay.neural_network._loops import loss_gradient

    X, Y, n = _own(block.X), _own(targets(np.asarray(block.y), shape.sizes[-1], coded)), len(block.X)
    weight = np.empty(0) if block.weight is None else _own(block.weight)
    gradient = np.empty(len(theta))
    values, deltas = _buffer("values", n * sum(shape.sizes[1:])), _buffer("deltas", 2 * n * max(shape.sizes[1:]))
    least = float(np.finfo(np.float64).eps)
    loss = loss_gradient(X, Y, weight, *shape.codes, least, theta, gradient, values, deltas)
    return Sums(loss, float(weight.sum()) if weight.size else float(n), gradient)


def _own(values: np.ndarray) -> np.ndarray:
    """Return values that may be written to, which is what the loops are compiled for."""
    return values if values.flags.writeable else values.copy()


def _buffer(name: str, size: int) -> np.ndarray:
    """Return memory of this thread; pages that were touched before cost nothing."""
    have = getattr(_kept, name, None)
    if have is None or len(have) < size:
        setattr(_kept, name, np.empty(size))
    return getattr(_kept, name)[:size]


class Objective:
    """P and its gradient; remembers the best parameters that were evaluated."""

    def __init__(self, rows: Rows, shape: Shape, penalty: Penalty, coded: bool) -> None:
        self.rows, self.shape, self.penalty, self.coded = rows, shape, penalty, coded
        self.norm, self.mass, self.calls = 0.0, 0.0, 0
        self.best: tuple[float, np.ndarray] = (np.inf, np.empty(0))

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        sums = self.rows.sum(block_sums, theta, self.shape, self.coded)
        n, self.mass = self.shape.n_weights, sums.mass
        if not self.mass > 0:
            raise ValueError("the row weights sum to zero: no row counts.")
        value = self.penalty.share * sums.loss / self.mass + self.penalty.of(theta, n, self.mass)
        gradient = self.penalty.share / self.mass * sums.gradient + self.penalty.gradient(theta, n, self.mass)
        self.norm = float(np.linalg.norm(gradient))
        self.calls += 1
        if value < self.best[0]:
            self.best = (float(value), theta.copy())
        return float(value), gradient

    def value(self, theta: np.ndarray) -> float:
        return self(theta)[0]


class Found(NamedTuple):
    """Where a minimisation ended, how many iterations it took, and whether it met its tolerance or was interrupted."""

    theta: np.ndarray
    value: float
    iterations: int
    converged: bool
    interrupted: bool = False


def lbfgs(objective: Objective, theta: np.ndarray, tol: float, max_iter: int, max_fun: int, told: Told) -> Found:
    """Minimise by L-BFGS until the largest entry of the gradient is at most tol; Ctrl-C keeps the best parameters."""
    iterations = 0

    def step(intermediate_result: Any) -> None:
        nonlocal iterations
        iterations += 1
        if told(intermediate_result.x, float(intermediate_result.fun), objective.norm):
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": max_fun, "gtol": tol}
    try:
        with one_blas_thread():  # the solver's own products are tiny
            result = minimize(objective, theta, jac=True, method="L-BFGS-B", callback=step, options=options)
    except KeyboardInterrupt:
        return _best(objective, theta, iterations, interrupted=True)
    return Found(result.x, float(result.fun), max(1, int(result.nit)), converged=result.status == 0)


def annealed(objective: Objective, theta: np.ndarray, max_iter: int, seed: int, told: Told) -> Found:
    """Minimise by simulated annealing of the weight vector, `SWEEP` proposals an iteration; the temperature falls from
    15 % of the first value to a thousandth of it."""

    def search(value: Callable[[np.ndarray], float], stop: Callable[[], bool]) -> None:
        first = objective.value(theta)
        steps = SWEEP * max_iter - 3
        anneal(value, theta, step=0.5, hot=0.15 * first, cold=1e-3 * first, steps=steps, seed=seed, stop=stop)

    return _searched(search, objective, theta, told, SWEEP)


def evolved(objective: Objective, theta: np.ndarray, max_iter: int, seed: int, told: Told) -> Found:
    """Minimise by a genetic search with the weights as genome, one generation an iteration."""
    high = np.full(len(theta), _BOX)

    def search(value: Callable[[np.ndarray], float], stop: Callable[[], bool]) -> None:
        evolve(value, -high, high, size=_POPULATION, generations=max_iter, seed=seed, stop=stop)

    return _searched(search, objective, theta, told, _POPULATION)


def _searched(
    search: Callable[[Callable[[np.ndarray], float], Callable[[], bool]], None],
    objective: Objective,
    theta: np.ndarray,
    told: Told,
    every: int,
) -> Found:
    """Run a search without gradients, which is told the best so far every so many evaluations, an iteration, and ends
    when that is answered by a wish to stop. Ctrl-C keeps the best parameters."""
    stopped = interrupted = False

    def value(theta: np.ndarray) -> float:
        nonlocal stopped
        found = objective.value(theta)
        if objective.calls % every == 0:
            stopped |= told(objective.best[1], objective.best[0], 0.0)
        return found

    try:
        with one_blas_thread():
            search(value, lambda: stopped)
    except KeyboardInterrupt:
        interrupted = True
    return _best(objective, theta, objective.calls // every, interrupted)


def _best(objective: Objective, theta: np.ndarray, iterations: int, interrupted: bool) -> Found:
    value, best = objective.best
    return Found(best if len(best) else theta, value, max(1, iterations), not interrupted, interrupted)
