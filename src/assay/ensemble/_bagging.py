"""Bagging and random subspaces: one base learner fitted to many samples of the rows, of the columns, or of both.

    member_t  the base learner fitted to m rows drawn from the n (with replacement: a bootstrap sample) and to d'
              of the d columns
    predict   mean of the members' probabilities ("soft"), plurality of their votes ("hard"), or mean of numbers

The rows that a member did not see are its out-of-bag rows; predictions by those members alone estimate the error on
new data, and a member may be pruned or stopped on them. Fitting costs T times one fit of the base learner plus T
samples. Every member has its own seed: the ensemble is the same for any number of threads. Breiman, Machine
Learning 24, 1996; Ho, IEEE PAMI 20, 1998.
"""

import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from assay.base import Learner, label_classes
from assay.card import Card
from assay.certificate.claim import NotApplicable
from assay.certificate.risk import Statement
from assay.ensemble._analysis import Analysed
from assay.ensemble._bags import bag
from assay.ensemble._out_of_bag import Curve, out_of_bag, pruned, stopped
from assay.ensemble._vote_claims import vote_statements
from assay.ensemble._votes import (
    Strength,
    clipped_mean_errors,
    mean_share_errors,
    mean_shares,
    mean_squared_error,
    member_values,
    strength_of,
)
from assay.fitlog import FitLog
from assay.params import choice, count, flag, refuse
from assay.scan import Rows, rows, thread_map
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor
from assay.tree._decision_tree import DecisionTree, feature_count, impurity_importances, known_rows, row_count
from assay.tree._nodes import Nodes, TreeModel, joined
from assay.tree._predict import mean_values
from assay.tree._reading import Read, read_columns
from assay.tree._spaces import OfAnySize

_USES = (None, "prune", "stop")


class Sample(NamedTuple):
    """What one member is fitted to."""

    rows: np.ndarray  # row numbers, repeated if drawn more than once
    columns: np.ndarray
    seed: int


class Fitted(NamedTuple):
    """One fitted member, the time it took, and the out-of-bag errors of its epochs (empty: not trained by epochs)."""

    model: Any
    seconds: float
    epochs: np.ndarray


