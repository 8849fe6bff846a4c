"""Classification and regression by a feed-forward network.

    minimise over W, b   1/S sum_i s_i loss(y_i, f(x_i)) + alpha / (2 S) sum |W|^2

f passes x through layers a <- f(a W + b); the last layer has one logistic unit for two classes, a softmax for more, one
logistic unit per label if rows have several. Of a regression the outputs are the sums of the last layer, or their
exponentials for counts (Poisson deviance).

Claims: errors or mean squared error, hold-out statements from the checker's own forward pass, and the length of the
        objective's gradient. The objective has many stationary points, so that nothing is said about how far it is
        above its minimum.
Method: back-propagation with Adam, gradient descent with momentum, L-BFGS, annealing or a genetic search.

`lambda_by_cross_validation` and `hidden_units_by_trial` choose a network.
"""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.callback import with_callbacks
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.utils.multiclass import type_of_target, unique_labels
from sklearn.utils.validation import column_or_1d

from assay.base import label_classes
from assay.card import Card, log
from assay.claims.claim import Certificate
from assay.data.blocks import Block
from assay.guarantees.evidence import Evidence, Predictions, Scores
from assay.neural_network._base import Data, Network, learns_by_epochs
from assay.neural_network._claims import Networks
from assay.neural_network._network import ATTRIBUTES, PARAMETERS, outputs
from assay.neural_network._training import targets
from assay.params import Choice, refuse
from assay.scan import Rows

_UNIT, _LEAST = 2.0**-53, 1e-140
LAMBDAS = (0.5, 0.9, 0.99, 0.999, 0.9999)


_SOLVER_LOOPS = tuple({"solver": name, "max_iter": 2} for name in ("lbfgs", "sgd", "standard_bp", "accumulated_bp"))


