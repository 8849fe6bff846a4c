"""Elman networks: a hidden layer that also sees what it said one step before, so that sequences have a memory.

    h_t = f(U' x_t + V' h_{t-1} + b),    z_t = W h_t + c
    minimise   mean loss over steps + alpha/2 (|U|^2 + |V|^2 + |W|^2)

With V = 0 it is a feed-forward network of one hidden layer.

Claims: errors and hold-out statements are about whole sequences, which are drawn independently where their steps are
        not: the output at the last step, by the checker's own recurrence; the length of the gradient of the
        objective, by its own back-propagation through time, where targets belong to last steps (elman.gradient).
Method: L-BFGS on the gradient by back-propagation through time (Elman 1990; Werbos 1990), from several starts if asked.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from assay import scan
from assay.base import Diagram, Learner, fit_log, label_classes, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Certificate, Claim, NotApplicable
from assay.data.blocks import Block
from assay.fitlog import FitLog
from assay.guarantees.evidence import Evidence, Predictions, Scores
from assay.messages import Message, named
from assay.neural_network._claims import Networks
from assay.neural_network._recurrence import (
    UNITS,
    Batch,
    Objective,
    Weights,
    cut,
    gradient_length,
    gradient_sums,
    laid_out,
    last_outputs,
    run,
    start,
    unpacked,
)
from assay.neural_network._training import Found, lbfgs, targets
from assay.params import Choice, Count, Maybe, Number, check, refuse
from assay.scan import Rows

_CALLS = 20  # of the objective for each iteration, at most


@dataclass(eq=False, repr=False)
class Elman(Learner):
    """The recurrent network; the parameters of both tasks."""

    figure = "network"
    constraints: ClassVar = {
        "n_hidden": Count(),
        "activation": Choice("tanh", "logistic", "relu", "identity"),
        "alpha": Number(low=0.0),
        "max_iter": Count(),
        "tol": Number(low=0.0),
        "n_restarts": Count(),
        "max_steps": Maybe(Count(why="steps of the longest sequence that is certified")),
    }

    n_hidden: int = 10
    _: KW_ONLY
    activation: str = "tanh"
    alpha: float = 1e-4
    max_iter: int = 300
    tol: float = 1e-4
    n_restarts: int = 1
    max_steps: int | None = None
    random_state: Any = None
    n_jobs: int | None = None

    def diagram(self) -> Diagram:
        """Return the layers that a diagram shows."""
        return Diagram([self.input_weights_, self.coef_.T], ["inputs", "state", "outputs"], self.state_weights_)

    # What a task adds

    def _coded(self, y: np.ndarray, rows: Any) -> np.ndarray:
        """Return the targets of all steps, (steps, outputs)."""
        raise NotImplementedError

    def _output(self) -> str:
        return "identity"

    def _output_layer(self, Z: np.ndarray) -> np.ndarray:
        """Return predictions of outputs."""
        raise NotImplementedError

    # Training

    @with_callbacks
    def fit(self, X: Any, y: Any = None, lengths: Any = None) -> Any:
        """Fit to sequences: a list of arrays (steps, d), or rows X that `lengths` cut into sequences; without lengths
        each row is a sequence of one step. y has a target for each step, or one for each sequence, that of its last
        step."""
        check(self)
        X, y, lengths = _joined(X, y, lengths)
        whole = lengths is not None and y is not None and len(y) == len(lengths) and np.shape(X)[0] != len(y)
        self._check_lengths(X, lengths)
        steps = np.repeat(np.asarray(y), lengths, axis=0) if whole else y
        rows = read_rows(self, X, steps)
        require_finite(rows, self)
        sequences, Y = self._laid(rows, lengths)
        T = max(map(len, sequences))
        if self.max_steps is not None and self.max_steps < T:
            raise refuse(self, f"max_steps={self.max_steps} is less than the {T} steps of the longest sequence.")
        self.last_only_, self._T = whole or T == 1, self.max_steps or T
        batch = self._batch(sequences, Y, T)
        sizes = (rows.n_features, self.n_hidden, Y[0].shape[1])
        with fit_log(self, self.max_iter * self.n_restarts, X, y) as log:
            self._search(Objective(batch, self.activation, self._output(), self.alpha, sizes), sizes, log)
        if self._T > 1:
            self.__dict__.pop("feature_names_in_", None)  # the table of sequences has other columns
        return self

    def _laid(self, rows: Any, lengths: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return steps and coded targets of each sequence."""
        parts = [(block.X, np.asarray(block.y)) for block in rows.blocks()]
        X, y = (np.concatenate(part) for part in zip(*parts, strict=True))
        Y = self._coded(y, rows)
        lengths = np.ones(len(X), dtype=int) if lengths is None else lengths
        return cut(X, lengths), cut(Y, lengths)

    def _check_lengths(self, X: Any, lengths: Any) -> None:
        if lengths is None:
            return
        given, n = np.asarray(lengths), np.shape(X)[0]
        if given.ndim != 1 or given.dtype.kind not in "iu" or np.any(given < 1) or given.sum() != n:
            raise refuse(self, f"lengths must be integers >= 1 that sum to the {n} rows of X; got {lengths!r}.")

    def _batch(self, sequences: list[np.ndarray], Y: list[np.ndarray], T: int) -> Batch:
        X, mask = laid_out(sequences, T)
        asked = mask.copy()
        if self.last_only_:
            asked[:, :-1] = False
        return Batch(X, mask, laid_out(Y, T)[0], asked)

    def _search(self, objective: Objective, sizes: tuple[int, int, int], log: FitLog) -> None:
        """Minimise from one start or several, and keep the lowest."""
        random, best = check_random_state(self.random_state), np.inf

        def callback(theta: np.ndarray, value: float, norm: float) -> bool:
            if not np.isfinite(value):
                raise refuse(self, f"the objective overflows in step {len(log.history) + 1}; scale the columns.")
            return log.step(value, norm, **self._shown(unpacked(theta, *sizes)))

        for turn in range(self.n_restarts):
            objective.best = (np.inf, np.empty(0))
            first = start(*sizes, random).packed()
            solution = lbfgs(objective, first, self.tol, self.max_iter, _CALLS * self.max_iter, callback)  # type: ignore[arg-type]
            log.stopped |= solution.interrupted
            if solution.value < best or turn == 0:
                best, kept = solution.value, solution
            if log.stopped:
                break
        self._keep(kept, sizes, log, last=kept is solution)

    def _keep(self, result: Found, sizes: tuple[int, int, int], log: FitLog, last: bool) -> None:
        shown = self._shown(unpacked(result.theta.copy(), *sizes))
        if not np.isfinite(result.value):
            raise refuse(self, "the objective overflows in step 1; scale the columns.")
        for name, value in shown.items():
            setattr(self, name, value)
        if not log.history or not last:
            log.step(result.value, 0.0, **shown)
        self.loss_, self.n_iter_ = result.value, len(log.history)
        if not result.converged and not log.stopped:
            warnings.warn(
                named(self, "warn.lbfgs", iterations=result.iterations, tol=self.tol),
                ConvergenceWarning,
                stacklevel=6,
            )

    def _shown(self, net: Weights) -> dict[str, Any]:
        names = ("input_weights_", "state_weights_", "hidden_intercept_", "coef_", "intercept_")
        clean = (np.where(np.abs(part) < 1e-140, 0.0, part) for part in net)
        return {**dict(zip(names, clean, strict=True)), "steps_": np.array(self._T)}

    # Prediction

    @property
    def net(self) -> Weights:
        """The fitted weights U, V, b, W, c."""
        return Weights(self.input_weights_, self.state_weights_, self.hidden_intercept_, self.coef_, self.intercept_)

    @property
    def elman_codes_(self) -> np.ndarray:
        """Which unit the layer has, steps of the longest sequence that is certified, whether only last steps have
        targets."""
        return np.array([UNITS.index(self.activation), int(self.steps_), int(self.last_only_)], dtype=np.int64)

    def _take_arrays(self, arrays: Any) -> None:
        super()._take_arrays(arrays)
        self.steps_, self.last_only_ = np.array(int(arrays["elman_codes_"][1])), bool(arrays["elman_codes_"][2])

    def _derive(self) -> None:
        self.n_features_in_ = len(self.input_weights_)

    def _outputs(self, X: Any, lengths: Any, state: Any, together: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the outputs of each step, or of each sequence if only last steps were learnt, and the last states."""
        check_is_fitted(self)
        X, _, lengths = _joined(X, None, lengths)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        self._check_lengths(X, lengths)
        if lengths is None:
            lengths = [len(X)] if together else np.ones(len(X), dtype=int)
        sequences = cut(X, lengths)
        steps, mask = laid_out(sequences, max(map(len, sequences)))
        first = None if state is None else self._checked_state(state, len(sequences))
        states = run(self.net, steps, mask, self.activation, first)
        H = states[:, -1] if self.last_only_ and not together else states[:, 1:][mask]
        return H @ self.coef_.T + self.intercept_, states[:, -1]

    def _checked_state(self, state: Any, many: int) -> np.ndarray:
        given = np.atleast_2d(np.asarray(state, dtype=np.float64))
        k = len(self.hidden_intercept_)
        if given.shape != (many, k):
            raise refuse(self, f"state must be ({many}, {k}), one row for each sequence; got shape {given.shape}.")
        return given

    def predict(self, X: Any, lengths: Any = None, *, state: Any = None, return_state: bool = False) -> Any:
        """Return what is predicted for each step, or for each sequence if targets belonged to sequences.

        With `state` (sequences, n_hidden), what `return_state` gave for the steps before, sequences go on where they
        were; X without lengths is then one sequence, and a prediction is made at every step."""
        together = state is not None or return_state
        Z, after = self._outputs(X, lengths, state, together)
        return (self._output_layer(Z), after) if return_state else self._output_layer(Z)

    # Certificate

    def table(self, X: Any, y: Any, lengths: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the sequences as a table, a row for each, with the target of its last step: what is certified, and
        what the checker reads. A row is the number of steps, then `steps_` times d columns that end with the sequence
        (for sequences of one step the d columns alone)."""
        check_is_fitted(self)
        X, y, lengths = _joined(X, y, lengths)
        y, T = np.asarray(y), int(self.steps_)
        if lengths is None and T == 1:
            return X, y
        X = validate_data(self, X, reset=False, dtype=np.float64)
        lengths = np.ones(len(X), dtype=int) if lengths is None else np.asarray(lengths)
        self._check_lengths(X, lengths)
        if lengths.max() > T:
            raise refuse(self, f"a sequence has {lengths.max()} steps; fit with max_steps to certify more than {T}.")
        last = y if len(y) == len(lengths) else y[np.cumsum(lengths) - 1]
        steps, _ = laid_out(cut(X, lengths), T)
        rows = steps.reshape(len(steps), -1)
        return (rows if T == 1 else np.column_stack([lengths, rows])), last

    def certify(  # type: ignore[override]
        self, X: Any, y: Any = None, *, lengths: Any = None, holdout: Any = None, **options: Any
    ) -> Certificate:
        """As `Learner.certify`, for sequences as in `fit`: it is about the output at the last step of each. `holdout`
        is (X, y), (X, y, lengths), or numbers of sequences. `table` returns the rows that `verify` then wants."""
        check_is_fitted(self)
        several = isinstance(holdout, tuple) and len(holdout) in (2, 3) and np.ndim(holdout[1]) > 0
        if several and (len(holdout) == 3 or int(self.steps_) > 1):
            holdout = self.table(*holdout)
        if lengths is not None or int(self.steps_) > 1 or _is_list(X):
            X, y = self.table(X, y, lengths)
        return super().certify(X, y, holdout=holdout, **options)

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        if int(self.steps_) == 1:
            return super()._known_rows(X, y, sample_weight)
        rows = scan.rows(np.asarray(X), y, None, n_jobs=self.n_jobs)
        require_finite(rows, self)
        return rows.encoded(self.classes_) if hasattr(self, "classes_") else rows

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the length of the gradient, where all targets are in the table."""
        if not self.last_only_:
            yield NotApplicable("elman.gradient", Message("why.step-targets"))
            return
        net, output = self.net, self._output()
        sums = rows.sum(_gradient_sums, net, int(self.steps_), self.activation, output, is_classifier(self))
        length = gradient_length(net, list(sums), rows.n_rows, float(self.alpha))
        yield Claim("elman.gradient", length, params={"rows": rows.n_rows, "alpha": float(self.alpha)})


def _joined(X: Any, y: Any, lengths: Any) -> tuple[Any, Any, Any]:
    """Return a list of sequences as rows and lengths; everything else as it came."""
    if not _is_list(X):
        return X, y, lengths
    if lengths is not None:
        raise ValueError("Elman network: a list of sequences has its own lengths; others cannot be given beside it.")
    lengths = np.array([len(steps) for steps in X])
    if y is not None and len(y) == len(X) and all(np.ndim(part) for part in y):
        y = np.concatenate([np.asarray(part) for part in y])
    return np.concatenate([np.asarray(steps, dtype=np.float64) for steps in X]), y, lengths


def _is_list(X: Any) -> bool:
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(np.ndim(steps) == 2 for steps in X)


def _unfolded(X: np.ndarray, T: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a table of sequences as steps (n, T, d) and their mask."""
    if T == 1:
        return X[:, None, :], np.ones((len(X), 1), dtype=bool)
    return X[:, 1:].reshape(len(X), T, -1), X[:, :1] >= T - np.arange(T)


def _gradient_sums(block: Block, net: Weights, T: int, unit: str, output: str, coded: bool) -> tuple[np.ndarray, ...]:
    Y = targets(np.asarray(block.y), len(net.c), coded)
    return tuple(gradient_sums(net, *_unfolded(block.X, T), Y, unit, output))


def _bounded(block: Block, net: Weights, T: int, unit: str) -> tuple[np.ndarray, np.ndarray]:
    Z, radius = last_outputs(net, *_unfolded(block.X, T), unit)
    return Z, radius.max(axis=1)


def _largest_radius(block: Block, net: Weights, T: int, unit: str) -> np.ndarray:
    return last_outputs(net, *_unfolded(block.X, T), unit)[1].max(axis=0)


def _values(block: Block, net: Weights, T: int, unit: str, radius: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return last_outputs(net, *_unfolded(block.X, T), unit)[0], radius[None, :]


_PARAMETERS = """
    Parameters
    ----------
    n_hidden : int
        Units of the recurrent layer.
    activation : "tanh", "logistic", "relu" or "identity"
    alpha : float >= 0
        Penalty of the weights.
    max_iter, tol : int, float
        Iterations of L-BFGS allowed, and the largest slope at which it ends.
    n_restarts : int
        Runs from different starts, of which the lowest is kept.
    max_steps : int or None
        Steps of the longest sequence that can be certified; None: as many as the longest training sequence has.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads of certificates; None uses all cores.

    Attributes
    ----------
    input_weights_ : (d, n_hidden), state_weights_ : (n_hidden, n_hidden), hidden_intercept_ : (n_hidden,)
    coef_ : (outputs, n_hidden), intercept_ : (outputs,)
    steps_ : int
    loss_ : float
"""


@dataclass(eq=False, repr=False)
class ElmanClassifier(ClassifierMixin, Elman):
    __doc__ = f"""Classification of the steps of sequences, or of whole sequences, by a recurrent network.
{_PARAMETERS}    classes_

    Examples
    --------
    Whether the last two of a stream of bits differ:

    >>> import numpy as np
    >>> from assay.neural_network import ElmanClassifier
    >>> bits = np.random.default_rng(0).integers(0, 2, 200)
    >>> differ = np.append(0, bits[1:] ^ bits[:-1])
    >>> model = ElmanClassifier(6, random_state=0).fit(bits[:, None], differ, lengths=[200])
    >>> model.score(bits[:, None], differ, lengths=[200])
    1.0
    """

    family = "elman.classifier"
    card = Card(
        name="Elman network classifier",
        task="classify",
        model=Networks(),
        strategy="log loss of steps + L2 on the weights",
        algorithm="back-propagation through time, L-BFGS",
        guarantee=("elman.gradient",),
        most_rows=5_000,
    )

    def _coded(self, y: np.ndarray, rows: Any) -> np.ndarray:
        self.classes_ = label_classes(self, rows)
        codes = np.concatenate([np.asarray(block.y) for block in rows.encoded(self.classes_).blocks()])
        return targets(codes, 1 if len(self.classes_) == 2 else len(self.classes_), True)

    def _output(self) -> str:
        return "logistic" if len(self.classes_) == 2 else "softmax"

    def _output_layer(self, Z: np.ndarray) -> np.ndarray:
        return self.classes_[(Z[:, 0] > 0).astype(int) if Z.shape[1] == 1 else Z.argmax(axis=1)]

    def decision_function(self, X: Any, lengths: Any = None) -> np.ndarray:
        """Return the outputs: (n,), positive for the second of two classes, or (n, classes)."""
        Z = self._outputs(X, lengths, None, False)[0]
        return Z[:, 0] if Z.shape[1] == 1 else Z

    def predict_proba(self, X: Any, lengths: Any = None) -> np.ndarray:
        """Return the probability of each class, for each step or each sequence."""
        Z = self._outputs(X, lengths, None, False)[0]
        return np.hstack([expit(-Z), expit(Z)]) if Z.shape[1] == 1 else softmax(Z, axis=1)

    def predict_log_proba(self, X: Any, lengths: Any = None) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, lengths))

    def score(self, X: Any, y: Any, sample_weight: Any = None, lengths: Any = None) -> float:
        """Return the share of steps, or sequences, that are predicted correctly."""
        predicted = self.predict(X, lengths)
        return float(accuracy_score(_joined(X, y, lengths)[1], predicted, sample_weight=sample_weight))

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the scores at the last steps."""
        yield Scores(_bounded, (self.net, int(self.steps_), self.activation), True)


@dataclass(eq=False, repr=False)
class ElmanRegressor(RegressorMixin, Elman):
    __doc__ = f"""Regression on the steps of sequences, or on whole sequences, by a recurrent network.
{_PARAMETERS}
    Examples
    --------
    The value before the last:

    >>> import numpy as np
    >>> from assay.neural_network import ElmanRegressor
    >>> x = np.random.default_rng(0).uniform(-1, 1, 300)
    >>> model = ElmanRegressor(4, activation="identity", alpha=0, tol=1e-6, random_state=0)
    >>> model = model.fit(x[:, None], np.append(0, x[:-1]), lengths=[300])
    >>> model.score(x[:, None], np.append(0, x[:-1]), lengths=[300]) > 0.999
    True
    """

    family = "elman.regressor"
    card = Card(
        name="Elman network regression",
        task="regress",
        model=Networks(),
        strategy="squared error of steps + L2 on the weights",
        algorithm="back-propagation through time, L-BFGS",
        guarantee=("elman.gradient",),
        most_rows=5_000,
    )

    def _coded(self, y: np.ndarray, rows: Any) -> np.ndarray:
        y = column_or_1d(y, warn=True) if y.ndim == 2 and y.shape[1] == 1 else y
        return np.asarray(y, dtype=np.float64).reshape(len(y), -1)

    def _output_layer(self, Z: np.ndarray) -> np.ndarray:
        return Z[:, 0] if Z.shape[1] == 1 else Z

    def score(self, X: Any, y: Any, sample_weight: Any = None, lengths: Any = None) -> float:
        """Return the coefficient of determination over steps, or sequences."""
        predicted = self.predict(X, lengths)
        return float(r2_score(_joined(X, y, lengths)[1], predicted, sample_weight=sample_weight))

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predictions at the last steps."""
        packed = (self.net, int(self.steps_), self.activation)
        radius = np.max(rows.map(_largest_radius, *packed), axis=0)  # the checker has one bound for the rows of a block
        yield Predictions(_values, (*packed, radius))