class Bagging(TreeModel, Analysed, Learner):
    """What bagging of classifiers and of regressors shares."""

    estimator: Any
    estimators_: list[Any]
    seeds_: np.ndarray

    # Fitting
    # ----------------------------------------------------------------------------------------

    def _fit(self, data: Read, n_classes: int) -> None:
        n, d = data.X.shape
        total = count(self, "n_estimators")
        for name in ("bootstrap", "bootstrap_features", "oob_score", "warm_start"):
            flag(self, name)
        choice(self, "out_of_bag", _USES), count(self, "max_epochs"), count(self, "patience")
        base = self._checked_base(data)
        size, width = row_count(self, "max_samples", n, 1), feature_count(self, d)
        if size > n and not self.bootstrap:
            raise refuse(self, f"max_samples={size} rows cannot be drawn from {n} without replacement.")
        kept, seeds = self._earlier(total, (n, d))
        self.seeds_, self.bag_size_, self.n_columns_, self.n_rows_ = seeds, size, width, n
        if (self.oob_score or self.out_of_bag) and size == n and not self.bootstrap:
            raise refuse(self, "out-of-bag rows need bootstrap=True or max_samples below the number of rows.")

        def member(seed: int) -> Fitted:
            began = time.perf_counter()
            sample = self._sample(seed)
            fit = self._tree if isinstance(base, DecisionTree) else self._other
            model, epochs = fit(clone(base), sample, data, n_classes)
            return Fitted(model, time.perf_counter() - began, epochs)

        with FitLog(self, 1, data.X, data.y) as log:
            made = kept + thread_map(member, seeds[len(kept) :].tolist(), n_jobs=self.n_jobs)
            self._join(base, made)
            if self.oob_score:
                self._keep_out_of_bag(self._curve(data, n_classes), data.y)
            log.step(self._training_error(data), 0.0)

    def _earlier(self, total: int, shape: tuple[int, int]) -> tuple[list[Fitted], np.ndarray]:
        """Return the members that a warm start keeps, and the seeds of all members."""
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=total)
        if not (self.warm_start and hasattr(self, "estimators_")):
            return [], seeds
        kept = [Fitted(*one) for one in zip(self.estimators_, self.member_seconds_, self.epoch_errors_)]
        if len(kept) > total:
            raise refuse(self, f"warm_start: n_estimators={total} is below the {len(kept)} members already fitted.")
        if self.n_rows_ != shape[0]:
            raise refuse(self, f"warm_start: the members were fitted to {self.n_rows_} rows; got {shape[0]}.")
        if len(kept) == total:
            warnings.warn("warm_start without a larger n_estimators fits no new member.", stacklevel=4)
        return kept, np.concatenate([self.seeds_, seeds[len(kept) :]])

    def _checked_base(self, data: Read) -> Any:
        base, classify = self._base(), isinstance(self, ClassifierMixin)
        if not (is_classifier(base) if classify else is_regressor(base)):
            kind = "classifier" if classify else "regressor"
            raise refuse(self, f"estimator must be a {kind} with fit and predict; got {base!r}.")
        tree = isinstance(base, DecisionTree)
        if self.columns_ is not None and not tree:
            raise refuse(self, "nominal columns go with the trees of assay.tree; encode them for other base learners.")
        if data.weight is not None and not tree and not has_fit_parameter(base, "sample_weight"):
            raise refuse(self, f"{type(base).__name__} takes no sample_weight; fit without weights.")
        if self.out_of_bag == "prune" and not tree:
            raise refuse(self, f'out_of_bag="prune" needs a tree of assay.tree; got {type(base).__name__}.')
        if self.out_of_bag == "stop" and not hasattr(base, "partial_fit"):
            raise refuse(self, f'out_of_bag="stop" needs a learner with partial_fit; got {type(base).__name__}.')
        return base

    def _base(self) -> Any:
        raise NotImplementedError

    @property
    def nominal(self) -> Any:
        """Positions of nominal columns of an array, as the base tree names them."""
        return getattr(self._base(), "nominal", None)

    def _sample(self, seed: int) -> Sample:
        """Return the rows and columns of one member; they depend on its seed alone."""
        n, d = self.n_rows_, self.n_features_in_
        rng = np.random.default_rng([int(seed), 1])
        drawn = bag(seed, n, self.bag_size_, self.bootstrap)
        if self.bootstrap_features:
            columns = rng.integers(0, d, self.n_columns_)
        else:
            columns = np.sort(rng.permutation(d)[: self.n_columns_])
        return Sample(drawn, columns, int(rng.integers(2**31 - 1)))

    def _tree(self, tree: Any, sample: Sample, data: Read, n_classes: int) -> tuple[Any, np.ndarray]:
        part = data.take(sample.rows)
        part = part._replace(X=part.X[:, sample.columns])
        if getattr(tree, "class_weight", None) is not None:
            factor = compute_sample_weight(tree.class_weight, self.classes_[part.y])
            part = part._replace(weight=factor if part.weight is None else part.weight * factor)
        tree.set_params(random_state=sample.seed, n_jobs=1)
        columns = None if self.columns_ is None else tuple(self.columns_[j] for j in sample.columns)
        tree.fit_read(part, columns, self.classes_ if n_classes else None)
        if self.out_of_bag == "prune":
            held = np.setdiff1d(np.arange(self.n_rows_), sample.rows)
            X = data.X[np.ix_(held, sample.columns)]
            tree.trees_ = pruned(tree.nodes_, X, data.y[held], n_classes).as_dict()
        return tree, np.empty(0)

    def _other(self, model: Any, sample: Sample, data: Read, n_classes: int) -> tuple[Any, np.ndarray]:
        names = [name for name in model.get_params() if name.rpartition("__")[2] == "random_state"]
        model.set_params(**dict.fromkeys(names, sample.seed))
        X, y = data.X[np.ix_(sample.rows, sample.columns)], data.y[sample.rows]
        if n_classes and len(np.unique(y)) < 2:  # a sample of one class has nothing to tell apart
            return DummyClassifier(strategy="most_frequent").fit(X, y), np.empty(0)
        if self.out_of_bag == "stop":
            held = np.setdiff1d(np.arange(self.n_rows_), sample.rows)
            test = data.X[np.ix_(held, sample.columns)], data.y[held]
            classes = np.arange(n_classes) if n_classes else None
            found = stopped(
                model, (X, y), test, classes=classes, epochs=int(self.max_epochs), patience=int(self.patience)
            )
            return found.model, found.errors
        if data.weight is None:
            return model.fit(X, y), np.empty(0)
        return model.fit(X, y, sample_weight=data.weight[sample.rows]), np.empty(0)

    def _join(self, base: Any, made: list[Fitted]) -> None:
        """Keep members and, if they are trees, all their nodes in one set of arrays with the columns of the whole."""
        self.estimators_, self.epoch_errors_ = [one.model for one in made], [one.epochs for one in made]
        self.member_seconds_ = np.array([one.seconds for one in made])
        self.__dict__.pop("trees_", None)
        if isinstance(base, DecisionTree):
            self.trees_ = joined([self._placed(t) for t in range(len(self.estimators_))]).as_dict()

    def _placed(self, t: int) -> Nodes:
        nodes, columns = self.estimators_[t].nodes_, self._sample(self.seeds_[t]).columns
        return nodes._replace(column=np.where(nodes.column < 0, -1, columns[nodes.column]).astype(np.int32))

    # What the members say
    # ----------------------------------------------------------------------------------------

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """Row numbers of each member's sample, repeated as often as drawn."""
        check_is_fitted(self)
        return [self._sample(seed).rows for seed in self.seeds_]

    @property
    def estimators_features_(self) -> list[np.ndarray]:
        """Columns of each member."""
        check_is_fitted(self)
        return [self._sample(seed).columns for seed in self.seeds_]

    def bags(self) -> np.ndarray:
        """Return (members, rows): how often each training row was drawn for each member."""
        return np.array([np.bincount(drawn, minlength=self.n_rows_) for drawn in self.estimators_samples_])

    def _member_values(self, t: int, X: np.ndarray) -> np.ndarray:
        """Return what member t says about coded rows X: class shares or votes, or numbers, (rows, outputs)."""
        if "trees_" in self.__dict__:
            return member_values(self.nodes_, t, X)
        return self._said(self.estimators_[t], X[:, self._sample(self.seeds_[t]).columns])

    def _said(self, member: Any, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _values(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = read_columns(self, X).X
        if "trees_" in self.__dict__:
            return mean_values(self.nodes_.check(self.n_features_in_), X, self.n_jobs)
        said = thread_map(lambda t: self._member_values(t, X), range(len(self.estimators_)), n_jobs=self.n_jobs)
        return np.sum(said, axis=0) / len(said)

    def _every_value(self, X: np.ndarray) -> Iterator[np.ndarray]:
        yield from (self._member_values(t, X) for t in range(len(self.estimators_)))

    def _curve(self, data: Read, n_classes: int) -> Curve:
        return out_of_bag(self._every_value(data.X), self.bags() == 0, data.y, n_classes)

    def _keep_out_of_bag(self, found: Curve, y: np.ndarray) -> None:
        raise NotImplementedError

    def _training_error(self, data: Read) -> float:
        raise NotImplementedError

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean decrease of impurity by each column, summing to 1; of trees of assay.tree only."""
        check_is_fitted(self)
        if "trees_" not in self.__dict__:
            raise AttributeError("feature_importances_: the members are not trees of assay.tree.")
        return impurity_importances(self.nodes_, self.n_features_in_)

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        if "trees_" not in self.__dict__:
            raise refuse(
                self,
                f"certificates are about trees of assay.tree; {type(self.estimator).__name__} is not re-run "
                "by the checker. Use estimator=None or a tree.",
            )
        return known_rows(self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = get_tags(self._base()).input_tags.allow_nan
        return tags


class BaggingClassifier(ClassifierMixin, Bagging):
    """Votes of one kind of classifier fitted to many samples of the rows.

    Parameters
    ----------
    estimator : classifier or None
        Base learner of Assay or in scikit-learn's style; None is an unpruned `DecisionTreeClassifier`.
    n_estimators : int
    max_samples : int, or share in (0, 1]
        Rows drawn for each member.
    max_features : None, int, share in (0, 1], "sqrt" or "log2"
        Columns drawn for each member.
    bootstrap, bootstrap_features : bool
        Whether rows (columns) are drawn with replacement.
    voting : "soft" or "hard"
        Mean of probabilities (of votes, for members without), or plurality of votes.
    oob_score : bool
        Whether the out-of-bag attributes are computed.
    out_of_bag : None, "prune" or "stop"
        What else out-of-bag rows are used for: each tree is pruned on its own ones wherever that does not raise its
        error, or each member with `partial_fit` is trained at most `max_epochs` epochs, until its error on them has
        not fallen for `patience` epochs, and is restored to its best epoch.
    warm_start : bool
        Whether a second `fit` keeps the members and adds those that are missing; the rows must be the same.
    n_jobs : int or None
        Threads; changes the time, never a bit.

    Attributes
    ----------
    classes_, estimators_ (fitted to positions in `classes_`), feature_importances_ (trees)
    estimators_samples_, estimators_features_ : rows (repeated as drawn) and columns of each member
    oob_score_, oob_decision_function_ (rows, classes), oob_votes_ (rows, classes) : out-of-bag accuracy, mean
        probabilities, numbers of votes; oob_errors_ (members,) : out-of-bag error after each member
    member_seconds_ : time of each member;  epoch_errors_ : out-of-bag errors of each member's epochs

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.ensemble import BaggingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> BaggingClassifier(n_estimators=30, oob_score=True, random_state=0).fit(X, y).oob_score_ > 0.9
    True
    """

    family = "tree-vote-classifier"
    classes_: np.ndarray
    card = Card(
        name="Bagging classifier",
        zh="自助聚合",
        mission=tuple(f"ENS-{i}" for i in (30, 31, 32, 33, 34, 35, 36)),
        task="classify",
        model=OfAnySize("votes of any number of members"),
        strategy="that of the base learner; averaging",
        algorithm="base learner on bootstrap samples, members on threads",
        guarantee=("pac-bayes.vote",),
    )

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: Any = 1.0,
        max_features: Any = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        voting: str = "soft",
        oob_score: bool = False,
        out_of_bag: str | None = None,
        max_epochs: int = 200,
        patience: int = 10,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.bootstrap_features = bootstrap_features
        self.voting = voting
        self.oob_score = oob_score
        self.out_of_bag = out_of_bag
        self.max_epochs = max_epochs
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _base(self) -> Any:
        return DecisionTreeClassifier() if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to rows X and labels y; weights go to the base learner."""
        choice(self, "voting", ("soft", "hard"))
        data = read_columns(self, X, y, sample_weight, reset=True)
        known: Any = rows(data.X, data.y)
        classes = label_classes(self, known)
        if self.warm_start and hasattr(self, "estimators_") and not np.array_equal(classes, self.classes_):
            raise refuse(self, "warm_start: the classes are not those of the members already fitted.")
        self.classes_ = classes
        codes = np.asarray(known.encoded(classes).y, dtype=np.int64)
        self._fit(data._replace(y=codes), len(classes))
        return self

    def _join(self, base: Any, made: list[Fitted]) -> None:
        super()._join(base, made)
        if self.voting == "hard" and "trees_" in self.__dict__:
            self.trees_["value"] = np.eye(len(self.classes_))[self.trees_["value"].argmax(axis=1)]

    def _said(self, member: Any, X: np.ndarray) -> np.ndarray:
        if self.voting == "soft" and hasattr(member, "predict_proba"):
            shares = np.zeros((len(X), len(self.classes_)))
            shares[:, member.classes_] = member.predict_proba(X)
            return shares
        return np.eye(len(self.classes_))[member.predict(X)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the mean of the members' probabilities; with hard voting the shares of the votes."""
        return self._values(X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self._values(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the largest mean probability, or the most votes; the first of equals."""
        shares = self._values(X)
        return self.classes_[shares.argmax(axis=1)]

    def member_votes(self, X: Any) -> np.ndarray:
        """Return the class position that each member votes for, (rows, members)."""
        check_is_fitted(self)
        if "trees_" in self.__dict__:
            self.nodes_.check(self.n_features_in_)
        X = read_columns(self, X).X
        return np.stack([values.argmax(axis=1) for values in self._every_value(X)], axis=1)

    def strength(self, X: Any, y: Any, *, out_of_bag: bool = False) -> Strength:
        """Return strength and mean correlation of the members on some rows; with `out_of_bag`, X are the training
        rows and each is judged by the members that did not see it."""
        said = self.bags().T == 0 if out_of_bag else None
        return strength_of(self.member_votes(X), np.searchsorted(self.classes_, y), len(self.classes_), said)

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield the bound of the error on new data by out-of-bag rows."""
        yield from vote_statements(self, rows)

    def score_bounds(self, rows: Rows) -> tuple[np.ndarray, float]:
        """Return the mean shares of each row, and how far rounding can move them."""
        return mean_shares(self.nodes_, rows, self.n_jobs)

    def count_errors(self, rows: Rows) -> tuple[int, int]:
        """Return the least and the largest number of errors on `rows` that rounding leaves open."""
        return mean_share_errors(self.nodes_, rows, self.n_jobs)

    def _keep_out_of_bag(self, found: Curve, y: np.ndarray) -> None:
        self.oob_decision_function_, self.oob_votes_, self.oob_errors_ = found.values, found.votes, found.errors
        hits = found.values[found.seen].argmax(axis=1) == y[found.seen]
        self.oob_score_ = float(hits.mean()) if found.seen.any() else float("nan")

    def _training_error(self, data: Read) -> float:
        total = sum(self._every_value(data.X))
        return float((np.asarray(total).argmax(axis=1) != data.y).mean())


class BaggingRegressor(RegressorMixin, Bagging):
    """Mean of one kind of regressor fitted to many samples of the rows; parameters as `BaggingClassifier`.

    Attributes: `oob_prediction_` (rows,), `oob_score_` (R^2), `oob_errors_` (mean squared error after each member);
    the others are those of `BaggingClassifier`.

    >>> from assay.ensemble import BaggingRegressor
    >>> BaggingRegressor(n_estimators=5, bootstrap=False).fit([[1.0], [2.0]], [3.0, 4.0]).predict([[1.0], [2.0]])
    array([3., 4.])
    """

    family = "tree-mean-regressor"
    card = Card(
        name="Bagging regressor",
        zh="自助聚合",
        mission=("ENS-30", "ENS-31"),
        task="regress",
        model=OfAnySize("means of any number of members"),
        strategy="that of the base learner; averaging",
        algorithm="base learner on bootstrap samples, members on threads",
        guarantee=(),
    )

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: Any = 1.0,
        max_features: Any = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        oob_score: bool = False,
        out_of_bag: str | None = None,
        max_epochs: int = 200,
        patience: int = 10,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.bootstrap_features = bootstrap_features
        self.oob_score = oob_score
        self.out_of_bag = out_of_bag
        self.max_epochs = max_epochs
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _base(self) -> Any:
        return DecisionTreeRegressor() if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to rows X and numbers y; weights go to the base learner."""
        self._fit(read_columns(self, X, y, sample_weight, reset=True), 0)
        return self

    def _said(self, member: Any, X: np.ndarray) -> np.ndarray:
        return np.asarray(member.predict(X), dtype=np.float64).reshape(-1, 1)

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean of the members' predictions."""
        return self._values(X)[:, 0]

    def clipped_errors(self, rows: Rows, clip: float) -> np.ndarray:
        """Return min(|y - f(x)|, clip) of each row, rounded up."""
        return clipped_mean_errors(self.nodes_, rows, clip, self.n_jobs)

    def squared_error(self, rows: Rows) -> tuple[float, float]:
        """Return an interval that holds the mean squared error on `rows`."""
        return mean_squared_error(self.nodes_, rows, self.n_jobs)

    def _keep_out_of_bag(self, found: Curve, y: np.ndarray) -> None:
        self.oob_prediction_, self.oob_errors_ = found.values[:, 0], found.errors
        error = ((found.values[found.seen, 0] - y[found.seen]) ** 2).sum()
        self.oob_score_ = float(1 - error / max(((y[found.seen] - y[found.seen].mean()) ** 2).sum(), 1e-300))

    def _training_error(self, data: Read) -> float:
        mean = np.asarray(sum(self._every_value(data.X)))[:, 0] / len(self.estimators_)
        return float(((mean - data.y) ** 2).mean())
