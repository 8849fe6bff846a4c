"""Linear models by stochastic and mini-batch gradient descent, for every loss of `assay.optim.losses`.

    minimise over w, b    P(w, b) = alpha/2 |w|^2 + 1/n sum_i loss(y_i, <w, x_i> + b)

Claims: the duality gap of the problem at the model (all convex losses, alpha > 0), and |w - w*| <= sqrt(2
gap / alpha).
Method: updates from one row, or from batches, drawn in a new order each epoch; moves by one of the rules of
        `assay.optim.descent`. A fit ends when the mean loss met in an epoch stops falling, or by early
        stopping on rows
        that were kept out.
"""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import column_or_1d

from assay.base import fit_log, label_classes, read_rows, require_finite
from assay.card import Card
from assay.certificate.claim import Claim, NotApplicable
from assay.fitlog import FitLog
from assay.linear_model._base import LinearClassifier, LinearModel, LinearRegressor
from assay.linear_model._csr import packed
from assay.linear_model._logistic_sums import largest_norm
from assay.optim.descent import RULES, SCHEDULES, Rule, Schedule
from assay.optim.gap import DUALS, Problem, gap_claims
from assay.optim.losses import LOSSES, NAMES
from assay.params import choice, count, flag, number, positive, refuse
from assay.scan import Rows
from assay.theory.spaces import Linear, LinearFunctions


class _Run(NamedTuple):
    w: np.ndarray
    b: float
    epochs: int
    updates: int
    converged: bool


