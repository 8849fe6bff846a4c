"""The stored form of a fitted learner and the one door through which it comes back (`claims.model.StoredModel`).

`stored` takes the constructor parameters and the arrays that the learner's family names; `restore` checks them by the
family's own reader (shapes, ranges, indices, finiteness) before a compiled loop sees them, sets them, and lets the
learner derive the rest.

`to_sklearn` returns scikit-learn's estimator of the same name with the learner's parameters, as far as scikit-learn has
them, and its fitted attributes, so that it predicts the same. It has no certificate.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import Any, get_args, get_type_hints

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from assay.checker.family import Variant, find, read_model
from assay.claims.model import StoredModel, from_plain, to_plain
from assay.params import check, refuse

ABOUT_THE_MACHINE = ("n_jobs", "verbose")
"""Parameters that say how the machine works and nothing about the model; they are not stored."""


def class_name(kind: type) -> str:
    """Return room and class of a learner of Assay, for example "linear_model.Ridge"; module and class of others."""
    rooms = kind.__module__.split(".")
    place = ".".join(part for part in rooms[1:] if not part.startswith("_")) if rooms[0] == "assay" else kind.__module__
    return f"{place}.{kind.__qualname__}"


def stored(learner: Any) -> StoredModel:
    """Return a fitted learner as its parts."""
    _, variant = find(learner.family)
    more = [name for name in learner.more_arrays if name in variant.more]
    names = [*variant.arrays, *more, *(["classes_"] if variant.classes else [])]
    names += ["feature_names_in_"] if "feature_names_in_" in vars(learner) else []
    members = tuple(_member(member) for member in learner.members()) if variant.members else ()
    arrays = {name: _array(getattr(learner, name)) for name in names}
    return StoredModel(class_name(type(learner)), learner.family, plain_parameters(learner), arrays, members)


def _member(learner: Any) -> StoredModel:
    if not hasattr(learner, "stored"):
        raise ValueError(f"a member of class {type(learner).__name__} is not a learner of Assay.")
    return learner.stored()


def _array(value: Any) -> np.ndarray:
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value, order="C")


def plain_parameters(learner: Any) -> dict[str, Any]:
    """Return the constructor parameters as plain values; a generator as `random_state` is none of them."""
    given = {name: value for name, value in learner.get_params(deep=False).items() if name not in ABOUT_THE_MACHINE}
    if not isinstance(given.get("random_state"), (int, np.integer, type(None))):
        given["random_state"] = None
    return {name: to_plain(value, name) for name, value in given.items()}


def unfitted(kind: type, parameters: Mapping[str, Any], build: Callable[[Any], Any]) -> Any:
    """Return a learner with these parameters; refuse names that its constructor does not have."""
    known = set(kind._get_param_names()) - set(ABOUT_THE_MACHINE)  # type: ignore[attr-defined]
    if set(parameters) != known:
        odd = sorted(map(str, set(parameters) ^ known))[0]
        raise ValueError(f"the parameters are not those of {kind.__name__}: look at {odd[:40]!r}.")
    given = {name: from_plain(value, build) for name, value in parameters.items()}
    hints = get_type_hints(kind.__init__)  # type: ignore[misc]
    for name, value in given.items():
        if not _is_kind(value, hints.get(name, Any)):
            raise ValueError(f"{kind.__name__}: {name} cannot be a {type(value).__name__}.")
    return kind(**given)


def _is_kind(value: Any, hint: Any) -> bool:
    """Tell whether a value is text, a number or None where the annotation of a parameter wants one of these."""
    kinds = set(get_args(hint) if isinstance(hint, UnionType) else (hint,))
    if not kinds <= {str, int, float, bool, NoneType}:
        return True
    numbers = isinstance(value, (int, float)) and bool(kinds & {int, float, bool})
    return numbers or (isinstance(value, str) and str in kinds) or (value is None and NoneType in kinds)


def _check_members(learner: Any, members: Sequence[Any], variant: Variant) -> None:
    """Refuse members that predict nothing where what they predict is put together."""
    tasks = ("classify", "regress") if variant.classes else ("regress",)
    odd = [member for member in members if variant.target and getattr(member, "_task", "") not in tasks]
    if odd:
        raise ValueError(f"a {type(odd[0]).__name__} cannot be a member of a {type(learner).__name__}.")


def restore(kind: type, model: StoredModel, members: Sequence[Any], build: Callable[[Any], Any]) -> Any:
    """Return the fitted learner of class `kind` that `model` describes, after checking every part of it."""
    predictor = read_model(model, any_size=True)
    if model.learner != class_name(kind):
        raise ValueError(f"the model is a {model.learner}, not a {class_name(kind)}.")
    learner = unfitted(kind, model.parameters, build)
    check(learner)
    try:
        get_tags(learner)  # an ensemble asks its estimator
    except AttributeError:
        raise ValueError(f"the estimator of a {kind.__name__} must be a learner.") from None
    labels = model.arrays.get("classes_", np.empty(0))
    if not (labels[:-1] < labels[1:]).all():
        raise ValueError("classes_ must be in increasing order.")
    learner.n_features_in_ = int(predictor.columns)
    learner._take_arrays({name: value if value.ndim else value[()] for name, value in model.arrays.items()})
    learner._from_file = True
    _check_members(learner, members, find(model.family)[1])
    learner._take_members(members)
    learner._derive()
    if stored(learner).digest() != model.digest():
        raise ValueError(f"parameters and arrays contradict each other: no {kind.__name__} would be stored like this.")
    return learner


_PROBES = 64
_ANSWERS = ("predict", "transform", "score_samples", "predict_proba", "decision_function", "kneighbors")


def scikit_class(kind: type) -> type | None:
    """Return scikit-learn's own class of the same room and name, None if there is none."""
    for own in kind.__mro__:
        library, room, *_ = [*own.__module__.split("."), ""]
        if library == "assay" and own.__name__ == kind.__name__:
            try:
                result = getattr(import_module(f"sklearn.{room}"), own.__name__, None)
            except ModuleNotFoundError:
                return None
            return getattr(result, "theirs", result)  # a patched module has a stand-in there
    return None


