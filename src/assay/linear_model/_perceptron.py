"""The perceptron.

    repeat over the rows: if y_i (<w, x_i> + b) <= 0 then w <- w + eta y_i x_i, b <- b + eta y_i

Many classes are learnt one against the rest, or all together, one weight vector per class:

    a row x of class y on which another class r scores at least as much:  w_y <- w_y + eta x,  w_r <- w_r - eta x

where r is the class with the largest score among the others.

Claims: if the loop ends, the hyperplane it found separates the classes (margin as witness), and the number of
        updates is at most (R / gamma)^2, R = max |(x_i, 1)| and gamma the margin of any separator in that
        space. Novikoff 1962. All together, if some weights with |W| = 1 give every row's class the largest score with
        a margin gamma, there are at most 2 R^2 / gamma^2 updates. Duda and Hart 1973; Crammer and Singer 2003. If the
        loop does not end, a few rows whose hulls intersect, when they can be found, prove that no separator exists.
Method: one compiled pass per epoch, in the order of the data or in a new random order each epoch. With a penalty,
        weights, a tolerance or early stopping: stochastic gradients of the loss max(0, -y f).

`perceptron_trace` is the algorithm as theory describes it: any start, any rule to choose a violated row.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from assay.base import fit_log, label_classes, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.compression import Updates, gather, perceptron_statements
from assay.guarantees.ledger import FIT_NOT_KEPT, Statement
from assay.linear_model import _logistic_problem
from assay.linear_model._base import LinearClassifier, packed
from assay.linear_model._separator import inseparability_claim, separation_claim
from assay.linear_model._sgd import SGDClassifier
from assay.messages import Message, named
from assay.optim.duality import gamma
from assay.params import Choice, Count, Flag, Maybe, Number, Positive, check, refuse
from assay.scan import Rows
from assay.theory.spaces import Linear

_NOT_PLAIN = Message("why.plain-updates")
_KEPT_UPDATES = 1_000_000  # updates remembered as the witness of the mistake bound
_TOL = 1e-3  # of the mean loss, where none is given
_KEPT = ("classes_", "coef_", "intercept_", "n_iter_", "t_", "history_", "n_features_in_", "feature_names_in_")
_COUNTS = ("updates_", "n_updates_", "converged_", "margin_")  # of plain updates
RULES = ("first", "random", "worst")


class JointRun(NamedTuple):
    """Weights and intercepts of the classes, updates, epochs, whether the last epoch had none, whether it was
    stopped."""

    coef: np.ndarray
    intercept: np.ndarray
    updates: int
    epochs: int
    converged: bool
    stopped: bool


@dataclass(eq=False, repr=False)
class Perceptron(ClassifierMixin, LinearClassifier):
    """Rosenblatt's perceptron, started at zero.

    Stops at the first epoch without a mistake. On classes that no hyperplane separates it never does: then it
    stops after `max_iter` epochs, says so, and keeps the last hyperplane. More than two classes are learnt
    one against the rest, or all together.

    Parameters
    ----------
    penalty : None, "l2", "l1" or "elasticnet"
        With a penalty, weights, a tolerance or early stopping the perceptron is stochastic gradient descent on its
        loss max(0, -y f), at the constant rate `eta0`; what is told of plain updates is not kept then.
    alpha, l1_ratio : float
        Weight of the penalty, and the share of |w|_1 in "elasticnet".
    fit_intercept : bool
        Whether to learn b.
    max_iter : int
        Epochs allowed.
    tol : float, None or "auto"
        Stop when the mean loss of `n_iter_no_change` epochs has not fallen by more than tol; None goes on until no
        mistake is left or `max_iter` epochs are made. "auto" is None for plain updates and 1e-3 otherwise.
    early_stopping, validation_fraction, n_iter_no_change, class_weight, warm_start, verbose
        As in `SGDClassifier`.
    shuffle : bool
        Visit the rows in a new random order each epoch; otherwise in the order of the data.
    eta0 : float > 0
        Factor of each update; from a zero start it scales w and b and changes no prediction.
    multi_class : "ovr" or "joint"
        More than two classes: each against the rest, or one weight vector per class, where a mistake adds the row to
        those of its class and takes it from those of the class that won; the second separates more.
    random_state : int, RandomState or None
        Seed of the orders.
    n_jobs : int or None
        Threads for counting errors and certifying; the passes themselves are sequential.

    Attributes
    ----------
    classes_, coef_, intercept_
    n_iter_, t_ : int
        Epochs run (the most over the classes), and rows visited in them, plus one.
    n_updates_ : int
        Mistakes corrected, over all classes.
    converged_ : bool
        Whether the last epoch was free of mistakes.
    margin_ : float
        Least distance of a training row to the right side of the hyperplane (negative if some row is on the
        wrong side).
    updates_ : list of int arrays
        Row number of each update in order, one array per hyperplane; not with "joint".

    Examples
    --------
    >>> from assay.linear_model import Perceptron
    >>> model = Perceptron(shuffle=False).fit([[3, 3], [4, 3], [1, 1]], [1, 1, -1])
    >>> model.coef_.tolist(), model.intercept_.tolist(), model.n_updates_
    ([[1.0, 1.0]], [-3.0], 7)
    """

    card = Card(
        name="Perceptron",
        task="classify",
        model=Linear(),
        strategy="number of misclassified rows, by correcting mistakes",
        algorithm="perceptron updates, in order or shuffled",
        guarantee=(
            "perceptron.mistakes",
            "margin.bounds",
            "inseparability",
            "compression.perceptron",
            "vc",
            "margin.kernel",
            "margin.multiclass",
            "pac-bayes.linear",
        ),
    )

    constraints: ClassVar = {
        "penalty": Choice("l2", "l1", "elasticnet", None),
        "alpha": Number(low=0.0),
        "l1_ratio": Number(low=0.0, high=1.0, why="it is the share of the L1 penalty"),
        "tol": Maybe(Number(low=0.0), "auto", None),
        "early_stopping": Flag,
        "validation_fraction": Number(low=0.0, high=1.0, open_low=True, open_high=True),
        "n_iter_no_change": Count(),
        "warm_start": Flag,
        "max_iter": Count(),
        "eta0": Positive(),
        "fit_intercept": Flag,
        "shuffle": Flag,
        "multi_class": Choice("ovr", "joint"),
    }

    _: KW_ONLY
    penalty: str | None = None
    alpha: float = 1e-4
    l1_ratio: float = 0.15
    fit_intercept: bool = True
    max_iter: int = 1000
    tol: Any = "auto"
    shuffle: bool = True
    verbose: int = 0
    eta0: float = 1.0
    multi_class: str = "ovr"
    random_state: Any = 0
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    class_weight: Any = None
    warm_start: bool = False
    n_jobs: int | None = None

    @with_callbacks
    def fit(
        self, X: Any, y: Any = None, coef_init: Any = None, intercept_init: Any = None, sample_weight: Any = None
    ) -> "Perceptron":
        """Fit to rows X and labels y. Parquet files and Dask collections need shuffle=False."""
        check(self)
        start = (coef_init, intercept_init)
        if not is_plain(self, sample_weight, start):
            if self.multi_class == "joint":
                raise refuse(self, "multi_class='joint' goes with plain updates: no penalty, weights or tolerance.")
            descend(self, X, y, sample_weight, start)
            return self
        self.__dict__.pop("_descent", None)
        rows = read_rows(self, X, y)
        self.classes_ = label_classes(self, rows)
        rows = rows.encoded(self.classes_)
        require_finite(rows, self)
        random = check_random_state(self.random_state)
        if self.shuffle and not hasattr(rows, "X"):
            raise refuse(self, "rows that are not in memory are read in order; pass shuffle=False.")
        if self._joint:
            with fit_log(self, self.max_iter, X, y) as log:
                self._keep_joint(rows, joint_run(self, rows, random if self.shuffle else None, log.step))
            return self
        targets = [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))
        coef, intercept = np.zeros((len(targets), rows.n_features)), np.zeros(len(targets))
        runs: list[_Run] = []
        with fit_log(self, self.max_iter * len(targets), X, y) as log:
            for k, code in enumerate(targets):
                allowed = 0 if any(run.stopped for run in runs) else self.max_iter

                def callback(*numbers: float) -> bool:
                    return log.step(*numbers, coef_=coef.copy(), intercept_=intercept.copy())

                runs.append(
                    self._run(
                        rows,
                        code,
                        float(self.eta0),
                        allowed,
                        random if self.shuffle else None,
                        coef[k],
                        intercept[k : k + 1],
                        callback,
                    )
                )
        self.coef_, self.intercept_ = coef, intercept
        self.updates_ = [run.sequence for run in runs]
        self.n_updates_ = sum(run.n_updates for run in runs)
        self.n_iter_ = max(run.epochs for run in runs)
        self.t_ = self.n_iter_ * rows.n_rows + 1
        self.converged_ = all(run.converged for run in runs)
        self.margin_ = min(_margin(rows, code, coef[k], intercept[k]) for k, code in enumerate(targets))
        if np.isnan(self.margin_) or not np.isfinite(coef).all():
            raise refuse(self, "the entries are too large: scores overflow. Divide X by a constant.")
        self._warn(any(run.stopped for run in runs))
        return self

    @with_callbacks
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> "Perceptron":
        """Visit these rows once, starting from where the last call ended; `classes` lists all labels, in the first."""
        check(self)
        descend_once(self, X, y, classes, sample_weight)
        return self

    @property
    def _joint(self) -> bool:
        return self.multi_class == "joint" and len(self.classes_) > 2

    def _keep_joint(self, rows: Rows, run: JointRun) -> None:
        if not np.isfinite(run.coef).all():
            raise refuse(self, "the entries are too large: scores overflow. Divide X by a constant.")
        self.coef_, self.intercept_, self.n_updates_, self.n_iter_ = run.coef, run.intercept, run.updates, run.epochs
        self.t_ = run.epochs * rows.n_rows + 1
        self.converged_, self.margin_ = run.converged, joint_margin(rows, run.coef, run.intercept)
        self.__dict__.pop("updates_", None)
        self._warn(run.stopped)

    def _warn(self, stopped: bool) -> None:
        """Say that the fit ended before the data were learnt."""
        if stopped:
            warnings.warn(
                f"Perceptron: stopped after {self.n_updates_} updates, before the data were learnt; the "
                "model is the last one.",
                ConvergenceWarning,
                stacklevel=4,
            )
        elif not self.converged_:
            warnings.warn(
                named(self, "warn.perceptron", epochs=int(self.n_iter_), updates=int(self.n_updates_)),
                ConvergenceWarning,
                stacklevel=4,
            )

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the margin and the mistake bound of each hyperplane, or a proof that there is none."""
        if self._joint:
            yield NotApplicable("perceptron.mistakes", Message("why.joint-classes"))
            return
        binary = len(self.classes_) == 2
        for k in range(len(self.coef_)):
            params = {} if binary else {"class": k}
            code = 1 if binary else k
            yield from separation_claim(
                rows, self.coef_[k], float(self.intercept_[k]), bool(self.fit_intercept), code, params
            )
            if hasattr(self, "updates_"):
                yield self._mistake_bound(rows, k, code, self.updates_[k], params)
            else:
                yield NotApplicable("perceptron.mistakes", _NOT_PLAIN if hasattr(self, "_descent") else FIT_NOT_KEPT)
        if binary and not getattr(self, "converged_", True):
            yield inseparability_claim(rows, bool(self.fit_intercept))

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield what margins say about new data, and what the few rows of the updates do."""
        yield from super().statements(rows)
        if not hasattr(self, "updates_"):
            told = Message("why.joint-classes-each")
            told = _NOT_PLAIN if hasattr(self, "_descent") else told if self._joint else FIT_NOT_KEPT
            yield NotApplicable("compression.perceptron", told)
            return
        known = self.n_updates_ == sum(map(len, self.updates_))
        updates = Updates(self.updates_, float(self.eta0), bool(self.fit_intercept), known)
        yield from perceptron_statements(self, rows, updates, self._margin_rounding(rows))

    def _mistake_bound(
        self, rows: Rows, k: int, code: int, sequence: np.ndarray, params: dict
    ) -> Claim | NotApplicable:
        """Return claim perceptron.mistakes for hyperplane k, whose positive class is `code`."""
        if len(sequence) > _KEPT_UPDATES:
            return NotApplicable("perceptron.mistakes", Message("why.many-updates", most=_KEPT_UPDATES))
        w, b = self.coef_[k], float(self.intercept_[k])
        if not self._replays(rows, code, sequence, np.append(w, b)):
            return NotApplicable("perceptron.mistakes", Message("why.updates-elsewhere"))
        augmented = np.append(w, b) if self.fit_intercept else w
        norm = float(np.linalg.norm(augmented))
        least = min(rows.map(_least_score, w, b, code))
        rounding = (
            8 * gamma(rows) / rows.n_rows * (rows.n_features + 4) * float(np.abs(w) @ rows.largest_entries + abs(b))
        )
        margin = (least - rounding) / norm * (1 - 1e-9) if norm > 0 else 0.0
        if margin <= 0:
            return NotApplicable(
                "perceptron.mistakes",
                Message("why.plane-inseparable"),
            )
        radius = float(np.sqrt(max(rows.map(_logistic_problem.largest_norm)) + self.fit_intercept)) * (1 + 1e-9)
        stated = {
            "updates": len(sequence),
            "margin": margin,
            "radius": radius,
            "intercept": bool(self.fit_intercept),
        }
        return Claim(
            "perceptron.mistakes",
            (radius / margin) ** 2 * (1 + 1e-9),
            params={**stated, "rate": float(self.eta0), **params},
            witness={"sequence": sequence, "separator": augmented},
        )

    def _replays(self, rows: Rows, code: int, sequence: np.ndarray, hyperplane: np.ndarray) -> bool:
        """Tell whether updates on these rows, in this order, lead to the hyperplane (w, b)."""
        from assay.linear_model._perceptron_loops import replay_block

        wanted, at = np.unique(sequence, return_inverse=True)
        if not len(wanted) or wanted[-1] >= rows.n_rows:
            return not len(wanted)
        X, y = gather(rows, wanted)
        result = replay_block(X, np.where(y == code, 1.0, -1.0), at, float(self.eta0), bool(self.fit_intercept))
        return np.array_equal(result, hyperplane)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True  # on classes that overlap, the last hyperplane may be any
        return tags

    def _run(
        self,
        rows: Rows,
        code: int,
        eta: float,
        max_iter: int,
        random: Any,
        w: np.ndarray,
        b: np.ndarray,
        callback: Any,
    ) -> "_Run":
        """Learn to tell class `code` from the others; writes w (d,) and b (1,)."""
        from assay.linear_model._perceptron_loops import perceptron_block, sparse_perceptron_block

        X, visit = getattr(rows, "X", None), perceptron_block
        if hasattr(X, "indptr"):
            X, visit = packed(X), sparse_perceptron_block
        elif X is not None:
            X = np.ascontiguousarray(X, dtype=np.float64)
        sequence, total, epoch, mistakes, stopped = [], 0, 0, -1, False
        try:
            while mistakes and epoch < max_iter and not stopped:
                mistakes = 0
                for X_part, signs, order, start in _passes(rows, X, code, random):
                    at = np.empty(len(order), dtype=np.int64)
                    made = visit(X_part, signs, order, eta, bool(self.fit_intercept), w, b, at)
                    mistakes += made
                    if total <= _KEPT_UPDATES:
                        sequence.append(at[:made] + start)
                    total += made
                epoch += 1
                stopped = callback(mistakes, mistakes)
        except KeyboardInterrupt:
            stopped = True
        joined = np.concatenate([np.empty(0, dtype=np.int64), *sequence])
        return _Run(joined, total, epoch, mistakes == 0, stopped and mistakes != 0)


class _Run(NamedTuple):
    sequence: np.ndarray
    n_updates: int
    epochs: int
    converged: bool
    stopped: bool


def _passes(rows: Any, X: Any, code: int, random: Any) -> Iterator[tuple[Any, np.ndarray, np.ndarray, int]]:
    """Yield (X, signs, order of visit, number of the first row) of one epoch: all rows at once if X is in
    memory."""
    if X is not None:
        from assay.linear_model._row_loops import shuffle

        order = np.arange(rows.n_rows)
        if random is not None:
            shuffle(order, int(random.randint(1, 2**62)))
        yield X, np.where(rows.y == code, 1.0, -1.0), order, 0
        return
    for block in rows.blocks():
        yield block.X, np.where(block.y == code, 1.0, -1.0), np.arange(len(block.X)), block.start


def _least_score(block: Block, w: np.ndarray, b: float, code: int) -> float:
    """Return min_i y_i (<w, x_i> + b), y_i = 1 for class `code` and -1 for the others."""
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow shows as infinity or NaN
        return float(((block.X @ w + b) * np.where(block.y == code, 1.0, -1.0)).min())


def _margin(rows: Rows, code: int, w: np.ndarray, b: float) -> float:
    """Return the least signed distance of a row to the hyperplane; minus infinity if w = 0 puts a class on
    the wrong side."""
    with np.errstate(over="ignore", invalid="ignore"):
        least, norm = float(np.min(rows.map(_least_score, w, b, code))), float(np.linalg.norm(w))
    return least / norm if norm > 0 else -np.inf if least < 0 else 0.0


def is_plain(model: Any, sample_weight: Any, start: tuple[Any, Any]) -> bool:
    """Tell whether the updates are Rosenblatt's own, from zero until no mistake is left."""
    asked = (model.penalty, model.class_weight, sample_weight, *start)
    plain = all(item is None for item in asked) and model.tol in ("auto", None)
    return plain and not model.early_stopping and not model.warm_start


