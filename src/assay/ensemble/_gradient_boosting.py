"""Gradient boosting with exact regression trees (Friedman, Annals of Statistics 29, 2001), as scikit-learn defines it.

    F_0 from `init`,    F_m(x) = F_{m-1}(x) + nu * tree_m(x),    tree_m by least squares on -dL/dF at F_{m-1}

The rounds are in `_exact_rounds`. Every threshold is tried; the columns are sorted once for all trees.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import sklearn.ensemble as scikit
from sklearn.base import clone, is_classifier
from sklearn.callback import with_callbacks
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.card import Card
from assay.ensemble._boosted import Boosted, BoostedClassifier, BoostedRegressor
from assay.ensemble._exact_rounds import Course, Scored
from assay.ensemble._losses import Loss
from assay.fitlog import FitLog
from assay.params import Choice, Count, Flag, Maybe, Number, check, refuse
from assay.scan import one_blas_thread
from assay.tree._claims import OfAnySize
from assay.tree._classes import DecisionTreeRegressor
from assay.tree._nodes import Nodes, tree_at
from assay.tree._predict import leaves
from assay.tree._reading import Read, read_columns, read_labelled
from assay.tree.growth._growers import feature_count

_OF_TREES = (
    "max_depth", "min_samples_split", "min_samples_leaf", "min_weight_fraction_leaf", "min_impurity_decrease",
    "max_features", "max_leaf_nodes", "ccp_alpha",
)  # fmt: skip
_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(eq=False, repr=False)
class _GradientBoosting(Boosted):
    """What the classifier and the regressor share."""

    constraints: ClassVar = {
        "learning_rate": Number(low=0.0),
        "n_estimators": Count(),
        "subsample": Number(low=0.0, high=1.0, open_low=True),
        "criterion": Choice("deprecated", "squared_error", "friedman_mse"),
        "min_weight_fraction_leaf": Number(low=0.0, high=0.5),
        "max_depth": Maybe(Count()),
        "min_impurity_decrease": Number(low=0.0),
        "verbose": Maybe(Count(low=0), True, False),
        "max_leaf_nodes": Maybe(Count(low=2)),
        "warm_start": Flag,
        "validation_fraction": Number(low=0.0, high=1.0, open_low=True, open_high=True),
        "n_iter_no_change": Maybe(Count()),
        "tol": Number(low=0.0),
        "ccp_alpha": Number(low=0.0),
    }

    _: KW_ONLY
    loss: str
    learning_rate: float = 0.1
    n_estimators: int = 100
    subsample: float = 1.0
    criterion: str = "deprecated"
    min_samples_split: int | float = 2
    min_samples_leaf: int | float = 1
    min_weight_fraction_leaf: float = 0.0
    max_depth: int | None = 3
    min_impurity_decrease: float = 0.0
    init: Any = None
    random_state: Any = None
    max_features: Any = None
    verbose: int = 0
    max_leaf_nodes: int | None = None
    warm_start: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int | None = None
    tol: float = 1e-4
    ccp_alpha: float = 0.0
    n_jobs: int | None = None

    # Fitting

    def _fit(self, X: Any, y: Any, sample_weight: Any, monitor: Any) -> None:
        check(self)
        self._check_init()
        if self.criterion != "deprecated":
            warnings.warn(
                f"{type(self).__name__}: the parameter criterion has no effect and goes away with scikit-learn 1.11; "
                "leave it out.",
                FutureWarning,
                stacklevel=4,
            )
        more = self.warm_start and self.has_nodes
        data = self._read(X, y, sample_weight, not more)
        self.max_features_ = feature_count(self, self.n_features_in_)
        data, held = self._hold_out(data)
        if more and self.n_estimators < self.n_estimators_:
            raise refuse(
                self,
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"estimators_.shape[0]={self.n_estimators_} when warm_start==True: fits add trees and take none away.",
            )
        if not more:
            self._begin(data, sample_weight is not None)
        parts = [
            Scored(self._loss(), part, np.ascontiguousarray(self._scores(part.X, more).T), self.n_jobs)
            for part in (data, held)
            if part is not None
        ]
        with one_blas_thread(), FitLog(self, self.n_estimators, *self._shown(data)) as log:
            Course(self, parts[0], parts[1] if held is not None else None, data).run(monitor, log)
        self._tell_divergence()

    def _tell_divergence(self) -> None:
        """Warn if the training loss ends far above where it began: then steps throw each other back."""
        course = self.train_score_
        if len(course) > 1 and course[0] > 0 and not course[-1] <= 2 * course[0]:
            off = "probabilities" if is_classifier(self) else "predictions"
            warnings.warn(
                f"{type(self).__name__}: the training loss rose from {course[0]:.4g} to {course[-1]:.4g}: its steps "
                f"are too long for these rows, and some {off} are far off; lower learning_rate "
                f"({self.learning_rate:g}).",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _scores(self, X: np.ndarray, more: bool) -> np.ndarray:
        return self._raw(X) if more else self._first(X)

    def _begin(self, data: Read, weighted: bool) -> None:
        """Forget an earlier fit; fit what stands before the first tree."""
        self.drop_nodes()
        for name in ("oob_improvement_", "oob_scores_", "oob_score_"):
            self.__dict__.pop(name, None)
        self._batches: list[tuple[int, float, dict[str, Any]]] = []
        self.train_score_ = np.empty(0)
        self._rng = check_random_state(self.random_state)
        outputs = self._loss().n_outputs
        self.base_score_ = np.zeros(outputs)
        if isinstance(self.init, str):
            self.init_: Any = "zero"
            return
        self.init_ = self._default_init() if self.init is None else clone(self.init)
        weight = data.weight if data.weight is not None else np.ones(len(data.y)) if weighted else None
        self._fit_init(data.X, data.y, weight)
        if self.init is None:
            self.base_score_ = self._linked(data.X[:1])[0]

    def _fit_init(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> None:
        if weight is None:
            self.init_.fit(X, y)
            return
        why = f"The initial estimator {type(self.init_).__name__} does not support sample weights."
        try:
            self.init_.fit(X, y, sample_weight=weight)
        except TypeError as error:
            if "unexpected keyword argument 'sample_weight'" in str(error):
                raise refuse(self, why) from error
            raise
        except ValueError as error:
            if "stepname__parameter" in str(error):  # a pipeline takes weights for its steps only
                raise refuse(self, why) from error
            raise

    def _check_init(self) -> None:
        needed = ("fit", "predict_proba") if is_classifier(self) else ("fit", "predict")
        if self.init is None or (isinstance(self.init, str) and self.init == "zero"):
            return
        if isinstance(self.init, (str, type)) or not all(hasattr(self.init, name) for name in needed):
            raise refuse(
                self,
                f"The 'init' parameter of {type(self).__name__} must be a str among {{'zero'}}, None or an object "
                f"implementing 'fit' and '{needed[1]}'. Got {self.init!r} instead.",
            )

    def _hold_out(self, data: Read) -> tuple[Read, Read | None]:
        """Return the rows to fit to and, if the fit may stop early, those to validate with."""
        if self.n_iter_no_change is None:
            return data, None
        classes = data.y.astype(np.float64) if is_classifier(self) else None
        fit, held = train_test_split(
            np.arange(len(data.y)),
            random_state=self.random_state,
            test_size=float(self.validation_fraction),
            stratify=classes,
        )
        if is_classifier(self) and len(np.unique(data.y[fit])) < len(self.classes_):
            raise refuse(
                self,
                "The training data after the early stopping split is missing some classes. Try using another random "
                "seed, or a smaller validation_fraction.",
            )
        return data.take(fit), data.take(held)

    def _tree_parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _OF_TREES} | {"n_jobs": self.n_jobs}

    # What stands before the first tree

    def _linked(self, X: np.ndarray) -> np.ndarray:
        """Return what `init_` predicts, as scores (rows, outputs)."""
        raise NotImplementedError

    def _default_init(self) -> Any:
        raise NotImplementedError

    def _first(self, X: np.ndarray) -> np.ndarray:
        if self.init is None or isinstance(self.init, str):
            return super()._first(X)
        return self._linked(X)

    def _certain(self, variant: str) -> str:
        """Return the family, if the trees and numbers are the whole model."""
        if self.init is None or isinstance(self.init, str):
            return variant
        raise refuse(
            self,
            "with an estimator as init there is no certificate and no model file: the trees are only a part of the "
            'model. Use init=None or init="zero".',
        )

    # What the fitted model says

    @property
    def estimators_(self) -> np.ndarray:
        """The regression trees (rounds, trees of a round); their values are those before the learning rate."""
        check_is_fitted(self)
        made = self.__dict__.get("_made")
        if made is None or made.size != len(self.tree_root_):
            nodes, outputs = self.nodes_, len(self.base_score_)
            made = np.empty((len(nodes.root) // outputs, outputs), dtype=object)
            start = 0
            whole = [(len(nodes.root), float(self.learning_rate), self._tree_parameters())]
            for count, rate, parameters in self.__dict__.get("_batches") or whole:
                for t in range(start, start + count):
                    made.flat[t] = _tree_of(tree_at(nodes, t), rate, parameters, self.n_features_in_)
                start += count
            self._made = made
        return made

    def _compute_partial_dependence_recursion(self, grid: Any, target_features: Any) -> np.ndarray:
        """Return `_partial_dependence`; scikit-learn's partial dependence asks for it."""
        return self._partial_dependence(grid, target_features)

    def _scikit_state(self, estimator: Any) -> dict[str, Any]:
        """Return the loss, which scikit-learn's first predictions need."""
        estimator.n_classes_ = len(self.classes_) if is_classifier(self) else 1
        return {"_loss": estimator._get_loss(sample_weight=None), "n_classes_": estimator.n_classes_}

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        state.pop("_made", None)
        return state

    def __len__(self) -> int:
        return len(self.estimators_)

    def __getitem__(self, index: Any) -> Any:
        return self.estimators_[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.estimators_)

    @property
    def n_estimators_(self) -> int:
        """Rounds."""
        check_is_fitted(self)
        return self._n_rounds()

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf that each row reaches in each tree, by its number in that tree: (rows, rounds, outputs)."""
        check_is_fitted(self)
        nodes = self.nodes_.check(self.n_features_in_)
        ends = leaves(nodes, self._columns(X), self.n_jobs) - nodes.root
        return ends.reshape(len(ends), -1, len(self.base_score_)).astype(np.float64)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each column in the decrease of the squared error by all splits."""
        check_is_fitted(self)
        nodes = self.nodes_
        inner = np.flatnonzero(nodes.child >= 0)
        load = nodes.impurity * nodes.weight
        drops = load[inner] - load[nodes.child[inner]] - load[nodes.child[inner] + 1]
        tree = np.searchsorted(nodes.root, inner, side="right") - 1
        result = np.bincount(nodes.column[inner], drops / nodes.weight[nodes.root[tree]], self.n_features_in_)
        return result / result.sum() if result.sum() > 0 else result

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _tree_of(nodes: Nodes, rate: float, parameters: dict[str, Any], n_features: int) -> DecisionTreeRegressor:
    """Return a tree of the sum as a fitted learner."""
    tree = DecisionTreeRegressor(**parameters)
    tree.keep_nodes(nodes._replace(value=nodes.value / rate if rate else nodes.value))
    tree.n_features_in_, tree.columns_ = n_features, None
    return tree


