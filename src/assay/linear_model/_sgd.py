"""Linear models by stochastic and mini-batch gradient descent, for the losses of `assay.losses` listed below.

    minimise over w, b    P(w, b) = alpha/2 |w|^2 + 1/n sum_i s_i c(y_i) loss(y_i, <w, x_i> + b)

Claims: the duality gap of the problem at the model (all convex losses, alpha > 0), and |w - w*| <= sqrt(2
        gap / alpha). Without penalty: the distance to the closed form (squared error), or stationarity (logistic).
Method: updates from one row, or from batches, drawn in a new order each epoch; moves by one of the rules of
        `assay.optim.descent`. A fit ends when the mean loss met in an epoch stops falling, or by early
        stopping on rows that were kept out.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import column_or_1d

from assay.base import label_classes, read_rows
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.linear_model._base import (
    LinearClassifier,
    LinearRegressor,
    SparseCoefficients,
    one_against_rest,
    told_weights,
)
from assay.linear_model._least_squares import suboptimality
from assay.linear_model._logistic_problem import Problem, stationarity
from assay.linear_model._sgd_base import LOSSES, PARAMETERS, Descent, in_memory
from assay.losses import named
from assay.messages import Message
from assay.params import Choice, Number, check, refuse
from assay.scan import Rows
from assay.theory.spaces import Linear, LinearFunctions


def _has_probabilities(model: Any) -> bool:
    if model.loss not in ("log_loss", "sigmoid_squared", "modified_huber"):
        raise AttributeError(f"probability estimates are not available for loss={model.loss!r}")
    return True


def _clipped_probabilities(scores: np.ndarray) -> np.ndarray:
    """Return (clip(f, -1, 1) + 1) / 2, of more than two classes divided by their sum, or equal shares if it is 0."""
    shares = (np.clip(scores, -1, 1) + 1) / 2
    if scores.ndim == 1:
        return np.column_stack([1 - shares, shares])
    total = shares.sum(axis=1, keepdims=True)
    return np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1.0 / scores.shape[1])


@dataclass(eq=False, repr=False)
class SGDClassifier(ClassifierMixin, LinearClassifier, Descent):
    __doc__ = f"""Linear classifier by stochastic gradient descent. More than two classes are learnt one
    against the rest.

    Rows must be in memory, dense or sparse; they are visited in random order.

    Parameters
    ----------
    loss : "hinge", "log_loss", "squared_hinge", "modified_huber", "perceptron", "exponential", "sigmoid_squared", or a
    loss of numbers: "squared_error", "absolute_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive"
        "sigmoid_squared" is the squared error of the sigmoid. Its gradient vanishes for rows far on the
        wrong side, where
        that of "log_loss" is largest; it is here to be compared.
    epsilon : float >= 0
        Where "huber" turns from square to line, and what the epsilon-insensitive losses leave free.
    class_weight : None, "balanced" or dict
        Weight of each class in the loss; "balanced" is n / (n_classes n_k). With more than two classes a
        hyperplane weighs its own class by it and the others by one.
{PARAMETERS}    class_weight_ : (n_classes,)
        The weights of the classes.

    Examples
    --------
    >>> from assay.linear_model import SGDClassifier
    >>> model = SGDClassifier(random_state=0).fit([[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1])
    >>> model.predict([[-3.0], [3.0]]).tolist()
    [0, 1]
    """

    probabilities_of_family = False  # those of a loss that is not the logistic one follow another rule
    card = Card(
        name="Linear classifier by stochastic gradients",
        task="classify",
        model=Linear(),
        strategy="a loss of choice + L2",
        algorithm="stochastic or mini-batch gradient descent: momentum, Adagrad, RMSProp, Adam",
        guarantee=(
            "linear-svm.gap",
            "logistic.gap",
            "duality-gap",
            "solution.enclosure",
            "suboptimality",
            "vc",
            "margin.kernel",
            "margin.multiclass",
            "pac-bayes.linear",
        ),
    )

    constraints: ClassVar = {"loss": Choice(*LOSSES), "epsilon": Number(low=0.0)}
    loss_functions: ClassVar = {
        name: (named(name), 0.1) for name in LOSSES if name not in ("exponential", "sigmoid_squared")
    }

    loss: str = "hinge"
    _: KW_ONLY
    epsilon: float = 0.1
    learning_rate: str = "optimal"
    power_t: float = 0.5
    class_weight: Any = None

    @property
    def _bounds_l1(self) -> bool:
        return self.penalty == "l1"

    @with_callbacks
    def fit(
        self, X: Any, y: Any = None, coef_init: Any = None, intercept_init: Any = None, sample_weight: Any = None
    ) -> "SGDClassifier":
        """Fit to rows X (an array, a frame or a SciPy sparse matrix), labels y and row weights, starting from the
        coefficients given, if any."""
        check(self)
        warm = self.warm_start and hasattr(self, "coef_")
        rows = read_rows(self, X, y, sample_weight, reset=not warm)
        classes = label_classes(self, rows)
        if warm and not np.array_equal(classes, self.classes_):
            raise refuse(self, f"warm_start needs the classes of the last fit, {self.classes_}; got {classes}.")
        self.classes_ = classes
        return self._learn(rows, (X, y, sample_weight), warm=warm, start=(coef_init, intercept_init))

    @with_callbacks
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> "SGDClassifier":
        """Visit these rows once, starting from where the last call ended; the learning rate goes on falling.

        `classes` lists all labels that will come, in the first call. `max_iter` and `tol` play no part.
        """
        check(self)
        if self.early_stopping:
            raise refuse(self, "early_stopping should be False with partial_fit, which sees each row once.")
        first = not hasattr(self, "coef_")
        if first and classes is None:
            raise refuse(self, "the first call of partial_fit needs classes, the list of all labels.")
        if classes is not None and not first and not np.array_equal(unique_labels(classes), self.classes_):
            raise refuse(self, f"classes must be those of the first call, {self.classes_}; got {classes!r}.")
        rows = read_rows(self, X, y, sample_weight, reset=first)
        self.classes_ = unique_labels(classes) if first else self.classes_
        if self.class_weight == "balanced":
            raise refuse(
                self,
                "class_weight 'balanced' is not supported for partial_fit. In order to use 'balanced' weights, use "
                "compute_class_weight('balanced', classes=classes, y=y). In place of y you can use a large enough "
                "sample of the full training set target to properly estimate the class frequency distributions. "
                "Pass the resulting weights as the class_weight parameter.",
            )
        return self._learn(rows, (X, y, sample_weight), warm=not first, once=True)

    def _learn(
        self, rows: Any, given: tuple, *, warm: bool, once: bool = False, start: tuple[Any, Any] = (None, None)
    ) -> "SGDClassifier":
        rows = in_memory(self, rows.encoded(self.classes_))
        self.class_weight_ = self._class_weights(rows.y)
        codes = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        targets = [(np.where(rows.y == code, 1.0, -1.0), self._costs(rows, code)) for code in codes]
        self._descend_all(rows, targets, given, warm=warm, once=once, start=start)
        self._keep_type(given[0])
        return self

    def _class_weights(self, codes: np.ndarray) -> np.ndarray:
        """Return the weight of each class, ones if none are asked for."""
        if self.class_weight is None:
            return np.ones(len(self.classes_))
        weight = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[codes])
        if not (np.isfinite(weight) & (weight > 0)).all():
            raise refuse(self, f"class_weight must hold finite numbers > 0; got {self.class_weight!r}.")
        return weight

    def _costs(self, rows: Any, code: int) -> np.ndarray:
        """Return the weight of each row for the hyperplane of class `code`; empty if all are one."""
        others = self.class_weight_[0] if len(self.classes_) == 2 else 1.0
        if rows.weight is None and self.class_weight is None:
            return np.empty(0)
        return np.where(rows.y == code, self.class_weight_[code], others) * (
            1.0 if rows.weight is None else rows.weight
        )

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, n_classes); for the losses of the sigmoid, and "modified_huber":
        (clip(f, -1, 1) + 1) / 2, of more than two classes divided by their sum."""
        scores = self.decision_function(X)
        if self.loss == "modified_huber":
            return _clipped_probabilities(scores)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        shares = expit(scores)
        return shares / shares.sum(axis=1, keepdims=True)

    def _row_losses(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        losses = one_against_rest(self.classes_, named(self.loss, float(self.epsilon)), y, scores)
        return (told_weights(self, y) * losses).sum(axis=1) / len(y)

    @property
    def logistic_scores(self) -> bool:
        return self.loss == "log_loss" and len(self.classes_) == 2

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap and the distance to the exact optimum that it implies; without a penalty, for the
        logistic loss, how little nearby coefficients could gain."""
        if not named(self.loss).labels:
            yield NotApplicable("duality-gap", Message("why.numeric-target"))
            return
        if self.loss == "log_loss" and self.unpenalised and len(self.classes_) == 2:
            problem = Problem(rows, np.inf, self.class_weight_, bool(self.fit_intercept), 2)
            yield stationarity(problem, self.coef_, self.intercept_, weighted=self.class_weight is not None)
        yield from self._gap_facts(rows, None if self.class_weight is None else tuple(self.class_weight_.tolist()))


@dataclass(eq=False, repr=False)
class SGDRegressor(RegressorMixin, SparseCoefficients, LinearRegressor, Descent):
    __doc__ = f"""Linear regression by stochastic gradient descent.

    Rows must be in memory, dense or sparse; they are visited in random order.

    Parameters
    ----------
    loss : "squared_error" (half the square), "absolute_error", "huber", "epsilon_insensitive" or
    "squared_epsilon_insensitive"
    epsilon : float >= 0
        Residuals up to epsilon cost nothing in the epsilon-insensitive losses; beyond it "huber" grows linearly.
{PARAMETERS}
    Examples
    --------
    >>> from assay.linear_model import SGDRegressor
    >>> model = SGDRegressor(random_state=0, alpha=0.0, tol=1e-9).fit([[-1.0], [0.0], [1.0]], [1.0, 3.0, 5.0])
    >>> model.predict([[2.0]]).round(2).tolist()
    [7.0]
    """

    card = Card(
        name="Linear regression by stochastic gradients",
        task="regress",
        model=LinearFunctions(),
        strategy="a loss of choice + L2",
        algorithm="stochastic or mini-batch gradient descent: momentum, Adagrad, RMSProp, Adam",
        guarantee=("ridge.gap", "linear-svr.gap", "duality-gap", "solution.enclosure", "suboptimality"),
    )

    constraints: ClassVar = {
        "loss": Choice(*(name for name in LOSSES if not named(name).labels)),
        "epsilon": Number(low=0.0),
    }

    loss_functions: ClassVar = {name: (named(name), 0.1) for name in LOSSES if not named(name).labels}

    loss: str = "squared_error"
    _: KW_ONLY
    epsilon: float = 0.1

    @with_callbacks
    def fit(
        self, X: Any, y: Any = None, coef_init: Any = None, intercept_init: Any = None, sample_weight: Any = None
    ) -> "SGDRegressor":
        """Fit to rows X (an array, a frame or a SciPy sparse matrix), targets y and row weights, starting from the
        coefficients given, if any."""
        check(self)
        warm = self.warm_start and hasattr(self, "coef_")
        rows = read_rows(self, X, y, sample_weight, reset=not warm)
        return self._learn(rows, (X, y, sample_weight), warm=warm, start=(coef_init, intercept_init))

    @with_callbacks
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SGDRegressor":
        """Visit these rows once, starting from where the last call ended; the learning rate goes on falling.

        `max_iter` and `tol` play no part. Without `eta0` the first rate is chosen from the rows of the first call.
        """
        check(self)
        if self.early_stopping:
            raise refuse(self, "early_stopping should be False with partial_fit, which sees each row once.")
        warm = hasattr(self, "coef_")
        rows = read_rows(self, X, y, sample_weight, reset=not warm)
        return self._learn(rows, (X, y, sample_weight), warm=warm, once=True)

    def _learn(
        self, rows: Any, given: tuple, *, warm: bool, once: bool = False, start: tuple[Any, Any] = (None, None)
    ) -> "SGDRegressor":
        rows = in_memory(self, rows)
        target = column_or_1d(rows.y, warn=True).astype(np.float64)
        costs = np.empty(0) if rows.weight is None else rows.weight
        self._descend_all(rows, [(target, costs)], given, warm=warm, once=once, start=start)
        self.coef_ = self.coef_[0]
        self._keep_type(given[0])
        return self

    def _row_losses(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        return named(self.loss, float(self.epsilon)).value(y, scores[:, 0]) / len(y)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap and the distance to the exact optimum that it implies; without a penalty, for the
        squared error, how far the objective is above that of the normal equations."""
        if self.loss == "squared_error" and self.unpenalised:
            yield suboptimality(self, rows)
        yield from self._gap_facts(rows)
