"""Training of networks: stochastic, in batches, by gradient descent with momentum or Adam (`TrainingLoop`); and of the
objective as a sum over blocks of rows, by L-BFGS, annealing or evolution.

P(theta) = share / S sum_i s_i loss(y_i, f(x_i)) + penalty,   S = sum_i s_i
"""

import math
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from assay.data.blocks import Block
from assay.neural_network._network import Shape, sums_of_last, unpack
from assay.optim.descent import anneal, evolve
from assay.params import refuse
from assay.scan import Rows, one_blas_thread

_THREADS_FROM = 4_000_000  # multiplications of a layer from which a second BLAS thread pays
_CHUNK = 2e9  # multiplications between two looks at the keyboard
_LEAST_RATE = 1e-6  # the "adaptive" schedule ends here


class Table(NamedTuple):
    """Rows (n, d), dense or CSR; targets (n, outputs); weights (n,), empty for ones; all of one floating type."""

    X: Any
    Y: np.ndarray
    weight: np.ndarray

    def take(self, rows: np.ndarray) -> "Table":
        return Table(self.X[rows], self.Y[rows], self.weight[rows] if self.weight.size else self.weight)


class Penalty(NamedTuple):
    """The objective is share x mean loss + alpha / (2 mass) |W|^2 + decay / 2 |W|^2 + intercept_decay / 2 |b|^2, where
    mass is the sum of the row weights of the batch."""

    share: float
    alpha: float
    decay: float
    intercept_decay: float

    def of(self, theta: np.ndarray, n_weights: int, mass: float) -> float:
        """Return what the penalty adds to the objective."""
        W, b = theta[:n_weights].astype(np.float64), theta[n_weights:].astype(np.float64)
        return 0.5 * (self.alpha / mass + self.decay) * float(W @ W) + 0.5 * self.intercept_decay * float(b @ b)

    def gradient(self, theta: np.ndarray, n_weights: int, mass: float) -> np.ndarray:
        """Return the gradient of the penalty."""
        rates = np.full(len(theta), self.alpha / mass + self.decay)
        rates[n_weights:] = self.intercept_decay
        return rates * theta


class Rule(NamedTuple):
    """How gradients become moves: Adam, or descent with momentum; `paces` are factors of the rate, one for each layer,
    empty for ones."""

    adam: bool
    rate: float
    momentum: float = 0.0
    nesterov: bool = False
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8
    paces: tuple[float, ...] = ()


class Memory(NamedTuple):
    """What a rule remembers: both moments (2, parameters) and the number of updates made."""

    moments: np.ndarray
    updates: int


class Epochs:
    """Epochs of one run. `theta` and `moments` are moved in place; nothing is allocated after the start."""

    def __init__(self, shape: Shape, table: Table, batch: int, rule: Rule, penalty: Penalty, memory: Memory) -> None:
        from assay.neural_network import _loops

        self.shape, self.table, self.batch, self.rule = shape, table, batch, rule
        self.updates, self.rate = memory.updates, rule.rate
        dtype, sizes = table.Y.dtype, shape.sizes
        self._train = _loops.train
        self._numbers = np.zeros(12, dtype)
        self._numbers[[_loops.SHARE, _loops.ALPHA, _loops.DECAY, _loops.INTERCEPT_DECAY]] = penalty
        places = [_loops.MOMENTUM, _loops.BETA_1, _loops.BETA_2, _loops.EPSILON]
        self._numbers[places] = rule.momentum, rule.beta_1, rule.beta_2, rule.epsilon
        self._numbers[[_loops.LEAST, _loops.ONE]] = np.finfo(dtype).eps, 1.0
        self._rate_place, self._rule_code = _loops.RATE, _loops.ADAM if rule.adam else _loops.SGD
        self._work = (
            np.zeros(shape.n_parameters, dtype),
            memory.moments[0],
            memory.moments[1],
            shape.by_layer(rule.paces).astype(dtype),
            np.zeros((batch, sizes[0]), dtype),
            np.zeros((batch, sizes[-1]), dtype),
            np.zeros(batch, dtype),
            np.zeros(batch * sum(sizes[1:]), dtype),
            np.zeros(2 * batch * max(sizes[1:]), dtype),
        )

    def run(self, theta: np.ndarray, order: np.ndarray) -> tuple[float, float]:
        """Visit the rows in that order; return the mean objective met, and the length of the last gradient."""
        step = self.batch * max(1, int(_CHUNK / (2.0 * self.batch * self.shape.n_parameters)))
        total = norm = 0.0
        for start in range(0, len(order), step):
            met, norm = self._visit(theta, order[start : start + step])
            total += met
        return total / len(order), norm

    def _visit(self, theta: np.ndarray, order: np.ndarray) -> tuple[float, float]:
        X, Y, weight = self.table
        if not isinstance(X, np.ndarray) or not X.flags.writeable:  # compiled code is made for arrays that are neither
            X, Y, weight = self.table.take(order)
            X, order = X if isinstance(X, np.ndarray) else X.toarray(), np.arange(len(order))
        self._numbers[self._rate_place] = self.rate
        codes = self.shape.codes
        met, norm, self.updates = self._train(
            X, Y, weight, order, self.batch, *codes, self._rule_code, self.rule.nesterov, self._numbers, self.updates,
            theta, self._work,
        )  # fmt: skip
        return met, norm

    def blas(self) -> AbstractContextManager[None]:
        """Return a context for epochs: one BLAS thread where more cost more than they bring."""
        small = self.batch * self.shape.widest_product < _THREADS_FROM
        return one_blas_thread() if small else nullcontext()