@dataclass(eq=False, repr=False)
class MLPClassifier(ClassifierMixin, Network):
    __doc__ = f"""Classifier by a multi-layer feed-forward network.

    Started from the same seed it makes scikit-learn's steps: the same weights up to rounding, the same `loss_curve_`.

    Parameters
    ----------
{PARAMETERS}    loss : "log_loss" or "squared_error"
        What is minimised: the log loss of logistic or softmax outputs, or E = 1/2 sum_j (y^_j - y_j)^2 of logistic
        outputs.

{ATTRIBUTES}    classes_
        The classes in order; for rows with several labels their numbers.

    Examples
    --------
    >>> from assay.neural_network import MLPClassifier
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> xor = MLPClassifier(4, "tanh", solver="lbfgs", random_state=1).fit(X, y)
    >>> xor.predict(X).tolist()
    [0, 1, 1, 0]
    """

    family = "network.classifier"
    further_loops = _SOLVER_LOOPS
    card = Card(
        name="Neural network classifier",
        task="classify",
        model=Networks(),
        strategy="log loss or squared error + L2 on the weights",
        algorithm="back-propagation: Adam, momentum, L-BFGS; or annealing, genetic search, several starts",
        guarantee=("network.gradient",),
        most_rows=50_000,
        search={"alpha": log(1e-5, 1), "learning_rate_init": log(3e-4, 0.03)},
        first=8,
    )

    constraints: ClassVar = {"loss": Choice("log_loss", "squared_error")}

    _: KW_ONLY
    loss: str = "log_loss"

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "MLPClassifier":
        """Fit to rows X, labels y (or a table of 0 and 1, one column per label) and row weights.

        X may be a file or a cluster's table with solver="lbfgs", which is a sum over rows.
        """
        return self._fit((X, y, sample_weight), warm=self.warm_start and hasattr(self, "coefs_"))

    @learns_by_epochs
    @with_callbacks
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> "MLPClassifier":
        """Visit these rows once, from where the last call ended. `classes` lists all labels, in the first call."""
        first = not hasattr(self, "coefs_")
        if first and classes is None:
            raise refuse(self, "the first call of partial_fit needs classes, the list of all labels.")
        if not first and classes is not None and not np.array_equal(unique_labels(classes), self.classes_):
            raise refuse(self, f"classes must be those of the first call, {self.classes_}; got {classes!r}.")
        if self.early_stopping:
            raise refuse(self, "partial_fit does not support early_stopping=True, since it sees each row once.")
        known = unique_labels(classes) if first else self.classes_
        return self._fit((X, y, sample_weight), warm=not first, once=True, classes=known)

    def _data(self, rows: Any, warm: bool, classes: np.ndarray | None) -> Data:
        y = getattr(rows, "y", None)
        y = y if isinstance(y, np.ndarray) else None  # of files it is the name of a column
        if y is not None and y.ndim == 2 and y.shape[1] == 1:
            y = rows.y = column_or_1d(y, warn=True)
        several = y is not None and y.ndim == 2
        if several and type_of_target(y) != "multilabel-indicator":
            raise refuse(self, f"y with columns must hold 0 and 1, one column per label; got {type_of_target(y)}.")
        if several:
            classes = np.arange(rows.y.shape[1])
        elif classes is None:
            classes = label_classes(self, rows, least=1)
        if warm and not np.array_equal(classes, self.classes_):
            raise refuse(
                self,
                "warm_start can only be used where `y` has the same classes as in the previous call to fit. Previously "
                f"got {self.classes_}, `y` has {classes}",
            )
        self.classes_, self.several_labels_ = classes, np.array(several, dtype=np.int64)
        if several:
            return Data(rows, len(classes), False, self._table(rows, lambda: y))
        rows = rows.encoded(classes)
        n_outputs = 1 if len(classes) <= 2 else len(classes)
        return Data(rows, n_outputs, True, self._table(rows, lambda: targets(rows.y, n_outputs, True)))

    def _output(self) -> str:
        if self.loss == "squared_error":
            return "squared_logistic"
        return "logistic" if self.several_labels_ or len(self.classes_) <= 2 else "softmax"

    def _held_score(self, Z: np.ndarray, Y: np.ndarray, weight: np.ndarray | None) -> float:
        truth = Y.argmax(axis=1) if not self.several_labels_ and Y.shape[1] > 1 else Y.astype(np.int64)
        return float(accuracy_score(truth, self._winners(Z).reshape(truth.shape), sample_weight=weight))

    def _winners(self, Z: np.ndarray) -> np.ndarray:
        """Return the position of the class that scores decide for, or which labels they give."""
        if self.several_labels_:
            return (Z > 0).astype(np.int64)
        if len(self.classes_) == 1:
            return np.zeros(len(Z), dtype=np.int64)
        return (Z[:, 0] > 0).astype(np.int64) if Z.shape[1] == 1 else Z.argmax(axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted label of each row; with several labels a table of 0 and 1."""
        winners = self._winners(self._scores(X))
        return winners if self.several_labels_ else self.classes_[winners]

    def _scikit_state(self, estimator: Any) -> dict[str, Any]:
        from sklearn.preprocessing import LabelBinarizer

        return {"_label_binarizer": LabelBinarizer().fit(self.classes_)}

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, n_classes); with several labels that of each label."""
        P = outputs(self._scores(X), self.out_activation_)
        if self.several_labels_:
            return P
        if len(self.classes_) == 1:
            return np.ones_like(P)
        if P.shape[1] == 1:
            return np.hstack([1 - P, P])
        return P / P.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    # Certificate

    def certify(self, *args: Any, **options: Any) -> Certificate:  # type: ignore[override]
        """As `Learner.certify`; for one label per row."""
        if getattr(self, "several_labels_", False):
            raise refuse(self, "certificates are about one label per row; fit one model to each column of y.")
        if len(getattr(self, "classes_", (0, 1))) < 2:
            raise refuse(self, "a certificate needs two classes; all training rows have one label.")
        return super().certify(*args, **options)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the scores."""
        logistic = self.out_activation_ in ("softmax", "logistic")
        yield Scores(self._bounded_scores, (2 * float(self._rounding(rows).max()),), logistic)

    def _bounded_scores(self, block: Block, radius: float) -> tuple[np.ndarray, np.ndarray]:
        """Return scores and how far rounding can move them: one bound for all rows and, where it leaves a row open, its
        own."""
        Z = self._double_scores(block)
        ranked = np.abs(Z) if Z.shape[1] == 1 else np.partition(Z, -2, axis=1)
        lead = ranked[:, 0] if Z.shape[1] == 1 else (ranked[:, -1] - ranked[:, -2]) / 2
        radii, left = np.full(len(Z), radius), np.flatnonzero(~(lead > radius))
        radii[left] = 2 * self._row_rounding(block.X[left]).max(axis=1, initial=0.0)
        return Z, radii


@dataclass(eq=False, repr=False)
class MLPRegressor(RegressorMixin, Network):
    __doc__ = f"""Regression by a multi-layer feed-forward network.

    Started from the same seed it makes scikit-learn's steps: the same weights up to rounding, the same `loss_curve_`
    (except L-BFGS with several targets, where scikit-learn's loss and gradient belong to different objectives).

    Parameters
    ----------
    loss : "squared_error" or "poisson"
        Half the squared error of the outputs, or half the Poisson deviance of their exponentials.
{PARAMETERS}
{ATTRIBUTES}
    Examples
    --------
    >>> import numpy as np
    >>> from assay.neural_network import MLPRegressor
    >>> x = np.linspace(-3, 3, 50)[:, None]
    >>> model = MLPRegressor(hidden_layer_sizes=8, activation="tanh", solver="lbfgs", alpha=0, max_iter=2000,
    ...                      tol=1e-8, random_state=0).fit(x, np.sin(x[:, 0]))
    >>> bool(np.abs(model.predict(x) - np.sin(x[:, 0])).max() < 0.02)
    True
    """

    family = "network.regressor"
    further_loops = _SOLVER_LOOPS
    card = Card(
        name="Neural network regression",
        task="regress",
        model=Networks(),
        strategy="squared error or Poisson deviance + L2 on the weights",
        algorithm="back-propagation: Adam, momentum, L-BFGS; or annealing, genetic search, several starts",
        guarantee=("network.gradient",),
        most_rows=50_000,
        search={"alpha": log(1e-5, 1), "learning_rate_init": log(3e-4, 0.03)},
        first=7,
    )

    constraints: ClassVar = {"loss": Choice("squared_error", "poisson")}

    loss: str = "squared_error"

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "MLPRegressor":
        """Fit to rows X, targets y, (n,) or (n, targets), and row weights.

        X may be a file or a cluster's table with solver="lbfgs", which is a sum over rows.
        """
        return self._fit((X, y, sample_weight), warm=self.warm_start and hasattr(self, "coefs_"))

    @learns_by_epochs
    @with_callbacks
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> "MLPRegressor":
        """Visit these rows once, from where the last call ended."""
        if self.early_stopping:
            raise refuse(self, "partial_fit does not support early_stopping=True, since it sees each row once.")
        return self._fit((X, y, sample_weight), warm=hasattr(self, "coefs_"), once=True)

    def _data(self, rows: Any, warm: bool, classes: np.ndarray | None) -> Data:
        y = getattr(rows, "y", None)
        y = y if isinstance(y, np.ndarray) else None  # of files it is the name of a column
        if y is not None and y.ndim == 2 and y.shape[1] == 1:
            y = rows.y = column_or_1d(y, warn=True)
        if self.loss == "poisson" and any(rows.map(_has_negative)):
            raise refuse(self, 'loss="poisson" needs y >= 0 (counts or rates); some targets are negative.')
        several = max(rows.map(_columns)) if y is None else 1 if y.ndim == 1 else y.shape[1]
        return Data(rows, several, False, self._table(rows, lambda: rows.y.reshape(len(rows.y), -1)))

    def _output(self) -> str:
        return "exp" if self.loss == "poisson" else "identity"

    def _held_score(self, Z: np.ndarray, Y: np.ndarray, weight: np.ndarray | None) -> float:
        said = outputs(Z, self._output())
        return float(r2_score(Y, said, sample_weight=weight)) if np.isfinite(said).all() else np.nan

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted value of each row, (n,), or (n, targets)."""
        said = outputs(self._scores(X), self.out_activation_)
        return said.ravel() if said.shape[1] == 1 else said

    # Certificate

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predictions."""
        yield Predictions(self._bounded, (2 * self._rounding(rows),))

    def _bounded(self, block: Block, radius: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._double_scores(block), radius


def _has_negative(block: Block) -> bool:
    return bool(np.any(np.asarray(block.y) < 0))


def _columns(block: Block) -> int:
    return 1 if np.ndim(block.y) == 1 else np.shape(block.y)[1]


class Trial(NamedTuple):
    """The best value, all values tried, and the error of each."""

    best: Any
    values: tuple
    errors: np.ndarray


def lambda_by_cross_validation(model: Any, X: Any, y: Any, grid: Sequence[float] = LAMBDAS, *, folds: Any = 5) -> Trial:
    """Return the lambda of E = lambda mean loss + (1 - lambda) sum w^2 with the least error in cross-validation.

    Errors are the misclassified share, or 1 - R^2 of a regression, means over the folds.

    Parameters
    ----------
    model : learner
        Network with the other parameters.
    X : array-like
        Rows.
    y : array-like
        Labels or targets.
    grid : sequence of float, default=LAMBDAS
        Values to try.
    folds : int or splitter, default=5
        Number of folds, or what draws them.

    Returns
    -------
    Trial
        Error of each, and the best.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.neural_network import MLPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> net = MLPClassifier(5, solver="lbfgs", max_iter=300, random_state=0)
    >>> lambda_by_cross_validation(net, X, y, (0.01, 0.999)).best
    0.999
    """
    values = _values("grid", grid)
    nets = (clone(model).set_params(lam=value) for value in values)
    errors = [1 - cross_val_score(net, X, y, cv=folds, error_score="raise").mean() for net in nets]
    return Trial(values[int(np.argmin(errors))], values, np.array(errors))


def hidden_units_by_trial(
    model: Any, X: Any, y: Any, sizes: Sequence[Any], *, validation: float = 0.25, random_state: Any = 0
) -> Trial:
    """Return the hidden layer sizes with the least error on rows kept out; of equals that with fewest weights.

    A share `validation` of the rows is kept out once, the same for all sizes. Choosing by these rows uses them up: a
    statement about new data needs others.

    Parameters
    ----------
    model : learner
        Network with the other parameters.
    X : array-like
        Rows.
    y : array-like
        Labels or targets.
    sizes : sequence of tuple of int
        Hidden layer sizes to try.
    validation : float, default=0.25
        Share of the rows that is kept out.
    random_state : int, RandomState or None, default=0
        Seed of what is drawn.

    Returns
    -------
    Trial
        Error of each, and the best.
    """
    values = _values("sizes", sizes)
    y = np.asarray(y)
    labels = y if is_classifier(model) and y.ndim == 1 else None
    kept, held = train_test_split(np.arange(len(y)), test_size=validation, random_state=random_state, stratify=labels)
    X = X if hasattr(X, "tocsr") else np.asarray(X)
    fits = [clone(model).set_params(hidden_layer_sizes=size).fit(X[kept], y[kept]) for size in values]
    errors = np.array([1 - fitted.score(X[held], y[held]) for fitted in fits])
    best = min(range(len(fits)), key=lambda k: (errors[k], len(fits[k].network_weights_)))
    return Trial(values[best], values, errors)


def _values(name: str, given: Sequence[Any]) -> tuple:
    values = tuple(given)
    if not values:
        raise ValueError(f"{name} must hold at least one value to try; got none.")
    return values