class _Descent(LinearModel):
    """What the classifier and the regressor share: parameters, epochs, certificate."""

    loss: str
    alpha: float
    epsilon: float = 0.0

    def _settings(self, longest: float) -> dict[str, Any]:
        """Check the parameters; return what an epoch needs. `longest` is the largest |x|^2."""
        alpha = number(self, "alpha", low=0.0, why="a negative penalty has no minimum")
        eta = None if self.eta0 is None else positive(self, "eta0")
        if eta is not None and eta * alpha >= 1:
            raise refuse(
                self,
                "eta0 * alpha must be below 1, or a step would turn the coefficients round; got "
                f"{eta * alpha:g}.",
            )
        if eta is None:
            eta = _first_rate(self.loss, alpha, longest)
        name = choice(self, "learning_rate", SCHEDULES)
        decay = number(self, "decay", low=0.0) if name != "strong" else alpha
        rule = Rule(choice(self, "optimizer", RULES), number(self, "momentum", low=0.0, high=1 - 1e-12))
        return {
            "alpha": alpha,
            "rule": rule,
            "schedule": Schedule(name, eta, decay),
            "batch": count(self, "batch_size"),
            "epochs": count(self, "max_iter"),
            "tol": number(self, "tol", low=0.0),
            "patience": count(self, "n_iter_no_change"),
            "early": flag(self, "early_stopping"),
            "kept": number(self, "validation_fraction", low=0.0, high=1 - 1e-12, open_low=True),
        }

    def _descend(
        self,
        rows: Any,
        y: np.ndarray,
        settings: dict[str, Any],
        random: Any,
        log: FitLog,
        coef: np.ndarray,
        intercept: np.ndarray,
        k: int = 0,
    ) -> _Run:
        """Run epochs on targets y until the loss stops falling; with early stopping, keep the best on rows
        held out. Row k of `coef` and `intercept` follows the model, for callbacks."""
        from assay.linear_model._row_loops import shuffle

        n = rows.n_rows
        table = packed(rows.X)
        used, held = np.arange(n), np.empty(0, dtype=np.int64)
        if settings["early"]:
            mixed = random.permutation(n)
            size = min(n - 1, max(1, int(settings["kept"] * n)))
            used, held = np.sort(mixed[size:]), np.sort(mixed[:size])
        w, b, state = np.zeros(rows.n_features), np.zeros(1), settings["rule"].start(rows.n_features + 1)
        best, lowest, waited, t, epoch = (w.copy(), 0.0), np.inf, 0, 0, 0
        order = used.copy()
        try:
            while epoch < settings["epochs"] and waited < settings["patience"] and not log.stopped:
                shuffle(order, int(random.randint(1, 2**62)))
                loss = self._epoch(table, y, order, settings, t, w, b, state)
                t += -(-len(order) // settings["batch"])
                epoch += 1
                if not np.isfinite(loss) or not np.isfinite(w).all():
                    raise refuse(
                        self, "the coefficients grew beyond all bounds; lower eta0 or scale the columns."
                    )
                judged = loss if not len(held) else self._mean_loss(rows.X[held], y[held], w, b[0])
                waited = 0 if judged < lowest - settings["tol"] else waited + 1
                if judged < lowest:
                    lowest, best = judged, (w.copy(), float(b[0]))
                objective = loss + 0.5 * settings["alpha"] * float(w @ w)
                coef[k], intercept[k] = best if settings["early"] else (w, b[0])
                log.step(objective, judged, coef_=coef.copy(), intercept_=intercept.copy())
        except KeyboardInterrupt:
            log.stopped = True
            warnings.warn(
                f"{type(self).__name__}: interrupted in epoch {epoch + 1}; the model is the last one.",
                ConvergenceWarning,
                stacklevel=4,
            )
        w, b_found = best if settings["early"] else (w, float(b[0]))
        return _Run(w, b_found, epoch, t, waited >= settings["patience"])

    def _epoch(
        self,
        table: Any,
        y: np.ndarray,
        order: np.ndarray,
        settings: dict[str, Any],
        t: int,
        w: Any,
        b: Any,
        state: Any,
    ) -> float:
        from assay.linear_model._sgd_loop import batch_epoch, dense_epoch, sparse_epoch

        rule, schedule, alpha = settings["rule"], settings["schedule"], settings["alpha"]
        code, epsilon, intercept = NAMES.index(self.loss), float(self.epsilon), bool(self.fit_intercept)
        rates = (schedule.code, schedule.eta, schedule.decay, t, intercept, w, b)
        if rule.name == "plain" and settings["batch"] == 1:
            arguments = (y, order, code, epsilon, alpha, *rates)
            if table.columns.size:
                return sparse_epoch(*table, *arguments)
            return dense_epoch(table.values.reshape(-1, len(w)), *arguments)
        how = (rule.code, rule.inertia, rule.memory, rule.eps)
        return batch_epoch(*table, y, order, settings["batch"], code, epsilon, alpha, *how, *rates, state)

    def _mean_loss(self, X: Any, y: np.ndarray, w: np.ndarray, b: float) -> float:
        return float(np.mean(LOSSES[self.loss].value(y, X @ w + b, float(self.epsilon))))

    def _finish(self, runs: list[_Run]) -> None:
        self.n_iter_ = max(run.epochs for run in runs)
        self.t_ = sum(run.updates for run in runs)
        if not all(run.converged for run in runs):
            warnings.warn(
                f"{type(self).__name__}: the mean loss was still falling by more than tol after "
                f"{self.n_iter_} epochs. "
                "Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _gap_facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        if not LOSSES[self.loss].convex:
            yield NotApplicable(
                "D04/1", "The squared loss of the sigmoid is not convex: no dual bounds its minimum."
            )
        elif self.alpha == 0:
            yield NotApplicable(
                "D04/1",
                "Without a penalty the dual problem needs an exact equality that no float vector meets.",
            )
        elif len(self.coef_) > 1 and is_labels(self.loss):
            yield NotApplicable(
                "D04/1", "One class against the rest: each hyperplane minimises a problem of its own."
            )
        else:
            problem = Problem(
                self.loss,
                0.0,
                float(self.alpha),
                1.0 / rows.n_rows,
                bool(self.fit_intercept),
                float(self.epsilon),
            )
            yield from gap_claims(rows, self.coef_, self.intercept_, problem)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def is_labels(loss: str) -> bool:
    """Tell whether the loss is for labels -1, +1."""
    return LOSSES[loss].labels


_STEEP = {"squared_error": 1.0, "squared_hinge": 2.0, "exponential": 8.0}
"""Losses whose slope grows with the score, and a bound of their curvature near zero."""


def _first_rate(loss: str, alpha: float, longest: float) -> float:
    """Return a first learning rate: a typical weight for losses of bounded slope (Bottou), else half of what
    curvature allows."""
    rate = float(np.sqrt(1.0 / np.sqrt(max(alpha, 1e-9))))
    if loss in _STEEP or not LOSSES[loss].labels:
        rate = min(rate, 0.5 / (_STEEP.get(loss, 1.0) * (1.0 + longest)))
    return min(rate, 0.99 / alpha) if alpha > 0 else rate


_PARAMETERS = """
    alpha : float >= 0
        Weight of the L2 penalty on w.
    fit_intercept : bool
        Whether to fit b, which is not penalised.
    optimizer : "plain", "momentum", "rms-mean", "adagrad", "rmsprop", "adam" or "adam-uncorrected"
        How gradients become moves; see `assay.optim.descent`.
    momentum : float in [0, 1)
        Inertia of "momentum" and of the Adam rules.
    batch_size : int
        Rows per update; 1 is stochastic gradient descent.
    learning_rate : "strong", "constant", "inverse" or "sqrt"
        Schedule of the rate; "strong" is 1 / (alpha t + 1 / eta0), meant for "plain" with alpha > 0.
    eta0 : float > 0 or None
        First learning rate; None chooses one: alpha^(-1/4) for losses of labels with bounded slopes, else 1
        / (2 c (1 + max |x|^2)), c the curvature.
    decay : float >= 0
        Speed of "inverse" and "sqrt".
    max_iter : int
        Epochs allowed.
    tol : float >= 0
        An epoch counts as progress when the mean loss falls by more than tol below the lowest so far.
    n_iter_no_change : int
        Epochs without progress after which the fit ends.
    early_stopping : bool
        Judge progress on rows kept out of the updates, and keep the coefficients that were best there.
    validation_fraction : float in (0, 1)
        Share of rows kept out.
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
        Updates made.
    history_
        Per epoch the objective with the mean loss met on the way, and the loss that progress was judged by.
"""


class SGDClassifier(ClassifierMixin, LinearClassifier, _Descent):
    __doc__ = f"""Linear classifier by stochastic gradient descent. More than two classes are learnt one
    against the rest.

    Rows must be in memory, dense or sparse; they are visited in random order.

    Parameters
    ----------
    loss : "hinge", "log_loss", "squared_hinge", "exponential", "squared_error", "absolute_error",
    "sigmoid_squared"
        "sigmoid_squared" is the squared error of the sigmoid. Its gradient vanishes for rows far on the
        wrong side, where
        that of "log_loss" is largest; it is here to be compared.
{_PARAMETERS}
    Examples
    --------
    >>> from assay.linear_model import SGDClassifier
    >>> model = SGDClassifier(random_state=0).fit([[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1])
    >>> model.predict([[-3.0], [3.0]]).tolist()
    [0, 1]
    """

    card = Card(
        name="Linear classifier by stochastic gradients",
        zh="随机梯度下降分类",
        mission=("LIN-22", "LIN-23", "OPT-02", "OPT-03", "OPT-17"),
        task="classify",
        model=Linear(),
        strategy="a loss of choice + L2",
        algorithm="stochastic or mini-batch gradient descent: momentum, Adagrad, RMSProp, Adam",
        guarantee=("opt.duality-gap", "solution.enclosure"),
    )

    def __init__(
        self,
        loss: str = "hinge",
        *,
        alpha: float = 1e-4,
        fit_intercept: bool = True,
        optimizer: str = "plain",
        momentum: float = 0.9,
        batch_size: int = 1,
        learning_rate: str = "strong",
        eta0: float | None = None,
        decay: float = 0.0,
        max_iter: int = 1000,
        tol: float = 1e-3,
        n_iter_no_change: int = 5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.optimizer = optimizer
        self.momentum = momentum
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.decay = decay
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "SGDClassifier":
        """Fit to rows X (an array, a frame or a SciPy sparse matrix) and labels y."""
        choice(self, "loss", [name for name in LOSSES if name != "epsilon_insensitive"])
        flag(self, "fit_intercept")
        rows = read_rows(self, X, y)
        self.classes_ = label_classes(self, rows)
        rows = _in_memory(self, rows.encoded(self.classes_))
        settings = self._settings(max(rows.map(largest_norm)))
        random = check_random_state(self.random_state)
        targets = [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))
        with fit_log(self, settings["epochs"] * len(targets), X, y) as log:
            coef, intercept = np.zeros((len(targets), rows.n_features)), np.zeros(len(targets))
            runs = [
                self._descend(
                    rows, np.where(rows.y == code, 1.0, -1.0), settings, random, log, coef, intercept, k
                )
                for k, code in enumerate(targets)
            ]
        self.coef_ = np.vstack([run.w for run in runs])
        self.intercept_ = np.array([run.b for run in runs])
        self._finish(runs)
        return self

    @available_if(lambda self: self.loss in ("log_loss", "sigmoid_squared"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, n_classes); for the losses of the sigmoid alone."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        shares = expit(scores)
        return shares / shares.sum(axis=1, keepdims=True)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap and the distance to the exact optimum that it implies."""
        if not DUALS.get(self.loss, DUALS["hinge"]).labels:
            yield NotApplicable(
                "D04/1", "The claim of this loss is about a numeric target, not about labels."
            )
            return
        yield from self._gap_facts(rows)


class SGDRegressor(RegressorMixin, LinearRegressor, _Descent):
    __doc__ = f"""Linear regression by stochastic gradient descent.

    Rows must be in memory, dense or sparse; they are visited in random order.

    Parameters
    ----------
    loss : "squared_error" (half the square), "absolute_error" or "epsilon_insensitive"
    epsilon : float >= 0
        Residuals up to epsilon cost nothing in "epsilon_insensitive".
{_PARAMETERS}
    Examples
    --------
    >>> from assay.linear_model import SGDRegressor
    >>> model = SGDRegressor(random_state=0, alpha=0.0, tol=1e-9).fit([[-1.0], [0.0], [1.0]], [1.0, 3.0, 5.0])
    >>> model.predict([[2.0]]).round(2).tolist()
    [7.0]
    """

    card = Card(
        name="Linear regression by stochastic gradients",
        zh="随机梯度下降回归",
        mission=("LIN-07", "OPT-02", "OPT-03"),
        task="regress",
        model=LinearFunctions(),
        strategy="a loss of choice + L2",
        algorithm="stochastic or mini-batch gradient descent: momentum, Adagrad, RMSProp, Adam",
        guarantee=("opt.duality-gap", "solution.enclosure"),
    )

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        alpha: float = 1e-4,
        epsilon: float = 0.1,
        fit_intercept: bool = True,
        optimizer: str = "plain",
        momentum: float = 0.9,
        batch_size: int = 1,
        learning_rate: str = "constant",
        eta0: float | None = None,
        decay: float = 0.0,
        max_iter: int = 1000,
        tol: float = 1e-3,
        n_iter_no_change: int = 5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.optimizer = optimizer
        self.momentum = momentum
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.decay = decay
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "SGDRegressor":
        """Fit to rows X (an array, a frame or a SciPy sparse matrix) and targets y."""
        choice(self, "loss", [name for name, loss in LOSSES.items() if not loss.labels])
        number(self, "epsilon", low=0.0)
        flag(self, "fit_intercept")
        rows = _in_memory(self, read_rows(self, X, y))
        target = column_or_1d(rows.y, warn=True).astype(np.float64)
        settings = self._settings(max(rows.map(largest_norm)))
        random = check_random_state(self.random_state)
        with fit_log(self, settings["epochs"], X, y) as log:
            coef, intercept = np.zeros((1, rows.n_features)), np.zeros(1)
            run = self._descend(rows, target, settings, random, log, coef, intercept)
        self.coef_, self.intercept_ = run.w, np.array([run.b])
        self._finish([run])
        return self

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap and the distance to the exact optimum that it implies."""
        yield from self._gap_facts(rows)


def _in_memory(model: Any, rows: Rows) -> Any:
    require_finite(rows, model)
    if not hasattr(rows, "X"):
        raise refuse(model, "rows are visited in random order, so they must be in memory.")
    return rows
