"""What classifiers and regressions by networks share: parameters, training, prediction."""

import math
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import fit_log, read_rows, require_finite
from assay.fitlog import FitLog
from assay.messages import named
from assay.neural_network._claims import CertifiedNetwork
from assay.neural_network._network import UNITS, NetworkParameters, Shape, sums_of_last
from assay.neural_network._training import (
    DIVERGED,
    Diverged,
    Found,
    Objective,
    Outcome,
    Penalty,
    Rule,
    Table,
    TrainingLoop,
    annealed,
    evolved,
    lbfgs,
)
from assay.optim.descent import multi_start
from assay.params import Choice, Count, Flag, Maybe, NameOr, Number, Positive, check, positive, refuse
from assay.scan import Rows

STOCHASTIC = ("sgd", "adam", "standard_bp", "accumulated_bp")
SOLVERS = ("lbfgs", *STOCHASTIC, "anneal", "genetic")
_BELOW_ONE = 1 - 1e-12
_FEWEST = 2  # rows on which an early stop can be judged


class Data(NamedTuple):
    """What a fit reads: rows to sum over, and for stochastic solvers the same as a table in memory."""

    rows: Rows
    outputs: int
    coded: bool  # y are positions of classes
    table: Table | None


class LearningRates:
    """The constraint of `learning_rate_init`: a number > 0, or for back-propagation solvers one for each layer."""

    def check(self, owner: Any, name: str) -> Any:
        value = getattr(owner, name)
        if np.ndim(value) == 0:
            return positive(owner, name, why="the size of a step")
        bp = owner.solver in ("standard_bp", "accumulated_bp")
        if bp and np.ndim(value) == 1 and all(isinstance(item, Real) and 0 < float(item) < math.inf for item in value):
            return value
        raise refuse(
            owner,
            f"{name} must be a finite number > 0, or with solver='standard_bp' or 'accumulated_bp' one for each layer; "
            f"got {value!r}.",
        )


