"""Ensembles of trees, or of any other learners: members by position, rows as any member takes them."""

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from assay.base import Learner, streams
from assay.params import refuse
from assay.tree._decision_tree import DecisionTree
from assay.tree._reading import read_columns, read_labelled


class Indexed:
    """Mixin: `len(model)`, `model[t]` and iteration, over the fitted members."""

    estimators_: Any

    @property
    def _n_members(self) -> int:
        return len(self.estimators_)

    def __len__(self) -> int:
        check_is_fitted(self)
        return self._n_members

    def __bool__(self) -> bool:
        return True  # also before `fit`: a learner is no empty list

    def __getitem__(self, at: Any) -> Any:
        check_is_fitted(self)
        return self.estimators_[at]

    def __iter__(self) -> Iterator[Any]:
        check_is_fitted(self)
        return iter(self.estimators_)


class OfMembers(Learner):
    """Mixin of ensembles whose members are trees, kept as nodes, or other learners, kept as they are."""

    of_trees: ClassVar[str]
    of_others: ClassVar[str]
    members_: list[Any]

    @property
    def family(self) -> str:  # type: ignore[override]
        """The checker's family: that of the trees, or one without claims."""
        return self.of_others if getattr(self, "members_", None) else self.of_trees

    @property
    def estimator_(self) -> Any:
        """The base learner, not fitted."""
        check_is_fitted(self)
        return self._base()

    def _base(self) -> Any:
        raise NotImplementedError

    def members(self) -> list[Any]:
        return self.members_

    def _take_members(self, members: Any) -> None:
        base, same_task = self._base(), is_classifier if is_classifier(self) else is_regressor
        if not isinstance(base, Learner) or not same_task(base):
            raise refuse(self, f"estimator must be a learner of its own task; got {str(base)[:60]!r}.")
        if not (all(type(one) is type(base) for one in members) if members else grows_nodes(base)):
            raise refuse(self, f"its members must be those of its estimator, {type(base).__name__}.")
        self.members_ = list(members)


def one_hot(codes: np.ndarray, classes: int) -> np.ndarray:
    """Return (rows, classes): 1 at the class of each row, without a table of all classes by all classes.

    >>> one_hot(np.array([1, 0]), 3).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    found = np.zeros((len(codes), classes))
    found[np.arange(len(codes)), codes] = 1.0
    return found


def grows_nodes(base: Any) -> bool:
    """Tell whether a learner is a tree of Assay as it is, and no class derived from it with a fit or predict of its
    own."""
    own = [getattr(getattr(type(base), name, None), "__module__", "") for name in ("fit", "predict")]
    return isinstance(base, DecisionTree) and all(str(where).startswith("assay.") for where in own)


class Given(NamedTuple):
    """Rows as any member takes them (arrays of any type, sparse rows, more than two dimensions), positions of classes
    or numbers, and weights."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None

    @property
    def shown(self) -> tuple[Any, Any]:
        return self.X, self.y


def any_rows(learner: Any, X: Any, *, reset: bool = False, nd: bool = False, finite: bool = False) -> Any:
    """Return rows for members that check them by themselves: sparse rows stay sparse, and values keep their type."""
    if streams(X):
        return read_columns(learner, X).X
    taken: dict[str, Any] = {"accept_sparse": ["csr", "csc"], "dtype": None, "allow_nd": nd}
    return validate_data(learner, X, reset=reset, ensure_all_finite=finite, **taken)


def any_given(learner: Any, X: Any, y: Any, weight: Any, *, nd: bool = False, finite: bool = False) -> Given:
    """Return rows, target and weights for members that check rows by themselves; `classes_` is set."""
    learner.columns_ = None
    classify = is_classifier(learner)
    if streams(X, y):
        data = (read_labelled if classify else _read_numbers)(learner, X, y, weight)
        return Given(data.X, data.y, data.weight)
    if y is None:
        raise ValueError(f"{type(learner).__name__} requires y to be passed, but the target y is None.")
    taken: dict[str, Any] = {"accept_sparse": ["csr", "csc"], "dtype": None, "allow_nd": nd, "multi_output": not nd}
    X, y = validate_data(learner, X, y, ensure_all_finite=finite, y_numeric=is_regressor(learner), **taken)
    if weight is not None:
        weight = _check_sample_weight(weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weight.sum() > 0:
            raise refuse(learner, "the sample weights are all zero; at least one row must count.")
    return Given(X, positions(learner, y) if classify else y, weight)


def _read_numbers(learner: Any, X: Any, y: Any, weight: Any) -> Any:
    return read_columns(learner, X, y, weight, reset=True)


def positions(learner: Any, y: Any) -> np.ndarray:
    """Return labels as positions in `classes_`, which is set; there may be one class alone."""
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    learner.classes_, codes = np.unique(y, return_inverse=True)
    return codes.astype(np.int64)


def seed_parts(model: Any, seed: int) -> Any:
    """Set the parameters `random_state` of a learner, its own and those of its parts, to numbers that follow from a
    seed."""
    names = sorted(name for name in model.get_params() if name.rpartition("__")[2] == "random_state")
    rng = np.random.RandomState(seed)
    return model.set_params(**{name: int(rng.randint(2**31 - 1)) for name in names})
