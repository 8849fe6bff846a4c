"""Gradient descent and its relatives: one interface for everything that has a gradient.

A rule turns gradients into moves and keeps what it needs in a state of plain arrays:

    plain       w <- w - eta g
    momentum    m <- lambda m - eta g;                      w <- w + m
    rms-mean    sigma = sqrt(mean of all g^2) + eps;        w <- w - eta g / sigma
    adagrad     sigma = sqrt(sum of all g^2) + eps;         w <- w - eta g / sigma
    rmsprop     v <- a v + (1 - a) g^2;                     w <- w - eta g / (sqrt(v) + eps)
    adam        m <- l m + (1 - l) g, v <- a v + (1 - a) g^2;
                w <- w - eta m' / (sqrt(v') + eps),         m' = m / (1 - l^t), v' = v / (1 - a^t), or m, v
                uncorrected

A schedule turns the number of updates made, from 0, into eta. `descend` runs a rule over batches of rows that are
drawn anew in each epoch; a batch of all rows is gradient descent, of one row stochastic gradient descent. The trace
records every step and the reason for stopping. Local minima are left by several starts, annealing or evolution.
"""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

RULES = ("plain", "momentum", "rms-mean", "adagrad", "rmsprop", "adam", "adam-uncorrected")
SCHEDULES = ("constant", "inverse", "sqrt", "optimal", "invscaling")

Gradient = Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray]]


@dataclass(frozen=True)
class Rule:
    """How gradients become moves: `name`, and the numbers that the formulas above call lambda (l), a and
    eps.

    Parameters
    ----------
    name : str, default="plain"
        Name of the rule.
    inertia : float, default=0.9
        Share of the last move that is kept.
    memory : float, default=0.999
        Share of the mean of squared gradients that is kept.
    eps : float, default=1e-08
        What is added to denominators.
    """

    name: str = "plain"
    inertia: float = 0.9
    memory: float = 0.999
    eps: float = 1e-8

    def __post_init__(self) -> None:
        if self.name not in RULES:
            raise ValueError(f"Rule: name must be one of {', '.join(RULES)}; got {self.name!r}.")
        if not (0 <= self.inertia < 1 and 0 <= self.memory < 1 and self.eps >= 0):
            raise ValueError(f"Rule: inertia and memory must lie in [0, 1) and eps be >= 0; got {self!r}.")

    @property
    def code(self) -> int:
        """Number by which compiled loops know the rule."""
        return RULES.index(self.name)

    def start(self, size: int) -> np.ndarray:
        """Return the state before the first update: first and second moments, (2, size).

        Parameters
        ----------
        size : int
            Number of weights.
        """
        return np.zeros((2, size))

    def move(self, state: np.ndarray, gradient: np.ndarray, eta: float, t: int) -> np.ndarray:
        """Return what to add to w at update number t (from 0); `state` is brought up to date.

        Parameters
        ----------
        gradient : ndarray
            The gradient.
        eta : float
            Learning rate.
        t : int
            Number of the update, from 0.

        Examples
        --------
        >>> Rule("adam").move(Rule("adam").start(1), np.array([-3.0]), 0.1, 0).round(6).tolist()
        [0.1]
        """
        first, second = state
        if self.name == "plain":
            return -eta * gradient
        if self.name == "momentum":
            first[:] = self.inertia * first - eta * gradient
            return first.copy()
        if self.name in ("rms-mean", "adagrad"):
            second += gradient**2
            total = second / (t + 1) if self.name == "rms-mean" else second
            return -eta * gradient / (np.sqrt(total) + self.eps)
        second[:] = self.memory * second + (1 - self.memory) * gradient**2
        if self.name == "rmsprop":
            return -eta * gradient / (np.sqrt(second) + self.eps)
        first[:] = self.inertia * first + (1 - self.inertia) * gradient
        if self.name == "adam-uncorrected":
            return -eta * first / (np.sqrt(second) + self.eps)
        mean = first / (1 - self.inertia ** (t + 1))
        square = second / (1 - self.memory ** (t + 1))
        return -eta * mean / (np.sqrt(square) + self.eps)


