"""Ensembles of members by name, as in scikit-learn's heterogeneous ensembles, with weights given or learnt.

    minimise  F(w) = mean over rows and outputs of |sum_t w_t h_t(x) - y|^2   subject to  w >= 0, sum w = 1

y is the target, or for classes the one-hot label, and h_t the prediction of member t, on rows that no member was fitted
to. Every member and the plain mean are points of the simplex, so none of them has a smaller error on these rows. On
other rows that need not hold: T weights fitted to few rows overfit them, and if members are about equally good there is
nothing to learn. `chosen_weights` therefore compares learnt with equal weights on rows that the former were not
fitted to.
"""

import hashlib
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, _safe_indexing, check_random_state
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted

from assay.claims.claim import Claim, NotApplicable
from assay.ensemble._combined import CombinedLearner, Task, fit_members, fit_some
from assay.ensemble._members import routing_by_name
from assay.fitlog import FitLog
from assay.guarantees.ledger import FIT_NOT_KEPT
from assay.messages import Message
from assay.optim.constrained import QuadraticProgramme
from assay.params import Maybe, Number, refuse
from assay.scan import Rows, thread_map

# Learnt weights ---------------------------------------------------------------------------------------------------


class Learnt(NamedTuple):
    """Weights, how far their error can be above the least one, and whether they are those of the plain mean."""

    weights: np.ndarray
    gap: float
    simple: bool