class Progress:
    """When a stochastic run ends: what was judged last did not improve by more than tol for `patience` epochs."""

    def __init__(self, tol: float, patience: float, best: float = math.inf, waited: int = 0) -> None:
        self.tol, self.patience, self.best, self.waited = tol, patience, best, waited

    def judge(self, value: float) -> bool:
        """Take in a value that should fall; return whether it is the lowest so far."""
        self.waited = self.waited + 1 if value > self.best - self.tol else 0
        lowest = value < self.best
        self.best = min(self.best, value)
        return lowest

    @property
    def over(self) -> bool:
        return self.waited > self.patience


class Outcome(NamedTuple):
    """How one run from one start ended; `value` is what runs are compared by."""

    theta: np.ndarray
    value: float
    fitted: dict[str, Any]


class Diverged(ValueError):
    """The weights of a run are no longer finite."""


DIVERGED = (
    "Solver produced non-finite parameter weights. The input data may contain large values and need to be "
    "preprocessed: scale the columns, or lower learning_rate_init."
)


class TrainingLoop:
    """The epochs of one run: where it stands, what it met, when it ends."""

    def __init__(
        self, model: Any, table: Table, held: Table | None, shape: Shape, theta: np.ndarray, once: bool
    ) -> None:
        self.model, self.held, self.shape, self.theta = model, held, shape, theta
        rule = model._rule()
        fresh = not (once and hasattr(model, "moments_"))
        moments = np.zeros((2, len(theta)), theta.dtype) if fresh else model.moments_.astype(theta.dtype)
        self.moments, batch = moments, model._batch(len(table.Y))
        memory = Memory(moments, 0 if fresh else model.updates_)
        self.engine = Epochs(shape, table, batch, rule, model._penalty(), memory)
        self.engine.rate = rule.rate if fresh else model.rate_
        self.rows, self.epochs, self.t = len(table.Y), 0, getattr(model, "t_", 0)
        self.curve = list(getattr(model, "loss_curve_", []))
        self.scores = None if held is None else list(model.validation_scores_ or [])
        best = -model.best_validation_score_ if held is not None else model.best_loss_
        waited = getattr(model, "waited_", 0)
        self.progress = Progress(model.tol, model.n_iter_no_change, math.inf if best is None else best, waited)
        self.lowest, self.best_theta, self._least = theta.copy(), theta.copy(), math.inf

    diverged = False  # whether a run that is judged by rows held out ended because the weights grew beyond all bounds

    @property
    def kept(self) -> np.ndarray:
        """The weights that the model would have if the run ended here."""
        return self.theta if self.held is None else self.best_theta

    def epoch(self, order: np.ndarray) -> tuple[float, float]:
        loss, norm = self.engine.run(self.theta, order)
        if not math.isfinite(loss) or not np.isfinite(self.theta).all():
            if self.scores is None or not self.epochs:
                raise Diverged(refuse(self.model, f"{DIVERGED} (epoch {self.epochs + 1})"))
            self.diverged = True
            self.scores.append(math.nan)
            return loss, math.inf
        self.epochs, self.t = self.epochs + 1, self.t + self.rows
        self.curve.append(loss)
        if self.model.verbose:
            print(f"Iteration {self.epochs}, loss = {loss:.8f}")
        if self.held is None:
            self.progress.judge(loss)
        else:
            self._judge_held()
        if loss < self._least:
            self._least, self.lowest = loss, self.theta.copy()
        if self.model.solver != "adam" and self.model.learning_rate == "invscaling":
            self.engine.rate = self.engine.rule.rate / (self.t + 1) ** self.model.power_t
        return loss, norm

    def _judge_held(self) -> None:
        assert self.held is not None
        assert self.scores is not None
        Z = sums_of_last(self.held.X, *unpack(self.shape.sizes, self.theta), self.shape.unit)
        score = self.model._held_score(Z, self.held.Y, self.held.weight if self.held.weight.size else None)
        self.scores.append(score)
        if self.model.verbose:
            print(f"Validation score: {score:f}")
        if self.progress.judge(-score):
            self.best_theta = self.theta.copy()

    def over(self) -> bool:
        """Tell whether the run ends; the "adaptive" schedule first takes smaller steps."""
        if not self.progress.over:
            return False
        if self.model.solver == "adam" or self.model.learning_rate != "adaptive" or self.engine.rate <= _LEAST_RATE:
            return True
        self.engine.rate /= 5.0
        self.progress.waited = 0
        return False

    def outcome(self) -> Outcome:
        judged = self.progress.best if self.held is not None else self.curve[-1] if self.curve else math.inf
        fitted = {
            "n_iter_": self.epochs,
            "t_": self.t,
            "loss_": self.curve[-1] if self.curve else math.inf,
            "loss_curve_": self.curve,
            "best_loss_": self.progress.best if self.held is None else None,
            "validation_scores_": self.scores,
            "best_validation_score_": None if self.held is None else -self.progress.best,
            "moments_": self.moments,
            "updates_": self.engine.updates,
            "rate_": self.engine.rate,
            "waited_": self.progress.waited,
            "batch_rows_": self.engine.batch,
        }
        return Outcome(self.kept, judged, fitted)


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


