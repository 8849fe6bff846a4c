"""Ensembles of one base learner: members by position, input validation for members of any class, metadata routing."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import column_or_1d
from sklearn.utils._metadata_requests import _raise_for_params, _routing_enabled
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, has_fit_parameter, validate_data

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


class HomogeneousEnsemble(Indexed, Learner):
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
        if not (all(type(member) is type(base) for member in members) if members else grows_nodes(base)):
            raise refuse(self, f"its members must be those of its estimator, {type(base).__name__}.")
        self.members_ = list(members)


def one_hot(codes: np.ndarray, classes: int) -> np.ndarray:
    """Return (rows, classes): 1 at the class of each row, without a table of all classes by all classes.

    >>> one_hot(np.array([1, 0]), 3).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    result = np.zeros((len(codes), classes))
    result[np.arange(len(codes)), codes] = 1.0
    return result


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


# Metadata routing -------------------------------------------------------------------------------------------------


def routed_to(owner: Any, method: str, given: dict[str, Any], callee: str | None = None) -> dict[str, Any]:
    """Return what of the metadata given to a method of the ensemble goes to the members' method."""
    _raise_for_params(given, owner, method)
    if not given:
        return {}
    return dict(getattr(process_routing(owner, method, **given).estimator, callee or method))


def routed_fits(owner: Any, names: Sequence[str], weight: Any, given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what the `fit` of each member is given beside rows and targets: without routing the weights of rows."""
    _raise_for_params(given, owner, "fit")
    weights = {} if weight is None else {"sample_weight": weight}
    if not _routing_enabled() or not (weights or given):
        return {name: dict(weights) for name in names}
    routed = process_routing(owner, "fit", **weights, **given)
    return {name: dict(routed[name]["fit"]) for name in names}


def asked_of(learner: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return what of the metadata a learner's `fit` takes: with routing on, what it asks for."""
    if not _routing_enabled():
        return given
    asked = get_routing_for_object(learner).consumes("fit", given)
    return {name: value for name, value in given.items() if name in asked}


def routing_by_name(owner: Any, named: Sequence[tuple[str, Any]]) -> MetadataRouter:
    """Return a router that gives metadata of `fit` to the `fit` of the members that ask for it."""
    router = MetadataRouter(owner=owner)
    for name, estimator in named:
        router.add(**{name: estimator}, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
    return router


def consumes_weights(base: Any) -> bool:
    """Tell whether the `fit` of a learner takes sample weights; with routing on, whether it asks for them."""
    if _routing_enabled():
        return bool(get_routing_for_object(base).consumes("fit", ("sample_weight",)))
    return has_fit_parameter(base, "sample_weight")


def asked_by(base: Any, method: str) -> str:
    """Return the method of the members by which a method of the ensemble is answered."""
    options = {
        "predict": ["predict_proba"],
        "predict_proba": ["predict_proba"],
        "predict_log_proba": ["predict_log_proba", "predict_proba"],
    }
    return next((name for name in options.get(method, ()) if hasattr(base, name)), "predict")


def routing_of(owner: Any, base: Any) -> MetadataRouter:
    """Return which methods of the members metadata goes to."""
    mapping = MethodMapping().add(caller="fit", callee="fit")
    mapping.add(caller="decision_function", callee="decision_function")
    for method in ("predict", "predict_proba", "predict_log_proba"):
        mapping.add(caller=method, callee=asked_by(base, method))
    return MetadataRouter(owner=owner).add(estimator=base, method_mapping=mapping)