@dataclass(frozen=True)
class Schedule:
    """Learning rate after t updates: "constant" eta; "inverse" eta / (1 + decay t); "sqrt" eta / sqrt(1 +
    decay t); "invscaling" eta / (t + 1)^decay;
    "optimal" 1 / (decay t + 1 / eta), the rate for a decay-strongly convex objective, never above eta.

    Parameters
    ----------
    name : str, default="constant"
        Name of the schedule.
    eta : float, default=0.01
        Learning rate at the start.
    decay : float, default=0.0
        How fast it falls.

    Examples
    --------
    >>> Schedule("inverse", 1.0, 0.5)(2)
    0.5
    """

    name: str = "constant"
    eta: float = 0.01
    decay: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in SCHEDULES:
            raise ValueError(f"Schedule: name must be one of {', '.join(SCHEDULES)}; got {self.name!r}.")
        if not (math.isfinite(self.eta) and self.eta > 0 and math.isfinite(self.decay) and self.decay >= 0):
            raise ValueError(f"Schedule: eta must be > 0 and decay >= 0, both finite; got {self!r}.")

    @property
    def code(self) -> int:
        """Number by which compiled loops know the schedule."""
        return SCHEDULES.index(self.name)

    def __call__(self, t: int) -> float:
        if self.name == "constant":
            return self.eta
        if self.name == "optimal":
            return 1.0 / (self.decay * t + 1.0 / self.eta)
        if self.name == "invscaling":
            return self.eta / (t + 1) ** self.decay
        slow = 1.0 + self.decay * t
        return self.eta / (slow if self.name == "inverse" else math.sqrt(slow))


@dataclass(frozen=True)
class Stop:
    """When to end: each rule is off at 0 (or None), and the first that fires is the reason given.

    `gradient` on |g|, `change` on |w - w before| and `gain` on the fall of the objective, per epoch;
    `patience` epochs in
    which neither validation loss nor (without validation) objective improved by more than `gain`.

    Parameters
    ----------
    epochs : int, default=100
        Largest number of epochs.
    gradient : float, default=0.0
        Norm of the gradient that ends the descent.
    change : float, default=0.0
        Change of the weights in an epoch that ends it.
    gain : float, default=0.0
        Fall of the objective in an epoch that ends it.
    patience : int or None
        Epochs without improvement that end it; None: any number.
    """

    epochs: int = 100
    gradient: float = 0.0
    change: float = 0.0
    gain: float = 0.0
    patience: int | None = None


PLAIN, SLOW, HUNDRED_EPOCHS = Rule(), Schedule(), Stop()


class Trace(NamedTuple):
    """Per epoch: mean objective of its batches, norm of its mean gradient, validation loss (NaN without),
    rate, seconds.

    Parameters
    ----------
    objective : ndarray
        Mean objective of the batches of each epoch.
    gradient : ndarray
        Norm of their mean gradient.
    validation : ndarray
        Validation loss, or NaN.
    rate : ndarray
        Learning rate.
    seconds : ndarray
        Time since the start.
    path : ndarray
        The points after each epoch, if they were asked for.
    """

    objective: np.ndarray
    gradient: np.ndarray
    validation: np.ndarray
    rate: np.ndarray
    seconds: np.ndarray
    path: np.ndarray  # (epochs + 1, size) where the epochs began and the last ended; empty unless asked for


class Descent(NamedTuple):
    """Where a descent ended, how many updates and epochs it made, why it stopped, and its trace.

    Parameters
    ----------
    x : ndarray
        Where it ended.
    updates : int
        Number of updates.
    epochs : int
        Number of epochs.
    reason : str
        Name of the rule that ended it.
    trace : Trace
        What was recorded.
    """

    x: np.ndarray
    updates: int
    epochs: int
    reason: str  # "gradient", "change", "gain", "patience", "epochs", "diverged", "stopped"
    trace: Trace


