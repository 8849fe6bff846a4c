"""What every learner that is made of other learners shares: reading, fitting members side by side, storing, evidence.

Members are fitted to positions of the classes, 0, 1, ..., so that labels play no part in them. Evidence is what members
say themselves (`_member_outputs`).
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import get_tags
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils._user_interface import _print_elapsed_time
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    has_fit_parameter,
    validate_data,
)

from assay.base import Learner
from assay.data.blocks import Block
from assay.ensemble._member_outputs import MemberOutput, Output, is_ours, outputs
from assay.fitlog import Interrupts
from assay.guarantees.evidence import Evidence, Predictions, Scores
from assay.params import refuse
from assay.scan import Rows, thread_map
from assay.theory.spaces import Unbounded


class MemberError(ValueError):
    """A member could not be fitted; the message names it, the cause is its own error."""


class Task(NamedTuple):
    """A member to be fitted: its name, the learner, rows, target, and what else its `fit` is given; with a note the
    time is printed."""

    name: str
    learner: Any
    X: Any
    y: Any
    more: Mapping[str, Any] = {}
    note: str | None = None


def fit_members(owner: Any, tasks: Sequence[Task], n_jobs: int | None) -> list[Any]:
    """Return clones of the learners, each fitted to its rows, side by side; one that fails is named."""
    made = fit_some(owner, tasks, n_jobs)
    if any(one is None for one in made):
        raise KeyboardInterrupt
    return made


def fit_some(
    owner: Any, tasks: Sequence[Task], n_jobs: int | None, stop: Callable[[list[Any]], bool] | None = None
) -> list[Any]:
    """Return `fit_members`, with None for members that were not begun, or not fitted, when the keyboard interrupted.

    A member that is interrupted may keep its best so far; then it counts as fitted. `stop` is told what is fitted
    after each member, and may ask to begin no other. A second Ctrl-C quits.
    """
    if n_jobs is None and _routing_enabled() and any(task.more for task in tasks):
        n_jobs = 1  # metadata of a user's own, which may not be made for threads
    made: list[Any] = [None] * len(tasks)
    lock, asked = threading.Lock(), False

    def work(t: int) -> None:
        nonlocal asked
        if asked or heard.asked:
            return
        made[t] = _fitted(owner, tasks[t], len(tasks))
        if stop is not None:
            with lock:
                asked |= stop(made)

    with Interrupts() as heard:
        try:
            thread_map(work, range(len(tasks)), n_jobs=n_jobs)
        except KeyboardInterrupt:
            heard.asked += not heard.asked
        heard.check()
    return made


def _fitted(owner: Any, task: Task, tasks: int) -> Any:
    try:
        learner = _quiet(clone(task.learner), tasks)
        with _print_elapsed_time(type(owner).__name__.removesuffix("Classifier").removesuffix("Regressor"), task.note):
            learner.fit(task.X, task.y, **task.more)
        return learner
    except Exception as error:
        if isinstance(error, (TypeError, AttributeError)) and not isinstance(error, ValueError):
            error.add_note(f"in the member {task.name!r} of {type(owner).__name__}")
            raise
        raise MemberError(
            f"{type(owner).__name__}: the member {task.name!r} ({type(task.learner).__name__}) failed: {error}"
        ) from error


def _quiet(learner: Any, tasks: int) -> Any:
    """Return the learner on one thread, if it asks for no number and there are others to be fitted beside it."""
    names = learner.get_params(deep=False) if hasattr(learner, "get_params") else {}
    return learner.set_params(n_jobs=1) if tasks > 1 and names.get("n_jobs", 0) is None else learner


class OfLearners(Learner):
    """Mixin of learners made of any learners."""

    combines: ClassVar[str] = "combinations of learners"
    sparse_too: ClassVar[bool] = False
    """Whether rows may be sparse if all its learners read such rows."""
    members_: list[Any]

    @property
    def links_(self) -> np.ndarray:
        """How the checker reads each member; -1 where it does not know what the member returns."""
        if not hasattr(self, "_links"):
            self._links = np.array([self._link_of(t) for t in range(len(self.members_))], dtype=np.int64)
        return self._links

    def _link_of(self, t: int) -> int:
        """Return the link of member t."""
        raise NotImplementedError

    def _keep(self, members: Sequence[Any]) -> None:
        """Keep the fitted members."""
        self.members_ = list(members)
        self.__dict__.pop("_links", None)

    # Rows
    # ----------------------------------------------------------------------------------------

    def _bases(self) -> list[Any]:
        """Return the learners, not fitted, that the parameters name."""
        raise NotImplementedError

    def _rows(self, X: Any, *, reset: bool) -> Any:
        """Return X as members take it: an array of numbers, or as it is if a learner from outside may read more."""
        if all(is_ours(one) for one in self._bases()):
            finite: Any = "allow-nan" if self._reads_gaps() else True
            sparse = "csr" if self._reads_sparse() else False
            return validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite=finite, accept_sparse=sparse)
        _check_feature_names(self, X, reset=reset)
        if hasattr(X, "shape") and len(X.shape) == 2:
            return validate_data(self, X, reset=reset, skip_check_array=True)
        return X

    def _reads_gaps(self) -> bool:
        """Tell whether every learner reads rows that lack values."""
        return all(hasattr(one, "fit") and get_tags(one).input_tags.allow_nan for one in self._bases())

    def _reads_sparse(self) -> bool:
        """Tell whether every learner reads sparse rows."""
        bases = self._bases() if self.sparse_too else []
        return bool(bases) and all(hasattr(one, "fit") and get_tags(one).input_tags.sparse for one in bases)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan, tags.input_tags.sparse = self._reads_gaps(), self._reads_sparse()
        return tags

    def _targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray, Any]:
        """Return the target, as positions among `classes_` for a classifier, and the row weights."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        classify = is_classifier(self)
        y = _check_y(y, y_numeric=not classify, estimator=self)
        check_consistent_length(X, y)
        if sample_weight is not None and not _routing_enabled():
            for one in self._bases():
                if not _takes_weights(one):
                    raise TypeError(f"Underlying estimator {type(one).__name__} does not support sample weights.")
            if hasattr(X, "shape"):
                sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not classify:
            return np.asarray(y, dtype=np.float64), sample_weight
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__}: needs rows of at least 2 classes to learn from; the data contain one class: "
                f"{self.classes_.tolist()[0]!r}."
            )
        return codes.astype(np.int64), sample_weight

    def _check_kinds(self, learners: Sequence[Any], classify: bool) -> None:
        for one in learners:
            if not hasattr(one, "fit") or not (is_classifier(one) if classify else is_regressor(one)):
                kind = "classifier" if classify else "regressor"
                raise refuse(self, f"The estimator {type(one).__name__} should be a {kind} with fit; got {one!r}.")

    # The stored form
    # ----------------------------------------------------------------------------------------

    def members(self) -> list[Any]:
        return self.members_

    def _take_members(self, members: Sequence[Any]) -> None:
        self._keep(members)

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        for one in self.members_:
            if not is_ours(one):
                raise refuse(
                    self,
                    f"a certificate is about members that the checker re-runs; {type(one).__name__} is no learner of "
                    "Assay.",
                )
        return super()._known_rows(X, y, sample_weight)

    def space(self, rows: Rows) -> Any:
        """Return a class without a dimension: members are chosen from classes of their own."""
        return Unbounded(self.combines)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the scores, or numbers, that follow from what the members say."""
        if np.any(np.asarray(self.links_) < 0):
            at = int(np.argmin(self.links_))
            raise refuse(
                self,
                f"the checker does not know what {type(self.members_[at]).__name__} returns; ask for votes, not for "
                "probabilities.",
            )
        kind = Scores if is_classifier(self) else Predictions
        yield kind(self._bounded, (outputs(self.members_, self.links_, rows),))

    def _bounded(self, block: Block, members: Sequence[MemberOutput]) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores or numbers of a block, and how far rounding can move them."""
        with np.errstate(all="ignore"):
            values, errors = self._combine([one.of(block) for one in members], block)
        return values, errors.max(axis=1)

    def _combine(self, said: Sequence[Output], block: Block) -> Output:
        """Return what the model makes of what its members say."""
        raise NotImplementedError


def _takes_weights(learner: Any) -> bool:
    """Tell whether `fit` of a learner names sample_weight, or takes any keyword."""
    kinds = [one.kind for one in signature(learner.fit).parameters.values()]
    return has_fit_parameter(learner, "sample_weight") or Parameter.VAR_KEYWORD in kinds


def reject_label(classes: np.ndarray, given: Any) -> Any:
    """Return the label of rejected rows: that which is given, else "reject" for text, and for numbers -1, or 0 if that
    is a class, or one less than the smallest."""
    if given is not None:
        return given
    if classes.dtype.kind not in "iuf":
        return "reject"
    return next((value for value in (-1, 0) if value not in classes), classes.min() - 1)


def labelled(classes: np.ndarray, at: np.ndarray, rejected: Any) -> np.ndarray:
    """Return the labels of positions, and `rejected` for positions that are none; labels keep their types."""
    away = (at < 0) | (at >= len(classes))
    label = np.asarray([rejected])
    alike = all(part.dtype.kind in "iuf" for part in (classes, label)) or classes.dtype.kind == label.dtype.kind == "U"
    kind = np.result_type(classes, label) if alike else np.dtype(object)
    said = classes.astype(kind)[np.where(away, 0, at)]
    said[away] = rejected
    return said
