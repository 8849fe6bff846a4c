"""Random forests and extremely randomised trees.

    tree_t   grown without pruning on a bootstrap sample, each node choosing among k columns drawn anew for it
    predict  mean of the trees' class shares ("soft"), plurality of their votes ("hard"), or mean of their
    numbers

Rows that a tree did not see are its out-of-bag rows; votes of those trees alone estimate the error on new data.
Every tree has its own seed, so that the forest is the same for any number of threads. Breiman, Machine Learning 45,
2001; Geurts, Ernst and Wehenkel, Machine Learning 63, 2006 (extremely randomised trees: all rows, and one random
threshold for each column drawn).
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import sklearn.ensemble as scikit
from scipy.sparse import csr_matrix, hstack, issparse
from sklearn.base import is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.card import Card, Range, log
from assay.ensemble._bootstrap import (
    ClassWeight,
    Draw,
    balanced_in,
    check_kept,
    class_factors,
    forest_out_of_bag,
    require_one_sample,
    sample_size,
)
from assay.ensemble._forest_growth import grow
from assay.ensemble._members import one_hot
from assay.ensemble._votes import Mean, ParallelEnsemble, Vote, member_values, sampling
from assay.fitlog import FitLog
from assay.params import Choice, Count, Flag, Maybe, Number, check, refuse
from assay.scan import Rows
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor
from assay.tree._claims import OfAnySize
from assay.tree._decision_tree import counts_of, known_rows
from assay.tree._export import impurity_importances, ways_down
from assay.tree._nodes import joined, tree_at
from assay.tree._predict import goes_one_way, leaves, mean_values, mixed_leaves, split_outputs
from assay.tree._reading import Read, read_columns, read_labelled

_SHARED = (
    "criterion", "max_depth", "min_samples_split", "min_samples_leaf", "min_weight_fraction_leaf", "max_features",
    "max_leaf_nodes", "min_impurity_decrease", "ccp_alpha", "monotonic_cst", "nominal",
)  # fmt: skip


class FlagOrScore:
    """True, False, or a function of (y, predictions) that returns a number."""

    @staticmethod
    def check(owner: Any, name: str) -> Any:
        return getattr(owner, name) if callable(getattr(owner, name)) else Flag.check(owner, name)


@dataclass(eq=False, repr=False)
class Forest(ParallelEnsemble):
    """What all forests share."""

    extra = False  # whether nodes draw their thresholds
    n_estimators: int = 100
    _: KW_ONLY
    criterion: str
    max_depth: int | None = None
    min_samples_split: Any = 2
    min_samples_leaf: Any = 1
    min_weight_fraction_leaf: float = 0.0
    max_features: Any
    max_leaf_nodes: int | None = None
    min_impurity_decrease: float = 0.0
    bootstrap: bool = True
    oob_score: Any = False
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    warm_start: bool = False
    ccp_alpha: float = 0.0
    max_samples: Any = None
    monotonic_cst: Any = None
    max_bins: int | None = 255
    nominal: Any = None
    keeps_rows_of_no_weight: ClassVar = True
    reads_sparse: ClassVar = True
    constraints: ClassVar = {
        "n_estimators": Count(),
        "bootstrap": Flag,
        "oob_score": FlagOrScore,
        "warm_start": Flag,
        "verbose": Count(low=0),
        "ccp_alpha": Number(low=0.0),
        "max_bins": Maybe(Count(low=2)),
        "min_weight_fraction_leaf": Number(low=0.0, high=0.5),
        "max_depth": Maybe(Count()),
        "max_leaf_nodes": Maybe(Count(low=2)),
        "min_impurity_decrease": Number(low=0.0),
    }

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to rows X (array, sparse matrix or frame, with nominal columns and missing values) and targets y of one
        output or (rows, outputs). With `bootstrap`, rows are drawn in proportion to their weights."""
        check(self)
        if issparse(y):
            raise ValueError(f"{type(self).__name__}: sparse multilabel-indicator for y is not supported.")
        if self.oob_score and not self.bootstrap:
            raise refuse(self, "Out of bag estimation only available if bootstrap=True: no other row is unseen.")
        if self.max_samples is not None and not self.bootstrap:
            raise refuse(
                self,
                "`max_sample` cannot be set if `bootstrap=False`. Either switch to `bootstrap=True` or set "
                "`max_sample=None`.",
            )
        kept = self._kept()
        if kept == self.n_estimators:
            warnings.warn(
                "Warm-start fitting without increasing n_estimators does not fit new trees.", UserWarning, stacklevel=2
            )
            if not self.oob_score or hasattr(self, "oob_score_"):
                return self
        before = getattr(self, "classes_", None) if kept else None
        data = self._read(X, y, sample_weight)
        self._check_outputs(data, kept, before)
        self._fit(data, kept)
        return self

    def _kept(self) -> int:
        """Return how many trees a warm start keeps."""
        return check_kept(self, len(self.tree_root_) if self.warm_start and self.has_nodes else 0)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Read:
        """Return checked rows, all of them, and their weights with those of the classes."""
        return self._read_rows(X, y, sample_weight)

    def _read_rows(self, X: Any, y: Any, sample_weight: Any) -> Read:
        raise NotImplementedError

    def _check_outputs(self, data: Read, kept: int, before: Any) -> None:
        """Refuse to add trees to those of a warm start that predict something else."""
        if not kept:
            return
        now: Any = getattr(self, "classes_", None)
        several = isinstance(now, list) or isinstance(before, list)
        alike = len(now or ()) == len(before or ()) if several else True
        pairs = zip(now, before) if several else [(now, before)]  # type: ignore[arg-type]
        outputs = 1 if data.y.ndim == 1 else data.y.shape[1]
        same = all(np.array_equal(item, two) for item, two in pairs) if before is not None else True
        if not alike or not same or (before is None and self.node_value_.shape[1] != outputs):
            if before is not None:
                self.classes_ = before
            raise refuse(self, "warm_start: the classes or outputs are not those of the trees already fitted.")

    def _fit(self, data: Read, kept: int) -> None:
        n = data.rows.n_rows
        drawn_by = data.weight if self.bootstrap else None
        size = sample_size(self, n, drawn_by) if self.bootstrap else n
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_estimators)
        draw = Draw(n, size, self.bootstrap, drawn_by)
        if self.oob_score and kept:
            require_one_sample(self, n)
        if self.bootstrap:
            data.weight = None  # rows are drawn by it
        draws: list[Draw] = getattr(self, "draws_", [])
        before = (self.nodes_, self.seeds_[:kept], draws[:kept]) if kept else None
        with FitLog(self, 1, *data.shown) as log:
            if kept < self.n_estimators:
                nodes = grow(self, data, draw, seeds[kept:].tolist())
                done = len(nodes.root)
                log.stopped |= done < self.n_estimators - kept
                self.seeds_, self.draws_ = seeds[kept : kept + done], [draw] * done
                if before is not None:
                    nodes = joined([before[0], nodes])
                    self.seeds_, self.draws_ = np.append(before[1], self.seeds_), before[2] + self.draws_
                self.keep_nodes(self._voting(nodes))
            nodes = self.nodes_
            left = (nodes.impurity * nodes.weight)[nodes.child < 0].sum() / nodes.weight[nodes.root].sum()
            log.step(float(left), 0.0)
        self.kept_members_, self.bag_size_, self.n_rows_, self.drawn_by_weight_ = kept, size, n, drawn_by is not None
        self.sampled_by_ = sampling(self)
        for name in ("oob_score_", "oob_decision_function_", "oob_prediction_", "oob_votes_", "oob_errors_"):
            self.__dict__.pop(name, None)
        if self.oob_score:
            forest_out_of_bag(self, data)

    def _voting(self, nodes: Any) -> Any:
        """Return the trees with what they say: their values, or votes."""
        return nodes

    def _times(self, draw: Draw, seed: int, codes: np.ndarray) -> np.ndarray:
        """Return how much each row counts in the tree of a seed, without the weights of the rows."""
        if not self.bootstrap:
            return np.ones(draw.n, dtype=np.int64)
        return draw.times(seed)

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """Row numbers of each tree's sample, repeated as often as drawn."""
        check_is_fitted(self)
        return [
            draw.rows(seed).astype(np.int32) if draw.replace else np.arange(draw.n, dtype=np.int32)
            for draw, seed in zip(self.draws_, self.seeds_.tolist())
        ]

    def bags(self) -> np.ndarray:
        """Return (trees, rows): how often each training row was drawn for each tree."""
        check_is_fitted(self)
        require_one_sample(self)
        return np.array([np.bincount(rows, minlength=self.n_rows_) for rows in self.estimators_samples_])

    def _member_values(self, t: int, X: np.ndarray) -> np.ndarray:
        """Return what tree t says about coded rows X: class shares or votes, or numbers, (rows, outputs)."""
        return member_values(self.nodes_, t, X)

    def _every_value(self, X: np.ndarray) -> Iterator[np.ndarray]:
        yield from (self._member_values(t, X) for t in range(len(self.tree_root_)))

    # The trees as estimators
    # ----------------------------------------------------------------------------------------

    @property
    def _n_members(self) -> int:
        return len(self.tree_root_)

    @property
    def estimator(self) -> Any:
        """What the members are before they are fitted."""
        kind = DecisionTreeClassifier if is_classifier(self) else DecisionTreeRegressor
        return kind(splitter="random" if self.extra else "best")

    @property
    def estimator_(self) -> Any:
        """What the members are before they are fitted."""
        check_is_fitted(self)
        return self.estimator

    @property
    def estimator_params(self) -> tuple[str, ...]:
        """The parameters that the members share with the forest."""
        return _SHARED

    @property
    def estimators_(self) -> list[Any]:
        """The trees; they are made of the arrays of the model once, and again after a new fit."""
        check_is_fitted(self)
        known = vars(self).get("_made")
        if known is None or known[0] is not self.node_child_ or known[1] is not self.node_value_:
            nodes = self.nodes_
            given = {name: getattr(self, name) for name in _SHARED}
            seeds = getattr(self, "seeds_", np.full(len(nodes.root), -1)).tolist()
            trees = [
                self.estimator.set_params(**given, random_state=None if seed < 0 else seed, n_jobs=1).restored(
                    tree_at(nodes, t), self, self.n_features_in_
                )
                for t, seed in enumerate(seeds)
            ]
            known = self._made = (self.node_child_, self.node_value_, trees)
        return known[2]

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()  # type: ignore[misc]
        return {name: value for name, value in state.items() if name != "_made"}

    @property
    def n_outputs_(self) -> int:
        """Number of targets."""
        check_is_fitted(self)
        classes = getattr(self, "classes_", None)
        if classes is None:
            return int(self.node_value_.shape[1])
        return len(classes) if isinstance(classes, list) else 1

    def _ends(self, data: Read) -> np.ndarray:
        """Return the node of each tree, by its number in that tree, where each row ends (rows, trees)."""
        nodes = self.nodes_.check(self.n_features_in_)
        gaps = data.has_gaps
        if gaps and not goes_one_way(nodes):
            raise refuse(self, "rows without a value reach several leaves of these trees; fill in the values.")
        walk = mixed_leaves if gaps or np.any(nodes.table >= 0) else leaves
        ends = [walk(nodes, part, self.n_jobs) for part in data.dense_parts()]
        return np.concatenate(ends).astype(np.int64) - nodes.root

    def apply(self, X: Any) -> np.ndarray:
        """Return the number of the leaf that each row reaches in each tree (rows, trees)."""
        check_is_fitted(self)
        return self._ends(read_columns(self, X))  # type: ignore[arg-type]

    def decision_path(self, X: Any) -> tuple[csr_matrix, np.ndarray]:
        """Return (rows, nodes of all trees) with a 1 for every node that a row passes, and where each tree begins."""
        ends, nodes = self.apply(X), self.nodes_
        parts = [ways_down(tree_at(nodes, t), ends[:, t]) for t in range(ends.shape[1])]
        return hstack(parts).tocsr(), np.cumsum([0, *(part.shape[1] for part in parts)])

    # Predictions and claims
    # ----------------------------------------------------------------------------------------

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean decrease of impurity by each column, summing to 1."""
        check_is_fitted(self)
        return impurity_importances(self.nodes_, self.n_features_in_)

    def _values(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        nodes, data = self.nodes_.check(self.n_features_in_), read_columns(self, X)
        return np.concatenate([mean_values(nodes, part, self.n_jobs) for part in data.dense_parts()])

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        if self.n_outputs_ > 1 or len(getattr(self, "classes_", (0, 1))) < 2:
            raise refuse(self, "certificates are about one target, of a classifier with two classes or more.")
        return known_rows(self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags


@dataclass(eq=False, repr=False)
class ForestClassifier(Vote, Forest):
    """What forests for classes share."""

    family = "trees.vote"
    _: KW_ONLY
    criterion: str = "gini"
    voting: str = "soft"
    max_features: Any = "sqrt"
    class_weight: Any = None
    constraints: ClassVar = {
        "criterion": Choice("gini", "entropy", "log_loss"),
        "voting": Choice("soft", "hard"),
        "class_weight": ClassWeight,
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _read_rows(self, X: Any, y: Any, sample_weight: Any) -> Read:
        return read_labelled(self, X, y, sample_weight, one_class=True, weigh=False)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Read:
        data = super()._read(X, y, sample_weight)
        if self.class_weight is not None and not self._by_bag:
            factor = class_factors(self.class_weight, self.classes_, data.y, data.weight)
            data.weight = factor if data.weight is None else data.weight * factor
        return data

    @property
    def _by_bag(self) -> bool:
        """Whether classes are weighted in each bag."""
        return self.class_weight == "balanced_subsample" and self.bootstrap

    def _times(self, draw: Draw, seed: int, codes: np.ndarray) -> np.ndarray:
        if not self._by_bag:
            return super()._times(draw, seed, codes)
        rows = draw.rows(seed)
        return np.bincount(rows, minlength=draw.n) * balanced_in(codes, rows)

    def _voting(self, nodes: Any) -> Any:
        return nodes if self.voting == "soft" else nodes._replace(value=self._hard(nodes.value))

    def _hard(self, shares: np.ndarray) -> np.ndarray:
        """Return 1 for the largest share of each output, the first of equals, and 0 for the others."""
        parts = split_outputs(shares, self.classes_)
        each = parts if isinstance(parts, list) else [parts]
        votes = [one_hot(part.argmax(axis=1), part.shape[1]) for part in each]
        return np.concatenate(votes, axis=1)

    @property
    def n_classes_(self) -> Any:
        """Number of classes; of several outputs, one number for each."""
        check_is_fitted(self)
        return counts_of(self.classes_) if isinstance(self.classes_, list) else len(self.classes_)


@dataclass(eq=False, repr=False)
class ForestRegressor(Mean, Forest):
    """What forests for numbers share."""

    family = "trees.mean"
    _: KW_ONLY
    criterion: str = "squared_error"
    max_features: Any = 1.0
    constraints: ClassVar = {"criterion": Choice("squared_error", "absolute_error", "friedman_mse", "poisson")}

    def _read_rows(self, X: Any, y: Any, sample_weight: Any) -> Read:
        data = read_columns(self, X, y, sample_weight, reset=True)
        if self.criterion == "poisson" and np.any(data.y < 0):
            raise refuse(self, "Some value(s) of y are negative which is not allowed for Poisson regression.")
        if self.criterion == "poisson" and not data.y.sum() > 0:
            raise refuse(self, "Sum of y is not strictly positive which is necessary for Poisson regression.")
        return data

    def _compute_partial_dependence_recursion(self, grid: Any, target_features: Any) -> np.ndarray:
        """Return the mean prediction at the grid over the other columns, by the trees alone; scikit-learn's partial
        dependence asks for it."""
        grid, columns = np.ascontiguousarray(grid, dtype=np.float32), np.asarray(target_features, dtype=np.intp)
        total = np.zeros(len(grid))
        for tree in self.estimators_:
            tree.tree_.compute_partial_dependence(grid, columns, total)
        return total / len(self)


class RandomForestClassifier(ForestClassifier):
    """A forest of classification trees.

    Parameters
    ----------
    criterion : "gini", "entropy" or "log_loss"
    voting : "soft" or "hard"
        Mean of class shares (scikit-learn), or plurality of the trees' votes (Breiman).
    class_weight : None, "balanced", "balanced_subsample", dict or list of dicts
        Weights of the classes, multiplied with those of the rows; "balanced_subsample" balances each bag.
    oob_score : bool, or a function of labels and predictions
    warm_start : bool
        Whether a second `fit` keeps the trees and adds those that are missing.
    max_features : "sqrt", "log2", None, int or share in (0, 1]
        Columns drawn for each split. The default is scikit-learn's; "log2" is Breiman's recommendation, the largest
        integer <= log2(columns), at least 1; None takes all, which is bagging, and 1 splits at random.
    n_estimators, bootstrap, max_samples, monotonic_cst, ccp_alpha, verbose, max_bins, and the limits of trees : as in
        scikit-learn and `assay.tree`
    nominal : positions of nominal columns of an array; a frame says so by its types.
        Nominal columns are split in two (a subset of levels against the rest); rows without the value tested go to
        the branch where they fit best.

    Attributes
    ----------
    classes_, n_classes_, n_outputs_, feature_importances_
    estimators_ : the trees, made of the arrays of the model when asked for;  estimators_samples_ : rows of each
    oob_score_, oob_decision_function_, oob_votes_ (rows, classes)
    oob_errors_ : (trees,) out-of-bag error of the first 1, 2, ... trees

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> RandomForestClassifier(50, oob_score=True, random_state=0).fit(X, y).oob_score_ > 0.9
    True
    """

    card = Card(
        name="Random forest classifier",
        task="classify",
        ensemble="parallel",
        model=OfAnySize("votes of trees of any size"),
        strategy="Gini or entropy at each node; averaging",
        algorithm="bootstrap, random columns at each node, trees on threads",
        guarantee=("pac-bayes.vote",),
        input=("numbers", "nominal", "missing"),
        search={"max_features": Range(0.1, 1.0), "min_samples_leaf": log(1, 20, whole=True)},
        first=6,
        light=True,
    )


class RandomForestRegressor(ForestRegressor):
    """A forest of regression trees; parameters as `RandomForestClassifier`.

    >>> from assay.ensemble import RandomForestRegressor
    >>> model = RandomForestRegressor(5, bootstrap=False, max_features=None).fit([[1.0], [2.0]], [3.0, 4.0])
    >>> model.predict([[1.0], [2.0]])
    array([3., 4.])
    """

    card = Card(
        name="Random forest regressor",
        task="regress",
        ensemble="parallel",
        model=OfAnySize("means of trees of any size"),
        strategy="squared error at each node; averaging",
        algorithm="bootstrap, random columns at each node, trees on threads",
        guarantee=(),
        input=("numbers", "nominal", "missing"),
        search={"max_features": Range(0.1, 1.0), "min_samples_leaf": log(1, 20, whole=True)},
        first=5,
        light=True,
    )


# Tools that ask for scikit-learn's classes (plots, partial dependence, SHAP) read ours by `estimators_`.
scikit.RandomForestClassifier.register(RandomForestClassifier)
scikit.RandomForestRegressor.register(RandomForestRegressor)


# Extremely randomised trees ---------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class ExtraTreesClassifier(ForestClassifier):
    """Extremely randomised trees: all rows, and at each node one random threshold for each of the columns drawn.

    Parameters as `RandomForestClassifier`.

    >>> from assay.ensemble import ExtraTreesClassifier
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> ExtraTreesClassifier(10, random_state=0).fit(X, y).predict([[1.0], [4.0]])
    array([0, 1])
    """

    extra = True
    card = Card(
        name="Extremely randomised trees classifier",
        task="classify",
        ensemble="parallel",
        model=OfAnySize("votes of trees of any size"),
        strategy="Gini or entropy among random splits; averaging",
        algorithm="random columns and thresholds at each node, trees on threads",
        guarantee=("pac-bayes.vote",),
        input=("numbers", "nominal", "missing"),
        search={"max_features": Range(0.1, 1.0), "min_samples_leaf": log(1, 20, whole=True)},
        first=10,
    )

    _: KW_ONLY
    bootstrap: bool = False
    max_bins: int | None = None


@dataclass(eq=False, repr=False)
class ExtraTreesRegressor(ForestRegressor):
    """Extremely randomised regression trees; parameters as `RandomForestClassifier`.

    >>> from assay.ensemble import ExtraTreesRegressor
    >>> ExtraTreesRegressor(5, random_state=0).fit([[1.0], [2.0]], [3.0, 4.0]).predict([[1.0], [2.0]])
    array([3., 4.])
    """

    extra = True
    card = Card(
        name="Extremely randomised trees regressor",
        task="regress",
        ensemble="parallel",
        model=OfAnySize("means of trees of any size"),
        strategy="squared error among random splits; averaging",
        algorithm="random columns and thresholds at each node, trees on threads",
        guarantee=(),
        search={"max_features": Range(0.1, 1.0), "min_samples_leaf": log(1, 20, whole=True)},
        first=8,
    )

    _: KW_ONLY
    bootstrap: bool = False
    max_bins: int | None = None


scikit.ExtraTreesClassifier.register(ExtraTreesClassifier)
scikit.ExtraTreesRegressor.register(ExtraTreesRegressor)