def descend(model: Any, X: Any, y: Any, sample_weight: Any, start: tuple[Any, Any]) -> None:
    """Fit by epochs of stochastic gradients, from the last fit if `warm_start` asks for it."""
    if model.warm_start and hasattr(model, "coef_"):
        start = tuple(last if new is None else new for new, last in zip(start, (model.coef_, model.intercept_)))
    inner = _inner(model)
    inner.fit(X, y, coef_init=start[0], intercept_init=start[1], sample_weight=sample_weight)
    _keep(model, inner)


def descend_once(model: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
    """Visit the rows once more."""
    inner = getattr(model, "_descent", None)
    if inner is None:
        inner = _inner(model)
        if hasattr(model, "coef_"):  # a plain fit came before
            inner.classes_, inner.coef_, inner.intercept_ = model.classes_, model.coef_, model.intercept_
            inner.n_features_in_, inner.eta0_, inner.t_ = model.n_features_in_, float(model.eta0), 0
            inner.moments_ = np.zeros((len(model.coef_), 2, model.n_features_in_ + 1))
    inner.set_params(**_parameters(model)).partial_fit(X, y, classes=classes, sample_weight=sample_weight)
    _keep(model, inner)


def _parameters(model: Any) -> dict[str, Any]:
    names = (
        "penalty alpha l1_ratio fit_intercept max_iter shuffle verbose eta0 n_jobs random_state early_stopping "
        "validation_fraction n_iter_no_change class_weight"
    )
    tol = _TOL if model.tol == "auto" else model.tol
    return {"tol": tol, **{name: getattr(model, name) for name in names.split()}}


def _inner(model: Any) -> Any:
    named = type("Perceptron", (SGDClassifier,), {})  # so that refusals and warnings name who was called
    return named(loss="perceptron", learning_rate="constant", **_parameters(model))


def _keep(model: Any, inner: Any) -> None:
    for name in _COUNTS:
        model.__dict__.pop(name, None)
    for name in _KEPT:
        if hasattr(inner, name):
            setattr(model, name, getattr(inner, name))
    model._descent = inner


class PerceptronTrace(NamedTuple):
    """The final w, whether no row is violated, the rows used, and <w_t, w_f>, |w_t|^2 before each update and
    at the end.

    Parameters
    ----------
    w : ndarray
        The final weights.
    separated : bool
        Whether no row is violated.
    updates : ndarray
        Numbers of the rows used.
    products : ndarray
        <w_t, w_f> before each update and at the end.
    squares : ndarray
        |w_t|^2 before each update and at the end.
    """

    w: np.ndarray
    separated: bool
    updates: np.ndarray
    products: np.ndarray
    squares: np.ndarray


def perceptron_trace(
    A: Any,
    labels: Any,
    *,
    rule: str = "first",
    start: str = "zero",
    target: Any = None,
    max_updates: int = 100_000,
    random_state: Any = None,
) -> PerceptronTrace:
    """Run w <- w + l_i a_i on rows with l_i <a_i, w> <= 0 until there is none, and record each step.

    `rule` picks the violated row: "first", "random", or "worst" (the most negative l_i <a_i, w>). `start` is
    "zero", or
    "first" for w = l_1 a_1. For unit rows and a unit `target` w_f of margin delta, after t updates from w =
    l_1 a_1
    <w, w_f> >= (t + 1) delta and |w|^2 <= t + 1, so t <= 1 / delta^2 - 1; from zero t <= 1 / delta^2; for
    rows of length at
    most R, t <= (R / delta)^2 from zero.

    Parameters
    ----------
    A : array-like
        Rows.
    labels : array-like
        Labels -1 and +1.
    rule : str, default="first"
        "first", "random" or "worst": which violated row is used.
    start : str, default="zero"
        "zero" or "first": where w begins.
    target : array-like or None
        A separating direction w_f; None: it is not needed.
    max_updates : int, default=100000
        Largest number of updates.
    random_state : int, RandomState or None
        Seed of the choice of rows.

    Returns
    -------
    PerceptronTrace
        The weights and each step.

    Examples
    --------
    >>> trace = perceptron_trace([[1.0, 0.0], [0.6, 0.8]], [1, -1], start="first")
    >>> trace.separated, len(trace.updates)
    (True, 1)
    """
    if rule not in RULES or start not in ("zero", "first"):
        raise ValueError(
            f'perceptron_trace: rule must be in {RULES}, start "zero" or "first"; got {rule!r}, {start!r}.'
        )
    signed = np.asarray(A, dtype=np.float64) * np.asarray(labels, dtype=np.float64)[:, None]
    random = check_random_state(random_state)
    w = signed[0].copy() if start == "first" else np.zeros(signed.shape[1])
    goal = np.zeros_like(w) if target is None else np.asarray(target, dtype=np.float64)
    used: list[int] = []
    products, squares = [w @ goal], [w @ w]
    separated = False
    while len(used) < max_updates:
        scores = signed @ w
        violated = np.flatnonzero(scores <= 0)
        if not len(violated):
            separated = True
            break
        i = {"first": violated[0], "worst": int(np.argmin(scores))}.get(rule)
        i = random.choice(violated) if i is None else i
        w = w + signed[i]
        used.append(i)
        products.append(w @ goal)
        squares.append(w @ w)
    return PerceptronTrace(w, separated, np.array(used, dtype=np.int64), np.array(products), np.array(squares))


def joint_run(learner: Any, rows: Any, random: Any, callback: Callable[..., bool]) -> JointRun:
    """Learn all classes together; `random` shuffles the rows of each epoch, None keeps their order."""
    from assay.linear_model._perceptron_loops import joint_block
    from assay.linear_model._row_loops import shuffle

    X = getattr(rows, "X", None)
    if X is None or hasattr(X, "indptr"):
        raise refuse(learner, 'multi_class="joint" reads dense rows in memory; use multi_class="ovr" for others.')
    X, y = np.ascontiguousarray(X, dtype=np.float64), np.asarray(rows.y, dtype=np.int64)
    K = len(learner.classes_)
    W, b = np.zeros((K, rows.n_features)), np.zeros(K)
    total, epoch, mistakes, stopped = 0, 0, -1, False
    try:
        while mistakes and epoch < learner.max_iter and not stopped:
            order = np.arange(rows.n_rows)
            if random is not None:
                shuffle(order, int(random.randint(1, 2**62)))
            mistakes = joint_block(X, y, order, float(learner.eta0), bool(learner.fit_intercept), W, b)
            total, epoch = total + mistakes, epoch + 1
            stopped = callback(mistakes, mistakes, coef_=W.copy(), intercept_=b.copy())
    except KeyboardInterrupt:
        stopped = True
    return JointRun(W, b, total, epoch, mistakes == 0, stopped and mistakes != 0)


def joint_margin(rows: Any, coef: np.ndarray, intercept: np.ndarray) -> float:
    """Return by how much the class of a row leads the others, at least, in units of the length of all weights."""
    norm = float(np.linalg.norm(coef))
    least = np.inf
    for block in rows.blocks():
        scores, at = block.X @ coef.T + intercept, np.arange(len(block.X))
        own = scores[at, block.y]
        scores[at, block.y] = -np.inf
        least = min(least, float((own - scores.max(axis=1)).min()))
    return least / norm if norm > 0 else 0.0
