"""What the classifier and the regressor by stochastic gradients share: parameters, epochs, certificate.

    minimise over w, b    P(w, b) = alpha/2 |w|^2 + 1/n sum_i s_i c(y_i) loss(y_i, <w, x_i> + b)

s are the row weights and c the class weights, one if there are none. A row of weight two pulls twice as far when it is
visited; n counts rows, not weights, so that doubling every weight halves the penalty's share, as in scikit-learn.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.utils import check_random_state

from assay.base import fit_log, require_finite
from assay.claims.claim import Claim, NotApplicable
from assay.fitlog import FitLog
from assay.linear_model._base import LinearModel, Objective, Packed, elastic, packed
from assay.losses import named
from assay.messages import Message
from assay.optim.descent import RULES, SCHEDULES, Rule, Schedule
from assay.optim.duality import PenalisedProblem, gap_claims
from assay.params import Choice, Count, Flag, Maybe, Number, Positive, refuse
from assay.scan import Rows

LOSSES = (
    "squared_error",
    "absolute_error",
    "epsilon_insensitive",
    "log_loss",
    "hinge",
    "squared_hinge",
    "exponential",
    "sigmoid_squared",
    "huber",
    "squared_epsilon_insensitive",
    "perceptron",
    "modified_huber",
)
_MOST = 2**31 - 1  # of seeds
SPARSE_INTERCEPT = 0.01  # share of the rate at which b moves by sparse rows: each row moves it, few move a coefficient
_LEAST_RATE = 1e-6  # at which "adaptive" ends
_STEEP = {"squared_error": 1.0, "squared_hinge": 2.0, "exponential": 8.0, "modified_huber": 2.0}
"""Losses whose slope grows with the score, and a bound of their curvature near zero."""


_AGGRESSIVE = ("pa1", "pa2")
_FIRST_STEP = 0.01  # the longest passive-aggressive step, if eta0 is not given


class Settings(NamedTuple):
    """The parameters of a fit, checked."""

    alpha: float  # of the L2 penalty
    l1: float
    average: int  # the update from which iterates are averaged; 0 for none
    rule: Rule
    schedule: Schedule
    batch: int
    epochs: int
    tol: float  # minus infinity: every epoch is progress
    patience: int
    adaptive: bool
    shuffle: bool
    held_share: float  # 0 without early stopping
    schedule_code: int  # of compiled loops


@dataclass
class Work:
    """What the epochs of one fit read and write: row k of the arrays belongs to hyperplane k."""

    rows: Any
    table: Packed
    settings: Settings
    squares: np.ndarray  # |x|^2 of each row; empty if nothing needs them
    held: np.ndarray  # (n,) bool: rows that updates do not visit
    seeds: list[int]  # of the orders of each hyperplane
    log: FitLog
    coef: np.ndarray  # (K, d)
    intercept: np.ndarray  # (K,)
    state: np.ndarray  # (K, 2, d + 1): moments of the rule, or averages and what the L1 penalty has pulled
    made: int  # updates of each hyperplane before this fit


class Run(NamedTuple):
    """How the epochs of one hyperplane went."""

    epochs: int
    updates: int
    converged: bool


@dataclass(eq=False, repr=False)
class DescentParameters:
    """The parameters that classification and regression by descent share."""

    loss: str
    _: KW_ONLY
    penalty: str | None = "l2"
    alpha: float = 1e-4
    l1_ratio: float = 0.15
    fit_intercept: bool = True
    optimizer: str = "plain"
    momentum: float = 0.9
    batch_size: int = 1
    learning_rate: str = "constant"
    eta0: float | None = None
    power_t: float = 0.25
    decay: float = 0.0
    max_iter: int = 1000
    tol: float | None = 1e-3
    n_iter_no_change: int = 5
    shuffle: bool = True
    early_stopping: bool = False
    validation_fraction: float = 0.1
    warm_start: bool = False
    average: bool | int = False
    verbose: int = 0
    random_state: Any = None
    n_jobs: int | None = None


class Descent(Objective, DescentParameters, LinearModel):
    """Epochs over rows in memory, and the duality gap of the problem that they minimise."""

    constraints: ClassVar = {
        "penalty": Choice("l2", "l1", "elasticnet", None),
        "l1_ratio": Maybe(Number(low=0.0, high=1.0, why="it is the share of the L1 penalty")),
        "power_t": Number(),
        "average": Maybe(Count(low=0), True, False),
        "alpha": Number(low=0.0, why="a negative penalty has no minimum"),
        "fit_intercept": Flag,
        "optimizer": Choice(*RULES),
        "momentum": Number(low=0.0, high=1 - 1e-12),
        "batch_size": Count(),
        "learning_rate": Choice(*SCHEDULES, "adaptive", *_AGGRESSIVE),
        "eta0": Maybe(Positive()),
        "decay": Number(low=0.0),
        "max_iter": Count(),
        "tol": Maybe(Number(low=0.0)),
        "n_iter_no_change": Count(),
        "shuffle": Flag,
        "early_stopping": Flag,
        "validation_fraction": Number(low=0.0, high=1 - 1e-12, open_low=True),
        "warm_start": Flag,
    }

    epsilon: float = 0.0
    eta0_: float
    moments_: np.ndarray
    n_iter_: int
    t_: int

    @property
    def unpenalised(self) -> bool:
        """True if the mean loss alone is minimised."""
        return self.penalty is None or self.alpha == 0

    @property
    def _share(self) -> float:
        """The share of the L1 penalty."""
        if self.penalty == "elasticnet" and self.l1_ratio is None:
            raise refuse(self, "l1_ratio must be set when penalty is 'elasticnet'")
        return {"l1": 1.0, "elasticnet": float(self.l1_ratio or 0.0)}.get(str(self.penalty), 0.0)

    def _penalty(self, W: np.ndarray, b: np.ndarray, n: int) -> float:
        """Return the penalty, as `Objective` asks for it."""
        strength = 0.0 if self.unpenalised else float(self.alpha)
        return strength * elastic(W, self._share, 1.0 - self._share)

    def _settings(self, squares: np.ndarray, heaviest: float, rate: float | None) -> Settings:
        """Return how to descend; `squares` are the |x|^2 of the rows, `heaviest` is the largest weight of a row, `rate`
        the first rate if it is known."""
        whole = 0.0 if self.penalty is None else float(self.alpha)
        alpha = whole * (1.0 - self._share)
        eta = rate if self.eta0 is None else float(self.eta0)
        if eta is not None and eta * alpha >= 1 and (self.optimizer != "plain" or self.batch_size > 1):
            raise refuse(
                self,
                f"eta0 * alpha must be below 1, or a step would turn the coefficients round; got {eta * alpha:g}.",
            )
        code = self._schedule_code()
        if code >= len(SCHEDULES):
            eta = _FIRST_STEP if eta is None else eta
        elif self.learning_rate == "optimal" or eta is None:
            eta = _first_rate(self.loss, whole, heaviest * (1.0 + float(squares.max())))
        speeds = {"optimal": float(self.alpha), "invscaling": max(float(self.power_t), 0.0)}
        decay = speeds.get(self.learning_rate, float(self.decay))
        adaptive = self.learning_rate == "adaptive"
        averaged = bool(self.average) or self._share > 0
        if averaged and (self.optimizer != "plain" or self.batch_size > 1):
            raise refuse(self, "averages and an L1 penalty go with optimizer='plain' and batch_size=1.")
        return Settings(
            alpha,
            whole * self._share,
            int(self.average),
            Rule(self.optimizer, float(self.momentum)),
            Schedule(self.learning_rate if self.learning_rate in SCHEDULES else "constant", eta, decay),
            self.batch_size,
            self.max_iter,
            -np.inf if self.tol is None else float(self.tol),
            self.n_iter_no_change,
            adaptive,
            self.shuffle,
            float(self.validation_fraction) if self.early_stopping else 0.0,
            code,
        )

    def _schedule_code(self) -> int:
        """Return the number by which compiled loops know the schedule; refuse passive-aggressive steps for other losses
        than theirs."""
        if self.learning_rate not in _AGGRESSIVE:
            return 0 if self.learning_rate == "adaptive" else SCHEDULES.index(self.learning_rate)
        own = "hinge" if is_classifier(self) else "epsilon_insensitive"
        if self.loss != own:
            raise refuse(self, f"Learning rate '{self.learning_rate}' only works with loss '{own}'.")
        if self.optimizer != "plain" or self.batch_size > 1:
            raise refuse(self, f"learning_rate={self.learning_rate!r} goes with optimizer='plain' and batch_size=1.")
        return len(SCHEDULES) + _AGGRESSIVE.index(self.learning_rate)

    def _descend_all(
        self,
        rows: Any,
        targets: list[tuple[np.ndarray, np.ndarray]],
        given: tuple,
        *,
        warm: bool,
        once: bool,
        start: tuple[Any, Any] = (None, None),
    ) -> None:
        """Learn a hyperplane for each pair of targets and row weights (empty: ones) and keep what was found.

        `warm` starts at the coefficients that are there, `start` at those given. `once` is one more epoch: rate and
        moments go on from there.
        """
        if self.power_t < 0:
            warnings.warn(
                "Negative values for `power_t` are deprecated: the rate would grow with each update.",
                FutureWarning,
                stacklevel=4,
            )
        from assay.linear_model._sgd_loops import row_squares

        further = warm and once
        heaviest = max(float(np.max(costs, initial=1.0)) for _, costs in targets)
        table = packed(rows.X)
        squares = row_squares(table.starts, table.values)
        if not np.isfinite(squares).all():
            raise self._overflow(1)
        settings = self._settings(squares, heaviest, self.eta0_ if further else None)
        settings = settings._replace(epochs=1, patience=2) if once else settings
        shape = (len(targets), rows.n_features)
        with fit_log(self, settings.epochs * len(targets), *given) as log:
            work = Work(
                rows,
                table,
                settings,
                np.empty(0) if self.tol is None and settings.schedule_code < len(SCHEDULES) else squares,
                *self._drawn(rows, len(targets)),
                log,
                *self._first(shape, start, warm=warm),
                self.moments_ if further else np.zeros((shape[0], 2, shape[1] + 1)),
                self.t_ if further else 0,
            )
            runs = [self._descend(work, k, *target) for k, target in enumerate(targets)]
        self.coef_, self.intercept_, self.moments_ = work.coef, work.intercept, work.state
        self.eta0_ = settings.schedule.eta
        self.n_iter_ = max(run.epochs for run in runs)
        self.t_ = work.made + max(run.updates for run in runs)
        made = self.t_ - 1 if work.made == 0 else self.t_
        if settings.average:
            self._standard_coef, self._standard_intercept = work.coef, work.intercept
            self._average_coef, self._average_intercept = work.state[:, 0, :-1].copy(), work.state[:, 0, -1].copy()
            if settings.average <= made:
                self.coef_, self.intercept_ = self._average_coef, self._average_intercept
        if not once and self.tol is not None and not all(run.converged for run in runs):
            warnings.warn(
                f"{type(self).__name__}: Maximum number of iteration reached before convergence. Consider increasing "
                f"max_iter to improve the fit. The loss still fell by more than tol after {self.n_iter_} epochs.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _first(self, shape: tuple[int, int], start: tuple[Any, Any], *, warm: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients (K, d) and intercepts (K,) to start from."""
        coef: Any = self.coef_ if warm else np.zeros(shape)
        intercept: Any = self.intercept_ if warm else np.zeros(shape[0])
        if warm and self.average and hasattr(self, "_standard_coef"):  # averages go on from where the iterates are
            coef, intercept = self._standard_coef, self._standard_intercept
        coef = coef.toarray() if sp.issparse(coef) else coef
        for name, given, size in (("coef_init", start[0], shape), ("intercept_init", start[1], shape[:1])):
            if given is not None and np.size(given) != np.prod(size):
                raise refuse(self, f"Provided {name} does not match dataset: {np.shape(given)} in place of {size}.")
        coef, intercept = (new if new is not None else old for new, old in zip(start, (coef, intercept), strict=True))
        return (
            np.array(coef, dtype=np.float64).reshape(shape),
            np.array(intercept, dtype=np.float64).reshape(shape[0]),
        )

    def _overflow(self, epoch: int) -> ValueError:
        return refuse(
            self,
            f"Floating-point under-/overflow occurred at epoch #{epoch}: the coefficients grew beyond all bounds. "
            "Lower eta0. Scaling input data with StandardScaler or MinMaxScaler might help.",
        )

    def _drawn(self, rows: Any, hyperplanes: int) -> tuple[np.ndarray, list[int]]:
        """Return which rows are kept out, and the seed of the order of each hyperplane: drawn as scikit-learn draws
        them, so that a seed is the same descent."""
        random = check_random_state(self.random_state)
        classifier = is_classifier(self)
        if classifier and hyperplanes == 1:
            random.randint(1, _MOST)
            held = self._held_out(rows)
            return held, [int(random.randint(_MOST))]
        held = self._held_out(rows)
        if not classifier:
            return held, [int(random.randint(_MOST))]
        parts = [np.random.RandomState(seed) for seed in random.randint(_MOST, size=hyperplanes)]
        return held, [int((part.randint(1, _MOST), part.randint(_MOST))[1]) for part in parts]

    def _held_out(self, rows: Any) -> np.ndarray:
        """Return which rows are kept out of the updates: none without early stopping, else shares of each class."""
        held = np.zeros(rows.n_rows, dtype=bool)
        if not self.early_stopping:
            return held
        kind = StratifiedShuffleSplit if is_classifier(self) else ShuffleSplit
        splitter = kind(test_size=self.validation_fraction, random_state=self.random_state)
        if int(np.ceil(self.validation_fraction * rows.n_rows)) >= rows.n_rows:
            raise refuse(
                self,
                f"validation_fraction={self.validation_fraction:g} of {rows.n_rows} rows leaves none for training; "
                "change validation_fraction or early_stopping.",
            )
        held[next(splitter.split(np.zeros((rows.n_rows, 1)), rows.y))[1]] = True
        if rows.weight is not None and not rows.weight[held].any():
            raise refuse(
                self, "The sample weights for validation set are all zero, consider using a different random state."
            )
        return held

    def _descend(self, work: Work, k: int, y: np.ndarray, costs: np.ndarray) -> Run:
        """Run epochs on targets y and row weights `costs` (empty: ones) until the loss stops falling; with early
        stopping, keep the best on rows held out. Writes row k of the arrays of `work`."""
        settings, log = work.settings, work.log
        order, held = np.arange(work.rows.n_rows), np.flatnonzero(work.held)
        w, b = work.coef[k].copy(), work.intercept[k : k + 1].copy()
        best, lowest, waited, epoch = (w.copy(), float(b[0])), np.inf, 0, 0
        steps, eta = -(-(len(order) - len(held)) // settings.batch), settings.schedule.eta
        try:
            while epoch < settings.epochs and waited < settings.patience and not log.stopped:
                loss, plain, penalty = self._epoch(work, k, y, costs, order, work.made + epoch * steps, w, b, eta)
                epoch += 1
                if not np.isfinite(loss) or not np.isfinite(w).all():
                    raise self._overflow(epoch)
                judged = plain + penalty
                if len(held):
                    judged = self._mean_loss(work.rows.X[held], y, costs, held, w, b[0])
                waited = 0 if judged < lowest - settings.tol or settings.tol < 0 else waited + 1
                if settings.adaptive and waited >= settings.patience and eta > _LEAST_RATE:
                    eta, waited = eta / 5, 0
                if judged < lowest:
                    lowest, best = judged, (w.copy(), float(b[0]))
                kept = settings.held_share and settings.tol >= 0  # without tol nothing is judged
                work.coef[k], work.intercept[k] = best if kept else (w, b[0])
                objective = loss + 0.5 * settings.alpha * float(w @ w) + settings.l1 * float(np.abs(w).sum())
                log.step(objective, judged, coef_=work.coef.copy(), intercept_=work.intercept.copy())
        except KeyboardInterrupt:
            log.stopped = True
            warnings.warn(
                f"{type(self).__name__}: interrupted in epoch {epoch + 1}; the model is the last one.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return Run(epoch, epoch * steps, waited >= settings.patience)

    def _epoch(
        self, work: Work, k: int, y: np.ndarray, costs: np.ndarray, order: np.ndarray, t: int, w: Any, b: Any, eta: Any
    ) -> tuple[float, float, float]:
        """Visit the rows of `order` that are not kept out once, after t updates; return the mean loss met, that without
        weights, and the mean penalty. Shuffles `order`, writes w, b."""
        from assay.linear_model import _sgd_loops as loop
        from assay.linear_model._row_loops import shuffle
        from assay.linear_model._sgd_loops import Objective, Rates, UpdateRule

        settings, table = work.settings, work.table
        if settings.shuffle:
            shuffle(order, work.seeds[k])
        visited = order[~work.held[order]] if settings.held_share else order
        rule, schedule = settings.rule, settings.schedule
        single = rule.name == "plain" and settings.batch == 1
        share = SPARSE_INTERCEPT if single and table.columns.size else 1.0
        objective = Objective(
            named(self.loss).code, float(self.epsilon), float(settings.alpha), share if self.fit_intercept else 0.0
        )
        data = (y, costs, work.squares, visited)
        state = (Rates(settings.schedule_code, float(eta), float(schedule.decay)), t, w, b)
        if settings.l1 or 0 < settings.average <= t + len(visited):
            averaging = loop.Averaging(float(settings.l1), int(settings.average))
            return loop.averaged_epoch(*table, *data, objective, averaging, *state, *work.state[k])
        if not single:
            update = UpdateRule(rule.code, rule.inertia, rule.memory, rule.eps)
            return loop.batch_epoch(*table, y, costs, visited, settings.batch, objective, update, *state, work.state[k])
        if table.columns.size:
            return loop.sparse_epoch(*table, *data, objective, *state)
        return loop.dense_epoch(table.values.reshape(-1, len(w)), objective, *data, *state)

    def _mean_loss(self, X: Any, y: np.ndarray, costs: np.ndarray, rows: np.ndarray, w: np.ndarray, b: float) -> float:
        losses = named(self.loss, float(self.epsilon)).value(y[rows], X @ w + b)
        return float(np.mean(losses if not costs.size else costs[rows] * losses))

    def _gap_facts(
        self, rows: Rows, class_weight: tuple[float, float] | None = None
    ) -> Iterator[Claim | NotApplicable]:
        if not named(self.loss).convex:
            reason = Message("why.sigmoid-loss")
        elif self.unpenalised:
            reason = Message("why.unpenalised")
        elif np.ndim(self.coef_) == 2 and len(self.coef_) > 1:
            reason = Message("why.one-against-rest")
        elif self.loss == "perceptron" or named(self.loss, float(self.epsilon)).dual is None:
            reason = Message("why.loss-dual", loss=self.loss)
        else:
            l1, l2 = (float(self.alpha) * share for share in (self._share, 1 - self._share))
            problem = PenalisedProblem(self.loss, l2, 1.0 / rows.n_rows, bool(self.fit_intercept), l1 or None)
            problem = problem._replace(epsilon=float(self.epsilon), class_weight=class_weight)
            yield from gap_claims(rows, self.coef_, self.intercept_, problem)
            return
        yield NotApplicable("duality-gap", reason)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def in_memory(model: Any, rows: Rows) -> Any:
    """Return the rows, finite and in memory, or refuse them."""
    require_finite(rows, model)
    if not hasattr(rows, "X"):
        raise refuse(model, "rows are visited in random order, so they must be in memory.")
    return rows


def _first_rate(loss: str, alpha: float, steepness: float) -> float:
    """Return a first learning rate: a typical weight for losses of bounded slope (Bottou), else half of what
    curvature allows; `steepness` is the largest s (1 + |x|^2)."""
    rate = float(np.sqrt(1.0 / np.sqrt(max(alpha, 1e-9))))
    if loss in _STEEP or not named(loss).labels:
        rate = min(rate, 0.5 / (_STEEP.get(loss, 1.0) * steepness))
    return min(rate, 0.99 / alpha) if alpha > 0 else rate


PARAMETERS = """
    penalty : "l2", "l1", "elasticnet" or None
        "l2" adds alpha/2 |w|^2, "l1" alpha |w|_1, "elasticnet" both in shares; None minimises the mean loss alone.
    alpha : float >= 0
        Weight of the penalty on w.
    l1_ratio : float in [0, 1]
        Share of the L1 penalty in "elasticnet".
    fit_intercept : bool
        Whether to fit b, which is not penalised.
    optimizer : "plain", "momentum", "rms-mean", "adagrad", "rmsprop", "adam" or "adam-uncorrected"
        How gradients become moves; see `assay.optim.descent`.
    momentum : float in [0, 1)
        Inertia of "momentum" and of the Adam rules.
    batch_size : int
        Rows per update; 1 is stochastic gradient descent.
    learning_rate : "optimal", "constant", "invscaling", "adaptive", "inverse", "sqrt", "pa1" or "pa2"
        Schedule of the rate; "optimal" is 1 / (alpha t + 1 / eta), eta the one that is chosen without eta0, meant for
        "plain" with alpha > 0; "invscaling" eta0 / t^power_t; "adaptive" divides the rate by 5 whenever the fit would
        end, until it is 1e-6. "pa1" and "pa2" are passive-aggressive, for "hinge" and "epsilon_insensitive": a step
        makes the loss of its row zero, but is at most eta0 long ("pa1"), or is damped by 1 / (2 eta0) ("pa2").
    eta0 : float > 0 or None
        First learning rate; None chooses one: alpha^(-1/4) for losses of labels with bounded slopes, else 1
        / (2 c max s (1 + |x|^2)), c the curvature and s the weight of a row; 0.01 for "pa1" and "pa2".
    power_t, decay : float, float >= 0
        Speed of "invscaling"; of "inverse" and "sqrt".
    max_iter : int
        Epochs allowed.
    tol : float >= 0 or None
        An epoch counts as progress when the mean loss met on its way (weights of rows left out) and the penalty fall by
        more than tol below the lowest so far; None runs max_iter epochs.
    n_iter_no_change : int
        Epochs without progress after which the fit ends.
    shuffle : bool
        Visit the rows in a new random order each epoch; otherwise in the order of the data.
    early_stopping : bool
        Judge progress on rows kept out of the updates, and keep the coefficients that were best there.
    validation_fraction : float in (0, 1)
        Share of rows kept out.
    warm_start : bool
        Start at the coefficients of the last fit instead of zero; the rate starts anew.
    average : bool or int
        Whether the coefficients kept are the mean of those after each update, from the first one (True) or from that
        update on.
    verbose : int
        Accepted; `history_` and callbacks tell how the fit goes.
    random_state : int, RandomState or None
        Seed of the orders and of the rows kept out.
    n_jobs : int or None
        Threads for certifying; the updates themselves are sequential.

    Attributes
    ----------
    coef_, intercept_
    n_iter_ : int
        Epochs run (the most over the classes).
    t_ : int
        Updates made (the most over the classes), over all calls of `partial_fit`.
    eta0_ : float
        First learning rate.
    moments_ : (hyperplanes, 2, n_features + 1)
        What the optimizer remembers of past gradients, for `partial_fit`.
    history_
        Per epoch the objective with the mean loss met on the way, and the loss that progress was judged by.
"""
