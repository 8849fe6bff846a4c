"""The objective of logistic regression as a function of one vector, its minimisation, and its sums over rows.

Newton's method starts at the optimum of a subsample of the rows and keeps a Hessian as long as steps with it converge;
for K > 2 classes, or very many columns, Hessian-vector products and conjugate gradients replace the Hessian. L-BFGS is
the alternative. Sparse rows form a single block that is never made dense; two classes with many non-zeros are summed by
compiled loops on threads.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import expit

from assay.claims.claim import Claim
from assay.data.blocks import Block
from assay.fitlog import FitLog
from assay.optim.duality import gamma, outward, score_rounding
from assay.optim.newton import Found, Solve, conjugate_gradients, newton
from assay.scan import Rows, thread_map
from assay.scan.memory import in_stretches

_SAMPLE = 20_000  # rows on whose optimum Newton starts, when there are at least ten times as many
_WIDE = 1_500  # columns beyond which the Hessian is not formed
_WIDE_CLASSES = 150  # the same for the coefficients of several classes
_FORCING = 0.02  # residual that conjugate gradients leave of a Newton step; the next step sees to the rest
_FORCING_SPARSE = 0.1  # of rows with few entries, where a new Hessian costs next to nothing
_RIDGES = (1e-15, 1e-13, 1e-11, 1e-9)  # tried in turn on a Hessian that is singular up to rounding
_ROUNDING = 1e-15  # of the objective at zero: a smaller gap is hidden by rounding
_LEAST = 1e-26  # of the objective at zero: no smaller gap is asked for
_FIRST_STEPS = 60  # of L-BFGS on rows with few entries, before Newton's method goes on
_IDLE = 2  # steps below rounding that do not halve the decrement, after which the fit is at rest
Sums = tuple[float, np.ndarray, np.ndarray]
Product = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
_FILLED = 0.1  # share of entries up to which products with sparse rows are the faster ones
_COLUMNS = 100  # columns from which they are
_MANY = 100_000  # entries from which loops on threads are worth compiling
_PARTS = 8  # of the rows, whatever the number of threads, so that sums are the same to the bit


class Kept:
    """The Hessian of the losses over C where it was last formed; the fit with the next C begins with it."""

    losses: np.ndarray | None = None
    unused = False  # by the fit that runs


class Problem(NamedTuple):
    """The objective as a function of one vector x = (w, b) or, for K > 2, (W, b) row by row."""

    rows: Rows
    C: float
    class_weight: np.ndarray
    intercept: bool
    n_classes: int
    column: float = 0.0  # with a constant column s > 0, b is its penalised coefficient times s
    precondition: Solve | None = None
    kept: Kept | None = None

    @property
    def penalty(self) -> float:
        return 0.0 if np.isinf(self.C) else 1.0

    @property
    def cost(self) -> np.ndarray:
        return self.class_weight if np.isinf(self.C) else self.C * self.class_weight

    @property
    def n_outputs(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def total(self) -> float:
        """Sum of all C_i."""
        thin = thin_block(self.rows)
        return sparse_total_cost(thin, self.cost) if thin else float(self.rows.sum(total_cost, self.cost))

    def pack(self, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        return np.hstack([coef, intercept[:, None]]).ravel() if self.intercept else coef.ravel()

    def unpack(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        table = x.reshape(self.n_outputs, -1)
        if not self.intercept:
            return table.copy(), np.zeros(self.n_outputs)
        return table[:, :-1].copy(), table[:, -1].copy()

    def centred(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the same, of several classes less their mean: adding a vector to all changes the penalty alone."""
        coef, intercept = self.unpack(x)
        if self.n_outputs > 1:
            coef, intercept = coef - coef.mean(axis=0), intercept - intercept.mean()
        return coef, intercept

    @property
    def on_intercept(self) -> float:
        """The weight of 1/2 b^2 among the penalties."""
        return self.penalty / self.column**2 if self.column else 0.0

    def penalised(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of the penalties, but for their common weight."""
        table = x.reshape(self.n_outputs, -1).copy()
        if self.intercept:
            table[:, -1] *= self.on_intercept
        return table.ravel()

    def value_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        coef, intercept = self.unpack(x)
        statistic = binary if self.n_classes == 2 else multinomial
        thin = thin_block(self.rows)
        if thin is None:
            value, slope, pull = self.rows.sum(statistic, coef, intercept, self.cost)
        else:
            value, slope, pull = sparse_value_slopes(thin, coef, intercept, self.cost, self.rows.n_jobs)
        w = self.penalised(x)
        gradient = self.pack(slope, pull) + self.penalty * w
        return float(value) + 0.5 * self.penalty * float(w @ x), gradient

    def column_scale(self) -> np.ndarray:
        """Return the roots of the diagonal of a bound on the Hessian."""
        factor = 0.25 if self.n_classes == 2 else 0.5
        thin = thin_block(self.rows)
        diagonal = factor * (sparse_squares(thin, self.cost) if thin else self.rows.sum(squares, self.cost))
        diagonal[:-1] += self.penalty
        diagonal[-1] += self.on_intercept
        diagonal[diagonal == 0] = 1.0
        return np.tile(np.sqrt(diagonal if self.intercept else diagonal[:-1]), self.n_outputs)

    def errors(self, x: np.ndarray) -> int:
        return int(self.rows.sum(errors, *self.unpack(x)))

    def curvature(self, x: np.ndarray) -> Solve:
        """Return a function that solves with the Hessian at x."""
        if not self.by_products:
            return self._factored(x)
        multiply = partial(self._multiply, self._products(*self.unpack(x)))
        precondition = self.precondition or self.preconditioner()
        rtol = _FORCING if thin_block(self.rows) is None else _FORCING_SPARSE
        return lambda g: conjugate_gradients(multiply, precondition, g, rtol=rtol, max_iter=250)

    @property
    def by_products(self) -> bool:
        """Whether the Hessian is only multiplied with: of many coefficients, or of few entries."""
        size = self.n_outputs * self.rows.n_features
        return size > (_WIDE if self.n_classes == 2 else _WIDE_CLASSES) or thin_block(self.rows) is not None

    def _factored(self, x: np.ndarray) -> Solve:
        hessian, d = self._hessian(x), self.rows.n_features
        penalties = np.tile(np.append(np.full(d, self.penalty), self.on_intercept), self.n_outputs)
        hessian[np.diag_indices(len(penalties))] += penalties
        if not self.intercept:
            free = np.arange(len(penalties)) % (d + 1) < d
            hessian = hessian[np.ix_(free, free)]
        return _solver(hessian)

    def _hessian(self, x: np.ndarray) -> np.ndarray:
        """Return the Hessian of the losses at x, or that which was kept."""
        if self.kept is not None and self.kept.unused and self.kept.losses is not None:
            self.kept.unused = False
            return self.C * self.kept.losses
        statistic = binary_hessian if self.n_classes == 2 else multinomial_hessian
        hessian: np.ndarray = self.rows.sum(statistic, *self.unpack(x), self.cost)
        if self.kept is not None:
            self.kept.losses, self.kept.unused = hessian / self.C, False
        return hessian

    def _products(self, coef: np.ndarray, intercept: np.ndarray) -> Product:
        """Return a function that multiplies the Hessian of the losses with (V, v0)."""
        thin = thin_block(self.rows)
        if thin is not None:
            return sparse_products(thin, coef, intercept, self.cost, self.rows.n_jobs)
        statistic = binary_product if self.n_classes == 2 else multinomial_product
        return partial(self.rows.sum, statistic, coef, intercept, self.cost)

    def _multiply(self, products: Product, v: np.ndarray) -> np.ndarray:
        return self.pack(*products(*self.unpack(v))) + self.penalty * self.penalised(v)

    def preconditioner(self) -> Solve:
        """Return the solve with Bohning's bound on the Hessian, 1/2 (1/4 for two classes) sum C_i x_i x_i^T,
        diagonal if wide."""
        d = self.rows.n_features
        if self.rows.n_features > _WIDE or thin_block(self.rows) is not None:
            squares = self.column_scale() ** 2
            return lambda g: g / squares
        gram = (0.25 if self.n_classes == 2 else 0.5) * self.rows.sum(second_moments, self.cost)
        gram[np.arange(d), np.arange(d)] += self.penalty
        gram[d, d] += self.on_intercept
        size = d + 1 if self.intercept else d
        solve = _solver(gram[:size, :size])
        return lambda g: solve(g.reshape(-1, size).T).T.ravel()


def _solver(hessian: np.ndarray) -> Solve:
    """Return a function that solves with a positive semidefinite matrix, columns scaled, and a tiny ridge
    where it is singular."""
    scale = np.sqrt(np.maximum(np.diag(hessian), 0.0))
    scale[scale == 0] = 1.0
    scaled = hessian / np.outer(scale, scale)
    if not np.isfinite(scaled).all():
        return lambda g: np.full_like(g, np.nan)
    for ridge in _RIDGES:
        try:
            factor = cho_factor(scaled + ridge * len(scaled) * np.eye(len(scaled)))
        except LinAlgError:
            continue
        return lambda g: (cho_solve(factor, (g.T / scale).T).T / scale).T
    return lambda g: (g.T / scale**2).T


class _Rest:
    """Tells when rounding hides any further progress: the decrement is tiny, and stays so."""

    def __init__(self, rounding: float):
        self.rounding, self.best, self.idle = rounding, np.inf, 0

    def reached(self, half_decrement: float) -> bool:
        if half_decrement <= self.rounding:
            self.idle = 0 if half_decrement < 0.5 * self.best else self.idle + 1
            self.best = min(self.best, half_decrement)
        return self.idle >= _IDLE


def minimise(
    problem: Problem, solver: str, tol: float, max_iter: int, log: FitLog, begin: np.ndarray | None = None
) -> Found:
    """Minimise P until the decrement estimates, and with a penalty the gradient confirms, that P - min P is
    small; from `begin`, or from zero.

    The gradient proves P - min P <= 1/2 |g|^2 if every direction is penalised; the decrement sees the
    intercept too.
    """
    at_zero = problem.total * float(np.log(problem.n_classes))
    target, rounding = max(0.01 * tol**2, _LEAST) * at_zero, _ROUNDING * at_zero
    zero = np.zeros(problem.n_outputs * (problem.rows.n_features + problem.intercept))
    start = zero if begin is None else begin

    rest = _Rest(rounding)

    def done(x: np.ndarray, gradient: np.ndarray, half_decrement: float) -> bool:
        if rest.reached(half_decrement):
            return True
        if problem.penalty:
            return half_decrement <= target and 0.5 * float(gradient @ gradient) <= target
        return half_decrement <= target or problem.errors(x) == 0

    def callback(x: np.ndarray, value: float, gradient: np.ndarray) -> bool:
        coef, intercept = problem.centred(x)
        return log.step(value, float(np.linalg.norm(gradient)), coef_=coef, intercept_=intercept)

    if problem.by_products:
        problem = problem._replace(precondition=problem.preconditioner())
    if solver == "lbfgs":
        return _rested(_lbfgs(problem, start, done, callback, max_iter, target), rounding)
    made = 0
    if problem.n_classes == 2 and thin_block(problem.rows) is not None:  # a gradient costs as much as a product
        result = _rested(_lbfgs(problem, start, done, callback, min(max_iter, _FIRST_STEPS), target), rounding)
        if result.status not in ("max_iter", "stalled") or result.n_iter >= max_iter:
            return result
        start, made, interrupted = result.x, result.n_iter, False
    else:
        start, interrupted = _sampled_start(problem, zero, max_iter) if begin is None else (start, False)
    if interrupted:
        result = Found(start, *problem.value_gradient(start), np.inf, 0, "interrupted")
    else:
        left = max_iter - made
        result = newton(problem.value_gradient, problem.curvature, start, done=done, max_iter=left, on_step=callback)
    if result.status == "interrupted" and result.value > at_zero:  # the optimum of the sample was a bad start
        return result._replace(x=zero, value=at_zero)
    return _rested(result, max(target, rounding))._replace(n_iter=made + result.n_iter)


def _rested(result: Found, hidden: float) -> Found:
    """Return what was found, converged if it stopped where rounding hides any further progress."""
    at_rest = result.status == "stalled" and result.decrement <= hidden
    return result._replace(status="converged") if at_rest else result


def _sampled_start(problem: Problem, start: np.ndarray, max_iter: int) -> tuple[np.ndarray, bool]:
    """Return the optimum on a sample of the rows, its losses weighted up to all rows (`start` for few rows),
    and whether the keyboard interrupted the search for it."""
    n = problem.rows.n_rows
    if n < 10 * _SAMPLE or not problem.penalty:
        return start, False
    sample = problem.rows.sample(_SAMPLE)
    small = problem._replace(rows=sample, C=problem.C * n / sample.n_rows, precondition=None)
    solution = newton(
        small.value_gradient,
        small.curvature,
        start,
        done=lambda x, g, half_decrement: half_decrement <= 1e-3 * sample.n_features / sample.n_rows * n,
        max_iter=max_iter,
    )
    return (start if solution.status == "overflow" else solution.x), solution.status == "interrupted"


class Point(NamedTuple):
    """Parameters, the objective there, and its gradient."""

    x: np.ndarray
    value: float
    gradient: np.ndarray


def _lbfgs(problem: Problem, start: np.ndarray, done: Any, callback: Any, max_iter: int, target: float) -> Found:
    """Minimise with SciPy's L-BFGS, in columns of equal curvature, until `done`.

    The decrement, which needs the Hessian, is computed only once the gradient or the last step is small
    enough.
    """
    tried = best = Point(start, *problem.value_gradient(start))
    if max_iter == 0:
        callback(*best)
        return Found(*best, np.inf, 0, "max_iter")
    decrement, steps, stopped = np.inf, 0, False
    scale = problem.column_scale()
    if not np.isfinite(best.value + best.gradient @ best.gradient) or not np.isfinite(scale).all():
        return Found(*best, np.inf, 0, "overflow")

    def value_gradient(u: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal tried
        tried = Point(u / scale, *problem.value_gradient(u / scale))
        return tried.value, tried.gradient / scale

    def check(intermediate_result: Any) -> None:
        nonlocal best, decrement, steps, stopped
        steps += 1
        before, x = best.value, intermediate_result.x / scale
        best = tried if np.array_equal(x, tried.x) else Point(x, *problem.value_gradient(x))
        near = 0.5 * best.gradient @ best.gradient if problem.penalty else before - best.value
        decrement = half_decrement() if near <= target else np.inf
        stopped = callback(*best)
        if stopped or done(x, best.gradient, decrement):
            raise StopIteration

    def half_decrement() -> float:
        return 0.5 * float(best.gradient @ problem.curvature(best.x)(best.gradient))

    limits = {"maxiter": max_iter, "maxfun": 20 * max_iter, "maxcor": 20, "maxls": 50}
    try:
        minimize(
            value_gradient,
            start * scale,
            jac=True,
            method="L-BFGS-B",
            callback=check,
            options={**limits, "ftol": 0.0, "gtol": 0.0},
        )
        decrement = half_decrement() if decrement > target else decrement
    except KeyboardInterrupt:
        return Found(*best, np.inf, steps, "interrupted")
    at_rest = decrement <= target or done(best.x, best.gradient, decrement)
    stalled = "max_iter" if steps >= max_iter else "stalled"
    return Found(*best, decrement, steps, "stopped" if stopped else "converged" if at_rest else stalled)


def stationarity(problem: Problem, coef: np.ndarray, intercept: np.ndarray, *, weighted: bool) -> Claim:
    """Return claim suboptimality, form b, of a problem without penalty: no coefficients nearby lower the objective by
    more than the gradient times their distance; `weighted` if classes have weights."""
    rows, radius = problem.rows, 1.0 + float(np.linalg.norm(coef))
    norm = float(np.linalg.norm(problem.value_gradient(problem.pack(coef, intercept))[1]))
    rounding = 4 * gamma(rows) + 2 * float(score_rounding(rows, coef, intercept).max())
    slack = rounding * (1.0 + float(np.linalg.norm(rows.largest_entries))) * problem.total
    params = {
        "form": "b",
        "objective": "logistic" if problem.n_classes == 2 else "multinomial",
        "intercept": problem.intercept,
        "class_weight": problem.class_weight.tolist() if weighted else None,
        "radius": radius,
    }
    return Claim("suboptimality", outward((norm + slack) * radius), params=params)


def costs(block: Block, cost: np.ndarray) -> np.ndarray | float:
    """Return C_i of the rows; one number if all are equal."""
    if block.weight is None and (cost == cost[0]).all():
        return float(cost[0])
    return cost[block.y] if block.weight is None else cost[block.y] * block.weight


def total_cost(block: Block, cost: np.ndarray) -> float:
    return float(np.sum(np.broadcast_to(costs(block, cost), len(block.X))))


def class_counts(block: Block, n_classes: int) -> np.ndarray:
    """Return the number (weight) of rows of each class."""
    if block.weight is not None and not (block.weight >= 0).all():
        raise ValueError("row weights must be finite and >= 0.")
    return np.bincount(block.y, weights=block.weight, minlength=n_classes).astype(float)


def _compiled_arguments(block: Block, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return block.X, block.y, np.empty(0) if block.weight is None else block.weight, cost


def _binary(block: Block, step: int, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray) -> Sums:
    from assay.loops.logistic import loss_stretch

    value, slope, intercept_slope = loss_stretch(*_compiled_arguments(block, cost), coef[0], intercept[0], step)
    return value, slope[None, :], np.array([intercept_slope])


@in_stretches(_binary)
def binary(block: Block, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray) -> Sums:
    """Return sum C_i loss_i, its gradient in w (1, d) and in b (1,)."""
    return _binary(block, len(block.X), coef, intercept, cost)


def _part(block: Block, rows: slice) -> Block:
    return Block(block.X[rows], block.y[rows], None if block.weight is None else block.weight[rows], block.start)


def _binary_hessian(block: Block, step: int, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray) -> np.ndarray:
    from assay.loops.logistic import curvatures, hessian_stretch
    from assay.loops.moments import by_tiles, moments

    if by_tiles(block.X[:step]):
        width = block.X.shape[1] + 1
        return hessian_stretch(*_compiled_arguments(block, cost), coef[0], intercept[0], step)[:width, :width]
    if len(block.X) > step:  # each block by BLAS, and their sum as `hessian_stretch` has it
        middle = len(block.X) // 2
        halves = (_part(block, slice(None, middle)), _part(block, slice(middle, None)))
        first, second = (_binary_hessian(half, step, coef, intercept, cost) for half in halves)
        return first + second
    weight = curvatures(*_compiled_arguments(block, cost), coef[0], intercept[0])
    return moments(block.X, np.empty((len(weight), 0)), weight, np.zeros(block.X.shape[1]))


@in_stretches(_binary_hessian)
def binary_hessian(block: Block, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Return sum C_i p (1 - p) (x, 1)(x, 1)^T."""
    return _binary_hessian(block, len(block.X), coef, intercept, cost)


def binary_product(
    block: Block, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray, v: np.ndarray, v0: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the Hessian times (v, v0)."""
    from assay.loops.logistic import curvatures

    along = curvatures(*_compiled_arguments(block, cost), coef[0], intercept[0]) * (block.X @ v[0] + v0[0])
    return (along @ block.X)[None, :], np.array([along.sum()])


def second_moments(block: Block, cost: np.ndarray) -> np.ndarray:
    """Return sum C_i (x, 1)(x, 1)^T."""
    from assay.loops.moments import moments

    weight = np.broadcast_to(costs(block, cost), len(block.X)).astype(float)
    return moments(block.X, np.empty((len(weight), 0)), weight, np.zeros(block.X.shape[1]))


def squares(block: Block, cost: np.ndarray) -> np.ndarray:
    """Return sum C_i (x^2, 1): the diagonal of `second_moments`."""
    weight = np.broadcast_to(costs(block, cost), len(block.X))
    return np.append(weight @ block.X**2, weight.sum())


def probabilities(block: Block, coef: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return softmax(s) and logsumexp(s) - s_y; a class's entries are side by side, since there are few classes."""
    s = np.ascontiguousarray(coef @ block.X.T)
    s += intercept[:, None]
    s -= s.max(axis=0)
    own = s[block.y, np.arange(s.shape[1])]
    np.exp(s, out=s)
    total = s.sum(axis=0)
    s /= total
    return s.T, np.log(total) - own


def multinomial(block: Block, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray) -> Sums:
    """Return sum C_i loss_i, its gradient in W (K, d) and in b (K,)."""
    p, loss = probabilities(block, coef, intercept)
    C = np.broadcast_to(costs(block, cost), len(p))
    p[np.arange(len(p)), block.y] -= 1.0
    p *= C[:, None]
    return float(loss @ C), p.T @ block.X, p.sum(axis=0)


def multinomial_product(
    block: Block, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray, v: np.ndarray, v0: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the Hessian times (V, v0): rows C_i (p * u - p <p, u>), u = V x + v0."""
    p, _ = probabilities(block, coef, intercept)
    u = v @ block.X.T + v0[:, None]
    along = p.T * (u - (p.T * u).sum(axis=0)) * np.broadcast_to(costs(block, cost), len(p))
    return along @ block.X, along.sum(axis=1)


def multinomial_hessian(block: Block, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Return the Hessian, (K (d + 1), K (d + 1)): blocks sum C_i p_ik ((k == l) - p_il) (x, 1)(x, 1)^T."""
    p, _ = probabilities(block, coef, intercept)
    K, d = coef.shape
    a = np.column_stack([block.X, np.ones(len(p))])
    weighed = p.T * np.broadcast_to(costs(block, cost), len(p))
    hessian = np.zeros((K, d + 1, K, d + 1))
    for k in range(K):
        for j in range(k + 1, K):
            hessian[k, :, j] = (a.T * (-weighed[k] * p[:, j])) @ a
            hessian[j, :, k] = hessian[k, :, j]
    for k in range(K):  # the blocks of a row sum to zero, as probabilities to one
        hessian[k, :, k] = -hessian[k].sum(axis=1)
    return hessian.reshape(K * (d + 1), -1)


def errors(block: Block, coef: np.ndarray, intercept: np.ndarray) -> int:
    """Return the number of rows, of those with a weight, that are not strictly on the right side."""
    s = block.X @ coef.T + intercept
    if s.shape[1] == 1:
        wrong = s[:, 0] * (2.0 * block.y - 1.0) <= 0
    else:
        own = s[np.arange(len(s)), block.y]
        s[np.arange(len(s)), block.y] = -np.inf
        wrong = own <= s.max(axis=1)
    return int(np.count_nonzero(wrong if block.weight is None else wrong & (block.weight > 0)))


def largest_score(block: Block, coef: np.ndarray, intercept: np.ndarray) -> float:
    return float(np.abs(block.X @ coef.T + intercept).max())


def largest_norm(block: Block) -> float:
    """Return the largest |x|^2."""
    return float(np.einsum("ij,ij->i", block.X, block.X).max())


def thin_block(rows: Rows) -> Block | None:
    """Return all rows as one block whose X is sparse, or None if they are not thin."""
    X: Any = getattr(rows, "X", None)
    if not sp.issparse(X) or X.shape[1] < _COLUMNS or X.nnz > _FILLED * X.shape[0] * X.shape[1]:
        return None
    return Block(X, rows.y, rows.weight, 0)  # type: ignore[attr-defined]


def sparse_value_slopes(
    block: Block, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray, n_jobs: int | None = None
) -> Sums:
    """Return sum C_i loss_i, its gradient in W and in b."""
    if len(coef) > 1:
        return multinomial(block, coef, intercept, cost)
    C, sign = costs(block, cost), 2.0 * block.y - 1.0
    if _has_many(block.X):
        from assay.loops.logistic import loss_slopes

        value, slope, pull = _over_parts(loss_slopes, block.X, n_jobs, coef[0], intercept[0], sign, np.atleast_1d(C))
        return float(value), slope[None, :], np.array([pull])
    z = sign * (block.X @ coef[0] + intercept[0])
    slopes = -C * sign * expit(-z)
    return float(np.sum(C * np.logaddexp(0.0, -z))), (block.X.T @ slopes)[None, :], np.array([slopes.sum()])


def sparse_products(
    block: Block, coef: np.ndarray, intercept: np.ndarray, cost: np.ndarray, n_jobs: int | None = None
) -> Product:
    """Return a function that multiplies the Hessian with (V, v0)."""
    if len(coef) > 1:
        return partial(multinomial_product, block, coef, intercept, cost)
    s = block.X @ coef[0] + intercept[0]
    curvature, transposed = costs(block, cost) * expit(s) * expit(-s), block.X.T

    def product(v: np.ndarray, v0: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if _has_many(block.X):
            from assay.loops.logistic import curved

            result, total = _over_parts(curved, block.X, n_jobs, v[0], v0[0], curvature)
            return result[None, :], np.array([total])
        along = curvature * (block.X @ v[0] + v0[0])
        return (transposed @ along)[None, :], np.array([along.sum()])

    return product


def _has_many(X: Any) -> bool:
    """Tell whether loops over the entries on threads are faster than SciPy's products: each part has its own sums."""
    many = X.nnz >= max(_MANY, 2 * _PARTS * X.shape[1])
    return bool(many and X.format == "csr" and X.dtype == np.float64)


def _over_parts(loop: Any, X: Any, n_jobs: int | None, *arguments: Any) -> tuple[Any, ...]:
    """Return the sums of a loop over all rows, part by part."""
    cuts = [round(k * X.shape[0] / _PARTS) for k in range(_PARTS + 1)]
    columns, ends = (own.view(f"u{own.itemsize}") for own in (X.indices, X.indptr))  # none is asked for its sign
    result = thread_map(
        lambda k: loop(X.data, columns, ends, cuts[k], cuts[k + 1], *arguments), range(_PARTS), n_jobs=n_jobs
    )
    return tuple(sum(parts[1:], parts[0]) for parts in zip(*result))


def sparse_total_cost(block: Block, cost: np.ndarray) -> float:
    """Return the sum of all C_i."""
    return float(np.sum(np.broadcast_to(costs(block, cost), block.X.shape[0])))


def sparse_squares(block: Block, cost: np.ndarray) -> np.ndarray:
    """Return sum C_i (x^2, 1)."""
    weight = np.broadcast_to(costs(block, cost), block.X.shape[0])
    X: Any = block.X  # sparse
    return np.append(X.power(2).T @ weight, weight.sum())
