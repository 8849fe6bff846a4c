"""Random forests and extremely randomised trees.

    tree_t   grown without pruning on a bootstrap sample, each node choosing among k columns drawn anew for it
    predict  mean of the trees' class shares ("soft"), plurality of their votes ("hard"), or mean of their
    numbers

Rows that a tree did not see are its out-of-bag rows; votes of those trees alone estimate the error on new
data. Every tree has
its own seed, so that the forest is the same for any number of threads. Breiman, Machine Learning 45, 2001.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner, label_classes
from assay.card import Card
from assay.fitlog import FitLog
from assay.params import choice, count, flag, number, refuse
from assay.scan import Rows, rows, thread_map
from assay.tree._decision_tree import feature_count, impurity_importances, known_rows, row_count
from assay.tree._exact import Limits, encode, grow_exact
from assay.tree._nodes import Nodes, TreeModel, joined
from assay.tree._predict import leaves, mean_values
from assay.tree._reading import Read, read_columns
from assay.tree._spaces import OfAnySize


class Strength(NamedTuple):
    """The two factors of a forest's error: strength s, mean correlation of the trees, bound correlation (1 -
    s^2) / s^2."""

    strength: float
    correlation: float
    bound: float


class Forest(TreeModel, Learner):
    """What all forests share."""

    extra = False

    def _fit(self, data: Read, n_classes: int) -> None:
        n, d = data.X.shape
        n_trees = count(self, "n_estimators")
        flag(self, "bootstrap"), flag(self, "oob_score")
        if self.oob_score and not self.bootstrap:
            raise refuse(self, "oob_score needs bootstrap=True: without it no row is out of the bag.")
        size = self._sample_size(n)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=n_trees)
        bins = None if self.max_bins is None else count(self, "max_bins", low=2)
        codes = encode(data.X, self.n_jobs, bins)
        limits = self._limits(data, d)

        def tree(seed: int) -> Nodes:
            weight, of = data.weight, np.arange(n)
            if self.bootstrap:
                times = np.bincount(bag(seed, n, size), minlength=n)
                weight = times.astype(np.float64) if weight is None else times * weight
            if weight is not None:
                of = np.flatnonzero(weight > 0)
            return grow_exact(
                codes, data.y, weight, of, n_classes, self.criterion, limits, int(seed), 1, bins is None
            )

        with FitLog(self, 1, data.X, data.y) as log:
            made = thread_map(tree, seeds.tolist(), n_jobs=self.n_jobs)
            log.step(
                float(
                    np.mean(
                        [(one.impurity * one.weight / one.weight[0])[one.child < 0].sum() for one in made]
                    )
                ),
                0.0,
            )
        self.trees_ = joined(made).as_dict()
        self.seeds_, self.bag_size_, self.n_rows_ = seeds, size, n
        if self.oob_score:
            self._out_of_bag(data, n_classes)

    def _limits(self, data: Read, d: int) -> Limits:
        n = len(data.y)
        total = float(n if data.weight is None else data.weight.sum())
        return Limits(
            row_count(self, "min_samples_leaf", n, 1),
            number(self, "min_weight_fraction_leaf", low=0.0, high=0.5) * total,
            row_count(self, "min_samples_split", n, 2),
            2**31 if self.max_depth is None else count(self, "max_depth"),
            0 if self.max_leaf_nodes is None else count(self, "max_leaf_nodes", low=2),
            number(self, "min_impurity_decrease", low=0.0) * total,
            feature_count(self, d),
            self.extra,
        )

    def _sample_size(self, n: int) -> int:
        return n if self.max_samples is None else row_count(self, "max_samples", n, 1)

    def bags(self) -> np.ndarray:
        """Return (trees, rows): how often each training row was drawn for each tree."""
        check_is_fitted(self)
        if not self.bootstrap:
            return np.ones((len(self.seeds_), self.n_rows_), dtype=np.int64)
        return np.array(
            [
                np.bincount(bag(seed, self.n_rows_, self.bag_size_), minlength=self.n_rows_)
                for seed in self.seeds_
            ]
        )

    def _out_of_bag(self, data: Read, n_classes: int) -> None:
        """Sum, for each row, the values of the trees that did not see it."""
        nodes, out = self.nodes_, self.bags() == 0
        reached = leaves(nodes, data.X, self.n_jobs)
        totals = np.zeros((len(data.y), nodes.value.shape[1]))
        votes = np.zeros((len(data.y), max(n_classes, 1)))
        for t in range(len(nodes.root)):
            mine = np.flatnonzero(out[t])
            values = nodes.value[reached[mine, t]]
            totals[mine] += values
            if n_classes:
                votes[mine, values.argmax(axis=1)] += 1
        counted = out.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            self._oob(totals / counted[:, None], votes, counted > 0, data.y)

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


def bag(seed: int, n: int, size: int) -> np.ndarray:
    """Return the row numbers of one bootstrap sample: `size` draws from 0 .. n - 1 with replacement."""
    return np.random.default_rng(int(seed)).integers(0, n, size)


class _Classifier(ClassifierMixin, Forest):
    classes_: np.ndarray
    family = "tree-vote-classifier"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to rows X and labels y."""
        choice(self, "criterion", ("gini", "entropy", "log_loss"))
        choice(self, "voting", ("soft", "hard"))
        data = read_columns(self, X, y, sample_weight, reset=True)
        known: Any = rows(data.X, data.y)
        self.classes_ = label_classes(self, known)
        weight = data.weight
        if self.class_weight is not None:
            factor = compute_sample_weight(self.class_weight, data.y)
            weight = factor if weight is None else weight * factor
        codes = np.asarray(known.encoded(self.classes_).y, dtype=np.int64)
        self._fit(Read(data.X, codes, weight), len(self.classes_))
        if self.voting == "hard":
            self.trees_["value"] = np.eye(len(self.classes_))[self.trees_["value"].argmax(axis=1)]
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the mean class shares of the trees' leaves; with hard voting the shares of the votes."""
        return self._values(X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self._values(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the largest mean share."""
        shares = self._values(X)
        return self.classes_[shares.argmax(axis=1)]

    def member_votes(self, X: Any) -> np.ndarray:
        """Return the class position that each tree votes for, (rows, trees)."""
        check_is_fitted(self)
        reached = leaves(self.nodes_, read_columns(self, X).X, self.n_jobs)
        return self.nodes_.value.argmax(axis=1)[reached]

    def strength(self, X: Any, y: Any) -> Strength:
        """Return strength and mean correlation of the trees on some rows (Breiman 2001, sections 2.2 and
        appendix II).

        Margin of row i: share of votes for its class minus the largest share of another class; s its mean.
        The bound
        correlation (1 - s^2) / s^2 on the error holds at the level of the distribution when s > 0.
        """
        votes, codes = self.member_votes(X), np.searchsorted(self.classes_, y)
        shares = np.stack([(votes == k).mean(axis=1) for k in range(len(self.classes_))], axis=1)
        at = np.arange(len(codes))
        right = shares[at, codes]
        shares[at, codes] = -1.0
        rival = shares.argmax(axis=1)
        margin = right - shares.max(axis=1)
        raw = (votes == codes[:, None]).astype(float) - (votes == rival[:, None])
        deviation = raw.std(axis=0)
        s = float(margin.mean())
        correlation = float(margin.var() / max(deviation.mean() ** 2, 1e-300))
        return Strength(s, correlation, correlation * (1 - s * s) / (s * s) if s > 0 else float("inf"))

    def count_errors(self, rows: Rows) -> tuple[int, int]:
        """Return the least and the largest number of errors on `rows` that rounding of the mean shares leaves
        open."""
        low = high = 0
        slack = 2.0**-50 * (len(self.nodes_.root) + 2)
        for block in rows.blocks():
            shares = mean_values(self.nodes_, block.X, self.n_jobs)
            at = np.arange(len(shares))
            own = shares[at, block.y].copy()
            shares[at, block.y] = -1.0
            margin = own - shares.max(axis=1)
            low, high = (
                low + int(np.count_nonzero(margin < -slack)),
                high + int(np.count_nonzero(margin <= slack)),
            )
        return low, high

    def _oob(self, shares: np.ndarray, votes: np.ndarray, seen: np.ndarray, y: np.ndarray) -> None:
        if self.voting == "hard":
            with np.errstate(invalid="ignore", divide="ignore"):
                shares = votes / votes.sum(axis=1, keepdims=True)
        self.oob_decision_function_, self.oob_votes_ = shares, votes
        self.oob_score_ = (
            float((shares[seen].argmax(axis=1) == y[seen]).mean()) if seen.any() else float("nan")
        )


class _Regressor(RegressorMixin, Forest):
    family = "tree-mean-regressor"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to rows X and numbers y."""
        choice(self, "criterion", ("squared_error", "friedman_mse", "poisson"))
        data = read_columns(self, X, y, sample_weight, reset=True)
        self._fit(data, 0)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean of the trees' predictions."""
        return self._values(X)[:, 0]

    def _oob(self, means: np.ndarray, votes: np.ndarray, seen: np.ndarray, y: np.ndarray) -> None:
        self.oob_prediction_ = means[:, 0]
        error = ((means[seen, 0] - y[seen]) ** 2).sum()
        self.oob_score_ = float(1 - error / max(((y[seen] - y[seen].mean()) ** 2).sum(), 1e-300))


def _set(self: Any, values: dict[str, Any]) -> None:
    for name, value in values.items():
        if name not in ("self", "__class__"):
            setattr(self, name, value)


class RandomForestClassifier(_Classifier):
    """A forest of classification trees.

    Parameters
    ----------
    criterion : "gini", "entropy" or "log_loss"
    voting : "soft" or "hard"
        Mean of class shares (scikit-learn), or plurality of the trees' votes (Breiman).
    n_estimators, max_features ("sqrt", or "log2" as Breiman recommends), bootstrap, max_samples, oob_score,
    max_bins, and the
    limits of trees : see `assay.ensemble` and scikit-learn

    Attributes
    ----------
    classes_, feature_importances_, oob_score_, oob_decision_function_, oob_votes_ (rows, classes)

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
        model=OfAnySize("votes of trees of any size"),
        strategy="Gini or entropy at each node; averaging",
        algorithm="bootstrap, random columns at each node, trees on threads",
        guarantee=(),
    )

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        voting: str = "soft",
        max_depth: int | None = None,
        min_samples_split: Any = 2,
        min_samples_leaf: Any = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: bool = False,
        max_samples: Any = None,
        class_weight: Any = None,
        max_bins: int | None = 255,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        _set(self, locals())


class RandomForestRegressor(_Regressor):
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
        model=OfAnySize("means of trees of any size"),
        strategy="squared error at each node; averaging",
        algorithm="bootstrap, random columns at each node, trees on threads",
        guarantee=(),
    )

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: Any = 2,
        min_samples_leaf: Any = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: bool = False,
        max_samples: Any = None,
        max_bins: int | None = 255,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        _set(self, locals())


class ExtraTreesClassifier(_Classifier):
    """Extremely randomised trees: all rows, and at each node one random border for each of the columns drawn.

    Parameters as `RandomForestClassifier`.

    >>> from assay.ensemble import ExtraTreesClassifier
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> ExtraTreesClassifier(10, random_state=0).fit(X, y).predict([[1.0], [4.0]])
    array([0, 1])
    """

    extra = True
    card = Card(
        name="Extremely randomised trees classifier",
        zh="极端随机树",
        mission=("ENS-38",),
        task="classify",
        model=OfAnySize("votes of trees of any size"),
        strategy="Gini or entropy among random splits; averaging",
        algorithm="random columns and borders at each node, trees on threads",
        guarantee=(),
    )

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        voting: str = "soft",
        max_depth: int | None = None,
        min_samples_split: Any = 2,
        min_samples_leaf: Any = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = False,
        oob_score: bool = False,
        max_samples: Any = None,
        class_weight: Any = None,
        max_bins: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        _set(self, locals())


class ExtraTreesRegressor(_Regressor):
    """Extremely randomised regression trees; parameters as `RandomForestClassifier`.

    >>> from assay.ensemble import ExtraTreesRegressor
    >>> ExtraTreesRegressor(5, random_state=0).fit([[1.0], [2.0]], [3.0, 4.0]).predict([[1.0], [2.0]])
    array([3., 4.])
    """

    extra = True
    card = Card(
        name="Extremely randomised trees regressor",
        zh="极端随机树",
        mission=("ENS-38",),
        task="regress",
        model=OfAnySize("means of trees of any size"),
        strategy="squared error among random splits; averaging",
        algorithm="random columns and borders at each node, trees on threads",
        guarantee=(),
    )

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: Any = 2,
        min_samples_leaf: Any = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = False,
        oob_score: bool = False,
        max_samples: Any = None,
        max_bins: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        _set(self, locals())
