"""What bagging of classifiers and of regressors shares: samples, members, out-of-bag rows."""

import time
import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_method_params, check_is_fitted

from assay.ensemble._bootstrap import (
    Curve,
    Draw,
    check_kept,
    out_of_bag,
    pruned,
    require_one_sample,
    sample_size,
    stopped,
    warn_of_unseen,
)
from assay.ensemble._combined import MemberError
from assay.ensemble._members import (
    HomogeneousEnsemble,
    any_given,
    any_rows,
    consumes_weights,
    grows_nodes,
    routed_to,
    routing_of,
    seed_parts,
)
from assay.ensemble._votes import ParallelEnsemble, member_values, sampling
from assay.fitlog import FitLog
from assay.params import Choice, Count, Flag, check, refuse
from assay.scan import Rows, thread_map
from assay.tree import DecisionTreeClassifier
from assay.tree._decision_tree import known_rows
from assay.tree._export import impurity_importances
from assay.tree._nodes import Nodes, joined, one_leaf, tree_at
from assay.tree._predict import mean_values
from assay.tree._reading import Read, read_columns
from assay.tree.growth._growers import feature_count, grown_trees


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
class Bagging(ParallelEnsemble, HomogeneousEnsemble):
    """What bagging of classifiers and of regressors shares."""

    estimator: Any = None
    n_estimators: int = 10
    _: KW_ONLY
    max_samples: Any = None
    max_features: Any = 1.0
    bootstrap: bool = True
    bootstrap_features: bool = False
    oob_score: Any = False
    out_of_bag: str | None = None
    max_epochs: int = 200
    patience: int = 10
    warm_start: bool = False
    parameters: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0
    seeds_: np.ndarray = field(init=False)
    more_arrays: ClassVar = ("member_columns_",)
    keeps_rows_of_no_weight: ClassVar = True
    constraints: ClassVar = {
        "n_estimators": Count(),
        "bootstrap": Flag,
        "bootstrap_features": Flag,
        "oob_score": Flag,
        "warm_start": Flag,
        "verbose": Count(low=0),
        "out_of_bag": Choice(None, "prune", "stop"),
        "max_epochs": Count(),
        "patience": Count(),
    }

    # Fitting
    # ----------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Any:
        """Fit to rows X and targets y. Rows are drawn in proportion to their weights; `fit_params` go to the members,
        if scikit-learn's metadata routing is on."""
        check(self)
        routed = routed_to(self, "fit", fit_params)
        if sample_weight is not None and not self.bootstrap:
            warnings.warn(
                f"When fitting {type(self).__name__} with sample_weight it is recommended to use bootstrap=True: "
                "without replacement, heavy rows are drawn once at most.",
                UserWarning,
                stacklevel=2,
            )
        if self.warm_start and self._fitted and check_kept(self, len(self.member_columns_)) == self.n_estimators:
            warnings.warn(
                "Warm-start fitting without increasing n_estimators does not fit new trees.", UserWarning, stacklevel=2
            )
            return self
        before = getattr(self, "classes_", None) if self.warm_start and self._fitted else None
        data = self._read(X, y, sample_weight)
        if before is not None and not np.array_equal(before, self.classes_):
            self.classes_ = before
            raise refuse(self, "warm_start: the classes are not those of the members already fitted.")
        self._fit(data, len(self.classes_) if is_classifier(self) else 0, routed)
        return self

    @property
    def _fitted(self) -> bool:
        return hasattr(self, "member_columns_")

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Return checked rows: as trees see them, or as they are for members that check them by themselves."""
        if not grows_nodes(self._base()):
            return any_given(self, X, y, sample_weight)
        return self._read_trees(X, y, sample_weight)

    def _read_trees(self, X: Any, y: Any, sample_weight: Any) -> Read:
        raise NotImplementedError

    def _fit(self, data: Any, n_classes: int, routed: dict[str, Any]) -> None:
        n, d = data.X.shape[0], data.X.shape[1]
        base = self._checked_base()
        whole = not self.bootstrap and not isinstance(self.max_samples, Integral) and self.max_samples in (None, 1.0)
        drawn_by = None if whole else data.weight  # where each member has all rows, weights go to the members
        size, width = n if whole else sample_size(self, n, drawn_by), feature_count(self, d)
        if isinstance(self.max_features, Integral) and self.max_features > d:
            raise refuse(self, f"max_features must be <= n_features; got {self.max_features} of {d}.")
        if size > n and not self.bootstrap:
            raise refuse(
                self, f"Effective max_samples={size} must be <= n_samples={n} to be able to sample without replacement."
            )
        if (self.oob_score or self.out_of_bag) and size == n and not self.bootstrap:
            raise refuse(self, "Out of bag estimation only available if bootstrap=True, or max_samples below all rows.")
        if self.oob_score and self.warm_start and self._fitted:
            require_one_sample(self, n)
        self.n_columns_, self.bag_size_, self.n_rows_ = width, size, n
        draw = Draw(n, size, bool(self.bootstrap), drawn_by)
        kept, seeds = self._earlier(draw)
        self.drawn_by_weight_ = drawn_by is not None
        self.kept_members_, self.sampled_by_ = len(kept), sampling(self)
        trees = grows_nodes(base)

        def member(t: int) -> Fitted:
            began, seed = time.perf_counter(), int(seeds[t])
            if self.verbose > 1:
                print(f"Building estimator {t + 1} of {len(seeds)}")
            sample = self._sample(seed, draw)
            model = clone(base).set_params(**self._drawn(seed))
            try:
                fit = self._tree if trees else partial(self._other, routed=routed)
                model, epochs = fit(model, sample, self._told(data, seed), n_classes)
            except Exception as error:
                raise MemberError(
                    f"{type(self).__name__}: the member {t} ({type(base).__name__}) failed: {error}"
                ) from error
            return Fitted(model, time.perf_counter() - began, epochs)

        with FitLog(self, 1, *data.shown) as log:
            made = kept + grown_trees(member, range(len(kept), len(seeds)), self.n_jobs)
            log.stopped |= len(made) < len(seeds)
            self.seeds_ = seeds[: len(made)]
            del self.draws_[len(made) :]
            self._join(trees, made)
            for name in ("oob_score_", "oob_decision_function_", "oob_prediction_", "oob_votes_", "oob_errors_"):
                self.__dict__.pop(name, None)
            if self.oob_score:
                self._out_of_bag(data, n_classes)
            log.step(self._training_error(data) if trees else float("nan"), 0.0)

    def _earlier(self, draw: Draw) -> tuple[list[Fitted], np.ndarray]:
        """Return the members that a warm start keeps, and the seeds of all members."""
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_estimators)
        if not (self.warm_start and self._fitted):
            self.draws_ = [draw] * len(seeds)
            return [], seeds
        kept = [Fitted(*item) for item in zip(self.estimators_, self.member_seconds_, self.epoch_errors_)]
        self.draws_ = [*self.draws_[: len(kept)], *[draw] * (len(seeds) - len(kept))]
        return kept, np.concatenate([self.seeds_, seeds[len(kept) :]])

    def _checked_base(self) -> Any:
        base, classify = self._base(), is_classifier(self)
        other = is_regressor(base) if classify else is_classifier(base)
        if other or not all(hasattr(base, name) for name in ("fit", "predict")):
            kind = "classifier" if classify else "regressor"
            raise refuse(self, f"estimator must be a {kind} with fit and predict; got {base!r}.")
        tree = grows_nodes(base)
        self._check_parameters(base)
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

    def _sample(self, seed: int, draw: Draw) -> Sample:
        """Return the rows and columns of one member; they depend on its seed alone, and on the weights of the rows."""
        d = self.n_features_in_
        rng = np.random.default_rng([int(seed), 1])
        drawn = draw.rows(seed)
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
        weight = None if data.weight is None or self.drawn_by_weight_ else data.weight[sample.rows]
        rows = sample.rows if weight is None else sample.rows[weight > 0]
        weight = None if weight is None else weight[weight > 0]
        part = Read(tree, data.X[np.ix_(rows, sample.columns)], data.y[rows], weight, 1)
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

    def _other(
        self, model: Any, sample: Sample, data: Any, n_classes: int, routed: dict[str, Any]
    ) -> tuple[Any, np.ndarray]:
        seed_parts(model, sample.seed)
        if self.out_of_bag == "stop":
            return self._stopped(model, sample, data, n_classes)
        y = data.y[sample.rows]
        present = len(np.unique(y)) if n_classes else 0
        try:
            if self._takes_weights(model, n_classes, present):
                times = np.bincount(sample.rows, minlength=self.n_rows_).astype(np.float64)
                times *= 1.0 if data.weight is None or self.drawn_by_weight_ else data.weight
                model.fit(self._part(data.X, None, sample.columns), data.y, **{**routed, "sample_weight": times})
            elif data.weight is not None and not self.drawn_by_weight_:
                raise refuse(self, f"{type(model).__name__} takes no sample weights, and every member has all rows.")
            else:
                given = _check_method_params(data.X, params=routed, indices=sample.rows)
                model.fit(self._part(data.X, sample.rows, sample.columns), y, **given)
        except ValueError:
            if present != 1:
                raise
            return self._constant(y, sample), np.empty(0)
        return model, np.empty(0)

    def _constant(self, y: np.ndarray, sample: Sample) -> Any:
        """Return the member of a sample of one class, which most learners refuse: it votes for that class."""
        constant = DecisionTreeClassifier().restored(one_leaf(np.ones(1)), self, len(sample.columns))
        constant.classes_ = y[:1]
        return constant

    def _stopped(self, model: Any, sample: Sample, data: Any, n_classes: int) -> tuple[Any, np.ndarray]:
        held = np.setdiff1d(np.arange(self.n_rows_), sample.rows)
        rows, rest = (self._part(data.X, at, sample.columns) for at in (sample.rows, held))
        result = stopped(
            model,
            (rows, data.y[sample.rows]),
            (rest, data.y[held]),
            classes=np.arange(n_classes) if n_classes else None,
            epochs=int(self.max_epochs),
            patience=int(self.patience),
        )
        return result.model, result.errors

    def _takes_weights(self, model: Any, n_classes: int, present: int) -> bool:
        """Tell whether a sample is told to a member as how often each row counts; not to a classifier if a class is
        missing in it, since some divide by its weight."""
        return consumes_weights(model) and (not is_classifier(model) or present == n_classes)

    def _part(self, X: Any, rows: np.ndarray | None, columns: np.ndarray) -> Any:
        """Return rows (None: all) and columns of an array or of sparse rows, copied only where they differ."""
        every = len(columns) == self.n_features_in_ and np.array_equal(columns, np.arange(len(columns)))
        X = X if rows is None else X[rows]
        return X if every else X[:, columns]

    def _join(self, trees: bool, made: list[Fitted]) -> None:
        """Keep members and, if they are trees, all their nodes in one set of arrays with the columns of the whole."""
        self.epoch_errors_ = [item.epochs for item in made]
        self.member_seconds_ = np.array([item.seconds for item in made])
        self.member_columns_ = np.stack([sample.columns for sample in self._samples()])
        self.drop_nodes()
        self.members_ = [] if trees else [item.model for item in made]
        if trees:
            self.keep_nodes(joined([_placed(item.model.nodes_, of) for item, of in zip(made, self.member_columns_)]))

    # What the members say
    # ----------------------------------------------------------------------------------------

    @property
    def _n_members(self) -> int:
        return len(self.tree_root_) if self.has_nodes else len(self.members_)

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """Row numbers of each member's sample, repeated as often as drawn."""
        check_is_fitted(self)
        return [sample.rows for sample in self._samples()]

    def _samples(self) -> Iterator[Sample]:
        yield from (self._sample(seed, draw) for seed, draw in zip(self.seeds_.tolist(), self.draws_))

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
        tree = clone(self._base()).set_params(n_jobs=1)
        if hasattr(self, "draws_"):
            seed = int(self.seeds_[t])
            tree.set_params(random_state=self._sample(seed, self.draws_[t]).seed, **self._drawn(seed))
        tree.restored(nodes, self, len(columns))
        tree.columns_ = None if self.columns_ is None else tuple(self.columns_[j] for j in columns)
        return tree

    def bags(self) -> np.ndarray:
        """Return (members, rows): how often each training row was drawn for each member."""
        require_one_sample(self)
        return np.array([np.bincount(drawn, minlength=self.n_rows_) for drawn in self.estimators_samples_])

    def _member_values(self, t: int, X: Any, **given: Any) -> np.ndarray:
        """Return what member t says about coded rows X: class shares or votes, or numbers, (rows, outputs)."""
        if self.has_nodes:
            return member_values(self.nodes_, t, X)
        return self._member_output(self.members_[t], self._part(X, None, self.member_columns_[t]), **given)

    def _member_output(self, member: Any, X: Any, **given: Any) -> np.ndarray:
        raise NotImplementedError

    def _rows(self, X: Any) -> Any:
        """Return checked rows as the members take them."""
        check_is_fitted(self)
        return read_columns(self, X).X if self.has_nodes else any_rows(self, X)

    def _values(self, X: Any, **given: Any) -> np.ndarray:
        X = self._rows(X)
        if self.has_nodes:
            return mean_values(self.nodes_.check(self.n_features_in_), X, self.n_jobs)
        n_jobs = 1 if given and self.n_jobs is None else self.n_jobs  # metadata may not be made for threads
        outputs = thread_map(lambda t: self._member_values(t, X, **given), range(self._n_members), n_jobs=n_jobs)
        return np.sum(outputs, axis=0) / len(outputs)

    def _every_value(self, X: Any) -> Iterator[np.ndarray]:
        yield from (self._member_values(t, X) for t in range(self._n_members))

    def _out_of_bag(self, data: Any, n_classes: int) -> None:
        if data.y.ndim == 2:
            raise refuse(self, "oob_score is about one output.")
        out = self.bags() == 0
        if not out.any(axis=0).all():
            warn_of_unseen("estimators")
        self._keep_out_of_bag(out_of_bag(self._every_value(data.X), out, data.y, n_classes), data.y)

    def _keep_out_of_bag(self, curve: Curve, y: np.ndarray) -> None:
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
        base = get_tags(self._base()).input_tags
        tags.input_tags.allow_nan, tags.input_tags.sparse = base.allow_nan, base.sparse
        return tags

    def get_metadata_routing(self) -> Any:
        """Return which methods of the members metadata goes to."""
        return routing_of(self, self._base())


def _placed(nodes: Nodes, columns: np.ndarray) -> Nodes:
    """Return the tree of a member with the columns of the whole."""
    return nodes._replace(column=np.where(nodes.column < 0, -1, columns[nodes.column]).astype(np.int32))