def scikit_parameters(learner: Any, kind: type) -> dict[str, Any]:
    """Return the parameters that scikit-learn's class has; those that have Assay's default get scikit-learn's."""
    own, wanted = (signature(item.__init__).parameters for item in (type(learner), kind))  # type: ignore[misc]
    given = learner.get_params(deep=False)
    results = {}
    for name, parameter in wanted.items():
        if name in given:
            at_default = parameter.default is not Parameter.empty and _same(given[name], own[name].default)
            results[name] = parameter.default if at_default else given[name]
    return results


def _same(value: Any, default: Any) -> bool:
    same_kind = isinstance(default, (str, int, float)) and type(value) is type(default)
    return value is default or (same_kind and bool(value == default))


def fitted_attributes(learner: Any) -> dict[str, Any]:
    """Return the fitted attributes by their public names; learners among them, or in lists, are scikit-learn's."""
    results = {}
    for name in dir(learner):
        if name.endswith("_") and not name.startswith("_"):
            with suppress(AttributeError, NotImplementedError):  # what this fit has not
                results[name] = _converted(getattr(learner, name))
    return results


def _converted(value: Any) -> Any:
    if hasattr(value, "to_sklearn"):
        return value.to_sklearn()
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_converted(item) for item in value)
    if isinstance(value, np.ndarray) and value.dtype == object:
        changed = np.empty_like(value)
        changed.ravel()[:] = [_converted(item) for item in value.ravel()]
        return changed
    return value


def to_sklearn(learner: Any) -> Any:
    """Return scikit-learn's estimator with the parameters and fitted attributes of `learner`.

    It is compared with the learner on rows drawn for the purpose, and refused if it says anything else.
    """
    check_is_fitted(learner)
    kind = scikit_class(type(learner))
    if kind is None:
        raise refuse(learner, "scikit-learn has no class of this name.")
    estimator = kind(**{name: _unfitted(value) for name, value in scikit_parameters(learner, kind).items()})
    try:
        with warnings.catch_warnings():  # deprecated attributes, and rows without names or neighbours
            warnings.simplefilter("ignore")
            same = _filled(learner, estimator)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise refuse(learner, f"this model has no form in scikit-learn ({error}).") from error
    if not same:
        raise refuse(learner, "scikit-learn's estimator with these attributes would predict something else.")
    return estimator


def _filled(learner: Any, estimator: Any) -> bool:
    """Give the estimator the learner's attributes, and tell whether both then say the same."""
    for name, value in {**fitted_attributes(learner), **learner._scikit_state(estimator)}.items():
        with suppress(AttributeError):  # a property of the estimator follows from the others
            setattr(estimator, name, value)
    return _compared(learner, estimator)


def _unfitted(value: Any) -> Any:
    """Return a parameter with learners in it as scikit-learn's estimators."""
    if hasattr(value, "to_sklearn"):
        kind = scikit_class(type(value))
        return value if kind is None else kind(**scikit_parameters(value, kind))
    if isinstance(value, (list, tuple)):
        return type(value)(_unfitted(item) for item in value)
    return value


def _compared(learner: Any, estimator: Any) -> bool:
    """Tell whether both say the same of rows of numbers, or of zeros and ones, whichever the learner reads."""
    random = np.random.default_rng(0)
    shape = (_PROBES, learner.n_features_in_)
    for rows in (random.normal(size=shape) * 10.0 ** random.uniform(-1, 2, (_PROBES, 1)), random.integers(0, 2, shape)):
        try:
            shared = [name for name in _ANSWERS if hasattr(learner, name) and hasattr(estimator, name)]
            told = {name: getattr(learner, name)(rows) for name in shared}
        except ValueError:  # rows that it does not read
            continue
        return bool(told) and all(_equal(value, getattr(estimator, name)(rows)) for name, value in told.items())
    return False


def _equal(one: Any, other: Any) -> bool:
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype.kind != "f":
        return np.array_equal(one, other)
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-6, atol=1e-8, equal_nan=True)
