"""Ways out of local minima, and what kind of point one has reached."""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

Function = Callable[[np.ndarray], float]


class Best(NamedTuple):
    """The best point found, its value, and the best value after each run, step or generation."""

    x: np.ndarray
    value: float
    history: np.ndarray


def stationary_kind(gradient: Any, hessian: Any, tol: float = 1e-8) -> str:
    """Return "minimum", "maximum", "saddle", "flat" (some curvature is zero) or "not stationary".

    >>> stationary_kind([0.0, 0.0], [[2.0, 0.0], [0.0, -2.0]])
    'saddle'
    """
    if np.linalg.norm(gradient) > tol:
        return "not stationary"
    curvatures = np.linalg.eigvalsh(np.asarray(hessian, dtype=np.float64))
    level = tol * max(1.0, float(np.abs(curvatures).max()))
    if (curvatures > level).any() and (curvatures < -level).any():
        return "saddle"
    if (np.abs(curvatures) <= level).any():
        return "flat"
    return "minimum" if curvatures[0] > 0 else "maximum"


def multi_start(minimise: Callable[[np.ndarray], tuple[np.ndarray, float]], starts: Iterable[Any]) -> Best:
    """Run `minimise(start)`, which returns a point and its value, from each start; keep the lowest."""
    best, history = (np.empty(0), math.inf), []
    for start in starts:
        x, value = minimise(np.asarray(start, dtype=np.float64))
        if value < best[1]:
            best = (x, float(value))
        history.append(best[1])
    return Best(*best, np.array(history))


def acceptance(rise: float, temperature: float) -> float:
    """Return the probability of accepting a step that raises the value: min(1, exp(-rise / T)) (Metropolis).

    >>> acceptance(2.0, 1.0) == math.exp(-2.0)
    True
    """
    return 1.0 if rise <= 0 else math.exp(-rise / temperature)


def anneal(
    value: Function,
    x: Any,
    *,
    step: float = 0.5,
    hot: float = 1.0,
    cold: float = 1e-3,
    steps: int = 5_000,
    seed: int | None = 0,
    stop: Callable[[], bool] = lambda: False,
) -> Best:
    """Simulated annealing: normal steps, worse points accepted by `acceptance`, T falling geometrically from
    hot to cold. Ends early when `stop()`, asked after each step, says so."""
    random = np.random.default_rng(seed)
    x = np.array(x, dtype=np.float64)
    here, best, history = float(value(x)), (x, float(value(x))), []
    for k in range(steps):
        temperature = hot * (cold / hot) ** (k / max(1, steps - 1))
        there = x + step * random.normal(size=x.shape)
        found = float(value(there))
        if random.random() < acceptance(found - here, temperature):
            x, here = there, found
        if here < best[1]:
            best = (x, here)
        history.append(best[1])
        if stop():
            break
    return Best(*best, np.array(history))


def evolve(
    value: Function,
    low: Any,
    high: Any,
    *,
    size: int = 40,
    generations: int = 100,
    mutation: float = 0.1,
    elite: int = 2,
    seed: int | None = 0,
    stop: Callable[[], bool] = lambda: False,
) -> Best:
    """Genetic search in the box [low, high]: tournaments of two, uniform crossover, normal mutation, the
    elite kept.

    `mutation` is the share of entries mutated, by a tenth of the box that shrinks over the generations. Ends early
    when `stop()`, asked before each generation, says so.
    """
    random = np.random.default_rng(seed)
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    crowd = random.uniform(low, high, size=(size, len(low)))
    fitness = np.array([value(one) for one in crowd])
    history = [fitness.min()]
    for generation in range(generations):
        if stop():
            break
        order = np.argsort(fitness)
        crowd, fitness = crowd[order], fitness[order]
        parents = np.minimum(*random.integers(0, size, size=(2, 2, size - elite)))  # of two drawn, the fitter
        mixed = np.where(random.random((size - elite, len(low))) < 0.5, crowd[parents[0]], crowd[parents[1]])
        reach = 0.1 * (high - low) * (1 - generation / generations) + 1e-4 * (high - low)
        jumps = (random.random(mixed.shape) < mutation) * random.normal(size=mixed.shape) * reach
        children = np.clip(mixed + jumps, low, high)
        crowd = np.vstack([crowd[:elite], children])
        fitness = np.append(fitness[:elite], [value(one) for one in children])
        history.append(fitness.min())
    best = int(np.argmin(fitness))
    return Best(crowd[best], float(fitness[best]), np.array(history))