def updates_per_epoch(n_rows: int, batch_size: int) -> int:
    """Return how many batches an epoch has: ceil(n / B).

    Parameters
    ----------
    n_rows : int
        Number of rows.
    batch_size : int
        Rows of a batch; None: all.

    Returns
    -------
    int
        Number of batches.

    Examples
    --------
    >>> updates_per_epoch(60_000, 1), updates_per_epoch(60_000, 60_000), updates_per_epoch(10, 4)
    (60000, 1, 3)
    """
    return -(-n_rows // batch_size)


def batches(n_rows: int, batch_size: int, random: np.random.Generator) -> list[np.ndarray]:
    """Return the rows of one epoch in a fresh random order, cut into batches; each row occurs once.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    batch_size : int
        Rows of a batch; None: all.
    random : Generator
        Random generator.

    Returns
    -------
    list of ndarray
        Numbers of the rows of each batch.
    """
    order = random.permutation(n_rows)
    return [order[start : start + batch_size] for start in range(0, n_rows, batch_size)]


def descend(
    gradient: Gradient,
    x: Any,
    *,
    n_rows: int = 1,
    batch_size: int | None = None,
    rule: Rule = PLAIN,
    schedule: Schedule = SLOW,
    stop: Stop = HUNDRED_EPOCHS,
    validation: Callable[[np.ndarray], float] | None = None,
    noise: float = 0.0,
    seed: int | None = 0,
    keep_path: bool = False,
    on_epoch: Callable[[np.ndarray, float, float], bool] = lambda x, objective, norm: False,
) -> Descent:
    """Minimise from x with gradients of batches.

    `gradient(x, rows)` returns the mean loss of those rows and its gradient. `batch_size` None takes all
    rows at once.
    With `validation`, the x of the lowest validation loss is returned. `noise` adds normal noise of that
    size to each gradient.
    A loss that is not finite, or 1e6 times the first one in size, ends the run as "diverged" with the last
    sound x.

    Parameters
    ----------
    gradient : callable
        `gradient(x, rows)` returns mean loss and gradient of those rows.
    x : array-like
        Where the search begins.
    n_rows : int, default=1
        Number of rows.
    batch_size : int or None
        Rows of a batch; None: all.
    rule : Rule, default=Rule()
        How gradients become moves.
    schedule : Schedule, default=Schedule()
        Learning rate by update.
    stop : Stop, default=Stop()
        When to end.
    validation : callable or None
        Validation loss of a point; None: none.
    noise : float, default=0.0
        Standard deviation of the noise added to gradients.
    seed : int or None, default=0
        Seed of what is drawn.
    keep_path : bool, default=False
        Whether the points are recorded.
    on_epoch : callable
        Called with point, objective and norm after each epoch: True ends the descent.

    Returns
    -------
    Descent
        Where it ended, and its trace.

    Examples
    --------
    >>> half = Schedule(eta=0.5)
    >>> found = descend(lambda x, rows: (x @ x / 2, x), [4.0], schedule=half, stop=Stop(epochs=3))
    >>> found.x.tolist(), found.reason
    ([0.5], 'epochs')
    """
    random = np.random.default_rng(seed)
    x = np.array(x, dtype=np.float64)
    size = n_rows if batch_size is None else min(batch_size, n_rows)
    state, path = rule.start(len(x)), [x.copy()]
    log: list[tuple[float, ...]] = []
    best = (np.inf, x.copy())
    began, t, reason, waited, lowest = time.perf_counter(), 0, "epochs", 0, np.inf
    while len(log) < stop.epochs:
        before, values, mean = x.copy(), [], np.zeros_like(x)
        for rows in batches(n_rows, size, random):
            with np.errstate(over="ignore", invalid="ignore"):
                value, g = gradient(x, rows)
            if not np.isfinite(value) or not np.isfinite(g).all():
                break
            mean += g * len(rows) / n_rows
            g = g + noise * random.normal(size=len(x)) if noise else g
            x = x + rule.move(state, g, schedule(t), t)
            values.append(value)
            t += 1
        objective = float(np.mean(values)) if values else np.nan
        held = np.nan if validation is None else float(validation(x))
        log.append(
            (
                objective,
                float(np.linalg.norm(mean)),
                held,
                schedule(max(t - 1, 0)),
                time.perf_counter() - began,
            )
        )
        path.append(x.copy())
        if len(values) < updates_per_epoch(n_rows, size) or abs(objective) > 1e6 * (1 + abs(log[0][0])):
            x, reason = before, "diverged"
            break
        judged = objective if validation is None else held
        if judged < best[0]:
            best = (judged, x.copy())
        waited = 0 if judged < lowest - stop.gain else waited + 1
        fired = _fired(stop, log, float(np.linalg.norm(x - before)), waited)
        lowest = min(lowest, judged)
        if on_epoch(x, objective, log[-1][1]):
            fired = "stopped"
        if fired:
            reason = fired
            break
    columns = np.array(log).reshape(-1, 5).T
    kept = np.array(path) if keep_path else np.empty((0, len(x)))
    trace = Trace(columns[0], columns[1], columns[2], columns[3], columns[4], kept)
    return Descent(x if validation is None else best[1], t, len(log), reason, trace)


def _fired(stop: Stop, log: list[tuple[float, ...]], change: float, waited: int) -> str | None:
    """Return the name of the first stopping rule that holds."""
    if log[-1][1] <= stop.gradient:
        return "gradient"
    if change <= stop.change:
        return "change"
    if stop.patience is not None:
        return "patience" if waited >= stop.patience else None
    if stop.gain and len(log) > 1 and abs(log[-2][0] - log[-1][0]) <= stop.gain:
        return "gain"
    return None


def oscillates(trace: Trace) -> bool:
    """Tell whether the objective rose in at least a quarter of the epochs: the learning rate is too high.

    Parameters
    ----------
    trace : Trace
        The trace of a descent.

    Returns
    -------
    bool
        Whether it does.

    Examples
    --------
    >>> wild = Schedule(eta=2.1)
    >>> steps = descend(lambda x, rows: (x @ x / 2, x), [1.0], schedule=wild, stop=Stop(epochs=20))
    >>> oscillates(steps.trace)
    True
    """
    rises = np.diff(trace.objective)
    return bool(len(rises) and np.mean(rises > 0) >= 0.25)


def check_gradient(value: Callable[[np.ndarray], float], gradient: np.ndarray, x: np.ndarray) -> float:
    """Return the largest difference between `gradient` and central differences of `value` at x, relative to
    its size.

    Parameters
    ----------
    value : callable
        The function that is minimised.
    gradient : ndarray
        The gradient at x.
    x : ndarray
        Where it is checked.

    Returns
    -------
    float
        The relative difference.

    Examples
    --------
    >>> check_gradient(lambda x: float(x @ x), np.array([2.0, 4.0]), np.array([1.0, 2.0])) < 1e-6
    True
    """
    x, gradient = np.asarray(x, dtype=np.float64), np.asarray(gradient, dtype=np.float64)
    steps = np.cbrt(np.finfo(float).eps) * np.maximum(1.0, np.abs(x))
    result = np.empty_like(x)
    for j, h in enumerate(steps):
        up, down = x.copy(), x.copy()
        up[j] += h
        down[j] -= h
        result[j] = (value(up) - value(down)) / (up[j] - down[j])
    return float(
        np.abs(result - gradient).max() / max(1e-8, float(np.abs(gradient).max()), float(np.abs(result).max()))
    )


Function = Callable[[np.ndarray], float]


class Best(NamedTuple):
    """The best point found, its value, and the best value after each run, step or generation.

    Parameters
    ----------
    x : ndarray
        The best point.
    value : float
        Its value.
    history : ndarray
        Best value after each run, step or generation.
    """

    x: np.ndarray
    value: float
    history: np.ndarray


def stationary_kind(gradient: Any, hessian: Any, tol: float = 1e-8) -> str:
    """Return "minimum", "maximum", "saddle", "flat" (some curvature is zero) or "not stationary".

    Parameters
    ----------
    gradient : array-like
        Gradient at the point.
    hessian : array-like
        Hessian at the point.
    tol : float, default=1e-08
        What counts as zero.

    Returns
    -------
    str
        Name of the kind.

    Examples
    --------
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
    """Run `minimise(start)`, which returns a point and its value, from each start; keep the lowest.

    Parameters
    ----------
    minimise : callable
        Returns a point and its value, from a start.
    starts : iterable of array-like
        Starting points.

    Returns
    -------
    Best
        The best point.
    """
    best, history = (np.empty(0), math.inf), []
    for start in starts:
        x, value = minimise(np.asarray(start, dtype=np.float64))
        if value < best[1]:
            best = (x, float(value))
        history.append(best[1])
    return Best(*best, np.array(history))


def acceptance(rise: float, temperature: float) -> float:
    """Return the probability of accepting a step that raises the value: min(1, exp(-rise / T)) (Metropolis).

    Parameters
    ----------
    rise : float
        By how much the value would rise.
    temperature : float
        Temperature, above 0.

    Returns
    -------
    float
        The probability.

    Examples
    --------
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
    hot to cold. Ends early when `stop()`, asked after each step, says so.

    Parameters
    ----------
    value : callable
        The function that is minimised.
    x : array-like
        Where the search begins.
    step : float, default=0.5
        Standard deviation of a step.
    hot : float, default=1.0
        Temperature at the start.
    cold : float, default=0.001
        Temperature at the end.
    steps : int, default=5000
        Number of steps.
    seed : int or None, default=0
        Seed of what is drawn.
    stop : callable
        Asked after each step: True ends the search.

    Returns
    -------
    Best
        The best point.
    """
    random = np.random.default_rng(seed)
    x = np.array(x, dtype=np.float64)
    here, best, history = float(value(x)), (x, float(value(x))), []
    for k in range(steps):
        temperature = hot * (cold / hot) ** (k / max(1, steps - 1))
        there = x + step * random.normal(size=x.shape)
        result = float(value(there))
        if random.random() < acceptance(result - here, temperature):
            x, here = there, result
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

    Parameters
    ----------
    value : callable
        The function that is minimised.
    low : array-like
        Smallest value of each entry.
    high : array-like
        Largest value of each entry.
    size : int, default=40
        Number of points of a generation.
    generations : int, default=100
        Number of generations.
    mutation : float, default=0.1
        Share of the entries that are mutated.
    elite : int, default=2
        Number of best points that are kept.
    seed : int or None, default=0
        Seed of what is drawn.
    stop : callable
        Asked after each step: True ends the search.

    Returns
    -------
    Best
        The best point.
    """
    random = np.random.default_rng(seed)
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    crowd = random.uniform(low, high, size=(size, len(low)))
    fitness = np.array([value(point) for point in crowd])
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
        fitness = np.append(fitness[:elite], [value(child) for child in children])
        history.append(fitness.min())
    best = int(np.argmin(fitness))
    return Best(crowd[best], float(fitness[best]), np.array(history))
