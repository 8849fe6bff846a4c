"""What bagging of classifiers and of regressors shares: samples, members, out-of-bag rows."""

import time
import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from assay.ensemble._bootstrap import bag
from assay.ensemble._members import OfMembers
from assay.ensemble._out_of_bag import Curve, out_of_bag, pruned, stopped
from assay.ensemble._permutation_importance import Analysed
from assay.ensemble._vote_claims import sampling
from assay.ensemble._votes import member_values
from assay.ensemble._voting import Members
from assay.fitlog import FitLog
from assay.params import Choice, Count, Flag, refuse
from assay.scan import Rows, thread_map
from assay.tree import DecisionTreeClassifier
from assay.tree._decision_tree import DecisionTree, known_rows
from assay.tree._limits import feature_count, row_count
from assay.tree._nodes import Nodes, joined, one_leaf, tree_at
from assay.tree._predict import mean_values
from assay.tree._readable import impurity_importances
from assay.tree._reading import Read, read_columns


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


@dataclass(eq=False, repr=False)
class Bagging(Members, Analysed, OfMembers):
    """What bagging of classifiers and of regressors shares."""

    estimator: Any = None
    n_estimators: int = 10
    _: KW_ONLY
    max_samples: Any = 1.0
    max_features: Any = 1.0
    bootstrap: bool = True
    bootstrap_features: bool = False
    oob_score: bool = False
    out_of_bag: str | None = None
    max_epochs: int = 200
    patience: int = 10
    warm_start: bool = False
    parameters: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    seeds_: np.ndarray = field(init=False)
    more_arrays: ClassVar = ("member_columns_",)
    constraints: ClassVar = {
        "n_estimators": Count(),
        "bootstrap": Flag,
        "bootstrap_features": Flag,
        "oob_score": Flag,
        "warm_start": Flag,
        "out_of_bag": Choice(None, "prune", "stop"),
        "max_epochs": Count(),
        "patience": Count(),
    }

    # Fitting
    # ----------------------------------------------------------------------------------------

    def _fit(self, data: Read, n_classes: int) -> None:
        n, d = data.X.shape
        base = self._checked_base(data)
        size, width = row_count(self, "max_samples", n, 1), feature_count(self, d)
        if size > n and not self.bootstrap:
            raise refuse(self, f"max_samples={size} rows cannot be drawn from {n} without replacement.")
        kept, seeds = self._earlier(self.n_estimators, (n, d))
        self.seeds_, self.bag_size_, self.n_columns_, self.n_rows_ = seeds, size, width, n
        self.kept_members_, self.sampled_by_ = len(kept), sampling(self)
        if (self.oob_score or self.out_of_bag) and size == n and not self.bootstrap:
            raise refuse(self, "out-of-bag rows need bootstrap=True or max_samples below the number of rows.")

        def member(seed: int) -> Fitted:
            began = time.perf_counter()
            sample = self._sample(seed)
            fit = self._tree if isinstance(base, DecisionTree) else self._other
            model, epochs = fit(clone(base).set_params(**self._drawn(seed)), sample, self._told(data, seed), n_classes)
            return Fitted(model, time.perf_counter() - began, epochs)

        with FitLog(self, 1, *data.shown) as log:
            made = kept + thread_map(member, seeds[len(kept) :].tolist(), n_jobs=self.n_jobs)
            self._join(base, made)
            if self.oob_score:
                self._keep_out_of_bag(self._curve(data, n_classes), data.y)
            log.step(self._training_error(data), 0.0)

    def _earlier(self, total: int, shape: tuple[int, int]) -> tuple[list[Fitted], np.ndarray]:
        """Return the members that a warm start keeps, and the seeds of all members."""
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=total)
        if not (self.warm_start and hasattr(self, "member_columns_")):
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
        self._check_parameters(base)
        if self.columns_ is not None and not tree:
            raise refuse(self, "nominal columns go with the trees of assay.tree; encode them for other base learners.")
        if data.weight is not None and not tree and not has_fit_parameter(base, "sample_weight"):
            raise refuse(self, f"{type(base).__name__} takes no sample_weight; fit without weights.")
        if self.out_of_bag == "prune" and not tree:
            raise refuse(self, f'out_of_bag="prune" needs a tree of assay.tree; got {type(base).__name__}.')
        if self.out_of_bag == "stop" and not hasattr(base, "partial_fit"):
            raise refuse(self, f'out_of_bag="stop" needs a learner with partial_fit; got {type(base).__name__}.')
        return base

    def _check_parameters(self, base: Any) -> None:
        if self.parameters is None:
            return
        if not isinstance(self.parameters, dict) or not set(self.parameters) <= set(base.get_params()):
            raise refuse(
                self,
                f"parameters must be a dict of parameters of {type(base).__name__}; got {str(self.parameters)[:80]}.",
            )
        for name, values in self.parameters.items():
            if not hasattr(values, "rvs") and not (isinstance(values, (list, tuple, np.ndarray)) and len(values)):
                raise refuse(self, f"parameters: {name} needs a list of values or a distribution; got {values!r}.")

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

    def _drawn(self, seed: int) -> dict[str, Any]:
        """Return the parameters of one member that are drawn for it; they depend on its seed alone."""
        rng = np.random.RandomState(np.random.default_rng([int(seed), 3]).integers(2**31 - 1))
        drawn = {}
        for name, values in sorted((self.parameters or {}).items()):
            drawn[name] = values.rvs(random_state=rng) if hasattr(values, "rvs") else values[rng.randint(len(values))]
        return drawn

    def _told(self, data: Read, seed: int) -> Read:
        """Return the rows with the targets that one member is told."""
        return data

    @property
    def estimator_params_(self) -> list[dict[str, Any]]:
        """The parameters that were drawn for each member."""
        check_is_fitted(self)
        return [self._drawn(seed) for seed in self.seeds_]

    def _tree(self, tree: Any, sample: Sample, data: Read, n_classes: int) -> tuple[Any, np.ndarray]:
        weight = None if data.weight is None else data.weight[sample.rows]
        part = Read(data.X[np.ix_(sample.rows, sample.columns)], data.y[sample.rows], weight, 1)
        if getattr(tree, "class_weight", None) is not None:
            factor = compute_sample_weight(tree.class_weight, self.classes_[part.y])
            part.weight = factor if part.weight is None else part.weight * factor
        tree.set_params(random_state=sample.seed, n_jobs=1)
        columns = None if self.columns_ is None else tuple(self.columns_[j] for j in sample.columns)
        tree.fit_read(part, columns, self.classes_ if n_classes else None)
        if self.out_of_bag == "prune":
            held = np.setdiff1d(np.arange(self.n_rows_), sample.rows)
            X = data.X[np.ix_(held, sample.columns)]
            tree.keep_nodes(pruned(tree.nodes_, X, data.y[held], n_classes))
        return tree, np.empty(0)

    def _other(self, model: Any, sample: Sample, data: Read, n_classes: int) -> tuple[Any, np.ndarray]:
        names = [name for name in model.get_params() if name.rpartition("__")[2] == "random_state"]
        model.set_params(**dict.fromkeys(names, sample.seed))
        X, y = data.X[np.ix_(sample.rows, sample.columns)], data.y[sample.rows]
        if n_classes and len(np.unique(y)) < 2:  # a sample of one class has nothing to tell apart
            constant = DecisionTreeClassifier().restored(one_leaf(np.ones(1)), self, X.shape[1])
            constant.classes_ = y[:1]
            return constant, np.empty(0)
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
        self.epoch_errors_ = [one.epochs for one in made]
        self.member_seconds_ = np.array([one.seconds for one in made])
        self.member_columns_ = np.stack([self._sample(seed).columns for seed in self.seeds_])
        self.drop_nodes()
        self.members_ = [] if isinstance(base, DecisionTree) else [one.model for one in made]
        if isinstance(base, DecisionTree):
            self.keep_nodes(joined([_placed(one.model.nodes_, of) for one, of in zip(made, self.member_columns_)]))

    # What the members say
    # ----------------------------------------------------------------------------------------

    @property
    def _n_members(self) -> int:
        return len(self.tree_root_) if self.has_nodes else len(self.members_)

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """Row numbers of each member's sample, repeated as often as drawn."""
        check_is_fitted(self)
        return [self._sample(seed).rows for seed in self.seeds_]

    @property
    def estimators_features_(self) -> list[np.ndarray]:
        """Columns of each member."""
        check_is_fitted(self)
        return list(self.member_columns_)

    @property
    def estimators_(self) -> list[Any]:
        """The members, each for its own columns; trees are made from the arrays of the model."""
        check_is_fitted(self)
        return [self._tree_member(t) for t in range(len(self.tree_root_))] if self.has_nodes else self.members_

    def _tree_member(self, t: int) -> Any:
        nodes, columns = tree_at(self.nodes_, t), self.member_columns_[t]
        place = np.full(self.n_features_in_, -1, dtype=np.int32)
        place[columns[::-1]] = np.arange(len(columns), dtype=np.int32)[::-1]  # the first of columns drawn twice
        nodes = nodes._replace(column=np.where(nodes.column < 0, -1, place[nodes.column]))
        tree = clone(self._base()).restored(nodes, self, len(columns))
        tree.columns_ = None if self.columns_ is None else tuple(self.columns_[j] for j in columns)
        return tree

    def bags(self) -> np.ndarray:
        """Return (members, rows): how often each training row was drawn for each member."""
        return np.array([np.bincount(drawn, minlength=self.n_rows_) for drawn in self.estimators_samples_])

    def _member_values(self, t: int, X: np.ndarray) -> np.ndarray:
        """Return what member t says about coded rows X: class shares or votes, or numbers, (rows, outputs)."""
        if self.has_nodes:
            return member_values(self.nodes_, t, X)
        return self._said(self.members_[t], X[:, self.member_columns_[t]])

    def _said(self, member: Any, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _values(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = read_columns(self, X).X
        if self.has_nodes:
            return mean_values(self.nodes_.check(self.n_features_in_), X, self.n_jobs)
        said = thread_map(lambda t: self._member_values(t, X), range(self._n_members), n_jobs=self.n_jobs)
        return np.sum(said, axis=0) / len(said)

    def _every_value(self, X: np.ndarray) -> Iterator[np.ndarray]:
        yield from (self._member_values(t, X) for t in range(self._n_members))

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
        if not self.has_nodes:
            raise AttributeError("feature_importances_: the members are not trees of assay.tree.")
        return impurity_importances(self.nodes_, self.n_features_in_)

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        if not self.has_nodes:
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


def _placed(nodes: Nodes, columns: np.ndarray) -> Nodes:
    """Return the tree of a member with the columns of the whole."""
    return nodes._replace(column=np.where(nodes.column < 0, -1, columns[nodes.column]).astype(np.int32))
