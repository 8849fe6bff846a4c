"""Gradient boosting on histograms, trees grown leaf by leaf.

    F_m(x) = F_{m-1}(x) + nu * tree_m(x),     tree_m by greedy splits on g_i = dL/dF, h_i = d2L/dF2 at F_{m-1}
    gain of a split = G_l^2 / (H_l + l2) + G_r^2 / (H_r + l2) - G^2 / (H + l2),     leaf value = -G / (H + l2)

Columns are cut into at most 255 bins once; a tree needs the sums of g and h for each bin of each node, which
`_hist_loops` finds with one integer addition per row and column. Leaf values are sums of the exact g and h, held back
where a Newton step could raise the loss (`_losses`). Friedman, Annals of Statistics 29, 2001.
"""

import time
from dataclasses import KW_ONLY, dataclass
from math import ceil
from typing import Any, ClassVar

import numpy as np
import sklearn.ensemble as scikit
from sklearn.base import is_classifier
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import assert_all_finite, check_is_fitted

from assay.base import label_classes, read_rows, streams
from assay.card import Card, log, options
from assay.ensemble._boosted import Boosted, BoostedClassifier, BoostedRegressor, Rounds, Watch
from assay.ensemble._hist_reading import as_asked, check_levels, groups_of, signs_of
from assay.ensemble._hist_scikit import numbers_only, predictors
from assay.ensemble._hist_workers import LocalSource, Source, WorkerSource
from assay.ensemble._losses import Loss
from assay.fitlog import FitLog
from assay.params import Choice, Count, Flag, Maybe, NameOr, Number, Positive, check, refuse
from assay.scan import Block, Rows, one_blas_thread
from assay.scan.draws import Draw, draw_count
from assay.scan.source import connected
from assay.tree._claims import OfAnySize
from assay.tree._nodes import Nodes, joined
from assay.tree._reading import Read, _has_types, read_columns, read_labelled
from assay.tree.growth._bins import Allowed, find_bins
from assay.tree.growth._hist_grower import Rule

_MIN_HESSIAN = 1e-3
_MANY = 10_000  # rows beyond which early_stopping="auto" stops early
_NO_LIMIT = 2**31

_FEW = 800  # rows below which leaves of 20 rows are too many of them
_SEARCH = {
    "learning_rate": log(0.01, 0.3),
    "max_iter": log(50, 400, whole=True),
    "max_leaf_nodes": log(4, 127, whole=True),
    "min_samples_leaf": log(2, 80, whole=True),
    "l2_regularization": log(1e-3, 10),
}
"""What `assay learn` tries."""