class Network(NetworkParameters, CertifiedNetwork):
    """A feed-forward network: fit, partial_fit, and the scores of its output units."""

    figure = "network"
    constraints: ClassVar = {
        "activation": Choice(*UNITS),
        "solver": Choice(*SOLVERS),
        "learning_rate": Choice("constant", "invscaling", "adaptive"),
        "power_t": Number(low=0.0),
        "tol": Number(low=0.0),
        "max_iter": Count(),
        "max_fun": Count(),
        "n_restarts": Count(),
        "shuffle": Flag,
        "warm_start": Flag,
        "n_iter_no_change": Maybe(Count(why="epochs without progress; np.inf never stops for it"), math.inf),
        "early_stopping": Flag,
        "validation_fraction": Number(low=0.0, high=_BELOW_ONE, open_low=True),
        "verbose": Maybe(Count(low=0, why="True, False, or how much to print"), True, False),
        "alpha": Number(low=0.0, why="a negative penalty has no minimum"),
        "lam": Maybe(Number(low=0.0, high=1.0, open_low=True, why="the share of the mean error in the objective")),
        "learning_rate_init": LearningRates(),
        "momentum": Number(low=0.0, high=1.0),
        "nesterovs_momentum": Flag,
        "beta_1": Number(low=0.0, high=_BELOW_ONE, why="a mean that forgets"),
        "beta_2": Number(low=0.0, high=_BELOW_ONE, why="a mean that forgets"),
        "epsilon": Positive(why="it keeps a denominator from zero"),
        "batch_size": NameOr(Count(why="rows per update, or 'auto'"), "auto"),
    }

    n_iter_: int
    t_: int
    loss_: float
    loss_curve_: list[float]
    best_loss_: float | None
    best_validation_score_: float | None
    validation_scores_: list[float] | None
    moments_: np.ndarray
    updates_: int
    rate_: float
    waited_: int
    batch_rows_: int

    # What a task adds

    def _data(self, rows: Any, warm: bool, classes: np.ndarray | None) -> Data:
        raise NotImplementedError

    def _held_score(self, Z: np.ndarray, Y: np.ndarray, weight: np.ndarray | None) -> float:
        raise NotImplementedError

    # Parameters

    def _shape(self, n_features: int, n_outputs: int) -> Shape:
        given = self.hidden_layer_sizes
        sizes: list[Any] = (
            [given] if isinstance(given, Integral) else list(np.atleast_1d(given)) if np.size(given) else []
        )
        if not all(isinstance(size, Integral) and not isinstance(size, bool) and int(size) >= 1 for size in sizes):
            raise refuse(
                self, f"hidden_layer_sizes must be a number of units >= 1, or one for each hidden layer; got {given!r}."
            )
        rates = self.learning_rate_init
        if np.ndim(rates) == 1 and len(rates) != len(sizes) + 1:
            many = len(sizes) + 1
            raise refuse(self, f"learning_rate_init must hold a rate for each of {many} layers; got {rates!r}.")
        return Shape((n_features, *map(int, sizes), n_outputs), self.activation, self._output())

    def _penalty(self) -> Penalty:
        if self.lam is None:
            return Penalty(1.0, float(self.alpha), 0.0, 0.0)
        lam = float(self.lam)
        return Penalty(lam, 0.0, 2 * (1 - lam), 2 * (1 - lam))

    def _rule(self) -> Rule:
        rate = float(np.ravel(self.learning_rate_init)[0])
        if self.solver in ("standard_bp", "accumulated_bp"):
            several = np.ndim(self.learning_rate_init) == 1
            return Rule(False, rate, paces=tuple(item / rate for item in self.learning_rate_init) if several else ())
        inertia = (float(self.momentum), self.nesterovs_momentum, float(self.beta_1), float(self.beta_2))
        return Rule(self.solver == "adam", rate, *inertia, float(self.epsilon))

    def _batch(self, n: int) -> int:
        if self.solver in ("standard_bp", "accumulated_bp"):
            return 1 if self.solver == "standard_bp" else n
        if isinstance(self.batch_size, str):
            return min(200, n)
        size = self.batch_size
        if size > n:
            warnings.warn(
                f"{type(self).__name__}: batch_size={size} is more than the {n} rows; all are taken.", stacklevel=6
            )
        return min(size, n)

    # Training

    def _fit(
        self, given: tuple[Any, Any, Any], *, warm: bool, once: bool = False, classes: np.ndarray | None = None
    ) -> Any:
        """Fit to X, y, weights; `warm` starts at the weights that are there, `once` is one more epoch; `classes` are
        all that will come, if they are known."""
        check(self)
        rows = read_rows(self, *given, reset=not warm, multi_output=True, dtype=[np.float64, np.float32])
        require_finite(rows, self)
        data = self._data(rows, warm, classes)
        shape = self._shape(rows.n_features, data.outputs)
        random = check_random_state(self.random_state)
        dtype = np.float64 if data.table is None else data.table.Y.dtype
        if warm:
            self._check_warm(shape)
            first = self.network_weights_.astype(dtype)
        else:
            first = shape.start(random, dtype)
            self._forget()
        runs = 1 if warm else self.n_restarts
        with fit_log(self, self.max_iter * runs, *given) as log:
            learn = self._learner(data, shape, random, log, once)
            outcome = self._best_of(learn, shape, first, random, runs, log)
        for name, value in outcome.fitted.items():
            setattr(self, name, value)
        for name, value in _shown(shape, outcome.theta).items():
            setattr(self, name, value)
        if not np.isfinite(outcome.theta).all():
            raise refuse(self, DIVERGED)
        return self

    def _best_of(
        self,
        learn: Callable[[np.ndarray], Outcome],
        shape: Shape,
        first: np.ndarray,
        random: np.random.RandomState,
        runs: int,
        log: FitLog,
    ) -> Outcome:
        """Return the outcome of the lowest value among runs from different starts; runs that diverge do not count."""
        if runs == 1:
            return learn(first)
        outcomes: list[Outcome] = []

        def run(start: np.ndarray) -> tuple[np.ndarray, float]:
            if outcomes and log.stopped:
                return start, math.inf
            try:
                outcome = learn(start.astype(first.dtype))
            except Diverged:
                return start, math.inf
            if not np.isfinite(outcome.theta).all() or math.isnan(outcome.value):
                return start, math.inf
            outcomes.append(outcome)
            return outcome.theta, outcome.value

        starts = (first if k == 0 else shape.start(random, first.dtype) for k in range(runs))
        result = multi_start(run, starts)
        if not outcomes:
            raise Diverged(refuse(self, f"{DIVERGED} (all {runs} starts)"))
        outcome = min(outcomes, key=lambda item: item.value)
        outcome.fitted["restarts_"] = result.history
        return outcome

    def _learner(
        self, data: Data, shape: Shape, random: np.random.RandomState, log: FitLog, once: bool
    ) -> Callable[[np.ndarray], Outcome]:
        if self.solver not in STOCHASTIC:
            return lambda theta: self._minimise(data, shape, theta, random, log)
        assert data.table is not None
        table, held = self._parted(data.table, random)
        return lambda theta: self._descend(table, held, shape, theta.copy(), random, log, once)

    def _minimise(
        self, data: Data, shape: Shape, theta: np.ndarray, random: np.random.RandomState, log: FitLog
    ) -> Outcome:
        """Minimise the objective over all rows at once."""
        objective = Objective(data.rows, shape, self._penalty(), data.coded)
        curve: list[float] = []

        def callback(theta: np.ndarray, value: float, norm: float) -> bool:
            curve.append(value)
            if self.verbose:
                print(f"Iteration {len(curve)}, objective = {value:.8f}")
            return log.step(value, norm, **(_shown(shape, theta) if log.watched else {}))

        theta = theta.astype(np.float64)
        if self.solver == "lbfgs":
            solution = lbfgs(objective, theta, self.tol, self.max_iter, self.max_fun, callback)
            if not solution.converged and not solution.interrupted and not log.stopped:
                self._warn("warn.lbfgs", iterations=solution.iterations, tol=self.tol)
        else:
            search = annealed if self.solver == "anneal" else evolved
            solution = search(objective, theta, self.max_iter, int(random.randint(2**31)), callback)
        if solution.interrupted:
            log.stopped = True
            self._warn("warn.interrupted-lbfgs", iterations=solution.iterations)
        if not log.history:  # converged where it started, or interrupted before the first iteration
            callback(solution.theta, solution.value, objective.norm)
        return Outcome(solution.theta, solution.value, self._found(solution, objective, curve, data.rows.n_rows))

    def _found(self, result: Found, objective: Objective, curve: list[float], n: int) -> dict[str, Any]:
        reported = result.value
        if objective.shape.output == "identity":  # scikit-learn reports the mean over targets
            rest = objective.penalty.of(result.theta, objective.shape.n_weights, objective.mass)
            reported = (result.value - rest) / objective.shape.sizes[-1] + rest
        return {
            "n_iter_": result.iterations,
            "loss_": float(reported),
            "loss_curve_": curve,
            "best_loss_": float(reported),
            "t_": result.iterations * n,
            "batch_rows_": 0,
        }

    def _table(self, rows: Any, read: Callable[[], Any]) -> Table | None:
        """Return rows and the targets that `read` returns as arrays of one floating type, if the solver visits them one
        by one."""
        if self.solver not in STOCHASTIC:
            return None
        if not hasattr(rows, "X"):
            raise refuse(
                self, f'solver="{self.solver}" visits rows in random order: they must be in memory, or use "lbfgs".'
            )
        X = np.ascontiguousarray(rows.X) if isinstance(rows.X, np.ndarray) else rows.X
        weight = np.empty(0) if rows.weight is None else rows.weight
        return Table(X, np.array(read(), dtype=X.dtype, order="C"), weight.astype(X.dtype))

    def _parted(self, table: Table, random: np.random.RandomState) -> tuple[Table, Table | None]:
        """Return the rows that updates visit, and those kept out to judge progress by."""
        if not self.early_stopping:
            return table, None
        single = hasattr(self, "classes_") and table.Y.shape[1] == 1
        try:
            kept, held = train_test_split(
                np.arange(len(table.Y)),
                random_state=random,
                test_size=self.validation_fraction,
                stratify=table.Y > 0 if single else None,
            )
        except ValueError as error:
            raise refuse(self, f"early_stopping cannot keep out rows to judge by: {error}") from None
        if len(held) < _FEWEST:
            raise refuse(
                self,
                f"The validation set is too small: early_stopping keeps out {len(held)} row to judge by; raise "
                "validation_fraction.",
            )
        return table.take(kept), table.take(held)

    def _descend(
        self,
        table: Table,
        held: Table | None,
        shape: Shape,
        theta: np.ndarray,
        random: np.random.RandomState,
        log: FitLog,
        once: bool,
    ) -> Outcome:
        """Run epochs until progress ends. With rows held out the weights that were best on them are kept; Ctrl-C keeps
        those of the epoch with the lowest loss."""
        loop = TrainingLoop(self, table, held, shape, theta, once)
        try:
            with loop.engine.blas():
                status = self._run_epochs(loop, random, log, 1 if once else self.max_iter)
        except KeyboardInterrupt:
            status, log.stopped = "interrupted", True
            loop.theta = loop.lowest
        if not log.history:
            log.step(math.inf if not loop.curve else loop.curve[-1], 0.0)
        if status == "interrupted":
            self._warn("warn.interrupted-epochs", epochs=loop.epochs)
        elif status == "max_iter" and not once:
            self._warn("warn.falling", tol=self.tol, epochs=loop.epochs)
        return loop.outcome()

    def _run_epochs(self, loop: TrainingLoop, random: np.random.RandomState, log: FitLog, epochs: int) -> str:
        """Run epochs, each in a new order drawn as scikit-learn draws it; return why they ended."""
        order = np.arange(loop.rows)
        for _ in range(epochs):
            order = order[random.permutation(len(order))] if self.shuffle else order
            loss, norm = loop.epoch(order)
            if loop.diverged:
                self._warn("warn.diverged")
                return "diverged"
            stopped = log.step(loss, norm, **(_shown(loop.shape, loop.kept) if log.watched else {}))
            if loop.over():
                return "converged"
            if stopped:
                return "stopped"
        return "max_iter"

    def _warn(self, code: str, **values: Any) -> None:
        warnings.warn(named(self, code, **values), ConvergenceWarning, stacklevel=8)

    def _forget(self) -> None:
        """Drop what past fits left behind for the next ones."""
        for name in ("moments_", "updates_", "rate_", "waited_", "restarts_", "loss_curve_", "t_"):
            self.__dict__.pop(name, None)
        self.best_loss_ = None if self.early_stopping else math.inf
        self.validation_scores_ = [] if self.early_stopping else None
        self.best_validation_score_ = -math.inf if self.early_stopping else None

    def _check_warm(self, shape: Shape) -> None:
        have = tuple(self.network_sizes_.tolist())
        if have != shape.sizes:
            raise refuse(
                self, f"the weights that are there have layers {have}, these rows and sizes ask for {shape.sizes}."
            )

    # Prediction

    def _scores(self, X: Any) -> np.ndarray:
        """Return what the output units receive, (n, outputs), in double precision also of weights in single: what is
        predicted is what a certificate speaks of."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64, accept_sparse="csr")
        return sums_of_last(X, self.coefs_, self.intercepts_, self.activation)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


learns_by_epochs = available_if(lambda self: self.solver in STOCHASTIC)
"""`partial_fit` is one more epoch, which other solvers do not have."""


def _shown(shape: Shape, theta: np.ndarray) -> dict[str, Any]:
    """Return the attributes that make a model usable as it stands."""
    return {"network_sizes_": np.array(shape.sizes, dtype=np.int64), "network_weights_": theta.copy()}