def lbfgs(objective: Objective, theta: np.ndarray, tol: float, max_iter: int, max_fun: int, callback: Told) -> Found:
    """Minimise by L-BFGS until the largest entry of the gradient is at most tol; Ctrl-C keeps the best parameters."""
    iterations = 0

    def step(intermediate_result: Any) -> None:
        nonlocal iterations
        iterations += 1
        if callback(intermediate_result.x, float(intermediate_result.fun), objective.norm):
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": max_fun, "gtol": tol}
    try:
        with one_blas_thread():  # the solver's own products are tiny
            result = minimize(objective, theta, jac=True, method="L-BFGS-B", callback=step, options=options)
    except KeyboardInterrupt:
        return _best(objective, theta, iterations, interrupted=True)
    return Found(result.x, float(result.fun), max(1, int(result.nit)), converged=result.status == 0)


def annealed(objective: Objective, theta: np.ndarray, max_iter: int, seed: int, callback: Told) -> Found:
    """Minimise by simulated annealing of the weight vector, `SWEEP` proposals an iteration; the temperature falls from
    15 % of the first value to a thousandth of it."""

    def search(value: Callable[[np.ndarray], float], stop: Callable[[], bool]) -> None:
        first = objective.value(theta)
        steps = SWEEP * max_iter - 3
        anneal(value, theta, step=0.5, hot=0.15 * first, cold=1e-3 * first, steps=steps, seed=seed, stop=stop)

    return _searched(search, objective, theta, callback, SWEEP)


def evolved(objective: Objective, theta: np.ndarray, max_iter: int, seed: int, callback: Told) -> Found:
    """Minimise by a genetic search with the weights as genome, one generation an iteration."""
    high = np.full(len(theta), _BOX)

    def search(value: Callable[[np.ndarray], float], stop: Callable[[], bool]) -> None:
        evolve(value, -high, high, size=_POPULATION, generations=max_iter, seed=seed, stop=stop)

    return _searched(search, objective, theta, callback, _POPULATION)


def _searched(
    search: Callable[[Callable[[np.ndarray], float], Callable[[], bool]], None],
    objective: Objective,
    theta: np.ndarray,
    callback: Told,
    every: int,
) -> Found:
    """Run a search without gradients, which is told the best so far every so many evaluations, an iteration, and ends
    when that is answered by a wish to stop. Ctrl-C keeps the best parameters."""
    stopped = interrupted = False

    def value(theta: np.ndarray) -> float:
        nonlocal stopped
        result = objective.value(theta)
        if objective.calls % every == 0:
            stopped |= callback(objective.best[1], objective.best[0], 0.0)
        return result

    try:
        with one_blas_thread():
            search(value, lambda: stopped)
    except KeyboardInterrupt:
        interrupted = True
    return _best(objective, theta, objective.calls // every, interrupted)


def _best(objective: Objective, theta: np.ndarray, iterations: int, interrupted: bool) -> Found:
    value, best = objective.best
    return Found(best if len(best) else theta, value, max(1, iterations), not interrupted, interrupted)