@dataclass(eq=False, repr=False)
class GradientBoostingClassifier(BoostedClassifier, _GradientBoosting):
    """Gradient boosting with exact trees for classes; `HistGradientBoostingClassifier` is faster on many rows.

    Two classes: one tree per round on the log loss (or AdaBoost's exponential loss); K classes: K trees per round.

    Parameters
    ----------
    loss : "log_loss" or "exponential"
    learning_rate : float >= 0
        Factor nu of each tree.
    n_estimators : int
        Rounds.
    subsample : float in (0, 1]
        Share of the rows drawn for each round; below 1 the others give the out-of-bag scores.
    max_depth, max_leaf_nodes, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, min_impurity_decrease,
    max_features, ccp_alpha
        Of each tree, as of `DecisionTreeRegressor`.
    criterion : "squared_error"
        Without effect, as in scikit-learn; goes away.
    init : None, "zero" or an estimator
        F_0: the shares of the classes; 0; or what a classifier says, which is fitted first. With an estimator there is
        no certificate, because the trees are not the whole model.
    validation_fraction, n_iter_no_change, tol
        With `n_iter_no_change`, stop when the loss on so large a share of the rows, kept out of the fit, is by `tol`
        better than none of the last so many.
    warm_start : bool
        Whether `fit` adds rounds to the trees that exist.
    verbose : int
        1 prints now and then, 2 after each round.
    n_jobs : int or None
        Threads; changes the time, never a bit of the result.

    Attributes
    ----------
    classes_, n_classes_, n_estimators_, estimators_, init_, feature_importances_, max_features_
    train_score_ : the loss after each round, on the rows drawn for it (twice the mean log loss of two classes)
    oob_scores_, oob_improvement_, oob_score_ : the loss on the rows not drawn, and by how much a round lowered it

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.ensemble import GradientBoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GradientBoostingClassifier(n_estimators=20).fit(X, y)
    >>> model.estimators_.shape, float(model.score(X, y)) > 0.98
    ((20, 3), True)
    """

    constraints: ClassVar = {"loss": Choice("log_loss", "exponential")}
    _: KW_ONLY
    loss: str = "log_loss"
    card = Card(
        name="Gradient boosting classifier",
        task="classify",
        ensemble="serial",
        model=OfAnySize("sums of trees"),
        strategy="log loss or exponential loss",
        algorithm="gradient boosting with exact least-squares trees, grown by levels on columns sorted once",
        guarantee=(),
        input=("numbers",),
    )

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, monitor: Any = None) -> "GradientBoostingClassifier":
        """Fit to rows X and labels y; monitor(i, self, state) is called after each round and stops the fit by True."""
        self._fit(X, y, sample_weight, monitor)
        return self

    @property
    def family(self) -> str:  # type: ignore[override]
        return self._certain("trees.sum-classifier")

    @property
    def n_classes_(self) -> int:
        """The number of classes."""
        check_is_fitted(self)
        return len(self.classes_)

    def _read(self, X: Any, y: Any, weight: Any, reset: bool) -> Read:
        try:
            data = read_labelled(self, X, y, weight, reset=reset)
        except ValueError as error:
            if weight is None or "at least 2 classes" not in str(error):
                raise
            raise refuse(
                self,
                "y contains 1 class after sample_weight trimmed classes with zero weights, while a minimum of 2 "
                "classes are required.",
            ) from error
        if len(self.classes_) > 2 and self.loss == "exponential":
            raise refuse(
                self,
                "loss='exponential' is only suitable for a binary classification problem; the data have "
                f"{len(self.classes_)} classes. Use loss='log_loss'.",
            )
        return data

    def _loss(self) -> Loss:
        K = len(self.classes_)
        return Loss("multinomial", 0.0, K) if K > 2 else Loss(self.loss)

    def _default_init(self) -> Any:
        return DummyClassifier(strategy="prior")

    def _linked(self, X: np.ndarray) -> np.ndarray:
        p = np.clip(self.init_.predict_proba(X).astype(np.float64), _EPSILON, 1 - _EPSILON)
        if p.shape[1] > 2:
            scores = np.log(p)
            return scores - scores.mean(axis=1, keepdims=True)
        odds = np.log(p[:, 1:] / (1 - p[:, 1:]))
        return odds / 2 if self.loss == "exponential" else odds