@dataclass(eq=False, repr=False)
class _HistGradientBoosting(Boosted):
    """What the classifier and the regressor share."""

    constraints: ClassVar = {
        "learning_rate": Positive(),
        "max_iter": Count(),
        "subsample": Number(low=0.0, high=1.0, open_low=True),
        "max_features": Number(low=0.0, high=1.0, open_low=True),
        "interaction_cst": NameOr(None, "pairwise", "no_interactions"),
        "warm_start": Flag,
        "early_stopping": Choice("auto", True, False),
        "tol": Number(low=0.0),
        "max_bins": Count(low=2),
        "categorical_features": NameOr(None, "from_dtype"),
        "max_leaf_nodes": Maybe(Count(low=2)),
        "max_depth": Maybe(Count()),
        "l2_regularization": Number(low=0.0),
        "min_samples_leaf": Count(),
        "n_iter_no_change": Count(),
        "verbose": Maybe(Count(low=0), True, False),
    }
    takes_infinite = True
    keeps_rows_of_no_weight: ClassVar = True  # the store leaves them out
    _categories_at = None

    _: KW_ONLY
    learning_rate: float = 0.1
    max_iter: int = 100
    max_leaf_nodes: int | None = 31
    max_depth: int | None = None
    min_samples_leaf: int = 20
    l2_regularization: float = 0.0
    max_features: float = 1.0
    max_bins: int = 255
    categorical_features: Any = "from_dtype"
    monotonic_cst: Any = None
    interaction_cst: Any = None
    warm_start: bool = False
    early_stopping: Any = "auto"
    scoring: Any = "loss"
    validation_fraction: float | int | None = 0.1
    n_iter_no_change: int = 10
    tol: float = 1e-7
    verbose: int = 0
    random_state: Any = None
    subsample: float = 1.0
    n_jobs: int | None = None

    # scikit-learn

    def _compute_partial_dependence_recursion(self, grid: Any, target_features: Any) -> np.ndarray:
        """Return `_partial_dependence`; scikit-learn's partial dependence asks for it."""
        return self._partial_dependence(grid, target_features)

    @property
    def _predictors(self) -> list[list[Any]]:
        """The trees as scikit-learn's predictors, round by round; tools that read its boosting ask for them."""
        return predictors(self.nodes_, len(self.base_score_))

    @property
    def _baseline_prediction(self) -> np.ndarray:
        """The scores before the first tree, as these tools read them."""
        return self.base_score_.reshape(1, -1)

    def _scikit_state(self, estimator: Any) -> dict[str, Any]:
        if is_classifier(self):
            estimator.n_trees_per_iteration_ = len(self.base_score_)
        return {
            "_predictors": self._predictors,
            "_baseline_prediction": self._baseline_prediction,
            "_bin_mapper": numbers_only(self.n_features_in_),
            "_preprocessor": None,
            "_loss": estimator._get_loss(sample_weight=None),
        }

    # Fitting

    def _fit(self, X: Any, y: Any, sample_weight: Any, validation: tuple) -> None:
        self._check()
        began, more = time.perf_counter(), self.warm_start and self.has_nodes
        X = as_asked(self, X, fitting=True)
        if not more and validation[0] is None and validation[1] is None and self._stays(X, y):
            source: Source = self._on_workers(X, y, sample_weight)
        else:
            data = self._read(X, y, sample_weight, not more)
            source = LocalSource(data, self._given_validation(*validation))
        loss = self._loss()
        if more and self.max_iter < self.n_iter_:
            raise refuse(
                self,
                f"max_iter={self.max_iter} must be larger than or equal to n_iter_={self.n_iter_} when "
                "warm_start==True: a fit adds rounds and takes none away.",
            )
        rng = check_random_state(self.random_state)
        if not more:
            self._random_seed = int(rng.randint(np.iinfo(np.uint32).max, dtype="u8"))
        seed = getattr(self, "_random_seed", 0)
        source.draw(None if source.has_validation else self._hold_out(source.n_rows, seed))
        if self.verbose:
            print(f"Fitting gradient boosted rounds on {source.n_rows} rows.")
        self._boost(source, loss, seed, more)
        if self.verbose:
            leaves = int(np.count_nonzero(self.node_child_ < 0))
            print(f"Fit {len(self.tree_root_)} trees in {time.perf_counter() - began:.3f} s ({leaves} leaves in all).")

    def _boost(self, source: Source, loss: Loss, seed: int, more: bool) -> None:
        levels = check_levels(self)
        rule = self._rule(signs_of(self, levels, loss.n_outputs))
        allowed = Allowed(self.n_features_in_, groups_of(self, self.n_features_in_), float(self.max_features), seed)
        binner = find_bins(source.sample(seed), self.max_bins, levels, self.n_jobs)
        if not more:
            self.drop_nodes()
        with one_blas_thread(), FitLog(self, self.max_iter, *source.shown(self)) as log:
            store = source.store(self, loss, binner)
            if not more:
                self.base_score_ = store.start()
                store.begin(self.base_score_)
            watch = Watch(self, source, store, seed)
            rounds = Rounds(self, rule, allowed, binner, store, seed)
            grown = rounds.run(self.max_iter, watch, log, self._report(watch))
        self.keep_nodes(joined(([self.nodes_] if more else []) + grown))
        self.train_score_, self.validation_score_ = np.array(watch.train), np.array(watch.validation)

    def _stays(self, X: Any, y: Any) -> bool:
        """Tell whether rows stay on the workers of a cluster: losses that need the residuals of a leaf, scorers and
        weights of classes read them here."""
        plain = self.scoring == "loss" or self.early_stopping is False
        plain = plain and getattr(self, "class_weight", None) is None
        plain = plain and self.loss not in ("absolute_error", "huber", "quantile")
        if isinstance(X, Rows):
            return plain and X.on_workers
        return plain and hasattr(X, "__dask_graph__") and connected()

    def _hold_out(self, n: int, seed: int) -> Draw | None:
        """Return the draw of the rows to validate with, if the fit may stop early."""
        self.do_early_stopping_ = n > _MANY if self.early_stopping == "auto" else self.early_stopping
        share = self.validation_fraction
        if not self.do_early_stopping_ or share is None:
            return None
        count = ceil(share * n) if isinstance(share, float) else int(share)
        if count >= n:
            raise refuse(
                self,
                f"validation_fraction={share} of {n} rows leaves none to fit to; use fewer, or early_stopping=False.",
            )
        return draw_count(seed, n, count)

    def _given_validation(self, X: Any, y: Any, weight: Any) -> Read | None:
        """Return the validation rows that `fit` was given."""
        if X is None and y is None:
            return None
        if y is None:
            raise refuse(self, "X_val is provided, but y_val was not provided.")
        if X is None:
            raise refuse(self, "y_val is provided, but X_val was not provided.")
        if self.early_stopping is False:
            raise refuse(
                self,
                "X_val and y_val are passed to fit while at the same time early_stopping is False; set it to True or "
                '"auto".',
            )
        self.do_early_stopping_ = True
        held = read_columns(self, as_asked(self, X), y, weight)
        return Read(self, held.X, self._encoded(held.y), held.weight, self.n_jobs)

    def _rule(self, signs: np.ndarray) -> Rule:
        leaves = _NO_LIMIT if self.max_leaf_nodes is None else min(self.max_leaf_nodes, _NO_LIMIT)
        depth = _NO_LIMIT if self.max_depth is None else min(self.max_depth, _NO_LIMIT)
        return Rule(
            float(self.l2_regularization), min(self.min_samples_leaf, _NO_LIMIT), _MIN_HESSIAN, 0.0, leaves, depth,
            signs,
        )  # fmt: skip

    def _check(self) -> None:
        check(self)
        if self.max_bins > 255:
            raise refuse(self, f"max_bins must be at most 255 (a bin is one byte); got {self.max_bins}.")
        share = self.validation_fraction
        whole = isinstance(share, (int, np.integer)) and not isinstance(share, bool) and share >= 1
        if not (share is None or whole or (isinstance(share, float) and 0 < share < 1)):
            raise refuse(
                self, f"validation_fraction must be None, a share between 0 and 1 or a number of rows; got {share!r}."
            )
        if not (self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring)):
            raise refuse(self, f'scoring must be "loss", the name of a score, a scorer or None; got {self.scoring!r}.')

    def _report(self, watch: Watch) -> Any:
        def report(made: list[Nodes]) -> None:
            if self.verbose < 2:
                return
            leaves, depth = sum(int((tree.child < 0).sum()) for tree in made), max(t.depths().max() for t in made)
            scores = [f"{name} score {part[-1]:.5f}" for name, part in watch.latest() if part]
            print(", ".join([f"{len(made)} trees, {leaves} leaves, depth {depth}", *scores]))

        return report

    def _columns(self, X: Any) -> np.ndarray:
        return read_columns(self, as_asked(self, X)).X

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        X = as_asked(self, X)
        if not streams(X, y) and not _has_types(X):  # a certificate is about finite numbers
            with np.errstate(invalid="ignore"):
                assert_all_finite(np.asarray(X, dtype=np.float64), allow_nan=True, input_name="X")
        return super()._known_rows(X, y, sample_weight)

    @property
    def nominal(self) -> Any:
        """Positions of the columns of an array whose numbers are names of categories."""
        return self._categories_at

    @property
    def is_categorical_(self) -> np.ndarray | None:
        """Which columns have categories; None if none has."""
        check_is_fitted(self)
        if self.columns_ is None or all(column.kind != "nominal" for column in self.columns_):
            return None
        return np.array([column.kind == "nominal" for column in self.columns_])

    @property
    def n_iter_(self) -> int:
        """Rounds."""
        check_is_fitted(self)
        return self._n_rounds()

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each column in the loss removed by all splits."""
        check_is_fitted(self)
        nodes = self.nodes_
        inner = nodes.child >= 0
        gains = np.bincount(nodes.column[inner], nodes.impurity[inner], self.n_features_in_)
        return gains / gains.sum() if gains.sum() > 0 else gains

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


@dataclass(eq=False, repr=False)
class HistGradientBoostingClassifier(BoostedClassifier, _HistGradientBoosting):
    """Gradient boosting on histograms for two or more classes.

    Two classes: one tree per round on the log loss (or AdaBoost's exponential loss); K classes: K trees per round on
    the softmax.

    Parameters
    ----------
    loss : "log_loss" or "exponential"
    learning_rate : float > 0
        Factor nu of each tree.
    max_iter : int
        Rounds.
    max_leaf_nodes, max_depth : int or None
        Size of each tree; the leaf with the largest gain is split first.
    min_samples_leaf : int
        Rows that a leaf must have.
    l2_regularization : float >= 0
        Added to the sum of second derivatives of a leaf.
    max_features : float in (0, 1]
        Share of the columns drawn for each split.
    max_bins : int, at most 255
        Bins of a numeric column, and most categories of a column.
    categorical_features : "from_dtype", None, or positions, names or a mask of columns
        Columns whose values are categories. "from_dtype": those of a frame with categories, text or truth values.
    monotonic_cst : -1, 0 or 1 for each column, or a dict of names, optional
        Whether the score must fall (-1) or rise (1) with the column; two classes.
    interaction_cst : "pairwise", "no_interactions" or groups of column positions, optional
        The splits on one way down a tree are on columns of one group.
    warm_start : bool
        Whether `fit` adds rounds to the trees that exist; two such fits are one fit of all rounds, bit by bit.
    early_stopping : "auto" or bool
        Stop when the score on validation rows, kept out of the fit, has not risen by `tol` for `n_iter_no_change`
        rounds.
        "auto": with more than 10,000 rows, or if `fit` is given validation rows.
    scoring : "loss", the name of a score, a scorer, or None (accuracy; R^2)
    validation_fraction : share or number of rows, or None for the score on the training rows
    verbose : int
        1 prints a summary, 2 a line for each round.
    class_weight : dict, "balanced" or None
        Factors of the weights of the rows.
    subsample : float in (0, 1]
        Share of the rows drawn for each round (stochastic gradient boosting).
    n_jobs : int or None
        Threads; changes the time, never a bit of the result.

    Attributes
    ----------
    classes_, n_iter_, n_trees_per_iteration_, feature_importances_, is_categorical_, do_early_stopping_
    train_score_, validation_score_ : the score before the first round and after each; empty if nothing may stop early
    history_ : the mean training loss after each round, whether anything may stop early or not
    trees_ : arrays of all trees (see `assay.tree`)

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from assay.ensemble import HistGradientBoostingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(X, y)
    >>> bool(model.history_[-1].objective < model.history_[0].objective)
    True
    """

    family = "trees.sum-classifier"
    constraints: ClassVar = {"loss": Choice("log_loss", "exponential")}
    loss: str = "log_loss"
    _: KW_ONLY
    class_weight: Any = None
    card = Card(
        name="Histogram gradient boosting classifier",
        task="classify",
        ensemble="serial",
        model=OfAnySize("sums of trees"),
        strategy="log loss or exponential loss",
        algorithm="gradient boosting on histograms with packed integer sums, leaf-wise trees",
        guarantee=(),
        input=("numbers", "nominal", "missing"),
        search=_SEARCH,
        always_tuned=True,
        first=7,
        light=True,
    )

    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> "HistGradientBoostingClassifier":  # fmt: skip
        """Fit to rows X (array or frame, with categories and missing values) and labels y; `X_val` and `y_val` are rows
        for early stopping."""
        self._fit(X, y, sample_weight, (X_val, y_val, sample_weight_val))
        return self

    def _read(self, X: Any, y: Any, weight: Any, reset: bool) -> Read:
        data = read_labelled(self, X, y, weight, reset=reset)
        data.y = data.y.astype(self._code_type())
        return data

    def _on_workers(self, X: Any, y: Any, weight: Any) -> WorkerSource:
        rows = read_rows(self, X, y, weight)
        self.columns_, self.classes_ = None, label_classes(self, rows)
        return WorkerSource(rows.encoded(self.classes_), self._code_type())

    def _code_type(self) -> Any:
        K = len(self.classes_)
        if K > 2 and self.loss == "exponential":
            raise refuse(self, f"the exponential loss distinguishes two classes; the data have {K}. Use log_loss.")
        return np.uint8 if K <= 256 else np.int32

    def _encoded(self, y: np.ndarray) -> np.ndarray:
        at = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        if not np.array_equal(self.classes_[at], y):
            raise refuse(self, "y_val has a label that y does not have.")
        return at.astype(self._code_type())

    def _loss(self) -> Loss:
        K = len(self.classes_)
        return Loss("multinomial", 0.0, K) if K > 2 else Loss(self.loss)


@dataclass(eq=False, repr=False)
class HistGradientBoostingRegressor(BoostedRegressor, _HistGradientBoosting):
    """Gradient boosting on histograms for numbers.

    Parameters
    ----------
    loss : "squared_error", "absolute_error", "huber", "quantile", "poisson" or "gamma"
        "poisson" (counts) and "gamma" (positive numbers) model the logarithm of a mean by half the deviance. Huber's
        loss is quadratic up to the `quantile` of the absolute residuals and linear beyond; its leaf values are one step
        from the median (Friedman 2001).
    quantile : float in [0, 1], optional
        Level of the quantile loss, which needs one; of Huber's loss 0.9 unless given.

    The other parameters and the attributes are those of `HistGradientBoostingClassifier`.

    Examples
    --------
    >>> from assay.ensemble import HistGradientBoostingRegressor
    >>> X = [[1.0], [2.0], [3.0], [4.0]]
    >>> model = HistGradientBoostingRegressor(max_iter=1, learning_rate=1.0, min_samples_leaf=1)
    >>> model = model.fit(X, [1.0, 1.0, 5.0, 7.0])
    >>> model.predict(X)
    array([1., 1., 5., 7.])
    """

    constraints: ClassVar = {
        "loss": Choice("squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma"),
        "quantile": Maybe(Number(low=0.0, high=1.0)),
    }
    card = Card(
        name="Histogram gradient boosting regressor",
        task="regress",
        ensemble="serial",
        model=OfAnySize("sums of trees"),
        strategy="squared, absolute, Huber, quantile, Poisson or gamma loss",
        algorithm="gradient boosting on histograms with packed integer sums, leaf-wise trees",
        guarantee=(),
        input=("numbers", "nominal", "missing"),
        search={**_SEARCH, "loss": options("squared_error", "absolute_error")},
        begin=lambda rows: {"min_samples_leaf": max(2, rows // 40)} if rows < _FEW else {},
        always_tuned=True,
        first=6,
        light=True,
    )
    loss: str = "squared_error"
    _: KW_ONLY
    quantile: float | None = None

    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> "HistGradientBoostingRegressor":  # fmt: skip
        """Fit to rows X (array or frame, with categories and missing values) and numbers y; `X_val` and `y_val` are
        rows for early stopping."""
        self._fit(X, y, sample_weight, (X_val, y_val, sample_weight_val))
        return self

    def _read(self, X: Any, y: Any, weight: Any, reset: bool) -> Read:
        data = read_columns(self, X, y, weight, reset=reset)
        self._check_target(data.y.min(), data.y.max())
        if self.loss == "quantile" and self.quantile is None:
            raise refuse(self, "loss='quantile' needs its level: set quantile, for example to 0.9.")
        return data

    def _on_workers(self, X: Any, y: Any, weight: Any) -> WorkerSource:
        rows = read_rows(self, X, y, weight)
        self.columns_ = None
        if self.loss in ("poisson", "gamma"):
            lows, highs = zip(*rows.map(_target_range))
            self._check_target(min(lows), max(highs))
        return WorkerSource(rows, np.float64)

    def _check_target(self, low: float, high: float) -> None:
        if self.loss == "poisson" and (low < 0 or not high > 0):
            raise refuse(self, "loss='poisson' requires non-negative y and sum(y) > 0.")
        if self.loss == "gamma" and low <= 0:
            raise refuse(self, "loss='gamma' requires strictly positive y.")

    def _encoded(self, y: np.ndarray) -> np.ndarray:
        if self.loss == "poisson" and y.min() < 0:
            raise refuse(self, "loss='poisson' requires non-negative y and sum(y) > 0.")
        if self.loss == "gamma" and y.min() <= 0:
            raise refuse(self, "loss='gamma' requires strictly positive y.")
        return y

    @property
    def family(self) -> str:  # type: ignore[override]
        return "trees.sum-exponential" if self._loss().of_logarithm else "trees.sum-regressor"

    def _loss(self) -> Loss:
        return Loss(self.loss, 0.9 if self.quantile is None else float(self.quantile))


def _target_range(block: Block) -> tuple[float, float]:
    return float(block.y.min()), float(block.y.max())


scikit.HistGradientBoostingClassifier.register(HistGradientBoostingClassifier)
scikit.HistGradientBoostingRegressor.register(HistGradientBoostingRegressor)
