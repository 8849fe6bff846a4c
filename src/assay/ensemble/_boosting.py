"""Gradient boosting on histograms, trees grown leaf by leaf.

    F_m(x) = F_{m-1}(x) + nu * tree_m(x),     tree_m by greedy splits on g_i = dL/dF, h_i = d2L/dF2 at F_{m-1}
    gain of a split = G_l^2 / (H_l + l2) + G_r^2 / (H_r + l2) - G^2 / (H + l2),     leaf value = -G / (H + l2)

Columns are cut into at most 255 bins once; a tree needs the sums of g and h for each bin of each node, which
`_hist_loops` finds with one integer addition per row and column. Leaf values are sums of the exact g and h. Friedman,
Annals of Statistics 29, 2001.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner
from assay.card import Card
from assay.data.blocks import Block
from assay.ensemble._losses import Loss
from assay.ensemble._rounds import Rounds
from assay.fitlog import FitLog
from assay.guarantees.evidence import Evidence, Predictions, Scores
from assay.params import Choice, Count, Flag, Maybe, Number, Positive, check, refuse
from assay.scan import Rows, one_blas_thread, rows_per_block, thread_map
from assay.tree._bin_walk import SumOfTrees
from assay.tree._decision_tree import known_rows
from assay.tree._limits import monotone_signs
from assay.tree._nodes import TreeModel, joined
from assay.tree._reading import Read, nominal_levels, read_columns, read_labelled
from assay.tree._spaces import OfAnySize
from assay.tree.growth._bins import Binner, find_bins
from assay.tree.growth._hist_grower import Rule

_SAMPLE = 100_000  # rows whose quantiles are the edges of the bins
_MIN_HESSIAN = 1e-3


@dataclass(eq=False, repr=False)
class _GradientBoosting(TreeModel, Learner):
    """What the classifier and the regressor share."""

    constraints: ClassVar = {
        "learning_rate": Positive(),
        "n_estimators": Count(),
        "subsample": Number(low=0.0, high=1.0, open_low=True),
        "max_features": Number(low=0.0, high=1.0, open_low=True),
        "warm_start": Flag,
        "tol": Number(low=0.0),
        "max_bins": Count(low=2),
        "max_leaf_nodes": Maybe(Count(low=2)),
        "max_depth": Maybe(Count()),
        "l2_regularization": Number(low=0.0),
        "min_samples_leaf": Count(),
        "n_iter_no_change": Maybe(Count()),
        "validation_fraction": Number(low=0.0, high=1.0, open_low=True),
    }

    _: KW_ONLY
    loss: str
    learning_rate: float = 0.1
    n_estimators: int = 100
    subsample: float = 1.0
    max_leaf_nodes: int | None = 31
    max_depth: int | None = None
    min_samples_leaf: int = 20
    l2_regularization: float = 0.0
    max_features: float = 1.0
    max_bins: int = 255
    nominal: Any = None
    monotonic_cst: Any = None
    validation_fraction: float = 0.1
    n_iter_no_change: int | None = None
    tol: float = 1e-7
    warm_start: bool = False
    random_state: Any = None
    n_jobs: int | None = None

    # Fitting

    def _boost(self, data: Read, loss: Loss) -> None:
        rng = check_random_state(self.random_state)
        data, held = self._hold_out(data, rng)
        more = self.warm_start and self.has_nodes
        if more and self.n_estimators < self.n_iter_:
            raise refuse(
                self,
                f"n_estimators is {self.n_estimators}, but {self.n_iter_} trees exist already (warm_start).",
            )
        binner = self._bins(data, rng)
        if not more:
            self.base_score_ = loss.start(data.y, data.weight)
            self.drop_nodes()
            self.train_score_, self.validation_score_ = np.empty(0), np.empty(0)
        with one_blas_thread(), FitLog(self, self.n_estimators, *data.shown) as log:
            run = Rounds(self, binner, loss, data, held, rng, log)
            grown = run.rounds(self.n_estimators - (self.n_iter_ if more else 0))
        made = ([self.nodes_] if more else []) + grown
        self.keep_nodes(joined(made))
        self.train_score_ = np.append(self.train_score_, run.train)
        self.validation_score_ = np.append(self.validation_score_, run.validation)

    def _bins(self, data: Read, rng: Any) -> Binner:
        """Return the bins of the columns, from a sample of the rows."""
        levels, n = nominal_levels(self), data.rows.n_rows
        if levels and max(levels.values()) > 255:
            raise refuse(self, f"a nominal column has {max(levels.values())} levels; at most 255 can be binned.")
        chosen = np.sort(rng.choice(n, _SAMPLE, replace=False)) if n > _SAMPLE else np.arange(n)
        return find_bins(data.rows.take(chosen), self.max_bins, levels, self.n_jobs)

    def _hold_out(self, data: Read, rng: Any) -> tuple[Read, Read | None]:
        if self.n_iter_no_change is None:
            return data, None
        fit, held = train_test_split(
            np.arange(len(data.y)),
            test_size=float(self.validation_fraction),
            random_state=rng.randint(2**31),
            stratify=data.y if isinstance(self, ClassifierMixin) else None,
        )
        return data.take(np.sort(fit)), data.take(np.sort(held))

    def _rule(self, binner: Binner) -> Rule:
        leaves = 2**31 if self.max_leaf_nodes is None else self.max_leaf_nodes
        depth = 2**31 if self.max_depth is None else self.max_depth
        signs = monotone_signs(self, self.n_features_in_)
        monotone = np.zeros(self.n_features_in_, dtype=np.int64) if signs is None else signs
        if np.any(binner.nominal[monotone != 0]):
            raise refuse(self, "monotonic_cst names a nominal column, whose values have no order.")
        return Rule(self.l2_regularization, self.min_samples_leaf, _MIN_HESSIAN, 0.0, leaves, depth, monotone)

    def _check(self) -> None:
        check(self)
        if self.max_bins > 255:
            raise refuse(
                self,
                f"max_bins must be at most 255 (a bin is one byte); got {self.max_bins}.",
            )

    # Prediction

    def _bounded(self, block: Block) -> tuple[np.ndarray, float]:
        """Return the scores of a block's rows, and how far rounding can move them."""
        return self._raw(block.X), self._rounding()

    def _rounding(self) -> float:
        """Return how far two orders of summation can differ: 4 u times trees times the largest sum."""
        leaves = np.abs(self.nodes_.value).max() * len(self.nodes_.root) + np.abs(self.base_score_).max()
        return 2.0**-50 * (len(self.nodes_.root) + 1) * float(leaves)

    def _trees(self) -> SumOfTrees:
        check_is_fitted(self)
        return SumOfTrees(self.nodes_.check(self.n_features_in_), self.n_features_in_, len(self.base_score_))

    def _raw(self, X: Any) -> np.ndarray:
        """Return the scores (rows, outputs)."""
        trees, X = self._trees(), read_columns(self, X).X
        scores, step = np.tile(self.base_score_, (len(X), 1)), rows_per_block(X.shape[1])

        def work(i: int) -> None:
            trees.add(X[i : i + step], scores[i : i + step])

        thread_map(work, range(0, len(X), step), n_jobs=self.n_jobs)
        return scores

    def _staged_raw(self, X: Any) -> Iterator[np.ndarray]:
        trees, X, outputs = self._trees(), read_columns(self, X).X, len(self.base_score_)
        scores = np.tile(self.base_score_, (len(X), 1))
        for first in range(0, len(trees.nodes.root), outputs):
            trees.add(X, scores, first, first + outputs)
            yield scores.copy()

    @property
    def n_iter_(self) -> int:
        """Rounds: trees over outputs."""
        check_is_fitted(self)
        return len(self.tree_root_) // len(self.base_score_)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each column in the loss removed by all splits."""
        check_is_fitted(self)
        nodes = self.nodes_
        inner = nodes.child >= 0
        gains = np.bincount(nodes.column[inner], nodes.impurity[inner], self.n_features_in_)
        return gains / gains.sum() if gains.sum() > 0 else gains

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        return known_rows(self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


@dataclass(eq=False, repr=False)
class GradientBoostingClassifier(ClassifierMixin, _GradientBoosting):
    """Gradient boosting for two or more classes.

    Two classes: one tree per round on the log loss (or AdaBoost's exponential loss); K classes: K trees per
    round on the
    softmax.

    Parameters
    ----------
    loss : "log_loss" or "exponential"
    learning_rate : float > 0
        Factor nu of each tree.
    n_estimators : int
        Rounds.
    subsample : float in (0, 1]
        Share of the rows drawn for each round (stochastic gradient boosting).
    max_leaf_nodes, max_depth : int or None
        Size of each tree; the leaf with the largest gain is split first.
    min_samples_leaf : int
        Rows that a leaf must have.
    l2_regularization : float >= 0
        Added to the sum of second derivatives of a leaf.
    max_features : float in (0, 1]
        Share of the columns drawn for each round.
    max_bins : int, at most 255
        Bins of a numeric column.
    nominal : positions of nominal columns of an array; a frame says so by its types.
    monotonic_cst : -1, 0 or 1 for each column, optional
        Whether the score must fall (-1) or rise (1) with the column.
    n_iter_no_change : int, optional
        Stop when `validation_fraction` of the rows, kept out of the fit, have not gained `tol` for so many
        rounds.
    warm_start : bool
        Whether `fit` adds rounds to the trees that exist.
    n_jobs : int or None
        Threads; changes the time, never a bit of the result.

    Attributes
    ----------
    classes_, n_iter_, feature_importances_
    train_score_, validation_score_ : mean loss after each round
    trees_ : arrays of all trees (see `assay.tree`)

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from assay.ensemble import GradientBoostingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> bool(model.train_score_[-1] < model.train_score_[0])
    True
    """

    family = "trees.sum-classifier"
    constraints: ClassVar = {"loss": Choice("log_loss", "exponential")}
    _: KW_ONLY
    loss: str = "log_loss"
    card = Card(
        name="Gradient boosting classifier",
        zh="梯度提升树",
        mission=("ENS-27", "ENS-28", "ENS-29"),
        task="classify",
        ensemble="serial",
        model=OfAnySize("sums of trees"),
        strategy="log loss or exponential loss",
        algorithm="gradient boosting on histograms with packed integer sums, leaf-wise trees",
        guarantee=(),
        input=("numbers", "nominal", "missing"),
    )

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "GradientBoostingClassifier":
        """Fit to rows X (array or frame, with nominal columns and missing values) and labels y."""
        self._check()
        data = read_labelled(self, X, y, sample_weight, reset=not (self.warm_start and self.has_nodes))
        K = len(self.classes_)
        data.y = data.y.astype(np.uint8 if K <= 256 else np.int32)
        if K > 2 and self.loss == "exponential":
            raise refuse(self, f"the exponential loss tells two classes apart; the data have {K}. Use log_loss.")
        self._boost(data, self._loss())
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores F: (rows,) for two classes, (rows, classes) for more."""
        scores = self._raw(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (rows, classes)."""
        scores = self._raw(X)
        return self._loss().probabilities(scores)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the label with the largest score."""
        return self._labels(self._raw(X))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predicted labels after each round."""
        for scores in self._staged_raw(X):
            yield self._labels(scores)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the scores."""
        yield Scores(self._bounded, (), self.loss == "log_loss")

    def _labels(self, scores: np.ndarray) -> np.ndarray:
        at = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return self.classes_[at]

    def _loss(self) -> Loss:
        K = len(self.classes_)
        return Loss("multinomial", 0.0, K) if K > 2 else Loss(self.loss)


@dataclass(eq=False, repr=False)
class GradientBoostingRegressor(RegressorMixin, _GradientBoosting):
    """Gradient boosting for numbers.

    Parameters
    ----------
    loss : "squared_error", "absolute_error", "huber", "quantile" or "poisson"
        Huber's loss is quadratic up to the `alpha`-quantile of the absolute residuals and linear beyond; its
        leaf values are
        one step from the median (Friedman 2001). "poisson" models the logarithm of a mean of counts.
    alpha : float in (0, 1)
        Level of the quantile loss, or quantile of Huber's loss.

    The other parameters and the attributes are those of `GradientBoostingClassifier`.

    Examples
    --------
    >>> from assay.ensemble import GradientBoostingRegressor
    >>> X = [[1.0], [2.0], [3.0], [4.0]]
    >>> model = GradientBoostingRegressor(n_estimators=1, learning_rate=1.0, min_samples_leaf=1)
    >>> model = model.fit(X, [1.0, 1.0, 5.0, 7.0])
    >>> model.predict(X)
    array([1., 1., 5., 7.])
    """

    constraints: ClassVar = {
        "loss": Choice("squared_error", "absolute_error", "huber", "quantile", "poisson"),
        "alpha": Number(low=0.0, high=1.0, open_low=True),
    }
    card = Card(
        name="Gradient boosting regressor",
        zh="梯度提升树",
        mission=("ENS-26", "ENS-29"),
        task="regress",
        ensemble="serial",
        model=OfAnySize("sums of trees"),
        strategy="squared, absolute, Huber, quantile or Poisson loss",
        algorithm="gradient boosting on histograms with packed integer sums, leaf-wise trees",
        guarantee=(),
        input=("numbers", "nominal", "missing"),
    )

    _: KW_ONLY
    loss: str = "squared_error"
    alpha: float = 0.9

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "GradientBoostingRegressor":
        """Fit to rows X (array or frame, with nominal columns and missing values) and numbers y."""
        self._check()
        data = read_columns(self, X, y, sample_weight, reset=not (self.warm_start and self.has_nodes))
        if self.loss == "poisson" and (data.y.min() < 0 or not data.y.sum() > 0):
            raise refuse(self, "the Poisson loss needs numbers y >= 0 that are not all zero.")
        self._boost(data, Loss(self.loss, float(self.alpha)))
        return self

    @property
    def family(self) -> str:  # type: ignore[override]
        return "trees.sum-exponential" if self.loss == "poisson" else "trees.sum-regressor"

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted number of each row."""
        return self._numbers(self._raw(X))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predictions after each round."""
        for scores in self._staged_raw(X):
            yield self._numbers(scores)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predictions; those of "poisson" are not the scores, but their exponentials."""
        if self.loss != "poisson":
            yield Predictions(self._bounded)

    def _numbers(self, scores: np.ndarray) -> np.ndarray:
        return np.exp(scores[:, 0]) if self.loss == "poisson" else scores[:, 0].copy()