def squared_error(outputs: np.ndarray, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the squared error of the weighted mean for each row; `outputs` is (rows, members, outputs)."""
    return ((np.einsum("t,itk->ik", weights, outputs) - target) ** 2).sum(axis=1)


def learnt_weights(outputs: np.ndarray, target: np.ndarray) -> Learnt:
    """Return the weights of least squared error over the simplex and a bound of the excess, <grad F, w> - min grad F.

    >>> said = np.array([[[1.0], [0.0]], [[2.0], [0.0]], [[3.0], [0.0]]])  # three rows, two members
    >>> learnt_weights(said, np.array([[1.0], [2.0], [3.0]])).weights.round(6).tolist()
    [1.0, 0.0]
    """
    m, T, _ = outputs.shape
    flat, y = outputs.transpose(0, 2, 1).reshape(-1, T), target.reshape(-1)
    scale = max(float(np.mean(flat * flat)), 1e-300)
    Q, p = flat.T @ flat / (len(flat) * scale), -flat.T @ y / (len(flat) * scale)
    result = QuadraticProgramme(2 * Q, 2 * p, np.eye(T), np.zeros(T), np.ones((1, T)), np.ones(1)).solve().u
    weights = np.where(result > 1e-9, result, 0.0)
    weights = weights / weights.sum()
    best = min([weights, *np.eye(T), np.full(T, 1 / T)], key=lambda w: float(squared_error(outputs, target, w).mean()))
    residual = np.einsum("t,itk->ik", best, outputs) - target
    slope = 2 * np.einsum("ik,itk->t", residual, outputs) / m
    return Learnt(best, max(0.0, float(slope @ best - slope.min())), False)


def chosen_weights(outputs: np.ndarray, target: np.ndarray) -> Learnt:
    """Return learnt weights if members differ so much that they pay on rows they were not learnt from, else equal ones.

    The rows are cut in two; weights learnt on one half are compared with equal weights on the other, and the learnt
    ones are taken if their error is lower by more than one standard error of the paired differences and by a hundredth.
    """
    m, T, _ = outputs.shape
    equal = np.full(T, 1 / T)
    if m >= 4:
        halves = np.arange(m) % 2 == 0
        gains, errors = [], []
        for half in (halves, ~halves):
            learnt = learnt_weights(outputs[half], target[half]).weights
            rest = outputs[~half], target[~half]
            errors.append(squared_error(*rest, equal))
            gains.append(errors[-1] - squared_error(*rest, learnt))
        gain = np.concatenate(gains)
        if gain.mean() > max(gain.std() / np.sqrt(m), 0.01 * float(np.concatenate(errors).mean())):
            return learnt_weights(outputs, target)
    return Learnt(equal, float("nan"), True)


# Members by name --------------------------------------------------------------------------------------------------


LEARN = ("learn", "auto")
_TOGETHER = 16  # members whose answers are held at once
_JUDGED = 10_000  # training rows, at even distances, whose error is written into the log


class NamedEstimators:
    """A list of members by name; what it may be is checked by the committee."""

    @staticmethod
    def check(owner: Any, name: str) -> Any:
        return owner._named()


class NamedMembers(CombinedLearner, _BaseComposition):
    """Members by name, as scikit-learn's heterogeneous ensembles have them."""

    estimators: Any
    estimators_: Any
    own_arrays: ClassVar[tuple[str, ...]] = ()
    kept_: np.ndarray
    """Positions of the fitted members among those that are asked for; set only if the fit was interrupted."""

    @property
    def more_arrays(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*self.own_arrays, "kept_") if "kept_" in vars(self) else self.own_arrays

    def _default(self) -> list[tuple[str, Any]]:
        raise NotImplementedError

    def _named(self) -> list[tuple[str, Any]]:
        """Return the members that are asked for, without those that are "drop"."""
        given = self._default() if self.estimators is None else self.estimators
        listed = isinstance(given, (list, tuple)) and len(given)
        pairs = listed and all(isinstance(item, (list, tuple)) and len(item) == 2 for item in given)
        if not pairs or not all(isinstance(name, str) for name, _ in given):
            raise refuse(
                self,
                "Invalid 'estimators' attribute, 'estimators' should be a non-empty list of (name, learner), the names "
                f"text; got {str(given)[:80]}.",
            )
        names = [name for name, _ in given]
        taken = set(super().get_params(deep=False)) & set(names)
        if len(set(names)) < len(names):
            raise refuse(self, f"Names provided are not unique: {names}.")
        if taken:
            raise refuse(self, f"Estimator names conflict with constructor arguments: {sorted(taken)}.")
        if any("__" in name for name in names):
            raise refuse(self, f"Estimator names must not contain __: got {[name for name in names if '__' in name]}.")
        kept = [(name, item) for name, item in given if not (isinstance(item, str) and item == "drop")]
        if not kept:
            raise refuse(self, "All estimators are dropped. At least one is required to be a learner.")
        return kept

    def _names(self) -> list[str]:
        """Return the names of the members that are fitted."""
        names = [name for name, _ in self._named()]
        return [names[t] for t in self.kept_] if "kept_" in vars(self) else names

    def _keep_some(self, made: list[Any]) -> np.ndarray:
        """Return the positions of the members that are fitted, and note if an interrupt left others out."""
        kept = np.flatnonzero([item is not None for item in made])
        if not len(kept):
            raise KeyboardInterrupt
        self.__dict__.pop("kept_", None)
        if len(kept) < len(made):
            self.kept_ = kept
        return kept

    def _check_count(self, members: int) -> None:
        named, kept = len(self._named()), vars(self).get("kept_")
        if members != (named if kept is None else len(kept)) or (kept is not None and kept[-1] >= named):
            raise refuse(self, f"estimators names {named} members, and there are {members}.")

    def _bases(self) -> list[Any]:
        return [item for _, item in self._named()]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep` also the members by name and their parameters."""
        if not isinstance(self.estimators, list):
            return super().get_params(deep=deep)
        return self._get_params("estimators", deep=deep)

    def set_params(self, **params: Any) -> Any:
        """Set parameters, members by name, and members' parameters, "name__parameter"."""
        if not isinstance(self.estimators, list):
            return super().set_params(**params)
        return self._set_params("estimators", **params)

    def get_metadata_routing(self) -> Any:
        """Return which metadata of `fit` goes to which members."""
        return routing_by_name(self, self._named())

    @property
    def named_estimators(self) -> Any:
        """The members by name, as they are given."""
        return Bunch(**dict(self._default() if self.estimators is None else self.estimators))

    @property
    def named_estimators_(self) -> Any:
        """The fitted members by name, and "drop" for those that are left out."""
        check_is_fitted(self, "members_")
        dropped = {
            name: named_estimator
            for name, named_estimator in self.named_estimators.items()
            if isinstance(named_estimator, str)
        }
        return Bunch(**dropped, **dict(zip(self._names(), self.estimators_)))

    @property
    def member_kinds_(self) -> dict[str, str]:
        """The class of each member by name."""
        check_is_fitted(self, "members_")
        return {name: type(estimator).__name__ for name, estimator in zip(self._names(), self.estimators_)}

    @property
    def homogeneous_(self) -> bool:
        """Whether all members are of one class."""
        return len(set(self.member_kinds_.values())) == 1


@dataclass(eq=False, repr=False)
class WeightedEnsemble(NamedMembers):
    """Members by name, with weights."""

    figure = "members"
    combines: ClassVar = "votes and means of learners of any class"
    sparse_too: ClassVar = True
    constraints: ClassVar = {
        "estimators": NamedEstimators,
        "holdout": Maybe(Number(0.0, 1.0, open_low=True, open_high=True)),
    }

    estimators: Any = None
    _: KW_ONLY
    weights: Any = None
    holdout: float | None = 0.25
    cv: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: bool = False

    @property
    def estimators_(self) -> list[Any]:
        """The fitted members; classifiers among them know the classes as 0, 1, ..."""
        check_is_fitted(self, "members_")
        return self.members_

    @property
    def weights_(self) -> np.ndarray:
        """The weights of the members, with the sum 1."""
        check_is_fitted(self, "members_")
        return self.vote_weights_ / self.vote_weights_.sum()

    def _derive(self) -> None:
        self._check_count(len(self.members_))

    # Fitting
    # ----------------------------------------------------------------------------------------

    def _fit_members(self, X: Any, y: np.ndarray, more: Any, log: FitLog) -> None:
        """Fit the members, and find their weights; `more` is what else the fit of each is given, by name."""
        named = self._named()
        self._check_kinds([estimator for _, estimator in named], is_classifier(self))
        self.held_: np.ndarray | None = None
        if isinstance(self.weights, str):
            if self.weights not in LEARN:
                raise refuse(self, f"weights must be None, numbers, 'learn' or 'auto'; got {self.weights!r}.")
            self._learn(named, X, y, more)
            log.stopped |= "kept_" in vars(self)
            return
        given = np.ones(len(named)) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        if given.ndim == 1 and len(given) not in (len(named), len(self.estimators or named)):
            raise refuse(self, f"Number of `estimators` and weights must be equal; got {len(given)} weights.")
        if self.weights is not None and len(given) == len(self.estimators or named) != len(named):
            kept = [not (isinstance(estimator, str) and estimator == "drop") for _, estimator in self.estimators]
            given = given[kept]
        if given.shape != (len(named),) or not np.isfinite(given).all() or given.min() < 0 or not given.sum() > 0:
            raise refuse(self, f"weights must be {len(named)} numbers >= 0, not all zero; got {self.weights!r}.")
        given = given if self.weights is None else given / given.sum()
        callback = partial(self._told, log, X, y, given) if log.watched else None
        made = fit_some(self, self._tasks(named, X, y, more), self._threads, callback)
        self._take(made, given)
        log.stopped |= "kept_" in vars(self)

    @property
    def _threads(self) -> int | None:
        return 1 if self.verbose and self.n_jobs is None else self.n_jobs

    def _tasks(self, named: Any, X: Any, y: np.ndarray, more: Any, at: Any = None) -> list[Task]:
        """Return the members to be fitted to all rows, or to those at some positions."""
        rows, target = (X, y) if at is None else (_safe_indexing(X, at), y[at])
        return [
            Task(
                name, estimator, rows, target, _check_method_params(X, more[name], indices=at),
                f"({t} of {len(named)}) Processing {name}" if self.verbose else None,
            )
            for t, (name, estimator) in enumerate(named, 1)
        ]  # fmt: skip

    def _take(self, made: list[Any], weights: np.ndarray) -> None:
        """Keep the members that are fitted, with their weights."""
        kept = self._keep_some(made)
        if not weights[kept].sum() > 0:
            raise KeyboardInterrupt  # members of weight 0 are no committee
        self._keep([made[t] for t in kept])
        self.vote_weights_ = weights[kept]

    def _told(self, log: FitLog, X: Any, y: np.ndarray, weights: np.ndarray, made: list[Any]) -> bool:
        """Show a callback the committee of the members so far; the whole one is shown at the end of the fit."""
        done = np.array([item is not None for item in made])
        if done.all() or not weights[done].sum() > 0:
            return False
        so_far = copy(self)
        so_far._take(made, weights)
        names = ("members_", "vote_weights_", "kept_", *self.own_arrays)
        return log.step(so_far._training_error(X, y), 0.0, **{name: getattr(so_far, name) for name in names})

    def _training_error(self, X: Any, y: np.ndarray) -> float:
        """Return the share of wrong rows, or the mean squared error, of all training rows, or of 10,000 to 20,000 of
        them at even distances; X is as the members take it."""
        if (apart := len(y) // _JUDGED) > 1:
            at = np.arange(0, len(y), apart)
            X, y = _safe_indexing(X, at), y[at]
        return self._error(X, y)

    def _error(self, X: Any, y: np.ndarray) -> float:
        raise NotImplementedError

    def _learn(self, named: Any, X: Any, y: np.ndarray, more: Any) -> None:
        """Fit the members and learn weights on rows that they did not see: a hold-out share, or folds."""
        n = _num_samples(X)
        if self.cv is None:
            rng = check_random_state(self.random_state)
            size = int(np.ceil((0.25 if self.holdout is None else self.holdout) * n))
            if not 1 <= size < n:
                raise refuse(self, f"holdout={self.holdout!r} leaves no rows on one side of {n}.")
            held = np.sort(rng.permutation(n)[:size])
            kept = np.setdiff1d(np.arange(n), held)
            made = self._fitted_to(named, X, y, more, kept, fit_some)
            self._take(made, np.ones(len(made)))
            outputs, target = self._outputs(self.members_, _safe_indexing(X, held)), self._one_hot(y[held])
            self.held_ = held
        else:
            outputs, target = self._out_of_fold(named, X, y, more), self._one_hot(y)
            made = fit_some(self, self._tasks(named, X, y, more), self._threads)
            self._take(made, np.ones(len(made)))
            outputs = outputs[:, [item is not None for item in made]]
        learnt: Learnt = (learnt_weights if self.weights == "learn" else chosen_weights)(outputs, target)
        self.vote_weights_, self.weight_gap_, self.simple_ = learnt.weights, learnt.gap, learnt.simple

    def _fitted_to(
        self, named: Any, X: Any, y: np.ndarray, more: Any, at: np.ndarray, fit: Callable[..., list[Any]]
    ) -> list[Any]:
        if is_classifier(self) and len(np.unique(y[at])) < len(self.classes_):
            raise refuse(self, "a class has no row outside the hold-out rows; lower holdout, or use cv.")
        return fit(self, self._tasks(named, X, y, more, at), self._threads)

    def _out_of_fold(self, named: Any, X: Any, y: np.ndarray, more: Any) -> np.ndarray:
        outputs: Any = None
        for kept, held in check_cv(self.cv, y, classifier=is_classifier(self)).split(X, y):
            said = self._outputs(self._fitted_to(named, X, y, more, kept, fit_members), _safe_indexing(X, held))
            outputs = np.zeros((len(y), *said.shape[1:])) if outputs is None else outputs
            outputs[held] = said
        return outputs

    def _outputs(self, members: list[Any], X: Any) -> np.ndarray:
        """Return what the members say of rows, (rows, members, outputs)."""
        return np.stack([self._member_output(member, X) for member in members], axis=1)

    def _member_output(self, member: Any, X: Any) -> np.ndarray:
        raise NotImplementedError

    def _one_hot(self, y: np.ndarray) -> np.ndarray:
        return np.eye(len(self.classes_))[y] if is_classifier(self) else y[:, None]

    def _combined(self, X: Any) -> np.ndarray:
        """Return the weighted sum of what the members say."""
        total: Any = 0.0
        for weight, values in self._answers(lambda item: self._member_output(item, X)):
            total = total + weight * values
        return total

    def _answers(self, ask: Callable[[Any], np.ndarray]) -> Iterator[tuple[float, np.ndarray]]:
        """Yield the weight and the answer of each member in turn; a few of them are asked at a time, on threads."""
        for first in range(0, len(self.members_), _TOGETHER):
            outputs = thread_map(ask, self.members_[first : first + _TOGETHER], n_jobs=self.n_jobs)
            yield from zip(self.vote_weights_[first : first + _TOGETHER].tolist(), outputs)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield how near the learnt weights are to the best ones."""
        if not isinstance(self.weights, str):
            return
        if self._from_file:
            yield NotApplicable("weights.simplex", FIT_NOT_KEPT)
        elif self.held_ is None:
            yield NotApplicable("weights.simplex", Message("why.fold-weights"))
        elif self.simple_:
            yield NotApplicable("weights.simplex", Message("why.equal-weights"))
        elif rows.n_rows <= self.held_[-1] or np.any(self.links_ < 0):
            yield NotApplicable("weights.simplex", Message("why.other-rows-or-member"))
        else:
            value = self.weight_gap_ * (1 + 1e-6) + 1e-8 * (1 + self._size(rows))
            params = {"rows": rows.n_rows, "learnt_from": len(self.held_)}
            yield Claim("weights.simplex", value, params=params, witness={"held": self.held_})

    def _size(self, rows: Rows) -> float:
        """Return the mean square of the target on the rows, the scale of the error."""
        return 1.0 if is_classifier(self) else float(rows.sum(_square)[0]) / rows.n_rows


def _square(block: Any) -> np.ndarray:
    return np.array([float((np.asarray(block.y, dtype=np.float64) ** 2).sum())])


def drawn_ties(shares: np.ndarray, X: Any, seed: int) -> np.ndarray:
    """Return the position of the largest share of each row; equals are drawn by a hash of the row and the seed, so that
    the same row is always decided the same way."""
    best = shares.argmax(axis=1)
    tied = shares == shares.max(axis=1, keepdims=True)
    for i in np.flatnonzero(tied.sum(axis=1) > 1):
        row = X[i] if isinstance(X, np.ndarray) else _safe_indexing(X, [int(i)])
        row = row.toarray() if issparse(row) else row
        content = row.tobytes() if isinstance(row, np.ndarray) and row.dtype != object else repr(row).encode()
        options = np.flatnonzero(tied[i])
        drawn = int.from_bytes(hashlib.blake2b(content, digest_size=8, key=str(seed).encode()).digest(), "little")
        best[i] = options[drawn % len(options)]
    return best