@dataclass(eq=False, repr=False)
class GradientBoostingRegressor(BoostedRegressor, _GradientBoosting):
    """Gradient boosting with exact trees for numbers; `HistGradientBoostingRegressor` is faster on many rows.

    Parameters
    ----------
    loss : "squared_error", "absolute_error", "huber" or "quantile"
        Huber's loss is quadratic up to the `alpha`-quantile of the absolute residuals and linear beyond.
    alpha : float in (0, 1)
        Level of the quantile loss, or quantile of Huber's loss.

    The other parameters and the attributes are those of `GradientBoostingClassifier`; F_0 is the mean, the median or
    the quantile of y.

    Examples
    --------
    >>> from assay.ensemble import GradientBoostingRegressor
    >>> X = [[1.0], [2.0], [3.0], [4.0]]
    >>> GradientBoostingRegressor(n_estimators=1, learning_rate=1.0).fit(X, [1.0, 1.0, 5.0, 7.0]).predict(X)
    array([1., 1., 5., 7.])
    """

    constraints: ClassVar = {
        "loss": Choice("squared_error", "absolute_error", "huber", "quantile"),
        "alpha": Number(low=0.0, high=1.0, open_low=True, open_high=True),
    }
    card = Card(
        name="Gradient boosting regressor",
        task="regress",
        ensemble="serial",
        model=OfAnySize("sums of trees"),
        strategy="squared, absolute, Huber or quantile loss",
        algorithm="gradient boosting with exact least-squares trees, grown by levels on columns sorted once",
        guarantee=(),
        input=("numbers",),
    )
    _: KW_ONLY
    loss: str = "squared_error"
    alpha: float = 0.9

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, monitor: Any = None) -> "GradientBoostingRegressor":
        """Fit to rows X and numbers y; monitor(i, self, state) is called after each round and stops the fit by True."""
        self._fit(X, y, sample_weight, monitor)
        return self

    @property
    def family(self) -> str:  # type: ignore[override]
        return self._certain("trees.sum-regressor")

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf that each row reaches in each tree, by its number in that tree: (rows, rounds)."""
        return super().apply(X)[:, :, 0]

    def _read(self, X: Any, y: Any, weight: Any, reset: bool) -> Read:
        return read_columns(self, X, y, weight, reset=reset)

    def _loss(self) -> Loss:
        return Loss(self.loss, float(self.alpha))

    def _default_init(self) -> Any:
        level = {"absolute_error": 0.5, "huber": 0.5, "quantile": self.alpha}.get(self.loss)
        return DummyRegressor(strategy="mean") if level is None else DummyRegressor(strategy="quantile", quantile=level)

    def _linked(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.init_.predict(X), dtype=np.float64).reshape(len(X), 1)


scikit.GradientBoostingClassifier.register(GradientBoostingClassifier)
scikit.GradientBoostingRegressor.register(GradientBoostingRegressor)
