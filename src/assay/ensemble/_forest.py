"""Random forests and extremely randomised trees.

    tree_t   grown without pruning on a bootstrap sample, each node choosing among k columns drawn anew for it
    predict  mean of the trees' class shares ("soft"), plurality of their votes ("hard"), or mean of their
    numbers

Rows that a tree did not see are its out-of-bag rows; votes of those trees alone estimate the error on new data.
Every tree has its own seed, so that the forest is the same for any number of threads. Breiman, Machine Learning 45,
2001.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner
from assay.card import Card, Range, log
from assay.ensemble._bootstrap import bag
from assay.ensemble._out_of_bag import out_of_bag
from assay.ensemble._permutation_importance import Analysed
from assay.ensemble._vote_claims import sampling
from assay.ensemble._votes import member_values
from assay.ensemble._voting import Mean, Members, Vote
from assay.fitlog import FitLog
from assay.params import Choice, Count, Flag, Maybe, Number, check, refuse
from assay.scan import Rows, thread_map
from assay.tree._decision_tree import known_rows
from assay.tree._limits import limits_of, row_count
from assay.tree._nodes import Nodes, joined
from assay.tree._predict import mean_values
from assay.tree._readable import impurity_importances
from assay.tree._reading import Read, read_columns, read_labelled
from assay.tree._spaces import OfAnySize
from assay.tree.growth._bins import find_bins
from assay.tree.growth._exact import encode, grow_exact
from assay.tree.growth._forest_extra import grow_extra_trees
from assay.tree.growth._forest_hist import grow_forest, grow_regression_forest
from assay.tree.growth._forest_nominal_missing import grow_mixed, is_mixed
from assay.tree.growth._records import Limits

_EXACT = 5_000  # rows up to which every threshold is tried, without bins
_SAMPLE = 10_000  # rows, and at most a fifth of all, whose quantiles are the edges of the bins: in no tree's out-of-bag
_GRIDS = 4  # groups of trees, each with bins whose quantiles lie between those of the others
_MOST_TIMES = 1000  # mean times a row may be drawn; how often it is drawn must fit into 16 bits


@dataclass(eq=False, repr=False)
class Forest(Members, Analysed, Learner):
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
    oob_score: bool = False
    max_samples: Any = None
    max_bins: int | None = 255
    nominal: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    constraints: ClassVar = {
        "n_estimators": Count(),
        "bootstrap": Flag,
        "oob_score": Flag,
        "max_bins": Maybe(Count(low=2)),
        "min_weight_fraction_leaf": Number(low=0.0, high=0.5),
        "max_depth": Maybe(Count()),
        "max_leaf_nodes": Maybe(Count(low=2)),
        "min_impurity_decrease": Number(low=0.0),
    }

    def _fit(self, data: Read, n_classes: int) -> None:
        n = data.rows.n_rows
        if self.oob_score and not self.bootstrap:
            raise refuse(self, "oob_score needs bootstrap=True: without it no row is out of the bag.")
        size = self._sample_size(n)
        rng = check_random_state(self.random_state)
        seeds = rng.randint(2**31 - 1, size=self.n_estimators)
        mixed = is_mixed(self, data)
        bins = None if n <= _EXACT or mixed else self.max_bins
        self.binned_rows_, self.bin_seed_ = 0 if bins is None else n, int(rng.randint(2**31 - 1))
        limits = limits_of(self, data, self.extra)

        def times_of(seed: int) -> np.ndarray:
            return np.bincount(bag(seed, n, size), minlength=n) if self.bootstrap else np.ones(n, dtype=np.int64)

        of_trees = seeds.tolist(), times_of
        with FitLog(self, 1, *data.shown) as log:
            if mixed:
                nodes = grow_mixed(self, data, *of_trees, n_classes, limits)
            elif self.extra and bins is None:
                nodes = grow_extra_trees(data, *of_trees, n_classes, self.criterion, limits, self.n_jobs)
            elif bins is not None and not self.extra and self._sums(n_classes, bins, data, size):
                nodes = self._binned_trees(data, *of_trees, n_classes, bins, limits)
            else:
                nodes = self._weighted_trees(data, *of_trees, n_classes, bins, limits)
            left = (nodes.impurity * nodes.weight)[nodes.child < 0].sum() / nodes.weight[nodes.root].sum()
            log.step(float(left), 0.0)
        self.keep_nodes(nodes)
        self.seeds_, self.bag_size_, self.n_rows_ = seeds, size, n
        self.sampled_by_ = sampling(self)
        if self.oob_score:
            found = out_of_bag(self._every_value(data.X), self.bags() == 0, data.y, n_classes)
            self._keep_out_of_bag(found, data.y)

    def _binned_trees(
        self, data: Read, seeds: list[int], times_of: Any, n_classes: int, bins: int, limits: Limits
    ) -> Nodes:
        """Return a tree for each seed on rows in bins, whose edges are quantiles of a sample of the rows."""
        n = data.rows.n_rows
        self.binned_rows_ = min(n // 5, _SAMPLE)
        sample = data.rows.take(np.sort(bag(self.bin_seed_, n, self.binned_rows_, replace=False)))
        grids = [find_bins(sample, bins, {}, self.n_jobs, shift) for shift in np.arange(_GRIDS) / _GRIDS - 0.5]
        if n_classes:
            kind = n_classes, self.criterion
            return grow_forest(data.rows, data.y, grids, seeds, times_of, *kind, limits, self.n_jobs)
        return grow_regression_forest(data.rows, data.y, data.weight, grids, seeds, times_of, limits, self.n_jobs)

    def _weighted_trees(
        self, data: Read, seeds: list[int], times_of: Any, n_classes: int, bins: int | None, limits: Limits
    ) -> Nodes:
        """Return a tree for each seed, where rows have weights, or targets are numbers, or random splits are between
        bins."""
        codes = encode(data.X, self.n_jobs, bins)

        def tree(seed: int) -> Nodes:
            weight = data.weight
            if self.bootstrap:
                weight = times_of(seed) * (1.0 if weight is None else weight)
            of = np.arange(len(data.y)) if weight is None else np.flatnonzero(weight > 0)
            return grow_exact(codes, data.y, weight, of, n_classes, self.criterion, limits, seed, 1, bins is None)

        return joined(thread_map(tree, seeds, n_jobs=self.n_jobs))

    def _sums(self, n_classes: int, bins: int, data: Read, size: int) -> bool:
        """Tell whether trees can be grown on sums per bin: bins of one byte; numbers with squared errors, or classes of
        rows that count alike, not too often."""
        if n_classes:
            return bins <= 255 and n_classes < 2**16 and data.weight is None and size <= _MOST_TIMES * len(data.y)
        return bins <= 255 and self.criterion == "squared_error"

    def _sample_size(self, n: int) -> int:
        return n if self.max_samples is None else row_count(self, "max_samples", n, 1)

    def bags(self) -> np.ndarray:
        """Return (trees, rows): how often each training row was drawn for each tree."""
        check_is_fitted(self)
        if not self.bootstrap:
            return np.ones((len(self.seeds_), self.n_rows_), dtype=np.int64)
        return np.array(
            [np.bincount(bag(seed, self.n_rows_, self.bag_size_), minlength=self.n_rows_) for seed in self.seeds_]
        )

    def _member_values(self, t: int, X: np.ndarray) -> np.ndarray:
        """Return what tree t says about coded rows X: class shares or votes, or numbers, (rows, outputs)."""
        return member_values(self.nodes_, t, X)

    def _every_value(self, X: np.ndarray) -> Iterator[np.ndarray]:
        yield from (self._member_values(t, X) for t in range(len(self.tree_root_)))

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean decrease of impurity by each column, summing to 1."""
        check_is_fitted(self)
        return impurity_importances(self.nodes_, self.n_features_in_)

    def _values(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return mean_values(self.nodes_.check(self.n_features_in_), read_columns(self, X).X, self.n_jobs)

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        return known_rows(self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
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
    constraints: ClassVar = {"criterion": Choice("gini", "entropy", "log_loss"), "voting": Choice("soft", "hard")}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to rows X and labels y."""
        check(self)
        self._fit(read_labelled(self, X, y, sample_weight), len(self.classes_))
        if self.voting == "hard":
            self.node_value_ = np.eye(len(self.classes_))[self.node_value_.argmax(axis=1)]
        return self

    def _member_values(self, t: int, X: np.ndarray) -> np.ndarray:
        shares = super()._member_values(t, X)
        return np.eye(len(self.classes_))[shares.argmax(axis=1)] if self.voting == "hard" else shares


@dataclass(eq=False, repr=False)
class ForestRegressor(Mean, Forest):
    """What forests for numbers share."""

    family = "trees.mean"
    _: KW_ONLY
    criterion: str = "squared_error"
    max_features: Any = 1.0
    constraints: ClassVar = {"criterion": Choice("squared_error", "absolute_error", "friedman_mse", "poisson")}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to rows X and numbers y."""
        check(self)
        data = read_columns(self, X, y, sample_weight, reset=True)
        self._fit(data, 0)
        return self


class RandomForestClassifier(ForestClassifier):
    """A forest of classification trees.

    Parameters
    ----------
    criterion : "gini", "entropy" or "log_loss"
    voting : "soft" or "hard"
        Mean of class shares (scikit-learn), or plurality of the trees' votes (Breiman).
    n_estimators, max_features ("sqrt", or "log2" as Breiman recommends), bootstrap, max_samples, oob_score,
    max_bins, and the
    limits of trees : see `assay.ensemble` and scikit-learn
    nominal : positions of nominal columns of an array; a frame says so by its types.
        Nominal columns are split in two (a subset of levels against the rest); rows without the value tested go to
        the branch where they fit best.

    Attributes
    ----------
    classes_, feature_importances_, oob_score_, oob_decision_function_, oob_votes_ (rows, classes)
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
        zh="随机森林",
        mission=tuple(f"ENS-{i}" for i in (32, 33, 37, 38, 39, 40, 42, 43, 45)),
        task="classify",
        ensemble="parallel",
        model=OfAnySize("votes of trees of any size"),
        strategy="Gini or entropy at each node; averaging",
        algorithm="bootstrap, random columns at each node, trees on threads",
        guarantee=("pac-bayes.vote",),
        input=("numbers", "nominal", "missing"),
        search={"max_features": Range(0.1, 1.0), "min_samples_leaf": log(1, 20, whole=True)},
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
        zh="随机森林",
        mission=("ENS-37",),
        task="regress",
        ensemble="parallel",
        model=OfAnySize("means of trees of any size"),
        strategy="squared error at each node; averaging",
        algorithm="bootstrap, random columns at each node, trees on threads",
        guarantee=(),
        input=("numbers", "nominal", "missing"),
        search={"max_features": Range(0.1, 1.0), "min_samples_leaf": log(1, 20, whole=True)},
    )

